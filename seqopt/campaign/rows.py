"""What a campaign holds, row by row.

Rows that are to be written (`NewSuggestion`, `NewMeasurement`, `NewSnapshot`) and rows that have been, with the command
that made them (``made_by``) and the one that undid them (``undone_by``, `None` while they count). Times are UTC.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from seqopt.data import Context, Contexts, Outcome
    from seqopt.evaluation import Direction

SuggestionStatus = Literal["open", "measured", "failed", "discarded", "withdrawn", "undone"]
"""What became of a suggestion; the first that holds of: its command was undone, a value of it is there, a failure of it
is there, what was measured was discarded, it was withdrawn, none of these."""

UNDOABLE = ("suggest", "record", "import", "correct", "discard", "withdraw", "configure", "pool")
"""Kinds of commands that `CampaignStore.undo` takes back."""

Censoring = Literal["<", ">"]
"""Which side of its limit a censored value lies on."""

KINDS = ("create", *UNDOABLE, "fit", "undo")
"""Kinds of commands. ``fit`` keeps a model without suggestions."""

LARGEST_VALUE = 1e150
"""Larger values are not measurements, and their squares would overflow."""

WELLS = "wells"
"""Of how many wells a yes/no result is the share of hits, among the details of a measurement."""

INCONCLUSIVE = "inconclusive"
"""What stands in place of the value of a result that is neither yes nor no."""

COMPUTED = "computed_by"
"""Where settings keep what computes the objective, if it is computed."""

TERMS = "terms"
"""Where settings keep the scores of a weighted sum that is the objective: name, weight and unit of each."""

YES_NO = "yes/no"
"""The transform of a campaign whose results are yes or no; see `seqopt.data.yes_no`."""


def storable(text: str) -> str:
    """Text without what a file cannot hold, such as bytes of a file name in another encoding, which become escapes.

    Example:
        >>> storable(b"no file caf\\xe9".decode("utf-8", "surrogateescape"))
        'no file caf\\\\udce9'
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


@dataclass(frozen=True)
class Settings:
    """What a campaign is about; kept as JSON.

    Attributes:
        objective: What is measured, such as ``"pIC50"``: the name of the column of values.
        direction: ``"maximize"`` or ``"minimize"``.
        unit: Of the values.
        string_column: What the column of strings is called in the user's files.
        batch_size: Suggestions at a time.
        initial: Suggestions before a model is used.
        design: How these are chosen: see `seqopt.strategies.resolve_design`.
        include: Strings that are suggested first of all.
        limits: Description of `seqopt.BatchLimits`, if there are any.
        surrogate: Name of the model, or its type where it was given as an object; empty where a strategy decides.
        acquisition: Name of the acquisition function, or the type of the strategy that decides.
        transform: ``"log10"`` for values that span decades, or another name of `seqopt.data.TRANSFORMS`; ``"yes/no"``
            where results are hit or no hit.
        seed: Fixes every random draw.
        space: Facts that tell one space from another.
        pool: Of a pool: path, column, checksum, size.
        filters: Conditions on suggestions.
        parts: Descriptions (`seqopt.utils.config`) of the surrogate, the acquisition function and the search, or of the
            strategy, as far as they were given as objects.
        allow_repeats: Whether measured strings may be suggested again.
        contexts: Description of the ways in which strings can be measured (`seqopt.data.Contexts`), if there are
            several.
        constraints: Descriptions of what is measured besides the objective (`seqopt.data.Outcome`).
        budget: Cost that may be spent, where contexts have costs; `None` for no limit.
        plates: How plates are used (`seqopt.campaign.plates.PlateRules`), where they are of a limited size.
        initial_contexts: How strings of the initial design are measured: as the ``"target"``, as in files of earlier
            versions, in ``"all"`` ways, or in those that cost less than the target (``"cheap"``).
        extra: Whatever else belongs to the campaign. What a file of a later version holds and this one does not know
            is found here, too.
    """

    objective: str
    direction: Direction = "maximize"
    unit: str | None = None
    string_column: str = "string"
    batch_size: int = 10
    initial: int = 10
    design: str = "random"
    include: list[str] = field(default_factory=list)
    limits: dict[str, Any] | None = None
    surrogate: str = "auto"
    acquisition: str = "gibbon"
    transform: str | None = None
    seed: int = 0
    space: dict[str, Any] = field(default_factory=dict)
    pool: dict[str, Any] | None = None
    filters: list[dict[str, Any]] = field(default_factory=list)
    parts: dict[str, Any] = field(default_factory=dict)
    allow_repeats: bool = False
    contexts: dict[str, Any] | None = None
    constraints: list[dict[str, Any]] = field(default_factory=list)
    budget: float | None = None
    plates: dict[str, Any] | None = None
    initial_contexts: Literal["target", "all", "cheap"] = "target"
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def target(self) -> Context:
        """The context that is meant where none is stated; empty where there is only one way to measure."""
        return tuple((name, value) for name, value in self.contexts["target"]) if self.contexts else ()

    @property
    def listed(self) -> Mapping[str, Any]:
        """What is known of the files of candidates, in memory or on disk, ``id_column`` and ``price_column`` among it;
        empty where there are none.
        """
        if self.pool is not None:
            return self.pool
        return self.space if self.space.get("type") == "StoredPool" else {}

    @property
    def decimal_comma(self) -> bool:
        """Whether numbers are written 6,5 in the library of the campaign, and so in its tables."""
        return bool((self.pool or {}).get("decimal_comma"))

    @property
    def yes_no(self) -> bool:
        """Whether results are yes or no: values are shares of wells that were hits."""
        return self.transform == YES_NO

    @property
    def modelled(self) -> str:
        """What contributions are to: the objective, or what the model sees in place of it."""
        if self.yes_no:
            return f"log odds of a hit, {self.objective}"
        return f"log10 {self.objective}" if self.transform == "log10" else self.objective

    @property
    def latent(self) -> bool:
        """Whether the target cannot be measured itself: what plates have in common, the mean over folds."""
        return bool(self.contexts) and not self.target

    @property
    def context_names(self) -> tuple[str, ...]:
        """What contexts differ in: names of columns of tables."""
        known = self.contexts or {"possible": []}
        opened = [known["open"]] if known.get("open") else []
        return tuple(sorted({*opened, *(str(name) for context in known["possible"] for name, _ in context)}))

    @property
    def computed_by(self) -> str | None:
        """What computes the objective (see `seqopt.campaign.computed`); `None` where it is measured.

        Example:
            >>> Settings("y", extra={"computed_by": "mfe"}).computed_by, Settings("y").computed_by
            ('mfe', None)
        """
        found = self.extra.get(COMPUTED)
        return found if isinstance(found, str) and found else None

    @property
    def further_names(self) -> tuple[str, ...]:
        """What is measured besides the objective, constraints and what is only recorded: names of columns of tables."""
        return tuple(str(constraint["name"]) for constraint in self.constraints)

    def made_contexts(self) -> Contexts | None:
        """The ways in which strings can be measured, if there are several."""
        from seqopt.data import Contexts

        return Contexts.from_config(self.contexts) if self.contexts else None

    def outcomes(self) -> tuple[Outcome, ...]:
        """What is measured, the objective first."""
        from seqopt.data import Outcome, resolve_transform

        objective = Outcome(self.objective, self.direction, transform=resolve_transform(self.transform))
        return (objective, *map(Outcome.from_config, self.constraints))

    def to_json(self) -> dict[str, Any]:
        """The settings as JSON values."""
        values = asdict(self)
        return values.pop("extra") | values

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Settings:
        """The settings that `to_json` gave.

        Example:
            >>> settings = Settings("pIC50", unit="-log10 M", extra={"project": "kinases"})
            >>> Settings.from_json(settings.to_json()) == settings
            True
        """
        known = {item.name for item in fields(cls)} - {"extra"}
        return cls(
            **{name: value for name, value in values.items() if name in known},
            extra={name: value for name, value in values.items() if name not in known},
        )


@dataclass(frozen=True)
class Command:
    """One accepted command.

    Attributes:
        id: Its number, from 1 without gaps. The last one is the state of the campaign.
        time: When it was committed, such as ``"2026-03-02T09:15:00.123Z"``.
        kind: One of `KINDS`.
        arguments: What it was given.
        version: Of seqopt.
        changes: How many rows it made, by table; for an undo, how many it undid.
        undoes: For an undo, the command that it took back.
        undone_by: The undo that took it back.
    """

    id: int
    time: str
    kind: str
    arguments: dict[str, Any]
    version: str
    changes: dict[str, int]
    undoes: int | None
    undone_by: int | None

    def describe(self) -> str:
        """What it did, in a few words.

        Example:
            >>> Command(3, "", "record", {"file": "a.csv"}, "", {"measurements": 7}, None, None).describe()
            'record a.csv: 7 measurements'
        """
        named = next((name for name in ("file", "string", "what") if self.arguments.get(name)), None)
        what = f"{self.kind} {self.arguments[named]}" if named else self.kind
        if self.kind == "withdraw":
            what += f" {', '.join(map(str, self.arguments.get('suggestions', [])))}"
        if self.kind == "record" and self.arguments.get("told"):
            what += f" {self.arguments['told']}"
        if self.kind == "discard" and self.arguments.get("was"):
            what += f" {self.arguments['was']}"
        if self.kind == "correct":
            if self.arguments.get("was") != self.arguments.get("now") or "cost" not in self.arguments:
                what += f" from {self.arguments.get('was')} to {self.arguments.get('now')}"
            if "cost" in self.arguments:
                what += f", cost from {self.arguments.get('cost_was'):g} to {self.arguments['cost']:g}"
        if self.arguments.get("reason"):
            what += f" ({self.arguments['reason']})"
        if self.undoes is not None:
            what = f"undo of command {self.undoes}"
        rows = ", ".join(
            f"{number} {table.removesuffix('s') if number == 1 else table}"
            for table, number in self.changes.items()
            if table not in ("settings", "libraries", "snapshots", "screens", "assays")
        )
        return (
            what + (f": {rows}" if rows else "") + (f" (undone by command {self.undone_by})" if self.undone_by else "")
        )


@dataclass(frozen=True)
class NewSuggestion:
    """A string to be measured.

    Attributes:
        string: As its owner writes it.
        key: Its identity.
        mean: Mean of the predicted distribution of the true value, in the user's units. On a logarithmic scale that is
            not its middle, which `predicted` is.
        std: Its standard deviation.
        low: Lower end of the central 90 % of a measurement, noise included.
        high: Upper end of it.
        acquisition: Name of the acquisition function.
        score: Its value.
        reason: Why it was chosen, as JSON values.
        context: How it is to be measured; empty where there is only one way.
        identifier: What its owner's library calls it.
        cells: What the library says of it besides, by column, when it was suggested: supplier, price, ...
    """

    string: str
    key: str
    mean: float | None = None
    std: float | None = None
    low: float | None = None
    high: float | None = None
    acquisition: str | None = None
    score: float | None = None
    reason: dict[str, Any] = field(default_factory=dict)
    context: Context = ()
    identifier: str | None = None
    cells: dict[str, str] = field(default_factory=dict)

    def predicted(self, transform: str | None) -> float | None:
        """The central prediction, as it is shown: the median; `None` where nothing was predicted.

        Args:
            transform: Of the campaign, see `Settings`.

        Example:
            >>> NewSuggestion("CCO", "CCO", mean=1416.7, std=20035.0).predicted("log10").__round__()
            100
        """
        from seqopt.data import central

        return central(self.mean, self.std, transform)


@dataclass(frozen=True)
class Suggestion(NewSuggestion):
    """A suggestion that was made.

    Attributes:
        id: Its number.
        name: What people call it, such as ``"B03-07"``: batch and position. Never given twice, even after an undo.
        batch: Number of the batch.
        position: Place in the batch, from 1.
        snapshot: Number of the model that chose it.
        status: What became of it.
        made_by: The command.
        undone_by: The undo that took it back.
        transform: Of the campaign when it was predicted, a name; `None` where that is not known.
    """

    id: int = 0
    name: str = ""
    batch: int = 0
    position: int = 0
    snapshot: int | None = None
    status: SuggestionStatus = "open"
    made_by: int = 0
    undone_by: int | None = None
    transform: str | None = None

    def predicted(self, transform: str | None) -> float | None:
        """The central prediction, on the scale on which it was predicted, even if that was changed since.

        Args:
            transform: Of the campaign now, for suggestions that do not say it.
        """
        return super().predicted(self.transform or transform)


@dataclass(frozen=True)
class NewMeasurement:
    """One measurement of a string, or one failure to measure it.

    Attributes:
        string: As it was written where the value came from.
        key: Its identity.
        value: Of the objective, in the user's units; `None` for a failure, or if only others were measured.
        failure: Why there is no value; `None` for a value.
        standard_error: Known standard error of the value.
        replicate: What tells this replicate from the others.
        source: The file it came from.
        line: Its line there.
        suggestion: Name of the suggestion it answers. Where none is given, the campaign looks for one with the same
            key: an open one, or else the latest.
        details: Whatever else is known of it, as JSON values.
        context: How it was measured; empty where there is only one way.
        further: Values of what was measured besides the objective, by name.
        identifier: What its owner calls the string.
        censored: ``"<"`` or ``">"`` where ``value`` is only a limit, below or above which the measurement lies.
        replaces: The number of the measurement that this one corrects.
        cost: What it has cost; `None` where it cost what its context says.
    """

    string: str
    key: str
    value: float | None = None
    failure: str | None = None
    standard_error: float | None = None
    replicate: str | None = None
    source: str | None = None
    line: int | None = None
    suggestion: str | None = None
    details: dict[str, Any] = field(default_factory=dict)
    context: Context = ()
    further: dict[str, float] = field(default_factory=dict)
    identifier: str | None = None
    censored: Censoring | None = None
    replaces: int | None = None
    cost: float | None = None

    @property
    def told(self) -> str:
        """What was measured, in a word: ``6.5``, ``<0.1``, or the reason for a failure.

        Example:
            >>> NewMeasurement("CCO", "CCO", 0.1, censored="<").told
            '<0.1'
        >>> NewMeasurement("CCO", "CCO", 0.375, details={"wells": 8}).told
        '3 of 8'
        """
        if self.value is not None and WELLS in self.details:
            from seqopt.data import told_answer

            return told_answer(self.value, self.details[WELLS])
        if self.value is not None:
            return f"{self.censored or ''}{self.value:.10g}"
        if self.failure is not None:
            return self.failure if self.failure == INCONCLUSIVE else f"failed: {self.failure}"
        return ", ".join(f"{name} {value:.10g}" for name, value in self.further.items())


@dataclass(frozen=True)
class Measurement(NewMeasurement):
    """A measurement that was recorded.

    Attributes:
        id: Its number.
        made_by: The command.
        undone_by: The undo that took it back.
        discarded: Why it is not modelled; `None` where it is.
        replaced_by: The number of the measurement that corrects it.
    """

    id: int = 0
    made_by: int = 0
    undone_by: int | None = None
    discarded: str | None = None
    replaced_by: int | None = None


def averaged(
    values: Sequence[float], limits: Sequence[Censoring | None], *, geometric: bool = False
) -> tuple[float, Censoring | None]:
    """Mean of the replicates of one string as `Observed.mean` has it, and its side where it is only a limit.

    Args:
        values: The replicates; limits of those that are censored.
        limits: Of each the side of its limit, `None` for a value.
        geometric: See `Observed.mean`.

    Example:
        >>> averaged([5.0, 3.0, 80.0], [None, "<", ">"]), averaged([0.1], ["<"], geometric=True)
        ((5.0, None), (0.1, '<'))
    """
    sides = {side for side in limits if side is not None}
    if len(sides) == 2:
        known = [value for value, side in zip(values, limits, strict=True) if side is None]
        values = known or values
    if not values:
        return math.nan, None
    side = next(iter(sides)) if len(sides) == 1 else None
    if len(values) == 1:
        return values[0], side
    if geometric and min(values) > 0:
        return math.exp(math.fsum(map(math.log, values)) / len(values)), side
    return math.fsum(values) / len(values), side


@dataclass(frozen=True)
class Observed:
    """All that was measured of one key in one context.

    Attributes:
        key: The identity.
        string: As it was written first.
        measurements: Values and failures one by one, in the order in which they were recorded.
        context: How it was measured; empty where there is only one way.
    """

    key: str
    string: str
    measurements: tuple[Measurement, ...]
    context: Context = ()

    @property
    def identifier(self) -> str | None:
        """What its owner calls it."""
        return next((row.identifier for row in self.measurements if row.identifier is not None), None)

    @property
    def values(self) -> tuple[float, ...]:
        """The replicates."""
        return tuple(row.value for row in self.measurements if row.value is not None)

    @property
    def limits(self) -> tuple[Censoring | None, ...]:
        """Of each replicate the side of its limit, `None` where it is a value."""
        return tuple(row.censored for row in self.measurements if row.value is not None)

    @property
    def censored(self) -> Censoring | None:
        """``"<"`` or ``">"`` where the `mean` is only a limit: some replicates are, all on this side."""
        return averaged(self.values, self.limits)[1]

    def certain(self, direction: Direction, *, geometric: bool = False) -> tuple[bool, float, bool]:
        """How good it is at least, to compare it by: a mean, or a limit that it is better than.

        Of two that are equal, the one that is better than that comes first; what is only known to be worse than a limit
        comes last.
        """
        better = ">" if direction == "maximize" else "<"
        mean = self.mean(geometric=geometric)
        return self.censored in (None, better), mean if direction == "maximize" else -mean, self.censored == better

    @property
    def wells(self) -> int:
        """Of how many wells the values are the share of hits, where results are yes or no; else how many values."""
        return sum(self.wells_of_values)

    @property
    def wells_of_values(self) -> tuple[int, ...]:
        """The same of each replicate."""
        return tuple(int(row.details.get(WELLS, 1)) for row in self.measurements if row.value is not None)

    @property
    def told(self) -> str:
        """What was measured, all replicates together, where results are yes or no.

        Example:
            >>> rows = [Measurement("CCO", "CCO", share, details={"wells": 4}) for share in (0.25, 1.0)]
            >>> Observed("CCO", "CCO", tuple(rows)).told
            '5 of 8'
        """
        from seqopt.data import told_answer

        return told_answer(self.mean(), self.wells) if self.values else ""

    @property
    def standard_errors(self) -> tuple[float | None, ...]:
        """The known standard error of each replicate."""
        return tuple(row.standard_error for row in self.measurements if row.value is not None)

    @property
    def failures(self) -> tuple[str, ...]:
        """Why measurements of it failed."""
        return tuple(row.failure for row in self.measurements if row.failure is not None)

    def further(self, name: str) -> float | None:
        """Mean of the values of a further outcome; `None` where it was not measured.

        Example:
            >>> rows = [Measurement("CCO", "CCO", 1.0, further={"mfe": -2.0}), Measurement("CCO", "CCO", 2.0)]
            >>> one = Observed("CCO", "CCO", tuple(rows))
            >>> one.further("mfe"), one.further("gc")
            (-2.0, None)
        """
        values = [row.further[name] for row in self.measurements if name in row.further]
        return math.fsum(values) / len(values) if values else None

    def mean(self, *, geometric: bool = False) -> float:
        """Mean of the replicates, NaN if there are none; a limit of it where it is `censored`.

        Limits count as values: the mean of values below and limits from above is a limit from above. Where there are
        limits on both sides, the values alone count, or the limits where there are no values.

        Args:
            geometric: The geometric mean, for values on a logarithmic scale; the arithmetic one is taken all the same
                where a value is not positive.
        """
        counted = [
            (row.value, row.details[WELLS])
            for row in self.measurements
            if row.value is not None and WELLS in row.details
        ]
        if counted and len(counted) == len(self.values):
            # Of yes/no results, each well counts as much as any other.
            return math.fsum(share * wells for share, wells in counted) / sum(wells for _, wells in counted)
        return averaged(self.values, self.limits, geometric=geometric)[0]


def comparable(settings: Settings, observed: Sequence[Observed]) -> list[Observed]:
    """What was measured as the target or, where that cannot be measured, of each string what was measured anyhow.

    Args:
        settings: Of the campaign.
        observed: Everything, by key and context.
    """
    if not settings.latent:
        return [one for one in observed if one.context == settings.target]
    groups: dict[str, list[Observed]] = {}
    for one in observed:
        groups.setdefault(one.key, []).append(one)
    return [
        Observed(key, rows[0].string, tuple(row for one in rows for row in one.measurements))
        for key, rows in groups.items()
    ]


@dataclass(frozen=True)
class NewSnapshot:
    """A model as it was when it made its suggestions.

    Attributes:
        surrogate: Its name.
        n: Measurements that it was fitted to.
        summary: What ``status`` shows, and what explains a suggestion: parameters, seed, versions, leave-one-out
            statistics; JSON values, read with every look at the model, so keep it small.
        state: What restores the model exactly, as JSON values; compressed, and read only by
            `CampaignStore.snapshot_state`.
    """

    surrogate: str
    n: int
    summary: dict[str, Any] = field(default_factory=dict)
    state: Any = None


@dataclass(frozen=True)
class Snapshot:
    """A stored model, without its ``state``.

    Attributes:
        id: Its number.
        surrogate: Its name.
        n: Measurements that it was fitted to.
        summary: As in `NewSnapshot`.
        made_by: The command.
        undone_by: The undo that took it back.
    """

    id: int
    surrogate: str
    n: int
    summary: dict[str, Any]
    made_by: int
    undone_by: int | None


@dataclass(frozen=True)
class Withdrawal:
    """A suggestion that will not be measured.

    Attributes:
        id: Its number.
        suggestion: Name of the suggestion.
        reason: Why; may be empty.
        made_by: The command.
        undone_by: The undo that took it back.
    """

    id: int
    suggestion: str
    reason: str
    made_by: int
    undone_by: int | None


@dataclass(frozen=True)
class NewExclusion:
    """A string that shall not be suggested, for reasons that are not its own.

    Attributes:
        string: As it was written.
        key: Its identity.
        reason: Why; may be empty.
        identifier: What its owner calls it.
    """

    string: str
    key: str
    reason: str = ""
    identifier: str | None = None


@dataclass(frozen=True)
class Exclusion(NewExclusion):
    """An exclusion that was recorded.

    Attributes:
        id: Its number.
        made_by: The command.
        undone_by: The undo that took it back.
    """

    id: int = 0
    made_by: int = 0
    undone_by: int | None = None


@dataclass(frozen=True)
class Counts:
    """How far a campaign is.

    Attributes:
        open: Suggestions that await a result.
        measured: Suggestions with a value.
        failed: Suggestions that only failed, not those that were lost.
        withdrawn: Suggestions that were withdrawn.
        batches: Batches that were suggested (and not undone).
        strings: Different strings with a value.
        values: Values of the objective, replicates counted one by one.
        failures: Failures, not those that were lost.
        discarded: Measurements that are kept and not modelled.
        excluded: Candidates that were withdrawn before they were suggested.
        lost: Measurements that were lost, which says nothing of their strings.
        lost_suggestions: Suggestions of which no more is known than that they were lost.
        discarded_suggestions: Suggestions of which all results are kept and not modelled.
    """

    open: int
    measured: int
    failed: int
    withdrawn: int
    batches: int
    strings: int
    values: int
    failures: int
    discarded: int = 0
    excluded: int = 0
    lost: int = 0
    lost_suggestions: int = 0
    discarded_suggestions: int = 0

    @property
    def of_suggestions(self) -> str:
        """What became of the suggestions, in words.

        Example:
            >>> Counts(1, 4, 1, withdrawn=0, batches=1, strings=4, values=4, failures=1).of_suggestions
            '4 measured, 1 failed, 0 withdrawn, 1 open'
        """
        parts = [f"{self.measured} measured", f"{self.failed} failed"]
        parts += [f"{self.lost_suggestions} lost"] if self.lost_suggestions else []
        parts += [f"{self.discarded_suggestions} discarded"] if self.discarded_suggestions else []
        return ", ".join([*parts, f"{self.withdrawn} withdrawn", f"{self.open} open"])
