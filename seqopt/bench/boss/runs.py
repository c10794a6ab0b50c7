"""Doing, storing and reading runs."""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from seqopt.bench.boss.methods import METHODS
from seqopt.bench.boss.tasks import TASKS
from seqopt.bench.records import ENDING, Run, read_records
from seqopt.errors import InputError


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


def initial_strings(name: str, seed: int) -> list[str]:
    """The random strings that all methods of one task and seed begin with."""
    task = TASKS[name]
    return task.space().sample(task.initial, np.random.default_rng([seed, *name.encode()]))


def work(job: Job) -> Run:
    """Do one run, in one thread: all strings and values in the order of evaluation, and how they were chosen."""
    import torch

    from seqopt.optimizer import Optimizer

    torch.set_num_threads(1)
    # Thousands of runs begin with a few equal values; that the model learns nothing from them needs no saying.
    logging.getLogger("seqopt.models").setLevel(logging.ERROR)
    task = TASKS[job.task]
    steps = task.steps if job.steps is None else job.steps
    objective = task.objective(job.seed)
    declared: dict[str, Any] = {"allow_repeats": True} if task.noisy else {}
    optimizer = Optimizer(
        task.space(),
        initial=task.initial,
        direction=task.direction,
        seed=job.seed,
        **declared,
        **METHODS[job.method].arguments(),
    )
    strings = initial_strings(job.task, job.seed)
    optimizer.tell(strings, objective(strings).tolist())
    seconds = []
    undecodable: list[int] = []
    while (done := len(optimizer.observations) - task.initial + len(undecodable)) < steps:
        started = time.perf_counter()
        strings = optimizer.ask(1)
        seconds.append(time.perf_counter() - started)
        # A latent point that decodes to nothing has cost an evaluation.
        failed = getattr(optimizer.search, "undecodable", 0) - len(undecodable)
        undecodable += range(done, min(done + failed, steps))
        if done + failed >= steps:
            break
        optimizer.tell(strings, objective(strings).tolist())
    rows = optimizer.observations.with_status("ok")
    strings = [row.string for row in rows]
    result: Run = {
        "job": job.identity,
        "settings": {
            "space": describe(optimizer.space),
            "initial": task.initial,
            "steps": steps,
            "direction": task.direction,
            **declared,
            "surrogate": describe_surrogate(optimizer.surrogate),
            "acquisition": describe(optimizer.acquisition),
            "search": describe(optimizer.search),
        },
        "initial": strings[: task.initial],
        "chosen": strings[task.initial :],
        "values": [round(row.value, 6) for row in rows],
        "hyperparameters": {name: round(value, 5) for name, value in optimizer.hyperparameters.items()},
        "suggest_seconds": round(sum(seconds), 3),
        "longest_suggest_seconds": round(max(seconds, default=0.0), 3),
    }
    if task.noiseless is not None:
        result["noiseless"] = task.noiseless(strings).tolist()
        result["recommended"] = optimizer.recommend().string
    if undecodable:
        result["undecodable"] = undecodable
    return result


def describe_surrogate(surrogate: object) -> dict[str, Any]:
    """As `describe`, with the kernel and, where parameters are averaged over, their grid."""
    from seqopt.models import FullyBayesianStringGP
    from seqopt.models.sampling import grid

    found = describe(surrogate)
    if (kernel := getattr(surrogate, "kernel", None)) is not None:
        found["kernel"] = describe(kernel)
    featurizer = getattr(getattr(surrogate, "encoder", None), "featurizer", None)
    if featurizer is not None:
        found["features"] = featurizer.name
    if isinstance(surrogate, FullyBayesianStringGP):
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
            if len({json.dumps(run["settings"], sort_keys=True) for run in several}) > 1:
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


def strings_of(run: Run) -> list[str]:
    """All strings of a run in the order of evaluation."""
    return [*run["initial"], *run["chosen"]]


def worth_of(run: Run) -> list[float]:
    """What all strings of a run are worth: their values, without noise where there is noise."""
    return list(run["noiseless"] if "noiseless" in run else run["values"])


def with_undecodable(run: Run, values: Sequence[float]) -> list[float]:
    """``values`` of the strings of a run, and the worst for each evaluation that was spent on an undecodable point."""
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
