"""What `seqopt.evaluation.Evaluator` relies on in an executor."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from concurrent.futures import CancelledError, Executor, Future, wait
from typing import TypeVar

import pytest

from seqopt.evaluation import Evaluation, Evaluator, call

T = TypeVar("T")


class ExecutorConformance:
    """Tests of a `concurrent.futures.Executor`: inherit them, and override the fixture ``executor``.

    Every test gets an executor of its own, and may shut it down. The functions that are submitted are those of this
    module: where calls are made on other machines, seqopt must be installed there.

    Attributes:
        patience: Seconds after which a call that brings no result counts as lost; more for a cluster that is slow to
            start.

    Example:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> class TestThreads(ExecutorConformance):
        ...     @pytest.fixture
        ...     def executor(self) -> Iterator[Executor]:
        ...         with ThreadPoolExecutor(2) as executor:
        ...             yield executor
    """

    patience: float = 60.0

    @pytest.fixture
    def executor(self) -> Iterator[Executor]:
        """A new executor with at least one worker."""
        raise NotImplementedError("override the fixture executor, so that it yields the executor to be tested")

    def test_a_call_gets_its_arguments_and_brings_its_result(self, executor: Executor) -> None:
        future = executor.submit(_returned, "ünï\0code", 2.5, key=["a", None])
        assert self._result(future) == (("ünï\0code", 2.5), {"key": ["a", None]})

    def test_a_future_is_one_of_concurrent_futures_and_knows_that_it_is_done(self, executor: Executor) -> None:
        future = executor.submit(_returned)
        assert isinstance(future, Future), (
            f"submit returned a {type(future).__name__}, expected a concurrent.futures.Future: "
            "concurrent.futures.wait cannot wait for anything else"
        )
        self._result(future)
        assert future.done()
        assert not future.running()
        assert not future.cancelled()

    def test_an_exception_travels_and_the_next_call_is_made(self, executor: Executor) -> None:
        future = executor.submit(_raised, "no such luck")
        self._wait(future)
        error = future.exception()
        assert isinstance(error, LookupError), f"the call raised LookupError('no such luck'), the future has {error!r}"
        assert error.args == ("no such luck",)
        assert self._result(executor.submit(_returned, 1)) == ((1,), {})

    def test_many_calls_bring_each_its_own_result(self, executor: Executor) -> None:
        futures = {executor.submit(_returned, number): number for number in range(100)}
        assert len(futures) == 100, "submit returned the same future for several calls"
        for future, number in futures.items():
            assert self._result(future) == ((number,), {})

    def test_equal_calls_are_made_separately(self, executor: Executor) -> None:
        # A noisy objective is measured again, and that must not be answered from a cache.
        first, second = executor.submit(_unique), executor.submit(_unique)
        assert self._result(first) != self._result(second), "the second of two equal calls was not made"

    def test_a_call_that_is_cancelled_brings_no_result_and_harms_no_other(self, executor: Executor) -> None:
        futures = [executor.submit(_returned, number) for number in range(50)]
        cancelled = [future for future in futures[25:] if future.cancel()]
        for number, future in enumerate(futures):
            self._wait(future)
            if future in cancelled:
                assert future.cancelled(), "cancel() returned True, but the call was made"
                with pytest.raises(CancelledError):
                    future.result(timeout=0)
            else:
                assert future.result(timeout=0) == ((number,), {})

    def test_after_its_shutdown_it_refuses_calls(self, executor: Executor) -> None:
        self._result(executor.submit(_returned))
        executor.shutdown()
        with pytest.raises(RuntimeError):
            executor.submit(_returned)

    def test_the_calls_of_an_evaluator_can_be_sent(self, executor: Executor) -> None:
        results = self._result(executor.submit(call, _score, ["a", "nan", "ccc"]))
        assert results is not None
        assert [(result.string, result.ok) for result in results] == [("a", True), ("nan", False), ("ccc", True)]
        assert self._result(executor.submit(call, _score, ["a", "raise"])) is None

    @pytest.mark.parametrize("chunk_size", [1, 3])
    def test_evaluations_are_those_of_this_thread(self, executor: Executor, chunk_size: int) -> None:
        expected = _outcomes(Evaluator(_score).evaluate(_STRINGS))
        told: list[Evaluation] = []
        with Evaluator(_score, executor=executor, timeout=self.patience, chunk_size=chunk_size) as evaluator:
            results = evaluator.evaluate(_STRINGS, on_result=told.append)
        assert _outcomes(results) == expected
        assert sorted(_outcomes(told)) == sorted(expected), "not every result was told once"

    def test_it_can_be_kept_busy(self, executor: Executor) -> None:
        left, told = list(_STRINGS), list[Evaluation]()

        def supply(free: int) -> list[str]:
            return [left.pop() for _ in range(min(free, len(left)))]

        with Evaluator(_score, executor=executor, workers=2, timeout=self.patience) as evaluator:
            evaluator.keep_busy(supply, on_result=told.append)
        assert sorted(_outcomes(told)) == sorted(_outcomes(Evaluator(_score).evaluate(_STRINGS)))

    def _wait(self, future: Future[T]) -> None:
        done = wait([future], timeout=self.patience).done
        assert future in done, f"a call was not done within {self.patience:g} s"

    def _result(self, future: Future[T]) -> T:
        self._wait(future)
        return future.result(timeout=0)


_STRINGS = ["a", "raise", "bb", "nan", "ccc", "a", "", "dddd"]


def _returned(*arguments: object, **options: object) -> tuple[tuple[object, ...], dict[str, object]]:
    return arguments, options


def _raised(message: str) -> None:
    raise LookupError(message)


def _unique() -> str:
    return uuid.uuid4().hex


def _score(strings: list[str]) -> list[float]:
    if "raise" in strings:
        raise RuntimeError("no such luck")
    return [float("nan") if string == "nan" else float(len(string)) for string in strings]


def _outcomes(results: list[Evaluation]) -> list[tuple[str, str, str]]:
    # NaN is not equal to itself, its name is.
    return [(result.string, repr(result.value), result.error) for result in results]
