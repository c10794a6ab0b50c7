"""Numbers as people and spreadsheets write them: read, or diagnosed when they cannot be.

A number has a point, or a comma where the user says that commas are decimal; that is never guessed, since ``1,234`` may be
either of two numbers.
"""

from __future__ import annotations

import re

from seqopt.datasets.sheets import NUMBER

_MONTH = r"(?:jan|feb|mar|m\u00e4r|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez)[^\W\d_]*\.?"

_DIAGNOSES = (
    (r"[<>\u2264\u2265~]\s*\S+", "is a limit, not a value: expected a number, or the reason in a column 'failure'"),
    (r"#.*", "is an error of the spreadsheet: expected a number"),
    (r"=.*", "is a formula without a result: open the table in a spreadsheet, and save it there"),
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
    (r"-?\d+:\d\d(?::\d\d(?:\.\d+)?)?", "looks like a time that a spreadsheet made: expected a number"),
    (
        r"[+-]?[\d.]+(?:[eE][+-]?\d+)?\s*[^\W\d_]\S*|.*[\d.]\s*%",
        "holds a unit: expected the number alone, in the unit of the campaign",
    ),
)


def pointed(text: str) -> str:
    """A number with a decimal comma as one with a point; any other text as something that is not a number.

    Example:
        >>> pointed("6,5"), pointed("7"), pointed("1.234,5"), pointed("6.5")
        ('6.5', '7', '1.234,5', '6.5 (not 6,5)')
    """
    found = text.replace(",", ".", 1)
    if NUMBER.fullmatch(found) and not ("." in text):
        return found
    return f"{text} (not 6,5)" if NUMBER.fullmatch(text) else text


def diagnosis(text: str, decimal_comma: bool = False) -> str | None:
    """What is wrong with a cell that is not a number, and what was expected; `None` where that cannot be told.

    Example:
        >>> diagnosis("2026-06-05")
        'looks like a date that a spreadsheet made: expected a number'
    """
    if decimal_comma and NUMBER.fullmatch(text):
        return "has a point, but commas are decimal in this table: write 6,5, or leave --decimal-comma out"
    return next((what for pattern, what in _DIAGNOSES if re.fullmatch(pattern, text, re.IGNORECASE)), None)


def not_a_number(text: str, decimal_comma: bool = False) -> str:
    """A clause on a cell of a library that is not a number.

    Example:
        >>> not_a_number("high"), not_a_number("#DIV/0!")
        ('which is not a finite number', 'which is an error of the spreadsheet: expected a number')
    """
    what = diagnosis(text, decimal_comma)
    return f"which {what}" if what is not None else "which is not a finite number"
