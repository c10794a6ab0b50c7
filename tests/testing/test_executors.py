"""The conformance suite of executors: good ones pass it, and each broken one fails where it is broken."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from typing import Any

import pytest

from seqopt.testing.executors import ExecutorConformance

pytest_plugins = ["pytester"]


class TestThreads(ExecutorConformance):
    @pytest.fixture
    def executor(self) -> Iterator[Executor]:
        with ThreadPoolExecutor(2) as executor:
            yield executor


@pytest.fixture(scope="module")
def pool() -> Iterator[Executor]:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        yield executor


class _Borrowed(Executor):
    """A custom executor on workers that it shares with others."""

    def __init__(self, pool: Executor) -> None:
        self.pool = pool
        self.closed = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        if self.closed:
            raise RuntimeError("shut down")
        return self.pool.submit(fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self.closed = True


class TestProcesses(ExecutorConformance):
    @pytest.fixture
    def executor(self, pool: Executor) -> Executor:  # type: ignore[override]
        # Starting processes for each test would take most of the time.
        return _Borrowed(pool)


class _Here(Executor):
    """Makes every call at once; broken in whatever way a subclass says."""

    def __init__(self) -> None:
        self.closed = False
        self.calls = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        if self.closed:
            raise RuntimeError("shut down")
        self.calls += 1
        future = self.future()
        future.set_running_or_notify_cancel()
        try:
            future.set_result(self.called(fn, args, kwargs))
        except Exception as error:
            self.failed(future, error)
        return future

    def future(self) -> Future[Any]:
        return Future()

    def called(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return fn(*args, **kwargs)

    def failed(self, future: Future[Any], error: Exception) -> None:
        future.set_exception(error)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self.closed = True


class _DropsOptions(_Here):
    def called(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return fn(*args)


class _SwallowsExceptions(_Here):
    def failed(self, future: Future[Any], error: Exception) -> None:
        future.set_result(None)


class _ChangesExceptions(_Here):
    def failed(self, future: Future[Any], error: Exception) -> None:
        future.set_exception(RuntimeError(str(error)))


class _Caches(_Here):
    def __init__(self) -> None:
        super().__init__()
        self.known: dict[str, Any] = {}

    def called(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        name = repr((fn, args, kwargs))
        if name not in self.known:
            self.known[name] = fn(*args, **kwargs)
        return self.known[name]


class _MixesUp(_Here):
    """Answers with the result of the call before."""

    last: Any = None

    def called(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        last, self.last = self.last, fn(*args, **kwargs)
        return self.last if self.calls < 20 else last


class _LosesCalls(_Here):
    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future = super().submit(fn, *args, **kwargs)
        return Future() if self.calls == 30 else future


class _Reopens(_Here):
    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        pass


class _Lies(Future[Any]):
    def cancel(self) -> bool:
        return True


class _CancelsInWordsOnly(_Here):
    def future(self) -> Future[Any]:
        return _Lies()


class _OtherFutures(_Here):
    class Answer:
        def __init__(self, future: Future[Any]) -> None:
            self.result = future.result

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        return self.Answer(super().submit(fn, *args, **kwargs))


class _OneFuture(_Here):
    """Hands one future out for all calls."""

    shared: Future[Any] = Future()
    shared.set_result(((1,), {}))

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        super().submit(fn, *args, **kwargs)
        return self.shared


class _CannotBeSent(_Here):
    """Takes built-in values only, as one that writes JSON."""

    def called(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if any(map(callable, args)):
            raise TypeError("not serialisable")
        return fn(*args, **kwargs)


def failures(suite: Any, **fixtures: Callable[[], Any]) -> set[str]:
    """The tests of a suite that fail."""
    impatient = suite()
    impatient.patience = 0.2
    failed = set()
    for name, test in vars(suite).items():
        if not name.startswith("test_"):
            continue
        names = test.__code__.co_varnames[1 : test.__code__.co_argcount]
        values = {key: fixtures[key]() if key in fixtures else 3 for key in names}
        try:
            test(impatient, **values)
        # pytest.raises fails with an exception of its own, which is no Exception.
        except (Exception, pytest.fail.Exception):
            failed.add(name)
    return failed


BROKEN: list[tuple[Any, str]] = [
    (_DropsOptions, "gets_its_arguments"),
    (_SwallowsExceptions, "an_exception_travels"),
    (_ChangesExceptions, "an_exception_travels"),
    (_Caches, "equal_calls_are_made_separately"),
    (_MixesUp, "many_calls_bring_each_its_own_result"),
    (_LosesCalls, "many_calls_bring_each_its_own_result"),
    (_Reopens, "after_its_shutdown_it_refuses"),
    (_CancelsInWordsOnly, "a_call_that_is_cancelled"),
    (_OtherFutures, "one_of_concurrent_futures"),
    (_OneFuture, "many_calls_bring_each_its_own_result"),
    (_CannotBeSent, "the_calls_of_an_evaluator_can_be_sent"),
]


@pytest.mark.parametrize(("broken", "where"), BROKEN, ids=lambda part: getattr(part, "__name__", ""))
def test_a_broken_executor_fails(broken: type[Executor], where: str) -> None:
    failed = failures(ExecutorConformance, executor=broken)
    assert any(where in name for name in failed), failed


def test_each_test_of_the_suite_fails_for_some_executor() -> None:
    tests = {name for name in vars(ExecutorConformance) if name.startswith("test_")}
    assert tests == set().union(*(failures(ExecutorConformance, executor=broken) for broken, _ in BROKEN))


def test_an_executor_that_makes_every_call_at_once_passes() -> None:
    assert failures(ExecutorConformance, executor=_Here) == set()


def test_who_forgets_the_fixture_is_told(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        "from seqopt.testing.executors import ExecutorConformance\nclass TestMine(ExecutorConformance):\n    pass\n"
    )
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-k", "shutdown")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*NotImplementedError: override the fixture executor*"])


def test_the_library_itself_does_not_need_pytest() -> None:
    code = "import sys, seqopt, seqopt.evaluation, seqopt.testing; print('pytest' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
