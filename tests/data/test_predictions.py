"""What is shown of a prediction, against quantiles of the distributions that models predict."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from seqopt.data import (
    Identity,
    Log10,
    Predictions,
    central,
    fold_range,
    interval,
    negative_log_of,
    shown_interval,
)


@pytest.mark.parametrize("spread", [1e-6, 0.1, 1.0, 5.0])
@pytest.mark.parametrize("centre", [-3.0, 0.0, 2.5])
def test_the_median_and_the_interval_come_back_from_the_moments_of_a_log_normal(centre: float, spread: float) -> None:
    moments = Log10().moments(centre, spread)
    assert central(*moments, "log10") == pytest.approx(10**centre, rel=1e-6)
    exact = stats.lognorm(s=spread * math.log(10), scale=10**centre)
    np.testing.assert_allclose(interval(*moments, "log10"), exact.interval(0.9), rtol=1e-5)
    assert exact.mean() == pytest.approx(moments[0], rel=1e-6)
    # As many fold up as down.
    low, high = interval(*moments, "log10")
    assert fold_range(low, high, "log10") == pytest.approx(10 ** (stats.norm.ppf(0.95) * spread), rel=1e-5)


def test_what_no_float_can_hold_and_what_is_not_there_is_left_out() -> None:
    assert interval(None, None, "log10") == (None, None)
    assert central(None, None, "log10") is None
    assert central(2.0, None, "log10") == 2.0
    assert central(*Log10().moments(0.0, 8.0), "log10") == pytest.approx(1.0, rel=1e-6)
    beyond = Log10().moments(0.0, 15.0)
    assert (central(*beyond, "log10"), interval(*beyond, "log10")) == (None, (None, None))
    assert central(-1.0, 1.0, "log10") == -1.0  # no moments of a log-normal distribution
    assert fold_range(None, 1.0, "log10") is fold_range(0.0, 1.0, "log10") is None
    assert fold_range(1.0, 2.0, None, "yield") is None
    assert shown_interval(None, None, None) == ""


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_predictions_are_quantiles_in_the_users_units(sign: float) -> None:
    mean, std, measured = np.array([1.0, -2.0]), np.array([0.1, 0.3]), np.array([0.2, 0.5])
    for transform, back in ((Identity(), lambda x: x), (Log10(), lambda x: 10**x)):
        found = Predictions.of(mean, std, measured, transform, sign)
        np.testing.assert_allclose(found.central, back(sign * mean))
        low, high = stats.norm.interval(0.9, sign * mean, measured)
        np.testing.assert_allclose([found.low, found.high], [back(low), back(high)])
        low, high = stats.norm.interval(0.9, sign * mean, std)
        np.testing.assert_allclose([found.true_low, found.true_high], [back(low), back(high)])


@pytest.mark.parametrize(
    ("objective", "unit", "expected"),
    [
        ("pIC50", None, "IC50"),
        ("mean pIC50", None, "IC50"),
        ("pIC50 (hERG)", None, "IC50"),
        ("CYP3A4_pIC50", None, "IC50"),
        ("pKi", None, "Ki"),
        ("pKa", None, "Ka"),
        ("pEC90", None, "EC90"),
        ("potency", "pKd", "Kd"),
        ("potency", "-log10 M", "concentration"),
        ("potency", "-log10(M)", "concentration"),
        ("potency", "−log M", "concentration"),
        ("potency", "-log10 [mol/l]", "concentration"),
        ("IC50", "nM", None),
        ("pH", None, None),
        ("price", None, None),
        ("logP", None, None),
        ("capIC50s", None, None),
        ("potency", "log10 nM", None),
        ("potency", "catalog M", None),
    ],
)
def test_negative_logarithms_are_recognised(objective: str, unit: str | None, expected: str | None) -> None:
    assert negative_log_of(objective, unit) == expected
    assert (fold_range(5.0, 7.0, None, objective, unit) is not None) == (expected is not None)
    if expected:
        assert shown_interval(5.0, 7.0, None, objective, unit) == f"5 to 7 ({expected} ×/÷ 10)"
        # Of a logarithm of such values nothing is said.
        assert fold_range(5.0, 7.0, "log10", objective, unit) == pytest.approx(math.sqrt(7 / 5))
