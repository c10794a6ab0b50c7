"""Primary screens of yes and no: how many hits are found, by what learns from them and how batches are chosen?

The 10,449 Enamine molecules of molpal with their docking scores, of which only is told whether a molecule is among the
best 5 (or 1) percent: a hit. 20 random molecules, then batches of 20 up to 200. Compared are Gaussian processes with a
binomial likelihood (`seqopt.models.BinomialGP`) and regressions on 0 and 1, both with the MinMax kernel on counts of
Morgan environments unless another one is named.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from seqopt.bench.docking import library
from seqopt.bench.records import ENDING, read_records
from seqopt.bench.runner import header, replace_section, run_jobs, with_error

if TYPE_CHECKING:
    from seqopt.strategies import Strategy

BATCH, BUDGET, SEEDS = 20, 200, 5
SHARES = (0.05, 0.01)
"""Shares of the molecules that are hits."""

CHECKPOINTS = (100, 200)


@dataclass(frozen=True)
class Method:
    """How batches are chosen.

    Attributes:
        label: In the table.
        acquisition: Name of the acquisition function.
        binomial: Whether results are taken as yes and no; else as numbers.
        surrogate: Name of the surrogate.
    """

    label: str
    acquisition: str
    binomial: bool = True
    surrogate: str = "minmax"

    def build(self) -> Strategy:
        """The strategy."""
        from seqopt.models import BinomialGP
        from seqopt.strategies import ModelBased

        return ModelBased(BinomialGP(self.surrogate) if self.binomial else self.surrogate, self.acquisition)


METHODS: Mapping[str, Method] = {
    "gibbon": Method("yes/no, GIBBON on the log odds", "gibbon"),
    "hits": Method("yes/no, probability of a hit", "hits"),
    "ucb": Method("yes/no, UCB of the log odds (2 sd)", "ucb"),
    "thompson": Method("yes/no, Thompson sampling of the log odds", "thompson"),
    "numbers-gibbon": Method("0 and 1 as numbers, GIBBON", "gibbon", binomial=False),
    "numbers-mean": Method("0 and 1 as numbers, mean", "mean", binomial=False),
    "gibbon-auto": Method("yes/no, GIBBON on the log odds, default kernel", "gibbon", surrogate="auto"),
    "hits-auto": Method("yes/no, probability of a hit, default kernel", "hits", surrogate="auto"),
    "numbers-auto": Method("0 and 1 as numbers, GIBBON, default kernel", "gibbon", binomial=False, surrogate="auto"),
    "random": Method("random", "random"),
}
"""What is compared."""


@dataclass(frozen=True)
class Job:
    """One run."""

    method: str
    seed: int
    share: float = 0.05


def work(job: Job) -> dict[str, Any]:
    """One run, in one thread: which molecules were tried in their order, which were hits, what was told of them."""
    import logging

    import torch

    from seqopt.optimizer import Optimizer

    torch.set_num_threads(1)
    logging.getLogger("seqopt").setLevel(logging.ERROR)
    space, scores = library()
    hit = scores <= np.sort(scores)[round(job.share * len(scores)) - 1]
    method = METHODS[job.method]
    optimizer = Optimizer(
        space,
        strategy=method.build(),
        batch_size=BATCH,
        initial=BATCH,
        transform="yes/no" if method.binomial else "none",
        seed=job.seed,
    )
    seconds = []
    while len(optimizer.observations) < BUDGET:
        started = time.perf_counter()
        strings = optimizer.ask()
        seconds.append(round(time.perf_counter() - started, 2))
        optimizer.tell(strings, [float(hit[space.index_of(string)]) for string in strings])
    rows = optimizer.observations.rows
    told = [row.details["predicted"] for row in rows]
    return {
        "job": asdict(job),
        "indices": [space.index_of(row.string) for row in rows],
        "hits": [int(row.value) for row in rows],
        "told": [None if one is None else round(one, 4) for one in told],
        "suggest_seconds": seconds,
        "hyperparameters": {name: round(value, 5) for name, value in optimizer.hyperparameters.items()},
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Do the runs that are missing, then write the table; see ``--help``."""
    parser = argparse.ArgumentParser(prog="seqopt bench hits", description=str(__doc__).split("\n\n")[0])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), help="default: all")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"runs of each method (default {SEEDS})")
    parser.add_argument("--shares", nargs="+", type=float, default=list(SHARES), help="of hits (default 0.05 0.01)")
    parser.add_argument(
        "--results", type=Path, default=Path("results/hits"), help="folder of the raw results, a file for each method"
    )
    parser.add_argument("--document", type=Path, default=Path("docs/results.md"), help="where the table goes")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (default 2)")
    parser.add_argument("--report-only", action="store_true", help="do no run, only write the table")
    options = parser.parse_args(list(argv or []))
    if not options.report_only:
        run_jobs(
            [
                Job(method, seed, share)
                for share in options.shares
                for seed in range(options.seeds)
                for method in options.methods
            ],
            lambda job: options.results / f"{job.method}{ENDING}",
            lambda job: {"job": asdict(job)},
            work,
            processes=options.jobs,
            record=header(list(argv or []), "hits"),
        )
    by_method = {method: read_records(options.results / f"{method}{ENDING}", ["job"]) for method in METHODS}
    text = "\n\n".join(
        table({method: several for method, runs in by_method.items() if (several := _of(runs, share))}, share)
        for share in SHARES
        if any(_of(runs, share) for runs in by_method.values())
    )
    print(text)
    replace_section(options.document, "hits", text)


def _of(runs: Sequence[Mapping[str, Any]], share: float) -> list[Mapping[str, Any]]:
    """Those at one share of hits."""
    return [run for run in runs if run["job"]["share"] == share]


def table(runs: Mapping[str, Sequence[Mapping[str, Any]]], share: float) -> str:
    """Hits at the checkpoints, and how told probabilities held."""
    from seqopt.data.hits import HitCalibration, Tried

    ends = " | ".join(f"after {number}" for number in CHECKPOINTS)
    lines = [
        f"| hits, {share:.0%} of the molecules | seeds | {ends} | expected / found | Brier score | s choosing |",
        "|---|---|" + "---|" * (len(CHECKPOINTS) + 3),
    ]
    for method, several in runs.items():
        counts = [np.cumsum(run["hits"])[np.array(CHECKPOINTS) - 1] for run in several]
        cells = [with_error([float(one[index]) for one in counts], 1) for index in range(len(CHECKPOINTS))]
        judged = ["", ""]
        if METHODS[method].binomial:
            tried = [
                Tried(1, told, hit)
                for run in several
                for told, hit in zip(run["told"], run["hits"], strict=True)
                if told is not None
            ]
            if tried:
                found = HitCalibration.of(tried)
                judged = [f"{found.expected:.0f} / {found.found:.0f}", f"{found.brier:.3f}"]
        cells += [*judged, f"{np.median([sum(run['suggest_seconds']) for run in several]):.0f}"]
        lines.append(f"| {METHODS[method].label} | {len(several)} | {' | '.join(cells)} |")
    lines.append(
        f"\nMean ± one standard error over seeds of the hits found. Of 10,449 molecules, {share:.0%} are hits: of "
        f"{BUDGET} random ones, {share * BUDGET:.0f}. Expected / found: the sum of the probabilities that were told "
        "before the results, and the hits among these, of all seeds."
    )
    return "\n".join(lines)
