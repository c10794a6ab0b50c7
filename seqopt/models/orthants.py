r"""Gaussian variables that are known to be positive, by expectation propagation.

Let u be normal with mean m and covariance S, and let all that is known of it be that its c elements are positive.
Expectation propagation replaces each of the c conditions by a *site*, a Gaussian factor N(u_i; \mu_i, w_i), so that
under the product of N(u; m, S) and all sites the mean and the variance of every element are as if its own site were the
condition itself, given the other sites. With the cavity (\bar m, \bar v) of element i, its moments without its own
site, and :math:`z = \bar m / \sqrt{\bar v}`, :math:`r = \varphi(z) / \Phi(z)`,

.. math:: \mu_i = \bar m + \frac{\sqrt{\bar v}}{z + r}, \qquad
    w_i = \bar v \left( \frac{1}{r (z + r)} - 1 \right).

As the conditions are log-concave, all w are positive. With :math:`W = \operatorname{diag}(w)`,
:math:`B = I + W^{-1/2} S W^{-1/2}`, :math:`d = W^{-1/2} (\mu - m)` and :math:`e = B^{-1} d`, the cavities are

.. math:: \bar v_i = w_i \left( \frac{1}{[B^{-1}]_{ii}} - 1 \right), \qquad
    \bar m_i = \mu_i - \frac{\sqrt{w_i}\, e_i}{[B^{-1}]_{ii}},

and the probability that all elements are positive is about Z with

.. math:: \log Z = \sum_i \left[ \log \Phi(z_i) + \frac{e_i^2}{2 [B^{-1}]_{ii}}
    - \tfrac12 \log [B^{-1}]_{ii} \right] - \tfrac12 \log |B| - \tfrac12 d^T e.

All sites are updated at once, by smaller steps where they oscillate: O(c^3) per round.

References:
    Minka, T. P. (2001). Expectation propagation for approximate Bayesian inference. UAI.
    Rasmussen, C. E. and Williams, C. K. I. (2006). Gaussian Processes for Machine Learning, section 3.6.
    Cunningham, J. P., Hennig, P. and Lacoste-Julien, S. (2011). Gaussian probabilities and expectation propagation.
        arXiv:1111.6832.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from seqopt.errors import ModelError
from seqopt.posteriors import stable_cholesky

TOLERANCE = 1e-8
"""Largest relative change of a site with which the sites count as found. The logarithm of the probability is stationary
there, so it errs by about the square of this."""

ROUNDS = 1000
"""Rounds after which sites that still change are given up."""

WIDEST = 1e6
"""Largest variance of a site, in units of the variance of its element: such a site says nothing."""

SHORTER, LONGER = 0.5, 1.2
"""Factors of the length of a step after one that was too long, and after one that was not."""

FAR = -60.0
"""Below this z the ratio of density and distribution function is taken from its asymptotic series."""


@dataclass(frozen=True)
class Orthant:
    """Gaussian factors in place of the conditions that c elements be positive.

    Attributes:
        mean: Means of the sites, ``... x c``.
        variance: Their variances, ``... x c``.
        log_probability: Logarithm of the probability of the conditions, ``...``; minus infinity where sites still
            changed after `ROUNDS` rounds.
    """

    mean: Tensor
    variance: Tensor
    log_probability: Tensor


def positive_orthant(
    mean: Tensor,
    covariance: Tensor,
    start: tuple[Tensor, Tensor] | None = None,
    tolerance: float = TOLERANCE,
) -> Orthant:
    """Expectation propagation for the conditions that all c elements of a Gaussian vector be positive.

    Args:
        mean: m, ``... x c``.
        covariance: S, positive definite, ``... x c x c``.
        start: Means and variances of sites to start from, such as those of a similar problem.
        tolerance: Largest relative change of a site with which the sites count as found.

    Raises:
        ModelError: If numbers are not finite, or a variance is not positive.

    Example:
        >>> half = torch.tensor([[1.0, 0.5], [0.5, 1.0]], dtype=torch.float64)
        >>> found = positive_orthant(torch.zeros(2, dtype=torch.float64), half)
        >>> round(found.log_probability.exp().item(), 2)  # 1/4 + arcsin(1/2) / (2 pi) = 1/3
        0.33
    """
    batch = mean.shape[:-1]
    c = mean.shape[-1]
    m, s = mean.reshape(-1, c), covariance.reshape(-1, c, c)
    own = s.diagonal(dim1=-2, dim2=-1)
    if not (bool(torch.isfinite(m).all()) and bool(torch.isfinite(s).all()) and bool((own > 0).all())):
        raise ModelError("the moments of censored values are not finite, or a variance is not positive")
    # Whatever the units, elements have variance 1 here.
    unit = own.sqrt()
    m, s = m / unit, s / (unit[..., None] * unit[..., None, :])
    if start is None:
        centre, width = _site(m, torch.ones_like(m))
    else:
        centre, width = start[0].reshape(-1, c) / unit, (start[1].reshape(-1, c) / unit.square()).clamp_max(WIDEST)
    log_probability = torch.empty(len(m), dtype=torch.float64)
    active = torch.arange(len(m))
    step = torch.ones(len(m), 1, dtype=torch.float64)
    before = torch.zeros(len(m), 2 * c, dtype=torch.float64)
    for _ in range(ROUNDS):
        part_m, part_s, mu, w = m[active], s[active], centre[active], width[active]
        cavity_mean, cavity_variance, rest = _cavities(part_m, part_s, mu, w)
        found_mu, found_w = _site(cavity_mean, cavity_variance)
        precision, found_precision = 1.0 / w, 1.0 / found_w
        shift, found_shift = mu * precision, found_mu * found_precision
        change = torch.cat(
            [(found_precision - precision) / (1.0 + precision), (found_shift - shift) / (1.0 + shift.abs())], -1
        )
        log_probability[active] = torch.special.log_ndtr(cavity_mean / cavity_variance.sqrt()).sum(-1) + rest
        # A change against the one before means that the step has been too long.
        turned = (change * before[active]).sum(-1, keepdim=True) < 0.0
        step[active] = (step[active] * torch.where(turned, SHORTER, LONGER)).clamp_max(1.0)
        before[active] = change
        precision = precision + step[active] * (found_precision - precision)
        width[active] = 1.0 / precision
        centre[active] = (shift + step[active] * (found_shift - shift)) / precision
        active = active[change.abs().amax(-1) > tolerance]
        if not len(active):
            break
    else:
        log_probability[active] = -math.inf
    return Orthant(
        (centre * unit).reshape(*batch, c),
        (width * unit.square()).reshape(*batch, c),
        log_probability.reshape(batch),
    )


def _site(mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance of the site that turns a normal variable into one with the moments of its positive part."""
    root = variance.sqrt()
    z = mean / root
    near = z.clamp_min(FAR)
    ratio = math.sqrt(2.0 / math.pi) / torch.special.erfcx(-near / math.sqrt(2.0))
    excess = near + ratio
    left = 1.0 - ratio * excess
    # z + r and 1 - r (z + r) are differences of nearly equal numbers far out; see Johnson, Kotz and Balakrishnan
    # (1994), Continuous Univariate Distributions, volume 1, chapter 13, for the series of Mills' ratio.
    inverse = 1.0 / z.clamp_max(FAR).square()
    far = z < FAR
    tail = -z.clamp_max(FAR)
    excess = torch.where(far, (1.0 - inverse * (2.0 - inverse * (10.0 - 74.0 * inverse))) / tail, excess)
    left = torch.where(far, inverse * (1.0 - inverse * (6.0 - 50.0 * inverse)), left)
    width = variance * left / (1.0 - left).clamp_min(1e-300)
    return mean + root / excess, width.clamp_max(WIDEST)


def _cavities(mean: Tensor, covariance: Tensor, mu: Tensor, w: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Moments of each element without its own site, and what log Z has besides the sum of log Phi."""
    root = w.rsqrt()
    scaled = root[..., None] * covariance * root[..., None, :]
    scaled.diagonal(dim1=-2, dim2=-1).add_(1.0)
    factor, failed = torch.linalg.cholesky_ex(scaled)
    if bool(failed.any()):
        factor, _ = stable_cholesky(scaled)
    eye = torch.eye(mean.shape[-1], dtype=torch.float64).expand_as(factor)
    inverse = torch.linalg.solve_triangular(factor, eye, upper=False)
    own = inverse.square().sum(-2)
    difference = root * (mu - mean)
    solved = (inverse.mT @ (inverse @ difference[..., None]))[..., 0]
    cavity_variance = (w * (1.0 / own - 1.0)).clamp_min(1e-300)
    rest = 0.5 * (solved.square() / own - own.log() - difference * solved).sum(-1) - factor.diagonal(
        dim1=-2, dim2=-1
    ).log().sum(-1)
    return mu - solved / (root * own), cavity_variance, rest
