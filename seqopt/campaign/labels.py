"""What the owner of a library calls its candidates, and what else the library says of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from seqopt.campaign.rows import Settings, Suggestion


class Label(NamedTuple):
    """What a library says of one candidate.

    Attributes:
        identifier: What its owner calls it.
        cells: The other columns, by name.
    """

    identifier: str | None = None
    cells: Mapping[str, str] = {}


def labels_of(facts: Mapping[str, Any] | None, strings: Sequence[str]) -> list[Label]:
    """What a library says of candidates, by their strings as it writes them.

    Args:
        facts: What the campaign keeps of the library; `None` where there is none.
        strings: The candidates.
    """
    from seqopt.filters.filtering import library_cells

    columns = library_cells(facts, strings) if facts is not None and strings else None
    if columns is None or facts is None:
        return [Label() for _ in strings]
    files = [facts, *facts.get("added", [])]
    own = list(dict.fromkeys(name for one in files if (name := one.get("id_column")) in columns))
    return [
        Label(
            next((cell for name in own if (cell := columns[name][row].strip())), None),
            {name: cells[row].strip() for name, cells in columns.items() if name not in own and cells[row].strip()},
        )
        for row in range(len(strings))
    ]


def strings_by_identifier(facts: Mapping[str, Any] | None) -> dict[str, str]:
    """The string of each identifier of a library; empty where it has none."""
    from seqopt.datasets.sheets import plain_name
    from seqopt.datasets.sources import file_and_part
    from seqopt.datasets.structures import as_smiles
    from seqopt.datasets.tables import read_table

    found: dict[str, str] = {}
    for one in [] if facts is None else [facts, *facts.get("added", [])]:
        if one.get("id_column") is None or not file_and_part(one["path"])[0].is_file():
            continue
        column = one["column"] or "string"
        table = read_table(Path(one["path"]), expected={plain_name(column)})
        if column in table.columns and one["id_column"] in table.columns:
            strings = as_smiles(table.columns[column]) if one["kind"] == "molecule" else table.columns[column]
            for identifier, string in zip(table.columns[one["id_column"]], strings, strict=True):
                if identifier.strip() and string.strip():
                    found.setdefault(identifier.strip(), string.strip())
    return found


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
    column = (settings.pool or {}).get("price_column")
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
    if not (settings.pool or {}).get("price_column"):
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
