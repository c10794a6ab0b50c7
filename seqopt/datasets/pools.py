"""Pools of candidate strings, read from a file or a named data set.

A file says which strings there are, `read_pool` says which of them are usable and which are the same thing:
strings that cannot be read are set aside with their line and the reason, and several spellings of one
molecule become one candidate.
"""

from __future__ import annotations

import csv
import math
import os
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from seqopt.datasets.numbers import not_a_number, read_number
from seqopt.datasets.pool_columns import number_in, short
from seqopt.datasets.pool_rows import (
    PoolRows,
    file_rows,
    named_rows,
    refuse_missing_header,
    refuse_names,
    with_variants,
)
from seqopt.datasets.pool_shards import ATTACHMENT_OPTION, why_rejected
from seqopt.datasets.row_blocks import BLANK
from seqopt.datasets.structures import as_smiles
from seqopt.errors import InputError
from seqopt.strings.identity import (
    AMINO_ACIDS,
    KINDS,
    RULES,
    explain_attachment,
    identity_keys,
    recognize_kind,
)
from seqopt.utils.cache import digest, read_cached, write_cached
from seqopt.utils.workers import Progress, map_strings

PARALLEL_FROM = 5_000
"""Number of molecules from which on keys are computed in several processes."""

CACHE_FROM = 20_000
"""Number of molecules above which their keys are kept on disk."""

NOTHING = (BLANK, "empty")
"""Why a row is rejected that holds nothing."""

EXAMPLES = 5
"""Rejected strings and duplicates that messages show."""


@dataclass(frozen=True)
class Rejected:
    """A string that was set aside.

    Attributes:
        line: Its line in the file, counted from 1.
        value: What stands there.
        reason: Why it cannot be used.
    """

    line: int
    value: str
    reason: str


@dataclass(frozen=True)
class Duplicate:
    """A string that is the same thing as an earlier one.

    Attributes:
        line: Its line.
        string: What stands there.
        first_line: The line of the earlier one.
        first_string: What stands there.
    """

    line: int
    string: str
    first_line: int
    first_string: str


@dataclass(frozen=True)
class Pool:
    """Candidate strings, all usable and all different.

    Attributes:
        strings: The candidates as they are written in the file, without the blanks around them; SMILES in the place
            of InChI.
        keys: What identifies each: see `seqopt.strings.identity.identity_keys`.
        kind: One of `seqopt.strings.identity.KINDS`.
        lines: The line on which each stands, counted from 1 (for parquet, the number of the row).
        values: A number for each candidate, where a column of values was asked for. Candidates that stand in
            the file several times have the mean of their values.
        names: The name of each candidate, where the file has names.
        rejected: What was set aside, by line.
        duplicates: How many strings were the same thing as an earlier one and left out.
        duplicate_examples: The first few of them.
        source: The file or the name of the data set.
        column: The name of the column of strings, where the file has columns.
        values_column: The name of the column of values.
        sha256: Checksum of the file.
        standardized: Whether the keys are those of the molecules' charge parents.
        separator: What stands between the cells of the file, where it is separated text.
        decimal_comma: Whether numbers in the file are written ``6,5``.
        remarks: What is worth knowing of how the file was read.
        attachment_points: Whether molecules with attachment points were kept.
        identifiers: What the owner of the file calls each candidate, where a column tells all of them apart.
        id_column: The name of that column.
        further: Of other columns of numbers, by name, a number for each candidate; NaN where the cell holds none.
        parent: The string of which the candidates are variants, where it is known.
    """

    strings: tuple[str, ...]
    keys: tuple[str, ...]
    kind: str
    lines: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64] | None
    names: tuple[str, ...] | None
    rejected: tuple[Rejected, ...]
    duplicates: int
    duplicate_examples: tuple[Duplicate, ...]
    source: str
    column: str | None
    values_column: str | None
    sha256: str
    standardized: bool = False
    separator: str | None = None
    decimal_comma: bool = False
    remarks: tuple[str, ...] = ()
    attachment_points: bool = False
    identifiers: tuple[str, ...] | None = None
    id_column: str | None = None
    further: Mapping[str, npt.NDArray[np.float64]] = field(default_factory=dict)
    parent: str | None = None

    def __len__(self) -> int:
        return len(self.strings)

    def __repr__(self) -> str:
        return f"Pool({len(self):,} x {self.kind} from {self.source!r})"

    def summary(self) -> str:
        """What was read and what was left out, in a few lines for the user."""
        where = self.source if self.column is None else f"{self.source}, column {self.column!r}"
        plural = {
            "molecule": "molecules",
            "protein": "proteins",
            "dna": "DNA sequences",
            "rna": "RNA sequences",
        }
        lines = [f"{len(self):,} different {plural.get(self.kind, 'strings')} from {where}", *self.remarks]
        if self.duplicates:
            merged = "; their values are the mean" if self.values is not None else ""
            examples = ", ".join(
                f"line {double.line} {short(double.string)} is line {double.first_line} {short(double.first_string)}"
                for double in self.duplicate_examples[:2]
            )
            lines.append(f"{self.duplicates:,} duplicates merged{merged} ({examples})")
        if self.rejected:
            lines.append(f"{len(self.rejected):,} rejected: {_list_by_line(self.rejected, 2)}")
        return "\n".join(lines)


def read_pool(
    source: str | os.PathLike[str],
    *,
    column: str | None = None,
    kind: str | None = None,
    strict: bool = False,
    standardize: bool = False,
    values_column: str | None = None,
    log_values: bool = False,
    decimal_comma: bool = False,
    attachment_points: bool = False,
    id_column: str | None = None,
    further_column: str | None = None,
    further_values: Sequence[str] = (),
    parent: str | None = None,
    check_columns: Callable[[Sequence[str] | None], object] | None = None,
    progress: Progress | None = None,
) -> Pool:
    """Read candidate strings from a file or a named data set.

    Files are read by their ending: ``.csv``, ``.tsv`` (a header, then rows), ``.xlsx`` (a sheet of a workbook),
    ``.sdf``, ``.smi`` (SMILES, blank, name), ``.txt`` (a string a line), ``.fasta``/``.fa`` and ``.parquet``; all also
    with ``.gz``, or in a ``.zip``. Where a file holds several tables, ``FILE#TABLE`` says which: a sheet of a workbook,
    a file of an archive. An InChI counts as the SMILES of its molecule; names of compounds and InChIKeys are refused.
    Molecules are identified by their isomeric canonical SMILES, sequences by their letters in upper case,
    other strings by themselves; of equal ones the first is kept. What cannot be used, such as an empty cell,
    an unreadable SMILES, or a missing value, is set aside in `Pool.rejected`, and the rest is read.

    Canonicalising a quarter of a million molecules takes about half a minute on one core. From 5,000
    molecules on it is done in several processes, and the keys of more than 20,000 are kept in the cache
    folder (`seqopt.utils.cache.cache_dir`) for the next time.

    Args:
        source: A path, or the name of a data set that `seqopt.datasets.load` knows, such as ``"zinc250k"``.
        column: The column of strings. By default a column with a usual name (``smiles``, ``sequence``,
            ``protein``, ...) or else the only column of text.
        kind: ``"molecule"``, ``"protein"``, ``"dna"``, ``"rna"`` or ``"text"``; by default (or ``"auto"``)
            recognised from the file's ending, the name of the column and the strings.
        strict: Raise an error when any string cannot be used.
        standardize: Identify molecules by their charge parent, without salts and charges: see
            `seqopt.strings.identity.canonical_smiles`. The strings themselves are never changed.
        values_column: A column of numbers to read along. A string that occurs several times has their mean.
        log_values: The values are to be compared on a logarithmic scale: the mean of several is their geometric mean,
            and a row whose value is not positive is rejected.
        decimal_comma: Numbers in the file are written ``6,5``, and none ``6.5``.
        attachment_points: Keep molecules with attachment points (``*``, ``[*:1]``), such as building blocks and repeat
            units of polymers. By default they are rejected: they are not whole molecules.
        id_column: The column of identifiers, one for each candidate. By default a column with a usual name
            (``compound_id``, ``id``, ``name``, ...), if its cells tell all candidates apart.
        further_column: Another column that the file must have, such as that of prices.
        further_values: Other columns of numbers to read along, whose cells may be empty: see `Pool.further`.
        parent: The string of which the candidates are variants: they may then be written as ``S121E/D57G`` or ``wt``,
            also in a column called ``mutations`` or ``variant``, and become the whole strings.
        check_columns: Called with the names of the other columns (`None` of a data set), before the strings are looked
            at, which takes long; what it raises is passed on.
        progress: Called with the numbers of molecules canonicalised and in all, when there are many.

    Raises:
        InputError: For a file that cannot be read (see `seqopt.datasets.tables.read_table`), a column that is
            missing or cannot be told, an ``id_column`` that does not tell candidates apart, an unknown kind, names of
            compounds instead of structures, nothing usable in the file, or with ``strict`` any rejected string.

    Example:
        >>> from seqopt.utils.resources import data_path
        >>> pool = read_pool(data_path("protein_variants.csv"), values_column="score")
        >>> pool.kind, pool.column, pool.names[0], len(pool.values) == len(pool)
        ('protein', 'sequence', 'wild type', True)
    """
    if kind == "auto":
        kind = None
    if kind is not None and kind not in KINDS:
        raise InputError(f"unknown kind {kind!r}: choose auto, {', '.join(KINDS)}")
    rows = named_rows(str(source), column, values_column)
    wanted = next(filter(None, [id_column, further_column, *further_values]), None)
    if rows is not None and wanted:
        raise InputError(f"the data set {source} has no column {wanted!r}")
    if rows is None:
        rows = file_rows(
            Path(source), column, kind, values_column, id_column, further_column, decimal_comma, further_values, parent
        )
    if parent is not None:
        rows = with_variants(rows, parent)
    if check_columns is not None:
        check_columns(rows.others)
    smiles = rows.strings
    if kind in (None, "molecule"):
        smiles = list(as_smiles(rows.strings, progress))
    if kind is None:
        kind = recognize_kind(smiles, hint=rows.hint)
        refuse_names(rows, kind)
    if kind == "molecule":
        rows = replace(rows, strings=smiles)
    if standardize and kind != "molecule":
        raise InputError(f"standardize is for molecules; {rows.source} holds strings of kind {kind!r}")
    refuse_missing_header(rows, kind, chosen=column is not None)
    keys = _keys(rows.strings, kind, standardize, progress)
    if rows.unfit:
        keys = [None if row in rows.unfit else key for row, key in enumerate(keys)]
    return _assemble(
        rows,
        kind,
        keys,
        strict=strict,
        standardized=standardize,
        log_values=log_values,
        attachment_points=attachment_points,
        parent=parent,
    )


def write_rejected(pool: Pool, path: str | os.PathLike[str]) -> None:
    """Write what was rejected as a table with the columns line, value and reason.

    Raises:
        InputError: If the file cannot be written.
    """
    try:
        with open(path, "w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(["line", "value", "reason"])
            writer.writerows((record.line, record.value, record.reason) for record in pool.rejected)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error


def _keys(strings: list[str], kind: str, standardize: bool, progress: Progress | None) -> Sequence[str | None]:
    if kind != "molecule" or len(strings) < PARALLEL_FROM:
        return identity_keys(strings, kind, standardize=standardize)
    if len(strings) <= CACHE_FROM:
        return _compute_keys(strings, standardize, progress)
    import rdkit

    parent = "-parent" if standardize else ""
    name = f"smiles-{digest(strings)[:24]}-rdkit{rdkit.__version__}-rules{RULES}{parent}.txt"
    cached = read_cached(name, len(strings))
    if cached is not None:
        return [key or None for key in cached]
    keys = _compute_keys(strings, standardize, progress)
    write_cached(name, [key or "" for key in keys])
    return keys


def _compute_keys(strings: list[str], standardize: bool, progress: Progress | None) -> list[str | None]:
    arguments = {"kind": "molecule", "standardize": standardize}
    return map_strings("seqopt.strings.identity:identity_keys", strings, arguments=arguments, progress=progress)


def _assemble(
    rows: PoolRows,
    kind: str,
    keys: Sequence[str | None],
    *,
    strict: bool,
    standardized: bool,
    log_values: bool,
    attachment_points: bool,
    parent: str | None = None,
) -> Pool:
    rejected = [Rejected(line, "", BLANK) for line in rows.blank_lines]
    rejected += [Rejected(*record) for record in rows.unread]
    value_of = _value_reader(rows)
    kept: list[int] = []
    position: dict[str, int] = {}
    replicates: list[list[float]] = []
    members: list[list[int]] = []
    doubles: list[Duplicate] = []
    duplicates = 0
    for row, key in enumerate(keys):
        line = int(rows.lines[row])
        if key is None:
            why = rows.unfit.get(row) or why_rejected(rows.strings[row], kind)
            rejected.append(Rejected(line, rows.strings[row], why))
            continue
        whole = attachment_points or kind != "molecule"
        open_end = None if whole else explain_attachment(key, option=ATTACHMENT_OPTION)
        if open_end is not None:
            rejected.append(Rejected(line, rows.strings[row], open_end))
            continue
        value, problem = value_of(row)
        if log_values and problem is None and not value > 0:
            problem = f"its value {value:g} has no logarithm"
        if problem is not None:
            rejected.append(Rejected(line, rows.strings[row], problem))
            continue
        first = position.setdefault(key, len(kept))
        if first == len(kept):
            kept.append(row)
            replicates.append([value])
            members.append([row])
            continue
        replicates[first].append(value)
        members[first].append(row)
        duplicates += 1
        if len(doubles) < EXAMPLES:
            original = kept[first]
            doubles.append(Duplicate(line, rows.strings[row], int(rows.lines[original]), rows.strings[original]))
    rejected.sort(key=lambda record: record.line)
    if rejected and (strict or not kept):
        begin = f"no usable {kind}" if not kept else f"{len(rejected):,} unusable string" + "s" * (len(rejected) > 1)
        way_out = "correct them, or read without strict" if kept else "correct them, or name another column or kind"
        raise InputError(f"{rows.source}: {begin}: {_list_by_line(rejected, EXAMPLES)}: {way_out}")
    found_id = next(
        ((name, cells) for name, given in rows.ids if (cells := _identifiers(rows, name, given, kept)) is not None),
        None,
    )
    return Pool(
        strings=tuple(rows.strings[row] for row in kept),
        keys=tuple(position),
        kind=kind,
        lines=rows.lines[kept],
        values=None if rows.values is None else np.array([_mean(values, log_values) for values in replicates]),
        names=None if rows.names is None else tuple(rows.names[row].strip() for row in kept),
        rejected=tuple(rejected),
        duplicates=duplicates,
        duplicate_examples=tuple(doubles),
        source=rows.source,
        column=rows.column,
        values_column=rows.values_column,
        sha256=rows.sha256,
        standardized=standardized,
        separator=rows.separator,
        decimal_comma=rows.decimal_comma,
        remarks=(
            *rows.remarks,
            *_ambiguous(rows, kept, list(position), kind),
            *(_untaken(rows, kept) if found_id is None else ()),
        ),
        attachment_points=attachment_points,
        identifiers=None if found_id is None else found_id[1],
        id_column=None if found_id is None else found_id[0],
        further={name: _further(rows, cells, members) for name, cells in rows.further.items()},
        parent=parent,
    )


def _identifiers(rows: PoolRows, column: str, cells: Sequence[str], kept: Sequence[int]) -> tuple[str, ...] | None:
    """The identifiers of the candidates; `None` if they do not tell them apart.

    Raises:
        InputError: If they should, since the user has named the column.
    """
    found = tuple(cells[row].strip() for row in kept)
    if all(found) and len(set(found)) == len(found):
        return found
    if not rows.id_given:
        return None
    seen: dict[str, int] = {}
    for row, cell in zip(kept, found, strict=True):
        line = int(rows.lines[row])
        if not cell:
            raise InputError(
                f"{rows.source}, line {line}: column {column!r} is empty; every candidate needs an identifier"
            )
        if cell in seen:
            raise InputError(
                f"{rows.source}, line {line}: {cell!r} is the identifier of line {seen[cell]}, too: column {column!r} "
                "does not tell candidates apart"
            )
        seen[cell] = line
    return None


def _untaken(rows: PoolRows, kept: Sequence[int]) -> list[str]:
    """Why a column of identifiers is not taken for them, where most of them tell candidates apart."""
    for name, cells in rows.ids:
        found = [cells[row].strip() for row in kept]
        times = Counter(found)
        if 2 * sum(one != "" and times[one] == 1 for one in found) <= len(found):
            continue
        place = next(place for place, one in enumerate(found) if not one or times[one] > 1)
        where = f"line {rows.lines[kept[place]]} {short(rows.strings[kept[place]])}"
        if not found[place]:
            return [f"the column {name!r} is not taken for identifiers: it is empty on {where}"]
        other = kept[found.index(found[place], place + 1)]
        return [
            f"the column {name!r} is not taken for identifiers: {found[place]!r} is that of {where} and of line "
            f"{rows.lines[other]} {short(rows.strings[other])}"
        ]
    return []


def _further(rows: PoolRows, cells: Sequence[str], members: Sequence[Sequence[int]]) -> npt.NDArray[np.float64]:
    """The numbers of another column, one for each candidate: the mean of those in its rows, NaN where there is none."""
    found = []
    for of in members:
        numbers = [read_number(cells[row], True) if rows.decimal_comma else number_in(cells[row]) for row in of]
        known = [number for number in numbers if number is not None and math.isfinite(number)]
        found.append(_mean(known, False) if known else math.nan)
    return np.array(found, dtype=np.float64)


def _mean(values: list[float], log_values: bool) -> float:
    """Mean of replicates, the geometric one on a logarithmic scale; a single value is left exactly as it is."""
    if len(values) == 1:
        return values[0]
    return statistics.geometric_mean(values) if log_values else math.fsum(values) / len(values)


def _value_reader(rows: PoolRows) -> Callable[[int], tuple[float, str | None]]:
    """A function from a row to its value and what is wrong with it."""
    values = rows.values
    if values is None:
        return lambda row: (0.0, None)

    def read(row: int) -> tuple[float, str | None]:
        cell = values[row]
        number = read_number(cell, True) if rows.decimal_comma and isinstance(cell, str) else number_in(str(cell))
        if number is not None and math.isfinite(number):
            return number, None
        shown = str(cell).strip()
        what = f"holds {shown!r}, {not_a_number(shown, rows.decimal_comma)}" if shown else "is empty"
        return math.nan, f"column {rows.values_column!r} {what}"

    return read


def _ambiguous(rows: PoolRows, kept: Sequence[int], keys: Sequence[str], kind: str) -> list[str]:
    """What has to be said of proteins with letters that stand for none of the twenty amino acids."""
    if kind != "protein":
        return []
    found = [(row, key, odd) for row, key in zip(kept, keys, strict=True) if (odd := set(key) - AMINO_ACIDS)]
    if not found:
        return []
    row, key, odd = found[0]
    place, letter = min((key.index(letter) + 1, letter) for letter in odd)
    several = f"{len(found):,} proteins have letters" if len(found) > 1 else "1 protein has letters"
    return [
        f"{several} that stand for none of the twenty amino acids, the first on line {int(rows.lines[row])} "
        f"({letter} at {place}): each is compared as a letter of its own; take out what nobody can make"
    ]


def _list_by_line(rejected: Sequence[Rejected], limit: int) -> str:
    return list_rejected(((f"line {record.line}", record) for record in rejected), limit)


def list_rejected(rejected: Iterable[tuple[str, Rejected]], limit: int) -> str:
    """What was rejected, in words: the first of it, and how much more there is.

    Rows that hold nothing are only counted where there are others, which may be worth a correction.

    Args:
        rejected: Where each stands, in words, and what it is.
        limit: How many are named at most.

    Example:
        >>> rows = [Rejected(2, "", "blank line"), Rejected(3, "C1CC", "not a SMILES"), Rejected(4, "", "empty")]
        >>> list_rejected([(f"line {row.line}", row) for row in rows], 2)
        "line 3 'C1CC' (not a SMILES); 2 blank or empty"
        >>> list_rejected([("line 2", rows[0])], 2)
        "line 2 '' (blank line)"
    """
    counts = {False: 0, True: 0}
    shown: dict[bool, list[str]] = {False: [], True: []}
    for where, record in rejected:
        nothing = record.reason in NOTHING
        counts[nothing] += 1
        if len(shown[nothing]) < limit:
            shown[nothing].append(f"{where} {short(record.value)} ({record.reason})")
    blank = not counts[False]
    more = counts[blank] - len(shown[blank])
    listed = shown[blank] + ([f"and {more:,} more"] if more else [])
    return "; ".join(listed + ([f"{counts[True]:,} blank or empty"] if counts[True] and not blank else []))
