"""How an explanation of a prediction shows itself, and the files that it is written to."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from markupsafe import escape

from seqopt.campaign.hits import chance
from seqopt.campaign.inquiry import Explanation
from seqopt.campaign.parents import MUTATIONS, parent_of
from seqopt.campaign.wording import in_words, nearest_in_words, percent
from seqopt.data import shown_interval, shown_number
from seqopt.errors import InputError, ModelError
from seqopt.report.display import Description, ListedString, picture
from seqopt.report.formats import printable
from seqopt.report.rests import Rests, Scale, scale_of
from seqopt.strings.mutations import mutation_name
from seqopt.utils.files import write_atomically
from seqopt.utils.shown import register_renderer

FORMATS = (".svg", ".png", ".html")
"""Endings of the files that an explanation can be written to."""

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8" />
<meta name="viewport" content="width=device-width, initial-scale=1" />
<meta name="color-scheme" content="light dark" />
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:" />
<title>{title}</title>
</head>
<body style="margin: 2rem; font: 16px/1.5 system-ui, sans-serif">
{content}
</body>
</html>
"""


@dataclass(frozen=True)
class DescribedExplanation(Description):
    """A description with a drawing for a page, in place of the list that a terminal shows.

    Attributes:
        drawing: SVG; empty where there is none.
    """

    drawing: bytes = b""

    def as_html(self) -> str:
        """For a notebook; everything that a user wrote is escaped."""
        page = Description(self.title, self.facts, remarks=self.remarks).as_html()
        label = "the parts of the string, coloured by what they add to the prediction"
        return page + str(picture(self.drawing, "image/svg+xml", label)) if self.drawing else page


def describe_explanation(found: Explanation) -> DescribedExplanation:
    settings, row = found.settings, found.prediction
    unit = f" {settings.unit}" if settings.unit else ""
    scale = settings.transform, settings.objective, settings.unit
    parent = parent_of(settings)
    predicted = {
        "predicted": f"{shown_number(row.predicted)}{unit}",
        "90 % of a measurement": shown_interval(row.low, row.high, *scale),
        "90 % of the true value": shown_interval(row.true_low, row.true_high, *scale),
    }
    if settings.yes_no:
        predicted = {"predicted": chance(row.predicted, row.low, row.high)}
    then = found.at_suggestion if found.at_suggestion != found.reason else {}
    facts = {
        "string": row.string,
        "identifier": row.identifier or "",
        MUTATIONS: "" if parent is None else mutation_name(parent, row.key),
        "measured": "" if row.measured is None else f"{row.measured_words}{unit}",
        "what became of it": row.status if row.status in ("failed", "lost") else "",
        **predicted,
        "chance to beat the best": "" if row.improvement is None else percent(row.improvement),
        "stands now": in_words(found.reason),
        "nearest measured": nearest_in_words(found.reason, parent) if row.measured is None else "",
        "when suggested": in_words(then),
        "nearest measured then": nearest_in_words(then, parent),
    }
    name = f"{found.name}: " if found.name else ""
    title = f"{name}prediction of {settings.objective}{f' ({settings.unit})' if settings.unit else ''}"
    shown = tuple((what, text) for what, text in facts.items() if text)
    drawn = drawable(found)
    if drawn is None:
        return DescribedExplanation(title, shown, remarks=(f"what it rests on is not known: {found.without}",))
    rests, colours = drawn
    entries = tuple(
        ListedString(part, (str(number), colours.show(value, "+")))
        for number, (part, value) in enumerate(zip(rests.found.parts, rests.found.values.tolist(), strict=True), 1)
    )
    return DescribedExplanation(
        title,
        shown,
        entries,
        ("", "adds"),
        noun=rests.found.unit,
        remarks=(rests.words(colours),),
        drawing=rests.document(colours, found.name or row.string, words=False) or b"",
    )


def drawable(found: Explanation) -> tuple[Rests, Scale] | None:
    """What a prediction rests on, and the scale of its colours; `None` where that is not known."""
    if found.contributions is None:
        return None
    settings, row = found.settings, found.prediction
    kind = str((settings.pool or settings.space).get("kind") or "text")
    try:
        rests = Rests.of(found.contributions, row.key, row.string, kind)
    except ModelError:
        # Symbols that are no SMILES are shown as they are.
        rests = Rests(found.contributions, row.key, row.string)
    scale = scale_of(
        [rests],
        settings.modelled if settings.yes_no else settings.objective,
        minimize=settings.direction == "minimize",
        log10=settings.transform == "log10",
        unit=settings.unit,
    )
    return rests, scale


def check_format(path: str | os.PathLike[str]) -> None:
    """Whether an explanation can be written there.

    Raises:
        InputError: For another ending than those of `FORMATS`.

    Example:
        >>> check_format("b.svg")
    """
    if Path(path).suffix.lower() not in FORMATS:
        raise InputError(f"{path} does not end in {', '.join(FORMATS)}: these are what an explanation is written to")


def write_explanation(found: Explanation, path: str | os.PathLike[str]) -> None:
    """Write what a prediction rests on, drawn; a page (``.html``) says how the string stands, too.

    Args:
        found: As `seqopt.campaign.Campaign.explain` returns it.
        path: The file, which is replaced; its ending decides: ``.svg``, ``.png`` or ``.html``.

    Raises:
        InputError: For another ending, or where nothing can be drawn.
        OSError: If the file cannot be written.
    """
    check_format(path)
    path = Path(path)
    if path.suffix.lower() == ".html":
        described = describe_explanation(found)
        named = escape(printable(described.title))
        write_atomically(path, PAGE.format(title=named, content=described.as_html()))
        return
    drawn = drawable(found)
    if drawn is None:
        raise InputError(f"there is nothing to draw: what the prediction rests on is not known ({found.without})")
    rests, scale = drawn
    title = "  ".join(filter(None, (found.name, found.prediction.string)))
    document = rests.document(scale, title, png=path.suffix.lower() == ".png")
    if document is None:
        raise InputError(f"{found.prediction.string!r} cannot be drawn, it is too large: .html has the numbers")
    write_atomically(path, document)


register_renderer(Explanation, describe_explanation)
