"""Controls of plates, held against each other without a model."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seqopt.campaign.plates import Plate

CHANCE = 0.05
"""Probability with which controls that differ as they should are said not to."""

USUAL = math.exp(-2.0)
"""Standard deviation of the noise of a value as models of seqopt expect it, in units of the spread of all values."""

WORTH = 3.0
"""How many differences between plates that expectation is worth."""

FEWEST_OTHERS = 2
"""Other plates that it takes to say how two controls differ."""


def differing_controls(
    plates: Sequence[Plate], *, geometric: bool = False, spread: float | None = None
) -> dict[str, str]:
    """Plates on which two controls differ otherwise than on all others, and what is to be said of them.

    What a plate does to all of its wells cancels in the difference of two controls. That of one plate is held against
    those of the k others, of mean m and standard deviation s, by Student's t for (d - m) / (s sqrt(1 + 1 / k)), at
    `CHANCE` for all pairs and plates together. Two others say next to nothing of s, so that what models expect of noise
    counts as `WORTH` further differences, with s_0 = sqrt(2) `USUAL` times the spread of all values (a scaled inverse
    chi-squared prior):

        s^2 = ((k - 1) s_k^2 + `WORTH` s_0^2) / (k - 1 + `WORTH`), with k - 1 + `WORTH` degrees of freedom.

    Where the spread is not known, s_k and k - 1 are taken. Which of the two is wrong it cannot say.

    Args:
        plates: With the values of their controls.
        geometric: Whether ratios are compared instead of differences.
        spread: See `spread_of`.

    Example:
        >>> from seqopt.campaign.plates import Plate
        >>> told = {"P1": (5.0, 3.0), "P2": (6.1, 4.0), "P3": (4.0, 2.1), "P4": (5.0, 9.0)}
        >>> plates = [Plate(name, 96, 2, 2, controls={"A": (a,), "B": (b,)}) for name, (a, b) in told.items()]
        >>> print(differing_controls(plates)["P4"])
        the controls A and B read 5 and 9 on P4, and differ there otherwise than on 3 other plates
    """
    found: dict[str, tuple[float, str]] = {}
    tried = 0
    for first, second in combinations(dict.fromkeys(name for plate in plates for name in plate.controls), 2):
        pairs = {
            plate.name: tuple(_mean(plate.controls[name], geometric) for name in (first, second))
            for plate in plates
            if first in plate.controls and second in plate.controls
        }
        if len(pairs) <= FEWEST_OTHERS:
            continue
        tried += len(pairs)
        for name, (a, b) in pairs.items():
            others = [x - y for other, (x, y) in pairs.items() if other != name]
            variance, freedom = statistics.variance(others), len(others) - 1.0
            if spread is not None:
                expected = 2 * (USUAL * spread) ** 2
                variance = (freedom * variance + WORTH * expected) / (freedom + WORTH)
                freedom += WORTH
            if not variance > 0:
                continue
            from scipy.special import stdtr

            scale = math.sqrt(variance * (1 + 1 / len(others)))
            chance = 2 * float(stdtr(freedom, -abs(a - b - statistics.fmean(others)) / scale))
            read = " and ".join(f"{10**value if geometric else value:.4g}" for value in (a, b))
            called = next(plate.called for plate in plates if plate.name == name)
            one, two = (called.get(string, string) for string in (first, second))
            text = (
                f"the controls {one} and {two} read {read} on {name}, and differ there otherwise than on "
                f"{len(others)} other plates"
            )
            found[name] = min(found.get(name, (1.0, "")), (chance, text))
    return {name: text for name, (chance, text) in found.items() if chance * tried < CHANCE}


def spread_of(values: Sequence[float], *, geometric: bool = False) -> float | None:
    """By how much values differ, whatever a few of them are: 1.4826 times the median distance from the median.

    Args:
        values: Of all that was measured.
        geometric: Whether it is that of their log10.

    Returns:
        `None` where there is none.

    Example:
        >>> round(spread_of([1.0, 2.0, 3.0, 4.0, 500.0]), 2)
        1.48
    """
    numbers = [math.log10(value) for value in values if value > 0] if geometric else list(values)
    if not numbers:
        return None
    middle = statistics.median(numbers)
    found = 1.4826 * statistics.median(abs(number - middle) for number in numbers)
    return found if found > 0 else None


def _mean(values: Sequence[float], geometric: bool) -> float:
    return statistics.fmean(map(math.log10, values) if geometric else values)
