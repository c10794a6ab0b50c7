"""What one command writes into a campaign."""

from __future__ import annotations

import json
import math
import sqlite3
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from seqopt.campaign import schema
from seqopt.campaign.dependents import why_not
from seqopt.campaign.errors import CampaignError
from seqopt.campaign.queries import COUNTS, MEASUREMENTS, STANDS, SUGGESTIONS, measurement_row, suggestion_row
from seqopt.campaign.rows import (
    LARGEST_VALUE,
    Command,
    Measurement,
    NewExclusion,
    NewMeasurement,
    NewSnapshot,
    NewSuggestion,
    Settings,
    Suggestion,
)
from seqopt.errors import InputError

if TYPE_CHECKING:
    from seqopt.campaign.store import CampaignStore
    from seqopt.data import Context

MAKES = {
    "create": {"settings", "libraries"},
    "configure": {"settings"},
    "suggest": {"suggestions", "snapshots"},
    "fit": {"snapshots"},
    "record": {"measurements", "discards", "exclusions"},
    "import": {"measurements", "discards", "exclusions", "screens", "assays"},
    "correct": {"measurements"},
    "discard": {"discards"},
    "withdraw": {"withdrawals", "exclusions"},
    "pool": {"settings", "libraries"},
    "undo": set(),
}


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
        self._insert("settings", [{"contents": dumped(settings.to_json(), "the settings")}])

    def add_snapshot(self, snapshot: NewSnapshot) -> int:
        """Store a model, and return its number.

        Raises:
            InputError: For what JSON cannot hold.
        """
        state = None
        if snapshot.state is not None:
            state = zlib.compress(dumped(snapshot.state, "the state of a model").encode("utf-8", "surrogatepass"))
        row = {
            "surrogate": snapshot.surrogate,
            "n": snapshot.n,
            "summary": dumped(snapshot.summary, "the summary of a model"),
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
        before = self.changes.get("suggestions", 0)
        names: dict[tuple[str, Context], str] = {}
        rows = []
        for position, suggestion in enumerate(new, start=before + 1):
            name = f"B{batch:02d}-{position:02d}"
            asked = suggestion.key, suggestion.context
            taken = names.get(asked) or self._open_name(*asked)
            if taken is not None:
                raise CampaignError(
                    f"{suggestion.string!r} is suggested already, as {taken}: record its result or withdraw it first"
                )
            names[asked] = name
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
                    "context": dumped(suggestion.context, f"the context of {suggestion.string!r}"),
                    "acquisition": suggestion.acquisition,
                    "reason": dumped(suggestion.reason, f"the reason for {suggestion.string!r}"),
                    "snapshot": snapshot,
                    "identifier": suggestion.identifier,
                    "cells": dumped(suggestion.cells, f"the cells of {suggestion.string!r}"),
                }
            )
        self._insert("suggestions", rows)
        query = f"{SUGGESTIONS} WHERE s.batch = ? AND s.position > ? ORDER BY s.id"
        # The command itself is written last.
        scale = self.arguments.get("transform")
        return [replace(suggestion_row(row), transform=scale) for row in self._store._rows(query, (batch, before))]

    def add_measurements(self, measurements: Iterable[NewMeasurement]) -> list[Measurement]:
        """Add values and failures.

        Each answers the suggestion that it names, or else one of its key and context: an open one, or the latest. No
        value is refused because the string has one already; `seqopt.campaign.read_results` asks the user about that.

        Returns:
            The measurements with their suggestions.

        Raises:
            CampaignError: If a suggestion is unknown, undone, or of another string.
            InputError: For an entry that is neither a value nor a failure, or both, or not finite.
        """
        rows = []
        contexts = self._store.contexts
        for entry in measurements:
            _check_measurement(entry)
            if contexts is not None:
                contexts.check(entry.context)
            elif entry.context:
                raise InputError(f"{entry.string!r} was measured in a context, and this campaign has none")
            if entry.replaces is not None:
                answered = self._corrected(entry)
            elif entry.suggestion is None:
                answered = self._latest_of(entry.key, entry.context)
            else:
                answered = self._store.suggestion(entry.suggestion)
                if answered is None or answered.undone_by is not None:
                    raise CampaignError(f"there is no suggestion {entry.suggestion!r}, or it was undone")
                if answered.key != entry.key:
                    raise CampaignError(
                        f"suggestion {entry.suggestion} is {answered.string!r}, but the result is for {entry.string!r}"
                    )
                if answered.context != entry.context:
                    raise CampaignError(
                        f"suggestion {entry.suggestion} is to be measured in the context {dict(answered.context)}, but "
                        f"the result is for {dict(entry.context)}"
                    )
            rows.append(
                {
                    "string": entry.string,
                    "key": entry.key,
                    "context": dumped(entry.context, f"the context of {entry.string!r}"),
                    "value": None if entry.value is None else float(entry.value),
                    "further": dumped(entry.further, f"the values of {entry.string!r}"),
                    "failure": entry.failure,
                    "standard_error": None if entry.standard_error is None else float(entry.standard_error),
                    "source": entry.source,
                    "line": entry.line,
                    "suggestion": None if answered is None else answered.id,
                    "replicate": entry.replicate,
                    "details": dumped(entry.details, f"the details of {entry.string!r}"),
                    "identifier": entry.identifier,
                    "censored": entry.censored,
                    "replaces": entry.replaces,
                    "cost": None if entry.cost is None else float(entry.cost),
                }
            )
        numbers = self._insert("measurements", rows)
        query = f"{MEASUREMENTS} WHERE m.id BETWEEN ? AND ? ORDER BY m.id"
        return [measurement_row(row) for row in self._store._rows(query, (numbers[0], numbers[-1]))] if numbers else []

    def _corrected(self, entry: NewMeasurement) -> Suggestion | None:
        """The suggestion of the measurement that an entry corrects.

        Raises:
            CampaignError: If that measurement does not stand, or is of another string or context.
        """
        query = f"{MEASUREMENTS} WHERE m.id = ? AND {STANDS}"
        rows = [measurement_row(row) for row in self._store._rows(query, (entry.replaces,))]
        if not rows:
            raise CampaignError(f"there is no measurement {entry.replaces} that could be corrected")
        if (rows[0].key, rows[0].context) != (entry.key, entry.context):
            raise CampaignError(f"measurement {entry.replaces} is of {rows[0].string!r}, not of {entry.string!r}")
        return None if rows[0].suggestion is None else self._store.suggestion(rows[0].suggestion)

    def discard(self, numbers: Iterable[int], reason: str = "") -> None:
        """Keep measurements, but do not model them.

        Args:
            numbers: Of the measurements.
            reason: Why.

        Raises:
            CampaignError: If one is not there, does not count any more, or is discarded already.
        """
        rows = []
        for number in dict.fromkeys(numbers):
            if not self._store._rows(f"SELECT m.id FROM measurements m WHERE m.id = ? AND {COUNTS}", (number,)):
                raise CampaignError(f"there is no measurement {number} that could be discarded")
            rows.append({"measurement": number, "reason": reason})
        self._insert("discards", rows)

    def save_library(self, size: int, hashes: bytes | None = None, removed: bytes | None = None) -> None:
        """Keep which candidates there are.

        Args:
            size: How many.
            hashes: What tells them apart; see `seqopt.campaign.library`.
            removed: The same of those that are in the files and do not count.
        """
        self._insert("libraries", [{"size": size, "hashes": hashes, "removed": removed}])

    def save_screen(self, context: Context, size: int, contents: bytes, source: str | None) -> None:
        """Keep the values of a cheap measurement of many strings; see `seqopt.campaign.screens`."""
        text = dumped(context, "the context of a screen")
        self._insert("screens", [{"context": text, "size": size, "contents": contents, "source": source}])

    def save_assay(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Keep values of another assay: strings, keys, values, and where each stands; see `seqopt.campaign.assays`."""
        self._insert("assays", [{"name": name, **row} for row in rows])

    def withdraw(self, names: Iterable[str], reason: str = "", *, lost: bool = False) -> None:
        """Withdraw open suggestions, or those whose results were lost.

        Raises:
            CampaignError: If one is unknown, or not open (with ``lost``: has not failed).
        """
        rows = []
        for name in dict.fromkeys(names):
            known = self._store.suggestion(name)
            if known is None:
                raise CampaignError(f"there is no suggestion {name!r}")
            if known.status != ("failed" if lost else "open"):
                raise CampaignError(f"suggestion {name} is {known.status}, not open: it cannot be withdrawn")
            rows.append({"suggestion": known.id, "reason": reason})
        self._insert("withdrawals", rows)

    def exclude(self, exclusions: Iterable[NewExclusion]) -> None:
        """Let strings not be suggested that are not open."""
        self._insert("exclusions", [vars(one) for one in exclusions])

    def undo(self, number: int | None = None) -> Command:
        """Take back a command; see `CampaignStore.undo`."""
        if self._kind != "undo" or self.undoes is not None:
            raise InputError("a command of kind undo takes back one other, and does nothing else")
        last = self._store.next_undo() if number is None else self._store.command(number)
        if last is None:
            raise CampaignError("there is nothing to undo")
        why = why_not(last, self._connection)
        if why is not None:
            raise CampaignError(f"command {last.id} ({last.describe()}) cannot be undone: {why}. Nothing was changed")
        self.undoes = last.id
        for table in schema.TABLES:
            update = f"UPDATE {table} SET undone_by = ? WHERE made_by = ?"
            undone = self._connection.execute(update, (self.command, last.id)).rowcount
            if undone:
                self.changes[table] = undone
        return self._store.command(last.id)

    def _open_name(self, key: str, context: Context) -> str | None:
        """The name under which a key is open in a context."""
        known = self._latest_of(key, context)
        return known.name if known is not None and known.status == "open" else None

    def _latest_of(self, key: str, context: Context) -> Suggestion | None:
        """The suggestion of a key in a context that is open, or else the latest, by the index of keys."""
        query = (
            f"{SUGGESTIONS} WHERE s.key = ? AND s.context = ? AND s.undone_by IS NULL "
            "ORDER BY status = 'open' DESC, s.id DESC LIMIT 1"
        )
        rows = self._store._rows(query, (key, dumped(context, "a context")))
        return suggestion_row(rows[0]) if rows else None

    def _insert(self, table: str, rows: Sequence[Mapping[str, Any]]) -> range:
        if table not in MAKES[self._kind]:
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
            raise no_text(error) from error
        self.changes[table] = self.changes.get(table, 0) + len(rows)
        return range(first, first + len(rows))


def no_text(error: UnicodeEncodeError) -> InputError:
    return InputError(f"{error.object!r} is not text that can be stored")


def _check_measurement(entry: NewMeasurement) -> None:
    if entry.value is not None and entry.failure is not None:
        raise InputError(f"{entry.string!r} needs a value or a reason for its failure, and not both")
    if entry.value is None and entry.failure is None and not entry.further:
        raise InputError(f"{entry.string!r} needs a value or a reason for its failure")
    for name, number in entry.further.items():
        if not abs(number) <= LARGEST_VALUE:
            raise InputError(f"{name} of {entry.string!r} is {number}; expected a number up to {LARGEST_VALUE:g}")
    if entry.value is not None and not abs(entry.value) <= LARGEST_VALUE:
        raise InputError(f"the value of {entry.string!r} is {entry.value}; expected a number up to {LARGEST_VALUE:g}")
    if entry.censored is not None and (entry.censored not in ("<", ">") or entry.value is None):
        raise InputError(f"{entry.string!r} is censored as {entry.censored!r}; expected '<' or '>', and a limit")
    if entry.cost is not None and not 0 < entry.cost <= LARGEST_VALUE:
        raise InputError(f"the cost of {entry.string!r} is {entry.cost}; expected a positive number")
    error = entry.standard_error
    if error is not None and not (entry.value is not None and 0 < error <= LARGEST_VALUE):
        raise InputError(f"the standard error of {entry.string!r} is {error}; expected a positive number, of a value")


def dumped(value: Any, what: str) -> str:
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} cannot be kept as JSON: {error}") from error
