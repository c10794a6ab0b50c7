"""Searches of spaces in which most strings cannot be evaluated, told as NaN.

Ehrlich functions (`seqopt.objectives.Ehrlich`) begin with feasible strings, as their authors do; the search of short
DNA begins with random ones, few of which are feasible. Each is run with failures that teach, which is the default, and
with failures that are only not repeated. Those of one seed share the function, the first strings and all seeds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seqopt.bench.records import ENDING, read_records
from seqopt.bench.runner import header, replace_section, run_jobs, with_error
from seqopt.objectives.ehrlich import Ehrlich

FloatArray = npt.NDArray[np.float64]

SEEDS = 10

BANNED = ("AA", "AC", "CC")
"""Pairs that a string of the DNA task must not hold: 7.3 % of all strings of 16 letters hold none."""


@dataclass(frozen=True)
class Task:
    """What is searched.

    Attributes:
        label: Name in the table.
        letters: Size of the alphabet; 0 for the DNA task.
        length: Symbols of a string.
        motifs: Number of motifs.
        motif_length: Symbols of each.
        initial: Strings evaluated first.
        budget: Evaluations after these.
        batch: Strings at a time.
        settled: Evaluations of the budget after which the share of failures is counted.
    """

    label: str
    letters: int
    length: int
    motifs: int
    motif_length: int
    initial: int
    budget: int
    batch: int
    settled: int


TASKS: Mapping[str, Task] = {
    "15": Task("Ehrlich, length 15, 20 letters, 2 motifs of 5", 20, 15, 2, 5, 10, 300, 10, 100),
    "dna": Task("DNA of length 16, three banned pairs", 0, 16, 0, 0, 20, 100, 10, 50),
    "32": Task("Ehrlich, length 32, 32 letters, 2 motifs of 4", 32, 32, 2, 4, 10, 1000, 10, 100),
}
"""What is searched."""

METHODS: Mapping[str, str] = {"learn": "failures teach", "ignore": "failures teach nothing"}
"""What is compared."""


@dataclass(frozen=True)
class Job:
    """One run."""

    task: str
    method: str
    seed: int


def dna_value(strings: Sequence[str]) -> FloatArray:
    """The number of ``CG`` and ``GTA`` in each string, NaN where it holds a banned pair.

    Example:
        >>> dna_value(["CGTAGCGT", "AAGT"]).tolist()
        [3.0, nan]
    """
    return np.array(
        [
            np.nan if any(pair in string for pair in BANNED) else string.count("CG") + string.count("GTA")
            for string in strings
        ],
        dtype=np.float64,
    )


def work(job: Job) -> dict[str, Any]:
    """One run, in one thread: strings in the order of evaluation, and their values."""
    import torch

    from seqopt.optimizer import Optimizer
    from seqopt.spaces import StringSpace
    from seqopt.strategies import ModelBased

    torch.set_num_threads(1)
    task = TASKS[job.task]
    value: Callable[[Sequence[str]], FloatArray] = dna_value
    first: list[str] = []
    space = StringSpace("ACGT", task.length)
    if task.letters:
        value = function = Ehrlich(task.letters, task.length, task.motifs, task.motif_length, seed=job.seed)
        space = StringSpace(function.alphabet, task.length)
        first = function.sample(task.initial, np.random.default_rng(job.seed))
    optimizer = Optimizer(
        space,
        strategy=ModelBased(failures="learn" if job.method == "learn" else None),
        batch_size=task.batch,
        initial=task.initial,
        seed=job.seed,
    )
    if first:
        optimizer.tell(first, value(first))
    started, seconds = time.perf_counter(), []
    while len(optimizer.observations) < task.initial + task.budget:
        begun = time.perf_counter()
        strings = optimizer.ask()
        seconds.append(round(time.perf_counter() - begun, 2))
        optimizer.tell(strings, value(strings))
    rows = optimizer.observations.rows
    return {
        "job": asdict(job),
        "task": asdict(task),
        "strings": [row.string for row in rows],
        "values": [None if row.status == "failed" else round(row.value, 6) for row in rows],
        "suggest_seconds": seconds,
        "seconds": round(time.perf_counter() - started, 1),
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Do the runs that are missing, then write the table; see ``--help``."""
    parser = argparse.ArgumentParser(prog="seqopt bench ehrlich", description=str(__doc__).split("\n\n")[0])
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS), help="default: all")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), help="default: all")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"runs of each (default {SEEDS})")
    parser.add_argument("--results", type=Path, default=Path("results/ehrlich"), help="folder of the raw results")
    parser.add_argument("--document", type=Path, default=Path("docs/results.md"), help="where the table goes")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (default 2)")
    parser.add_argument("--report-only", action="store_true", help="do no run, only write the table")
    options = parser.parse_args(list(argv or []))
    if not options.report_only:
        record = header(list(argv or []), "ehrlich")
        run_jobs(
            [
                Job(task, method, seed)
                for task in options.tasks
                for method in options.methods
                for seed in range(options.seeds)
            ],
            lambda job: options.results / f"{job.task}-{job.method}{ENDING}",
            lambda job: {"job": asdict(job)},
            work,
            processes=options.jobs,
            record=record,
        )
    text = table(read_runs(options.results))
    print(text)
    replace_section(options.document, "ehrlich", text)


Runs = Mapping[tuple[str, str], Sequence[Mapping[str, Any]]]
"""By task and method."""


def read_runs(results: Path) -> Runs:
    """All stored runs."""
    return {
        (task, method): read_records(results / f"{task}-{method}{ENDING}", ["job"])
        for task in TASKS
        for method in METHODS
    }


@dataclass(frozen=True)
class Measures:
    """What one run is judged by.

    Attributes:
        failed: Percent of the evaluations after the initial ones that failed.
        late: Percent of those after the first so many (`Task.settled`) that did.
        best: The best value in the end; 0 where nothing succeeded.
    """

    failed: float
    late: float
    best: float


def measures(run: Mapping[str, Any]) -> Measures:
    """What a stored run is judged by.

    Example:
        >>> run = {"task": {"initial": 1, "settled": 2}, "values": [0.1, None, 0.3, None, 0.2]}
        >>> measures(run)
        Measures(failed=50.0, late=50.0, best=0.3)
    """
    task, values = run["task"], np.array([np.nan if value is None else value for value in run["values"]])
    chosen = np.isnan(values[task["initial"] :])
    known = values[~np.isnan(values)]
    return Measures(
        100.0 * float(chosen.mean()),
        100.0 * float(chosen[task["settled"] :].mean()),
        float(known.max()) if len(known) else 0.0,
    )


def table(runs: Runs) -> str:
    """Means over the seeds with their standard errors."""
    lines = []
    for name, task in TASKS.items():
        if not any(runs[name, method] for method in METHODS):
            continue
        lines += [
            f"| {task.label} | seeds | % failed of {task.budget} | % after the first {task.settled} | best in the end "
            "| s a run |",
            "|---|---|---|---|---|---|",
        ]
        for method, label in METHODS.items():
            found = [measures(run) for run in runs[name, method]]
            if not found:
                continue
            cells = [
                with_error([getattr(one, field) for one in found], 2 if field == "best" else 1) for field in FIELDS
            ]
            spent = np.median([run["seconds"] for run in runs[name, method]])
            lines.append(f"| {label} | {len(found)} | {' | '.join(cells)} | {spent:.0f} |")
        lines.append("")
    lines.append("Means ± one standard error over the seeds. Times are of a shared machine, and only rough.")
    return "\n".join(lines)


FIELDS = tuple(Measures.__dataclass_fields__)
