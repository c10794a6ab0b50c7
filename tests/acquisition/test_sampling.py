"""Joint draws and the factorisation of covariances that are singular to rounding."""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np
import pytest
import torch

from seqopt.acquisition import DensePosterior
from seqopt.acquisition.sampling import draw_joint, largest_upper_confidence, stable_cholesky
from seqopt.errors import ModelError


def test_no_jitter_where_none_is_needed() -> None:
    covariance = torch.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=torch.float64)
    factor, jitter = stable_cholesky(covariance)
    assert float(jitter) == 0.0
    torch.testing.assert_close(factor @ factor.T, covariance)


def test_jitter_grows_only_as_needed_and_for_each_matrix() -> None:
    rank_one = np.outer(np.arange(1.0, 6.0), np.arange(1.0, 6.0))
    # The last one has a negative eigenvalue of -1e-8 of its mean variance.
    negative = np.diag([1.0, 1.0, 1.0, 2.0, -5e-8])
    covariance = torch.from_numpy(np.stack([np.eye(5), rank_one, negative]))
    factor, jitter = stable_cholesky(covariance)
    assert float(jitter[0]) == 0.0
    assert 0.0 < float(jitter[1]) <= 1e-10
    assert float(jitter[2]) == pytest.approx(1e-7)
    torch.testing.assert_close(factor[1] @ factor[1].T, covariance[1], rtol=1e-9, atol=1e-8)


def test_noticeable_jitter_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="seqopt.acquisition.sampling"):
        stable_cholesky(torch.ones(3, 3, dtype=torch.float64))
        assert not caplog.records
        stable_cholesky(torch.diag(torch.tensor([1.0, 1.0, -1e-5], dtype=torch.float64)))
    assert "jitter 1e-04" in caplog.text


@pytest.mark.parametrize("value", [-1.0, float("nan")])
def test_what_is_no_covariance_is_refused(value: float) -> None:
    with pytest.raises(ModelError, match="2 points"):
        stable_cholesky(torch.diag(torch.tensor([1.0, value], dtype=torch.float64)))


def test_joint_draws_have_the_mean_and_covariance() -> None:
    mean = torch.tensor([1.0, -2.0], dtype=torch.float64)
    covariance = torch.tensor([[2.0, -0.8], [-0.8, 1.0]], dtype=torch.float64)
    draws = draw_joint(mean, stable_cholesky(covariance)[0], 40_000, np.random.default_rng(0))
    np.testing.assert_allclose(draws.mean(1), mean, atol=0.03)
    np.testing.assert_allclose(draws.cov(), covariance, atol=0.05)


def test_selection_by_upper_confidence(make_posterior: Callable[..., DensePosterior]) -> None:
    posterior = make_posterior(points=20, draws=2)
    bound = (posterior.mean + 2 * posterior.variance.sqrt()).mean(0)
    expected = sorted(np.argsort(-bound.numpy())[:6].tolist())
    assert largest_upper_confidence(posterior, 6, beta=4.0).tolist() == expected
    narrow = DensePosterior(torch.tensor([0.0, 2.5]), torch.diag(torch.tensor([1.0, 0.01])), 0.1)
    assert largest_upper_confidence(narrow, 1, beta=4.0).tolist() == [1]  # 2 x 1 against 2.5 + 2 x 0.1
    assert largest_upper_confidence(posterior, 21).tolist() == list(range(20))
