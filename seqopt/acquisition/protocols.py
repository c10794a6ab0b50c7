"""What an acquisition function sees, and what it offers."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from torch import Tensor


@runtime_checkable
class Posterior(Protocol):
    """Posterior of the latent objective g at N points, given the data and the points conditioned on so far.

    g is to be maximised and stands in standardised units; an observation is y = g + noise. All tensors are
    float64; ``...`` stands for an optional leading dimension of kernel-parameter draws. Points are numbered
    0..N-1.

    Attributes:
        mean: ``... x N``, posterior mean of g.
        variance: ``... x N``, noiseless posterior variance of g given the data.
        conditional_variance: ``... x N``, noiseless variance given the data and the points conditioned on so
            far (pending ones and the batch members chosen so far), each observed once with noise.
        conditioned_mean: ``... x c``, posterior mean of g given the data at the c points conditioned on so far.
        noise_variance: ``...``, variance of the noise of one observation.
        observed_mean: ``... x n``, posterior mean of g at the n evaluated strings.
        best_observed: Largest observed value (noisy, standardised).
    """

    mean: Tensor
    variance: Tensor
    conditional_variance: Tensor
    conditioned_mean: Tensor
    noise_variance: Tensor
    observed_mean: Tensor
    best_observed: float

    def joint(self, indices: Tensor, include_observed: bool = False) -> tuple[Tensor, Tensor]:
        """Joint distribution of g at some points given the data (not the points conditioned on).

        Args:
            indices: The points, int64 of shape k.
            include_observed: Whether the n evaluated strings come first.

        Returns:
            Mean ``... x k`` and noiseless covariance ``... x k x k``, where k includes the evaluated strings
            if asked.
        """
        ...

    def condition(self, index: int) -> None:
        """Condition on a noisy observation, of unknown value, of point ``index``.

        Updates `conditional_variance` and `conditioned_mean`.
        """
        ...


@runtime_checkable
class PreparedAcquisition(Protocol):
    """An acquisition function with its max-values and incumbents fixed for one step."""

    def __call__(self, posterior: Posterior) -> Tensor:
        """Scores of all N points of ``posterior``, float64 of shape N; larger is better.

        The posterior may hold other points than the one that was prepared on. What it has been conditioned
        on so far is taken into account, so that repeated calls fill a batch greedily. Values are averaged
        over the leading dimension of kernel-parameter draws.
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
