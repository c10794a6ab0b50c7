"""Doing, storing and reading runs."""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from seqopt.bench.boss.methods import METHODS, Setting, autoencoder
from seqopt.bench.boss.tasks import TASKS, Task
from seqopt.bench.records import ENDING, Run, read_records
from seqopt.errors import InputError
from seqopt.spaces import CandidateSet, PoolSpace, Space
from seqopt.strategies import ModelBased, Strategy

if TYPE_CHECKING:
    from seqopt.optimizer import Optimizer


@dataclass(frozen=True)
class Job:
    """One run.

    Attributes:
        task: Name of a task.
        method: Name of a method.
        seed: Fixes the initial strings, the noise and every draw of the optimiser.
        steps: Evaluations after the initial ones; by default those of the task.
    """

    task: str
    method: str
    seed: int
    steps: int | None = None

    @property
    def identity(self) -> dict[str, Any]:
        """What tells it from others in one folder, where all runs of a task have the same number of steps."""
        return {"task": self.task, "method": self.method, "seed": self.seed}

    def path(self, results: Path) -> Path:
        """The file that its result goes to."""
        return results / f"{self.method}{ENDING}"


def initial_strings(name: str, seed: int, space: Space | None = None) -> list[str]:
    """The random strings that all methods of one task and seed begin with.

    Args:
        name: Of the task.
        seed: Of the run.
        space: That of the seed, if at hand.
    """
    task = TASKS[name]
    space = task.space_of(seed) if space is None else space
    if task.part == "molecules" and isinstance(space, PoolSpace):
        return [space[index] for index in range(task.initial)]
    return space.sample(task.initial, np.random.default_rng([seed, *name.encode()]))


def beginning(job: Job, space: Space) -> tuple[list[str], list[int]]:
    """The strings that a run begins with, and the places of those that its autoencoder has made nothing of.

    Args:
        job: The run.
        space: Its space.
    """
    strings = initial_strings(job.task, job.seed, space)
    method, part = METHODS[job.method], TASKS[job.task].part
    if method.encoded is None or part == "molecules":
        return strings, []
    from seqopt.strategies.latent import through_autoencoder

    rng = np.random.default_rng([job.seed, *job.task.encode(), 1])
    found = through_autoencoder(autoencoder(part, method.encoded), space, strings, rng)
    kept = [string for string in found if string is not None]
    return kept, [place for place, string in enumerate(found) if string is None]


def undecodable_of(optimizer: Optimizer) -> int:
    """Latent points that have decoded to nothing so far."""
    strategy = optimizer.strategy.then
    source = strategy.search if isinstance(strategy, ModelBased) else strategy
    return int(getattr(source, "undecodable", 0))


def work(job: Job) -> Run:
    """Do one run, in one thread: all strings and values in the order of evaluation, and how they were chosen."""
    task = TASKS[job.task]
    space = task.space_of(job.seed)
    strings, lost = beginning(job, space)
    encoded, left_out = METHODS[job.method].encoded, list[int]()
    if task.part == "molecules" and encoded is not None and isinstance(space, CandidateSet):
        from seqopt.bench.boss.molecules import readable

        space, left_out = readable(space, autoencoder(task.part, encoded))
        strings = [string for place, string in enumerate(strings) if place not in left_out]
    arguments = METHODS[job.method].arguments(Setting(job.task, task.part, space, left_out))
    return {"job": job.identity, **search(task, space, strings, job.seed, arguments, steps=job.steps, lost=lost)}


def search(
    task: Task,
    space: Space,
    strings: list[str],
    seed: int,
    arguments: dict[str, Any],
    *,
    steps: int | None = None,
    lost: Sequence[int] = (),
) -> Run:
    """One search with any parts.

    Args:
        task: The task.
        space: That of the seed.
        strings: What it begins with.
        seed: Fixes the noise and every draw of the optimiser.
        arguments: Further ones of `seqopt.optimizer.Optimizer`.
        steps: Evaluations after the initial ones; by default those of the task.
        lost: Places of initial strings that an autoencoder has made nothing of.
    """
    import torch

    from seqopt.optimizer import Optimizer

    torch.set_num_threads(1)
    # Thousands of runs begin with a few equal values; that the model learns nothing from them needs no saying.
    for room in ("models", "strategies"):
        logging.getLogger(f"seqopt.{room}").setLevel(logging.ERROR)
    steps = task.steps if steps is None else steps
    objective = task.objective(seed)
    declared: dict[str, Any] = {"allow_repeats": True} if task.noisy else {}
    # A model needs two strings, however few have come back from an autoencoder.
    initial = max(2, len(strings))
    optimizer = Optimizer(space, initial=initial, direction=task.direction, seed=seed, **declared, **arguments)
    optimizer.tell(strings, objective(strings).tolist())
    seconds = []
    undecodable = [place - task.initial for place in lost]
    spent = len(undecodable)
    while (done := len(optimizer.observations) - len(strings) + len(undecodable) - spent) < steps:
        started = time.process_time()
        chosen = optimizer.ask(1)
        seconds.append(time.process_time() - started)
        # A latent point that decodes to nothing has cost an evaluation.
        failed = undecodable_of(optimizer) - (len(undecodable) - spent)
        undecodable += range(done, min(done + failed, steps))
        if done + failed >= steps:
            break
        optimizer.tell(chosen, objective(chosen).tolist())
    rows = optimizer.observations.with_status("ok")
    found = [row.string for row in rows]
    result: Run = {
        "settings": {
            "space": describe(optimizer.space),
            "initial": task.initial,
            "steps": steps,
            "direction": task.direction,
            "transform": optimizer.transform.name,
            **declared,
            **describe_strategy(optimizer.strategy.then, space),
        },
        "initial": found[: len(strings)],
        "chosen": found[len(strings) :],
        "values": [round(row.value, 6) for row in rows],
        "hyperparameters": {name: round(value, 5) for name, value in optimizer.hyperparameters.items()},
        "suggest_seconds": round(sum(seconds), 3),
        "longest_suggest_seconds": round(max(seconds, default=0.0), 3),
    }
    if task.noiseless is not None:
        result["noiseless"] = task.noiseless(found).tolist()
        result["recommended"] = optimizer.recommend().string
    if undecodable:
        result["undecodable"] = undecodable
    return result


def describe_strategy(strategy: Strategy, space: Space) -> dict[str, Any]:
    """The parts of a strategy of a model, or another strategy as a whole."""
    if not isinstance(strategy, ModelBased):
        # What it has counted so far is no setting.
        counted = ("undecodable",)
        return {"strategy": {name: value for name, value in describe(strategy).items() if name not in counted}}
    return {
        "surrogate": describe_surrogate(strategy.surrogate, space),
        "acquisition": describe(strategy.acquisition),
        "search": describe(strategy.search),
    }


def describe_surrogate(surrogate: object, space: Space) -> dict[str, Any]:
    """As `describe`, with the kernel, the symbols if they are not the space's own, and the grid of parameters."""
    from seqopt.models import FullyBayesianGP
    from seqopt.models.sampling import grid

    found = describe(surrogate)
    if (kernel := getattr(surrogate, "kernel", None)) is not None:
        found["kernel"] = describe(kernel)
    featurizer = getattr(getattr(surrogate, "encoder", None), "featurizer", None)
    if featurizer is not None:
        found["features"] = featurizer.name
    elif (encoder := getattr(surrogate, "encoder", None)) is not None and encoder.name != space.encoder.name:
        found["symbols"] = encoder.name
    if isinstance(surrogate, FullyBayesianGP):
        found["kernels"] = [describe(kernel) for kernel in surrogate.kernels]
        names = ("GAP_DECAYS", "MATCH_DECAYS", "OUTPUT_SCALES", "NOISE_VARIANCES")
        found["grid"] = {name.lower(): [round(v, 6) for v in getattr(grid, name)] for name in names}
    return found


def describe(part: object) -> dict[str, Any]:
    """The class of a part of the optimiser, and its public attributes that are plain values."""
    attributes = getattr(part, "__dict__", {})
    plain = {name: value for name, value in attributes.items() if isinstance(value, bool | int | float | str)}
    return {"class": type(part).__name__} | {k: v for k, v in plain.items() if not k.startswith("_")}


def read_runs(results: Path, tasks: Iterable[str] = TASKS) -> dict[str, dict[str, list[Run]]]:
    """All stored runs by task and method, in the order of the tables and of the seeds.

    Raises:
        InputError: If the runs of one task differ in their budgets: a table of them would mean nothing.
    """
    stored: dict[str, dict[str, list[Run]]] = {}
    for method in METHODS:
        for run in read_records(results / f"{method}{ENDING}", ["job"]):
            stored.setdefault(run["job"]["task"], {}).setdefault(method, []).append(run)
    found: dict[str, dict[str, list[Run]]] = {}
    for name in tasks:
        runs = stored.get(name, {})
        for several in runs.values():
            several.sort(key=lambda run: int(run["job"]["seed"]))
        for method, several in runs.items():
            if len({json.dumps(_with_additions(run["settings"]), sort_keys=True) for run in several}) > 1:
                raise InputError(
                    f"the runs of {method} on {name} in {results} were made with different settings (see `settings` in "
                    "them): delete the lines of the old ones, or keep them in another folder (--results)"
                )
        budgets = {len(with_undecodable(run, run["values"])) for several in runs.values() for run in several}
        if len(budgets) > 1:
            raise InputError(
                f"the runs of {name} in {results} have {' and '.join(map(str, sorted(budgets)))} evaluations: "
                "keep runs with other --steps in another folder (--results)"
            )
        if runs:
            found[name] = runs
    return found


ADDED: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "space": {"CodonSpace": {"upstream": "", "downstream": ""}},
    "surrogate": {"StringGP": {"priors": True, "noise": None}},
    "acquisition": {"LogExpectedImprovement": {"incumbent": "mean"}},
    "search": {"GeneticSearch": {"elitist": True, "novel": True}},
}
"""Arguments that parts have got since the first runs were stored, and what these had in their place."""


def _with_additions(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Stored settings as they would be written now.

    Where nothing is learned from values it makes no difference what they are transformed to.
    """
    found = {"transform": "none", **settings}
    if found.get("acquisition", {}).get("class") == "RandomAcquisition" or "strategy" in found:
        del found["transform"]
    for part, classes in ADDED.items():
        if part in found:
            whole = {**classes.get(found[part].get("class", ""), {}), **found[part]}
            found[part] = {name: value for name, value in whole.items() if value is not None}
    return found


def strings_of(run: Run) -> list[str]:
    """All strings of a run in the order of evaluation."""
    return [*run["initial"], *run["chosen"]]


def worth_of(run: Run) -> list[float]:
    """What all strings of a run are worth: their values, without noise where there is noise."""
    return list(run["noiseless"] if "noiseless" in run else run["values"])


def with_undecodable(run: Run, values: Sequence[float]) -> list[float]:
    """``values`` of the strings of a run, and the worst for each evaluation that was spent on an undecodable point.

    Places of such points are counted from the first evaluation after the initial ones; those before are negative.
    """
    task = TASKS[run["job"]["task"]]
    found = list(values)
    for index in run.get("undecodable", ()):
        found.insert(task.initial + index, task.sign * -math.inf)
    return found


def check(run: Run) -> None:
    """Compute the objective of a run's strings again.

    Raises:
        InputError: If a recorded value is not that of its string.
    """
    job = run["job"]
    task = TASKS[job["task"]]
    strings = strings_of(run)
    values = task.objective(job["seed"])(strings)
    noiseless = values if task.noiseless is None else task.noiseless(strings)
    for string, value, again in (
        *zip(strings, run["values"], values, strict=True),
        *zip(strings, worth_of(run), noiseless, strict=True),
    ):
        if abs(value - again) > 1e-5:
            raise InputError(f"{job}: {string!r} has the value {again:g}, not {value:g} as recorded")
