"""The optimiser of a campaign: the one way in which it is restored from the file, and kept in step with it.

A session does again what the commands in the file have done, in their order, and nothing else changes its optimiser:
also what it suggests itself counts only once it is in the file. So a search that goes on and one that is resumed are
the same, and what others do to the file meanwhile is seen.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby
from typing import Any

from seqopt.campaign.journal import Asked, Journal
from seqopt.campaign.labels import Label
from seqopt.campaign.plates import CONTROL, Control, PlateRules, stand_of
from seqopt.campaign.predictions import snapshot_of
from seqopt.campaign.reasons import reasons_of
from seqopt.campaign.rows import WELLS, Command, Exclusion, Measurement, NewSuggestion, Suggestion, Withdrawal
from seqopt.campaign.store import CampaignStore
from seqopt.data import Context, Item, Observation, Query, Room
from seqopt.errors import InputError
from seqopt.optimizer import Optimizer
from seqopt.spaces import Space
from seqopt.strategies import ModelBased
from seqopt.strategies.protocols import takes_censored
from seqopt.utils.progress import doing

logger = logging.getLogger(__name__)

TABLES = ("suggestions", "measurements", "withdrawals", "exclusions")

BESIDES = {"screens", "assays"}
"""Tables of what models learn from besides results."""

REVISING = ("undo", "correct", "discard")
"""Kinds of commands that change what earlier ones have done."""

UNKNOWN = -1
"""State of a session that was interrupted while what it suggested was written."""


class Session:
    """An optimiser that stands where its campaign does.

    Args:
        store: The campaign.
        optimizer: Made as the campaign was begun; it has neither asked nor been told anything.
        allowed: What of its space may be suggested, if not all of it.
        labels: What the library says of candidates, if there is one.
        restored: Whether the next fit goes on from the model in the file, which one of other assays could not.

    Attributes:
        store: As given.
        optimizer: The same, after what the commands up to ``state`` have done.
        settings: Of the campaign, when the session began.
        state: The last command that it has seen; 0 before the first, and `UNKNOWN` while it suggests.
        journal: What was asked and told, in order.
        open: Suggestions that await a result, by name, oldest first.
    """

    def __init__(
        self,
        store: CampaignStore,
        optimizer: Optimizer,
        allowed: Space | None = None,
        labels: Callable[[Sequence[str]], Sequence[Label]] | None = None,
        *,
        restored: bool = True,
    ) -> None:
        self._labels, self._restored = labels, restored
        self.store = store
        self.optimizer = optimizer
        self.settings = store.settings
        self._allowed = optimizer.space if allowed is None else allowed
        self._whole = optimizer.space
        self._fresh = optimizer.state_dict()
        self._warned = False
        self.forget()

    def forget(self) -> None:
        """Begin anew: the next `catch_up` does again all that the file holds."""
        self.state = 0
        self.journal = Journal()
        self.open: dict[str, Suggestion] = {}
        self._rows: dict[str, Observation] = {}
        self._last = dict.fromkeys(TABLES, 0)
        self._kept: Any = None
        self._snapshot: int | None = None
        self.optimizer.load_state_dict(self._fresh)

    def catch_up(self) -> bool:
        """Do what has been done in the file since.

        Returns:
            Whether its settings, screens and other assays still are those of this session; if not, nothing was done.
        """
        state = self.store.state
        if state == self.state:
            return True
        with self.store.reading():
            # Of an older copy of the file, which somebody has put in its place, everything is done anew.
            older = state < self.state
            if older or self.state == UNKNOWN:
                self.forget()
            commands = self.store.history(after=self.state)
            if self.state and any(BESIDES & command.changes.keys() for command in commands):
                return False
            changed = older or any(command.kind in ("configure", "undo") for command in commands)
            if changed and self.store.settings != self.settings:
                return False
            # What was taken back, corrected or discarded is done anew as if it had been so from the start.
            if any(
                command.kind in REVISING and (command.undoes is None or command.undoes <= self.state)
                for command in commands
            ):
                self.forget()
                commands = self.store.history()
            try:
                self._replay(commands)
            except BaseException:
                # Of half a replay nobody could say where it stands.
                self.forget()
                raise
        return True

    def suggest(
        self,
        n: int,
        arguments: Mapping[str, Any],
        *,
        explained: bool = True,
        noted: Mapping[str, Any] | None = None,
        remaining: float | None = None,
        only: Context | None = None,
        shared: bool = False,
        room: Room | None = None,
        by: ModelBased | None = None,
        besides: Callable[[Sequence[Observation]], Sequence[tuple[Control, Context]]] | None = None,
    ) -> list[Suggestion]:
        """Ask for strings, and keep them in the file.

        Args:
            n: How many.
            arguments: What the command keeps of what its user gave.
            explained: Whether the reasons are worked out.
            noted: What is kept of the model besides its own summary.
            remaining: See `Optimizer.ask`.
            only: See `Optimizer.ask`.
            shared: See `Optimizer.ask`.
            room: See `Optimizer.ask`.
            by: See `Optimizer.ask`.
            besides: From what was asked for to what is to be measured with it: the controls of plates.

        Raises:
            StaleStateError: If another process has changed the campaign meanwhile: nothing was suggested.
        """
        self.catch_up()
        optimizer = self.optimizer
        before = len(optimizer.observations), {**optimizer.counters, **optimizer.strategy.state_dict()}
        state_before, self.state = self.state, UNKNOWN
        try:
            started = time.perf_counter()
            rows = optimizer.ask(n, remaining=remaining, only=only, shared=shared, room=room, by=by).rows
            seconds = time.perf_counter() - started
            state = optimizer.strategy.state_dict()
            counters = optimizer.counters
            new = list(_new_suggestions(optimizer, rows, by, explained=explained))
            added = [] if besides is None else besides(rows)
            if added:
                rows = (*rows, *_add_controls(optimizer, added))
                new += [
                    NewSuggestion(one.string, one.key, acquisition=CONTROL, reason={"kind": CONTROL}, context=context)
                    for one, context in added
                ]
            if self._labels is not None:
                labels = self._labels([row.string for row in rows])
                new = [
                    replace(one, identifier=label.identifier, cells=dict(label.cells))
                    for one, label in zip(new, labels, strict=True)
                ]
            snapshot = None
            if self.store.is_file and state != self._kept and optimizer.hyperparameters:
                snapshot = snapshot_of(optimizer, state, PlateRules.of(self.settings))
                snapshot = replace(snapshot, summary=snapshot.summary | dict(noted or {}))
                if self.settings.plates:
                    stand = stand_of(self.settings, self.store.measurements())
                    snapshot = replace(snapshot, summary=snapshot.summary | {"stand": stand})
            scale = {"transform": self.settings.transform or "none"}
            given = {**arguments, **counters, **scale, "seconds": round(seconds, 3)}
            with self.store.transaction("suggest", given, expected_state=state_before) as change:
                number = self._snapshot if snapshot is None else change.add_snapshot(snapshot)
                chosen = any(row.mean is not None for row in new)
                made = change.add_suggestions(new, snapshot=number if chosen else None)
        except BaseException:
            # What was asked for is not in the file.
            optimizer.observations.truncate(before[0])
            optimizer.replay_ask([], before[1])
            self.state = state_before
            raise
        if snapshot is not None:
            self._kept, self._snapshot = state, number
        self._note_asked(rows, made, counters["batches"], seconds, optimizer.hyperparameters)
        # Last: whatever interrupts this, the file is read anew.
        self.state = change.command
        return made

    def _replay(self, commands: Sequence[Command]) -> None:
        touched = {table for command in commands for table in command.changes}
        suggestions, measurements, withdrawals, exclusions = self.store.rows_after(self._last, touched)
        made: dict[int, list[Suggestion]] = _by_command(suggestions)
        measured: dict[int, list[Measurement]] = _by_command(self._in_order(measurements))
        withdrawn: dict[int, list[Withdrawal]] = _by_command(withdrawals)
        excluded: dict[int, list[Exclusion]] = _by_command(exclusions)
        modelled = any(command.kind in ("suggest", "fit") for command in commands)
        snapshots = {one.made_by: one for one in self.store.snapshots()} if modelled else {}
        # Those that were made before, and have been open since.
        named = {row.name: row for row in (*self.open.values(), *suggestions)}
        parameters = dict(self.optimizer.hyperparameters)
        self.optimizer.space = self._whole
        try:
            for command in commands:
                if command.undone_by is None and command.kind == "suggest":
                    if command.id in snapshots:
                        parameters = snapshots[command.id].summary["parameters"]
                    self._replay_suggestion(made.get(command.id, []), command.arguments, parameters)
                # At once, which is faster where a table was imported.
                self._tell(measured.get(command.id, []))
                for withdrawal in withdrawn.get(command.id, []):
                    self._withdraw(named[withdrawal.suggestion])
                for exclusion in excluded.get(command.id, []):
                    self._exclude(exclusion)
                self.state = command.id
        finally:
            # Not before: a space that generates its strings takes no results of strings outside it.
            self.optimizer.space = self._allowed
        made_ids = ([row.id for row in rows] for rows in (suggestions, measurements, withdrawals, exclusions))
        for table, ids in zip(TABLES, made_ids, strict=True):
            self._last[table] = max([self._last[table], *ids])
        latest = self.store.latest_snapshot() if modelled else None
        if latest is not None and latest.id != self._snapshot:
            self._kept, self._snapshot = self.store.snapshot_state(latest.id), latest.id
            # A model without the columns and assays of today has other parameters.
            since = max([0, *(one.id for one in self.store.history() if BESIDES & one.changes.keys())])
            if self._restored and self._kept is not None and latest.made_by > since:
                self.optimizer.strategy.load_state_dict(self._kept)

    def _in_order(self, measurements: Sequence[Measurement]) -> Sequence[Measurement]:
        """Measurements by the commands that recorded them, corrected ones as if they had been right from the start."""
        if all(row.replaces is None for row in measurements):
            return measurements
        first = self.store.corrected()
        moved = [replace(row, made_by=first.get(row.id, row.made_by)) for row in measurements]
        return sorted(moved, key=lambda row: row.made_by)

    def _replay_suggestion(
        self, made: Sequence[Suggestion], arguments: Mapping[str, Any], parameters: dict[str, float]
    ) -> None:
        # Of a command that another program wrote, as `Optimizer.ask` would have counted.
        before, begun = self.optimizer.counters, len(self.optimizer.observations) >= self.optimizer.initial
        usual = {"asks": before["asks"] + 1, "batches": before["batches"] + 1 if begun else 0}
        counters = {name: arguments.get(name, number) for name, number in usual.items()}
        rows: list[dict[str, Any]] = [
            {
                "string": row.string,
                "key": row.key,
                "context": row.context,
                "details": {
                    "batch": counters["batches"],
                    "predicted": row.predicted(self.settings.transform),
                    "predicted_low": row.low,
                    "predicted_high": row.high,
                    "predicted_mean": row.mean,
                    "predicted_std": row.std,
                    "acquisition": row.score,
                },
            }
            for row in made
        ]
        self.optimizer.replay_ask(rows, counters)
        known, seconds = self.optimizer.observations.rows, arguments.get("seconds", 0.0)
        self.journal.seconds += seconds
        self._note_asked(known[len(known) - len(made) :], made, counters["batches"], seconds, parameters)

    def _note_asked(
        self,
        rows: Sequence[Observation],
        made: Sequence[Suggestion],
        number: int,
        seconds: float,
        parameters: dict[str, float],
    ) -> None:
        for row, one in zip(rows, made, strict=True):
            if one.identifier is not None:
                row.details["identifier"] = one.identifier
        self.open |= {row.name: row for row in made}
        self._rows |= {one.name: row for one, row in zip(made, rows, strict=True)}
        self._last["suggestions"] = max([self._last["suggestions"], *(row.id for row in made)])
        end, told = len(self.optimizer.observations), len(self.journal.told)
        self.journal.asked.append(Asked(rows, end, told, number, seconds, dict(parameters)))

    def _tell(self, measurements: Sequence[Measurement]) -> None:
        if not measurements:
            return
        if any(row.discarded is not None for row in measurements):
            # One by one: what was discarded is as good as withdrawn.
            for row in measurements:
                if row.discarded is None:
                    self._tell([row])
                else:
                    self._discard(row)
            return
        # A result of an earlier suggestion of the string is a replicate, and what is open stays so.
        open_queries = {(row.key, row.context) for row in self.open.values()}
        # And while only further outcomes are known, the objective is awaited.
        others = [
            Query(row.key, row.context)
            for row in measurements
            if ((row.key, row.context) in open_queries and row.suggestion not in self.open) or not _answers(row)
        ]
        before = len(self.optimizer.observations)
        if (others or len(open_queries) < len(self.open)) and len(measurements) > 1:
            for row in measurements:
                self._tell([row])
            return
        with self._answering(measurements[0].suggestion), self.optimizer.observations.kept_pending(others):
            try:
                self._tell_usable(measurements, {})
            except InputError:
                # Of a campaign that was begun before results were held against its model.
                refused = self.optimizer.strategy.unsupported([_item(row) for row in measurements])
                for index, why in refused.items():
                    if measurements[index].failure is None:
                        logger.warning("the model does not learn from %r: %s", measurements[index].string, why)
                self._tell_usable(measurements, refused)
        self.journal.seconds += sum(row.details.get("seconds") or 0.0 for row in measurements)
        self._note_told([row.suggestion if _answers(row) else None for row in measurements], before)
        for told, measured in zip(self.journal.told[-len(measurements) :], measurements, strict=True):
            if measured.identifier is not None:
                told.details["identifier"] = measured.identifier

    def _tell_usable(self, measurements: Sequence[Measurement], refused: Mapping[int, str]) -> None:
        names = [outcome.name for outcome in self.optimizer.outcomes][1:]
        values, errors = [], []
        for index, row in enumerate(measurements):
            # A failure may have values of further outcomes.
            cells = (row.value, *(row.further.get(name) for name in names))
            values.append([cell if cell is not None and index not in refused else math.nan for cell in cells])
            errors.append(row.failure if row.failure is not None else refused.get(index))
        known = [row.standard_error for row in measurements]
        censored = [row.censored for row in measurements]
        if any(censored) and not takes_censored(self.optimizer.strategy):
            if not self._warned:
                logger.warning(
                    "%s cannot learn from censored values: their limits count as values", self.optimizer.learner
                )
                self._warned = True
            censored = [None] * len(measurements)
        self.optimizer.tell(
            [Query(row.string, row.context) if row.context else row.string for row in measurements],
            values,
            standard_errors=known if any(error is not None for error in known) else None,
            censored=censored if any(censored) else None,
            errors=errors,
            seconds=[row.details.get("seconds") for row in measurements],
            costs=[row.cost for row in measurements] if any(row.cost is not None for row in measurements) else None,
            trials=[row.details.get(WELLS, 1) for row in measurements] if self.settings.yes_no else None,
        )

    def _withdraw(self, suggestion: Suggestion) -> None:
        before = len(self.optimizer.observations)
        query = Query(suggestion.string, suggestion.context) if suggestion.context else suggestion.string
        with self._answering(suggestion.name):
            self.optimizer.withdraw([query])
        self._note_told([suggestion.name], before)

    def _exclude(self, exclusion: Exclusion) -> None:
        before = len(self.optimizer.observations)
        with self.optimizer.observations.kept_pending([Query(exclusion.key, self.settings.target)]):
            self.optimizer.withdraw([exclusion.string], exclusion.reason or "excluded")
        self._note_told([None], before)

    def _discard(self, row: Measurement) -> None:
        """Take what was discarded out of what may be suggested; it has been spent, and teaches nothing."""
        before = len(self.optimizer.observations)
        answered = row.suggestion if _answers(row) and row.suggestion in self.open else None
        query = Query(row.string, row.context) if row.context else row.string
        waiting = [] if answered else [Query(row.key, row.context)]
        with self._answering(answered), self.optimizer.observations.kept_pending(waiting):
            self.optimizer.withdraw([query], f"discarded: {row.discarded}" if row.discarded else "discarded")
        self._note_told([answered], before)
        self.journal.told[-1].details["discarded"] = row.told
        self.journal.results += _answers(row)

    @contextmanager
    def _answering(self, name: str | None) -> Iterator[None]:
        """Inside the block, a result of a string is one of the suggestion of this name.

        A string that was tried again is open twice for a while if the failure that was the reason was undone since.
        """
        row = None if name is None else self._rows.get(name)
        others = (
            [] if row is None else [one for one in self._rows.values() if one.query == row.query and one is not row]
        )
        if row is None or not others:
            yield
            return
        self.optimizer.observations.turn_to(row)
        yield
        self.optimizer.observations.turn_to(others[-1])

    def _note_told(self, answered: Sequence[str | None], before: int) -> None:
        """Note the rows of results: those of the suggestions that they answer, and new ones."""
        further = iter(self.optimizer.observations.rows[before:])
        for name in answered:
            if name is not None and name in self.open:
                del self.open[name]
                self.journal.tell(self._rows.pop(name))
            else:
                self.journal.tell(next(further))


def _new_suggestions(
    optimizer: Optimizer, rows: Sequence[Observation], learner: ModelBased | None, *, explained: bool
) -> Iterator[NewSuggestion]:
    chosen_by = optimizer.chosen_by if learner is None else learner.acquisition.name
    # What no model has chosen has no other reason; and there may be no model, as where the whole batch was lost.
    modelled = [row for row in rows if _modelled(row)]
    with doing("working out the reasons"):
        reasons = iter(reasons_of(optimizer, modelled, learner) if explained and modelled else [{} for _ in modelled])
    for row in rows:
        mean, std, score = (row.details[name] for name in ("predicted_mean", "predicted_std", "acquisition"))
        reason = next(reasons) if _modelled(row) else None
        # What neither a model nor chance has chosen says what did: a design, or its user.
        origin = str(row.details.get("why") or "random")
        low, high = row.details["predicted_low"], row.details["predicted_high"]
        yield NewSuggestion(
            row.string,
            row.key,
            mean,
            std,
            low,
            high,
            origin if reason is None else chosen_by,
            score,
            {"kind": origin} if reason is None else reason,
            row.context,
        )


def _modelled(row: Observation) -> bool:
    return row.details["predicted_mean"] is not None or row.details["acquisition"] is not None


def _add_controls(optimizer: Optimizer, controls: Sequence[tuple[Control, Context]]) -> list[Observation]:
    """Rows of an optimiser for what nobody has chosen, which await their results like others."""
    predictions = dict.fromkeys(("predicted", "predicted_low", "predicted_high", "predicted_mean", "predicted_std"))
    details = {"batch": optimizer.batches} | predictions | {"acquisition": None}
    rows = [{"string": one.string, "key": one.key, "context": context, "details": details} for one, context in controls]
    optimizer.replay_ask(rows, optimizer.counters)
    return optimizer.observations.rows[-len(rows) :]


def _answers(row: Measurement) -> bool:
    """Whether a measurement says what a suggestion asks for."""
    return row.value is not None or row.failure is not None


def _item(row: Measurement) -> Item:
    return Query(row.key, row.context) if row.context else row.key


def _by_command(rows: Sequence[Any]) -> dict[int, list[Any]]:
    return {command: list(group) for command, group in groupby(rows, key=lambda row: row.made_by)}
