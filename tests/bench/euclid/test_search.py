import numpy as np
import pytest
import torch

from seqopt.acquisition import GIBBON, GumbelMaxValueSampler, LogExpectedImprovement, RandomAcquisition
from seqopt.bench.euclid import models, search
from seqopt.bench.euclid.search import Ways, polish, propose, recommend


def process(build=models.single, ways=(0.0,), target=0.0, count=20):
    rng = np.random.default_rng(0)
    points = torch.from_numpy(np.column_stack([rng.random((count, 2)), np.resize(ways, count)]))
    values = -((points[:, 0] - 0.3) ** 2) - (points[:, 1] - 0.8) ** 2
    values = (values - values.mean()) / values.std()
    return models.Surrogate(build, target).fit(points, values, torch.full_like(values, 1e-6))


def test_polishing_finds_the_maximum_of_a_smooth_function_from_points_nearby():
    def score(points):
        return (-((points[:, 0] - 0.37) ** 2) - 2 * (points[:, 1] - 0.61) ** 2).numpy()

    starts = torch.tensor([[0.2, 0.5, 1.0], [0.5, 0.7, 1.0]], dtype=torch.float64)
    found = polish(score, starts, free=False)
    np.testing.assert_allclose(found, [0.37, 0.61, 1.0], atol=1e-4)


def test_polishing_ends_at_the_edge_where_the_function_rises_beyond_it():
    starts = torch.tensor([[0.9, 0.2, 0.3]], dtype=torch.float64)
    found = polish(lambda points: (points[:, 0] - points[:, 1] + points[:, 2]).numpy(), starts, free=True)
    assert found.tolist() == [1.0, 0.0, 1.0]


def test_polishing_returns_no_worse_point_than_its_starts():
    rng = np.random.default_rng(0)
    starts = torch.from_numpy(rng.random((4, 3)))

    def score(points):
        return np.sin(40 * points[:, 0].numpy()) + np.cos(31 * points[:, 1].numpy())

    assert score(polish(score, starts, free=False)[None])[0] >= score(starts).max()


def test_the_recommended_point_has_the_largest_posterior_mean():
    fitted = process()
    found = recommend(fitted, np.random.default_rng(0))
    np.testing.assert_allclose(found, [0.3, 0.8], atol=0.02)
    grid = torch.cartesian_prod(*[torch.linspace(0, 1, 60, dtype=torch.float64)] * 2)
    with torch.no_grad():
        at_grid = fitted.mean(torch.cat([grid, torch.zeros(len(grid), 1, dtype=torch.float64)], -1))
        assert fitted.mean(torch.cat([found, found.new_zeros(1)])[None]) >= at_grid.max() - 1e-9


def test_proposals_are_fixed_by_the_generator_and_points_of_a_batch_are_apart():
    fitted = process()

    def batch(seed):
        acquisition = GIBBON(sampler=GumbelMaxValueSampler(10_000, evaluated=False), repulsion=1.0)
        return propose(fitted, acquisition, lambda count: Ways((0.0,)), np.random.default_rng(seed), batch=3)

    first = batch(0)
    torch.testing.assert_close(first, batch(0), rtol=0, atol=0)
    assert first.shape == (3, 3)
    assert bool(((first >= 0) & (first <= 1)).all())
    assert torch.cdist(first, first).add(torch.eye(3)).min() > 1e-3


@pytest.mark.parametrize(("costs", "cheap"), [((1.0, 1e-6), True), ((1.0, 1e6), False)])
def test_what_is_measured_follows_from_its_cost(costs, cheap):
    fitted = process(models.autoregressive(2), (0.0, 1.0))
    table = np.array(costs)
    ways = Ways((0.0, 1.0), lambda level: table[level.astype(int)])
    acquisition = GIBBON(sampler=GumbelMaxValueSampler(10_000, evaluated=False), repulsion=1.0)
    found = propose(fitted, acquisition, lambda count: ways, np.random.default_rng(0), per_cost=True)
    assert (found[0, -1] == 1.0) == cheap


def test_ways_may_change_within_a_batch():
    fitted = process(models.hierarchical, (1.0, 2.0), -1.0)
    found = propose(
        fitted,
        RandomAcquisition(),
        lambda count: Ways((3.0 + count,)),
        np.random.default_rng(0),
        batch=3,
        polished=False,
    )
    assert found[:, -1].tolist() == [3.0, 4.0, 5.0]


def test_a_free_fidelity_is_a_variable():
    fitted = process(models.degenerate, (0.0, 0.5, 1.0), 1.0)
    found = propose(fitted, LogExpectedImprovement(), lambda count: Ways(()), np.random.default_rng(0))
    assert found.shape == (1, 3)
    assert search.Ways(()).free
    assert not search.Ways((0.0,)).free
