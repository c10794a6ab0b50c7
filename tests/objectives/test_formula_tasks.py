"""The Nguyen and Keijzer lists: the functions against their formulas, and the points."""

from __future__ import annotations

import re

import numpy as np
import pytest

from seqopt.objectives import FORMULA_TASKS, parse_expression


@pytest.mark.parametrize("name", FORMULA_TASKS)
def test_values_are_those_of_the_printed_formula(name: str) -> None:
    task = FORMULA_TASKS[name]
    inputs, values = task.testing(np.random.default_rng(0))
    assert tuple(inputs) == task.variables
    if name == "keijzer-6":
        expected = np.array([sum(1 / i for i in range(1, int(x) + 1)) for x in inputs["x"]])
    else:
        own = {
            "keijzer-4": "x^3*exp(-x)*cos(x)*sin(x)*(sin(x)^2*cos(x)-1)",
            "keijzer-9": "log(x+sqrt(x^2+1))",
            **dict.fromkeys(("keijzer-1", "keijzer-2", "keijzer-3"), f"0.3*x*sin(2*{np.pi}*x)"),
            "keijzer-7": "log(x)",
        }
        # A blank between factors is a product.
        printed = re.sub(r"(?<=[\w)]) (?=[\w(])", "*", task.formula).replace("ln(", "log(")
        expected = parse_expression(own.get(name, printed), task.variables)(inputs)
    np.testing.assert_allclose(values, expected, rtol=1e-10, atol=1e-12)
    assert np.isfinite(values).all()


@pytest.mark.parametrize(
    ("name", "train", "test"),
    [
        ("nguyen-1", 20, 1000),
        ("nguyen-10", 100, 1000),
        ("keijzer-1", 21, 2001),
        ("keijzer-4", 201, 201),
        ("keijzer-5", 1000, 10_000),
        ("keijzer-6", 50, 120),
        ("keijzer-8", 101, 1001),
        ("keijzer-10", 100, 101 * 101),
        ("keijzer-14", 20, 601 * 601),
    ],
)
def test_there_are_as_many_points_as_published(name: str, train: int, test: int) -> None:
    task = FORMULA_TASKS[name]
    rng = np.random.default_rng(0)
    assert (len(task.training(rng)[1]), len(task.testing(rng)[1])) == (train, test)


def test_grids_hold_all_combinations_and_random_points_their_limits() -> None:
    inputs, _ = FORMULA_TASKS["keijzer-12"].testing(np.random.default_rng(0))
    assert len(set(zip(inputs["x"].round(9).tolist(), inputs["y"].round(9).tolist(), strict=True))) == 601**2
    inputs, _ = FORMULA_TASKS["keijzer-5"].training(np.random.default_rng(0))
    assert 1 <= inputs["y"].min() < 1.1 < 1.9 < inputs["y"].max() <= 2
    assert -1 <= inputs["x"].min() < -0.9
    assert inputs["x"].tolist() != inputs["z"].tolist()
