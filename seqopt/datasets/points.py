"""Points to fit a formula to, read from a table."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from seqopt.datasets.numbers import not_a_number, read_number
from seqopt.datasets.tables import Table, read_table
from seqopt.errors import InputError

FEWEST_POINTS = 2
"""Points without which there is nothing to fit."""

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "-", "?"})
"""What stands in cells without a value, in letters of either case."""

_NUMBERED = re.compile(r"x[ _]?[0-9]+", re.IGNORECASE)


@dataclass(frozen=True)
class Points:
    """Columns of numbers: inputs, and values to fit.

    Attributes:
        inputs: The inputs, by the name of their column.
        y: The values to fit.
        y_name: The name of their column.
        left_out: Rows that were left out for a missing value.
        decimal_comma: Whether numbers in their file have commas.
    """

    inputs: Mapping[str, npt.NDArray[np.float64]]
    y: npt.NDArray[np.float64]
    y_name: str
    left_out: int = 0
    decimal_comma: bool = False

    @property
    def x(self) -> npt.NDArray[np.float64]:
        """The first column of inputs."""
        return next(iter(self.inputs.values()))

    @property
    def x_name(self) -> str:
        """Its name."""
        return next(iter(self.inputs))

    def __len__(self) -> int:
        return len(self.y)

    def split(self, share: float, rng: np.random.Generator) -> tuple[Points, Points]:
        """Random rows to learn from, and the others, to judge by.

        Args:
            share: Of the rows that are held out, above 0 and below 1; rounded to a number of rows.
            rng: Of the choice.

        Raises:
            InputError: For another share, or if fewer than two rows would be left on one of the sides.

        Example:
            >>> points = Points({"x": np.arange(8.0)}, np.arange(8.0), "y")
            >>> train, held_out = points.split(0.25, np.random.default_rng(0))
            >>> len(train), len(held_out), sorted([*train.x, *held_out.x]) == list(range(8))
            (6, 2, True)
        """
        if not 0 < share < 1:
            raise InputError(f"the share of the rows to hold out is {share:g}: expected a number between 0 and 1")
        held_out = round(share * len(self))
        if min(held_out, len(self) - held_out) < FEWEST_POINTS:
            raise InputError(
                f"holding out {share:g} of {len(self)} points leaves {len(self) - held_out} to fit and {held_out} to "
                f"judge by: each needs at least {FEWEST_POINTS}; hold out another share, or give more points"
            )
        order = rng.permutation(len(self))
        return self._rows(np.sort(order[held_out:])), self._rows(np.sort(order[:held_out]))

    def _rows(self, rows: npt.NDArray[np.int64]) -> Points:
        return Points({name: column[rows] for name, column in self.inputs.items()}, self.y[rows], self.y_name)


def read_points(
    source: str | os.PathLike[str],
    x: str | Sequence[str] | None = None,
    y: str | None = None,
    *,
    skip_missing: bool = False,
    decimal_comma: bool = False,
) -> Points:
    """Read points from a .csv, .tsv, .xlsx or .parquet file.

    A column that is not named is the one called ``x`` or ``y``, in letters of either case; if there is a column of
    values but none called x, the inputs are those called ``x1``, ``x2``, ... Failing that, if just two columns hold
    numbers (or the file has just two), the first of them is x and the second y; a named one leaves the other.

    Args:
        source: The file; a table begins with the names of its columns.
        x: The columns of inputs: a name, several with commas between them, or a list of names.
        y: The column of values to fit.
        skip_missing: Leave out rows in which a cell that is needed is empty, or says NA, NaN, null, none, - or ?;
            otherwise such a cell is an error.
        decimal_comma: Numbers are written ``6,5``, and none ``6.5``.

    Raises:
        InputError: For a file that cannot be read, a column that is missing, named twice or not recognised, a cell that
            is not a finite number (the message gives file, line, column and value), or fewer than two points.

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
    table = read_table(path, decimal_comma=decimal_comma)
    if not table.headed:
        raise InputError(f"{path} has no named columns: points are read from a .csv, .tsv, .xlsx or .parquet file")
    if all(map(_is_number, table.columns)):
        raise InputError(
            f"{path}, line 1: {', '.join(table.columns)} are numbers: begin the file with the names of its columns, "
            "such as x,y"
        )
    x_names, y_name = _choose(table, path, x, y, decimal_comma)
    unit = "row" if table.format in ("parquet", "xlsx") else "line"
    locations = [f"{path}, {unit} {line}" for line in table.lines]
    rows = list(range(len(locations)))
    if skip_missing:
        used = [table.columns[name] for name in (*x_names, y_name)]
        rows = [row for row in rows if not any(_is_missing(cells[row]) for cells in used)]
    left_out = len(locations) - len(rows)
    if len(rows) < FEWEST_POINTS:
        complete = " without missing values" if left_out else ""
        raise InputError(
            f"{path} has {len(rows) or 'no'} point{'s' if len(rows) != 1 else ''}{complete}: a formula is fitted to "
            f"at least {FEWEST_POINTS}"
        )
    inputs = {name: _numbers(table, name, locations, rows, decimal_comma) for name in x_names}
    return Points(inputs, _numbers(table, y_name, locations, rows, decimal_comma), y_name, left_out, decimal_comma)


def _choose(
    table: Table, path: Path, x: str | Sequence[str] | None, y: str | None, decimal_comma: bool
) -> tuple[list[str], str]:
    x_names = _called(table, "x") if x is None else _named(table, path, x)
    y_names = _called(table, "y") if y is None else [table.column(y, str(path))]
    if not x_names and y_names:
        x_names = [name for name in table.columns if _NUMBERED.fullmatch(name.strip()) and name not in y_names]
    missing = [name for name, columns in (("x", x_names), ("y", y_names)) if not columns]
    if missing:
        numeric = [
            name
            for name, cells in table.columns.items()
            if 2 * sum(_number(cell, decimal_comma) is not None for cell in cells) > len(cells)
        ]
        for candidates in (list(table.columns), numeric):
            left = [name for name in candidates if name not in (*x_names, *y_names)]
            if len(left) == len(missing):
                found = dict(zip(missing, left, strict=True))
                x_names, y_names = x_names or [found["x"]], y_names or [found["y"]]
                break
    listed = ", ".join(map(repr, table.columns))
    if not x_names or not y_names:
        several = "; several columns of inputs: --x NAME,NAME" if "x" in missing else ""
        raise InputError(
            f"cannot tell which column of {path} is {' and which is '.join(missing)}; its columns are {listed}: "
            f"name {'them' if len(missing) > 1 else 'it'} with {' and '.join(f'{name} (--{name})' for name in missing)}"
            f"{several}"
        )
    if y_names[0] in x_names:
        raise InputError(f"column {y_names[0]!r} of {path} cannot be both x and y; its columns are {listed}")
    return x_names, y_names[0]


def _named(table: Table, path: Path, wanted: str | Sequence[str]) -> list[str]:
    """The columns of inputs that somebody named; a name may hold commas itself."""
    own = {name.strip().casefold() for name in table.columns}
    names: list[str] = []
    for text in [wanted] if isinstance(wanted, str) else wanted:
        parts = [text] if text.strip().casefold() in own else text.split(",")
        names += [table.column(part.strip(), str(path)) for part in parts]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InputError(f"column {repeated[0]!r} of {path} is named twice as x: name each column once")
    if not names:
        raise InputError(f"no column of {path} is named as x: name at least one")
    return names


def _called(table: Table, name: str) -> list[str]:
    matches = [column for column in table.columns if column.casefold() == name]
    return matches if len(matches) == 1 else []


def _is_number(cell: str) -> bool:
    try:
        return "_" not in cell and math.isfinite(float(cell))  # Python reads 1_0 as 10; in a file it is a slip
    except ValueError:
        return False


def _number(cell: str, decimal_comma: bool) -> float | None:
    if decimal_comma:
        found = read_number(cell, True)
        return found if found is not None and math.isfinite(found) else None
    return float(cell) if _is_number(cell) else None


def _is_missing(cell: str) -> bool:
    return cell.strip().casefold() in MISSING


def _numbers(
    table: Table, name: str, locations: Sequence[str], rows: Sequence[int], decimal_comma: bool
) -> npt.NDArray[np.float64]:
    cells = table.columns[name]
    found: list[float] = []
    for row in rows:
        cell = cells[row]
        number = _number(cell, decimal_comma)
        if number is None:
            what = "the cell is empty"
            if text := cell.strip():
                what = f"{text!r} is not a finite number"
                if "," in text or decimal_comma:
                    what = f"{text!r}, {not_a_number(text, decimal_comma)}"
            way = ", or leave out all points without a value (--skip-missing)" if _is_missing(cell) else ""
            raise InputError(f"{locations[row]}, column {name!r}: {what}: correct it, or leave the point out{way}")
        found.append(number)
    return np.array(found, dtype=np.float64)
