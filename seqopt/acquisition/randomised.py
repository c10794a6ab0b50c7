"""Acquisition functions that are themselves random: Thompson sampling and uniform choice.

References:
    Thompson, W. R. (1933). On the likelihood that one unknown probability exceeds another. Biometrika 25,
    285-294. Kandasamy, K. et al. (2018). Parallelised Bayesian optimisation via Thompson sampling. AISTATS.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from seqopt.acquisition.protocols import Posterior, PreparedAcquisition
from seqopt.acquisition.sampling import SELECTION_BETA, draw_joint, largest_upper_confidence
from seqopt.errors import InputError
from seqopt.posteriors import stable_cholesky
from seqopt.utils.config import Configurable


class ThompsonSampling(Configurable):
    """The value of one joint posterior draw; every call is a fresh draw, and so is every element of a batch.

    Draws are joint over the points of largest mean + sqrt(beta) std only; all others score -inf. What has
    been conditioned on makes no difference: a batch is diverse because its draws are independent. With
    several kernel-parameter draws each call picks one of them at random. A posterior over other points than
    the one prepared on is drawn from in its own right, independently of earlier calls.

    Args:
        max_points: Largest number of points drawn jointly; the cost is O(max_points^3).
        beta: See above.

    Raises:
        InputError: If ``max_points`` is less than 1 or ``beta`` is negative.

    Example:
        >>> from seqopt.acquisition import DensePosterior
        >>> posterior = DensePosterior(torch.tensor([0.0, 0.0, -9.0]), torch.eye(3), 0.1)
        >>> prepared = ThompsonSampling(max_points=2).prepare(posterior, np.random.default_rng(0))
        >>> prepared(posterior)
        tensor([ 0.1257, -0.1321,    -inf], dtype=torch.float64)
    """

    name = "thompson"

    def __init__(self, max_points: int = 2_000, beta: float = SELECTION_BETA) -> None:
        if max_points < 1:
            raise InputError(f"max_points is {max_points}; expected at least 1")
        if not beta >= 0:
            raise InputError(f"beta is {beta}; expected zero or more")
        self.max_points = max_points
        self.beta = beta

    def prepare(self, posterior: Posterior, rng: np.random.Generator, batch_size: int = 1) -> PreparedAcquisition:
        """Keep the generator; see `seqopt.acquisition.protocols.Acquisition`."""
        return PreparedThompsonSampling(self.max_points, self.beta, rng)


class PreparedThompsonSampling:
    """Thompson sampling with its generator.

    Args:
        max_points: See `ThompsonSampling`.
        beta: See `ThompsonSampling`.
        rng: Where the draws come from.
    """

    def __init__(self, max_points: int, beta: float, rng: np.random.Generator) -> None:
        self.max_points = max_points
        self.beta = beta
        self._rng = rng
        # The factor serves all draws of a batch: it is kept for the mean tensor that it belongs to.
        self._key: Tensor | None = None
        self._indices = self._mean = self._factor = torch.empty(0)

    def __call__(self, posterior: Posterior) -> Tensor:
        """One posterior draw; see `PreparedAcquisition`.

        Raises:
            ModelError: If the joint covariance cannot be factorised.
        """
        if self._key is not posterior.moments.mean:
            self._indices = largest_upper_confidence(posterior, self.max_points, self.beta)
            mean, covariance = posterior.joint(self._indices)
            k = len(self._indices)
            self._mean = mean.reshape(-1, k)
            self._factor = stable_cholesky(covariance)[0].reshape(-1, k, k)
            self._key = posterior.moments.mean
        draw = int(self._rng.integers(len(self._mean)))
        scores = torch.full((len(posterior.moments),), -math.inf, dtype=torch.float64)
        scores[self._indices] = draw_joint(self._mean[draw], self._factor[draw], 1, self._rng)[:, 0]
        return scores


class RandomAcquisition(Configurable):
    """Uniform random scores: the baseline.

    Example:
        >>> from seqopt.acquisition import DensePosterior
        >>> posterior = DensePosterior(torch.zeros(2), torch.eye(2), 0.1)
        >>> RandomAcquisition().prepare(posterior, np.random.default_rng(0))(posterior)
        tensor([0.6370, 0.2698], dtype=torch.float64)
    """

    name = "random"

    def prepare(self, posterior: Posterior, rng: np.random.Generator, batch_size: int = 1) -> PreparedAcquisition:
        """Keep the generator; see `seqopt.acquisition.protocols.Acquisition`."""

        def score(posterior: Posterior) -> Tensor:
            return torch.from_numpy(rng.random(len(posterior.moments)))

        return score
