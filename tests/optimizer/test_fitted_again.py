"""What is said of strings after a suggestion is what the model said that chose it."""

from __future__ import annotations

import math

import pytest

from seqopt import Optimizer, StringSpace


@pytest.mark.parametrize("failing", [False, True])
@pytest.mark.parametrize("surrogate", ["auto", "ssk"])
def test_predictions_after_a_suggestion_are_those_that_it_was_chosen_by(failing: bool, surrogate: str) -> None:
    optimizer = Optimizer(StringSpace("ACGT", 12), surrogate=surrogate, initial=10, batch_size=3, seed=2)
    for _ in range(2):
        strings = optimizer.ask()
        values = [
            math.nan if failing and "GG" in string else float(string.count("A") + 2 * string.count("CG"))
            for string in strings
        ]
        optimizer.tell(strings, values)
    strings = optimizer.ask()
    rows = {row.string: row.details for row in optimizer.observations.rows}
    assert any(row.status == "failed" for row in optimizer.observations.rows) == failing
    found = optimizer.predictions(strings)
    chosen = [place for place, string in enumerate(strings) if rows[string]["predicted"] is not None]
    assert chosen
    for place in chosen:
        assert found.central[place] == pytest.approx(
            rows[strings[place]]["predicted"], rel=1e-9 if surrogate == "auto" else 1e-3
        )
        assert found.low[place] == pytest.approx(
            rows[strings[place]]["predicted_low"], rel=1e-9 if surrogate == "auto" else 1e-3
        )
