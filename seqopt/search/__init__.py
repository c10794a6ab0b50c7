"""The inner loop: builds a batch for an acquisition function on a space."""

from seqopt.search.genetic import GeneticSearch
from seqopt.search.latent import LatentSearch
from seqopt.search.pool import PoolSearch
from seqopt.search.protocols import Search, Suggestion
from seqopt.search.random import RandomSearch

__all__ = ["GeneticSearch", "LatentSearch", "PoolSearch", "RandomSearch", "Search", "Suggestion"]
