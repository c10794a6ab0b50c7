"""What a strategy sees, and what it offers."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from seqopt.data import Context, Contexts, Data, Item, Query
from seqopt.scorers.limits import OpenBatch
from seqopt.search import Proposal
from seqopt.spaces import Space


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

    @property
    def size(self) -> int:
        """Strings asked for or told so far, failed, pending and withdrawn ones included."""
        return len(self.data) + len(self.pending) + self.withdrawn

    @property
    def met(self) -> Set[str]:
        """Keys that are not drawn at random while there are others.

        Where the target cannot be measured, a string that was measured may be of further use, but new ones teach more.
        """
        latent = self.contexts is not None and self.contexts.latent
        return self.excluded | {query.key for query in self.known} if latent else self.excluded

    def beginning(self, place: int) -> Context:
        """How a string that nothing has chosen is measured: see `seqopt.data.Contexts.beginning`.

        Args:
            place: Which one of a batch it is.
        """
        return () if self.contexts is None else self.contexts.beginning(self.size + place)


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
        """Why it cannot learn from some queries, by their indices; empty where it can from all."""
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
class CheckedStrategy(Strategy, Protocol):
    """A strategy that does not go with every space."""

    def start(self, space: Space, contexts: Contexts | None = None) -> None:
        """Called once, before anything is evaluated: prepare for a space, or refuse it.

        Raises:
            InputError: If parts do not fit each other or the space; the message names both.
        """
        ...
