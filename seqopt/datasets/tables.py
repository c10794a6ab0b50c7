"""Reading files of strings row by row, with the line on which each row stands.

Each reader returns the columns of a file as they are written; `seqopt.datasets.pools` decides what they mean.
"""

from __future__ import annotations

import difflib
import gzip
import hashlib
import io
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from seqopt.datasets.sheets import decoded, split_cells
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
}
"""Endings of file names, each also with ``.gz`` after it (except parquet), and how such a file is read."""

_WAY_OUT = "use .csv, .tsv, .smi, .txt, .fasta or .parquet (all but parquet also with .gz)"


@dataclass(frozen=True)
class Table:
    """The rows of a file.

    Attributes:
        columns: Their cells, by column name. A file without a header has the columns ``"string"`` and, where
            it holds names, ``"name"``.
        lines: The line in the file on which each row begins, counted from 1; for parquet, the number of the
            row.
        format: One of the values of `FORMATS`.
        sha256: Of the file as it lies on the disk.
        headed: Whether the column names come from the file.
        blank_lines: Lines that hold nothing, except at the end of the file.
    """

    columns: dict[str, list[str]]
    lines: npt.NDArray[np.int64]
    format: str
    sha256: str
    headed: bool
    blank_lines: list[int] = field(default_factory=list)

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


def read_table(path: Path) -> Table:
    """The rows of ``path``, which is read by the ending of its name.

    Raises:
        InputError: For a file that is missing, empty, damaged, no text, or of an unknown ending, and for a
            .csv whose rows differ in their number of cells.
    """
    if not path.exists():
        raise InputError(f"there is no file {path}{_neighbours(path)}")
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file in it")
    suffixes = [suffix.lower() for suffix in path.suffixes]
    zipped = suffixes[-1:] == [".gz"]
    ending = (suffixes[-2:-1] if zipped else suffixes[-1:]) or [""]
    form = FORMATS.get(ending[0])
    if form is None:
        raise InputError(f"cannot tell from its name how to read {path}: {_WAY_OUT}")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    if not data:
        raise InputError(f"{path} is empty")
    checksum = hashlib.sha256(data).hexdigest()
    if form == "parquet":
        return _read_parquet(path, data, checksum)
    text, _ = decoded(path, _unzip(path, data) if zipped else data, guess=False)
    if not text.strip():
        raise InputError(f"{path} holds only blank lines")
    readers: dict[str, Callable[[Path, str, str], Table]] = {
        "smi": _read_smi,
        "txt": _read_txt,
        "fasta": _read_fasta,
    }
    if form == "csv":
        return _read_csv(path, text, checksum, tabbed=ending[0] != ".csv")
    return readers[form](path, text, checksum)


def _neighbours(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f" (nor a folder {folder})"
    close = difflib.get_close_matches(path.name, [item.name for item in folder.iterdir()], n=1)
    return f". Did you mean {folder / close[0]}?" if close else ""


def _unzip(path: Path, data: bytes) -> bytes:
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} is not a complete gzip file ({error}): copy or download it again") from error


def _split_lines(text: str) -> list[str]:
    # Only line feeds and carriage returns end lines: str.splitlines also splits at form feeds and the like.
    return text.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n").split("\n")


def _read_csv(path: Path, text: str, checksum: str, *, tabbed: bool) -> Table:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    cells = split_cells(path, text, separator="\t" if tabbed else None)
    header: list[str] | None = None
    rows: list[Sequence[str]] = []
    lines: list[int] = []
    blank = list(cells.blank)
    for row, line in zip(cells.rows, cells.lines, strict=True):
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
        format="csv",
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


def _read_parquet(path: Path, data: bytes, checksum: str) -> Table:
    import pyarrow
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.read_table(io.BytesIO(data))
    except (pyarrow.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{path} is not a readable parquet file ({reason}): write it again") from error
    columns = {}
    for name in table.column_names:
        values = table.column(name).to_pylist()
        columns[str(name)] = ["" if value is None else str(value) for value in values]
    lines = np.arange(1, table.num_rows + 1, dtype=np.int64)
    return Table(columns, lines, "parquet", checksum, headed=True)
