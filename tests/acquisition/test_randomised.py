"""Thompson sampling and random choice."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy import stats

from seqopt.acquisition import DensePosterior, RandomAcquisition, ThompsonSampling
from seqopt.errors import InputError

MEAN = np.array([0.3, 0.0, 0.5])
COVARIANCE = np.array([[1.0, 0.6, 0.1], [0.6, 1.5, 0.2], [0.1, 0.2, 0.4]])
DRAWS = 6000


def probability_of_being_largest(mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Exact, from the bivariate distribution of the differences."""
    probabilities = []
    for i in range(3):
        others = [j for j in range(3) if j != i]
        differences = np.zeros((2, 3))
        differences[[0, 1], others] = 1
        differences[:, i] = -1
        normal = stats.multivariate_normal(differences @ mean, differences @ covariance @ differences.T)
        probabilities.append(normal.cdf([0.0, 0.0]))
    return np.array(probabilities)


def frequencies(posterior: DensePosterior, rng: np.random.Generator) -> np.ndarray:
    prepared = ThompsonSampling().prepare(posterior, rng)
    return np.bincount([int(prepared(posterior).argmax()) for _ in range(DRAWS)], minlength=3) / DRAWS


def test_points_are_chosen_as_often_as_they_are_the_maximum() -> None:
    posterior = DensePosterior(torch.from_numpy(MEAN), torch.from_numpy(COVARIANCE), 0.1)
    posterior = posterior.given(2)  # makes no difference
    expected = probability_of_being_largest(MEAN, COVARIANCE)
    assert expected.sum() == pytest.approx(1, abs=1e-4)
    np.testing.assert_allclose(frequencies(posterior, np.random.default_rng(0)), expected, atol=0.026)


def test_parameter_draws_are_mixed() -> None:
    posterior = DensePosterior(
        torch.from_numpy(np.stack([MEAN, MEAN[::-1] - 1])),
        torch.from_numpy(np.stack([COVARIANCE, COVARIANCE[::-1, ::-1]])),
        0.1,
    )
    first = probability_of_being_largest(MEAN, COVARIANCE)
    expected = (first + first[::-1]) / 2
    np.testing.assert_allclose(frequencies(posterior, np.random.default_rng(0)), expected, atol=0.026)


def test_points_outside_the_selection_are_ruled_out() -> None:
    posterior = DensePosterior(torch.tensor([0.0, 5.0, 1.0, 4.0]), torch.diag(torch.tensor([9.0, 0.1, 0.1, 0.1])), 0.1)
    scores = ThompsonSampling(max_points=2).prepare(posterior, np.random.default_rng(0))(posterior)
    assert torch.isfinite(scores).tolist() == [True, True, False, False]


def test_every_call_is_a_fresh_draw_of_the_posterior_it_is_given(
    make_posterior: Callable[..., DensePosterior],
) -> None:
    posterior, other = make_posterior(points=4), make_posterior(points=7, seed=2)
    prepared = ThompsonSampling().prepare(posterior, np.random.default_rng(0))
    first, second = prepared(posterior), prepared(posterior)
    assert not torch.equal(first, second)
    assert prepared(other).shape == (7,)
    draws = torch.stack([prepared(other) for _ in range(3000)])
    _, covariance = other.joint(torch.arange(7))
    np.testing.assert_allclose(draws.mean(0), other.moments.mean, atol=0.2)
    np.testing.assert_allclose(draws.T.cov(), covariance, atol=0.08 * float(covariance.abs().max()) + 0.1)


def test_random_scores_are_uniform_and_fresh(make_posterior: Callable[..., DensePosterior]) -> None:
    posterior = make_posterior(points=3, draws=2)
    prepared = RandomAcquisition().prepare(posterior, np.random.default_rng(0))
    chosen = np.bincount([int(prepared(posterior).argmax()) for _ in range(3000)], minlength=3)
    assert stats.chisquare(chosen).pvalue > 1e-3


def test_arguments_are_checked() -> None:
    with pytest.raises(InputError, match="max_points is 0"):
        ThompsonSampling(max_points=0)
    with pytest.raises(InputError, match="beta is -1"):
        ThompsonSampling(beta=-1.0)
