"""The file of a campaign: every command one transaction, nothing ever lost.

One SQLite file with write-ahead logging; each commit is flushed to the disk before the command reports success. The
tables and what always holds of them are described in `seqopt.campaign.schema`. Nothing here needs torch, RDKit or
numpy: opening a campaign takes milliseconds.

Keep the file on a disk of the machine that works with it: on a network drive two machines would not see each other's
locks. While it is open, two more files lie beside it (``-wal`` and ``-shm``); after a crash they belong to it, and a
copy needs the first of them, too. Opening the campaign once makes it a single file again.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import sqlite3
import tempfile
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PureWindowsPath
from types import TracebackType
from typing import Any

import seqopt
from seqopt.campaign import schema
from seqopt.campaign.errors import CampaignError, StaleStateError
from seqopt.campaign.rows import (
    UNDOABLE,
    Command,
    Counts,
    Measurement,
    NewMeasurement,
    NewSnapshot,
    NewSuggestion,
    Observed,
    Settings,
    Snapshot,
    Suggestion,
    Withdrawal,
)
from seqopt.errors import InputError

TIMEOUT = 10.0
"""Seconds that a command waits for another one to finish."""

LARGEST_VALUE = 1e150
"""Larger values are not measurements, and their squares would overflow."""

_INTACT = "Everything committed before is intact"

_MAKES = {
    "create": {"settings"},
    "configure": {"settings"},
    "suggest": {"suggestions", "snapshots"},
    "fit": {"snapshots"},
    "record": {"measurements"},
    "import": {"measurements"},
    "withdraw": {"withdrawals"},
    "undo": set(),
}

_STATUS = """CASE
    WHEN s.undone_by IS NOT NULL THEN 'undone'
    WHEN EXISTS (SELECT 1 FROM measurements m
        WHERE m.suggestion = s.id AND m.undone_by IS NULL AND m.value IS NOT NULL) THEN 'measured'
    WHEN EXISTS (SELECT 1 FROM measurements m WHERE m.suggestion = s.id AND m.undone_by IS NULL) THEN 'failed'
    WHEN EXISTS (SELECT 1 FROM withdrawals w WHERE w.suggestion = s.id AND w.undone_by IS NULL) THEN 'withdrawn'
    ELSE 'open' END"""

_SUGGESTIONS = f"""SELECT s.string, s.key, s.mean, s.std, s.low, s.high, s.acquisition, s.score, s.reason,
    s.id, s.name, s.batch, s.position, s.snapshot, {_STATUS} AS status, s.made_by, s.undone_by FROM suggestions s"""

_MEASUREMENTS = """SELECT m.string, m.key, m.value, m.failure, m.standard_error, m.replicate, m.source, m.line,
    s.name, m.details, m.id, m.made_by, m.undone_by
    FROM measurements m LEFT JOIN suggestions s ON s.id = m.suggestion"""

_COMMANDS = """SELECT c.id, c.time, c.kind, c.arguments, c.version, c.changes, c.undoes, u.id
    FROM commands c LEFT JOIN commands u ON u.undoes = c.id"""


class CampaignStore:
    """A campaign on disk; made by `create` and `open`, and used by one thread of one process.

    Reading needs nothing further; several reads that must agree with each other belong in `reading`. Writing is only
    possible in `transaction`. A file that cannot be written is read all the same; if its folder cannot be written,
    either, from a copy in the folder for temporary files.

    Attributes:
        path: The file.

    Example:
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> store = CampaignStore.create(Path(folder.name, "kinase.seqopt"), Settings("pIC50"))
        >>> with store.transaction("suggest", {"n": 2}, expected_state=store.state) as change:
        ...     batch = change.add_suggestions([NewSuggestion("CCO", "CCO"), NewSuggestion("OCC=O", "O=CCO")])
        >>> [suggestion.name for suggestion in batch]
        ['B01-01', 'B01-02']
        >>> with store.transaction("record", {"string": "CCO"}) as change:
        ...     rows = change.add_measurements([NewMeasurement("CCO", "CCO", 6.5)])
        >>> [suggestion.name for suggestion in store.open_suggestions()], store.best().mean()
        (['B01-02'], 6.5)
        >>> store.undo().describe()
        'record CCO: 1 measurement'
        >>> len(store.open_suggestions())
        2
        >>> store.close(); folder.cleanup()
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, timeout: float) -> None:
        self.path = path
        self._connection = connection
        self._timeout = timeout
        self._process = os.getpid()
        self._depth = 0
        self._copy: tempfile.TemporaryDirectory[str] | None = None

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        settings: Settings,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float = TIMEOUT,
        factory: type[sqlite3.Connection] = sqlite3.Connection,
    ) -> CampaignStore:
        """Make a campaign file.

        Interrupted at any moment, it leaves a whole campaign or an empty file, which `create` takes.

        Args:
            path: The file; there must be none, or an empty one.
            settings: What the campaign is about.
            arguments: Kept with the command, besides what every file needs.
            timeout: Seconds to wait for another process.
            factory: The class of connections; for tests that inject faults.

        Raises:
            CampaignError: If there is a file already, or it cannot be written.
        """
        file = Path(path)
        if file.is_dir():
            raise CampaignError(f"{file} is a folder: name a file for the campaign")
        if not file.parent.is_dir():
            raise CampaignError(f"there is no folder {file.parent} to create the campaign {file.name} in")
        taken = CampaignError(f"{file} exists already: open it, or choose another name")
        if cls.begun(file):
            raise taken
        with _explained(file, timeout):
            try:
                store = cls(file, _connect(file, "rwc", timeout, factory), timeout)
            except sqlite3.DatabaseError as error:
                if _code(error) == sqlite3.SQLITE_NOTADB:
                    raise taken from error
                raise
            try:
                if not schema.is_blank(store._connection):
                    raise taken
                # On file systems without shared memory the answer is another journal, which is as safe, only slower.
                store._connection.execute("PRAGMA journal_mode = WAL")
                with store._write("create", dict(arguments or {}), None, blank=True) as change:
                    schema.create_tables(store._connection)
                    change.save_settings(settings)
            except BaseException:
                store.close()
                raise
        return store

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        timeout: float = TIMEOUT,
        factory: type[sqlite3.Connection] = sqlite3.Connection,
    ) -> CampaignStore:
        """Open a campaign; what cannot be opened stays as it is, to the byte.

        Args:
            path: The file.
            timeout: Seconds to wait for another process.
            factory: The class of connections; for tests that inject faults.

        Raises:
            CampaignError: If there is no such file, it is no campaign, one of another version, damaged, or not to be
                read.
        """
        file = Path(path)
        if file.is_dir():
            raise CampaignError(f"{file} is a folder: name the file of a campaign")
        if not file.exists():
            raise CampaignError(f"there is no campaign {file}: create it first")
        with _explained(file, timeout):
            try:
                return cls._open(file, file, timeout, factory)
            except sqlite3.OperationalError as error:
                if _code(error) not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY) or not _readable(file):
                    raise
        copy = _copy_of(file)
        try:
            with _explained(file, timeout):
                store = cls._open(file, Path(copy.name, file.resolve().name), timeout, factory)
        except BaseException:
            copy.cleanup()
            raise
        store._copy = copy
        return store

    @classmethod
    def begun(cls, path: str | os.PathLike[str]) -> bool:
        """Whether there is a file that holds anything: not where the making of a campaign was interrupted.

        Nothing is changed, and a file that cannot be read counts.
        """
        file = Path(path)
        if not file.exists():
            return False
        # With nothing in the log the file is whole; a connection that may not write would leave an empty log behind.
        how = "mode=ro" if _logged(file) else "mode=ro&immutable=1"
        try:
            connection = sqlite3.connect(f"{file.resolve().as_uri()}?{how}", uri=True, timeout=TIMEOUT)
            with contextlib.closing(connection):
                return not schema.is_blank(connection)
        except sqlite3.Error:
            return True

    @classmethod
    def _open(cls, path: Path, file: Path, timeout: float, factory: type[sqlite3.Connection]) -> CampaignStore:
        if _logged(file):
            # The last connection that may write moves the log into the file when it is closed, whatever the file is.
            with contextlib.closing(_connect(file, "ro", timeout, sqlite3.Connection)) as connection:
                schema.check_version(connection, str(path))
        store = cls(path, _connect(file, "rw", timeout, factory), timeout)
        try:
            schema.check_version(store._connection, str(path))
        except BaseException:
            store.close()
            raise
        return store

    def close(self) -> None:
        """Close the file; what was committed is on the disk already."""
        self._connection.close()
        if self._copy is not None:
            self._copy.cleanup()

    def __enter__(self) -> CampaignStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # Reading

    @property
    def state(self) -> int:
        """The number of the last command: what a command was worked out from, for ``expected_state``."""
        return int(self._rows("SELECT max(id) FROM commands")[0][0])

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Inside the block, all reads see the campaign as it is at the first of them, whatever others commit."""
        if self._depth:
            yield
            return
        try:
            # Inside the block, so that an interruption right after it leaves no transaction open.
            with _explained(self.path, self._timeout):
                self._connection.execute("BEGIN")
            self._depth = 1
            yield
        finally:
            self._depth = 0
            if self._connection.in_transaction:
                self._connection.execute("COMMIT")

    @property
    def settings(self) -> Settings:
        """What the campaign is about."""
        query = "SELECT contents FROM settings WHERE undone_by IS NULL ORDER BY id DESC LIMIT 1"
        return Settings.from_json(json.loads(self._rows(query)[0][0]))

    @property
    def library(self) -> dict[str, Any] | None:
        """What is known of the file of candidates, if there is one.

        Where it is no longer at the path that is kept, but a file of its name lies beside the campaign, as after the
        folder of both was moved or sent to somebody, ``"path"`` leads there.
        """
        pool = self.settings.pool
        if pool is None or Path(pool["path"]).exists():
            return pool
        # Which splits the paths of any system.
        beside = self.path.absolute().parent / PureWindowsPath(pool["path"]).name
        return pool | {"path": str(beside)} if beside.is_file() else pool

    def suggestions(
        self, status: str | Collection[str] | None = None, *, batch: int | None = None, undone: bool = False
    ) -> list[Suggestion]:
        """Suggestions in the order in which they were made.

        Args:
            status: Only those of this status, or of one of these.
            batch: Only those of this batch.
            undone: Also those that were undone.
        """
        wanted = None if status is None else {status} if isinstance(status, str) else set(status)
        rows = map(_suggestion, self._rows(f"{_SUGGESTIONS} ORDER BY s.id"))
        return [
            row
            for row in rows
            if (undone or row.undone_by is None)
            and (wanted is None or row.status in wanted)
            and (batch is None or row.batch == batch)
        ]

    def open_suggestions(self) -> list[Suggestion]:
        """Suggestions that await a result, oldest first."""
        return self.suggestions("open")

    def suggestion(self, name: str) -> Suggestion | None:
        """The suggestion of this name, be it undone, or `None`."""
        rows = self._rows(f"{_SUGGESTIONS} WHERE s.name = ?", (name,))
        return _suggestion(rows[0]) if rows else None

    def measurements(self, *, key: str | None = None, undone: bool = False) -> list[Measurement]:
        """Measurements one by one, in the order in which they were recorded.

        Args:
            key: Only those of this key.
            undone: Also those that were undone.
        """
        conditions = ["1"] if undone else ["m.undone_by IS NULL"]
        if key is not None:
            conditions.append("m.key = ?")
        query = f"{_MEASUREMENTS} WHERE {' AND '.join(conditions)} ORDER BY m.id"
        return [_measurement(row) for row in self._rows(query, () if key is None else (key,))]

    def observations(self) -> list[Observed]:
        """Measurements grouped by key, in the order in which the keys were first recorded."""
        groups: dict[str, list[Measurement]] = {}
        for row in self.measurements():
            groups.setdefault(row.key, []).append(row)
        return [Observed(key, rows[0].string, tuple(rows)) for key, rows in groups.items()]

    def best(self) -> Observed | None:
        """What has the best mean of its replicates, the first of equals; `None` before the first value.

        The mean is the geometric one if the campaign's transform is ``"log10"``.
        """
        with self.reading():
            settings, measured = self.settings, [group for group in self.observations() if group.values]
        sign = 1.0 if settings.direction == "maximize" else -1.0
        geometric = settings.transform == "log10"
        return max(measured, key=lambda group: sign * group.mean(geometric=geometric), default=None)

    def counts(self) -> Counts:
        """How far the campaign is."""
        with self.reading():
            statuses = dict(self._rows(f"SELECT {_STATUS} AS status, count(*) FROM suggestions s GROUP BY status"))
            batches = self._rows("SELECT count(DISTINCT batch) FROM suggestions WHERE undone_by IS NULL")[0][0]
            totals = self._rows(
                "SELECT count(DISTINCT CASE WHEN value IS NOT NULL THEN key END), count(value), count(failure) "
                "FROM measurements WHERE undone_by IS NULL"
            )[0]
        by_status = [statuses.get(status, 0) for status in ("open", "measured", "failed", "withdrawn")]
        return Counts(*[*by_status, batches, *totals])

    def withdrawals(self, *, undone: bool = False) -> list[Withdrawal]:
        """Withdrawals, oldest first; with ``undone`` also those that were undone."""
        query = (
            "SELECT w.id, s.name, w.reason, w.made_by, w.undone_by "
            "FROM withdrawals w JOIN suggestions s ON s.id = w.suggestion ORDER BY w.id"
        )
        return [row for row in (Withdrawal(*row) for row in self._rows(query)) if undone or row.undone_by is None]

    def history(self) -> list[Command]:
        """All commands, oldest first, with what they did."""
        return [_command(row) for row in self._rows(f"{_COMMANDS} ORDER BY c.id")]

    def command(self, number: int) -> Command:
        """One command.

        Raises:
            InputError: If there is none of this number.
        """
        rows = self._rows(f"{_COMMANDS} WHERE c.id = ?", (number,))
        if not rows:
            raise InputError(f"there is no command {number}; the last one is {self.state}")
        return _command(rows[0])

    def next_undo(self) -> Command | None:
        """The command that `undo` would take back now, or `None`."""
        kinds = ", ".join("?" * len(UNDOABLE))
        query = f"{_COMMANDS} WHERE u.id IS NULL AND c.kind IN ({kinds}) ORDER BY c.id DESC LIMIT 1"
        rows = self._rows(query, UNDOABLE)
        return _command(rows[0]) if rows else None

    def recorded_files(self) -> dict[str, Command]:
        """Checksums (``"sha256"`` of the arguments) of the files that were recorded and not undone."""
        return {
            command.arguments["sha256"]: command
            for command in self.history()
            if command.kind in ("record", "import")
            and command.undone_by is None
            and isinstance(command.arguments.get("sha256"), str)
        }

    def snapshots(self, *, undone: bool = False) -> list[Snapshot]:
        """Stored models, oldest first; with ``undone`` also those that were undone."""
        query = "SELECT id, surrogate, n, summary, made_by, undone_by FROM snapshots ORDER BY id"
        return [row for row in map(_snapshot, self._rows(query)) if undone or row.undone_by is None]

    def latest_snapshot(self) -> Snapshot | None:
        """The model that was stored last and not undone, or `None`."""
        query = (
            "SELECT id, surrogate, n, summary, made_by, undone_by FROM snapshots "
            "WHERE undone_by IS NULL ORDER BY id DESC LIMIT 1"
        )
        rows = self._rows(query)
        return _snapshot(rows[0]) if rows else None

    def snapshot_state(self, number: int) -> Any:
        """What restores stored model ``number`` exactly; `None` if nothing was stored for that.

        Raises:
            InputError: If there is none of this number.
        """
        rows = self._rows("SELECT state FROM snapshots WHERE id = ?", (number,))
        if not rows:
            raise InputError(f"there is no stored model {number}")
        return None if rows[0][0] is None else json.loads(zlib.decompress(rows[0][0]))

    def check(self) -> list[str]:
        """What is wrong with the file, by the invariants of `seqopt.campaign.schema`; empty if nothing is."""
        from seqopt.campaign.checking import violations

        with self.reading(), _explained(self.path, self._timeout):
            return violations(self._connection)

    # Writing

    @contextmanager
    def transaction(
        self, kind: str, arguments: Mapping[str, Any] | None = None, *, expected_state: int | None = None
    ) -> Iterator[Change]:
        """One command: all that is done with the `Change` in the block is kept together, or nothing is.

        Another process that writes is waited for, and the block begins on what it left. What the block reads cannot
        change before it ends: a command that is quick to work out does so inside. One that takes long, as a suggestion
        does, is worked out before, and gives the `state` that it was worked out from.

        Args:
            kind: ``"suggest"``, ``"record"``, ``"import"``, ``"withdraw"``, ``"configure"``, ``"fit"`` or ``"undo"``.
            arguments: What the user gave, as JSON values. A file that is recorded has ``"file"`` and ``"sha256"``.
            expected_state: The state that the command was worked out from. ``"suggest"`` needs it, so that two
                processes never suggest the same strings.

        Raises:
            StaleStateError: If another command has been committed since ``expected_state``: read again, work it out
                again.
            CampaignError: If the file cannot be written, a rule of the campaign would be broken, or nothing would be
                changed.
            InputError: For an unknown ``kind``, or arguments that JSON cannot hold.
        """
        # Only `create` gives the command of that name.
        if kind not in _MAKES or kind == "create":
            kinds = ", ".join(known for known in _MAKES if known != "create")
            raise InputError(f"unknown kind of command {kind!r}: choose {kinds}")
        if kind == "suggest" and expected_state is None:
            raise InputError("a suggestion needs expected_state: the state that it was worked out from")
        with self._write(kind, dict(arguments or {}), expected_state) as change:
            yield change

    def undo(self, *, expected_state: int | None = None) -> Command:
        """Take back the last command that records, imports, suggests, withdraws or configures, and is not undone.

        It is a command, too. An undo is not undone: undoing again takes back the command before. What was taken back
        stays in the file and in `history`.

        Args:
            expected_state: As in `transaction`.

        Returns:
            The command that was taken back.

        Raises:
            CampaignError: If there is nothing to undo.
        """
        with self.transaction("undo", expected_state=expected_state) as change:
            return change.undo()

    @contextmanager
    def _write(
        self, kind: str, arguments: dict[str, Any], expected_state: int | None, *, blank: bool = False
    ) -> Iterator[Change]:
        if self._depth:
            raise CampaignError("a command cannot begin inside another one, or inside reading()")
        if os.getpid() != self._process:
            raise CampaignError(f"{self.path} was opened by another process: open it again in this one")
        if self._copy is not None:
            raise CampaignError(f"{self.path} cannot be written, nor can its folder. {_INTACT}, and can be read")
        connection = self._connection
        with _explained(self.path, self._timeout):
            try:
                # Inside the block, so that an interruption right after it leaves no transaction open.
                connection.execute("BEGIN IMMEDIATE")
                self._depth = 1
                if blank and not schema.is_blank(connection):
                    raise CampaignError(f"{self.path} was just created by another process: open it")
                state = 0 if blank else self.state
                if expected_state is not None and state != expected_state:
                    raise StaleStateError(
                        f"{self.path} has changed since this was worked out (command {state} is the last one now, it "
                        f"was {expected_state} then). Nothing was changed: do it again"
                    )
                change = Change(self, connection, kind, arguments, state + 1)
                yield change
                if not change.changes:
                    raise CampaignError(f"{kind} would change nothing, so it was not kept")
                written = _dump(change.arguments, f"the arguments of {kind}")
                connection.execute(
                    "INSERT INTO commands (id, time, kind, arguments, version, changes, undoes) "
                    "VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (
                        change.command,
                        schema.now(),
                        kind,
                        written,
                        seqopt.__version__,
                        json.dumps(change.changes),
                        change.undoes,
                    ),
                )
                connection.execute("COMMIT")
            except BaseException:
                # SQLite itself rolls back after some errors, a full disk among them.
                if connection.in_transaction:
                    with contextlib.suppress(sqlite3.Error):
                        connection.execute("ROLLBACK")
                raise
            finally:
                self._depth = 0

    def _rows(self, query: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        try:
            with _explained(self.path, self._timeout):
                return self._connection.execute(query, parameters).fetchall()
        except UnicodeEncodeError as error:
            raise _no_text(error) from error


class Change:
    """What one command writes; given by `CampaignStore.transaction`.

    Attributes:
        command: The number of the command; the state of the campaign once it is committed.
        arguments: What is kept of what the user gave; may be added to.
        changes: Rows made so far, by table.
        undoes: The command that this one takes back.
    """

    def __init__(
        self,
        store: CampaignStore,
        connection: sqlite3.Connection,
        kind: str,
        arguments: dict[str, Any],
        command: int,
    ) -> None:
        self.command = command
        self.arguments = arguments
        self.changes: dict[str, int] = {}
        self.undoes: int | None = None
        self._store = store
        self._connection = connection
        self._kind = kind

    def save_settings(self, settings: Settings) -> None:
        """Let these settings count from now on."""
        self._insert("settings", [{"contents": _dump(settings.to_json(), "the settings")}])

    def add_snapshot(self, snapshot: NewSnapshot) -> int:
        """Store a model, and return its number.

        Raises:
            InputError: For what JSON cannot hold.
        """
        state = None
        if snapshot.state is not None:
            state = zlib.compress(_dump(snapshot.state, "the state of a model").encode("utf-8", "surrogatepass"))
        row = {
            "surrogate": snapshot.surrogate,
            "n": snapshot.n,
            "summary": _dump(snapshot.summary, "the summary of a model"),
            "state": state,
        }
        return self._insert("snapshots", [row])[0]

    def add_suggestions(self, suggestions: Iterable[NewSuggestion], *, snapshot: int | None = None) -> list[Suggestion]:
        """Add a batch of suggestions, or more to the batch of this command.

        Args:
            suggestions: In the order in which people shall see them.
            snapshot: The number of the model that chose them.

        Returns:
            The suggestions with their names.

        Raises:
            CampaignError: If a string is open already, or occurs twice, or there is no such model.
            InputError: For numbers that are not finite, or what JSON cannot hold.
        """
        new = list(suggestions)
        query = "SELECT count(*) FROM snapshots WHERE id = ? AND undone_by IS NULL"
        if snapshot is not None and not self._connection.execute(query, (snapshot,)).fetchone()[0]:
            raise CampaignError(f"there is no stored model {snapshot}, or it was undone")
        query = "SELECT batch FROM suggestions WHERE made_by <> ? ORDER BY batch DESC LIMIT 1"
        last = self._connection.execute(query, (self.command,)).fetchone()
        batch = (last[0] if last else 0) + 1
        place = self.changes.get("suggestions", 0)
        names: dict[str, str] = {}
        rows = []
        for position, suggestion in enumerate(new, start=place + 1):
            name = f"B{batch:02d}-{position:02d}"
            taken = names.get(suggestion.key) or self._open_name(suggestion.key)
            if taken is not None:
                raise CampaignError(
                    f"{suggestion.string!r} is suggested already, as {taken}: record its result or withdraw it first"
                )
            names[suggestion.key] = name
            numbers = {item: getattr(suggestion, item) for item in ("mean", "std", "low", "high", "score")}
            for item, number in numbers.items():
                if number is not None and not math.isfinite(number):
                    raise InputError(f"the {item} of suggestion {suggestion.string!r} is {number}")
            rows.append(
                numbers
                | {
                    "name": name,
                    "batch": batch,
                    "position": position,
                    "string": suggestion.string,
                    "key": suggestion.key,
                    "acquisition": suggestion.acquisition,
                    "reason": _dump(suggestion.reason, f"the reason for {suggestion.string!r}"),
                    "snapshot": snapshot,
                }
            )
        self._insert("suggestions", rows)
        query = f"{_SUGGESTIONS} WHERE s.batch = ? AND s.position > ? ORDER BY s.id"
        return [_suggestion(row) for row in self._store._rows(query, (batch, place))]

    def add_measurements(self, measurements: Iterable[NewMeasurement]) -> list[Measurement]:
        """Add values and failures.

        Each answers the suggestion that it names, or else one of its key: an open one, or the latest. No value is
        refused because the string has one already; `seqopt.campaign.read_results` asks the user about that.

        Returns:
            The measurements with their suggestions.

        Raises:
            CampaignError: If a suggestion is unknown, undone, or of another string.
            InputError: For an entry that is neither a value nor a failure, or both, or not finite.
        """
        rows = []
        for entry in measurements:
            _check_measurement(entry)
            if entry.suggestion is None:
                answered = self._latest_of(entry.key)
            else:
                answered = self._store.suggestion(entry.suggestion)
                if answered is None or answered.undone_by is not None:
                    raise CampaignError(f"there is no suggestion {entry.suggestion!r}, or it was undone")
                if answered.key != entry.key:
                    raise CampaignError(
                        f"suggestion {entry.suggestion} is {answered.string!r}, but the result is for {entry.string!r}"
                    )
            rows.append(
                {
                    "string": entry.string,
                    "key": entry.key,
                    "value": None if entry.value is None else float(entry.value),
                    "failure": entry.failure,
                    "standard_error": None if entry.standard_error is None else float(entry.standard_error),
                    "source": entry.source,
                    "line": entry.line,
                    "suggestion": None if answered is None else answered.id,
                    "replicate": entry.replicate,
                    "details": _dump(entry.details, f"the details of {entry.string!r}"),
                }
            )
        numbers = self._insert("measurements", rows)
        query = f"{_MEASUREMENTS} WHERE m.id BETWEEN ? AND ? ORDER BY m.id"
        return [_measurement(row) for row in self._store._rows(query, (numbers[0], numbers[-1]))] if numbers else []

    def withdraw(self, names: Iterable[str], reason: str = "") -> None:
        """Withdraw open suggestions.

        Raises:
            CampaignError: If one is unknown, or not open.
        """
        rows = []
        for name in dict.fromkeys(names):
            known = self._store.suggestion(name)
            if known is None:
                raise CampaignError(f"there is no suggestion {name!r}")
            if known.status != "open":
                raise CampaignError(f"suggestion {name} is {known.status}, not open: it cannot be withdrawn")
            rows.append({"suggestion": known.id, "reason": reason})
        self._insert("withdrawals", rows)

    def undo(self) -> Command:
        """Take back the last command that can be; see `CampaignStore.undo`."""
        if self._kind != "undo" or self.undoes is not None:
            raise InputError("a command of kind undo takes back one other, and does nothing else")
        last = self._store.next_undo()
        if last is None:
            raise CampaignError("there is nothing to undo")
        self.undoes = last.id
        for table in schema.TABLES:
            update = f"UPDATE {table} SET undone_by = ? WHERE made_by = ?"
            undone = self._connection.execute(update, (self.command, last.id)).rowcount
            if undone:
                self.changes[table] = undone
        return self._store.command(last.id)

    def _open_name(self, key: str) -> str | None:
        """The name under which a key is open."""
        known = self._latest_of(key)
        return known.name if known is not None and known.status == "open" else None

    def _latest_of(self, key: str) -> Suggestion | None:
        """The suggestion of a key that is open, or else the latest, by the index of keys."""
        query = (
            f"{_SUGGESTIONS} WHERE s.key = ? AND s.undone_by IS NULL ORDER BY status = 'open' DESC, s.id DESC LIMIT 1"
        )
        rows = self._store._rows(query, (key,))
        return _suggestion(rows[0]) if rows else None

    def _insert(self, table: str, rows: Sequence[Mapping[str, Any]]) -> range:
        if table not in _MAKES[self._kind]:
            raise InputError(f"a command of kind {self._kind} makes no {table}")
        if not rows:
            return range(0)
        first = (self._connection.execute(f"SELECT max(id) FROM {table}").fetchone()[0] or 0) + 1
        columns = [*rows[0], "id", "made_by"]
        marks = ", ".join("?" * len(columns))
        try:
            self._connection.executemany(
                f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})",
                ([*row.values(), first + number, self.command] for number, row in enumerate(rows)),
            )
        except UnicodeEncodeError as error:
            raise _no_text(error) from error
        self.changes[table] = self.changes.get(table, 0) + len(rows)
        return range(first, first + len(rows))


def _no_text(error: UnicodeEncodeError) -> InputError:
    return InputError(f"{error.object!r} is not text that can be stored")


def _check_measurement(entry: NewMeasurement) -> None:
    if (entry.value is None) == (entry.failure is None):
        raise InputError(f"{entry.string!r} needs a value or a reason for its failure, and not both")
    if entry.value is not None and not abs(entry.value) <= LARGEST_VALUE:
        raise InputError(f"the value of {entry.string!r} is {entry.value}; expected a number up to {LARGEST_VALUE:g}")
    error = entry.standard_error
    if error is not None and not (entry.value is not None and 0 < error <= LARGEST_VALUE):
        raise InputError(f"the standard error of {entry.string!r} is {error}; expected a positive number, of a value")


def _dump(value: Any, what: str) -> str:
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} cannot be kept as JSON: {error}") from error


def _suggestion(row: tuple[Any, ...]) -> Suggestion:
    return Suggestion(*_loaded(row, 8))


def _measurement(row: tuple[Any, ...]) -> Measurement:
    return Measurement(*_loaded(row, 9))


def _snapshot(row: tuple[Any, ...]) -> Snapshot:
    return Snapshot(*_loaded(row, 3))


def _command(row: tuple[Any, ...]) -> Command:
    return Command(*_loaded(row, 3, 5))


def _loaded(row: tuple[Any, ...], *places: int) -> list[Any]:
    """A row with the JSON at some places read."""
    return [json.loads(cell) if place in places else cell for place, cell in enumerate(row)]


def _connect(file: Path, mode: str, timeout: float, factory: type[sqlite3.Connection]) -> sqlite3.Connection:
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


def _logged(file: Path) -> bool:
    """Whether something was committed that is not in the file itself yet: its writer works, or was killed."""
    log = file.resolve().with_name(file.resolve().name + "-wal")
    return log.exists() and log.stat().st_size > 0


def _code(error: sqlite3.Error) -> int:
    """The primary result code, which says what went wrong whatever the place."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


@contextmanager
def _explained(path: Path, timeout: float) -> Iterator[None]:
    """Turn the errors of SQLite into ones that say what happened, what is kept, and what to do."""
    try:
        yield
    except sqlite3.Error as error:
        raise CampaignError(_explanation(error, path, timeout)) from error


def _explanation(error: sqlite3.Error, path: Path, timeout: float) -> str:
    code = _code(error)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return (
            f"another process is writing to {path} and was not done within {timeout:g} s. {_INTACT}, and nothing was "
            "changed: try again when it is done"
        )
    if code == sqlite3.SQLITE_FULL:
        return f"the disk is full: {path} cannot grow. {_INTACT}, and nothing was changed: make room and do it again"
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
        return f"{path} is read-only: nothing was changed. {_INTACT}, and can be read"
    if code == sqlite3.SQLITE_CANTOPEN:
        return (
            f"{path} cannot be opened ({error}): you need permission to read it and, in order to change it, to write "
            f"it and its folder. {_INTACT}"
        )
    if code == sqlite3.SQLITE_IOERR:
        return (
            f"the disk refused to read or write {path} ({error}); perhaps it is full, over quota, or was removed. "
            f"{_INTACT}: open the campaign again and see its history before doing this again"
        )
    if code == sqlite3.SQLITE_NOTADB:
        return f"{path} is not a campaign of seqopt, nor any other SQLite database"
    if code == sqlite3.SQLITE_CORRUPT:
        return (
            f"{path} is damaged ({error}). Nothing was changed: keep the file and those beside it that begin with its "
            "name, and put a copy back if there is one"
        )
    if code == sqlite3.SQLITE_CONSTRAINT:
        return f"this would break a rule of {path} ({error}). {_INTACT}, and nothing was changed"
    return f"{path}: {error}. {_INTACT}"


def _readable(file: Path) -> bool:
    return all(os.access(part, os.R_OK) for part in _parts(file) if part.exists())


def _parts(file: Path) -> list[Path]:
    """A campaign and its logs: the usual one, and that of file systems without shared memory."""
    real = file.resolve()
    return [real, *(real.with_name(real.name + ending) for ending in ("-wal", "-journal"))]


def _copy_of(file: Path) -> tempfile.TemporaryDirectory[str]:
    """A copy of a campaign and its log where SQLite may write; for files in folders that cannot be written."""
    parts = _parts(file)
    for _ in range(5):
        copy = tempfile.TemporaryDirectory(prefix="seqopt-")
        try:
            before = [_stamp(part) for part in parts]
            for part in parts:
                if part.exists():
                    shutil.copyfile(part, Path(copy.name, part.name))
            if before == [_stamp(part) for part in parts]:
                return copy
        except OSError as error:
            copy.cleanup()
            raise CampaignError(f"{file} cannot be copied in order to read it: {error.strerror or error}") from error
        copy.cleanup()
    raise CampaignError(f"{file} is being changed by somebody else: try again")


def _stamp(part: Path) -> tuple[int, int] | None:
    try:
        found = part.stat()
    except FileNotFoundError:
        return None
    return found.st_mtime_ns, found.st_size
