"""The file of a campaign: every command one transaction, nothing ever lost.

One SQLite file with write-ahead logging; each commit is flushed to the disk before the command reports success. The
tables and what always holds of them are described in `seqopt.campaign.schema`. Nothing here needs torch, RDKit or
numpy: opening a campaign takes milliseconds.

Keep the file on a disk of the machine that works with it: on a network drive two machines would not see each other's
locks. While it is open, two more files are next to it (``-wal`` and ``-shm``); after a crash they belong to it, and a
copy needs the first of them, too. Opening the campaign once makes it a single file again.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import tempfile
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PureWindowsPath
from types import TracebackType
from typing import TYPE_CHECKING, Any

import seqopt
from seqopt.campaign import schema
from seqopt.campaign.changes import MAKES, Change, dumped, no_text
from seqopt.campaign.dependents import why_not
from seqopt.campaign.errors import CampaignError, StaleStateError
from seqopt.campaign.files import INTACT, code_of, connect, copy_of, explained, has_log, is_readable
from seqopt.campaign.queries import (
    COMMANDS,
    COUNTS,
    EXCLUSIONS,
    IS_LOST,
    MEASUREMENTS,
    ONLY_LOST,
    STANDS,
    STATUS,
    SUGGESTIONS,
    WITHDRAWALS,
    command_row,
    context_row,
    measurement_row,
    snapshot_row,
    suggestion_row,
)
from seqopt.campaign.rows import (
    UNDOABLE,
    Command,
    Counts,
    Exclusion,
    Measurement,
    Observed,
    Settings,
    Snapshot,
    Suggestion,
    Withdrawal,
    comparable,
)
from seqopt.datasets.sources import file_and_part, named
from seqopt.errors import InputError

if TYPE_CHECKING:
    from seqopt.data import Context, Contexts

TIMEOUT = 10.0
"""Seconds that a command waits for another one to finish."""


class CampaignStore:
    """A campaign on disk; made by `create` and `open`, and used by one thread of one process.

    Reading needs nothing further; several reads that must agree with each other belong in `reading`. Writing is only
    possible in `transaction`. A file that cannot be written is read all the same; if its folder cannot be written,
    either, from a copy in the folder for temporary files.

    Attributes:
        path: The file.
        is_file: Whether there is one; see `in_memory`.

    Example:
        >>> import tempfile
        >>> from seqopt.campaign.rows import NewMeasurement, NewSuggestion
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
        self.is_file = True
        self._connection = connection
        self._timeout = timeout
        self._process = os.getpid()
        self._depth = 0
        self._closed = False
        self._copy: tempfile.TemporaryDirectory[str] | None = None
        self._settings: tuple[int, str] | None = None
        self._contexts: Contexts | None = None
        self._contexts_known = False

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        settings: Settings,
        arguments: Mapping[str, Any] | None = None,
        *,
        library: tuple[int, bytes | None] | None = None,
        timeout: float = TIMEOUT,
        factory: type[sqlite3.Connection] = sqlite3.Connection,
    ) -> CampaignStore:
        """Make a campaign file.

        Interrupted at any moment, it leaves a whole campaign or an empty file, which `create` takes.

        Args:
            path: The file; there must be none, or an empty one.
            settings: What the campaign is about.
            arguments: Kept with the command, besides what every file needs.
            library: How many candidates there are, and what tells them apart; see `seqopt.campaign.library`.
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
        with explained(file, timeout):
            try:
                store = cls(file, connect(file, "rwc", timeout, factory), timeout)
            except sqlite3.DatabaseError as error:
                if code_of(error) == sqlite3.SQLITE_NOTADB:
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
                    if library is not None:
                        change.save_library(*library)
            except BaseException:
                store.close()
                raise
        return store

    @classmethod
    def in_memory(cls, settings: Settings) -> CampaignStore:
        """A campaign that is in no file, and gone when it is closed: for searches that nobody wants to keep."""
        connection = sqlite3.connect(":memory:", isolation_level=None)
        connection.execute("PRAGMA foreign_keys = ON")
        store = cls(Path("the memory of this process"), connection, TIMEOUT)
        store.is_file = False
        with store._write("create", {}, None, blank=True) as change:
            schema.create_tables(connection)
            change.save_settings(settings)
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
            CampaignError: If there is no such file, it is not a campaign, one of another version, damaged, or not to be
                read.
        """
        file = Path(path)
        if file.is_dir():
            raise CampaignError(f"{file} is a folder: name the file of a campaign")
        if not file.exists():
            raise CampaignError(f"there is no campaign {file}: create it first")
        with explained(file, timeout):
            try:
                return cls._open(file, file, timeout, factory)
            except sqlite3.OperationalError as error:
                if code_of(error) not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY) or not is_readable(file):
                    raise
        copy = copy_of(file)
        try:
            with explained(file, timeout):
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
        how = "mode=ro" if has_log(file) else "mode=ro&immutable=1"
        try:
            connection = sqlite3.connect(f"{file.resolve().as_uri()}?{how}", uri=True, timeout=TIMEOUT)
            with contextlib.closing(connection):
                return not schema.is_blank(connection)
        except sqlite3.Error:
            return True

    @classmethod
    def _open(cls, path: Path, file: Path, timeout: float, factory: type[sqlite3.Connection]) -> CampaignStore:
        if has_log(file):
            # The last connection that may write moves the log into the file when it is closed, whatever the file is.
            with contextlib.closing(connect(file, "ro", timeout, sqlite3.Connection)) as connection:
                schema.check_version(connection, str(path))
        store = cls(path, connect(file, "rw", timeout, factory), timeout)
        try:
            schema.check_version(store._connection, str(path))
            store._upgrade()
        except BaseException:
            store.close()
            raise
        return store

    def _upgrade(self) -> None:
        """Bring a file of an earlier version to this one; it keeps all that it holds."""
        connection = self._connection
        if schema.version_of(connection) == schema.VERSION:
            return
        try:
            connection.execute("BEGIN IMMEDIATE")
            # Another process may have done it while this one waited.
            if schema.version_of(connection) != schema.VERSION:
                schema.upgrade(connection)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def close(self) -> None:
        """Close the file; what was committed is on the disk already."""
        self._closed = True
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
        self._check_open()
        if self._depth:
            yield
            return
        try:
            # Inside the block, so that an interruption right after it leaves no transaction open.
            with explained(self.path, self._timeout):
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
        number = self._rows("SELECT max(id) FROM settings WHERE undone_by IS NULL")[0][0]
        if self._settings is None or self._settings[0] != number:
            contents = self._rows("SELECT contents FROM settings WHERE id = ?", (number,))[0][0]
            self._settings = number, contents
        # Made anew each time: nobody can change what others see.
        return Settings.from_json(json.loads(self._settings[1]))

    @property
    def contexts(self) -> Contexts | None:
        """The ways in which strings can be measured, if there are several; they never change."""
        if not self._contexts_known:
            self._contexts_known, self._contexts = True, self.settings.made_contexts()
        return self._contexts

    @property
    def library(self) -> dict[str, Any] | None:
        """What is known of the files of candidates, if there are any, with the paths where they are now.

        A file is looked for where it was as seen from the campaign, so that a copy of both uses its own; then where it
        was; then next to the campaign.
        """
        pool = self.settings.pool
        if pool is None:
            return None
        return self._found(pool) | {"added": [self._found(one) for one in pool.get("added", [])]}

    def _found(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        folder = self.path.absolute().parent
        # Which splits the paths of any system.
        file, part = file_and_part(facts["path"])
        beside = folder / PureWindowsPath(file).name
        relative = facts.get("relative")
        places = [*([folder / file_and_part(relative)[0]] if relative else []), file, beside]
        path = next((place for place in places if place.is_file()), None)
        return {**facts} if path is None else {**facts, "path": named(os.path.normpath(path), part)}

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
        rows = map(suggestion_row, self._rows(f"{SUGGESTIONS} ORDER BY s.id"))
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
        """The suggestion of this name, even if it was undone, or `None`."""
        rows = self._rows(f"{SUGGESTIONS} WHERE s.name = ?", (name,))
        return suggestion_row(rows[0]) if rows else None

    def measurements(
        self, *, key: str | None = None, undone: bool = False, discarded: bool = False
    ) -> list[Measurement]:
        """Measurements one by one, in the order in which they were recorded.

        Args:
            key: Only those of this key.
            undone: Also those that were undone, corrected or discarded.
            discarded: Also those that were discarded.
        """
        conditions = ["1" if undone else STANDS if discarded else COUNTS]
        if key is not None:
            conditions.append("m.key = ?")
        query = f"{MEASUREMENTS} WHERE {' AND '.join(conditions)} ORDER BY m.id"
        return [measurement_row(row) for row in self._rows(query, () if key is None else (key,))]

    def observations(self) -> list[Observed]:
        """Measurements that are modelled, grouped by key and context, in the order in which these were recorded."""
        groups: dict[tuple[str, Context], list[Measurement]] = {}
        for row in self.measurements():
            groups.setdefault((row.key, row.context), []).append(row)
        return [Observed(key, rows[0].string, tuple(rows), context) for (key, context), rows in groups.items()]

    def best(self) -> Observed | None:
        """What has the best mean of its replicates, the first of equals; `None` before the first value.

        Of limits what is certain counts: see `Observed.certain`.

        The mean is the geometric one if the campaign's transform is ``"log10"``. Of several ways to measure, the target
        counts; where that cannot be measured itself, as of plates, values of all stand side by side as they are.
        """
        with self.reading():
            settings, observed = self.settings, self.observations()
        measured = [group for group in comparable(settings, observed) if group.values]
        geometric = settings.transform == "log10"
        return max(measured, key=lambda group: group.certain(settings.direction, geometric=geometric), default=None)

    def counts(self) -> Counts:
        """How far the campaign is."""
        with self.reading():
            statuses = dict(self._rows(f"SELECT {STATUS} AS status, count(*) FROM suggestions s GROUP BY status"))
            batches = self._rows("SELECT count(DISTINCT batch) FROM suggestions WHERE undone_by IS NULL")[0][0]
            totals = self._rows(
                "SELECT count(DISTINCT CASE WHEN m.value IS NOT NULL THEN m.key END), count(m.value), "
                f"count(m.failure), count(CASE WHEN {IS_LOST} THEN 1 END) FROM measurements m WHERE {COUNTS}"
            )[0]
            query = f"SELECT count(*) FROM measurements m WHERE {STANDS} AND NOT ({COUNTS})"
            discarded = self._rows(query)[0][0]
            excluded = self._rows("SELECT count(*) FROM exclusions WHERE undone_by IS NULL")[0][0]
            missing = self._rows(f"SELECT count(*) FROM suggestions s WHERE {ONLY_LOST}")[0][0]
        waiting, measured, failed, withdrawn, set_aside = (
            statuses.get(status, 0) for status in ("open", "measured", "failed", "withdrawn", "discarded")
        )
        strings, values, without, lost = totals
        return Counts(
            open=waiting,
            measured=measured,
            failed=failed - missing,
            withdrawn=withdrawn,
            batches=batches,
            strings=strings,
            values=values,
            failures=without - lost,
            discarded=discarded,
            excluded=excluded,
            lost=lost,
            lost_suggestions=missing,
            discarded_suggestions=set_aside,
        )

    def withdrawals(self, *, undone: bool = False) -> list[Withdrawal]:
        """Withdrawals, oldest first; with ``undone`` also those that were undone."""
        rows = (Withdrawal(*row) for row in self._rows(f"{WITHDRAWALS} ORDER BY w.id"))
        return [row for row in rows if undone or row.undone_by is None]

    def exclusions(self, *, undone: bool = False) -> list[Exclusion]:
        """Strings that shall not be suggested, oldest first; with ``undone`` also those that were undone."""
        rows = (Exclusion(*row) for row in self._rows(f"{EXCLUSIONS} ORDER BY e.id"))
        return [row for row in rows if undone or row.undone_by is None]

    def history(self, *, after: int = 0) -> list[Command]:
        """All commands, or those after one, oldest first, with what they did."""
        return [command_row(row) for row in self._rows(f"{COMMANDS} WHERE c.id > ? ORDER BY c.id", (after,))]

    def rows_after(
        self, last: Mapping[str, int], tables: Collection[str]
    ) -> tuple[list[Suggestion], list[Measurement], list[Withdrawal], list[Exclusion]]:
        """Rows that stand, and whose numbers are larger than the last ones known; of measurements, also discarded ones.

        Args:
            last: Numbers by the names of tables.
            tables: Those that are looked at; of others there is no row.
        """

        def rows(table: str, query: str, letter: str) -> list[tuple[Any, ...]]:
            if table not in tables:
                return []
            stands = STANDS if table == "measurements" else f"{letter}.undone_by IS NULL"
            condition = f"{letter}.id > ? AND {stands} ORDER BY {letter}.id"
            return self._rows(f"{query} WHERE {condition}", (last[table],))

        return (
            list(map(suggestion_row, rows("suggestions", SUGGESTIONS, "s"))),
            list(map(measurement_row, rows("measurements", MEASUREMENTS, "m"))),
            [Withdrawal(*row) for row in rows("withdrawals", WITHDRAWALS, "w")],
            [Exclusion(*row) for row in rows("exclusions", EXCLUSIONS, "e")],
        )

    def corrected(self) -> dict[int, int]:
        """The commands that first recorded what was corrected since, by the numbers of the corrections."""
        rows = self._rows("SELECT id, replaces, made_by FROM measurements WHERE replaces IS NOT NULL ORDER BY id")
        found: dict[int, int] = {}
        for number, replaces, _ in rows:
            first = found.get(replaces)
            if first is None:
                first = self._rows("SELECT made_by FROM measurements WHERE id = ?", (replaces,))[0][0]
            found[number] = first
        return found

    def library_hashes(self) -> tuple[bytes | None, bytes | None]:
        """What tells the candidates apart, and those that were removed (see `seqopt.campaign.library`), as far as the
        file holds that.
        """
        query = "SELECT hashes, removed FROM libraries WHERE undone_by IS NULL ORDER BY id DESC LIMIT 1"
        rows = self._rows(query)
        return rows[0] if rows else (None, None)

    def screens(self) -> list[tuple[Context, int, bytes, str | None, int]]:
        """Columns of cheap values that count, oldest first: how they were measured, how many they are, the values as
        `seqopt.campaign.screens` packs them, the file, and the command.
        """
        query = "SELECT context, size, contents, source, made_by FROM screens WHERE undone_by IS NULL ORDER BY id"
        return [(context_row(json.loads(row[0])), *row[1:]) for row in self._rows(query)]

    def screened(self) -> dict[Context, int]:
        """How many values there are in columns of cheap values, by how they were measured."""
        rows = self._rows("SELECT context, sum(size) FROM screens WHERE undone_by IS NULL GROUP BY context")
        return {context_row(json.loads(context)): size for context, size in rows}

    def assays(self) -> dict[str, dict[str, tuple[float, int]]]:
        """Values of other assays that count, and the commands that brought them, by assay and by key; oldest first."""
        found: dict[str, dict[str, tuple[float, int]]] = {}
        query = "SELECT name, key, value, made_by FROM assays WHERE undone_by IS NULL ORDER BY id"
        for name, key, value, made_by in self._rows(query):
            found.setdefault(name, {})[key] = value, made_by
        return found

    def command(self, number: int) -> Command:
        """One command.

        Raises:
            InputError: If there is none of this number.
        """
        rows = self._rows(f"{COMMANDS} WHERE c.id = ?", (number,))
        if not rows:
            raise InputError(f"there is no command {number}; the last one is {self.state}")
        return command_row(rows[0])

    def next_undo(self) -> Command | None:
        """The command that `undo` would take back now, or `None`."""
        kinds = ", ".join("?" * len(UNDOABLE))
        query = f"{COMMANDS} WHERE u.id IS NULL AND c.kind IN ({kinds}) ORDER BY c.id DESC LIMIT 1"
        rows = self._rows(query, UNDOABLE)
        return command_row(rows[0]) if rows else None

    def hindrance(self, command: Command) -> str | None:
        """Why a command cannot be undone; `None` if it can."""
        with explained(self.path, self._timeout):
            return why_not(command, self._connection)

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
        return [row for row in map(snapshot_row, self._rows(query)) if undone or row.undone_by is None]

    def latest_snapshot(self) -> Snapshot | None:
        """The model that was stored last and not undone, or `None`."""
        query = (
            "SELECT id, surrogate, n, summary, made_by, undone_by FROM snapshots "
            "WHERE undone_by IS NULL ORDER BY id DESC LIMIT 1"
        )
        rows = self._rows(query)
        return snapshot_row(rows[0]) if rows else None

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

        with self.reading(), explained(self.path, self._timeout):
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
            kind: One of `seqopt.campaign.rows.KINDS`, but for ``"create"``.
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
        if kind not in MAKES or kind == "create":
            kinds = ", ".join(known for known in MAKES if known != "create")
            raise InputError(f"unknown kind of command {kind!r}: choose {kinds}")
        if kind == "suggest" and expected_state is None:
            raise InputError("a suggestion needs expected_state: the state that it was worked out from")
        with self._write(kind, dict(arguments or {}), expected_state) as change:
            yield change

    def undo(self, number: int | None = None, *, expected_state: int | None = None) -> Command:
        """Take back a command: by default the last one of a kind that can be (`UNDOABLE`), and is not undone.

        It is a command, too. An undo is not undone: undoing again takes back the command before. What was taken back
        stays in the file and in `history`.

        Args:
            number: Of the command.
            expected_state: As in `transaction`.

        Returns:
            The command that was taken back.

        Raises:
            CampaignError: If there is nothing to undo, or something that counts depends on the command; it says what.
            InputError: If there is no command of this number.
        """
        with self.transaction("undo", expected_state=expected_state) as change:
            return change.undo(number)

    @contextmanager
    def _write(
        self, kind: str, arguments: dict[str, Any], expected_state: int | None, *, blank: bool = False
    ) -> Iterator[Change]:
        self._check_open()
        if self._depth:
            raise CampaignError("a command cannot begin inside another one, or inside reading()")
        if os.getpid() != self._process:
            raise CampaignError(f"{self.path} was opened by another process: open it again in this one")
        if self._copy is not None:
            raise CampaignError(f"{self.path} cannot be written, nor can its folder. {INTACT}, and can be read")
        connection = self._connection
        with explained(self.path, self._timeout):
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
                written = dumped(change.arguments, f"the arguments of {kind}")
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

    def _check_open(self) -> None:
        if self._closed:
            raise CampaignError(f"the campaign {self.path} was closed in this program: open it again")

    def _rows(self, query: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        self._check_open()
        try:
            with explained(self.path, self._timeout):
                return self._connection.execute(query, parameters).fetchall()
        except UnicodeEncodeError as error:
            raise no_text(error) from error
