"""Scores by a classifier, which has no posterior: how likely a string is to be among the best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from seqopt.encoding.held import HeldStrings
from seqopt.models.classifiers import Classifier, Predictor, WeightedClassifier
from seqopt.models.classifiers.protocols import BoolArray as Labels
from seqopt.scorers.checks import checked_scores
from seqopt.scorers.held_pool import held_keys
from seqopt.scorers.protocols import BoolArray, Choice, FloatArray, IndexArray, PoolScorer
from seqopt.scorers.shortlist import largest
from seqopt.scorers.spread import LogitScore, SpreadScorer
from seqopt.scorers.ties import TieOrder
from seqopt.spaces import PoolSpace
from seqopt.spaces.spread import Spread, spread_of

BLOCK = 1000
"""Strings whose logits are computed at once."""

SHARE = 20
"""A classifier that knows all but one in so many of those chosen for a batch is not fitted again yet."""


class ClassifierScoring:
    """Scores of one step by the logit of a classifier; implements `seqopt.scorers.Scoring`.

    A string that is pending, or chosen for the batch, counts as labelled false until its result is known: the
    classifier is fitted again, so that the next one is not its neighbour. That is done after each of the first 39
    choices, and from then on whenever the batch has grown by a twentieth: of a large batch of q that makes some
    40 + 20 log(q / 39) fits, 108 for 1,000. Choices between two fits are those of largest logit.

    Args:
        classifier: Learns the labels.
        strings: Keys of the strings that were evaluated, repeats allowed.
        labels: Which of them are good; both kinds are there.
        pending: Keys of the strings whose results are awaited.
        weights: How much each string speaks for the label true; every one speaks for the label false with weight 1
            then, and ``labels`` do not count. The classifier is a `seqopt.models.classifiers.WeightedClassifier`.
        rng: The only source of randomness.
    """

    def __init__(
        self,
        classifier: Classifier,
        strings: Sequence[str],
        labels: Labels,
        *,
        pending: Sequence[str] = (),
        weights: FloatArray | None = None,
        rng: np.random.Generator,
    ) -> None:
        self.classifier = classifier
        self.strings = list(strings)
        self._rng = rng
        known = np.asarray(labels, dtype=np.bool_) if weights is None else np.asarray(weights, dtype=np.float64)
        awaited = np.zeros(len(pending), dtype=known.dtype)
        self._learner: _Learner = _Learner(
            classifier, [*strings, *pending], np.concatenate([known, awaited]), rng, weighted=weights is not None
        )

    @property
    def predictor(self) -> Predictor:
        """The classifier, fitted to what is known and pending."""
        return self._learner.predictor

    def incumbents(self, count: int) -> list[str]:
        """The evaluated strings of largest logit."""
        keys = list(dict.fromkeys(self.strings))
        order = np.argsort(-self._learner.logits(keys), kind="stable")
        return [keys[int(place)] for place in order[:count]]

    def unsupported(self, keys: Sequence[str]) -> dict[int, str]:
        """What the classifier cannot take."""
        return self.classifier.unsupported(keys)

    def scorer(self, sample: Sequence[str]) -> ClassifierScorer:
        """The logit of any strings; ``sample`` is not needed."""
        return ClassifierScorer(self.classifier, self._learner)

    def pool_scorer(self, pool: PoolSpace, indices: IndexArray | None = None) -> PoolScorer:
        """The logits of the candidates of a pool."""
        spread = spread_of(pool)
        if spread is not None and indices is None:
            return SpreadClassifierScorer(self._learner, pool, spread, self._rng)
        return self.sample_scorer(held_keys(pool, indices))

    def sample_scorer(self, keys: Sequence[str]) -> ClassifierPoolScorer:
        """The logits of strings that were drawn for this step."""
        return ClassifierPoolScorer(self._learner, keys, self._rng)


class ClassifierScorer:
    """Scores of any strings; implements `seqopt.scorers.Scorer`.

    Args:
        classifier: Says which strings cannot be classified.
        learner: The fitted classifier.
    """

    def __init__(self, classifier: Classifier, learner: _Learner) -> None:
        self._classifier = classifier
        self._learner = learner

    def scores(self, keys: Sequence[str]) -> FloatArray:
        """Logits; minus infinity for strings that cannot be classified."""
        without = self._classifier.unsupported(keys)
        values = np.full(len(keys), -np.inf)
        taken = [index for index in range(len(keys)) if index not in without]
        if taken:
            values[taken] = self._learner.logits([keys[index] for index in taken])
        return values

    def choose(self, key: str) -> Choice:
        """Put a string into the batch."""
        score = float(self._learner.logits([key])[0])
        self._learner = self._learner.given(key)
        return Choice(key, score)


class ClassifierPoolScorer:
    """Scores of a list of candidates; implements `seqopt.scorers.PoolScorer`.

    Equal scores, of which trees make many, are ordered at random. Features of the candidates, where the classifier
    looks at those of a featurizer, are computed or read once for all fits, and of a pool for all steps, as far as
    memory allows: see `seqopt.encoding.held.HeldStrings`.

    Args:
        learner: The fitted classifier.
        keys: Of the candidates.
        rng: Orders equal scores.
    """

    def __init__(self, learner: _Learner, keys: Sequence[str], rng: np.random.Generator) -> None:
        self._learner = learner
        self._keys = keys if isinstance(keys, HeldStrings) else HeldStrings(keys)
        self._order = TieOrder(rng)(np.arange(len(keys)))
        self._scores: FloatArray | None = None

    def best(self, allowed: BoolArray, count: int = 1) -> tuple[IndexArray, FloatArray]:
        """See `seqopt.scorers.PoolScorer`."""
        return largest(np.where(allowed, self._current(), -np.inf), count, self._order)

    def choose(self, index: int) -> Choice:
        """Put a candidate into the batch."""
        choice = Choice(self._keys[index], float(self._current()[index]))
        self._learner = self._learner.given(choice.key)
        if not self._learner.is_fitted:
            self._scores = None
        return choice

    def _current(self) -> FloatArray:
        if self._scores is None:
            self._scores = self._learner.logits(self._keys)
        return self._scores


class SpreadClassifierScorer:
    """Scores of the candidates of a pool that is spread over other processes; implements `seqopt.scorers.PoolScorer`.

    Each fit is sent to the shards, which are looked at once for it.

    Args:
        learner: The fitted classifier.
        pool: The candidates.
        spread: Looks at them.
        rng: Orders equal scores.
    """

    def __init__(self, learner: _Learner, pool: PoolSpace, spread: Spread, rng: np.random.Generator) -> None:
        self._learner = learner
        self._pool = pool
        self._spread = spread
        self._order = TieOrder(rng)
        self._scorer: SpreadScorer | None = None

    def best(self, allowed: BoolArray, count: int = 1) -> tuple[IndexArray, FloatArray]:
        """See `seqopt.scorers.PoolScorer`."""
        if self._scorer is None:
            score = LogitScore(self._learner.predictor, self._learner.label)
            self._scorer = SpreadScorer(score, self._pool, self._spread, what="classifying", ranks=self._order)
        return self._scorer.best(allowed, count)

    def choose(self, index: int) -> Choice:
        """Put a candidate into the batch."""
        assert self._scorer is not None  # only what `best` named is chosen
        choice = self._scorer.choose(index)
        self._learner = self._learner.given(choice.key)
        if not self._learner.is_fitted:
            self._scorer = None
        return choice


class _Learner:
    """A classifier with what it learns from; fitted when it is first asked.

    Args:
        classifier: Learns.
        strings: Keys.
        labels: Of the strings, or their weights.
        rng: The only source of randomness.
        weighted: Whether weights are given.
        chosen: How many of the strings were chosen for the batch.
        unknown: How many of these, the last ones, ``predictor`` has not seen.
        predictor: The last fit, where it is to be used again.
    """

    def __init__(
        self,
        classifier: Classifier,
        strings: Sequence[str],
        labels: npt.NDArray[Any],
        rng: np.random.Generator,
        *,
        weighted: bool = False,
        chosen: int = 0,
        unknown: int = 0,
        predictor: Predictor | None = None,
    ) -> None:
        self._classifier = classifier
        self._weighted = weighted
        self._strings = list(strings)
        self._labels = labels
        self._rng = rng
        self._chosen = chosen
        self._unknown = unknown
        self._predictor = predictor

    @property
    def label(self) -> str:
        """What messages call the classifier."""
        return type(self._classifier).__name__

    @property
    def is_fitted(self) -> bool:
        """Whether the next question is answered by a fit that there is."""
        return self._predictor is not None

    @property
    def predictor(self) -> Predictor:
        if self._predictor is None:
            if self._weighted:
                learner = cast("WeightedClassifier", self._classifier)
                negative = np.ones(len(self._strings))
                self._predictor = learner.fit_weighted(self._strings, self._labels, negative, rng=self._rng)
            else:
                self._predictor = self._classifier.fit(self._strings, self._labels, rng=self._rng)
        return self._predictor

    def given(self, key: str) -> _Learner:
        """With one more string that counts as labelled false; fitted again where that is due."""
        labels = np.append(self._labels, np.zeros(1, dtype=self._labels.dtype))
        chosen, unknown = self._chosen + 1, self._unknown + 1
        due = unknown >= max(1, chosen // SHARE)
        return _Learner(
            self._classifier,
            [*self._strings, key],
            labels,
            self._rng,
            weighted=self._weighted,
            chosen=chosen,
            unknown=0 if due else unknown,
            predictor=None if due else self.predictor,
        )

    def logits(self, keys: Sequence[str]) -> FloatArray:
        parts = [
            checked_scores(
                self.predictor.logits(keys[start : start + BLOCK]),
                len(keys[start : start + BLOCK]),
                type(self._classifier).__name__,
            )
            for start in range(0, len(keys), BLOCK)
        ]
        return np.concatenate(parts) if parts else np.empty(0)
