"""What all parts of a report's page share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pandas as pd

from seqopt.campaign.parents import parent_in
from seqopt.campaign.wording import percent
from seqopt.data import central, interval
from seqopt.report.curves import Curves
from seqopt.report.drawing import Reference, choose_reference
from seqopt.report.formats import NumberFormat, number_format
from seqopt.report.hits import value_words
from seqopt.report.library import Library, read_library, shown_columns
from seqopt.report.plot import is_positive
from seqopt.report.results import (
    NUMBER_COLUMNS,
    TEXT_COLUMNS,
    Run,
    as_number,
    predicted_text,
    predictions,
    ranked,
)
from seqopt.strings.identity import recognize_kind
from seqopt.strings.mutations import mutation_name

if TYPE_CHECKING:
    from seqopt.report.analysis import Analysis
    from seqopt.report.unmeasured import Unmeasured

KIND_NAMES = {
    "molecule": ("molecule", "molecules"),
    "protein": ("protein", "proteins"),
    "dna": ("DNA sequence", "DNA sequences"),
    "rna": ("RNA sequence", "RNA sequences"),
}


LONGEST_LISTED = 200
"""Symbols of a string that a row of a table shows."""

MOST_OF_BATCH = 24
"""Strings of the current batch that are drawn and explained; the others are in the table."""

INITIAL, IMPORTED = "initial design", "chosen without a model"
"""What batch 0 is called, in a run and in a campaign."""


@dataclass(frozen=True)
class Evidence:
    """What was known of a string when it was chosen.

    Attributes:
        nearest: The measured string that it was most like; empty where that is not known.
        similarity: To that one; NaN where it is not known.
        kind: ``"exploit"``, ``"explore"``, another word, or empty.
        value: What had been measured of the nearest; NaN where that is not known.
        censored: ``"<"`` or ``">"`` where that is a limit.
        difference: How the two differ, in words.
        rank: Its rank by prediction, from 1; 0 where it is not known.
        of: Among how many candidates.
        probability: That it is better than the best measured; NaN where it is not known.
        among: ``"measured"`` where its rank is one beside measured strings.
    """

    nearest: str = ""
    similarity: float = math.nan
    kind: str = ""
    value: float = math.nan
    censored: str = ""
    difference: str = ""
    rank: int = 0
    of: int = 0
    probability: float = math.nan
    among: str = ""

    @classmethod
    def read(cls, reason: Mapping[str, Any]) -> Evidence:
        """A reason as a campaign keeps it; what is missing there, or no number where one should be, stays unknown.

        Example:
            >>> Evidence.read({"kind": "exploit", "nearest": "CCO", "rank": 3, "of": 950, "improvement": 0.12}).words()
            ['rank 3 of 950 by prediction', '12 % to beat the best']
        """

        def number(name: str) -> float:
            found = as_number(reason.get(name))
            return math.nan if found is None else found

        difference = reason.get("difference")
        return cls(
            str(reason.get("nearest") or ""),
            number("similarity"),
            str(reason.get("kind") or ""),
            number("value" if "value" in reason else "nearest_value"),
            limit if (limit := reason.get("censored")) in ("<", ">") else "",
            ", ".join(map(str, difference)) if isinstance(difference, list | tuple) else str(difference or ""),
            checked_integer(reason.get("rank")),
            checked_integer(reason.get("of")),
            number("improvement" if "improvement" in reason else "probability"),
            "measured" if reason.get("among") == "measured" else "",
        )

    def words(self) -> list[str]:
        """Rank and probability, in words."""
        found = []
        if self.rank:
            beside = "beside" if self.among else "of"
            among = f" {beside} {self.of:,}{' measured' if self.among else ''}" if self.of else ""
            found.append(f"rank {self.rank:,}{among} by prediction")
        if not math.isnan(self.probability):
            found.append(f"{percent(self.probability)} to beat the best")
        return found


@dataclass(frozen=True)
class View:
    """A search, with what is needed to show it.

    Attributes:
        run: The search.
        kind: What its strings are, see `seqopt.strings.identity.KINDS`.
        names: What one of them is called, and several.
        label: Name and unit of the values.
        log10: Whether values are compared on a logarithmic scale.
        show: Format of values.
        reference: What sequences are compared with.
        aligned: Whether strings have positions to compare.
        reasons: By number of the evaluation: why it was chosen, the nearest measured string, the similarity.
        analysis: What the model of the page says; `None` without one.
        curves: The points that formulas are fitted to; `None` without.
        listed: Numbers of the evaluations that have a row in the page's table.
        number_of: Number of an evaluation of each string.
        library: What the file of candidates says of them.
        columns: Columns of the library that are shown, besides identifiers.
        highlights: Substructures that are marked in drawings, as SMARTS.
        parent: The string by which variants are named; empty where none is known.
    """

    run: Run
    kind: str
    names: tuple[str, str]
    label: str
    log10: bool
    show: NumberFormat
    reference: Reference | None
    aligned: bool
    reasons: Mapping[int, tuple[str, str, float]] = field(default_factory=dict)
    analysis: Analysis | None = None
    curves: Curves | None = None
    listed: frozenset[int] = frozenset()
    number_of: Mapping[str, int] = field(default_factory=dict)
    library: Library = field(default_factory=Library)
    columns: tuple[str, ...] = ()
    highlights: tuple[str, ...] = ()
    parent: str = ""

    @property
    def is_gene(self) -> bool:
        """Whether strings code for a protein, codon by codon."""
        return space_facts(self.run).get("type") == "CodonSpace"

    @property
    def is_folded(self) -> bool:
        """Whether strings are shown as folded RNA."""
        return self.is_gene or self.kind == "rna"

    def origin(self, batch: float) -> str:
        """What a batch is called."""
        if batch:
            return f"batch {int(batch)}"
        return IMPORTED if self.run.campaign else INITIAL

    def cells(self, row: Mapping[str, Any]) -> Mapping[str, str]:
        """What the library says of the string of a row: when it was suggested, or else now."""
        return self.run.cells.get(str(row["key"])) or self.library.cells(str(row["string"]))

    def mutations(self, row: Mapping[str, Any]) -> str:
        """What the string of a row changes of the parent, such as ``S121E``; empty where no parent is known."""
        return mutation_name(self.parent, str(row["key"])) if self.parent else ""

    def value(self, row: Mapping[str, Any]) -> str:
        """What was measured in a row of evaluations, in words: ``6.50``, ``<0.10``, ``5.50 ± 0.20``."""
        if self.run.yes_no:
            return value_words(float(row["value"]))
        error = row["standard_error"]
        return f"{row['censored']}{self.show(row['value'])}" + ("" if math.isnan(error) else f" ± {self.show(error)}")

    def predicted(self, row: Mapping[str, Any]) -> str:
        """The central prediction in a row of evaluations, in words; empty where there is none."""
        middle = self.middle(row)
        return "" if math.isnan(middle) else self.show(middle)

    def middle(self, row: Mapping[str, Any]) -> float:
        """The central prediction in a row of evaluations: the median; NaN where there is none."""
        if not math.isnan(row["predicted"]):
            return float(row["predicted"])
        found = central(*_moments(row), self._transform)
        return math.nan if found is None else found

    def interval(self, row: Mapping[str, Any]) -> str:
        """The central 90 % of the prediction in a row of evaluations, in words; empty where there is none."""
        low, high = row["predicted_low"], row["predicted_high"]
        if math.isnan(low) or math.isnan(high):
            low, high = (math.nan if end is None else end for end in interval(*_moments(row), self._transform))
        return "" if math.isnan(low) or math.isnan(high) else f"{self.show(low)} to {self.show(high)}"

    @property
    def _transform(self) -> str | None:
        return "log10" if self.log10 else "yes/no" if self.run.yes_no else None

    def prediction(self, row: Mapping[str, Any]) -> str:
        """What was predicted in a row of evaluations, in words; empty where nothing was."""
        return predicted_text(row, self.show, log10=self.log10)

    def evidence(self, row: Mapping[str, Any]) -> Evidence:
        """What was known of the string of a row when it was chosen."""
        kept = self.run.reasons.get(str(row["key"]))
        if kept:
            return Evidence.read(kept)
        kind, nearest, similarity = self.reasons.get(int(row["number"]), ("", "", math.nan))
        return Evidence(nearest, similarity, kind)

    def nearest_value(self, evidence: Evidence) -> str:
        """What was measured of the nearest, or else what the table has of it, in words; empty if nothing is known."""
        if math.isnan(evidence.value) or self.run.yes_no:
            return self.values.get(evidence.nearest, "")
        return f"{evidence.censored}{self.show(evidence.value)}"

    def unmeasured_row(self, one: Unmeasured) -> dict[str, Any]:
        """A candidate that was not measured, as a row of evaluations."""
        row: dict[str, Any] = dict.fromkeys(NUMBER_COLUMNS, math.nan) | dict.fromkeys(TEXT_COLUMNS, "")
        moments = {"predicted_mean": one.mean, "predicted_std": one.std}
        what = {"string": one.string, "key": one.key, "identifier": self.library.identifier(one.string)}
        return row | what | moments | {"number": 0, "batch": 0, "measured": False}

    @cached_property
    def values(self) -> dict[str, str]:
        """By string, what was measured of it, in words."""
        table = self.run.evaluations
        return {str(row["string"]): self.value(row) for row in rows_of(table[table["measured"]])}

    def deviations(self) -> dict[int, float]:
        """By number of the evaluation, how many predicted standard deviations its value lies from its prediction."""
        if self.run.yes_no:
            return {}
        predicted = predictions(self.run.evaluations, log10=self.log10)
        off = ((predicted["value"] - predicted["mean"]) / predicted["std"])[predicted["std"] > 0]
        return {
            int(number): float(value) + 0.0
            for number, value in zip(predicted.loc[off.index, "number"], off, strict=True)
        }


def _moments(row: Mapping[str, Any]) -> tuple[float | None, float | None]:
    mean, std = (None if math.isnan(row[name]) else float(row[name]) for name in ("predicted_mean", "predicted_std"))
    return mean, std


def view_of(run: Run, label: str, highlights: tuple[str, ...] = ()) -> View:
    """How a search is shown, before any model is asked."""
    library = read_library(run)
    run = replace(run, evaluations=_identified(run.evaluations, library))
    table = run.evaluations
    kind = run.settings.get("kind")
    if kind not in (*KIND_NAMES, "text"):
        kind = recognize_kind(list(table["string"])) if len(table) else "text"
    log10 = run.settings.get("transform") == "log10" and is_positive(table)
    # Formulas and other text of various lengths have no positions to compare, and no groups of ten.
    aligned = kind != "text" or table["string"].str.len().nunique() <= 1
    parent = "" if kind == "molecule" else parent_in(run.settings, space_facts(run)) or ""
    return View(
        run,
        str(kind),
        names_of(run, str(kind)),
        label,
        log10,
        percent if run.yes_no else number_format(table.loc[table["measured"], "value"], log10=log10),
        Reference(parent, "the parent")
        if parent
        else _reference(table, run.direction)
        if kind != "molecule" and aligned
        else None,
        aligned,
        reasons=_recorded_reasons(table),
        number_of={str(row["string"]): int(row["number"]) for row in rows_of(table[::-1])},
        library=library,
        columns=tuple(_columns(run, library)),
        highlights=highlights if kind == "molecule" else (),
        parent=parent,
    )


def _identified(table: pd.DataFrame, library: Library) -> pd.DataFrame:
    """The table with the identifiers of the library where it has none of its own."""
    if not library.id_column:
        return table
    known = zip(table["identifier"], table["string"], strict=True)
    return table.assign(
        identifier=pd.Series([own or library.identifier(string) for own, string in known], dtype=object)
    )


def _columns(run: Run, library: Library) -> list[str]:
    """Columns of the library that are shown; not that of the values of a replay."""
    table = run.evaluations
    cells = [
        run.cells.get(key) or library.cells(string) for key, string in zip(table["key"], table["string"], strict=True)
    ]
    return shown_columns(library, cells, but=[str(run.settings.get("objective") or "").removeprefix("column:")])


def rows_of(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a table as mappings."""
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


def _recorded_reasons(table: pd.DataFrame) -> dict[int, tuple[str, str, float]]:
    known = table[table["why"] != ""]
    return {int(row["number"]): (row["why"], row["nearest"], row["similarity"]) for row in rows_of(known)}


def space_facts(run: Run) -> Mapping[str, Any]:
    """What the settings say of the space; empty for a pool."""
    space = run.settings.get("space")
    return space if isinstance(space, dict) else {}


def names_of(run: Run, kind: str) -> tuple[str, str]:
    """What one of the strings is called, and several of them."""
    if space_facts(run).get("type") == "CodonSpace":
        return "gene", "genes"
    if run.settings.get("objective") == "expression_error":
        return "formula", "formulas"
    return KIND_NAMES.get(kind, ("string", "strings"))


def checked_integer(value: object) -> int:
    """A number of things, 0 where it is none."""
    number = as_number(value)
    return 0 if number is None else int(number)


def _reference(table: pd.DataFrame, direction: str) -> Reference | None:
    initial = ranked(table[table["batch"] == 0], direction)
    return choose_reference(list(table["key"]), initial["key"].iloc[0] if len(initial) else None)
