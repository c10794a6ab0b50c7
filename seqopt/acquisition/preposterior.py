r"""How well everything else will be predicted once a batch has been measured.

The error that is expected of predictions at N points is the square root of the mean variance of the mixture over draws
of the model's parameters. What it will be once a batch has been measured is not known, since it depends on the results;
but the model says how likely these are. With results :math:`y` drawn from the mixture,

.. math:: \mathrm{E}_y \left[ \mathrm{Var}(g(x) \mid \text{data}, y) \right],

where the draws are weighed by how well each has predicted y, :math:`w_m \propto \mathcal{N}(y; \mu_m, \Sigma_m)`, and
conditioned on it. It is the mean squared error of the best prediction, if the model is right.

References:
    Raiffa, H., Schlaifer, R. (1961). Applied Statistical Decision Theory, chapter 4 (preposterior analysis).
    Cohn, D. A., Ghahramani, Z., Jordan, M. I. (1996). Active learning with statistical models. Journal of Artificial
        Intelligence Research 4, 129-145.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from seqopt.acquisition.distances import mixture_moments
from seqopt.errors import InputError
from seqopt.posteriors import stable_cholesky

SAMPLES = 64
"""Draws of the results."""

BLOCK_VALUES = 1 << 20
"""Predictions that are held at once."""


def expected_errors(
    mean: Tensor,
    covariance: Tensor,
    noise_variance: Tensor,
    batch: Tensor,
    rng: np.random.Generator,
    samples: int = SAMPLES,
) -> tuple[float, float]:
    """Root mean squared errors of predictions at N points: now, and once a batch of B others has been measured.

    Args:
        mean: ``M x (N + B)``, posterior mean of each of M draws of the parameters.
        covariance: ``M x (N + B) x (N + B)``, noiseless.
        noise_variance: Of a measurement, M.
        batch: Which of the points are the batch, int64, B.
        rng: Draws the results.
        samples: How many.

    Returns:
        Both errors, in the units of the mean.

    Raises:
        InputError: If no point is left besides the batch.

    Example:
        >>> covariance = torch.tensor([[[1.0, 0.9], [0.9, 1.0]]], dtype=torch.float64)
        >>> noise = torch.tensor([0.0], dtype=torch.float64)
        >>> now, then = expected_errors(
        ...     torch.zeros(1, 2, dtype=torch.float64), covariance, noise, torch.tensor([1]), np.random.default_rng(0)
        ... )
        >>> round(now, 6), round(then**2, 6)  # 1 - 0.9^2 is left
        (1.0, 0.19)
    """
    draws, count = mean.shape
    rest = torch.from_numpy(np.setdiff1d(np.arange(count), batch.numpy()))
    if not len(rest):
        raise InputError("there is no point besides the batch at which errors could be compared")
    variance = covariance.diagonal(dim1=1, dim2=2)[:, rest].clamp_min(0.0)
    _, now = mixture_moments(mean[:, rest], variance)
    if not len(batch):
        return math.sqrt(float(now.mean())), math.sqrt(float(now.mean()))
    noisy = covariance[:, batch][:, :, batch] + noise_variance[:, None, None] * torch.eye(len(batch))
    factor, _ = stable_cholesky(noisy)
    solved = torch.linalg.solve_triangular(factor, covariance[:, batch][:, :, rest], upper=False)
    left = (variance - solved.square().sum(1)).clamp_min(0.0)
    log_determinant = factor.diagonal(dim1=1, dim2=2).log().sum(-1)
    total = torch.zeros(len(rest), dtype=torch.float64)
    step = max(1, BLOCK_VALUES // (draws * len(rest)))
    for start in range(0, samples, step):
        count = min(step, samples - start)
        true = torch.arange(start, start + count) % draws  # as many results from each draw
        normal = torch.from_numpy(rng.standard_normal((count, len(batch))))
        results = mean[true][:, batch] + (factor[true] @ normal[..., None])[..., 0]
        apart = (results - mean[:, None, batch]).mT
        residuals = torch.linalg.solve_triangular(factor, apart, upper=False)  # M x B x count
        weights = torch.softmax(-0.5 * residuals.square().sum(1) - log_determinant[:, None], 0)[:, None]
        moved = mean[:, rest, None] + solved.mT @ residuals
        centre = (weights * moved).sum(0)
        total += (weights * (left[..., None] + (moved - centre).square())).sum((0, 2))
    return math.sqrt(float(now.mean())), math.sqrt(float((total / samples).mean()))
