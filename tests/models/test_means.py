"""Prior means that are linear in a column."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from seqopt.errors import InputError
from seqopt.kernels import NgramKernel
from seqopt.models import ColumnMean, FullyBayesianGP, StringGP, SurrogatePlan, mean_effects
from seqopt.models.means import MeanEffect
from seqopt.spaces import CandidateSet, StringSpace
from seqopt.utils.config import NotConfigurableError, config_of, from_config

STRINGS = [a + b + c for a in "ACDE" for b in "ACDE" for c in "ACDE"]
RNG = np.random.default_rng(0)
GUESS = dict(zip(STRINGS, (3.0 + 2.0 * RNG.standard_normal(len(STRINGS))).tolist(), strict=True))
SPACE = CandidateSet(STRINGS, kind="text")


def fitted(
    mean: ColumnMean | None, values: np.ndarray, name: str = "ngrams", n: int = 24
) -> StringGP | FullyBayesianGP:
    gp = SurrogatePlan(name, mean=mean).for_space(SPACE)
    assert isinstance(gp, StringGP | FullyBayesianGP)
    gp.fit(STRINGS[:n], values[:n], rng=np.random.default_rng(1))
    return gp


def test_a_coefficient_is_that_of_bayesian_regression() -> None:
    """Weights in the open, with a process for the rest: the textbook's formula, by another road than the kernel's."""
    values = np.array([GUESS[string] for string in STRINGS]) + RNG.standard_normal(len(STRINGS))
    gp = fitted(ColumnMean(GUESS, "guess"), values)
    assert isinstance(gp, StringGP)
    (effect,) = mean_effects(gp)
    parameters = gp.hyperparameters
    kernel = NgramKernel(lengthscale=parameters["lengthscale"])
    encoded = SPACE.encoder.encode(STRINGS[:24])
    scale = parameters["outputscale"]
    rest = scale * kernel.cross(encoded) + parameters["noise_variance"] * np.eye(24)
    every = np.array(list(GUESS.values()))
    column = (every[:24] - every.mean()) / every.std()
    standardized = (values[:24] - values[:24].mean()) / values[:24].std(ddof=1) - parameters["mean"]
    solved = np.linalg.solve(rest, np.stack([column, standardized], axis=1))
    precision = 1.0 / scale + column @ solved[:, 0]
    estimate = column @ solved[:, 1] / precision
    assert effect.estimate == pytest.approx(estimate, rel=1e-3)
    assert (effect.upper - effect.lower) / 2 == pytest.approx(1.6449 / np.sqrt(precision), rel=1e-3)


@pytest.mark.parametrize("name", ["ngrams", "mixture"])
def test_a_column_that_tells_the_values_predicts_them(name: str) -> None:
    values = np.array([0.5 * GUESS[string] for string in STRINGS])
    errors = []
    for mean in (ColumnMean(GUESS, "guess"), None):
        predicted, _ = fitted(mean, values, name).predict(STRINGS[24:])
        errors.append(float(np.abs(predicted - values[24:]).mean()))
    assert errors[0] < 0.3 * errors[1]


def test_a_useless_column_hardly_matters() -> None:
    values = np.array([string.count("C") - 0.5 * string.count("E") for string in STRINGS], dtype=np.float64)
    gp = fitted(ColumnMean(GUESS, "guess"), values)
    (effect,) = mean_effects(gp)
    assert effect.lower < 0.0 < effect.upper
    assert "do not show yet" in effect.describe()
    errors = [
        float(np.abs(found.predict(STRINGS[24:])[0] - values[24:]).mean()) for found in (gp, fitted(None, values))
    ]
    assert errors[0] < errors[1] + 0.1 * values.std()


def test_negative_coefficients_are_said_to_be_worse() -> None:
    said = MeanEffect("guess", -0.5, -0.7, -0.3).describe()
    assert "0.50 standard deviations worse where guess is one higher (90 %: 0.30 to 0.70)" in said


def test_a_surrogate_without_a_column_has_no_effects() -> None:
    assert mean_effects(StringGP()) == []
    assert mean_effects(None) == []


def test_a_file_is_kept_by_name_and_checksum(tmp_path: Path) -> None:
    path = tmp_path / "pool.csv"
    table = pd.DataFrame({"string": STRINGS, "zero_shot": list(GUESS.values())})
    table.to_csv(path, index=False)
    mean = ColumnMean(path, "zero_shot")
    config = config_of(SurrogatePlan("ssk", mean=mean))
    made = from_config(config).mean.bound(SPACE)
    np.testing.assert_allclose(made(STRINGS[:5]), ColumnMean(GUESS, "g").bound(SPACE)(STRINGS[:5]))
    table.iloc[::-1].to_csv(path, index=False)
    with pytest.raises(InputError, match="has changed since the search began"):
        from_config(config)
    path.unlink()
    with pytest.raises(InputError, match=r"there is no file .*pool.csv.*as it was when the search began"):
        from_config(config)


def test_missing_numbers_are_named(tmp_path: Path) -> None:
    path = tmp_path / "pool.csv"
    table = pd.DataFrame({"string": STRINGS, "zero_shot": list(GUESS.values())})
    table.assign(zero_shot=table.zero_shot.where(table.index != 5)).to_csv(path, index=False)
    with pytest.raises(InputError, match=r"for 1 of 64 strings, the first of them 'ACC' \(line 7\)"):
        ColumnMean(path, "zero_shot")
    with pytest.raises(InputError, match="no column 'zeroshot'"):
        ColumnMean(path, "zeroshot")
    some = {string: GUESS[string] for string in STRINGS[:60]}
    with pytest.raises(InputError, match="has no number for 4 of 64 candidates, the first of them 'EEA'"):
        ColumnMean(some, "guess").bound(SPACE)
    with pytest.raises(InputError, match="has the same number for all strings"):
        ColumnMean(dict.fromkeys(STRINGS, 2.0), "guess").bound(SPACE)
    with pytest.raises(InputError, match="goes with a pool"):
        ColumnMean(GUESS, "guess").bound(StringSpace("AB", 3))
    with pytest.raises(NotConfigurableError, match="keep it as a column of a file"):
        ColumnMean({str(number): float(number) for number in range(1001)}, "guess").config()
    with pytest.raises(InputError, match="'XYZ' has no number in the column 'guess'"):
        ColumnMean(GUESS, "guess").bound(SPACE)(["XYZ"])
