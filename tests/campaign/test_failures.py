"""Runs whose objective does not work: they stop in time, say why, and lose nothing."""

from __future__ import annotations

import json
import logging
import math
import traceback
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import seqopt
from seqopt.campaign import Campaign, CampaignStore
from seqopt.campaign.automatic import useful_workers
from seqopt.campaign.failures import STOP_AFTER, broken, reason_of, tally
from seqopt.errors import InputError, StoppedRunError
from seqopt.evaluation import Evaluator
from seqopt.spaces import StringSpace

SPACE = StringSpace("AB", 8)
QUICK: dict[str, Any] = {"surrogate": "one-hot", "acquisition": "random", "seed": 1}


@pytest.fixture(autouse=True)
def _no_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seqopt.api._write_report", lambda folder: None)


class Failing:
    """Works for a while, then fails for each string in the same way."""

    def __init__(self, works: int, reason: str = "no licence for {}") -> None:
        self.works, self.reason = works, reason
        self.calls: list[str] = []

    def __call__(self, strings: list[str]) -> list[float]:
        self.calls += strings
        if len(self.calls) > self.works:
            raise OSError(self.reason.format(strings[0], len(self.calls)))
        return [string.count("A") for string in strings]


def test_a_reason_is_the_same_whatever_the_string() -> None:
    assert reason_of("KeyError: 'AB'", "AB") == reason_of("KeyError: 'BA'", "BA")
    assert reason_of("no A", "A") == "no A"  # which stands for itself
    assert reason_of("", "AB") == "no reason given"
    failures = [("timed out", "AB"), ("no AB", "AB"), ("timed out", "BA"), ("no BA", "BA"), ("no BB", "BB"), ("", "AA")]
    assert tally(failures) == {"no ...": 3, "timed out": 2, "no reason given": 1}
    assert list(tally(failures)) == ["no ...", "timed out", "no reason given"]


@pytest.mark.slow
@pytest.mark.parametrize("way", [{}, {"asynchronous": True}, {"workers": 2}])
def test_equal_failures_in_a_row_stop_a_run(tmp_path: Path, way: dict[str, Any]) -> None:
    def shared(objective: Failing) -> Callable[[list[str]], list[float]]:
        return lambda strings: objective(strings)

    failing = Failing(7)
    options = {"initial": 5, "budget": 40, "batch_size": 4, **QUICK, **way}
    with pytest.raises(
        StoppedRunError, match=r"the last 10 evaluations failed for the same reason: OSError: no licence"
    ):
        # A closure runs in threads, which share what it counts.
        seqopt.maximize(shared(failing), SPACE, run_folder=tmp_path, **options)
    if "workers" not in way:
        assert len(failing.calls) == 7 + STOP_AFTER
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["status"] == "interrupted"
    assert summary["failures"] == {"OSError: no licence for ...": summary["failed"]}
    with CampaignStore.open(tmp_path / "campaign.seqopt") as store:
        assert store.check() == []
        assert store.counts().values == 7
    # What was fixed resumes where it was, and counts anew.
    again = Failing(100)
    result = seqopt.maximize(shared(again), SPACE, run_folder=tmp_path, resume=True, **options)
    assert len(result.evaluations) == 45
    assert not set(again.calls) & set(result.evaluations.query("status == 'failed'")["string"])
    assert list(result.failures) == ["OSError: no licence for ..."]


def test_a_resumed_run_counts_anew(tmp_path: Path) -> None:
    options = {"initial": 5, "budget": 40, "batch_size": 4, "stop_after_failures": 3, "run_folder": tmp_path, **QUICK}
    first = Failing(6)
    with pytest.raises(StoppedRunError):
        seqopt.maximize(first, SPACE, **options)
    second = Failing(0)
    with pytest.raises(StoppedRunError, match="the last 3 evaluations"):
        seqopt.maximize(second, SPACE, resume=True, **options)
    assert (len(first.calls), len(second.calls)) == (9, 3)


@pytest.mark.parametrize(("limit", "reason"), [(None, "no licence"), (10, "failure no. {1}")])
def test_a_run_goes_on_if_it_may_or_if_the_reasons_differ(limit: int | None, reason: str) -> None:
    failing = Failing(6, reason)
    result = seqopt.maximize(failing, SPACE, initial=5, budget=25, batch_size=5, stop_after_failures=limit, **QUICK)
    assert Counter(result.evaluations["status"]) == {"ok": 6, "failed": 24}
    assert sum(result.failures.values()) == 24


def test_a_success_in_between_breaks_the_row() -> None:
    def every_fourth(strings: list[str]) -> list[float]:
        calls.append(strings[0])
        if len(calls) % 4:
            raise OSError("busy")
        return [1.0]

    calls: list[str] = []
    options = {"initial": 5, "budget": 20, "batch_size": 5, **QUICK}
    assert seqopt.maximize(every_fourth, SPACE, stop_after_failures=4, **options).failures == {"OSError: busy": 19}
    calls.clear()
    with pytest.raises(StoppedRunError):
        seqopt.maximize(every_fourth, SPACE, stop_after_failures=3, **options)


def test_nan_is_an_answer_once_the_objective_has_returned_a_value() -> None:
    def infeasible(strings: list[str]) -> list[float]:
        calls.append(strings[0])
        return [1.0 if len(calls) == 2 else math.nan]

    calls: list[str] = []
    options = {"initial": 5, "budget": 15, "batch_size": 5, **QUICK}
    result = seqopt.maximize(infeasible, SPACE, stop_after_failures=3, **options)
    assert result.failures == {"the objective returned nan": 19}


@pytest.mark.parametrize("answer", [math.nan, None])
def test_where_the_first_strings_all_fail_a_run_goes_on_at_random(answer: float | None) -> None:
    def rare(strings: list[str]) -> list[float]:
        calls.append(strings[0])
        if len(calls) < 19:
            if answer is None:  # for one reason or another
                raise (ValueError, KeyError)[len(calls) % 2](strings[0])
            return [answer]
        return [float(strings[0].count("A"))]

    calls: list[str] = []
    result = seqopt.maximize(rare, SPACE, initial=5, budget=20, batch_size=5, **QUICK)
    assert Counter(result.evaluations["status"]) == {"failed": 18, "ok": 7}


def test_an_objective_is_broken_that_fails_always_alike_or_for_long() -> None:
    nan = "the objective returned nan"
    assert not broken(["OSError: no licence"] * 4, 5)
    assert broken([f"OSError: no licence for {number}" for number in range(5)], 5)
    assert not broken(["OSError: no licence"] * 4 + [nan], 5)
    assert not broken([nan] * 24, 5)
    assert broken([nan] * 25, 5)


@pytest.mark.parametrize("limit", [0, -1, 2.5, "3"])
def test_the_limit_is_a_number_of_failures(limit: Any) -> None:
    with pytest.raises(InputError, match="stop_after_failures"):
        seqopt.maximize(Failing(9), SPACE, initial=3, budget=2, stop_after_failures=limit, **QUICK)


def test_the_traceback_of_the_objective_is_in_that_of_the_run() -> None:
    with pytest.raises(StoppedRunError) as caught:
        seqopt.maximize(Failing(4), SPACE, initial=3, budget=30, batch_size=3, **QUICK)
    (note,) = caught.value.__notes__
    assert "raise OSError(self.reason.format(" in note
    assert note in "".join(traceback.format_exception(caught.value))
    with pytest.raises(StoppedRunError, match="all 3 evaluations so far failed") as caught:
        seqopt.maximize(Failing(0), SPACE, initial=3, budget=30, batch_size=3, **QUICK)
    assert "raise OSError" in caught.value.__notes__[0]


def test_each_reason_is_traced_once_for_those_who_debug(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="seqopt.tracebacks")
    seqopt.maximize(Failing(4), SPACE, initial=3, budget=6, batch_size=3, **QUICK)
    traced = [record.getMessage() for record in caplog.records if record.name == "seqopt.tracebacks"]
    assert len(traced) == 1
    assert "raise OSError" in traced[0]


def test_an_objective_of_the_wrong_form_stops_at_once_and_nothing_is_recorded(tmp_path: Path) -> None:
    calls: list[Any] = []

    def adds_up(strings: list[str]) -> Any:
        calls.append(strings)
        return sum(string.count("A") for string in strings)

    options = {"initial": 4, "budget": 4, "batch_size": 2, "run_folder": tmp_path, **QUICK}
    with pytest.raises(StoppedRunError, match=r"returned \d.*per_string\(f\).*Nothing was recorded for '[AB]{8}'"):
        seqopt.maximize(adds_up, SPACE, **options)
    assert len(calls) == 1
    with CampaignStore.open(tmp_path / "campaign.seqopt") as store:
        assert store.counts().values == store.counts().failures == 0

    def fixed(strings: list[str]) -> list[float]:
        return [string.count("A") for string in strings]

    fixed.__qualname__ = adds_up.__qualname__
    result = seqopt.maximize(fixed, SPACE, resume=True, **options)
    assert (result.evaluations["status"] == "ok").all()
    assert result.evaluations["string"].tolist()[0] == calls[0][0]


def test_once_it_has_worked_a_wrong_form_is_the_failure_of_a_string() -> None:
    def odd(strings: list[str]) -> Any:
        return [1.0] if len(calls) < 2 or len(calls) > 3 else [1.0, 2.0]

    calls: list[str] = []
    result = seqopt.maximize(
        odd, SPACE, initial=3, budget=3, batch_size=3, on_evaluation=lambda one: calls.append(one.string), **QUICK
    )
    assert result.evaluations["status"].tolist() == ["ok", "ok", "failed", "failed", "ok", "ok"]


def test_campaigns_run_by_functions_stop_too(tmp_path: Path) -> None:
    with Campaign.create(tmp_path / "a.seqopt", SPACE, objective="activity", batch_size=3, **QUICK) as campaign:
        with pytest.raises(StoppedRunError, match="the last 4 evaluations"):
            campaign.run(Failing(5), budget=30, stop_after_failures=4)
        assert (campaign.store.counts().values, campaign.store.counts().failures) == (5, 4)
        assert campaign.run(Failing(100), budget=20) == 11


@pytest.mark.parametrize(("workers", "at_once", "useful"), [(100, 20, 20), (4, 20, 4), (100, 0, 1), (1, 20, 1)])
def test_no_more_workers_than_can_be_busy(workers: int, at_once: int, useful: int) -> None:
    assert useful_workers(workers, at_once) == useful


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"initial": 5, "batch_size": 3, "budget": 6}, 5),
        ({"initial": 2, "batch_size": 3, "budget": 6}, 3),
        ({"initial": 2, "batch_size": 3, "budget": 6, "asynchronous": True}, 8),
    ],
)
def test_a_hundred_workers_start_no_more_than_are_needed(
    options: dict[str, Any], expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[int] = []
    real = Evaluator.__init__

    def noted(self: Evaluator, *arguments: Any, **given: Any) -> None:
        started.append(given["workers"])
        real(self, *arguments, **given)

    monkeypatch.setattr(Evaluator, "__init__", noted)
    seqopt.maximize(lambda strings: [1.0], SPACE, workers=100, **options, **QUICK)
    assert started == [expected]


def test_an_executor_stops_too() -> None:
    with ThreadPoolExecutor(2) as executor, pytest.raises(StoppedRunError, match="the last 10 evaluations"):
        seqopt.maximize(Failing(5), SPACE, initial=5, budget=40, batch_size=4, executor=executor, **QUICK)


def test_what_failed_is_tried_again_on_top_of_the_budget(tmp_path: Path) -> None:
    calls: list[str] = []

    def flaky(strings: list[str]) -> list[float]:
        calls.extend(strings)
        if broken and len(calls) % 3 == 0:
            raise OSError("the licence server is down")
        return [float(string.count("A")) for string in strings]

    options = {"initial": 4, "budget": 8, "batch_size": 4, "run_folder": tmp_path / "run", **QUICK}
    broken = True
    first = seqopt.maximize(flaky, SPACE, **options)
    failed = first.evaluations.loc[first.evaluations["status"] == "failed", "string"].tolist()
    assert len(failed) == 4
    with pytest.raises(InputError, match="goes with resume"):
        seqopt.maximize(flaky, SPACE, retry_failed=True, **options)
    broken = False
    calls.clear()
    again = seqopt.maximize(flaky, SPACE, resume=True, retry_failed=True, **options)
    assert calls == failed
    assert Counter(again.evaluations["status"]) == {"ok": 12, "failed": 4}
    # Nothing is left to try, and the budget is what it was.
    for retry in (True, False):
        calls.clear()
        seqopt.maximize(flaky, SPACE, resume=True, retry_failed=retry, **options)
        assert calls == []
    more = seqopt.maximize(flaky, SPACE, resume=True, **(options | {"budget": 10}))
    assert len(calls) == 2
    assert Counter(more.evaluations["status"]) == {"ok": 14, "failed": 4}


def test_a_search_in_which_everything_failed_still_has_its_results(caplog: pytest.LogCaptureFixture) -> None:
    result = seqopt.maximize(
        lambda strings: [math.nan] * len(strings), ["AA", "AB", "BA", "BB", "CA"], initial=2, budget=2
    )
    assert (result.best_string, math.isnan(result.best_value)) == ("", True)
    assert result.failures == {"the objective returned nan": 4}
    assert "no evaluation gave a value" in caplog.text
