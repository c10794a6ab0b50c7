"""Scores that are lowered about the members of a batch, by how far the maximum must be from them.

References:
    Gonzalez, J., Dai, Z., Hennig, P. and Lawrence, N. (2016). Batch Bayesian optimization via local penalization.
        AISTATS. Moss, H. B. (2021). General-purpose Information-Theoretical Bayesian Optimisation. PhD thesis, section
        5.5.2, where the formula of z lacks the factor sqrt(2) in its denominator.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Protocol, cast, runtime_checkable

import numpy as np
import torch
from scipy import special

from seqopt.acquisition import Acquisition
from seqopt.data import Item
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
from seqopt.scorers.gaussian import BLOCK, predicted, top
from seqopt.scorers.protocols import BoolArray, Choice, FloatArray, IndexArray
from seqopt.spaces import PoolSpace, keys_at

SLOPES_AT = 500
"""Candidates among which, and the evaluated strings, the steepest slope of the posterior mean is looked for."""

CLOSEST = 1e-6
"""Distances below this one are rounding."""


@runtime_checkable
class SimilaritySurrogate(Protocol):
    """A surrogate that says how alike strings are before the data."""

    def similarity(self, a: Sequence[Item], b: Sequence[Item]) -> FloatArray:
        """Prior correlations, len(a) x len(b)."""
        ...

    def similarities_to(
        self, candidates: PoolSpace | Sequence[Item], indices: IndexArray | None = None
    ) -> Callable[[Sequence[Item]], FloatArray]:
        """From m strings to the prior correlations of N candidates with them, N x m."""
        ...


def log_penalty(distance: FloatArray, mean: float, variance: float, best: float, slope: float) -> FloatArray:
    """Logarithm of psi(x; x') = erfc(-z) / 2, z = (L d(x, x') - g* + mean(x')) / sqrt(2 variance(x')).

    It is the probability that x is outside of the ball about x' in which, with a function that changes by L per
    distance at most, the maximum cannot be.

    Args:
        distance: d(x, x'), N.
        mean: Posterior mean at x'.
        variance: Noiseless posterior variance at x'.
        best: g*.
        slope: L.

    Example:
        >>> log_penalty(np.array([0.0, 1.0, 10.0]), mean=0.0, variance=1.0, best=1.0, slope=1.0).round(3).tolist()
        [-1.841, -0.693, -0.0]
    """
    deviations = (slope * np.asarray(distance) - best + mean) / math.sqrt(max(variance, 1e-300))
    found: FloatArray = special.log_ndtr(np.clip(deviations, -1e8, 1e8))
    return found


class PenalisedScoring:
    """Scores of one step by local penalisation; implements `seqopt.scorers.Scoring`.

    The acquisition function is that of single points given the data. Its logarithm is lowered by `log_penalty` for each
    pending and each chosen string, with the distance d = sqrt(2 - 2 k) of strings of prior correlation k, and the
    largest posterior mean of an evaluated string for g*. L is the steepest slope |mean(a) - mean(b)| / d(a, b) between
    any two of the evaluated strings and up to `SLOPES_AT` candidates: the counterpart, for strings, of the largest
    gradient of the mean. It is a slope of the mean, not of the function, so it is rather too small, and balls too wide.

    Args:
        surrogate: A fitted surrogate, with `SimilaritySurrogate.similarity`.
        acquisition: What to maximise.
        logarithmic: Whether its scores are logarithms.
        evaluated: Keys of the evaluated strings.
        pending: Keys of the strings whose results are awaited.
        rng: The only source of randomness.
    """

    def __init__(
        self,
        surrogate: StringSurrogate | PoolSurrogate,
        acquisition: Acquisition,
        *,
        logarithmic: bool,
        evaluated: Sequence[str],
        pending: Sequence[str] = (),
        rng: np.random.Generator,
    ) -> None:
        self.surrogate = surrogate
        self.acquisition = acquisition
        self.logarithmic = logarithmic
        self.evaluated = list(dict.fromkeys(evaluated))
        self.pending = list(pending)
        self._rng = rng

    @cached_property
    def process(self) -> ConditionedProcess:
        """The posterior at any strings given the data, whatever is pending."""
        return cast(StringSurrogate, self.surrogate).conditioned()

    def incumbents(self, count: int) -> list[str]:
        """The evaluated strings of largest posterior mean."""
        return self.process.best_observed_keys(count)

    def nominated(self, keys: Sequence[str]) -> list[str]:
        """Those of the surrogate, if it nominates any."""
        return nominated(self.surrogate, keys)

    def unsupported(self, keys: Sequence[str]) -> dict[int, str]:
        """What the surrogate cannot compare."""
        return unsupported(self.surrogate, keys)

    def scorer(self, sample: Sequence[str]) -> PenalisedScorer:
        """The acquisition function, prepared at the strings ``sample``, less penalties."""
        prepared = self.acquisition.prepare(self.process.at(sample), self._rng)
        return PenalisedScorer(self, lambda keys: self.log_scores(prepared(self.process.at(keys)), keys), sample)

    def pool_scorer(self, pool: PoolSpace, indices: IndexArray | None = None) -> PenalisedPoolScorer:
        """The acquisition function at the candidates of a pool, less penalties."""
        keys = keys_at(pool, indices)
        similarities = self._similar.similarities_to(pool, indices)
        return self._of(cast(PoolSurrogate, self.surrogate).pool_posterior(pool, indices, []), keys, similarities)

    def sample_scorer(self, keys: Sequence[str]) -> PenalisedPoolScorer:
        """The acquisition function at strings that were drawn for this step, less penalties."""
        return self._of(BlockwisePosterior(self.process, keys, BLOCK), keys, self._similar.similarities_to(keys))

    def log_scores(self, scores: object, keys: Sequence[str]) -> FloatArray:
        """Logarithms of acquisition values."""
        found = checked_scores(scores, len(keys), self.acquisition.name)
        if self.logarithmic:
            return found
        return np.log(found, out=np.full(len(found), -np.inf), where=found > 0)

    @property
    def _similar(self) -> SimilaritySurrogate:
        return cast(SimilaritySurrogate, self.surrogate)

    def distances(self, a: Sequence[str], b: Sequence[str]) -> FloatArray:
        """sqrt(2 - 2 k), len(a) x len(b)."""
        return _apart(self._similar.similarity(a, b))

    def steepest(self, sample: Sequence[str]) -> tuple[float, float]:
        """L and g*, from the evaluated strings and some of a sample."""
        chosen = sample
        if len(sample) > SLOPES_AT:
            places = self._rng.choice(len(sample), size=SLOPES_AT, replace=False)
            chosen = [sample[int(place)] for place in np.sort(places)]
        keys = [*self.evaluated, *chosen]
        means = np.asarray(_averaged(self.process.at(keys).moments)[0])
        apart = self.distances(keys, keys)
        slopes = np.abs(means[:, None] - means[None, :]) / np.where(apart > CLOSEST, apart, np.inf)
        best = means[: len(self.evaluated)].max() if self.evaluated else means.max()
        return float(slopes.max(initial=0.0)), float(best)

    def penalties(self, apart: FloatArray, members: Sequence[str], slope: float, best: float) -> FloatArray:
        """Sums of logarithms of penalties about the members of a batch.

        Args:
            apart: Distances of N strings from them, N x len(members).
            members: Strings of the batch.
            slope: L.
            best: g*.
        """
        total = np.zeros(len(apart))
        if not members:
            return total
        means, variances = _averaged(self.process.at(members).moments)
        for place, (mean, variance) in enumerate(zip(means, variances, strict=True)):
            total += log_penalty(apart[:, place], float(mean), float(variance), best, slope)
        return total

    def _of(
        self, posterior: Posterior, keys: Sequence[str], similarities: Callable[[Sequence[Item]], FloatArray]
    ) -> PenalisedPoolScorer:
        prepared = self.acquisition.prepare(posterior, self._rng)
        scores = self.log_scores(prepared(posterior), keys)
        return PenalisedPoolScorer(self, keys, scores, posterior.moments, similarities)


class PenalisedPoolScorer:
    """Penalised scores of N candidates; implements `seqopt.scorers.PoolScorer`."""

    def __init__(
        self,
        scoring: PenalisedScoring,
        keys: Sequence[str],
        scores: FloatArray,
        moments: Moments,
        similarities: Callable[[Sequence[Item]], FloatArray],
    ) -> None:
        self._scoring = scoring
        self._keys = keys
        self._moments = moments
        self._similarities = similarities
        self._slope, self._best = scoring.steepest(keys)
        self._scores = scores
        # One after the other: of many, the distances of all candidates from all need not be there at once.
        for member in scoring.pending:
            self._penalise(member)

    def best(self, allowed: BoolArray, count: int = 1) -> tuple[IndexArray, FloatArray]:
        """See `seqopt.scorers.PoolScorer`."""
        return top(np.where(allowed, self._scores, -np.inf), count)

    def choose(self, index: int) -> Choice:
        """Put a candidate into the batch: scores about it fall."""
        moments = self._moments.take(torch.tensor([index]))
        untransform: Untransform = self._scoring.surrogate.untransform
        choice = predicted(self._keys[index], float(self._scores[index]), moments, untransform)
        self._penalise(self._keys[index])
        return choice

    def _penalise(self, member: str) -> None:
        apart = _apart(self._similarities([member]))
        self._scores = self._scores + self._scoring.penalties(apart, [member], self._slope, self._best)


class PenalisedScorer:
    """Penalised scores of any strings; implements `seqopt.scorers.Scorer`."""

    def __init__(
        self, scoring: PenalisedScoring, alone: Callable[[Sequence[str]], FloatArray], sample: Sequence[str]
    ) -> None:
        self._scoring = scoring
        self._alone = alone
        self._slope, self._best = scoring.steepest(sample)
        self._members = list(scoring.pending)

    def scores(self, keys: Sequence[str]) -> FloatArray:
        """Logarithms of acquisition values less penalties; minus infinity for what the surrogate cannot take."""
        without = self._scoring.unsupported(keys)
        values = np.full(len(keys), -np.inf)
        taken = [index for index in range(len(keys)) if index not in without]
        if taken:
            known = [keys[index] for index in taken]
            for start in range(0, len(taken), BLOCK):
                some = known[start : start + BLOCK]
                apart = self._scoring.distances(some, self._members) if self._members else np.empty((len(some), 0))
                penalty = self._scoring.penalties(apart, self._members, self._slope, self._best)
                values[taken[start : start + BLOCK]] = self._alone(some) + penalty
        return values

    def choose(self, key: str) -> Choice:
        """Put a string into the batch."""
        score = float(self.scores([key])[0])
        moments = self._scoring.process.at([key]).moments
        self._members.append(key)
        return predicted(key, score, moments, self._scoring.surrogate.untransform)


def _apart(correlation: FloatArray) -> FloatArray:
    """Distances of strings of a correlation."""
    found: FloatArray = np.sqrt(np.maximum(2.0 - 2.0 * correlation, 0.0))
    return found


def _averaged(moments: Moments) -> tuple[FloatArray, FloatArray]:
    """Means and variances of the mixture over draws of the parameters."""
    mean = np.asarray(moments.mean).reshape(-1, len(moments))
    variance = np.asarray(moments.variance).reshape(-1, len(moments))
    return mean.mean(0), variance.mean(0) + mean.var(0)
