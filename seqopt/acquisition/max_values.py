"""Samplers of the maximum g* of the objective, from its posterior at a finite set of points.

References:
    Wang, Z. and Jegelka, S. (2017). Max-value entropy search for efficient Bayesian optimization. ICML,
    section 3.1. Moss, H. B. (2021). General-purpose Information-Theoretical Bayesian Optimisation. PhD
    thesis, section 5.3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from seqopt.acquisition.numerics import positive_std
from seqopt.acquisition.protocols import Posterior
from seqopt.acquisition.sampling import SELECTION_BETA, draw_joint, largest_upper_confidence
from seqopt.errors import InputError
from seqopt.posteriors import stable_cholesky
from seqopt.utils.config import Configurable

BISECTIONS = 60
"""Halvings of a bracket a few standard deviations wide: the quantiles are exact to rounding."""


@runtime_checkable
class MaxValueSampler(Protocol):
    """Draws values of g*, the maximum of the objective."""

    def __call__(self, posterior: Posterior, num_samples: int, rng: np.random.Generator) -> Tensor:
        """``... x num_samples`` draws of g*, one set for every kernel-parameter draw."""
        ...


class ExactMaxValueSampler(Configurable):
    """Maxima of joint posterior draws over the most promising candidates and the evaluated strings.

    The candidates are those of largest mean + sqrt(beta) std. No draw is below the best posterior mean of an
    evaluated
    string: such a draw, which sampling few points can produce, would make certain points look informative.

    With D draws of the kernel parameters 1 / sqrt(D) as many candidates take part, the same ones in each draw: what the
    maximum is differs from draw to draw, so each needs fewer.

    Args:
        num_candidates: How many candidates take part.
        max_points: Largest number of points drawn jointly, evaluated strings included; the cost is
            O(max_points^3). Candidates give way to evaluated strings down to half of this number; beyond,
            the evaluated strings only count through the lower bound above.
        beta: See above.

    Raises:
        InputError: If ``num_candidates`` or ``max_points`` is less than 1, or ``beta`` is negative.

    Example:
        >>> from seqopt.acquisition import DensePosterior
        >>> posterior = DensePosterior(torch.zeros(3), torch.eye(3), 0.1)
        >>> ExactMaxValueSampler()(posterior, 5, np.random.default_rng(0)).shape
        torch.Size([5])
    """

    def __init__(self, num_candidates: int = 1_000, max_points: int = 2_000, beta: float = SELECTION_BETA) -> None:
        _check_positive("num_candidates", num_candidates)
        _check_positive("max_points", max_points)
        if not beta >= 0:
            raise InputError(f"beta is {beta}; expected zero or more")
        self.num_candidates = num_candidates
        self.max_points = max_points
        self.beta = beta

    def __call__(self, posterior: Posterior, num_samples: int, rng: np.random.Generator) -> Tensor:
        """``... x num_samples`` draws of g*.

        Raises:
            InputError: If the posterior has no points.
            ModelError: If the joint covariance cannot be factorised.
        """
        _check_points(posterior)
        observed = posterior.observed_mean.shape[-1]
        include_observed = 0 < observed <= self.max_points - min(self.num_candidates, (self.max_points + 1) // 2)
        room = self.max_points - observed if include_observed else self.max_points
        draws = posterior.moments.mean.shape[:-1].numel()
        candidates = math.ceil(self.num_candidates / math.sqrt(draws))
        indices = largest_upper_confidence(posterior, min(candidates, room), self.beta)
        mean, covariance = posterior.joint(indices, include_observed=include_observed)
        factor, _ = stable_cholesky(covariance)
        return _bounded(draw_joint(mean, factor, num_samples, rng).amax(-2), posterior)


class GumbelMaxValueSampler(Configurable):
    """Draws of g* from a Gumbel distribution fitted to the maximum of points treated as independent.

    Solves prod_i Phi((z - mean_i) / std_i) = p for p = .25, .5, .75 by bisection of its logarithm, matches a
    Gumbel distribution of location a and scale b to the three quantiles,

        b = (q25 - q75) / (log(-log .75) - log(-log .25)),   a = q50 + b log(log 2),

    and inverts its distribution function at uniform draws. Over many correlated points the independence
    assumption overshoots the maximum, so the points are few: the evaluated strings and a random sample of
    the others. As with `ExactMaxValueSampler`, no draw is below the best posterior mean of an evaluated
    string.

    The published protocol (section 5.7.3 of the thesis) fits to the very 1,000 molecules of which a batch is chosen,
    and to nothing else: ``GumbelMaxValueSampler(max_points=1_000, evaluated=False)``.

    Args:
        max_points: Largest number of points, evaluated strings included; at least half of them are
            candidates.
        evaluated: Whether the evaluated strings are among the points, and bound the draws from below.

    Raises:
        InputError: If ``max_points`` is less than 1.

    Example:
        >>> from seqopt.acquisition import DensePosterior
        >>> posterior = DensePosterior(torch.zeros(3), torch.eye(3), 0.1)
        >>> GumbelMaxValueSampler()(posterior, 5, np.random.default_rng(0)).shape
        torch.Size([5])
    """

    def __init__(self, max_points: int = 1_000, evaluated: bool = True) -> None:
        _check_positive("max_points", max_points)
        self.max_points = max_points
        self.evaluated = evaluated

    def __call__(self, posterior: Posterior, num_samples: int, rng: np.random.Generator) -> Tensor:
        """``... x num_samples`` draws of g*.

        Raises:
            InputError: If the posterior has no points.
        """
        mean, variance = self._points(posterior, rng)
        q25, q50, q75 = max_quantiles(mean, variance, (0.25, 0.5, 0.75)).unbind(-1)
        scale = (q25 - q75) / (math.log(-math.log(0.75)) - math.log(-math.log(0.25)))
        location = q50 + scale * math.log(math.log(2.0))
        standard = torch.from_numpy(rng.gumbel(size=(*mean.shape[:-1], num_samples)))
        draws = location[..., None] + scale[..., None] * standard
        return _bounded(draws, posterior) if self.evaluated else draws

    def _points(self, posterior: Posterior, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        _check_points(posterior)
        total, observed = len(posterior.moments), posterior.observed_mean.shape[-1]
        include_observed = self.evaluated and 0 < observed <= self.max_points // 2
        room = self.max_points - observed if include_observed else self.max_points
        if room >= total:
            mean, variance = posterior.moments.mean, posterior.moments.variance
        else:
            chosen = torch.from_numpy(np.sort(rng.choice(total, size=room, replace=False)))
            moments = posterior.moments.take(chosen)
            mean, variance = moments.mean, moments.variance
        if include_observed:
            _, covariance = posterior.joint(torch.zeros(1, dtype=torch.int64), include_observed=True)
            own = covariance.diagonal(dim1=-2, dim2=-1)[..., :observed].clamp_min(0.0)
            mean = torch.cat([posterior.observed_mean, mean], dim=-1)
            variance = torch.cat([own, variance], dim=-1)
        return mean, variance


def max_quantiles(mean: Tensor, variance: Tensor, probabilities: Sequence[float]) -> Tensor:
    """Quantiles of the maximum of independent normal variables.

    Solves sum_i log Phi((z - mean_i) / std_i) = log p by bisection. The bracket is rigorous: at the quantile
    no factor is below p, and not every factor is above p^(1/N).

    Args:
        mean: ``... x N`` float64.
        variance: ``... x N`` float64.
        probabilities: P of them, inside (0, 1).

    Returns:
        ``... x P``.

    Example:
        >>> one = torch.ones(1, dtype=torch.float64)
        >>> max_quantiles(0 * one, one, [0.5]).abs() < 1e-12
        tensor([True])
    """
    std = positive_std(variance)
    target = torch.tensor(probabilities, dtype=torch.float64).log()
    mean, std = mean[..., None, :], std[..., None, :]
    deviations = torch.special.ndtri(target.exp())[:, None]
    lower = (mean + std * deviations).amax(-1)
    # 1 - p^(1/N) keeps its digits where p^(1/N) rounds to 1.
    deviations = -torch.special.ndtri(-torch.expm1(target / mean.shape[-1]))[:, None]
    upper = (mean + std * deviations).amax(-1)
    for _ in range(BISECTIONS):
        middle = 0.5 * (lower + upper)
        below = torch.special.log_ndtr((middle[..., None] - mean) / std).sum(-1) < target
        lower = torch.where(below, middle, lower)
        upper = torch.where(below, upper, middle)
    return 0.5 * (lower + upper)


def _bounded(max_values: Tensor, posterior: Posterior) -> Tensor:
    if posterior.observed_mean.shape[-1] == 0:
        return max_values
    return torch.maximum(max_values, posterior.observed_mean.amax(-1)[..., None])


def _check_points(posterior: Posterior) -> None:
    if len(posterior.moments) == 0:
        raise InputError("the maximum over no points was asked for; the pool or population is empty")


def _check_positive(name: str, value: int) -> None:
    if value < 1:
        raise InputError(f"{name} is {value}; expected at least 1")
