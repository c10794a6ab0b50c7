"""Campaigns whose suggestions a function evaluates."""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from seqopt.campaign import Campaign, CampaignError, CampaignStore, automatic, locks
from seqopt.campaign.locks import RunLock
from seqopt.errors import InputError, ObjectiveError
from seqopt.filters import Pattern
from seqopt.spaces import StringSpace
from seqopt.utils.progress import shown_by

SPACE = StringSpace("AB", 8)


def score(strings: list[str]) -> list[float]:
    return [string.count("AB") + 0.25 * string.startswith("A") for string in strings]


def campaign(path: Path, **options: Any) -> Campaign:
    given = {"objective": "activity", "batch_size": 3, "surrogate": "one-hot", "acquisition": "mean", "seed": 2}
    return Campaign.create(path, SPACE, **(given | options))


def rows(path: Path) -> list[tuple[str, float | None, str | None]]:
    with CampaignStore.open(path) as store:
        assert store.check() == []
        return [(row.string, row.value, row.suggestion) for row in store.measurements()]


def test_a_run_is_what_its_user_would_have_done_by_hand(tmp_path: Path) -> None:
    with campaign(tmp_path / "by_hand.seqopt") as hand:
        for _ in range(3):
            for suggestion in hand.suggest():
                hand.record(suggestion.name, score([suggestion.string])[0])
    with campaign(tmp_path / "run.seqopt") as automatic:
        seen: list[str] = []
        assert automatic.run(score, budget=9, on_evaluation=lambda evaluation: seen.append(evaluation.string)) == 9
    assert rows(tmp_path / "run.seqopt") == rows(tmp_path / "by_hand.seqopt")
    assert [row[0] for row in rows(tmp_path / "run.seqopt")] == seen


def test_whoever_watches_a_run_sees_which_string_is_being_evaluated(tmp_path: Path) -> None:
    said: list[str] = []
    seen: dict[str, str] = {}

    def watched(strings: list[str]) -> list[float]:
        seen[strings[0]] = said[-1]
        return score(strings)

    with campaign(tmp_path / "run.seqopt") as running, shown_by(said.append):
        assert running.run(watched, budget=6) == 6
        assert seen == {string: f"scoring {string}" for string in seen}
        assert len(seen) == 6
        assert said[-1] == ""
        # Of several at once, the first that has no result.
        with ThreadPoolExecutor(2) as executor:
            running.run(watched, budget=9, executor=executor)
        batch = [row[0] for row in rows(tmp_path / "run.seqopt")[6:]]
        assert f"scoring {running.store.suggestion('B03-01').string} and 2 more" in said  # type: ignore[union-attr]
        assert seen.keys() >= set(batch)


@pytest.mark.slow
@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("after", [0, 2, 4])
def test_it_goes_on_after_an_interruption_and_repeats_nothing(tmp_path: Path, after: int, asynchronous: bool) -> None:
    calls: list[str] = []

    def interrupted(strings: list[str]) -> list[float]:
        if len(calls) == after:
            raise KeyboardInterrupt
        return counted(strings)

    def counted(strings: list[str]) -> list[float]:
        calls.extend(strings)
        return score(strings)

    path = tmp_path / "a.seqopt"
    with campaign(path) as begun, pytest.raises(KeyboardInterrupt):
        begun.run(interrupted, budget=7, asynchronous=asynchronous)
    with Campaign.open(path) as again:
        waiting = [row.string for row in again.store.open_suggestions()]
        assert waiting
        assert again.run(counted, budget=7, asynchronous=asynchronous) == 7 - after
        assert again.run(counted, budget=7, asynchronous=asynchronous) == 0
    assert calls[after : after + len(waiting)] == waiting
    assert len(calls) == len(set(calls)) == 7
    with campaign(tmp_path / "whole.seqopt") as whole:
        whole.run(score, budget=7, asynchronous=asynchronous)
    assert rows(path) == rows(tmp_path / "whole.seqopt")


def test_results_of_people_count_and_teach(tmp_path: Path) -> None:
    with campaign(tmp_path / "a.seqopt") as mixed:
        first, second, _ = mixed.suggest()
        mixed.record(first.name, 1.0)
        mixed.record(second.name, failure="no yield")
        mixed.record("AAAAAAAA", 0.5)
        assert mixed.run(score, budget=5) == 2
        assert mixed.store.open_suggestions() == []
    assert [row[2] for row in rows(tmp_path / "a.seqopt")] == ["B01-01", "B01-02", None, "B01-03", "B02-01"]


def test_threads_batches_and_free_workers_evaluate_each_string_once(tmp_path: Path) -> None:
    for asynchronous in (False, True):
        calls: list[str] = []
        lock = threading.Lock()

        def objective(strings: list[str], calls: list[str] = calls, lock: threading.Lock = lock) -> list[float]:
            with lock:
                calls.extend(strings)
            return score(strings)

        path = tmp_path / f"{asynchronous}.seqopt"
        with campaign(path) as one, ThreadPoolExecutor(3) as executor:
            assert one.run(objective, budget=8, executor=executor, workers=3, asynchronous=asynchronous) == 8
        assert sorted(row[0] for row in rows(path)) == sorted(set(calls))
        assert len(calls) == 8


def test_filters_hold_for_runs_too(tmp_path: Path) -> None:
    with campaign(tmp_path / "a.seqopt", filters=[Pattern("^A")]) as filtered:
        filtered.run(score, budget=6)
    assert all(row[0].startswith("A") for row in rows(tmp_path / "a.seqopt"))


def test_what_cannot_be_evaluated_is_a_failure_with_a_reason(tmp_path: Path) -> None:
    def objective(strings: list[str]) -> list[float]:
        if strings[0].startswith("A"):
            raise OSError("no licence \udce9")
        return [2.0 if strings[0].startswith("BB") else 1e300 if strings[0].endswith("A") else -1.0]

    with campaign(tmp_path / "a.seqopt", transform="log10", acquisition="random", batch_size=16) as failing:
        failing.run(objective, budget=16)
        reasons = {row.failure for row in failing.store.measurements() if row.value is None}
        assert failing.store.check() == []
    assert reasons == {
        "OSError: no licence \\udce9",
        "the value is 1e+300; none may be larger than 1e+150",
        "the transform log10 needs positive values, got -1",
    }


def test_what_never_succeeds_stops(tmp_path: Path) -> None:
    with campaign(tmp_path / "a.seqopt") as hopeless:
        with pytest.raises(ObjectiveError, match=r"all 15 evaluations so far failed, .* returned nan"):
            hopeless.run(lambda strings: [float("nan")], budget=30)
        assert hopeless.store.counts().failures == 15


def test_wrong_arguments_and_a_second_run_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.seqopt"
    with campaign(path) as one:
        with pytest.raises(InputError, match="budget is -1"):
            one.run(score, budget=-1)
        with (
            pytest.raises(InputError, match="how many evaluations the executor makes"),
            ThreadPoolExecutor(2) as threads,
        ):
            one.run(score, budget=3, executor=threads, asynchronous=True)
        with pytest.raises(InputError, match="mfe is for DNA or RNA"):
            one.run("mfe", budget=3)
        with RunLock(path), pytest.raises(CampaignError, match="another process is running"):
            one.run(score, budget=3)
        with pytest.raises(InputError, match="workers must be at least 1") as refused:
            one.run(score, budget=1, workers=0)
        # Also while somebody looks at what was wrong.
        assert one.run(score, budget=1) == 1
        assert refused.value


def test_somebody_else_may_record_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "a.seqopt"
    with campaign(path) as one:

        def objective(strings: list[str]) -> list[float]:
            with Campaign.open(path) as other:
                known = {row.key for row in other.store.measurements()}
                fresh = next(s for s in ("BBBBBBBB", "ABABABAB", "AABBAABB", "BABABABA") if s not in known)
                other.record(fresh, 0.0)
            return score(strings)

        assert one.run(objective, budget=7) == 4
        assert one.store.check() == []


WAYS: list[dict[str, Any]] = [{}, {"workers": 2}, {"asynchronous": True}, {"asynchronous": True, "workers": 2}]


@pytest.mark.slow
@pytest.mark.parametrize("threads", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_open_suggestions_count_against_the_budget_only_as_far_as_they_are_evaluated(
    tmp_path: Path, way: dict[str, Any], threads: bool
) -> None:
    def local(strings: list[str]) -> list[float]:
        return score(strings)

    with contextlib.ExitStack() as stack:
        options = way | ({"executor": stack.enter_context(ThreadPoolExecutor(2)), "workers": 2} if threads else {})
        one = stack.enter_context(campaign(tmp_path / "a.seqopt"))
        names = [row.name for row in one.suggest(7)]
        one.record("AAAAAAAA", 0.5)
        assert one.run(local, budget=0, **options) == 0
        assert one.run(local, budget=4, **options) == 3
        assert [row.name for row in one.store.open_suggestions()] == names[3:]
        assert one.run(local, budget=10, **options) == 6
        assert one.store.open_suggestions() == []
        assert (one.store.counts().values, len(one.store.suggestions())) == (10, 9)


@pytest.mark.parametrize("way", WAYS[::2])
def test_what_is_no_longer_open_is_not_evaluated(tmp_path: Path, way: dict[str, Any]) -> None:
    path = tmp_path / "a.seqopt"
    calls: list[str] = []
    with campaign(path) as one:
        suggested = one.suggest(5)

        def objective(strings: list[str]) -> list[float]:
            if not calls:
                with Campaign.open(path) as other:
                    other.withdraw([suggested[2].name], "not made")
                    other.record(suggested[3].name, 0.75)
            calls.extend(strings)
            return score(strings)

        assert one.run(objective, budget=6, **way) == 5
    assert calls[:3] == [suggested[index].string for index in (0, 1, 4)]
    assert not {suggested[2].string, suggested[3].string} & set(calls)
    assert (suggested[3].string, 0.75, suggested[3].name) in rows(path)
    assert len(rows(path)) == 6


@pytest.mark.parametrize("threads", [False, True])
@pytest.mark.parametrize("meanwhile", ["undo", "withdraw"])
def test_a_result_outlives_its_suggestion(tmp_path: Path, meanwhile: str, threads: bool) -> None:
    path = tmp_path / "a.seqopt"
    calls: list[str] = []
    with contextlib.ExitStack() as stack:
        one = stack.enter_context(campaign(path))
        executor = stack.enter_context(ThreadPoolExecutor(1)) if threads else None
        (first,) = one.suggest(1)

        def objective(strings: list[str]) -> list[float]:
            if not calls:
                with Campaign.open(path) as other:
                    other.undo() if meanwhile == "undo" else other.withdraw([first.name])
            calls.extend(strings)
            return score(strings)

        assert one.run(objective, budget=4, executor=executor) == 4
    expected = None if meanwhile == "undo" else first.name
    assert rows(path)[0] == (first.string, score([first.string])[0], expected)
    assert len(calls) == len(set(calls)) == 4


def test_what_is_undone_and_suggested_anew_while_it_is_evaluated_is_evaluated_once(tmp_path: Path) -> None:
    path = tmp_path / "a.seqopt"
    calls: list[str] = []
    undone = threading.Event()
    with Campaign.create(path, StringSpace("AB", 1), objective="y", seed=1) as one, ThreadPoolExecutor(2) as executor:
        first, _ = one.suggest(2)

        def objective(strings: list[str]) -> list[float]:
            calls.extend(strings)
            if strings == [first.string]:
                assert undone.wait(30)
                with Campaign.open(path) as other:
                    for _ in range(600):
                        if any(row.string == first.string for row in other.store.open_suggestions()):
                            break
                        time.sleep(0.05)
            else:
                with Campaign.open(path) as other:
                    other.undo()
                undone.set()
            return [1.0]

        assert one.run(objective, budget=3, executor=executor, workers=2, asynchronous=True) == 2
    assert sorted(calls) == ["A", "B"]
    assert {row[0] for row in rows(path)} == {"A", "B"}


def _holding(path: Path, done: Callable[[], bool]) -> Callable[[list[str]], list[float]]:
    """An objective after whose first call somebody else writes to the file, until ``done``."""
    begun = threading.Event()

    def hold() -> None:
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            begun.set()
            for _ in range(3000):
                if done():
                    break
                time.sleep(0.01)
            other.execute("ROLLBACK")

    def objective(strings: list[str]) -> list[float]:
        if not begun.is_set():
            threading.Thread(target=hold).start()
            assert begun.wait(30)
        return score(strings)

    return objective


def test_a_file_that_is_busy_for_long_is_waited_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "a.seqopt"
    with campaign(path) as one, caplog.at_level(logging.WARNING):
        one.store._connection.execute("PRAGMA busy_timeout = 20")
        assert one.run(_holding(path, lambda: bool(caplog.records)), budget=3) == 3
        assert one.store._connection.execute("PRAGMA busy_timeout").fetchone() == (20,)
    assert ["another process is writing to" in record.message for record in caplog.records] == [True]
    assert len(rows(path)) == 3


def test_a_result_that_cannot_be_recorded_is_in_the_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(automatic, "PATIENCE", 0.1)
    path = tmp_path / "a.seqopt"
    refused = threading.Event()
    with campaign(path) as one:
        one.store._connection.execute("PRAGMA busy_timeout = 20")
        row = one.suggest(1)[0]
        value = score([row.string])[0]
        with pytest.raises(
            CampaignError, match=f"'{row.string}' has the value {value}, but .* could not be recorded: another process"
        ):
            one.run(_holding(path, refused.is_set), budget=3)
        refused.set()
        assert [open_.name for open_ in one.store.open_suggestions()] == [row.name]


def test_a_result_that_an_interruption_kept_from_the_file_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    path = tmp_path / "a.seqopt"
    with campaign(path) as one:
        one.store._connection.execute("PRAGMA busy_timeout = 20")
        row = one.suggest(1)[0]
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            monkeypatch.setattr(time, "sleep", interrupted)
            with pytest.raises(KeyboardInterrupt):
                one.run(score, budget=3)
    assert f"'{row.string}' has the value {score([row.string])[0]}, but the run was interrupted" in caplog.text


def test_a_result_that_was_recorded_when_the_interruption_came_is_not_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with campaign(tmp_path / "a.seqopt") as one:
        transaction = one.store.transaction

        @contextlib.contextmanager
        def interrupted(kind: str, *arguments: Any, **options: Any) -> Iterator[Any]:
            with transaction(kind, *arguments, **options) as change:
                yield change
            if kind == "record":
                raise KeyboardInterrupt

        monkeypatch.setattr(one.store, "transaction", interrupted)
        with pytest.raises(KeyboardInterrupt):
            one.run(score, budget=3)
        assert one.store.counts().values == 1
    assert caplog.text == ""


def test_of_threads_that_run_a_campaign_at_once_one_is_let_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    locked, refused, held = locks._locked, list[CampaignError](), list[RunLock]()

    def slowly(path: Path) -> int | None:
        time.sleep(0.1)
        return locked(path)

    def take() -> None:
        try:
            held.append(RunLock(tmp_path / "a.seqopt"))
        except CampaignError as error:
            refused.append(error)

    monkeypatch.setattr(locks, "_locked", slowly)
    threads = [threading.Thread(target=take) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(held), len(refused)) == (1, 2)
    held[0].release()


class _Broken(Executor):
    """Makes the first call; the workers of all others die."""

    def __init__(self) -> None:
        self.calls = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.calls += 1
        future: Future[Any] = Future()
        if self.calls == 1:
            future.set_result(fn(*args))
        else:
            future.set_exception(BrokenExecutor("a worker died"))
        return future


@pytest.mark.parametrize("asynchronous", [False, True])
def test_strings_that_are_lost_with_an_executor_stay_open(tmp_path: Path, asynchronous: bool) -> None:
    path = tmp_path / "a.seqopt"
    with campaign(path) as one:
        first, *others = one.suggest(3)
        named = ", ".join(repr(row.string) for row in others)
        with pytest.raises(ObjectiveError, match=f"oldest first: {named}"):
            one.run(score, budget=9, executor=_Broken(), workers=3, asynchronous=asynchronous)
        assert [row.name for row in one.store.open_suggestions()] == [row.name for row in others]
        assert one.store.counts().failures == 0
        one.withdraw([others[0].name])
        assert one.run(score, budget=9) == 8
    assert rows(path)[0] == (first.string, score([first.string])[0], first.name)
