"""Symbolic regression: how well a formula that is written as a string fits data.

Formulas are read by a small parser and computed with numpy; nothing of a string is ever run as Python.

References:
    Moss, H. B. (2021). General-purpose Information-Theoretical Bayesian Optimisation. PhD thesis, Lancaster
        University, section 4.6.3.
    Kusner, M. J., Paige, B., Hernandez-Lobato, J. M. (2017). Grammar variational autoencoder. ICML.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from seqopt.errors import InputError

if TYPE_CHECKING:
    from seqopt.objectives.constants import ConstantFit

FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "sin": np.sin,
    "cos": np.cos,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
}
"""Functions of one argument that an expression may call; ``log`` is the natural logarithm."""

MAX_NESTING = 50
"""Brackets, calls, signs and powers that may stand in one another."""

MAX_LENGTH = 10_000
"""Characters of an expression."""

LARGEST_ERROR = 1000.0
"""Mean squared error at which the score levels off."""

MOST_FITS = 20_000
"""Fits that are remembered."""

_OPERATORS: Mapping[str, Callable[..., Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "**": np.power,
    "(-)": np.negative,
}
ARITY = dict.fromkeys(_OPERATORS, 2) | dict.fromkeys((*FUNCTIONS, "(-)"), 1)
"""How many operands each operator and function takes; ``(-)`` is the sign."""

_TOKEN = re.compile(
    r"(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<sign>\*\*|[-+*/^()])"
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Expression:
    """A formula, read from a string by `parse_expression`.

    Attributes:
        text: As it was written.
        variables: The names that it may use.
        steps: The formula in reverse Polish notation: numbers, names of variables, operators and functions, and for
            each constant that is yet to be found its index, an integer from 0.
    """

    text: str
    variables: tuple[str, ...]
    steps: tuple[float | str | int, ...]

    @property
    def constants(self) -> int:
        """How many constants are yet to be found; each occurrence of the placeholder is one of its own."""
        return sum(isinstance(step, int) for step in self.steps)

    def __call__(
        self,
        values: Mapping[str, npt.NDArray[np.float64]],
        constants: Sequence[npt.ArrayLike] | npt.NDArray[np.float64] = (),
    ) -> npt.NDArray[np.float64]:
        """The formula's values.

        Args:
            values: An array for each variable, of shapes that go together.
            constants: What its placeholders stand for, in the order in which they are written; numbers, or arrays whose
                shapes go with those of ``values``.

        Returns:
            An array of the shape that numpy gives the result. Overflow and division by zero yield infinities, what is
            undefined, such as ``sqrt(-1)``, NaN, both without warnings.

        Raises:
            InputError: If there are more or fewer constants than placeholders.

        Example:
            >>> line = parse_expression("c*x+c", constant="c")
            >>> line({"x": np.array([0.0, 1.0])}, [2.0, 0.5]).tolist()
            [0.5, 2.5]
        """
        if len(constants) != self.constants:
            raise InputError(
                f"the expression {_shorten(self.text)} has {self.constants} constants to be found, and "
                f"{len(constants)} values are given for them"
            )
        stack: list[Any] = []
        with np.errstate(all="ignore"):
            for step in self.steps:
                if isinstance(step, float):
                    stack.append(np.float64(step))
                elif isinstance(step, int):
                    stack.append(np.asarray(constants[step], dtype=np.float64))
                elif step not in ARITY:
                    stack.append(np.asarray(values[step], dtype=np.float64))
                elif ARITY[step] == 1:
                    stack.append((FUNCTIONS.get(step) or _OPERATORS[step])(stack.pop()))
                else:
                    right = stack.pop()
                    stack.append(_OPERATORS[step](stack.pop(), right))
        return np.asarray(stack.pop(), dtype=np.float64)


def parse_expression(text: str, variables: Sequence[str] = ("x",), *, constant: str | None = None) -> Expression:
    """Read a formula.

    It may hold numbers (``2``, ``0.5``, ``1e-3``), the variables, ``+ - * /``, powers (``**`` or ``^``), signs,
    brackets, and the functions sin, cos, exp, log and sqrt. Precedence is that of Python and of mathematics: powers
    bind to the right and more tightly than signs, then come products and quotients, then sums and differences,
    from left to right. All the language of ``grammars/arithmetic.cfg`` is understood. Blanks count for nothing.

    Args:
        text: At most 10,000 characters, nested at most 50 deep.
        variables: Names, made of letters, digits and underscores; none may be that of a function.
        constant: A name that stands for a constant which is yet to be found, each time for another one; see
            `seqopt.objectives.fit_constants`. `None` for none.

    Raises:
        InputError: For anything else; the message gives the position, counted from 1.

    Example:
        >>> formula = parse_expression("1/3+x+sin(x*x)")
        >>> formula({"x": np.array([0.0, 1.0])}).round(3).tolist()
        [0.333, 2.175]
    """
    if not isinstance(text, str):
        raise InputError(f"an expression must be a str, got {text!r} of type {type(text).__name__}")
    if len(text) > MAX_LENGTH:
        raise InputError(f"the expression has {len(text):,} characters; at most {MAX_LENGTH:,} are read")
    names = checked_names(variables)
    if constant is not None and constant in checked_names((*names, constant))[:-1]:
        raise InputError(
            f"{constant!r} cannot be both a variable and a constant that is yet to be found: rename one of them"
        )
    return Expression(text, names, _Parser(text, names, constant).parse())


@dataclass(frozen=True, eq=False)
class ExpressionError:
    """Error of a formula on data, to be minimised: log(1 + min(MSE, 1000)).

    MSE is the mean over the points of (formula - y)^2. The score is 0 for a perfect fit and at most log(1001) = 6.909,
    which is also that of a formula with an undefined (NaN) or infinite value at any point (Kusner et al., 2017; thesis,
    section 4.6.3). Where values of y are in the thousands or in the millionths, all formulas score alike; ``relative``
    then helps.

    Args:
        x: The inputs: ``n`` numbers, or an ``n x d`` table, or columns by name. One column without a name is the
            variable ``x``, several are ``x1``, ``x2``, ...
        y: The ``n`` values to fit.
        constant: The name that stands for a constant in formulas, each time for another one. They are fitted by least
            squares before the error is computed: see `seqopt.objectives.fit_constants`. `None` for none.
        relative: Divide MSE by the variance of y, so that it has no unit, and is 1 for the best constant.
        seed: Of the starts of a fit, with the formula itself, so that a formula has one error whenever and wherever it
            is computed.

    Raises:
        InputError: If a column is empty, differs in length from ``y``, or holds something that is not a finite number
            (the message gives the column and the row, counted from 1), or a name cannot be that of a variable; or if
            ``relative`` is set and all values of ``y`` are equal.

    Example:
        >>> error = ExpressionError([0.0, 1.0, 2.0], [1.0, 2.0, 5.0])
        >>> error(["x*x+1", "1", "1/x"]).round(3).tolist()
        [0.0, 1.897, 6.909]
        >>> error = ExpressionError([0.0, 1.0, 2.0], [1.0, 2.0, 5.0], constant="c")
        >>> error(["c*x*x+c", "c"]).round(3).tolist()
        [0.0, 1.358]
    """

    x: npt.ArrayLike | Mapping[str, npt.ArrayLike]
    y: npt.ArrayLike
    constant: str | None = None
    relative: bool = False
    seed: int = 0
    _fits: dict[str, ConstantFit] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        target = _numbers(self.y, "y")
        columns = {name: _numbers(column, name) for name, column in _columns(self.x).items()}
        checked_names((*columns, *([] if self.constant is None else [self.constant])))
        if self.constant in columns:
            raise InputError(f"column {self.constant!r} cannot be called like the constants of formulas: rename it")
        for name, column in columns.items():
            if len(column) != len(target):
                raise InputError(f"column {name!r} has {len(column)} rows, but 'y' has {len(target)}")
        if self.relative and np.ptp(target) == 0:
            raise InputError(
                f"all {len(target)} values of 'y' are {target[0]:g}: an error relative to their variance is not defined"
            )
        object.__setattr__(self, "x", columns)
        object.__setattr__(self, "y", target)

    def __getstate__(self) -> dict[str, Any]:
        # Each process finds its own fits again: sending all of them with every call would take longer.
        return self.__dict__ | {"_fits": {}}

    @classmethod
    def from_csv(cls, path: str | os.PathLike[str], target: str = "y") -> ExpressionError:
        """The error on a table's points: column ``target`` is fitted, all others are variables.

        Args:
            path: A .csv or .tsv with a header.
            target: The name of a column, in letters of either case.

        Raises:
            InputError: If the file cannot be read, lacks the column, has no other, or has a cell that is not a finite
                number (the message gives its column and line).
        """
        from seqopt.datasets.tables import read_table

        table = read_table(Path(path))
        chosen = table.column(target, str(path))
        lines = [f"line {line} of {path}" for line in table.lines]
        columns = {name.strip(): _numbers(cells, name, lines) for name, cells in table.columns.items()}
        y = columns.pop(chosen.strip())
        if not columns:
            raise InputError(f"{path} has no column but {chosen!r}: the variables are missing")
        return cls(columns, y)

    @property
    def variables(self) -> tuple[str, ...]:
        """The names that formulas may use."""
        return tuple(self.inputs)

    def __call__(self, strings: Sequence[str]) -> npt.NDArray[np.float64]:
        """Errors of the formulas ``strings`` (``n``).

        Raises:
            InputError: For a string that is not a formula: see `parse_expression`.
        """
        if isinstance(strings, str):
            raise InputError(f"expected a list of formulas, got the single string {strings!r}: write [{strings!r}]")
        formulas = [self.parse(string) for string in strings]
        return np.array([self._score(formula) for formula in formulas], dtype=np.float64)

    def parse(self, string: str) -> Expression:
        """A formula of these variables, and of constants if there are any.

        Raises:
            InputError: For a string that is not a formula: see `parse_expression`.
        """
        return parse_expression(string, self.variables, constant=self.constant)

    def fit(self, string: str) -> ConstantFit:
        """The constants of a formula that fit best, and its mean squared error.

        Raises:
            InputError: For a string that is not a formula: see `parse_expression`.

        Example:
            >>> fit = ExpressionError([0.0, 1.0, 2.0], [1.0, 3.0, 5.0], constant="c").fit("c*x+c")
            >>> [round(value, 9) for value in fit.values]
            [2.0, 1.0]
        """
        return self._fit(self.parse(string))

    @property
    def inputs(self) -> dict[str, npt.NDArray[np.float64]]:
        """The columns by name."""
        inputs: Any = self.x
        return inputs

    @property
    def target(self) -> npt.NDArray[np.float64]:
        """The values to fit."""
        return np.asarray(self.y, dtype=np.float64)

    @property
    def unit(self) -> float:
        """What MSE is divided by in the score: 1, or the variance of y."""
        return float(np.var(self.target)) if self.relative else 1.0

    def _fit(self, formula: Expression) -> ConstantFit:
        from seqopt.objectives.constants import fit_constants

        found = self._fits.get(formula.text)
        if found is None:
            rng = np.random.default_rng([self.seed, *formula.text.encode()])
            found = fit_constants(formula, self.inputs, self.target, rng)
            if len(self._fits) >= MOST_FITS:
                self._fits.clear()
            self._fits[formula.text] = found
        return found

    def _score(self, formula: Expression) -> float:
        if formula.constants:
            error = self._fit(formula).mse
        else:
            with np.errstate(all="ignore"):
                error = float(np.mean((formula(self.inputs) - self.target) ** 2))
        error /= self.unit
        return math.log1p(LARGEST_ERROR if math.isnan(error) else min(error, LARGEST_ERROR))


def published_regression() -> ExpressionError:
    """The regression task of the BOSS experiments: 1/3 + x + sin(x * x) at 1,000 points from -10 to 10.

    The points are equidistant. The task is that of Kusner et al. (2017), which the thesis repeats (section 4.6.3).

    Example:
        >>> published_regression()(["1/3+x+sin(x*x)", "x"]).round(3).tolist()
        [0.0, 0.488]
    """
    x = np.linspace(-10, 10, 1000)
    return ExpressionError(x, 1 / 3 + x + np.sin(x * x))


class _Parser:
    """Recursive descent over the tokens of an expression, which it turns into reverse Polish notation."""

    def __init__(self, text: str, variables: Sequence[str], constant: str | None) -> None:
        self.text = text
        self.variables = variables
        self.constant = constant
        self.constants = 0
        self.tokens = self._split()
        self.position = 0
        self.depth = 0
        self.steps: list[float | str | int] = []

    def parse(self) -> tuple[float | str | int, ...]:
        self._sum()
        if self._peek():
            raise self._error("expected an operator")
        return tuple(self.steps)

    def _split(self) -> list[tuple[str, str, int]]:
        tokens, start = [], 0
        while start < len(self.text):
            if self.text[start].isspace():
                start += 1
                continue
            found = _TOKEN.match(self.text, start)
            if found is None:
                raise InputError(
                    f"the expression {_shorten(self.text)} has {self.text[start]!r} at position {start + 1}: "
                    "it may hold numbers, variables, + - * / ** ( ) and functions"
                )
            tokens.append((found.lastgroup or "", found.group(), start + 1))
            start = found.end()
        return [*tokens, ("end", "", len(self.text) + 1)]

    def _sum(self) -> None:
        self._product()
        while (operator := self._peek()) in ("+", "-"):
            self.position += 1
            self._product()
            self.steps.append(operator)

    def _product(self) -> None:
        self._signed()
        while (operator := self._peek()) in ("*", "/"):
            self.position += 1
            self._signed()
            self.steps.append(operator)

    def _signed(self) -> None:
        sign = self._peek()
        if sign not in ("+", "-"):
            self._power()
            return
        self.position += 1
        self._nested(self._signed)
        if sign == "-":
            self.steps.append("(-)")

    def _power(self) -> None:
        self._atom()
        if self._peek() in ("**", "^"):
            self.position += 1
            self._nested(self._signed)
            self.steps.append("**")

    def _atom(self) -> None:
        kind, token, _ = self.tokens[self.position]
        if kind == "number":
            number = float(token)
            if not math.isfinite(number):
                raise self._error("expected a number below 1.8e308")
            self.steps.append(number)
            self.position += 1
        elif token in self.variables:
            self.steps.append(token)
            self.position += 1
        elif token == self.constant:
            self.steps.append(self.constants)
            self.constants += 1
            self.position += 1
        elif token in FUNCTIONS:
            self.position += 1
            if self._peek() != "(":
                raise self._error(f"expected ( after {token}")
            self._bracket()
            self.steps.append(token)
        elif token == "(":
            self._bracket()
        elif kind == "name":
            constant = () if self.constant is None else (self.constant,)
            known = ", ".join([*self.variables, *constant, *FUNCTIONS])
            raise self._error(f"expected one of the names {known}")
        else:
            raise self._error("expected a number, a variable, a function or (")

    def _bracket(self) -> None:
        opened = self.tokens[self.position][2]
        self.position += 1
        self._nested(self._sum)
        if self._peek() != ")":
            raise self._error(f"expected an operator or the ) of position {opened}")
        self.position += 1

    def _nested(self, rule: Callable[[], None]) -> None:
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise self._error(f"nested more than {MAX_NESTING} deep")
        rule()
        self.depth -= 1

    def _peek(self) -> str:
        return self.tokens[self.position][1]

    def _error(self, problem: str) -> InputError:
        _, token, position = self.tokens[self.position]
        found = f"{_shorten(token)} at position {position}" if token else "its end"
        return InputError(f"the expression {_shorten(self.text)} cannot be read at {found}: {problem}")


def _columns(x: npt.ArrayLike | Mapping[str, npt.ArrayLike]) -> dict[str, Any]:
    if isinstance(x, Mapping):
        if not x:
            raise InputError("there is no column of x: give at least one")
        return {str(name): column for name, column in x.items()}
    if getattr(x, "ndim", 1) == 0 or not hasattr(x, "__iter__"):
        raise InputError(f"x must be a list, a table or columns by name, not {x!r}")
    given: Any = x
    rows: list[Any] = list(given)
    if not any(hasattr(row, "__iter__") and not isinstance(row, str | bytes) for row in rows):
        return {"x": rows}
    table = [list(row) if hasattr(row, "__iter__") and not isinstance(row, str) else [row] for row in rows]
    width = len(table[0])
    for number, row in enumerate(table, start=1):
        if len(row) != width:
            raise InputError(f"row {number} of x has {len(row)} cells, the first has {width}")
    if width == 0:
        raise InputError("x has rows without cells: give at least one column")
    names = ["x"] if width == 1 else [f"x{number}" for number in range(1, width + 1)]
    return {name: [row[index] for row in table] for index, name in enumerate(names)}


def _numbers(column: Any, name: str, locations: Sequence[str] | None = None) -> npt.NDArray[np.float64]:
    if isinstance(column, str) or not hasattr(column, "__iter__") or getattr(column, "ndim", 1) != 1:
        raise InputError(f"column {name!r} must be a list of numbers, not {_shorten(repr(column))}")
    numbers = []
    for row, cell in enumerate(column, start=1):
        try:
            number = float(cell)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number):
            location = locations[row - 1] if locations is not None else f"row {row} (counting from 1)"
            raise InputError(f"column {name!r} has {_shorten(str(cell))} in {location}: it must hold finite numbers")
        numbers.append(number)
    if not numbers:
        raise InputError(f"column {name!r} is empty: give at least one point")
    return np.array(numbers, dtype=np.float64)


def checked_names(variables: Sequence[str]) -> tuple[str, ...]:
    """The names, if all can be those of variables.

    Raises:
        InputError: If one cannot.
    """
    if isinstance(variables, str):
        raise InputError(f"expected a list of variables, got the single string {variables!r}: write [{variables!r}]")
    for name in variables:
        if not _NAME.fullmatch(name) or name in ARITY:
            raise InputError(
                f"{name!r} cannot be the name of a variable: use letters, digits and underscores, no digit first, and "
                f"none of {', '.join(FUNCTIONS)}"
            )
    return tuple(variables)


def _shorten(text: str, length: int = 60) -> str:
    return repr(text if len(text) <= length else text[: length - 3] + "...")
