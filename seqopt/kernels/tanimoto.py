r"""Similarity of two rows of features by how much of them the two share: the Tanimoto and MinMax kernels.

Both divide an overlap by what is left of the sizes of the two rows when it is taken off once,

.. math:: k(a, b) = \frac{o(a, b)}{o(a, a) + o(b, b) - o(a, b)},

and differ in the overlap: :math:`\langle a, b \rangle` for Tanimoto, :math:`\sum_i \min(a_i, b_i)` for MinMax. On
rows of zeros and ones they agree, and are the share of the columns held by either that both hold (Jaccard's index).

On the processor and without a graph, overlaps are summed by compiled code over the non-zero features of one side, each
against many rows of the other at once, so that their cost does not grow with the number of columns. Elsewhere torch
computes them, in blocks. Either way no array of rows x rows x columns is ever held.

References:
    Gower, J. C. (1971). A general coefficient of similarity and some of its properties. Biometrics 27, 857-871.
    Ralaivola, L., Swamidass, S. J., Saigo, H., Baldi, P. (2005). Graph kernels for chemical informatics. Neural
        Networks 18, 1093-1110.
    Ioffe, S. (2010). Improved consistent sampling, weighted minhash and L1 sketching. ICDM, 246-255.
    Griffiths, R.-R. et al. (2023). GAUCHE: a library for Gaussian processes in chemistry. NeurIPS.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from scipy import sparse
from torch import Tensor

from seqopt.encoding import FeatureRows
from seqopt.encoding.features import FeatureMatrix
from seqopt.errors import InputError
from seqopt.kernels.base import DescribedKernel

FloatArray = npt.NDArray[np.floating]

DENSE_ROWS = 128
"""Rows of one side that each non-zero feature of the other meets at once: at 2,048 columns 2 MiB, a cache's worth."""

TILE_ROWS = 32
"""Rows of the other side whose overlaps are held before they are divided and written."""

SPARSE_ROWS = 1 << 16
"""Sparse rows treated at a time."""

DENSE_ELEMENTS = 1 << 22
"""Entries of dense rows made sparse at a time (32 MiB)."""

MINIMA = 1 << 20
"""Minima of pairs of rows that torch holds at a time (8 MiB in float64)."""

THREADING_COST = 5e7
"""Additions below which a call is not worth a second thread: some milliseconds."""


class _OverlapKernel(DescribedKernel):
    """A kernel that is a function of overlaps of rows, without parameters of its own."""

    _minimum: ClassVar[bool]
    """Whether an overlap is a sum of minima, else of products."""

    normalize = True
    """`cross` takes what `self_similarity` returns."""

    def __init__(
        self,
        *,
        threads: int | None = None,
        batch_shape: torch.Size | None = None,
        active_dims: tuple[int, ...] | None = None,
    ) -> None:
        super().__init__(batch_shape=batch_shape, active_dims=active_dims)
        if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
            raise InputError(f"threads is {threads!r}; it must be an integer of at least 1")
        self.threads = threads

    def __getitem__(self, index: Any) -> _OverlapKernel:
        if not self.batch_shape:
            return self
        # gpytorch finds the batch shape of what is left by indexing parameters, of which there are none.
        chosen = copy.deepcopy(self)
        chosen.batch_shape = torch.empty(()).expand(self.batch_shape)[index].shape
        return chosen

    def forward(
        self, x1: Tensor, x2: Tensor, diag: bool = False, last_dim_is_batch: bool = False, **params: Any
    ) -> Tensor:
        """Covariances of rows of features, see `gpytorch.kernels.Kernel.forward`.

        Args:
            x1: ``... x n x d``.
            x2: ``... x m x d``.
            diag: Only k(x1_i, x2_i), ``... x n``.
            last_dim_is_batch: Treat every column as a batch of rows of one feature.
            params: Ignored.

        Returns:
            ``... x n x m`` on the device and in the dtype of ``x1``, float64 for integers.

        Raises:
            InputError: As the class says.
        """
        graph = torch.is_grad_enabled() and (x1.requires_grad or x2.requires_grad)
        # Equal rows of two tensors have gradients of their own, which sizes taken from the overlaps would mix.
        same = x1 is x2 or (not graph and x1.shape == x2.shape and torch.equal(x1, x2))
        for x in (x1,) if same else (x1, x2):
            if self._minimum and x.numel():
                self._check(x.detach().amin().item())
        dtype = x1.dtype if x1.is_floating_point() else torch.float64
        own_batch = self.batch_shape
        if last_dim_is_batch:
            x1, x2 = x1.transpose(-1, -2).unsqueeze(-1), x2.transpose(-1, -2).unsqueeze(-1)
            own_batch = torch.Size([*own_batch, 1]) if own_batch else own_batch
        batch = torch.Size(np.broadcast_shapes(x1.shape[:-2], x2.shape[:-2]))
        if diag and same:
            values = torch.ones(*batch, x1.shape[-2], dtype=dtype, device=x1.device)
        elif diag:
            values = self._of_pairs(_computable(x1), _computable(x2)).to(dtype)
        elif graph or x1.device.type != "cpu":
            values = self._of_matrices(_computable(x1), _computable(x2), same, batch).to(dtype)
        else:
            values = self._compiled(x1.detach(), x2.detach(), same, batch).to(dtype)
        whole_batch = torch.Size(np.broadcast_shapes(batch, own_batch))
        return values.expand(*whole_batch, *values.shape[len(batch) :])

    def _of_pairs(self, x1: Tensor, x2: Tensor) -> Tensor:
        overlaps = (torch.minimum(x1, x2) if self._minimum else x1 * x2).sum(-1)
        return _divided(overlaps, self._sizes(x1), self._sizes(x2))

    def _of_matrices(self, x1: Tensor, x2: Tensor, same: bool, batch: torch.Size) -> Tensor:
        if self._minimum:
            pairs = zip(_matrices(x1, batch), _matrices(x2, batch), strict=True)
            sums = [_sums_of_minima(*pair) for pair in pairs]
            shape = *batch, x1.shape[-2], x2.shape[-2]
            overlaps = torch.stack(sums).reshape(shape) if sums else x1.new_empty(shape)
        else:
            overlaps = x1 @ x2.mT
        if same:
            # Not summed again in another order: a row and itself are at exactly 1.
            sizes = overlaps.diagonal(dim1=-2, dim2=-1)
            return _divided(overlaps, sizes.unsqueeze(-1), sizes.unsqueeze(-2))
        return _divided(overlaps, self._sizes(x1).unsqueeze(-1), self._sizes(x2).unsqueeze(-2))

    def _sizes(self, x: Tensor) -> Tensor:
        return (x if self._minimum else x * x).sum(-1)

    def _compiled(self, x1: Tensor, x2: Tensor, same: bool, batch: torch.Size) -> Tensor:
        precision = np.float32 if x1.dtype == torch.float32 else np.float64
        values = np.empty((batch.numel(), x1.shape[-2], x2.shape[-2]), dtype=precision)
        matrices = zip(values, _matrices(x1, batch), _matrices(x2, batch), strict=True)
        for result, rows, columns in matrices:
            a, b = rows.double().numpy(), None if same else columns.double().numpy()
            self._fill(result, a, b, None, None)
        return torch.from_numpy(values.reshape(*batch, *values.shape[1:]))

    def _fill(
        self,
        result: FloatArray,
        a: FeatureMatrix,
        b: FeatureMatrix | None,
        size_a: FloatArray | None,
        size_b: FloatArray | None,
    ) -> None:
        # Sparse rows are needed more than once.
        a, b = (_sparse(x) if isinstance(x, np.ndarray) and x.size <= DENSE_ELEMENTS else x for x in (a, b))
        size_a = _row_sizes(a, self._minimum) if size_a is None else size_a
        if b is None:
            size_b = size_a
        elif size_b is None:
            size_b = _row_sizes(b, self._minimum)
        _fill(result, a, b, size_a, size_b, self._minimum, self.threads)

    def cross(
        self,
        a: FeatureRows,
        b: FeatureRows | None = None,
        self_a: FloatArray | None = None,
        self_b: FloatArray | None = None,
        dtype: npt.DTypeLike = np.float64,
    ) -> FloatArray:
        """Covariances between rows of features, without a graph: the form for whole pools.

        Time is that of an addition for each non-zero feature of one side and each row of the other. Memory is that of
        the result and at most some 150 MB.

        Args:
            a: The strings of the rows, dense or sparse.
            b: The strings of the columns, likewise; `None` stands for ``a`` again and costs half.
            self_a: `self_similarity` of ``a``, if at hand.
            self_b: `self_similarity` of ``b``.
            dtype: float64 or float32. Computed in float64 either way.

        Returns:
            ``batch_shape x len(a) x len(b)``.

        Raises:
            InputError: If an argument does not fit.
        """
        if np.dtype(dtype) not in (np.dtype(np.float32), np.dtype(np.float64)):
            raise InputError(f"dtype is {np.dtype(dtype)}; covariances are float64 or float32")
        rows, columns = self._rows(a), None if b is None else self._rows(b)
        if columns is not None and rows.shape[1] != columns.shape[1]:
            raise InputError(f"rows of {rows.shape[1]} and of {columns.shape[1]} features cannot be compared")
        values = np.empty((rows.shape[0], rows.shape[0] if columns is None else columns.shape[0]), dtype=dtype)
        # All elements of a batch shape are the same.
        sizes = [own if own is None else own.reshape(-1, own.shape[-1])[0] for own in (self_a, self_b)]
        self._fill(values, rows, columns, *sizes)
        return np.broadcast_to(values, (*self.batch_shape, *values.shape)).copy() if self.batch_shape else values

    def self_similarity(self, a: FeatureRows) -> FloatArray:
        """Overlap of each string with itself, float64, ``batch_shape x len(a)``.

        Raises:
            InputError: As `cross` does.
        """
        sizes = _row_sizes(self._rows(a), self._minimum)
        return np.broadcast_to(sizes, (*self.batch_shape, len(sizes))).copy()

    def variance(self, a: FeatureRows, self_a: FloatArray | None = None) -> FloatArray:
        """k(s, s) of each string, float64, ``batch_shape x len(a)``: 1."""
        return np.ones((*self.batch_shape, len(a)))

    def _rows(self, rows: FeatureRows) -> FeatureMatrix:
        if not isinstance(rows, FeatureRows):
            raise InputError(
                f"{type(self).__name__} compares features, FeatureRows; got {type(rows).__name__}: encode strings by "
                f"a FeatureEncoder"
            )
        values = rows.values if isinstance(rows.values, np.ndarray) else _canonical(rows.values)
        if self._minimum:
            self._check(float((values if isinstance(values, np.ndarray) else values.data).min(initial=0.0)))
        return values

    def _check(self, lowest: float) -> None:
        if lowest < 0:
            raise InputError(f"{type(self).__name__} compares features of at least 0; one is {lowest}")


class TanimotoKernel(_OverlapKernel):
    r"""Tanimoto similarity of rows of features, binary, counts or any other.

    .. math::

        k(a, b) = \frac{\langle a, b \rangle}{\|a\|^2 + \|b\|^2 - \langle a, b \rangle}

    It is 1 for equal rows and, for rows without negative features, between 0 and 1; 0 where they share none. On zeros
    and ones it is the number of features held by both over that of those held by either. Two rows of zeros are
    equal: their covariance is 1 (0/0), and 0 with any other row. It is positive semi-definite on all real rows: with
    1 / (|a|^2 + |b|^2), the integral over t of exp(-t |a|^2) exp(-t |b|^2), it is a power series in positive
    semi-definite kernels (Ralaivola et al. 2005 for binary rows).

    The kernel has no parameters: `gpytorch.kernels.ScaleKernel` gives it a variance. Covariances of integers are
    exact to the last division.

    Inputs are rows of features, ``... x n x d``, of any floating-point dtype and on any device. Gradients in the
    features, where they are wanted, are those of the formula. Without gradients and on the processor compiled code
    works on the non-zero features only. Pools: `cross`.

    Args:
        threads: Number of threads on the processor (default: that of `torch.get_num_threads`).
        batch_shape: Batch shape; all its elements are the same.
        active_dims: Columns of the input that hold the features (default: all).

    Raises:
        InputError: For threads below 1. In `cross`: for inputs that are not features, or not as many.

    Example:
        >>> TanimotoKernel()(torch.tensor([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]])).to_dense()
        tensor([[1.0000, 0.3333],
                [0.3333, 1.0000]])
    """

    _minimum = False


class MinMaxKernel(_OverlapKernel):
    r"""MinMax similarity of rows of counts or other features of at least 0 (Ioffe 2010; Ralaivola et al. 2005).

    .. math:: k(a, b) = \frac{\sum_i \min(a_i, b_i)}{\sum_i \max(a_i, b_i)}

    It is 1 for equal rows and between 0 and 1 otherwise; 0 where they share no feature. On zeros and ones it is the
    `TanimotoKernel`; on counts it is what RDKit calls Tanimoto similarity (``DataStructs.TanimotoSimilarity`` of count
    fingerprints). Two rows of zeros are equal: their covariance is 1 (0/0), and 0 with any other row.

    The kernel has no parameters: `gpytorch.kernels.ScaleKernel` gives it a variance. The maxima follow from the
    minima, as min + max = a + b. Sums of minima of integers are exact.

    Inputs are rows of features, ``... x n x d``, of any floating-point dtype and on any device. Gradients in the
    features exist where no two that meet are equal; of two equal ones, each is taken for the smaller one by half.
    Without gradients and on the processor compiled code works on the non-zero features only. Pools: `cross`.

    Args:
        threads: Number of threads on the processor (default: that of `torch.get_num_threads`).
        batch_shape: Batch shape; all its elements are the same.
        active_dims: Columns of the input that hold the features (default: all).

    Raises:
        InputError: For threads below 1. When evaluated: for negative features. In `cross`: for inputs that are not
            features, or not as many.

    Example:
        >>> MinMaxKernel()(torch.tensor([[1.0, 3.0, 0.0], [0.0, 1.0, 1.0]])).to_dense()
        tensor([[1.0000, 0.2000],
                [0.2000, 1.0000]])
    """

    _minimum = True


def _computable(x: Tensor) -> Tensor:
    return x if x.dtype in (torch.float32, torch.float64) else x.double()


def _matrices(x: Tensor, batch: torch.Size) -> list[Tensor]:
    """The matrices of a batch, one after the other; views, however often one is repeated."""
    expanded = x.expand(*batch, *x.shape[-2:])
    return [expanded[index] for index in np.ndindex(*batch)]


def _divided(overlaps: Tensor, size1: Tensor, size2: Tensor) -> Tensor:
    total = size1 + size2 - overlaps
    empty = total == 0
    # No division by zero even where its result is not taken: its gradient would be no number.
    return torch.where(empty, torch.ones_like(total), overlaps / torch.where(empty, torch.ones_like(total), total))


def _sums_of_minima(a: Tensor, b: Tensor) -> Tensor:
    """Sums over columns of the minima of all pairs of rows, ``n x m``, in blocks; a graph holds none of the minima."""
    pairs = max(1, MINIMA // max(1, a.shape[1]))
    wide = max(1, min(pairs, len(b)))
    blocks = [
        torch.cat([torch.minimum(rows[:, None], columns).sum(-1) for columns in torch.split(b, wide)], dim=1)
        for rows in torch.split(a, max(1, pairs // wide))
    ]
    return torch.cat(blocks)


def _canonical(values: FeatureMatrix) -> FeatureMatrix:
    """Sparse rows in which every column appears once at most."""
    rows = values if isinstance(values, sparse.csr_array) else sparse.csr_array(values)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def _sparse(rows: npt.NDArray[np.floating]) -> FeatureMatrix:
    """Dense rows as float64 sparse ones, in a fifth of the time that `scipy.sparse.csr_array` takes."""
    indices = np.flatnonzero(rows != 0)
    row, column = np.divmod(indices, rows.shape[1])
    ends = np.cumsum([0, *np.bincount(row, minlength=len(rows))])
    entries = rows.reshape(-1)[indices].astype(np.float64, copy=False)
    return sparse.csr_array((entries, column, ends), shape=rows.shape)


def _sparse_blocks(values: FeatureMatrix) -> Iterator[tuple[int, FeatureMatrix]]:
    """Rows as sparse float64 blocks, each with the number of its first row."""
    rows, columns = values.shape
    if isinstance(values, np.ndarray):
        step = max(1, DENSE_ELEMENTS // max(1, columns))
        for start in range(0, rows, step):
            yield start, _sparse(values[start : start + step])
        return
    for start in range(0, rows, SPARSE_ROWS):
        ends = values.indptr[start : start + SPARSE_ROWS + 1]
        part = slice(ends[0], ends[-1])
        entries = values.data[part].astype(np.float64, copy=False), values.indices[part], ends - ends[0]
        yield start, sparse.csr_array(entries, shape=(len(ends) - 1, columns))


def _row_sizes(values: FeatureMatrix, minimum: bool) -> npt.NDArray[np.float64]:
    """Overlap of each row with itself."""
    sizes = np.empty(values.shape[0])
    ones = np.ones(values.shape[1])
    for start, block in _sparse_blocks(values):
        own = block.data if minimum else block.data**2
        sizes[start : start + block.shape[0]] = sparse.csr_array((own, block.indices, block.indptr), block.shape) @ ones
    return sizes


def _fill(
    result: FloatArray,
    a: FeatureMatrix,
    b: FeatureMatrix | None,
    size_a: FloatArray,
    size_b: FloatArray,
    minimum: bool,
    threads: int | None,
) -> None:
    """Fill ``result``, len(a) x len(b) and contiguous, with similarities; ``b=None`` stands for a."""
    columns = a if b is None else b
    sparse_side, dense_side, sparse_sizes, dense_sizes = columns, a, size_b, size_a
    sparse_stride, dense_stride = 1, columns.shape[0]
    if a.shape[0] > columns.shape[0]:
        sparse_side, dense_side, sparse_sizes, dense_sizes = a, columns, size_a, size_b
        sparse_stride, dense_stride = dense_stride, sparse_stride
    divide = _compiled_division()
    workers = torch.get_num_threads() if threads is None else threads
    height = _height(dense_side.shape[0])
    with ThreadPoolExecutor(workers) as pool:
        for start, block in _sparse_blocks(sparse_side):
            for first in range(0, dense_side.shape[0], height):
                # Of a symmetric matrix, what stands below the blocks on the diagonal is copied from above them.
                begin = max(0, first - start) if b is None else 0
                if begin >= block.shape[0]:
                    continue
                dense = _transposed(dense_side[first : first + height])
                run = partial(
                    divide,
                    block.indptr,
                    block.indices,
                    block.data,
                    dense,
                    minimum,
                    sparse_sizes[start:],
                    dense_sizes[first:],
                    result.reshape(-1),
                    start * sparse_stride + first * dense_stride,
                    sparse_stride,
                    dense_stride,
                )
                cost = float(block.indptr[-1] - block.indptr[begin]) * dense.shape[1]
                pieces = 4 * workers if workers > 1 and cost > THREADING_COST else 1
                cuts = np.linspace(begin, block.shape[0], pieces + 1).astype(int).tolist()
                if pieces == 1:
                    run(*cuts)
                else:
                    list(pool.map(run, cuts[:-1], cuts[1:]))
    if b is None:
        for last in range(height, len(result), height):
            result[last:, last - height : last] = result[last - height : last, last:].T


def _height(rows: int) -> int:
    """Rows of each dense block, about equal."""
    blocks = max(1, -(-rows // DENSE_ROWS))
    return max(1, -(-rows // blocks))


def _transposed(rows: FeatureMatrix) -> npt.NDArray[np.float64]:
    columns = rows.T if isinstance(rows, np.ndarray) else rows.T.toarray(order="C")
    return np.ascontiguousarray(columns, dtype=np.float64)


@cache
def _compiled_division() -> Any:
    # Loading Numba takes half a second, which most uses of this module can do without.
    from seqopt.utils.compiling import compiled

    return compiled(_divide_overlaps)


def _divide_overlaps(
    ends: npt.NDArray[np.integer],
    columns: npt.NDArray[np.integer],
    entries: npt.NDArray[np.float64],
    dense: npt.NDArray[np.float64],
    minimum: bool,
    sparse_sizes: npt.NDArray[np.float64],
    dense_sizes: npt.NDArray[np.float64],
    result: FloatArray,
    offset: int,
    sparse_stride: int,
    dense_stride: int,
    begin: int,
    end: int,
) -> None:
    """Similarities of sparse rows with dense ones.

    Args:
        ends: Where each sparse row begins in ``entries``, and the last one ends.
        columns: Column of each entry.
        entries: Non-zero features of the sparse rows.
        dense: ``d x k``, the dense rows as columns.
        minimum: Whether overlaps are sums of minima, else of products.
        sparse_sizes: Overlap of each sparse row with itself.
        dense_sizes: Overlap of each dense row with itself.
        result: Flat; that of sparse row i and dense row j is at ``offset + i * sparse_stride + j * dense_stride``.
        offset: See ``result``.
        sparse_stride: See ``result``.
        dense_stride: See ``result``.
        begin: First sparse row to treat.
        end: The one after the last.
    """
    width = dense.shape[1]
    tile = np.empty((TILE_ROWS, width))
    for first in range(begin, end, TILE_ROWS):
        last = min(end, first + TILE_ROWS)
        tile[:] = 0.0
        for row in range(first, last):
            overlaps = tile[row - first]
            for index in range(ends[row], ends[row + 1]):
                entry = entries[index]
                others = dense[columns[index]]
                if minimum:
                    for k in range(width):
                        overlaps[k] += min(entry, others[k])
                else:
                    for k in range(width):
                        overlaps[k] += entry * others[k]
            for k in range(width):
                total = sparse_sizes[row] + dense_sizes[k] - overlaps[k]
                overlaps[k] = overlaps[k] / total if total != 0.0 else 1.0
        # Neighbours in memory are written one after the other.
        if sparse_stride == 1:
            for k in range(width):
                for row in range(first, last):
                    result[offset + row + k * dense_stride] = tile[row - first, k]
        else:
            for row in range(first, last):
                for k in range(width):
                    result[offset + row * sparse_stride + k] = tile[row - first, k]
