"""What a scorer knows while a batch is filled: it is conditioned on a choice only when somebody asks again.

The last element of a batch is chosen and nothing is asked after it, so it costs nothing more.
"""

from __future__ import annotations

from collections.abc import Callable

from seqopt.data import Item
from seqopt.models import ConditionedProcess
from seqopt.posteriors import Posterior
from seqopt.scorers.protocols import FloatArray


class GrowingProcess:
    """The posterior at any queries, given those chosen so far.

    Args:
        process: Given the data and what is pending.
    """

    def __init__(self, process: ConditionedProcess) -> None:
        self._process = process
        self._chosen: Item | None = None

    def choose(self, item: Item) -> None:
        """Condition on the outcome, of unknown value, of a query, from now on."""
        self._process, self._chosen = self.current(), item

    def current(self) -> ConditionedProcess:
        """The posterior given all that was chosen."""
        if self._chosen is not None:
            self._process, self._chosen = self._process.given(self._chosen), None
        return self._process


class GrowingScores:
    """The posterior at N queries and their scores, given those chosen so far.

    Args:
        posterior: Given the data and what is pending.
        scored: Scores of the queries under a posterior, of any shape.
    """

    def __init__(self, posterior: Posterior, scored: Callable[[Posterior], FloatArray]) -> None:
        self._posterior = posterior
        self._scored = scored
        self._scores: FloatArray | None = None
        self._chosen: int | None = None

    def choose(self, index: int) -> None:
        """Condition on the outcome, of unknown value, of a query, from now on."""
        self._posterior, self._chosen, self._scores = self.posterior(), index, None

    def posterior(self) -> Posterior:
        """The posterior given all that was chosen."""
        if self._chosen is not None:
            self._posterior, self._chosen = self._posterior.given(self._chosen), None
        return self._posterior

    def current(self) -> FloatArray:
        """Scores under it."""
        if self._scores is None:
            self._scores = self._scored(self.posterior())
        return self._scores
