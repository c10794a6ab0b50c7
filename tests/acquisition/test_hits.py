"""The probability of a hit."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import integrate, stats
from scipy.special import expit

from seqopt.acquisition import DensePosterior, HitProbability
from seqopt.errors import InputError


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_scores_are_logarithms_of_integrals(dtype: torch.dtype) -> None:
    mean, variance = torch.tensor([-8.0, -1.0, 0.0, 3.0], dtype=dtype), torch.tensor([0.5, 4.0, 1.0, 9.0], dtype=dtype)
    posterior = DensePosterior(mean, torch.diag(variance), 4.0)
    scores = HitProbability().prepare(posterior, np.random.default_rng(0))(posterior)
    for score, m, v in zip(scores.tolist(), mean.tolist(), variance.tolist(), strict=True):
        exact = integrate.quad(lambda z, m=m, v=v: expit(m + v**0.5 * z) * stats.norm.pdf(z), -12, 12)[0]
        assert score == pytest.approx(np.log(exact), abs=1e-6)


def test_draws_are_averaged_as_probabilities() -> None:
    mean = torch.tensor([[0.0, 1.0], [-6.0, 1.0]])
    posterior = DensePosterior(mean, torch.zeros(2, 2, 2), 4.0)
    scores = HitProbability().prepare(posterior, np.random.default_rng(0))(posterior)
    assert scores.exp().tolist() == pytest.approx([(0.5 + expit(-6.0)) / 2, expit(1.0)], abs=1e-7)


def test_a_string_of_which_little_is_known_comes_before_a_poor_one() -> None:
    posterior = DensePosterior(torch.tensor([-3.0, -3.0]), torch.diag(torch.tensor([0.01, 9.0])), 4.0)
    sure, unsure = HitProbability().prepare(posterior, np.random.default_rng(0))(posterior).tolist()
    assert unsure > sure


def test_optimism_falls_with_what_is_chosen() -> None:
    covariance = torch.tensor([[1.0, 0.95], [0.95, 1.0]])
    posterior = DensePosterior(torch.zeros(2), covariance, 0.1)
    prepared = HitProbability(beta=1.0).prepare(posterior, np.random.default_rng(0))
    assert float(prepared(posterior.given(0))[1]) < float(prepared(posterior)[1])
    plain = HitProbability().prepare(posterior, np.random.default_rng(0))
    assert float(plain(posterior.given(0))[1]) == float(plain(posterior)[1])


def test_beta_is_not_negative() -> None:
    with pytest.raises(InputError, match="zero or more"):
        HitProbability(-1.0)
