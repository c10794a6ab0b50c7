"""A filter by a list: strings that must not be suggested, such as patented ones, or the only ones that may be."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from seqopt.errors import InputError

if TYPE_CHECKING:
    from seqopt.datasets import Pool

SHOWN = 3
"""Strings that messages show."""


@dataclass(frozen=True)
class Listed:
    """A string is on a list, or is not.

    Args:
        strings: The list. Two writings of one molecule are the same string.
        required: Whether a string must be on the list; else it must not be.
        source: Where the list is from, in words.

    Example:
        >>> listed = Listed(["OCC"], source="patented.smi").keyed("molecule")
        >>> listed.describe(), listed.allows("CCO"), listed.allows("CCN")
        ('not one of the 1 string in patented.smi', False, True)
    """

    strings: Sequence[str]
    required: bool = False
    source: str = ""

    kind: ClassVar[str] = "listed"

    def __post_init__(self) -> None:
        if not isinstance(self.strings, str):
            object.__setattr__(self, "strings", tuple(self.strings))

    def checked(self) -> Listed:
        """The filter itself.

        Raises:
            InputError: If the list is empty, or no list of strings.
        """
        if isinstance(self.strings, str) or not all(isinstance(one, str) for one in self.strings):
            raise InputError(f"the list of a filter is {self.strings!r}; expected a list of strings")
        if not self.strings:
            raise InputError(f"the list {self.source or 'of a filter'} is empty: leave it out")
        return self

    def keyed(self, kind: str, *, standardize: bool = False) -> Listed:
        """The same with the keys of its strings, each once, in place of the strings.

        Raises:
            InputError: If one is not a string of that kind; the message names it.
        """
        from seqopt.strings.identity import identity_keys

        found = identity_keys(list(self.strings), kind, standardize=standardize)
        bad = [string for string, key in zip(self.strings, found, strict=True) if key is None]
        if bad:
            shown = ", ".join(map(repr, bad[:SHOWN])) + (", ..." if len(bad) > SHOWN else "")
            where = f" in {self.source}" if self.source else ""
            raise InputError(f"{len(bad)} of the listed strings{where} cannot be read as {kind}: {shown}")
        return replace(self, strings=tuple(dict.fromkeys(key for key in found if key is not None)))

    def describe(self) -> str:
        """What it asks for, in words."""
        count = len(self.strings)
        strings = f"{count:,} string" + ("s" if count != 1 else "")
        shown = ", ".join(list(self.strings)[:SHOWN]) + (", ..." if count > SHOWN else "")
        where = f"in {self.source}" if self.source else f"listed ({shown})"
        return f"{'' if self.required else 'not '}one of the {strings} {where}"

    def allows(self, key: str) -> bool:
        """Whether a string passes, by its key."""
        return (key in self._keys) == self.required

    @cached_property
    def _keys(self) -> frozenset[str]:
        return frozenset(self.strings)


def read_list(path: str | os.PathLike[str], *, variants: bool = False) -> list[str]:
    """The strings of a file as they are written there, as `seqopt.datasets.read_pool` reads it; blank ones left out.

    Args:
        path: The file.
        variants: Whether names of variants stand for strings, in a column of names such as ``mutations``, too.

    Raises:
        InputError: If it cannot be read, or holds no strings.
    """
    return list(read_listed(path, variants=variants).strings)


def read_listed(path: str | os.PathLike[str], column: str | None = None, *, variants: bool = False) -> Pool:
    """As `read_list`, with the lines on which the strings stand.

    Args:
        path: The file.
        column: The column of strings, if it is not to be recognised.
        variants: See `read_list`.

    Raises:
        InputError: See `read_list`.
    """
    from seqopt.datasets import read_pool
    from seqopt.datasets.pool_columns import STRING_COLUMNS
    from seqopt.datasets.pool_rows import column_of_names
    from seqopt.datasets.tables import read_table
    from seqopt.strings.mutations import MUTATION_COLUMNS

    if variants and column is None and Path(path).is_file():
        table = read_table(Path(path), expected={*STRING_COLUMNS, *MUTATION_COLUMNS})
        column = column_of_names(table) if table.headed else None
    return read_pool(Path(path), column=column, kind="text")
