"""Doing, storing and reading runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from seqopt.bench.configurations.baselines import evolution, tpe
from seqopt.bench.configurations.methods import METHODS
from seqopt.bench.configurations.tasks import INITIAL, TASKS, Table, regrets, table_of
from seqopt.bench.records import ENDING, Run, read_records


@dataclass(frozen=True)
class Job:
    """One run.

    Attributes:
        task: Name of a table.
        method: Name of a method.
        seed: Fixes the first configurations, which replicate is told, and every draw.
    """

    task: str
    method: str
    seed: int


def work(job: Job) -> Run:
    """One run, in one thread: configurations in the order of evaluation, and the regret after each."""
    import torch

    torch.set_num_threads(1)
    table, budget = table_of(job.task), TASKS[job.task].budget
    started = time.process_time()
    strings = search(table, job, budget)
    return {
        "job": asdict(job),
        "budget": budget,
        "strings": strings,
        "regret": [float(f"{value:.5g}") for value in regrets(table, strings, job.seed)],
        "seconds": round(time.process_time() - started, 1),
    }


def search(table: Table, job: Job, budget: int) -> list[str]:
    """The configurations that a method evaluates, in order."""
    method = METHODS[job.method]
    rows, told = table.rows, table.measured(job.seed)
    initial = table.initial(job.seed)

    def value(string: str) -> float:
        return float(told[rows[string]])

    rng = np.random.default_rng([job.seed, *job.method.encode()])
    if method.kind == "random":
        return table.initial(job.seed, min(budget, len(table.strings)))
    baselines: Mapping[str, Callable[..., list[str]]] = {"evolution": evolution, "tpe": tpe}
    if method.kind in baselines:
        return baselines[method.kind](table.choices, initial, budget, value, rng)
    from seqopt.optimizer import Optimizer

    optimizer = Optimizer(
        table.space,
        strategy=method.strategy(),
        batch_size=1,
        initial=INITIAL,
        direction="minimize",
        seed=int(rng.integers(2**31)),
    )
    optimizer.tell(initial, [value(string) for string in initial])
    while len(optimizer.observations) < budget:
        strings = optimizer.ask(1)
        optimizer.tell(strings, [value(string) for string in strings])
    return [row.string for row in optimizer.observations.rows]


Runs = Mapping[str, Mapping[str, Sequence[Run]]]
"""By task and method."""


def read_runs(results: Path) -> Runs:
    """All stored runs, in the order of the tables, the methods and the seeds."""
    found: dict[str, dict[str, list[Run]]] = {name: {} for name in TASKS}
    for method in METHODS:
        for run in read_records(results / f"{method}{ENDING}", ["job"]):
            found.get(run["job"]["task"], {}).setdefault(method, []).append(run)
    for by_method in found.values():
        for several in by_method.values():
            several.sort(key=_seed)
    return {name: by_method for name, by_method in found.items() if by_method}


def _seed(run: Mapping[str, Any]) -> int:
    return int(run["job"]["seed"])
