"""Arms that are measured on plates with offsets: what is compared, what wells tell beside controls, and forecasts."""

from __future__ import annotations

import math

import numpy as np
import pytest

from seqopt.strategies.arms import (
    RULES,
    UCBE,
    ArmPosterior,
    BayesGap,
    EqualReplication,
    Rule,
    Situation,
    UGap,
    forecast,
    resolve_rule,
    simulate,
)
from seqopt.strategies.arms.decision import choose_batch
from seqopt.strategies.arms.posterior import of_measurements
from seqopt.strategies.arms.rules import bounded_gaps

RNG = np.random.default_rng(0)


def drawn(arms: int, rng: np.random.Generator, several: int = 1) -> tuple[np.ndarray, np.ndarray]:
    root = rng.standard_normal((several, arms, arms))
    return rng.standard_normal((several, arms)), root @ root.swapaxes(1, 2) / arms + 0.05 * np.eye(arms)


def dense(posterior: ArmPosterior, wells: list[int]) -> np.ndarray:
    """Covariance of the true values of one situation given wells of one fresh plate, by one dense conditioning."""
    covariance, noise = posterior.covariance[0], posterior.noise[0]
    assert posterior.plate is not None
    readings = (covariance + posterior.plate[0])[np.ix_(wells, wells)] + np.diag(noise[wells])
    crossed = covariance[:, wells]
    return covariance - crossed @ np.linalg.solve(readings, crossed.T) if wells else covariance


def pair(mean: np.ndarray, covariance: np.ndarray, beta: float) -> tuple[int, int]:
    """Leader and challenger by the bounds of all differences, one by one."""
    count = len(mean)

    def bound(one: int, other: int) -> float:
        variance = covariance[one, one] + covariance[other, other] - 2 * covariance[one, other]
        return float(mean[one] - mean[other] + math.sqrt(2) * beta * math.sqrt(variance))

    gaps = [max(bound(other, arm) for other in range(count) if other != arm) for arm in range(count)]
    leader = int(np.argmin(gaps))
    return leader, max((arm for arm in range(count) if arm != leader), key=lambda arm: bound(arm, leader))


@pytest.mark.parametrize("controls", [0, 1, 3])
@pytest.mark.parametrize("offset", [0.3, 50.0])
def test_bayes_gap_goes_by_differences_and_by_what_wells_tell_beside_the_others(controls: int, offset: float) -> None:
    rng = np.random.default_rng(controls)
    for _ in range(8):
        mean, covariance = drawn(5 + controls, rng)
        noise = rng.uniform(0.05, 0.5, 5 + controls)
        plate = offset + 0.02 * np.eye(5 + controls)
        posterior = ArmPosterior.of(mean[0], covariance[0], noise, plate=plate)
        situation = Situation(8, 0, 0, posterior.first(5).spread)
        found = choose_batch(posterior, BayesGap("fixed", 2.0), situation, 8, RNG, controls=controls)
        wells = [5 + place for place in range(controls)]
        for chosen in found:
            now = dense(posterior, wells)
            two = pair(mean[0, :5], now[:5, :5], 2.0)
            left = []
            for arm in two:
                after = dense(posterior, [*wells, arm])
                left.append(after[two[0], two[0]] + after[two[1], two[1]] - 2 * after[two[0], two[1]])
            assert int(chosen[0]) == two[int(np.argmin(left))]
            wells.append(int(chosen[0]))


def test_a_level_that_the_offset_hides_is_no_reason_for_anything() -> None:
    rng = np.random.default_rng(1)
    mean, covariance = drawn(6, rng, 20)
    chosen = []
    for level in (0.0, 400.0):
        posterior = ArmPosterior.of(mean, covariance + level, 0.2, plate=np.full((6, 6), 500.0 - level))
        for name in ("bayes-gap", "bayes-gap-theory", "bayes-gap-decay"):
            situation = Situation(40, 0, 0, posterior.spread)
            chosen.append(np.array(choose_batch(posterior, resolve_rule(name), situation, 10, RNG)))
    for first, second in zip(chosen[:3], chosen[3:], strict=True):
        np.testing.assert_array_equal(first, second)
    # A plate of ten wells compares: none is of one string alone.
    assert all(len(set(one.tolist())) > 1 for one in chosen[0].T)


def test_spread_is_the_variance_of_what_is_left_of_the_mean() -> None:
    _, covariance = drawn(5, np.random.default_rng(2))
    plates = ArmPosterior.of(np.zeros(5), covariance[0] + 7.0, 0.1, plate=np.ones((5, 5)))
    centre = np.eye(5) - 0.2
    np.testing.assert_allclose(plates.spread[0], 1.25 * np.diag(centre @ covariance[0] @ centre))
    without = ArmPosterior.of(np.zeros(5), covariance[0] + 7.0, 0.1)
    np.testing.assert_array_equal(without.spread, without.variance)
    alike = ArmPosterior.of(np.zeros(5), 0.3 * np.eye(5) + 7.0, 0.1, plate=np.ones((5, 5)))
    np.testing.assert_allclose(alike.spread, 0.3)


def test_bounds_of_gaps_by_differences_are_those_of_single_arms_where_these_are_independent_and_alike() -> None:
    mean = np.random.default_rng(3).standard_normal((4, 6))
    single = ArmPosterior.of(mean, 0.3 * np.eye(6), 0.1)
    plates = ArmPosterior.of(mean, 0.3 * np.eye(6) + 9.0, 0.1, plate=np.ones((6, 6)))
    np.testing.assert_allclose(bounded_gaps(plates), bounded_gaps(single))
    rule = BayesGap("theory")
    widths = [rule.width(one, Situation(60, 0, 0, one.spread)) for one in (single, plates)]
    np.testing.assert_allclose(*widths)
    for name in ("gap", "leader", "challenger"):
        both = [getattr(rule.gaps(one, np.full(4, 2.0)), name) for one in (single, plates)]
        np.testing.assert_allclose(*both, err_msg=name)


def slow_choice(name: str, mean, variance, noise, counts, averages, situation: Situation) -> int:
    """Rules without plates, by the formulas of their sources, arm by arm."""
    count = len(mean)

    def others(values, arm):
        return max(value for place, value in enumerate(values) if place != arm)

    if name == "equal":
        return max((arm for arm in range(count) if counts[arm] == min(counts)), key=lambda arm: mean[arm])
    if name in ("ugap", "ucb-e"):
        total = sum(counts) + situation.wells - situation.used
        gaps = [abs(others(averages, arm) - averages[arm]) for arm in range(count)]
        smallest = 1e-3 * math.sqrt(noise)
        if name == "ucb-e":
            a = 25 / 36 * max(total - count, 1) / sum(max(gap, smallest) ** -2 for gap in gaps)
            return int(np.argmax([averages[arm] + math.sqrt(a / counts[arm]) for arm in range(count)]))
        a = max(total - count, 1) / (4 * sum(max((gap + smallest) / 2, smallest) ** -2 for gap in gaps))
        middle, half = averages, [math.sqrt(a / number) for number in counts]
    else:
        beta = {"bayes-gap": 2.0, "bayes-gap-decay": 5.0 * 0.5**situation.batch}.get(name)
        if beta is None:
            low, high = ([m + sign * 3 * math.sqrt(v) for m, v in zip(mean, variance, strict=True)] for sign in (-1, 1))
            gaps = [max(others(high, a) - low[a], high[a] - others(low, a)) for a in range(count)]
            smallest = 1e-3 * math.sqrt(noise)
            hardness = sum(max((gap + smallest) / 2, smallest) ** -2 for gap in gaps)
            square = (situation.wells - count) / noise + sum(1 / v for v in situation.prior_variance[0])
            beta = math.sqrt(square / (4 * hardness)) if square > 0 else 2.0
        middle, half = mean, [beta * math.sqrt(v) for v in variance]
    upper = [m + h for m, h in zip(middle, half, strict=True)]
    gap = [others(upper, arm) - (middle[arm] - half[arm]) for arm in range(count)]
    leader = int(np.argmin(gap))
    challenger = max((arm for arm in range(count) if arm != leader), key=lambda arm: upper[arm])
    return max(sorted((leader, challenger)), key=lambda arm: half[arm])


@pytest.mark.parametrize("name", [name for name in RULES if name != "top-two"])
def test_without_plates_rules_choose_by_single_arms(name: str) -> None:
    rng = np.random.default_rng(4)
    for _ in range(25):
        count = int(rng.integers(2, 8))
        mean, covariance = drawn(count, rng)
        counts, averages = rng.integers(1, 5, count), rng.standard_normal(count)
        posterior = ArmPosterior.of(mean[0], covariance[0], 0.2, counts=counts, averages=averages)
        situation = Situation(int(rng.integers(6, 40)), 3, 1, posterior.spread + 0.1)
        for place, chosen in enumerate(choose_batch(posterior, resolve_rule(name), situation, 5, RNG)):
            now = Situation(situation.wells, 3 + place, 1, situation.prior_variance)
            expected = slow_choice(
                name, posterior.mean[0], posterior.variance[0], 0.2, posterior.counts[0], averages, now
            )
            assert int(chosen[0]) == expected
            posterior = posterior.given(chosen)


def test_estimates_from_measurements_alone_are_generalised_least_squares() -> None:
    rng = np.random.default_rng(5)
    arms, plates = rng.integers(0, 4, 30), rng.integers(0, 3, 30)
    noise, values = rng.uniform(0.1, 0.4, 30), rng.standard_normal(30) + 10.0 * plates
    _, plate = drawn(4, rng)
    shared = plate[0] + 20.0
    mean, covariance = of_measurements(arms, plates, values, noise, shared)
    design = np.eye(4)[arms]
    joint = np.diag(noise) + (plates[:, None] == plates) * shared[np.ix_(arms, arms)]
    expected = np.linalg.inv(design.T @ np.linalg.solve(joint, design))
    np.testing.assert_allclose(covariance, expected, rtol=1e-4)
    np.testing.assert_allclose(mean, expected @ design.T @ np.linalg.solve(joint, values), rtol=1e-4)


def test_averages_on_plates_are_those_estimates_whichever_way_they_come() -> None:
    rng = np.random.default_rng(6)
    shared, arms, plates = np.full((4, 4), 30.0), np.array([0, 1, 2, 0, 3, 3, 1, 2]), np.repeat([0, 1], 4)
    values = rng.standard_normal(8) + 15.0 * plates
    posterior = ArmPosterior.of(np.zeros(4), np.eye(4), 0.2, plate=shared)
    for place, (arm, value) in enumerate(zip(arms, values, strict=True)):
        posterior = posterior.on_fresh_plate() if place == 4 else posterior
        posterior = posterior.given(np.array([arm]), np.array([value]))
    mean, covariance = of_measurements(arms, plates, values, [0.2] * 8, shared)
    np.testing.assert_allclose(posterior.averages[0] - posterior.averages[0, 0], mean - mean[0], atol=1e-4)
    at_once = ArmPosterior.of(np.zeros(4), np.eye(4), 0.2, plate=shared, counts=[2, 2, 2, 2], alone=(mean, covariance))
    np.testing.assert_allclose(posterior.effective, at_once.effective, rtol=1e-3)
    # All were measured on both plates or with one that was: less than a well of each is lost.
    assert ((at_once.effective > 1.0) & (at_once.effective <= 2.0)).all()


def test_means_on_plates_without_anything_in_common_are_worth_little() -> None:
    """Arms 0 and 1 on one plate, 2 and 3 on another; a control on both is all that tells of their offsets."""
    offset, noise = 100.0, 0.2
    arms, plates = [0, 1, 4, 2, 3, 4], [0, 0, 0, 1, 1, 1]
    values = [9.0, 8.5, 1.0, 22.0, 21.5, 21.0]
    mean, covariance = of_measurements(arms, plates, values, [noise] * 6, np.full((5, 5), offset))
    known = mean[:4], covariance[:4, :4]
    found = ArmPosterior.of(
        np.zeros(4), np.eye(4), noise, plate=np.full((4, 4), offset), counts=np.ones(4), alone=known
    )
    np.testing.assert_allclose(found.averages[0] - found.averages[0, 0], [0.0, -0.5, -7.0, -7.5], atol=0.05)
    # The plates differ by the difference of two wells of the control, 2 noise: 4/3 of its quarter for each arm.
    np.testing.assert_allclose(found.effective, 1 / (1 + 4 / 3 * 2 / 4), rtol=0.01)
    for rule in (UGap(), UCBE()):
        chosen = [int(arm[0]) for arm in choose_batch(found, rule, Situation(24, 0, 0, found.spread), 6, RNG)]
        assert set(chosen) <= {0, 1}


def test_what_is_compared_is_a_part_of_what_is_known() -> None:
    rng = np.random.default_rng(7)
    mean, covariance = drawn(5, rng)
    whole = ArmPosterior.of(mean[0], covariance[0], 0.2, plate=np.full((5, 5), 3.0))
    part = ArmPosterior.of(mean[0, :3], covariance[0, :3, :3], 0.2, plate=np.full((3, 3), 3.0))
    for arm in (0, 2, 2):
        whole, part = (one.given(np.array([arm]), np.array([1.0])) for one in (whole, part))
    first = whole.first(3)
    for name in ("mean", "covariance", "averages", "counts", "outcome_mean", "outcome_covariance", "crossed", "spread"):
        np.testing.assert_allclose(getattr(first, name), getattr(part, name), err_msg=name, atol=1e-9)
    np.testing.assert_allclose(first.effective, part.effective)
    assert whole.first(5) is whole
    assert first.repeated(3).effective.shape == (3, 3)


def test_a_forecast_counts_the_controls_of_the_plates_to_come() -> None:
    """One well and one control, known exactly, on each plate of any offset: as without plates, of twice the noise."""
    covariance = np.diag([1.0, 1.0, 1e-12])
    posterior = ArmPosterior.of(np.zeros(3), covariance, 1.0, plate=np.full((3, 3), 1e4))
    rng = np.random.default_rng(0)
    found = forecast(posterior, EqualReplication(), target=0.999, limit=16, batch=1, rng=rng, futures=1500, controls=1)
    for wells, chance in zip(found.wells[2::2], found.probability[2::2], strict=True):
        each = wells / 2
        assert chance == pytest.approx(0.5 + math.asin(math.sqrt(each / (each + 2.0))) / math.pi, abs=0.03)
    lone = forecast(posterior.first(2), EqualReplication(), target=0.999, limit=16, batch=1, rng=rng, futures=500)
    assert max(lone.probability) < 0.6


def test_controls_are_measured_with_every_batch_and_never_chosen() -> None:
    mean, covariance = drawn(6, np.random.default_rng(8), 3)
    posterior = ArmPosterior.of(mean, covariance, 0.2, plate=np.full((6, 6), 5.0))
    seen: list[ArmPosterior] = []
    found = simulate(
        posterior, BayesGap(), lambda arms, times: arms * 1.0, wells=10, batch=4, rng=RNG, after=seen.append, controls=2
    )
    assert (found.posterior.counts[:, 4:] == 3).all()
    assert (found.posterior.counts[:, :4].sum(1) == 10).all()
    assert [one.arms for one in seen] == [4, 4, 4]
    assert found.recommended.max() < 4


def wrong(rule: Rule, controls: int, runs: int = 300) -> np.ndarray:
    """Fifteen strings on plates with large offsets, four plates of fifteen wells: whether another one is the best."""
    rng, noises = np.random.default_rng(11), np.random.default_rng(12)
    arms = 15 + controls
    covariance = 0.05 + 0.03 * np.eye(arms)
    mean = 0.15 * rng.standard_normal((runs, arms))
    truth = mean + rng.standard_normal((runs, arms)) @ np.linalg.cholesky(covariance).T
    offsets, rows, seen = noises.standard_normal((4, runs)) * math.sqrt(0.35), np.arange(runs), []

    def measure(chosen: np.ndarray, times: np.ndarray) -> np.ndarray:
        seen.append(0)
        plate = offsets[(len(seen) - 1) // arms]
        return truth[rows, chosen] + plate + math.sqrt(0.02) * noises.standard_normal(runs)

    posterior = ArmPosterior.of(mean, covariance, 0.02, plate=np.full((arms, arms), 0.35), counts=np.ones(arms))
    found = simulate(posterior, rule, measure, wells=60, batch=15, rng=RNG, controls=controls)
    return found.recommended[-1] != truth[:, :15].argmax(1)


@pytest.mark.parametrize("controls", [0, 2])
def test_on_plates_bayes_gap_is_better_than_equal_replication(controls: int) -> None:
    gained = wrong(EqualReplication(), controls).astype(float) - wrong(BayesGap(), controls)
    assert gained.mean() > 2 * gained.std() / math.sqrt(len(gained))
