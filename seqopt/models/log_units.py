"""Positive parameters that are learned, and judged, by their logarithms."""

from __future__ import annotations

from botorch.utils.constraints import LogTransformedInterval
from gpytorch.priors import LogNormalPrior
from torch import Tensor


class LogUnitNormalPrior(LogNormalPrior):
    r"""The log-normal distribution, with its density per unit of the logarithm.

    .. math:: p(\log x) = \mathcal{N}(\log x; \mu, \sigma^2)

    Where a density is highest depends on the units in which it is one: per unit of x it has a factor 1 / x more, which
    draws the mode of a variance from :math:`e^\mu` down to :math:`e^{\mu - \sigma^2}`.

    Args:
        loc: :math:`\mu`.
        scale: :math:`\sigma`.

    Example:
        >>> import torch
        >>> prior = LogUnitNormalPrior(-4.0, 1.0)
        >>> densities = prior.log_prob(torch.tensor([-5.0, -4.0, -3.0]).exp())
        >>> int(densities.argmax())
        1
    """

    def log_prob(self, value: Tensor) -> Tensor:
        """Logarithm of the density per unit of log(value).

        Args:
            value: Positive numbers.
        """
        density: Tensor = super().log_prob(value) + value.log()
        return density


class LogBounds(LogTransformedInterval):
    """Bounds of a positive parameter whose logarithm is learned.

    The raw parameter is the logarithm, and its bounds reach L-BFGS-B. However far a step goes down, the parameter is
    positive; the bounds are kept in double precision.

    Args:
        lower: Smallest value, above 0.
        upper: Largest value.
        initial_value: Where the parameter starts.

    Example:
        >>> bounds = LogBounds(1e-4, 1e4, initial_value=1.0)
        >>> float(bounds.transform(bounds.inverse_transform(bounds.lower_bound))) > 0
        True
    """

    def __init__(self, lower: float, upper: float, initial_value: float) -> None:
        super().__init__(lower, upper, initial_value=initial_value)
        self.double()
        self.lower_bound.fill_(lower)
        self.upper_bound.fill_(upper)

    def check_raw(self, tensor: Tensor) -> bool:
        """Whether parameters are within the bounds, but for what logarithms round.

        Args:
            tensor: Raw parameters.
        """
        lowest, highest = self.lower_bound.log(), self.upper_bound.log()
        return bool(((tensor >= lowest - ROUNDING) & (tensor <= highest + ROUNDING)).all())

    def nearest(self, value: float) -> float:
        """``value``, or the bound that it is beyond."""
        return min(max(value, float(self.lower_bound)), float(self.upper_bound))


ROUNDING = 1e-6
"""Relative error of a parameter in single precision, generously."""
