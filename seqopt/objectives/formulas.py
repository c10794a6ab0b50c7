"""What is known of formulas for the columns of a table: names, errors on seen and unseen rows, and texts to copy."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from seqopt.datasets.points import Points, read_points
from seqopt.errors import InputError
from seqopt.objectives.constants import ConstantFit
from seqopt.objectives.expressions import FUNCTIONS, Expression, ExpressionError
from seqopt.objectives.notation import folded, latex_text, numpy_text, outline, plain_text, rounded, spreadsheet_text
from seqopt.utils.cache import digest

CONSTANT = "c"
"""What stands for a constant in formulas, unless somebody says otherwise."""

VARIABLE = "x"
"""What formulas call a single column of inputs."""

LARGEST_VARIANCE, SMALLEST_VARIANCE = 1000.0, 0.01
"""Variances of the values beyond which log(1 + min(MSE, 1000)) tells formulas badly apart."""

DIGITS = (4, 6, 8, 10, 12, 15)
"""Significant digits of constants that are tried for a text."""

LOSS = 1e-3
"""Share by which the error of a formula may grow when its constants are rounded for a text."""

NEGLIGIBLE = 1e-12
"""Error, as a share of the variance, that may be made by rounding anyway."""


@dataclass(frozen=True)
class Described:
    """A formula, judged.

    Attributes:
        formula: As it was searched for, with placeholders of constants.
        constants: How many of them were fitted.
        mse: Mean squared error on the rows that it was fitted to, in squared units of the values; NaN where the formula
            is not finite at all of them.
        r2: Share of the variance of these values that it explains, 1 - MSE / variance; NaN where they are all equal.
        held_out_mse: On the rows that were held out; NaN without any.
        held_out_r2: On these rows, with their own variance.
        outline: As it is written once constants that only stand with one another are one, with placeholders for them;
            the formula itself where it has none. Its length is that of ``fitted``.
        fitted: With numbers for its constants, which have as few digits as leave the error as it is (within 0.1 %); the
            formula itself where it has none.
        python: The same for Python with ``import numpy as np``.
        spreadsheet: The same for a cell of a table in a spreadsheet, without the ``=`` that it begins with.
        latex: The same for LaTeX.
    """

    formula: str
    constants: int
    mse: float
    r2: float
    held_out_mse: float
    held_out_r2: float
    outline: str
    fitted: str
    python: str
    spreadsheet: str
    latex: str


@dataclass(frozen=True, eq=False)
class FormulaData:
    """Points, as formulas for them are searched and judged.

    Attributes:
        error: The score of a formula, on the rows that it is fitted to.
        held_out: The others, with the same names; `None` without any.
        columns: Names of the columns of inputs, by what formulas call them.
        target: Name of the column of values.
        facts: What a run has to be told of the points, as JSON values.

    Example:
        >>> points = Points({"dose (mg)": np.arange(6.0), "day": np.ones(6)}, 2.5 * np.arange(6.0) + 1, "mass")
        >>> data = FormulaData.of(points, constant="c")
        >>> data.columns, data.error.variables
        ({'dose_mg': 'dose (mg)', 'day': 'day'}, ('dose_mg', 'day'))
        >>> found = data.describe("c*dose_mg+c")
        >>> found.fitted, found.spreadsheet, round(found.r2, 6)
        ('2.5*dose_mg+1', '2.5*[@[dose (mg)]]+1', 1.0)
    """

    error: ExpressionError
    held_out: Points | None
    columns: Mapping[str, str]
    target: str
    facts: Mapping[str, Any]

    @classmethod
    def of(
        cls,
        points: Points,
        *,
        constant: str | None = None,
        relative: bool | None = None,
        holdout: float | None = None,
        seed: int = 0,
    ) -> FormulaData:
        """Points with the names that formulas use.

        Args:
            points: Columns of inputs, and values.
            constant: What stands for a constant in formulas; `None` for formulas without.
            relative: Score formulas by MSE / variance instead of MSE. `None` does so where the variance is above 1,000
                or below 0.01.
            holdout: Share of the rows that are held out; `None` for none.
            seed: Of the choice of these rows, and of the starts of fits.

        Raises:
            InputError: For columns that formulas would call by the same name, values whose squares overflow, a share
                that leaves fewer than two rows on either side, or a relative score of values that are all equal.
        """
        with np.errstate(all="ignore"):
            squares = np.mean((2 * points.y) ** 2)
        if not np.isfinite(squares):
            raise InputError(
                f"column {points.y_name!r} has values up to {np.abs(points.y).max():.3g}, whose squares are larger "
                "than any number (1.8e308), so that no formula has an error: give it in another unit"
            )
        names = variable_names(tuple(points.inputs), constant)
        kept, held_out = points, None
        if holdout is not None:
            kept, held_out = points.split(holdout, np.random.default_rng([seed, len(points)]))
        variance = float(np.var(kept.y))
        if relative is None:
            relative = bool(np.ptp(kept.y) > 0) and not SMALLEST_VARIANCE <= variance <= LARGEST_VARIANCE
        error = ExpressionError(
            {name: kept.inputs[column] for name, column in names.items()}, kept.y, constant, relative, seed
        )
        columns = list(points.inputs)
        every = [*(value for column in columns for value in points.inputs[column].tolist()), *points.y.tolist()]
        facts: dict[str, Any] = {
            "x": columns[0] if len(columns) == 1 else columns,
            "y": points.y_name,
            "points": len(points),
            "sha256": digest(map(repr, every)),
        }
        # What was not asked for is not written down, so that older runs can be resumed.
        facts |= {"constant": constant} if constant is not None else {}
        facts |= {"relative": True} if relative else {}
        facts |= {"holdout": holdout} if holdout is not None else {}
        facts |= {"seed": seed} if constant is not None or holdout is not None else {}
        facts |= {"left_out": points.left_out} if points.left_out else {}
        facts |= {"decimal_comma": True} if points.decimal_comma else {}
        return cls(error, held_out, names, points.y_name, facts)

    @classmethod
    def read(cls, path: str | os.PathLike[str], facts: Mapping[str, Any]) -> FormulaData | None:
        """The points of a file as a run was told of them; `None` if it no longer holds them.

        Args:
            path: The file.
            facts: See the attribute.

        Raises:
            InputError: For a file that cannot be read.
        """
        points = read_points(
            path,
            facts.get("x"),
            facts.get("y"),
            skip_missing=bool(facts.get("left_out")),
            decimal_comma=bool(facts.get("decimal_comma")),
        )
        constant, holdout = facts.get("constant"), facts.get("holdout")
        found = cls.of(
            points,
            constant=constant if isinstance(constant, str) else None,
            relative=bool(facts.get("relative")),
            holdout=float(holdout) if isinstance(holdout, int | float) else None,
            seed=int(facts.get("seed", 0)),
        )
        return found if found.facts["sha256"] == facts.get("sha256") else None

    @property
    def negligible(self) -> float:
        """Mean squared error that is as good as none."""
        return NEGLIGIBLE * float(np.var(self.error.target))

    @property
    def renamed(self) -> dict[str, str]:
        """Columns that formulas call by another name, and which."""
        return {column: name for name, column in self.columns.items() if column.casefold() != name.casefold()}

    def describe(self, string: str) -> Described:
        """A formula, judged and written for others.

        Raises:
            InputError: For a string that is not a formula of these columns.
        """
        formula = self.error.parse(string)
        fit = self.error.fit(string)
        undefined = formula.constants > 0 and not fit.values
        mse = fit.mse if math.isfinite(fit.mse) else math.nan
        held_out_mse = held_out_r2 = math.nan
        if self.held_out is not None and not undefined:
            inputs = {name: self.held_out.inputs[column] for name, column in self.columns.items()}
            with np.errstate(all="ignore"):
                held_out_mse = _finite(np.mean((formula(inputs, fit.values) - self.held_out.y) ** 2))
            held_out_r2 = _explained(held_out_mse, self.held_out.y)
        texts = [string] * 5
        if not undefined:
            formula, values = self._brief(formula, fit)
            texts = [
                outline(formula, self.error.constant) if fit.values and self.error.constant else string,
                plain_text(formula, values) if fit.values else string,
                numpy_text(formula, values),
                spreadsheet_text(formula, values, self.columns),
                latex_text(formula, values),
            ]
        r2 = _explained(mse, self.error.target)
        return Described(string, len(fit.values), mse, r2, held_out_mse, held_out_r2, *texts)

    def values(self, string: str, inputs: Mapping[str, npt.NDArray[np.float64]]) -> npt.NDArray[np.float64]:
        """A formula's values at other points, with its constants fitted; NaN where they could not be.

        Raises:
            InputError: For a string that is not a formula of these columns.
        """
        formula, fit = self.error.parse(string), self.error.fit(string)
        shape = np.shape(next(iter(inputs.values())))
        if formula.constants and not fit.values:
            return np.full(shape, np.nan)
        return np.broadcast_to(formula(inputs, fit.values), shape)

    def _brief(self, formula: Expression, fit: ConstantFit) -> tuple[Expression, tuple[float, ...]]:
        """A formula of fewer constants, with as few digits as leave the error as it is."""
        if not fit.values:
            return formula, ()
        formula, exact = folded(formula, fit.values)
        allowed = fit.mse * (1 + LOSS) + self.negligible
        for digits in DIGITS:
            values = tuple(rounded(value, digits) for value in exact)
            with np.errstate(all="ignore"):
                if np.mean((formula(self.error.inputs, values) - self.error.target) ** 2) <= allowed:
                    return formula, values
        return formula, exact


def variable_names(columns: Sequence[str], constant: str | None = None) -> dict[str, str]:
    """What formulas call the columns of a table: a single one x, several by their names.

    A name keeps its letters, digits and underscores; other characters between them become one underscore. One that is
    left with nothing is called after its place (``x2``), one that begins with a digit gets ``x`` before it, and that of
    a function or of the constants an underscore behind it.

    Args:
        columns: Names of columns.
        constant: What stands for a constant in formulas.

    Returns:
        The columns by what formulas call them, in their order.

    Raises:
        InputError: If two columns would be called the same.

    Example:
        >>> variable_names(["T [K]", "log", "2nd", "c"], "c")
        {'T_K': 'T [K]', 'log_': 'log', 'x2nd': '2nd', 'c_': 'c'}
        >>> variable_names(["dose (mg)"])
        {'x': 'dose (mg)'}
    """
    if len(columns) == 1:
        return {VARIABLE if constant != VARIABLE else f"{VARIABLE}_": columns[0]}
    found: dict[str, str] = {}
    for place, column in enumerate(columns, start=1):
        name = re.sub(r"[^A-Za-z0-9_]+", "_", column.strip())
        name = name.strip("_") if name != column.strip() else name
        if not name.strip("_"):
            name = f"{VARIABLE}{place}"
        if name[0].isdigit():
            name = f"{VARIABLE}{name}"
        if name in FUNCTIONS or name == constant:
            name += "_"
        if name in found:
            raise InputError(
                f"formulas would call both column {found[name]!r} and column {column!r} {name}: rename one of them in "
                "the table, or leave one out (--x)"
            )
        found[name] = column
    return found


def pareto(lengths: Sequence[float], errors: Sequence[float], negligible: float = 0.0) -> npt.NDArray[np.bool_]:
    """Which formulas are shorter than all that fit better, and fit better than all that are shorter.

    Of several that are equally long and fit equally well the first counts.

    Args:
        lengths: Of n formulas.
        errors: Of the same; NaN for one that does not count.
        negligible: Errors up to this one count as equal.

    Example:
        >>> pareto([3, 5, 5, 7, 9], [2.0, 1.0, 1.5, 1.0, float("nan")]).tolist()
        [True, True, False, False, False]
    """
    error = np.maximum(np.asarray(errors, dtype=np.float64), negligible)
    order = np.lexsort((np.arange(len(error)), error, np.asarray(lengths)))
    found = np.zeros(len(error), dtype=np.bool_)
    least = math.inf
    for index in order:
        if error[index] < least:
            found[index], least = True, error[index]
    return found


def _finite(value: Any) -> float:
    return float(value) if np.isfinite(value) else math.nan


def _explained(mse: float, values: npt.NDArray[np.float64]) -> float:
    variance = float(np.var(values))
    return 1 - mse / variance if np.ptp(values) > 0 else math.nan
