"""What is said of a campaign whose results are yes or no: hits so far, what is expected, whether probabilities hold."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seqopt.campaign.rows import INCONCLUSIVE, WELLS
from seqopt.campaign.wording import percent

if TYPE_CHECKING:
    from seqopt.campaign.rows import Measurement, Observed, Suggestion
    from seqopt.data.hits import HitCalibration, Tried


@dataclass(frozen=True)
class BatchOfHits:
    """What became of one batch.

    Attributes:
        batch: Its number; 0 for what was never suggested.
        suggested: Suggestions in it.
        measured: Those with a result that is conclusive.
        hits: Sum of their shares of wells that were hits: hits, where each is of one well.
        expected: Hits that were expected among those measured, by the probabilities that were told; `None` where none
            were.
        to_come: Hits expected among those that are open.
    """

    batch: int
    suggested: int
    measured: int
    hits: float
    expected: float | None
    to_come: float | None


@dataclass(frozen=True)
class Hits:
    """How many hits a campaign has found.

    Attributes:
        strings: Different strings with a conclusive result.
        hits: Of these, strings of which more than half of the wells were hits.
        wells: Wells with a conclusive result.
        wells_hit: Of these, those that were hits.
        inconclusive: Results that were inconclusive.
        open: Suggestions that await a result.
        expected: Hits expected among these, by the probabilities that were told; `None` where none were.
        batches: See `BatchOfHits`.
        calibration: Whether told probabilities hold.
    """

    strings: int
    hits: int
    wells: int
    wells_hit: int
    inconclusive: int
    open: int
    expected: float | None
    batches: tuple[BatchOfHits, ...]
    calibration: HitCalibration

    def lines(self) -> list[str]:
        """In words.

        Example:
            >>> from seqopt.data.hits import HitCalibration
            >>> Hits(40, 3, 40, 3, 1, 8, 2.4, (), HitCalibration.of([])).lines()[0]
            'hits: 3 of 40 strings measured (7.5 %); inconclusive: 1'
        """
        rate = f" ({100 * self.hits / self.strings:.3g} %)" if self.strings else ""
        found = f"hits: {self.hits} of {self.strings:,} strings measured{rate}"
        if self.wells > self.strings:
            found += f", {self.wells_hit:,} of {self.wells:,} wells"
        if self.inconclusive:
            found += f"; inconclusive: {self.inconclusive}"
        lines = [found]
        if self.expected is not None:
            lines.append(f"expected among {self.open} open suggestions: {self.expected:.3g} hits")
        if self.calibration.count:
            lines.append(self.calibration.describe())
        return lines


def hits_of(
    suggestions: Sequence[Suggestion],
    measurements: Sequence[Measurement],
    observed: Sequence[Observed],
    superseded: Sequence[Measurement] = (),
) -> Hits:
    """How many hits a campaign has found.

    Args:
        suggestions: Those that count.
        measurements: Those that count or were discarded, in the order in which they were recorded.
        observed: What was measured, by string.
        superseded: Measurements that were corrected since.
    """
    from seqopt.data.hits import HitCalibration

    conclusive = [one for one in observed if one.values]
    by_name = first_answers(measurements, superseded)
    batches = []
    for number in sorted({row.batch for row in suggestions}):
        batch = [row for row in suggestions if row.batch == number]
        done = [row for row in batch if row.name in by_name]
        told = [row.mean for row in done if row.mean is not None]
        waiting = [row.mean for row in batch if row.status == "open" and row.mean is not None]
        batches.append(
            BatchOfHits(
                number,
                len(batch),
                len(done),
                math.fsum(by_name[row.name][0] for row in done),
                math.fsum(told) if told else None,
                math.fsum(waiting) if waiting else None,
            )
        )
    suggested = {row.key for row in suggestions}
    others = [one for one in conclusive if one.key not in suggested]
    if others:
        shares = math.fsum(one.mean() for one in others)
        batches.insert(0, BatchOfHits(0, 0, len(others), shares, None, None))
    open_ones = [row for row in suggestions if row.status == "open"]
    awaited = [row.mean for row in open_ones if row.mean is not None]
    wells_hit = sum(one.mean() * one.wells for one in conclusive)
    return Hits(
        len(conclusive),
        sum(one.mean() > 0.5 for one in conclusive),
        sum(one.wells for one in conclusive),
        round(wells_hit),
        sum(row.failure == INCONCLUSIVE for row in measurements),
        len(open_ones),
        math.fsum(awaited) if awaited else None,
        tuple(batches),
        HitCalibration.of(tried_of(suggestions, by_name)),
    )


def tried_of(suggestions: Sequence[Suggestion], results: Mapping[str, tuple[float, int]]) -> list[Tried]:
    """Told probabilities with their results.

    Args:
        suggestions: Those that count.
        results: Share of hits and number of wells by the names of suggestions.
    """
    from seqopt.data.hits import Tried

    return [
        Tried(row.batch, row.mean, *results[row.name])
        for row in suggestions
        if row.mean is not None and row.name in results
    ]


def first_answers(
    measurements: Sequence[Measurement], superseded: Sequence[Measurement] = ()
) -> dict[str, tuple[float, int]]:
    """The first result of each suggestion, by its name: share of hits and number of wells.

    Wells that one command has recorded are one result, whether they are rows or counts of a table. What was measured
    once more later does not count: that is often a hit, and few would be hits again.

    Args:
        measurements: What was discarded does not count.
        superseded: Measurements that were corrected: a correction stands where what it corrects was recorded.
    """
    known = {row.id: row for row in (*superseded, *measurements)}

    def origin(row: Measurement) -> Measurement:
        while row.replaces is not None and row.replaces in known:
            row = known[row.replaces]
        return row

    found: dict[str, list[Measurement]] = {}
    for row in sorted(measurements, key=lambda row: origin(row).id):
        if row.suggestion is None or row.value is None or row.discarded is not None:
            continue
        first = found.setdefault(row.suggestion, [])
        if not first or origin(row).made_by == origin(first[0]).made_by:
            first.append(row)
    return {name: _together(rows) for name, rows in found.items()}


def _together(rows: Sequence[Measurement]) -> tuple[float, int]:
    wells = [int(row.details.get(WELLS, 1)) for row in rows]
    hits = math.fsum((row.value or 0.0) * count for row, count in zip(rows, wells, strict=True))
    return hits / sum(wells), sum(wells)


def chance(central: float, low: float | None, high: float | None) -> str:
    """A predicted probability in words.

    Example:
        >>> chance(0.31, 0.08, 0.66), chance(0.004, None, None)
        ('31 % chance of a hit, 90 %: 8 % to 66 %', '0.4 % chance of a hit')
    """
    text = f"{percent(central)} chance of a hit"
    if low is None or high is None:
        return text
    return f"{text}, 90 %: {percent(low)} to {percent(high)}"
