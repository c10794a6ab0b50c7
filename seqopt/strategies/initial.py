"""Random strings first, then another strategy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from seqopt.data import Contexts, Item
from seqopt.search import Proposal
from seqopt.spaces import Space
from seqopt.strategies.protocols import CheckedStrategy, SearchState, Strategy, takes_censored
from seqopt.strategies.random import random_proposals
from seqopt.utils.config import Configurable


class InitialDesign(Configurable):
    """Proposes random strings until there are enough, then what another strategy proposes.

    Args:
        size: Evaluations after which the other strategy takes over.
        then: The other strategy.
    """

    def __init__(self, size: int, then: Strategy) -> None:
        self.size = size
        self.then = then

    def start(self, space: Space, contexts: Contexts | None = None) -> None:
        """See `seqopt.strategies.CheckedStrategy`."""
        if isinstance(self.then, CheckedStrategy):
            self.then.start(space, contexts)

    def propose(self, n: int, state: SearchState, rng: np.random.Generator) -> list[Proposal]:
        """See `seqopt.strategies.Strategy`."""
        if state.size < self.size:
            return random_proposals(n, state, rng, unsupported=self.then.unsupported)
        return self.then.propose(n, state, rng)

    def recommend(self, state: SearchState, rng: np.random.Generator) -> str:
        """What the other strategy recommends."""
        return self.then.recommend(state, rng)

    def unsupported(self, items: Sequence[Item]) -> dict[int, str]:
        """What the other strategy cannot learn from."""
        return self.then.unsupported(items)

    @property
    def takes_noise_variance(self) -> bool:
        """Whether the other strategy does."""
        return self.then.takes_noise_variance

    @property
    def takes_censored(self) -> bool:
        """Whether the other strategy does."""
        return takes_censored(self.then)

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
