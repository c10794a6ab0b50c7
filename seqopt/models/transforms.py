r"""Which transform of the values a Gaussian process explains best.

A process with the covariance :math:`\sigma^2 (K + r I)` and a constant mean gives n values y, seen as z = T(y), the
density

.. math:: \log p(y) = \log \mathcal{N}(z; c, \sigma^2 (K + r I)) + \sum_i \log T'(y_i),

whose second term makes transforms comparable (Snelson et al. 2003). For a fixed correlation K it is maximised over the
mean, the scale and the share of the noise r in closed form and on a grid: after one eigendecomposition of K, each
transform costs a product of a matrix and a vector. From it half the logarithm of n is taken off for each parameter that
the transform has learned (Schwarz 1978), so that a few values do not choose an odd transform.

The transform is learned in two steps. First K is left out: values are taken as independent. A model is fitted to the
values so transformed; then its own K decides. If that chooses otherwise, the model is fitted once more. What is learned
depends on values and strings only, not on what was learned before; but while a model keeps the draws of its parameters,
because few values were added, the K that decides is theirs.

Values of which only a limit is known do not vote; their limits are transformed as values are.

References:
    Snelson, E., Rasmussen, C. E. and Ghahramani, Z. (2003). Warped Gaussian processes. NeurIPS 16.
    Schwarz, G. (1978). Estimating the dimension of a model. Annals of Statistics 6, 461-464.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from scipy import special

from seqopt.data.transforms import Identity, LearnedTransform, Transform, Winsorised, YeoJohnson, log_slopes
from seqopt.models.gaussian import GaussianSurrogate

Numbers = npt.NDArray[np.float64]

NOISE_RATIOS = np.geomspace(1e-3, 1e3, 25)
"""Variances of the noise that are tried, in units of the signal's."""

FEWEST = 10
"""Exact values below which ``"auto"`` leaves them as they are: fewer do not show a tail."""

MOST = 500
"""Values that decide at most, evenly spread over all: an eigendecomposition costs their cube."""


@runtime_checkable
class DrawnSurrogate(Protocol):
    """A surrogate that keeps the draws of its parameters while few values are added, in units that stay the same."""

    def keeps_draws(self, count: int) -> bool:
        """Whether a fit to ``count`` values keeps the draws, if their units stay the same."""
        ...


def fit_with_transform(
    transform: Transform,
    values: npt.ArrayLike,
    exact: npt.NDArray[np.bool_],
    fit: Callable[[], None],
    surrogate: object,
    latest: str | None = None,
) -> str | None:
    """Fit a surrogate to transformed values, and learn the transform where it has something to learn.

    The transform is chosen by the correlations of a first fit, to values under that which is best for independent ones.
    Draws of parameters that the surrogate would keep (`DrawnSurrogate`) were made under the latest choice: the first
    fit is to that, since under another one parameters would be drawn for nothing.

    Args:
        transform: What the model sees; a `seqopt.data.LearnedTransform` is changed.
        values: n values in the user's units, in the order in which ``fit`` gives them to the surrogate.
        exact: Which of them are known exactly, n; others are limits.
        fit: Fits ``surrogate`` to the values as ``transform`` is then.
        surrogate: What is fitted. Where it is not one of ours, values are taken as independent.
        latest: What the surrogate's last fit returned.

    Returns:
        What was chosen, without what follows from the values; `None` where there was no choice.
    """
    if not isinstance(transform, LearnedTransform):
        fit()
        return None
    everything = np.asarray(values, dtype=np.float64)
    rows = np.flatnonzero(exact)
    if len(rows) > MOST:
        rows = rows[np.linspace(0, len(rows) - 1, MOST).round().astype(np.int64)]
    if transform.name == "auto" and len(rows) < FEWEST:
        transform.current = Identity()
        fit()
        return None
    candidates = transform.candidates(everything[rows])
    if everything.min() <= 0.0:
        # Limits, and values that do not decide, are transformed as well.
        candidates = [(one, count) for one, count in candidates if one.name != "log10"]
    if transform.name == "ranks":
        candidates = transform.candidates(everything[exact])
    kept = isinstance(surrogate, DrawnSurrogate) and surrogate.keeps_draws(len(everything))
    if len(candidates) == 1:
        first = candidates[0][0]
    else:
        again = [one for one, _ in candidates if kept and _form(one) == latest]
        first = again[0] if again else best_transform(candidates, everything[rows], None)
    transform.current = first
    fit()
    if len(candidates) == 1 or not isinstance(surrogate, GaussianSurrogate) or surrogate.mean is not None:
        return None
    state = surrogate.fitted
    if state.wanted is not None or len(state.keys) != len(everything):
        return None
    if len(rows) == len(everything):
        # The factor is at hand; kernels are not evaluated again.
        gram = (state.prior() / state.scale[:, None, None]).numpy()
    else:
        chosen = state.encoded.take(rows)
        gram = np.asarray(state.evaluator.cross(chosen, None, state.evaluator.self_similarity(chosen)))
        gram = gram.astype(np.float64, copy=False).reshape(-1, len(rows), len(rows))
    transform.current = best_transform(candidates, everything[rows], gram)
    if transform.current != first:
        fit()
    return _form(transform.current)


def _form(transform: Transform) -> str:
    """What was chosen of a transform: all but the centre and the scale of the values."""
    if isinstance(transform, YeoJohnson | Winsorised):
        return repr(replace(transform, centre=0.0, scale=1.0))
    return transform.name


def best_transform(
    candidates: list[tuple[Transform, int]], values: npt.NDArray[np.float64], grams: Numbers | None
) -> Transform:
    """The transform of the highest density of the values, less half the logarithm of n for each of its parameters.

    Args:
        candidates: Transforms, each with its number of parameters; of equals the first wins.
        values: n values in the user's units.
        grams: Prior correlations of the strings, D x n x n; `None` for none.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> values = np.exp(2 * rng.standard_normal(100))
        >>> best_transform(LearnedTransform("auto").candidates(values), values, None).name
        'log10'
    """
    spectra = (
        None if grams is None else [(found.eigenvalues, found.eigenvectors) for found in map(np.linalg.eigh, grams)]
    )
    penalty = 0.5 * math.log(len(values))
    scores = [log_density(one, values, spectra) - penalty * count for one, count in candidates]
    return candidates[int(np.argmax(scores))][0]


def log_density(
    transform: Transform, values: npt.NDArray[np.float64], spectra: list[tuple[Numbers, Numbers]] | None
) -> float:
    """Logarithm of the highest density that a process gives values under a transform, mean over D correlations.

    Args:
        transform: With a density.
        values: n values in the user's units.
        spectra: Eigenvalues and vectors of each correlation; `None` for independent values.

    Returns:
        Minus infinity where it is not a number.
    """
    images = np.array([transform.forward(value) for value in values.tolist()])
    count = len(values)
    if spectra is None:
        variance = images.var()
        density = -0.5 * count * (math.log(2 * math.pi * variance) + 1) if variance > 0 else math.inf
        found = density + log_slopes(transform, values)
        return found if math.isfinite(found) else -math.inf
    densities = [_profiled(images, *spectrum) for spectrum in spectra]
    found = float(special.logsumexp(densities)) - math.log(len(densities)) + log_slopes(transform, values)
    return found if math.isfinite(found) else -math.inf


def _profiled(images: Numbers, eigenvalues: Numbers, vectors: Numbers) -> float:
    """Logarithm of the highest density over mean, scale and share of the noise."""
    count = len(images)
    rotated, ones = vectors.T @ images, vectors.sum(axis=0)
    variances = eigenvalues.clip(min=0.0) + NOISE_RATIOS[:, None]
    mean = (ones * rotated / variances).sum(axis=1) / (ones**2 / variances).sum(axis=1)
    squares = ((rotated - mean[:, None] * ones) ** 2 / variances).sum(axis=1) / count
    with np.errstate(divide="ignore"):
        logs = np.log(2 * math.pi * squares)
    return float((-0.5 * (count * (logs + 1) + np.log(variances).sum(axis=1))).max())
