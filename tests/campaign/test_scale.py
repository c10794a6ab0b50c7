"""Values that lie far outside all others, on both sides of each threshold."""

from __future__ import annotations

import pytest

from seqopt.campaign import Settings
from seqopt.campaign.entries import ResultEntry, Row
from seqopt.campaign.rows import Measurement
from seqopt.campaign.scale import refuse_absurd


def refused(values: list[float], earlier: list[float] | None = None, transform: str | None = None) -> list[float]:
    rows = [Row(ResultEntry("A", value=value), "") for value in values]
    refuse_absurd(
        rows, [Measurement("B", "B", value) for value in earlier or []], Settings("activity", transform=transform)
    )
    return [value for row, value in zip(rows, values, strict=True) if row.problems]


@pytest.mark.parametrize(
    ("others", "last_taken", "first_refused"),
    [
        # A millionfold of the median, which is 2.5 with the value itself.
        ([1.0, 2.0, 3.0], 2.4e6, 2.6e6),
        ([-1.0, -2.0, 3.0], -2.4e6, -2.6e6),
        # A hundredfold of every other value, where one is that large, too.
        ([1.0, 2.0, 3.0, 1e5], 0.9e7, 1.1e7),
        # Nothing to compare with, and larger than any measurement.
        ([], 9e29, 1.1e30),
        # What a spreadsheet makes of a date: an integer of these years, a hundredfold of the others.
        ([1.0, 2.0, 3.0], 45_000.5, 45_000.0),
        ([1.0, 2.0, 3.0], 36_525.0, 36_526.0),
        ([400.0, 420.0, 449.0], 44_900.0, 44_901.0),
        ([400.0, 420.0, 451.0], 45_000.0, 45_101.0),
    ],
)
def test_the_first_that_is_refused(others: list[float], last_taken: float, first_refused: float) -> None:
    assert refused([*others, last_taken]) == []
    assert refused([*others, first_refused]) == [first_refused]


def test_where_values_span_decades_a_day_is_a_value() -> None:
    assert refused([1.0, 2.0, 299.0, 45_000.0]) == [45_000.0]
    assert refused([1.0, 2.0, 301.0, 45_000.0]) == []
    assert refused([1.0, 2.0, 3.0, 45_000.0], transform="log10") == []


def test_small_values_are_refused_on_a_logarithmic_scale_only() -> None:
    assert refused([1.0, 2.0, 3.0, 2.6e-6], transform="log10") == []  # the median is 1.5 with it
    assert refused([1.0, 2.0, 3.0, 1.4e-6], transform="log10") == [1.4e-6]
    assert refused([1.0, 2.0, 3.0, 1.4e-6]) == []
    assert refused([1.0, 2.0, 3.0, 0.0]) == []


def test_earlier_values_decide_where_there_are_enough() -> None:
    assert refused([1.9e6, 2.1e6, 2.2e6], earlier=[1.0, 2.0, 3.0]) == [2.1e6, 2.2e6]
    assert refused([2.1e6, 2.2e6], earlier=[1.0, 2.0]) == []
