"""Formulas for the columns of a table: their names, what is held out, how they are judged."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import mean_squared_error, r2_score

from seqopt.datasets.points import Points, read_points
from seqopt.errors import InputError
from seqopt.objectives import parse_expression
from seqopt.objectives.formulas import FormulaData, pareto, variable_names

RNG = np.random.default_rng(0)
A, B = RNG.uniform(1, 3, 40), RNG.uniform(0, 5, 40)
Y = 2.5 * A * B - 4 + 0.1 * RNG.normal(size=40)


def table(**columns: np.ndarray) -> Points:
    return Points({"a": A, "b": B} | columns, Y, "y")


@given(st.lists(st.tuples(st.integers(1, 5), st.sampled_from([0.0, 0.5, 1.0, 2.0, math.nan])), max_size=12))
def test_the_front_is_that_of_its_definition(pairs: list[tuple[int, float]]) -> None:
    found = pareto([length for length, _ in pairs], [error for _, error in pairs])
    for index, (length, error) in enumerate(pairs):
        beaten = any(
            ((other_length, other_error) != (length, error) and other_length <= length and other_error <= error)
            or ((other_length, other_error) == (length, error) and other < index)
            for other, (other_length, other_error) in enumerate(pairs)
        )
        assert found[index] == (not math.isnan(error) and not beaten)


def test_formulas_are_judged_as_scikit_learn_judges() -> None:
    data = FormulaData.of(table(), constant="c", holdout=0.25, seed=3)
    assert data.held_out is not None
    assert (len(data.error.target), len(data.held_out)) == (30, 10)
    found = data.describe("c*a*b+c")
    formula, constants = data.error.parse("c*a*b+c"), data.error.fit("c*a*b+c").values
    for inputs, y, mse, r2 in (
        (data.error.inputs, data.error.target, found.mse, found.r2),
        (data.held_out.inputs, data.held_out.y, found.held_out_mse, found.held_out_r2),
    ):
        values = formula(inputs, constants)
        assert mse == pytest.approx(mean_squared_error(y, values))
        assert r2 == pytest.approx(r2_score(y, values))
    assert found.r2 > 0.99
    assert found.constants == 2


def test_rows_that_are_held_out_are_not_fitted_to() -> None:
    first = FormulaData.of(table(), constant="c", holdout=0.25)
    assert first.held_out is not None
    held_out = np.isin(A, first.held_out.inputs["a"])
    other = FormulaData.of(Points({"a": A, "b": B}, np.where(held_out, 1e3, Y), "y"), constant="c", holdout=0.25)
    one, two = (data.describe("c*a+c*b") for data in (first, other))
    assert (one.fitted, one.mse) == (two.fitted, two.mse)
    assert one.held_out_mse != two.held_out_mse


def test_the_text_has_the_error_that_is_given_for_it() -> None:
    data = FormulaData.of(table(), constant="c")
    for string in ("c*a*b+c", "c*exp(c*a)+c*b/c-c", "sin(c*a+b)*c", "a/c/c"):
        found = data.describe(string)
        values = parse_expression(found.fitted, ("a", "b"))({"a": A, "b": B})
        assert np.mean((values - Y) ** 2) == pytest.approx(found.mse, rel=2e-3)
        assert np.mean((eval(found.python, {"np": np, "a": A, "b": B}) - Y) ** 2) == pytest.approx(found.mse, rel=2e-3)


def test_what_is_not_finite_has_no_error() -> None:
    data = FormulaData.of(table(), constant="c", holdout=0.25)
    for string in ("log(0-exp(c))", "log(0-a)", "1/(a-a)"):
        found = data.describe(string)
        assert math.isnan(found.mse)
        assert math.isnan(found.r2)
        assert math.isnan(found.held_out_mse)
        assert found.fitted == string


def test_values_that_are_all_equal_have_no_r2() -> None:
    data = FormulaData.of(Points({"a": A}, np.full(40, 3.0), "y"), constant="c")
    assert not data.error.relative
    found = data.describe("c+c*x")
    assert math.isnan(found.r2)
    assert found.mse == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(("unit", "relative"), [(1e-3, True), (1.0, False), (1e5, True)])
def test_errors_are_relative_where_the_score_would_not_tell_formulas_apart(unit: float, relative: bool) -> None:
    points = Points({"a": A, "b": B}, unit * Y, "y")
    assert FormulaData.of(points).error.relative == relative
    assert FormulaData.of(points, relative=not relative).error.relative != relative
    assert FormulaData.of(points).facts.get("relative", False) == relative


def test_points_are_read_again_as_a_run_was_told_of_them(tmp_path: Path) -> None:
    path = tmp_path / "points.csv"
    rows = "".join(f"{a},{b},{y}\n" for a, b, y in zip(A, B, Y, strict=True))
    path.write_text("a,b [s],y\n1,,2\n" + rows)
    data = FormulaData.of(
        read_points(path, "a,b [s]", skip_missing=True), constant="c", relative=True, holdout=0.2, seed=5
    )
    again = FormulaData.read(path, data.facts)
    assert again is not None
    assert again.describe("c*a*b_s+c") == data.describe("c*a*b_s+c")
    assert again.facts == data.facts
    path.write_text(path.read_text().replace(str(Y[0]), "17"))
    assert FormulaData.read(path, data.facts) is None


@pytest.mark.parametrize(
    ("columns", "constant", "names"),
    [
        (["x1", "x2"], None, ["x1", "x2"]),
        (["T [K]", "dose (mg)"], None, ["T_K", "dose_mg"]),
        (["sin", "c"], "c", ["sin_", "c_"]),
        (["sin", "c"], None, ["sin_", "c"]),
        (["1st", "η", "__"], None, ["x1st", "x2", "x3"]),
        (["anything at all"], "c", ["x"]),
        (["a__b", "_a"], None, ["a__b", "_a"]),
    ],
)
def test_columns_are_called_what_formulas_can_hold(columns: list[str], constant: str | None, names: list[str]) -> None:
    found = variable_names(columns, constant)
    assert list(found) == names
    assert list(found.values()) == columns
    parse_expression("+".join(names), names, constant=constant)


def test_columns_that_formulas_would_call_the_same_are_refused() -> None:
    with pytest.raises(InputError, match="would call both column 'a b' and column 'a_b' a_b"):
        variable_names(["a b", "a_b"])
    with pytest.raises(InputError, match="'x2' and column 'η' x2"):
        variable_names(["x2", "η"])


@pytest.mark.parametrize("share", [0, 1, -0.5, 1.5, math.nan, 0.01, 0.99])
def test_shares_that_leave_too_few_rows_are_refused(share: float) -> None:
    with pytest.raises(InputError, match=r"expected a number between 0 and 1|each needs at least 2"):
        FormulaData.of(table(), holdout=share)
