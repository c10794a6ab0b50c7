"""MUMBO: against the entropies by quadrature, MES, GIBBON and the published rule, far into both tails."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special, stats

import seqopt.acquisition.mumbo as module
from seqopt.acquisition import MUMBO, DensePosterior, OutcomeAcquisition, log_gibbon, log_mes, log_mumbo
from seqopt.acquisition.information import PreparedInformation
from seqopt.errors import InputError
from seqopt.posteriors import Outcomes


def value(gamma: float, rho2: float) -> float:
    numbers = (torch.tensor([number], dtype=torch.float64) for number in (gamma, rho2))
    return float(log_mumbo(*numbers).exp())


def by_quadrature(gamma: float, rho2: float) -> mpmath.mpf:
    """Entropy of the standard normal less that of the extended skew-normal density, in 30 digits."""

    def log_ndtr(x: mpmath.mpf) -> mpmath.mpf:
        if x > 0:
            return mpmath.log1p(-mpmath.erfc(x / mpmath.sqrt(2)) / 2)
        return mpmath.log(mpmath.erfc(-x / mpmath.sqrt(2)) / 2)

    with mpmath.workdps(30):
        g, rho = mpmath.mpf(gamma), mpmath.sqrt(mpmath.mpf(rho2))
        width = mpmath.sqrt(1 - mpmath.mpf(rho2))
        ratio = mpmath.npdf(g) / mpmath.exp(log_ndtr(g))
        mean, std = -rho * ratio, mpmath.sqrt(1 - rho**2 * ratio * (g + ratio))

        def integrand(theta: mpmath.mpf) -> mpmath.mpf:
            log_inside = log_ndtr((g - rho * theta) / width)
            return mpmath.npdf(theta) * mpmath.exp(log_inside - log_ndtr(g)) * log_inside

        # The integrand is largest about the mean, or in the right tail, where it is phi(theta) phi(u), at rho gamma.
        edge, peak = g / rho, rho * g
        cuts = {mean + k * std for k in (-40, -15, -6, -2, 0, 2, 6, 15)} | {
            peak + k for k in (-12, -6, -3, -1, 0, 1, 3, 6)
        }
        cuts |= {edge + k * width / rho for k in (-6, -2, 0, 2, 6)}
        last = max(mean + 15 * std, peak + 6)
        ends = sorted(cut for cut in cuts if mean - 40 * std <= cut <= last)
        return rho2 * g * ratio / 2 - log_ndtr(g) + mpmath.quad(integrand, ends)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("gamma", "rho2"),
    [
        (-40.0, 0.3), (-40.0, 0.999), (-8.0, 0.05), (-8.0, 0.95), (-1.0, 0.7), (0.0, 0.3),
        (1.0, 0.3), (1.0, 0.999), (3.0, 0.1), (3.0, 0.95), (8.0, 0.9), (25.0, 0.95), (40.0, 0.5),
    ],
)  # fmt: skip
def test_it_is_the_difference_of_the_entropies_in_both_tails(gamma: float, rho2: float) -> None:
    found = log_mumbo(torch.tensor([gamma], dtype=torch.float64), torch.tensor([rho2], dtype=torch.float64))
    expected = float(mpmath.log(by_quadrature(gamma, rho2)))
    assert float(found) == pytest.approx(expected, rel=1e-15, abs=1e-6 if gamma > 10 else 1e-8)


@settings(deadline=None, max_examples=30)
@given(st.floats(-6, 5), st.floats(0.02, 0.99))
def test_it_is_the_entropy_of_a_sum_of_a_truncated_and_a_normal_variable(gamma: float, rho2: float) -> None:
    # Another road: theta = rho Z + sqrt(1 - rho^2) e, Z below gamma, whose density is a convolution.
    rho, width = math.sqrt(rho2), math.sqrt(1 - rho2)
    grid = np.linspace(-9.0 - abs(gamma), 9.0, 40_001)
    log_density = stats.norm.logpdf(grid) + special.log_ndtr((gamma - rho * grid) / width) - special.log_ndtr(gamma)
    entropy = -integrate.simpson(np.exp(log_density) * log_density, x=grid)
    assert value(gamma, rho2) == pytest.approx(stats.norm.entropy() - entropy, abs=1e-8)


@pytest.mark.parametrize(("gamma", "rho2"), [*itertools.product([-2.0, 0.0, 1.5, 3.0], [0.1, 0.5, 0.9])])
def test_the_published_rule_agrees_where_it_holds(gamma: float, rho2: float) -> None:
    """Simpson's over eight standard deviations about the mean -rho phi / Phi."""
    rho, ratio = math.sqrt(rho2), stats.norm.pdf(gamma) / stats.norm.cdf(gamma)
    mean, std = -rho * ratio, math.sqrt(1 - rho2 * ratio * (gamma + ratio))
    theta = np.linspace(mean - 8 * std, mean + 8 * std, 2_001)
    inside = special.log_ndtr((gamma - rho * theta) / math.sqrt(1 - rho2))
    expected = integrate.simpson(stats.norm.pdf(theta) * np.exp(inside) / stats.norm.cdf(gamma) * inside, x=theta)
    total = rho2 * gamma * ratio / 2 - stats.norm.logcdf(gamma) + expected
    assert value(gamma, rho2) == pytest.approx(total, abs=2e-7)


def test_a_perfect_outcome_gives_max_value_entropy_search() -> None:
    gamma = torch.linspace(-40, 40, 1601, dtype=torch.float64)
    found, expected = log_mumbo(gamma, torch.ones(1, dtype=torch.float64)), log_mes(gamma)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-8)
    torch.testing.assert_close(found.exp(), expected.exp(), rtol=0, atol=1e-8)


def test_it_is_never_below_gibbon_and_grows_with_the_correlation() -> None:
    gamma = torch.linspace(-40, 40, 161, dtype=torch.float64)[:, None]
    rho2 = torch.tensor([1e-12, 1e-6, 1e-3, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.9999, 1 - 1e-9, 1.0], dtype=torch.float64)
    values = log_mumbo(gamma, rho2)
    assert torch.isfinite(values).all()
    assert (values >= log_gibbon(gamma, rho2)).all()
    assert (values.diff(dim=1) > 0).all()
    assert (values.diff(dim=0) < 0).all()


def test_it_is_finite_and_in_order_far_beyond_what_is_accurate() -> None:
    gamma = torch.tensor([-1e80, -1e9, -1e4, -9999.0, 59.9, 60.1, 1e3, 1e9, 1e70], dtype=torch.float64)
    for rho2 in (1e-3, 0.5, 1.0):
        values = log_mumbo(gamma, torch.tensor(rho2, dtype=torch.float64))
        assert torch.isfinite(values).all()
        # A noisy outcome tells at most -log(1 - rho^2) / 2, which is reached to the last digit.
        assert (values.diff() <= 1e-12).all()
    assert (values.diff() < 0).all()
    assert value(-1e9, 0.5) == pytest.approx(-0.5 * math.log(0.5), rel=1e-9)
    assert log_mumbo(torch.zeros(1), torch.zeros(1)).item() == -math.inf


def test_single_precision_is_kept() -> None:
    gamma = torch.linspace(-20, 20, 41)
    values = log_mumbo(gamma, torch.tensor(0.7))
    assert values.dtype == torch.float32
    torch.testing.assert_close(
        values.double(), log_mumbo(gamma.double(), torch.tensor(0.7).double()), rtol=1e-5, atol=0
    )


def test_blocks_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    gamma, rho2 = torch.linspace(-3, 3, 60, dtype=torch.float64).reshape(3, 20), torch.rand(20, dtype=torch.float64)
    whole = log_mumbo(gamma, rho2)
    monkeypatch.setattr(module, "BLOCK_VALUES", 7)
    torch.testing.assert_close(log_mumbo(gamma, rho2), whole)


def test_it_reads_outcome_and_target_and_averages_over_draws() -> None:
    rng = np.random.default_rng(3)
    factor = torch.from_numpy(rng.standard_normal((2, 8, 10)))
    joint = factor @ factor.transpose(-1, -2) / 8
    mean, maxima = torch.from_numpy(rng.standard_normal((2, 4))), torch.tensor([[1.0, 2.0, 2.5], [1.5, 1.9, 3.0]])
    maxima, noise = maxima.double(), torch.tensor([0.1, 0.3], dtype=torch.float64)
    outcomes = Outcomes(torch.zeros(2, 4), joint[:, 4:, 4:], joint[:, :4, 4:])
    posterior = DensePosterior(mean, joint[:, :4, :4], noise, outcomes=outcomes)
    expected = np.zeros(4)
    for draw, point, sample in itertools.product(range(2), range(4), range(3)):
        variance = float(joint[draw, point, point])
        rho2 = float(joint[draw, point, 4 + point]) ** 2 / variance
        rho2 /= float(joint[draw, 4 + point, 4 + point]) + float(noise[draw])
        gamma = (float(maxima[draw, sample]) - float(mean[draw, point])) / math.sqrt(variance)
        expected[point] += value(gamma, rho2) / 6
    prepared = MUMBO().prepared(maxima, 0.5)
    np.testing.assert_allclose(prepared(posterior), expected, rtol=1e-9)
    # Given another outcome, half of half the logarithm of what is left of the outcome's variance is added.
    after = posterior.given(1)
    left = torch.log(after.moments.remaining_variance / posterior.moments.outcome_variance).mean(0)
    np.testing.assert_allclose(prepared(after), expected + 0.25 * left.numpy(), rtol=1e-9)


def test_as_an_acquisition_function(make_posterior: Callable[..., DensePosterior]) -> None:
    assert isinstance(MUMBO(), OutcomeAcquisition)
    assert MUMBO().sees_outcomes
    posterior = make_posterior(points=9, observed=4)
    prepared = MUMBO(7).prepare(posterior, np.random.default_rng(5), batch_size=2)
    assert isinstance(prepared, PreparedInformation)
    assert prepared.max_values.shape == (7,)
    assert prepared.repulsion == 0.5
    with pytest.raises(InputError, match="num_samples is 0"):
        MUMBO(0)
