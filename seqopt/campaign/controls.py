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

FEWEST_OTHERS = 2
"""Other plates that it takes to say how two controls differ."""


def differing_controls(plates: Sequence[Plate], *, geometric: bool = False) -> dict[str, str]:
    """Plates on which two controls differ otherwise than on all others, and what is to be said of them.

    What a plate does to all of its wells cancels in the difference of two controls. That of one plate is held against
    those of the k others, of mean m and standard deviation s, by Student's t with k - 1 degrees of freedom for
    (d - m) / (s sqrt(1 + 1 / k)), at `CHANCE` for all pairs and plates together. Which of the two is wrong it
    cannot say.

    Args:
        plates: With the values of their controls.
        geometric: Whether ratios are compared instead of differences.

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
            spread = statistics.stdev(others) * math.sqrt(1 + 1 / len(others))
            if not spread > 0:
                continue
            from scipy.special import stdtr

            chance = 2 * float(stdtr(len(others) - 1, -abs(a - b - statistics.fmean(others)) / spread))
            read = " and ".join(f"{10**value if geometric else value:.4g}" for value in (a, b))
            text = (
                f"the controls {first} and {second} read {read} on {name}, and differ there otherwise than on "
                f"{len(others)} other plates"
            )
            found[name] = min(found.get(name, (1.0, "")), (chance, text))
    return {name: text for name, (chance, text) in found.items() if chance * tried < CHANCE}


def _mean(values: Sequence[float], geometric: bool) -> float:
    return statistics.fmean(map(math.log10, values) if geometric else values)
