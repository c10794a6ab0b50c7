"""Constraints on what stands twice in a gene: k-mers, repeats and hairpins."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from seqopt.errors import InputError
from seqopt.spaces.motifs import BoolArray, IntArray
from seqopt.spaces.specifications.base import Cut, Frame, Specification, all_but
from seqopt.strings.genetic_codes import BASES
from seqopt.utils.arguments import checked_integer

LONGEST_WORD = 31
"""Bases whose number fits into 64 bits."""

SHORTEST_LOOP = 3

_COMPLEMENTS = np.array([BASES.index(base.translate(str.maketrans("ACGT", "TGCA"))) for base in BASES])


class UniqueKmers(Specification):
    """No stretch of so many bases twice, what stands before and behind the gene included.

    A repeat of k bases or more is there if and only if some k bases are there twice, so this forbids repeats of that
    length, overlapping ones too.

    Args:
        k: Bases, 4 to 31.
        both_strands: Nor as its reverse complement elsewhere (an inverted repeat).

    Example:
        >>> UniqueKmers(12).text
        'no 12 bases twice, on either strand'
    """

    checked = True

    def __init__(self, k: int, both_strands: bool = True) -> None:
        self.k = checked_integer("the length of repeats", k, 4, f"expected an integer from 4 to {LONGEST_WORD}")
        if self.k > LONGEST_WORD:
            raise InputError(f"the length of repeats is {k}; expected an integer from 4 to {LONGEST_WORD}")
        self.both_strands = both_strands

    @property
    def text(self) -> str:
        """See `Specification`."""
        return f"no {self.k} bases twice{', on either strand' if self.both_strands else ''}"

    def check(self, frame: Frame) -> None:
        """See `Specification`."""
        if self.k > frame.bases:
            raise InputError(f"a repeat of {self.k} bases is longer than the gene, which has {frame.bases}")

    def _words(self, bases: IntArray) -> IntArray:
        forward = words(bases, self.k)
        return np.minimum(forward, complements(bases, self.k)) if self.both_strands else forward

    def marked(self, bases: IntArray, first: int, stop: int) -> BoolArray:
        """See `Specification`."""
        own = self._words(bases)
        order = own.argsort(axis=1, kind="stable")
        ordered = np.take_along_axis(own, order, axis=1)
        same = ordered[:, 1:] == ordered[:, :-1]
        twice = np.zeros(own.shape, dtype=np.bool_)
        twice[:, 1:] |= same
        twice[:, :-1] |= same
        begins = np.zeros(own.shape, dtype=np.bool_)
        np.put_along_axis(begins, order, twice, axis=1)
        return _stretched(begins, self.k, bases.shape[1])

    def breaks(self, bases: IntArray, first: int, stop: int) -> BoolArray:
        """See `Specification`: sorted words show what is there twice; where it is, is looked at in those genes only."""
        own = np.sort(self._words(bases), axis=1)
        broken = (own[:, 1:] == own[:, :-1]).any(axis=1)
        if max(first, bases.shape[1] - stop) >= self.k and (twice := np.flatnonzero(broken)).size:
            # What stands twice may stand beside the gene both times.
            broken[twice] = super().breaks(bases[twice], first, stop)
        return np.asarray(broken)

    def cuts(self, gene: Sequence[str], bases: IntArray, first: int, stop: int) -> list[Cut]:
        """See `Specification`: one for each pair of places next to each other in their order."""
        own = self._words(bases)[0]
        places: dict[int, list[int]] = {}
        for place, word in enumerate(own.tolist()):
            places.setdefault(word, []).append(place)
        pairs = [pair for found in places.values() for pair in itertools.pairwise(found)]
        return _pair_cuts(gene, pairs, self.k, first, stop)


class Hairpins(Specification):
    """No stem of so many bases whose other half, the reverse complement, follows within a window.

    Between the halves is a loop of at least three bases: RNA and DNA do not bend more sharply.

    Args:
        stem: Bases of the stem, 4 to 31.
        window: From the beginning of one half to the end of the other, both included.

    Example:
        >>> Hairpins(12, 60).text
        'no hairpin with a stem of 12 bases within 60'
    """

    checked = True

    def __init__(self, stem: int, window: int) -> None:
        self.stem = checked_integer("the stem of hairpins", stem, 4, f"expected an integer from 4 to {LONGEST_WORD}")
        if self.stem > LONGEST_WORD:
            raise InputError(f"the stem of hairpins is {stem}; expected an integer from 4 to {LONGEST_WORD}")
        least = 2 * self.stem + SHORTEST_LOOP
        self.window = checked_integer(
            "the window of hairpins", window, least, f"expected at least {least}: two halves and a loop of three bases"
        )

    @property
    def reach(self) -> int:
        """See `Specification`."""
        return self.window

    @property
    def text(self) -> str:
        """See `Specification`."""
        return f"no hairpin with a stem of {self.stem} bases within {self.window}"

    def check(self, frame: Frame) -> None:
        """See `Specification`."""
        if 2 * self.stem + SHORTEST_LOOP > frame.bases:
            raise InputError(
                f"a hairpin with a stem of {self.stem} bases is longer than the gene, which has {frame.bases}"
            )

    def _pairs(self, bases: IntArray) -> list[tuple[int, BoolArray]]:
        """Of each distance of the two halves where one begins."""
        if bases.shape[1] < 2 * self.stem + SHORTEST_LOOP:
            return []
        forward, reverse = words(bases, self.stem), complements(bases, self.stem)
        furthest = min(self.window - self.stem, forward.shape[1] - 1)
        return [
            (distance, forward[:, :-distance] == reverse[:, distance:])
            for distance in range(self.stem + SHORTEST_LOOP, furthest + 1)
        ]

    def marked(self, bases: IntArray, first: int, stop: int) -> BoolArray:
        """See `Specification`."""
        begins = np.zeros((len(bases), max(bases.shape[1] - self.stem + 1, 0)), dtype=np.bool_)
        for distance, here in self._pairs(bases):
            begins[:, : here.shape[1]] |= here
            begins[:, distance:] |= here
        return _stretched(begins, self.stem, bases.shape[1])

    def cuts(self, gene: Sequence[str], bases: IntArray, first: int, stop: int) -> list[Cut]:
        """See `Specification`: one for each hairpin."""
        pairs = [
            (int(place), int(place) + distance)
            for distance, here in self._pairs(bases)
            for place in np.flatnonzero(here[0])
        ]
        return _pair_cuts(gene, pairs, self.stem, first, stop)


def words(bases: IntArray, k: int) -> IntArray:
    """Each k bases as one number, ``n x (L - k + 1)``.

    Example:
        >>> words(np.array([[0, 1, 2]]), 2).tolist()
        [[1, 6]]
    """
    if bases.shape[1] < k:
        return np.zeros((len(bases), 0), dtype=np.int64)
    found, length = bases, 1
    # By the digits of k in the binary system: words twice as long, and one base more where there is a 1.
    for digit in bin(k)[3:]:
        found = (found[:, :-length] << 2 * length) + found[:, length:]
        length *= 2
        if digit == "1":
            found = (found[:, :-1] << 2) + bases[:, length:]
            length += 1
    return found


def complements(bases: IntArray, k: int) -> IntArray:
    """`words` of the other strand, each where its reverse complement begins."""
    return np.ascontiguousarray(words(_COMPLEMENTS[bases][:, ::-1], k)[:, ::-1])


def _stretched(begins: BoolArray, width: int, length: int) -> BoolArray:
    """What stretches of a width cover, from where they begin."""
    edges = np.zeros((len(begins), length + 1), dtype=np.int64)
    edges[:, : begins.shape[1]] += begins
    edges[:, width : width + begins.shape[1]] -= begins
    return np.asarray(edges.cumsum(axis=1)[:, :length] > 0)


def _pair_cuts(gene: Sequence[str], pairs: Sequence[tuple[int, int]], width: int, first: int, stop: int) -> list[Cut]:
    """One cut for each pair of stretches of which something lies in the gene."""
    found: dict[tuple[int, ...], Cut] = {}
    for pair in pairs:
        inside = {
            (place - first) // 3 for begin in pair for place in range(begin, begin + width) if first <= place < stop
        }
        positions = tuple(sorted(inside))
        if positions and positions not in found:
            found[positions] = all_but(gene, positions)
    return list(found.values())
