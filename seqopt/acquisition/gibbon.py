"""GIBBON: General-purpose Information-Based Bayesian OptimisatioN.

For noisy observations A_i = y_i of points whose latent values are C_i = g(x_i), with sampled maxima m in M
of g*,

    alpha = 1/2 log|R| - 1/(2 |M|) sum_m sum_i log(1 - rho_i^2 r_i (gamma_i + r_i)),

R the correlation matrix of A, rho_i = corr(A_i, C_i), gamma_i = (m - mean_i) / std_i and r = phi(gamma) /
Phi(gamma). It is a lower bound, in nats, of the information that the batch gives about g*. Two readings
(section 5.5 of the thesis): the sum of the single-point values plus 1/2 log|R|, and half the log-determinant
of a determinantal point process with kernel L_ij = q_i q_j R_ij, q_i = exp(alpha({x_i})).

Greedy batches need no determinant. Adding x to B multiplies |cov(A)| by s(x|B), the noisy variance of y at x
given that the points of B are observed, and the product of the variances by s(x), so log|R| telescopes and
the increment is

    alpha(B + x) - alpha(B) = alpha({x}) + 1/2 log(s(x|B) / s(x)).

Where a query measures something else than its target (another fidelity, a plate of its own), rho and s are those of the
outcome, and gamma that of the target (`seqopt.posteriors.Moments`).

References:
    Moss, H. B. et al. (2021). GIBBON: General-purpose Information-Based Bayesian OptimisatioN. JMLR 22(235).
    Moss, H. B. (2021). General-purpose Information-Theoretical Bayesian Optimisation. PhD thesis,
        definitions 5.4.3 and 5.4.4, with R_ij = S_ij / sqrt(S_ii S_jj).
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

from seqopt.acquisition.information import InformationAcquisition, PreparedInformation, Repulsion, log_single
from seqopt.acquisition.numerics import log_neg_log1p_neg, truncation_shrinkage

__all__ = ["GIBBON", "PreparedGIBBON", "Repulsion", "gibbon", "log_gibbon", "log_gibbon_of", "single_gibbon"]


def log_gibbon(gamma: Tensor, rho2: Tensor) -> Tensor:
    """Logarithm of the single-point GIBBON value for one max-value, log(-1/2 log(1 - rho2 r (gamma + r))).

    Finite and strictly decreasing in gamma long after the value itself has underflowed (float32 from gamma
    of about 15 on).

    Args:
        gamma: (m - mean) / std, any shape, float32 or float64.
        rho2: Squared correlation of observation and latent value, variance / (variance + noise variance) for
            one fidelity; inside (0, 1], broadcastable to ``gamma``.

    Returns:
        Same shape and dtype as ``gamma``.

    Example:
        >>> log_gibbon(torch.tensor([0.0, 100.0]), torch.tensor(0.9))
        tensor([-8.5464e-01, -4.9971e+03])
    """
    return log_gibbon_of(gamma, rho2, 1.0 - rho2)


def single_gibbon(
    mean: Tensor, variance: Tensor, noise_variance: Tensor | float, max_values: Tensor, *, log: bool = False
) -> Tensor:
    """GIBBON of each point on its own: the information in nats that its noisy observation gives about g*.

    Args:
        mean: ``... x N``, posterior mean.
        variance: ``... x N``, noiseless posterior variance.
        noise_variance: A number, or ``...``.
        max_values: ``... x M``, draws of g*.
        log: Return the logarithm, which does not underflow.

    Returns:
        ``... x N``. A point of no variance has value 0.

    Example:
        >>> mean, variance = torch.tensor([0.5, 0.2, 0.0]), torch.tensor([1.0, 1.2, 0.8])
        >>> single_gibbon(mean, variance, 0.1, torch.tensor([1.8, 2.2]))
        tensor([0.1181, 0.0989, 0.0370])
    """
    noise = torch.as_tensor(noise_variance, dtype=variance.dtype)[..., None]
    log_alpha = log_single(log_gibbon_of, mean, variance, variance, variance + noise, noise, max_values)
    return log_alpha if log else log_alpha.exp()


def gibbon(mean: Tensor, covariance: Tensor, noise_variance: Tensor | float, max_values: Tensor) -> Tensor:
    """GIBBON of a whole batch by its determinant: definition 5.4.3.

    Args:
        mean: ``... x B``, posterior mean at the batch.
        covariance: ``... x B x B``, noiseless posterior covariance.
        noise_variance: A number, or ``...``.
        max_values: ``... x M``, draws of g*.

    Returns:
        ``...``, in nats. It can be negative: the bound is loose for strongly correlated points.

    Example:
        >>> mean, covariance = torch.tensor([0.5, 0.2]), torch.tensor([[1.0, 0.6], [0.6, 1.2]])
        >>> gibbon(mean, covariance, 0.1, torch.tensor([1.8, 2.2]))
        tensor(0.0720)
    """
    variance = covariance.diagonal(dim1=-2, dim2=-1)
    noise = torch.as_tensor(noise_variance, dtype=covariance.dtype)
    noisy = covariance + noise[..., None, None] * torch.eye(covariance.shape[-1], dtype=covariance.dtype)
    log_correlation = torch.logdet(noisy) - (variance + noise[..., None]).log().sum(-1)
    return 0.5 * log_correlation + single_gibbon(mean, variance, noise, max_values).sum(-1)


class GIBBON(InformationAcquisition):
    """GIBBON acquisition function, for single points and greedy batches.

    A score is the increment of the batch's value, in nats, averaged over kernel-parameter draws. Values
    below 1e-300 are replaced by positive ones in the order of their logarithms
    (`seqopt.acquisition.numerics.ordered_exp`), so the argmax is right even where every value underflows.

    Args:
        num_samples: Number of max-values per step.
        sampler: ``"exact"`` (`ExactMaxValueSampler`), ``"gumbel"`` (`GumbelMaxValueSampler`), or any
            `MaxValueSampler`.
        repulsion: Factor of 1/2 log(s(x|B) / s(x)), the part that keeps a batch diverse. ``"1/B"``, the default, and
            ``"1/B^2"`` take the batch size, pending points included, that `prepare` is told; any function of the
            batch size will do. 1 is the published value; on ZINC, batches of 10 find good molecules later with it,
            and equally good ones in the end (the numbers are in docs/results.md). ``"1/m^2"`` takes the number m of
            points chosen or pending so far, as the Trieste library does: the factors are 1, 1/4, 1/9, ...

    Raises:
        InputError: For an unknown sampler or repulsion, or ``num_samples`` less than 1.

    Example:
        >>> import numpy as np
        >>> from seqopt.acquisition import DensePosterior
        >>> covariance = torch.tensor([[1.0, 0.6, 0.1], [0.6, 1.2, 0.3], [0.1, 0.3, 0.8]])
        >>> posterior = DensePosterior(torch.tensor([0.5, 0.2, 0.0]), covariance, 0.1)
        >>> prepared = GIBBON().prepare(posterior, np.random.default_rng(0))
        >>> first = int(prepared(posterior).argmax())
        >>> first, int(prepared(posterior.given(first)).argmax())
        (0, 2)
    """

    name = "gibbon"
    sees_outcomes = True

    def prepared(self, max_values: Tensor, repulsion: float | Literal["1/m^2"]) -> PreparedGIBBON:
        """GIBBON with given max-values."""
        return PreparedGIBBON(max_values, repulsion)


class PreparedGIBBON(PreparedInformation):
    """GIBBON with given max-values.

    Args:
        max_values: ``... x M``, draws of g*.
        repulsion: Factor of the log-determinant part; ``"1/m^2"`` follows the number of points conditioned on.
    """

    def __init__(self, max_values: Tensor, repulsion: float | Literal["1/m^2"] = 1.0) -> None:
        super().__init__(max_values, repulsion, log_gibbon_of)


def log_gibbon_of(gamma: Tensor, rho2: Tensor, residual: Tensor) -> Tensor:
    """`log_gibbon` with 1 - rho2 given as well, which keeps its digits where rho2 rounds to 1."""
    log_shrinkage, remaining = truncation_shrinkage(gamma)
    return log_neg_log1p_neg(rho2.log() + log_shrinkage, residual + rho2 * remaining) - math.log(2.0)
