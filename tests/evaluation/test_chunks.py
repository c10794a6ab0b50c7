"""Objectives that score a list at a time: one string's failure is that string's all the same."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seqopt
from seqopt.campaign import Campaign
from seqopt.errors import InputError, ObjectiveError
from seqopt.evaluation import Evaluation, Evaluator, evaluate
from seqopt.evaluation.batch import cut
from seqopt.objectives import Objective, PatternCount, resolve_objective
from seqopt.spaces import StringSpace

SCRIPT = """
import os, pathlib, time
HERE = pathlib.Path(__file__).parent

def score(strings):
    with open(HERE / "calls.txt", "a") as file:
        print(*strings, file=file)
    if "slow" in strings:
        time.sleep(60)
    if "pause" in strings:
        time.sleep(0.5)
    if "die" in strings:
        os._exit(7)
    if "raise" in strings:
        raise RuntimeError("no such luck")
    return [float("nan") if s == "nan" else None if s == "none" else len(s) for s in strings if s != "drop"]
"""

STRINGS = ["a", "bb", "raise", "nan", "dddd", "none", "drop", "ee", "a"]
ALONE = {
    "raise": "RuntimeError: no such luck",
    "nan": "the objective returned nan",
    "none": "the objective returned None, expected a number",
    "drop": "the objective returned 0 values, expected 1 for 1 string",
}


class Noting:
    """Scores a string by its length, refuses lists with a bad one, and notes what it is called with."""

    def __init__(self, bad: Sequence[str] = ()) -> None:
        self.bad = set(bad)
        self.calls: list[list[str]] = []
        # Keeps it in this process, where its notes can be read.
        self.lock = threading.Lock()

    def __call__(self, strings: list[str]) -> list[float]:
        with self.lock:
            self.calls.append(strings)
        if self.bad & set(strings):
            raise RuntimeError("bad")
        return [float(len(string)) for string in strings]


@given(st.integers(0, 60), st.integers(1, 20), st.integers(1, 9))
def test_chunks_hold_everything_once_and_keep_all_workers_busy(n: int, chunk_size: int, workers: int) -> None:
    chunks = cut(range(n), chunk_size, workers)
    assert [position for chunk in chunks for position in chunk] == list(range(n))
    assert all(1 <= len(chunk) <= chunk_size for chunk in chunks)
    # No worker has to do two strings in a row while another one does none.
    assert max(map(len, chunks), default=0) <= -(-n // workers)
    assert len({len(chunk) for chunk in chunks[:-1]}) <= 1


def test_one_string_is_the_default_the_objective_may_say_otherwise_and_the_user_has_the_last_word() -> None:
    score = Noting()
    evaluate(score, list("abcde"))
    assert score.calls == [["a"], ["b"], ["c"], ["d"], ["e"]]
    score.calls = []
    score.chunk_size = 3  # type: ignore[attr-defined]
    evaluate(score, list("abcde"))
    assert score.calls == [["a", "b", "c"], ["d", "e"]]
    score.calls = []
    evaluate(score, list("abcde"), chunk_size=4)
    assert score.calls == [["a", "b", "c", "d"], ["e"]]


def test_workers_share_a_batch() -> None:
    score = Noting()
    evaluate(score, list("abcde"), chunk_size=100, workers=2)
    assert sorted(score.calls) == [["a", "b", "c"], ["d", "e"]]
    score.calls = []
    with ThreadPoolExecutor(3) as executor:
        evaluate(score, list("abcde"), chunk_size=100, executor=executor)
    assert sorted(score.calls) == [["a", "b"], ["c", "d"], ["e"]]


def _executors() -> list[Any]:
    return [
        pytest.param(lambda: ThreadPoolExecutor(2), 1, None, id="threads of an executor"),
        pytest.param(lambda: ProcessPoolExecutor(2, mp_context=get_context("spawn")), 1, None, id="processes"),
        pytest.param(None, 1, None, id="this thread"),
        pytest.param(None, 2, 30.0, id="own processes"),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("chunk_size", [1, 4, 100])
@pytest.mark.parametrize(("make", "workers", "timeout"), _executors())
def test_whatever_is_wrong_with_a_string_of_a_chunk_harms_no_other(
    make: Callable[[], Executor] | None, workers: int, timeout: float | None, chunk_size: int, tmp_path: Path
) -> None:
    (tmp_path / "scores.py").write_text(SCRIPT)
    # The function itself, without the array that an Objective makes of its list.
    score = resolve_objective(f"{tmp_path}/scores.py:score").function
    seen: list[Evaluation] = []
    executor = make() if make is not None else None
    try:
        found = evaluate(
            score,
            STRINGS,
            executor=executor,
            workers=workers,
            timeout=timeout,
            chunk_size=chunk_size,
            on_result=seen.append,
        )
    finally:
        if executor is not None:
            executor.shutdown()
    assert [result.string for result in found] == STRINGS
    assert {result.string: result.error for result in found if not result.ok} == ALONE
    assert [result.value for result in found if result.ok] == [1.0, 2.0, 4.0, 2.0, 1.0]
    assert sorted(map(str, seen)) == sorted(map(str, found))


def test_values_of_a_chunk_are_judged_one_by_one_without_another_call() -> None:
    calls: list[list[str]] = []

    def score(strings: list[str]) -> list[object]:
        calls.append(strings)
        return [1.0, None, float("inf"), "2.5", np.array(3.0), -0.0]

    results = evaluate(score, list("abcdef"), chunk_size=6)  # type: ignore[arg-type]
    assert [result.ok for result in results] == [True, False, False, False, True, True]
    assert "None, expected a number" in results[1].error
    assert "returned inf" in results[2].error
    assert "'2.5', expected a number" in results[3].error
    assert str(results[5].value) == "0.0"
    assert len(calls) == 1


@pytest.mark.parametrize("shape", [(3,), (3, 1), (1, 3)])
def test_a_matrix_with_a_row_for_each_string_is_taken(shape: tuple[int, ...]) -> None:
    values = np.array([1.0, 2.0, 3.0]).reshape(shape)
    results = evaluate(lambda strings: values, list("abc"), chunk_size=3)
    assert [result.value for result in results] == [1.0, 2.0, 3.0]


def test_a_function_of_one_string_is_told_so_whatever_the_chunks() -> None:
    for chunk_size in (1, 3):
        for result in evaluate(len, list("abc"), chunk_size=chunk_size):  # type: ignore[arg-type]
            assert "is given a list of strings and must return a list" in result.error
        for result in evaluate(lambda s: s.count("C") / s.upper(), list("abc"), chunk_size=chunk_size):  # type: ignore
            assert "'list' object has no attribute 'upper' (is this a function of one string?" in result.error
    from rdkit.Chem import MolFromSmiles

    (result,) = evaluate(lambda smiles: MolFromSmiles(smiles), ["C"])  # type: ignore
    assert "is this a function of one string?" in result.error
    (result,) = evaluate(lambda strings: 1 + "a", ["C"])  # type: ignore
    assert "is this a function" not in result.error


def test_an_objective_names_the_string_for_which_it_returned_none() -> None:
    objective = Objective("mine", lambda strings: [None if s == "bad" else 1.0 for s in strings], chunk_size=4)  # type: ignore
    results = evaluate(objective, ["a", "bad", "b"])
    assert [result.error for result in results] == [
        "",
        "TypeError: mine returned None for 'bad', expected a number",
        "",
    ]
    text = Objective("mine", lambda strings: ["3.5" for _ in strings])
    with pytest.raises(TypeError, match=r"mine returned '3.5' for 'a', expected a number"):
        text(["a"])
    nan = Objective("mine", lambda strings: np.array([1, float("nan")]))
    assert np.isnan(nan(["a", "b"])[1])


def test_the_seconds_of_a_chunk_are_shared_evenly() -> None:
    begun = time.perf_counter()
    results = evaluate(lambda strings: time.sleep(0.08) or [1.0] * len(strings), list("abcd"), chunk_size=4)
    elapsed = time.perf_counter() - begun
    assert len({result.seconds for result in results}) == 1
    assert 0.08 <= sum(result.seconds for result in results) <= elapsed


@pytest.mark.slow
def test_a_chunk_has_as_many_time_outs_as_strings_and_then_each_string_has_its_own(tmp_path: Path) -> None:
    (tmp_path / "scores.py").write_text(SCRIPT)
    score = resolve_objective(f"{tmp_path}/scores.py:score")
    with Evaluator(score, timeout=0.4, chunk_size=3) as evaluator:
        assert all(result.ok for result in evaluator.evaluate(["pause", "a"]))
        results = evaluator.evaluate(["a", "slow", "die"])
    assert [result.status for result in results] == ["ok", "failed", "failed"]
    assert results[1].error == "timed out after 0.4 s"
    assert results[1].seconds == pytest.approx(0.4)
    assert results[2].error == "the worker process died (exit code 7)"
    calls = (tmp_path / "calls.txt").read_text().splitlines()
    assert calls == ["pause a", "a slow die", "a", "slow", "die"]


@pytest.fixture
def release() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


@pytest.mark.parametrize("foreign", [False, True])
def test_in_threads_a_chunk_may_take_longer_than_one_string_and_no_longer_than_all(
    foreign: bool, release: threading.Event
) -> None:
    def score(strings: list[str]) -> list[float]:
        if "slow" in strings:
            release.wait(60)
        time.sleep(0.3 if len(strings) > 1 else 0)
        return [float(len(strings))] * len(strings)

    executor = ThreadPoolExecutor(4) if foreign else None
    options: dict[str, Any] = {"timeout": 0.2, "chunk_size": 3, "executor": executor}
    with Evaluator(score, **options) as evaluator:
        strings = list("abc") if not foreign else list("abcdefghijkl")
        assert {result.value for result in evaluator.evaluate(strings)} == {3.0}
        results = evaluator.evaluate(["slow", "b", "c"] if not foreign else ["slow", *"bcdefghijkl"])
    assert [result.error for result in results if not result.ok] == ["timed out after 0.2 s"]
    assert [result.value for result in results[1:3]] == [1.0, 1.0]
    release.set()


def test_what_a_chunk_has_brought_is_told_when_its_telling_is_interrupted() -> None:
    for executor in (None, ThreadPoolExecutor(1)):
        seen: list[str] = []

        def listen(result: Evaluation, seen: list[str] = seen) -> None:
            seen.append(result.string)
            if result.string == "b":
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            evaluate(Noting(), list("abcdef"), chunk_size=3, executor=executor, on_result=listen)
        assert seen[:3] == ["a", "b", "c"]


def test_an_interrupted_chunk_is_not_told_and_what_came_before_is() -> None:
    def score(strings: list[str]) -> list[float]:
        if "stop" in strings:
            raise KeyboardInterrupt
        return [1.0] * len(strings)

    seen: list[Evaluation] = []
    with pytest.raises(KeyboardInterrupt):
        evaluate(score, ["a", "b", "c", "stop", "d"], chunk_size=2, on_result=seen.append)
    assert [result.string for result in seen] == ["a", "b"]


def test_an_error_of_the_listener_ends_the_batch_within_a_chunk() -> None:
    seen: list[str] = []

    def listen(result: Evaluation) -> None:
        seen.append(result.string)
        raise LookupError

    for executor in (None, ThreadPoolExecutor(1)):
        with pytest.raises(LookupError):
            evaluate(Noting(), list("abc"), chunk_size=3, executor=executor, on_result=listen)
    assert seen == ["a", "a"]


class _Breaking(Executor):
    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        if "bad" in args[-1]:
            future.set_exception(BrokenExecutor("a worker died"))
        else:
            future.set_result(fn(*args))
        return future


def test_all_strings_of_a_chunk_that_went_down_with_an_executor_are_named() -> None:
    seen: list[Evaluation] = []
    with pytest.raises(ObjectiveError, match=r"oldest first: 'c', 'bad'\. Nothing was recorded for them\. Make"):
        evaluate(Noting(), ["a", "b", "c", "bad"], chunk_size=2, executor=_Breaking(), on_result=seen.append)
    assert [result.string for result in seen] == ["a", "b"]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_free_worker_is_fed_a_chunk_only_if_the_user_says_so(workers: int) -> None:
    for chunk_size, at_a_time in ((3, 3), (None, 1)):
        score = Noting()
        score.chunk_size = 5  # type: ignore[attr-defined]
        strings, asked = list("abcdefgh"), list[int]()

        def supply(free: int, strings: list[str] = strings, asked: list[int] = asked) -> list[str]:
            asked.append(free)
            return [strings.pop(0) for _ in range(min(free, len(strings)))]

        with Evaluator(score, workers=workers, chunk_size=chunk_size) as evaluator:
            evaluator.keep_busy(supply)
        assert asked[0] == workers * at_a_time
        assert sorted(string for call in score.calls for string in call) == list("abcdefgh")
        assert max(map(len, score.calls)) == at_a_time


def test_a_run_is_the_same_whatever_the_chunks() -> None:
    pool = [f"{a}{b}{c}" for a in "ABC" for b in "ABC" for c in "ABC"]
    runs = []
    for chunk_size in (None, 1, 4):
        score = Noting(bad=["ABC", "BCA", "CCC", "AAB"])
        options: dict[str, Any] = {"initial": 8, "budget": 8, "batch_size": 4, "acquisition": "random", "seed": 2}
        result = seqopt.maximize(score, pool, chunk_size=chunk_size, **options)
        runs.append(result.evaluations.drop(columns="seconds").to_csv())
        assert max(map(len, score.calls)) == (chunk_size or 1)
    assert runs[0] == runs[1] == runs[2]


def test_a_campaign_is_the_same_whatever_the_chunks(tmp_path: Path) -> None:
    runs = []
    for chunk_size in (None, 2):
        score = Noting()
        path = tmp_path / f"{chunk_size}.seqopt"
        with Campaign.create(path, StringSpace("AB", 6), objective="a", batch_size=4, acquisition="random") as campaign:
            assert campaign.run(score, budget=10, chunk_size=chunk_size) == 10
            runs.append([(row.string, row.value) for row in campaign.store.measurements()])
        assert max(map(len, score.calls)) == (chunk_size or 1)
    assert runs[0] == runs[1]


def test_built_in_objectives_that_count_many_at_once_take_many_at_once() -> None:
    assert resolve_objective("pattern_count:101").chunk_size == PatternCount.chunk_size > 1
    assert resolve_objective("qed").chunk_size == 1


def test_a_function_of_a_file_says_how_many_it_takes(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def f(strings):\n    return [1.0] * len(strings)\nf.chunk_size = 16\n")
    assert resolve_objective(f"{tmp_path}/mine.py:f").chunk_size == 16


def test_wrong_sizes_are_refused() -> None:
    for wrong in (0, 1.5, "3"):
        with pytest.raises(InputError, match=r"chunk_size is .*; expected how many strings"):
            Evaluator(len, chunk_size=wrong)  # type: ignore[arg-type]
        score = Noting()
        score.chunk_size = wrong  # type: ignore[attr-defined]
        with pytest.raises(InputError, match=r"chunk_size of the objective is .*; expected how many strings"):
            Evaluator(score)
