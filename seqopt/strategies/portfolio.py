"""Portfolios: several acquisition functions or strategies nominate strings, and a rule chooses among them."""

from __future__ import annotations

import copy
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, cast

import numpy as np

from seqopt.acquisition import Acquisition, PosteriorMean, RandomAcquisition, resolve_acquisition
from seqopt.acquisition.registry import ACQUISITIONS
from seqopt.data import Contexts, Item, key_of
from seqopt.errors import InputError
from seqopt.models import PoolSurrogate, StringSurrogate, Surrogate
from seqopt.models.classifiers import Classifier, Predictor
from seqopt.scorers import FeasibilityScoring, GaussianScoring, Scoring
from seqopt.scorers.feasibility import Combine
from seqopt.scorers.limits import limited
from seqopt.scorers.portfolio import Chooser, PortfolioScoring
from seqopt.search import PoolSearch, Proposal, RandomSearch, Search
from seqopt.search.protocols import PartsCheckedSearch, SomeSearch
from seqopt.spaces import EvolvableSpace, Space
from seqopt.strategies.failures import COMBINE
from seqopt.strategies.model_based import ModelBased, check_draws
from seqopt.strategies.portfolio_rules import PortfolioRule, Step, resolve_rule
from seqopt.strategies.prefilter import Prefilter
from seqopt.strategies.protocols import (
    CheckedStrategy,
    SearchState,
    Strategy,
    takes_censored,
    takes_yes_no,
)
from seqopt.strategies.random import drawn
from seqopt.utils.config import Configurable, NotConfigurableError

Member: TypeAlias = Acquisition | Strategy | str
"""An acquisition function, its name, or a strategy."""

MEMBERS = ("gibbon", "logei", "ucb", "thompson")
"""The default members."""

SAMPLE, PARENTS, MUTANTS = 500, 10, 40
"""Where a space is no list, the maximum is looked for among so many random strings, and so many mutants of each of so
many evaluated strings of largest posterior mean; besides what is evaluated and what is nominated."""


class Portfolio(ModelBased):
    """Several members nominate a string each, and a rule takes one of them; again for each element of a batch.

    Members that are acquisition functions share one fitted surrogate and one search, so that a step costs one fit. Each
    nominates what it would choose next, given the elements of the batch that were chosen before, whoever nominated
    them. A member that is a strategy is asked for one proposal with these as pending, and fits what it fits by itself.

    A portfolio of one member chooses what this member would, random numbers included. The order of the members makes no
    difference, but to those that are there twice: each draws from a generator of its own.

    Args:
        members: Acquisition functions, their names, or strategies; by default GIBBON, log expected improvement, the
            upper confidence bound and Thompson sampling.
        rule: ``"esp"``, ``"random"``, ``"hedge"``, or a `seqopt.strategies.portfolio_rules.PortfolioRule`.
        surrogate: See `ModelBased`; shared by all.
        search: See `ModelBased`; used by all acquisition functions. A pool, or a list of random strings, is looked at
            by all of them at once; other searches are run once for each of them.
        failures: See `ModelBased`.
        prefilter: See `ModelBased`.

    Raises:
        InputError: Without members, and for parts that are none.

    References:
        Shahriari, B., Wang, Z., Hoffman, M. W., Bouchard-Côté, A., de Freitas, N. (2014). An entropy search portfolio
            for Bayesian optimization. arXiv:1406.4625.

    Example:
        >>> from seqopt import Optimizer
        >>> pool = ["AAAA", "AAAT", "AATT", "ATTT", "TTTT", "TTTA", "TTAA", "TATA"]
        >>> optimizer = Optimizer(pool, strategy=Portfolio(["logei", "ucb"], surrogate="ssk"), initial=3, batch_size=2)
        >>> for _ in range(2):
        ...     strings = optimizer.ask()
        ...     optimizer.tell(strings, [string.count("T") for string in strings])
        >>> len(optimizer.observations)
        5
    """

    def __init__(
        self,
        members: Sequence[Member] = MEMBERS,
        rule: PortfolioRule | str = "esp",
        surrogate: Surrogate | str = "auto",
        search: SomeSearch | str = "auto",
        *,
        failures: Classifier | str | None = "learn",
        prefilter: Prefilter | str | None = "auto",
    ) -> None:
        if isinstance(members, str) or not members:
            raise InputError(
                f"members is {members!r}; expected a list of acquisition functions or strategies, as in "
                "['gibbon', 'logei']"
            )
        self.members: list[Acquisition | Strategy] = [_member(one) for one in members]
        self.rule = resolve_rule(rule)
        trusted = [one for one in self._acquisitions() if not isinstance(one, RandomAcquisition)]
        super().__init__(
            surrogate, trusted[0] if trusted else PosteriorMean(), search, failures=failures, prefilter=prefilter
        )
        # Those that are told of the space begin anew by themselves.
        self._strategies_at_first = [
            None if isinstance(one, CheckedStrategy) else copy.deepcopy(one.state_dict()) for one in self._strategies()
        ]
        self.taken: list[int] = []

    def config_arguments(self) -> dict[str, Any]:
        """See `seqopt.utils.config.Configurable`."""
        found = {name: value for name, value in super().config_arguments().items() if name != "acquisition"}
        return {"members": self.members, "rule": self.rule, **found}

    @property
    def names(self) -> list[str]:
        """What the members are called, in their order; those that are there twice are numbered."""
        names = [one.name if isinstance(one, Acquisition) else type(one).__name__ for one in self.members]
        counts, met = Counter(names), Counter[str]()
        for place, name in enumerate(names):
            met[name] += 1
            if counts[name] > 1:
                names[place] = f"{name} {met[name]}"
        return names

    @property
    def nominated_by(self) -> list[str]:
        """Names of the members that nominated the strings of the last batch, in its order; random ones left out."""
        names = self.names
        return [names[member] for member in self.taken]

    def start(self, space: Space, contexts: Contexts | None = None) -> None:
        """See `ModelBased.start`.

        Raises:
            InputError: Also with contexts, and for members that do not fit the space or the surrogate.
        """
        if contexts is not None:
            raise InputError(
                f"{type(self).__name__} knows one way to measure, and this search has several: take MultiFidelity"
            )
        super().start(space)
        self.rule.reset()
        self.taken = []
        for one in self._acquisitions():
            check_draws(self.surrogate, one)
            if isinstance(self.search, PartsCheckedSearch):
                self.search.check_parts(space, self.surrogate, one)
        if not isinstance(self.surrogate, PoolSurrogate if isinstance(self.search, PoolSearch) else StringSurrogate):
            raise InputError(
                f"{type(self.surrogate).__name__} has no posterior that a portfolio could use: choose another surrogate"
            )
        for member, state in zip(self._strategies(), self._strategies_at_first, strict=True):
            if isinstance(member, CheckedStrategy):
                member.start(space)
            elif state is not None:
                member.load_state_dict(copy.deepcopy(state))

    def unsupported(self, items: Sequence[Item]) -> dict[int, str]:
        """What the surrogate or a member cannot take."""
        found = super().unsupported(items)
        for one in self._strategies():
            found = one.unsupported(items) | found
        return found

    @property
    def takes_noise_variance(self) -> bool:
        """Whether the surrogate and all members do."""
        return super().takes_noise_variance and all(one.takes_noise_variance for one in self._strategies())

    @property
    def takes_censored(self) -> bool:
        """Whether the surrogate and all members do."""
        return super().takes_censored and all(map(takes_censored, self._strategies()))

    @property
    def takes_yes_no(self) -> bool:
        """Whether the surrogate and all members do."""
        return super().takes_yes_no and all(map(takes_yes_no, self._strategies()))

    def state_dict(self) -> dict[str, Any]:
        """Also that of the rule, and of members that are strategies."""
        further = [one.state_dict() for one in self._strategies()]
        return super().state_dict() | {"rule": self.rule.state_dict(), "members": further}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`."""
        super().load_state_dict(state)
        self.rule.load_state_dict(state["rule"])
        for one, known in zip(self._strategies(), state["members"], strict=True):
            one.load_state_dict(known)

    def propose(self, n: int, state: SearchState, rng: np.random.Generator) -> list[Proposal]:
        """See `seqopt.strategies.Strategy`."""
        self.taken = []
        return super().propose(n, state, rng)

    def scoring(self, n: int, state: SearchState, rng: np.random.Generator) -> Scoring:
        """What is taken from a list of candidates; see `seqopt.scorers.portfolio.PortfolioScoring`."""
        return self._scoring(n, state, rng, None)

    def _scoring(
        self, n: int, state: SearchState, rng: np.random.Generator, predictor: Predictor | None
    ) -> PortfolioScoring:
        pending = self._pending(state)
        step = self._step(state, pending)
        self.rule.learn(step)
        generators, last = self._generators(rng)
        members = [(one, own) for one, own in zip(self.members, generators, strict=True)]
        return PortfolioScoring(
            cast("StringSurrogate | PoolSurrogate", self.surrogate),
            [(one, own) for one, own in members if isinstance(one, Acquisition)],
            lambda likely: self._ordered(self.rule.chooser(step, likely, last)),
            others=[self._asked(one, state, own) for one, own in members if not isinstance(one, Acquisition)],
            combines=[self._combine(one) for one in self._acquisitions()],
            predictor=predictor,
            pending=pending,
            batch_size=n + len(pending),
            batch=state.batch,
            noted=lambda place: self.taken.append(self._order()[place]),
        )

    def _searched(
        self, n: int, trusted: int, state: SearchState, rng: np.random.Generator, predictor: Predictor | None
    ) -> list[Proposal]:
        search = cast("Search[Space]", self.search)
        if not isinstance(search, PoolSearch | RandomSearch):
            return self._by_turns(n, trusted, state, rng, predictor)
        scoring: Scoring = self._scoring(n, state, rng, predictor)
        if self.prefilter is not None:
            scoring = self.prefilter.applied(scoring, trusted, self.surrogate, state, rng)
        found = search.propose(trusted, space=state.space, scoring=scoring, excluded=state.excluded, rng=rng)
        return [
            one if isinstance(self.members[member], Acquisition) else replace(one, acquisition=None)
            for one, member in zip(found, self.taken, strict=True)
        ]

    def _by_turns(
        self, n: int, trusted: int, state: SearchState, rng: np.random.Generator, predictor: Predictor | None
    ) -> list[Proposal]:
        """The batch by searches of the members, one after another for each of its elements."""
        pending = self._pending(state)
        step = self._step(state, pending)
        self.rule.learn(step)
        generators, last = self._generators(rng)
        surrogate = cast("StringSurrogate", self.surrogate)
        search = cast("Search[Space]", self.search)
        process = surrogate.conditioned(pending)
        chooser: Chooser | None = None
        chosen: list[Proposal] = []
        while len(chosen) < trusted:
            keys = [one.key for one in chosen]
            nominees: list[Proposal | None] = []
            for member, own in zip(self.members, generators, strict=True):
                if not isinstance(member, Acquisition):
                    asked = _after(state, keys)
                    found = member.propose(1, asked, own)
                    found = [one for one in found if not self.unsupported([one.key])]
                else:
                    scoring = GaussianScoring(
                        surrogate, member, pending=[*pending, *keys], batch_size=n + len(pending), rng=own
                    )
                    scoring.process = process
                    judged: Scoring = scoring
                    if predictor is not None:
                        judged = FeasibilityScoring(scoring, predictor, self._combine(member))
                    # Members only nominate: what they choose joins no batch yet.
                    judged = limited(judged, copy.deepcopy(state.batch))
                    taken = state.excluded | set(keys)
                    found = search.propose(1, space=state.space, scoring=judged, excluded=taken, rng=own)
                nominees.append(found[0] if found else None)
            if all(one is None for one in nominees):
                break
            if len(nominees) == 1:
                place = 0
            else:
                if chooser is None:
                    chooser = self.rule.chooser(
                        step, self._sample(state, process.best_observed_keys(PARENTS), last), last
                    )
                place = chooser.choose([None if one is None else one.key for one in nominees], keys)
            taken_now = nominees[place]
            assert taken_now is not None
            chosen.append(taken_now)
            self.taken.append(place)
            if state.batch is not None:
                state.batch.add(taken_now.key)
            if len(chosen) < trusted:
                process = process.given(taken_now.key)
        return chosen

    def _sample(self, state: SearchState, best: Sequence[str], rng: np.random.Generator) -> list[str]:
        """Strings among which the maximum is looked for, in a space that is no list."""
        space = state.space
        strings = drawn(state, SAMPLE, rng)
        if isinstance(space, EvolvableSpace):
            parents = []
            for key in best:
                try:
                    parents.append(space.from_string(key))
                except InputError:  # it was measured, and lies outside the space
                    continue
            strings += space.to_strings(space.mutate([one for one in parents for _ in range(MUTANTS)], rng))
        return [space.key(string) for string in strings]

    def _asked(
        self, strategy: Strategy, state: SearchState, rng: np.random.Generator
    ) -> Callable[[Sequence[str]], str | None]:
        """What a member that is a strategy nominates, given the keys that were chosen."""

        def nominate(chosen: Sequence[str]) -> str | None:
            found = strategy.propose(1, _after(state, chosen), rng)
            return found[0].key if found else None

        return nominate

    def _step(self, state: SearchState, pending: Sequence[Item]) -> Step:
        evaluated = list(dict.fromkeys(key_of(item) for item in state.data.measured().items))
        return Step(
            cast("StringSurrogate | PoolSurrogate", self.surrogate),
            state.space,
            evaluated,
            [key_of(item) for item in pending],
            len(state.data),
            len(self.members),
        )

    def _pending(self, state: SearchState) -> list[Item]:
        refused = super().unsupported(state.pending)
        return [item for index, item in enumerate(state.pending) if index not in refused]

    def _generators(self, rng: np.random.Generator) -> tuple[list[np.random.Generator], np.random.Generator]:
        """Those of the members, and that of the rule. A single member has the one that it would have alone."""
        if len(self.members) == 1:
            return [rng], rng
        base = int(rng.integers(2**62))
        met = Counter[str]()
        found = []
        for member in self.members:
            name = _described(member)
            digest = hashlib.sha256(f"{met[name]} {name}".encode()).digest()
            met[name] += 1
            found.append(np.random.default_rng([base, int.from_bytes(digest[:8], "big")]))
        return found, np.random.default_rng([base])

    def _order(self) -> list[int]:
        """Places of the members in the order in which they nominate from a list: acquisition functions first."""
        firsts = [place for place, one in enumerate(self.members) if isinstance(one, Acquisition)]
        return firsts + [place for place, one in enumerate(self.members) if not isinstance(one, Acquisition)]

    def _ordered(self, chooser: Chooser) -> Chooser:
        return _Reordered(chooser, self._order())

    def _combine(self, acquisition: Acquisition) -> Combine:
        return COMBINE.get(acquisition.name, "add")

    def _acquisitions(self) -> list[Acquisition]:
        return [one for one in self.members if isinstance(one, Acquisition)]

    def _strategies(self) -> list[Strategy]:
        return [one for one in self.members if not isinstance(one, Acquisition)]


class _Reordered:
    """A chooser whose members nominate in another order than the portfolio has them in.

    Args:
        chooser: Takes nominees in the portfolio's order.
        order: Place in the portfolio of each one that nominates.
    """

    def __init__(self, chooser: Chooser, order: Sequence[int]) -> None:
        self._chooser = chooser
        self._order = order

    def choose(self, nominees: Sequence[str | None], chosen: Sequence[str]) -> int:
        """See `seqopt.scorers.portfolio.Chooser`."""
        sorted_: list[str | None] = [None] * len(nominees)
        for nominee, place in zip(nominees, self._order, strict=True):
            sorted_[place] = nominee
        return list(self._order).index(self._chooser.choose(sorted_, chosen))


def _after(state: SearchState, chosen: Sequence[str]) -> SearchState:
    """Where a search stands when some strings of a batch were chosen; it has a batch of its own to fill."""
    pending = (*state.pending, *chosen)
    return replace(state, pending=pending, excluded=state.excluded | set(chosen), batch=copy.deepcopy(state.batch))


def _member(given: Member) -> Acquisition | Strategy:
    if isinstance(given, type):
        raise InputError(f"{given!r} is a class: give an object, as in {given.__name__}()")
    if isinstance(given, Acquisition | str):
        return resolve_acquisition(given)
    if isinstance(given, Strategy):
        return given
    raise InputError(
        f"{given!r} can be no member of a portfolio: give a strategy, an acquisition function, or one of "
        f"{', '.join(ACQUISITIONS)}"
    )


def _described(member: Acquisition | Strategy) -> str:
    """What tells a member from others: its settings or, where they cannot be written down, its type."""
    if isinstance(member, Configurable):
        try:
            return json.dumps(member.config(), sort_keys=True)
        except NotConfigurableError:
            pass
    return f"{type(member).__module__}.{type(member).__qualname__}"
