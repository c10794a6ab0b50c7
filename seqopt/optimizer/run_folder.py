"""A run on disk: an append-only log that is the truth, and readable exports of it.

``log.jsonl`` holds one JSON object per line: the settings, then every batch as it was suggested (with the surrogate's
parameters) and every result as it came, each flushed to the disk before the run goes on. Resuming replays it.
``evaluations.csv`` and ``summary.json`` are exports, rewritten from the state in memory and safe to delete.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import time
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import IO, Any

import seqopt
from seqopt.errors import RunFolderError
from seqopt.evaluation import Evaluation
from seqopt.optimizer.loop import Step
from seqopt.optimizer.optimizer import Optimizer

LOG = "log.jsonl"
EVALUATIONS = "evaluations.csv"
SUMMARY = "summary.json"
FORMAT = 1

ADJUSTABLE = frozenset({"budget", "timeout", "workers", "command", "out"})
"""Settings that may differ between a run and its resumption."""


class RunFolder:
    """The folder of one run; implements `seqopt.optimizer.loop.RunLog`.

    Use `create` or `resume`, then pass it to `run_loop`, and `close` it.
    """

    def __init__(self, path: Path, settings: dict[str, Any], stream: IO[str], events: list[dict[str, Any]]) -> None:
        self.path = path
        self.settings = settings
        self.steps: list[Step] = [Step(**event["step"]) for event in events if event["event"] == "step"]
        self.status = "running"
        self._stream = stream
        self._events = events
        self._started = time.perf_counter()
        self._spent = sum(sum(step.seconds.values()) for step in self.steps)
        self._export_seconds = 0.0
        self._exported = 0.0

    @classmethod
    def create(cls, path: str | os.PathLike[str], settings: dict[str, Any]) -> RunFolder:
        """Start a run in a new or empty folder.

        Args:
            path: The folder.
            settings: JSON values that describe the run; those outside `ADJUSTABLE` must be the same on resumption.

        Raises:
            RunFolderError: If the folder already holds a run, or cannot be written.
        """
        folder = Path(path)
        if (folder / LOG).exists():
            raise RunFolderError(
                f"{folder} already holds a run: continue it with --resume, or choose another folder with --out"
            )
        try:
            folder.mkdir(parents=True, exist_ok=True)
            stream = open(folder / LOG, "x", encoding="utf-8", newline="\n")  # noqa: SIM115 (closed by close)
        except OSError as error:
            raise RunFolderError(f"cannot write into {folder}: {error.strerror or error}") from error
        _lock(stream, folder)
        run = cls(folder, settings, stream, [])
        run._append({"event": "settings", "format": FORMAT, "settings": settings, "versions": versions()})
        return run

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
        folder = Path(path)
        if not (folder / LOG).exists():
            raise RunFolderError(f"{folder} holds no run to resume (no {LOG}): leave --resume out to start one")
        try:
            stream = open(folder / LOG, "r+", encoding="utf-8", newline="\n")  # noqa: SIM115 (closed by close)
        except OSError as error:
            raise RunFolderError(f"cannot open {folder / LOG}: {error.strerror or error}") from error
        try:
            _lock(stream, folder)
            events = _read(stream, folder / LOG)
            if not events or events[0].get("event") != "settings" or events[0].get("format") != FORMAT:
                raise RunFolderError(f"{folder / LOG}, line 1: not the settings of a run of this version of seqopt")
            old = events[0]["settings"]
            names = [name for name in sorted(set(old) | set(settings)) if name not in ADJUSTABLE]
            changed = [name for name in names if old.get(name) != settings.get(name)]
            if changed:
                listed = "; ".join(f"{name} was {old.get(name)!r}, is now {settings.get(name)!r}" for name in changed)
                raise RunFolderError(
                    f"the run in {folder} was made with other settings ({listed}): resume it with the same ones, or "
                    "start a new run with --out"
                )
        except BaseException:
            stream.close()
            raise
        return cls(folder, settings, stream, events)

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
        self.export(optimizer)

    def asked(self, optimizer: Optimizer, rows: int, seconds: float) -> None:
        """Record a suggested batch."""
        state = optimizer.state_dict()
        self._append(
            {
                "event": "asked",
                "rows": [
                    {"string": row["string"], "key": row["key"], "context": row["context"]}
                    for row in state.pop("observations")[-rows:]
                ],
                "state": state,
                "seconds": round(seconds, 3),
            }
        )

    def evaluated(self, optimizer: Optimizer, evaluation: Evaluation) -> None:
        """Record one result."""
        self._append(
            {
                "event": "evaluated",
                "string": evaluation.string,
                "value": evaluation.value if evaluation.status == "ok" else None,
                "error": evaluation.error,
                "seconds": round(evaluation.seconds, 4),
            }
        )
        # The table is rewritten often while it is small and rarely once that takes long: the log has every result.
        if time.perf_counter() - self._exported > 20 * self._export_seconds:
            self.export(optimizer)

    def stepped(self, optimizer: Optimizer, step: Step) -> None:
        """Record a complete step."""
        self.steps.append(step)
        self._append({"event": "step", "step": asdict(step)})
        self.export(optimizer)

    def export(self, optimizer: Optimizer, extra: dict[str, Any] | None = None) -> None:
        """Rewrite ``evaluations.csv`` and ``summary.json``."""
        started = time.perf_counter()
        frame = optimizer.observations.to_frame()
        write_atomically(self.path / EVALUATIONS, frame.to_csv(index=False))
        measured = optimizer.observations.with_status("ok")
        best = optimizer.best if measured else None
        summary = {
            "status": self.status,
            "settings": self.settings,
            "best": best
            and {
                "string": best.string,
                "value": best.value,
                "number": next(i for i, row in enumerate(optimizer.observations.rows, start=1) if row is best),
            },
            "evaluations": len(frame),
            "failed": int((frame["status"] == "failed").sum()),
            "steps": [asdict(step) for step in self.steps],
            "timings": {
                "total_seconds": round(self._spent + time.perf_counter() - self._started, 2),
                "suggest_seconds": round(sum(step.seconds.get("suggest", 0.0) for step in self.steps), 2),
                "evaluate_seconds": round(sum(step.seconds.get("evaluate", 0.0) for step in self.steps), 2),
            },
            "versions": versions(),
        } | (extra or {})
        write_atomically(self.path / SUMMARY, json.dumps(summary, indent=2, ensure_ascii=False) + "\n")
        self._exported = time.perf_counter()
        self._export_seconds = self._exported - started

    def close(self, optimizer: Optimizer, status: str, extra: dict[str, Any] | None = None) -> None:
        """Write the exports a last time with ``status`` (``"finished"`` or ``"interrupted"``) and close the log."""
        self.status = status
        try:
            self.export(optimizer, extra)
        finally:
            self._stream.close()

    def _append(self, event: dict[str, Any]) -> None:
        self._stream.write(json.dumps(event, ensure_ascii=False, allow_nan=False) + "\n")
        self._stream.flush()
        os.fsync(self._stream.fileno())


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
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)


def _read(stream: IO[str], path: Path) -> list[dict[str, Any]]:
    """All complete events; a last line cut short by a crash is cut off, so that the next one starts afresh."""
    text = stream.read()
    complete = text[: text.rfind("\n") + 1]
    events = []
    for number, line in enumerate(complete.split("\n")[:-1], start=1):
        try:
            events.append(json.loads(line))
        except json.JSONDecodeError as error:
            raise RunFolderError(
                f"{path}, line {number}: damaged ({error.msg}): {line[:60]!r}. Remove that line, or start a new run "
                f"with --out; what was measured is in {EVALUATIONS}"
            ) from error
    if complete != text:
        stream.truncate(len(complete.encode("utf-8")))
    stream.seek(0, os.SEEK_END)
    return events


def _lock(stream: IO[str], folder: Path) -> None:
    try:
        import fcntl
    except ImportError:  # Windows has no advisory locks of this kind
        return
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise RunFolderError(f"another process is writing the run in {folder}: wait for it, or stop it") from error
