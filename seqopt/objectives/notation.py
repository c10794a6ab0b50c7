"""Formulas as others read them: as text with few brackets, for Python, for spreadsheets, and as LaTeX."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from seqopt.objectives.expressions import ARITY, Expression

SUM, PRODUCT, SIGN, POWER, ATOM = range(5)
"""How tightly the outermost operation of a text binds."""

Text = tuple[str, int]
"""A text, and how tightly its outermost operation binds."""

_LETTER = re.compile(r"([A-Za-z])_?([0-9]*)")


def plain_text(formula: Expression, constants: Sequence[float] = ()) -> str:
    """A formula with numbers for its constants, which `seqopt.objectives.parse_expression` and Python read alike.

    Args:
        formula: The formula.
        constants: One for each placeholder.

    Example:
        >>> from seqopt.objectives import parse_expression
        >>> plain_text(parse_expression("(c*(x))+c*(x+c)", constant="c"), [2.0, -0.5, 1.25])
        '2*x-0.5*(x+1.25)'
    """
    return _written(formula, constants, _Plain())


def numpy_text(formula: Expression, constants: Sequence[float] = ()) -> str:
    """The same for Python with ``import numpy as np``.

    Example:
        >>> from seqopt.objectives import parse_expression
        >>> numpy_text(parse_expression("c*log(x)", constant="c"), [2.0])
        '2*np.log(x)'
    """
    return _written(formula, constants, _Plain(dict.fromkeys(("sin", "cos", "exp", "log", "sqrt"), "np.{}({})")))


def spreadsheet_text(
    formula: Expression, constants: Sequence[float] = (), names: Mapping[str, str] | None = None
) -> str:
    """The same for the cell of a table in a spreadsheet, in which columns are named ``[@name]``; begin it with ``=``.

    Signs bind more tightly than powers there, and powers go from left to right, so that both are put in brackets.

    Args:
        formula: The formula.
        constants: One for each placeholder.
        names: What the columns of the table are called, by variable; a variable's own name where it is missing.

    Example:
        >>> from seqopt.objectives import parse_expression
        >>> spreadsheet_text(parse_expression("-x**2*log(c*x)", constant="c"), [-0.5], {"x": "dose (mg)"})
        '-([@[dose (mg)]]^2)*LN(-0.5*[@[dose (mg)]])'
    """
    return _written(formula, constants, _Spreadsheet(names or {}))


def latex_text(formula: Expression, constants: Sequence[float] = ()) -> str:
    r"""The same for LaTeX, in mathematical mode.

    Example:
        >>> from seqopt.objectives import parse_expression
        >>> print(latex_text(parse_expression("c*exp(x1/2)**2+day_2", ("x1", "day_2"), constant="c"), [1e-5]))
        1 \cdot 10^{-5} \cdot \left(e^{\frac{x_{1}}{2}}\right)^{2} + \mathrm{day\_2}
    """
    return _written(formula, constants, _Latex())


def outline(formula: Expression, constant: str) -> str:
    """A formula as `plain_text` writes it, with ``constant`` in place of the numbers of its constants.

    Example:
        >>> from seqopt.objectives import parse_expression
        >>> outline(parse_expression("(c*(x))+c*(x+c)", constant="c"), "c")
        'c*x+c*(x+c)'
    """
    steps = tuple(constant if isinstance(step, int) else step for step in formula.steps)
    return plain_text(replace(formula, steps=steps))


def number_text(value: float) -> str:
    """A number as briefly as it can be read back exactly.

    Example:
        >>> number_text(2.0), number_text(0.1), number_text(1e22), number_text(-1.5e-7)
        ('2', '0.1', '1e+22', '-1.5e-07')
    """
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))


class _Plain:
    """How Python writes formulas."""

    plus, minus, times = "+", "-", "*"

    def __init__(self, calls: Mapping[str, str] | None = None) -> None:
        self.calls = calls or {}

    def number(self, value: float) -> Text:
        text = number_text(value)
        return text, SIGN if text.startswith("-") else ATOM

    def variable(self, name: str) -> str:
        return name

    def bracket(self, text: str) -> str:
        return f"({text})"

    def call(self, name: str, text: str) -> Text:
        return self.calls.get(name, "{}({})").format(name, text), ATOM

    def quotient(self, left: Text, right: Text) -> Text:
        return f"{self.at_least(left, PRODUCT)}/{self.factor(right, POWER)}", PRODUCT

    def power(self, left: Text, right: Text) -> Text:
        return f"{self.at_least(left, ATOM)}**{self.at_least(right, ATOM)}", POWER

    def negative(self, operand: Text) -> Text:
        return f"-{self.factor(operand, PRODUCT)}", SIGN

    def at_least(self, text: Text, level: int) -> str:
        return text[0] if text[1] >= level else self.bracket(text[0])

    def factor(self, text: Text, level: int) -> str:
        """In brackets also where it begins with a sign."""
        return self.bracket(text[0]) if text[0].startswith("-") else self.at_least(text, level)


class _Spreadsheet(_Plain):
    """How spreadsheets do."""

    def __init__(self, names: Mapping[str, str]) -> None:
        super().__init__({"log": "LN({1})"})
        self.names = names

    def variable(self, name: str) -> str:
        column = re.sub(r"(['#\[\]@])", r"'\1", self.names.get(name, name))
        return f"[@{column}]" if re.fullmatch(r"\w+", column) else f"[@[{column}]]"

    def call(self, name: str, text: str) -> Text:
        return self.calls.get(name, "{}({})").format(name.upper(), text), ATOM

    def power(self, left: Text, right: Text) -> Text:
        return f"{self.at_least(left, ATOM)}^{self.at_least(right, ATOM)}", POWER

    def negative(self, operand: Text) -> Text:
        return f"-{self.factor(operand, ATOM)}", SIGN


class _Latex(_Plain):
    """How LaTeX does."""

    plus, minus, times = " + ", " - ", r" \cdot "
    names: Mapping[str, str] = {"sin": r"\sin", "cos": r"\cos", "log": r"\ln"}

    def number(self, value: float) -> Text:
        digits, scientific, exponent = number_text(value).partition("e")
        text = rf"{digits} \cdot 10^{{{int(exponent)}}}" if scientific else digits
        return text, PRODUCT if scientific else SIGN if text.startswith("-") else ATOM

    def variable(self, name: str) -> str:
        found = _LETTER.fullmatch(name)
        if found is None:
            return r"\mathrm{" + name.replace("_", r"\_") + "}"
        return f"{found[1]}_{{{found[2]}}}" if found[2] else found[1]

    def bracket(self, text: str) -> str:
        return rf"\left({text}\right)"

    def call(self, name: str, text: str) -> Text:
        if name == "sqrt":
            return rf"\sqrt{{{text}}}", ATOM
        if name == "exp":
            return f"e^{{{text}}}", POWER
        return self.names[name] + self.bracket(text), SIGN

    def quotient(self, left: Text, right: Text) -> Text:
        return rf"\frac{{{left[0]}}}{{{right[0]}}}", POWER

    def power(self, left: Text, right: Text) -> Text:
        return f"{self.at_least(left, ATOM)}^{{{right[0]}}}", POWER


def _written(formula: Expression, constants: Sequence[float], style: _Plain) -> str:
    stack: list[Text] = []
    for step in formula.steps:
        if isinstance(step, int):
            stack.append(style.number(float(constants[step])))
        elif isinstance(step, float):
            stack.append(style.number(step))
        elif step not in ARITY:
            stack.append((style.variable(step), ATOM))
        elif ARITY[step] == 1:
            operand = stack.pop()
            stack.append(style.negative(operand) if step == "(-)" else style.call(step, operand[0]))
        else:
            right, left = stack.pop(), stack.pop()
            stack.append(_joined(style)[step](left, right))
    return stack.pop()[0]


def _joined(style: _Plain) -> Mapping[str, Callable[[Text, Text], Text]]:
    def added(left: Text, right: Text) -> Text:
        if right[0].startswith("-"):
            return f"{left[0]}{style.minus}{right[0][1:]}", SUM
        return f"{left[0]}{style.plus}{right[0]}", SUM

    def subtracted(left: Text, right: Text) -> Text:
        if right[1] > SUM and right[0].startswith("-"):
            return f"{left[0]}{style.plus}{right[0][1:]}", SUM
        return f"{left[0]}{style.minus}{style.at_least(right, PRODUCT)}", SUM

    def multiplied(left: Text, right: Text) -> Text:
        return f"{style.at_least(left, PRODUCT)}{style.times}{style.factor(right, PRODUCT)}", PRODUCT

    return {"+": added, "-": subtracted, "*": multiplied, "/": style.quotient, "**": style.power}


def folded(formula: Expression, constants: Sequence[float]) -> tuple[Expression, tuple[float, ...]]:
    """A formula of the same values with fewer constants: those that only stand with one another are made one.

    Parts without variables become one constant each, and so do two that a term is multiplied or divided by, or that are
    added to it, one after the other; a part whose value is not finite stays as it is. Numbers that were in the formula
    stay, unless they stand with a constant alone.

    Args:
        formula: The formula.
        constants: One for each placeholder.

    Returns:
        The formula, and its constants.

    Example:
        >>> from seqopt.objectives import parse_expression
        >>> formula, values = folded(parse_expression("x*c/c+exp(c)+2*x", constant="c"), [3.0, 2.0, 0.0])
        >>> plain_text(formula, values)
        'x*1.5+1+2*x'
    """
    # Of each part its steps, with the values of constants in place of their indices, boxed to tell them from numbers.
    stack: list[list[float | str | _Constant]] = []
    for step in formula.steps:
        if isinstance(step, int):
            stack.append([_Constant(float(constants[step]))])
        elif isinstance(step, float) or step not in ARITY:
            stack.append([step])
        else:
            operands = [stack.pop() for _ in range(ARITY[step])][::-1]
            joined = [one for operand in operands for one in operand]
            stack.append(_alone(operands, step) or _chained(operands, step) or [*joined, step])
    values: list[float] = []
    steps: list[float | str | int] = []
    for one in stack.pop():
        if isinstance(one, _Constant):
            steps.append(len(values))
            values.append(one.value)
        else:
            steps.append(one)
    return replace(formula, steps=tuple(steps)), tuple(values)


@dataclass(frozen=True)
class _Constant:
    """A constant that has been fitted, as a step of a formula."""

    value: float


_Steps = list[float | str | _Constant]


def _alone(operands: list[_Steps], operation: str) -> _Steps | None:
    """A constant in place of an operation on constants; `None` where there are other operands."""
    if not all(len(operand) == 1 and isinstance(operand[0], _Constant | float) for operand in operands):
        return None
    if not any(isinstance(operand[0], _Constant) for operand in operands):
        return None
    values = [one.value if isinstance(one, _Constant) else one for [one] in operands]
    steps = tuple(float(value) for value in values)
    made = float(Expression("", (), (*steps, operation))({}))
    return [_Constant(made)] if math.isfinite(made) else None


_CHAINS: Mapping[tuple[str, str], tuple[str, str]] = {
    ("*", "*"): ("*", "*"),
    ("*", "/"): ("/", "*"),
    ("/", "/"): ("*", "/"),
    ("/", "*"): ("/", "/"),
    ("+", "+"): ("+", "+"),
    ("+", "-"): ("-", "+"),
    ("-", "-"): ("+", "-"),
    ("-", "+"): ("-", "-"),
}
"""By two operations in a row, with a constant on the right of each: that of the constants, and that with the result."""


def _chained(operands: list[_Steps], operation: str) -> _Steps | None:
    """One operation with a constant in place of two in a row; `None` where there are no two."""
    if len(operands) != 2 or len(operands[0]) < 3 or len(operands[1]) != 1:
        return None
    [*rest, first, before], [second] = operands
    if not isinstance(first, _Constant) or not isinstance(second, _Constant) or (before, operation) not in _CHAINS:
        return None
    between, after = _CHAINS[str(before), operation]
    made = _alone([[first], [second]], between)
    return None if made is None else [*rest, *made, after]


def rounded(value: float, digits: int) -> float:
    """A number with so many significant digits.

    Example:
        >>> rounded(3.14159, 3), rounded(-123456.0, 2), rounded(0.0, 4)
        (3.14, -120000.0, 0.0)
    """
    return float(f"{value:.{digits}g}") if math.isfinite(value) else value
