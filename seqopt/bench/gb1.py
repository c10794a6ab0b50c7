"""Directed evolution at four sites: how good is the best variant of GB1 after four rounds of a plate?

The 149,361 variants of the B1 domain of protein G whose fitness was measured (`seqopt.datasets.load_gb1`), by the
protocol of ALDE: 96 random variants, then four rounds of 96, 480 in all. Given is the highest fitness found so far, in
units of the highest there is. Their best of many models and encodings reaches 0.930 in the mean of 70 runs, their
Gaussian process on one-hot codes 0.819, random variants 0.471.

References:
    Wu, N. C. et al. (2016). Adaptation in protein fitness landscapes is facilitated by indirect paths. eLife 5, e16965.
    Yang, J. et al. (2025). Active learning-assisted directed evolution. Nature Communications 16, 714 (ALDE).
"""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from seqopt.bench.records import ENDING, runs_by_method
from seqopt.bench.runner import header, replace_section, run_jobs

if TYPE_CHECKING:
    from seqopt.spaces import CandidateSet

PLATE, ROUNDS = 96, 4
SEEDS = 70

PUBLISHED = {"best of ALDE": 0.930, "one-hot Gaussian process of ALDE": 0.819, "random in ALDE": 0.471}
"""Highest fitness after all rounds, mean of 70 runs, as published."""


@dataclass(frozen=True)
class Method:
    """How plates are chosen.

    Attributes:
        surrogate: Name of the surrogate.
        acquisition: Name of the acquisition function.
        label: Name in the table.
    """

    surrogate: str
    acquisition: str
    label: str


_ACQUISITIONS = {"gibbon": "GIBBON", "logei": "EI", "thompson": "Thompson", "ucb": "UCB", "mean": "greedy mean"}

METHODS: Mapping[str, Method] = {
    **{
        f"auto-{name}": Method("auto", name, f"default model, {label}" + (" (the default)" if name == "gibbon" else ""))
        for name, label in _ACQUISITIONS.items()
    },
    "blosum62-gibbon": Method("blosum62", "gibbon", "substitutions by BLOSUM62, GIBBON"),
    "hamming-gibbon": Method("hamming", "gibbon", "numbers of substitutions, GIBBON"),
    "one-hot-gibbon": Method("one-hot", "gibbon", "one-hot, GIBBON"),
    "ssk-gibbon": Method("ssk", "gibbon", "sub-sequences, GIBBON"),
    "random": Method("auto", "random", "random"),
}
"""What is compared."""


@dataclass(frozen=True)
class Job:
    """One run."""

    method: str
    seed: int


@lru_cache(maxsize=1)
def library() -> tuple[CandidateSet, npt.NDArray[np.float64]]:
    """The variants as a space, and the fitness of each."""
    from seqopt.datasets import load_gb1
    from seqopt.spaces import CandidateSet

    data = load_gb1()
    assert data.values is not None
    space = CandidateSet(data.strings, kind="protein")
    fitness = dict(zip(data.strings, data.values.tolist(), strict=True))
    return space, np.array([fitness[key] for key in space.keys])


def work(job: Job) -> dict[str, Any]:
    """One run, in one thread: the variants in the order of evaluation, by their indices in the library."""
    import torch

    from seqopt.optimizer import Optimizer
    from seqopt.strategies import ModelBased

    torch.set_num_threads(1)
    # That a plate held surprises is no news for a benchmark.
    logging.getLogger("seqopt").setLevel(logging.ERROR)
    space, fitness = library()
    method = METHODS[job.method]
    optimizer = Optimizer(
        space,
        strategy=ModelBased(method.surrogate, method.acquisition),
        batch_size=PLATE,
        initial=PLATE,
        seed=job.seed,
    )
    seconds = []
    for _ in range(1 + ROUNDS):
        started = time.perf_counter()
        strings = optimizer.ask()
        seconds.append(round(time.perf_counter() - started, 2))
        optimizer.tell(strings, [float(fitness[space.index_of(string)]) for string in strings])
    return {
        "job": asdict(job),
        "indices": [space.index_of(row.string) for row in optimizer.observations.rows],
        "suggest_seconds": seconds,
        "hyperparameters": {name: round(value, 5) for name, value in optimizer.hyperparameters.items()},
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Do the runs that are missing, then write the table; see ``--help``."""
    parser = argparse.ArgumentParser(prog="seqopt bench gb1", description=str(__doc__).split("\n\n")[0])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), help="default: all")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"runs of each method (default {SEEDS})")
    parser.add_argument("--first-seed", type=int, default=0, help="the first of them (default 0)")
    parser.add_argument(
        "--results", type=Path, default=Path("results/gb1"), help="folder of the raw results, a file for each method"
    )
    parser.add_argument("--document", type=Path, default=Path("docs/results.md"), help="where the table goes")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (default 2)")
    parser.add_argument("--report", action="store_true", help="do no run, only write the table")
    options = parser.parse_args(list(argv or []))
    if not options.report:
        record = header(list(argv or []), "gb1")
        seeds = range(options.first_seed, options.first_seed + options.seeds)
        run_jobs(
            [Job(method, seed) for seed in seeds for method in options.methods],
            lambda job: options.results / f"{job.method}{ENDING}",
            lambda job: {"job": asdict(job)},
            work,
            processes=options.jobs,
            record=record,
        )
    text = table(read_runs(options.results))
    print(text)
    replace_section(options.document, "gb1", text)


Runs = Mapping[str, Sequence[Mapping[str, Any]]]
"""By method."""


def read_runs(results: Path) -> Runs:
    """All stored runs, in the order of the table and the seeds."""
    return runs_by_method(results, METHODS)


def best_so_far(run: Mapping[str, Any], fitness: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The highest fitness after each plate, in units of the highest of all."""
    found = np.maximum.accumulate(fitness[run["indices"]]) / fitness.max()
    after: npt.NDArray[np.float64] = found[PLATE - 1 :: PLATE]
    return after


def table(runs: Runs) -> str:
    """Mean highest fitness after each plate."""
    space, fitness = library()
    checkpoints = [PLATE * number for number in range(1, ROUNDS + 2)]
    lines = [
        f"| highest fitness after | runs | {' | '.join(map(str, checkpoints))} | found the best | s choosing |",
        "|---|---|" + "---|" * (len(checkpoints) + 2),
    ]
    for method, several in runs.items():
        curves = np.stack([best_so_far(run, fitness) for run in several])
        error = curves.std(0, ddof=1) / np.sqrt(len(curves)) if len(curves) > 1 else np.full(len(checkpoints), np.nan)
        cells = [
            f"{mean:.3f}" + (f" ± {one:.3f}" if np.isfinite(one) else "")
            for mean, one in zip(curves.mean(0), error, strict=True)
        ]
        whole = int((curves[:, -1] == 1.0).sum())
        spent = np.median([sum(run["suggest_seconds"]) for run in several])
        lines.append(
            f"| {METHODS[method].label} | {len(several)} | {' | '.join(cells)} | {whole} of {len(several)} "
            f"| {spent:.0f} |"
        )
    lines += [f"| {label} | 70 |" + " |" * ROUNDS + f" {value:.3f} | | |" for label, value in PUBLISHED.items()]
    lines.append(
        f"\nMean ± one standard error over runs, in units of the highest fitness of the {len(space):,} variants. Rows "
        "of ALDE are as published. Time: median of all suggestions of a run, one thread."
    )
    return "\n".join(lines)
