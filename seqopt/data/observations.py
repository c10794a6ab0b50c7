"""The one table of what has been evaluated."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from seqopt.data.query import Context, Query

if TYPE_CHECKING:
    import pandas as pd

Status = Literal["ok", "failed", "pending", "withdrawn", "lost"]
"""Whether a row has a value, is known to have none, awaits a result, will have none for reasons that are not the
string's, or was lost on the way, so that the string is asked for again."""

Censoring = Literal["<", ">"]
"""Which side of its limit a censored value lies on, in the user's units."""


@dataclass
class Observation:
    """One row: a string and what is known of it.

    Attributes:
        string: As it was suggested or told.
        key: Its identity.
        status: ``"pending"`` (suggested, no result yet), ``"ok"``, ``"failed"``, ``"withdrawn"`` or ``"lost"``.
        values: Measured values, one per outcome, in the user's units, NaN where it was not measured; empty unless
            ``"ok"``.
        noise_variance: Variance of the measurement noise of each value, where known.
        details: Whatever else belongs to the row: batch number, predictions when it was chosen, error, seconds.
        context: How the string is measured; empty where there is only one way.
        censored: ``"<"`` or ``">"`` where the value of the objective is only a limit, below or above which the
            measurement lies.
        cost: What the evaluation was told to have cost, `None` where nobody has said.
        trials: Wells that the value is the share of hits of, where results are yes or no; else 1.
    """

    string: str
    key: str
    status: Status
    values: tuple[float, ...] = ()
    noise_variance: tuple[float, ...] | None = None
    details: dict[str, Any] = field(default_factory=dict)
    context: Context = ()
    censored: Censoring | None = None
    cost: float | None = None
    trials: int = 1

    @cached_property
    def query(self) -> Query:
        """What was, or is to be, measured."""
        return Query(self.key, self.context)

    @property
    def value(self) -> float:
        """The value of the objective, NaN unless measured; a limit of it where it is `censored`."""
        return self.values[0] if self.values else float("nan")

    @property
    def told(self) -> str:
        """The value as text, with the sign of a limit.

        Example:
            >>> Observation("CCO", "CCO", "ok", (0.1,), censored="<").told
            '<0.1'
        """
        return f"{self.censored or ''}{self.value:.10g}"


class Observations:
    """All rows in the order in which they were suggested or told.

    A query appears once as pending at most; replicate measurements are rows of their own.
    """

    def __init__(self) -> None:
        self.rows: list[Observation] = []
        self._pending: dict[Query, Observation] = {}
        self._seen: set[str] = set()

    def add(self, row: Observation) -> None:
        """Append a row."""
        self.rows.append(row)
        self._seen.add(row.key)
        if row.status == "pending":
            self._pending[row.query] = row

    def resolve(self, query: Query) -> Observation | None:
        """Take the pending row of ``query`` out of the pending ones, or return `None`."""
        return self._pending.pop(query, None)

    def turn_to(self, row: Observation) -> None:
        """Let a row that is pending be the one of its query that is resolved next."""
        if row.status == "pending":
            self._pending[row.query] = row

    def truncate(self, count: int) -> None:
        """Drop all rows but the first ``count``, none of which was pending when the others were added."""
        for row in self.rows[count:]:
            self._pending.pop(row.query, None)
        del self.rows[count:]
        self._seen = {row.key for row in self.rows}

    @contextmanager
    def kept_pending(self, queries: Iterable[Query]) -> Iterator[None]:
        """Inside the block, results of these queries are rows of their own, and what is pending stays so."""
        held = {query: row for query in queries if (row := self._pending.pop(query, None)) is not None}
        try:
            yield
        finally:
            self._pending |= held

    @property
    def seen(self) -> set[str]:
        """Keys of all rows, whatever their status."""
        return self._seen

    @property
    def pending(self) -> list[Observation]:
        """Rows that await a result, oldest first."""
        return list(self._pending.values())

    def with_status(self, status: Status) -> list[Observation]:
        """Rows of one status."""
        return [row for row in self.rows if row.status == status]

    def values(self) -> npt.NDArray[np.float64]:
        """Values of the measured rows, n x m."""
        measured = [row.values for row in self.with_status("ok")]
        return np.asarray(measured, dtype=np.float64).reshape(len(measured), -1)

    def to_frame(self, outcomes: Sequence[str] = ()) -> pd.DataFrame:
        """One row per observation, with the columns of ``evaluations.csv``; see `observation_table`."""
        return observation_table(self.rows, outcomes)

    def __len__(self) -> int:
        return len(self.rows)


def observation_table(rows: Sequence[Observation], outcomes: Sequence[str] = ()) -> pd.DataFrame:
    """One row per observation, numbered from 1, with the columns of ``evaluations.csv``.

    Where there are several ways to measure, or several outcomes, each has a column of its own at the end; likewise the
    signs of limits, ``<`` and ``>``, where values are censored, and costs where some were told.

    Args:
        rows: The observations.
        outcomes: Names of the outcomes, the objective first, if there are several.
    """
    import pandas as pd

    contexts = sorted({name for row in rows for name, _ in row.context})
    further = list(enumerate(outcomes))[1:]
    # A column that is named like another one is told apart from it.
    # What their owner calls them, where that is known.
    owned = ["identifier"] if any("identifier" in row.details for row in rows) else []
    limits = [CENSORED] if any(row.censored for row in rows) else []
    paid = [COST] if any(row.cost is not None for row in rows) else []
    named = {name: name if name not in (*COLUMNS, CENSORED, COST, *owned) else f"{name} (context)" for name in contexts}
    taken = {*COLUMNS, CENSORED, COST, *owned, *named.values()}
    measured = {name: name if name not in taken else f"{name} (outcome)" for _, name in further}
    records = [
        {
            "number": number,
            "string": row.string,
            "key": row.key,
            "status": row.status,
            "value": row.value,
            "batch": row.details.get("batch"),
            "predicted": row.details.get("predicted"),
            "predicted_low": row.details.get("predicted_low"),
            "predicted_high": row.details.get("predicted_high"),
            "predicted_mean": row.details.get("predicted_mean"),
            "predicted_std": row.details.get("predicted_std"),
            "acquisition": row.details.get("acquisition"),
            "seconds": row.details.get("seconds"),
            "error": row.details.get("error") or "",
            **dict.fromkeys(limits, row.censored or ""),
            **dict.fromkeys(paid, row.cost),
            **{name: row.details.get(name) for name in owned},
            **{named[name]: value for name, value in row.context},
            **{measured[name]: row.values[index] if index < len(row.values) else math.nan for index, name in further},
        }
        for number, row in enumerate(rows, start=1)
    ]
    columns = [COLUMNS[0], *owned, *COLUMNS[1:], *limits, *paid, *named.values(), *measured.values()]
    return pd.DataFrame.from_records(records, columns=columns)


COLUMNS = (
    "number",
    "string",
    "key",
    "status",
    "value",
    "batch",
    "predicted",
    "predicted_low",
    "predicted_high",
    "predicted_mean",
    "predicted_std",
    "acquisition",
    "seconds",
    "error",
)
"""Columns of the table of observations and of ``evaluations.csv``."""

CENSORED = "censored"
"""A further column where values are censored: ``<`` or ``>`` beside a limit."""

COST = "cost"
"""A further column where costs were told."""
