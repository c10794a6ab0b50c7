"""The one table of what has been evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

Status = Literal["ok", "failed", "pending"]


@dataclass
class Observation:
    """One row: a string and what is known of it.

    Attributes:
        string: As it was suggested or told.
        key: Its identity.
        status: ``"pending"`` (suggested, no result yet), ``"ok"`` or ``"failed"``.
        values: Measured values, one per objective (one today), in the user's units; empty unless ``"ok"``.
        noise_variance: Variance of the measurement noise of each value, where known.
        context: Whatever else belongs to the row: batch number, predictions when it was chosen, error, seconds.
    """

    string: str
    key: str
    status: Status
    values: tuple[float, ...] = ()
    noise_variance: tuple[float, ...] | None = None
    context: dict[str, Any] = field(default_factory=dict)

    @property
    def value(self) -> float:
        """The single objective's value, NaN unless measured."""
        return self.values[0] if self.values else float("nan")


class Observations:
    """All rows in the order in which they were suggested or told.

    A key appears once as pending at most; replicate measurements are rows of their own.
    """

    def __init__(self) -> None:
        self.rows: list[Observation] = []
        self._pending: dict[str, Observation] = {}
        self._seen: set[str] = set()

    def add(self, row: Observation) -> None:
        """Append a row."""
        self.rows.append(row)
        self._seen.add(row.key)
        if row.status == "pending":
            self._pending[row.key] = row

    def resolve(self, key: str) -> Observation | None:
        """Take the pending row of ``key`` out of the pending ones, or return `None`."""
        return self._pending.pop(key, None)

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

    def to_frame(self) -> pd.DataFrame:
        """One row per observation, with the columns of ``evaluations.csv``."""
        return observation_table(self.rows)

    def __len__(self) -> int:
        return len(self.rows)


def observation_table(rows: Sequence[Observation]) -> pd.DataFrame:
    """One row per observation, numbered from 1, with the columns of ``evaluations.csv``."""
    records = [
        {
            "number": number,
            "string": row.string,
            "key": row.key,
            "status": row.status,
            "value": row.value,
            "batch": row.context.get("batch"),
            "predicted_mean": row.context.get("predicted_mean"),
            "predicted_std": row.context.get("predicted_std"),
            "acquisition": row.context.get("acquisition"),
            "seconds": row.context.get("seconds"),
            "error": row.context.get("error") or "",
        }
        for number, row in enumerate(rows, start=1)
    ]
    return pd.DataFrame.from_records(records, columns=list(COLUMNS))


COLUMNS = (
    "number",
    "string",
    "key",
    "status",
    "value",
    "batch",
    "predicted_mean",
    "predicted_std",
    "acquisition",
    "seconds",
    "error",
)
"""Columns of the table of observations and of ``evaluations.csv``."""
