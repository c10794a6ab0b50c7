"""SCoreBO: values by hand, refits, brute force for optima, numerics."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from seqopt.acquisition import DensePosterior, SCoreBO
from seqopt.acquisition.numerics import inverse_mills, truncation_shrinkage
from seqopt.acquisition.scorebo import Optima, PreparedSCoreBO
from seqopt.errors import InputError
from seqopt.posteriors import Anchors, Moments

NOTHING = torch.empty(0, dtype=torch.int64)
BY_HAND = DensePosterior(torch.zeros(2), torch.tensor([[1.0, 0.5], [0.5, 1.0]]), 0.25)


def at(posterior: DensePosterior, index: int, value: float) -> Optima:
    """One optimum at a query, of one value."""
    points = posterior.anchors(torch.tensor([index]), NOTHING)
    draws = posterior.moments.mean.shape[:-1]
    values = torch.full((*draws, 1), value, dtype=torch.float64)
    mean, variance = posterior.moments.mean[..., index, None], posterior.moments.variance[..., index, None]
    places = torch.zeros(*draws, 1, dtype=torch.int64)
    return Optima(Anchors(points, places), values, (values - mean) / variance.sqrt())


def scored(posterior: DensePosterior, optima: Optima, **options: object) -> torch.Tensor:
    return SCoreBO(**{"noise": 0.0, **options}).prepared(optima)(posterior)  # type: ignore[arg-type]


def test_a_standard_normal_variable_that_is_cut_off_at_0():
    zero = torch.zeros(1, dtype=torch.float64)
    assert float(-inverse_mills(zero)[0]) == pytest.approx(-0.797885, abs=5e-7)
    variance = float(truncation_shrinkage(zero)[1])
    assert variance == pytest.approx(0.363380, abs=5e-7)
    assert variance + 0.25 == pytest.approx(0.613380, abs=5e-7)


def test_two_strings_by_hand():
    optima = at(BY_HAND, 0, 2.0)
    assert float(scored(BY_HAND, optima)[1]) == pytest.approx(0.300806, abs=5e-7)
    assert float(scored(BY_HAND, optima, distance="wasserstein")[1]) == pytest.approx(0.835239, abs=5e-7)
    # Without truncation, and without the place of the optimum.
    assert float(scored(BY_HAND, optima, known="location")[1]) == pytest.approx(0.328535, abs=5e-7)
    assert float(scored(BY_HAND, optima, known="value")[1]) == pytest.approx(0.029765, abs=5e-7)
    # With the noise of a measurement in place of none it would be .240247.
    assert float(scored(BY_HAND, optima, noise=0.25)[1]) == pytest.approx(0.240247, abs=5e-7)
    assert abs(float(SCoreBO().prepared(optima)(BY_HAND)[1]) - 0.300806) < 1e-3


def test_the_value_of_the_optimum_is_taken_without_noise():
    rng = np.random.default_rng(0)
    factor = rng.normal(size=(5, 5))
    posterior = DensePosterior(torch.from_numpy(rng.normal(size=5)), torch.from_numpy(factor @ factor.T), 0.3)
    optima = at(posterior, 2, 3.0)
    prepared = SCoreBO().prepared(optima)
    moments = posterior.at_anchors(optima.anchors)
    mean, variance = (
        SCoreBO(known="location")
        .prepared(optima)
        ._conditioned(
            posterior.moments.mean[None],
            posterior.moments.variance[None],
            moments.variance[None],
            moments.covariance[None],
        )
    )
    assert float(mean[0, 0, 2]) == pytest.approx(3.0, abs=1e-2)
    assert float(variance[0, 0, 2]) < 1e-3
    assert isinstance(prepared, PreparedSCoreBO)
    # As a process that has seen the value with this noise, from its joint distribution.
    joint_mean, covariance = posterior.joint(torch.arange(5))
    gain = covariance[:, 2] / (covariance[2, 2] + 1e-4)
    torch.testing.assert_close(mean[0, 0], joint_mean + gain * (3.0 - joint_mean[2]), rtol=1e-10, atol=1e-10)
    left = covariance - gain[:, None] * covariance[2]
    torch.testing.assert_close(variance[0, 0], left.diagonal(), rtol=1e-9, atol=1e-10)


def test_the_marginal_is_the_mixture_without_optima():
    """With optima that tell nothing of a point, its score is the mean distance of its draws from their mixture."""
    covariance = torch.eye(2).expand(2, 2, 2)
    posterior = DensePosterior(torch.tensor([[0.0, 0.0], [0.0, 2.0]]), covariance, 0.5)
    found = scored(posterior, at(posterior, 0, 60.0), distance="wasserstein")[1]
    s2, total = 1.5, 1.5 + 1.0
    assert float(found) == pytest.approx(np.hypot(1.0, np.sqrt(s2) - np.sqrt(total)), abs=1e-9)


def test_one_draw_is_enough_and_equal_draws_change_nothing(make_posterior):
    posterior = make_posterior(points=8, observed=3)
    acquisition = SCoreBO()
    optima = acquisition.optima(posterior, np.random.default_rng(0))
    scores = acquisition.prepared(optima)(posterior)
    assert bool((scores > 0).all())
    assert float(scores.max() - scores.min()) > 0.01
    mean, covariance = posterior.joint(torch.arange(8), include_observed=True)
    repeated = DensePosterior(
        mean[3:].expand(3, 8),
        covariance[3:, 3:].expand(3, 8, 8),
        0.1,
        observed_mean=mean[:3].expand(3, 3),
        observed_covariance=covariance[:3, :3].expand(3, 3, 3),
        cross_covariance=covariance[:3, 3:].expand(3, 3, 8),
    )
    same = Optima(
        Anchors(optima.anchors.points, optima.anchors.places.expand(3, 8)),
        optima.values.expand(3, 8),
        optima.deviations.expand(3, 8),
    )
    torch.testing.assert_close(acquisition.prepared(same)(repeated), scores)


def test_values_and_places_of_optima_matter(make_posterior):
    posterior = make_posterior(points=8, draws=2)
    orders = {}
    for known, optima in {
        "as it is": at(posterior, 0, 2.5),
        "higher": at(posterior, 0, 6.0),
        "elsewhere": at(posterior, 5, 2.5),
    }.items():
        orders[known] = tuple(scored(posterior, optima).argsort().tolist())
    assert len(set(orders.values())) == 3


def test_optima_are_drawn_jointly_with_the_evaluated_strings():
    mean = torch.tensor([0.3, 0.0, 0.2], dtype=torch.float64)
    covariance = torch.tensor([[1.0, 0.95, -0.6], [0.95, 1.0, -0.7], [-0.6, -0.7, 1.2]], dtype=torch.float64)
    posterior = DensePosterior(
        mean[1:],
        covariance[1:, 1:],
        0.1,
        observed_mean=mean[:1],
        observed_covariance=covariance[:1, :1],
        cross_covariance=covariance[:1, 1:],
    )
    optima = SCoreBO(num_samples=20_000).optima(posterior, np.random.default_rng(0))
    functions = np.random.default_rng(1).multivariate_normal(mean.numpy(), covariance.numpy(), size=200_000)
    expected = np.bincount(functions.argmax(1), minlength=3) / 200_000
    where = optima.anchors.points[optima.anchors.places]
    found = np.bincount(where, minlength=3) / 20_000
    np.testing.assert_allclose(found, expected, atol=0.015)
    assert found[0] > 0.1  # an evaluated string can win
    independent = np.random.default_rng(1).normal(mean.numpy(), covariance.diagonal().sqrt().numpy(), size=(200_000, 3))
    assert np.abs(np.bincount(independent.argmax(1), minlength=3) / 200_000 - expected).max() > 0.05
    # Each value is the maximum of its function: their distribution is that of the maximum.
    quantiles = np.linspace(0.05, 0.95, 10)
    np.testing.assert_allclose(
        np.quantile(optima.values, quantiles), np.quantile(functions.max(1), quantiles), atol=0.04
    )
    std = covariance.diagonal().sqrt()
    np.testing.assert_allclose(mean[where] + optima.deviations * std[where], optima.values, atol=1e-12)


def test_few_points_are_looked_at_where_there_are_many(make_posterior):
    posterior = make_posterior(points=40, observed=30, draws=4)
    acquisition = SCoreBO(num_candidates=6, num_random=4, max_points=16)
    optima = acquisition.optima(posterior, np.random.default_rng(0))
    best = torch.topk(posterior.observed_mean.mean(0), 8).indices
    seen = optima.anchors.points
    assert set(seen[seen < 30].tolist()) <= set(best.tolist())
    assert len(seen) <= 8 + 3 + 2
    assert torch.equal(optima.values, acquisition.optima(posterior, np.random.default_rng(0)).values)


@pytest.mark.parametrize("distance", ["hellinger", "wasserstein", "kl"])
@pytest.mark.parametrize("known", ["joint", "value", "location"])
def test_scores_are_finite_at_optima_at_copies_and_without_noise(distance, known):
    covariance = torch.tensor([[1.0, 1.0, 2e-3], [1.0, 1.0, 2e-3], [2e-3, 2e-3, 1e-4]], dtype=torch.float64)
    for noise in (0.0, 1e-12, 0.1):
        posterior = DensePosterior(torch.tensor([[0.0, 0.0, 0.5]] * 2), covariance.expand(2, 3, 3), noise)
        prepared = SCoreBO(distance, known).prepare(posterior, np.random.default_rng(0))
        scores = prepared(posterior)
        assert bool(scores.isfinite().all())
        assert float(scores[0]) == pytest.approx(float(scores[1]), rel=1e-6)
        grown = posterior
        for index in (0, 1, 2):
            grown = grown.given(index)
            assert bool(prepared(grown).isfinite().all())


def test_what_was_chosen_is_worth_less(make_posterior):
    posterior = make_posterior(points=10, observed=3, draws=3)
    for options in ({}, {"batch": "diversity"}):
        prepared = SCoreBO(**options).prepare(posterior, np.random.default_rng(0))
        scores = prepared(posterior)
        best = int(scores.argmax())
        assert float(prepared(posterior.given(best))[best]) < 0.9 * float(scores[best])


def test_what_does_not_fit_is_refused():
    with pytest.raises(InputError, match="known is 'both'; expected one of joint, value, location"):
        SCoreBO(known="both")
    with pytest.raises(InputError, match="num_samples is 0; expected at least 1"):
        SCoreBO(num_samples=0)
    with pytest.raises(InputError, match="noise is -1"):
        SCoreBO(noise=-1)

    class Margins:
        moments = Moments.of_target(*(torch.zeros(2, dtype=torch.float64),) * 3, torch.zeros(()))
        observed_mean = torch.empty(0)

    with pytest.raises(InputError, match="a Margins cannot be related to points of another posterior"):
        SCoreBO().prepare(Margins(), np.random.default_rng(0))
    other = DensePosterior(torch.zeros(1), torch.eye(1), 0.1)
    with pytest.raises(InputError, match="anchors are of another posterior"):
        SCoreBO().prepared(at(BY_HAND, 1, 1.0))(other)
