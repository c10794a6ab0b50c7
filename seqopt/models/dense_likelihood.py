r"""Marginal likelihoods of few strings, with their derivatives, without a graph.

The density of n standardised values y with covariance :math:`C = a K + s^2 I` about a constant c is that of Rasmussen
and Williams (2006), equation 5.8; with :math:`\alpha = C^{-1} (y - c)` and
:math:`G = \tfrac12 (\alpha \alpha^T - C^{-1})` its derivatives are

.. math::

    \frac{\partial}{\partial c} = \sum_i \alpha_i, \quad
    \frac{\partial}{\partial \log a} = a \sum G \circ K, \quad
    \frac{\partial}{\partial \log s^2} = s^2 \operatorname{tr} G, \quad
    \frac{\partial}{\partial \theta} = a \sum G \circ \frac{\partial K}{\partial \theta}.

With ten or fifty strings a step of a fit takes fractions of a millisecond this way, and ten where modules of gpytorch
build a graph of it. A kernel needs a `GramFamily`: its Gram matrix as a function of its parameters. Priors that have a
say are those of the logarithms of scale and noise, which are normal, and what the family says of the kernel's.

References:
    Rasmussen, C. E. and Williams, C. K. I. (2006). Gaussian Processes for Machine Learning, section 5.4.1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Protocol

import gpytorch
import numpy as np
import numpy.typing as npt
import torch
from gpytorch.priors import LogNormalPrior
from scipy import optimize

from seqopt.encoding import EncodedStrings
from seqopt.kernels import NgramKernel, OneHotKernel, SitesKernel, SubsequenceKernel
from seqopt.kernels.covariances import Matrix, Pairs, Program
from seqopt.kernels.interpolation import InterpolatedGram
from seqopt.posteriors.linalg import stable_cholesky

FloatArray = npt.NDArray[np.float64]

Slopes = Callable[[FloatArray], FloatArray]
"""The derivative by each parameter of what has a given derivative by the Gram matrix, n x n."""

INTERPOLATED = 32
"""Strings from which sums at other gap decays come from interpolation: fewer cost less than its nodes do."""

INTERPOLANT_BYTES = 1 << 28
"""Largest interpolant."""


class GramFamily(Protocol):
    """The Gram matrix of n strings as a function of the raw parameters of its kernel.

    Attributes:
        names: Of the raw parameters, within the kernel.
        bounds: Of each of their entries.
    """

    names: tuple[str, ...]
    bounds: tuple[tuple[float, float], ...]

    def at(self, values: FloatArray) -> tuple[FloatArray, Slopes]:
        """The Gram matrix, n x n, and what turns derivatives by it into those by each parameter."""
        ...

    def prior(self, values: FloatArray) -> tuple[float, FloatArray] | None:
        """The logarithm of the prior density of the parameters, and its gradient; `None` where it is not known."""
        ...


def _through(derivatives: list[FloatArray]) -> Slopes:
    """From the derivatives of a Gram matrix by each parameter."""
    return lambda by_gram: np.array([float((by_gram * derivative).sum()) for derivative in derivatives])


class _WithoutPrior:
    """What families share whose priors have no say."""

    def prior(self, values: FloatArray) -> tuple[float, FloatArray] | None:
        """See `GramFamily`."""
        return None


class FixedGram(_WithoutPrior):
    """A kernel without parameters.

    Args:
        gram: Its Gram matrix.
    """

    names: tuple[str, ...] = ()
    bounds: tuple[tuple[float, float], ...] = ()

    def __init__(self, gram: FloatArray) -> None:
        self._gram = gram

    def at(self, values: FloatArray) -> tuple[FloatArray, Slopes]:
        """See `GramFamily`."""
        return self._gram, _through([])


class SquaredExponentialGram(_WithoutPrior):
    """exp(-d^2 / (2 l^2)) at any lengthscale l.

    Args:
        kernel: A `seqopt.kernels.NgramKernel`; its lengthscale does not matter.
        strings: The n strings.
    """

    names: tuple[str, ...] = ("raw_lengthscale",)
    bounds: tuple[tuple[float, float], ...]

    def __init__(self, kernel: NgramKernel, strings: EncodedStrings) -> None:
        constraint = kernel.raw_lengthscale_constraint
        self.bounds = ((float(constraint.lower_bound), float(constraint.upper_bound)),)
        # At the largest lengthscale no distance between strings underflows.
        largest = self.bounds[0][1]
        wide = NgramKernel(kernel.longest, largest, lengthscale_bounds=self.bounds[0])
        # Squared distances between counts are integers.
        self._squares = np.rint(-2.0 * largest**2 * np.log(np.asarray(wide.cross(strings), dtype=np.float64)))

    def at(self, values: FloatArray) -> tuple[FloatArray, Slopes]:
        """See `GramFamily`."""
        lengthscale = float(values[0])
        gram: FloatArray = np.exp(self._squares / (-2.0 * lengthscale**2))
        return gram, _through([gram * self._squares / lengthscale**3])


class SubsequenceGram(_WithoutPrior):
    """The normalised sub-sequence kernel at any decays.

    Args:
        kernel: A `seqopt.kernels.SubsequenceKernel`; its decays do not matter.
        strings: The n strings.
    """

    names: tuple[str, ...] = ("raw_match_decay", "raw_gap_decay")
    bounds: tuple[tuple[float, float], ...]

    def __init__(self, kernel: SubsequenceKernel, strings: EncodedStrings) -> None:
        self._orders = np.arange(1, kernel.order + 1, dtype=np.float64)
        self.bounds = tuple(
            (float(constraint.lower_bound), float(constraint.upper_bound))
            for constraint in (kernel.raw_match_decay_constraint, kernel.raw_gap_decay_constraint)
        )
        self._options = (kernel.engine, kernel.threads, kernel.partitions)
        self._pairs: Pairs = Matrix(strings, None)
        self._count = len(strings)
        if len(strings) >= INTERPOLATED:
            found = InterpolatedGram.build(strings, self._program(0.5), *self.bounds[1], INTERPOLANT_BYTES)
            self._pairs = self._pairs if found is None else found

    def _program(self, gap: float) -> Program:
        return Program(len(self._orders), gap, np.dtype(np.float64), *self._options)

    def at(self, values: FloatArray) -> tuple[FloatArray, Slopes]:
        """See `GramFamily`."""
        match, gap = map(float, values)
        sums, slopes = self._sums(gap)
        weights = match ** (2.0 * self._orders)
        by_match = 2.0 * self._orders * match ** (2.0 * self._orders - 1.0)
        raw, *derivatives = (
            np.tensordot(factors, parts, 1) for factors, parts in ((weights, sums), (by_match, sums), (weights, slopes))
        )
        own = raw.diagonal()
        inverse = np.zeros(self._count)
        np.divide(1.0, own, out=inverse, where=own > 0)
        scale = np.sqrt(np.outer(inverse, inverse))
        gram: FloatArray = raw * scale
        found = []
        for derivative in derivatives:
            relative = 0.5 * derivative.diagonal() * inverse
            found.append(derivative * scale - gram * (relative[:, None] + relative))
        return gram, _through(found)

    def _sums(self, gap: float) -> tuple[FloatArray, FloatArray]:
        """Per-order sums and their derivatives in the gap decay, order x n x n."""
        sums, slopes = np.empty((2, len(self._orders), self._count, self._count))
        for block in self._pairs.blocks(self._program(gap), True):
            assert block.slopes is not None
            for all_of, part in ((sums, block.values), (slopes, block.slopes)):
                here = part[:, 0].numpy()
                all_of[:, block.rows, block.columns] = here
                all_of[:, block.columns, block.rows] = here.transpose(0, 2, 1)
        return sums, slopes


class SitesGram:
    """The kernel of sites at any lengthscales and similarity.

    Args:
        kernel: A `seqopt.kernels.SitesKernel` whose prior of lengthscales is log-normal; where the similarity is not
            learned it stays.
        rows: n strings, ``n x W`` tokens.
    """

    names: tuple[str, ...]
    bounds: tuple[tuple[float, float], ...]

    def __init__(self, kernel: SitesKernel, rows: torch.Tensor) -> None:
        learned = kernel.raw_similarity.requires_grad
        self.names = ("raw_lengthscale", "raw_similarity") if learned else ("raw_lengthscale",)
        lengthscale, similarity = (
            (float(constraint.lower_bound), float(constraint.upper_bound))
            for constraint in (kernel.raw_lengthscale_constraint, kernel.raw_similarity_constraint)
        )
        self.bounds = (*[lengthscale] * kernel.sites, *[similarity] * learned)
        self._sites = kernel.sites
        self._similarity = float(kernel.similarity.detach())
        self._differences = kernel.differences(rows)
        prior = kernel.lengthscale_prior
        centre, spread = (one.detach().double().cpu().reshape(-1).numpy() for one in (prior.loc, prior.scale))
        self._prior = np.broadcast_to(centre, kernel.sites), np.broadcast_to(spread, kernel.sites)

    def at(self, values: FloatArray) -> tuple[FloatArray, Slopes]:
        """See `GramFamily`."""
        inverse = 1.0 / values[: self._sites]
        learned = len(values) > self._sites
        similarity = float(values[-1]) if learned else self._similarity
        gram: FloatArray = np.exp(-self._differences.exponents(inverse * (1.0 - similarity), inverse * similarity))

        def slopes(by_gram: FloatArray) -> FloatArray:
            differ, distant = self._differences.by_weight(-by_gram * gram)
            by_inverse = (1.0 - similarity) * differ + similarity * distant
            by_similarity = [float(inverse @ (distant - differ))] * learned
            return np.concatenate([-by_inverse * inverse**2, by_similarity])

        return gram, slopes

    def prior(self, values: FloatArray) -> tuple[float, FloatArray]:
        """See `GramFamily`."""
        centre, spread = self._prior
        scales = values[: self._sites]
        logarithms = np.log(scales)
        apart = (logarithms - centre) / spread
        constant = np.log(spread) + 0.5 * math.log(2.0 * math.pi)
        density = -float((logarithms + 0.5 * apart**2 + constant).sum())
        return density, np.concatenate([-(1.0 + apart / spread) / scales, np.zeros(len(values) - self._sites)])


def family_of(kernel: gpytorch.kernels.Kernel, rows: torch.Tensor, *, priors: bool = False) -> GramFamily | None:
    """The Gram matrix of ``rows`` as a function of the kernel's parameters; `None` where it is not known how.

    Args:
        kernel: Any kernel.
        rows: n strings as a model holds them, ``n x W`` tokens.
        priors: Whether the prior of its parameters is to be known, too.
    """
    if kernel.batch_shape or kernel.active_dims is not None:
        return None
    learned = {name for name, parameter in kernel.named_parameters() if parameter.requires_grad}
    if type(kernel) is SitesKernel:
        return SitesGram(kernel, rows) if "raw_lengthscale" in learned and _plain_prior(kernel) else None
    if priors:
        return None
    if type(kernel) is OneHotKernel:
        return FixedGram(np.asarray(kernel.cross(EncodedStrings.from_tensor(rows)), dtype=np.float64))
    if type(kernel) is NgramKernel and learned == set(SquaredExponentialGram.names):
        return SquaredExponentialGram(kernel, EncodedStrings.from_tensor(rows))
    if type(kernel) is SubsequenceKernel and kernel.normalize and learned == set(SubsequenceGram.names):
        return SubsequenceGram(kernel, EncodedStrings.from_tensor(rows))
    return None


def _plain_prior(kernel: SitesKernel) -> bool:
    """Whether the one prior is that of the lengthscales, and log-normal: of one of them, or of each."""
    priors = {name: prior for name, _, prior, _, _ in kernel.named_priors()}
    prior = priors.get("lengthscale_prior")
    if len(priors) != 1 or prior is None or type(prior) is not LogNormalPrior or prior._transform is not None:
        return False
    return all(one.numel() in (1, kernel.sites) for one in (prior.loc, prior.scale))


class DenseLikelihood:
    """The log marginal likelihood of values, and of the parameters where priors are given, per value.

    Args:
        family: Gram matrices of the kernel.
        values: n standardised values.
        scale_bounds: Smallest and largest output scale.
        noise_bounds: Smallest and largest noise variance.
        mean: The constant mean, where it is not learned.
        priors: Mean and standard deviation of the logarithms of output scale and noise variance, whose densities count
            with the prior of the family; `None` for none.

    Example:
        >>> density = DenseLikelihood(FixedGram(np.eye(2)), np.array([1.0, -1.0]), (1e-8, 1e8), (1e-4, 1e4))
        >>> value, slopes = density(np.log([1.0, 0.5, 0.5]))
        >>> round(value, 6), slopes.round(6).tolist()
        (-1.418939, [0.0, 0.0, 0.0])
    """

    def __init__(
        self,
        family: GramFamily,
        values: FloatArray,
        scale_bounds: tuple[float, float],
        noise_bounds: tuple[float, float],
        mean: float | None = None,
        priors: tuple[tuple[float, float], tuple[float, float]] | None = None,
    ) -> None:
        self.family = family
        self.values = values
        self.priors = priors
        means = (-math.inf, math.inf) if mean is None else (mean, mean)
        logarithms = ((math.log(lower), math.log(upper)) for lower, upper in (scale_bounds, noise_bounds))
        self.bounds = [means, *logarithms, *family.bounds]

    def __call__(self, point: FloatArray) -> tuple[float, FloatArray]:
        """The density per value at a point, and its gradient.

        Args:
            point: Constant mean, logarithms of output scale and noise variance, parameters of the kernel.
        """
        gram, by_kernel = self.family.at(point[3:])
        scale, noise = math.exp(point[1]), math.exp(point[2])
        covariance = scale * gram
        covariance[np.diag_indices_from(covariance)] += noise
        factor, _ = stable_cholesky(torch.from_numpy(covariance))
        residuals = torch.from_numpy(self.values - point[0])
        alpha = torch.cholesky_solve(residuals[:, None], factor)[:, 0]
        count = len(residuals)
        log_determinant = 2.0 * float(factor.diagonal().log().sum())
        density = -0.5 * (float(residuals @ alpha) + log_determinant + count * math.log(2.0 * math.pi))
        through = 0.5 * (torch.outer(alpha, alpha) - torch.cholesky_inverse(factor)).numpy()
        own = [float(alpha.sum()), scale * float((through * gram).sum()), noise * float(np.trace(through))]
        slopes = np.concatenate([own, scale * by_kernel(through)])
        for found, steeper in self._prior(point):
            density, slopes = density + found, slopes + steeper
        return density / count, slopes / count

    def _prior(self, point: FloatArray) -> Iterator[tuple[float, FloatArray]]:
        """The logarithms of the densities of the priors, and their gradients."""
        if self.priors is None:
            return
        for place, (centre, spread) in enumerate(self.priors, start=1):
            apart = (point[place] - centre) / spread
            slopes = np.zeros(len(point))
            slopes[place] = -apart / spread
            yield -0.5 * apart**2 - math.log(spread) - 0.5 * math.log(2.0 * math.pi), slopes
        known = self.family.prior(point[3:])
        if known is not None:
            yield known[0], np.concatenate([np.zeros(3), known[1]])

    def maximise(self, start: FloatArray, **options: float) -> tuple[float, FloatArray]:
        """The density per value at a local maximum, found by L-BFGS-B, and the point.

        Args:
            start: Where to begin.
            options: Those of `scipy.optimize.minimize`.
        """

        def negative(point: FloatArray) -> tuple[float, FloatArray]:
            density, slopes = self(point)
            return -density, -slopes

        inside = np.clip(start, *np.array(self.bounds).T)
        found = optimize.minimize(negative, inside, jac=True, method="L-BFGS-B", bounds=self.bounds, options=options)
        return -float(found.fun), found.x
