"""Results that are yes or no: words, shares of wells, probabilities, and whether these hold."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats
from scipy.special import expit

from seqopt.data import Data, Observation, Outcome, Predictions, YesNo, probability_moments, resolve_transform
from seqopt.data.hits import HitCalibration, Tried, hits_missed, tail_probabilities
from seqopt.data.yes_no import read_answer, told_answer
from seqopt.errors import InputError


@pytest.mark.parametrize(("mean", "std"), [(0.0, 1.0), (-5.0, 3.0), (2.0, 8.0), (-30.0, 0.1), (-3.0, 20.0), (1.0, 0.0)])
def test_moments_of_a_probability_are_integrals(mean: float, std: float) -> None:
    def integral(power: int) -> float:
        return integrate.quad(
            lambda z: expit(mean + std * z) ** power * stats.norm.pdf(z), -12, 12, epsabs=1e-13, limit=500
        )[0]

    first, spread = probability_moments([mean], [std])
    assert first[0] == pytest.approx(integral(1), abs=1e-9)
    assert spread[0] ** 2 == pytest.approx(integral(2) - integral(1) ** 2, abs=1e-8)


def test_moments_of_many_do_not_depend_on_each_other() -> None:
    rng = np.random.default_rng(0)
    means, stds = rng.normal(0, 3, 50), rng.exponential(2, 50)
    together = probability_moments(means, stds)
    for index in range(50):
        alone = probability_moments(means[index : index + 1], stds[index : index + 1])
        assert together[0][index] == pytest.approx(alone[0][0], abs=1e-9)
        assert together[1][index] == pytest.approx(alone[1][0], abs=1e-9)


def test_a_label_has_the_sign_of_what_is_wanted() -> None:
    wanted, unwanted = (Outcome("hit", direction, transform="yes/no") for direction in ("maximize", "minimize"))
    assert (wanted.target(1.0), wanted.target(0.25)) == (1.0, -0.5)
    assert (unwanted.target(1.0), unwanted.target(0.25)) == (-1.0, 0.5)
    assert wanted.yes_no
    assert not Outcome("pIC50").yes_no


def test_a_constraint_is_no_yes_no_result() -> None:
    with pytest.raises(InputError, match="which only an objective may have"):
        Outcome("toxic", role="constraint", bound=0.5, transform="yes/no")


@pytest.mark.parametrize("value", [-0.1, 1.1, 6.4, math.nan])
def test_a_number_is_no_yes_no_result(value: float) -> None:
    with pytest.raises(InputError, match="not a yes/no result"):
        YesNo().forward(value)


def test_the_transform_goes_by_its_name() -> None:
    assert isinstance(resolve_transform("yes/no"), YesNo)


@given(st.floats(-5, 5), st.floats(0, 4))
def test_predictions_are_probabilities_within_their_intervals(mean: float, std: float) -> None:
    for sign in (1.0, -1.0):
        found = Predictions.of([mean], [std], [std], YesNo(), sign)
        low, high = sorted((found.low[0], found.high[0]))
        assert low - 1e-12 <= found.central[0] <= high + 1e-12
        assert high <= 1.0
        assert found.central[0] == pytest.approx(probability_moments([sign * mean], [std])[0][0], abs=1e-9)


def test_wells_are_columns_of_the_data() -> None:
    outcome = Outcome("hit", transform="yes/no")
    rows = [
        Observation("A", "A", "ok", (0.375,), trials=8),
        Observation("B", "B", "failed"),
        Observation("C", "C", "ok", (1.0,)),
    ]
    measured = Data.of(rows, (outcome,)).measured()
    assert measured.items == ["A", "C"]
    assert measured.targets.tolist() == [-0.25, 1.0]
    assert measured.trials is not None
    assert measured.trials.tolist() == [8, 1]
    assert Data.of(rows[1:], (outcome,)).measured().trials is None


@pytest.mark.parametrize(
    ("text", "share"),
    [
        *(("hit", 1.0), ("Active", 1.0), (" TRUE", 1.0), ("1.0", 1.0), ("no  hit", 0.0), ("NO_HIT", 0.0), ("0", 0.0)),
        *(("inactive", 0.0), ("false", 0.0), ("n", 0.0), ("inconclusive", None), ("Ambiguous", None)),
    ],
)
def test_words(text: str, share: float | None) -> None:
    assert read_answer(text) == (share, 1)


@pytest.mark.parametrize(
    ("text", "wells", "what"),
    [
        ("maybe", None, "is not a yes/no result"),
        ("nan", None, "is not a yes/no result"),
        ("", None, "is not a yes/no result"),
        ("6.4", None, "is a number"),
        ("0.5", None, "is a number"),
        ("2", None, "is a number"),
        ("9", 8, "more hits"),
        ("9 of 8", None, "more hits"),
        ("0/0", None, "no well"),
        ("-1", 8, "whole number from 0 to 8"),
        ("1.5", 8, "whole number from 0 to 8"),
        ("hit", 8, "does not say how many"),
        ("3 of 8", 9, "keep one of them"),
        ("hit", 0, "at least one"),
    ],
)
def test_what_is_no_result_is_refused(text: str, wells: int | None, what: str) -> None:
    with pytest.raises(InputError, match=what):
        read_answer(text, wells)


@given(st.integers(1, 400), st.data())
def test_words_are_read_back(wells: int, data: st.DataObject) -> None:
    hits = data.draw(st.integers(0, wells))
    assert read_answer(told_answer(hits / wells, wells)) == (hits / wells, wells)


def test_tails_are_those_of_the_binomial_distribution() -> None:
    fewer, more = tail_probabilities([0.3] * 20, 4)
    assert fewer == pytest.approx(stats.binom.cdf(4, 20, 0.3))
    assert more == pytest.approx(stats.binom.sf(3, 20, 0.3))


def test_probabilities_that_are_right_are_called_right_nineteen_times_in_twenty() -> None:
    rng = np.random.default_rng(0)
    verdicts = []
    for _ in range(400):
        told = rng.uniform(0.05, 0.9, 40)
        hits = rng.random(40) < told
        verdicts.append(
            HitCalibration.of([Tried(1, p, float(y)) for p, y in zip(told, hits, strict=True)]).verdict() != ""
        )
    assert np.mean(verdicts) < 0.13  # two tests at five percent


def test_probabilities_that_are_wrong_are_called_so() -> None:
    # As many hits as were told, in every tenth.
    true = np.repeat(np.arange(0.05, 1.0, 0.1), 20)
    hits = np.tile(np.arange(20), 10) < np.round(20 * true)

    def verdict(told: np.ndarray) -> str:
        return HitCalibration.of([Tried(1, p, float(y)) for p, y in zip(told, hits, strict=True)]).verdict()

    assert verdict(true) == ""
    assert verdict(0.7 * true) == "hits are more frequent than was told"
    assert verdict(true**0.6) == "hits are rarer than was told"
    # Symmetric about one half, so that as many hits are expected as come.
    assert verdict(expit(4 * np.log(true / (1 - true)))) == "the probabilities are too far from one half"
    assert verdict(expit(0.2 * np.log(true / (1 - true)))) == "the probabilities are too cautious"


def test_a_batch_without_the_hits_that_were_told_is_named() -> None:
    assert "0 hits among 8 results, fewer than the 4 expected" in hits_missed([Tried(2, 0.5, 0.0)] * 8)
    assert hits_missed([Tried(2, 0.5, 0.0)] * 3) == ""  # too few to tell
    assert hits_missed([Tried(1, 0.5, 0.0)] * 8 + [Tried(2, 0.5, 1.0)] * 3 + [Tried(2, 0.5, 0.0)] * 3) == ""


def test_the_statistic_of_squared_errors_has_mean_0_and_variance_1_over_all_results() -> None:
    told = [0.05, 0.2, 0.35, 0.7, 0.9]
    mean = variance = 0.0
    for hits in itertools.product([0.0, 1.0], repeat=len(told)):
        weight = math.prod(p if y else 1 - p for p, y in zip(told, hits, strict=True))
        found = HitCalibration.of([Tried(1, p, y) for p, y in zip(told, hits, strict=True)])
        mean += weight * found.z
        variance += weight * found.z**2
    assert mean == pytest.approx(0.0, abs=1e-12)
    assert variance == pytest.approx(1.0, rel=1e-12)
    # More wells of one string have another variance.
    assert math.isnan(HitCalibration.of([Tried(1, 0.3, 0.5, 4)]).z)
