"""The command ``seqopt bench euclid``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from seqopt.bench.euclid.methods import METHODS
from seqopt.bench.euclid.report import tables, write_document
from seqopt.bench.euclid.runs import Job, check, read_runs, work
from seqopt.bench.euclid.tasks import ADAPTIVE, RATIO_SEEDS, SEEDS, SLOW, SLOW_SEEDS, TASKS, Part
from seqopt.bench.runner import header, run_jobs

DESCRIPTION = """The experiments of the thesis on functions of the unit cube: fidelities (sections 3.5 and 5.7.2),
batches (5.7.1), and plates (6.6.1 and 6.6.4). The models are BoTorch's; the acquisition functions are seqopt's own.
And BORE and LFBO, whose classifiers and strategies are seqopt's, on the functions of Forrester and Branin (ratio).
With models that average over their parameters: what is learned by SAL and others (learning), optimisation with noise
by SCoreBO and others (noisy), the entropy search portfolio (esp), and search from a box that is too small (unbounded).

Runs that are there already are kept, whatever they were made with; the tables hold all runs of the folder."""

RESULTS, DOCUMENT = Path("results/euclid"), Path("docs/results.md")

PROGRESS = 10
"""Runs from one line of progress to the next."""


def main(argv: Sequence[str] | None = None) -> None:
    """Do the runs that are missing, print the tables, and write them; see ``--help``."""
    parser = argparse.ArgumentParser(
        prog="seqopt bench euclid", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", nargs="+", choices=get_args(Part), default=list(get_args(Part)), help="default: all")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, help="default: all of the parts")
    parser.add_argument("--methods", nargs="+", choices=METHODS, help="default: those of each task")
    parser.add_argument(
        "--seeds",
        type=int,
        help=f"runs of each task and method (default {SEEDS}; {SLOW_SEEDS} of {' and '.join(SLOW)}, the slow ones; "
        f"{RATIO_SEEDS} of density ratios and of models that average over their parameters)",
    )
    parser.add_argument("--first-seed", type=int, default=0, help="of so many seeds in a row (default 0)")
    parser.add_argument("--steps", type=int, help="another number of steps, for trials; needs a separate --results")
    parser.add_argument(
        "--results", type=Path, help=f"folder of the raw results, a file for each method (default {RESULTS})"
    )
    parser.add_argument(
        "--document", type=Path, help=f"where the tables go (default {DOCUMENT}; nowhere with --results)"
    )
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (default 2)")
    parser.add_argument("--report-only", action="store_true", help="do no run, only write the tables")
    parser.add_argument("--check", action="store_true", help="compute the values of all stored points again")
    options = parser.parse_args(list(argv or []))
    if options.steps is not None and (options.results is None or options.steps < 1):
        parser.error("--steps takes a number from 1, and a separate folder for its runs: --results")
    if options.first_seed < 0 or (options.seeds is not None and options.seeds < 1):
        parser.error("--seeds takes a number from 1, --first-seed a number from 0")
    document = options.document or (DOCUMENT if options.results is None else None)
    results = options.results or RESULTS
    if not options.report_only:
        record = header(list(argv or []), "euclid")
        jobs = planned(options.parts, options.tasks, options.methods, options.seeds, options.first_seed, options.steps)
        run_jobs(
            jobs,
            lambda job: job.path(results),
            lambda job: {"job": job.identity},
            work,
            processes=options.jobs,
            record=record,
            every=PROGRESS,
        )
    runs = read_runs(results)
    if options.check:
        stored = [run for by_method in runs.values() for several in by_method.values() for run in several]
        for run in stored:
            check(run)
        print(f"checked {len(stored):,} runs: every value is that of its point", flush=True)
    for table in tables(runs):
        table.print()
    if document is not None:
        write_document(document, runs)


def planned(
    parts: Sequence[Part],
    tasks: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    seeds: int | None = None,
    first_seed: int = 0,
    steps: int | None = None,
) -> list[Job]:
    """All runs that are wanted, seed by seed, so that a command that is stopped leaves as many of each.

    Args:
        parts: Of the benchmark.
        tasks: Of these parts; by default all.
        methods: Names of methods; by default those of the task.
        seeds: Runs of each task and method; by default ten, fewer of the slow ones, and twenty of density ratios.
        first_seed: Of so many in a row.
        steps: By default those of the task.
    """
    wanted = [name for name, task in TASKS.items() if task.part in parts and (tasks is None or name in tasks)]
    return [
        Job(name, method, first_seed + number, steps)
        for number in range(max(SEEDS, RATIO_SEEDS) if seeds is None else seeds)
        for name in wanted
        if seeds is not None or number < (RATIO_SEEDS if TASKS[name].part in ("ratio", *ADAPTIVE) else SEEDS)
        for method in TASKS[name].methods
        if (methods is None or method in methods) and not (seeds is None and method in SLOW and number >= SLOW_SEEDS)
    ]
