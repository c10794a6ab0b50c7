"""Everything that has been measured, as arrays."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seqopt.data.observations import Observation
from seqopt.data.outcome import Outcome
from seqopt.data.query import Item, Query
from seqopt.errors import InputError


@dataclass(frozen=True, eq=False)
class Data:
    """n results, measured or failed, in the order in which they were asked for or told.

    Attributes:
        queries: What was measured, n.
        values: In the user's units, n x m, NaN where nothing was measured.
        noise_variance: Known variance of the noise of each value, n x m, NaN where it is not known.
        failed: Which evaluations failed, n.
        outcomes: What the m columns are.
        censored: Of which values of the objective only a limit is known, n: 1 for one above it, -1 for one below, in
            the user's units, 0 for a known value; `None` where all are known.
        costs: What each evaluation was told to have cost, n, NaN where nobody has said; `None` where none was told.
        trials: Wells that each value is the share of hits of, n, where results are yes or no; `None` where each is of
            one.
    """

    queries: tuple[Query, ...]
    values: npt.NDArray[np.float64]
    noise_variance: npt.NDArray[np.float64]
    failed: npt.NDArray[np.bool_]
    outcomes: tuple[Outcome, ...] = (Outcome(),)
    censored: npt.NDArray[np.int8] | None = None
    costs: npt.NDArray[np.float64] | None = None
    trials: npt.NDArray[np.int64] | None = None

    @classmethod
    def of(cls, rows: Sequence[Observation], outcomes: tuple[Outcome, ...] = (Outcome(),)) -> Data:
        """Rows of a table that were measured or failed."""
        finished = [row for row in rows if row.status in ("ok", "failed")]
        values = _table([row.values for row in finished], len(outcomes))
        noise = _table([row.noise_variance or () for row in finished], len(outcomes))
        failed = np.array([row.status == "failed" for row in finished], dtype=np.bool_)
        censored = None
        if any(row.censored for row in finished):
            censored = np.array([_SIDES[row.censored] for row in finished], dtype=np.int8)
        costs = None
        if any(row.cost is not None for row in finished):
            costs = np.array([math.nan if row.cost is None else row.cost for row in finished])
        trials = None
        if any(row.trials != 1 for row in finished):
            trials = np.array([row.trials for row in finished], dtype=np.int64)
        return cls(tuple(row.query for row in finished), values, noise, failed, outcomes, censored, costs, trials)

    def column(self, name: str) -> int:
        """The number of an outcome.

        Raises:
            InputError: If there is no such outcome.
        """
        for index, outcome in enumerate(self.outcomes):
            if outcome.name == name:
                return index
        known = ", ".join(repr(outcome.name) for outcome in self.outcomes)
        raise InputError(f"there is no outcome {name!r} in this search: it has {known}")

    @property
    def objective(self) -> int:
        """The index of the outcome that is optimised."""
        return next(index for index, outcome in enumerate(self.outcomes) if outcome.role == "objective")

    def measured(self, column: int | None = None) -> Measured:
        """What has been measured of one outcome (by default the objective), as models see it."""
        column = self.objective if column is None else column
        outcome, values = self.outcomes[column], self.values[:, column]
        rows = np.flatnonzero(~np.isnan(values))
        items: list[Item] = [query if query.context else query.key for query in (self.queries[row] for row in rows)]
        targets = np.array([outcome.target(value) for value in values[rows].tolist()])
        known = self.noise_variance[rows, column]
        noise = None
        if (~np.isnan(known)).any():
            noise = np.array(
                [
                    0.0 if np.isnan(variance) else outcome.transform.variance(value, variance)
                    for value, variance in zip(values[rows].tolist(), known.tolist(), strict=True)
                ]
            )
        censored = None
        if column == self.objective and self.censored is not None and self.censored[rows].any():
            censored = (outcome.sign * self.censored[rows]).astype(np.int8)
        trials = None if self.trials is None or not outcome.yes_no else self.trials[rows]
        return Measured(items, targets, noise, rows, censored, trials)

    def __len__(self) -> int:
        return len(self.queries)


_SIDES = {None: 0, "<": -1, ">": 1}


def _table(rows: Sequence[tuple[float, ...]], columns: int) -> npt.NDArray[np.float64]:
    """Rows that may lack their last numbers as a table, NaN where there is none."""
    table = np.full((len(rows), columns), np.nan)
    lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    for length in np.unique(lengths[lengths > 0]).tolist():
        chosen = np.flatnonzero(lengths == length)
        numbers = itertools.chain.from_iterable(rows[place] for place in chosen.tolist())
        found = np.fromiter(numbers, dtype=np.float64, count=length * len(chosen))
        table[chosen, :length] = found.reshape(-1, length)
    return table


@dataclass(frozen=True, eq=False)
class Measured:
    """Values of one outcome as models see them: transformed, and larger is better.

    Attributes:
        items: What was measured, k: plain strings where there is only one way to measure.
        targets: k.
        noise_variance: Known variances of their noise, k, 0 where one is not known; `None` where none is.
        rows: Their indices in the table.
        censored: 1 where a target is a limit that the value is better than, -1 where the value is worse, else 0, k;
            `None` where all are known.
        trials: Wells that each target is of, k, where results are yes or no; `None` where each is of one.
    """

    items: list[Item]
    targets: npt.NDArray[np.float64]
    noise_variance: npt.NDArray[np.float64] | None
    rows: npt.NDArray[np.intp]
    censored: npt.NDArray[np.int8] | None = None
    trials: npt.NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.items)
