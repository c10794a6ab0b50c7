"""The plates of a campaign: how many wells are used, which are closed, and what their controls say.

Which plates there are follows from the file: those that were opened, and those on which anything was suggested or
measured. A well is taken by a suggestion that was not withdrawn, or by a measurement beyond those that were suggested.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from seqopt.campaign.errors import CampaignError
from seqopt.campaign.parents import parent_of
from seqopt.campaign.rows import Measurement, Settings, Suggestion
from seqopt.campaign.wording import counted
from seqopt.errors import InputError
from seqopt.strings.mutations import mutation_names
from seqopt.utils.arguments import checked_integer

if TYPE_CHECKING:
    from seqopt.data import Context, Room

PLATE = "plate"
"""What plates are called in contexts, and their column in tables."""

CONTROL = "control"
"""The kind of the reason for a suggestion that is a control."""

WELLS = 96
"""Wells of a plate."""


@dataclass(frozen=True)
class Control:
    """What is measured on every plate.

    Attributes:
        string: As its owner writes it.
        key: Its identity.
        variant: What it changes of the parent, where one is known.
    """

    string: str
    key: str
    variant: str | None = None

    @property
    def called(self) -> str:
        """What messages call it: a whole protein is unreadable where it has a name."""
        return self.variant or self.string


@dataclass(frozen=True)
class PlateRules:
    """How a campaign uses plates; kept with its settings.

    Attributes:
        size: Wells of a plate.
        controls: What is measured on each, in wells of their own.
        opened: Plates that were opened before anything was on them, by name.
        closed: Plates on which nothing is measured any more.
    """

    size: int = WELLS
    controls: tuple[Control, ...] = ()
    opened: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As settings keep it."""
        controls = [{"string": one.string, "key": one.key} for one in self.controls]
        return asdict(self) | {"controls": controls, "opened": list(self.opened), "closed": list(self.closed)}

    @classmethod
    def of(cls, settings: Settings) -> PlateRules | None:
        """Those of a campaign; `None` where it has no plates of a limited size.

        Example:
            >>> PlateRules.of(Settings("pIC50", plates=PlateRules(24).to_json())).size
            24
        """
        kept = settings.plates
        if not kept:
            return None
        controls = tuple(Control(one["string"], one["key"]) for one in kept["controls"])
        if controls and (parent := parent_of(settings)) is not None:
            names = mutation_names(parent, [one.key for one in controls])
            controls = tuple(replace(one, variant=name) for one, name in zip(controls, names, strict=True))
        return cls(int(kept["size"]), controls, tuple(kept["opened"]), tuple(kept["closed"]))


@dataclass(frozen=True)
class Plate:
    """One plate.

    Attributes:
        name: What it is called.
        size: Its wells.
        used: How many are taken.
        values: How many values of the objective it has.
        closed: Whether nothing is measured there any more.
        missing: Controls that are still to be put there, as strings.
        controls: The values of the controls that were measured, by their strings; replicates one by one.
        called: What controls are called where not as their strings: variants of a parent, by their strings.
        offset: By how much its values lie above what all plates have in common, with the central 90 % of that; `None`
            where no model says it.
    """

    name: str
    size: int
    used: int
    values: int
    closed: bool = False
    missing: tuple[str, ...] = ()
    controls: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    offset: tuple[float, float, float] | None = None
    called: Mapping[str, str] = field(default_factory=dict)

    @property
    def room(self) -> int:
        """Wells that are free for candidates: not closed, and not kept for controls."""
        return 0 if self.closed else max(self.size - self.used - len(self.missing), 0)

    @property
    def context(self) -> Context:
        """How something is measured there."""
        return ((PLATE, self.name),)

    def describe(self) -> str:
        """In words.

        Example:
            >>> print(Plate("P1", 96, 12, 10, controls={"CCO": (5.1,)}, offset=(0.4, 0.1, 0.7)).describe())
            P1  open, 12 of 96 wells used; offset +0.4 (90 %: +0.1 to +0.7); controls: CCO 5.1
            >>> print(Plate("P2", 96, 1, 1, closed=True).describe())
            P2  closed, 1 of 96 wells used; one value, which cannot tell an offset from what the string itself does
        """
        text = f"{self.name}  {'closed' if self.closed else 'open'}, {self.used} of {self.size} wells used"
        if self.offset is not None:
            middle, low, high = self.offset
            text += f"; offset {middle:+.3g} (90 %: {low:+.3g} to {high:+.3g})"
        if self.values == 1:
            alone = "a control, compared with it on other plates" if self.controls else ""
            text += f"; one value, {alone or 'which cannot tell an offset from what the string itself does'}"
        if self.controls:
            said = ", ".join(f"{self.called.get(one, one)} {_listed(values)}" for one, values in self.controls.items())
            text += f"; controls: {said}"
        if self.missing and not self.closed:
            text += (
                f"; to come with the next suggestion: {', '.join(self.called.get(one, one) for one in self.missing)}"
            )
        return text


def plates_of(
    settings: Settings,
    suggestions: Iterable[Suggestion],
    measurements: Iterable[Measurement],
    offsets: Mapping[str, tuple[float, float, float]] | None = None,
) -> list[Plate]:
    """The plates of a campaign, in the order in which they came up.

    Args:
        settings: Of the campaign, which has plates.
        suggestions: Those that count.
        measurements: Those that stand, discarded ones among them.
        offsets: What a model says of them: middle and ends of the central 90 %.
    """
    rules = PlateRules.of(settings)
    if rules is None:
        return []
    asked: dict[str, Counter[str]] = {name: Counter() for name in rules.opened}
    told: dict[str, Counter[str]] = {}
    ever: dict[str, set[str]] = {}
    known: dict[str, dict[str, list[float]]] = {}
    numbers: Counter[str] = Counter()
    keys = {control.key: control.string for control in rules.controls}
    called = {control.string: control.called for control in rules.controls if control.variant is not None}
    for one in suggestions:
        name = plate_of(one.context)
        asked.setdefault(name, Counter())[one.key] += one.status != "withdrawn"
        ever.setdefault(name, set()).add(one.key)
    for row in measurements:
        name = plate_of(row.context)
        asked.setdefault(name, Counter())
        if row.value is None and row.failure is None:
            continue
        told.setdefault(name, Counter())[row.key] += 1
        ever.setdefault(name, set()).add(row.key)
        if row.value is not None and row.discarded is None:
            numbers[name] += 1
            if row.key in keys:
                known.setdefault(name, {}).setdefault(keys[row.key], []).append(row.value)
    return [
        Plate(
            name,
            rules.size,
            # What was suggested and measured is one well; a replicate that nobody has asked for is a further one.
            sum((wells | told.get(name, Counter())).values()),
            numbers[name],
            name in rules.closed,
            tuple(one.string for one in rules.controls if one.key not in ever.get(name, set())),
            {string: tuple(values) for string, values in known.get(name, {}).items()},
            (offsets or {}).get(name),
            called,
        )
        for name, wells in asked.items()
    ]


def offsets_in(learned: Iterable[Mapping[str, Any]]) -> dict[str, tuple[float, float, float]]:
    """Offsets with the ends of their 90 % by the names of plates, of what a model has learned."""
    return {
        str(one["context"][PLATE]): (one["offset"], one["offset_low"], one["offset_high"])
        for one in learned
        if PLATE in one["context"] and "offset" in one
    }


def stand_of(settings: Settings, measurements: Iterable[Measurement]) -> str:
    """What tells whether a model was fitted to what counts now: a digest of the values and their scale.

    Args:
        settings: Of the campaign.
        measurements: Those that count.
    """
    rows = sorted(
        (row.key, plate_of(row.context), repr(row.value), row.censored or "", repr(row.standard_error))
        for row in measurements
        if row.value is not None
    )
    return hashlib.sha256(repr((settings.direction, settings.transform, rows)).encode()).hexdigest()[:16]


def plate_of(context: Context) -> str:
    """The name of the plate in a context."""
    return str(dict(context)[PLATE])


def room_on(
    rules: PlateRules, plates: Sequence[Plate], n: int, only: Context | None, shared: bool
) -> tuple[Room, bool]:
    """Where ``n`` candidates can go, and whether all go on one plate.

    They go on one open plate where they fit on one, which of several is left to the model. Where they do not, open
    plates are filled, and then fresh ones, each with its controls.

    Args:
        rules: Of the campaign.
        plates: Those there are.
        n: How many candidates.
        only: The one plate that is meant.
        shared: Whether they must go on one.

    Raises:
        CampaignError: If they cannot; it says what can be done.
    """
    from seqopt.data import Room

    fresh = rules.size - len(rules.controls)
    if only is not None:
        name = plate_of(only)
        found = next((one for one in plates if one.name == name), None)
        if found is not None and found.closed:
            raise CampaignError(
                f"{name} is closed: choose another plate, or open it again (seqopt campaign plate open {name})"
            )
        room = fresh if found is None else found.room
        if n > room:
            kept = "" if found is None or not found.missing else f", {len(found.missing)} kept for controls"
            used = f"of {rules.size} wells {0 if found is None else found.used} are used{kept}"
            way_out = (
                f"ask for -n {room} at most"
                if room > 0
                else "choose another plate, or leave --plate out, and a fresh one is opened where none has room"
            )
            raise CampaignError(f"{name} has room for {max(room, 0)}, not for {n} ({used}): {way_out}")
        return Room({only: room}), True
    fitting = {one.context: one.room if one.room >= n else 0 for one in plates}
    if any(fitting.values()):
        return Room(fitting), True
    if not shared:
        return Room({one.context: one.room for one in plates}, fresh), False
    if n > fresh:
        besides = f" besides {counted(len(rules.controls), 'control')}" if rules.controls else ""
        raise CampaignError(
            f"{n} do not fit on one plate, which has room for {fresh}{besides}: ask for -n {fresh} at most, or leave "
            "--same-plate out"
        )
    return Room({one.context: 0 for one in plates}, fresh), True


def controls_for(
    rules: PlateRules, plates: Sequence[Plate], contexts: Iterable[Context]
) -> list[tuple[Control, Context]]:
    """The controls that plates lack, of those on which something is to be measured."""
    known = {one.name: one for one in plates}
    found = []
    for context in dict.fromkeys(contexts):
        plate = known.get(plate_of(context))
        found += [(one, context) for one in rules.controls if plate is None or one.string in plate.missing]
    return found


def same_plate(text: str, known: Collection[str]) -> str:
    """The plate that is meant by what somebody wrote: one that is known, whatever the case and the spaces.

    Example:
        >>> same_plate("p 1", ["P1", "P2"]), same_plate("P3", ["P1", "P2"])
        ('P1', 'P3')
    """
    text = text.strip()
    if text in known:
        return text
    alike = [name for name in known if _plain(name) == _plain(text)]
    return alike[0] if len(alike) == 1 else text


def remarks_on(name: str, count: int, plates: Mapping[str, Plate], suggested: bool) -> str:
    """What is worth a second look of results on a plate; empty where nothing is.

    Args:
        name: Of the plate.
        count: How many results there are.
        plates: Those there are, by name.
        suggested: Whether all of them were suggested there.
    """
    plate, results = plates.get(name), counted(count, "result")
    if plate is None:
        return f"{name} is a new plate, of {results} (there are {', '.join(plates)})" if plates else ""
    if plate.closed and not suggested:
        return (
            f"{name} is closed, and {results} of it are recorded all the same"
            if count > 1
            else (f"{name} is closed, and a result of it is recorded all the same")
        )
    return ""


def with_opened(rules: PlateRules, name: str | None, plates: Sequence[Plate], fresh: str) -> tuple[PlateRules, str]:
    """Rules with one more plate open, and its name.

    Args:
        rules: Of the campaign.
        name: Of a new plate, or of one that was closed; by default the next one.
        plates: Those there are.
        fresh: What the next one is called.

    Raises:
        CampaignError: If it is open.
        InputError: For an empty name.
    """
    known = {one.name: one for one in plates}
    wanted = fresh if name is None else same_plate(_named(name), known)
    if wanted in rules.closed:
        return replace(rules, closed=tuple(one for one in rules.closed if one != wanted)), wanted
    if wanted in known:
        raise CampaignError(f"{wanted} is open already, with {known[wanted].used} of {rules.size} wells used")
    return replace(rules, opened=(*rules.opened, wanted)), wanted


def with_closed(rules: PlateRules, name: str, plates: Sequence[Plate]) -> tuple[PlateRules, str]:
    """Rules with one plate closed, and its name.

    Raises:
        CampaignError: If there is no such plate, or it is closed.
    """
    known = [one.name for one in plates]
    wanted = same_plate(_named(name), known)
    if wanted not in known:
        listed = ", ".join(known)
        raise CampaignError(f"there is no plate {wanted}: " + (f"there are {listed}" if listed else "none is open yet"))
    if wanted in rules.closed:
        raise CampaignError(f"{wanted} is closed already")
    return replace(rules, closed=(*rules.closed, wanted)), wanted


def new_rules(size: object, controls: Mapping[str, str]) -> PlateRules:
    """Rules of a new campaign.

    Args:
        size: Wells of a plate.
        controls: Keys of what is measured on every plate, by how its owner writes it.

    Raises:
        InputError: For a size that is no number of wells, or controls that are there twice or leave no room.
    """
    wells = checked_integer("the size of a plate", size, 2, "expected an integer of wells, at least 2")
    found: dict[str, Control] = {}
    for string, key in controls.items():
        if key in found:
            raise InputError(f"the control {string!r} is the same as {found[key].string!r}: give each once")
        found[key] = Control(string, key)
    if len(found) >= wells:
        raise InputError(f"{len(found)} controls leave no room for candidates on a plate of {wells} wells")
    return PlateRules(wells, tuple(found.values()))


def _named(name: str) -> str:
    if not isinstance(name, str) or not name.strip():
        raise InputError(f"the plate is called {name!r}; expected its name, such as P7")
    return name.strip()


def _plain(name: str) -> str:
    return "".join(name.split()).casefold()


def _listed(values: Sequence[float]) -> str:
    return " and ".join(f"{value:.4g}" for value in values)
