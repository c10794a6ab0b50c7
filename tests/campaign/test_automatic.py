"""Campaigns whose suggestions a function evaluates."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from seqopt.campaign import Campaign, CampaignError, CampaignStore
from seqopt.campaign.filters import Pattern
from seqopt.campaign.locks import RunLock
from seqopt.errors import InputError, ObjectiveError
from seqopt.spaces import StringSpace

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
        "the value is 1e+300",
        "the transform log10 needs positive values, got -1",
    }


def test_what_never_succeeds_stops(tmp_path: Path) -> None:
    with campaign(tmp_path / "a.seqopt") as hopeless:
        with pytest.raises(ObjectiveError, match="all 3 evaluations of the campaign failed"):
            hopeless.run(lambda strings: [float("nan")], budget=9)
        assert hopeless.store.counts().failures == 3


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
        with pytest.raises(InputError, match="mfe is for dna or rnas"):
            one.run("mfe", budget=3)
        with RunLock(path), pytest.raises(CampaignError, match="another process is running"):
            one.run(score, budget=3)
        assert one.run(score, budget=1) == 1


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
