"""Formulas as curves through the points that they were fitted to."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from seqopt.errors import InputError
from seqopt.report.formats import compact, printable, shortened
from seqopt.report.results import Run, option_of
from seqopt.report.structures import BOX, curve_structure, in_box

if TYPE_CHECKING:
    from seqopt.objectives import ExpressionError

FloatArray = npt.NDArray[np.float64]

STEPS = 160
"""Abscissas at which a curve is drawn."""

MOST_POINTS = 400
"""Points that are drawn."""

LONGEST_FORMULA = 2_000
"""Symbols beyond which a formula is not drawn."""


@dataclass(frozen=True)
class Curves:
    """Points, and formulas drawn through them.

    Attributes:
        x: Inputs, n.
        y: Values, n.
        x_name: Name of the inputs.
        y_name: Name of the values.

    Example:
        >>> curves = Curves(np.array([0.0, 1.0]), np.array([0.0, 2.0]), "time", "mass")
        >>> curves.points()
        '12,185 288,15'
        >>> curves.structure("2*x").startswith("c0,")
        True
        >>> curves.structure("import os"), curves.draw("1/", label="f") is None
        ('', True)
    """

    x: FloatArray
    y: FloatArray
    x_name: str
    y_name: str

    @property
    def limits(self) -> tuple[float, float, float, float]:
        """Abscissas of the left and right edges, ordinates of the lower and upper ones."""
        low, high, bottom, top = self.x.min(), self.x.max(), self.y.min(), self.y.max()
        across, up = 0.045 * (high - low) or 0.5, 0.09 * (top - bottom) or 0.5
        return float(low - across), float(high + across), float(bottom - up), float(top + up)

    def points(self) -> str:
        """The points as `seqopt.report.structures` writes them."""
        chosen = np.linspace(0, len(self.x) - 1, min(len(self.x), MOST_POINTS)).round().astype(int)
        points = [in_box(float(self.x[i]), float(self.y[i]), self.limits) for i in chosen]
        return " ".join(f"{point[0]:.0f},{point[1]:.0f}" for point in points if point is not None)

    def structure(self, formula: str) -> str:
        """The curve of a formula as `seqopt.report.structures` writes it; empty where it is not a formula."""
        from seqopt.objectives import parse_expression

        if len(formula) > LONGEST_FORMULA:
            return ""
        grid = np.linspace(*self.limits[:2], STEPS)
        try:
            values = np.broadcast_to(parse_expression(formula, ("x",))({"x": grid}), grid.shape)
        except (InputError, ValueError, RecursionError):
            return ""
        return curve_structure(grid.tolist(), values.tolist(), self.limits)

    def objective(self) -> ExpressionError:
        """What formulas are scored by."""
        from seqopt.objectives import ExpressionError

        return ExpressionError({"x": self.x}, self.y)

    def draw(self, formula: str, *, label: str) -> Markup | None:
        """The curve of a formula and the points, for a page without script; `None` where it is not a formula."""
        found = self.structure(formula)
        if not found:
            return None
        width, height = BOX
        lines = "".join(f'<polyline points="{part}" />' for part in _runs(found[1:]))
        dots = "".join('<circle cx="{}" cy="{}" r="3" />'.format(*point.split(",")) for point in self.points().split())
        left, right, bottom, top = map(compact, self.limits)
        x_name, y_name = (escape(shortened(printable(name), 30)) for name in (self.x_name, self.y_name))
        return Markup(
            f'<svg viewBox="-6 -22 {width + 12} {height + 44}" class="curve" role="img" '
            f'aria-label="{escape(printable(label))}">'
            f'<rect x="0" y="0" width="{width}" height="{height}" class="frame" />{dots}{lines}'
            f'<text x="0" y="-8">{y_name}, {bottom} to {top}</text>'
            f'<text x="{width}" y="{height + 15}" text-anchor="end">{x_name}, {left} to {right}</text></svg>'
        )


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
    from seqopt.datasets import read_points
    from seqopt.utils.cache import digest

    facts = run.settings.get("data")
    if not isinstance(facts, dict) or run.settings.get("objective") != "expression_error":
        return None, ""
    name = option_of(str(run.settings.get("command") or ""), "--data", "-d")
    for path in [Path(name), run.folder / name, run.folder / Path(name).name] if name else []:
        try:
            points = read_points(path, facts.get("x"), facts.get("y"))
        except (InputError, OSError):
            continue
        if digest(map(repr, [*points.x.tolist(), *points.y.tolist()])) == facts.get("sha256"):
            return Curves(points.x, points.y, points.x_name, points.y_name), ""
    what = f"The points ({shortened(Path(name).name, 60)})" if name else "The points"
    return None, f"{what} that the formulas were fitted to are not where they were: the curves are missing."
