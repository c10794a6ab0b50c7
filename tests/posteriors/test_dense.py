"""The dense posterior against direct conditioning of the joint normal distribution."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seqopt.errors import InputError
from seqopt.posteriors import DensePosterior


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000), st.lists(st.integers(0, 4), max_size=6), st.floats(1e-3, 2.0), st.booleans())
def test_rank_one_updates_equal_direct_conditioning(
    seed: int, conditioned: list[int], noise: float, leading: bool
) -> None:
    rng = np.random.default_rng(seed)
    factor = rng.standard_normal((5, 3))
    covariance = factor @ factor.T + 0.05 * np.eye(5)
    lead = (2,) if leading else ()
    posterior = DensePosterior(torch.zeros(*lead, 5), torch.from_numpy(covariance).expand(*lead, 5, 5), noise)
    for index in conditioned:  # a point may be observed twice: each time with fresh noise
        posterior = posterior.given(index)
    block = covariance[np.ix_(conditioned, conditioned)] + noise * np.eye(len(conditioned))
    cross = covariance[:, conditioned]
    expected = np.diag(covariance - cross @ np.linalg.solve(block, cross.T)) if conditioned else np.diag(covariance)
    np.testing.assert_allclose(
        posterior.moments.conditional_variance, np.broadcast_to(expected, (*lead, 5)), rtol=1e-8, atol=1e-10
    )
    np.testing.assert_allclose(posterior.moments.variance, np.broadcast_to(np.diag(covariance), (*lead, 5)))


def test_outside_points_enter_through_the_conditional_covariance() -> None:
    rng = np.random.default_rng(0)
    factor = rng.standard_normal((6, 4))
    covariance = torch.from_numpy(factor @ factor.T + 0.1 * np.eye(6))
    whole = DensePosterior(torch.arange(6.0), covariance, 0.2)
    whole = whole.given(5)
    given_last = covariance - torch.outer(covariance[:, 5], covariance[5]) / (covariance[5, 5] + 0.2)
    part = DensePosterior(
        torch.arange(5.0),
        covariance[:5, :5],
        0.2,
        conditional_covariance=given_last[:5, :5],
        conditioned_mean=torch.tensor([5.0]),
    )
    whole, part = whole.given(1), part.given(1)
    torch.testing.assert_close(part.moments.conditional_variance, whole.moments.conditional_variance[:5])
    torch.testing.assert_close(part.conditioned_mean, torch.tensor([5.0, 1.0], dtype=torch.float64))
    torch.testing.assert_close(part.conditioned_mean, whole.conditioned_mean)


def test_joint_puts_the_evaluated_strings_first() -> None:
    full = torch.arange(16.0).reshape(4, 4)
    full = full @ full.T + torch.eye(4)
    posterior = DensePosterior(
        torch.tensor([30.0, 40.0]),
        full[2:, 2:],
        0.1,
        observed_mean=torch.tensor([10.0, 20.0]),
        observed_covariance=full[:2, :2],
        cross_covariance=full[:2, 2:],
    )
    posterior = posterior.given(0)  # joint is given the data only
    mean, covariance = posterior.joint(torch.tensor([1, 0]), include_observed=True)
    assert mean.tolist() == [10.0, 20.0, 40.0, 30.0]
    order = [0, 1, 3, 2]
    torch.testing.assert_close(covariance, full[order][:, order].double())
    mean, covariance = posterior.joint(torch.tensor([1]))
    assert (mean.tolist(), covariance.tolist()) == ([40.0], [[float(full[3, 3])]])


def test_noiseless_conditioning_on_a_known_point_changes_nothing() -> None:
    posterior = DensePosterior(torch.zeros(2), torch.diag(torch.tensor([0.0, 1.0])), 0.0)
    posterior = posterior.given(0)
    assert posterior.moments.conditional_variance.tolist() == [0.0, 1.0]


def test_arguments_are_checked() -> None:
    with pytest.raises(InputError, match=r"covariance has shape \(3, 3\); expected \(2, 2\)"):
        DensePosterior(torch.zeros(2), torch.eye(3), 0.1)
    with pytest.raises(InputError, match="cross_covariance has shape"):
        DensePosterior(torch.zeros(2), torch.eye(2), 0.1, cross_covariance=torch.zeros(2, 2))
    with pytest.raises(InputError, match="noise_variance is -1"):
        DensePosterior(torch.zeros(2), torch.eye(2), -1.0)
    posterior = DensePosterior(torch.zeros(2), torch.eye(2), 0.1, observed_mean=torch.zeros(1))
    with pytest.raises(InputError, match="observed_covariance"):
        posterior.joint(torch.tensor([0]), include_observed=True)
