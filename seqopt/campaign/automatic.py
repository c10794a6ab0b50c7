"""A campaign whose suggestions a function evaluates: what `seqopt.campaign.Campaign.run` does.

Suggestions are those that `Campaign.suggest` makes, filters and all, and each result is recorded as by hand, so people
and functions can work on one campaign in turn.
"""

from __future__ import annotations

import logging
import math
import sqlite3
import sys
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any, TypeVar

from seqopt.campaign.errors import CampaignError, StaleStateError
from seqopt.campaign.locks import RunLock
from seqopt.campaign.rows import LARGEST_VALUE, NewMeasurement, Suggestion, storable
from seqopt.data.transforms import resolve_transform
from seqopt.errors import ExhaustedError, InputError, ObjectiveError
from seqopt.evaluation import Evaluation, Evaluator, ObjectiveFunction
from seqopt.objectives import Objective, resolve_objective
from seqopt.utils.arguments import checked_integer

if TYPE_CHECKING:
    from seqopt.campaign.campaign import Campaign

logger = logging.getLogger(__name__)

TRIES = 5
"""How often a suggestion is worked out anew because somebody else has changed the campaign meanwhile."""

PATIENCE = 600.0
"""Seconds for which a run waits for another process to finish writing: a result may have cost more than that."""

_PAUSE_SECONDS = 0.1

T = TypeVar("T")


def run_campaign(
    campaign: Campaign,
    objective: ObjectiveFunction | str,
    *,
    budget: int,
    executor: Executor | None = None,
    workers: int = 1,
    asynchronous: bool = False,
    timeout: float | None = None,
    chunk_size: int | None = None,
    on_evaluation: Callable[[Evaluation], Any] | None = None,
) -> int:
    """Evaluate suggestions until the campaign holds ``budget`` results; see `seqopt.campaign.Campaign.run`."""
    budget = checked_integer("budget", budget, 0, "expected an integer of results")
    if asynchronous and executor is not None and workers < 2:
        raise InputError("an asynchronous run needs to know how many evaluations the executor makes at once: workers=4")
    score = resolve_objective(objective) if isinstance(objective, str) else objective
    kind = campaign.space.kind
    if isinstance(score, Objective) and not score.applies_to(kind):
        raise InputError(
            f"the objective {score.name} is for {' or '.join(score.kinds)}s, but this campaign searches strings of "
            f"kind {kind!r}"
        )
    path = campaign.store.path
    try:
        lock = RunLock(path)
    except OSError as error:
        raise CampaignError(f"cannot write next to {path}: {error.strerror or error}") from error
    evaluating = Evaluator(score, executor=executor, workers=workers, timeout=timeout, chunk_size=chunk_size)
    with lock, evaluating as evaluator:
        run = _Run(campaign, budget, on_evaluation)
        if asynchronous:
            evaluator.keep_busy(run.supply, on_result=run.record)
        elif executor is None:
            # One by one, so that what is withdrawn meanwhile is not evaluated.
            evaluator.keep_busy(run.portion, on_result=run.record)
        else:
            while batch := run.batch():
                evaluator.evaluate(batch, on_result=run.record)
    return run.evaluated


class _Run:
    """What waits, what is being evaluated, and how many results there are."""

    def __init__(self, campaign: Campaign, budget: int, on_evaluation: Callable[[Evaluation], Any] | None) -> None:
        self.campaign = campaign
        self.settings = campaign.store.settings
        self.transform = resolve_transform(self.settings.transform)
        self.on_evaluation = on_evaluation
        self.budget = budget
        self.evaluated = 0
        self.patience = PATIENCE
        self.evaluating: dict[str, Suggestion] = {}
        self.waiting = deque(campaign.store.open_suggestions())

    def supply(self, free: int) -> list[str]:
        """At most ``free`` strings: open suggestions first, then new ones."""
        return self._next(free, free)

    def portion(self, free: int) -> list[str]:
        """At most ``free`` strings of a batch; a new batch only when the last one has come back."""
        return self._next(free, 0 if self.evaluating else self.settings.batch_size)

    def batch(self) -> list[str]:
        """The open suggestions, or else a new batch."""
        return self._next(sys.maxsize, self.settings.batch_size)

    def _next(self, free: int, new: int) -> list[str]:
        """At most ``free`` strings within the budget: of those that wait or, if none does, of ``new`` suggestions."""
        store = self.campaign.store
        still_open = {row.name for row in store.open_suggestions()}
        self.waiting = deque(row for row in self.waiting if row.name in still_open)
        counts = store.counts()
        left = self.budget - counts.values - counts.failures - len(self.evaluating)
        if not self.waiting:
            for row in self._suggest(min(new, left)):
                if row.string in self.evaluating:
                    # Undone while it was being evaluated, and suggested anew: its result will answer this one.
                    self.evaluating[row.string] = row
                else:
                    self.waiting.append(row)
        rows = [self.waiting.popleft() for _ in range(min(free, left, len(self.waiting)))]
        self.evaluating.update((row.string, row) for row in rows)
        return [row.string for row in rows]

    def _suggest(self, n: int) -> list[Suggestion]:
        if n < 1:
            return []
        for _ in range(TRIES):
            try:
                return self._patiently(lambda: self.campaign.suggest(n, more=True))
            except StaleStateError:
                continue
            except ExhaustedError:
                # That all has been suggested is the end of a run; that nothing could be is an error.
                if not self.campaign.store.suggestions():
                    raise
                return []
        raise CampaignError(
            f"{self.campaign.store.path} is changed all the time by other processes: run it again later"
        )

    def record(self, evaluation: Evaluation) -> None:
        """Keep one result."""
        row = self.evaluating[evaluation.string]
        value, failure = self._judged(evaluation)
        result = f"{row.string!r} " + (f"failed ({failure})" if value is None else f"has the value {value!r}")
        try:
            self._patiently(lambda: self._write(row, value, failure, evaluation.seconds))
        except CampaignError as error:
            raise CampaignError(f"{result}, but that could not be recorded: {error}. Then record it by hand") from error
        except KeyboardInterrupt:
            self.patience = 0.0
            if not self._recorded(row, value, failure, evaluation.seconds):
                logger.error("%s, but the run was interrupted before that was recorded: record it by hand", result)
            raise
        del self.evaluating[row.string]
        self.evaluated += 1
        if self.on_evaluation is not None:
            self.on_evaluation(evaluation)
        self._complain(failure)

    def _write(self, row: Suggestion, value: float | None, failure: str | None, seconds: float) -> None:
        store = self.campaign.store
        with store.transaction("record", {"string": row.string}) as change:
            known = store.suggestion(row.name)
            gone = known is None or known.status in ("undone", "withdrawn")
            # A result is kept all the same.
            name = None if gone else row.name
            change.add_measurements(
                [NewMeasurement(row.string, row.key, value, failure, suggestion=name, details={"seconds": seconds})]
            )

    def _recorded(self, row: Suggestion, value: float | None, failure: str | None, seconds: float) -> bool:
        """Whether a result is in the file: an interruption often comes at the end of the writing, which takes long."""
        made = self.campaign.store.measurements(key=row.key)
        return any(
            (known.string, known.value, known.failure, known.details)
            == (row.string, value, failure, {"seconds": seconds})
            for known in made
        )

    def _patiently(self, command: Callable[[], T]) -> T:
        """Give a command again and again while another process is writing to the file."""
        begun = time.monotonic()
        told = False
        while True:
            try:
                return command()
            except CampaignError as error:
                if not _is_busy(error) or time.monotonic() - begun >= self.patience:
                    raise
            if not told:
                logger.warning(
                    "another process is writing to %s; the run waits up to %g minutes for it",
                    self.campaign.store.path,
                    self.patience / 60,
                )
                told = True
            time.sleep(_PAUSE_SECONDS)

    def _judged(self, evaluation: Evaluation) -> tuple[float | None, str | None]:
        """The value, or why it is none."""
        if not evaluation.ok:
            return None, storable(evaluation.error)
        if not abs(evaluation.value) <= LARGEST_VALUE:
            return None, f"the value is {evaluation.value:g}"
        try:
            if not math.isfinite(self.transform.forward(evaluation.value)):
                return None, f"the value is {evaluation.value:g}"
        except InputError as error:
            return None, str(error)
        return evaluation.value, None

    def _complain(self, failure: str | None) -> None:
        """Stop a campaign in which nothing has ever succeeded."""
        if failure is None:
            return
        counts = self.campaign.store.counts()
        if counts.values == 0 and counts.failures >= self.settings.initial:
            raise ObjectiveError(
                f"all {counts.failures} evaluations of the campaign failed, the last with: {failure}. Fix the "
                "objective, then start another campaign, or take results back with seqopt campaign undo"
            )


def _is_busy(error: CampaignError) -> bool:
    """Whether a command was refused only because another process was writing."""
    cause = error.__cause__
    if not isinstance(cause, sqlite3.Error):
        return False
    return getattr(cause, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
