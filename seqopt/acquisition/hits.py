r"""The probability that a measurement will be a hit, where results are yes or no.

For log odds f(x) that are normal given the data (`seqopt.models.BinomialGP`), :math:`p(x) = E[\sigma(f(x))]`. By the
linearity of expectations, the sum of p over a batch is the expected number of hits in it, however strings depend on
each other: the strings of largest p are the batch in which most hits are expected. For a last batch there is nothing
better; before that it learns little, since it takes strings that are alike.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from seqopt.acquisition.protocols import Posterior, PreparedAcquisition
from seqopt.data.yes_no import probability_moments
from seqopt.errors import InputError
from seqopt.utils.config import Configurable

SMALLEST = 1e-300
"""What stands for probabilities of 0, of which there is no logarithm."""


class HitProbability(Configurable):
    r"""log E[sigma(f(x) + sqrt(beta) s(x))], the logarithm of the probability of a hit where beta is 0.

    With beta > 0, the log odds are raised by so many standard deviations s, given the points conditioned on:
    optimism about strings of which little is known, less about those that are like others of the batch.

    Args:
        beta: Squared number of standard deviations.

    Raises:
        InputError: If ``beta`` is negative.

    Example:
        >>> from seqopt.acquisition import DensePosterior
        >>> posterior = DensePosterior(torch.tensor([0.0, 2.0]), torch.eye(2), 4.0)
        >>> HitProbability().prepare(posterior, np.random.default_rng(0))(posterior).exp().round(decimals=4)
        tensor([0.5000, 0.8445], dtype=torch.float64)
    """

    name = "hits"
    monotone = False

    def __init__(self, beta: float = 0.0) -> None:
        if not beta >= 0:
            raise InputError(f"beta is {beta}; expected zero or more")
        self.beta = float(beta)

    def prepare(self, posterior: Posterior, rng: np.random.Generator, batch_size: int = 1) -> PreparedAcquisition:
        """Nothing needs preparing; see `seqopt.acquisition.protocols.Acquisition`."""
        return self._score

    def _score(self, posterior: Posterior) -> Tensor:
        moments = posterior.moments
        n = moments.mean.shape[-1]
        raised = moments.mean + math.sqrt(self.beta) * moments.conditional_variance.sqrt()
        means, stds = (part.reshape(-1).numpy() for part in (raised, moments.variance.sqrt()))
        shares = torch.from_numpy(probability_moments(means, stds)[0]).reshape(-1, n).mean(0)
        return shares.clamp_min(SMALLEST).log()
