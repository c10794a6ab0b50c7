"""Model-based search that learns from failed evaluations which strings cannot be evaluated."""

from __future__ import annotations

from typing import Any

import numpy as np

from seqopt.acquisition import Acquisition
from seqopt.data import Contexts
from seqopt.errors import InputError
from seqopt.models import Surrogate
from seqopt.models.classifiers import Classifier, KernelLogistic, SpaceBoundClassifier
from seqopt.scorers import Scoring
from seqopt.scorers.feasibility import Combine, FeasibilityScoring
from seqopt.search.protocols import PartsCheckedSearch, SomeSearch
from seqopt.spaces import Space
from seqopt.strategies.model_based import ModelBased
from seqopt.strategies.protocols import SearchState

COMBINE: dict[str, Combine] = {"logei": "add", "gibbon": "multiply"}
"""How the scores of acquisition functions, by name, are made to allow for failures."""


class FeasibleModelBased(ModelBased):
    """`seqopt.strategies.ModelBased` with scores weighted by the probability that an evaluation succeeds.

    A failed evaluation is one that was told as NaN. Until strings have both failed and succeeded, everything is as
    without a classifier, to the last bit.

    Args:
        surrogate: See `ModelBased`.
        acquisition: See `ModelBased`.
        search: See `ModelBased`.
        classifier: Learns which evaluations succeed; by default `seqopt.models.classifiers.KernelLogistic`.
        combine: How scores and probabilities make one (`seqopt.scorers.feasibility.feasible_scores`). By default
            ``"add"`` for ``logei``, which is a logarithm, and ``"multiply"`` for ``gibbon``.

    Raises:
        InputError: If ``combine`` is not given for an acquisition function whose scores have no known zero.

    Example:
        >>> from seqopt import Optimizer, StringSpace
        >>> optimizer = Optimizer(StringSpace("01", 8), strategy=FeasibleModelBased(), initial=6)
        >>> strings = optimizer.ask()
        >>> values = [float("nan") if "00" in string else string.count("01") for string in strings]
        >>> optimizer.tell(strings, values)
        >>> len(optimizer.ask(2))
        2
    """

    def __init__(
        self,
        surrogate: Surrogate | str = "auto",
        acquisition: Acquisition | str = "logei",
        search: SomeSearch | str = "auto",
        *,
        classifier: Classifier | None = None,
        combine: Combine | None = None,
    ) -> None:
        super().__init__(surrogate, acquisition, search)
        self.classifier: Classifier = KernelLogistic() if classifier is None else classifier
        if combine is None and self.acquisition.name not in COMBINE:
            raise InputError(
                f"the acquisition function {self.acquisition.name!r} has no known zero, so a probability cannot scale "
                "it: choose logei or gibbon, or say combine='add' (scores are logarithms) or combine='multiply'"
            )
        self.combine: Combine = COMBINE[self.acquisition.name] if combine is None else combine
        if self.combine not in ("add", "multiply"):
            raise InputError(f"combine is {combine!r}; expected 'add' or 'multiply'")

    def config_arguments(self) -> dict[str, Any]:
        """See `seqopt.utils.config.Configurable`."""
        return {**super().config_arguments(), "classifier": self.classifier, "combine": self.combine}

    def start(self, space: Space, contexts: Contexts | None = None) -> None:
        """See `ModelBased.start`.

        Raises:
            InputError: Also for a search that follows gradients of the acquisition function alone.
        """
        super().start(space, contexts)
        if isinstance(self.search, PartsCheckedSearch):
            raise InputError(
                f"{type(self.search).__name__} follows the acquisition function alone, and {type(self).__name__} "
                "weights it by a probability: choose another search"
            )
        if isinstance(self.classifier, SpaceBoundClassifier):
            self.classifier.bind(space)

    def scoring(self, n: int, state: SearchState, rng: np.random.Generator) -> Scoring:
        """That of `ModelBased`, under the probability of success once there is something to learn it from."""
        scoring = super().scoring(n, state, rng)
        keys = [query.key for query in state.data.queries]
        refused = self.classifier.unsupported(keys)
        rows = [row for row in range(len(keys)) if row not in refused]
        succeeded = ~state.data.failed[rows]
        if succeeded.all() or not succeeded.any():
            return scoring
        predictor = self.classifier.fit([keys[row] for row in rows], succeeded, rng=rng)
        return FeasibilityScoring(scoring, predictor, self.combine)
