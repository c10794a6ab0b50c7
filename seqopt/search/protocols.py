"""What an inner search offers."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from seqopt.acquisition import Acquisition


@dataclass(frozen=True)
class Suggestion:
    """One string proposed for evaluation.

    Attributes:
        string: As the space's owner wrote it.
        key: Its identity.
        acquisition: Acquisition value at the time it was chosen, given the batch members before it.
        predicted_mean: Posterior mean, in the units the surrogate was fitted in.
        predicted_std: Noiseless posterior standard deviation, in the same units.
        measurement_std: Standard deviation of a measurement, noise included, in the same units; `None` where the
            search does not know it.
    """

    string: str
    key: str
    acquisition: float | None = None
    predicted_mean: float | None = None
    predicted_std: float | None = None
    measurement_std: float | None = None


@runtime_checkable
class Search(Protocol):
    """Builds a batch that maximises an acquisition function over a space."""

    def suggest(
        self,
        n: int,
        *,
        space: Any,
        surrogate: Any,
        acquisition: Acquisition,
        excluded: Set[str],
        pending: list[str],
        rng: np.random.Generator,
    ) -> list[Suggestion]:
        """Up to ``n`` suggestions.

        Args:
            n: Batch size.
            space: Where to search.
            surrogate: A fitted surrogate.
            acquisition: What to maximise.
            excluded: Keys that must not be proposed: evaluated, failed and pending ones.
            pending: Keys whose results are awaited; the batch is conditioned on them.
            rng: The only source of randomness.
        """
        ...


@runtime_checkable
class CheckedSearch(Search, Protocol):
    """A search that does not go with every space, surrogate and acquisition function."""

    def check(self, space: Any, surrogate: Any, acquisition: Acquisition) -> None:
        """Complain before anything is evaluated.

        Raises:
            InputError: If they do not fit.
        """
        ...


@runtime_checkable
class StatefulSearch(Search, Protocol):
    """A search that remembers something from one batch to the next, kept with a run so that it can be resumed."""

    def state_dict(self) -> dict[str, Any]:
        """What it remembers, as JSON values."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        ...
