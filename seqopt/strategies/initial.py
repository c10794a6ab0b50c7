"""An initial design first, then another strategy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np

from seqopt.data import Context, Contexts, Item, Query, key_of
from seqopt.errors import InputError
from seqopt.models.distances import DistanceSurrogate
from seqopt.search import Proposal
from seqopt.spaces import PoolSpace, Space
from seqopt.strategies.designs import Design, designed_proposals, resolve_design
from seqopt.strategies.near import near_proposals, neighbourhood_of
from seqopt.strategies.protocols import (
    ROUNDING,
    CheckedStrategy,
    SearchState,
    Strategy,
    takes_censored,
    takes_yes_no,
    unlearnable,
)
from seqopt.strategies.random import filled_up, random_proposals
from seqopt.utils.config import Configurable

Beginning: TypeAlias = Literal["target", "all", "cheap"]
"""How strings of an initial design are measured: as the target, in all ways, or in those that cost less."""


def usual_beginning(contexts: Contexts | None) -> Beginning:
    """How the strings of an initial design are measured where nobody says it, in searches and in campaigns.

    Where one of several ways is the target and another costs less, cheaply: a small screen comes first, and what it
    shows chooses the first strings that are measured as the target. Where none costs less, in all ways. Else there is
    one way, or there are plates or folds, which take turns.

    Example:
        >>> usual_beginning(Contexts.of_levels("fidelity", {"docking": 0.01, "assay": 1.0}, target="assay"))
        'cheap'
        >>> usual_beginning(Contexts.of_levels("assay", {"2019": 1.0, "2020": 1.0}, target="2020"))
        'all'
        >>> usual_beginning(Contexts.of_plates()), usual_beginning(None)
        ('target', 'target')
    """
    if contexts is None or contexts.latent:
        return "target"
    return "cheap" if _cheaper(contexts) else "all"


def _cheaper(contexts: Contexts) -> list[Context]:
    """The ways that cost less than the target."""
    most = contexts.cost(Query("any", contexts.target))
    return [way for way in contexts.possible if contexts.cost(Query("any", way)) < most]


def ways_of(beginning: Beginning, contexts: Contexts) -> list[Context]:
    """In which contexts each string of an initial design is measured, the target first.

    Example:
        >>> contexts = Contexts.of_levels("fidelity", {"docking": 0.01, "assay": 1.0}, target="assay")
        >>> ways_of("all", contexts)
        [(('fidelity', 'assay'),), (('fidelity', 'docking'),)]
        >>> ways_of("cheap", contexts)
        [(('fidelity', 'docking'),)]
    """
    target = contexts.beginning(0)
    if beginning == "target":
        return [target]
    ordered = sorted(contexts.possible, key=lambda way: way != target)
    others = [] if beginning == "all" else _cheaper(contexts) or [way for way in ordered if way != target]
    return others or ordered


def _leaving_a_target(screen: list[Proposal], state: SearchState) -> list[Proposal]:
    """As much of a screen as leaves what a measurement of the target costs: it alone would answer nothing."""
    contexts = state.contexts
    if contexts is None or state.remaining is None:
        return screen
    left = state.remaining - contexts.cost(Query("any", contexts.target))
    spent = np.cumsum([contexts.cost(one.query) for one in screen])
    return screen[: int(np.searchsorted(spent, left * (1 + ROUNDING), side="right"))]


FEWEST = 2
"""Values from which a model can learn; a screen goes on until it has brought so many."""


class InitialDesign(Configurable):
    """Proposes random or well-spread strings until there are enough, then what another strategy proposes.

    Where the model of that strategy has a lead (`seqopt.strategies.Near`), random ones are those within its radius.

    Strings that its user has asked for come first of all, also where enough is known already.

    Args:
        size: Evaluations after which the other strategy takes over.
        then: The other strategy.
        design: A `seqopt.strategies.Design`, or the name of one: ``"random"``, ``"maxmin"``, ``"medoids"``, or
            ``"auto"``: see `seqopt.strategies.resolve_design`. All but random strings need a strategy with a surrogate
            whose kernel says how far apart strings are.
        include: Strings of the space that are proposed first, such as reference compounds; those that are known or
            excluded already are not.
        beginning: Whether each string of the design is measured as its ``"target"``, in ``"all"`` the ways that there
            are, so that a model sees how much they have in common, or in those that cost less than the target
            (``"cheap"``; in all but the target where none does). Where fewer than two cheap measurements have a value,
            since the others failed, the screen goes on.
    """

    def __init__(
        self,
        size: int,
        then: Strategy,
        design: Design | str = "random",
        include: Sequence[str] = (),
        beginning: Beginning = "target",
    ) -> None:
        self.size = size
        self.then = then
        self.design = design
        self.include = tuple(include)
        self.beginning: Beginning = beginning
        self._design: Design | None = None

    def start(self, space: Space, contexts: Contexts | None = None) -> None:
        """See `seqopt.strategies.CheckedStrategy`.

        Raises:
            InputError: For an unknown design, or one that needs distances which the other strategy does not have; for
                strings to include that are not in the space, or that the other strategy cannot learn from.
        """
        if isinstance(self.then, CheckedStrategy):
            self.then.start(space, contexts)
        self._design = resolve_design(self.design, space, self._surrogate)
        if self._design is not None and self._surrogate is not None:
            # What has no distances says so now, not when the first strings are asked for.
            some = space.sample(2, np.random.default_rng(0))
            self._surrogate.prior_distances([space.key(string) for string in some])
        for string in self.include:
            if not space.contains(string):
                raise InputError(
                    f"{string!r} is to be included in the first batch, and is not among the candidates: add it to "
                    "them, or leave it out"
                )
        for message in self.then.unsupported([space.key(string) for string in self.include]).values():
            raise InputError(f"a string to be included in the first batch cannot be used: {message}")

    @property
    def _surrogate(self) -> DistanceSurrogate | None:
        """What says how far apart strings are, if there is one."""
        found = getattr(self.then, "surrogate", None)
        return found if isinstance(found, DistanceSurrogate) and not isinstance(found, type) else None

    @property
    def design_name(self) -> str:
        """What the design is called."""
        return "random" if self._design is None else self._design.name

    def propose(self, n: int, state: SearchState, rng: np.random.Generator) -> list[Proposal]:
        """See `seqopt.strategies.Strategy`."""
        included = self._included(n, state)
        if not included:
            return self._chosen(n, state, rng)
        # What is chosen beside them is chosen as if they were awaited already.
        keys = [proposal.key for proposal in included]
        queries = [proposal.query if proposal.context else proposal.key for proposal in included]
        given = replace(
            state.after(included),
            pending=(*state.pending, *queries),
            excluded=state.excluded | set(keys),
            known=state.known | {proposal.query for proposal in included},
        )
        for key in keys:
            if state.batch is not None:
                state.batch.add(key)
        left = n - len(included)
        return [*included, *(self._chosen(left, given, rng) if left else [])]

    def _included(self, n: int, state: SearchState) -> list[Proposal]:
        """At most ``n`` of the strings that were asked for and are not known yet."""
        if not self.include:
            return []
        pool = state.space if isinstance(state.space, PoolSpace) else None
        known = {query.key for query in state.data.queries} | {key_of(item) for item in state.pending}
        found: dict[str, Proposal] = {}
        for string in self.include:
            key = state.space.key(string)
            # Filters may have been changed since the search began.
            if key in known or key in state.excluded or not state.space.contains(string):
                continue
            index = None if pool is None else pool.index_of(key)
            written = string if pool is None or index is None else pool[index]
            found.setdefault(key, Proposal(written, key, state.beginning(len(found)), why="included"))
        return list(found.values())[:n]

    def _chosen(self, n: int, state: SearchState, rng: np.random.Generator) -> list[Proposal]:
        """What nobody has asked for."""
        # A strategy that knows something from the start needs no random strings.
        begun = state.size >= self.size and not self._screen_failed(state)
        if begun or getattr(self.then, "begins_itself", False):
            return self.then.propose(n, state, rng)
        # Where one way is free, or all of a batch has to be measured in the same way, there is no choice.
        if self.beginning == "target" or state.contexts is None or state.only is not None or state.shared:
            return self._designed(n, state, rng)
        # The target comes first, so that what is cut off is not what is searched for.
        closed: Set[Context] = getattr(self.then, "closed", frozenset())
        ways = [way for way in ways_of(self.beginning, state.contexts) if way not in closed]
        if not ways:
            return self._designed(n, state, rng)
        # Of what is known in all of these ways already there is nothing to measure.
        measured = Counter(query.key for query in state.known if query.context in ways)
        done = {key for key, number in measured.items() if number == len(ways)}
        strings = self._designed(-(-n // len(ways)), replace(state, excluded=state.excluded | done), rng)
        found = [replace(one, context=way) for one in strings for way in ways]
        found = [one for one in found if one.query not in state.known][:n]
        if self.beginning == "cheap":
            found = _leaving_a_target(found, state)
        return found or self._designed(n, state, rng)

    def _screen_failed(self, state: SearchState) -> bool:
        """Whether cheap measurements were to show which targets are worth their cost, and have shown nothing."""
        if self.beginning != "cheap" or state.contexts is None or state.pending:
            return False
        return len(state.data.measured().items) < FEWEST

    def _designed(self, n: int, state: SearchState, rng: np.random.Generator) -> list[Proposal]:
        """Random or well-spread strings."""
        state = state.payable(closed=getattr(self.then, "closed", frozenset()))
        surrogate = self._surrogate
        near = neighbourhood_of(self.then)
        if self._design is None and near is not None:
            return near_proposals(n, state, rng, near, unsupported=self.then.unsupported)
        if self._design is None or surrogate is None:
            return random_proposals(n, state, rng, unsupported=self.then.unsupported)
        chosen = designed_proposals(
            n,
            state,
            rng,
            design=self._design,
            distances=surrogate.prior_distances,
            unsupported=self.then.unsupported,
        )
        return filled_up(chosen, n, state, rng, unsupported=self.then.unsupported)

    def recommend(self, state: SearchState, rng: np.random.Generator) -> str:
        """What the other strategy recommends."""
        return self.then.recommend(state, rng)

    def unsupported(self, items: Sequence[Item]) -> dict[int, str]:
        """What the other strategy can neither propose nor learn from."""
        return self.then.unsupported(items)

    def unlearnable(self, items: Sequence[Item]) -> dict[int, str]:
        """What the other strategy cannot learn from."""
        return unlearnable(self.then, items)

    @property
    def takes_noise_variance(self) -> bool:
        """Whether the other strategy does."""
        return self.then.takes_noise_variance

    @property
    def takes_censored(self) -> bool:
        """Whether the other strategy does."""
        return takes_censored(self.then)

    @property
    def takes_yes_no(self) -> bool:
        """Whether the other strategy does."""
        return takes_yes_no(self.then)

    @property
    def hyperparameters(self) -> dict[str, float]:
        """Those of the other strategy."""
        return self.then.hyperparameters

    def state_dict(self) -> dict[str, Any]:
        """That of the other strategy."""
        return self.then.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`."""
        self.then.load_state_dict(state)
