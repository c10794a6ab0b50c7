"""The strings of one batch, the calls that are being made on them, and what has become of them."""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait

from seqopt.data import Item, context_of, key_of, written
from seqopt.errors import ObjectiveError
from seqopt.evaluation.judging import Evaluation, describe, failure

OnResult = Callable[[Evaluation], None]

Supply = Callable[[int], Sequence[Item]]
"""From how many strings can be taken now to at most as many strings, or queries; none if there is nothing for them
now."""

Call = Future[list[Evaluation] | None]
"""A call of `seqopt.evaluation.judging.call` that is being made."""

Submit = Callable[[list[Item]], Call]

_POLL_SECONDS = 0.05
_NAMED = 20


def cut(positions: Sequence[int], chunk_size: int, workers: int) -> list[list[int]]:
    """Chunks of ``positions`` in their order, of equal size but the last: at most ``chunk_size``, and so small that
    every one of ``workers`` has something to do.

    Example:
        >>> cut(range(5), 4, 2)
        [[0, 1, 2], [3, 4]]
    """
    size = max(1, min(chunk_size, -(-len(positions) // workers)))
    return [list(positions[start : start + size]) for start in range(0, len(positions), size)]


def told(evaluation: Evaluation, on_result: OnResult | None) -> Evaluation:
    """The result, after whoever listens has been told of it."""
    if on_result is not None:
        on_result(evaluation)
    return evaluation


class Batch:
    """The strings of one call to `Evaluator.evaluate` or `Evaluator.keep_busy`, and what has become of them.

    Args:
        strings: The strings that are there at the beginning.
        on_result: Told of each result.
        timeout: Seconds for one string; a chunk has as many times that as it has strings.
        supply: Gives further strings.
        chunk_size: The largest number of strings in one call.
        workers: How many calls can be made at once: chunks are made so small that each has something to do.
        slots: How many calls a foreign executor makes at once, where that is known.
        abandoned: Earlier calls that have been timed out and may still hold workers of that executor.
        foreign: Whether calls are made by an executor of the user.
    """

    def __init__(
        self,
        strings: Sequence[Item],
        on_result: OnResult | None,
        timeout: float | None,
        supply: Supply | None = None,
        *,
        chunk_size: int = 1,
        workers: int = 1,
        slots: int | None = None,
        abandoned: list[Call] | None = None,
        foreign: bool = False,
    ) -> None:
        self.strings = list(strings)
        self.on_result = on_result
        self.timeout = timeout
        self.supply = supply
        self.chunk_size = chunk_size
        self.workers = workers
        self.slots = slots
        self.abandoned = [] if abandoned is None else abandoned
        self.foreign = foreign
        self.waiting = deque(cut(range(len(self.strings)), chunk_size, workers))
        self.again: deque[int] = deque()
        self.repeated: set[int] = set()
        self.refused_at = -1
        self.refusal: Exception | None = None
        self.breakage: BrokenExecutor | CancelledError | None = None
        self.lost: list[int] = []
        self.finished: deque[tuple[int, Evaluation]] = deque()
        self.results: dict[int, Evaluation] = {}
        self.running: dict[Call, list[int]] = {}
        self.started: dict[Call, float] = {}
        self.last_progress = time.monotonic()

    def run(
        self, submit: Submit, at_once: int | None = None, *, enforced: bool = False, immediate: bool = True
    ) -> list[Evaluation]:
        """Make all calls.

        Args:
            submit: Makes a call.
            at_once: How many calls may be made at once; by default all of them.
            enforced: Whether ``submit`` itself sees to the time-out.
            immediate: Whether a call that is submitted has begun.

        Returns:
            The results in the order of the strings.
        """
        limit = sys.maxsize if at_once is None else at_once
        with self._delivering():
            while True:
                while self._room(limit):
                    positions = self._next(limit - len(self.running))
                    if positions is None:
                        break
                    future = self._begin(submit, positions)
                    if future is not None and immediate:
                        self.started[future] = time.monotonic()
                if not self.running:
                    return self._ordered()
                self._collect(self._pause(enforced))
                if not enforced:
                    self._note_started()
                    self._time_out()
                    self._give_up_waiting()

    def _room(self, limit: int) -> bool:
        return self.refusal is None and self.breakage is None and len(self.running) < limit

    def _next(self, free: int) -> list[int] | None:
        """The positions of the next call; if there is none, further strings for ``free`` calls are asked for."""
        if self.again:
            return [self.again.popleft()]
        # Whoever had nothing to give is asked again only after a further result.
        if not self.waiting and self.supply is not None and self.refused_at < len(self.results):
            further = self.supply(free * self.chunk_size)
            first = len(self.strings)
            self.strings += further
            self.waiting += cut(range(first, len(self.strings)), self.chunk_size, free)
            if not further:
                self.refused_at = len(self.results)
        return self.waiting.popleft() if self.waiting else None

    def _begin(self, submit: Submit, positions: list[int]) -> Call | None:
        """The call on the strings at ``positions``, or `None` if it was refused."""
        try:
            future = submit([self.strings[position] for position in positions])
        # RuntimeError of an executor that is closed, OSError of one that can start no further process, and so on.
        except Exception as error:
            # What was taken before may have a result yet.
            self.refusal = error
            return None
        self.running[future] = positions
        # What comes late, because a model was fitted meanwhile, has waited for nothing yet.
        self.last_progress = time.monotonic()
        return future

    @contextlib.contextmanager
    def _delivering(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            finished = [future for future in self.running if future.done() and not future.cancelled()]
            for future in self.running:
                future.cancel()
            # After an error of on_result itself it must not be called again.
            if isinstance(error, KeyboardInterrupt):
                self._deliver_finished()
                self._collect(finished, reraise=False)
            raise

    def _pause(self, enforced: bool) -> Iterable[Call]:
        # Without a time-out to watch there is nothing to wake up for; the limit keeps Ctrl-C prompt
        # everywhere.
        watch = self.timeout is not None and not enforced
        seconds = min(_POLL_SECONDS, self.timeout / 4) if watch and self.timeout is not None else 1.0
        done = wait(self.running, timeout=seconds, return_when=FIRST_COMPLETED).done
        # An executor that is shut down with cancel_futures cancels what waits in it and wakes nobody.
        return done | {future for future in self.running if future.cancelled()}

    def _collect(self, finished: Iterable[Call], *, reraise: bool = True) -> None:
        # In order, so that of results that come together none overtakes another by chance.
        for future in sorted(finished, key=self.running.__getitem__):
            positions = self.running.pop(future)
            started = self.started.pop(future, time.monotonic())
            try:
                results = future.result()
            except (KeyboardInterrupt, GeneratorExit):
                if reraise:
                    raise
                continue
            except (BrokenExecutor, CancelledError) as error:
                # A worker has died, of which string cannot be known, or somebody has shut the executor down: no string
                # has failed.
                if not self.foreign and self.repeated.isdisjoint(positions):
                    # Own processes give up when one dies that had nothing to do: others take their place.
                    self.repeated.update(positions)
                    self.again += positions
                    continue
                self.breakage = error
                self.lost += positions
                continue
            except BaseException as error:
                if isinstance(error, TimeoutError) and self.timeout is not None:
                    self._fail_or_repeat(positions, self._timed_out(), self.timeout)
                else:
                    self._fail_or_repeat(positions, _describe_worker(error), time.monotonic() - started)
                continue
            self.last_progress = time.monotonic()
            if results is None:
                self.again += positions
            else:
                self.finished += zip(positions, results, strict=True)
                self._deliver_finished()

    def _fail_or_repeat(self, positions: list[int], message: str, seconds: float = 0.0) -> None:
        """Of a chunk nobody knows which string is to blame, so each is called alone; a string alone has failed."""
        self.last_progress = time.monotonic()
        if len(positions) > 1:
            self.again += positions
        else:
            self.finished.append((positions[0], failure(self.strings[positions[0]], message, seconds)))
            self._deliver_finished()

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
        for future, positions in list(self.running.items()):
            late = now - self.started.get(future, now) > self.timeout * len(positions)
            if late and not future.done():
                self._abandon(future)
                self._fail_or_repeat(positions, self._timed_out(), self.timeout)

    def _give_up_waiting(self) -> None:
        """Fail what cannot begin: nothing is running any more but calls that have been timed out."""
        if self.timeout is None or not self.running or any(future in self.started for future in self.running):
            return
        patience = self.timeout * max(map(len, self.running.values()))
        if time.monotonic() - self.last_progress > patience:
            for future, positions in list(self.running.items()):
                # One that was cancelled already was cancelled by its executor, and is lost.
                if not future.cancelled() and (future.cancel() or not future.done()):
                    self._abandon(future)
                    self._fail_or_repeat(
                        positions,
                        f"no result within {self.timeout:g} s of the last sign of progress: "
                        "the executor's workers are held by calls that have timed out",
                    )

    def _abandon(self, future: Call) -> None:
        del self.running[future]
        self.started.pop(future, None)
        self.abandoned.append(future)

    def _timed_out(self) -> str:
        return f"timed out after {self.timeout:g} s"

    def _deliver_finished(self) -> None:
        # What is still in the queue when an interruption comes is told before that passes.
        while self.finished:
            position, result = self.finished.popleft()
            self.results[position] = told(result, self.on_result)

    def _ordered(self) -> list[Evaluation]:
        if self.breakage is not None:
            raise self._broken(self.breakage) from self.breakage
        if self.refusal is not None:
            raise self._refused(self.refusal) from self.refusal
        return [self.results[position] for position in range(len(self.strings))]

    def _refused(self, error: Exception) -> ObjectiveError:
        if not self.foreign:
            return ObjectiveError(f"no further evaluation can be started ({describe(error)}):{self._left()}")
        why = f"the executor takes no more evaluations ({describe(error)})"
        return ObjectiveError(f"{why}:{self._left()}. Make another executor, then continue")

    def _left(self) -> str:
        """What was never begun, in words."""
        gone = {*self.results, *self.lost}
        left = [string for position, string in enumerate(self.strings) if position not in gone]
        if not left:
            return ""
        return f" {_named(left[0])} was not evaluated" + (f", nor {len(left) - 1} more" if len(left) > 1 else "")

    def _broken(self, error: BrokenExecutor | CancelledError) -> ObjectiveError:
        lost = [self.strings[position] for position in sorted(self.lost)]
        names = ", ".join(map(_named, lost[:_NAMED])) + (
            f" and {len(lost) - _NAMED} more" if len(lost) > _NAMED else ""
        )
        left = self._left()
        named = f"oldest first: {names}. Nothing was recorded for them." + (f"{left}." if left else "")
        further = "Make another executor, then continue" if self.foreign else "Continue"
        if isinstance(error, CancelledError):
            return ObjectiveError(f"the executor has cancelled the evaluation of these strings, {named} {further}")
        broke = "the executor broke" if self.foreign else "the worker processes broke"
        return ObjectiveError(
            f"{broke} ({describe(error)}) while these strings were in flight, {named} {further}. If that happens "
            "again, a string that both messages name may end its worker: leave that out (in a campaign, withdraw it)"
        )


def _named(item: Item) -> str:
    """What messages call a string or a query."""
    context = context_of(item)
    return repr(key_of(item)) + (f" ({written(context)})" if context else "")


def _describe_worker(error: BaseException) -> str:
    code = getattr(error, "exitcode", None)
    if code is None:
        return describe(error)
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"the worker process was killed by {signal.Signals(-code).name}"
    return f"the worker process died (exit code {code})"
