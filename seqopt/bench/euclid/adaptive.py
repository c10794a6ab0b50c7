"""Searches of a box by a model whose parameters are averaged over: what is chosen next, and what is recorded.

Points are chosen among Sobol points of the box and others about the best of what has been measured: one list in each
step, which all methods score, so that it is acquisition functions that are compared and not how they are maximised.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import log_ndtr
from scipy.stats import qmc

from seqopt.acquisition import (
    BALD,
    BALM,
    BQBC,
    GIBBON,
    QBMGP,
    SAL,
    Acquisition,
    LogExpectedImprovement,
    SCoreBO,
    UpperConfidenceBound,
)
from seqopt.acquisition.entropy_search import utilities
from seqopt.bench.euclid.boxes import BoxModel
from seqopt.bench.euclid.fourier import FourierDraw, FourierFeatures
from seqopt.bench.euclid.functions import Problem
from seqopt.bench.euclid.regularisers import grown, hinge, quadratic
from seqopt.posteriors import DensePosterior

FloatArray = npt.NDArray[np.float64]

SOBOL, NEARBY = 256, 64
"""Candidates of a step: in the box, and about the best point."""

SPREADS = (0.1, 0.02)
"""Standard deviations of the latter, as shares of the side of the box."""

DRAWS = 8
"""Of the parameters; the papers have 10 and 16."""

FEATURES, LOOKED_AT = 256, 2_000
"""Fourier features of a function for Thompson sampling, and points among which its largest value is looked for."""

REPRESENTERS = 100
"""Places of the maximum of drawn functions, that a portfolio of entropy search asks about."""

TEST_POINTS = 1_000
"""At which predictions are judged."""

RADII = (1.0, 2.0, 4.0)
"""Boxes, in sides of the first, in which a search without a box looks for candidates."""

NOISELESS = 1e-4
"""Variance of the noise of exact values that a model believes in at least, standardised."""


@dataclass(frozen=True)
class Situation:
    """What a method sees.

    Attributes:
        model: Conditioned on all that is measured.
        points: Candidates, N x d.
        posterior: At these.
        rng: Of all draws.
    """

    model: BoxModel
    points: FloatArray
    posterior: DensePosterior
    rng: np.random.Generator


Chooser = Callable[[Situation], int]
"""The number of the candidate that is measured next."""


@dataclass(frozen=True)
class Way:
    """A method.

    Attributes:
        label: As tables name it.
        choose: Chooses among the candidates.
        region: Of a search without a box: ``"box"``, ``"volume"``, ``"hinge"`` or ``"quadratic"``.
    """

    label: str
    choose: Chooser
    region: str = "box"


def by(build: Callable[[], Acquisition]) -> Chooser:
    """The candidate of the largest acquisition value."""

    def choose(at: Situation) -> int:
        prepared = build().prepare(at.posterior, at.rng)
        return int(prepared(at.posterior).argmax())

    return choose


def at_random(at: Situation) -> int:
    """Any."""
    return int(at.rng.integers(SOBOL))


def improvement_probability(at: Situation) -> int:
    """The largest probability of improvement over the best posterior mean of what was measured, over the draws."""
    moments, best = at.posterior.moments, at.posterior.observed_mean.amax(-1, keepdim=True)
    z = (moments.mean - best) / moments.variance.clamp_min(1e-12).sqrt()
    # In logarithms, which do not vanish where all are improbable.
    return int(np.logaddexp.reduce(log_ndtr(z.numpy()), axis=0).argmax())


def fourier_thompson(at: Situation) -> int:
    """The candidate next to the maximum of a function that is drawn by random Fourier features."""
    function = drawn(at.model, at.rng)
    return int(function(at.points).argmax())


def drawn(model: BoxModel, rng: np.random.Generator) -> FourierDraw:
    """A function from the posterior of one draw of the parameters, in standardised units."""
    one = model.draws[int(rng.integers(len(model.draws)))]
    features = FourierFeatures.drawn(one.lengthscales, one.variance, FEATURES, rng)
    targets = one.factor @ (one.factor.T @ one.weights)  # what the draw was conditioned on
    # The constant, which the features have no part in, is at its expectation.
    constant = model.mean_variance * float(one.weights.sum())
    return FourierDraw.posterior(features, model.points, targets, one.noise + 1e-6, rng, constant)


MEMBERS: Mapping[str, Chooser] = {
    "ei": by(LogExpectedImprovement),
    "pi": improvement_probability,
    "thompson": fourier_thompson,
}
"""Of the portfolios."""


def entropy_portfolio(at: Situation) -> int:
    """The nominee after whose result the place of the maximum is expected to be least uncertain."""
    nominees = [choose(at) for choose in MEMBERS.values()]
    places = [int(drawn(at.model, at.rng)(at.points).argmax()) for _ in range(REPRESENTERS)]
    kept = sorted({*places, *nominees})
    mean, covariance = at.posterior.joint(torch.tensor(kept))
    noise = at.posterior.moments.outcome_variance - at.posterior.moments.variance
    number = {place: index for index, place in enumerate(kept)}
    found = utilities(
        mean,
        covariance,
        noise[:, kept].clamp_min(1e-8),
        [number[place] for place in places],
        [number[place] for place in nominees],
        draws=200,
        rng=at.rng,
    )
    return nominees[int(found.argmax())]


def random_portfolio(at: Situation) -> int:
    """The nominee of any member."""
    names = list(MEMBERS)
    return MEMBERS[names[int(at.rng.integers(len(names)))]](at)


def botorch_models(model: BoxModel) -> list[Any]:
    """BoTorch's model at each draw of the parameters."""
    from botorch.models import SingleTaskGP
    from gpytorch.kernels import MaternKernel, ScaleKernel
    from gpytorch.means import ConstantMean

    found = []
    for one in model.draws:
        kernel = ScaleKernel(MaternKernel(nu=2.5, ard_num_dims=model.dim))
        kernel.base_kernel.lengthscale, kernel.outputscale = torch.from_numpy(one.lengthscales), one.variance
        targets = torch.from_numpy(one.factor @ (one.factor.T @ one.weights))
        mean = ConstantMean()
        # The constant is integrated out in our model; here it is at its expectation.
        mean.constant.data.fill_(model.mean_variance * float(one.weights.sum()))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            built = SingleTaskGP(
                torch.from_numpy(model.points),
                targets[:, None],
                torch.full((len(targets), 1), one.noise, dtype=torch.float64),
                covar_module=kernel.double(),
                mean_module=mean.double(),
                outcome_transform=None,
            )
        found.append(built.eval())
    return found


def botorch_nei(at: Situation) -> int:
    """BoTorch's noisy expected improvement, averaged over the draws."""
    from botorch.acquisition.logei import qLogNoisyExpectedImprovement
    from botorch.sampling import SobolQMCNormalSampler

    points = torch.from_numpy(at.points)[:, None]
    seed = int(at.rng.integers(2**31))
    scores = []
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        for model in botorch_models(at.model):
            sampler = SobolQMCNormalSampler(torch.Size([64]), seed=seed)
            acquisition = qLogNoisyExpectedImprovement(
                model, torch.from_numpy(at.model.points), sampler=sampler, prune_baseline=True
            )
            scores.append(acquisition(points))
    return int(torch.logsumexp(torch.stack(scores), 0).argmax())


def botorch_jes(at: Situation) -> int:
    """BoTorch's joint entropy search, averaged over the draws; optima are those of joint draws at the candidates."""
    from botorch.acquisition.joint_entropy_search import qJointEntropySearch

    from seqopt.acquisition.sampling import draw_joint
    from seqopt.posteriors import stable_cholesky

    mean, covariance = at.posterior.joint(torch.arange(len(at.points)))
    factor, _ = stable_cholesky(covariance)
    functions = draw_joint(mean, factor, 8, at.rng)  # D x N x 8
    points = torch.from_numpy(at.points)
    scores = []
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        for number, model in enumerate(botorch_models(at.model)):
            places = functions[number].argmax(0)
            values = functions[number].amax(0)[:, None]
            acquisition = qJointEntropySearch(model, points[places], values, estimation_type="LB")
            scores.append(acquisition(points[:, None]))
    return int(torch.stack(scores).mean(0).argmax())


WAYS: Mapping[str, Way] = {
    "sal-ws": Way("SAL, Wasserstein", by(SAL)),
    "sal-hr": Way("SAL, Hellinger", by(lambda: SAL("hellinger"))),
    "bald": Way("BALD", by(BALD)),
    "bqbc": Way("BQBC", by(BQBC)),
    "balm": Way("BALM", by(BALM)),
    "qbmgp": Way("QBMGP", by(QBMGP)),
    "points": Way("random points", at_random),
    "scorebo": Way("SCoreBO", by(SCoreBO)),
    "gibbon-bayes": Way("GIBBON", by(GIBBON)),
    "nei-bayes": Way("noisy EI of BoTorch", botorch_nei),
    "jes-bayes": Way("JES of BoTorch", botorch_jes),
    "ei-bayes": Way("EI", by(LogExpectedImprovement)),
    "ucb-bayes": Way("UCB", by(UpperConfidenceBound)),
    "pi": Way("PI", improvement_probability),
    "thompson-fourier": Way("Thompson sampling, Fourier features", fourier_thompson),
    "esp": Way("entropy search portfolio", entropy_portfolio),
    "random-portfolio": Way("random portfolio", random_portfolio),
    "ei-v": Way("EI, volume doubled", by(LogExpectedImprovement), "volume"),
    "ei-h": Way("EI, hinge", by(LogExpectedImprovement), "hinge"),
    "ei-q": Way("EI, quadratic", by(LogExpectedImprovement), "quadratic"),
}
"""Methods by name."""


def searched(
    problem: Problem,
    way: Way,
    evaluations: int,
    initial: int,
    part: str,
    first: np.random.Generator,
    rng: np.random.Generator,
    box: tuple[FloatArray, FloatArray] | None = None,
) -> dict[str, Any]:
    """One run: ``initial`` Sobol points, then one point at a time.

    Args:
        problem: What is measured, with its noise.
        way: The method.
        evaluations: Points, the initial ones included.
        initial: Sobol points (of a search without a box, of a Latin hypercube) to begin with.
        part: ``"learning"``, where predictions are judged, or one in which regret is.
        first: Draws the initial points and the noise.
        rng: Fixes all else.
        box: Where a search without a box begins, in units of the cube; by default the cube.

    Returns:
        All points (with a last column of the target) and values; after each evaluation from the initial ones on the
        regret of the point of largest posterior mean, or the root mean squared error and the mean negative logarithm
        of the predictive density; and processor seconds.
    """
    dim = problem.dim
    low, high = (np.zeros(dim), np.ones(dim)) if box is None else box
    sides = high - low
    learning = part == "learning"
    penalty = {"hinge": hinge, "quadratic": quadratic}.get(way.region)
    # The model sees the box as the unit cube, wherever it lies.
    unit = np.zeros(dim), np.ones(dim)
    model = BoxModel(
        dim,
        DRAWS,
        mean_variance=0.0 if learning else 1.0,
        penalty=None if penalty is None else lambda points: penalty(points, *unit),
        least_noise=NOISELESS if problem.noise_variance(np.zeros(1))[0] == 0.0 else 1e-6,
    )
    started = qmc.Sobol(dim, seed=int(first.integers(2**31))) if part != "unbounded" else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of numbers of Sobol points that are no powers of two
        inner = (
            started.random(initial)
            if started is not None
            else qmc.LatinHypercube(dim, seed=int(first.integers(2**31))).random(initial)
        )
    points = np.asarray(inner, dtype=np.float64)
    target = np.full(1, problem.target)
    values = np.concatenate([problem.measure((low + sides * point)[None], target, first) for point in points])
    record: dict[str, list[float]] = {"rmse": [], "nlpd": [], "regret": [], "fit_seconds": [], "choose_seconds": []}
    tested = _tests(problem) if learning else None
    while True:
        began = time.process_time()
        model.fit(points, values, rng)
        record["fit_seconds"].append(round(time.process_time() - began, 4))
        if tested is not None:
            truth, noisy = tested[1], tested[2]
            record["rmse"].append(float(np.sqrt(np.mean((model.mean(tested[0]) - truth) ** 2))))
            record["nlpd"].append(float(-model.log_density(tested[0], noisy).mean()))
        else:
            best = recommended(model, rng, points)
            record["regret"].append(float(problem.regret((low + sides * best)[None])[0]))
        if len(values) >= evaluations:
            break
        began = time.process_time()
        candidates = candidates_of(model, way.region, len(values), rng)
        at = Situation(model, candidates, model.posterior(candidates), rng)
        chosen = candidates[way.choose(at)]
        record["choose_seconds"].append(round(time.process_time() - began, 4))
        points = np.concatenate([points, chosen[None]])
        values = np.concatenate([values, problem.measure((low + sides * chosen)[None], target, first)])
    stored = low + sides * points
    return {
        "initial": initial,
        "points": [[round(one, 8) for one in (*point, problem.target)] for point in stored.tolist()],
        "values": [float(f"{value:.9g}") for value in values],
        **{name: numbers for name, numbers in record.items() if numbers},
    }


def candidates_of(model: BoxModel, region: str, evaluations: int, rng: np.random.Generator) -> FloatArray:
    """Candidates of a step, in units of the box in which the search began."""
    low, high = np.zeros(model.dim), np.ones(model.dim)
    if region == "volume":
        low, high = grown(low, high, evaluations)
    best = model.points[int(model.mean(model.points).argmax())]
    spread = np.repeat(SPREADS, NEARBY // len(SPREADS))[:, None] * (high - low)
    near = best + spread * rng.standard_normal((len(spread), model.dim))
    if region in ("box", "volume"):
        wide = low + (high - low) * _sobol(model.dim, SOBOL, rng)
        return np.concatenate([wide, np.clip(near, low, high)])
    parts = [0.5 + radius * (_sobol(model.dim, SOBOL // len(RADII), rng) - 0.5) for radius in RADII]
    far = best + 0.5 * rng.standard_normal((NEARBY, model.dim))
    return np.concatenate([*parts, near, far])


def recommended(model: BoxModel, rng: np.random.Generator, measured: FloatArray) -> FloatArray:
    """The point of the largest posterior mean: among Sobol points of the cube and measured points, then about these."""
    inside = bool(((measured >= 0.0) & (measured <= 1.0)).all())
    points = np.concatenate([_sobol(model.dim, 1_024, rng), measured])
    best = points[int(model.mean(points).argmax())]
    for spread in (0.1, 0.03, 0.01, 0.003):
        near = best + spread * rng.standard_normal((64, model.dim))
        near = np.clip(near, 0.0, 1.0) if inside else near
        both = np.concatenate([best[None], near])
        best = both[int(model.mean(both).argmax())]
    return best


def starred(dim: int, rng: np.random.Generator, side: float = 0.2) -> tuple[FloatArray, FloatArray]:
    """A random box of the given side within the unit cube."""
    low = (1.0 - side) * rng.random(dim)
    return low, low + side


def _sobol(dim: int, count: int, rng: np.random.Generator) -> FloatArray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found: FloatArray = qmc.Sobol(dim, seed=int(rng.integers(2**31))).random(count)
    return found


@cache
def _test_points(dim: int) -> FloatArray:
    return _sobol(dim, TEST_POINTS, np.random.default_rng(2023))


def _tests(problem: Problem) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Points, their true values, and one measurement of each: the same in all runs."""
    points = _test_points(problem.dim)
    truth = problem.objective(points)
    noise = math.sqrt(float(problem.noise_variance(np.zeros(1))[0]))
    return points, truth, truth + noise * np.random.default_rng(2024).standard_normal(len(points))
