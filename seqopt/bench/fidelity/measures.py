"""What a run is judged by: what it paid until it had measured good candidates, and how good the best was at a cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from seqopt.bench.fidelity.methods import METHODS
from seqopt.bench.fidelity.tasks import CHEAP, TASKS, Candidates, Task
from seqopt.data.replay import top_of

FloatArray = npt.NDArray[np.float64]

TOP, HALF = 10, 5
"""How many candidates are the best, and how many of them make half."""

CHECKPOINTS = (10.0, 20.0, 40.0)
"""Costs at which the regret is given."""


def costs_of(task: Task, bought: Sequence[tuple[int, str | int]], *, known: bool) -> FloatArray:
    """The cost of each measurement.

    Args:
        task: The task.
        bought: Index of the candidate, and the level: its name, or 1 for the target and 0 for the cheap one.
        known: Whether cheap values cost nothing.
    """
    cheap = 0.0 if known else task.cost
    return np.array([cheap if level in (CHEAP, 0) else 1.0 for _, level in bought], dtype=np.float64)


@dataclass(frozen=True)
class Measures:
    """What one run is judged by. A cost that was not enough is that of the budget, a lower bound.

    Attributes:
        first: Cost until one of the ten best was measured as the target.
        half: Cost until five of them were.
        best: Cost until the best one was.
        reached: Whether each of these three was reached within the budget.
        regret: At `CHECKPOINTS`, how far the best measured target is from the best of all, in standard deviations of
            the targets; NaN before there is one.
        share: Share of what was paid that was paid for cheap measurements.
    """

    first: float
    half: float
    best: float
    reached: tuple[bool, bool, bool]
    regret: tuple[float, ...]
    share: float


def measures(run: Mapping[str, Any], candidates: Candidates) -> Measures:
    """What a stored run is judged by.

    Args:
        run: As it is stored.
        candidates: Those of its seed.
    """
    task, method = TASKS[run["job"]["task"]], METHODS[run["job"]["method"]]
    bought = [(index, level) for index, level in run["bought"]]
    costs = costs_of(task, bought, known=method.known)
    spent = np.cumsum(costs)
    indices = np.array([index for index, _ in bought])
    targets = np.array([level == 1 for _, level in bought])
    good, best = (top_of(candidates.target, count, maximize=task.maximize)[indices] for count in (TOP, 1))
    found = [
        _cost_until(np.cumsum(targets & which), count, spent) for which, count in ((good, 1), (good, HALF), (best, 1))
    ]
    limit = task.budget
    first, half, best_cost = (limit if cost is None else cost for cost in found)
    return Measures(
        first,
        half,
        best_cost,
        (found[0] is not None, found[1] is not None, found[2] is not None),
        tuple(_regret(task, candidates, indices, targets & (spent <= cost + 1e-9)) for cost in CHECKPOINTS),
        float(costs[~targets].sum() / max(spent[-1], 1e-9)),
    )


def _cost_until(counts: npt.NDArray[np.int64], count: int, spent: FloatArray) -> float | None:
    place = int(np.searchsorted(counts, count))
    return None if place == len(counts) else float(spent[place])


def _regret(task: Task, candidates: Candidates, indices: npt.NDArray[np.int64], seen: npt.NDArray[np.bool_]) -> float:
    if not seen.any():
        return float("nan")
    signed = candidates.target * (1.0 if task.maximize else -1.0)
    return float((signed.max() - signed[indices[seen]].max()) / candidates.target.std())
