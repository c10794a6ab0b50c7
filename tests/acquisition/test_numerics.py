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
    inverse_mills,
    log_improvement,
    log_inverse_mills,
    log_mean_exp,
    log_ndtr,
    log_neg_log1p_neg,
    log_phi,
    ordered_exp,
    truncation_shrinkage,
)

ARGUMENTS = np.concatenate([-np.logspace(0, 4, 25), np.linspace(-9, 9, 73), np.logspace(0.5, 2.5, 12)])
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-4}
DTYPES = list(TOLERANCE)


def exact(x: float) -> tuple[mpmath.mpf, ...]:
    """Log phi, log Phi, log r, log t, 1 - t, log h at x."""
    with mpmath.workdps(60):
        z = mpmath.mpf(x)
        log_density = -z * z / 2 - mpmath.log(2 * mpmath.pi) / 2
        log_distribution = mpmath.log(mpmath.erfc(-z / mpmath.sqrt(2)) / 2)
        r = mpmath.exp(log_density - log_distribution)
        t = r * (z + r)
        h = mpmath.exp(log_density) + z * mpmath.exp(log_distribution)
        return log_density, log_distribution, mpmath.log(r), mpmath.log(t), 1 - t, mpmath.log(h)


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
    assert_matches(log_ndtr(x), [reference[1] for reference in references], tolerance)


def test_inverse_mills(case: tuple) -> None:
    x, references, tolerance = case
    assert_matches(log_inverse_mills(x), [reference[2] for reference in references], tolerance)
    assert_matches(inverse_mills(x), [mpmath.exp(reference[2]) for reference in references], tolerance)


def test_truncation_shrinkage_is_relatively_accurate_at_both_ends(case: tuple) -> None:
    x, references, tolerance = case
    log_t, remaining = truncation_shrinkage(x)
    np.testing.assert_allclose(log_t.double(), [float(r[3]) for r in references], rtol=tolerance)
    np.testing.assert_allclose(remaining.double(), [float(r[4]) for r in references], rtol=tolerance)


def test_log_improvement(case: tuple) -> None:
    x, references, tolerance = case
    assert_matches(log_improvement(x), [reference[5] for reference in references], tolerance)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_everything_is_finite_and_strictly_ordered_to_one_hundred(dtype: torch.dtype) -> None:
    x = torch.linspace(-100, 100, 2001, dtype=dtype)
    log_t, _ = truncation_shrinkage(x)
    for values, direction in ((log_inverse_mills(x), -1), (log_improvement(x), 1)):
        assert torch.isfinite(values).all()
        assert (direction * values.diff() > 0).all()
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


def test_blocks_change_nothing() -> None:
    x = torch.randn(2, 2 * BLOCK_POINTS + 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert torch.equal(in_blocks(lambda a, b: (a * b).sum(0), x, x + 1), (x * (x + 1)).sum(0))
