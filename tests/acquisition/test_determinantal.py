"""DPP-EI: the first point by expected improvement, the others by determinants among promising ones."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
import torch

from seqopt.acquisition import DensePosterior, DPPExpectedImprovement, LogExpectedImprovement
from seqopt.errors import InputError


def prepared(posterior: DensePosterior, beta: float = 4.0) -> Callable[[DensePosterior], torch.Tensor]:
    return DPPExpectedImprovement(beta).prepare(posterior, np.random.default_rng(0))


def test_the_first_is_that_of_expected_improvement(make_posterior: Callable[..., DensePosterior]) -> None:
    posterior = make_posterior(points=9, observed=4, draws=2)
    expected = LogExpectedImprovement().prepare(posterior, np.random.default_rng(0))(posterior)
    assert torch.equal(prepared(posterior)(posterior), expected)


def test_the_rest_is_the_greedy_largest_determinant_of_what_is_promising(
    make_posterior: Callable[..., DensePosterior],
) -> None:
    posterior = make_posterior(points=8, observed=3, noise=1e-9)
    score = prepared(posterior, beta=1.0)
    moments = posterior.moments
    std = moments.variance.sqrt()
    level = max(float((moments.mean - std).max()), float(posterior.observed_mean.max()))
    promising = [point for point in range(8) if float(moments.mean[point] + std[point]) >= level]
    assert 3 <= len(promising) < 8
    _, covariance = posterior.joint(torch.arange(8))
    batch = [int(score(posterior).argmax())]
    for _ in range(2):
        posterior = posterior.given(batch[-1])
        scores = score(posterior)
        assert {point for point in range(8) if scores[point] > -math.inf} == set(promising)
        for point in set(promising) - set(batch):
            joint = [*batch, point]
            before, after = (torch.logdet(covariance[some][:, some]) for some in (batch, joint))
            assert float(scores[point]) == pytest.approx(float(after - before), abs=1e-6)
        batch.append(int(scores.argmax()))
    assert len(set(batch)) == 3


def test_it_is_averaged_over_draws(make_posterior: Callable[..., DensePosterior]) -> None:
    posterior = make_posterior(points=5, draws=3).given(1)
    scores = prepared(posterior, beta=100.0)(posterior)
    torch.testing.assert_close(scores, posterior.moments.conditional_variance.log().mean(0))


def test_something_is_promising_whatever_was_measured(make_posterior: Callable[..., DensePosterior]) -> None:
    for raised, beta in itertools.product((-50.0, 0.0, 50.0), (0.0, 4.0)):
        posterior = make_posterior(points=6, observed=3, observed_raised=raised)
        assert float(prepared(posterior, beta)(posterior.given(0)).max()) > -math.inf


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(InputError, match="beta is -1"):
        DPPExpectedImprovement(-1.0)
    with pytest.raises(InputError, match="incumbent is 'best'"):
        DPPExpectedImprovement(incumbent="best")  # type: ignore[arg-type]
