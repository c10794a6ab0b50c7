r"""What molecules have in common, and how much of everything they have: similarity of counts, and a sum over them.

A kernel of similarity, such as `seqopt.kernels.MinMaxKernel`, is 1 for any string and itself, so that far from the data
its function returns to the mean: it cannot say that more of the same is better. A linear function of counts can. Their
sum is a function that is linear where nothing else is known, and departs from that where data say so.

References:
    Rasmussen, C. E., Williams, C. K. I. (2006). Gaussian processes for machine learning. MIT Press, sections 2.1.1
        (linear functions) and 4.2.4 (sums).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import gpytorch
import numpy as np
import numpy.typing as npt
import torch
from botorch.utils.constraints import NonTransformedInterval
from gpytorch.priors import NormalPrior
from torch import Tensor

from seqopt.encoding import FeatureRows
from seqopt.encoding.features import FeatureMatrix
from seqopt.errors import InputError
from seqopt.kernels.base import DescribedKernel, shown
from seqopt.kernels.tanimoto import MinMaxKernel

FloatArray = npt.NDArray[np.floating]

USUAL = 1 / 64
"""Median of the prior on the variance of a weight: squared distances of molecules, by counts of environments of radius
2, are about twice 64."""

SPREAD = 2.0
"""Standard deviation of its logarithm."""

BOUNDS = 1e-6, 1.0
"""Smallest and largest variance of a weight."""

BLOCK_ELEMENTS = 1 << 23
"""Features and covariances of a block of columns (64 MiB)."""

MOST = 32.0
"""Length of rows up to which the linear function is one. Of a quarter of a million drug-like molecules, by counts of
environments of radius 2, the longest has 26; a peptide or a polymer, of which nothing was measured, would promise
anything."""

KEPT_BYTES = 1 << 28
"""Largest Gram matrices that are kept."""


class CountsKernel(DescribedKernel):
    r"""Similarity of counts, and a linear function of them.

    .. math::

        k(a, b) = \frac{\sum_i \min(a_i, b_i)}{\sum_i \max(a_i, b_i)} + v \langle \bar a, \bar b \rangle,
        \qquad \bar a = a \min\left(1, \frac{32}{\lVert a \rVert}\right)

    The first term is the `MinMaxKernel`; the second says that each count has a weight of its own, normal with variance
    v, which is learned. Rows that are longer than 32 count as if they had that length, so that what is far larger than
    all else is not chosen for its variance alone. A model needs a constant mean beside it, as `seqopt.models.StringGP`
    has.

    Inputs are rows of counts or other features of at least 0, ``... x n x d``. Pools: `cross`. The Gram matrices of
    the latest rows are kept (up to 256 MiB), so that a step of a fit costs one addition.

    Args:
        weight_variance: v to begin with, from 1e-6 to 1. Default: 1/64.
        log_variance_prior: A gpytorch prior on log v. Default: normal about log(1/64) with standard deviation 2.
        threads: Number of threads on the processor (default: that of `torch.get_num_threads`).

    Raises:
        InputError: For a variance out of these bounds, or threads below 1. When evaluated: for negative features.

    Example:
        >>> rows = FeatureRows(np.array([[1.0, 3.0, 0.0], [0.0, 1.0, 1.0]]))
        >>> CountsKernel(weight_variance=0.1).cross(rows).round(3).tolist()
        [[2.0, 0.5], [0.5, 1.2]]
    """

    normalize = True
    """`cross` takes what `self_similarity` returns."""

    def __init__(
        self,
        weight_variance: float = USUAL,
        *,
        log_variance_prior: gpytorch.priors.Prior | None = None,
        threads: int | None = None,
    ) -> None:
        super().__init__()
        self._similarity = MinMaxKernel(threads=threads)
        self.register_parameter("raw_log_variance", torch.nn.Parameter(torch.tensor(0.0, dtype=torch.float64)))
        # The raw parameter is log v, with bounds for L-BFGS-B.
        bounds = NonTransformedInterval(*map(math.log, BOUNDS)).double()
        self.register_constraint("raw_log_variance", bounds)
        prior = NormalPrior(math.log(USUAL), SPREAD) if log_variance_prior is None else log_variance_prior
        self.register_prior("log_variance_prior", prior, _log_variance, _set_log_variance)
        self.weight_variance = weight_variance
        self._kept: tuple[Tensor, Tensor, Tensor] | None = None

    @property
    def threads(self) -> int | None:
        """Number of threads on the processor."""
        return self._similarity.threads

    @threads.setter
    def threads(self, number: int | None) -> None:
        self._similarity.threads = number

    @property
    def weight_variance(self) -> Tensor:
        """The variance v of a weight. Assign a float to change it."""
        raw: Tensor = self.raw_log_variance
        return raw.clamp(*map(math.log, BOUNDS)).exp()

    @weight_variance.setter
    def weight_variance(self, value: float | Tensor) -> None:
        number = float(value)
        if not BOUNDS[0] <= number <= BOUNDS[1]:
            raise InputError(f"weight_variance is {number}; it must lie between {BOUNDS[0]:g} and {BOUNDS[1]:g}")
        self.initialize(raw_log_variance=math.log(number))

    def _described(self) -> Mapping[str, object]:
        return {"weight_variance": shown(self.weight_variance)}

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        """Covariances of rows of counts, see `gpytorch.kernels.Kernel.forward`.

        Raises:
            InputError: If ``last_dim_is_batch`` is asked for: a single count is no string.
        """
        if params.get("last_dim_is_batch"):
            raise InputError("a CountsKernel has no covariances of single columns (last_dim_is_batch)")
        similar, products = self._parts(x1, x2, diag)
        return similar + self.weight_variance.to(similar) * products

    def _parts(self, x1: Tensor, x2: Tensor, diag: bool) -> tuple[Tensor, Tensor]:
        """What does not depend on v."""
        same = x1 is x2 or (x1.shape == x2.shape and torch.equal(x1, x2))
        keeps = same and not diag and not (x1.requires_grad or x2.requires_grad)
        if keeps and self._kept is not None and _equal(self._kept[0], x1):
            return self._kept[1:]
        similar = self._similarity.forward(x1, x2, diag=diag)
        a, b = (_shortened(x.to(similar.dtype)) for x in (x1, x2))
        products = (a * b).sum(-1) if diag else a @ b.mT
        # What was computed in inference mode cannot be used with a graph later.
        if keeps and similar.nbytes <= KEPT_BYTES and not torch.is_inference_mode_enabled():
            self._kept = x1.detach().clone(), similar, products
        return similar, products

    def self_similarity(self, a: FeatureRows) -> FloatArray:
        """Sum of the counts of each string, float64."""
        return self._similarity.self_similarity(a)

    def variance(self, a: FeatureRows, self_a: FloatArray | None = None) -> FloatArray:
        """k(s, s) of each string, float64."""
        return 1.0 + self._variance * np.minimum(_squares(a.values), MOST**2)

    def cross(
        self,
        a: FeatureRows,
        b: FeatureRows | None = None,
        self_a: FloatArray | None = None,
        self_b: FloatArray | None = None,
        dtype: npt.DTypeLike = np.float64,
    ) -> FloatArray:
        """Covariances between rows of counts, without a graph: see `MinMaxKernel.cross`.

        Time is that of the MinMax kernel and of a sparse product; memory that of the result and some 100 MB.
        """
        values = self._similarity.cross(a, b, self_a, self_b, dtype=dtype)
        rows, columns = a.values, (a if b is None else b).values
        # Of few strings it costs little to write out the zeros; of a pool it would cost most of the time.
        if rows.shape[0] < columns.shape[0]:
            _add_products(values.T, columns, rows, self._variance)
        else:
            _add_products(values, rows, columns, self._variance)
        return values

    @property
    def _variance(self) -> float:
        return float(self.weight_variance.detach())

    def forget(self) -> None:
        """Free what is kept for further evaluations of the same strings, as after a fit."""
        self._kept = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_kept": None}


def _squares(rows: FeatureMatrix) -> npt.NDArray[np.float64]:
    """Squared lengths of rows, n."""
    values = rows.astype(np.float64)
    squares = np.square(values).sum(axis=1) if isinstance(values, np.ndarray) else values.multiply(values).sum(axis=1)
    return np.asarray(squares, dtype=np.float64).reshape(-1)


def _factors(rows: FeatureMatrix) -> npt.NDArray[np.float64]:
    """What rows are multiplied by so that none is too long, n."""
    return MOST / np.sqrt(np.maximum(_squares(rows), MOST**2))


def _shortened(x: Tensor) -> Tensor:
    return x * (MOST / x.square().sum(-1, keepdim=True).clamp_min(MOST**2).sqrt())


def _add_products(values: FloatArray, many: FeatureMatrix, few: FeatureMatrix, factor: float) -> None:
    """Add to ``values``, many x few, the inner products of rows, shortened, times a factor."""
    lengths = _factors(many)[:, None]
    step = max(1, BLOCK_ELEMENTS // max(many.shape[0], many.shape[1], 1))
    for start in range(0, few.shape[0], step):
        block = few[start : start + step]
        dense = (block if isinstance(block, np.ndarray) else block.toarray()).astype(np.float64)
        dense *= factor * _factors(block)[:, None]
        values[:, start : start + step] += lengths * (many @ np.ascontiguousarray(dense.T))


def _equal(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and torch.equal(a, b)


def _log_variance(kernel: CountsKernel) -> Tensor:
    raw: Tensor = kernel.raw_log_variance
    return raw


def _set_log_variance(kernel: CountsKernel, value: Tensor) -> None:
    try:
        kernel.weight_variance = float(value.exp())
    except InputError as error:
        # botorch.optim.utils.sample_all_priors draws again when it reads these words in a RuntimeError.
        raise RuntimeError(f"{error} (out of bounds of its current constraints)") from error
