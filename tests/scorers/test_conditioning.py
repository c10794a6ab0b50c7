"""Conditioning waits until somebody asks again."""

from __future__ import annotations

import numpy as np

from seqopt.scorers.conditioning import GrowingProcess, GrowingScores


class Given:
    """What was chosen, in order; notes when it is conditioned."""

    def __init__(self, chosen=(), made=None):
        self.chosen, self.made = chosen, [] if made is None else made

    def given(self, one):
        self.made.append(one)
        return Given((*self.chosen, one), self.made)


def test_the_last_of_a_batch_costs_no_conditioning() -> None:
    process = GrowingProcess(Given())
    for item in "ab":
        process.choose(item)
    assert process._process.made == ["a"]
    assert process.current().chosen == ("a", "b")
    assert process.current() is process.current()
    process.choose("c")
    assert process._process.made == ["a", "b"]


def test_scores_are_those_of_the_posterior_given_all_choices() -> None:
    asked = []

    def scored(posterior):
        asked.append(posterior.chosen)
        return np.full(3, float(len(posterior.chosen)))

    start = Given()
    scores = GrowingScores(start, scored)
    for index in (2, 0):
        assert scores.current().tolist() == [len(asked) - 1.0] * 3
        assert scores.current() is scores.current()
        scores.choose(index)
    assert start.made == [2]
    assert asked == [(), (2,)]
    assert scores.posterior().chosen == (2, 0)
    assert scores.current().tolist() == [2.0] * 3
    assert start.made == [2, 0]
