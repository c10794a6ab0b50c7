"""Posteriors of parameters on a grid: the prior is discrete, and the posterior exact.

References:
    Rasmussen, C. E. and Williams, C. K. I. (2006). Gaussian Processes for Machine Learning, sections 5.2 and 5.4.
    Snoek, J., Larochelle, H. and Adams, R. P. (2012). Practical Bayesian optimization of machine learning algorithms.
        NeurIPS, section 3.2.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import gpytorch
import numpy as np
from scipy import special

from seqopt.encoding import Encoded, EncodedStrings, Encoder
from seqopt.errors import InputError
from seqopt.kernels import SubsequenceKernel
from seqopt.kernels.letters import OfLetters
from seqopt.models.covariance import FloatArray
from seqopt.models.sampling.censored import CensoredTables
from seqopt.models.sampling.density import NOISE_PRIOR, SCALE_PRIOR, LogPosterior
from seqopt.models.sampling.parameters import NOISE_VARIANCE, OUTPUTSCALE, Numbers
from seqopt.models.sampling.protocols import ParameterSample
from seqopt.utils.config import Configurable

# The decays lie closest at small gap and large match decays, where short patterns are. This spacing is part of the
# prior. It was chosen on pattern tasks of the BOSS experiments, with seeds that `seqopt bench boss` does not report.
GAP_DECAYS = (0.01, 0.04, 0.1, 0.2, 0.35, 0.55, 0.8, 1.0)
MATCH_DECAYS = (0.2, 0.4, 0.55, 0.7, 0.8, 0.9, 1.0)
OUTPUT_SCALES = tuple(np.exp(np.linspace(-2.0, 2.5, 7)).tolist())
NOISE_VARIANCES = tuple(np.exp(np.linspace(-9.0, 0.0, 8)).tolist())
"""The grid. Scales and variances are those of standardised values."""

DECAYS = {"gap_decay": GAP_DECAYS, "match_decay": MATCH_DECAYS}
"""The grid of a `seqopt.kernels.SubsequenceKernel`."""

LONG = 250
"""Symbols of a string on average, or letters for a kernel on these, beyond which that grid has every second gap decay,
and of these only the most probable one is kept: each costs a dynamic program, and each that is among the draws one for
every string that a search looks at."""

QUANTILES = 7
"""Values of each parameter of a kernel that has no grid of its own, nor is given one."""

LARGEST = 1_000
"""Most Gram matrices of such a grid."""


class GridSampler(Configurable):
    r"""Points of a grid, weighted by their posterior probabilities.

    Each point of the grid of the kernel's parameters costs a Gram matrix and one eigendecomposition K = U diag(e) U^T;
    all output scales a and noise variances s2 follow from it,

    .. math:: \log p(y) = -\tfrac12 \sum_i \left[ (U^T y)_i^2 / (a e_i + s2) + \log(a e_i + s2) + \log 2\pi \right],

    likewise with a constant mean that is integrated out. The prior of a point is in proportion to the density there of
    the priors per unit of the coordinates; it is normalised over the grid. While the noise that all values share is
    learned, each value counts as having the mean of the known noise variances. Where values are censored, the formula
    is for the exact ones, and log p of the limits given these is added (`seqopt.models.sampling.censored`).

    For a sub-sequence kernel the grid is one of 8 gap decays and 7 match decays, unless another is given; for strings
    of more than 250 symbols on average it has every second gap decay, compared in single precision, and only points of
    the most probable one are returned, unless ``priors`` has some. Each gap decay costs one dynamic program over the
    strings (two for the pairs and for themselves), and again for those that are predicted. The priors of both decays
    are then N(0.5, 0.5), whatever the kernel's own are. `probabilities` shows the prior, and ``priors`` changes it. A
    kernel without parameters needs no grid.

    Args:
        kernel: Values of each of the kernel's parameters, by name.
        outputscales: Output scales.
        noise_variances: Noise variances.
        priors: For parameters whose prior is to be another one, by name: a positive number for each value of their
            grid, in proportion to its prior probability.

    Raises:
        InputError: For an empty grid, or numbers that are not positive. When sampling: if the kernel has no
            parameter of a name, or parameters and no grid, or there are not as many numbers as values.

    Example:
        >>> from seqopt.encoding import Encoder
        >>> from seqopt.kernels import NgramKernel
        >>> encoded = Encoder().encode(["AAB", "ABB", "BA", "BBB"])
        >>> density = LogPosterior(NgramKernel(2), encoded, np.array([-1.0, 0.0, 0.2, 1.0]), np.zeros(4))
        >>> sample = GridSampler({"lengthscale": [1.0, 2.0, 4.0]}).sample(density, np.random.default_rng(0))
        >>> len(sample.weights)  # times 7 output scales and 8 noise variances
        168
    """

    def __init__(
        self,
        kernel: Mapping[str, Sequence[float]] | None = None,
        *,
        outputscales: Sequence[float] = OUTPUT_SCALES,
        noise_variances: Sequence[float] = NOISE_VARIANCES,
        priors: Mapping[str, Sequence[float]] | None = None,
    ) -> None:
        self.kernel = None if kernel is None else {name: tuple(map(float, grid)) for name, grid in kernel.items()}
        self.outputscales = tuple(map(float, outputscales))
        self.noise_variances = tuple(map(float, noise_variances))
        for name, grid in {OUTPUTSCALE: self.outputscales, NOISE_VARIANCE: self.noise_variances}.items():
            if not grid or not all(0.0 < value < np.inf for value in grid):
                raise InputError(f"the grid of {name} is {grid}; expected at least one positive number")
        for name, grid in (self.kernel or {}).items():
            if not grid or not np.isfinite(grid).all():
                raise InputError(f"the grid of {name} is {grid}; expected at least one finite number")
        self.priors = None if priors is None else {name: tuple(map(float, own)) for name, own in priors.items()}
        for name, own in (self.priors or {}).items():
            if not all(0.0 < number < np.inf for number in own):
                raise InputError(f"the prior of {name} is {own}; expected a positive number for each value of its grid")

    def __repr__(self) -> str:
        return "GridSampler()" if self.kernel is None else f"GridSampler({self.kernel})"

    def sample(
        self,
        density: LogPosterior,
        rng: np.random.Generator,
        starts: Sequence[Sequence[float]] = (),
        *,
        evidence: bool = False,
    ) -> ParameterSample:
        """Points of the grid, weighted; see `Sampler.sample`. Nothing is random, and ``starts`` are not needed."""
        grids, prior = self.prior(density)
        table = self.log_likelihoods(density, grids, prior) + prior
        axes = np.meshgrid(*(np.array(grid) for grid in grids.values()), indexing="ij")
        kept = np.ones(table.shape, dtype=np.bool_)
        if self._is_coarse(density):
            place = list(grids).index("gap_decay")
            by_decay = special.logsumexp(table, axis=tuple(axis for axis in range(table.ndim) if axis != place))
            kept = axes[place] == grids["gap_decay"][int(np.argmax(by_decay))]
        return ParameterSample(
            {name: axis[kept] for name, axis in zip(grids, axes, strict=True)},
            np.exp(table[kept] - table.max()),
            float(special.logsumexp(table) - special.logsumexp(prior)) if evidence else float("nan"),
            evaluations=table.size,
            grams=int(np.prod(table.shape[:-2], dtype=int)),
        )

    def grids(self, density: LogPosterior) -> dict[str, tuple[float, ...]]:
        """The values of every parameter, those of the kernel first."""
        names = density.parameters.names
        own = self.kernel
        if own is None:
            if not _has_decays(density) and QUANTILES ** len(names) > LARGEST:
                raise InputError(
                    f"{type(density.kernel).__name__} has {len(names)} parameters, {', '.join(names)}, too many for a "
                    "grid: give GridSampler values of some of them, or use a SliceSampler"
                )
            own = self._decays(density) if _has_decays(density) else _quantiles(density)
        for name in own:
            if name not in names:
                raise InputError(
                    f"the grid has {name}, but the parameters of {type(density.kernel).__name__} are "
                    f"{', '.join(names) or 'none'}"
                )
        return {**own, OUTPUTSCALE: self.outputscales, NOISE_VARIANCE: self.noise_variances}

    def _is_coarse(self, density: LogPosterior) -> bool:
        """Whether strings are long, and nobody chose gap decays or their probabilities."""
        chosen = self.kernel is not None or "gap_decay" in (self.priors or {})
        return not chosen and _has_decays(density) and _length(density) > LONG

    def _decays(self, density: LogPosterior) -> dict[str, tuple[float, ...]]:
        return DECAYS | {"gap_decay": GAP_DECAYS[1::2]} if self._is_coarse(density) else DECAYS

    def probabilities(
        self, kernel: gpytorch.kernels.Kernel, encoded: Encoded | None = None
    ) -> dict[str, dict[float, float]]:
        """The prior probability of every value of every parameter: what ``priors`` changes.

        Args:
            kernel: The kernel.
            encoded: The strings that it is to be fitted to: priors of some kernels adapt to them.

        Raises:
            InputError: As when sampling.

        Example:
            >>> from seqopt.kernels import TanimotoKernel
            >>> shown = GridSampler(outputscales=[0.5, 1.0, 2.0]).probabilities(TanimotoKernel())
            >>> {value: round(probability, 3) for value, probability in shown["outputscale"].items()}
            {0.5: 0.306, 1.0: 0.389, 2.0: 0.306}
        """
        rows = Encoder().encode([""]) if encoded is None else encoded
        # The prior of a grid depends on no value, and on strings only where the kernel adapts to them.
        density = LogPosterior(kernel, rows, np.zeros(len(rows)), np.zeros(len(rows)), adapt=encoded is not None)
        grids, logs = self.prior(density)
        found = {}
        for axis, (name, grid) in enumerate(grids.items()):
            own = special.logsumexp(logs, axis=tuple(other for other in range(logs.ndim) if other != axis))
            found[name] = dict(zip(grid, special.softmax(own).tolist(), strict=True))
        return found

    def prior(self, density: LogPosterior) -> tuple[dict[str, tuple[float, ...]], Numbers]:
        """The grid, and the logarithm of the prior on it, up to a constant."""
        grids = self.grids(density)
        coordinates = {found.name: found for found in density.coordinates}
        table = np.zeros(tuple(map(len, grids.values())))
        own = self.priors or {}
        for name, numbers in own.items():
            if name not in grids:
                raise InputError(f"the prior of {name} is for no parameter of the grid: {', '.join(grids)}")
            if len(numbers) != len(grids[name]):
                raise InputError(
                    f"the prior of {name} has {len(numbers)} numbers, and its grid {len(grids[name])} values: "
                    f"{', '.join(f'{value:g}' for value in grids[name])}"
                )
        for axis, (name, grid) in enumerate(grids.items()):
            points = np.array(grid)
            if name in own:
                logs = np.log(own[name])
            elif name == OUTPUTSCALE:
                logs = -0.5 * ((np.log(points) - SCALE_PRIOR[0]) / SCALE_PRIOR[1]) ** 2
            elif name == NOISE_VARIANCE:
                logs = -0.5 * ((np.log(points) - NOISE_PRIOR[0]) / NOISE_PRIOR[1]) ** 2
            elif self.kernel is None:
                # Quantiles of a prior share its mass equally.
                logs = -0.5 * ((points - 0.5) / 0.5) ** 2 if _has_decays(density) else np.zeros(len(points))
            else:
                found = coordinates[name]
                logs = np.array([found.log_prior(float(point)) for point in _coordinates(points, found.logarithmic)])
            table += logs.reshape(-1, *[1] * (table.ndim - axis - 1))
        return grids, table

    def log_likelihoods(
        self, density: LogPosterior, grids: Mapping[str, Sequence[float]], prior: Numbers | None = None
    ) -> Numbers:
        """Log p(y) at all points of the grid, in the order of ``grids``.

        Where values are censored it is minus infinity at points of next to no posterior probability, which were not
        looked at. The logarithm of the prior is only used to tell these; by default it is flat.
        """
        scales, noises = np.array(self.outputscales), np.array(self.noise_variances)
        table = np.empty(tuple(map(len, grids.values())))
        prior = np.zeros(table.shape) if prior is None else prior
        limited = CensoredTables(density, scales, noises) if density.sides is not None else None
        if _has_decays(density) and isinstance(density.encoded, EncodedStrings):
            # Rounding errors of single precision are far below the smallest noise of the grid.
            dtype = np.float32 if self._is_coarse(density) else np.float64
            for place, gap in enumerate(grids["gap_decay"]):
                assert isinstance(density.kernel, SubsequenceKernel)
                grams = density.kernel.sums(density.encoded, grids["match_decay"], gap, dtype)
                if limited is not None:
                    for match, gram in enumerate(_normalised(grams)):
                        table[place, match] = limited.table(gram, prior[place, match])
                    continue
                if density.mean_std > 0.0:
                    table[place] = [density.table_of(gram, scales, noises) for gram in _normalised(grams)]
                    continue
                table[place] = _eigen_table(grams, density.targets, scales, noises + float(density.known.mean()))
            return table
        values = dict(zip(density.parameters.names, density.parameters.values, strict=True))
        names = list(grids)[:-2]
        for places in itertools.product(*(range(size) for size in table.shape[:-2])):
            values |= {name: grids[name][place] for name, place in zip(names, places, strict=True)}
            if limited is not None:
                table[places] = limited.table(density.gram(list(values.values())), prior[places])
                continue
            table[places] = density.table(list(values.values()), scales, noises)
        return table


def _quantiles(density: LogPosterior) -> dict[str, tuple[float, ...]]:
    """The middles, by prior probability, of equally probable parts of each of the kernel's parameters."""
    middles = (np.arange(QUANTILES) + 0.5) / QUANTILES
    own = density.coordinates[:-2]
    return {found.name: tuple(found.value(found.quantiles(middles)).tolist()) for found in own}


def _length(density: LogPosterior) -> float:
    """Symbols of a string on average, or letters for a kernel on these."""
    strings = density.encoded
    if isinstance(strings, EncodedStrings) and isinstance(density.kernel, OfLetters):
        strings = density.kernel.spelt(strings)
    if not isinstance(strings, EncodedStrings) or not len(strings):
        return 0.0
    return float(strings.lengths.mean())


def _has_decays(density: LogPosterior) -> bool:
    return isinstance(density.kernel, SubsequenceKernel) and density.kernel.normalize


def _coordinates(points: Numbers, logarithmic: bool) -> Numbers:
    return np.log(points) if logarithmic else points


def _normalised(grams: FloatArray) -> FloatArray:
    own = np.diagonal(grams, axis1=1, axis2=2)
    with np.errstate(divide="ignore"):
        roots = np.where(own > 0, own**-0.5, 0.0)
    normalized: FloatArray = grams * roots[:, :, None] * roots[:, None, :]
    return normalized


def _eigen_table(grams: FloatArray, targets: Numbers, scales: Numbers, noises: Numbers) -> Numbers:
    """Log marginal likelihoods, M x scales x noises, of unnormalised Gram matrices M x n x n."""
    values, vectors = np.linalg.eigh(_normalised(grams))
    projected = np.einsum("mij,i->mj", vectors, targets) ** 2
    variances = scales[:, None, None] * values.clip(min=0.0)[:, None, None, :] + noises[:, None]
    quadratic: Numbers = -0.5 * (projected[:, None, None] / variances + np.log(2 * np.pi * variances)).sum(-1)
    return quadratic
