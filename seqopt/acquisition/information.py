"""What acquisition functions of information about the maximum g* have in common.

A single query is worth an amount of information that depends on two numbers, gamma = (m - mean) / std of its target and
a maximum m, and the correlation rho of its outcome with its target. It is averaged over draws of m and of the model's
parameters. In a batch the logarithm of the determinant of the outcomes' correlations is added, which telescopes: see
`seqopt.acquisition.gibbon`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from seqopt.acquisition.max_values import ExactMaxValueSampler, GumbelMaxValueSampler, MaxValueSampler
from seqopt.acquisition.numerics import in_blocks, log_mean_exp, ordered_exp, positive_std
from seqopt.acquisition.protocols import Posterior, PreparedAcquisition
from seqopt.errors import InputError
from seqopt.posteriors import Moments
from seqopt.utils.config import Configurable

Repulsion = float | Literal["1/B", "1/B^2", "1/m^2"] | Callable[[int], float]

LogValue = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Logarithm of a single value from gamma, rho^2 and 1 - rho^2, elementwise."""


class InformationAcquisition(Configurable):
    """Draws maxima and scores by a formula of a single query; `seqopt.acquisition.GIBBON` and its kin inherit it.

    Args:
        num_samples: Number of max-values per step.
        sampler: ``"exact"``, ``"gumbel"``, or any `MaxValueSampler`.
        repulsion: Factor of the part that keeps a batch diverse; see `seqopt.acquisition.GIBBON`.

    Raises:
        InputError: For an unknown sampler or repulsion, or ``num_samples`` less than 1.
    """

    name: str
    sees_outcomes: ClassVar[bool]

    def __init__(
        self, num_samples: int = 5, sampler: str | MaxValueSampler = "exact", repulsion: Repulsion = "1/B"
    ) -> None:
        if num_samples < 1:
            raise InputError(f"num_samples is {num_samples}; expected at least 1")
        self.num_samples = num_samples
        self.sampler = _resolve_sampler(sampler)
        self.repulsion = repulsion
        _resolve_repulsion(repulsion, 1)

    @property
    def monotone(self) -> bool:
        """True where the repulsion is known not to be negative; see `MonotoneAcquisition`."""
        return not callable(self.repulsion)

    def prepare(self, posterior: Posterior, rng: np.random.Generator, batch_size: int = 1) -> PreparedAcquisition:
        """Draw the max-values of one step; see `seqopt.acquisition.protocols.Acquisition`."""
        max_values = self.sampler(posterior, self.num_samples, rng)
        return self.prepared(max_values, _resolve_repulsion(self.repulsion, batch_size))

    def prepared(self, max_values: Tensor, repulsion: float | Literal["1/m^2"]) -> PreparedAcquisition:
        """The acquisition function with given max-values."""
        raise NotImplementedError


class PreparedInformation:
    """Information about the maximum, with given max-values.

    Args:
        max_values: ``... x M``, draws of g*.
        repulsion: Factor of the log-determinant part; ``"1/m^2"`` follows the number of points conditioned on.
        log_value: What a single query is worth.
    """

    def __init__(self, max_values: Tensor, repulsion: float | Literal["1/m^2"], log_value: LogValue) -> None:
        self.max_values = max_values
        self.repulsion = repulsion
        self._log_value = log_value
        # The single-point part does not change while a batch is filled: it is kept for the tensors, which nobody
        # changes in place, that it was computed from.
        self._key: tuple[Tensor, ...] = ()
        self._single = torch.empty(0)

    def __call__(self, posterior: Posterior) -> Tensor:
        """Increment of the batch's value for each point, in nats; see `PreparedAcquisition`."""
        moments = posterior.moments
        single, factor = self._single_values(moments), self._factor(posterior)
        if factor == 0.0:
            return single
        total = moments.outcome_variance
        lost = (total - moments.remaining_variance) / total.clamp_min(1e-300)
        increment = (0.5 * factor) * torch.log1p(-lost)
        return single + increment.reshape(-1, increment.shape[-1]).mean(0)

    def _factor(self, posterior: Posterior) -> float:
        if self.repulsion == "1/m^2":
            return 1.0 / max(1, posterior.conditioned_mean.shape[-1]) ** 2
        return self.repulsion

    def _single_values(self, moments: Moments) -> Tensor:
        key = (
            moments.mean,
            moments.variance,
            moments.covariance,
            moments.outcome_variance,
            moments.residual_variance,
        )
        if len(key) == len(self._key) and all(one is other for one, other in zip(key, self._key, strict=True)):
            return self._single
        found = in_blocks(self._average, *key)
        # A look at a few points in between does not drop what was computed for all.
        if len(found) >= len(self._single):
            self._key, self._single = key, found
        return found

    def _average(
        self, mean: Tensor, variance: Tensor, covariance: Tensor, outcome_variance: Tensor, residual: Tensor
    ) -> Tensor:
        log_alpha = log_single(self._log_value, mean, variance, covariance, outcome_variance, residual, self.max_values)
        return ordered_exp(log_mean_exp(log_alpha.reshape(-1, log_alpha.shape[-1]), dim=0))


def log_single(
    log_value: LogValue,
    mean: Tensor,
    variance: Tensor,
    covariance: Tensor,
    outcome_variance: Tensor,
    residual: Tensor,
    max_values: Tensor,
) -> Tensor:
    """Logarithm of the single-point value, averaged over max-values, from moments of target and outcome.

    Args:
        log_value: What a single query is worth.
        mean: ``... x N``, of targets; the others likewise (`seqopt.posteriors.Moments`).
        variance: Of targets.
        covariance: Of outcome and target.
        outcome_variance: Noise included.
        residual: Of the outcome given the target.
        max_values: ``... x M``.

    Returns:
        ``... x N``.
    """
    tiny = torch.finfo(variance.dtype).tiny
    total = outcome_variance.clamp_min(tiny)
    # rho^2 = covariance^2 / (variance total), in the order that is exact where the covariance is the variance.
    rho2 = covariance / variance.clamp_min(tiny) * (covariance / total)
    gamma = (max_values[..., None] - mean[..., None, :]) / positive_std(variance)[..., None, :]
    return log_mean_exp(log_value(gamma, rho2[..., None, :], (residual / total)[..., None, :]), dim=-2)


def _resolve_sampler(sampler: str | MaxValueSampler) -> MaxValueSampler:
    if isinstance(sampler, str):
        if sampler == "exact":
            return ExactMaxValueSampler()
        if sampler == "gumbel":
            return GumbelMaxValueSampler()
    elif isinstance(sampler, MaxValueSampler) and not isinstance(sampler, type):
        return sampler
    raise InputError(f"unknown max-value sampler {sampler!r}; expected 'exact', 'gumbel' or a MaxValueSampler")


def _resolve_repulsion(repulsion: Repulsion, batch_size: int) -> float | Literal["1/m^2"]:
    if callable(repulsion):
        return float(repulsion(batch_size))
    if isinstance(repulsion, str):
        if repulsion == "1/B":
            return 1.0 / batch_size
        if repulsion == "1/B^2":
            return 1.0 / batch_size**2
        if repulsion == "1/m^2":
            return repulsion
    elif repulsion >= 0:
        return float(repulsion)
    raise InputError(f"repulsion is {repulsion!r}; expected at least 0, 1/B, 1/B^2, 1/m^2 or a function")
