"""Posteriors at any strings, draw by draw, against dense Gaussian conditioning and against the posterior of a pool."""

import numpy as np
import pytest
import torch

from seqopt.kernels import SubsequenceKernel
from seqopt.models import FullyBayesianStringGP, StringGP
from seqopt.models.conditioned import BlockwisePosterior
from seqopt.models.protocols import ConditionedProcess, StringSurrogate
from seqopt.posteriors import Moments, Posterior

MOMENTS = list(Moments.__dataclass_fields__)


def random_strings(count, rng, longest=12):
    return list(
        dict.fromkeys("".join(rng.choice(list("ABC"), size=rng.integers(1, longest + 1))) for _ in range(count))
    )


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(4)
    strings = random_strings(40, rng)
    values = np.array([s.count("AB") + 0.3 * len(s) for s in strings])
    return strings[:14], values[:14], strings[14:30], strings[30:33]


@pytest.fixture(scope="module", params=["averaged", "point"])
def surrogate(request, data):
    gp = FullyBayesianStringGP(draws=5) if request.param == "averaged" else StringGP(restarts=1)
    gp.fit(data[0], data[1], rng=np.random.default_rng(0))
    return gp


def dense(surrogate, data, draw, conditioned):
    """Moments at the new strings by conditioning one joint normal distribution, in standardised units."""
    evaluated, values, new, _ = data
    if isinstance(surrogate, FullyBayesianStringGP):
        chosen = {name: numbers[draw] for name, numbers in surrogate._parameters.items()}
        constant = 0.0
    else:
        chosen = surrogate.hyperparameters
        constant = chosen["mean"]
    kernel = SubsequenceKernel(match_decay=chosen["match_decay"], gap_decay=chosen["gap_decay"])
    everything = [*evaluated, *conditioned, *new]
    prior = chosen["outputscale"] * kernel.gram(everything)
    noise = chosen["noise_variance"] * torch.eye(len(everything), dtype=torch.float64)
    n, c = len(evaluated), len(conditioned)
    targets = torch.from_numpy((values - values.mean()) / values.std(ddof=1)) - constant

    def given(count):
        gain = prior[:, :count] @ torch.linalg.inv((prior + noise)[:count, :count])
        return gain, prior - gain @ prior[:count]

    gain, covariance = given(n)
    mean = constant + gain @ targets
    conditional = given(n + c)[1]
    return mean, covariance, conditional, n, c


def test_the_posterior_is_that_of_dense_conditioning(surrogate, data):
    _, _, new, extra = data
    assert isinstance(surrogate, StringSurrogate)
    process = surrogate.conditioned(extra[:2])
    assert isinstance(process, ConditionedProcess)
    process = process.given(extra[2])
    posterior = process.at(new)
    assert isinstance(posterior, Posterior)
    indices = torch.tensor([5, 0, 3])
    joint = posterior.joint(indices)
    everything = posterior.joint(indices, include_observed=True)
    for draw in range(len(posterior.moments.mean)):
        mean, covariance, conditional, n, c = dense(surrogate, data, draw, extra)
        at = n + c + np.arange(len(new))
        close = {"rtol": 1e-6, "atol": 1e-8}
        torch.testing.assert_close(posterior.moments.mean[draw], mean[at], **close)
        torch.testing.assert_close(posterior.moments.variance[draw], covariance.diagonal()[at], **close)
        torch.testing.assert_close(posterior.moments.conditional_variance[draw], conditional.diagonal()[at], **close)
        torch.testing.assert_close(posterior.conditioned_mean[draw], mean[n : n + c], **close)
        torch.testing.assert_close(posterior.observed_mean[draw], mean[:n], **close)
        chosen = at[indices.numpy()]
        torch.testing.assert_close(joint[0][draw], mean[chosen], **close)
        torch.testing.assert_close(joint[1][draw], covariance[np.ix_(chosen, chosen)], **close)
        both = np.concatenate([np.arange(n), chosen])
        torch.testing.assert_close(everything[0][draw], mean[both], **close)
        torch.testing.assert_close(everything[1][draw], covariance[np.ix_(both, both)], **close)


def test_conditioning_points_of_a_posterior_is_conditioning_the_process(surrogate, data):
    _, _, new, extra = data
    posterior = surrogate.conditioned(extra).at(new)
    for index in (4, 7):
        posterior = posterior.given(index)
    expected = surrogate.conditioned([*extra, new[4], new[7]]).at(new)
    torch.testing.assert_close(posterior.moments.conditional_variance, expected.moments.conditional_variance)
    torch.testing.assert_close(posterior.conditioned_mean, expected.conditioned_mean)
    torch.testing.assert_close(posterior.moments.variance, expected.moments.variance)


def test_blocks_make_no_difference(surrogate, data):
    _, _, new, extra = data
    whole = surrogate.conditioned(extra).at(new)
    blocks = BlockwisePosterior(surrogate.conditioned(extra), new, block=5)
    assert isinstance(blocks, Posterior)
    for conditioned in (False, True):
        if conditioned:
            whole = whole.given(6)
            blocks = blocks.given(6)
        for name in MOMENTS:
            ours, theirs = getattr(blocks.moments, name), getattr(whole.moments, name)
            torch.testing.assert_close(ours, theirs, rtol=1e-7, atol=1e-9)
        for name in ("conditioned_mean", "observed_mean"):
            torch.testing.assert_close(getattr(blocks, name), getattr(whole, name), rtol=1e-7, atol=1e-9)
    indices = torch.tensor([9, 2, 7])
    for ours, theirs in zip(blocks.joint(indices, True), whole.joint(indices, True), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-7, atol=1e-9)


def test_no_strings_have_no_predictions(surrogate):
    mean, std = surrogate.predict([])
    assert len(mean) == len(std) == 0


def test_the_best_observed_strings_come_first_and_once():
    gp = StringGP(restarts=1)
    gp.fit(["AAA", "ABB", "BBB", "BBB"], [0.0, 1.0, 3.0, 3.1], rng=np.random.default_rng(0))
    assert gp.conditioned().best_observed_keys(3) == ["BBB", "ABB", "AAA"]
    assert gp.conditioned().best_observed_keys(1) == ["BBB"]
