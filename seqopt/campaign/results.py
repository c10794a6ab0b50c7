"""Results that come back from the laboratory, held against what the campaign knows.

`read_results` looks at everything in a file before anything is recorded, and lists all that is wrong with it. What it
asks for is:

- the strings: a column ``identifier`` with the names of suggestions (``B03-07``), a column of strings, or both;
- the values: a column with the name of the campaign's objective, with or without its unit (``IC50 (nM)``), or called
  ``value``, ``result`` or ``measured``;
- limits among the values (``<0.1``, ``>100``, ``≤``, ``≥``), where a measurement lies below or above what can be read;
- where strings are measured in several ways, how each was (``fidelity``, ``plate``, ...), and what it has ``cost``;
- if there are any, standard errors (``standard_error``, ``sem``, ``se``), failures (``failure``: the reason;
  ``status``: ok or failed), and labels of replicates (``replicate``).

Columns of other names are ignored and, unless seqopt wrote them or the library has them, named in a warning. A row
without value and failure has no result yet.

Whether a second result for a string is taken is decided by the rules of `seqopt.campaign.replicates`.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from seqopt.campaign.answers import HITS, check_answer
from seqopt.campaign.cells import NO_ERROR, is_reason, read_rows, unfit, wrong_cost
from seqopt.campaign.columns import COST, REPLICATE, Columns, Header, suggestion_name, wanted_names
from seqopt.campaign.differences import difference
from seqopt.campaign.entries import Identify, Owned, Remark, ResultEntry, Results, Row, lines_of, short
from seqopt.campaign.labels import library_columns
from seqopt.campaign.parents import compare_names, read_mutations
from seqopt.campaign.plates import PLATE, Plate, plate_of, plates_of, remarks_on, same_plate
from seqopt.campaign.replicates import compare_with_earlier, find_repeats
from seqopt.campaign.rows import LARGEST_VALUE, WELLS, Measurement, NewExclusion, NewMeasurement, Settings, Suggestion
from seqopt.campaign.scale import refuse_absurd, warn_of_costs, warn_of_far_values, warn_of_scale
from seqopt.campaign.store import CampaignStore
from seqopt.campaign.tables import not_written
from seqopt.campaign.units import Conversion, conversion_to, converted, foreign_unit, value_names
from seqopt.campaign.wording import counted
from seqopt.datasets.sheets import Sheet, plain_name, read_sheet
from seqopt.errors import InputError
from seqopt.utils.losses import is_lost

if TYPE_CHECKING:
    from seqopt.data import Context, ContextValue


MOST_NAMED = 10
"""Columns without a use that are named."""


def nobody(identifier: str) -> None:
    """Where nothing has an identifier of its owner's."""


def read_results(
    path: str | os.PathLike[str],
    store: CampaignStore,
    identify: Identify,
    owned: Owned = nobody,
    *,
    value_column: str | None = None,
    string_column: str | None = None,
    replicates: bool = False,
    history: bool = False,
    decimal_comma: bool | None = None,
    unit: str | None = None,
    force: bool = False,
    context: Mapping[str, ContextValue] | None = None,
) -> Results:
    """Read a file of results, and hold it against what the campaign knows; nothing is recorded.

    Read inside `CampaignStore.transaction`, so that nobody records anything between the check and the record. The rules
    are those at the top of this module and of `seqopt.campaign.replicates`.

    Args:
        path: A table with named columns, as a spreadsheet saves it, or a structure-data file: see
            `seqopt.datasets.sheets.read_sheet`.
        store: The campaign.
        identify: From a string to its key. It is only called for strings that the campaign does not hold.
        owned: From an identifier of the library to its string.
        value_column: The column of values, if it is not to be recognised; then no other is looked at.
        string_column: The column of strings, if it is not the campaign's or to be recognised.
        replicates: Results of strings that have one already are further measurements of them.
        history: The results are from elsewhere: a column of identifiers is ignored, and strings that were never
            suggested are as good as any.
        decimal_comma: Values and standard errors are written 6,5, and none 6.5. It is never guessed: 1,234 may be
            either of two numbers. By default it is as in the library of the campaign, but not in a table whose cells
            are separated by commas.
        force: Take values that lie far outside all others, too: see `seqopt.campaign.scale.refuse_absurd`.
        unit: What the values are given in, if it is not the campaign's: see `seqopt.campaign.units`.
        context: How all was measured of which the table does not say it, and which answers no suggestion.

    Raises:
        InputError: For a unit that cannot be converted to that of the campaign.

    Returns:
        What can be recorded, what is wrong, and what is worth a second look; a file that cannot be read at all is a
        problem, too.
    """
    file, settings = Path(path), store.settings
    usual = settings.decimal_comma
    expected = expected_names(settings, value_column, string_column, unit)
    try:
        sheet = read_sheet(file, expected=expected, decimal_comma=usual if decimal_comma is None else decimal_comma)
    except InputError as error:
        return Results((), (Remark(str(error)),), (), source=str(file))
    with store.reading():
        suggestions, measurements = store.suggestions(undone=True), store.measurements()
    if decimal_comma is None:
        decimal_comma = usual and sheet.may_have_commas
    results = results_of_sheet(
        sheet,
        sheet.source,
        settings,
        identify,
        owned,
        suggestions=suggestions,
        measurements=measurements,
        value_column=value_column,
        string_column=string_column,
        replicates=replicates,
        history=history,
        decimal_comma=decimal_comma,
        unit=unit,
        force=force,
        context=context,
        by_option=True,
    )
    if unused := _unused_by_anybody(results.unused, store, suggestions):
        are = "is" if len(unused) == 1 else "are"
        remark = Remark(f"{counted(len(unused), 'column')} {are} not used: {_named(unused)}", sheet.source)
        first = 1 if sheet.guessed is not None else 0  # which may explain the names
        results = replace(results, warnings=(*results.warnings[:first], remark, *results.warnings[first:]))
    known = store.recorded_files().get(sheet.sha256)
    if known is None or not results.columns:
        return results
    remark = Remark(f"this very file was recorded already, by command {known.id} at {known.time}", sheet.source)
    if replicates:
        return replace(results, records=(), problems=(remark, *results.problems))
    return replace(results, warnings=(remark, *results.warnings))


def _unused_by_anybody(names: Sequence[str], store: CampaignStore, suggestions: Sequence[Suggestion]) -> list[str]:
    """Columns of a table that are neither seqopt's nor the library's."""
    unused = not_written(names, {name for row in suggestions for name in row.cells})
    # The library, which may be large, is only read where there is something to look for.
    return not_written(unused, library_columns(store.library)) if unused else []


def _named(columns: Sequence[str]) -> str:
    shown = ", ".join(map(repr, columns[:MOST_NAMED]))
    return shown if len(columns) <= MOST_NAMED else f"{shown} and {len(columns) - MOST_NAMED} others"


def expected_names(
    settings: Settings, value_column: str | None = None, string_column: str | None = None, unit: str | None = None
) -> set[str]:
    """Names of columns that a table of results may have, as `seqopt.datasets.sheets.read_sheet` takes them."""
    return set().union(*wanted_names(settings, value_column, string_column, unit).values())


def results_of_sheet(
    sheet: Sheet,
    source: str,
    settings: Settings,
    identify: Identify,
    owned: Owned = nobody,
    *,
    suggestions: Sequence[Suggestion] = (),
    measurements: Sequence[Measurement] = (),
    value_column: str | None = None,
    string_column: str | None = None,
    replicates: bool = False,
    history: bool = False,
    decimal_comma: bool = False,
    unit: str | None = None,
    force: bool = False,
    context: Mapping[str, ContextValue] | None = None,
    by_option: bool = False,
) -> Results:
    """Hold the cells of a table against what is known; the other arguments are those of `read_results`.

    Args:
        sheet: The cells.
        source: What messages call the table.
        settings: Of the campaign.
        identify: From a string to its key.
        owned: From an identifier of the library to its string.
        suggestions: All suggestions so far, those that were undone among them.
        measurements: All measurements that count.
        value_column: The column of values.
        string_column: The column of strings.
        replicates: Whether results of strings that have one already are further measurements of them.
        history: Whether the results are from elsewhere.
        decimal_comma: Whether numbers are written 6,5.
        unit: What values are given in.
        force: Whether to take values that lie far outside all others.
        context: How all was measured of which the table does not say it.
        by_option: Whether ``value_column`` is an option of whoever reads the table, which messages then name.
    """
    if unit is not None and settings.yes_no:
        raise InputError(f"results that are yes or no have no unit: leave {unit} out")
    conversion = None if unit is None else conversion_to(settings, unit)
    wanted = wanted_names(settings, value_column, string_column, unit)
    warnings: list[Remark] = []
    if sheet.guessed is not None:
        line, text = sheet.guessed
        message = "the file is neither UTF-8 nor UTF-16 and was read as Windows-1252: check that this line is right"
        warnings.append(Remark(message, source, line, value=text))
    values = settings.objective if conversion is None else value_names(settings, unit)[0]
    names = value_column or values, string_column or settings.string_column
    head = Header(wanted, settings, *names, history, by_option)
    columns, header, problems = head.find(sheet, source)
    if problems:
        return Results((), tuple(problems), tuple(warnings), (), source, sheet.sha256)
    rows = read_rows(sheet, header, columns, source, settings, decimal_comma)
    if conversion is not None:
        _convert(rows, conversion)
        warnings.append(Remark(conversion.describe(), source))
    for _, name in columns.get("value", []):
        if (said := foreign_unit(settings, name, unit)) is not None:
            message = f"the column says {said}, and its values are taken as {unit or 'those of the campaign'}"
            warnings.append(Remark(message, source, column=name))
    if not {"value", HITS} & columns.keys() and not settings.constraints and not all(row.has_result for row in rows):
        message = f"there is no column {names[0]!r}, and not every row has a reason for a failure"
        told = head.listed(map(str.strip, sheet.rows[header]), columns)
        problems.append(Remark(f"{message}; {told}", source, sheet.lines[header]))
    checked = _check(
        rows,
        suggestions,
        measurements,
        identify,
        owned,
        settings,
        source,
        replicates=replicates,
        history=history,
        force=force,
        usual=context,
    )
    return Results(
        () if problems else checked.records,
        (*problems, *checked.problems, *(_unread(record, source) for record in sheet.unread)),
        (*warnings, *checked.warnings),
        checked.unfilled,
        source,
        sheet.sha256,
        {role: " and ".join(name for _, name in matches) for role, matches in columns.items()},
        checked.discards if not problems else {},
        checked.exclusions if not problems else (),
        _unused(sheet, header, columns, wanted["identifier"] if history else ()),
    )


def _unused(sheet: Sheet, header: int, columns: Columns, ignored: Collection[str]) -> tuple[str, ...]:
    """Columns that hold something and were taken for nothing, but for those that are to be ignored."""
    used = {index for matches in columns.values() for index, _ in matches}
    rows = sheet.rows[header + 1 :]
    return tuple(
        name.strip()
        for index, name in enumerate(sheet.rows[header])
        if index not in used
        and name.strip()
        and plain_name(name) not in ignored
        and any(index < len(cells) and cells[index].strip() for cells in rows)
    )


def _convert(rows: Iterable[Row], conversion: Conversion) -> None:
    for row in rows:
        try:
            row.entry = converted(row.entry, conversion)
        except InputError as error:
            row.wrong(str(error))


def _unread(record: tuple[int, str, str], source: str) -> Remark:
    """What is wrong with a record of a structure-data file."""
    line, what, why = record
    return Remark(f"cannot be read: {why}", source, line, value=what)


def check_entries(
    entries: Iterable[ResultEntry],
    store: CampaignStore,
    identify: Identify,
    owned: Owned = nobody,
    *,
    replicates: bool = False,
    history: bool = False,
    force: bool = False,
) -> Results:
    """Hold results that are not in a file against what the campaign knows, by the rules of `read_results`."""
    settings = store.settings
    rows = [Row(entry, "") for entry in entries]
    for row in rows:
        for number in (row.entry.value, row.entry.standard_error):
            if number is not None and not abs(number) <= LARGEST_VALUE:
                row.wrong(f"is not a value: expected a number up to {LARGEST_VALUE:g}", repr(number))
        if row.entry.value is not None and (problem := unfit(row.entry.value, settings.transform)):
            row.wrong(problem, repr(row.entry.value))
        if row.entry.censored is not None and row.entry.standard_error is not None:
            row.wrong(NO_ERROR, repr(row.entry.standard_error))
        check_answer(row, settings)
        _check_further(row, settings)
        if row.entry.cost is not None and (problem := wrong_cost(row.entry.cost, settings)):
            row.wrong(problem, repr(row.entry.cost), COST)
        if row.entry.failure is not None and (row.entry.value is not None or row.entry.wells is not None):
            row.wrong("needs a value or a reason for its failure, and not both")
        elif row.entry.failure is not None and not is_reason(row.entry.failure):
            failure = row.entry.failure
            row.wrong(
                "is not a reason for a failure: say what happened", failure if failure.strip() else "an empty text"
            )
    with store.reading():
        suggestions, measurements = store.suggestions(undone=True), store.measurements()
    return _check(
        rows,
        suggestions,
        measurements,
        identify,
        owned,
        settings,
        "",
        replicates=replicates,
        history=history,
        force=force,
    )


def _check(
    rows: Sequence[Row],
    suggestions: Sequence[Suggestion],
    measurements: Sequence[Measurement],
    identify: Identify,
    owned: Owned,
    settings: Settings,
    source: str,
    *,
    replicates: bool,
    history: bool,
    force: bool,
    usual: Mapping[str, ContextValue] | None = None,
) -> Results:
    warnings: list[Remark] = []
    if settings.space.get("kind") == "molecule":
        _read_inchi(rows)
    read_mutations(rows, settings)
    _identify(rows, suggestions, measurements, identify, owned, history=history)
    compare_names(rows, settings)
    if not history:
        _refuse_other_wells(rows, settings)
    plates = {}
    if settings.plates:
        counting = [row for row in suggestions if row.undone_by is None]
        plates = {plate.name: plate for plate in plates_of(settings, counting, measurements)}
    _find_contexts(rows, settings, warnings, source, usual, plates)
    answered = [row for row in rows if row.has_result]
    earlier: dict[tuple[str, Context], list[Measurement]] = {}
    for measurement in measurements:
        earlier.setdefault((measurement.key, measurement.context), []).append(measurement)
    # Wells of one string on several rows of a table are what yes and no are repeated for.
    find_repeats(answered, warnings, replicates=replicates or settings.yes_no)
    waiting = {(row.key, row.context): row for row in suggestions if row.status == "open"}
    for row in answered:
        before = earlier.get((row.key or "", row.context), [])
        # What only failed and was suggested again is awaited.
        awaited = (row.key, row.context) in waiting and all(one.failure is not None for one in before)
        if awaited:
            _answer_the_open_one(row, waiting[row.key or "", row.context], before, warnings)
        elif row.key is not None:
            compare_with_earlier(row, earlier.get((row.key, row.context), []), warnings, replicates=replicates)
    if not force and not settings.yes_no:
        for context in dict.fromkeys(row.context for row in answered):
            refuse_absurd(
                [row for row in answered if row.context == context and not row.problems],
                [row for row in measurements if row.context == context],
                settings,
            )
    sound = [row for row in answered if not row.problems]
    for row in sound:
        if row.entry.failure is not None and _sounds_lost(row.entry.failure):
            warnings.append(
                row.remark(
                    "counts as a failure of its string, which teaches that such strings fail: if it was lost instead, "
                    "correct the reason to one that begins with 'lost:'"
                )
            )
    if settings.plates:
        _remark_on_plates(sound, plates, warnings, source)
    if not history:
        _warn_of_status(sound, suggestions, warnings)
    # What is measured in different ways may be of different sizes; yes and no have none.
    for context in dict.fromkeys(row.context for row in sound if not settings.yes_no):
        new = [row for row in sound if row.context == context]
        before = [row for row in measurements if row.context == context]
        said = len(warnings)
        told = [row for row in suggestions if row.context == context]
        warn_of_scale(new, before, told, settings, source, warnings)
        if len(warnings) == said:
            warn_of_far_values(new, before, settings, source, warnings)
    warn_of_costs(sound, measurements, settings, source, warnings)
    withdrawn = [
        NewExclusion(row.entry.string or "", row.key, row.entry.remark, row.entry.owned)
        for row in rows
        if row.entry.status == "withdrawn" and history and row.key is not None and not row.has_result
    ]
    return Results(
        tuple(_record(row, source, history=history) for row in sound),
        tuple(problem for row in rows for problem in row.problems),
        tuple(sorted(warnings, key=lambda remark: remark.line or 0)),
        tuple(row.entry.line for row in rows if not row.has_result and not row.problems and row.entry.line is not None),
        source,
        discards={number: row.entry.remark for number, row in enumerate(sound) if row.entry.status == "discarded"},
        exclusions=tuple(withdrawn),
    )


def _answer_the_open_one(row: Row, awaited: Suggestion, before: Sequence[Measurement], warnings: list[Remark]) -> None:
    """Where a row names a suggestion that failed, and that was made again since under another name."""
    old = row.suggestion
    if old is None or old.status != "failed" or old.name == awaited.name:
        return
    if row.has_value:
        row.suggestion = awaited
        warnings.append(row.remark(f"is awaited as {awaited.name} by now: its result counts as that of {awaited.name}"))
        return
    known = next((one for one in reversed(before) if one.suggestion == old.name), None)
    what = "failed" if known is None else f"failed ({known.failure}) by command {known.made_by}"
    row.wrong(
        f"{what}, and is awaited as {awaited.name} by now",
        old.name,
        hint=f"if that one failed or was lost as well, say {awaited.name}",
    )


def _record(row: Row, source: str, *, history: bool) -> NewMeasurement:
    entry, suggestion = row.entry, row.suggestion
    string = entry.string or (suggestion.string if suggestion is not None else "")
    return NewMeasurement(
        string,
        row.key or "",
        entry.value,
        entry.failure,
        entry.standard_error,
        entry.replicate,
        source or None,
        entry.line,
        None if suggestion is None else suggestion.name,
        # Of a suggestion of this campaign, its own row says that.
        ({"prediction": dict(entry.prediction)} if history and entry.prediction else {})
        | ({} if entry.wells is None or entry.value is None else {WELLS: entry.wells}),
        context=row.context,
        further=dict(entry.further),
        censored=entry.censored,
        cost=entry.cost,
        identifier=entry.owned or (suggestion.identifier if suggestion is not None else None),
    )


def _check_further(row: Row, settings: Settings) -> None:
    """Hold values of what is measured besides the objective against what the campaign measures."""
    if not row.entry.further:
        return
    outcomes = {outcome.name: outcome for outcome in settings.outcomes()[1:]}
    for name, value in row.entry.further.items():
        if name not in outcomes:
            known = ", ".join(map(repr, outcomes)) or "nothing else"
            row.wrong(f"is not measured besides {settings.objective!r} in this campaign: it has {known}", name)
        elif not abs(value) <= LARGEST_VALUE:
            row.wrong(f"is not a value of {name}: expected a number up to {LARGEST_VALUE:g}", repr(value))
        elif problem := unfit(value, outcomes[name].transform.name):
            row.wrong(problem, repr(value))


def _find_contexts(
    rows: Sequence[Row],
    settings: Settings,
    warnings: list[Remark],
    source: str,
    usual: Mapping[str, ContextValue] | None = None,
    plates: Collection[str] = (),
) -> None:
    """How each string was measured: as its suggestion says or, if there is none, as the row says, or as the target."""
    contexts = settings.made_contexts()
    silent: list[Row] = []
    if contexts is not None:
        from seqopt.data import as_context
    for row in rows:
        said = row.entry.context if row.suggestion is not None else {**(usual or {}), **row.entry.context}
        if settings.plates and PLATE in said:
            said = {**said, PLATE: same_plate(str(said[PLATE]), plates)}
        if contexts is None:
            if said:
                row.wrong(f"is said to be measured with {_said(said)}, but this campaign knows only one way to measure")
            continue
        given = dict(contexts.target if row.suggestion is None else row.suggestion.context)
        if row.suggestion is not None and any(given.get(name) != value for name, value in said.items()):
            row.wrong(
                f"is to be measured with {_said(given)}, but its result is said to be with {_said(said)}: give the "
                "string instead of the identifier if both are right"
            )
            continue
        try:
            row.context = as_context(given | dict(said))
            contexts.check(row.context)
        except InputError as error:
            row.wrong(str(error) if row.context or not settings.plates else _no_plate(plates))
            continue
        if row.suggestion is None and row.has_result and set(said) < set(given):
            silent.append(row)
    if silent and contexts is not None:
        meant = _said(dict(contexts.target))
        who = (
            "1 result does not say how it was"
            if len(silent) == 1
            else f"{len(silent)} results do not say how they were"
        )
        message = f"{who} measured in all respects: {meant} is assumed"
        warnings.append(Remark(f"{message} ({lines_of(silent)})", source))


def _no_plate(plates: Collection[str]) -> str:
    """What is to be said of a result without its plate."""
    there = f" (there are {', '.join(plates)})" if plates else ""
    return (
        f"does not say on which plate it was measured{there}, and plates differ: give the identifier of its "
        "suggestion, a column 'plate', or --plate P1"
    )


def _sounds_lost(reason: str) -> bool:
    """Whether a reason may mean that a measurement was lost, and is not written so.

    Example:
        >>> [_sounds_lost(reason) for reason in ("LOST in the post", "lost: in the post", "lost", "glossy")]
        [True, False, False, False]
    """
    return not is_lost(reason) and reason.strip().casefold().startswith(("lost ", "loss "))


def _remark_on_plates(sound: Sequence[Row], plates: Mapping[str, Plate], warnings: list[Remark], source: str) -> None:
    """New and closed plates among results."""
    by_plate: dict[str, list[Row]] = {}
    for row in sound:
        by_plate.setdefault(plate_of(row.context), []).append(row)
    for name, rows in by_plate.items():
        if text := remarks_on(name, len(rows), plates, all(row.suggestion is not None for row in rows)):
            warnings.append(Remark(text, source))


def _said(context: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in context.items())


def _read_inchi(rows: Iterable[Row]) -> None:
    """Structures that are written as InChI become SMILES."""
    from seqopt.strings.notations import is_inchi, smiles_of_inchi

    for row in rows:
        string = row.entry.string
        if string is not None and is_inchi(string):
            smiles = smiles_of_inchi(string)
            if smiles is None:
                row.wrong("is an InChI that RDKit cannot read", string)
            row.entry = replace(row.entry, string=smiles)


def _identify(
    rows: Sequence[Row],
    suggestions: Sequence[Suggestion],
    measurements: Sequence[Measurement],
    identify: Identify,
    owned: Owned,
    *,
    history: bool,
) -> None:
    """Find the key and the suggestion of each row."""
    by_name = {suggestion.name: suggestion for suggestion in suggestions}
    keys = {known.string: known.key for known in suggestions} | {known.string: known.key for known in measurements}
    for row in rows:
        _find_owned(row, by_name, owned)
        identifier, string = row.entry.identifier, row.entry.string
        if identifier is None and string is None:
            if not row.problems:
                row.wrong("the row has neither an identifier nor a string")
            continue
        if identifier is not None:
            row.suggestion = _suggestion_of(row, identifier, by_name, string)
        if string is not None:
            try:
                row.key = keys[string] if string in keys else keys.setdefault(string, identify(string))
            except InputError as error:
                row.wrong(f"cannot be used: {error}", row.written or string)
                continue
            if row.suggestion is not None and row.suggestion.key != row.key:
                meant = row.suggestion.string
                row.wrong(
                    f"is not {row.suggestion.name}, which is {short(meant)}{_changes(meant, string)}",
                    row.written or string,
                )
            if not history:
                _refuse_another(row, identify, owned)
        elif row.suggestion is not None:
            row.key = row.suggestion.key
        called = row.entry.owned
        if row.suggestion is not None and called and row.suggestion.identifier not in (None, called) and not history:
            row.wrong(f"is not {row.suggestion.name}, which is {row.suggestion.identifier}", called)


def _changes(meant: str, string: str) -> str:
    """In what a string of letters differs from the one that was suggested, where both are too long to be shown."""
    if len(meant) != len(string) or short(meant) == repr(meant) or not (meant + string).isalpha():
        return ""
    return f": {difference(meant, string.upper(), 'text') or 'the same in other letters'}"


def _refuse_another(row: Row, identify: Identify, owned: Owned) -> None:
    """Refuse a row of a string that its owner calls otherwise: one of two columns was sorted by itself."""
    called, string = row.entry.owned, row.entry.string
    meant = owned(called) if called else None
    if called is None or meant is None or meant == string:
        return
    if identify(meant) != row.key:
        row.wrong(
            f"is {short(meant)}, and not {short(row.written or string or '')}: which of the two was measured?", called
        )


def _refuse_other_wells(rows: Iterable[Row], settings: Settings) -> None:
    """Refuse the label of a well of the confirmation that another string was planned for, or that there is not."""
    from seqopt.campaign.confirming import KEPT, Plan

    plan = Plan.of(settings.extra.get(KEPT))
    if plan is None or not plan.plates:
        return
    planned = plan.planned()
    for row in rows:
        label = (row.entry.replicate or "").strip()
        if row.key is None or not label:
            continue
        if label in planned:
            string, key = planned[label]
            if key != row.key:
                row.wrong(f"is the well of {short(string)}: which of the two strings was in it?", label, REPLICATE)
        elif re.fullmatch(rf"C{plan.number}-\d+", label):
            row.wrong(
                f"is no well of the confirmation: its wells are {plan.label(0)} to {plan.label(len(planned) - 1)}; "
                "leave the label of a further measurement empty, or call it something else",
                label,
                REPLICATE,
            )


def _find_owned(row: Row, by_name: Mapping[str, Suggestion], owned: Owned) -> None:
    """Find the string of a row that says what its owner calls it, in a column of its own or in that of suggestions."""
    entry = row.entry
    identifier = entry.identifier
    if identifier is not None and suggestion_name(identifier) not in by_name:
        string = owned(identifier)
        if string is not None:
            row.entry = replace(entry, identifier=None, owned=identifier, string=entry.string or string)
    elif identifier is None and entry.string is None and entry.owned is not None:
        string = owned(entry.owned)
        if string is None:
            row.wrong("is not an identifier of a candidate", entry.owned)
        row.entry = replace(entry, string=string)


def _suggestion_of(
    row: Row, identifier: str, by_name: Mapping[str, Suggestion], string: str | None
) -> Suggestion | None:
    name = suggestion_name(identifier)
    suggestion = by_name.get(name)
    if suggestion is None:
        close = difflib.get_close_matches(name, by_name, n=1)
        row.wrong("is not an identifier of a suggestion" + (f": is {close[0]} meant?" if close else ""), identifier)
    elif suggestion.undone_by is not None and string is not None and string.strip() == suggestion.string:
        # Its string is known, and what was measured counts whether it is suggested or not.
        return None
    elif suggestion.undone_by is not None:
        row.wrong(f"is a suggestion that command {suggestion.undone_by} took back: give the string instead", identifier)
        return None
    return suggestion


def _warn_of_status(sound: Sequence[Row], suggestions: Sequence[Suggestion], warnings: list[Remark]) -> None:
    from seqopt.campaign.confirming import WELL

    by_query: dict[tuple[str, Context], Suggestion] = {}
    for suggestion in suggestions:
        query = suggestion.key, suggestion.context
        if suggestion.undone_by is None and (query not in by_query or by_query[query].status != "open"):
            by_query[query] = suggestion
    strangers = []
    for row in sound:
        answered = row.suggestion or by_query.get((row.key or "", row.context))
        if answered is None:
            # Wells of a confirmation were proposed, too.
            strangers += [] if WELL.fullmatch((row.entry.replicate or "").strip()) else [row]
        elif answered.status == "withdrawn":
            warnings.append(row.remark(f"has a result now: {answered.name} was withdrawn"))
    if len(strangers) == 1:
        warnings.append(strangers[0].remark("was never suggested; this is not a problem"))
    elif strangers:
        message = f"{len(strangers)} strings were never suggested; this is not a problem"
        warnings.append(Remark(f"{message} ({lines_of(strangers)})", strangers[0].source))
