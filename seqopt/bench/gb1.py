"""Directed evolution: how good is the best variant of a library after four rounds of a plate?

By the protocol of ALDE: a plate of random variants, then four rounds of a plate that is chosen. Given is the highest
score found so far, in units of the highest of the library, and how many of the best hundredth were measured.

``--library gb1`` are the 149,361 variants of the B1 domain of protein G at four sites whose fitness was measured
(`seqopt.datasets.load_gb1`), in plates of 96. The best of the many models and encodings of ALDE reaches 0.930 in the
mean of 70 runs, their Gaussian process on one-hot codes 0.819, random variants 0.471. ``--library variants`` are the
3,000 variants that come with seqopt (``data/protein_variants.csv``), the wild type, all single substitutions and some
double ones, whose score is synthetic. 480 would be a sixth of them, so their plates are of 24; ``variants-96`` has
plates of 96.

References:
    Wu, N. C. et al. (2016). Adaptation in protein fitness landscapes is facilitated by indirect paths. eLife 5, e16965.
    Yang, J. et al. (2025). Active learning-assisted directed evolution. Nature Communications 16, 714 (ALDE).
"""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from seqopt.bench.records import ENDING, runs_by_method
from seqopt.bench.runner import header, replace_section, run_jobs, with_error
from seqopt.bench.transforms import variants

if TYPE_CHECKING:
    from seqopt.spaces import CandidateSet

ROUNDS = 4
SEEDS = 70

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Library:
    """Variants of a protein whose scores are known, and the plates in which they are measured.

    Attributes:
        load: Returns the variants and their scores; higher is better, and a score of 0 means something (`zero`).
        zero: What a score of 0 is, for the line below the table.
        plate: Variants in a plate.
        score: What the scores are called.
        published: What others report after all rounds: the mean of 70 runs, in units of the highest score.
    """

    load: Callable[[], tuple[Sequence[str], Numbers]]
    zero: str
    plate: int
    score: str
    published: Mapping[str, float] = field(default_factory=dict)


def _gb1() -> tuple[Sequence[str], Numbers]:
    from seqopt.datasets import load_gb1

    data = load_gb1()
    assert data.values is not None
    return data.strings, data.values


def _variants() -> tuple[Sequence[str], Numbers]:
    strings, scores, _ = variants()
    return strings, scores


_SYNTHETIC = (
    "0 is the wild type, which 178 of the 3,000 variants surpass; the score is synthetic, computed by a formula"
)

LIBRARIES: Mapping[str, Library] = {
    "gb1": Library(
        _gb1,
        "0 is a variant that does not bind",
        96,
        "fitness",
        {"best of ALDE": 0.930, "one-hot Gaussian process of ALDE": 0.819, "random in ALDE": 0.471},
    ),
    "variants": Library(_variants, _SYNTHETIC, 24, "score"),
    "variants-96": Library(_variants, _SYNTHETIC, 96, "score"),
}
"""All libraries by name."""


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
    "mixture-gibbon": Method("mixture", "gibbon", "mixture, GIBBON (the default of lists of up to 20,000)"),
    "sites-gibbon": Method("sites", "gibbon", "site by site, GIBBON"),
    "ssk-gibbon": Method("ssk", "gibbon", "sub-sequences, GIBBON"),
    "random": Method("auto", "random", "random"),
}
"""What is compared."""


@dataclass(frozen=True)
class Job:
    """One run. Stored runs are known by method and seed: each library has a folder of its own."""

    method: str
    seed: int
    library: str = "gb1"

    @property
    def identity(self) -> dict[str, Any]:
        """What tells the run from others of its folder."""
        return {"job": {"method": self.method, "seed": self.seed}}


@lru_cache(maxsize=1)
def space_of(library: str) -> tuple[CandidateSet, Numbers]:
    """The variants of a library as a space, and the score of each."""
    from seqopt.spaces import CandidateSet

    strings, scores = LIBRARIES[library].load()
    space = CandidateSet(strings, kind="protein")
    known = dict(zip(strings, scores.tolist(), strict=True))
    return space, np.array([known[key] for key in space.keys])


def work(job: Job) -> dict[str, Any]:
    """One run, in one thread: the variants in the order of evaluation, by their indices in the library."""
    import torch

    from seqopt.optimizer import Optimizer
    from seqopt.strategies import ModelBased

    torch.set_num_threads(1)
    # That a plate held surprises is no news for a benchmark.
    logging.getLogger("seqopt").setLevel(logging.ERROR)
    space, scores = space_of(job.library)
    plate = LIBRARIES[job.library].plate
    method = METHODS[job.method]
    optimizer = Optimizer(
        space,
        strategy=ModelBased(method.surrogate, method.acquisition),
        batch_size=plate,
        initial=plate,
        seed=job.seed,
    )
    seconds = []
    for _ in range(1 + ROUNDS):
        started = time.perf_counter()
        strings = optimizer.ask()
        seconds.append(round(time.perf_counter() - started, 2))
        optimizer.tell(strings, [float(scores[space.index_of(string)]) for string in strings])
    return {
        **job.identity,
        "indices": [space.index_of(row.string) for row in optimizer.observations.rows],
        "suggest_seconds": seconds,
        "hyperparameters": {name: round(value, 5) for name, value in optimizer.hyperparameters.items()},
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Do the runs that are missing, then write the table; see ``--help``."""
    parser = argparse.ArgumentParser(prog="seqopt bench gb1", description=str(__doc__).split("\n\n")[0])
    parser.add_argument("--library", choices=LIBRARIES, default="gb1", help="what is searched (default %(default)s)")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), help="default: all")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="runs of each method (default %(default)s)")
    parser.add_argument("--first-seed", type=int, default=0, help="the first of them (default %(default)s)")
    parser.add_argument(
        "--results", type=Path, help="folder of the raw results, a file for each method (default results/LIBRARY)"
    )
    parser.add_argument("--document", type=Path, default=Path("docs/results.md"), help="where the table goes")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (default %(default)s)")
    parser.add_argument("--report", action="store_true", help="do no run, only write the table")
    options = parser.parse_args(list(argv or []))
    results = options.results or Path("results") / options.library
    if not options.report:
        record = header(list(argv or []), "gb1")
        seeds = range(options.first_seed, options.first_seed + options.seeds)
        run_jobs(
            [Job(method, seed, options.library) for seed in seeds for method in options.methods],
            lambda job: results / f"{job.method}{ENDING}",
            lambda job: job.identity,
            work,
            processes=options.jobs,
            record=record,
        )
    text = table(options.library, read_runs(results))
    print(text)
    replace_section(options.document, options.library, text)


Runs = Mapping[str, Sequence[Mapping[str, Any]]]
"""By method."""


def read_runs(results: Path) -> Runs:
    """All stored runs, in the order of the table and the seeds."""
    return runs_by_method(results, METHODS)


def best_so_far(run: Mapping[str, Any], scores: Numbers, plate: int) -> Numbers:
    """The highest score after each plate, in units of the highest of all.

    Example:
        >>> best_so_far({"indices": [0, 1, 3, 2]}, np.array([-1.0, 1.0, 4.0, 2.0]), 2).tolist()
        [0.25, 1.0]
    """
    found = np.maximum.accumulate(scores[run["indices"]]) / scores.max()
    after: Numbers = found[plate - 1 :: plate]
    return after


def among_the_best(run: Mapping[str, Any], scores: Numbers) -> int:
    """How many variants of the best hundredth were measured; ties with the last of them count, too.

    Example:
        >>> among_the_best({"indices": [0, 198, 7, 199]}, np.arange(200.0))
        2
    """
    least = np.partition(scores, -_hundredth(scores))[-_hundredth(scores)]
    return int((scores[run["indices"]] >= least).sum())


def _hundredth(scores: Numbers) -> int:
    return max(1, len(scores) // 100)


def table(library: str, runs: Runs) -> str:
    """Mean highest score after each plate, and how much of the best hundredth was measured."""
    what = LIBRARIES[library]
    _, scores = space_of(library)
    checkpoints = [what.plate * number for number in range(1, ROUNDS + 2)]
    lines = [
        f"| highest {what.score} after | runs | {' | '.join(map(str, checkpoints))} | found the best "
        f"| of the best {_hundredth(scores):,} | s choosing |",
        "|---|---|" + "---|" * (len(checkpoints) + 3),
    ]
    for method, several in runs.items():
        curves = np.stack([best_so_far(run, scores, what.plate) for run in several])
        counts = np.array([among_the_best(run, scores) for run in several])
        whole = int((curves[:, -1] == 1.0).sum())
        spent = np.median([sum(run["suggest_seconds"]) for run in several])
        lines.append(
            f"| {METHODS[method].label} | {len(several)} | {' | '.join(with_error(one, 3) for one in curves.T)} "
            f"| {whole} of {len(several)} | {with_error(counts, 1)} | {spent:.0f} |"
        )
    lines += [f"| {label} | 70 |" + " |" * ROUNDS + f" {value:.3f} | | | |" for label, value in what.published.items()]
    lines.append(
        f"\nMean ± one standard error over runs, in units of the highest {what.score} of the {len(scores):,} variants; "
        f"{what.zero}. *Of the best*: how many of the best hundredth were measured in the end."
        f"{' Rows of ALDE are as published.' if what.published else ''} "
        "Time: median of all suggestions of a run, one thread."
    )
    return "\n".join(lines)
