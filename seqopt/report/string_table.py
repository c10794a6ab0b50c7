"""The table of a page: every string that was evaluated or suggested, to be sorted and filtered."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pandas as pd

from seqopt.campaign.leads import FROM_LEAD
from seqopt.datasets.sheets import NUMBER
from seqopt.report.chemistry import Substructures, scaffold, substructures
from seqopt.report.formats import shortened
from seqopt.report.results import only_worse, terms_of
from seqopt.report.structures import molecule_structure
from seqopt.report.view import LONGEST_LISTED, Evidence, View, rows_of

MOST_ROWS = 2_000
"""Rows of a page; the folder of a run has all of them in ``evaluations.csv``."""

STATES = {
    "ok": "measured",
    "pending": "awaited",
    "failed": "failed",
    "discarded": "discarded",
    "withdrawn": "withdrawn",
    "lost": "lost",
}


@dataclass(frozen=True)
class Column:
    """A column.

    Attributes:
        title: Its heading.
        numeric: Whether it is sorted by number.
        first: In which direction it is sorted first, by a script.
        sorted: The direction in which the rows are sorted by it, or empty.
        role: What a script knows it by: ``"value"`` for what was measured.
    """

    title: str
    numeric: bool = True
    first: str = ""
    sorted: str = ""
    role: str = ""


@dataclass(frozen=True)
class Row:
    """A row.

    Attributes:
        number: Of the evaluation.
        status: One of `STATES`' values.
        cells: Texts, each with the number that it is sorted by (empty for none).
        string: The string, shortened.
        error: Why there is no value.
        whole: The string, where it had to be shortened; else empty.
        note: What was corrected or discarded.
        mask: Its substructures, see `seqopt.report.chemistry.Substructures`; empty without.
        scaffold: Index of its scaffold, -1 without.
        structure: Its drawing, see `seqopt.report.structures`, where the page does not hold it in its map.
    """

    number: int
    status: str
    cells: list[tuple[str, str]]
    string: str
    error: str
    whole: str = ""
    note: str = ""
    mask: str = ""
    scaffold: int = -1
    structure: str = ""


@dataclass(frozen=True)
class StringTable:
    """A table.

    Attributes:
        columns: All columns but the last, which holds the strings.
        rows: The rows.
        left_out: Number of rows that are not shown.
        states: States that occur.
        substructures: What rows can be filtered by: name and number of rows.
        asked: How many of those the user asked for; they come first.
        scaffolds: Scaffolds of the rows, and the drawing of each.
        drawn: Whether rows have drawings.
        masks: Substructures of further strings, as those of rows.
    """

    columns: list[Column]
    rows: list[Row]
    left_out: int
    states: list[str]
    substructures: list[tuple[str, int]] = field(default_factory=list)
    asked: int = 0
    scaffolds: list[tuple[str, str]] = field(default_factory=list)
    drawn: bool = False
    masks: tuple[str, ...] = ()


def listed_rows(table: pd.DataFrame, direction: str) -> pd.DataFrame:
    """The rows that a page lists: what is awaited, then the best, then what failed."""
    order = table.assign(
        place=table["status"].map({"pending": 0, "failed": 2, "discarded": 3, "withdrawn": 4}).fillna(1),
        rank=table["value"].where(table["measured"] & ~only_worse(table, direction))
        * (1.0 if direction == "minimize" else -1.0),
    )
    return order.sort_values(["place", "rank", "number"], kind="stable").head(MOST_ROWS)


def string_table(view: View, mapped: Container[int] = (), further: Sequence[str] = ()) -> StringTable:
    """The table of a search.

    Args:
        view: The search.
        mapped: Numbers of evaluations whose structures the page holds anyway.
        further: Strings of the page's map that have no row; they are searched for the same substructures.
    """
    table = view.run.evaluations
    rows = listed_rows(table, view.run.direction)
    listed = rows_of(rows)
    evidence = {_number(row): view.evidence(row) for row in listed}
    deviations = view.deviations()
    low_first = "ascending" if view.run.direction == "minimize" else "descending"
    makers: list[tuple[Column, Any]] = [(Column("No.", first="ascending"), lambda row: _whole(row["number"]))]
    if (rows["name"] != "").any():
        makers.append((Column("Name", numeric=False), lambda row: (row["name"], "")))
    if (rows["identifier"] != "").any():
        called = view.library.id_column or "Identifier"
        makers.append((Column(called, numeric=False), lambda row: (shortened(row["identifier"], LONGEST_LISTED), "")))
    if view.parent:
        makers.append((Column("Mutations", numeric=False), lambda row: (shortened(view.mutations(row), 80), "")))
    measured = Column("Measured", first=low_first, sorted=low_first, role="value")
    makers.append((measured, lambda row: _value(view, row)))
    for term in terms_of(view.run.settings):
        if term.column in rows:
            heading = f"{term.column} ({term.unit})" if term.unit else term.column
            makers.append((Column(f"{term.weight:+g} x {heading}"), partial(_term, term.column)))
    if (rows["measurements"] > 1).any():
        makers.append((Column("Times"), lambda row: _whole(row["measurements"])))
    if rows["predicted_mean"].notna().any():
        makers.append((Column("Predicted", first=low_first), lambda row: _predicted(view, row)))
    if any(view.interval(row) for row in listed):
        makers.append((Column("90% interval", numeric=False), lambda row: (view.interval(row), "")))
    if deviations:
        makers.append((Column("Off by (sd)"), lambda row: _deviation(deviations, row)))
    if rows[FROM_LEAD].notna().any():
        makers.append((Column("From the lead", first="ascending"), lambda row: _distance(row[FROM_LEAD])))
    makers.append((Column("Batch", first="ascending"), lambda row: _whole(row["batch"])))
    if any(one.kind for one in evidence.values()):
        makers.append((Column("Chosen to", numeric=False), lambda row: (evidence[_number(row)].kind, "")))
    if any(one.nearest for one in evidence.values()):
        makers.append((Column("Similarity"), lambda row: _decimals(evidence[_number(row)].similarity)))
        makers.append(
            (Column("Nearest before", numeric=False), lambda row: (_nearest(view, evidence[_number(row)]), ""))
        )
    for name in view.columns:
        makers.append(_library_column(view, name, listed))
    molecules = view.kind == "molecule"
    strings = [row["string"] for row in listed]
    searched = substructures([*strings, *further], view.highlights) if molecules else Substructures()
    frames = [scaffold(string) for string in strings] if molecules else []
    # The most frequent first; molecules without rings have none.
    scaffolds = [frame for frame, _ in Counter(frame for frame in frames if frame).most_common()]
    places = {frame: place for place, frame in enumerate(scaffolds)}
    found = [
        Row(
            _number(row),
            STATES.get(row["status"], "measured") if row["status"] != "ok" or row["measured"] else "failed",
            [make(row) for _, make in makers],
            shortened(row["string"], LONGEST_LISTED),
            shortened(row["error"], 160),
            row["string"] if len(row["string"]) > LONGEST_LISTED else "",
            shortened(row["note"], 200),
            searched.masks[place] if molecules else "",
            places.get(frames[place], -1) if molecules else -1,
            molecule_structure(row["string"]) if molecules and _number(row) not in mapped else "",
        )
        for place, row in enumerate(listed)
    ]
    states = [state for state in STATES.values() if any(row.status == state for row in found)]
    return StringTable(
        [column for column, _ in makers],
        found,
        len(table) - len(rows),
        states,
        list(zip(searched.names, searched.counts_of(len(found)), strict=True)),
        searched.asked,
        [(frame, molecule_structure(frame)) for frame in scaffolds],
        molecules and bool(found),
        searched.masks[len(found) :],
    )


def _library_column(view: View, name: str, rows: list[dict[str, Any]]) -> tuple[Column, Any]:
    """A column of the library; one of numbers is sorted by them."""
    cells = {_number(row): view.cells(row).get(name, "").strip() for row in rows}
    numeric = all(NUMBER.fullmatch(cell) for cell in cells.values() if cell)

    def make(row: dict[str, Any]) -> tuple[str, str]:
        cell = cells[_number(row)]
        return shortened(cell, LONGEST_LISTED), cell if numeric else ""

    return Column(name, numeric=numeric, first="ascending" if name == view.library.price_column else ""), make


def _number(row: dict[str, Any]) -> int:
    return int(row["number"])


def _whole(number: float) -> tuple[str, str]:
    return ("", "") if math.isnan(number) else (f"{int(number)}", f"{int(number)}")


def _distance(number: float) -> tuple[str, str]:
    return ("", "") if math.isnan(number) else (f"{number:.3g}", repr(float(number)))


def _value(view: View, row: dict[str, Any]) -> tuple[str, str]:
    if row["status"] == "discarded" and not math.isnan(row["value"]):
        return f"{view.value(row)} discarded", ""
    if not row["measured"]:
        return STATES.get(row["status"], "failed") if row["status"] != "ok" else "failed", ""
    return view.value(row), repr(float(row["value"]))


def _term(column: str, row: dict[str, Any]) -> tuple[str, str]:
    number = row[column]
    return ("", "") if math.isnan(number) else (f"{number:,.5g}", repr(float(number)))


def _predicted(view: View, row: dict[str, Any]) -> tuple[str, str]:
    middle = view.middle(row)
    return view.predicted(row), "" if math.isnan(middle) else repr(middle)


def _deviation(deviations: dict[int, float], row: dict[str, Any]) -> tuple[str, str]:
    found = deviations.get(_number(row))
    return ("", "") if found is None else (f"{found:+.1f}", repr(found))


def _decimals(number: float) -> tuple[str, str]:
    return ("", "") if math.isnan(number) else (f"{number:.2f}", repr(number))


def _nearest(view: View, evidence: Evidence) -> str:
    if not evidence.nearest:
        return ""
    number = view.number_of.get(evidence.nearest)
    value = view.nearest_value(evidence)
    name = shortened(evidence.nearest, 40) if number is None else f"no. {number}"
    return f"{name}: {value}" if value else name
