"""What was measured in each way, and how good the model is there: the target first, since it is what counts.

Values of several ways are of several kinds. Counted together they say nothing of how much is known of the target, and a
model may predict a cheap measurement well and the target badly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seqopt.campaign.costs import way_of
from seqopt.campaign.wording import counted, percent, without_value

if TYPE_CHECKING:
    from seqopt.campaign.rows import Measurement, Settings
    from seqopt.data import Contexts
    from seqopt.models import LeaveOneOut
    from seqopt.optimizer import Optimizer

FEWEST = 3
"""Values of a way without which nothing is said of how well they are predicted."""


FEWEST_BOTH = 8
"""Strings measured both in a way and as the target below which nobody can judge how much the way tells of it."""


@dataclass(frozen=True)
class Relation:
    """How a way to measure goes with the target.

    Attributes:
        way: How, in words.
        target: What counts.
        both: Strings with a value of both.
        correlation: As the last model had it, with the central 90 % of it; `None` where none says it.
    """

    way: str
    target: str
    both: int
    correlation: tuple[float, float, float] | None = None

    @property
    def few(self) -> bool:
        """Whether too few strings were measured in both ways."""
        return self.both < FEWEST_BOTH

    def describe(self) -> str:
        """In words.

        Example:
            >>> print(Relation("docking", "assay", 12, (0.82, 0.61, 0.93)).describe())
            docking and assay: correlation 0.82 (90 %: 0.61 to 0.93) at the last suggestion; 12 strings have both
            >>> Relation("docking", "assay", 2).describe()
            'docking and assay: 2 strings have both, too few to judge what docking tells (8 or more are needed)'
        """
        pair, have = f"{self.way} and {self.target}: ", f"{counted(self.both, 'string')} have both"
        have = have.replace("1 string have", "1 string has") if self.both == 1 else have
        known = ""
        if self.correlation is not None:
            middle, low, high = self.correlation
            known = f"correlation {middle:.2f} (90 %: {low:.2f} to {high:.2f}) at the last suggestion"
        if not self.few:
            return pair + "; ".join(filter(None, (known, have)))
        few = f"{have}, too few to judge what {self.way} tells ({FEWEST_BOTH} or more are needed)"
        return pair + few + (f"; the model went by {known}" if known else "")


def relations(
    settings: Settings, measurements: Sequence[Measurement], model: Mapping[str, Any]
) -> tuple[Relation, ...]:
    """How each way that was measured goes with the target; nothing where that cannot be measured.

    Args:
        settings: Of the campaign.
        measurements: Those that count.
        model: What a campaign keeps of it: see `seqopt.campaign.predictions.snapshot_of`.
    """
    contexts = settings.made_contexts()
    if contexts is None or contexts.latent:
        return ()
    keys: dict[Any, set[str]] = {}
    for row in measurements:
        if row.value is not None:
            keys.setdefault(row.context, set()).add(row.key)
    learned = {tuple(sorted(one["context"].items())): one for one in model.get("learned", ())}
    found = []
    for context in contexts.possible:
        if context == contexts.target or not keys.get(context):
            continue
        said, both = learned.get(tuple(sorted(context))), len(keys[context] & keys.get(contexts.target, set()))
        numbers = None if said is None else [said[f"correlation{end}"] for end in ("", "_low", "_high")]
        told = None if numbers is None or None in numbers else (numbers[0], numbers[1], numbers[2])
        # Of targets that nobody has measured, no model knows anything.
        known = told if keys.get(contexts.target) else None
        found.append(Relation(way_of(context), way_of(contexts.target), both, known))
    return tuple(found)


@dataclass(frozen=True)
class WayCounts:
    """What was measured in one way.

    Attributes:
        way: How, in words.
        is_target: Whether it is what the campaign is after.
        values: With replicates.
        strings: Different ones with a value.
        failures: Measurements without a value, not those that were lost.
        lost: Measurements that were lost.
    """

    way: str
    is_target: bool
    values: int
    strings: int
    failures: int
    lost: int = 0

    def describe(self) -> str:
        """In words.

        Example:
            >>> WayCounts("assay", True, 4, 3, 1).describe()
            'assay (what counts): 4 values of 3 strings, 1 failure'
        """
        named = f"{self.way} (what counts)" if self.is_target else self.way
        return (
            f"{named}: {counted(self.values, 'value')} of {counted(self.strings, 'string')}, "
            f"{without_value(self.failures, self.lost)}"
        )


def counts_by_way(settings: Settings, measurements: Sequence[Measurement]) -> tuple[WayCounts, ...]:
    """What was measured in each way, the target first; nothing where there is one way, or for plates.

    Args:
        settings: Of the campaign.
        measurements: Those that count.
    """
    contexts = settings.made_contexts()
    if contexts is None or settings.plates:
        return ()
    from seqopt.utils.losses import is_lost

    found = []
    for context in _target_first(contexts):
        own = [row for row in measurements if row.context == context]
        valued = [row for row in own if row.value is not None]
        lost = sum(is_lost(row.failure) for row in own)
        failures = sum(row.failure is not None for row in own) - lost
        found.append(
            WayCounts(
                way_of(context),
                context == contexts.target,
                len(valued),
                len({row.key for row in valued}),
                failures,
                lost,
            )
        )
    return tuple(found)


def quality(optimizer: Optimizer, surrogate: object, found: LeaveOneOut) -> dict[str, Any]:
    """How well a model predicts what it was fitted to, each value from all others: of the target, and by way.

    Values of other assays, from which a model may have learned, too, do not count.

    Args:
        optimizer: Of the campaign.
        surrogate: Fitted.
        found: Its leave-one-out predictions.

    Returns:
        ``r2`` and ``within_90``, of the target or, where that cannot be measured, of all values; and where there are
        several ways with a target among them, ``ways``: for each that has values ``way``, ``target``, ``n``, ``r2`` and
        ``within_90``, the target first. Of fewer than three values nothing is said.
    """
    from seqopt.data import context_of

    state = getattr(surrogate, "fitted", None)
    items = getattr(state, "keys", None)
    contexts = optimizer.contexts
    if items is None or len(items) != len(found.values) or (contexts is not None and contexts.latent):
        return _said(found)
    of = [context_of(item) for item in items]
    if contexts is None:
        # Values of another assay say which it is.
        return _said(found.of([place for place, one in enumerate(of) if not one]))
    ways = []
    for context in _target_first(contexts):
        places = [place for place, one in enumerate(of) if one == context or (not one and context == contexts.target)]
        if places:
            said = _said(found.of(places)) if len(places) >= FEWEST else {"r2": None, "within_90": None}
            ways.append({"way": way_of(context), "target": context == contexts.target, "n": len(places), **said})
    target = next((one for one in ways if one["target"]), {"r2": None, "within_90": None})
    return {"r2": target["r2"], "within_90": target["within_90"], "ways": ways}


def quality_in_words(model: Mapping[str, Any]) -> list[str]:
    """How well a model predicts the values of each way, a line each, the target first; nothing where there is one way.

    Args:
        model: What a campaign keeps of it: see `seqopt.campaign.predictions.snapshot_of`.

    Example:
        >>> ways = [{"way": "assay", "target": True, "n": 9, "r2": 0.5, "within_90": 0.88}]
        >>> ways += [{"way": "docking", "target": False, "n": 2, "r2": None, "within_90": None}]
        >>> for line in quality_in_words({"ways": ways}):
        ...     print(line)
        assay (what counts), 9 values: leave-one-out R2 0.50, 88 % of them in their 90 % intervals
        docking, 2 values: too few to say how well they are predicted
    """
    lines = []
    for one in model.get("ways", ()):
        named = f"{one['way']} (what counts)" if one["target"] else str(one["way"])
        said = "too few to say how well they are predicted" if one["n"] < FEWEST else "all alike"
        if one["r2"] is not None:
            said = f"leave-one-out R2 {one['r2']:.2f}, {percent(one['within_90'])} of them in their 90 % intervals"
        lines.append(f"{named}, {counted(one['n'], 'value')}: {said}")
    return lines


def values_in_words(several: bool) -> str:
    """What a share of the values is a share of, where nothing is known by way: in files of earlier versions."""
    return "the values of all ways to measure together" if several else "the values"


def _said(found: LeaveOneOut) -> dict[str, Any]:
    numbers = {"r2": found.r2, "within_90": found.within_90}
    return {name: round(number, 4) if math.isfinite(number) else None for name, number in numbers.items()}


def _target_first(contexts: Contexts) -> list[Any]:
    return sorted(contexts.possible, key=lambda context: context != contexts.target)
