"""Which columns of the files of a pool on disk hold what their owners call the candidates, and what to say of them.

Files of one pool may come from several owners, who call that column by several names, or have none. Of each file the
column is told by its first rows; a column is taken where most of its candidates have an identifier of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from seqopt.datasets.pool_columns import ID_COLUMNS, plain_column, short
from seqopt.datasets.row_blocks import LISTED_NAME, RowFile, listed_briefly
from seqopt.errors import InputError

NO_COLUMN = ""
"""Given as the name of a column of identifiers: none is taken."""


@dataclass(frozen=True)
class Identifiers:
    """The columns of identifiers of some files.

    Attributes:
        column: What they are called together; `None` where there are none.
        columns: What each file calls its own; `None` where it has none.
    """

    column: str | None
    columns: tuple[str | None, ...]

    @property
    def lacking(self) -> list[int]:
        """Numbers of the files without identifiers."""
        return [] if self.column is None else [number for number, own in enumerate(self.columns) if own is None]

    def own(self, number: int) -> dict[str, str]:
        """What a file calls the column, where that is another name."""
        own = self.columns[number]
        return {} if own is None or self.column in (None, own) else {str(self.column): own}

    def remarks(self, files: Sequence[RowFile]) -> list[str]:
        """What is worth knowing of how they were chosen: files without any, and columns that are not taken."""
        if self.column is None:
            return _passed_over(files)
        found = []
        others = [
            (str(files[number].path), f"column {own!r}")
            for number, own in enumerate(self.columns)
            if own is not None and own != LISTED_NAME and plain_column(own) != plain_column(self.column)
        ]
        if others:
            found.append(f"identifiers are those of the column {self.column!r}, but in {listed_briefly(others)}")
        lacking = self.lacking
        if lacking:
            named = listed_briefly([(str(files[number].path), "") for number in lacking])
            several = f"{len(lacking):,} of {len(files):,} files have" if len(lacking) > 1 else f"{named} has"
            listed = f": {named}; their" if len(lacking) > 1 else ": its"
            found.append(f"{several} no column of identifiers such as {self.column!r}{listed} candidates have none")
        return found


def identifying(files: Sequence[RowFile], given: str | None) -> Identifiers:
    """The columns of identifiers, by the first rows of all files.

    The first usual name that all files have, and by which all their candidates can be told apart, is taken; else the
    one by which most can. A file that lacks it is asked for another usual name; a list, for what follows its strings.

    Args:
        files: The files.
        given: The column that is meant, if its user says so; `NO_COLUMN` for none.

    Raises:
        InputError: If none of the files has the column that is meant.
    """
    if given == NO_COLUMN:
        return Identifiers(None, (None,) * len(files))
    if given is not None:
        if not any(given in file.columns for file in files):
            listed = ", ".join(map(repr, files[0].columns)) or "none"
            raise InputError(f"{files[0].path} has no column of identifiers {given!r}; its columns are {listed}")
        return Identifiers(given, _filled_up(files, _called(files, given)))
    named = [{plain_column(name): name for name in file.begun if name != file.column} for file in files]
    best, most = Identifiers(None, (None,) * len(files)), 0
    for plain in ID_COLUMNS:
        column = next((names[plain] for names in named if plain in names), None)
        if column is None:
            continue
        columns = _called(files, column)
        own, rows = _told_apart(files, columns)
        if own == rows and None not in columns:
            return Identifiers(column, tuple(columns))
        if 2 * own > rows:
            filled = _filled_up(files, columns)
            reached = _told_apart(files, filled)[0]
            if reached > most:
                best, most = Identifiers(column, filled), reached
    return best


def _called(files: Sequence[RowFile], column: str) -> list[str | None]:
    """What each file calls a column, whose name may be written in several ways; `None` where it lacks it."""
    found = []
    for file in files:
        alike = [name for name in file.begun if name != file.column and plain_column(name) == plain_column(column)]
        found.append(column if column in file.begun else next(iter(alike), None))
    return found


def _filled_up(files: Sequence[RowFile], columns: Sequence[str | None]) -> tuple[str | None, ...]:
    """Columns, with another usual one of each file that lacks that of the others."""
    return tuple(
        identifying([file], None).columns[0] if own is None and len(files) > 1 else own
        for file, own in zip(files, columns, strict=True)
    )


def _told_apart(files: Sequence[RowFile], columns: Sequence[str | None]) -> tuple[int, int]:
    """How many of the first strings of some files have an identifier of their own, and how many there are.

    A string that is repeated has its first identifier. Files without a column do not count.
    """
    called: dict[str, str] = {}
    for file, column in zip(files, columns, strict=True):
        if column is not None:
            for string, cell in zip(file.head, file.begun[column], strict=True):
                called.setdefault(string.strip(), cell.strip())
    called.pop("", None)
    times: dict[str, int] = {}
    for identifier in called.values():
        times[identifier] = times.get(identifier, 0) + 1
    return sum(identifier != "" and times[identifier] == 1 for identifier in called.values()), len(called)


def _passed_over(files: Sequence[RowFile]) -> list[str]:
    """A column that is called like one of identifiers, where none is taken, and why it is not."""
    for plain in ID_COLUMNS:
        seen: dict[str, tuple[str, str]] = {}
        for file in files:
            names: Mapping[str, str] = {plain_column(name): name for name in file.begun if name != file.column}
            if plain not in names:
                continue
            for string, cell, line in zip(file.head, file.begun[names[plain]], file.begun_lines, strict=True):
                what, identifier = string.strip(), cell.strip()
                if not what or not identifier:
                    continue
                where, first = seen.setdefault(identifier, (f"{file.path}, line {line}", what))
                if first != what:
                    return [
                        f"the column {names[plain]!r} is not taken for identifiers, since most are not those of one "
                        f"candidate alone: {identifier!r} is that of {short(first)} ({where}) and of {short(what)} "
                        f"({file.path}, line {line}); --id-column, id_column= take it all the same"
                    ]
    return []
