r"""The posterior density of the parameters of one kernel.

Model: standardised values y = c + f(s) + noise, with f ~ GP(0, a k), noise variances s2 (+ what is known of each) and
a constant mean c ~ N(0, m^2). The mean is integrated out in closed form: with C = a K + noise and 1 a vector of ones,

.. math::

    A = 1^T C^{-1} 1, \quad B = 1^T C^{-1} y, \quad
    \log p(y) = -\tfrac12 \left[ y^T C^{-1} y - \frac{m^2 B^2}{1 + m^2 A} + \log|C| + \log(1 + m^2 A)
                + n \log 2\pi \right],

and given the other parameters it is normal with variance v = m^2 / (1 + m^2 A) and mean v B. So chains do not move it,
and it is drawn exactly afterwards.

Cost: a new value of a kernel parameter takes a Gram matrix, O(n^2) kernel evaluations, and a Cholesky factorisation,
O(n^3 / 3). As soon as output scale and noise move at the same kernel parameters, one eigendecomposition K = U e U^T
makes each of these moves O(n); with known noise that differs between values, they take a factorisation each.

Where values are censored, log p(y) is that of expectation propagation, whose sites are found for each point
(`seqopt.models.censoring`): with the mean integrated out the covariance is C + m^2 1 1^T, and what is said of the mean
above holds given the sites.

References:
    Rasmussen, C. E. and Williams, C. K. I. (2006). Gaussian Processes for Machine Learning, sections 2.7 and 5.4.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property

import gpytorch
import numpy as np
import numpy.typing as npt
import torch
from scipy import special

from seqopt.encoding import Encoded
from seqopt.kernels.base import DescribedKernel
from seqopt.kernels.threads import one_thread
from seqopt.models.censoring import CensoredSites, Sides, censored_sites
from seqopt.models.covariance import FittedKernel, KernelEvaluator
from seqopt.models.fitting import NOISE_BOUNDS, SCALE_BOUNDS, SINGLE_THREADED
from seqopt.models.sampling.parameters import (
    NOISE_VARIANCE,
    OUTPUTSCALE,
    Coordinate,
    KernelParameters,
    Numbers,
)
from seqopt.posteriors import stable_cholesky

SCALE_PRIOR = (0.0, 1.0)
"""Mean and standard deviation of the normal prior of the logarithm of the output scale (of standardised values)."""

NOISE_PRIOR = (-4.0, 1.0)
"""Likewise of the noise variance."""


RATIO_PRIOR = (0.0, 1.0)
"""Likewise of the noise of a level, in units of that of the target."""

RATIO_BOUNDS = (1e-4, 1e4)
"""Smallest and largest of these."""

NOISE_RATIO = "noise_ratio"
"""Name of that parameter, with the number of the level in square brackets."""

SITE_TOLERANCE = 1e-5
"""Largest relative change with which what stands for censored values counts as found: log p(y) then errs by far less
than a chain would notice."""


@dataclass(frozen=True)
class _Gram:
    """A Gram matrix, and its eigendecomposition once that pays."""

    key: tuple[float, ...]
    matrix: Numbers
    spectrum: tuple[Numbers, Numbers, Numbers] | None = None
    """Eigenvalues, and values and ones in the basis of the eigenvectors."""


class LogPosterior:
    """Logarithm of prior times marginal likelihood, at a point of all coordinates.

    Args:
        kernel: The kernel, without output scale. Where it adapts its priors to the strings, a copy of it does.
        encoded: The n training queries.
        targets: Standardised values, n.
        known: Known variance of the noise of each, n.
        mean_std: Standard deviation m of the prior of the constant mean; 0 for a mean that is known to be 0.
        sides: Which targets are limits, n (`seqopt.models.censoring`); `None` where none is.
        numbers: The level of each value, n, where levels have noise of their own.
        reference: The level whose noise is the noise variance; that of each other one is a multiple of it, which is
            learned, too (`NOISE_RATIO`).
        levels: Number of levels.
        adapt: Whether priors of the kernel that depend on the strings do.

    Attributes:
        coordinates: Those of the kernel, then, as logarithms, by what the noise of other levels is a multiple, the
            output scale and the noise variance.
        evaluations: Evaluations of the density so far.
        grams: Gram matrices computed so far.

    Example:
        >>> from seqopt.encoding import Encoder
        >>> from seqopt.kernels import NgramKernel
        >>> encoded = Encoder().encode(["AAB", "ABB", "BA"])
        >>> density = LogPosterior(NgramKernel(), encoded, np.array([-1.0, 0.0, 1.0]), np.zeros(3))
        >>> [coordinate.name for coordinate in density.coordinates]
        ['lengthscale', 'outputscale', 'noise_variance']
        >>> bool(density(np.array([1.0, 0.0, -4.0])) > density(np.array([1.0, 9.0, 0.0])))
        True
    """

    def __init__(
        self,
        kernel: gpytorch.kernels.Kernel,
        encoded: Encoded,
        targets: Numbers,
        known: Numbers,
        mean_std: float = 1.0,
        sides: Sides | None = None,
        numbers: npt.NDArray[np.int64] | None = None,
        reference: int = 0,
        levels: int = 1,
        *,
        adapt: bool = True,
    ) -> None:
        self.parameters = KernelParameters(kernel, encoded if adapt else None)
        self.encoded = encoded
        self.targets = targets
        self.known = known
        self.mean_std = mean_std
        self.sides = sides
        self.evaluations = self.grams = 0
        self.numbers = numbers
        self.others = [level for level in range(levels) if level != reference]
        self._equal_noise = bool(np.ptp(known) == 0.0) and not self.others
        self._rows: torch.Tensor | None = None
        self._last: _Gram | None = None
        self._found: CensoredSites | None = None

    @cached_property
    def coordinates(self) -> list[Coordinate]:
        """See the class."""
        return [
            *self.parameters.coordinates,
            *(_positive(ratio_name(level), RATIO_BOUNDS, *RATIO_PRIOR) for level in self.others),
            _positive(OUTPUTSCALE, SCALE_BOUNDS, *SCALE_PRIOR),
            _positive(NOISE_VARIANCE, NOISE_BOUNDS, *NOISE_PRIOR),
        ]

    @property
    def kernel(self) -> gpytorch.kernels.Kernel:
        """The copy of the kernel whose parameters are set."""
        return self.parameters.kernel

    def __call__(self, point: Numbers) -> float:
        """Log density at a point, d; minus infinity out of bounds."""
        return sum(self.parts(point))

    def parts(self, point: Numbers) -> tuple[float, float]:
        """Logarithms of prior and marginal likelihood at a point, d; both are minus infinity out of bounds."""
        nowhere = -math.inf, -math.inf
        prior = 0.0
        for coordinate, number in zip(self.coordinates, point.tolist(), strict=True):
            if not coordinate.lower <= number <= coordinate.upper:
                return nowhere
            prior += coordinate.log_prior(number)
        if not math.isfinite(prior):
            return nowhere
        self.evaluations += 1
        *own, scale, noise = (float(value) for value in self.values(point).values())
        found = self.log_likelihood(own, scale, noise)
        return prior, found if math.isfinite(found) else -math.inf

    def values(self, points: Numbers) -> dict[str, Numbers]:
        """The parameters themselves, by name, at points ``... x d``."""
        return {found.name: found.value(points[..., place]) for place, found in enumerate(self.coordinates)}

    def log_likelihood(self, own: Sequence[float], scale: float, noise: float) -> float:
        """Log p(y) at values of the kernel's parameters, an output scale and a noise variance."""
        if self.sides is not None:
            return float(self._sites(own, scale, noise)[1].log_density)
        quadratic, crossed, ones, determinant = self._forms(own, scale, noise)
        shrunk = 1.0 + self.mean_std**2 * ones
        explained = self.mean_std**2 * crossed**2 / shrunk
        n = len(self.targets)
        return -0.5 * (quadratic - explained + determinant + math.log(shrunk) + n * math.log(2.0 * math.pi))

    def mean_moments(self, own: Sequence[float], scale: float, noise: float) -> tuple[float, float]:
        """Mean and variance of the constant mean given the values and all other parameters."""
        if self.sides is not None:
            covariance, sites = self._sites(own, scale, noise)
            factor, _ = stable_cholesky(covariance + sites.variance.diag())
            # The covariance has the mean's own part, m^2 1 1^T, so the mean's covariance with each value is m^2.
            weights = self.mean_std**2 * torch.cholesky_inverse(factor).sum(0)
            return float(weights @ sites.residuals), self.mean_std**2 * (1.0 - float(weights.sum()))
        _, crossed, ones, _ = self._forms(own, scale, noise)
        variance = self.mean_std**2 / (1.0 + self.mean_std**2 * ones)
        return variance * crossed, variance

    def gram(self, own: Sequence[float]) -> Numbers:
        """Gram matrix of the training queries at values of the kernel's parameters, n x n."""
        self.grams += 1
        kernel = self.parameters.set(self._of_kernel(own))
        if self._rows is None:
            self._rows = self.encoded.to_tensor()
        if isinstance(kernel, DescribedKernel) and kernel.active_dims is None:
            # Kernels of seqopt keep what does not depend on a parameter that moves.
            with torch.no_grad():
                matrix = kernel.forward(self._rows, self._rows).numpy()
        else:
            matrix = KernelEvaluator(kernel, self.encoded.width).cross(self.encoded, None)
        symmetric: Numbers = 0.5 * (matrix + matrix.T)
        return symmetric

    def table(self, own: Sequence[float], scales: Numbers, noises: Numbers) -> Numbers:
        """Log p(y) at one value of the kernel's parameters and all pairs of output scales and noise variances.

        Each value counts as having the mean of the known noise variances.
        """
        return self.table_of(self.gram(own), scales, noises)

    def table_of(self, gram: Numbers, scales: Numbers, noises: Numbers) -> Numbers:
        """As `table`, for a Gram matrix of the training queries, n x n."""
        eigenvalues, projected, ones = _spectrum(gram, self.targets)
        variances = scales[:, None, None] * eigenvalues + (noises + self.known.mean())[:, None]
        shrunk = 1.0 + self.mean_std**2 * (ones**2 / variances).sum(-1)
        crossed = (ones * projected / variances).sum(-1)
        terms = projected**2 / variances + np.log(2.0 * np.pi * variances)
        found: Numbers = -0.5 * (terms.sum(-1) - self.mean_std**2 * crossed**2 / shrunk + np.log(shrunk))
        return found

    def _of_kernel(self, own: Sequence[float]) -> Sequence[float]:
        return own[: len(own) - len(self.others)] if self.others else own

    def _noises(self, own: Sequence[float], noise: float) -> Numbers | float:
        """Learned variance of the noise of each value."""
        if self.numbers is None or not self.others:
            return noise
        ratios = np.ones(len(self.others) + 1)
        ratios[self.others] = own[len(own) - len(self.others) :]
        by_value: Numbers = noise * ratios[self.numbers]
        return by_value

    def _sites(self, own: Sequence[float], scale: float, noise: float) -> tuple[torch.Tensor, CensoredSites]:
        """Prior covariance of the values, mean integrated out, and what stands for the censored ones."""
        assert self.sides is not None
        key = tuple(self._of_kernel(own))
        if self._last is None or self._last.key != key:
            self._last = _Gram(key, self.gram(own))
        covariance = torch.from_numpy(scale * self._last.matrix + self.mean_std**2)
        covariance.diagonal().add_(torch.from_numpy(self._noises(own, noise) + self.known))
        targets, sides = torch.from_numpy(self.targets), torch.from_numpy(self.sides)
        found = censored_sites(covariance, targets, sides, self._found, SITE_TOLERANCE)
        self._found = found if math.isfinite(found.log_density) else None
        return covariance, found

    @contextmanager
    def sampling(self) -> Iterator[None]:
        """Within this context, the kernel is prepared for thousands of evaluations; what it keeps is freed after."""
        kernel = self.kernel
        with ExitStack() as stack:
            if isinstance(kernel, FittedKernel):
                before = kernel.threads
                kernel.threads = torch.get_num_threads() if before is None else before
                stack.callback(setattr, kernel, "threads", before)
                stack.callback(kernel.forget)
                if self._rows is None:
                    self._rows = self.encoded.to_tensor()
                stack.enter_context(kernel.interpolating(self._rows))
            if len(self.targets) <= SINGLE_THREADED:
                stack.enter_context(one_thread())
            yield

    def _forms(self, own: Sequence[float], scale: float, noise: float) -> tuple[float, float, float, float]:
        """y^T C^-1 y, 1^T C^-1 y, 1^T C^-1 1 and log |C|."""
        key = tuple(self._of_kernel(own))
        gram = self._last
        if gram is None or gram.key != key:
            gram = _Gram(key, self.gram(own))
        elif gram.spectrum is None and self._equal_noise:
            gram = _Gram(key, gram.matrix, _spectrum(gram.matrix, self.targets))
        self._last = gram
        if gram.spectrum is None:
            # torch, because `sampling` keeps it to one thread: waiting for a second one costs small matrices most.
            covariance = torch.from_numpy(scale * gram.matrix)
            covariance.diagonal().add_(torch.from_numpy(self._noises(own, noise) + self.known))
            factor, failed = torch.linalg.cholesky_ex(covariance)
            if not failed:
                sides = torch.from_numpy(np.stack([self.targets, np.ones_like(self.targets)], axis=1))
                left, right = torch.linalg.solve_triangular(factor, sides, upper=False).numpy().T
                logarithms = np.log(factor.diagonal().numpy())
                return float(left @ left), float(left @ right), float(right @ right), 2.0 * float(logarithms.sum())
            # Rounding has made it indefinite: negative eigenvalues count as 0, and noise as equal.
            gram = _Gram(key, gram.matrix, _spectrum(gram.matrix, self.targets))
        assert gram.spectrum is not None
        eigenvalues, projected, ones = gram.spectrum
        variances = scale * eigenvalues + np.mean(self._noises(own, noise)) + self.known.mean()
        inverse = 1.0 / variances
        weighted = projected * inverse
        return (
            float(projected @ weighted),
            float(ones @ weighted),
            float((ones * inverse) @ ones),
            float(np.log(variances).sum()),
        )


def ratio_name(level: int) -> str:
    """What the noise of a level in units of that of the target is called."""
    return f"{NOISE_RATIO}[{level}]"


def _spectrum(gram: Numbers, targets: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    values, vectors = (found.numpy() for found in torch.linalg.eigh(torch.from_numpy(gram)))
    return values.clip(min=0.0), targets @ vectors, vectors.sum(axis=0)


def _positive(name: str, bounds: tuple[float, float], mean: float, std: float) -> Coordinate:
    """A parameter with a normal prior of its logarithm, of whose mass its bounds cut off less than 1e-6."""
    normaliser = math.log(std * math.sqrt(2.0 * math.pi))

    def log_prior(point: float) -> float:
        return -0.5 * ((point - mean) / std) ** 2 - normaliser

    def quantiles(probabilities: Numbers) -> Numbers:
        return mean + std * np.asarray(special.ndtri(probabilities))

    return Coordinate(name, mean, math.log(bounds[0]), math.log(bounds[1]), std, True, log_prior, quantiles)


def values_of(named: Mapping[str, Numbers], place: int, names: Sequence[str]) -> list[float]:
    """The numbers at one place of named arrays, in the order of ``names``."""
    return [float(named[name][place]) for name in names]
