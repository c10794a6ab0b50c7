"""Rules that choose arms: worked values, invariants of BayesGap, its traps, and the baselines."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqopt.errors import InputError
from seqopt.strategies.arms import (
    RULES,
    UCBE,
    ArmPosterior,
    BayesGap,
    EqualReplication,
    Situation,
    TopTwoThompson,
    UGap,
    resolve_rule,
    simulate,
)
from seqopt.strategies.arms.rules import bounded_gaps, closest_rival, hardness_of

RNG = np.random.default_rng(0)


def smooth(count: int, length: float, times: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Covariance on a grid of [0, 1], and draws of its process."""
    x = np.linspace(0, 1, count)
    covariance = np.exp(-0.5 * ((x[:, None] - x) / length) ** 2)
    values, vectors = np.linalg.eigh(covariance)
    return covariance, rng.standard_normal((times, count)) @ (vectors * np.sqrt(np.maximum(values, 0))).T


def measured(truth: np.ndarray, deviation: float, rng: np.random.Generator):
    rows = np.arange(len(truth))
    return lambda arms, times: truth[rows, arms] + deviation * rng.standard_normal(len(truth))


def test_the_worked_step_of_bayes_gap() -> None:
    posterior = ArmPosterior.of([1.05, 0.575, -0.5], np.diag(np.array([0.15, 0.575, 1.5]) ** 2), 0.25)
    found = BayesGap("fixed", 1.0).gaps(posterior, np.ones(1))
    np.testing.assert_allclose(found.gap[0], [0.25, 1.20, 3.20])
    # The largest mean and the largest upper bound are the first arm's, the largest variance the third's.
    assert (found.leader[0], found.challenger[0], found.arm[0]) == (0, 1, 1)


def test_the_worked_width() -> None:
    np.testing.assert_allclose(hardness_of(np.array([[0.5, 0.5, 1.0]]), 0.1), [25.5280], atol=1e-4)
    squared = ((30 - 3) / 0.25 + 3 / 1.0) / (4 * 25.5280)
    assert squared == pytest.approx(1.08704, abs=1e-4)
    # As many measurements as the theory counts on: g_k^-1 of all arms sum to T - K.
    inverse = [4 * squared * 0.25 / h**2 - 0.25 for h in (0.3, 0.3, 0.55)]
    assert sum(inverse) == pytest.approx(27, abs=1e-3)


def test_the_width_by_theory_is_the_formula_at_the_bounded_gaps() -> None:
    posterior = ArmPosterior.of([1.0, 0.5, 0.0], np.eye(3), 0.25)
    situation = Situation(30, 0, 0, posterior.variance)
    hardness = hardness_of(bounded_gaps(posterior), 0.1)[0]
    expected = math.sqrt((27 / 0.25 + 3) / (4 * hardness))
    assert BayesGap("theory", tolerance=0.1).width(posterior, situation)[0] == pytest.approx(expected)
    # Intervals of three deviations: the first arm may be 1 - 3 - (0.5 + 3) worse, or 1 + 3 - (0 - 3)... better.
    np.testing.assert_allclose(bounded_gaps(posterior)[0], [5.5 + 1.0, 6.5, 7.0])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 7), st.floats(0.1, 4.0))
def test_invariants_of_each_round(seed: int, arms: int, beta: float) -> None:
    """Lemma B2 and corollary B2 of the thesis, along a run."""
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((arms, arms))
    posterior = ArmPosterior.of(rng.standard_normal(arms), root @ root.T / arms + 1e-6 * np.eye(arms), 0.3)
    rule = BayesGap("fixed", beta)
    for _ in range(5):
        found = rule.gaps(posterior, np.full(1, beta))
        leader, challenger, arm = int(found.leader[0]), int(found.challenger[0]), int(found.arm[0])
        lower, upper, gap = found.lower[0], found.upper[0], found.gap[0]
        if arm == challenger:
            assert lower[challenger] <= lower[leader] + 1e-9
        else:
            assert upper[challenger] <= upper[leader] + 1e-9
        assert gap[leader] <= (upper - lower)[arm] + 1e-9
        assert gap[leader] == pytest.approx(np.delete(upper, leader).max() - lower[leader])
        posterior = posterior.given(np.array([arm]), rng.standard_normal(1))


def test_independent_arms_have_the_bounds_of_the_theory() -> None:
    """s_k = g_k(N_k) = 2 beta sqrt(noise v / (noise / s + N v)), v = 1 and s the prior variance."""
    noise, prior, beta = 0.25, 2.0, 1.5
    posterior = ArmPosterior.of(np.zeros(3), prior * np.eye(3), noise)
    for arm in (0, 0, 1):
        posterior = posterior.given(np.array([arm]), np.array([1.0]))
    found = BayesGap("fixed", beta).gaps(posterior, np.full(1, beta))
    expected = [2 * beta * math.sqrt(noise / (noise / prior + count)) for count in (2, 1, 0)]
    np.testing.assert_allclose((found.upper - found.lower)[0], expected)


def test_theory_finds_an_arm_within_its_tolerance() -> None:
    """Theorem 1 at T = 1000 fails with a probability of 0.0126 at most, by the width at the true gaps."""
    truth, noise, tolerance = np.array([1.0, 0.5, 0.4, 0.2, 0.0]), 0.25, 0.1
    gaps = np.array([0.5, 0.5, 0.6, 0.8, 1.0])
    beta = math.sqrt(((1000 - 5) / noise + 5) / (4 * hardness_of(gaps[None], tolerance)[0]))
    assert beta == pytest.approx(5.0784, abs=1e-4)
    assert 5 * 1000 * math.exp(-(beta**2) / 2) == pytest.approx(0.01255, abs=1e-4)
    runs = 100
    posterior = ArmPosterior.of(np.zeros((runs, 5)), np.eye(5), noise)
    measure = measured(np.tile(truth, (runs, 1)), 0.5, np.random.default_rng(0))
    found = simulate(posterior, BayesGap("fixed", beta), measure, wells=1000, batch=1000, rng=RNG)
    regret = 1.0 - truth[found.recommended[-1]]
    assert (regret > tolerance).mean() <= 0.05


def test_fewer_wells_than_arms_use_another_width_and_say_so() -> None:
    posterior = ArmPosterior.of(np.zeros(100), np.eye(100), 0.25)
    situation = Situation(60, 0, 0, posterior.variance)
    rule = BayesGap("theory", 2.0)
    assert rule._squared(posterior, situation)[0] < 0
    assert rule.width(posterior, situation).tolist() == [2.0]
    assert "60 wells for 100 arms are too few" in rule.remark(posterior, situation)
    assert not BayesGap("fixed").remark(posterior, situation)
    enough = Situation(400, 0, 0, posterior.variance)
    assert not rule.remark(posterior, enough)
    assert rule.width(posterior, enough)[0] != 2.0


def test_a_clear_leader_keeps_a_positive_width() -> None:
    """Without the second term of the bounds, H is infinite and beta 0 from round 4 on."""
    truth = np.array([[3.0, 0.0, 0.0]])
    posterior, rule, rng = ArmPosterior.of(np.zeros(3), 4 * np.eye(3), 0.01), BayesGap("theory"), RNG
    prior = posterior.variance
    for round_ in range(30):
        situation = Situation(30, round_, 0, prior)
        width = rule.width(posterior, situation)
        assert np.isfinite(width).all()
        assert (width > 0.5).all()
        arm = rule.choose(posterior, situation, rng)
        posterior = posterior.given(arm, truth[0, arm] + 0.1 * rng.standard_normal(1))
    assert posterior.mean.argmax() == 0
    assert posterior.counts[0].min() >= 1


def test_without_noise_what_is_known_is_not_measured_again() -> None:
    posterior = ArmPosterior.of([0.0, 0.1, 0.2, 0.3], np.eye(4), 0.0)
    rule = BayesGap("theory")
    prior = posterior.variance
    assert "no noise" in rule.remark(posterior, Situation(8, 0, 0, prior))
    for used in range(4):
        arm = rule.choose(posterior, Situation(8, used, 0, prior), RNG)
        posterior = posterior.given(arm, np.array([-1.0]))
    assert posterior.counts[0].tolist() == [1, 1, 1, 1]


def test_decay_narrows_intervals_with_each_batch() -> None:
    posterior = ArmPosterior.of(np.zeros(3), np.eye(3), 0.25)
    rule = BayesGap("decay", 5.0, decay=0.5)
    widths = [rule.width(posterior, Situation(30, 10 * batch, batch, posterior.variance))[0] for batch in range(3)]
    assert widths == [5.0, 2.5, 1.25]


def test_arms_that_are_alike_share_what_is_measured() -> None:
    """K = 100, T = 60: less than half the regret that independent arms of the same prior variance have."""
    covariance, truth = smooth(100, 0.05, 40, np.random.default_rng(1))
    regrets = []
    for known in (covariance, np.eye(100)):
        posterior = ArmPosterior.of(np.zeros((40, 100)), known, 0.25)
        measure = measured(truth, 0.5, np.random.default_rng(2))
        found = simulate(posterior, BayesGap("fixed", 2.0), measure, wells=60, batch=1, rng=RNG)
        regrets.append((truth.max(1) - truth[np.arange(40), found.recommended[-1]]).mean())
    assert regrets[0] < 0.5 * regrets[1]


def test_choices_follow_the_arms_wherever_they_stand() -> None:
    covariance, truth = smooth(12, 0.2, 1, np.random.default_rng(3))
    order = np.random.default_rng(4).permutation(12)
    counts = np.arange(1, 13)
    covariance = covariance * np.sqrt(np.outer(counts, counts))  # no ties, which go to the lower index
    for name in ("bayes-gap", "bayes-gap-theory", "bayes-gap-decay", "ugap", "ucb-e", "equal"):
        rule = resolve_rule(name)
        chosen = []
        for places in (np.arange(12), order):
            posterior = ArmPosterior.of(
                truth[0][places], covariance[np.ix_(places, places)], 0.1, counts=counts[places],
                averages=truth[0][places] + 0.01 * places,
            )  # fmt: skip
            found = rule.choose(posterior, Situation(30, 0, 0, posterior.variance), RNG)
            chosen.append(int(places[found[0]]))
        assert chosen[0] == chosen[1], name


def test_ugap_spends_more_on_close_arms_and_knows_nothing_of_the_model() -> None:
    truth = np.tile([1.0, 0.9, 0.0, -1.0], (200, 1))
    kernel = np.eye(4)
    spent = []
    for model in (kernel, 0.5 + 0.5 * kernel):
        posterior = ArmPosterior.of(np.zeros((200, 4)), model, 0.25)
        found = simulate(posterior, UGap(), measured(truth, 0.5, np.random.default_rng(0)), wells=80, batch=1, rng=RNG)
        counts = found.posterior.counts.mean(0)
        assert counts[:2].min() > 2 * counts[2:].max()
        spent.append(counts)
    np.testing.assert_array_equal(*spent)


def test_ucb_e_explores_by_how_hard_the_problem_is() -> None:
    posterior = ArmPosterior.of(np.zeros(3), np.eye(3), 1.0, counts=[4, 4, 1], averages=[1.0, 0.5, 0.0])
    situation = Situation(27, 0, 0, posterior.variance)
    a = 25 / 36 * (27 + 9 - 3) / (0.5**-2 + 0.5**-2 + 1.0**-2)
    index = np.array([1.0, 0.5, 0.0]) + np.sqrt(a / np.array([4, 4, 1]))
    assert UCBE().choose(posterior, situation, RNG)[0] == index.argmax()


@pytest.mark.parametrize("name", ["ugap", "ucb-e"])
def test_rules_without_a_model_measure_each_arm_first(name: str) -> None:
    posterior = ArmPosterior.of(np.zeros(5), np.eye(5), 0.25)
    rule = resolve_rule(name)
    for used in range(5):
        arm = rule.choose(posterior, Situation(20, used, 0, np.ones((1, 5))), RNG)
        posterior = posterior.given(arm, np.array([1.0]))
    assert posterior.counts[0].tolist() == [1] * 5
    fresh = ArmPosterior.of(np.zeros(5), np.eye(5), 0.25)
    assert "5 arms were never measured and only 3 wells" in rule.remark(fresh, Situation(3, 0, 0, np.ones((1, 5))))


def test_equal_replication_differs_by_one_at_most() -> None:
    posterior = ArmPosterior.of(np.zeros((3, 7)), np.eye(7), 0.25)
    measure = measured(np.zeros((3, 7)), 1.0, RNG)
    found = simulate(posterior, EqualReplication(), measure, wells=24, batch=5, rng=RNG).posterior.counts
    assert found.sum(1).tolist() == [24] * 3
    assert (np.ptp(found, axis=1) <= 1).all()


def test_top_two_measures_the_best_of_draws_and_its_rivals() -> None:
    posterior = ArmPosterior.of(np.tile([0.0, 0.5], (20_000, 1)), np.diag([1.0, 0.25]), 0.25)
    arms = TopTwoThompson().choose(posterior, Situation(9, 0, 0, posterior.variance), np.random.default_rng(0))
    assert arms.mean() == pytest.approx(0.5, abs=0.02)  # of two arms each is leader or rival
    often = TopTwoThompson(0.999).choose(posterior, Situation(9, 0, 0, posterior.variance), np.random.default_rng(0))
    assert (often == 0).mean() == pytest.approx(0.32736, abs=0.015)  # Phi(-0.5 / sqrt(1.25))


def test_where_no_draw_has_another_best_arm_the_closest_rival_is_measured() -> None:
    posterior = ArmPosterior.of(np.tile([0.0, 50.0, 30.0, 20.0], (500, 1)), np.diag([1.0, 1.0, 0.01, 100.0]), 0.25)
    assert closest_rival(posterior, np.full(500, 1))[0] == 3
    arms = TopTwoThompson().choose(posterior, Situation(9, 0, 0, posterior.variance), np.random.default_rng(0))
    assert set(arms.tolist()) == {1, 3}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BayesGap("other"), "mode of beta"),  # type: ignore[arg-type]
        (lambda: BayesGap("fixed", -1.0), "beta is -1"),
        (lambda: BayesGap("decay", decay=0.0), "decay is 0"),
        (lambda: BayesGap(tolerance=-0.1), "tolerance is -0.1"),
        (lambda: TopTwoThompson(1.0), "share is 1"),
        (lambda: resolve_rule("best"), "choose bayes-gap"),
    ],
)
def test_rules_that_make_no_sense_are_refused(make, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


def test_all_rules_have_their_names() -> None:
    assert all(name.startswith(resolve_rule(name).name) for name in RULES)
