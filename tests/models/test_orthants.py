"""Expectation propagation for positive Gaussian vectors, against closed forms and quadrature."""

import math

import numpy as np
import pytest
import torch
from scipy import integrate, stats

from seqopt.errors import ModelError
from seqopt.models.orthants import positive_orthant


def _orthant(mean, covariance):
    return positive_orthant(torch.tensor(mean, dtype=torch.float64), torch.tensor(covariance, dtype=torch.float64))


def _posterior(mean, covariance, found):
    """Moments under the prior times the sites."""
    mean, covariance = np.asarray(mean, dtype=float), np.asarray(covariance, dtype=float)
    gain = covariance @ np.linalg.inv(covariance + np.diag(found.variance.numpy()))
    return mean + gain @ (found.mean.numpy() - mean), covariance - gain @ covariance


@pytest.mark.parametrize("z", [-1e4, -70.0, -59.0, -5.0, 0.0, 3.0])
def test_one_element_has_the_moments_of_a_truncated_normal_distribution(z):
    found = _orthant([2.0 * z], [[4.0]])
    mean, covariance = _posterior([2.0 * z], [[4.0]], found)
    assert found.log_probability.item() == pytest.approx(stats.norm.logcdf(z), rel=1e-9)
    if z > -60:
        wanted = stats.truncnorm(-z, np.inf, loc=2.0 * z, scale=2.0)
        assert mean[0] == pytest.approx(wanted.mean(), rel=1e-6)
        assert covariance[0, 0] == pytest.approx(wanted.var(), rel=1e-3 if z < -50 else 1e-6)
    else:
        # The excess over a far limit is exponential, of mean sd / |z|.
        assert mean[0] == pytest.approx(2.0 / -z, rel=1e-3)


def test_few_elements_have_about_the_moments_of_quadrature():
    mean, covariance = np.array([0.3, -0.6]), np.array([[1.0, 0.6], [0.6, 1.5]])
    found = _orthant(mean, covariance)
    density = stats.multivariate_normal(mean, covariance).pdf

    def integral(weight):
        return integrate.dblquad(lambda b, a: weight(a, b) * density([a, b]), 0, 8, 0, 8, epsabs=1e-9)[0]

    z = integral(lambda a, b: 1.0)
    wanted = np.array([integral(lambda a, b: a), integral(lambda a, b: b)]) / z
    spread = np.array([integral(lambda a, b: a * a), integral(lambda a, b: b * b)]) / z - wanted**2
    posterior, variance = _posterior(mean, covariance, found)
    assert found.log_probability.item() == pytest.approx(math.log(z), abs=2e-3)
    assert posterior == pytest.approx(wanted, abs=5e-3)
    assert np.diag(variance) == pytest.approx(spread, abs=1e-2)


@pytest.mark.slow
def test_ten_elements_have_about_the_moments_of_many_draws():
    rng = np.random.default_rng(0)
    root = rng.standard_normal((10, 12)) / 3
    covariance, mean = root @ root.T + 0.2 * np.eye(10), rng.standard_normal(10) + 1.5
    found = _orthant(mean, covariance)
    draws = rng.multivariate_normal(mean, covariance, 1_000_000)
    kept = draws[(draws > 0).all(1)]
    assert len(kept) > 10_000
    posterior, variance = _posterior(mean, covariance, found)
    assert found.log_probability.item() == pytest.approx(math.log(len(kept) / len(draws)), abs=0.03)
    assert posterior == pytest.approx(kept.mean(0), abs=0.03)
    assert np.sqrt(np.diag(variance)) == pytest.approx(kept.std(0), rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("noise", [1e-4, 1e-2, 1.0])
@pytest.mark.parametrize("mean", [-100.0, -5.0, 0.0, 3.0])
def test_replicates_converge(noise, mean):
    # Sites of equal conditions overshoot most when all are updated at once.
    found = _orthant(np.full(60, mean), np.ones((60, 60)) + noise * np.eye(60))
    assert math.isfinite(found.log_probability.item())
    assert found.mean.numpy() == pytest.approx(np.full(60, found.mean[0].item()), rel=1e-4)
    assert bool((found.variance > 0).all())


def test_problems_side_by_side_are_as_alone():
    rng = np.random.default_rng(1)
    means = rng.standard_normal((3, 4))
    roots = rng.standard_normal((3, 4, 6))
    covariances = roots @ roots.swapaxes(1, 2)
    together = _orthant(means, covariances)
    for place in range(3):
        alone = _orthant(means[place], covariances[place])
        assert together.log_probability[place].item() == pytest.approx(alone.log_probability.item(), abs=1e-9)
        assert together.mean[place].numpy() == pytest.approx(alone.mean.numpy(), rel=1e-6)


def test_the_order_of_elements_and_a_start_make_no_difference():
    rng = np.random.default_rng(2)
    root = rng.standard_normal((6, 8))
    mean, covariance, order = rng.standard_normal(6), root @ root.T, rng.permutation(6)
    one, other = _orthant(mean, covariance), _orthant(mean[order], covariance[np.ix_(order, order)])
    assert other.mean.numpy() == pytest.approx(one.mean.numpy()[order], rel=1e-6)
    again = positive_orthant(
        torch.tensor(mean), torch.tensor(covariance), (2.0 * one.mean, 3.0 * one.variance), tolerance=1e-8
    )
    assert again.mean.numpy() == pytest.approx(one.mean.numpy(), rel=1e-5)
    assert again.log_probability.item() == pytest.approx(one.log_probability.item(), abs=1e-10)


def test_what_is_no_covariance_is_refused():
    with pytest.raises(ModelError, match="not finite, or a variance is not positive"):
        _orthant([0.0], [[0.0]])
    with pytest.raises(ModelError, match="not finite"):
        _orthant([math.nan], [[1.0]])
