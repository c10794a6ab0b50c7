"""What a campaign lets its users change their minds about: results, settings, candidates."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqopt.campaign.batches import Suggestions
from seqopt.campaign.correcting import changed, chosen_results, correction, note_settings, one_result, retried
from seqopt.campaign.costs import costs_of
from seqopt.campaign.entries import ResultEntry
from seqopt.campaign.errors import CampaignError
from seqopt.campaign.failures import lost_reason
from seqopt.campaign.library import (
    allows_attachment_points,
    key_hashes,
    packed,
    read_library,
    same_library,
    strings_in,
    unpacked,
    with_added,
    without,
)
from seqopt.campaign.narrowing import fitting
from seqopt.campaign.recording import as_answer, as_float, as_limit
from seqopt.campaign.rows import NewExclusion
from seqopt.datasets.sources import unchanged
from seqopt.errors import InputError
from seqopt.utils.unset import UNSET, Unset

if TYPE_CHECKING:
    from seqopt.campaign.labels import Label
    from seqopt.campaign.library import Hashes, Library
    from seqopt.campaign.naming import Naming
    from seqopt.campaign.recording import Recorder
    from seqopt.campaign.rows import Command, Measurement, NewSuggestion, Settings, Suggestion
    from seqopt.campaign.store import CampaignStore
    from seqopt.data import ContextValue, Direction
    from seqopt.filters.conditions import Filter


CANDIDATES_ON_DISK = (
    "the candidates of this campaign are on disk, and stay those with which it began. For others, begin a campaign "
    "with all of the files (campaign new --pool), and take the results over (campaign export, campaign import); single "
    "candidates are left out by campaign withdraw"
)
"""Why the candidates of a pool on disk cannot be changed, and what to do instead."""


@dataclass(frozen=True)
class PoolChange:
    """What a change of the candidates did.

    Attributes:
        size: Candidates from now on.
        added: How many have come; `None` where the file of the campaign does not hold what there was.
        removed: How many have gone.
        unknown: What was to be removed, and is no candidate.
        failing: Open suggestions that may not be suggested any more, by name, and why.
        notes: What else is worth knowing.
    """

    size: int
    added: int | None
    removed: int | None
    unknown: tuple[str, ...] = ()
    failing: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def describe(self) -> str:
        """In a few words.

        Example:
            >>> PoolChange(1200, 230, 30).describe()
            '1,200 candidates now: 230 more, 30 gone'
        """
        if self.added is None or self.removed is None:
            return f"{self.size:,} candidates now"
        return f"{self.size:,} candidates now: {self.added:,} more, {self.removed:,} gone"


class Revising:
    """The part of `seqopt.campaign.Campaign` that corrects, discards, takes back and changes."""

    store: CampaignStore
    _recorder: Recorder

    if TYPE_CHECKING:

        @property
        def filters(self) -> list[Filter]: ...

        def _labels(self, strings: Sequence[str]) -> list[Label]: ...

        def _replated(self, again: Sequence[NewSuggestion]) -> list[NewSuggestion]: ...

    @property
    def _naming(self) -> Naming:
        return self._recorder.naming

    def correct(
        self,
        what: str,
        value: float | str | None = None,
        *,
        failure: str | None = None,
        lost: str | None = None,
        standard_error: float | None = None,
        was: float | str | None = None,
        reason: str = "",
        force: bool = False,
        context: Mapping[str, ContextValue] | None = None,
        cost: float | None = None,
    ) -> Measurement:
        """Correct a result, as after a typing error; a command that can be undone.

        What was recorded stays in the file and in `history`, and counts no more. The model learns as if the result had
        been right from the start; suggestions that were made meanwhile stay.

        Args:
            what: The name of a suggestion, an identifier or a string, or the label of a replicate.
            value: The right value, a number, or a limit of it as text, such as ``"<0.1"``.
            failure: Why there is none, if it failed after all.
            lost: What happened, if it was lost after all: see `record`.
            standard_error: The right standard error; by default a value keeps its own.
            was: The value as it was recorded, where there are several results of the string.
            reason: Why.
            force: Take a value that lies far outside all others.
            context: How it was measured, where the string was in several ways.
            cost: What it has cost, if that was wrong.

        Returns:
            The measurement as it counts from now on.

        Raises:
            CampaignError: If there is no such result, or more than one, or nothing would change, or the value cannot be
                right.

        Example:
            >>> import tempfile
            >>> from seqopt.campaign import Campaign
            >>> from seqopt.spaces import StringSpace
            >>> folder = tempfile.TemporaryDirectory()
            >>> campaign = Campaign.create(Path(folder.name, "a.seqopt"), StringSpace("01", 8), objective="activity")
            >>> _ = campaign.record("01010101", 55.0)
            >>> campaign.correct("01010101", 5.5, reason="typo").value, len(campaign.store.measurements())
            (5.5, 1)
            >>> campaign.undo().describe()
            'correct 01010101 from 55 to 5.5 (typo): 1 measurement'
            >>> campaign.close(); folder.cleanup()
        """
        failure, wells = lost_reason(failure, lost), None
        if self.store.settings.yes_no and value is not None:
            answer = as_answer(ResultEntry(), value)
            if answer.value is None:
                raise CampaignError(
                    f"a result cannot be corrected to {value!r}: discard it (seqopt campaign discard), which is what "
                    "becomes of inconclusive results"
                )
            value, wells = answer.value, answer.wells
        given, censored = as_limit(value)
        number, standard_error = as_float("the value", given), as_float("the standard error", standard_error)
        with self.store.transaction("correct", {"string": what, "reason": reason}) as change:
            old = one_result(self._results_of(what, context), what, was)
            made = correction(
                old,
                number,
                failure,
                standard_error,
                self.store.measurements(),
                self.store.settings,
                censored=censored,
                force=force,
                cost=cost,
                wells=wells,
            )
            change.arguments.update(was=old.told, now=made.told)
            if cost is not None:
                usual = costs_of([old, made], self.store.settings)
                change.arguments.update(cost_was=usual[0], cost=usual[1])
            return change.add_measurements([made])[0]

    def discard(
        self,
        what: str,
        reason: str = "",
        *,
        was: float | str | None = None,
        every: bool = False,
        context: Mapping[str, ContextValue] | None = None,
    ) -> list[Measurement]:
        """Keep a result, but do not model it: an outlier, a plate that dried out; a command that can be undone.

        It is shown as discarded, and its string is not suggested again; a further result of it may be recorded.

        Args:
            what: The name of a suggestion, an identifier or a string, or the label of a replicate.
            reason: Why.
            was: The value, where there are several results of the string.
            every: Discard all of its results.
            context: How it was measured, where the string was in several ways.

        Returns:
            What was discarded.

        Raises:
            CampaignError: If there is no such result, or more than one, or it was discarded before.
        """
        with self.store.transaction("discard", {"string": what, "reason": reason}) as change:
            found = self._results_of(what, context)
            chosen = chosen_results(found, what, was) if every else [one_result(found, what, was)]
            known = [row for row in chosen if row.discarded is not None]
            if known:
                raise CampaignError(f"{known[0].told} of {what} is discarded already: nothing was changed")
            change.arguments["was"] = ", ".join(row.told for row in chosen)
            change.discard([row.id for row in chosen], reason)
        return chosen

    def _results_of(self, what: str, context: Mapping[str, ContextValue] | None) -> list[Measurement]:
        """Results of a string, in one context if that is said."""
        found = self._naming.results(what)
        if not context:
            return found
        return [row for row in found if dict(row.context).items() >= context.items()]

    def undo(self, number: int | None = None) -> Command:
        """Take back a command, by default the last one that can be, and return it.

        Args:
            number: Of the command, as `history` numbers them.

        Raises:
            CampaignError: If there is nothing to undo, or something depends on the command: it says what, and what to
                undo first.
            InputError: If there is no command of this number.
        """
        return self.store.undo(number)

    def retry_failed(self, names: Iterable[str] | None = None) -> Suggestions:
        """Suggest again what only failed so far, under new names; a command that can be undone.

        What failed on a plate that is closed or full goes on another one.

        Args:
            names: Names of the suggestions that failed, identifiers or strings; by default all.

        Returns:
            The new suggestions.

        Raises:
            CampaignError: If one has not failed, or is open again already, or nothing has failed.
        """
        if isinstance(names, str):
            raise InputError(f"retry_failed takes a list of names: retry_failed([{names!r}])")
        wanted = None if names is None else [self._naming.called(name) for name in names]
        state = self.store.state
        again = retried(self.store, wanted)
        if wanted is None:
            again = [row for row in again if self._naming.left_out(row.string) is None]
            if not again:
                raise CampaignError("what failed is left out of the space: name what is to be suggested all the same")
        again = self._replated(again)
        # What the library says of them by now, such as the price.
        labels = self._labels([row.string for row in again])
        new = [
            replace(row, identifier=label.identifier or row.identifier, cells=dict(label.cells) or row.cells)
            for row, label in zip(again, labels, strict=True)
        ]
        with self.store.transaction("suggest", {"n": len(new), "what": "again"}, expected_state=state) as change:
            made = change.add_suggestions(new)
        return Suggestions(made, self.store.settings)

    def change(
        self,
        *,
        direction: Direction | Unset = UNSET,
        unit: str | Unset | None = UNSET,
        batch_size: int | Unset = UNSET,
        transform: str | Unset | None = UNSET,
        budget: float | Unset | None = UNSET,
    ) -> Settings:
        """Change what the campaign is about from now on; a command that can be undone.

        Args:
            direction: ``"maximize"`` or ``"minimize"``.
            unit: Of the values, which stay as they are.
            batch_size: Suggestions at a time.
            transform: One of `seqopt.data.TRANSFORMS`, or `None`.
            budget: Cost that may be spent, where measurements have costs; `None` for no limit.

        Returns:
            The settings.

        Raises:
            InputError: For what cannot be used.
            CampaignError: If nothing would change, or a value has no logarithm. Nothing has been changed.
        """
        given: dict[str, Any] = {"direction": direction, "unit": unit, "batch_size": batch_size}
        given |= {"transform": transform, "budget": budget}
        wanted = {name: value for name, value in given.items() if not isinstance(value, Unset)}
        if not wanted:
            raise InputError("say what to change: direction, unit, batch_size, transform or budget")
        with self.store.transaction("configure") as change:
            settings = self.store.settings
            made = changed(settings, wanted, self.store.measurements())
            note_settings(change, settings, made, self._failing())
        return made

    def withdraw(self, names: Iterable[str], reason: str = "") -> None:
        """Withdraw open suggestions that will not be measured; their strings are not suggested again.

        Of a candidate that was never suggested the same is noted, and of a suggestion whose result was lost: it will
        not be.

        Args:
            names: Names of suggestions, identifiers or strings.
            reason: Why.

        Raises:
            CampaignError: If one is unknown, has a result, or was withdrawn before.
        """
        if isinstance(names, str):
            raise InputError(f"withdraw takes a list of names: withdraw([{names!r}])")
        names = list(names)
        with self.store.transaction("withdraw", {"suggestions": names, "reason": reason}) as change:
            suggestions: list[str] = []
            lost: list[str] = []
            excluded: dict[str, NewExclusion] = {}
            for name in names:
                found = self._naming.withdrawable(name)
                if found is not None:
                    (lost if self._was_lost(found) else suggestions).append(found.name)
                    continue
                string, key, identifier = self._naming.candidate(name)
                if any(row.key == key for row in self.store.exclusions()):
                    raise CampaignError(f"{name} was withdrawn already")
                # By its identifier and by its string it is the same candidate.
                excluded.setdefault(key, NewExclusion(string, key, reason, identifier))
            change.withdraw(suggestions, reason)
            change.withdraw(lost, reason, lost=True)
            change.exclude(list(excluded.values()))

    def _was_lost(self, suggestion: Suggestion) -> bool:
        """Whether all results of a suggestion were lost, so that its string is to be suggested again.

        Raises:
            CampaignError: If that is so, and it was suggested again, has a value by now, or was withdrawn before.
        """
        from seqopt.utils.losses import is_lost

        query = suggestion.key, suggestion.context
        results = [row for row in self.store.measurements() if (row.key, row.context) == query]
        own = [row for row in results if row.suggestion == suggestion.name]
        if suggestion.status != "failed" or not all(is_lost(row.failure) for row in own):
            return False
        again = [row.name for row in self.store.open_suggestions() if (row.key, row.context) == query]
        if again:
            raise CampaignError(f"{suggestion.name} was lost, and is suggested again as {again[0]}: withdraw that")
        known = [row for row in results if not is_lost(row.failure)]
        if known:
            raise CampaignError(
                f"{suggestion.name} was lost, and has a result by now ({known[-1].told}): nothing awaits it"
            )
        if any(row.suggestion == suggestion.name and row.undone_by is None for row in self.store.withdrawals()):
            raise CampaignError(f"{suggestion.name} was withdrawn already")
        return True

    def change_pool(
        self,
        *,
        add: str | os.PathLike[str] | None = None,
        remove: str | os.PathLike[str] | None = None,
        replace: str | os.PathLike[str] | None = None,
        column: str | None = None,
        id_column: str | None = None,
        price_column: str | None = None,
    ) -> PoolChange:
        """Change which candidates there are; a command that can be undone.

        What was measured stays, and teaches the model whether it is a candidate or not.

        Args:
            add: A file of further candidates, which is read again with every suggestion; or the library itself, after
                rows were added to it.
            remove: A file of candidates that shall not count any more: their strings or identifiers.
            replace: A file instead of all those before; or the library itself, to accept it as it is.
            column: Column of the strings in this file, if it is not to be recognised.
            id_column: Column of the identifiers, if it is not to be recognised.
            price_column: Column of the prices; by default that of before, if there is one of this name.

        Returns:
            What has changed.

        Raises:
            InputError: For a file that cannot be used, or not exactly one of them.
            CampaignError: If the campaign does not search a file, its candidates are on disk, or nothing would change.
            StaleStateError: If another process has changed the campaign meanwhile.
        """
        given = {
            name: path for name, path in {"add": add, "remove": remove, "replace": replace}.items() if path is not None
        }
        if len(given) != 1:
            raise InputError("give one file: one of add, remove and replace")
        ((how, path),) = given.items()
        state, settings, facts = self.store.state, self.store.settings, self.store.library
        if facts is None or settings.pool is None:
            if settings.space.get("type") == "StoredPool":
                raise CampaignError(CANDIDATES_ON_DISK)
            raise CampaignError("the campaign does not search a file of candidates")
        kept, removed = self.store.library_hashes()
        unknown: tuple[str, ...] = ()
        before = unpacked(kept)
        if how == "replace":
            found = _read(path, facts, column, id_column, price_column)
        else:
            present = same_library(facts, kept, removed)
            # Which the file of a run's campaign, or of an older version, does not hold.
            before = present.hashes
            if how == "add":
                added = _read(path, facts, column, id_column, price_column)
                _refuse_clashes(facts, added.facts)
                found = with_added(present, added, unpacked(removed))
            else:
                keys, unknown = self._naming.keys_in(path, column, id_column)
                found = without(present, keys)
        return self._save_pool(how, path, before, found, state, unknown)

    def _save_pool(
        self,
        how: str,
        path: str | os.PathLike[str],
        before: Hashes | None,
        found: Library,
        state: int,
        unknown: tuple[str, ...],
    ) -> PoolChange:
        import numpy as np

        settings = self.store.settings
        kept, gone_before = self.store.library_hashes()
        was_removed = unpacked(gone_before)
        added = removed = None
        if before is not None:
            added = len(np.setdiff1d(found.hashes, before, assume_unique=True))
            gone = np.setdiff1d(before, found.hashes, assume_unique=True)
            removed = len(gone)
            if how == "remove":
                was_removed = gone if was_removed is None else np.union1d(was_removed, gone)
            elif how == "add" and was_removed is not None:
                # Those of another file are candidates again.
                was_removed = np.setdiff1d(was_removed, found.hashes)
        if how == "replace":
            was_removed = None
        pool = located(found.facts, self.store.path)
        made = replace(settings, pool=pool)
        # Where the file holds no hashes, what it keeps of the candidates is another thing, and the files decide.
        files = (settings.pool or {}).get("added", [])
        same = pool == settings.pool if kept is not None else len(pool["added"]) == len(files)
        if not added and not removed and before is not None and same:
            raise CampaignError("these are the candidates already: nothing was changed")
        fitting(self.filters, pool["kind"], None, pool)
        failing = self._newly_failing(pool, found)
        result = PoolChange(len(found.space), added, removed, unknown, failing, tuple(found.left_out))
        arguments: dict[str, Any] = {"what": f"{how} {Path(path).name}, {result.describe()}", "failing": failing}
        arguments |= {"added": added, "removed": removed}
        with self.store.transaction("pool", arguments, expected_state=state) as change:
            change.save_settings(made)
            rest = None if was_removed is None or not len(was_removed) else packed(was_removed)
            change.save_library(len(found.space), packed(found.hashes), rest)
        return result

    def _newly_failing(self, pool: dict[str, Any], found: Library) -> dict[str, str]:
        from seqopt.filters.filtering import failing, library_cells

        waiting = self.store.open_suggestions()
        gone = {row.name: "is no candidate any more" for row in waiting if not _among(found, row.key)}
        rest = {row.name: (row.string, row.key) for row in waiting if row.name not in gone}
        if rest and self.filters:
            cells = library_cells(pool, [string for string, _ in rest.values()])
            gone |= failing(rest, pool["kind"], self.filters, cells)
        return gone

    def _failing(self) -> dict[str, str]:
        """Open suggestions that may not be suggested any more, and why, as it was found when that was changed."""
        kinds = ("configure", "pool")
        set_by = [row for row in self.store.history() if row.kind in kinds and row.undone_by is None]
        found: dict[str, str] = set_by[-1].arguments.get("failing", {}) if set_by else {}
        open_rows = self.store.open_suggestions()
        waiting = {row.name for row in open_rows}
        known = {name: why for name, why in found.items() if name in waiting}
        return known | self._sold_out([row for row in open_rows if row.name not in known])

    def _sold_out(self, waiting: Sequence[Suggestion]) -> dict[str, str]:
        """Open suggestions that the library does not hold any more, or that fail a filter by what it says now.

        It is read only if it has changed since the campaign accepted it.
        """
        facts = self.store.library
        if facts is None or not waiting or "sha256" not in facts:
            return {}
        if all(unchanged(one["path"], one["sha256"]) is not False for one in (facts, *facts["added"])):
            return {}
        from seqopt.filters.conditions import ColumnCondition
        from seqopt.filters.filtering import failing, library_cells

        found: dict[str, str] = {}
        present = strings_in(facts)
        for row in waiting:
            if row.string not in present and row.key not in present:
                found[row.name] = f"is not in {Path(facts['path']).name} any more"
        conditions = [one for one in self.filters if isinstance(one, ColumnCondition)]
        rest = {row.name: (row.string, row.key) for row in waiting if row.name not in found}
        if conditions and rest:
            cells = library_cells(facts, [string for string, _ in rest.values()])
            found |= failing(rest, facts["kind"], conditions, cells)
        return found


def located(facts: dict[str, Any], campaign: Path) -> dict[str, Any]:
    """Facts of a library with the paths of its files as seen from the campaign, where they are below its folder."""
    folder = campaign.absolute().parent

    def with_relative(one: dict[str, Any]) -> dict[str, Any]:
        path = Path(one["path"])
        bare = {name: value for name, value in one.items() if name != "relative"}
        return bare | {"relative": path.relative_to(folder).as_posix()} if path.is_relative_to(folder) else bare

    return with_relative(facts) | {"added": [with_relative(one) for one in facts.get("added", [])]}


def _read(
    path: str | os.PathLike[str],
    facts: dict[str, Any],
    column: str | None,
    id_column: str | None,
    price_column: str | None,
) -> Library:
    """A file of candidates of the kind that a campaign searches, with its columns of before where they are there."""
    from seqopt.datasets.sheets import plain_name
    from seqopt.datasets.sources import file_and_part
    from seqopt.datasets.tables import read_table

    expected = {plain_name(column or facts["column"] or "string")}
    known: Sequence[str] = []
    if file_and_part(path)[0].is_file():
        known = list(read_table(Path(path), expected=expected).columns)

    def usual(given: str | None, name: str) -> str | None:
        before = facts.get(name)
        return given if given is not None else before if before in known else None

    return read_library(
        path,
        usual(column, "column"),
        facts["kind"],
        facts["standardize"],
        attachment_points=allows_attachment_points(facts),
        id_column=usual(id_column, "id_column"),
        price_column=usual(price_column, "price_column"),
        decimal_comma=bool(facts.get("decimal_comma")),
    )


def _refuse_clashes(facts: dict[str, Any], added: dict[str, Any]) -> None:
    """Refuse a file that calls another candidate what the library calls one of its own.

    Raises:
        InputError: If there is such an identifier: nobody could say which of the two is meant.
    """
    from seqopt.campaign.labels import strings_by_identifier
    from seqopt.strings.identity import identity_keys

    known, new = strings_by_identifier(facts), strings_by_identifier(added)
    shared = [name for name, string in new.items() if known.get(name, string) != string]
    own, other = (
        identity_keys([strings[name] for name in shared], facts["kind"], standardize=facts["standardize"])
        for strings in (known, new)
    )
    clashes = [name for name, one, two in zip(shared, own, other, strict=True) if one != two]
    if clashes:
        name, more = clashes[0], f", and so do {len(clashes) - 1} others" if len(clashes) > 1 else ""
        raise InputError(
            f"{added['path']}: {name!r} is {new[name]} there and {known[name]} in the library{more}. Give candidates "
            "identifiers of their own, or name another column of them (--id-column, id_column=)"
        )


def _among(library: Library, key: str) -> bool:
    import numpy as np

    return bool(np.isin(key_hashes([key]), library.hashes)[0])
