"""How a batch is chosen from a fitted model."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from botorch.acquisition import qKnowledgeGradient
from botorch.acquisition.logei import qLogNoisyExpectedImprovement
from botorch.optim import optimize_acqf
from botorch.sampling import SobolQMCNormalSampler
from torch import Tensor

from seqopt.acquisition import GIBBON, Acquisition, GumbelMaxValueSampler, LogExpectedImprovement, ThompsonSampling
from seqopt.bench.euclid.adaptive import WAYS
from seqopt.bench.euclid.adaptor import Process
from seqopt.bench.euclid.heuristics import DeterminantalImprovement, LocalPenalisation
from seqopt.bench.euclid.ratio import bore_forest, lfbo_perceptron, lfbo_perceptron_published, random_points
from seqopt.bench.euclid.search import STARTS, Ways, propose
from seqopt.errors import ModelError
from seqopt.strategies import Strategy

MAX_VALUES = 5
"""Draws of the largest value, as in section 5.7.1."""

RAW, FANTASIES, BOTORCH_STEPS = 128, 16, 50
"""What BoTorch's acquisition functions are allowed: raw samples, fantasies of KG, iterations of L-BFGS."""


@dataclass(frozen=True)
class State:
    """What a method sees.

    Attributes:
        process: The fitted model.
        ways: From the number of points chosen so far, how the next one can be measured.
        batch: Number of points that are wanted.
        near: The point that is taken for the best so far, ``d``.
        best_observed: Largest value of the target that was measured, standardised.
        rng: Of all draws.
    """

    process: Process
    ways: Callable[[int], Ways]
    batch: int
    near: Tensor
    best_observed: float
    rng: np.random.Generator


@dataclass(frozen=True)
class Method:
    """A method.

    Attributes:
        label: As tables name it.
        choose: The points to measure, ``batch x (d + 1)``.
        fidelities: Whether it chooses how points are measured; others measure the target.
        model: ``coregionalised`` for that instead of the task's own.
        plates: For plates: how many are fixed, 0 for a new one each time, None where it chooses.
        strategy: Of a density ratio, by the number of variables; it takes the place of a model.
    """

    label: str
    choose: Callable[[State], Tensor]
    fidelities: bool = False
    model: str = ""
    plates: int | None = None
    strategy: Callable[[int], Strategy] | None = None


def ours(
    build: Callable[[], Acquisition], *, per_cost: bool = False, polished: bool = True
) -> Callable[[State], Tensor]:
    """One of our acquisition functions, maximised by `seqopt.bench.euclid.search`."""

    def choose(state: State) -> Tensor:
        return propose(
            state.process,
            build(),
            state.ways,
            state.rng,
            batch=state.batch,
            near=state.near,
            best_observed=state.best_observed,
            per_cost=per_cost,
            polished=polished,
        )

    return choose


def botorch_nei(state: State) -> Tensor:
    """BoTorch's q-noisy expected improvement, batches filled greedily."""
    inputs = state.process.inputs
    acquisition = qLogNoisyExpectedImprovement(
        state.process.model, inputs, sampler=_sampler(256, state), prune_baseline=True
    )
    return _maximised(acquisition, state, sequential=True)


def botorch_kg(state: State) -> Tensor:
    """BoTorch's knowledge gradient, the whole batch at once."""
    acquisition = qKnowledgeGradient(state.process.model, num_fantasies=FANTASIES, sampler=_sampler(FANTASIES, state))
    return _maximised(acquisition, state, sequential=False)


def _sampler(count: int, state: State) -> SobolQMCNormalSampler:
    return SobolQMCNormalSampler(torch.Size([count]), seed=int(state.rng.integers(2**31)))


def _maximised(acquisition: torch.nn.Module, state: State, sequential: bool) -> Tensor:
    width = state.process.inputs.shape[-1]
    target = state.process.target
    # BoTorch draws initial conditions from torch's own generator.
    with warnings.catch_warnings(), torch.random.fork_rng():
        warnings.simplefilter("ignore")
        torch.manual_seed(int(state.rng.integers(2**31)))
        found, _ = optimize_acqf(
            acquisition,
            bounds=torch.tensor([[0.0], [1.0]], dtype=torch.float64).expand(2, width),
            q=state.batch,
            num_restarts=STARTS,
            raw_samples=RAW,
            sequential=sequential and state.batch > 1,
            fixed_features={width - 1: target},
            options={"maxiter": BOTORCH_STEPS, "seed": int(state.rng.integers(2**31))},
        )
    return found.detach()


def no_model(state: State) -> Tensor:
    """Density ratios, and methods whose models average over their parameters, have no fitted model to choose by.

    Raises:
        ModelError: Always.
    """
    raise ModelError("this method proposes in a way of its own, not from a fitted model")


def gumbel() -> GumbelMaxValueSampler:
    """The thesis's sampler of max-values, over all points that it is given."""
    return GumbelMaxValueSampler(max_points=1_000_000, evaluated=False)


def published_gibbon() -> GIBBON:
    """GIBBON as printed: Gumbel max-values, and the whole of the log-determinant."""
    return GIBBON(MAX_VALUES, gumbel(), 1.0)


def own_gibbon() -> GIBBON:
    """GIBBON with the defaults of seqopt."""
    return GIBBON()


def mes() -> Acquisition:
    """Max-value entropy search, which sees observations without noise."""
    from seqopt.acquisition import MES

    return MES(MAX_VALUES, gumbel())


def mumbo() -> Acquisition:
    """MUMBO."""
    from seqopt.acquisition import MUMBO

    return MUMBO(MAX_VALUES, gumbel())


METHODS: dict[str, Method] = {
    "gibbon": Method("GIBBON", ours(published_gibbon, per_cost=True), fidelities=True),
    "mumbo": Method("MUMBO", ours(mumbo, per_cost=True), fidelities=True),
    "gibbon-icm": Method(
        "GIBBON, coregionalised", ours(published_gibbon, per_cost=True), fidelities=True, model="coregionalised"
    ),
    "mumbo-icm": Method("MUMBO, coregionalised", ours(mumbo, per_cost=True), fidelities=True, model="coregionalised"),
    "ei": Method("EI", ours(LogExpectedImprovement)),
    "mes": Method("MES", ours(mes)),
    "gibbon-one": Method("GIBBON", ours(published_gibbon)),
    "gibbon-own": Method("GIBBON, defaults of seqopt", ours(own_gibbon)),
    "believer": Method("Kriging believer, EI", ours(LogExpectedImprovement)),
    "dpp-ei": Method("DPP-EI", ours(DeterminantalImprovement)),
    "lp-ei": Method("local penalisation, EI", ours(lambda: LocalPenalisation(LogExpectedImprovement(), True))),
    "lp-mes": Method("local penalisation, MES", ours(lambda: LocalPenalisation(mes()))),
    "thompson": Method("Thompson sampling", ours(lambda: ThompsonSampling(max_points=1_000), polished=False)),
    "nei": Method("q-NEI of BoTorch", botorch_nei),
    "kg": Method("KG of BoTorch", botorch_kg),
    "bosh": Method("BOSH", ours(published_gibbon, per_cost=True), plates=None),
    "fixed-1": Method("GIBBON, one plate", ours(published_gibbon), plates=1),
    "fixed-1-ei": Method("EI, one plate", ours(LogExpectedImprovement), plates=1),
    "fixed-5": Method("GIBBON, five plates each time", ours(published_gibbon), plates=5),
    "random-1": Method("GIBBON, a new plate each time", ours(published_gibbon), plates=0),
    "lfbo-mlp": Method("LFBO, perceptron", no_model, strategy=lfbo_perceptron),
    "lfbo-mlp-100": Method("LFBO, perceptron, 100 steps anew", no_model, strategy=lfbo_perceptron_published),
    "bore-rf": Method("BORE, random forest", no_model, strategy=bore_forest),
    "random": Method("random points", no_model, strategy=random_points),
    **{name: Method(way.label, no_model) for name, way in WAYS.items()},
}
"""By name."""
