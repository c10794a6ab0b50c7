import numpy as np
import pytest
import torch
from gpytorch.mlls import ExactMarginalLogLikelihood

from seqopt.bench.euclid import models
from seqopt.bench.euclid.adaptor import means
from seqopt.bench.euclid.kernels import COMMON

BUILDS = {
    "single": models.single,
    "autoregressive": models.autoregressive(3),
    "coregionalised": models.coregionalized,
    "degenerate": models.degenerate,
    "hierarchical": models.hierarchical,
}


def data(rng, levels=3, count=18, dim=2):
    level = np.arange(count) % levels
    points = np.column_stack([rng.random((count, dim)), level])
    values = np.sin(6 * points[:, 0]) + points[:, 1] + 0.3 * level
    return torch.from_numpy(points), torch.from_numpy((values - values.mean()) / values.std())


# BoTorch gives every task of a coregionalised model a noise of its own, which no experiment has estimated.
CASES = [(name, noise) for name in BUILDS for noise in (1e-4, None) if (name, noise) != ("coregionalised", None)]


@pytest.mark.parametrize(("name", "noise"), CASES)
def test_what_is_maximised_is_gpytorchs_objective(name, noise):
    points, values = data(np.random.default_rng(0))
    model = BUILDS[name](points, values[:, None], None if noise is None else torch.full_like(values, noise)[:, None])
    mll = ExactMarginalLogLikelihood(model.likelihood, model)
    ours = models._log_posterior(mll, points, model.train_targets)
    model.train()
    theirs = mll(model(points), model.train_targets)
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("name", BUILDS)
def test_a_fit_raises_the_objective_and_a_second_one_goes_on_from_it(name):
    points, values = data(np.random.default_rng(1))
    noise = torch.full_like(values, 1e-4)
    surrogate = models.Surrogate(BUILDS[name], COMMON if name == "hierarchical" else 0.0)

    def objective(model):
        model.train()
        with torch.no_grad():
            return float(models._log_posterior(ExactMarginalLogLikelihood(model.likelihood, model), points, values))

    before = objective(BUILDS[name](points, values[:, None], noise[:, None]))
    first = objective(surrogate.fit(points, values, noise).model)
    second = objective(surrogate.fit(points, values, noise).model)
    assert first > before + 0.01
    assert second >= first - 1e-9


def test_means_of_levels_are_their_own_where_the_model_has_several():
    points, values = data(np.random.default_rng(2))
    model = models.coregionalized(points, values[:, None], torch.full_like(values, 1e-4)[:, None])
    with torch.no_grad():
        for level, mean in enumerate(model.mean_module.base_means):
            mean.constant.fill_(float(level))
        assert means(model, points).tolist() == points[:, -1].tolist()


def plates_of(rng, departure, count=20):
    """Values of a smooth function of one variable on two plates, and by how much the second one departs."""
    points = np.column_stack([rng.random(count), np.arange(count) % 2 + 1.0])
    values = np.sin(7 * points[:, 0]) + departure * (points[:, 1] - 1.0)
    return torch.from_numpy(points), torch.from_numpy((values - values.mean()) / values.std())


@pytest.mark.parametrize(("departure", "believed"), [(0.0, False), (1.0, True)])
def test_departures_of_plates_are_believed_where_they_make_values_likelier(departure, believed):
    points, values = plates_of(np.random.default_rng(3), departure)
    noise = torch.full_like(values, 1e-6)
    plain = models.Surrogate(models.hierarchical, COMMON)
    choosy = models.Surrogate(models.hierarchical, COMMON, models.without_departures)
    for surrogate in (plain, choosy):
        for _ in range(2):
            process = surrogate.fit(points, values, noise)
    scales = process.model.covar_module.scales()
    assert bool(scales[1:].max() > 1e-6) == believed

    def log_density(process):
        model = process.model
        model.train()
        with torch.no_grad():
            mll = ExactMarginalLogLikelihood(model.likelihood, model)
            return len(values) * float(models._log_posterior(mll, points, values))

    gain = log_density(plain.fit(points, values, noise)) - log_density(choosy.fit(points, values, noise))
    # The simpler model is chosen where the other one gains less than its two parameters cost.
    assert gain <= 2.0 * models.WORTH + 0.1


def test_a_model_without_departures_has_none_and_no_slope_leads_out_of_it():
    points, values = plates_of(np.random.default_rng(4), 1.0)
    model = models.hierarchical(points, values[:, None], torch.full_like(values, 1e-4)[:, None])
    assert models.without_departures(model) == 2
    kernel = model.covar_module
    assert kernel.scales()[1:].tolist() == pytest.approx([1e-10, 1e-10])
    kernel(points).to_dense().sum().backward()
    assert kernel.log_scales.grad[1:].tolist() == [0.0, 0.0]
