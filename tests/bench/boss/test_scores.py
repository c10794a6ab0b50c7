"""Numbers that runs are judged by."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from seqopt.bench.boss import scores
from seqopt.bench.boss.published import Score


def test_best_so_far_follows_the_direction(make_run) -> None:
    assert scores.best_so_far(make_run("101", "random", 0, [1, 3, 2, 4, 4])).tolist() == [1, 3, 3, 4, 4]
    assert scores.best_so_far(make_run("thesis-60", "random", 0, [-1, -3, -2, -4])).tolist() == [-1, -3, -3, -4]


def test_with_noise_the_best_observed_string_counts_not_the_best_one(make_run) -> None:
    run = make_run("101-noisy", "ssk-ga", 0, [2.5, 1.0, 3.5, 2.0, 9.9], noiseless=[3.0, 9.0, 2.0, 8.0, 5.0])
    assert scores.best_so_far(run).tolist() == [3, 3, 2, 2, 5]


def test_the_recommended_string_is_that_of_the_model(make_run) -> None:
    runs = [
        make_run("101-noisy", "ssk-ga", seed, [0.0, 5.0, 1.0], noiseless=[1.0, 2.0, 7.0], recommended=string)
        for seed, string in enumerate(["s2", "s0"])
    ]
    assert scores.recommended(runs).tolist() == [7, 1]
    assert scores.final(runs).tolist() == [2, 2]


def test_mean_and_standard_error() -> None:
    assert scores.score([1.0, 3.0, 5.0]) == pytest.approx((3.0, 2.0 / np.sqrt(3)))
    assert scores.score([4.0]).mean == 4.0
    assert scores.score([4.0]).text(1) == "4.0"  # one value has no error


def test_differences_are_paired_by_seed(make_run) -> None:
    first = [make_run("101", "ssk-ga", seed, [0, 0, value]) for seed, value in ((0, 5), (1, 7), (2, 9))]
    second = [make_run("101", "random", seed, [0, 0, value]) for seed, value in ((2, 6), (1, 5), (5, 100))]
    assert scores.paired(first, second) == pytest.approx((2.5, 0.5))
    assert scores.paired(first, second[2:]) is None


def test_a_row_is_judged_in_percent() -> None:
    # 9, 9, 9, 8 of 9: mean 97.2, error 2.8; at least 100 - 2 sqrt(2.78^2 + 1).
    verdict = scores.judge("101", np.array([9.0, 9.0, 9.0, 8.0]))
    error = 100 / 9 / 4
    assert verdict.ours == verdict.percent == pytest.approx((100 * 35 / 36, error))
    assert verdict.least == pytest.approx(100 - 2 * np.hypot(error, 1.0))
    assert (verdict.unit, verdict.agrees, verdict.aim, verdict.reaches_aim) == ("%", True, 95.0, True)
    assert not scores.judge("101", np.full(100, 8.0)).agrees
    close = scores.judge("123-disjoint", np.full(100, 8.0))
    assert (close.agrees, close.reaches_aim) == (True, False)


@pytest.mark.parametrize(("counts", "agrees", "reaches_aim"), [([2, 3], True, False), ([2, 2], False, False)])
def test_the_last_row_is_judged_in_occurrences(counts, agrees, reaches_aim) -> None:
    verdict = scores.judge("01xx4", np.array(counts * 50, dtype=float))
    assert verdict.unit == "occurrences"
    assert verdict.ours.mean == np.mean(counts)
    assert verdict.least == pytest.approx(2.7 - 2 * np.hypot(verdict.ours.error, 0.18))
    assert (verdict.agrees, verdict.reaches_aim) == (agrees, reaches_aim)
    assert verdict.percent.mean == pytest.approx(20 * np.mean(counts))


def test_ranks_among_all_genes(make_run) -> None:
    energies = np.array([-3.0, -10.2, -10.2, -9.0, -9.0, -9.0, 0.0])
    late = [0.0] * 50 + [-10.2]  # the 51st evaluation is too late
    runs = [
        make_run("peptide-10", "ssk-ga", seed, values)
        for seed, values in enumerate([[0.0] * 49 + [-10.2, 0.0], late, [-9.0] * 51, [-3.0] * 51])
    ]
    found = scores.among_all(runs, energies)
    assert (found.runs, found.found, found.ranks.tolist()) == (4, 1, [1, 7, 3, 6])


def test_chance_of_random_search_by_enumeration() -> None:
    draws = list(combinations(range(9), 4))
    hit = sum(0 in drawn or 1 in drawn for drawn in draws)
    assert scores.chance(9, 2, 4) == pytest.approx(hit / len(draws))
    assert 1 / scores.chance(55_296, 8, 50) == pytest.approx(140, abs=2)


def test_best_formulas_come_first(make_run) -> None:
    runs = [
        make_run("regression", "ssk-ga", 0, [2.0, 1.0, 3.0], ["x", "x+x", "1"]),
        make_run("regression", "ssk-ga", 1, [0.5, 1.0], ["x+1/3", "x"]),
    ]
    assert list(scores.formulas(runs).items()) == [("x+1/3", 0.5), ("x+x", 1.0)]


def test_published_scores_and_ours_are_of_one_type() -> None:
    assert isinstance(scores.score([1.0]), Score)


def test_a_latent_point_that_decodes_to_nothing_costs_an_evaluation_and_gains_nothing() -> None:
    run = {
        "job": {"task": "regression", "method": "cvae", "seed": 0},
        "initial": ["x"] * 15,
        "chosen": ["1", "2"],
        "values": [5.0] * 15 + [3.0, 4.0],
        "undecodable": [0, 2],
    }
    assert scores.best_so_far(run).tolist() == [5.0] * 16 + [3.0] * 3
