"""Structure-data files (.sdf): molecules with their names and properties, as tables.

A record becomes a row with the SMILES of its structure (``smiles``), its title (``name``), and a column for each
property that any record has. A property that is called like one of the first two is called ``NAME (property)``.

References:
    Dalby, A., et al. (1992). Description of several chemical structure file formats used by computer programs developed
        at Molecular Design Limited. J. Chem. Inf. Comput. Sci. 32, 244-255.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seqopt.datasets.sheets import Cell, plain_name
from seqopt.datasets.sources import Source
from seqopt.datasets.workbooks import number_text
from seqopt.errors import InputError
from seqopt.strings.identity import quiet_rdkit

SMILES, NAME = "smiles", "name"
"""Columns of the structure and of the title of a record."""


@dataclass(frozen=True)
class Records:
    """The records of a file.

    Attributes:
        columns: The cells of those that can be read, by column.
        lines: The line on which each begins, counted from 1.
        unread: Of the others: line, number and title, and why.
    """

    columns: dict[str, list[str]]
    lines: list[int]
    unread: list[tuple[int, str, str]]


def read_records(source: Source) -> Records:
    """The records of a file; those that RDKit cannot read are set aside.

    Raises:
        InputError: If there is no record, or the file is not text.
    """
    blocks = _blocks(source)
    if not blocks:
        raise InputError(f"{source.name} holds no record: an SDF file has a molfile and a line $$$$ for each molecule")
    from rdkit import Chem

    smiles, names, lines, unread = [], [], [], []
    properties: list[dict[str, str]] = []
    with quiet_rdkit():
        for number, (line, block) in enumerate(blocks, start=1):
            title = block.split(b"\n", 1)[0].decode("utf-8", "replace").strip()
            # One at a time: a record that cannot be read then leaves the next ones alone.
            supplier = Chem.ForwardSDMolSupplier(io.BytesIO(block + b"$$$$\n"))
            mol = _first(supplier)
            if mol is None or not mol.GetNumAtoms():
                unread.append((line, f"record {number}" + (f" {title}" if title else ""), _why(block)))
                continue
            smiles.append(Chem.MolToSmiles(mol))
            names.append(title)
            lines.append(line)
            properties.append({name: _property(mol, name) for name in mol.GetPropNames()})
    taken = {plain_name(SMILES), plain_name(NAME)}
    columns = {SMILES: smiles} | ({NAME: names} if any(names) else {})
    for name in dict.fromkeys(name for row in properties for name in row):
        shown = f"{name} (property)" if plain_name(name) in taken else name
        columns[shown] = [row.get(name, "").strip() for row in properties]
    return Records(columns, lines, unread)


def sdf_bytes(smiles: Sequence[str], names: Sequence[str], columns: Mapping[str, Sequence[Cell]]) -> bytes:
    """Molecules with coordinates in the plane, their names, and properties; empty cells are left out.

    Line breaks in names and properties become blanks, since the format has no way to write them.

    Args:
        smiles: The molecules.
        names: The title of each.
        columns: The properties, each with a cell for every molecule.

    Raises:
        InputError: For a SMILES that RDKit cannot read.
    """
    from rdkit import Chem
    from rdkit.Chem import rdDepictor

    stream = io.StringIO()
    with quiet_rdkit():
        for index, (string, name) in enumerate(zip(smiles, names, strict=True)):
            mol = Chem.MolFromSmiles(string)
            if mol is None:
                raise InputError(f"{string!r} is not a SMILES that RDKit can read: an .sdf cannot hold it")
            rdDepictor.Compute2DCoords(mol)
            mol.SetProp("_Name", _one_line(name))
            stream.write(Chem.MolToMolBlock(mol))
            for column, cells in columns.items():
                text = _written(cells[index])
                if text:
                    stream.write(f">  <{re.sub('[<>]', ' ', _one_line(column)).strip()}>\n{text}\n\n")
            stream.write("$$$$\n")
    return stream.getvalue().encode("utf-8", "backslashreplace")


def _blocks(source: Source) -> list[tuple[int, bytes]]:
    """Each record without its last line, and the line on which it begins."""
    data = source.data.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if b"\0" in data[:1000]:
        raise InputError(f"{source.name} is not text, as an SDF file is: write it again")
    blocks, line = [], 1
    for block in re.split(rb"^\$\$\$\$[^\n]*(?:\n|\Z)", data, flags=re.MULTILINE):
        if block.strip():
            blocks.append((line, block if block.endswith(b"\n") else block + b"\n"))
        line += block.count(b"\n") + 1
    return blocks


def _first(supplier: Any) -> Any | None:
    try:
        return next(iter(supplier), None)
    except (RuntimeError, ValueError, OSError):
        return None


def _property(mol: Any, name: str) -> str:
    try:
        return str(mol.GetProp(name))
    except UnicodeDecodeError:
        return ""


def _why(block: bytes) -> str:
    from rdkit import Chem

    text = block.decode("utf-8", "replace")
    mol: Any = None
    if "M  END" in text:
        mol = Chem.MolFromMolBlock(text, sanitize=False, removeHs=False)
    if mol is None:
        return "not a molfile that RDKit can read" if "M  END" in text else "not a molfile: it has no line 'M  END'"
    if not mol.GetNumAtoms():
        return "a structure without atoms"
    problems = Chem.DetectChemistryProblems(mol)
    return f"impossible molecule: {problems[0].Message().strip()}" if problems else "RDKit cannot make a molecule of it"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _written(cell: Cell) -> str:
    if cell is None or (isinstance(cell, float) and cell != cell):
        return ""
    text = _one_line(cell) if isinstance(cell, str) else number_text(cell)  # type: ignore[arg-type]
    # A line that begins like the end of a record would end it.
    return f" {text}" if text.startswith(("$$$$", ">")) else text
