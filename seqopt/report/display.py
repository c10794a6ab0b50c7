"""How results, batches, spaces and maps show themselves: as HTML in a notebook, as a table in a terminal.

Whatever can be shown is first described by a `Sheet`, which is then written as HTML or as text. The HTML needs no style
sheet and no script. Its text takes the colour of the page around it, light or dark; pictures, among them the structures
of molecules, have a light ground of their own. They are images, so that several outputs on one page cannot disturb each
other, and a notebook that its reader does not trust yet shows them all the same.

What is described is told from the names of classes, so that neither torch nor the loop is imported to show a string.
"""

from __future__ import annotations

import base64
import io
import math
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

from seqopt.errors import SeqoptError
from seqopt.report.formats import compact, number_format, printable, shortened, significant
from seqopt.utils.shown import Tabulated

SHOWN = 10
"""Best strings of a result, and random ones of a space."""

LARGEST_BATCH = 24
"""Strings of a batch that are shown."""

LONGEST_LINE = 60
"""Symbols of a string in a line of a terminal."""

LONGEST_STRING = 240
"""Symbols of a string on a page."""

WIDTH, HEIGHT = 180, 126
"""Pixels of a structure."""

_LINE = "1px solid rgba(128, 128, 128, 0.35)"
_CELL = "padding: 2px 14px 2px 0; text-align: left; vertical-align: top"
_MONO = "font-family: monospace; overflow-wrap: anywhere; word-break: break-all"
_FAINT = "opacity: 0.75"
_KINDS = {"molecule": "molecules", "protein": "proteins", "dna": "DNA sequences", "rna": "RNA sequences"}


@dataclass(frozen=True)
class Entry:
    """A string in a list.

    Attributes:
        string: As its owner wrote it.
        cells: What is known of it, in the order of `Sheet.columns`; empty where nothing is.
    """

    string: str
    cells: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sheet:
    """What is to be shown of an object.

    Attributes:
        title: A line.
        facts: Names and values.
        entries: Strings.
        columns: Names of the entries' cells.
        kind: What the strings are; molecules are drawn.
        picture: Draws a PNG for a page; `None` for none.
        picture_label: What a screen reader says instead.
        remarks: Sentences below.
    """

    title: str
    facts: tuple[tuple[str, str], ...] = ()
    entries: tuple[Entry, ...] = ()
    columns: tuple[str, ...] = ()
    kind: str = "text"
    picture: Callable[[], bytes] | None = None
    picture_label: str = ""
    remarks: tuple[str, ...] = ()


def describe(shown: object) -> Sheet:
    """What is to be shown of a result, a batch, a space, an optimiser, a campaign or a map.

    An object of a class that is not known here is described like the nearest of its bases that is, or else by its
    ``repr``.

    Example:
        >>> from seqopt.spaces import CandidateSet
        >>> describe(CandidateSet(["CCO", "CCN", "CCCO"], kind="molecule")).title
        'Candidate set of 3 molecules'
    """
    for base in type(shown).__mro__:
        found = _DESCRIBED.get(f"{base.__module__}.{base.__qualname__}")
        if found is not None:
            return found(shown)
    own = type(shown).__repr__ is not Tabulated.__repr__
    return Sheet(repr(shown) if own else object.__repr__(shown))


def as_html(shown: object) -> str:
    """An object as HTML for a notebook; everything in it that a user wrote is escaped.

    Example:
        >>> from seqopt.spaces import StringSpace
        >>> "<script>" in as_html(StringSpace(["<", "s", "c", "r", "i", "p", "t", ">"], 8))
        False
    """
    sheet = describe(shown)
    parts = [_div(escape(printable(sheet.title)), "font-weight: bold; margin: 4px 0")]
    if sheet.facts:
        rows = (Markup().join([_cell(escape(name), _FAINT), _cell(_text(value))]) for name, value in sheet.facts)
        parts.append(_table(rows))
    if sheet.picture is not None:
        image = _image(sheet.picture(), "image/png", sheet.picture_label)
        parts.append(_div(image, "max-width: 620px; margin: 4px 0"))
    if sheet.entries:
        parts.append(_cards(sheet) if sheet.kind == "molecule" else _rows(sheet))
    parts += [_div(_text(remark), f"{_FAINT}; margin: 2px 0") for remark in sheet.remarks]
    return str(_div(Markup("\n").join(parts), "max-width: 1000px; overflow-x: auto"))


def as_text(shown: object) -> str:
    """An object as a table for a terminal.

    Example:
        >>> import seqopt
        >>> result = seqopt.maximize("gc", seqopt.StringSpace("ACGT", 6, kind="dna"), initial=4, budget=0)
        >>> print(as_text(result).splitlines()[0])
        Result of 4 evaluations: the largest value is 0.8333
    """
    sheet = describe(shown)
    lines = [printable(sheet.title)]
    width = max((len(name) for name, _ in sheet.facts), default=0)
    lines += [f"  {name:<{width}}  {shortened(printable(value), 100)}" for name, value in sheet.facts]
    lines += [f"  {line}" for line in _aligned(sheet)]
    lines += [f"  {printable(remark)}" for remark in sheet.remarks]
    return "\n".join(lines)


def _aligned(sheet: Sheet) -> list[str]:
    """The entries as lines of columns, the strings last."""
    if not sheet.entries:
        return []
    rows = [(*sheet.columns, "string")] if sheet.columns else []
    rows += [
        (*map(printable, entry.cells), shortened(printable(entry.string), LONGEST_LINE)) for entry in sheet.entries
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _cards(sheet: Sheet) -> Markup:
    """Molecules side by side, drawn."""
    cards = []
    for entry in sheet.entries:
        lines = [
            _div(Markup("{} <b>{}</b>").format(name, printable(cell)), "white-space: nowrap")
            for name, cell in zip(sheet.columns, entry.cells, strict=True)
            if cell
        ]
        string = _div(_text(entry.string), f"{_MONO}; font-size: 75%; {_FAINT}")
        inside = Markup().join([_structure(entry.string), *lines, string])
        cards.append(
            _div(
                inside,
                f"display: inline-block; vertical-align: top; width: {WIDTH}px; margin: 0 8px 8px 0; padding: 6px; "
                f"border: {_LINE}; border-radius: 6px; font-size: 90%; line-height: 1.35",
            )
        )
    return _div(Markup("\n").join(cards), "margin: 4px 0")


def _structure(smiles: str) -> Markup:
    from seqopt.report.drawing import draw_molecule

    drawn = draw_molecule(smiles, "", label="Structure")
    if drawn is None:
        return _div(escape("cannot be drawn"), f"{_FAINT}; font-style: italic")
    # As a document of its own it needs the namespace that an element of a page goes without, and its size.
    document = drawn.svg.replace(
        "<svg ", f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" ', 1
    )
    return _image(document.encode("utf-8"), "image/svg+xml", "structure")


def _image(content: bytes, media_type: str, label: str) -> Markup:
    data = base64.b64encode(content).decode("ascii")
    style = "max-width: 100%; background: #ffffff; border-radius: 4px"
    return Markup('<img alt="{}" src="data:{};base64,{}" style="{}">').format(label, media_type, data, style)


def _rows(sheet: Sheet) -> Markup:
    """Strings below each other."""
    names = [*sheet.columns, "string"] if sheet.columns else []
    head = Markup().join(_cell(escape(name), f"{_FAINT}; border-bottom: {_LINE}") for name in names)
    rows = [head] if names else []
    common = _common([entry.string for entry in sheet.entries]) if sheet.kind in _KINDS else None
    for entry in sheet.entries:
        cells = [_cell(_text(cell), "white-space: nowrap") for cell in entry.cells]
        rows.append(Markup().join([*cells, _cell(_marked(entry.string, common), _MONO)]))
    return _table(rows)


def _common(strings: Sequence[str]) -> str | None:
    """The sequence that all of these are variants of, if they are."""
    from seqopt.report.drawing import choose_reference

    reference = choose_reference(strings, None)
    return None if reference is None or len(reference.string) > LONGEST_STRING else reference.string


def _marked(string: str, common: str | None) -> Markup:
    """A string with what differs from the common sequence set off."""
    from seqopt.report.drawing import mark_sequence

    if common is None:
        return _text(string)
    (pieces,) = mark_sequence(string, common, whole=True).groups
    other = Markup('<b style="color: #d55e00; text-decoration: underline">{}</b>')
    return Markup().join(
        other.format(printable(text)) if differs else escape(printable(text)) for text, differs in pieces
    )


def _table(rows: Iterable[Markup]) -> Markup:
    # A notebook right-aligns and stripes the rows of its tables.
    inside = Markup("\n").join(Markup('<tr style="background: transparent">{}</tr>').format(row) for row in rows)
    style = "border-collapse: collapse; margin: 4px 0; font-size: 95%"
    return Markup('<table style="{}">{}</table>').format(style, inside)


def _cell(content: Markup, style: str = "") -> Markup:
    return Markup('<td style="{}">{}</td>').format(f"{_CELL}; {style}".rstrip("; "), content)


def _div(content: Markup, style: str) -> Markup:
    return Markup('<div style="{}">{}</div>').format(style, content)


def _text(text: str) -> Markup:
    return escape(shortened(printable(text), LONGEST_STRING))


def _result(result: Any) -> Sheet:
    from seqopt.report.results import ranked, tidy_evaluations

    optimizer = result.optimizer
    table = tidy_evaluations(result.evaluations)
    best = ranked(table, optimizer.direction)
    listed, columns = _evaluated(best.head(SHOWN), _log10(optimizer))
    failed = int((table["status"] == "failed").sum())
    title = f"Result of {_count(len(table), 'evaluation')}" + (f" ({failed} failed)" if failed else "")
    extreme = "smallest" if optimizer.direction == "minimize" else "largest"
    remarks = [f"{_the(len(listed), len(best))} best of {len(best):,} measured; all of them: .to_pandas()"]
    if result.run_folder is not None:
        remarks.append(f"the run is kept in {result.run_folder.name}")
    return Sheet(
        f"{title}: the {extreme} value is {significant(result.best_value)}",
        entries=listed,
        columns=columns,
        kind=optimizer.space.kind,
        remarks=tuple(remarks),
    )


def _evaluated(table: Any, log10: bool) -> tuple[tuple[Entry, ...], tuple[str, ...]]:
    """Rows of a tidy table of evaluations."""
    show = number_format(table.loc[table["measured"], "value"], log10=log10)
    predicted = number_format(table["predicted_mean"].dropna(), log10=log10)
    entries = []
    for row in table.itertuples():
        value = show(row.value) if row.measured else "" if row.status == "pending" else row.status
        batch = "initial" if row.batch == 0 else f"{row.batch:.0f}"
        entries.append(Entry(row.string, (value, _moments(row.predicted_mean, row.predicted_std, predicted), batch)))
    return _without_empty(entries, ("value", "predicted", "batch"))


def _without_empty(entries: Sequence[Entry], columns: Sequence[str]) -> tuple[tuple[Entry, ...], tuple[str, ...]]:
    """Entries and columns without those that hold nothing."""
    kept = [place for place in range(len(columns)) if any(entry.cells[place] for entry in entries)]
    shortened_entries = tuple(Entry(entry.string, tuple(entry.cells[place] for place in kept)) for entry in entries)
    return shortened_entries, tuple(columns[place] for place in kept)


def _moments(mean: float | None, std: float | None, show: Callable[[float], str]) -> str:
    if mean is None or not math.isfinite(mean):
        return ""
    return show(mean) if std is None or not math.isfinite(std) else f"{show(mean)} ± {compact(std)}"


def _batch(batch: Any) -> Sheet:
    from seqopt.report.results import tidy_evaluations

    table = tidy_evaluations(batch.to_pandas())
    number = table["batch"].max() if len(table) else 0
    title = "Initial design" if number == 0 else f"Batch {number:.0f}"
    entries, columns = _evaluated(table.head(LARGEST_BATCH), False)
    kept = [place for place, name in enumerate(columns) if name != "batch"]
    return Sheet(
        f"{title}: {_count(len(batch), 'string')} to evaluate",
        entries=tuple(Entry(entry.string, tuple(entry.cells[place] for place in kept)) for entry in entries),
        columns=tuple(columns[place] for place in kept),
        kind=batch.kind,
        remarks=_left_out(len(entries), len(batch)),
    )


def _suggestions(batch: Any) -> Sheet:
    settings, rows = batch.settings, batch[:LARGEST_BATCH]
    log10 = settings.transform == "log10"
    show = number_format([row.mean for row in rows if row.mean is not None], log10=log10)
    entries, columns = _without_empty(
        [
            Entry(
                row.string,
                (
                    row.name,
                    row.status if row.status != "open" else "",
                    _moments(row.mean, None, show),
                    "" if row.low is None or row.high is None else f"{show(row.low)} to {show(row.high)}",
                    str(row.reason.get("kind") or ""),
                    _similar(row.reason),
                ),
            )
            for row in rows
        ],
        ("name", "status", "predicted", "90 %", "why", "nearest measured"),
    )
    unit = f" ({settings.unit})" if settings.unit else ""
    return Sheet(
        f"{_count(len(batch), 'suggestion')} for {settings.objective}{unit}, {settings.direction}",
        entries=entries,
        columns=columns,
        kind=batch.kind,
        remarks=_left_out(len(rows), len(batch)),
    )


def _similar(reason: dict[str, Any]) -> str:
    nearest, similarity = reason.get("nearest"), reason.get("similarity")
    if nearest is None or similarity is None:
        return ""
    return f"{similarity:.2f} to {shortened(str(nearest), 24)}"


def _candidates(space: Any) -> Sheet:
    facts = [("kind", space.kind), ("tokeniser", space.encoder.tokenizer.name)]
    if space.standardize:
        facts.append(("identity", "charge parents: salts and charge states of one molecule are one candidate"))
    return Sheet(
        f"Candidate set of {_of_kind(space.kind, len(space))}",
        facts=tuple(facts),
        entries=tuple(Entry(space[place]) for place in range(min(SHOWN, len(space)))),
        kind=space.kind,
        remarks=_left_out(min(SHOWN, len(space)), len(space)),
    )


def _described_space(space: Any) -> Sheet:
    import numpy as np

    facts = {name: value for name, value in space.facts().items() if value not in (None, [], "")}
    facts.pop("type", None)
    entries: tuple[Entry, ...] = ()
    # A predicate may be slow, or refuse all that is drawn.
    if "accept" not in facts:
        try:
            entries = tuple(Entry(string) for string in space.sample(SHOWN, np.random.default_rng(0)))
        except SeqoptError:
            entries = ()
    return Sheet(
        shortened(repr(space), LONGEST_STRING),
        facts=tuple((str(name).replace("_", " "), _fact(value)) for name, value in facts.items()),
        entries=entries,
        kind=space.kind,
        remarks=(f"{len(entries)} random ones are shown",) if entries else (),
    )


def _fact(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_fact, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _optimizer(optimizer: Any) -> Sheet:
    values, failures = (len(optimizer.observations.with_status(status)) for status in ("ok", "failed"))
    pending = optimizer.observations.pending
    best = optimizer.best_of(optimizer.observations.rows)
    facts = [
        ("space", repr(optimizer.space)),
        ("surrogate", type(optimizer.surrogate).__name__),
        ("acquisition", optimizer.acquisition.name),
        ("search", type(optimizer.search).__name__),
        ("told", f"{_count(values, 'value')}, {_count(failures, 'failure')}"),
        ("pending", f"{len(pending):,}" + (", below" if pending else "")),
        *([("best", f"{significant(best.value)}: {best.string}")] if best is not None else []),
        *((name.replace("_", " "), compact(value)) for name, value in optimizer.hyperparameters.items()),
    ]
    return Sheet(
        f"Optimizer ({optimizer.direction})",
        facts=tuple(facts),
        entries=tuple(Entry(row.string) for row in pending[:LARGEST_BATCH]),
        kind=optimizer.space.kind,
        remarks=_left_out(min(LARGEST_BATCH, len(pending)), len(pending)),
    )


def _status(status: Any) -> Sheet:
    settings, counts, model = status.settings, status.counts, status.model
    unit = f" {settings.unit}" if settings.unit else ""
    facts = [
        (
            "measured",
            f"{_count(counts.values, 'value')} of {_count(counts.strings, 'string')}, "
            f"{_count(counts.failures, 'failure')}",
        ),
        (
            "suggested",
            f"{_count(counts.batches, 'batch', 'batches')}: {counts.measured} measured, {counts.failed} failed, "
            f"{counts.withdrawn} withdrawn, {counts.open} open",
        ),
    ]
    if status.best is not None:
        mean = status.best.mean(geometric=settings.transform == "log10")
        replicates = len(status.best.values)
        of = f" (mean of {replicates})" if replicates > 1 else ""
        facts.append(("best", f"{significant(mean)}{unit}{of}: {status.best.string}"))
    if model:
        r2 = model.get("r2")
        quality = "" if r2 is None else f"; leave-one-out R2 {r2:.2f}, {model['within_90']:.0%} within 90 %"
        facts.append(("model", f"{model['surrogate']}, fitted to {_count(model['n'], 'value')}{quality}"))
    if status.filters:
        facts.append(("filters", "; ".join(status.filters)))
    return Sheet(
        f"Campaign for {settings.objective} ({settings.direction})", facts=tuple(facts), remarks=tuple(status.warnings)
    )


def _campaign(campaign: Any) -> Sheet:
    try:
        return _status(campaign.status())
    except (SeqoptError, sqlite3.Error):
        # Of a closed file, above all; whoever needs its state will hear why there is none.
        return Sheet("Campaign (its file is closed)")


def _map(found: Any) -> Sheet:
    shares = [f"{share:.1%}" for share in found.explained_variance_ratio]
    values = found.values
    measured = 0 if values is None else int(sum(map(math.isfinite, values)))
    facts = [
        ("surrogate", found.surrogate),
        ("explained variance", ", ".join(shares)),
        ("measured", f"{measured:,} of {len(found):,}"),
        *((name.replace("_", " "), compact(value)) for name, value in found.hyperparameters.items()),
    ]
    drawable = found.coordinates.shape[1] > 1
    return Sheet(
        f"Kernel map of {_count(len(found), 'string')}",
        facts=tuple(facts),
        picture=(lambda: _map_png(found)) if drawable else None,
        picture_label="the map's points in the plane of the first two components",
        remarks=("all coordinates: .to_pandas(); other strings: .project(strings)",),
    )


def _map_png(found: Any) -> bytes:
    from matplotlib.figure import Figure

    from seqopt.report.map_plot import draw_map, value_norm
    from seqopt.report.plot import plot_style

    table = found.to_pandas().assign(group="")
    with plot_style():
        figure = Figure(figsize=(6.2, 4.8), layout="constrained")
        axes = figure.subplots()
        drawn = draw_map(axes, table, norm=value_norm(table["value"]))
        axes.set_xlabel("component 1")
        axes.set_ylabel("component 2")
        if drawn is not None:
            figure.colorbar(drawn, ax=axes, label="value", pad=0.02).outline.set_visible(False)
        stream = io.BytesIO()
        figure.savefig(stream, format="png", dpi=110, metadata={"Software": None})
    return stream.getvalue()


def _log10(optimizer: Any) -> bool:
    return getattr(optimizer.transform, "name", "") == "log10"


def _of_kind(kind: str, number: int) -> str:
    plural = _KINDS.get(kind, "strings")
    return _count(number, plural.removesuffix("s"), plural)


def _count(number: int, singular: str, plural: str = "") -> str:
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def _the(shown: int, of: int) -> str:
    return "the" if shown == of else f"the {shown}"


def _left_out(shown: int, of: int) -> tuple[str, ...]:
    return (f"{shown} of {of:,} are shown",) if shown < of else ()


_DESCRIBED: dict[str, Callable[[Any], Sheet]] = {
    "seqopt.api.Result": _result,
    "seqopt.campaign.batches.Suggestions": _suggestions,
    "seqopt.campaign.campaign.Campaign": _campaign,
    "seqopt.campaign.status.Status": _status,
    "seqopt.optimizer.batch.Batch": _batch,
    "seqopt.optimizer.optimizer.Optimizer": _optimizer,
    "seqopt.report.kernel_pca.KernelMap": _map,
    "seqopt.spaces.candidate_set.CandidateSet": _candidates,
    "seqopt.spaces.grammar_space.GrammarSpace": _described_space,
    "seqopt.spaces.populations.SequenceSpace": _described_space,
}
"""Who describes what, by the name of the class."""
