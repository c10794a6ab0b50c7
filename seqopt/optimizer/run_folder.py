"""A run on disk: an append-only log that is the truth, and readable exports of it.

``log.jsonl`` holds one JSON object per line: the settings, then every batch as it was suggested (with what the
optimiser needs to go on from there) and every result as it came, each flushed to the disk before the run goes on.
Resuming replays it. ``evaluations.csv`` and ``summary.json`` are exports, rewritten from the state in memory and safe
to delete.
"""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import os
import platform
import time
from dataclasses import asdict
from importlib import metadata
from io import FileIO
from itertools import accumulate
from pathlib import Path
from typing import Any

import seqopt
from seqopt.errors import RunFolderError
from seqopt.evaluation import Evaluation
from seqopt.optimizer.loop import Step
from seqopt.optimizer.optimizer import Optimizer

logger = logging.getLogger(__name__)

LOG = "log.jsonl"
EVALUATIONS = "evaluations.csv"
SUMMARY = "summary.json"
OTHER_FILES = (EVALUATIONS, SUMMARY, "report.html", "search.png", "search.svg", "rejected.csv")
FORMAT = 1

ADJUSTABLE = frozenset(
    {"budget", "timeout", "workers", "command", "pool", "pool_size", "rejected", "duplicates", "objective_description"}
)
"""Settings that may differ between a run and its resumption: what the pool holds is compared by its digest."""


def check_folder(path: str | os.PathLike[str], resume: bool) -> None:
    """Say at once, and without touching anything, that a folder cannot be used.

    Args:
        path: The folder.
        resume: Whether a run in it is to be continued.

    Raises:
        RunFolderError: If it holds a run, or files that a run would overwrite, and ``resume`` is not set; or if there
            is no run to resume.
    """
    folder = Path(path)
    log = folder / LOG
    if resume:
        if not log.exists():
            raise RunFolderError(f"{folder} holds no run to resume (no {LOG}): leave --resume out to start one")
        return
    if _holds_run(log):
        raise RunFolderError(
            f"{folder} already holds a run: continue it with --resume, or choose another folder with --out"
        )
    taken = [name for name in OTHER_FILES if (folder / name).exists()]
    if taken:
        raise RunFolderError(
            f"{folder} holds {', '.join(taken)}, which a run would overwrite: choose another folder with --out"
        )


class RunFolder:
    """The folder of one run; implements `seqopt.optimizer.loop.RunLog`.

    Use `create` or `resume`, then `restore`, pass it to `run_loop`, and `close` it.
    """

    def __init__(self, path: Path, settings: dict[str, Any], stream: FileIO, events: list[dict[str, Any]]) -> None:
        self.path = path
        self.settings = settings
        self.status = "running"
        self._stream = stream
        self._events = events
        self._asked = [event for event in events if event["event"] == "asked"]
        self._spent = sum(event["seconds"] for event in events if event["event"] in ("asked", "evaluated"))
        self._started = time.perf_counter()
        self._exported = 0.0
        self._export_seconds = 0.0

    @classmethod
    def create(cls, path: str | os.PathLike[str], settings: dict[str, Any]) -> RunFolder:
        """Start a run in a folder that holds none.

        Args:
            path: The folder.
            settings: What describes the run; kept as JSON, other objects as their `str`. Those outside `ADJUSTABLE`
                must be the same on resumption.

        Raises:
            RunFolderError: If the folder already holds a run, or cannot be written.
        """
        return cls._open(path, settings, resume=False)

    @classmethod
    def resume(cls, path: str | os.PathLike[str], settings: dict[str, Any]) -> RunFolder:
        """Open an existing run to continue it.

        Args:
            path: The folder.
            settings: As in `create`; compared with those of the run.

        Raises:
            RunFolderError: If there is no run, it is being written by another process, its log is damaged before its
                last line, or settings that decide the course of the run differ.
        """
        return cls._open(path, settings, resume=True)

    @classmethod
    def _open(cls, path: str | os.PathLike[str], settings: dict[str, Any], *, resume: bool) -> RunFolder:
        check_folder(path, resume)
        folder = Path(path)
        settings = json.loads(json.dumps(settings, default=str))
        try:
            folder.mkdir(parents=True, exist_ok=True)
            # Unbuffered: what a full disk refuses must not be written again, out of order, when the file is closed.
            stream = open(folder / LOG, "a+b", buffering=0)  # noqa: SIM115 (closed by close)
        except OSError as error:
            raise RunFolderError(f"cannot write into {folder}: {error.strerror or error}") from error
        try:
            _lock(stream, folder)
            events = _read(stream, folder / LOG)
            run = cls(folder, settings, stream, events)
            if not events:
                run._append({"event": "settings", "format": FORMAT, "settings": settings, "versions": versions()})
            elif resume:
                _compare(events[0], settings, folder)
            else:
                check_folder(path, resume)
        except BaseException:
            stream.close()
            raise
        return run

    def restore(self, optimizer: Optimizer) -> None:
        """Bring a fresh optimiser to where the log ends; what was suggested and not evaluated is pending again."""
        for event in self._events:
            if event["event"] == "asked":
                optimizer.replay_ask(event["rows"], event["state"])
            elif event["event"] == "evaluated":
                optimizer.tell(
                    [event["string"]],
                    [float("nan") if event["value"] is None else event["value"]],
                    errors=[event["error"]],
                    seconds=[event["seconds"]],
                )
        if self._asked:
            self.export(optimizer)

    def asked(self, optimizer: Optimizer, rows: int, seconds: float) -> None:
        """Record a suggested batch."""
        state = optimizer.state_dict()
        suggested = state.pop("observations")[-rows:]
        event = {
            "event": "asked",
            "rows": [{name: row[name] for name in ("string", "key", "context")} for row in suggested],
            "state": state,
            "seconds": round(seconds, 3),
        }
        self._append(event)
        self._asked.append(event)

    def evaluated(self, optimizer: Optimizer, evaluation: Evaluation) -> None:
        """Record one result."""
        self._append(
            {
                "event": "evaluated",
                "string": evaluation.string,
                "value": evaluation.value if evaluation.status == "ok" else None,
                "error": evaluation.error,
                "seconds": evaluation.seconds,
            }
        )
        # The table is rewritten often while it is small and rarely once that takes long: the log has every result.
        if time.perf_counter() - self._exported > 20 * self._export_seconds:
            self.export(optimizer)

    def stepped(self, optimizer: Optimizer) -> None:
        """Rewrite the exports after a complete step."""
        self.export(optimizer)

    def steps(self, optimizer: Optimizer) -> list[Step]:
        """Every complete step of the run, from the log and the optimiser's table."""
        rows = optimizer.observations.rows
        ends = list(accumulate(len(event["rows"]) for event in self._asked))
        steps = []
        for event, end in zip(self._asked, ends, strict=True):
            batch = rows[end - len(event["rows"]) : end]
            if any(row.status == "pending" for row in batch):
                break
            best = optimizer.best_of(rows[:end])
            steps.append(
                Step(
                    step=event["state"]["batches"],
                    evaluations=end,
                    failed=sum(row.status == "failed" for row in rows[:end]),
                    best=None if best is None else best.value,
                    seconds={
                        "suggest": event["seconds"],
                        "evaluate": round(sum(row.context.get("seconds") or 0.0 for row in batch), 3),
                    },
                    kernel=event["state"]["hyperparameters"] if event["state"]["batches"] else {},
                )
            )
        return steps

    def export(self, optimizer: Optimizer) -> None:
        """Rewrite ``evaluations.csv`` and ``summary.json``; a failure is reported, the log has everything."""
        started = time.perf_counter()
        frame = optimizer.observations.to_frame()
        steps = self.steps(optimizer)
        best = optimizer.best_of(optimizer.observations.rows)
        summary = {
            "status": self.status,
            "settings": self.settings,
            "best": None
            if best is None
            else {
                "string": best.string,
                "value": best.value,
                "number": next(i for i, row in enumerate(optimizer.observations.rows, start=1) if row is best),
            },
            "evaluations": len(frame),
            "failed": int((frame["status"] == "failed").sum()),
            "steps": [asdict(step) for step in steps],
            "timings": {
                "total_seconds": round(self._spent + started - self._started, 2),
                "suggest_seconds": round(sum(step.seconds["suggest"] for step in steps), 2),
                "evaluate_seconds": round(sum(step.seconds["evaluate"] for step in steps), 2),
            },
            "versions": versions(),
        }
        try:
            write_atomically(self.path / EVALUATIONS, frame.to_csv(index=False))
            write_atomically(self.path / SUMMARY, json.dumps(summary, indent=2, ensure_ascii=False) + "\n")
        except OSError as error:
            logger.warning("%s could not be rewritten (%s); %s has every result", self.path, error.strerror, LOG)
        self._exported = time.perf_counter()
        self._export_seconds = self._exported - started

    def close(self, optimizer: Optimizer, status: str) -> None:
        """Write the exports a last time with ``status`` (``"finished"`` or ``"interrupted"``) and close the log."""
        self.status = status
        try:
            self.export(optimizer)
        finally:
            self._stream.close()

    def _append(self, event: dict[str, Any]) -> None:
        line = (json.dumps(event, allow_nan=False) + "\n").encode("ascii")
        try:
            while line:
                line = line[self._stream.write(line) :]
            os.fsync(self._stream.fileno())
        except OSError as error:
            raise RunFolderError(
                f"cannot write {self.path / LOG}: {error.strerror or error}. Everything before is kept: make room, "
                "then continue with --resume"
            ) from error


def versions() -> dict[str, str]:
    """Versions of seqopt, Python and the packages that decide its results."""
    found = {"seqopt": seqopt.__version__, "python": platform.python_version()}
    for package in ("torch", "gpytorch", "botorch", "numpy", "numba", "rdkit", "pandas"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


def write_atomically(path: Path, text: str) -> None:
    """Replace the file at ``path`` so that a reader, or a crash, sees the old text or the new, never a part."""
    temporary = path.with_name(path.name + ".part")
    temporary.write_text(text, encoding="utf-8", errors="backslashreplace")
    os.replace(temporary, path)


def _holds_run(log: Path) -> bool:
    """Whether the first line of a log is complete: a process killed before that has lost nothing."""
    try:
        with open(log, "rb") as stream:
            return stream.readline().endswith(b"\n")
    except OSError:
        return False


def _read(stream: FileIO, path: Path) -> list[dict[str, Any]]:
    """All complete events; a last line cut short by a crash is cut off, so that the next one starts afresh."""
    stream.seek(0)
    data = stream.readall() or b""
    complete = data[: data.rfind(b"\n") + 1]
    events = []
    for number, line in enumerate(complete.split(b"\n")[:-1], start=1):
        try:
            events.append(json.loads(line))
        except ValueError as error:
            raise RunFolderError(
                f"{path}, line {number}: damaged: {line[:60]!r}. Put a copy of the file back if there is one; "
                f"otherwise start a new run with --out. What was measured is in {EVALUATIONS}"
            ) from error
    if events and (events[0].get("event") != "settings" or events[0].get("format") != FORMAT):
        raise RunFolderError(f"{path}, line 1: not the settings of a run of this version of seqopt")
    if complete != data:
        stream.truncate(len(complete))
    return events


def _compare(first: dict[str, Any], settings: dict[str, Any], folder: Path) -> None:
    old, new = _leaves(first["settings"]), _leaves(settings)
    digests = {"pool_sha256": "the candidates have", "values_sha256": "the values that are looked up have"}
    names = [name for name in sorted(set(old) | set(new)) if name.split(".")[0] not in ADJUSTABLE | set(digests)]
    changed = [name for name in names if old.get(name) != new.get(name)]
    if changed:
        listed = "; ".join(f"{name} was {old.get(name)!r}, is now {new.get(name)!r}" for name in changed)
        raise RunFolderError(
            f"the run in {folder} was made with other settings ({listed}): resume it with the same ones, or start a "
            "new run with --out"
        )
    for name, what in digests.items():
        if old.get(name) != new.get(name):
            raise RunFolderError(
                f"{what} changed since the run in {folder} began ({old.get('pool_size')} candidates then, "
                f"{new.get('pool_size')} now): resume it with the same file, or start a new run with --out"
            )
    then, now = first.get("versions", {}), versions()
    newer = [f"{name} {then.get(name)} then, {now.get(name)} now" for name in now if then.get(name) != now.get(name)]
    if newer:
        logger.warning("the run was begun with other versions (%s): what follows may differ slightly", "; ".join(newer))


def _leaves(settings: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings as one level, with dotted names, so that a message can name what differs."""
    found: dict[str, Any] = {}
    for name, value in settings.items():
        found |= _leaves(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return found


def _lock(stream: FileIO, folder: Path) -> None:
    try:
        import fcntl
    except ImportError:  # Windows has no advisory locks of this kind
        return
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EAGAIN):
            raise RunFolderError(f"another process is writing the run in {folder}: wait for it, or stop it") from error
        # Some network file systems know no locks; the run is as safe there as its user is careful.
