"""A confirmation from asking to deciding, and what is said of it."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from seqopt.errors import InputError
from seqopt.strategies.arms import (
    ArmPosterior,
    BayesGap,
    Confirmation,
    EqualReplication,
    forecast,
    probability_best,
)
from seqopt.strategies.arms.decision import simulate

ARMS = ["AAA", "AAC", "ACC", "CCC"]
COVARIANCE = 0.5 * np.eye(4) + 0.5
TRUTH = {"AAA": 0.0, "AAC": 1.0, "ACC": 0.6, "CCC": -1.0}


def made(**options) -> Confirmation:
    given = {"wells": 40, "batch": 10, "seed": 3} | options
    return Confirmation(ARMS, [0.1, 0.0, 0.2, 0.0], COVARIANCE, 0.25, **given)


def lab(arms: list[str], seed: int, sign: float = 1.0) -> list[float]:
    rng = np.random.default_rng(seed)
    return [sign * (TRUTH[arm] + 0.5 * float(rng.standard_normal())) for arm in arms]


def test_probabilities_of_three_arms_are_those_of_the_normal_distribution() -> None:
    mean, covariance = np.array([0.3, 0.0, -0.2]), np.array([[1.0, 0.6, 0.1], [0.6, 1.0, 0.2], [0.1, 0.2, 0.5]])
    expected = []
    for arm in range(3):
        contrast = np.delete(np.eye(3)[arm] - np.eye(3), arm, axis=0)
        between = multivariate_normal(np.zeros(2), contrast @ covariance @ contrast.T)
        expected.append(float(between.cdf(contrast @ mean)))
    found = probability_best(ArmPosterior.of(mean, covariance, 1.0), np.random.default_rng(0))
    np.testing.assert_allclose(found, expected, atol=0.006)
    assert found.sum() == pytest.approx(1.0)


def test_a_tolerance_makes_more_arms_right() -> None:
    posterior = ArmPosterior.of([0.3, 0.0], np.eye(2), 1.0)
    found = probability_best(posterior, np.random.default_rng(0), tolerance=0.5)
    np.testing.assert_allclose(found, norm.cdf(np.array([0.8, 0.2]) / math.sqrt(2)), atol=0.006)


def test_the_probability_is_how_often_it_is_right() -> None:
    """Truths from the prior: over many confirmations, the stated probabilities sum to the number of right answers."""
    rng = np.random.default_rng(0)
    stated, right = [], []
    for seed in range(30):
        truth = dict(zip(ARMS, rng.multivariate_normal(np.zeros(4), COVARIANCE), strict=True))
        found = Confirmation(ARMS, np.zeros(4), COVARIANCE, 0.25, wells=12, batch=4, seed=seed)
        while arms := found.ask():
            found.tell(arms, [truth[arm] + 0.5 * rng.standard_normal() for arm in arms])
        standing = found.standing()
        stated.append(standing.probability)
        right.append(standing.best == max(truth, key=truth.__getitem__))
    error = math.sqrt(sum(p * (1 - p) for p in stated))
    assert abs(sum(stated) - sum(right)) < 3 * error


def test_forecast_of_two_arms_is_the_closed_form() -> None:
    """Two independent arms, equal replication: after n wells each the posterior difference has a known spread."""
    posterior = ArmPosterior.of([0.0, 0.0], np.eye(2), 1.0)
    found = forecast(
        posterior, EqualReplication(), target=0.999, limit=40, batch=4, rng=np.random.default_rng(0), futures=4000
    )
    for wells, chance in zip(found.wells[1:], found.probability[1:], strict=True):
        each = wells / 2
        correlation = math.sqrt(each / (each + 1.0))  # of the difference and its posterior mean
        assert chance == pytest.approx(0.5 + math.asin(correlation) / math.pi, abs=0.03)


def test_forecast_says_how_many_wells_are_needed() -> None:
    posterior = ArmPosterior.of([0.5, 0.0], 0.2 * np.eye(2), 0.1)
    found = forecast(posterior, BayesGap(), target=0.95, limit=100, batch=10, rng=np.random.default_rng(0))
    assert found.needed is not None
    assert found.decided[found.wells.index(found.needed)] >= 0.5
    assert all(share < 0.5 for wells, share in zip(found.wells, found.decided, strict=True) if wells < found.needed)
    assert list(found.decided) == sorted(found.decided)
    sure = forecast(posterior, BayesGap(), target=0.7, limit=100, batch=10, rng=np.random.default_rng(0), now=0.8)
    assert sure.needed == 0


def test_forecasts_are_of_searches_that_stop() -> None:
    """How long confirmations take that are carried out, one by one, with truths from the posterior."""
    mean, covariance, noise = np.array([1.0, 0.9]), 0.1**2 * np.eye(2), 0.3**2
    start = Confirmation(["A", "B"], mean, covariance, noise, wells=192, batch=6, seed=1)
    found = start.forecast(192)
    rng = np.random.default_rng(5)
    took = []
    for seed in range(60):
        truth = dict(zip("AB", rng.multivariate_normal(mean, covariance), strict=True))
        one = Confirmation(["A", "B"], mean, covariance, noise, wells=192, batch=6, seed=seed)
        while not one.standing().decided and (arms := one.ask()):
            one.tell(arms, [truth[arm] + 0.3 * rng.standard_normal() for arm in arms])
        took.append(one.standing().used if one.standing().decided else math.inf)
    for wells in (24, 48, 96, 192):
        share = float(np.mean(np.array(took) <= wells))
        assert found.decided[found.wells.index(wells)] == pytest.approx(share, abs=0.2)
    # Long before the probability is 95 % in the mean.
    assert found.needed is not None
    assert found.probability[found.wells.index(found.needed)] < 0.93


@pytest.mark.parametrize("kind", ["decay", "theory"])
def test_a_forecast_goes_on_as_one_confirmation_would(kind: str) -> None:
    """Rules that know how far they are do not begin again while it looks ahead."""
    mean, rule, futures = np.array([0.3, 0.1, 0.0, -0.1, -0.2, 0.2]), BayesGap(kind, 5.0), 600
    covariance = 0.5 * np.eye(6)
    posterior = ArmPosterior.of(mean, covariance, 1.0)
    found = forecast(posterior, rule, target=0.95, limit=192, batch=6, rng=np.random.default_rng(7), futures=futures)
    rng = np.random.default_rng(8)
    truth, rows = rng.multivariate_normal(mean, covariance, futures), np.arange(futures)
    stopped, decided = np.zeros(futures, dtype=bool), [0.0]

    def measure(arms: np.ndarray, times: np.ndarray) -> np.ndarray:
        return truth[rows, arms] + rng.standard_normal(futures)

    def note(posterior: ArmPosterior) -> None:
        named = posterior.draws(512, rng).argmax(2) == posterior.mean.argmax(1)
        stopped[:] |= named.mean(0) >= 0.95
        decided.append(float(stopped.mean()))

    simulate(posterior.repeated(futures), rule, measure, wells=192, batch=6, rng=rng, after=note)
    for wells in (48, 96, 192):
        # Where the rule began again each time, 10 % and more of the continuations were decided too early.
        assert found.decided[found.wells.index(wells)] == pytest.approx(decided[wells // 6], abs=0.08)


def test_a_forecast_begins_where_the_rule_stands() -> None:
    seen: list[tuple[int, int, int]] = []

    class Noted(EqualReplication):
        def choose(self, posterior, situation, rng):
            seen.append((situation.wells, situation.used, situation.batch))
            np.testing.assert_array_equal(situation.prior_variance, 1.0)
            return super().choose(posterior, situation, rng)

    found = made(rule=Noted())
    arms = found.ask()
    found.tell(arms[:4], lab(arms[:4], 0))
    seen.clear()
    found.forecast(50)
    # Six wells of the first batch are awaited; from the 41st on there are more than were planned.
    assert seen[0] == (40, 4, 0)
    assert seen[10] == (40, 14, 1)
    assert seen[-1][0] == 54


def test_values_of_which_only_the_number_is_known_are_left_out_of_averages() -> None:
    start = ArmPosterior.of(np.zeros(3), np.eye(3), 0.25, counts=[1, 1, 1])
    told = start.given(np.array([1]), np.array([2.0]))
    np.testing.assert_array_equal(told.averages, [[np.nan, 2.0, np.nan]])
    np.testing.assert_array_equal(told.counts, [[1, 2, 1]])
    rule = Confirmation(["A", "B", "C"], np.zeros(3), np.eye(3), 0.25, counts=[1, 1, 1], rule="ugap", wells=60, batch=6)
    rng = np.random.default_rng(0)
    while arms := rule.ask():
        rule.tell(arms, [{"A": 1.0, "B": 0.0, "C": 0.8}[arm] + 0.5 * rng.standard_normal() for arm in arms])
    wells = rule.posterior.counts[0]
    assert wells[1] < min(wells[0], wells[2])  # the worst is told apart soon


def test_what_plates_share_makes_forecasts_longer() -> None:
    needed = []
    for plate in (None, np.full((2, 2), 9.0), 9.0 + 0.5 * np.eye(2)):
        start = ArmPosterior.of([0.4, 0.0], 0.1 * np.eye(2), 0.25, plate=plate)
        rng = np.random.default_rng(0)
        found = forecast(start, BayesGap(), target=0.95, limit=200, batch=8, rng=rng, futures=400)
        needed.append(found.needed or math.inf)
    # An offset of all wells cancels; what a plate does to each string alone is averaged over plates only.
    assert abs(needed[1] - needed[0]) <= 16
    assert needed[2] > 1.5 * needed[0]


def test_it_finds_the_best_and_says_when_it_is_decided() -> None:
    found = made(wells=60, batch=15)
    assert not found.standing().finished
    asked = 0
    while (arms := found.ask()) and not found.standing().decided:
        asked += len(arms)
        found.tell(arms, lab(arms, asked))
    standing = found.standing()
    assert standing.best == "AAC"
    assert standing.decided
    assert standing.used == asked
    assert sum(standing.probabilities.values()) == pytest.approx(1.0)
    # What is clearly worse is measured less.
    counts = found.posterior.counts[0]
    assert counts[3] < counts[1]


def test_asking_again_gives_what_is_left() -> None:
    found = made()
    first = found.ask()
    assert len(first) == 10
    assert found.ask() == first
    found.tell(first[:3], [0.0, 0.1, 0.2])
    assert found.ask() == first[3:]
    found.withdraw()
    assert len(found.ask()) == 10
    assert found.used == 3


def test_no_more_is_asked_than_there_are_wells() -> None:
    found = made(wells=25)
    sizes = []
    while arms := found.ask():
        sizes.append(len(arms))
        found.tell(arms, lab(arms, 0))
    assert sizes == [10, 10, 5]
    assert found.standing().finished


@pytest.mark.parametrize("rule", ["bayes-gap", "top-two", "bayes-gap-decay"])
@pytest.mark.parametrize("plate", [None, 0.3 * COVARIANCE + 0.2])
def test_a_state_as_json_goes_on_as_if_nothing_had_happened(rule: str, plate: np.ndarray | None) -> None:
    found, other = made(rule=rule, plate=plate), made(rule=rule, plate=plate)
    first = found.ask()
    found.tell(first, lab(first, 0))
    second = found.ask()
    found.tell(second[:4], lab(second[:4], 1))
    other.load_state_dict(json.loads(json.dumps(found.state_dict())))
    assert other.ask() == found.ask() == second[4:]
    for one in (found, other):
        one.tell(second[4:], lab(second[4:], 2))
    np.testing.assert_allclose(other.posterior.mean, found.posterior.mean)
    assert other.ask() == found.ask()
    assert other.standing() == found.standing()


def test_minimising_is_maximising_the_opposite() -> None:
    up = Confirmation(ARMS, [0.1, 0.0, 0.2, 0.0], COVARIANCE, 0.25, wells=20)
    down = Confirmation(ARMS, [-0.1, 0.0, -0.2, 0.0], COVARIANCE, 0.25, wells=20, direction="minimize")
    arms = up.ask()
    assert down.ask() == arms
    up.tell(arms, lab(arms, 0))
    down.tell(arms, lab(arms, 0, -1.0))
    assert down.standing().best == up.standing().best
    assert down.standing().mean["AAC"] == pytest.approx(-up.standing().mean["AAC"])


def test_known_errors_count() -> None:
    exact, rough = made(), made()
    for found, noise in ((exact, 1e-6), (rough, 4.0)):
        found.tell(["AAC"], [2.0], [noise])
    assert exact.standing().std["AAC"] < 0.01 < rough.standing().std["AAC"]
    assert exact.posterior.noise[0].tolist() == [0.25] * 4


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"arms": ["AAA"], "mean": [0.0], "covariance": [[1.0]]}, "there is 1 arm"),
        ({"arms": ["AAA", "AAA"], "mean": [0.0, 0.0], "covariance": np.eye(2)}, "'AAA' is there twice"),
        ({"arms": "AAA"}, "expected a list of strings"),
        ({"mean": [0.0]}, "expected one number for each of 4 arms"),
        ({"wells": 0}, "wells"),
        ({"target": 1.0}, "target is 1.0"),
        ({"direction": "up"}, "choose maximize or minimize"),
        ({"rule": "luck"}, "there is no rule 'luck'"),
        ({"tolerance": -1.0}, "tolerance"),
    ],
)
def test_what_cannot_be_confirmed_is_refused(given: dict[str, object], message: str) -> None:
    usual = {"arms": ARMS, "mean": np.zeros(4), "covariance": COVARIANCE, "noise_variance": 0.25, "wells": 10}
    with pytest.raises(InputError, match=message):
        Confirmation(**(usual | given))


@pytest.mark.parametrize(
    ("arms", "values", "message"),
    [
        (["AAG"], [1.0], "'AAG' is none of the 4 arms"),
        (["AAA", "AAC"], [1.0], "1 values for 2 measurements"),
        (["AAA", "AAC"], [1.0, math.nan], "value 2, of 'AAC', is nan"),
    ],
)
def test_results_that_do_not_fit_are_refused_and_nothing_is_told(arms, values, message: str) -> None:
    found = made()
    with pytest.raises(InputError, match=message):
        found.tell(arms, values)
    assert found.used == 0
