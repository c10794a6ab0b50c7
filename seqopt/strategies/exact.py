"""The best genes of a protein, one after another, where they can be known without measuring any."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from seqopt.data import Contexts
from seqopt.errors import InputError
from seqopt.evaluation import Direction
from seqopt.objectives import by_code, exact_score, resolve_objective
from seqopt.search import Proposal
from seqopt.spaces import CodonSpace, ExactGenes, ExactRanking, Space
from seqopt.strategies.protocols import SearchState
from seqopt.strategies.random import RandomStrategy


class ExactStrategy(RandomStrategy):
    """Proposes genes in the order of an objective that is a sum over codons, the best of all first.

    Nothing is learned from values: the first proposal is the optimum, the second the next best gene, and so on.

    Args:
        objective: What `seqopt.objectives.resolve_objective` takes; a `seqopt.objectives.CodonAdditive`.
        direction: ``"maximize"`` or ``"minimize"``; `None` for what is usual.

    Raises:
        InputError: For an unknown objective or direction. When a search starts: for a space that is not one of genes,
            or an objective without an exact optimum there.
    """

    begins_itself = True

    def __init__(self, objective: str, direction: Direction | None = None) -> None:
        self.objective = objective
        self._resolved = resolve_objective(objective)
        if direction not in ("maximize", "minimize", None):
            raise InputError(f"the direction is {direction!r}; expected 'maximize' or 'minimize'")
        self.direction: Direction = direction or self._resolved.direction
        self._exact: tuple[CodonSpace, ExactGenes] | None = None
        self._ranking: tuple[int, ExactRanking] | None = None

    def config_arguments(self) -> Mapping[str, Any]:
        """See `seqopt.utils.config.Configurable`."""
        return {"objective": self.objective, "direction": self.direction}

    def start(self, space: Space, contexts: Contexts | None = None) -> None:
        """See `seqopt.strategies.CheckedStrategy`.

        Raises:
            InputError: As the class says.
        """
        if contexts is not None:
            raise InputError("an exact optimum is one of the objective itself: leave fidelities and plates out")
        self._genes(space)

    def ranking(self, space: Space, k: int) -> ExactRanking:
        """The ``k`` best genes of a space.

        Raises:
            InputError: If the objective has no exact optimum there.
            IntractableError: If it would take too much.
        """
        exact = self._genes(space)
        if self._ranking is None or self._ranking[0] < k:
            self._ranking = (k, exact.best(k))
        return self._ranking[1]

    def remember(self, space: CodonSpace, exact: ExactGenes, ranking: ExactRanking) -> None:
        """Take over what has been computed already: a ranking is not computed again for as many genes as it has."""
        self._exact, self._ranking = (space, exact), (len(ranking.genes), ranking)

    def _genes(self, space: Space) -> ExactGenes:
        if self._exact is not None and self._exact[0] is space:
            return self._exact[1]
        if not isinstance(space, CodonSpace):
            raise InputError(f"exact optima are for genes of a protein, not for a {type(space).__name__}")
        score = exact_score(by_code(self._resolved, space.code.number), space, self.direction)
        if score is None:
            raise InputError(
                f"the objective {self.objective} is no sum over codons of these genes, or accept() has the last word: "
                "there is no exact optimum, search instead"
            )
        self._exact, self._ranking = (space, ExactGenes(space, score)), None
        return self._exact[1]

    def propose(self, n: int, state: SearchState, rng: np.random.Generator) -> list[Proposal]:
        """The best ``n`` genes that are not known yet; see `seqopt.strategies.Strategy`."""
        known = state.excluded | {query.key for query in state.known}
        found: list[Proposal] = []
        ranking = self.ranking(state.space, n + len(known))
        for one in ranking.genes:
            if len(found) < n and one.gene not in known:
                found.append(Proposal(one.gene, one.gene))
        return found
