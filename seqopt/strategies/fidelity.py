"""Searches that choose how a string is measured: cheaply and roughly, or as its target."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, cast

import numpy as np

from seqopt.acquisition import OutcomeAcquisition
from seqopt.data import Context, Contexts, Query, context_of, key_of
from seqopt.errors import InputError
from seqopt.models import (
    GaussianSurrogate,
    MeasurementSurrogate,
    StringSurrogate,
    Surrogate,
    in_units_of,
    measurement_std,
)
from seqopt.models.conditioned import GaussianProcess
from seqopt.models.contexts import default_contexts
from seqopt.scorers import Scoring
from seqopt.scorers.costs import FEWEST, Costs, LearnedCosts, StatedCosts, paid_rows
from seqopt.scorers.per_cost import PerCostScoring
from seqopt.search import Proposal
from seqopt.search.protocols import PartsCheckedSearch, SomeSearch
from seqopt.spaces import PoolSpace, Space
from seqopt.strategies.model_based import ModelBased, SpaceBound, check_contexts
from seqopt.strategies.protocols import SearchState, paid_by

LEAST_TARGETS = 2
"""Results of targets, known or awaited, without which nobody can say how much other measurements tell of them: until
there are so many, a batch begins with targets, as far as any can be measured and paid for."""


class MultiFidelity(ModelBased):
    """Chooses strings, and the context in which each is measured, by information per cost.

    By default the model is a Gaussian process over (string, level) with the covariance k(s, t) B(i, j) of intrinsic
    coregionalisation: k is the kernel of the space, and B, the covariances of the levels, is learned
    (`seqopt.models.contexts.coregionalized`). Each level has a unit, a mean and a noise of its own. Other models are in
    `seqopt.models.contexts`.

    A string that was measured as its target is not proposed again, in any context; nor is one whose evaluation failed.

    Args:
        surrogate: A surrogate of queries (`seqopt.data.Query`), where a plain string stands for its target. By default
            as said above, which needs contexts that differ in one thing.
        acquisition: ``"gibbon"``; ``"mumbo"``, the exact value of a single measurement, at some hundred times the
            cost of computing; ``"mes"``, which scores the target whatever is measured, and so has every string measured
            as its target; or an object that says which it is (`seqopt.acquisition.OutcomeAcquisition`).
        search: See `ModelBased`.
        costs: ``"stated"``, what the contexts say; ``"learned"``, from what is told of costs (``tell(...,
            costs=[...])``): a Gaussian process like the default surrogate on the logarithm of what was paid as a
            multiple of what is stated; or such a model, a surrogate of queries. Until two costs have been told, those
            stated are used. See `seqopt.scorers.costs.LearnedCosts`.

    Raises:
        InputError: For another acquisition function, or other costs.

    Example:
        >>> from seqopt import Optimizer
        >>> from seqopt.data import Contexts
        >>> contexts = Contexts.of_levels("fidelity", {"docking": 0.01, "assay": 1.0}, target="assay")
        >>> pool = ["AAAA", "AAAT", "AATT", "ATTT", "TTTT", "TTTA", "TTAA", "TATA"]
        >>> optimizer = Optimizer(pool, strategy=MultiFidelity(), contexts=contexts, initial=3)
        >>> strings = optimizer.ask()
        >>> optimizer.tell(strings.queries, [string.count("T") for string in strings])
        >>> optimizer.ask().queries[0].get("fidelity") in ("docking", "assay")
        True
    """

    chooses_contexts = True
    shortens = False

    closed: frozenset[Context] = frozenset()
    """Contexts in which nothing is measured any more."""

    opens_plates = False
    """Whether it makes up further values of an open variable."""

    def __init__(
        self,
        surrogate: Surrogate | None = None,
        acquisition: OutcomeAcquisition | str = "gibbon",
        search: SomeSearch | str = "auto",
        costs: Surrogate | str = "stated",
    ) -> None:
        if isinstance(surrogate, str):
            raise InputError(f"the surrogate {surrogate!r} knows nothing of contexts: give an object, or none")
        super().__init__("auto" if surrogate is None else surrogate, acquisition, search)
        self._default: GaussianSurrogate | None = None
        if not isinstance(self.acquisition, OutcomeAcquisition):
            raise InputError(
                f"the acquisition function {self.acquisition.name!r} scores a target, whatever is measured, so the "
                "cheapest context would always win: choose gibbon or mumbo, or mes to measure targets only"
            )
        if isinstance(costs, str) and costs not in ("stated", "learned"):
            raise InputError(f"costs is {costs!r}; expected 'stated', 'learned' or a surrogate of queries")
        if not isinstance(costs, str) and (isinstance(costs, type) or not isinstance(costs, StringSurrogate)):
            raise InputError(f"costs is {costs!r}; expected 'stated', 'learned' or a surrogate of queries")
        self.costs = costs
        self._cost_model: Surrogate | None = None
        self._costs_at_first: dict[str, Any] | None = None

    def config_arguments(self) -> dict[str, Any]:
        """See `seqopt.utils.config.Configurable`."""
        surrogate, search = self._given
        chosen = None if isinstance(surrogate, str) else surrogate
        found = {"surrogate": chosen, "acquisition": self.acquisition, "search": search}
        return found if self.costs == "stated" else found | {"costs": self.costs}

    def start(self, space: Space, contexts: Contexts | None = None) -> None:
        """See `ModelBased.start`.

        Raises:
            InputError: Also without contexts, for a surrogate that does not take them, a search that follows
                gradients, or an acquisition function of targets where these cannot be measured.
        """
        if contexts is None:
            raise InputError(
                f"{type(self).__name__} chooses among ways to measure: give the optimiser contexts=, such as "
                "Contexts.of_levels('fidelity', {'docking': 0.01, 'assay': 1.0}, target='assay')"
            )
        if contexts.open is not None and not self.opens_plates:
            raise InputError(
                f"{type(self).__name__} chooses among the ways to measure that are known, and {contexts.open} is open: "
                "take seqopt.strategies.PlateSearch()"
            )
        if contexts.latent and not cast("OutcomeAcquisition", self.acquisition).sees_outcomes:
            raise InputError(
                f"the acquisition function {self.acquisition.name!r} has targets measured, and the target of these "
                "contexts cannot be: choose gibbon or mumbo"
            )
        self._default = self._own_model(space, contexts) if isinstance(self._given[0], str) else None
        super().start(space, contexts)
        name = type(self.surrogate).__name__
        if isinstance(self.search, PartsCheckedSearch) or not isinstance(self.surrogate, StringSurrogate):
            raise InputError(f"{type(self.search).__name__} and {name} do not go with {type(self).__name__}")
        self._start_costs(space, contexts)

    def _own_model(self, space: Space, contexts: Contexts) -> GaussianSurrogate:
        """The surrogate where none was given."""
        return default_contexts(space, contexts)

    def _start_costs(self, space: Space, contexts: Contexts) -> None:
        if isinstance(self.costs, str):
            self._cost_model = None
            if self.costs == "learned":
                self._cost_model = cast("Surrogate", default_contexts(space, contexts))
        else:
            self._costs_at_first = self._costs_at_first or copy.deepcopy(self.costs.state_dict())
            self.costs.load_state_dict(copy.deepcopy(self._costs_at_first))
            self._cost_model = self.costs
        if self._cost_model is None:
            return
        if isinstance(self._cost_model, SpaceBound):
            self._cost_model.bind(space)
        check_contexts(self._cost_model, space, contexts)

    def state_dict(self) -> dict[str, Any]:
        """See `ModelBased.state_dict`; with that of the model of costs, where there is one."""
        costs = {} if self._cost_model is None else {"costs": self._cost_model.state_dict()}
        return super().state_dict() | costs

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`."""
        super().load_state_dict(state)
        if self._cost_model is not None and "costs" in state:
            self._cost_model.load_state_dict(state["costs"])

    def _begin_anew(self) -> None:
        super()._begin_anew()
        if self._default is not None:
            self._surrogate = cast("Surrogate", self._default)

    def propose(self, n: int, state: SearchState, rng: np.random.Generator) -> list[Proposal]:
        """See `ModelBased.propose`; what is predicted of a string is predicted of it as it is to be measured."""
        proposals = super().propose(n, state, rng)
        assert state.contexts is not None  # see `start`
        target = state.contexts.target
        if not (state.contexts.latent or _targets(state, awaited=False)):
            # Where values of the target lie is not known at all.
            proposals = [
                replace(one, predicted_mean=None, predicted_std=None, measurement_std=None)
                if one.context in ((), target)
                else one
                for one in proposals
            ]
        surrogate = cast("StringSurrogate", self.surrogate)
        proposals = _as_predicted(proposals, surrogate, target)
        others = [one for one in proposals if one.predicted_mean is not None and one.context not in ((), target)]
        if not others:
            return proposals
        queries = [one.query for one in others]
        process = surrogate.conditioned()
        found = process.at(queries).moments
        # Of a mixture, where parameters are averaged over.
        mean, spread = found.outcome_mean.mean(0), found.outcome_mean.var(0, unbiased=False)
        variance = found.outcome_variance.mean(0) + spread
        # What the residual of an outcome given its target holds besides noise is no noise.
        noise = process.state.noise_at(queries).mean(0) if isinstance(process, GaussianProcess) else 0.0
        means, stds = in_units_of(surrogate, queries, mean.numpy(), variance.numpy())
        _, exact = in_units_of(surrogate, queries, mean.numpy(), (variance - noise).clamp_min(0.0).numpy())
        if isinstance(surrogate, MeasurementSurrogate):
            # That parameters are uncertain counts, as it does of the target.
            stds = np.maximum(surrogate.measurement_std(cast("Sequence[str]", queries)), stds)
        told = {
            one.query: replace(
                one,
                predicted_mean=float(mean),
                predicted_std=float(without),
                measurement_std=float(std),
            )
            for one, mean, std, without in zip(others, means, stds, exact, strict=True)
        }
        return [told.get(one.query, one) for one in proposals]

    def learned_costs(self, state: SearchState, rng: np.random.Generator) -> Costs:
        """What measurements cost, as far as is known now: see ``costs``."""
        assert state.contexts is not None  # see `start`
        if self._cost_model is None or len(paid_rows(state.data)) < FEWEST:
            return StatedCosts(state.contexts)
        return LearnedCosts(self._cost_model, state.contexts, state.data, rng)

    def _targets_first(self, state: SearchState) -> int:
        """With how many targets a batch begins: those that are lacking, as far as they can be measured."""
        contexts = state.contexts
        assert contexts is not None  # see `start`
        if contexts.latent or contexts.target in self.closed:
            return 0
        lacking = max(LEAST_TARGETS - _targets(state), 0)
        if lacking and state.remaining is not None:
            lacking = min(lacking, paid_by(state.remaining, contexts.cost(Query("any", contexts.target))))
        if lacking and isinstance(state.space, PoolSpace):
            keys, known = state.space.keys, state.known
            left = (key for key in keys if key not in state.excluded and Query(key, contexts.target) not in known)
            lacking = sum(1 for _ in islice(left, lacking))
        return lacking

    def _for_random(self, state: SearchState, chosen: Sequence[Proposal]) -> SearchState:
        """See `ModelBased._for_random`: targets or, where these cannot be measured or paid for, what comes next."""
        return state.payable(chosen, self.closed)

    def _offered(self, contexts: Contexts) -> Contexts:
        """Contexts in which something may still be measured: of others, nothing is worked out."""
        if not self.closed & set(contexts.possible):
            return contexts
        offered = zip(contexts.possible, contexts.costs, strict=True)
        # The target is what scores are about, also where it is closed itself.
        left = [(one, cost) for one, cost in offered if one not in self.closed or one == contexts.target]
        possible, costs = tuple(context for context, _ in left), tuple(cost for _, cost in left)
        return replace(contexts, possible=possible, costs=costs)

    def scoring(self, n: int, state: SearchState, rng: np.random.Generator) -> Scoring:
        """The acquisition function per cost at every string in every context."""
        assert state.contexts is not None  # see `start`
        refused = self.unsupported(state.pending)
        pending = [item for index, item in enumerate(state.pending) if index not in refused]
        evaluated = dict.fromkeys(key_of(item) for item in state.data.measured().items)
        return PerCostScoring(
            cast("StringSurrogate", self.surrogate),
            cast("OutcomeAcquisition", self.acquisition),
            self._offered(state.contexts),
            evaluated=list(evaluated),
            known=state.known,
            pending=pending,
            batch_size=n + len(pending),
            costs=self.learned_costs(state, rng),
            rng=rng,
            only=state.only,
            closed=self.closed,
            shared=state.shared,
            remaining=state.remaining,
            first=self._targets_first(state),
            room=state.room,
        )


def _as_predicted(proposals: Sequence[Proposal], surrogate: StringSurrogate, target: Context) -> list[Proposal]:
    """Proposals, of which those of targets have the spread of a measurement that `Optimizer.predictions` states."""
    found = list(proposals)
    places = [place for place, one in enumerate(found) if one.predicted_std is not None and one.context in ((), target)]
    if not places:
        return found
    known = [found[place].predicted_std or 0.0 for place in places]
    stds = measurement_std(surrogate, [found[place].key for place in places], known)
    for place, std in zip(places, stds.tolist(), strict=True):
        found[place] = replace(found[place], measurement_std=max(std, found[place].predicted_std or 0.0))
    return found


def _targets(state: SearchState, *, awaited: bool = True) -> int:
    """How many targets are known, or awaited."""
    assert state.contexts is not None
    target = state.contexts.target
    items = (*state.data.measured().items, *(state.pending if awaited else ()))
    return sum(context_of(item) in ((), target) for item in items)
