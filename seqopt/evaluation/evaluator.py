"""Evaluating an objective on strings, so that a string that fails harms no other.

A call is ``objective(chunk)`` on a list of strings: one string, unless the objective or the user asks for more. A NaN,
an infinity or something that is not a number is the failure of its string. An exception, a wrong number of values or a
time-out is that of a string that was called alone; after a chunk, each of its strings is called alone. That an executor
is broken or closed says nothing about the strings: it is an error, and they have no result.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from concurrent.futures import Executor
from functools import partial
from types import TracebackType

from seqopt.data import Item
from seqopt.errors import InputError
from seqopt.evaluation.batch import Batch, Call, OnResult, Supply, cut, told
from seqopt.evaluation.judging import Evaluation, ObjectiveFunction, QueryObjective, call
from seqopt.evaluation.single import PerString, takes_one_string
from seqopt.evaluation.workers import Processes, in_thread
from seqopt.utils.arguments import checked_integer


def evaluate(
    objective: ObjectiveFunction,
    strings: Iterable[str],
    *,
    executor: Executor | None = None,
    workers: int = 1,
    timeout: float | None = None,
    chunk_size: int | None = None,
    on_result: OnResult | None = None,
) -> list[Evaluation]:
    """Evaluate ``objective`` once on each of ``strings``: see `Evaluator`, which can be used again and again.

    Example:
        >>> [result.value for result in evaluate(lambda strings: [len(s) for s in strings], ["C", "CCO"])]
        [1.0, 3.0]
        >>> evaluate(lambda strings: [1 / 0], ["C"])[0].error
        'ZeroDivisionError: division by zero'
    """
    with Evaluator(objective, executor=executor, workers=workers, timeout=timeout, chunk_size=chunk_size) as evaluator:
        return evaluator.evaluate(strings, on_result=on_result)


class Evaluator:
    """Evaluates an objective on strings, batch after batch, with the same processes.

    How the calls are made:

    - With an ``executor``, every chunk is submitted to it. A time-out cannot stop a call there: it is recorded and the
      call's later result is ignored, but until it ends it occupies its worker. Time is counted from when the executor
      reports the call as running and, of those that it reports, no more began before than it has workers (executors
      that never do so are given the time-out from the last sign of progress). Calls that cannot begin because
      all workers are held by such calls fail, too.
    - Without one, a single worker and no time-out, calls are made in this thread, unless ``isolated`` is set. What the
      objective keeps (a counter, a model that learns) is kept; if it ends its process, it ends this one.
    - Otherwise in worker processes, which are killed at the time-out, if the objective can be pickled. A worker that
      dies, whatever the objective did to it, is the failure of the string that it had; another takes its place. As
      always with `multiprocessing`, a script must then start its work under ``if __name__ == "__main__"``.
    - Otherwise, for instance for a function typed into a notebook, in threads. A time-out abandons the thread, which
      continues until its call ends.

    How many strings a call is given:

    - One, by default. Most objectives that need a search are slow for each string (a docking program, a simulation, a
      plate): one string per call keeps each result as soon as it is there, limits each string's time, and loses at most
      one evaluation to an interruption.
    - An objective for which a list costs hardly more than one string (a neural network, a GPU, a remote service) says
      so in an attribute ``chunk_size``, the largest list that it should be given: ``score.chunk_size = 64``.
    - ``chunk_size`` here overrules the attribute.

    A function of one string is called with each string: one that is wrapped by `seqopt.per_string`, whose first
    parameter is annotated as ``str``, or that raises, within a second, what a list makes such a function raise, and
    then returns a number for the string itself.

    Batches are cut into chunks of equal size, so small that all workers are busy. A chunk of k strings has k times the
    time-out, and 1/k of its seconds are noted for each string. If it raises an exception, returns a wrong number of
    values, ends its worker process or runs out of time, each of its strings is called again alone, so that only the one
    to blame fails.

    Args:
        objective: From a list of strings, or of queries where there are several ways to measure, to as many numbers.
        executor: Any `concurrent.futures.Executor`; it is not shut down.
        workers: How many calls are made at once; with an ``executor``, that is the executor's business, except in
            `keep_busy`, which gives it no more than so many at a time, and for the size of chunks where the executor
            does not say how many workers it has.
        timeout: Seconds after which a call on one string counts as failed.
        chunk_size: The largest number of strings in one call; by default the objective's own ``chunk_size``, or 1 if it
            has none.
        columns: How many outcomes there are. Of several, the objective returns a row of numbers for each string, NaN
            where one was not measured; a string without any value has failed.
        isolated: Whether a single worker without a time-out is a process of its own, too.

    Raises:
        InputError: If ``workers`` or ``chunk_size`` is not an integer from 1, ``timeout`` is not positive, or an
            objective that is to be isolated cannot be sent to another process.

    Example:
        >>> def score(strings):
        ...     print(strings)
        ...     return [len(string) for string in strings]
        >>> with Evaluator(score, chunk_size=2) as evaluator:
        ...     print([result.value for result in evaluator.evaluate(["C", "CC", "CCC"])])
        ['C', 'CC']
        ['CCC']
        [1.0, 2.0, 3.0]
    """

    def __init__(
        self,
        objective: ObjectiveFunction | QueryObjective,
        *,
        executor: Executor | None = None,
        workers: int = 1,
        timeout: float | None = None,
        chunk_size: int | None = None,
        columns: int = 1,
        isolated: bool = False,
    ) -> None:
        check_limits(workers, timeout)
        given = objective
        self.objective: ObjectiveFunction | QueryObjective = PerString(given) if takes_one_string(given) else given
        self.isolated = isolated
        self.workers = workers
        self.timeout = timeout
        self.columns = columns
        self.chunk_size = _chunk_size(given, chunk_size)
        # Who is fed has not said how much it may be given: only the user's own wish makes that more than one string.
        self._fed_chunk_size = 1 if chunk_size is None else self.chunk_size
        self._executor = executor
        self._abandoned: list[Call] = []
        self._processes: Processes | None = None
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

    def evaluate(self, strings: Iterable[Item], *, on_result: OnResult | None = None) -> list[Evaluation]:
        """Evaluate each of ``strings``.

        Args:
            strings: The strings, or queries; equal ones are evaluated separately.
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
            return self._for_executor(strings, on_result).run(self._submit_to_executor, immediate=False)
        if self._calls_here:
            chunks = cut(range(len(strings)), self.chunk_size, 1)
            return [
                result
                for positions in chunks
                for result in self._call_here([strings[position] for position in positions], on_result)
            ]
        return self._limited(Batch(strings, on_result, self.timeout, chunk_size=self.chunk_size, workers=self.workers))

    def keep_busy(self, supply: Supply, *, on_result: OnResult | None = None, in_batches: bool = False) -> None:
        """Evaluate without batches: as soon as a worker is free, it gets another string.

        Args:
            supply: Called in this thread with the number of strings that free workers can take, at the beginning and
                whenever results have come, after ``on_result`` was called for all of them. All is done when it returns
                no strings and no call is in progress. A free worker takes one string; if ``chunk_size`` was given to
                the `Evaluator`, so many. (An attribute of the objective does not count here: that the results so far
                decide about the next string is what feeding is for.)
            on_result: Called in this thread with each result as soon as it is there.
            in_batches: What is supplied was chosen together, whatever results come meanwhile: calls are as large as in
                `evaluate`.

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
        size = self.chunk_size if in_batches else self._fed_chunk_size
        if self._executor is not None:
            batch = self._for_executor([], on_result, supply, size)
            batch.run(self._submit_to_executor, self.workers, immediate=False)
        elif self._calls_here:
            while strings := supply(size):
                for positions in cut(range(len(strings)), size, 1):
                    self._call_here([strings[position] for position in positions], on_result)
        else:
            self._limited(Batch([], on_result, self.timeout, supply, chunk_size=size, workers=self.workers))

    @property
    def _calls_here(self) -> bool:
        """Whether calls are made in this thread."""
        return self._executor is None and self.workers == 1 and self.timeout is None and not self.isolated

    def _call_here(self, strings: list[Item], on_result: OnResult | None) -> list[Evaluation]:
        results = call(self.objective, strings, self.columns)
        if results is None:
            return [self._call_here([string], on_result)[0] for string in strings]
        waiting = deque(results)
        try:
            while waiting:
                told(waiting.popleft(), on_result)
        except KeyboardInterrupt:
            # The rest of the chunk has been evaluated, too.
            while waiting:
                told(waiting.popleft(), on_result)
            raise
        return results

    def _limited(self, batch: Batch) -> list[Evaluation]:
        if self._start_processes() is None:
            return batch.run(lambda strings: in_thread(self.objective, strings, self.columns), self.workers)
        try:
            return batch.run(self._submit, self.workers, enforced=True)
        except BaseException:
            # Whatever the workers are still busy with is of no use any more.
            self.close()
            raise

    def _for_executor(
        self, strings: list[Item], on_result: OnResult | None, supply: Supply | None = None, size: int | None = None
    ) -> Batch:
        """The batch, told how many calls the executor can make at once, and which old ones hold its workers."""
        found = getattr(self._executor, "_max_workers", None)
        slots = found if isinstance(found, int) else None
        return Batch(
            strings,
            on_result,
            self.timeout,
            supply,
            chunk_size=self.chunk_size if size is None else size,
            workers=slots or self.workers,
            slots=slots,
            abandoned=self._abandoned,
            foreign=True,
        )

    def _submit_to_executor(self, strings: list[Item]) -> Call:
        assert self._executor is not None
        making = call if self.columns == 1 else partial(call, columns=self.columns)
        return self._executor.submit(making, self.objective, strings)

    def _submit(self, strings: list[Item]) -> Call:
        processes = self._start_processes()
        if processes is not None:
            try:
                return processes.submit(strings)
            except RuntimeError:
                # The pool gave up, because a worker died while it was idle: it takes a new one.
                self.close()
                processes = self._start_processes()
        if processes is None:
            return in_thread(self.objective, strings, self.columns)
        return processes.submit(strings)

    def _start_processes(self) -> Processes | None:
        if self._processes is None and not self._no_processes:
            self._processes = Processes.start(self.objective, self.workers, self.timeout, self.columns)
            self._no_processes = self._processes is None
            if self._no_processes and self.isolated:
                raise InputError(
                    f"{getattr(self.objective, 'name', self.objective)!s} cannot be run in a separate process: define "
                    'it in a module, and start a script\'s work under if __name__ == "__main__", or leave isolated out'
                )
        return self._processes


def check_limits(workers: int, timeout: float | None) -> None:
    """Refuse what an `Evaluator` would.

    Raises:
        InputError: If there is no worker, or the time-out is not positive.
    """
    if workers < 1:
        raise InputError(f"workers must be at least 1, not {workers}")
    if timeout is not None and not timeout > 0:
        raise InputError(f"timeout must be a positive number of seconds, not {timeout}")


def _chunk_size(objective: ObjectiveFunction | QueryObjective, chunk_size: int | None) -> int:
    expected = "expected how many strings one call of the objective may be given"
    if chunk_size is not None:
        return checked_integer("chunk_size", chunk_size, 1, expected)
    own = getattr(objective, "chunk_size", None)
    return 1 if own is None else checked_integer("chunk_size of the objective", own, 1, expected)
