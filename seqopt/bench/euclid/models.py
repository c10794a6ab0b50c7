"""BoTorch's Gaussian processes for points that are measured in one way, at several fidelities or on plates."""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import gpytorch
import torch
from botorch.models import MultiTaskGP, SingleTaskGP
from botorch.models.gpytorch import GPyTorchModel
from botorch.models.utils.gpytorch_modules import get_matern_kernel_with_gamma_prior
from botorch.optim.core import scipy_minimize
from botorch.optim.utils import get_parameters_and_bounds
from gpytorch.mlls import ExactMarginalLogLikelihood
from linear_operator.utils.errors import NanError, NotPSDError
from torch import Tensor

from seqopt.bench.euclid.adaptor import Process, means
from seqopt.bench.euclid.kernels import AutoregressiveKernel, DegenerateKernel, HierarchicalKernel
from seqopt.errors import ModelError

logger = logging.getLogger(__name__)

EXACT_NOISE = 1e-6
"""Noise variance, in standardised units, that a model of exact values is given."""

ITERATIONS = 10
"""Of L-BFGS for a fit that begins with the parameters of the step before."""

FIRST_ITERATIONS = 60
"""Of one that begins at the defaults."""

ANEW = 20
"""Every so many fits one begins at the defaults as well, and the better of both is taken."""

WORTH = 1.0
"""How much a parameter more has to add to the objective of a fit, in nats: Akaike's criterion."""

Build = Callable[[Tensor, Tensor, Tensor | None], GPyTorchModel]
"""A model from points ``n x (d + 1)``, values ``n x 1`` and noise variances, which are None to be estimated."""


@dataclass
class Surrogate:
    """Fits one kind of model again and again.

    Attributes:
        build: Makes the model.
        target: Last column of targets.
        simplify: Sets parameters of a new model to where they have no effect, and says how many these are. Then the
            simpler model is fitted as well, and is the one unless the other has a likelihood that is larger by
            `WORTH` for each of them: what data do not show is not believed. A fit from one start may also have missed
            it.
    """

    build: Build
    target: float = 0.0
    simplify: Callable[[GPyTorchModel], int] | None = None

    def __post_init__(self) -> None:
        self._last: dict[str, Tensor] = {}
        self._last_simple: dict[str, Tensor] = {}
        self._fits = 0

    def fit(self, points: Tensor, values: Tensor, noise: Tensor | None) -> Process:
        """A process given data, with parameters of (locally) largest marginal likelihood and prior.

        Args:
            points: ``n x (d + 1)``.
            values: ``n``, standardised.
            noise: ``n`` noise variances in their units, or None to have one estimated.

        Raises:
            ModelError: If no fit succeeds.
        """
        starts = [self._last] if self._last else []
        if self._fits % ANEW == 0:
            starts.append({})
        self._fits += 1
        best: tuple[float, GPyTorchModel] | None = None
        for start in starts:
            found = self._fit_from(start, points, values, noise)
            if found is not None and (best is None or found[0] > best[0]):
                best = found[:2]
        if best is None and {} not in starts:
            # Where no way leads on from the last parameters, another start may succeed.
            found = self._fit_from({}, points, values, noise)
            best = None if found is None else found[:2]
        # Each model goes on from its own parameters: out of the simpler one no gradient leads.
        self._last = {} if best is None else _parameters(best[1], noise)
        if self.simplify is not None:
            simple = self._fit_from(self._last_simple, points, values, noise, self.simplify)
            if simple is not None:
                objective, model, fewer = simple
                self._last_simple = _parameters(model, noise)
                # Objectives are per value.
                if best is None or (best[0] - objective) * len(values) <= WORTH * fewer:
                    best = objective, model
        if best is None:
            raise ModelError(f"no Gaussian process could be fitted to {len(points)} values")
        return Process(best[1], self.target)

    def _fit_from(
        self,
        start: Mapping[str, Tensor],
        points: Tensor,
        values: Tensor,
        noise: Tensor | None,
        simplify: Callable[[GPyTorchModel], int] | None = None,
    ) -> tuple[float, GPyTorchModel, int] | None:
        """Objective, model, and how many parameters were taken out; `None` where a fit failed."""
        model = self.build(points, values[:, None], noise if noise is None else noise[:, None])
        if start:
            model.load_state_dict({**model.state_dict(), **start})
        fewer = 0 if simplify is None else simplify(model)
        found = _fitted(model, FIRST_ITERATIONS if not start else ITERATIONS)
        return None if found is None else (found, model, fewer)


def without_departures(model: GPyTorchModel) -> int:
    """Take the departures of plates out of a model with the hierarchical kernel: see `Surrogate.simplify`."""
    kernel = model.covar_module
    assert isinstance(kernel, HierarchicalKernel)
    return kernel.forget_plates()


def single(points: Tensor, values: Tensor, noise: Tensor | None) -> GPyTorchModel:
    """`SingleTaskGP` with BoTorch's Matern kernel; the last column, which is constant, is not looked at."""
    dim = points.shape[-1] - 1
    kernel = get_matern_kernel_with_gamma_prior(dim)
    kernel.active_dims = torch.arange(dim)
    return _gp(points, values, noise, kernel)


def autoregressive(levels: int) -> Build:
    """`SingleTaskGP` with the linear multi-fidelity kernel of Kennedy and O'Hagan."""
    return lambda points, values, noise: _gp(
        points, values, noise, AutoregressiveKernel(points.shape[-1] - 1, levels).to(points)
    )


def coregionalized(points: Tensor, values: Tensor, noise: Tensor | None) -> GPyTorchModel:
    """`MultiTaskGP`, with the Matern kernel of the others."""
    kernel = get_matern_kernel_with_gamma_prior(points.shape[-1] - 1)
    kernel.active_dims = torch.arange(points.shape[-1] - 1)
    return MultiTaskGP(points, values, task_feature=-1, train_Yvar=noise, covar_module=kernel, outcome_transform=None)


def degenerate(points: Tensor, values: Tensor, noise: Tensor | None) -> GPyTorchModel:
    """`SingleTaskGP` with the degenerate kernel in a continuous fidelity."""
    return _gp(points, values, noise, DegenerateKernel(points.shape[-1] - 1).to(points))


def hierarchical(points: Tensor, values: Tensor, noise: Tensor | None) -> GPyTorchModel:
    """`SingleTaskGP` with the hierarchical kernel of plates."""
    return _gp(points, values, noise, HierarchicalKernel(points.shape[-1] - 1).to(points))


def _gp(points: Tensor, values: Tensor, noise: Tensor | None, kernel: torch.nn.Module) -> SingleTaskGP:
    with warnings.catch_warnings():
        # Values are standardised over all levels; BoTorch asks for it, and counts other ways to standardise as wrong.
        warnings.simplefilter("ignore")
        return SingleTaskGP(points, values, train_Yvar=noise, covar_module=kernel, outcome_transform=None)


def _fitted(model: GPyTorchModel, iterations: int) -> float | None:
    """Fit a model in place; the objective, or None where it failed.

    It is what `botorch.fit.fit_gpytorch_mll` maximises, computed without the layers in between, which take several
    times as long as the arithmetic for as few values as there are here.
    """
    mll = ExactMarginalLogLikelihood(model.likelihood, model)
    parameters, bounds = get_parameters_and_bounds(mll)
    inputs = model.train_inputs[0]

    def loss() -> tuple[Tensor, list[Tensor | None]]:
        value = _log_posterior(mll, inputs, model.train_targets)
        return -value.detach(), [-one for one in torch.autograd.grad(value, list(parameters.values()))]

    try:
        with warnings.catch_warnings(), gpytorch.settings.lazily_evaluate_kernels(False):
            warnings.simplefilter("ignore")
            found = scipy_minimize(loss, parameters, bounds, options={"maxiter": iterations})
    except (NanError, NotPSDError, ValueError, RuntimeError) as problem:
        logger.warning("a fit failed: %s", problem)
        return None
    return -float(found.fval) if math.isfinite(found.fval) else None


def _log_posterior(mll: ExactMarginalLogLikelihood, inputs: Tensor, values: Tensor) -> Tensor:
    """Log marginal likelihood and log prior of a model, divided by the number of values."""
    model = mll.model
    covariance = model.covar_module(inputs).to_dense()
    noise = model.likelihood.noise
    factor = torch.linalg.cholesky(covariance + torch.diag(noise.expand(len(values))))
    residual = values - means(model, inputs)
    white = torch.linalg.solve_triangular(factor, residual[:, None], upper=False)
    total = -0.5 * white.square().sum() - factor.diagonal().log().sum() - 0.5 * len(values) * math.log(2.0 * math.pi)
    for _, module, prior, value, _ in model.named_priors():
        total = total + prior.log_prob(value(module)).sum()
    return total / len(values)


def _parameters(model: GPyTorchModel, noise: Tensor | None) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items() if _kept(name, noise)}


def _kept(name: str, noise: Tensor | None) -> bool:
    return name.startswith(("covar_module", "mean_module")) or (noise is None and name.startswith("likelihood"))
