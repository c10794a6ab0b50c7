"""Decompositions of additive processes: what the chain visits against an enumeration of all."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from seqopt.bench.euclid.additive import AdditiveModel, DecompositionSampler, partition
from seqopt.errors import InputError


@pytest.fixture(scope="module")
def model() -> AdditiveModel:
    rng = np.random.default_rng(3)
    points = rng.random((14, 4))
    values = np.sin(4 * points[:, 0] * points[:, 1]) + np.cos(3 * points[:, 2] + 2 * points[:, 3])
    return AdditiveModel(points, (values - values.mean()) / values.std() + 0.2 * rng.standard_normal(14))


def test_likelihoods_are_those_of_a_normal_distribution_at_their_best(model: AdditiveModel) -> None:
    logarithms = np.log([0.5, 1.0, 0.3, 2.0, 1.5, 0.1])
    groups = (0, 1, 0, 0)
    x = model.points / np.exp(logarithms[:4])
    covariance = np.zeros((14, 14))
    for i, j in itertools.product(range(14), range(14)):
        for members in ([0, 2, 3], [1]):
            covariance[i, j] += 1.5 * np.exp(-0.5 * sum((x[i, k] - x[j, k]) ** 2 for k in members))
        covariance[i, j] += 0.1 * (i == j)
    expected = stats.multivariate_normal.logpdf(model.values, np.zeros(14), covariance)
    assert model.log_likelihood_at(groups, logarithms) == pytest.approx(expected)
    best = model.log_likelihood(groups)
    rng = np.random.default_rng(0)
    assert all(best >= model.log_likelihood_at(groups, logarithms + rng.standard_normal(6)) for _ in range(50))


def test_numbers_of_groups_do_not_matter(model: AdditiveModel) -> None:
    assert model.log_likelihood((0, 0, 1, 1)) == model.log_likelihood((1, 1, 0, 0))
    assert partition((1, 1, 0, 0)) == partition((0, 0, 1, 1)) == (0, 0, 1, 1)


def test_visits_are_in_proportion_to_likelihoods(model: AdditiveModel) -> None:
    """Every assignment of four variables to two groups is listed; a chain that loses its state after a rejection, or
    whose move is not as likely as the move back, visits others.
    """
    states = list(itertools.product(range(2), repeat=4))
    logs = np.array([model.log_likelihood(state) for state in states])
    target = np.exp(logs - logs.max())
    target /= target.sum()
    sampler = DecompositionSampler(4, 2)
    steps = 40_000
    counts = Counter(sampler.sample(model, steps, np.random.default_rng(0)))
    found = np.array([counts[state] for state in states]) / steps
    assert 0.5 * np.abs(found - target).sum() < 0.03
    # The move of the paper targets something else, and cannot leave both variables of a pair alone.
    other = DecompositionSampler(4, 2, "pair")
    counts = Counter(other.sample(model, steps, np.random.default_rng(0)))
    paired = np.array([counts[state] for state in states]) / steps
    assert 0.5 * np.abs(paired - target).sum() > 2 * 0.5 * np.abs(found - target).sum()


def test_it_goes_on_from_its_last_state(model: AdditiveModel) -> None:
    one, other = DecompositionSampler(4, 2), DecompositionSampler(4, 2)
    whole = one.sample(model, 30, np.random.default_rng(1))
    rng = np.random.default_rng(1)
    parts = other.sample(model, 10, rng) + other.sample(model, 20, rng)
    assert whole == parts


@pytest.mark.parametrize("arguments", [(1, 2), (3, 1), (3, 2, "swap")])
def test_what_makes_no_sense_is_refused(arguments: tuple) -> None:
    with pytest.raises(InputError):
        DecompositionSampler(*arguments)
