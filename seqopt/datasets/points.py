"""Points to fit a formula to, read from a table."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from seqopt.datasets.tables import Table, read_table
from seqopt.errors import InputError

FEWEST_POINTS = 2
"""Points without which there is nothing to fit."""


@dataclass(frozen=True)
class Points:
    """Two columns of numbers.

    Attributes:
        x: The inputs.
        y: The values to fit.
        x_name: The name of the column of inputs.
        y_name: The name of the column of values.
    """

    x: npt.NDArray[np.float64]
    y: npt.NDArray[np.float64]
    x_name: str
    y_name: str

    def __len__(self) -> int:
        return len(self.x)


def read_points(source: str | os.PathLike[str], x: str | None = None, y: str | None = None) -> Points:
    """Read points from a .csv, .tsv, .xlsx or .parquet file.

    A column that is not named is the one called ``x`` or ``y``, in letters of either case. Failing that, if just two
    columns hold numbers (or the file has just two), the first of them is x and the second y; a named one leaves the
    other.

    Args:
        source: The file; a table begins with the names of its columns.
        x: The column of inputs.
        y: The column of values to fit.

    Raises:
        InputError: For a file that cannot be read, a column that is missing or not recognised, a cell that is not a
            finite number (the message gives file, line, column and value), or fewer than two points.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "growth.csv")
        ...     _ = path.write_text("day,note,mass\\n0,fresh,1\\n1,,2.5\\n")
        ...     points = read_points(path)
        >>> points.x_name, points.y_name, points.y.tolist()
        ('day', 'mass', [1.0, 2.5])
    """
    path = Path(source)
    table = read_table(path)
    if not table.headed:
        raise InputError(f"{path} has no named columns: points are read from a .csv, .tsv, .xlsx or .parquet file")
    if all(map(_is_number, table.columns)):
        raise InputError(
            f"{path}, line 1: {', '.join(table.columns)} are numbers: begin the file with the names of its columns, "
            "such as x,y"
        )
    x_name, y_name = _choose(table, path, x, y)
    unit = "row" if table.format in ("parquet", "xlsx") else "line"
    locations = [f"{path}, {unit} {line}" for line in table.lines]
    if len(locations) < FEWEST_POINTS:
        raise InputError(
            f"{path} has {len(locations) or 'no'} point{'s' if len(locations) != 1 else ''}: a formula is fitted to "
            f"at least {FEWEST_POINTS}"
        )
    return Points(_numbers(table, x_name, locations), _numbers(table, y_name, locations), x_name, y_name)


def _choose(table: Table, path: Path, x: str | None, y: str | None) -> tuple[str, str]:
    chosen = {
        name: table.column(wanted, str(path)) if wanted is not None else _called(table, name)
        for name, wanted in (("x", x), ("y", y))
    }
    taken = set(chosen.values())
    if None in taken:
        numeric = [name for name, cells in table.columns.items() if 2 * sum(map(_is_number, cells)) > len(cells)]
        for candidates in (list(table.columns), numeric):
            left = [name for name in candidates if name not in taken]
            missing = [name for name, column in chosen.items() if column is None]
            if len(left) == len(missing):
                chosen |= dict(zip(missing, left, strict=True))
                break
    x_name, y_name = chosen["x"], chosen["y"]
    listed = ", ".join(map(repr, table.columns))
    if x_name is None or y_name is None:
        missing = [name for name, column in chosen.items() if column is None]
        raise InputError(
            f"cannot tell which column of {path} is {' and which is '.join(missing)}; its columns are {listed}: "
            f"name {'them' if len(missing) > 1 else 'it'} with {' and '.join(f'{name} (--{name})' for name in missing)}"
        )
    if x_name == y_name:
        raise InputError(f"column {x_name!r} of {path} cannot be both x and y; its columns are {listed}")
    return x_name, y_name


def _called(table: Table, name: str) -> str | None:
    matches = [column for column in table.columns if column.casefold() == name]
    return matches[0] if len(matches) == 1 else None


def _is_number(cell: str) -> bool:
    try:
        return "_" not in cell and math.isfinite(float(cell))  # Python reads 1_0 as 10; in a file it is a slip
    except ValueError:
        return False


def _numbers(table: Table, name: str, locations: Sequence[str]) -> npt.NDArray[np.float64]:
    cells = table.columns[name]
    for cell, location in zip(cells, locations, strict=True):
        if not _is_number(cell):
            what = f"{cell.strip()!r} is not a finite number" if cell.strip() else "the cell is empty"
            raise InputError(f"{location}, column {name!r}: {what}: correct it, or leave the point out")
    return np.array([float(cell) for cell in cells], dtype=np.float64)
