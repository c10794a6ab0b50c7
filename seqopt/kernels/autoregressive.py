"""Levels of which each is a multiple of the one before it, and something of its own.

References:
    Kennedy, M. C. and O'Hagan, A. (2000). Predicting the output from a complex computer code when fast approximations
        are available. Biometrika 87, 1-13.
    Le Gratiet, L. and Garnier, J. (2014). Recursive co-kriging model for design of computer experiments with multiple
        levels of fidelity. International Journal for Uncertainty Quantification 4, 365-386.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gpytorch
import torch
from gpytorch.priors import NormalPrior
from torch import Tensor

from seqopt.errors import InputError
from seqopt.kernels.base import shown
from seqopt.kernels.composite import OnField, Product, Sum
from seqopt.kernels.levels import FactoredLevelKernel, LevelKernel, Reading, Setting, fitting

FACTOR = 0.8
"""Multiple of the level before it that a level is to begin with; each has variance 1 then."""

FACTOR_PRIOR = (1.0, 1.0)
"""Mean and standard deviation of the normal prior of a factor, of standardised values."""


class AutoregressiveKernel(FactoredLevelKernel):
    r"""Covariances of levels of which each is a multiple of the one before it: the model of Kennedy and O'Hagan.

    .. math::

        f_1 = \delta_1, \quad f_{t+1} = a_t f_t + \delta_{t+1}, \qquad
        k(i, j) = B_{ij} = \sum_{s \le \min(i, j)} v_s A_{is} A_{js}, \quad A_{is} = \prod_{t=s}^{i-1} a_t,

    for levels from the cheapest to the costliest, with factors a (L - 1) and variances v > 0 of the independent
    :math:`\delta_s` (L). Times a kernel on strings, all :math:`\delta_s` have the covariance of that kernel; with a
    kernel of its own for each it is a `RecursiveKernel`.

    By default all levels begin with variance 1 and neighbours with correlation 0.8; factors have the prior N(1, 1).
    Raw parameters ``raw_factors`` and ``raw_variances`` are the parameters themselves.

    Args:
        levels: Number of levels L, at least 1.
        factors: a to begin with; a float, or a tensor that expands to ``batch_shape x (L - 1)``.
        variances: v to begin with; a float, or a tensor that expands to ``batch_shape x L``.
        batch_shape: Batch shape of B.

    Raises:
        InputError: As `CoregionalizationKernel` does.

    Example:
        >>> AutoregressiveKernel(2, factors=2.0, variances=[1.0, 0.5]).covariance.tolist()
        [[1.0, 2.0], [2.0, 4.5]]
    """

    def __init__(
        self, levels: int, *, factors: Any = None, variances: Any = None, batch_shape: torch.Size | None = None
    ) -> None:
        super().__init__(levels, batch_shape=batch_shape)
        shape = (*self.batch_shape, self.levels)
        beginning = fitting("factors", FACTOR if factors is None else factors, (*shape[:-1], self.levels - 1))
        start = torch.full((self.levels,), 1.0 - FACTOR**2, dtype=torch.float64)
        start[0] = 1.0
        self._begin(beginning, fitting("variances", start if variances is None else variances, shape))
        self.register_prior("factors_prior", NormalPrior(*FACTOR_PRIOR), Reading("factors"), Setting("factors"))

    def config_arguments(self) -> Mapping[str, Any]:
        """See `seqopt.utils.config.Configurable`."""
        return {
            "levels": self.levels,
            "factors": self.factors.detach().tolist(),
            "variances": self.variances.detach().tolist(),
            "batch_shape": list(self.batch_shape) or None,
        }

    @property
    def components(self) -> Tensor:
        """What each :math:`\\delta_s` contributes to B, ``batch_shape x L x L x L``, s first: B is the sum over s."""
        columns = []
        for s in range(self.levels):
            column = [torch.zeros_like(self.variances[..., 0])] * s + [torch.ones_like(self.variances[..., 0])]
            for t in range(s, self.levels - 1):
                column.append(column[-1] * self.factors[..., t])
            columns.append(torch.stack(column, -1))
        weights = torch.stack(columns, -2)
        return self.variances[..., None, None] * weights[..., :, None] * weights[..., None, :]

    @property
    def covariance(self) -> Tensor:
        """B, ``batch_shape x L x L``."""
        return self.components.sum(-3)

    def _described(self) -> Mapping[str, object]:
        return {"*levels": self.levels, "factors": shown(self.factors), "variances": shown(self.variances)}


class _Component(LevelKernel):
    """What one of the independent parts contributes to an `AutoregressiveKernel`, whose parameters it shares."""

    def __init__(self, whole: AutoregressiveKernel, number: int) -> None:
        super().__init__(whole.levels)
        self.whole = whole
        self.number = number

    @property
    def covariance(self) -> Tensor:
        """``L x L``."""
        return self.whole.components[..., self.number, :, :]


class RecursiveKernel(Sum):
    r"""The model of Kennedy and O'Hagan in which every part has a kernel on strings of its own.

    .. math:: k((x, i), (x', j)) = \sum_s k_s(x, x') \, v_s A_{is} A_{js}

    with A, a and v those of an `AutoregressiveKernel`: what a costly assay has beyond a cheap one may be smoother, or
    rougher, than what they share.

    Args:
        kernels: Those of the parts, that of the cheapest level first; one for each level.
        levels: Factors and variances, without batch shape.
        field: The field that holds the numbers of levels.

    Raises:
        InputError: If there are not as many kernels as levels.

    Example:
        >>> from seqopt.kernels import NgramKernel, SubsequenceKernel
        >>> parts = [OnField(SubsequenceKernel(), "tokens"), OnField(NgramKernel(), "tokens")]
        >>> len(RecursiveKernel(parts, AutoregressiveKernel(2), "fidelity").kernels)
        2
    """

    def __init__(self, kernels: Sequence[gpytorch.kernels.Kernel], levels: AutoregressiveKernel, field: str) -> None:
        if len(kernels) != levels.levels:
            raise InputError(f"there are {len(kernels)} kernels for {levels.levels} levels; give one for each")
        parts = enumerate(kernels)
        super().__init__(*(Product(kernel, OnField(_Component(levels, s), field)) for s, kernel in parts))
        self.field = field
        # Of a plain sum nothing is needed but its parts; in a tuple they are no modules of this one for a second time.
        self._own = tuple(kernels), levels

    @property
    def levels(self) -> AutoregressiveKernel:
        """Factors and variances."""
        return self._own[1]

    def config_arguments(self) -> Mapping[str, Any]:
        """See `seqopt.utils.config.Configurable`."""
        return {"kernels": list(self._own[0]), "levels": self.levels, "field": self.field}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> RecursiveKernel:
        """The kernel that `config` described."""
        from seqopt.utils.config import from_config

        return cls([from_config(part) for part in config["kernels"]], from_config(config["levels"]), config["field"])

    def __getitem__(self, index: Any) -> Sum:
        return Sum(*(part[index] for part in self._parts())).train(self.training)

    def expand_batch(self, *sizes: Any) -> Sum:
        """The same with another batch shape, as a plain sum; see `gpytorch.kernels.Kernel.expand_batch`."""
        return Sum(*(part.expand_batch(*sizes) for part in self._parts())).train(self.training)
