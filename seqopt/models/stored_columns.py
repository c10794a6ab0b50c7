"""Prior covariances with the candidates of a large pool, kept in the cache folder between processes.

The sub-sequence kernel takes minutes for a quarter of a million candidates and two thousand strings, and its parameters
change seldom: covariances that were computed once serve until then. They are kept as they were computed, in single or
double precision, 4 or 8 N n bytes for N candidates and n strings, in a folder for each pool and each set of kernel
parameters, and in a file for each block of candidates. A file is a chain of segments, each a header with the checksum
of what follows, the digests of the strings' keys, and a row of covariances for each. New strings are appended. What
does not match its checksum is cut off and computed again; a folder that cannot be written only means that the work is
done again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import shutil
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gpytorch
import numpy as np
import numpy.typing as npt

import seqopt
from seqopt.utils.cache import cache_dir, digest
from seqopt.utils.config import described

logger = logging.getLogger(__name__)

Rows = npt.NDArray[np.floating]

STORED = 1 << 31
"""Bytes of stored covariances besides those in use; beyond, those that were not used for longest are deleted."""

TOLERANCE = 1e-4
"""Largest difference of a stored covariance from the same one computed again, as a fraction of the row's largest."""

_MAGIC = b"seqopt-1"
_HEADER = struct.Struct("<8sII32s")
_MARK = 16


class StoredColumns:
    """Covariances of strings with blocks of candidates, on disk.

    Args:
        folder: Where the files are; it need not exist.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = StoredColumns(Path(folder))
        ...     first = store.rows("block", 2, ["a"], lambda rows: np.ones((len(rows), 2), dtype=np.float32))
        ...     store.rows("block", 2, ["b", "a"], lambda rows: np.ones((len(rows), 2), dtype=np.float32)).tolist()
        [[1.0, 1.0], [1.0, 1.0]]
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._marks: dict[str, bytes] = {}

    def rows(
        self,
        name: str,
        width: int,
        keys: Sequence[str],
        compute: Callable[[list[int]], Rows],
        precision: type[np.floating] = np.float32,
    ) -> Rows:
        """Covariances of strings with one block of candidates.

        Args:
            name: Of the block.
            width: Candidates in the block.
            keys: What identifies the strings, all different.
            compute: Gives the rows at some indices of ``keys``. One row that is stored is computed again, too: where it
                differs, nothing that is stored is used.
            precision: float32 or float64. Blocks of the two are kept apart.

        Returns:
            ``len(keys) x width`` of that precision.
        """
        kind = np.dtype(precision).newbyteorder("<")
        name = name if kind.itemsize == 4 else f"{name}-double"
        stored = self._read(name, width, kind)
        marks = [self._mark(key) for key in keys]
        known = [index for index, mark in enumerate(marks) if mark in stored]
        if known and not _agree(stored[marks[known[0]]], compute(known[:1])[0]):
            logger.info("stored covariances in %s are of another kernel and are computed again", self.folder)
            self._cut(name, 0)
            stored, known = {}, []
        values = np.empty((len(keys), width), dtype=precision)
        for index in known:
            values[index] = stored[marks[index]]
        missing = [index for index, mark in enumerate(marks) if mark not in stored]
        del stored
        if missing:
            values[missing] = compute(missing)
            self._append(name, [marks[index] for index in missing], values[missing].astype(kind))
        return values

    def _mark(self, key: str) -> bytes:
        if key not in self._marks:
            self._marks[key] = hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()[:_MARK]
        return self._marks[key]

    def _read(self, name: str, width: int, kind: np.dtype[Any]) -> dict[bytes, Rows]:
        found: dict[bytes, Rows] = {}
        try:
            data = memoryview((self.folder / name).read_bytes())
        except OSError:
            return found
        offset = 0
        while offset < len(data):
            segment = _segment(data[offset:], width, kind)
            if segment is None:
                self._cut(name, offset)
                break
            marks, values, size = segment
            found.update(zip(marks, values, strict=True))
            offset += size
        return found

    def _append(self, name: str, marks: list[bytes], values: Rows) -> None:
        body = b"".join(marks) + np.ascontiguousarray(values).tobytes()
        header = _HEADER.pack(_MAGIC, *values.shape, hashlib.sha256(body).digest())
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            if shutil.disk_usage(self.folder).free < 4 * len(body):
                return
            with (self.folder / name).open("ab") as stream:
                stream.write(header + body)

    def _cut(self, name: str, offset: int) -> None:
        with contextlib.suppress(OSError):
            os.truncate(self.folder / name, offset)


def stored_columns(kernel: gpytorch.kernels.Kernel, encoder: str, keys: Sequence[str]) -> StoredColumns:
    """The store of a kernel, at the parameters it has now, and a pool; the oldest others make room for it.

    Args:
        kernel: The kernel, without output scale.
        encoder: Name of what turns the candidates into what the kernel takes.
        keys: Of the candidates, in their order.
    """
    home = cache_dir() / "columns"
    folder = home / digest([seqopt.__version__, encoder, json.dumps(described(kernel), sort_keys=True), *keys])[:32]
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
        _make_room(home, folder)
    return StoredColumns(folder)


def _make_room(home: Path, kept: Path) -> None:
    folders = sorted((path for path in home.iterdir() if path != kept), key=lambda path: -path.stat().st_mtime)
    total = 0
    for folder in folders:
        total += _size(folder)
        if total > STORED:
            shutil.rmtree(folder, ignore_errors=True)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


def _segment(data: memoryview, width: int, kind: np.dtype[Any]) -> tuple[list[bytes], Rows, int] | None:
    """Digests of keys, covariances and length of the segment that begins ``data``; `None` for a damaged one."""
    if len(data) < _HEADER.size:
        return None
    magic, rows, columns, checksum = _HEADER.unpack_from(data)
    size = _HEADER.size + rows * (_MARK + kind.itemsize * columns)
    body = data[_HEADER.size : size]
    if magic != _MAGIC or columns != width or len(data) < size or hashlib.sha256(body).digest() != checksum:
        return None
    marks = [bytes(body[start : start + _MARK]) for start in range(0, rows * _MARK, _MARK)]
    values = np.frombuffer(body[rows * _MARK :], dtype=kind).reshape(rows, columns)
    return marks, values, size


def _agree(stored: Rows, computed: Rows) -> bool:
    largest = float(np.abs(computed).max(initial=0.0))
    return bool(np.abs(stored - computed).max(initial=0.0) <= TOLERANCE * largest)
