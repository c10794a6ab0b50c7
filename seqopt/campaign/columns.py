"""Which column of a table of results is what."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from seqopt.campaign.answers import CHANCES, HITS
from seqopt.campaign.answers import NAMES as ANSWERS
from seqopt.campaign.entries import Remark
from seqopt.campaign.parents import parent_of
from seqopt.campaign.rows import Settings
from seqopt.campaign.units import value_names, way_out
from seqopt.datasets.sheets import NUMBER, SEPARATORS, Sheet, plain_name
from seqopt.errors import InputError
from seqopt.strings.mutations import MUTATION_COLUMNS

IDENTIFIER, STANDARD_ERROR, FAILURE, REPLICATE = "identifier", "standard_error", "failure", "replicate"
STATUS, REMARK, COST = "status", "remark", "cost"
"""Names of the columns that `write_batch` writes and `read_results` reads."""

TOLD = ("predicted", "predicted_low", "predicted_high")
"""Roles of columns that seqopt fills in itself."""

_NAMES = {
    "identifier": ("identifier", "suggestion", "suggestion_id"),
    "string": ("string", "smiles", "structure", "sequence", "molecule", "protein", "gene", "expression"),
    "value": ("value", "result", "measured", "measured_value", "measurement"),
    "standard_error": ("standard_error", "std_error", "stderr", "sem", "se"),
    "failure": ("failure", "failure_reason"),
    "status": ("status",),
    "replicate": ("replicate", "replicate_id"),
    "remark": ("remark",),
    "predicted": ("predicted", "predicted_mean"),
    "predicted_low": ("predicted_low",),
    "predicted_high": ("predicted_high",),
}

NAMED = "named"
"""The role of a column of names of variants beside a column of strings."""

NAME_COLUMN = "if one of them holds the values, name it by --column, or value_column="
"""What messages say where no column was taken for that of the values."""

_HEADER_WITHIN = 10
_BYTE_ORDER_MARKS = re.compile("\ufeff|\u00ef\u00bb\u00bf")  # the second is the first, read as Windows-1252

_CALLED = re.compile(r"b\s*0*(\d+)\s*[-\u2010-\u2015\u2212_]\s*0*(\d+)", re.IGNORECASE)

Columns = dict[str, list[tuple[int, str]]]
"""By role: the indices and names of the columns that have it."""


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


def context_role(name: str) -> str:
    """The role of a column that says how strings were measured."""
    return f"context {name}"


def further_role(name: str) -> str:
    """The role of a column of values of what is measured besides the objective."""
    return f"values of {name}"


def has_costs(settings: Settings) -> bool:
    """Whether tables of a campaign have a column of costs: not where something else is called so."""
    others = (settings.objective, settings.string_column, *settings.context_names, *settings.further_names)
    return settings.contexts is not None and not settings.plates and COST not in map(plain_name, others)


def check_column_names(settings: Settings) -> None:
    """Refuse what a campaign measures, or a column of strings, by the name of another column of tables of results.

    Raises:
        InputError: If two of them would be one, in whatever letters and with or without the unit.
    """
    others = {plain_name(name): name for name in (IDENTIFIER, STANDARD_ERROR, FAILURE, REPLICATE)}
    own = (settings.objective, *settings.context_names, *settings.further_names)
    for index, name in enumerate(own[1:], start=1):
        if plain_name(name) in {*others, plain_name(settings.string_column), *map(plain_name, own[:index])}:
            raise InputError(
                f"{name!r} would be the name of two columns in tables of results: give the context or the constraint "
                "a different name"
            )
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
                "different name, such as 'pIC50'"
            )


def wanted_names(
    settings: Settings, value_column: str | None, string_column: str | None, unit: str | None = None
) -> dict[str, set[str]]:
    """The plain names by which each column is recognised, where values are in ``unit`` instead of the campaign's."""
    objective = plain_name(settings.objective)
    values = set(map(plain_name, value_names(settings, unit)))
    if value_column is not None:
        values = {plain_name(value_column)}
    strings = {plain_name(string_column or settings.string_column)}
    wanted = {role: set(names) for role, names in _NAMES.items()}
    if settings.yes_no and value_column is None:
        values |= set(ANSWERS["value"]) - strings
    if settings.yes_no:
        for role, name in CHANCES.items():
            wanted[role] = {*wanted[role], name}
        wanted |= {role: set(names) for role, names in ANSWERS.items() if role != "value"}
    if parent_of(settings) is not None:
        wanted["string"] |= {*MUTATION_COLUMNS}
    wanted["standard_error"] |= {f"{objective}_{name}" for name in _NAMES["standard_error"]}
    further = {context_role(name): {plain_name(name)} for name in settings.context_names}
    further |= {further_role(name): {plain_name(name)} for name in settings.further_names}
    if settings.listed.get("id_column"):
        own = plain_name(settings.listed["id_column"])
        # A column by the name of another one has the addition in batches.
        wanted["owned"] = ({own, f"{own}_library"} | {"compound_id", "compound"}) - wanted["identifier"]
    if has_costs(settings):
        further[COST] = {COST}
    # A column that is named means what it is named for: an objective may be called "status".
    wanted = {role: names.difference(values, strings, *further.values()) for role, names in wanted.items()}
    wanted |= {role: names - values - strings for role, names in further.items()}
    wanted["value"] = values if value_column is not None else wanted["value"] | values
    wanted["string"] = strings if string_column is not None else wanted["string"] | strings
    return wanted


@dataclass(frozen=True)
class Header:
    """How the columns of a file are recognised.

    Attributes:
        wanted: By role, the names that columns of it have, see `wanted_names`.
        settings: Of the campaign.
        value_name: What the column of values is expected to be called.
        string_name: What the column of strings is expected to be called.
        history: Whether the results are from elsewhere.
        by_option: Whether another column of values can be named by ``--column``, which messages then say.
    """

    wanted: Mapping[str, set[str]]
    settings: Settings
    value_name: str
    string_name: str
    history: bool
    by_option: bool = False

    def find(self, sheet: Sheet, source: str) -> tuple[Columns, int, list[Remark]]:
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

    def columns(self, cells: Sequence[str]) -> tuple[Columns, list[str]]:
        """Which column is what by a row of names, and what is wrong with the row."""
        header = [_BYTE_ORDER_MARKS.sub("", cell).strip() for cell in cells]
        plain = [plain_name(cell) for cell in header]
        found: Columns = {}
        for role, names in self.wanted.items():
            matches = [(index, header[index]) for index, name in enumerate(plain) if name and name in names]
            if role == "string":
                # What is written out says more than a name, and a name is held against it.
                named = [item for item in matches if plain_name(item[1]) in MUTATION_COLUMNS]
                if len(named) == 1 and len(named) < len(matches):
                    found[NAMED] = named
                matches = [item for item in matches if plain_name(item[1]) not in MUTATION_COLUMNS] or matches
                # Of several columns that may hold the strings, the one that the campaign's files call so.
                matches = [item for item in matches if plain_name(item[1]) == plain_name(self.string_name)] or matches
            if matches and not (self.history and role == "identifier"):
                found[role] = matches
        if _CALLED.fullmatch(header[0]) or all(NUMBER.fullmatch(cell) for cell in header if cell):
            example = f"{IDENTIFIER},{self.value_name}"
            return found, [
                f"{', '.join(header)!r} is not a line with the names of columns: put one first, such as {example}"
            ]
        wrong = []
        if len(header) == 1 and any(separator in header[0] for separator in SEPARATORS):
            return found, [
                f"{header[0]!r} is a single cell: a program took the line for text and put it in quotes. Save the "
                "table again from where it came, with its columns apart"
            ]
        if not found.keys() & {"identifier", "string", "owned"}:
            expected = repr(self.string_name) if self.history else f"{IDENTIFIER!r} or {self.string_name!r}"
            names = self.wanted["string"] | (set() if self.history else self.wanted["identifier"])
            wrong.append(
                f"no column says which strings were measured: expected {expected}{_alike(names, plain, header)}"
            )
        measured = {"value", "failure", HITS, *map(further_role, self.settings.further_names)}
        if not measured & set(found):
            unit = f" (in {self.settings.unit})" if self.settings.unit else ""
            other = "" if "value" not in self.wanted["value"] else " or 'value'"
            near = self._near(plain, header)
            wrong.append(f"there is no column of values: expected {self.value_name!r}{unit}{other}{near}")
        if len(found.get("predicted", ())) > 1:
            # Tables of runs have the mean beside the central prediction.
            central = [match for match in found["predicted"] if plain_name(match[1]) == _NAMES["predicted"][0]]
            found["predicted"] = central or found["predicted"]
        for role, matches in found.items():
            if role != "value" and len(matches) > 1:
                called = " and ".join(repr(name) for _, name in matches)
                wrong.append(f"columns {called} are both taken for the {role.replace('_', ' ')}: keep one of them")
        return found, [f"{message}; {self.listed(header, found)}" for message in wrong]

    def listed(self, header: Iterable[str], found: Columns) -> str:
        """The columns that are there and, where none was taken for that of the values, how to say which one it is."""
        names = ", ".join(repr(name) for name in header if name)
        lacking = self.by_option and not {"value", HITS} & found.keys()
        return f"the columns are {names}" + (f": {NAME_COLUMN}" if lacking else "")

    def _near(self, plain: Sequence[str], header: Sequence[str]) -> str:
        """A column that may hold the values in another unit, or by another name."""
        value = plain_name(self.value_name)
        for cell, name in zip(header, plain, strict=True):
            convertible = way_out(self.settings, cell)
            if convertible and name not in self.wanted["value"]:
                return f". If {cell!r} is it, {convertible}"
            if name.startswith(f"{value}_") and name not in self.wanted["standard_error"]:
                return f". If {cell!r} is it, convert it, or name it as the column of values"
        return _alike({value}, plain, header)


def _alike(names: set[str], plain: Sequence[str], header: Sequence[str]) -> str:
    for cell, name in zip(header, plain, strict=True):
        close = difflib.get_close_matches(name, sorted(names), n=1, cutoff=0.75)
        if close:
            return f" (is {cell!r} it?)"
    return ""


def told_apart(names: Iterable[str], taken: set[str], origin: str) -> dict[str, str]:
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
