"""The loop: ask, evaluate, tell, until the budget is spent; in batches, or without waiting for any."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Sized
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from seqopt.errors import ExhaustedError, InputError, ObjectiveError
from seqopt.evaluation import Evaluation, Evaluator
from seqopt.optimizer.optimizer import Optimizer
from seqopt.spaces import PoolSpace


@dataclass
class Step:
    """What happened in one step of the loop.

    Attributes:
        step: 0 for the initial design, then 1, 2, ...
        evaluations: Evaluations so far, failed ones included.
        failed: Failed evaluations so far.
        best: Best value so far in the user's units, `None` before the first success.
        seconds: Time of the suggestion and of the evaluations of this step.
        kernel: Parameters of the surrogate that chose the batch, empty for a random one.
    """

    step: int
    evaluations: int
    failed: int
    best: float | None
    seconds: dict[str, float]
    kernel: dict[str, float] = field(default_factory=dict)


class RunLog(Protocol):
    """Records a run as it happens, so that it can be resumed."""

    def asked(self, optimizer: Optimizer, rows: int, seconds: float) -> None:
        """The last ``rows`` rows of the optimiser's table have just been suggested."""
        ...

    def evaluated(self, optimizer: Optimizer, evaluation: Evaluation) -> None:
        """One evaluation has finished and been told."""
        ...

    def stepped(self, optimizer: Optimizer) -> None:
        """A step is complete."""
        ...


def run_loop(
    optimizer: Optimizer,
    evaluator: Evaluator,
    budget: int,
    *,
    log: RunLog | None = None,
    on_step: Callable[[Step], Any] | None = None,
    on_evaluation: Callable[[Evaluation], Any] | None = None,
) -> None:
    """Ask, evaluate and tell until ``budget`` evaluations have followed the initial design.

    Strings that are already pending (of a resumed run) are evaluated first. A failed evaluation counts: it has been
    paid for. The loop ends early when the space is exhausted.

    Args:
        optimizer: Proposes and learns.
        evaluator: Scores strings.
        budget: Evaluations after the initial design.
        log: Records what happens.
        on_step: Called after each step.
        on_evaluation: Called after each evaluation.

    Raises:
        ObjectiveError: If every evaluation of the initial design failed: a model could never learn from that.
    """

    def finished(evaluation: Evaluation) -> None:
        _tell(optimizer, evaluation, log, on_evaluation)

    while optimizer.pending or (left := _left(optimizer, budget)) > 0:
        started = time.perf_counter()
        if not optimizer.pending:
            # Of what was told before, as much less is missing.
            missing = optimizer.initial - len(optimizer.observations)
            try:
                asked = optimizer.ask(min(missing if missing > 0 else optimizer.batch_size, left))
            except ExhaustedError:
                # How many strings a space with constraints holds is known only when none is left.
                if not optimizer.observations.rows:
                    raise
                break
            if log is not None:
                log.asked(optimizer, len(asked), time.perf_counter() - started)
        suggested = time.perf_counter()
        evaluator.evaluate(optimizer.pending, on_result=finished)
        step = Step(
            step=optimizer.batches,
            evaluations=len(optimizer.observations),
            failed=len(optimizer.observations.with_status("failed")),
            best=optimizer.best.value if optimizer.observations.with_status("ok") else None,
            seconds={
                "suggest": round(suggested - started, 3),
                "evaluate": round(time.perf_counter() - suggested, 3),
            },
            kernel=optimizer.hyperparameters if optimizer.batches else {},
        )
        _note_step(optimizer, step, log, on_step)


def run_asynchronously(
    optimizer: Optimizer,
    evaluator: Evaluator,
    budget: int,
    *,
    log: RunLog | None = None,
    on_step: Callable[[Step], Any] | None = None,
    on_evaluation: Callable[[Evaluation], Any] | None = None,
) -> None:
    """Evaluate until ``budget`` evaluations have followed the initial design, each worker as soon as it is free.

    Whenever results have come, all of them are told, and then as many strings are asked for as workers are free, in one
    batch that is conditioned on those that are still being evaluated. The model is fitted each time. Strings that are
    already pending (of a resumed run) are evaluated first. At most as many are pending as there are workers.

    What is suggested depends on the results so far, so a run is the same again only if its results come in the same
    order and together with the same others.

    Args:
        optimizer: Proposes and learns.
        evaluator: Scores strings; its ``workers`` is how many at once.
        budget: Evaluations after the initial design.
        log: Records what happens.
        on_step: Called after each ``batch_size`` results, and after those of the initial design: a step is a number of
            results here.
        on_evaluation: Called after each evaluation.

    Raises:
        ObjectiveError: If the first evaluations, as many as the initial design has, all failed: a model could never
            learn from that.
    """
    waiting = deque(optimizer.pending)
    steps = _Steps(optimizer, log, on_step)
    exhausted = False

    def supply(free: int) -> list[str]:
        nonlocal exhausted
        if waiting or exhausted:
            return [waiting.popleft() for _ in range(min(free, len(waiting)))]
        missing = optimizer.initial - len(optimizer.observations)
        wanted = min(free, _left(optimizer, budget), missing if missing > 0 else free)
        if wanted < 1:
            return []
        started = time.perf_counter()
        try:
            asked = optimizer.ask(wanted)
        except ExhaustedError:
            if not optimizer.observations.rows:
                raise
            # With repeats, a string that is being evaluated may be free again.
            exhausted = not optimizer.allow_repeats
            return []
        seconds = time.perf_counter() - started
        steps.suggest_seconds += seconds
        if log is not None:
            log.asked(optimizer, len(asked), seconds)
        return asked

    def finished(evaluation: Evaluation) -> None:
        _tell(optimizer, evaluation, log, on_evaluation)
        steps.evaluated(evaluation)

    evaluator.keep_busy(supply, on_result=finished)
    steps.end()


class _Steps:
    """Counts results into steps."""

    def __init__(self, optimizer: Optimizer, log: RunLog | None, on_step: Callable[[Step], Any] | None) -> None:
        self.optimizer = optimizer
        self.log = log
        self.on_step = on_step
        self.suggest_seconds = 0.0
        self.evaluate_seconds = 0.0
        self.unreported = 0

    @property
    def results(self) -> int:
        return len(self.optimizer.observations) - len(self.optimizer.pending)

    def evaluated(self, evaluation: Evaluation) -> None:
        self.evaluate_seconds += evaluation.seconds
        self.unreported += 1
        after = self.results - self.optimizer.initial
        if after >= 0 and after % self.optimizer.batch_size == 0:
            self._report()

    def end(self) -> None:
        if self.unreported:
            self._report()

    def _report(self) -> None:
        optimizer, results = self.optimizer, self.results
        number = max(0, -(-(results - optimizer.initial) // optimizer.batch_size))
        step = Step(
            step=number,
            evaluations=results,
            failed=len(optimizer.observations.with_status("failed")),
            best=optimizer.best.value if optimizer.observations.with_status("ok") else None,
            seconds={"suggest": round(self.suggest_seconds, 3), "evaluate": round(self.evaluate_seconds, 3)},
            kernel=optimizer.hyperparameters if number else {},
        )
        self.suggest_seconds = self.evaluate_seconds = 0.0
        self.unreported = 0
        _note_step(optimizer, step, self.log, self.on_step)


def _tell(
    optimizer: Optimizer,
    evaluation: Evaluation,
    log: RunLog | None,
    on_evaluation: Callable[[Evaluation], Any] | None,
) -> None:
    if evaluation.status == "ok":
        try:
            optimizer.transform.forward(evaluation.value)
        except InputError as error:
            evaluation = replace(evaluation, value=math.nan, status="failed", error=str(error))
    before = len(optimizer.observations)
    optimizer.tell([evaluation.string], [evaluation.value], errors=[evaluation.error], seconds=[evaluation.seconds])
    if len(optimizer.observations) > before:
        raise InputError(
            f"{evaluation.string!r} was evaluated and is still pending: key() of {type(optimizer.space).__name__} "
            "gives a suggested string another key when it is told"
        )
    if log is not None:
        log.evaluated(optimizer, evaluation)
    if on_evaluation is not None:
        on_evaluation(evaluation)


def _note_step(optimizer: Optimizer, step: Step, log: RunLog | None, on_step: Callable[[Step], Any] | None) -> None:
    if log is not None:
        log.stepped(optimizer)
    if step.best is None:
        first = next(row for row in optimizer.observations.rows if row.status == "failed")
        raise ObjectiveError(
            f"all {step.failed} evaluations so far failed, the first ({first.string!r}) with: "
            f"{first.details['error']}. Mend the objective, then start again in another folder"
        )
    if on_step is not None:
        on_step(step)


def _left(optimizer: Optimizer, budget: int) -> int:
    left = optimizer.initial + budget - len(optimizer.observations)
    space, seen = optimizer.space, optimizer.observations.seen
    if optimizer.allow_repeats:
        return left
    if isinstance(space, PoolSpace):
        # A pool may have learned from strings that it does not hold.
        return min(left, len(space) - sum(space.index_of(key) is not None for key in seen))
    return min(left, len(space) - len(seen)) if isinstance(space, Sized) else left
