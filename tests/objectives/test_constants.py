"""Constants of formulas: derivatives against differences, fits against closed forms and brute force, and bounds."""

from __future__ import annotations

import math
import pickle
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqopt.errors import InputError
from seqopt.objectives import ExpressionError, fit_constants, parse_expression
from seqopt.objectives.constants import LARGEST, REFINED, STARTS, STEPS, derivatives, linear_constants

X = np.linspace(0.5, 3.0, 24)


def formulas() -> st.SearchStrategy[str]:
    """Formulas in x and constants, in brackets throughout."""

    def grow(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        pairs = st.tuples(children, st.sampled_from(["+", "-", "*", "/", "**"]), children)
        calls = st.tuples(st.sampled_from(["sin", "cos", "exp", "log", "sqrt", "-"]), children)
        return pairs.map(lambda p: f"({p[0]}){p[1]}({p[2]})") | calls.map(lambda call: f"{call[0]}({call[1]})")

    return st.recursive(st.sampled_from(["c", "c", "x", "2"]), grow, max_leaves=7)


@given(formulas(), st.integers(0, 100))
def test_derivatives_are_limits_of_differences(text: str, seed: int) -> None:
    formula = parse_expression(text, constant="c")
    values = np.random.default_rng(seed).uniform(0.5, 2, formula.constants)
    found = derivatives(formula, {"x": X}, values, X.shape)
    for index in range(formula.constants):
        step = np.zeros(len(values))
        step[index] = 1e-5
        with np.errstate(all="ignore"):
            above, below = (np.broadcast_to(formula({"x": X}, values + sign * step), X.shape) for sign in (1, -1))
            difference = (above - below) / 2e-5
            smooth = (np.abs(difference) < 1e3) & (np.abs(above) < 1e3) & np.isfinite(found[:, index])
        np.testing.assert_allclose(found[smooth, index], difference[smooth], rtol=1e-3, atol=1e-3)
        assert np.isnan(difference[np.isnan(found[:, index])]).all()


@given(formulas(), st.integers(0, 100))
def test_formulas_are_linear_in_constants_that_are_called_so(text: str, seed: int) -> None:
    formula = parse_expression(text, constant="c")
    rng = np.random.default_rng(seed)
    linear = linear_constants(formula)
    base, one, other = (rng.uniform(0.5, 2, formula.constants) for _ in range(3))
    moved = [base.copy() for _ in range(3)]
    for index in linear:
        moved[0][index], moved[1][index], moved[2][index] = one[index], other[index], (one[index] + other[index]) / 2
    with np.errstate(all="ignore"):
        first, second, middle = (formula({"x": X}, values) for values in moved)
        finite = np.isfinite(first) & np.isfinite(second) & (np.abs(first) + np.abs(second) < 1e6)
        np.testing.assert_allclose(middle[finite], ((first + second) / 2)[finite], rtol=1e-6, atol=1e-6)


def test_linear_formulas_are_solved_as_by_least_squares() -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(size=len(X))
    fit = fit_constants(parse_expression("c*x**3+c*x-c*log(x)+c", constant="c"), {"x": X}, y, rng)
    columns = np.column_stack([X**3, X, -np.log(X), np.ones_like(X)])
    solution, *_ = np.linalg.lstsq(columns, y, rcond=None)
    np.testing.assert_allclose(fit.values, solution, rtol=1e-6)
    assert fit.mse == pytest.approx(np.mean((columns @ solution - y) ** 2), rel=1e-9)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("c*exp(c*x)+c", (5.0, -2.0, 1.0)),
        ("c*x**c", (3.0, 1.7)),
        ("c/(c+x*x)", (8.0, 2.0)),
        ("x/(c+c*x)", (1.5, 0.2)),
        ("c*sin(c*x)", (0.3, 2 * math.pi)),
    ],
)
@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e8])
def test_constants_are_found_again_in_any_unit(text: str, values: tuple[float, ...], unit: float) -> None:
    formula = parse_expression(text, constant="c")
    y = unit * formula({"x": X}, values)
    if text.startswith("x"):
        y = y / unit
    found = [fit_constants(formula, {"x": X}, y, np.random.default_rng(seed)).mse for seed in range(3)]
    assert max(found) < 1e-12 * np.var(y)


def test_no_value_on_a_fine_grid_is_better() -> None:
    formula = parse_expression("sin(c*x)", constant="c")
    grid = np.linspace(-10, 10, 20_001)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        y = np.sin(4.1 * X) + 0.3 * rng.normal(size=len(X))
        least = np.mean((np.sin(grid[:, None] * X) - y) ** 2, axis=1).min()
        assert fit_constants(formula, {"x": X}, y, rng).mse <= least + 1e-9


def test_constants_that_run_away_are_kept_in_bounds() -> None:
    # The error falls for ever as both constants grow: c / (x + c) becomes a line.
    y = 1 - 0.001 * X
    for text in ("c/(x+c)", "c*exp(c*x)-c", "c*x**(c/c)", "c-c*exp(0-c*x)"):
        fit = fit_constants(parse_expression(text, constant="c"), {"x": X}, y, np.random.default_rng(0))
        assert np.isfinite(fit.mse)
        units = [1, np.std(y), np.std(X), 1 / np.std(X), np.std(y) / np.std(X)]
        assert max(map(abs, fit.values)) <= LARGEST * max(units)


def test_formulas_that_are_never_finite_have_no_constants_and_the_worst_score() -> None:
    error = ExpressionError(X, X, constant="c")
    for text in ("log(0-exp(c))", "c/(x-x)", "sqrt(0-1-exp(c))", "exp(exp(exp(100+exp(c))))"):
        fit = error.fit(text)
        assert fit.values == ()
        assert not math.isfinite(fit.mse)
        assert error([text])[0] == pytest.approx(math.log(1001))


def test_a_constant_target_is_fitted_and_cannot_be_relative() -> None:
    y = np.full(len(X), 7.5)
    assert ExpressionError(X, y, constant="c")(["c", "c*x+c"]) == pytest.approx([0, 0], abs=1e-12)
    with pytest.raises(InputError, match=r"all 24 values of 'y' are 7\.5"):
        ExpressionError(X, y, relative=True)


def test_a_relative_error_has_no_unit() -> None:
    y = np.sin(X)
    formulas = ["c*x", "c*x*x+c", "sin(c*x)*c"]
    plain, scaled = (ExpressionError(X, unit * y, constant="c", relative=True)(formulas) for unit in (1.0, 1e7))
    np.testing.assert_allclose(plain, scaled, rtol=1e-6, atol=1e-12)
    assert ExpressionError(X, y, constant="c", relative=True)(["c"])[0] == pytest.approx(math.log(2))


def test_a_formula_has_one_error_wherever_it_is_computed() -> None:
    texts = ["c*sin(c*x+c)", "c*exp(c*x)", "c/(c+x)"]
    y = np.random.default_rng(1).normal(size=len(X))
    error = ExpressionError(X, y, constant="c", seed=4)
    values = error(texts).tolist()
    copy = pickle.loads(pickle.dumps(error))
    assert copy(texts[::-1]).tolist()[::-1] == values
    assert [ExpressionError(X, y, constant="c", seed=4)([text])[0] for text in texts] == values


@settings(max_examples=15, deadline=None)
@given(formulas())
def test_the_work_is_bounded_and_never_worse_than_where_it_began(text: str) -> None:
    formula = parse_expression(text, constant="c")
    y = np.cos(X)
    fit = fit_constants(formula, {"x": X}, y, np.random.default_rng(0))
    linear = len(linear_constants(formula))
    assert fit.evaluations <= STARTS * (2 + linear) + REFINED * (2 * STEPS + 3) + 2
    with np.errstate(all="ignore"):
        ones = np.mean((formula({"x": X}, np.ones(formula.constants)) - y) ** 2)
    assert not ones < fit.mse * (1 - 1e-9) - 1e-12 or linear


def test_many_points_are_fitted_to_all_of_them() -> None:
    rng = np.random.default_rng(5)
    x = np.linspace(0, 3, 30_000)
    y = 2 * x + 1 + rng.normal(size=len(x))
    started = time.perf_counter()
    fit = fit_constants(parse_expression("c*x+c", constant="c"), {"x": x}, y, rng)
    assert fit.values == pytest.approx(np.polyfit(x, y, 1), rel=1e-7)
    assert time.perf_counter() - started < 30


def test_what_cannot_be_fitted_is_refused() -> None:
    formula = parse_expression("c*x", constant="c")
    with pytest.raises(InputError, match="starts is 0"):
        fit_constants(formula, {"x": X}, X, np.random.default_rng(0), starts=0)
    with pytest.raises(InputError, match=r"column 'x' has the shape \(24,\), but the target has \(3,\)"):
        fit_constants(formula, {"x": X}, X[:3], np.random.default_rng(0))
    with pytest.raises(InputError, match="1 constants to be found, and 2 values"):
        formula({"x": X}, [1.0, 2.0])
    with pytest.raises(InputError, match="cannot be both a variable and a constant"):
        parse_expression("c", ("c",), constant="c")
    with pytest.raises(InputError, match="'sin' cannot be the name"):
        parse_expression("c", constant="sin")
    with pytest.raises(InputError, match="column 'c' cannot be called like the constants"):
        ExpressionError({"c": X}, X, constant="c")
    with pytest.raises(InputError, match="expected one of the names x, c, sin"):
        parse_expression("d*x", constant="c")
