"""Values that seem to be in another unit."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from seqopt.campaign.entries import Remark, Row
from seqopt.campaign.rows import Measurement, Settings, Suggestion

THOUSANDFOLD = 300.0
"""Factor to the median from which on a value seems to be in another unit."""

SPREADS = 6.0
"""The same as a multiple of the median distance of values from their median, in logarithms."""

FEWEST_FOR_SCALE = 3
"""Values that it takes to know their scale."""


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
    predicted = {row.key: abs(row.mean) for row in suggestions if row.mean and row.undone_by is None}
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
