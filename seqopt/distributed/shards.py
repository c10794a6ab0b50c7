"""Shards of a prepared pool on the disks of workers.

A shard has the name of its pool, which is a hash of the contents of the files and of the settings, and a number: it is
found again after a restart, whoever asks for it. Its file has checksums; they are verified when a process first opens
it, and again when the file has changed since. A copy that is damaged is thrown away, and read or sent again.

Besides the shard, a worker keeps what is computed of it: tokens, and covariances of a costly kernel with the training
strings, at the last parameters of the kernel.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import shutil
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seqopt.datasets.pool_store import PoolStore
from seqopt.distributed.errors import MissingShardError
from seqopt.encoding import Tokenizer
from seqopt.models.gp_state import BatchedGPState
from seqopt.models.stored_columns import StoredColumns
from seqopt.spaces import StoredPool
from seqopt.utils.array_files import ArrayFile, DamagedFileError, read_arrays
from seqopt.utils.cache import cache_dir, digest
from seqopt.utils.config import described

logger = logging.getLogger(__name__)

FOLDER = "shards"
"""Where shards are in the cache folder of a worker."""

OPEN = 64
"""Shards that a process keeps open."""

FREE = 4
"""Covariances are kept as long as so many times their bytes are free on the disk."""


@dataclass(frozen=True, eq=False)
class PoolFacts:
    """What all shards of a pool share.

    Attributes:
        name: Of the pool: a hash of its contents.
        facts: As the index says them.
        tokenizer: Splits candidates into symbols.
    """

    name: str
    facts: dict[str, Any]
    tokenizer: Tokenizer


@dataclass(frozen=True, eq=False)
class ShardRef:
    """Which shard is meant, and where it may be found.

    Attributes:
        number: Of the shard.
        path: Where it was prepared.
        first: Place in the pool of its first candidate.
        count: Candidates.
        dropped: Rows that do not count.
    """

    number: int
    path: str
    first: int
    count: int
    dropped: npt.NDArray[np.int64]


class ShardPool(StoredPool):
    """The candidates of one shard.

    Args:
        pool: What all shards share.
        ref: Which shard it is.
        shard: Its file.
        folder: Where things that are computed of it are kept.
    """

    def __init__(self, pool: PoolFacts, ref: ShardRef, shard: ArrayFile, folder: Path) -> None:
        kept = np.ones(shard.facts["rows"], dtype=np.bool_)
        kept[ref.dropped] = False
        rows = np.flatnonzero(kept)
        if len(rows) != ref.count:
            raise DamagedFileError(f"shard {ref.number} has {len(rows):,} candidates where {ref.count:,} are expected")
        nothing = np.empty(0, dtype=np.uint64)
        index = ArrayFile({}, {"rows": rows, "hashes": nothing, "order": nothing.astype(np.int64)})
        super().__init__(PoolStore(folder, pool.facts, [shard], index), tokenizer=pool.tokenizer)
        self.shard_name = f"{pool.name}/{ref.number}"

    def columns(self, state: BatchedGPState, encoder: str) -> StoredColumns | None:
        """Where covariances with the training strings are kept: those of other parameters make room for them.

        Args:
            state: The model.
            encoder: Name of what encodes strings.
        """
        home = self.store.folder / "columns"
        name = digest([encoder, str(described(state.evaluator.kernel))])[:32]
        with contextlib.suppress(OSError):
            home.mkdir(parents=True, exist_ok=True)
            for other in home.iterdir():
                if other.name != name:
                    shutil.rmtree(other, ignore_errors=True)
            if shutil.disk_usage(home).free < FREE * 8 * len(self) * len(state.keys):
                return None
        return StoredColumns(home / name)


_open: dict[tuple[str, int, str], tuple[tuple[int, int], ShardPool]] = {}
_lock = threading.Lock()


def shard_folder(pool: str, number: int) -> Path:
    """Where a worker keeps a shard, and what is computed of it."""
    return cache_dir() / FOLDER / pool / f"{number:06d}"


def open_shard(pool: PoolFacts, ref: ShardRef) -> ShardPool:
    """A shard: of this process, of this machine's disk, or read where it was prepared.

    Args:
        pool: What all shards share.
        ref: Which it is.

    Raises:
        MissingShardError: If there is no whole copy.
    """
    folder = shard_folder(pool.name, ref.number)
    own, there = folder / "shard.bin", Path(ref.path)
    # Two runs of the tests in one process may have different cache folders.
    known = pool.name, ref.number, str(folder)
    for path in (own, there):
        signature = _signature(path)
        if signature is None:
            continue
        with _lock:
            found = _open.get(known)
        if found is not None and found[0] == signature:
            return found[1]
        try:
            if path == there and not _same_disk(there, folder):
                path = _copied(there, own)
            shard = ShardPool(pool, ref, read_arrays(path), folder)
            folder.mkdir(parents=True, exist_ok=True)
        except (OSError, DamagedFileError) as error:
            logger.warning("%s: this copy of the shard is not used", error)
            if path == own:
                own.unlink(missing_ok=True)
            continue
        with _lock:
            _open[known] = _signature(path) or signature, shard
            while len(_open) > OPEN:
                del _open[next(iter(_open))]
        return shard
    raise MissingShardError(f"shard {ref.number} of {pool.name} is not on this machine, and not at {ref.path}")


def receive_shard(pool: str, number: int, content: bytes) -> str:
    """Keep a shard that was sent.

    Args:
        pool: Of which pool.
        number: Of the shard.
        content: Its file.

    Returns:
        Where it is kept.
    """
    path = shard_folder(pool, number) / "shard.bin"
    _written(path, content)
    return str(path)


def held_shards(pool: str) -> list[int]:
    """Numbers of the shards of a pool that this machine keeps a copy of, or something computed of them."""
    home = cache_dir() / FOLDER / pool
    with contextlib.suppress(OSError):
        return sorted(int(path.name) for path in home.iterdir() if path.name.isdigit())
    return []


def _signature(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _same_disk(path: Path, folder: Path) -> bool:
    """Whether a file is on the disk of the folder already, so that a copy would be of no use."""
    folder.mkdir(parents=True, exist_ok=True)
    return path.stat().st_dev == folder.stat().st_dev


def _copied(source: Path, target: Path) -> Path:
    _written(target, source.read_bytes())
    return target


def _written(path: Path, content: bytes) -> None:
    """Write a file that is there as a whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
