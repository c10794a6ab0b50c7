"""Do the drawn plates and levels hold what is said to be true of them?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from seqopt.bench import contexts
from seqopt.bench.contexts import CHEAP_OFFSET, OFFSETS, Job, table, work
from seqopt.bench.contexts import _function as function
from seqopt.bench.contexts import _levels as levels
from seqopt.bench.contexts import _plates as plates
from seqopt.bench.intervals import random_dna


@pytest.fixture
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contexts, "NOISE", 0.0)
    monkeypatch.setattr(contexts, "LOCAL", 0.0)


def test_controls_differ_between_plates_by_what_is_called_their_offsets(exact: None) -> None:
    queries, values, truths = plates(Job("plates", 3, 6, 2.0, 0), np.random.default_rng(0))
    found: dict[str, dict[Any, float]] = {}
    for query, value in zip(queries, values, strict=True):
        found.setdefault(query.key, {})[query.context] = value
    on = [sum(context in places for places in found.values()) for context in truths]
    controls = [places for places in found.values() if len(places) == 3]
    assert (on, len(controls), len(found)) == ([6, 6, 6], 2, 2 + 3 * 4)
    first, *others = truths
    for places in controls:
        for other in others:
            assert places[other] - places[first] == pytest.approx(truths[other] - truths[first])


def test_offsets_are_drawn_with_their_variance(exact: None) -> None:
    drawn = [
        truth
        for seed in range(40)
        for truth in plates(Job("plates", 5, 3, 2.0, 0), np.random.default_rng(seed))[2].values()
    ]
    # The square of a normal number has a standard deviation of sqrt(2) times its mean.
    assert np.mean(np.square(drawn)) == pytest.approx(OFFSETS, rel=4 * np.sqrt(2 / len(drawn)))


def test_a_level_of_correlation_one_tells_the_other_exactly(exact: None) -> None:
    queries, values, truths = levels(Job("levels", 2, 5, 1.0, 0), np.random.default_rng(0))
    assert list(truths.values()) == [1.0]
    known = {(query.key, query.context): value for query, value in zip(queries, values, strict=True)}
    (cheap,) = truths
    costly = [(key, value) for (key, context), value in known.items() if context != cheap]
    assert (len(known), len(costly)) == (15, 5)
    for key, value in costly:
        assert known[key, cheap] - value == pytest.approx(CHEAP_OFFSET)


def test_values_of_different_strings_have_variance_one() -> None:
    rng = np.random.default_rng(1)
    # Of few strings, so that a divisor of n in place of n - 1 shows.
    strings = random_dna(rng)[::150]
    assert len(strings) == 3
    drawn = [function(strings, rng).var(ddof=1) for _ in range(200)]
    assert np.mean(drawn) == pytest.approx(1.0, abs=4 * np.std(drawn) / np.sqrt(200))


@pytest.mark.parametrize(("task", "truth", "number"), [("plates", 2.0, 2), ("levels", 0.9, 1)])
def test_a_run_holds_each_interval_beside_what_is_true(task: str, truth: float, number: int) -> None:
    found = work(Job(task, 2, 8, truth, 3))["found"]
    assert len(found) == number
    for one in found:
        assert one["low"] <= one["estimate"] <= one["high"]
    if task == "levels":
        assert found[0]["true"] == 0.9


def test_the_table_counts_what_lies_within() -> None:
    inside, outside = ({"true": true, "estimate": 0.5, "low": 0.0, "high": 1.0} for true in (0.25, 1.5))
    job = {"task": "plates", "groups": 2, "strings": 8, "truth": 0.0}
    runs = [
        {"job": {**job, "seed": seed}, "found": found}
        for seed, found in enumerate([[inside, inside], [inside, outside]])
    ]
    # Data sets of 100 and 50 %; the mean square of three errors of 0.25 and one of 1 is 0.297.
    assert "| offset | 2 | 8 | 0 controls | 2 | 75.0 ± 25.0 | 1.00 | 0.54 |" in table(runs)
