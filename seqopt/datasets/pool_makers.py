"""Making the shards of a pool, by processes of this machine or by another executor."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, wait
from pathlib import Path
from typing import Any

from seqopt.datasets.pool_shards import make_shard, shard_bytes
from seqopt.datasets.row_blocks import RowBlock
from seqopt.errors import InputError
from seqopt.utils.files import write_atomically

logger = logging.getLogger(__name__)

PARALLEL_FROM = 5_000
"""Rows of a block from which on worker processes are started."""


class ShardMakers:
    """Makes shards, two for each worker waiting at most: a block of rows has some megabytes.

    Args:
        settings: Of the shards, see `seqopt.datasets.pool_shards.make_shard`.
        workers: Processes of this machine, or shards that ``executor`` makes at a time.
        executor: Makes shards in the place of such processes. It need not share this machine's disks: what it makes
            comes back as bytes.
    """

    def __init__(self, settings: dict[str, Any], workers: int | None, executor: Executor | None = None) -> None:
        from seqopt.utils.workers import usable_cores

        self._settings = settings
        self._workers = usable_cores() if workers is None else workers
        self._elsewhere = executor
        self._executor: Any = None
        self._running: dict[Any, tuple[Path, RowBlock, int]] = {}
        self._done: list[int] = []

    def __enter__(self) -> ShardMakers:
        return self

    def __exit__(self, *error: object) -> None:
        for future in self._running:
            future.cancel()
        if self._executor is not None:
            self._executor.shutdown(wait=True, kill_workers=True)

    def submit(self, path: Path, block: RowBlock, size: int) -> None:
        """Have a shard made; waits where enough are on their way."""
        few = self._executor is None and len(block.strings) < PARALLEL_FROM
        if self._elsewhere is not None:
            while len(self._running) >= 2 * self._workers:
                self._collect(block=True)
            self._running[self._elsewhere.submit(shard_bytes, block, self._settings)] = (path, block, size)
            return None
        if self._workers > 1 and self._executor is None and not few:
            from seqopt.utils.workers import quiet_executor

            self._executor = quiet_executor(self._workers)
            if self._executor is None:
                self._workers = 1
        if self._workers == 1 or few:
            make_shard(str(path), block, self._settings)
            self._done.append(size)
            return None
        while len(self._running) >= 2 * self._workers:
            self._collect(block=True)
            if self._workers == 1:
                return self.submit(path, block, size)
        try:
            self._running[self._executor.submit(make_shard, str(path), block, self._settings)] = (path, block, size)
        except RuntimeError as broken:
            self._alone(broken)
            self.submit(path, block, size)
        return None

    def finished(self, *, wait: bool) -> Iterator[int]:
        """Sizes of the shards that have been made since, or of all that are under way."""
        if self._running:
            self._collect(block=False)
        while wait and self._running:
            yield from self._taken()
            self._collect(block=True)
        yield from self._taken()

    def _taken(self) -> list[int]:
        done, self._done = self._done, []
        return done

    def _collect(self, *, block: bool) -> None:
        ended = wait(self._running, timeout=None if block else 0, return_when=FIRST_COMPLETED).done
        for future in ended:
            if self._elsewhere is not None:
                self._fetch(future)
                continue
            try:
                future.result()
            except BrokenExecutor as broken:
                self._alone(broken)
                return
            self._done.append(self._running.pop(future)[2])

    def _fetch(self, future: Any) -> None:
        """Keep a shard that was made elsewhere; one that was lost on the way is made here."""
        path, block, size = self._running.pop(future)
        try:
            made = future.result()
        except InputError:
            raise
        # Whatever it is that such an executor raises when a worker or its connection is lost.
        except Exception as lost:
            logger.warning("a shard is made in this process: its worker did not make it (%s)", _first_line(lost))
            make_shard(str(path), block, self._settings)
        else:
            write_atomically(path, made)
        self._done.append(size)

    def _alone(self, error: BaseException) -> None:
        """Make the rest in this process: a worker has died."""
        logger.warning("a worker process died (%s): what is left is done in this process", _first_line(error))
        waiting, self._running, self._workers = list(self._running.values()), {}, 1
        for path, block, size in waiting:
            make_shard(str(path), block, self._settings)
            self._done.append(size)


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
