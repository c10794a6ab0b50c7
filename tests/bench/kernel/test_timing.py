"""What is timed is what it says it is, and all contestants take turns."""

from __future__ import annotations

import numpy as np
import pytest

from seqopt.bench.kernel import timing, yardstick
from seqopt.bench.kernel.timing import (
    Case,
    affordable,
    gram_case,
    interleaved,
    median,
    random_strings,
    rate,
    rate_ratio,
    ratio,
)
from seqopt.errors import InputError


def test_cases_take_turns_at_gap_decays_that_are_the_same_for_all(monkeypatch):
    monkeypatch.setattr(timing, "REPEATED", 0.0)
    calls = []
    rows = interleaved(
        [
            Case({"name": "a"}, 3, lambda gap: calls.append(("a", gap))),
            Case({"name": "b"}, 4, lambda gap: calls.append(("b", gap))),
        ],
        rounds=3,
    )
    assert [name for name, _ in calls] == ["a", "b"] * 4
    decays = [gap for _, gap in calls]
    assert decays[::2] == decays[1::2]
    assert len(set(decays)) == 8 // 2
    assert [(row["name"], row["pairs"], len(row["seconds"])) for row in rows] == [("a", 3, 3), ("b", 4, 3)]


def test_quick_calls_are_repeated_at_gap_decays_of_their_own(monkeypatch):
    monkeypatch.setattr(timing, "REPEATED", 0.05)
    decays = []
    interleaved([Case({}, 1, decays.append)], rounds=2)
    assert len(decays) > 1 + 2
    assert len(set(decays)) == len(decays)


@pytest.mark.parametrize("error", [InputError("too wide"), yardstick.NoCompilerError("too wide")])
def test_what_cannot_be_computed_is_left_out_with_the_reason(error):
    def refuse(gap):
        raise error

    refused, timed = interleaved([Case({"name": "a"}, 3, refuse), Case({"name": "b"}, 4, lambda gap: None)], rounds=2)
    assert refused == {"name": "a", "skipped": "too wide"}
    assert len(timed["seconds"]) == 2


def test_medians_rates_and_ratios_of_rounds():
    slow = {"pairs": 6, "seconds": [2.0, 3.0, 40.0]}
    fast = {"pairs": 6, "seconds": [1.0, 1.0, 10.0]}
    assert median(slow) == 3.0
    assert rate(slow) == 2.0
    assert ratio(slow, fast) == 3.0  # of 2, 3 and 4: a busy round slows both
    assert rate_ratio(slow, fast | {"pairs": 30}) == 15.0


@pytest.mark.parametrize("engine", ["cpu", "reference", "yardstick"])
@pytest.mark.parametrize("derivative", [False, True])
def test_gram_cases_compute_the_same_matrix(engine, derivative):
    if engine == "yardstick":
        try:
            yardstick.load()
        except yardstick.NoCompilerError as error:
            pytest.skip(str(error))
    strings = random_strings(9, 12, 4, seed=1)
    options = {"derivative": derivative, "dtype": "float64", "threads": 2}
    case = gram_case(engine, strings, 3, kind="DNA", **options)
    assert case.pairs == 45
    assert case.facts | {"kind": "DNA", "engine": engine, "order": 3, "strings": 9, "symbols": 4} == case.facts
    expected = gram_case("reference", strings, 3, **options).call(0.3)
    for values, oracle in zip(case.call(0.3), expected, strict=True):
        assert (values is None) == (oracle is None)
        if values is not None:
            np.testing.assert_allclose(values, oracle, rtol=1e-12)


def test_slow_engines_are_spared():
    few, many, long = (random_strings(n, length, 20, 0) for n, length in ((10, 20), (1000, 60), (4, 2000)))
    assert len(affordable("reference", few, 5)) == 10
    assert 2 <= len(affordable("reference", many, 5)) < 1000
    assert affordable("reference", long, 5) is None
    assert affordable("features", few, 3) is few
    assert affordable("features", many, 5) is None
    assert affordable("cpu", long, 5) is long


def test_strings_depend_on_the_seed_only(monkeypatch):
    monkeypatch.setattr("seqopt.datasets.load_zinc250k", lambda: [f"{'C' * n}O" for n in range(50)])
    timing._shuffled_zinc.cache_clear()
    assert timing.zinc(5, seed=3) == timing.zinc(20, seed=3)[:5]
    assert timing.zinc(5, seed=3) != timing.zinc(5, seed=4)
    timing._shuffled_zinc.cache_clear()
    assert np.array_equal(random_strings(3, 5, 4, 0).tokens, random_strings(3, 5, 4, 0).tokens)
    assert random_strings(50, 30, 4, 0).tokens.max() == 4
