"""The inner loop: builds a batch of large scores on a space."""

from seqopt.search.genetic import GeneticSearch
from seqopt.search.latent import LatentSearch
from seqopt.search.pool import PoolSearch
from seqopt.search.protocols import Proposal, Search
from seqopt.search.random import RandomSearch
from seqopt.search.reagents import ReagentSearch

__all__ = ["GeneticSearch", "LatentSearch", "PoolSearch", "Proposal", "RandomSearch", "ReagentSearch", "Search"]
