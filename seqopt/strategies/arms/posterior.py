"""What is known of a few arms that can be measured again and again: Gaussian, updated one measurement at a time.

An *arm* is a string that may be measured repeatedly. Many independent situations can stand side by side, such as
simulated ones: all arrays have a leading dimension of R of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from seqopt.errors import InputError

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

WIDE = 1e6
"""Variance of a true value of which nothing is known, in those of a measurement."""


@dataclass(frozen=True, eq=False)
class ArmPosterior:
    """Joint Gaussian distribution of the true values of K arms, in R situations; immutable.

    A measurement of arm a reads y = h_a + noise, where h is the true value g itself or, on a plate, g + f with
    f ~ N(0, F) shared by all wells of the plate. Observing y is the rank-one update

        m <- m + C_a (y - n_a) / v,   S <- S - C_a C_a^T / v,   v = H_aa + noise_a,

    with m and S mean and covariance of g, n and H those of h, and C the covariance between g and h. Without plates
    all three covariances are one. It costs O(K^2) for each situation.

    On plates, raw means of measurements on different plates cannot be compared. What rules go by that know nothing of a
    model is then the estimate by generalised least squares: the true value of each arm is a free number, what plates
    share is N(0, F), and noise is noise. It is the mean of the measurements less the estimated offsets of their plates,
    and is computed by the same updates from a prior of the true values that is so wide that it says nothing.

    Attributes:
        mean: Of the true values, R x K; larger is better.
        covariance: Of the true values, R x K x K.
        noise: Variance of one measurement about h, R x K.
        counts: How many measurements there are of each arm, R x K; those whose value is awaited among them.
        averages: Mean of the measured values of each arm, R x K, on plates less the estimated offsets of these; NaN
            where there is none.
        values: How many of the measurements have values, R x K.
        plate: F, R x K x K: what all measurements on one plate share; `None` where there are no plates.
        outcome_mean: n, R x K, on the plate at hand.
        outcome_covariance: H, R x K x K, on the plate at hand.
        crossed: C, R x K x K, rows g and columns h, on the plate at hand.
        alone: What the measurements alone say on plates, without what a model knows of the arms; `None` where there are
            no plates.
    """

    mean: FloatArray
    covariance: FloatArray
    noise: FloatArray
    counts: IntArray
    averages: FloatArray
    values: IntArray
    plate: FloatArray | None = None
    outcome_mean: FloatArray | None = None
    outcome_covariance: FloatArray | None = None
    crossed: FloatArray | None = None
    alone: ArmPosterior | None = None

    @classmethod
    def of(
        cls,
        mean: npt.ArrayLike,
        covariance: npt.ArrayLike,
        noise: npt.ArrayLike,
        *,
        counts: npt.ArrayLike | None = None,
        averages: npt.ArrayLike | None = None,
        plate: npt.ArrayLike | None = None,
        alone: tuple[FloatArray, FloatArray] | None = None,
    ) -> ArmPosterior:
        """From one situation (K, K x K) or several (R x K, R x K x K), checked.

        Args:
            mean: Of the true values.
            covariance: Of the true values.
            noise: Variance of one measurement: a number, or one for each arm.
            counts: Measurements that there are already; by default none.
            averages: Their means; on plates less the offsets of these, which are taken to be known then. Where they are
                not, `alone` says what is known.
            plate: Covariance of what all measurements on one plate share, where they are made on plates.
            alone: Mean, K, and covariance, K x K, of the estimates from measurements made on plates before, by
                generalised least squares (see `of_measurements`), instead of ``averages``: of one situation.

        Raises:
            InputError: If shapes do not fit together, a number is not finite, a variance is negative or the covariance
                is not positive semi-definite.

        Example:
            >>> two = ArmPosterior.of([1.0, 0.0], [[1.0, 0.5], [0.5, 1.0]], 1.0)
            >>> two.given(np.array([0]), np.array([3.0])).mean
            array([[2. , 0.5]])
        """
        means = np.atleast_2d(np.asarray(mean, dtype=np.float64))
        several, arms = means.shape

        def shaped(name: str, values: npt.ArrayLike, shape: tuple[int, ...]) -> FloatArray:
            try:
                found = np.broadcast_to(np.asarray(values, dtype=np.float64), shape)
            except ValueError as error:
                raise InputError(
                    f"{name} has the shape {np.shape(values)}; expected {shape[1:]} for {arms} arms"
                ) from error
            if not np.isfinite(found).all():
                raise InputError(f"{name} has values that are not finite")
            return np.array(found)

        matrix = (several, arms, arms)
        known = shaped("covariance", covariance, matrix)
        noises = shaped("noise", noise, means.shape)
        if (noises < 0).any():
            raise InputError(f"the noise variance is {float(noises.min()):g}; expected zero or more")
        made = np.zeros(means.shape) if counts is None else shaped("counts", counts, means.shape)
        if averages is None:
            mean_values = np.full(means.shape, np.nan)
        else:
            mean_values = np.array(np.broadcast_to(np.asarray(averages, dtype=np.float64), means.shape))
        found = cls(
            shaped("mean", means, means.shape),
            _semidefinite("covariance", known),
            noises,
            made.astype(np.int64),
            mean_values,
            np.where(np.isnan(mean_values), 0, made).astype(np.int64),
        )
        if plate is None:
            return found
        shared = _semidefinite("plate", shaped("plate", plate, matrix))
        if alone is None:
            # Each mean is as good as its measurements make it, and the others tell nothing.
            wide = WIDE * _largest_variance(noises, shared)
            told = found.values > 0
            variance = np.where(told, noises / np.maximum(found.values, 1), wide[:, None])
            alone = np.where(told, mean_values, means), variance[:, :, None] * np.eye(arms)
        else:
            estimates = np.where(made > 0, shaped("alone", alone[0], means.shape), np.nan)
            found = replace(found, averages=estimates, values=found.counts.copy())
        free = replace(
            found,
            mean=shaped("alone", alone[0], means.shape),
            covariance=shaped("alone", alone[1], matrix),
            plate=shared,
        )
        return replace(found, plate=shared, alone=free).on_fresh_plate()

    @property
    def arms(self) -> int:
        """K."""
        return int(self.mean.shape[1])

    @property
    def situations(self) -> int:
        """R."""
        return int(self.mean.shape[0])

    @property
    def variance(self) -> FloatArray:
        """Of the true values, R x K; rounding makes none negative."""
        return np.maximum(np.diagonal(self.covariance, axis1=1, axis2=2), 0.0)

    @property
    def spread(self) -> FloatArray:
        r"""Variances that matter where arms are compared, R x K; they are never negative.

        Without plates, those of the true values. On plates, the level of all arms is hardly learned and cancels in
        comparisons, so that they are of the true values less their mean over the arms, as an unbiased estimate:

        .. math:: \frac{K}{K - 1} (H S H)_{kk}, \quad H = I - 1 1^T / K

        For independent arms of equal variances that is their variance.

        Example:
            >>> level = ArmPosterior.of([0.0, 0.0], [[5.0, 4.0], [4.0, 5.0]], 1.0, plate=np.ones((2, 2)))
            >>> level.spread, level.variance
            (array([[1., 1.]]), array([[5., 5.]]))
        """
        return self.variance if self.plate is None else spread_of(self.covariance)

    @property
    def effective(self) -> FloatArray:
        r"""How many measurements without offsets each average is worth, R x K.

        Without plates, as many as there are. On plates, the variance of an average is noise / N_k of its measurements,
        and what the offsets of their plates leave, which are known by their controls and what was measured on several:

        .. math::
            \frac{1}{N'_k} = \frac{1}{N_k} + \frac{n_k^2}{N_k^2} \frac{o_k}{\mathrm{noise}_k}, \quad
            o_k = \frac{M}{M - 1} (H O H)_{kk}

        O is the covariance of the estimates less the diagonal matrix of noise / n_k, over the M arms that were
        measured, n_k times each. What all share cancels, and so H is as in `spread`. Of N_k measurements, N_k - n_k are
        awaited; they are on one plate, and shared by all of its wells its offset cancels, too.

        Example:
            >>> two = ArmPosterior.of(np.zeros(2), np.eye(2), 0.1, plate=np.ones((2, 2)))
            >>> apart = two.given(np.array([0]), np.zeros(1)).on_fresh_plate().given(np.array([1]), np.zeros(1))
            >>> together = two.given(np.array([0]), np.zeros(1)).given(np.array([1]), np.zeros(1))
            >>> together.effective.round(2), apart.effective.round(2)  # offsets differ by 1 + 1, half of it each
            (array([[1., 1.]]), array([[0.09, 0.09]]))
        """
        if self.alone is None:
            return self.counts.astype(np.float64)
        known = self.values > 0
        own = np.where(known, self.noise / np.maximum(self.values, 1), 0.0)
        left = self.alone.covariance - own[:, :, None] * np.eye(self.arms)
        excess = np.where(known, spread_of(left, known), 0.0)
        noisy = self.noise > 0
        extra = np.where(noisy, excess / np.where(noisy, self.noise, 1.0), 0.0)
        counts = self.counts.astype(np.float64)
        told = np.minimum(self.values, self.counts)
        found: FloatArray = counts / (1.0 + told**2 / np.maximum(counts, 1.0) * extra)
        return found

    def first(self, count: int) -> ArmPosterior:
        """The first so many arms only.

        Example:
            >>> ArmPosterior.of(np.arange(3.0), np.eye(3), 1.0).first(2).mean
            array([[0., 1.]])
        """
        if count == self.arms:
            return self
        arrays = {
            name: value[:, :count, :count] if value.ndim == 3 else value[:, :count]
            for name, value in self.__dict__.items()
            if isinstance(value, np.ndarray)
        }
        return replace(self, **arrays, alone=None if self.alone is None else self.alone.first(count))

    def repeated(self, times: int) -> ArmPosterior:
        """One situation, several times."""
        arrays = {
            name: np.repeat(value, times, axis=0)
            for name, value in self.__dict__.items()
            if isinstance(value, np.ndarray)
        }
        return replace(self, **arrays, alone=None if self.alone is None else self.alone.repeated(times))

    def on_fresh_plate(self) -> ArmPosterior:
        """The same for measurements on a plate of which nothing is known yet: n = m, C = S and H = S + F."""
        if self.plate is None:
            return self
        return replace(
            self,
            outcome_mean=self.mean.copy(),
            outcome_covariance=self.covariance + self.plate,
            crossed=self.covariance.copy(),
            alone=None if self.alone is None else self.alone.on_fresh_plate(),
        )

    def given(self, arms: IntArray, values: FloatArray | None = None) -> ArmPosterior:
        """After one more measurement in each situation.

        Args:
            arms: Which arm is measured, R.
            values: What was measured, R; `None` where it is awaited: means stay, variances fall.
        """
        rows = np.arange(self.situations)
        counts = self.counts.copy()
        counts[rows, arms] += 1
        crossed = self.covariance[rows, :, arms] if self.crossed is None else self.crossed[rows, :, arms]
        own = crossed if self.outcome_covariance is None else self.outcome_covariance[rows, :, arms]
        total = own[rows, arms] + self.noise[rows, arms]
        # Where there is neither noise nor uncertainty, nothing is learned.
        scale = np.where(total > 0.0, 1.0 / np.where(total > 0.0, total, 1.0), 0.0)[:, None]
        found: dict[str, Any] = {
            "counts": counts,
            "covariance": self.covariance - (crossed * scale)[:, :, None] * crossed[:, None, :],
        }
        if self.crossed is not None and self.outcome_covariance is not None:
            found["crossed"] = self.crossed - (crossed * scale)[:, :, None] * own[:, None, :]
            found["outcome_covariance"] = self.outcome_covariance - (own * scale)[:, :, None] * own[:, None, :]
        if values is None:
            return replace(self, **found)
        expected = self.mean if self.outcome_mean is None else self.outcome_mean
        surprise = (values - expected[rows, arms])[:, None] * scale
        found["mean"] = self.mean + crossed * surprise
        if self.outcome_mean is not None:
            found["outcome_mean"] = self.outcome_mean + own * surprise
        known, averages = self.values.copy(), self.averages.copy()
        before = np.where(known[rows, arms] > 0, averages[rows, arms], 0.0)
        known[rows, arms] += 1
        averages[rows, arms] = before + (values - before) / known[rows, arms]
        if self.alone is not None:
            found["alone"] = free = replace(self.alone, noise=self.noise).given(arms, values)
            averages = np.where(known > 0, free.mean, np.nan).astype(np.float64)
        return replace(self, **found, values=known, averages=averages)

    def draws(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Joint draws of the true values, count x R x K."""
        return self.mean + np.einsum(
            "rij,crj->cri", rooted(self.covariance), rng.standard_normal((count, *self.mean.shape))
        )


def spread_of(covariance: FloatArray, among: npt.NDArray[np.bool_] | None = None) -> FloatArray:
    """M/(M - 1) times the diagonal of H S H, R x K: variances of values less their mean; see `ArmPosterior.spread`.

    Args:
        covariance: S, R x K x K.
        among: The M arms over which the mean is taken, R x K; all by default. What is found for others does not count.

    Example:
        >>> spread_of(np.array([[[2.0, 1.0, 9.0], [1.0, 2.0, 9.0], [9.0, 9.0, 99.0]]]), np.array([[True, True, False]]))
        array([[  1.,   1., 165.]])
    """
    chosen = np.ones(covariance.shape[:2]) if among is None else among.astype(np.float64)
    count = np.maximum(chosen.sum(1, keepdims=True), 1.0)
    share = chosen / count
    with_mean = np.einsum("rij,rj->ri", covariance, share)
    variance = np.diagonal(covariance, axis1=1, axis2=2)
    centred = variance - 2.0 * with_mean + (share * with_mean).sum(1, keepdims=True)
    found: FloatArray = np.maximum(centred, 0.0) * count / np.maximum(count - 1.0, 1.0)
    return found


def rooted(covariance: FloatArray) -> FloatArray:
    """Factors A with A A^T = covariance, ... x K x K, of matrices that may be singular."""
    values, vectors = np.linalg.eigh(covariance)
    root: FloatArray = vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]
    return root


def of_measurements(
    arms: npt.ArrayLike, plates: npt.ArrayLike, values: npt.ArrayLike, noise: npt.ArrayLike, plate: FloatArray
) -> tuple[FloatArray, FloatArray]:
    r"""Estimates of true values from measurements on plates alone, by generalised least squares: mean and covariance.

    With Z the n x K indicators of arms, and V the covariance of the measurements, which is noise and, of two on one
    plate, F,

    .. math:: \Sigma = (Z^T V^{-1} Z + I / w)^{-1}, \quad m = \Sigma Z^T V^{-1} y

    where w is so large that it says nothing.

    Args:
        arms: Which arm each measurement is of, n.
        plates: On which plate each was made, n: equal numbers for equal plates.
        values: What was measured, n.
        noise: Variance of the noise of each, n.
        plate: F, K x K: what all measurements on one plate share.

    Returns:
        The mean, K, and the covariance, K x K; of an arm without a measurement 0 and w.

    Example:
        >>> shared, noise = np.full((3, 3), 99.0), [0.01] * 4
        >>> mean, _ = of_measurements([0, 1, 0, 2], [0, 0, 1, 1], [1.0, 2.0, 21.0, 21.5], noise, shared)
        >>> (mean - mean[0]).round(2)  # arm 0 is on both plates
        array([0. , 1. , 0.5])
    """
    which, where = np.asarray(arms, dtype=np.int64), np.asarray(plates)
    told, variances = np.asarray(values, dtype=np.float64), np.asarray(noise, dtype=np.float64)
    count = len(plate)
    top = np.diagonal(plate).max(initial=0.0) + variances.max(initial=0.0)
    wide = WIDE * (top if top > 0.0 else 1.0)
    middle = float(told.mean()) if len(told) else 0.0
    precision, weighted = np.eye(count) / wide, np.zeros(count)
    for one in np.unique(where):
        rows = np.flatnonzero(where == one)
        own = which[rows]
        # Of measurements without any noise, repeated ones are one.
        joint = plate[np.ix_(own, own)] + np.diag(np.maximum(variances[rows], 1e-9 * wide / WIDE))
        indicators = np.eye(count)[own]
        solved = np.linalg.solve(joint, np.column_stack([indicators, told[rows] - middle]))
        precision += indicators.T @ solved[:, :-1]
        weighted += indicators.T @ solved[:, -1]
    covariance: FloatArray = np.asarray(np.linalg.inv(0.5 * (precision + precision.T)), dtype=np.float64)
    return middle + covariance @ weighted, covariance


def _largest_variance(noise: FloatArray, plate: FloatArray) -> FloatArray:
    """The largest variance of a measurement of a known arm in each situation, R; positive."""
    found = (noise + np.diagonal(plate, axis1=1, axis2=2)).max(1)
    return np.where(found > 0.0, found, 1.0)


def _semidefinite(name: str, matrices: FloatArray) -> FloatArray:
    symmetric = 0.5 * (matrices + matrices.swapaxes(1, 2))
    values = np.linalg.eigvalsh(symmetric)
    scale = np.maximum(np.abs(values).max(1), 1e-300)
    if (np.abs(matrices - symmetric).max((1, 2)) > 1e-6 * scale).any() or (values.min(1) < -1e-6 * scale).any():
        raise InputError(f"{name} is not a covariance matrix: expected it symmetric and positive semi-definite")
    return symmetric
