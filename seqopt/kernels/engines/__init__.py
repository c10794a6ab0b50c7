r"""Per-order sums of the sub-sequence kernel, behind one small function.

The kernel of maximal order n is k(a, b) = sum over i = 1..n of match^(2i) h_i(a, b), where

    h_i(a, b) = sum over pairs of occurrences, one in a and one in b, of every sub-sequence of length i,
                of gap^(symbols skipped in a + symbols skipped in b)

depends on the gap decay only. An *engine* computes h_1..h_n and dh_1/dgap..dh_n/dgap for many pairs of
encoded strings at once. Everything else (match decay, weights, normalisation, gradients) is arithmetic on its
results.

Engines are modules with the two functions of `Engine`, and a function ``check`` that raises an ImportError where they
cannot be used; `ENGINES` names them and they are imported when first used.

References:
    Lodhi, H., Saunders, C., Shawe-Taylor, J., Cristianini, N., Watkins, C. (2002). Text classification using
    string kernels. JMLR 2, 419-444.
    Moss, H. B. (2021). General-purpose Information-Theoretical Bayesian Optimisation. PhD thesis, Lancaster
    University, section 4.4 and appendix B.1.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol, cast

import numpy as np
import numpy.typing as npt
import torch

from seqopt.encoding import EncodedStrings
from seqopt.encoding.derived import once_per_strings
from seqopt.errors import InputError
from seqopt.kernels.engines.bounds import all_finite
from seqopt.kernels.engines.remembered import PartSums as PartSums
from seqopt.kernels.engines.remembered import parts_in_use

if TYPE_CHECKING:
    from seqopt.kernels.engines.features import KnownParts

FloatArray = npt.NDArray[np.floating]
Sums = tuple[FloatArray, FloatArray | None]
"""Sums and, where asked for, their derivatives in the gap decay."""

Note = Callable[[int, FloatArray], None]
"""Takes note of the sums of a part, which it is and what they are."""

ENGINES = {
    "cuda": "seqopt.kernels.engines.cuda",
    "features": "seqopt.kernels.engines.features",
    "cpu": "seqopt.kernels.engines.cpu",
    "pairs": "seqopt.kernels.engines.pairs",
    "shared": "seqopt.kernels.engines.shared",
    "reference": "seqopt.kernels.engines.reference",
}
"""Module of each engine.

==============  =================================================  ====================================================
engine          operations                                         memory beyond the result
==============  =================================================  ====================================================
``cpu``         the cheaper of the next two, by an estimate         theirs
``pairs``       order x length^2 per pair, in vector registers      order x longest string x 16 numbers per thread
``shared``      the same for all symbols that are not those of a    at most 72 MiB and three times as much as ``pairs``
                prefix or ending that other strings share           per thread; while planning, the strings thrice
``features``    symbols^order per symbol and per pair               at most 512 MiB of features, 32 MiB of products
``cuda``        order x length^2 per pair, one GPU lane a pair      at most 3 GiB of the GPU
``reference``   order x length^3 per pair                           some matrices length x length, or 16 MiB
==============  =================================================  ====================================================
"""

GPU_CELLS = 1e9
"""Cells of the dynamic program, times the order, from which ``"auto"`` uses a GPU: a tenth of a second of one core. For
fewer, what it saves 16 cores in a call (some ten milliseconds) does not pay for what a process must load before."""

GPU_SPEED = 75.0
"""How many cores an NVIDIA GPU is assumed to do the work of: an H100 that of 60 to 170 (docs/performance.md)."""

GPU_PAIRS = 40.0
"""How many pairs a core does while a GPU does one: few pairs of long strings leave it idle, and a lane of it
is slow. In double precision an H100 takes as long for 136 pairs as a core for 22 to 57 (docs/performance.md)."""

FEW = 16
"""New parts of strings up to which the engine for them is not chosen by estimated costs."""

MULTIPLICATIONS_PER_CELL = 1.7
"""Multiplications of features that take as long as a cell of the dynamic program, at one order."""


class Engine(Protocol):
    """What the module of an engine offers. ``weights`` is r x order, and r is the first axis of results."""

    def order_sums(
        self,
        a: EncodedStrings,
        b: EncodedStrings | None,
        gap_decay: float,
        weights: npt.NDArray[np.float64],
        *,
        derivative: bool,
        dtype: np.dtype,
        threads: int | None,
    ) -> tuple[FloatArray, FloatArray | None]:
        """Weighted sums and derivatives, r x len(a) x len(b); ``b=None`` stands for a."""
        ...

    def paired_order_sums(
        self,
        a: EncodedStrings,
        b: EncodedStrings,
        gap_decay: float,
        weights: npt.NDArray[np.float64],
        *,
        derivative: bool,
        dtype: np.dtype,
        threads: int | None,
    ) -> tuple[FloatArray, FloatArray | None]:
        """Weighted sums and derivatives of string i of a with string i of b, r x len(a)."""
        ...


def order_sums(
    a: EncodedStrings,
    b: EncodedStrings | None,
    gap_decay: float,
    order: int,
    *,
    derivative: bool = False,
    weights: Sequence[float] | npt.NDArray[np.floating] | None = None,
    dtype: npt.DTypeLike = np.float64,
    engine: str = "auto",
    threads: int | None = None,
    partitions: int = 1,
) -> tuple[FloatArray, FloatArray | None]:
    r"""Per-order sums h_i(a, b), or weighted sums of them, for all pairs.

    Args:
        a: The strings of the rows.
        b: The strings of the columns; `None` stands for ``a`` again and costs half.
        gap_decay: Decay per skipped symbol, in (0, 1].
        order: Longest sub-sequence, n >= 1.
        derivative: Also return the derivatives in the gap decay.
        weights: Nothing for the per-order sums; n numbers w for sum_i w_i h_i; an r x n matrix for r such
            sums. With weights no per-order array is stored, but of strings in parts where r is larger than n.
        dtype: float64 or float32, of the computation and of the results. In float32, sums beyond 3e38 are
            infinite; they need long sub-sequences, hundreds of symbols and a gap decay near 1.
        engine: A name in `ENGINES`, or ``"auto"``: ``cuda`` for large problems where there is a GPU, ``features``
            where that costs less than the dynamic program (few symbols and many pairs), else ``cpu``. That one computes
            prefixes and endings that many strings share once where this is estimated to pay; ``pairs`` never does,
            ``shared`` always.
        threads: Number of threads (default: that of `torch.get_num_threads`).
        partitions: Cut every string into this many contiguous parts, at fractions of its own length, and add the
            sums of part p with part p (Moss 2021, section 4.5.1): sub-sequences across a cut are left out, and
            the dynamic program costs this many times less. 1 is the exact kernel.

    Returns:
        The sums and, if asked for, their derivatives (else `None`): n x len(a) x len(b) without weights,
        len(a) x len(b) with a vector, r x len(a) x len(b) with a matrix of weights.

    Within `PartSums.used`, sums of parts are kept and used again.

    Raises:
        InputError: For a decay, order, weights, dtype or engine outside what is stated above, or more partitions than
            the shortest string has symbols.

    Example:
        >>> from seqopt.encoding import Encoder
        >>> strings = Encoder().encode(["cat", "cart"])
        >>> sums, _ = order_sums(strings, None, gap_decay=0.5, order=2)
        >>> sums[1]  # "cat" with itself: ca, at, and ct with a gap on either side, 1 + 1 + 0.5^2
        array([[2.25  , 1.625 ],
               [1.625 , 3.5625]])
    """
    decay, matrix, number, workers = _checked(gap_decay, order, weights, dtype, threads)
    # What many weights add up to is worked out once, and not for each part.
    first, second = (int(strings.lengths.max(initial=1)) for strings in (a, a if b is None else b))
    late = partitions > 1 and len(matrix) > order and all_finite(order, decay, first, second, number)
    of_parts = np.eye(order) if late else matrix
    planned = True
    if engine == "auto" and partitions > 1:
        of_b = None if b is None else _parts(b, partitions)[0]
        planned = _cheapest(_parts(a, partitions)[0], of_b, order, derivative, workers) != "features"

    def of_part(part: EncodedStrings, other: EncodedStrings | None, count: int) -> Sums:
        return _chosen(engine, part, other, order, derivative, count, planned=planned).order_sums(
            part, other, decay, of_parts, derivative=derivative, dtype=number, threads=count
        )

    note: Note | None = None
    kept = None if b is None or partitions == 1 or derivative else parts_in_use()
    shape = len(matrix), len(a)
    if kept is not None and b is not None and kept.has_room(b, partitions, shape, np.dtype(np.float32)):
        check_engine(engine)
        others, parts, own = (
            _parts(a, partitions),
            _parts(b, partitions),
            (decay, matrix.tobytes(), engine),
        )
        known = kept.derived(
            (decay, order, partitions, engine),
            a,
            lambda largest: _known_parts(engine, a, others, decay, order, workers, largest),
        )
        if number == np.float32:

            def of_new(new: EncodedStrings, places: npt.NDArray[np.intp]) -> FloatArray:
                if known is not None and known.takes(new):
                    return known.sums(new, places, matrix)
                sums = np.empty((*shape, len(new)), dtype=np.float32)
                for place in np.unique(places).tolist():
                    mine = np.flatnonzero(places == place)
                    other, part = others[place], new.take(mine)
                    # For a few strings choosing takes longer than computing.
                    few = engine == "auto" and len(part) <= FEW and _why_not(ENGINES["pairs"]) is None
                    own_engine = _chosen("pairs" if few else engine, other, part, order, derivative, workers)
                    sums[..., mine] = own_engine.order_sums(
                        other, part, decay, matrix, derivative=derivative, dtype=number, threads=workers
                    )[0]
                return sums

            return _squeezed(kept.pairs(own, a, b, parts, shape, of_new), weights), None
        if known is None:
            # With features at hand, the few that a search comes back to cost less than all that would be kept.
            noted = kept.noting(own, a, b, parts, shape)

            def note(place: int, sums: FloatArray) -> None:
                noted(place, _weighed(sums, matrix, symmetric=False) if late else sums)

    sums, derivatives = _added(of_part, a, b, partitions, workers, note)
    if late:
        sums = _weighed(sums, matrix, symmetric=b is None)
        derivatives = None if derivatives is None else _weighed(derivatives, matrix, symmetric=b is None)
    return _squeezed(sums, weights), None if derivatives is None else _squeezed(derivatives, weights)


def self_order_sums(
    a: EncodedStrings,
    gap_decay: float,
    order: int,
    *,
    derivative: bool = False,
    weights: Sequence[float] | npt.NDArray[np.floating] | None = None,
    dtype: npt.DTypeLike = np.float64,
    engine: str = "auto",
    threads: int | None = None,
    partitions: int = 1,
) -> tuple[FloatArray, FloatArray | None]:
    """Per-order sums h_i(s, s) of each string with itself: the diagonal of `order_sums`, without the rest.

    Arguments, errors and results are those of `order_sums`, with one axis of strings in place of two.

    Example:
        >>> from seqopt.encoding import Encoder
        >>> sums, _ = self_order_sums(Encoder().encode(["cat", "cart"]), gap_decay=0.5, order=2)
        >>> sums
        array([[3.    , 4.    ],
               [2.25  , 3.5625]])
    """
    return paired_order_sums(
        a,
        a,
        gap_decay,
        order,
        derivative=derivative,
        weights=weights,
        dtype=dtype,
        engine=engine,
        threads=threads,
        partitions=partitions,
    )


def paired_order_sums(
    a: EncodedStrings,
    b: EncodedStrings,
    gap_decay: float,
    order: int,
    *,
    derivative: bool = False,
    weights: Sequence[float] | npt.NDArray[np.floating] | None = None,
    dtype: npt.DTypeLike = np.float64,
    engine: str = "auto",
    threads: int | None = None,
    partitions: int = 1,
) -> tuple[FloatArray, FloatArray | None]:
    """Per-order sums h_i(a_j, b_j) of two equally long lists, pair by pair.

    Arguments, errors and results are those of `order_sums`, with one axis of pairs in place of two of
    strings.

    Raises:
        InputError: As `order_sums`, and if the lists differ in length.

    Example:
        >>> from seqopt.encoding import Encoder
        >>> encode = Encoder().encode
        >>> paired_order_sums(encode(["AB", "A"]), encode(["AAB", "B"]), gap_decay=0.5, order=2)[0]
        array([[3. , 0. ],
               [1.5, 0. ]])
    """
    if len(a) != len(b):
        raise InputError(f"pairs need two lists of one length; got {len(a)} and {len(b)} strings")
    decay, matrix, number, workers = _checked(gap_decay, order, weights, dtype, threads)

    def of_part(part: EncodedStrings, other: EncodedStrings | None, count: int) -> Sums:
        partner = part if other is None else other
        return _chosen(engine, part, partner, order, derivative, count, paired=True).paired_order_sums(
            part, partner, decay, matrix, derivative=derivative, dtype=number, threads=count
        )

    kept = None if b is not a or partitions == 1 or derivative else parts_in_use()
    if kept is not None and kept.has_room(a, partitions, (len(matrix),), number):
        check_engine(engine)
        own = decay, matrix.tobytes(), engine
        sums = kept.selves(
            own, a, _parts(a, partitions), (len(matrix),), number, lambda part: of_part(part, None, workers)[0]
        )
        return _squeezed(sums, weights), None
    sums, derivatives = _added(of_part, a, None if b is a else b, partitions, workers)
    return _squeezed(sums, weights), None if derivatives is None else _squeezed(derivatives, weights)


def check_order(order: int) -> None:
    """Complain about an order that is not an integer of at least 1.

    Raises:
        InputError: Naming it.
    """
    if isinstance(order, bool) or not isinstance(order, int | np.integer) or order < 1:
        raise InputError(f"order is {order!r}; it must be an integer of at least 1")


def check_engine(name: str) -> None:
    """Complain about an engine that is unknown or cannot be used here.

    Raises:
        InputError: Naming the engine and what to do.
    """
    if name == "auto":
        return
    if name not in ENGINES:
        raise InputError(f"unknown engine {name!r}: choose auto, {', '.join(ENGINES)}")
    reason = _why_not(ENGINES[name])
    if reason is not None:
        raise InputError(
            f"engine {name!r} cannot be used here: {reason}. Install what is missing, or choose engine='auto'"
        )


@lru_cache
def _why_not(module: str) -> str | None:
    """Why an engine cannot be used, if it cannot."""
    try:
        check = getattr(importlib.import_module(module), "check", None)
        if check is not None:
            check()
    except ImportError as error:
        return str(error)
    return None


def _chosen(
    name: str,
    a: EncodedStrings,
    b: EncodedStrings | None,
    order: int,
    derivative: bool,
    threads: int,
    *,
    paired: bool = False,
    planned: bool = True,
) -> Engine:
    """The engine of a name; see `_cheapest` for that of ``"auto"``."""
    if name == "auto":
        name = _cheapest(a, b, order, derivative, threads, paired=paired, planned=planned)
    else:
        check_engine(name)
    return cast(Engine, importlib.import_module(ENGINES[name]))


def _cheapest(
    a: EncodedStrings,
    b: EncodedStrings | None,
    order: int,
    derivative: bool,
    threads: int = 1,
    *,
    paired: bool = False,
    planned: bool = True,
) -> str:
    """The engine of least estimated cost.

    To find out what sharing prefixes and endings saves takes a plan, which costs something itself. Of strings in parts
    one is made for the first part; unless it pays there, others are not ``planned``.
    """
    columns = a if b is None else b
    cells = (
        order * float((a.lengths.astype(np.float64) * columns.lengths).sum())
        if paired
        else (order * float(a.lengths.sum()) * float(columns.lengths.sum()) * (0.5 if b is None else 1.0))
    )
    costs = {"cpu": MULTIPLICATIONS_PER_CELL * (1.0 + derivative) * cells, "reference": np.inf}
    # Where there is no GPU, Triton need not even be looked for; nor in a forked child, where CUDA cannot start.
    if cells > GPU_CELLS and torch.cuda.is_available() and not torch.cuda._is_in_bad_fork():
        # The others' costs are those of one thread, whose number divides them all.
        longest = order * float(a.lengths.max()) * float(columns.lengths.max())
        costs["cuda"] = (
            MULTIPLICATIONS_PER_CELL * (1.0 + derivative) * threads * max(cells / GPU_SPEED, GPU_PAIRS * longest)
        )
    if _why_not(ENGINES["features"]) is None:
        from seqopt.kernels.engines import features

        costs["features"] = features.cost(a, b, order, derivative, paired=paired)
        if planned and costs["features"] < costs["cpu"] and not paired and _why_not(ENGINES["cpu"]) is None:
            from seqopt.kernels.engines import cpu

            costs["cpu"] *= cpu.saving(a, b, order, derivative)
    return min((name for name in costs if _why_not(ENGINES[name]) is None), key=costs.__getitem__)


def _known_parts(
    engine: str,
    strings: EncodedStrings,
    parts: Sequence[EncodedStrings],
    gap_decay: float,
    order: int,
    threads: int,
    largest: int,
) -> KnownParts | None:
    """Features of the parts of some strings, where these make sums of new parts cheaper and are few enough bytes."""
    if engine not in ("auto", "features") or _why_not(ENGINES["features"]) is not None:
        return None
    from seqopt.kernels.engines import features

    if not features.saves_new_parts(strings, parts, order, largest):
        return None
    return features.KnownParts(strings, parts, gap_decay, order, threads)


def _checked(
    gap_decay: float,
    order: int,
    weights: Sequence[float] | npt.NDArray[np.floating] | None,
    dtype: npt.DTypeLike,
    threads: int | None,
) -> tuple[float, npt.NDArray[np.float64], np.dtype, int]:
    """Gap decay, weight matrix, precision and threads as engines take them."""
    try:
        decay = float(gap_decay)
    except (TypeError, ValueError):
        raise InputError(f"gap decay is {gap_decay!r}; expected a number in (0, 1]") from None
    if not 0.0 < decay <= 1.0:
        raise InputError(f"gap decay is {decay}; it must lie in (0, 1]")
    precision = np.dtype(dtype)
    if precision not in (np.dtype(np.float64), np.dtype(np.float32)):
        raise InputError(f"dtype is {precision}; kernels are computed in float64 or float32")
    if threads is not None and threads < 1:
        raise InputError(f"threads is {threads}; it must be at least 1")
    return (
        decay,
        _weight_matrix(order, weights),
        precision,
        torch.get_num_threads() if threads is None else int(threads),
    )


def _weight_matrix(order: int, weights: Sequence[float] | npt.NDArray[np.floating] | None) -> npt.NDArray[np.float64]:
    check_order(order)
    if weights is None:
        return np.eye(order)
    matrix = np.atleast_2d(np.asarray(weights, dtype=np.float64))
    if matrix.ndim != 2 or matrix.shape[1] != order:
        raise InputError(f"weights have shape {np.shape(weights)}; expected ({order},) or (rows, {order})")
    return np.ascontiguousarray(matrix)


def _added(
    of_part: Callable[[EncodedStrings, EncodedStrings | None, int], Sums],
    a: EncodedStrings,
    b: EncodedStrings | None,
    partitions: int,
    workers: int,
    note: Note | None = None,
) -> Sums:
    """The sums of part p with part p, added over p in place."""
    parts_a = _parts(a, partitions)
    parts_b = [None] * partitions if b is None else _parts(b, partitions)
    parts = list(zip(parts_a, parts_b, strict=True))

    def single_threaded(part: tuple[EncodedStrings, EncodedStrings | None]) -> Sums:
        return of_part(*part, 1)

    if workers == 1 or partitions < 2 * workers:
        total = _total((of_part(*part, workers) for part in parts), note)
    else:
        # Many short parts keep threads busier one by one than cut into pieces each. No more are held than threads.
        with ThreadPoolExecutor(workers) as pool:
            chunks = (parts[start : start + workers] for start in range(0, partitions, workers))
            total = _total((sums for chunk in chunks for sums in pool.map(single_threaded, chunk)), note)
    return total


def _total(parts: Iterable[Sums], note: Note | None) -> Sums:
    total: Sums | None = None
    for place, part in enumerate(parts):
        if note is not None:
            note(place, part[0])
        if total is None:
            total = part
            continue
        for sums, more in zip(total, part, strict=True):
            if sums is not None and more is not None:
                sums += more
    assert total is not None
    return total


def _parts(strings: EncodedStrings, partitions: int) -> list[EncodedStrings]:
    strings.check_parts(partitions)
    # Remembering the undivided strings would keep them alive for ever.
    return strings.split(partitions) if partitions == 1 else _split(strings, partitions)


@once_per_strings
def _split(strings: EncodedStrings, partitions: int) -> list[EncodedStrings]:
    return strings.split(partitions)


def _weighed(sums: FloatArray, matrix: npt.NDArray[np.float64], *, symmetric: bool) -> FloatArray:
    """Weighted sums, ``r x ...``, of those of all orders, in their precision."""
    found: FloatArray = np.tensordot(matrix.astype(sums.dtype), sums, axes=1)
    # A product of matrices may round equal columns in two ways.
    return (found + found.swapaxes(-1, -2)) / 2 if symmetric else found


def _squeezed(sums: FloatArray, weights: object) -> FloatArray:
    return sums[0] if weights is not None and np.ndim(weights) == 1 else sums  # type: ignore[arg-type]
