"""Applying a function to very many strings in several processes.

The processes are those of `loky`, not of `multiprocessing`, whose workers import the main module: a script that
reads a large pool would then need an ``if __name__ == "__main__"`` guard, and would otherwise run again in each worker.
They are started afresh, not forked, so that no lock of torch or numba is copied while it is held.
"""

from __future__ import annotations

import importlib
import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, as_completed
from typing import Any

logger = logging.getLogger(__name__)

Progress = Callable[[int, int], None]
"""Called with the numbers of strings done and in all."""

CHUNK = 2_000
"""Strings sent to a worker at a time."""


def map_strings(
    function: str,
    strings: Sequence[str],
    *,
    arguments: dict[str, Any] | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
    chunk: int = CHUNK,
) -> list[Any]:
    """``function(strings, **arguments)`` computed chunk by chunk in several processes.

    What the function prints in a worker is dropped. If a worker dies, for instance because memory runs out, a warning
    is logged, and what is left is computed in this process.

    Args:
        function: ``"module:name"`` of a function from a list of strings to as many results that can be pickled, each
            depending on its own string only.
        strings: The strings.
        arguments: Further keyword arguments, which can be pickled.
        workers: Number of processes; by default one for each core this process may use. With one, or where
            processes cannot be started, the work is done in this process.
        progress: Told after each chunk.
        chunk: Strings in a chunk.

    Returns:
        The results in the order of ``strings``.

    Raises:
        Exception: What the function raises, whichever process it runs in.

    Example:
        >>> map_strings("seqopt.strings.identity:identity_keys", ["OCC", "?"], arguments={"kind": "molecule"})
        ['CCO', None]
    """
    arguments = arguments or {}
    chunks = {start: list(strings[start : start + chunk]) for start in range(0, len(strings), chunk)}
    results: dict[int, list[Any]] = {}
    done = 0

    def finished(start: int, values: list[Any]) -> None:
        nonlocal done
        results[start] = values
        done += len(values)
        if progress is not None:
            progress(done, len(strings))

    workers = min(usable_cores() if workers is None else workers, len(chunks))
    # A worker process may be a daemon, which may have no children; or it may be killed at a time-out, and its children
    # would be left behind. Its parent has other workers for the other cores.
    if workers > 1 and multiprocessing.parent_process() is None:
        _in_processes(workers, function, arguments, chunks, finished)
    for start, part in chunks.items():
        if start not in results:
            finished(start, _apply(function, arguments, part))
    return [value for start in chunks for value in results[start]]


def _in_processes(
    workers: int,
    function: str,
    arguments: dict[str, Any],
    chunks: dict[int, list[str]],
    finished: Callable[[int, list[Any]], None],
) -> None:
    """Works through ``chunks``; what is left when a worker dies is not told to ``finished``."""
    import loky

    executor = None
    try:
        try:
            executor = loky.ProcessPoolExecutor(workers, initializer=_silence)
            futures = {executor.submit(_apply, function, arguments, part): start for start, part in chunks.items()}
        # BrokenExecutor is a RuntimeError, and so is what loky raises where processes are nested too deeply or the main
        # module is only being imported; OSError is that of a system without semaphores or room for a process.
        except (OSError, RuntimeError, NotImplementedError) as error:
            logger.warning("no worker processes can be started (%s): the work is done in this process", error)
            return
        for future in as_completed(futures):
            try:
                values = future.result()
            except BrokenExecutor as error:
                reason = str(error).strip().partition("\n")[0]
                logger.warning("a worker process died (%s): what is left is done in this process", reason)
                return
            finished(futures.pop(future), values)
    finally:
        # All is done, or what is still being computed is of no use any more.
        if executor is not None:
            executor.shutdown(wait=True, kill_workers=True)


def _apply(function: str, arguments: dict[str, Any], strings: list[str]) -> list[Any]:
    module, _, name = function.partition(":")
    return list(getattr(importlib.import_module(module), name)(strings, **arguments))


def _silence() -> None:
    """Keep a worker from writing into the output of the program, and from answering Ctrl-C, which its parent does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)


def quiet_executor(workers: int) -> Any | None:
    """An executor of worker processes, in which nothing is printed; `None`, with a warning, where there can be none.

    Whoever has it made calls its ``shutdown(wait=True, kill_workers=True)``.
    """
    if multiprocessing.parent_process() is not None:
        return None
    import loky

    try:
        return loky.ProcessPoolExecutor(workers, initializer=_follow, initargs=(os.getpid(),))
    except (OSError, RuntimeError, NotImplementedError) as error:
        logger.warning("no worker processes can be started (%s): the work is done in this process", error)
        return None


def _follow(parent: int) -> None:
    """Be silent, and end when the parent has: one that was killed cannot say so, and its workers would go on."""
    _silence()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    # Where the parent is not the one that asked, as behind a fork server, nothing can be told.
    if os.getppid() == parent:
        threading.Thread(target=watch, name="seqopt-follow", daemon=True).start()


def usable_cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
