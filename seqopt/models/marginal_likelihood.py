"""The marginal likelihood of a Gaussian process, with its derivatives in closed form: exact but for censored values.

References:
    Rasmussen, C. E., Williams, C. K. I. (2006). Gaussian Processes for Machine Learning. MIT Press, section 5.4.1.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from gpytorch.distributions import MultivariateNormal
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor
from torch.autograd.function import once_differentiable

from seqopt.errors import ModelError
from seqopt.models.censoring import censored_sites
from seqopt.posteriors.linalg import stable_cholesky


class DenseMarginalLogLikelihood(ExactMarginalLogLikelihood):
    r"""`gpytorch.mlls.ExactMarginalLogLikelihood` of one process of up to some thousand points, several times faster.

    For residuals r and covariance K with noise, and :math:`\alpha = K^{-1} r` (Rasmussen and Williams 2006, equations
    5.8 and 5.9),

    .. math::

        \log p = -\tfrac12 r^T \alpha - \tfrac12 \log |K| - \tfrac n2 \log 2 \pi, \qquad
        \frac{\partial \log p}{\partial K} = \tfrac12 (\alpha \alpha^T - K^{-1}).

    Automatic differentiation goes through the Cholesky factorisation instead, which costs several times the
    factorisation itself. Priors enter, and the sum is divided by n, as in the class that this one extends.

    Args:
        likelihood: A Gaussian likelihood.
        model: An exact Gaussian process without batch shape.
        sides: Which targets are limits, see `seqopt.models.censoring`; `None` for none. The density is then that of
            expectation propagation.
        priors: Whether the densities of the priors of parameters enter.

    Example:
        >>> from botorch.models import SingleTaskGP
        >>> x = torch.linspace(0, 1, 5, dtype=torch.float64)[:, None]
        >>> model = SingleTaskGP(x, x**2)
        >>> dense = DenseMarginalLogLikelihood(model.likelihood, model)
        >>> usual = ExactMarginalLogLikelihood(model.likelihood, model)
        >>> output = model(*model.train_inputs)
        >>> torch.allclose(dense(output, model.train_targets), usual(output, model.train_targets))
        True
    """

    def __init__(self, likelihood: Any, model: Any, sides: Tensor | None = None, *, priors: bool = True) -> None:
        super().__init__(likelihood, model)
        self.sides = sides
        self.priors = priors

    def forward(self, function_dist: MultivariateNormal, target: Tensor, *params: Any, **kwargs: Any) -> Tensor:
        """Logarithm of the marginal density of ``target`` and of the priors, per point.

        Args:
            function_dist: What the model in training mode returns.
            target: The n targets.
            params: Passed to the likelihood.
            kwargs: Passed to the likelihood.
        """
        output = self.likelihood(function_dist, *params, **kwargs)
        covariance = output.lazy_covariance_matrix.to_dense()
        residuals = target - output.mean
        if self.sides is None:
            density = _LogDensity.apply(covariance, residuals)  # type: ignore[no-untyped-call]
        else:
            density = _CensoredLogDensity.apply(covariance, residuals, self.sides)  # type: ignore[no-untyped-call]
        total = self._add_other_terms(density, params) if self.priors else density
        return total.div(target.numel())


class _LogDensity(torch.autograd.Function):
    """Logarithm of the normal density of residuals, given their covariance."""

    @staticmethod
    def forward(ctx: Any, covariance: Tensor, residuals: Tensor) -> Tensor:
        factor, _ = stable_cholesky(covariance)
        alpha = torch.cholesky_solve(residuals[:, None], factor)[:, 0]
        ctx.save_for_backward(factor, alpha)
        log_determinant = 2.0 * factor.diagonal().log().sum()
        return -0.5 * (residuals @ alpha + log_determinant + len(residuals) * math.log(2.0 * math.pi))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        return _gradients(ctx, gradient)


class _CensoredLogDensity(torch.autograd.Function):
    """As `_LogDensity`, where some residuals are those of limits; `seqopt.models.censoring` has the formulas."""

    @staticmethod
    def forward(ctx: Any, covariance: Tensor, residuals: Tensor, sides: Tensor) -> Tensor:
        sites = censored_sites(covariance, residuals, sides)
        if not math.isfinite(sites.log_density):
            raise ModelError(f"expectation propagation for {int(sides.count_nonzero())} limits has not converged")
        factor, _ = stable_cholesky(covariance + sites.variance.diag())
        ctx.save_for_backward(factor, torch.cholesky_solve(sites.residuals[:, None], factor)[:, 0])
        return sites.log_density

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        return *_gradients(ctx, gradient), None


def _gradients(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
    """By the covariance and by the residuals, from the factor and alpha."""
    factor, alpha = ctx.saved_tensors
    by_covariance = torch.cholesky_inverse(factor).neg_().addr_(alpha, alpha).mul_(0.5 * gradient)
    return by_covariance, -gradient * alpha
