"""Files of strings read block by block, so that no file has to fit into memory.

What is read, and what is said of it, is as `seqopt.datasets.tables` does it for a file as a whole, for those formats
that can be read from the beginning to the end: separated text, lists and parquet. A row that cannot be used (too few
cells, no UTF-8, quotation marks that do not match) is set aside with its line, and the rest is read.
"""

from __future__ import annotations

import csv
import glob
import gzip
import itertools
import os
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

from seqopt.datasets.pool_columns import kind_hint, recognize_column
from seqopt.datasets.sheets import Cells, plain_name, restore, split_cells
from seqopt.datasets.tables import FORMATS, Table
from seqopt.errors import InputError

STREAMED = ("csv", "smi", "txt", "parquet")
"""Formats that are read in blocks."""

HEAD = 1 << 18
"""Characters at the beginning of a file by which separators and columns are told."""

HEAD_ROWS = 1_000
"""Rows of the beginning by which a column is told."""

READ = 1 << 20
"""Bytes of a file that are read at a time."""


@dataclass
class RowBlock:
    """Some rows of one file, in their order.

    Attributes:
        file: The number of the file.
        strings: What stands in the column of strings, without the blanks around it.
        lines: The line on which each row begins, counted from 1; for parquet the number of the row.
        unread: Rows that hold no string: line, what stands there, why.
        cells: Of each column that is kept besides (`RowFile.kept`), the cells of these rows.
    """

    file: int
    strings: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    unread: list[tuple[int, str, str]] = field(default_factory=list)
    cells: tuple[list[str], ...] = ()


@dataclass(frozen=True)
class RowFile:
    """A file that is read in blocks.

    Attributes:
        path: Where it is.
        form: One of `STREAMED`.
        compressed: Whether by gzip.
        column: Its column of strings; `None` for lists, which have none.
        separator: Between cells of separated text.
        hint: The kind that its ending or the name of its column suggests.
        head: The first strings.
        columns: All columns; of lists, what follows each string is their column ``name``.
        begun: The cells of the first rows, by column.
        kept: Columns whose cells are read besides the strings; where a file lacks one, its cells are empty.
    """

    path: Path
    form: str
    compressed: bool
    column: str | None
    separator: str
    hint: str | None
    head: list[str]
    columns: tuple[str, ...] = ()
    begun: Mapping[str, Sequence[str]] = field(default_factory=dict)
    kept: tuple[str, ...] = ()


def files_of(source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[Path]:
    """The files that are meant by a path, a folder, a pattern such as ``"library/*.csv.gz"``, or a list of these.

    Of a folder, those whose names end as `seqopt.datasets.tables.FORMATS` says; in the order of their names.

    Raises:
        InputError: If there is none.
    """
    if not isinstance(source, str | os.PathLike):
        found = [file for one in source for file in files_of(one)]
        if not found:
            raise InputError("no file of candidates is given")
        if len(set(map(os.path.realpath, found))) < len(found):
            repeated = next(one for one in found if found.count(one) > 1)
            raise InputError(f"{repeated} is given more than once: name every file once")
        return found
    text = os.fspath(source)
    path = Path(text)
    if path.is_dir():
        inside = [one for one in sorted(path.iterdir()) if one.is_file() and _form(one)[0] in STREAMED]
        if not inside:
            raise InputError(f"the folder {path} holds no .csv, .tsv, .smi, .txt or .parquet file (or .gz of these)")
        return inside
    if path.exists():
        return [path]
    matching = sorted(map(Path, glob.glob(text, recursive=True)))
    if not matching:
        raise InputError(f"there is no file {text}: give a file, a folder, or a pattern such as 'library/*.csv.gz'")
    return matching


def _form(path: Path) -> tuple[str | None, bool]:
    name = path.name.lower()
    compressed = name.endswith(".gz")
    return FORMATS.get(Path(name.removesuffix(".gz")).suffix), compressed


def look_at(paths: Sequence[Path], column: str | None, kind: str | None) -> list[RowFile]:
    """How files are to be read: their formats, separators and columns of strings, from their beginnings.

    Args:
        paths: Files of one pool.
        column: The column of strings; by default recognised in the first file that has columns. All others have to
            have one of that name.
        kind: Of the strings, if it is known.

    Raises:
        InputError: For a file of another format, without a header, or without that column; the message names it.
    """
    found: list[RowFile] = []
    named: str | None = column
    first: Path | None = None
    for path in paths:
        form, compressed = _form(path)
        if form not in STREAMED:
            what = "unknown ending" if form is None else f"{form} file"
            raise InputError(
                f"{path} is a file of {what}, which cannot be read in blocks: write it as .csv, .tsv, .smi, .txt or "
                ".parquet (.gz for text)"
            )
        try:
            one = _look_at(path, form, compressed, named, kind)
        except InputError as error:
            if first is None or column is not None:
                raise
            raise InputError(
                f"{error}. All files of a pool need a column of strings of one name, and {first} has {named!r}: "
                "rename the column, or leave the file out"
            ) from error
        if one.column is not None and named is None:
            named, first = one.column, path
        found.append(one)
    return found


def _look_at(path: Path, form: str, compressed: bool, column: str | None, kind: str | None) -> RowFile:
    if form == "parquet":
        if compressed:
            raise InputError(f"{path} is parquet inside gzip: unpack it, parquet is compressed already")
        return _look_at_parquet(path, column, kind)
    try:
        with _text(path, compressed) as stream:
            text = stream.read(HEAD)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{path} is cut off or damaged ({error}): get it again") from error
    if len(text) == HEAD:
        text = text[: text.rfind("\n") + 1] or text
    if "\x00" in text or "\udcff\udcfe" in text[:4]:
        raise InputError(f"{path} is no text in UTF-8, which is all that is read in blocks: save it as UTF-8")
    if form != "csv":
        listed = [row for row in _listed(iter(text.splitlines()), form) if row[0]][:HEAD_ROWS]
        strings, names = [row[0] for row in listed], [row[2] for row in listed]
        named = {LISTED_NAME: names} if form == "smi" and any(names) else {}
        hint = "molecule" if form == "smi" else None
        return RowFile(path, form, compressed, None, "", hint, strings, tuple(named), named)
    tabbed = not path.name.lower().removesuffix(".gz").endswith(".csv")
    expected = {plain_name(column)} if column is not None else frozenset()
    cells = _head_cells(path, text, "\t" if tabbed else None, expected)
    rows = [row for row in cells.rows if len(row) > 1 or (row and row[0].strip())]
    if not rows:
        raise InputError(f"{path} has no header line: begin it with the names of its columns")
    header = _header(path, rows[0])
    body = [row for row in rows[1:] if len(row) == len(header)][:HEAD_ROWS]
    table = _table(header, body)
    chosen = table.column(column, str(path)) if column is not None else recognize_column(table, str(path), kind)
    return RowFile(
        path,
        form,
        compressed,
        chosen,
        cells.separator,
        kind_hint(chosen),
        table.columns[chosen],
        tuple(header),
        table.columns,
    )


def _head_cells(path: Path, text: str, separator: str | None, expected: Collection[str]) -> Cells:
    """The cells of the beginning of a file; where a quotation mark is out of place, of fewer lines of it."""
    while True:
        try:
            return split_cells(path, text, separator=separator, expected=expected)
        except InputError:
            lines = text.splitlines(keepends=True)
            if len(lines) < 2:
                raise
            text = "".join(lines[: len(lines) // 2])


def _header(path: Path, cells: Sequence[str]) -> list[str]:
    names = [cell.strip() or f"column {number}" for number, cell in enumerate(cells, start=1)]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InputError(f"{path} has several columns called {', '.join(map(repr, repeated))}: rename all but one")
    return names


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    columns = {name: [row[number] for row in rows] for number, name in enumerate(header)}
    return Table(columns, np.arange(len(rows)), format="csv", sha256="", headed=True)


def _parquet(path: Path) -> Any:
    import pyarrow
    import pyarrow.parquet

    try:
        return pyarrow.parquet.ParquetFile(path, memory_map=True)
    except (pyarrow.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{path} is not a readable parquet file ({reason}): write it again") from error


def _look_at_parquet(path: Path, column: str | None, kind: str | None) -> RowFile:
    with _parquet(path) as file:
        names = [str(name) for name in file.schema_arrow.names]
        batch = next(file.iter_batches(batch_size=HEAD_ROWS), None)
        cells = {} if batch is None else batch.to_pydict()
    rows = {name: ["" if cell is None else str(cell) for cell in cells.get(name, [])] for name in names}
    table = Table(rows, np.arange(0), format="parquet", sha256="", headed=True)
    chosen = table.column(column, str(path)) if column is not None else recognize_column(table, str(path), kind)
    hint = kind_hint(chosen)
    return RowFile(path, "parquet", False, chosen, "", hint, table.columns[chosen], tuple(names), table.columns)


def _text(path: Path, compressed: bool) -> IO[str]:
    """A file as text; bytes that are no UTF-8 become surrogates, so that their rows can be named."""
    try:
        if compressed:
            return gzip.open(path, "rt", encoding="utf-8-sig", errors="surrogateescape", newline="")
        return open(path, encoding="utf-8-sig", errors="surrogateescape", newline="", buffering=READ)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error


def blocks_of(files: Sequence[RowFile], size: int) -> Iterator[RowBlock]:
    """All rows of some files, ``size`` at a time; a block holds rows of one file, and depends on nothing else.

    Raises:
        InputError: For a file that is damaged; the message names it.
    """
    for number, file in enumerate(files):
        try:
            yield from _blocks(file, number, size)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise InputError(f"{file.path} is cut off or damaged ({error}): get it again") from error
        except OSError as error:
            raise InputError(f"cannot read {file.path}: {error.strerror or error}") from error


def _blocks(file: RowFile, number: int, size: int) -> Iterator[RowBlock]:
    block = _begun(file, number)
    waiting: list[tuple[int, str, str]] = []
    for string, line, why, cells in _parquet_rows(file, size) if file.form == "parquet" else _text_rows(file):
        if why == BLANK:
            # At the end of a file they mean nothing.
            waiting.append((line, "", BLANK))
            continue
        if waiting:
            block.unread += waiting
            waiting = []
        if why is None:
            block.strings.append(string)
            block.lines.append(line)
            for kept, cell in zip(block.cells, cells, strict=True):
                kept.append(cell)
        else:
            block.unread.append((line, string, why))
        if len(block.strings) + len(block.unread) >= size:
            yield block
            block = _begun(file, number)
    if block.strings or block.unread:
        yield block


def _begun(file: RowFile, number: int) -> RowBlock:
    return RowBlock(number, cells=tuple([] for _ in file.kept))


BLANK = "blank line"

LISTED_NAME = "name"
"""What follows the strings of a list is called."""

_Row = tuple[str, int, str | None, tuple[str, ...]]


def _text_rows(file: RowFile) -> Iterator[_Row]:
    with _text(file.path, file.compressed) as stream:
        if file.form != "csv":
            first = True
            for line, (string, why, name) in enumerate(_listed(stream, file.form), start=1):
                if why == COMMENT or (first and file.form == "smi" and string.casefold() == "smiles"):
                    continue
                first = first and not string
                yield _checked(string, line, why, tuple(name if kept == LISTED_NAME else "" for kept in file.kept))
            return
        yield from _separated(file, stream)


COMMENT = "comment"


def _listed(lines: Iterator[str] | IO[str], form: str) -> Iterator[tuple[str, str | None, str]]:
    for content in lines:
        stripped = content.strip()
        if not stripped:
            yield "", BLANK, ""
        elif form == "txt":
            yield stripped, None, ""
        elif stripped.startswith("#"):
            yield "", COMMENT, ""
        else:
            string, *name = stripped.split(maxsplit=1)
            yield string, None, name[0] if name else ""


def _separated(file: RowFile, stream: IO[str]) -> Iterator[_Row]:
    begin = stream.readline()
    before = 0
    lines: Iterator[str] = iter(stream)
    if begin.strip().strip('"').lower().startswith("sep="):
        before = 1
    else:
        lines = itertools.chain([begin], lines)
    reader = csv.reader(lines, delimiter=file.separator, strict=True)
    width, place, previous = len(file.columns), -1, 0
    besides: list[int | None] = []
    while True:
        line = previous + before + 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            previous = reader.line_num
            until = "" if previous + before <= line else f", and nothing up to line {previous + before} could be read"
            yield "", line, f"{error}: check the quotation marks{until}", ()
            continue
        previous = reader.line_num
        if row is None:
            return
        if not row or (len(row) == 1 and not row[0].strip()):
            yield "", line, BLANK, ()
            continue
        if place < 0:
            place = file.columns.index(str(file.column))
            besides = [file.columns.index(name) if name in file.columns else None for name in file.kept]
            continue
        while len(row) > width and not row[-1].strip():
            row.pop()
        if len(row) != width:
            yield row[place] if place < len(row) else "", line, f"{len(row)} cells where the header has {width}", ()
            continue
        cells = tuple("" if at is None else restore(row[at]).strip() for at in besides)
        yield _checked(restore(row[place]).strip(), line, None, cells)


def _checked(string: str, line: int, why: str | None, cells: tuple[str, ...]) -> _Row:
    if why is None and not string.isascii():
        try:
            string.encode("utf-8")
        except UnicodeEncodeError:
            return ascii(string), line, "not text in UTF-8", ()
    # Bytes of other columns that are no UTF-8 are shown as such: they identify nothing, and stop nothing.
    return string, line, why, tuple(cell if cell.isascii() else _readable(cell) for cell in cells)


def _readable(cell: str) -> str:
    return cell.encode("utf-8", "backslashreplace").decode("utf-8")


def _parquet_rows(file: RowFile, size: int) -> Iterator[_Row]:
    import pyarrow

    line = 0
    try:
        with _parquet(file.path) as opened:
            wanted = [str(file.column), *(name for name in file.kept if name in file.columns)]
            for batch in opened.iter_batches(batch_size=size, columns=list(dict.fromkeys(wanted))):
                read = {name: batch.column(name).to_pylist() for name in batch.schema.names}
                empty = [None] * batch.num_rows
                for cell, *cells in zip(
                    read[str(file.column)], *(read.get(name, empty) for name in file.kept), strict=True
                ):
                    line += 1
                    yield _cell(cell), line, None, tuple(map(_cell, cells))
    except pyarrow.ArrowException as error:
        raise InputError(f"{file.path} is damaged after row {line:,} ({error}): get it again") from error


def _cell(cell: object) -> str:
    return "" if cell is None else str(cell).strip()
