"""Concentrations and their logarithms against values worked out by hand, and errors against simulation."""

import math

import numpy as np
import pytest

from seqopt.campaign.entries import ResultEntry
from seqopt.campaign.rows import Settings
from seqopt.campaign.units import (
    Conversion,
    campaign_scale,
    conversion_to,
    converted,
    foreign_unit,
    scale_of,
    value_names,
    way_out,
)
from seqopt.errors import InputError


def convert(value: float, source: str, objective: str, unit: str | None = None) -> float:
    conversion = conversion_to(Settings(objective, unit=unit), source)
    return value if conversion is None else conversion.value(value)


@pytest.mark.parametrize(
    ("value", "source", "objective", "unit", "wanted"),
    [
        (1000.0, "nM", "pIC50", None, 6.0),
        (1.0, "uM", "pIC50", None, 6.0),
        (1.0, "\u00b5M", "pIC50", None, 6.0),
        (0.001, "mM", "pIC50", None, 6.0),
        (1e-6, "M", "pIC50", None, 6.0),
        (1e6, "pM", "pIC50", None, 6.0),
        (6.0, "pIC50", "IC50", "uM", 1.0),
        (6.0, "pIC50", "IC50", "nM", 1000.0),
        (9.0, "pKi", "Ki", "nM", 1.0),
        (7.5, "pEC50", "EC50", "nM", 31.622776601683793),
        (250.0, "nM", "IC50", "uM", 0.25),
        (0.25, "uM", "IC50", "nM", 250.0),
        (3.3, "umol/l", "IC50", "nM", 3300.0),
        (3.3, "nmolar", "IC50", "pM", 3300.0),
        (5.0, "nM", "activity", "pIC50", 8.301029995663981),
        (5.0, "nM", "pIC50 (kinase)", None, 8.301029995663981),
        (5.0, "nM", "IC50", "nM", 5.0),
        (5.0, "nM", "IC50 (uM)", None, 0.005),
        (0.0, "nM", "IC50", "uM", 0.0),
        (0.3, "mM", "IC50", "uM", 300.0),
        (1000.0, "nM", "pIC50", "-log10 M", 6.0),
        (1.0, "uM", "potency", "-log10(M)", 6.0),
        (6.0, "-log10 M", "IC50", "nM", 1000.0),
        (6.5, "pIC50", "pIC50", "-log10 M", 6.5),
        (6.5, "pKi", "potency", "\u2212log [mol/l]", 6.5),
        (6.5, "-log10 M", "pKi", None, 6.5),
    ],
)
def test_values_are_those_worked_out_by_hand(
    value: float, source: str, objective: str, unit: str | None, wanted: float
) -> None:
    assert convert(value, source, objective, unit) == pytest.approx(wanted, rel=1e-14)


@pytest.mark.parametrize("unit", ["M", "mM", "uM", "nM", "pM", "fM"])
def test_there_and_back_again(unit: str) -> None:
    there, back = conversion_to(Settings("pKd"), unit), conversion_to(Settings("Kd", unit=unit), "pKd")
    assert there is not None
    assert back is not None
    for value in (1e-3, 0.7, 1.0, 42.0, 1e5):
        assert back.value(there.value(value)) == pytest.approx(value, rel=1e-12)
        error = there.standard_error(value, 0.1 * value)
        assert back.standard_error(there.value(value), error) == pytest.approx(0.1 * value, rel=1e-12)
    assert there.reverses
    assert there.value(2.0) < there.value(1.0)
    assert not Conversion(scale_of("nM"), scale_of(unit)).reverses


def test_standard_errors_follow_the_delta_method() -> None:
    rng = np.random.default_rng(0)
    to_log, to_concentration = (
        conversion_to(Settings("pIC50"), "nM"),
        conversion_to(Settings("IC50", unit="nM"), "pIC50"),
    )
    assert to_log is not None
    assert to_concentration is not None
    draws = rng.normal(250.0, 5.0, 200_000)
    assert to_log.standard_error(250.0, 5.0) == pytest.approx(np.std(-np.log10(draws * 1e-9)), rel=0.01)
    logs = rng.normal(6.6, 0.01, 200_000)
    assert to_concentration.standard_error(6.6, 0.01) == pytest.approx(np.std(10 ** (9 - logs)), rel=0.01)
    linear = conversion_to(Settings("IC50", unit="uM"), "nM")
    assert linear is not None
    assert linear.standard_error(250.0, 5.0) == pytest.approx(0.005, rel=1e-15)
    assert "delta method" in to_log.describe()
    assert "delta method" not in linear.describe()


def test_a_limit_lies_on_the_other_side_of_a_logarithm() -> None:
    to_log, linear = conversion_to(Settings("pIC50"), "uM"), conversion_to(Settings("IC50", unit="nM"), "uM")
    back = conversion_to(Settings("IC50", unit="uM"), "pIC50")
    assert to_log is not None
    assert linear is not None
    assert back is not None
    above = ResultEntry("CCO", value=100.0, censored=">")
    assert converted(above, to_log) == ResultEntry("CCO", value=4.0, censored="<")
    assert converted(above, linear) == ResultEntry("CCO", value=100_000.0, censored=">")
    assert converted(converted(above, to_log), back) == ResultEntry("CCO", value=100.0, censored=">")
    assert converted(ResultEntry("CCO", failure="broke"), to_log) == ResultEntry("CCO", failure="broke")


@pytest.mark.parametrize("objective", ["pIC50", "potency"])
def test_the_unit_of_logarithms_is_that_of_any_quantity(objective: str) -> None:
    settings = Settings(objective, unit="-log10 M")
    conversion = conversion_to(settings, "uM")
    assert conversion is not None
    above = ResultEntry("CCO", value=100.0, censored=">", standard_error=None)
    assert converted(above, conversion) == ResultEntry("CCO", value=4.0, censored="<")
    assert "pIC50" in value_names(settings, "pIC50")
    quantity = "IC50" if objective == "pIC50" else "potency"
    assert value_names(settings, "uM") == [quantity, f"{quantity} uM", f"{quantity} \u00b5M"]
    for column in (objective, f"{objective} (-log10 M)", f"{objective} -log10 M", "pIC50"):
        assert foreign_unit(settings, column, None) is None
    assert foreign_unit(settings, "IC50 (nM)", None) == "nM"
    assert value_names(Settings("IC50", unit="nM"), "-log10 M") == ["pIC50", "pIC50 -log10 M"]
    assert way_out(Settings("IC50", unit="nM"), "potency (-log10 M)").startswith("--unit '-log10 M'")


def test_what_has_no_logarithm_is_said_so() -> None:
    conversion = conversion_to(Settings("pIC50"), "nM")
    assert conversion is not None
    for value in (0.0, -1.0):
        with pytest.raises(InputError, match="has no logarithm"):
            conversion.value(value)
    back = conversion_to(Settings("IC50", unit="nM"), "pIC50")
    assert back is not None
    with pytest.raises(InputError, match="is not a pIC50"):
        back.value(1000.0)
    assert math.isfinite(back.value(-2.0))


@pytest.mark.parametrize(
    ("objective", "unit", "source", "message"),
    [
        ("IC50", "uM", "nm", "case of its letters counts"),
        ("IC50", "uM", "ug/ml", "'ug/ml' cannot be converted: known are M, mM"),
        ("yield", "%", "nM", "has the unit '%', to which nM cannot"),
        ("activity", None, "nM", "no unit for 'activity'"),
        ("Ki", "nM", "pIC50", "pIC50 is not the logarithm of Ki"),
        ("pKi", None, "pIC50", "pIC50 is not pKi"),
        ("pKi", "pIC50", "nM", "pIC50 is not the logarithm of Ki"),
        ("pKi", "-log10 M", "pIC50", "pIC50 is not the logarithm of Ki"),
        ("pIC50", "-log10 nM", "uM", "has the unit '-log10 nM', to which uM cannot"),
    ],
)
def test_what_does_not_fit_is_refused(objective: str, unit: str | None, source: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        conversion_to(Settings(objective, unit=unit), source)


def test_the_scale_of_a_campaign_is_its_unit_or_the_name_of_a_logarithm() -> None:
    assert campaign_scale(Settings("IC50")) is None
    scale = campaign_scale(Settings("pIC50", unit="-"))
    assert scale is None
    for text in ("MM", "NM", "nm", "um", "mol", "p", "IC50", ""):
        assert scale_of(text) is None, text
