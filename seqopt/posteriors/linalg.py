"""Linear algebra that survives rounding."""

from __future__ import annotations

import logging

import torch
from torch import Tensor

from seqopt.errors import ModelError

logger = logging.getLogger(__name__)

JITTERS = (0.0, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4)
"""What is added to the diagonal in turn, relative to the mean variance, until the factorisation succeeds."""

NOTICEABLE_JITTER = 1e-5
"""A relative jitter from which on a warning is logged: draws then have noise of a third of a percent of their standard
deviation besides."""


def stable_cholesky(covariance: Tensor) -> tuple[Tensor, Tensor]:
    """Lower Cholesky factor of a covariance that may be singular to rounding.

    Each matrix of the batch gets the smallest of `JITTERS` on its diagonal, relative to its mean variance,
    with which the factorisation succeeds.

    Args:
        covariance: ``... x k x k`` float64.

    Returns:
        The factor ``... x k x k``, and the relative jitter that was needed, ``...``.

    Raises:
        ModelError: If the largest jitter does not help.

    Example:
        >>> factor, jitter = stable_cholesky(torch.ones(2, 2, dtype=torch.float64))
        >>> torch.allclose(factor @ factor.T, torch.ones(2, 2, dtype=torch.float64)), bool(jitter < 1e-11)
        (True, True)
    """
    scale = covariance.diagonal(dim1=-2, dim2=-1).mean(-1).clamp_min(1e-300)
    needed = torch.zeros_like(scale)
    failed = torch.ones_like(scale, dtype=torch.bool)
    for jitter in JITTERS:
        needed = torch.where(failed, jitter, needed)
        loaded = covariance.clone()
        loaded.diagonal(dim1=-2, dim2=-1).add_((needed * scale)[..., None])
        factor, info = torch.linalg.cholesky_ex(loaded)
        failed = info > 0
        if not bool(failed.any()):
            largest = float(needed.max())
            level = logging.WARNING if largest >= NOTICEABLE_JITTER else logging.DEBUG
            if largest > 0.0:
                logger.log(level, "joint posterior of %d points: relative jitter %.0e", factor.shape[-1], largest)
            return factor, needed
    raise ModelError(
        f"the joint posterior covariance of {covariance.shape[-1]} points is not positive definite, even "
        f"with a relative jitter of {JITTERS[-1]:.0e}; the kernel is not a covariance function, or holds NaN"
    )
