"""The parts of a plain report that are others where results are yes or no."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from seqopt.campaign.hits import Hits
from seqopt.campaign.parents import parent_of
from seqopt.campaign.rows import Observed, Settings, Suggestion
from seqopt.campaign.summary import IDENTIFIER, UNSUGGESTED, Section, section_without_empty
from seqopt.campaign.wording import in_words, nearest_in_words, parameter_lines, percent
from seqopt.data.hits import ENOUGH

if TYPE_CHECKING:
    from seqopt.campaign.status import Status

SHOWN = 20
"""Hits in the table of them."""

CHANCE, INTERVAL = "chance of a hit", "90 %"


def hit_sections(
    status: Status, observed: Sequence[Observed], suggestions: Sequence[Suggestion], heading: Section
) -> list[Section]:
    """Hits so far, batch by batch, whether told probabilities hold, the last batch, what is open, the model.

    Args:
        status: Of a campaign whose results are yes or no.
        observed: What was measured, by string.
        suggestions: Those that count.
        heading: The first part.
    """
    hits = status.hits
    assert hits is not None
    settings = status.settings
    return [
        heading,
        Section("Hits", tuple(hits.lines()), *_batches(hits)),
        _best(settings, observed, suggestions),
        _reliability(hits),
        _last_batch(settings, observed, suggestions),
        _open(settings, [row for row in suggestions if row.status == "open"], status),
        _model(status),
    ]


def _batches(hits: Hits) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    rows, measured, found = [], 0, 0.0
    for one in hits.batches:
        measured, found = measured + one.measured, found + one.hits
        cells = one.expected, one.to_come
        expected, to_come = ("" if cell is None else f"{cell:.3g}" for cell in cells)
        rows.append(
            (
                f"B{one.batch:02d}" if one.batch else UNSUGGESTED,
                str(one.suggested) if one.batch else "",
                str(one.measured),
                f"{one.hits:.4g}",
                expected,
                to_come,
                f"{found:.4g} of {measured}",
            )
        )
    header = ("batch", "suggested", "measured", "hits", "expected of these", "expected of open ones", "hits so far")
    return (header, tuple(rows)) if rows else ((), ())


def _best(settings: Settings, observed: Sequence[Observed], suggestions: Sequence[Suggestion]) -> Section:
    names = {row.key: row.name for row in suggestions}
    measured = [one for one in observed if one.values and (one.mean() > 0) == (settings.direction == "maximize")]
    if settings.direction == "minimize":
        measured = [one for one in observed if one.values and one.mean() < 1]
    sign = 1.0 if settings.direction == "maximize" else -1.0
    measured.sort(key=lambda one: (-sign * one.mean(), -one.wells))
    rows = [
        (names.get(one.key, UNSUGGESTED), one.identifier or "", one.string, one.told, own_interval(one))
        for one in measured[:SHOWN]
    ]
    what = "hits" if settings.direction == "maximize" else "strings that are no hits"
    title = "Hits found" if settings.direction == "maximize" else "No hits found"
    lines = [] if rows else [f"No {what} so far."]
    if len(measured) > SHOWN:
        lines.append(f"{len(measured)} strings; the first {SHOWN}, those of the most wells first.")
    few = sum(one.mean() <= 0.5 for one in measured) if settings.direction == "maximize" else 0
    if few:
        are, their = ("is", "its") if few == 1 else ("are", "their")
        lines.append(
            f"{few} of these {are} a hit in half of {their} wells or fewer, and not among the hits counted above."
        )
    header = ("name", IDENTIFIER, settings.string_column, settings.objective, "its wells alone, 90 %")
    return section_without_empty(title, tuple(lines), header, rows)


def own_interval(one: Observed) -> str:
    """The central 90 % of the probability of a hit by the wells of a string alone, by Jeffreys' prior; empty for one
    well, which says next to nothing.

    With k hits of n wells the posterior is Beta(k + 1/2, n - k + 1/2).

    Example:
        >>> from seqopt.campaign.rows import Measurement
        >>> own_interval(Observed("CCO", "CCO", (Measurement("CCO", "CCO", 0.75, details={"wells": 8}),)))
        '46 % to 92 %'
    """
    wells = one.wells
    if wells < 2:
        return ""
    from scipy.special import betaincinv

    hits = one.mean() * wells
    low, high = (float(betaincinv(hits + 0.5, wells - hits + 0.5, share)) for share in (0.05, 0.95))
    return f"{percent(low)} to {percent(high)}"


def _reliability(hits: Hits) -> Section:
    found = hits.calibration
    rows = [(str(group.count), percent(group.told), percent(group.found)) for group in found.groups]
    rows = rows if found.count >= ENOUGH else []
    lines = ("Told probabilities in groups, from the lowest: the mean of what was told, and of what was found.",)
    nothing = (found.describe()[:1].upper() + found.describe()[1:] + ".",)
    return Section(
        "Probabilities against results",
        lines if rows else nothing,
        ("strings", "told", "hits") if rows else (),
        tuple(rows),
    )


def _last_batch(settings: Settings, observed: Sequence[Observed], suggestions: Sequence[Suggestion]) -> Section:
    title = "Last batch with results"
    answered = [row.batch for row in suggestions if row.status in ("measured", "failed", "discarded")]
    if not answered:
        return Section(title, ("No suggestion has a result yet.",))
    by_key = {one.key: one for one in observed}
    batch = [row for row in suggestions if row.batch == max(answered)]
    rows, told, found = [], [], []
    for row in batch:
        one = by_key.get(row.key)
        result = one.told if one is not None and one.values else row.status
        if row.status == "discarded":
            result = "inconclusive"
        if one is not None and one.values and row.mean is not None:
            told.append(row.mean)
            found.append(one.mean())
        rows.append((row.name, row.identifier or "", row.string, *_chance(row), result))
    expected = (
        f"Batch {batch[0].batch}: {math.fsum(found):.4g} hits of {len(found)} results, {math.fsum(told):.3g} expected."
        if told
        else f"Batch {batch[0].batch}: chosen without a prediction, or without a result so far."
    )
    header = ("name", IDENTIFIER, settings.string_column, CHANCE, INTERVAL, settings.objective)
    return section_without_empty(title, (expected,), header, rows)


def _open(settings: Settings, waiting: Sequence[Suggestion], status: Status) -> Section:
    rows, parent = [], parent_of(settings)
    for row in waiting:
        why = in_words(row.reason)
        if row.name in status.failing:
            why = f"{why}, fails: {status.failing[row.name]}"
        rows.append(
            (row.name, row.identifier or "", row.string, *_chance(row), why, nearest_in_words(row.reason, parent))
        )
    header = ("name", IDENTIFIER, settings.string_column, CHANCE, INTERVAL, "why", "nearest measured")
    lines = () if rows else ("None: seqopt campaign suggest says what to measure next.",)
    return section_without_empty("Open suggestions", lines, header, rows)


def _model(status: Status) -> Section:
    model = status.model
    if not model:
        return Section("Model", ("None yet: the first batch is chosen without one.",))
    lines = [f"{model['surrogate']}, fitted to {model['n']} results at the last suggestion"]
    if model.get("r2") is not None:
        lines.append(
            f"leave-one-out: the Brier score is {percent(abs(model['r2']))} "
            f"{'lower' if model['r2'] > 0 else 'higher'} than with one probability for all"
        )
    if "left" in model:
        lines.append(f"candidates left then: {model['left']:,}")
    return Section("Model", (*lines, *parameter_lines(model)))


def _chance(row: Suggestion) -> tuple[str, str]:
    if row.mean is None:
        return "", ""
    interval = "" if row.low is None or row.high is None else f"{percent(row.low)} to {percent(row.high)}"
    return percent(row.mean), interval
