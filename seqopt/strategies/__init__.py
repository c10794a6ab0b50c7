"""Who decides: from everything known to what is evaluated next."""

from seqopt.strategies.initial import InitialDesign
from seqopt.strategies.model_based import ModelBased, default_search
from seqopt.strategies.protocols import SearchState, Strategy
from seqopt.strategies.random import RandomStrategy, random_proposals

__all__ = [
    "InitialDesign",
    "ModelBased",
    "RandomStrategy",
    "SearchState",
    "Strategy",
    "default_search",
    "random_proposals",
]
