r"""Weights of several models by what each would have predicted for every value without it.

With p_k(y_i) the density that model k gives value i from the others, stacking maximises the density that their mixture
gives all values, each from the others,

.. math:: \sum_i \log \sum_k w_k\, p_k(y_i) + s \sum_k \pi_k \log w_k, \qquad \sum_k w_k = 1,

where the second term, the logarithm of a Dirichlet density, counts as s values that prefer the prior weights
:math:`\pi_k`: a few values do not rule a model out. The sum is concave in w, and the expectation-maximisation steps

.. math:: w_k \leftarrow \Big( \sum_i \frac{w_k p_k(y_i)}{\sum_l w_l p_l(y_i)} + s \pi_k \Big) \Big/ (n + s)

climb to its maximum. Marginal likelihoods, which are the product of predictions of each value from those *before* it,
put nearly all weight on one model as data grow, even where several models together predict better than each.

References:
    Yao, Y., Vehtari, A., Simpson, D. and Gelman, A. (2018). Using stacking to average Bayesian predictive
        distributions. Bayesian Analysis 13(3).
    Rasmussen, C. E. and Williams, C. K. I. (2006). Gaussian Processes for Machine Learning, section 5.4.2.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from scipy import special, stats

from seqopt.models.leave_one_out import leave_one_out
from seqopt.models.sampling.density import LogPosterior
from seqopt.models.sampling.parameters import Numbers
from seqopt.posteriors import stable_cholesky

STEPS = 10_000
"""Most steps of expectation maximisation."""

TOLERANCE = 1e-6
"""Change of every weight below which the steps end.

Where weights hardly matter, as where models say nearly the same, they may be a hundredth from the best ones then."""


def stacking_weights(log_densities: Numbers, prior: Numbers, strength: float = 1.0) -> Numbers:
    """Weights of K models, which sum to 1.

    Args:
        log_densities: Logarithms of the densities that each model gives the n values, each from the others, K x n.
        prior: Weights where there are no values, K, of sum 1.
        strength: How many values the prior weights count as.

    Example:
        >>> stacking_weights(np.log([[0.2, 0.5, 0.3], [0.1, 0.6, 0.1]]), np.array([0.5, 0.5])).round(3)
        array([0.734, 0.266])
    """
    densities = np.exp(log_densities - log_densities.max(axis=0))
    weights = prior.copy()
    for _ in range(STEPS):
        shares = weights[:, None] * densities
        shares /= shares.sum(axis=0)
        found = (shares.sum(axis=1) + strength * prior) / (densities.shape[1] + strength)
        done = np.abs(found - weights).max() < TOLERANCE
        weights = found
        if done:
            break
    return weights


def independent_densities(values: Numbers) -> Numbers:
    r"""Logarithms of the densities of n values, each from the others, if they are independent of their strings.

    Values are normal with a mean and a variance of which nothing is known before, so each has, given the m = n - 1
    others with mean :math:`\bar y` and variance :math:`s^2`, a Student t distribution of m - 1 degrees of freedom about
    :math:`\bar y` with the scale :math:`s \sqrt{1 + 1/m}` (Gelman et al. 2013, section 3.2). For fewer than three
    values, and among equal ones, it is a standard normal distribution instead.

    Args:
        values: Standardised values, n.

    Example:
        >>> independent_densities(np.array([-1.0, 0.0, 1.0])).round(2)
        array([-2.39, -1.69, -2.39])
    """
    n = len(values)
    if n < 3:
        return np.asarray(stats.norm.logpdf(values))
    mean = (values.sum() - values) / (n - 1)
    # Sums of squares without one value, from what it adds to them.
    squares = ((values - values.mean()) ** 2).sum() - (values - values.mean()) ** 2 * n / (n - 1)
    variance = squares.clip(min=0.0) / (n - 2)
    found: Numbers = stats.norm.logpdf(values)
    some = variance > 1e-12
    scale = np.sqrt(variance[some] * n / (n - 1))
    found[some] = stats.t.logpdf(values[some], n - 2, mean[some], scale)
    return found


def cross_fitted_densities(
    density: LogPosterior, folds: Sequence[tuple[npt.NDArray[np.int64], dict[str, float]]]
) -> Numbers:
    """As `leave_one_out_densities`, for values in folds, each at parameters that were found without its fold.

    Args:
        density: Has the n values.
        folds: Indices of the values of each fold, and the parameters that were found without them.
    """
    found = np.empty(len(density.targets))
    for indices, point in folds:
        found[indices] = leave_one_out_densities(density, [point])[indices]
    return found


def leave_one_out_densities(density: LogPosterior, points: Sequence[dict[str, float]]) -> Numbers:
    """Logarithms of the densities of the n values, each from the others, in the mean over points of the parameters.

    Args:
        density: Has the values, none of them censored. Its constant mean is integrated out.
        points: Values of all parameters, the kernel's own in its order first, then the output scale and the noise
            variance; the same ones again count again.

    Returns:
        n.
    """
    counts: dict[tuple[float, ...], int] = {}
    for point in points:
        key = tuple(point.values())
        counts[key] = counts.get(key, 0) + 1
    targets = torch.from_numpy(density.targets)
    found, last, gram = [], None, None
    for *own, scale, noise in sorted(counts):
        if gram is None or own != last:
            last, gram = own, torch.from_numpy(density.gram(own))
        covariance = scale * gram + density.mean_std**2
        covariance.diagonal().add_(torch.from_numpy(noise + density.known))
        factor, _ = stable_cholesky(covariance)
        mean, variance = leave_one_out(factor, torch.cholesky_solve(targets[:, None], factor)[:, 0], targets)
        logarithms = -0.5 * ((targets - mean) ** 2 / variance + (2.0 * np.pi * variance).log())
        found.append(logarithms.numpy() + np.log(counts[*own, scale, noise] / len(points)))
    total: Numbers = special.logsumexp(found, axis=0)
    return total
