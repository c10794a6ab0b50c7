"""Where calls are made that are not made in this thread: worker processes that hold the objective, or threads."""

from __future__ import annotations

import contextlib
import multiprocessing
import pickle
import threading
import warnings
from concurrent.futures import Future
from typing import Any

from seqopt.data import Item
from seqopt.evaluation.judging import Evaluation, ObjectiveFunction, QueryObjective, call, describe

_START_SECONDS = 60.0


def in_thread(
    objective: ObjectiveFunction | QueryObjective, items: list[Item], columns: int
) -> Future[list[Evaluation] | None]:
    """`seqopt.evaluation.judging.call` in a separate thread."""
    future: Future[list[Evaluation] | None] = Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            future.set_result(call(objective, items, columns))
        except BaseException as error:
            future.set_exception(error)

    # A daemon, so that a call that never ends cannot keep the program from ending.
    threading.Thread(target=run, name="seqopt-evaluation", daemon=True).start()
    return future


class Processes:
    """Worker processes that hold the objective, and that are killed at a time-out.

    They are pebble's, not loky's, because loky cannot end one call and continue the others.
    """

    def __init__(self, pool: Any, timeout: float | None) -> None:
        self._pool = pool
        self._timeout = timeout

    @classmethod
    def start(
        cls, objective: ObjectiveFunction | QueryObjective, workers: int, timeout: float | None, columns: int
    ) -> Processes | None:
        """Worker processes, or `None`, with a warning, where the objective cannot be brought there."""
        try:
            payload = pickle.dumps((objective, columns))
        except Exception:
            # Lambdas and closures; using threads for them is documented and no surprise.
            return None
        if getattr(multiprocessing.current_process(), "_inheriting", False):
            # This is a worker that is importing a main module without a guard. Going on would run the
            # caller's whole script here; ending the worker lets its parent see that processes do not work here.
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
            "time-out cannot stop. Put it into a separate module, and start a script's work under "
            'if __name__ == "__main__":',
            RuntimeWarning,
            stacklevel=6,
        )
        return None

    def submit(self, items: list[Item]) -> Future[list[Evaluation] | None]:
        """A call on ``items``, which is ended after as many time-outs as there are items."""
        timeout = None if self._timeout is None else self._timeout * len(items)
        future: Future[list[Evaluation] | None] = self._pool.schedule(_call_received, args=(items,), timeout=timeout)
        return future

    def stop(self) -> None:
        """End the processes, whatever they are doing."""
        self._pool.stop()
        self._pool.join()


_received: tuple[ObjectiveFunction | QueryObjective, int] | None = None
_receiving_failed: str | None = None


def _receive(payload: bytes) -> None:
    global _received, _receiving_failed
    try:
        _received = pickle.loads(payload)
    except Exception as error:
        _receiving_failed = describe(error)


def _ready() -> str | None:
    return _receiving_failed


def _call_received(items: list[Item]) -> list[Evaluation] | None:
    assert _received is not None
    objective, columns = _received
    return call(objective, items, columns)
