"""Confirming hits: which of a few strings is the best, by measuring them again, plate by plate.

What is kept in the settings of the campaign is which strings are compared, by how many wells, and what was proposed for
each plate. All else follows from the measurements: results of the strings that were recorded since count as wells, in
whichever table they came, and the model of the campaign is fitted to all that is known.
"""

from __future__ import annotations

import logging
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqopt.campaign.columns import FAILURE, REPLICATE, STANDARD_ERROR
from seqopt.campaign.errors import CampaignError
from seqopt.campaign.plates import PLATE, PlateRules, plate_of
from seqopt.campaign.wording import counted, percent
from seqopt.errors import InputError
from seqopt.utils.arguments import checked_integer

if TYPE_CHECKING:
    import pandas as pd

    from seqopt.campaign.inquiry import Predicted, PredictedStrings
    from seqopt.campaign.labels import Label
    from seqopt.campaign.naming import Naming
    from seqopt.campaign.plates import Control, Plate
    from seqopt.campaign.rows import Measurement, Settings
    from seqopt.campaign.session import Session
    from seqopt.campaign.store import CampaignStore
    from seqopt.spaces import Space
    from seqopt.strategies.arms import Forecast

logger = logging.getLogger(__name__)

KEPT = "confirmation"
"""What it is called in the settings."""

WELL = re.compile(r"C(\d+)-(?:control-)?\d+")
"""What the replicates of wells are called, with the number of the confirmation."""

TOP = 30
"""Measured strings that are compared, if nobody says which."""

TARGET = 0.95

RULE = "bayes-gap"

BATCHES = 4
"""Plates that the wells are divided into, if nobody says how many go on one."""

LOOK_AHEAD, LEAST = 4, 192
"""How far it is looked ahead for the target: so many times the wells, and this many wells at least."""

REPEATS = 4
"""Replicates (measurements beyond the first of each string) without which nothing is decided: what a model takes for
the noise of single values may be far too little."""


@dataclass(frozen=True)
class Plan:
    """A confirmation as the campaign keeps it.

    Attributes:
        number: The how-many-eth of the campaign; labels of its wells begin with it.
        since: The state of the campaign when it began.
        strings: What is compared, as their owner writes them.
        keys: Their identities.
        wells: Measurements in all.
        batch: Measurements at a time.
        rule: A name of `seqopt.strategies.arms.RULES`.
        target: Probability at which it is decided.
        plates: What was proposed: for each plate the state of the campaign, the indices of the strings, and its name
            where the campaign has plates.
    """

    number: int
    since: int
    strings: tuple[str, ...]
    keys: tuple[str, ...]
    wells: int
    batch: int
    rule: str = RULE
    target: float = TARGET
    plates: tuple[dict[str, Any], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As the settings keep it."""
        return {**asdict(self), "strings": list(self.strings), "keys": list(self.keys), "plates": list(self.plates)}

    @classmethod
    def of(cls, kept: Mapping[str, Any] | None) -> Plan | None:
        """What `to_json` gave; `None` where no confirmation is under way."""
        if not kept or "keys" not in kept:
            return None
        return cls(
            **{
                **kept,
                "strings": tuple(kept["strings"]),
                "keys": tuple(kept["keys"]),
                "plates": tuple(dict(plate) for plate in kept["plates"]),
            }
        )

    def label(self, well: int) -> str:
        """What the replicate of a well, numbered from 0 over all plates, is called.

        Example:
            >>> Plan(1, 0, (), (), 96, 24).label(0)
            'C1-001'
        """
        return f"C{self.number}-{well + 1:03d}"

    def planned(self) -> dict[str, tuple[str, str]]:
        """The string of each well of all plates, and its identity, by the label of the well.

        Example:
            >>> Plan(1, 0, ("C", "CC"), ("C", "CC"), 96, 2, plates=({"arms": [1, 0]},)).planned()
            {'C1-001': ('CC', 'CC'), 'C1-002': ('C', 'C')}
        """
        arms = [int(index) for plate in self.plates for index in plate["arms"]]
        return {self.label(well): (self.strings[index], self.keys[index]) for well, index in enumerate(arms)}


@dataclass(frozen=True)
class Well:
    """One measurement that is to be made.

    Attributes:
        label: What tells it from other measurements of the string: the column ``replicate``.
        string: What is measured.
        key: Its identity.
        plate: On which plate, where the campaign has them.
        control: Whether it is one, which counts for no string.
    """

    label: str
    string: str
    key: str
    plate: str | None = None
    control: bool = False


@dataclass(frozen=True)
class Arm:
    """One of the strings that are compared.

    Attributes:
        prediction: What is predicted of it now.
        probability: That it is the best of them.
        measured: Values of it, all told.
        wells: Wells that the confirmation has spent on it.
        next: Wells of the plate at hand.
    """

    prediction: Predicted
    probability: float
    measured: int
    wells: int
    next: int


@dataclass(frozen=True)
class Confirmed:
    """How a confirmation stands.

    Attributes:
        arms: The strings that are compared, the most probable one first.
        wells: Measurements in all.
        used: Measurements so far.
        target: Probability at which it is decided.
        plate: The measurements to be made now; empty where nothing is left to do.
        waiting: Whether the plate was proposed before.
        forecast: How many further wells would be needed; `None` where it is decided.
        remarks: What its user should know.
        repeats: Measurements of the campaign beyond the first of each string.
    """

    arms: tuple[Arm, ...]
    wells: int
    used: int
    target: float
    plate: tuple[Well, ...] = ()
    waiting: bool = False
    forecast: Forecast | None = None
    remarks: tuple[str, ...] = field(default=())
    repeats: int = 0

    @property
    def best(self) -> Arm:
        """The string that is most probably the best."""
        return self.arms[0]

    @property
    def decided(self) -> bool:
        """Whether the target is reached, and the noise of measurements is known from replicates."""
        return self.best.probability >= self.target and self.repeats >= REPEATS

    def needed(self) -> str:
        """How many further wells would be needed, in words; empty where it is decided."""
        if self.decided or self.forecast is None or self.forecast.needed == 0:
            return ""
        aim = percent(self.target)
        ahead, half, most = self.forecast, self.forecast.needed, self.forecast.wells[-1]
        often, share = ahead.within(0.9), ahead.decided[-1]
        unknown = "" if self.repeats >= REPEATS else f", once there are {REPEATS} replicates"
        if half is not None and often is not None:
            further = f"and within {often} in nine of ten" if often > half else "and in nine of ten"
            return (
                f"{aim} would be reached within {counted(half, 'more well')} in half of all cases, {further}{unknown}"
            )
        if half is not None and half == most:
            return f"{aim} would be reached within {counted(half, 'more well')} in {percent(share)} of all cases"
        if half is not None:
            return (
                f"{aim} would be reached within {counted(half, 'more well')} in half of all cases, and within {most} "
                f"in {percent(share)}"
            )
        return (
            f"{aim} would be reached within {counted(most, 'more well')} in {percent(share)} of all cases only: some "
            "of these may be too much alike to be told apart by this assay"
        )

    def to_pandas(self) -> pd.DataFrame:
        """One row per string, the most probable first."""
        import pandas as pd

        return pd.DataFrame(
            [
                (
                    one.prediction.string,
                    one.probability,
                    one.prediction.predicted,
                    one.prediction.true_low,
                    one.prediction.true_high,
                    one.measured,
                    one.wells,
                    one.next,
                )
                for one in self.arms
            ],
            columns=["string", "probability", "predicted", "true_low", "true_high", "measured", "wells", "next"],
        )


class Confirming:
    """The part of `seqopt.campaign.Campaign` that finds out which of a few strings is the best."""

    store: CampaignStore

    if TYPE_CHECKING:

        @property
        def space(self) -> Space: ...

        @property
        def _naming(self) -> Naming: ...

        def session(self) -> Session: ...

        def predict(self, strings: Iterable[str]) -> PredictedStrings: ...

        def _labels(self, strings: Sequence[str]) -> list[Label]: ...

        def _plates(self, offsets: dict[str, tuple[float, float, float]] | None = None) -> list[Plate]: ...

        def _fresh(self, plates: Sequence[Plate]) -> str: ...

    def confirm(
        self,
        wells: int | None = None,
        *,
        among: Sequence[str] | str | os.PathLike[str] | None = None,
        column: str | None = None,
        top: int | None = None,
        batch: int | None = None,
        rule: str | None = None,
        target: float | None = None,
        more: bool = False,
    ) -> Confirmed:
        """Find out which of a few strings is the best by measuring them again; the same call goes on with it.

        The first call needs ``wells``, and says what to measure on the first plate. Results are recorded as replicates,
        as any others are. Each further call says how it stands and, once results of the plate are there, what to
        measure on the next one. It ends when the best one is known with the probability ``target``, or no well is left.
        What is proposed is kept, and can be undone.

        Args:
            wells: Measurements in all. Of a confirmation that is under way: the new number.
            among: What is compared: strings, or what they are called (identifiers, names of variants or suggestions),
                or a file of these. What is there twice is compared once.
            column: Of that file, if it is not to be recognised.
            top: By default, so many of the measured strings: those that are expected to be the best (30).
            batch: Measurements at a time; by default a quarter of the wells, and no more than fit on a plate.
            rule: How wells are shared out, a name of `seqopt.strategies.arms.RULES`.
            target: Probability at which it is decided, 0.95.
            more: Go on to another plate although wells of the last one have no result.

        Raises:
            InputError: For fewer than two strings, or what cannot be used.
            CampaignError: If no confirmation is under way and ``wells`` is not given, or one is and other strings are.
            ModelError: Before two values have been recorded, or if the model has no joint posterior.

        Example:
            >>> import tempfile
            >>> from seqopt.campaign import Campaign
            >>> folder = tempfile.TemporaryDirectory()
            >>> strings = ["AAAA", "AAAC", "AACC", "ACCC", "CCCC", "CAAA"]
            >>> campaign = Campaign.create(
            ...     Path(folder.name, "a.seqopt"), strings, kind="text", objective="activity", surrogate="hamming"
            ... )
            >>> for string in strings:
            ...     _ = campaign.record(string, string.count("C") + 0.1 * strings.index(string))
            >>> found = campaign.confirm(12, top=3, batch=4)
            >>> found.best.prediction.string, len(found.plate), found.used
            ('CCCC', 4, 0)
            >>> for well in found.plate:
            ...     _ = campaign.record(well.string, well.string.count("C"), replicate=True)
            >>> campaign.confirm().used
            4
            >>> campaign.close(); folder.cleanup()
        """
        state = self.store.state
        plan = before = Plan.of(self.store.settings.extra.get(KEPT))
        begun = plan is not None
        if plan is None:
            plan = self._begun(wells, among, column, top, batch, rule, target, state)
        else:
            plan = self._changed(plan, wells, among, top, batch, rule, target)
        standing = self._standing(plan, state, more)
        made, found = standing
        if made != Plan.of(self.store.settings.extra.get(KEPT)):
            what = (
                f"confirmation {made.number}, {_change_of(before, made, found)}"
                if begun and before is not None
                else (f"confirmation {made.number} of {len(made.keys)} strings by {counted(made.wells, 'well')}")
            )
            self._keep(made, what, state)
        return found

    def end_confirmation(self) -> None:
        """End the confirmation that is under way; its results stay. Can be undone.

        Raises:
            CampaignError: If there is none.
        """
        plan = Plan.of(self.store.settings.extra.get(KEPT))
        if plan is None:
            raise CampaignError("no confirmation is under way: seqopt campaign confirm --wells 96 begins one")
        self._keep(None, f"end of confirmation {plan.number}", self.store.state, number=plan.number)

    def write_confirmation(self, path: str | os.PathLike[str], wells: Sequence[Well]) -> None:
        """Write a plate as a table to be filled in and recorded: one row per well.

        Raises:
            InputError: For a file that is something else than such a table without results, or cannot be written.
        """
        from seqopt.campaign.tables import owned_name, write_table

        check_confirmation_target(path, self.store)
        settings = self.store.settings
        rows: dict[str, list[Any]] = {REPLICATE: [well.label for well in wells]}
        strings = [well.string for well in wells]
        if settings.listed.get("id_column"):
            rows[owned_name(settings)] = [label.identifier for label in self._labels(strings)]
        rows[settings.string_column] = strings
        target = dict(settings.target)
        for name in settings.context_names:
            rows[name] = [well.plate if name == PLATE else target.get(name) for well in wells]
        unit = f" ({settings.unit})" if settings.unit and not settings.objective.endswith(f"({settings.unit})") else ""
        for name in (settings.objective + unit, STANDARD_ERROR, FAILURE):
            rows[name] = [None] * len(wells)
        write_table(path, settings, rows, drawn=False)

    def _begun(
        self,
        wells: int | None,
        among: Sequence[str] | str | os.PathLike[str] | None,
        column: str | None,
        top: int | None,
        batch: int | None,
        rule: str | None,
        target: float | None,
        state: int,
    ) -> Plan:
        from seqopt.strategies.arms import resolve_rule

        if wells is None:
            raise CampaignError("no confirmation is under way: say how many wells there are (--wells 96)")
        wells = checked_integer("the number of wells", wells, 1)
        if among is not None and top is not None:
            raise InputError("give the strings (--among) or how many of the best (--top), not both")
        target = TARGET if target is None else target
        if not 0.0 < target < 1.0:
            raise InputError(f"the target is {target!r}; expected a probability between 0 and 1, such as 0.95")
        resolve_rule(rule or RULE)
        if self.store.settings.latent and not self.store.settings.plates:
            raise CampaignError(
                "what is searched for is the mean over several ways to measure, of which none shows it: hits of such a "
                "campaign cannot be confirmed"
            )
        if column is not None and not isinstance(among, str | os.PathLike):
            raise InputError("a column goes with a file of hits (--among hits.csv --column NAME): leave it out")
        strings, keys = self._hits(among, column, TOP if top is None else checked_integer("top", top, 2))
        batch = self._room_for(-(-wells // BATCHES) if batch is None else checked_integer("the batch", batch, 1), batch)
        labels = [row.replicate or "" for row in self.store.measurements(undone=True)]
        numbers = [int(found[1]) for label in labels if (found := WELL.fullmatch(label.strip()))]
        number = 1 + max([int(self.store.settings.extra.get(KEPT, {}).get("number", 0)), *numbers])
        return Plan(number, state, tuple(strings), tuple(keys), wells, batch, rule or RULE, target)

    def _hits(
        self, among: Sequence[str] | str | os.PathLike[str] | None, column: str | None, top: int
    ) -> tuple[list[str], list[str]]:
        """What is compared, and its identities."""
        if among is None:
            values = [row for row in self._of_target() if row.value is not None]
            written = {row.key: row.string for row in reversed(values)}
            rules = PlateRules.of(self.store.settings)
            known = [key for key in written if rules is None or key not in {one.key for one in rules.controls}]
            if len(known) < 2:
                raise InputError(
                    f"{counted(len(known), 'string')} with a value cannot be compared: measure more, or list hits that "
                    "were not measured yet (--among hits.csv)"
                )
            rows = self.predict([written[key] for key in known])
            sign = -1.0 if self.store.settings.direction == "maximize" else 1.0
            order = sorted(range(len(known)), key=lambda index: sign * rows[index].predicted)[:top]
            return [written[known[index]] for index in order], [known[index] for index in order]
        if isinstance(among, str | os.PathLike):
            strings, keys = self._naming.identified_in(among, column)
        else:
            pairs = [self._naming.identified(one) for one in among]
            strings, keys = [string for string, _ in pairs], [key for _, key in pairs]
        twice = [string for place, string in enumerate(strings) if keys[place] in keys[:place]]
        if twice:
            others = f" and {counted(len(twice) - 1, 'other')}" if len(twice) > 1 else ""
            logger.warning("%s%s: there twice, and compared once", twice[0], others)
            first = {key: string for string, key in reversed(list(zip(strings, keys, strict=True)))}
            keys = list(dict.fromkeys(keys))
            strings = [first[key] for key in keys]
        if len(keys) < 2:
            raise InputError(f"there is {counted(len(keys), 'hit')}: expected two or more, of which one is the best")
        return strings, keys

    def _room_for(self, batch: int, asked: int | None) -> int:
        """How many wells there are on a plate besides its controls."""
        rules = PlateRules.of(self.store.settings)
        if rules is None:
            return batch
        room = rules.size - len(rules.controls)
        if asked is not None and asked > room:
            raise InputError(f"a plate has room for {room} wells besides its controls, not for {asked}: ask for fewer")
        return min(batch, room)

    def _changed(
        self,
        plan: Plan,
        wells: int | None,
        among: object,
        top: int | None,
        batch: int | None,
        rule: str | None,
        target: float | None,
    ) -> Plan:
        from seqopt.strategies.arms import resolve_rule

        if among is not None or top is not None:
            raise CampaignError(
                f"confirmation {plan.number}, of {len(plan.keys)} strings, is under way: go on with it (seqopt "
                "campaign confirm), or end it first (--end)"
            )
        if rule is not None:
            resolve_rule(rule)
        if target is not None and not 0.0 < target < 1.0:
            raise InputError(f"the target is {target!r}; expected a probability between 0 and 1, such as 0.95")
        return replace(
            plan,
            wells=plan.wells if wells is None else checked_integer("the number of wells", wells, 1),
            batch=plan.batch if batch is None else self._room_for(checked_integer("the batch", batch, 1), batch),
            rule=rule or plan.rule,
            target=plan.target if target is None else target,
        )

    def _standing(self, plan: Plan, state: int, more: bool) -> tuple[Plan, Confirmed]:
        """How it stands, with the plate at hand, which may be a new one."""
        import numpy as np

        from seqopt.campaign.arms import arms_of, disagreeing_replicates, variance_before
        from seqopt.strategies.arms import Situation, forecast, probability_best, resolve_rule
        from seqopt.strategies.arms.decision import choose_batch

        settings, rules = self.store.settings, PlateRules.of(self.store.settings)
        fresh = None
        if rules is not None:
            fresh = ((PLATE, self._fresh(self._plates())),)
        results = self._results(plan)
        used = len(results)
        # Controls that are on each plate besides its wells tell its offset.
        besides = [one.key for one in controls_beside(plan, rules)]
        fitted = self.session().optimizer.fitted
        everything = arms_of(fitted, [*plan.keys, *besides], fresh, target=settings.target)
        posterior = everything.first(len(plan.keys))
        rule = resolve_rule(plan.rule)
        # Each purpose has a stream of its own, so that to look again tells the same.
        streams = [np.random.default_rng([settings.seed, plan.number, used, purpose]) for purpose in range(3)]
        chances = probability_best(posterior, streams[0])
        left = max(plan.wells - used, 0)
        spent = Counter(row.key for row in results)
        told = Counter(row.key for row in results if row.value is not None)
        variance = variance_before(posterior, [told[key] for key in plan.keys])
        situation = Situation(plan.wells, min(used, plan.wells), len(plan.plates), variance)
        # Results from elsewhere use wells, too, so that the last ones of a plate may be left over.
        wells = _first(self._open_wells(plan, results), left)
        measurements = self._of_target()
        values = Counter(row.key for row in measurements if row.value is not None)
        repeats = sum(values.values()) - len(values)
        decided = float(chances.max()) >= plan.target and repeats >= REPEATS
        waiting = bool(wells) and not more and not decided
        if not waiting:
            wells = ()
            if left and not decided:
                size = min(plan.batch, left)
                chosen = choose_batch(everything, rule, situation, size, streams[1], controls=len(besides))
                indices = sorted(int(arm[0]) for arm in chosen)
                plate = {"since": state, "arms": indices, "plate": None if fresh is None else plate_of(fresh)}
                plan = replace(plan, plates=(*plan.plates, plate))
                wells = _wells_of(plan, len(plan.plates) - 1, settings)
        ahead = None
        if not decided:
            ahead = forecast(
                everything,
                rule,
                target=plan.target,
                limit=max(LOOK_AHEAD * plan.wells, LEAST),
                batch=plan.batch,
                rng=streams[2],
                now=float(chances.max()),
                # What is left of a plate is the next one to be measured.
                begun=replace(situation, batch=situation.batch - waiting),
                controls=len(besides),
            )
        rows = self.predict(plan.strings)
        planned = Counter(well.key for well in wells if not well.control)
        arms = [
            Arm(row, float(chance), values[key], spent[key], planned[key])
            for row, chance, key in zip(rows, chances, plan.keys, strict=True)
        ]
        order = np.lexsort((-posterior.mean[0], -chances))
        # Replicates of other strings tell of the noise, too. Those of the hits are named first.
        hits = set(plan.keys)
        first_hits = sorted(measurements, key=lambda row: row.key not in hits)
        remarks = disagreeing_replicates(first_hits, logarithmic=settings.transform == "log10")
        if remarks:
            remarks.append("look for slips; the model takes what they disagree by for noise of all measurements")
        if never := [one.prediction.string for one in arms if not one.measured]:
            listed = ", ".join(never[:3]) + (", ..." if len(never) > 3 else "")
            remarks.append(
                f"{len(never)} of the {len(arms)} were never measured ({listed}): what is known of them is what the "
                "model expects"
            )
        dropped = 0 if more or decided else len(self._open_wells(plan, results)) - len(wells)
        if dropped > 0:
            remarks.append(
                f"{counted(dropped, 'well')} of the plate at hand {'is' if dropped == 1 else 'are'} beyond the "
                f"{counted(plan.wells, 'well')} of this confirmation, and not awaited; what is measured there counts"
            )
        if plan.wells < len(arms):
            remarks.append(
                f"{counted(plan.wells, 'well')} for {len(arms)} strings: some are not measured again, and are judged "
                "by what is known already"
            )
        if repeats < REPEATS:
            there = "there is" if repeats == 1 else "there are"
            remarks.append(
                f"{there} {counted(repeats, 'replicate')}: how noisy a measurement is, and with it every probability, "
                f"rests on the model alone, and nothing is decided before there are {REPEATS}"
            )
        failed = [row.string for row in results if row.failure is not None]
        if failed:
            remarks.append(f"{counted(len(failed), 'well')} without a value ({', '.join(dict.fromkeys(failed))})")
        if said := rule.remark(posterior, situation):
            remarks.append(said)
        found = Confirmed(
            tuple(arms[int(index)] for index in order),
            plan.wells,
            used,
            plan.target,
            tuple(wells),
            waiting,
            ahead,
            tuple(remarks),
            repeats,
        )
        return plan, found

    def _of_target(self, *, discarded: bool = False) -> list[Measurement]:
        """What was measured as the target, or on any plate."""
        settings = self.store.settings
        rows = self.store.measurements(discarded=discarded)
        return rows if settings.plates else [row for row in rows if row.context == settings.target]

    def _results(self, plan: Plan) -> list[Measurement]:
        """Results of the compared strings that were recorded since it began: each has used a well."""
        first, keys = self.store.corrected(), set(plan.keys)
        return [
            row
            for row in self._of_target(discarded=True)
            if row.key in keys
            and first.get(row.id, row.made_by) > plan.since
            and (row.value is not None or row.failure is not None)
        ]

    def _open_wells(self, plan: Plan, results: Sequence[Measurement]) -> tuple[Well, ...]:
        """The wells of the last plate that have no result yet."""
        if not plan.plates:
            return ()
        first, since = self.store.corrected(), plan.plates[-1]["since"]
        new = [row for row in results if first.get(row.id, row.made_by) > since]
        labels = {row.replicate for row in new}
        wells = _wells_of(plan, len(plan.plates) - 1, self.store.settings)
        own = {well.label for well in wells}
        # What came without a label answers any of the wells of its string.
        others = Counter(row.key for row in new if row.replicate not in own)
        found = []
        for well in wells:
            if well.control:
                found.append(well)
            elif well.label not in labels:
                if others[well.key]:
                    others[well.key] -= 1
                else:
                    found.append(well)
        # Controls alone are not waited for.
        return tuple(found) if any(not well.control for well in found) else ()

    def _keep(self, plan: Plan | None, what: str, state: int, number: int = 0) -> None:
        kept = {"number": number} if plan is None else plan.to_json()
        with self.store.transaction("configure", {"what": what}, expected_state=state) as change:
            settings = self.store.settings
            change.save_settings(replace(settings, extra={**settings.extra, KEPT: kept}))


def _first(wells: tuple[Well, ...], count: int) -> tuple[Well, ...]:
    """So many of the wells, and all controls; none where none is left but controls."""
    kept = [well for well in wells if not well.control][:count]
    return tuple(well for well in wells if well.control or well in kept) if kept else ()


def check_confirmation_target(path: str | os.PathLike[str], store: CampaignStore) -> None:
    """Refuse to write a plate over anything but one without results.

    Raises:
        InputError: For a file that is something else, or in which results were filled in.
    """
    from seqopt.campaign.tables import check_target
    from seqopt.datasets.sheets import check_format, plain_name, read_sheet

    check_format(path)
    check_target(path, store)
    file = Path(path)
    if not file.exists() or not file.stat().st_size:
        return
    sheet = read_sheet(file, expected={REPLICATE})
    if not sheet.rows or plain_name(sheet.rows[0][0]) != REPLICATE:
        raise InputError(f"{file} already exists, and is not a plate of a confirmation: choose another name")
    if any(cell.strip() for cells in sheet.rows[1:] for cell in cells[-3:]):
        raise InputError(f"{file} holds results, which would be lost: record it first, and choose another name")


def label_of(text: str) -> str:
    """The label of a well as it is written; empty for a text that is none.

    Example:
        >>> label_of(" c1-003 "), label_of("C2-Control-1"), label_of("CCO")
        ('C1-003', 'C2-control-1', '')
    """
    label = text.strip().upper().replace("CONTROL", "control")
    return label if WELL.fullmatch(label) else ""


def well_named(label: str, settings: Settings) -> Well:
    """The well of the confirmation under way that has a label.

    Raises:
        CampaignError: If it has none of that label, or several, as of controls, or none is under way.
    """
    plan = Plan.of(settings.extra.get(KEPT))
    if plan is None:
        raise CampaignError(f"{label} would be a well of a confirmation, and none is under way")
    wells = [well for number in range(len(plan.plates)) for well in _wells_of(plan, number, settings)]
    found = [well for well in wells if well.label == label]
    if len(found) == 1:
        return found[0]
    if found:
        raise CampaignError(f"several strings are measured as {label}: record them by their names or in a table")
    known = f"its wells are {wells[0].label} to {wells[-1].label}" if wells else "it has no wells yet"
    raise CampaignError(f"the confirmation under way has no well {label}: {known}")


def controls_beside(plan: Plan, rules: PlateRules | None) -> list[Control]:
    """The controls that each plate of a confirmation has besides its wells: those that are not compared themselves.

    Args:
        plan: The confirmation.
        rules: How the campaign uses plates; `None` where it has none.

    Example:
        >>> from seqopt.campaign.plates import Control
        >>> rules = PlateRules(96, (Control("CCN", "CCN"), Control("CCO", "CCO")))
        >>> [one.key for one in controls_beside(Plan(1, 0, ("CCO", "CC"), ("CCO", "CC"), 96, 24), rules)]
        ['CCN']
    """
    return [] if rules is None else [one for one in rules.controls if one.key not in plan.keys]


def _wells_of(plan: Plan, number: int, settings: Settings) -> tuple[Well, ...]:
    """The wells of a plate, controls last."""
    plate = plan.plates[number]
    before = sum(len(one["arms"]) for one in plan.plates[:number])
    name = plate["plate"]
    wells = [
        Well(plan.label(before + place), plan.strings[index], plan.keys[index], name)
        for place, index in enumerate(plate["arms"])
    ]
    wells += [
        Well(f"C{plan.number}-control-{number + 1}", one.string, one.key, name, control=True)
        for one in controls_beside(plan, PlateRules.of(settings))
    ]
    return tuple(wells)


def _change_of(before: Plan, after: Plan, found: Confirmed) -> str:
    """What a command has changed of a confirmation, for the history."""
    said = [
        f"{name} {now} (was {was})"
        for name, was, now in (
            ("wells", before.wells, after.wells),
            ("batch", before.batch, after.batch),
            ("rule", before.rule, after.rule),
            ("target", before.target, after.target),
        )
        if was != now
    ]
    if len(after.plates) > len(before.plates):
        said.append(f"a plate of {counted(len(found.plate), 'well')}")
    return ", ".join(said)
