"""Scores of pools that are spread over other processes: the exact batch, from the candidates that can be in it.

An acquisition function that does not fall as a variance grows gives an upper bound of a candidate's score when its
variance is that given the data alone, whatever is chosen for the batch. So the candidates of largest bound are fetched,
some thousands, and the batch is filled among these. As long as the best of them is not below the last bound that was
fetched, it is the best of all; when it is, more are fetched, with bounds that know what has been chosen.

The shards get the training strings, the parameters, the draws of the maximum, and the means at what has been chosen. It
is the accelerated greedy algorithm (Minoux 1978) of `seqopt.models.streamed_posterior`, with one round trip for all
that it does not look at.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from torch import Tensor

from seqopt.acquisition import (
    Acquisition,
    LogExpectedImprovement,
    MonotoneAcquisition,
    PosteriorMean,
    PreparedAcquisition,
    UpperConfidenceBound,
)
from seqopt.acquisition.information import InformationAcquisition
from seqopt.acquisition.max_values import ExactMaxValueSampler
from seqopt.data import Item
from seqopt.errors import InputError, ModelError
from seqopt.models.carried import CarriedModel, carried
from seqopt.models.classifiers import Predictor
from seqopt.models.gaussian import GaussianSurrogate
from seqopt.posteriors import Moments, Posterior
from seqopt.scorers.allowed import left_out_of
from seqopt.scorers.checks import checked_scores
from seqopt.scorers.protocols import BoolArray, Choice, FloatArray, IndexArray, PoolScorer
from seqopt.spaces import PoolSpace
from seqopt.spaces.spread import Ranks, ShardScore, Spread
from seqopt.utils.progress import doing

if TYPE_CHECKING:
    from seqopt.scorers.gaussian import GaussianScoring

FETCHED = 4096
"""Candidates that are fetched at first."""

FETCHED_FOR_EACH = 8
"""At least so many for each member of a batch."""

FURTHER = 4
"""Factor by which more are fetched each time that the best might be elsewhere."""

BLOCK = 1000
"""Strings whose logits are computed at once."""


class PromisingScore:
    """Mean and some standard deviations more: where the maximum may be; implements `seqopt.spaces.spread.ShardScore`.

    Args:
        model: The model.
        beta: Squared number of standard deviations.
    """

    name: ClassVar[str] = "score"

    def __init__(self, model: CarriedModel, beta: float) -> None:
        self.model = model
        self.beta = beta

    def __call__(self, shard: PoolSpace) -> FloatArray:
        """Mean + sqrt(beta) std of each candidate, averaged over draws."""
        moments = self.model.moments(shard, getattr(shard, "columns", None))
        bound = moments.mean + math.sqrt(self.beta) * moments.variance.sqrt()
        return np.asarray(bound.mean(0))


class BoundScore:
    """Upper bounds of an acquisition function; implements `seqopt.spaces.spread.ShardScore`.

    Args:
        model: The model.
        prepared: The acquisition function of this step.
        label: What it is called.
        conditioned_mean: Means at the pending and chosen strings.
        observed_mean: At the evaluated strings.
        best_observed: The largest value.
    """

    name: ClassVar[str] = "score"

    def __init__(
        self,
        model: CarriedModel,
        prepared: PreparedAcquisition,
        label: str,
        conditioned_mean: Tensor,
        observed_mean: Tensor,
        best_observed: float,
    ) -> None:
        self.model = model
        self.prepared = prepared
        self.label = label
        self.conditioned_mean = conditioned_mean
        self.observed_mean = observed_mean
        self.best_observed = best_observed

    def __call__(self, shard: PoolSpace) -> FloatArray:
        """The bound of each candidate."""
        moments = self.model.moments(shard, getattr(shard, "columns", None))
        view = MomentsAlone(moments, self.conditioned_mean, self.observed_mean, self.best_observed)
        return checked_scores(self.prepared(view), len(moments), self.label)


class MeanScore:
    """What a model predicts; implements `seqopt.spaces.spread.ShardScore`."""

    name: ClassVar[str] = "predict"

    def __init__(self, model: CarriedModel) -> None:
        self.model = model

    def __call__(self, shard: PoolSpace) -> FloatArray:
        """The mean at each candidate, in standardised units."""
        return np.asarray(self.model.means(shard))


class LogitScore:
    """The logit of a classifier; implements `seqopt.spaces.spread.ShardScore`."""

    name: ClassVar[str] = "classify"

    def __init__(self, predictor: Predictor, label: str) -> None:
        self.predictor = predictor
        self.label = label

    def __call__(self, shard: PoolSpace) -> FloatArray:
        """The logit of each candidate."""
        return logits_of(self.predictor, shard.keys, self.label)


def logits_of(predictor: Predictor, keys: Sequence[str], label: str) -> FloatArray:
    """Logits of many strings, in blocks.

    Args:
        predictor: A fitted classifier.
        keys: The strings.
        label: What messages call it.
    """
    blocks = [keys[start : start + BLOCK] for start in range(0, len(keys), BLOCK)]
    parts = [checked_scores(predictor.logits(block), len(block), label) for block in blocks]
    return np.concatenate(parts) if parts else np.empty(0)


class MomentsAlone:
    """A posterior of which nothing but moments is known here; implements `seqopt.posteriors.Posterior` as far as an
    acquisition function that is monotone looks at it.
    """

    def __init__(self, moments: Moments, conditioned_mean: Tensor, observed_mean: Tensor, best_observed: float) -> None:
        self.moments = moments
        self.conditioned_mean = conditioned_mean
        self.observed_mean = observed_mean
        self.best_observed = best_observed

    def joint(self, indices: Tensor, include_observed: bool = False) -> tuple[Tensor, Tensor]:
        """It is not known."""
        raise ModelError("covariances between candidates of a shard are not known there")

    def cross(self, indices: Tensor) -> Tensor:
        """It is not known."""
        raise ModelError("covariances between candidates of a shard are not known there")

    def given(self, index: int) -> Posterior:
        """It is not known."""
        raise ModelError("what a candidate of a shard tells of others is not known there")


def check_spread_acquisition(acquisition: Acquisition) -> None:
    """Refuse an acquisition function that would have to look at all candidates in one process.

    Raises:
        InputError: As said; it names those that do not.
    """
    if isinstance(acquisition, MonotoneAcquisition) and acquisition.monotone:
        if isinstance(acquisition, LogExpectedImprovement | UpperConfidenceBound | PosteriorMean):
            return
        if isinstance(acquisition, InformationAcquisition) and isinstance(acquisition.sampler, ExactMaxValueSampler):
            return
    raise InputError(
        f"the acquisition function {acquisition.name} looks at all candidates of a pool in one process, and they are "
        "spread over many: choose gibbon or mes (with exact draws of the maximum), logei, ucb or mean"
    )


class SpreadGaussianScorer:
    """Scores by an acquisition function of a Gaussian posterior; implements `seqopt.scorers.PoolScorer`.

    Args:
        scoring: What is maximised.
        pool: The candidates.
        spread: Looks at them.

    Raises:
        InputError: For an acquisition function that is not among those of `check_spread_acquisition`, or a surrogate
            that is no Gaussian process.
    """

    def __init__(self, scoring: GaussianScoring, pool: PoolSpace, spread: Spread) -> None:
        check_spread_acquisition(scoring.acquisition)
        if not isinstance(scoring.surrogate, GaussianSurrogate):
            raise InputError(
                f"a {type(scoring.surrogate).__name__} cannot be sent to the processes that a pool is spread over: "
                "choose a surrogate that is a Gaussian process"
            )
        self._scoring = scoring
        self._surrogate: GaussianSurrogate = scoring.surrogate
        self._pool = pool
        self._spread = spread
        self._model = carried(self._surrogate, pool)
        self._chosen: list[Item] = []
        self._members: IndexArray = np.empty(0, dtype=np.int64)
        self._frontier: tuple[float, int] | None = None
        self._local: PoolScorer | None = None

    @cached_property
    def _prepared(self) -> PreparedAcquisition:
        """The acquisition function, prepared on the candidates that it would look at among all of them."""
        acquisition = self._scoring.acquisition
        count, beta = 1, 0.0
        if isinstance(acquisition, InformationAcquisition) and isinstance(acquisition.sampler, ExactMaxValueSampler):
            count, beta = acquisition.sampler.num_candidates, acquisition.sampler.beta
        score = PromisingScore(self._model, beta)
        none = np.empty(0, dtype=np.int64)
        places, _ = self._spread.best(score, count, none, what="predicting")
        posterior = self._surrogate.pool_posterior(self._pool, np.sort(places), self._scoring.pending)
        return self._scoring.prepared(posterior)

    def best(self, allowed: BoolArray, count: int = 1) -> tuple[IndexArray, FloatArray]:
        """See `seqopt.scorers.PoolScorer`."""
        while True:
            if self._local is not None:
                chosen, scores = self._local.best(allowed[self._members], count)
                places = self._members[chosen]
                if self._frontier is None or (len(places) == count and self._reaches(places[-1], scores[-1])):
                    return places, scores
            self._fetch(allowed, count)

    def choose(self, index: int) -> Choice:
        """Put a candidate into the batch."""
        assert self._local is not None  # only what `best` named is chosen
        choice = self._local.choose(int(np.searchsorted(self._members, index)))
        self._chosen.append(choice.key)
        return choice

    def _reaches(self, place: int, score: float) -> bool:
        """Whether nothing that was not fetched comes before a candidate: of equal ones, the first comes first."""
        assert self._frontier is not None
        last, where = self._frontier
        return score > last or (score == last and int(place) <= where)

    def _fetch(self, allowed: BoolArray, count: int) -> None:
        """Look at more candidates, given what has been chosen."""
        prepared = self._prepared
        wanted = max(FETCHED, FETCHED_FOR_EACH * max(count, self._scoring.batch_size), FURTHER * len(self._members))
        awaited = [*self._scoring.pending, *self._chosen]
        conditioning = self._surrogate.conditioned(awaited).conditioning
        state = conditioning.state
        score = BoundScore(
            self._model,
            prepared,
            self._scoring.acquisition.name,
            conditioning.mean,
            state.observed_mean,
            state.best_observed,
        )
        places, bounds = self._spread.best(score, wanted, left_out_of(allowed))
        self._frontier = (float(bounds[-1]), int(places[-1])) if len(places) == wanted else None
        self._members = np.sort(places)
        with doing(f"looking closer at {len(places):,} candidates"):
            posterior = self._surrogate.pool_posterior(self._pool, self._members, awaited)
        self._local = self._scoring.scorer_of(posterior, prepared, [self._pool.keys[int(one)] for one in self._members])


def spread_means(surrogate: object, pool: PoolSpace, spread: Spread) -> SpreadScorer:
    """A scorer by predicted means.

    Raises:
        InputError: For a surrogate that is no Gaussian process.
    """
    if not isinstance(surrogate, GaussianSurrogate):
        raise InputError(f"a {type(surrogate).__name__} cannot be sent to the processes that a pool is spread over")
    return SpreadScorer(MeanScore(carried(surrogate, pool)), pool, spread, what="predicting")


class SpreadScorer:
    """Scores of candidates by themselves, which do not change while a batch is filled; implements
    `seqopt.scorers.PoolScorer`.

    Args:
        score: Scores a shard.
        pool: The candidates.
        spread: Looks at them.
        what: What it does, in words.
        ranks: Order candidates of equal scores.
    """

    def __init__(
        self, score: ShardScore, pool: PoolSpace, spread: Spread, *, what: str, ranks: Ranks | None = None
    ) -> None:
        self._score = score
        self._pool = pool
        self._spread = spread
        self._what = what
        self._ranks = ranks
        self._places: IndexArray = np.empty(0, dtype=np.int64)
        self._scores: FloatArray = np.empty(0)
        self._all = False

    def best(self, allowed: BoolArray, count: int = 1) -> tuple[IndexArray, FloatArray]:
        """See `seqopt.scorers.PoolScorer`."""
        kept = allowed[self._places]
        if kept.sum() < count and not self._all:
            wanted = max(FETCHED, count, FURTHER * len(self._places) if len(self._places) else 0)
            self._places, self._scores = self._spread.best(
                self._score, wanted, left_out_of(allowed), ranks=self._ranks, what=self._what
            )
            self._all = len(self._places) < wanted
            kept = np.ones(len(self._places), dtype=np.bool_)
        return self._places[kept][:count], self._scores[kept][:count]

    def choose(self, index: int) -> Choice:
        """Put a candidate into the batch."""
        (where,) = np.flatnonzero(self._places == index)
        return Choice(self._pool.keys[index], float(self._scores[where]))
