"""Upper confidence bound and posterior mean.

References:
    Srinivas, N. et al. (2010). Gaussian process optimization in the bandit setting. ICML.
    Desautels, T., Krause, A. and Burdick, J. (2014). Parallelizing exploration-exploitation tradeoffs in
        Gaussian process bandit optimization. JMLR 15, 4053-4103.
"""

from __future__ import annotations

import math

import numpy as np
from torch import Tensor

from seqopt.acquisition.protocols import Posterior, PreparedAcquisition
from seqopt.errors import InputError
from seqopt.utils.config import Configurable


class UpperConfidenceBound(Configurable):
    """mean(x) + sqrt(beta) std(x).

    Batches are filled as by GP-BUCB: std is that given the points conditioned on (hallucinated at their
    means).

    Args:
        beta: Squared number of standard deviations.

    Raises:
        InputError: If ``beta`` is negative.

    Example:
        >>> import torch
        >>> from seqopt.acquisition import DensePosterior
        >>> posterior = DensePosterior(torch.zeros(1), torch.eye(1), 0.1)
        >>> UpperConfidenceBound(beta=9.0).prepare(posterior, np.random.default_rng(0))(posterior)
        tensor([3.], dtype=torch.float64)
    """

    name = "ucb"
    monotone = True

    def __init__(self, beta: float = 4.0) -> None:
        if not beta >= 0:
            raise InputError(f"beta is {beta}; expected zero or more")
        self.beta = beta

    def prepare(self, posterior: Posterior, rng: np.random.Generator, batch_size: int = 1) -> PreparedAcquisition:
        """Nothing needs preparing; see `seqopt.acquisition.protocols.Acquisition`."""
        return self._score

    def _score(self, posterior: Posterior) -> Tensor:
        moments = posterior.moments
        return _averaged(moments.mean + math.sqrt(self.beta) * moments.conditional_variance.sqrt())


class PosteriorMean(Configurable):
    """mean(x): pure exploitation. What has been conditioned on makes no difference.

    Example:
        >>> import torch
        >>> from seqopt.acquisition import DensePosterior
        >>> posterior = DensePosterior(torch.tensor([1.0, 2.0]), torch.eye(2), 0.1)
        >>> PosteriorMean().prepare(posterior, np.random.default_rng(0))(posterior)
        tensor([1., 2.], dtype=torch.float64)
    """

    name = "mean"
    monotone = True

    def prepare(self, posterior: Posterior, rng: np.random.Generator, batch_size: int = 1) -> PreparedAcquisition:
        """Nothing needs preparing; see `seqopt.acquisition.protocols.Acquisition`."""
        return self._score

    def _score(self, posterior: Posterior) -> Tensor:
        return _averaged(posterior.moments.mean)


def _averaged(values: Tensor) -> Tensor:
    return values.reshape(-1, values.shape[-1]).mean(0)
