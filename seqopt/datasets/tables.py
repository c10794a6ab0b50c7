"""Reading files of strings row by row, with the line on which each row stands.

Each reader returns the columns of a file as they are written; `seqopt.datasets.pools` decides what they mean.
"""

from __future__ import annotations

import difflib
import io
import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from seqopt.datasets.sheets import decoded, guessed_line, split_cells
from seqopt.datasets.sources import PART, STRUCTURES, WORKBOOKS, Source, open_source
from seqopt.errors import InputError

FORMATS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".smi": "smi",
    ".smiles": "smi",
    ".ism": "smi",
    ".txt": "txt",
    ".fasta": "fasta",
    ".fa": "fasta",
    ".fas": "fasta",
    ".faa": "fasta",
    ".fna": "fasta",
    ".ffn": "fasta",
    ".parquet": "parquet",
    ".pq": "parquet",
    **dict.fromkeys(WORKBOOKS, "xlsx"),
    **dict.fromkeys(STRUCTURES, "sdf"),
}
"""Endings of file names, each also with ``.gz`` after it or in a ``.zip``, and how such a file is read."""

_WAY_OUT = "use .csv, .tsv, .xlsx, .sdf, .smi, .txt, .fasta or .parquet (all also with .gz or in a .zip)"


@dataclass(frozen=True)
class Table:
    """The rows of a file.

    Attributes:
        columns: Their cells, by column name. A file without a header has the columns ``"string"`` and, where
            it holds names, ``"name"``.
        lines: The line in the file on which each row begins, counted from 1; for parquet and workbooks, the
            number of the row.
        format: One of the values of `FORMATS`.
        sha256: Of the file as it lies on the disk: see `seqopt.datasets.sources.Source`.
        headed: Whether the column names come from the file.
        blank_lines: Lines that hold nothing, except at the end of the file.
        source: The file and, where it holds several tables, which of them was read.
        separator: What stands between cells, where the file is text with separated cells.
        guessed: Where the encoding is only a guess, a line that shows it: its number and text.
        unread: Records of a structure-data file that cannot be read: line, what is there, and why.
    """

    columns: dict[str, list[str]]
    lines: npt.NDArray[np.int64]
    format: str
    sha256: str
    headed: bool
    blank_lines: list[int] = field(default_factory=list)
    source: str = ""
    separator: str | None = None
    guessed: tuple[int, str] | None = None
    unread: list[tuple[int, str, str]] = field(default_factory=list)

    def column(self, wanted: str, where: str, what: str = "column") -> str:
        """The name of the column that is called ``wanted``, whatever the case of its letters.

        Raises:
            InputError: If there is none, or several; the message lists the columns.
        """
        if wanted in self.columns:
            return wanted
        folded = wanted.strip().casefold()
        matches = [name for name in self.columns if name.strip().casefold() == folded]
        if len(matches) == 1:
            return matches[0]
        if not self.headed:
            raise InputError(f"{where} has no named columns, so there is no {what} {wanted!r}: use a .csv or .tsv file")
        close = difflib.get_close_matches(folded, [name.casefold() for name in self.columns], n=1)
        guess = next((name for name in self.columns if close and name.casefold() == close[0]), None)
        listed = ", ".join(repr(name) for name in self.columns)
        raise InputError(
            f"{where} has {'several columns' if matches else 'no column'} {wanted!r}; "
            f"its columns are {listed}" + (f". Did you mean {guess!r}?" if guess and not matches else "")
        )


def read_table(path: str | os.PathLike[str], *, expected: Collection[str] = (), decimal_comma: bool = False) -> Table:
    """The rows of ``path``, which is read by the ending of its name.

    Args:
        path: The file; where it holds several tables, ``FILE#TABLE``: see `seqopt.datasets.sources`.
        expected: Names of columns that may be there, as `seqopt.datasets.sheets.plain_name` gives them: by them the
            sheet of a workbook and what separates cells are told.
        decimal_comma: Whether numbers that the file holds as such (in workbooks and parquet) are given as ``6,5``.

    Raises:
        InputError: For a file that is missing, empty, damaged, no text, or of an unknown ending, and for a
            table whose rows differ in their number of cells.
    """
    source = open_source(path)
    form = FORMATS.get(source.ending)
    if form is None:
        raise InputError(f"cannot tell from its name how to read {source.name}: {_WAY_OUT}")
    if form == "parquet":
        return _read_parquet(source, decimal_comma)
    if form == "xlsx":
        return _read_workbook(source, expected, decimal_comma)
    if form == "sdf":
        return _read_records(source)
    file, checksum = Path(source.name), source.sha256
    text, encoding = decoded(file, source.data)
    if not text.strip():
        raise InputError(f"{file} holds only blank lines")
    readers: dict[str, Callable[[Path, str, str], Table]] = {
        "smi": _read_smi,
        "txt": _read_txt,
        "fasta": _read_fasta,
    }
    if form == "csv":
        table = _read_csv(file, text, checksum, expected, tabbed=source.ending != ".csv")
    else:
        table = readers[form](file, text, checksum)
    guessed = guessed_line(text) if encoding == "cp1252" else None
    return replace(table, source=source.name, guessed=guessed)


def _split_lines(text: str) -> list[str]:
    # Only line feeds and carriage returns end lines: str.splitlines also splits at form feeds and the like.
    return text.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n").split("\n")


def _read_csv(path: Path, text: str, checksum: str, expected: Collection[str], *, tabbed: bool) -> Table:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    cells = split_cells(path, text, separator="\t" if tabbed else None, expected=expected)
    table = _tabulated(path, cells.rows, cells.lines, cells.blank, checksum, "csv")
    return replace(table, separator=cells.separator)


def _read_workbook(source: Source, expected: Collection[str], decimal_comma: bool) -> Table:
    from seqopt.datasets.workbooks import read_workbook

    book = read_workbook(source, expected=expected, decimal_comma=decimal_comma)
    name, checksum = source.name, source.sha256
    if book.several:
        name, checksum = f"{name}{PART}{book.sheet}", source.of_part(book.sheet)
    width = len(book.rows[0])
    # A spreadsheet has no empty cells at the end of a row.
    rows = [row + ("",) * (width - len(row)) for row in book.rows]
    return replace(_tabulated(Path(name), rows, book.lines, book.blank, checksum, "xlsx"), source=name)


def _read_records(source: Source) -> Table:
    from seqopt.datasets.sdf import read_records

    records = read_records(source)
    lines = np.array(records.lines, dtype=np.int64)
    return Table(records.columns, lines, "sdf", source.sha256, headed=True, source=source.name, unread=records.unread)


def _tabulated(
    path: Path,
    cells: Sequence[Sequence[str]],
    numbers: Sequence[int],
    left_out: Sequence[int],
    checksum: str,
    form: str,
) -> Table:
    header: list[str] | None = None
    rows: list[Sequence[str]] = []
    lines: list[int] = []
    blank = list(left_out)
    for row, line in zip(cells, numbers, strict=True):
        if len(row) == 1 and not row[0].strip():
            blank.append(line)
        elif header is None:
            header = [name.strip() for name in row]
        else:
            rows.append(_fit(row, len(header), path, line))
            lines.append(line)
    if header is None:
        raise InputError(f"{path} has no header line: begin it with the names of its columns")
    last = lines[-1] if lines else 0
    names = [name or f"column {number}" for number, name in enumerate(header, start=1)]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InputError(f"{path} has several columns called {', '.join(map(repr, repeated))}: rename all but one")
    return Table(
        columns={name: [row[number] for row in rows] for number, name in enumerate(names)},
        lines=np.array(lines, dtype=np.int64),
        format=form,
        sha256=checksum,
        headed=True,
        blank_lines=sorted(line for line in blank if line < last),
    )


def _fit(row: Sequence[str], width: int, path: Path, line: int) -> Sequence[str]:
    while len(row) > width and not row[-1].strip():
        row = row[:-1]
    if len(row) != width:
        raise InputError(
            f"{path}, line {line}: {len(row)} cells where the header has {width} ({_shorten(row)}): "
            "put a cell that holds the separator in double quotes, and leave no cell out"
        )
    return row


def _shorten(row: Sequence[str]) -> str:
    shown = repr(list(row))
    return shown if len(shown) <= 100 else shown[:97] + "..."


def _read_smi(path: Path, text: str, checksum: str) -> Table:
    strings: list[str] = []
    names: list[str] = []
    lines: list[int] = []
    blank: list[int] = []
    for line, content in enumerate(_split_lines(text), start=1):
        parts = content.split(maxsplit=1)
        if not parts:
            blank.append(line)
        elif not (parts[0].startswith("#") or (not strings and parts[0].casefold() == "smiles")):
            strings.append(parts[0])
            names.append(parts[1].strip() if len(parts) > 1 else "")
            lines.append(line)
    columns = {"string": strings} | ({"name": names} if any(names) else {})
    return Table(columns, np.array(lines, dtype=np.int64), "smi", checksum, headed=False, blank_lines=blank)


def _read_txt(path: Path, text: str, checksum: str) -> Table:
    strings: list[str] = []
    lines: list[int] = []
    blank: list[int] = []
    for line, content in enumerate(_split_lines(text), start=1):
        if content.strip():
            strings.append(content)
            lines.append(line)
        else:
            blank.append(line)
    return Table({"string": strings}, np.array(lines, dtype=np.int64), "txt", checksum, headed=False, blank_lines=blank)


def _read_fasta(path: Path, text: str, checksum: str) -> Table:
    strings: list[str] = []
    names: list[str] = []
    lines: list[int] = []
    for line, content in enumerate(_split_lines(text), start=1):
        stripped = content.strip()
        if stripped.startswith(">"):
            names.append(stripped[1:].strip())
            strings.append("")
            lines.append(line)
        elif stripped and not stripped.startswith(";"):
            if not strings:
                raise InputError(
                    f"{path}, line {line}: {_shorten([stripped])} stands before the first '>' header; a "
                    "FASTA file begins each sequence with a line '>name'; a plain list of sequences is a .txt"
                )
            strings[-1] += "".join(stripped.split())
    return Table({"string": strings, "name": names}, np.array(lines, dtype=np.int64), "fasta", checksum, headed=False)


def _read_parquet(source: Source, decimal_comma: bool) -> Table:
    import pyarrow
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.read_table(io.BytesIO(source.data))
    except (pyarrow.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{source.name} is not a readable parquet file ({reason}): write it again") from error
    columns = {}
    for name in table.column_names:
        column = table.column(name)
        cells = ["" if value is None else str(value) for value in column.to_pylist()]
        if decimal_comma and pyarrow.types.is_floating(column.type):
            cells = [cell.replace(".", ",") for cell in cells]
        columns[str(name)] = cells
    lines = np.arange(1, table.num_rows + 1, dtype=np.int64)
    return Table(columns, lines, "parquet", source.sha256, headed=True, source=source.name)
