"""What is shown of a prediction: one central value and one interval, the same wherever a prediction is shown.

A model predicts a normal distribution in its own units. The central prediction is its median, which is the mean where
values are taken as they are, and the interval holds the central `COVERAGE` of it. Under the transform ``log10`` both
are turned back: the median of a log-normal distribution, which is its geometric mean, and an interval of so many fold
about it. The mean of a log-normal distribution is another thing: where a prediction is wide, it lies far above that.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from seqopt.data.transforms import Transform
from seqopt.data.yes_no import YES_NO, probability_moments

FloatArray = npt.NDArray[np.float64]

COVERAGE = 0.9
"""Share of a predicted distribution in its interval: as many again lie below as above."""

HALF_WIDTH = 1.6448536269514722
"""Half the width of the central 90 % of a normal distribution, in standard deviations."""


class Predictions(NamedTuple):
    """What is predicted of N strings, in the user's units.

    Attributes:
        central: Central prediction: the median, N; of yes/no results the probability of a hit.
        low: Lower ends of the central 90 % of a measurement, noise included, N.
        high: Upper ends, N.
        true_low: Lower ends of the central 90 % of the true value, without the noise of a measurement, N.
        true_high: Upper ends, N.
    """

    central: FloatArray
    low: FloatArray
    high: FloatArray
    true_low: FloatArray
    true_high: FloatArray

    @classmethod
    def of(
        cls, mean: npt.ArrayLike, std: npt.ArrayLike, measurement_std: npt.ArrayLike, transform: Transform, sign: float
    ) -> Predictions:
        """From what a model says, in which larger is better.

        Args:
            mean: N.
            std: Of the true value, N.
            measurement_std: Of a measurement, N.
            transform: What the model sees instead of values.
            sign: -1 where small values are good.

        Example:
            >>> from seqopt.data import Log10
            >>> found = Predictions.of([-3.0], [0.1], [0.2], Log10(), -1)
            >>> [round(float(numbers[0])) for numbers in found]
            [1000, 469, 2133, 685, 1460]
        """
        centre = sign * np.asarray(mean, dtype=np.float64)
        spreads = [HALF_WIDTH * np.asarray(given, dtype=np.float64) for given in (measurement_std, std)]
        ends = [centre, centre - spreads[0], centre + spreads[0], centre - spreads[1], centre + spreads[1]]
        if transform.name != "none":
            inverse = np.frompyfunc(transform.inverse, 1, 1)
            ends = [np.asarray(inverse(values), dtype=np.float64) for values in ends]
        if transform.name == YES_NO:
            # Hits are counted: what is expected of one well is the mean of the probability.
            ends[0] = probability_moments(centre, spreads[1] / HALF_WIDTH)[0]
        return cls(*ends)


def log_normal(mean: float, std: float) -> tuple[float, float]:
    """Mean and standard deviation of ln Y, of the mean M > 0 and the standard deviation S of a log-normal Y.

    With v = ln(1 + S^2 / M^2): ln M - v / 2, and sqrt(v).

    Example:
        >>> centre, spread = log_normal(math.exp(2.5), math.exp(2) * math.sqrt(math.exp(2) - math.exp(1)))
        >>> round(centre, 6), round(spread, 6)
        (2.0, 1.0)
    """
    ratio = std / mean
    # Squares of large ratios overflow, and there 1 is nothing.
    spread = math.log1p(ratio**2) if ratio < 1e100 else 2 * math.log(ratio)
    return math.log(mean) - spread / 2, math.sqrt(spread)


def central(mean: float | None, std: float | None, transform: str | None) -> float | None:
    """The central prediction, of the mean and the standard deviation of the predicted distribution.

    Args:
        mean: In the user's units; `None` where nothing was predicted.
        std: Standard deviation in the user's units.
        transform: ``"log10"`` where the moments are those of a log-normal distribution: its median is exp(ln M - v / 2)
            with v = ln(1 + S^2 / M^2).

    Example:
        >>> from seqopt.data import Log10
        >>> mean, std = Log10().moments(2.0, 1.0)
        >>> round(mean, 1), round(central(mean, std, "log10"), 6), central(1.5, 0.5, None)
        (1416.7, 100.0, 1.5)
    """
    if mean is None or not math.isfinite(mean):
        return None
    if std is None or transform != "log10" or mean <= 0:
        return mean
    return math.exp(log_normal(mean, std)[0])


def interval(mean: float | None, std: float | None, transform: str | None) -> tuple[float | None, float | None]:
    """The central 90 % of a prediction in the user's units; `None` where there is none, or no float can hold it.

    Args:
        mean: Mean in the user's units.
        std: Standard deviation in the user's units: of a measurement, noise included, if nine of ten measurements are
            to lie in the interval.
        transform: ``"log10"`` where the moments are those of a log-normal distribution, whose quantiles they give;
            ``"yes/no"`` where they are those of a probability, for which the beta distribution of these moments stands.

    Example:
        >>> [round(end, 3) for end in interval(1.0, 0.5, None)]
        [0.178, 1.822]
    """
    if mean is None or std is None or not math.isfinite(mean) or not math.isfinite(std):
        return None, None
    if transform == YES_NO:
        return _probable(mean, std)
    if transform != "log10" or mean <= 0:
        return mean - HALF_WIDTH * std, mean + HALF_WIDTH * std
    try:
        centre, spread = log_normal(mean, std)
        return math.exp(centre - HALF_WIDTH * spread), math.exp(centre + HALF_WIDTH * spread)
    except OverflowError:
        return None, None


def _probable(mean: float, std: float) -> tuple[float, float]:
    """The central 90 % of the beta distribution of a mean and a standard deviation: of a probability, of which these
    are all that is known.
    """
    from scipy.special import betaincinv

    if not 0.0 < mean < 1.0 or std <= 0.0:
        return mean, mean
    strength = max(mean * (1.0 - mean) / std**2 - 1.0, 1e-3)
    low, high = (float(betaincinv(mean * strength, (1.0 - mean) * strength, share)) for share in (0.05, 0.95))
    return low, high


_NEGATIVE_LOG = re.compile(r"\bp(?P<what>(?:[IEAXGL]C|[EL]D|CC|MIC)(?:50|90)?|K[aidmb])\b(?!\w)")
_NEGATIVE_LOG_UNIT = re.compile(r"[-−–]\s*log(?:10|_10|₁₀)?\s*[\[(]?\s*(?:mol(?:/l)?|M)?\s*[\])]?", re.IGNORECASE)


def negative_log_of(objective: str, unit: str | None = None) -> str | None:
    """What the values are the negative logarithm of, such as ``"IC50"`` for pIC50; `None` where they are none.

    Args:
        objective: Name of what is measured.
        unit: Its unit.

    Example:
        >>> [negative_log_of(name) for name in ("pIC50", "hERG pKi", "pEC50 (mean)", "pKd", "IC50", "spike")]
        ['IC50', 'Ki', 'EC50', 'Kd', None, None]
        >>> negative_log_of("potency", "-log10 M")
        'concentration'
    """
    for text in (objective, unit or ""):
        found = _NEGATIVE_LOG.search(text.replace("_", " "))
        if found:
            return found["what"]
    return "concentration" if unit and _NEGATIVE_LOG_UNIT.fullmatch(unit.strip()) else None


def fold_range(
    low: float | None, high: float | None, transform: str | None, objective: str = "", unit: str | None = None
) -> float | None:
    """How many fold an interval reaches up and down from its middle, where values are on a logarithmic scale.

    Args:
        low: Lower end.
        high: Upper end.
        transform: ``"log10"`` for values whose logarithm is modelled.
        objective: Name of what is measured: of pIC50 and the like, the fold is that of the IC50.
        unit: Its unit.

    Returns:
        The factor, at least 1; `None` on a scale that is not logarithmic, or where there is no interval.

    Example:
        >>> round(fold_range(10.0, 1000.0, "log10"), 6), round(fold_range(5.5, 6.5, None, "pIC50"), 2)
        (10.0, 3.16)
    """
    if low is None or high is None or high < low:
        return None
    if transform == "log10":
        return math.sqrt(high) / math.sqrt(low) if low > 0 else None
    if negative_log_of(objective, unit) is not None:
        half = (high - low) / 2
        return 10.0**half if half < 300 else None
    return None


def shown_number(value: float) -> str:
    """A number that was predicted, to the three significant digits that a prediction has at most.

    Example:
        >>> [shown_number(value) for value in (0.058294, 6.4, 999.7, 1426.75, 1.5e9)]
        ['0.0583', '6.4', '1,000', '1,427', '1.5e+09']
    """
    return f"{value:,.0f}" if 999.5 <= abs(value) < 1e7 else f"{value:.3g}"


def shown_interval(
    low: float | None, high: float | None, transform: str | None, objective: str = "", unit: str | None = None
) -> str:
    """An interval in words, with its fold range on a logarithmic scale; empty where there is none.

    Args:
        low: As in `fold_range`, like the others.
        high: Upper end.
        transform: Of the values.
        objective: Name of what is measured.
        unit: Its unit.

    Example:
        >>> shown_interval(31.6, 316.0, "log10"), shown_interval(5.9, 6.9, None, "pIC50"), shown_interval(1, 2, None)
        ('31.6 to 316 (×/÷ 3.2)', '5.9 to 6.9 (IC50 ×/÷ 3.2)', '1 to 2')
    """
    if low is None or high is None:
        return ""
    text = f"{shown_number(low)} to {shown_number(high)}"
    fold = fold_range(low, high, transform, objective, unit)
    if fold is None:
        return text
    of = "" if transform == "log10" else f"{negative_log_of(objective, unit)} "
    return f"{text} ({of}×/÷ {shown_number(float(f'{fold:.2g}'))})"
