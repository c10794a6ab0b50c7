"""Gaussian special functions in log space, finite and correctly ordered far into both tails.

Write phi and Phi for the standard normal density and distribution function. Three quantities carry the
acquisition functions of this package:

- the inverse Mills ratio r(x) = phi(x) / Phi(x);
- the shrinkage t(x) = r(x) (x + r(x)), by which truncating a standard normal variable from above at x reduces its
  variance: Var[Z | Z < x] = 1 - t(x), with 0 < t < 1;
- the improvement function h(x) = phi(x) + x Phi(x), the expectation of max(x + Z, 0).

For x -> infinity t and r fall below the smallest float, so their logarithms are computed. For x -> -infinity
the textbook expressions of x + r, 1 - t and h cancel to nothing. Below `TAIL` they are written with y = -x as

    r = y + d,   d = 1/(y + c),   1 - t = d (c - d),   h = phi d / r,

where c comes from the scaled complementary error function while that is accurate enough, and further out from
Laplace's continued fraction c = 2/(y + 3/(y + 4/(y + ...))), in which every term has the same sign.

Of these BoTorch offers log r alone (``standard_normal_log_hazard``), which gives neither t nor 1 - t where they round
to 1 or 0, and h in a private function; log Phi is torch's. To import its module for `log_phi` and `log_mean_exp` as
well would import gpytorch and linear_operator, a third of a second more for whoever only wants a score.

All functions are elementwise on float32 and float64 tensors of any shape and keep the dtype.

References:
    Abramowitz, M. and Stegun, I. A. (1964). Handbook of Mathematical Functions, 26.2.14.
    Moss, H. B. et al. (2021). GIBBON: General-purpose Information-Based Bayesian OptimisatioN. JMLR 22(235).
    Ament, S. et al. (2023). Unexpected improvements to expected improvement for Bayesian optimization.
    NeurIPS.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)

TAIL = -1.0
"""Arguments below this one are treated by the tail formulas."""

FRACTION_DEPTHS = ((4.0, 42), (8.0, 20))
"""Levels of the continued fraction that give full float64 accuracy from each y on."""

BLOCK_POINTS = 1 << 14
"""Points of one block of `in_blocks`."""

LOG_FLOOR = -690.0
"""Where `ordered_exp` leaves the exponential: exp(-690) is about 1e-300."""


def log_phi(x: Tensor) -> Tensor:
    """Logarithm of the standard normal density, -x^2/2 - log sqrt(2 pi)."""
    return -0.5 * x.square() - LOG_SQRT_2PI


def truncation_shrinkage(x: Tensor) -> tuple[Tensor, Tensor]:
    """The pair log t(x) and 1 - t(x), with t(x) = r (x + r) and r = phi(x) / Phi(x).

    1 - t(x) is the variance of a standard normal variable given that it is below x. Both are accurate to a
    few units in the last place: log t where t underflows, and 1 - t where t rounds to 1.

    Example:
        >>> log_t, remaining = truncation_shrinkage(torch.tensor([-1e4, 0.0, 100.0], dtype=torch.float64))
        >>> log_t
        tensor([-1.0000e-08, -4.5158e-01, -4.9963e+03], dtype=torch.float64)
        >>> remaining
        tensor([1.0000e-08, 3.6338e-01, 1.0000e+00], dtype=torch.float64)
    """
    inner = x.clamp_min(TAIL)
    log_r = log_phi(inner) - _log_ndtr_above_tail(inner)
    r = log_r.exp()
    gap = inner + r
    remaining = 1.0 - r * gap
    log_t = log_r.add_(gap.log_())
    tail = x < TAIL
    if bool(tail.any()):
        d, c = _tail_terms(-x[tail])
        remaining[tail] = d * (c - d)
        log_t[tail] = torch.log1p(-d * (c - d))
    return log_t, remaining


def inverse_mills(x: Tensor) -> tuple[Tensor, Tensor]:
    """The pair r(x) = phi(x) / Phi(x) and x + r(x), which is positive and does not cancel below `TAIL`.

    Example:
        >>> inverse_mills(torch.tensor([-1e4, 0.0], dtype=torch.float64))[1]
        tensor([1.0000e-04, 7.9788e-01], dtype=torch.float64)
    """
    inner = x.clamp_min(TAIL)
    r = torch.exp(log_phi(inner) - _log_ndtr_above_tail(inner))
    gap = inner + r
    tail = x < TAIL
    if bool(tail.any()):
        y = -x[tail]
        d, _ = _tail_terms(y)
        r[tail], gap[tail] = y + d, d
    return r, gap


def log_improvement(x: Tensor) -> Tensor:
    """Logarithm of h(x) = phi(x) + x Phi(x).

    The expected improvement of a normal variable of mean mu and standard deviation sigma over a level b is
    sigma h((mu - b) / sigma).

    Example:
        >>> log_improvement(torch.tensor([-100.0, 0.0, 100.0]))
        tensor([-5.0101e+03, -9.1894e-01,  4.6052e+00])
    """
    inner = x.clamp_min(TAIL)
    result = torch.log(log_phi(inner).exp() + inner * torch.special.ndtr(inner))
    tail = x < TAIL
    if bool(tail.any()):
        y = -x[tail]
        d, _ = _tail_terms(y)
        result[tail] = log_phi(y) + torch.log(d / (y + d))
    return result


def log_neg_log1p_neg(log_u: Tensor, complement: Tensor) -> Tensor:
    """log(-log(1 - u)) for 0 < u < 1, from log u and 1 - u.

    Both arguments are taken because neither end can be had from the other: for tiny u the result is log u (u
    itself may underflow), and for u near 1 it is log(-log(1 - u)).

    Args:
        log_u: log u, any shape.
        complement: 1 - u, same shape; used where u exceeds one half.

    Example:
        >>> log_u = torch.tensor([-5000.0, -0.5])
        >>> log_neg_log1p_neg(log_u, -torch.expm1(log_u))
        tensor([-5.0000e+03, -6.9616e-02])
    """
    u = log_u.exp()
    # With u kept above 1e-30 the ratio -log1p(-u) / u rounds to its limit 1 where u itself underflows.
    kept = u.clamp_min(1e-30)
    ratio = torch.log1p(-kept).neg_().div_(kept)
    large = u > 0.5
    if bool(large.any()):
        ratio[large] = -torch.log(complement[large]) / u[large]
    return ratio.log_().add_(log_u)


def log_mean_exp(x: Tensor, dim: int) -> Tensor:
    """Log of the mean of exp(x) over ``dim``; -inf where every term is."""
    return x.squeeze(dim) if x.shape[dim] == 1 else torch.logsumexp(x, dim=dim) - math.log(x.shape[dim])


def ordered_exp(log_x: Tensor) -> Tensor:
    """exp(log_x) that never underflows to a tie.

    Equal to exp down to `LOG_FLOOR` (values of about 1e-300); from there on exp(LOG_FLOOR) LOG_FLOOR /
    log_x, which is continuous, positive and strictly increasing. The absolute error is below 1e-299, and an
    argmax over values that would all be exactly zero is still the argmax of their logarithms.

    Args:
        log_x: float64, any shape; -inf gives 0.

    Returns:
        float64 of the same shape.

    Example:
        >>> ordered_exp(torch.tensor([-5000.0, -1000.0, 0.0], dtype=torch.float64)).argsort().tolist()
        [0, 1, 2]
    """
    floor = math.exp(LOG_FLOOR)
    return torch.where(log_x >= LOG_FLOOR, log_x.exp(), floor * (LOG_FLOOR / log_x.clamp_max(LOG_FLOOR)))


def positive_std(variance: Tensor) -> Tensor:
    """Square root of a variance, kept so far above zero that squares of standardised values stay finite.

    Example:
        >>> positive_std(torch.tensor([4.0, 0.0], dtype=torch.float64)) > 0
        tensor([True, True])
    """
    return variance.sqrt().clamp_min(torch.finfo(variance.dtype).tiny ** 0.25)


def in_blocks(function: Callable[..., Tensor], *values: Tensor) -> Tensor:
    """``function`` of tensors ``... x N`` that is elementwise in the last dimension, a block at a time.

    Intermediate results of a block stay in the processor's cache, which is faster than whole passes over
    memory, and their memory does not grow with N.

    Args:
        function: From tensors ``... x b`` to a tensor ``... x b``.
        values: Tensors of equal last dimension.

    Example:
        >>> in_blocks(torch.mul, torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
        tensor([3., 8.])
    """
    if values[0].shape[-1] <= BLOCK_POINTS:
        return function(*values)
    blocks = zip(*(_split(value) for value in values), strict=True)
    return torch.cat([function(*block) for block in blocks], dim=-1)


def _split(values: Tensor) -> tuple[Tensor, ...]:
    return torch.split(values, BLOCK_POINTS, dim=-1)


def _log_ndtr_above_tail(x: Tensor) -> Tensor:
    # Far faster than log_ndtr. The error, one rounding of Phi, is hidden by the quadratic term next to it.
    return torch.special.ndtr(x).log_()


def _tail_terms(y: Tensor) -> tuple[Tensor, Tensor]:
    near_end = FRACTION_DEPTHS[0][0]
    r = 1.0 / (math.sqrt(0.5 * math.pi) * torch.special.erfcx(y.clamp_max(near_end) / math.sqrt(2.0)))
    c = 1.0 / (r - y).clamp_min(0.1) - y
    ends = (*(start for start, _ in FRACTION_DEPTHS[1:]), math.inf)
    for (start, depth), end in zip(FRACTION_DEPTHS, ends, strict=True):
        inside = (y >= start) & (y < end)
        if bool(inside.any()):
            c[inside] = _laplace_fraction(y[inside], depth)
    return 1.0 / (y + c), c


def _laplace_fraction(y: Tensor, depth: int) -> Tensor:
    c = torch.zeros_like(y)
    for k in range(depth, 1, -1):
        c.add_(y).reciprocal_().mul_(k)
    return c
