r"""Sequential Monte Carlo: particles from the prior that follow the likelihood to the posterior.

With the prior p and the likelihood L, particles move through the densities in proportion to
:math:`p\, L^{\beta_0}, p\, L^{\beta_1}, \ldots` with :math:`0 = \beta_0 < \beta_1 < \ldots = 1`. Each step weighs
them by :math:`L^{\beta_{t+1} - \beta_t}`, with the largest exponent that leaves the effective number at a given share,
*resamples* them, and *moves* each by slice sampling, which leaves the density as it is. The product of the mean weights
estimates the marginal likelihood.

When data have been added, the particles of the last posterior are weighed by the ratio of the new density to the old,
resampled and moved, as long as enough of them count; if too few do, or the marginal likelihood is asked for, they begin
at the prior again.

Populations know nothing of each other, so that they can be compared (R-hat). How many independent draws they are worth
is told by their ancestors: with :math:`E_i` the first ancestor of particle i among N,

.. math::

    \widehat{\mathrm{Var}}(\bar f) = \frac{1}{N^2} \sum_e \Big( \sum_{i: E_i = e} (f_i - \bar f) \Big)^2 .

The variance of a population's log marginal likelihood is that of the logarithms of its mean weights, the sum over
steps of their squared coefficients of variation divided by N. It takes the weights of one step for independent draws:
moves that do not mix make it too small.

References:
    Del Moral, P., Doucet, A., Jasra, A. (2006). Sequential Monte Carlo samplers. Journal of the Royal Statistical
        Society B 68, 411-436.
    Chopin, N. (2002). A sequential particle filter method for static models. Biometrika 89, 539-551 (resample-move, and
        data that are added).
    Gilks, W. R., Berzuini, C. (2001). Following a moving target: Monte Carlo inference for dynamic Bayesian models.
        Journal of the Royal Statistical Society B 63, 127-146.
    Lee, A., Whiteley, N. (2018). Variance estimation in the particle filter. Biometrika 105, 609-625.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy import special

from seqopt.errors import InputError, ModelError
from seqopt.models.sampling.density import LogPosterior
from seqopt.models.sampling.diagnostics import split_r_hat
from seqopt.models.sampling.parameters import Numbers
from seqopt.models.sampling.protocols import GOOD_R_HAT, ParameterSample
from seqopt.models.sampling.slice_sampler import Directions, SliceSampler, sweep_of
from seqopt.utils.config import Configurable

BISECTIONS = 50
"""Halvings by which the next exponent is found."""

ENOUGH = 0.3
"""Share of the particles that have to count for those of the last posterior to go on."""

MOST_STEPS = 200
"""Steps after which the density must have been reached."""


@dataclass
class _Population:
    """N particles on their way.

    Attributes:
        points: ``N x d``.
        priors: Logarithms of the prior there, N.
        likelihoods: Likewise of the marginal likelihood.
        eves: The first ancestor of each.
        log_evidence: Logarithm of the product of mean weights so far.
        variance: Of that, over populations.
    """

    points: Numbers
    priors: Numbers
    likelihoods: Numbers
    eves: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    log_evidence: float = 0.0
    variance: float = 0.0

    def __post_init__(self) -> None:
        self.eves = np.arange(len(self.points))

    def resample(self, weights: Numbers, rng: np.random.Generator) -> None:
        """Systematic resampling."""
        count = len(self.points)
        marks = (rng.random() + np.arange(count)) / count
        places = np.searchsorted(np.cumsum(weights / weights.sum()), marks).clip(max=count - 1)
        self.points, self.priors, self.likelihoods = self.points[places], self.priors[places], self.likelihoods[places]
        self.eves = self.eves[places]


class SMCSampler(Configurable):
    """Sequential Monte Carlo with resampling and slice moves, from the prior to the posterior.

    It finds separate modes where chains stay in one, and gives the marginal likelihood without further evaluations. For
    d parameters, a first fit takes some 6 d particles populations moves evaluations of the density for each step, of
    which there are 4 to 8 as a rule; later fits take those of one step.

    Args:
        particles: Of each population.
        populations: Number of them, at least 2, so that they can be compared.
        moves: Sweeps of slice moves after each resampling.
        share: Effective share of the particles that a step leaves.
        extensions: How often particles of populations that disagree are moved again at the end, the sweeps doubled
            each time.
        directions: Of the moves, see `SliceSampler`.

    Raises:
        InputError: If a number is out of its range.

    Example:
        >>> from seqopt.encoding import Encoder
        >>> from seqopt.kernels import NgramKernel
        >>> encoded = Encoder().encode(["AAB", "ABB", "BA", "BBB"])
        >>> density = LogPosterior(NgramKernel(2), encoded, np.array([-1.0, 0.0, 0.2, 1.0]), np.zeros(4))
        >>> sample = SMCSampler(particles=20).sample(density, np.random.default_rng(0), evidence=True)
        >>> sorted(sample.values), len(sample.weights), bool(sample.log_evidence < 0)
        (['lengthscale', 'noise_variance', 'outputscale'], 40, True)
    """

    def __init__(
        self,
        particles: int = 50,
        *,
        populations: int = 2,
        moves: int = 1,
        share: float = 0.5,
        extensions: int = 2,
        directions: Directions = "random",
    ) -> None:
        least = {"particles": 8, "populations": 2, "moves": 1, "extensions": 0}
        for (name, smallest), number in zip(least.items(), (particles, populations, moves, extensions), strict=True):
            if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < smallest:
                raise InputError(f"{name} is {number!r}; it must be an integer of at least {smallest}")
        if isinstance(share, bool) or not isinstance(share, int | float | np.floating) or not 0.0 < share < 1.0:
            raise InputError(f"share is {share!r}; expected a number between 0 and 1")
        self.directions: Directions = SliceSampler(directions=directions).directions
        self.particles = int(particles)
        self.populations = int(populations)
        self.moves = int(moves)
        self.share = float(share)
        self.extensions = int(extensions)

    def __repr__(self) -> str:
        return f"SMCSampler(particles={self.particles}, populations={self.populations}, moves={self.moves})"

    def sample(
        self,
        density: LogPosterior,
        rng: np.random.Generator,
        starts: Sequence[Sequence[float]] = (),
        *,
        evidence: bool = False,
    ) -> ParameterSample:
        """All particles, equally weighted; see `Sampler.sample`.

        Raises:
            ModelError: If the likelihood is 0 at (nearly) all draws of the prior.
        """
        before = density.evaluations, density.grams
        coordinates = density.coordinates
        with density.sampling():
            found = None if evidence else self._gone_on(density, starts, rng)
            if found is None:
                found = [self._from_prior(density, rng) for _ in range(self.populations)]
            for extension in range(self.extensions + 1):
                points = np.stack([population.points for population in found])
                r_hat = {one.name: split_r_hat(points[..., place]) for place, one in enumerate(coordinates)}
                if max(r_hat.values()) <= GOOD_R_HAT or extension == self.extensions:
                    break
                for population in found:
                    self._move(density, population, 1.0, rng, self.moves * 2**extension)
        logs = np.array([population.log_evidence for population in found])
        flat = points.reshape(-1, len(coordinates))
        heights = np.concatenate([population.priors + population.likelihoods for population in found])
        return ParameterSample(
            density.values(flat),
            np.ones(len(flat)),
            float(special.logsumexp(logs) - math.log(len(logs))) if evidence else float("nan"),
            _evidence_error(found) if evidence else 0.0,
            r_hat=r_hat,
            effective_size={
                one.name: sum(_effective_size(population, place) for population in found)
                for place, one in enumerate(coordinates)
            },
            ends=np.column_stack([flat, heights]).tolist(),
            evaluations=density.evaluations - before[0],
            grams=density.grams - before[1],
        )

    def _from_prior(self, density: LogPosterior, rng: np.random.Generator) -> _Population:
        uniform = rng.random((self.particles, len(density.coordinates)))
        columns = [
            one.quantiles(uniform[:, place]).clip(one.lower, one.upper) for place, one in enumerate(density.coordinates)
        ]
        population = _evaluated(density, np.stack(columns, axis=1))
        exponent = 0.0
        for _ in range(MOST_STEPS):
            step = self._step(population.likelihoods, 1.0 - exponent)
            logs = step * population.likelihoods
            top = float(logs.max())
            if not math.isfinite(top):
                raise ModelError(
                    f"the likelihood is 0 at all {self.particles} draws of the prior: check the values for outliers, "
                    "and the kernel for NaN"
                )
            weights = np.exp(logs - top)
            population.log_evidence += top + math.log(float(weights.mean()))
            population.variance += float(weights.var() / weights.mean() ** 2) / self.particles
            population.resample(weights, rng)
            exponent = min(1.0, exponent + step)
            self._move(density, population, exponent, rng, self.moves)
            if exponent == 1.0:
                return population
        raise ModelError(f"particles have not reached the posterior density in {MOST_STEPS} steps: raise particles")

    def _gone_on(
        self, density: LogPosterior, starts: Sequence[Sequence[float]], rng: np.random.Generator
    ) -> list[_Population] | None:
        """The particles of the last posterior, weighed and moved; `None` where there are none, or too few count."""
        size = len(density.coordinates)
        if len(starts) != self.particles * self.populations or any(len(row) != size + 1 for row in starts):
            return None
        found = []
        for rows in np.array(starts).reshape(self.populations, self.particles, size + 1):
            population = _evaluated(density, rows[:, :size].copy())
            logs = population.priors + population.likelihoods - rows[:, size]
            if not np.isfinite(logs.max()):
                return None
            weights = np.exp(logs - logs.max())
            if weights.sum() ** 2 / (weights**2).sum() < ENOUGH * self.particles:
                return None
            population.resample(weights, rng)
            self._move(density, population, 1.0, rng, self.moves)
            found.append(population)
        return found

    def _step(self, likelihoods: Numbers, rest: float) -> float:
        """By how much the exponent may grow so that the effective number stays."""

        def left(step: float) -> float:
            logs = step * likelihoods
            weights = np.exp(logs - logs.max())
            return float(weights.sum() ** 2 / (weights**2).sum())

        wanted = self.share * len(likelihoods)
        if not np.isfinite(likelihoods.max()) or left(rest) >= wanted:
            return rest
        lower, upper = 0.0, rest
        for _ in range(BISECTIONS):
            middle = 0.5 * (lower + upper)
            lower, upper = (middle, upper) if left(middle) >= wanted else (lower, middle)
        # Where the likelihood is 0 at more than that share, any step leaves fewer.
        return lower if lower > 1e-9 * rest else 1e-3 * rest

    def _move(
        self, density: LogPosterior, population: _Population, exponent: float, rng: np.random.Generator, sweeps: int
    ) -> None:
        def tempered(point: Numbers) -> float:
            prior, likelihood = density.parts(point)
            return prior + exponent * likelihood

        for place, point in enumerate(population.points):
            height = float(population.priors[place] + exponent * population.likelihoods[place])
            before = point.copy()
            for _ in range(sweeps):
                height = sweep_of(tempered, density.coordinates, point, height, rng, self.directions)
            if not np.array_equal(point, before):
                population.priors[place], population.likelihoods[place] = density.parts(point)


def _evaluated(density: LogPosterior, points: Numbers) -> _Population:
    parts = np.array([density.parts(point) for point in points])
    return _Population(points, parts[:, 0], parts[:, 1])


def _effective_size(population: _Population, place: int) -> float:
    """Independent draws that estimate the mean of a coordinate as well, by the particles' first ancestors."""
    values = population.points[:, place]
    centred = values - values.mean()
    count = len(values)
    error = float((np.bincount(population.eves, centred, count) ** 2).sum()) / count**2
    return float(count) if error == 0.0 else float(np.clip((centred**2).mean() / error, 1.0, count))


def _evidence_error(populations: Sequence[_Population]) -> float:
    """Standard error of the logarithm of the mean over populations: see the module."""
    return math.sqrt(sum(population.variance for population in populations)) / len(populations)
