r"""Marginal likelihoods on a grid of output scales and noise variances where some values are censored.

With E the exact rows, L the limits and a K + s2 the covariance, one eigendecomposition :math:`K_{EE} = U e U^T` gives
the moments of the latter given the former at any output scale a and noise variance s2 as products of matrices; what is
left is one expectation propagation of as many elements as there are limits (`seqopt.models.orthants`).

Most points of a grid have next to no posterior probability. So each plane of scales and variances is searched from the
point that is best without the limits: the neighbours of the best point found, and of every point within `NEGLIGIBLE` of
the best of the whole grid, are looked at, and the others left out.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from seqopt.models.orthants import positive_orthant
from seqopt.models.sampling.density import LogPosterior
from seqopt.models.sampling.parameters import Numbers

NEGLIGIBLE = 12.0
"""Points of the grid are left out if their log density is so much less than the largest."""

AT_ONCE = 1 << 22
"""Largest number of covariances between limits that are worked on at once."""


class CensoredTables:
    """Tables for one Gram matrix after another.

    Args:
        density: Has the values and the limits.
        scales: Output scales.
        noises: Noise variances; each value counts as having the mean of the known ones besides.
    """

    def __init__(self, density: LogPosterior, scales: Numbers, noises: Numbers) -> None:
        assert density.sides is not None
        self._targets = torch.from_numpy(density.targets)
        self._sides = torch.from_numpy(density.sides)
        self._mean_variance = density.mean_std**2
        self._scales = torch.from_numpy(scales)
        self._noises = torch.from_numpy(noises + density.known.mean())
        self._best = -math.inf
        self.evaluations = 0

    def table(self, gram: Numbers, prior: Numbers) -> Numbers:
        """Log p(y), scales x noises, minus infinity where it was not looked at.

        Args:
            gram: Gram matrix of the n queries.
            prior: Logarithm of the prior at the points of the table.
        """
        plane = _Plane(torch.from_numpy(gram), self._targets, self._sides, self._mean_variance)
        places = [(i, j) for i in range(len(self._scales)) for j in range(len(self._noises))]
        exact = plane.exact(*self._at(places)).numpy().reshape(prior.shape)
        table = np.full(prior.shape, -math.inf)
        # The limits have a probability, so no point can be better than it is without them.
        highest = exact + prior
        wave = [divmod(int(highest.argmax()), prior.shape[1])]
        seen = set(wave)
        step = max(1, AT_ONCE // int(self._sides.count_nonzero()) ** 2)
        while wave:
            for start in range(0, len(wave), step):
                part = wave[start : start + step]
                rows, columns = zip(*part, strict=True)
                table[rows, columns] = exact[rows, columns] + plane.limits(*self._at(part)).numpy()
            self.evaluations += len(wave)
            posterior = table + prior
            self._best = max(self._best, float(posterior.max()))
            wave = []
            for i, j in np.argwhere(posterior >= min(self._best - NEGLIGIBLE, posterior.max())).tolist():
                for place in ((i + di, j + dj) for di in (-1, 0, 1) for dj in (-1, 0, 1)):
                    inside = 0 <= place[0] < prior.shape[0] and 0 <= place[1] < prior.shape[1]
                    if inside and place not in seen and highest[place] >= self._best - NEGLIGIBLE:
                        seen.add(place)
                        wave.append(place)
        return table

    def _at(self, places: list[tuple[int, int]]) -> tuple[Tensor, Tensor]:
        rows, columns = (torch.tensor(found) for found in zip(*places, strict=True))
        return self._scales[rows], self._noises[columns]


class _Plane:
    """The exact rows of one Gram matrix, decomposed."""

    def __init__(self, gram: Tensor, targets: Tensor, sides: Tensor, mean_variance: float) -> None:
        exact, limited = torch.nonzero(sides == 0)[:, 0], torch.nonzero(sides)[:, 0]
        values, vectors = torch.linalg.eigh(gram[exact[:, None], exact])
        self._eigenvalues = values.clamp_min(0.0)
        self._projected, self._ones = targets[exact] @ vectors, vectors.sum(0)
        self._links = vectors.T @ gram[exact[:, None], limited]
        self._prior = gram[limited[:, None], limited]
        self._limits, self._side = targets[limited], sides[limited].to(torch.float64)
        self._mean_variance = mean_variance

    def exact(self, scales: Tensor, noises: Tensor) -> Tensor:
        """Log density of the exact values at B points."""
        spectrum = scales[:, None] * self._eigenvalues + noises[:, None]
        ones = (self._ones.square() / spectrum).sum(-1)
        crossed = (self._ones * self._projected / spectrum).sum(-1)
        shrunk = 1.0 + self._mean_variance * ones
        found = (self._projected.square() / spectrum + (2.0 * math.pi * spectrum).log()).sum(-1)
        return -0.5 * (found - self._mean_variance * crossed.square() / shrunk + shrunk.log())

    def limits(self, scales: Tensor, noises: Tensor) -> Tensor:
        """Log probability of the limits given the exact values at B points."""
        spectrum = scales[:, None] * self._eigenvalues + noises[:, None]
        ones = (self._ones.square() / spectrum).sum(-1)
        crossed = (self._ones * self._projected / spectrum).sum(-1)
        # The constant mean given the exact values.
        variance = self._mean_variance / (1.0 + self._mean_variance * ones)
        constant = variance * crossed
        weights = scales[:, None, None] * self._links.T / spectrum[:, None]
        mean = constant[:, None] + (weights @ (self._projected - constant[:, None] * self._ones)[..., None])[..., 0]
        lack = 1.0 - weights @ self._ones
        covariance = scales[:, None, None] * (self._prior - weights @ self._links)
        covariance = covariance + variance[:, None, None] * lack[:, :, None] * lack[:, None, :]
        covariance.diagonal(dim1=-2, dim2=-1).add_(noises[:, None])
        side = self._side
        covariance = 0.5 * (covariance + covariance.mT) * side[:, None] * side
        return positive_orthant(side * (mean - self._limits), covariance).log_probability
