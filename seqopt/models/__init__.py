"""Surrogates: models of the objective on strings, all behind one protocol."""

from seqopt.models.protocols import JointSurrogate, PoolSurrogate, Posterior, Surrogate
from seqopt.models.string_gp import StringGP

__all__ = ["JointSurrogate", "PoolSurrogate", "Posterior", "StringGP", "Surrogate"]
