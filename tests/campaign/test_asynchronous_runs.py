"""Asynchronous runs: a free worker gets a string at once, chosen given what the others are busy with."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import seqopt
from seqopt import Result
from seqopt.campaign import CampaignStore
from seqopt.campaign.run_folders import CAMPAIGN
from seqopt.errors import InputError, ObjectiveError, RunFolderError
from seqopt.scorers import GaussianScoring, Scoring
from seqopt.search import PoolSearch, Proposal
from seqopt.spaces import CandidateSet

POOL = ["".join(letters) for letters in itertools.product("AB", repeat=6)]
OPTIONS: dict[str, Any] = {
    "initial": 4,
    "budget": 5,
    "batch_size": 3,
    "seed": 3,
    "acquisition": "ucb",
    "surrogate": "one-hot",
}
ORDER = (2, 0, 1, 1, 2, 0, 2, 1, 0)
"""Which of the running evaluations, the oldest first, ends next."""


class Scripted(Executor):
    """Its evaluations end one at a time, in a given order, whenever somebody waits for them."""

    def __init__(self, order: Iterable[int], *, at_once: int = 1) -> None:
        self.order = iter(order)
        self.at_once = at_once
        self.running: list[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]] = []
        self.most = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        self.running.append((future, fn, args))
        self.most = max(self.most, len(self.running))
        return future

    def wait(self, futures: Any, timeout: float | None = None, return_when: str = "") -> Any:
        for _ in range(min(self.at_once, len(self.running))):
            future, fn, args = self.running.pop(next(self.order) % len(self.running))
            future.set_result(fn(*args))
        return wait(futures, timeout=0)


class Spy(PoolSearch):
    """Notes what every suggestion was conditioned on."""

    def __init__(self) -> None:
        super().__init__()
        self.pending: list[list[str]] = []

    def propose(self, n: int, *, scoring: Scoring, **options: Any) -> list[Proposal]:
        assert isinstance(scoring, GaussianScoring)
        self.pending.append([str(item) for item in scoring.pending])
        return super().propose(n, scoring=scoring, **options)


class Ignorant(PoolSearch):
    """Does not condition on what is pending."""

    def propose(self, n: int, *, scoring: Scoring, **options: Any) -> list[Proposal]:
        assert isinstance(scoring, GaussianScoring)
        scoring.pending.clear()
        return super().propose(n, scoring=scoring, **options)


class Score:
    """Notes what it is called with."""

    name = "score"

    def __init__(self, stop_after: int | None = None) -> None:
        self.calls: list[str] = []
        self.stop_after = stop_after

    def __call__(self, strings: list[str]) -> list[float]:
        if len(self.calls) == self.stop_after:
            raise KeyboardInterrupt
        self.calls += strings
        return [string.count("AB") + 0.25 * string.startswith("A") for string in strings]


@pytest.fixture(autouse=True)
def _no_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seqopt.api._write_report", lambda folder: None)


Run = Callable[..., Result]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """An asynchronous search on a scripted executor."""

    def started(executor: Scripted, objective: Any = None, workers: int = 3, **options: Any) -> Result:
        monkeypatch.setattr("seqopt.evaluation.batch.wait", executor.wait)
        return seqopt.maximize(
            Score() if objective is None else objective,
            CandidateSet(POOL, kind="text"),
            executor=executor,
            workers=workers,
            asynchronous=True,
            **(OPTIONS | options),
        )

    return started


def evaluations(result: Result) -> pd.DataFrame:
    return result.evaluations.drop(columns="seconds")


def test_the_same_order_of_results_gives_the_same_run_and_another_one_another(run: Run) -> None:
    first, again, other = (run(Scripted(order)) for order in (ORDER, ORDER, itertools.repeat(0)))
    pd.testing.assert_frame_equal(evaluations(first), evaluations(again), check_exact=True)
    assert not evaluations(first).equals(evaluations(other))


@pytest.mark.parametrize(("workers", "at_once"), [(3, 1), (3, 2), (5, 5), (2, 1)])
def test_every_worker_is_always_busy_and_no_string_comes_twice(run: Run, workers: int, at_once: int) -> None:
    executor, score, search = Scripted(itertools.cycle(ORDER), at_once=at_once), Score(), Spy()
    result = run(executor, score, workers, search=search)
    assert executor.most == workers
    assert len(score.calls) == len(set(score.calls)) == 9
    assert (result.evaluations["status"] == "ok").all()
    # While there is something to do, only as many are not busy as have just ended.
    assert all(len(pending) >= workers - at_once for pending in search.pending)
    assert all(len(pending) < workers for pending in search.pending)


def test_what_the_others_are_busy_with_is_conditioned_on(run: Run) -> None:
    executor, search = Scripted(ORDER), Spy()
    result = run(executor, search=search)
    asked, order = result.evaluations["string"].tolist(), list(ORDER)
    # Done by hand: three run at first, and each result lets the next string in.
    busy, expected = asked[:3], []
    for string in asked[3:]:
        busy.pop(order.pop(0))
        expected.append(list(busy))
        busy.append(string)
    assert search.pending == expected[1:]  # the fourth string is still one of the initial ones
    other = run(Scripted(ORDER), search=Ignorant())
    assert other.evaluations["string"].tolist() != asked


def test_steps_are_numbers_of_results(run: Run, tmp_path: Path) -> None:
    seen: list[Any] = []
    result = run(Scripted(ORDER), run_folder=tmp_path, on_step=seen.append)
    assert [(step.step, step.evaluations) for step in seen] == [(0, 4), (1, 7), (2, 9)]
    assert [(step.step, step.evaluations, step.best, step.kernel) for step in result.steps] == [
        (step.step, step.evaluations, step.best, step.kernel) for step in seen
    ]
    assert [step["evaluations"] for step in json.loads((tmp_path / "summary.json").read_text())["steps"]] == [4, 7, 9]


@pytest.mark.slow
@pytest.mark.parametrize("after", [0, 2, 5, 8])
def test_an_interrupted_run_goes_on_and_repeats_no_evaluation(run: Run, tmp_path: Path, after: int) -> None:
    first, second = Score(stop_after=after), Score()
    with pytest.raises(KeyboardInterrupt):
        run(Scripted(ORDER), first, run_folder=tmp_path)
    with CampaignStore.open(tmp_path / CAMPAIGN) as store:
        in_flight = [row.string for row in store.open_suggestions()]
        assert [row.string for row in store.measurements()] == first.calls
        assert store.check() == []
    assert 1 <= len(in_flight) <= 3
    result = run(Scripted(itertools.repeat(0)), second, run_folder=tmp_path, resume=True)
    assert second.calls[: len(in_flight)] == in_flight
    assert len(first.calls + second.calls) == len(set(first.calls + second.calls)) == 9
    assert result.evaluations["string"].tolist()[: after + len(in_flight)] == [
        row for row in result.evaluations["string"] if row in {*first.calls, *in_flight}
    ]
    assert [step.evaluations for step in result.steps] == [4, 7, 9]


def test_a_run_goes_on_as_it_was_from_what_had_come(run: Run, tmp_path: Path) -> None:
    """With the same order of results, stopping changes nothing: the state that suggestions follow from is kept."""
    whole = run(Scripted(ORDER))
    with pytest.raises(KeyboardInterrupt):
        run(Scripted(ORDER), Score(stop_after=6), run_folder=tmp_path)
    # Those that were running have kept their places.
    resumed = run(Scripted(ORDER[6:]), run_folder=tmp_path, resume=True)
    pd.testing.assert_frame_equal(evaluations(resumed), evaluations(whole), check_exact=True)


def test_resuming_with_fewer_workers_keeps_them_busy_only(run: Run, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(Scripted(ORDER), Score(stop_after=5), run_folder=tmp_path, search=Spy())
    executor, search = Scripted(itertools.repeat(1)), Spy()
    run(executor, workers=2, run_folder=tmp_path, resume=True, search=search)
    assert executor.most == 2
    assert all(len(pending) < 2 for pending in search.pending)


def test_failures_and_time_outs_are_results(run: Run) -> None:
    def objective(strings: list[str]) -> list[float]:
        if strings[0].startswith("AA"):
            raise RuntimeError("no luck")
        return [float(strings[0].count("B"))]

    result = run(Scripted(ORDER), objective)
    failed = result.evaluations["status"] == "failed"
    assert 0 < failed.sum() < len(result.evaluations) == 9
    assert (failed == result.evaluations["string"].str.startswith("AA")).all()


def test_an_objective_that_never_succeeds_is_said_after_the_initial_ones(run: Run) -> None:
    calls: list[str] = []

    def objective(strings: list[str]) -> list[float]:
        calls.extend(strings)
        raise OSError("the licence server is down")

    with pytest.raises(ObjectiveError, match=r"all 4 .*licence server is down"):
        run(Scripted(itertools.repeat(0)), objective)
    assert len(calls) == 4


def test_an_exhausted_pool_ends_the_run(run: Run) -> None:
    score = Score()
    space = CandidateSet(POOL[:7], kind="text")
    result = seqopt.maximize(
        lambda strings: score(strings), space, workers=3, asynchronous=True, **(OPTIONS | {"budget": 50})
    )
    assert sorted(result.evaluations["string"]) == sorted(score.calls) == POOL[:7]


def test_threads_of_whatever_kind_do_it_too(tmp_path: Path) -> None:
    space = CandidateSet(POOL, kind="text")
    options = OPTIONS | {"asynchronous": True, "acquisition": "random"}
    score = Score()
    with ThreadPoolExecutor(3) as executor:
        one = seqopt.maximize(score, space, executor=executor, workers=3, **options)
    other = seqopt.maximize(lambda strings: score(strings), space, workers=3, timeout=60, **options)
    alone = seqopt.maximize(score, space, run_folder=tmp_path, **options)
    assert len(score.calls) == 27
    for result in (one, other, alone):
        assert result.evaluations["string"].nunique() == 9
        assert (result.evaluations["status"] == "ok").all()


def test_a_run_stays_what_it_was(run: Run, tmp_path: Path) -> None:
    run(Scripted(ORDER), run_folder=tmp_path)
    with pytest.raises(RunFolderError, match="asynchronous was True, is now None"):
        seqopt.maximize(Score(), CandidateSet(POOL, kind="text"), run_folder=tmp_path, resume=True, **OPTIONS)
    with pytest.raises(InputError, match="how many evaluations the executor makes"):
        run(Scripted(ORDER), workers=1)
