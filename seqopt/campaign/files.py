"""Campaign files on the disk: connections, copies of what cannot be written, and what SQLite's errors mean."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from seqopt.campaign.errors import CampaignError

INTACT = "Everything committed before is intact"


def connect(file: Path, mode: str, timeout: float, factory: type[sqlite3.Connection]) -> sqlite3.Connection:
    # As a URI, so that opening never makes a file. The file must not be opened by other means in this process: on
    # closing it again, POSIX would drop SQLite's locks.
    uri = f"{file.resolve().as_uri()}?mode={mode}"
    connection = sqlite3.connect(uri, uri=True, timeout=timeout, isolation_level=None, factory=factory)
    try:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")
    except BaseException:
        connection.close()
        raise
    return connection


def has_log(file: Path) -> bool:
    """Whether something was committed that is not in the file itself yet: its writer works, or was killed."""
    log = file.resolve().with_name(file.resolve().name + "-wal")
    return log.exists() and log.stat().st_size > 0


def code_of(error: sqlite3.Error) -> int:
    """The primary result code, which says what went wrong, wherever it did."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


@contextmanager
def explained(path: Path, timeout: float) -> Iterator[None]:
    """Turn the errors of SQLite into ones that say what happened, what is kept, and what to do."""
    try:
        yield
    except sqlite3.Error as error:
        raise CampaignError(_explanation(error, path, timeout)) from error


def _explanation(error: sqlite3.Error, path: Path, timeout: float) -> str:
    code = code_of(error)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return (
            f"another process is writing to {path} and was not done within {timeout:g} s. {INTACT}, and nothing was "
            "changed: try again when it is done"
        )
    if code == sqlite3.SQLITE_FULL:
        return f"the disk is full: {path} cannot grow. {INTACT}, and nothing was changed: make room and do it again"
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
        return f"{path} is read-only: nothing was changed. {INTACT}, and can be read"
    if code == sqlite3.SQLITE_CANTOPEN:
        return (
            f"{path} cannot be opened ({error}): you need permission to read it and, in order to change it, to write "
            f"it and its folder. {INTACT}"
        )
    if code == sqlite3.SQLITE_IOERR:
        return (
            f"the disk refused to read or write {path} ({error}); perhaps it is full, over quota, or was removed. "
            f"{INTACT}: open the campaign again and see its history before doing this again"
        )
    if code == sqlite3.SQLITE_NOTADB:
        return f"{path} is not a campaign of seqopt, nor any other SQLite database"
    if code == sqlite3.SQLITE_CORRUPT:
        return (
            f"{path} is damaged ({error}). Nothing was changed: keep the file and those next to it that begin with its "
            "name, and put a copy back if there is one"
        )
    if code == sqlite3.SQLITE_CONSTRAINT:
        return f"this would break a rule of {path} ({error}). {INTACT}, and nothing was changed"
    return f"{path}: {error}. {INTACT}"


def is_readable(file: Path) -> bool:
    return all(os.access(part, os.R_OK) for part in _parts(file) if part.exists())


def _parts(file: Path) -> list[Path]:
    """A campaign and its logs: the usual one, and that of file systems without shared memory."""
    real = file.resolve()
    return [real, *(real.with_name(real.name + ending) for ending in ("-wal", "-journal"))]


def copy_of(file: Path) -> tempfile.TemporaryDirectory[str]:
    """A copy of a campaign and its log where SQLite may write; for files in folders that cannot be written."""
    parts = _parts(file)
    for _ in range(5):
        copy = tempfile.TemporaryDirectory(prefix="seqopt-")
        try:
            before = [stamp(part) for part in parts]
            for part in parts:
                if part.exists():
                    shutil.copyfile(part, Path(copy.name, part.name))
            if before == [stamp(part) for part in parts]:
                return copy
        except OSError as error:
            copy.cleanup()
            raise CampaignError(f"{file} cannot be copied in order to read it: {error.strerror or error}") from error
        copy.cleanup()
    raise CampaignError(f"{file} is being changed by another process: try again")


def stamp(path: Path) -> tuple[int, int] | None:
    """What tells whether a file has changed, without reading it: when it was last written, and its size in bytes;
    `None` where there is no file that can be looked at.

    Example:
        >>> stamp(Path("no such file")) is None
        True
    """
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
