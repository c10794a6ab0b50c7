"""Cells of a table of results: numbers, standard errors and failures, or what is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from seqopt.campaign.answers import HITS, check_answer, read_answer_cells
from seqopt.campaign.columns import COST, NAMED, Columns, context_role, further_role
from seqopt.campaign.costs import cost_of
from seqopt.campaign.entries import ResultEntry, Row
from seqopt.campaign.rows import INCONCLUSIVE, LARGEST_VALUE, YES_NO, Censoring, Settings
from seqopt.datasets.numbers import DIAGNOSES
from seqopt.datasets.sheets import NUMBER, Sheet
from seqopt.errors import InputError

if TYPE_CHECKING:
    from seqopt.data import Contexts, ContextValue

_DONE = frozenset({"ok", "done", "measured", "success", "valid"})
_FAILED = frozenset({"failed", "fail", "failure", "error", "invalid"})
_NO = frozenset({"no", "n", "false", "0", "none", "na", "n/a", "-"})
_YES = frozenset({"yes", "y", "true", "1", "x"})
_NOT_YET = frozenset({"", "open", "pending", "planned"})
_KEPT = frozenset({"discarded", "withdrawn"})
_MISSING = frozenset({"na", "n/a", "nan", "nd", "n.d.", "n.d", "none", "null", "-", "--", "?", ".", "missing"})

_Texts = Sequence[tuple[str, str]]
"""Cells with the names of their columns."""

_NOTHING: _Texts = (("", ""),)


def read_rows(
    sheet: Sheet, header: int, columns: Columns, source: str, settings: Settings, decimal_comma: bool
) -> list[Row]:
    """All rows of a table; see `rows_of`."""
    return list(rows_of(sheet, header, columns, source, settings, decimal_comma))


def rows_of(
    sheet: Sheet, header: int, columns: Columns, source: str, settings: Settings, decimal_comma: bool
) -> Iterator[Row]:
    """The rows of a table one by one, with what is wrong with them."""
    width = len(sheet.rows[header])
    contexts = settings.made_contexts() if settings.context_names else None
    for cells, line in zip(sheet.rows[header + 1 :], sheet.lines[header + 1 :], strict=True):
        if not any(map(str.strip, cells)):
            continue
        row = Row(ResultEntry(line=line), source)
        if any(map(str.strip, cells[width:])):
            comma = " (a decimal comma? write 6.5, not 6,5)" if sheet.separator == "," else ""
            row.wrong(f"has {len(cells)} cells where the header has {width}{comma}", sheet.separator.join(cells))
            yield row
            continue
        # Spreadsheets leave out empty cells at the end of a row.
        texts = {
            role: [(cells[index].strip() if index < len(cells) else "", name) for index, name in matches]
            for role, matches in columns.items()
        }
        further = _further(row, texts, settings, decimal_comma)
        told = [text for role in ("value", HITS) for text, _ in texts.get(role, [])]
        # An inconclusive result is one without a value, and may say so twice.
        given = any(told) and not (settings.yes_no and all(text.casefold() in ("", INCONCLUSIVE) for text in told))
        value, censored = None, None
        if not settings.yes_no:
            value, censored = _value(row, texts.get("value", []), settings, decimal_comma)
        single = {role: found[0][0] or None for role, found in texts.items() if role not in ("value", HITS)}
        row.entry = ResultEntry(
            single.get("string"),
            single.get("identifier"),
            value,
            _failure(row, texts, given=given),
            _standard_error(row, texts, decimal_comma, given=given, censored=censored),
            single.get("replicate"),
            line,
            _context(row, texts, contexts, decimal_comma),
            further,
            single.get("owned"),
            status if (status := (single.get("status") or "").casefold()) in _KEPT else None,
            single.get("remark") or "",
            _prediction(single, decimal_comma),
            censored,
            _cost(row, texts, settings, contexts, decimal_comma),
            named=single.get(NAMED),
        )
        if settings.yes_no:
            row.entry = read_answer_cells(row, row.entry, texts)
            check_answer(row, settings)
        yield row


def _prediction(cells: Mapping[str, str | None], decimal_comma: bool) -> dict[str, float]:
    """What a row says was predicted; what is no number there hinders nothing."""
    texts = {role: cells.get(role) or "" for role in ("predicted", "predicted_low", "predicted_high")}
    found = {role: _number(text, decimal_comma)[0] for role, text in texts.items() if text}
    return {role: number for role, number in found.items() if number is not None}


def _further(row: Row, texts: Mapping[str, _Texts], settings: Settings, decimal_comma: bool) -> dict[str, float]:
    """Values of what is measured besides the objective, as far as they are there."""
    found = {}
    for outcome in settings.outcomes()[1:] if settings.constraints else ():
        text, column = texts.get(further_role(outcome.name), _NOTHING)[0]
        number, problem = _number(text, decimal_comma) if text else (None, "")
        if _LIMIT.fullmatch(text):
            problem = f"is a limit, and only values of {settings.objective!r} may be limits: expected a number"
        if number is not None and not problem:
            problem = unfit(number, outcome.transform.name)
        if problem:
            row.wrong(problem, text, column)
        elif number is not None:
            found[outcome.name] = number
    return found


def _context(
    row: Row, texts: Mapping[str, _Texts], contexts: Contexts | None, decimal_comma: bool
) -> dict[str, ContextValue]:
    """How a row says that its string was measured; a number where the contexts of the campaign have numbers."""
    found: dict[str, ContextValue] = {}
    for name in () if contexts is None else contexts.names:
        text, column = texts.get(context_role(name), _NOTHING)[0]
        if decimal_comma and NUMBER.fullmatch(pointed := text.replace(",", ".", 1)):
            text = pointed
        if text and contexts is not None:
            try:
                found[name] = contexts.level(name, text)
            except InputError as error:
                row.wrong(str(error), text, column)
    return found


def _cost(
    row: Row, texts: Mapping[str, _Texts], settings: Settings, contexts: Contexts | None, decimal_comma: bool
) -> float | None:
    """What a row says that its measurement has cost."""
    text, column = texts.get(COST, _NOTHING)[0]
    if not text:
        return None
    # Batches state costs with points, also to laboratories that fill in their values with commas.
    number, problem = _number(text, decimal_comma and not _is_stated_cost(text, contexts))
    if number is not None and not problem:
        problem = wrong_cost(number, settings)
    if problem:
        row.wrong(problem, text, column)
    return None if problem else number


def _is_stated_cost(text: str, contexts: Contexts | None) -> bool:
    """Whether a cell holds a cost as batches state it."""
    stated = () if contexts is None else (cost_of(context, contexts) for context in contexts.possible)
    return any(text in {repr(cost), f"{cost:g}"} for cost in stated)


def wrong_cost(cost: float, settings: Settings) -> str:
    """What is wrong with the cost of a measurement; empty if nothing is."""
    if settings.contexts is None:
        return "is said to be its cost, but measurements of this campaign have none: leave it out"
    if not 0 < cost <= LARGEST_VALUE:
        return "is not a cost: expected a positive number, or an empty cell for the usual one"
    return ""


def _value(row: Row, texts: _Texts, settings: Settings, decimal_comma: bool) -> tuple[float | None, Censoring | None]:
    read: list[tuple[float, Censoring | None, str, str]] = []
    for text, column in texts:
        number, censored, problem = read_value(text, decimal_comma) if text else (None, None, "")
        if number is not None:
            problem = unfit(number, settings.transform)
        if problem:
            row.wrong(problem, text, column)
        if number is None or problem:
            continue
        if read and (number, censored) != read[0][:2]:
            row.wrong(f"disagrees with {read[0][2]} in column {read[0][3]!r} of the same row: keep one", text, column)
        read.append((number, censored, f"{censored or ''}{number!r}", column))
    return read[0][:2] if read else (None, None)


def read_value(text: str, decimal_comma: bool = False) -> tuple[float | None, Censoring | None, str]:
    """A value as somebody wrote it, ``6.5`` or ``<0.1``: the number, which side of it is meant, and what is wrong.

    As measurements that equal a limit have probability zero, ``≤0.1`` says the same as ``<0.1``.

    Args:
        text: Without blanks around it.
        decimal_comma: Whether numbers are written 6,5.

    Example:
        >>> read_value("6.5"), read_value("≤ 0,1", decimal_comma=True)
        ((6.5, None, ''), (0.1, '<', ''))
        >>> read_value("<LOQ")[2]
        'is a limit without a number: expected one such as <0.1'
    """
    limit = _LIMIT.fullmatch(text)
    if limit is None:
        number, problem = _number(text, decimal_comma)
        return number, None, problem
    side: Censoring = "<" if limit[1][0] in "<\u2264\u2a7d" else ">"
    number, problem = _number(limit[2], decimal_comma)
    if problem and not any(map(str.isdigit, limit[2])):
        problem = f"is a limit without a number: expected one such as {side}0.1"
    elif problem:
        problem = f"is a limit, and its number, {limit[2]!r}, {problem}"
    return number, None if problem else side, problem


def unfit(value: float, transform: str | None) -> str:
    """Why a number cannot be used under a transform; empty if it can."""
    if transform == YES_NO and not 0.0 <= value <= 1.0:
        return "is not a yes/no result: expected hit or no hit"
    return "has no logarithm: expected a positive number" if transform == "log10" and value <= 0 else ""


def _failure(row: Row, texts: Mapping[str, _Texts], *, given: bool) -> str | None:
    """Why a row failed, if it did."""
    reason, reason_column = texts.get("failure", _NOTHING)[0]
    status, status_column = texts.get("status", _NOTHING)[0]
    word = status.casefold()
    # What is asked for is the reason, but people tick boxes.
    if reason.casefold() in _NO:
        reason = ""
    if word not in _DONE | _FAILED | _NOT_YET | _KEPT:
        known = ", ".join(sorted(_DONE | _FAILED))
        row.wrong(f"is not a known status: expected one of {known}, or nothing", status, status_column)
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


def _standard_error(
    row: Row, texts: Mapping[str, _Texts], decimal_comma: bool, *, given: bool, censored: Censoring | None
) -> float | None:
    text, column = texts.get("standard_error", _NOTHING)[0]
    if not text:
        return None
    number, problem = _number(text, decimal_comma)
    if number is not None and number <= 0:
        problem = "is not positive: leave the cell empty where the standard error is not known"
    elif not given:
        problem = "is a standard error, but there is no value"
    elif censored is not None:
        problem = NO_ERROR
    if problem:
        row.wrong(problem, text, column)
    return None if problem else number


LIMIT_SIGNS = tuple("<>\u2264\u2265\u2a7d\u2a7e")
"""What a limit begins with."""

_LIMIT = re.compile(rf"(<=|>=|[{''.join(LIMIT_SIGNS)}])\s*(.*)")

NO_ERROR = "is a standard error, but the value is a limit, which has none: leave the cell empty"

_DIAGNOSES = (
    (
        r"[~\u2248\u223c]\s*\S+",
        "says that the value is rough, and not how rough: expected a number, with its standard error if that is known",
    ),
    *DIAGNOSES,
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
            "is not a number: leave the cell empty where there is no result yet, and give the reason for a failure in "
            "a column 'failure'"
        )
    for pattern, what in _DIAGNOSES:
        if re.fullmatch(pattern, text, re.IGNORECASE):
            return None, what
    return None, "is not a number: expected one such as 6.5"


def is_reason(text: str) -> bool:
    """Whether a text says why something failed.

    In a table some words and an empty cell say that nothing failed, or only that something did: an export with such a
    reason would not be read back.
    """
    return text.strip().casefold() not in _NO | _YES | {""}
