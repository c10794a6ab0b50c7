"""Runs of a benchmark in JSON-lines files: a line for each run, appended when it is done.

``pandas.read_json(path, lines=True)`` reads such a file. A run is known by some of its fields, its *identity* (such as
``{"job": {"method": "ssk-mean", "seed": 3}}``); a run that is there is not appended again. Where a file holds two lines
of one run, which happens when two versions of it are merged, the later line counts.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from seqopt.errors import InputError

logger = logging.getLogger(__name__)

Run = dict[str, Any]
"""What is known of one run, as JSON values."""

ENDING = ".jsonl"


def run_key(run: Mapping[str, Any], fields: Sequence[str]) -> str:
    """The values of the fields that tell runs apart, in a form that can be compared.

    Example:
        >>> run_key({"job": {"seed": 1, "method": "a"}, "values": [2.5]}, ["job"])
        '{"job": {"method": "a", "seed": 1}}'
    """
    return json.dumps({name: run.get(name) for name in fields}, sort_keys=True)


def read_records(path: Path, fields: Sequence[str]) -> list[Run]:
    """All runs of a file, in its order; none where there is no file.

    A last line without an end is what a crash has left of a run: it does not count, and a warning says so.

    Args:
        path: The file.
        fields: Those that tell runs apart.

    Raises:
        InputError: For a line that is not a JSON object; it names the line.
    """
    if not path.exists():
        return []
    with path.open("rb") as file:
        _lock(file, shared=True)
        whole, rest = _split(file.read())
    if rest:
        logger.warning("the last line of %s is incomplete and does not count: its run will be repeated", path)
    return _parsed(whole, path, fields)


def runs_by_method(folder: Path, methods: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
    """The stored runs of each method that has any, in the order of the methods and of their seeds.

    Args:
        folder: Holds a file for each method, ``METHOD.jsonl``; its runs have a ``job`` with a ``seed``.
        methods: Their names.

    Example:
        >>> runs_by_method(Path("nowhere"), ["random"])
        {}
    """
    found = {}
    for method in methods:
        runs = read_records(folder / f"{method}{ENDING}", ["job"])
        if runs:
            found[method] = sorted(runs, key=lambda run: int(run["job"]["seed"]))
    return found


def append_record(path: Path, run: Mapping[str, Any], fields: Sequence[str], *, again: bool = False) -> bool:
    """Append one run, unless it is there.

    The file is locked meanwhile, so that processes that append to it at the same time do not mix their lines, and the
    line is on the disk when this returns. What a crash has left of a last line is cut off.

    Args:
        path: The file, which is made if need be.
        run: JSON values.
        fields: Those that tell runs apart.
        again: Append it although it is there; the later line counts.

    Returns:
        Whether it was appended.

    Raises:
        InputError: For a line that is not a JSON object; it names the line.
        OSError: If the file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # One write of bytes without a buffer, at the end wherever that is: whole lines even where there are no locks.
    with open(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644), "r+b", buffering=0) as file:
        _lock(file)
        whole, rest = _split(file.read())
        if rest:
            logger.warning("an incomplete last line of %s is cut off: its run will be repeated", path)
            file.truncate(len(whole))
        known = {run_key(record, fields) for record in _parsed(whole, path, fields)}
        if not again and run_key(run, fields) in known:
            return False
        file.write((json.dumps(run) + "\n").encode())
        os.fsync(file.fileno())
    return True


def _split(data: bytes) -> tuple[bytes, bytes]:
    """Whole lines, and what stands after the last of them."""
    cut = data.rfind(b"\n") + 1
    return data[:cut], data[cut:]


def _parsed(lines: bytes, path: Path, fields: Sequence[str]) -> list[Run]:
    found: dict[str, Run] = {}
    for number, line in enumerate(lines.splitlines(), start=1):
        try:
            run = json.loads(line)
        except ValueError:
            run = None
        if not isinstance(run, dict):
            raise InputError(
                f"{path}, line {number}: expected a run as a JSON object; restore the file, or remove the line"
            )
        found[run_key(run, fields)] = run
    return list(found.values())


def _lock(file: IO[bytes], *, shared: bool = False) -> None:
    """Wait for a lock on an open file, which its closing releases."""
    try:
        import fcntl
    except ImportError:  # not on Windows, where one write at the end of the file has to do
        return
    try:
        fcntl.flock(file, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
    except OSError:
        logger.debug("no locks on the file system of %s", file.name)
