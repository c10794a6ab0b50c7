"""Whether the latest results are what was predicted of them: a warning, in plain words, where they are not.

Intervals of 90 % are given with every prediction before its result comes. Where the results of the last batch lie
outside more often than chance explains, or all on one side, the next batch rests on a model that has just been wrong.

Errors of one batch depend on each other, since they share a model: both thresholds are therefore cautious.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from seqopt.data.observations import Observation
from seqopt.data.predictions import COVERAGE, HALF_WIDTH

FEWEST = 5
"""Results that are judged at least: a smaller batch is judged together with those before it."""

SURPRISING = 0.01
"""Probability of so few results in their intervals below which a batch has missed its predictions."""

FAR = 2.0
"""Median error, in standard deviations of one result, from which a batch has missed its predictions. A single result
that is far off, as values with heavy tails have them, does not move it."""


@dataclass(frozen=True)
class Judged:
    """A prediction and the result that came.

    Attributes:
        batch: Number of the batch.
        low: Lower end of the central 90 % of a measurement.
        predicted: Central prediction.
        high: Upper end.
        value: The result.
    """

    batch: int
    low: float
    predicted: float
    high: float
    value: float

    @property
    def error(self) -> float:
        """How far the result lies above the prediction, in standard deviations by the interval on that side."""
        above = self.value >= self.predicted
        half = self.high - self.predicted if above else self.predicted - self.low
        if half <= 0:
            return 0.0 if self.value == self.predicted else math.copysign(math.inf, self.value - self.predicted)
        return HALF_WIDTH * (self.value - self.predicted) / half


@dataclass(frozen=True)
class Latest:
    """The latest results held against their predictions.

    Attributes:
        batches: How many batches they are of.
        count: Results.
        better: Results beyond the good end of their intervals.
        worse: Results beyond the other end.
        error: Median error in standard deviations, positive where results are better than predicted.
    """

    batches: int
    count: int
    better: int
    worse: int
    error: float

    @property
    def inside(self) -> int:
        """Results in their intervals."""
        return self.count - self.better - self.worse

    @property
    def missed(self) -> bool:
        """Whether too many lie outside for chance, or nearly all are off on one side."""
        if self.count < FEWEST:
            return False
        return _at_most(self.inside, self.count) < SURPRISING or not abs(self.error) <= FAR

    def warning(self, *, learned: bool = False) -> str:
        """What was missed and what to do, in plain words; empty where predictions hold.

        Args:
            learned: Whether the model sees the values under a transform that is learned already.

        Example:
            >>> Latest(1, 8, 0, 6, -3.1).warning().split(": ")[1]
            '2 of 8 results lay in their 90 % intervals, where 7 were expected; 6 were worse'
            >>> Latest(1, 8, 0, 1, -0.3).warning()
            ''
        """
        if not self.missed:
            return ""
        what = "the last batch" if self.batches == 1 else f"the last {self.batches} batches"
        beyond = [
            f"{number} {'was' if number == 1 else 'were'} {word}"
            for number, word in ((self.better, "better"), (self.worse, "worse"))
            if number
        ]
        side = "better" if self.error > 0 else "worse"
        expected = f"90 % intervals, where {COVERAGE * self.count:.0f} were expected"
        said = f"{self.inside} of {self.count} results lay in their {expected}; "
        said += " and ".join(beyond) if beyond else f"nearly all were {side} than predicted"
        other = "another surrogate" if learned else "the transform auto, or another surrogate"
        return (
            f"{what} missed what was predicted: {said}: check these results for slips (units, swapped samples, another "
            f"plate); if they stand, try {other}, and take some of the next strings at random"
        )


def latest(judged: Sequence[Judged], sign: float) -> Latest:
    """The results of the last batch, and of those before it until there are `FEWEST`.

    Args:
        judged: In any order.
        sign: 1 where large values are good, else -1.

    Example:
        >>> found = latest([Judged(1, 0, 1, 2, 1.5)] * 5 + [Judged(2, 0, 1, 2, 9.0)] * 6, 1.0)
        >>> found.count, found.better, found.missed
        (6, 6, True)
    """
    chosen: list[Judged] = []
    batches = sorted({one.batch for one in judged}, reverse=True)
    used = 0
    for batch in batches:
        if len(chosen) >= FEWEST:
            break
        chosen += [one for one in judged if one.batch == batch]
        used += 1
    above, below = (sum(one.value > one.high for one in chosen), sum(one.value < one.low for one in chosen))
    better, worse = (above, below) if sign > 0 else (below, above)
    error = sign * statistics.median(one.error for one in chosen) if chosen else 0.0
    return Latest(used, len(chosen), better, worse, error)


def judged_rows(rows: Iterable[Observation]) -> list[Judged]:
    """Rows that were predicted and have a value that is not only a limit."""
    found = []
    for row in rows:
        ends = [row.details.get(name) for name in ("predicted_low", "predicted", "predicted_high")]
        known = row.status == "ok" and row.censored is None and not math.isnan(row.value)
        if known and row.details.get("batch") and all(end is not None for end in ends):
            low, middle, high = (float(end) for end in ends if end is not None)
            found.append(Judged(int(row.details["batch"]), low, middle, high, row.value))
    return found


def _at_most(found: int, of: int, share: float = COVERAGE) -> float:
    """Probability of at most so many of a number of cases that each hold with a probability."""
    return math.fsum(
        math.comb(of, number) * share**number * (1 - share) ** (of - number) for number in range(found + 1)
    )
