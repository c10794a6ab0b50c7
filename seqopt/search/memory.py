"""Scores of strings, remembered, and greedy batches from fixed lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field

import numpy as np

from seqopt.scorers import PoolScorer, Scorer
from seqopt.scorers.protocols import BoolArray, FloatArray, repeats
from seqopt.search.protocols import Proposal
from seqopt.spaces import Space


@dataclass
class Scores:
    """Scores of strings at one state of a batch: every string is scored once.

    Args:
        space: Gives keys.
        scorer: Given what is pending or chosen.
        excluded: Keys that must not be proposed. They are scored, as parents, all the same.
    """

    space: Space
    scorer: Scorer
    excluded: Set[str]
    keys: dict[str, str] = field(default_factory=dict)
    _values: dict[str, float] = field(default_factory=dict)
    best: str | None = None
    best_value: float = -np.inf

    def __call__(self, strings: Sequence[str]) -> FloatArray:
        """Scores of ``strings``; those not scored before are scored in one call."""
        fresh = [string for string in dict.fromkeys(strings) if string not in self._values]
        if fresh:
            unknown = [string for string in fresh if string not in self.keys]
            self.keys.update(zip(unknown, self.space.keys_of(unknown), strict=True))
            keys = [self.keys[string] for string in fresh]
            values = self.scorer.scores(keys)
            self._values.update(zip(fresh, values.tolist(), strict=True))
            allowed = np.array([key not in self.excluded for key in keys])
            ranked = np.where(allowed, values, -np.inf)
            top = int(np.argmax(ranked))
            if ranked[top] > self.best_value:
                self.best, self.best_value = fresh[top], float(ranked[top])
        return np.array([self._values[string] for string in strings])

    def ranked(self) -> list[str]:
        """All strings scored so far, best first."""
        return sorted(self._values, key=lambda string: -self._values[string])


def fill_batch(n: int, scorer: PoolScorer, allowed: BoolArray, string_of: Callable[[int], str]) -> list[Proposal]:
    """A greedy batch of at most ``n`` candidates, each the best given those before it.

    A candidate joins it once, but where the scorer has it measured in several ways.

    Args:
        n: Batch size.
        scorer: Is told of each candidate that is chosen.
        allowed: Which candidates may be chosen.
        string_of: A candidate as its owner wrote it.
    """
    allowed = allowed.copy()
    chosen: list[Proposal] = []
    while len(chosen) < n:
        indices, _ = scorer.best(allowed)
        if not len(indices):  # the score rules every remaining candidate out
            break
        index = int(indices[0])
        chosen.append(Proposal.of(string_of(index), scorer.choose(index)))
        allowed[index] = repeats(scorer)
    return chosen
