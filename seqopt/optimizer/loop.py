"""The loop: ask, evaluate, tell, until the budget is spent."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sized
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from seqopt.errors import ExhaustedError, InputError, ObjectiveError
from seqopt.evaluation import Evaluation, Evaluator
from seqopt.optimizer.optimizer import Optimizer


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
        if evaluation.status == "ok":
            try:
                optimizer.transform.forward(evaluation.value)
            except InputError as error:
                evaluation = replace(evaluation, value=math.nan, status="failed", error=str(error))
        optimizer.tell([evaluation.string], [evaluation.value], errors=[evaluation.error], seconds=[evaluation.seconds])
        if log is not None:
            log.evaluated(optimizer, evaluation)
        if on_evaluation is not None:
            on_evaluation(evaluation)

    while optimizer.pending or (left := _left(optimizer, budget)) > 0:
        started = time.perf_counter()
        if not optimizer.pending:
            size = optimizer.batch_size if len(optimizer.observations) >= optimizer.initial else optimizer.initial
            try:
                asked = optimizer.ask(min(size, left))
            except ExhaustedError:
                # How many strings a space with constraints holds is known only when none is left.
                if not optimizer.observations.rows:
                    raise
                break
            if log is not None:
                log.asked(optimizer, len(asked), time.perf_counter() - started)
        suggested = time.perf_counter()
        evaluator.evaluate(optimizer.pending, on_result=finished)
        if optimizer.pending:
            raise InputError(
                f"{optimizer.pending[0]!r} was evaluated and is still pending: key() of "
                f"{type(optimizer.space).__name__} gives a suggested string another key when it is told"
            )
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
        if log is not None:
            log.stepped(optimizer)
        if step.best is None:
            first = optimizer.observations.rows[0]
            raise ObjectiveError(
                f"all {step.failed} evaluations so far failed, the first ({first.string!r}) with: "
                f"{first.context['error']}. Mend the objective, then start again in another folder"
            )
        if on_step is not None:
            on_step(step)


def _left(optimizer: Optimizer, budget: int) -> int:
    left = optimizer.initial + budget - len(optimizer.observations)
    if optimizer.allow_repeats or not isinstance(optimizer.space, Sized):
        return left
    return min(left, len(optimizer.space) - len(optimizer.observations.seen))
