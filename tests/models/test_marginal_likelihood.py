"""The closed-form marginal likelihood against gpytorch's."""

from __future__ import annotations

import gpytorch
import numpy as np
import pytest
import torch
from botorch.models import SingleTaskGP
from gpytorch.mlls import ExactMarginalLogLikelihood
from scipy.stats import multivariate_normal

from seqopt.models.marginal_likelihood import DenseMarginalLogLikelihood, _LogDensity


def matrix(n, seed=0):
    factor = np.random.default_rng(seed).standard_normal((n, n))
    return torch.from_numpy(factor @ factor.T + n * np.eye(n))


@pytest.mark.parametrize("n", [1, 7])
def test_density_is_that_of_scipy(n):
    covariance, residuals = matrix(n), torch.from_numpy(np.random.default_rng(1).standard_normal(n))
    value = _LogDensity.apply(covariance, residuals)
    assert value.item() == pytest.approx(multivariate_normal(np.zeros(n), covariance.numpy()).logpdf(residuals.numpy()))


def test_derivatives_are_those_of_finite_differences():
    covariance, residuals = matrix(5), torch.from_numpy(np.random.default_rng(1).standard_normal(5))

    def density(factor, r):
        return _LogDensity.apply(factor @ factor.T + covariance, r)

    factor = torch.from_numpy(np.random.default_rng(2).standard_normal((5, 5))).requires_grad_()
    assert torch.autograd.gradcheck(density, (factor, residuals.requires_grad_()))


def test_value_and_gradients_are_those_of_gpytorch_priors_included():
    rng = np.random.default_rng(3)
    x = torch.from_numpy(rng.uniform(size=(20, 2)))
    y = torch.from_numpy(rng.standard_normal((20, 1)))
    kernel = gpytorch.kernels.ScaleKernel(
        gpytorch.kernels.MaternKernel(nu=2.5, lengthscale_prior=gpytorch.priors.LogNormalPrior(0.0, 1.0)),
        outputscale_prior=gpytorch.priors.GammaPrior(2.0, 0.5),
    )
    model = SingleTaskGP(x, y, covar_module=kernel)
    results = []
    for objective in (DenseMarginalLogLikelihood, ExactMarginalLogLikelihood):
        model.zero_grad()
        value = objective(model.likelihood, model)(model(*model.train_inputs), model.train_targets)
        value.backward()
        results.append([value.item(), *(parameter.grad.norm().item() for parameter in model.parameters())])
    np.testing.assert_allclose(*results, rtol=1e-8)
