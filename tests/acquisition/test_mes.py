"""Max-value entropy search: against the entropies of a normal variable and of the truncated one."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import torch
from scipy import stats

from seqopt.acquisition import MES, DensePosterior, OutcomeAcquisition, log_gibbon, log_mes
from seqopt.posteriors import Outcomes

MAX_VALUES = torch.tensor([1.8, 2.2], dtype=torch.float64)


@pytest.mark.parametrize("gamma", [-3.0, -1.0, -0.999, 0.0, 0.5, 2.0, 4.0])
def test_it_is_the_difference_of_the_entropies(gamma: float) -> None:
    truncated = stats.truncnorm(-40.0, gamma).entropy()
    value = log_mes(torch.tensor([gamma], dtype=torch.float64)).exp()
    assert float(value) == pytest.approx(stats.norm.entropy() - float(truncated), rel=1e-7)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_both_tails_are_right_and_in_order(dtype: torch.dtype) -> None:
    gamma = torch.linspace(-60, 100, 321, dtype=dtype)
    values = log_mes(gamma)
    assert values.dtype == dtype
    assert torch.isfinite(values).all()
    assert (values.diff() < 0).all()
    for position in range(0, len(gamma), 20):
        with mpmath.workdps(60):
            z = mpmath.mpf(float(gamma[position]))
            lower = mpmath.erfc(-z / mpmath.sqrt(2)) / 2
            surprise = -mpmath.log1p(-mpmath.erfc(z / mpmath.sqrt(2)) / 2) if z > 0 else -mpmath.log(lower)
            expected = mpmath.log(z * mpmath.npdf(z) / (2 * lower) + surprise)
        assert float(values[position]) == pytest.approx(float(expected), rel=2e-4 if dtype == torch.float32 else 1e-11)


def test_it_is_never_below_gibbon() -> None:
    gamma = torch.linspace(-40, 100, 1401, dtype=torch.float64)
    assert (log_mes(gamma) >= log_gibbon(gamma, torch.ones(1, dtype=torch.float64))).all()
    # At nothing: half the information less, .693 against .506 nats.
    assert float(log_mes(torch.zeros(1)).exp()) == pytest.approx(np.log(2.0), rel=1e-6)
    assert float(log_gibbon(torch.zeros(1), torch.ones(1)).exp()) == pytest.approx(0.506, abs=5e-4)


def test_it_scores_the_target_whatever_is_measured() -> None:
    mean, covariance = torch.tensor([0.5, 0.2]), torch.eye(2)
    plain = MES().prepared(MAX_VALUES, 1.0)(DensePosterior(mean, covariance, 0.1))
    other = Outcomes(torch.zeros(2), 4.0 * torch.eye(2), 0.3 * torch.eye(2))
    seen = MES().prepared(MAX_VALUES, 1.0)(DensePosterior(mean, covariance, 0.1, outcomes=other))
    torch.testing.assert_close(plain, seen)
    assert isinstance(MES(), OutcomeAcquisition)
    assert not MES().sees_outcomes


def test_a_batch_does_not_repeat_itself_and_what_is_certain_is_worth_nothing() -> None:
    covariance = torch.tensor([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.0]])
    posterior = DensePosterior(torch.tensor([0.5, 0.5, 0.3]), covariance, 1e-6)
    prepared = MES().prepared(MAX_VALUES, 1.0)
    first = int(prepared(posterior).argmax())
    assert first in (0, 1)
    assert int(prepared(posterior.given(first)).argmax()) == 2
    certain = DensePosterior(torch.tensor([3.0, 0.0]), torch.diag(torch.tensor([0.0, 1.0])), 0.0)
    assert float(prepared(certain)[0]) == 0.0
