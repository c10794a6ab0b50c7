"""The inner loop: builds a batch for an acquisition function on a space."""

from seqopt.search.pool import PoolSearch
from seqopt.search.protocols import Search, Suggestion

__all__ = ["PoolSearch", "Search", "Suggestion"]
