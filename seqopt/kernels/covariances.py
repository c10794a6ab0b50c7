"""Covariances of many pairs of strings, and their gradients, from per-order sums: in blocks, kept or computed again.

With w the weight of each order (match decay to the power 2i, times a weight of its own) and h_i the per-order sums,

    k(a, b) = sum_i w_i h_i(a, b),    K(a, b) = k(a, b) / sqrt(k(a, a) k(b, b)),

so that for an upstream gradient G and g = G / sqrt(k(a, a) k(b, b)),

    dL/dw_i  = sum_ab g h_i(a, b)                - 1/2 sum_s q_s h_i(s, s) / k(s, s),
    dL/dgap  = sum_i w_i (sum_ab g dh_i(a, b)/dgap - 1/2 sum_s q_s dh_i(s, s)/dgap / k(s, s)),

where q_s adds G K over the pairs that hold s. Nothing but the sums themselves is as large as the matrix, and those are
visited block by block, so they may as well be computed again when they exceed a memory budget.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from seqopt.encoding import EncodedStrings
from seqopt.errors import InputError
from seqopt.kernels.cache import SumsCache, fingerprint
from seqopt.kernels.engines import order_sums, paired_order_sums, self_order_sums
from seqopt.utils.slices import slices_of

BLOCK_BYTES = 1 << 26
"""Bytes of the per-order sums of one block (64 MiB)."""

WHOLE_GRAM = 1024
"""Strings up to which a Gram matrix is computed in one call, which does every pair once."""

GRAM_ROWS = 256
"""Rows of a block of a larger Gram matrix. The corner of each block that is computed twice is this wide."""


@dataclass(frozen=True)
class Program:
    """What engines are asked for.

    Attributes:
        order: Longest sub-sequence.
        gap: Gap decay.
        dtype: Precision of the sums of pairs; those of strings with themselves are always float64.
        engine: See `seqopt.kernels.engines.order_sums`, also for the rest.
        threads: Number of threads.
        partitions: Contiguous parts.
    """

    order: int
    gap: float
    dtype: np.dtype
    engine: str
    threads: int | None
    partitions: int

    @property
    def options(self) -> dict[str, Any]:
        """Keyword arguments of `seqopt.kernels.engines.order_sums`."""
        return {
            "gap_decay": self.gap,
            "order": self.order,
            "engine": self.engine,
            "threads": self.threads,
            "partitions": self.partitions,
        }


class Block(NamedTuple):
    """Sums of the pairs at ``batches x rows x columns``.

    Attributes:
        batches: Which matrices of the batch.
        rows: Which rows.
        columns: Which columns.
        values: ``order x batches x rows x columns``; order is 1 for weighted sums.
        slopes: Their derivatives in the gap decay.
    """

    batches: slice
    rows: slice
    columns: slice
    values: Tensor
    slopes: Tensor | None

    @property
    def slices(self) -> tuple[slice, slice, slice]:
        """Where the block lies in ``batches x rows x columns``."""
        return self.batches, self.rows, self.columns


class Pairs(ABC):
    """A batch of matrices of pairs of strings.

    Args:
        rows: The strings of the rows, those of the first matrix first.
        columns: The strings of the columns, likewise.
        shape: Number of matrices, of rows and of columns.

    Attributes:
        symmetric: Whether rows and columns are the same strings of one matrix. Its blocks then cover the lower
            triangle, each up to the diagonal and with all rows of the square that it cuts off there.
    """

    symmetric: bool = False

    def __init__(self, rows: EncodedStrings, columns: EncodedStrings, shape: tuple[int, int, int]) -> None:
        self.rows = rows
        self.columns = columns
        self.shape = shape

    @cached_property
    def key(self) -> tuple[Any, ...]:
        """Equal for equal pairs."""
        return type(self).__name__, self.symmetric, self.shape, fingerprint(self.rows), fingerprint(self.columns)

    @abstractmethod
    def blocks(self, program: Program, slopes: bool, weights: Tensor | None = None) -> Iterator[Block]:
        """The sums of every pair, weighted if weights are given, one block after the other."""

    def known_selves(self, program: Program, slopes: bool) -> tuple[Tensor, Tensor | None] | None:
        """Sums of each string with itself and their derivatives, order x strings, where no engine is needed for them.

        Only pairs of which rows and columns are the same strings have any.
        """
        return None

    def size(self, program: Program, slopes: bool) -> int:
        """Bytes of the sums of every pair, without weights."""
        return int(np.prod(self.shape)) * program.order * program.dtype.itemsize * (1 + slopes)


class Matrix(Pairs):
    """Every row string with every column string.

    Args:
        rows: The strings of the rows.
        columns: The strings of the columns; `None` stands for the rows again.
    """

    def __init__(self, rows: EncodedStrings, columns: EncodedStrings | None) -> None:
        self.symmetric = columns is None
        columns = rows if columns is None else columns
        super().__init__(rows, columns, (1, len(rows), len(columns)))

    def size(self, program: Program, slopes: bool) -> int:
        """See `Pairs.size`."""
        if not self.symmetric:
            return super().size(program, slopes)
        layout = gram_layout(len(self.rows), program.order)
        pairs = sum((rows.stop - rows.start) * columns.stop for rows, columns in layout)
        return pairs * program.order * program.dtype.itemsize * (1 + slopes)

    def blocks(self, program: Program, slopes: bool, weights: Tensor | None = None) -> Iterator[Block]:
        """See `Pairs.blocks`."""
        _, rows, columns = self.shape
        if self.symmetric:
            layout = gram_layout(rows, program.order)
        else:
            bytes_of_row = columns * program.order * program.dtype.itemsize * (1 + slopes)
            layout = [(part, slice(0, columns)) for part in slices_of(rows, BLOCK_BYTES // max(1, bytes_of_row))]
        whole = None
        if self.symmetric and rows <= WHOLE_GRAM:
            whole = self._sums(program, slopes, weights, self.rows, None)
        for slices in layout:
            if whole is None:
                sums = self._sums(program, slopes, weights, self.rows.take(slices[0]), self.columns.take(slices[1]))
                values, derivatives = (None if part is None else part[:, None] for part in sums)
            else:
                values, derivatives = (None if part is None else part[:, None, *slices].contiguous() for part in whole)
            assert values is not None
            yield Block(slice(0, 1), *slices, values, derivatives)

    @staticmethod
    def _sums(
        program: Program, slopes: bool, weights: Tensor | None, rows: EncodedStrings, columns: EncodedStrings | None
    ) -> tuple[Tensor, Tensor | None]:
        matrix = None if weights is None else weights.numpy()[None]
        return _tensors(
            order_sums(rows, columns, derivative=slopes, weights=matrix, dtype=program.dtype, **program.options)
        )


class Batches(Pairs):
    """The pairs within each of many small matrices, such as single pairs.

    Args:
        rows: The strings of the rows, those of the first matrix first.
        columns: The strings of the columns, likewise.
        batches: Number of matrices; it divides both numbers of strings.
    """

    def __init__(self, rows: EncodedStrings, columns: EncodedStrings, batches: int) -> None:
        super().__init__(rows, columns, (batches, len(rows) // max(1, batches), len(columns) // max(1, batches)))

    def blocks(self, program: Program, slopes: bool, weights: Tensor | None = None) -> Iterator[Block]:
        """See `Pairs.blocks`."""
        batches, rows, columns = self.shape
        matrix = None if weights is None else weights.numpy()[None]
        # The strings of each pair are gathered, so that their symbols count too.
        bytes_of_one = program.order * program.dtype.itemsize * (1 + slopes) + self.rows.width + self.columns.width
        for part in slices_of(batches, BLOCK_BYTES // max(1, rows * columns * bytes_of_one)):
            chosen = np.arange(part.start, part.stop)[:, None, None]
            of_rows = np.broadcast_to(chosen * rows + np.arange(rows)[:, None], (len(chosen), rows, columns))
            of_columns = np.broadcast_to(chosen * columns + np.arange(columns), (len(chosen), rows, columns))
            sums = _tensors(
                paired_order_sums(
                    self.rows.take(of_rows.ravel()),
                    self.columns.take(of_columns.ravel()),
                    derivative=slopes,
                    weights=matrix,
                    dtype=program.dtype,
                    **program.options,
                )
            )
            values, derivatives = (
                None if part is None else part.reshape(len(part), len(chosen), rows, columns) for part in sums
            )
            assert values is not None
            yield Block(part, slice(0, rows), slice(0, columns), values, derivatives)


def sums_key(pairs: Pairs, program: Program) -> Hashable:
    """Under what the sums of pairs are kept."""
    return "pairs", pairs.key, program


class Covariances:
    """Covariances of pairs as a function of the weights of the orders and of the gap decay.

    Args:
        pairs: The pairs.
        program: What engines are asked for, at one gap decay.
        normalize: Divide by the self-similarities.
        cache: Keeps sums.
        slopes: Whether a gradient in the gap decay will be asked for.
        keep: Whether to keep the sums of the pairs, if the cache is large enough for them.
    """

    def __init__(
        self, pairs: Pairs, program: Program, *, normalize: bool, cache: SumsCache, slopes: bool, keep: bool
    ) -> None:
        self.pairs = pairs
        self.program = program
        self.normalize = normalize
        self._cache = cache
        self._slopes = slopes
        self._kept = keep and pairs.size(program, slopes) <= cache.budget

    def value(self, weights: Tensor) -> Tensor:
        """Covariances, ``batches x rows x columns``, in the precision of the program.

        Args:
            weights: Of the orders, float64.

        Raises:
            InputError: If the sums of a string with itself exceed double precision.
        """
        result = torch.empty(self.pairs.shape, dtype=_precision(self.program.dtype))
        scales = self._scales(weights)
        blocks = self._blocks(self._slopes) if self._kept else self.pairs.blocks(self.program, False, weights)
        for block in blocks:
            values = _weighted(weights, block.values) if self._kept else block.values[0]
            if scales is not None:
                values *= _outer(scales, block)
            if self.pairs.symmetric:
                corner = _corner(block, values)
                corner.copy_((corner + corner.mT) / 2)
                if scales is not None:
                    corner.diagonal(dim1=-2, dim2=-1).copy_(scales[0][:, block.rows] > 0)
                result[block.batches, block.columns, block.rows] = values.mT
            result[block.slices] = values
        if not self.normalize:
            check_finite(result, self.pairs.columns, self.program.order, self.program.gap)
        return result

    def weighted_sums(self, weights: Tensor) -> Tensor:
        """Weighted sums of pairs of one matrix before they are normalised, ``r x rows x columns``, float64.

        Args:
            weights: Of the orders, ``r x order``, float64.
        """
        _, rows, columns = self.pairs.shape
        result = torch.empty(len(weights), rows, columns, dtype=torch.float64)
        for block in self._blocks(False):
            values = block.values[:, 0].double()
            sums = (weights @ values.reshape(len(values), -1)).reshape(-1, *values.shape[1:])
            if self.pairs.symmetric:
                result[:, block.columns, block.rows] = sums.mT
            result[:, block.rows, block.columns] = sums
        return result

    def gradients(self, weights: Tensor, gradient: Tensor, by_gap: bool) -> tuple[Tensor, Tensor]:
        """Derivatives of a loss in the weights (as many as orders) and in the gap decay (0 unless asked for).

        Args:
            weights: As in `value`.
            gradient: Derivatives of the loss in what `value` returned.
            by_gap: Whether the derivative in the gap decay is needed.
        """
        by_weight, by_slope = torch.zeros(2, self.program.order, dtype=torch.float64)
        scales = self._scales(weights)
        batches, rows, columns = self.pairs.shape
        through_rows = torch.zeros(batches, rows, dtype=torch.float64)
        through_columns = torch.zeros(batches, columns, dtype=torch.float64)
        for block in self._blocks(by_gap):
            upstream = gradient[block.slices].double()
            if self.pairs.symmetric:
                upstream = upstream + gradient[block.batches, block.columns, block.rows].mT
                corner = _corner(block, upstream)
                corner /= 2
                if self.normalize:
                    corner.diagonal(dim1=-2, dim2=-1).zero_()
            if scales is not None:
                upstream = upstream * _outer(scales, block)
            by_weight += _contracted(block.values, upstream)
            if by_gap:
                assert block.slopes is not None
                by_slope += _contracted(block.slopes, upstream)
            if scales is not None:
                products = upstream * _weighted(weights, block.values)
                through_rows[block.batches, block.rows] += products.sum(-1)
                through_columns[block.batches, block.columns] += products.sum(-2)
        if scales is not None:
            through = [(self.pairs.rows, through_rows, scales[0]), (self.pairs.columns, through_columns, scales[1])]
            for strings, totals, scale in through:
                share = -0.5 * (totals * scale**2).reshape(-1)
                values, slopes = self._selves(strings, by_gap)
                by_weight += values @ share
                if by_gap:
                    assert slopes is not None
                    by_slope += slopes @ share
        return by_weight, weights @ by_slope

    def _blocks(self, slopes: bool) -> Iterable[Block]:
        if not self._kept:
            return self.pairs.blocks(self.program, slopes)
        key = sums_key(self.pairs, self.program)
        return self._cache.get(key, slopes, lambda: list(self.pairs.blocks(self.program, slopes)))

    def _scales(self, weights: Tensor) -> tuple[Tensor, Tensor] | None:
        """1 / sqrt(k(s, s)), 0 for the empty string, of rows and of columns."""
        if not self.normalize:
            return None
        batches, *counts = self.pairs.shape
        sides: list[Tensor] = []
        for strings, count in zip((self.pairs.rows, self.pairs.columns), counts, strict=True):
            if sides and strings is self.pairs.rows:
                return sides[0], sides[0]
            own = weights @ self._selves(strings, self._slopes)[0]
            check_finite(own, strings, self.program.order, self.program.gap)
            sides.append(inverse_root(own).reshape(batches, count))
        return sides[0], sides[1]

    def _selves(self, strings: EncodedStrings, slopes: bool) -> tuple[Tensor, Tensor | None]:
        known = self.pairs.known_selves(self.program, slopes)
        if known is not None:
            return known
        key = ("selves", fingerprint(strings), self.program)
        nowhere = slice(0, 0)

        def compute() -> list[Block]:
            sums = self_order_sums(strings, derivative=slopes, **self.program.options)
            return [Block(nowhere, nowhere, nowhere, *_tensors(sums))]

        (block,) = self._cache.get(key, slopes, compute)
        return block.values, block.slopes


class CovariancesOf(torch.autograd.Function):
    """`Covariances.value` as a function of weights and gap decay, once differentiable."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, gap: Tensor, covariances: Covariances) -> Tensor:
        ctx.covariances = covariances
        ctx.save_for_backward(weights)
        return covariances.value(weights.detach())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        (weights,) = ctx.saved_tensors
        by_weight, by_gap = ctx.covariances.gradients(weights, gradient, ctx.needs_input_grad[1])
        return by_weight, by_gap if ctx.needs_input_grad[1] else None, None


def inverse_root(values: Tensor) -> Tensor:
    """1 / sqrt(values), 0 where a value is 0."""
    return torch.where(values > 0, values.rsqrt(), torch.zeros_like(values))


def check_finite(own: Tensor, strings: EncodedStrings, order: int, gap: float) -> None:
    """Complain about covariances that exceed double precision.

    Raises:
        InputError: Naming order, gap decay and length.
    """
    if not bool(torch.isfinite(own).all()):
        longest = int(strings.lengths.max(initial=0))
        raise InputError(
            f"sub-sequences of up to {order} symbols at gap decay {gap:g} in strings of {longest} symbols add up "
            f"to more than double precision holds: choose a lower order, a lower gap decay or partitions"
        )


def gram_layout(count: int, order: int) -> list[tuple[slice, slice]]:
    """Rows and columns of the blocks that cover the lower triangle of a Gram matrix of ``count`` strings."""
    if count <= WHOLE_GRAM:
        # Four blocks leave out three eighths of a small matrix.
        step = max(64, -(-count // 4))
    else:
        # Of the largest block, in double precision and with derivatives.
        step = max(16, min(GRAM_ROWS, BLOCK_BYTES // (16 * order * count)))
    return [(rows, slice(0, rows.stop)) for rows in slices_of(count, step)]


def _precision(dtype: np.dtype) -> torch.dtype:
    return torch.float32 if dtype == np.float32 else torch.float64


def _tensors(sums: tuple[Any, Any]) -> tuple[Tensor, Tensor | None]:
    values, slopes = sums
    return torch.from_numpy(values), None if slopes is None else torch.from_numpy(slopes)


def _weighted(weights: Tensor, values: Tensor) -> Tensor:
    return (weights.to(values) @ values.reshape(len(values), -1)).reshape(values.shape[1:])


def _contracted(values: Tensor, upstream: Tensor) -> Tensor:
    # In double precision: an entry is small against the sum over a large Gram matrix.
    return values.reshape(len(values), -1).double() @ upstream.reshape(-1)


def _outer(scales: tuple[Tensor, Tensor], block: Block) -> Tensor:
    rows, columns = scales
    return rows[block.batches, block.rows, None] * columns[block.batches, None, block.columns]


def _corner(block: Block, values: Tensor) -> Tensor:
    """The square of a block of a symmetric matrix that lies on the diagonal, as a view."""
    return values[..., block.rows]
