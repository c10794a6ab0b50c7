"""Pools of very many strings on disk: prepared once, resumed where that was cut off, and mapped into memory.

The rows of the files are read in blocks, and each becomes a *shard* (`seqopt.datasets.pool_shards`): keys, hashes, line
numbers, fingerprints, and what cannot be used and why. Shards are made by several processes, and each is there as a
whole or not at all. When all are there, an *index* says which rows count (of equal keys, the first) and finds a key by
its hash. A preparation that is cut off goes on with the shards that are missing; a shard or an index that is damaged is
made again.

A store has the name of what it holds: a hash of the contents of the files, in their order, and of the settings. So it
is found again wherever the files lie, and a file that has changed makes another store. Stores are in the cache folder
(`seqopt.utils.cache.cache_dir`), and can be deleted at any time.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seqopt.datasets.pool_columns import short
from seqopt.datasets.pool_identifiers import NO_COLUMN, identifying
from seqopt.datasets.pool_index import write_index
from seqopt.datasets.pool_makers import ShardMakers
from seqopt.datasets.pool_rows import PoolRows, RowFilter, refuse_missing_header, refuse_names
from seqopt.datasets.pools import Rejected, list_rejected
from seqopt.datasets.row_blocks import RowFile, blocks_of, files_of, left_out, look_at
from seqopt.errors import InputError
from seqopt.strings.identity import KINDS, RULES, recognize_kind
from seqopt.strings.notations import without_inchi
from seqopt.strings.packed import key_hashes, unpacked_string, unpacked_strings
from seqopt.utils.array_files import TEMPORARY, Array, ArrayFile, DamagedFileError, read_arrays
from seqopt.utils.cache import cache_dir

logger = logging.getLogger(__name__)

ROWS = 1 << 16
"""Rows of a shard."""

VERSION = 2
"""Number of the form of stores: others are not used."""

FINGERPRINT = (2, 2048, True)
"""Radius, size and chirality of the fingerprints that are kept: counts, which tell bits as well."""

FOLDER = "pools"
"""Where stores are in the cache folder."""

EXAMPLES = 5
"""Rejected rows that messages show."""

BLOCK = 1 << 20
"""Identifiers that are looked at a time."""

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Preparation:
    """How far a preparation is.

    Attributes:
        rows: Rows done, those included that were done before.
        made: Rows done by this process and its workers.
        share: Of the bytes of all files, how many were read; a little ahead of ``rows``.
        seconds: Since it began.
    """

    rows: int
    made: int
    share: float
    seconds: float

    def describe(self) -> str:
        """In words, for a line that is shown while it lasts.

        Example:
            >>> Preparation(3_000_000, 1_000_000, 0.3, 200.0).describe()
            'preparing candidates: 3,000,000 rows, 30 % (5,000 a second)'
        """
        pace = f" ({self.made / self.seconds:,.0f} a second)" if self.made and self.seconds > 0 else ""
        return f"preparing candidates: {self.rows:,} rows, {self.share:.0%}".replace("%", " %") + pace


class PoolStore:
    """A prepared pool, mapped into memory: made by `prepare_pool`.

    Args:
        folder: The store.
        facts: What its index says.
        shards: Its shards, in their order.
        index: The rows that count, the order of their hashes, and the sorted hashes.

    Attributes:
        kind: One of `seqopt.strings.identity.KINDS`.
        files: Names of the files.
        column: Of the strings; `None` for lists.
        rejected: How many rows cannot be used.
        duplicates: How many rows are the same thing as an earlier one.
        id_column: Of the identifiers that the owner of the files uses; `None` where there is none.
        price_column: Of prices, where one was named.
        sieve: What said which rows are candidates, if not all are.
        filtered: What it did, in lines of words.
    """

    def __init__(self, folder: Path, facts: dict[str, Any], shards: Sequence[ArrayFile], index: ArrayFile) -> None:
        self.folder = folder
        self.facts = facts
        self.kind: str = facts["kind"]
        self.files: list[str] = facts["files"]
        self.column: str | None = facts["column"]
        self.standardized: bool = facts["standardize"]
        self.rejected: int = facts["rejected"]
        self.duplicates: int = facts["duplicates"]
        self.id_column: str | None = facts["id_column"]
        self.price_column: str | None = facts["price_column"]
        self.sieve: RowFilter | None = facts["sieve"]
        steps = [(name, reached, passed) for name, reached, passed in facts["steps"]]
        self.filtered: list[str] = [] if self.sieve is None else self.sieve.described(steps)
        self._shards = list(shards)
        self._first = np.array([0, *np.cumsum([shard.facts["rows"] for shard in shards])], dtype=np.int64)
        self._starts = self._first.tolist()
        self.rows: Array = index.arrays["rows"]
        self._sorted: Array = index.arrays["hashes"]
        self._order: Array = index.arrays["order"]
        self._called: Array | None = index.arrays.get("called")
        self._called_order: Array | None = index.arrays.get("called_order")

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"PoolStore({len(self):,} x {self.kind} in {str(self.folder)!r})"

    @property
    def bytes(self) -> int:
        """Bytes on the disk."""
        return sum(file.stat().st_size for file in self.folder.iterdir() if file.is_file())

    @property
    def fingerprint(self) -> tuple[int, int, bool] | None:
        """Radius, size and chirality of the fingerprints; `None` where there are none."""
        found = self.facts["fingerprint"]
        return None if found is None else (int(found[0]), int(found[1]), bool(found[2]))

    def origin(self) -> dict[str, Any]:
        """What makes this store again, by the names of arguments of `prepare_pool`; and ``files`` with ``sha256``."""
        here = self.folder.parent.resolve()
        return {
            "files": [os.path.abspath(path) for path in self.files],
            "sha256": list(self.facts["sha256"]),
            "column": self.column,
            "attachment_points": bool(self.facts["attachment_points"]),
            "fingerprints": self.fingerprint is not None,
            "folder": None if here == (cache_dir() / FOLDER).resolve() else str(here),
            "rows": int(self.facts["rows"]),
            "id_column": self.id_column,
            "price_column": self.price_column,
            **({} if self.sieve is None else {"sieve": self.sieve}),
        }

    def cells(self, place: int) -> dict[str, str]:
        """What stands beside the candidate at ``place`` in the columns that are kept, by their names."""
        shard, row = self._at(place)
        return {
            name: unpacked_string(shard.arrays[f"cells_{number}"], shard.arrays[f"cells_{number}_ends"], row)
            for number, name in enumerate(self.facts["kept"])
        }

    def identifier(self, place: int) -> str | None:
        """What the owner of the files calls the candidate at ``place``; `None` where they do not say."""
        return None if self.id_column is None else self.cells(place)[self.id_column] or None

    def called(self, identifier: str) -> int | None:
        """The place of the candidate that the owner of the files calls so, or `None`.

        Raises:
            InputError: If several different candidates are called so.
        """
        if self._called is None or self._called_order is None or not identifier:
            return None
        wanted = key_hashes([identifier])[0]
        start, end = (int(np.searchsorted(self._called, wanted, side=side)) for side in ("left", "right"))
        places = sorted(int(place) for place in self._called_order[start:end])
        found = [place for place in places if self.identifier(place) == identifier]
        if len(found) > 1:
            strings = " and ".join(short(self.string(place)) for place in found[:2])
            raise InputError(
                f"{identifier!r} in the column {self.id_column!r} is what {len(found):,} different candidates are "
                f"called, {strings} among them: give the string itself"
            )
        return found[0] if found else None

    @property
    def shard_rows(self) -> list[int]:
        """Rows of each shard, those that do not count included."""
        return [int(shard.facts["rows"]) for shard in self._shards]

    def shard_path(self, number: int) -> Path:
        """The file of a shard."""
        return _shard_path(self.folder, number)

    def key(self, place: int) -> str:
        """The key of the candidate at ``place``."""
        shard, row = self._at(place)
        return unpacked_string(shard.arrays["keys"], shard.arrays["keys_ends"], row)

    def string(self, place: int) -> str:
        """The candidate at ``place``, as it is written in its file."""
        shard, row = self._at(place)
        written = shard.arrays["written_rows"]
        found = int(np.searchsorted(written, row))
        if found < len(written) and written[found] == row:
            return unpacked_string(shard.arrays["written"], shard.arrays["written_ends"], found)
        return unpacked_string(shard.arrays["keys"], shard.arrays["keys_ends"], row)

    def line(self, place: int) -> tuple[str, int]:
        """In which file the candidate at ``place`` stands, and on which line."""
        shard, row = self._at(place)
        return self.files[shard.facts["file"]], int(shard.arrays["lines"][row])

    def hashes(self, places: Rows) -> npt.NDArray[np.uint64]:
        """Hashes of the keys at some places (`seqopt.strings.packed.key_hashes`)."""
        found = np.empty(len(places), dtype=np.uint64)
        for shard, chosen, rows in self._gathered(places):
            found[chosen] = shard.arrays["hashes"][rows]
        return found

    def keys(self, places: Rows) -> list[str]:
        """The keys at some places."""
        found = [""] * len(places)
        for shard, chosen, rows in self._gathered(places):
            data, ends = shard.arrays["keys"], shard.arrays["keys_ends"]
            starts, stops = ends[rows].tolist(), ends[rows + 1].tolist()
            if len(rows) > 1 and rows[-1] - rows[0] < 4 * len(rows):
                low, high = int(rows.min()), int(rows.max())
                first = int(ends[low])
                raw = data[first : int(ends[high + 1])].tobytes()
                for place, start, stop in zip(chosen.tolist(), starts, stops, strict=True):
                    found[place] = raw[start - first : stop - first].decode("utf-8", "surrogatepass")
            else:
                for place, start, stop in zip(chosen.tolist(), starts, stops, strict=True):
                    found[place] = data[start:stop].tobytes().decode("utf-8", "surrogatepass")
        return found

    def fingerprints(self, places: Rows, *, counts: bool) -> Any:
        """Fingerprints at some places, ``n x size``, a float64 `scipy.sparse.csr_array`.

        Args:
            places: Which.
            counts: Whether to count environments.
        """
        from scipy import sparse

        assert self.fingerprint is not None
        sizes = np.zeros(len(places) + 1, dtype=np.int64)
        parts = list(self._gathered(places))
        for shard, chosen, rows in parts:
            ends = shard.arrays["fingerprint_ends"]
            sizes[chosen + 1] = ends[rows + 1].astype(np.int64) - ends[rows]
        # SciPy's sparse products are fastest with 32 bits.
        ends = np.cumsum(sizes).astype(np.int32 if sizes.sum() < 1 << 31 else np.int64)
        columns = np.empty(ends[-1], dtype=ends.dtype)
        values = np.ones(ends[-1])
        for shard, chosen, rows in parts:
            first = shard.arrays["fingerprint_ends"][rows].astype(np.int64)
            lengths = sizes[chosen + 1]
            total = int(lengths.sum())
            if len(rows) and rows[-1] - rows[0] == len(rows) - 1 and (np.diff(rows) == 1).all():
                source: Any = slice(int(first[0]), int(first[0]) + total)
            else:
                source = _ranges(first, lengths)
            adjacent = len(chosen) and chosen[-1] - chosen[0] == len(chosen) - 1
            target: Any = (
                slice(int(ends[chosen[0]]), int(ends[chosen[-1] + 1]))
                if adjacent
                else _ranges(ends[chosen].astype(np.int64), lengths)
            )
            columns[target] = shard.arrays["fingerprint_columns"][source]
            if counts:
                values[target] = shard.arrays["fingerprint_counts"][source]
        return sparse.csr_array((values, columns, ends), shape=(len(places), self.fingerprint[1]))

    def find(self, key: str, hashed: int) -> int | None:
        """The place of a key, or `None`.

        Args:
            key: The key.
            hashed: Its hash.
        """
        wanted = np.uint64(hashed)
        start = int(np.searchsorted(self._sorted, wanted, side="left"))
        while start < len(self._sorted) and self._sorted[start] == wanted:
            place = int(self._order[start])
            if self.key(place) == key:
                return place
            start += 1
        return None

    def in_order_of_hashes(self) -> Array:
        """Places of all candidates, sorted by the hashes of their keys."""
        return self._order

    @property
    def sorted_hashes(self) -> Array:
        """Hashes of all keys, sorted."""
        return self._sorted

    def rejected_rows(self) -> Iterator[tuple[str, Rejected]]:
        """What cannot be used: the file, and the line, what stands there, and why."""
        for shard in self._shards:
            arrays = shard.arrays
            name = self.files[shard.facts["file"]]
            values = unpacked_strings(arrays["rejected"], arrays["rejected_ends"])
            reasons = unpacked_strings(arrays["reasons"], arrays["reasons_ends"])
            for line, value, why in zip(arrays["rejected_lines"].tolist(), values, reasons, strict=True):
                yield name, Rejected(line, value, why)

    def summary(self) -> str:
        """What was read and what was left out, in a few lines for the user."""
        plural = {"molecule": "molecules", "protein": "proteins", "dna": "DNA sequences", "rna": "RNA sequences"}
        what = plural.get(self.kind, "strings")
        where = self.files[0] if len(self.files) == 1 else f"{len(self.files):,} files"
        named = "" if self.column is None else f", column {self.column!r}"
        lines = [f"{len(self):,} different {what} from {where}{named}"]
        lines += [*self.facts["remarks"], *self._said_of_identifiers, *self.filtered]
        if self.duplicates:
            which = "" if self.id_column is None else "; the first identifier of each is kept"
            lines.append(f"{self.duplicates:,} duplicates of earlier rows left out{which}")
        if self.rejected:
            lines.append(f"{self.rejected:,} rejected: {self._shown_rejected(2)}")
        return "\n".join(lines)

    @cached_property
    def _said_of_identifiers(self) -> list[str]:
        """Candidates without an identifier, and identifiers of several candidates: how many, and the first of them."""
        if self._called is None or self._called_order is None:
            return []
        nothing = key_hashes([""])[0]
        start, end = (int(np.searchsorted(self._called, nothing, side=side)) for side in ("left", "right"))
        found = []
        without, first = self._unnamed(start, end)
        if without:
            several = "candidates have" if without > 1 else "candidate has"
            found.append(f"{without:,} {several} no identifier: {self._shown(first)}")
        shared, places = 0, [len(self)]
        for begin in range(0, len(self._called), BLOCK):
            # With one more on each side, equal ones are seen across the borders of blocks.
            low = max(0, begin - 1)
            hashes = np.asarray(self._called[low : begin + BLOCK + 1])
            same = hashes[1:] == hashes[:-1]
            begins = np.flatnonzero(same & ~np.concatenate([[low < begin], same[:-1]])) + low
            begins = begins[((begins < start) | (begins >= end)) & (begins >= begin) & (begins < begin + BLOCK)]
            shared += len(begins)
            if len(begins):
                # Of equal hashes the rows are in their order.
                at = int(begins[np.argmin(self._called_order[begins])])
                places = min(places, [int(place) for place in self._called_order[at : at + 2]])
        if shared:
            several = "identifiers are those" if shared > 1 else "identifier is that"
            which = f"{self.identifier(places[0])!r} of {self._shown(places[0])} and {self._shown(places[1])}"
            found.append(f"{shared:,} {several} of several candidates, which are recorded by their strings: {which}")
        return found

    def _unnamed(self, start: int, end: int) -> tuple[int, int]:
        """Of the candidates without an identifier, those in files that have some: how many, and the first of them."""
        assert self._called_order is not None
        unnamed = set(self.facts["unnamed"])
        lacking = [number for number, shard in enumerate(self._shards) if shard.facts["file"] in unnamed]
        count, first = 0, len(self)
        for begin in range(start, end, BLOCK):
            places = np.asarray(self._called_order[begin : min(end, begin + BLOCK)], dtype=np.int64)
            rows = np.asarray(self.rows[places], dtype=np.int64)
            shards = np.searchsorted(self._first, rows, side="right") - 1
            places = places[~np.isin(shards, lacking)]
            count += len(places)
            first = min(first, int(places.min(initial=first)))
        return count, first

    def _shown(self, place: int) -> str:
        """A candidate, with its line and, where there are several, its file."""
        name, line = self.line(place)
        where = f"line {line}" if len(self.files) == 1 else f"{name}, line {line}"
        return f"{short(self.string(place))} ({where})"

    def _shown_rejected(self, limit: int) -> str:
        alone = len(self.files) == 1
        rows = self.rejected_rows()
        return list_rejected(
            ((f"line {row.line}" if alone else f"{name}, line {row.line},", row) for name, row in rows), limit
        )

    def _at(self, place: int) -> tuple[ArrayFile, int]:
        row = int(self.rows[place])
        shard = bisect_right(self._starts, row) - 1
        return self._shards[shard], row - self._starts[shard]

    def _gathered(self, places: Rows) -> Iterator[tuple[ArrayFile, Rows, Rows]]:
        """Shards that hold some places: which of the places, and in which rows of the shard."""
        rows = np.asarray(self.rows[places], dtype=np.int64)
        shards = np.searchsorted(self._first, rows, side="right") - 1
        if not len(rows):
            return
        if (shards == shards[0]).all():
            yield self._shards[int(shards[0])], np.arange(len(rows)), rows - self._first[shards[0]]
            return
        order = np.argsort(shards, kind="stable")
        cuts = np.flatnonzero(np.diff(shards[order])) + 1
        for chosen in np.split(order, cuts):
            shard = int(shards[chosen[0]])
            yield self._shards[shard], chosen, rows[chosen] - self._first[shard]

    @cached_property
    def longest(self) -> int:
        """Bytes of the longest key."""
        return max(
            (int(np.diff(shard.arrays["keys_ends"].astype(np.int64)).max(initial=0)) for shard in self._shards),
            default=0,
        )


def _ranges(first: Rows, lengths: Rows) -> Rows:
    """Indices of several ranges, one after another."""
    ends = np.cumsum(lengths)
    offsets = np.repeat(first - (ends - lengths), lengths)
    return np.asarray(offsets + np.arange(ends[-1] if len(ends) else 0), dtype=np.int64)


def prepare_pool(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    column: str | None = None,
    kind: str | None = None,
    standardize: bool = False,
    attachment_points: bool = False,
    strict: bool = False,
    fingerprints: bool = True,
    id_column: str | None = None,
    price_column: str | None = None,
    sieve: RowFilter | None = None,
    folder: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    executor: Executor | None = None,
    rows: int = ROWS,
    progress: Callable[[Preparation], object] | None = None,
) -> PoolStore:
    """Prepare a pool of very many strings on disk, or open it where that has been done.

    What is cut off (Ctrl-C, a loss of power) goes on where it was when this is called again. Rows that cannot be used
    are set aside with their file, line and the reason (`PoolStore.rejected_rows`), and of equal candidates the first
    counts, as by `seqopt.datasets.read_pool`; but of the other columns only identifiers and prices are read.

    Preparing a molecule takes 0.5 to 0.8 ms of a core, 220 bytes on the disk (with identifiers, 30 and those), and
    memory that does not grow with their number.

    Args:
        source: A file (.csv, .tsv, .smi, .txt, these also with .gz, or .parquet), a folder of such files, a pattern
            such as ``"library/*.csv.gz"``, or a list of these.
        column: The column of strings. By default recognised in the first file; the others need one of the same name.
        kind: As in `seqopt.datasets.read_pool`; by default recognised from the first 1,000 rows of each file.
        standardize: Identify molecules by their charge parent.
        attachment_points: Keep molecules with attachment points.
        strict: Raise an error when any row cannot be used.
        fingerprints: Whether to keep Morgan fingerprints of molecules: counts of radius 2 in 2,048 columns, which serve
            the surrogates ``minmax`` and ``tanimoto``, and classifiers on `seqopt.encoding.MorganFingerprint`.
        id_column: Column of the identifiers that the owner of the files uses. By default a usual name (``id``,
            ``catalog_number``, ``name``, ...) by which most candidates of the first 1,000 rows of each file can be told
            apart; of a .smi, what follows the strings. A file without that column is asked for another usual one, and
            may have none; so may rows. A candidate in several rows has the identifier of the first; where two
            candidates have the same, neither is found by it. What is missing or shared is said in
            `PoolStore.summary`. With ``""`` no column is taken.
        price_column: Column of prices, if there is one.
        sieve: Which rows become candidates: a `seqopt.filters.Sieve`; by default all that can be used.
        folder: Where to keep the store; by default in the cache folder.
        workers: Processes; by default one for each core. With ``executor``: how many shards it makes at a time.
        executor: Makes the shards in the place of such processes, for instance that of a Dask cluster
            (`seqopt.distributed.prepare_by`). Rows are read and shards are kept by this machine.
        rows: Rows of a shard; stores of different numbers are different ones.
        progress: Told from time to time.

    Raises:
        InputError: For files that cannot be read in blocks, are cut off or damaged, a column that is missing or cannot
            be told (of prices: that one of the files lacks; of identifiers: that all of them lack), nothing usable in
            them, with ``strict`` any row that cannot be used, or a folder that cannot be written.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder, "library.csv")
        ...     _ = file.write_text("smiles,price\\nOCC,3\\nC(C)O,4\\nC1CC,5\\nCCN,6\\n")
        ...     store = prepare_pool(file, folder=Path(folder, "store"), workers=1)
        ...     print(len(store), store.string(0), store.key(0), store.line(1)[1])
        ...     print(store.summary().splitlines()[-1])
        2 OCC CCO 5
        1 rejected: line 4 'C1CC' (not a SMILES (syntax))
    """
    paths = files_of(source)
    if kind == "auto":
        kind = None
    if kind is not None and kind not in KINDS:
        raise InputError(f"unknown kind {kind!r}: choose auto, {', '.join(KINDS)}")
    files = look_at(paths, column, kind)
    kind = _kind(files, kind, column)
    if standardize and kind != "molecule":
        raise InputError(f"standardize is for molecules; {paths[0]} holds strings of kind {kind!r}")
    given = id_column
    identifiers = identifying(files, given)
    id_column = identifiers.column
    if price_column is not None:
        for file in files:
            _column(file, price_column, "column of prices")
    kept = list(dict.fromkeys(name for name in (id_column, price_column) if name is not None))
    if sieve is not None:
        sieve = sieve.fitted(kind, _heads(files), standardize=standardize)
    read = list(dict.fromkeys([*kept, *([] if sieve is None else sieve.columns)]))
    files = [replace(file, kept=tuple(read), own=identifiers.own(number)) for number, file in enumerate(files)]
    settings = {
        "version": VERSION,
        "rows": rows,
        "kind": kind,
        "standardize": standardize,
        "attachment_points": attachment_points,
        "fingerprint": list(FINGERPRINT) if fingerprints and kind == "molecule" else None,
        "columns": [file.column for file in files],
        "read": read,
        "kept": kept,
        "id_column": id_column,
        "price_column": price_column,
        "rules": RULES,
        "sieve": None if sieve is None else sieve.config(),
        "rdkit": _rdkit_version() if kind == "molecule" else None,
    }
    if set(identifiers.columns) != {id_column}:
        settings["id_columns"] = list(identifiers.columns)
    sums = file_checksums(paths)
    name = hashlib.sha256(json.dumps([settings, sums], sort_keys=True).encode()).hexdigest()[:32]
    place = (cache_dir() / FOLDER if folder is None else Path(folder)) / name
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot keep the prepared pool in {place}: {error.strerror or error}") from error
    facts = {
        **settings,
        "files": [str(path) for path in paths],
        "column": next((file.column for file in files if file.column is not None), None),
        "remarks": [*left_out(source), *([] if given == NO_COLUMN else identifiers.remarks(files))],
        "unnamed": identifiers.lacking,
        "sha256": sums,
    }
    try:
        store = _opened(place, facts, sieve) or _made(
            place, files, facts, settings | {"sieve": sieve}, workers, executor, rows, progress
        )
    except OSError as error:
        raise InputError(
            f"cannot keep the prepared pool in {place}: {error.strerror or error}. It goes on where it was when there "
            "is room; $SEQOPT_CACHE names another folder"
        ) from error
    where = store.files[0] if len(store.files) == 1 else f"{len(store.files)} files"
    if not len(store) and store.filtered:
        raise InputError(f"{where}: no candidate passes the filters. {'; '.join(store.filtered)}: loosen one of them")
    if not len(store):
        raise InputError(f"{where}: no usable {kind}: {store._shown_rejected(EXAMPLES)}: correct them, or name another")
    if strict and store.rejected:
        raise InputError(
            f"{where}: {store.rejected:,} unusable rows: {store._shown_rejected(EXAMPLES)}: correct them, or read "
            "without strict"
        )
    return store


def _rdkit_version() -> str:
    import rdkit

    return str(rdkit.__version__)


def file_checksums(paths: Sequence[str | os.PathLike[str]]) -> list[str]:
    """SHA-256 of files.

    Raises:
        InputError: If one cannot be read.
    """
    return [_sha256(Path(path)) for path in paths]


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error


def _kind(files: Sequence[RowFile], given: str | None, column: str | None) -> str:
    """The kind of the strings of all files, and the checks of `read_pool` on the first rows of each."""
    heads = [without_inchi(file.head) if given in (None, "molecule") else file.head for file in files]
    kind = given
    if kind is None:
        kind = recognize_kind([string for head in heads for string in head], hint=files[0].hint)
    for file, head in zip(files, heads, strict=True):
        lines = np.arange(len(head), dtype=np.int64)
        rows = PoolRows(str(file.path), head, lines, "", column=file.column)
        if given is None and head:
            refuse_names(rows, kind)
        refuse_missing_header(rows, kind, chosen=column is not None)
    return kind


def _heads(files: Sequence[RowFile]) -> dict[str, list[str]]:
    """The first cells of all columns but that of the strings; of a file that lacks one, none."""
    names = dict.fromkeys(name for file in files for name in file.begun if name != file.column)
    return {name: [cell for file in files for cell in file.begun.get(name, ())] for name in names}


def _column(file: RowFile, name: str, what: str) -> None:
    """Refuse a column that a file lacks."""
    if name not in file.columns:
        listed = ", ".join(map(repr, file.columns)) or "none"
        raise InputError(f"{file.path} has no {what} {name!r}; its columns are {listed}")


def _shard_path(folder: Path, number: int) -> Path:
    return folder / f"shard-{number:06d}.bin"


INDEX = "index.bin"


def _opened(folder: Path, facts: dict[str, Any], sieve: RowFilter | None) -> PoolStore | None:
    """The store, if it is complete and whole."""
    try:
        index = read_arrays(folder / INDEX)
        shards = [read_arrays(_shard_path(folder, number)) for number in range(index.facts["shards"])]
    except FileNotFoundError:
        return None
    except DamagedFileError as error:
        logger.warning("%s: what is damaged is made again", error)
        return None
    return PoolStore(folder, {**index.facts, **facts, "sieve": sieve}, shards, index)


def _made(
    folder: Path,
    files: Sequence[RowFile],
    facts: dict[str, Any],
    settings: dict[str, Any],
    workers: int | None,
    executor: Executor | None,
    rows: int,
    progress: Callable[[Preparation], object] | None,
) -> PoolStore:
    """Make what is missing."""
    for left in folder.glob(f".*{TEMPORARY}"):
        # What is still being written by another process has just been touched.
        if time.time() - left.stat().st_mtime > 600:
            left.unlink(missing_ok=True)
    started = time.perf_counter()
    total = sum(file.path.stat().st_size for file in files) or 1
    before = np.cumsum([0, *(file.path.stat().st_size for file in files)])
    # Compressed files do not say how far they are read: their rows so far tell how many there are.
    count, done, made = 0, 0, 0
    shards: dict[int, ArrayFile] = {}

    def tell(number_of_file: int) -> None:
        if progress is not None:
            share = min(1.0, float(before[number_of_file + 1]) / total) if len(files) > 1 else _share(files[0], done)
            progress(Preparation(done, made, share, time.perf_counter() - started))

    with ShardMakers(settings, workers, executor) as makers:
        latest = 0
        for number, block in enumerate(blocks_of(files, rows)):
            count, latest = number + 1, block.file
            size = len(block.strings) + len(block.unread)
            path = _shard_path(folder, number)
            whole = _whole(path)
            if whole is not None:
                shards[number] = whole
                done += size
            else:
                makers.submit(path, block, size)
            for finished in makers.finished(wait=False):
                done, made = done + finished, made + finished
            tell(latest)
        for finished in makers.finished(wait=True):
            done, made = done + finished, made + finished
            tell(latest)
    found = [shards.get(number) or read_arrays(_shard_path(folder, number)) for number in range(count)]
    write_index(folder / INDEX, found, facts)
    index = read_arrays(folder / INDEX)
    return PoolStore(folder, {**index.facts, **facts, "sieve": settings["sieve"]}, found, index)


def _share(file: RowFile, done: int) -> float:
    if file.form == "parquet":
        import pyarrow.parquet

        return done / max(1, pyarrow.parquet.read_metadata(file.path).num_rows)
    # Some 45 bytes a row, a third of that where it is compressed: a guess that serves a progress bar.
    width = max(8, sum(map(len, file.head)) / max(1, len(file.head)) + 2) / (3 if file.compressed else 1)
    return min(0.99, done * width / max(1, file.path.stat().st_size))


def _whole(path: Path) -> ArrayFile | None:
    try:
        return read_arrays(path)
    except FileNotFoundError:
        return None
    except DamagedFileError as error:
        logger.warning("%s: it is made again", error)
        return None
