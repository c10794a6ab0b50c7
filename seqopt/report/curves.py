"""Formulas as curves through the points that they were fitted to, and how error is traded against length."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from seqopt.errors import InputError
from seqopt.report.formats import compact, printable, shortened, significant
from seqopt.report.results import Run, option_of, ranked
from seqopt.report.structures import BOX, curve_structure, in_box

if TYPE_CHECKING:
    from seqopt.objectives import ExpressionError
    from seqopt.objectives.formulas import Described, FormulaData

logger = logging.getLogger(__name__)

FloatArray = npt.NDArray[np.float64]

STEPS = 160
"""Abscissas at which a curve is drawn."""

MOST_POINTS = 400
"""Points that are drawn."""

LONGEST_FORMULA = 2_000
"""Symbols beyond which a formula is not drawn."""


@dataclass(frozen=True)
class Curves:
    """Points, and formulas drawn through them: against a single input as a curve, else measured against fitted values.

    Attributes:
        data: The points and what formulas call them.
        known: Formulas whose constants have been fitted in the search; those of others are not fitted for a page.

    Example:
        >>> from seqopt.datasets.points import Points
        >>> from seqopt.objectives.formulas import FormulaData
        >>> points = Points({"time": np.array([0.0, 1.0])}, np.array([0.0, 2.0]), "mass")
        >>> curves = Curves(FormulaData.of(points))
        >>> curves.points()
        '12,185 288,15'
        >>> curves.structure("2*x").startswith("c0,")
        True
        >>> curves.structure("import os"), curves.draw("1/", label="f") is None
        ('', True)
    """

    data: FormulaData
    known: frozenset[str] = field(default=frozenset(), repr=False)

    @property
    def is_curve(self) -> bool:
        """Whether there is a single input, which a curve can be drawn against."""
        return len(self.data.columns) == 1

    @property
    def _x(self) -> FloatArray:
        return next(iter(self.data.error.inputs.values()))

    @property
    def limits(self) -> tuple[float, float, float, float]:
        """Abscissas of the left and right edges, ordinates of the lower and upper ones."""
        y = self.data.error.target
        bottom, top = float(y.min()), float(y.max())
        up = 0.09 * (top - bottom) or 0.5
        if not self.is_curve:
            return bottom - up, top + up, bottom - up, top + up
        low, high = float(self._x.min()), float(self._x.max())
        across = 0.045 * (high - low) or 0.5
        return low - across, high + across, bottom - up, top + up

    def points(self) -> str:
        """The points as `seqopt.report.structures` writes them; none where there are several inputs."""
        return self._dots(self._x) if self.is_curve else ""

    def structure(self, formula: str) -> str:
        """The curve of a formula as `seqopt.report.structures` writes it; empty where it is not a formula."""
        if not self.is_curve or len(formula) > LONGEST_FORMULA or not self._is_cheap(formula):
            return ""
        grid = np.linspace(*self.limits[:2], STEPS)
        try:
            values = self.data.values(formula, {next(iter(self.data.columns)): grid})
        except (InputError, ValueError, RecursionError):
            return ""
        return curve_structure(grid.tolist(), values.tolist(), self.limits)

    def objective(self) -> ExpressionError:
        """What formulas are scored by."""
        return self.data.error

    def words(self, formula: str) -> str:
        """What a formula is with its constants, and how well it fits; empty where it is not a formula."""
        found = self.described(formula)
        if found is None:
            return ""
        fitted = "" if found.fitted == formula else f"{shortened(found.fitted, 300)}; "
        held_out = "" if math.isnan(found.held_out_r2) else f", {found.held_out_r2:.3f} on points held out"
        return f"{fitted}R² undefined" if math.isnan(found.r2) else f"{fitted}R² {found.r2:.3f}{held_out}"

    def draw(self, formula: str, *, label: str) -> Markup | None:
        """The curve of a formula and the points, for a page without script; `None` where it is not a formula."""
        if not self.is_curve:
            return self._draw_values(formula, label)
        found = self.structure(formula)
        if not found:
            return None
        column = next(iter(self.data.columns.values()))
        return self._figure(_runs(found[1:]), self.points(), column, label)

    def _draw_values(self, formula: str, label: str) -> Markup | None:
        """Measured values against those of a formula, which lie on the diagonal where it is right."""
        if self.described(formula) is None:
            return None
        error = self.data.error
        diagonal = [in_box(edge, edge, self.limits) for edge in self.limits[:2]]
        line = " ".join(f"{point[0]:.0f},{point[1]:.0f}" for point in diagonal if point is not None)
        return self._figure([line], self._dots(self.data.values(formula, error.inputs)), "the formula", label)

    def _figure(self, lines: list[str], dots: str, x_name: str, label: str) -> Markup:
        width, height = BOX
        drawn = "".join(f'<polyline points="{part}" />' for part in lines)
        circles = "".join('<circle cx="{}" cy="{}" r="3" />'.format(*point.split(",")) for point in dots.split())
        left, right, bottom, top = map(compact, self.limits)
        across, up = (escape(shortened(printable(name), 30)) for name in (x_name, self.data.target))
        return Markup(
            f'<svg viewBox="-6 -22 {width + 12} {height + 44}" class="curve" role="img" '
            f'aria-label="{escape(printable(label))}">'
            f'<rect x="0" y="0" width="{width}" height="{height}" class="frame" />{circles}{drawn}'
            f'<text x="0" y="-8">{up}, {bottom} to {top}</text>'
            f'<text x="{width}" y="{height + 15}" text-anchor="end">{across}, {left} to {right}</text></svg>'
        )

    def _dots(self, x: FloatArray) -> str:
        y = self.data.error.target
        chosen = np.linspace(0, len(y) - 1, min(len(y), MOST_POINTS)).round().astype(int)
        points = [in_box(float(x[i]), float(y[i]), self.limits) for i in chosen]
        inside = [point for point in points if point is not None and abs(point[0]) <= 2 * BOX[0]]
        return " ".join(f"{point[0]:.0f},{point[1]:.0f}" for point in inside)

    def _is_cheap(self, formula: str) -> bool:
        return self.data.error.constant is None or formula in self.known

    def described(self, formula: str) -> Described | None:
        """A formula, judged; `None` where it is none, or its constants would have to be fitted for the page."""
        if len(formula) > LONGEST_FORMULA or not self._is_cheap(formula):
            return None
        try:
            return self.data.describe(formula)
        except (InputError, ValueError, RecursionError):
            return None


@dataclass(frozen=True)
class Trade:
    """Formulas that no shorter one fits as well as, the shortest first.

    Attributes:
        rows: Of each the length in terminals of what is shown, the error, R2, R2 on points held out (empty without),
            the formula, its text with numbers, and LaTeX.
        held_out: Points that were held out.
        constant: What stands for a constant in formulas; empty for none.
    """

    rows: list[dict[str, Any]]
    held_out: int
    constant: str


def trade_of(run: Run, curves: Curves | None) -> Trade | None:
    """Error against length, for the page of a run of formulas; `None` where there is nothing to show."""
    if curves is None:
        return None
    from seqopt.objectives.formulas import pareto
    from seqopt.report.samples import space_of

    try:
        tokenizer = space_of(run).encoder.tokenizer
    except InputError:
        logger.debug("the lengths of formulas are not known", exc_info=True)
        return None
    strings = [str(text) for text in ranked(run.evaluations, run.direction)["string"]]
    found = [(string, one) for string in strings if (one := curves.described(string)) is not None]
    lengths = [len(tokenizer.tokenize(one.outline)) for _, one in found]
    kept = pareto(lengths, [one.mse for _, one in found], curves.data.negligible)
    rows = [
        {
            "length": length,
            "mse": significant(one.mse, 4),
            "r2": "" if math.isnan(one.r2) else f"{one.r2:.4f}",
            "held_out": "" if math.isnan(one.held_out_r2) else f"{one.held_out_r2:.4f}",
            "formula": string,
            "fitted": one.fitted,
            "latex": one.latex,
        }
        for length, (string, one), wanted in zip(lengths, found, kept, strict=True)
        if wanted
    ]
    if not rows:
        return None
    held_out = 0 if curves.data.held_out is None else len(curves.data.held_out)
    return Trade(sorted(rows, key=lambda row: int(row["length"])), held_out, curves.data.error.constant or "")


def _runs(points: str) -> list[str]:
    """Unbroken stretches of a curve."""
    runs: list[list[str]] = [[]]
    for point in points.split():
        if point == "-":
            runs.append([])
        else:
            runs[-1].append(point)
    return [" ".join(run) for run in runs if len(run) > 1]


def curves_of(run: Run) -> tuple[Curves | None, str]:
    """The points of a run of ``seqopt expressions``, if their file is found and still holds the same.

    Returns:
        The points, and what is missing, a sentence (empty if nothing is, or the run has no points).
    """
    from seqopt.objectives.formulas import FormulaData

    facts = run.settings.get("data")
    if not isinstance(facts, dict) or run.settings.get("objective") != "expression_error":
        return None, ""
    name = option_of(str(run.settings.get("command") or ""), "--data", "-d")
    for path in [Path(name), run.folder / name, run.folder / Path(name).name] if name else []:
        try:
            data = FormulaData.read(path, facts)
        except (InputError, OSError, ValueError, TypeError):
            continue
        if data is not None:
            return Curves(data, frozenset(map(str, run.evaluations["string"]))), ""
    what = f"The points ({shortened(Path(name).name, 60)})" if name else "The points"
    return None, f"{what} that the formulas were fitted to are not where they were: the curves are missing."
