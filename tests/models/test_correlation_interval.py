"""Intervals of the correlation of two levels, against densities that are written out."""

import itertools
import math

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal, norm

from seqopt import CandidateSet
from seqopt.data import Contexts, Query
from seqopt.kernels import NgramKernel
from seqopt.models.context_facts import context_facts
from seqopt.models.contexts import autoregressive, coregionalized
from seqopt.models.correlation_interval import _profile_of, correlation_interval, largest_drop

POOL = ["".join(symbols) for symbols in itertools.product("ACGT", repeat=4)]
SPACE = CandidateSet(POOL, kind="text")
CONTEXTS = Contexts.of_levels("fidelity", {"docking": 0.1, "assay": 1.0}, target="assay")
DOCKING, ASSAY = (("fidelity", "docking"),), (("fidelity", "assay"),)


def fitted(both, docked=30, rho=0.8, seed=0, make=coregionalized):
    """A model of functions whose correlation is known, of which some strings were measured both ways."""
    rng = np.random.default_rng([seed, both])
    keys = [POOL[place] for place in rng.permutation(len(POOL))[:docked]]
    kernel, encoded = NgramKernel(), SPACE.encoder.encode(keys)
    gram = kernel.cross(encoded, None, kernel.self_similarity(encoded))
    root = np.linalg.cholesky(np.asarray(gram, dtype=np.float64) + 1e-8 * np.eye(docked))
    target, other = root @ rng.normal(size=docked), root @ rng.normal(size=docked)
    cheap = rho * target + math.sqrt(1 - rho**2) * other
    values = np.concatenate([target[:both], cheap]) + 0.1 * rng.normal(size=both + docked)
    queries = [Query(key, ASSAY) for key in keys[:both]] + [Query(key, DOCKING) for key in keys]
    gp = make(SPACE, CONTEXTS, NgramKernel())
    gp.restarts = 1
    gp.fit(queries, values, rng=np.random.default_rng(1))
    return gp


@pytest.fixture(scope="module")
def gp():
    return fitted(8)


def test_the_density_is_that_of_its_definition(gp):
    profile = _profile_of(gp, "docking")
    rho, rest = -0.6, np.array([0.3, -0.2, -3.0, -1.5, 0.7])
    state = gp.fitted
    number = gp.levels.numbers(state.keys)  # docking is 0, the target 1
    strings = gp.model.covar_module.base_kernel.kernels[0].kernels[0]
    gram = float(state.scale[0]) * strings.cross(state.encoded, None, strings.self_similarity(state.encoded))
    level, noise = np.exp(rest[:2]), np.exp(rest[2:4])
    b = np.array([[level[0], rho * math.sqrt(level.prod())], [rho * math.sqrt(level.prod()), level[1]]])
    offset = float(state.scale[0])  # the prior variance of an offset is 1
    total = gram * b[np.ix_(number, number)] + (number[:, None] == number) * offset + np.diag(noise[number])
    residuals = (state.targets.reshape(-1) - state.constant[0]).numpy()
    expected = multivariate_normal(np.zeros(len(number)), total).logpdf(residuals) + 0.5 * len(number) * math.log(
        2 * math.pi
    )
    t = 1 / (1 + math.exp(-rest[4]))
    own = level * (1 - (rho**2) ** np.array([1 - t, t]))
    # B = w w' + diag(own): what is common to both is the correlation.
    common = level - own
    assert math.sqrt(common.prod() / level.prod()) == pytest.approx(abs(rho))
    expected += sum(
        norm.logpdf(math.log(v), math.log(0.3), 1.0) - math.log(v) + 0.5 * math.log(2 * math.pi) for v in own
    )
    expected += sum(norm.logpdf(rest[2 + i], -4.0, 1.0) + 0.5 * math.log(2 * math.pi) for i in range(2))
    assert float(profile.log_density(rho, torch.from_numpy(rest))) == pytest.approx(expected, abs=1e-6)


def test_the_ends_are_where_the_profile_has_fallen_by_what_is_said(gp):
    low, high = correlation_interval(gp, "docking")
    profile = _profile_of(gp, "docking")
    drop = largest_drop(8)
    assert -1 < low < profile.rho < high < 1
    best = max(profile.at(rho)[0] for rho in np.tanh(np.linspace(math.atanh(low), math.atanh(high), 9)))
    assert profile.at(low)[0] == pytest.approx(best - drop, abs=0.25)
    inside = 0.5 * (math.atanh(low) + math.atanh(profile.rho))
    assert profile.at(math.tanh(inside))[0] > best - drop
    assert profile.at(math.tanh(math.atanh(low) - 0.4))[0] < best - drop


def test_it_is_what_facts_say_and_more_strings_in_both_ways_narrow_it(gp):
    ends = []
    for both, model in ((4, fitted(4)), (8, gp), (28, fitted(28))):
        keys = [item.key for item in model.fitted.keys if item.context == DOCKING]
        facts = context_facts(model, {ASSAY: keys[:both], DOCKING: keys}, ASSAY)[DOCKING]
        assert (facts.correlation_low, facts.correlation_high) == correlation_interval(model, "docking")
        assert facts.correlation_low < facts.correlation < facts.correlation_high
        ends.append((math.atanh(facts.correlation_low), math.atanh(facts.correlation_high)))
    widths = [high - low for low, high in ends]
    assert widths[2] < widths[1]
    assert widths[2] < 0.7 * widths[0]


def test_the_sign_is_found(gp):
    low, high = correlation_interval(fitted(20, rho=-0.9), "docking")
    assert -1 < low < high < -0.3


def test_other_models_have_none():
    assert correlation_interval(fitted(6, make=autoregressive), "docking") is None
    averaged = coregionalized(SPACE, CONTEXTS, NgramKernel(), averaged=True)
    assert correlation_interval(averaged, "docking") is None


def test_the_bound_is_exact_for_the_slope_of_a_regression():
    rng = np.random.default_rng(0)
    for m in (4, 9):
        held, drop = 0, largest_drop(m)
        for _ in range(2000):
            x, y = rng.normal(size=(2, m))  # the slope is nought
            r = np.corrcoef(x, y)[0, 1]
            held += -0.5 * m * math.log(1 - r * r) <= drop  # the log likelihood ratio of no slope
        assert abs(held / 2000 - 0.9) < 0.025
    assert correlation_interval(fitted(2), "docking") == (-1.0, 1.0)
