import math

import numpy as np
import pytest
import torch
from botorch.test_functions import Ackley, Hartmann, Rosenbrock, Shekel
from scipy.optimize import minimize

from seqopt.bench.euclid.functions import PROBLEMS, borehole, currin, currin_continuous, forrester, rosenbrock


def level(value, count):
    return np.full(count, float(value))


@pytest.mark.parametrize(
    ("name", "theirs"),
    [
        ("hartmann3", Hartmann(3)),
        ("hartmann6", Hartmann(6)),
        ("ackley", Ackley(4, bounds=[(-32.768, 32.768)] * 4)),
        ("shekel", Shekel(m=10)),
        ("rosenbrock", Rosenbrock(2, bounds=[(-2.0, 2.0)] * 2)),
    ],
)
def test_targets_are_botorchs_functions_where_the_definitions_agree(name, theirs):
    problem = PROBLEMS[name]
    unit = np.random.default_rng(0).random((50, problem.dim))
    expected = theirs.evaluate_true(torch.from_numpy(problem.scaled(unit))).numpy()
    # BoTorch keeps the constants of some functions in single precision.
    np.testing.assert_allclose(problem.objective(unit), -expected, rtol=1e-6)


# Where the largest value is, in the unit cube, from the literature, or the corner that a monotone function has.
BEST = {
    "forrester": [0.757249],
    "currin": [0.0, 1.0],
    "currin-largest": [0.216667, 0.0130],
    "hartmann3": [0.114614, 0.555649, 0.852547],
    "hartmann6": [0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573],
    "borehole": [0, 1, 0, 0, 0, 1, 1, 0],
    "currin-continuous": [0.0, 1.0],
    "rosenbrock": [0.75, 0.75],
    "shekel": [0.4, 0.4, 0.4, 0.4],
    "ackley": [0.5] * 4,
    "hartmann6-noisy": [0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573],
    "forrester-noisy": [0.757249],
    "branin": [(np.pi + 5) / 15, 2.275 / 15],
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_optimum_is_reached_where_it_is_known_to_be_and_exceeded_nowhere(name):
    problem = PROBLEMS[name]
    found = minimize(
        lambda x: problem.regret(np.clip(x, 0, 1)[None])[0],
        BEST[name],
        method="Nelder-Mead",
        options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 4_000, "maxfev": 4_000},
    )
    assert abs(found.fun) < 1e-6 * max(1.0, abs(problem.optimum))
    np.testing.assert_allclose(np.clip(found.x, 0, 1), BEST[name], atol=2e-3)
    assert (problem.regret(np.random.default_rng(1).random((20_000, problem.dim))) > 0).all()


def test_forrester_by_hand():
    x = np.array([[0.0], [0.5], [1.0]])
    high = [4 * math.sin(-4), math.sin(2), 16 * math.sin(8)]
    np.testing.assert_allclose(forrester(x, level(0, 3)), high)
    np.testing.assert_allclose(
        forrester(x, level(1, 3)), [0.75 * high[0] + 0.5, 0.75 * high[1] + 2, 0.75 * high[2] + 3.5]
    )
    np.testing.assert_allclose(forrester(x, level(2, 3)), [0.5 * high[0] - 0.5, 0.5 * high[1] + 2, 0.5 * high[2] + 4.5])


def test_currin_by_hand():
    x = np.array([[0.0, 1.0], [0.5, 0.5], [0.5, 0.0]])
    ratio = 1868.5 / 159.5
    np.testing.assert_allclose(currin(x, level(0, 3)), [3 * (1 - math.exp(-0.5)), (1 - math.exp(-1)) * ratio, ratio])
    corners = np.array([[0.55, 0.05], [0.55, 0.0], [0.45, 0.05], [0.45, 0.0]])
    np.testing.assert_allclose(currin(x[2:], level(1, 1)), currin(corners, level(0, 4)).mean(), rtol=1e-12)


def test_the_continuous_currin_function_ends_at_the_discrete_one():
    x = np.random.default_rng(0).random((20, 2))
    np.testing.assert_array_equal(currin_continuous(x, level(1, 20)), currin(x, level(0, 20)))
    # At fidelity 0, nine tenths of what the exponential takes away.
    whole = currin(np.column_stack([x[:, 0], np.zeros(20)]), level(0, 20))
    taken = whole - currin(x, level(0, 20))
    np.testing.assert_allclose(whole - currin_continuous(x, level(0, 20)), 0.9 * taken)


def test_borehole_by_hand_and_at_its_largest():
    x = PROBLEMS["borehole"].scaled(np.array([[1, 0, 1, 1, 1, 0, 0, 1], [0.5] * 8]))
    np.testing.assert_allclose(borehole(x, level(0, 2))[0], 309.5755876604, rtol=1e-9)
    r_w, r, t_u, h_u, t_l, h_l, length, k_w = (0.1, 25_050, 89_335, 1_050, 89.55, 760, 1_400, 10_950)
    log = math.log(r / r_w)
    bracket = 2 * length * t_u / (log * r_w**2 * k_w) + t_u / t_l
    np.testing.assert_allclose(borehole(x, level(0, 2))[1], 2 * math.pi * t_u * (h_u - h_l) / (log * (1 + bracket)))
    np.testing.assert_allclose(borehole(x, level(1, 2))[1], 5 * t_u * (h_u - h_l) / (log * (1.5 + bracket)))


@pytest.mark.parametrize(
    ("name", "peaks"), [("hartmann3", [1.02, 1.18, 2.8, 3.4]), ("hartmann6", [1.03, 1.17, 2.7, 3.5])]
)
def test_levels_of_hartmann_change_the_heights_as_printed(name, peaks):
    from seqopt.bench.euclid.functions import A3, A6, P3, P6

    problem = PROBLEMS[name]
    a, p = (A3, P3) if name == "hartmann3" else (A6, P6)
    lowest = problem.levels[-1]
    for i in range(4):
        expected = sum(peaks[k] * math.exp(-(a[k] * (p[i] - p[k]) ** 2).sum()) for k in range(4))
        np.testing.assert_allclose(problem.value(p[i][None], level(lowest, 1)), expected)


def test_rosenbrocks_low_fidelity_adds_a_wave():
    x = np.array([[0.3, -0.7]])
    wave = rosenbrock(x, level(1, 1)) - rosenbrock(x, level(0, 1))
    np.testing.assert_allclose(wave, 0.1 * math.sin(3.0 - 3.5))


def test_costs_and_noise_are_those_printed():
    costs = {
        name: problem.cost(np.array(problem.levels)).tolist() for name, problem in PROBLEMS.items() if problem.levels
    }
    assert costs["forrester"] == [10, 5, 2]
    assert costs["currin"] == costs["borehole"] == [10, 1]
    assert costs["hartmann3"] == [100, 10, 1]
    assert costs["hartmann6"] == [1000, 100, 10, 1]
    assert costs["rosenbrock"] == [1000, 1]
    np.testing.assert_allclose(PROBLEMS["currin-continuous"].cost(np.array([0.0, 1.0])), [0.1, 1.1])
    assert PROBLEMS["rosenbrock"].noise_variance(np.array([0.0, 1.0])).tolist() == [1e-3, 1e-6]


def test_noise_has_the_stated_variance():
    problem = PROBLEMS["hartmann6-noisy"]
    unit = np.full((20_000, 6), 0.3)
    values = problem.measure(unit, level(0, len(unit)), np.random.default_rng(0))
    assert abs(values.var() - 0.25) < 4 * 0.25 * math.sqrt(2 / len(values))
