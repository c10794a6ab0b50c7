"""Files that go to the laboratory and come back: batches to be measured, and results.

`read_results` looks at everything in a file before anything is recorded, and lists all that is wrong with it. What it
asks for is:

- the strings: a column ``identifier`` with the names of suggestions (``B03-07``), a column of strings, or both;
- the values: a column with the name of the campaign's objective, with or without its unit (``IC50 (nM)``), or called
  ``value``, ``result`` or ``measured``;
- if there are any, standard errors (``standard_error``, ``sem``, ``se``), failures (``failure``: the reason;
  ``status``: ok or failed), and labels of replicates (``replicate``).

Columns of other names are ignored. A row without value and failure has no result yet.

A second result for a string is only taken if someone says that it is one, so that the same results are never recorded
twice by mistake:

1. Several rows for one string in a file are taken if ``replicates`` is set, or if a column ``replicate`` tells them
   apart. The same label twice is always a problem.
2. A result for a string that has one is taken if ``replicates`` is set, or if the row has a label that no earlier
   result of the string has. An earlier label again is always a problem.
3. A value for a string that so far only failed is taken.
4. With ``replicates``, a file that was recorded before, byte for byte, is refused.

What was recorded before is kept in every case, replicate by replicate.
"""

from __future__ import annotations

import difflib
import math
import os
import re
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seqopt.campaign.rows import Measurement, NewMeasurement, Settings, Suggestion
from seqopt.campaign.store import LARGEST_VALUE, CampaignStore
from seqopt.datasets.sheets import NUMBER, SEPARATORS, Cell, Sheet, check_format, plain_name, read_sheet, write_sheet
from seqopt.errors import InputError

Identify = Callable[[str], str]
"""From a string to its key; raises `InputError` for a string that is not allowed."""

IDENTIFIER, STANDARD_ERROR, FAILURE, REPLICATE = "identifier", "standard_error", "failure", "replicate"
"""Names of the columns that `write_batch` writes and `read_results` reads."""

THOUSANDFOLD = 300.0
"""Factor to the median from which on a value seems to be in another unit."""

SPREADS = 6.0
"""The same as a multiple of the median distance of values from their median, in logarithms."""

FEWEST_FOR_SCALE = 3
"""Values that it takes to know their scale."""

_NAMES = {
    "identifier": ("identifier", "suggestion", "suggestion_id"),
    "string": ("string", "smiles", "structure", "sequence", "molecule", "protein", "gene", "expression"),
    "value": ("value", "result", "measured", "measured_value", "measurement"),
    "standard_error": ("standard_error", "std_error", "stderr", "sem", "se"),
    "failure": ("failure", "failure_reason"),
    "status": ("status",),
    "replicate": ("replicate", "replicate_id"),
}
_TOLD: Mapping[str, Callable[[Suggestion], Cell]] = {
    "predicted_mean": lambda row: row.mean,
    "predicted_std": lambda row: row.std,
    "predicted_low": lambda row: row.low,
    "predicted_high": lambda row: row.high,
    "acquisition": lambda row: row.acquisition,
    "acquisition_value": lambda row: row.score,
    "why": lambda row: row.reason.get("kind"),
    "nearest_measured": lambda row: row.reason.get("nearest"),
    "similarity": lambda row: row.reason.get("similarity"),
}
_DONE = frozenset({"ok", "done", "measured", "success", "valid"})
_FAILED = frozenset({"failed", "fail", "failure", "error", "invalid"})
_NO = frozenset({"no", "n", "false", "0", "none", "na", "n/a", "-"})
_YES = frozenset({"yes", "y", "true", "1", "x"})
_NOT_YET = frozenset({"", "open", "pending", "planned", "withdrawn"})
_MISSING = frozenset({"na", "n/a", "nan", "nd", "n.d.", "n.d", "none", "null", "-", "--", "?", ".", "missing"})
_HEADER_WITHIN = 10
_FILLED_IN = ("value", "standard_error", "failure", "status", "replicate")
_BESIDE = ("", "-wal", "-shm", "-journal", "-run")  # a campaign's file, and what lies beside it while it is open
_BYTE_ORDER_MARKS = re.compile("\ufeff|\u00ef\u00bb\u00bf")  # the second is the first, read as Windows-1252


@dataclass(frozen=True)
class Remark:
    """Something that is wrong with a file, or worth a second look.

    Attributes:
        message: What, and what was expected.
        source: The file.
        line: The line, counted from 1; `None` for what concerns the whole file.
        column: The column.
        value: What stands there.
    """

    message: str
    source: str = ""
    line: int | None = None
    column: str | None = None
    value: str | None = None

    def __str__(self) -> str:
        place = [self.source] if self.source else []
        place += [f"line {self.line}"] if self.line is not None else []
        place += [f"column {self.column!r}"] if self.column is not None else []
        shown = "" if self.value is None else f"{_short(self.value)} "
        return (", ".join(place) + ": " if place else "") + shown + self.message


@dataclass(frozen=True)
class Entry:
    """A result as somebody gave it.

    Attributes:
        string: The string, if it is given.
        identifier: The name of a suggestion, if it is given.
        value: The value.
        failure: Why there is none.
        standard_error: Of the value.
        replicate: What tells it from other results of the string.
        line: Its line in a file.
    """

    string: str | None = None
    identifier: str | None = None
    value: float | None = None
    failure: str | None = None
    standard_error: float | None = None
    replicate: str | None = None
    line: int | None = None


@dataclass(frozen=True)
class Results:
    """What became of a file of results.

    Attributes:
        records: Results that can be recorded, in the order of the file.
        problems: All that is wrong, by line. A row with a problem is not among ``records``; a problem of the whole file
            leaves none.
        warnings: What is worth a second look, and hinders nothing.
        unfilled: Lines that name a string and have no result yet.
        source: The file.
        sha256: Its checksum.
        columns: Which column was taken for what.
    """

    records: tuple[NewMeasurement, ...]
    problems: tuple[Remark, ...]
    warnings: tuple[Remark, ...]
    unfilled: tuple[int, ...] = ()
    source: str = ""
    sha256: str = ""
    columns: dict[str, str] = field(default_factory=dict)

    @property
    def arguments(self) -> dict[str, Any]:
        """What belongs among the arguments of the command that records them."""
        return {"file": self.source, "sha256": self.sha256} if self.source else {}


@dataclass
class _Row:
    """An entry while it is looked at."""

    entry: Entry
    source: str
    problems: list[Remark] = field(default_factory=list)
    key: str | None = None
    suggestion: Suggestion | None = None

    @property
    def has_result(self) -> bool:
        return self.entry.value is not None or self.entry.failure is not None

    @property
    def shown(self) -> str:
        return " ".join(part for part in (self.entry.identifier, self.entry.string) if part)

    def remark(self, message: str, value: str | None = None, column: str | None = None) -> Remark:
        return Remark(message, self.source, self.entry.line, column, (self.shown if value is None else value) or None)

    def wrong(self, message: str, value: str | None = None, column: str | None = None) -> None:
        self.problems.append(self.remark(message, value, column))


def read_results(
    path: str | os.PathLike[str],
    store: CampaignStore,
    identify: Identify,
    *,
    value_column: str | None = None,
    string_column: str | None = None,
    replicates: bool = False,
    history: bool = False,
    decimal_comma: bool = False,
) -> Results:
    """Read a file of results, and hold it against what the campaign knows; nothing is recorded.

    Read inside `CampaignStore.transaction`, so that nobody records anything between the check and the record. The rules
    are those at the top of this module.

    Args:
        path: A table with named columns, as a spreadsheet saves it: see `seqopt.datasets.sheets.read_sheet`.
        store: The campaign.
        identify: From a string to its key. It is only called for strings that the campaign does not hold.
        value_column: The column of values, if it is not to be recognised; then no other is looked at.
        string_column: The column of strings, if it is not the campaign's or to be recognised.
        replicates: Results of strings that have one already are further measurements of them.
        history: The results are from elsewhere: a column of identifiers is ignored, and strings that were never
            suggested are as good as any.
        decimal_comma: Values and standard errors are written 6,5, and none 6.5. It is never guessed: 1,234 may be
            either of two numbers.

    Returns:
        What can be recorded, what is wrong, and what is worth a second look; a file that cannot be read at all is a
        problem, too.
    """
    file, settings = Path(path), store.settings
    wanted = _wanted_names(settings, value_column, string_column)
    try:
        sheet = read_sheet(file, expected=set().union(*wanted.values()))
    except InputError as error:
        return Results((), (Remark(str(error)),), (), source=str(file))
    warnings: list[Remark] = []
    if sheet.guessed is not None:
        line, text = sheet.guessed
        message = "the file is neither UTF-8 nor UTF-16 and was read as Windows-1252: see whether this line is right"
        warnings.append(Remark(message, str(file), line, value=text))
    names = value_column or settings.objective, string_column or settings.string_column
    columns, header, problems = _Header(wanted, settings, *names, history).find(sheet, str(file))
    if problems:
        return Results((), tuple(problems), tuple(warnings), (), str(file), sheet.sha256)
    rows = _parse(sheet, header, columns, str(file), settings, decimal_comma)
    known = store.recorded_files().get(sheet.sha256)
    if known is not None:
        message = f"this very file was recorded already, by command {known.id} at {known.time}"
        target = problems if replicates else warnings
        target.append(Remark(message, str(file)))
    if "value" not in columns and not all(row.has_result for row in rows):
        message = f"there is no column {names[0]!r}, and not every row has a reason for a failure"
        problems.append(Remark(message, str(file), sheet.lines[header]))
    checked = _check(rows, store, identify, settings, str(file), replicates=replicates, history=history)
    return Results(
        () if problems else checked.records,
        (*problems, *checked.problems),
        (*warnings, *checked.warnings),
        checked.unfilled,
        str(file),
        sheet.sha256,
        {role: " and ".join(name for _, name in places) for role, places in columns.items()},
    )


def check_entries(
    entries: Iterable[Entry],
    store: CampaignStore,
    identify: Identify,
    *,
    replicates: bool = False,
    history: bool = False,
) -> Results:
    """Hold results that are not in a file against what the campaign knows, by the rules of `read_results`."""
    settings = store.settings
    rows = [_Row(entry, "") for entry in entries]
    for row in rows:
        for number in (row.entry.value, row.entry.standard_error):
            if number is not None and not abs(number) <= LARGEST_VALUE:
                row.wrong(f"is no value: expected a number up to {LARGEST_VALUE:g}", repr(number))
        if row.entry.value is not None and (problem := _unfit(row.entry.value, settings)):
            row.wrong(problem, repr(row.entry.value))
        # In a table these words and an empty cell say that nothing failed, or only that something did: an export would
        # not be read back.
        if row.entry.failure is not None and row.entry.failure.strip().casefold() in _NO | _YES | {""}:
            row.wrong("is no reason for a failure: say what happened", repr(row.entry.failure))
    return _check(rows, store, identify, settings, "", replicates=replicates, history=history)


def write_batch(
    path: str | os.PathLike[str],
    suggestions: Sequence[Suggestion],
    settings: Settings,
    further: Mapping[str, Sequence[Cell]] | None = None,
) -> None:
    """Write suggestions as a table that `read_results` reads once the last columns are filled in.

    The columns are the identifier, the string, what was predicted (mean, standard deviation, interval), acquisition
    function and its value, why it was chosen (``why``, ``nearest_measured``, ``similarity``), the further ones, and
    empty ones for the value, its standard error and a reason for failure.

    Args:
        path: A .csv or .tsv file.
        suggestions: In the order in which they shall stand.
        settings: Of the campaign.
        further: More columns, each as long as ``suggestions``. One whose name would be taken for that of another column
            is called ``NAME (library)``; of those about a suggestion, one by the name of the objective or of the column
            of strings is called ``NAME (suggestion)``.

    Raises:
        InputError: If a column is of another length, the file cannot be written, or for names as in
            `check_column_names`.
    """
    # Some name the objective with its unit.
    unit = f" ({settings.unit})" if settings.unit and not settings.objective.endswith(f"({settings.unit})") else ""
    value = settings.objective + unit
    check_column_names(settings)
    wanted = _wanted_names(settings, None, None)
    own = {plain_name(settings.string_column)}.union(*(names for role, names in wanted.items() if role != "string"))
    told = _told_apart(_TOLD, own, "suggestion")
    table: dict[str, Sequence[Cell]] = {
        IDENTIFIER: [row.name for row in suggestions],
        settings.string_column: [row.string for row in suggestions],
    }
    table |= {told[name]: [cell(row) for row in suggestions] for name, cell in _TOLD.items()}
    for name, shown in _told_apart(further or {}, own | {plain_name(name) for name in table}, "library").items():
        cells = (further or {})[name]
        if len(cells) != len(suggestions):
            raise InputError(f"column {name!r} has {len(cells)} cells for {len(suggestions)} suggestions")
        table[shown] = cells
    to_fill = (value, STANDARD_ERROR, FAILURE)
    table |= {name: [None] * len(suggestions) for name in to_fill}
    write_sheet(path, list(table), zip(*table.values(), strict=True))


def check_column_names(settings: Settings) -> None:
    """Refuse an objective or a column of strings by the name of another column that tables of results have.

    Raises:
        InputError: If two of them would be one, in whatever letters and with or without the unit.
    """
    others = {plain_name(name): name for name in (IDENTIFIER, STANDARD_ERROR, FAILURE, REPLICATE)}
    strings = plain_name(settings.string_column)
    if strings in others:
        raise InputError(
            f"the column of strings is called {settings.string_column!r}, as another column of tables of results is: "
            "rename it in the file"
        )
    unit = f" {settings.unit}" if settings.unit else ""
    for name in (settings.objective, settings.objective + unit):
        if plain_name(name) in others or plain_name(name) == strings:
            raise InputError(
                f"the objective is called {name!r}, as another column of tables of results is: give what is measured a "
                "name of its own, such as 'pIC50'"
            )


def check_target(path: str | os.PathLike[str], store: CampaignStore) -> None:
    """Refuse to write over the library of a campaign, or over a campaign.

    Raises:
        InputError: If the path leads to one of them, by whatever name.
    """
    target, pool = Path(path), store.library
    if pool is not None and _same_file(target, Path(pool["path"])):
        raise InputError(f"{target} is the library of the campaign, which it needs as it is: choose another name")
    beside = (store.path.with_name(store.path.name + ending) for ending in _BESIDE)
    if target.suffix == ".seqopt" or any(_same_file(target, file) for file in beside):
        raise InputError(f"{target} is the file of a campaign: choose another name")


def check_batch_target(path: str | os.PathLike[str], store: CampaignStore) -> None:
    """Refuse to write a batch over anything but a batch without any result.

    Raises:
        InputError: For a file that is something else, or in which results were filled in; see also `check_target` and
            `seqopt.datasets.sheets.check_format`.
    """
    check_format(path)
    check_target(path, store)
    file = Path(path)
    if not file.is_dir() and (not file.exists() or not file.stat().st_size):
        return
    settings = store.settings
    wanted = _wanted_names(settings, None, None)
    other = f"{file} is there already, and is no batch of this campaign that waits for results: choose another name"
    try:
        sheet = read_sheet(file, expected=set().union(*wanted.values()))
    except InputError as error:
        raise InputError(f"{other} ({error})") from error
    names = settings.objective, settings.string_column
    columns, _ = _Header(wanted, settings, *names, history=False).columns(sheet.rows[0])
    if plain_name(sheet.rows[0][0]) != IDENTIFIER or "value" not in columns:
        raise InputError(other)
    places = [place for role in _FILLED_IN for place, _ in columns.get(role, [])]
    filled = [
        line
        for cells, line in zip(sheet.rows[1:], sheet.lines[1:], strict=True)
        if any(place < len(cells) and cells[place].strip() for place in places)
    ]
    if filled:
        raise InputError(
            f"{file} holds results in {_listed(filled)}, which would be lost: record it (seqopt campaign record), if "
            "that is not done yet, and choose another name"
        )


def measurements_table(store: CampaignStore) -> tuple[list[str], list[list[Cell]]]:
    """All measurements that count, one by one, as the header and the rows of a table that `read_results` reads."""
    with store.reading():
        settings = store.settings
        commands = {command.id: command for command in store.history()}
        rows = store.measurements()
    header = [IDENTIFIER, settings.string_column, settings.objective, STANDARD_ERROR, FAILURE, REPLICATE]
    taken = {plain_name(name) for name in header}.union(*_wanted_names(settings, None, None).values())
    header += _told_apart(("key", "source", "line", "command", "recorded"), taken, "seqopt").values()
    return header, [
        [
            row.suggestion,
            row.string,
            row.value,
            row.standard_error,
            row.failure,
            row.replicate,
            row.key,
            row.source,
            row.line,
            row.made_by,
            commands[row.made_by].time,
        ]
        for row in rows
    ]


def _told_apart(names: Iterable[str], taken: set[str], origin: str) -> dict[str, str]:
    """Names of columns, and what they are called where some are ``taken``: no two are alike."""
    given = list(names)
    used = taken | {plain_name(name) for name in given}
    found = {}
    for name in given:
        shown, number = name, 1
        while plain_name(shown) in (taken if shown == name else used):
            shown = f"{name} ({origin})" if number == 1 else f"{name} ({origin} {number})"
            number += 1
        used.add(plain_name(shown))
        found[name] = shown
    return found


def _same_file(first: Path, second: Path) -> bool:
    try:
        return os.path.samefile(first, second)
    except OSError:  # one of them is not there
        return first.resolve() == second.resolve()


# Columns

_Columns = dict[str, list[tuple[int, str]]]


def _wanted_names(settings: Settings, value_column: str | None, string_column: str | None) -> dict[str, set[str]]:
    """The plain names by which each column is recognised."""
    objective = plain_name(settings.objective)
    values = {objective} | ({plain_name(f"{objective} {settings.unit}")} if settings.unit else set())
    if value_column is not None:
        values = {plain_name(value_column)}
    strings = {plain_name(string_column or settings.string_column)}
    wanted = {role: set(names) for role, names in _NAMES.items()}
    wanted["standard_error"] |= {f"{objective}_{name}" for name in _NAMES["standard_error"]}
    # A column that is named means what it is named for: an objective may be called "status".
    wanted = {role: names - values - strings for role, names in wanted.items()}
    wanted["value"] = values if value_column is not None else wanted["value"] | values
    wanted["string"] = strings if string_column is not None else wanted["string"] | strings
    return wanted


@dataclass(frozen=True)
class _Header:
    """How the columns of a file are recognised."""

    wanted: Mapping[str, set[str]]
    settings: Settings
    value_name: str
    string_name: str
    history: bool

    def find(self, sheet: Sheet, source: str) -> tuple[_Columns, int, list[Remark]]:
        """Which column is what, which row names them, and what is wrong."""
        candidates = [number for number, row in enumerate(sheet.rows) if any(map(str.strip, row))][:_HEADER_WITHIN]
        first = candidates[0]
        problems: list[Remark] = []
        for number in candidates:
            found, wrong = self.columns(sheet.rows[number])
            if not wrong and number != first:
                message = (
                    "is not the line with the names of the columns, "
                    f"line {sheet.lines[number]} is: delete the lines before it"
                )
                text = sheet.separator.join(sheet.rows[first])
                return {}, first, [Remark(message, source, sheet.lines[first], value=text)]
            if not wrong:
                return found, number, []
            problems = problems or [Remark(message, source, sheet.lines[number]) for message in wrong]
        return {}, first, problems

    def columns(self, cells: Sequence[str]) -> tuple[_Columns, list[str]]:
        """Which column is what by a row of names, and what is wrong with the row."""
        header = [_BYTE_ORDER_MARKS.sub("", cell).strip() for cell in cells]
        plain = [plain_name(cell) for cell in header]
        found: _Columns = {}
        for role, names in self.wanted.items():
            places = [(place, header[place]) for place, name in enumerate(plain) if name and name in names]
            if role == "string":
                # Of several columns that may hold the strings, the one that the campaign's files call so.
                places = [item for item in places if plain_name(item[1]) == plain_name(self.string_name)] or places
            if places and not (self.history and role == "identifier"):
                found[role] = places
        if _CALLED.fullmatch(header[0]) or all(NUMBER.fullmatch(cell) for cell in header if cell):
            example = f"{IDENTIFIER},{self.value_name}"
            return found, [
                f"{', '.join(header)!r} is no line with the names of columns: put one first, such as {example}"
            ]
        wrong = []
        if len(header) == 1 and any(separator in header[0] for separator in SEPARATORS):
            return found, [
                f"{header[0]!r} is a single cell: a program took the line for text and put it in quotes. Save the "
                "table again from where it came, with its columns apart"
            ]
        if "identifier" not in found and "string" not in found:
            expected = repr(self.string_name) if self.history else f"{IDENTIFIER!r} or {self.string_name!r}"
            names = self.wanted["string"] | (set() if self.history else self.wanted["identifier"])
            wrong.append(
                f"no column says which strings were measured: expected {expected}{_alike(names, plain, header)}"
            )
        if "value" not in found and "failure" not in found:
            unit = f" (in {self.settings.unit})" if self.settings.unit else ""
            wrong.append(f"there is no column of values: expected {self.value_name!r}{unit}{self._near(plain, header)}")
        for role, places in found.items():
            if role != "value" and len(places) > 1:
                called = " and ".join(repr(name) for _, name in places)
                wrong.append(f"columns {called} are both taken for the {role.replace('_', ' ')}: keep one of them")
        listed = ", ".join(repr(cell) for cell in header if cell)
        return found, [f"{message}; the columns are {listed}" for message in wrong]

    def _near(self, plain: Sequence[str], header: Sequence[str]) -> str:
        """A column that may hold the values in another unit, or by another name."""
        value = plain_name(self.value_name)
        for cell, name in zip(header, plain, strict=True):
            if name.startswith(f"{value}_") and name not in self.wanted["standard_error"]:
                return f". If {cell!r} is it, convert it, or name it as the column of values"
        return _alike({value}, plain, header)


def _alike(names: set[str], plain: Sequence[str], header: Sequence[str]) -> str:
    for cell, name in zip(header, plain, strict=True):
        close = difflib.get_close_matches(name, sorted(names), n=1, cutoff=0.75)
        if close:
            return f" (is {cell!r} it?)"
    return ""


# Cells


def _parse(
    sheet: Sheet, header: int, columns: _Columns, source: str, settings: Settings, decimal_comma: bool
) -> list[_Row]:
    width = len(sheet.rows[header])
    rows = []
    for cells, line in zip(sheet.rows[header + 1 :], sheet.lines[header + 1 :], strict=True):
        if not any(map(str.strip, cells)):
            continue
        row = _Row(Entry(line=line), source)
        rows.append(row)
        if any(map(str.strip, cells[width:])):
            comma = " (a decimal comma? write 6.5, not 6,5)" if sheet.separator == "," else ""
            row.wrong(f"has {len(cells)} cells where the header has {width}{comma}", sheet.separator.join(cells))
            continue
        # Spreadsheets leave out empty cells at the end of a row.
        texts = {
            role: [(cells[place].strip() if place < len(cells) else "", name) for place, name in places]
            for role, places in columns.items()
        }
        given = any(text for text, _ in texts.get("value", []))
        single = {role: found[0][0] or None for role, found in texts.items() if role != "value"}
        row.entry = Entry(
            single.get("string"),
            single.get("identifier"),
            _value(row, texts.get("value", []), settings, decimal_comma),
            _failure(row, texts, given=given),
            _standard_error(row, texts, decimal_comma, given=given),
            single.get("replicate"),
            line,
        )
    return rows


_Texts = Sequence[tuple[str, str]]
"""Cells with the names of their columns."""

_NOTHING: _Texts = (("", ""),)


def _value(row: _Row, texts: _Texts, settings: Settings, decimal_comma: bool) -> float | None:
    read: list[tuple[float, str]] = []
    for text, column in texts:
        number, problem = _number(text, decimal_comma) if text else (None, "")
        if number is not None:
            problem = _unfit(number, settings)
        if problem:
            row.wrong(problem, text, column)
        if number is None or problem:
            continue
        if read and number != read[0][0]:
            row.wrong(f"disagrees with {read[0][0]!r} in column {read[0][1]!r} of the same row: keep one", text, column)
        read.append((number, column))
    return read[0][0] if read else None


def _unfit(value: float, settings: Settings) -> str:
    """Why the campaign cannot use a number; empty if it can."""
    logarithmic = settings.transform == "log10"
    return "has no logarithm: expected a positive number" if logarithmic and value <= 0 else ""


def _failure(row: _Row, texts: Mapping[str, _Texts], *, given: bool) -> str | None:
    """Why a row failed, if it did."""
    reason, reason_column = texts.get("failure", _NOTHING)[0]
    status, status_column = texts.get("status", _NOTHING)[0]
    word = status.casefold()
    # What is asked for is the reason, but people tick boxes.
    if reason.casefold() in _NO:
        reason = ""
    if word not in _DONE | _FAILED | _NOT_YET:
        known = ", ".join(sorted(_DONE | _FAILED))
        row.wrong(f"is no status that is known: expected one of {known}, or nothing", status, status_column)
    elif given and (reason or word in _FAILED):
        shown = (reason, reason_column) if reason else (status, status_column)
        row.wrong("says that it failed, but there is a value, too: keep one of them", *shown)
    elif reason and word in _DONE:
        row.wrong(f"is a reason for a failure, but the status is {status!r}: keep one of them", reason, reason_column)
    elif word in _DONE and not given:
        row.wrong("is the status, but there is no value", status, status_column)
    elif reason or word in _FAILED:
        return "failed" if reason.casefold() in _YES else reason or "failed"
    return None


def _standard_error(row: _Row, texts: Mapping[str, _Texts], decimal_comma: bool, *, given: bool) -> float | None:
    text, column = texts.get("standard_error", _NOTHING)[0]
    if not text:
        return None
    number, problem = _number(text, decimal_comma)
    if number is not None and number <= 0:
        problem = "is not positive: leave the cell empty where the standard error is not known"
    elif not given:
        problem = "is a standard error, but there is no value"
    if problem:
        row.wrong(problem, text, column)
    return None if problem else number


_MONTH = r"(?:jan|feb|mar|m\u00e4r|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez)[^\W\d_]*\.?"

_DIAGNOSES = (
    (r"[<>\u2264\u2265~]\s*\S+", "is a limit, not a value: expected a number, or the reason in a column 'failure'"),
    (r"#.*", "is an error of the spreadsheet: expected a number"),
    (
        r"[+-]?\d+,\d+",
        "has a comma: expected a decimal point, as in 6.5. If commas are decimal in this table, say so with "
        "--decimal-comma, or decimal_comma=True",
    ),
    (
        r"[+-]?\d{1,3}(?:[ \u00a0\u202f'\u2019.,]\d{3})+(?:[.,]\d+)?",
        "has marks between thousands: expected a plain number",
    ),
    (r"\u2212[\d.]+", "begins with a dash that is not a minus: expected a number such as -6.5"),
    (
        rf"\d{{1,4}}[-/.]\d{{1,2}}[-/.]\d{{1,4}}.*|\d{{1,2}}[-. ]+{_MONTH}|{_MONTH}[-. ]+\d{{1,4}}",
        "looks like a date that a spreadsheet made: expected a number",
    ),
    (
        r"[+-]?[\d.]+(?:[eE][+-]?\d+)?\s*[^\W\d_]\S*|.*[\d.]\s*%",
        "holds a unit: expected the number alone, in the unit of the campaign",
    ),
)


def _number(text: str, decimal_comma: bool) -> tuple[float | None, str]:
    """A cell as a number, or what is wrong with it."""
    if decimal_comma and "," in text and NUMBER.fullmatch(pointed := text.replace(",", ".", 1)):
        text = pointed
    elif decimal_comma and NUMBER.fullmatch(text) and "." in text:
        return None, "has a point, but commas are decimal in this table: write 6,5, or leave --decimal-comma out"
    if NUMBER.fullmatch(text):
        number = float(text)
        if abs(number) <= LARGEST_VALUE:
            return number, ""
        return None, f"is too large: expected a number up to {LARGEST_VALUE:g}"
    if text.casefold() in _MISSING:
        return None, (
            "is no number: leave the cell empty where there is no result yet, and give the reason for a failure in a "
            "column 'failure'"
        )
    for pattern, what in _DIAGNOSES:
        if re.fullmatch(pattern, text, re.IGNORECASE):
            return None, what
    return None, "is no number: expected one such as 6.5"


# Rows against the campaign

_CALLED = re.compile(r"b\s*0*(\d+)\s*[-\u2010-\u2015\u2212_]\s*0*(\d+)", re.IGNORECASE)


def suggestion_name(identifier: str) -> str:
    """The name of a suggestion, however its letters, dashes and zeros were changed.

    Example:
        >>> suggestion_name(" b3-7"), suggestion_name("CCO")
        ('B03-07', 'CCO')
    """
    match = _CALLED.fullmatch(identifier.strip())
    return f"B{int(match[1]):02d}-{int(match[2]):02d}" if match else identifier.strip()


def is_named_like_suggestion(text: str) -> bool:
    """Whether a text has the form of a suggestion's name.

    Example:
        >>> is_named_like_suggestion("b3-7"), is_named_like_suggestion("CCO")
        (True, False)
    """
    return _CALLED.fullmatch(text.strip()) is not None


def _check(
    rows: Sequence[_Row],
    store: CampaignStore,
    identify: Identify,
    settings: Settings,
    source: str,
    *,
    replicates: bool,
    history: bool,
) -> Results:
    with store.reading():
        suggestions = store.suggestions(undone=True)
        measurements = store.measurements()
    warnings: list[Remark] = []
    _identify(rows, suggestions, measurements, identify)
    answered = [row for row in rows if row.has_result]
    earlier: dict[str, list[Measurement]] = {}
    for measurement in measurements:
        earlier.setdefault(measurement.key, []).append(measurement)
    _find_repeats(answered, warnings, replicates=replicates)
    for row in answered:
        if row.key is not None:
            _compare_with_earlier(row, earlier.get(row.key, []), warnings, replicates=replicates)
    sound = [row for row in answered if not row.problems]
    if not history:
        _warn_of_status(sound, suggestions, warnings)
    _warn_of_scale(sound, measurements, suggestions, settings, source, warnings)
    return Results(
        tuple(_record(row, source) for row in sound),
        tuple(problem for row in rows for problem in row.problems),
        tuple(sorted(warnings, key=lambda remark: remark.line or 0)),
        tuple(row.entry.line for row in rows if not row.has_result and not row.problems and row.entry.line is not None),
        source,
    )


def _record(row: _Row, source: str) -> NewMeasurement:
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
    )


def _identify(
    rows: Sequence[_Row],
    suggestions: Sequence[Suggestion],
    measurements: Sequence[Measurement],
    identify: Identify,
) -> None:
    """Find the key and the suggestion of each row."""
    by_name = {suggestion.name: suggestion for suggestion in suggestions}
    keys = {known.string: known.key for known in suggestions} | {known.string: known.key for known in measurements}
    for row in rows:
        identifier, string = row.entry.identifier, row.entry.string
        if identifier is None and string is None:
            if not row.problems:
                row.wrong("the row says neither identifier nor string")
            continue
        if identifier is not None:
            row.suggestion = _suggestion_of(row, identifier, by_name)
        if string is not None:
            try:
                row.key = keys[string] if string in keys else keys.setdefault(string, identify(string))
            except InputError as error:
                row.wrong(f"cannot be used: {error}", string)
                continue
            if row.suggestion is not None and row.suggestion.key != row.key:
                row.wrong(f"is not {row.suggestion.name}, which is {_short(row.suggestion.string)}", string)
        elif row.suggestion is not None:
            row.key = row.suggestion.key


def _suggestion_of(row: _Row, identifier: str, by_name: Mapping[str, Suggestion]) -> Suggestion | None:
    name = suggestion_name(identifier)
    suggestion = by_name.get(name)
    if suggestion is None:
        close = difflib.get_close_matches(name, by_name, n=1)
        row.wrong("is no identifier of a suggestion" + (f": is {close[0]} meant?" if close else ""), identifier)
    elif suggestion.undone_by is not None:
        row.wrong(f"is a suggestion that command {suggestion.undone_by} took back: give the string instead", identifier)
        return None
    return suggestion


def _find_repeats(answered: Sequence[_Row], warnings: list[Remark], *, replicates: bool) -> None:
    """Several results of one string in the same file."""
    groups: dict[str, list[_Row]] = {}
    for row in answered:
        if row.key is not None:
            groups.setdefault(row.key, []).append(row)
    for group in groups.values():
        labelled = all(row.entry.replicate is not None for row in group)
        for row in group:
            others = [other for other in group if other is not row]
            same = [other for other in others if other.entry.replicate == row.entry.replicate]
            if labelled and same:
                message = f"replicate {row.entry.replicate!r} of this string stands in {_lines(same)}, too"
                row.wrong(f"{message}: give each a label of its own")
            elif others and not (labelled or replicates):
                row.wrong(
                    f"stands in {_lines(others)}, too: if these are replicates, say so with --replicate (in Python, "
                    f"replicates=True), or tell them apart by a column {REPLICATE!r}"
                )
            elif row is group[0] and row.entry.value is not None:
                equal = [other for other in same if other.entry.value == row.entry.value]
                if equal:
                    warnings.append(row.remark(f"stands with the same value in {_lines(equal)}: a copy?"))


def _compare_with_earlier(
    row: _Row, earlier: Sequence[Measurement], warnings: list[Remark], *, replicates: bool
) -> None:
    """Results of a string that has some already."""
    label, value = row.entry.replicate, row.entry.value
    measured = [other for other in earlier if other.value is not None]
    same = [other for other in earlier if label is not None and other.replicate == label]
    if same:
        row.wrong(f"has replicate {label!r} already: {_told(same[0])}")
    elif label is not None or not earlier:
        return
    elif value is not None and not measured:
        warnings.append(row.remark(f"has a value now, and so far {_told(earlier[-1])}"))
    elif not replicates:
        row.wrong(
            f"has a result already: {_told((measured or earlier)[-1])}. If this is another measurement of it, say "
            "so with --replicate; what was recorded is kept"
        )
    else:
        equal = [other for other in measured if other.value == value]
        if equal:
            warnings.append(row.remark(f"has exactly this value already: {_told(equal[0])}. A copy?"))


def _warn_of_status(sound: Sequence[_Row], suggestions: Sequence[Suggestion], warnings: list[Remark]) -> None:
    by_key: dict[str, Suggestion] = {}
    for suggestion in suggestions:
        if suggestion.undone_by is None and (suggestion.key not in by_key or by_key[suggestion.key].status != "open"):
            by_key[suggestion.key] = suggestion
    strangers = []
    for row in sound:
        answered = row.suggestion or by_key.get(row.key or "")
        if answered is None:
            strangers.append(row)
        elif answered.status == "withdrawn":
            warnings.append(row.remark(f"has a result now: {answered.name} was withdrawn"))
    if len(strangers) == 1:
        warnings.append(strangers[0].remark("was never suggested; that is no hindrance"))
    elif strangers:
        message = f"{len(strangers)} strings were never suggested; that is no hindrance"
        warnings.append(Remark(f"{message} ({_lines(strangers)})", strangers[0].source))


def _warn_of_scale(
    sound: Sequence[_Row],
    measurements: Sequence[Measurement],
    suggestions: Sequence[Suggestion],
    settings: Settings,
    source: str,
    warnings: list[Remark],
) -> None:
    """Values that seem to be in another unit than the earlier ones, the predictions, or each other."""
    new = [(row, abs(row.entry.value)) for row in sound if row.entry.value]
    if not new:
        return
    unit = f" ({settings.unit})" if settings.unit else ""
    earlier = [abs(row.value) for row in measurements if row.value]
    predicted = {row.key: abs(row.mean) for row in suggestions if row.mean and row.undone_by is None}
    pairs = [value / predicted[row.key] for row, value in new if row.key in predicted]
    ratio, smallest = 1.0, 1 / THOUSANDFOLD
    if len(earlier) >= FEWEST_FOR_SCALE:
        ratio = statistics.median(value for _, value in new) / statistics.median(earlier)
        against = "than the earlier ones"
    elif pairs:
        ratio = statistics.median(pairs)
        against = "than was predicted"
    signed = [row.value for row in measurements if row.value] + [row.entry.value for row, _ in new if row.entry.value]
    if min(signed) < 0 < max(signed):
        # Where values of both signs are usual, so are some that are close to zero.
        smallest = 0.0
    if not smallest < ratio < THOUSANDFOLD:
        size = f"{ratio:,.0f} times larger" if ratio > 1 else f"{1 / ratio:,.0f} times smaller"
        message = f"the values are about {size} {against}: are they in the unit of the campaign{unit}?"
        warnings.append(Remark(message, source))
        return
    everything = earlier + [value for _, value in new]
    if len(everything) <= FEWEST_FOR_SCALE:
        return
    middle = statistics.median(everything)
    # Values that span decades are no mistakes: what counts is the distance against that of the others.
    usual = statistics.median(abs(math.log(value / middle)) for value in everything)
    for row, value in new:
        factor = value / middle
        if not smallest and factor < 1:
            continue
        if abs(math.log(factor)) >= max(math.log(THOUSANDFOLD), SPREADS * usual):
            size = f"{factor:,.0f} times the usual value" if factor > 1 else f"1/{1 / factor:,.0f} of the usual value"
            message = f"is {size} ({middle:g}): is it in the unit of the campaign{unit}?"
            warnings.append(row.remark(message, repr(row.entry.value)))


def _told(measurement: Measurement) -> str:
    what = repr(measurement.value) if measurement.value is not None else f"it failed ({measurement.failure})"
    where = f" from {measurement.source}" if measurement.source else ""
    line = f", line {measurement.line}," if measurement.source and measurement.line is not None else ""
    return f"{what}{where}{line} by command {measurement.made_by}"


def _lines(rows: Sequence[_Row]) -> str:
    lines = [row.entry.line for row in rows if row.entry.line is not None]
    return _listed(lines) if lines else "another entry"


def _listed(lines: Sequence[int]) -> str:
    shown = ", ".join(map(str, lines[:5])) + (", ..." if len(lines) > 5 else "")
    return f"line{'s' if len(lines) > 1 else ''} {shown}"


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
