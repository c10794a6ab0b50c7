"""Joint normal draws and the choice of points to draw at."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from seqopt.acquisition.protocols import Posterior
from seqopt.posteriors import Moments

SELECTION_BETA = 9.0
"""Points for joint draws have the largest mean + sqrt(SELECTION_BETA) std: three standard deviations."""


def largest_upper_confidence(posterior: Posterior, k: int, beta: float = SELECTION_BETA) -> Tensor:
    """Indices of the ``k`` points of largest mean + sqrt(beta) std, averaged over draws (or all points).

    Returns:
        int64, ascending.

    Example:
        >>> from seqopt.acquisition import DensePosterior
        >>> covariance = torch.diag(torch.tensor([0.1, 4.0, 0.1]))
        >>> posterior = DensePosterior(torch.tensor([1.0, 0.0, 0.5]), covariance, 0.1)
        >>> largest_upper_confidence(posterior, 2)
        tensor([0, 1])
    """
    return largest_upper_confidence_of(posterior.moments, k, beta)


def largest_upper_confidence_of(moments: Moments, k: int, beta: float = SELECTION_BETA) -> Tensor:
    """As `largest_upper_confidence`, from moments."""
    bound = moments.mean + math.sqrt(beta) * moments.variance.sqrt()
    bound = bound.reshape(-1, bound.shape[-1]).mean(0)
    if k >= len(bound):
        return torch.arange(len(bound))
    least = torch.topk(bound, k, sorted=False).values.min()
    above = torch.nonzero(bound > least)[:, 0]
    # Of equal ones the first, so that it does not matter how they are looked at.
    equal = torch.nonzero(bound == least)[: k - len(above), 0]
    return torch.cat([above, equal]).sort().values


def draw_joint(mean: Tensor, factor: Tensor, num_samples: int, rng: np.random.Generator) -> Tensor:
    """Draws from normal distributions of mean ``... x k`` and Cholesky factor ``... x k x k``.

    Returns:
        ``... x k x num_samples``.
    """
    normal = torch.from_numpy(rng.standard_normal((*mean.shape, num_samples)))
    return mean[..., None] + factor @ normal
