"""Numbers as people and spreadsheets write them: read, or diagnosed when they cannot be.

A number has a point, or a comma where the user says that commas are decimal; that is never guessed, since ``1,234`` may
be either of two numbers.
"""

from __future__ import annotations

import re

from seqopt.datasets.sheets import NUMBER

_MONTH = r"(?:jan|feb|mar|m\u00e4r|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez)[^\W\d_]*\.?"

DIAGNOSES = (
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
)
"""What people and programs make of numbers, as regular expressions, and what to say of it."""


def pointed(text: str) -> str:
    """A number with a decimal comma as one with a point; any other text as it is.

    Example:
        >>> pointed("6,5"), pointed("7"), pointed("1.234,5"), pointed("on request")
        ('6.5', '7', '1.234,5', 'on request')
    """
    found = text.replace(",", ".", 1)
    return found if NUMBER.fullmatch(found) else text


def comparable(text: str) -> str:
    """A cell of a table in which commas are decimal, as one that is compared with numbers that have points.

    Thousands with points between them are marked, so that nobody takes them for small numbers.

    Example:
        >>> comparable("6,5"), comparable("ACME, Inc."), comparable("1.234")
        ('6.5', 'ACME, Inc.', '1.234 (commas are decimal)')
    """
    stripped = text.strip()
    if re.fullmatch(r"[+-]?\d{1,3}(?:\.\d{3})+", stripped):
        return f"{stripped} (commas are decimal)"
    return pointed(stripped)


def read_number(text: str, decimal_comma: bool = False) -> float | None:
    """A number as a cell holds it; `None` where it holds anything else, or a point where commas are decimal.

    Example:
        >>> read_number(" 6.5 "), read_number("6,5"), read_number("6,5", decimal_comma=True)
        (6.5, None, 6.5)
        >>> read_number("6.5", decimal_comma=True)
    """
    stripped = text.strip()
    if decimal_comma:
        stripped = "" if "." in stripped else pointed(stripped)
    return float(stripped) if NUMBER.fullmatch(stripped) else None


def not_a_number(text: str, decimal_comma: bool = False) -> str:
    """A clause on a cell that is not a finite number.

    Example:
        >>> not_a_number("high"), not_a_number("#DIV/0!")
        ('which is not a finite number', 'which is an error of the spreadsheet: expected a number')
    """
    if decimal_comma and NUMBER.fullmatch(text) and "." in text:
        return "which has a point, but commas are decimal in this table: write 6,5, or leave --decimal-comma out"
    for pattern, what in DIAGNOSES:
        if re.fullmatch(pattern, text, re.IGNORECASE):
            return f"which {what}"
    return "which is not a finite number"
