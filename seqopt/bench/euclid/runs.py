"""Doing, storing and reading runs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from seqopt.bench.euclid.adaptive import WAYS, searched, starred
from seqopt.bench.euclid.functions import Problem
from seqopt.bench.euclid.kernels import COMMON
from seqopt.bench.euclid.methods import METHODS, Method, State
from seqopt.bench.euclid.models import (
    EXACT_NOISE,
    Build,
    Surrogate,
    autoregressive,
    coregionalized,
    degenerate,
    hierarchical,
    single,
    without_departures,
)
from seqopt.bench.euclid.plates import PlateProblem
from seqopt.bench.euclid.ratio import with_strategy
from seqopt.bench.euclid.search import Ways, recommend
from seqopt.bench.euclid.tasks import ADAPTIVE, TASKS, Task
from seqopt.bench.records import ENDING, Run, read_records
from seqopt.errors import InputError

FloatArray = npt.NDArray[np.float64]

DIGITS = 8
"""Of stored coordinates."""


NEW_PLATE = 1e-2
"""What a new plate is taken to cost more than one that is open: it decides ties, which is all there are without k_f."""


@dataclass(frozen=True)
class Job:
    """One run.

    Attributes:
        task: Name of a task.
        method: Name of a method.
        seed: Fixes the initial points, the noise and every draw.
        steps: Other than the task's, for trials.
    """

    task: str
    method: str
    seed: int
    steps: int | None = None

    @property
    def identity(self) -> dict[str, Any]:
        """What tells it from others in one folder."""
        return {"task": self.task, "method": self.method, "seed": self.seed}

    def path(self, results: Path) -> Path:
        """The file that its result goes to."""
        return results / f"{self.method}{ENDING}"


@dataclass
class Data:
    """What has been measured: points ``n x (d + 1)`` and values ``n``."""

    points: FloatArray
    values: FloatArray

    def add(self, points: FloatArray, values: FloatArray) -> None:
        """Append measurements."""
        self.points = np.concatenate([self.points, points])
        self.values = np.concatenate([self.values, values])


@dataclass
class Times:
    """Processor seconds, of fits and of choices."""

    fit: list[float]
    choose: list[float]


def work(job: Job) -> Run:
    """Do one run, in one thread and, but for density ratios, in double precision."""
    torch.set_num_threads(1)
    if TASKS[job.task].part == "ratio":
        return _done(job)
    usual = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        return _done(job)
    finally:
        torch.set_default_dtype(usual)


def _done(job: Job) -> Run:
    task, method = TASKS[job.task], METHODS[job.method]
    # All methods of one task and seed begin with the same points.
    first = np.random.default_rng([job.seed, *job.task.encode()])
    rng = np.random.default_rng([job.seed, *job.task.encode(), *job.method.encode()])
    steps = task.steps if job.steps is None else job.steps
    if task.part == "plates":
        assert task.plates is not None
        found = with_plates(task.plates(job.seed), method, steps, first, rng)
    elif task.part in ADAPTIVE:
        # Boxes and functions are the same for all methods, and noise does not depend on what they draw.
        box = starred(task.function.dim, first) if task.starred else None
        found = searched(task.of_seed(job.seed), WAYS[job.method], steps, task.initial, task.part, first, rng, box)
    elif task.part == "ratio":
        assert method.strategy is not None
        strategy = method.strategy(task.function.dim)
        found = with_strategy(task.function, strategy, steps, task.initial, first, rng)
    else:
        found = with_fidelities(task, method, steps, first, rng)
    settings = {"steps": steps, "budget": None if math.isinf(task.budget) else task.budget, "batch": task.batch}
    return {"job": job.identity, "settings": settings, **found}


def with_fidelities(
    task: Task, method: Method, steps: int, first: np.random.Generator, rng: np.random.Generator
) -> Run:
    """A search over a function, with or without several fidelities, in batches.

    Returns:
        For every step, the initial points being step 0: the cost spent since, the regret of the point of largest
        posterior mean, and processor seconds; and all points, fidelities and values.
    """
    problem = task.function
    data = initial(task, method, first)
    surrogate = Surrogate(_build(problem, method, task), problem.target)
    choices = problem.levels or ()
    ways = Ways(choices, problem.cost) if method.fidelities else Ways((problem.target,), problem.cost)
    start = len(data.values)
    spent, times = [0.0], Times([], [])
    regret: list[float] = []
    while True:
        state = _fitted(problem, surrogate, data, ways, task.batch, rng, times)
        regret.append(float(problem.regret(state.near.numpy()[None])[0]))
        if len(regret) > steps or spent[-1] >= task.budget:
            break
        chosen = _chosen(method, state, times)
        cost = float(problem.cost(chosen[:, -1]).sum())
        if spent[-1] + cost > task.budget:
            break
        data.add(chosen, problem.measure(chosen[:, :-1], chosen[:, -1], rng))
        spent.append(spent[-1] + cost)
    return {
        "spent": [round(one, 6) for one in spent],
        "regret": regret[: len(spent)],
        "initial": start,
        **_stored(data, times),
    }


def with_plates(
    problem: PlateProblem, method: Method, evaluations: int, first: np.random.Generator, rng: np.random.Generator
) -> Run:
    """A search of what plates have in common; evaluations count, initial ones too.

    BOSH begins with d + 5 random points on each of two plates, others with d + 3 points on each of their own. The point
    that counts is, of those measured, the one of the largest posterior mean of g.
    """
    dim, bosh = problem.dim, method.plates is None
    together = method.plates or 1
    plates: list[int] = [1, 2] if bosh else list(range(1, together + 1))
    data = Data(np.empty((0, dim + 1)), np.empty(0))
    count = 0

    def measure(points: FloatArray) -> None:
        nonlocal count
        for point in points:
            own = point[None, :dim]
            if bosh:
                data.add(point[None], problem.on_plate(own, int(point[-1])))
            else:
                used = [len(plates) + count + 1] if method.plates == 0 else plates
                value = np.mean([problem.on_plate(own, plate) for plate in used], axis=0)
                data.add(np.append(own, [[0.0]], axis=1), value)
            count += together
        plates.extend({int(plate) for plate in points[:, -1]} - set(plates) if bosh else ())

    if bosh:
        for plate in plates:
            measure(np.column_stack([first.random((dim + 5, dim)), np.full(dim + 5, float(plate))]))
    else:
        measure(np.column_stack([first.random((dim + 3, dim)), np.zeros(dim + 3)]))
    surrogate = Surrogate(hierarchical, COMMON, without_departures) if bosh else Surrogate(single)
    exact = problem.exact and method.plates != 0
    counts: list[int] = []
    worth: list[float] = []
    opened: list[int] = []
    times = Times([], [])
    while True:
        counts.append(count)
        opened.append(len(plates))
        scale = float(data.values.std()) or 1.0
        values = torch.from_numpy((data.values - data.values.mean()) / scale)
        noise = torch.full_like(values, EXACT_NOISE) if exact else None
        started = time.process_time()
        process = surrogate.fit(torch.from_numpy(data.points), values, noise)
        times.fit.append(time.process_time() - started)
        points = process.targets(process.inputs)
        with torch.no_grad():
            best = points[int(process.mean(points).argmax()), :-1]
        worth.append(float(problem.objective(best.numpy()[None])[0]))
        if count + together > evaluations:
            break
        values_of = (*(float(plate) for plate in plates), float(max(plates) + 1)) if bosh else (0.0,)
        way = Ways(values_of, _with_tie_break(values_of[-1]) if bosh else np.ones_like)
        state = State(process, _always(way), 1, best, float(values.max()), rng)
        measure(_chosen(method, state, times))
    found: Run = {"counts": counts, "worth": worth, **_stored(data, times)}
    if bosh:
        found["plates"] = opened
        found["scales"] = [round(one, 6) for one in process.model.covar_module.scales().tolist()]
    if not math.isnan(problem.optimum):
        found["regret"] = [problem.optimum - one for one in worth]
    return found


def _always(ways: Ways) -> Callable[[int], Ways]:
    return lambda count: ways


def _with_tie_break(fresh: float) -> Callable[[FloatArray], FloatArray]:
    return lambda plates: np.where(plates == fresh, 1.0 + NEW_PLATE, 1.0)


def initial(task: Task, method: Method, rng: np.random.Generator) -> Data:
    """Random points: 2 d of them in every way to measure, or 2 d + 2 where there is one way (section 5.7.1).

    With a continuous fidelity they are measured at 0, 1/2 and 1. Methods that measure the target only get its part.
    """
    problem = task.function
    several = task.part == "fidelity"
    levels = (0.0, 0.5, 1.0) if problem.levels is None else problem.levels
    points = rng.random((2 * problem.dim + (0 if several else 2), problem.dim))
    used = levels if method.fidelities else (problem.target,)
    data = Data(np.empty((0, problem.dim + 1)), np.empty(0))
    for level in levels:
        noise = np.random.default_rng(rng.integers(2**63))
        if level in used:
            column = np.full(len(points), level)
            data.add(np.column_stack([points, column]), problem.measure(points, column, noise))
    return data


def read_runs(results: Path, tasks: Iterable[str] = TASKS) -> dict[str, dict[str, list[Run]]]:
    """All stored runs by task and method, in the order of the tables and of the seeds."""
    stored: dict[str, dict[str, list[Run]]] = {}
    for method in METHODS:
        for run in read_records(results / f"{method}{ENDING}", ["job"]):
            stored.setdefault(run["job"]["task"], {}).setdefault(method, []).append(run)
    found: dict[str, dict[str, list[Run]]] = {}
    for name in tasks:
        for method in TASKS[name].methods:
            if several := stored.get(name, {}).get(method):
                found.setdefault(name, {})[method] = sorted(several, key=lambda run: int(run["job"]["seed"]))
    return found


def check(run: Run) -> None:
    """Compute the noiseless values of a run's points again.

    Raises:
        InputError: If a recorded value is further from that of its point than noise explains.
    """
    job = run["job"]
    task = TASKS[job["task"]]
    points, values = np.array(run["points"]), np.array(run["values"])
    if task.part == "plates":
        assert task.plates is not None
        fixed = METHODS[job["method"]].plates
        problem = task.plates(job["seed"])
        again = np.empty(len(points))
        for place, point in enumerate(points):
            # A new plate each time is 2, 3, ...; means are over the first ones.
            one = int(point[-1]) if fixed is None else place + 2
            used = range(1, fixed + 1) if fixed else (one,)
            again[place] = np.mean([problem.on_plate(point[None, :-1], plate) for plate in used])
        allowed = np.full(len(values), 1e-5)
    else:
        measured = task.of_seed(job["seed"])
        again = measured.value(points[:, :-1], points[:, -1])
        noise = np.sqrt(measured.noise_variance(points[:, -1]))
        # Coordinates are stored to so many digits, and functions are steep.
        allowed = 1e-5 * np.maximum(1.0, np.abs(values)) + 6.0 * noise
    wrong = np.flatnonzero(~(np.abs(values - again) <= allowed))
    if len(wrong):
        one = int(wrong[0])
        raise InputError(f"{job}: point {one + 1} has the value {again[one]:g}, not {values[one]:g} as recorded")


def _build(problem: Problem, method: Method, task: Task) -> Build:
    if not method.fidelities:
        return single
    if problem.levels is None:
        return degenerate
    return coregionalized if method.model == "coregionalised" else autoregressive(len(problem.levels))


def _fitted(
    problem: Problem,
    surrogate: Surrogate,
    data: Data,
    ways: Ways,
    batch: int,
    rng: np.random.Generator,
    times: Times,
) -> State:
    mean, scale = float(data.values.mean()), float(data.values.std()) or 1.0
    values = torch.from_numpy((data.values - mean) / scale)
    noise = None
    if problem.exact:
        known = problem.noise_variance(data.points[:, -1]) / scale**2
        noise = torch.from_numpy(np.maximum(known, EXACT_NOISE))
    started = time.process_time()
    process = surrogate.fit(torch.from_numpy(data.points), values, noise)
    times.fit.append(time.process_time() - started)
    best = float(values[torch.from_numpy(data.points[:, -1] == problem.target)].max())
    return State(process, _always(ways), batch, recommend(process, rng), best, rng)


def _chosen(method: Method, state: State, times: Times) -> FloatArray:
    started = time.process_time()
    chosen: FloatArray = method.choose(state).numpy()
    times.choose.append(time.process_time() - started)
    return chosen


def _stored(data: Data, times: Times) -> dict[str, Any]:
    return {
        "points": [[round(value, DIGITS) for value in point] for point in data.points.tolist()],
        "values": [float(f"{value:.9g}") for value in data.values],
        "fit_seconds": [round(one, 4) for one in times.fit],
        "choose_seconds": [round(one, 4) for one in times.choose],
    }
