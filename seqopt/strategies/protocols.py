"""What a strategy sees, and what it offers."""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from seqopt.data import Context, Contexts, Data, Item, Query, Room
from seqopt.scorers.limits import OpenBatch
from seqopt.search import Proposal
from seqopt.spaces import Space

ROUNDING = 1e-9
"""Share of what is left to be spent that a cost may exceed it by: sums of costs are rounded."""


@dataclass(frozen=True, eq=False)
class SearchState:
    """Where a search stands when it decides what is evaluated next.

    Attributes:
        space: Where it searches.
        data: Everything measured or failed.
        pending: Queries whose results are awaited: plain strings where there is only one way to measure.
        excluded: Keys that must not be proposed in any context.
        known: Queries that must not be proposed again: those measured, failed or pending.
        number: Batches asked for so far, the initial design not counted.
        contexts: The ways in which strings can be measured; `None` where there is only one.
        remaining: Evaluations that may still be asked for, or the cost that may still be spent where there are
            contexts; `None` where nobody has said.
        withdrawn: How many suggestions were withdrawn.
        batch: The batch that is to be filled, where strings of one batch must not be too much alike: it says what may
            still join it, and is told what does.
        only: The one context in which anything can be measured now; `None` where all are free.
        shared: Whether all that is proposed has to be measured in one and the same context.
        room: How many measurements fit into contexts, where they are of a limited size; `None` where they are not.
    """

    space: Space
    data: Data
    pending: tuple[Item, ...] = ()
    excluded: Set[str] = frozenset()
    known: Set[Query] = frozenset()
    number: int = 0
    contexts: Contexts | None = None
    remaining: float | None = None
    withdrawn: int = 0
    batch: OpenBatch | None = None
    only: Context | None = None
    shared: bool = False
    room: Room | None = None

    @property
    def size(self) -> int:
        """Strings asked for or told so far, failed, pending and withdrawn ones included."""
        return len(self.data) + len(self.pending) + self.withdrawn

    @property
    def met(self) -> Set[str]:
        """Keys that are not drawn at random while there are others.

        Where the target cannot be measured, a string that was measured may be of further use, but new ones teach more.
        Else they are also those of which the target cannot be measured.
        """
        if self.contexts is None:
            return self.excluded
        latent, target = self.contexts.latent, self.contexts.target
        return self.excluded | {query.key for query in self.known if latent or query.context == target}

    def after(self, proposals: Sequence[Proposal]) -> SearchState:
        """Where further proposals of the same batch are measured, after some were chosen."""
        if self.contexts is None or not proposals:
            return self
        room = None if self.room is None else self.room.after(proposal.query for proposal in proposals)
        only = proposals[0].context if self.shared and self.only is None and proposals[0].context else self.only
        return replace(self, room=room, only=only)

    def payable(self, chosen: Sequence[Proposal] = (), closed: Set[Context] = frozenset()) -> SearchState:
        """The state in which what nothing has chosen is measured in a way that can be paid for.

        That is the target or, where it cannot be paid for any more or is closed, the dearest way that can.

        Args:
            chosen: Proposals of the batch, which are paid for before.
            closed: Contexts in which nothing is measured any more.
        """
        contexts = self.contexts
        if contexts is None or contexts.latent or self.only is not None:
            return self
        free = [way for way in contexts.possible if way not in closed]
        costs = dict(zip(contexts.possible, contexts.costs, strict=True))
        if self.remaining is not None:
            left = self.remaining - sum(costs[one.context or contexts.target] for one in chosen)
            free = [way for way in free if paid_by(left, costs[way])]
        if contexts.target in free or not free:
            return self
        return replace(self, only=max(free, key=lambda way: costs[way]))

    def beginning(self, place: int) -> Context:
        """How a string that nothing has chosen is measured: see `seqopt.data.Contexts.beginning`.

        Args:
            place: Which one of a batch it is.
        """
        if self.only is not None:
            return self.only
        if self.contexts is None:
            return ()
        if self.room is not None:
            found = self.room.at(place, self.contexts.fresh)
            if found is not None:
                return found
        return self.contexts.beginning(self.size + place)


def paid_by(money: float, cost: float) -> int:
    """How many measurements an amount pays for.

    Example:
        >>> paid_by(0.3, 0.1), paid_by(0.5, 1.0), paid_by(-0.1, 1.0)
        (3, 0, 0)
    """
    return max(math.floor(money * (1 + ROUNDING) / cost), 0)


@runtime_checkable
class Strategy(Protocol):
    """Decides what is evaluated next, and which string is the answer."""

    def propose(self, n: int, state: SearchState, rng: np.random.Generator) -> list[Proposal]:
        """Up to ``n`` distinct proposals that ``state`` does not exclude.

        Args:
            n: How many are wanted.
            state: Where the search stands.
            rng: The only source of randomness.
        """
        ...

    def recommend(self, state: SearchState, rng: np.random.Generator) -> str:
        """The key of the string that is the answer, after what is known; nothing is changed by asking.

        Raises:
            ModelError: If too little is known.
        """
        ...

    def unsupported(self, items: Sequence[Item]) -> dict[int, str]:
        """Why it cannot propose, or learn from, some queries, by their indices; empty where it can all."""
        ...

    @property
    def takes_noise_variance(self) -> bool:
        """Whether it learns from known variances of noise."""
        ...

    @property
    def hyperparameters(self) -> dict[str, float]:
        """Parameters of the model that made the last proposals; empty before there was one."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Everything that later proposals depend on besides the state of the search, as JSON values."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        ...


@runtime_checkable
class CensoredStrategy(Strategy, Protocol):
    """A strategy that learns from values of which only a limit is known."""

    @property
    def takes_censored(self) -> bool:
        """Whether it does, with the parts that it has."""
        ...


def takes_censored(strategy: Strategy) -> bool:
    """Whether a strategy learns from limits: a `CensoredStrategy` that says so."""
    return isinstance(strategy, CensoredStrategy) and strategy.takes_censored


@runtime_checkable
class YesNoStrategy(Strategy, Protocol):
    """A strategy that learns from results that are yes or no, as what they are."""

    @property
    def takes_yes_no(self) -> bool:
        """Whether it does, with the parts that it has."""
        ...


def takes_yes_no(strategy: Strategy) -> bool:
    """Whether a strategy learns from yes and no: a `YesNoStrategy` that says so."""
    return isinstance(strategy, YesNoStrategy) and strategy.takes_yes_no


@runtime_checkable
class AdaptingStrategy(Strategy, Protocol):
    """A strategy that can learn from strings which it could not propose as it stands."""

    def unlearnable(self, items: Sequence[Item]) -> dict[int, str]:
        """Why it cannot learn from some queries, by their indices; empty where it can from all."""
        ...


def unlearnable(strategy: Strategy, items: Sequence[Item]) -> dict[int, str]:
    """Why a strategy cannot learn from some queries, by their indices; empty where it can from all."""
    if isinstance(strategy, AdaptingStrategy):
        return strategy.unlearnable(items)
    return strategy.unsupported(items)


@runtime_checkable
class CheckedStrategy(Strategy, Protocol):
    """A strategy that does not go with every space."""

    def start(self, space: Space, contexts: Contexts | None = None) -> None:
        """Called once, before anything is evaluated: prepare for a space, or refuse it.

        Raises:
            InputError: If parts do not fit each other or the space; the message names both.
        """
        ...
