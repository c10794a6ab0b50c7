"""Batches whose results are not what was predicted: when the user is told, and when not."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from seqopt.data.missed import FEWEST, Judged, Latest, latest
from seqopt.optimizer import Optimizer
from seqopt.spaces import StringSpace

SPACE = StringSpace("AB", 8)


@given(count=st.integers(0, 40), outside=st.integers(0, 40), error=st.floats(-3, 3))
def test_batches_are_blamed_for_what_chance_does_not_explain(count, outside, error):
    outside = min(count, outside)
    found = Latest(1, count, outside // 2, outside - outside // 2, error)
    few = stats.binom.cdf(count - outside, count, 0.9) < 0.01
    assert found.missed == (count >= FEWEST and (few or abs(error) > 2.0))
    assert bool(found.warning()) == found.missed


def test_right_predictions_are_seldom_blamed():
    rng = np.random.default_rng(0)
    blamed = 0
    for _ in range(300):
        values = rng.normal(size=12)
        blamed += latest([Judged(1, -1.6449, 0.0, 1.6449, value) for value in values], 1.0).missed
    assert blamed < 12
    # Also where all members of a batch are off by the same amount.
    shared = [latest([Judged(1, -1.6449, 0.0, 1.6449, rng.normal())] * 12, 1.0).missed for _ in range(300)]
    assert np.mean(shared) < 0.16


def test_small_batches_are_judged_with_those_before_them():
    judged = [Judged(batch, 0.0, 1.0, 2.0, 5.0 if batch > 3 else 1.0) for batch in range(1, 10)]
    found = latest(judged, -1.0)
    assert (found.batches, found.count, found.worse, found.better) == (5, 5, 5, 0)
    assert "the last 5 batches missed" in found.warning()
    assert latest(judged[:4], 1.0).warning() == ""  # too few
    assert latest([], 1.0) == Latest(0, 0, 0, 0, 0.0)


def test_errors_are_measured_on_their_side_of_the_interval():
    assert Judged(1, 0.0, 1.0, 11.0, 11.0).error == pytest.approx(1.6449, abs=1e-4)
    assert Judged(1, 0.0, 1.0, 11.0, 0.0).error == pytest.approx(-1.6449, abs=1e-4)
    assert Judged(1, 1.0, 1.0, 1.0, 1.0).error == 0.0
    assert Judged(1, 1.0, 1.0, 1.0, 2.0).error == np.inf


def test_nearly_all_on_one_side_is_said_too():
    inside = [Judged(1, 0.0, 10.0, 12.0, 12.0 + 1e-9 * number) for number in range(6)]
    assert "nearly all" not in latest(inside, 1.0).warning()
    text = Latest(1, 6, 0, 0, -2.5).warning(learned=True)
    assert "nearly all were worse than predicted" in text
    assert "try another surrogate" in text


def run(values, optimizer, batches=2):
    for _ in range(batches):
        strings = optimizer.ask()
        optimizer.tell(strings, [values(string) for string in strings])


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_asking_warns_after_a_batch_that_missed(direction, caplog):
    optimizer = Optimizer(
        SPACE, surrogate="hamming", initial=10, batch_size=6, direction=direction, transform=None, seed=2
    )
    run(lambda string: float(string.count("A")), optimizer)
    with caplog.at_level(logging.WARNING):
        strings = optimizer.ask()
    assert "missed what was predicted" not in caplog.text
    sign = -1.0 if direction == "maximize" else 1.0
    optimizer.tell(strings, [sign * 1000.0] * len(strings))  # another unit
    with caplog.at_level(logging.WARNING):
        optimizer.ask()
    assert "the last batch missed what was predicted" in caplog.text
    assert "6 were worse" in caplog.text
    assert "the transform auto" in optimizer.missed()


def test_one_result_that_is_far_off_is_no_missed_batch():
    # 9 of 10 in their intervals, and one a hundred standard deviations below: a heavy tail, not a wrong model.
    judged = [Judged(1, -1.0, 0.0, 1.0, 0.5)] * 9 + [Judged(1, -1.0, 0.0, 1.0, -60.0)]
    assert latest(judged, 1.0).warning() == ""
    assert latest([Judged(1, -1.0, 0.0, 1.0, -60.0)] * 6 + judged[:4], 1.0).missed
