"""Distances between strings by the kernel of a surrogate, before there is anything to fit it to."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import gpytorch
import numpy as np
import numpy.typing as npt

from seqopt.encoding import Encoded
from seqopt.models.covariance import AdaptiveKernel, KernelEvaluator
from seqopt.spaces import PoolSpace

ADAPTED_TO = 1_000
"""Strings whose scale a kernel takes that adapts to strings."""


class KernelDistances:
    """Squared kernel distances d(a, b)^2 = k(a, a) + k(b, b) - 2 k(a, b) between n strings, a few columns at a time.

    They are the squared distances of the strings' images in the feature space of the kernel, at the parameters that it
    has before a fit. Memory is that of the encoded strings and of the columns asked for.

    Args:
        kernel: A kernel without batch shape, on what ``encoded`` holds. It is copied, and left as it is.
        encoded: The n strings.

    Example:
        >>> from seqopt.encoding import Encoder
        >>> from seqopt.kernels import SubsequenceKernel
        >>> distances = KernelDistances(SubsequenceKernel(), Encoder().encode(["AAB", "AAB", "BBB"]))
        >>> distances.columns([0]).round(3)[:, 0].tolist()[:2], len(distances)
        ([0.0, 0.0], 3)
    """

    def __init__(self, kernel: gpytorch.kernels.Kernel, encoded: Encoded) -> None:
        kernel = copy.deepcopy(kernel)
        if isinstance(kernel, AdaptiveKernel) and len(encoded):
            # Evenly spread, so that what comes out does not depend on random numbers.
            chosen = np.unique(np.linspace(0, len(encoded) - 1, min(len(encoded), ADAPTED_TO)).astype(np.int64))
            kernel.adapt(encoded.take(chosen).to_tensor(encoded.width))
        self._evaluator = KernelEvaluator(kernel, encoded.width)
        self._encoded = encoded
        self._own = self._evaluator.self_similarity(encoded)
        self._variance = self._evaluator.variance(encoded, self._own)

    def __len__(self) -> int:
        return len(self._encoded)

    def columns(self, indices: Sequence[int] | npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Squared distances, n x len(indices), of all strings from those at ``indices``."""
        chosen = np.asarray(indices, dtype=np.int64)
        own = None if self._own is None else self._own[..., chosen]
        covariance = self._evaluator.cross(self._encoded, self._encoded.take(chosen), self._own, own)
        squared = self._variance[:, None] + self._variance[None, chosen] - 2 * covariance
        found: npt.NDArray[np.float64] = np.maximum(squared, 0.0)  # rounding
        return found


@runtime_checkable
class DistanceSurrogate(Protocol):
    """A surrogate that can say how far apart strings are before it has been fitted."""

    def prior_distances(self, candidates: PoolSpace | Sequence[str], others: Sequence[str] = ()) -> KernelDistances:
        """Distances between the n candidates and, after them, the m others.

        Args:
            candidates: A pool, or keys.
            others: Further keys.
        """
        ...
