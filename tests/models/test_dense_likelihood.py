"""Likelihoods without a graph against scipy's normal distribution, finite differences and the graph."""

from __future__ import annotations

import math

import gpytorch
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from seqopt.encoding import Encoder
from seqopt.errors import InputError
from seqopt.kernels import NgramKernel, OneHotKernel, SitesKernel, SubsequenceKernel, bind_symbols
from seqopt.models import StringGP
from seqopt.models import dense_likelihood as module
from seqopt.models.dense_likelihood import DenseLikelihood, family_of
from seqopt.models.fitting import COMMON, PointEstimate, TrainingData, parameters_of, set_parameters
from seqopt.models.marginal_likelihood import DenseMarginalLogLikelihood
from seqopt.strategies import maximum_likelihood_gp

STRINGS = ["0110", "1010", "0011", "111000", "1", "010101", "0110"]
BOUNDS = ((1e-8, 1e8), (1e-4, 1e4))


def kernel_at(kernel: gpytorch.kernels.Kernel, values: list[float]) -> gpytorch.kernels.Kernel:
    if isinstance(kernel, SubsequenceKernel):
        return SubsequenceKernel(5, *values, partitions=kernel.partitions)
    return NgramKernel(kernel.longest, values[0])


CASES = [
    (SubsequenceKernel(), [0.8, 0.4]),
    (SubsequenceKernel(), [1.0, 1.0]),
    (NgramKernel(), [3.0]),
]


@pytest.mark.parametrize(("kernel", "values"), CASES)
def test_gram_matrices_are_those_of_the_kernel_and_derivatives_those_of_differences(kernel, values) -> None:
    encoded = Encoder().encode([*STRINGS, ""] if isinstance(kernel, SubsequenceKernel) else STRINGS)
    family = family_of(kernel, encoded.to_tensor())
    gram, slopes = family.at(np.array(values))
    np.testing.assert_allclose(gram, kernel_at(kernel, values).cross(encoded), atol=1e-12)
    for weights in np.random.default_rng(0).standard_normal((3, *gram.shape)):
        found = slopes(weights)
        for place in range(len(values)):
            step = np.zeros(len(values))
            step[place] = -1e-6  # decays of 1 are at their bound
            near = family.at(np.array(values) + step)[0]
            assert found[place] == pytest.approx((weights * (gram - near)).sum() / 1e-6, abs=2e-4)


def test_interpolated_sums_are_exact_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    encoded = Encoder().encode(["".join(rng.choice(list("abcdefgh"), rng.integers(3, 12))) for _ in range(40)])
    family = family_of(SubsequenceKernel(), encoded.to_tensor())
    assert type(family._pairs).__name__ == "InterpolatedGram"
    monkeypatch.setattr(module, "INTERPOLATED", 1000)
    exact = family_of(SubsequenceKernel(), encoded.to_tensor())
    assert type(exact._pairs).__name__ == "Matrix"
    for point in ([0.7, 0.3], [1.0, 1.0], [0.2, 0.01]):
        (gram, found), (wanted, slopes) = family.at(np.array(point)), exact.at(np.array(point))
        np.testing.assert_allclose(gram, wanted, atol=1e-7)
        for weights in rng.standard_normal((3, 40, 40)):
            np.testing.assert_allclose(found(weights), slopes(weights), atol=4e-4)


@settings(max_examples=25, deadline=None)
@given(mean=st.floats(-2, 2), scale=st.floats(-6, 4), noise=st.floats(-9, 3), lengthscale=st.floats(0.5, 20.0))
def test_the_density_is_the_normal_one_and_its_gradient_that_of_differences(mean, scale, noise, lengthscale) -> None:
    encoded = Encoder().encode(STRINGS)
    values = np.array([0.3, -1.2, 0.5, 2.0, -0.7, 0.0, 0.4])
    density = DenseLikelihood(family_of(NgramKernel(), encoded.to_tensor()), values, *BOUNDS)
    point = np.array([mean, scale, noise, lengthscale])
    found, slopes = density(point)
    gram = NgramKernel(lengthscale=lengthscale).cross(encoded)
    covariance = math.exp(scale) * gram + math.exp(noise) * np.eye(7)
    expected = stats.multivariate_normal(np.full(7, mean), covariance).logpdf(values)
    assert 7 * found == pytest.approx(expected, rel=1e-7, abs=1e-7)
    numeric = optimize.approx_fprime(point, lambda at: density(at)[0], 1e-6)
    np.testing.assert_allclose(slopes, numeric, rtol=1e-3, atol=1e-3 * (1 + abs(slopes).max()))


@pytest.mark.parametrize("priors", [True, False])
@pytest.mark.parametrize("mean", [None, 0.0])
@pytest.mark.parametrize("alike", [True, False], ids=["variants", "strings"])
@pytest.mark.parametrize("matrix", ["blosum62", None])
def test_the_density_of_sites_is_that_of_the_graph(priors: bool, mean: float | None, alike: bool, matrix) -> None:
    """With its gradient, at random parameters, by gpytorch's modules and priors."""
    rng = np.random.default_rng(5)
    letters = list("ARND")
    strings = [
        ("".join(rng.choice(letters, 4)) if not alike else "AAAAAAAAAA") + str(rng.choice(letters)) for _ in range(9)
    ]
    encoder, kernel = Encoder(), SitesKernel(len(strings[0]), matrix)
    bind_symbols(kernel, encoder)
    data = TrainingData(encoder.encode(strings), rng.standard_normal(9), np.zeros(9))
    estimate = PointEstimate(kernel, priors=priors, mean=mean)
    model = estimate.build(data)
    model.covar_module.base_kernel.adapt(model.train_inputs[0])
    dense = estimate._dense(model, None)
    assert dense is not None
    names = [*COMMON, *(f"covar_module.base_kernel.{name}" for name in dense.family.names)]
    likelihood = DenseMarginalLogLikelihood(model.likelihood, model, priors=priors)
    for _ in range(5):
        scales = rng.uniform(0.5, 9.0, kernel.sites)
        similarity = [] if matrix is None else [rng.uniform(0.1, 0.9)]
        point = np.array([mean if mean is not None else rng.normal(), *rng.uniform(-2.0, 1.0, 2), *scales, *similarity])
        ends = np.cumsum([len(parameters_of(model)[name]) for name in names])
        set_parameters(model, dict(zip(names, map(list, np.split(point, ends[:-1])), strict=True)))
        model.train().zero_grad()
        expected = likelihood(model(*model.train_inputs), model.train_targets)
        expected.backward()
        found, slopes = dense(point)
        assert found == pytest.approx(expected.item(), rel=1e-9)
        gradients = [dict(model.named_parameters())[name].grad for name in names]
        wanted = np.concatenate([np.full(1, np.nan) if one is None else one.reshape(-1).numpy() for one in gradients])
        known = ~np.isnan(wanted)
        assert known.sum() >= len(point) - 1
        np.testing.assert_allclose(slopes[known], wanted[known], rtol=1e-7, atol=1e-10)


def test_a_mean_that_is_not_learned_stays() -> None:
    rng = np.random.default_rng(0)
    strings = ["".join(rng.choice(list("ARND"), 4)) for _ in range(30)]
    data = TrainingData(Encoder().encode(strings), rng.standard_normal(30), np.zeros(30))
    estimate = PointEstimate(SitesKernel(4, None), mean=0.7)
    model = estimate.build(data)
    assert estimate._dense(model, None) is not None
    estimate.learn(model, data, rng, 2, full=True)
    assert float(model.mean_module.constant) == pytest.approx(0.7, abs=1e-12)
    assert not torch.allclose(model.covar_module.base_kernel.lengthscale, torch.full((1, 4), 12.0).double())


def test_priors_of_sites_are_each_known_or_left_to_the_graph() -> None:
    rng = np.random.default_rng(1)
    strings = ["".join(rng.choice(list("ARND"), 3)) for _ in range(20)]
    values = rng.standard_normal(20)
    each = gpytorch.priors.LogNormalPrior(torch.tensor([0.0, 2.0, 4.0]), torch.tensor([0.01, 0.01, 0.01]))
    scaled = gpytorch.priors.LogNormalPrior(0.0, 0.01, transform=lambda value: value / 10.0)
    for prior, expected in ((each, [1.0, math.exp(2.0), math.exp(4.0)]), (scaled, [10.0] * 3)):
        gp = StringGP(SitesKernel(3, None, lengthscale_prior=prior), restarts=1)
        gp.fit(strings, values, rng=np.random.default_rng(0))
        np.testing.assert_allclose(gp.model.covar_module.base_kernel.lengthscale.detach()[0], expected, rtol=0.05)
    kernel = SitesKernel(3)
    prior = gpytorch.priors.NormalPrior(0.05, 0.001)
    kernel.register_prior("similarity_prior", prior, lambda module: module.similarity, lambda module, value: None)
    gp = StringGP(kernel, restarts=1)
    gp.fit(strings, values, rng=np.random.default_rng(0))
    assert gp.model.covar_module.base_kernel.similarity.item() == pytest.approx(0.05, abs=0.005)


def test_fits_of_sites_are_as_good_as_those_of_the_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    strings = ["".join(rng.choice(list("ARNDCQ"), 5)) for _ in range(40)]
    values = [string.count("A") + 2.0 * (string[2] == "C") for string in strings]

    def reached(frozen: bool) -> tuple[float, list[float]]:
        kernel = SitesKernel(5, similarity=0.3)
        kernel.raw_similarity.requires_grad_(not frozen)
        gp = StringGP(kernel, restarts=1)
        gp.fit(strings, values, rng=np.random.default_rng(0))
        model = gp.model.train()
        density = DenseMarginalLogLikelihood(model.likelihood, model)
        with torch.no_grad():
            found = float(density(model(*model.train_inputs), model.train_targets)) * len(values)
        return found, model.covar_module.base_kernel.similarity.reshape(-1).tolist()

    quick = [reached(frozen) for frozen in (False, True)]
    assert quick[1][1] == pytest.approx([0.3])
    monkeypatch.setattr("seqopt.models.fitting.family_of", lambda kernel, rows, priors: None)
    for (found, _), frozen in zip(quick, (False, True), strict=True):
        assert found == pytest.approx(reached(frozen)[0], abs=0.05)


@pytest.mark.parametrize("kernel", [SubsequenceKernel(), NgramKernel(), OneHotKernel()])
def test_fits_are_as_good_as_those_of_the_graph(kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    strings = ["".join(rng.choice(list("01"), 16)) for _ in range(12)]
    values = [float(string.count("11")) for string in strings]

    def reached() -> float:
        gp = maximum_likelihood_gp(kernel)
        gp.fit(strings, values, rng=np.random.default_rng(0))
        model = gp.model.train()
        density = DenseMarginalLogLikelihood(model.likelihood, model, priors=False)
        with torch.no_grad():
            return float(density(model(*model.train_inputs), model.train_targets)) * len(values)

    quick = reached()
    monkeypatch.setattr("seqopt.models.fitting.family_of", lambda kernel, rows, priors: None)
    assert quick == pytest.approx(reached(), abs=0.05)


def test_kernels_that_are_not_plain_have_no_family() -> None:
    rows = Encoder().encode(["0110", "1010"]).to_tensor()
    frozen = SubsequenceKernel()
    frozen.raw_gap_decay.requires_grad_(False)
    held = SitesKernel(4)
    held.raw_lengthscale.requires_grad_(False)
    for kernel in (
        frozen,
        held,
        SubsequenceKernel(normalize=False),
        SubsequenceKernel(order_weights=[1.0] * 5),
        SubsequenceKernel(batch_shape=torch.Size([2])),
        SitesKernel(4, lengthscale_prior=gpytorch.priors.GammaPrior(2.0, 1.0)),
        gpytorch.kernels.RBFKernel(),
    ):
        assert family_of(kernel, rows) is None
    assert family_of(NgramKernel(), rows, priors=True) is None  # its prior is not known
    gp = StringGP(frozen, priors=False)
    gp.fit(["0110", "1010", "0001"], [1.0, 2.0, 0.0], rng=np.random.default_rng(0))
    assert gp.hyperparameters["gap_decay"] == pytest.approx(float(frozen.gap_decay.detach()))


@pytest.mark.parametrize("kernel", [SubsequenceKernel(), gpytorch.kernels.RBFKernel()])
@pytest.mark.parametrize("priors", [True, False])
def test_noise_that_is_known_is_not_learned(kernel, priors) -> None:
    strings = ["0110", "1010", "0001", "1111", "0000"]
    gp = StringGP(kernel, priors=priors, noise=1e-6)
    gp.fit(strings, [1.0, 2.0, 0.0, 5.0, -1.0], rng=np.random.default_rng(0))
    assert gp.hyperparameters["noise_variance"] == pytest.approx(1e-6, rel=1e-5)
    mean, _ = gp.predict(strings)  # an exact model goes through the values
    assert mean == pytest.approx([1.0, 2.0, 0.0, 5.0, -1.0], abs=1e-2)
    free = StringGP(kernel, priors=priors)
    free.fit(strings, [1.0, 2.0, 0.0, 5.0, -1.0], rng=np.random.default_rng(0))
    assert free.hyperparameters["noise_variance"] >= 1e-4
    with pytest.raises(InputError, match="noise is 0"):
        StringGP(noise=0.0)
