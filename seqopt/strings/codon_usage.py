"""How often organisms use their codons.

References:
    Nakamura, Y., Gojobori, T., Ikemura, T. (2000). Codon usage tabulated from international DNA sequence
        databases: status for the year 2000. Nucleic Acids Res. 28, 292.
"""

from __future__ import annotations

import csv
import difflib
import importlib.util
import math
import os
import re
from collections.abc import Iterable, Mapping
from itertools import product
from pathlib import Path
from typing import TypeVar

from seqopt.errors import InputError, ObjectiveError

ORGANISMS: Mapping[str, str] = {
    "e_coli": "e_coli_316407",
    "yeast": "s_cerevisiae_4932",
    "human": "h_sapiens_9606",
}
"""Tables of the package python-codon-tables, by the names used here; the number is the NCBI taxonomy's."""

CODONS = tuple("".join(bases) for bases in product("ACGT", repeat=3))

NUMBER_COLUMNS = ("frequency", "count", "usage", "number")
"""How the column of numbers in a table of codon usage may be called."""

Value = TypeVar("Value")

_USUAL_STOPS = ("TAA", "TAG", "TGA")

_DECIMAL_COMMA = re.compile(r"\d*,\d+")
_TO_DNA = str.maketrans("U", "T")


def codon_usage(organism: str) -> dict[str, float]:
    """Frequencies of codons in an organism, or those of a table file.

    Args:
        organism: ``"e_coli"``, ``"yeast"``, ``"human"``, another table of python-codon-tables (see `organisms`), or the
            path of a .csv or .tsv file with a column ``codon`` and one of numbers: ``frequency``, ``count``, ``usage``
            or ``number``, one row for each codon but TAA, TAG and TGA, which may be left out. Frequencies may be of all
            codons or among synonyms.

    Raises:
        InputError: For an unknown organism, or a file with other columns, something that is not a codon, a codon that
            is there twice, or a number that is not finite or negative (with the line).
        ObjectiveError: If python-codon-tables is not installed.

    Example:
        >>> codon_usage("human")["CTG"]
        0.4
    """
    if organism.lower().endswith((".csv", ".tsv")):
        return _from_file(Path(organism))
    tables = organisms()
    # A number, which names no table here, would make the package download one.
    if organism not in tables:
        raise InputError(
            f"there is no codon usage of {organism!r}: {_guess(organism, tables)}choose "
            f"{', '.join(_shown(tables))}, or give usage= (on the command line a .csv file with the columns codon and "
            "frequency)"
        )
    import python_codon_tables

    table = python_codon_tables.get_codons_table(tables[organism])
    return {codon: float(frequency) for codons in table.values() for codon, frequency in codons.items()}


def _guess(organism: str, tables: Iterable[str]) -> str:
    """The organism that may be meant: ecoli and E. coli are e_coli."""
    plain = {re.sub("[^a-z0-9]", "", name.lower()): name for name in tables}
    close = difflib.get_close_matches(re.sub("[^a-z0-9]", "", organism.lower()), plain, n=1, cutoff=0.75)
    return f"did you mean {plain[close[0]]}? Else " if close else ""


def organisms() -> dict[str, str]:
    """The tables that can be named, with their full names in python-codon-tables.

    Raises:
        ObjectiveError: If python-codon-tables is not installed.

    Example:
        >>> organisms()["human"]
        'h_sapiens_9606'
    """
    if importlib.util.find_spec("python_codon_tables") is None:
        raise ObjectiveError("codon usage needs the package python-codon-tables: pip install python-codon-tables")
    import python_codon_tables

    full: list[str] = python_codon_tables.available_codon_tables_names
    short = {name.rpartition("_")[0]: name for name in sorted(full)}
    return dict(ORGANISMS) | short | {name: name for name in full}


def listed_tables() -> list[str]:
    """A line for each table of codon usage: its names, the species and its number at NCBI.

    Raises:
        ObjectiveError: If python-codon-tables is not installed.

    Example:
        >>> [line for line in listed_tables() if "sapiens" in line]
        ['human, h_sapiens, h_sapiens_9606: Homo sapiens, taxonomy 9606']
    """
    names: dict[str, list[str]] = {}
    for name, full in organisms().items():
        names.setdefault(full, []).append(name)
    lines = []
    for full in sorted(names):
        species, _, number = full.rpartition("_")
        genus, _, rest = species.partition("_")
        known = _SPECIES.get(full) or f"{genus.upper()}. {' '.join(rest.split('_'))}"
        lines.append(f"{', '.join(sorted(names[full], key=len))}: {known}, taxonomy {number}")
    return [*lines, "or a file of yours with the columns codon and frequency (or count), such as cai:usage.csv"]


_SPECIES = {
    "b_subtilis_1423": "Bacillus subtilis",
    "c_elegans_6239": "Caenorhabditis elegans",
    "d_melanogaster_7227": "Drosophila melanogaster",
    "e_coli_316407": "Escherichia coli W3110",
    "g_gallus_9031": "Gallus gallus",
    "h_sapiens_9606": "Homo sapiens",
    "m_musculus_10090": "Mus musculus",
    "m_musculus_domesticus_10092": "Mus musculus domesticus",
    "s_cerevisiae_4932": "Saccharomyces cerevisiae",
}


def _shown(tables: Mapping[str, str]) -> list[str]:
    """One name for each table, the shortest."""
    return [name for name in tables if not name.rpartition("_")[2].isdigit()]


def by_codon(table: Mapping[str, Value]) -> dict[str, Value]:
    """A mapping by codons in DNA letters.

    Raises:
        InputError: For something that is not a codon.

    Example:
        >>> by_codon({"aug": 1})
        {'ATG': 1}
    """
    named = {codon.upper().translate(_TO_DNA): value for codon, value in table.items()}
    for codon in named:
        if codon not in CODONS:
            raise InputError(f"{codon!r} is not a codon: write three of A, C, G and T or U")
    return named


def relative_usage(usage: Mapping[str, float], code: Mapping[str, str]) -> dict[str, float]:
    """Share of each of the 64 codons among its synonyms, 0 to 1; all alike where an amino acid is never used.

    Example:
        >>> from seqopt.strings.genetic_codes import genetic_code
        >>> relative_usage({"AAA": 30, "AAG": 10}, genetic_code(1).amino_acids)["AAG"]
        0.25
    """
    synonyms: dict[str, list[str]] = {}
    for codon, amino_acid in code.items():
        synonyms.setdefault(amino_acid, []).append(codon)
    shares: dict[str, float] = {}
    for codons in synonyms.values():
        total = math.fsum(usage.get(codon, 0.0) for codon in codons)
        shares |= {codon: usage.get(codon, 0.0) / total if total > 0 else 1 / len(codons) for codon in codons}
    return shares


def read_numbers_of_codons(
    path: str | os.PathLike[str], columns: tuple[str, ...], key: str = "codon"
) -> dict[str, float]:
    """The numbers of codons in a .csv or .tsv file with a header.

    Args:
        path: The file.
        columns: How the column of numbers may be called.
        key: How the column of codons is called.

    Raises:
        InputError: As `codon_usage` says.
    """
    rows = _rows(Path(path), (key, *columns))
    article = "an" if key[0] in "aeiou" else "a"
    found: dict[str, float] = {}
    for line, row in rows:
        codon = row[key].strip().upper().translate(_TO_DNA)
        if codon not in CODONS:
            raise InputError(
                f"{path}, line {line}: {row[key]!r} is not {article} {key}: write three of A, C, G and T or U"
            )
        if codon in found:
            raise InputError(f"{path}, line {line}: {key} {codon} is there for the second time: leave one row of it")
        name = next(column for column in columns if column in row)
        found[codon] = number_in(row[name], f"{path}, line {line}, column {name}")
    if not found:
        raise InputError(f"{path} holds no {key}: write a row for each, such as CTG,0.5")
    return found


def number_in(text: str, where: str) -> float:
    """A finite number.

    Raises:
        InputError: If it is none; the message says where it stands.
    """
    try:
        value = float(text)
    except (TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value):
        hint = ": write it with a point" if _DECIMAL_COMMA.fullmatch(str(text).strip()) else ""
        raise InputError(f"{where}: {text!r} is not a finite number{hint}")
    return value


def _from_file(path: Path) -> dict[str, float]:
    usage = read_numbers_of_codons(path, NUMBER_COLUMNS)
    for codon, number in usage.items():
        if number < 0:
            raise InputError(f"{path}: the usage of {codon} is {number:g}; expected a number from 0")
    missing = [codon for codon in CODONS if codon not in usage and codon not in _USUAL_STOPS]
    if missing:
        listed = ", ".join(missing[:8]) + (f" and {len(missing) - 8} more" if len(missing) > 8 else "")
        raise InputError(
            f"{path} lacks {len(missing)} codon{'s' if len(missing) > 1 else ''} ({listed}): add a row for each, with "
            "0 for those that are never used"
        )
    return usage


def _rows(path: Path, columns: tuple[str, ...]) -> list[tuple[int, dict[str, str]]]:
    """The rows of a table with their lines; of ``columns`` the first, and one of the others, must be there."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"there is no file {path}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    lines = [(number, line) for number, line in enumerate(text.splitlines(), start=1) if line.strip()]
    # Spreadsheets write semicolons where the comma is the decimal mark; no name of a column here has one.
    first_line = lines[0][1] if lines else ""
    delimiter = max("\t,;" if path.suffix.lower() == ".tsv" else ",;\t", key=first_line.count)
    reader = csv.reader((line for _, line in lines), delimiter=delimiter)
    header = [name.strip().lower() for name in next(reader, [])]
    first, *others = columns
    if first not in header or not set(others) & set(header):
        raise InputError(
            f"{path}: expected a column {first!r} and one of {', '.join(map(repr, others))}; it has "
            f"{', '.join(map(repr, header)) or 'none'}"
        )
    rows = []
    for (number, _), cells in zip(lines[1:], reader, strict=False):
        if len(cells) != len(header):
            raise InputError(f"{path}, line {number}: {len(cells)} cells; expected {len(header)}, as in the header")
        rows.append((number, dict(zip(header, cells, strict=True))))
    return rows
