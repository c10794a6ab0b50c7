"""A fully Bayesian Gaussian process over the unit cube, as a posterior that acquisition functions of seqopt see.

Model: standardised values = c + f(x) - mean(x) + noise with a Matern kernel, nu = 5/2, and a length scale for each
variable. Length scales, output variance and noise variance are log-normal with median 1 and variance 3 of their
logarithm, c is normal (0, 1), or 0. c is integrated out; the others are drawn by slice sampling, one coordinate at a
time, from where the last step ended.

References:
    Hvarfner, C. et al. (2023). Self-correcting Bayesian optimization through Bayesian active learning. NeurIPS.
    Neal, R. M. (2003). Slice sampling. Annals of Statistics 31.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch
from scipy import linalg
from scipy.special import logsumexp

from seqopt.posteriors import DensePosterior

FloatArray = npt.NDArray[np.float64]
Mean = Callable[[FloatArray], FloatArray]

PRIOR_VARIANCE = 3.0
"""Of the logarithms of all parameters."""

BOUNDS = (-9.0, 7.0)
"""Of the logarithms."""

WIDTH = 1.5
"""First width of a slice."""

FIRST_SWEEPS, SWEEPS, THINNING = 40, 4, 2
"""Sweeps before the first draws, before those of later steps, and between draws."""

JITTER = 1e-8


@dataclass
class Draw:
    """One draw of the parameters, and what it makes of the data."""

    lengthscales: FloatArray
    variance: float
    noise: float
    factor: FloatArray = field(repr=False)
    weights: FloatArray = field(repr=False)


class BoxModel:
    """Draws of the parameters, conditioned on data.

    Args:
        dim: Number of variables.
        draws: How many.
        mean_variance: Of the constant c; 0 for none.
        penalty: What is subtracted from the prior mean of standardised values, from points ``n x d``.
        least_noise: Variance of the noise is at least this.
    """

    def __init__(
        self,
        dim: int,
        draws: int,
        *,
        mean_variance: float = 1.0,
        penalty: Mean | None = None,
        least_noise: float = 1e-6,
    ) -> None:
        self.dim, self.count, self.mean_variance = dim, draws, mean_variance
        self.penalty, self.least_noise = penalty, least_noise
        self._last = np.concatenate([np.full(dim, -1.0), [0.0, -3.0]])
        self._fitted = False
        self.points: FloatArray = np.empty((0, dim))
        self.draws: list[Draw] = []
        self.offset, self.unit = 0.0, 1.0
        self.best = -math.inf

    def fit(self, points: FloatArray, values: FloatArray, rng: np.random.Generator) -> None:
        """Draw parameters given points ``n x d`` and values, n."""
        self.points = points
        self.offset, self.unit = float(values.mean()), float(values.std()) or 1.0
        targets = (values - self.offset) / self.unit
        self.best = float(targets.max())
        rest = targets - self.prior_mean(points)
        squares = (points[:, None] - points[None]) ** 2
        logarithms = self._last
        for _ in range(SWEEPS if self._fitted else FIRST_SWEEPS):
            logarithms = self._sweep(logarithms, squares, rest, rng)
        self._fitted = True
        self.draws = []
        for _ in range(self.count):
            for _ in range(THINNING):
                logarithms = self._sweep(logarithms, squares, rest, rng)
            self.draws.append(self._draw(logarithms, squares, rest))
        self._last = logarithms

    def prior_mean(self, points: FloatArray) -> FloatArray:
        """Of standardised values, c apart."""
        return np.zeros(len(points)) if self.penalty is None else -self.penalty(points)

    def posterior(self, points: FloatArray) -> DensePosterior:
        """At N points, the draws in front; the data stand behind it."""
        prior = torch.from_numpy(self.prior_mean(points))
        observed_prior = torch.from_numpy(self.prior_mean(self.points))
        parts: list[tuple[FloatArray, ...]] = []
        for draw in self.draws:
            both = np.concatenate([points, self.points])
            covariance = self._covariance(both, both, draw)
            cross = covariance[:, len(points) :]
            solved = linalg.solve_triangular(draw.factor, cross.T, lower=True)
            parts.append((cross @ draw.weights, covariance - solved.T @ solved))
        mean = torch.from_numpy(np.stack([one for one, _ in parts]))
        between = torch.from_numpy(np.stack([one for _, one in parts]))
        n = len(points)
        return DensePosterior(
            mean[:, :n] + prior,
            between[:, :n, :n],
            torch.tensor([draw.noise for draw in self.draws], dtype=torch.float64),
            observed_mean=mean[:, n:] + observed_prior,
            observed_covariance=between[:, n:, n:],
            cross_covariance=between[:, n:, :n],
            best_observed=self.best,
        )

    def moments(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Means and noiseless variances of each draw at N points, D x N, standardised."""
        means, variances = [], []
        for draw in self.draws:
            cross = self._covariance(points, self.points, draw)
            solved = linalg.solve_triangular(draw.factor, cross.T, lower=True)
            means.append(self.prior_mean(points) + cross @ draw.weights)
            variances.append(np.maximum(draw.variance + self.mean_variance - np.square(solved).sum(0), 1e-12))
        return np.stack(means), np.stack(variances)

    def mean(self, points: FloatArray) -> FloatArray:
        """Mean of the mixture in the values' units, N."""
        return self.offset + self.unit * self.moments(points)[0].mean(0)

    def log_density(self, points: FloatArray, values: FloatArray) -> FloatArray:
        """Logarithm of the density of measurements under the mixture, N, in the values' units."""
        means, variances = self.moments(points)
        total = variances + np.array([[draw.noise] for draw in self.draws])
        targets = (values - self.offset) / self.unit
        logs = -0.5 * (np.log(2.0 * math.pi * total) + (targets - means) ** 2 / total)
        found: FloatArray = logsumexp(logs, axis=0) - math.log(len(self.draws)) - math.log(self.unit)
        return found

    def log_posterior(self, logarithms: FloatArray, squares: FloatArray, rest: FloatArray) -> float:
        """Logarithm of the density of the parameters' logarithms, up to a constant."""
        if (logarithms < BOUNDS[0]).any() or (logarithms > BOUNDS[1]).any():
            return -math.inf
        scales, variance, noise = self._read(logarithms)
        gram = self._gram(squares, scales, variance) + (noise + JITTER) * np.eye(len(rest))
        try:
            factor = linalg.cholesky(gram, lower=True, check_finite=False)
        except linalg.LinAlgError:
            return -math.inf
        white = linalg.solve_triangular(factor, rest, lower=True, check_finite=False)
        prior = -0.5 * float(np.square(logarithms).sum()) / PRIOR_VARIANCE
        return prior - 0.5 * float(white @ white) - float(np.log(np.diag(factor)).sum())

    def _sweep(
        self, logarithms: FloatArray, squares: FloatArray, rest: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        at = logarithms.copy()
        level = self.log_posterior(at, squares, rest)
        for place in rng.permutation(len(at)):

            def along(value: float, place: int = int(place)) -> float:
                moved = at.copy()
                moved[place] = value
                return self.log_posterior(moved, squares, rest)

            at[place], level = _slice(along, float(at[place]), level, rng)
        return at

    def _read(self, logarithms: FloatArray) -> tuple[FloatArray, float, float]:
        values = np.exp(logarithms)
        return values[: self.dim], float(values[self.dim]), max(float(values[self.dim + 1]), self.least_noise)

    def _gram(self, squares: FloatArray, scales: FloatArray, variance: float) -> FloatArray:
        return variance * matern(squares @ scales**-2) + self.mean_variance

    def _covariance(self, a: FloatArray, b: FloatArray, draw: Draw) -> FloatArray:
        one, two = a / draw.lengthscales, b / draw.lengthscales
        squares = (one**2).sum(1)[:, None] + (two**2).sum(1) - 2.0 * one @ two.T
        return draw.variance * matern(np.maximum(squares, 0.0)) + self.mean_variance

    def _draw(self, logarithms: FloatArray, squares: FloatArray, rest: FloatArray) -> Draw:
        scales, variance, noise = self._read(logarithms)
        gram = self._gram(squares, scales, variance) + (noise + JITTER) * np.eye(len(rest))
        factor = linalg.cholesky(gram, lower=True)
        return Draw(scales, variance, noise, factor, linalg.cho_solve((factor, True), rest))


def matern(squares: FloatArray) -> FloatArray:
    """Matern's correlation, nu = 5/2, at squared scaled distances.

    Example:
        >>> float(matern(np.array([0.25 + 0.0625])).round(5)[0])
        0.79386
    """
    root = np.sqrt(5.0 * squares)
    found: FloatArray = (1.0 + root + root**2 / 3.0) * np.exp(-root)
    return found


def _slice(along: Callable[[float], float], at: float, level: float, rng: np.random.Generator) -> tuple[float, float]:
    """One step of slice sampling in one variable, with steps out and shrinkage."""
    height = level - rng.exponential()
    left = at - WIDTH * rng.random()
    right = left + WIDTH
    while along(left) > height:
        left -= WIDTH
    while along(right) > height:
        right += WIDTH
    while True:
        moved = rng.uniform(left, right)
        found = along(moved)
        if found > height:
            return moved, found
        left, right = (moved, right) if moved < at else (left, moved)
