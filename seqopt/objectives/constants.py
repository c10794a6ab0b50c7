"""The constants of a formula, fitted to data by least squares.

A formula such as ``c*exp(c*x)+c`` is linear in some of its constants once the others are known. Those are solved for
exactly at every start, so that starts are needed for the others only; the best few starts are then refined in all
constants together, by a trust-region method with exact derivatives.

References:
    Golub, G. H., Pereyra, V. (1973). The differentiation of pseudo-inverses and nonlinear least squares problems whose
        variables separate. SIAM J. Numer. Anal. 10, 413-432.
    Branch, M. A., Coleman, T. F., Li, Y. (1999). A subspace, interior, and conjugate gradient method for large-scale
        bound-constrained minimization problems. SIAM J. Sci. Comput. 21, 1-23 (`scipy.optimize.least_squares`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from seqopt.errors import InputError
from seqopt.objectives.expressions import ARITY, Expression
from seqopt.utils.arguments import checked_integer

FloatArray = npt.NDArray[np.float64]
Inputs = Mapping[str, FloatArray]

STARTS = 128
"""Random values of the constants that a fit begins with."""

REFINED = 4
"""Of these, how many are refined."""

APART = 0.2
"""Root mean square by which the curves of two starts differ, in spreads of the target, if both are to be refined."""

STEPS = 40
"""Steps of a refinement."""

SCREENED_POINTS = 500
"""Points beyond which starts are compared and refined on a random part of them."""

LAST_STEPS = 10
"""Steps on all points, where there are more."""

LARGEST = 1e6
"""Size of a constant, in units of the data, beyond which it has run away."""

SUFFICIENT = 1e-12
"""Error of a fit, relative to the spread of the values, that is not improved further."""

_HUGE = 1e150
_RANK = 1e-12


@dataclass(frozen=True)
class ConstantFit:
    """The constants of a formula, fitted.

    Attributes:
        values: One for each placeholder, in the order in which they are written; empty if no values within reach make
            the formula finite at all points, or if it has none.
        mse: Mean squared error over all points, in squared units of the target; infinite or NaN where the formula is
            not finite at all points.
        evaluations: How often the formula was computed for the fit, on all or part of the points; a derivative in all
            constants counts once.
    """

    values: tuple[float, ...]
    mse: float
    evaluations: int


def fit_constants(
    formula: Expression,
    inputs: Inputs,
    target: npt.ArrayLike,
    rng: np.random.Generator,
    *,
    starts: int = STARTS,
    refined: int = REFINED,
    steps: int = STEPS,
) -> ConstantFit:
    """Find the constants of a formula that minimise the mean squared error.

    Starts are a Latin hypercube, log-uniform over two decades around 1 or around one of the units of the data (standard
    deviations of the target and the inputs, their ratio, and inverses of those of the inputs), with either sign. At
    each, the constants that the formula is linear in are solved for. The best ones of those whose curves differ are
    refined. What is not finite at every point is never chosen; neither are constants that have run away: larger than a
    million of the largest of these units (and of 1). The time is bounded: at most
    ``starts * (2 + linear constants) + refined * (2 * steps + 1) + 1`` computations of the formula on at most 500
    points, then some 20 on all points if there are more.

    Args:
        formula: Read by `seqopt.objectives.parse_expression` with ``constant=``.
        inputs: The columns that it names, ``n`` numbers each.
        target: The ``n`` values to fit.
        rng: Of the starts.
        starts: How many random values to begin with, 1 or more.
        refined: Of these, how many to refine, 0 or more.
        steps: Of each refinement at most, 1 or more.

    Raises:
        InputError: If a number of starts or steps is too small, or a column has another length than the target.

    Example:
        >>> from seqopt.objectives import parse_expression
        >>> x = np.linspace(0, 3, 20)
        >>> decay = parse_expression("c*exp(c*x)+c", constant="c")
        >>> fit = fit_constants(decay, {"x": x}, 5 * np.exp(-2 * x) + 1, np.random.default_rng(0))
        >>> [round(value, 6) for value in fit.values], fit.mse < 1e-20
        ([5.0, -2.0, 1.0], True)
    """
    for name, value, least in (("starts", starts, 1), ("refined", refined, 0), ("steps", steps, 1)):
        checked_integer(name, value, least)
    y = np.asarray(target, dtype=np.float64)
    for name in formula.variables:
        if np.shape(inputs[name]) != y.shape:
            raise InputError(f"column {name!r} has the shape {np.shape(inputs[name])}, but the target has {y.shape}")
    with np.errstate(all="ignore"):
        if formula.constants == 0:
            return ConstantFit((), _mse(formula, inputs, y, ()), 1)
        return _Fitting(formula, inputs, y, rng).fit(starts, refined, steps)


class _Fitting:
    """One fit; kept together what all its stages need."""

    def __init__(self, formula: Expression, inputs: Inputs, y: FloatArray, rng: np.random.Generator) -> None:
        self.formula = formula
        self.inputs = inputs
        self.y = y
        self.rng = rng
        self.evaluations = 0
        self.linear = linear_constants(formula)
        self.units = _units(formula, inputs, y)
        self.scale = self.units[1]

    def fit(self, starts: int, refined: int, steps: int) -> ConstantFit:
        inputs, y = self._part()
        # Where the formula is linear in all constants, every start ends in the same place.
        drawn = self._starts(1 if len(self.linear) == self.formula.constants else starts)
        screened, fitted, errors = self._screen(drawn, inputs, y)
        best_first = np.argsort(errors, kind="stable")
        best_first = best_first[np.isfinite(errors[best_first])]
        candidates = [(float(errors[index]), screened[index]) for index in best_first[:1]]
        for index in self._distinct(best_first, fitted, refined):
            values = self._refine(screened[index], inputs, y, steps)
            candidates.append((self._error(values, inputs, y), values))
            if candidates[-1][0] <= (SUFFICIENT * self.scale) ** 2:
                break
        best = min(candidates, key=lambda candidate: candidate[0], default=(math.inf, np.empty(0)))
        if not math.isfinite(best[0]):
            return ConstantFit((), math.inf, self.evaluations)
        values = best[1]
        if len(y) < len(self.y):
            polished = self._refine(values, self.inputs, self.y, LAST_STEPS)
            values = min(values, polished, key=lambda found: self._error(found, self.inputs, self.y))
        mse = self._error(values, self.inputs, self.y)
        if not math.isfinite(mse):
            return ConstantFit((), math.inf, self.evaluations)
        return ConstantFit(tuple(map(float, values)), mse, self.evaluations)

    def _part(self) -> tuple[Inputs, FloatArray]:
        if len(self.y) <= SCREENED_POINTS:
            return self.inputs, self.y
        rows = np.sort(self.rng.choice(len(self.y), SCREENED_POINTS, replace=False))
        return {name: np.asarray(column)[rows] for name, column in self.inputs.items()}, self.y[rows]

    def _starts(self, n: int) -> FloatArray:
        """Values to begin with, n x k; the first are all 1."""
        shape = n, self.formula.constants
        unit = np.where(self.rng.random(shape) < 0.5, 1.0, self.rng.choice(self.units, shape))
        # A Latin hypercube: each constant takes every sign and size, which matters where few constants are drawn.
        strata = self.rng.permuted(np.tile(np.arange(n)[:, None], (1, shape[1])), axis=0)
        place = 2 * (strata + self.rng.random(shape)) / n
        drawn = np.where(place < 1, -1.0, 1.0) * unit * 10.0 ** (2 * (place % 1) - 1)
        drawn[0] = 1.0
        return drawn

    def _distinct(self, best_first: npt.NDArray[np.int64], fitted: FloatArray, n: int) -> list[int]:
        """The best starts whose curves differ: those that hardly do would be refined to the same end."""
        chosen: list[int] = []
        for index in best_first.tolist():
            if len(chosen) == n:
                break
            if not chosen or np.mean((fitted[chosen] - fitted[index]) ** 2, axis=1).min() > (APART * self.scale) ** 2:
                chosen.append(index)
        return chosen

    def _screen(self, drawn: FloatArray, inputs: Inputs, y: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The starts with their linear constants solved for, their curves, and the mean squared error of each."""
        values = drawn.copy()
        if self.linear:
            values[:, self.linear] = 0.0
            rest = self._each(values, inputs, y)
            columns = []
            for index in self.linear:
                moved = values.copy()
                moved[:, index] = 1.0
                columns.append(self._each(moved, inputs, y) - rest)
            factors = np.stack(columns, axis=-1)
            # Squares of larger numbers overflow.
            finite = (np.abs(rest) < _HUGE).all(axis=1) & (np.abs(factors) < _HUGE).all(axis=(1, 2))
            factors, residuals = factors[finite], y - rest[finite]
            norms = np.linalg.norm(factors, axis=1)
            norms[norms == 0] = 1.0
            solved = np.full((len(drawn), len(self.linear)), np.nan)
            if finite.any():
                inverse = np.linalg.pinv(factors / norms[:, None, :], rcond=_RANK)
                solved[finite] = np.einsum("mkn,mn->mk", inverse, residuals) / norms
            values[:, self.linear] = solved
        fitted = self._each(values, inputs, y)
        errors = np.mean((fitted - y) ** 2, axis=1)
        errors[~np.isfinite(errors) | self._ran_away(values)] = np.inf
        return values, fitted, errors

    def _each(self, values: FloatArray, inputs: Inputs, y: FloatArray) -> FloatArray:
        """The formula's values with each row of constants, m x n."""
        self.evaluations += len(values)
        made = self.formula(inputs, list(values.T[:, :, None]))
        return np.broadcast_to(made, (len(values), len(y)))

    def _refine(self, start: FloatArray, inputs: Inputs, y: FloatArray, steps: int) -> FloatArray:
        from scipy.optimize import least_squares

        def residuals(values: FloatArray) -> FloatArray:
            self.evaluations += 1
            return (np.broadcast_to(self.formula(inputs, values), y.shape) - y) / self.scale

        def jacobian(values: FloatArray) -> FloatArray:
            self.evaluations += 1
            found = derivatives(self.formula, inputs, values, y.shape) / self.scale
            # A derivative may be infinite where the formula is not, as that of a root at 0.
            return np.nan_to_num(found, nan=0.0, posinf=0.0, neginf=0.0)

        try:
            found = least_squares(
                residuals, start, jacobian, method="trf", x_scale="jac", max_nfev=steps, ftol=1e-12, xtol=1e-12
            )
        except (ValueError, np.linalg.LinAlgError):
            return start
        return np.asarray(found.x, dtype=np.float64)

    def _error(self, values: FloatArray, inputs: Inputs, y: FloatArray) -> float:
        if self._ran_away(values[None])[0]:
            return math.inf
        self.evaluations += 1
        error = _mse(self.formula, inputs, y, values)
        return error if math.isfinite(error) else math.inf

    def _ran_away(self, values: FloatArray) -> npt.NDArray[np.bool_]:
        found: npt.NDArray[np.bool_] = ~(np.abs(values) <= LARGEST * self.units.max()).all(axis=1)
        return found


def linear_constants(formula: Expression) -> list[int]:
    """Indices of constants that a formula is linear in, all of them together, up to a term without them.

    Of the factors of a product the one with more of them counts.

    Example:
        >>> from seqopt.objectives import parse_expression
        >>> linear_constants(parse_expression("c*exp(c*x)+c/(x+c)-c", constant="c"))
        [0, 2, 4]
    """
    stack: list[frozenset[int]] = []
    none: frozenset[int] = frozenset()
    for step in formula.steps:
        if isinstance(step, int):
            stack.append(frozenset((step,)))
        elif isinstance(step, float) or step not in ARITY:
            stack.append(none)
        elif ARITY[step] == 1:
            operand = stack.pop()
            stack.append(operand if step == "(-)" else none)
        else:
            right, left = stack.pop(), stack.pop()
            if step in ("+", "-"):
                stack.append(left | right)
            elif step == "*":
                stack.append(max(left, right, key=len))
            else:
                stack.append(left if step == "/" else none)
    return sorted(stack.pop())


def derivatives(
    formula: Expression, inputs: Inputs, constants: Sequence[float] | FloatArray, shape: tuple[int, ...]
) -> FloatArray:
    """Derivatives of a formula's values in its constants, by forward differentiation.

    Args:
        formula: With k constants that are yet to be found.
        inputs: Its columns.
        constants: The k values at which it is differentiated.
        shape: Of its values, ``(n,)``.

    Returns:
        An array n x k; NaN or infinite where there is no derivative.

    Example:
        >>> from seqopt.objectives import parse_expression
        >>> power = parse_expression("c*x**c", constant="c")
        >>> derivatives(power, {"x": np.array([1.0, np.e])}, [3.0, 2.0], (2,)).round(3).tolist()
        [[1.0, 0.0], [7.389, 22.167]]
    """
    # Only the constants that occur below a node have an entry: 0 times an undefined factor is not 0.
    stack: list[tuple[Any, dict[int, Any]]] = []
    with np.errstate(all="ignore"):
        for step in formula.steps:
            if isinstance(step, float):
                stack.append((np.float64(step), {}))
            elif isinstance(step, int):
                stack.append((np.float64(constants[step]), {step: np.float64(1.0)}))
            elif step not in ARITY:
                stack.append((inputs[step], {}))
            elif ARITY[step] == 1:
                value, inner = stack.pop()
                made, slope = _unary(step, value)
                stack.append((made, {index: slope * d for index, d in inner.items()}))
            else:
                right, left = stack.pop(), stack.pop()
                stack.append(_binary(step, left, right))
        found = np.zeros((*shape, formula.constants))
        for index, derivative in stack.pop()[1].items():
            found[..., index] = derivative
    return found


def _unary(name: str, value: Any) -> tuple[Any, Any]:
    """The value of a function and its derivative."""
    if name == "(-)":
        return -value, -1.0
    if name == "sin":
        return np.sin(value), np.cos(value)
    if name == "cos":
        return np.cos(value), -np.sin(value)
    if name == "exp":
        return np.exp(value), np.exp(value)
    if name == "log":
        return np.log(value), 1 / value
    root = np.sqrt(value)
    return root, 0.5 / root


def _binary(name: str, left: tuple[Any, dict[int, Any]], right: tuple[Any, dict[int, Any]]) -> tuple[Any, dict]:
    (a, of_a), (b, of_b) = left, right
    if name in ("+", "-"):
        sign = 1.0 if name == "+" else -1.0
        return a + sign * b, of_a | {index: sign * d for index, d in of_b.items()}
    if name == "*":
        return a * b, {index: d * b for index, d in of_a.items()} | {index: a * d for index, d in of_b.items()}
    if name == "/":
        made = a / b
        return made, {i: d / b for i, d in of_a.items()} | {i: -made / b * d for i, d in of_b.items()}
    made = np.power(a, b)
    by_base = b * np.power(a, b - 1) if of_a else None
    by_exponent = np.log(a) * made if of_b else None
    return made, {i: by_base * d for i, d in of_a.items()} | {i: by_exponent * d for i, d in of_b.items()}


def _units(formula: Expression, inputs: Inputs, y: FloatArray) -> FloatArray:
    """What constants may be multiples of: 1, the spread of the target, those of the inputs, inverses and ratios."""
    spread = float(np.std(y)) or float(np.max(np.abs(y))) or 1.0
    units = [1.0, spread]
    for name in formula.variables:
        column = np.asarray(inputs[name])
        of_input = float(np.std(column)) or float(np.max(np.abs(column))) or 1.0
        units += [of_input, 1 / of_input, spread / of_input]
    found = np.array(units)
    found[~np.isfinite(found)] = 1.0
    return found


def _mse(formula: Expression, inputs: Inputs, y: FloatArray, constants: Sequence[float] | FloatArray) -> float:
    return float(np.mean((formula(inputs, constants) - y) ** 2))
