"""Laplace's approximation of results that are yes or no, against other libraries, integrals and differences."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import torch
from scipy import integrate, stats
from scipy.special import expit, logit
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from seqopt.data import probability_moments
from seqopt.data.hits import HitCalibration, Tried
from seqopt.models.laplace import laplace_evidence, pseudo_values

Array = npt.NDArray[np.float64]


def _gram(n: int, seed: int) -> Array:
    factor = np.random.default_rng(seed).standard_normal((n, n))
    return factor @ factor.T / n + 0.05 * np.eye(n)


def test_mode_evidence_and_probabilities_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    x, new = rng.uniform(-3, 3, (40, 2)), rng.uniform(-3, 3, (25, 2))
    y = (np.sin(x[:, 0]) + 0.4 * rng.standard_normal(40) > 0).astype(np.float64)
    kernel = ConstantKernel(4.0) * RBF(1.5)
    theirs = GaussianProcessClassifier(kernel, optimizer=None, max_iter_predict=200).fit(x, y)
    K = kernel(x)
    found = laplace_evidence(K, y, 1 - y)
    assert expit(found.latent) == pytest.approx(theirs.base_estimator_.pi_, abs=1e-7)
    assert found.log_evidence == pytest.approx(theirs.log_marginal_likelihood_value_, abs=1e-7)
    # As a Gaussian process with pseudo-values of known noise.
    values, noise = pseudo_values(found)
    across = kernel(new, x)
    solved = np.linalg.solve(K + np.diag(noise), np.column_stack([values, across.T]))
    mean, variance = across @ solved[:, 0], 4.0 - (across * solved[:, 1:].T).sum(1)
    ours = probability_moments(mean, np.sqrt(variance))[0]
    # Theirs integrates the logistic function by a sum of five error functions.
    assert ours == pytest.approx(theirs.predict_proba(new)[:, 1], abs=1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_the_gradient_of_the_evidence_is_its_slope(seed: int) -> None:
    rng = np.random.default_rng(seed)
    K, plus, minus = _gram(5, seed), *rng.integers(0, 5, (2, 5)).astype(float)
    found, step = laplace_evidence(K, plus, minus, 0.3), 1e-5
    for i in range(5):
        for j in range(i + 1):
            change = np.zeros((5, 5))
            change[i, j] = change[j, i] = 1.0
            ends = [laplace_evidence(K + side * step * change, plus, minus, 0.3).log_evidence for side in (1, -1)]
            assert (ends[0] - ends[1]) / (2 * step) == pytest.approx((found.by_gram * change).sum(), abs=1e-6)
    ends = [laplace_evidence(K, plus, minus, 0.3 + side * step).log_evidence for side in (1, -1)]
    assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(found.by_constant, abs=1e-6)


@pytest.mark.parametrize(("scale", "tolerance"), [(0.01, 1e-4), (3.0, 0.1)])
def test_the_evidence_of_two_strings_is_an_integral(scale: float, tolerance: float) -> None:
    K = scale * np.array([[1.0, 0.6], [0.6, 1.0]])
    plus, minus = np.array([3.0, 0.0]), np.array([1.0, 2.0])
    # The trapezoidal rule in independent coordinates: there is nothing better for smooth functions that vanish.
    z = np.linspace(-9, 9, 181)
    pairs = np.stack(np.meshgrid(z, z, indexing="ij"), -1).reshape(-1, 2)
    f = 0.2 + pairs @ np.linalg.cholesky(K).T
    likelihood = np.exp(np.log(expit(f)) @ plus + np.log(expit(-f)) @ minus)
    exact = (likelihood * np.exp(-0.5 * (pairs**2).sum(1))).sum() * (z[1] - z[0]) ** 2 / (2 * np.pi)
    assert laplace_evidence(K, plus, minus, 0.2).log_evidence == pytest.approx(np.log(exact), abs=tolerance)


def test_hits_of_wells_are_so_many_rows() -> None:
    K, hits, wells = _gram(4, 1), [3, 0, 5, 1], [8, 2, 5, 1]
    rows = np.repeat(np.arange(4), wells)
    labels = np.concatenate([[1.0] * k + [0.0] * (n - k) for k, n in zip(hits, wells, strict=True)])
    together = laplace_evidence(K, hits, np.subtract(wells, hits), -0.4)
    apart = laplace_evidence(K[np.ix_(rows, rows)], labels, 1 - labels, -0.4)
    assert apart.latent == pytest.approx(together.latent[rows], abs=1e-8)
    assert apart.log_evidence == pytest.approx(together.log_evidence, abs=1e-8)


@pytest.mark.parametrize(("hits", "wells"), [(6, 20), (1, 20), (0, 5), (1, 1)])
def test_a_string_by_itself_has_the_posterior_of_its_wells(hits: int, wells: int) -> None:
    variance, constant = 4.0, -1.0
    found = laplace_evidence([[variance]], [hits], [wells - hits], constant)
    values, noise = pseudo_values(found)
    gain = variance / (variance + noise[0])
    mean, std = probability_moments([constant + gain * (values[0] - constant)], [np.sqrt(variance * (1 - gain))])

    def density(f: float) -> float:
        return float(stats.norm.pdf(f, constant, 2.0) * expit(f) ** hits * expit(-f) ** (wells - hits))

    total = integrate.quad(density, -20, 20)[0]
    exact = integrate.quad(lambda f: density(f) * expit(f), -20, 20)[0] / total
    square = integrate.quad(lambda f: density(f) * expit(f) ** 2, -20, 20)[0] / total
    # The posterior of the log odds is skew where all wells are alike, and the approximation is not.
    assert mean[0] == pytest.approx(exact, abs=0.035 if hits in (0, wells) else 0.02)
    assert std[0] == pytest.approx(np.sqrt(square - exact**2), abs=0.035 if hits in (0, wells) else 0.02)


def test_many_wells_outweigh_the_prior() -> None:
    # A flat prior of the log odds is Beta(0, 0): the posterior of 300 hits of 1,000 wells is Beta(300, 700).
    found = laplace_evidence([[1e4]], [300], [700])
    assert found.latent[0] == pytest.approx(logit(0.3), abs=1e-3)
    spread = 0.3 * 0.7 / np.sqrt(found.curvature[0])
    assert spread == pytest.approx(stats.beta(300, 700).std(), rel=0.01)


def test_the_order_of_strings_does_not_matter() -> None:
    K, rng = _gram(6, 2), np.random.default_rng(3)
    plus, minus, order = rng.integers(0, 3, 6), rng.integers(0, 3, 6), rng.permutation(6)
    one, other = laplace_evidence(K, plus, minus), laplace_evidence(K[np.ix_(order, order)], plus[order], minus[order])
    assert other.latent == pytest.approx(one.latent[order], abs=1e-9)
    assert other.log_evidence == pytest.approx(one.log_evidence, abs=1e-9)
    assert other.by_gram == pytest.approx(one.by_gram[np.ix_(order, order)], abs=1e-8)


def test_probabilities_hold_where_the_prior_does() -> None:
    rng = np.random.default_rng(5)
    x = rng.uniform(0, 10, 400)
    K = 4.0 * np.exp(-0.5 * (x[:, None] - x) ** 2) + 1e-8 * np.eye(400)
    tried = []
    for _ in range(5):
        f = -1.0 + np.linalg.cholesky(K) @ rng.standard_normal(400)
        y = (rng.random(400) < expit(f)).astype(float)
        found = laplace_evidence(K[:100, :100], y[:100], 1 - y[:100], -1.0)
        values, noise = pseudo_values(found)
        across = K[100:, :100]
        solved = np.linalg.solve(K[:100, :100] + np.diag(noise), np.column_stack([values + 1.0, across.T]))
        mean, variance = -1.0 + across @ solved[:, 0], 4.0 - (across * solved[:, 1:].T).sum(1)
        told = probability_moments(mean, np.sqrt(variance.clip(0)))[0]
        tried += [Tried(1, p, hit) for p, hit in zip(told, y[100:], strict=True)]
    calibration = HitCalibration.of(tried)
    # Strings of one draw share its values, so that sums scatter more than those of independent ones.
    assert abs(calibration.expected - calibration.found) < 0.06 * len(tried)
    assert calibration.skill > 0.2
    for group in calibration.groups:
        assert group.found == pytest.approx(group.told, abs=0.1)


def test_certain_labels_have_finite_pseudo_values() -> None:
    found = laplace_evidence(np.diag([1e6, 1e6]), [1e4, 0.0], [0.0, 1e4])
    values, noise = pseudo_values(found)
    assert np.isfinite(values).all()
    assert np.isfinite(noise).all()
    assert torch.isfinite(torch.from_numpy(values)).all()
