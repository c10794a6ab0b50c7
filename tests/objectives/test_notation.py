"""Formulas as text for others: read again by our parser, by numpy, as spreadsheets read them, and by sympy."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqopt.objectives import Expression, parse_expression
from seqopt.objectives.notation import folded, latex_text, numpy_text, plain_text, spreadsheet_text

X = np.array([0.3, 1.0, 1.7, 2.5])
POINTS = {"x": X, "dose_1": X[::-1].copy()}


def formulas() -> st.SearchStrategy[str]:
    """Formulas of two variables and constants, with and without brackets."""

    def grow(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        pairs = st.tuples(children, st.sampled_from(["+", "-", "*", "/", "**"]), children)
        calls = st.tuples(st.sampled_from(["sin", "cos", "exp", "log", "sqrt"]), children)
        return (
            pairs.map(lambda p: f"({p[0]}){p[1]}({p[2]})")
            | calls.map(lambda call: f"{call[0]}({call[1]})")
            | children.map(lambda child: f"-({child})")
        )

    return st.recursive(st.sampled_from(["c", "x", "dose_1", "2", "0.5", "1e-7"]), grow, max_leaves=8)


def constants_of(formula: Expression, seed: int) -> list[float]:
    rng = np.random.default_rng(seed)
    return np.round(rng.normal(size=formula.constants) * 10.0 ** rng.integers(-3, 4), 4).tolist()


def assert_same(found: Any, expected: Any) -> None:
    """Equal to rounding where both are moderate: brackets that do not matter are left out."""
    found, expected = np.broadcast_to(found, X.shape), np.broadcast_to(expected, X.shape)
    moderate = np.isfinite(expected) & (np.abs(expected) < 1e8)
    np.testing.assert_allclose(found[moderate], expected[moderate], rtol=1e-5, atol=1e-6)


@given(formulas(), st.integers(0, 1000))
def test_texts_have_the_values_of_the_formula(text: str, seed: int) -> None:
    formula = parse_expression(text, tuple(POINTS), constant="c")
    constants = constants_of(formula, seed)
    expected = formula(POINTS, constants)
    assert_same(parse_expression(plain_text(formula, constants), tuple(POINTS))(POINTS), expected)
    with np.errstate(all="ignore"):
        # Numbers as numpy's, since Python's own refuse to overflow and make complex numbers.
        code = re.sub(r"(?<![\w.])([0-9.]+(?:e[+-]?[0-9]+)?)", r"np.float64(\1)", numpy_text(formula, constants))
        assert_same(eval(code, {"np": np, **POINTS}), expected)
        assert_same(as_spreadsheets_do(spreadsheet_text(formula, constants)), expected)


@given(formulas(), st.integers(0, 1000))
def test_folding_keeps_values_and_never_adds_constants(text: str, seed: int) -> None:
    formula = parse_expression(text, tuple(POINTS), constant="c")
    constants = constants_of(formula, seed)
    shorter, fewer = folded(formula, constants)
    assert len(fewer) == shorter.constants <= formula.constants
    assert_same(shorter(POINTS, fewer), formula(POINTS, constants))


@pytest.mark.parametrize(
    ("text", "constants", "expected"),
    [
        ("x*c/c", [3, 2], "x*1.5"),
        ("x/c/c", [3, 2], "x/6"),
        ("x-c+c", [3, 2], "x-1"),
        ("sin(c)*x+c*c", [0, 2, 3], "0*x+6"),
        ("c*x*c", [2, 3], "2*x*3"),
        ("x/c*c", [4, 2], "x/2"),
        ("x+log(c)", [-1], "x+log(-1)"),
        ("x*c**2", [3], "x*9"),
    ],
)
def test_constants_that_stand_together_become_one(text: str, constants: list[float], expected: str) -> None:
    assert plain_text(*folded(parse_expression(text, constant="c"), constants)) == expected


@pytest.mark.parametrize(
    ("text", "constants", "plain"),
    [
        ("c*x+c", [2, -0.5], "2*x-0.5"),
        ("x-c", [-3], "x+3"),
        ("x-(c+x)", [-3], "x-(-3+x)"),
        ("c**2", [-3], "(-3)**2"),
        ("x*c", [-3], "x*(-3)"),
        ("-(x+1)", [], "-(x+1)"),
        ("(x+1)*(x)/((2))", [], "(x+1)*x/2"),
        ("2-(x-1)", [], "2-(x-1)"),
        ("x/(x*2)", [], "x/(x*2)"),
    ],
)
def test_brackets_stand_where_they_are_needed(text: str, constants: list[float], plain: str) -> None:
    assert plain_text(parse_expression(text, constant="c"), constants) == plain


@settings(max_examples=30, deadline=None)
@given(formulas(), st.integers(0, 1000))
def test_latex_is_balanced(text: str, seed: int) -> None:
    formula = parse_expression(text, tuple(POINTS), constant="c")
    latex = latex_text(formula, constants_of(formula, seed))
    assert latex.count("{") == latex.count("}")
    assert latex.count(r"\left(") == latex.count(r"\right)")


@pytest.mark.parametrize(
    "text", ["c*exp(c*x)+c", "x/(c+x**2)", "sin(c*x)**2-log(x)", "sqrt(x+c)*(x-c)", "-(x-c)/c", "(x/c)**3", "exp(x)**2"]
)
def test_sympy_reads_the_latex_as_the_formula(text: str) -> None:
    pytest.importorskip("lark")
    sympy = pytest.importorskip("sympy")
    latex_of = pytest.importorskip("sympy.parsing.latex")
    formula = parse_expression(text, constant="c")
    constants = [1.5, 2.25, 0.75][: formula.constants]
    latex = latex_text(formula, constants).replace(r"\left", "").replace(r"\right", "")
    read = latex_of.parse_latex(latex, backend="lark")
    for value in X:
        number = complex(read.subs({sympy.Symbol("x"): value, sympy.Symbol("e"): np.e}).evalf())
        assert number == pytest.approx(complex(formula({"x": np.array(value)}, constants)), rel=1e-9)


def test_columns_of_spreadsheets_are_quoted() -> None:
    formula = parse_expression("x*dose_1", tuple(POINTS))
    names = {"x": "T [K] #1", "dose_1": "dose"}
    assert spreadsheet_text(formula, names=names) == "[@[T '[K'] '#1]]*[@dose]"


def as_spreadsheets_do(text: str) -> Any:
    """The value of a formula by the rules of spreadsheets: signs first, then powers from left to right."""
    tokens = re.findall(r"\[@\w+\]|[A-Z]+(?=\()|[0-9.]+(?:e[+-]?[0-9]+)?|[-+*/^()]", text)
    assert "".join(tokens) == text
    functions = {"SIN": np.sin, "COS": np.cos, "EXP": np.exp, "LN": np.log, "SQRT": np.sqrt}
    position = 0

    def take() -> str:
        nonlocal position
        position += 1
        return tokens[position - 1]

    def peek() -> str:
        return tokens[position] if position < len(tokens) else ""

    def chain(operations: dict[str, Any], inner: Any) -> Any:
        value = inner()
        while peek() in operations:
            value = operations[take()](value, inner())
        return value

    def total() -> Any:
        return chain({"+": np.add, "-": np.subtract}, lambda: chain({"*": np.multiply, "/": np.divide}, powers))

    def powers() -> Any:
        return chain({"^": np.power}, signed)

    def signed() -> Any:
        if peek() == "-":
            take()
            return -signed()
        token = take()
        if token == "(":
            value = total()
            assert take() == ")"
            return value
        if token in functions:
            assert take() == "("
            value = total()
            assert take() == ")"
            return functions[token](value)
        return POINTS[token[2:-1]] if token.startswith("[") else np.float64(token)

    value = total()
    assert position == len(tokens)
    return value
