"""What the owner of a library calls its candidates, and what else the library says of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from seqopt.campaign.rows import Settings, Suggestion
    from seqopt.spaces import StoredPool


class Label(NamedTuple):
    """What a library says of one candidate.

    Attributes:
        identifier: What its owner calls it.
        cells: The other columns, by name.
    """

    identifier: str | None = None
    cells: Mapping[str, str] = {}


class Labels:
    """What a library says of its candidates, by their strings as it writes them; read once.

    Args:
        facts: What the campaign keeps of the library; `None` where there is none.
    """

    def __init__(self, facts: Mapping[str, Any] | None) -> None:
        from seqopt.filters.filtering import library_table

        strings, self._columns = library_table(facts) or ([], {})
        self._rows: dict[str, int] = {}
        for row, string in enumerate(strings):
            self._rows.setdefault(string.strip(), row)
        files = [] if facts is None else [facts, *facts.get("added", [])]
        named = [one.get("id_column") for one in files]
        self._own = [name for name in dict.fromkeys(named) if name in self._columns]

    def of(self, string: str) -> Label:
        """What it says of one candidate."""
        row = self._rows.get(string)
        if row is None:
            return Label()
        cells = {name: cell for name, column in self._columns.items() if (cell := column[row].strip())}
        identifier = next((cells[name] for name in self._own if name in cells), None)
        return Label(identifier, {name: cell for name, cell in cells.items() if name not in self._own})


def library_columns(facts: Mapping[str, Any] | None) -> list[str]:
    """The columns of a library besides its strings, as far as its files can be read."""
    from seqopt.errors import InputError
    from seqopt.filters.filtering import library_table

    try:
        found = library_table(facts, as_written=True)
    except InputError:
        return []
    return [] if found is None else list(found[1])


def stored_labels(pool: StoredPool, strings: Sequence[str]) -> list[Label]:
    """What the files of a pool on disk say of some candidates: identifiers and prices, which are what is kept of them.

    Args:
        pool: The pool.
        strings: Some of its candidates; of others it says nothing.
    """
    found = []
    for string in strings:
        place = pool.index_of(string)
        cells = {} if place is None else {name: cell for name, cell in pool.store.cells(place).items() if cell}
        identifier = cells.pop(pool.store.id_column, None) if pool.store.id_column is not None else None
        found.append(Label(identifier, cells))
    return found


def strings_by_identifier(facts: Mapping[str, Any] | None) -> dict[str, str]:
    """The string of each identifier of a library; empty where it has none."""
    from seqopt.datasets.sheets import plain_name
    from seqopt.datasets.sources import file_and_part
    from seqopt.datasets.structures import as_smiles
    from seqopt.datasets.tables import read_table
    from seqopt.strings.mutations import readable_variants

    found: dict[str, str] = {}
    for one in [] if facts is None else [facts, *facts.get("added", [])]:
        if one.get("id_column") is None or not file_and_part(one["path"])[0].is_file():
            continue
        column = one["column"] or "string"
        table = read_table(Path(one["path"]), expected={plain_name(column)})
        if column in table.columns and one["id_column"] in table.columns:
            strings = as_smiles(table.columns[column]) if one.get("kind") == "molecule" else table.columns[column]
            strings = readable_variants(one.get("parent"), strings)
            for identifier, string in zip(table.columns[one["id_column"]], strings, strict=True):
                if identifier.strip() and string.strip():
                    found.setdefault(identifier.strip(), string.strip())
    return found


def missing_library(facts: Mapping[str, Any] | None) -> str:
    """A file of a library that has identifiers and is not there any more; empty where none is missing."""
    from seqopt.datasets.sources import file_and_part

    files = [] if facts is None else [facts, *facts.get("added", [])]
    named = [file_and_part(one["path"])[0] for one in files if one.get("id_column") is not None]
    return next((str(file) for file in named if not file.is_file()), "")


class Spending(NamedTuple):
    """What suggestions cost.

    Attributes:
        spent: Of those that were measured, failed or discarded.
        committed: Of those that are open.
        unknown: How many of both have no readable price.
    """

    spent: float
    committed: float
    unknown: int


def price_of(suggestion: Suggestion, settings: Settings) -> float | None:
    """What a suggestion costs, as the library said when it was suggested; `None` where it does not say."""
    column = settings.listed.get("price_column")
    return price_in(suggestion.cells.get(column, "")) if column else None


def price_in(cell: str) -> float | None:
    """The number in a cell of prices, with or without a currency.

    Example:
        >>> price_in("120.50 EUR"), price_in("$1,200"), price_in("on request")
        (120.5, 1200.0, None)
    """
    import re

    match = re.fullmatch(r"\D{0,4}?\s*(\d+(?:,\d{3})+(?:\.\d+)?|\d*[.,]?\d+)\s*\D{0,4}", cell.strip())
    if match is None:
        return None
    number = match[1]
    thousands = re.fullmatch(r"\d+(?:,\d{3})+(?:\.\d+)?", number) is not None
    return float(number.replace(",", "") if thousands else number.replace(",", "."))


def spending(suggestions: Sequence[Suggestion], settings: Settings) -> Spending | None:
    """What the suggestions of a campaign cost so far; `None` where no column of prices is named.

    What was withdrawn costs nothing.
    """
    if not settings.listed.get("price_column"):
        return None
    spent = committed = 0.0
    unknown = 0
    for row in suggestions:
        if row.status in ("withdrawn", "undone"):
            continue
        price = price_of(row, settings)
        if price is None:
            unknown += 1
        elif row.status == "open":
            committed += price
        else:
            spent += price
    return Spending(spent, committed, unknown)
