r"""Values of which only a limit is known, in Gaussian processes.

A censored value says that a measurement y, noise included, lies above or below a limit l: :math:`s (y - l) > 0` with
s = 1 or -1. With noise of variance :math:`\sigma^2` its likelihood is :math:`\Phi(s (f - l) / \sigma)`, the one part of
the Tobit likelihood of which the exact values are the other. Expectation propagation puts a Gaussian factor on y in its
place: a measurement of the value :math:`\mu` with the variance w besides the noise. With these the process is an
ordinary one whose noise differs between values, and its marginal likelihood is

.. math:: \log p = \log N(y_E; c, C_{EE}) + \log Z,

with E the exact rows, and Z the probability of all limits given these. Only as many rows as there are limits iterate
(`seqopt.models.orthants`), on the Schur complement of the exact ones. At its fixed points the gradient of log Z is as
if the factors stayed as they are (Rasmussen and Williams 2006, section 5.5.2), so with
:math:`\alpha = (C + W)^{-1} (\mu - c)`

.. math:: \frac{\partial \log p}{\partial C} = \tfrac12 \left( \alpha \alpha^T - (C + W)^{-1} \right).

References:
    Tobin, J. (1958). Estimation of relationships for limited dependent variables. Econometrica 26, 24-36.
    Groot, P. and Lucas, P. (2012). Gaussian process regression with censored data using expectation propagation.
        PGM, 115-122.
    Rasmussen, C. E. and Williams, C. K. I. (2006). Gaussian Processes for Machine Learning, sections 3.6 and 5.5.2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from seqopt.errors import InputError
from seqopt.models.orthants import TOLERANCE, positive_orthant
from seqopt.posteriors import stable_cholesky

BEYOND = 1e3
"""Standard deviations between a limit and the prediction from exact rows, beyond which it does not matter how many."""

Sides = npt.NDArray[np.int8]
"""Of each value: 0 if it is known, 1 if it is above the number that stands for it, -1 if it is below."""


@dataclass(frozen=True)
class CensoredSites:
    """Exact values in place of censored ones, as expectation propagation finds them.

    Attributes:
        residuals: Values less the prior mean, the censored ones replaced by the means of their factors, ``... x n``.
        variance: Variances of these besides the noise, 0 for the exact rows, ``... x n``.
        log_density: Logarithm of the density of the exact values and the probability of the limits, ``...``; minus
            infinity where the factors have not been found.
    """

    residuals: Tensor
    variance: Tensor
    log_density: Tensor


def censored_sites(
    covariance: Tensor,
    residuals: Tensor,
    sides: Tensor,
    start: CensoredSites | None = None,
    tolerance: float = TOLERANCE,
) -> CensoredSites:
    """Expectation propagation for the censored ones of n values.

    Args:
        covariance: Prior covariance of the values, noise included, ``... x n x n``.
        residuals: Values or limits less the prior mean, ``... x n``.
        sides: 0 for an exact value, 1 for one above its limit, -1 for one below, n; at least one is not 0.
        start: What was found at similar covariances.
        tolerance: See `seqopt.models.orthants.positive_orthant`.

    Example:
        >>> prior = 2.0 * torch.eye(2, dtype=torch.float64)
        >>> found = censored_sites(prior, torch.zeros(2, dtype=torch.float64), torch.tensor([0, 1]))
        >>> found.residuals[1].item() > 0, found.variance.tolist()[0]
        (True, 0.0)
    """
    exact, limited = torch.nonzero(sides == 0)[:, 0], torch.nonzero(sides)[:, 0]
    side = sides[limited].to(torch.float64)
    limits = residuals[..., limited]
    prior = covariance[..., limited[:, None], limited]
    mean = torch.zeros_like(limits)
    log_density = torch.zeros(residuals.shape[:-1], dtype=torch.float64)
    if len(exact):
        factor, _ = stable_cholesky(covariance[..., exact[:, None], exact])
        sides_of = torch.cat([covariance[..., exact[:, None], limited], residuals[..., exact, None]], -1)
        solved = torch.linalg.solve_triangular(factor, sides_of, upper=False)
        links, scaled = solved[..., :-1], solved[..., -1]
        prior = prior - links.mT @ links
        mean = (links.mT @ scaled[..., None])[..., 0]
        log_density = (
            -0.5 * scaled.square().sum(-1)
            - factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
            - 0.5 * len(exact) * math.log(2.0 * math.pi)
        )
    # A limit that is far below (above) anything that is expected says as little wherever it is.
    margin = torch.minimum(side * (mean - limits), BEYOND * prior.diagonal(dim1=-2, dim2=-1).sqrt())
    begin = None
    if start is not None:
        begin = side * (start.residuals[..., limited] - mean) + margin, start.variance[..., limited]
    found = positive_orthant(margin, side[:, None] * prior * side, begin, tolerance)
    values, variance = residuals.clone(), torch.zeros_like(residuals)
    values[..., limited] = mean + side * (found.mean - margin)
    variance[..., limited] = found.variance
    return CensoredSites(values, variance, log_density + found.log_probability)


def telling(values: npt.NDArray[np.floating], sides: Sides | None) -> npt.NDArray[np.bool_]:
    """Which values have a say in mean and scale: exact ones, and limits that not all exact values satisfy.

    That a value is above -1000 is no news where all others are between 0 and 1.

    Args:
        values: n values or limits.
        sides: See `Sides`.

    Example:
        >>> telling(np.array([0.0, 1.0, -1000.0, 0.5]), np.array([0, 0, 1, 1], dtype=np.int8)).tolist()
        [True, True, False, True]
    """
    if sides is None or not sides.any():
        return np.ones(len(values), dtype=np.bool_)
    exact = sides == 0
    if not exact.any():
        return np.ones(len(values), dtype=np.bool_)
    low, high = values[exact].min(), values[exact].max()
    found: npt.NDArray[np.bool_] = exact | ((sides > 0) & (values >= low)) | ((sides < 0) & (values <= high))
    return found


def checked_sides(strings: Sequence[str], censored: npt.ArrayLike | None) -> Sides | None:
    """What is known of each value, one number for each string; `None` where all are exact.

    Raises:
        InputError: If there is not one of -1, 0 and 1 for each.
    """
    if censored is None:
        return None
    found = np.asarray(censored)
    if found.shape != (len(strings),):
        raise InputError(f"{len(strings)} strings but censored of shape {found.shape}; give one number per string")
    if not np.isin(found, (-1, 0, 1)).all():
        bad = int(np.flatnonzero(~np.isin(found, (-1, 0, 1)))[0])
        raise InputError(
            f"censored is {found[bad]} for {strings[bad]!r}; expected 1 (its value is above the one given), -1 (below) "
            "or 0 (it is that value)"
        )
    return found.astype(np.int8) if found.any() else None
