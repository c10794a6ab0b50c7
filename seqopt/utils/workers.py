"""Applying a function to very many strings in several processes.

The processes are started as ``python -c``, not by `multiprocessing`, whose workers import the caller's main
module: a script that reads a large pool would then need an ``if __name__ == "__main__"`` guard, and would
otherwise run again in each worker. What travels is a line of JSON each way and chunk.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Any

Progress = Callable[[int, int], None]
"""Called with the numbers of strings done and in all."""

CHUNK = 2_000
"""Strings sent to a worker at a time."""

_BOOTSTRAP = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from seqopt.utils.workers import serve; serve(sys.argv[2], json.loads(sys.argv[3]))"
)


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

    Args:
        function: ``"module:name"`` of a function from a list of strings to as many numbers, strings or
            `None`, each depending on its own string only.
        strings: The strings.
        arguments: Further keyword arguments, as JSON can hold them.
        workers: Number of processes; by default one for each core this process may use. With one, or where
            processes cannot be started, the work is done in this process.
        progress: Told after each chunk.
        chunk: Strings in a chunk.

    Returns:
        The results in the order of ``strings``.
    """
    arguments = arguments or {}
    if workers is None:
        workers = _usable_cores()
    if not sys.executable:
        workers = 1
    starts: SimpleQueue[int] = SimpleQueue()
    for start in range(0, len(strings), chunk):
        starts.put(start)
    workers = min(workers, starts.qsize())
    results: dict[int, list[Any]] = {}

    def finished(start: int, values: list[Any]) -> None:
        results[start] = values
        if progress is not None:
            progress(sum(map(len, results.values())), len(strings))

    if workers > 1:
        _run_workers(workers, function, arguments, strings, chunk, starts, finished)
    apply = _resolve(function)
    for start in range(0, len(strings), chunk):
        if start not in results:
            finished(start, list(apply(strings[start : start + chunk], **arguments)))
    return [value for start in sorted(results) for value in results[start]]


def _run_workers(
    workers: int,
    function: str,
    arguments: dict[str, Any],
    strings: Sequence[str],
    chunk: int,
    starts: SimpleQueue[int],
    finished: Callable[[int, list[Any]], None],
) -> None:
    """Works through ``starts``; whatever a worker that dies leaves behind is not in the results."""
    command = [
        sys.executable,
        "-c",
        _BOOTSTRAP,
        json.dumps([*map(str, sys.path)]),
        function,
        json.dumps(arguments),
    ]
    processes: list[subprocess.Popen[str]] = []
    answers: SimpleQueue[tuple[int, list[Any]] | None] = SimpleQueue()

    def feed(process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            while True:
                start = starts.get_nowait()
                process.stdin.write(json.dumps(strings[start : start + chunk]) + "\n")
                process.stdin.flush()
                answers.put((start, json.loads(process.stdout.readline())))
        except (Empty, OSError, ValueError):
            pass
        finally:
            answers.put(None)

    try:
        with contextlib.suppress(OSError):
            for _ in range(workers):
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                    encoding="utf-8",
                )
                processes.append(process)
                threading.Thread(target=feed, args=(process,), daemon=True).start()
        busy = len(processes)
        while busy:
            answer = answers.get()
            if answer is None:
                busy -= 1
            else:
                finished(*answer)
    finally:
        for process in processes:
            process.kill()
            process.wait()


def serve(function: str, arguments: dict[str, Any]) -> None:
    """The worker's side: answers each line of standard input with a line of standard output."""
    # What the function, or a library below it, prints must not be taken for an answer.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    apply = _resolve(function)
    for line in sys.stdin:
        print(json.dumps(list(apply(json.loads(line), **arguments))), file=answers, flush=True)


def _resolve(function: str) -> Callable[..., Sequence[Any]]:
    module, _, name = function.partition(":")
    found: Callable[..., Sequence[Any]] = getattr(importlib.import_module(module), name)
    return found


def _usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
