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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from seqopt.datasets.named import DATASETS, load
from seqopt.datasets.numbers import not_a_number, read_number
from seqopt.datasets.sheets import plain_name
from seqopt.datasets.structures import as_smiles
from seqopt.datasets.tables import Table, read_table
from seqopt.errors import InputError
from seqopt.strings.identity import (
    AMINO_ACIDS,
    KINDS,
    RULES,
    explain_attachment,
    explain_rejection,
    identity_keys,
    parse_smiles,
    quiet_rdkit,
    recognize_kind,
)
from seqopt.strings.notations import (
    NAME_COLUMNS,
    WAY_OUT,
    is_inchi,
    recognised_names,
    reference_to_structure,
)
from seqopt.utils.cache import digest, read_cached, write_cached
from seqopt.utils.workers import Progress, map_strings

PARALLEL_FROM = 5_000
"""Number of molecules from which on keys are computed in several processes."""

CACHE_FROM = 20_000
"""Number of molecules above which their keys are kept on disk."""

_ATTACHMENT_OPTION = "attachment_points=True (--attachment-points)"

EXAMPLES = 5
"""Rejected strings and duplicates that messages show."""

# Names by which a column of strings is recognised, the first that is present winning, with the kind that it
# suggests.
_STRING_COLUMNS: dict[str, str | None] = {
    "smiles": "molecule",
    "canonical_smiles": "molecule",
    "isomeric_smiles": "molecule",
    "smi": "molecule",
    "inchi": "molecule",
    "standard_inchi": "molecule",
    "structure": None,
    "molecule": None,
    "sequence": None,
    "seq": None,
    "protein": "protein",
    "protein_sequence": "protein",
    "aa_sequence": "protein",
    "peptide": "protein",
    "dna": "dna",
    "dna_sequence": "dna",
    "rna": "rna",
    "rna_sequence": "rna",
    "mrna": "rna",
    "gene": "dna",
    "string": None,
    "strings": None,
    "text": "text",
}
# Names by which a column of identifiers is recognised, the first that tells all candidates apart winning.
_ID_COLUMNS = (
    *(
        "compound_id",
        "id",
        "identifier",
        "molecule_id",
        "mol_id",
        "cmpd_id",
        "catalog_id",
        "catalogue_id",
        "catalog_number",
    ),
    *(
        "catalogue_number",
        "sample_id",
        "substance_id",
        "entry_id",
        "zinc_id",
        "chembl_id",
        "cmpd_chemblid",
        "accession",
    ),
    *("barcode", "code", "sku", "cas", "cas_number", "entry", "mutant", "variant", "name", "title"),
)
_NAME_COLUMNS = frozenset({*_ID_COLUMNS, "compound_name", "iupac"})


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
                f"line {double.line} {_short(double.string)} is line {double.first_line} {_short(double.first_string)}"
                for double in self.duplicate_examples[:2]
            )
            lines.append(f"{self.duplicates:,} duplicates merged{merged} ({examples})")
        if self.rejected:
            lines.append(f"{len(self.rejected):,} rejected: {_list_rejected(self.rejected, 2)}")
        return "\n".join(lines)


@dataclass(frozen=True)
class _Rows:
    """What of a file matters to a pool, before anything is judged."""

    source: str
    strings: list[str]
    lines: npt.NDArray[np.int64]
    sha256: str
    column: str | None = None
    hint: str | None = None
    names: list[str] | None = None
    values: list[str] | npt.NDArray[np.float64] | None = None
    values_column: str | None = None
    blank_lines: list[int] = field(default_factory=list)
    unread: Sequence[tuple[int, str, str]] = ()
    separator: str | None = None
    decimal_comma: bool = False
    remarks: tuple[str, ...] = ()
    ids: list[tuple[str, Sequence[str]]] = field(default_factory=list)
    id_given: bool = False


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
    rows = _named_rows(str(source), column, values_column)
    if rows is not None and (id_column or further_column):
        raise InputError(f"the data set {source} has no column {id_column or further_column!r}")
    if rows is None:
        rows = _file_rows(Path(source), column, kind, values_column, id_column, further_column, decimal_comma)
    smiles = rows.strings
    if kind in (None, "molecule"):
        smiles = list(as_smiles(rows.strings, progress))
    if kind is None:
        kind = recognize_kind(smiles, hint=rows.hint)
        _refuse_names(rows, kind)
    if kind == "molecule":
        rows = replace(rows, strings=smiles)
    if standardize and kind != "molecule":
        raise InputError(f"standardize is for molecules; {rows.source} holds strings of kind {kind!r}")
    _refuse_missing_header(rows, kind, chosen=column is not None)
    keys = _keys(rows.strings, kind, standardize, progress)
    return _assemble(
        rows,
        kind,
        keys,
        strict=strict,
        standardized=standardize,
        log_values=log_values,
        attachment_points=attachment_points,
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


def _named_rows(name: str, column: str | None, values_column: str | None) -> _Rows | None:
    if name not in DATASETS:
        return None
    dataset = load(name)
    if column is not None and column != dataset.column:
        raise InputError(f"the strings of {name} are in its column {dataset.column!r}; leave column out")
    if values_column is not None and values_column not in (dataset.target, "value"):
        has = "no values" if dataset.target is None else f"the values {dataset.target!r}"
        raise InputError(f"the data set {name} has {has}, not {values_column!r}")
    return _Rows(
        source=name,
        strings=list(dataset.strings),
        lines=dataset.lines,
        sha256=dataset.sha256,
        column=dataset.column,
        hint="molecule",
        values=dataset.values,
        values_column=dataset.target,
    )


def _file_rows(
    path: Path,
    column: str | None,
    kind: str | None,
    values_column: str | None,
    id_column: str | None,
    further_column: str | None,
    decimal_comma: bool,
) -> _Rows:
    if not path.suffix and not path.exists():
        raise InputError(
            f"there is neither a file nor a data set {str(path)!r}; the data sets are {', '.join(DATASETS)}"
        )
    expected = {plain_name(column)} if column is not None else {*_STRING_COLUMNS}
    table = read_table(path, expected=expected, decimal_comma=decimal_comma)
    where = table.source or str(path)
    if not len(table.lines) and table.unread:
        line, what, why = table.unread[0]
        raise InputError(f"{where}: no usable molecule: line {line} {what} ({why})")
    if not len(table.lines):
        raise InputError(f"{where} has a header but no rows" if table.headed else f"{where} holds no strings")
    name_column: str | None
    values = None
    if table.headed:
        chosen = table.column(column, where) if column is not None else _recognize_column(table, where, kind)
        if values_column is not None:
            values_column = table.column(values_column, where, "column of values")
            values = table.columns[values_column]
        name_column = next(
            (name for name in table.columns if _plain(name) in _NAME_COLUMNS and name not in (chosen, values_column)),
            None,
        )
        hint = _hint(chosen)
    else:
        if column is not None:
            table.column(column, where)
        if values_column is not None:
            table.column(values_column, where, "column of values")
        chosen, hint = "string", "molecule" if table.format == "smi" else None
        name_column = "name" if "name" in table.columns else None
    plain = {_plain(name): name for name in table.columns if name not in (chosen, values_column)}
    ids = [plain[name] for name in _ID_COLUMNS if name in plain]
    if id_column is not None:
        ids = [table.column(id_column, where, "column of identifiers")]
    if further_column is not None:
        table.column(further_column, where)
    strings, lines = [string.strip() for string in table.columns[chosen]], table.lines
    names = table.columns[name_column] if name_column is not None else None
    if table.format == "txt" and _plain(strings[0]) in _STRING_COLUMNS and strings[0] == strings[0].lower():
        # A list that was once a column still carries the column's name; "sequence" would pass for a protein.
        hint = _STRING_COLUMNS[_plain(strings[0])] or hint
        strings, lines = strings[1:], lines[1:]
        if not strings:
            raise InputError(f"{path} has a header but no rows")
    if table.format == "fasta" and kind is None:
        hint = next((guess for guess in [recognize_kind(strings)] if guess in ("dna", "rna")), "protein")
    return _Rows(
        source=where,
        strings=strings,
        lines=lines,
        sha256=table.sha256,
        column=chosen if table.headed else None,
        hint=hint,
        names=names,
        values=values,
        values_column=values_column,
        blank_lines=table.blank_lines,
        unread=table.unread,
        separator=table.separator,
        decimal_comma=decimal_comma,
        remarks=_remarks(table),
        ids=[(name, table.columns[name][len(table.lines) - len(lines) :]) for name in ids],
        id_given=id_column is not None,
    )


def _remarks(table: Table) -> tuple[str, ...]:
    if table.guessed is None:
        return ()
    line, text = table.guessed
    return (
        "the file is neither UTF-8 nor UTF-16 and was read as Windows-1252: check that line "
        f"{line} is right: {_short(text)}",
    )


def _refuse_names(rows: _Rows, kind: str) -> None:
    """What names molecules without describing them must not be searched as text."""
    column = None if rows.column is None else _plain(rows.column)
    if kind != "text" and column not in NAME_COLUMNS:
        return
    what = recognised_names(rows.strings, column if kind == "text" else None)
    if what is not None:
        where = rows.source if rows.column is None else f"{rows.source}, column {rows.column!r},"
        examples = ", ".join(_short(string) for string in list(dict.fromkeys(filter(None, rows.strings)))[:3])
        raise InputError(
            f"{where} holds {what} ({examples}), which do not say how molecules are made. {WAY_OUT}; if they are meant "
            "as strings of letters, say so with kind='text' (--kind text)"
        )


def _plain(name: str) -> str:
    return "_".join(name.strip().casefold().replace("-", " ").replace("_", " ").split())


def _hint(column: str) -> str | None:
    plain = _plain(column)
    if plain in _STRING_COLUMNS:
        return _STRING_COLUMNS[plain]
    words = {"smiles": "molecule", "protein": "protein", "peptide": "protein", "rna": "rna", "dna": "dna"}
    return next((kind for word, kind in words.items() if word in plain), None)


def _recognize_column(table: Table, where: str, kind: str | None) -> str:
    plain = {_plain(name): name for name in table.columns}
    known = [name for name in _STRING_COLUMNS if name in plain]
    # With a kind given, a column whose name suggests another kind is not the one that is meant.
    fitting = [name for name in known if kind is None or _STRING_COLUMNS[name] in (None, kind)] or known
    if fitting:
        return plain[fitting[0]]
    for word in ("smiles", "sequence"):
        holding = [name for name in table.columns if word in _plain(name)]
        if len(holding) == 1:
            return holding[0]
    if len(table.columns) == 1:
        return next(iter(table.columns))
    textual = [name for name, cells in table.columns.items() if _is_text(cells)]
    unnamed = [name for name in textual if _plain(name) not in _NAME_COLUMNS]
    for candidates in (unnamed, textual):
        if len(candidates) == 1:
            return candidates[0]
    listed = ", ".join(repr(name) for name in table.columns)
    raise InputError(
        f"cannot tell which column of {where} holds the strings; its columns are {listed}: "
        "name one of them with column= (--column)"
    )


def string_column(cells: Mapping[str, Sequence[object]], where: str) -> tuple[str, str | None]:
    """Which column of a table in memory holds the strings, and the kind that its name suggests.

    Args:
        cells: The cells of each column.
        where: What messages call the table.

    Raises:
        InputError: If that cannot be told; the message lists the columns.

    Example:
        >>> string_column({"name": ["ethanol"], "SMILES": ["CCO"], "price": [3.5]}, "the table")
        ('SMILES', 'molecule')
    """
    if not cells:
        raise InputError(f"{where} has no columns")
    looked_at = {name: ["" if cell is None else str(cell) for cell in column[:200]] for name, column in cells.items()}
    table = Table(looked_at, np.arange(0), format="", sha256="", headed=True)
    column = _recognize_column(table, where, None)
    return column, _hint(column)


def _is_text(cells: Sequence[str]) -> bool:
    filled = [cell for cell in cells[:200] if cell.strip()]
    return bool(filled) and sum(_number(cell) is None for cell in filled) > len(filled) / 2


def _why_rejected(string: str, kind: str) -> str:
    if kind == "molecule":
        if is_inchi(string):
            return "an InChI that RDKit cannot read"
        if (what := reference_to_structure(string)) is not None:
            return f"{what}, which does not say how the molecule is made: expected a SMILES or an InChI"
    return explain_rejection(string, kind)


def _number(cell: str) -> float | None:
    try:
        return float(cell) if "_" not in cell else None  # Python reads 1_0 as 10; in a file it is a slip
    except ValueError:
        return None


def _refuse_missing_header(rows: _Rows, kind: str, *, chosen: bool) -> None:
    """A first line of data must not be lost as if it were the header."""
    header = rows.column
    if header is None or chosen or _hint(header) is not None or _plain(header) in _STRING_COLUMNS:
        return
    if kind == "molecule":
        with quiet_rdkit():
            is_data = parse_smiles(header) is not None
    else:
        letters = {"protein": AMINO_ACIDS, "dna": frozenset("ACGTN"), "rna": frozenset("ACGUN")}.get(kind)
        is_data = letters is not None and len(header) > 3 and letters.issuperset(header)
    if is_data:
        raise InputError(
            f"{rows.source}, line 1: {header!r} looks like a {kind}, not like the name of a column: add a "
            "header line, or use a .smi or .txt file, which has none (column= says that it is the name)"
        )


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
    rows: _Rows,
    kind: str,
    keys: Sequence[str | None],
    *,
    strict: bool,
    standardized: bool,
    log_values: bool,
    attachment_points: bool,
) -> Pool:
    rejected = [Rejected(line, "", "blank line") for line in rows.blank_lines]
    rejected += [Rejected(*record) for record in rows.unread]
    value_of = _value_reader(rows)
    kept: list[int] = []
    position: dict[str, int] = {}
    replicates: list[list[float]] = []
    doubles: list[Duplicate] = []
    duplicates = 0
    for row, key in enumerate(keys):
        line = int(rows.lines[row])
        if key is None:
            rejected.append(Rejected(line, rows.strings[row], _why_rejected(rows.strings[row], kind)))
            continue
        whole = attachment_points or kind != "molecule"
        open_end = None if whole else explain_attachment(key, option=_ATTACHMENT_OPTION)
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
            continue
        replicates[first].append(value)
        duplicates += 1
        if len(doubles) < EXAMPLES:
            original = kept[first]
            doubles.append(Duplicate(line, rows.strings[row], int(rows.lines[original]), rows.strings[original]))
    rejected.sort(key=lambda record: record.line)
    if rejected and (strict or not kept):
        begin = f"no usable {kind}" if not kept else f"{len(rejected):,} unusable string" + "s" * (len(rejected) > 1)
        way_out = "correct them, or read without strict" if kept else "correct them, or name another column or kind"
        raise InputError(f"{rows.source}: {begin}: {_list_rejected(rejected, EXAMPLES)}: {way_out}")
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
        remarks=rows.remarks,
        attachment_points=attachment_points,
        identifiers=None if found_id is None else found_id[1],
        id_column=None if found_id is None else found_id[0],
    )


def _identifiers(rows: _Rows, column: str, cells: Sequence[str], kept: Sequence[int]) -> tuple[str, ...] | None:
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


def _mean(values: list[float], log_values: bool) -> float:
    """Mean of replicates, the geometric one on a logarithmic scale; a single value is left exactly as it is."""
    if len(values) == 1:
        return values[0]
    return statistics.geometric_mean(values) if log_values else math.fsum(values) / len(values)


def _value_reader(rows: _Rows) -> Callable[[int], tuple[float, str | None]]:
    """A function from a row to its value and what is wrong with it."""
    values = rows.values
    if values is None:
        return lambda row: (0.0, None)

    def read(row: int) -> tuple[float, str | None]:
        cell = values[row]
        number = read_number(cell, True) if rows.decimal_comma and isinstance(cell, str) else _number(str(cell))
        if number is not None and math.isfinite(number):
            return number, None
        shown = str(cell).strip()
        what = f"holds {shown!r}, {not_a_number(shown, rows.decimal_comma)}" if shown else "is empty"
        return math.nan, f"column {rows.values_column!r} {what}"

    return read


def _list_rejected(rejected: Sequence[Rejected], limit: int) -> str:
    shown = "; ".join(f"line {record.line} {_short(record.value)} ({record.reason})" for record in rejected[:limit])
    more = len(rejected) - limit
    return shown + (f"; and {more:,} more" if more > 0 else "")


def _short(string: str) -> str:
    return repr(string if len(string) <= 40 else string[:37] + "...")
