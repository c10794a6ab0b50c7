"""Encoded strings rearranged for engines that treat `GROUP` strings side by side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seqopt.encoding import EncodedStrings
from seqopt.encoding.derived import once_per_strings
from seqopt.errors import InputError

GROUP = 16
"""Strings per group: as many float32 numbers as the widest vector registers hold."""

PADDING = 65_535
"""What follows the last symbol of a packed string. It equals no symbol of any string."""


STEP = 2
"""Positions that the dynamic program treats at once."""


@dataclass(frozen=True)
class PackedStrings:
    """Strings sorted by length, in groups of `GROUP` stored position by position.

    Attributes:
        tokens: Flat uint16. Position k of lane l of group q is at ``starts[q] + k * GROUP + l``; `PADDING`
            after the end of a string and in the lanes that the last group leaves empty.
        starts: Where each group begins in ``tokens``.
        widths: Positions of each group: the length of its longest string, rounded up to a multiple of `STEP`.
        lengths: Length of each string in sorted order.
        order: Number, in the original order, of each string in sorted order.
    """

    tokens: npt.NDArray[np.uint16]
    starts: npt.NDArray[np.int64]
    widths: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]
    order: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.order)


@once_per_strings
def pack(strings: EncodedStrings) -> PackedStrings:
    """The packed form of ``strings``.

    Raises:
        InputError: If a symbol has the number 65,535, which marks padding here.
    """
    return pack_in(strings, np.argsort(strings.lengths, kind="stable").astype(np.int64))


def pack_in(strings: EncodedStrings, order: npt.NDArray[np.int64]) -> PackedStrings:
    """The packed form of ``strings`` in an order of rising lengths."""
    count = len(strings)
    if strings.tokens.dtype.itemsize > 1 and int(strings.tokens.max(initial=0)) == PADDING:
        raise InputError(
            f"symbol number {PADDING} is reserved here: use an alphabet of at most {PADDING - 1:,} symbols"
        )
    order = order.astype(np.int64)
    lengths = strings.lengths[order].astype(np.int64)
    groups = -(-count // GROUP)
    widths = lengths[np.minimum(np.arange(1, groups + 1) * GROUP, count) - 1]
    widths += -widths % STEP
    starts = np.concatenate([[0], np.cumsum(widths * GROUP)[:-1]]).astype(np.int64)
    tokens = np.empty(int((widths * GROUP).sum()), dtype=np.uint16)
    # Groups of one width are transposed together: there are at most as many widths as positions.
    for width in np.unique(widths):
        first, last = np.searchsorted(widths, [width, width + 1])
        rows = order[first * GROUP : min(last * GROUP, count)]
        block = np.zeros(((last - first) * GROUP, width), dtype=np.uint16)
        given = strings.tokens[rows, :width]
        block[: len(rows), : given.shape[1]] = given
        block[block == 0] = PADDING
        into = tokens[starts[first] : starts[first] + block.size]
        into.reshape(last - first, width, GROUP)[:] = block.reshape(last - first, GROUP, width).transpose(0, 2, 1)
    return PackedStrings(tokens, starts, widths, lengths, order)
