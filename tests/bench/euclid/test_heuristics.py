import math

import numpy as np
import pytest
import torch

from seqopt.acquisition import MES, LogExpectedImprovement
from seqopt.bench.euclid import models
from seqopt.bench.euclid.heuristics import DeterminantalImprovement, LocalPenalisation, steepest
from seqopt.bench.euclid.methods import METHODS, State
from seqopt.bench.euclid.search import Ways


@pytest.fixture(scope="module")
def process():
    rng = np.random.default_rng(0)
    points = torch.from_numpy(np.column_stack([rng.random((12, 2)), np.zeros(12)]))
    values = torch.sin(5 * points[:, 0]) + points[:, 1]
    return models.Surrogate(models.single).fit(points, values - values.mean(), torch.full_like(values, 1e-4))


@pytest.fixture
def posterior(process):
    rng = np.random.default_rng(1)
    return process.at(torch.from_numpy(np.column_stack([rng.random((30, 2)), np.zeros(30)])))


@pytest.mark.parametrize(("base", "logarithmic"), [(LogExpectedImprovement(), True), (MES(), False)])
def test_local_penalisation_is_its_formula(process, posterior, base, logarithmic):
    prepared = LocalPenalisation(base, logarithmic).prepare(posterior, np.random.default_rng(0), 2)
    alone = prepared(posterior)
    raw = base.prepare(posterior, np.random.default_rng(0), 2)(posterior)
    torch.testing.assert_close(alone, raw if logarithmic else raw.log())
    chosen = int(alone.argmax())
    after = prepared(posterior.given(chosen))
    lipschitz, best = steepest(process, posterior.points), float(posterior.observed_mean.max())
    mean, variance = float(posterior.moments.mean[chosen]), float(posterior.moments.variance[chosen])
    for index in range(30):
        distance = float((posterior.points[index] - posterior.points[chosen]).norm())
        z = (lipschitz * distance - best + mean) / math.sqrt(2 * variance)
        psi = 0.5 * math.erfc(-z)
        if psi > 1e-200:
            assert float(after[index] - alone[index]) == pytest.approx(math.log(psi), rel=1e-6, abs=1e-9)


def test_the_steepest_slope_is_that_of_finite_differences(process, posterior):
    step = 1e-5
    slopes = []
    with torch.no_grad():
        for column in range(2):
            move = torch.zeros(3, dtype=torch.float64)
            move[column] = step
            slopes.append((process.mean(posterior.points + move) - process.mean(posterior.points - move)) / (2 * step))
    expected = torch.stack(slopes).norm(dim=0).max()
    assert steepest(process, posterior.points) == pytest.approx(float(expected), rel=1e-5)


def test_determinantal_batches_begin_with_improvement_and_go_on_with_the_largest_variance(posterior):
    prepared = DeterminantalImprovement().prepare(posterior, np.random.default_rng(0), 3)
    improvement = LogExpectedImprovement().prepare(posterior, np.random.default_rng(0))(posterior)
    first = int(prepared(posterior).argmax())
    assert first == int(improvement.argmax())
    given = posterior.given(first)
    moments = posterior.moments
    std = moments.variance.sqrt()
    inside = moments.mean + 4.0 * std >= (moments.mean - 2.0 * std).max()
    second = int(prepared(given).argmax())
    expected = torch.where(inside, given.moments.conditional_variance, torch.tensor(-1.0, dtype=torch.float64)).argmax()
    assert second == int(expected)
    assert not bool(inside.all()), "the region is no region in this example"


@pytest.mark.parametrize(
    "name",
    [
        *("thompson", "dpp-ei", "lp-ei", "lp-mes", "believer", "gibbon-own", "nei"),
        pytest.param("kg", marks=pytest.mark.slow),
    ],
)
def test_every_batch_method_chooses_points_of_the_cube_that_the_generator_fixes(process, name):
    def chosen():
        near = process.inputs[0, :-1]
        state = State(process, lambda count: Ways((0.0,)), 2, near, 1.0, np.random.default_rng(3))
        return METHODS[name].choose(state)

    found = chosen()
    assert found.shape == (2, 3)
    assert bool(((found >= 0) & (found <= 1)).all())
    assert found[:, -1].tolist() == [0.0, 0.0]
    assert float((found[0] - found[1]).abs().max()) > 1e-6
    torch.testing.assert_close(chosen(), found)
