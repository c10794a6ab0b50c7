"""The command ``seqopt bench factorial``."""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from seqopt.bench.boss.published import Score
from seqopt.bench.boss.runs import initial_strings, search
from seqopt.bench.conditions import measured_by
from seqopt.bench.factorial.design import FACTORS, LABELS, TASKS, ZINC_INITIAL, Cell, cells_of, third_of
from seqopt.bench.factorial.effects import balanced, effect, pair_means, spread, worths
from seqopt.bench.kernel.report import Table
from seqopt.bench.records import ENDING, Run, read_records
from seqopt.bench.runner import header, replace_section, run_jobs

DESCRIPTION = """What matters: kernel, parameters, acquisition function and inner search, each crossed with the others.

A seed runs a third of the 54 cells (a Latin square), the next seed another third; of formulas and molecules, which have
fewer, each runs all. Runs that are there already are kept."""

RESULTS, DOCUMENT = Path("results/factorial"), Path("docs/results.md")

SEEDS = 6
"""Seeds: every cell of 54 twice."""

PROGRESS = 18
"""Runs from one line of progress to the next."""

PAIRS = (("kernel", "parameters"), ("acquisition", "search"))
"""Factors whose levels are shown together."""


@dataclass(frozen=True)
class Job:
    """One run.

    Attributes:
        task: Name of a task.
        cell: Levels of all factors.
        seed: Fixes the initial strings, the noise and every draw of the optimiser.
        steps: Evaluations after the initial ones; by default those of the task.
    """

    task: str
    cell: Cell
    seed: int
    steps: int | None = None

    @property
    def identity(self) -> dict[str, Any]:
        """What tells it from others in one folder."""
        return {"task": self.task, "cell": asdict(self.cell), "seed": self.seed}


def work(job: Job) -> Run:
    """Do one run, in one thread."""
    task = TASKS[job.task]
    space = task.space_of(job.seed)
    if task.part == "molecules":
        strings = [space[index] for index in range(ZINC_INITIAL)]  # type: ignore[index]
    else:
        strings = initial_strings(job.task if job.task in BEGINNINGS else "regression", job.seed, space)
    return {"job": job.identity, **search(task, space, strings, job.seed, job.cell.arguments(), steps=job.steps)}


BEGINNINGS = {name for name in TASKS if not name.startswith("formula")}
"""Tasks with initial strings of their own; other formulas begin with those of the published one."""


def planned(
    tasks: Sequence[str] = tuple(TASKS),
    seeds: int = SEEDS,
    first_seed: int = 0,
    *,
    every_cell: bool = False,
    steps: int | None = None,
) -> list[Job]:
    """All runs that are wanted, seed by seed and the cheaper tasks first.

    Args:
        tasks: Names of tasks.
        seeds: How many in a row.
        first_seed: The first of them.
        every_cell: Whether each seed runs all cells instead of its third.
        steps: Evaluations after the initial ones; by default those of the task.
    """
    return [
        Job(task, cell, seed, steps)
        for seed in range(first_seed, first_seed + seeds)
        for task in TASKS
        if task in tasks
        for cell in (cells_of(task) if every_cell else third_of(task, seed))
    ]


def main(argv: Sequence[str] | None = None) -> None:
    """Do the runs that are missing, print the tables, and write them; see ``--help``."""
    parser = argparse.ArgumentParser(
        prog="seqopt bench factorial", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS), help="default: all")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"seeds of each task (default {SEEDS})")
    parser.add_argument("--first-seed", type=int, default=0, help="of so many seeds in a row (default 0)")
    parser.add_argument("--every-cell", action="store_true", help="all 54 cells with each seed instead of a third")
    parser.add_argument("--steps", type=int, help="another budget, for trials; needs a separate --results folder")
    parser.add_argument("--results", type=Path, help=f"folder of the raw results, a file a task (default {RESULTS})")
    parser.add_argument(
        "--document", type=Path, help=f"where the tables go (default {DOCUMENT}; nowhere with --results)"
    )
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (default 2)")
    parser.add_argument("--report-only", action="store_true", help="do no run, only write the tables")
    options = parser.parse_args(list(argv or []))
    if options.steps is not None and (options.results is None or options.steps < 1):
        parser.error("--steps takes a number from 1, and a separate folder for its runs: --results")
    if options.first_seed < 0 or options.seeds < 1:
        parser.error("--seeds takes a number from 1, --first-seed a number from 0")
    document = options.document or (DOCUMENT if options.results is None else None)
    results = options.results or RESULTS
    if not options.report_only:
        record = header(list(argv or []), "factorial")
        record["versions"]["viennarna"] = version("viennarna")
        jobs = planned(
            options.tasks, options.seeds, options.first_seed, every_cell=options.every_cell, steps=options.steps
        )
        run_jobs(
            jobs,
            lambda job: results / f"{job.task}{ENDING}",
            lambda job: {"job": job.identity},
            work,
            processes=options.jobs,
            record=record,
            every=PROGRESS,
        )
    runs = {name: read_records(results / f"{name}{ENDING}", ["job"]) for name in TASKS}
    found = [table for table in tables(runs) if table.rows]
    for table in found:
        table.print()
    if document is not None and found:
        text = [
            measured_by(run["record"] for several in runs.values() for run in several),
            *(table.to_markdown() for table in found),
        ]
        replace_section(document, "factorial", "\n\n".join(text))


def tables(runs: Mapping[str, Sequence[Run]]) -> list[Table]:
    """Main effects, and means by pairs of factors."""
    by_task = {name: balanced(name, found) for name, several in runs.items() if (found := worths(several))}
    return [main_effects(by_task), *(means_of_pairs(by_task, *pair) for pair in PAIRS)]


def main_effects(by_task: Mapping[str, Any]) -> Table:
    """How much better each level is than the published one, in the units of each task and over all tasks."""
    rows = []
    for factor, levels in FACTORS.items():
        for level in levels[1:]:
            effects = {name: effect(by_seed, factor, level, levels[0]) for name, by_seed in by_task.items()}
            shared = [
                Score(found.mean / spread(by_task[name]), found.error / spread(by_task[name]))
                for name, found in effects.items()
                if found is not None and spread(by_task[name]) > 0
            ]
            overall = _mean_of(shared).text(2) if shared else ""
            cells = [found.text(_digits(name)) if found else "" for name, found in effects.items()]
            rows.append((factor, f"{LABELS[level]}, not {LABELS[levels[0]]}", *cells, overall))
    seeds = "; ".join(f"{name}: {len(by_seed)}" for name, by_seed in by_task.items())
    return Table(
        "Main effects: how much better than the published level, all else varied",
        ("factor", "level", *(TASKS[name].label for name in by_task), "all, in standard deviations"),
        rows,
        "Mean over seeds of the difference between the means of all cells of a seed with the one and with the other "
        "level, and its standard error over seeds. Counts in percent of the largest; energies in kcal/mol and errors "
        "with their sign turned, so that more is better everywhere. All: the mean over tasks of the effect in units of "
        "the standard deviation of a task's runs about the mean of their seed; a task with one seed, which has no "
        "error, is taken to have the mean variance of the others. Seeds of "
        f"{seeds}.",
    )


def means_of_pairs(by_task: Mapping[str, Any], first: str, second: str) -> Table:
    """Mean scores by two factors."""
    pairs = list(itertools.product(FACTORS[first], FACTORS[second]))
    rows = []
    for one, other in pairs:
        cells = []
        for name, by_seed in by_task.items():
            found = pair_means(by_seed, {first: one, second: other})
            cells.append(found.text(_digits(name)) if found else "")
        rows.append((LABELS[one], LABELS[other], *cells))
    return Table(
        f"Means by {first} and {second}",
        (first, second, *(TASKS[name].label for name in by_task)),
        rows if by_task else [],
        "Mean over seeds of the mean over the other factors, and its standard error over seeds.",
    )


def _digits(name: str) -> int:
    return 1 if TASKS[name].largest is not None else 2


def _mean_of(effects: Sequence[Score]) -> Score:
    """Mean of independent effects. One of a single seed is taken to have the error of the others.

    Errors are averaged as variances.
    """
    mean = float(np.mean([found.mean for found in effects]))
    variances = [found.error**2 for found in effects if not math.isnan(found.error)]
    return Score(mean, float(np.sqrt(np.mean(variances) / len(effects))) if variances else math.nan)
