"""An initial design first, then another strategy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from seqopt.data import Contexts, Item
from seqopt.models.distances import DistanceSurrogate
from seqopt.search import Proposal
from seqopt.spaces import Space
from seqopt.strategies.designs import Design, designed_proposals, resolve_design
from seqopt.strategies.protocols import CheckedStrategy, SearchState, Strategy
from seqopt.strategies.random import filled_up, random_proposals
from seqopt.utils.config import Configurable


class InitialDesign(Configurable):
    """Proposes random or well-spread strings until there are enough, then what another strategy proposes.

    Args:
        size: Evaluations after which the other strategy takes over.
        then: The other strategy.
        design: A `seqopt.strategies.Design`, or the name of one: ``"random"``, ``"maxmin"``, ``"medoids"``, or
            ``"auto"``: see `seqopt.strategies.resolve_design`. All but random strings need a strategy with a surrogate
            whose kernel says how far apart strings are.
    """

    def __init__(self, size: int, then: Strategy, design: Design | str = "random") -> None:
        self.size = size
        self.then = then
        self.design = design
        self._design: Design | None = None

    def start(self, space: Space, contexts: Contexts | None = None) -> None:
        """See `seqopt.strategies.CheckedStrategy`.

        Raises:
            InputError: For an unknown design, or one that needs distances which the other strategy does not have.
        """
        if isinstance(self.then, CheckedStrategy):
            self.then.start(space, contexts)
        self._design = resolve_design(self.design, space, self._surrogate)

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
        if state.size >= self.size:
            return self.then.propose(n, state, rng)
        surrogate = self._surrogate
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
        """What the other strategy cannot learn from."""
        return self.then.unsupported(items)

    @property
    def takes_noise_variance(self) -> bool:
        """Whether the other strategy does."""
        return self.then.takes_noise_variance

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
