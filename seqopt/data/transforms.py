"""Transformations of the objective that the model sees instead of the user's values."""

from __future__ import annotations

import math
from typing import Protocol

from seqopt.errors import InputError
from seqopt.utils.config import Configurable


class Transform(Protocol):
    """A monotone map from the user's units to the model's, and moments back."""

    name: str

    def forward(self, value: float) -> float:
        """The value that the model sees.

        Raises:
            InputError: If the value has no image.
        """
        ...

    def inverse(self, value: float) -> float:
        """The value in the user's units that the model sees as ``value``."""
        ...

    def moments(self, mean: float, std: float) -> tuple[float, float]:
        """Mean and standard deviation in the user's units of a variable that is normal in the model's units."""
        ...

    def variance(self, value: float, variance: float) -> float:
        """Variance in the model's units of a measurement ``value`` with a small ``variance`` in the user's units."""
        ...


class Identity(Configurable):
    """The model sees the values themselves."""

    name = "none"

    def forward(self, value: float) -> float:
        """``value``."""
        return value

    def inverse(self, value: float) -> float:
        """``value``."""
        return value

    def moments(self, mean: float, std: float) -> tuple[float, float]:
        """``mean`` and ``std``."""
        return mean, std

    def variance(self, value: float, variance: float) -> float:
        """``variance``."""
        return variance


class Log10(Configurable):
    """The model sees log10 of the value: for assays whose results span decades (IC50, Ki, counts).

    With Y = 10^X and X ~ N(m, s^2), and t = s ln 10, mean(Y) = 10^m exp(t^2 / 2) and
    std(Y) = mean(Y) sqrt(exp(t^2) - 1), the moments of the log-normal distribution.

    Example:
        >>> Log10().forward(1000.0)
        3.0
        >>> [round(moment, 3) for moment in Log10().moments(3.0, 0.1)]
        [1026.864, 239.613]
    """

    name = "log10"

    def forward(self, value: float) -> float:
        """log10 of ``value``; see the class.

        Raises:
            InputError: If ``value`` is not positive.
        """
        if not value > 0:
            raise InputError(f"the transform log10 needs positive values, got {value:g}")
        return math.log10(value)

    def inverse(self, value: float) -> float:
        """10^``value``; infinite where it exceeds the largest float."""
        try:
            return math.pow(10.0, value)
        except OverflowError:
            return math.inf

    def moments(self, mean: float, std: float) -> tuple[float, float]:
        """Log-normal mean and standard deviation; infinite where they exceed the largest float."""
        try:
            spread = (std * math.log(10)) ** 2
            centre = math.exp(mean * math.log(10) + spread / 2)
            return centre, centre * math.sqrt(math.expm1(spread))
        except OverflowError:
            return math.inf, math.inf

    def variance(self, value: float, variance: float) -> float:
        """``variance`` / (``value`` ln 10)^2, the first term of its expansion in the relative error."""
        return variance / (value * math.log(10)) ** 2


def resolve_transform(transform: str | Transform | None) -> Transform:
    """The transform of a name (``"none"``, ``"log10"``), or the given one.

    Raises:
        InputError: For an unknown name.
    """
    if transform is None or transform == "none":
        return Identity()
    if transform == "log10":
        return Log10()
    if isinstance(transform, str):
        raise InputError(f"unknown transform {transform!r}: choose none or log10")
    return transform
