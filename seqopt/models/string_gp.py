"""Gaussian-process surrogate on strings.

Model: values = c + f(s) + noise, f ~ GP(0, outputscale * k), with k a kernel on strings (by default the normalised
sub-sequence kernel of order 5) or on features of them, fitted by maximum a posteriori marginal likelihood (Rasmussen
and Williams 2006, equation 2.30, plus log priors) through BoTorch's L-BFGS-B, from several starts.
"""

from __future__ import annotations

import copy
import logging
import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import gpytorch
import numpy as np
import numpy.typing as npt
import torch
from botorch.exceptions.errors import ModelFittingError
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms.outcome import Standardize
from botorch.optim.fit import fit_gpytorch_mll_scipy
from botorch.optim.utils import sample_all_priors
from botorch.settings import validate_input_scaling
from gpytorch.constraints import GreaterThan
from gpytorch.priors import LogNormalPrior, NormalPrior

from seqopt.encoding import Encoded, Encoder, FeatureEncoder, JointEncoder, StringEncoder, Tokenizer
from seqopt.errors import InputError, ModelError
from seqopt.kernels import SubsequenceKernel
from seqopt.kernels.threads import one_thread
from seqopt.models.checks import checked_noise, checked_values
from seqopt.models.covariance import AdaptiveKernel, FittedKernel, FloatArray, KernelEvaluator
from seqopt.models.gaussian import GaussianSurrogate
from seqopt.models.gp_state import BatchedGPState
from seqopt.models.marginal_likelihood import DenseMarginalLogLikelihood
from seqopt.models.noise import PartlyKnownNoise
from seqopt.spaces import PoolSpace

logger = logging.getLogger(__name__)

MIN_NOISE = 1e-4
"""Smallest noise variance, in units of the values' variance."""

SMALLEST_SPREAD = 1e-150
"""Standard deviation of values below which they are not scaled: its square must be a number."""

FIT_OPTIONS = {"maxiter": 60, "ftol": 1e-6}

INTERPOLATED = 100
"""Number of training strings from which a fit interpolates the kernel in the gap decay: fewer cost less than that."""

SURVEYED = 500
"""Number of training strings up to which every start of a full fit of a string kernel is followed on all of them."""

SURVEY = 400
"""Of more, so many are surveyed from every start, and the best parameters found improved on all."""

SINGLE_THREADED = 512
"""Number of training strings up to which a fit runs in one thread, see `seqopt.kernels.threads.one_thread`."""


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


@dataclass(frozen=True)
class _Data:
    """What a model is fitted to: strings, their values, and the known variances of their noise."""

    encoded: Encoded
    targets: FloatArray
    known: FloatArray

    def take(self, indices: npt.NDArray[np.int64]) -> _Data:
        """Those at ``indices``."""
        return _Data(self.encoded.take(indices), self.targets[indices], self.known[indices])


class StringGP(GaussianSurrogate):
    """Gaussian process over strings, fitted by maximum a posteriori marginal likelihood.

    Values are standardised inside, so the weak priors (log-normal on the noise variance and on the output scale,
    normal on the decays) have one meaning for all objectives. Kernel parameters are refitted when the data have grown
    by ``refit_growth`` since the last time, and only output scale, noise and mean are fitted in between: a new
    gap decay makes every cached column of a pool worthless, a new output scale does not.

    Args:
        kernel: A `gpytorch.kernels.Kernel` on rows of tokens (or on what ``encoder`` gives), without output scale.
            Default: `default_kernel`.
        tokenizer: A tokeniser or its name. By default the one of the space that the optimiser searches, or
            characters where there is none.
        encoder: Turns strings into what ``kernel`` takes, where that is not tokens alone: a
            `seqopt.encoding.FeatureEncoder`, or a `seqopt.encoding.JointEncoder`.
        restarts: Starts of a full fit: the parameters of the last fit (or the kernel's own), then draws from the
            priors. A string kernel fitted to more than 500 strings follows them on 400 of these, and the best on all.
        refit_growth: A full fit is made when n has grown by this fraction since the last full fit, or the strings
            fitted last are not among the new ones.
        fit_size: Parameters are fitted to at most so many strings, a random choice of all: a step of a fit to n strings
            costs n^2 kernel evaluations and n^3 operations. The model is always conditioned on all.
        interpolate: Whether full fits to 100 strings or more take Gram matrices at other gap decays from interpolation
            where the kernel can (see `seqopt.kernels.SubsequenceKernel.interpolating`). The fitted model itself is
            exact either way.

    Raises:
        InputError: If ``restarts`` < 1, ``refit_growth`` < 0, ``fit_size`` < 2, or both ``tokenizer`` and ``encoder``
            are given.

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
    ) -> None:
        if restarts < 1:
            raise InputError(f"restarts is {restarts}; at least 1 fit is needed")
        if refit_growth < 0:
            raise InputError(f"refit_growth is {refit_growth}; expected 0 (always refit) or more")
        if fit_size < 2:
            raise InputError(f"fit_size is {fit_size}; a fit needs at least 2 strings")
        self.kernel = default_kernel() if kernel is None else kernel
        self.restarts = restarts
        self.refit_growth = refit_growth
        self.fit_size = fit_size
        self.interpolate = interpolate
        if tokenizer is not None and encoder is not None:
            raise InputError("give a tokenizer or an encoder, not both: an encoder has its own tokeniser")
        super().__init__(Encoder("characters" if tokenizer is None else tokenizer) if encoder is None else encoder)
        self._encoder_chosen = tokenizer is not None or encoder is not None
        self._model: SingleTaskGP | None = None
        self._parameters: dict[str, list[float]] | None = None
        self._full_fit_size = 0
        self._width = 0
        self._length: int | None = None
        self._keys: list[str] = []
        self._pool: PoolSpace | None = None

    takes_noise_variance = True
    """`fit` takes the known noise of each value."""

    def bind(self, space: Any) -> None:
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
        self._pool = space if isinstance(space, PoolSpace) else None
        if getattr(self.kernel, "one_length", False):
            (string,) = space.sample(1, np.random.default_rng(0))
            (self._length,) = self._lengths([space.key(string)])
        if self._pool is not None:
            looked_at = self._pool.keys
            if self._length is None:  # to read features can take long
                places = np.random.default_rng(0).permutation(len(looked_at))[:20_000]
                looked_at = [looked_at[int(place)] for place in places]
            for message in self.unsupported(looked_at).values():
                raise InputError(f"{message}: leave this candidate out, or choose another surrogate")

    def unsupported(self, strings: Sequence[str]) -> dict[int, str]:
        """Why strings cannot be compared, by their places: those without features, or of another length than the
        strings of the space where the kernel compares position by position. Empty where all can be compared.
        """
        if self._length is not None:
            return {
                place: f"{strings[place]!r} has {length} symbols, but this surrogate compares strings of one length, "
                f"position by position, and those of the space have {self._length}"
                for place, length in enumerate(self._lengths(strings))
                if length != self._length
            }
        features = self.encoder
        return features.unsupported(strings) if isinstance(features, FeatureEncoder | JointEncoder) else {}

    def _lengths(self, strings: Sequence[str]) -> list[int]:
        lengths: list[int] = self.encoder.encode(strings).lengths.tolist()
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
        """Rows of tokens that `model` takes for ``strings``."""
        rows: torch.Tensor = self.encoder.encode(strings).to_tensor(self._width)
        return rows

    @property
    def hyperparameters(self) -> dict[str, float]:
        """Kernel parameters, output scale, noise variance and mean (the last three for standardised values)."""
        model = self.model
        values = {
            name: float(getattr(model.covar_module.base_kernel, name).detach().mean())
            for name in ("match_decay", "gap_decay", "lengthscale", "weight")
            if isinstance(getattr(model.covar_module.base_kernel, name, None), torch.Tensor)
        }
        return values | {
            "outputscale": float(model.covar_module.outputscale.detach()),
            "noise_variance": float(model.likelihood.noise.detach().mean()),
            "mean": float(model.mean_module.constant.detach()),
        }

    def fit(
        self,
        strings: Sequence[str],
        values: npt.ArrayLike,
        *,
        rng: np.random.Generator,
        noise_variance: npt.ArrayLike | None = None,
        full: bool | None = None,
    ) -> None:
        """Fit to ``strings`` and ``values``.

        Args:
            strings: n strings.
            values: n finite values, larger is better.
            rng: Draws the starts of a full fit.
            noise_variance: Known variance of the noise of each value (squared standard errors), 0 where unknown, in the
                values' units squared. A variance that all values share is learned besides.
            full: Whether to fit the kernel's own parameters too; by default as the schedule says.

        Raises:
            InputError: If there are fewer than two strings, the numbers differ, a value is not finite, or a noise
                variance is negative.
        """
        targets = checked_values(strings, values)
        known = checked_noise(strings, noise_variance)
        encoded = self.encoder.encode(strings)
        pool_width = self._encoded_pool(self._pool).width if self._pool is not None else 0
        width = max(self._width, encoded.width, pool_width)
        if width > self._width:
            self._width = width
            self._forget_columns()
        encoded = encoded.padded(self._width)
        if full is None:
            grown = len(strings) - self._full_fit_size >= self.refit_growth * self._full_fit_size
            full = grown or not set(self._keys) <= set(strings)
        informative = bool(np.ptp(targets) > 0)
        if not informative:
            logger.warning("all %d values equal %g: the model cannot tell strings apart yet", len(targets), targets[0])
        data = _Data(encoded, targets, known)
        model = self._build(data)
        if informative:
            self._learn(model, data, rng, self.restarts if full else 1, full=full)
        if informative and full:
            self._full_fit_size = len(strings)
        previous = self._parameters
        self._parameters = _parameters_of(model)
        kernel_changed = previous is None or any(
            previous.get(name) != value
            for name, value in self._parameters.items()
            if name.startswith("covar_module.base_kernel.")
        )
        if kernel_changed:
            self._forget_columns()
        model.eval()
        self._model = model
        self._keys = list(strings)
        self._state = self._gaussian_state(model, encoded)

    def _build(self, data: _Data) -> SingleTaskGP:
        targets, known = data.targets, data.known
        options = {
            "noise_prior": LogNormalPrior(-4.0, 1.0),
            "noise_constraint": GreaterThan(MIN_NOISE, transform=None, initial_value=0.02),
        }
        inputs = data.encoded.to_tensor()
        likelihood = gpytorch.likelihoods.GaussianLikelihood(**options)
        # BoTorch scales no values that differ by less than 1e-8: dissociation constants in mol/l do. Equal ones have a
        # standard deviation of rounding errors, which is none to scale by.
        smallest = SMALLEST_SPREAD if np.ptp(targets) > 0 else math.inf
        if known.any():
            # The model sees standardised values.
            spread = targets.std(ddof=1)
            spread = spread if spread >= smallest else 1.0
            likelihood = PartlyKnownNoise(torch.from_numpy(known / spread**2), inputs, **options)
        covariance = gpytorch.kernels.ScaleKernel(
            copy.deepcopy(self.kernel), outputscale_prior=LogNormalPrior(0.0, 1.0)
        )
        with validate_input_scaling(False), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # BoTorch remarks on the scale of tokens, and on equal values
            model = SingleTaskGP(
                inputs,
                torch.from_numpy(targets)[:, None],
                likelihood=likelihood,
                covar_module=covariance,
                mean_module=gpytorch.means.ConstantMean(),
                outcome_transform=Standardize(1, min_stdv=smallest),
            )
        model.to(torch.float64)
        if self._parameters is None:
            covariance.outputscale = 1.0
        else:
            _set_parameters(model, self._parameters)
        return model

    def _learn(self, model: SingleTaskGP, data: _Data, rng: np.random.Generator, restarts: int, *, full: bool) -> None:
        count = len(data.targets)
        if count > self.fit_size:
            if not self._learn_from(self.fit_size, model, data, rng, restarts, full=full):
                logger.warning(
                    "all %d values chosen to learn from are equal: parameters stay as they were", self.fit_size
                )
            return
        costly = full and count > SURVEYED and isinstance(model.covar_module.base_kernel, FittedKernel)
        # Where the starts lead shows on fewer strings, whose Gram matrices can be interpolated.
        if costly and restarts > 1 and self._learn_from(SURVEY, model, data, rng, restarts, full=full):
            restarts = 1
        self._optimize(model, rng, restarts, full=full)

    def _learn_from(
        self, count: int, model: SingleTaskGP, data: _Data, rng: np.random.Generator, restarts: int, *, full: bool
    ) -> bool:
        """Set the parameters of ``model`` by ``count`` strings chosen at random, unless these have equal values."""
        chosen = data.take(np.sort(rng.choice(len(data.targets), size=count, replace=False)))
        if np.ptp(chosen.targets) == 0:
            return False
        part = self._build(chosen)
        self._learn(part, chosen, rng, restarts, full=full)
        _transfer(part, model)
        return True

    def _optimize(self, model: SingleTaskGP, rng: np.random.Generator, restarts: int, *, full: bool) -> None:
        likelihood = DenseMarginalLogLikelihood(model.likelihood, model)
        own = model.covar_module.base_kernel
        if full and isinstance(own, AdaptiveKernel):
            own.adapt(model.train_inputs[0])
            if self._parameters is not None:
                _set_parameters(model, self._parameters)
        learned = [parameter for parameter in own.parameters() if parameter.requires_grad]
        for parameter in learned:
            parameter.requires_grad_(full)
        start = _parameters_of(model)
        with self._interpolating(model) if full else nullcontext(), _engine_threads(own):
            best = self._best_of_restarts(likelihood, start, rng, restarts)
        for parameter in learned:
            parameter.requires_grad_(True)
        if best is None:
            logger.warning("no start of the fit succeeded; the model keeps its earlier parameters")
        _set_parameters(model, start if best is None else best[1])
        if isinstance(own, FittedKernel):
            own.forget()

    def _interpolating(self, model: SingleTaskGP) -> AbstractContextManager[Any]:
        kernel = model.covar_module.base_kernel
        (inputs,) = model.train_inputs
        if not self.interpolate or len(inputs) < INTERPOLATED or not isinstance(kernel, FittedKernel):
            return nullcontext()
        return kernel.interpolating(inputs)

    def _best_of_restarts(
        self,
        likelihood: DenseMarginalLogLikelihood,
        start: dict[str, list[float]],
        rng: np.random.Generator,
        restarts: int,
    ) -> tuple[float, dict[str, list[float]]] | None:
        """Highest objective reached, and the parameters there."""
        model = likelihood.model
        best: tuple[float, dict[str, list[float]]] | None = None
        for attempt in range(restarts):
            _set_parameters(model, start)
            if attempt:
                with torch.random.fork_rng(devices=[]):
                    torch.manual_seed(int(rng.integers(2**31)))
                    sample_all_priors(model)
                _set_parameters(model, {name: start[name] for name in _frozen(model)})
            model.train()
            threads = one_thread() if len(model.train_targets) <= SINGLE_THREADED else nullcontext()
            try:
                with threads, warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # a failed start is reported below
                    fit_gpytorch_mll(
                        likelihood,
                        optimizer=fit_gpytorch_mll_scipy,
                        optimizer_kwargs={"options": FIT_OPTIONS},
                        max_attempts=1,
                    )
                    model.train()
                    with torch.no_grad():
                        reached = float(likelihood(model(*model.train_inputs), model.train_targets))
            except InputError:
                raise  # strings that the kernel cannot take are no matter of luck
            except (ModelFittingError, ModelError, ValueError, RuntimeError) as error:
                logger.debug("fit from start %d failed: %s", attempt, error)
                continue
            if np.isfinite(reached) and (best is None or reached > best[0]):
                best = reached, _parameters_of(model)
        return best

    def _gaussian_state(self, model: SingleTaskGP, encoded: Encoded) -> BatchedGPState:
        known = getattr(model.likelihood, "known", torch.zeros(len(encoded), dtype=torch.float64))
        constant, scale, noise = (
            parameter.detach().reshape(-1).to(torch.float64).mean(0, keepdim=True)
            for parameter in (model.mean_module.constant, model.covar_module.outputscale, model.likelihood.noise)
        )
        return BatchedGPState.build(
            KernelEvaluator(model.covar_module.base_kernel, self._width),
            list(self._keys),
            encoded,
            model.train_targets.detach().reshape(-1),
            constant,
            scale,
            noise,
            known,
        )

    def state_dict(self) -> dict[str, Any]:
        """Parameters of the last fit and the size of the last full fit, as JSON values."""
        return {"parameters": self._parameters, "full_fit_size": self._full_fit_size}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`; the next fit continues from there."""
        self._parameters = state["parameters"]
        self._full_fit_size = state["full_fit_size"]
        self._keys = []
        self._model = self._state = None
        self._forget_columns()

    @property
    def units(self) -> tuple[float, float]:
        """See `GaussianSurrogate`."""
        return _units_of(self.model)


@contextmanager
def _engine_threads(kernel: gpytorch.kernels.Kernel) -> Iterator[None]:
    """Let the kernel use as many threads as torch has now, whatever torch's number is within."""
    if not isinstance(kernel, FittedKernel):
        yield
        return
    before = kernel.threads
    kernel.threads = torch.get_num_threads() if before is None else before
    try:
        yield
    finally:
        kernel.threads = before


def _units_of(model: SingleTaskGP) -> tuple[float, float]:
    """Mean and standard deviation by which a model standardises its values."""
    transform = model.outcome_transform
    return float(transform.means.squeeze()), float(transform.stdvs.squeeze())


def _transfer(source: SingleTaskGP, target: SingleTaskGP) -> None:
    """Give ``target`` the parameters of ``source``, of which each standardises by its own values."""
    _set_parameters(target, _parameters_of(source))
    (source_mean, source_unit), (mean, unit) = _units_of(source), _units_of(target)
    ratio = source_unit / unit
    with torch.no_grad():
        target.covar_module.outputscale = float(source.covar_module.outputscale) * ratio**2
        target.likelihood.noise = max(float(source.likelihood.noise.mean()) * ratio**2, MIN_NOISE)
        target.mean_module.constant.copy_(source.mean_module.constant * ratio + (source_mean - mean) / unit)


def _frozen(model: torch.nn.Module) -> list[str]:
    return [name for name, parameter in model.named_parameters() if not parameter.requires_grad]


def _parameters_of(model: torch.nn.Module) -> dict[str, list[float]]:
    return {name: parameter.detach().reshape(-1).tolist() for name, parameter in model.named_parameters()}


def _set_parameters(model: torch.nn.Module, values: dict[str, list[float]]) -> None:
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name not in values:
                continue
            parameter.copy_(torch.tensor(values[name], dtype=parameter.dtype).reshape(parameter.shape))
