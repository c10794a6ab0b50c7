"""A posterior held as a mean vector and a covariance matrix."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from seqopt.errors import InputError


class DensePosterior:
    """Posterior at few points (a population, a random sample), with its covariance matrix in memory.

    Implements `seqopt.models.Posterior`. Conditioning on point b is the rank-one update

        S <- S - S_b S_b^T / (S_bb + s2),

    S the conditional covariance and s2 the noise variance; memory and the cost of an update are O(N^2) per
    draw.

    Args:
        mean: ``... x N``, posterior mean.
        covariance: ``... x N x N``, noiseless posterior covariance given the data.
        noise_variance: A number, or ``...``.
        conditional_covariance: ``... x N x N``, covariance given also pending points or batch members
            outside these N; by default ``covariance``.
        conditioned_mean: ``... x c``, posterior mean at those outside points; by default there are none.
        observed_mean: ``... x n``, posterior mean at the evaluated strings; by default there are none.
        observed_covariance: ``... x n x n``, their covariance; `joint` needs it to include them.
        cross_covariance: ``... x n x N``, between the evaluated strings and the points; likewise.
        best_observed: Largest observed value.

    Attributes:
        mean: As given.
        variance: Diagonal of ``covariance``.
        conditional_variance: Diagonal of the conditional covariance, never negative.
        noise_variance: As given, broadcast over draws.
        observed_mean: As given.
        conditioned_mean: Posterior mean at all points conditioned on, those passed to `condition` last.
        best_observed: As given.

    Raises:
        InputError: If shapes do not fit together, or the noise variance is negative.

    Example:
        >>> posterior = DensePosterior(torch.zeros(2), torch.tensor([[1.0, 0.5], [0.5, 1.0]]), 0.25)
        >>> posterior.condition(0)
        >>> posterior.conditional_variance
        tensor([0.2000, 0.8000], dtype=torch.float64)
    """

    def __init__(
        self,
        mean: Tensor,
        covariance: Tensor,
        noise_variance: Tensor | float,
        *,
        conditional_covariance: Tensor | None = None,
        conditioned_mean: Tensor | None = None,
        observed_mean: Tensor | None = None,
        observed_covariance: Tensor | None = None,
        cross_covariance: Tensor | None = None,
        best_observed: float = -math.inf,
    ) -> None:
        self.mean = mean.to(torch.float64)
        self._covariance = covariance.to(torch.float64)
        draws, points = self.mean.shape[:-1], self.mean.shape[-1]
        _check_shape("covariance", self._covariance, (*draws, points, points))
        conditional = self._covariance if conditional_covariance is None else conditional_covariance
        self._conditional = conditional.to(torch.float64).clone()
        _check_shape("conditional_covariance", self._conditional, (*draws, points, points))
        self.noise_variance = torch.as_tensor(noise_variance, dtype=torch.float64).expand(draws)
        if bool((self.noise_variance < 0).any()):
            raise InputError(f"noise_variance is {noise_variance}; expected zero or more")
        self.variance = self._covariance.diagonal(dim1=-2, dim2=-1).clamp_min(0.0)
        self.conditional_variance = self._conditional_diagonal()
        self.observed_mean = _or_empty(observed_mean, draws)
        self.conditioned_mean = _or_empty(conditioned_mean, draws)
        self.best_observed = best_observed
        observed = self.observed_mean.shape[-1]
        self._observed_covariance = observed_covariance
        self._cross_covariance = cross_covariance
        if observed_covariance is not None:
            _check_shape("observed_covariance", observed_covariance, (*draws, observed, observed))
        if cross_covariance is not None:
            _check_shape("cross_covariance", cross_covariance, (*draws, observed, points))

    def joint(self, indices: Tensor, include_observed: bool = False) -> tuple[Tensor, Tensor]:
        """Mean ``... x k`` and covariance ``... x k x k`` at ``indices`` given the data, evaluated first.

        Raises:
            InputError: If evaluated strings are to be included and their covariances were not given.
        """
        mean = self.mean[..., indices]
        covariance = self._covariance[..., indices, :][..., indices]
        if not include_observed or self.observed_mean.shape[-1] == 0:
            return mean, covariance
        if self._observed_covariance is None or self._cross_covariance is None:
            raise InputError(
                "the evaluated strings cannot be included: give DensePosterior observed_covariance and cross_covariance"
            )
        cross = self._cross_covariance[..., indices].to(torch.float64)
        top = torch.cat([self._observed_covariance.to(torch.float64), cross], dim=-1)
        bottom = torch.cat([cross.transpose(-1, -2), covariance], dim=-1)
        return torch.cat([self.observed_mean, mean], dim=-1), torch.cat([top, bottom], dim=-2)

    def condition(self, index: int) -> None:
        """Condition on a noisy observation, of unknown value, of point ``index``.

        A point of no variance, noise included, carries no information and changes nothing.
        """
        column = self._conditional[..., index]
        total = column[..., index] + self.noise_variance
        scaled = torch.where((total > 0)[..., None], column / total.clamp_min(1e-300).sqrt()[..., None], 0.0)
        self._conditional = self._conditional - scaled[..., :, None] * scaled[..., None, :]
        self.conditional_variance = self._conditional_diagonal()
        self.conditioned_mean = torch.cat([self.conditioned_mean, self.mean[..., index, None]], dim=-1)

    def _conditional_diagonal(self) -> Tensor:
        return self._conditional.diagonal(dim1=-2, dim2=-1).clamp_min(0.0)


def _or_empty(values: Tensor | None, draws: torch.Size) -> Tensor:
    if values is None:
        return torch.empty(*draws, 0, dtype=torch.float64)
    return values.to(torch.float64)


def _check_shape(name: str, values: Tensor, expected: tuple[int, ...]) -> None:
    if tuple(values.shape) != expected:
        raise InputError(f"{name} has shape {tuple(values.shape)}; expected {expected}")
