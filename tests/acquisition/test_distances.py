"""Distances of normal distributions and mixtures: closed forms, published values, integrals, another library."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from seqopt.acquisition.distances import (
    CLOSED_FORMS,
    distance_to_mixture,
    hellinger,
    kl_divergence,
    mixture_moments,
    mixture_quantiles,
    wasserstein,
)
from seqopt.errors import InputError

numbers = st.floats(-5.0, 5.0)
variances = st.floats(1e-3, 20.0)


def tensor(*values):
    return torch.tensor(values, dtype=torch.float64)


def densities(mean, variance, other_mean, other_variance):
    return stats.norm(mean, math.sqrt(variance)), stats.norm(other_mean, math.sqrt(other_variance))


def test_values_by_hand():
    one = tensor(1.0)
    assert float(hellinger(0 * one, one, one, 4 * one)) == pytest.approx(0.386257, abs=5e-7)
    assert float(hellinger(0 * one, one, one, 4 * one)) ** 2 == pytest.approx(0.149195, abs=5e-7)
    assert float(wasserstein(0 * one, one, one, 4 * one)) == pytest.approx(1.414214, abs=5e-7)
    assert float(kl_divergence(0 * one, one, one, 4 * one)) == pytest.approx(math.log(2) + 2 / 8 - 1 / 2)
    assert float(kl_divergence(one, 4 * one, 0 * one, one)) == pytest.approx(-math.log(2) + 5 / 2 - 1 / 2)


@settings(max_examples=25, deadline=None)
@given(numbers, variances, numbers, variances)
def test_closed_forms_are_the_integrals(a, v, b, w):
    p, q = densities(a, v, b, w)
    # Trapezoids about both means, for these integrands as good as exact.
    steps = np.linspace(-12, 12, 4001)
    x = np.unique(np.concatenate([a + math.sqrt(v) * steps, b + math.sqrt(w) * steps]))
    overlap = integrate.trapezoid(np.exp(0.5 * (p.logpdf(x) + q.logpdf(x))), x)
    divergence = integrate.trapezoid(p.pdf(x) * (p.logpdf(x) - q.logpdf(x)), x)
    found = {name: float(form(*map(tensor, (a, v, b, w)))) for name, form in CLOSED_FORMS.items()}
    assert found["hellinger"] ** 2 == pytest.approx(1 - overlap, abs=1e-5)
    assert found["kl"] == pytest.approx(divergence, rel=1e-5, abs=1e-5)
    u = (np.arange(20_000) + 0.5) / 20_000
    assert found["wasserstein"] == pytest.approx(np.sqrt(np.mean((p.ppf(u) - q.ppf(u)) ** 2)), rel=1e-3, abs=1e-3)


@settings(max_examples=25, deadline=None)
@given(numbers, variances, numbers, variances, numbers, variances)
def test_they_are_distances(a, v, b, w, c, x):
    for form in (hellinger, wasserstein):
        there, back = form(*map(tensor, (a, v, b, w))), form(*map(tensor, (b, w, a, v)))
        assert torch.equal(there, back)
        assert float(form(*map(tensor, (a, v, a, v)))) == 0.0
        around = form(*map(tensor, (a, v, c, x))) + form(*map(tensor, (c, x, b, w)))
        assert float(there) <= float(around) + 1e-12
        assert (float(there) == 0.0) == (a == b and v == w) or abs(a - b) + abs(v - w) < 1e-6
    assert float(hellinger(*map(tensor, (a, v, b, w)))) <= 1.0
    assert float(kl_divergence(*map(tensor, (a, v, b, w)))) >= -1e-12


def test_nearly_equal_distributions_keep_their_digits():
    step = 1e-9
    assert float(hellinger(tensor(0.0), tensor(1.0), tensor(step), tensor(1.0))) == pytest.approx(
        step / math.sqrt(8), rel=1e-6
    )


@pytest.mark.parametrize("variance", [0.0, 1e-300])
def test_certain_points_have_finite_distances(variance):
    for form in CLOSED_FORMS.values():
        for other in (0.0, 1.0):
            assert bool(torch.isfinite(form(tensor(0.0), tensor(variance), tensor(1e3), tensor(other))))


def test_a_mixture_of_two():
    mean, variance = tensor([0.0], [2.0]), torch.ones(2, 1, dtype=torch.float64)
    assert [float(found) for found in mixture_moments(mean, variance)] == [1.0, 2.0]

    def found(distance, marginal, points=2048):
        return float(
            distance_to_mixture(mean, variance, mean, variance, distance=distance, marginal=marginal, points=points)
        )

    assert found("wasserstein", "moments") == pytest.approx(1.082392, abs=5e-7)
    assert found("hellinger", "moments") == pytest.approx(0.326576, abs=5e-7)
    # A marginal without the variance of the means would give 1.000 and .342787.
    assert abs(found("wasserstein", "moments") - 1.0) > 0.05
    assert abs(found("hellinger", "moments") - 0.342787) > 0.01
    assert found("wasserstein", "mixture") == pytest.approx(1.08507, abs=1e-5)
    assert found("hellinger", "mixture") == pytest.approx(0.32776, abs=1e-5)
    assert found("wasserstein", "mixture", 256) == pytest.approx(1.08507, abs=1e-4)
    assert found("hellinger", "mixture", 256) == pytest.approx(0.32776, abs=1e-4)


def test_the_mixture_itself_by_integrals():
    rng = np.random.default_rng(1)
    means, scales = rng.normal(size=(3, 2)) * 2, rng.uniform(0.4, 1.5, size=(3, 2))
    own, own_scale = rng.normal(size=(4, 2)), rng.uniform(0.3, 0.8, size=(4, 2))
    arguments = [torch.from_numpy(part) for part in (own, own_scale**2, means, scales**2)]
    for place in range(2):

        def density(x, place=place):
            z = (x - means[:, place]) / scales[:, place]
            return float((np.exp(-0.5 * z**2) / scales[:, place]).mean()) / math.sqrt(2 * math.pi)

        grid = np.linspace(-12, 12, 20_001)
        u = (np.arange(2000) + 0.5) / 2000
        at = np.interp(u, stats.norm.cdf(grid[:, None], means[:, place], scales[:, place]).mean(1), grid)
        expected = {"hellinger": 0.0, "wasserstein": 0.0, "kl": 0.0}
        for number in range(4):
            p = stats.norm(own[number, place], own_scale[number, place])
            overlap, _ = integrate.quad(lambda x, p=p: math.sqrt(p.pdf(x) * density(x)), -15, 15, limit=300)
            inside = p.mean() - 10 * p.std(), p.mean() + 10 * p.std()
            divergence, _ = integrate.quad(
                lambda x, p=p: p.pdf(x) * (p.logpdf(x) - math.log(density(x))), *inside, limit=300
            )
            expected["hellinger"] += math.sqrt(1 - overlap) / 4
            expected["kl"] += divergence / 4
            expected["wasserstein"] += math.sqrt(np.mean((p.ppf(u) - at) ** 2)) / 4
        for distance, value in expected.items():
            found = distance_to_mixture(*arguments, distance=distance, marginal="mixture", points=4096)[place]
            assert float(found) == pytest.approx(value, abs=3e-3), distance


def test_quantiles_are_those_of_the_mixture_not_the_mean_of_quantiles():
    mean, variance = tensor([-3.0], [3.0]), torch.ones(2, 1, dtype=torch.float64)
    u = tensor(0.1, 0.5, 0.9)
    found = mixture_quantiles(mean, variance, u)[:, 0]
    there = stats.norm.cdf(found[:, None], mean[:, 0], 1.0).mean(1)
    np.testing.assert_allclose(there, u, atol=1e-12)
    averaged = (mean[:, 0] + torch.special.ndtri(u)[:, None]).mean(1)
    assert float((found - averaged).abs().max()) > 1.0


def test_blocks_change_nothing(monkeypatch):
    from seqopt.acquisition import distances

    rng = np.random.default_rng(0)
    arguments = [torch.from_numpy(rng.uniform(0.1, 2.0, size=(3, 7))) for _ in range(4)]
    for distance in CLOSED_FORMS:
        whole = distance_to_mixture(*arguments, distance=distance, marginal="mixture", points=16)
        monkeypatch.setattr(distances, "BLOCK_VALUES", 16 * 3 * 2)
        assert torch.equal(whole, distance_to_mixture(*arguments, distance=distance, marginal="mixture", points=16))
        monkeypatch.undo()


def test_divergences_are_those_of_botorch():
    stat_dist = pytest.importorskip("botorch_community.utils.stat_dist")
    rng = np.random.default_rng(0)
    p, q, v, w = (torch.from_numpy(part) for part in rng.uniform(0.2, 3.0, size=(4, 5)))
    theirs = stat_dist.mvn_hellinger_distance(p[:, None, None], q[:, None, None], v[:, None, None], w[:, None, None])
    torch.testing.assert_close(theirs.reshape(-1), hellinger(p, v, q, w))
    # Its arguments are the other way round.
    theirs = stat_dist.mvn_kl_divergence(q[:, None, None], p[:, None, None], w[:, None, None], v[:, None, None])
    torch.testing.assert_close(theirs.reshape(-1), kl_divergence(p, v, q, w))


def test_unknown_names_are_refused():
    one = torch.ones(1, 1, dtype=torch.float64)
    with pytest.raises(InputError, match="unknown distance 'tv'; expected one of hellinger"):
        distance_to_mixture(one, one, one, one, distance="tv")
    with pytest.raises(InputError, match="marginal is 'exact'"):
        distance_to_mixture(one, one, one, one, marginal="exact")
    with pytest.raises(InputError, match="points is 1"):
        distance_to_mixture(one, one, one, one, points=1)
