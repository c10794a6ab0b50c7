"""The table of a page: every string that was evaluated or suggested, to be sorted and filtered."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pandas as pd

from seqopt.report.formats import shortened
from seqopt.report.results import only_worse
from seqopt.report.view import LONGEST_LISTED, View, rows_of

MOST_ROWS = 2_000
"""Rows of a page; the folder of a run has all of them in ``evaluations.csv``."""

STATES = {"ok": "measured", "pending": "awaited", "failed": "failed", "withdrawn": "withdrawn"}


@dataclass(frozen=True)
class Column:
    """A column.

    Attributes:
        title: Its heading.
        numeric: Whether it is sorted by number.
        first: In which direction it is sorted first, by a script.
        sorted: The direction in which the rows are sorted by it, or empty.
    """

    title: str
    numeric: bool = True
    first: str = ""
    sorted: str = ""


@dataclass(frozen=True)
class Row:
    """A row.

    Attributes:
        number: Of the evaluation.
        status: One of `STATES`' values.
        cells: Texts, each with the number that it is sorted by (empty for none).
        string: The string, shortened.
        error: Why there is no value.
    """

    number: int
    status: str
    cells: list[tuple[str, str]]
    string: str
    error: str


@dataclass(frozen=True)
class StringTable:
    """A table.

    Attributes:
        columns: All columns but the last, which holds the strings.
        rows: The rows.
        left_out: Number of rows that are not shown.
        states: States that occur.
    """

    columns: list[Column]
    rows: list[Row]
    left_out: int
    states: list[str]


def listed_rows(table: pd.DataFrame, direction: str) -> pd.DataFrame:
    """The rows that a page lists: what is awaited, then the best, then what failed."""
    order = table.assign(
        place=table["status"].map({"pending": 0, "failed": 2, "withdrawn": 3}).fillna(1),
        rank=table["value"].where(table["measured"] & ~only_worse(table, direction))
        * (1.0 if direction == "minimize" else -1.0),
    )
    return order.sort_values(["place", "rank", "number"], kind="stable").head(MOST_ROWS)


def string_table(view: View) -> StringTable:
    """The table of a search."""
    table = view.run.evaluations
    rows = listed_rows(table, view.run.direction)
    deviations = view.deviations()
    low_first = "ascending" if view.run.direction == "minimize" else "descending"
    makers: list[tuple[Column, Any]] = [(Column("No.", first="ascending"), lambda row: _whole(row["number"]))]
    if (rows["name"] != "").any():
        makers.append((Column("Name", numeric=False), lambda row: (row["name"], "")))
    makers.append((Column("Measured", first=low_first, sorted=low_first), lambda row: _value(view, row)))
    if (rows["measurements"] > 1).any():
        makers.append((Column("Times"), lambda row: _whole(row["measurements"])))
    if rows["predicted_mean"].notna().any():
        makers.append((Column("Predicted", first=low_first), lambda row: _predicted(view, row)))
    if deviations:
        makers.append((Column("Off by (sd)"), lambda row: _deviation(deviations, row)))
    makers.append((Column("Batch", first="ascending"), lambda row: _whole(row["batch"])))
    if view.reasons:
        makers.append((Column("Chosen to", numeric=False), lambda row: (view.reasons.get(_number(row), ("",))[0], "")))
        makers.append((Column("Similarity"), lambda row: _similarity(view, row)))
        makers.append((Column("Nearest before", numeric=False), lambda row: (_nearest(view, row), "")))
    found = [
        Row(
            _number(row),
            STATES.get(row["status"], "measured") if row["status"] != "ok" or row["measured"] else "failed",
            [make(row) for _, make in makers],
            shortened(row["string"], LONGEST_LISTED),
            shortened(row["error"], 160),
        )
        for row in rows_of(rows)
    ]
    states = [state for state in STATES.values() if any(row.status == state for row in found)]
    return StringTable([column for column, _ in makers], found, len(table) - len(rows), states)


def _number(row: dict[str, Any]) -> int:
    return int(row["number"])


def _whole(number: float) -> tuple[str, str]:
    return ("", "") if math.isnan(number) else (f"{int(number)}", f"{int(number)}")


def _value(view: View, row: dict[str, Any]) -> tuple[str, str]:
    if not row["measured"]:
        return STATES.get(row["status"], "failed") if row["status"] != "ok" else "failed", ""
    error = row["standard_error"]
    text = row["censored"] + view.show(row["value"]) + ("" if math.isnan(error) else f" ± {view.show(error)}")
    return text, repr(float(row["value"]))


def _predicted(view: View, row: dict[str, Any]) -> tuple[str, str]:
    mean = float(row["predicted_mean"])
    return view.prediction(row), "" if math.isnan(mean) else repr(mean)


def _deviation(deviations: dict[int, float], row: dict[str, Any]) -> tuple[str, str]:
    found = deviations.get(_number(row))
    return ("", "") if found is None else (f"{found:+.1f}", repr(found))


def _similarity(view: View, row: dict[str, Any]) -> tuple[str, str]:
    found = view.reasons.get(_number(row))
    return ("", "") if found is None or math.isnan(found[2]) else (f"{found[2]:.2f}", repr(float(found[2])))


def _nearest(view: View, row: dict[str, Any]) -> str:
    found = view.reasons.get(_number(row))
    if found is None or not found[1]:
        return ""
    number = view.number_of.get(found[1])
    return shortened(found[1], 40) if number is None else f"no. {number}"
