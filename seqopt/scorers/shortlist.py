"""A cheap score that chooses which candidates of a large pool a costly one looks at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from seqopt.models.protocols import nominated
from seqopt.scorers.gaussian import SubsetScorer
from seqopt.scorers.protocols import BoolArray, Choice, FloatArray, IndexArray, PoolScorer, Scorer, Scoring, repeats
from seqopt.spaces import PoolSpace


@runtime_checkable
class MeanSurrogate(Protocol):
    """A surrogate that predicts the mean at all candidates of a pool without their variances."""

    def pool_mean(self, pool: PoolSpace) -> FloatArray:
        """Predicted mean at each candidate, N."""
        ...


class ShortlistScoring:
    """Scores of one step, where a batch is filled from a shortlist; implements `seqopt.scorers.Scoring`.

    The ``keep`` candidates of largest cheap score that may be chosen make the shortlist, and are scored exactly: the
    batch is the one that the search would choose if there were no others. Spaces that are no pools have no shortlist.

    Args:
        scoring: The score proper.
        cheap: From a pool to a cheap scorer of it.
        keep: How long the shortlist is.
    """

    def __init__(self, scoring: Scoring, cheap: Callable[[PoolSpace], PoolScorer], keep: int) -> None:
        self._scoring = scoring
        self._cheap = cheap
        self._keep = keep

    def incumbents(self, count: int) -> list[str]:
        """Those of the score proper."""
        return self._scoring.incumbents(count)

    def nominated(self, keys: Sequence[str]) -> list[str]:
        """Those of the score proper."""
        return nominated(self._scoring, keys)

    def unsupported(self, keys: Sequence[str]) -> dict[int, str]:
        """What the score proper cannot take."""
        return self._scoring.unsupported(keys)

    def scorer(self, sample: Sequence[str]) -> Scorer:
        """That of the score proper."""
        return self._scoring.scorer(sample)

    def sample_scorer(self, keys: Sequence[str]) -> PoolScorer:
        """That of the score proper."""
        return self._scoring.sample_scorer(keys)

    def pool_scorer(self, pool: PoolSpace, indices: IndexArray | None = None) -> PoolScorer:
        """A scorer of the shortlist of a pool; of ``indices``, all are scored."""
        if indices is not None or len(pool) <= self._keep:
            return self._scoring.pool_scorer(pool, indices)
        return ShortlistScorer(self._cheap(pool), lambda members: self._scoring.pool_scorer(pool, members), self._keep)


class ShortlistScorer:
    """Scores of those candidates that a cheap score keeps; implements `seqopt.scorers.PoolScorer`.

    Args:
        cheap: Scores all candidates.
        exact: From the numbers of the candidates on the shortlist, in rising order, to what scores them.
        keep: How many are kept.
    """

    def __init__(self, cheap: PoolScorer, exact: Callable[[IndexArray], PoolScorer], keep: int) -> None:
        self._cheap: PoolScorer | None = cheap
        self._make = exact
        self._keep = keep
        self._exact: SubsetScorer | None = None

    @property
    def repeats(self) -> bool:
        """See `seqopt.scorers.protocols.RepeatingScorer`."""
        return self._exact is not None and repeats(self._exact)

    def best(self, allowed: BoolArray, count: int = 1) -> tuple[IndexArray, FloatArray]:
        """See `seqopt.scorers.PoolScorer`; the first call decides who is on the shortlist."""
        if self._exact is None:
            assert self._cheap is not None
            members = np.sort(self._cheap.best(allowed, self._keep)[0])
            if not len(members):
                return members, np.empty(0)
            # What the cheap score holds for all candidates is not needed any more.
            self._cheap = None
            self._exact = SubsetScorer(self._make(members), members)
        return self._exact.best(allowed, count)

    def choose(self, index: int) -> Choice:
        """Put a candidate into the batch."""
        assert self._exact is not None  # only what is on the shortlist is ever named by `best`
        return self._exact.choose(index)


class MeanPoolScorer:
    """The mean that a surrogate predicts of each candidate; implements `seqopt.scorers.PoolScorer`.

    Args:
        surrogate: A fitted one.
        pool: The candidates.
    """

    def __init__(self, surrogate: MeanSurrogate, pool: PoolSpace) -> None:
        self._pool = pool
        self._means = surrogate.pool_mean(pool)

    def best(self, allowed: BoolArray, count: int = 1) -> tuple[IndexArray, FloatArray]:
        """See `seqopt.scorers.PoolScorer`."""
        return largest(np.where(allowed, self._means, -np.inf), count)

    def choose(self, index: int) -> Choice:
        """Put a candidate into the batch; means do not change by that."""
        return Choice(self._pool.keys[index], float(self._means[index]))


def largest(
    scores: FloatArray, count: int, order: npt.NDArray[np.integer[Any]] | None = None
) -> tuple[IndexArray, FloatArray]:
    """The ``count`` largest scores above minus infinity, the best first, without sorting the others.

    Args:
        scores: N of them; it is not changed.
        count: How many.
        order: Ranks equal scores, N different numbers; by default the first of them come first.

    Returns:
        Their numbers, and the scores.

    Example:
        >>> largest(np.array([1.0, 3.0, -np.inf, 3.0]), 3)
        (array([1, 3, 0]), array([3., 3., 1.]))
        >>> largest(np.array([1.0, 3.0, -np.inf, 3.0]), 1, np.array([0, 3, 1, 2]))
        (array([3]), array([3.]))
    """
    count = min(count, len(scores))
    if count < 1:
        return np.empty(0, dtype=np.int64), np.empty(0)
    least = scores.max() if count == 1 else np.partition(scores, len(scores) - count)[len(scores) - count]
    members = np.flatnonzero(scores >= least) if least > -np.inf else np.flatnonzero(scores > -np.inf)
    ties = members if order is None else order[members]
    chosen = members[np.lexsort((ties, -scores[members]))[:count]].astype(np.int64)
    return chosen, scores[chosen]
