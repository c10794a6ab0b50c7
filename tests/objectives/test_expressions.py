"""Symbolic regression: formulas against Python's arithmetic, and what is refused."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.parse.generate import generate

from seqopt.errors import InputError
from seqopt.evaluation import evaluate
from seqopt.grammar import load_grammar
from seqopt.objectives import ExpressionError, parse_expression, published_regression, resolve_objective

X = np.array([-3.0, -1.0, -0.5, 0.0, 0.25, 1.0, 2.0, 7.5])
POINTS = {"x": X, "t_1": np.linspace(2, -2, len(X))}
FUNCTIONS: dict[str, Any] = {"sin": np.sin, "cos": np.cos, "exp": np.exp, "log": np.log, "sqrt": np.sqrt}

Tree = tuple[str, Any]


def trees() -> st.SearchStrategy[Tree]:
    """A formula in brackets throughout, and its values by numpy."""
    leaves = st.sampled_from(list(POINTS.items())) | st.sampled_from(
        [("2", 2.0), ("0.5", 0.5), (".25", 0.25), ("1e-3", 1e-3), ("3.", 3.0)]
    ).map(lambda leaf: (leaf[0], np.float64(leaf[1])))

    def grow(children: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
        binary = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "**": np.power, "^": np.power}
        calls = st.tuples(st.sampled_from(list(FUNCTIONS)), children).map(
            lambda made: (f"{made[0]}({made[1][0]})", FUNCTIONS[made[0]](made[1][1]))
        )
        pairs = st.tuples(st.sampled_from(list(binary)), children, children).map(
            lambda made: (f"({made[1][0]}) {made[0]} ({made[2][0]})", binary[made[0]](made[1][1], made[2][1]))
        )
        signs = children.map(lambda child: (f"-({child[0]})", -child[1]))
        return calls | pairs | signs

    return st.recursive(leaves, grow, max_leaves=12)


@given(st.data())
def test_random_trees_have_the_values_of_numpy(data: st.DataObject) -> None:
    with np.errstate(all="ignore"):
        text, expected = data.draw(trees())
    values = parse_expression(text, tuple(POINTS))(POINTS)
    np.testing.assert_array_equal(np.broadcast_to(values, X.shape), np.broadcast_to(expected, X.shape))


@given(
    operands=st.lists(st.sampled_from(["x", "-x", "2.0", "-3.0", "+1.5", "(x-1.0)", "--x"]), min_size=1, max_size=6),
    operators=st.lists(st.sampled_from(["+", "-", "*", "/", "**"]), min_size=5, max_size=5),
    x=st.sampled_from([2.0, 0.5, 3.0]),
)
def test_precedence_is_that_of_python(operands: list[str], operators: list[str], x: float) -> None:
    text = operands[0] + "".join(o + operand for o, operand in zip(operators, operands[1:], strict=False))
    with np.errstate(all="ignore"):
        try:
            expected = eval(text, {"x": x})
        except (ZeroDivisionError, OverflowError):
            return
    # Python makes complex numbers of negative bases, which here are undefined.
    if isinstance(expected, complex):
        return
    (value,) = np.atleast_1d(parse_expression(text)({"x": np.float64(x)}))
    if not math.isnan(value):
        assert value == pytest.approx(expected, rel=1e-12)


def test_the_language_of_the_grammar_is_understood() -> None:
    grammar = load_grammar("arithmetic")
    namespace = {**FUNCTIONS, "x": X, "number": np.float64}
    seen = 0
    for tokens in generate(grammar, depth=5, n=4000):
        text = "".join(tokens)
        with np.errstate(all="ignore"):
            # Numbers as numpy's, since Python's own refuse to overflow.
            expected = eval("".join(f"number({token})" if token in "123" else token for token in tokens), namespace)
        values = parse_expression(text)({"x": X})
        np.testing.assert_array_equal(np.broadcast_to(values, X.shape), np.broadcast_to(expected, X.shape))
        seen += 1
    assert seen > 500


def test_scores_are_those_of_the_paper() -> None:
    x = np.array([1.0, 2.0, 3.0])
    error = ExpressionError(x, 2 * x)
    assert error(["2*x"]).tolist() == [0.0]
    # Residuals 1, 2, 3 make a mean square of 14 / 3.
    assert error(["x"])[0] == pytest.approx(math.log(1 + 14 / 3))
    assert error(["1"])[0] == pytest.approx(math.log(1 + (1 + 9 + 25) / 3))
    worst = math.log(1001)
    # Far off, infinite at one point, overflow, undefined, undefined at one point.
    undefined = ["log(0-x)", "sqrt(x-2)", "(x-2)/(x-2)", "0/0"]
    for formula in ("1000*x", "1/(x-2)", "exp(exp(exp(x)))", "9**9**9**9", *undefined):
        assert error([formula])[0] == pytest.approx(worst), formula


def test_the_published_task_is_the_published_task() -> None:
    error = published_regression()
    assert error(["1/3+x+sin(x*x)"])[0] == pytest.approx(0, abs=1e-30)
    x = np.linspace(-10, 10, 1000)
    target = 1 / 3 + x + np.sin(x * x)
    for formula, values in (("x", x), ("x+sin(x)", x + np.sin(x)), ("3", 3 + 0 * x)):
        assert error([formula])[0] == pytest.approx(math.log(1 + np.mean((values - target) ** 2)))
    assert len(error.y) == 1000  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cannot be read at its end: expected a number"),
        ("  ", "cannot be read at its end"),
        ("x+", "at its end: expected a number, a variable"),
        ("x x", "at 'x' at position 3: expected an operator"),
        ("2x", "at 'x' at position 2: expected an operator"),
        ("(x+1", r"at its end: expected an operator or the \) of position 1"),
        ("x+1)", r"at '\)' at position 4: expected an operator"),
        ("sin x", r"at 'x' at position 5: expected \( after sin"),
        ("sin", r"its end: expected \( after sin"),
        ("()", r"at '\)' at position 2"),
        ("*x", r"at '\*' at position 1"),
        ("y", "at 'y' at position 1: expected one of the names x, sin, cos, exp, log, sqrt"),
        ("1e999", "at '1e999' at position 1: expected a number below"),
        ("x//2", "at '/' at position 3"),
        ("x%2", "has '%' at position 2"),
        ("x=1", "has '=' at position 2"),
        ("x,1", "has ',' at position 2"),
        ("0x10", "at 'x10' at position 2"),
        ("1_000", "at '_000' at position 2"),
        ("٣", "has '٣' at position 1"),
        ("ｘ", "has 'ｘ' at position 1"),
        ("x" * 10_001, "has 10,001 characters; at most 10,000"),
    ],
)
def test_what_is_no_formula_is_refused_with_its_position(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_expression(text)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "__import__",
        "open('/etc/passwd')",
        "eval('1')",
        "exec(x)",
        "x.__class__",
        "x.shape",
        "().__class__.__bases__",
        "[x for x in x]",
        "lambda: x",
        "(lambda x: x)(x)",
        "x if x else x",
        "x;x",
        "x\\\n",
        "'x'",
        'f"{x}"',
        "x[0]",
        "{x}",
        "np.sin(x)",
        "numpy",
        "print(x)",
        "sin(x, x)",
        "sin(*x)",
        "x:=1",
        "1j",
        "True",
        "nan",
        "inf",
        "x@x",
        "x<1",
        "not x",
        "~x",
        "x#",
        "$x",
        "\0x",
    ],
)
def test_code_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        parse_expression(text)
    (result,) = evaluate(published_regression(), [text])
    assert not result.ok
    assert result.error.startswith("InputError: the expression")


def test_nesting_is_limited_and_length_is_no_problem() -> None:
    for opening, closing in (("(", ")"), ("sin(", ")"), ("-", ""), ("+", ""), ("2**", ""), ("x^-", "")):
        parse_expression(opening * 25 + "x" + closing * 25)
        for times in (60, 1500):
            with pytest.raises(InputError, match="nested more than 50 deep"):
                parse_expression(opening * times + "x" + closing * times)
    assert parse_expression("+".join(["x"] * 5000))({"x": X}) == pytest.approx(5000 * X)
    assert parse_expression("-".join(["(x)"] * 2000))({"x": X}) == pytest.approx(-1998 * X)


def test_several_variables_can_be_named_or_numbered() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 30))
    for error, formula in (
        (ExpressionError({"a": a, "b_2": b}, a * b - 1), "a*b_2-1"),
        (ExpressionError(np.column_stack([a, b]), a * b - 1), "x1*x2-1"),
        (ExpressionError(np.column_stack([a, b]).tolist(), a * b - 1), "x1*x2-1"),
        (ExpressionError(a[:, None], a * a - 1), "x*x-1"),
        (ExpressionError(a.tolist(), a * a - 1), "x^2-1"),
    ):
        assert error([formula])[0] == pytest.approx(0, abs=1e-12)
    assert ExpressionError({"a": a, "b_2": b}, a).variables == ("a", "b_2")


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ([1, "two", 3], [1, 2, 3], r"column 'x' has 'two' in row 2 \(counting from 1\)"),
        ([1, 2], [1, None], "column 'y' has 'None' in row 2"),
        ([[1, 2], [3, "?"]], [1, 2], "column 'x2' has '\\?' in row 2"),
        ({"a": [1.0, math.nan]}, [1, 2], "column 'a' has 'nan' in row 2"),
        ({"a": [1.0, "inf"]}, [1, 2], "column 'a' has 'inf' in row 2"),
        ({"a": [1.0, 2.0, 3.0]}, [1, 2], "column 'a' has 3 rows, but 'y' has 2"),
        ([[1, 2], [3]], [1, 2], "row 2 of x has 1 cells, the first has 2"),
        ({"sin": [1.0]}, [1.0], "'sin' cannot be the name of a variable"),
        ({"dose (mg)": [1.0]}, [1.0], r"'dose \(mg\)' cannot be the name of a variable"),
        ({}, [1.0], "no column of x"),
        ([], [], "column 'y' is empty"),
        ([1.0], "1", "column 'y' must be a list of numbers"),
        (1.0, [1.0], "x must be a list, a table or columns by name"),
    ],
)
def test_columns_that_are_no_numbers_are_explained(x: Any, y: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ExpressionError(x, y)


def test_points_can_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "xy.csv"
    path.write_text("dose,Y,time\n1,3,2\n2,7,5\n0.5,4.5,4\n")
    error = ExpressionError.from_csv(path)
    assert error.variables == ("dose", "time")
    assert error(["dose+time", "dose"]).round(9).tolist() == [0, round(math.log(1 + (4 + 25 + 16) / 3), 9)]
    objective = resolve_objective(f"expression_error:{path}")
    assert objective(["dose+time"]).tolist() == [0]
    assert objective.direction == "minimize"
    path.write_text("x,y\n1,2\n\n3,four\n")
    with pytest.raises(InputError, match=r"column 'y' has 'four' in line 4 of .*xy\.csv"):
        ExpressionError.from_csv(path)
    with pytest.raises(InputError, match="no column 'z'; its columns are 'x', 'y'"):
        ExpressionError.from_csv(path, target="z")
    path.write_text("y\n1\n")
    with pytest.raises(InputError, match="no column but 'y'"):
        ExpressionError.from_csv(path)
    with pytest.raises(InputError, match="there is no file"):
        ExpressionError.from_csv(tmp_path / "absent.csv")


def test_errors_are_silent_can_be_sent_elsewhere_and_take_lists(capfd: pytest.CaptureFixture[str]) -> None:
    error = published_regression()
    copy = pickle.loads(pickle.dumps(error))
    formulas = ["x", "1/0", "exp(exp(exp(x)))", "log(x)", "x^x"]
    assert copy(formulas).tolist() == error(formulas).tolist()
    assert [result.value for result in evaluate(error, formulas)] == error(formulas).tolist()
    assert capfd.readouterr() == ("", "")
    assert error([]).shape == (0,)
    with pytest.raises(InputError, match=r"write \['x'\]"):
        error("x")
    with pytest.raises(InputError, match="must be a str, got 3"):
        error([3])  # type: ignore[list-item]
