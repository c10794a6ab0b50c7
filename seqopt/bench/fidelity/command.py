"""The command ``seqopt bench fidelity``."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from seqopt.bench.fidelity.measures import CHECKPOINTS, HALF, TOP, Measures, measures
from seqopt.bench.fidelity.methods import METHODS, REFERENCE
from seqopt.bench.fidelity.runs import Job, work
from seqopt.bench.fidelity.tasks import TASKS, Candidates
from seqopt.bench.records import ENDING, read_records
from seqopt.bench.runner import header, replace_section, run_jobs, with_error

SEEDS = 20
RESULTS = Path("results/fidelity")


def main(argv: Sequence[str] | None = None) -> None:
    """Do the runs that are missing, then write the tables; see ``--help``."""
    parser = argparse.ArgumentParser(
        prog="seqopt bench fidelity", description="Is a cheap measurement worth its cost? Runs that are there are kept."
    )
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS), help="default: all")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), help="default: all")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"runs of each method (default {SEEDS})")
    parser.add_argument("--results", type=Path, default=RESULTS, help=f"folder of the raw results (default {RESULTS})")
    parser.add_argument("--document", type=Path, default=Path("docs/results.md"), help="where the tables go")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (default 2)")
    parser.add_argument("--report-only", action="store_true", help="do no run, only write the tables")
    options = parser.parse_args(list(argv or []))
    if not options.report_only:
        record = header(list(argv or []), "fidelity")
        run_jobs(
            planned(options.tasks, options.methods, options.seeds),
            lambda job: options.results / f"{job.task}{ENDING}",
            lambda job: {"job": asdict(job)},
            work,
            processes=options.jobs,
            record=record,
            every=10,
        )
    text = tables(read_runs(options.results))
    print(text)
    replace_section(options.document, "fidelity", text)


def planned(tasks: Sequence[str], methods: Sequence[str], seeds: int) -> list[Job]:
    """All runs that are wanted, seed by seed, so that a study that is stopped has compared all methods."""
    wanted = [Job(_home(task, method), method, seed) for seed in range(seeds) for task in tasks for method in methods]
    return list(dict.fromkeys(wanted))


def _home(task: str, method: str) -> str:
    """The task whose runs of a method count for a task, too."""
    base, found = TASKS[task].base, METHODS[method]
    # How a search of two fidelities begins is of no matter to others that see the same cheap values.
    same = found.blind or (found.kind != "multi" and TASKS[task].spoil is None)
    return base if base is not None and same else task


Runs = Mapping[str, Mapping[str, Mapping[int, Mapping[str, Any]]]]
"""By task, method and seed."""


def read_runs(results: Path) -> Runs:
    """All stored runs; those that see and do the same in another task count there, too."""
    found: dict[str, dict[str, dict[int, Mapping[str, Any]]]] = {}
    for task in TASKS:
        for run in read_records(results / f"{task}{ENDING}", ["job"]):
            found.setdefault(task, {}).setdefault(run["job"]["method"], {})[run["job"]["seed"]] = run
    for task in list(found):
        for method in METHODS:
            home = _home(task, method)
            if home != task and method in found.get(home, {}):
                found[task][method] = found[home][method]
    return found


@lru_cache(maxsize=64)
def _candidates(task: str, seed: int) -> Candidates:
    return TASKS[task].candidates(seed)


def tables(runs: Runs) -> str:
    """A table for each task."""
    lines = []
    for name, task in TASKS.items():
        found = {
            method: {seed: measures(run, _candidates(name, seed)) for seed, run in sorted(several.items())}
            for method, several in runs.get(name, {}).items()
        }
        if found:
            lines += [*_table(name, task.label, found), ""]
    lines.append(
        f"In costs of one costly measurement, mean ± one standard error over seeds: until one of the {TOP} best "
        f"candidates was measured as the target, until {HALF} of them were, and until the best was. A search that did "
        "not get there counts with its budget, a lower bound; where some did not, the percentage of those that did "
        f"follows in brackets. Less {METHODS[REFERENCE].label}: difference paired by seed, negative where it is "
        "cheaper. Regret: how far the best target measured so far is from the best of all, in standard deviations of "
        "the targets. Cheap: percent of the cost that went into cheap measurements."
    )
    return "\n".join(lines)


def _table(name: str, label: str, found: Mapping[str, Mapping[int, Measures]]) -> list[str]:
    task, space = TASKS[name], _candidates(name, 0).space
    short = METHODS[REFERENCE].label
    lines = [
        f"**{label}**: {len(space):,} candidates, a cheap value costs {task.cost:g}, budget {task.budget:g}",
        "",
        f"| method | seeds | cost to one of the {TOP} best | less {short} | cost to {HALF} of them | less {short} "
        f"| cost to the best | less {short} | {' | '.join(f'regret at {cost:g}' for cost in CHECKPOINTS)} | cheap % |",
        "|---|---|" + "---|" * (7 + len(CHECKPOINTS)),
    ]
    reference = found.get(REFERENCE, {})
    for method in (one for one in METHODS if one in found):
        several = found[method]
        cells = [METHODS[method].label, str(len(several))]
        for place, field in enumerate(("first", "half", "best")):
            reached = 100 * np.mean([one.reached[place] for one in several.values()])
            cells.append(
                with_error([getattr(one, field) for one in several.values()], 1)
                + (f" ({reached:.0f} %)" if reached < 100 else "")
            )
            pairs = [
                getattr(one, field) - getattr(reference[seed], field)
                for seed, one in several.items()
                if seed in reference
            ]
            cells.append("" if method == REFERENCE or not pairs else _paired(pairs, len(several)))
        for place in range(len(CHECKPOINTS)):
            regrets = np.array([one.regret[place] for one in several.values()])
            cells.append("" if np.isnan(regrets).any() else with_error(regrets, 2))
        cells.append(f"{100 * np.mean([one.share for one in several.values()]):.0f}")
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _paired(pairs: Sequence[float], seeds: int) -> str:
    """Mean difference, and of how many pairs where the reference was not run for all seeds."""
    return with_error(pairs, 1) + (f" ({len(pairs)} pairs)" if len(pairs) < seeds else "")
