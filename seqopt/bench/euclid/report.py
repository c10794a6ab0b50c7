"""Tables of runs, and their sections in a document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from seqopt.bench.conditions import measured_by
from seqopt.bench.euclid.methods import METHODS
from seqopt.bench.euclid.published import PUBLISHED
from seqopt.bench.euclid.tasks import TASKS, Part
from seqopt.bench.kernel.report import Table
from seqopt.bench.records import Run
from seqopt.bench.runner import replace_section, with_error

FloatArray = npt.NDArray[np.float64]

Runs = Mapping[str, Mapping[str, Sequence[Run]]]
"""By task and method."""

REFERENCE: Mapping[Part, str] = {
    "fidelity": "gibbon",
    "batch": "gibbon-one",
    "plates": "bosh",
    "ratio": "random",
    "learning": "points",
    "noisy": "gibbon-bayes",
    "esp": "random-portfolio",
    "unbounded": "ei-bayes",
}
"""What the others are compared with."""

CLOSE = 0.1
"""Regret below which a run counts as close to the optimum."""


def write_document(document: Path, runs: Runs) -> None:
    """Put the tables of each part into its section ``euclid-PART`` of a Markdown document."""
    for part in REFERENCE:
        if of_part := {name: by_method for name, by_method in runs.items() if TASKS[name].part == part}:
            blocks = [
                measured_by(
                    run["record"] for by_method in of_part.values() for several in by_method.values() for run in several
                ),
                *(table.to_markdown() for table in tables(of_part)),
            ]
            replace_section(document, f"euclid-{part}", "\n\n".join(blocks))


def tables(runs: Runs) -> list[Table]:
    """All tables of ``runs``."""
    found = []
    for name, by_method in runs.items():
        part = TASKS[name].part
        made = {"plates": plates, "ratio": density_ratios, "learning": learned}.get(part, regrets)
        made = inferred if part in ("noisy", "esp", "unbounded") else made
        found.append(made(name, by_method))
    return [*found, *filter(lambda table: table.rows, [ratios(runs)])]


def regrets(name: str, by_method: Mapping[str, Sequence[Run]]) -> Table:
    """Regret at some costs, or after some batches, and what choosing took."""
    task = TASKS[name]
    several = task.part == "fidelity"
    rows = []
    for method, runs in by_method.items():
        curves = np.stack([at(run, task.checkpoints, several) for run in runs])
        cells = [mean(column, digits(column)) for column in curves.T]
        row = [METHODS[method].label, str(len(runs)), *cells, f"{np.median(curves[:, -1]):.2g}"]
        row.append(_difference(name, by_method, method))
        if several:
            row += [f"{np.mean([run['spent'][-1] for run in runs]):.4g}", _steps(runs), _at_target(name, runs)]
        row += [f"{overhead(runs):.2f}", f"{choosing(runs):.2f}", _printed(name, method)]
        rows.append(tuple(row))
    headings = [f"{point:g}" for point in task.checkpoints]
    more = ("spent", "steps", "at the target") if several else ()
    what = "after so much cost" if several else f"after so many batches of {task.batch}"
    return Table(
        f"{task.label}: regret {what}",
        (
            "method",
            "runs",
            *headings,
            "median at the end",
            "this less GIBBON, paired",
            *more,
            "s a step",
            "s choosing",
            "published",
        ),
        rows,
        _note(name),
    )


def plates(name: str, by_method: Mapping[str, Sequence[Run]]) -> Table:
    """Regret, or the objective, after so many evaluations; initial ones included."""
    task = TASKS[name]
    known = "regret" in next(iter(by_method.values()))[0]
    rows = []
    for method, runs in by_method.items():
        curves = np.stack([_after(run, "regret" if known else "worth", task.checkpoints) for run in runs])
        cells = ["not begun" if np.isnan(column).all() else mean(column, 3 if known else 2) for column in curves.T]
        opened = [run["plates"][-1] - run["plates"][0] for run in runs if "plates" in run]
        rows.append(
            (
                METHODS[method].label,
                str(len(runs)),
                *cells,
                _difference(name, by_method, method),
                f"{np.mean(opened):.1f} ({min(opened)}-{max(opened)})" if opened else "",
                f"{overhead(runs):.2f}",
            )
        )
    what = "regret" if known else "orders delivered in time, %,"
    return Table(
        f"{task.label}: {what} after so many evaluations",
        (
            "method",
            "runs",
            *(f"{point:g}" for point in task.checkpoints),
            "this less BOSH, paired",
            "plates opened",
            "s a step",
        ),
        rows,
        "Initial evaluations included; where several plates are measured at once each is an evaluation. Mean and one "
        "standard error. Counted is the objective at the measured point of largest posterior mean. Plates opened: by "
        "BOSH after the two that it begins with, mean (range). s a step: processor seconds of fit and choice.",
    )


def density_ratios(name: str, by_method: Mapping[str, Sequence[Run]]) -> Table:
    """Median regret of the best point after so many evaluations, and how many runs end close to the optimum."""
    task = TASKS[name]
    rows = []
    for method, runs in by_method.items():
        curves = np.array([run["regret"] for run in runs])[:, np.array(task.checkpoints, dtype=np.int64) - 1]
        cells = [f"{median:.2g}" for median in np.median(curves, axis=0)]
        close = int((curves[:, -1] < CLOSE).sum())
        seconds = f"{_mean_seconds(runs, 'choose_seconds'):.2f}"
        rows.append((METHODS[method].label, str(len(runs)), *cells, f"{close} of {len(runs)}", seconds))
    return Table(
        f"{task.label}: median regret after so many evaluations",
        ("method", "runs", *(f"{point:g}" for point in task.checkpoints), f"below {CLOSE} at the end", "s a step"),
        rows,
        f"{task.initial} random evaluations included. Regret is noiseless, and that of the best point so far. s a "
        "step: processor seconds of fit and choice.",
    )


def learned(name: str, by_method: Mapping[str, Sequence[Run]]) -> Table:
    """Errors of predictions after so many evaluations."""
    task = TASKS[name]
    rows = []
    for method, runs in by_method.items():
        cells = []
        for field in ("rmse", "nlpd"):
            curves = np.stack([_numbered(run, field, task.checkpoints) for run in runs])
            cells += [mean(column, 3) for column in curves.T]
        difference = _paired(name, by_method, method, "rmse")
        rows.append((METHODS[method].label, str(len(runs)), *cells, difference, f"{overhead(runs):.2f}"))
    points = [f"{point:g}" for point in task.checkpoints]
    return Table(
        f"{task.label}: errors of predictions after so many evaluations",
        (
            "method",
            "runs",
            *(f"RMSE, {point}" for point in points),
            *(f"NLPD, {point}" for point in points),
            "RMSE less that of random points, paired",
            "s a step",
        ),
        rows,
        f"{task.initial} Sobol points included. Mean and one standard error over runs. RMSE: of the mean, against true "
        "values at 1,000 points; NLPD: mean negative logarithm of the predictive density of a measurement there. s a "
        "step: processor seconds of fit and choice.",
    )


def inferred(name: str, by_method: Mapping[str, Sequence[Run]]) -> Table:
    """Regret of the point of largest posterior mean after so many evaluations."""
    task = TASKS[name]
    rows = []
    for method, runs in by_method.items():
        curves = np.stack([_numbered(run, "regret", task.checkpoints) for run in runs])
        cells = [mean(column, digits(column)) for column in curves.T]
        last = f"{np.median(curves[:, -1]):.2g}"
        difference = _paired(name, by_method, method, "regret")
        rows.append((METHODS[method].label, str(len(runs)), *cells, last, difference, f"{overhead(runs):.2f}"))
    reference = METHODS[REFERENCE[task.part]].label
    return Table(
        f"{task.label}: regret after so many evaluations",
        (
            "method",
            "runs",
            *(f"{point:g}" for point in task.checkpoints),
            "median at the end",
            f"this less {reference}, paired",
            "s a step",
        ),
        rows,
        f"{task.initial} initial points included. Mean and one standard error over runs of the true regret of the "
        "point of largest posterior mean. s a step: processor seconds of fit and choice.",
    )


def _numbered(run: Run, field: str, counts: Sequence[float]) -> FloatArray:
    """What was recorded after so many evaluations, or at the end of a shorter run."""
    values = np.array(run[field])
    places = np.clip(np.array(counts, dtype=np.int64) - int(run["initial"]), 0, len(values) - 1)
    found: FloatArray = values[places]
    return found


def _paired(name: str, by_method: Mapping[str, Sequence[Run]], method: str, field: str) -> str:
    reference = REFERENCE[TASKS[name].part]
    if method == reference or reference not in by_method:
        return ""
    ours = {run["job"]["seed"]: run[field][-1] for run in by_method[reference]}
    pairs = [run[field][-1] - ours[run["job"]["seed"]] for run in by_method[method] if run["job"]["seed"] in ours]
    return with_error(pairs, digits(pairs)) if len(pairs) > 1 else ""


def ratios(runs: Runs) -> Table:
    """Overheads of MUMBO over GIBBON, as in table 5.7.2."""
    rows: list[tuple[str, ...]] = []
    for name, by_method in runs.items():
        if TASKS[name].part != "fidelity" or not {"gibbon", "mumbo"} <= set(by_method):
            continue
        gibbon, mumbo = by_method["gibbon"], by_method["mumbo"]
        printed = PUBLISHED.get(name)
        rows.append(
            (
                TASKS[name].label,
                f"{overhead(gibbon):.2f}",
                f"{overhead(mumbo):.2f}",
                f"{overhead(gibbon) / overhead(mumbo):.2f}",
                f"{choosing(gibbon) / choosing(mumbo):.2f}",
                f"{printed['gibbon'] / printed['mumbo']:.2f}" if printed else "",
            )
        )
    return Table(
        "Overheads of GIBBON and MUMBO (table 5.7.2)",
        ("function", "GIBBON, s a step", "MUMBO, s a step", "ratio", "ratio without fits", "published ratio"),
        rows,
        "Processor seconds of fit and choice together, mean over steps and runs.",
    )


def at(run: Run, points: Sequence[float], cost: bool) -> FloatArray:
    """Regret of a run when it had spent at most so much, or after so many batches at most."""
    spent = np.array(run["spent"]) if cost else np.arange(len(run["regret"]), dtype=np.float64)
    places = np.searchsorted(spent, np.array(points) + 1e-9, side="right") - 1
    found: FloatArray = np.array(run["regret"])[np.maximum(places, 0)]
    return found


def overhead(runs: Iterable[Run]) -> float:
    """Processor seconds of fit and choice in a step, mean over steps of all runs."""
    return _mean_seconds(runs, "fit_seconds") + choosing(runs)


def choosing(runs: Iterable[Run]) -> float:
    """Processor seconds of choice in a step, mean over steps of all runs."""
    return _mean_seconds(runs, "choose_seconds")


def mean(values: FloatArray, digits: int) -> str:
    """Mean and standard error, or of a single run its number."""
    return with_error(values, digits) if len(values) > 1 else f"{values[0]:.{digits}f}"


def digits(values: npt.ArrayLike) -> int:
    """Decimals with which a mean of regrets shows two figures.

    Example:
        >>> digits([120.0]), digits([0.5]), digits([0.002])
        (0, 2, 4)
    """
    size = float(np.mean(np.abs(np.asarray(values, dtype=np.float64))))
    return int(np.clip(1 - np.floor(np.log10(max(size, 1e-9))), 0, 6))


def _mean_seconds(runs: Iterable[Run], field: str) -> float:
    # The last fit of a run is followed by no choice.
    seconds = [second for run in runs for second in run[field][: len(run["choose_seconds"])]]
    return float(np.mean(seconds)) if seconds else 0.0


def _after(run: Run, field: str, counts: Sequence[float]) -> FloatArray:
    places = np.searchsorted(np.array(run["counts"]), np.array(counts) + 1e-9, side="right") - 1
    values = np.array(run[field])
    return np.array([values[place] if place >= 0 else np.nan for place in places])


def _difference(name: str, by_method: Mapping[str, Sequence[Run]], method: str) -> str:
    part = TASKS[name].part
    reference = REFERENCE[part]
    if method == reference or reference not in by_method:
        return ""
    last = TASKS[name].checkpoints[-1:]

    def final(run: Run) -> float:
        if part == "plates":
            return float(_after(run, "regret" if "regret" in run else "worth", last)[0])
        return float(at(run, last, part == "fidelity")[0])

    ours = {run["job"]["seed"]: final(run) for run in by_method[reference]}
    pairs = [final(run) - ours[run["job"]["seed"]] for run in by_method[method] if run["job"]["seed"] in ours]
    return with_error(pairs, digits(pairs)) if len(pairs) > 1 else ""


def _steps(runs: Sequence[Run]) -> str:
    return f"{np.mean([len(run['regret']) - 1 for run in runs]):.0f}"


def _at_target(name: str, runs: Sequence[Run]) -> str:
    """Share of the queries after the initial ones that were of the target, and for a continuous fidelity its mean."""
    problem = TASKS[name].function
    fidelities = np.concatenate([np.array(run["points"])[run["initial"] :, -1] for run in runs])
    if problem.levels is None:
        return f"mean z {fidelities.mean():.2f}"
    return f"{(fidelities == problem.target).mean():.0%}"


def _printed(name: str, method: str) -> str:
    seconds = PUBLISHED.get(name, {}).get(method)
    return "" if seconds is None else f"{seconds:g} s"


def _note(name: str) -> str:
    task = TASKS[name]
    text = (
        "Mean and one standard error over runs of the regret of the point of largest posterior mean of the target. "
        "s a step: processor seconds of fit and choice, mean; s choosing: of the choice alone; published: of both."
    )
    if task.part == "fidelity":
        return (
            f"{text} Cost is counted from the initial points on, to {task.budget:g} or {task.steps} steps, whichever "
            "comes first; a run that ended before a cost counts with its last regret. At the target: share of the "
            "queries."
        )
    return text
