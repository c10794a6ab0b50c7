"""Covariances between encoded strings, for any gpytorch kernel.

Kernels of seqopt work on encoded strings directly; every other `gpytorch.kernels.Kernel` is evaluated on the rows of
numbers that models hold, in blocks of bounded size.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol, runtime_checkable

import gpytorch
import numpy as np
import numpy.typing as npt
import torch

from seqopt.encoding import Encoded

FloatArray = npt.NDArray[np.floating]
"""Any real floating-point array."""

BLOCK_ELEMENTS = 1 << 24
"""Largest number of covariances (and of token entries) evaluated at once by a foreign kernel."""


@runtime_checkable
class StringKernel(Protocol):
    """A kernel that evaluates encoded strings itself, at its current parameters and without a graph.

    Attributes:
        normalize: Whether `cross` and `variance` need what `self_similarity` returns, and compute it where it is not
            given to them.
    """

    normalize: bool

    def cross(
        self,
        a: Any,
        b: Any = None,
        self_a: FloatArray | None = None,
        self_b: FloatArray | None = None,
        dtype: npt.DTypeLike = np.float64,
    ) -> FloatArray:
        """Covariances len(a) x len(b)."""
        ...

    def self_similarity(self, a: Any) -> FloatArray:
        """What covariances with the n strings ``a`` need of each string alone, ``... x n``."""
        ...

    def variance(self, a: Any, self_a: FloatArray | None = None) -> FloatArray:
        """Prior variance of each string."""
        ...


@runtime_checkable
class FittedKernel(Protocol):
    """A kernel that prepares for the many evaluations of a fit.

    Attributes:
        threads: Threads it works in; `None` for as many as torch has.
    """

    threads: int | None

    def interpolating(self, x: torch.Tensor) -> AbstractContextManager[bool]:
        """Within this context, Gram matrices of ``x`` may come from interpolation."""
        ...

    def forget(self) -> None:
        """Free what was kept for further evaluations of the same strings."""
        ...


@runtime_checkable
class AdaptiveKernel(Protocol):
    """A kernel whose default priors depend on the strings that it is fitted to."""

    def adapt(self, x: torch.Tensor) -> None:
        """Take the scale of the rows ``x`` before parameters are learned from them."""
        ...


class KernelEvaluator:
    """Evaluates one kernel, at the parameters it has now, between encoded strings.

    Where the kernel has a batch shape, results have it in front (``...``).

    Args:
        kernel: A `StringKernel` or any `gpytorch.kernels.Kernel` on rows of numbers.
        width: Number of columns the kernel expects (ignored by string kernels).
    """

    def __init__(self, kernel: gpytorch.kernels.Kernel, width: int) -> None:
        self.kernel = kernel
        self.width = width

    @property
    def costly(self) -> bool:
        """Whether covariances with a large pool are worth keeping on disk, and single precision will do for them."""
        return bool(getattr(self.kernel, "costly", False))

    def self_similarity(self, a: Encoded) -> FloatArray | None:
        """What `cross` takes as ``self_a``, or `None` where it is not needed."""
        if isinstance(self.kernel, StringKernel) and self.kernel.normalize:
            return self.kernel.self_similarity(a)
        return None

    def variance(self, a: Encoded, self_a: FloatArray | None) -> FloatArray:
        """Prior variance of each string."""
        if isinstance(self.kernel, StringKernel):
            return self.kernel.variance(a, self_a).astype(np.float64)
        with torch.no_grad():
            blocks = [
                self.kernel(a.take(rows).to_tensor(self.width), diag=True).numpy() for rows in self._blocks(len(a), 1)
            ]
        return np.concatenate(blocks, axis=-1).astype(np.float64)

    def cross(
        self,
        a: Encoded,
        b: Encoded | None,
        self_a: FloatArray | None = None,
        self_b: FloatArray | None = None,
        dtype: npt.DTypeLike = np.float64,
    ) -> FloatArray:
        """Covariances ... x len(a) x len(b), float64 or float32; `None` stands for ``a`` again."""
        if isinstance(self.kernel, StringKernel):
            return self.kernel.cross(a, b, self_a, self_b, dtype)
        b = a if b is None else b
        columns = b.to_tensor(self.width)
        with torch.no_grad():
            blocks = [
                self.kernel(a.take(rows).to_tensor(self.width), columns).to_dense().numpy()
                for rows in self._blocks(len(a), len(b))
            ]
        return np.concatenate(blocks, axis=-2).astype(dtype)

    def _blocks(self, rows: int, columns: int) -> list[slice]:
        size = max(1, BLOCK_ELEMENTS // max(columns, self.width, 1))
        return [slice(start, start + size) for start in range(0, rows, size)] or [slice(0, 0)]


def correlations(evaluator: KernelEvaluator, a: Encoded, b: Encoded) -> FloatArray:
    """Prior correlations ... x len(a) x len(b); 0 where a string has no variance."""
    self_a, self_b = evaluator.self_similarity(a), evaluator.self_similarity(b)
    roots = [np.sqrt(evaluator.variance(rows, own)) for rows, own in ((a, self_a), (b, self_b))]
    scale = roots[0][..., :, None] * roots[1][..., None, :]
    covariance = evaluator.cross(a, b, self_a, self_b)
    return np.divide(covariance, scale, out=np.zeros_like(covariance), where=scale > 0)
