"""MUMBO: the information that one noisy outcome, of any fidelity, gives about the maximum of the target.

Let rho be the correlation of an outcome y with its target g, gamma = (m - mean) / std of the target, and r =
phi(gamma) / Phi(gamma). Given g <= m, the standardised outcome theta has the extended skew-normal density

    p(theta) = phi(theta) Phi((gamma - rho theta) / sqrt(1 - rho^2)) / Phi(gamma)

of mean -rho r and variance s^2 = 1 - rho^2 r (gamma + r), and MUMBO is the difference of the entropies,

    alpha = 1/|M| sum_m [rho^2 gamma r / 2 - log Phi(gamma) + E_p log Phi((gamma - rho theta) / sqrt(1 - rho^2))].

The terms cancel in both tails, and so do the entropies. With q the normal density of the moments of p, and
KL(p || q) = int q f(p / q), f(w) = w log w - w + 1, two other forms have parts of one sign only:

    alpha = -1/2 log s^2 + KL(p || q) = rho^2 gamma r / 2 + KL(p || phi).

The first part of the first form is GIBBON of a single outcome, so MUMBO is at least that. The first form is used up to
gamma = `SWITCH`, the second above. The published rule for the integral, Simpson's over eight standard deviations about
the mean, leaves out the exponential tail of p for gamma << 0, an error of 1e-2 nats, and does not see the edge that p
has at gamma / rho as rho tends to 1. Here the range follows the tails, and is cut about that edge into four panels,
each with `NODES` nodes of Gauss and Legendre; tests compare both rules where the published one holds.

References:
    Moss, H. B., Leslie, D. S. and Rayson, P. (2020). MUMBO: MUlti-task Max-value Bayesian Optimisation. ECML PKDD.
    Moss, H. B. (2021). General-purpose Information-Theoretical Bayesian Optimisation. PhD thesis, section 3.4 and
        appendix A.1, where the mean is printed with the wrong sign, and phi' for phi in the variance.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from seqopt.acquisition.gibbon import log_gibbon_of
from seqopt.acquisition.information import InformationAcquisition, PreparedInformation, Repulsion
from seqopt.acquisition.max_values import MaxValueSampler
from seqopt.acquisition.numerics import inverse_mills, log_phi, truncation_shrinkage

NODES = 32
"""Nodes of each of the four panels."""

BLOCK_VALUES = 1 << 12
"""Integrals that are computed at once, which bounds the memory."""

REACH = 8.5
"""Standard deviations beyond which a normal density is nothing."""

TURN = 4.0
"""Half the length of the panel about the edge, at most, and where the lower tail begins, in standard deviations."""

SWITCH = 3.0
"""Where one form gives way to the other: p differs from q by less than its rounding for gamma of about 10."""

DEEP = -1e4
"""From here down the shape of p no longer depends on gamma but through sqrt(1 - rho^2) |gamma|."""

FAR = 60.0
"""From here up the ratio of the two parts, about 2 / gamma^2 at most, is taken to be constant."""

LEAST_RHO, LEAST_WIDTH = 1e-8, 1e-11
"""Below these rho and sqrt(1 - rho^2) make no difference to the sum, and are kept."""

SERIES = 0.05
"""Logarithms of p / q nearer to nothing than this are put into a series of f."""


def log_mumbo(gamma: Tensor, rho2: Tensor) -> Tensor:
    """Logarithm of the value of one outcome for one max-value.

    Accurate to 1e-8 of the value for gamma from -1e4 to 10, to 1e-6 above, and finite and in order everywhere.

    Args:
        gamma: (m - mean) / std of the target, any shape, float32 or float64.
        rho2: Squared correlation of the outcome, noise included, with the target; inside [0, 1], broadcastable to
            ``gamma``. With 1 it is max-value entropy search (`seqopt.acquisition.log_mes`).

    Returns:
        Same shape and dtype as ``gamma``; minus infinity where ``rho2`` is 0.

    Example:
        >>> log_mumbo(torch.tensor([0.0, 0.0, 100.0]), torch.tensor([0.5, 1.0, 0.5]))
        tensor([-1.6443e+00, -3.6651e-01, -4.9977e+03])
    """
    return _log_mumbo(gamma, rho2, 1.0 - rho2)


class MUMBO(InformationAcquisition):
    """MUMBO, exact for a single outcome of any fidelity, noise included.

    Where what is measured is the target with noise it is max-value entropy search for noisy measurements. It costs some
    300 times as much as `seqopt.acquisition.GIBBON`, its lower bound, for each point and max-value.

    Batches are filled as by GIBBON: half the logarithm of the determinant of the outcomes' correlations is added.

    Args:
        num_samples: Number of max-values per step.
        sampler: See `seqopt.acquisition.GIBBON`.
        repulsion: See `seqopt.acquisition.GIBBON`.

    Raises:
        InputError: For an unknown sampler or repulsion, or ``num_samples`` less than 1.

    Example:
        >>> from seqopt.acquisition import DensePosterior
        >>> posterior = DensePosterior(torch.tensor([0.5, 0.2]), torch.eye(2), 0.1)
        >>> prepared = MUMBO().prepared(torch.tensor([1.8, 2.2]), 1.0)
        >>> prepared(posterior)
        tensor([0.1340, 0.0878], dtype=torch.float64)
    """

    name = "mumbo"
    sees_outcomes = True

    def __init__(
        self, num_samples: int = 5, sampler: str | MaxValueSampler = "exact", repulsion: Repulsion = "1/B"
    ) -> None:
        super().__init__(num_samples, sampler, repulsion)

    def prepared(self, max_values: Tensor, repulsion: float | Literal["1/m^2"]) -> PreparedInformation:
        """MUMBO with given max-values."""
        return PreparedInformation(max_values, repulsion, _log_mumbo)


def _log_mumbo(gamma: Tensor, rho2: Tensor, residual: Tensor) -> Tensor:
    shape: torch.Size = torch.broadcast_shapes(gamma.shape, rho2.shape)  # type: ignore[no-untyped-call]
    dtype = gamma.dtype
    flat = [value.to(torch.float64).expand(shape).reshape(-1) for value in (gamma, rho2, residual)]
    blocks = zip(*(torch.split(value, BLOCK_VALUES) for value in flat), strict=True)
    found = [_log_values(*block) for block in blocks]
    return torch.cat(found).reshape(shape).to(dtype) if found else torch.empty(shape, dtype=dtype)


def _log_values(gamma: Tensor, rho2: Tensor, residual: Tensor) -> Tensor:
    near = gamma.clamp_max(FAR)
    log_ratio = _log_divergence(near, rho2, residual) - _log_first_part(near, rho2, residual)
    value = _log_first_part(gamma, rho2, residual) + torch.nn.functional.softplus(log_ratio)
    value = torch.maximum(value, log_gibbon_of(gamma, rho2, residual))  # to the last digit
    return torch.where(rho2 > 0, value, -math.inf)


def _log_first_part(gamma: Tensor, rho2: Tensor, residual: Tensor) -> Tensor:
    above = gamma.clamp_min(SWITCH)
    second = log_phi(above) - torch.special.log_ndtr(above) + torch.log(0.5 * rho2 * above)
    return torch.where(gamma > SWITCH, second, log_gibbon_of(gamma, rho2, residual))


def _log_divergence(gamma: Tensor, rho2: Tensor, residual: Tensor) -> Tensor:
    """Logarithm of the divergence of p from q, or from phi above `SWITCH`, for gamma up to `FAR`, K values."""
    rho = rho2.clamp(0.0, 1.0).sqrt().clamp_min(LEAST_RHO)
    width = residual.clamp(0.0, 1.0).sqrt().clamp_min(LEAST_WIDTH)
    slope = width / rho * (gamma / DEEP).clamp_min(1.0)
    rho, width = 1.0 / torch.sqrt(1.0 + slope.square()), slope / torch.sqrt(1.0 + slope.square())
    gamma = gamma.clamp_min(DEEP)
    r, _ = inverse_mills(gamma)
    _, remaining = truncation_shrinkage(gamma)
    mean, std = -rho * r, torch.sqrt(width.square() + rho.square() * remaining)
    mean, std = torch.where(gamma > SWITCH, 0.0, mean), torch.where(gamma > SWITCH, 1.0, std)

    theta, log_weights = _nodes(gamma, rho, width, mean, std)
    gamma, rho, width, mean, std = (value[:, None] for value in (gamma, rho, width, mean, std))
    log_q = log_phi((theta - mean) / std) - std.log()
    inside = torch.special.log_ndtr((gamma - rho * theta) / width) - torch.special.log_ndtr(gamma)
    # In this order a logarithm far smaller than those of the densities keeps its digits.
    log_w = (log_phi(theta) - log_q) + inside
    return torch.logsumexp(log_weights + log_q + _log_excess(log_w), dim=-1)


def _nodes(gamma: Tensor, rho: Tensor, width: Tensor, mean: Tensor, std: Tensor) -> tuple[Tensor, Tensor]:
    """Nodes and logarithms of their weights, K x 4 `NODES`."""
    below, above = gamma.clamp_max(0.0), gamma.clamp_min(0.0)
    edge = gamma / rho
    # The standard normal below a level is nothing where its density has fallen by exp(-REACH^2 / 2).
    truncated = torch.sqrt(below.square() + REACH**2)
    low = torch.minimum(mean - REACH * std, -rho * truncated - REACH * width)
    # Above gamma, q f(p / q) is largest where phi(theta) Phi(-(gamma - rho theta) / width)^2 is.
    peak = 2.0 * rho * above / (1.0 + rho.square()) + REACH
    high = torch.minimum(peak, torch.sqrt(edge.clamp_min(0.0).square() + REACH**2))
    high = torch.where(gamma > 0, high, rho * below + REACH * width)
    high = torch.maximum(high, mean + REACH * std)
    turn = (REACH * width / rho).clamp_max(TURN)
    first = torch.minimum(torch.maximum(edge - turn, low), high)
    second = torch.minimum(torch.maximum(edge + turn, low), high)
    tail = torch.minimum(torch.maximum(mean - TURN * std, low), first)
    ends = torch.stack([low, tail, first, second, high], dim=-1)
    half = 0.5 * ends.diff(dim=-1)[..., None]
    theta = ends[:, :-1, None] + half * (1.0 + _ABSCISSAE)
    return theta.flatten(-2), (half.log() + _LOG_WEIGHTS).flatten(-2)


def _log_excess(log_w: Tensor) -> Tensor:
    """Log f(w) = log(w log w - w + 1) from log w."""
    small = log_w.clamp(-SERIES, SERIES)
    series = 1.0 + small * (2 / 3 + small * (1 / 4 + small * (1 / 15 + small * (1 / 72 + small / 420))))
    result = 2.0 * log_w.abs().log() - math.log(2.0) + series.log()
    large = log_w.clamp_min(SERIES)
    result = torch.where(log_w > SERIES, large + torch.log(large + torch.expm1(-large)), result)
    less = log_w.clamp_max(-SERIES)
    return torch.where(log_w < -SERIES, torch.log1p(less.exp() * (less - 1.0)), result)


def _rule() -> tuple[Tensor, Tensor]:
    abscissae, weights = np.polynomial.legendre.leggauss(NODES)
    return torch.from_numpy(abscissae), torch.from_numpy(np.log(weights))


_ABSCISSAE, _LOG_WEIGHTS = _rule()
