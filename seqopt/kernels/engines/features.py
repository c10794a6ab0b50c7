r"""The features engine: all sub-sequence features of each string, then matrix products.

Over few symbols the sum that defines the kernel can be written out. With A symbols,

    h_i(a, b) = sum over the A^i sub-sequences u of length i of f_u(a) f_u(b),
    f_u(s)    = sum over the occurrences of u in s of gap^(symbols skipped),

so that a pair costs A + A^2 + ... + A^n multiplications (62 for two symbols at order n = 5, 1,364 for DNA, 3,905 for
five symbols), whatever the length of the strings. Only symbols that occur on both sides have features; others widen
gaps.

The features of a string follow from one pass over it. With S_v the sum of gap^(symbols skipped up to here) over the
occurrences of v so far, a symbol x does, from the longest v to the shortest,

    f_(vx) <- f_(vx) + S_v,    S_v <- gap S_v + [v = wx] S_w,    S_() = 1,

with the S of before on the right, and the same differentiated in the gap decay. Features are numbered so that those
ending with x are neighbours, hence all of it is sums of vectors.

Memory is that of the result, at most `FEATURE_BYTES` of features and a few products of `BLOCK_BYTES`. Products are
numpy's, and take the threads of its linear algebra.

References:
    Lodhi, H., Saunders, C., Shawe-Taylor, J., Cristianini, N., Watkins, C. (2002). Text classification using string
    kernels. JMLR 2, 419-444, section 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from seqopt.encoding import EncodedStrings
from seqopt.encoding.derived import once_per_strings
from seqopt.errors import InputError
from seqopt.kernels.engines import MULTIPLICATIONS_PER_CELL, _checked
from seqopt.kernels.engines.bounds import all_finite, largest_sum
from seqopt.kernels.engines.compiled import SMALLEST_SCALE, fill_features, fill_features_and_slopes

FloatArray = npt.NDArray[np.floating]
IntArray = npt.NDArray[np.int64]

FEATURE_BYTES = 512 * 2**20
"""Most memory of the features held at once, those of both sides together."""

THREADING_COST = 2e7
"""Cost below which features are computed in the thread that asks for them (about a millisecond)."""

CALL_COST = 4e6
SYMBOL_COST = 3000.0
STATE_COST = 2.0
PAIR_COST = 60.0
"""Costs of a call, a symbol, a symbol per feature, and a pair besides its products, in multiplications."""

BLOCK_BYTES = 1 << 23
"""Bytes of a product before it is added to the result (8 MiB). Of a Gram matrix only blocks up to the diagonal are
multiplied."""

GRAM_BLOCKS = 4
FEWEST_ROWS = 64
"""Blocks that a Gram matrix has at least, if each has so many rows: of four, five eighths are multiplied."""

NEW_BYTES = 1 << 24
"""Bytes of the features of new parts that are compared at once, and of their products (16 MiB)."""

LISTED_STRINGS = 4096
"""Strings whose symbols are listed at a time."""

TOKENS = 65_536
"""Numbers that a symbol can have."""


def feature_count(symbols: int, order: int) -> int:
    """Number of sub-sequences of 1 to ``order`` symbols over an alphabet.

    Example:
        >>> feature_count(2, 5), feature_count(4, 5), feature_count(5, 5)
        (62, 1364, 3905)
    """
    return sum(symbols**length for length in range(1, order + 1))


def subsequence_features(
    strings: EncodedStrings,
    gap_decay: float,
    order: int,
    *,
    symbols: Sequence[int] | IntArray | None = None,
    derivative: bool = False,
    dtype: npt.DTypeLike = np.float64,
    threads: int | None = None,
) -> tuple[FloatArray, FloatArray | None]:
    r"""All sub-sequence features f_u(s), without match decay: h_i(a, b) is a product of those of length i.

    Args:
        strings: n strings.
        gap_decay: Decay per skipped symbol, in (0, 1].
        order: Longest sub-sequence.
        symbols: Numbers of the A symbols that sub-sequences consist of. Default: all that occur, ascending.
        derivative: Also return the derivatives in the gap decay.
        dtype: float64 or float32.
        threads: Number of threads (default: that of `torch.get_num_threads`).

    Returns:
        The features, n x `feature_count` (A, order), and their derivatives or `None`. The columns hold the
        sub-sequences of length 1, then those of length 2, and so on; within a length they are in the order of the
        words read backwards, the last symbol weighing most: aa, ba, ab, bb.

    Raises:
        InputError: For a decay, order or symbols out of range, or features of one string that exceed half of
            `FEATURE_BYTES`, or that might exceed the precision.

    Example:
        >>> from seqopt.encoding import Encoder
        >>> subsequence_features(Encoder().encode(["aab"]), gap_decay=0.5, order=2)[0]
        array([[2. , 1. , 1. , 0. , 1.5, 0. ]])
    """
    decay, _, precision, count = _checked(gap_decay, order, None, dtype, threads)
    chosen = _occurring(strings) if symbols is None else _checked_symbols(symbols)
    _check([strings], len(chosen), order, precision, derivative)
    parts = _features(strings, chosen, decay, order, derivative, precision, count)
    return parts[0], parts[1] if derivative else None


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
    """Weighted sums of all pairs, see `seqopt.kernels.engines.order_sums`; products take the threads of BLAS."""
    columns = a if b is None else b
    symbols = _common(a, columns)
    order = weights.shape[1]
    results = np.zeros((1 + derivative, len(weights), len(a), len(columns)), dtype=dtype)
    row_bytes = _check([a, columns], len(symbols), order, dtype, derivative)
    ranges = _ranges(len(symbols), order)
    step = max(1, FEATURE_BYTES // (2 * max(1, row_bytes)))
    for start in range(0, len(columns), step):
        here = slice(start, start + step)
        right = _features(columns.take(here), symbols, gap_decay, order, derivative, dtype, threads)
        for first in range(0, len(a), step):
            rows = slice(first, first + step)
            left = right
            if b is not None or rows != here:
                left = _features(a.take(rows), symbols, gap_decay, order, derivative, dtype, threads)
            _multiply(left, right, weights.astype(dtype), ranges, results[:, :, rows, here])
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
    symbols = _common(a, b)
    order = weights.shape[1]
    results = np.zeros((1 + derivative, len(weights), len(a)), dtype=dtype)
    row_bytes = _check([a, b], len(symbols), order, dtype, derivative)
    step = max(1, FEATURE_BYTES // (2 * max(1, row_bytes)))
    for start in range(0, len(a), step):
        here = slice(start, start + step)
        left = _features(a.take(here), symbols, gap_decay, order, derivative, dtype, threads)
        right = left if b is a else _features(b.take(here), symbols, gap_decay, order, derivative, dtype, threads)
        for number, columns in enumerate(_ranges(len(symbols), order)):
            parts = [np.einsum("ij,ij->i", left[0][:, columns], right[0][:, columns])]
            if derivative:
                parts.append(
                    np.einsum("ij,ij->i", left[1][:, columns], right[0][:, columns])
                    + np.einsum("ij,ij->i", left[0][:, columns], right[1][:, columns])
                )
            results[:, :, here] += np.stack(parts)[:, None] * weights[:, number, None].astype(dtype)
    return results[0], results[1] if derivative else None


class KnownParts:
    """Features of the parts of some strings, kept for products with those of parts that are new; in single precision.

    Only symbols of the strings have features, since others match nothing.

    Args:
        strings: n strings.
        parts: Their parts: of each place, n.
        gap_decay: Decay per skipped symbol.
        order: Longest sub-sequence.
        threads: Number of threads.

    Example:
        >>> from seqopt.encoding import Encoder
        >>> encode = Encoder().encode
        >>> strings, new = encode(["ACGA", "ACCC"]), encode(["AC", "CA"])
        >>> known = KnownParts(strings, strings.split(2), gap_decay=0.5, order=2)
        >>> known.sums(new, np.array([0, 1]), np.eye(2))[1]  # AC begins both; CA ends none
        array([[1., 0.],
               [1., 0.]], dtype=float32)
    """

    def __init__(
        self,
        strings: EncodedStrings,
        parts: Sequence[EncodedStrings],
        gap_decay: float,
        order: int,
        threads: int | None = None,
    ) -> None:
        self._symbols = _occurring(strings)
        self._gap, self._order, self._threads = gap_decay, order, threads
        self._longest = max(int(part.lengths.max(initial=1)) for part in parts)
        self._values = [self._of(part) for part in parts]

    def _of(self, strings: EncodedStrings) -> FloatArray:
        single = np.dtype(np.float32)
        return _features(strings, self._symbols, self._gap, self._order, False, single, self._threads)[0]

    @property
    def nbytes(self) -> int:
        return sum(values.nbytes for values in self._values)

    def sums(
        self, new: EncodedStrings, places: npt.NDArray[np.intp], weights: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float32]:
        """Weighted sums of some parts with those at the same place of each string.

        Args:
            new: m parts.
            places: The places they are at, ascending.
            weights: ``r x order``.

        Returns:
            ``r x n x m``.
        """
        found = np.empty((len(weights), len(self._values[0]), len(new)), dtype=np.float32)
        ranges, single = _ranges(len(self._symbols), self._order), weights.astype(np.float32)
        row_bytes = 4 * (ranges[-1].stop + self._order * len(self._values[0]))
        step = max(1, NEW_BYTES // row_bytes)
        for first in range(0, len(new), step):
            here = slice(first, first + step)
            features = self._of(new.take(here))
            products = np.empty((self._order, len(self._values[0]), len(features)), dtype=np.float32)
            starts = np.searchsorted(places[here], np.arange(len(self._values) + 1))
            for known, (start, stop) in zip(self._values, pairwise(starts.tolist()), strict=True):
                if start < stop:
                    for product, columns in zip(products, ranges, strict=True):
                        np.matmul(known[:, columns], features[start:stop, columns].T, out=product[:, start:stop])
            found[:, :, here] = np.tensordot(single, products, axes=1)
        return found

    def takes(self, new: EncodedStrings) -> bool:
        """Whether sums with some parts are sure to be within single precision."""
        longest = int(new.lengths.max(initial=1))
        finite = all_finite(self._order, self._gap, self._longest, longest, np.dtype(np.float32))
        return finite and _fits([new], len(self._symbols), self._order)


def saves_new_parts(strings: EncodedStrings, parts: Sequence[EncodedStrings], order: int, largest: int) -> bool:
    """Whether features, kept in at most so many bytes, cost less for new parts of strings than dynamic programs."""
    size, single = feature_count(len(_occurring(strings)), order), np.dtype(np.float32)
    if size * single.itemsize * len(strings) * len(parts) > largest:
        return False
    if not _fits(parts, len(_occurring(strings)), order):
        return False
    length = float(strings.lengths.mean()) / len(parts)
    own = length * (SYMBOL_COST + STATE_COST * size) + len(strings) * (PAIR_COST + size)
    return own < MULTIPLICATIONS_PER_CELL * order * len(strings) * length * length


def _fits(parts: Sequence[EncodedStrings], symbols: int, order: int) -> bool:
    """Whether features of all these are few enough and sure to be within single precision."""
    try:
        _check(parts, symbols, order, np.dtype(np.float32), False)
    except InputError:
        return False
    return True


def cost(a: EncodedStrings, b: EncodedStrings | None, order: int, derivative: bool, paired: bool = False) -> float:
    """Estimated cost of a call, in multiplications of matrix products; infinite where it would be refused."""
    columns = a if b is None else b
    symbols = len(_common(a, columns))
    try:
        _check([a, columns], symbols, order, np.dtype(np.float32), derivative)
    except InputError:
        return np.inf
    size = float(feature_count(symbols, order))
    letters = float(a.lengths.sum()) + (0.0 if columns is a else float(columns.lengths.sum()))
    pairs = len(a) if paired else len(a) * len(columns) * (0.6 if b is None else 1.0)
    return CALL_COST + (1.0 + derivative) * (letters * (SYMBOL_COST + STATE_COST * size) + pairs * (PAIR_COST + size))


def _multiply(
    left: FloatArray, right: FloatArray, weights: FloatArray, ranges: list[slice], results: npt.NDArray[Any]
) -> None:
    """Weighted sums over orders of products of features; ``results`` is parts x r x rows x columns."""
    step = max(1, BLOCK_BYTES // max(1, right.shape[1] * left.itemsize))
    symmetric = left is right
    if symmetric:
        step = min(step, max(FEWEST_ROWS, -(-left.shape[1] // GRAM_BLOCKS)))
    scale = np.empty(0)
    if len(weights) == 1:
        scale = np.concatenate([np.full(part.stop - part.start, w) for part, w in zip(ranges, weights[0], strict=True)])
        ranges, weights = [slice(0, len(scale))], np.ones((1, 1), dtype=left.dtype)
    for start in range(0, left.shape[1], step):
        rows = left[:, start : start + step]
        stop = start + rows.shape[1] if symmetric else right.shape[1]
        block = results[:, :, start : start + step, :stop]
        _multiply_rows(rows * scale if scale.size else rows, right[:, :stop], weights, ranges, block)
        if symmetric:
            corner = block[..., start:]
            corner[...] = (corner + corner.swapaxes(-1, -2)) / 2
            results[:, :, :start, start : start + step] = block[..., :start].swapaxes(-1, -2)


def _multiply_rows(
    left: FloatArray, right: FloatArray, weights: FloatArray, ranges: list[slice], results: npt.NDArray[Any]
) -> None:
    for number, columns in enumerate(ranges):
        transposed = right[0][:, columns].T
        products = [left[0][:, columns] @ transposed]
        if len(results) == 2:
            products.append(left[1][:, columns] @ transposed)
            products[1] += left[0][:, columns] @ right[1][:, columns].T
        for r, weight in enumerate(weights[:, number]):
            if weight:
                for part, product in enumerate(products):
                    results[part, r] += product if weight == 1 else weight * product


def _features(
    strings: EncodedStrings,
    symbols: IntArray,
    gap_decay: float,
    order: int,
    derivative: bool,
    dtype: np.dtype,
    threads: int | None,
) -> FloatArray:
    """Features and derivatives, parts x strings x features."""
    parts = np.zeros((1 + derivative, len(strings), feature_count(len(symbols), order)), dtype=dtype)
    _fill(strings, symbols, gap_decay, order, parts, threads)
    return parts


def _fill(
    strings: EncodedStrings, symbols: IntArray, gap: float, order: int, parts: FloatArray, threads: int | None
) -> None:
    numbers = np.full(TOKENS, -1, dtype=np.int64)
    numbers[symbols] = np.arange(len(symbols))
    starts = np.array([0, *(part.stop for part in _ranges(len(symbols), order))], dtype=np.int64)

    def run(first: int, last: int) -> None:
        # Contiguous arrays throughout: the compiled loops are vectorised for those only.
        rows = strings.tokens[first:last], strings.lengths[first:last], numbers, starts, parts.dtype.type(gap)
        sums = np.zeros((len(parts), starts[-2]), dtype=parts.dtype)
        if len(parts) == 1:
            fill_features(*rows, sums[0], parts[0, first:last])
        else:
            fill_features_and_slopes(*rows, sums[0], sums[1], parts[0, first:last], parts[1, first:last])

    workers = torch.get_num_threads() if threads is None else threads
    count = len(strings)
    if workers == 1 or float(strings.lengths.sum()) * (SYMBOL_COST + starts[-1]) < THREADING_COST:
        run(0, count)
        return
    edges = np.linspace(0, count, 4 * workers + 1).astype(int).tolist()
    with ThreadPoolExecutor(workers) as pool:
        for done in [pool.submit(run, *piece) for piece in pairwise(edges)]:
            done.result()


def _ranges(symbols: int, order: int) -> list[slice]:
    """Columns of the features of each length."""
    ends = [feature_count(symbols, length) for length in range(order + 1)]
    return [slice(start, stop) for start, stop in pairwise(ends)]


@once_per_strings
def _occurring(strings: EncodedStrings) -> IntArray:
    """Symbols that occur, ascending."""
    seen = np.zeros(TOKENS, dtype=bool)
    # In blocks, since NumPy widens an array that it indexes with to eight bytes a token.
    for start in range(0, len(strings), LISTED_STRINGS):
        seen[strings.tokens[start : start + LISTED_STRINGS].ravel()] = True
    return np.flatnonzero(seen[1:]).astype(np.int64) + 1


def _common(a: EncodedStrings, b: EncodedStrings) -> IntArray:
    return _occurring(a) if a is b else np.intersect1d(_occurring(a), _occurring(b))


def _checked_symbols(symbols: Sequence[int] | IntArray) -> IntArray:
    chosen = np.asarray(symbols)
    if chosen.ndim != 1 or (chosen.size and chosen.dtype.kind not in "iu"):
        raise InputError(f"symbols are {symbols!r}; expected a list of token numbers")
    chosen = chosen.astype(np.int64)
    if chosen.size and not 1 <= chosen.min() <= chosen.max() < TOKENS:
        raise InputError(
            f"symbols lie between {chosen.min()} and {chosen.max()}; token numbers are 1 to {TOKENS - 1:,}"
        )
    if len(np.unique(chosen)) < len(chosen):
        raise InputError(f"symbols are {symbols!r}; each must be given once")
    return chosen


def _check(sides: Sequence[EncodedStrings], symbols: int, order: int, dtype: np.dtype, derivative: bool) -> int:
    """Bytes of the features of one string, or a complaint about too many or too large ones."""
    size = feature_count(symbols, order)
    row_bytes = size * dtype.itemsize * (1 + derivative)
    if row_bytes > FEATURE_BYTES // 2:
        raise InputError(
            f"{symbols} common symbols have {size:,} sub-sequences of up to {order}: {row_bytes:,} bytes for one "
            f"string, and at most {FEATURE_BYTES // 2:,} are allowed; choose engine='cpu' or a lower order"
        )
    longest = max(int(strings.lengths.max(initial=0)) for strings in sides)
    # A feature is at most the root of a string's sum with itself; its derivative is at most that many gaps as large,
    # and what adds up to it is held divided by gap decays.
    spare = max(np.log10(max(longest, 1)), -2.0 * np.log10(SMALLEST_SCALE))
    if largest_sum(order, 1.0, longest, longest) / 2 + spare > np.log10(np.finfo(dtype).max):
        raise InputError(
            f"strings of {longest} symbols may have more sub-sequences of {order} symbols than {dtype} can express; "
            f"choose engine='cpu' or a lower order"
        )
    return row_bytes
