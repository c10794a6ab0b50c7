"""How similar two strings are, from 0 to 1, for limits that a user states: of molecules and of other strings."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from seqopt.encoding import FeatureRows, MorganFingerprint
from seqopt.kernels import MinMaxKernel
from seqopt.kernels.engines.edit_distance import edit_distances

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
    lengths = [np.fromiter(map(len, keys), dtype=np.int64, count=len(keys)) for keys in (a, b)]
    longest = np.maximum(lengths[0][:, None], lengths[1])
    # Two empty strings are the same.
    return 1.0 - edit_distances(a, b) / np.maximum(longest, 1)
