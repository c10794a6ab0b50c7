import numpy as np
import pytest
import torch

from seqopt.acquisition import GIBBON
from seqopt.bench.euclid import models
from seqopt.bench.euclid.adaptor import Process
from seqopt.bench.euclid.kernels import COMMON
from seqopt.posteriors import DensePosterior, Outcomes, Posterior

BUILDS = {
    "single": (models.single, [0.0], 0.0),
    "autoregressive": (models.autoregressive(3), [0.0, 1.0, 2.0], 0.0),
    "coregionalised": (models.coregionalized, [0.0, 1.0, 2.0], 0.0),
    "degenerate": (models.degenerate, [0.0, 0.5, 1.0], 1.0),
    "hierarchical": (models.hierarchical, [1.0, 2.0, 3.0], COMMON),
}


@pytest.fixture(params=BUILDS)
def case(request):
    build, ways, target = BUILDS[request.param]
    rng = np.random.default_rng(0)
    points = torch.from_numpy(np.column_stack([rng.random((15, 2)), np.resize(ways, 15)]))
    values = torch.sin(5 * points[:, 0]) + points[:, 1]
    noise = torch.full_like(values, 0.01)
    model = build(points, values[:, None], noise[:, None])
    asked = torch.from_numpy(np.column_stack([rng.random((8, 2)), np.resize(ways, 8)]))
    return Process(model, target), asked, values


def test_means_and_variances_are_those_of_botorch(case):
    process, asked, _ = case
    with torch.no_grad():
        theirs = process.model(asked)
    moments = process.at(asked).moments
    torch.testing.assert_close(moments.outcome_mean, theirs.mean, atol=1e-8, rtol=1e-6)
    torch.testing.assert_close(moments.outcome_variance - 0.01, theirs.variance, atol=1e-8, rtol=1e-6)


def dense(process, asked):
    """The same posterior from full matrices, by the textbook."""
    with torch.no_grad():
        own = process.targets(asked)
        both = torch.cat([own, asked])
        data = process.prior(process.inputs, process.inputs) + 0.01 * torch.eye(len(process.inputs))
        cross = process.prior(both, process.inputs)
        residual = process.model.train_targets - process.prior_mean(process.inputs)
        mean = process.prior_mean(both) + cross @ torch.linalg.solve(data, residual)
        covariance = process.prior(both, both) - cross @ torch.linalg.solve(data, cross.T)
    n = len(asked)
    outcomes = Outcomes(mean[n:], covariance[n:, n:], covariance[:n, n:])
    return DensePosterior(mean[:n], covariance[:n, :n], 0.01, outcomes=outcomes)


def test_moments_are_those_of_the_joint_distribution_also_given_points_seen(case):
    process, asked, _ = case
    ours, theirs = process.at(asked), dense(process, asked)
    assert isinstance(ours, Posterior)
    for index in (None, 3, 0, 5):
        if index is not None:
            ours, theirs = ours.given(index), theirs.given(index)
        for name in ours.moments.__dataclass_fields__:
            torch.testing.assert_close(
                getattr(ours.moments, name), getattr(theirs.moments, name), atol=1e-8, rtol=1e-6, msg=name
            )
    torch.testing.assert_close(ours.conditioned_mean, theirs.conditioned_mean, atol=1e-8, rtol=1e-6)
    indices = torch.tensor([1, 4, 6])
    torch.testing.assert_close(ours.joint(indices)[1], theirs.joint(indices)[1], atol=1e-8, rtol=1e-6)
    torch.testing.assert_close(ours.cross(indices), theirs.cross(indices), atol=1e-8, rtol=1e-6)
    torch.testing.assert_close(ours.unconditioned().moments.conditional_variance, process.at(asked).moments.variance)


def test_joint_distributions_with_measured_points_hold_their_targets_first(case):
    process, asked, _ = case
    posterior = process.at(asked)
    mean, covariance = posterior.joint(torch.tensor([2]), include_observed=True)
    observed = len(posterior.observed_mean)
    assert mean.shape == (observed + 1,)
    assert covariance.shape == (observed + 1, observed + 1)
    torch.testing.assert_close(mean[:-1], posterior.observed_mean)
    torch.testing.assert_close(covariance[-1, -1], posterior.moments.variance[2], atol=1e-8, rtol=1e-6)


def test_gibbon_of_the_adaptor_is_gibbon_of_the_dense_posterior(case):
    process, asked, _ = case
    ours, theirs = process.at(asked), dense(process, asked)
    prepared = GIBBON(repulsion=1.0).prepare(ours, np.random.default_rng(0), 2)
    torch.testing.assert_close(prepared(ours), prepared(theirs), atol=1e-7, rtol=1e-5)
    torch.testing.assert_close(prepared(ours.given(2)), prepared(theirs.given(2)), atol=1e-7, rtol=1e-5)
