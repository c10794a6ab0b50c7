"""Surrogates: models of the objective on strings, all behind one protocol."""

from seqopt.models import pathwise  # noqa: F401  # BoTorch's draws of functions find the sub-sequence kernel
from seqopt.models.fully_bayesian import FullyBayesianStringGP
from seqopt.models.leave_one_out import LeaveOneOut
from seqopt.models.protocols import (
    BoundedPosterior,
    ConditionedProcess,
    ExplainedSurrogate,
    JointSurrogate,
    NoiseAwareSurrogate,
    PoolSurrogate,
    Posterior,
    SelectiveSurrogate,
    StringSurrogate,
    Surrogate,
    unsupported,
)
from seqopt.models.registry import SURROGATES, default_surrogate, resolve_surrogate
from seqopt.models.string_gp import StringGP

__all__ = [
    "SURROGATES",
    "BoundedPosterior",
    "ConditionedProcess",
    "ExplainedSurrogate",
    "FullyBayesianStringGP",
    "JointSurrogate",
    "LeaveOneOut",
    "NoiseAwareSurrogate",
    "PoolSurrogate",
    "Posterior",
    "SelectiveSurrogate",
    "StringGP",
    "StringSurrogate",
    "Surrogate",
    "default_surrogate",
    "resolve_surrogate",
    "unsupported",
]
