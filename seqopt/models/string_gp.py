"""Gaussian-process surrogate on strings.

Model: values = c + f(s) + noise, f ~ GP(0, outputscale * k), with k a kernel on strings (by default the normalised
sub-sequence kernel of order 5) or on features of them, at the parameters that `seqopt.models.fitting` finds.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import Any, cast

import gpytorch
import numpy as np
import numpy.typing as npt
import torch
from botorch.models import SingleTaskGP
from gpytorch.priors import NormalPrior

from seqopt.data.query import Item, Query, targets_of
from seqopt.encoding import Encoded, Encoder, FeatureEncoder, JointEncoder, StringEncoder, Tokenizer
from seqopt.encoding.encoded import EncodedStrings
from seqopt.encoding.fields import FieldEncoder, Fields
from seqopt.errors import InputError, ModelError
from seqopt.kernels import SubsequenceKernel, bind_fields, bind_symbols
from seqopt.models.censoring import Sides, checked_sides
from seqopt.models.checks import checked_noise, checked_values
from seqopt.models.covariance import KernelEvaluator
from seqopt.models.fitting import Parameters, PointEstimate, TrainingData, parameters_of, suits, units_of
from seqopt.models.gaussian import GaussianSurrogate
from seqopt.models.gp_state import BatchedGPState
from seqopt.models.levels import LevelNoise, Levels
from seqopt.models.measurements import AVERAGED, MeasurementVariance
from seqopt.models.noise import LevelledNoise
from seqopt.models.prior_means import PriorMean
from seqopt.spaces import PoolSpace, Space
from seqopt.utils.config import Configurable

logger = logging.getLogger(__name__)


def default_kernel(partitions: int = 1, **options: Any) -> SubsequenceKernel:
    """The normalised sub-sequence kernel of order 5 with weak priors, N(0.5, 0.5), on both decays.

    Args:
        partitions: See `seqopt.kernels.SubsequenceKernel`.
        options: Other arguments of that kernel, such as ``order``.
    """
    return SubsequenceKernel(
        **{"order": 5, **options},
        partitions=partitions,
        match_decay=0.8,
        gap_decay=0.5,
        match_decay_prior=NormalPrior(0.5, 0.5),
        gap_decay_prior=NormalPrior(0.5, 0.5),
    )


class StringGP(GaussianSurrogate, Configurable):
    """Gaussian process over strings, fitted by maximum a posteriori marginal likelihood.

    Values are standardised inside, so the weak priors (normal on the logarithms of noise variance and output scale, and
    on the decays) have one meaning for all objectives. Kernel parameters are refitted when the data have grown by
    ``refit_growth`` since the last time, and only output scale, noise and mean are fitted in between: a new gap decay
    makes every cached column of a pool worthless, a new output scale does not.

    Args:
        kernel: A `gpytorch.kernels.Kernel` on rows of tokens (or on what ``encoder`` gives), without output scale.
            Default: `default_kernel`.
        tokenizer: A tokeniser or its name. By default the one of the space that the optimiser searches, or
            characters where there is none.
        encoder: Turns strings into what ``kernel`` takes, where that is not tokens alone: a
            `seqopt.encoding.FeatureEncoder`, a `seqopt.encoding.JointEncoder`, or a
            `seqopt.encoding.fields.FieldEncoder`, whose fields ``kernel`` reads by `seqopt.kernels.OnField`. With
            fields of the context, queries (`seqopt.data.Query`) take the place of strings.
        restarts: Starts of a full fit: the parameters of the last fit (or the kernel's own), then draws from the
            priors. A string kernel fitted to more than 500 strings follows them on 400 of these, and the best on all.
        refit_growth: A full fit is made when n has grown by this fraction since the last full fit, or the strings
            fitted last are not among the new ones.
        fit_size: Parameters are fitted to at most so many strings, a random choice of all: a step of a fit to n strings
            costs n^2 kernel evaluations and n^3 operations. The model is always conditioned on all.
        interpolate: Whether full fits to 60 strings or more take Gram matrices at other gap decays from interpolation
            where the kernel can (see `seqopt.kernels.SubsequenceKernel.interpolating`). The fitted model itself is
            exact either way.
        priors: Whether priors of the parameters enter the fit. Without them it is one of maximum marginal likelihood,
            within the bounds of the parameters, as in the BOSS paper; a few values are then easily explained by noise
            alone. Further starts are drawn from the priors either way.
        noise: Variance of the noise that all values share, in units of the values' variance, where it is known and not
            to be learned: such as 1e-6 for an objective that is computed exactly.
        levels: Levels of the context that have noise, mean and scale of their own (`seqopt.models.levels`): those of a
            cheap score and a costly assay, say. ``encoder`` has to encode their variable. `model` sees values
            standardised by these.
        mean: Prior mean of the values at strings (what a cheaper method predicts, say): a function from a list of
            strings to a list of numbers, in the units of the values that `fit` is given, which an optimiser that
            minimises gives with the opposite sign; or one that takes its units from these (`seqopt.models.DataMean`). A
            constant is learned besides. `model` sees what is left without it.

    Raises:
        InputError: If ``restarts`` < 1, ``refit_growth`` < 0, ``fit_size`` < 2, both ``tokenizer`` and ``encoder`` are
            given, or the kernel reads a field that ``encoder`` does not have.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> gp = StringGP(restarts=1)
        >>> gp.fit(["AAAA", "AAAT", "TTTA", "TTTT"], [0.0, 1.0, 3.0, 4.0], rng=rng)
        >>> mean, std = gp.predict(["ATAA", "TTAT"])
        >>> bool(mean[0] < mean[1])
        True
    """

    def __init__(
        self,
        kernel: gpytorch.kernels.Kernel | None = None,
        *,
        tokenizer: str | Tokenizer | None = None,
        encoder: StringEncoder | None = None,
        restarts: int = 2,
        refit_growth: float = 0.1,
        fit_size: int = 1000,
        interpolate: bool = True,
        priors: bool = True,
        noise: float | None = None,
        mean: PriorMean | None = None,
        levels: Levels | None = None,
    ) -> None:
        if restarts < 1:
            raise InputError(f"restarts is {restarts}; at least 1 fit is needed")
        if refit_growth < 0:
            raise InputError(f"refit_growth is {refit_growth}; expected 0 (always refit) or more")
        if fit_size < 2:
            raise InputError(f"fit_size is {fit_size}; a fit needs at least 2 strings")
        self.kernel = default_kernel() if kernel is None else kernel
        for part in self.kernel.modules():
            if getattr(part, "discrete", ()):
                raise InputError(
                    f"{type(part).__name__} has parameters that no gradient moves ({', '.join(part.discrete)}): use "
                    "FullyBayesianGP, which draws them"
                )
        self.restarts = restarts
        self.refit_growth = refit_growth
        self.fit_size = fit_size
        self.interpolate = interpolate
        if noise is not None and not 0.0 < noise < math.inf:
            raise InputError(f"noise is {noise!r}; expected a positive number, or None to learn it")
        self.priors = priors
        self.noise = noise
        if tokenizer is not None and encoder is not None:
            raise InputError("give a tokenizer or an encoder, not both: an encoder has its own tokeniser")
        super().__init__(
            Encoder("characters" if tokenizer is None else tokenizer) if encoder is None else encoder, mean, levels
        )
        if isinstance(encoder, FieldEncoder):
            bind_fields(self.kernel, encoder.columns)
        self._encoder_chosen = tokenizer is not None or encoder is not None
        self._chosen_encoder = self.encoder if self._encoder_chosen else None
        self._model: SingleTaskGP | None = None
        self._parameters: Parameters | None = None
        self._measurements: MeasurementVariance | None = None
        self._full_fit_size = 0
        self._width = 0
        self._length: int | None = None
        self._keys: list[str] = []
        self._pool: PoolSpace | None = None

    def config_arguments(self) -> dict[str, Any]:
        """See `seqopt.utils.config.Configurable`: the kernel as it begins, and what turns strings into its inputs."""
        return {
            "kernel": self.kernel,
            "encoder": self._chosen_encoder,
            "restarts": self.restarts,
            "refit_growth": self.refit_growth,
            "fit_size": self.fit_size,
            "interpolate": self.interpolate,
            "priors": self.priors,
            "noise": self.noise,
            "mean": self.mean,
            **({} if self.levels is None else {"levels": self.levels}),
        }

    takes_noise_variance = True
    """`fit` takes the known noise of each value."""

    takes_censored = True
    """`fit` takes values of which only a limit is known."""

    def bind(self, space: Space) -> None:
        """Take the width of token rows from ``space``, and its encoder unless a tokeniser was chosen.

        Called by the optimiser. `encode`, and so `model`, then take every string of the space.

        Raises:
            InputError: If a pool has candidates of different lengths for a kernel that compares position by position,
                or ones that have no features (looked for among 20,000 of them).
        """
        if self._model is None:
            if not self._encoder_chosen:
                self.encoder = space.encoder
            elif isinstance(self.encoder, JointEncoder) and not self.encoder.tokens_chosen:
                self.encoder = JointEncoder(self.encoder.features, space.encoder)
        bind_symbols(self.kernel, self.encoder)
        self._pool = space if isinstance(space, PoolSpace) else None
        if any(getattr(part, "one_length", False) for part in self.kernel.modules()):
            (string,) = space.sample(1, np.random.default_rng(0))
            (self._length,) = self._lengths([space.key(string)])
        # Keys of molecules are readable by definition, and to compute all their features here would take long.
        if self._pool is not None and not (self._pool.kind == "molecule" and self._length is None):
            looked_at = self._pool.keys
            if self._length is None:  # to read features can take long
                indices = np.random.default_rng(0).choice(len(looked_at), min(20_000, len(looked_at)), replace=False)
                looked_at = [looked_at[int(index)] for index in indices]
            for message in self.unsupported(looked_at).values():
                raise InputError(f"{message}: leave this candidate out, or choose another surrogate")

    def unsupported(self, strings: Sequence[str]) -> dict[int, str]:
        """Why strings cannot be compared, by their indices: those without features, or of another length than the
        strings of the space where the kernel compares position by position. Empty where all can be compared.
        """
        if self._length is not None:
            return {
                index: f"{strings[index]!r} has {length} symbols, but this surrogate compares strings of one length, "
                f"position by position, and those of the space have {self._length}"
                for index, length in enumerate(self._lengths(strings))
                if length != self._length
            }
        features = self.encoder
        if isinstance(features, FeatureEncoder | JointEncoder | FieldEncoder):
            return features.unsupported(strings)
        return {}

    def _lengths(self, strings: Sequence[str]) -> list[int]:
        encoded = self.encoder.encode(strings)
        if isinstance(encoded, Fields):
            # Tokens, where there are any, are the last field.
            encoded = list(encoded.parts.values())[-1]
        if not isinstance(encoded, EncodedStrings):
            raise InputError(
                f"{type(self.kernel).__name__} compares strings position by position, and the encoder "
                f"{self.encoder.name} makes no tokens"
            )
        lengths: list[int] = encoded.lengths.tolist()
        return lengths

    @property
    def model(self) -> SingleTaskGP:
        """The fitted BoTorch model, on token rows (float64, ``... x n x width``) and in the values' units.

        Raises:
            ModelError: Before the first fit.
        """
        if self._model is None:
            raise ModelError("this surrogate has not been fitted yet: call fit(strings, values, rng=...)")
        return self._model

    def encode(self, strings: Sequence[str]) -> torch.Tensor:
        """Rows of tokens that `model` takes for ``strings``, also for strings longer than those it was trained on."""
        encoded = self.encoder.encode(strings)
        rows: torch.Tensor = encoded.to_tensor(max(self._width, encoded.width))
        return rows

    @property
    def hyperparameters(self) -> dict[str, float]:
        """Kernel parameters, output scale, noise variance and mean (the last three for standardised values)."""
        model = self.model
        values = {
            name: float(getattr(part, name).detach().mean())
            for name in ("match_decay", "gap_decay", "lengthscale", "weight", "weight_variance")
            for part in model.covar_module.base_kernel.modules()
            if isinstance(getattr(part, name, None), torch.Tensor)
        }
        return values | {
            "outputscale": float(model.covar_module.outputscale.detach()),
            "noise_variance": float(model.likelihood.noise.detach().mean()),
            "mean": float(model.mean_module.constant.detach()),
            **self._noise_by_level(),
        }

    def _noise_by_level(self) -> dict[str, float]:
        if self.levels is None:
            return {}
        found = self.model.likelihood.by_level.detach().tolist()
        return {f"noise_variance[{level}]": noise for level, noise in zip(self.levels.values, found, strict=True)}

    def fit(
        self,
        strings: Sequence[str],
        values: npt.ArrayLike,
        *,
        rng: np.random.Generator,
        noise_variance: npt.ArrayLike | None = None,
        censored: npt.ArrayLike | None = None,
        full: bool | None = None,
    ) -> None:
        """Fit to ``strings`` and ``values``.

        Args:
            strings: n strings.
            values: n finite values, larger is better.
            rng: Draws the starts of a full fit.
            noise_variance: Known variance of the noise of each value (squared standard errors), 0 where unknown, in the
                values' units squared. A variance that all values share is learned besides.
            censored: What is known of each value: 0 if it is known, 1 if it is above the one given, -1 if it is below;
                see `seqopt.models.censoring`.
            full: Whether to fit the kernel's own parameters too; by default as the schedule says.

        Raises:
            InputError: If there are fewer than two strings, the numbers differ, a value is not finite, or a noise
                variance is negative.
        """
        targets = checked_values(strings, values)
        sides = checked_sides(strings, censored)
        targets = self._less_mean(strings, targets)
        known = checked_noise(strings, noise_variance)
        encoded = self.encoder.encode(strings)
        bind_symbols(self.kernel, self.encoder)
        pool_width = self._pool_width(self._pool) if self._pool is not None else 0
        width = max(self._width, encoded.width, pool_width)
        if width > self._width:
            self._width = width
            self._forget_columns()
        encoded = encoded.padded(self._width)
        if full is None:
            grown = len(strings) - self._full_fit_size >= self.refit_growth * self._full_fit_size
            full = grown or not set(self._keys) <= set(strings)
        numbers, own_scales = None, None
        if self.levels is not None:
            numbers = self.levels.numbers(strings)
            own_scales = self.levels.scales(numbers, targets)
            targets = own_scales.standardized(numbers, targets)
            known = known / own_scales.units[numbers] ** 2
        data = TrainingData(encoded, targets, known, sides, numbers)
        informative = data.differ
        if not informative:
            # No number: the model sees values whose sign or scale may be turned.
            logger.warning(
                "all %d values are equal, but for rounding: the model cannot tell strings apart yet",
                len(targets),
            )
        estimate = PointEstimate(
            self.kernel, self._parameters, self.fit_size, self.interpolate, self.priors, self.noise, self.levels
        )
        model = estimate.build(data)
        if learns_anew := self._parameters is not None and not suits(model, self._parameters):
            # Nothing has been learned of a kernel of this shape yet.
            self._parameters = None
        full = learns_anew or full
        model.symbols = len(self.encoder.alphabet) if isinstance(self.encoder, Encoder) else 0
        if informative:
            estimate.learn(model, data, rng, self.restarts if full else 1, full=full)
        if informative and full:
            self._full_fit_size = len(strings)
        previous = self._parameters
        self._parameters = parameters_of(model)
        kernel_changed = previous is None or any(
            previous.get(name) != value
            for name, value in self._parameters.items()
            if name.startswith("covar_module.base_kernel.")
        )
        if kernel_changed:
            self._forget_columns()
        model.eval()
        self._model = model
        self._level_scales = None if own_scales is None else own_scales.within(*units_of(model))
        self._keys = list(strings)
        self._measurements = None
        self._state = self._gaussian_state(model, encoded, sides)
        if sides is not None:
            # Predictions of the model, too, are given what stands for the censored values.
            learned = model.likelihood.noise.detach()
            if isinstance(model.likelihood, LevelledNoise):
                learned = model.likelihood.by_level.detach()[model.likelihood.levels]
            model.likelihood.replaced((self._state.observed_noise - learned)[0])
            model.set_train_data(targets=self._state.targets[0], strict=False)

    def measurement_std(self, strings: Sequence[Item]) -> npt.NDArray[np.floating]:
        """Standard deviation of a measurement, noise included, about the predicted mean of each string.

        Unlike `predict` and `posterior`, which hold at the fitted parameters, it counts that these are uncertain: see
        `seqopt.models.measurements`. With more than `AVERAGED` strings, they are taken as they are. Where values are
        censored, uncertain parameters widen intervals by the factor by which they do given the exact values alone.

        Args:
            strings: N strings, or queries, which stand for measurements in their contexts.

        Returns:
            N, in the values' units; of queries, in those in which each is measured.

        Raises:
            ModelError: Before the first fit.
        """
        state = self.fitted
        exact = state.of_exact()
        if len(state.keys) > AVERAGED or exact is None or len(exact.keys) < 2:
            if any(isinstance(item, Query) for item in strings):
                outcome = self.conditioned().at(strings).moments.outcome_variance[0]
                return self.untransform_outcomes(strings, 0.0, outcome.numpy())[1]
            std, unit = self.predict(cast("Sequence[str]", strings))[1], self.units[1]
            found: npt.NDArray[np.floating] = np.sqrt(std**2 + unit**2 * float(state.noise_variance[0]))
            return found
        if self._measurements is None:
            kernel = self.model.covar_module.base_kernel
            self._measurements = MeasurementVariance(exact, kernel, self._width)
        encoded = self.encoder.encode(strings)
        # Levels have noise of their own.
        noise = 1.0 if self.levels is None else (state.noise_at(strings)[0] / state.noise_variance[0]).numpy()
        variance = self._measurements.at(encoded, noise)
        if exact is not state:
            variance = variance * _narrowed(state, exact, encoded)
        return self.untransform_outcomes(strings, 0.0, variance.numpy())[1]

    @property
    def noise_std(self) -> float:
        """Standard deviation of the noise of a measurement at the fitted parameters, in the values' units.

        Raises:
            ModelError: Before the first fit.
        """
        return float(self.units[1] * np.sqrt(float(self.fitted.noise_variance[0])))

    def _gaussian_state(self, model: SingleTaskGP, encoded: Encoded, sides: Sides | None) -> BatchedGPState:
        known = getattr(model.likelihood, "known", torch.zeros(len(encoded), dtype=torch.float64))
        constant, scale, noise = (
            parameter.detach().reshape(-1).to(torch.float64).mean(0, keepdim=True)
            for parameter in (model.mean_module.constant, model.covar_module.outputscale, model.likelihood.noise)
        )
        wanted = targets_of(self._keys)
        level_noise = None
        if self.levels is not None:
            by_level = model.likelihood.by_level.detach().to(torch.float64)[None]
            level_noise = LevelNoise.of(self.levels, by_level, known, self.levels.numbers(self._keys))
        return BatchedGPState.build(
            KernelEvaluator(model.covar_module.base_kernel, self._width),
            list(self._keys),
            encoded,
            model.train_targets.detach().reshape(-1),
            constant,
            scale,
            noise,
            known,
            self._prior_mean(),
            None if wanted is None else self.encoder.encode(wanted).padded(self._width),
            None if sides is None else torch.from_numpy(sides),
            level_noise,
        )

    def state_dict(self) -> dict[str, Any]:
        """Parameters of the last fit and the size of the last full fit, as JSON values."""
        return {"parameters": self._parameters, "full_fit_size": self._full_fit_size}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`; the next fit continues from there."""
        self._parameters = state["parameters"]
        self._full_fit_size = state["full_fit_size"]
        self._keys = []
        self._model = self._state = self._measurements = None
        self._forget_columns()

    @property
    def units(self) -> tuple[float, float]:
        """See `GaussianSurrogate`: those of the target, where levels have their own."""
        return self._target_units() or units_of(self.model)


def _narrowed(state: BatchedGPState, exact: BatchedGPState, encoded: Encoded) -> torch.Tensor:
    """Variances of measurements of N strings, as a share of what they are given the exact values alone."""
    own = state.evaluator.self_similarity(encoded)
    prior = state.scale[0] * torch.from_numpy(state.evaluator.variance(encoded, own)) + state.noise_variance[0]
    with_limits, without = (
        prior - (found.unconditioned.inverse[0] @ found.unconditioned.prior_rows(encoded, own)[0]).square().sum(0)
        for found in (state, exact)
    )
    return with_limits / without
