"""The cuda engine: one pair of strings per lane of an NVIDIA GPU, O(order |a| |b|) a pair, written in Triton.

The kernel is in `seqopt.kernels.engines.triton_program`. Here strings are brought to the GPU, work is cut into
launches, and results are brought back.

Memory on the GPU is that of the results, of the strings (8 bytes a symbol, padded to the longest string of a list), and
of scratch: at most `SCRATCH_BYTES`, and at most an eighth of the GPU's memory. `order_sums` and `paired_order_sums`
compute in blocks of at most `BLOCK_BYTES`, so that their results may exceed the memory of the GPU. The functions
``..._on_device`` leave the results on the GPU, where they must fit.

One version of the kernel is compiled for every order and precision, with and without derivatives, symmetric or not, in
about a second, and kept on disk by Triton. With ``TRITON_INTERPRET=1`` in the environment before the first import, the
same code runs without a GPU: for tests, slowly.

Importing this module raises `ImportError` where Triton is missing; `check` does so where a GPU is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from seqopt.encoding import EncodedStrings

try:
    import triton
except ImportError as error:
    raise ImportError(f"the cuda engine needs Triton, pip install 'seqopt[cuda]': {error}") from error

from seqopt.kernels.engines.triton_program import LANES, order_sums_kernel

FloatArray = npt.NDArray[np.floating]

INTERPRETED = not isinstance(order_sums_kernel, triton.JITFunction)
"""Whether Triton interprets the kernel on the CPU."""

BLOCK_BYTES = 1 << 30
"""Most bytes of results that `order_sums` and `paired_order_sums` hold on the GPU at once."""

SCRATCH_BYTES = 2 << 30
"""Most bytes of scratch. At order 5, strings of 2,000 symbols reach it in float32, of 500 in float64 with derivatives;
fewer programs then run at once."""

PROGRAMS_PER_MULTIPROCESSOR = 16
"""Programs started per multiprocessor: as many as find registers at the usual order, 5, in float32."""

WIDEST_TILE = 12
"""Most columns of a tile: what wider ones save in memory traffic they lose on padding."""

TILE_REGISTERS = 72
"""Registers of a lane that hold the column accumulators of a tile, so that all together stay below 255."""

_TORCH_TYPES = {np.dtype(np.float64): torch.float64, np.dtype(np.float32): torch.float32}


@dataclass(frozen=True)
class DeviceStrings:
    """Encoded strings in the memory of a GPU; `to_device` makes them.

    Attributes:
        columns: ``n x longest`` int32, the symbols of each string, 0 after its end.
        lengths: ``n`` int32.
        rows: ``(longest + 1) x lanes`` int32, the same symbols position by position, the strings sorted by length; -1
            after the end of a string and in the lanes that the last block of `LANES` leaves empty.
        order: ``n`` int64, the number of each string in sorted order.
        block_lengths: int32, the length of the longest string of each block of `LANES`.
    """

    columns: Tensor
    lengths: Tensor
    rows: Tensor
    order: Tensor
    block_lengths: Tensor

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def longest(self) -> int:
        """Length of the longest string."""
        return int(self.columns.shape[1])


def check() -> None:
    """Complain if this engine cannot run here.

    Raises:
        ImportError: If there is no CUDA GPU, unless Triton interprets.
    """
    if not INTERPRETED and not torch.cuda.is_available():
        found = "this torch was built without CUDA" if torch.version.cuda is None else "torch finds none"
        raise ImportError(f"the cuda engine needs an NVIDIA GPU: {found}")


def to_device(strings: EncodedStrings, device: torch.device | str | None = None) -> DeviceStrings:
    """Strings in the form in which the kernel reads them.

    Args:
        strings: Any number of strings.
        device: A CUDA device (default: the current one).
    """
    target = torch.device("cpu" if INTERPRETED else "cuda") if device is None else torch.device(device)
    count, longest = len(strings), int(strings.lengths.max(initial=0))
    # Signed, because torch has no arithmetic on uint16; the mask undoes the sign.
    symbols = np.array(strings.tokens[:, :longest], order="C")
    signed = torch.from_numpy(symbols.view(f"int{8 * symbols.itemsize}")).to(target)
    columns = signed.to(torch.int32) & (256**symbols.itemsize - 1)
    order = np.argsort(strings.lengths, kind="stable")
    blocks = -(-count // LANES)
    last_of_block = order[np.minimum(np.arange(1, blocks + 1) * LANES, count) - 1]
    numbers = torch.from_numpy(order.astype(np.int64)).to(target)
    # One position more than any string has, because the kernel reads a row ahead.
    rows = torch.full((longest + 1, blocks * LANES), -1, dtype=torch.int32, device=target)
    rows[:longest, :count] = columns[numbers].T
    # Unlike the padding of the columns, so that padding matches nothing.
    rows.masked_fill_(rows == 0, -1)
    return DeviceStrings(
        columns=columns,
        lengths=torch.from_numpy(strings.lengths.astype(np.int32)).to(target),
        rows=rows,
        order=numbers,
        block_lengths=torch.from_numpy(strings.lengths[last_of_block].astype(np.int32)).to(target),
    )


def order_sums_on_device(
    a: DeviceStrings,
    b: DeviceStrings | None,
    gap_decay: float,
    weights: npt.NDArray[np.float64],
    *,
    derivative: bool,
    dtype: np.dtype,
) -> tuple[Tensor, Tensor | None]:
    """Weighted sums of all pairs, in the memory of the GPU that holds the strings.

    Args:
        a: The strings of the rows.
        b: The strings of the columns, on the same device; `None` stands for ``a`` again and costs half.
        gap_decay: Decay per skipped symbol, in (0, 1].
        weights: ``r x order``.
        derivative: Also return the derivatives in the gap decay.
        dtype: float64 or float32, of the computation and of the results.

    Returns:
        The sums, ``r x len(a) x len(b)``, and, if asked for, their derivatives, else `None`.

    Example:
        >>> from seqopt.encoding import Encoder
        >>> strings = to_device(Encoder().encode(["cat", "cart"]))  # doctest: +SKIP
        >>> double = np.dtype(np.float64)
        >>> order_sums_on_device(strings, None, 0.5, np.eye(2), derivative=False, dtype=double)[0][1]  # doctest: +SKIP
        tensor([[2.2500, 1.6250],
                [1.6250, 3.5625]], device='cuda:0', dtype=torch.float64)
    """
    columns = a if b is None else b
    results = _zeros((1 + derivative, len(weights), len(a), len(columns)), dtype, a)
    # Either side can be that of the lanes; the cheaper leaves fewer of them empty.
    if len(columns.block_lengths) * len(a) <= len(a.block_lengths) * len(columns):
        _launch(columns, a, results, (1, len(columns)), gap_decay, weights, symmetric=b is None)
    else:
        _launch(a, columns, results, (len(columns), 1), gap_decay, weights)
    return results[0], results[1] if derivative else None


def paired_order_sums_on_device(
    a: DeviceStrings,
    b: DeviceStrings,
    gap_decay: float,
    weights: npt.NDArray[np.float64],
    *,
    derivative: bool,
    dtype: np.dtype,
) -> tuple[Tensor, Tensor | None]:
    """Weighted sums of string i of a with string i of b, ``r x len(a)``; otherwise as `order_sums_on_device`."""
    results = _zeros((1 + derivative, len(weights), len(a)), dtype, a)
    _launch(a, b, results, (1, 0), gap_decay, weights, paired=True)
    return results[0], results[1] if derivative else None


def order_sums(
    a: EncodedStrings,
    b: EncodedStrings | None,
    gap_decay: float,
    weights: npt.NDArray[np.float64],
    *,
    derivative: bool,
    dtype: np.dtype,
    threads: int | None,
) -> tuple[FloatArray, FloatArray | None]:
    """Weighted sums of all pairs, see `seqopt.kernels.engines.order_sums`; there are no threads to choose."""
    columns = a if b is None else b
    results = np.empty((1 + derivative, len(weights), len(a), len(columns)), dtype=dtype)
    if results.size:
        height = max(1, BLOCK_BYTES * len(a) // results.nbytes)
        right = None if b is None else to_device(b)
        for first in range(0, len(a), height):
            rows, rest = slice(first, first + height), slice(first + height, len(a))
            left = to_device(a.take(rows))
            sums = order_sums_on_device(left, right, gap_decay, weights, derivative=derivative, dtype=dtype)
            _copy(sums, results[:, :, rows, rows if b is None else slice(None)])
            if b is None and first + height < len(a):
                # The part of a symmetric matrix below the diagonal is that above it.
                beside = to_device(a.take(rest))
                sums = order_sums_on_device(left, beside, gap_decay, weights, derivative=derivative, dtype=dtype)
                _copy(sums, results[:, :, rows, rest])
                results[:, :, rest, rows] = results[:, :, rows, rest].swapaxes(2, 3)
    return results[0], results[1] if derivative else None


def paired_order_sums(
    a: EncodedStrings,
    b: EncodedStrings,
    gap_decay: float,
    weights: npt.NDArray[np.float64],
    *,
    derivative: bool,
    dtype: np.dtype,
    threads: int | None,
) -> tuple[FloatArray, FloatArray | None]:
    """Weighted sums of string i with string i, see `seqopt.kernels.engines.paired_order_sums`."""
    results = np.empty((1 + derivative, len(weights), len(a)), dtype=dtype)
    if results.size:
        size = max(1, BLOCK_BYTES * len(a) // results.nbytes)
        for first in range(0, len(a), size):
            part = slice(first, first + size)
            left = to_device(a.take(part))
            right = left if b is a else to_device(b.take(part))
            sums = paired_order_sums_on_device(left, right, gap_decay, weights, derivative=derivative, dtype=dtype)
            _copy(sums, results[:, :, part])
    return results[0], results[1] if derivative else None


def tile_width(order: int, derivative: bool, dtype: np.dtype) -> int:
    """Columns of a tile: as many as have their accumulators in `TILE_REGISTERS`, from 1 to `WIDEST_TILE`."""
    registers_per_column = max(1, (order - 1) * (1 + derivative) * dtype.itemsize // 4)
    return max(1, min(WIDEST_TILE, TILE_REGISTERS // registers_per_column))


def _zeros(shape: tuple[int, ...], dtype: np.dtype, strings: DeviceStrings) -> Tensor:
    return torch.zeros(shape, dtype=_TORCH_TYPES[dtype], device=strings.columns.device)


def _launch(
    lanes: DeviceStrings,
    columns: DeviceStrings,
    results: Tensor,
    strides: tuple[int, int],
    gap_decay: float,
    weights: npt.NDArray[np.float64],
    *,
    symmetric: bool = False,
    paired: bool = False,
) -> None:
    """Fill ``results``, which is zero. ``strides``: its step from one string of the lanes, or columns, to the next."""
    if results.numel() == 0 or lanes.longest == 0 or columns.longest == 0:
        return
    dtype, device = results.dtype, results.device
    order, derivative = weights.shape[1], len(results) == 2
    n_columns = 1 if paired else len(columns)
    pieces = len(lanes.block_lengths) * n_columns
    scratch_per_program = (lanes.longest + 1) * (order - 1) * len(results) * LANES
    programs = min(pieces, _most_programs(scratch_per_program * dtype.itemsize, device))
    with torch.cuda.device_of(results):  # type: ignore[no-untyped-call]
        order_sums_kernel[(programs,)](
            lanes.rows,
            lanes.rows.shape[1],
            lanes.block_lengths,
            lanes.order,
            len(lanes),
            columns.columns,
            columns.longest,
            columns.lengths,
            columns.order,
            n_columns,
            torch.full((1,), gap_decay, dtype=dtype, device=device),
            torch.tensor(weights, dtype=dtype, device=device),
            len(weights),
            results,
            results[0, 0].numel(),
            *strides,
            torch.empty(programs * scratch_per_program, dtype=dtype, device=device),
            scratch_per_program,
            torch.zeros(1, dtype=torch.int64, device=device),
            pieces,
            ORDER=order,
            TILE=tile_width(order, derivative, np.dtype(f"f{dtype.itemsize}")),
            LANES=LANES,
            DERIVATIVE=derivative,
            SYMMETRIC=symmetric,
            PAIRED=paired,
            num_warps=LANES // 32,
            enable_fp_fusion=True,
        )


def _most_programs(scratch_bytes: int, device: torch.device) -> int:
    """How many programs fill the GPU, as far as there is scratch memory for them."""
    if INTERPRETED:
        return 2
    properties = torch.cuda.get_device_properties(device)
    room = min(SCRATCH_BYTES, properties.total_memory // 8)
    wanted = PROGRAMS_PER_MULTIPROCESSOR * properties.multi_processor_count
    return max(1, min(wanted, room // max(1, scratch_bytes)))


def _copy(sums: tuple[Tensor, Tensor | None], into: FloatArray) -> None:
    """Bring sums and derivatives to the ``parts x r x ...`` array ``into``, without a second copy in host memory."""
    for source, part in zip(sums, into, strict=False):
        for r, plane in enumerate(part):
            torch.from_numpy(plane).copy_(source[r])  # type: ignore[index]
