"""Expected improvement in log space.

References:
    Jones, D. R., Schonlau, M. and Welch, W. J. (1998). Efficient global optimization of expensive black-box
        functions. J. Global Optim. 13, 455-492.
    Ament, S. et al. (2023). Unexpected improvements to expected improvement for Bayesian optimization.
    NeurIPS. Ginsbourger, D., Le Riche, R. and Carraro, L. (2010). Kriging is well-suited to parallelize
    optimization.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from torch import Tensor

from seqopt.acquisition.numerics import in_blocks, log_improvement, log_mean_exp, positive_std
from seqopt.acquisition.protocols import Posterior, PreparedAcquisition
from seqopt.errors import InputError
from seqopt.utils.config import Configurable

Incumbent = Literal["mean", "value"]
"""What is to be improved on: the largest posterior mean at an evaluated string, or the largest measured value."""


class LogExpectedImprovement(Configurable):
    """Logarithm of the expected improvement of the latent value over the incumbent.

        log EI(x) = log std(x) + log h((mean(x) - incumbent) / std(x)),   h(z) = phi(z) + z Phi(z).

    With noisy data the largest observation is biased upwards, so the incumbent is the largest posterior mean
    at an evaluated string (of each kernel-parameter draw), unless ``incumbent`` says otherwise. Expectations are
    averaged over draws, then the logarithm is taken: strings are in the order of their expected improvements, also
    where these are too small for a floating-point number.

    Batches are filled as by a kriging believer: the points conditioned on count as observed at their
    posterior means, which leaves every mean alone, makes std the square root of the conditional variance, and
    raises the incumbent to the largest of these means if it is higher.

    Args:
        incumbent: ``"mean"``, or ``"value"`` for the largest measured value, the textbook form (Jones et al. 1998; Moss
            2021, equation 2.1.3).

    Raises:
        InputError: For another incumbent.

    Example:
        >>> from seqopt.acquisition import DensePosterior
        >>> posterior = DensePosterior(torch.zeros(1), torch.eye(1), 0.1, observed_mean=torch.zeros(1))
        >>> prepared = LogExpectedImprovement().prepare(posterior, np.random.default_rng(0))
        >>> prepared(posterior).exp()
        tensor([0.3989], dtype=torch.float64)
    """

    name = "logei"
    monotone = True

    def __init__(self, incumbent: Incumbent = "mean") -> None:
        if incumbent not in ("mean", "value"):
            raise InputError(f"incumbent is {incumbent!r}; expected 'mean' or 'value'")
        self.incumbent: Incumbent = incumbent

    def prepare(self, posterior: Posterior, rng: np.random.Generator, batch_size: int = 1) -> PreparedAcquisition:
        """Find the incumbent, 0 without data; see `seqopt.acquisition.protocols.Acquisition`."""
        observed = posterior.observed_mean
        if self.incumbent == "value" and observed.shape[-1]:
            best = torch.tensor(posterior.best_observed, dtype=torch.float64)
            return PreparedLogExpectedImprovement(best.expand(observed.shape[:-1]))
        incumbent = observed.amax(-1) if observed.shape[-1] else torch.zeros(observed.shape[:-1], dtype=torch.float64)
        return PreparedLogExpectedImprovement(incumbent)


class PreparedLogExpectedImprovement:
    """Log expected improvement over a given incumbent.

    Args:
        incumbent: ``...``, the level to improve on.
    """

    def __init__(self, incumbent: Tensor) -> None:
        self.incumbent = incumbent

    def __call__(self, posterior: Posterior) -> Tensor:
        """Log expected improvement at each point; see `PreparedAcquisition`."""
        incumbent = self.incumbent
        if posterior.conditioned_mean.shape[-1]:
            incumbent = torch.maximum(incumbent, posterior.conditioned_mean.amax(-1))
        return in_blocks(
            lambda mean, variance: _log_improvement_over(incumbent, mean, variance),
            posterior.moments.mean,
            posterior.moments.conditional_variance,
        )


def _log_improvement_over(incumbent: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    std = positive_std(variance)
    values = std.log() + log_improvement((mean - incumbent[..., None]) / std)
    return log_mean_exp(values.reshape(-1, values.shape[-1]), dim=0)
