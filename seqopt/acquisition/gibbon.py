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
from collections.abc import Callable
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from seqopt.acquisition.max_values import ExactMaxValueSampler, GumbelMaxValueSampler, MaxValueSampler
from seqopt.acquisition.numerics import (
    in_blocks,
    log_mean_exp,
    log_neg_log1p_neg,
    ordered_exp,
    positive_std,
    truncation_shrinkage,
)
from seqopt.acquisition.protocols import Posterior, PreparedAcquisition
from seqopt.errors import InputError
from seqopt.posteriors import Moments
from seqopt.utils.config import Configurable

Repulsion = float | Literal["1/B", "1/B^2", "1/m^2"] | Callable[[int], float]


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
    return _log_gibbon(gamma, rho2, 1.0 - rho2)


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
    log_alpha = _log_single(mean, variance, variance, variance + noise, noise, max_values)
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


class GIBBON(Configurable):
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
        >>> from seqopt.acquisition import DensePosterior
        >>> covariance = torch.tensor([[1.0, 0.6, 0.1], [0.6, 1.2, 0.3], [0.1, 0.3, 0.8]])
        >>> posterior = DensePosterior(torch.tensor([0.5, 0.2, 0.0]), covariance, 0.1)
        >>> prepared = GIBBON().prepare(posterior, np.random.default_rng(0))
        >>> first = int(prepared(posterior).argmax())
        >>> first, int(prepared(posterior.given(first)).argmax())
        (0, 2)
    """

    name = "gibbon"

    def __init__(
        self, num_samples: int = 5, sampler: str | MaxValueSampler = "exact", repulsion: Repulsion = "1/B"
    ) -> None:
        if num_samples < 1:
            raise InputError(f"num_samples is {num_samples}; expected at least 1")
        self.num_samples = num_samples
        self.sampler = _resolve_sampler(sampler)
        self.repulsion = repulsion
        _resolve_repulsion(repulsion, 1)

    @property
    def monotone(self) -> bool:
        """True where the repulsion is known not to be negative; see `MonotoneAcquisition`."""
        return not callable(self.repulsion)

    def prepare(self, posterior: Posterior, rng: np.random.Generator, batch_size: int = 1) -> PreparedAcquisition:
        """Draw the max-values of one step; see `seqopt.acquisition.protocols.Acquisition`."""
        max_values = self.sampler(posterior, self.num_samples, rng)
        return PreparedGIBBON(max_values, _resolve_repulsion(self.repulsion, batch_size))


class PreparedGIBBON:
    """GIBBON with given max-values.

    Args:
        max_values: ``... x M``, draws of g*.
        repulsion: Factor of the log-determinant part; ``"1/m^2"`` follows the number of points conditioned on.
    """

    def __init__(self, max_values: Tensor, repulsion: float | Literal["1/m^2"] = 1.0) -> None:
        self.max_values = max_values
        self.repulsion = repulsion
        # The single-point part does not change while a batch is filled: it is kept for the tensors, which nobody
        # changes in place, that it was computed from.
        self._key: tuple[Tensor, ...] = ()
        self._single = torch.empty(0)

    def __call__(self, posterior: Posterior) -> Tensor:
        """Increment of the batch's value for each point, in nats; see `PreparedAcquisition`."""
        moments = posterior.moments
        single, factor = self._single_values(moments), self._factor(posterior)
        if factor == 0.0:
            return single
        total = moments.outcome_variance
        lost = (total - moments.remaining_variance) / total.clamp_min(1e-300)
        increment = (0.5 * factor) * torch.log1p(-lost)
        return single + increment.reshape(-1, increment.shape[-1]).mean(0)

    def _factor(self, posterior: Posterior) -> float:
        if self.repulsion == "1/m^2":
            return 1.0 / max(1, posterior.conditioned_mean.shape[-1]) ** 2
        return self.repulsion

    def _single_values(self, moments: Moments) -> Tensor:
        key = (
            moments.mean,
            moments.variance,
            moments.covariance,
            moments.outcome_variance,
            moments.residual_variance,
        )
        if len(key) == len(self._key) and all(one is other for one, other in zip(key, self._key, strict=True)):
            return self._single
        found = in_blocks(self._average, *key)
        # A look at a few points in between does not drop what was computed for all.
        if len(found) >= len(self._single):
            self._key, self._single = key, found
        return found

    def _average(
        self, mean: Tensor, variance: Tensor, covariance: Tensor, outcome_variance: Tensor, residual: Tensor
    ) -> Tensor:
        log_alpha = _log_single(mean, variance, covariance, outcome_variance, residual, self.max_values)
        return ordered_exp(log_mean_exp(log_alpha.reshape(-1, log_alpha.shape[-1]), dim=0))


def _log_single(
    mean: Tensor, variance: Tensor, covariance: Tensor, outcome_variance: Tensor, residual: Tensor, max_values: Tensor
) -> Tensor:
    """Logarithm of the single-point value, averaged over max-values, from moments of target and outcome."""
    tiny = torch.finfo(variance.dtype).tiny
    total = outcome_variance.clamp_min(tiny)
    # rho^2 = covariance^2 / (variance total), in the order that is exact where the covariance is the variance.
    rho2 = covariance / variance.clamp_min(tiny) * (covariance / total)
    gamma = (max_values[..., None] - mean[..., None, :]) / positive_std(variance)[..., None, :]
    log_values = _log_gibbon(gamma, rho2[..., None, :], (residual / total)[..., None, :])
    return log_mean_exp(log_values, dim=-2)


def _log_gibbon(gamma: Tensor, rho2: Tensor, residual: Tensor) -> Tensor:
    log_shrinkage, remaining = truncation_shrinkage(gamma)
    return log_neg_log1p_neg(rho2.log() + log_shrinkage, residual + rho2 * remaining) - math.log(2.0)


def _resolve_sampler(sampler: str | MaxValueSampler) -> MaxValueSampler:
    if isinstance(sampler, str):
        if sampler == "exact":
            return ExactMaxValueSampler()
        if sampler == "gumbel":
            return GumbelMaxValueSampler()
    elif isinstance(sampler, MaxValueSampler) and not isinstance(sampler, type):
        return sampler
    raise InputError(f"unknown max-value sampler {sampler!r}; expected 'exact', 'gumbel' or a MaxValueSampler")


def _resolve_repulsion(repulsion: Repulsion, batch_size: int) -> float | Literal["1/m^2"]:
    if callable(repulsion):
        return float(repulsion(batch_size))
    if isinstance(repulsion, str):
        if repulsion == "1/B":
            return 1.0 / batch_size
        if repulsion == "1/B^2":
            return 1.0 / batch_size**2
        if repulsion == "1/m^2":
            return repulsion
    elif repulsion >= 0:
        return float(repulsion)
    raise InputError(f"repulsion is {repulsion!r}; expected at least 0, 1/B, 1/B^2, 1/m^2 or a function")
