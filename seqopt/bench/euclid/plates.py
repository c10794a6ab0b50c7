"""Objectives that are seen through plates only: draws of a hierarchical Gaussian process, and warehouses.

A *plate* is a number from 1, here the seed of a simulation; on each there is another function f_s, and the objective g
is what they have in common. New plates can be had without end.

References:
    Moss, H. B. (2021). PhD thesis, sections 6.6.1, 6.6.4 and D.3.4.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from gpytorch.kernels import MaternKernel
from scipy.interpolate import CubicSpline

from seqopt.bench.euclid.facility import Day, day_of, share_in_time
from seqopt.posteriors import stable_cholesky

FloatArray = npt.NDArray[np.float64]

GRID = 401
"""Points at which functions are drawn; between them runs a cubic spline."""

LENGTHSCALE = 0.1
DAYS = 100
"""Days over which the objective of warehouses is averaged, as in the thesis."""


class PlateProblem(Protocol):
    """An objective behind plates.

    Attributes:
        dim: Number of variables, each in [0, 1].
        exact: Whether values on a plate are those of a smooth function, without noise.
    """

    dim: int
    exact: bool

    @property
    def optimum(self) -> float:
        """Largest value of g, NaN where it is not known."""
        ...

    def on_plate(self, points: FloatArray, plate: int) -> FloatArray:
        """Values of points ``n x d`` on a plate."""
        ...

    def objective(self, points: FloatArray) -> FloatArray:
        """The objective g at points ``n x d``."""
        ...


class HierarchicalDraw:
    """g ~ GP(0, k_g) on [0, 1], and f_s = g + GP(0, k_f) + N(0, constant), both Matern-5/2 of lengthscale 0.1.

    Args:
        seed: Fixes g and all f_s.
        lower: Variance of k_f, where that of k_g is 1.
        constant: Variance of what a whole plate is off by.
    """

    dim = 1
    exact = True

    def __init__(self, seed: int, lower: float, constant: float) -> None:
        self.seed, self.lower, self.constant = seed, lower, constant
        self._g = self._draw(0)
        self._plates: dict[int, CubicSpline] = {}

    @cached_property
    def optimum(self) -> float:
        """See `PlateProblem`; on a grid that is finer than that of the draw."""
        return float(self._g(np.linspace(0.0, 1.0, 100 * (GRID - 1) + 1)).max())

    def objective(self, points: FloatArray) -> FloatArray:
        """See `PlateProblem`."""
        found: FloatArray = self._g(points[:, 0])
        return found

    def on_plate(self, points: FloatArray, plate: int) -> FloatArray:
        """See `PlateProblem`."""
        if plate not in self._plates:
            self._plates[plate] = self._draw(plate)
        offset = np.random.default_rng([self.seed, plate, 1]).standard_normal()
        own = np.sqrt(self.lower) * self._plates[plate](points[:, 0]) + np.sqrt(self.constant) * offset
        found: FloatArray = self.objective(points) + own
        return found

    def _draw(self, plate: int) -> CubicSpline:
        normal = np.random.default_rng([self.seed, plate]).standard_normal(GRID)
        return CubicSpline(np.linspace(0.0, 1.0, GRID), _grid_factor() @ normal)


class Warehouses:
    """Percent of orders that two warehouses at (x_1, y_1, x_2, y_2) deliver in time; a plate is a day.

    Args:
        seed: Fixes the days, which differ between seeds; those of the objective are the same for all.
    """

    dim = 4
    optimum = float("nan")
    exact = False

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._days: dict[int, Day] = {}

    def objective(self, points: FloatArray) -> FloatArray:
        """Mean over 100 days that no search sees."""
        return np.array([np.mean([share_in_time(point.reshape(2, 2), day) for day in _judges()]) for point in points])

    def on_plate(self, points: FloatArray, plate: int) -> FloatArray:
        """See `PlateProblem`."""
        if plate not in self._days:
            self._days[plate] = day_of(np.random.default_rng([self.seed, plate, 2]))
        return np.array([share_in_time(point.reshape(2, 2), self._days[plate]) for point in points])


@lru_cache(maxsize=1)
def _judges() -> list[Day]:
    return [day_of(np.random.default_rng([number, 3])) for number in range(DAYS)]


@lru_cache(maxsize=1)
def _grid_factor() -> FloatArray:
    grid = torch.linspace(0.0, 1.0, GRID, dtype=torch.float64)[:, None]
    kernel = MaternKernel(nu=2.5).double()
    kernel.lengthscale = LENGTHSCALE
    with torch.no_grad():
        return stable_cholesky(kernel(grid, grid).to_dense())[0].numpy()
