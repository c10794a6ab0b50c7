"""The inner search of a space where none is chosen."""

from __future__ import annotations

from seqopt.search.genetic import GeneticSearch
from seqopt.search.pool import PoolSearch
from seqopt.search.protocols import SomeSearch
from seqopt.search.random import RandomSearch
from seqopt.search.reagents import ReagentSearch
from seqopt.spaces import CombinatorialSpace, EvolvableSpace, PoolSpace, Space


def default_search(space: Space) -> SomeSearch:
    """The inner search of a space where none is chosen: the whole pool, building blocks, moves where there are any, or
    random strings.
    """
    if isinstance(space, PoolSpace):
        return PoolSearch()
    if isinstance(space, CombinatorialSpace):
        return ReagentSearch()
    return GeneticSearch() if isinstance(space, EvolvableSpace) else RandomSearch()
