r"""Kernels made of kernels, on rows of fields, without losing the fast path of their parts.

`OnField` lets a kernel read one field of `seqopt.encoding.fields.Fields`; `Sum` and `Product` combine kernels, also by
``+`` and ``*``. Each is a `gpytorch.kernels.Kernel` on the columns of rows, for fits, and evaluates encoded items
without a graph as its parts do (``cross``, ``self_similarity``, ``variance``, ``paired``), for pools. A part may be a
kernel of seqopt, one of these, a `gpytorch.kernels.ScaleKernel` of one, or any kernel of gpytorch, which is evaluated
on rows of numbers.

References:
    Rasmussen, C. E., Williams, C. K. I. (2006). Gaussian processes for machine learning. MIT Press, section 4.2.4
        (sums and products of covariance functions).
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Self

import gpytorch
import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from seqopt.encoding.features import Encoded
from seqopt.encoding.fields import Fields
from seqopt.errors import InputError
from seqopt.kernels.base import DescribedKernel
from seqopt.utils.config import from_config

FloatArray = npt.NDArray[np.floating]

BLOCK_ELEMENTS = 1 << 24
"""Largest number of covariances (and of entries of rows) that a kernel of gpytorch computes at once."""


class FieldKernel(DescribedKernel):
    """What kernels on rows of fields share: ``a + b`` is a `Sum`, ``a * b`` a `Product`."""

    normalize = True
    """`cross`, `variance` take what `self_similarity` returns."""

    def __add__(self, other: gpytorch.kernels.Kernel) -> Sum:
        return Sum(self, other)

    def __mul__(self, other: gpytorch.kernels.Kernel) -> Product:
        return Product(self, other)


class _Composed(FieldKernel):
    """A kernel made of others."""

    def _parts(self) -> list[gpytorch.kernels.Kernel]:
        raise NotImplementedError

    @property
    def batch_shape(self) -> torch.Size:
        """That of all parts, broadcast. (GPyTorch asks every kernel below for those below it, at each evaluation.)"""
        shapes = [self._batch_shape, *(part.batch_shape for part in self._parts())]
        return torch.Size(np.broadcast_shapes(*shapes)) if any(shapes) else torch.Size()

    @batch_shape.setter
    def batch_shape(self, shape: torch.Size) -> None:
        self._batch_shape = shape

    @property
    def costly(self) -> bool:
        """Whether covariances with a large pool are worth keeping on disk: where one part's are."""
        return any(getattr(_unscaled(part), "costly", False) for part in self._parts())

    @property
    def threads(self) -> int | None:
        """Threads of the first part that has a say in it; assigning sets those of all."""
        for part in self._parts():
            if hasattr(_unscaled(part), "threads"):
                found: int | None = _unscaled(part).threads
                return found
        return None

    @threads.setter
    def threads(self, number: int | None) -> None:
        for part in self._parts():
            if hasattr(_unscaled(part), "threads"):
                _unscaled(part).threads = number

    @contextmanager
    def interpolating(self, x: Tensor) -> Iterator[bool]:
        """Within this context, parts that can interpolate Gram matrices of ``x`` do; yields whether one does."""
        with ExitStack() as stack:
            found = [
                stack.enter_context(_unscaled(part).interpolating(self._seen(x)))
                for part in self._parts()
                if hasattr(_unscaled(part), "interpolating")
            ]
            yield any(found)

    def forget(self) -> None:
        """Free what parts keep for further evaluations of the same strings, as after a fit."""
        for part in self._parts():
            if hasattr(_unscaled(part), "forget"):
                _unscaled(part).forget()

    def adapt(self, x: Tensor) -> None:
        """Let parts take the scale of the rows ``x`` before parameters are learned from them."""
        for part in self._parts():
            if hasattr(_unscaled(part), "adapt"):
                _unscaled(part).adapt(self._seen(x))

    def _seen(self, x: Tensor) -> Tensor:
        """The columns of rows that the parts see."""
        return x


class OnField(_Composed):
    """A kernel on one field of each row.

    Rows as tensors do not say where their fields are: their columns are given here, or by `bind_fields` to all parts
    of a kernel at once. Encoded items (`Fields`) need none.

    The latest Gram matrix of a kernel without parameters is kept, so that a step of a fit costs no new one.

    Args:
        kernel: Any kernel; without ``active_dims``.
        field: The name of the field.
        columns: Its columns in rows of numbers.

    Raises:
        InputError: If ``kernel`` is not a kernel. When evaluated: for rows of numbers without known columns, encoded
            items that are not `Fields` or lack the field, or ``last_dim_is_batch``.

    Example:
        >>> from seqopt.encoding import Encoder
        >>> from seqopt.encoding.fields import ContextEncoder, FieldEncoder
        >>> from seqopt.kernels import SubsequenceKernel
        >>> encoder = FieldEncoder({"dose": ContextEncoder("dose", default=1.0), "tokens": Encoder()})
        >>> kernel = OnField(SubsequenceKernel(), "tokens") * OnField(gpytorch.kernels.RBFKernel(), "dose")
        >>> bind_fields(kernel, encoder.columns)
        >>> items = encoder.encode(["ACGT", "AGT"])
        >>> bool(np.allclose(kernel.cross(items), kernel(items.to_tensor()).to_dense().detach()))
        True
    """

    def __init__(self, kernel: gpytorch.kernels.Kernel, field: str, columns: slice | None = None) -> None:
        super().__init__()
        (self.kernel,) = _checked([kernel], "OnField")
        self.field = field
        self.columns = columns
        self._kept: tuple[weakref.ref[Tensor], int, Tensor] | None = None
        self._shared: dict[str, tuple[tuple[Any, ...], FloatArray]] | None = None

    def _parts(self) -> list[gpytorch.kernels.Kernel]:
        return [self.kernel]

    def config_arguments(self) -> Mapping[str, Any]:
        """See `Configurable`; columns are found again when the kernel is bound to an encoder."""
        return {"kernel": self.kernel, "field": self.field}

    def _described(self) -> Mapping[str, object]:
        return {"*kernel": self.kernel, "*field": repr(self.field)}

    def _seen(self, x: Tensor) -> Tensor:
        if self.columns is None:
            raise InputError(
                f"the kernel on the field {self.field!r} does not know its columns: call bind_fields(kernel, "
                "encoder.columns) first"
            )
        return x[..., self.columns]

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        """Covariances of rows by the field's columns, see `gpytorch.kernels.Kernel.forward`."""
        _refuse_single_columns(self, params)
        kept = self._kept
        changeable = next(self.kernel.parameters(), None) is not None
        # What carries a graph cannot be kept: it can be walked backwards once.
        same = x1 is x2 and not (diag or changeable or x1.requires_grad or x1.is_inference())
        if same and kept is not None and kept[0]() is x1 and kept[1] == x1._version:
            return kept[2]
        first = self._seen(x1)
        values = _forward(self.kernel, first, first if x1 is x2 else self._seen(x2), diag)
        if same:
            self._kept = weakref.ref(x1), x1._version, values
        return values

    def _of(self, items: Encoded) -> Any:
        if not isinstance(items, Fields):
            raise InputError(
                f"the kernel on the field {self.field!r} compares Fields; got {type(items).__name__}: encode with a "
                "FieldEncoder"
            )
        return items[self.field]

    def self_similarity(self, a: Fields) -> FloatArray:
        """What `cross` needs of each item alone, ``... x n``, as the kernel has it."""
        part = self._of(a)

        def compute() -> FloatArray:
            own = _own(self.kernel, part)
            return np.zeros((0, len(a))) if own is None else own

        return self._once("own", (part,), compute)

    def variance(self, a: Fields, self_a: FloatArray | None = None) -> FloatArray:
        """k(s, s) of each item, float64."""
        part = self._of(a)
        return self._once("variance", (part,), lambda: _variance(self.kernel, part, _some(self_a)))

    def _once(self, what: str, parts: tuple[Any, ...], compute: Callable[[], FloatArray], *more: Any) -> FloatArray:
        """What was computed last of the same parts while columns are shared; a copy, which its user may change."""
        if self._shared is None or parts[-1].width == 1:
            return compute()
        kept = self._shared.get(what)
        # The parts are held, so that no other can be at their place in memory.
        if kept is None or len(kept[0]) != len(parts) + len(more) or not all(map(_is, kept[0], (*parts, *more))):
            kept = ((*parts, *more), compute())
            self._shared[what] = kept
        return kept[1].copy()

    def cross(
        self,
        a: Fields,
        b: Fields | None = None,
        self_a: FloatArray | None = None,
        self_b: FloatArray | None = None,
        dtype: npt.DTypeLike = np.float64,
    ) -> FloatArray:
        """Covariances between encoded items, without a graph: see `SubsequenceKernel.cross`."""
        rows, columns = self._of(a), None if b is None else self._of(b)
        if columns is None:
            return _cross(self.kernel, rows, None, _some(self_a), _some(self_b), dtype)

        if self._shared is not None and _is_constant(columns):
            # One value for all strings, by which the others are multiplied.
            found = _cross(self.kernel, rows, columns.take(slice(0, 1)), _some(self_a), _first(self_b), dtype)
            return np.broadcast_to(found, (*found.shape[:-1], len(columns)))

        def compute() -> FloatArray:
            return _cross(self.kernel, rows, columns, _some(self_a), _some(self_b), dtype)

        return self._once("cross", (rows, columns), compute, np.dtype(dtype))

    def lend(self, a: Fields, b: Fields, values: FloatArray) -> None:
        """While columns are shared: what `cross` would compute, float64, so that it is not computed again."""
        if self._shared is not None:
            self._shared["cross"] = ((self._of(a), self._of(b), np.dtype(np.float64)), values)

    def paired(self, a: Fields, b: Fields, self_a: FloatArray | None = None) -> FloatArray:
        """k(a_i, b_i), float64, ``... x n``."""
        rows, columns = self._of(a), self._of(b)
        if self._shared is not None and rows is columns:
            return self.variance(a, self_a)
        return _paired(self.kernel, rows, columns, _some(self_a))

    def forget(self) -> None:
        """Free what is kept for further evaluations of the same strings, as after a fit."""
        self._kept = None
        super().forget()

    def __getitem__(self, index: Any) -> OnField:
        return OnField(self.kernel[index], self.field, self.columns).train(self.training)

    def expand_batch(self, *sizes: Any) -> OnField:
        """The same with another batch shape, see `gpytorch.kernels.Kernel.expand_batch`."""
        return OnField(self.kernel.expand_batch(*sizes), self.field, self.columns).train(self.training)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_kept": None, "_shared": None}  # a weak reference cannot be copied


class _Combination(_Composed):
    """A sum or a product."""

    def __init__(self, *kernels: gpytorch.kernels.Kernel) -> None:
        super().__init__()
        if not kernels:
            raise InputError(f"{type(self).__name__} needs at least one kernel")
        self.kernels = torch.nn.ModuleList(_checked(kernels, type(self).__name__))
        # How each part shapes what it says of single items, by batch shape; known once it was asked.
        self._shapes: tuple[torch.Size, list[tuple[int, ...] | None]] | None = None

    def _parts(self) -> list[gpytorch.kernels.Kernel]:
        return list(self.kernels)

    def config_arguments(self) -> Mapping[str, Any]:
        """See `Configurable`."""
        return {"kernels": list(self.kernels)}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """The kernel that `config` described."""
        return cls(*(from_config(part) for part in config["kernels"]))

    def _described(self) -> Mapping[str, object]:
        return {f"*{index}": kernel for index, kernel in enumerate(self.kernels)}

    def _combined(self, values: Iterable[Any]) -> Any:
        """The sum or product of arrays or tensors, those of batches broadcast."""
        raise NotImplementedError

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        """Covariances of rows, see `gpytorch.kernels.Kernel.forward`."""
        _refuse_single_columns(self, params)
        values: Tensor = self._combined(_forward(part, x1, x2, diag) for part in self.kernels)
        return values

    def self_similarity(self, a: Encoded) -> FloatArray:
        """What `cross` needs of each item alone: that of the parts, one below the other, ``r x n``."""
        found = [_own(part, a) for part in self.kernels]
        self._shapes = self.batch_shape, [None if own is None else own.shape[:-1] for own in found]
        rows = [own.reshape(math.prod(own.shape[:-1]), len(a)) for own in found if own is not None]
        return np.concatenate(rows) if rows else np.zeros((0, len(a)))

    def _split(self, own: FloatArray | None, items: Encoded) -> list[FloatArray | None]:
        """What `self_similarity` put together."""
        if own is None or self._shapes is None or self._shapes[0] != self.batch_shape:
            return [_own(part, items) for part in self.kernels]
        found: list[FloatArray | None] = []
        start = 0
        for shape in self._shapes[1]:
            if shape is None:
                found.append(None)
                continue
            end = start + int(np.prod(shape, dtype=int))
            found.append(own[start:end].reshape(*shape, own.shape[-1]))
            start = end
        return found

    def variance(self, a: Encoded, self_a: FloatArray | None = None) -> FloatArray:
        """k(s, s) of each item, float64."""
        parts = zip(self.kernels, self._split(self_a, a), strict=True)
        values: FloatArray = self._combined(_variance(part, a, own) for part, own in parts)
        return values

    def cross(
        self,
        a: Encoded,
        b: Encoded | None = None,
        self_a: FloatArray | None = None,
        self_b: FloatArray | None = None,
        dtype: npt.DTypeLike = np.float64,
    ) -> FloatArray:
        """Covariances between encoded items, without a graph: see `SubsequenceKernel.cross`."""
        rows = self._split(self_a, a)
        columns = [None] * len(rows) if b is None else self._split(self_b, b)
        parts = zip(self.kernels, rows, columns, strict=True)
        values: FloatArray = self._combined(_cross(part, a, b, left, right, dtype) for part, left, right in parts)
        return values

    def paired(self, a: Encoded, b: Encoded, self_a: FloatArray | None = None) -> FloatArray:
        """k(a_i, b_i), float64, ``... x n``."""
        parts = zip(self.kernels, self._split(self_a, a), strict=True)
        values: FloatArray = self._combined(_paired(part, a, b, own) for part, own in parts)
        return values

    def __getitem__(self, index: Any) -> _Combination:
        return type(self)(*(part[index] for part in self._parts())).train(self.training)

    def expand_batch(self, *sizes: Any) -> _Combination:
        """The same with another batch shape, see `gpytorch.kernels.Kernel.expand_batch`."""
        return type(self)(*(part.expand_batch(*sizes) for part in self._parts())).train(self.training)


class Sum(_Combination):
    r"""The sum of kernels, k(a, b) = sum_i k_i(a, b): a function that is a sum of one for each.

    Args:
        kernels: At least one.

    Raises:
        InputError: For none, or what is not a kernel.

    Example:
        >>> from seqopt.encoding import Encoder
        >>> from seqopt.kernels import NgramKernel, SubsequenceKernel
        >>> Sum(SubsequenceKernel(), NgramKernel()).variance(Encoder().encode(["ACGT"]))
        array([2.])
    """

    def _combined(self, values: Iterable[Any]) -> Any:
        return _accumulated(values, product=False)


class Product(_Combination):
    r"""The product of kernels, k(a, b) = prod_i k_i(a, b): items are similar where they are so in every sense.

    Args:
        kernels: At least one.

    Raises:
        InputError: For none, or what is not a kernel.

    Example:
        >>> from seqopt.encoding import Encoder
        >>> from seqopt.kernels import NgramKernel, SubsequenceKernel
        >>> strings = Encoder().encode(["ACGT", "AGT"])
        >>> parts = SubsequenceKernel(), NgramKernel()
        >>> bool(np.allclose(Product(*parts).cross(strings), parts[0].cross(strings) * parts[1].cross(strings)))
        True
    """

    def _combined(self, values: Iterable[Any]) -> Any:
        return _accumulated(values, product=True)


@contextmanager
def sharing_columns(kernels: Iterable[gpytorch.kernels.Kernel]) -> Iterator[None]:
    """Within this context, what a kernel says of the same strings in several contexts is computed once.

    Strings are the same where their field is the same object. Of each `OnField` the latest result is held.

    Args:
        kernels: That are evaluated on encoded items.
    """
    parts = {id(part): part for kernel in kernels for part in kernel.modules() if isinstance(part, OnField)}
    before = [(part, part._shared) for part in parts.values()]
    for part, _ in before:
        part._shared = {}
    try:
        yield
    finally:
        for part, kept in before:
            part._shared = kept


def _is_constant(items: Any) -> bool:
    """Whether items are one row, repeated without taking memory."""
    values = getattr(items, "values", None)
    return isinstance(values, np.ndarray) and len(values) > 1 and values.strides[0] == 0


def _first(own: FloatArray | None) -> FloatArray | None:
    """What a kernel says of the first item alone."""
    found = _some(own)
    return None if found is None else found[..., :1]


def _is(first: Any, second: Any) -> bool:
    return first is second or (isinstance(first, np.dtype) and first == second)


def bind_fields(kernel: gpytorch.kernels.Kernel, columns: Mapping[str, slice]) -> None:
    """Tell every `OnField` inside ``kernel`` the columns of its field.

    Args:
        kernel: A kernel, or any module that holds some.
        columns: Those of `seqopt.encoding.fields.FieldEncoder.columns`.

    Raises:
        InputError: If a field is not among them; nothing is changed then.
    """
    parts = [part for part in kernel.modules() if isinstance(part, OnField)]
    for part in parts:
        if part.field not in columns:
            raise InputError(f"the kernel reads the field {part.field!r}; the fields are {', '.join(columns)}")
    for part in parts:
        part.columns = columns[part.field]


def _checked(kernels: Iterable[Any], name: str) -> list[gpytorch.kernels.Kernel]:
    found = list(kernels)
    for kernel in found:
        if not isinstance(kernel, gpytorch.kernels.Kernel):
            raise InputError(f"{name} takes kernels; got {kernel!r} of type {type(kernel).__name__}")
    return found


def _refuse_single_columns(kernel: gpytorch.kernels.Kernel, params: Mapping[str, Any]) -> None:
    if params.get("last_dim_is_batch"):
        raise InputError(f"{type(kernel).__name__} has no covariances of single columns (last_dim_is_batch)")


def _accumulated(values: Iterable[Any], *, product: bool) -> Any:
    total: Any = None
    for value in values:
        if total is None:
            total = value
        elif isinstance(total, np.ndarray) and total.shape == value.shape:
            # In place: of a pool's columns there is no room for a third copy. What stands for many columns is none.
            place = next((one for one in (total, value) if one.flags.writeable and one.dtype == total.dtype), None)
            total = np.multiply(total, value, out=place) if product else np.add(total, value, out=place)
        else:
            total = total * value if product else total + value
    return total


def _unscaled(kernel: Any) -> Any:
    """The kernel itself, or what it scales."""
    while isinstance(kernel, gpytorch.kernels.ScaleKernel):
        kernel = kernel.base_kernel
    return kernel


def _some(own: FloatArray | None) -> FloatArray | None:
    """Without the empty array that stands for nothing in `OnField.self_similarity`."""
    return None if own is None or (own.shape[0] == 0 and own.ndim > 1) else own


def _forward(kernel: Any, x1: Tensor, x2: Tensor, diag: bool) -> Tensor:
    if isinstance(kernel, gpytorch.kernels.ScaleKernel) and kernel.active_dims is None:
        values = _forward(kernel.base_kernel, x1, x2, diag)
        scale = kernel.outputscale
        return values * (scale[..., None] if diag else scale[..., None, None])
    if isinstance(kernel, DescribedKernel) and kernel.active_dims is None:
        # Kernels of seqopt recognise rows that are the same object, which gpytorch's call would copy.
        return kernel.forward(x1, x2, diag=diag)
    found: Tensor = kernel(x1, x2, diag=True) if diag else kernel(x1, x2).to_dense()
    return found


def _scale(kernel: gpytorch.kernels.ScaleKernel, dimensions: int) -> FloatArray:
    scale: FloatArray = kernel.outputscale.detach().double().cpu().numpy()
    return scale.reshape(*scale.shape, *[1] * dimensions)


def _own(kernel: Any, items: Encoded) -> FloatArray | None:
    inner = _unscaled(kernel)
    if not (hasattr(inner, "cross") and inner.normalize):
        return None
    own: FloatArray = inner.self_similarity(items)
    return own


def _variance(kernel: Any, items: Encoded, own: FloatArray | None) -> FloatArray:
    if isinstance(kernel, gpytorch.kernels.ScaleKernel):
        return _scale(kernel, 1) * _variance(kernel.base_kernel, items, own)
    if hasattr(kernel, "cross"):
        values: FloatArray = kernel.variance(items, own)
        return values.astype(np.float64)
    return _paired_rows(kernel, items, items)


def _cross(
    kernel: Any,
    a: Encoded,
    b: Encoded | None,
    self_a: FloatArray | None,
    self_b: FloatArray | None,
    dtype: npt.DTypeLike,
) -> FloatArray:
    if isinstance(kernel, gpytorch.kernels.ScaleKernel):
        values = _cross(kernel.base_kernel, a, b, self_a, self_b, dtype)
        scale = _scale(kernel, 2).astype(dtype)
        if scale.size > 1:
            return scale * values
        if not values.flags.writeable:
            return values * scale.item()
        values *= scale.item()
        return values
    if hasattr(kernel, "cross"):
        own: FloatArray = kernel.cross(a, b, self_a, self_b, dtype=dtype)
        return own
    columns = _rows(kernel, a if b is None else b)
    size = max(1, BLOCK_ELEMENTS // max(len(columns), columns.shape[-1], 1))
    with torch.no_grad():
        blocks = [
            kernel(_rows(kernel, a.take(slice(start, start + size))), columns).to_dense().double().numpy()
            for start in range(0, max(len(a), 1), size)
        ]
    return np.concatenate(blocks, axis=-2).astype(dtype)


def _paired(kernel: Any, a: Encoded, b: Encoded, own: FloatArray | None) -> FloatArray:
    if len(a) != len(b):
        raise InputError(f"{len(a)} items cannot be paired with {len(b)}")
    if isinstance(kernel, gpytorch.kernels.ScaleKernel):
        return _scale(kernel, 1) * _paired(kernel.base_kernel, a, b, own)
    if hasattr(kernel, "paired"):
        values: FloatArray = kernel.paired(a, b, own)
        return values
    if a is b:
        return _variance(kernel, a, own)
    width = max(a.width, b.width)
    left, right = a.padded(width), b.padded(width)
    rows, others = left.to_tensor(), right.to_tensor()
    if torch.equal(rows, others):
        # The same strings in other contexts.
        return _variance(kernel, a, own)
    return _paired_rows(kernel, left, right)


def _paired_rows(kernel: Any, a: Encoded, b: Encoded) -> FloatArray:
    rows = _rows(kernel, a)
    others = rows if a is b else _rows(kernel, b)
    with torch.no_grad():
        values: FloatArray = _forward(kernel, rows, others, True).double().cpu().numpy()
    return values


def _rows(kernel: Any, items: Encoded) -> Tensor:
    """Rows as a kernel of gpytorch takes them: in the precision of its parameters."""
    first = next(iter(kernel.parameters()), None)
    rows = items.to_tensor()
    return rows if first is None or isinstance(kernel, DescribedKernel) else rows.to(first)
