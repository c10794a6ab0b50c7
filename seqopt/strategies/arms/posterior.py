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


@dataclass(frozen=True, eq=False)
class ArmPosterior:
    """Joint Gaussian distribution of the true values of K arms, in R situations; immutable.

    A measurement of arm a reads y = h_a + noise, where h is the true value g itself or, on a plate, g + f with
    f ~ N(0, F) shared by all wells of the plate. Observing y is the rank-one update

        m <- m + C_a (y - n_a) / v,   S <- S - C_a C_a^T / v,   v = H_aa + noise_a,

    with m and S mean and covariance of g, n and H those of h, and C the covariance between g and h. Without plates
    all three covariances are one. It costs O(K^2) for each situation.

    Attributes:
        mean: Of the true values, R x K; larger is better.
        covariance: Of the true values, R x K x K.
        noise: Variance of one measurement about h, R x K.
        counts: How many measurements there are of each arm, R x K; those whose value is awaited among them.
        averages: Mean of the measured values of each arm, R x K; NaN where there is none.
        values: How many of the measurements have values, R x K.
        plate: F, R x K x K: what all measurements on one plate share; `None` where there are no plates.
        outcome_mean: n, R x K, on the plate at hand.
        outcome_covariance: H, R x K x K, on the plate at hand.
        crossed: C, R x K x K, rows g and columns h, on the plate at hand.
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
    ) -> ArmPosterior:
        """From one situation (K, K x K) or several (R x K, R x K x K), checked.

        Args:
            mean: Of the true values.
            covariance: Of the true values.
            noise: Variance of one measurement: a number, or one for each arm.
            counts: Measurements that there are already; by default none.
            averages: Their means.
            plate: Covariance of what all measurements on one plate share, where they are made on plates.

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
        return replace(found, plate=_semidefinite("plate", shaped("plate", plate, matrix))).on_fresh_plate()

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

    def repeated(self, times: int) -> ArmPosterior:
        """One situation, several times."""
        arrays = {name: np.repeat(value, times, axis=0) for name, value in self.__dict__.items() if value is not None}
        return replace(self, **arrays)

    def on_fresh_plate(self) -> ArmPosterior:
        """The same for measurements on a plate of which nothing is known yet: n = m, C = S and H = S + F."""
        if self.plate is None:
            return self
        return replace(
            self,
            outcome_mean=self.mean.copy(),
            outcome_covariance=self.covariance + self.plate,
            crossed=self.covariance.copy(),
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
        return replace(self, **found, values=known, averages=averages)

    def draws(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Joint draws of the true values, count x R x K."""
        return self.mean + np.einsum(
            "rij,crj->cri", rooted(self.covariance), rng.standard_normal((count, *self.mean.shape))
        )


def rooted(covariance: FloatArray) -> FloatArray:
    """Factors A with A A^T = covariance, ... x K x K, of matrices that may be singular."""
    values, vectors = np.linalg.eigh(covariance)
    root: FloatArray = vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]
    return root


def _semidefinite(name: str, matrices: FloatArray) -> FloatArray:
    symmetric = 0.5 * (matrices + matrices.swapaxes(1, 2))
    values = np.linalg.eigvalsh(symmetric)
    scale = np.maximum(np.abs(values).max(1), 1e-300)
    if (np.abs(matrices - symmetric).max((1, 2)) > 1e-6 * scale).any() or (values.min(1) < -1e-6 * scale).any():
        raise InputError(f"{name} is not a covariance matrix: expected it symmetric and positive semi-definite")
    return symmetric
