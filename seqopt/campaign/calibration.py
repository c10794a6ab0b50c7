"""How often results lay where they were predicted to lie: intervals that were given before the results came."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seqopt.campaign.rows import Measurement, Suggestion

COVERAGE = 0.9
"""Share of the results that their intervals are to hold; see `seqopt.data.predictions.COVERAGE`."""

SURPRISING = 0.05
"""Probability of as few, or as many, results in their intervals below which the intervals are said to be wrong."""


@dataclass(frozen=True)
class Calibration:
    """Predictions that were made before their results came, held against these.

    Attributes:
        count: Predictions with a result.
        below: Results below their interval.
        above: Results above it.
    """

    count: int
    below: int
    above: int

    @property
    def inside(self) -> int:
        """Results in their intervals."""
        return self.count - self.below - self.above

    @property
    def expected(self) -> float:
        """How many would be if the intervals were right."""
        return COVERAGE * self.count

    def verdict(self) -> str:
        """Whether the intervals can be trusted, if chance does not explain what was found; else empty.

        A number of results in their intervals is taken as surprising if, of intervals that are right, as many or fewer
        (or as many or more) would be found with a probability below 5 % (binomial distribution).

        Example:
            >>> Calibration(40, 8, 7).verdict()
            'the intervals are too narrow'
            >>> Calibration(40, 3, 2).verdict()
            ''
        """
        if _at_most(self.inside, self.count) < SURPRISING:
            return "the intervals are too narrow"
        if _at_most(self.count - self.inside, self.count, 1 - COVERAGE) < SURPRISING:
            return "the intervals are wider than they need be"
        return ""

    def describe(self) -> str:
        """In words.

        Example:
            >>> Calibration(40, 3, 2).describe()
            'of 40 predictions made before their results came, 35 (88 %) lay in their 90 % intervals; expected 36'
            >>> Calibration(0, 0, 0).describe()
            'no result of a prediction has come yet'
        """
        if not self.count:
            return "no result of a prediction has come yet"
        if self.count == 1:
            return f"the one prediction with a result lay {'inside' if self.inside else 'outside'} its 90 % interval"
        text = (
            f"of {self.count} predictions made before their results came, {self.inside} "
            f"({100 * self.inside / self.count:.0f} %) lay in their 90 % intervals; expected {self.expected:.0f}"
        )
        verdict = self.verdict()
        return f"{text}: {verdict}" if verdict else text


def calibration_of(suggestions: Sequence[Suggestion], measurements: Sequence[Measurement]) -> Calibration:
    """The first value that answers each suggestion, held against its interval for one measurement.

    What was discarded, or is only a limit, is not counted.

    Args:
        suggestions: Those that count.
        measurements: Those that count, in the order in which they were recorded.
    """
    first = first_values(measurements)
    count = below = above = 0
    for one in suggestions:
        value = first.get(one.name)
        if value is None or one.low is None or one.high is None:
            continue
        count += 1
        below += value < one.low
        above += value > one.high
    return Calibration(count, below, above)


def first_values(measurements: Sequence[Measurement]) -> dict[str, float]:
    """The first value that answers each suggestion, by its name, without what was discarded or is only a limit.

    Args:
        measurements: In the order in which they were recorded.
    """
    first: dict[str, float] = {}
    for row in measurements:
        if row.suggestion is not None and row.value is not None and row.discarded is None and row.censored is None:
            first.setdefault(row.suggestion, row.value)
    return first


def _at_most(found: int, of: int, share: float = COVERAGE) -> float:
    """Probability of at most so many of a number of cases that each hold with a probability."""
    return math.fsum(
        math.comb(of, number) * share**number * (1 - share) ** (of - number) for number in range(found + 1)
    )
