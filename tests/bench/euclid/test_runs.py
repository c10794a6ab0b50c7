import json
import math

import numpy as np
import pytest

from seqopt.bench.euclid.functions import PROBLEMS
from seqopt.bench.euclid.methods import METHODS
from seqopt.bench.euclid.runs import Job, check, initial, read_runs, work
from seqopt.bench.euclid.tasks import TASKS
from seqopt.errors import InputError


@pytest.fixture(scope="module")
def run():
    return work(Job("forrester", "gibbon", 0, steps=4))


def test_a_run_is_fixed_by_its_seed(run):
    again = work(Job("forrester", "gibbon", 0, steps=4))
    for field in ("points", "values", "regret", "spent"):
        assert again[field] == run[field]
    assert work(Job("forrester", "gibbon", 1, steps=1))["points"] != run["points"]


def test_costs_and_regrets_are_those_of_the_points(run):
    points = np.array(run["points"])
    problem = PROBLEMS["forrester"]
    assert run["initial"] == 2 * 3
    assert len(points) == 10
    costs = problem.cost(points[6:, -1])
    np.testing.assert_allclose(run["spent"], [0, *np.cumsum(costs)])
    assert len(run["regret"]) == 5
    assert min(run["regret"]) >= -1e-9
    assert len(run["choose_seconds"]) == 4
    assert len(run["fit_seconds"]) == 5
    np.testing.assert_allclose(problem.value(points[:, :-1], points[:, -1]), run["values"], atol=1e-5)


def test_methods_of_one_seed_begin_with_the_same_points():
    task = TASKS["hartmann3"]
    several = initial(task, METHODS["gibbon"], np.random.default_rng(5))
    target = initial(task, METHODS["ei"], np.random.default_rng(5))
    assert len(several.values) == 3 * 6
    assert len(target.values) == 6
    at_target = several.points[:, -1] == 0.0
    np.testing.assert_array_equal(several.points[at_target], target.points)
    np.testing.assert_array_equal(several.values[at_target], target.values)
    one = initial(TASKS["shekel-5"], METHODS["kg"], np.random.default_rng(5))
    assert len(one.values) == 2 * 4 + 2


def test_a_run_ends_before_its_budget_is_exceeded():
    found = work(Job("forrester", "ei", 0, steps=30))
    # Ten units a query.
    assert found["spent"] == [10.0 * step for step in range(11)]


def test_a_batch_counts_as_one_step():
    found = work(Job("shekel-5", "believer", 0, steps=1))
    assert len(found["regret"]) == 2
    assert len(found["points"]) == 10 + 5
    assert {point[-1] for point in found["points"]} == {0.0}


def test_a_continuous_fidelity_is_chosen_between_its_ends():
    found = work(Job("currin-continuous", "gibbon", 0, steps=2))
    z = np.array(found["points"])[:, -1]
    assert sorted(set(z[:12])) == [0.0, 0.5, 1.0]
    assert ((z >= 0) & (z <= 1)).all()
    np.testing.assert_allclose(np.diff(found["spent"]), 0.1 + z[12:] ** 2, atol=1e-5)


@pytest.mark.parametrize(("method", "first"), [("bosh", 12), ("fixed-1", 4), ("fixed-5", 20), ("random-1", 4)])
def test_evaluations_on_plates_are_counted_from_the_first_one(method, first):
    found = work(Job("draw-large", method, 0, steps=first + 5))
    together = 5 if method == "fixed-5" else 1
    assert found["counts"] == list(range(first, first + 6, together))
    assert len(found["values"]) * together == found["counts"][-1]
    draw = TASKS["draw-large"].plates(0)
    np.testing.assert_allclose(np.array(found["regret"]) + found["worth"], draw.optimum)


def test_plates_that_bosh_opens_follow_in_order():
    found = work(Job("draw-small", "bosh", 1, steps=20))
    used = [int(point[-1]) for point in found["points"]]
    assert used[:12] == [1] * 6 + [2] * 6
    assert found["plates"][-1] == max(used)
    assert found["plates"] == sorted(found["plates"])
    assert set(used) == set(range(1, max(used) + 1))


def test_means_over_plates_are_what_a_fixed_strategy_sees():
    found = work(Job("draw-large", "fixed-5", 3, steps=20))
    draw = TASKS["draw-large"].plates(3)
    points = np.array(found["points"])[:, :1]
    expected = np.mean([draw.on_plate(points, plate) for plate in range(1, 6)], axis=0)
    np.testing.assert_allclose(found["values"], expected, atol=1e-5)


def test_recorded_values_are_checked(run):
    check(run)
    for method, steps in (("bosh", 13), ("fixed-5", 25), ("random-1", 6)):
        check(work(Job("draw-small", method, 0, steps=steps)))
    values = [*run["values"][:-1], run["values"][-1] + 0.01]
    with pytest.raises(InputError, match="point 10 has the value"):
        check({**run, "values": values})


def test_runs_are_read_by_task_and_method_in_the_order_of_seeds(tmp_path):
    for seed in (2, 0, 1):
        run = {"job": Job("currin", "mumbo", seed).identity}
        with Job("currin", "mumbo", seed).path(tmp_path).open("a") as file:
            file.write(json.dumps(run) + "\n")
    found = read_runs(tmp_path)
    assert [run["job"]["seed"] for run in found["currin"]["mumbo"]] == [0, 1, 2]
    assert list(found) == ["currin"]


def test_every_task_is_of_methods_and_budgets_that_fit_it():
    for task in TASKS.values():
        assert set(task.methods) <= set(METHODS)
        if task.part == "fidelity":
            assert not math.isinf(task.budget)
            assert all(not METHODS[name].label.startswith("BOSH") for name in task.methods)
        assert task.checkpoints == tuple(sorted(task.checkpoints))
