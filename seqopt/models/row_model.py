"""The BoTorch model behind a surrogate on strings: rows of any width, values of any scale."""

from __future__ import annotations

from typing import Any

import torch
from botorch.models import SingleTaskGP
from botorch.models.transforms.outcome import Standardize
from botorch.posteriors import GPyTorchPosterior, Posterior
from gpytorch import settings
from gpytorch.distributions import MultivariateNormal
from torch import Tensor


class ScaledNormal(MultivariateNormal):
    """A `gpytorch.distributions.MultivariateNormal` whose smallest variance is in units of its own.

    gpytorch rounds variances up to 1e-10, in whatever units. Values in mol/l may have none that is larger.

    Args:
        mean: ``... x n``.
        covariance_matrix: ``... x n x n``.
        unit: Variances are rounded up to gpytorch's smallest, times the square of this.

    Example:
        >>> covariance = 1e-14 * torch.eye(2, dtype=torch.float64)
        >>> variance = ScaledNormal(torch.zeros(2, dtype=torch.float64), covariance, unit=1e-6).variance
        >>> f"{float(variance[0]):.3g}"
        '1e-14'
    """

    def __init__(self, mean: Tensor, covariance_matrix: Any, validate_args: bool = False, unit: float = 1.0) -> None:
        super().__init__(mean, covariance_matrix, validate_args=validate_args)
        self.unit = unit

    @property
    def variance(self) -> Tensor:
        """Variances, ``... x n``."""
        smallest = settings.min_variance.value(torch.float64) * self.unit**2
        with settings.min_variance(double_value=smallest):
            variance: Tensor = super().variance
        return variance

    def __getitem__(self, index: Any) -> MultivariateNormal:
        part = super().__getitem__(index)
        part.unit = self.unit
        return part

    def expand(self, batch_size: torch.Size) -> MultivariateNormal:
        """See `gpytorch.distributions.MultivariateNormal.expand`."""
        expanded = super().expand(batch_size)
        expanded.unit = self.unit
        return expanded


class ScaledStandardize(Standardize):
    """`botorch.models.transforms.outcome.Standardize`, whose posteriors are right at any scale of the values.

    Args:
        m: Number of outcomes.
        telling: Which of the n training values mean and standard deviation are of; by default all.
        options: Others of the class that this one extends.
    """

    def __init__(self, m: int, telling: Tensor | None = None, **options: Any) -> None:
        super().__init__(m, **options)
        self.telling = telling

    def forward(self, Y: Tensor, Yvar: Tensor | None = None, X: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """Standardised values.

        Args:
            Y: Values, ``n x m``.
            Yvar: Their variances.
            X: Ignored.
        """
        if not self.training or self.telling is None:
            return super().forward(Y, Yvar, X)
        super().forward(Y[self.telling])
        return (Y - self.means) / self.stdvs, None if Yvar is None else Yvar / self._stdvs_sq

    def untransform_posterior(self, posterior: Posterior, X: Tensor | None = None) -> Posterior:
        """The posterior in the values' units.

        Args:
            posterior: That of standardised values.
            X: Ignored.
        """
        found = super().untransform_posterior(posterior, X)
        if type(found) is not GPyTorchPosterior or type(found.distribution) is not MultivariateNormal:
            return found
        normal = found.distribution
        return GPyTorchPosterior(ScaledNormal(normal.mean, normal.lazy_covariance_matrix, unit=float(self.stdvs)))


class RowModel(SingleTaskGP):
    """`botorch.models.SingleTaskGP` on rows that are padded with zeros on the right, to any width.

    Strings longer than those it was trained on have wider rows. What is narrower gets more padding.
    """

    train_inputs: tuple[Tensor, ...] | None

    symbols = 0
    """Number of symbols that rows of tokens may hold, for `seqopt.models.pathwise`."""

    def __call__(self, *args: Tensor, **kwargs: Any) -> MultivariateNormal:
        """See `gpytorch.models.ExactGP`: prior in training mode, posterior in evaluation mode.

        Args:
            args: Rows, ``... x n x W``.
            kwargs: Passed on.
        """
        return super().__call__(*self._aligned(args), **kwargs)

    def get_fantasy_model(self, inputs: Tensor, targets: Tensor, **kwargs: Any) -> SingleTaskGP:
        """See `gpytorch.models.ExactGP.get_fantasy_model`.

        Args:
            inputs: Rows, ``... x n x W``.
            targets: Their values.
            kwargs: Passed on.
        """
        (rows,) = self._aligned((inputs,))
        return super().get_fantasy_model(rows, targets, **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        # What is cached for predictions may hold graphs, which no copy can.
        return {**self.__dict__, "prediction_strategy": None}

    def _aligned(self, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        trained = self.train_inputs
        if self.training or trained is None:
            return inputs
        width = max(rows.shape[-1] for rows in (*trained, *inputs))
        self.train_inputs = tuple(padded(rows, width) for rows in trained)
        return tuple(padded(rows, width) for rows in inputs)


def padded(rows: Tensor, width: int) -> Tensor:
    """``rows`` with zeros on the right up to ``width`` columns; the same object where that is their width."""
    missing = width - rows.shape[-1]
    return torch.nn.functional.pad(rows, (0, missing)) if missing > 0 else rows
