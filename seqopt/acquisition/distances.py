r"""Distances between normal distributions, and from a normal distribution to a mixture of them.

A model whose parameters are drawn M times predicts each point by a mixture of M normal distributions. How far a
component p lies from the mixture q is said by

.. math::

    H^2(p, q) &= 1 - \int \sqrt{p\,q}, \\
    W^2(p, q) &= \int_0^1 \left(P^{-1}(u) - Q^{-1}(u)\right)^2 du, \\
    \mathrm{KL}(p \,\|\, q) &= \int p \log(p / q).

With q replaced by the normal distribution of its two moments (*moment matching*) all three have closed forms. For the
mixture itself, means over its quantiles at the middles of L equal intervals of probability take the place of integrals,

.. math::

    W^2 \approx \tfrac1L \sum_l (P^{-1}(u_l) - x_l)^2, \quad
    H^2 \approx 1 - \tfrac1L \sum_l \sqrt{p(x_l) / q(x_l)}, \quad
    \mathrm{KL} \approx \tfrac1L \sum_l f(p(x_l) / q(x_l)), \qquad x_l = Q^{-1}(u_l),

with :math:`f(w) = w \log w - w + 1`. The quantiles are those of the mixture, by bisection of its distribution function:
the mean of the components' quantiles is the quantile of something else. Points of the mixture serve better than
points of the component, as published: p / q is at most M for one of its M components, and q / p has no bound.

H is the distance, not its square: it obeys the triangle inequality, and is at most 1.

References:
    Hvarfner, C., Hellsten, E., Hutter, F., Nardi, L. (2023). Self-correcting Bayesian optimization through Bayesian
        active learning. NeurIPS. Equations 11 and 12, and 17 and 18, in which the factor 1 / L is missing.
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias, get_args

import torch
from torch import Tensor

from seqopt.acquisition.numerics import log_phi
from seqopt.errors import InputError

Distance: TypeAlias = Literal["hellinger", "wasserstein", "kl"]
"""A statistical distance by name."""

Marginal: TypeAlias = Literal["moments", "mixture"]
"""What stands for a mixture: the normal distribution of its moments, or the mixture itself."""

POINTS = 256
"""Points that stand for an integral."""

BISECTIONS = 60
"""Halvings of a bracket of some standard deviations: quantiles are exact to rounding."""

LEAST_VARIANCE = 1e-100
"""Variances are kept above this, so that their ratios are finite."""

BLOCK_VALUES = 1 << 20
"""Values of an integrand that are computed at once, which bounds the memory."""


def hellinger(mean: Tensor, variance: Tensor, other_mean: Tensor, other_variance: Tensor) -> Tensor:
    r"""Hellinger distance of normal distributions,

    .. math::

        \sqrt{1 - \sqrt{\tfrac{2 \sigma_1 \sigma_2}{\sigma_1^2 + \sigma_2^2}}
              \exp\left(-\tfrac14 \tfrac{(\mu_1 - \mu_2)^2}{\sigma_1^2 + \sigma_2^2}\right)}.

    Symmetric, in [0, 1], and accurate to rounding for nearly equal distributions.

    Args:
        mean: Any shape; the others broadcast with it.
        variance: Not the standard deviation.
        other_mean: Of the second distribution.
        other_variance: Likewise.

    Example:
        >>> one = torch.ones(1, dtype=torch.float64)
        >>> round(float(hellinger(0 * one, one, one, 4 * one)), 6)
        0.386257
    """
    first, second = variance.clamp_min(LEAST_VARIANCE), other_variance.clamp_min(LEAST_VARIANCE)
    product = first.sqrt() * second.sqrt()
    # log (s^2 + t^2) / (2 s t), without its cancellation.
    apart = torch.log1p((first.sqrt() - second.sqrt()).square() / (2.0 * product))
    exponent = 0.5 * apart + 0.25 * (mean - other_mean).square() / (first + second)
    return (-torch.expm1(-exponent)).sqrt()


def wasserstein(mean: Tensor, variance: Tensor, other_mean: Tensor, other_variance: Tensor) -> Tensor:
    r"""Wasserstein-2 distance of normal distributions, :math:`\sqrt{(\mu_1 - \mu_2)^2 + (\sigma_1 - \sigma_2)^2}`.

    Arguments as `hellinger`; it is in the units of the values.

    Example:
        >>> one = torch.ones(1, dtype=torch.float64)
        >>> round(float(wasserstein(0 * one, one, one, 4 * one)), 6)
        1.414214
    """
    return torch.hypot(mean - other_mean, variance.clamp_min(0.0).sqrt() - other_variance.clamp_min(0.0).sqrt())


def kl_divergence(mean: Tensor, variance: Tensor, other_mean: Tensor, other_variance: Tensor) -> Tensor:
    r"""KL(p || q) of normal distributions, in nats: p is given first.

    .. math:: \log \frac{\sigma_q}{\sigma_p} + \frac{\sigma_p^2 + (\mu_p - \mu_q)^2}{2 \sigma_q^2} - \frac12

    Arguments as `hellinger`; not symmetric.

    Example:
        >>> one = torch.ones(1, dtype=torch.float64)
        >>> round(float(kl_divergence(0 * one, one, one, 4 * one)), 6)
        0.443147
    """
    first, second = variance.clamp_min(LEAST_VARIANCE), other_variance.clamp_min(LEAST_VARIANCE)
    ratio = first / second
    return 0.5 * (ratio - 1.0 - ratio.log() + (mean - other_mean).square() / second)


CLOSED_FORMS = {"hellinger": hellinger, "wasserstein": wasserstein, "kl": kl_divergence}
"""Distances of two normal distributions, by name."""


def mixture_moments(mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance of a mixture of M equally probable components.

    The variance is the mean of the variances plus the variance of the means.

    Args:
        mean: ``M x N``.
        variance: ``M x N``.

    Returns:
        Two tensors of shape N.

    Example:
        >>> mean, variance = mixture_moments(torch.tensor([[0.0], [2.0]]), torch.ones(2, 1))
        >>> float(mean), float(variance)
        (1.0, 2.0)
    """
    centre = mean.mean(0)
    return centre, variance.mean(0) + (mean - centre).square().mean(0)


def mixture_quantiles(mean: Tensor, variance: Tensor, probabilities: Tensor) -> Tensor:
    r"""Quantiles of mixtures of M equally probable normal distributions.

    :math:`\frac1M \sum_m \Phi((z - \mu_m) / \sigma_m) = u` is solved by bisection between the least and the largest
    quantile of the components, between which that of the mixture lies.

    Args:
        mean: ``M x N`` float64.
        variance: ``M x N``.
        probabilities: L of them, inside (0, 1).

    Returns:
        ``L x N``.

    Example:
        >>> mean, variance = torch.tensor([[-1.0], [1.0]]).double(), torch.ones(2, 1).double()
        >>> mixture_quantiles(mean, variance, torch.tensor([0.5], dtype=torch.float64)).abs() < 1e-12
        tensor([[True]])
    """
    std = variance.clamp_min(LEAST_VARIANCE).sqrt()
    components = mean + std * torch.special.ndtri(probabilities)[:, None, None]
    lower, upper = components.amin(1), components.amax(1)
    for _ in range(BISECTIONS):
        middle = 0.5 * (lower + upper)
        below = torch.special.ndtr((middle[:, None] - mean) / std).mean(1) < probabilities[:, None]
        lower, upper = torch.where(below, middle, lower), torch.where(below, upper, middle)
    return 0.5 * (lower + upper)


def distance_to_mixture(
    mean: Tensor,
    variance: Tensor,
    mixture_mean: Tensor,
    mixture_variance: Tensor,
    *,
    distance: Distance = "hellinger",
    marginal: Marginal = "moments",
    points: int = POINTS,
) -> Tensor:
    """Mean distance of C normal distributions from a mixture of M, at each of N points.

    Args:
        mean: ``C x N``, of the distributions.
        variance: ``C x N``.
        mixture_mean: ``M x N``, of the components of the mixture.
        mixture_variance: ``M x N``.
        distance: ``"hellinger"``, ``"wasserstein"`` or ``"kl"``, in which the mixture is the second argument.
        marginal: What stands for the mixture; see the module. The cost is O(N (C + M)) for its moments; for the mixture
            itself, O(N (C + 60 M) L).
        points: L, where the mixture stands for itself. They are quantiles of the mixture, so distributions must not lie
            much outside of it, as its components and what is conditioned on more do not: of N(0, 9) beside components
            of unit variance, 256 points see a quarter of the Kullback-Leibler divergence.

    Returns:
        N.

    Raises:
        InputError: For another name, or fewer than 2 points.

    Example:
        >>> mean, variance = torch.tensor([[0.0], [2.0]]).double(), torch.ones(2, 1).double()
        >>> round(float(distance_to_mixture(mean, variance, mean, variance, distance="wasserstein")), 6)
        1.082392
    """
    check_distance(distance, marginal, points)
    if marginal == "moments":
        found = CLOSED_FORMS[distance](mean, variance, *mixture_moments(mixture_mean, mixture_variance))
        return found.mean(0)
    probabilities = (torch.arange(points, dtype=torch.float64) + 0.5) / points
    count = mean.shape[-1]
    width = max(1, BLOCK_VALUES // (points * len(mixture_mean)))
    parts = []
    for start in range(0, count, width):
        own = mean[:, start : start + width], variance[:, start : start + width].clamp_min(LEAST_VARIANCE)
        mixture = mixture_mean[:, start : start + width], mixture_variance[:, start : start + width]
        parts.append(_to_mixture(*own, *mixture, probabilities, distance))
    return torch.cat(parts) if parts else mean.new_empty(0)


def check_distance(distance: str, marginal: str, points: int) -> None:
    """Refuse what `distance_to_mixture` does not know.

    Raises:
        InputError: For another name, or fewer than 2 points.
    """
    if distance not in CLOSED_FORMS:
        raise InputError(f"unknown distance {distance!r}; expected one of {', '.join(CLOSED_FORMS)}")
    if marginal not in get_args(Marginal):
        raise InputError(f"marginal is {marginal!r}; expected one of {', '.join(get_args(Marginal))}")
    if isinstance(points, bool) or points < 2:
        raise InputError(f"points is {points!r}; expected at least 2")


def _to_mixture(
    mean: Tensor,
    variance: Tensor,
    mixture_mean: Tensor,
    mixture_variance: Tensor,
    probabilities: Tensor,
    distance: str,
) -> Tensor:
    centre = mixture_mean.mean(0)  # large means must not cancel
    mixture_mean, mean = mixture_mean - centre, mean - centre
    at = mixture_quantiles(mixture_mean, mixture_variance, probabilities)
    std, other_std = variance.sqrt(), mixture_variance.clamp_min(LEAST_VARIANCE).sqrt()
    normal = torch.special.ndtri(probabilities)[:, None]
    log_mixture = torch.logsumexp(log_phi((at[:, None] - mixture_mean) / other_std) - other_std.log(), 1)
    log_mixture = log_mixture - math.log(len(mixture_mean))
    total = torch.zeros(mean.shape[-1], dtype=mean.dtype)
    for place in range(len(mean)):
        if distance == "wasserstein":
            total = total + (at - mean[place] - std[place] * normal).square().mean(0).sqrt()
            continue
        log_ratio = log_phi((at - mean[place]) / std[place]) - std[place].log() - log_mixture
        if distance == "kl":
            # w log w - w + 1 is never negative, and its mean is that of w log w.
            ratio = log_ratio.exp()
            total = total + (ratio * log_ratio - ratio + 1.0).mean(0)
        else:
            total = total + (1.0 - torch.exp(0.5 * log_ratio).mean(0)).clamp_min(0.0).sqrt()
    return total / len(mean)
