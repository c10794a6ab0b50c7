"""Beliefs and covariances with points of other posteriors, against one dense process that knows everything."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from seqopt import CandidateSet
from seqopt.acquisition import SAL, DensePosterior, SCoreBO
from seqopt.kernels import NgramKernel, SubsequenceKernel
from seqopt.models import FullyBayesianGP, gaussian
from seqopt.models.anchors import EncodedPoints
from seqopt.models.conditioned import BlockwisePosterior
from seqopt.models.gp_state import stacked
from seqopt.models.sampling import GridSampler
from seqopt.posteriors import AnchoredPosterior, Anchors

POOL = ["".join("AT"[(number >> bit) & 1] for bit in range(5)) for number in range(32)]
TRAIN, REST = POOL[::4], [string for index, string in enumerate(POOL) if index % 4]
PENDING, CHOSEN = [REST[3]], [1, 7, 8]
POINTS, SEEN = torch.tensor([7, 2, 20]), torch.tensor([1, 5])
PLACES = torch.tensor([[0, 2, 4], [1, 3, 4], [0, 0, 3], [4, 2, 1], [0, 1, 2], [2, 2, 2]])


@pytest.fixture(scope="module")
def gp() -> FullyBayesianGP:
    gp = FullyBayesianGP([SubsequenceKernel(order=2), NgramKernel(2)], GridSampler(), draws=6)
    values = [string.count("AT") + 0.3 * string.count("A") for string in TRAIN]
    gp.fit(TRAIN, values, rng=np.random.default_rng(0), noise_variance=np.linspace(0.0, 0.2, len(TRAIN)))
    return gp


def posteriors(gp, monkeypatch):
    process, space = gp.conditioned(PENDING), CandidateSet(REST)
    found = {
        "strings": process.at(REST),
        "blockwise": BlockwisePosterior(process, REST, 5),
        "pool": gp.pool_posterior(space, pending=PENDING),
        "some of a pool": gp.pool_posterior(space, np.arange(len(REST)), PENDING),
    }
    monkeypatch.setattr(gaussian, "COLUMN_MEMORY", 0)
    found["streamed"] = gp.pool_posterior(CandidateSet(REST), pending=PENDING)
    return found


class Dense:
    """Everything about pending, chosen and all other strings from one covariance matrix for each draw."""

    def __init__(self, gp: FullyBayesianGP) -> None:
        state, everything = gp.fitted, TRAIN + REST
        encoded = gp.encoder.encode(everything)
        own = state.evaluator.self_similarity(encoded)
        prior = state.scale[:, None, None] * stacked(state.evaluator.cross(encoded, None, own), state.draws)
        n = len(TRAIN)
        noisy = prior[:, :n, :n] + state.observed_noise.diag_embed()
        gain = torch.linalg.solve(noisy, prior[:, :n]).mT
        self.mean = state.constant[:, None] + (gain @ (state.targets - state.constant[:, None])[..., None])[..., 0]
        self.covariance = prior - gain @ prior[:, :n]
        self.noise, self.n = state.noise_variance, n

    def given(self, string: str) -> None:
        index = (TRAIN + REST).index(string)
        total = self.covariance[:, index, index] + self.noise
        gain = self.covariance[:, index] / total[:, None]
        expected = self.mean[:, index].mean()
        self.mean = self.mean + gain * (expected - self.mean[:, index])[:, None]
        self.covariance = self.covariance - gain[:, :, None] * self.covariance[:, None, index]


def test_beliefs_and_anchors_are_those_of_one_dense_process(gp, monkeypatch):
    close = {"rtol": 1e-6, "atol": 1e-8}
    for name, first in posteriors(gp, monkeypatch).items():
        posterior, dense = first, Dense(gp)
        dense.given(PENDING[0])
        anchors = Anchors(first.anchors(POINTS, SEEN), PLACES)
        assert isinstance(first, AnchoredPosterior)
        where = torch.tensor([*SEEN.tolist(), *(dense.n + POINTS).tolist()])[PLACES]
        draws = torch.arange(6)[:, None]
        start = first.at_anchors(anchors, pending=False)
        plain = Dense(gp)
        torch.testing.assert_close(start.mean, plain.mean[draws, where], **close)
        torch.testing.assert_close(start.covariance, plain.covariance[draws, where, dense.n :], **close)
        for chosen in [None, *CHOSEN]:
            if chosen is not None:
                posterior = posterior.given(chosen)
                dense.given(REST[chosen])
            torch.testing.assert_close(
                posterior.believed_mean(), dense.mean[:, dense.n :], **close, msg=lambda text, name=name: name + text
            )
            found = posterior.at_anchors(anchors)
            torch.testing.assert_close(found.mean, dense.mean[draws, where], **close)
            torch.testing.assert_close(found.variance, dense.covariance[draws, where, where], **close)
            torch.testing.assert_close(found.covariance, dense.covariance[draws, where, dense.n :], **close)
        again = posterior.at_anchors(anchors, pending=False)
        torch.testing.assert_close(again.covariance, start.covariance, **close)


def test_a_dense_posterior_agrees(gp):
    process = gp.conditioned()
    posterior = process.at(REST)
    mean, covariance = posterior.joint(torch.arange(len(REST)), include_observed=True)
    n = len(TRAIN)
    dense = DensePosterior(
        mean[:, n:],
        covariance[:, n:, n:],
        gp.fitted.noise_variance,
        observed_mean=mean[:, :n],
        observed_covariance=covariance[:, :n, :n],
        cross_covariance=covariance[:, :n, n:],
    )
    one, two = (Anchors(found.anchors(POINTS, SEEN), PLACES) for found in (posterior, dense))
    part = torch.tensor([7, 8, 1])
    for _ in range(2):
        found, expected = posterior.at_anchors(one), dense.at_anchors(two)
        for name in ("mean", "variance", "covariance"):
            torch.testing.assert_close(getattr(found, name), getattr(expected, name), rtol=1e-6, atol=1e-8)
        torch.testing.assert_close(posterior.believed_mean(), dense.believed_mean(), rtol=1e-6, atol=1e-8)
        some = dense.take(part)
        torch.testing.assert_close(some.at_anchors(two).covariance, expected.covariance[..., part])
        torch.testing.assert_close(some.believed_mean(), dense.believed_mean()[:, part])
        posterior, dense = posterior.given(8), dense.given(8)


def test_anchors_of_a_pool_serve_generated_strings(gp):
    posterior = gp.pool_posterior(CandidateSet(REST))
    anchors = Anchors(posterior.anchors(POINTS, SEEN), PLACES)
    assert isinstance(anchors.points, EncodedPoints)
    assert anchors.points.keys == (*(TRAIN[int(index)] for index in SEEN), *(REST[int(index)] for index in POINTS))
    strings = gp.conditioned().at(REST[4:9])
    torch.testing.assert_close(
        strings.at_anchors(anchors).covariance, posterior.at_anchors(anchors).covariance[..., 4:9], rtol=1e-7, atol=1e-9
    )


@pytest.mark.parametrize("acquisition", [SAL(), SAL("hellinger", "mixture", points=32), SCoreBO(num_samples=4)])
def test_scores_of_pools_and_of_strings_are_the_same(gp, monkeypatch, acquisition):
    found = posteriors(gp, monkeypatch)
    prepared = acquisition.prepare(found["strings"], np.random.default_rng(0))
    for name, posterior in found.items():
        for _ in range(2):
            same = found["strings"] if posterior.conditioned_mean.shape[-1] == 1 else found["strings"].given(5)
            torch.testing.assert_close(
                prepared(posterior), prepared(same), rtol=1e-5, atol=1e-6, msg=lambda text, name=name: name + text
            )
            posterior = posterior.given(5)


def test_a_noiseless_optimum_is_that_of_a_refit(gp):
    """Conditioning by one column of the covariance is as fitting all draws to the optimum, too."""
    state = gp.fitted
    acquisition = SCoreBO(known="location", num_samples=3)
    posterior = gp.conditioned().at(REST)
    optima = acquisition.optima(posterior, np.random.default_rng(0))
    at = posterior.at_anchors(optima.anchors)
    mean, variance = acquisition.prepared(optima)._conditioned(
        posterior.moments.mean, posterior.moments.variance, at.variance, at.covariance
    )
    keys, n = optima.anchors.points.keys, len(TRAIN)
    encoded = gp.encoder.encode([*TRAIN, *keys, *REST])
    own = state.evaluator.self_similarity(encoded)
    prior = state.scale[:, None, None] * stacked(state.evaluator.cross(encoded, None, own), state.draws)
    rest = torch.arange(n + len(keys), len(encoded))
    for draw in range(6):
        for sample in range(3):
            seen = torch.tensor([*range(n), n + int(optima.anchors.places[draw, sample])])
            noise = torch.cat([state.observed_noise[draw], torch.tensor([1e-4], dtype=torch.float64)])
            gain = torch.linalg.solve(prior[draw][seen][:, seen] + noise.diag(), prior[draw][seen][:, rest]).mT
            values = torch.cat([state.targets, optima.values[draw, sample, None]]) - state.constant[draw]
            torch.testing.assert_close(mean[draw, sample], state.constant[draw] + gain @ values, rtol=1e-6, atol=1e-8)
            left = prior[draw][rest, rest] - (gain * prior[draw][seen][:, rest].mT).sum(-1)
            torch.testing.assert_close(variance[draw, sample], left.clamp_min(1e-12), rtol=1e-6, atol=1e-8)
