"""What a campaign's model says of a few strings that are measured again: their joint distribution, and replicates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from seqopt.data import Context, Item, Query
from seqopt.data.query import context_of, key_of
from seqopt.errors import ModelError
from seqopt.models.conditioned import GaussianProcess
from seqopt.models.protocols import StringSurrogate
from seqopt.strategies.arms import ArmPosterior
from seqopt.strategies.arms.posterior import of_measurements, spread_of

if TYPE_CHECKING:
    from seqopt.campaign.rows import Measurement

FloatArray = npt.NDArray[np.float64]

SUSPICIOUS = 0.001
"""Probability, of one string, below which its replicates do not go with their standard errors."""


def arms_of(
    surrogate: object, keys: Sequence[str], fresh: Context | None = None, *, target: Context = ()
) -> ArmPosterior:
    """The joint distribution of the true values of strings, with what measuring them again would tell.

    Draws of the model's parameters are taken together: the mean of their means, and the mean of their covariances plus
    the covariance of their means.

    What counts as a measurement of a string was measured as the target or, where there are plates, on any of them. Of
    several plates the measurements are compared by generalised least squares
    (`seqopt.strategies.arms.posterior.of_measurements`), to which all strings contribute that link plates, as controls.

    Args:
        surrogate: Fitted.
        keys: K strings.
        fresh: A plate on which nothing has been measured yet, where measurements are made on plates.
        target: How the target is measured, where there are several ways.

    Raises:
        ModelError: If the model has no joint Gaussian posterior.
    """
    process = surrogate.conditioned() if isinstance(surrogate, StringSurrogate) else None
    if not isinstance(process, GaussianProcess):
        raise ModelError(
            f"{type(surrogate).__name__} does not say how the true values of strings go together: confirming takes a "
            "Gaussian process"
        )
    values, known = process.state.values, [key_of(item) for item in process.state.keys]
    told = (values if values.ndim == 1 else values.mean(0)).numpy()
    # A way to measure that costs less says nothing of how often the target was measured.
    counted = [
        place
        for place, item in enumerate(process.state.keys)
        if fresh is not None or context_of(item) in ((), tuple(target))
    ]
    count = len(keys)
    if fresh is None:
        mean, covariance = _together(process, list(keys))
        own = {key: [told[place] for place in counted if known[place] == key] for key in keys}
        return ArmPosterior.of(
            mean,
            _without_negative(covariance),
            np.broadcast_to(process.state.noise_at(list(keys)).mean(0).numpy(), (count,)),
            counts=[len(own[key]) for key in keys],
            averages=[float(np.mean(own[key])) if own[key] else np.nan for key in keys],
        )
    where: dict[str, set[Context]] = {}
    for item, key in zip(process.state.keys, known, strict=True):
        where.setdefault(key, set()).add(context_of(item))
    strings = [*keys, *(key for key, plates in where.items() if len(plates) > 1 and key not in set(keys))]
    measured: list[Item] = [Query(key, fresh) for key in strings]
    mean, covariance = _together(process, [*strings, *measured])
    # A fresh plate is the target and what it does besides, which is independent of it.
    total = len(strings)
    plate = _without_negative(covariance[total:, total:] - covariance[:total, :total])
    index = {key: place for place, key in enumerate(strings)}
    plates = list(dict.fromkeys(context_of(item) for item in process.state.keys))
    used = [place for place in counted if known[place] in index]
    estimates, errors = of_measurements(
        [index[known[place]] for place in used],
        [plates.index(context_of(process.state.keys[place])) for place in used],
        told[used],
        process.state.observed_noise.mean(0).numpy()[used],
        plate,
    )
    numbers = Counter(known[place] for place in used)
    return ArmPosterior.of(
        mean[:count],
        _without_negative(covariance[:count, :count]),
        np.broadcast_to(process.state.noise_at(measured[:count]).mean(0).numpy(), (count,)),
        counts=[numbers[key] for key in keys],
        plate=plate[:count, :count],
        alone=(estimates[:count], errors[:count, :count]),
    )


def variance_before(posterior: ArmPosterior, counts: npt.ArrayLike) -> FloatArray:
    r"""Variances of the true values before the last measurements were made, R x K.

    With the covariance S now, and R the variance of the mean of the measurements of each arm that was measured, it was

    .. math:: S + S_{\cdot M} (R - S_{MM})^{-1} S_{M \cdot}

    with M the arms that were measured. On plates, the variances are those of `ArmPosterior.spread`. Where all wells of
    a plate share an offset, S is then that of the arms less their mean, H S H with H = I - 1 1^T/K, since it is the
    level that the offset hides; what plates do to single arms besides counts as noise.

    Args:
        posterior: After them.
        counts: How many of the measurements of each arm are the last ones, K.

    Example:
        >>> prior = ArmPosterior.of([0.0, 0.0], [[2.0, 1.0], [1.0, 2.0]], 0.5)
        >>> posterior = prior.given(np.array([0]), np.array([1.0])).given(np.array([0]), np.array([0.4]))
        >>> posterior.variance.round(3), variance_before(posterior, [2, 0]).round(3)
        (array([[0.222, 1.556]]), array([[2., 2.]]))
    """
    numbers = np.asarray(counts, dtype=np.float64)
    measured = np.flatnonzero(numbers > 0)
    found, noise = posterior.spread.copy(), posterior.noise
    offsets = None
    if posterior.plate is not None:
        # What single arms do not share with the others of their plate.
        between = posterior.plate.sum((1, 2)) - np.trace(posterior.plate, axis1=1, axis2=2)
        offsets = np.maximum(between / (posterior.arms * max(posterior.arms - 1, 1)), 0.0)
        noise = noise + np.maximum(np.diagonal(posterior.plate, 0, 1, 2) - offsets[:, None], 0.0)
    centre = np.eye(posterior.arms) - 1.0 / posterior.arms
    for row, covariance in enumerate(posterior.covariance):
        if offsets is not None and offsets[row] > 0.0:
            covariance = centre @ covariance @ centre
        left = np.diag(noise[row, measured] / numbers[measured]) - covariance[np.ix_(measured, measured)]
        try:
            factor = np.linalg.cholesky(left)
        except np.linalg.LinAlgError:  # rounding, where noise is all but none
            continue
        gained = np.linalg.solve(factor, covariance[measured])
        if offsets is None:
            found[row] += np.square(gained).sum(0)
        else:
            found[row] += spread_of((gained.T @ gained)[None])[0]
    return found


def disagreeing_replicates(measurements: Sequence[Measurement], *, logarithmic: bool = False) -> list[str]:
    """Strings whose replicates differ by more than their stated standard errors explain, in words.

    The sum of squared deviations from the weighted mean, in standard errors, has a chi-squared distribution. On plates,
    replicates of different plates are not compared.

    Args:
        measurements: All that count.
        logarithmic: Whether values are compared by their logarithms, as standard errors on that scale are.

    Example:
        >>> from seqopt.campaign.rows import Measurement
        >>> rows = [Measurement("CCO", "CCO", value, standard_error=0.1) for value in (5.0, 6.0)]
        >>> disagreeing_replicates(rows)
        ['replicates of CCO (5 and 6) differ by more than their standard errors (0.1) explain']
    """
    from scipy.stats import chi2

    groups: dict[tuple[str, Context], list[Measurement]] = {}
    for row in measurements:
        if row.value is not None and row.censored is None and row.standard_error:
            groups.setdefault((row.key, row.context), []).append(row)
    found = []
    for rows in groups.values():
        if len(rows) < 2:
            continue
        values = np.array([row.value for row in rows], dtype=np.float64)
        errors = np.array([row.standard_error for row in rows], dtype=np.float64)
        if logarithmic and (values > 0).all():
            errors, values = errors / values, np.log(values)
        mean = float((values / errors**2).sum() / (1.0 / errors**2).sum())
        squares = float((((values - mean) / errors) ** 2).sum())
        if chi2.sf(squares, len(rows) - 1) < SUSPICIOUS:
            told = " and ".join(f"{row.value:.4g}" for row in rows[:4]) + (" and others" if len(rows) > 4 else "")
            stated = sorted({row.standard_error for row in rows if row.standard_error is not None})
            span = f"{stated[0]:.3g}" if len(stated) == 1 else f"{stated[0]:.3g} to {stated[-1]:.3g}"
            found.append(
                f"replicates of {rows[0].string} ({told}) differ by more than their standard errors ({span}) explain"
            )
    return found


def _together(process: GaussianProcess, items: Sequence[Item]) -> tuple[FloatArray, FloatArray]:
    """Mean, N, and covariance, N x N, of queries over all draws of the model's parameters."""
    means, covariances = process.functions(items)
    mean: FloatArray = means.mean(0).numpy()
    spread = np.cov(means.numpy().T, bias=True).reshape(2 * (len(mean),))
    covariance: FloatArray = covariances.mean(0).numpy() + spread
    return mean, covariance


def _without_negative(matrix: FloatArray) -> FloatArray:
    """A symmetric matrix without what rounding has made negative."""
    values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
    found: FloatArray = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return found
