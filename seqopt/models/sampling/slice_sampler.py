"""Slice sampling, one coordinate at a time or along random directions.

References:
    Neal, R. M. (2003). Slice sampling. Annals of Statistics 31, 705-767: stepping out (figure 3) and shrinkage
        (figure 5).
    Murray, I., Adams, R. P. (2010). Slice sampling covariance hyperparameters of latent Gaussian models. NeurIPS.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias, get_args

import numpy as np

from seqopt.errors import InputError, ModelError
from seqopt.models.sampling.bridge import log_evidence
from seqopt.models.sampling.density import LogPosterior
from seqopt.models.sampling.diagnostics import effective_sample_size, split_r_hat
from seqopt.models.sampling.parameters import Coordinate, Numbers
from seqopt.models.sampling.protocols import GOOD_R_HAT, ParameterSample
from seqopt.utils.config import Configurable

STEPS = 32
"""Largest number of steps by which a slice is widened."""

SHRINKS = 200
"""Shrinkages after which a coordinate stays where it is: the slice is then as narrow as rounding."""

Directions: TypeAlias = Literal["coordinates", "random"]
"""Along which lines chains move."""

TRIES = 100
"""Random places at which a chain tries to begin."""


class SliceSampler(Configurable):
    """Slice sampling in the coordinates of a `LogPosterior`, with stepping out and shrinkage.

    The first chain begins at the kernel's own parameters and at the modes of the priors of output scale and noise,
    others at random places; in later fits each goes on from where it ended. A sweep moves all coordinates once, or
    makes as many moves along random directions, in units of how far each coordinate may be expected to move. As long as
    a split R-hat exceeds 1.05, chains are continued, twice as long each time.

    A coordinate takes some 6 evaluations of the density: with d kernel parameters a first fit needs about
    6 d (burn_in + draws thin) chains Gram matrices, 1,800 d by default, and a factorisation for each.

    Args:
        draws: Draws kept of each chain.
        burn_in: Sweeps before them in the first fit; a fifth of them in later fits.
        thin: Sweeps for each draw kept.
        chains: Number of chains, at least 2, so that they can be compared.
        extensions: How often chains that disagree are continued, the number of draws doubled each time.
        proposals: Points at which the density is evaluated for a marginal likelihood, see
            `seqopt.models.sampling.bridge`.
        directions: ``"coordinates"`` or ``"random"``.

    Raises:
        InputError: If a number is too small, or for other directions.

    Example:
        >>> from seqopt.encoding import Encoder
        >>> from seqopt.kernels import NgramKernel
        >>> encoded = Encoder().encode(["AAB", "ABB", "BA", "BBB"])
        >>> density = LogPosterior(NgramKernel(2), encoded, np.array([-1.0, 0.0, 0.2, 1.0]), np.zeros(4))
        >>> sample = SliceSampler(draws=20, burn_in=10).sample(density, np.random.default_rng(0))
        >>> sorted(sample.values), len(sample.weights) >= 40
        (['lengthscale', 'noise_variance', 'outputscale'], True)
    """

    def __init__(
        self,
        draws: int = 100,
        *,
        burn_in: int = 50,
        thin: int = 1,
        chains: int = 2,
        extensions: int = 2,
        proposals: int = 300,
        directions: Directions = "coordinates",
    ) -> None:
        if directions not in get_args(Directions):
            raise InputError(f"directions is {directions!r}; expected one of {', '.join(get_args(Directions))}")
        least = {"draws": 8, "burn_in": 0, "thin": 1, "chains": 2, "extensions": 0, "proposals": 10}
        given = {
            "draws": draws,
            "burn_in": burn_in,
            "thin": thin,
            "chains": chains,
            "extensions": extensions,
            "proposals": proposals,
        }
        for name, number in given.items():
            if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < least[name]:
                raise InputError(f"{name} is {number!r}; it must be an integer of at least {least[name]}")
        self.draws = int(draws)
        self.burn_in = int(burn_in)
        self.thin = int(thin)
        self.chains = int(chains)
        self.extensions = int(extensions)
        self.proposals = int(proposals)
        self.directions: Directions = directions

    def __repr__(self) -> str:
        along = "" if self.directions == "coordinates" else f", directions={self.directions!r}"
        return (
            f"SliceSampler(draws={self.draws}, burn_in={self.burn_in}, thin={self.thin}, chains={self.chains}{along})"
        )

    def sample(
        self,
        density: LogPosterior,
        rng: np.random.Generator,
        starts: Sequence[Sequence[float]] = (),
        *,
        evidence: bool = False,
    ) -> ParameterSample:
        """All draws of all chains, equally weighted; see `Sampler.sample`.

        Raises:
            ModelError: If the density is 0 wherever a chain tried to begin.
        """
        before = density.evaluations, density.grams
        coordinates = density.coordinates
        warm = len(starts) == self.chains and all(len(start) == len(coordinates) for start in starts)
        burn_in = self.burn_in // 5 if warm else self.burn_in
        with density.sampling():
            ends: list[Numbers] = []
            for number in range(self.chains):
                start = _start(density, rng, np.array(starts[number]) if warm else None, first=number == 0)
                ends.append(self._chain(density, start, burn_in, 0, rng)[1])
            kept = np.empty((self.chains, 0, len(coordinates)))
            for extension in range(self.extensions + 1):
                count = self.draws if extension == 0 else kept.shape[1]
                parts = []
                for number in range(self.chains):
                    part, ends[number] = self._chain(density, ends[number], 0, count, rng)
                    parts.append(part)
                kept = np.concatenate([kept, np.stack(parts)], axis=1)
                r_hat = {found.name: split_r_hat(kept[..., place]) for place, found in enumerate(coordinates)}
                if max(r_hat.values()) <= GOOD_R_HAT:
                    break
            marginal = log_evidence(density, kept, self.proposals, rng) if evidence else (float("nan"), 0.0)
        points = kept.reshape(-1, len(coordinates))
        return ParameterSample(
            density.values(points),
            np.ones(len(points)),
            *marginal,
            r_hat=r_hat,
            effective_size={
                found.name: effective_sample_size(kept[..., place]) for place, found in enumerate(coordinates)
            },
            ends=[end.tolist() for end in ends],
            evaluations=density.evaluations - before[0],
            grams=density.grams - before[1],
        )

    def _chain(
        self, density: LogPosterior, start: Numbers, burn_in: int, count: int, rng: np.random.Generator
    ) -> tuple[Numbers, Numbers]:
        """``count`` draws after ``burn_in`` sweeps, and where the chain ends."""
        point = start.copy()
        height = density(point)
        kept = np.empty((count, len(point)))
        for sweep in range(burn_in + count * self.thin):
            height = sweep_of(density, density.coordinates, point, height, rng, self.directions)
            number, left = divmod(sweep - burn_in + 1, self.thin)
            if sweep >= burn_in and left == 0:
                kept[number - 1] = point
        return kept, point


def _start(density: LogPosterior, rng: np.random.Generator, last: Numbers | None, *, first: bool) -> Numbers:
    """Where a chain begins: where it ended the last time, the kernel's parameters, or somewhere."""
    if last is not None and np.isfinite(density(last)):
        return last
    own = np.array([coordinate.start for coordinate in density.coordinates])
    if first and np.isfinite(density(own)):
        return own
    for _ in range(TRIES):
        point = np.array([_anywhere(coordinate, rng) for coordinate in density.coordinates])
        if np.isfinite(density(point)):
            return point
    raise ModelError(
        f"the posterior density is 0 at {TRIES} places where a chain tried to begin: check the values for outliers and "
        "the kernel for NaN"
    )


def _anywhere(coordinate: Coordinate, rng: np.random.Generator) -> float:
    if coordinate.upper - coordinate.lower <= 8 * coordinate.width:
        return float(rng.uniform(coordinate.lower, coordinate.upper))
    found = coordinate.start + coordinate.width * rng.standard_normal()
    return float(np.clip(found, coordinate.lower, coordinate.upper))


def sweep_of(
    density: Callable[[Numbers], float],
    coordinates: Sequence[Coordinate],
    point: Numbers,
    height: float,
    rng: np.random.Generator,
    directions: Directions = "coordinates",
) -> float:
    """Move a point as often as it has coordinates.

    Args:
        density: Log density at a point.
        coordinates: Widths and bounds.
        point: Where it is, d; it is changed.
        height: Log density there.
        rng: For all that is random.
        directions: See `SliceSampler`.

    Returns:
        The log density where it is then.
    """
    for place, coordinate in enumerate(coordinates):
        if directions == "random":
            height = _move_along(density, coordinates, point, height, rng)
            continue

        def at(number: float, place: int = place) -> float:
            point[place] = number
            return density(point)

        bounds = coordinate.lower, coordinate.upper
        point[place], height = _moved(at, float(point[place]), coordinate.width, bounds, height, rng)
    return height


def _move_along(
    density: Callable[[Numbers], float],
    coordinates: Sequence[Coordinate],
    point: Numbers,
    height: float,
    rng: np.random.Generator,
) -> float:
    """Move a point along a random direction."""
    normal = rng.standard_normal(len(point))
    direction = normal / np.linalg.norm(normal) * np.array([one.width for one in coordinates])
    here = point.copy()
    # How far the line stays within all bounds.
    lower, upper = -math.inf, math.inf
    for number, step, one in zip(here, direction, coordinates, strict=True):
        if step != 0.0:
            ends = sorted(((one.lower - number) / step, (one.upper - number) / step))
            lower, upper = max(lower, ends[0]), min(upper, ends[1])

    def at(distance: float) -> float:
        np.clip(here + distance * direction, [c.lower for c in coordinates], [c.upper for c in coordinates], out=point)
        return density(point)

    distance, height = _moved(at, 0.0, 1.0, (lower, upper), height, rng)
    if distance == 0.0:
        point[:] = here
    return height


def _moved(
    at: Callable[[float], float],
    here: float,
    width: float,
    bounds: tuple[float, float],
    height: float,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """A new place on a line, and the log density there.

    Args:
        at: Goes to a place, and returns the log density there.
        here: Where it is.
        width: Expected width of a slice.
        bounds: Beyond which there is nothing.
        height: Log density at the place where it is.
        rng: For all that is random.
    """
    level = height - rng.exponential()

    def above(number: float) -> bool:
        return bounds[0] < number < bounds[1] and at(number) > level

    # Neal (2003), figure 3: an interval of the expected width at random around the point, widened to the slice's ends.
    left = here - width * rng.random()
    right = left + width
    to_the_left = int(rng.integers(STEPS))
    for _ in range(to_the_left):
        if not above(left):
            break
        left -= width
    for _ in range(STEPS - 1 - to_the_left):
        if not above(right):
            break
        right += width
    left, right = max(left, bounds[0]), min(right, bounds[1])
    # Figure 5: points outside the slice shrink the interval.
    for _ in range(SHRINKS):
        number = rng.uniform(left, right)
        found = at(number)
        if found > level:
            return number, found
        if number < here:
            left = number
        else:
            right = number
    return here, height
