"""How results, batches, spaces and maps show themselves: as HTML in a notebook, as a table in a terminal.

Whatever can be shown is first made a `Description`, which is then written as HTML or as text. The HTML needs no style
sheet and no script. Its text takes the colour of the page around it, light or dark; pictures, among them the structures
of molecules, have a light ground of their own. They are images, so that several outputs on one page cannot disturb each
other, and a notebook that its reader does not trust yet shows them all the same.

What is said of which object is in `seqopt.report.descriptions`.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from seqopt.report.formats import printable, shortened
from seqopt.utils.shown import plain, register_renderer, rendering

SHOWN = 10
"""Best strings of a result, and random ones of a space."""

LARGEST_BATCH = 24
"""Strings of a batch that are shown."""

LONGEST_STRING = 240
"""Symbols of a string on a page."""

WIDTH, HEIGHT = 180, 126
"""Pixels of a structure."""

_LINE = "1px solid rgba(128, 128, 128, 0.35)"
_CELL = "padding: 2px 14px 2px 0; text-align: left; vertical-align: top"
_MONO = "font-family: monospace; overflow-wrap: anywhere; word-break: break-all"
_FAINT = "opacity: 0.75"
KINDS = {"molecule": "molecules", "protein": "proteins", "dna": "DNA sequences", "rna": "RNA sequences"}


@dataclass(frozen=True)
class ListedString:
    """A string in a list.

    Attributes:
        string: As its owner wrote it.
        cells: What is known of it, in the order of `Description.columns`; empty where nothing is.
    """

    string: str
    cells: tuple[str, ...] = ()


@dataclass(frozen=True)
class Description:
    """What is to be shown of an object.

    Attributes:
        title: A line.
        facts: Names and values.
        entries: Strings.
        columns: Names of the entries' cells.
        kind: What the strings are; molecules are drawn.
        noun: What one of them is called.
        picture: Draws a PNG for a page; `None` for none.
        picture_label: What a screen reader says instead.
        remarks: Sentences below.
    """

    title: str
    facts: tuple[tuple[str, str], ...] = ()
    entries: tuple[ListedString, ...] = ()
    columns: tuple[str, ...] = ()
    kind: str = "text"
    noun: str = "string"
    picture: Callable[[], bytes] | None = None
    picture_label: str = ""
    remarks: tuple[str, ...] = ()

    def as_html(self) -> str:
        """For a notebook; everything that a user wrote is escaped."""
        parts = [_div(escape(printable(self.title)), "font-weight: bold; margin: 4px 0")]
        if self.facts:
            rows = (Markup().join([_cell(escape(name), _FAINT), _cell(_text(value))]) for name, value in self.facts)
            parts.append(_table(rows))
        if self.picture is not None:
            image = picture(self.picture(), "image/png", self.picture_label)
            parts.append(_div(image, "max-width: 620px; margin: 4px 0"))
        if self.entries:
            parts.append(_cards(self) if self.kind == "molecule" else _rows(self))
        parts += [_div(_text(remark), f"{_FAINT}; margin: 2px 0") for remark in self.remarks]
        return str(_div(Markup("\n").join(parts), "max-width: 1000px; overflow-x: auto"))

    def as_text(self) -> str:
        """For a terminal: a table."""
        lines = [printable(self.title)]
        width = max((len(name) for name, _ in self.facts), default=0)
        lines += [f"  {name:<{width}}  {shortened(printable(value), 100)}" for name, value in self.facts]
        lines += [f"  {line}" for line in _aligned(self)]
        lines += [f"  {printable(remark)}" for remark in self.remarks]
        return "\n".join(lines)


def describe(shown: object) -> Description:
    """What is to be shown of a result, a batch, a space, an optimiser, a campaign or a map.

    An object of a class that is not known is described like the nearest of its bases that is, or else by its ``repr``.

    Example:
        >>> from seqopt.spaces import CandidateSet
        >>> describe(CandidateSet(["CCO", "CCN", "CCCO"], kind="molecule")).title
        'Candidate set of 3 molecules'
    """
    found = rendering(shown)
    return found if isinstance(found, Description) else Description(plain(shown))


def as_html(shown: object) -> str:
    """An object as HTML for a notebook; everything in it that a user wrote is escaped.

    Example:
        >>> from seqopt.spaces import StringSpace
        >>> "<script>" in as_html(StringSpace(["<", "s", "c", "r", "i", "p", "t", ">"], 8))
        False
    """
    return describe(shown).as_html()


def as_text(shown: object) -> str:
    """An object as a table for a terminal.

    Example:
        >>> import seqopt
        >>> result = seqopt.maximize("gc", seqopt.StringSpace("ACGT", 6, kind="dna"), initial=4, budget=0)
        >>> print(as_text(result).splitlines()[0])
        Result of 4 evaluations: the largest value is 0.8333
    """
    return describe(shown).as_text()


def _aligned(sheet: Description) -> list[str]:
    """The entries as lines of columns, the strings last, as they are copied from there."""
    if not sheet.entries:
        return []
    rows = [(*sheet.columns, sheet.noun)] if sheet.columns else []
    rows += [
        (*map(printable, entry.cells), shortened(printable(entry.string), LONGEST_STRING)) for entry in sheet.entries
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
    return [
        "  ".join([*(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)), row[-1]]).rstrip()
        for row in rows
    ]


def _cards(sheet: Description) -> Markup:
    """Molecules side by side, drawn."""
    cards = []
    for entry in sheet.entries:
        lines = [
            _div(Markup("{} <b>{}</b>").format(name, printable(cell)), "overflow-wrap: anywhere")
            for name, cell in zip(sheet.columns, entry.cells, strict=True)
            if cell
        ]
        string = _div(_text(entry.string), f"{_MONO}; font-size: 75%; {_FAINT}")
        inside = Markup().join([_structure(entry.string), *lines, string])
        cards.append(
            _div(
                inside,
                f"display: inline-block; box-sizing: border-box; vertical-align: top; width: {WIDTH + 40}px; "
                "max-width: 100%; overflow: hidden; white-space: normal; margin: 0 8px 8px 0; padding: 6px; "
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
    return picture(document.encode("utf-8"), "image/svg+xml", "structure")


def picture(content: bytes, media_type: str, label: str) -> Markup:
    """An image that is part of its page, on a light ground."""
    data = base64.b64encode(content).decode("ascii")
    style = "max-width: 100%; background: #ffffff; border-radius: 4px"
    return Markup('<img alt="{}" src="data:{};base64,{}" style="{}">').format(label, media_type, data, style)


def _rows(sheet: Description) -> Markup:
    """Strings below each other."""
    names = [*sheet.columns, sheet.noun] if sheet.columns else []
    head = Markup().join(_cell(escape(name), f"{_FAINT}; border-bottom: {_LINE}") for name in names)
    rows = [head] if names else []
    common = _common([entry.string for entry in sheet.entries]) if sheet.kind in KINDS else None
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


def _by_repr(shown: object) -> Description:
    return Description(plain(shown))


register_renderer(object, _by_repr)
