"""The command ``seqopt bench boss``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import get_args

from seqopt.bench.boss.genes import SMALL, all_energies
from seqopt.bench.boss.methods import DEFAULT_METHODS, METHODS
from seqopt.bench.boss.report import Energies, tables, write_document
from seqopt.bench.boss.runs import Job, check, read_runs, work
from seqopt.bench.boss.tasks import LONG, SEEDS, TASKS, Part
from seqopt.bench.folding import FIELDS
from seqopt.bench.records import read_records
from seqopt.bench.runner import header, run_jobs

DESCRIPTION = """The experiments of the BOSS paper: pattern counts (table 4.6.1), genes, symbolic regression, molecules.

The methods whose names begin with boss are the paper's own; see seqopt.strategies.published for how it was read.

Runs that are there already are kept, whatever they were made with; the tables hold all runs of the folder."""

RESULTS, DOCUMENT, FOLDINGS = Path("results/boss"), Path("docs/results.md"), Path("results/folding.jsonl")

PROGRESS = 25
"""Runs from one line of progress to the next."""


def main(argv: Sequence[str] | None = None) -> None:
    """Do the runs that are missing, print the tables, and write them; see ``--help``."""
    parser = argparse.ArgumentParser(
        prog="seqopt bench boss", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", nargs="+", choices=get_args(Part), default=list(get_args(Part)), help="default: all")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, help="default: all of the parts")
    parser.add_argument(
        "--methods", nargs="+", choices=METHODS, help=f"default: {_listed()}; fewer for the longest protein"
    )
    parser.add_argument("--seeds", type=int, help=f"runs of each task and method (default: {_runs()})")
    parser.add_argument("--first-seed", type=int, default=0, help="of so many seeds in a row (default 0)")
    parser.add_argument("--steps", type=int, help="another budget, for trials; needs a separate --results folder")
    parser.add_argument(
        "--results", type=Path, help=f"folder of the raw results, a file for each method (default {RESULTS})"
    )
    parser.add_argument(
        "--document", type=Path, help=f"where the tables go (default {DOCUMENT}; nowhere with --results)"
    )
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (default 2)")
    parser.add_argument("--report-only", action="store_true", help="do no run, only write the tables")
    parser.add_argument("--check", action="store_true", help="compute the values of all stored strings again")
    options = parser.parse_args(list(argv or []))
    if options.steps is not None and (options.results is None or options.steps < 1):
        parser.error("--steps takes a number from 1, and a separate folder for its runs: --results")
    if options.first_seed < 0 or (options.seeds is not None and options.seeds < 1):
        parser.error("--seeds takes a number from 1, --first-seed a number from 0")
    document = options.document or (DOCUMENT if options.results is None else None)
    results = options.results or RESULTS
    if not options.report_only:
        record = header(list(argv or []), "boss")
        record["versions"]["viennarna"] = version("viennarna")
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
        print(f"checked {len(stored):,} runs: every value is that of its string", flush=True)
    energies: Energies = {SMALL: all_energies(progress=_show_progress)} if SMALL in runs else {}
    foldings = {run["protein"]: run for run in read_records(FOLDINGS, FIELDS) if run["beam"] is None}
    for table in tables(runs, energies, foldings):
        table.print()
    if document is not None:
        write_document(document, runs, energies, foldings)


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
        seeds: Runs of each task and method; by default those of the task.
        first_seed: Of so many in a row.
        steps: Evaluations after the initial ones; by default those of the task.
    """
    wanted = [name for name, task in TASKS.items() if task.part in parts and (tasks is None or name in tasks)]
    numbers = {name: TASKS[name].runs if seeds is None else seeds for name in wanted}
    return [
        Job(name, method, first_seed + number, steps)
        for number in range(max(numbers.values(), default=0))
        for name in wanted
        for method in (methods or TASKS[name].methods or DEFAULT_METHODS)
        if number < numbers[name] and TASKS[name].part in METHODS[method].parts
    ]


def _runs() -> str:
    return ", ".join(f"{number} of {part}" for part, number in SEEDS.items()) + f", fewer of {LONG}"


def _listed() -> str:
    return ", ".join(DEFAULT_METHODS)


def _show_progress(done: int, total: int) -> None:
    print(f"\rfolding all genes of {SMALL} once: {done:,} of {total:,}", end="\n" if done == total else "", flush=True)
