"""Searches whose measurements are made on plates, or with seeds, each with an offset and a function of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import replace
from typing import Any, cast

import numpy as np

from seqopt.acquisition import OutcomeAcquisition, PreparedAcquisition
from seqopt.data import Context, Contexts, Query, context_of, key_of
from seqopt.errors import InputError
from seqopt.models import StringSurrogate
from seqopt.posteriors import Posterior
from seqopt.scorers import Scoring
from seqopt.scorers.per_cost import PerCostScoring
from seqopt.scorers.protocols import FloatArray
from seqopt.spaces import Space
from seqopt.strategies.fidelity import MultiFidelity
from seqopt.strategies.protocols import SearchState

TIE = 1e-6
"""Relative difference of two scores that is taken for rounding: a plate that is there is preferred to a fresh one."""


class PlateSearch(MultiFidelity):
    """Chooses strings, and the plate on which each is measured: one of those there are, or a fresh one. BOSH.

    What is searched for is g, the function that all plates have in common; a measurement on plate s is f_s(x) with
    noise, where f_s departs from g. Candidates are all pairs of a string and a plate, of those met so far or one fresh
    plate, and the score is what the measurement tells of the maximum of g, per cost. As soon as a fresh plate is
    chosen it is one of those there are, and another fresh one is offered, also within a batch.

    A plate that is there is used where a fresh one would tell no more: where plates do not differ, none is opened for
    a measurement that an old one could hold. The search begins on two plates in turn (`Contexts.beginning`), and
    recommends the evaluated string of largest posterior mean of g.

    Args:
        surrogate: A surrogate of queries, where a plain string stands for g. By default
            `seqopt.models.contexts.hierarchical`: k_g + [same plate] k_f.
        acquisition: ``"gibbon"`` or ``"mumbo"``, or an object that sees outcomes.
        search: See `ModelBased`.
        costs: See `MultiFidelity`.

    Raises:
        InputError: For another acquisition function, or other costs.

    References:
        Moss, H. B. (2021). General-purpose Information-Theoretical Bayesian Optimisation. PhD thesis, chapter 6.

    Example:
        >>> from seqopt import Optimizer
        >>> from seqopt.data import Contexts
        >>> pool = ["AAAA", "AAAT", "AATT", "ATTT", "TTTT", "TTTA", "TTAA", "TATA"]
        >>> optimizer = Optimizer(pool, strategy=PlateSearch(), contexts=Contexts.of_plates(), initial=4)
        >>> queries = optimizer.ask().queries
        >>> [query.get("plate") for query in queries]
        ['P1', 'P2', 'P1', 'P2']
        >>> optimizer.tell(queries, [query.key.count("T") + (query.get("plate") == "P1") for query in queries])
        >>> optimizer.ask().queries[0].get("plate") in ("P1", "P2", "P3")
        True
    """

    opens_plates = True

    def start(self, space: Space, contexts: Contexts | None = None) -> None:
        """See `MultiFidelity.start`.

        Raises:
            InputError: Also for contexts without an open variable.
        """
        if contexts is None or contexts.open is None:
            raise InputError(
                f"{type(self).__name__} opens plates as it needs them: give the optimiser "
                "contexts=Contexts.of_plates(); for folds, or plates that are all known, take MultiFidelity"
            )
        super().start(space, contexts)

    def scoring(self, n: int, state: SearchState, rng: np.random.Generator) -> Scoring:
        """The acquisition function per cost at every string on every plate there is, and on a fresh one."""
        assert state.contexts is not None  # see `start`
        refused = self.unsupported(state.pending)
        pending = [item for index, item in enumerate(state.pending) if index not in refused]
        queries = [*state.data.queries, *state.known]
        met = dict.fromkeys([query.context for query in queries] + [context_of(item) for item in state.pending])
        return PlateScoring(
            cast("StringSurrogate", self.surrogate),
            cast("OutcomeAcquisition", self.acquisition),
            with_plates(state.contexts, sorted(met)),
            evaluated=list(dict.fromkeys(key_of(item) for item in state.data.measured().items)),
            known=state.known,
            pending=pending,
            batch_size=n + len(pending),
            costs=self.learned_costs(state, rng),
            rng=rng,
        )


class PlateScoring(PerCostScoring):
    """Scores of strings on plates, of which the last is fresh.

    Args:
        surrogate: See `seqopt.scorers.PerCostScoring`.
        acquisition: Likewise.
        contexts: The plates, the fresh one last: see `with_plates`.
        options: See `seqopt.scorers.PerCostScoring`.
    """

    def __init__(
        self, surrogate: StringSurrogate, acquisition: OutcomeAcquisition, contexts: Contexts, **options: Any
    ) -> None:
        super().__init__(surrogate, acquisition, contexts, **options)
        self._old = set(contexts.possible[:-1])

    def grown(self, contexts: Contexts, query: Query) -> Contexts:
        """With another fresh plate, where a query has taken the last one."""
        return with_plates(contexts, ()) if query.context == contexts.possible[-1] else contexts

    def query_scores(
        self,
        posterior: Posterior,
        prepared: PreparedAcquisition,
        queries: Sequence[Query],
        taken: Set[Query],
        costs: FloatArray | None = None,
    ) -> FloatArray:
        """See `seqopt.scorers.PerCostScoring.query_scores`; of equal scores that on a fresh plate is the lower."""
        scores = super().query_scores(posterior, prepared, queries, taken, costs)
        old = self._old | {query.context for query in taken}
        fresh = np.array([query.context not in old for query in queries], dtype=np.bool_) & np.isfinite(scores)
        scores[fresh] -= TIE * np.abs(scores[fresh])
        return scores


def with_plates(contexts: Contexts, met: Iterable[Context]) -> Contexts:
    """Contexts with the plates that were met among those that are known, and a fresh one after all of them.

    Example:
        >>> from seqopt.data import Contexts
        >>> found = with_plates(Contexts.of_plates(known=["A"]), [(("plate", "P1"),)])
        >>> [context[0][1] for context in found.possible]
        ['A', 'P1', 'P2']
    """
    further = [context for context in met if context not in contexts.possible]
    fresh = contexts.fresh(further)
    costs = (*contexts.costs, *(contexts.open_cost for _ in further), contexts.open_cost)
    return replace(contexts, possible=(*contexts.possible, *further, fresh), costs=costs)
