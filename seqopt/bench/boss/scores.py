"""Numbers that runs are judged by."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from seqopt.bench.boss.published import (
    LEAST_ERROR,
    OCCURRENCES,
    PUBLISHED,
    SCALED_BY_FOUR,
    Score,
    least_acceptable,
)
from seqopt.bench.boss.runs import strings_of, with_undecodable, worth_of
from seqopt.bench.boss.tasks import TASKS, Task
from seqopt.bench.records import Run

if TYPE_CHECKING:
    FloatArray = npt.NDArray[np.float64]

WITHIN = 50
"""Evaluations, the initial ones among them, within which the best gene is looked for."""

FOUND_SHARE = 12 / 15
"""Share of runs that are to find it."""


def best_so_far(run: Run) -> FloatArray:
    """What the best string observed so far is worth, after each evaluation.

    With noise, the string of the best observation counts, by its noiseless value.
    """
    task = TASKS[run["job"]["task"]]
    observed = task.sign * np.asarray(with_undecodable(run, run["values"]), dtype=np.float64)
    worth = np.asarray(with_undecodable(run, worth_of(run)), dtype=np.float64)
    # A value leads from where it first exceeds all before it.
    leads = np.r_[True, observed[1:] > np.maximum.accumulate(observed)[:-1]]
    return worth[np.maximum.accumulate(np.where(leads, np.arange(len(worth)), 0))]


def final(runs: Sequence[Run]) -> FloatArray:
    """Worth of the best string observed in each run."""
    return np.array([best_so_far(run)[-1] for run in runs])


def recommended(runs: Sequence[Run]) -> FloatArray:
    """Noiseless worth of the string of largest posterior mean in each run of a noisy task."""
    return np.array([run["noiseless"][strings_of(run).index(run["recommended"])] for run in runs])


def score(values: npt.ArrayLike) -> Score:
    """Mean and one standard error; that of a single value is NaN."""
    values = np.asarray(values, dtype=np.float64)
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else math.nan
    return Score(float(values.mean()), float(error))


def percent(values: FloatArray, task: Task) -> FloatArray:
    """Values of a task whose best possible value is known, in percent of it."""
    assert task.largest is not None
    return 100 * values / task.largest


def paired(runs: Sequence[Run], others: Sequence[Run]) -> Score | None:
    """Final worth of ``runs`` less that of ``others``, over the seeds that both have; `None` if there are none."""
    first, second = (
        {run["job"]["seed"]: worth for run, worth in zip(several, final(several), strict=True)}
        for several in (runs, others)
    )
    common = sorted(first.keys() & second.keys())
    return score([first[seed] - second[seed] for seed in common]) if common else None


@dataclass(frozen=True)
class Verdict:
    """How SSK-ga compares with its published score.

    Attributes:
        ours: Mean and standard error, in the unit of the comparison.
        published: The same as published.
        least: The least acceptable mean.
        unit: ``"%"`` or ``"occurrences"``.
        percent: Our mean and error in percent of the largest count.
        aim: To be reached by that mean.
    """

    ours: Score
    published: Score
    least: float
    unit: str
    percent: Score
    aim: float

    @property
    def agrees(self) -> bool:
        """Whether our mean is at least the least acceptable one."""
        return self.ours.mean >= self.least

    @property
    def reaches_aim(self) -> bool:
        """Whether our mean is at least the aim."""
        return self.percent.mean >= self.aim


def judge(name: str, counts: FloatArray) -> Verdict:
    """Compare the final counts of our SSK-ga runs of a synthetic task with the published score.

    The row that appears to have been scaled by 4 is compared in occurrences, the published error in the same unit; the
    others in percent.
    """
    task = TASKS[name]
    assert task.aim is not None
    in_percent = score(percent(counts, task))
    if name == SCALED_BY_FOUR:
        ours, published, unit = score(counts), OCCURRENCES, "occurrences"
        least_error = 4 * LEAST_ERROR / 100
    else:
        ours, published, unit = in_percent, PUBLISHED[name]["ssk-ga"], "%"
        least_error = LEAST_ERROR
    least = least_acceptable(published, 0.0 if math.isnan(ours.error) else ours.error, least_error)
    return Verdict(ours, published, least, unit, in_percent, task.aim)


@dataclass(frozen=True)
class Found:
    """How well runs did among all genes of a protein.

    Attributes:
        runs: How many there are.
        found: How many of them found one of the best genes within `WITHIN` evaluations.
        ranks: Of the best gene of each run within `WITHIN` evaluations; 1 for those of least energy.
    """

    runs: int
    found: int
    ranks: npt.NDArray[np.int64]


def among_all(runs: Sequence[Run], energies: FloatArray) -> Found:
    """Judge runs by the energies of all genes: a rank is 1 + the number of genes with less energy."""
    ascending = np.sort(energies)
    best = np.array([best_so_far(run)[:WITHIN][-1] for run in runs])
    # Energies are hundredths of kcal/mol, so that half a hundredth below tells what is less from what is equal.
    ranks = 1 + np.searchsorted(ascending, best - 0.005)
    return Found(len(runs), int((ranks == 1).sum()), ranks)


def chance(genes: int, best: int, draws: int) -> float:
    """Probability that ``draws`` distinct random genes out of ``genes`` hold one of the ``best`` best ones."""
    missing = np.arange(draws)
    return float(1 - np.prod((genes - best - missing) / (genes - missing)))


def seconds(runs: Sequence[Run]) -> float:
    """Median over runs of the time spent choosing strings."""
    return float(np.median([run["suggest_seconds"] for run in runs]))


def formulas(runs: Sequence[Run]) -> Mapping[str, float]:
    """The best formula of each run with its error, the best first."""
    task = TASKS["regression"]
    best = {}
    for run in runs:
        index = int(np.argmax(task.sign * np.asarray(run["values"])))
        best[strings_of(run)[index]] = float(run["values"][index])
    return dict(sorted(best.items(), key=lambda item: item[1]))
