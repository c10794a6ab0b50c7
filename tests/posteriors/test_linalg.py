"""Cholesky factors of covariances that are singular to rounding."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import torch

from seqopt.errors import ModelError
from seqopt.posteriors.linalg import stable_cholesky


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
    with caplog.at_level(logging.WARNING, logger="seqopt.posteriors.linalg"):
        stable_cholesky(torch.ones(3, 3, dtype=torch.float64))
        assert not caplog.records
        stable_cholesky(torch.diag(torch.tensor([1.0, 1.0, -1e-5], dtype=torch.float64)))
    assert "jitter 1e-04" in caplog.text


@pytest.mark.parametrize("value", [-1.0, float("nan")])
def test_what_is_no_covariance_is_refused(value: float) -> None:
    with pytest.raises(ModelError, match="2 points"):
        stable_cholesky(torch.diag(torch.tensor([1.0, value], dtype=torch.float64)))
