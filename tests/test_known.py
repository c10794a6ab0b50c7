"""Results that are known before a search begins: told first, counted as initial ones, kept with the run."""

from __future__ import annotations

import inspect
import itertools
import logging
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pandas as pd
import pytest

import seqopt
from seqopt.api import SearchOptions
from seqopt.campaign import CampaignStore, Settings
from seqopt.campaign.known import digest_of, read_known
from seqopt.campaign.run_folders import CAMPAIGN
from seqopt.errors import InputError, RunFolderError
from seqopt.kernels import NgramKernel, OneHotKernel
from seqopt.models import FullyBayesianGP
from seqopt.models.sampling import GridSampler

POOL = ["".join(letters) for letters in itertools.product("AB", repeat=6)]
KNOWN = {string: float(string.count("AB")) for string in POOL[::13]}
OPTIONS: dict[str, Any] = {"initial": 8, "budget": 4, "batch_size": 2, "seed": 1, "surrogate": "ngrams"}


@pytest.fixture(autouse=True)
def _no_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seqopt.api._write_report", lambda folder: None)


class Count:
    """Counts, and remembers what it was asked."""

    name = "hits"

    def __init__(self) -> None:
        self.calls: list[str] = []

    def __call__(self, strings: list[str]) -> list[float]:
        self.calls.extend(strings)
        return [float(string.count("AB")) for string in strings]


def search(known: Any, **options: Any) -> tuple[seqopt.Result, list[str]]:
    objective = Count()
    result = seqopt.maximize(objective, POOL, known=known, **(OPTIONS | options))
    return result, objective.calls


def identify(string: str) -> str:
    if not set(string) <= set("AB"):
        raise InputError(f"{string!r} holds other letters")
    return string


# What is read


@pytest.mark.parametrize("as_file", [False, True])
def test_tables_files_and_mappings_are_the_same_results(tmp_path: Path, as_file: bool) -> None:
    table = pd.DataFrame({"string": ["AB", "BA", "AB"], "IC50": [0.1 + 0.2, 1e-7, 3.0], "note": ["x", "y", "z"]})
    source: Any = table
    if as_file:
        source = tmp_path / "known.csv"
        table.to_csv(source, index=False, sep=";", encoding="utf-16")
    settings = Settings("IC50")
    rows = read_known(source, settings, identify)
    assert [(row.string, row.value) for row in rows] == list(zip(table["string"], table["IC50"], strict=True))
    mapped = read_known({"AB": [0.1 + 0.2, 3.0], "BA": np.float64(1e-7)}, settings, identify)
    assert sorted((row.string, row.value) for row in mapped) == sorted((row.string, row.value) for row in rows)
    assert digest_of(rows) != digest_of(rows[:2])
    assert digest_of(rows) == digest_of(read_known(table[["note", "IC50", "string"]], settings, identify))


def test_errors_failures_and_standard_errors_are_read_and_every_problem_is_named(tmp_path: Path) -> None:
    path = tmp_path / "known.csv"
    path.write_text("string,value,standard_error,failure\nAB,1.5,0.25,\nBA,,,no yield\nAA,,,\n")
    rows = read_known(path, Settings("hits"), identify)
    assert [(row.value, row.standard_error, row.failure, row.line) for row in rows] == [
        (1.5, 0.25, None, 2),
        (None, None, "no yield", 3),
    ]
    path.write_text("string,value\nAB,1.5\nAC,2\nBB,~3\n")
    with pytest.raises(InputError, match=r"(?s)known\.csv, line 3: 'AC'.*other letters.*known\.csv, line 4.*is rough"):
        read_known(path, Settings("hits"), identify)
    with pytest.raises(InputError, match=r"known results, row 2, column 'value': 'many' is not a number"):
        read_known(pd.DataFrame({"string": ["AB", "BA"], "value": [1, "many"]}), Settings("hits"), identify)
    with pytest.raises(InputError, match="no column of values: expected 'hits'"):
        read_known(pd.DataFrame({"string": ["AB"], "other": [1.0]}), Settings("hits"), identify)
    with pytest.raises(InputError, match="has no logarithm"):
        read_known({"AB": -1.0}, Settings("hits", transform="log10"), identify)
    with pytest.raises(InputError, match="holds no result"):
        read_known({"AB": float("nan")}, Settings("hits"), identify)
    with pytest.raises(InputError, match="there is no file"):
        read_known(tmp_path / "none.csv", Settings("hits"), identify)


# What a search makes of them


def test_known_results_count_as_initial_ones_and_cost_no_budget() -> None:
    few = dict(list(KNOWN.items())[:3])
    result, calls = search(few)
    assert len(calls) == OPTIONS["initial"] - 3 + OPTIONS["budget"]
    assert set(calls).isdisjoint(few)
    assert result.evaluations["string"].tolist()[:3] == list(few)
    assert result.evaluations["predicted_mean"].notna().sum() == OPTIONS["budget"]


def test_more_known_results_than_initial_ones_leave_the_whole_budget_and_no_random_string() -> None:
    many = {string: float(string.count("AB")) for string in POOL[::5]}
    assert len(many) > OPTIONS["initial"]
    result, calls = search(many)
    assert len(calls) == OPTIONS["budget"]
    assert result.evaluations["predicted_mean"].notna().sum() == OPTIONS["budget"]
    # What was known is what the model was fitted to: the same as telling an optimiser by hand.
    optimizer = seqopt.Optimizer(POOL, initial=OPTIONS["initial"], batch_size=2, seed=1, surrogate="ngrams")
    optimizer.tell(list(many), list(many.values()))
    assert calls[:2] == list(optimizer.ask())
    best = seqopt.minimize(Count(), POOL, known=many, **(OPTIONS | {"budget": 0}))
    assert best.best_value == min(many.values())


def test_strings_outside_a_pool_teach_and_take_nothing_of_it() -> None:
    outside = {"ABABABAB": 4.0, "BBBBBBBB": 0.0, "AAAAAAAA": 0.0}
    objective = Count()
    result = seqopt.maximize(objective, POOL[:6], known=outside, initial=3, budget=10, batch_size=3)
    assert sorted(objective.calls) == sorted(POOL[:6])
    assert result.best_string == "ABABABAB"


def test_lengths_that_differ_leave_kernels_by_position_out() -> None:
    pool = [*POOL[:6], "AB", "ABA"]
    surrogate = FullyBayesianGP([NgramKernel(), OneHotKernel()], [GridSampler()] * 2, weights="stacking")
    known = {"BAAAAA": 1.0, "BBAAAA": 2.0, "BBBBBB": 0.0}  # all of six letters
    result = seqopt.maximize(Count(), pool, known=known, initial=3, budget=4, batch_size=2, surrogate=surrogate)
    assert len(result.evaluations) >= 4


@pytest.mark.slow
@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_run_keeps_what_is_known_and_is_resumed_with_it(tmp_path: Path, asynchronous: bool) -> None:
    known = {"ABABAB": [3.0, 3.5], "AAAAAA": 0.0, "BBBBBB": [0.5]}
    whole, calls = search(known, asynchronous=asynchronous)
    assert len(calls) == OPTIONS["initial"] - 4 + OPTIONS["budget"]

    class Killed(Count):
        def __call__(self, strings: list[str]) -> list[float]:
            if len(self.calls) == 6:
                raise KeyboardInterrupt
            return super().__call__(strings)

    options = OPTIONS | {"known": known, "run_folder": tmp_path / "run", "asynchronous": asynchronous}
    killed = Killed()
    with pytest.raises(KeyboardInterrupt):
        seqopt.maximize(killed, POOL, **options)
    rest = Count()
    result = seqopt.maximize(rest, POOL, resume=True, **options)
    assert [*killed.calls, *rest.calls] == calls
    columns = ["string", "status", "value", "batch", "predicted_mean"]
    pd.testing.assert_frame_equal(result.evaluations[columns], whole.evaluations[columns])
    assert [step.evaluations for step in result.steps] == [step.evaluations for step in whole.steps]
    with CampaignStore.open(tmp_path / "run" / CAMPAIGN) as store:
        assert store.check() == []
        assert [row.kind for row in store.history()].count("import") == 1
        kept = [row for row in store.measurements() if row.suggestion is None]
        assert [(row.string, row.value) for row in kept] == [
            ("ABABAB", 3.0),
            ("ABABAB", 3.5),
            ("AAAAAA", 0.0),
            ("BBBBBB", 0.5),
        ]
    for other in (None, known | {"AAAAAA": 1.0}):
        with pytest.raises(RunFolderError, match=r"other settings.*known\.sha256 was"):
            seqopt.maximize(Count(), POOL, resume=True, **(options | {"known": other}))


def test_a_run_that_was_killed_before_it_kept_what_is_known_does_so_when_it_is_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*arguments: object) -> None:
        raise KeyboardInterrupt

    options = OPTIONS | {"run_folder": tmp_path / "run"}
    with monkeypatch.context() as patch:
        patch.setattr("seqopt.api.keep_known", killed)
        with pytest.raises(KeyboardInterrupt):
            search(KNOWN, **options)
    result, calls = search(KNOWN, resume=True, **options)
    assert calls == search(KNOWN)[1]
    assert result.evaluations["string"].tolist()[: len(KNOWN)] == list(KNOWN)


def test_known_results_that_do_not_fit_are_refused_before_anything_is_made(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    space = seqopt.StringSpace("AB", 6)
    for known, message in (
        ({"ABC": 1.0}, "row 1: 'ABC'"),
        (pd.DataFrame({"string": ["AB"], "value": [1.0], "sem": [-1.0]}), "is not positive"),
    ):
        objective = Count()
        with pytest.raises(InputError, match=message):
            seqopt.maximize(objective, space, known=known, run_folder=folder, **OPTIONS)
        assert objective.calls == []
        assert not folder.exists()


def test_what_is_left_out_is_said(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        read_known({"AB": 1.0, "BA": float("nan")}, Settings("hits"), identify)
    assert "1 row has no value and no failure" in caplog.text


# The options of both functions


def test_minimize_takes_the_options_of_maximize_and_mypy_sees_them() -> None:
    parameters = inspect.signature(seqopt.maximize).parameters
    own = set(parameters) - {"objective", "space", "direction"}
    assert get_type_hints(SearchOptions).keys() == own
    assert {name: parameters[name].annotation for name in own} == {
        name: one.__forward_arg__ for name, one in SearchOptions.__annotations__.items()
    }


def test_a_misspelt_option_is_refused() -> None:
    with pytest.raises(TypeError, match="bugdet"):
        seqopt.minimize(Count(), POOL, bugdet=3)  # type: ignore[call-arg]
