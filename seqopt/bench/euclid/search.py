"""Maximising an acquisition function over a box: Sobol points, then L-BFGS from the best of them.

Gradients are central differences: all neighbours of all starts are scored by one call, so that they cost little more
than derivatives would, and nothing is asked of an acquisition function but its values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from scipy.optimize import minimize
from torch import Tensor
from torch.quasirandom import SobolEngine

from seqopt.acquisition import Acquisition
from seqopt.bench.euclid.adaptor import PointsPosterior, Process

FloatArray = npt.NDArray[np.float64]

CANDIDATES = 512
"""Sobol points, in each way to measure."""

NEARBY = 128
"""Further ones, drawn about the point that is taken for the best so far."""

STARTS, STEPS = 4, 20
"""Points that are polished, and iterations of L-BFGS."""

STEP = 1e-4
"""Of differences, as a share of the side of the box."""

MAX_VALUE_POINTS = 1_000
"""Sobol points for each variable, over whose targets max-values are drawn."""

SPREADS = (0.1, 0.02)
"""Standard deviations of the points that are drawn about the best one."""


@dataclass(frozen=True)
class Ways:
    """How points can be measured.

    Attributes:
        values: The last columns that there are; none where every number in [0, 1] is one.
        cost: Of each last column.
    """

    values: tuple[float, ...]
    cost: Callable[[FloatArray], FloatArray] = np.ones_like

    @property
    def free(self) -> bool:
        """Whether the last column is a variable."""
        return not self.values


def sobol(count: int, dim: int, rng: np.random.Generator) -> Tensor:
    """Scrambled Sobol points of the unit cube, ``count x dim``."""
    engine = SobolEngine(dim, scramble=True, seed=int(rng.integers(2**31)))  # type: ignore[no-untyped-call]
    return engine.draw(count, dtype=torch.float64)


def propose(
    process: Process,
    acquisition: Acquisition,
    ways: Callable[[int], Ways],
    rng: np.random.Generator,
    *,
    batch: int = 1,
    near: Tensor | None = None,
    best_observed: float = -torch.inf,
    per_cost: bool = False,
    polished: bool = True,
) -> Tensor:
    """A batch, filled greedily.

    Args:
        process: The fitted model.
        acquisition: What is maximised.
        ways: From the number of points chosen so far, how the next one can be measured.
        rng: Of all draws.
        batch: Number of points.
        near: A point of the cube, ``d``, about which some candidates are drawn.
        best_observed: Largest value of a target that was measured.
        per_cost: Whether values are divided by costs.
        polished: Whether the best candidates are polished.

    Returns:
        ``batch x (d + 1)``.
    """
    dim = process.inputs.shape[-1] - 1
    space = sobol(MAX_VALUE_POINTS * dim, dim, rng)
    targets = torch.cat([space, space.new_full((len(space), 1), process.target)], dim=-1)
    prepared = acquisition.prepare(process.at(targets, best_observed), rng, batch)
    chosen = space.new_empty(0, dim + 1)
    for count in range(batch):
        way = ways(count)
        candidates = _candidates(dim, way, near, rng)

        def scored(points: Tensor, way: Ways = way, chosen: Tensor = chosen) -> FloatArray:
            posterior = given(process, chosen, points, best_observed)
            values: FloatArray = prepared(posterior)[len(chosen) :].numpy().copy()
            return values / way.cost(points[:, -1].numpy()) if per_cost else values

        values = scored(candidates)
        values[_taken(candidates, chosen)] = -np.inf
        starts = candidates[_best(candidates, values)]
        point = polish(scored, starts, way.free) if polished else starts[0]
        chosen = torch.cat([chosen, point[None]])
    return chosen


def given(process: Process, chosen: Tensor, points: Tensor, best_observed: float = -torch.inf) -> PointsPosterior:
    """The posterior at chosen points and others, the outcomes of the chosen ones taken as seen."""
    posterior = process.at(torch.cat([chosen, points]), best_observed)
    for index in range(len(chosen)):
        posterior = posterior.given(index)
    return posterior


def polish(score: Callable[[Tensor], FloatArray], starts: Tensor, free: bool) -> Tensor:
    """The best point that L-BFGS finds from ``starts``, or the best of these.

    Args:
        score: What is maximised, of points ``n x (d + 1)``.
        starts: ``k x (d + 1)``, the best first.
        free: Whether the last column is a variable, too.
    """
    width = starts.shape[-1] if free else starts.shape[-1] - 1
    count = len(starts)
    first = score(starts)
    scale = max(float(np.abs(first).max()), 1e-300)
    best = starts[int(first.argmax())].clone()
    best_value = float(first.max())

    def loss(flat: FloatArray) -> tuple[float, FloatArray]:
        nonlocal best, best_value
        at = torch.from_numpy(flat.reshape(count, width))
        offsets = STEP * torch.eye(width, dtype=torch.float64)
        around = torch.stack([(at[:, None] + offsets).clamp(max=1.0), (at[:, None] - offsets).clamp(min=0.0)])
        moved = torch.cat([at, around.reshape(-1, width)])
        # Rows of `around` go through all neighbours of one start before the next.
        order = torch.cat([torch.arange(count), torch.arange(count).repeat_interleave(width).repeat(2)])
        points = starts[order].clone()
        points[:, :width] = moved
        values = score(points)
        own, up, down = values[:count], *values[count:].reshape(2, count, width)
        if own.max() > best_value:
            best_value, best = float(own.max()), points[int(own.argmax())].clone()
        distance = (around[0] - around[1]).diagonal(dim1=-2, dim2=-1).numpy()
        slope = (up - down) / distance
        if not (np.isfinite(own).all() and np.isfinite(slope).all()):
            return np.inf, np.zeros_like(flat)
        return -own.sum() / scale, -slope.reshape(-1) / scale

    minimize(
        loss,
        starts[:, :width].reshape(-1).numpy(),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, 1.0)] * (count * width),
        options={"maxiter": STEPS, "maxfun": 2 * STEPS},
    )
    return best


def recommend(process: Process, rng: np.random.Generator, count: int = 2_000) -> Tensor:
    """The point of the cube with the largest posterior mean of the target, ``d``.

    Sobol points and those that were measured are looked at, and the best are polished by the gradient.
    """
    dim = process.inputs.shape[-1] - 1
    known = torch.unique(process.inputs[:, :-1], dim=0)
    points = torch.cat([known, sobol(count, dim, rng)])

    def mean(points: Tensor) -> Tensor:
        return process.mean(torch.cat([points, points.new_full((len(points), 1), process.target)], dim=-1))

    with torch.no_grad():
        values = mean(points)
    starts = points[torch.topk(values, STARTS).indices]

    def loss(flat: FloatArray) -> tuple[float, FloatArray]:
        at = torch.from_numpy(flat.reshape(STARTS, dim)).requires_grad_(True)
        total = -mean(at).sum()
        (slope,) = torch.autograd.grad(total, at)
        return total.item(), slope.reshape(-1).numpy()

    found = minimize(
        loss,
        starts.reshape(-1).numpy(),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, 1.0)] * (STARTS * dim),
        options={"maxiter": 50},
    )
    ends = torch.cat([starts, torch.from_numpy(found.x.reshape(STARTS, dim)).clamp(0.0, 1.0)])
    with torch.no_grad():
        return ends[int(mean(ends).argmax())]


def _candidates(dim: int, way: Ways, near: Tensor | None, rng: np.random.Generator) -> Tensor:
    width = dim + 1 if way.free else dim
    points = sobol(CANDIDATES, width, rng)
    if near is not None:
        spread = torch.tensor(SPREADS, dtype=torch.float64).repeat_interleave(NEARBY // len(SPREADS))[:, None]
        drawn = near + spread * torch.from_numpy(rng.standard_normal((len(spread), dim)))
        if way.free:
            drawn = torch.cat([drawn, torch.from_numpy(rng.random((len(drawn), 1)))], dim=-1)
        points = torch.cat([points, drawn.clamp(0.0, 1.0)])
    if way.free:
        return points
    return torch.cat([torch.cat([points, points.new_full((len(points), 1), value)], dim=-1) for value in way.values])


def _best(candidates: Tensor, values: FloatArray) -> Tensor:
    """Indices of the starts: the best candidate of all, and the best ones of each way."""
    order = np.argsort(-values)
    ways = candidates[order, -1].numpy()
    first = [int(order[0])]
    # One of each way at least, as far as there is room: what polishing adds may differ between ways.
    for way in dict.fromkeys(ways.tolist()) if len(set(ways.tolist())) <= STARTS else ():
        index = int(order[int(np.argmax(ways == way))])
        if index not in first:
            first.append(index)
    rest = [int(index) for index in order[: 2 * STARTS] if int(index) not in first]
    return torch.tensor((first + rest)[:STARTS])


def _taken(candidates: Tensor, chosen: Tensor) -> npt.NDArray[np.bool_]:
    if not len(chosen):
        return np.zeros(len(candidates), dtype=np.bool_)
    found: npt.NDArray[np.bool_] = (candidates[:, None] == chosen).all(-1).any(-1).numpy()
    return found
