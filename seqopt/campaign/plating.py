"""What a campaign lets its users do with plates: open, close and list them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from seqopt.campaign.errors import CampaignError
from seqopt.campaign.plates import (
    PLATE,
    Plate,
    PlateRules,
    controls_for,
    offsets_in,
    plate_of,
    plates_of,
    room_on,
    stand_of,
    with_closed,
    with_opened,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seqopt.campaign.plates import Control
    from seqopt.campaign.rows import NewSuggestion
    from seqopt.campaign.session import Session
    from seqopt.campaign.store import CampaignStore
    from seqopt.data import Context, Observation, Room


class Plating:
    """Plates of a campaign."""

    store: CampaignStore

    if TYPE_CHECKING:

        def session(self) -> Session: ...

    def plates(self, *, learned: bool = True) -> list[Plate]:
        """The plates of the campaign, in the order in which they came up.

        Args:
            learned: Whether a model is fitted for their offsets.

        Raises:
            CampaignError: If the campaign has none.

        Example:
            >>> import tempfile
            >>> from pathlib import Path
            >>> from seqopt.campaign import Campaign
            >>> folder = tempfile.TemporaryDirectory()
            >>> campaign = Campaign.create(
            ...     Path(folder.name, "a.seqopt"), ["CCO", "CCN", "CCC", "CCF"], kind="molecule", objective="activity",
            ...     batch_size=2, plates=24, controls=["CCCl"],
            ... )
            >>> [(row.string, row.reason["kind"], dict(row.context)["plate"]) for row in campaign.suggest()][-1]
            ('CCCl', 'control', 'P1')
            >>> print(campaign.plates()[0].describe())
            P1  open, 3 of 24 wells used
            >>> campaign.close(); folder.cleanup()
        """
        self._rules()
        return self._plates(offsets_in(self._learned_of_plates()["plates"]) if learned else {})

    def _learned_of_plates(self) -> Mapping[str, Any]:
        """What a model that was fitted to all results says of ``plates`` and their ``controls``.

        That of the last suggestion is not fitted again, so that all commands say the same.
        """
        from seqopt.campaign.plate_facts import disagreeing
        from seqopt.errors import ModelError
        from seqopt.optimizer.learned import learned_contexts

        with self.store.reading():
            measurements, latest = self.store.measurements(), self.store.latest_snapshot()
        nothing: dict[str, Any] = {"plates": [], "controls": []}
        if not any(row.value is not None for row in measurements):
            return nothing
        known = {} if latest is None else latest.summary
        if known.get("stand") == stand_of(self.store.settings, measurements):
            return nothing | {name: known[name] for name in nothing if name in known}
        optimizer = self.session().optimizer
        try:
            surrogate = optimizer.fitted
        except ModelError:
            return nothing
        return {
            "plates": learned_contexts(optimizer, surrogate),
            "controls": disagreeing(optimizer, surrogate, self._rules()),
        }

    def disagreeing_controls(self) -> list[str]:
        """Controls that read what neither noise nor their plate explains, in words, by a model fitted to all results.

        Raises:
            CampaignError: If the campaign has no plates.
        """
        self._rules()
        return list(self._learned_of_plates()["controls"])

    def open_plate(self, name: str | None = None) -> str:
        """Open a plate, or one that was closed again; a command that can be undone.

        Args:
            name: What it is called; by default P1, P2, ..., the first that is not used.

        Returns:
            What it is called.

        Raises:
            CampaignError: If it is open already, or the campaign has no plates.
            InputError: For an empty name.
        """
        with self.store.transaction("configure") as change:
            rules, plates = self._rules(), self._plates()
            made, opened = with_opened(rules, name, plates, self._fresh(plates))
            change.arguments["what"] = f"plate {opened} opened{' again' if opened in rules.closed else ''}"
            change.save_settings(replace(self.store.settings, plates=made.to_json()))
        return opened

    def close_plate(self, name: str) -> str:
        """Close a plate: nothing more is suggested on it; a command that can be undone.

        Results of what was suggested there are recorded as before.

        Args:
            name: What it is called.

        Returns:
            What it is called, as the campaign writes it.

        Raises:
            CampaignError: If there is no such plate, it is closed, or the campaign has no plates.
        """
        with self.store.transaction("configure") as change:
            made, closed = with_closed(self._rules(), name, self._plates())
            change.arguments["what"] = f"plate {closed} closed"
            change.save_settings(replace(self.store.settings, plates=made.to_json()))
        return closed

    def _rules(self) -> PlateRules:
        rules = PlateRules.of(self.store.settings)
        if rules is None:
            raise CampaignError("the campaign has no plates: seqopt campaign new --plates begins one that has")
        return rules

    def _plates(self, offsets: dict[str, tuple[float, float, float]] | None = None) -> list[Plate]:
        store = self.store
        return plates_of(store.settings, store.suggestions(), store.measurements(discarded=True), offsets)

    def _fresh(self, plates: Sequence[Plate]) -> str:
        contexts = self.store.contexts
        assert contexts is not None  # where there are rules for plates
        return str(dict(contexts.fresh([plate.context for plate in plates]))[PLATE])

    def _room(self, n: int, only: Context | None, shared: bool) -> tuple[Room | None, bool]:
        """How many candidates fit on plates, and whether all go on one."""
        rules = PlateRules.of(self.store.settings)
        return (None, shared) if rules is None else room_on(rules, self._plates(), n, only, shared)

    def _replated(self, again: Sequence[NewSuggestion]) -> list[NewSuggestion]:
        """What is to be measured again, on its plate if that has room, and else on another one.

        Raises:
            CampaignError: If nothing is left: controls are not measured again on other plates.
        """
        rules = PlateRules.of(self.store.settings)
        if rules is None:
            return list(again)
        plates, controls = self._plates(), {one.key for one in rules.controls}
        left = {plate.name: plate.room for plate in plates}
        fresh = self._fresh(plates)
        waiting = {(row.key, row.context) for row in self.store.open_suggestions()}
        found = []
        for one in again:
            own = plate_of(one.context)
            others = [] if one.key in controls else [*left, fresh]
            left.setdefault(fresh, rules.size - len(rules.controls))
            free = (name for name in (own, *others) if left[name] > 0 and (one.key, ((PLATE, name),)) not in waiting)
            if (name := next(free, None)) is not None:
                left[name] -= 1
                found.append(replace(one, context=((PLATE, name),)))
        if not found:
            raise CampaignError("no plate has room for what has failed: controls are measured on their own plates only")
        return found

    def _controls(self, rows: Sequence[Observation]) -> list[tuple[Control, Context]]:
        """What is to be measured besides, on the plates of a batch."""
        rules = PlateRules.of(self.store.settings)
        if rules is None or not rules.controls:
            return []
        asked = {(row.key, row.context) for row in rows}
        found = controls_for(rules, self._plates(), (row.context for row in rows))
        return [(one, context) for one, context in found if (one.key, context) not in asked]
