"""Covariances between encoded strings, for any gpytorch kernel.

Kernels of seqopt work on encoded strings directly; every other `gpytorch.kernels.Kernel` is evaluated on the rows of
numbers that models hold, in blocks of bounded size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeAlias, runtime_checkable

import gpytorch
import numpy as np
import numpy.typing as npt
import torch

from seqopt.encoding import Encoded
from seqopt.errors import InputError

FloatArray = npt.NDArray[np.floating]
"""Any real floating-point array."""

BLOCK_ELEMENTS = 1 << 24
"""Largest number of covariances (and of token entries) evaluated at once by a foreign kernel."""

STREAMED_BLOCK = 1 << 15
"""Strings on disk that are looked at at a time."""

PAIRS = 64
"""Pairs of strings are taken from square blocks of so many where a kernel knows no pairs."""


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
class PairedKernel(StringKernel, Protocol):
    """A kernel that evaluates pairs of encoded strings alone."""

    def paired(self, a: Any, b: Any, self_a: FloatArray | None = None) -> FloatArray:
        """k(a_i, b_i) for n pairs, ``... x n``."""
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
        # Protocols are slow to ask for: a search does so thousands of times.
        self._of_strings = isinstance(kernel, StringKernel)
        self._of_pairs = isinstance(kernel, PairedKernel)

    @property
    def kernels(self) -> list[gpytorch.kernels.Kernel]:
        """The kernel, as a list."""
        return [self.kernel]

    @property
    def draws(self) -> int:
        """How many kernels there are: one for each entry of its batch shape."""
        return int(self.kernel.batch_shape.numel())

    @property
    def costly(self) -> bool:
        """Whether covariances with a large pool are worth keeping on disk, and single precision will do for them."""
        return bool(getattr(self.kernel, "costly", False))

    def self_similarity(self, a: Encoded) -> FloatArray | None:
        """What `cross` takes as ``self_a``, or `None` where it is not needed."""
        if not (self._of_strings and self.kernel.normalize):
            return None
        if _streamed(a):
            parts = [self.kernel.self_similarity(a.take(rows)) for rows in _slices(len(a))]
            return np.concatenate(parts, axis=-1)
        return self.kernel.self_similarity(a)

    def variance(self, a: Encoded, self_a: FloatArray | None) -> FloatArray:
        """Prior variance of each string."""
        if self._of_strings:
            if _streamed(a):
                parts = [
                    self.kernel.variance(a.take(rows), None if self_a is None else self_a[..., rows])
                    for rows in _slices(len(a))
                ]
                return np.concatenate(parts, axis=-1).astype(np.float64)
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
        if self._of_strings:
            return self.kernel.cross(a, b, self_a, self_b, dtype)
        b = a if b is None else b
        columns = b.to_tensor(self.width)
        with torch.no_grad():
            blocks = [
                self.kernel(a.take(rows).to_tensor(self.width), columns).to_dense().numpy()
                for rows in self._blocks(len(a), len(b))
            ]
        return np.concatenate(blocks, axis=-2).astype(dtype)

    def paired(
        self, a: Encoded, b: Encoded, self_a: FloatArray | None = None, self_b: FloatArray | None = None
    ) -> FloatArray:
        """Covariances of n strings with the n at the same indices of another list, ... x n."""
        if self._of_pairs:
            return self.kernel.paired(a, b, self_a).astype(np.float64)
        if self._of_strings:
            # It has no more to offer than all pairs of a few strings.
            found = []
            for start in range(0, max(len(a), 1), PAIRS):
                part = np.arange(start, min(start + PAIRS, len(a)))
                own, other = (None if of is None else of[..., part] for of in (self_a, self_b))
                block = self.kernel.cross(a.take(part), b.take(part), own, other)
                found.append(block.diagonal(axis1=-2, axis2=-1))
            return np.concatenate(found, axis=-1)
        with torch.no_grad():
            blocks = [
                self.kernel(*(of.take(rows).to_tensor(self.width) for of in (a, b)), diag=True).numpy()
                for rows in self._blocks(len(a), 1)
            ]
        return np.concatenate(blocks, axis=-1).astype(np.float64)

    def _blocks(self, rows: int, columns: int) -> list[slice]:
        size = max(1, BLOCK_ELEMENTS // max(columns, self.width, 1))
        return [slice(start, start + size) for start in range(0, rows, size)] or [slice(0, 0)]


def _streamed(a: Encoded) -> bool:
    """Whether strings are on disk, and perhaps too many to be held at a time: `seqopt.encoding.features.StoredRows`."""
    return bool(getattr(a, "streamed", False)) and len(a) > STREAMED_BLOCK


def _slices(count: int) -> list[slice]:
    return [slice(start, min(start + STREAMED_BLOCK, count)) for start in range(0, count, STREAMED_BLOCK)]


class StackedEvaluator:
    """Evaluates several kernels, one for each of D draws, with the interface of a `KernelEvaluator` of batch shape D.

    Draws of equal parameters share an evaluation. What the kernels need of each string alone stands one below the
    other, ``r x n``, so that it can be indexed and joined like that of one kernel.

    Args:
        members: The kernels that differ; one of batch shape b stands for b of them.
        index: Which of them each draw has, D; kernels of a batch are counted one by one.

    Raises:
        InputError: If there is no member, or an index is out of range.

    Example:
        >>> from seqopt.encoding import Encoder
        >>> from seqopt.kernels import NgramKernel, SubsequenceKernel
        >>> members = [KernelEvaluator(kernel, 3) for kernel in (NgramKernel(), SubsequenceKernel())]
        >>> evaluator = StackedEvaluator(members, [0, 1, 0])
        >>> evaluator.cross(Encoder().encode(["AB", "BA"]), None).shape
        (3, 2, 2)
    """

    def __init__(self, members: Sequence[KernelEvaluator], index: Sequence[int]) -> None:
        count = sum(member.draws for member in members)
        if not members or not index or not all(0 <= place < count for place in index):
            raise InputError(f"draws have the kernels {list(index)}, but there are {count}")
        self.members = list(members)
        self.index = list(index)
        # How each member shapes what it says of single strings; known once it was asked.
        self._shapes: list[tuple[int, ...] | None] | None = None

    @property
    def kernels(self) -> list[gpytorch.kernels.Kernel]:
        """All kernels that differ."""
        return [member.kernel for member in self.members]

    @property
    def kernel(self) -> gpytorch.kernels.Kernel:
        """The first of the kernels."""
        return self.members[0].kernel

    @property
    def costly(self) -> bool:
        """Whether covariances with a large pool are worth keeping on disk: where those of one kernel are."""
        return any(member.costly for member in self.members)

    def self_similarity(self, a: Encoded) -> FloatArray | None:
        """What `cross` takes as ``self_a``, r x n, or `None` where no kernel needs it."""
        found = [member.self_similarity(a) for member in self.members]
        self._shapes = [None if own is None else own.shape[:-1] for own in found]
        rows = [own.reshape(math.prod(own.shape[:-1]), len(a)) for own in found if own is not None]
        return np.concatenate(rows) if rows else None

    def variance(self, a: Encoded, self_a: FloatArray | None) -> FloatArray:
        """Prior variance of each string, D x n."""
        parts = zip(self.members, self._split(self_a), strict=True)
        rows = [member.variance(a, own).reshape(member.draws, len(a)) for member, own in parts]
        return np.concatenate(rows)[self.index]

    def cross(
        self,
        a: Encoded,
        b: Encoded | None,
        self_a: FloatArray | None = None,
        self_b: FloatArray | None = None,
        dtype: npt.DTypeLike = np.float64,
    ) -> FloatArray:
        """Covariances D x len(a) x len(b), float64 or float32; `None` stands for ``a`` again."""
        shape = len(a), len(a if b is None else b)
        parts = zip(self.members, self._split(self_a), self._split(self_b), strict=True)
        found = [member.cross(a, b, own, other, dtype).reshape(member.draws, *shape) for member, own, other in parts]
        return np.concatenate(found)[self.index]

    def paired(
        self, a: Encoded, b: Encoded, self_a: FloatArray | None = None, self_b: FloatArray | None = None
    ) -> FloatArray:
        """Covariances of n strings with the n at the same indices of another list, D x n."""
        parts = zip(self.members, self._split(self_a), self._split(self_b), strict=True)
        rows = [member.paired(a, b, own, other).reshape(member.draws, len(a)) for member, own, other in parts]
        return np.concatenate(rows)[self.index]

    def _split(self, own: FloatArray | None) -> list[FloatArray | None]:
        """What `self_similarity` put together."""
        if own is None or self._shapes is None:
            return [None] * len(self.members)
        found: list[FloatArray | None] = []
        start = 0
        for shape in self._shapes:
            if shape is None:
                found.append(None)
                continue
            end = start + math.prod(shape)
            found.append(own[start:end].reshape(*shape, own.shape[-1]))
            start = end
        return found


Evaluator: TypeAlias = KernelEvaluator | StackedEvaluator
"""Evaluates a kernel, or one for each of D draws of its parameters, between encoded strings."""


class Correlations:
    """Prior correlations between N strings and others; what concerns the N alone is computed once.

    Args:
        evaluator: Of the kernel.
        strings: The N strings.
    """

    def __init__(self, evaluator: Evaluator, strings: Encoded) -> None:
        self._evaluator = evaluator
        self._strings = strings
        self._own = evaluator.self_similarity(strings)
        self._roots = np.sqrt(evaluator.variance(strings, self._own))

    def __len__(self) -> int:
        return len(self._strings)

    def columns(self, others: Encoded) -> FloatArray:
        """... x N x len(others); 0 where a string has no variance."""
        own = self._evaluator.self_similarity(others)
        scale = self._roots[..., :, None] * np.sqrt(self._evaluator.variance(others, own))[..., None, :]
        covariance = self._evaluator.cross(self._strings, others, self._own, own)
        return np.divide(covariance, scale, out=np.zeros_like(covariance), where=scale > 0)


def correlations(evaluator: Evaluator, a: Encoded, b: Encoded) -> FloatArray:
    """Prior correlations ... x len(a) x len(b); 0 where a string has no variance."""
    return Correlations(evaluator, a).columns(b)
