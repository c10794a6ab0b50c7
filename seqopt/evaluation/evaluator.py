"""Evaluating an objective on strings one by one, so that a string that fails harms no other.

Each string is one call ``objective([string])``. An exception, a NaN or an infinity, a wrong number of values,
something that is no number, or a time-out is recorded as the failure of that string. That an executor is broken or
closed says nothing about the strings: it is an error, and they have no result.
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import pickle
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal

import numpy.typing as npt

from seqopt.errors import InputError, ObjectiveError

ObjectiveFunction = Callable[[list[str]], npt.ArrayLike]
"""From a list of strings to as many numbers."""

Direction = Literal["maximize", "minimize"]
"""Whether large or small values are good."""

OK, FAILED = "ok", "failed"

_POLL_SECONDS = 0.05
_START_SECONDS = 60.0
_NAMED = 20


@dataclass(frozen=True)
class Evaluation:
    """What came of evaluating one string.

    Attributes:
        string: The string.
        value: Its finite value, or NaN when it failed.
        status: ``"ok"`` or ``"failed"``.
        error: Why it failed, in one line; empty when it did not.
        seconds: How long the objective took.
    """

    string: str
    value: float
    status: str
    error: str = ""
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether there is a value."""
        return self.status == OK


OnResult = Callable[[Evaluation], None]

Supply = Callable[[int], list[str]]
"""From a number of free workers to at most as many strings; none if there is nothing for them now."""

Submit = Callable[[str], "Future[Evaluation]"]


def evaluate(
    objective: ObjectiveFunction,
    strings: Iterable[str],
    *,
    executor: Executor | None = None,
    workers: int = 1,
    timeout: float | None = None,
    on_result: OnResult | None = None,
) -> list[Evaluation]:
    """Evaluate ``objective`` once on each of ``strings``: see `Evaluator`, which can be used again and again.

    Example:
        >>> [result.value for result in evaluate(lambda strings: [len(s) for s in strings], ["C", "CCO"])]
        [1.0, 3.0]
        >>> evaluate(lambda strings: [1 / 0], ["C"])[0].error
        'ZeroDivisionError: division by zero'
    """
    with Evaluator(objective, executor=executor, workers=workers, timeout=timeout) as evaluator:
        return evaluator.evaluate(strings, on_result=on_result)


class Evaluator:
    """Evaluates an objective on strings, batch after batch, with the same processes.

    How the calls are made:

    - With an ``executor``, every string is submitted to it. A time-out cannot stop a call there: it is recorded and the
      call's later result is ignored, but until it ends it occupies its worker. Time is counted from when the executor
      reports the call as running and, of those that it reports, no more began before than it has workers (executors
      that never do so are given ``timeout`` seconds from the last sign of progress). Calls that cannot begin because
      all workers are held by such calls fail, too.
    - Without one, a single worker and no time-out, calls are made in this thread.
    - Otherwise in worker processes, which are killed at the time-out, if the objective can be pickled. As always with
      `multiprocessing`, a script must then start its work under ``if __name__ == "__main__"``.
    - Otherwise, for instance for a function typed into a notebook, in threads. A time-out abandons the thread, which
      goes on until its call ends.

    Args:
        objective: From a list of strings to as many numbers.
        executor: Any `concurrent.futures.Executor`; it is not shut down.
        workers: How many calls are made at once; with an ``executor``, that is the executor's business, except in
            `keep_busy`, which gives it no more than so many at a time.
        timeout: Seconds after which a call counts as failed.

    Raises:
        InputError: If ``workers`` is less than 1 or ``timeout`` is not positive.
    """

    def __init__(
        self,
        objective: ObjectiveFunction,
        *,
        executor: Executor | None = None,
        workers: int = 1,
        timeout: float | None = None,
    ) -> None:
        if workers < 1:
            raise InputError(f"workers must be at least 1, not {workers}")
        if timeout is not None and not timeout > 0:
            raise InputError(f"timeout must be a positive number of seconds, not {timeout}")
        self.objective = objective
        self.workers = workers
        self.timeout = timeout
        self._executor = executor
        self._abandoned: list[Future[Evaluation]] = []
        self._processes: _Processes | None = None
        self._no_processes = False

    def __enter__(self) -> Evaluator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the worker processes. Evaluating again starts new ones."""
        if self._processes is not None:
            self._processes.stop()
            self._processes = None

    def evaluate(self, strings: Iterable[str], *, on_result: OnResult | None = None) -> list[Evaluation]:
        """Evaluate each of ``strings``.

        Args:
            strings: The strings; equal ones are evaluated separately.
            on_result: Called in this thread with each result as soon as it is there.

        Returns:
            The results in the order of ``strings``.

        Raises:
            ObjectiveError: If the executor takes no more calls, or breaks, as a `ProcessPoolExecutor` does when one of
                its workers dies; after ``on_result`` was called for all that had finished. It names the strings that
                were lost on the way, and the first that was not begun.
            KeyboardInterrupt: When the user interrupts, after ``on_result`` was called for all that had
                finished.
        """
        if isinstance(strings, str):
            raise InputError(f"expected a list of strings, got the single string {strings!r}: write [{strings!r}]")
        strings = list(strings)
        if self._executor is not None:
            return self._for_executor(_Batch(strings, on_result, self.timeout)).run_in(self._submit_to_executor)
        if self.workers == 1 and self.timeout is None:
            return [_told(call(self.objective, string), on_result) for string in strings]
        return self._limited(_Batch(strings, on_result, self.timeout))

    def keep_busy(self, supply: Supply, *, on_result: OnResult | None = None) -> None:
        """Evaluate without batches: as soon as a worker is free, it gets another string.

        Args:
            supply: Called in this thread with the number of free workers, at the beginning and whenever results have
                come, after ``on_result`` was called for all of them. All is done when it returns no strings and no call
                is going on.
            on_result: Called in this thread with each result as soon as it is there.

        Raises:
            ObjectiveError: If the executor takes no more calls or breaks, as in `evaluate`.
            KeyboardInterrupt: When the user interrupts, after ``on_result`` was called for all that had
                finished.

        Example:
            >>> strings = ["C", "CC", "CCC"]
            >>> with Evaluator(lambda strings: [len(string) for string in strings], workers=2) as evaluator:
            ...     evaluator.keep_busy(
            ...         lambda free: [strings.pop() for _ in range(min(free, len(strings)))],
            ...         on_result=lambda evaluation: print(evaluation.value),
            ...     )
            3.0
            2.0
            1.0
        """
        if self._executor is not None:
            batch = self._for_executor(_Batch([], on_result, self.timeout, supply))
            batch.run_limited(self._submit_to_executor, self.workers, immediate=False)
        elif self.workers == 1 and self.timeout is None:
            while strings := supply(1):
                for string in strings:
                    _told(call(self.objective, string), on_result)
        else:
            self._limited(_Batch([], on_result, self.timeout, supply))

    def _limited(self, batch: _Batch) -> list[Evaluation]:
        if self._start_processes() is None:
            return batch.run_limited(lambda string: _in_thread(self.objective, string), self.workers)
        try:
            return batch.run_limited(self._submit, self.workers, enforced=True)
        except BaseException:
            # Whatever the workers are still busy with is of no use any more.
            self.close()
            raise

    def _for_executor(self, batch: _Batch) -> _Batch:
        """The batch, told how many calls the executor can make at once, and which old ones hold its workers."""
        slots = getattr(self._executor, "_max_workers", None)
        batch.slots = slots if isinstance(slots, int) else None
        batch.abandoned = self._abandoned
        batch.foreign = True
        return batch

    def _submit_to_executor(self, string: str) -> Future[Evaluation]:
        assert self._executor is not None
        return self._executor.submit(call, self.objective, string)

    def _submit(self, string: str) -> Future[Evaluation]:
        processes = self._start_processes()
        if processes is not None:
            try:
                return processes.submit(string)
            except RuntimeError:
                # The pool gave up, because a worker died while it was idle: it takes a new one.
                self.close()
                processes = self._start_processes()
        if processes is None:
            return _in_thread(self.objective, string)
        return processes.submit(string)

    def _start_processes(self) -> _Processes | None:
        if self._processes is None and not self._no_processes:
            self._processes = _Processes.start(self.objective, self.workers, self.timeout)
            self._no_processes = self._processes is None
        return self._processes


def call(objective: ObjectiveFunction, string: str) -> Evaluation:
    """Call ``objective`` on one string and judge what it returns; only `KeyboardInterrupt` gets out of it."""
    start = time.perf_counter()
    try:
        value, error = _single_value(objective([string]))
    # An objective that calls sys.exit has failed; it must not end the search.
    except (Exception, SystemExit) as problem:
        value, error = math.nan, describe(problem)
    seconds = time.perf_counter() - start
    return Evaluation(string, value, FAILED if error else OK, error, seconds)


def describe(error: BaseException) -> str:
    """An exception in one line: its type and message.

    Example:
        >>> describe(ValueError("too long"))
        'ValueError: too long'
    """
    message = " ".join(str(error).split())
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def _single_value(returned: Any) -> tuple[float, str]:
    if returned is None:
        return math.nan, "the objective returned None, expected one number for one string"
    if isinstance(returned, str | bytes):
        return math.nan, f"the objective returned {returned!r}, expected a number"
    if getattr(returned, "ndim", None) == 0 or not hasattr(returned, "__iter__"):
        # A function of one string, such as len, applied to a list would score every string alike.
        what = f"the objective returned {returned!r}"
        return math.nan, f"{what}: it is given a list of strings and must return a list with one number for each"
    # A matrix of one row, as some models return, is one value only if it holds one.
    values = list(returned.reshape(-1)) if hasattr(returned, "reshape") else list(returned)
    if len(values) != 1:
        return math.nan, f"the objective returned {len(values)} values, expected 1 for 1 string"
    value = values[0]
    if isinstance(value, str | bytes):
        return math.nan, f"the objective returned {value!r}, expected a number"
    try:
        number = float(value)
    except (TypeError, ValueError):
        return math.nan, f"the objective returned {value!r}, expected a number"
    if not math.isfinite(number):
        return math.nan, f"the objective returned {number}"
    # A database does not tell -0.0 from 0.0, and a run is resumed from one.
    return number + 0.0, ""


def _told(evaluation: Evaluation, on_result: OnResult | None) -> Evaluation:
    if on_result is not None:
        on_result(evaluation)
    return evaluation


class _Batch:
    """The strings of one call to `Evaluator.evaluate` or `Evaluator.keep_busy`, and what has become of them."""

    def __init__(
        self,
        strings: Sequence[str],
        on_result: OnResult | None,
        timeout: float | None,
        supply: Supply | None = None,
    ) -> None:
        self.strings = list(strings)
        self.on_result = on_result
        self.timeout = timeout
        self.supply = supply
        self.refused_at = -1
        self.foreign = False
        self.refusal: Exception | None = None
        self.breakage: BrokenExecutor | CancelledError | None = None
        self.lost: list[int] = []
        self.again: deque[int] = deque()
        self.repeated: set[int] = set()
        self.results: dict[int, Evaluation] = {}
        self.running: dict[Future[Evaluation], int] = {}
        self.started: dict[Future[Evaluation], float] = {}
        self.slots: int | None = None
        self.abandoned: list[Future[Evaluation]] = []
        self.last_progress = time.monotonic()

    def run_limited(
        self, submit: Submit, workers: int, *, enforced: bool = False, immediate: bool = True
    ) -> list[Evaluation]:
        """Keep at most ``workers`` calls going.

        Args:
            submit: Makes a call.
            workers: How many at once.
            enforced: Whether ``submit`` itself sees to the time-out.
            immediate: Whether a call that is submitted has begun.
        """
        with self._delivering():
            position = 0
            while True:
                while self._room(workers):
                    if self.again:
                        place = self.again.popleft()
                    elif self._more(workers - len(self.running), position):
                        place, position = position, position + 1
                    else:
                        break
                    future = self._begin(submit, place)
                    if future is not None and immediate:
                        self.started[future] = time.monotonic()
                if not self.running:
                    return self._ordered()
                self._collect(self._pause(enforced))
                if not enforced:
                    self._note_started()
                    self._time_out()
                    self._give_up_waiting()

    def _room(self, workers: int) -> bool:
        return self.refusal is None and self.breakage is None and len(self.running) < workers

    def _begin(self, submit: Submit, position: int) -> Future[Evaluation] | None:
        """The call on the string at ``position``, or `None` if it was refused."""
        try:
            future = submit(self.strings[position])
        # RuntimeError of an executor that is closed, OSError of one that can start no further process, and so on.
        except Exception as error:
            # What was taken before may have a result yet.
            self.refusal = error
            return None
        self.running[future] = position
        # What comes late, because a model was fitted meanwhile, has waited for nothing yet.
        self.last_progress = time.monotonic()
        return future

    def _more(self, free: int, position: int) -> bool:
        """Whether there is a string at ``position``; if not, ``free`` further ones are asked for."""
        # Whoever had nothing to give is asked again only after a further result.
        if position == len(self.strings) and self.supply is not None and self.refused_at < len(self.results):
            further = self.supply(free)
            self.strings += further
            if not further:
                self.refused_at = len(self.results)
        return position < len(self.strings)

    def run_in(self, submit: Submit) -> list[Evaluation]:
        """Submit all strings at once."""
        with self._delivering():
            for position in range(len(self.strings)):
                if self._begin(submit, position) is None:
                    break
            while self.running:
                self._collect(self._pause(enforced=False))
                self._note_started()
                self._time_out()
                self._give_up_waiting()
            return self._ordered()

    @contextlib.contextmanager
    def _delivering(self) -> Any:
        try:
            yield
        except BaseException as error:
            finished = [future for future in self.running if future.done() and not future.cancelled()]
            for future in self.running:
                future.cancel()
            # After an error of on_result itself it must not be called again.
            if isinstance(error, KeyboardInterrupt):
                self._collect(finished, reraise=False)
            raise

    def _pause(self, enforced: bool) -> Iterable[Future[Evaluation]]:
        # Without a time-out to watch there is nothing to wake up for; the limit keeps Ctrl-C prompt
        # everywhere.
        watch = self.timeout is not None and not enforced
        seconds = min(_POLL_SECONDS, self.timeout / 4) if watch and self.timeout is not None else 1.0
        done = wait(self.running, timeout=seconds, return_when=FIRST_COMPLETED).done
        # An executor that is shut down with cancel_futures cancels what waits in it and wakes nobody.
        return done | {future for future in self.running if future.cancelled()}

    def _collect(self, finished: Iterable[Future[Evaluation]], *, reraise: bool = True) -> None:
        # In order, so that of results that come together none overtakes another by chance.
        for future in sorted(finished, key=self.running.__getitem__):
            position = self.running.pop(future)
            started = self.started.pop(future, time.monotonic())
            try:
                result = future.result()
            except (KeyboardInterrupt, GeneratorExit):
                if reraise:
                    raise
                continue
            except (BrokenExecutor, CancelledError) as error:
                # A worker has died, of which string cannot be known, or somebody has shut the executor down: no string
                # has failed.
                if not self.foreign and position not in self.repeated:
                    # Own processes give up when one dies that had nothing to do: others take their place.
                    self.repeated.add(position)
                    self.again.append(position)
                    continue
                self.breakage = error
                self.lost.append(position)
                continue
            except BaseException as error:
                if isinstance(error, TimeoutError) and self.timeout is not None:
                    result = self._timed_out(position)
                else:
                    result = self._failure(position, _describe_worker(error), time.monotonic() - started)
            self.last_progress = time.monotonic()
            self._deliver(position, result)

    def _note_started(self) -> None:
        # A `ProcessPoolExecutor` reports some calls as running that still wait behind others, in the order in which
        # they were submitted.
        self.abandoned[:] = [future for future in self.abandoned if not future.done()]
        busy = len(self.abandoned) + sum(not future.done() for future in self.started)
        for future in self.running:
            if self.slots is not None and busy >= self.slots:
                break
            if future not in self.started and future.running():
                self.started[future] = self.last_progress = time.monotonic()
                busy += 1

    def _time_out(self) -> None:
        if self.timeout is None:
            return
        now = time.monotonic()
        for future in [future for future in self.running if now - self.started.get(future, now) > self.timeout]:
            if not future.done():
                position = self.running.pop(future)
                del self.started[future]
                self.abandoned.append(future)
                self.last_progress = now
                self._deliver(position, self._timed_out(position))

    def _give_up_waiting(self) -> None:
        """Fail what cannot begin: nothing is running any more but calls that have been timed out."""
        if self.timeout is None or any(future in self.started for future in self.running):
            return
        if time.monotonic() - self.last_progress > self.timeout:
            for future, position in list(self.running.items()):
                # One that was cancelled already was cancelled by its executor, and is lost.
                if not future.cancelled() and (future.cancel() or not future.done()):
                    del self.running[future]
                    self.abandoned.append(future)
                    self._deliver(
                        position,
                        self._failure(
                            position,
                            f"no result within {self.timeout:g} s of the last sign of progress: "
                            "the executor's workers are held by calls that have timed out",
                        ),
                    )

    def _timed_out(self, position: int) -> Evaluation:
        assert self.timeout is not None
        return self._failure(position, f"timed out after {self.timeout:g} s", float(self.timeout))

    def _failure(self, position: int, message: str, seconds: float = 0.0) -> Evaluation:
        return Evaluation(self.strings[position], math.nan, FAILED, message, seconds)

    def _deliver(self, position: int, result: Evaluation) -> None:
        self.results[position] = _told(result, self.on_result)

    def _ordered(self) -> list[Evaluation]:
        if self.breakage is not None:
            raise self._broken(self.breakage) from self.breakage
        if self.refusal is not None:
            raise self._refused(self.refusal) from self.refusal
        return [self.results[position] for position in range(len(self.strings))]

    def _refused(self, error: Exception) -> ObjectiveError:
        if not self.foreign:
            return ObjectiveError(f"no further evaluation can be begun ({describe(error)}):{self._left()}")
        why = f"the executor takes no more evaluations ({describe(error)})"
        return ObjectiveError(f"{why}:{self._left()}. Make another executor, then go on")

    def _left(self) -> str:
        """What was never begun, in words."""
        gone = {*self.results, *self.lost}
        left = [string for position, string in enumerate(self.strings) if position not in gone]
        if not left:
            return ""
        return f" {left[0]!r} was not evaluated" + (f", nor {len(left) - 1} more" if len(left) > 1 else "")

    def _broken(self, error: BrokenExecutor | CancelledError) -> ObjectiveError:
        lost = [self.strings[position] for position in sorted(self.lost)]
        names = ", ".join(map(repr, lost[:_NAMED])) + (f" and {len(lost) - _NAMED} more" if len(lost) > _NAMED else "")
        left = self._left()
        named = f"oldest first: {names}. Nothing was recorded of them." + (f"{left}." if left else "")
        further = "Make another executor, then go on" if self.foreign else "Go on"
        if isinstance(error, CancelledError):
            return ObjectiveError(f"the executor has cancelled the evaluation of these strings, {named} {further}")
        broke = "the executor broke" if self.foreign else "the worker processes broke"
        return ObjectiveError(
            f"{broke} ({describe(error)}) while these strings were in flight, {named} {further}. If that happens "
            "again, a string that both messages name may end its worker: leave that out (in a campaign, withdraw it)"
        )


def _describe_worker(error: BaseException) -> str:
    code = getattr(error, "exitcode", None)
    if code is not None:
        return f"the worker process died (exit code {code})"
    return describe(error)


def _in_thread(objective: ObjectiveFunction, string: str) -> Future[Evaluation]:
    future: Future[Evaluation] = Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            future.set_result(call(objective, string))
        except BaseException as error:
            future.set_exception(error)

    # A daemon, so that a call that never ends cannot keep the program from ending.
    threading.Thread(target=run, name="seqopt-evaluation", daemon=True).start()
    return future


class _Processes:
    """Worker processes that hold the objective."""

    def __init__(self, pool: Any, timeout: float | None) -> None:
        self._pool = pool
        self._timeout = timeout

    @classmethod
    def start(cls, objective: ObjectiveFunction, workers: int, timeout: float | None) -> _Processes | None:
        """Worker processes, or `None`, with a warning, where the objective cannot be brought there."""
        try:
            payload = pickle.dumps(objective)
        except Exception:
            # Lambdas and closures; using threads for them is documented and no surprise.
            return None
        if getattr(multiprocessing.current_process(), "_inheriting", False):
            # This is a worker that is importing a main module without a guard. Going on would run the
            # caller's whole script here; ending the worker lets its parent see that processes are no way.
            raise SystemExit(1)
        import pebble

        # Forking would copy the threads' locks of torch and numba, held or not.
        context = multiprocessing.get_context("spawn")
        pool = pebble.ProcessPool(max_workers=workers, initializer=_receive, initargs=(payload,), context=context)
        try:
            problem = pool.schedule(_ready, timeout=_START_SECONDS).result()
        except Exception as error:
            problem = describe(error)
        except BaseException:
            pool.stop()
            pool.join()
            raise
        if problem is None:
            return cls(pool, timeout)
        with contextlib.suppress(Exception):
            pool.stop()
            pool.join()
        warnings.warn(
            f"the objective cannot be run in worker processes ({problem}); it runs in threads, which a "
            "time-out cannot stop. Put it into a module of its own, and start a script's work under "
            'if __name__ == "__main__":',
            RuntimeWarning,
            stacklevel=6,
        )
        return None

    def submit(self, string: str) -> Future[Evaluation]:
        future: Future[Evaluation] = self._pool.schedule(_call_received, args=(string,), timeout=self._timeout)
        return future

    def stop(self) -> None:
        self._pool.stop()
        self._pool.join()


_received: ObjectiveFunction | None = None
_receiving_failed: str | None = None


def _receive(payload: bytes) -> None:
    global _received, _receiving_failed
    try:
        _received = pickle.loads(payload)
    except Exception as error:
        _receiving_failed = describe(error)


def _ready() -> str | None:
    return _receiving_failed


def _call_received(string: str) -> Evaluation:
    assert _received is not None
    return call(_received, string)
