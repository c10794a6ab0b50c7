"""Published values, and the rule by which ours agree with them."""

from __future__ import annotations

import math

import pytest

from seqopt.bench.boss.published import OCCURRENCES, PUBLISHED, Score, least_acceptable


def test_published_values() -> None:
    assert PUBLISHED["101"]["ssk-ga"] == (100, 0.0)
    assert PUBLISHED["101-noisy"]["random"] == (45, 3.8)
    assert PUBLISHED["123-disjoint"]["ngram-ga"] == (69, 5.4)
    assert PUBLISHED["01xx4"]["one-hot-ga"] == (33, 3.1)
    assert [row["ssk-ga"].mean for row in PUBLISHED.values()] == [100, 98, 98, 91, 98, 81, 67]
    assert [row["ssk-rs"].error for row in PUBLISHED.values()] == [1.4, 2.6, 1.6, 1.7, 1.4, 2.8, 2.6]
    assert {len(row) for row in PUBLISHED.values()} == {5}


def test_the_last_row_in_occurrences() -> None:
    assert (OCCURRENCES.mean, OCCURRENCES.error) == pytest.approx((2.7, 0.18))
    assert 100 * OCCURRENCES.mean / 4 == pytest.approx(PUBLISHED["01xx4"]["ssk-ga"].mean, abs=0.5)


def test_least_acceptable_mean() -> None:
    assert least_acceptable(Score(81, 2.3), 0.0) == pytest.approx(81 - 2 * 2.3)
    assert least_acceptable(Score(81, 3.0), 4.0) == pytest.approx(81 - 2 * 5.0)
    # A published error of 0 counts as 1.
    assert least_acceptable(Score(100, 0.0), 0.0) == pytest.approx(98)
    assert least_acceptable(Score(100, 0.0), 1.0) == pytest.approx(100 - 2 * math.sqrt(2))
    assert least_acceptable(Score(2.7, 0.18), 0.24, 0.04) == pytest.approx(2.7 - 2 * 0.3)


def test_scores_are_written_with_their_errors() -> None:
    assert Score(98, 1.4).text(0, 1) == "98 ± 1.4"
    assert Score(2.345, 0.1).text(2) in ("2.35 ± 0.10", "2.34 ± 0.10")
