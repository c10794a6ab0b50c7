"""Gaussian processes of finitely many features: the weight posterior against its formula and the usual regression."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from seqopt.errors import InputError, ModelError
from seqopt.models import FeatureMap, FingerprintMap, NgramMap, WeightSpaceGP
from seqopt.models.weight_space import scaled


def problem(seed: int, n: int, m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    features = rng.poisson(0.7, (n + 5, m)).astype(np.float64)
    values = features[:n] @ rng.standard_normal(m) + 0.3 * rng.standard_normal(n) + 4.0
    return features[:n], values, features[n:]


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000), st.integers(3, 12), st.integers(2, 20))
def test_the_weight_posterior_is_regression_with_the_kernel_of_its_features(seed: int, n: int, m: int) -> None:
    features, values, new = problem(seed, n, m)
    process = WeightSpaceGP(features, values)
    phi, at = scaled(features), scaled(new)
    v, e = process.hyperparameters.values()
    targets = (values - values.mean()) / (values.std(ddof=1) or 1.0)
    # The formula of the weights.
    a = phi.T @ phi + e / v * np.eye(m)
    weights = np.linalg.solve(a, phi.T @ targets)
    np.testing.assert_allclose(process.mean(), weights, atol=1e-8)
    # The usual regression.
    gram = v * phi @ phi.T + e * np.eye(n)
    cross = v * at @ phi.T
    mean = cross @ np.linalg.solve(gram, targets)
    variance = np.diag(v * at @ at.T - cross @ np.linalg.solve(gram, cross.T))
    predicted, std = process.predict(new)
    np.testing.assert_allclose((predicted - process.offset) / process.unit, mean, atol=1e-8)
    np.testing.assert_allclose((std / process.unit) ** 2, variance, atol=1e-8)
    np.testing.assert_allclose(np.diag(at @ (e * np.linalg.inv(a)) @ at.T), variance, atol=1e-8)


@pytest.mark.parametrize("known", [None, np.array([0.0, 4.0, 0.0, 0.5, 0.0, 0.0])])
@pytest.mark.parametrize("m", [4, 15])
def test_draws_have_the_mean_and_the_covariance_of_the_posterior(m: int, known: np.ndarray | None) -> None:
    features, values, new = problem(3, 6, m)
    process = WeightSpaceGP(features, values, known)
    draws = process.values(new, process.draw(200_000, np.random.default_rng(0)))
    mean, std = process.predict(new)
    np.testing.assert_allclose(draws.mean(1), mean, atol=6 * std.max() / np.sqrt(200_000))
    phi, at = scaled(features), scaled(new)
    v, e = process.hyperparameters.values()
    noise = e + (np.zeros(6) if known is None else known / process.unit**2)
    cross = v * at @ phi.T
    covariance = v * at @ at.T - cross @ np.linalg.solve(v * phi @ phi.T + np.diag(noise), cross.T)
    np.testing.assert_allclose(np.cov(draws), process.unit**2 * covariance, atol=0.03 * process.unit**2)


def test_the_fit_is_of_the_largest_posterior_density() -> None:
    features, values, _ = problem(5, 20, 8)
    process = WeightSpaceGP(features, values)
    phi = scaled(features)
    targets = (values - values.mean()) / values.std(ddof=1)

    def density(scale: float, noise: float) -> float:
        gram = scale * phi @ phi.T + noise * np.eye(20)
        priors = -0.5 * np.log(scale) ** 2 - 0.5 * (np.log(noise) + 4.0) ** 2
        return float(-0.5 * targets @ np.linalg.solve(gram, targets) - 0.5 * np.linalg.slogdet(gram)[1] + priors)

    own = density(process.scale, process.noise)
    grid = [density(s, e) for s in np.geomspace(0.01, 100, 40) for e in np.geomspace(1e-4, 3, 40)]
    assert own >= max(grid) - 1e-6


def test_sparse_features_and_blocks_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    features, values, new = problem(1, 9, 30)
    dense = WeightSpaceGP(features, values)
    thin = WeightSpaceGP(sparse.csr_array(features), values)
    weights = dense.draw(3, np.random.default_rng(1))
    np.testing.assert_allclose(thin.draw(3, np.random.default_rng(1)), weights, atol=1e-9)
    expected = dense.values(new, weights)
    monkeypatch.setattr("seqopt.models.weight_space.BLOCK", 2)
    np.testing.assert_allclose(thin.values(sparse.csr_array(new), weights), expected, atol=1e-9)


def test_maps_count_what_strings_hold() -> None:
    ngrams = NgramMap(2)
    with pytest.raises(ModelError, match="call fit"):
        ngrams(["AB"])
    ngrams.fit(["AB", "BBA"])
    # What the pool does not have does not count: C, BC and CA.
    assert ngrams(["BCAB"]).toarray().sum() == 4
    rows = FingerprintMap(size=64)(["CCO", "OCC"])
    assert (rows[[0]] != rows[[1]]).sum() == 0
    assert isinstance(ngrams, FeatureMap)
    assert FingerprintMap().unsupported(["CCO", "C(C"]).keys() == {1}


def test_equal_values_and_bad_input() -> None:
    flat = WeightSpaceGP(np.eye(3), np.ones(3))
    assert np.isfinite(flat.values(np.eye(3), flat.draw(2, np.random.default_rng(0)))).all()
    with pytest.raises(InputError, match="at least two"):
        WeightSpaceGP(np.eye(1), np.ones(1))
    with pytest.raises(InputError, match="longest is 0"):
        NgramMap(0)
