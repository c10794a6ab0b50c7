"""Model-based search with another classifier of failed evaluations, or another use of it."""

from __future__ import annotations

from typing import Any

from seqopt.acquisition import Acquisition
from seqopt.data import Contexts
from seqopt.errors import InputError
from seqopt.models import Surrogate
from seqopt.models.classifiers import Classifier
from seqopt.scorers.feasibility import Combine
from seqopt.search.protocols import PartsCheckedSearch, SomeSearch
from seqopt.spaces import Space
from seqopt.strategies.model_based import ModelBased


class FeasibleModelBased(ModelBased):
    """`seqopt.strategies.ModelBased` with a say in how failures count: the classifier, and what it does to scores.

    Args:
        surrogate: See `ModelBased`.
        acquisition: See `ModelBased`.
        search: See `ModelBased`; one that follows gradients of the acquisition function alone is refused.
        classifier: Learns which evaluations succeed; by default `seqopt.models.classifiers.CrossValidated`.
        combine: How scores and probabilities make one (`seqopt.scorers.feasible_scores`); by default as
            `seqopt.strategies.failures` says.

    Raises:
        InputError: For another ``combine``, or what is no classifier.

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
        super().__init__(surrogate, acquisition, search, failures="learn" if classifier is None else classifier)
        if combine not in (None, "add", "multiply"):
            raise InputError(f"combine is {combine!r}; expected 'add' or 'multiply'")
        self._combine = combine

    @property
    def combine(self) -> Combine:
        """How scores count with the probability of success."""
        return super().combine if self._combine is None else self._combine

    def config_arguments(self) -> dict[str, Any]:
        """See `seqopt.utils.config.Configurable`."""
        said = super().config_arguments()
        return {**said, "classifier": said.pop("failures", None), "combine": self._combine}

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
