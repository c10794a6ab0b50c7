"""Features from a file: what a user's own model says of each string, such as the embedding of a protein.

A file is one of

- ``.npy``: a matrix with a row for each candidate of a pool, in its order; mapped into memory, not read as a whole;
- ``.npz``: a matrix and an array of as many strings;
- ``.parquet``, ``.csv``, ``.tsv`` (also ``.csv.gz``): a column of strings, and columns of numbers.

Arrays of Python objects are never read: to read them would run whatever code the file holds.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seqopt.encoding.features import FeatureMatrix, FeatureRows
from seqopt.errors import InputError

Numbers = npt.NDArray[np.float64]

BLOCK_ROWS = 1 << 14
"""Rows of a file that are looked at at a time."""

HELD_BYTES = 1 << 28
"""Bytes of features up to which those of a pool are held as they are compared; of more, a block at a time is read."""

WAY_OUT = "expected .npy, .npz, .parquet, .csv or .tsv"


@dataclass(frozen=True)
class FeatureFile:
    """What a file of features holds, checked.

    Attributes:
        path: The file.
        sha256: Its checksum.
        values: The features, n x d; of an ``.npy`` file mapped into memory.
        strings: The string of each row; `None` of an ``.npy`` file, whose rows are those of a pool.
        names: What the columns are called; empty where they have no names.
        kept: The columns that are used: those that are not the same in all rows.
        centre: Mean of each column that is used.
        spread: Standard deviation of each.
        non_negative: Whether no number is below 0, as counts are.
    """

    path: Path
    sha256: str
    values: npt.NDArray[Any]
    strings: tuple[str, ...] | None
    names: tuple[str, ...]
    kept: npt.NDArray[np.intp]
    centre: Numbers
    spread: Numbers
    non_negative: bool

    def __len__(self) -> int:
        return len(self.values)

    @property
    def size(self) -> int:
        """Number of columns that are used."""
        return len(self.kept)

    def rows(self, places: npt.NDArray[np.intp], standardized: bool = True) -> Numbers:
        """Features of some rows, ``n x size``, float64; standardised: of mean 0 and variance 1 over the file."""
        found: Numbers = np.asarray(self.values[places], dtype=np.float64)[:, self.kept]
        return (found - self.centre) / self.spread if standardized else found

    def remark(self) -> str:
        """What is worth knowing of the file; empty where nothing is."""
        left_out = self.values.shape[1] - self.size
        if not left_out:
            return ""
        constant = sorted(set(range(self.values.shape[1])) - set(self.kept.tolist()))
        named = ", ".join(self.names[one] if self.names else str(one + 1) for one in constant[:3])
        more = ", ..." if left_out > 3 else ""
        every = self.values.shape[1]
        return f"{left_out} of {every} columns of {self.path.name} are constant and left out ({named}{more})"


def read_features(path: str | Path, *, column: str | None = None) -> FeatureFile:
    """Read a file of features, and check every number of it.

    Args:
        path: The file.
        column: The column of strings of a table, or the array of strings of an ``.npz`` file. Default: the only one
            that holds text.

    Raises:
        InputError: If there is no such file, or it is damaged or of another kind; for arrays of Python objects, and
            matrices of another shape; for a number that is not finite, with its row and column; if all columns are
            constant; and where strings stand in it twice with other features.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "embeddings.npz"
        >>> np.savez(path, strings=["ACD", "ACE"], embedding=[[0.0, 1.0, 2.0], [4.0, 1.0, 2.5]])
        >>> features = read_features(path)
        >>> features.size, features.remark()
        (2, '1 of 3 columns of embeddings.npz are constant and left out (2)')
    """
    file = Path(path)
    if not file.is_file():
        raise InputError(f"there is no file {file} of features")
    ending = "".join(file.suffixes[-2:]).lower() if file.suffix.lower() == ".gz" else file.suffix.lower()
    strings: tuple[str, ...] | None = None
    names: tuple[str, ...] = ()
    if ending == ".npy":
        if column is not None:
            raise InputError(f"{file.name} has no column {column!r}: an .npy file holds numbers only")
        values = _opened(file, mapped=True)
    elif ending == ".npz":
        values, strings = _archive(file, column)
    elif ending in (".parquet", ".pq", ".csv", ".tsv", ".csv.gz", ".tsv.gz"):
        values, strings, names = _table(file, ending, column)
    else:
        raise InputError(f"cannot tell from its name how to read {file.name} as features: {WAY_OUT}")
    _check_shape(file, values)
    centre, spread, low = _looked_through(file, values, strings, names)
    kept = np.flatnonzero(spread > 0.0)
    if not len(kept):
        raise InputError(f"all {values.shape[1]} columns of {file} are constant: they tell no strings apart")
    found = FeatureFile(
        file.absolute(), checksum(file), values, strings, names, kept, centre[kept], spread[kept], low >= 0.0
    )
    if strings is not None:
        _check_repeats(found)
    return found


def checksum(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _opened(file: Path, *, mapped: bool) -> npt.NDArray[Any]:
    try:
        found = np.load(file, mmap_mode="r" if mapped else None, allow_pickle=False)
    except ValueError as error:
        raise InputError(_unreadable(file, error)) from None
    except (OSError, EOFError) as error:
        raise InputError(f"{file} cannot be read as an array: {error}") from None
    if not isinstance(found, np.ndarray):
        raise InputError(f"{file} is no .npy file: give it the ending of what it is")
    return found


def _unreadable(file: Path, error: ValueError, name: str = "") -> str:
    what = f"the array {name!r} of {file}" if name else str(file)
    if "pickle" in str(error) or "objects" in str(error).lower():
        return (
            f"{what} holds Python objects, which are not read because that would run code of the file: save numbers, "
            "and strings as an array of text (np.array(strings, dtype=str))"
        )
    return f"{what} cannot be read as an array: {error}"


def _archive(file: Path, column: str | None) -> tuple[npt.NDArray[Any], tuple[str, ...]]:
    texts: dict[str, npt.NDArray[Any]] = {}
    numbers: dict[str, npt.NDArray[Any]] = {}
    try:
        with np.load(file, allow_pickle=False) as archive:
            for name in archive.files:
                try:
                    array = archive[name]
                except ValueError as error:
                    raise InputError(_unreadable(file, error, name)) from None
                (texts if array.dtype.kind in "US" else numbers)[name] = array
    except (OSError, EOFError, zipfile.BadZipFile, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{file} cannot be read as an archive of arrays: {error}") from None
    matrices = {name: array for name, array in numbers.items() if array.ndim == 2}
    if column is not None and column not in texts:
        raise InputError(f"{file.name} has no array of strings {column!r}; it has {', '.join(texts) or 'none'}")
    if column is None and len(texts) != 1:
        raise InputError(
            f"{file.name} has {len(texts)} arrays of strings ({', '.join(texts) or 'none'}): expected one, which says "
            "whose features each row holds; of several, name one"
        )
    if len(matrices) != 1:
        raise InputError(
            f"{file.name} has {len(matrices)} matrices of numbers ({', '.join(matrices) or 'none'}): expected one"
        )
    chosen = texts[column] if column is not None else next(iter(texts.values()))
    strings = [one.decode("utf-8", "replace") if isinstance(one, bytes) else str(one) for one in chosen.reshape(-1)]
    (values,) = matrices.values()
    if len(strings) != len(values):
        raise InputError(f"{file.name} has {len(strings)} strings and a matrix of {len(values)} rows: expected as many")
    return values, tuple(strings)


def _table(file: Path, ending: str, column: str | None) -> tuple[npt.NDArray[Any], tuple[str, ...], tuple[str, ...]]:
    import pandas as pd

    try:
        if ending in (".parquet", ".pq"):
            frame = pd.read_parquet(file)
        else:
            frame = pd.read_csv(file, sep="\t" if ending.startswith(".tsv") else ",", keep_default_na=False)
    except Exception as error:  # pandas and pyarrow have many
        raise InputError(f"{file} cannot be read as a table: {error}") from error
    frame.columns = [str(name) for name in frame.columns]
    texts = [name for name in frame.columns if not pd.api.types.is_numeric_dtype(frame[name])]
    if column is not None and column not in frame.columns:
        raise InputError(f"{file.name} has no column {column!r}; it has {', '.join(frame.columns[:10])}")
    if column is None:
        # A cell that is no number makes text of a column of numbers, which is told below.
        full = [name for name in texts if not _numbers(frame[name])]
        if len(full) != 1:
            raise InputError(
                f"{file.name} has {len(full)} columns of text ({', '.join(full[:5]) or 'none'}): expected one, the "
                "strings; of several, name one, and leave the others out of the file"
            )
        (column,) = full
    numeric = [name for name in frame.columns if name != column]
    if not numeric:
        raise InputError(f"{file.name} has no columns of numbers besides {column!r}")
    values = np.empty((len(frame), len(numeric)))
    for place, name in enumerate(numeric):
        cells = pd.to_numeric(frame[name], errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
        if name in texts and np.isnan(cells).any():
            row = int(np.flatnonzero(np.isnan(cells))[0])
            raise InputError(
                f"{file.name}: the column {name!r} holds {str(frame[name].iloc[row])!r} in row {row + 1}, of "
                f"{str(frame[column].iloc[row])!r}: expected a number. Leave the row or the column out"
            )
        values[:, place] = cells
    return values, tuple(str(string).strip() for string in frame[column]), tuple(numeric)


def _numbers(cells: Any) -> bool:
    """Whether more than half of the cells of a column are numbers."""
    import pandas as pd

    return bool(pd.to_numeric(cells, errors="coerce").notna().mean() > 0.5)


def _check_shape(file: Path, values: npt.NDArray[Any]) -> None:
    if values.dtype.kind not in "fiub":
        what = "Python objects" if values.dtype.kind == "O" else f"{values.dtype}"
        raise InputError(f"{file} holds {what}: expected real numbers")
    if values.ndim != 2 or not values.shape[0] or not values.shape[1]:
        raise InputError(
            f"{file} holds an array of shape {values.shape}: expected a matrix with a row for each string and a "
            "column for each feature" + (" (average over residues first)" if values.ndim == 3 else "")
        )


def _looked_through(
    file: Path, values: npt.NDArray[Any], strings: tuple[str, ...] | None, names: tuple[str, ...]
) -> tuple[Numbers, Numbers, float]:
    """Mean and standard deviation of each column, 0 for one that is constant, and the lowest number."""
    count = len(values)
    first = np.asarray(values[0], dtype=np.float64)
    sums, squares, low = np.zeros(len(first)), np.zeros(len(first)), np.inf
    constant = np.ones(len(first), dtype=np.bool_)
    for start in range(0, count, BLOCK_ROWS):
        block = np.asarray(values[start : start + BLOCK_ROWS], dtype=np.float64)
        if not np.isfinite(block).all():
            row, column = (int(one) for one in np.argwhere(~np.isfinite(block))[0])
            whose = f" ({strings[start + row]!r})" if strings is not None else ""
            name = f" ({names[column]!r})" if names else ""
            raise InputError(
                f"{file} has {block[row, column]} in row {start + row + 1}{whose}, column {column + 1}{name}: expected "
                "finite numbers. Leave the string out, or compute its features again"
            )
        # About the first row, so that large means do not drown small spreads.
        sums += (block - first).sum(0)
        squares += ((block - first) ** 2).sum(0)
        constant &= (block == first).all(0)
        low = min(low, float(block.min()))
    mean = sums / count
    spread = np.sqrt(np.maximum(squares / count - mean**2, 0.0))
    spread[constant] = 0.0
    return first + mean, spread, low


def _check_repeats(found: FeatureFile) -> None:
    assert found.strings is not None
    seen: dict[str, int] = {}
    for row, string in enumerate(found.strings):
        first = seen.setdefault(string, row)
        if first != row and not np.array_equal(found.values[first], found.values[row]):
            column = int(np.flatnonzero(np.asarray(found.values[first]) != np.asarray(found.values[row]))[0])
            raise InputError(
                f"{found.path} has {string!r} in the rows {first + 1} and {row + 1} with other features (column "
                f"{column + 1}: {found.values[first, column]:g} and {found.values[row, column]:g}): keep one of them"
            )


class FileFeatures:
    """A `seqopt.encoding.Featurizer` that looks features of strings up.

    Args:
        file: Has them.
        places: The row of each string, by its key.
        standardized: Whether each column has mean 0 and variance 1 over the file.

    Attributes:
        name: The file with the beginning of its checksum.
        size: Number of columns.
    """

    def __init__(self, file: FeatureFile, places: dict[str, int], *, standardized: bool = True) -> None:
        self.file = file
        self.places = places
        self.standardized = standardized
        self.name = f"features of {file.path.name} ({file.sha256[:12]})"
        self.size = file.size

    def __call__(self, strings: Sequence[str]) -> FeatureMatrix:
        """Features of strings, ``n x size``.

        Raises:
            InputError: For strings that the file does not have: how many, and the first.
        """
        return self.file.rows(self.indices(strings), self.standardized)

    def indices(self, strings: Sequence[str]) -> npt.NDArray[np.intp]:
        """The row of each string.

        Raises:
            InputError: As for a call.
        """
        found = np.fromiter((self.places.get(one, -1) for one in strings), dtype=np.intp, count=len(strings))
        missing = np.flatnonzero(found < 0)
        if len(missing):
            raise InputError(self.lacking([strings[int(place)] for place in missing[:1]], len(missing)))
        return found

    def lacking(self, first: Sequence[str], count: int) -> str:
        """What a message says of strings without features."""
        which = f"{first[0]!r}" if count == 1 else f"{count:,} strings, the first of them {first[0]!r}"
        return f"{self.file.path.name} has no features of {which}: compute them, or leave what has none out"

    def unsupported(self, strings: Sequence[str]) -> dict[int, str]:
        """Why strings have no features, by their indices; empty where all have."""
        return {place: self.lacking([string], 1) for place, string in enumerate(strings) if string not in self.places}

    def encoded(self, strings: Sequence[str]) -> FeatureRows:
        """Features of strings: read at once where they are few, else whenever they are looked at."""
        indices = self.indices(strings)
        if 8 * len(indices) * self.size <= HELD_BYTES:
            return FeatureRows(self.file.rows(indices, self.standardized))
        return MappedRows(lambda places: self.file.rows(places, self.standardized), indices, self.size)


class MappedRows(FeatureRows):
    """Features of a large pool, which stay in their file: blocks of them are read when they are compared.

    Args:
        read: Features of some rows of the file.
        indices: The n rows.
        size: Number of columns.
    """

    streamed = True
    """What can be is computed in blocks."""

    def __init__(
        self, read: Callable[[npt.NDArray[np.intp]], Numbers], indices: npt.NDArray[np.intp], size: int
    ) -> None:
        self.__dict__.update(read=read, indices=indices, size=size)

    @property
    def values(self) -> FeatureMatrix:
        """``n x d``: all of them are read."""
        return self.__dict__["read"](self.__dict__["indices"])

    def __len__(self) -> int:
        return len(self.__dict__["indices"])

    @property
    def width(self) -> int:
        """See `FeatureRows`."""
        return int(self.__dict__["size"])

    def take(self, indices: npt.ArrayLike | slice) -> FeatureRows:
        """The rows at ``indices``: read if they are few."""
        chosen = self.__dict__["indices"][indices]
        if 8 * len(chosen) * self.width <= HELD_BYTES:
            return FeatureRows(self.__dict__["read"](chosen))
        return MappedRows(self.__dict__["read"], chosen, self.width)
