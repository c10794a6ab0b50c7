"""Kernels on one variable of the context: levels that resemble one another, and levels that do not.

References:
    Goovaerts, P. (1997). Geostatistics for natural resources evaluation. Oxford University Press, section 4.2.3
        (intrinsic coregionalisation).
    Bonilla, E. V., Chai, K. M. A., Williams, C. K. I. (2008). Multi-task Gaussian process prediction. NeurIPS 20.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from gpytorch.priors import LogNormalPrior
from torch import Tensor

from seqopt.encoding import FeatureRows
from seqopt.kernels.base import shown
from seqopt.kernels.composite import FieldKernel
from seqopt.kernels.levels import FactoredLevelKernel, FloatArray, Reading, Setting, column, counted, fitting

VARIANCE_PRIOR = (math.log(0.3), 1.0)
"""Mean and standard deviation of the logarithm of such a variance under its prior. Without one, a few strings that were
measured at two levels make a fit take these for one and the same."""

SHARED = 0.8
"""Share of a level's variance that all levels have in common to begin with."""


class CoregionalizationKernel(FactoredLevelKernel):
    r"""Covariances of the levels of a context variable, learned: intrinsic coregionalisation.

    .. math:: k(i, j) = B_{ij}, \qquad B = W W^\top + \mathrm{diag}(v)

    for levels i and j of L, with factors W (``L x rank``) and variances v > 0 (``L``). Times a kernel on strings it
    says that the objective at every level is a mixture of ``rank`` shared functions and one of its own, all with the
    covariance of that kernel: a cheap assay that tells something of a costly one.

    Inputs are rows of one column, ``... x n x 1``, of numbers of levels 0, ..., L - 1: see
    `seqopt.encoding.fields.ContextEncoder`. B has a scale of its own: leave out an output scale, or freeze it.

    By default all levels begin with variance 1 and correlation 0.8; further factors begin small and different, or they
    would stay equal. The raw parameters ``raw_factors`` and ``raw_variances`` *are* W and v; the bounds of v reach
    L-BFGS-B through `botorch.fit.fit_gpytorch_mll`. The prior of each v is log-normal about 0.3 (`VARIANCE_PRIOR`): it
    keeps levels apart that a few strings cannot tell apart.

    Args:
        levels: Number of levels L, at least 1.
        rank: Columns of W, at least 1.
        factors: W to begin with; a tensor that expands to ``batch_shape x L x rank``.
        variances: v to begin with; a float, or a tensor that expands to ``batch_shape x L``.
        batch_shape: Batch shape of B.

    Raises:
        InputError: For ``levels`` or ``rank`` below 1, or factors and variances that do not fit. When evaluated: for
            rows that are not numbers of levels.

    Example:
        >>> kernel = CoregionalizationKernel(2, factors=[[1.0], [0.5]], variances=0.25)
        >>> kernel.covariance
        tensor([[1.2500, 0.5000],
                [0.5000, 0.5000]], dtype=torch.float64, grad_fn=<AddBackward0>)
        >>> kernel(torch.tensor([[0.0], [1.0]])).to_dense().tolist()
        [[1.25, 0.5], [0.5, 0.5]]
    """

    def __init__(
        self,
        levels: int,
        rank: int = 1,
        *,
        factors: Any = None,
        variances: Any = None,
        batch_shape: torch.Size | None = None,
    ) -> None:
        super().__init__(levels, batch_shape=batch_shape)
        self.rank = counted("rank", rank)
        shape = (*self.batch_shape, self.levels, self.rank)
        beginning = _first_factors(self.levels, self.rank) if factors is None else factors
        self._begin(
            fitting("factors", beginning, shape),
            fitting("variances", 1.0 - SHARED if variances is None else variances, shape[:-1]),
        )
        self.register_prior(
            "variances_prior", LogNormalPrior(*VARIANCE_PRIOR), Reading("variances"), Setting("variances")
        )

    @property
    def covariance(self) -> Tensor:
        """B, ``batch_shape x L x L``."""
        return self.factors @ self.factors.mT + torch.diag_embed(self.variances)

    def _described(self) -> Mapping[str, object]:
        return {
            "*levels": self.levels,
            "rank": self.rank,
            "factors": shown(self.factors),
            "variances": shown(self.variances),
        }


class SameLevelKernel(FieldKernel):
    r"""1 where two items have the same value of a context variable, else 0: effects that levels do not share.

    .. math:: k(x, y) = [x = y]

    Times a kernel k_f on strings it is the covariance of deviations that all strings of one plate have in common and
    no other plate has: k_g + [same plate] k_f. There is nothing to learn, and levels need not be known beforehand.

    Inputs are rows of one column of numbers, ``... x n x 1``. Values that are not a number equal nothing.

    Example:
        >>> SameLevelKernel()(torch.tensor([[3.0], [1.0], [3.0]])).to_dense()
        tensor([[1., 0., 1.],
                [0., 1., 0.],
                [1., 0., 1.]])
    """

    normalize = False
    """`cross` does not need `self_similarity`."""

    def __init__(self, *, batch_shape: torch.Size | None = None) -> None:
        super().__init__(batch_shape=batch_shape)

    def __getitem__(self, index: Any) -> SameLevelKernel:
        if not self.batch_shape:
            return self
        # gpytorch reads the new batch shape off the parameters, of which there are none.
        chosen = copy.deepcopy(self)
        chosen.batch_shape = torch.empty(()).expand(self.batch_shape)[index].shape
        return chosen

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        """Covariances of rows, see `gpytorch.kernels.Kernel.forward`: in the precision of ``x1``.

        Raises:
            InputError: For rows of more than one column.
        """
        rows, columns = column(x1, self), column(x2, self)
        same = rows == columns if diag else rows[..., :, None] == columns[..., None, :]
        values = same.to(x1.dtype if x1.is_floating_point() else torch.float64)
        tail = 1 if diag else 2
        batch = torch.Size(np.broadcast_shapes(values.shape[:-tail], self.batch_shape))
        return values.expand(*batch, *values.shape[-tail:])

    def self_similarity(self, a: FeatureRows) -> FloatArray:
        """k(s, s) of each item, 1: float64, ``batch_shape x n``."""
        return self.variance(a)

    def variance(self, a: FeatureRows, self_a: FloatArray | None = None) -> FloatArray:
        """k(s, s) of each item, 1: float64, ``batch_shape x n``; ``self_a`` is ignored."""
        return self.paired(a, a)

    def paired(self, a: FeatureRows, b: FeatureRows, self_a: FloatArray | None = None) -> FloatArray:
        """k(a_i, b_i), float64, ``batch_shape x n``; ``self_a`` is ignored."""
        same = column(a.dense(), self) == column(b.dense(), self)
        return np.broadcast_to(same, (*self.batch_shape, len(same))).astype(np.float64)

    def cross(
        self,
        a: FeatureRows,
        b: FeatureRows | None = None,
        self_a: FloatArray | None = None,
        self_b: FloatArray | None = None,
        dtype: npt.DTypeLike = np.float64,
    ) -> FloatArray:
        """Covariances between encoded items, without a graph: see `CoregionalizationKernel.cross`."""
        rows = column(a.dense(), self)
        columns = rows if b is None else column(b.dense(), self)
        same = rows[:, None] == columns[None, :]
        return np.broadcast_to(same, (*self.batch_shape, *same.shape)).astype(dtype)


def _first_factors(levels: int, rank: int) -> Tensor:
    # Cosines of growing frequency differ from one another; the first is constant.
    angles = torch.arange(rank)[None, :] * (torch.arange(levels)[:, None] + 0.5) * (math.pi / levels)
    factors = 0.1 * torch.cos(angles.double())
    factors[:, 0] = math.sqrt(SHARED)
    return factors
