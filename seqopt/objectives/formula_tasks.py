"""Symbolic regression tasks of the literature: the Nguyen and Keijzer lists, with their points.

References:
    Uy, N. Q., Hoai, N. X., O'Neill, M., McKay, R. I., Galvan-Lopez, E. (2011). Semantically-based crossover in genetic
        programming: application to real-valued symbolic regression. Genet. Program. Evolvable Mach. 12, 91-119.
    Keijzer, M. (2003). Improving symbolic regression with interval arithmetic and linear scaling. EuroGP, 70-82.
    McDermott, J., White, D. R., Luke, S., Manzoni, L., Castelli, M., Vanneschi, L., Jaskowski, W., Krawiec, K., Harper,
        R., De Jong, K., O'Reilly, U.-M. (2012). Genetic programming needs better benchmarks. GECCO, 791-798 (tables of
        both lists).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import digamma

FloatArray = npt.NDArray[np.float64]
Inputs = dict[str, FloatArray]


@dataclass(frozen=True)
class Uniform:
    """Independent points, uniform between two limits; McDermott et al. write U[low, high, n]."""

    low: float
    high: float
    n: int


@dataclass(frozen=True)
class Grid:
    """Equidistant points from one limit to the other, of several variables all combinations: E[low, high, step]."""

    low: float
    high: float
    step: float

    @property
    def points(self) -> FloatArray:
        """Those of one variable."""
        return np.linspace(self.low, self.high, round((self.high - self.low) / self.step) + 1)


Points = Uniform | Grid


@dataclass(frozen=True)
class FormulaTask:
    """A formula to be found from its values.

    Attributes:
        name: As in the literature.
        formula: As it is printed there.
        function: From columns to values.
        train: Where it is given; one range for all variables, or one for each.
        test: Where what was found is judged.
        variables: Their names.

    Example:
        >>> task = FORMULA_TASKS["keijzer-7"]
        >>> inputs, values = task.training(np.random.default_rng(0))
        >>> task.formula, inputs["x"][:3].tolist(), values[:2].round(3).tolist()
        ('ln x', [1.0, 2.0, 3.0], [0.0, 0.693])
    """

    name: str
    formula: str
    function: Callable[..., FloatArray]
    train: Points | tuple[Uniform, ...]
    test: Points | tuple[Uniform, ...]
    variables: tuple[str, ...] = ("x",)

    def training(self, rng: np.random.Generator) -> tuple[Inputs, FloatArray]:
        """The points to fit: columns by name, and values."""
        return self._points(self.train, rng)

    def testing(self, rng: np.random.Generator) -> tuple[Inputs, FloatArray]:
        """The points to judge by."""
        return self._points(self.test, rng)

    def _points(self, where: Points | tuple[Uniform, ...], rng: np.random.Generator) -> tuple[Inputs, FloatArray]:
        if isinstance(where, Grid):
            columns = [grid.ravel() for grid in np.meshgrid(*[where.points for _ in self.variables], indexing="ij")]
        else:
            ranges = (where,) * len(self.variables) if isinstance(where, Uniform) else where
            columns = [rng.uniform(one.low, one.high, one.n) for one in ranges]
        return dict(zip(self.variables, columns, strict=True)), self.function(*columns)


def _harmonic(x: FloatArray) -> FloatArray:
    """1 + 1/2 + ... + 1/x of positive integers."""
    found: FloatArray = digamma(x + 1) + np.euler_gamma
    return found


_XY = ("x", "y")
_NARROW, _SQUARE = Uniform(-1, 1, 20), Uniform(-1, 1, 100)
_WIDE, _FINE = Uniform(-3, 3, 20), Grid(-3, 3, 0.01)

FORMULA_TASKS: Mapping[str, FormulaTask] = {
    task.name: task
    for task in (
        # The list of Uy et al. has no test points: 1,000 more of the same distribution are taken.
        FormulaTask("nguyen-1", "x^3 + x^2 + x", lambda x: x**3 + x**2 + x, _NARROW, Uniform(-1, 1, 1000)),
        FormulaTask("nguyen-2", "x^4 + x^3 + x^2 + x", lambda x: x**4 + x**3 + x**2 + x, _NARROW, Uniform(-1, 1, 1000)),
        FormulaTask(
            "nguyen-3",
            "x^5 + x^4 + x^3 + x^2 + x",
            lambda x: x**5 + x**4 + x**3 + x**2 + x,
            _NARROW,
            Uniform(-1, 1, 1000),
        ),
        FormulaTask(
            "nguyen-4",
            "x^6 + x^5 + x^4 + x^3 + x^2 + x",
            lambda x: x**6 + x**5 + x**4 + x**3 + x**2 + x,
            _NARROW,
            Uniform(-1, 1, 1000),
        ),
        FormulaTask(
            "nguyen-5", "sin(x^2) cos(x) - 1", lambda x: np.sin(x**2) * np.cos(x) - 1, _NARROW, Uniform(-1, 1, 1000)
        ),
        FormulaTask(
            "nguyen-6", "sin(x) + sin(x + x^2)", lambda x: np.sin(x) + np.sin(x + x**2), _NARROW, Uniform(-1, 1, 1000)
        ),
        FormulaTask(
            "nguyen-7",
            "ln(x + 1) + ln(x^2 + 1)",
            lambda x: np.log(x + 1) + np.log(x**2 + 1),
            Uniform(0, 2, 20),
            Uniform(0, 2, 1000),
        ),
        FormulaTask("nguyen-8", "sqrt(x)", np.sqrt, Uniform(0, 4, 20), Uniform(0, 4, 1000)),
        FormulaTask(
            "nguyen-9", "sin(x) + sin(y^2)", lambda x, y: np.sin(x) + np.sin(y**2), _SQUARE, Uniform(-1, 1, 1000), _XY
        ),
        FormulaTask(
            "nguyen-10", "2 sin(x) cos(y)", lambda x, y: 2 * np.sin(x) * np.cos(y), _SQUARE, Uniform(-1, 1, 1000), _XY
        ),
        FormulaTask(
            "keijzer-1",
            "0.3 x sin(2 pi x)",
            lambda x: 0.3 * x * np.sin(2 * np.pi * x),
            Grid(-1, 1, 0.1),
            Grid(-1, 1, 0.001),
        ),
        FormulaTask(
            "keijzer-2",
            "0.3 x sin(2 pi x)",
            lambda x: 0.3 * x * np.sin(2 * np.pi * x),
            Grid(-2, 2, 0.1),
            Grid(-2, 2, 0.001),
        ),
        FormulaTask(
            "keijzer-3",
            "0.3 x sin(2 pi x)",
            lambda x: 0.3 * x * np.sin(2 * np.pi * x),
            Grid(-3, 3, 0.1),
            Grid(-3, 3, 0.001),
        ),
        FormulaTask(
            "keijzer-4",
            "x^3 e^-x cos x sin x (sin^2 x cos x - 1)",
            lambda x: x**3 * np.exp(-x) * np.cos(x) * np.sin(x) * (np.sin(x) ** 2 * np.cos(x) - 1),
            Grid(0, 10, 0.05),
            Grid(0.05, 10.05, 0.05),
        ),
        FormulaTask(
            "keijzer-5",
            "30 x z / ((x - 10) y^2)",
            lambda x, y, z: 30 * x * z / ((x - 10) * y**2),
            (Uniform(-1, 1, 1000), Uniform(1, 2, 1000), Uniform(-1, 1, 1000)),
            (Uniform(-1, 1, 10_000), Uniform(1, 2, 10_000), Uniform(-1, 1, 10_000)),
            ("x", "y", "z"),
        ),
        FormulaTask("keijzer-6", "1 + 1/2 + ... + 1/x", _harmonic, Grid(1, 50, 1), Grid(1, 120, 1)),
        FormulaTask("keijzer-7", "ln x", np.log, Grid(1, 100, 1), Grid(1, 100, 0.1)),
        FormulaTask("keijzer-8", "sqrt(x)", np.sqrt, Grid(0, 100, 1), Grid(0, 100, 0.1)),
        FormulaTask("keijzer-9", "arcsinh x", np.arcsinh, Grid(0, 100, 1), Grid(0, 100, 0.1)),
        FormulaTask("keijzer-10", "x^y", np.power, Uniform(0, 1, 100), Grid(0, 1, 0.01), _XY),
        FormulaTask(
            "keijzer-11",
            "x y + sin((x - 1) (y - 1))",
            lambda x, y: x * y + np.sin((x - 1) * (y - 1)),
            _WIDE,
            _FINE,
            _XY,
        ),
        FormulaTask("keijzer-12", "x^4 - x^3 + y^2/2 - y", lambda x, y: x**4 - x**3 + y**2 / 2 - y, _WIDE, _FINE, _XY),
        FormulaTask("keijzer-13", "6 sin(x) cos(y)", lambda x, y: 6 * np.sin(x) * np.cos(y), _WIDE, _FINE, _XY),
        FormulaTask("keijzer-14", "8 / (2 + x^2 + y^2)", lambda x, y: 8 / (2 + x**2 + y**2), _WIDE, _FINE, _XY),
        FormulaTask("keijzer-15", "x^3/5 + y^3/2 - y - x", lambda x, y: x**3 / 5 + y**3 / 2 - y - x, _WIDE, _FINE, _XY),
    )
}
"""All tasks of both lists by name."""
