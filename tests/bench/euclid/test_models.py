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
