"""`Optimizer.predict`, `.posterior` and `.sample` speak in the user's units, and `Result.recommend` with them."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from seqopt import Optimizer, maximize, minimize
from seqopt.errors import InputError, ModelError
from seqopt.models import StringGP
from seqopt.spaces import CandidateSet
from seqopt.strategies import RandomStrategy

POOL = ["".join(letters) for letters in itertools.product("AB", repeat=5)]
TOLD, NEW = POOL[::2] + POOL[1:24:4], POOL[3::8]
DIRECTIONS = ("maximize", "minimize")


def count(string: str) -> float:
    return float(string.count("AB") + 0.5 * string.count("BB"))


def told(values: Any = None, **options: Any) -> Optimizer:
    optimizer = Optimizer(CandidateSet(POOL, kind="text"), **({"surrogate": "ngrams", "initial": 4} | options))
    optimizer.tell(TOLD, [count(s) for s in TOLD] if values is None else values)
    return optimizer


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("surrogate", ["ngrams", "ssk-bayes"])
def test_what_is_known_without_noise_is_predicted_in_your_units(direction: str, surrogate: str) -> None:
    values = np.array([1000 + 50 * count(s) for s in TOLD])
    optimizer = told(values, direction=direction, surrogate=surrogate)
    mean, std = optimizer.predict(TOLD)
    assert mean.shape == std.shape == (len(TOLD),)
    assert np.abs(mean - values).max() < 10  # the values span 100
    assert np.median(std) < 10
    mean, std = optimizer.predict(NEW)
    assert np.abs(mean - [1000 + 50 * count(s) for s in NEW]).max() < 30
    assert (std > 0).all()


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_values_under_log10_are_predicted_as_values(direction: str) -> None:
    values = np.array([10 ** count(s) for s in TOLD])
    optimizer = told(values, direction=direction, transform="log10")
    mean, std = optimizer.predict(TOLD)
    np.testing.assert_allclose(mean, values, rtol=0.2)
    draws = optimizer.sample(NEW, 20_000, np.random.default_rng(0))
    assert (draws > 0).all()
    mean, std = optimizer.predict(NEW)
    # Draws have the moments of the log-normal distribution that `predict` gives.
    np.testing.assert_allclose(draws.mean(0), mean, rtol=0.05)
    np.testing.assert_allclose(draws.std(0), std, rtol=0.1)
    with pytest.raises(InputError, match=r"under the transform log10 .* take sample"):
        optimizer.posterior(NEW)


def test_to_minimise_is_to_maximise_the_negative() -> None:
    up, down = told(), told([-count(s) for s in TOLD], direction="minimize")
    np.testing.assert_allclose(down.predict(NEW)[0], -up.predict(NEW)[0], rtol=1e-9)
    np.testing.assert_allclose(down.predict(NEW)[1], up.predict(NEW)[1], rtol=1e-9)
    np.testing.assert_allclose(down.posterior(NEW)[0], -up.posterior(NEW)[0], rtol=1e-9)
    np.testing.assert_allclose(down.posterior(NEW)[1], up.posterior(NEW)[1], rtol=1e-9)
    draws = [optimizer.sample(NEW, 5, np.random.default_rng(0)) for optimizer in (up, down)]
    np.testing.assert_allclose(draws[1], -draws[0], rtol=1e-9)


@pytest.mark.parametrize("surrogate", ["ngrams", "ssk-bayes"])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_predictions_posterior_and_draws_agree(direction: str, surrogate: str) -> None:
    rng = np.random.default_rng(0)
    noisy = [7 + 3 * count(s) + rng.normal(0, 0.5) for s in TOLD]
    optimizer = told(noisy, direction=direction, surrogate=surrogate)
    mean, covariance = optimizer.posterior(NEW)
    assert isinstance(mean, np.ndarray)
    assert covariance.shape == (len(NEW), len(NEW))
    predicted, std = optimizer.predict(NEW)
    np.testing.assert_allclose(predicted, mean, rtol=1e-8)
    np.testing.assert_allclose(std, np.sqrt(np.diagonal(covariance)), rtol=1e-6)
    draws = optimizer.sample(NEW, 20_000, np.random.default_rng(1))
    assert draws.shape == (20_000, len(NEW))
    assert (np.abs(draws.mean(0) - mean) < 5 * std / np.sqrt(len(draws))).all()
    # Six standard errors of a covariance of normal variables, and more for the tails of a mixture.
    assert (np.abs(np.cov(draws.T) - covariance) < 12 * np.outer(std, std) / np.sqrt(len(draws))).all()


def test_the_noise_of_a_measurement_is_left_out_and_replicates_lower_the_rest() -> None:
    rng = np.random.default_rng(0)

    def noisy(times: int) -> Optimizer:
        optimizer = Optimizer(CandidateSet(POOL, kind="text"), surrogate="ngrams", initial=4)
        strings = TOLD * times
        optimizer.tell(strings, [10 * count(s) + rng.normal(0, 5) for s in strings])
        return optimizer

    few, many = noisy(1), noisy(12)
    truth = np.array([10 * count(s) for s in TOLD])
    errors = [np.abs(optimizer.predict(TOLD)[0] - truth).mean() for optimizer in (few, many)]
    assert errors[1] < errors[0]
    assert errors[1] < 2
    mean, std = many.predict(TOLD)
    assert (std < 5 / 2).all()  # a measurement has a standard deviation of 5
    assert (np.abs(mean - truth) < 4 * std).all()


def test_predictions_follow_what_is_told_and_leave_no_trace() -> None:
    asked = []
    for looked in (False, True):
        optimizer = told(batch_size=2)
        before = optimizer.predict(NEW)[0] if looked else None
        strings = optimizer.ask()
        if looked:
            state = json.dumps(optimizer.state_dict())
            for _ in range(2):
                optimizer.predict(NEW)
                optimizer.sample(NEW, 3, np.random.default_rng(0))
                optimizer.recommend()
            assert json.dumps(optimizer.state_dict()) == state
        optimizer.tell(strings, [100.0] * len(strings))
        if looked:
            after = optimizer.predict(NEW)[0]
            assert not np.allclose(before, after)
            assert optimizer.predict(strings)[0].max() > 10
        asked.append(optimizer.ask())
    assert asked[0] == asked[1]


@pytest.mark.parametrize("surrogate", ["ngrams", "ssk-bayes"])
def test_a_restored_optimiser_predicts_the_same(surrogate: str) -> None:
    one = told(direction="minimize", surrogate=surrogate, batch_size=3)
    strings = one.ask()
    one.tell(strings, [count(s) for s in strings])
    other = Optimizer(CandidateSet(POOL, kind="text"), surrogate=surrogate, initial=4, direction="minimize")
    other.load_state_dict(json.loads(json.dumps(one.state_dict())))
    for ours, theirs in zip(one.predict(POOL), other.predict(POOL), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_nothing_is_predicted_before_two_values_are_known() -> None:
    optimizer = Optimizer(CandidateSet(POOL, kind="text"), initial=4)
    for known in range(2):
        for ask in (
            lambda: optimizer.predict(POOL),
            lambda: optimizer.posterior(POOL),
            lambda: optimizer.sample(POOL, 2, np.random.default_rng(0)),
            optimizer.recommend,
        ):
            with pytest.raises(ModelError, match=f"{known} values have been told; a model needs two"):
                ask()
        optimizer.tell([POOL[known], POOL[-1 - known]], [1.0, float("nan")])
    optimizer.tell([POOL[5]], [2.0])
    assert optimizer.predict(POOL)[0].shape == (len(POOL),)
    with pytest.raises(ModelError, match="RandomStrategy, which has no surrogate"):
        Optimizer(POOL, strategy=RandomStrategy(), initial=2).predict(POOL)


def test_strings_are_those_of_the_space() -> None:
    molecules = Optimizer(CandidateSet(["OCC", "CCN", "CCC"], kind="molecule"), initial=2)
    molecules.tell(["CCO", "NCC"], [1.0, 2.0])
    mean, _ = molecules.predict(["C(O)C", "OCC", "CCCC"])
    assert mean[0] == mean[1]
    with pytest.raises(InputError, match="'C1CC' is not a valid molecule"):
        molecules.predict(["CCO", "C1CC"])
    with pytest.raises(InputError, match="write \\['CCO'\\]"):
        molecules.predict("CCO")


def test_a_surrogate_without_a_joint_posterior_predicts_all_the_same() -> None:
    class Plain(StringGP):
        posterior = sample = covariance = None  # type: ignore[assignment]

    optimizer = told(surrogate=Plain(restarts=1))
    assert optimizer.predict(NEW)[0].shape == (len(NEW),)
    for ask in (lambda: optimizer.posterior(NEW), lambda: optimizer.sample(NEW, 1, np.random.default_rng(0))):
        with pytest.raises(ModelError, match="Plain has no joint posterior"):
            ask()


@pytest.mark.parametrize("search", [maximize, minimize])
def test_what_is_recommended_is_not_the_luckiest_value(search: Any) -> None:
    sign = 1 if search is maximize else -1
    rng = np.random.default_rng(0)
    known = {"string": TOLD * 5, "value": [sign * (count(s) + rng.normal(0, 0.3)) for s in TOLD * 5]}
    # One lucky value of a string that is bad.
    known["value"][TOLD.index("AAAAA")] = sign * 6.0
    result = search(
        lambda strings: [sign * count(s) for s in strings],
        CandidateSet(POOL, kind="text"),
        known=pd.DataFrame(known),
        initial=4,
        budget=0,
        surrogate="ngrams",
    )
    assert (result.best_string, result.best_value) == ("AAAAA", sign * 6.0)
    found = result.recommend()
    assert count(found.string) == max(map(count, TOLD))
    assert found.values == tuple(v for s, v in zip(known["string"], known["value"], strict=True) if s == found.string)
    assert abs(found.predicted_mean - sign * count(found.string)) < 0.5
    assert 0 < found.predicted_std < 0.5
    # It is the string of the best prediction, among those measured.
    assert sign * found.predicted_mean == pytest.approx((sign * result.optimizer.predict(TOLD)[0]).max())
    assert "AAAAA" not in repr(found)


def test_nothing_is_recommended_where_too_little_is_known() -> None:
    pool = CandidateSet(["a", "b"], kind="text")
    result = maximize(lambda strings: [1.0 if s == "a" else float("nan") for s in strings], pool, initial=2, budget=0)
    with pytest.raises(ModelError, match="1 values have been told"):
        result.recommend()
