"""Joint draws and the factorisation of covariances that are singular to rounding."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from seqopt.acquisition import DensePosterior
from seqopt.acquisition.sampling import draw_joint, largest_upper_confidence
from seqopt.posteriors.linalg import stable_cholesky


def test_joint_draws_have_the_mean_and_covariance() -> None:
    mean = torch.tensor([1.0, -2.0], dtype=torch.float64)
    covariance = torch.tensor([[2.0, -0.8], [-0.8, 1.0]], dtype=torch.float64)
    draws = draw_joint(mean, stable_cholesky(covariance)[0], 40_000, np.random.default_rng(0))
    np.testing.assert_allclose(draws.mean(1), mean, atol=0.03)
    np.testing.assert_allclose(draws.cov(), covariance, atol=0.05)


def test_selection_by_upper_confidence(make_posterior: Callable[..., DensePosterior]) -> None:
    posterior = make_posterior(points=20, draws=2)
    bound = (posterior.moments.mean + 2 * posterior.moments.variance.sqrt()).mean(0)
    expected = sorted(np.argsort(-bound.numpy())[:6].tolist())
    assert largest_upper_confidence(posterior, 6, beta=4.0).tolist() == expected
    narrow = DensePosterior(torch.tensor([0.0, 2.5]), torch.diag(torch.tensor([1.0, 0.01])), 0.1)
    assert largest_upper_confidence(narrow, 1, beta=4.0).tolist() == [1]  # 2 x 1 against 2.5 + 2 x 0.1
    assert largest_upper_confidence(posterior, 21).tolist() == list(range(20))
