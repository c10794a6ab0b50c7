"""Parameters of a Gaussian process on strings, by maximum a posteriori marginal likelihood.

The objective is that of Rasmussen and Williams (2006), equation 2.30, plus log priors. BoTorch's L-BFGS-B maximises it
from several starts. With censored values it is the evidence of expectation propagation, whose sites are found anew at
all parameters that are tried: the gradient is that of the evidence itself (`seqopt.models.censoring`).
"""

from __future__ import annotations

import copy
import logging
import math
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import gpytorch
import numpy as np
import numpy.typing as npt
import torch
from botorch.models import SingleTaskGP
from botorch.optim.fit import fit_gpytorch_mll_scipy
from botorch.optim.utils import sample_all_priors
from botorch.settings import validate_input_scaling

from seqopt.encoding import Encoded
from seqopt.errors import InputError, ModelError
from seqopt.kernels.threads import one_thread
from seqopt.models.censoring import Sides, telling
from seqopt.models.checks import differ
from seqopt.models.covariance import AdaptiveKernel, FittedKernel, FloatArray
from seqopt.models.dense_likelihood import DenseLikelihood, family_of
from seqopt.models.levels import Levels
from seqopt.models.log_units import LogBounds, LogUnitNormalPrior
from seqopt.models.marginal_likelihood import DenseMarginalLogLikelihood
from seqopt.models.noise import LevelledNoise, PartlyKnownNoise
from seqopt.models.row_model import RowModel, ScaledStandardize

logger = logging.getLogger(__name__)

Parameters = dict[str, list[float]]
"""Raw parameters of a model by their names, as JSON values."""

NOISE_BOUNDS = (1e-4, 1e4)
"""Smallest and largest noise variance, in units of the values' variance."""

SCALE_BOUNDS = (1e-8, 1e8)
"""Smallest and largest output scale, in units of the values' variance."""

SCALE_PRIOR, NOISE_PRIOR = (0.0, 1.0), (-4.0, 1.0)
"""Mean and standard deviation of the logarithms of output scale and noise variance, in the same units."""

SMALLEST_SPREAD = 1e-150
"""Standard deviation of values below which they are not scaled: its square must be a number."""

FIT_OPTIONS = {"maxiter": 200, "gtol": 1e-5}
"""Those of L-BFGS-B."""

TOLERANCE = 1e-4
"""Gain of an iteration, in log density of all values, below which a fit ends."""

FURTHER_STARTS = 5
"""Further draws from the priors that a fit starts from if all its starts fail."""

INTERPOLATED = 60
"""Number of training strings from which a fit interpolates the kernel in the gap decay: fewer cost less than that."""

SURVEYED = 500
"""Number of training strings up to which every start of a full fit of a string kernel is followed on all of them."""

SURVEY = 400
"""Of more, so many are surveyed from every start, and the best parameters found improved on all."""

DENSE = 1000
"""Largest number of training strings of a fit without a graph: its matrices are kept whole."""

COMMON = ("mean_module.raw_constant", "covar_module.raw_outputscale", "likelihood.noise_covar.raw_noise")
"""Parameters of every model, of which the last two are logarithms (`LogBounds`)."""

SINGLE_THREADED = 512
"""Number of training strings up to which a fit runs in one thread, see `seqopt.kernels.threads.one_thread`."""


@dataclass(frozen=True)
class TrainingData:
    """What a model is fitted to.

    Attributes:
        encoded: n strings.
        targets: Their values, or limits of them.
        known: Known variances of their noise.
        sides: Which values are limits (`seqopt.models.censoring`); `None` where none is.
        numbers: The level of each value, where levels have noise of their own.
    """

    encoded: Encoded
    targets: FloatArray
    known: FloatArray
    sides: Sides | None = None
    numbers: npt.NDArray[np.int64] | None = None

    def take(self, indices: npt.NDArray[np.int64]) -> TrainingData:
        """Those at ``indices``."""
        sides = None if self.sides is None or not self.sides[indices].any() else self.sides[indices]
        numbers = None if self.numbers is None else self.numbers[indices]
        return TrainingData(self.encoded.take(indices), self.targets[indices], self.known[indices], sides, numbers)

    @property
    def telling(self) -> FloatArray:
        """Values that have a say in mean and scale; see `seqopt.models.censoring.telling`."""
        found: FloatArray = self.targets[telling(self.targets, self.sides)]
        return found

    @property
    def differ(self) -> bool:
        """Whether values tell strings apart."""
        return differ(self.telling)


@dataclass(frozen=True)
class PointEstimate:
    """How the parameters of one model are found.

    Attributes:
        kernel: The kernel, without output scale; models get copies.
        start: Parameters of an earlier model of the same kernel, or `None` for the kernel's own. Those of a kernel of
            another shape are passed over, see `suits`.
        fit_size: Parameters are learned from at most so many strings, chosen at random.
        interpolate: Whether Gram matrices may be interpolated in the gap decay, from `INTERPOLATED` strings on.
        priors: Whether priors have a say in what is best; starts are drawn from them in any case.
        noise: Variance of the noise in units of the values' variance, where it is not learned.
        levels: Levels that have noise of their own; data say which level each value has.
        mean: Constant mean of standardised values, where it is not learned.
    """

    kernel: gpytorch.kernels.Kernel
    start: Parameters | None = None
    fit_size: int = 1000
    interpolate: bool = True
    priors: bool = True
    noise: float | None = None
    levels: Levels | None = None
    mean: float | None = None

    def build(self, data: TrainingData) -> SingleTaskGP:
        """The model of ``data`` at the parameters to start from."""
        targets, known = data.targets, data.known
        bounds, initial = NOISE_BOUNDS, 0.02
        if self.noise is not None:
            bounds, initial = (min(self.noise, bounds[0]), max(self.noise, bounds[1])), self.noise
        options = {
            "noise_prior": LogUnitNormalPrior(*NOISE_PRIOR),
            "noise_constraint": LogBounds(*bounds, initial_value=initial),
        }
        inputs = data.encoded.to_tensor()
        likelihood = gpytorch.likelihoods.GaussianLikelihood(**options)
        # BoTorch scales no values that differ by less than 1e-8: dissociation constants in mol/l do. Equal ones have a
        # standard deviation of rounding errors, which is none to scale by.
        smallest = SMALLEST_SPREAD if data.differ else math.inf
        if known.any() or data.sides is not None or self.levels is not None:
            # The model sees standardised values.
            spread = data.telling.std(ddof=1) if len(data.telling) > 1 else 0.0
            spread = spread if spread >= smallest else 1.0
            standardized = torch.from_numpy(known / spread**2)
            if self.levels is None:
                likelihood = PartlyKnownNoise(standardized, inputs, **options)
            else:
                assert data.numbers is not None
                of, levels = torch.from_numpy(data.numbers), self.levels
                likelihood = LevelledNoise(of, levels.count, levels.target_number, standardized, inputs, **options)
        # Limits on one side alone say nothing of how far beyond them the values lie: the mean would have no bound.
        only_limits = data.sides is not None and bool(data.sides.all())
        mean = gpytorch.means.ConstantMean(gpytorch.priors.NormalPrior(0.0, 1.0) if only_limits else None)
        covariance = gpytorch.kernels.ScaleKernel(
            copy.deepcopy(self.kernel),
            outputscale_prior=LogUnitNormalPrior(*SCALE_PRIOR),
            outputscale_constraint=LogBounds(*SCALE_BOUNDS, initial_value=1.0),
        )
        with validate_input_scaling(False), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # BoTorch remarks on the scale of tokens, and on equal values
            model = RowModel(
                inputs,
                torch.from_numpy(targets)[:, None],
                likelihood=likelihood,
                covar_module=covariance,
                mean_module=mean,
                outcome_transform=ScaledStandardize(
                    1,
                    None if data.sides is None else torch.from_numpy(telling(targets, data.sides)),
                    min_stdv=smallest,
                ),
            )
        model.to(torch.float64)
        self._begin(model)
        if self.noise is not None:
            model.likelihood.noise = self.noise
            model.likelihood.noise_covar.raw_noise.requires_grad_(False)
        if self.mean is not None:
            model.mean_module.constant = self.mean
            model.mean_module.raw_constant.requires_grad_(False)
        return model

    def _begin(self, model: SingleTaskGP) -> None:
        if self.start is not None and suits(model, self.start):
            set_parameters(model, self.start)

    def learn(
        self, model: SingleTaskGP, data: TrainingData, rng: np.random.Generator, restarts: int, *, full: bool
    ) -> None:
        """Set the parameters of ``model`` to the best that are found.

        Args:
            model: That which `build` makes of ``data``.
            data: What to learn from; not all values equal.
            rng: Chooses the strings to learn from, and draws the starts after the first.
            restarts: Number of starts.
            full: Whether to learn the kernel's own parameters, besides output scale, noise and mean.
        """
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
        self._optimize(model, data.sides, rng, restarts, full=full)

    def _learn_from(
        self,
        count: int,
        model: SingleTaskGP,
        data: TrainingData,
        rng: np.random.Generator,
        restarts: int,
        *,
        full: bool,
    ) -> bool:
        """Set the parameters of ``model`` by ``count`` strings chosen at random, unless these have equal values."""
        chosen = data.take(np.sort(rng.choice(len(data.targets), size=count, replace=False)))
        if not chosen.differ:
            return False
        part = self.build(chosen)
        self.learn(part, chosen, rng, restarts, full=full)
        _transfer(part, model)
        return True

    def _optimize(
        self, model: SingleTaskGP, sides: Sides | None, rng: np.random.Generator, restarts: int, *, full: bool
    ) -> None:
        limits = None if sides is None else torch.from_numpy(sides)
        likelihood = DenseMarginalLogLikelihood(model.likelihood, model, limits, priors=self.priors)
        own = model.covar_module.base_kernel
        if full and isinstance(own, AdaptiveKernel):
            # What was chosen by hand stays.
            named = model.covar_module.base_kernel.named_parameters()
            frozen = {name: one.detach().clone() for name, one in named if not one.requires_grad}
            own.adapt(model.train_inputs[0])
            for name, value in frozen.items():
                model.covar_module.base_kernel.get_parameter(name).data.copy_(value)
            self._begin(model)
        learned = [parameter for parameter in own.parameters() if parameter.requires_grad]
        for parameter in learned:
            parameter.requires_grad_(full)
        start = parameters_of(model)
        dense = self._dense(model, sides) if full else None
        interpolated = full and dense is None
        with self._interpolating(model) if interpolated else nullcontext(), _engine_threads(own):
            best = self._best_of_restarts(likelihood, start, rng, restarts, dense)
        for parameter in learned:
            parameter.requires_grad_(True)
        if best is None:
            logger.warning(
                "none of %d starts of the fit to %d values succeeded: parameters stay at their defaults or at those of "
                "the last fit, and predictions may be poor. Check the values for outliers and the kernel for NaN; the "
                "reasons are logged at the level DEBUG",
                restarts + FURTHER_STARTS,
                len(model.train_targets),
            )
        set_parameters(model, start if best is None else best[1])
        if isinstance(own, FittedKernel):
            own.forget()

    def _interpolating(self, model: SingleTaskGP) -> AbstractContextManager[Any]:
        kernel = model.covar_module.base_kernel
        (inputs,) = model.train_inputs
        if not self.interpolate or len(inputs) < INTERPOLATED or not isinstance(kernel, FittedKernel):
            return nullcontext()
        return kernel.interpolating(inputs)

    def _dense(self, model: SingleTaskGP, sides: Sides | None) -> DenseLikelihood | None:
        """The likelihood of all parameters without a graph, where the kernel has a family, which knows its priors."""
        (inputs,) = model.train_inputs
        plain = sides is None and not isinstance(model.likelihood, PartlyKnownNoise)
        if not plain or len(inputs) > DENSE:
            return None
        family = family_of(model.covar_module.base_kernel, inputs, priors=self.priors)
        if family is None:
            return None
        values = model.train_targets.detach().reshape(-1).numpy()
        noise_bounds = NOISE_BOUNDS if self.noise is None else (self.noise, self.noise)
        priors = (SCALE_PRIOR, NOISE_PRIOR) if self.priors else None
        return DenseLikelihood(family, values, SCALE_BOUNDS, noise_bounds, self.mean, priors)

    def _best_of_restarts(
        self,
        likelihood: DenseMarginalLogLikelihood,
        start: Parameters,
        rng: np.random.Generator,
        restarts: int,
        dense: DenseLikelihood | None = None,
    ) -> tuple[float, Parameters] | None:
        """Highest objective reached, and the parameters there; where every start fails, further ones are tried."""
        model = likelihood.model
        best: tuple[float, Parameters] | None = None
        for attempt in range(restarts + FURTHER_STARTS):
            if attempt >= restarts and best is not None:
                break
            set_parameters(model, start)
            if attempt:
                with torch.random.fork_rng(devices=[]):
                    torch.manual_seed(int(rng.integers(2**31)))
                    sample_all_priors(model)
                set_parameters(model, {name: start[name] for name in _frozen(model)})
            # The objective is per value.
            tolerance = TOLERANCE / len(model.train_targets)
            model.train()
            threads = one_thread() if len(model.train_targets) <= SINGLE_THREADED else nullcontext()
            try:
                with threads, warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # a failed start is reported below
                    if dense is not None:
                        names = [*COMMON, *(f"covar_module.base_kernel.{name}" for name in dense.family.names)]
                        begin = parameters_of(model)
                        ends = np.cumsum([len(begin[name]) for name in names])
                        point = np.concatenate([begin[name] for name in names])
                        reached, point = dense.maximise(point, **FIT_OPTIONS, ftol=tolerance)
                        found = np.split(point, ends[:-1])
                        set_parameters(model, {n: part.tolist() for n, part in zip(names, found, strict=True)})
                    else:
                        # `fit_gpytorch_mll` would discard where L-BFGS-B ended if a line search found no better point.
                        fit_gpytorch_mll_scipy(likelihood, options={**FIT_OPTIONS, "ftol": tolerance})
                        model.train()
                        with torch.no_grad():
                            reached = float(likelihood(model(*model.train_inputs), model.train_targets))
            except InputError:
                raise  # strings that the kernel cannot take are not bad luck
            except (ModelError, ValueError, RuntimeError) as error:
                logger.debug("fit from start %d failed: %s", attempt, error)
                continue
            if np.isfinite(reached) and (best is None or reached > best[0]):
                best = reached, parameters_of(model)
        return best


def units_of(model: SingleTaskGP) -> tuple[float, float]:
    """Mean and standard deviation by which a model standardises its values."""
    transform = model.outcome_transform
    return float(transform.means.squeeze()), float(transform.stdvs.squeeze())


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


def _transfer(source: SingleTaskGP, target: SingleTaskGP) -> None:
    """Give ``target`` the parameters of ``source``, of which each standardises by its own values."""
    set_parameters(target, parameters_of(source))
    (source_mean, source_unit), (mean, unit) = units_of(source), units_of(target)
    ratio = source_unit / unit
    with torch.no_grad():
        scale = float(source.covar_module.outputscale)
        outputscale_bounds = target.covar_module.raw_outputscale_constraint
        noise_bounds = target.likelihood.noise_covar.raw_noise_constraint
        target.covar_module.outputscale = outputscale_bounds.nearest(scale * ratio**2)
        if target.likelihood.noise_covar.raw_noise.requires_grad:
            found = [noise_bounds.nearest(noise * ratio**2) for noise in source.likelihood.noise.reshape(-1).tolist()]
            shape = target.likelihood.noise.shape
            target.likelihood.noise = torch.tensor(found, dtype=torch.float64).reshape(shape) if found[1:] else found[0]
        target.mean_module.constant.copy_(source.mean_module.constant * ratio + (source_mean - mean) / unit)


def _frozen(model: torch.nn.Module) -> list[str]:
    return [name for name, parameter in model.named_parameters() if not parameter.requires_grad]


def parameters_of(model: torch.nn.Module) -> Parameters:
    """Raw parameters of ``model``."""
    return {name: parameter.detach().reshape(-1).tolist() for name, parameter in model.named_parameters()}


def suits(model: torch.nn.Module, values: Parameters) -> bool:
    """Whether ``values`` hold all raw parameters of ``model``, each with as many entries.

    Those of a model of two levels do not suit one of three, which another assay has come to.
    """
    return all(len(values.get(name, ())) == parameter.numel() for name, parameter in model.named_parameters())


def set_parameters(model: torch.nn.Module, values: Parameters) -> None:
    """Give ``model`` those of its raw parameters that ``values`` names."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name not in values:
                continue
            parameter.copy_(torch.tensor(values[name], dtype=parameter.dtype).reshape(parameter.shape))
