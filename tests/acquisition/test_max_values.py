"""Samplers of the maximum against brute force, closed forms and Monte Carlo."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar

import numpy as np
import pytest
import torch
from scipy import optimize, stats

from seqopt.acquisition import DensePosterior, ExactMaxValueSampler, GumbelMaxValueSampler
from seqopt.acquisition.max_values import max_quantiles
from seqopt.errors import InputError

SAMPLERS = [ExactMaxValueSampler, GumbelMaxValueSampler]


def brute_force_quantile(mean: np.ndarray, std: np.ndarray, p: float) -> float:
    """Root of the log distribution function, by Brent's method from a wide bracket."""
    return optimize.brentq(lambda z: stats.norm.logcdf((z - mean) / std).sum() - math.log(p), -50.0, 50.0, xtol=1e-13)


@pytest.mark.parametrize("points", [1, 2, 50, 3000])
def test_quantiles_of_independent_maxima_by_another_root_finder(points: int) -> None:
    rng = np.random.default_rng(points)
    mean, variance = rng.normal(size=(2, points)), rng.uniform(0.01, 4.0, size=(2, points))
    probabilities = (1e-6, 0.25, 0.5, 0.75, 0.999)
    quantiles = max_quantiles(torch.from_numpy(mean), torch.from_numpy(variance), probabilities)
    for draw in range(2):
        expected = [brute_force_quantile(mean[draw], np.sqrt(variance[draw]), p) for p in probabilities]
        np.testing.assert_allclose(quantiles[draw], expected, rtol=0, atol=1e-11)


def test_quantiles_with_points_of_no_variance() -> None:
    mean = torch.tensor([1.0, 3.0], dtype=torch.float64)
    quantiles = max_quantiles(mean, torch.zeros(2, dtype=torch.float64), (0.25, 0.75))
    np.testing.assert_allclose(quantiles, [3.0, 3.0])


def test_gumbel_draws_follow_the_fit_to_brute_force_quantiles() -> None:
    rng = np.random.default_rng(0)
    mean, std = rng.normal(size=200), rng.uniform(0.2, 1.5, size=200)
    posterior = DensePosterior(torch.from_numpy(mean), torch.diag(torch.from_numpy(std**2)), 0.1)
    draws = GumbelMaxValueSampler()(posterior, 20_000, np.random.default_rng(1)).numpy()
    q25, q50, q75 = (brute_force_quantile(mean, std, p) for p in (0.25, 0.5, 0.75))
    scale = (q75 - q25) / (math.log(math.log(4.0)) - math.log(math.log(4.0 / 3.0)))
    location = q50 + scale * math.log(math.log(2.0))
    assert stats.kstest(draws, stats.gumbel_r(location, scale).cdf).pvalue > 1e-3
    # The fit is an approximation: its median is exact by construction, the rest close to Monte Carlo.
    simulated = (mean + std * np.random.default_rng(2).standard_normal((20_000, 200))).max(1)
    assert np.median(draws) == pytest.approx(np.median(simulated), abs=0.03)
    assert draws.mean() == pytest.approx(simulated.mean(), abs=0.05)
    assert draws.std() == pytest.approx(simulated.std(), rel=0.15)


def test_gumbel_takes_a_random_sample_and_the_evaluated_strings() -> None:
    points = 400
    mean = torch.zeros(points)
    mean[7] = 100.0  # one point towers above the rest; it shows whether it was in the sample
    wide = DensePosterior(mean, 1e-4 * torch.eye(points), 0.1)
    seen = [float(GumbelMaxValueSampler(100)(wide, 1, np.random.default_rng(seed))[0]) > 50 for seed in range(200)]
    assert sum(seen) == pytest.approx(50, abs=22)

    observed = DensePosterior(
        torch.zeros(3),
        1e-4 * torch.eye(3),
        0.1,
        observed_mean=torch.tensor([0.0]),
        observed_covariance=torch.tensor([[9.0]]),
        cross_covariance=torch.zeros(1, 3),
    )
    draws = GumbelMaxValueSampler()(observed, 4000, np.random.default_rng(0))
    assert float(draws.median()) == pytest.approx(
        brute_force_quantile(np.zeros(4), np.array([3, 0.01, 0.01, 0.01]), 0.5), abs=0.1
    )
    assert float(draws.std()) > 0.5


def test_gumbel_may_leave_the_evaluated_strings_out() -> None:
    posterior = DensePosterior(
        torch.zeros(50),
        torch.eye(50),
        0.1,
        observed_mean=torch.tensor([20.0]),
        observed_covariance=torch.tensor([[9.0]]),
        cross_covariance=torch.zeros(1, 50),
    )
    draws = GumbelMaxValueSampler(evaluated=False)(posterior, 4000, np.random.default_rng(0))
    expected = brute_force_quantile(np.zeros(50), np.ones(50), 0.5)
    assert float(draws.median()) == pytest.approx(expected, abs=0.05)
    assert float(draws.max()) < 20.0
    assert float(GumbelMaxValueSampler()(posterior, 50, np.random.default_rng(0)).min()) >= 20.0


def test_exact_draws_match_the_maximum_of_two_correlated_normals() -> None:
    mean, covariance = np.array([0.3, 0.0]), np.array([[1.0, 0.7], [0.7, 2.0]])
    posterior = DensePosterior(torch.from_numpy(mean), torch.from_numpy(covariance), 0.1)
    draws = ExactMaxValueSampler()(posterior, 20_000, np.random.default_rng(0)).numpy()
    # Clark (1961): the first moment of the maximum of two normal variables.
    theta = math.sqrt(1.0 + 2.0 - 2 * 0.7)
    a = (mean[0] - mean[1]) / theta
    expected = mean[0] * stats.norm.cdf(a) + mean[1] * stats.norm.cdf(-a) + theta * stats.norm.pdf(a)
    assert draws.mean() == pytest.approx(expected, abs=4 * draws.std() / math.sqrt(len(draws)))
    both = stats.multivariate_normal(mean, covariance)
    for z in (-1.0, 0.5, 2.0):
        probability = both.cdf([z, z])
        assert (draws <= z).mean() == pytest.approx(probability, abs=4 * math.sqrt(0.25 / len(draws)))


def test_exact_draws_are_joint_with_the_evaluated_strings() -> None:
    # Candidate and evaluated string are the same point: the maximum of the two is one normal variable.
    one = torch.ones(1, 1)
    posterior = DensePosterior(
        torch.tensor([2.0]),
        one,
        0.1,
        observed_mean=torch.tensor([-3.0]),
        observed_covariance=25 * one,
        cross_covariance=5 * one,
    )
    draws = ExactMaxValueSampler()(posterior, 20_000, np.random.default_rng(0)).numpy()
    z = np.random.default_rng(1).standard_normal(200_000)
    expected = np.maximum(np.maximum(2 + z, -3 + 5 * z), -3.0)
    assert draws.mean() == pytest.approx(expected.mean(), abs=0.06)
    assert draws.std() == pytest.approx(expected.std(), rel=0.05)


def test_exact_draws_use_the_candidates_of_largest_upper_confidence() -> None:
    mean = torch.tensor([0.0, 5.0, 1.0, 4.0])
    variance = torch.tensor([1e-12, 1e-12, 4.0, 1e-12])
    posterior = DensePosterior(mean, torch.diag(variance), 0.1)
    sampler = ExactMaxValueSampler(num_candidates=1)
    assert float(sampler(posterior, 50, np.random.default_rng(0)).median()) < 3.0  # 1 + 3 * 2 beats 5
    sampler = ExactMaxValueSampler(num_candidates=2)
    assert float(sampler(posterior, 50, np.random.default_rng(0)).min()) == pytest.approx(5.0, abs=1e-4)


class CountingPosterior(DensePosterior):
    """Remembers how many points were drawn jointly."""

    largest = 0

    def joint(self, indices: torch.Tensor, include_observed: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
        mean, covariance = super().joint(indices, include_observed)
        self.largest = max(self.largest, covariance.shape[-1])
        return mean, covariance


@pytest.mark.parametrize(("observed", "expected"), [(0, 12), (5, 17), (8, 20), (10, 20), (11, 12)])
def test_joint_draws_stay_within_their_limit(observed: int, expected: int) -> None:
    posterior = CountingPosterior(
        torch.zeros(30),
        torch.eye(30),
        0.1,
        observed_mean=torch.zeros(observed),
        observed_covariance=torch.eye(observed),
        cross_covariance=torch.zeros(observed, 30),
    )
    draws = ExactMaxValueSampler(num_candidates=12, max_points=20)(posterior, 3, np.random.default_rng(0))
    assert posterior.largest == expected
    assert (draws >= 0).all()


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_no_draw_is_below_the_best_evaluated_mean(sampler: type, make_posterior: Callable[..., DensePosterior]) -> None:
    posterior = make_posterior(points=4, observed=6, draws=2, observed_raised=torch.tensor([[3.0], [0.5]]))
    draws = sampler()(posterior, 500, np.random.default_rng(0))
    assert draws.shape == (2, 500)
    bound = posterior.observed_mean.amax(-1)
    assert (draws >= bound[:, None]).all()
    assert torch.equal(draws[0].min(), bound[0])


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_draws_of_the_parameters_have_their_own_maxima(
    sampler: type, make_posterior: Callable[..., DensePosterior]
) -> None:
    posterior = make_posterior(points=20, observed=3, draws=2, raised=torch.tensor([[0.0], [10.0]]))
    together = sampler()(posterior, 2000, np.random.default_rng(0))
    _, covariance = posterior.joint(torch.arange(20))
    alone = DensePosterior(posterior.moments.mean[1], covariance[1], 0.1)
    expected = sampler()(alone, 2000, np.random.default_rng(1))
    assert float(together[1].mean()) == pytest.approx(float(expected.mean()), abs=0.15)
    assert float(together[0].mean()) < 6


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_one_generator_fixes_the_draws(sampler: type, make_posterior: Callable[..., DensePosterior]) -> None:
    posterior = make_posterior(points=30, observed=3)
    torch.manual_seed(1)
    first = sampler(max_points=10)(posterior, 5, np.random.default_rng(3))
    torch.manual_seed(2)
    assert torch.equal(first, sampler(max_points=10)(posterior, 5, np.random.default_rng(3)))
    assert not torch.equal(first, sampler(max_points=10)(posterior, 5, np.random.default_rng(4)))


def test_arguments_are_checked() -> None:
    with pytest.raises(InputError, match="num_candidates is 0"):
        ExactMaxValueSampler(num_candidates=0)
    with pytest.raises(InputError, match="max_points is -1"):
        ExactMaxValueSampler(max_points=-1)
    with pytest.raises(InputError, match="max_points is 0"):
        GumbelMaxValueSampler(max_points=0)
    with pytest.raises(InputError, match="beta is -1"):
        ExactMaxValueSampler(beta=-1.0)
    empty = DensePosterior(torch.zeros(0), torch.zeros(0, 0), 0.1)
    for sampler in SAMPLERS:
        with pytest.raises(InputError, match="empty"):
            sampler()(empty, 1, np.random.default_rng(0))


def test_each_of_several_draws_needs_fewer_candidates() -> None:
    class Noted(DensePosterior):
        sizes: ClassVar[list[int]] = []

        def joint(self, indices: torch.Tensor, include_observed: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
            self.sizes.append(len(indices))
            return super().joint(indices, include_observed)

    for draws, expected in (((), 60), ((4,), 30), ((9,), 20)):
        posterior = Noted(torch.zeros(*draws, 100), torch.eye(100).expand(*draws, 100, 100), 0.1)
        values = ExactMaxValueSampler(num_candidates=60)(posterior, 3, np.random.default_rng(0))
        assert values.shape == (*draws, 3)
        assert Noted.sizes[-1] == expected
