"""What of a file or a named data set matters to a pool, before anything is judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from seqopt.datasets.named import DATASETS, load
from seqopt.datasets.pool_columns import (
    ID_COLUMNS,
    LABEL_COLUMNS,
    STRING_COLUMNS,
    kind_hint,
    plain_column,
    recognize_column,
    short,
)
from seqopt.datasets.sheets import plain_name
from seqopt.datasets.tables import Table, read_table
from seqopt.errors import InputError
from seqopt.strings.identity import (
    AMINO_ACIDS,
    parse_smiles,
    quiet_rdkit,
    recognize_kind,
)
from seqopt.strings.mutations import MUTATION_COLUMNS
from seqopt.strings.notations import (
    NAME_COLUMNS,
    WAY_OUT,
    recognised_names,
)


class RowFilter(Protocol):
    """What says which rows of a pool on disk become candidates (`seqopt.filters.Sieve`); it is sent to processes."""

    @property
    def columns(self) -> list[str]:
        """Columns beside the strings that it asks about."""

    def fitted(self, kind: str, heads: Mapping[str, Sequence[str]], *, standardize: bool = False) -> RowFilter:
        """The same for strings of this kind, in files with these columns and first cells of each."""

    def __call__(
        self, strings: Sequence[str], keys: Sequence[str], cells: Mapping[str, Sequence[str]]
    ) -> tuple[npt.NDArray[np.bool_], list[tuple[str, int, int]]]:
        """Which rows pass; and of each condition, in words, how many reach it and pass it."""

    def described(self, steps: Sequence[tuple[str, int, int]]) -> list[str]:
        """What was done to a pool, in lines of words."""

    def config(self) -> dict[str, Any]:
        """The filter as JSON values."""


@dataclass(frozen=True)
class PoolRows:
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
    others: tuple[str, ...] | None = None
    further: Mapping[str, Sequence[str]] = field(default_factory=dict)
    unfit: Mapping[int, str] = field(default_factory=dict)


def named_rows(name: str, column: str | None, values_column: str | None) -> PoolRows | None:
    if name not in DATASETS:
        return None
    dataset = load(name)
    if column is not None and column != dataset.column:
        raise InputError(f"the strings of {name} are in its column {dataset.column!r}; leave column out")
    if values_column is not None and values_column not in (dataset.target, "value"):
        has = "no values" if dataset.target is None else f"the values {dataset.target!r}"
        raise InputError(f"the data set {name} has {has}, not {values_column!r}")
    return PoolRows(
        source=name,
        strings=list(dataset.strings),
        lines=dataset.lines,
        sha256=dataset.sha256,
        column=dataset.column,
        hint=dataset.kind,
        values=dataset.values,
        values_column=dataset.target,
    )


def file_rows(
    path: Path,
    column: str | None,
    kind: str | None,
    values_column: str | None,
    id_column: str | None,
    further_column: str | None,
    decimal_comma: bool,
    further_values: Sequence[str] = (),
    parent: str | None = None,
) -> PoolRows:
    if not path.suffix and not path.exists():
        raise InputError(
            f"there is neither a file nor a data set {str(path)!r}; the data sets are {', '.join(DATASETS)}"
        )
    expected = {plain_name(column)} if column is not None else {*STRING_COLUMNS}
    if parent is not None and column is None:
        expected |= {*MUTATION_COLUMNS}
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
        if column is None and parent is not None:
            column = column_of_names(table)
        chosen = table.column(column, where) if column is not None else recognize_column(table, where, kind)
        if values_column is not None:
            values_column = table.column(values_column, where, "column of values")
            values = table.columns[values_column]
        further = [table.column(name, where, "column of values") for name in further_values]
        name_column = next(
            (
                name
                for name in table.columns
                if plain_column(name) in LABEL_COLUMNS and name not in (chosen, values_column, *further)
            ),
            None,
        )
        hint = kind_hint(chosen)
    else:
        if column is not None:
            table.column(column, where)
        if values_column is not None:
            table.column(values_column, where, "column of values")
        further = [table.column(name, where, "column of values") for name in further_values]
        chosen, hint = "string", "molecule" if table.format == "smi" else None
        name_column = "name" if "name" in table.columns else None
    plain = {plain_column(name): name for name in table.columns if name not in (chosen, values_column)}
    ids = [plain[name] for name in ID_COLUMNS if name in plain]
    if id_column is not None:
        ids = [table.column(id_column, where, "column of identifiers")]
    if further_column is not None:
        table.column(further_column, where)
    strings, lines = [string.strip() for string in table.columns[chosen]], table.lines
    names = table.columns[name_column] if name_column is not None else None
    if table.format == "txt" and plain_column(strings[0]) in STRING_COLUMNS and strings[0] == strings[0].lower():
        # A list that was once a column still carries the column's name; "sequence" would pass for a protein.
        hint = STRING_COLUMNS[plain_column(strings[0])] or hint
        strings, lines = strings[1:], lines[1:]
        if not strings:
            raise InputError(f"{path} has a header but no rows")
    if table.format == "fasta" and kind is None:
        hint = next((guess for guess in [recognize_kind(strings)] if guess in ("dna", "rna")), "protein")
    return PoolRows(
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
        others=tuple(name for name in table.columns if name != chosen),
        further={name: table.columns[name][len(table.lines) - len(lines) :] for name in further},
    )


def column_of_names(table: Table) -> str | None:
    """The column that holds names of variants, where none holds strings."""
    plain = {plain_column(name): name for name in table.columns}
    if plain.keys() & STRING_COLUMNS.keys():
        return None
    return next((plain[name] for name in MUTATION_COLUMNS if name in plain), None)


def with_variants(rows: PoolRows, parent: str) -> PoolRows:
    """Rows with strings in the place of names of variants, such as S121E/D57G; what does not fit is kept as `unfit`."""
    from seqopt.strings.mutations import looks_like_a_name, mutant
    from seqopt.strings.templates import LETTERS

    kind = recognize_kind([parent])
    letters = LETTERS.get(kind)
    strings, unfit = list(rows.strings), {}
    for row, text in enumerate(rows.strings):
        if looks_like_a_name(text, parent):
            try:
                strings[row] = mutant(parent, text, letters)
            except InputError as error:
                unfit[row] = str(error)
    return replace(rows, strings=strings, unfit=unfit)


def _remarks(table: Table) -> tuple[str, ...]:
    if table.guessed is None:
        return ()
    line, text = table.guessed
    return (
        "the file is neither UTF-8 nor UTF-16 and was read as Windows-1252: check that line "
        f"{line} is right: {short(text)}",
    )


def refuse_names(rows: PoolRows, kind: str) -> None:
    """What names molecules without describing them must not be searched as text."""
    column = None if rows.column is None else plain_column(rows.column)
    if kind != "text" and column not in NAME_COLUMNS:
        return
    if kind == "text":
        _refuse_variants(rows)
    what = recognised_names(rows.strings, column if kind == "text" else None)
    if what is not None:
        where = rows.source if rows.column is None else f"{rows.source}, column {rows.column!r},"
        examples = ", ".join(short(string) for string in list(dict.fromkeys(filter(None, rows.strings)))[:3])
        raise InputError(
            f"{where} holds {what} ({examples}), which do not say how molecules are made. {WAY_OUT}; if they are meant "
            "as strings of letters, say so with kind='text' (--kind text)"
        )


def _refuse_variants(rows: PoolRows) -> None:
    """Names of variants say nothing without their parent."""
    from seqopt.strings.mutations import is_mutation_name

    named = [string for string in rows.strings if string]
    if not named or not all(map(is_mutation_name, named)):
        return
    where = rows.source if rows.column is None else f"{rows.source}, column {rows.column!r},"
    raise InputError(
        f"{where} holds names of variants ({', '.join(short(one) for one in list(dict.fromkeys(named))[:3])}): say of "
        "which parent with parent= (--parent); if they are meant as strings of letters, say so with kind='text' "
        "(--kind text)"
    )


def refuse_missing_header(rows: PoolRows, kind: str, *, chosen: bool) -> None:
    """A first line of data must not be lost as if it were the header."""
    header = rows.column
    if header is None or chosen or kind_hint(header) is not None or plain_column(header) in STRING_COLUMNS:
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
