"""First and second moments of a posterior at queries, of the target and of the measurement.

A *query* is a string and how it is measured (which assay, which plate). Its *target* g(x) is the quantity to be
maximised at its string x; its *outcome* y(q) is what the measurement would return, noise included. Where there is one
way to measure, y = g + noise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import Tensor


@dataclass(frozen=True, eq=False)
class Moments:
    """Moments at N queries, in standardised units; each tensor is float64 of shape ``... x N``.

    ``...`` stands for an optional leading dimension of draws of the model's parameters. *Given the data* means given
    what has been measured; pending and chosen queries are those whose outcome is not known yet.

    Attributes:
        mean: E[g(x)] given the data.
        variance: Var[g(x)] given the data.
        outcome_mean: E[y(q)] given the data.
        outcome_variance: Var[y(q)] given the data, noise included.
        covariance: cov(y(q), g(x)) given the data.
        residual_variance: Var[y(q) | g(x)] given the data, which is ``outcome_variance - covariance^2 / variance``
            without its cancellation; the noise variance where y = g + noise.
        conditional_variance: Var[g(x)] given the data and the pending and chosen queries.
        remaining_variance: Var[y(q)] given the data and the pending and chosen queries, noise included.
    """

    mean: Tensor
    variance: Tensor
    outcome_mean: Tensor
    outcome_variance: Tensor
    covariance: Tensor
    residual_variance: Tensor
    conditional_variance: Tensor
    remaining_variance: Tensor

    @classmethod
    def of_target(cls, mean: Tensor, variance: Tensor, conditional_variance: Tensor, noise_variance: Tensor) -> Moments:
        """Moments where an outcome is the target with noise.

        Args:
            mean: ``... x N``.
            variance: ``... x N``.
            conditional_variance: ``... x N``.
            noise_variance: ``...``, or ``... x N``.
        """
        noise = noise_variance if noise_variance.ndim == mean.ndim else noise_variance[..., None]
        noise = noise.expand_as(variance)
        return cls(
            mean,
            variance,
            mean,
            variance + noise,
            variance,
            noise,
            conditional_variance,
            conditional_variance + noise,
        )

    def given(self, conditional_variance: Tensor, remaining_variance: Tensor | None = None) -> Moments:
        """The same, given further queries whose outcomes are not known.

        Args:
            conditional_variance: Var[g(x)], ``... x N``.
            remaining_variance: Var[y(q)]; by default that of a target with noise.
        """
        if remaining_variance is None:
            remaining_variance = conditional_variance + self.residual_variance
        return replace(self, conditional_variance=conditional_variance, remaining_variance=remaining_variance)

    def take(self, indices: Tensor) -> Moments:
        """Those of the queries at ``indices``."""
        return Moments(*(getattr(self, name)[..., indices] for name in self.__dataclass_fields__))

    def __len__(self) -> int:
        return int(self.mean.shape[-1])
