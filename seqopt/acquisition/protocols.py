"""What an acquisition function sees, and what it offers."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from torch import Tensor

from seqopt.posteriors import Posterior

__all__ = [
    "Acquisition",
    "DisagreementAcquisition",
    "MonotoneAcquisition",
    "OutcomeAcquisition",
    "Posterior",
    "PreparedAcquisition",
]


@runtime_checkable
class PreparedAcquisition(Protocol):
    """An acquisition function with its max-values and incumbents fixed for one step."""

    def __call__(self, posterior: Posterior) -> Tensor:
        """Scores of all N points of ``posterior``, float64 of shape N; larger is better.

        The posterior may hold other points than the one that was prepared on. What it has been conditioned
        on so far is taken into account, so that calls with ``posterior.given(...)`` fill a batch greedily. Values are
        averaged over the leading dimension of kernel-parameter draws.
        """
        ...


@runtime_checkable
class Acquisition(Protocol):
    """An acquisition function.

    Attributes:
        name: Short name, as `resolve_acquisition` knows it.
    """

    name: str

    def prepare(self, posterior: Posterior, rng: np.random.Generator, batch_size: int = 1) -> PreparedAcquisition:
        """Fix what is common to all points of one step: draws of the maximum, incumbents, a generator.

        Args:
            posterior: Posterior at the pool, or at a random sample of a space.
            rng: The only source of randomness, now and in calls of what is returned.
            batch_size: How many points are to be under evaluation together: those asked for and the pending
                ones. Only acquisition functions that scale with the batch use it.
        """
        ...


@runtime_checkable
class MonotoneAcquisition(Acquisition, Protocol):
    """An acquisition function that may say that more uncertainty is never worse.

    Where it says so, batches are filled from a large pool without the conditional variance of every candidate.
    """

    @property
    def monotone(self) -> bool:
        """Whether the score of a point does not fall when its own conditional variance, and nothing else, grows.

        The conditional variances of other points must not enter it.
        """
        ...


@runtime_checkable
class DisagreementAcquisition(Acquisition, Protocol):
    """An acquisition function of what draws of the model's parameters disagree about."""

    @property
    def needs_draws(self) -> bool:
        """Whether it is 0 everywhere where there is one draw: such a model is refused."""
        ...


@runtime_checkable
class OutcomeAcquisition(Acquisition, Protocol):
    """An acquisition function of which it is known how it judges queries that measure something else than their target.

    Only these are fit for a search that chooses how strings are measured, each way at its cost.
    """

    @property
    def sees_outcomes(self) -> bool:
        """Whether a score is what the *outcome* of a query tells of its target; else it is what the target would tell.

        Where it is false, only queries of the target itself can be scored among others.
        """
        ...
