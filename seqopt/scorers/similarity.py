"""How similar two strings are, from 0 to 1, for limits that a user states: of molecules and of other strings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from seqopt.encoding import FeatureRows, MorganFingerprint
from seqopt.kernels import MinMaxKernel

FloatArray = npt.NDArray[np.float64]

Similarity = Callable[[Sequence[str], Sequence[str]], FloatArray]
"""From n and m keys to their similarities, n x m, within [0, 1]."""


def similarity_of(kind: str) -> Similarity:
    """The similarity of strings of a kind: `molecular_similarity` or `sequence_identity`."""
    return molecular_similarity if kind == "molecule" else sequence_identity


def molecular_similarity(a: Sequence[str], b: Sequence[str]) -> FloatArray:
    """MinMax similarity of counts of Morgan environments of radius 2, n x m: the Tanimoto similarity of counts.

    Example:
        >>> molecular_similarity(["CCO"], ["CCO", "c1ccccc1"]).round(2).tolist()
        [[1.0, 0.0]]
    """
    featurizer = MorganFingerprint(counts=True)
    kernel = MinMaxKernel(threads=1)
    rows, columns = (FeatureRows(featurizer(list(keys))) for keys in (a, b))
    found: FloatArray = kernel.cross(rows, columns).astype(np.float64)
    return found


def sequence_identity(a: Sequence[str], b: Sequence[str]) -> FloatArray:
    """1 - d / l for all pairs, n x m: d is the edit distance of Levenshtein, l the length of the longer string.

    Example:
        >>> sequence_identity(["MKLV"], ["MKLV", "MKV", "AAAA"]).tolist()
        [[1.0, 0.75, 0.0]]
    """
    found = np.empty((len(a), len(b)))
    _compiled_identities()(*_codes(a), *_codes(b), found)
    return found


@cache
def _compiled_identities() -> Any:
    # Loading Numba takes half a second, which most uses of this module can do without.
    from seqopt.kernels.engines.compiled import compiled

    return compiled(_fill_identities)


def _fill_identities(
    first: npt.NDArray[np.int32],
    first_ends: npt.NDArray[np.int64],
    second: npt.NDArray[np.int32],
    second_ends: npt.NDArray[np.int64],
    result: FloatArray,
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
            longest = max(len(a), len(b))
            result[i, j] = 1.0 - row[len(b)] / longest if longest > 0 else 1.0


def _codes(keys: Sequence[str]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Code points of strings, one after the other, and where each begins and the last ends."""
    text = "".join(keys)
    ends = np.cumsum([0, *map(len, keys)]).astype(np.int64)
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.int32), ends
