import numpy as np
import pytest

from seqopt.bench.euclid.facility import Day, day_of, share_in_time
from seqopt.bench.euclid.plates import LENGTHSCALE, HierarchicalDraw, Warehouses


def test_draws_without_k_f_are_the_objective_on_every_plate():
    draw = HierarchicalDraw(0, 0.0, 0.0)
    points = np.random.default_rng(0).random((20, 1))
    for plate in (1, 2, 77):
        np.testing.assert_array_equal(draw.on_plate(points, plate), draw.objective(points))
    assert (draw.objective(points) <= draw.optimum).all()


def test_draws_have_the_covariances_of_the_hierarchical_process():
    x = np.array([[0.2], [0.2 + LENGTHSCALE]])
    draws = [HierarchicalDraw(seed, 0.5, 0.1) for seed in range(500)]
    g = np.array([draw.objective(x) for draw in draws])
    one, two = (np.array([draw.on_plate(x, plate) for draw in draws]) for plate in (1, 2))
    near = (1 + np.sqrt(5) + 5 / 3) * np.exp(-np.sqrt(5))
    error = 4 * 2.0 / np.sqrt(len(draws))
    np.testing.assert_allclose((one * one).mean(0), 1.6, atol=error)
    np.testing.assert_allclose((one * two).mean(0), 1.0, atol=error)
    np.testing.assert_allclose((one * g).mean(0), 1.0, atol=error)
    np.testing.assert_allclose((one[:, 0] * one[:, 1]).mean(), 1.5 * near + 0.1, atol=error)


def test_a_plate_is_the_same_whenever_it_is_asked_and_others_differ():
    for problem in (HierarchicalDraw(3, 0.5, 0.1), Warehouses(3)):
        again = HierarchicalDraw(3, 0.5, 0.1) if problem.dim == 1 else Warehouses(3)
        points = np.random.default_rng(0).random((5, problem.dim))
        first = problem.on_plate(points, 1)
        other = problem.on_plate(points, 2)
        np.testing.assert_array_equal(problem.on_plate(points, 1), first)
        np.testing.assert_array_equal(again.on_plate(points, 1), first)
        assert (first != other).any()


def test_orders_by_hand():
    # Ways of 30, 6 and 54 minutes (the other warehouse is far away for all three).
    day = Day(
        np.array([0.0, 10.0, 20.0]),
        np.array([[0.5, 0.0], [0.1, 0.0], [0.5, 0.4]]),
        np.array([5.0, 5.0, 5.0]),
        np.array([10.0, 100.0, 0.5]),
    )
    warehouses = np.array([[0.0, 0.0], [1.0, 1.0]])
    # 5 + 30 + 10 = 45 in time; 5 + 6 + 100 = 111 not; 5 + 54 + 0.5 = 59.5 in time.
    assert share_in_time(warehouses, day) == pytest.approx(200 / 3)


def test_orders_wait_for_the_trucks_of_their_warehouse():
    # Ten trucks leave at 0 and are back at 5 + 6 + 10 + 6 = 27; the eleventh order waits and is done at 27 + 21 = 48.
    def day(count, unloading=10.0):
        return Day(np.zeros(count), np.tile([0.1, 0.0], (count, 1)), np.full(count, 5.0), np.full(count, unloading))

    warehouses = np.array([[0.0, 0.0], [1.0, 1.0]])
    assert share_in_time(warehouses, day(20)) == 100.0
    # Thirty: the last ten are done at 54 + 21 = 75.
    assert share_in_time(warehouses, day(30)) == pytest.approx(200 / 3)


def test_days_have_the_stated_distribution():
    days = [day_of(np.random.default_rng(seed)) for seed in range(300)]
    counts = np.array([len(day.arrivals) for day in days])
    assert abs(counts.mean() - 162) < 4 * np.sqrt(162 / 300)
    places = np.concatenate([day.places for day in days])
    # The density 1.6 - |x - .8| - |y - .8| is 1.6 - .34 = 1.26 on the average of y, less |x - .8|.
    grid = (np.arange(1000) + 0.5) / 1000
    density = 1.26 - np.abs(grid - 0.8)
    expected = (grid * density).sum() / density.sum()
    assert abs(places.mean(0) - expected).max() < 4 * 0.3 / np.sqrt(len(places))
    assert abs(np.concatenate([day.loading for day in days]).mean() - 5) < 0.15
    assert abs(np.concatenate([day.unloading for day in days]).mean() - 10) < 0.3


def test_warehouses_close_to_where_orders_are_beat_those_in_a_corner():
    problem = Warehouses(0)
    good, bad = problem.objective(np.array([[0.6, 0.8, 0.8, 0.5], [0.0, 0.0, 0.0, 0.1]]))
    assert good > bad + 20
