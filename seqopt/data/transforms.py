r"""Transformations of the objective that the model sees instead of the user's values.

`Identity` and `Log10` are chosen by the user once and for all. The others are for values with heavy tails, with which a
Gaussian process spends itself on a few outliers: `YeoJohnson`, `Winsorised` and `NormalScores` have parameters that are
learned from the values, and a `LearnedTransform` learns them anew whenever a model is fitted. All are strictly
increasing, so that quantiles of predictions can be turned back.

*How transforms are compared.* A model of transformed values z = T(y) gives the values themselves the density
:math:`p(y) = p_Z(T(y)) \prod_i T'(y_i)`. Without the second factor, the Jacobian, whatever shrinks values would win.
`seqopt.models.transforms` compares the sum of both logarithms, less half the logarithm of n for each parameter that
was learned (Schwarz 1978). `NormalScores` is not among what is compared: its slope between two values is one over their
distance, so its "density" at the values that it was made from has no upper bound, whatever the model.

References:
    Yeo, I.-K. and Johnson, R. A. (2000). A new family of power transformations to improve normality or symmetry.
        Biometrika 87, 954-959.
    Snelson, E., Rasmussen, C. E. and Ghahramani, Z. (2003). Warped Gaussian processes. NeurIPS 16.
    Schwarz, G. (1978). Estimating the dimension of a model. Annals of Statistics 6, 461-464.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Protocol

import numpy as np
import numpy.typing as npt

from seqopt.data.yes_no import YES_NO, YesNo
from seqopt.errors import InputError
from seqopt.utils.config import Configurable

Numbers = npt.NDArray[np.float64]

HALF_WIDTH = NormalDist().inv_cdf(0.95)
"""Half the width of the central 90 % of a normal distribution, in standard deviations."""

POWERS = tuple(number / 4 for number in range(9))
"""Powers of `YeoJohnson` that are compared: its images are the whole line from 0 to 2 only."""

EDGES = (0.5, 1.0, 2.0, 3.0)
"""Edges of `Winsorised` that are compared, in its unit of scale."""

TAIL = 0.5
"""What the logarithm of a tail of `Winsorised` is taken of, in its unit of scale."""

LEARNED = ("yeo-johnson", "winsorised", "ranks", "auto")
"""Names of transforms whose parameters are learned from the values."""

TRANSFORMS = ("none", "log10", *LEARNED)
"""Names of all transforms."""

DEFAULT_TRANSFORM = "auto"
"""The transform of a search for which none is chosen.

Where values have no heavy tails it learns that they are best left as they are. Where they have, a search finds 1.7 to 3
times as many of the best strings: see ``docs/results.md``.
"""


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


@dataclass(frozen=True)
class _Standardised(Configurable):
    """What transforms of standardised values u = (y - centre) / scale share.

    They have no moments to speak of: a normal variable whose tails are stretched by an exponential may have no mean.
    What stands for these are the median, and the standard deviation of a normal distribution whose central 90 % are as
    wide.

    Args:
        centre: In the user's units; the median of the values it was learned from.
        scale: In the user's units, above 0: their quartile range / 1.349, the standard deviation of normal values.
    """

    centre: float = 0.0
    scale: float = 1.0

    name = ""

    def forward(self, value: float) -> float:
        """The value that the model sees."""
        return self._warped((value - self.centre) / self.scale)

    def inverse(self, value: float) -> float:
        """The value in the user's units that the model sees as ``value``; infinite where it exceeds any float."""
        try:
            return self.centre + self.scale * self._unwarped(value)
        except OverflowError:
            return math.copysign(math.inf, value)

    def moments(self, mean: float, std: float) -> tuple[float, float]:
        """The median, and the width of the central 90 % in that of a standard normal distribution."""
        return quantile_moments(self, mean, std)

    def variance(self, value: float, variance: float) -> float:
        """``variance`` times the square of the slope at ``value``."""
        return variance * self.slope(value) ** 2

    def slope(self, value: float) -> float:
        """Derivative of `forward` at a value in the user's units."""
        return self._stretch((value - self.centre) / self.scale) / self.scale

    def _warped(self, u: float) -> float:
        raise NotImplementedError

    def _unwarped(self, z: float) -> float:
        raise NotImplementedError

    def _stretch(self, u: float) -> float:
        raise NotImplementedError


@dataclass(frozen=True)
class YeoJohnson(_Standardised):
    r"""Yeo and Johnson's power transform of standardised values.

    .. math::

        T(u) = \begin{cases} ((1 + u)^\lambda - 1) / \lambda & u \ge 0 \\
        -((1 - u)^{2 - \lambda} - 1) / (2 - \lambda) & u < 0 \end{cases}

    with logarithms at :math:`\lambda = 0` (right tail) and :math:`\lambda = 2` (left tail), and T(u) = u at 1. Powers
    below 1 shorten the right tail, those above the left one.

    Args:
        centre: See the values that it was learned from: their median.
        scale: Their quartile range / 1.349.
        power: :math:`\lambda`, from 0 to 2.

    Raises:
        InputError: For another power, or a scale that is not positive.

    Example:
        >>> YeoJohnson(power=2.0).forward(-9.0) == -math.log(10)
        True
    """

    power: float = 1.0

    name = "yeo-johnson"

    def __post_init__(self) -> None:
        if not 0.0 <= self.power <= 2.0 or not self.scale > 0:
            raise InputError(f"power is {self.power} and scale {self.scale}; expected 0 to 2, and above 0")

    def describe(self) -> str:
        """In words."""
        return f"Yeo-Johnson with the power {self.power:g}"

    def _warped(self, u: float) -> float:
        return _power(u, self.power) if u >= 0 else -_power(-u, 2.0 - self.power)

    def _unwarped(self, z: float) -> float:
        return _unpower(z, self.power) if z >= 0 else -_unpower(-z, 2.0 - self.power)

    def _stretch(self, u: float) -> float:
        return (1.0 + u) ** (self.power - 1.0) if u >= 0 else (1.0 - u) ** (1.0 - self.power)


def _power(u: float, power: float) -> float:
    return math.log1p(u) if power == 0 else ((1.0 + u) ** power - 1.0) / power


def _unpower(z: float, power: float) -> float:
    return math.expm1(z) if power == 0 else (1.0 + power * z) ** (1.0 / power) - 1.0


@dataclass(frozen=True)
class Winsorised(_Standardised):
    r"""Standardised values between two edges as they are, and the logarithms of how far others lie beyond them.

    .. math:: T(u) = h + t \log(1 + (u - h) / t) \quad (u > h, \; t = 0.5),

    and likewise below the lower edge. Winsorising itself sets what lies beyond an edge to the edge; then values are no
    longer told apart, there is no density to compare transforms by, and no prediction lies beyond the edges.

    Args:
        centre: See the values that it was learned from: their median.
        scale: Their quartile range / 1.349.
        low: The lower edge h, in the unit of scale; minus infinity for none.
        high: The upper edge.

    Raises:
        InputError: If the edges are out of order, or the scale is not positive.

    Example:
        >>> clipped = Winsorised(low=-1.0, high=2.0)
        >>> [round(clipped.forward(value), 3) for value in (-100.0, -1.0, 0.0, 2.0, 2.1)]
        [-3.647, -1.0, 0.0, 2.0, 2.091]
    """

    low: float = -math.inf
    high: float = math.inf

    name = "winsorised"

    def __post_init__(self) -> None:
        if not self.low < self.high or not self.scale > 0:
            raise InputError(
                f"the edges are {self.low} and {self.high}, the scale {self.scale}; expected low < high, and scale > 0"
            )

    def describe(self) -> str:
        """In words, in the user's units."""
        ends = [
            f"{word} {self.centre + self.scale * edge:.4g}"
            for word, edge in (("below", self.low), ("above", self.high))
            if math.isfinite(edge)
        ]
        return f"logarithms of what lies {' and '.join(ends)}" if ends else "the values themselves"

    def _warped(self, u: float) -> float:
        if u > self.high:
            return self.high + TAIL * math.log1p((u - self.high) / TAIL)
        return self.low - TAIL * math.log1p((self.low - u) / TAIL) if u < self.low else u

    def _unwarped(self, z: float) -> float:
        if z > self.high:
            return self.high + TAIL * math.expm1((z - self.high) / TAIL)
        return self.low - TAIL * math.expm1((self.low - z) / TAIL) if z < self.low else z

    def _stretch(self, u: float) -> float:
        beyond = max(u - self.high, self.low - u, 0.0)
        return 1.0 / (1.0 + beyond / TAIL)


class NormalScores(Configurable):
    r"""Ranks as quantiles of the standard normal distribution, and straight lines between them.

    Of n values, one of the (mean) rank r has the score :math:`\Phi^{-1}((r - 1/2) / n)`. Beyond the values it goes on
    with the mean slope from the median to the outermost one. It takes no account of distances: of a value that is far
    better than all others, the model learns that it is the best.

    Args:
        values: The values it is made from, in the user's units; two different ones or more.

    Raises:
        InputError: If all values are equal.

    Example:
        >>> scores = NormalScores([1.0, 2.0, 1000.0])
        >>> [round(scores.forward(value), 3) for value in (1.0, 2.0, 501.0, 1000.0)]
        [-0.967, 0.0, 0.484, 0.967]
    """

    name = "ranks"

    def __init__(self, values: Sequence[float] | Numbers) -> None:
        self.values = sorted(float(value) for value in values)
        known, counts = np.unique(np.array(self.values), return_counts=True)
        if len(known) < 2:
            raise InputError("ranks need two different values or more")
        ranks = np.cumsum(counts) - counts / 2
        scores = np.array([NormalDist().inv_cdf(share) for share in ranks / counts.sum()])
        middle = float(np.interp(0.0, scores, known))
        ends = []
        for end in (0, -1):
            # Where more than half of the values are the outermost one, the median is that.
            rise, run = scores[end] - 0.0, known[end] - middle
            ends.append(float(rise / run) if run != 0 and rise / run > 0 else float(np.ptp(scores) / np.ptp(known)))
        self._known, self._scores = known, scores
        self._slopes = ends

    def config_arguments(self) -> dict[str, object]:
        """See `seqopt.utils.config.Configurable`."""
        return {"values": self.values}

    def describe(self) -> str:
        """In words."""
        return f"ranks of {len(self.values)} values"

    def forward(self, value: float) -> float:
        """The score of a value."""
        return _along(value, self._known, self._scores, self._slopes)

    def inverse(self, value: float) -> float:
        """The value of a score."""
        return _along(value, self._scores, self._known, [1.0 / slope for slope in self._slopes])

    def moments(self, mean: float, std: float) -> tuple[float, float]:
        """The median, and the width of the central 90 % in that of a standard normal distribution."""
        return quantile_moments(self, mean, std)

    def variance(self, value: float, variance: float) -> float:
        """``variance`` times the square of the mean slope within a standard deviation of ``value``."""
        reach = math.sqrt(variance)
        if reach == 0:
            return 0.0
        return ((self.forward(value + reach) - self.forward(value - reach)) / 2.0) ** 2


def _along(value: float, known: Numbers, images: Numbers, slopes: Sequence[float]) -> float:
    if value < known[0]:
        return float(images[0] + slopes[0] * (value - known[0]))
    if value > known[-1]:
        return float(images[-1] + slopes[1] * (value - known[-1]))
    return float(np.interp(value, known, images))


def quantile_moments(transform: Transform, mean: float, std: float) -> tuple[float, float]:
    """The median of what is normal under a transform, and the width of its central 90 % in that of a normal variable.

    Args:
        transform: The transform.
        mean: In the model's units.
        std: Likewise.
    """
    low, high = (transform.inverse(mean + side * HALF_WIDTH * std) for side in (-1.0, 1.0))
    return transform.inverse(mean), abs(high - low) / (2.0 * HALF_WIDTH)


def quantile_interval(transform: Transform, mean: float, std: float | None) -> tuple[float | None, float | None]:
    """The central 90 % of what is normal under a transform, in the user's units; `None` where no float can hold it.

    Example:
        >>> [round(end, 2) for end in quantile_interval(Winsorised(low=-1.0), -1.0, 1.0)]
        [-13.92, 0.64]
    """
    if std is None:
        return None, None
    ends = [transform.inverse(mean + side * HALF_WIDTH * std) for side in (-1.0, 1.0)]
    return (ends[0], ends[1]) if all(map(math.isfinite, ends)) else (None, None)


class LearnedTransform(Configurable):
    """A transform whose parameters are learned from the values, anew whenever a model is fitted to them.

    It does what `current` does, which is `Identity` before the first fit. What it has learned is not kept anywhere: it
    follows from the values. Strategies that fit no Gaussian process never change it.

    Args:
        name: ``"yeo-johnson"``, ``"winsorised"``, ``"ranks"``, or ``"auto"``: the most likely of none, ``log10`` where
            all values are positive, ``yeo-johnson`` and ``winsorised``.

    Attributes:
        current: What was learned last.

    Raises:
        InputError: For another name.

    Example:
        >>> transform = LearnedTransform("yeo-johnson")
        >>> [type(one).__name__ for one, _ in transform.candidates(np.arange(20.0))[:2]], transform.current.name
        (['YeoJohnson', 'YeoJohnson'], 'none')
    """

    def __init__(self, name: str = "auto") -> None:
        if name not in LEARNED:
            raise InputError(f"unknown transform {name!r}: choose {', '.join(LEARNED)}")
        self.name = name
        self.current: Transform = Identity()

    def candidates(self, values: Numbers) -> list[tuple[Transform, int]]:
        """What may be learned from values, and how many parameters each has; `Identity` where all are equal.

        Args:
            values: n finite values, in the user's units.
        """
        if len(values) < 2 or np.ptp(values) == 0:
            return [(Identity(), 0)]
        if self.name == "ranks":
            return [(NormalScores(values), 0)]
        centre, scale = float(np.median(values)), _scale(values)
        powers: list[tuple[Transform, int]] = [(YeoJohnson(centre, scale, power), 1) for power in POWERS]
        if self.name == "yeo-johnson":
            return powers
        lower, upper = ([*(sign * edge for edge in EDGES), sign * math.inf] for sign in (-1.0, 1.0))
        clipped: list[tuple[Transform, int]] = [
            (Winsorised(centre, scale, low, high), math.isfinite(low) + math.isfinite(high))
            for low, high in itertools.product(lower, upper)
        ]
        if self.name == "winsorised":
            return clipped
        positive: list[tuple[Transform, int]] = [(Log10(), 0)] if values.min() > 0 else []
        return [(Identity(), 0), *positive, *powers, *clipped[:-1]]

    def forward(self, value: float) -> float:
        """That of `current`."""
        return self.current.forward(value)

    def inverse(self, value: float) -> float:
        """That of `current`."""
        return self.current.inverse(value)

    def moments(self, mean: float, std: float) -> tuple[float, float]:
        """The median, and the width of the central 90 % in that of a standard normal distribution, under `current`."""
        return quantile_moments(self.current, mean, std)

    def variance(self, value: float, variance: float) -> float:
        """That of `current`."""
        return self.current.variance(value, variance)

    def describe(self) -> str:
        """What was learned, in words.

        Example:
            >>> LearnedTransform("auto").describe()
            'the values themselves'
        """
        if isinstance(self.current, YeoJohnson | Winsorised | NormalScores):
            return self.current.describe()
        return "logarithms" if isinstance(self.current, Log10) else "the values themselves"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LearnedTransform) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


def learned(transform: Transform) -> Transform:
    """What a transform is at present: that which a `LearnedTransform` has learned, and any other itself.

    Example:
        >>> learned(LearnedTransform("auto")).name, learned(Log10()).name
        ('none', 'log10')
    """
    return transform.current if isinstance(transform, LearnedTransform) else transform


def _scale(values: Numbers) -> float:
    """Quartile range / 1.349; where most values are equal, the standard deviation."""
    lower, upper = np.quantile(values, [0.25, 0.75])
    found = float(upper - lower) / (2 * NormalDist().inv_cdf(0.75))
    return found if found > 0 else float(values.std())


def log_slopes(transform: Transform, values: Numbers) -> float:
    """Sum of the logarithms of the slopes of a transform at n values: the logarithm of its Jacobian.

    Raises:
        InputError: For a transform that has no density, such as ranks.

    Example:
        >>> round(log_slopes(Log10(), np.array([1.0, 10.0])), 3)  # slopes are 1 / (y ln 10)
        -3.971
    """
    if isinstance(transform, Identity):
        return 0.0
    if isinstance(transform, Log10):
        return float(-np.log(values * math.log(10)).sum())
    if isinstance(transform, _Standardised):
        return float(sum(math.log(transform.slope(value)) for value in values.tolist()))
    raise InputError(f"the transform {transform.name} has no density at the values that it was learned from")


def check_value(transform: Transform, value: float) -> None:
    """Refuse a value that a transform can never take.

    Raises:
        InputError: As `Transform.forward` does.
    """
    if not isinstance(transform, LearnedTransform):
        transform.forward(value)


def resolve_transform(transform: str | Transform | None) -> Transform:
    """The transform of a name (one of `TRANSFORMS`, or ``"yes/no"`` for results that are), or the given one.

    Raises:
        InputError: For an unknown name.
    """
    if transform is None or transform == "none":
        return Identity()
    if transform == "log10":
        return Log10()
    if transform == YES_NO:
        return YesNo()
    if isinstance(transform, str):
        if transform not in LEARNED:
            raise InputError(
                f"unknown transform {transform!r}: choose {', '.join(TRANSFORMS[:-1])} or {TRANSFORMS[-1]}"
            )
        return LearnedTransform(transform)
    return transform
