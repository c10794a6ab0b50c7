"""The compiled engine: SIMD across pairs of strings, several threads, O(order |a| |b|) a pair.

The strings of one side are packed in groups of 16 of nearly equal length (`seqopt.kernels.engines.packing`);
each string of the other side meets a whole group at once, in vector registers
(`seqopt.kernels.engines.compiled`). Memory is that of the result plus, per thread, a workspace of (order - 1)
x longest string x lanes.

Where strings share prefixes and endings and this is estimated to pay, those are computed once
(`seqopt.kernels.engines.sharing`), with the strings that share in the place of the single ones. What a thread keeps
then takes at most `PREFIX_BYTES`, `ENDING_BYTES` and `WAITING_BYTES` besides, and at least two states. The last bits
of a value then depend on which strings are computed together.

Threads are started here and live as long as one call: the compiled functions release the interpreter lock, and
nothing is left behind that a forked process could trip over. One version is compiled for every order and
precision, with and without derivatives, in about a second (with sharing in four), and kept on disk.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from threading import local

import numpy as np
import numpy.typing as npt
import torch

from seqopt.encoding import EncodedStrings
from seqopt.kernels.engines.compiled import (
    CACHE_LINE,
    REGISTER_BYTES,
    Groups,
    Program,
    Store,
    Walk,
    Workspace,
    sums_of_aligned_pairs,
    sums_of_all_pairs,
    sums_of_shared_pairs,
)
from seqopt.kernels.engines.packing import GROUP, STEP, PackedStrings, pack, pack_in
from seqopt.kernels.engines.sharing import SharedRows, share

FloatArray = npt.NDArray[np.floating]

THREADING_COST = 5e7
"""Cells times orders, twice that with derivatives and half in float32, below which a call is not worth a second thread:
some milliseconds, since a thread may wait that long for a core of a busy machine."""

PIECE_COST = 1e7
"""The same for a piece of the work of a thread."""

PIECES_PER_THREAD = 8
"""Pieces that work is cut into, so that threads finish together."""

SHARED_PIECES_PER_THREAD = 3
"""The same where strings share rows, since each piece computes endings again."""

PREFIX_BYTES = 1 << 25
"""Most bytes of the states of prefixes that a thread keeps (32 MiB)."""

ENDING_BYTES = 1 << 25
"""Most bytes of the states of endings that a thread keeps (32 MiB)."""

MOST_ENDINGS = 128
"""Endings that are kept at most for up to a hundred times as many strings: more of them leave fewer rows, but are read
from slower memory for each string."""

STRINGS_PER_ENDING = 100
"""Strings for each ending beyond that."""

WAITING_BYTES = 1 << 23
"""Most bytes of the results that wait to be put in their places, per thread (8 MiB)."""

FEWEST_SHARING = 8
"""Strings from which shared prefixes and endings are looked for."""

PLANNING = 400.0
"""Cells times orders that take as long as planning for one symbol: strings are sorted three times."""

PLANNED_PART = 0.1
"""Largest part of the time of all pairs that planning may take."""

WORTHWHILE = 0.85
"""Estimated part of the work of all pairs up to which prefixes and endings are shared."""


def order_sums(
    a: EncodedStrings,
    b: EncodedStrings | None,
    gap_decay: float,
    weights: npt.NDArray[np.float64],
    *,
    derivative: bool,
    dtype: np.dtype,
    threads: int | None,
    sharing: bool | None = None,
) -> tuple[FloatArray, FloatArray | None]:
    """Weighted sums of all pairs, see `seqopt.kernels.engines.order_sums`.

    ``sharing`` says whether shared prefixes and endings are computed once; `None` decides by estimated cost.
    """
    columns = a if b is None else b
    results = np.empty((1 + derivative, len(weights), len(a), len(columns)), dtype=dtype)
    if results.size:
        if sharing is not False:
            chosen = _sharing(a, b, weights.shape[1], derivative, dtype, forced=sharing is True)
            if chosen is not None:
                _shared(a, b, gap_decay, weights, results, *chosen, threads)
                return results[0], results[1] if derivative else None
        # Either side can be the grouped one. The cheaper leaves fewer lanes empty; the longer is easier to share out.
        of_columns, of_rows = _vectors(len(columns)) * len(a), _vectors(len(a)) * len(columns)
        if of_columns < of_rows or (of_columns == of_rows and len(columns) >= len(a)):
            grouped, singles, group_stride, single_stride = columns, a, 1, len(columns)
        else:
            grouped, singles, group_stride, single_stride = a, columns, len(columns), 1
        packed = pack(grouped)
        groups = _groups(packed)
        single = _rows(singles)
        numbers = packed.order if b is None else np.arange(len(singles))
        partners = np.cumsum(singles.lengths[numbers], dtype=np.float64)
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

        costs = _group_costs(packed, partners, b is None, weights.shape[1], derivative, dtype)
        _run_in_threads(run, costs, threads, np.maximum(singles.lengths[numbers], 1).astype(np.float64))
    return results[0], results[1] if derivative else None


def saving(a: EncodedStrings, b: EncodedStrings | None, order: int, derivative: bool) -> float:
    """The estimated part of the work of all pairs that is left when prefixes and endings are shared, 1 where not."""
    if not len(a) or (b is not None and not len(b)):
        return 1.0
    chosen = _sharing(a, b, order, derivative, np.dtype(np.float64), forced=False)
    return 1.0 if chosen is None else chosen[0].rows / max(chosen[0].cells, 1.0)


def _sharing(
    a: EncodedStrings, b: EncodedStrings | None, order: int, derivative: bool, dtype: np.dtype, *, forced: bool
) -> tuple[SharedRows, bool] | None:
    """The plan and whether it is that of a rather than of b, or nothing if pair by pair is estimated to cost less.

    Args:
        a: The strings of the rows.
        b: The strings of the columns; `None` stands for a.
        order: Longest sub-sequence.
        derivative: Whether there are derivatives.
        dtype: Of the computation.
        forced: Whether to return the cheaper plan in any case.
    """
    columns = a if b is None else b
    symbols = [float(np.maximum(side.lengths, 1).sum()) for side in (a, columns)]
    by_pairs = symbols[0] * symbols[1]
    least, best = np.inf, None
    lanes = REGISTER_BYTES // dtype.itemsize
    for of_a, singles, grouped, partners in ((True, a, columns, symbols[1]), (False, columns, a, symbols[0])):
        if b is None and not of_a:
            continue
        if not forced and (
            len(singles) < FEWEST_SHARING
            or PLANNING * max(1, singles.tokens.size) > PLANNED_PART * by_pairs * order * (1 + derivative)
        ):
            continue
        longest = int(grouped.lengths.max())
        state = max(1, longest + STEP) * max(1, order - 1) * (1 + derivative) * REGISTER_BYTES
        # Powers of two, so that strings are not planned anew for partners of nearly the same length.
        most = max(MOST_ENDINGS, len(singles) // STRINGS_PER_ENDING)
        endings = 1 << int(np.log2(np.clip(ENDING_BYTES // state, 1, most)))
        plan = share(singles, 0 if order == 1 else endings)
        cost = plan.rows * partners * (-(-len(grouped) // lanes) * lanes / len(grouped))
        if cost < least:
            least, best = cost, (plan, of_a)
    return best if forced or least < WORTHWHILE * by_pairs else None


def _shared(
    a: EncodedStrings,
    b: EncodedStrings | None,
    gap_decay: float,
    weights: npt.NDArray[np.float64],
    results: FloatArray,
    plan: SharedRows,
    of_a: bool,
    threads: int | None,
) -> None:
    """Fill ``results`` by a plan, that of a or of b."""
    columns = a if b is None else b
    singles, grouped = (a, columns) if of_a else (columns, a)
    strides = (1, len(columns)) if of_a else (len(columns), 1)
    if b is None:
        # The strings in the lanes are treated in full, so they had better be those that share least.
        packed = pack_in(grouped, np.lexsort((plan.own, grouped.lengths)))
        positions = np.empty(len(grouped), dtype=np.int64)
        positions[packed.order] = np.arange(len(grouped))
    else:
        packed, positions = pack(grouped), np.empty(0, dtype=np.int64)
    visits, derivative = plan.walk.strings, len(results) == 2
    # In the order in which they are read.
    tokens, lengths = _rows(singles.take(visits))
    place = np.empty(len(visits), dtype=np.int64)
    place[visits] = np.arange(len(visits))
    walk = Walk(np.arange(len(visits)), *plan.walk.arrays[1:])
    endings_walk = Walk(place[plan.endings_walk.strings], *plan.endings_walk.arrays[1:])
    program = _program(gap_decay, weights, derivative, results.dtype)
    held = local()

    def run(first_group: int, last_group: int, first_visit: int = 0, last_visit: int = len(visits)) -> None:
        if not hasattr(held, "arrays"):
            held.arrays = _scratch(
                tokens.shape[1],
                int(packed.widths[-1]),
                len(endings_walk.strings),
                0 if b is None else len(visits),
                program,
            )
        sums_of_shared_pairs(
            _groups(packed),
            first_group,
            last_group,
            tokens,
            lengths,
            visits,
            walk,
            plan.endings,
            endings_walk,
            first_visit,
            last_visit,
            positions,
            results.reshape(*results.shape[:2], -1),
            *strides,
            program,
            *held.arrays,
        )

    own = plan.own if b is None else np.zeros(len(grouped))
    partners = plan.fixed + (np.cumsum(own[packed.order]) if b is None else np.full(len(packed), plan.costs.sum()))
    costs = _group_costs(packed, partners, b is None, weights.shape[1], derivative, results.dtype)
    _run_in_threads(run, costs, threads, plan.costs, SHARED_PIECES_PER_THREAD)


def _scratch(
    longest_row: int, longest_column: int, endings: int, visits: int, program: Program
) -> tuple[Workspace, Store]:
    """What one thread needs for strings that share prefixes and endings."""
    dtype = program.weights.dtype
    vector = REGISTER_BYTES // dtype.itemsize * len(program.parts)
    of_state, of_sums = longest_column * (len(program.orders) - 1) * vector, len(program.orders) * vector
    kept = 1 + int(np.clip(PREFIX_BYTES // max(1, of_state * dtype.itemsize), 1, longest_row + 1))
    results = len(program.weights) * vector
    waiting = int(np.clip(WAITING_BYTES // (results * dtype.itemsize), 1, max(1, visits)))
    store = Store(
        states=_aligned((kept + 1) * of_state, dtype),
        sums=_aligned((kept + 1) * of_sums, dtype),
        depths=np.zeros(kept, dtype=np.int64),
        wanted=np.zeros(longest_row + 1, dtype=np.bool_),
        shelf=_aligned(endings * of_state, dtype),
        shelf_sums=_aligned(endings * of_sums, dtype),
        reversed_columns=np.empty(longest_column * GROUP, dtype=np.uint16),
        waiting=np.empty((len(program.parts), len(program.weights), vector // len(program.parts), waiting), dtype),
    )
    return _workspace(longest_row, longest_column, program), store


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
        groups = _groups(packed)
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


def _groups(packed: PackedStrings) -> Groups:
    return Groups(packed.tokens, packed.starts, packed.lengths, packed.order)


def _group_costs(
    packed: PackedStrings, partners: FloatArray, symmetric: bool, order: int, derivative: bool, dtype: np.dtype
) -> FloatArray:
    """Cells times orders of each group; ``partners`` are the rows up to each single string."""
    last = (np.arange(1, len(packed.widths) + 1) * GROUP - 1).clip(max=len(partners) - 1) if symmetric else [-1]
    costs: FloatArray = packed.widths * partners[last] * (GROUP * order * (1 + derivative) * dtype.itemsize / 8)
    return costs


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
        sums=_aligned(order * parts * lanes, dtype),
        row_sums=_aligned(order * parts * lanes, dtype),
        weighted=_aligned(lanes, dtype),
    )


def _aligned(size: int, dtype: np.dtype) -> npt.NDArray:
    """An array that starts on a cache line, so that no vector straddles two."""
    array = np.empty(size + CACHE_LINE // dtype.itemsize, dtype=dtype)
    start = -array.ctypes.data % CACHE_LINE // dtype.itemsize
    return array[start : start + size]


def _run_in_threads(
    run: Callable[..., None],
    costs: FloatArray,
    threads: int | None,
    singles: FloatArray | None = None,
    pieces_per_thread: int = PIECES_PER_THREAD,
) -> None:
    """Run all groups, here if that takes little time, else in pieces of similar cost, the dearest first.

    Args:
        run: Treats groups from the first argument up to the second; if there are ``singles``, with the single strings
            from the third argument up to the fourth.
        costs: Of each group.
        threads: Number of threads.
        singles: Cost of each single string; few groups are then cut along them as well.
        pieces_per_thread: Pieces of large work.
    """
    workers = torch.get_num_threads() if threads is None else threads
    total = float(costs.sum())
    if workers == 1 or total < THREADING_COST:
        run(0, len(costs))
        return
    pieces = int(np.clip(total / PIECE_COST, workers, workers * pieces_per_thread))
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
