"""Edit distances between many strings at once.

References:
    Levenshtein, V. I. (1966). Binary codes capable of correcting deletions, insertions, and reversals. Soviet Physics
        Doklady 10, 707-710.
    Wagner, R. A., Fischer, M. J. (1974). The string-to-string correction problem. Journal of the ACM 21, 168-173.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]


def edit_distances(a: Sequence[str], b: Sequence[str]) -> IntArray:
    """Fewest insertions, deletions and substitutions of one character that turn each string into another, n x m.

    Args:
        a: n strings.
        b: m strings.

    Example:
        >>> edit_distances(["MKLV", ""], ["MKLV", "MKV", "AAAA"]).tolist()
        [[0, 1, 4], [4, 3, 4]]
    """
    found = np.empty((len(a), len(b)), dtype=np.int64)
    _compiled_fill()(*_codes(a), *_codes(b), found)
    return found


@cache
def _compiled_fill() -> Any:
    # Loading Numba takes half a second, which most uses of the modules that import this one can do without.
    from seqopt.utils.compiling import compiled

    return compiled(_fill)


def _fill(
    first: npt.NDArray[np.int32],
    first_ends: IntArray,
    second: npt.NDArray[np.int32],
    second_ends: IntArray,
    result: IntArray,
) -> None:
    """The dynamic program of Wagner and Fischer for every pair, one row of its table at a time."""
    for i in range(result.shape[0]):
        a = first[first_ends[i] : first_ends[i + 1]]
        for j in range(result.shape[1]):
            b = second[second_ends[j] : second_ends[j + 1]]
            row = np.arange(len(b) + 1)
            for k in range(len(a)):
                diagonal, row[0] = row[0], k + 1
                for m in range(len(b)):
                    changed = diagonal + (1 if a[k] != b[m] else 0)
                    diagonal = row[m + 1]
                    row[m + 1] = min(changed, row[m + 1] + 1, row[m] + 1)
            result[i, j] = row[len(b)]


def _codes(strings: Sequence[str]) -> tuple[npt.NDArray[np.int32], IntArray]:
    """Code points of strings, one after the other, and where each begins and the last ends."""
    text = "".join(strings)
    ends = np.cumsum([0, *map(len, strings)]).astype(np.int64)
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.int32), ends
