"""What kernels on the levels of a context variable share: one covariance for each pair of levels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gpytorch
import numpy as np
import numpy.typing as npt
import torch
from botorch.utils.constraints import NonTransformedInterval
from torch import Tensor

from seqopt.encoding import FeatureRows
from seqopt.errors import InputError
from seqopt.kernels.composite import FieldKernel

FloatArray = npt.NDArray[np.floating]

VARIANCE_BOUNDS = (1e-6, 1e3)
"""Lowest and highest variance of what a level has of its own."""


class LevelKernel(FieldKernel):
    """A kernel on L levels, given by the matrix of their covariances: subclasses say what `covariance` is.

    Inputs are rows of one column, ``... x n x 1``, of numbers of levels 0, ..., L - 1: see
    `seqopt.encoding.fields.ContextEncoder`. Such a kernel has a scale of its own: leave out an output scale, or freeze
    it.

    Args:
        levels: Number of levels L, at least 1.
        batch_shape: Batch shape of the covariances.

    Raises:
        InputError: For ``levels`` below 1. When evaluated: for rows that are not numbers of levels.
    """

    normalize = False
    """`cross` does not need `self_similarity`."""

    def __init__(self, levels: int, *, batch_shape: torch.Size | None = None) -> None:
        super().__init__(batch_shape=batch_shape)
        self.levels = counted("levels", levels)

    @property
    def covariance(self) -> Tensor:
        """Covariances of the levels, ``batch_shape x L x L``."""
        raise NotImplementedError

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        """Covariances of rows, see `gpytorch.kernels.Kernel.forward`.

        Args:
            x1: ``... x n x 1``.
            x2: ``... x m x 1``.
            diag: Only k(x1_i, x2_i), ``... x n``.
            params: Ignored.

        Returns:
            ``... x n x m``, in the precision of the rows, at least that of the parameters.

        Raises:
            InputError: As the class says.
        """
        covariance = self.covariance.to(x1.device)
        # A product with indicators broadcasts over batches on either side, and there are few levels.
        rows = self._indicators(x1).to(covariance)
        columns = rows if x2 is x1 else self._indicators(x2).to(covariance)
        if diag:
            return ((rows @ covariance) * columns).sum(-1)
        return rows @ covariance @ columns.mT

    def _indicators(self, x: Tensor) -> Tensor:
        numbers = self._numbers(x.detach().cpu().numpy())
        return torch.nn.functional.one_hot(torch.from_numpy(numbers), self.levels).to(x.device)

    def _numbers(self, values: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """The levels of rows, ``... x n``."""
        found = column(values, self)
        with np.errstate(invalid="ignore"):
            numbers = found.astype(np.int64)
        wrong = (numbers != found) | (numbers < 0) | (numbers >= self.levels)
        if wrong.any():
            raise InputError(
                f"{found[wrong].flat[0]:g} is not the number of a level; expected integers from 0 to {self.levels - 1}"
            )
        return numbers

    def _matrix(self) -> FloatArray:
        covariance: FloatArray = self.covariance.detach().double().cpu().numpy()
        return covariance

    def self_similarity(self, a: FeatureRows) -> FloatArray:
        """k(s, s) of each item, float64, ``batch_shape x n``."""
        return self.variance(a)

    def variance(self, a: FeatureRows, self_a: FloatArray | None = None) -> FloatArray:
        """k(s, s) of each item, float64, ``batch_shape x n``; ``self_a`` is ignored."""
        return self.paired(a, a)

    def paired(self, a: FeatureRows, b: FeatureRows, self_a: FloatArray | None = None) -> FloatArray:
        """k(a_i, b_i), float64, ``batch_shape x n``; ``self_a`` is ignored."""
        return self._matrix()[..., self._numbers(a.dense()), self._numbers(b.dense())]

    def cross(
        self,
        a: FeatureRows,
        b: FeatureRows | None = None,
        self_a: FloatArray | None = None,
        self_b: FloatArray | None = None,
        dtype: npt.DTypeLike = np.float64,
    ) -> FloatArray:
        """Covariances between encoded items, without a graph, ``batch_shape x len(a) x len(b)``.

        Args:
            a: The levels of the rows.
            b: Those of the columns; `None` stands for ``a`` again.
            self_a: Ignored.
            self_b: Ignored.
            dtype: float64 or float32.

        Raises:
            InputError: As the class says.
        """
        rows = self._numbers(a.dense())
        columns = rows if b is None else self._numbers(b.dense())
        return self._matrix().astype(dtype)[..., rows[:, None], columns[None, :]]


class FactoredLevelKernel(LevelKernel):
    """A `LevelKernel` whose covariance is made of factors, and of a variance that each level has of its own.

    The raw parameters ``raw_factors`` and ``raw_variances`` *are* these; the bounds of variances (`VARIANCE_BOUNDS`)
    reach L-BFGS-B through `botorch.fit.fit_gpytorch_mll`. Subclasses call `_begin`, and say what `covariance` is.
    """

    def _begin(self, factors: Tensor, variances: Tensor) -> None:
        """Register both parameters with what they begin with.

        Raises:
            InputError: If variances are out of bounds.
        """
        self.register_parameter("raw_factors", torch.nn.Parameter(factors))
        self.register_parameter("raw_variances", torch.nn.Parameter(variances))
        self.register_constraint("raw_variances", NonTransformedInterval(*VARIANCE_BOUNDS).double())
        self.variances = variances

    @property
    def factors(self) -> Tensor:
        """What levels have in common; assign to change it."""
        factors: Tensor = self.raw_factors
        return factors

    @factors.setter
    def factors(self, value: Any) -> None:
        self.initialize(raw_factors=fitting("factors", value, self.raw_factors.shape).to(self.raw_factors))

    @property
    def variances(self) -> Tensor:
        """What each level has of its own, ``batch_shape x L``; assign to change it."""
        raw: Tensor = self.raw_variances
        return raw.clamp(*VARIANCE_BOUNDS)

    @variances.setter
    def variances(self, value: Any) -> None:
        lower, upper = VARIANCE_BOUNDS
        found = fitting("variances", value, self.raw_variances.shape)
        if not bool(((found >= lower) & (found <= upper)).all()):
            raise InputError(f"variances are {value!r}; they must lie in [{lower:g}, {upper:g}]")
        self.initialize(raw_variances=found.to(self.raw_variances))


def column(rows: Any, kernel: gpytorch.kernels.Kernel) -> Any:
    """The only column of rows."""
    if rows.shape[-1] != 1:
        raise InputError(f"{type(kernel).__name__} compares rows of one column; got {rows.shape[-1]}: use OnField")
    return rows[..., 0]


@dataclass(frozen=True)
class Reading:
    """Reads a parameter of a kernel, for its prior; unlike a function within another one, it can be pickled."""

    name: str

    def __call__(self, kernel: gpytorch.kernels.Kernel) -> Any:
        """The parameter."""
        return getattr(kernel, self.name)


@dataclass(frozen=True)
class Setting:
    """Sets a parameter of a kernel, as what is drawn from its prior."""

    name: str

    def __call__(self, kernel: gpytorch.kernels.Kernel, value: Any) -> None:
        """Give it a value, rounded to the bounds where it has some."""
        constraint = kernel._constraints.get(f"raw_{self.name}_constraint")
        if constraint is not None:
            value = value.clamp(constraint.lower_bound, constraint.upper_bound)
        setattr(kernel, self.name, value)


def counted(name: str, value: Any) -> int:
    """An integer of at least 1.

    Raises:
        InputError: If it is none.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InputError(f"{name} is {value!r}; it must be an integer of at least 1")
    return int(value)


def fitting(name: str, value: Any, shape: tuple[int, ...]) -> Tensor:
    try:
        tensor = torch.as_tensor(value, dtype=torch.float64).detach()
        expanded = tensor.expand(shape).clone()
    except (TypeError, ValueError, RuntimeError):
        raise InputError(f"{name} are {value!r}; expected numbers that expand to {tuple(shape)}") from None
    if not bool(torch.isfinite(expanded).all()):
        raise InputError(f"{name} are {value!r}; expected finite numbers")
    return expanded
