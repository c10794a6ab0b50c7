"""What a replay found: ties, directions, failures, and random search by enumeration."""

import itertools
import math

import numpy as np
import pytest

from seqopt.data.replay import Replay, hypergeometric_interval, replay, top_of


@pytest.mark.parametrize(
    ("candidates", "good", "drawn"), [(12, 3, 5), (12, 5, 12), (9, 9, 4), (30, 2, 1), (40, 10, 20)]
)
def test_the_interval_is_that_of_the_definition(candidates: int, good: int, drawn: int) -> None:
    total = math.comb(candidates, drawn)
    chances = [math.comb(good, k) * math.comb(candidates - good, drawn - k) / total for k in range(drawn + 1)]
    low, high = hypergeometric_interval(candidates, good, drawn)
    below, above = sum(chances[:low]), sum(chances[high + 1 :])
    assert below <= 0.05 + 1e-12
    assert above <= 0.05 + 1e-12
    # And it is no wider than it has to be.
    assert sum(chances[: low + 1]) > 0.05 - 1e-12
    assert high == 0 or sum(chances[high:]) > 0.05 - 1e-12


def test_random_search_finds_the_expected_number_in_all_its_choices() -> None:
    values = np.array([5.0, 1.0, 4.0, 4.0, 0.0, 2.0, 3.0, 4.0])
    every = [replay(values, list(chosen), maximize=True, top=3) for chosen in itertools.combinations(range(8), 3)]
    for which in (0, 1):
        assert np.mean([one.tops[which].found for one in every]) == pytest.approx(every[0].tops[which].expected)
    # Three values tie with the third best: the best three are four strings.
    assert [top.size for top in every[0].tops] == [1, 4]


def test_small_values_are_the_best_where_they_are_looked_for() -> None:
    found = replay(np.arange(1000.0), np.arange(50), maximize=False)
    assert [(top.name, top.size, top.threshold, top.found) for top in found.tops] == [
        ("top 1 %", 10, 9.0, 10),
        ("top 100", 100, 99.0, 50),
    ]
    assert replay(np.arange(1000.0), np.arange(50), maximize=True).tops[1].found == 0


def test_failures_count_as_evaluations_and_are_never_among_the_best() -> None:
    values = [1.0, float("nan"), 3.0, 2.0]
    found = replay(values, [1, 1, 2], maximize=True, percent=30, top=None)
    assert (found.candidates, found.evaluated) == (4, 2)
    assert found.tops[0].found == 1
    assert found.tops[0].expected == pytest.approx(2 / 4)
    assert not top_of([float("nan")] * 3, 2, maximize=True).any()
    assert replay([float("nan")] * 3, [0], maximize=True).tops == ()


def test_the_interval_of_a_replay_counts_failures_among_what_random_search_draws() -> None:
    values = [float(n) if n % 2 else math.nan for n in range(16)]
    (top,) = replay(values, range(8), maximize=True, percent=50, top=None).tops
    best = {index for index, value in enumerate(values) if value >= top.threshold}
    found = [len(best.intersection(chosen)) for chosen in itertools.combinations(range(16), 8)]
    assert (top.size, top.expected) == (4, pytest.approx(np.mean(found)))
    for beyond, next_one in ((np.less, top.low), (np.greater, top.high)):
        assert np.mean(beyond(found, next_one)) <= 0.05
        assert np.mean(beyond(found, next_one) | np.equal(found, next_one)) > 0.05


def test_a_replay_is_read_back_from_json() -> None:
    found = replay(np.arange(300.0), [1, 299, 298], maximize=True)
    assert Replay.from_json(found.to_json()) == found
    assert found.to_json()["tops"][0]["share"] == pytest.approx(2 / 3)
