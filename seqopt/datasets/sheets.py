"""Tables: read whatever program saved them, and written so that a spreadsheet runs nothing.

This is the only reader of separated text: `read_sheet` gives its cells as they are, and
`seqopt.datasets.tables.read_table` columns under their names. Workbooks and structure-data files become the same cells.

A spreadsheet takes a cell that begins with ``=``, ``+``, ``-`` or ``@`` for a formula. Such text is written with an
apostrophe before it, which a spreadsheet shows as text; so is text that begins with apostrophes and one of these, so
that exactly one apostrophe is taken away on reading and every text comes back as it was. Numbers are never changed, be
they numbers or text that is one (``-5``, ``+1e-3``, and ``-4,1`` where commas are decimal): a number runs nothing.

References:
    OWASP Foundation. CSV Injection. https://owasp.org/www-community/attacks/CSV_Injection
    Shafranovich, Y. (2005). Common Format and MIME Type for Comma-Separated Values (CSV) Files. RFC 4180.
"""

from __future__ import annotations

import csv
import io
import math
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import SupportsIndex

from seqopt.datasets.sources import PART, STRUCTURES, WORKBOOKS, open_source
from seqopt.errors import InputError
from seqopt.utils.files import write_atomically

Cell = str | float | SupportsIndex | None
"""What a table holds; `None` and NaN are empty cells."""

SEPARATORS = (",", "\t", ";", "|")
"""What may stand between cells, the likeliest first."""

NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
"""A number as programs write it."""

OTHER_FORMATS = (".xlsm", ".xls", ".xlsb", ".ods", ".numbers", ".parquet", ".json", ".sdf", ".gz", ".zip")
"""Endings of files that programs do not take for a table, whatever is in them."""

WORKBOOK = ".xlsx"
"""The ending of workbooks that are written."""

LOOKED_AT = 100
"""Rows by which the separator is told."""

# Blanks before a formula do not stop every spreadsheet, and the full-width signs are signs, too.
_RUNS = r"(?:\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n])"
_DANGEROUS = re.compile(f"'*{_RUNS}")
_NEUTRALISED = re.compile(f"'+{_RUNS}")

_BINARY = {
    b"PK\x03\x04": "an Excel workbook or another zip archive: name it .xlsx or .zip, as what it is",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook: save it as .xlsx or CSV (UTF-8)",
    b"\x1f\x8b": "compressed twice: unpack it first",
    b"PAR1\x15": "a parquet file: save it as CSV",
    b"%PDF-": "a PDF: save the table as CSV (UTF-8)",
    b"\x89PNG": "a picture: give a table, as CSV (UTF-8)",
    b"\xff\xd8\xff": "a picture: give a table, as CSV (UTF-8)",
}


SIGNATURE = 200
"""Bytes by which the encoding of a text is told."""


@dataclass(frozen=True)
class Sheet:
    """The cells of a file.

    Attributes:
        rows: Its rows, the names of the columns among them; lines that hold nothing are left out.
        lines: The line on which each row begins, counted from 1; of a workbook, the number of the row.
        separator: What stands between cells; a tab where the file has none, such as a workbook.
        encoding: How its text is encoded.
        sha256: Checksum of the file: see `seqopt.datasets.sources.Source`.
        guessed: Where the encoding is only a guess, a line that shows it: its number and text.
        source: The file and, where it holds several tables, which of them was read.
        unread: Records of a structure-data file that cannot be read: line, what is there, and why.
    """

    rows: tuple[tuple[str, ...], ...]
    lines: tuple[int, ...]
    separator: str
    encoding: str
    sha256: str
    guessed: tuple[int, str] | None = None
    source: str = ""
    unread: tuple[tuple[int, str, str], ...] = ()

    @property
    def may_have_commas(self) -> bool:
        """Whether its numbers may have decimal commas; not where commas separate cells, nor in structure-data files."""
        return self.separator != "," and self.encoding != "sdf"


def check_format(path: str | os.PathLike[str]) -> None:
    """Refuse the name of a file that no program would read as a table of text.

    Raises:
        InputError: For an ending of `OTHER_FORMATS`.
    """
    ending = Path(path).suffix.lower()
    if ending in OTHER_FORMATS:
        raise InputError(f"{path}: a table is written as .xlsx, .csv or .tsv, not as {ending}")


def neutralise(text: str, *, decimal_comma: bool = False) -> str:
    """Text as a cell that no spreadsheet runs; `restore` is its inverse.

    Args:
        text: Any text.
        decimal_comma: Whether ``-4,1`` is a number in this table.

    Example:
        >>> neutralise("=1+1"), neutralise("-CC"), neutralise("-5"), neutralise("CC=O")
        ("'=1+1", "'-CC", '-5', 'CC=O')
        >>> neutralise("-4,1"), neutralise("-4,1", decimal_comma=True)
        ("'-4,1", '-4,1')
    """
    number = text.replace(",", ".", 1) if decimal_comma else text
    return f"'{text}" if _DANGEROUS.match(text) and not NUMBER.fullmatch(number) else text


def restore(cell: str) -> str:
    """The text that `neutralise` made a cell of; any other cell as it is.

    Example:
        >>> restore("'=1+1"), restore("'tis"), restore("-5")
        ('=1+1', "'tis", '-5')
    """
    # The first test is for libraries of millions of cells.
    return cell[1:] if cell[:1] == "'" and _NEUTRALISED.match(cell) else cell


def write_sheet(
    path: str | os.PathLike[str],
    header: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    *,
    separator: str | None = None,
    decimal_comma: bool = False,
    pictures: Mapping[str, Sequence[bytes | None]] | None = None,
) -> None:
    """Write a table; a reader, or a crash, sees the old file or the new one, never a part.

    Text is UTF-8, marked as such if it holds more than ASCII, since spreadsheets take it for something else otherwise.
    Numbers are written with as many digits as it takes to read the same number back. In a workbook numbers are numbers,
    and text is never a formula: see `seqopt.datasets.workbooks`.

    Args:
        path: The file: a workbook if it ends in ``.xlsx``, separated by tabs if in ``.tsv`` or ``.tab``, by commas
            otherwise.
        header: Names of the columns.
        rows: The rows, each as long as ``header``.
        separator: What stands between cells instead of commas.
        decimal_comma: Whether numbers are written ``6,5``; a workbook holds numbers, which each program shows its way.
        pictures: For columns of a workbook, a PNG or nothing for each row, which is shown in its cell.

    Raises:
        InputError: For a row of another length, text that no file can hold, a file that cannot be written, or the name
            of a file of another format.
    """
    check_format(path)
    file, kept = Path(path), list(rows)
    for row in kept:
        if len(row) != len(header):
            raise InputError(f"a row of {len(row)} cells for {len(header)} columns of {file}: {list(row)!r}")
    if file.suffix.lower() == WORKBOOK:
        from seqopt.datasets.workbooks import workbook_bytes

        write_file(file, workbook_bytes(header, kept, pictures or {}, title=file.stem))
        return
    if file.suffix.lower() in (".tsv", ".tab"):
        separator = "\t"
    lines = []
    for row in (header, *kept):
        cells = (_written(cell, alone=len(header) == 1, decimal_comma=decimal_comma) for cell in row)
        lines.append((separator or ",").join(cells) + "\n")
    text = "".join(lines)
    if "\0" in text:
        raise InputError(f"{file} cannot hold a NUL character")
    try:
        data = text.encode("utf-8" if text.isascii() else "utf-8-sig")
    except UnicodeEncodeError as error:
        raise InputError(f"{file} cannot hold {error.object[error.start]!r}, which is not text") from error
    write_file(file, data)


def write_file(file: Path, data: bytes) -> None:
    """Write what a user will open.

    Raises:
        InputError: If it cannot be written.
    """
    try:
        write_atomically(file, data)
    except OSError as error:
        raise InputError(
            f"cannot write {file}: {error.strerror or error}. If it is open in a spreadsheet, close it there"
        ) from error


def read_sheet(
    path: str | os.PathLike[str],
    *,
    separator: str | None = None,
    expected: Collection[str] = (),
    decimal_comma: bool = False,
) -> Sheet:
    """Read a table as it is, whatever program saved it.

    A workbook (``.xlsx``) is read by `seqopt.datasets.workbooks`, a structure-data file (``.sdf``) by
    `seqopt.datasets.sdf`; both, and files of text, also out of a ``.zip`` or with ``.gz``.

    The encoding of text is UTF-8 or UTF-16; other bytes are read as Windows-1252, which holds Latin-1, and
    `Sheet.guessed` says so. Any kind of line end will do. The separator is the one by which most of the ``expected``
    names are found in a row, else the one by which the rows are equally long. A first line ``sep=;`` is obeyed.

    Args:
        path: The file; where it holds several tables, ``FILE#TABLE``: see `seqopt.datasets.sources`.
        separator: One of `SEPARATORS`, if it is known.
        expected: Names of columns that may be there, in small letters.
        decimal_comma: Whether the numbers of a workbook, which have neither, are given with a comma.

    Raises:
        InputError: For a file that is missing, empty, no table, or whose quotation marks do not match.
    """
    source = open_source(path)
    if source.ending in WORKBOOKS:
        from seqopt.datasets.workbooks import read_workbook

        book = read_workbook(source, expected=expected, decimal_comma=decimal_comma)
        name, checksum = source.name, source.sha256
        if book.several:
            name, checksum = f"{name}{PART}{book.sheet}", source.of_part(book.sheet)
        return Sheet(tuple(book.rows), tuple(book.lines), "\t", "xlsx", checksum, source=name)
    if source.ending in STRUCTURES:
        from seqopt.datasets.sdf import read_records

        records = read_records(source)
        rows = (tuple(records.columns), *zip(*records.columns.values(), strict=True))
        lines = (1, *records.lines)
        unread = tuple(records.unread)
        return Sheet(rows, lines, "\t", "sdf", source.sha256, source=source.name, unread=unread)
    file = Path(source.name)
    text, encoding = decoded(file, source.data)
    if not text.strip():
        raise InputError(f"{file} is empty")
    cells = split_cells(file, text, separator=separator, expected=expected)
    guessed = guessed_line(text) if encoding == "cp1252" else None
    return Sheet(
        tuple(cells.rows), tuple(cells.lines), cells.separator, encoding, source.sha256, guessed, source=source.name
    )


def guessed_line(text: str) -> tuple[int, str]:
    """The first line of a text that shows how it was encoded: its number, and itself."""
    number, line = next((n, line) for n, line in enumerate(text.splitlines(), start=1) if not line.isascii())
    return number, line.strip()


def plain_name(name: str) -> str:
    """The name of a column without what spreadsheets change of it: case, blanks, punctuation, marks of encodings.

    Example:
        >>> plain_name("\\ufeffIC50 (nM) ")
        'ic50_nm'
    """
    text = name.replace("\u00ef\u00bb\u00bf", " ").casefold()
    return "_".join(re.findall(r"[^\W_]+", text)) or text.strip()


def _written(cell: Cell, *, alone: bool, decimal_comma: bool = False) -> str:
    if cell is None:
        text = ""
    elif isinstance(cell, str):
        text = neutralise(cell, decimal_comma=decimal_comma)
    elif isinstance(cell, SupportsIndex):  # Python's and numpy's integers
        text = str(int(cell))
    else:
        text = "" if math.isnan(cell) else repr(float(cell))
        if decimal_comma:
            text = text.replace(".", ",")
    # Separators of other locales are quoted, too: the cell stays one whatever a spreadsheet expects.
    if any(sign in text for sign in (*SEPARATORS, '"', "\r", "\n")) or text != text.strip() or (alone and not text):
        return '"' + text.replace('"', '""') + '"'
    return text


def decoded(file: Path, data: bytes) -> tuple[str, str]:
    """The text of a file and its encoding: UTF-8 or UTF-16, either with or without its mark, else Windows-1252.

    Args:
        file: What messages call it.
        data: Its bytes.

    Raises:
        InputError: If it is not text.
    """
    candidates = likely_encodings(file, data)
    for candidate in candidates:
        try:
            text = data.decode(candidate)
        except UnicodeDecodeError:
            continue
        # Any bytes but five are Windows-1252; control characters betray that it is not text.
        if not re.search(r"[\x00-\x08\x0e-\x1f]" if candidate == "cp1252" else r"\x00", text):
            return text, candidate.removesuffix("-sig")
    raise InputError(_not_text(file, data))


def likely_encodings(file: Path, data: bytes) -> list[str]:
    """How a text may be encoded, the likeliest first, by its first `SIGNATURE` bytes.

    Args:
        file: What messages call it.
        data: Its bytes, or the first of them.

    Raises:
        InputError: If they are those of a file that is not text.
    """
    for signature, what in _BINARY.items():
        if data.startswith(signature):
            raise InputError(f"{file} is {what}")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return ["utf-16"]
    if b"\0" in data[:SIGNATURE]:
        # Text of mostly Latin letters has a zero in every second byte of UTF-16.
        return ["utf-16-le" if data[1:SIGNATURE:2].count(0) > data[0:SIGNATURE:2].count(0) else "utf-16-be"]
    return ["utf-8-sig", "cp1252"]


def _not_text(file: Path, data: bytes) -> str:
    """Why a file is not text, with the line where that can be told."""
    save = "save it as CSV (UTF-8)"
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return f"{file} is not text in a known encoding (UTF-8, UTF-16 or Windows-1252): {save}"
    try:
        data.decode()
        start, what = data.index(b"\0"), "a NUL byte"
    except UnicodeDecodeError as error:
        start, what = error.start, f"byte 0x{data[error.start]:02x}"
    line = data.count(b"\n", 0, start) + 1
    return f"{file}, line {line}: {what}: this is not text in a known encoding (UTF-8, UTF-16 or Windows-1252): {save}"


@dataclass(frozen=True)
class Cells:
    """The cells of a text.

    Attributes:
        rows: Its rows; lines without any character are left out.
        lines: The line on which each row begins, counted from 1.
        blank: The lines that were left out.
        separator: What stands between cells.
    """

    rows: list[tuple[str, ...]]
    lines: list[int]
    blank: list[int]
    separator: str


def split_cells(file: Path, text: str, *, separator: str | None = None, expected: Collection[str] = ()) -> Cells:
    """The cells of a table, as `restore` gives them.

    Args:
        file: What messages call it.
        text: Its text.
        separator: What stands between cells, if it is known; a first line ``sep=;`` counts for more.
        expected: As in `read_sheet`.

    Raises:
        InputError: If quotation marks do not match.
    """
    first = 1
    told = re.match(r'"?sep=(.)"?[ \t]*(?:\r\n|\r|\n)', text, re.IGNORECASE)
    if told:
        text, separator, first = text[told.end() :], told.group(1), 2
    if separator is None:
        separator = _told_separator(text, expected)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    found, previous = Cells([], [], [], separator), 0
    try:
        for row in reader:
            if row:
                found.rows.append(tuple(map(restore, row)))
                found.lines.append(previous + first)
            else:
                found.blank.append(previous + first)
            previous = reader.line_num
    except csv.Error as error:
        raise InputError(
            f"{file}, line {previous + first}: {error}: check the quotation marks from there on"
        ) from error
    return found


def _told_separator(text: str, expected: Collection[str]) -> str:
    best, separator = (-1, False, -1.0), SEPARATORS[0]
    for candidate in SEPARATORS:
        rows = []
        try:
            for row in csv.reader(io.StringIO(text, newline=""), delimiter=candidate, strict=True):
                if row:
                    rows.append(row)
                if len(rows) == LOOKED_AT:
                    break
        except csv.Error:
            continue
        if not rows:
            continue
        known = max(sum(plain_name(restore(cell)) in expected for cell in row) for row in rows[:10])
        agreement = sum(len(row) == len(rows[0]) for row in rows) / len(rows)
        found = (known, len(rows[0]) > 1, agreement)
        if found > best:
            best, separator = found, candidate
    return separator
