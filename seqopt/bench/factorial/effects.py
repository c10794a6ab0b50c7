"""Main effects and means by pairs of factors, paired by seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from seqopt.bench.boss.published import Score
from seqopt.bench.boss.runs import worth_of
from seqopt.bench.boss.scores import score
from seqopt.bench.factorial.design import TASKS, Cell, third_of
from seqopt.bench.records import Run

Worths = Mapping[int, Mapping[Cell, float]]
"""What the best string of each run is worth, larger being better, by seed and cell."""


def worth(run: Run) -> float:
    """What the best string observed in a run is worth: percent of the largest count, or a value with its sign.

    With noise, the string of the best observation counts, by its noiseless value.
    """
    task = TASKS[run["job"]["task"]]
    best = int(np.argmax(task.sign * np.asarray(run["values"], dtype=np.float64)))
    value = float(worth_of(run)[best])
    return 100 * value / task.largest if task.largest is not None else task.sign * value


def worths(runs: Sequence[Run]) -> dict[int, dict[Cell, float]]:
    """By seed and cell, of seeds all of whose cells are there; an effect of others would not be balanced."""
    found: dict[int, dict[Cell, float]] = {}
    for run in runs:
        job = run["job"]
        found.setdefault(job["seed"], {})[Cell(**job["cell"])] = worth(run)
    if not runs:
        return {}
    task = runs[0]["job"]["task"]
    return {seed: found[seed] for seed in sorted(found) if set(third_of(task, seed)) <= found[seed].keys()}


def balanced(task: str, by_seed: Worths) -> dict[int, dict[Cell, float]]:
    """The cells of each seed's own third alone."""
    return {seed: {cell: cells[cell] for cell in third_of(task, seed)} for seed, cells in by_seed.items()}


def level_means(by_seed: Worths, factor: str, level: str) -> npt.NDArray[np.float64]:
    """Mean over the cells with a level, for each seed; NaN where there is none."""
    return np.array(
        [
            np.mean([value for cell, value in cells.items() if getattr(cell, factor) == level] or [np.nan])
            for cells in by_seed.values()
        ]
    )


def effect(by_seed: Worths, factor: str, level: str, reference: str) -> Score | None:
    """Mean difference of two levels over seeds, and its standard error; `None` where no seed has both.

    Where one level does not go with all others (one-hot symbols and formulas), the task has no such level at all.
    """
    difference = level_means(by_seed, factor, level) - level_means(by_seed, factor, reference)
    difference = difference[~np.isnan(difference)]
    return score(difference) if len(difference) else None


def pair_means(by_seed: Worths, levels: Mapping[str, str]) -> Score | None:
    """Mean over the cells with several levels, over seeds, and its standard error."""
    means = [
        np.mean(chosen)
        for cells in by_seed.values()
        if (chosen := [v for cell, v in cells.items() if all(getattr(cell, f) == level for f, level in levels.items())])
    ]
    return score(means) if means else None


def spread(by_seed: Worths) -> float:
    """Standard deviation of all runs of a task about the mean of their seed: the unit in which tasks are averaged."""
    parts = [np.array(list(cells.values())) - np.mean(list(cells.values())) for cells in by_seed.values()]
    return float(np.sqrt(np.mean(np.concatenate(parts) ** 2))) if parts else 0.0
