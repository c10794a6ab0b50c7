r"""Random Fourier features of stationary kernels: functions that are drawn from a Gaussian process over a box.

With rows of W from the normalised spectral density of the kernel and b uniform on :math:`[0, 2\pi]`, the features
:math:`\phi(x) = \sqrt{2 \alpha / m} \cos(W x + b)` have :math:`E[\phi(x)^T \phi(x')] = k(x, x')`, alpha being k(x, x).
Spectra, with :math:`\Lambda = \operatorname{diag}(\ell^2)`: normal with the covariance :math:`\Lambda^{-1}` for the
squared exponential, Student's t with :math:`2 \nu` degrees of freedom and the scale :math:`\Lambda^{-1}` for Matern.

References:
    Rahimi, A., Recht, B. (2007). Random features for large-scale kernel machines. NeurIPS.
    Shahriari, B. (2016). Practical Bayesian optimization with application to tuning machine learning algorithms. PhD
        thesis, University of British Columbia, appendix B (with the spectra put right).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

BLOCK = 4_096
"""Points whose features are held at a time."""


@dataclass(frozen=True, eq=False)
class FourierFeatures:
    """m features of points in d variables.

    Attributes:
        frequencies: W, m x d.
        phases: b, m.
        variance: alpha.
    """

    frequencies: FloatArray
    phases: FloatArray
    variance: float

    @classmethod
    def drawn(
        cls, lengthscales: FloatArray, variance: float, count: int, rng: np.random.Generator, nu: float | None = 2.5
    ) -> FourierFeatures:
        """Features of a kernel.

        Args:
            lengthscales: d.
            variance: k(x, x).
            count: m.
            rng: The only source of randomness.
            nu: Of the Matern kernel; `None` for the squared exponential.
        """
        frequencies = rng.standard_normal((count, len(lengthscales)))
        if nu is not None:
            # A normal vector over the root of a chi-square variable per degree of freedom is Student's.
            frequencies /= np.sqrt(rng.chisquare(2.0 * nu, count) / (2.0 * nu))[:, None]
        return cls(frequencies / lengthscales, rng.uniform(0.0, 2.0 * math.pi, count), variance)

    def __call__(self, points: FloatArray) -> FloatArray:
        """Features of points ``n x d``, ``n x m``."""
        scale = math.sqrt(2.0 * self.variance / len(self.phases))
        found: FloatArray = scale * np.cos(points @ self.frequencies.T + self.phases)
        return found


@dataclass(frozen=True, eq=False)
class FourierDraw:
    """A function: weights of features.

    Attributes:
        features: The features.
        weights: m.
        mean: A constant that is added.
    """

    features: FourierFeatures
    weights: FloatArray
    mean: float = 0.0

    @classmethod
    def prior(cls, lengthscales: FloatArray, variance: float, count: int, rng: np.random.Generator) -> FourierDraw:
        """A draw before there are data, Matern with nu = 5/2."""
        features = FourierFeatures.drawn(lengthscales, variance, count, rng)
        return cls(features, rng.standard_normal(count))

    @classmethod
    def posterior(
        cls,
        features: FourierFeatures,
        points: FloatArray,
        values: FloatArray,
        noise_variance: float,
        rng: np.random.Generator,
        mean: float = 0.0,
    ) -> FourierDraw:
        r"""A draw given values with noise: its weights follow :math:`N(A^{-1} \Phi^T (y - \mu), \eta^2 A^{-1})`.

        They are drawn by Matheron's rule, which takes one n x n system.
        """
        phi = features(points)
        prior = rng.standard_normal(phi.shape[1])
        rest = values - mean - phi @ prior - math.sqrt(noise_variance) * rng.standard_normal(len(values))
        gram = phi @ phi.T + noise_variance * np.eye(len(values))
        return cls(features, prior + phi.T @ np.linalg.solve(gram, rest), mean)

    def __call__(self, points: FloatArray) -> FloatArray:
        """Values at points ``n x d``, n."""
        blocks = [self.features(points[at : at + BLOCK]) @ self.weights for at in range(0, len(points), BLOCK)]
        return self.mean + np.concatenate(blocks)
