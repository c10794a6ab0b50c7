"""Does a spread-out first batch help a search?

Each search begins with strings of an initial design, and the surrogate `minmax` and GIBBON choose what comes after. All
values are known: docking scores of Enamine molecules, penalised logP in random parts of ZINC, and solubility in random
parts of ESOL. Designs of one seed share the candidates and the seed of everything that is random.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from seqopt.bench.records import ENDING, read_records
from seqopt.bench.runner import header, replace_section, run_jobs
from seqopt.data.replay import top_of

if TYPE_CHECKING:
    from seqopt.spaces import CandidateSet
    from seqopt.strategies import Design

FloatArray = npt.NDArray[np.float64]

SEEDS = 20
REFERENCE = "random"


@dataclass(frozen=True)
class Task:
    """What is searched.

    Attributes:
        label: Name in the table.
        data: Where the candidates are from: ``"docking"``, ``"zinc"`` or ``"esol"``.
        direction: Of the search.
        initial: Strings of the initial design.
        batch: Strings in each batch.
        batches: Batches after the initial design.
        size: Random candidates that a seed searches; `None` for all.
    """

    label: str
    data: str
    direction: Literal["maximize", "minimize"]
    initial: int
    batch: int
    batches: int
    size: int | None = None


TASKS: Mapping[str, Task] = {
    "docking-50": Task("docking, 50 + 5 x 50", "docking", "minimize", 50, 50, 5),
    "docking-20": Task("docking, 20 + 8 x 10", "docking", "minimize", 20, 10, 8),
    "zinc-20": Task("penalised logP of 20,000 of ZINC, 20 + 8 x 10", "zinc", "maximize", 20, 10, 8, 20_000),
    "esol-10": Task("solubility of 800 of ESOL, 10 + 5 x 10", "esol", "maximize", 10, 10, 5, 800),
}
"""What is searched."""


def _designs() -> Mapping[str, Design | str]:
    from seqopt.strategies import MaxMinDesign, MedoidsDesign

    return {
        "random": "random",
        "maxmin": MaxMinDesign(),
        "maxmin-200": MaxMinDesign(200),
        "medoids": MedoidsDesign(),
    }


DESIGNS: Mapping[str, str] = {
    "random": "random",
    "maxmin": "MaxMin",
    "maxmin-200": "MaxMin of 200 random ones",
    "medoids": "k-medoids of 2,000 random ones",
}
"""What is compared."""


@dataclass(frozen=True)
class Job:
    """One run."""

    task: str
    design: str
    seed: int


@lru_cache(maxsize=1)
def _table(data: str) -> tuple[CandidateSet, FloatArray]:
    """All candidates, and the value of each (of the first of equal molecules)."""
    if data == "docking":
        from seqopt.bench.docking import library

        return library()
    if data == "zinc":
        from seqopt.bench.zinc import zinc

        return zinc()
    from seqopt.datasets import load
    from seqopt.spaces import CandidateSet

    found = load(data)
    assert found.values is not None
    space = CandidateSet(found.strings, kind="molecule")
    first: dict[str, float] = {}
    for key, value in zip(space.keys_of(found.strings), found.values.tolist(), strict=True):
        first.setdefault(key, value)
    return space, np.array([first[key] for key in space.keys])


def candidates_of(task: Task, seed: int) -> npt.NDArray[np.int64]:
    """Indices of the candidates that a seed searches, in ascending order."""
    space, _ = _table(task.data)
    if task.size is None:
        return np.arange(len(space))
    drawn = np.random.default_rng([seed, task.size]).choice(len(space), task.size, replace=False)
    return np.sort(drawn).astype(np.int64)


def work(job: Job) -> dict[str, Any]:
    """One run, in one thread: the molecules in the order of evaluation, by their indices in the data set."""
    import torch

    from seqopt.optimizer import Optimizer
    from seqopt.spaces import CandidateSet

    torch.set_num_threads(1)
    task = TASKS[job.task]
    whole, values = _table(task.data)
    rows = candidates_of(task, job.seed)
    space = CandidateSet([whole[row] for row in rows], kind="molecule", keys=[whole.keys[row] for row in rows])
    optimizer = Optimizer(
        space,
        surrogate="minmax",
        design=_designs()[job.design],
        batch_size=task.batch,
        initial=task.initial,
        direction=task.direction,
        seed=job.seed,
    )
    seconds, chosen = [], []
    for _ in range(1 + task.batches):
        started = time.perf_counter()
        strings = optimizer.ask()
        seconds.append(round(time.perf_counter() - started, 2))
        found = [int(rows[space.index_of(string)]) for string in strings]
        optimizer.tell(strings, values[found])
        chosen += found
    return {
        "job": asdict(job),
        "task": asdict(task),
        "indices": chosen,
        "values": [round(float(value), 6) for value in values[chosen]],
        "suggest_seconds": seconds,
        "hyperparameters": {name: round(value, 5) for name, value in optimizer.hyperparameters.items()},
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Do the runs that are missing, then write the table; see ``--help``."""
    parser = argparse.ArgumentParser(prog="seqopt bench design", description=str(__doc__).split("\n\n")[0])
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS), help="default: all")
    parser.add_argument("--designs", nargs="+", choices=DESIGNS, default=list(DESIGNS), help="default: all")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"runs of each design (default {SEEDS})")
    parser.add_argument("--results", type=Path, default=Path("results/design"), help="folder of the raw results")
    parser.add_argument("--document", type=Path, default=Path("docs/results.md"), help="where the table goes")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (default 2)")
    parser.add_argument("--report-only", action="store_true", help="do no run, only write the table")
    options = parser.parse_args(list(argv or []))
    if not options.report_only:
        record = header(list(argv or []), "design")
        run_jobs(
            [Job(*one) for one in _in_order(options.tasks, options.designs, options.seeds)],
            lambda job: options.results / f"{job.task}-{job.design}{ENDING}",
            lambda job: {"job": asdict(job)},
            work,
            processes=options.jobs,
            record=record,
            every=20,
        )
    text = table(read_runs(options.results))
    print(text)
    replace_section(options.document, "design", text)


def _in_order(tasks: Sequence[str], designs: Sequence[str], seeds: int) -> list[tuple[str, str, int]]:
    return [(task, design, seed) for task in tasks for seed in range(seeds) for design in designs]


Runs = Mapping[tuple[str, str], Mapping[int, Mapping[str, Any]]]
"""By task and design, then by seed."""


def read_runs(results: Path) -> Runs:
    """All stored runs."""
    return {
        (task, design): {run["job"]["seed"]: run for run in read_records(results / f"{task}-{design}{ENDING}", ["job"])}
        for task in TASKS
        for design in DESIGNS
    }


@dataclass(frozen=True)
class Measures:
    """What one run is judged by.

    Attributes:
        spread: Standard deviation of the values of the initial design, in standard deviations of the candidates'.
        first: The best value of the initial design, in the same unit, above the candidates' mean.
        best: The best value in the end.
        share: Percent of the best 1 % found in the end, ties with the last of them included.
        mean_share: The mean of that percentage over the batches after the initial design.
    """

    spread: float
    first: float
    best: float
    share: float
    mean_share: float


def measures(run: Mapping[str, Any]) -> Measures:
    """What a stored run is judged by."""
    task = TASKS[run["job"]["task"]]
    _, values = _table(task.data)
    rows = candidates_of(task, run["job"]["seed"])
    pool = values[rows] * (1.0 if task.direction == "maximize" else -1.0)
    good = set(rows[top_of(pool, -(-len(pool) // 100), maximize=True)].tolist())
    scaled = np.array(run["values"]) * (1.0 if task.direction == "maximize" else -1.0)
    scaled = (scaled - pool.mean()) / pool.std()
    shares = 100 * np.cumsum([index in good for index in run["indices"]]) / len(good)
    ends = task.initial + task.batch * np.arange(1, task.batches + 1)
    return Measures(
        float(scaled[: task.initial].std(ddof=1)),
        float(scaled[: task.initial].max()),
        float(scaled.max()),
        float(shares[-1]),
        float(shares[ends - 1].mean()),
    )


def table(runs: Runs) -> str:
    """Means of the reference, and differences from it paired by seed."""
    lines = []
    for name, task in TASKS.items():
        reference = {seed: measures(run) for seed, run in runs[name, REFERENCE].items()}
        if not reference:
            continue
        lines += [
            f"| {task.label} | seeds | spread of the first | best of the first | best in the end "
            "| % of the top 1 % in the end | mean over batches | s |",
            "|---|---|---|---|---|---|---|---|",
        ]
        for design, label in DESIGNS.items():
            found = {seed: measures(run) for seed, run in runs[name, design].items() if seed in reference}
            if not found:
                continue
            first = design == REFERENCE
            cells = []
            for field in Measures.__dataclass_fields__:
                numbers = np.array(
                    [
                        getattr(one, field) - (0.0 if first else getattr(reference[seed], field))
                        for seed, one in found.items()
                    ]
                )
                error = numbers.std(ddof=1) / np.sqrt(len(numbers)) if len(numbers) > 1 else np.nan
                digits = 1 if "share" in field else 2
                cells.append(f"{numbers.mean():{'' if first else '+'}.{digits}f} ± {error:.{digits}f}")
            spent = np.median([runs[name, design][seed]["suggest_seconds"][0] for seed in found])
            lines.append(f"| {label} | {len(found)} | {' | '.join(cells)} | {spent:.1f} |")
        lines.append("")
    lines.append(
        "The rows of *random* give means, the others differences from it paired by seed, each ± one standard error. "
        "The best values are in standard deviations above the mean of the candidates. Time: median for the first batch."
    )
    return "\n".join(lines)
