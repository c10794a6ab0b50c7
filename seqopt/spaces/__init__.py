"""Which strings are allowed, and how to sample and check them."""

from seqopt.spaces.candidate_set import CandidateSet
from seqopt.spaces.protocols import EvolvableSpace, PoolSpace, Space

__all__ = ["CandidateSet", "EvolvableSpace", "PoolSpace", "Space"]
