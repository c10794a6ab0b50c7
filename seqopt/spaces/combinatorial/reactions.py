"""Reactions as SMARTS of their components and product."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seqopt.datasets.pool_columns import plain_column
from seqopt.datasets.tables import read_table
from seqopt.errors import InputError
from seqopt.strings.identity import quiet_rdkit, quoted

COMPONENTS = (2, 3)
"""Numbers of components that a reaction may have."""

SMARTS_COLUMNS = ("smarts", "reaction", "reaction_smarts", "rxn", "rxn_smarts")
NAME_COLUMNS = ("name", "id", "reaction_id", "reaction_name")
REAGENT_COLUMNS = ("reagents", "slots", "sets", "blocks")


@dataclass(frozen=True)
class Reaction:
    """A reaction of two or three building blocks.

    Attributes:
        name: What it is called.
        smarts: Reaction SMARTS with atom maps, ``A.B>>product``. Of several products the first counts.
        reagents: For each component, the names of the files whose blocks may take its place; an empty name stands for
            all files.
        where: Where it was read.
    """

    name: str
    smarts: str
    reagents: tuple[str, ...] = ()
    where: str = ""

    @property
    def components(self) -> int:
        """Number of building blocks that it takes."""
        return int(self.parsed().GetNumReactantTemplates())

    def parsed(self) -> Any:
        """The reaction of RDKit.

        Raises:
            InputError: If it does not parse, has no product, or has another number of components than two or three.
        """
        from rdkit.Chem import rdChemReactions

        place = f" ({self.where})" if self.where else ""
        with quiet_rdkit():
            try:
                found = rdChemReactions.ReactionFromSmarts(self.smarts)
            except (ValueError, RuntimeError) as error:
                why = str(error).strip().splitlines()
                raise InputError(
                    f"the reaction {self.name!r}{place} does not parse: {why[-1] if why else 'not a reaction SMARTS'}"
                ) from error
            errors = found.Validate(silent=True)[1] if found is not None else 1
        if found is None or errors or not found.GetNumProductTemplates():
            raise InputError(
                f"the reaction {self.name!r}{place} is no reaction with a product, {quoted(self.smarts)}: write "
                "reaction SMARTS with atom maps, [C:1](=O)[OH].[N;H2:2]>>[C:1](=O)[N:2]"
            )
        templates = [found.GetReactantTemplate(number) for number in range(found.GetNumReactantTemplates())]
        given = {atom.GetAtomMapNum() for template in templates for atom in template.GetAtoms()}
        made = {atom.GetAtomMapNum() for atom in found.GetProductTemplate(0).GetAtoms()}
        if unknown := sorted(made - given - {0}):
            raise InputError(
                f"the reaction {self.name!r}{place} has the atom map {unknown[0]} in its product and in no component: "
                "what hangs on that atom would vanish. Correct the map"
            )
        count = found.GetNumReactantTemplates()
        if count not in COMPONENTS:
            raise InputError(
                f"the reaction {self.name!r}{place} has {count} component{'s' if count != 1 else ''}; "
                "expected two or three"
            )
        if self.reagents and len(self.reagents) != count:
            raise InputError(
                f"the reaction {self.name!r}{place} has {count} components, but names {len(self.reagents)} "
                f"set{'s' if len(self.reagents) != 1 else ''} of reagents: name one for each, or none"
            )
        found.Initialize()
        return found


def read_reactions(path: str | os.PathLike[str]) -> tuple[list[Reaction], list[str]]:
    """Reactions from a file, and what is wrong with those of its lines that are none.

    A table (``.csv``, ``.tsv``) has the columns ``smarts``, ``name`` (optional) and ``reagents`` (optional: names of
    files of building blocks, one for each component, with semicolons between them). Any other text file has, on each
    line and with blanks between them, the SMARTS, a name, and the names of files; lines that begin with ``#`` are
    comments.

    Args:
        path: The file.

    Returns:
        The reactions that parse, and a message for each that does not, with its line.

    Raises:
        InputError: For a file that is missing or cannot be read, or holds no reaction that parses; for a folder, or a
            file of building blocks.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "reactions.txt"
        >>> _ = path.write_text("[C:1](=O)[OH].[N;H2:2]>>[C:1](=O)[N:2] amide acids amines\\n[C:1]>> broken\\n")
        >>> found, problems = read_reactions(path)
        >>> found[0].name, found[0].reagents, len(problems)
        ('amide', ('acids', 'amines'), 1)
    """
    path = Path(path)
    if path.is_dir():
        raise InputError(
            f"{path} is a folder, and reactions stand in a file: give the file of reaction SMARTS here, and the folder "
            "of building blocks as reagents (--reagents)"
        )
    rows = _table_rows(path) if path.suffix.lower() in (".csv", ".tsv") else _text_rows(path)
    if rows and not any(">>" in one.smarts for one in rows):
        raise InputError(
            f"{path} holds no reaction: none of its {len(rows):,} SMARTS has >> between reagents and product, such as "
            f"{rows[0].smarts!r} ({rows[0].where}); building blocks are given as reagents (--reagents)"
        )
    found, problems = checked_reactions(rows)
    if not found:
        listed = "; ".join(problems) if problems else "the file is empty"
        raise InputError(f"{path} holds no reaction that can be used: {listed}")
    return found, problems


def checked_reactions(rows: Iterable[Reaction]) -> tuple[list[Reaction], list[str]]:
    """Those reactions that parse, and what is wrong with the others.

    Raises:
        InputError: If two reactions have one name.
    """
    found: list[Reaction] = []
    problems: list[str] = []
    for one in rows:
        if any(one.name == other.name for other in found):
            raise InputError(f"two reactions are called {one.name!r} ({one.where}): rename one of them")
        try:
            one.parsed()
        except InputError as error:
            problems.append(str(error))
            continue
        found.append(one)
    return found, problems


def _text_rows(path: Path) -> list[Reaction]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError as error:
        raise InputError(f"there is no file {path}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}") from error
    found: list[Reaction] = []
    for number, line in enumerate(lines, 1):
        parts = line.split()
        if not parts or line.lstrip().startswith("#"):
            continue
        name = parts[1] if len(parts) > 1 else f"reaction{len(found) + 1}"
        found.append(Reaction(name, parts[0], tuple(parts[2:]), f"{path}, line {number}"))
    return found


def _table_rows(path: Path) -> list[Reaction]:
    table = read_table(path, expected=set(SMARTS_COLUMNS))
    known = {plain_column(column): column for column in table.columns}
    smarts = _first(known, SMARTS_COLUMNS)
    if smarts is None:
        raise InputError(f"{path} has no column of reactions: call it smarts (its columns: {', '.join(table.columns)})")
    names, sets = _first(known, NAME_COLUMNS), _first(known, REAGENT_COLUMNS)
    found: list[Reaction] = []
    for index, text in enumerate(table.columns[smarts]):
        if not text.strip():
            continue
        name = table.columns[names][index].strip() if names is not None else ""
        listed = table.columns[sets][index].strip() if sets is not None else ""
        reagents = tuple(part.strip() for part in listed.split(";")) if listed else ()
        where = f"{path}, line {int(table.lines[index])}"
        found.append(Reaction(name or f"reaction{len(found) + 1}", text.strip(), reagents, where))
    return found


def _first(known: dict[str, str], names: Sequence[str]) -> str | None:
    return next((known[name] for name in names if name in known), None)
