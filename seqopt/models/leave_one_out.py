"""What a Gaussian process would have predicted for each value without it.

With K the covariance of the n values, noise included, at fixed parameters, and alpha = K^-1 (y - c), the prediction for
value i from the others has the mean y_i - alpha_i / [K^-1]_ii and the variance 1 / [K^-1]_ii, noise included.

References:
    Rasmussen, C. E. and Williams, C. K. I. (2006). Gaussian Processes for Machine Learning, section 5.4.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor


@dataclass(frozen=True)
class LeaveOneOut:
    """Predictions for each training value from the others, in the values' units.

    Attributes:
        values: The n values, NaN where only a limit is known.
        mean: What was predicted for each.
        std: Standard deviation of the prediction, noise included.
    """

    values: npt.NDArray[np.floating]
    mean: npt.NDArray[np.floating]
    std: npt.NDArray[np.floating]

    def of(self, places: Sequence[int]) -> LeaveOneOut:
        """Those of some of the values, each predicted from all others as before.

        Args:
            places: Of the values, from 0.

        Example:
            >>> found = LeaveOneOut(np.array([1.0, 2.0, 4.0]), np.array([1.5, 2.0, 3.0]), np.ones(3))
            >>> found.of([0, 2]).mean.tolist()
            [1.5, 3.0]
        """
        chosen = np.asarray(places, dtype=np.int64)
        return LeaveOneOut(self.values[chosen], self.mean[chosen], self.std[chosen])

    @property
    def r2(self) -> float:
        """1 - sum of squared errors over that of the mean of the *other* values: 0 for a model that knows no more.

        NaN where all values are equal, but for rounding. Values of which only a limit is known do not count.
        """
        known = ~np.isnan(self.values)
        values, n = self.values[known], int(known.sum())
        if n == 0:
            return float("nan")
        without_model = (values - values.mean()) * n / max(n - 1, 1)
        total = float((without_model**2).sum())
        equal = np.ptp(values) <= 1e-12 * np.abs(values).max()
        return float("nan") if equal or total == 0 else 1.0 - float(((values - self.mean[known]) ** 2).sum()) / total

    @property
    def within_90(self) -> float:
        """Share of the values within the central 90 % of their predictions; NaN where none is known."""
        known = ~np.isnan(self.values)
        if not known.any():
            return float("nan")
        errors = np.abs(self.values - self.mean)[known]
        return float((errors <= 1.6448536269514722 * self.std[known]).mean())


def leave_one_out(cholesky: Tensor, alpha: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Means and variances ``... x n`` of the predictions for each target from the others.

    Args:
        cholesky: Lower factor of K, ``... x n x n``.
        alpha: ``... x n``.
        targets: y, ``... x n`` or ``n``.

    Example:
        >>> factor = torch.linalg.cholesky(torch.tensor([[2.0, 1.0], [1.0, 2.0]], dtype=torch.float64))
        >>> y = torch.tensor([1.0, 2.0], dtype=torch.float64)
        >>> mean, variance = leave_one_out(factor, torch.cholesky_solve(y[:, None], factor)[:, 0], y)
        >>> mean, variance
        (tensor([1.0000, 0.5000], dtype=torch.float64), tensor([1.5000, 1.5000], dtype=torch.float64))
    """
    variance = 1.0 / torch.cholesky_inverse(cholesky).diagonal(dim1=-1, dim2=-2)
    return targets - alpha * variance, variance
