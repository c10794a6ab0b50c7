"""A campaign whose suggestions a function evaluates: what `seqopt.campaign.Campaign.run` does.

Suggestions are those that `Campaign.suggest` makes, filters and all, and each result is recorded as by hand, so people
and functions can work on one campaign in turn.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any

from seqopt.campaign.errors import CampaignError, StaleStateError
from seqopt.campaign.locks import RunLock
from seqopt.campaign.rows import NewMeasurement, Suggestion, storable
from seqopt.campaign.store import LARGEST_VALUE
from seqopt.errors import ExhaustedError, InputError, ObjectiveError
from seqopt.evaluation import Evaluation, Evaluator, ObjectiveFunction
from seqopt.objectives import Objective, resolve_objective
from seqopt.optimizer.transforms import resolve_transform

if TYPE_CHECKING:
    from seqopt.campaign.campaign import Campaign

TRIES = 5
"""How often a suggestion is worked out anew because somebody else has changed the campaign meanwhile."""


def run_campaign(
    campaign: Campaign,
    objective: ObjectiveFunction | str,
    *,
    budget: int,
    executor: Executor | None = None,
    workers: int = 1,
    asynchronous: bool = False,
    timeout: float | None = None,
    on_evaluation: Callable[[Evaluation], Any] | None = None,
) -> int:
    """Evaluate suggestions until the campaign holds ``budget`` results; see `seqopt.campaign.Campaign.run`."""
    if not isinstance(budget, int) or budget < 0:
        raise InputError(f"budget is {budget!r}; expected a whole number of results")
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
        raise CampaignError(f"cannot write beside {path}: {error.strerror or error}") from error
    with lock, Evaluator(score, executor=executor, workers=workers, timeout=timeout) as evaluator:
        run = _Run(campaign, budget, on_evaluation)
        if asynchronous:
            evaluator.keep_busy(run.supply, on_result=run.record)
        else:
            while batch := run.batch():
                evaluator.evaluate(batch, on_result=run.record)
    return run.evaluated


class _Run:
    """What is open, and how many results there are."""

    def __init__(self, campaign: Campaign, budget: int, on_evaluation: Callable[[Evaluation], Any] | None) -> None:
        self.campaign = campaign
        self.settings = campaign.store.settings
        self.transform = resolve_transform(self.settings.transform)
        self.on_evaluation = on_evaluation
        self.budget = budget
        self.evaluated = 0
        self.open = {row.string: row for row in campaign.store.open_suggestions()}
        self.waiting = deque(self.open)

    def batch(self) -> list[str]:
        """The open suggestions, or else a new batch."""
        return self.supply(len(self.waiting) or self.settings.batch_size)

    def supply(self, free: int) -> list[str]:
        """At most ``free`` strings: open suggestions first, then new ones within the budget."""
        if not self.waiting:
            counts = self.campaign.store.counts()
            left = self.budget - counts.values - counts.failures - len(self.open)
            for row in self._suggest(min(free, left)):
                self.open[row.string] = row
                self.waiting.append(row.string)
        return [self.waiting.popleft() for _ in range(min(free, len(self.waiting)))]

    def _suggest(self, n: int) -> list[Suggestion]:
        if n < 1:
            return []
        for _ in range(TRIES):
            try:
                return self.campaign.suggest(n, more=True)
            except StaleStateError:
                continue
            except ExhaustedError:
                # That all has been suggested is the end of a run; that nothing could be is an error.
                if not self.campaign.store.suggestions():
                    raise
                return []
        raise CampaignError(
            f"{self.campaign.store.path} is being changed all the time by somebody else: run it again later"
        )

    def record(self, evaluation: Evaluation) -> None:
        """Keep one result."""
        row = self.open[evaluation.string]
        value, failure = self._judged(evaluation)
        entry = NewMeasurement(
            row.string, row.key, value, failure, suggestion=row.name, details={"seconds": evaluation.seconds}
        )
        with self.campaign.store.transaction("record", {"string": row.string}) as change:
            change.add_measurements([entry])
        del self.open[evaluation.string]
        self.evaluated += 1
        if self.on_evaluation is not None:
            self.on_evaluation(evaluation)
        self._complain(failure)

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
                f"all {counts.failures} evaluations of the campaign failed, the last with: {failure}. Mend the "
                "objective, then begin another campaign, or take results back with seqopt campaign undo"
            )
