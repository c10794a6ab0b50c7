"""Active learning on public data sets: from which molecules does a model learn to predict the others?

For each split, 200 molecules are set aside, and up to 1,000 others may be measured. From 20 random ones, the same for
all methods, batches of 10 are chosen up to 200; after each, the root mean squared error of predictions of the molecules
that were set aside is taken. All methods have the same model: `ngrams+minmax`, with
averages over 8 draws of its parameters. It is fitted anew after each batch. Differences are paired by split.

References:
    Hvarfner, C., Hellsten, E., Hutter, F., Nardi, L. (2023). Self-correcting Bayesian optimization through Bayesian
        active learning. NeurIPS (SAL and the baselines, on functions of one to six variables).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from seqopt.bench.records import ENDING, read_records
from seqopt.bench.regression import molecules
from seqopt.bench.runner import header, replace_section, run_jobs, with_error

SPLITS, TEST, MOST_CANDIDATES = 20, 200, 1_000
INITIAL, BATCH, LAST = 20, 10, 200
SHOWN = (20, 50, 100, 150, 200)
"""Numbers of measured molecules in the table."""

TASKS: Mapping[str, str] = {"esol": "ESOL, log10(mol/l)", "lipophilicity": "Lipophilicity, logD"}
"""Data sets and their headings."""

RANDOM, BALM = "random", "balm"
REFERENCES = (RANDOM, BALM)
"""With which the others are compared split by split."""

METHODS: Mapping[str, str] = {
    RANDOM: "random molecules",
    "sal": "SAL, Wasserstein",
    "sal-hellinger": "SAL, Hellinger",
    BALM: "BALM (largest variance)",
    "bqbc": "BQBC (disagreement of means)",
    "qbmgp": "QBMGP (variance of the mixture)",
    "bald": "BALD",
}
"""What is compared, and what it is called."""

DEFAULT_METHODS = (RANDOM, "sal", BALM)


@dataclass(frozen=True)
class Job:
    """One method on one split."""

    task: str
    method: str
    split: int


def _acquisition(method: str) -> Any:
    from seqopt.acquisition import SAL, resolve_acquisition

    return SAL("hellinger") if method == "sal-hellinger" else resolve_acquisition(method)


def work(job: Job) -> dict[str, Any]:
    """Learn on one split, in one thread."""
    import torch

    from seqopt.models import SURROGATES, averaged
    from seqopt.scorers import GaussianScoring
    from seqopt.search import PoolSearch
    from seqopt.spaces import CandidateSet

    torch.set_num_threads(1)
    keys, values = molecules(job.task)
    # What is set aside, what may be measured and what is known at first depend on the split only.
    order = np.random.default_rng([job.split, 0]).permutation(len(keys))
    test, some = order[:TEST], order[TEST : TEST + MOST_CANDIDATES]
    unique = {keys[row]: row for row in reversed(some.tolist()) if keys[row] not in {keys[one] for one in test}}
    space = CandidateSet(list(unique), kind="molecule", keys=list(unique))
    rows = list(unique.values())
    chosen = list(range(INITIAL))
    surrogate: Any = averaged(_bound(SURROGATES["ngrams+minmax"].build(), space))
    errors: list[float] = []
    expected: list[float] = []
    seconds = 0.0
    while True:
        known = [space.keys[place] for place in chosen]
        surrogate.fit(
            known, values[[rows[place] for place in chosen]], rng=np.random.default_rng([job.split, len(chosen), 1])
        )
        mean, std = surrogate.predict([keys[row] for row in test])
        errors.append(float(np.sqrt(np.mean((mean - values[test]) ** 2))))
        expected.append(float(np.sqrt(np.mean(std**2))))
        if len(chosen) >= LAST:
            break
        started = time.perf_counter()
        rng = np.random.default_rng([job.split, len(chosen), 2])
        if job.method == RANDOM:
            left = np.setdiff1d(np.arange(len(space)), chosen)
            chosen += rng.choice(left, BATCH, replace=False).tolist()
        else:
            scoring = GaussianScoring(surrogate, _acquisition(job.method), batch_size=BATCH, rng=rng)
            found = PoolSearch().propose(BATCH, space=space, scoring=scoring, excluded=set(known), rng=rng)
            chosen += [int(place) for one in found if (place := space.index_of(one.key)) is not None]
        seconds += time.perf_counter() - started
    return {
        "job": asdict(job),
        "measured": list(range(INITIAL, LAST + 1, BATCH)),
        "rmse": [round(error, 5) for error in errors],
        "expected": [round(error, 5) for error in expected],
        "chosen": [rows[place] for place in chosen],
        "seconds_choosing": round(seconds, 2),
    }


def _bound(surrogate: Any, space: Any) -> Any:
    surrogate.bind(space)
    return surrogate


def main(argv: Sequence[str] | None = None) -> None:
    """Do what is missing, then write the tables; see ``--help``."""
    parser = argparse.ArgumentParser(prog="seqopt bench learning", description=str(__doc__).split("\n\n")[0])
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS), help="default: all")
    parser.add_argument(
        "--methods", nargs="+", choices=METHODS, default=list(DEFAULT_METHODS), help="default: random, sal and balm"
    )
    parser.add_argument("--splits", type=int, default=SPLITS, help=f"random splits (default {SPLITS})")
    parser.add_argument(
        "--results",
        type=Path,
        default=Path("results/learning"),
        help="folder of the raw results, a file for each method",
    )
    parser.add_argument("--document", type=Path, default=Path("docs/results.md"), help="where the tables go")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (default 2)")
    parser.add_argument("--report-only", action="store_true", help="do no run, only write the tables")
    options = parser.parse_args(list(argv or []))
    if options.splits < 1:
        parser.error("--splits takes a number from 1")
    if not options.report_only:
        record = header(list(argv or []), "learning")
        run_jobs(
            [
                Job(task, method, split)
                for split in range(options.splits)
                for task in options.tasks
                for method in options.methods
            ],
            lambda job: options.results / f"{job.method}{ENDING}",
            lambda job: {"job": asdict(job)},
            work,
            processes=options.jobs,
            record=record,
        )
    text = tables(read_runs(options.results))
    print(text)
    replace_section(options.document, "learning", text)


Runs = Mapping[str, Mapping[str, Mapping[int, Mapping[str, Any]]]]
"""By task, method and split."""


def read_runs(results: Path) -> Runs:
    """All stored runs, in the order of the tables."""
    found: dict[str, dict[str, dict[int, Mapping[str, Any]]]] = {}
    for method in METHODS:
        for run in read_records(results / f"{method}{ENDING}", ["job"]):
            job = run["job"]
            found.setdefault(job["task"], {}).setdefault(method, {})[int(job["split"])] = run
    return {task: found[task] for task in TASKS if task in found}


def tables(runs: Runs) -> str:
    """Errors against numbers of measured molecules, a table for each data set."""
    lines = []
    for task, methods in runs.items():
        lines += [
            f"{TASKS[task]}: RMSE of {TEST} molecules that were set aside, by how many were measured\n",
            "| method | splits | "
            + " | ".join(map(str, SHOWN))
            + " | mean of all, less random | less BALM | s choosing |",
            "|---|---|" + "---|" * (len(SHOWN) + 3),
        ]
        for method, splits in methods.items():
            cells = [with_error([_at(run, number) for run in splits.values()]) for number in SHOWN]
            paired = [_paired(splits, methods.get(reference, {}), method == reference) for reference in REFERENCES]
            seconds = float(np.median([run["seconds_choosing"] for run in splits.values()]))
            lines.append(
                f"| {METHODS[method]} | {len(splits)} | {' | '.join(cells)} | {' | '.join(paired)} | {seconds:.0f} |"
            )
        lines.append("")
    lines.append(
        f"Mean ± one standard error over random splits. From {INITIAL} random molecules, batches of {BATCH} up to "
        f"{LAST} were chosen among {MOST_CANDIDATES:,} at most. *Mean of all* is the RMSE averaged over all numbers of "
        "measured molecules; differences are paired by split, and negative ones favour the method of the row. Seconds "
        "are those of choosing, for a whole run."
    )
    return "\n".join(lines)


def _at(run: Mapping[str, Any], number: int) -> float:
    return float(run["rmse"][run["measured"].index(number)])


def _paired(splits: Mapping[int, Mapping[str, Any]], others: Mapping[int, Mapping[str, Any]], same: bool) -> str:
    """Mean difference of the RMSE averaged over a run, with its standard error."""
    both = [] if same else sorted(splits.keys() & others.keys())
    if not both:
        return ""
    return with_error([float(np.mean(splits[one]["rmse"]) - np.mean(others[one]["rmse"])) for one in both])
