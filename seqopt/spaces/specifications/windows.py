"""What of genes has to be looked at after a move: the windows that a change touches.

A gene that begins as one permitted gene and ends as another (as itself with a codon changed; as two parents of a cross
do) differs from the first at a first base a and from the second at a last base b. A stretch of w bases that begins at s
is new only if it reaches a and begins by b,

    a - w < s <= b,

and every other one stands in a permitted gene as it is. So a breach that lies within w bases is looked for in the bases
from a - w + 1 to b + w - 1, few of thousands after most moves, and nowhere if there is no such s.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from seqopt.spaces.motifs import BoolArray, IntArray


@dataclass(frozen=True)
class Changes:
    """Where genes differ from permitted ones, in bases with what stands before and behind the genes.

    Attributes:
        begin: Of each gene the first base that is not as in the permitted gene that it begins as.
        end: The last base that is not as in the one that it ends as.
    """

    begin: IntArray
    end: IntArray

    def __getitem__(self, rows: IntArray) -> Changes:
        return Changes(self.begin[rows], self.end[rows])

    def windows(self, reach: int, low: int, high: int) -> Iterator[tuple[IntArray, IntArray, int]]:
        """Where stretches of ``reach`` bases are new: genes, the first base to look at in each, and how many.

        Genes with windows of like widths come together; those without new stretches do not come.

        Args:
            reach: Bases of a stretch.
            low: Nothing before this base counts,
            high: nor from this one on.
        """
        first = np.maximum(self.begin - reach + 1, low)
        last = np.minimum(self.end + reach, high)
        widths = last - first
        some = np.flatnonzero((self.begin - reach < self.end) & (widths >= 1))
        # Windows of a group are as wide as its widest: less than twice as wide as any needs to be.
        sizes = np.frexp(widths[some])[1]
        for size in np.unique(sizes):
            rows = some[sizes == size]
            width = int(widths[rows].max())
            yield rows, np.minimum(first[rows], high - width), width


def cut_out(bases: IntArray, rows: IntArray, first: IntArray, width: int) -> IntArray:
    """Of some genes a window each.

    Example:
        >>> cut_out(np.arange(12).reshape(2, 6), np.array([1, 0]), np.array([0, 3]), 2).tolist()
        [[6, 7], [3, 4]]
    """
    return np.asarray(bases[rows[:, None], first[:, None] + np.arange(width)])


def within(first: IntArray, width: int, low: int, high: int) -> BoolArray:
    """Which bases of windows lie from ``low`` on and before ``high``."""
    places = first[:, None] + np.arange(width)
    return np.asarray((places >= low) & (places < high))
