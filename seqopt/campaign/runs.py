"""A run on disk: a campaign file that is the truth, and readable exports of it.

``campaign.seqopt`` holds the settings, every batch as it was suggested (with what the optimiser needs to continue from
there) and every result as it came, each a transaction that is on disk before the run continues. Resuming replays it;
the commands for campaigns work on it, too. ``evaluations.csv`` and ``summary.json`` are exports, rewritten from the
state in memory and safe to delete.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from seqopt.campaign.errors import CampaignError, StaleStateError
from seqopt.campaign.locks import RunLock
from seqopt.campaign.predictions import interval, snapshot_of
from seqopt.campaign.rows import Measurement, NewMeasurement, NewSuggestion, Settings, Suggestion, storable
from seqopt.campaign.run_settings import RUN, compare_settings, plain
from seqopt.campaign.store import CampaignStore
from seqopt.errors import RunFolderError
from seqopt.evaluation import Evaluation
from seqopt.optimizer import Observation, Optimizer, Step
from seqopt.utils.files import write_atomically
from seqopt.utils.versions import versions

logger = logging.getLogger(__name__)

CAMPAIGN = "campaign.seqopt"
EVALUATIONS = "evaluations.csv"
SUMMARY = "summary.json"
OTHER_FILES = (EVALUATIONS, SUMMARY, "report.html", "search.png", "search.svg", "rejected.csv")

WITHDRAWN = "withdrawn"
"""Error of a string whose suggestion was withdrawn."""


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
    if resume:
        if not holds_something(folder):
            raise RunFolderError(f"{folder} holds no run to resume (no {CAMPAIGN}): leave --resume out to start one")
        return
    if CampaignStore.begun(folder / CAMPAIGN):
        raise RunFolderError(
            f"{folder} already holds a run: continue it with --resume, or choose another folder with --out"
        )
    taken = [name for name in OTHER_FILES if (folder / name).exists()]
    if taken:
        raise RunFolderError(
            f"{folder} holds {', '.join(taken)}, which a run would overwrite: choose another folder with --out"
        )


def holds_something(path: str | os.PathLike[str]) -> bool:
    """Whether a folder holds a run, including one that was killed before it began."""
    return Path(path, CAMPAIGN).exists()


@dataclass(frozen=True)
class _Ask:
    """One suggested batch: its rows, the rows of the table and the results when it was made, and what it took."""

    rows: list[Observation]
    end: int
    told: int
    batches: int
    seconds: float
    parameters: dict[str, float]


class RunFolder:
    """The folder of one run; implements `seqopt.optimizer.RunLog`.

    Use `create` or `resume`, then `restore`, pass it to `run_loop` or `run_asynchronously`, and `close` it.
    """

    def __init__(self, path: Path, settings: dict[str, Any], store: CampaignStore, lock: RunLock) -> None:
        self.path = path
        self.settings = settings
        self.status = "running"
        self._store = store
        self._lock = lock
        self._state = store.state
        self._asks: list[_Ask] = []
        self._told: list[Observation] = []
        self._waiting: dict[str, tuple[str, Observation]] = {}
        self._model: tuple[Any, Any, dict[str, float]] | None = None
        self._snapshot: int | None = None
        self._spent = 0.0
        self._started = time.perf_counter()
        self._exported = 0.0
        self._export_seconds = 0.0

    @classmethod
    def create(
        cls, path: str | os.PathLike[str], settings: Mapping[str, Any], campaign: Settings | None = None
    ) -> RunFolder:
        """Start a run in a folder that holds none.

        Args:
            path: The folder.
            settings: What describes the run; kept as JSON, other objects as their `str`. Those outside `ADJUSTABLE`
                must be the same on resumption.
            campaign: What the commands for campaigns know of it: see `seqopt.campaign.run_settings.run_settings`.

        Raises:
            RunFolderError: If the folder already holds a run, or cannot be written.
        """
        return cls._open(path, settings, campaign, resume=False)

    @classmethod
    def resume(
        cls, path: str | os.PathLike[str], settings: Mapping[str, Any], campaign: Settings | None = None
    ) -> RunFolder:
        """Open an existing run to continue it.

        Args:
            path: The folder.
            settings: As in `create`; compared with those of the run.
            campaign: As in `create`; for a run that was killed before it had made its file.

        Raises:
            RunFolderError: If there is no run, it is being written by another process, its file is damaged, or settings
                that decide the course of the run differ.
        """
        return cls._open(path, settings, campaign, resume=True)

    @classmethod
    def _open(
        cls, path: str | os.PathLike[str], settings: Mapping[str, Any], campaign: Settings | None, *, resume: bool
    ) -> RunFolder:
        check_folder(path, resume)
        folder, facts = Path(path), plain(settings)
        if campaign is None:
            campaign = Settings("value", extra={RUN: {"settings": facts, "versions": versions()}})
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock = RunLock(folder / CAMPAIGN)
        except OSError as error:
            raise RunFolderError(f"cannot write into {folder}: {error.strerror or error}") from error
        except CampaignError as error:
            raise RunFolderError(f"another process is writing the run in {folder}: wait for it, or stop it") from error
        try:
            with _explained(folder):
                return cls(folder, facts, _store(folder, facts, campaign, resume=resume), lock)
        except BaseException:
            lock.release()
            raise

    def restore(self, optimizer: Optimizer) -> None:
        """Bring a fresh optimiser to where the campaign is; what was suggested and not evaluated is pending again.

        What was suggested, recorded or withdrawn by hand since counts as what the run did; what was undone does not.
        """
        self._model = (optimizer.surrogate.state_dict(), _search_state(optimizer), {})
        with _explained(self.path), self._store.reading():
            self._state = self._store.state
            _Replay(self, self._store, optimizer).run()
        if self._asks:
            self.export(optimizer)

    def asked(self, optimizer: Optimizer, rows: int, seconds: float) -> None:
        """Record a suggested batch."""
        counters = optimizer.state_dict()
        arguments = {"asks": counters["asks"], "batches": counters["batches"], "seconds": round(seconds, 3)}
        suggested = optimizer.observations.rows[-rows:]
        model = (counters["surrogate"], counters.get("search"), counters["hyperparameters"])
        transform = self._transform(optimizer)
        new = [
            _new_suggestion(
                row,
                optimizer.acquisition.name,
                interval(*optimizer.predicted_measurement(row.key), transform),
            )
            for row in suggested
        ]
        with _explained(self.path):
            with self._store.transaction("suggest", arguments, expected_state=self._state) as change:
                number = self._snapshot
                if model != self._model:
                    number = change.add_snapshot(snapshot_of(optimizer, _search_state(optimizer)))
                chosen = any(row.mean is not None for row in new)
                made = change.add_suggestions(new, snapshot=number if chosen else None)
            self._committed(change.command)
        self._model, self._snapshot = model, number
        self._note_asked(optimizer, suggested, made, arguments, model[2])

    def evaluated(self, optimizer: Optimizer, evaluation: Evaluation) -> None:
        """Record one result."""
        name, row = self._waiting[evaluation.string]
        entry = NewMeasurement(
            row.string,
            row.key,
            row.value if row.values else None,
            None if row.values else storable(row.details["error"]),
            suggestion=name,
            details={"seconds": evaluation.seconds},
        )
        told = f"{row.string!r} " + (f"has the value {row.value!r}" if row.values else f"failed ({entry.failure})")
        with _explained(self.path, f"{told}, but that could not be recorded: "):
            with self._store.transaction("record", {"string": row.string}) as change:
                change.add_measurements([entry])
            self._committed(change.command)
        self._told.append(self._waiting.pop(evaluation.string)[1])
        # The table is rewritten often while it is small and rarely once that takes long: the campaign has every result.
        if time.perf_counter() - self._exported > 20 * self._export_seconds:
            self.export(optimizer)

    def stepped(self, optimizer: Optimizer) -> None:
        """Rewrite the exports after a complete step."""
        self.export(optimizer)

    def steps(self, optimizer: Optimizer) -> list[Step]:
        """Every complete step of the run, from the campaign and the optimiser's table.

        A step is a batch; of an asynchronous run, which has none, it is as many results, in the order in which they
        came.
        """
        if self.settings.get("asynchronous"):
            return self._steps_by_results(optimizer)
        steps = []
        for ask in self._asks:
            if any(row.status == "pending" for row in ask.rows):
                break
            rows = optimizer.observations.rows[: ask.end]
            steps.append(_step(optimizer, ask.batches, rows, ask.rows, ask.seconds, ask.parameters))
        return steps

    def _steps_by_results(self, optimizer: Optimizer) -> list[Step]:
        ends = [0, *range(optimizer.initial, len(self._told) + 1, optimizer.batch_size)]
        if ends[-1] < len(self._told) and not optimizer.pending:
            ends.append(len(self._told))
        steps = []
        for number, (start, end) in enumerate(pairwise(ends)):
            asks = [ask for ask in self._asks if ask.told < end]
            seconds = sum(ask.seconds for ask in asks if ask.told >= start)
            parameters = asks[-1].parameters if asks else {}
            steps.append(_step(optimizer, number, self._told[:end], self._told[start:end], seconds, parameters))
        return steps

    def export(self, optimizer: Optimizer) -> None:
        """Rewrite ``evaluations.csv`` and ``summary.json``; a failure is reported, the campaign has everything."""
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
            logger.warning(
                "the tables in %s could not be rewritten (%s); %s has every result that was recorded",
                self.path,
                error.strerror or error,
                CAMPAIGN,
            )
        self._exported = time.perf_counter()
        self._export_seconds = self._exported - started

    def close(self, optimizer: Optimizer, status: str) -> None:
        """Write the exports a last time with ``status`` (``"finished"`` or ``"interrupted"``) and let go of the run."""
        self.status = status
        try:
            self.export(optimizer)
        finally:
            self._store.close()
            self._lock.release()

    def _committed(self, command: int) -> None:
        # After a command of somebody else the state stays behind: nothing is suggested from what is out of date.
        if command == self._state + 1:
            self._state = command

    def _note_asked(
        self,
        optimizer: Optimizer,
        rows: list[Observation],
        made: list[Suggestion],
        arguments: Mapping[str, Any],
        parameters: dict[str, float],
    ) -> None:
        self._waiting |= {row.string: (suggestion.name, row) for row, suggestion in zip(rows, made, strict=True)}
        end, told = len(optimizer.observations), len(self._told)
        seconds = arguments.get("seconds", 0.0)
        self._asks.append(_Ask(rows, end, told, arguments["batches"], seconds, parameters))

    @staticmethod
    def _transform(optimizer: Optimizer) -> str | None:
        return None if optimizer.transform.name == "none" else optimizer.transform.name


class _Replay:
    """Does again, in an optimiser and a folder's notes, what the commands of a campaign have done."""

    def __init__(self, folder: RunFolder, store: CampaignStore, optimizer: Optimizer) -> None:
        self.folder = folder
        self.optimizer = optimizer
        self.counters = {"asks": 0, "batches": 0}
        self.parameters: dict[str, float] = {}
        self.fresh = optimizer.surrogate.state_dict()
        self.commands = [command for command in store.history() if command.undone_by is None]
        self.suggestions = _by_command(store.suggestions())
        self.measurements = _by_command(store.measurements())
        self.withdrawals = _by_command(store.withdrawals())
        self.snapshots = {snapshot.made_by: snapshot for snapshot in store.snapshots()}
        self.named = {row.name: row for rows in self.suggestions.values() for row in rows}
        latest = store.latest_snapshot()
        self.latest = None if latest is None else latest.id
        self.model = None if latest is None else store.snapshot_state(latest.id)

    def run(self) -> None:
        """Replay everything."""
        for command in self.commands:
            if command.kind == "suggest":
                self._suggest(command.id, command.arguments)
            for measurement in self.measurements.get(command.id, ()):
                self._measure(measurement)
            for withdrawal in self.withdrawals.get(command.id, ()):
                self._withdraw(self.named[withdrawal.suggestion])
        if self.model is None:
            return
        surrogate = dict(self.model)
        search = surrogate.pop("search", None)
        state = self.counters | {"surrogate": surrogate, "hyperparameters": self.parameters}
        self.optimizer.replay_ask([], state | ({} if search is None else {"search": search}))
        self.folder._model = (surrogate, search, self.parameters)
        self.folder._snapshot = self.latest

    def _suggest(self, command: int, arguments: Mapping[str, Any]) -> None:
        # A batch that was suggested by hand is counted, too.
        asks, batches = self.counters["asks"] + 1, self.counters["batches"] + 1
        self.counters = {"asks": arguments.get("asks", asks), "batches": arguments.get("batches", batches)}
        if command in self.snapshots:
            self.parameters = self.snapshots[command].summary["parameters"]
        made = self.suggestions.get(command, [])
        rows = [
            {
                "string": row.string,
                "key": row.key,
                "details": {
                    "batch": self.counters["batches"],
                    "predicted_mean": row.mean,
                    "predicted_std": row.std,
                    "acquisition": row.score,
                },
            }
            for row in made
        ]
        self.optimizer.replay_ask(rows, self.counters | {"surrogate": self.fresh, "hyperparameters": self.parameters})
        known = self.optimizer.observations.rows
        self.folder._spent += arguments.get("seconds", 0.0)
        self.folder._note_asked(
            self.optimizer, known[len(known) - len(made) :], made, self.counters | dict(arguments), self.parameters
        )

    def _measure(self, measurement: Measurement) -> None:
        seconds = measurement.details.get("seconds")
        self.optimizer.tell(
            [measurement.string],
            [float("nan") if measurement.value is None else measurement.value],
            standard_errors=None if measurement.standard_error is None else [measurement.standard_error],
            errors=[measurement.failure],
            seconds=[seconds],
        )
        self.folder._spent += seconds or 0.0
        self._told(measurement.string, measurement.key)

    def _withdraw(self, suggestion: Suggestion) -> None:
        self.optimizer.tell([suggestion.string], [float("nan")], errors=[WITHDRAWN])
        self._told(suggestion.string, suggestion.key)

    def _told(self, string: str, key: str) -> None:
        """Note the row of a result: one that was waiting, or a new one."""
        waiting = self.folder._waiting
        if string not in waiting or waiting[string][1].key != key:
            string = next((other for other, (_, row) in waiting.items() if row.key == key), "")
        row = waiting.pop(string)[1] if string else self.optimizer.observations.rows[-1]
        self.folder._told.append(row)


def _by_command(rows: list[Any]) -> dict[int, list[Any]]:
    groups: dict[int, list[Any]] = {}
    for row in rows:
        groups.setdefault(row.made_by, []).append(row)
    return groups


def _store(folder: Path, facts: dict[str, Any], campaign: Settings, *, resume: bool) -> CampaignStore:
    """The open campaign of a folder, made where there is none yet."""
    file = folder / CAMPAIGN
    if not CampaignStore.begun(file):
        return CampaignStore.create(file, campaign)
    # Another process may have begun a run since the folder was looked at.
    check_folder(folder, resume)
    store = CampaignStore.open(file)
    try:
        compare_settings(store.settings, facts, folder)
    except BaseException:
        store.close()
        raise
    return store


def _search_state(optimizer: Optimizer) -> dict[str, Any] | None:
    state: dict[str, Any] | None = optimizer.state_dict().get("search")
    return state


def _new_suggestion(row: Observation, acquisition: str, bounds: tuple[float | None, float | None]) -> NewSuggestion:
    mean, std = row.details["predicted_mean"], row.details["predicted_std"]
    low, high = bounds
    reason = {"kind": "random"} if mean is None else {}
    score = row.details["acquisition"]
    chosen_by = "random" if mean is None else acquisition
    return NewSuggestion(row.string, row.key, mean, std, low, high, chosen_by, score, reason)


def _step(
    optimizer: Optimizer,
    number: int,
    rows: list[Observation],
    batch: list[Observation],
    seconds: float,
    parameters: dict[str, float],
) -> Step:
    best = optimizer.best_of(rows)
    return Step(
        step=number,
        evaluations=len(rows),
        failed=sum(row.status == "failed" for row in rows),
        best=None if best is None else best.value,
        seconds={
            "suggest": round(seconds, 3),
            "evaluate": round(sum(row.details.get("seconds") or 0.0 for row in batch), 3),
        },
        kernel=parameters if number else {},
    )


@contextmanager
def _explained(folder: Path, before: str = "") -> Iterator[None]:
    """Errors of the campaign as those of the run that it belongs to, behind what is to be said first."""
    try:
        yield
    except StaleStateError as error:
        raise RunFolderError(
            f"the campaign of the run in {folder} was changed by another command during the run. All results "
            "are kept: continue with --resume"
        ) from error
    except CampaignError as error:
        raise RunFolderError(
            f"{before}{error}. When that is fixed, continue with --resume; what was measured is in "
            f"{folder / EVALUATIONS}, too, unless a warning says that it could not be written"
        ) from error
