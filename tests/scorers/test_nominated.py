"""What a surrogate nominates is seen through every scoring."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from seqopt.models.protocols import nominated
from seqopt.scorers import FeasibilityScoring, GaussianScoring, LimitedScoring
from seqopt.scorers.penalised import PenalisedScoring
from seqopt.scorers.portfolio import PortfolioScoring
from seqopt.scorers.shortlist import ShortlistScoring

RNG = np.random.default_rng(0)
NOTHING: Any = None


class Reversing:
    """Nominates every string from its end to its beginning."""

    def nominated(self, strings: list[str]) -> list[str]:
        return [string[::-1] for string in strings]


@pytest.mark.parametrize(
    "scoring_of",
    [
        lambda one: GaussianScoring(one, NOTHING, rng=RNG),
        lambda one: PenalisedScoring(one, NOTHING, logarithmic=True, evaluated=[], rng=RNG),
        lambda one: PortfolioScoring(one, [], NOTHING, noted=NOTHING),
        lambda one: LimitedScoring(one, NOTHING),
        lambda one: FeasibilityScoring(one, NOTHING, "add"),
        lambda one: ShortlistScoring(one, NOTHING, 5),
    ],
)
def test_a_scoring_nominates_what_it_is_made_of_nominates(scoring_of: Callable[[Any], Any]) -> None:
    assert nominated(scoring_of(Reversing()), ["ABC", "AB"]) == ["CBA", "BA"]
    assert nominated(scoring_of(object()), ["ABC"]) == []
