"""Plates and folds: is it worth measuring each string on one of several, chosen with the string?

All configurations of networks and learners were measured several times: on three data sets (NASBench-201), whose mean
is meant, and with four seeds (HPOLib), whose common part is meant. One measurement is of one configuration on one fold
or plate, and costs 1. A search is judged by the configuration that it recommends. ``plates-offset`` adds an offset to
every plate, as laboratories have them.

References:
    Moss, H. B. (2021). General-purpose Information-Theoretical Bayesian Optimisation. PhD thesis, chapter 6 (BOSH) and
        section 3.4 (FASTCV, after Swersky et al. 2013).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from seqopt.bench.records import ENDING, read_records
from seqopt.bench.runner import header, replace_section, run_jobs, with_error
from seqopt.data import Contexts, Query, as_context

if TYPE_CHECKING:
    from seqopt.optimizer import Optimizer
    from seqopt.spaces import CandidateSet

FloatArray = npt.NDArray[np.float64]

SEEDS = 20
RESULTS = Path("results/plates")

SIZE = 1000
"""Random configurations that a seed searches."""

BATCH = 4
"""Measurements that are chosen at a time, where a string does not need more."""

CHECKPOINTS = (20, 40, 60)
"""Measurements after which a search recommends a configuration; the last of them ends it."""

OFFSET = 0.5
"""Standard deviation of the offsets of plates that are added, in standard deviations of the target."""


@dataclass(frozen=True)
class Task:
    """What is searched.

    Attributes:
        label: Name in the tables.
        tables: Names of `seqopt.datasets.load_configurations`: several are folds, the replicates of one are plates.
        unit: Of the regret.
        offsets: Whether an offset is added to every plate.
    """

    label: str
    tables: tuple[str, ...]
    unit: str
    offsets: bool = False

    @property
    def kind(self) -> Literal["folds", "plates"]:
        """What there are several of."""
        return "folds" if len(self.tables) > 1 else "plates"

    @property
    def initial(self) -> int:
        """Measurements that a search begins with: as many on every fold, or plate of a search of fixed ones."""
        return 21 if self.kind == "folds" else 20


TASKS: Mapping[str, Task] = {
    "nasbench201": Task(
        "NASBench-201, mean of three data sets",
        ("nasbench201-cifar10", "nasbench201-cifar100", "nasbench201-imagenet"),
        "percent",
    ),
    "hpolib-protein": Task("HPOLib protein, four seeds", ("hpolib-protein",), "log10(loss)"),
    "hpolib-slice": Task("HPOLib slice localisation, four seeds", ("hpolib-slice",), "log10(loss)"),
    "hpolib-naval": Task("HPOLib naval propulsion, four seeds", ("hpolib-naval",), "log10(loss)"),
    "hpolib-parkinsons": Task("HPOLib Parkinson's telemonitoring, four seeds", ("hpolib-parkinsons",), "log10(loss)"),
    "plates-offset": Task("HPOLib protein, with offsets of plates", ("hpolib-protein",), "log10(loss)", offsets=True),
}
"""What is searched."""


@dataclass(frozen=True)
class Method:
    """Where configurations are measured.

    Attributes:
        label: Name in the tables.
        how: ``"chosen"`` by the model with the configuration; ``"all"`` folds, or the four fixed plates; ``"one"``
            fixed fold or plate; ``"ignored"``: a random one each time, of which the model knows nothing.
        acquisition: Name of the acquisition function.
    """

    label: str
    how: Literal["chosen", "all", "one", "ignored"]
    acquisition: str = "gibbon"


METHODS: Mapping[str, Method] = {
    "chosen": Method("chosen with the string (FASTCV, BOSH)", "chosen"),
    "all": Method("all for every string", "all"),
    "one": Method("one fixed", "one"),
    "ignored": Method("a random one, ignored", "ignored"),
    "random": Method("random strings, all for each", "all", "random"),
}
"""What is compared."""

REFERENCE = "all"


@dataclass(frozen=True)
class Job:
    """One run."""

    task: str
    method: str
    seed: int


@dataclass(frozen=True)
class Candidates:
    """The configurations of one seed.

    Attributes:
        space: They as a space.
        values: What is measured of each on each fold or plate, n x K; large ones are good.
        target: What is meant: the mean over them.
        offsets: What further plates add, in turn.
    """

    space: CandidateSet
    values: FloatArray
    target: FloatArray
    offsets: FloatArray

    def measured(self, index: int, place: int) -> float:
        """A measurement on a fold or plate; where more plates are opened than there are, they repeat in turn."""
        return float(self.values[index, place % self.values.shape[1]] + self.offsets[place % len(self.offsets)])


@lru_cache(maxsize=2)
def _whole(tables: tuple[str, ...]) -> tuple[tuple[str, ...], FloatArray]:
    """All configurations of a task, and what was measured of them, n x K: large values are good."""
    from seqopt.datasets import load_configurations

    found = [load_configurations(name) for name in tables]
    if len(found) == 1:
        return found[0].strings, -np.log10(found[0].values)
    assert len({one.strings for one in found}) == 1  # each table holds them all, in one order
    return found[0].strings, np.stack([np.nanmean(one.values, axis=1) for one in found], axis=1)


@lru_cache(maxsize=2)
def candidates_of(task: str, seed: int) -> Candidates:
    """What a seed searches."""
    from seqopt.spaces import CandidateSet

    strings, values = _whole(TASKS[task].tables)
    rng = np.random.default_rng([seed, 5])
    rows = np.sort(rng.choice(len(strings), SIZE, replace=False))
    target = values[rows].mean(1)
    spread = OFFSET * target.std() if TASKS[task].offsets else 0.0
    return Candidates(CandidateSet([strings[row] for row in rows]), values[rows], target, rng.normal(0.0, spread, 60))


def work(job: Job) -> dict[str, Any]:
    """One run, in one thread: what was measured where, and the recommendation at each checkpoint."""
    import torch

    torch.set_num_threads(1)
    started = time.perf_counter()
    measured, recommended = search(TASKS[job.task], METHODS[job.method], candidates_of(job.task, job.seed), job.seed)
    return {
        "job": asdict(job),
        "measured": measured,
        "recommended": recommended,
        "seconds": round(time.perf_counter() - started, 2),
    }


def search(
    task: Task, method: Method, candidates: Candidates, seed: int
) -> tuple[list[tuple[int, int]], dict[str, int]]:
    """The measurements, by index of configuration and number of fold or plate, and the recommended indices."""
    several = candidates.values.shape[1] if method.how == "all" else 1
    run = _Search(task, method, candidates, seed, several)
    recommended: dict[str, int] = {}
    run.begin(np.random.default_rng([seed, 6]).permutation(len(candidates.space)).tolist())
    for checkpoint in CHECKPOINTS:
        while len(run.measured) + several <= checkpoint:
            run.step(min(max(1, BATCH // several), (checkpoint - len(run.measured)) // several))
        recommended[str(checkpoint)] = run.recommended()
    return run.measured, recommended


class _Search:
    """A search that measures; ``several`` measurements of every string where all folds or plates are used."""

    def __init__(self, task: Task, method: Method, candidates: Candidates, seed: int, several: int) -> None:
        self._method = method
        self._several = several
        self._candidates = candidates
        self._count = task.initial
        self._rng = np.random.default_rng([seed, 7])
        self._folds = task.tables if task.kind == "folds" else None
        self._optimizer = _optimizer(task, method, candidates.space, seed, task.initial // several)
        self.measured: list[tuple[int, int]] = []

    def begin(self, order: Sequence[int]) -> None:
        """The first configurations of the seed's order, on folds or two plates in turn where these are chosen."""
        turns = len(self._folds) if self._folds else 2
        first = [(index, number % turns) for number, index in enumerate(order[: self._count // self._several])]
        self._measure(first)

    def step(self, n: int) -> None:
        """The next measurements."""
        found = []
        for query in self._optimizer.ask(n).queries:
            index = self._candidates.space.index_of(query.key)
            assert index is not None  # what is asked for is a candidate
            found.append((index, self._place(query)))
        self._measure(found)

    def recommended(self) -> int:
        """The index of the recommendation."""
        index = self._candidates.space.index_of(self._optimizer.recommend().key)
        assert index is not None
        return index

    def _place(self, query: Query) -> int:
        if not query.context:
            return 0
        ((_, value),) = query.context
        return self._folds.index(str(value)) if self._folds else int(str(value)[1:]) - 1

    def _measure(self, found: Sequence[tuple[int, int]]) -> None:
        keys = [self._candidates.space.keys[index] for index, _ in found]
        if self._method.how == "all":
            places = [[(index, place) for place in range(self._several)] for index, _ in found]
        elif self._method.how == "chosen":
            places = [[one] for one in found]
        elif self._method.how == "one":
            places = [[(index, 0)] for index, _ in found]
        else:
            count = self._candidates.values.shape[1]
            places = [[(index, int(self._rng.integers(count)))] for index, _ in found]
        values = [float(np.mean([self._candidates.measured(*one) for one in several])) for several in places]
        items: list[str | Query] = list(keys)
        if self._method.how == "chosen":
            names = self._folds or tuple(f"P{number}" for number in range(1, 2 + max(place for _, place in found)))
            variable = "fold" if self._folds else "plate"
            items = [
                Query(key, as_context({variable: names[place]})) for key, (_, place) in zip(keys, found, strict=True)
            ]
        self._optimizer.tell(items, values)
        self.measured += [one for several in places for one in several]


def _optimizer(task: Task, method: Method, space: CandidateSet, seed: int, initial: int) -> Optimizer:
    from seqopt.kernels import HammingKernel
    from seqopt.models import StringGP
    from seqopt.models.contexts import fold_mean, hierarchical
    from seqopt.optimizer import Optimizer
    from seqopt.strategies import MultiFidelity, PlateSearch

    chosen: dict[str, Any]
    if method.how != "chosen":
        chosen = {"surrogate": StringGP(HammingKernel()), "acquisition": method.acquisition}
    elif task.kind == "folds":
        contexts = Contexts.of_folds("fold", task.tables)
        model: Any = fold_mean(space, contexts, HammingKernel())
        chosen = {"strategy": MultiFidelity(model), "contexts": contexts}
    else:
        contexts = Contexts.of_plates()
        model = hierarchical(space, contexts, HammingKernel())
        chosen = {"strategy": PlateSearch(model), "contexts": contexts}
    # Searches of several contexts have no transform.
    return Optimizer(space, transform=None, initial=initial, seed=seed, **chosen)


def main(argv: Sequence[str] | None = None) -> None:
    """Do the runs that are missing, then write the tables; see ``--help``."""
    parser = argparse.ArgumentParser(prog="seqopt bench plates", description=str(__doc__).split("\n\n")[0])
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS), help="default: all")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), help="default: all")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"runs of each method (default {SEEDS})")
    parser.add_argument("--results", type=Path, default=RESULTS, help=f"folder of the raw results (default {RESULTS})")
    parser.add_argument("--document", type=Path, default=Path("docs/results.md"), help="where the tables go")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (default 2)")
    parser.add_argument("--report-only", action="store_true", help="do no run, only write the tables")
    options = parser.parse_args(list(argv or []))
    if not options.report_only:
        record = header(list(argv or []), "plates")
        run_jobs(
            [
                Job(task, method, seed)
                for seed in range(options.seeds)
                for task in options.tasks
                for method in options.methods
            ],
            lambda job: options.results / f"{job.task}{ENDING}",
            lambda job: {"job": asdict(job)},
            work,
            processes=options.jobs,
            record=record,
            every=10,
        )
    text = tables(read_runs(options.results))
    print(text)
    replace_section(options.document, "plates", text)


Runs = Mapping[str, Mapping[str, Mapping[int, Mapping[str, Any]]]]
"""By task, method and seed."""


def read_runs(results: Path) -> Runs:
    """All stored runs."""
    found: dict[str, dict[str, dict[int, Mapping[str, Any]]]] = {}
    for task in TASKS:
        for run in read_records(results / f"{task}{ENDING}", ["job"]):
            found.setdefault(task, {}).setdefault(run["job"]["method"], {})[run["job"]["seed"]] = run
    return found


def regrets(run: Mapping[str, Any], candidates: Candidates) -> FloatArray:
    """How far the target of each recommendation is from the best of all, one for each of `CHECKPOINTS`."""
    found = [candidates.target[run["recommended"][str(checkpoint)]] for checkpoint in CHECKPOINTS]
    regret: FloatArray = candidates.target.max() - np.array(found)
    return regret


def tables(runs: Runs) -> str:
    """A table for each task."""
    lines = []
    reference = METHODS[REFERENCE].label
    for name, task in TASKS.items():
        if name not in runs:
            continue
        lines += [
            f"| {task.label}: regret ({task.unit}) | seeds | "
            + " | ".join(f"after {checkpoint} | less {reference}" for checkpoint in CHECKPOINTS)
            + f" | {task.kind} used | strings |",
            "|---|---|" + "---|" * (2 * len(CHECKPOINTS) + 2),
        ]
        found = {
            method: {seed: regrets(run, candidates_of(name, seed)) for seed, run in sorted(runs[name][method].items())}
            for method in METHODS
            if method in runs[name]
        }
        for method, several in found.items():
            cells = [METHODS[method].label, str(len(several))]
            for place in range(len(CHECKPOINTS)):
                cells.append(with_error([one[place] for one in several.values()]))
                pairs = [
                    one[place] - found[REFERENCE][seed][place]
                    for seed, one in several.items()
                    if seed in found.get(REFERENCE, {})
                ]
                cells.append("" if method == REFERENCE or not pairs else with_error(pairs))
            measured = [run["measured"] for run in runs[name][method].values()]
            for place in (1, 0):
                cells.append(f"{np.mean([len({one[place] for one in run}) for run in measured]):.1f}")
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    lines.append(
        f"Regret: how far the mean over folds or plates of the recommended configuration is from the best of {SIZE:,} "
        f"random ones; mean ± one standard error over seeds, after so many measurements. Less {reference}: difference "
        "paired by seed, negative where it is better. Used: how many folds or plates, and how many strings, a search "
        "had measured in the end."
    )
    return "\n".join(lines)
