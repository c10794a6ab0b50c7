"""What the file of candidates says of a string besides the string: its identifier, its price, its supplier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from seqopt.errors import SeqoptError
from seqopt.report.results import Run

LARGEST_FILE = 200_000_000
"""Bytes of a file of candidates beyond which reading it for a page would take too long."""

MOST_COLUMNS = 4
"""Columns of a library that a page shows, besides identifier and price."""


@dataclass(frozen=True)
class Library:
    """The rows of a file of candidates.

    Attributes:
        strings: Of each row, without the blanks around it.
        columns: All columns but that of the strings.
        id_column: Which of them names candidates; empty for none.
        price_column: Which of them holds prices; empty for none.
        places: The first row of each string.
    """

    strings: tuple[str, ...] = ()
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)
    id_column: str = ""
    price_column: str = ""
    places: Mapping[str, int] = field(default_factory=dict)

    def cells(self, string: str) -> dict[str, str]:
        """The cells of a string, by column; empty where the file does not hold it."""
        place = self.places.get(string.strip())
        return {} if place is None else {name: column[place] for name, column in self.columns.items()}

    def identifier(self, string: str) -> str:
        """What the file calls a string; empty where it does not say.

        Example:
            >>> Library(("CCO",), {"id": ["A1"]}, "id", places={"CCO": 0}).identifier(" CCO ")
            'A1'
        """
        return self.cells(string).get(self.id_column, "").strip()


def read_library(run: Run) -> Library:
    """The library of a search, with the files that were added to it; empty where none can be read any more.

    Where commas are decimal in it, its numbers are given with points, as campaigns keep those of suggestions.
    """
    from seqopt.campaign.parents import parent_in
    from seqopt.datasets.numbers import comparable
    from seqopt.datasets.structures import as_smiles
    from seqopt.strings.mutations import readable_variants

    named = {name: str(run.settings.get(name) or "") for name in ("id_column", "price_column")}
    pool = run.settings.get("pool")
    files = [(str(pool), str(run.settings.get("column") or "string"), named["id_column"])] if pool else []
    parent = parent_in(run.settings)
    strings: list[str] = []
    columns: dict[str, list[str]] = {}
    for path, column, own in [*files, *run.added]:
        table = _table(Path(path), column)
        if column not in table:
            continue
        written = [string.strip() for string in as_smiles(table[column])]
        strings += readable_variants(parent, written)
        # What the files call by different names is the identifier all the same.
        others = {named["id_column"] if own and name == own else name: cells for name, cells in table.items()}
        for name in [*columns, *(name for name in others if name not in columns and name != column)]:
            before = columns.setdefault(name, [""] * (len(strings) - len(table[column])))
            before += others.get(name, [""] * len(table[column]))
    if run.settings.get("decimal_comma"):
        # A column with numbers of both kinds would not be one of numbers, which are sorted as such.
        columns = {name: list(map(comparable, cells)) for name, cells in columns.items()}
    places: dict[str, int] = {}
    for place, string in enumerate(strings):
        places.setdefault(string, place)
    return Library(tuple(strings), columns, named["id_column"], named["price_column"], places)


def _table(path: Path, column: str) -> dict[str, list[str]]:
    """The columns of a file; none where it cannot be read, which is said where a sample of it is drawn."""
    from seqopt.datasets.sheets import plain_name
    from seqopt.datasets.sources import file_and_part
    from seqopt.datasets.tables import read_table

    file, _ = file_and_part(path)
    if not file.is_file() or file.stat().st_size > LARGEST_FILE:
        return {}
    try:
        return dict(read_table(path, expected={plain_name(column)}).columns)
    except (SeqoptError, OSError, ValueError):
        return {}


def shown_columns(library: Library, cells: Sequence[Mapping[str, str]], *, but: Sequence[str] = ()) -> list[str]:
    """The columns that a page shows of some strings: the price first, then others that say something.

    Args:
        library: Which columns are identifier and price.
        cells: What is known of each string.
        but: Columns that are shown elsewhere, such as that of the values.

    Example:
        >>> cells = [{"id": "A1", "price": "9.5", "stock": "", "supplier": "ACME"}]
        >>> shown_columns(Library(id_column="id", price_column="price"), cells)
        ['price', 'supplier']
    """
    names = list(dict.fromkeys(name for row in cells for name in row))
    left_out = {library.id_column, library.price_column, *but}
    told = [name for name in names if name not in left_out and any(row.get(name, "").strip() for row in cells)]
    price = [library.price_column] if library.price_column in names else []
    return price + told[:MOST_COLUMNS]
