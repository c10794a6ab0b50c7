"""Measurement noise of which a part is known."""

from __future__ import annotations

from typing import Any

import torch
from gpytorch.likelihoods import GaussianLikelihood
from linear_operator.operators import DiagLinearOperator, LinearOperator
from torch import Tensor

from seqopt.models.row_model import padded


class PartlyKnownNoise(GaussianLikelihood):
    """Gaussian noise whose variance is learned, plus a known variance for each training value.

    A value to come is taken to have the mean of them, 0 counting where nothing is known. What stands for a censored
    value has a further variance (`replaced`), which says nothing of values to come.

    Args:
        known: Known variances of the n training values, 0 where nothing is known.
        inputs: The training inputs, ``n x W``, by which they are recognised.
        options: Those of `gpytorch.likelihoods.GaussianLikelihood`.

    Example:
        >>> from gpytorch.distributions import MultivariateNormal
        >>> likelihood = PartlyKnownNoise(torch.tensor([0.0, 2.0]), torch.zeros(2, 1))
        >>> likelihood.noise = 0.5
        >>> likelihood(MultivariateNormal(torch.zeros(2), torch.eye(2))).variance
        tensor([1.5000, 3.5000], grad_fn=<ExpandBackward0>)
        >>> likelihood.eval()(MultivariateNormal(torch.zeros(2), torch.eye(2)), torch.ones(2, 1)).variance
        tensor([2.5000, 2.5000], grad_fn=<ExpandBackward0>)
    """

    def __init__(self, known: Tensor, inputs: Tensor, **options: Any) -> None:
        super().__init__(**options)
        self.known = known
        self.inputs = inputs
        self.coming = known.mean()

    def replaced(self, known: Tensor) -> None:
        """Give the training values other known variances, n, and values to come the same as before."""
        self.known = known

    def _shaped_noise_covar(self, base_shape: torch.Size, *params: Any, **kwargs: Any) -> LinearOperator:
        learned = super()._shaped_noise_covar(base_shape, *params, **kwargs)
        known = self.known if self._of_training(params) else self.coming.expand(base_shape[-1])
        return DiagLinearOperator(learned.diagonal(dim1=-1, dim2=-2) + known)

    def _of_training(self, params: tuple[Any, ...]) -> bool:
        if self.training:
            return True
        given = params[0][0] if params and isinstance(params[0], list | tuple) else next(iter(params), None)
        if not isinstance(given, Tensor) or given.shape[:-1] != self.inputs.shape[:-1]:
            return False
        # Rows of training may have been padded with zeros since.
        width = max(given.shape[-1], self.inputs.shape[-1])
        return torch.equal(padded(given, width), padded(self.inputs, width))


class LevelledNoise(PartlyKnownNoise):
    """Gaussian noise whose variance is learned for each of L levels, plus a known variance for each training value.

    A value to come is one of the target.

    Args:
        levels: The level of each of the n training values, integers.
        count: L.
        target: The level that is meant; L for the mean over all.
        known: See `PartlyKnownNoise`.
        inputs: See `PartlyKnownNoise`.
        options: Those of `gpytorch.likelihoods.GaussianLikelihood`.

    Example:
        >>> from gpytorch.distributions import MultivariateNormal
        >>> likelihood = LevelledNoise(torch.tensor([0, 1, 1]), 2, 1, torch.zeros(3), torch.zeros(3, 1))
        >>> likelihood.noise = torch.tensor([[0.5], [2.0]])
        >>> likelihood(MultivariateNormal(torch.zeros(3), torch.eye(3))).variance
        tensor([1.5000, 3.0000, 3.0000], grad_fn=<ExpandBackward0>)
    """

    def __init__(self, levels: Tensor, count: int, target: int, known: Tensor, inputs: Tensor, **options: Any) -> None:
        super().__init__(known, inputs, batch_shape=torch.Size([count]), **options)
        self.levels = levels
        self.target = target

    @property
    def by_level(self) -> Tensor:
        """Learned variances, L."""
        noise: Tensor = self.noise_covar.noise.reshape(-1)
        return noise

    def _shaped_noise_covar(self, base_shape: torch.Size, *params: Any, **kwargs: Any) -> LinearOperator:
        noise = self.by_level
        if self._of_training(params):
            return DiagLinearOperator(noise[self.levels] + self.known)
        of_target = noise.mean() if self.target == len(noise) else noise[self.target]
        return DiagLinearOperator((of_target + self.coming).expand(base_shape))
