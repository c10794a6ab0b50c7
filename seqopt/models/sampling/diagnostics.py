r"""Whether chains have reached their distribution, and how many independent draws they are worth.

References:
    Gelman, A., Carlin, J. B., Stern, H. S., Dunson, D. B., Vehtari, A., Rubin, D. B. (2013). Bayesian Data Analysis,
        third edition, sections 11.4 (split R-hat) and 11.5 (effective sample size).
    Geyer, C. J. (1992). Practical Markov chain Monte Carlo. Statistical Science 7, 473-483.
"""

from __future__ import annotations

import math

import numpy as np

from seqopt.models.sampling.parameters import Numbers


def split_r_hat(chains: Numbers) -> float:
    r"""Potential scale reduction of one parameter, each chain cut into halves (not rank-normalised).

    With the mean W of the variances within the 2 M halves of n draws, and n times the variance of their means B,

    .. math:: \hat R = \sqrt{\frac{(n - 1) / n\, W + B / n}{W}}

    It is near 1 where all halves agree; NaN for fewer than 4 draws.

    Args:
        chains: M chains of N draws, ``M x N``.

    Example:
        >>> normal = np.random.default_rng(0).normal(size=(2, 1000))
        >>> bool(split_r_hat(normal) < 1.01), bool(split_r_hat(normal + [[0.0], [3.0]]) > 1.5)
        (True, True)
    """
    halves = _halves(chains)
    n = halves.shape[1]
    if n < 2:
        return math.nan
    within = float(halves.var(axis=1, ddof=1).mean())
    between = float(halves.mean(axis=1).var(ddof=1))
    if within == 0.0:
        return 1.0 if between == 0.0 else math.inf
    return math.sqrt((n - 1) / n + between / within)


def effective_sample_size(chains: Numbers) -> float:
    r"""Number of independent draws that estimate a mean as well as these.

    .. math:: \frac{M N}{1 + 2 \sum_t \hat\rho_t}, \qquad \hat\rho_t = 1 - \frac{W - \bar\gamma_t}{V}

    with the mean autocovariance :math:`\bar\gamma_t` of the halves at lag t and V the numerator of the split R-hat
    squared. The sum ends where that of two neighbouring correlations is negative, and these sums do not grow (Geyer's
    initial monotone sequence). At most M N log10(M N), for chains whose draws alternate.

    Args:
        chains: M chains of N draws, ``M x N``.

    Example:
        >>> normal = np.random.default_rng(0).normal(size=(2, 1000))
        >>> bool(1500 < effective_sample_size(normal) < 2700)
        True
    """
    halves = _halves(chains)
    m, n = halves.shape
    total = m * n
    if n < 4 or np.ptp(halves) == 0.0:
        return float(total)
    centred = halves - halves.mean(axis=1, keepdims=True)
    covariances = np.mean([np.correlate(chain, chain, "full")[n - 1 :] / n for chain in centred], axis=0)
    within = covariances[0] * n / (n - 1)
    pooled = covariances[0] + float(halves.mean(axis=1).var(ddof=1))
    correlations = 1.0 - (within - covariances) / pooled
    correlations[0] = 1.0
    pairs = correlations[: n // 2 * 2].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs < 0.0)
    kept = np.minimum.accumulate(pairs[: negative[0]] if len(negative) else pairs)
    time = max(-1.0 + 2.0 * float(kept.sum()), 1.0 / math.log10(max(total, 11)))
    return total / time


def _halves(chains: Numbers) -> Numbers:
    length = chains.shape[1] // 2
    return np.concatenate([chains[:, :length], chains[:, chains.shape[1] - length :]])
