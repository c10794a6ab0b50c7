"""Where the motifs of one shape occur.

Everything compiled is in this one file, because Numba's cache on disk notices changes of this file only.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from seqopt.utils.compiling import compiled

Integers = npt.NDArray[np.int64]

BITS = 11
"""Bits of the numbers of motifs by which they are sorted at a time."""


class Entries(NamedTuple):
    """What occurs: entries of a sparse matrix of motifs x strings, row by row.

    Attributes:
        codes: Numbers of the motifs, ascending.
        heads: Where the entries of each motif begin, and where the last ones end.
        strings: Of each entry the string; they ascend within a motif.
        overlapping: How often the string has the motif.
        apart: How many of these are left where one that begins within another is not counted, from the left.
    """

    codes: Integers
    heads: npt.NDArray[np.int32]
    strings: npt.NDArray[np.int32]
    overlapping: npt.NDArray[np.float32]
    apart: npt.NDArray[np.float32]


def entries(digits: Integers, lengths: Integers, places: Integers, base: int) -> Entries:
    """Occurrences of all motifs of a shape.

    Args:
        digits: Symbols of n strings, n x width; below ``base``.
        lengths: Of the strings.
        places: Distances of a motif's symbols from its first, ascending from 0.
        base: The number of a motif has its symbols as digits to this base, the first one being the highest.
    """
    span = int(places[-1]) + 1
    starts = np.maximum(lengths - (span - 1), 0)
    total = int(starts.sum())
    codes, where, more, elsewhere = np.empty((4, total), dtype=np.int64)
    _numbered(digits, starts, places, base, codes, where)
    for shift in range(0, (base ** len(places) - 1).bit_length(), BITS):
        _sorted(codes, where, shift, more, elsewhere)
        codes, where, more, elsewhere = more, elsewhere, codes, where
    found = Entries(
        np.empty(total, dtype=np.int64),
        np.zeros(total + 1, dtype=np.int32),
        np.empty(total, dtype=np.int32),
        *np.empty((2, total), dtype=np.float32),
    )
    motifs, size = _grouped(codes, where, digits.shape[1], span, found)
    # Copies: the rest of the arrays is let go.
    return Entries(
        found.codes[:motifs].copy(),
        found.heads[: motifs + 1].copy(),
        found.strings[:size].copy(),
        found.overlapping[:size].copy(),
        found.apart[:size].copy(),
    )


@compiled
def _numbered(digits: Any, starts: Any, places: Any, base: Any, codes: Any, where: Any) -> None:
    """Fill in the number of the motif at each start, and where that is in ``digits``."""
    entry = 0
    width = digits.shape[1]
    for string in range(len(digits)):
        for start in range(starts[string]):
            code = np.int64(0)
            for place in places:
                code = code * base + digits[string, start + place]
            codes[entry] = code
            where[entry] = string * width + start
            entry += 1


@compiled
def _sorted(codes: Any, where: Any, shift: Any, sorted_codes: Any, sorted_where: Any) -> None:
    """Fill in codes and places in the order of `BITS` bits of the codes; those of equal bits stay in their order."""
    mask = (1 << BITS) - 1
    begins = np.zeros((1 << BITS) + 1, dtype=np.int64)
    for code in codes:
        begins[((code >> shift) & mask) + 1] += 1
    begins = begins.cumsum()
    for entry in range(len(codes)):
        digit = (codes[entry] >> shift) & mask
        sorted_codes[begins[digit]] = codes[entry]
        sorted_where[begins[digit]] = where[entry]
        begins[digit] += 1


@compiled
def _grouped(codes: Any, where: Any, width: Any, span: Any, found: Entries) -> Any:
    """Fill in the entries, from occurrences in order; returns how many motifs and entries there are."""
    motifs, size, last, free = 0, 0, -1, 0
    for place in range(len(codes)):
        string = where[place] // width
        start = where[place] - string * width
        new = place == 0 or codes[place] != codes[place - 1]
        if new:
            found.codes[motifs] = codes[place]
            found.heads[motifs] = size
            motifs += 1
        if new or string != last:
            found.strings[size] = string
            found.overlapping[size] = 1.0
            found.apart[size] = 1.0
            size += 1
            last, free = string, start + span
            continue
        found.overlapping[size - 1] += 1.0
        if start >= free:
            found.apart[size - 1] += 1.0
            free = start + span
    found.heads[motifs] = size
    return motifs, size
