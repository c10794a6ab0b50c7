"""Scores by an acquisition function of a Gaussian posterior."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Protocol, cast, runtime_checkable

import numpy as np
import torch

from seqopt.acquisition import Acquisition, MonotoneAcquisition, PreparedAcquisition
from seqopt.acquisition.sampling import largest_upper_confidence
from seqopt.data import Item
from seqopt.kernels.engines import PartSums
from seqopt.models import (
    BlockwisePosterior,
    ConditionedProcess,
    PoolSurrogate,
    StringSurrogate,
    Untransform,
    unsupported,
)
from seqopt.models.protocols import nominated
from seqopt.posteriors import Moments, Posterior
from seqopt.scorers.checks import checked_scores
from seqopt.scorers.conditioning import GrowingProcess, GrowingScores
from seqopt.scorers.protocols import BoolArray, Choice, FloatArray, IndexArray, PoolScorer, repeats
from seqopt.scorers.spread import SpreadGaussianScorer
from seqopt.spaces import PoolSpace, keys_at
from seqopt.spaces.spread import spread_of

BLOCK = 1000
"""Strings of a sample whose posterior is computed at once; also how many compete for a batch, and bound the maximum."""


class LazyCandidates(Protocol):
    """Candidates whose moments are bounds until they are looked at; see `seqopt.models.LazyPosterior`."""

    def bounds(self) -> Posterior:
        """The posterior with upper bounds in place of conditional variances."""
        ...

    def is_exact(self, index: int) -> bool:
        """Whether the moments of a candidate are more than bounds."""
        ...

    def refine(self, scores: FloatArray) -> tuple[IndexArray, Posterior]:
        """Make the moments of the most promising candidates exact: which, and the posterior at them."""
        ...

    def choose(self, index: int) -> None:
        """Condition on the outcome, of unknown value, of a candidate."""
        ...

    def moments_at(self, index: int) -> Moments:
        """Moments of one candidate."""
        ...


@runtime_checkable
class StreamedCandidates(Protocol):
    """A posterior over so many candidates that their conditional variances are worked out only where they decide."""

    def lazy(self) -> LazyCandidates:
        """See `LazyCandidates`."""
        ...


class GaussianScoring:
    """Scores of one step by an acquisition function; implements `seqopt.scorers.Scoring`.

    Args:
        surrogate: A fitted surrogate.
        acquisition: What to maximise.
        pending: Queries whose results are awaited; scores are given that they are.
        batch_size: Elements of the batch, pending ones included.
        rng: The only source of randomness.
    """

    def __init__(
        self,
        surrogate: StringSurrogate | PoolSurrogate,
        acquisition: Acquisition,
        *,
        pending: Sequence[Item] = (),
        batch_size: int = 1,
        rng: np.random.Generator,
    ) -> None:
        self.surrogate = surrogate
        self.acquisition = acquisition
        self.pending = list(pending)
        self.batch_size = batch_size
        self._rng = rng

    @cached_property
    def process(self) -> ConditionedProcess:
        """The posterior at any strings, given the data and what is pending."""
        return cast(StringSurrogate, self.surrogate).conditioned(self.pending)

    def incumbents(self, count: int) -> list[str]:
        """The evaluated strings of largest posterior mean."""
        return self.process.best_observed_keys(count)

    def nominated(self, keys: Sequence[str]) -> list[str]:
        """Those of the surrogate, if it nominates any."""
        return nominated(self.surrogate, keys)

    def unsupported(self, keys: Sequence[str]) -> dict[int, str]:
        """What the surrogate cannot compare."""
        return unsupported(self.surrogate, keys)

    def scorer(self, sample: Sequence[str]) -> GaussianScorer:
        """The acquisition function, prepared at the strings ``sample``, whose scores it knows from then on."""
        parts = PartSums()
        with parts.used():
            posterior = self.process.at(sample)
        prepared = self.prepared(posterior)
        scorer = GaussianScorer(self.process, prepared, self.surrogate, self.acquisition.name, parts)
        scorer.score_at(sample, posterior)
        return scorer

    def pool_scorer(self, pool: PoolSpace, indices: IndexArray | None = None) -> PoolScorer:
        """The acquisition function at the candidates of a pool."""
        spread = spread_of(pool)
        if spread is not None and indices is None:
            return SpreadGaussianScorer(self, pool, spread)
        posterior = cast(PoolSurrogate, self.surrogate).pool_posterior(pool, indices, self.pending)
        return self.scorer_of(posterior, self.prepared(posterior), keys_at(pool, indices))

    def scorer_of(self, posterior: Posterior, prepared: PreparedAcquisition, keys: Sequence[str]) -> PoolScorer:
        """The acquisition function of this step at candidates whose posterior is there.

        Args:
            posterior: At the candidates.
            prepared: The acquisition function.
            keys: Of the candidates.
        """
        monotone = isinstance(self.acquisition, MonotoneAcquisition) and self.acquisition.monotone
        if monotone and isinstance(posterior, StreamedCandidates):
            return LazyPoolScorer(posterior.lazy(), prepared, keys, self.surrogate.untransform, self.acquisition.name)
        return GaussianPoolScorer(posterior, prepared, keys, self.surrogate.untransform, self.acquisition.name)

    def sample_scorer(self, keys: Sequence[str]) -> PoolScorer:
        """The acquisition function at strings that were drawn for this step.

        It is prepared on the `BLOCK` of largest upper confidence bound. The batch is filled from the strings of largest
        score on their own, as many again.
        """
        margins = BlockwisePosterior(self.process, keys, BLOCK)
        bound = largest_upper_confidence(margins, BLOCK)
        prepared = self.prepared(self.process.at([keys[int(index)] for index in bound]))
        scores = torch.from_numpy(checked_scores(prepared(margins), len(keys), self.acquisition.name))
        top = torch.topk(scores, min(BLOCK, len(keys))).indices.sort().values
        chosen = [keys[int(index)] for index in top]
        scorer = GaussianPoolScorer(
            self.process.at(chosen), prepared, chosen, self.surrogate.untransform, self.acquisition.name
        )
        return SubsetScorer(scorer, top.numpy())

    def prepared(self, posterior: Posterior) -> PreparedAcquisition:
        """The acquisition function of this step: what is random in it is drawn."""
        return self.acquisition.prepare(posterior, self._rng, self.batch_size)


class GaussianScorer:
    """Scores of any strings; implements `seqopt.scorers.Scorer`.

    Args:
        process: The posterior, given the data and what is pending.
        prepared: The acquisition function of this step.
        surrogate: What cannot be compared, and the units of predictions.
        name: What the acquisition function is called.
        parts: Keeps what strings that differ little have in common.
    """

    def __init__(
        self,
        process: ConditionedProcess,
        prepared: PreparedAcquisition,
        surrogate: StringSurrogate | PoolSurrogate,
        name: str,
        parts: PartSums,
    ) -> None:
        self._process = GrowingProcess(process)
        self._prepared = prepared
        self._surrogate = surrogate
        self._name = name
        self._seen: dict[str, float] = {}
        self._parts = parts

    def scores(self, keys: Sequence[str]) -> FloatArray:
        """Acquisition values; minus infinity for strings that the surrogate cannot take.

        Those that have been worked out since the last choice are remembered.
        """
        fresh = [key for key in dict.fromkeys(keys) if key not in self._seen]
        without = unsupported(self._surrogate, fresh)
        taken = [key for index, key in enumerate(fresh) if index not in without]
        self._seen.update((fresh[index], -math.inf) for index in without)
        if taken:
            process = self._process.current()
            # A search ranks thousands of strings by these; what it chooses is predicted in double precision.
            with self._parts.used():
                self.score_at(taken, getattr(process, "roughly", process.at)(taken))
        return np.array([self._seen[key] for key in keys], dtype=np.float64)

    def score_at(self, keys: Sequence[str], posterior: Posterior) -> None:
        """Work out the acquisition values of strings from the posterior at them, given what has been chosen so far."""
        values = checked_scores(self._prepared(posterior), len(keys), self._name)
        self._seen.update(zip(keys, values.tolist(), strict=True))

    def choose(self, key: str) -> Choice:
        """Put a string into the batch."""
        if key not in self._seen:
            self.scores([key])
        moments = self._process.current().at([key]).moments
        choice = predicted(key, self._seen[key], moments, self._surrogate.untransform)
        self._process.choose(key)
        self._seen = {}
        return choice


class GaussianPoolScorer:
    """Scores of candidates whose moments are all known; implements `seqopt.scorers.PoolScorer`.

    Args:
        posterior: At the N candidates.
        prepared: The acquisition function of this step.
        keys: Of the candidates.
        untransform: From standardised moments to the values' units.
        name: What the acquisition function is called.
    """

    def __init__(
        self,
        posterior: Posterior,
        prepared: PreparedAcquisition,
        keys: Sequence[str],
        untransform: Untransform,
        name: str,
    ) -> None:
        self._keys = keys
        self._untransform = untransform
        self._scores = GrowingScores(posterior, lambda given: checked_scores(prepared(given), len(keys), name))

    def best(self, allowed: BoolArray, count: int = 1) -> tuple[IndexArray, FloatArray]:
        """See `seqopt.scorers.PoolScorer`."""
        return top(np.where(allowed, self._scores.current(), -np.inf), count)

    def choose(self, index: int) -> Choice:
        """Put a candidate into the batch."""
        score = float(self._scores.current()[index])
        moments = self._scores.posterior().moments.take(torch.tensor([index]))
        self._scores.choose(index)
        return predicted(self._keys[index], score, moments, self._untransform)


class LazyPoolScorer:
    """Scores of candidates of which most are only bounded from above; implements `seqopt.scorers.PoolScorer`.

    Candidates are looked at, those of largest bound first, until the best are exact (`seqopt.models.LazyPosterior`).

    Args:
        candidates: The candidates.
        prepared: The acquisition function of this step, which does not fall as a variance grows.
        keys: Of the candidates.
        untransform: From standardised moments to the values' units.
        name: What the acquisition function is called.
    """

    def __init__(
        self,
        candidates: LazyCandidates,
        prepared: PreparedAcquisition,
        keys: Sequence[str],
        untransform: Untransform,
        name: str,
    ) -> None:
        self._candidates = candidates
        self._prepared = prepared
        self._keys = keys
        self._untransform = untransform
        self._name = name
        self._scores: FloatArray | None = None

    def best(self, allowed: BoolArray, count: int = 1) -> tuple[IndexArray, FloatArray]:
        """See `seqopt.scorers.PoolScorer`."""
        while True:
            scores = np.where(allowed, self._current(), -np.inf)
            indices, values = top(scores, count)
            if all(self._candidates.is_exact(int(index)) for index in indices):
                return indices, values
            self._refine(scores)

    def choose(self, index: int) -> Choice:
        """Put a candidate into the batch."""
        while not self._candidates.is_exact(index):
            wanted = np.full(len(self._keys), -np.inf)
            wanted[index] = np.inf
            self._refine(wanted)
        score = float(self._current()[index])
        choice = predicted(self._keys[index], score, self._candidates.moments_at(index), self._untransform)
        self._candidates.choose(index)
        self._scores = None
        return choice

    def _current(self) -> FloatArray:
        if self._scores is None:
            self._scores = checked_scores(self._prepared(self._candidates.bounds()), len(self._keys), self._name)
        return self._scores

    def _refine(self, scores: FloatArray) -> None:
        current = self._current()
        indices, posterior = self._candidates.refine(scores)
        current = current.copy()
        current[indices] = checked_scores(self._prepared(posterior), len(indices), self._name)
        self._scores = current


class SubsetScorer:
    """Scores of a list of which only a part competes; implements `seqopt.scorers.PoolScorer`.

    Args:
        scorer: Of those that compete.
        members: Their numbers in the list.
    """

    def __init__(self, scorer: PoolScorer, members: IndexArray) -> None:
        self._scorer = scorer
        self._members = members

    @property
    def repeats(self) -> bool:
        """See `seqopt.scorers.protocols.RepeatingScorer`."""
        return repeats(self._scorer)

    def best(self, allowed: BoolArray, count: int = 1) -> tuple[IndexArray, FloatArray]:
        """See `seqopt.scorers.PoolScorer`."""
        indices, values = self._scorer.best(allowed[self._members], count)
        return self._members[indices], values

    def choose(self, index: int) -> Choice:
        """Put a string into the batch."""
        return self._scorer.choose(int(np.flatnonzero(self._members == index)[0]))


def top(scores: FloatArray, count: int) -> tuple[IndexArray, FloatArray]:
    """Indices and values of the ``count`` largest scores above minus infinity, the best and the first of equals first.

    Example:
        >>> top(np.array([1.0, 3.0, -np.inf, 3.0]), 3)
        (array([1, 3, 0]), array([3., 3., 1.]))
    """
    if count == 1:
        indices = np.array([int(np.argmax(scores))] if len(scores) else [], dtype=np.int64)
    else:
        indices = np.argsort(-scores, kind="stable")[:count]
    indices = indices[scores[indices] > -np.inf]
    return indices, scores[indices]


def predicted(key: str, score: float, moments: Moments, untransform: Untransform) -> Choice:
    """A choice with the moments of the mixture over draws of the parameters, at one query.

    The variance of a mixture is the mean of the variances and the variance of the means.
    """
    mean, variance = np.asarray(moments.mean[..., 0]), np.asarray(moments.variance[..., 0])
    centre, spread = float(mean.mean()), float(variance.mean() + mean.var())
    noise = float(np.asarray(moments.residual_variance[..., 0]).mean())
    (value, _), (std, measurement_std) = untransform([centre, centre], [spread, spread + noise])
    return Choice(key, score, (), float(value), float(std), float(measurement_std))
