"""Which candidates of a pool may be chosen: an array with a flag for each, or only those that may not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar, cast, overload

import numpy as np

from seqopt.scorers.protocols import BoolArray, IndexArray
from seqopt.spaces.spread import spread_of


class AllBut:
    """All of N candidates but some: it stands for an array of N flags, of which few are false.

    Args:
        size: N.
        left_out: Numbers of those that may not be chosen.

    Example:
        >>> allowed = AllBut(10**9, [3, 5])
        >>> allowed[7] = False
        >>> allowed[np.array([3, 4, 7])].tolist(), allowed.left_out().tolist()
        ([False, True, False], [3, 5, 7])
    """

    def __init__(self, size: int, left_out: Iterable[int] = ()) -> None:
        self._size = size
        self._left_out = set(left_out)

    def __len__(self) -> int:
        return self._size

    def copy(self) -> AllBut:
        """Another one."""
        return AllBut(self._size, self._left_out)

    def left_out(self) -> IndexArray:
        """Numbers of those that may not be chosen, ascending."""
        return np.array(sorted(self._left_out), dtype=np.int64)

    @overload
    def __getitem__(self, index: int) -> bool: ...

    @overload
    def __getitem__(self, index: IndexArray) -> BoolArray: ...

    def __getitem__(self, index: int | IndexArray) -> bool | BoolArray:
        if isinstance(index, int | np.integer):
            return int(index) not in self._left_out
        return ~np.isin(index, self.left_out())

    def __setitem__(self, index: int | IndexArray, flag: bool) -> None:
        places = np.atleast_1d(np.asarray(index, dtype=np.int64)).tolist()
        (self._left_out.difference_update if flag else self._left_out.update)(places)


Allowed = TypeVar("Allowed", BoolArray, AllBut)


def all_but(pool: object, size: int, left_out: Iterable[int]) -> BoolArray:
    """Which candidates of a pool may be chosen: all but some.

    What is returned for a pool that is spread over other processes is an `AllBut`, which behaves as the array that it
    is declared to be wherever a `seqopt.scorers.PoolScorer` may be asked for the best of such a pool.

    Args:
        pool: The pool.
        size: How many candidates it has.
        left_out: Numbers of those that may not be chosen.
    """
    if spread_of(pool) is not None:
        return cast("BoolArray", AllBut(size, left_out))
    allowed = np.ones(size, dtype=np.bool_)
    allowed[list(left_out)] = False
    return allowed


def without(allowed: BoolArray, numbers: Iterable[int]) -> BoolArray:
    """The same, but for some candidates more."""
    found = allowed.copy()
    found[np.fromiter(numbers, dtype=np.int64)] = False
    return found


def left_out_of(allowed: BoolArray) -> IndexArray:
    """Numbers of the candidates that may not be chosen, ascending."""
    given: object = allowed
    if isinstance(given, AllBut):
        return given.left_out()
    return np.flatnonzero(~allowed).astype(np.int64)
