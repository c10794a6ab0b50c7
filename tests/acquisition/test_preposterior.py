"""Errors that are expected once a batch has been measured: closed forms, quadrature, simulated results."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from seqopt.acquisition.preposterior import expected_errors
from seqopt.errors import InputError


def several(draws: int, points: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(draws, points, points))
    covariance = torch.from_numpy(factor @ factor.swapaxes(1, 2) / points)
    noise = torch.from_numpy(rng.uniform(0.05, 0.3, size=draws))
    return torch.from_numpy(rng.normal(size=(draws, points))), covariance, noise


def test_one_draw_has_the_variance_given_the_batch():
    mean, covariance, noise = several(1, 5)
    batch, rest = torch.tensor([1, 4]), torch.tensor([0, 2, 3])
    now, then = expected_errors(mean, covariance, noise, batch, np.random.default_rng(0))
    inside = covariance[0][batch][:, batch] + noise * torch.eye(2)
    across = covariance[0][rest][:, batch]
    left = covariance[0][rest][:, rest] - across @ torch.linalg.inv(inside) @ across.T
    assert now**2 == pytest.approx(float(covariance[0].diagonal()[rest].mean()))
    assert then**2 == pytest.approx(float(left.diagonal().mean()))


def test_two_draws_by_quadrature():
    """The variance of the weighed mixture, integrated over one result."""
    mean, covariance, noise = several(2, 2, seed=3)
    grid = np.linspace(-12, 12, 6001)
    m, c, s = mean.numpy(), covariance.numpy(), noise.numpy()
    spread = np.sqrt(c[:, 1, 1] + s)
    likelihood = stats.norm.pdf(grid[:, None], m[:, 1], spread)
    weights = likelihood / likelihood.sum(1, keepdims=True)
    moved = m[:, 0] + c[:, 0, 1] / spread**2 * (grid[:, None] - m[:, 1])
    left = c[:, 0, 0] - c[:, 0, 1] ** 2 / spread**2
    centre = (weights * moved).sum(1)
    variance = (weights * (left + (moved - centre[:, None]) ** 2)).sum(1)
    expected = np.trapezoid(variance * likelihood.mean(1), grid)
    _, then = expected_errors(mean, covariance, noise, torch.tensor([1]), np.random.default_rng(0), samples=40_000)
    assert then**2 == pytest.approx(expected, rel=0.02)


def test_it_is_the_error_of_simulated_searches():
    mean, covariance, noise = several(3, 4, seed=1)
    batch, rng = torch.tensor([0, 2]), np.random.default_rng(5)
    now, then = expected_errors(mean, covariance, noise, batch, np.random.default_rng(0), samples=4000)
    count, m, c = 6000, mean.numpy(), covariance.numpy()
    draw = rng.integers(3, size=count)
    roots = np.linalg.cholesky(c)
    truth = m[draw] + np.einsum("sij,sj->si", roots[draw], rng.normal(size=(count, 4)))
    result = truth[:, [0, 2]] + np.sqrt(noise.numpy()[draw])[:, None] * rng.normal(size=(count, 2))
    logs, means = [], []
    for number in range(3):
        inside = c[number][np.ix_([0, 2], [0, 2])] + float(noise[number]) * np.eye(2)
        logs.append(stats.multivariate_normal.logpdf(result, m[number][[0, 2]], inside))
        gain = c[number][np.ix_([1, 3], [0, 2])] @ np.linalg.inv(inside)
        means.append(m[number][[1, 3]] + (result - m[number][[0, 2]]) @ gain.T)
    weights = np.exp(np.array(logs) - np.max(logs, axis=0))[..., None]
    predicted = (weights * np.array(means)).sum(0) / weights.sum(0)
    after = (predicted - truth[:, [1, 3]]) ** 2
    before = (m.mean(0)[[1, 3]] - truth[:, [1, 3]]) ** 2
    assert now**2 == pytest.approx(np.mean(before), rel=0.06)
    assert then**2 == pytest.approx(np.mean(after), rel=0.06)
    assert then < now


def test_an_empty_batch_changes_nothing_and_all_points_leave_none():
    mean, covariance, noise = several(2, 3)
    now, then = expected_errors(mean, covariance, noise, torch.arange(0), np.random.default_rng(0))
    assert now == then
    with pytest.raises(InputError, match="no point besides the batch"):
        expected_errors(mean, covariance, noise, torch.arange(3), np.random.default_rng(0))
