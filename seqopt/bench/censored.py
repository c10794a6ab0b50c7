"""What modelling limits is worth: tables of molecules whose values are censored by hand.

The MinMax surrogate is fitted to n molecules of a table, of whose values a share lies beyond what an assay can read:
the largest ones (``above``), or as many at each end (``both``). It predicts the others, whose values are known:

- ``all known``: fitted to the values themselves, which nobody would have;
- ``modelled``: limits are told as such (`seqopt.models.censoring`);
- ``as values``: limits are told as if they were values;
- ``left out``: molecules with limits are left out.

Given are the root mean squared error and the negative log density of the predictions (NLPD), noise included at the
fitted parameters, of all held-out molecules and of those beyond the limits.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seqopt.bench.records import ENDING
from seqopt.bench.runner import header, run_into_section, with_error

TASKS = ("esol", "freesolv")
ENDS = ("above", "both")
METHODS = ("all known", "modelled", "as values", "left out")
SPLITS = 10

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Job:
    """One split of one table.

    Attributes:
        task: A table of `seqopt.bench.regression`.
        ends: Which values are censored, ``"above"`` or ``"both"``.
        n: Number of molecules that the model is fitted to.
        share: Share of them that are censored.
        seed: Of the split.
    """

    task: str
    ends: str
    n: int
    share: float
    seed: int


def work(job: Job) -> dict[str, Any]:
    """Errors of all methods on one split."""
    import torch

    from seqopt.bench.regression import molecules
    from seqopt.models import SURROGATES

    torch.set_num_threads(1)
    strings, values = molecules(job.task)
    order = np.random.default_rng(job.seed).permutation(len(strings))
    train, test = order[: job.n], order[job.n :]
    limits, sides, low, high = censored(values[train], job.ends, job.share)
    beyond = (values[test] < low) | (values[test] > high)
    found: dict[str, Any] = {}
    for method in METHODS:
        kept = sides == 0 if method == "left out" else np.ones(len(train), dtype=np.bool_)
        told = values[train] if method == "all known" else limits
        gp: Any = SURROGATES["minmax"].build()
        started = time.perf_counter()
        gp.fit(
            [strings[index] for index in train[kept]],
            told[kept],
            rng=np.random.default_rng([job.seed, 1]),
            censored=sides if method == "modelled" else None,
        )
        seconds = time.perf_counter() - started
        mean, std = gp.predict([strings[index] for index in test])
        variance = std**2 + gp.units[1] ** 2 * float(gp.fitted.noise_variance[0])
        errors = mean - values[test]
        density = 0.5 * (errors**2 / variance + np.log(2.0 * np.pi * variance))
        found[method] = {
            "rmse": float(np.sqrt(np.mean(errors**2))),
            "nlpd": float(np.mean(density)),
            "rmse_beyond": float(np.sqrt(np.mean(errors[beyond] ** 2))),
            "nlpd_beyond": float(np.mean(density[beyond])),
            "fit_seconds": round(seconds, 4),
        }
    return {"job": asdict(job), "censored": int(np.count_nonzero(sides)), "beyond": int(beyond.sum()), "methods": found}


def censored(values: Numbers, ends: str, share: float) -> tuple[Numbers, npt.NDArray[np.int8], float, float]:
    """Values with limits in place of a share of them, the sides of these, and the two limits.

    Example:
        >>> found = censored(np.arange(10.0), "both", 0.2)
        >>> found[0].tolist(), found[1].tolist()
        ([0.9, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 8.1], [-1, 0, 0, 0, 0, 0, 0, 0, 0, 1])
    """
    below = share / 2 if ends == "both" else 0.0
    low = float(np.quantile(values, below)) if below else -np.inf
    high = float(np.quantile(values, 1.0 - (share - below)))
    sides = (values > high).astype(np.int8) - (values < low).astype(np.int8)
    return np.clip(values, low, high), sides, low, high


def main(argv: Sequence[str]) -> None:
    """Run what is missing, then write the table."""
    parser = argparse.ArgumentParser(prog="seqopt bench censored", description=str(__doc__).split("\n\n")[0])
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS), help="default: all")
    parser.add_argument("--n", type=int, default=200, help="molecules to fit to (default %(default)s)")
    parser.add_argument("--share", type=float, default=0.3, help="share of censored ones (default %(default)s)")
    parser.add_argument("--splits", type=int, default=SPLITS, help="splits of each table (default %(default)s)")
    parser.add_argument(
        "--results",
        type=Path,
        default=Path("results") / "censored" / f"splits{ENDING}",
        help="file of the raw results, a JSON object a line (default %(default)s)",
    )
    parser.add_argument("--document", type=Path, default=Path("docs/results.md"), help="where the table goes")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time (default %(default)s)")
    options = parser.parse_args(list(argv))
    record = header(argv, "censored")
    jobs = [
        Job(task, ends, options.n, options.share, seed)
        for task in options.tasks
        for ends in ENDS
        for seed in range(options.splits)
    ]
    run_into_section(
        "censored",
        jobs,
        work,
        table,
        results=options.results,
        document=options.document,
        processes=options.jobs,
        record=record,
        every=10,
    )


def table(runs: Sequence[dict[str, Any]]) -> str:
    """Means over splits, with standard errors; below, by how much modelled limits are better, split by split."""
    lines = [
        "| table | censored | limits | RMSE | NLPD | RMSE beyond | NLPD beyond | s to fit |",
        "|---|---|---|---|---|---|---|---|",
    ]
    kinds = dict.fromkeys((run["job"]["task"], run["job"]["ends"], run["job"]["share"]) for run in runs)
    for task, ends, share in kinds:
        own = [
            run for run in runs if (run["job"]["task"], run["job"]["ends"], run["job"]["share"]) == (task, ends, share)
        ]
        for method in METHODS:
            cells = [
                with_error([run["methods"][method][name] for run in own])
                for name in ("rmse", "nlpd", "rmse_beyond", "nlpd_beyond")
            ]
            seconds = float(np.median([run["methods"][method]["fit_seconds"] for run in own]))
            lines.append(f"| {task} | {share:.0%} {ends} | {method} | {' | '.join(cells)} | {seconds:.2f} |")
    sizes = sorted({run["job"]["n"] for run in runs})
    splits = len({run["job"]["seed"] for run in runs})
    lines.append(
        f"\nMean ± one standard error of {splits} random splits, fitted to {', '.join(map(str, sizes))} molecules; "
        "seconds are medians, in one thread."
    )
    return "\n".join(lines)
