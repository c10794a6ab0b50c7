"""The compiled engine: SIMD across pairs of strings, several threads, O(order |a| |b|) a pair.

The strings of one side are packed in groups of 16 of nearly equal length (`seqopt.kernels.engines.packing`);
each string of the other side meets a whole group at once, in vector registers
(`seqopt.kernels.engines.compiled`). Memory is that of the result plus, per thread, a workspace of (order - 1)
x longest string x lanes.

Threads are started here and live as long as one call: the compiled functions release the interpreter lock, and
nothing is left behind that a forked process could trip over. One version is compiled for every order and
precision, with and without derivatives, in about a second, and kept on disk.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import torch

from seqopt.encoding import EncodedStrings
from seqopt.kernels.engines.compiled import (
    CACHE_LINE,
    REGISTER_BYTES,
    Groups,
    Program,
    Workspace,
    sums_of_aligned_pairs,
    sums_of_all_pairs,
)
from seqopt.kernels.engines.packing import GROUP, pack

FloatArray = npt.NDArray[np.floating]

THREADING_COST = 5e7
"""Cells times orders, twice that with derivatives and half in float32, below which a call is not worth a second thread:
some milliseconds, since a thread may wait that long for a core of a busy machine."""

PIECE_COST = 1e7
"""The same for a piece of the work of a thread."""

PIECES_PER_THREAD = 8
"""Pieces that work is cut into, so that threads finish together."""


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
    """Weighted sums of all pairs, see `seqopt.kernels.engines.order_sums`."""
    columns = a if b is None else b
    results = np.empty((1 + derivative, len(weights), len(a), len(columns)), dtype=dtype)
    if results.size:
        # Either side can be the grouped one. The cheaper leaves fewer lanes empty; the longer is easier to share out.
        of_columns, of_rows = _vectors(len(columns)) * len(a), _vectors(len(a)) * len(columns)
        if of_columns < of_rows or (of_columns == of_rows and len(columns) >= len(a)):
            grouped, singles, group_stride, single_stride = columns, a, 1, len(columns)
        else:
            grouped, singles, group_stride, single_stride = a, columns, len(columns), 1
        packed = pack(grouped)
        groups = Groups(packed.tokens, packed.starts, packed.widths, packed.order)
        single = _rows(singles)
        numbers = packed.order if b is None else np.arange(len(singles))
        partners = np.cumsum(singles.lengths[numbers], dtype=np.float64)
        last = (np.arange(1, len(packed.widths) + 1) * GROUP - 1).clip(max=len(singles) - 1) if b is None else [-1]
        program = _program(gap_decay, weights, derivative, dtype)

        def run(first_group: int, last_group: int, first_single: int = 0, last_single: int = len(numbers)) -> None:
            sums_of_all_pairs(
                groups,
                first_group,
                last_group,
                *single,
                numbers,
                first_single,
                last_single,
                b is None,
                results.reshape(1 + derivative, len(weights), -1),
                group_stride,
                single_stride,
                program,
                _workspace(single[0].shape[1], int(packed.widths[-1]), program),
            )

        costs = packed.widths * partners[last] * (GROUP * weights.shape[1] * (1 + derivative) * dtype.itemsize / 8)
        _run_in_threads(run, costs, threads, np.maximum(singles.lengths[numbers], 1).astype(np.float64))
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
        packed = pack(a)
        groups = Groups(packed.tokens, packed.starts, packed.widths, packed.order)
        program = _program(gap_decay, weights, derivative, dtype)
        rows = _rows(b)
        longest = rows[0].shape[1]

        def run(first_group: int, last_group: int) -> None:
            sums_of_aligned_pairs(
                groups,
                first_group,
                last_group,
                *rows,
                results,
                program,
                _workspace(longest, int(packed.widths[-1]), program),
            )

        costs = packed.widths * (longest * GROUP * weights.shape[1] * (1 + derivative) * dtype.itemsize / 8)
        _run_in_threads(run, costs, threads)
    return results[0], results[1] if derivative else None


def _rows(strings: EncodedStrings) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.int64]]:
    """Tokens and lengths in one layout and type, so that one compiled version serves them all."""
    longest = int(strings.lengths.max())
    tokens = np.array(strings.tokens[:, :longest], dtype=np.uint16, order="C")
    return tokens, np.array(strings.lengths, dtype=np.int64)


def _vectors(strings: int) -> int:
    return -(-strings // GROUP)


def _program(gap_decay: float, weights: npt.NDArray[np.float64], derivative: bool, dtype: np.dtype) -> Program:
    return Program(dtype.type(gap_decay), weights.astype(dtype), (0,) * weights.shape[1], (0,) * (1 + derivative))


def _workspace(longest_row: int, longest_column: int, program: Program) -> Workspace:
    dtype = program.weights.dtype
    lanes = REGISTER_BYTES // dtype.itemsize
    order, parts = len(program.orders), len(program.parts)
    return Workspace(
        symbols=_aligned(longest_row * lanes, np.dtype(np.uint16)),
        state=_aligned(longest_column * (order - 1) * parts * lanes, dtype),
        sums=_aligned(2 * order * parts * lanes, dtype),
        weighted=_aligned(lanes, dtype),
    )


def _aligned(size: int, dtype: np.dtype) -> npt.NDArray:
    """An array that starts on a cache line, so that no vector straddles two."""
    array = np.empty(size + CACHE_LINE // dtype.itemsize, dtype=dtype)
    start = -array.ctypes.data % CACHE_LINE // dtype.itemsize
    return array[start : start + size]


def _run_in_threads(
    run: Callable[..., None], costs: FloatArray, threads: int | None, singles: FloatArray | None = None
) -> None:
    """Run all groups, here if that takes little time, else in pieces of similar cost, the dearest first.

    Args:
        run: Treats groups from the first argument up to the second; if there are ``singles``, with the single strings
            from the third argument up to the fourth.
        costs: Of each group.
        threads: Number of threads.
        singles: Cost of each single string; few groups are then cut along them as well.
    """
    workers = torch.get_num_threads() if threads is None else threads
    total = float(costs.sum())
    if workers == 1 or total < THREADING_COST:
        run(0, len(costs))
        return
    pieces = int(np.clip(total / PIECE_COST, workers, workers * PIECES_PER_THREAD))
    tasks = [(-costs[first:last].sum(), first, last) for first, last in _pieces(costs, pieces)]
    if singles is not None and len(tasks) < pieces:
        parts = _pieces(singles, -(-pieces // len(tasks)))
        tasks = [(cost, *task, *part) for cost, *task in tasks for part in parts]
    with ThreadPoolExecutor(workers) as pool:
        for done in [pool.submit(run, *task[1:]) for task in sorted(tasks)]:
            done.result()


def _pieces(costs: FloatArray, count: int) -> list[tuple[int, int]]:
    """Ranges of similar cost, at most ``count``."""
    total = np.cumsum(costs)
    cuts = np.searchsorted(total, np.arange(1, count) * total[-1] / count)
    return list(pairwise(np.unique([0, *cuts, len(costs)]).tolist()))
