r"""Scores that allow for strings that cannot be evaluated.

With p(x) the probability that an evaluation of x succeeds, an improvement is worth a(x) p(x): what is gained where
there is something to gain. In log space that is log a(x) + log p(x).

References:
    Gelbart, M. A., Snoek, J. and Adams, R. P. (2014). Bayesian optimization with unknown constraints. UAI.
    Lindberg, D. V. and Lee, H. K. H. (2015). Optimization under constraints by applying an asymmetric entropy measure.
        J. Comput. Graph. Stat. 24, 379-393 (a classifier of failures times expected improvement).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from seqopt.errors import InputError
from seqopt.models.classifiers import Predictor, log_probability
from seqopt.models.protocols import nominated
from seqopt.scorers.checks import checked_scores
from seqopt.scorers.protocols import BoolArray, Choice, FloatArray, IndexArray, PoolScorer, Scorer, Scoring
from seqopt.spaces import PoolSpace, keys_at

Combine = Literal["add", "multiply"]
"""How a score and log p make one: ``"add"`` for scores that are logarithms, ``"multiply"`` for others."""

FIRST_LOOK = 64
"""Candidates of a pool whose probabilities are computed first."""

WIDER = 4
"""Factor by which more candidates are looked at, until the best is among them."""


def feasible_scores(scores: FloatArray, log_p: FloatArray, combine: Combine) -> FloatArray:
    """Scores given the probabilities of success p; never above ``scores``.

    Args:
        scores: n, may hold minus infinity.
        log_p: log p, n, at most 0.
        combine: ``"add"``: score + log p. ``"multiply"``: score p, and score / p where the score is negative, which a
            factor below 1 would improve.

    Raises:
        InputError: For another ``combine``.

    Example:
        >>> feasible_scores(np.array([2.0, -2.0]), np.log([0.5, 0.5]), "multiply").tolist()
        [1.0, -4.0]
    """
    if combine == "add":
        return scores + log_p
    if combine == "multiply":
        with np.errstate(over="ignore"):
            factor = np.exp(np.where(scores < 0, -log_p, log_p))
            return np.where(scores == 0, 0.0, scores * factor)
    raise InputError(f"combine is {combine!r}; expected 'add' or 'multiply'")


class FeasibilityScoring:
    """Scores of another scoring under the probability that an evaluation succeeds; implements `seqopt.scorers.Scoring`.

    Args:
        scoring: What a success is worth.
        predictor: A classifier fitted to which evaluations succeeded; true stands for success.
        combine: See `feasible_scores`.
    """

    def __init__(self, scoring: Scoring, predictor: Predictor, combine: Combine) -> None:
        self._scoring = scoring
        self._predictor = predictor
        self._combine: Combine = combine

    def incumbents(self, count: int) -> list[str]:
        """Those of the other scoring."""
        return self._scoring.incumbents(count)

    def nominated(self, keys: Sequence[str]) -> list[str]:
        """Those of the other scoring."""
        return nominated(self._scoring, keys)

    def unsupported(self, keys: Sequence[str]) -> dict[int, str]:
        """What the other scoring cannot take."""
        return self._scoring.unsupported(keys)

    def scorer(self, sample: Sequence[str]) -> FeasibilityScorer:
        """A scorer of any strings."""
        return FeasibilityScorer(self._scoring.scorer(sample), self._predictor, self._combine)

    def pool_scorer(self, pool: PoolSpace, indices: IndexArray | None = None) -> FeasibilityPoolScorer:
        """A scorer of the candidates of a pool."""
        keys = keys_at(pool, indices)
        return FeasibilityPoolScorer(self._scoring.pool_scorer(pool, indices), self._predictor, self._combine, keys)

    def sample_scorer(self, keys: Sequence[str]) -> FeasibilityPoolScorer:
        """A scorer of strings that were drawn for this step."""
        return FeasibilityPoolScorer(self._scoring.sample_scorer(keys), self._predictor, self._combine, keys)


class FeasibilityScorer:
    """Scores of any strings; implements `seqopt.scorers.Scorer`.

    Args:
        scorer: What a success is worth.
        predictor: Which evaluations succeed.
        combine: See `feasible_scores`.
    """

    def __init__(self, scorer: Scorer, predictor: Predictor, combine: Combine) -> None:
        self._scorer = scorer
        self._predictor = predictor
        self._combine: Combine = combine

    def scores(self, keys: Sequence[str]) -> FloatArray:
        """Minus infinity where the other scorer says so."""
        values = self._scorer.scores(keys)
        taken = np.flatnonzero(values > -np.inf)
        found = np.full(len(keys), -np.inf)
        if len(taken):
            logs = _log_p(self._predictor, [keys[int(index)] for index in taken])
            found[taken] = feasible_scores(values[taken], logs, self._combine)
        return found

    def choose(self, key: str) -> Choice:
        """Put a string into the batch."""
        choice = self._scorer.choose(key)
        score = feasible_scores(np.array([choice.score]), _log_p(self._predictor, [key]), self._combine)
        return replace(choice, score=float(score[0]))


class FeasibilityPoolScorer:
    """Scores of candidates; implements `seqopt.scorers.PoolScorer`.

    As no probability raises a score, those of large score are looked at until the next one can be no better.

    Args:
        scorer: What a success is worth.
        predictor: Which evaluations succeed.
        combine: See `feasible_scores`.
        keys: Of the candidates.
    """

    def __init__(self, scorer: PoolScorer, predictor: Predictor, combine: Combine, keys: Sequence[str]) -> None:
        self._scorer = scorer
        self._predictor = predictor
        self._combine: Combine = combine
        self._keys = keys
        self._logs: dict[int, float] = {}

    def best(self, allowed: BoolArray, count: int = 1) -> tuple[IndexArray, FloatArray]:
        """See `seqopt.scorers.PoolScorer`."""
        look = max(FIRST_LOOK, WIDER * count)
        while True:
            indices, scores = self._scorer.best(allowed, look)
            found = feasible_scores(scores, self._log_p(indices), self._combine)
            order = np.argsort(-found, kind="stable")[:count]
            if len(indices) < look or found[order[-1]] >= scores[-1]:
                return indices[order], found[order]
            look *= WIDER

    def choose(self, index: int) -> Choice:
        """Put a candidate into the batch."""
        choice = self._scorer.choose(index)
        score = feasible_scores(np.array([choice.score]), self._log_p(np.array([index])), self._combine)
        return replace(choice, score=float(score[0]))

    def _log_p(self, indices: IndexArray) -> FloatArray:
        wanted = [int(index) for index in indices]
        missing = [index for index in wanted if index not in self._logs]
        if missing:
            found = _log_p(self._predictor, [self._keys[index] for index in missing])
            self._logs.update(zip(missing, found.tolist(), strict=True))
        return np.array([self._logs[index] for index in wanted], dtype=np.float64)


def _log_p(predictor: Predictor, keys: Sequence[str]) -> FloatArray:
    return log_probability(checked_scores(predictor.logits(keys), len(keys), type(predictor).__name__))
