"""What a search did, in the order in which it did it: its batches, its results, and the steps that both make."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from seqopt.data import Observation
from seqopt.optimizer import Optimizer


@dataclass
class Step:
    """What happened in one step of a search.

    Attributes:
        step: 0 for the initial design, then 1, 2, ...
        evaluations: Evaluations so far, failed ones included.
        failed: Failed evaluations so far.
        best: Best value so far in the user's units, `None` before the first success.
        seconds: Time of the suggestion and of the evaluations of this step.
        kernel: Parameters of the model that chose the batch, empty for a random one.
        cost: Of all measurements so far, where there are several ways to measure; else `None`.
    """

    step: int
    evaluations: int
    failed: int
    best: float | None
    seconds: dict[str, float]
    kernel: dict[str, float] = field(default_factory=dict)
    cost: float | None = None


@dataclass(frozen=True)
class Asked:
    """One suggested batch.

    Attributes:
        rows: Its rows of the optimiser's table.
        end: Rows of the table after it.
        told: Results before it.
        number: 0 for the initial design, then 1, 2, ...
        seconds: What the suggestion took.
        parameters: Of the model that chose it.
    """

    rows: Sequence[Observation]
    end: int
    told: int
    number: int
    seconds: float
    parameters: dict[str, float]

    @property
    def complete(self) -> bool:
        """Whether all results are there."""
        return all(row.status != "pending" for row in self.rows)


class Journal:
    """Batches and results of a search as they came.

    Attributes:
        asked: The batches.
        told: The rows of the results, and of what was withdrawn, in the order in which they came.
        results: How many of them are values or failures.
        seconds: Time spent on suggestions and evaluations, as the file says.
    """

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.told: list[Observation] = []
        self.results = 0
        self.seconds = 0.0

    def tell(self, row: Observation) -> None:
        """Note a result, or what was withdrawn."""
        self.told.append(row)
        # Where only further outcomes are known, the result is still to come.
        self.results += row.status == "failed" or not math.isnan(row.value)

    def steps(self, optimizer: Optimizer, *, by_results: bool) -> list[Step]:
        """Every complete step.

        Args:
            optimizer: Where the search stands.
            by_results: A step is a number of results, in the order in which they came: of a search that does without
                batches. Else it is a batch.
        """
        if by_results:
            ends = step_ends(len(self.told), optimizer, ended=not optimizer.pending)
            return [self._by_results(optimizer, *step) for step in enumerate(pairwise(ends))]
        complete = []
        for asked in self.asked:
            if not asked.complete:
                break
            complete.append(self.batch_step(optimizer, asked))
        return complete

    def batch_step(self, optimizer: Optimizer, asked: Asked) -> Step:
        """The step of one batch."""
        rows = optimizer.observations.rows[: asked.end]
        return _step(optimizer, asked.number, rows, asked.rows, asked.seconds, asked.parameters)

    def last_step(self, optimizer: Optimizer, *, ended: bool) -> Step | None:
        """The step that the last result has completed, of a search whose steps are numbers of results."""
        ends = step_ends(len(self.told), optimizer, ended=ended)
        if ends[-1] != len(self.told) or len(ends) < 2:
            return None
        return self._by_results(optimizer, len(ends) - 2, (ends[-2], ends[-1]))

    def _by_results(self, optimizer: Optimizer, number: int, ends: tuple[int, int]) -> Step:
        start, end = ends
        asked = [one for one in self.asked if one.told < end]
        seconds = sum(one.seconds for one in asked if one.told >= start)
        parameters = asked[-1].parameters if asked else {}
        return _step(optimizer, number, self.told[:end], self.told[start:end], seconds, parameters)


def step_ends(results: int, optimizer: Optimizer, *, ended: bool) -> list[int]:
    """Numbers of results after which steps end: those of the initial design, then as many as a batch has."""
    ends = [0, *range(optimizer.initial, results + 1, optimizer.batch_size)]
    return [*ends, results] if ended and ends[-1] < results else ends


def cost_of(optimizer: Optimizer, rows: Sequence[Observation]) -> float:
    """What a search has spent on rows."""
    return round(sum(cost for _, cost in optimizer.spent(rows).values()), 9)


def _step(
    optimizer: Optimizer,
    number: int,
    rows: Sequence[Observation],
    batch: Sequence[Observation],
    seconds: float,
    parameters: dict[str, float],
) -> Step:
    best = optimizer.best_of(rows)
    return Step(
        step=number,
        evaluations=sum(row.status not in ("withdrawn", "lost") for row in rows),
        failed=sum(row.status == "failed" for row in rows),
        best=None if best is None else best.value,
        seconds={
            "suggest": round(seconds, 3),
            "evaluate": round(sum(row.details.get("seconds") or 0.0 for row in batch), 3),
        },
        kernel=parameters if number else {},
        cost=None if optimizer.contexts is None else cost_of(optimizer, rows),
    )
