"""Reading a run folder, and what is read off its table."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from seqopt.errors import InputError, RunFolderError
from seqopt.report.results import (
    best_so_far,
    prediction_quality,
    predictions,
    ranked,
    read_run,
    read_what_is_there,
    tidy_evaluations,
)


def test_strings_that_look_like_gaps_stay_strings(make_run: Callable[..., Path]) -> None:
    strings = ["NA", "None", "nan", "", "NULL", "1e5", "TRUE"]
    folder = make_run([{"string": string, "value": i} for i, string in enumerate(strings)])
    assert list(read_run(folder).evaluations["string"]) == strings


def test_values_are_read_to_the_last_digit(make_run: Callable[..., Path]) -> None:
    values = [0.1 + 0.2, 1 / 3, 4.017016228126188, 1e-300]
    folder = make_run([{"string": "C" * (i + 1), "value": value} for i, value in enumerate(values)])
    assert list(read_run(folder).evaluations["value"]) == values


def test_missing_columns_and_a_missing_summary_are_filled(tmp_path: Path) -> None:
    (tmp_path / "evaluations.csv").write_text("value,string\n2,AC\n,AG\n1,AT\n")
    run = read_run(tmp_path)
    table = run.evaluations
    assert list(table["key"]) == ["AC", "AG", "AT"]
    assert list(table["number"]) == [1, 2, 3]
    assert list(table["measured"]) == [True, False, True]
    assert (table["batch"] == 0).all()
    assert (run.direction, run.status, run.steps, run.total_seconds) == ("maximize", "", [], None)


def test_damage_is_said_with_the_file(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match=r"evaluations\.csv is missing"):
        read_run(tmp_path)
    (tmp_path / "evaluations.csv").write_text("smiles,value\nC,1\n")
    with pytest.raises(RunFolderError, match="no column 'string' among 'smiles', 'value'"):
        read_run(tmp_path)
    (tmp_path / "evaluations.csv").write_text("string,value\nC,1\n")
    (tmp_path / "summary.json").write_text("{")
    (problem,) = read_run(tmp_path).missing
    assert problem.startswith("summary.json cannot be read")


def test_what_is_there_is_read(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match=r"evaluations\.csv is missing"):
        read_what_is_there(tmp_path)
    (tmp_path / "summary.json").write_text('{"settings": {"seed": 3}}')
    run = read_what_is_there(tmp_path)
    assert (len(run.evaluations), run.settings) == (0, {"seed": 3})
    assert "evaluations.csv is missing" in run.missing[0]


def test_summary_keys_of_either_spelling_and_wrong_types_are_tolerated(make_run: Callable[..., Path]) -> None:
    row = {"string": "CCO", "value": 1.0}
    assert read_run(make_run([row], timings={"total": 3})).total_seconds == 3.0
    assert read_run(make_run([row], timings={"total_seconds": "4.5"})).total_seconds == 4.5
    run = read_run(make_run([row], timings=[1], versions="none", steps=[1, {"step": 0}]))
    assert (run.total_seconds, run.versions, run.steps) == (None, {}, [{"step": 0}])


@pytest.mark.parametrize("steps", [5, {"step": 1}, "none", None])
def test_steps_that_are_no_list_are_ignored(steps: object, make_run: Callable[..., Path]) -> None:
    assert read_run(make_run([{"string": "CCO", "value": 1.0}], steps=steps)).steps == []


def test_a_table_without_strings_is_refused() -> None:
    with pytest.raises(InputError, match="'string'"):
        tidy_evaluations(pd.DataFrame({"value": [1.0]}))


@given(
    st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6)), max_size=12),
    st.sampled_from(["maximize", "minimize"]),
)
@settings(max_examples=60, deadline=None)
def test_best_so_far_is_the_best_of_each_beginning(values: list[float | None], direction: str) -> None:
    table = tidy_evaluations(
        pd.DataFrame(
            {
                "string": [f"s{i}" for i in range(len(values))],
                "value": values,
                "status": ["failed" if value is None else "ok" for value in values],
            }
        )
    )
    pick = max if direction == "maximize" else min
    for end, found in enumerate(best_so_far(table, direction), start=1):
        known = [value for value in values[:end] if value is not None]
        assert found == pick(known) if known else math.isnan(found)


def test_ranking_is_by_direction_with_each_key_once_and_ties_in_order() -> None:
    table = tidy_evaluations(
        pd.DataFrame(
            {
                "string": ["OCC", "CCN", "CCO", "CCC", "CCF"],
                "key": ["CCO", "CCN", "CCO", "CCC", "CCF"],
                "value": [1.0, 2.0, 4.0, 2.0, 9.0],
                "status": ["ok", "ok", "ok", "ok", "failed"],
            }
        )
    )
    highest = ranked(table, "maximize")
    assert list(highest["string"]) == ["CCO", "CCN", "CCC"]
    assert list(highest["measurements"]) == [2, 1, 1]
    assert list(ranked(table, "minimize")["string"]) == ["OCC", "CCN", "CCC"]


def _random_predictions(rng: np.random.Generator, count: int) -> pd.DataFrame:
    mean = rng.normal(size=count).round(1)  # rounding makes ties
    return pd.DataFrame(
        {"mean": mean, "std": rng.uniform(0.2, 2, count), "value": (mean + rng.normal(size=count)).round(1)}
    )


def test_quality_agrees_with_scipy_and_with_counting() -> None:
    table = _random_predictions(np.random.default_rng(0), 40)
    quality = prediction_quality(table)
    assert quality is not None
    assert quality.rank_correlation == pytest.approx(stats.spearmanr(table["mean"], table["value"]).statistic)
    rows = list(zip(table["mean"], table["std"], table["value"], strict=True))
    assert quality.rmse == pytest.approx(math.sqrt(sum((v - m) ** 2 for m, _, v in rows) / 40))
    assert quality.within_one == sum(abs(v - m) <= s for m, s, v in rows) / 40
    assert quality.within_two == sum(abs(v - m) <= 2 * s for m, s, v in rows) / 40


def test_no_correlation_is_claimed_of_few_or_constant_points() -> None:
    def correlation(mean: list[float], value: list[float]) -> Any:
        quality = prediction_quality(pd.DataFrame({"mean": mean, "std": 1.0, "value": value}))
        return quality and quality.rank_correlation

    assert prediction_quality(pd.DataFrame({"mean": [], "std": [], "value": []})) is None
    assert correlation([1.0, 2.0], [1.0, 2.0]) is None
    assert correlation([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]) is None


@given(st.floats(-3, 3), st.floats(0.01, 1.0))
@settings(max_examples=40, deadline=None)
def test_log10_predictions_are_turned_back_into_the_models_units(mean: float, std: float) -> None:
    distribution = stats.lognorm(s=std * math.log(10), scale=10**mean)
    evaluations = tidy_evaluations(
        pd.DataFrame(
            {
                "string": ["A"],
                "value": [100.0],
                "predicted_mean": [distribution.mean()],
                "predicted_std": [distribution.std()],
                "batch": [1],
            }
        )
    )
    row = predictions(evaluations, log10=True).iloc[0]
    assert row["mean"] == pytest.approx(mean, abs=1e-6)
    assert row["std"] == pytest.approx(std, rel=1e-6)
    assert row["value"] == 2.0
