"""Arms that are measured one by one are what Gaussian regression on all measurements says."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from seqopt.errors import InputError
from seqopt.posteriors import DensePosterior
from seqopt.posteriors.dense import Outcomes
from seqopt.strategies.arms import ArmPosterior

RNG = np.random.default_rng(0)
A = RNG.standard_normal((5, 5))
PRIOR = A @ A.T / 5
MEAN = RNG.standard_normal(5)
NOISE = np.array([0.1, 0.2, 0.3, 0.4, 0.5])
B = RNG.standard_normal((5, 5))
PLATE = B @ B.T / 10 + 0.3


def regression(rows: np.ndarray, values: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of values = rows @ g + noise, with a full covariance matrix of the noise."""
    gain = PRIOR @ rows.T @ np.linalg.inv(rows @ PRIOR @ rows.T + noise)
    return MEAN + gain @ (values - rows @ MEAN), PRIOR - gain @ rows @ PRIOR


def test_updates_are_gaussian_regression() -> None:
    arms, values = np.array([0, 3, 3, 1, 0]), RNG.standard_normal(5)
    found = ArmPosterior.of(MEAN, PRIOR, NOISE)
    for arm, value in zip(arms, values, strict=True):
        found = found.given(np.array([arm]), np.array([value]))
    mean, covariance = regression(np.eye(5)[arms], values, np.diag(NOISE[arms]))
    np.testing.assert_allclose(found.mean[0], mean, atol=1e-10)
    np.testing.assert_allclose(found.covariance[0], covariance, atol=1e-10)
    assert found.counts[0].tolist() == [2, 1, 0, 2, 0]
    np.testing.assert_allclose(found.averages[0, [0, 3]], [values[[0, 4]].mean(), values[[1, 2]].mean()])
    assert np.isnan(found.averages[0, 2])


def test_what_a_plate_shares_is_shared_by_its_wells_alone() -> None:
    """Two plates: the noise of their measurements is correlated within each."""
    plates = [np.array([0, 1, 1]), np.array([1, 4])]
    found, values = ArmPosterior.of(MEAN, PRIOR, NOISE, plate=PLATE), []
    for arms in plates:
        found = found.on_fresh_plate()
        for arm in arms:
            values.append(RNG.standard_normal())
            found = found.given(np.array([arm]), np.array([values[-1]]))
    arms = np.concatenate(plates)
    of = np.array([0, 0, 0, 1, 1])
    noise = np.diag(NOISE[arms]) + PLATE[np.ix_(arms, arms)] * (of[:, None] == of)
    mean, covariance = regression(np.eye(5)[arms], np.array(values), noise)
    np.testing.assert_allclose(found.mean[0], mean, atol=1e-10)
    np.testing.assert_allclose(found.covariance[0], covariance, atol=1e-10)


def test_awaited_measurements_do_what_dense_posteriors_say() -> None:
    joint = PRIOR + PLATE
    oracle = DensePosterior(
        torch.from_numpy(MEAN),
        torch.from_numpy(PRIOR),
        torch.from_numpy(NOISE),
        outcomes=Outcomes(torch.from_numpy(MEAN), torch.from_numpy(joint), torch.from_numpy(PRIOR)),
    )
    found = ArmPosterior.of(MEAN, PRIOR, NOISE, plate=PLATE)
    for arm in (2, 2, 4):
        oracle, found = oracle.given(arm), found.given(np.array([arm]))
    np.testing.assert_allclose(found.variance[0], oracle.moments.conditional_variance.numpy(), atol=1e-10)
    np.testing.assert_array_equal(found.mean[0], MEAN)


def test_situations_do_not_mix() -> None:
    several = ArmPosterior.of(np.stack([MEAN, 2 * MEAN]), np.stack([PRIOR, 3 * PRIOR]), NOISE)
    found = several.given(np.array([1, 4]), np.array([0.5, -0.5]))
    for index, (arm, value) in enumerate([(1, 0.5), (4, -0.5)]):
        alone = ArmPosterior.of((index + 1) * MEAN, (2 * index + 1) * PRIOR, NOISE)
        alone = alone.given(np.array([arm]), np.array([value]))
        np.testing.assert_allclose(found.mean[index], alone.mean[0])
        np.testing.assert_allclose(found.covariance[index], alone.covariance[0])


def test_an_update_leaves_the_posterior_before_it_as_it_was() -> None:
    before = ArmPosterior.of(MEAN, PRIOR, NOISE)
    before.given(np.array([0]), np.array([9.0]))
    np.testing.assert_array_equal(before.mean[0], MEAN)
    assert before.counts.sum() == 0
    assert np.isnan(before.averages).all()


def test_exact_arms_without_noise_learn_nothing_and_stay_finite() -> None:
    found = ArmPosterior.of([1.0, 0.0], [[0.0, 0.0], [0.0, 1.0]], 0.0).given(np.array([0]), np.array([5.0]))
    assert found.mean[0].tolist() == [1.0, 0.0]


def test_draws_have_the_moments_of_the_posterior() -> None:
    draws = ArmPosterior.of(MEAN, PRIOR, NOISE).draws(20_000, np.random.default_rng(0))[:, 0]
    np.testing.assert_allclose(draws.mean(0), MEAN, atol=0.05)
    np.testing.assert_allclose(np.cov(draws.T), PRIOR, atol=0.06)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"covariance": np.eye(4)}, "expected"),
        ({"covariance": [[1.0, 2.0], [2.0, 1.0]], "mean": [0.0, 0.0], "noise": 1.0}, "not a covariance matrix"),
        ({"noise": -1.0}, "noise variance is -1"),
        ({"mean": [0.0, np.nan, 0.0, 0.0, 0.0]}, "not finite"),
    ],
)
def test_what_is_no_distribution_is_refused(given: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ArmPosterior.of(**({"mean": MEAN, "covariance": PRIOR, "noise": NOISE} | given))  # type: ignore[arg-type]
