"""The index of a pool on disk: which rows count, and where a key is by its hash.

Hashes are sorted in parts of some `PART` rows, by their leading bits, and what is found goes to temporary files: memory
grows neither with the rows nor with the candidates, but for 8 bytes for each row that is the same thing as an earlier
one.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seqopt.datasets.pool_shards import summed_steps
from seqopt.utils.array_files import TEMPORARY, Array, ArrayFile, write_arrays

PART = 1 << 24
"""Rows that are sorted at a time: some 40 bytes each."""

BLOCK = 1 << 20
"""Numbers that are written at a time."""

Rows = npt.NDArray[np.int64]


def write_index(path: Path, shards: Sequence[ArrayFile], facts: Mapping[str, Any]) -> None:
    """Write which rows of the shards count, and their order by hashes.

    Its arrays: ``rows``, the rows that count, ascending (of equal keys, the first); ``hashes`` of these, sorted, and
    ``order``, their places among ``rows``; and with a column of identifiers ``called`` and ``called_order``, the
    same for hashes of these.

    Args:
        path: The index.
        shards: In their order.
        facts: What is written with it, ``id_column`` among it.

    Raises:
        OSError: If it cannot be written.
    """
    starts = np.array([0, *np.cumsum([shard.facts["rows"] for shard in shards])], dtype=np.int64)
    total = int(starts[-1])
    kind = np.dtype(np.uint32 if total < 1 << 32 else np.int64)
    with _Scratch(path.parent) as scratch:
        dropped_parts: list[Rows] = []
        for rows, ranked in _sorted(shards, starts, "hashes"):
            repeated = np.zeros(len(rows), dtype=np.bool_)
            repeated[1:] = ranked[1:] == ranked[:-1]
            again = np.flatnonzero(repeated)
            if len(again):
                repeated[again] = _same_as_earlier(again, rows, ranked, shards, starts)
            dropped_parts.append(rows[repeated])
            scratch.append("order", rows[~repeated].astype(kind))
            scratch.append("hashes", ranked[~repeated])
        dropped = np.sort(np.concatenate([np.empty(0, dtype=np.int64), *dropped_parts]))
        for start in range(0, total, BLOCK):
            block = np.arange(start, min(start + BLOCK, total))
            scratch.append("rows", block[~_within(block, dropped)].astype(kind))
        if facts["id_column"] is not None:
            for rows, ranked in _sorted(shards, starts, "id_hashes"):
                kept = ~_within(rows, dropped)
                scratch.append("called", ranked[kept])
                scratch.append("called_order", rows[kept].astype(kind))
        arrays: dict[str, Array] = {"rows": scratch.array("rows", kind)}
        for hashes, order in (("hashes", "order"), ("called", "called_order")):
            if hashes != "called" or facts["id_column"] is not None:
                arrays[order] = _as_places(scratch.array(order, kind), dropped)
                arrays[hashes] = scratch.array(hashes, np.dtype(np.uint64))
        rejected = sum(shard.facts["rejected"] for shard in shards)
        steps = summed_steps(shard.facts["steps"] for shard in shards)
        own = {"shards": len(shards), "rejected": rejected, "duplicates": len(dropped), "steps": steps}
        write_arrays(path, arrays, {**facts, **own})
        # What is mapped cannot be deleted everywhere.
        arrays.clear()


class _Scratch:
    """Temporary files of numbers beside an index, which are deleted in the end."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._token = folder, secrets.token_hex(4)
        self._names: set[str] = set()

    def __enter__(self) -> _Scratch:
        return self

    def __exit__(self, *error: object) -> None:
        for name in self._names:
            # One that is left is deleted by the next preparation.
            with contextlib.suppress(OSError):
                self._path(name).unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        return self._folder / f".{name}.{self._token}{TEMPORARY}"

    def append(self, name: str, numbers: Array) -> None:
        """Write numbers behind those that are there."""
        self._names.add(name)
        with self._path(name).open("ab") as file:
            numbers.tofile(file)

    def array(self, name: str, kind: np.dtype[Any]) -> Array:
        """All numbers that were written, mapped into memory."""
        path = self._path(name)
        if name not in self._names or not path.stat().st_size:
            return np.empty(0, dtype=kind)
        return np.memmap(path, kind, "r+")


def _sorted(shards: Sequence[ArrayFile], starts: Rows, name: str) -> Iterator[tuple[Rows, npt.NDArray[np.uint64]]]:
    """Rows in the order of their hashes, a part of them at a time, and these; equal ones in the order of the rows."""
    total = int(starts[-1])
    bits = max(0, int(np.ceil(np.log2(max(1, total) / PART))))
    for part in range(1 << bits):
        rows, hashes = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.uint64)]
        for shard, start in zip(shards, starts.tolist(), strict=False):
            own = np.asarray(shard.arrays[name])
            chosen = np.flatnonzero(own >> np.uint64(64 - bits) == part) if bits else np.arange(len(own))
            rows.append(chosen + start)
            hashes.append(own[chosen])
        found = np.concatenate(hashes)
        order = np.argsort(found, kind="stable")
        yield np.concatenate(rows)[order], found[order]


def _within(rows: Rows, dropped: Rows) -> npt.NDArray[np.bool_]:
    """Which rows are among those that are dropped, which are sorted."""
    if not len(dropped):
        return np.zeros(len(rows), dtype=np.bool_)
    found: npt.NDArray[np.bool_] = dropped[np.minimum(np.searchsorted(dropped, rows), len(dropped) - 1)] == rows
    return found


def _as_places(order: Array, dropped: Rows) -> Array:
    """Places among the rows that count, instead of rows, in the same memory."""
    for start in range(0, len(order), BLOCK):
        block = order[start : start + BLOCK].astype(np.int64)
        order[start : start + BLOCK] = block - np.searchsorted(dropped, block)
    return order


def _same_as_earlier(
    again: Rows, rows: Rows, ranked: Array, shards: Sequence[ArrayFile], starts: Rows
) -> npt.NDArray[np.bool_]:
    """Which of the rows that share a hash with an earlier one share its key, too."""

    def key(row: int) -> bytes:
        shard = int(np.searchsorted(starts, row, side="right")) - 1
        ends = shards[shard].arrays["keys_ends"]
        at = row - int(starts[shard])
        return shards[shard].arrays["keys"][int(ends[at]) : int(ends[at + 1])].tobytes()

    found = np.empty(len(again), dtype=np.bool_)
    seen: set[bytes] = set()
    last = None
    for number, place in enumerate(again.tolist()):
        if ranked[place] != last:
            last = ranked[place]
            seen = {key(int(rows[place - 1]))}
        own = key(int(rows[place]))
        found[number] = own in seen
        seen.add(own)
    return found
