"""The drawn strings of a page: the best ones, and the batch that is under way."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from seqopt.errors import ModelError
from seqopt.report.drawing import MarkedSequence, codons_of, draw_fold, draw_molecule, mark_sequence
from seqopt.report.formats import shortened
from seqopt.report.rests import Rests, Scale, scale_of
from seqopt.report.results import ranked
from seqopt.report.view import LONGEST_LISTED, MOST_OF_BATCH, Evidence, View, rows_of, space_facts

logger = logging.getLogger(__name__)

SMALL = (180, 150)
"""Width and height of a drawing beside another."""

FOLDED = 12
"""Cards of a list whose genes are folded, which takes time."""


@dataclass(frozen=True)
class Card:
    """One string for a page.

    Attributes:
        rank: Its rank from 1, 0 for none.
        head: What stands first: the value, or what became of the string.
        is_value: Whether that is a value.
        string: The string, shortened.
        number: Of its evaluation.
        name: What a campaign calls it.
        origin: Its batch, in words.
        predicted: What was predicted of it, in words.
        interval: The interval of that alone.
        off: How many predicted standard deviations its value is off, in words.
        why: ``"exploit"``, ``"explore"``, another word, or empty.
        nearest: The measured string that it is most like, and the number of its evaluation (0 if it has no row).
        nearest_value: What was measured of that one, in words.
        difference: How the two differ, in words.
        similarity: To that one, in words.
        measurements: How often it was measured.
        drawing: The structure.
        own: Whether the drawing has the colours of the page (else those of paper).
        facts: Below the drawing.
        sequence: The marked sequence.
        codons: The codons of a gene: codon, amino acid, whether it differs.
        error: Why there is no value.
        listed: Whether it has a row in the table.
        identifier: What its owner calls it.
        mutations: What it changes of the parent, such as ``S121E``; empty where no parent is known.
        cells: What the library says of it, by column.
        note: What was corrected or discarded.
        evidence: What else was known when it was chosen, in words, such as its rank.
        neighbour: The measured string that it is most like, drawn; `None` where that is not.
        rests: What its prediction rests on, drawn; `None` where that is not.
        rests_words: The same in words; empty where it is not known.
    """

    rank: int
    head: str
    is_value: bool
    string: str
    number: int
    name: str
    origin: str
    predicted: str
    interval: str
    off: str
    why: str
    nearest: tuple[str, int] | None
    nearest_value: str
    difference: str
    similarity: str
    measurements: int
    drawing: Markup | None
    own: bool
    facts: str
    sequence: MarkedSequence | None
    codons: list[tuple[str, str, bool]]
    error: str
    listed: bool
    identifier: str
    mutations: str
    cells: list[tuple[str, str]]
    note: str
    evidence: list[str]
    neighbour: Markup | None
    rests: Markup | None = None
    rests_words: str = ""


def best_cards(view: View, top: int) -> list[Card]:
    """The best strings, each once."""
    best = ranked(view.run.evaluations, view.run.direction).head(top)
    deviations = view.deviations()
    return [_card(view, row, "best", rank, deviations) for rank, row in enumerate(rows_of(best), 1)]


@dataclass(frozen=True)
class Batch:
    """The batch that is under way, or the last one.

    Attributes:
        title: What it is, in words.
        waiting: Whether results are awaited.
        cards: Its strings, `MOST_OF_BATCH` at most.
        left_out: Number of those that are not among the cards.
    """

    title: str
    waiting: bool
    cards: list[Card]
    left_out: int


def current_batch(view: View) -> Batch:
    """What is to be measured, or else what was measured last."""
    table = view.run.evaluations
    rows = table[table["status"] == "pending"].drop_duplicates("key")
    waiting = bool(len(rows))
    if waiting:
        title = "To be measured"
    elif not len(table):
        title = "Next batch"
    else:
        rows = table[table["batch"] == table["batch"].max()]
        number = int(rows["batch"].iloc[0])
        title = f"Last batch, no. {number}" if number else view.origin(0).capitalize()
    deviations = view.deviations()
    shown = rows.head(MOST_OF_BATCH) if waiting or (len(rows) and rows["batch"].iloc[0]) else rows.head(0)
    rests = _rests(view) if waiting else {}
    cards = [_card(view, row, "now", order, deviations, rests=rests) for order, row in enumerate(rows_of(shown), 1)]
    return Batch(title, waiting, cards, len(rows) - len(shown))


def unmeasured_cards(view: View) -> list[Card]:
    """The candidates that the model of the page predicts to be best, among those that have not been measured."""
    if view.analysis is None or view.analysis.unmeasured is None:
        return []
    rests = _rests(view)
    return [
        _card(view, view.unmeasured_row(one), "next", order, {}, Evidence(one.nearest, one.similarity), rests)
        for order, one in enumerate(view.analysis.unmeasured.best, 1)
    ]


def _card(
    view: View,
    row: dict[str, Any],
    list_name: str,
    order: int,
    deviations: dict[int, float],
    evidence: Evidence | None = None,
    rests: Mapping[str, tuple[Rests, Scale]] | None = None,
) -> Card:
    string, number = str(row["string"]), int(row["number"])
    drawing, facts, own = _drawing(view, string, f"{list_name}{order}-", order)
    sequence, codons = None, []
    if view.kind != "molecule":
        reference = _aligned(view, row)
        if view.is_gene:
            codons = codons_of(string.strip(), reference, _code(view))
        sequence = mark_sequence(string.strip(), reference, whole=not view.aligned)
    evidence = view.evidence(row) if evidence is None else evidence
    nearest, similarity = evidence.nearest, evidence.similarity
    other = view.number_of.get(nearest, 0)
    # In the list of the best, what was most like a molecule before it was measured has done its work.
    is_paired = view.kind == "molecule" and bool(nearest) and list_name != "best"
    cells = view.cells(row)
    drawn_rests, rests_words = _drawn_rests((rests or {}).get(str(row["key"])), f"{list_name}{order}r-")
    return Card(
        rank=order if list_name == "best" else 0,
        head=view.value(row) if row["measured"] else view.predicted(row) if not number else _state(row["status"]),
        is_value=bool(row["measured"]),
        string=shortened(string, LONGEST_LISTED),
        number=number,
        name=str(row["name"]),
        origin=view.origin(row["batch"]),
        predicted=view.prediction(row),
        interval=view.interval(row),
        off=f"{deviations[number]:+.1f}" if number in deviations else "",
        why=evidence.kind,
        nearest=(shortened(nearest, 60), other if other in view.listed else 0) if nearest else None,
        nearest_value=view.nearest_value(evidence),
        difference=shortened(evidence.difference, 160),
        similarity="" if math.isnan(similarity) else f"{similarity:.2f}",
        measurements=1 if math.isnan(row["measurements"]) else int(row["measurements"]),
        drawing=drawing,
        own=own,
        facts=facts,
        sequence=sequence,
        codons=codons,
        error=shortened(str(row["error"]), 160),
        listed=number in view.listed,
        identifier=shortened(str(row["identifier"]), 60),
        mutations=shortened(view.mutations(row), 120),
        cells=[(name, shortened(cells[name], 60)) for name in view.columns if cells.get(name, "").strip()],
        note=shortened(str(row["note"]), 200),
        evidence=evidence.words(),
        neighbour=_neighbour(view, nearest, f"{list_name}{order}n-") if is_paired else None,
        rests=drawn_rests,
        rests_words=rests_words,
    )


def _rests(view: View) -> dict[str, tuple[Rests, Scale]]:
    """By key, what predictions rest on, with one scale for the whole page."""
    if view.analysis is None:
        return {}
    found = {}
    best = () if view.analysis.unmeasured is None else view.analysis.unmeasured.best
    table = view.run.evaluations
    strings = {one.key: one.string for one in best} | dict(zip(table["key"], table["string"], strict=True))
    for key, one in view.analysis.explained.found.items():
        try:
            found[key] = Rests.of(one, key, str(strings.get(key, key)), view.kind)
        except ModelError:
            logger.debug("contributions of %r cannot be drawn", key, exc_info=True)
    scale = scale_of(
        found.values(),
        str(view.run.settings.get("objective") or "value"),
        minimize=view.run.direction == "minimize",
        log10=view.run.settings.get("transform") == "log10",
        unit=view.run.settings.get("unit"),
    )
    return {key: (one, scale) for key, one in found.items()}


def _drawn_rests(rests: tuple[Rests, Scale] | None, prefix: str) -> tuple[Markup | None, str]:
    if rests is None:
        return None, ""
    found, scale = rests
    svg = found.svg(scale, prefix)
    # What a canvas writes is escaped.
    return None if svg is None else Markup(svg), found.words(scale)


def _neighbour(view: View, string: str, prefix: str) -> Markup | None:
    drawn = draw_molecule(string, prefix, label="The most similar measured one", size=SMALL, highlights=view.highlights)
    return None if drawn is None else Markup(drawn.svg)


def _state(status: str) -> str:
    return {"pending": "awaited", "ok": "–", "": "–"}.get(status, status)


def _drawing(view: View, string: str, prefix: str, order: int) -> tuple[Markup | None, str, bool]:
    """Drawing, facts, and whether the drawing has the colours of the page."""
    label = f"{view.names[0].capitalize()} {order}"
    if view.kind == "molecule":
        structure = draw_molecule(string, prefix, label=label, highlights=view.highlights)
    elif view.is_folded and order <= FOLDED:
        structure = draw_fold(string.strip(), label=f"{label}, secondary structure of its RNA")
    elif view.curves is not None:
        shown = "its curve and the points" if view.curves.is_curve else "measured values against its own"
        return view.curves.draw(string, label=f"{label}, {shown}"), view.curves.words(string), True
    else:
        return None, "", False
    if structure is None:
        return None, "", False
    return Markup(structure.svg), structure.facts, view.kind != "molecule"


def _code(view: View) -> int | str:
    code = space_facts(view.run).get("code")
    return code if isinstance(code, int) and not isinstance(code, bool) else "standard"


def _aligned(view: View, row: dict[str, Any]) -> str | None:
    """The reference as it is to be compared with the string of ``row``, which may be in lower case."""
    if view.reference is None:
        return None
    lower = row["string"].strip().islower() and row["key"].isupper()
    return view.reference.string.lower() if lower else view.reference.string
