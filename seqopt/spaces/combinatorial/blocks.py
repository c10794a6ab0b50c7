"""Building blocks: files of what can be bought, with identifiers and prices."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seqopt.datasets.numbers import read_number
from seqopt.datasets.pool_columns import ID_COLUMNS, plain_column, recognize_column
from seqopt.datasets.tables import FORMATS, Table, read_table
from seqopt.errors import InputError
from seqopt.spaces.combinatorial.survey import canonical_keys
from seqopt.strings.identity import canonical_smiles, explain_rejection, quoted

PRICE_COLUMNS = ("price", "cost", "price_usd", "price_eur", "price_per_gram", "usd", "eur")
"""Names by which a column of prices is recognised, the first that is there winning."""

FURTHER_ID_COLUMNS = ("reagent_id", "block_id", "building_block_id", "reagent", "block")
"""Names of identifiers beside those of pools."""

NAMED = 5
"""Blocks that a message names; the others are counted."""


@dataclass(frozen=True)
class Block:
    """A building block.

    Attributes:
        name: What its supplier calls it; where the file has no identifiers, its SMILES.
        smiles: As it is written in its file.
        key: Its canonical SMILES.
        price: `None` where it is not known.
        source: Name of its file without folder and ending: what reactions call the set that it belongs to.
        where: Its file and line.
    """

    name: str
    smiles: str
    key: str
    price: float | None = None
    source: str = ""
    where: str = ""


@dataclass(frozen=True)
class BuildingBlocks:
    """What was read of one or several files.

    Attributes:
        blocks: The blocks, in the order of the files. The same molecule in one set counts once: its first row.
        rejected: Rows that cannot be used: where they stand, what is there, and why.
        duplicates: Rows that repeat a molecule of the same set, by where they stand.
        unpriced: Prices that are no numbers, with where they stand: these blocks are kept without a price.
        files: The files with their SHA-256 checksums; empty where blocks were given as a list.
    """

    blocks: tuple[Block, ...]
    rejected: tuple[tuple[str, str, str], ...] = ()
    duplicates: tuple[str, ...] = ()
    unpriced: tuple[str, ...] = ()
    files: tuple[tuple[str, str], ...] = field(default=())

    def __len__(self) -> int:
        return len(self.blocks)

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the sets, in the order in which they come."""
        return tuple(dict.fromkeys(block.source for block in self.blocks))

    def lines(self) -> list[str]:
        """What has to be said of the files: how many blocks they hold, and what was left out."""
        found = [f"{len(self.blocks):,} building blocks"]
        if self.rejected:
            named = "; ".join(f"{where}: {quoted(text)} ({why})" for where, text, why in self.rejected[:NAMED])
            found.append(
                f"{_counted(len(self.rejected), 'row', 'rows')} cannot be used: {named}{_more(len(self.rejected))}"
            )
        if self.duplicates:
            named = ", ".join(self.duplicates[:NAMED])
            what = (
                "1 row repeats a molecule of its file and is"
                if len(self.duplicates) == 1
                else f"{len(self.duplicates):,} rows repeat a molecule of their file and are"
            )
            found.append(f"{what} left out: {named}{_more(len(self.duplicates))}")
        if self.unpriced:
            named = ", ".join(self.unpriced[:NAMED])
            found.append(
                f"{_counted(len(self.unpriced), 'price is', 'prices are')} no number of at least 0, and unknown: "
                f"{named}{_more(len(self.unpriced))}"
            )
        if ambiguous := self._ambiguous():
            found.append(
                f"{_counted(len(ambiguous), 'identifier stands', 'identifiers stand')} for several building blocks, "
                f"which only their SMILES tell apart: {'; '.join(ambiguous[:NAMED])}{_more(len(ambiguous))}"
            )
        return found

    def _ambiguous(self) -> list[str]:
        """Identifiers that different blocks have, with the places of these."""
        by_name: dict[str, list[Block]] = {}
        for block in self.blocks:
            by_name.setdefault(block.name, []).append(block)
        return [
            f"{name} ({', '.join(block.where for block in blocks)})"
            for name, blocks in by_name.items()
            if len({block.key for block in blocks}) > 1
        ]

    @classmethod
    def of(cls, strings: Iterable[str], source: str = "") -> BuildingBlocks:
        """Blocks from a list of SMILES, which are also their names.

        Raises:
            InputError: For a string that is no molecule.

        Example:
            >>> BuildingBlocks.of(["CN", "CCN"]).blocks[1].key
            'CCN'
        """
        listed = [strings] if isinstance(strings, str) else list(strings)
        found = _assembled([(text, text, None, f"block {index}") for index, text in enumerate(listed, 1)], source)
        if found.rejected:
            where, text, why = found.rejected[0]
            raise InputError(f"{where}, {quoted(text)}, is not a molecule: {why}")
        return found

    def joined(self, other: BuildingBlocks) -> BuildingBlocks:
        """These blocks, followed by those of ``other``."""
        return BuildingBlocks(
            self.blocks + other.blocks,
            self.rejected + other.rejected,
            self.duplicates + other.duplicates,
            self.unpriced + other.unpriced,
            self.files + other.files,
        )

    def to_json(self) -> list[list[Any]]:
        """All that makes the blocks again: name, SMILES, price, set and place of each."""
        return [[one.name, one.smiles, one.price, one.source, one.where] for one in self.blocks]

    @classmethod
    def from_json(cls, rows: Sequence[Sequence[Any]], files: Sequence[Sequence[str]] = ()) -> BuildingBlocks:
        """What `to_json` described.

        Raises:
            InputError: If a row is not one, or its SMILES is no molecule any more.
        """
        blocks = []
        for row in rows:
            if len(row) != 5:
                raise InputError(f"{row!r} does not describe a building block")
            name, smiles, price, source, where = row
            key = canonical_smiles(str(smiles).strip())
            if key is None:
                raise InputError(f"the building block {name!r} ({where}) is no molecule: {quoted(str(smiles))}")
            blocks.append(Block(str(name), str(smiles), key, price, str(source), str(where)))
        return cls(tuple(blocks), files=tuple((str(path), str(sha256)) for path, sha256 in files))


def read_blocks(paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> BuildingBlocks:
    """Building blocks from a file, several files, or all files of a folder.

    A ``.smi`` file has a SMILES and, after a blank, an identifier on each line. In a table (``.csv``, ``.tsv``,
    ``.xlsx``, ``.sdf``, ``.parquet``) the columns of SMILES, identifiers (``id``, ``name``, ``catalog_id``, ...) and
    prices (``price``, ``cost``, ...) are recognised by their names.

    Args:
        paths: What to read. Of a folder, all files whose ending is one of those, in the order of their names.

    Raises:
        InputError: For a path that is not there, a folder without such files, a file that cannot be read, or files
            without any building block.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "amines.smi").write_text("CN A1\\nCCN A2\\nC1CC A3\\n")
        >>> found = read_blocks(folder)
        >>> [block.name for block in found.blocks], len(found.rejected), found.sources
        (['A1', 'A2'], 1, ('amines',))
    """
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    files: list[Path] = []
    for path in map(Path, given):
        if path.is_dir():
            inside = sorted(one for one in path.iterdir() if one.is_file() and _ending(one) in FORMATS)
            if not inside:
                raise InputError(f"the folder {path} holds no files of building blocks: put .smi or .csv files there")
            files += inside
        else:
            files.append(path)
    if not files:
        raise InputError("no files of building blocks: give a folder, or at least one file")
    found = BuildingBlocks(())
    names: dict[str, Path] = {}
    for path in files:
        name = set_name(path)
        if name in names:
            raise InputError(
                f"{names[name]} and {path} are both called {name!r}, by which reactions choose their reagents: rename "
                "one of them"
            )
        names[name] = path
        found = found.joined(_read(path, name))
    if not found.blocks:
        raise InputError(
            f"there are no building blocks in {', '.join(map(str, files))}: {'; '.join(found.lines()[1:])}"
        )
    return found


def set_name(path: Path) -> str:
    """What reactions call the blocks of a file: its name without the ending.

    Example:
        >>> set_name(Path("reagents/acids.smi.gz"))
        'acids'
    """
    return path.name.split(".")[0]


def _ending(path: Path) -> str:
    plain = path.name.lower().removesuffix(".gz")
    return Path(plain).suffix


def _read(path: Path, source: str) -> BuildingBlocks:
    table = read_table(path, expected={"smiles", "price", "id"})
    column = recognize_column(table, str(path), "molecule")
    identifiers = table.columns.get("name") if not table.headed else _named(table, (*ID_COLUMNS, *FURTHER_ID_COLUMNS))
    prices = _named(table, PRICE_COLUMNS) if table.headed else None
    unit = "row" if table.format in ("parquet", "xlsx") else "line"
    rows = []
    for index, text in enumerate(table.columns[column]):
        where = f"{path}, {unit} {int(table.lines[index])}"
        called = identifiers[index].strip() if identifiers is not None else ""
        rows.append((text, called or text.strip(), None if prices is None else prices[index], where))
    found = _assembled(rows, source)
    unread = tuple((f"{path}, line {line}", text, why) for line, text, why in table.unread)
    return BuildingBlocks(
        found.blocks,
        found.rejected + unread,
        found.duplicates,
        found.unpriced,
        ((str(path.resolve()), table.sha256),),
    )


def _named(table: Table, names: Sequence[str]) -> list[str] | None:
    known = {plain_column(column): column for column in table.columns}
    return next((table.columns[known[name]] for name in names if name in known), None)


def _assembled(rows: Sequence[tuple[str, str, str | None, str]], source: str) -> BuildingBlocks:
    """Blocks from their texts, names, prices and places."""
    blocks: list[Block] = []
    rejected, duplicates, unpriced = [], [], []
    seen: set[str] = set()
    texts = [str(text).strip() for text, _, _, _ in rows]
    for smiles, key, (_, name, cell, where) in zip(texts, canonical_keys(texts), rows, strict=True):
        if key is None:
            rejected.append((where, smiles, explain_rejection(smiles, "molecule")))
            continue
        if key in seen:
            duplicates.append(where)
            continue
        price = None if cell is None or not cell.strip() else read_number(cell)
        if cell is not None and cell.strip() and (price is None or not math.isfinite(price) or price < 0):
            # Whatever it costs, it reacts.
            unpriced.append(f"{cell.strip()!r} ({where})")
            price = None
        seen.add(key)
        blocks.append(Block(name, smiles, key, price, source, where))
    return BuildingBlocks(tuple(blocks), tuple(rejected), tuple(duplicates), tuple(unpriced))


def _counted(count: int, one: str, several: str) -> str:
    return f"{count:,} {one if count == 1 else several}"


def _more(count: int) -> str:
    return f", and {count - NAMED:,} more" if count > NAMED else ""
