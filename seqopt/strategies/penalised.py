"""Batches by local penalisation."""

from __future__ import annotations

from typing import cast

import numpy as np

from seqopt.acquisition import MES, Acquisition, LogExpectedImprovement
from seqopt.data import Contexts, key_of
from seqopt.errors import InputError
from seqopt.models import PoolSurrogate, StringSurrogate, Surrogate
from seqopt.scorers import Scoring
from seqopt.scorers.penalised import PenalisedScoring
from seqopt.search.protocols import SomeSearch
from seqopt.spaces import Space
from seqopt.strategies.model_based import ModelBased
from seqopt.strategies.protocols import SearchState


class LocalPenalisation(ModelBased):
    """Fills batches by an acquisition function of single strings, which is lowered about what is in the batch already.

    See `seqopt.scorers.penalised.PenalisedScoring` for the formula, the distance of strings, and how the Lipschitz
    constant is estimated.

    Args:
        surrogate: See `ModelBased`; it must say how alike strings are before the data, as Gaussian processes do.
        acquisition: ``"logei"`` or ``"mes"``, or such an object: others have no values whose logarithms add to those of
            probabilities.
        search: See `ModelBased`.

    Raises:
        InputError: For another acquisition function.

    Example:
        >>> from seqopt import Optimizer
        >>> pool = ["AAAA", "AAAT", "AATT", "ATTT", "TTTT", "TTTA", "TTAA", "TATA"]
        >>> optimizer = Optimizer(pool, strategy=LocalPenalisation("ssk"), initial=3, batch_size=2)
        >>> for _ in range(2):
        ...     strings = optimizer.ask()
        ...     optimizer.tell(strings, [string.count("T") for string in strings])
        >>> len(optimizer.observations)
        5
    """

    shortens = False

    def __init__(
        self,
        surrogate: Surrogate | str = "auto",
        acquisition: Acquisition | str = "logei",
        search: SomeSearch | str = "auto",
    ) -> None:
        super().__init__(surrogate, acquisition, search)
        if not isinstance(self.acquisition, LogExpectedImprovement | MES):
            raise InputError(
                f"local penalisation multiplies values by probabilities, which those of {self.acquisition.name!r} are "
                "not made for: choose logei or mes"
            )

    def start(self, space: Space, contexts: Contexts | None = None) -> None:
        """See `ModelBased.start`.

        Raises:
            InputError: Also with contexts, and for a surrogate that does not say how alike strings are.
        """
        if contexts is not None:
            raise InputError(
                f"{type(self).__name__} knows one way to measure, and this search has several: take MultiFidelity"
            )
        super().start(space, contexts)
        if not (hasattr(self.surrogate, "similarity") and isinstance(self.surrogate, StringSurrogate)):
            raise InputError(
                f"{type(self.surrogate).__name__} does not say how alike strings are, which {type(self).__name__} needs"
            )

    def scoring(self, n: int, state: SearchState, rng: np.random.Generator) -> Scoring:
        """The penalised acquisition function."""
        refused = self.unsupported(state.pending)
        return PenalisedScoring(
            cast("StringSurrogate | PoolSurrogate", self.surrogate),
            self.acquisition,
            logarithmic=isinstance(self.acquisition, LogExpectedImprovement),
            evaluated=[key_of(item) for item in state.data.measured().items],
            pending=[key_of(item) for index, item in enumerate(state.pending) if index not in refused],
            rng=rng,
        )
