"""The log-space helpers against 60-digit arithmetic."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import torch

from seqopt.acquisition.numerics import (
    BLOCK_POINTS,
    LOG_FLOOR,
    in_blocks,
    log_improvement,
    log_mean_exp,
    log_neg_log1p_neg,
    log_phi,
    ordered_exp,
    truncation_shrinkage,
)

ARGUMENTS = np.concatenate([-np.logspace(0, 4, 25), np.linspace(-9, 9, 73), np.logspace(0.5, 2.5, 12)])
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-4}
DTYPES = list(TOLERANCE)


def exact(x: float) -> tuple[mpmath.mpf, ...]:
    """Log phi, log Phi, log t, 1 - t, log h at x."""
    with mpmath.workdps(60):
        z = mpmath.mpf(x)
        log_density = -z * z / 2 - mpmath.log(2 * mpmath.pi) / 2
        log_distribution = mpmath.log(mpmath.erfc(-z / mpmath.sqrt(2)) / 2)
        r = mpmath.exp(log_density - log_distribution)
        t = r * (z + r)
        h = mpmath.exp(log_density) + z * mpmath.exp(log_distribution)
        return log_density, log_distribution, mpmath.log(t), 1 - t, mpmath.log(h)


@pytest.fixture(params=DTYPES, ids=str)
def case(request: pytest.FixtureRequest) -> tuple[torch.Tensor, list[tuple[mpmath.mpf, ...]], float]:
    x = torch.tensor(ARGUMENTS, dtype=request.param)
    return x, [exact(value) for value in x.tolist()], TOLERANCE[request.param]


def assert_matches(actual: torch.Tensor, expected: list[mpmath.mpf], tolerance: float) -> None:
    # Logarithms cross zero: there an absolute error is a relative one of the quantity itself.
    np.testing.assert_allclose(
        actual.double().numpy(), [float(value) for value in expected], rtol=tolerance, atol=tolerance / 10
    )


def test_log_density_and_distribution(case: tuple) -> None:
    x, references, tolerance = case
    assert_matches(log_phi(x), [reference[0] for reference in references], tolerance)
    assert_matches(torch.special.log_ndtr(x), [reference[1] for reference in references], tolerance)


def test_truncation_shrinkage_is_relatively_accurate_at_both_ends(case: tuple) -> None:
    x, references, tolerance = case
    log_t, remaining = truncation_shrinkage(x)
    np.testing.assert_allclose(log_t.double(), [float(r[2]) for r in references], rtol=tolerance)
    np.testing.assert_allclose(remaining.double(), [float(r[3]) for r in references], rtol=tolerance)


def test_log_improvement(case: tuple) -> None:
    x, references, tolerance = case
    assert_matches(log_improvement(x), [reference[4] for reference in references], tolerance)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_everything_is_finite_and_strictly_ordered_to_one_hundred(dtype: torch.dtype) -> None:
    x = torch.linspace(-100, 100, 2001, dtype=dtype)
    log_t, _ = truncation_shrinkage(x)
    values = log_improvement(x)
    assert torch.isfinite(values).all()
    assert (values.diff() > 0).all()
    assert torch.isfinite(log_t).all()
    upper = x > -4  # below, t is 1 to rounding in float32 and only its complement can be told apart
    assert (log_t[upper].diff() < 0).all()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_log_neg_log1p_neg(dtype: torch.dtype) -> None:
    log_u = torch.tensor([-5000.0, -200.0, -30.0, -10.0, -3.0, -1.0, -0.5, -1e-3], dtype=dtype)
    expected = []
    for value in log_u.tolist():
        with mpmath.workdps(60):
            expected.append(mpmath.log(-mpmath.log1p(-mpmath.exp(mpmath.mpf(value)))))
    assert_matches(log_neg_log1p_neg(log_u, -torch.expm1(log_u)), expected, 20 * torch.finfo(dtype).eps)


def test_log_neg_log1p_neg_takes_the_complement_where_u_rounds_to_one() -> None:
    log_u = torch.tensor([-1e-30], dtype=torch.float64)
    value = log_neg_log1p_neg(log_u, torch.tensor([1e-30], dtype=torch.float64))
    torch.testing.assert_close(value, torch.tensor([30 * np.log(10)], dtype=torch.float64).log())


def test_log_mean_exp() -> None:
    values = torch.tensor([[-2000.0, -2000.0], [-2001.0, -float("inf")]], dtype=torch.float64)
    expected = torch.tensor([-2000 + np.log((1 + np.exp(-1)) / 2), -2000 - np.log(2)], dtype=torch.float64)
    torch.testing.assert_close(log_mean_exp(values, dim=0), expected)


def test_ordered_exp_is_exp_above_its_floor_and_strictly_increasing_below() -> None:
    above = torch.linspace(LOG_FLOOR, 3, 500, dtype=torch.float64)
    assert torch.equal(ordered_exp(above), above.exp())
    log_x = torch.cat([-torch.logspace(12, 3, 400, dtype=torch.float64), torch.linspace(-999, -600, 400).double()])
    values = ordered_exp(log_x)
    assert (values.diff() > 0).all()
    assert (values > 0).all()
    assert float(ordered_exp(torch.tensor(-float("inf"), dtype=torch.float64))) == 0.0


def test_agrees_with_botorch_in_the_middle_and_in_both_tails() -> None:
    from botorch.acquisition.analytic import _log_ei_helper
    from botorch.utils.probability import utils
    from botorch.utils.safe_math import logmeanexp

    x = torch.cat([-torch.logspace(6, 1, 200), torch.linspace(-10, 10, 2001), torch.logspace(1, 4, 100)]).double()
    torch.testing.assert_close(log_phi(x), utils.log_phi(x), rtol=0, atol=0)
    torch.testing.assert_close(torch.special.log_ndtr(x), utils.log_ndtr(x), rtol=1e-12, atol=1e-15)
    torch.testing.assert_close(log_improvement(x), _log_ei_helper(x), rtol=1e-12, atol=1e-15)
    # t = r (x + r), where the sum does not cancel to nothing.
    log_t, remaining = truncation_shrinkage(x)
    near, log_r = x > -5, utils.standard_normal_log_hazard(-x)
    expected = log_r + (x + log_r.exp()).log()
    torch.testing.assert_close(log_t[near], expected[near], rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(remaining[near], -torch.expm1(expected[near]), rtol=1e-9, atol=1e-11)
    rows = x.reshape(3, -1)[:, :700]
    for dim in (0, 1):
        torch.testing.assert_close(log_mean_exp(rows, dim), logmeanexp(rows, dim), rtol=1e-14, atol=1e-14)


def test_blocks_change_nothing() -> None:
    x = torch.randn(2, 2 * BLOCK_POINTS + 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert torch.equal(in_blocks(lambda a, b: (a * b).sum(0), x, x + 1), (x * (x + 1)).sum(0))
