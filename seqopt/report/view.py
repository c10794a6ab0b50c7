"""What all parts of a report's page share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pandas as pd

from seqopt.report.curves import Curves
from seqopt.report.drawing import Reference, choose_reference
from seqopt.report.formats import NumberFormat, number_format
from seqopt.report.plot import is_positive
from seqopt.report.results import Run, as_number, predicted_text, predictions, ranked
from seqopt.strings.identity import recognize_kind

if TYPE_CHECKING:
    from seqopt.report.analysis import Analysis

KIND_NAMES = {
    "molecule": ("molecule", "molecules"),
    "protein": ("protein", "proteins"),
    "dna": ("DNA sequence", "DNA sequences"),
    "rna": ("RNA sequence", "RNA sequences"),
}


LONGEST_LISTED = 200
"""Symbols of a string that a row of a table shows."""

INITIAL, IMPORTED = "initial design", "random or imported"
"""What batch 0 is called, in a run and in a campaign."""


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

    def prediction(self, row: Mapping[str, Any]) -> str:
        """What was predicted in a row of evaluations, in words; empty where nothing was."""
        return predicted_text(row, self.show, log10=self.log10)

    def deviations(self) -> dict[int, float]:
        """By number of the evaluation, how many predicted standard deviations its value lies from its prediction."""
        predicted = predictions(self.run.evaluations, log10=self.log10)
        off = ((predicted["value"] - predicted["mean"]) / predicted["std"])[predicted["std"] > 0]
        return {
            int(number): float(value) + 0.0
            for number, value in zip(predicted.loc[off.index, "number"], off, strict=True)
        }


def view_of(run: Run, label: str) -> View:
    """How a search is shown, before any model is asked."""
    table = run.evaluations
    kind = run.settings.get("kind")
    if kind not in (*KIND_NAMES, "text"):
        kind = recognize_kind(list(table["string"])) if len(table) else "text"
    log10 = run.settings.get("transform") == "log10" and is_positive(table)
    # Formulas and other text of various lengths have no positions to compare, and no groups of ten.
    aligned = kind != "text" or table["string"].str.len().nunique() <= 1
    return View(
        run,
        str(kind),
        names_of(run, str(kind)),
        label,
        log10,
        number_format(table.loc[table["measured"], "value"], log10=log10),
        _reference(table, run.direction) if kind != "molecule" and aligned else None,
        aligned,
        reasons=_recorded_reasons(table),
        number_of={str(row["string"]): int(row["number"]) for row in rows_of(table[::-1])},
    )


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
