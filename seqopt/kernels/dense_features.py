r"""Kernels on dense features, such as embeddings: smooth in their distance, or linear.

References:
    Rasmussen, C. E. and Williams, C. K. I. (2006). Gaussian Processes for Machine Learning, sections 2.7 and 4.2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeAlias

import gpytorch
import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from seqopt.encoding import FeatureRows
from seqopt.errors import InputError
from seqopt.kernels.base import DescribedKernel
from seqopt.kernels.hamming import LENGTHSCALE_BOUNDS, DistanceKernel, FloatArray

Smoothness: TypeAlias = Literal["rbf", "matern"]

BLOCK_ELEMENTS = 1 << 22
"""Covariances, or features, of a block (32 MiB)."""


def _dense(rows: Any, kernel: str) -> npt.NDArray[np.float64]:
    if not isinstance(rows, FeatureRows):
        raise InputError(
            f"the {kernel} kernel compares features, FeatureRows; got {type(rows).__name__}: encode strings by a "
            "FeatureEncoder"
        )
    return rows.dense()


def _blocks(rows: FeatureRows, others: int) -> Iterator[slice]:
    size = max(1, BLOCK_ELEMENTS // max(others, rows.width, 1))
    return (slice(start, min(start + size, len(rows))) for start in range(0, len(rows), size))


class SmoothFeatureKernel(DistanceKernel):
    r"""Squared-exponential or Matern kernel on the distance r of dense features, with one lengthscale.

    .. math::

        k_\text{rbf} = \exp\left(-\frac{r^2}{2 \ell^2}\right), \qquad
        k_\text{matern} = \left(1 + \frac{\sqrt5 r}{\ell} + \frac{5 r^2}{3 \ell^2}\right) e^{-\sqrt5 r / \ell}

    The prior variance is 1. Features of a pool may be in a file (`seqopt.encoding.feature_file.MappedRows`): they are
    read and compared in blocks.

    Args:
        form: ``"rbf"`` or ``"matern"`` (of smoothness 5/2).
        lengthscale: :math:`\ell`, in units of the features. Default: 1, until `adapt` sees features.
        lengthscale_prior: A gpytorch prior on it. Default: log-normal about the median distance of the strings that a
            model is fitted to, with 95 % of its mass within a factor of 7.
        lengthscale_bounds: Lowest and highest lengthscale, above 0.
        batch_shape: Batch shape of the lengthscale.
        active_dims: Columns of the input that hold the features (default: all).

    Raises:
        InputError: For another form, or a lengthscale that is out of range.

    Example:
        >>> kernel = SmoothFeatureKernel(lengthscale=1.0)
        >>> kernel.cross(FeatureRows(np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]))).round(3)
        array([[1.   , 0.607, 0.368],
               [0.607, 1.   , 0.607],
               [0.368, 0.607, 1.   ]])
    """

    _name = "smooth"
    _first_lengthscale = 1.0
    _ratio = 1.0

    def __init__(
        self,
        form: Smoothness = "rbf",
        *,
        lengthscale: float | Tensor | None = None,
        lengthscale_prior: gpytorch.priors.Prior | None = None,
        lengthscale_bounds: tuple[float, float] = LENGTHSCALE_BOUNDS,
        batch_shape: torch.Size | None = None,
        active_dims: tuple[int, ...] | None = None,
    ) -> None:
        if form not in ("rbf", "matern"):
            raise InputError(f"form is {form!r}; expected 'rbf' or 'matern'")
        super().__init__(
            lengthscale,
            lengthscale_prior=lengthscale_prior,
            lengthscale_bounds=lengthscale_bounds,
            batch_shape=batch_shape,
            active_dims=active_dims,
        )
        self.form = form

    def _described(self) -> Mapping[str, object]:
        return {"form": repr(self.form), **super()._described()}

    def _covariances(self, x1: Tensor, x2: Tensor, diag: bool, scale: Tensor) -> Tensor:
        ratio = self._distances(x1, x2, diag).to(scale.device) / (scale[..., 0] if diag else scale)
        if self.form == "rbf":
            return (-0.5 * ratio.square()).exp()
        near = math.sqrt(5.0) * ratio
        return (1.0 + near + near.square() / 3.0) * (-near).exp()

    def _new_distances(self, x1: Tensor, x2: Tensor, diag: bool) -> Tensor:
        first, second = x1.detach().double().cpu(), x2.detach().double().cpu()
        if diag:
            return (first - second).square().sum(-1).sqrt()
        # Differences of sums of squares would round small distances to noise.
        mode = (
            "donot_use_mm_for_euclid_dist"
            if first.shape[-2] * second.shape[-2] <= 1 << 20
            else ("use_mm_for_euclid_dist")
        )
        return torch.cdist(first, second, compute_mode=mode)

    def cross(
        self,
        a: FeatureRows,
        b: FeatureRows | None = None,
        self_a: FloatArray | None = None,
        self_b: FloatArray | None = None,
        dtype: npt.DTypeLike = np.float64,
    ) -> FloatArray:
        """Covariances between features, ``batch_shape x len(a) x len(b)``, in blocks; see `HammingKernel.cross`.

        Raises:
            InputError: For what are no features, or another number of columns.
        """
        columns = a if b is None else b
        mine = torch.from_numpy(_dense(a, self._name))
        if mine.shape[1] != columns.width:
            raise InputError(f"rows of {mine.shape[1]} and of {columns.width} features cannot be compared")
        scales = torch.from_numpy(self._scales()).reshape(-1, 1, 1)
        values = np.empty((len(scales), len(a), len(columns)), dtype=dtype)
        for block in _blocks(columns, len(a)):
            theirs = torch.from_numpy(_dense(columns.take(block), self._name))
            with torch.no_grad():
                values[..., block] = self._covariances(mine, theirs, False, scales).numpy()
        return values.reshape(*self.batch_shape, len(a), len(columns))


class LinearFeatureKernel(DescribedKernel):
    r"""Linear kernel on dense features: :math:`k(a, b) = v \langle a, b \rangle / d`.

    A function under it is a sum over features, each with a normal weight of variance v / d. There is nothing to learn:
    an output scale stands outside.

    Args:
        variance_: v: the prior variance of the function where features have mean square 1.
        active_dims: Columns of the input that hold the features (default: all).

    Raises:
        InputError: If v is not a positive number.

    Example:
        >>> LinearFeatureKernel().cross(FeatureRows(np.array([[1.0, 1.0], [2.0, 0.0]]))).tolist()
        [[1.0, 1.0], [1.0, 2.0]]
    """

    normalize = False
    """`cross` does not need `self_similarity`."""

    def __init__(self, variance_: float = 1.0, *, active_dims: tuple[int, ...] | None = None) -> None:
        super().__init__(active_dims=active_dims)
        if not 0.0 < variance_ < math.inf:
            raise InputError(f"the variance of a linear function is {variance_!r}; expected a positive number")
        self.variance_ = float(variance_)

    def _described(self) -> Mapping[str, object]:
        return {"variance_": self.variance_}

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        """Covariances of rows of features, see `gpytorch.kernels.Kernel.forward`."""
        if params.get("last_dim_is_batch"):
            raise InputError("LinearFeatureKernel has no covariances of single columns (last_dim_is_batch)")
        factor = self.variance_ / max(x1.shape[-1], 1)
        return factor * (x1 * x2).sum(-1) if diag else factor * (x1 @ x2.mT)

    def self_similarity(self, a: FeatureRows) -> FloatArray:
        """k(s, s) of each string, float64."""
        return self.variance(a)

    def variance(self, a: FeatureRows, self_a: FloatArray | None = None) -> FloatArray:
        """k(s, s) of each string, float64."""
        found = [np.square(_dense(a.take(block), "linear")).sum(-1) for block in _blocks(a, 1)]
        return np.concatenate([np.zeros(0), *found]) * (self.variance_ / max(a.width, 1))

    def cross(
        self,
        a: FeatureRows,
        b: FeatureRows | None = None,
        self_a: FloatArray | None = None,
        self_b: FloatArray | None = None,
        dtype: npt.DTypeLike = np.float64,
    ) -> FloatArray:
        """Covariances between features, ``len(a) x len(b)``, in blocks."""
        columns = a if b is None else b
        mine = _dense(a, "linear") * (self.variance_ / max(a.width, 1))
        values = np.empty((len(a), len(columns)), dtype=dtype)
        for block in _blocks(columns, len(a)):
            values[:, block] = mine @ _dense(columns.take(block), "linear").T
        return values
