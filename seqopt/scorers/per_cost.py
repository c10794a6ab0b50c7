"""Scores of strings that can be measured in several ways, each at its cost: information per cost.

GIBBON and MUMBO score a query by what its outcome, at a low fidelity say, tells of the maximum of the target. A string
gets the score of its best context. Acquisition functions that do not see outcomes (MES) score queries of the target
only.

References:
    Moss, H. B. (2021). General-purpose Information-Theoretical Bayesian Optimisation. PhD thesis, chapters 3 and 5
        (multi-fidelity search).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from seqopt.acquisition import OutcomeAcquisition, PreparedAcquisition
from seqopt.acquisition.sampling import largest_upper_confidence_of
from seqopt.data import Context, Contexts, Item, Query, Room
from seqopt.errors import ModelError
from seqopt.models import (
    BlockwisePosterior,
    ConditionedProcess,
    ContextsPosterior,
    GaussianSurrogate,
    StringSurrogate,
    unsupported,
)
from seqopt.posteriors import AnchoredPosterior, DensePosterior, Moments, Posterior
from seqopt.scorers.checks import checked_scores
from seqopt.scorers.conditioning import GrowingProcess, GrowingScores
from seqopt.scorers.costs import Costs, StatedCosts
from seqopt.scorers.gaussian import BLOCK, SubsetScorer, predicted, top
from seqopt.scorers.protocols import BoolArray, Choice, FloatArray, IndexArray, PoolScorer
from seqopt.spaces import PoolSpace, keys_at

AT_ONCE = 4000
"""Queries whose posterior is kept with its factors, so that a batch costs rank-one updates; of more, only moments."""

ROUNDING = 1e-9
"""Share of what is left to be spent that a cost may exceed it by: sums of costs are rounded."""

LEAST_INFORMATION = 1e-12
"""Squared correlation of an outcome with its target below which nothing can be learned: what is left is rounding."""


def value_per_cost(values: npt.ArrayLike, costs: npt.ArrayLike) -> FloatArray:
    """Values per cost: quotients where they are positive, products where they are negative.

    The increments of a batch's value can be negative. Divided by a cost, the largest loss would come first at the
    highest cost; the product keeps a cheap query before a costly one of the same value, and equal costs keep the order.

    Args:
        values: n.
        costs: n, positive.

    Example:
        >>> value_per_cost([1.0, 1.0, -1.0, -1.0], [1.0, 0.5, 1.0, 0.5]).tolist()
        [1.0, 2.0, -1.0, -0.5]
    """
    found, paid = np.asarray(values, dtype=np.float64), np.asarray(costs, dtype=np.float64)
    return np.where(found > 0, found / paid, found * paid)


@dataclass(frozen=True, eq=False)
class Offered:
    """What may be chosen, n queries.

    Attributes:
        contexts: Those that there are.
        ways: The number of the context of each query, n.
        costs: What each costs, n.
        ruled_out: Which must not be chosen, n.
    """

    contexts: Sequence[Context]
    ways: IndexArray
    costs: FloatArray
    ruled_out: BoolArray


PosteriorIn = Callable[[Contexts, Sequence[Query]], Posterior]
"""From contexts and chosen queries to the posterior at N candidates in all of the contexts."""


class PerCostScoring:
    """Scores of one step by an acquisition function per cost; implements `seqopt.scorers.Scoring`.

    A query that tells nothing of its target is never chosen, whatever it costs, nor is one that is known.

    Args:
        surrogate: Fitted to queries; a plain string stands for its target.
        acquisition: What to maximise. One that does not see outcomes (`seqopt.acquisition.OutcomeAcquisition`) chooses
            among queries of the target only.
        contexts: The ways to measure, and their costs.
        evaluated: Keys of the strings that the surrogate was fitted to, each once.
        known: Queries that must not be chosen.
        pending: Queries whose results are awaited.
        batch_size: Elements of the batch, pending ones included.
        costs: What measurements cost; by default what ``contexts`` state.
        rng: The only source of randomness.
        only: The one context that is free; by default all are.
        closed: Contexts in which nothing is measured any more.
        shared: Whether all queries of the batch have one context, that of the first that is chosen.
        remaining: Cost that the batch may have at most.
        first: How many queries, the first of the batch, are of targets.
        room: How many queries fit into each context; by default there is no limit.
    """

    def __init__(
        self,
        surrogate: StringSurrogate,
        acquisition: OutcomeAcquisition,
        contexts: Contexts,
        *,
        evaluated: Sequence[str],
        known: Set[Query] = frozenset(),
        pending: Sequence[Item] = (),
        batch_size: int = 1,
        costs: Costs | None = None,
        rng: np.random.Generator,
        only: Context | None = None,
        closed: Set[Context] = frozenset(),
        shared: bool = False,
        remaining: float | None = None,
        first: int = 0,
        room: Room | None = None,
    ) -> None:
        self.room = room
        self.only = only
        self.closed = closed
        self.shared = shared
        self.remaining = remaining
        self.first = first
        self.costs = StatedCosts(contexts) if costs is None else costs
        self.surrogate = surrogate
        self.acquisition = acquisition
        self.contexts = contexts
        self.evaluated = list(evaluated)
        self.known = known
        self.pending = list(pending)
        self.batch_size = batch_size
        self._rng = rng

    @cached_property
    def process(self) -> ConditionedProcess:
        """The posterior at any queries, given the data and what is pending."""
        return self.surrogate.conditioned(self.pending)

    def incumbents(self, count: int) -> list[str]:
        """The evaluated strings whose targets have the largest posterior means."""
        if not self.evaluated:
            return []
        means = self.process.at(self.evaluated).moments.mean.mean(0)
        order = torch.argsort(means, descending=True, stable=True)
        return [self.evaluated[int(place)] for place in order[:count]]

    def unsupported(self, keys: Sequence[str]) -> dict[int, str]:
        """What the surrogate cannot compare."""
        return unsupported(self.surrogate, keys)

    def scorer(self, sample: Sequence[str]) -> PerCostScorer:
        """The acquisition function, prepared at the targets of ``sample``."""
        return PerCostScorer(self, self._prepared(sample))

    def pool_scorer(self, pool: PoolSpace, indices: IndexArray | None = None) -> PerCostPoolScorer:
        """The acquisition function at the candidates of a pool, in every context."""
        keys = keys_at(pool, indices)
        surrogate = self.surrogate
        if not isinstance(surrogate, GaussianSurrogate):
            return PerCostPoolScorer(self, self._prepared_on_promising(keys), keys)
        # What a kernel says of a large pool's strings is computed once for all contexts, and kept.
        whole = None
        if not _at_once(keys, self.contexts):
            whole = surrogate.contexts_posterior(pool, self.contexts, indices, self.pending)

        def posterior_in(contexts: Contexts, chosen: Sequence[Query]) -> Posterior:
            # There may be more of them than at the beginning: fresh plates.
            if _at_once(keys, contexts):
                return self._posterior_at(keys, contexts, chosen)
            if whole is not None and contexts is self.contexts and not chosen:
                return whole
            return surrogate.contexts_posterior(pool, contexts, indices, [*self.pending, *chosen])

        return PerCostPoolScorer(self, self._prepared_on_promising(keys, whole), keys, posterior_in)

    def _posterior_at(self, keys: Sequence[str], contexts: Contexts, chosen: Sequence[Query]) -> Posterior:
        """The posterior at strings in any contexts, given chosen queries."""
        process = self.process
        for query in chosen:
            process = process.given(query)
        queries = contexts.queries(keys)
        return process.at(queries) if _at_once(keys, contexts) else BlockwisePosterior(process, queries, BLOCK)

    def sample_scorer(self, keys: Sequence[str]) -> PoolScorer:
        """The acquisition function at strings that were drawn for this step, in every context.

        A batch is filled from the `BLOCK` of largest score on their own.
        """
        prepared = self._prepared_on_promising(keys)
        if len(keys) <= BLOCK:
            return PerCostPoolScorer(self, prepared, keys)
        alone = PerCostScorer(self, prepared)
        scores = np.concatenate([alone.scores(keys[start : start + BLOCK]) for start in range(0, len(keys), BLOCK)])
        members = np.sort(np.argsort(-scores, kind="stable")[:BLOCK]).astype(np.int64)
        return SubsetScorer(PerCostPoolScorer(self, prepared, [keys[int(index)] for index in members]), members)

    def query_scores(
        self,
        posterior: Posterior,
        prepared: PreparedAcquisition,
        queries: Sequence[Query],
        taken: Set[Query],
        costs: FloatArray | None = None,
    ) -> FloatArray:
        """Scores of queries: acquisition per cost, minus infinity for those that are out of the question.

        Args:
            posterior: At the queries.
            prepared: The acquisition function of this step.
            queries: n of them.
            taken: Queries that were chosen for this batch.
            costs: What they cost, where that is known already.
        """
        contexts = list(dict.fromkeys(query.context for query in queries))
        number = {context: place for place, context in enumerate(contexts)}
        free = {context: self.is_free(context, taken) for context in contexts}
        # A string that will be known as its target is of no further use.
        done = {query.key for query in taken if query.context == self.contexts.target}
        out = (
            not free[query.context] or query in self.known or query in taken or query.key in done for query in queries
        )
        offered = Offered(
            contexts,
            np.fromiter((number[query.context] for query in queries), dtype=np.int64, count=len(queries)),
            self.costs.of(queries) if costs is None else costs,
            np.fromiter(out, dtype=np.bool_, count=len(queries)),
        )
        return self.scored(posterior, prepared, offered, taken)

    def scored(
        self, posterior: Posterior, prepared: PreparedAcquisition, offered: Offered, taken: Set[Query]
    ) -> FloatArray:
        """As `query_scores`, where it is known already what must not be chosen.

        Args:
            posterior: At n queries.
            prepared: The acquisition function of this step.
            offered: The queries.
            taken: Queries that were chosen for this batch.
        """
        del taken
        values = checked_scores(prepared(posterior), len(offered.costs), self.acquisition.name)
        scores = value_per_cost(values, offered.costs)
        scores[offered.ruled_out | ~_informative(posterior.moments)] = -np.inf
        return scores

    def is_free(self, context: Context, taken: Set[Query]) -> bool:
        """Whether another query of the batch can be made in a context."""
        if not self.acquisition.sees_outcomes and context != self.contexts.target:
            return False
        if context in self.closed or self.only not in (None, context):
            return False
        if self.only is None and len(taken) < self.first and context != self.contexts.target:
            return False
        if self.shared and any(query.context != context for query in taken):
            return False
        if self.room is not None and not self.room.is_free(context, taken):
            return False
        if self.remaining is None:
            return True
        left = self.remaining - sum(map(self.contexts.cost, taken))
        return self.contexts.cost(Query("any", context)) <= left + ROUNDING * self.remaining

    def grown(self, contexts: Contexts, query: Query) -> Contexts:
        """The ways to measure what comes after a query that was chosen; here they stay."""
        return contexts

    def choice(self, query: Query, score: float, moments: Moments) -> Choice:
        """A choice, with what is predicted of its target."""
        return replace(predicted(query.key, score, moments, self.surrogate.untransform), context=query.context)

    def _prepared_on_promising(self, keys: Sequence[str], posterior: Posterior | None = None) -> PreparedAcquisition:
        if isinstance(posterior, ContextsPosterior):
            targets = posterior.target_moments
        else:
            targets = BlockwisePosterior(self.process, keys, BLOCK).moments
        bound = largest_upper_confidence_of(targets, BLOCK)
        return self._prepared([keys[int(index)] for index in bound])

    def _prepared(self, sample: Sequence[str]) -> PreparedAcquisition:
        # What bounds the maximum is targets, also of strings that were measured otherwise.
        count = len(self.evaluated)
        everything = [*self.evaluated, *sample]
        whole = self.process.at(everything)
        mean, covariance = whole.joint(torch.arange(len(everything)))
        targets = DensePosterior(
            mean[..., count:],
            covariance[..., count:, count:],
            0.0,
            observed_mean=mean[..., :count],
            observed_covariance=covariance[..., :count, :count],
            cross_covariance=covariance[..., :count, count:],
            points=lambda indices, observed: _points(whole, torch.cat([observed, count + indices])),
        )
        return self.acquisition.prepare(targets, self._rng, self.batch_size)


def _points(posterior: Posterior, indices: Tensor) -> Any:
    if not isinstance(posterior, AnchoredPosterior):
        raise ModelError(f"{type(posterior).__name__} has no covariances with points of other posteriors")
    return posterior.anchors(indices, torch.empty(0, dtype=torch.int64))


class PerCostScorer:
    """Scores of any strings in their best context; implements `seqopt.scorers.Scorer`.

    A string may join a batch in several contexts, until it is chosen as its target.

    Args:
        scoring: Of this step.
        prepared: The acquisition function of this step.
    """

    repeats = True

    def __init__(self, scoring: PerCostScoring, prepared: PreparedAcquisition) -> None:
        self._scoring = scoring
        self._prepared = prepared
        self._contexts = scoring.contexts
        self._process = GrowingProcess(scoring.process)
        self._taken: set[Query] = set()
        self._seen: dict[str, tuple[float, Context]] = {}

    def scores(self, keys: Sequence[str]) -> FloatArray:
        """Acquisition per cost; minus infinity for strings that are unsupported, or known in every context."""
        scoring, process = self._scoring, self._process.current()
        without = scoring.unsupported(keys)
        values = np.full(len(keys), -np.inf)
        taken = [index for index in range(len(keys)) if index not in without]
        if taken:
            queries = self._contexts.queries([keys[index] for index in taken])
            found = scoring.query_scores(process.at(queries), self._prepared, queries, self._taken)
            table = found.reshape(-1, len(taken))
            best = table.argmax(0)
            values[taken] = table[best, np.arange(len(taken))]
            for place, index in enumerate(taken):
                self._seen[keys[index]] = float(values[index]), self._contexts.possible[best[place]]
        return values

    def choose(self, key: str) -> Choice:
        """Put a string into the batch, in its best context."""
        if key not in self._seen:
            self.scores([key])
        score, context = self._seen[key]
        query = Query(key, context)
        choice = self._scoring.choice(query, score, self._process.current().at([query]).moments)
        self._process.choose(query)
        self._seen = {}
        self._taken.add(query)
        self._contexts = self._scoring.grown(self._contexts, query)
        return choice


class PerCostPoolScorer:
    """Scores of N candidates in their best contexts; implements `seqopt.scorers.PoolScorer`.

    A candidate may join a batch in several contexts, until it is chosen as its target.

    Args:
        scoring: Of this step.
        prepared: The acquisition function of this step.
        keys: Of the candidates.
        posterior_in: The posterior at the candidates in any contexts, given chosen queries, where there is a quicker
            way.
    """

    repeats = True

    def __init__(
        self,
        scoring: PerCostScoring,
        prepared: PreparedAcquisition,
        keys: Sequence[str],
        posterior_in: PosteriorIn | None = None,
    ) -> None:
        self._scoring = scoring
        self._prepared = prepared
        self._keys = keys
        self._count = len(keys)
        self._taken: set[Query] = set()
        self._chosen: list[Query] = []
        self._members: dict[Query, IndexArray] = {}
        self._same = _repeated(keys)
        self._posterior_in = partial(scoring._posterior_at, keys) if posterior_in is None else posterior_in
        self._offer(scoring.contexts)

    def _offer(self, contexts: Contexts) -> None:
        """Score the candidates in these contexts, given all that was chosen."""
        scoring, keys, count = self._scoring, self._keys, self._count
        self._contexts = contexts
        self._ways = np.repeat(np.arange(len(contexts.possible)), count)
        if isinstance(scoring.costs, StatedCosts):
            self._costs = scoring.costs.of([Query("", context) for context in contexts.possible])[self._ways]
        else:
            self._costs = scoring.costs.of(contexts.queries(keys))
        # One row for each context. Of very many candidates, known ones are looked up once.
        known = np.zeros((len(contexts.possible), count), dtype=np.bool_)
        measured = {query.key for query in scoring.known}
        for place in [place for place, key in enumerate(keys) if key in measured]:
            known[:, place] = [Query(keys[place], context) in scoring.known for context in contexts.possible]
        self._known = known
        self._table = GrowingScores(
            self._posterior_in(contexts, self._chosen),
            lambda given: scoring.scored(given, self._prepared, self._offered(), self._taken).reshape(-1, count),
        )

    def _offered(self) -> Offered:
        """All candidates in all contexts, given those that were chosen."""
        scoring, possible, out = self._scoring, self._contexts.possible, self._known.copy()
        for query, members in self._members.items():
            # A string that will be known as its target is of no further use.
            if query.context == self._contexts.target:
                out[:, members] = True
            elif query.context in possible:
                out[possible.index(query.context), members] = True
        for row, context in zip(out, possible, strict=True):
            if not scoring.is_free(context, self._taken):
                row[:] = True
        return Offered(possible, self._ways, self._costs, out.reshape(-1))

    def best(self, allowed: BoolArray, count: int = 1) -> tuple[IndexArray, FloatArray]:
        """See `seqopt.scorers.PoolScorer`."""
        return top(np.where(allowed, self._table.current().max(0), -np.inf), count)

    def choose(self, index: int) -> Choice:
        """Put a candidate into the batch, in its best context."""
        table = self._table.current()
        way = int(table[:, index].argmax())
        place, key = way * self._count + index, self._keys[index]
        query = Query(key, self._contexts.possible[way])
        moments = self._table.posterior().moments.take(torch.tensor([place]))
        choice = self._scoring.choice(query, float(table[:, index].max()), moments)
        self._taken.add(query)
        self._chosen.append(query)
        self._members[query] = self._same[key] if key in self._same else np.array([index])
        self._table.choose(place)
        contexts = self._scoring.grown(self._contexts, query)
        if contexts is not self._contexts:
            self._offer(contexts)
        return choice


def _at_once(keys: Sequence[str], contexts: Contexts) -> bool:
    """Whether so few strings in so few contexts are looked at with all factors."""
    return len(keys) * len(contexts.possible) <= AT_ONCE


def _repeated(keys: Sequence[str]) -> dict[str, IndexArray]:
    """Where strings stand that come several times; empty for a pool, whose candidates differ."""
    if len(set(keys)) == len(keys):
        return {}
    places: dict[str, list[int]] = {}
    for place, key in enumerate(keys):
        places.setdefault(key, []).append(place)
    return {key: np.array(found) for key, found in places.items() if len(found) > 1}


def _informative(moments: Moments) -> BoolArray:
    """Which outcomes are correlated with their targets, under any draw of the parameters."""
    total = (moments.variance * moments.outcome_variance).clamp_min(1e-300)
    correlation = moments.covariance.square() / total
    found: BoolArray = (correlation.reshape(-1, correlation.shape[-1]).amax(0) > LEAST_INFORMATION).numpy()
    return found
