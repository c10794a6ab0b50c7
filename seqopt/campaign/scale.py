"""Values that seem to be in another unit, and values that no assay gives."""

from __future__ import annotations

import math
import shlex
import statistics
from collections.abc import Sequence
from datetime import date, timedelta

from seqopt.campaign.costs import cost_of, way_of
from seqopt.campaign.entries import Remark, Row, lines_of
from seqopt.campaign.rows import Measurement, Settings, Suggestion
from seqopt.campaign.units import are_logarithms, campaign_scale

THOUSANDFOLD = 300.0
"""Factor to the median from which on a value seems to be in another unit."""

SPREADS = 6.0
"""The same as a multiple of the median distance of values from their median, in logarithms."""

FEWEST_FOR_SCALE = 3
"""Values that it takes to know their scale."""

FEWEST_FOR_RANGE = 8
"""Values that it takes to know their range."""

FAR_RANGES = 10.0
"""How many times the range of all others from which on a value beyond them is worth a second look."""

FAR_UNITS = 6.0
"""The same of logarithms, in units: a millionfold, whatever the range is."""

MILLIONFOLD = 1e6
"""Factor to the median from which on a value is not taken for one, unless others are as far away."""

TENFOLD = 10.0
"""Factor to the usual cost of a measurement from which on a cost is worth a second look."""

ABSURD = 1e30
"""No unit makes a measurement as large as this."""

_CHECK = "a typing error? If it is right, record it with --force (force=True)"

SERIAL_DATES = range(36_526, 62_094)
"""Days since the end of 1899, as spreadsheets count them, from 2000 to 2069."""


def refuse_absurd(rows: Sequence[Row], measurements: Sequence[Measurement], settings: Settings) -> None:
    """Note what is wrong with values that lie far outside all others: typing errors, as a rule.

    A value is held against the earlier ones or, where these are fewer than `FEWEST_FOR_SCALE`, against the others of
    the same table. It is refused if it is `MILLIONFOLD` the median and every other value is a hundredfold closer to it;
    if it is an integer in `SERIAL_DATES` and more than a hundredfold every other value, where these do not span
    decades; or if it is `ABSURD`. Small values are refused on a logarithmic scale only: elsewhere, nearly nothing is a
    result.

    Args:
        rows: The entries that have values.
        measurements: Of the same context.
        settings: Of the campaign.
    """
    earlier = [abs(row.value) for row in measurements if row.value]
    together = len(earlier) < FEWEST_FOR_SCALE
    new = [abs(row.entry.value) for row in rows if row.entry.value]
    sizes = sorted(earlier + new if together else earlier)
    middle = statistics.median(sizes) if sizes else 0.0
    for row in rows:
        value, told = row.entry.value, f"{row.entry.censored or ''}{row.entry.value!r}"
        # Without the value itself, which is the largest or the smallest if it is refused.
        if not value or len(sizes) - together < FEWEST_FOR_SCALE:
            if value and abs(value) >= ABSURD:
                row.wrong("is larger than anything that is measured", told, hint=_CHECK)
            continue
        size = abs(value)
        largest = sizes[-2] if together and size == sizes[-1] else sizes[-1]
        smallest = sizes[1] if together and size == sizes[0] else sizes[0]
        # Where values span decades, one that may be a date is as likely to be a value.
        decades = settings.transform == "log10" or largest >= THOUSANDFOLD * smallest
        problem = ""
        if size >= ABSURD and size >= 100 * largest:
            problem = "is larger than anything that is measured"
        elif not decades and size > 100 * largest and value == int(value) and int(value) in SERIAL_DATES:
            day = date(1899, 12, 30) + timedelta(days=int(value))
            problem = f"is what a spreadsheet makes of the date {day.isoformat()}; the others are up to {largest:g}"
        elif (size >= MILLIONFOLD * middle and size >= 100 * largest) or (
            settings.transform == "log10" and size * MILLIONFOLD <= middle and size * 100 <= smallest
        ):
            problem = f"is {size / middle:.1g} times the usual value ({middle:g})"
        if problem:
            row.wrong(problem, told, hint=_CHECK)


def warn_of_scale(
    sound: Sequence[Row],
    measurements: Sequence[Measurement],
    suggestions: Sequence[Suggestion],
    settings: Settings,
    source: str,
    warnings: list[Remark],
) -> None:
    """Values that seem to be in another unit than the earlier ones, the predictions, or each other.

    Limits are left out: what an assay can resolve is often far from what it measures.
    """
    new = [(row, abs(row.entry.value)) for row in sound if row.entry.value and row.entry.censored is None]
    if not new:
        return
    unit = f" ({settings.unit})" if settings.unit else ""
    measurements = [row for row in measurements if row.censored is None]
    earlier = [abs(row.value) for row in measurements if row.value]
    told = {row.key: row.predicted(settings.transform) for row in suggestions if row.undone_by is None}
    predicted = {key: abs(value) for key, value in told.items() if value}
    pairs = [value / predicted[row.key] for row, value in new if row.key in predicted]
    ratio, smallest = 1.0, 1 / THOUSANDFOLD
    if len(earlier) >= FEWEST_FOR_SCALE:
        ratio = statistics.median(value for _, value in new) / statistics.median(earlier)
        against = "than the earlier ones"
    elif pairs:
        ratio = statistics.median(pairs)
        against = "than was predicted"
    signed = [row.value for row in measurements if row.value] + [row.entry.value for row, _ in new if row.entry.value]
    if min(signed) < 0 < max(signed):
        # Where values of both signs are usual, so are some that are close to zero.
        smallest = 0.0
    if not smallest < ratio < THOUSANDFOLD:
        size = f"{ratio:,.0f} times larger" if ratio > 1 else f"{1 / ratio:,.0f} times smaller"
        message = f"the values are about {size} {against}: are they in the unit of the campaign{unit}?"
        warnings.append(Remark(message, source))
        return
    everything = earlier + [value for _, value in new]
    if len(everything) <= FEWEST_FOR_SCALE:
        return
    middle = statistics.median(everything)
    # Values that span decades are not mistakes: what counts is the distance against that of the others.
    usual = statistics.median(abs(math.log(value / middle)) for value in everything)
    for row, value in new:
        factor = value / middle
        if not smallest and factor < 1:
            continue
        if abs(math.log(factor)) >= max(math.log(THOUSANDFOLD), SPREADS * usual):
            size = f"{factor:,.0f} times the usual value" if factor > 1 else f"1/{1 / factor:,.0f} of the usual value"
            message = f"is {size} ({middle:g}): is it in the unit of the campaign{unit}?"
            warnings.append(row.remark(message, repr(row.entry.value)))


def warn_of_far_values(
    sound: Sequence[Row], measurements: Sequence[Measurement], settings: Settings, source: str, warnings: list[Remark]
) -> None:
    """Values that lie so far outside all earlier ones that a sign or a decimal mark may have been lost.

    Where values are logarithms, that is more than `FAR_UNITS` beyond the nearest end of the earlier ones, and else more
    than `FAR_RANGES` times their range. Less is what a hit may do. Concentrations, and what is compared as logarithms,
    span decades; of these `warn_of_scale` says what is too far. Limits are left out, as there.

    Args:
        sound: The entries, of one context.
        measurements: Earlier ones, of the same.
        settings: Of the campaign.
        source: What messages call the table.
        warnings: A remark is added to these where there are such values.
    """
    earlier = [row.value for row in measurements if row.value is not None and row.censored is None]
    scale = campaign_scale(settings)
    if len(earlier) < FEWEST_FOR_RANGE or settings.transform == "log10" or (scale and scale.exponent is not None):
        return
    low, high = min(earlier), max(earlier)
    room = FAR_UNITS if are_logarithms(settings) else FAR_RANGES * (high - low)
    far = [
        row
        for row in sound
        if row.entry.censored is None
        and row.entry.value is not None
        and max(low - row.entry.value, row.entry.value - high) > room > 0
    ]
    if not far:
        return
    others = f"from all others, which lie between {low:g} and {high:g}"
    if len(far) == 1:
        row = far[0]
        name = row.suggestion.name if row.suggestion is not None else row.entry.owned or row.entry.string or "STRING"
        message = (
            f"is far {others}: if it is a typing error, seqopt campaign correct {shlex.quote(name)} NUMBER mends it"
        )
        warnings.append(row.remark(message, f"{row.entry.value:g}"))
        return
    which = f" ({lines_of(far)})" if far[0].entry.line is not None else ""
    message = f"{len(far)} values are far {others}{which}: seqopt campaign correct mends what is a typing error"
    warnings.append(Remark(message, source))


def warn_of_costs(
    sound: Sequence[Row], measurements: Sequence[Measurement], settings: Settings, source: str, warnings: list[Remark]
) -> None:
    """Costs that are ten times what such a measurement usually costs, or a tenth: they may be in another unit.

    Usual is what the campaign says or, once `FEWEST_FOR_SCALE` measurements have said what they did cost, their median.
    Such costs count all the same: against the budget, and in a model of costs.

    Args:
        sound: The entries, which have contexts.
        measurements: Earlier ones.
        settings: Of the campaign.
        source: What messages call the table.
        warnings: Remarks are added to these.
    """
    contexts = settings.made_contexts()
    if contexts is None or not any(row.entry.cost for row in sound):
        return
    for context in dict.fromkeys(row.context for row in sound):
        earlier = [row.cost for row in measurements if row.context == context and row.cost is not None]
        stated = cost_of(context, contexts)
        known = len(earlier) >= FEWEST_FOR_SCALE
        usual = statistics.median(earlier) if known else stated
        far = [
            (row, row.entry.cost)
            for row in sound
            if row.context == context and row.entry.cost and not usual / TENFOLD < row.entry.cost < usual * TENFOLD
        ]
        if not far:
            continue
        rows, costs = [row for row, _ in far], [cost for _, cost in far]
        middle = statistics.median(costs)
        factor = f"{middle / usual:,.6g} times" if middle > usual else f"1/{usual / middle:,.6g} of"
        against = f"the usual {usual:g}" if known else f"the {usual:g} that the campaign says"
        what = f"the cost of {way_of(context)}, {middle:g}, is {factor} {against}"
        which = f" ({lines_of(rows)})" if rows[0].entry.line is not None else ""
        told = (
            f"is it in the unit of the campaign's costs? It counts as it stands, in the budget too{which}; "
            "seqopt campaign correct --cost changes it"
        )
        several = f" (median of {len(far)} costs)" if len(far) > 1 else ""
        warnings.append(Remark(f"{what}{several}: {told}", source))
