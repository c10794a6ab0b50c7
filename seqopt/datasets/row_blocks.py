"""Files of strings read block by block, so that no file has to fit into memory.

What is read, and what is said of it, is as `seqopt.datasets.tables` does it for a file as a whole, for those formats
that can be read from the beginning to the end: separated text, lists and parquet. A row that cannot be used (too few
cells, no UTF-8, quotation marks that do not match) is set aside with its line, and the rest is read.
"""

from __future__ import annotations

import contextlib
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
from seqopt.datasets.sheets import SIGNATURE, Cells, likely_encodings, plain_name, restore, split_cells
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
        begun_lines: On which lines these rows begin.
        kept: Columns whose cells are read besides the strings; where a file lacks one, its cells are empty.
        own: What this file calls columns among ``kept`` that have another name in other files.
        encoding: Of its text.
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
    begun_lines: Sequence[int] = ()
    kept: tuple[str, ...] = ()
    own: Mapping[str, str] = field(default_factory=dict)
    encoding: str = "utf-8-sig"

    def kept_here(self) -> list[str | None]:
        """What each of the columns that are kept is called in this file; `None` where it lacks one."""
        names = [self.own.get(name, name) for name in self.kept]
        return [name if name in self.columns else None for name in names]


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
            others = listed_briefly(_beside(path))
            raise InputError(
                f"the folder {path} holds no .csv, .tsv, .smi, .txt or .parquet file (or .gz of these)"
                + (f", but {others}" if others else "")
            )
        return inside
    if path.exists():
        return [path]
    matching = [one for one in sorted(map(Path, glob.glob(text, recursive=True))) if one.is_file()]
    if not matching:
        raise InputError(f"there is no file {text}: give a file, a folder, or a pattern such as 'library/*.csv.gz'")
    return matching


def left_out(source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[str]:
    """What `files_of` leaves out of folders, in a line for each folder; hidden files are not mentioned.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for name in ("a.csv", "b.xlsx", ".hidden"):
        ...         Path(folder, name).touch()
        ...     print(left_out(folder)[0].removeprefix(folder))
        : 1 of what is in the folder is not read: b.xlsx (save it as .csv)
    """
    if not isinstance(source, str | os.PathLike):
        return [line for one in source for line in left_out(one)]
    text = os.fspath(source)
    path = Path(text)
    if path.is_dir():
        skipped, where = _beside(path), "what is in the folder"
    elif path.exists():
        return []
    else:
        # Files that a pattern names are read or refused.
        found = [] if "**" in text else sorted(glob.glob(text))
        skipped = [(one, "a folder") for one in found if os.path.isdir(one)]
        where = "what the pattern fits"
    verb = "is" if len(skipped) == 1 else "are"
    return [f"{text}: {len(skipped):,} of {where} {verb} not read: {listed_briefly(skipped)}"] if skipped else []


SHOWN = 5
"""Files that are named where some are left out."""


def listed_briefly(files: Sequence[tuple[str, str]]) -> str:
    """The first few of some files, what is to be said of each, and how many more there are."""
    named = [f"{name} ({what})" if what else name for name, what in files[:SHOWN]]
    more = len(files) - len(named)
    return ", ".join(named) + (f" and {more:,} more" if more else "")


def _beside(folder: Path) -> list[tuple[str, str]]:
    """What a folder holds besides files that are read in blocks, and what to do with it."""
    found = []
    for one in sorted(folder.iterdir()):
        form = _form(one)[0]
        if one.name.startswith(".") or (one.is_file() and form in STREAMED):
            continue
        if one.is_dir():
            what = f"a folder: the pattern '{folder}/**/*.csv' reads the files in it, too"
        elif one.suffix.lower() in (".zip", ".7z", ".rar", ".tar", ".tgz"):
            what = "an archive: unpack it"
        else:
            what = "" if form is None else "save it as .csv"
        found.append((one.name, what))
    # What can be made readable comes first, behind it what may never have been meant.
    return sorted(found, key=lambda item: not item[1])


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
            what = "a file of an unknown ending" if form is None else f"{'a' if form == 'fasta' else 'an'} {form} file"
            raise InputError(
                f"{path} is {what}, which cannot be read in blocks: write it as .csv, .tsv, .smi, .txt or "
                ".parquet (.gz for text)"
            )
        one = _look_at(path, form, compressed, named, kind, first)
        if one.column is not None and named is None:
            named, first = one.column, path
        found.append(one)
    return found


def _look_at(
    path: Path, form: str, compressed: bool, column: str | None, kind: str | None, first: Path | None
) -> RowFile:
    if form == "parquet":
        if compressed:
            raise InputError(f"{path} is parquet inside gzip: unpack it, parquet is compressed already")
        return _look_at_parquet(path, column, kind, first)
    compressed = _is_gzip(path, compressed)
    try:
        encoding = _encoding(path, compressed)
        with _text(path, compressed, encoding) as stream:
            text = stream.read(HEAD)
    except DAMAGE as error:
        raise _damaged(path, compressed, error) from error
    if len(text) == HEAD:
        text = text[: text.rfind("\n") + 1] or text
    if "\x00" in text:
        raise InputError(f"{path} holds NUL bytes: it is no text, or damaged: save it as UTF-8, or leave it out")
    if form != "csv":
        listed = [(line, row) for line, row in enumerate(_listed(iter(text.splitlines()), form), 1) if row[0]]
        if form == "smi" and listed and listed[0][1][0].casefold() == "smiles":
            del listed[0]
        lines, heads = [line for line, _ in listed[:HEAD_ROWS]], [row for _, row in listed[:HEAD_ROWS]]
        strings, names = [row[0] for row in heads], [row[2] for row in heads]
        named = {LISTED_NAME: names} if form == "smi" and any(names) else {}
        return RowFile(
            path,
            form,
            compressed,
            column=None,
            separator="",
            hint="molecule" if form == "smi" else None,
            head=strings,
            columns=tuple(named),
            begun=named,
            begun_lines=lines,
            encoding=encoding,
        )
    tabbed = not path.name.lower().removesuffix(".gz").endswith(".csv")
    expected = {plain_name(column)} if column is not None else frozenset()
    cells = _head_cells(path, text, "\t" if tabbed else None, expected)
    numbered = zip(cells.lines, cells.rows, strict=True)
    rows = [(line, row) for line, row in numbered if len(row) > 1 or (row and row[0].strip())]
    if not rows:
        raise InputError(f"{path} has no header line: begin it with the names of its columns")
    header = _header(path, rows[0][1])
    body = [(line, row) for line, row in rows[1:] if len(row) == len(header)][:HEAD_ROWS]
    table = _table(header, [row for _, row in body])
    chosen = _chosen(table, path, column, kind, first)
    return RowFile(
        path,
        form,
        compressed,
        column=chosen,
        separator=cells.separator,
        hint=kind_hint(chosen),
        head=table.columns[chosen],
        columns=tuple(header),
        begun=table.columns,
        begun_lines=[line for line, _ in body],
        encoding=encoding,
    )


def _chosen(table: Table, path: Path, column: str | None, kind: str | None, first: Path | None) -> str:
    """The column of strings.

    Args:
        table: The beginning of the file.
        path: The file.
        column: What it has to be called, if that is known.
        kind: Of the strings, if that is known.
        first: The file that said so; `None` if its user did.
    """
    if column is None:
        return recognize_column(table, str(path), kind)
    try:
        return table.column(column, str(path))
    except InputError as error:
        if first is None:
            raise
        raise InputError(
            f"{error}. All files of a pool need a column of strings of one name, and {first} has {column!r}: "
            "rename the column, or leave the file out"
        ) from error


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
        raise InputError(f"{path} {_parquet_damage(path, error)}") from error


def _parquet_damage(path: Path, error: Exception) -> str:
    reason = str(error).splitlines()[0]
    with contextlib.suppress(OSError), path.open("rb") as file:
        begin = file.read(4)
        file.seek(-4, os.SEEK_END)
        # What is where in such a file is written at its end.
        if begin == b"PAR1" != file.read(4):
            return f"is cut off, and nothing of a parquet file can be read without its end: {AGAIN}"
    return f"is not a readable parquet file ({reason}): write it again, or leave it out"


def _look_at_parquet(path: Path, column: str | None, kind: str | None, first: Path | None) -> RowFile:
    import pyarrow

    try:
        with _parquet(path) as file:
            names = [str(name) for name in file.schema_arrow.names]
            batch = next(file.iter_batches(batch_size=HEAD_ROWS), None)
            cells = {} if batch is None else batch.to_pydict()
    except (pyarrow.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{path} is damaged, and its first rows cannot be read ({reason}): {AGAIN}") from error
    rows = {name: ["" if cell is None else str(cell) for cell in cells.get(name, [])] for name in names}
    table = Table(rows, np.arange(0), format="parquet", sha256="", headed=True)
    chosen = _chosen(table, path, column, kind, first)
    return RowFile(
        path,
        "parquet",
        compressed=False,
        column=chosen,
        separator="",
        hint=kind_hint(chosen),
        head=table.columns[chosen],
        columns=tuple(names),
        begun=table.columns,
        begun_lines=range(1, len(table.columns[chosen]) + 1),
    )


AGAIN = "copy or download it again, or leave it out"

DAMAGE = (EOFError, gzip.BadGzipFile, zlib.error, UnicodeDecodeError)
"""What reading a damaged file raises."""


def _damaged(path: Path, compressed: bool, error: Exception) -> InputError:
    """What is wrong with a file of text, and how far it can be read."""
    if isinstance(error, UnicodeDecodeError):
        return InputError(
            f"{path} is text in UTF-16 that is cut off or damaged ({error.reason}): save it as UTF-8, or get it again"
        )
    lines = 0
    with contextlib.suppress(*DAMAGE, OSError), gzip.open(path, "rb") as stream:
        while data := stream.read1(READ):
            lines += data.count(b"\n")
    what = "is cut off" if isinstance(error, EOFError) else "is damaged"
    far = f"can be read up to line {lines:,}" if lines else "has not one line that can be read"
    return InputError(f"{path} {what} and {far} ({error}): {AGAIN}")


def _is_gzip(path: Path, named: bool) -> bool:
    """Whether a file is compressed by gzip, whatever it is called.

    Raises:
        InputError: If it cannot be read, or is not compressed and called as if it were.
    """
    try:
        with path.open("rb") as file:
            begin = file.read(2)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    if named and begin and begin != b"\x1f\x8b":
        raise InputError(f"{path} is not compressed by gzip, or damaged: {AGAIN}; if it is text, rename it without .gz")
    return begin == b"\x1f\x8b"


def _encoding(path: Path, compressed: bool) -> str:
    """UTF-8 or UTF-16: of what is neither, single rows are set aside, as far as they are not UTF-8.

    Raises:
        InputError: For files of other programs.
    """
    with gzip.open(path, "rb") if compressed else path.open("rb") as stream:
        begin = stream.read(SIGNATURE)
    likely = likely_encodings(path, begin)[0]
    # A few zeros do not make text UTF-16.
    return "utf-8-sig" if likely != "utf-16" and begin.count(0) < len(begin) / 4 else likely


def _text(path: Path, compressed: bool, encoding: str) -> IO[str]:
    """A file as text; bytes that are no UTF-8 become surrogates, so that their rows can be named."""
    errors = "surrogateescape" if encoding == "utf-8-sig" else "strict"
    try:
        if compressed:
            return gzip.open(path, "rt", encoding=encoding, errors=errors, newline="")
        return open(path, encoding=encoding, errors=errors, newline="", buffering=READ)
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
        except DAMAGE as error:
            raise _damaged(file.path, file.compressed, error) from error
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
    with _text(file.path, file.compressed, file.encoding) as stream:
        if file.form != "csv":
            first, kept = True, file.kept_here()
            for line, (string, why, name) in enumerate(_listed(stream, file.form), start=1):
                if why == COMMENT or (first and file.form == "smi" and string.casefold() == "smiles"):
                    continue
                first = first and not string
                yield _checked(string, line, why, tuple("" if one is None else name for one in kept))
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
            besides = [None if name is None else file.columns.index(name) for name in file.kept_here()]
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
            kept = file.kept_here()
            wanted = [str(file.column), *filter(None, kept)]
            for batch in opened.iter_batches(batch_size=size, columns=list(dict.fromkeys(wanted))):
                read = {name: batch.column(name).to_pylist() for name in batch.schema.names}
                empty = [None] * batch.num_rows
                besides = [empty if name is None else read[name] for name in kept]
                for cell, *cells in zip(read[str(file.column)], *besides, strict=True):
                    line += 1
                    yield _cell(cell), line, None, tuple(map(_cell, cells))
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{file.path} is damaged and can be read up to row {line:,} ({error}): {AGAIN}") from error


def _cell(cell: object) -> str:
    return "" if cell is None else str(cell).strip()
