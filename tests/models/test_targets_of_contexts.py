"""Posteriors of strings that were measured in several ways, held against dense conditioning in numpy."""

import itertools

import numpy as np
import pytest
import torch

from seqopt.acquisition import LogExpectedImprovement
from seqopt.data import Query
from seqopt.encoding import Encoder
from seqopt.encoding.fields import ContextEncoder, FieldEncoder
from seqopt.errors import InputError
from seqopt.kernels import CoregionalizationKernel, OnField, Product, SubsequenceKernel
from seqopt.models import StringGP, gaussian
from seqopt.spaces import CandidateSet
from seqopt.utils.config import config_of, from_config

POOL = ["".join(symbols) for symbols in itertools.product("AT", repeat=4)]
PENDING = [Query(POOL[12], {"assay": "cheap"}), POOL[13], Query(POOL[0], {"assay": "cheap"})]


def parts():
    encoder = FieldEncoder(
        {"assay": ContextEncoder("assay", levels=["cheap", "dear"], default="dear"), "tokens": Encoder()}
    )
    assays = CoregionalizationKernel(2, factors=[[1.0], [0.6]], variances=[0.3, 0.5])
    return Product(OnField(SubsequenceKernel(order=3), "tokens"), OnField(assays, "assay")), encoder


@pytest.fixture(scope="module")
def gp():
    rng = np.random.default_rng(0)
    kernel, encoder = parts()
    gp = StringGP(kernel, encoder=encoder, restarts=1)
    items = [*(Query(key, {"assay": "cheap"}) for key in POOL[:7]), *POOL[4:9]]
    values = [key.count("T") for key in POOL[4:9]]
    gp.fit(items, [5.0 + key.count("A") for key in POOL[:7]] + values, rng=rng)
    return gp


def covariance(gp, a, b):
    state = gp.fitted
    return float(state.scale[0]) * state.evaluator.cross(gp.encoder.encode(a), gp.encoder.encode(b))


def conditioned(gp, a, b):
    """Means at ``a``, and covariances of ``a`` and ``b`` given the data."""
    state = gp.fitted
    noisy = covariance(gp, state.keys, state.keys) + float(state.noise_variance[0]) * np.eye(len(state.keys))
    constant = float(state.constant[0])
    weights = np.linalg.solve(noisy, covariance(gp, state.keys, a)).T
    mean = constant + weights @ (state.targets.numpy() - constant)
    return mean, covariance(gp, a, b) - weights @ covariance(gp, state.keys, b)


def targets(items):
    return [item.key if isinstance(item, Query) else item for item in items]


def posteriors(gp, monkeypatch):
    yield gp.conditioned(PENDING).at(POOL)
    for memory in (gaussian.COLUMN_MEMORY, 0):
        monkeypatch.setattr(gaussian, "COLUMN_MEMORY", memory)
        yield gp.pool_posterior(CandidateSet(POOL), pending=PENDING)


def test_the_means_at_evaluated_strings_are_those_of_targets(gp, monkeypatch):
    expected, _ = conditioned(gp, targets(gp.fitted.keys), [])
    outcomes, _ = conditioned(gp, gp.fitted.keys, [])
    assert np.abs(expected - outcomes).max() > 0.1  # or the test could not tell them apart
    for posterior in posteriors(gp, monkeypatch):
        np.testing.assert_allclose(posterior.observed_mean[0], expected, atol=1e-9)


def test_the_evaluated_strings_in_a_joint_distribution_are_targets(gp, monkeypatch):
    places = [2, 5, 15]
    points = [*targets(gp.fitted.keys), *(POOL[place] for place in places)]
    mean, expected = conditioned(gp, points, points)
    for posterior in posteriors(gp, monkeypatch):
        found_mean, found = posterior.joint(torch.tensor(places), include_observed=True)
        np.testing.assert_allclose(found[0], expected, atol=1e-9)
        # A streamed posterior has means in single precision.
        np.testing.assert_allclose(found_mean[0], mean, atol=1e-3)


def test_the_means_at_pending_strings_are_those_of_targets(gp, monkeypatch):
    expected, _ = conditioned(gp, targets(PENDING), [])
    for posterior in posteriors(gp, monkeypatch):
        np.testing.assert_allclose(posterior.conditioned_mean[0], expected, atol=1e-9)
        after = posterior.given(3).conditioned_mean[0]
        np.testing.assert_allclose(after[:-1], expected, atol=1e-9)


def test_the_best_observed_strings_are_those_of_the_best_targets(gp):
    keys = targets(gp.fitted.keys)
    mean, _ = conditioned(gp, keys, [])
    expected = list(dict.fromkeys(keys[place] for place in np.argsort(-mean, kind="stable")))[:4]
    assert gp.conditioned().best_observed_keys(4) == expected


@pytest.mark.parametrize("named", [False, True])
def test_huge_values_of_a_cheap_context_are_nothing_to_improve_on(monkeypatch, named):
    kernel, encoder = parts()
    gp = StringGP(kernel, encoder=encoder, restarts=1)
    cheap = [Query(key, {"assay": "cheap"}) for key in POOL[:7]]
    dear = [Query(key, {"assay": "dear"}) if named else key for key in POOL[4:9]]
    values = [float(key.count("T")) for key in POOL[4:9]]
    gp.fit([*cheap, *dear], [1e4 + key.count("A") for key in POOL[:7]] + values, rng=np.random.default_rng(0))
    offset, unit = gp.units
    mean, _ = conditioned(gp, targets(gp.fitted.keys), [])
    for posterior in posteriors(gp, monkeypatch):
        assert offset + unit * posterior.best_observed == pytest.approx(max(values), abs=1e-6)
        prepared = LogExpectedImprovement().prepare(posterior, np.random.default_rng(0))
        assert float(prepared.incumbent[0]) == pytest.approx(mean.max(), abs=1e-9)
    gp.fit(cheap, [1e4 + key.count("A") for key in POOL[:7]], rng=np.random.default_rng(0))
    for posterior in posteriors(gp, monkeypatch):
        assert posterior.best_observed == -np.inf


def test_covariances_of_queries_are_those_of_their_targets(gp):
    queries = [Query(POOL[3], {"assay": "cheap"}), POOL[3], Query(POOL[9], {"assay": "cheap"})]
    unit = gp.units[1]
    _, expected = conditioned(gp, targets(queries), POOL[:5])
    np.testing.assert_allclose(gp.covariance(queries, POOL[:5]), unit**2 * expected, atol=1e-9)
    np.testing.assert_allclose(gp.covariance(queries, queries), gp.posterior(queries)[1], atol=1e-9)


def test_kernels_on_fields_are_bound_to_the_fields_of_the_surrogate(gp):
    again = from_config(config_of(gp))
    again.fit(gp.fitted.keys, np.arange(12.0), rng=np.random.default_rng(0))
    assert np.isfinite(again.predict(POOL)[0]).all()
    kernel, _ = parts()
    with pytest.raises(InputError, match="reads the field 'tokens'; the fields are words"):
        StringGP(kernel, encoder=FieldEncoder({"words": Encoder()}))


def test_levels_that_are_not_known_are_refused_before_they_are_fitted(gp):
    reasons = gp.unsupported(["AT", Query("TA", {"assay": "third"})])
    assert list(reasons) == [1]
    assert "assay is 'third'" in reasons[1]
