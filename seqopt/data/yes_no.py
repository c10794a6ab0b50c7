r"""Results that are yes or no: hit or no hit, active or inactive, and how many of a number of wells were hits.

A value is the share of wells that were hits: 1 for a hit, 0 for none, 0.375 for 3 of 8. A model that knows what such
values are (`seqopt.models.BinomialGP`) predicts the log odds f of a hit, :math:`p = \sigma(f) = 1 / (1 + e^{-f})`, as
normal. What is shown is in probabilities: their mean :math:`E[\sigma(f)]`, which is how many hits are expected of one
well, and the :math:`\sigma` of the quantiles of f, which are the quantiles of p.
"""

from __future__ import annotations

import math
import re
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from seqopt.errors import InputError
from seqopt.utils.config import Configurable

FloatArray = npt.NDArray[np.float64]

YES_NO: Final = "yes/no"
"""The name of `YesNo`."""

REACH = 8.0
"""Standard deviations up to which a normal distribution is integrated; 1e-15 lies beyond."""

STEP, SHARP = 0.4, 0.68
"""Largest step of the integration in standard deviations s, and the largest in units of 1 / s: the error of the
trapezoidal rule is exp(-2 pi d / h), with d = pi / s the distance of the poles of the logistic function."""

BLOCK = 1 << 22
"""Numbers that are integrated at a time."""


class YesNo(Configurable):
    """The model sees labels between -1 (no) and 1 (yes), and predicts log odds.

    The two are not the same scale: what is observed is not what is predicted, as with every generalised linear model.
    Labels are symmetric about 0, so that for a search for strings that are *no* hits all signs change.

    Example:
        >>> results = YesNo()
        >>> results.forward(1.0), results.forward(0.25), results.inverse(0.0)
        (1.0, -0.5, 0.5)
        >>> [round(moment, 4) for moment in results.moments(2.0, 1.0)]
        [0.8445, 0.1246]
    """

    name = YES_NO

    def forward(self, value: float) -> float:
        """2 ``value`` - 1.

        Raises:
            InputError: If ``value`` is not a share of wells, from 0 to 1.
        """
        if not 0.0 <= value <= 1.0:
            raise InputError(
                f"{value:g} is not a yes/no result: expected 1 for a hit, 0 for no hit, or the share of wells between"
            )
        return 2.0 * value - 1.0

    def inverse(self, value: float) -> float:
        """The probability with the log odds ``value``."""
        # A look at a campaign does without scipy, which takes long to load.
        smaller = math.exp(-abs(value))
        return (1.0 if value >= 0 else smaller) / (1.0 + smaller)

    def moments(self, mean: float, std: float) -> tuple[float, float]:
        """Mean and standard deviation of the probability whose log odds are normal."""
        first, spread = probability_moments([mean], [std])
        return float(first[0]), float(spread[0])

    def variance(self, value: float, variance: float) -> float:
        """Results that are yes or no have no standard errors.

        Raises:
            InputError: Always.
        """
        raise InputError("yes/no results have no standard errors: say of how many wells they are instead")


def probability_moments(mean: npt.ArrayLike, std: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    r"""Mean and standard deviation of :math:`\sigma(f)`, :math:`f \sim N(m, s^2)`, by the trapezoidal rule.

    Args:
        mean: m, N.
        std: s, N.

    Returns:
        Both, N; the error is below 1e-9.

    Example:
        >>> probability_moments([0.0, -3.0], [2.0, 0.0])[0].round(4).tolist()
        [0.5, 0.0474]
    """
    centres, spreads = np.atleast_1d(np.asarray(mean, dtype=np.float64)), np.atleast_1d(np.asarray(std, np.float64))
    first, second = np.empty_like(centres), np.empty_like(centres)
    step = min(STEP, SHARP / max(float(spreads.max(initial=0.0)), 1e-12))
    from scipy.special import expit

    nodes = step * np.arange(-math.ceil(REACH / step), math.ceil(REACH / step) + 1)
    weights = np.exp(-0.5 * nodes**2)
    weights /= weights.sum()
    size = max(1, BLOCK // len(nodes))
    for start in range(0, len(centres), size):
        rows = slice(start, start + size)
        values = expit(centres[rows, None] + spreads[rows, None] * nodes)
        first[rows] = values @ weights
        second[rows] = ((values - first[rows, None]) ** 2) @ weights
    return first, np.sqrt(second)


ROUNDING = 1e-6
"""Distance from a whole number of hits up to which a share of wells is that of one."""

HITS = frozenset(
    {"hit", "yes", "y", "active", "true", "t", "1", "1.0", "positive", "pos", "+", "binder", "binds", "pass"}
)
NO_HITS = frozenset(
    {
        *(
            "no hit",
            "no-hit",
            "nohit",
            "non-hit",
            "not a hit",
            "miss",
            "no",
            "n",
            "inactive",
            "not active",
            "false",
            "f",
        ),
        *("0", "0.0", "negative", "neg", "-", "non-binder", "nonbinder"),
    }
)
INCONCLUSIVE = frozenset({"inconclusive", "ambiguous", "unclear", "borderline", "unspecified", "+/-", "equivocal"})

EXPECTED = "expected hit or no hit, active or inactive, yes or no, 1 or 0, inconclusive, or hits of wells: 3 of 8"
"""What a result may be."""

_SHARE = re.compile(r"(\d+)\s*(?:/|of|out of)\s*(\d+)")
_NUMBER = re.compile(r"[+-]?(\d+[.,]?\d*|[.,]\d+)(e[+-]?\d+)?")


class Answer(NamedTuple):
    """A yes/no result as somebody wrote it.

    Attributes:
        share: Of the wells that were hits; `None` for a result that was inconclusive.
        trials: How many wells.
    """

    share: float | None
    trials: int


def is_whole(number: float) -> bool:
    """Whether a number is whole but for rounding.

    Example:
        >>> is_whole(0.1 * 30), is_whole(2.5)
        (True, False)
    """
    return abs(number - round(number)) <= ROUNDING


def read_answer(text: str, wells: int | None = None) -> Answer:
    """A result in words, or in numbers of hits.

    Args:
        text: ``hit``, ``Inactive``, ``1``, ``inconclusive``, ``3 of 8``, ``3/8``, ...
        wells: How many wells it is of, if that is told apart from it; then ``text`` is a number of hits.

    Raises:
        InputError: For anything else; the message says what is wrong, and begins with a verb.

    Example:
        >>> read_answer("No Hit"), read_answer("3 of 8"), read_answer("3", 8), read_answer("inconclusive").share
        (Answer(share=0.0, trials=1), Answer(share=0.375, trials=8), Answer(share=0.375, trials=8), None)
    """
    plain = " ".join(text.split()).casefold().replace("_", " ")
    if plain in INCONCLUSIVE:
        return Answer(None, wells or 1)
    pair = _SHARE.fullmatch(plain)
    if pair is not None:
        if wells is not None and int(pair[2]) != wells:
            raise InputError(f"is of {pair[2]} wells, and the number of wells is said to be {wells}: keep one of them")
        return _share(int(pair[1]), int(pair[2]))
    if wells is not None and wells < 1:
        raise InputError(f"is of {wells} wells: expected at least one")
    if wells is not None and wells != 1:
        if not _NUMBER.fullmatch(plain):
            if plain in HITS | NO_HITS:
                raise InputError(f"does not say how many of its {wells} wells were hits: expected their number")
            raise InputError(f"is not a number of hits among {wells} wells")
        number = float(plain.replace(",", "."))
        if not is_whole(number) or number < 0:
            raise InputError(f"is not a number of hits: expected a whole number from 0 to {wells}")
        return _share(round(number), wells)
    if plain in HITS or plain in NO_HITS:
        return Answer(float(plain in HITS), 1)
    if _NUMBER.fullmatch(plain):
        raise InputError(
            f"is a number, and results are yes or no: {EXPECTED}. Numbers go into a campaign without --results yes/no, "
            "or are turned into hits by a threshold first"
        )
    raise InputError(f"is not a yes/no result: {EXPECTED}")


def _share(hits: int, wells: int) -> Answer:
    if wells < 1:
        raise InputError("is of no well at all: expected at least one")
    if hits > wells:
        raise InputError(f"has more hits ({hits}) than wells ({wells})")
    return Answer(hits / wells, wells)


def told_answer(share: float, trials: int = 1) -> str:
    """A result in words.

    Example:
        >>> told_answer(1.0), told_answer(0.0), told_answer(0.375, 8), told_answer(1.0, 2)
        ('hit', 'no hit', '3 of 8', '2 of 2')
    """
    if trials == 1:
        return "hit" if share >= 0.5 else "no hit"
    return f"{round(share * trials)} of {trials}"
