"""Upper confidence bound and posterior mean."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from seqopt.acquisition import DensePosterior, PosteriorMean, UpperConfidenceBound
from seqopt.errors import InputError


def test_bound_given_what_was_conditioned_on(make_posterior: Callable[..., DensePosterior]) -> None:
    posterior = make_posterior(points=6)
    prepared = UpperConfidenceBound(beta=2.25).prepare(posterior, np.random.default_rng(0))
    torch.testing.assert_close(prepared(posterior), posterior.moments.mean + 1.5 * posterior.moments.variance.sqrt())
    posterior = posterior.given(3)
    scores = prepared(posterior)
    _, covariance = posterior.joint(torch.arange(6))
    solved = covariance - torch.outer(covariance[:, 3], covariance[3]) / (covariance[3, 3] + 0.1)
    torch.testing.assert_close(scores, posterior.moments.mean + 1.5 * solved.diagonal().sqrt())


def test_values_are_averaged_over_draws(make_posterior: Callable[..., DensePosterior]) -> None:
    posterior = make_posterior(points=5, draws=3)
    rng = np.random.default_rng(0)
    bound = UpperConfidenceBound(beta=4.0).prepare(posterior, rng)(posterior)
    torch.testing.assert_close(bound, (posterior.moments.mean + 2 * posterior.moments.variance.sqrt()).mean(0))
    torch.testing.assert_close(PosteriorMean().prepare(posterior, rng)(posterior), posterior.moments.mean.mean(0))


def test_the_mean_ignores_conditioning(make_posterior: Callable[..., DensePosterior]) -> None:
    posterior = make_posterior(points=5)
    prepared = PosteriorMean().prepare(posterior, np.random.default_rng(0))
    posterior = posterior.given(1)
    assert torch.equal(prepared(posterior), posterior.moments.mean)


def test_negative_beta_is_refused() -> None:
    with pytest.raises(InputError, match=r"beta is -0\.5"):
        UpperConfidenceBound(beta=-0.5)
