"""How a campaign stands, and what its user should know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from seqopt.campaign.by_way import Relation, WayCounts
from seqopt.campaign.calibration import Calibration, first_values
from seqopt.campaign.controls import differing_controls, spread_of
from seqopt.campaign.costs import Costs, way_of
from seqopt.campaign.hits import Hits, first_answers, tried_of
from seqopt.campaign.labels import Spending
from seqopt.campaign.parents import parent_of
from seqopt.campaign.plates import Plate
from seqopt.campaign.rows import Counts, Measurement, Observed, Settings, Suggestion
from seqopt.strings.mutations import short_name
from seqopt.utils.shown import Tabulated

FEWEST_TARGETS = 2
"""Strings measured as the target from which on something can be learned of how much other measurements tell of it."""


@dataclass(frozen=True, repr=False)
class Status(Tabulated):
    """How a campaign stands.

    Attributes:
        settings: What it is about.
        counts: Suggestions and measurements.
        best: The best string so far, `None` before the first value.
        model: What was known of the model when it last made suggestions; empty before.
        warnings: What the user should know of it.
        filters: The filters in words.
        failing: Open suggestions that may not be suggested any more, by name, and why: a filter was added after them,
            or they are no candidates now.
        spending: What suggestions cost so far, where a column of prices is named.
        library: Where candidates are read from.
        calibration: How predictions compare with the results that came.
        added: Files of candidates that were added to the library.
        screens: How many strings have a score, by ways to measure whose scores were imported as columns.
        assays: How many values of other assays the model learns from, by their names.
        costs: What was spent on each way to measure, where there are several.
        plates: The plates, where there are some; with their offsets if no result has come since a model was last fitted
            for a suggestion (`seqopt.campaign.Campaign.plates` fits one).
        relations: How ways to measure go with the target, by strings measured in both and by the last model.
        of_plates: Those of the warnings that are about plates.
        expected: The measured string of the largest posterior mean of what plates have in common, ``string``, what its
            owner calls it, ``identifier``, if anything, and what is predicted of it, ``predicted_mean`` and
            ``predicted_std``, as the last suggestion had it; empty before.
        hits: How many hits were found and are expected, where results are yes or no.
        ways: What was measured in each way, the target first, where there are several but plates.
    """

    settings: Settings
    counts: Counts
    best: Observed | None
    model: dict[str, Any]
    warnings: tuple[str, ...]
    filters: tuple[str, ...] = ()
    failing: Mapping[str, str] = field(default_factory=dict)
    spending: Spending | None = None
    library: str | None = None
    calibration: Calibration | None = None
    added: tuple[str, ...] = ()
    costs: Costs | None = None
    screens: Mapping[str, int] = field(default_factory=dict)
    assays: Mapping[str, int] = field(default_factory=dict)
    plates: tuple[Plate, ...] = ()
    expected: Mapping[str, Any] = field(default_factory=dict)
    hits: Hits | None = None
    ways: tuple[WayCounts, ...] = ()
    of_plates: tuple[str, ...] = ()
    relations: tuple[Relation, ...] = ()


def warnings_of(settings: Settings, counts: Counts, model: dict[str, Any]) -> list[str]:
    """What the user should know of a campaign, by its counts and what was known of its model."""
    found = []
    r2 = model.get("r2")
    target = next((one for one in model.get("ways", ()) if one["target"]), None)
    if r2 is not None and r2 <= 0 and settings.yes_no:
        found.append(
            f"the model predicts no better than one probability for all (leave-one-out Brier score {-100 * r2:.0f} % "
            f"worse at {model['n']} results): its suggestions are little better than random ones"
        )
    elif r2 is not None and r2 <= 0:
        of = f"{model['n']} values" if target is None else f"{target['n']} values of {target['way']}"
        found.append(
            f"the model predicts no better than the mean (leave-one-out R2 {r2:.2f} at {of}): its suggestions are "
            "little better than random ones"
        )
    noise, scale = (model.get("parameters", {}).get(name) for name in ("noise_variance", "outputscale"))
    if noise is not None and scale is not None and noise > scale:
        found.append("the noise swallows the signal: replicates, or a better assay, would help more than new strings")
    left = model.get("left")
    if left is not None and left < 10 * settings.batch_size:
        passing = " that pass the filters" if model.get("filtered") else ""
        found.append(f"the pool is nearly exhausted: {left:,} candidates{passing} were left at the last suggestion")
    if counts.failures > counts.values and counts.failures >= settings.batch_size:
        found.append(f"most measurements fail ({counts.failures} of {counts.failures + counts.values})")
    return found


def warnings_of_plates(
    plates: Sequence[Plate],
    model: Mapping[str, Any],
    transform: str | None = None,
    measurements: Sequence[Measurement] = (),
) -> list[str]:
    """What the user should know of plates: controls that disagree, plates that hold more than they can.

    Args:
        plates: The plates.
        model: What it says of controls.
        transform: Of the campaign.
        measurements: All that count, which show by how much values differ.
    """
    geometric = transform == "log10"
    spread = spread_of([row.value for row in measurements if row.value is not None], geometric=geometric)
    found = [str(text) for text in model.get("controls", ())]
    found += [
        text
        for name, text in differing_controls(plates, geometric=geometric, spread=spread).items()
        if not any(f" on {name}," in other for other in found)
    ]
    found += [
        f"{plate.name} holds {plate.used} measurements, and has {plate.size} wells: look for a plate that was mixed up"
        for plate in plates
        if plate.used > plate.size
    ]
    return found


def side_by_side(settings: Settings, expected: Mapping[str, Any]) -> str:
    """What is to be said where values of several plates stand side by side: which string is expected to be the best."""
    names = " and ".join(settings.context_names)
    text = f"Values as they were read, each with what its {names} adds"
    if not expected:
        return f"{text}: which string is the best is said once a model has been fitted (seqopt campaign suggest)."
    from seqopt.data import shown_number

    string, mean, std = expected["string"], expected["predicted_mean"], expected["predicted_std"]
    called = expected.get("identifier") or short_name(parent_of(settings), string) or string
    return (
        f"{text}. Expected to be the best of what all have in common: {called}, {shown_number(mean)} ± "
        f"{shown_number(std)} (1 sd, by the last suggestion)."
    )


def untold(settings: Settings, measurements: Sequence[Measurement]) -> str:
    """A warning where nothing, or too little, of the target was measured, but other things were; else empty."""
    contexts = settings.made_contexts()
    values = [row for row in measurements if row.value is not None]
    if contexts is None or contexts.latent or not values:
        return ""
    known = len({row.key for row in values if row.context == contexts.target})
    if known >= FEWEST_TARGETS:
        return ""
    target = way_of(contexts.target)
    what = (
        f"nothing has been measured as {target} yet" if not known else f"only one string has been measured as {target}"
    )
    return (
        f"{what}: how much other measurements tell of it is assumed, not learned, so the next batch begins with "
        f"{target} where that is free"
    )


def missed_by(
    settings: Settings,
    suggestions: Sequence[Suggestion],
    measurements: Sequence[Measurement],
    superseded: Sequence[Measurement] = (),
) -> str:
    """A warning if the results of the last batch are not what was predicted of them; else empty.

    Args:
        settings: Of the campaign.
        suggestions: Those that count.
        measurements: Those that count, in the order in which they were recorded; the first value of each counts.
        superseded: Where results are yes or no, measurements that were corrected since.
    """
    if settings.yes_no:
        from seqopt.data.hits import hits_missed

        return hits_missed(tried_of(suggestions, first_answers(measurements, superseded)))
    from seqopt.data.missed import Judged, latest
    from seqopt.data.transforms import LEARNED

    first = first_values(measurements)
    judged = []
    for row in suggestions:
        value, middle = first.get(row.name), row.predicted(settings.transform)
        if value is not None and middle is not None and row.low is not None and row.high is not None:
            judged.append(Judged(row.batch, row.low, middle, row.high, value))
    found = latest(judged, 1.0 if settings.direction == "maximize" else -1.0)
    return found.warning(learned=settings.transform in LEARNED)
