"""Max-value entropy search: the information that the noiseless value of one point gives about the maximum.

With draws m of g* and gamma = (m - mean) / std,

    alpha = 1/|M| sum_m [gamma phi(gamma) / (2 Phi(gamma)) - log Phi(gamma)],

the difference, in nats, between the entropy of a normal variable and that of the same truncated at m. It is exact for
one point without noise.

References:
    Wang, Z. and Jegelka, S. (2017). Max-value entropy search for efficient Bayesian optimization. ICML.
    Moss, H. B. (2021). General-purpose Information-Theoretical Bayesian Optimisation. PhD thesis, section 2.3.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

from seqopt.acquisition.information import InformationAcquisition, PreparedInformation
from seqopt.acquisition.numerics import LOG_SQRT_2PI, TAIL, inverse_mills, log_phi


def log_mes(gamma: Tensor) -> Tensor:
    """Logarithm of the value for one max-value, log(gamma phi / (2 Phi) - log Phi).

    Finite and strictly decreasing in gamma in both tails. Below `seqopt.acquisition.numerics.TAIL`, where its two parts
    cancel, it is written as gamma (gamma + r) / 2 + log r + log sqrt(2 pi), r = phi / Phi.

    Args:
        gamma: (m - mean) / std, any shape, float32 or float64.

    Returns:
        Same shape and dtype as ``gamma``.

    Example:
        >>> log_mes(torch.tensor([0.0, 100.0]))
        tensor([-3.6651e-01, -4.9970e+03])
    """
    inner = gamma.clamp_min(TAIL)
    half = inner / math.sqrt(2.0)
    upper = 0.5 * torch.special.erfc(half)
    # -log Phi = -log(1 - upper), as a multiple of phi; the ratio -log1p(-u) / u is 1 where u is nothing.
    kept = upper.clamp_min(1e-30)
    ratio = -torch.log1p(-kept) / kept
    surprise = ratio * math.sqrt(0.5 * math.pi) * torch.special.erfcx(half)
    result = log_phi(inner) + torch.log(0.5 * inner / (1.0 - upper) + surprise)
    tail = gamma < TAIL
    if bool(tail.any()):
        r, gap = inverse_mills(gamma[tail])
        result[tail] = torch.log(0.5 * gamma[tail] * gap + r.log() + LOG_SQRT_2PI)
    return result


class MES(InformationAcquisition):
    """Max-value entropy search, exact for single points whose measurements have no noise.

    It scores the *target* of a query, whatever is measured, as if that were seen without noise: use it where there is
    one way to measure, and little noise. Among several ways to measure it can only say which target is worth measuring;
    what a cheaper measurement is worth, `seqopt.acquisition.MUMBO` says, which equals it where outcome and target
    agree.

    Batches are filled as by `seqopt.acquisition.GIBBON`: half the logarithm of the determinant of the outcomes'
    correlations is added.

    Args:
        num_samples: Number of max-values per step.
        sampler: See `seqopt.acquisition.GIBBON`.
        repulsion: See `seqopt.acquisition.GIBBON`.

    Raises:
        InputError: For an unknown sampler or repulsion, or ``num_samples`` less than 1.

    Example:
        >>> import numpy as np
        >>> from seqopt.acquisition import DensePosterior
        >>> posterior = DensePosterior(torch.tensor([0.5, 0.2]), torch.eye(2), 0.0)
        >>> prepared = MES().prepared(torch.tensor([1.8, 2.2]), 1.0)
        >>> prepared(posterior)
        tensor([0.1772, 0.1143], dtype=torch.float64)
    """

    name = "mes"
    sees_outcomes = False

    def prepared(self, max_values: Tensor, repulsion: float | Literal["1/m^2"]) -> PreparedInformation:
        """MES with given max-values."""
        return PreparedInformation(max_values, repulsion, _log_value)


def _log_value(gamma: Tensor, rho2: Tensor, residual: Tensor) -> Tensor:
    # What is certain, or tells nothing of its target, is worth nothing.
    return torch.where(rho2 > 0, log_mes(gamma), -math.inf)
