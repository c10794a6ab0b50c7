"""GIBBON: published values, the determinantal form, BoTorch, and its behaviour where it underflows."""

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
from scipy import stats

from seqopt.acquisition import (
    GIBBON,
    DensePosterior,
    GumbelMaxValueSampler,
    gibbon,
    log_gibbon,
    single_gibbon,
)
from seqopt.acquisition.gibbon import PreparedGIBBON
from seqopt.errors import InputError

MEAN = torch.tensor([0.5, 0.2, 0.0], dtype=torch.float64)
COVARIANCE = torch.tensor([[1.0, 0.6, 0.1], [0.6, 1.2, 0.3], [0.1, 0.3, 0.8]], dtype=torch.float64)
NOISE = 0.1
MAX_VALUES = torch.tensor([1.8, 2.2], dtype=torch.float64)

SINGLES = [0.118118392, 0.098871450, 0.037020393]
BATCHES = {(0, 1): 0.071981944, (0, 2): 0.150062600, (1, 2): 0.095870489, (0, 1, 2): 0.067898123}


class FixedMaxValues:
    """A sampler that returns the same values always."""

    def __init__(self, values: torch.Tensor) -> None:
        self.values = values

    def __call__(self, posterior: object, num_samples: int, rng: np.random.Generator) -> torch.Tensor:
        return self.values


def published_posterior() -> DensePosterior:
    return DensePosterior(MEAN, COVARIANCE, NOISE)


def naive_gibbon(mean: np.ndarray, covariance: np.ndarray, noise: float, max_values: np.ndarray) -> float:
    """Definition 5.4.3, term by term."""
    noisy = covariance + noise * np.eye(len(mean))
    deviations = np.sqrt(np.diag(noisy))
    value = 0.5 * np.linalg.slogdet(noisy / np.outer(deviations, deviations))[1]
    for m, i in itertools.product(max_values, range(len(mean))):
        gamma = (m - mean[i]) / math.sqrt(covariance[i, i])
        r = stats.norm.pdf(gamma) / stats.norm.cdf(gamma)
        rho2 = covariance[i, i] / noisy[i, i]
        value -= math.log(1 - rho2 * r * (gamma + r)) / (2 * len(max_values))
    return value


def test_single_values_of_the_specification() -> None:
    values = single_gibbon(MEAN, COVARIANCE.diagonal(), NOISE, MAX_VALUES)
    np.testing.assert_allclose(values, SINGLES, rtol=0, atol=1e-9)
    log_values = single_gibbon(MEAN, COVARIANCE.diagonal(), NOISE, MAX_VALUES, log=True)
    torch.testing.assert_close(log_values, values.log())


@pytest.mark.parametrize(("batch", "expected"), BATCHES.items())
def test_batch_values_of_the_specification(batch: tuple[int, ...], expected: float) -> None:
    index = list(batch)
    value = gibbon(MEAN[index], COVARIANCE[index][:, index], NOISE, MAX_VALUES)
    assert float(value) == pytest.approx(expected, abs=1e-9)


def test_greedy_batch_of_the_specification_picks_one_then_three() -> None:
    posterior = published_posterior()
    prepared = GIBBON(sampler=FixedMaxValues(MAX_VALUES)).prepare(posterior, np.random.default_rng(0))
    scores = prepared(posterior)
    np.testing.assert_allclose(scores, SINGLES, rtol=0, atol=1e-9)
    assert int(scores.argmax()) == 0
    posterior = posterior.given(0)
    scores = prepared(posterior)
    assert int(scores.argmax()) == 2
    increments = [BATCHES[0, 1] - SINGLES[0], BATCHES[0, 2] - SINGLES[0]]
    np.testing.assert_allclose(scores[1:], increments, rtol=0, atol=2e-9)
    posterior = posterior.given(2)
    assert float(prepared(posterior)[1]) == pytest.approx(BATCHES[0, 1, 2] - BATCHES[0, 2], abs=2e-9)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000), st.floats(1e-4, 2.0), st.integers(1, 6))
def test_both_readings_and_the_definition_agree(seed: int, noise: float, size: int) -> None:
    rng = np.random.default_rng(seed)
    factor = rng.standard_normal((size, 2))
    covariance = factor @ factor.T + 0.1 * np.eye(size)
    mean = rng.standard_normal(size)
    max_values = mean.max() + rng.uniform(-0.5, 3.0, size=4)
    expected = naive_gibbon(mean, covariance, noise, max_values)
    tensors = (torch.from_numpy(mean), torch.from_numpy(covariance), noise, torch.from_numpy(max_values))
    assert float(gibbon(*tensors)) == pytest.approx(expected, rel=1e-8, abs=1e-9)

    quality = single_gibbon(tensors[0], tensors[1].diagonal(), noise, tensors[3]).exp()
    noisy = tensors[1] + noise * torch.eye(size, dtype=torch.float64)
    correlation = noisy / torch.outer(noisy.diagonal(), noisy.diagonal()).sqrt()
    kernel = quality[:, None] * quality[None, :] * correlation
    assert 0.5 * float(torch.logdet(kernel)) == pytest.approx(expected, rel=1e-8, abs=1e-9)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000), st.floats(1e-3, 1.0), st.lists(st.integers(0, 6), max_size=4, unique=True))
def test_scores_are_increments_of_the_determinantal_value(seed: int, noise: float, batch: list[int]) -> None:
    rng = np.random.default_rng(seed)
    factor = rng.standard_normal((7, 3))
    covariance = torch.from_numpy(factor @ factor.T + 0.05 * np.eye(7))
    mean = torch.from_numpy(rng.standard_normal(7))
    max_values = mean.max() + torch.from_numpy(rng.uniform(0.0, 2.0, size=5))
    posterior = DensePosterior(mean, covariance, noise)
    prepared = PreparedGIBBON(max_values)
    for chosen in batch:
        posterior = posterior.given(chosen)
    scores = prepared(posterior)

    def value(index: list[int]) -> float:
        if not index:
            return 0.0
        return naive_gibbon(mean[index].numpy(), covariance[index][:, index].numpy(), noise, max_values.numpy())

    for point in set(range(7)) - set(batch):
        expected = value([*batch, point]) - value(batch)
        assert float(scores[point]) == pytest.approx(expected, rel=1e-7, abs=1e-8)


def test_agrees_with_botorch() -> None:
    from botorch.acquisition.max_value_entropy_search import qLowerBoundMaxValueEntropy
    from botorch.models import SingleTaskGP

    generator = torch.Generator().manual_seed(0)
    train = torch.rand(6, 1, dtype=torch.float64, generator=generator)
    outcomes = torch.sin(6 * train)
    model = SingleTaskGP(train, (outcomes - outcomes.mean()) / outcomes.std(), outcome_transform=None)
    model.covar_module.lengthscale = 0.2
    model.likelihood.noise = 0.05
    model.eval()
    points = torch.linspace(0, 1, 21, dtype=torch.float64)[:, None]
    with torch.no_grad():
        latent = model.posterior(points)
        posterior = DensePosterior(
            latent.mean[:, 0], latent.distribution.covariance_matrix, float(model.likelihood.noise)
        )
        max_values = torch.tensor([1.6, 2.0, 2.5], dtype=torch.float64)
        prepared = PreparedGIBBON(max_values)
        for pending in (None, [4], [4, 15]):
            reference = qLowerBoundMaxValueEntropy(model, points, num_mv_samples=3)
            reference.posterior_max_values = max_values[:, None]
            if pending is not None:
                reference.set_X_pending(points[pending])
                posterior = posterior.given(pending[-1])
            np.testing.assert_allclose(prepared(posterior), reference(points[:, None, :]), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("rho2", [0.01, 0.9, 1.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_log_form_is_finite_ordered_and_right_to_gamma_one_hundred(rho2: float, dtype: torch.dtype) -> None:
    gamma = torch.linspace(-4, 100, 521, dtype=dtype)
    values = log_gibbon(gamma, torch.tensor(rho2, dtype=dtype))
    assert torch.isfinite(values).all()
    assert (values.diff() < 0).all()
    stored = float(torch.tensor(rho2, dtype=dtype))
    for position in range(0, len(gamma), 40):
        with mpmath.workdps(60):
            z = mpmath.mpf(float(gamma[position]))
            r = mpmath.npdf(z) / (mpmath.erfc(-z / mpmath.sqrt(2)) / 2)
            expected = mpmath.log(-mpmath.log1p(-mpmath.mpf(stored) * r * (z + r)) / 2)
        tolerance = 1e-4 if dtype == torch.float32 else 1e-11
        assert float(values[position]) == pytest.approx(float(expected), rel=tolerance, abs=tolerance)


def test_noiseless_value_far_above_the_max_value() -> None:
    # For rho = 1 the value is -1/2 log Var[Z | Z < gamma], and the variance tends to 1 / gamma^2.
    value = log_gibbon(torch.tensor([-1e6], dtype=torch.float64), torch.ones(1, dtype=torch.float64))
    assert float(value.exp()) == pytest.approx(math.log(1e6), rel=1e-9)


def test_argmax_is_right_where_every_value_underflows() -> None:
    mean = torch.tensor([-70.0, -45.0, -90.0, -45.5], dtype=torch.float64)
    posterior = DensePosterior(mean, torch.eye(4), 0.1)
    scores = PreparedGIBBON(torch.tensor([0.0, 1.0], dtype=torch.float64))(posterior)
    assert float(single_gibbon(mean, torch.ones(4), 0.1, torch.zeros(1)).max()) == 0.0
    assert scores.argsort(descending=True).tolist() == [1, 3, 0, 2]
    posterior = posterior.given(0)
    scores = PreparedGIBBON(torch.tensor([0.0, 1.0], dtype=torch.float64))(posterior)
    assert scores.argsort(descending=True).tolist() == [1, 3, 2, 0]


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_a_point_without_variance_is_worth_nothing(noise: float) -> None:
    posterior = DensePosterior(torch.tensor([3.0, 0.0]), torch.diag(torch.tensor([0.0, 1.0])), noise)
    prepared = PreparedGIBBON(torch.tensor([2.0], dtype=torch.float64))
    for _ in range(2):
        scores = prepared(posterior)
        assert not scores.isnan().any()
        assert float(scores[0]) == 0.0
        posterior = posterior.given(0)


def test_float32_without_variance_is_no_nan() -> None:
    values = single_gibbon(torch.tensor([1.0, 2.0, 3.0]), torch.zeros(3), 0.0, torch.tensor([2.0]))
    assert values.dtype == torch.float32
    assert values.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("repulsion", "factor"), [(0.0, 0.0), (0.25, 0.25), ("1/B", 0.25), ("1/B^2", 1 / 16), (lambda size: 1 / size, 0.25)]
)
def test_repulsion_scales_the_determinant_only(repulsion: float | str | Callable[[int], float], factor: float) -> None:
    sampler = FixedMaxValues(MAX_VALUES)
    posterior = published_posterior()
    scaled = GIBBON(sampler=sampler, repulsion=repulsion).prepare(posterior, np.random.default_rng(0), batch_size=4)
    full = GIBBON(sampler=sampler, repulsion=1.0).prepare(posterior, np.random.default_rng(0), batch_size=4)
    single = full(posterior)
    posterior = posterior.given(0)
    torch.testing.assert_close(scaled(posterior) - single, factor * (full(posterior) - single))


def test_a_noiseless_point_is_never_taken_twice_unless_nothing_repels() -> None:
    posterior = DensePosterior(MEAN, COVARIANCE, 0.0)
    posterior = posterior.given(0)
    assert float(PreparedGIBBON(MAX_VALUES)(posterior)[0]) < -10
    assert torch.isfinite(PreparedGIBBON(MAX_VALUES, repulsion=0.0)(posterior)).all()


def test_repulsion_by_the_points_chosen_so_far() -> None:
    posterior = published_posterior()
    prepared = GIBBON(sampler=FixedMaxValues(MAX_VALUES), repulsion="1/m^2").prepare(
        posterior, np.random.default_rng(0), batch_size=9
    )
    full = PreparedGIBBON(MAX_VALUES)
    single = full(posterior)
    for factor, chosen in ((1.0, 0), (1.0, 2), (0.25, 1), (1 / 9, 1)):
        torch.testing.assert_close(prepared(posterior) - single, factor * (full(posterior) - single))
        posterior = posterior.given(chosen)


def test_values_are_averaged_over_kernel_parameter_draws(
    make_posterior: Callable[..., DensePosterior],
) -> None:
    posterior = make_posterior(points=6, draws=3)
    max_values = posterior.moments.mean.amax(-1)[:, None] + torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
    prepared = PreparedGIBBON(max_values)
    before = prepared(posterior)
    posterior = posterior.given(2)
    after = prepared(posterior)
    expected_before, expected_after = torch.zeros(6).double(), torch.zeros(6).double()
    _, covariance = posterior.joint(torch.arange(6))
    for draw in range(3):
        one = DensePosterior(
            posterior.moments.mean[draw], covariance[draw], posterior.moments.residual_variance[draw, 0]
        )
        single = PreparedGIBBON(max_values[draw])
        expected_before += single(one) / 3
        one = one.given(2)
        expected_after += single(one) / 3
    torch.testing.assert_close(before, expected_before)
    torch.testing.assert_close(after, expected_after)
    mean, noise = posterior.moments.mean, posterior.moments.residual_variance[:, 0]
    torch.testing.assert_close(
        gibbon(mean, covariance, noise, max_values)[1], gibbon(mean[1], covariance[1], noise[1], max_values[1])
    )


def test_prepared_on_one_set_scores_another(make_posterior: Callable[..., DensePosterior]) -> None:
    sample, population = make_posterior(points=8), make_posterior(points=5, seed=3)
    prepared = GIBBON().prepare(sample, np.random.default_rng(1))
    assert isinstance(prepared, PreparedGIBBON)
    for posterior in (sample, population, sample):
        moments = posterior.moments
        noise = moments.residual_variance[0]
        expected = single_gibbon(moments.mean, moments.variance, noise, prepared.max_values)
        torch.testing.assert_close(prepared(posterior), expected)


@pytest.mark.parametrize("sampler", ["exact", "gumbel"])
def test_one_generator_fixes_the_max_values(sampler: str, make_posterior: Callable[..., DensePosterior]) -> None:
    posterior = make_posterior(points=9, observed=4)
    draws = [GIBBON(7, sampler).prepare(posterior, np.random.default_rng(seed)) for seed in (5, 5, 6)]
    assert torch.equal(draws[0](posterior), draws[1](posterior))
    assert not torch.equal(draws[0](posterior), draws[2](posterior))
    assert isinstance(draws[0], PreparedGIBBON)
    assert draws[0].max_values.shape == (7,)


def test_arguments_are_checked() -> None:
    with pytest.raises(InputError, match="num_samples is 0"):
        GIBBON(num_samples=0)
    with pytest.raises(InputError, match="thomson"):
        GIBBON(sampler="thomson")
    with pytest.raises(InputError, match="FixedMaxValues"):
        GIBBON(sampler=FixedMaxValues)
    with pytest.raises(InputError, match="repulsion is -1"):
        GIBBON(repulsion=-1.0)
    with pytest.raises(InputError, match="1/B"):
        GIBBON(repulsion="1/b")  # type: ignore[arg-type]
    assert isinstance(GIBBON(sampler="gumbel").sampler, GumbelMaxValueSampler)
