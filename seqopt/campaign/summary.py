"""A campaign as plain tables, for a terminal, a mail or a laboratory journal."""

from __future__ import annotations

import io
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from seqopt.campaign.by_way import quality_in_words, values_in_words
from seqopt.campaign.parents import MUTATIONS, parent_of
from seqopt.campaign.rows import Observed, Settings, Suggestion, comparable
from seqopt.campaign.status import side_by_side
from seqopt.campaign.wording import (
    counted,
    in_words,
    means_in_words,
    nearest_in_words,
    parameter_lines,
    percent,
    without_value,
)
from seqopt.strings.mutations import mutation_names
from seqopt.utils.config import from_config

if TYPE_CHECKING:
    from seqopt.campaign.campaign import Campaign
    from seqopt.campaign.status import Status
    from seqopt.data import Context

CLASSIFIERS = ("BORE", "LFBO")
"""What chooses without predictions of values."""

BEST = 10
"""Strings in the table of the best."""

IDENTIFIER = "identifier"
"""Heading of what the owner of the library calls candidates."""

UNSUGGESTED = "not suggested"
"""Stands in place of the name of a suggestion."""

WIDEST = 100_000
"""Characters in a line of a table."""

WIDTH = 160
"""Characters in a line of a file."""

INTERVAL = "90 % of a measurement"
"""Heading of the intervals."""

FEWEST_RANKED = 3
"""Results that it takes to speak of their order."""


@dataclass(frozen=True)
class Section:
    """A part of a report.

    Attributes:
        title: Its heading.
        lines: What is said before the table.
        header: Names of the columns; none for a part without a table.
        rows: The cells.
    """

    title: str
    lines: tuple[str, ...] = ()
    header: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


def summarize(campaign: Campaign) -> list[Section]:
    """What a campaign is about, the best, the last batch held against its results, what is open, the model, failures.

    No model is fitted, and no library is read.

    Args:
        campaign: The campaign; it may be one without any measurement.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from seqopt.campaign import Campaign
        >>> from seqopt.spaces import StringSpace
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with Campaign.create(Path(folder, "a.seqopt"), StringSpace("01", 8), objective="y") as campaign:
        ...         sections = summarize(campaign)
        >>> [section.title for section in sections][:4]
        ['y (maximize)', 'Best measured', 'Last batch with results', 'Open suggestions']
    """
    store = campaign.store
    with store.reading():
        status, observed, suggestions = campaign.status(), store.observations(), store.suggestions()
        times = {command.id: command.time for command in store.history()}
    settings = status.settings
    by_query = {(one.key, one.context): one for one in observed}
    keys = {row.string: row.key for row in suggestions}
    keys |= {row.string: row.key for one in observed for row in one.measurements}
    keys |= {one.string: one.key for one in observed}
    if settings.yes_no:
        from seqopt.campaign.summary_hits import hit_sections

        sections = hit_sections(status, observed, suggestions, _heading(status))
        sections += [*_failures(settings, observed, times), Section("Warnings", status.warnings or ("None.",))]
        return [_with_mutations(section, keys, settings) for section in sections]
    sections = [
        _heading(status),
        _best(settings, comparable(settings, observed), suggestions, status),
        *([_plates(status)] if status.plates else []),
        _last_batch(settings, suggestions, by_query),
        _open(settings, [row for row in suggestions if row.status == "open"], status),
        _model(status),
        *_failures(settings, observed, times),
        Section("Warnings", status.warnings or ("None.",)),
    ]
    return [_with_mutations(section, keys, settings) for section in sections]


def _with_mutations(section: Section, keys: Mapping[str, str], settings: Settings) -> Section:
    """A table of strings with the names of variants before them, where a parent is known."""
    parent = parent_of(settings)
    if parent is None or settings.string_column not in section.header or MUTATIONS in section.header:
        return section
    place = section.header.index(settings.string_column)
    named = mutation_names(parent, (keys[row[place]] for row in section.rows))
    if [row[place - 1] for row in section.rows] == named:
        return section  # the library calls them so
    rows = tuple((*row[:place], name, *row[place:]) for row, name in zip(section.rows, named, strict=True))
    return replace(section, header=(*section.header[:place], MUTATIONS, *section.header[place:]), rows=rows)


def render(sections: Sequence[Section], width: int = WIDTH) -> str:
    """A report as plain text.

    Args:
        sections: Its parts.
        width: Characters in a line of text. A row of a table is one line, however long: what stands in it can be
            copied.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    stream = io.StringIO()
    console, wide = (
        Console(file=stream, width=characters, color_system=None, highlight=False, emoji=False)
        # A terminal breaks the lines of tables without breaking what is copied from them.
        for characters in (max(width, 60), WIDEST)
    )
    for number, section in enumerate(sections):
        console.print(Text(("\n" if number else "") + section.title + "\n" + "-" * len(section.title)))
        for line in section.lines:
            console.print(Text(line))
        if section.rows:
            table = Table(box=None, pad_edge=False)
            for name in section.header:
                table.add_column(Text(name), no_wrap=True, overflow="ignore")
            for row in section.rows:
                table.add_row(*map(Text, row))
            wide.print(table)
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"


def _heading(status: Status) -> Section:
    settings, counts = status.settings, status.counts
    space = settings.space
    if settings.pool is not None:
        where = f"{settings.pool['size']:,} candidates of {' and '.join((settings.pool['path'], *status.added))}"
    elif space.get("type") == "CandidateSet":
        where = f"{space.get('size') or len(space['strings']):,} candidates given in Python"
    elif space.get("type") == "StoredPool":
        files = space.get("files") or []
        of = files[0] if len(files) == 1 else f"{len(files):,} files"
        where = f"{space.get('size', 0):,} candidates on disk, of {of}"
    else:
        where = f"generated strings ({space.get('type')})"
    kept: list[str] = []
    if space.get("type") == "CodonSpace":
        from seqopt.spaces import CodonSpace

        genes = from_config(space)
        assert isinstance(genes, CodonSpace)
        protein = genes.protein if len(genes.protein) <= 40 else genes.protein[:37] + "..."
        where = f"genes of a protein of {counted(len(genes.protein), 'residue')}, {protein}"
        kept = [f"kept to: {', '.join(genes.kept_to)}"] if genes.kept_to else []
    lines = [
        f"searched: {where}",
        *kept,
        *(
            [f"measured: {one.describe()}" for one in status.ways]
            or [
                f"measured: {counted(counts.values, 'value')} of {counted(counts.strings, 'string')}, "
                f"{without_value(counts.failures, counts.lost)}"
            ]
        ),
        *(one.describe() for one in status.relations),
        f"suggested: {counted(counts.batches, 'batch', 'batches')}; {counts.of_suggestions}",
        f"filters: {'; '.join(status.filters) or 'none'}",
    ]
    unit = f", {settings.unit}" if settings.unit else ""
    return Section(f"{settings.objective} ({settings.direction}{unit})", tuple(lines))


def _best(
    settings: Settings, observed: Sequence[Observed], suggestions: Sequence[Suggestion], status: Status
) -> Section:
    names = {row.key: row.name for row in suggestions if settings.latent or row.context == settings.target}
    geometric = settings.transform == "log10"
    measured = sorted(
        (one for one in observed if one.values),
        key=lambda one: one.certain(settings.direction, geometric=geometric),
        reverse=True,
    )  # ties stay in the order in which they were measured
    rows = [
        (
            str(rank),
            names.get(one.key, UNSUGGESTED),
            one.identifier or "",
            one.string,
            f"{one.censored or ''}{_number(one.mean(geometric=geometric))}",
            *("" if (number := one.further(name)) is None else _number(number) for name in settings.further_names),
            str(len(one.values)),
            _number(statistics.stdev(one.values)) if len(one.values) > 1 and not any(one.limits) else "",
        )
        for rank, one in enumerate(measured[:BEST], start=1)
    ]
    measured_as = (settings.objective, *settings.further_names)
    header = ("", "name", IDENTIFIER, settings.string_column, *measured_as, "replicates", "their std")
    lines = (side_by_side(settings, status.expected),) if rows and settings.latent else ()
    lines = lines if rows else ("Nothing has been measured yet.",)
    return section_without_empty("Best measured", lines, header, rows)


def _plates(status: Status) -> Section:
    if any(plate.offset for plate in status.plates):
        lines: tuple[str, ...] = ("Offsets, and the 90 % of them, by a model of all results.",)
    else:
        lines = ("Offsets, by a model of all results: seqopt campaign plates.",) if status.counts.values else ()
    return Section("Plates", (*lines, *(plate.describe() for plate in status.plates)))


def _last_batch(
    settings: Settings, suggestions: Sequence[Suggestion], by_query: dict[tuple[str, Context], Observed]
) -> Section:
    title = "Last batch with results"
    answered = [row.batch for row in suggestions if row.status in ("measured", "failed")]
    if not answered:
        return Section(title, ("No suggestion has a result yet.",))
    batch = [row for row in suggestions if row.batch == max(answered)]
    geometric = settings.transform == "log10"
    judged: list[_Judged] = []
    rows = []
    for row in batch:
        found = by_query.get((row.key, row.context))
        value = math.nan if found is None else found.mean(geometric=geometric)
        inside, censored = "", None if found is None else found.censored
        if censored is not None and row.low is not None and row.high is not None:
            # On which side of the interval it lies is known only where the limit lies there, too.
            inside = "below" if censored == "<" and value <= row.low else ""
            inside = "above" if censored == ">" and value >= row.high else inside
        elif row.mean is not None and row.low is not None and row.high is not None and not math.isnan(value):
            judged.append(_Judged(row.low, row.predicted(settings.transform) or 0.0, row.high, value))
            inside = "inside" if row.low <= value <= row.high else "above" if value > row.high else "below"
        result = row.status if math.isnan(value) else f"{censored or ''}{_number(value)}"
        told = (_predicted(row, settings), _interval(row, settings), result, inside)
        rows.append((row.name, row.identifier or "", row.string, *_context(row, settings), *told))
    names = ("predicted", INTERVAL, f"measured {settings.objective}", "the interval")
    header = ("name", IDENTIFIER, settings.string_column, *settings.context_names, *names)
    return section_without_empty(title, (_verdict(batch[0].batch, judged),), header, rows)


@dataclass(frozen=True)
class _Judged:
    """A prediction, with the ends of its interval, and the value that came."""

    low: float
    central: float
    high: float
    value: float


def _verdict(batch: int, judged: Sequence[_Judged]) -> str:
    if not judged:
        return f"Batch {batch}: chosen without a prediction, or without a value so far."
    inside = sum(one.low <= one.value <= one.high for one in judged)
    error = statistics.fmean(abs(one.value - one.central) for one in judged)
    text = f"Batch {batch}: {inside} of {len(judged)} results within their 90 % interval, mean error {_number(error)}"
    predictions, values = [one.central for one in judged], [one.value for one in judged]
    if len(judged) >= FEWEST_RANKED and len(set(predictions)) > 1 and len(set(values)) > 1:
        from scipy import stats

        text += f", rank correlation {stats.spearmanr(predictions, values).statistic:.2f}"
    return f"{text}."


def _open(settings: Settings, waiting: Sequence[Suggestion], status: Status) -> Section:
    rows = []
    for row in waiting:
        nearest, why = nearest_in_words(row.reason, parent_of(settings)), in_words(row.reason)
        if row.name in status.failing:
            why = f"{why}, fails: {status.failing[row.name]}"
        rows.append(
            (
                row.name,
                row.identifier or "",
                row.string,
                *_context(row, settings),
                _predicted(row, settings),
                _interval(row, settings),
                why,
                nearest,
            )
        )
    told = ("predicted", INTERVAL, "why", "nearest measured")
    header = ("name", IDENTIFIER, settings.string_column, *settings.context_names, *told)
    lines = () if rows else ("None: seqopt campaign suggest says what to measure next.",)
    return section_without_empty("Open suggestions", lines, header, rows)


def _model(status: Status) -> Section:
    model = status.model
    if not model and (by := status.settings.acquisition) in CLASSIFIERS:
        line = f"None: {by}, a classifier of good and other strings, chooses, and predicts no values."
        return Section("Model", (line,))
    if not model:
        return Section("Model", ("None yet: the first batch is chosen without one.",))
    lines = [f"{model['surrogate']}, fitted to {model['n']} values at the last suggestion"]
    if "ways" in model:
        lines += quality_in_words(model)
    elif model.get("r2") is not None:
        within, of = percent(model["within_90"]), values_in_words(status.settings.contexts is not None)
        lines.append(f"leave-one-out: R2 {model['r2']:.2f}; {within} of {of} within their 90 % interval")
    if status.calibration is not None and status.calibration.count:
        lines.append(status.calibration.describe())
    lines += means_in_words(model)
    if "left" in model:
        lines.append(f"candidates left then: {model['left']:,}")
    return Section("Model", (*lines, *parameter_lines(model)))


def _failures(settings: Settings, observed: Sequence[Observed], times: dict[int, str]) -> list[Section]:
    """What failed and, where there is something, what was lost."""
    from seqopt.utils.losses import is_lost

    rows = [
        (times.get(row.made_by, "")[:10], row.suggestion or UNSUGGESTED, row.identifier or "", row.string, row.failure)
        for one in observed
        for row in one.measurements
        if row.failure is not None
    ]
    header = ("day", "name", IDENTIFIER, settings.string_column, "reason")
    lost = [row for row in rows if is_lost(row[-1])]
    failed = [row for row in rows if not is_lost(row[-1])]
    found = [section_without_empty("Failures", () if failed else ("None.",), header, failed)]
    return [*found, section_without_empty("Lost", (), header, lost)] if lost else found


def section_without_empty(
    title: str, lines: tuple[str, ...], header: tuple[str, ...], rows: Sequence[tuple[str, ...]]
) -> Section:
    """A part with a table, without identifiers where there are none."""
    column = header.index(IDENTIFIER)
    if not any(row[column] for row in rows):
        header, rows = header[:column] + header[column + 1 :], [row[:column] + row[column + 1 :] for row in rows]
    return Section(title, lines, header, tuple(rows))


def _context(row: Suggestion, settings: Settings) -> tuple[str, ...]:
    """How a suggestion is to be measured, one cell for each thing in which that may differ."""
    return tuple(str(dict(row.context).get(name, "")) for name in settings.context_names)


def _predicted(row: Suggestion, settings: Settings) -> str:
    central = row.predicted(settings.transform)
    return "" if central is None else _number(central)


def _interval(row: Suggestion, settings: Settings) -> str:
    from seqopt.data import shown_interval

    return shown_interval(row.low, row.high, settings.transform, settings.objective, settings.unit)


def _number(value: float) -> str:
    return f"{value:,.4g}"
