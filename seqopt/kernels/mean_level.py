"""The mean over levels, as one level more.

References:
    Moss, H. B. (2021). General-purpose Information-Theoretical Bayesian Optimisation. PhD thesis, section 3.5.4
        (FASTCV), after Swersky, K., Snoek, J. and Adams, R. P. (2013). Multi-task Bayesian optimization. NeurIPS 26.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from seqopt.errors import InputError
from seqopt.kernels.levels import LevelKernel


class MeanLevelKernel(LevelKernel):
    r"""Covariances of K levels and of the mean of what they are, which is level K.

    .. math::

        k(i, j) = B_{ij}, \quad k(i, K) = \frac1K \sum_j B_{ij}, \quad k(K, K) = \frac1{K^2} \sum_{ij} B_{ij},

    with B the covariance of another kernel on K levels. Times a kernel on strings, level K is the mean over folds:
    what a cross-validation is after, though a fold alone is measured at a time.

    Args:
        kernel: On the K levels.

    Raises:
        InputError: If it is no kernel on levels.

    Example:
        >>> from seqopt.kernels import CoregionalizationKernel
        >>> folds = CoregionalizationKernel(2, factors=[[1.0], [0.0]], variances=1.0)
        >>> MeanLevelKernel(folds).covariance.tolist()
        [[2.0, 0.0, 1.0], [0.0, 1.0, 0.5], [1.0, 0.5, 0.75]]
    """

    def __init__(self, kernel: LevelKernel) -> None:
        if not isinstance(kernel, LevelKernel):
            raise InputError(f"{kernel!r} is no kernel on levels: give a CoregionalizationKernel, say")
        super().__init__(kernel.levels + 1)
        self.kernel = kernel

    def config_arguments(self) -> Mapping[str, Any]:
        """See `seqopt.utils.config.Configurable`."""
        return {"kernel": self.kernel}

    @property
    def covariance(self) -> Tensor:
        """``batch_shape x (K + 1) x (K + 1)``."""
        levels = self.levels - 1
        own = self.kernel.covariance
        mean = torch.full((1, levels), 1.0 / levels, dtype=own.dtype, device=own.device)
        root = torch.cat([torch.eye(levels, dtype=own.dtype, device=own.device), mean])
        return root @ own @ root.mT

    def _described(self) -> Mapping[str, object]:
        return {"*kernel": self.kernel}

    def __getitem__(self, index: Any) -> MeanLevelKernel:
        return MeanLevelKernel(self.kernel[index]).train(self.training)
