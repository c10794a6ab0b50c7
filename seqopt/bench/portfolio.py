"""Which acquisition function to trust: portfolios against each of their members, in one run of every kind of search.

GIBBON, expected improvement, the upper confidence bound and Thompson sampling on their own, and portfolios of the four:
entropy search, GP-Hedge, and a member at random. The model, the inner search and, for each seed, the beginning are the
same for all. Differences are paired by seed. The inner search of strings is smaller than the default one, as the same
for all, since a portfolio runs it once for each member.

References:
    Shahriari, B., Wang, Z., Hoffman, M. W., Bouchard-Côté, A., de Freitas, N. (2014). An entropy search portfolio for
        Bayesian optimization. arXiv:1406.4625.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from seqopt.bench.records import ENDING, read_records
from seqopt.bench.runner import header, replace_section, run_jobs, with_error

SEEDS = 10
MEMBERS = ("gibbon", "logei", "ucb", "thompson")

METHODS: Mapping[str, str] = {
    "gibbon": "GIBBON",
    "logei": "expected improvement",
    "ucb": "UCB",
    "thompson": "Thompson sampling",
    "esp": "portfolio, entropy search",
    "hedge": "portfolio, GP-Hedge",
    "random": "portfolio, at random",
}
"""What is compared: the members, and portfolios by their rule."""

Values = Callable[[Sequence[str]], npt.NDArray[np.float64]]


@dataclass(frozen=True)
class Task:
    """One search.

    Attributes:
        label: What is searched, and the unit of the numbers.
        build: From a seed to the space and what is measured.
        initial: Strings at random.
        budget: Evaluations after them.
        batch: Of how many.
        direction: ``"minimize"`` or ``"maximize"``.
        surrogate: Its name; the default of the space is slow in some.
        top: Report the share of so many best candidates that was found, in place of the best value.
    """

    label: str
    build: Callable[[int], tuple[Any, Values]]
    initial: int
    budget: int
    batch: int
    direction: Literal["maximize", "minimize"]
    surrogate: str
    top: int | None = None


def _docking(seed: int) -> tuple[Any, Values]:
    from seqopt.bench.docking import library

    space, scores = library()
    return space, lambda strings: np.array([scores[space.index_of(string)] for string in strings])


def _zinc(seed: int) -> tuple[Any, Values]:
    from seqopt.bench.zinc import zinc

    space, scores = zinc()
    return space, lambda strings: np.array([scores[space.index_of(string)] for string in strings])


def _boss(name: str, seed: int) -> tuple[Any, Values]:
    from seqopt.bench.boss.tasks import TASKS as OF_BOSS

    task = OF_BOSS[name]
    return task.space_of(seed), task.objective(seed)


def _formula(name: str, seed: int) -> tuple[Any, Values]:
    from seqopt.bench.formulas import MAX_LENGTH, MIN_LENGTH, training_points
    from seqopt.bench.formulas import Job as FormulaJob
    from seqopt.objectives import ExpressionError
    from seqopt.spaces import GrammarSpace

    inputs, values = training_points(FormulaJob(name, "portfolio", seed))
    space = GrammarSpace(f"formulas:{','.join(inputs)}", MIN_LENGTH, MAX_LENGTH)
    error = ExpressionError(dict(inputs), values, constant=None, relative=True, seed=seed)
    return space, lambda strings: np.asarray(error(strings), dtype=np.float64)


TASKS: Mapping[str, Task] = {
    "docking": Task(
        "10,449 docking scores, share of the best 100", _docking, 50, 100, 10, "minimize", "minmax", top=100
    ),
    "zinc": Task("ZINC 250k, penalised logP", _zinc, 100, 400, 20, "maximize", "ngrams"),
    "pattern-10xx1": Task('"10??1", occurrences', partial(_boss, "10xx1"), 2, 25, 1, "maximize", "ssk"),
    "pattern-123": Task(
        '"123" without overlaps, occurrences', partial(_boss, "123-disjoint"), 4, 20, 1, "maximize", "ssk"
    ),
    "gene": Task("gene of a peptide of 10, kcal/mol", partial(_boss, "peptide-10"), 5, 30, 1, "minimize", "ssk"),
    "formula": Task("nguyen-3, log(1 + MSE)", partial(_formula, "nguyen-3"), 20, 80, 10, "minimize", "ngrams"),
}
"""What is searched."""


@dataclass(frozen=True)
class Job:
    """One run."""

    task: str
    method: str
    seed: int


def strategy_of(method: str, surrogate: str, search: Any = "auto") -> Any:
    """A member by itself, or a portfolio of all of them."""
    from seqopt.strategies import ModelBased, Portfolio

    if method in MEMBERS:
        return ModelBased(surrogate, method, search)
    return Portfolio(MEMBERS, method, surrogate, search)


def work(job: Job) -> dict[str, Any]:
    """One run, in one thread: all values in the order of evaluation, and whose nominees were taken."""
    import logging

    import torch

    from seqopt.optimizer import Optimizer
    from seqopt.search import GeneticSearch
    from seqopt.spaces import PoolSpace
    from seqopt.strategies import Portfolio

    torch.set_num_threads(1)
    logging.getLogger("seqopt").setLevel(logging.ERROR)
    task = TASKS[job.task]
    space, objective = task.build(job.seed)
    search = (
        "auto"
        if isinstance(space, PoolSpace)
        else GeneticSearch(population=50, evolutions=15, patience=3, sample=100, restarts=0)
    )
    optimizer = Optimizer(
        space,
        strategy=strategy_of(job.method, task.surrogate, search),
        initial=task.initial,
        batch_size=task.batch,
        direction=task.direction,
        seed=job.seed,
    )
    # Noise, where there is any, and all that is drawn begin with the seed: the first strings are those of all methods.
    taken: dict[str, int] = {}
    seconds = 0.0
    while len(optimizer.observations) < task.initial + task.budget:
        started = time.process_time()
        strings = optimizer.ask()
        seconds += time.process_time() - started
        strategy = optimizer.strategy.then
        if isinstance(strategy, Portfolio) and len(optimizer.observations) >= task.initial:
            for name in strategy.nominated_by:
                taken[name] = taken.get(name, 0) + 1
        optimizer.tell(strings, [float(value) for value in objective(strings)])
    rows = optimizer.observations.rows
    values = [float(row.value) for row in rows]
    result: dict[str, Any] = {"job": asdict(job), "values": [round(value, 6) for value in values]}
    if task.top is not None:
        everything = objective(space.strings)
        sign = 1.0 if task.direction == "maximize" else -1.0
        worst = np.sort(sign * everything)[-task.top]
        result["found"] = int((sign * np.array(values) >= worst).sum())
    return result | {"taken": taken, "suggest_seconds": round(seconds, 2)}


def outcome(run: Mapping[str, Any]) -> float:
    """What a run ended with; more is better."""
    task = TASKS[run["job"]["task"]]
    if task.top is not None:
        return float(run["found"]) / task.top
    return float(np.nanmax(run["values"])) if task.direction == "maximize" else -float(np.nanmin(run["values"]))


def main(argv: Sequence[str] | None = None) -> None:
    """Do the runs that are missing, then write the tables; see ``--help``."""
    parser = argparse.ArgumentParser(prog="seqopt bench portfolio", description=str(__doc__).split("\n\n")[0])
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS), help="default: all")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), help="default: all")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"runs of each method (default {SEEDS})")
    parser.add_argument(
        "--results", type=Path, default=Path("results/portfolio"), help="folder of the raw results, a file a method"
    )
    parser.add_argument("--document", type=Path, default=Path("docs/results.md"), help="where the tables go")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (default 2)")
    parser.add_argument("--report-only", action="store_true", help="do no run, only write the tables")
    options = parser.parse_args(list(argv or []))
    if not options.report_only:
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
            record=header(list(argv or []), "portfolio"),
        )
    text = tables(read_runs(options.results))
    print(text)
    replace_section(options.document, "portfolio", text)


Runs = Mapping[str, Mapping[str, Mapping[int, Mapping[str, Any]]]]
"""By task, method and seed."""


def read_runs(results: Path) -> Runs:
    """All stored runs, in the order of the tables."""
    found: dict[str, dict[str, dict[int, Mapping[str, Any]]]] = {}
    for method in METHODS:
        for run in read_records(results / f"{method}{ENDING}", ["job"]):
            job = run["job"]
            found.setdefault(job["task"], {}).setdefault(method, {})[int(job["seed"])] = run
    return {task: found[task] for task in TASKS if task in found}


def tables(runs: Runs) -> str:
    """What searches end with, a table for each."""
    lines: list[str] = []
    for name, methods in runs.items():
        task = TASKS[name]
        best = best_member(methods)
        lines += [
            f"{task.label}: {task.initial} random strings, then {task.budget} in batches of {task.batch}\n",
            "| method | seeds | ended with | less the best member | taken from | s choosing |",
            "|---|---|---|---|---|---|",
        ]
        sign = 1.0 if task.top is not None or task.direction == "maximize" else -1.0
        for method, seeds in methods.items():
            ended = with_error([sign * outcome(run) for run in seeds.values()])
            both = sorted(seeds.keys() & methods.get(best, {}).keys()) if method != best else []
            behind = with_error([outcome(seeds[one]) - outcome(methods[best][one]) for one in both]) if both else ""
            seconds = float(np.median([run["suggest_seconds"] for run in seeds.values()]))
            label = f"**{METHODS[method]}**" if method == best else METHODS[method]
            lines.append(f"| {label} | {len(seeds)} | {ended} | {behind} | {shares(seeds.values())} | {seconds:.0f} |")
        lines.append("")
    lines.append(
        "Mean ± one standard error over seeds of the best value, or share, that a search ended with. The member of the "
        "largest mean stands in bold, which favours it; differences from it are paired by seed, and positive ones are "
        "better, whatever the direction. *Taken from*: shares of GIBBON, expected improvement, UCB and Thompson "
        "sampling, in percent, of what was taken; a string that several nominated counts for the first. Seconds are of "
        "the processor, for a whole run."
    )
    return "\n".join(lines)


def best_member(methods: Mapping[str, Mapping[int, Mapping[str, Any]]]) -> str:
    """The member of the largest mean over its runs; empty where no member was run."""
    there = [name for name in MEMBERS if methods.get(name)]
    return max(there, key=lambda name: float(np.mean([outcome(run) for run in methods[name].values()])), default="")


def shares(runs: Any) -> str:
    """Percents of the members, in their order.

    Example:
        >>> shares([{"taken": {"gibbon": 3, "ucb": 1}}])
        '75 / 0 / 25 / 0'
    """
    counts = np.array([sum(run["taken"].get(member, 0) for run in runs) for member in MEMBERS], dtype=np.float64)
    return " / ".join(f"{100 * share:.0f}" for share in counts / counts.sum()) if counts.any() else ""
