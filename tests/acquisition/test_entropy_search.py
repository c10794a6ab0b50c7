"""The entropy of the place of the maximum after an observation: published values, and brute force."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import entr
from scipy.stats import norm

from seqopt.acquisition.entropy_search import entropy, utilities

MEAN = torch.tensor([0.0, 0.5], dtype=torch.float64)
VARIANCE = torch.tensor([1.0, 0.25], dtype=torch.float64)
NOISE = torch.full((2,), 0.25, dtype=torch.float64)


def binary(p: np.ndarray) -> np.ndarray:
    return entr(p) + entr(1 - p)


def exact(mean: np.ndarray, variance: np.ndarray, noise: float) -> list[float]:
    """Of two independent arms, by quadrature over the outcome of each."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    found = []
    for arm in range(2):
        total = variance[arm] + noise
        after = np.tile(mean[:, None], len(nodes))
        after[arm] += variance[arm] / np.sqrt(total) * nodes
        left = variance.copy()
        left[arm] = variance[arm] * noise / total
        p = norm.cdf((after[0] - after[1]) / np.sqrt(left.sum()))
        found.append(-float(weights @ binary(p) / weights.sum()))
    return found


def test_two_arms_have_the_published_utilities() -> None:
    reference = exact(MEAN.numpy(), VARIANCE.numpy(), 0.25)
    assert reference == pytest.approx([-0.38704, -0.60176], abs=1e-5)
    found = utilities(
        MEAN, torch.diag(VARIANCE), NOISE, [0, 1], [0, 1], fantasies=200, draws=8_000, rng=np.random.default_rng(1)
    )
    assert found == pytest.approx(reference, abs=0.01)


def test_few_stratified_outcomes_are_close() -> None:
    seeds = range(20)
    found = [
        utilities(MEAN, torch.diag(VARIANCE), NOISE, [0, 1], [0, 1], rng=np.random.default_rng(seed)) for seed in seeds
    ]
    assert np.mean(found, axis=0) == pytest.approx([-0.396, -0.608], abs=0.01)
    assert np.std(found, axis=0).max() < 0.03  # plain draws of the outcomes would have 0.10


def test_an_observation_of_pure_noise_leaves_the_entropy_of_the_prior() -> None:
    p = norm.cdf(-0.5 / np.sqrt(1.25))
    assert float(binary(np.array(p))) == pytest.approx(0.632294, abs=1e-6)
    deaf = torch.full((2,), 1e12, dtype=torch.float64)
    rng = np.random.default_rng(0)
    found = utilities(MEAN, torch.diag(VARIANCE), deaf, [0, 1], [0, 1], draws=20_000, rng=rng)
    assert found == pytest.approx([-0.632294] * 2, abs=0.006)


def test_of_three_alike_arms_each_may_be_the_best() -> None:
    deaf = torch.full((3,), 1e12, dtype=torch.float64)
    found = utilities(
        torch.zeros(3).double(), torch.eye(3).double(), deaf, [0, 1, 2], [1], draws=20_000, rng=np.random.default_rng(0)
    )
    assert found == pytest.approx([-np.log(3)], abs=0.002)


def test_a_representer_that_is_there_twice_counts_once() -> None:
    covariance = torch.diag(VARIANCE)
    once = utilities(MEAN, covariance, NOISE, [0, 1], [0, 1], rng=np.random.default_rng(0))
    twice = utilities(MEAN, covariance, NOISE, [1, 0, 1, 0], [0, 1], rng=np.random.default_rng(0))
    assert np.array_equal(once, twice)


def correlated() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(5)
    root = torch.from_numpy(rng.normal(size=(4, 4)))
    return torch.from_numpy(rng.normal(size=4)), root @ root.T / 4 + 0.1 * torch.eye(4), torch.full((4,), 0.1).double()


def test_correlated_points_and_pending_ones_agree_with_conditioning_by_the_formula() -> None:
    mean, covariance, noise = correlated()
    rng = np.random.default_rng(0)
    found = utilities(
        mean, covariance, noise, [0, 1, 2], [1, 3], [2], fantasies=150, draws=2_000, rng=np.random.default_rng(1)
    )
    for utility, nominee in zip(found, [1, 3], strict=True):
        seen = [nominee, 2]
        k, m = covariance.numpy(), mean.numpy()
        total = k[np.ix_(seen, seen)] + np.diag(noise.numpy()[seen])
        gain = np.linalg.solve(total, k[seen][:, :3]).T
        after = k[:3, :3] - gain @ k[seen][:, :3]
        entropies = []
        for outcome in rng.multivariate_normal(m[seen], total, 400):
            functions = rng.multivariate_normal(m[:3] + gain @ (outcome - m[seen]), after, 1_000)
            counts = torch.from_numpy(np.bincount(functions.argmax(1), minlength=3)).double()
            entropies.append(float(entropy(counts)))
        error = np.std(entropies) / np.sqrt(len(entropies))
        assert utility == pytest.approx(-np.mean(entropies), abs=4 * error + 0.01)


def test_what_is_pending_makes_a_difference_and_a_point_that_is_pending_too_counts_once() -> None:
    mean, covariance, noise = correlated()
    alone, with_other, with_itself = (
        utilities(mean, covariance, noise, [0, 1, 2], [1], observed, fantasies=60, rng=np.random.default_rng(0))[0]
        for observed in ([], [2], [1])
    )
    assert with_other > alone + 0.02
    assert with_itself == pytest.approx(alone, abs=0.01)


def test_draws_of_the_parameters_are_averaged() -> None:
    means = torch.stack([MEAN, torch.tensor([1.0, 0.0]).double()])
    covariances = torch.stack([torch.diag(VARIANCE), torch.eye(2).double()])
    noises = torch.stack([NOISE, 2 * NOISE])
    both = utilities(
        means, covariances, noises, [0, 1], [0, 1], fantasies=100, draws=5_000, rng=np.random.default_rng(0)
    )
    each = [
        exact(m.numpy(), k.diagonal().numpy(), float(n[0])) for m, k, n in zip(means, covariances, noises, strict=True)
    ]
    assert both == pytest.approx(np.mean(each, axis=0), abs=0.015)


def test_entropies_of_shares() -> None:
    counts = torch.tensor([[1.0, 1.0, 2.0], [4.0, 0.0, 0.0]])
    assert entropy(counts).tolist() == pytest.approx([1.5 * np.log(2), 0.0])
