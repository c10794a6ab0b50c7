"""Log expected improvement against quadrature and BoTorch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy import integrate, stats

from seqopt.acquisition import DensePosterior, LogExpectedImprovement
from seqopt.errors import InputError


def prepared_on(posterior: DensePosterior) -> Callable[[DensePosterior], torch.Tensor]:
    return LogExpectedImprovement().prepare(posterior, np.random.default_rng(0))


def test_matches_quadrature_over_the_best_mean(
    make_posterior: Callable[..., DensePosterior],
) -> None:
    posterior = make_posterior(points=8, observed=5)
    scores = prepared_on(posterior)(posterior)
    best = float(posterior.observed_mean.max())
    for i in range(8):
        mean, std = float(posterior.moments.mean[i]), float(posterior.moments.variance[i].sqrt())
        expected, _ = integrate.quad(
            lambda g, m=mean, s=std: (g - best) * stats.norm.pdf(g, m, s),
            best,
            max(best, mean) + 12 * std,
            epsabs=1e-13,
        )
        assert float(scores[i].exp()) == pytest.approx(expected, rel=1e-8)


def test_matches_botorch_far_into_the_tail() -> None:
    from botorch.acquisition.analytic import LogExpectedImprovement as Reference
    from botorch.models import SingleTaskGP

    train = torch.tensor([[0.1], [0.5], [0.9]], dtype=torch.float64)
    outcomes = torch.tensor([[-1.0], [0.0], [1.0]], dtype=torch.float64)
    model = SingleTaskGP(train, outcomes, outcome_transform=None)
    model.covar_module.lengthscale = 0.3
    model.likelihood.noise = 0.01
    model.eval()
    points = torch.linspace(0, 1, 31, dtype=torch.float64)[:, None]
    with torch.no_grad():
        latent = model.posterior(points)
        for incumbent in (-2.0, 0.5, 1.0, 20.0):
            posterior = DensePosterior(
                latent.mean[:, 0],
                latent.distribution.covariance_matrix,
                0.01,
                observed_mean=torch.tensor([incumbent - 1, incumbent]),
            )
            expected = Reference(model, best_f=incumbent)(points[:, None, :])
            np.testing.assert_allclose(prepared_on(posterior)(posterior), expected, rtol=1e-6, atol=1e-8)


def test_the_incumbent_may_be_the_best_measured_value() -> None:
    mean, variance = torch.tensor([0.2, 1.0, 3.0]), torch.tensor([1.0, 0.25, 0.04])
    posterior = DensePosterior(
        mean, torch.diag(variance), 0.1, observed_mean=torch.tensor([0.4, 0.1]), best_observed=1.5
    )
    scores = LogExpectedImprovement("value").prepare(posterior, np.random.default_rng(0))(posterior)
    for found, m, v in zip(scores.exp().tolist(), mean.tolist(), variance.tolist(), strict=True):
        # Equation 2.1.3 of the thesis, with gamma = (y - mu) / sigma.
        gamma = (1.5 - m) / v**0.5
        expected = (m - 1.5) * stats.norm.cdf(-gamma) + v**0.5 * stats.norm.pdf(gamma)
        assert found == pytest.approx(expected, rel=1e-8)
    with pytest.raises(InputError, match="incumbent is 'best'"):
        LogExpectedImprovement("best")  # type: ignore[arg-type]


def test_the_incumbent_is_no_noisy_observation(make_posterior: Callable[..., DensePosterior]) -> None:
    posterior = make_posterior(points=4, observed=3)
    scores = prepared_on(posterior)(posterior)
    lucky = make_posterior(points=4, observed=3, best_observed=50.0)
    assert torch.equal(prepared_on(lucky)(lucky), scores)


def test_batches_use_the_conditional_variance_and_believe_the_means() -> None:
    mean = torch.tensor([0.6, 0.5, -0.2])
    covariance = torch.tensor([[1.0, 0.98, 0.0], [0.98, 1.0, 0.0], [0.0, 0.0, 1.0]])
    posterior = DensePosterior(mean, covariance, 0.01, observed_mean=torch.tensor([0.0]))
    prepared = prepared_on(posterior)
    assert int(prepared(posterior).argmax()) == 0
    posterior = posterior.given(0)
    scores = prepared(posterior)
    assert int(scores.argmax()) == 2
    after = DensePosterior(
        mean, torch.diag(posterior.moments.conditional_variance), 0.1, observed_mean=torch.tensor([0.6])
    )
    torch.testing.assert_close(scores, prepared_on(after)(after))


def test_expectations_are_averaged_over_draws(make_posterior: Callable[..., DensePosterior]) -> None:
    posterior = make_posterior(points=5, observed=4, draws=3)
    scores = prepared_on(posterior)(posterior)
    expected = torch.zeros(5, dtype=torch.float64)
    _, covariance = posterior.joint(torch.arange(5))
    for draw in range(3):
        one = DensePosterior(
            posterior.moments.mean[draw], covariance[draw], 0.1, observed_mean=posterior.observed_mean[draw]
        )
        expected += prepared_on(one)(one).exp() / 3
    torch.testing.assert_close(scores.exp(), expected)


def test_points_without_variance_and_no_data() -> None:
    posterior = DensePosterior(torch.tensor([1.5, -1.0, 0.0]), torch.diag(torch.tensor([0.0, 0.0, 1.0])), 0.1)
    scores = prepared_on(posterior)(posterior)
    assert torch.isfinite(scores).all()
    np.testing.assert_allclose(scores.exp(), [1.5, 0.0, 1 / np.sqrt(2 * np.pi)], atol=1e-12)
