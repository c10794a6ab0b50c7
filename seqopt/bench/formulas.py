"""Symbolic regression: formulas of the Nguyen and Keijzer lists, found by seqopt, by chance and by gplearn.

Ten formulas, five of each list, were drawn at random before anything was run (of formulas that are in the lists more
than once, the first counts). Every method is given the same points and 100 evaluations of a formula; gplearn 20,000 as
well, in populations of 1,000, as it is meant to be used. Judged is the formula of the least error on the training
points, by its error on the test points of the literature.

References:
    Uy, N. Q. et al. (2011) and Keijzer, M. (2003): see `seqopt.objectives.formula_tasks`.
    Stephens, T. (2016). gplearn: genetic programming in Python, with a scikit-learn inspired API.
"""

from __future__ import annotations

import argparse
import logging
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seqopt.bench.conditions import measured_by
from seqopt.bench.records import ENDING, Run, read_records
from seqopt.bench.runner import header, replace_section, run_jobs
from seqopt.errors import InputError
from seqopt.objectives.formula_tasks import FORMULA_TASKS

FloatArray = npt.NDArray[np.float64]

TASKS = (
    *("nguyen-3", "nguyen-4", "nguyen-5", "nguyen-6", "nguyen-8"),
    *("keijzer-9", "keijzer-10", "keijzer-11", "keijzer-13", "keijzer-14"),
)
"""What is reported: five of ten and five of twelve, drawn by ``numpy.random.default_rng(0).choice``."""

SEEDS = 5
INITIAL, BATCH, EVALUATIONS = 20, 10, 100
MIN_LENGTH, MAX_LENGTH = 3, 25
CONSTANT = "c"

REFERENCE = "seqopt-constants"
"""What the others are compared with."""

SOLVED = 0.01
"""Largest deviation at any test point of a formula that counts as found (a hit, in Koza's terms)."""


@dataclass(frozen=True)
class Job:
    """One run."""

    task: str
    method: str
    seed: int


@dataclass(frozen=True)
class Found:
    """A formula that a method ended with.

    Attributes:
        formula: As text.
        predict: Its values.
        size: Its symbols.
        evaluations: Formulas that were scored.
        computations: How often any formula was computed for that, those for fits among them.
        seconds: Of the run.
    """

    formula: str
    predict: Callable[[dict[str, FloatArray]], FloatArray]
    size: int
    evaluations: int
    computations: int
    seconds: float


def training_points(job: Job) -> tuple[dict[str, FloatArray], FloatArray]:
    """What a method is given: the same for all methods of one task and seed."""
    return FORMULA_TASKS[job.task].training(np.random.default_rng([job.seed, *job.task.encode()]))


def judging_points(task: str) -> tuple[dict[str, FloatArray], FloatArray]:
    """What its formula is judged by, the same for all seeds."""
    return FORMULA_TASKS[task].testing(np.random.default_rng([1_000_000, *task.encode()]))


def searched(job: Job, *, constants: bool, random: bool = False, surrogate: str = "auto") -> Found:
    """The search of seqopt, by default with all defaults, or as many random formulas of the same grammar.

    As from the command line: of formulas with constants that describe the same functions, one is in the space.
    """
    import seqopt
    from seqopt.objectives import ExpressionError, FormulaSpace
    from seqopt.spaces import GrammarSpace

    inputs, values = training_points(job)
    constant = CONSTANT if constants else None
    error = ExpressionError(dict(inputs), values, constant=constant, relative=True, seed=job.seed)
    grammar = f"formulas:{','.join(inputs)}" + (f"+{constant}" if constant else "")
    space = GrammarSpace(grammar, MIN_LENGTH, MAX_LENGTH)
    if constants:
        space = FormulaSpace(grammar, MIN_LENGTH, MAX_LENGTH, variables=tuple(inputs), constant=constant)
    started = time.perf_counter()
    if random:
        strings = space.sample(EVALUATIONS, np.random.default_rng(job.seed))
        scores = error(strings)
    else:
        # The first values of a search are often equal; that the model learns nothing from them needs no saying.
        logging.getLogger("seqopt").setLevel(logging.ERROR)
        result = seqopt.minimize(
            error,
            space,
            initial=INITIAL,
            budget=EVALUATIONS - INITIAL,
            batch_size=BATCH,
            seed=job.seed,
            surrogate=surrogate,
        )
        strings, scores = result.evaluations["string"].tolist(), result.evaluations["value"].to_numpy()
    seconds = time.perf_counter() - started
    best = strings[int(np.argmin(scores))]
    formula, fit = error.parse(best), error.fit(best)
    fits = [error.fit(string) for string in strings]
    return Found(
        best if not fit.values else f"{best} with c = {', '.join(f'{value:.6g}' for value in fit.values)}",
        lambda columns: formula(columns, fit.values),
        len(space.encoder.tokenizer.tokenize(best)),
        len(strings),
        sum(found.evaluations for found in fits),
        seconds,
    )


def by_gplearn(job: Job, population: int, generations: int) -> Found:
    """The best formula of all generations of gplearn.

    Its functions are those of our grammar; its division, logarithm and square root are protected, as always there. All
    else is its default, but for tournaments, of 2 % of the population and at least 3, and constants, from -3 to 3. Of
    100 evaluations, ten generations of 10 were the best of four ways (5 of 20, 2 of 50, 1 of 100) on the formulas of
    the two lists that are not reported.
    """
    try:
        from gplearn.functions import make_function
        from gplearn.genetic import SymbolicRegressor
    except ImportError as error:
        raise InputError(
            "gplearn is not installed, which this method is: pip install 'seqopt[bench]', or leave it out by --methods"
        ) from error
    inputs, values = training_points(job)
    columns = np.column_stack(list(inputs.values()))
    exponential = make_function(function=_exp, name="exp", arity=1)
    started = time.perf_counter()
    found: list[tuple[float, Any]] = []
    regressor = SymbolicRegressor(
        population_size=population,
        generations=1,
        tournament_size=max(3, population // 50),
        function_set=("add", "sub", "mul", "div", "sqrt", "log", "sin", "cos", exponential),
        metric="mse",
        const_range=(-3.0, 3.0),
        warm_start=True,
        random_state=job.seed,
    )
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for generation in range(1, generations + 1):
            # One generation at a time: only the best of the last one is kept by gplearn.
            regressor.set_params(generations=generation)
            regressor.fit(columns, values)
            program = regressor._program
            found.append((float(program.raw_fitness_), program))
            if found[-1][0] == 0:
                break
    seconds = time.perf_counter() - started
    _, best = min(found, key=lambda pair: pair[0])
    scored = population * len(found)
    return Found(
        str(best),
        lambda other: best.execute(np.column_stack(list(other.values()))),
        int(best.length_),
        scored,
        scored,
        seconds,
    )


def _exp(x: FloatArray) -> FloatArray:
    """The exponential function, closed as gplearn wants functions to be: never infinite."""
    with np.errstate(over="ignore"):
        made: FloatArray = np.minimum(np.exp(x), 1e100)
    return made


METHODS: Mapping[str, tuple[str, Callable[[Job], Found]]] = {
    "seqopt": ("seqopt", lambda job: searched(job, constants=False)),
    "seqopt-ssk": ("seqopt, sub-sequences only", lambda job: searched(job, constants=False, surrogate="ssk-bayes")),
    "seqopt-ngrams": ("seqopt, n-grams only", lambda job: searched(job, constants=False, surrogate="ngrams")),
    "seqopt-constants": ("seqopt, constants fitted", lambda job: searched(job, constants=True)),
    "random": ("random", lambda job: searched(job, constants=False, random=True)),
    "random-constants": ("random, constants fitted", lambda job: searched(job, constants=True, random=True)),
    "gplearn": ("gplearn", lambda job: by_gplearn(job, 10, 10)),
    "gplearn-20000": ("gplearn, 20,000 evaluations", lambda job: by_gplearn(job, 1000, 20)),
}
"""What is compared: name in the tables, and what does a run."""


def work(job: Job) -> Run:
    """One run, in one thread, judged on the training and on the test points."""
    import torch

    torch.set_num_threads(1)
    found = METHODS[job.method][1](job)
    result: Run = {"job": asdict(job), "formula": found.formula, "size": found.size}
    for name, (inputs, values) in (("train", training_points(job)), ("test", judging_points(job.task))):
        with np.errstate(all="ignore"):
            deviations = np.abs(np.broadcast_to(found.predict(inputs), values.shape) - values)
            relative = float(np.mean(deviations**2) / np.var(values))
        # JSON has no infinity: a formula that is not finite at some point has no error.
        result[f"{name}_nmse"] = relative if np.isfinite(relative) else None
        result[f"{name}_largest"] = float(deviations.max()) if np.isfinite(relative) else None
    return result | {
        "evaluations": found.evaluations,
        "computations": found.computations,
        "seconds": round(found.seconds, 3),
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Do the runs that are missing, then write the tables; see ``--help``."""
    parser = argparse.ArgumentParser(prog="seqopt bench formulas", description=str(__doc__).split("\n\n")[0])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), help="default: all")
    parser.add_argument(
        "--tasks", nargs="+", choices=FORMULA_TASKS, default=list(TASKS), help="default: the ten that were drawn"
    )
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"runs of each task and method (default {SEEDS})")
    parser.add_argument(
        "--results",
        type=Path,
        default=Path("results/formulas"),
        help="folder of the raw results, a file for each method (default results/formulas)",
    )
    parser.add_argument("--document", type=Path, default=Path("docs/results.md"), help="where the tables go")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (default 2)")
    parser.add_argument("--report-only", action="store_true", help="do no run, only write the tables")
    options = parser.parse_args(list(argv or []))
    if not options.report_only:
        record = header(list(argv or []), "formulas")
        if any(method.startswith("gplearn") for method in options.methods):
            try:
                record["versions"]["gplearn"] = metadata.version("gplearn")
            except metadata.PackageNotFoundError:
                raise InputError(
                    "gplearn is not installed: pip install 'seqopt[bench]', or leave it out by --methods"
                ) from None
        jobs = [
            Job(task, method, seed)
            for seed in range(options.seeds)
            for task in options.tasks
            for method in options.methods
        ]
        run_jobs(
            jobs,
            lambda job: options.results / f"{job.method}{ENDING}",
            lambda job: {"job": asdict(job)},
            work,
            processes=options.jobs,
            record=record,
        )
    runs = read_runs(options.results)
    text = tables(runs)
    print(text)
    replace_section(options.document, "formulas", text)


Runs = Mapping[str, Mapping[str, Sequence[Run]]]
"""By method and task, in the order of the seeds."""


def read_runs(results: Path) -> Runs:
    """All stored runs of the reported tasks."""
    found: dict[str, dict[str, list[Run]]] = {}
    for method in METHODS:
        for run in read_records(results / f"{method}{ENDING}", ["job"]):
            if run["job"]["task"] in TASKS:
                found.setdefault(method, {}).setdefault(run["job"]["task"], []).append(run)
    for by_task in found.values():
        for several in by_task.values():
            several.sort(key=lambda run: int(run["job"]["seed"]))
    return found


def r_squared(run: Run) -> float:
    """R2 on the test points, 0 where a formula does worse than their mean or is not finite at one of them."""
    error = run["test_nmse"]
    return 0.0 if error is None else max(0.0, 1.0 - float(error))


def training_error(run: Run) -> float:
    """log10 of the mean squared error on the training points in units of their variance, of at least 1e-12."""
    error = run["train_nmse"]
    return 0.0 if error is None else float(np.log10(max(float(error), 1e-12)))


def solved(run: Run) -> bool:
    """Whether the formula deviates by less than `SOLVED` at every test point."""
    return run["test_largest"] is not None and run["test_largest"] < SOLVED


def tables(runs: Runs) -> str:
    """R2 on the test points by task and method, how many were found, and what they cost."""
    methods = list(runs)
    labels = " | ".join(METHODS[method][0] for method in methods)
    records = (run["record"] for by_task in runs.values() for several in by_task.values() for run in several)
    lines = [measured_by(records), "", f"| R2 on the test points | {labels} |", "|---|" + "---|" * len(methods)]
    for task in TASKS:
        cells = [_score([r_squared(run) for run in runs[method].get(task, ())]) for method in methods]
        lines.append(f"| {task}: {FORMULA_TASKS[task].formula} | {' | '.join(cells)} |")
    every = {method: [run for several in runs[method].values() for run in several] for method in methods}
    rows: dict[str, Callable[[str], str]] = {
        "mean of all": lambda method: _score(_by_seed(every[method])),
        f"mean of all, {METHODS[REFERENCE][0]}, less this": lambda method: _paired(runs, method),
        "log10 of the error on the training points": lambda method: _score(_by_seed(every[method], training_error)),
        "found": lambda method: f"{sum(map(solved, every[method]))} of {len(every[method])}",
        "evaluations of a run": lambda method: f"{np.median([run['evaluations'] for run in every[method]]):,.0f}",
        "computations of a formula": lambda method: f"{np.median([run['computations'] for run in every[method]]):,.0f}",
        "symbols of the formula": lambda method: f"{np.median([run['size'] for run in every[method]]):.0f}",
    }
    made = {name: list(map(cell, methods)) for name, cell in rows.items()}
    lines += [f"| *{name}* | {' | '.join(cells)} |" for name, cells in made.items() if any(cells)]
    seeds = {len(several) for by_task in runs.values() for several in by_task.values()}
    lines += [
        "",
        f"Mean ± one standard error over {' or '.join(map(str, sorted(seeds)))} seeds, which draw the points and the "
        "formulas; R2 counts as 0 where it is negative, or where the formula is not finite at a test point. Error on "
        "the training points: mean squared, in units of their variance, which is what searches minimise. Found: "
        f"less than {SOLVED} off at every test point. Medians of evaluations (formulas scored), computations (those "
        "for fits of constants among them) and symbols (terminals of the grammar; nodes of the tree of gplearn). "
        "Differences are paired by task and seed.",
    ]
    return "\n".join(lines)


def _score(values: Sequence[float]) -> str:
    if not len(values):
        return "–"
    error = f" ± {np.std(values, ddof=1) / np.sqrt(len(values)):.3f}" if len(values) > 1 else ""
    return f"{np.mean(values):.3f}{error}"


def _by_seed(runs: Sequence[Run], score: Callable[[Run], float] = r_squared) -> list[float]:
    """The mean over tasks, of each seed that has all of them."""
    seeds = sorted({int(run["job"]["seed"]) for run in runs})
    several = [[score(run) for run in runs if run["job"]["seed"] == seed] for seed in seeds]
    return [float(np.mean(values)) for values in several if len(values) == len(TASKS)]


def _paired(runs: Runs, method: str) -> str:
    if method == REFERENCE or REFERENCE not in runs:
        return ""
    ours = {(r["job"]["task"], r["job"]["seed"]): r_squared(r) for several in runs[REFERENCE].values() for r in several}
    others = {(r["job"]["task"], r["job"]["seed"]): r_squared(r) for several in runs[method].values() for r in several}
    return _score([ours[key] - others[key] for key in sorted(ours.keys() & others.keys())])
