"""Evaluating: one string's failure is that string's, and nothing that has finished is lost."""

from __future__ import annotations

import _thread
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqopt.errors import InputError, ObjectiveError
from seqopt.evaluation import Evaluation, Evaluator, evaluate
from seqopt.objectives import Objective, resolve_objective

SCRIPT = """
import os, time, pathlib
HERE = pathlib.Path(__file__).parent

def score(strings):
    (string,) = strings
    if string == "slow":
        (HERE / "slow.pid").write_text(str(os.getpid()))
        time.sleep(60)
    if string == "die":
        os._exit(7)
    if string == "raise":
        raise RuntimeError("no such\\n  luck")
    if string == "nan":
        return [float("nan")]
    return [float(len(string))]

def pid(strings):
    return [os.getpid()]
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "scores.py"
    path.write_text(SCRIPT)
    return path


@pytest.fixture
def score(script: Path) -> Objective:
    return resolve_objective(f"{script}:score")


@pytest.fixture
def release() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def lengths(strings: list[str]) -> list[float]:
    return [float(len(string)) for string in strings]


def _returning(value: Any) -> Callable[[list[str]], Any]:
    return lambda strings: value


@pytest.mark.parametrize(
    "value", [[2.5], (2.5,), np.array([2.5]), np.array([[2.5]]), [np.float32(2.5)], [np.array(2.5)]]
)
def test_one_number_in_any_wrapping_is_a_value(value: Any) -> None:
    (result,) = evaluate(_returning(value), ["x"])
    assert (result.value, result.status, result.error, result.ok) == (2.5, "ok", "", True)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "returned 0 values, expected 1 for 1 string"),
        ([1.0, 2.0], "returned 2 values, expected 1 for 1 string"),
        (np.ones((2, 3)), "returned 6 values"),
        ([float("nan")], "returned nan"),
        ([float("-inf")], "returned -inf"),
        (["3.5"], "'3.5', expected a number"),
        ("3.5", "'3.5', expected a number"),
        ([None], "None, expected a number"),
        (None, "returned None"),
        ([1 + 2j], "expected a number"),
        ([[1.0, 2.0]], "expected a number"),
        ({"x": 2.5}, "returned a dict: it is given a list of strings and must return a list"),
        ([{"x": 2.5}], "returned {'x': 2.5}, expected a number"),
    ],
)
def test_anything_else_is_a_failure_that_says_what_it_was(value: Any, message: str) -> None:
    (result,) = evaluate(_returning(value), ["x"])
    assert message in result.error
    assert (result.status, np.isnan(result.value), result.ok) == ("failed", True, False)


def _awkward(strings: list[str]) -> list[float]:
    if strings[0] == "raise":
        raise RuntimeError("no such\n  luck")
    if strings[0] == "exit":
        sys.exit("enough")
    if strings[0] == "empty":
        raise KeyError
    return lengths(strings)


def test_an_exception_fails_its_string_only() -> None:
    calls: list[Evaluation] = []
    results = evaluate(_awkward, ["a", "raise", "exit", "empty", "bb"], on_result=calls.append)
    assert [result.string for result in results] == ["a", "raise", "exit", "empty", "bb"]
    assert [result.status for result in results] == ["ok", "failed", "failed", "failed", "ok"]
    assert [result.error for result in results] == [
        "",
        "RuntimeError: no such luck",
        "SystemExit: enough",
        "KeyError",
        "",
    ]
    assert calls == results


def test_seconds_are_those_of_the_call() -> None:
    (result,) = evaluate(lambda strings: [time.sleep(0.05) or 1.0], ["x"])
    assert 0.04 < result.seconds < 5


def test_equal_strings_are_evaluated_separately_and_none_is_fine() -> None:
    assert [result.value for result in evaluate(lengths, ["aa", "aa"])] == [2.0, 2.0]
    assert evaluate(lengths, []) == []
    assert evaluate(lengths, [], timeout=1) == []


def _executors() -> list[Any]:
    return [
        pytest.param(lambda: ThreadPoolExecutor(2), id="threads"),
        pytest.param(lambda: ProcessPoolExecutor(2, mp_context=get_context("spawn")), id="processes"),
        pytest.param(None, id="own processes"),
    ]


@pytest.mark.parametrize("make", _executors())
def test_results_are_the_same_wherever_they_are_computed(make: Callable[[], Executor] | None, score: Objective) -> None:
    strings = ["a", "raise", "bb", "nan", "ccc", "a"]
    expected = [(r.string, r.value, r.status, r.error) for r in evaluate(score, strings)]
    executor = make() if make is not None else None
    seen: list[Evaluation] = []
    try:
        found = evaluate(score, strings, executor=executor, workers=2, timeout=30, on_result=seen.append)
    finally:
        if executor is not None:
            executor.shutdown()
    assert str([(r.string, r.value, r.status, r.error) for r in found]) == str(expected)
    assert sorted(map(str, seen)) == sorted(map(str, found))


@pytest.mark.slow
def test_a_worker_is_killed_at_the_time_out_or_dies_and_the_others_go_on(score: Objective, script: Path) -> None:
    order: list[str] = []
    with Evaluator(score, workers=2, timeout=2.0) as evaluator:
        results = evaluator.evaluate(["a", "slow", "die", "bb"], on_result=lambda result: order.append(result.string))
        assert [result.status for result in results] == ["ok", "failed", "failed", "ok"]
        assert results[1].error == "timed out after 2 s"
        assert results[1].seconds == pytest.approx(2.0)
        assert results[2].error == "the worker process died (exit code 7)"
        # The other worker may be slow to start, and what comes behind "slow" have to wait for it.
        assert order.index("a") < order.index("slow")
        pid = int((script.parent / "slow.pid").read_text())
        for _ in range(100):
            if not _alive(pid):
                break
            time.sleep(0.05)
        assert not _alive(pid)
        assert [result.value for result in evaluator.evaluate(["ccc", "d"])] == [3.0, 1.0]


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_the_processes_are_used_again_and_ended(script: Path) -> None:
    objective = resolve_objective(f"{script}:pid")
    with Evaluator(objective, timeout=30) as evaluator:
        (first,), (second,) = evaluator.evaluate(["a"]), evaluator.evaluate(["b"])
    assert first.value == second.value != os.getpid()
    assert not _alive(int(first.value))
    evaluator.close()


@pytest.mark.parametrize("noticed", [False, True])
def test_a_pool_that_gave_up_while_idle_is_replaced(noticed: bool, script: Path) -> None:
    objective = resolve_objective(f"{script}:pid")
    with Evaluator(objective, timeout=30) as evaluator:
        (first,) = evaluator.evaluate(["a"])
        assert evaluator._processes is not None
        pool = evaluator._processes._pool
        os.kill(int(first.value), signal.SIGKILL)
        while noticed and pool.active:
            time.sleep(0.01)
        (second,) = evaluator.evaluate(["b"])
        assert second.ok
        assert second.value not in (first.value, os.getpid())


def test_a_function_that_cannot_be_sent_is_timed_out_in_a_thread(release: threading.Event) -> None:
    def local(strings: list[str]) -> list[float]:
        if strings == ["slow"]:
            release.wait(60)
        return [float(os.getpid())]

    slow, *others = evaluate(local, ["slow", "a", "b"], timeout=0.3)
    assert slow.error == "timed out after 0.3 s"
    assert [result.value for result in others] == [os.getpid()] * 2


def test_threads_run_as_many_calls_at_once_as_there_are_workers() -> None:
    meeting = threading.Barrier(3)

    def local(strings: list[str]) -> list[float]:
        meeting.wait(20)
        return [1.0]

    assert all(result.ok for result in evaluate(local, ["a", "b", "c"], workers=3))


def test_a_foreign_executor_is_not_waited_for_at_the_time_out(release: threading.Event) -> None:
    def local(strings: list[str]) -> list[float]:
        if strings == ["slow"]:
            release.wait(60)
        return lengths(strings)

    with ThreadPoolExecutor(2) as executor:
        results = evaluate(local, ["slow", *["a"] * 5, "bb"], executor=executor, timeout=0.3)
        assert results[0].error == "timed out after 0.3 s"
        assert [result.value for result in results[1:]] == [1.0] * 5 + [2.0]
        # The time that others have waited for their turn does not count.
        release.set()
        brief = evaluate(lambda strings: [time.sleep(0.2) or 1.0], ["a"] * 6, executor=executor, timeout=1.0)
        assert all(result.ok for result in brief)


def test_calls_behind_an_endless_one_fail_in_the_end(release: threading.Event) -> None:
    def local(strings: list[str]) -> list[float]:
        release.wait(60)
        return [1.0]

    with ThreadPoolExecutor(1) as executor:
        results = evaluate(local, ["a", "b", "c"], executor=executor, timeout=0.2)
        release.set()
    assert results[0].error == "timed out after 0.2 s"
    assert all("held by calls that have timed out" in result.error for result in results[1:])


class _Early(ThreadPoolExecutor):
    """One thread; reports all calls as running, as a `ProcessPoolExecutor` does some that wait behind others."""

    def __init__(self) -> None:
        super().__init__(1)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        super().submit(lambda: future.set_result(fn(*args)))
        return future


def test_waiting_behind_others_is_not_part_of_the_time_of_a_call() -> None:
    with _Early() as executor:
        found = evaluate(lambda strings: [time.sleep(0.15) or 1.0], ["a"] * 6, executor=executor, timeout=0.6)
    assert [result.error for result in found] == [""] * 6


def test_what_is_held_up_by_a_call_of_an_earlier_batch_has_not_timed_out(release: threading.Event) -> None:
    def local(strings: list[str]) -> list[float]:
        if strings == ["slow"]:
            release.wait(60)
        return lengths(strings)

    with _Early() as executor, Evaluator(local, executor=executor, timeout=0.3) as evaluator:
        assert evaluator.evaluate(["slow"])[0].error == "timed out after 0.3 s"
        assert "held by calls that have timed out" in evaluator.evaluate(["a"])[0].error
        release.set()
        assert evaluator.evaluate(["bb"])[0].ok


def test_what_comes_late_has_its_time_all_the_same() -> None:
    class Silent(ThreadPoolExecutor):
        """Never says that a call is running."""

        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            future: Future[Any] = Future()
            super().submit(lambda: time.sleep(0.15) or future.cancelled() or future.set_result(fn(*args)))
            return future

    seen: list[Evaluation] = []
    strings = ["a"]

    def supply(free: int) -> list[str]:
        if not strings:
            return []
        time.sleep(0.6)  # as if a model was fitted
        return [strings.pop()]

    with Silent(1) as executor, Evaluator(lengths, executor=executor, workers=2, timeout=0.5) as evaluator:
        evaluator.keep_busy(supply, on_result=seen.append)
    assert [result.error for result in seen] == [""]


class _Breaking(Executor):
    """Takes and makes a number of calls, then breaks; the calls of ``lost`` go down with it."""

    def __init__(self, calls: int, lost: tuple[str, ...] = (), error: Exception | None = None) -> None:
        self.calls = calls
        self.lost = lost
        self.error = BrokenExecutor("out of order") if error is None else error

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        if not self.calls:
            raise self.error
        self.calls -= 1
        future: Future[Any] = Future()
        if args[-1][0] in self.lost:
            future.set_exception(BrokenExecutor("a worker died"))
        else:
            future.set_result(fn(*args))
        return future


def test_a_closed_executor_is_an_error_and_not_the_failure_of_any_string() -> None:
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    seen: list[Evaluation] = []
    with pytest.raises(ObjectiveError, match=r"takes no more evaluations .*'a' was not evaluated"):
        evaluate(lengths, ["a", "b"], executor=executor, on_result=seen.append)
    assert seen == []


@pytest.mark.parametrize("fed", [False, True])
def test_what_was_taken_before_an_executor_refuses_is_told(fed: bool) -> None:
    seen: list[Evaluation] = []
    with pytest.raises(ObjectiveError, match=r"out of order\): 'ccc' was not evaluated, nor 1 more\."):
        _evaluate(fed, lengths, ["a", "bb", "ccc", "d"], _Breaking(2), 4, seen)
    assert [(result.string, result.value) for result in seen] == [("a", 1.0), ("bb", 2.0)]


@pytest.mark.parametrize("fed", [False, True])
def test_whatever_an_executor_refuses_with_what_has_finished_is_told(fed: bool) -> None:
    seen: list[Evaluation] = []
    executor = _Breaking(2, error=BlockingIOError(11, "Resource temporarily unavailable"))
    with pytest.raises(ObjectiveError, match=r"temporarily unavailable\): 'ccc' was not evaluated\."):
        _evaluate(fed, lengths, ["a", "bb", "ccc"], executor, 4, seen)
    assert [result.string for result in seen] == ["a", "bb"]


@pytest.mark.parametrize("fed", [False, True])
def test_what_is_lost_and_what_is_refused_are_both_told(fed: bool) -> None:
    seen: list[Evaluation] = []
    with pytest.raises(
        ObjectiveError, match=r"first: 'bb'\. Nothing .* for them\. 'ccc' was not evaluated, nor 1 more\. Make"
    ):
        _evaluate(fed, lengths, ["a", "bb", "ccc", "d"], _Breaking(2, ("bb",)), 4, seen)
    assert [result.string for result in seen] == ["a"]


@pytest.mark.parametrize("fed", [False, True])
def test_what_is_lost_with_an_executor_is_named_and_has_not_failed(fed: bool) -> None:
    seen: list[Evaluation] = []
    with pytest.raises(
        ObjectiveError, match=r"worker died\) while .* oldest first: 'bb', 'ddd'\. Nothing was recorded"
    ):
        _evaluate(fed, lengths, ["a", "bb", "cc", "ddd", "e"], _Breaking(9, ("ddd", "bb")), 5, seen)
    assert [result.string for result in seen] == ["a", "cc", "e"]
    assert all(result.ok for result in seen)


class _Counting(ThreadPoolExecutor):
    """One thread; ``full`` is set once a number of calls have been taken."""

    def __init__(self, calls: int) -> None:
        super().__init__(1)
        self.calls = calls
        self.full = threading.Event()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future = super().submit(fn, *args, **kwargs)
        self.calls -= 1
        if not self.calls:
            self.full.set()
        return future


@pytest.mark.parametrize("fed", [False, True])
def test_what_an_executor_cancels_is_named_and_has_not_failed(fed: bool) -> None:
    executor = _Counting(3)
    seen: list[Evaluation] = []

    def last_of_all(strings: list[str]) -> list[float]:
        # Otherwise the thread may be ahead of the submissions, and the next one is refused.
        assert executor.full.wait(60)
        executor.shutdown(wait=False, cancel_futures=True)
        return [1.0]

    with pytest.raises(ObjectiveError, match=r"cancelled .* oldest first: 'bb', 'ccc'\. Nothing was recorded"):
        _evaluate(fed, last_of_all, ["a", "bb", "ccc"], executor, 3, seen)
    assert [(result.string, result.value) for result in seen] == [("a", 1.0)]


def test_what_an_executor_cancels_while_a_result_is_told_has_not_failed() -> None:
    executor = ThreadPoolExecutor(1)
    seen: list[Evaluation] = []

    def told(result: Evaluation) -> None:
        seen.append(result)
        executor.shutdown(wait=False, cancel_futures=True)
        time.sleep(0.3)

    with pytest.raises(ObjectiveError, match=r"cancelled .* oldest first: 'bb', 'ccc'\."):
        evaluate(
            lambda strings: time.sleep(0.6) or [1.0], ["a", "bb", "ccc"], executor=executor, timeout=0.2, on_result=told
        )
    assert [result.error for result in seen] == ["timed out after 0.2 s"]


def test_of_many_lost_strings_the_oldest_are_named() -> None:
    strings = [f"s{number}" for number in range(50)]
    with pytest.raises(ObjectiveError, match=r"oldest first: 's0', 's1', .*'s19' and 30 more\."):
        evaluate(lengths, strings, executor=_Breaking(50, tuple(strings)))


@pytest.mark.parametrize("fed", [False, True])
def test_a_string_that_kills_its_worker_process_is_named_and_no_other_fails(fed: bool, score: Objective) -> None:
    seen: list[Evaluation] = []
    with (
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor,
        pytest.raises(ObjectiveError, match=r"the executor broke .* oldest first: 'die'"),
    ):
        _evaluate(fed, score, ["a", "bb", "die", "ccc"], executor, 2, seen)
    assert [(result.string, result.value) for result in seen] == [("a", 1.0), ("bb", 2.0)]


def _evaluate(
    fed: bool, objective: Any, strings: list[str], executor: Executor, workers: int, seen: list[Evaluation]
) -> None:
    with Evaluator(objective, executor=executor, workers=workers) as evaluator:
        if fed:
            evaluator.keep_busy(feed(strings, []), on_result=seen.append)
        else:
            evaluator.evaluate(strings, on_result=seen.append)


def test_what_cannot_be_sent_to_an_executor_is_a_failure() -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes:
        (result,) = evaluate(lambda strings: [1.0], ["a"], executor=processes)
    assert "pickle" in result.error.lower()


def _interrupting(strings: list[str]) -> list[float]:
    if strings == ["stop"]:
        raise KeyboardInterrupt
    return lengths(strings)


def test_an_interruption_passes_after_what_has_finished() -> None:
    seen: list[Evaluation] = []
    with pytest.raises(KeyboardInterrupt):
        evaluate(_interrupting, ["a", "bb", "stop", "ccc"], on_result=seen.append)
    assert [result.value for result in seen] == [1.0, 2.0]


def test_an_interruption_does_not_wait_for_what_is_running(release: threading.Event) -> None:
    finished = threading.Barrier(2)

    def local(strings: list[str]) -> list[float]:
        if strings == ["stop"]:
            finished.wait(20)
            _thread.interrupt_main()
            release.wait(60)
        elif strings == ["bb"]:
            finished.wait(20)
        return lengths(strings)

    seen: list[Evaluation] = []
    executor = ThreadPoolExecutor(3)
    with pytest.raises(KeyboardInterrupt):
        evaluate(local, ["a", "bb", "stop", "queued", "queued", "queued"], executor=executor, on_result=seen.append)
    assert not release.is_set()
    assert "a" in {result.string for result in seen}
    assert "stop" not in {result.string for result in seen}
    release.set()
    executor.shutdown()


def test_an_error_of_the_listener_ends_the_batch(score: Objective) -> None:
    def listen(result: Evaluation) -> None:
        raise LookupError(result.string)

    with pytest.raises(LookupError, match="a"), Evaluator(score, workers=2) as evaluator:
        evaluator.evaluate(["a", "slow"], on_result=listen)


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(InputError, match="workers must be at least 1"):
        Evaluator(lengths, workers=0)
    with pytest.raises(InputError, match="timeout must be a positive"):
        Evaluator(lengths, timeout=0)
    with pytest.raises(InputError, match="single string"):
        evaluate(lengths, "CCO")


def test_a_script_without_a_guard_is_not_run_twice(tmp_path: Path) -> None:
    path = tmp_path / "unguarded.py"
    path.write_text(
        "from seqopt.evaluation import evaluate\n"
        "def f(strings):\n"
        "    return [float(len(strings[0]))]\n"
        "print([result.value for result in evaluate(f, ['a', 'bb'], timeout=30)], flush=True)\n"
    )
    root = Path(sys.modules["seqopt"].__file__ or "").resolve().parents[1]
    done = subprocess.run([sys.executable, path], env={"PYTHONPATH": str(root)}, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["[1.0, 2.0]"], done.stderr
    assert "RuntimeWarning" in done.stderr
    assert '__name__ == "__main__"' in done.stderr


def feed(strings: list[str], asked: list[int]) -> Callable[[int], list[str]]:
    """Gives the strings one after the other, and notes how many workers were free."""

    def supply(free: int) -> list[str]:
        asked.append(free)
        return [strings.pop(0) for _ in range(min(free, len(strings)))]

    return supply


@pytest.mark.parametrize("make", _executors())
def test_free_workers_are_fed_wherever_they_are(make: Callable[[], Executor] | None, score: Objective) -> None:
    strings = ["a", "raise", "bb", "nan", "ccc", "a"]
    expected = sorted(str((r.string, r.value, r.status, r.error)) for r in evaluate(score, strings))
    executor, seen, asked = make() if make is not None else None, list[Evaluation](), list[int]()
    try:
        with Evaluator(score, executor=executor, workers=2, timeout=30) as evaluator:
            evaluator.keep_busy(feed(strings, asked), on_result=seen.append)
    finally:
        if executor is not None:
            executor.shutdown()
    assert sorted(str((r.string, r.value, r.status, r.error)) for r in seen) == expected
    assert asked[0] == 2
    assert set(asked) <= {1, 2}


def test_a_worker_is_fed_as_soon_as_it_is_free(release: threading.Event) -> None:
    def local(strings: list[str]) -> list[float]:
        if strings == ["slow"]:
            assert release.wait(60)
        if strings == ["last"]:
            release.set()  # which comes only if nobody waits for the slow one
        return lengths(strings)

    order: list[str] = []
    with Evaluator(local, workers=2) as evaluator:
        evaluator.keep_busy(
            feed(["slow", "a", "b", "c", "last"], []), on_result=lambda result: order.append(result.string)
        )
    assert sorted(order) == ["a", "b", "c", "last", "slow"]
    assert order[:3] == ["a", "b", "c"]


def test_a_worker_that_is_given_nothing_is_asked_again_after_the_next_result() -> None:
    asked: list[int] = []
    answers = [["a", "b"], [], ["c"], [], ["d"], []]

    def supply(free: int) -> list[str]:
        asked.append(free)
        return answers[len(asked) - 1][:free] if len(asked) <= len(answers) else []

    with ThreadPoolExecutor(2) as executor, Evaluator(lengths, executor=executor, workers=3) as evaluator:
        seen: list[str] = []
        evaluator.keep_busy(supply, on_result=lambda result: seen.append(result.string))
    assert {"a", "b"} <= set(seen)
    assert len(asked) <= 2 + 2 * len(seen)


def test_calls_that_have_ended_are_not_kept() -> None:
    strings = ["a"] * 40
    kept: list[int] = []

    def supply(free: int) -> list[str]:
        if not strings:
            kept.append(sum(type(item) is Future for item in gc.get_objects()))
        return [strings.pop() for _ in range(min(free, len(strings)))]

    gc.collect()
    before = sum(type(item) is Future for item in gc.get_objects())
    with Evaluator(lambda strings: [1.0], workers=2) as evaluator:
        evaluator.keep_busy(supply)
    assert max(kept) - before < 10


def test_calls_that_hang_fail_at_the_time_out_and_others_are_made(release: threading.Event) -> None:
    def local(strings: list[str]) -> list[float]:
        if strings[0].startswith("slow"):
            release.wait(60)
        return lengths(strings)

    results: dict[str, Evaluation] = {}
    with ThreadPoolExecutor(2) as executor, Evaluator(local, executor=executor, workers=2, timeout=0.3) as evaluator:
        evaluator.keep_busy(
            feed(["slow", "a", "bb", "ccc"], []), on_result=lambda result: results.update({result.string: result})
        )
        release.set()
    assert results["slow"].error == "timed out after 0.3 s"
    assert [results[string].value for string in ("a", "bb", "ccc")] == [1.0, 2.0, 3.0]


def test_an_executor_that_takes_no_more_ends_the_feeding() -> None:
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    with pytest.raises(ObjectiveError, match=r"takes no more evaluations .*'a' was not evaluated"):
        Evaluator(lengths, executor=executor, workers=2).keep_busy(feed(["a", "b"], []))


def test_an_interruption_of_the_feeding_passes_after_what_has_finished() -> None:
    seen: list[Evaluation] = []
    for workers in (1, 2):
        with pytest.raises(KeyboardInterrupt), Evaluator(_interrupting, workers=workers) as evaluator:
            evaluator.keep_busy(feed(["a", "stop", "ccc"], []), on_result=seen.append)
    assert "a" in {result.string for result in seen}
    assert "stop" not in {result.string for result in seen}


@pytest.mark.parametrize("returned", [3, 2.5, np.float64(1.0), np.array(4.0)])
def test_a_number_for_a_whole_list_is_a_failure(returned: object) -> None:
    (evaluation,) = evaluate(lambda strings: returned, ["CCO"])  # type: ignore[arg-type, return-value]
    assert evaluation.status == "failed"
    assert "must return a list" in evaluation.error
