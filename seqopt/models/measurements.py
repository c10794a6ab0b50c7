r"""How far measurements lie from the predictions of a point estimate, whose parameters are uncertain themselves.

Model: standardised values y = c + f(s) + noise, with covariance

.. math:: C = T \left[ (1 - \rho)\, G + \rho R \right]

of a total variance T and a share :math:`\rho` of noise. G is the Gram matrix of the n strings in units of its mean
diagonal, R the diagonal matrix of the variances of the noise of each value in units of that of one to come (1 where no
standard errors are known). Fits choose the values of all parameters that are most probable. Intervals at these values
are too narrow: after twenty strings, those for nine measurements of ten hold eight. Here the parameters are averaged
over.

*Mean, total variance, share of noise.* With a flat prior of c, :math:`T \sim \mathrm{InvGamma}(\nu_0/2, \nu_0/2)`, as
if `PRIOR_VALUES` values of variance 1 had been seen, and all shares equally probable, c and T are integrated out in
closed form: with :math:`W = (1 - \rho) G + \rho R` and its generalised residual sum of squares
:math:`S = y^T W^{-1} y - (1^T W^{-1} y)^2 / (1^T W^{-1} 1)`,

.. math::

    p(\rho \mid y) \propto |W|^{-1/2} (1^T W^{-1} 1)^{-1/2} (\nu_0 + S)^{-(\nu_0 + n - 1)/2},

and a measurement of string q is t-distributed with :math:`\nu_0 + n - 1` degrees of freedom about
:math:`m = \hat c + h^T W^{-1} (y - \hat c 1)`, with the variance (h being the column of q in (1 - rho) G)

.. math::

    \frac{\nu_0 + S}{\nu_0 + n - 3} \left[ (1 - \rho)\, g(q, q) - h^T W^{-1} h
        + \frac{(1 - 1^T W^{-1} h)^2}{1^T W^{-1} 1} + \rho \right].

The prior of the noise is wider than that of the fit, which knows that measurements are good: its mode makes good
searches, but where strings say little about each other it is as wrong as it is sure. One eigendecomposition of
:math:`R^{-1/2} G R^{-1/2}` makes each share O(n), and the integral over it a sum.

*Parameters of the kernel.* They have, to first order, the covariance :math:`\Sigma`, their block of the inverse of

.. math:: F_{ij} = \tfrac12 \operatorname{tr}\left( P\, \partial_i C\, P\, \partial_j C \right) + \Lambda_{ij},
    \qquad P = C^{-1} - \frac{C^{-1} 1 1^T C^{-1}}{1^T C^{-1} 1},

the expected information of the restricted likelihood, with the logarithms of output scale and noise among the
parameters, plus the inverse variances of the priors. They add :math:`J \Sigma J^T` to the variance, with
:math:`J_i = (\partial_i k - \partial_i C\, w)^T C^{-1} (y - \hat c 1)`, the derivative of the predicted mean
:math:`w^T y`. Derivatives of the kernel are differences. The expected information is positive definite also where a
parameter was fitted to one of its bounds.

The variance is that about the *point estimate's* prediction, which stays as it is.

References:
    Harville, D. A. (1974). Bayesian inference for variance components using only error contrasts. Biometrika 61,
        383-385, for the flat prior of the mean.
    Harville, D. A. (1977). Maximum likelihood approaches to variance component estimation and to related problems.
        Journal of the American Statistical Association 72, 320-338, for the expected information.
    Handcock, M. S. and Stein, M. L. (1993). A Bayesian analysis of kriging. Technometrics 35, 403-410, for the t
        distribution.
    Garnett, R., Osborne, M. A. and Hennig, P. (2014). Active learning of linear embeddings for Gaussian processes. UAI,
        for the derivatives of the mean.
    Rasmussen, C. E. and Williams, C. K. I. (2006). Gaussian Processes for Machine Learning, section 2.7.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import gpytorch
import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from seqopt.encoding import Encoded
from seqopt.models.covariance import FloatArray, KernelEvaluator
from seqopt.models.gp_state import BatchedGPState
from seqopt.models.sampling.parameters import Coordinate, KernelParameters

Numbers = npt.NDArray[np.float64]

AVERAGED = 500
"""Largest number of strings whose parameters are averaged over: more determine them, and take long to decompose."""

MOVED = 100
"""Largest number of strings at which the parameters of the kernel count as uncertain. With 60 they added 1 % to the
width of intervals, and every one takes a Gram matrix."""

PRIOR_VALUES = 2.0
"""How many values the prior of the total variance is worth."""

SHARES = (-9.0, 9.0, 61)
"""First and last log odds of the share of noise, and how many are looked at; then as many about the probable ones."""

NEGLIGIBLE = 12.0
"""A share is left out if its log density is so much less than the largest."""

STEP = 1e-4
"""Steps of differences, in widths of a parameter's coordinate."""

PRIOR_POINTS = 101
"""Points at which a prior of a kernel's parameter is looked at for its variance."""


class MeasurementVariance:
    """Variances of measurements, noise included, about the predictions of a fitted process at one draw.

    Args:
        state: The process, D = 1.
        kernel: Its kernel, without output scale.
        width: Number of columns that a kernel which is not of seqopt expects.

    Example:
        >>> from seqopt.models import StringGP
        >>> gp = StringGP(restarts=1)
        >>> gp.fit(["AAAA", "AAAT", "TTTA", "TTTT"], [0.0, 1.0, 3.0, 4.0], rng=np.random.default_rng(0))
        >>> found = MeasurementVariance(gp.fitted, gp.model.covar_module.base_kernel, width=4)
        >>> variance = found.at(gp.encoder.encode(["ATAA", "TTAT"]))
        >>> bool((variance > gp.fitted.noise_variance).all())
        True
    """

    def __init__(self, state: BatchedGPState, kernel: gpytorch.kernels.Kernel, width: int) -> None:
        self._state = state
        self._own = state.evaluator.self_similarity(state.encoded)
        self._shares = _Shares.of(state)
        self._slopes = _Slopes(state, kernel, width) if len(state.keys) <= MOVED else None

    def at(self, encoded: Encoded, noise: Numbers | float = 1.0) -> Tensor:
        """Variances at N strings, in standardised units squared.

        Args:
            encoded: The strings, or queries.
            noise: Variance of the noise of each measurement to come in units of that of the target, N or one for all.
        """
        state = self._state
        own = state.evaluator.self_similarity(encoded)
        rows = state.evaluator.cross(state.encoded, encoded, self._own, own)
        variance = torch.from_numpy(self._shares.variance(rows, state.evaluator.variance(encoded, own), noise))
        if self._slopes is not None:
            variance += self._slopes.variance(encoded, torch.from_numpy(rows))
        return variance


@dataclass(frozen=True)
class _Shares:
    """Probable shares of noise, and what predictions at them need.

    Attributes:
        unit: Mean diagonal of the Gram matrix.
        basis: R^-1/2 U, n x n.
        ones: U^T R^-1/2 1, n.
        shares: The shares, r.
        weights: Their probabilities, r.
        inverse: 1 / ((1 - rho) e + rho), r x n.
        constant: Mean given each share, r.
        precision: 1^T W^-1 1, r.
        residual: U^T R^-1/2 (y - c 1), r x n.
        total: Expectation of the total variance given each share, r.
        alpha: C^-1 (y - c 1) of the point estimate, times its output scale, n.
        predicted: Its constant mean.
    """

    unit: float
    basis: Numbers
    ones: Numbers
    shares: Numbers
    weights: Numbers
    inverse: Numbers
    constant: Numbers
    precision: Numbers
    residual: Numbers
    total: Numbers
    alpha: Numbers
    predicted: float

    @classmethod
    def of(cls, state: BatchedGPState) -> _Shares:
        gram = (state.prior()[0] / state.scale[0]).numpy()
        n = len(gram)
        unit = float(np.diagonal(gram).mean()) or 1.0
        roots = (state.observed_noise[0] / state.noise_variance[0]).sqrt().numpy()
        scaled = torch.from_numpy(gram / (unit * roots[:, None] * roots))
        eigenvalues, vectors = (found.numpy() for found in torch.linalg.eigh(scaled))
        eigenvalues = eigenvalues.clip(min=0.0)
        projected, ones = (state.targets.numpy() / roots) @ vectors, (1.0 / roots) @ vectors

        def forms(odds: Numbers) -> tuple[Numbers, Numbers, Numbers, Numbers, Numbers]:
            shares = 1.0 / (1.0 + np.exp(-odds))
            spectrum = (1.0 - shares)[:, None] * eigenvalues + shares[:, None]
            precision = (ones**2 / spectrum).sum(-1)
            constant = (ones * projected / spectrum).sum(-1) / precision
            squares = PRIOR_VALUES + ((projected - constant[:, None] * ones) ** 2 / spectrum).sum(-1)
            density = -0.5 * (np.log(spectrum).sum(-1) + np.log(precision) + (PRIOR_VALUES + n - 1) * np.log(squares))
            # All shares are equally probable; their log odds are not.
            return density + np.log(shares) + np.log1p(-shares), shares, spectrum, precision, squares

        odds = np.linspace(*SHARES[:2], SHARES[2])
        for _ in range(2):
            density = forms(odds)[0]
            probable = odds[density > density.max() - NEGLIGIBLE]
            gap = odds[1] - odds[0]
            odds = np.linspace(max(probable[0] - gap, odds[0]), min(probable[-1] + gap, odds[-1]), SHARES[2])
        density, shares, spectrum, precision, squares = forms(odds)
        weights = np.exp(density - density.max())
        constant = (ones * projected / spectrum).sum(-1) / precision
        return cls(
            unit,
            vectors / roots[:, None],
            ones,
            shares,
            weights / weights.sum(),
            1.0 / spectrum,
            constant,
            precision,
            projected - constant[:, None] * ones,
            squares / (PRIOR_VALUES + n - 3),
            float(state.scale[0]) * state.alpha[0].numpy(),
            float(state.constant[0]),
        )

    def variance(self, rows: FloatArray, prior: FloatArray, noise: Numbers | float) -> Numbers:
        """Variances about the prediction of the point estimate, N, from kernel values n x N and N."""
        signal = 1.0 - self.shares
        columns = self.basis.T @ rows / self.unit
        mean = self.constant[:, None] + (signal[:, None] * self.residual * self.inverse) @ columns
        lack = 1.0 - (signal[:, None] * self.inverse * self.ones) @ columns
        left = signal[:, None] * prior / self.unit - (signal[:, None] ** 2 * self.inverse) @ columns**2
        spread = left.clip(min=0.0) + lack**2 / self.precision[:, None] + self.shares[:, None] * noise
        shift = mean - (self.predicted + self.alpha @ rows)
        found: Numbers = self.weights @ (self.total[:, None] * spread + shift**2)
        return found


class _Slopes:
    """How predicted means move with the parameters of the kernel, and how uncertain these are."""

    def __init__(self, state: BatchedGPState, kernel: gpytorch.kernels.Kernel, width: int) -> None:
        parameters = KernelParameters(kernel)
        self._scale = float(state.scale[0])
        self._moved = _moved(parameters, state.encoded, width)
        if not self._moved:
            return
        # Evaluated as the others are: differences of rounding errors would not be small.
        base = torch.from_numpy(_Moved(KernelEvaluator(parameters.kernel, width), 0.0, state.encoded).gram())
        inverse = torch.cholesky_inverse(state.cholesky[0])
        self._inverse = inverse
        self._ones = inverse.sum(1)
        self._precision = self._ones.sum()
        centre = (self._ones @ state.targets) / self._precision
        self._alpha = inverse @ (state.targets - centre)
        self._slopes = [self._scale * (torch.from_numpy(moved.gram()) - base) / moved.step for moved in self._moved]
        # The logarithms of output scale and noise, which the fit learns with them.
        along = [*self._slopes, self._scale * base, state.observed_noise[0].diag()]
        projector = inverse - torch.outer(self._ones, self._ones) / self._precision
        products = [projector @ slope for slope in along]
        information = torch.stack([torch.stack([0.5 * (a * b.T).sum() for b in products]) for a in products])
        own = len(self._slopes)
        prior = [1.0 / _prior_variance(found) for found in parameters.coordinates] + [1.0] * 2
        self.covariance = torch.linalg.inv(information + torch.tensor(prior, dtype=torch.float64).diag())[:own, :own]

    def derivatives(self, encoded: Encoded, rows: Tensor) -> Tensor:
        """Derivatives of the predicted means of N strings along the kernel's d coordinates, d x N."""
        solved = self._inverse @ rows * self._scale
        # With the mean estimated, the weights of the values sum to 1.
        weights = solved + torch.outer(self._ones, (1.0 - solved.sum(0)) / self._precision)
        found = []
        for moved, slope in zip(self._moved, self._slopes, strict=True):
            changed = self._scale * (torch.from_numpy(moved.cross(encoded)) - rows) / moved.step
            found.append((changed - slope @ weights).T @ self._alpha)
        return torch.stack(found)

    def variance(self, encoded: Encoded, rows: Tensor) -> Tensor:
        """What the kernel's parameters add to the variances of N strings, from kernel values n x N."""
        if not self._moved:
            return torch.zeros(rows.shape[-1], dtype=torch.float64)
        slopes = self.derivatives(encoded, rows)
        return (slopes * (self.covariance @ slopes)).sum(0)


class _Moved:
    """A kernel of which one parameter has moved by a step of its coordinate."""

    def __init__(self, evaluator: KernelEvaluator, step: float, training: Encoded) -> None:
        self.step = step
        self._evaluator = evaluator
        self._training = training
        self._own = evaluator.self_similarity(training)

    def gram(self) -> FloatArray:
        found = self._evaluator.cross(self._training, None, self._own)
        symmetric: FloatArray = 0.5 * (found + found.T)
        return symmetric

    def cross(self, encoded: Encoded) -> FloatArray:
        return self._evaluator.cross(self._training, encoded, self._own, self._evaluator.self_similarity(encoded))


def _moved(parameters: KernelParameters, training: Encoded, width: int) -> list[_Moved]:
    """For each coordinate, the kernel a step away from where it is, within the bounds."""
    values = parameters.values
    found = []
    for place, coordinate in enumerate(parameters.coordinates):
        step = STEP * coordinate.width
        if coordinate.start + step > coordinate.upper:
            step = -step
        there = [*values]
        there[place] = float(coordinate.value(np.array(coordinate.start + step)))
        found.append(_Moved(KernelEvaluator(copy.deepcopy(parameters.set(there)), width), step, training))
    parameters.set(values)
    return found


def _prior_variance(coordinate: Coordinate) -> float:
    """Variance of the prior of a coordinate between its bounds."""
    points = np.linspace(coordinate.lower, coordinate.upper, PRIOR_POINTS)
    densities = np.array([coordinate.log_prior(float(point)) for point in points])
    weights = np.exp(densities - densities.max())
    weights /= weights.sum()
    return float(weights @ (points - weights @ points) ** 2)
