"""Gaussian-process surrogates whose parameters are integrated out, over one kernel or several.

Model: standardised values = c + f(s) + noise, f ~ GP(0, outputscale * k). Acquisition functions are averaged over draws
of the parameters from their posterior: with few evaluations many parameters explain them, and a point estimate is
overconfident. Which of several kernels k is one more parameter, whose posterior is in proportion to prior times
marginal likelihood p(y | k).

Draws are taken by systematic resampling from the points that a sampler finds (`seqopt.models.sampling`), so a few of
them represent these well: equally spaced places, with one random offset, in the cumulated weights.

References:
    Rasmussen, C. E. and Williams, C. K. I. (2006). Gaussian Processes for Machine Learning, sections 5.2 and 5.4.
    Snoek, J., Larochelle, H. and Adams, R. P. (2012). Practical Bayesian optimization of machine learning algorithms.
        NeurIPS, section 3.2.
"""

from __future__ import annotations

import logging
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeVar

import gpytorch
import numpy as np
import numpy.typing as npt
import torch
from scipy import special

from seqopt.data.query import targets_of
from seqopt.encoding import (
    Alphabet,
    CharacterTokenizer,
    Encoded,
    Encoder,
    FeatureEncoder,
    JointEncoder,
    StringEncoder,
    Tokenizer,
)
from seqopt.encoding.encoded import EncodedStrings
from seqopt.encoding.fields import FieldEncoder, Fields
from seqopt.errors import InputError
from seqopt.kernels import (
    HammingKernel,
    HelixKernel,
    LetterHammingKernel,
    LetterNgramKernel,
    MotifKernel,
    NgramKernel,
    SubsequenceKernel,
    bind_fields,
    bind_symbols,
)
from seqopt.kernels.letters import OfLetters
from seqopt.models.censoring import Sides, checked_sides, telling
from seqopt.models.checks import checked_noise, checked_values, differ
from seqopt.models.covariance import Evaluator, KernelEvaluator, StackedEvaluator
from seqopt.models.gaussian import GaussianSurrogate
from seqopt.models.gp_state import BatchedGPState
from seqopt.models.levels import LevelNoise, Levels
from seqopt.models.prior_means import PriorMean
from seqopt.models.sampling import (
    GOOD_R_HAT,
    GridSampler,
    KernelParameters,
    LogPosterior,
    ModeSampler,
    MotifSampler,
    ParameterSample,
    Sampler,
    SliceSampler,
)
from seqopt.models.sampling.density import NOISE_RATIO, ratio_name
from seqopt.models.sampling.parameters import MEAN, NOISE_VARIANCE, OUTPUTSCALE, Numbers
from seqopt.models.stacking import (
    cross_fitted_densities,
    independent_densities,
    leave_one_out_densities,
    stacking_weights,
)
from seqopt.spaces import PoolSpace, Space
from seqopt.utils.config import Configurable
from seqopt.utils.parameter_names import KERNELS

logger = logging.getLogger(__name__)

T = TypeVar("T")

ALWAYS_REFITTED = 100
"""Number of training strings up to which every fit draws parameters anew."""

MOVED = 0.2
"""By how many of the values' standard deviations their mean, or that itself, moves before parameters are drawn anew."""

OF_ALL = (OUTPUTSCALE, NOISE_VARIANCE, MEAN)
"""Parameters that do not belong to a kernel."""

GAP_DECAY = "gap_decay"
DECAYS = {GAP_DECAY, "match_decay"}

MOST_SHOWN = 8
"""Numbers of one parameter of a kernel that `FullyBayesianGP.hyperparameters` gives one by one."""

OF_DISTANCES = (NgramKernel, HammingKernel, LetterNgramKernel, LetterHammingKernel, HelixKernel)
"""Kernels whose draws differ in a lengthscale only: distances are computed once for all of them."""

PER_GAP_DECAY = 3
"""Draws of a sub-sequence kernel that share a gap decay: each gap decay costs a dynamic program for every string that a
search looks at."""


@dataclass(frozen=True)
class KernelDiagnostics:
    """How the parameters of one kernel were drawn, and what weighs for it.

    Attributes:
        kernel: The kernel, as text.
        sampler: The sampler, as text.
        weight: Of the kernel among all; 1 for the only one.
        log_evidence: Logarithm of its marginal likelihood for standardised values; NaN where it was not needed.
        log_evidence_error: Standard error of that.
        r_hat: Split R-hat by parameter (Gelman et al. 2013, not rank-normalised); empty for a grid.
        effective_size: Effective number of draws by parameter; likewise.
        draws: Points that the sampler found.
        evaluations: Evaluations of the density.
        grams: Gram matrices among them.
    """

    kernel: str
    sampler: str
    weight: float
    log_evidence: float
    log_evidence_error: float
    r_hat: dict[str, float]
    effective_size: dict[str, float]
    draws: int
    evaluations: int
    grams: int

    @property
    def warning(self) -> str:
        """What to know where chains or particles have not mixed; empty where they have."""
        bad = [f"{name} ({number:.2f})" for name, number in self.r_hat.items() if not number <= GOOD_R_HAT]
        if not bad:
            return ""
        return (
            f"draws of the parameters of {self.kernel} have not mixed: split R-hat of {', '.join(bad)} exceeds "
            f"{GOOD_R_HAT:g} after {self.draws} draws. Predictions may depend on the seed: raise draws (or particles) "
            f"or extensions of the {self.sampler.partition('(')[0]}"
        )

    def to_json(self) -> dict[str, Any]:
        """As JSON values; what is not known is `None`."""
        return {name: None if value != value else value for name, value in asdict(self).items()}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> KernelDiagnostics:
        """From what `to_json` returned."""
        known: dict[str, Any] = {name: math.nan if value is None else value for name, value in values.items()}
        return cls(**known)


def default_sampler(kernel: gpytorch.kernels.Kernel) -> Sampler:
    """A `GridSampler` for a sub-sequence kernel and for kernels without parameters, a `MotifSampler` for a motif; a
    `SliceSampler` otherwise.

    Example:
        >>> from seqopt.kernels import MotifKernel, NgramKernel, TanimotoKernel
        >>> default_sampler(TanimotoKernel()), default_sampler(NgramKernel())
        (GridSampler(), SliceSampler(draws=100, burn_in=50, thin=1, chains=2))
    """
    if isinstance(kernel, MotifKernel):
        return MotifSampler()
    learned = {name for name, parameter in kernel.named_parameters() if parameter.requires_grad}
    on_grid = isinstance(kernel, SubsequenceKernel) and kernel.normalize
    on_grid = on_grid and learned == {f"raw_{name}" for name in DECAYS}
    return GridSampler() if on_grid or not learned else SliceSampler()


class FullyBayesianGP(GaussianSurrogate, Configurable):
    r"""Gaussian process over strings, averaged over draws from the posterior of its parameters.

    (Over one point of it where the sampler of a kernel is a `seqopt.models.sampling.ModeSampler`.)

    Its posteriors are mixtures over the draws: `conditioned`, which searches use, keeps the draws apart in a leading
    dimension; `predict` and `posterior` give the moments of the mixture.

    Priors are those of `seqopt.models.StringGP`: log-normal for the output scale, (0, 1), and the noise variance,
    (-4, 1), of standardised values, per unit of their logarithms, and those that the kernel has registered; see
    `seqopt.models.sampling.parameters` for where it has none. The constant mean is normal with standard deviation
    ``mean_std``: it is integrated out while the others are drawn, then drawn from its own distribution given them.

    With several kernels, each is sampled by itself (those that compare strings of one length only take no part in a fit
    to others), and draws are shared out by the posterior probabilities

    .. math:: p(k \mid y) \propto p(k)\, p(y \mid k),

    where the marginal likelihood is exact on a grid, and estimated by bridge sampling for chains (error of its
    logarithm: see `diagnostics`), or by stacking (``weights="stacking"``): the weights with which the kernels together
    would have predicted every value best from the others (`seqopt.models.stacking`), which also find that two kernels
    are better than one. Where values are censored, kernels are weighed by marginal likelihood in either case, and
    those with a `seqopt.models.sampling.ModeSampler`, which has none, take no part beside others.

    Stacking can also weigh the hypothesis that strings tell nothing of each other's values, with the prior probability
    ``null``: its weight is `doubt`. It has no part in predictions, but `seqopt.strategies.ModelBased` draws as large a
    share of its strings at random.

    Up to 100 strings, every fit draws anew, beyond only when the data have grown by ``refit_growth``, or when the mean
    or the standard deviation of the values has moved by a fifth of the latter. What that costs
    is said by the samplers: `seqopt.models.sampling.GridSampler` and `seqopt.models.sampling.SliceSampler`.

    Args:
        kernel: The kernel, without output scale and batch shape, or several, which all take what ``encoder`` gives: on
            rows of fields, each names its field (`seqopt.kernels.composite.OnField`). They stay as they are.
            Parameters with ``requires_grad_(False)`` are not sampled. Default: the sub-sequence kernel of order 5.
        sampler: Draws the parameters; one for all kernels, or one for each. Default: `default_sampler` of each.
        prior: Prior probabilities of the kernels, or numbers in proportion. Default: equal.
        weights: How several kernels are weighed: ``"evidence"`` or ``"stacking"``, see above.
        null: Prior probability that strings tell nothing, see above; in [0, 1), with stacking only.
        tokenizer: How strings are split into symbols: a name or a `Tokenizer`. Default: the space's own, or characters
            where there is none.
        encoder: Turns strings into what kernels take, where that is not tokens alone.
        draws: Number of draws.
        refit_growth: See above.
        mean_std: Standard deviation of the prior of the constant mean, of standardised values; with 0 it is 0.
        mean: Prior mean of the values at strings, as of a `seqopt.models.StringGP`, besides that constant. It says what
            strings tell before any is measured, so that none are drawn at random: `doubt` is 0.
        levels: Levels of the context that have noise, mean and scale of their own (`seqopt.models.levels`). The noise
            of the target has the prior above, that of each other level in units of it the prior (0, 1) of its
            logarithm.

    Raises:
        InputError: If ``draws`` < 1, ``refit_growth`` < 0 or ``mean_std`` < 0, there is no kernel or one has a batch
            shape, the numbers of kernels, samplers and probabilities differ, ``weights`` or ``null`` is not as above,
            both ``tokenizer`` and ``encoder`` are given, or ``levels`` with stacking or a sampler other than a
            `SliceSampler`; for several kernels weighed by evidence, with a `ModeSampler`; for a class in place of an
            object; for a `MotifKernel` with another sampler than a `MotifSampler`, within another kernel, or frozen.
            When fitted: if no kernel can take the strings.

    Example:
        >>> from seqopt.kernels import NgramKernel
        >>> rng = np.random.default_rng(0)
        >>> gp = FullyBayesianGP([NgramKernel(), SubsequenceKernel()])
        >>> gp.fit(["AAAA", "AAAT", "TTTA", "TTTT", "TATT"], [0.0, 1.0, 3.0, 4.0, 3.0], rng=rng)
        >>> mean, std = gp.predict(["ATAA", "TTAT"])
        >>> bool(mean[0] < mean[1]), round(sum(found.weight for found in gp.diagnostics), 9)
        (True, 1.0)
    """

    def __init__(
        self,
        kernel: gpytorch.kernels.Kernel | Sequence[gpytorch.kernels.Kernel] | None = None,
        sampler: Sampler | Sequence[Sampler] | None = None,
        *,
        prior: Sequence[float] | None = None,
        weights: Literal["evidence", "stacking"] = "evidence",
        null: float = 0.0,
        tokenizer: str | Tokenizer | None = None,
        encoder: StringEncoder | None = None,
        draws: int = 8,
        refit_growth: float = 0.1,
        mean_std: float = 1.0,
        mean: PriorMean | None = None,
        levels: Levels | None = None,
    ) -> None:
        if isinstance(draws, bool) or not isinstance(draws, int | np.integer) or draws < 1:
            raise InputError(f"draws is {draws!r}; it must be an integer of at least 1")
        if refit_growth < 0:
            raise InputError(f"refit_growth is {refit_growth}; expected 0 (always refit) or more")
        if not 0.0 <= mean_std < math.inf:
            raise InputError(f"mean_std is {mean_std}; expected 0 (a mean of 0) or more")
        if tokenizer is not None and encoder is not None:
            raise InputError("give a tokenizer or an encoder, not both: an encoder has its own tokeniser")
        if weights not in ("evidence", "stacking"):
            raise InputError(f'weights is {weights!r}; expected "evidence" or "stacking"')
        if not 0.0 <= null < 1.0 or (null > 0.0 and weights != "stacking"):
            raise InputError(
                f"null is {null}; expected a probability below 1, and above 0 only with weights='stacking'"
            )
        given = SubsequenceKernel() if kernel is None else kernel
        self._kernels = (
            list(given) if isinstance(given, Iterable) and not isinstance(given, gpytorch.kernels.Kernel) else [given]
        )
        if not self._kernels:
            raise InputError("there is no kernel; give at least one")
        for found in self._kernels:
            if isinstance(found, type):
                raise InputError(f"{found.__name__} is a class: give an object of it, {found.__name__}(...)")
            if not isinstance(found, gpytorch.kernels.Kernel):
                raise InputError(f"{found!r} of type {type(found).__name__} is not a kernel")
            _ = KernelParameters(found).coordinates  # refuses what cannot be sampled
        if sampler is None and levels is not None:
            sampler = SliceSampler()
        self._samplers = _samplers(sampler, self._kernels)
        others = GridSampler | ModeSampler | MotifSampler
        if levels is not None and (weights == "stacking" or any(isinstance(one, others) for one in self._samplers)):
            raise InputError("noise of levels is sampled by a SliceSampler, and kernels are weighed by evidence then")
        modes = any(isinstance(one, ModeSampler) for one in self._samplers)
        if modes and len(self._kernels) > 1 and weights == "evidence":
            raise InputError('a ModeSampler gives no evidence to weigh kernels by: choose weights="stacking"')
        for one, drawn_by in zip(self._kernels, self._samplers, strict=True):
            _check_motif(one, drawn_by)
        self._prior: Numbers = _probabilities(prior, len(self._kernels))
        self._weights = weights
        self._null = float(null)
        self._doubt = 0.0
        self._said: tuple[str, ...] = ()
        self._last_encoded: tuple[object, list[str], EncodedStrings] | None = None
        self._limits_said = False
        self._length: int | None = None
        self._mean_std = float(mean_std)
        self.draws = int(draws)
        self.refit_growth = refit_growth
        super().__init__(
            Encoder("characters" if tokenizer is None else tokenizer) if encoder is None else encoder, mean, levels
        )
        self._encoder_chosen = tokenizer is not None or encoder is not None
        self._chosen_encoder = self.encoder if self._encoder_chosen else None
        if isinstance(encoder, FieldEncoder):
            for found in self._kernels:
                bind_fields(found, encoder.columns)
        if self._encoder_chosen:
            self._bind_kernels()
        self._parameters: dict[str, list[float | None]] | None = None
        self._chosen: list[int] = []
        self._ends: list[list[list[float]]] = [[] for _ in self._kernels]
        self._full_fit_size = 0
        self._units = (0.0, 1.0)
        self._drawn_units: tuple[float, float] | None = None
        self._needed_length: int | None = None
        self._diagnostics: tuple[KernelDiagnostics, ...] = ()

    def config_arguments(self) -> dict[str, Any]:
        """See `seqopt.utils.config.Configurable`."""
        several = len(self._kernels) > 1
        return {
            "kernel": self._kernels if several else self._kernels[0],
            "sampler": self._samplers if several else self._samplers[0],
            "prior": self._prior if several else None,
            "weights": self._weights,
            "null": self._null,
            "encoder": self._chosen_encoder,
            "draws": self.draws,
            "refit_growth": self.refit_growth,
            "mean_std": self._mean_std,
            **({} if self.mean is None else {"mean": self.mean}),
            **({} if self.levels is None else {"levels": self.levels}),
        }

    takes_noise_variance = True
    """`fit` takes the known noise of each value."""

    @property
    def takes_censored(self) -> bool:
        """`fit` takes values of which only a limit is known: where motifs are all that is drawn, it does not."""
        return not all(isinstance(sampler, MotifSampler) for sampler in self._samplers)

    @property
    def kernels(self) -> list[gpytorch.kernels.Kernel]:
        """The kernels, at their own parameters."""
        return list(self._kernels)

    @property
    def samplers(self) -> list[Sampler]:
        """What draws the parameters of each kernel."""
        return list(self._samplers)

    @property
    def diagnostics(self) -> tuple[KernelDiagnostics, ...]:
        """How the parameters of each kernel were drawn the last time, R-hat and effective sizes of chains or particles
        included; empty before that. It is part of the state, so that a run or a campaign keeps it.
        """
        return self._diagnostics

    @property
    def doubt(self) -> float:
        """Weight of the hypothesis that strings tell nothing of each other's values, in [0, 1); see the class."""
        return self._doubt if self.mean is None else 0.0

    @property
    def units(self) -> tuple[float, float]:
        """See `GaussianSurrogate`: those of the target, where levels have their own."""
        return self._target_units() or self._units

    def _bind_kernels(self) -> None:
        for kernel in self._kernels:
            bind_symbols(kernel, self.encoder)

    def bind(self, space: Space) -> None:
        """Take the encoder of ``space``, unless one was chosen. Called by the optimiser."""
        if self._state is not None:
            return
        if not self._encoder_chosen:
            self.encoder = space.encoder
        elif isinstance(self.encoder, JointEncoder) and not self.encoder.tokens_chosen:
            self.encoder = JointEncoder(self.encoder.features, space.encoder)
        self._bind_kernels()
        if len(self._kernels) > 1 and isinstance(space, PoolSpace) and len(space):
            # Measured strings may all have one length, and candidates others.
            found = _lengths(self.encoder.encode([space.keys[0]])) if _equal(space.encoded.lengths.tolist()) else [-1]
            self._needed_length = found[0] if found else None

    def unsupported(self, strings: Sequence[str]) -> dict[int, str]:
        """Why strings cannot be compared, by their places: those without features, or of another length than the
        measured ones where a kernel in use compares position by position. Empty where all can be.
        """
        found = self._without_features(strings)
        if self._length is not None:
            places = [place for place in range(len(strings)) if place not in found]
            lengths = _lengths(self.encoder.encode([strings[place] for place in places]))
            found |= {
                place: f"{strings[place]!r} has {length} symbols, but this surrogate compares strings of one length, "
                f"position by position, and those measured have {self._length}"
                for place, length in zip(places, lengths, strict=True)
                if length != self._length
            }
        return dict(sorted(found.items()))

    def unlearnable(self, strings: Sequence[str]) -> dict[int, str]:
        """Why strings cannot be learned from, by their places. Those of another length can be where some kernel takes
        them: kernels that compare position by position take no part in the next fit.
        """
        if all(map(_of_one_length, self._kernels)):
            return self.unsupported(strings)
        return self._without_features(strings)

    def _without_features(self, strings: Sequence[str]) -> dict[int, str]:
        features = self.encoder
        if isinstance(features, FeatureEncoder | JointEncoder | FieldEncoder):
            return features.unsupported(strings)
        return {}

    @property
    def hyperparameters(self) -> dict[str, float]:
        """Means over the draws, of those that have the parameter; scale, noise and mean for standardised values.

        With several kernels, the parameters of each have its number in front (``kernels[0].lengthscale``), and
        ``kernels[0].weight`` is the share of its draws. Of a parameter of more than `MOST_SHOWN` numbers, such as a
        lengthscale for each position, it is the mean over these as well; `state_dict` has them all. A motif that most
        draws of its kernel have is named (``motif A?B``), with their share.
        """
        known: dict[str, list[float]] = {}
        parts = Counter(_without_place(name) for name in self._parameters or {})
        discrete = {name for kernel in self._kernels for name in getattr(kernel, "discrete", ())}
        for name, values in (self._parameters or {}).items():
            if _without_place(name).rpartition(".")[2] in discrete:
                continue
            shown = _without_place(name) if parts[_without_place(name)] > MOST_SHOWN else name
            known.setdefault(shown, []).extend(value for value in values if value is not None)
        found = {name: float(np.mean(values)) for name, values in known.items()} | self._probable_motifs()
        if self._parameters is None or len(self._kernels) == 1:
            return found
        shares = np.bincount(self._chosen, minlength=len(self._kernels)) / len(self._chosen)
        return found | {f"kernels[{number}].weight": float(share) for number, share in enumerate(shares)}

    def _probable_motifs(self) -> dict[str, float]:
        """Motifs that more than half of the draws of their kernel have, and the share of these."""
        found = {}
        for number, kernel in enumerate(self._kernels):
            draws = [draw for draw, chosen in enumerate(self._chosen) if chosen == number]
            if not isinstance(kernel, MotifKernel) or not draws or self._parameters is None:
                continue
            shown = Counter(self._with_motif(kernel, number, draw).shown for draw in draws)
            (motif, count), *_ = shown.most_common(1)
            if count > len(draws) / 2:
                found[f"{self._prefix(number)}motif {motif}"] = count / len(draws)
        return found

    def _with_motif(self, kernel: MotifKernel, number: int, draw: int) -> MotifKernel:
        """A kernel of a motif at one of its draws."""
        found = KernelParameters(kernel).set(list(self._own(number, draw).values()))
        assert isinstance(found, MotifKernel)
        return found

    def fit(
        self,
        strings: Sequence[str],
        values: npt.ArrayLike,
        *,
        rng: np.random.Generator,
        noise_variance: npt.ArrayLike | None = None,
        censored: npt.ArrayLike | None = None,
    ) -> None:
        """Fit to ``strings`` and ``values``.

        Args:
            strings: n strings.
            values: n finite values, larger is better.
            rng: Draws the parameters.
            noise_variance: Known variance of the noise of each value (squared standard errors), 0 where unknown, in the
                values' units squared. A variance that all values share is learned besides; while it is, on a grid,
                each value counts as having the mean of the known ones.
            censored: What is known of each value: 0 if it is known, 1 if it is above the one given, -1 if it is below;
                see `seqopt.models.censoring`.

        Raises:
            InputError: If there are fewer than two strings, the numbers differ, a value is not finite, or a noise
                variance is negative.
        """
        targets = self._less_mean(strings, checked_values(strings, values))
        known = checked_noise(strings, noise_variance)
        sides = checked_sides(strings, censored)
        numbers, own_scales = None, None
        if self.levels is not None:
            numbers = self.levels.numbers(strings)
            own_scales = self.levels.scales(numbers, targets)
            targets = own_scales.standardized(numbers, targets)
            known = known / own_scales.units[numbers] ** 2
        weighed = targets[telling(targets, sides)]
        spread = float(weighed.std(ddof=1)) if differ(weighed) else 0.0
        if spread == 0.0:
            # No number: the model sees values whose sign or scale may be turned.
            logger.warning(
                "all %d values are equal, but for rounding: the model cannot tell strings apart yet",
                len(targets),
            )
        self._units = float(weighed.mean()), spread or 1.0
        self._level_scales = None if own_scales is None else own_scales.within(*self._units)
        standardized = (targets - self._units[0]) / self._units[1]
        known = known / self._units[1] ** 2
        encoded = self._encoded_once(strings)
        self._bind_kernels()
        misfits = self._length is not None and set(_lengths(encoded)) != {self._length}
        if misfits or not self.keeps_draws(len(strings)) or self._units_moved():
            self._draw(encoded, standardized, known, sides, rng, numbers)
            self._full_fit_size = len(strings)
            self._drawn_units = self._units
            self._forget_columns()
        assert self._parameters is not None
        scale, noise = (torch.tensor(self._parameters[name], dtype=torch.float64) for name in OF_ALL[:2])
        mean = torch.tensor(self._parameters.get(MEAN, [0.0] * self.draws), dtype=torch.float64)
        wanted = targets_of(strings)
        level_noise = None
        if self.levels is not None and numbers is not None:
            level_noise = LevelNoise.of(self.levels, self._noise_by_level(noise), torch.from_numpy(known), numbers)
        self._state = BatchedGPState.build(
            self.evaluator(encoded.width),
            list(strings),
            encoded,
            torch.from_numpy(standardized),
            mean,
            scale,
            noise,
            torch.from_numpy(known),
            self._prior_mean(),
            wanted=None if wanted is None else self.encoder.encode(wanted),
            sides=None if sides is None else torch.from_numpy(sides),
            level_noise=level_noise,
        )

    def _encoded_once(self, strings: Sequence[str]) -> Encoded:
        """The strings as the encoder has them: those of the last fit as the same object, with what is remembered of it.

        Values are fitted under several transforms, one after the other.
        """
        last = self._last_encoded
        if last is not None and last[0] is self.encoder and last[1] == list(strings):
            return last[2]
        found = self.encoder.encode(strings)
        # Others may depend on more than the strings.
        plain = isinstance(self.encoder, Encoder) and isinstance(found, EncodedStrings)
        self._last_encoded = (self.encoder, list(strings), found) if plain else None
        return found

    @property
    def _reference(self) -> int:
        """The level whose noise is the noise variance: that of the target, or the first where that is latent."""
        assert self.levels is not None
        return self.levels.target_number % self.levels.count

    def _noise_by_level(self, noise: torch.Tensor) -> torch.Tensor:
        """Variances of the noise of all levels, D x L."""
        assert self.levels is not None
        assert self._parameters is not None
        found = noise[:, None].repeat(1, self.levels.count)
        for level in range(self.levels.count):
            for number in range(len(self._kernels)):
                ratios = self._parameters.get(self._prefix(number) + ratio_name(level))
                for draw, ratio in enumerate(ratios or ()):
                    if ratio is not None:
                        found[draw, level] *= ratio
        return found

    def keeps_draws(self, count: int) -> bool:
        """Whether a fit to ``count`` strings keeps the draws, if the units of the values and the length stay the same.

        Example:
            >>> from seqopt.kernels import SubsequenceKernel
            >>> FullyBayesianGP([SubsequenceKernel()]).keeps_draws(200)  # nothing was drawn yet
            False
        """
        if count <= ALWAYS_REFITTED or self._parameters is None:
            return False
        return abs(count - self._full_fit_size) < self.refit_growth * self._full_fit_size

    def _units_moved(self) -> bool:
        """Whether draws that are kept are in units other than those of the values now.

        A few values unlike all others, or another transform, change what a standard deviation is: scales, noise and
        doubt that were drawn before would be those of other values.
        """
        if self._drawn_units is None:
            return False
        (mean, spread), (before, unit) = self._units, self._drawn_units
        return bool(abs(mean - before) > MOVED * unit or not 1.0 - MOVED <= spread / unit <= 1.0 + MOVED)

    def _draw(
        self,
        encoded: Encoded,
        targets: Numbers,
        known: Numbers,
        sides: Sides | None,
        rng: np.random.Generator,
        numbers: npt.NDArray[np.int64] | None,
    ) -> None:
        """Draw all parameters from their posterior."""
        lengths = _lengths(encoded)
        positions = _equal(lengths) and (self._needed_length is None or set(lengths) == {self._needed_length})
        taken = [not _of_one_length(kernel) or (positions and _takes(kernel, lengths)) for kernel in self._kernels]
        if not any(taken):
            raise InputError(
                f"strings have {min(lengths)} to {max(lengths)} symbols, and each kernel needs equal numbers"
            )
        self._say_left_out([kernel for kernel, fits in zip(self._kernels, taken, strict=True) if not fits], lengths)
        modes = [isinstance(sampler, ModeSampler) for sampler in self._samplers]
        exact = [isinstance(sampler, ModeSampler | MotifSampler) for sampler in self._samplers]
        if sides is not None and any(fits and not mode for fits, mode in zip(taken, exact, strict=True)):
            # Limits have no densities to stack, a mode has no evidence, and motifs are found from values.
            self._say_without([one for one, *both in zip(self._kernels, taken, exact, strict=True) if all(both)])
            taken = [fits and not mode for fits, mode in zip(taken, exact, strict=True)]
        own_noise = (0, 1) if self.levels is None else (self._reference, self.levels.count)
        densities = [
            LogPosterior(kernel, encoded, targets, known, self._mean_std, sides, numbers, *own_noise) if fits else None
            for kernel, fits in zip(self._kernels, taken, strict=True)
        ]
        several = sum(taken) > 1
        stacked = (several or self._null > 0.0) and self._weights == "stacking" and sides is None
        self._doubt = 0.0
        only_modes = all(mode for fits, mode in zip(taken, modes, strict=True) if fits)
        evidence = several and not stacked and not only_modes
        samples = [
            None if density is None else sampler.sample(density, rng, ends, evidence=evidence)
            for sampler, density, ends in zip(self._samplers, densities, self._ends, strict=True)
        ]
        offset = rng.random()
        shares = np.array(taken, dtype=np.float64)
        if stacked:
            shares = self._stacked(densities, samples, offset, rng)
        elif evidence:
            shares = self._probable(samples)
        elif several:
            shares = shares * self._prior / (shares @ self._prior)
        found = [np.empty(0) if sample is None else sample.weights for sample in samples]
        if several:
            parts = zip(shares, found, strict=True)
            weights = np.concatenate([share * own / own.sum() if len(own) else own for share, own in parts])
        else:
            weights = np.concatenate(found)
        places = self._resampled(weights, offset)
        starts = np.cumsum([0, *map(len, found)])
        self._chosen = (np.searchsorted(starts, places, side="right") - 1).tolist()
        drawn = [int(place - starts[number]) for number, place in zip(self._chosen, places, strict=True)]
        for number, sample in enumerate(samples):
            own = [place for place, chosen in enumerate(self._chosen) if chosen == number]
            if sample is not None and GAP_DECAY in sample.values:
                shared = _shared(sample.values[GAP_DECAY], sample.weights, [drawn[place] for place in own], rng)
                for place, replaced in zip(own, shared, strict=True):
                    drawn[place] = replaced
        self._parameters = self._named(samples, drawn)
        if self._mean_std > 0.0:
            self._parameters[MEAN] = self._means(densities, samples, drawn, rng)
        self._ends = [[] if sample is None else sample.ends for sample in samples]
        self._length = lengths[0] if any(_of_one_length(self._kernels[number]) for number in self._chosen) else None
        self._diagnostics = tuple(
            _diagnosed(density, sampler, sample, float(share))
            for density, sampler, sample, share in zip(densities, self._samplers, samples, shares, strict=True)
            if density is not None and sample is not None
        )
        for one in self._diagnostics:
            if message := one.warning:
                logger.warning("%s", message)

    def _say_left_out(self, kernels: Sequence[gpytorch.kernels.Kernel], lengths: Collection[int]) -> None:
        """Which kernels cannot compare the strings that were measured: once, until others cannot."""
        names = tuple(type(kernel).__name__ for kernel in kernels)
        if names and names != self._said:
            least, most = min(lengths), max(lengths)
            have = f"the measured strings have {least} {f'to {most} ' if most > least else ''}symbols"
            if least == most and self._needed_length is not None:
                needed = str(self._needed_length) if self._needed_length > 0 else "various numbers of symbols"
                have += f", those to predict {needed}"
            what = "; ".join(KERNELS.get(name, name) for name in names)
            logger.warning("kernels that compare position by position take no part (%s): %s", what, have)
        self._said = names

    def _say_without(self, kernels: Sequence[gpytorch.kernels.Kernel]) -> None:
        """Which kernels learn nothing from values of which some are limits: once."""
        if kernels and not self._limits_said:
            what = "; ".join(KERNELS.get(name, name) for name in (type(kernel).__name__ for kernel in kernels))
            logger.warning(
                "kernels that cannot be weighed by limits take no part (%s): of some values only a limit is known",
                what,
            )
            self._limits_said = True

    def _resampled(self, weights: Numbers, offset: float) -> npt.NDArray[np.intp]:
        """Systematic resampling: places of equally spaced points in the cumulated weights, with one random offset."""
        points = (offset + np.arange(self.draws)) / self.draws
        return np.searchsorted(np.cumsum(weights / weights.sum()), points).clip(max=weights.size - 1)

    def _probable(self, samples: Sequence[ParameterSample | None]) -> Numbers:
        """Posterior probabilities of the kernels."""
        evidence = [-math.inf if sample is None else sample.log_evidence for sample in samples]
        found: Numbers = special.softmax(np.log(self._prior) + evidence)
        return found

    def _stacked(
        self,
        densities: Sequence[LogPosterior | None],
        samples: Sequence[ParameterSample | None],
        offset: float,
        rng: np.random.Generator,
    ) -> Numbers:
        """Weights of the kernels by what draws of each predict for every value from the others."""
        found, taken = [], []
        for number, (density, sample, sampler) in enumerate(zip(densities, samples, self._samplers, strict=True)):
            if density is None or sample is None:
                continue
            if sample.predictive is not None:
                found.append(sample.predictive)
                taken.append(number)
                targets = density.targets
                continue
            if isinstance(sampler, ModeSampler):
                point = {name: float(values[0]) for name, values in sample.values.items()}
                found.append(cross_fitted_densities(density, sampler.without_folds(density, point, rng)))
                taken.append(number)
                targets = density.targets
                continue
            defaults = dict(zip(density.parameters.names, density.parameters.values, strict=True))
            names = [*defaults, OUTPUTSCALE, NOISE_VARIANCE]
            points = [
                {name: float(sample.values[name][place]) if name in sample.values else defaults[name] for name in names}
                for place in self._resampled(sample.weights, offset)
            ]
            found.append(leave_one_out_densities(density, points))
            taken.append(number)
            targets = density.targets
        prior = self._prior[taken] / self._prior[taken].sum()
        shares = np.zeros(len(densities))
        if self._null == 0.0:
            shares[taken] = stacking_weights(np.stack(found), prior)
            return shares
        found.append(independent_densities(targets))
        prior = np.append((1.0 - self._null) * prior, self._null)
        # A few values must not be enough to trust a model that explains them by chance.
        *weights, self._doubt = stacking_weights(np.stack(found), prior, 2.0).tolist()
        shares[taken] = np.array(weights) / sum(weights)
        return shares

    def _named(self, samples: Sequence[ParameterSample | None], drawn: Sequence[int]) -> dict[str, list[float | None]]:
        """Each parameter at all draws; `None` where a draw is of another kernel."""
        found: dict[str, list[float | None]] = {}
        for number, sample in enumerate(samples):
            for name in () if sample is None else sample.values:
                if sample is not None and name not in OF_ALL:
                    values = sample.values[name]
                    found[self._prefix(number) + name] = [
                        float(values[place]) if chosen == number else None
                        for chosen, place in zip(self._chosen, drawn, strict=True)
                    ]
        for name in OF_ALL[:2]:
            found[name] = [
                float(_present(samples[chosen]).values[name][place])
                for chosen, place in zip(self._chosen, drawn, strict=True)
            ]
        return {name: values for name, values in found.items() if any(value is not None for value in values)}

    def _means(
        self,
        densities: Sequence[LogPosterior | None],
        samples: Sequence[ParameterSample | None],
        drawn: Sequence[int],
        rng: np.random.Generator,
    ) -> list[float | None]:
        """Constant means, each from its distribution given the values and the other parameters of a draw."""
        moments: dict[tuple[int, int], tuple[float, float]] = {}
        found: list[float | None] = []
        for number, place in zip(self._chosen, drawn, strict=True):
            if (number, place) not in moments:
                values, density = _present(samples[number]).values, _present(densities[number])
                own = dict(zip(density.parameters.names, density.parameters.values, strict=True))
                own |= {name: float(values[name][place]) for name in values if name not in OF_ALL}
                scale, noise = (float(values[name][place]) for name in OF_ALL[:2])
                moments[number, place] = density.mean_moments(list(own.values()), scale, noise)
            mean, variance = moments[number, place]
            found.append(mean + math.sqrt(variance) * rng.standard_normal())
        return found

    def _prefix(self, number: int) -> str:
        return f"kernels[{number}]." if len(self._kernels) > 1 else ""

    def _own(self, number: int, draw: int) -> dict[str, float]:
        """The parameters of a kernel at one of its draws."""
        assert self._parameters is not None
        prefix = self._prefix(number)
        found = {}
        for name, values in self._parameters.items():
            value = values[draw]
            kernels = name not in OF_ALL and not name.removeprefix(prefix).startswith(NOISE_RATIO)
            if kernels and name.startswith(prefix) and value is not None:
                found[name.removeprefix(prefix)] = value
        return found

    @property
    def drawn(self) -> bool:
        """Whether parameters have been drawn, or restored."""
        return self._parameters is not None

    def evaluator(self, width: int) -> Evaluator:
        """The kernels at their drawn parameters, for strings of at most ``width`` columns."""
        members: list[KernelEvaluator] = []
        index = [0] * self.draws
        count = 0
        for number, kernel in enumerate(self._kernels):
            draws = [draw for draw, chosen in enumerate(self._chosen) if chosen == number]
            own = [self._own(number, draw) for draw in draws]
            if not draws:
                continue
            if isinstance(kernel, SubsequenceKernel) and set(own[0]) == DECAYS:
                match, gap = (
                    torch.tensor([values[name] for values in own], dtype=torch.float64)
                    for name in ("match_decay", GAP_DECAY)
                )
                members.append(KernelEvaluator(kernel.at(match, gap), width))
                for draw in draws:
                    index[draw] = count
                    count += 1
                continue
            places: dict[tuple[float, ...], int] = {}
            if _of_distances(kernel) and set(own[0]) == {"lengthscale"}:
                # Draws differ in the lengthscale only, so that distances are computed once for all.
                scales = list(dict.fromkeys(values["lengthscale"] for values in own))
                members.append(KernelEvaluator(_at_lengthscales(kernel, scales), width))
                for draw, values in zip(draws, own, strict=True):
                    index[draw] = count + scales.index(values["lengthscale"])
                count += len(scales)
                continue
            for draw, values in zip(draws, own, strict=True):
                key = tuple(values.values())
                if key not in places:
                    parameters = KernelParameters(kernel)
                    named = dict(zip(parameters.names, parameters.values, strict=True)) | values
                    members.append(KernelEvaluator(parameters.set(list(named.values())), width))
                    places[key] = count
                    count += 1
                index[draw] = places[key]
        if len(members) == 1 and index == list(range(self.draws)):
            return members[0]
        return StackedEvaluator(members, index)

    def nominated(self, strings: Sequence[str]) -> list[str]:
        """Some strings with the motifs that were drawn written into them (`seqopt.kernels.MotifKernel.planted`).

        Nothing where there is no such kernel, for an encoder that leaves anything out, or where symbols are not single
        characters.
        """
        encoder = self.encoder
        if type(encoder) is not Encoder or not isinstance(encoder.tokenizer, CharacterTokenizer):
            return []
        if not strings or self._parameters is None:
            return []
        found: dict[tuple[float, ...], EncodedStrings] = {}
        encoded = encoder.encode(strings)
        for draw, number in enumerate(self._chosen):
            kernel = self._kernels[number]
            own = tuple(self._own(number, draw).values())
            if isinstance(kernel, MotifKernel) and own not in found:
                # Other strings for each motif.
                others = encoded.take(np.roll(np.arange(len(strings)), -len(found)))
                found[own] = self._with_motif(kernel, number, draw).planted(others)
        symbols = ["", *encoder.alphabet]
        rows = (row for one in found.values() for row in one.tokens.tolist())
        return list(dict.fromkeys("".join(symbols[number] for number in row) for row in rows))

    def state_dict(self) -> dict[str, Any]:
        """The drawn parameters, where chains ended, and the number of strings they were drawn for, as JSON values."""
        found: dict[str, Any] = {"parameters": self._parameters, "full_fit_size": self._full_fit_size}
        found["kernel_types"] = self._types()
        if len(self._kernels) > 1:
            found["kernels"] = self._chosen
        if self._null > 0.0:
            found["doubt"] = self._doubt
        if self._drawn_units is not None:
            found["units"] = list(self._drawn_units)
        if self._length is not None:
            found["length"] = self._length
        if symbols := self._numbered():
            found["symbols"] = list(symbols)
        if any(self._ends):
            found["chains"] = self._ends
            found["diagnostics"] = [one.to_json() for one in self._diagnostics]
        return found

    def _numbered(self) -> Alphabet | None:
        """An alphabet that grows, where a parameter is the number of one of its symbols."""
        tokens = self.encoder
        if not isinstance(tokens, Encoder) or not any(isinstance(kernel, MotifKernel) for kernel in self._kernels):
            return None
        return None if tokens.alphabet.closed else tokens.alphabet

    def _types(self) -> list[str]:
        return [type(kernel).__name__ for kernel in self._kernels]

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`; the next fit continues from there, or anew if the state is that of other kernels."""
        self._state = None
        self._forget_columns()
        # States of one kernel did not always say which.
        if state.get("kernel_types", self._types() if len(self._kernels) == 1 else None) != self._types():
            state = {"parameters": None, "full_fit_size": 0}
        if (symbols := self._numbered()) is not None:
            # Symbols get the numbers that they had, or motifs are looked for anew.
            wanted = list(state.get("symbols", ()))
            if wanted != [symbol for symbol in wanted if symbols.number(symbol) == wanted.index(symbol) + 1]:
                state = {"parameters": None, "full_fit_size": 0}
        self._parameters = state["parameters"]
        self._full_fit_size = state["full_fit_size"]
        self._chosen = list(state.get("kernels", [0] * self.draws))
        self._ends = [list(ends) for ends in state.get("chains", [[] for _ in self._kernels])]
        self._doubt = float(state.get("doubt", 0.0))
        self._length = state.get("length")
        units = state.get("units")
        self._drawn_units = None if units is None else (float(units[0]), float(units[1]))
        self._diagnostics = tuple(KernelDiagnostics.from_json(one) for one in state.get("diagnostics", ()))


class FullyBayesianStringGP(FullyBayesianGP):
    """The sub-sequence kernel, averaged over a grid of its decays, output scales and noise variances, with mean 0.

    It is ``FullyBayesianGP(kernel, GridSampler(), mean_std=0)``: the surrogate ``ssk-bayes``. A fit to n strings takes
    at most 16 dynamic programs and 56 eigendecompositions of n x n matrices.

    Args:
        kernel: Order, partitions, order weights, engine and threads are taken from it; its decays are not. Default:
            order 5.
        tokenizer: See `FullyBayesianGP`.
        encoder: Makes tokens of strings, instead of ``tokenizer``.
        draws: Number of draws.
        refit_growth: See `FullyBayesianGP`.
        mean: See `FullyBayesianGP`.

    Raises:
        InputError: If ``draws`` < 1, ``refit_growth`` < 0, or the kernel is not a normalised `SubsequenceKernel`
            without batch shape.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> gp = FullyBayesianStringGP()
        >>> gp.fit(["AAAA", "AAAT", "TTTA", "TTTT"], [0.0, 1.0, 3.0, 4.0], rng=rng)
        >>> mean, std = gp.predict(["ATAA", "TTAT"])
        >>> bool(mean[0] < mean[1])
        True
    """

    def __init__(
        self,
        kernel: SubsequenceKernel | None = None,
        *,
        tokenizer: str | Tokenizer | None = None,
        encoder: Encoder | None = None,
        draws: int = 8,
        refit_growth: float = 0.1,
        mean: PriorMean | None = None,
    ) -> None:
        self.kernel = SubsequenceKernel() if kernel is None else kernel
        if not isinstance(self.kernel, SubsequenceKernel):
            raise InputError(
                f"the kernel is a {type(self.kernel).__name__}, not a SubsequenceKernel: FullyBayesianGP averages over "
                "the parameters of any kernel"
            )
        if not self.kernel.normalize or self.kernel.batch_shape:
            raise InputError("the kernel must be normalised and have no batch shape")
        super().__init__(
            self.kernel,
            GridSampler(),
            tokenizer=tokenizer,
            encoder=encoder,
            draws=draws,
            refit_growth=refit_growth,
            mean_std=0.0,
            mean=mean,
        )

    def config_arguments(self) -> dict[str, Any]:
        """See `seqopt.utils.config.Configurable`."""
        return {
            "kernel": self.kernel,
            "encoder": self._chosen_encoder,
            "draws": self.draws,
            "refit_growth": self.refit_growth,
            **({} if self.mean is None else {"mean": self.mean}),
        }


def _of_distances(kernel: gpytorch.kernels.Kernel) -> bool:
    return type(kernel) in OF_DISTANCES and not kernel.batch_shape and kernel.active_dims is None


def _at_lengthscales(kernel: gpytorch.kernels.Kernel, lengthscales: Sequence[float]) -> gpytorch.kernels.Kernel:
    """One kernel, of `OF_DISTANCES`, with each of some lengthscales."""
    bounds = min(lengthscales) / 2, 2 * max(lengthscales)
    shape = torch.Size([len(lengthscales)])
    own: dict[str, Any] = {"longest": kernel.longest} if isinstance(kernel, NgramKernel) else {}
    build: Any = type(kernel)
    batched = build(lengthscale=lengthscales[0], lengthscale_bounds=bounds, batch_shape=shape, **own).double()
    batched.lengthscale = torch.tensor(lengthscales, dtype=torch.float64)[:, None, None]
    if isinstance(kernel, OfLetters):
        batched.letters = kernel.letters
    return batched


def _shared(values: Numbers, weights: Numbers, drawn: Sequence[int], rng: np.random.Generator) -> list[int]:
    """Draws of a sample of which `PER_GAP_DECAY` at a time share a gap decay, so that fewer dynamic programs do.

    Neighbours in the order of the gap decay take that of one of them, and the others are drawn anew given it. Each draw
    still has the distribution of the sample.

    Args:
        values: The gap decay at all points of the sample.
        weights: Of the points.
        drawn: Places of the points that were drawn.
        rng: Chooses whose gap decay is taken, and draws anew.
    """
    order = sorted(range(len(drawn)), key=lambda place: values[drawn[place]])
    found = list(drawn)
    for start in range(0, len(order), PER_GAP_DECAY):
        group = order[start : start + PER_GAP_DECAY]
        kept = found[group[int(rng.integers(len(group)))]]
        others = [place for place in group if values[found[place]] != values[kept]]
        if others:
            points = np.flatnonzero(values == values[kept])
            again = rng.choice(points, size=len(others), p=weights[points] / weights[points].sum())
            for place, point in zip(others, again.tolist(), strict=True):
                found[place] = int(point)
    return found


def _present(part: T | None) -> T:
    assert part is not None
    return part


def _without_place(name: str) -> str:
    """The name of a parameter of several numbers, without which of these it is."""
    return re.sub(r"\[\d+\]$", "", name)


def _of_one_length(kernel: gpytorch.kernels.Kernel) -> bool:
    return any(getattr(part, "one_length", False) for part in kernel.modules())


def _takes(kernel: gpytorch.kernels.Kernel, lengths: Sequence[int]) -> bool:
    """Whether a kernel that compares strings of one length takes those of that one: some are for a certain length."""
    return not lengths or all(getattr(part, "sites", lengths[0]) == lengths[0] for part in kernel.modules())


def _lengths(encoded: Encoded) -> list[int]:
    """Numbers of symbols; empty where there are no tokens."""
    tokens = list(encoded.parts.values())[-1] if isinstance(encoded, Fields) else encoded
    return tokens.lengths.tolist() if isinstance(tokens, EncodedStrings) else []


def _equal(lengths: Sequence[int]) -> bool:
    return len(set(lengths)) <= 1


def _check_motif(kernel: gpytorch.kernels.Kernel, sampler: Sampler) -> None:
    """Refuse a motif that could not be drawn."""
    discrete = [type(part).__name__ for part in kernel.modules() if getattr(part, "discrete", ())]
    if not discrete:
        return
    if not isinstance(kernel, MotifKernel) or not isinstance(sampler, MotifSampler):
        alone = isinstance(kernel, MotifKernel)
        where = f"with a {type(sampler).__name__}" if alone else f"within a {type(kernel).__name__}"
        raise InputError(
            f"a {discrete[0]} {where}: only a MotifSampler draws motifs, and only those of a MotifKernel that is a "
            "kernel of its own, not a part of another"
        )
    if not all(parameter.requires_grad for parameter in kernel.parameters()):
        raise InputError("the motif of a MotifKernel is what is drawn: it cannot be fixed by requires_grad_(False)")


def _samplers(sampler: Sampler | Sequence[Sampler] | None, kernels: Sequence[gpytorch.kernels.Kernel]) -> list[Sampler]:
    if sampler is None:
        return [default_sampler(kernel) for kernel in kernels]
    found = list(sampler) if isinstance(sampler, Sequence) else [sampler] * len(kernels)
    for one in found:
        if isinstance(one, type):
            raise InputError(f"{one.__name__} is a class: give an object of it, {one.__name__}(...)")
        if not isinstance(one, Sampler):
            raise InputError(f"{one!r} of type {type(one).__name__} is not a sampler: it has no method sample")
    if len(found) != len(kernels):
        raise InputError(f"there are {len(found)} samplers for {len(kernels)} kernels: give one, or one for each")
    return found


def _probabilities(prior: Sequence[float] | None, count: int) -> Numbers:
    found: Numbers = np.ones(count) if prior is None else np.asarray(prior, dtype=np.float64)
    if found.shape != (count,):
        raise InputError(f"there are {found.size} prior probabilities for {count} kernels: give one for each")
    if not (np.isfinite(found) & (found > 0)).all():
        raise InputError(f"prior probabilities of kernels are {found.tolist()}; expected positive numbers")
    total = float(found.sum())
    # What was written down is read as it was, though six times 1/6 is not 1.
    return found if math.isclose(total, 1.0, rel_tol=1e-12) else found / total


def _diagnosed(density: LogPosterior, sampler: Sampler, sample: ParameterSample, weight: float) -> KernelDiagnostics:
    return KernelDiagnostics(
        type(density.kernel).__name__,
        repr(sampler),
        weight,
        sample.log_evidence,
        sample.log_evidence_error,
        sample.r_hat,
        sample.effective_size,
        len(sample.weights),
        sample.evaluations,
        sample.grams,
    )
