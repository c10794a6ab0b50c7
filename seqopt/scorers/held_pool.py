"""Candidates of a pool whose features are kept from one step to the next, for classifiers that look at features."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

from seqopt.encoding.held import HeldStrings
from seqopt.scorers.protocols import IndexArray
from seqopt.spaces import PoolSpace, keys_at

_HELD: WeakKeyDictionary[PoolSpace, HeldStrings] = WeakKeyDictionary()
"""Of each pool, as long as it lives."""


def held_keys(pool: PoolSpace, indices: IndexArray | None = None) -> Sequence[str]:
    """Keys of candidates; those of a whole pool keep their features, as far as `HeldStrings` does.

    Example:
        >>> from seqopt.spaces import CandidateSet
        >>> pool = CandidateSet(["CCO", "CCN"])
        >>> held_keys(pool) is held_keys(pool), list(held_keys(pool))
        (True, ['CCO', 'CCN'])
    """
    if indices is not None or type(pool).__hash__ is None:  # a class of a user's own may compare by value
        return keys_at(pool, indices)
    found = _HELD.get(pool)
    if found is None:
        found = _HELD[pool] = HeldStrings(keys_at(pool))
    return found
