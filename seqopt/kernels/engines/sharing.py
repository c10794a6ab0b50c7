"""Which prefixes and suffixes strings share: the order in which the `cpu` engine computes each of them once.

The state of the dynamic program after some symbols of a string depends on these symbols only (the rows of
`seqopt.kernels.engines.compiled`), so that strings in the order of a sorted list continue from the state of the prefix
that they share with the string before them: in all as many rows as their trie has nodes. Likewise from the other end.
The kernel is linear in the state after a prefix and in that after the rest of the string read backwards,

    h_i(p q, b) = h_i(p, b) + h_i(q, b) + sum over u, v >= 1, u + v = i, and k < k' of C_u[k] gap^(k'-k-1) C'_v[k'],

which takes as long as two or three rows. So a string whose ending q is frequent is cut before it, and only the rows
between the prefix and the ending that it shares with others are its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seqopt.encoding import EncodedStrings
from seqopt.encoding.derived import once_per_strings
from seqopt.kernels.engines.compiled import next_smaller, number_endings

Int64Array = npt.NDArray[np.int64]

JOIN = 2.5
"""Rows of the dynamic program that take as long as joining a prefix with an ending."""

FREQUENCIES = (2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
"""How many strings have to share an ending: what is tried."""

VISIT = 0.3
"""Rows that take as long as what is left to do for a string whose rows are all shared."""


@dataclass(frozen=True)
class Walk:
    """Strings, or parts of them, in an order in which neighbours share prefixes.

    Attributes:
        strings: Numbers of the strings.
        stops: How many symbols of each are read.
        commons: How many of them are those of the string before it; 0 for the first.
        smaller: Index of the next smaller value after each of ``commons``.
    """

    strings: Int64Array
    stops: Int64Array
    commons: Int64Array
    smaller: Int64Array

    @classmethod
    def through(cls, strings: Int64Array, stops: Int64Array, commons: Int64Array) -> Walk:
        """The walk with ``commons``, which need not be limited to what is read."""
        commons = np.minimum(commons, stops)
        commons[1:] = np.minimum(commons[1:], stops[:-1])
        commons[:1] = 0
        return cls(strings.astype(np.int64), stops.astype(np.int64), commons, next_smaller(commons))

    @property
    def arrays(self) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array]:
        """In the order of `seqopt.kernels.engines.compiled.Walk`."""
        return self.strings, self.stops, self.commons, self.smaller


@dataclass(frozen=True)
class SharedRows:
    """How the rows of many strings are computed together.

    Attributes:
        walk: All strings without their endings.
        endings: For each of them the number of its ending in ``endings_walk``; -1 for none.
        endings_walk: The endings, read from the last symbol to the first.
        costs: Rows that each string of ``walk`` takes besides what came before.
        own: Rows that no other string shares, in the original order of the strings.
        fixed: Rows that the endings take.
        cells: Rows of all strings if nothing were shared.
    """

    walk: Walk
    endings: Int64Array
    endings_walk: Walk
    costs: npt.NDArray[np.float64]
    own: npt.NDArray[np.float64]
    fixed: float
    cells: float

    @property
    def rows(self) -> float:
        """Rows in all, what takes as long as rows included."""
        return float(self.costs.sum()) + self.fixed


@once_per_strings
def share(strings: EncodedStrings, most_endings: int) -> SharedRows:
    """The cheapest plan found for ``strings``, with at most ``most_endings`` endings.

    Takes sorting the strings three times.
    """
    lengths = strings.lengths.astype(np.int64)
    forwards, commons = _sorted(strings.tokens, lengths)
    backwards, mirrored_commons = _sorted(_mirrored(strings.tokens, lengths), lengths)
    # Rows that are a string's own, from the last place where another one leaves its path.
    branches = np.maximum(commons, np.append(commons[1:], 0))
    own = np.empty(len(strings), dtype=np.int64)
    own[forwards] = lengths[forwards] - branches
    best, chosen = np.inf, np.full(len(strings), -1, dtype=np.int64)
    kept = np.empty(0, dtype=np.int64)
    for frequency in (None, *FREQUENCIES):
        if frequency is not None and (frequency > len(strings) or not most_endings):
            break
        depths = np.full(len(strings), -1, dtype=np.int64)
        if frequency is not None:
            depths = _frequent(mirrored_commons, frequency)
            saved = np.minimum(depths, own[backwards])
            depths[saved <= JOIN + VISIT] = -1
        numbers = number_endings(mirrored_commons, depths)
        count = int(numbers.max(initial=-1)) + 1
        if count > most_endings:
            continue
        cut = np.empty(len(strings), dtype=np.int64)
        cut[backwards] = np.maximum(depths, 0)
        stops = lengths[forwards] - cut[forwards]
        rows = float((stops - np.minimum(stops, commons)).sum()) + JOIN * float((depths >= 0).sum())
        if count:
            rows += _endings(backwards, depths, numbers, mirrored_commons)[1]
        if rows < best:
            best, chosen, kept = rows, depths, numbers
    endings_walk, fixed = _endings(backwards, chosen, kept, mirrored_commons)
    stops, endings = lengths.copy(), np.full(len(strings), -1, dtype=np.int64)
    stops[backwards] -= np.maximum(chosen, 0)
    endings[backwards] = kept
    if endings_walk.strings.size:
        inside = np.arange(strings.tokens.shape[1])[None, :] < stops[:, None]
        forwards, commons = _sorted(np.where(inside, strings.tokens, 0).astype(strings.tokens.dtype), stops)
    walk = Walk.through(forwards, stops[forwards], commons)
    after = np.append(walk.commons[1:], 0)
    joins = np.where(endings[forwards] >= 0, JOIN, 0.0) + VISIT
    last = np.empty(len(strings))
    last[forwards] = walk.stops - np.maximum(walk.commons, after) + joins
    return SharedRows(
        walk, endings[forwards], endings_walk, walk.stops - walk.commons + joins, last, fixed, float(lengths.sum())
    )


def _endings(backwards: Int64Array, depths: Int64Array, numbers: Int64Array, commons: Int64Array) -> tuple[Walk, float]:
    """The walk through the numbered endings, and the rows that it takes."""
    _, first = np.unique(numbers[numbers >= 0], return_index=True)
    places = np.flatnonzero(numbers >= 0)[first]
    shared = np.zeros(len(places), dtype=np.int64)
    if len(places) > 1:
        # The least that neighbours share between one place and the next.
        shared[1:] = np.minimum.reduceat(commons[: places[-1] + 1], places[:-1] + 1)
    walk = Walk.through(backwards[places], depths[places], shared)
    return walk, float((walk.stops - walk.commons).sum()) + JOIN * len(places)


def _sorted(tokens: npt.NDArray[np.unsignedinteger], lengths: Int64Array) -> tuple[Int64Array, Int64Array]:
    """The order of sorted rows, and how many symbols each of them shares with the one before it."""
    longest = max(1, int(lengths.max(initial=0)))
    used = np.ascontiguousarray(tokens[:, :longest])
    used = used if used.dtype.itemsize == 1 else used.astype(f">u{used.dtype.itemsize}")
    if used.shape[1] < longest:
        return np.arange(len(lengths)), np.zeros(len(lengths), dtype=np.int64)
    order = np.argsort(used.view(f"S{used.shape[1] * used.dtype.itemsize}").ravel(), kind="stable")
    rows = used[order]
    differs = rows[1:] != rows[:-1]
    first = np.where(differs.any(axis=1), differs.argmax(axis=1), longest)
    commons = np.zeros(len(lengths), dtype=np.int64)
    commons[1:] = np.minimum(first, np.minimum(lengths[order[1:]], lengths[order[:-1]]))
    return order.astype(np.int64), commons


def _mirrored(tokens: npt.NDArray[np.unsignedinteger], lengths: Int64Array) -> npt.NDArray[np.unsignedinteger]:
    """Strings from the last symbol to the first."""
    places = lengths[:, None] - 1 - np.arange(tokens.shape[1])
    return np.where(places >= 0, np.take_along_axis(tokens, np.maximum(places, 0), axis=1), 0).astype(tokens.dtype)


def _frequent(commons: Int64Array, frequency: int) -> Int64Array:
    """Length of the longest prefix of each sorted string that at least ``frequency`` of them begin with."""
    # The least shared by each run of `frequency` neighbours, then the most of all runs that hold a string.
    runs = _sliding(commons[1:], frequency - 1, np.minimum)
    edge = np.zeros(frequency - 1, dtype=np.int64)
    return _sliding(np.concatenate([edge, runs, edge]), frequency, np.maximum)


def _sliding(values: Int64Array, width: int, extreme: np.ufunc) -> Int64Array:
    """Extreme of each run of ``width`` neighbours, by doubling."""
    reached, found = 1, values
    while reached < width:
        step = min(reached, width - reached)
        found = extreme(found[: len(found) - step], found[step:])
        reached += step
    return found
