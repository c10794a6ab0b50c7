"""What a posterior offers."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from torch import Tensor

from seqopt.posteriors.moments import Moments


@runtime_checkable
class Posterior(Protocol):
    """A Gaussian posterior, or a mixture over draws of the model's parameters, at N queries.

    It is immutable: `given` returns another one and shares what has been computed. The target g is to be maximised, and
    everything stands in standardised units. All tensors are float64; ``...`` stands for an optional leading dimension
    of draws. Queries are numbered 0..N-1.
    """

    @property
    def moments(self) -> Moments:
        """Moments of target and outcome at the N queries."""
        ...

    @property
    def observed_mean(self) -> Tensor:
        """E[g] given the data at the n evaluated strings, ``... x n``."""
        ...

    @property
    def conditioned_mean(self) -> Tensor:
        """E[g] given the data at the c pending and chosen queries, in their order, ``... x c``."""
        ...

    @property
    def best_observed(self) -> float:
        """Largest measured value of a target (noisy); minus infinity where none was measured."""
        ...

    def joint(self, indices: Tensor, include_observed: bool = False) -> tuple[Tensor, Tensor]:
        """Joint distribution of g at some queries given the data (not the pending and chosen ones).

        Args:
            indices: The queries, int64 of shape k.
            include_observed: Whether the n evaluated strings come first.

        Returns:
            Mean ``... x k`` and noiseless covariance ``... x k x k``, where k includes the evaluated strings if asked.
        """
        ...

    def cross(self, indices: Tensor) -> Tensor:
        """Covariances of g given the data between all queries and some, ``... x N x k``."""
        ...

    def given(self, index: int) -> Posterior:
        """The posterior given an outcome, of unknown value, of query ``index``.

        Means stay; ``conditional_variance`` and ``remaining_variance`` fall, and `conditioned_mean` grows by one.
        """
        ...
