"""Batches of a first point by expected improvement, and others that are drawn apart by a determinantal point process.

References:
    Kathuria, T., Deshpande, A. and Kohli, P. (2016). Batched Gaussian process bandit optimization via determinantal
        point processes. NeurIPS. Contal, E. et al. (2013). Parallel Gaussian process optimization with upper
        confidence bound and pure exploration. ECML PKDD (the relevant region).
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from seqopt.acquisition.improvement import Incumbent, LogExpectedImprovement
from seqopt.acquisition.protocols import Posterior, PreparedAcquisition
from seqopt.errors import InputError
from seqopt.utils.config import Configurable


class DPPExpectedImprovement(Configurable):
    """The first point by expected improvement, the rest of a batch by the determinant of the posterior kernel.

    Where nothing is pending or chosen the score is that of `LogExpectedImprovement`. After that it is

        log Var[g(x) | data, B],

    by which log det of the posterior covariance of the batch B grows when x joins it: the greedy largest set of a
    determinantal point process with that kernel. Only promising points compete, those with

        mean(x) + sqrt(beta) std(x) >= max_x' [mean(x') - sqrt(beta) std(x')]

    given the data; all others score minus infinity. The bound on the right is that of the points that the step was
    prepared on, and the evaluated strings.

    Args:
        beta: Squared number of standard deviations of what is promising.
        incumbent: See `LogExpectedImprovement`.

    Raises:
        InputError: If ``beta`` is negative, or for another incumbent.

    Example:
        >>> from seqopt.acquisition import DensePosterior
        >>> covariance = torch.tensor([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.0]])
        >>> posterior = DensePosterior(torch.tensor([0.5, 0.4, 0.0]), covariance, 0.1)
        >>> prepared = DPPExpectedImprovement().prepare(posterior, np.random.default_rng(0))
        >>> first = int(prepared(posterior).argmax())
        >>> first, int(prepared(posterior.given(first)).argmax())
        (0, 2)
    """

    name = "dpp-ei"

    def __init__(self, beta: float = 4.0, incumbent: Incumbent = "mean") -> None:
        if not beta >= 0:
            raise InputError(f"beta is {beta}; expected zero or more")
        self.beta = beta
        self.incumbent: Incumbent = incumbent
        self._first = LogExpectedImprovement(incumbent)

    def prepare(self, posterior: Posterior, rng: np.random.Generator, batch_size: int = 1) -> PreparedAcquisition:
        """Find the incumbent and what is promising; see `seqopt.acquisition.protocols.Acquisition`."""
        first = self._first.prepare(posterior, rng, batch_size)
        level = self._bound(posterior, -1.0).amax()
        if posterior.observed_mean.shape[-1]:
            level = torch.maximum(level, _averaged(posterior.observed_mean).amax())
        # The highest of all bounds is promising whatever was measured.
        level = torch.minimum(level, self._bound(posterior, 1.0).amax())

        def score(posterior: Posterior) -> Tensor:
            if not posterior.conditioned_mean.shape[-1]:
                return first(posterior)
            gain = _averaged(posterior.moments.conditional_variance.clamp_min(1e-300).log())
            return torch.where(self._bound(posterior, 1.0) >= level, gain, -math.inf)

        return score

    def _bound(self, posterior: Posterior, sign: float) -> Tensor:
        moments = posterior.moments
        return _averaged(moments.mean + sign * math.sqrt(self.beta) * moments.variance.sqrt())


def _averaged(values: Tensor) -> Tensor:
    return values.reshape(-1, values.shape[-1]).mean(0)
