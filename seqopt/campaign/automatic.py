"""The one loop: suggestions of a campaign are evaluated by a function, and the results recorded, until the budget ends.

It is what `seqopt.campaign.Campaign.run` and `seqopt.maximize` do. Suggestions are those that `Campaign.suggest` makes,
filters and all, and each result is recorded as by hand, so people and functions can work on one campaign in turn.
"""

from __future__ import annotations

import logging
import math
import sqlite3
import sys
import time
from collections import deque
from collections.abc import Callable, Sized
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from seqopt.campaign.errors import CampaignError, StaleStateError
from seqopt.campaign.failures import STOP_AFTER, FailureWatch, broken, stopped
from seqopt.campaign.journal import Step, cost_of
from seqopt.campaign.rows import LARGEST_VALUE, NewMeasurement, Suggestion, storable
from seqopt.data import Contexts, Item, Outcome, Query
from seqopt.data.transforms import check_value
from seqopt.errors import ExhaustedError, InputError
from seqopt.evaluation import FAILED, Evaluation, Evaluator
from seqopt.spaces import PoolSpace
from seqopt.utils.arguments import checked_integer
from seqopt.utils.progress import awaiting

if TYPE_CHECKING:
    from seqopt.campaign.campaign import Campaign
    from seqopt.campaign.session import Session
    from seqopt.optimizer import Optimizer
    from seqopt.strategies.initial import Beginning

logger = logging.getLogger(__name__)

TRIES = 5
"""How often a suggestion is worked out anew because somebody else has changed the campaign meanwhile."""

PATIENCE = 600.0
"""Seconds for which a run waits for another process to finish writing: a result may have cost more than that."""

ROUNDING = 1e-9
"""Relative error of sums of costs."""

SHOWN = 60
"""Symbols of a string that a status line shows."""

_PAUSE_SECONDS = 0.1

T = TypeVar("T")


def useful_workers(workers: int, at_once: int) -> int:
    """As many workers as can be busy: processes that would never be given anything are not started.

    Args:
        workers: How many the user allows.
        at_once: The largest number of strings that can be evaluated at a time.
    """
    return min(workers, max(at_once, 1))


def check_budget(budget_cost: float | None, contexts: Contexts | None, initial: int, beginning: Beginning) -> None:
    """Refuse a budget in cost that does not pay for the beginning of a search.

    Args:
        budget_cost: The budget; `None` for none.
        contexts: The ways to measure.
        initial: Measurements of the initial design.
        beginning: How each of its strings is measured.

    Raises:
        InputError: If it is not a positive number, there are no costs, or it is smaller than one measurement of the
            target or than the initial design; or than a screen and one measurement of the target.
    """
    if budget_cost is None:
        return
    if contexts is None:
        raise InputError(
            "a budget in cost (budget_cost, --budget-cost) needs several ways to measure: give fidelities, or count "
            "evaluations with budget (--budget)"
        )
    if isinstance(budget_cost, bool) or not 0 < budget_cost < math.inf:
        raise InputError(f"the budget in cost is {budget_cost!r}; expected a positive number")
    if contexts.latent:
        # Nothing measures the target itself; what comes first takes turns.
        one, what = (
            min([*contexts.costs, *([] if contexts.open is None else [contexts.open_cost])]),
            "the cheapest measurement",
        )
    else:
        one, what = contexts.cost(Query("any", contexts.target)), "one measurement of the target"
    if budget_cost < one * (1 - ROUNDING):
        raise InputError(
            f"the budget in cost is {budget_cost:g}, and {what} costs {one:g}: raise it, or give costs in the same unit"
        )
    cost = beginning_cost(contexts, initial, beginning)
    # After a small screen nothing is known of the target yet.
    also = one if beginning == "cheap" else 0.0
    if budget_cost < (cost + also) * (1 - ROUNDING):
        raise InputError(
            f"the {initial} initial measurements{f' and {what}' if also else ''} cost {cost + also:g}, more than the "
            f"budget of {budget_cost:g}: lower initial (--initial), or raise the budget"
        )


def beginning_cost(contexts: Contexts, initial: int, beginning: Beginning) -> float:
    """What the initial design costs.

    Args:
        contexts: The ways to measure.
        initial: Its measurements.
        beginning: How each of its strings is measured; the target comes first.

    Example:
        >>> contexts = Contexts.of_levels("fidelity", {"docking": 0.1, "assay": 1.0}, target="assay")
        >>> [round(beginning_cost(contexts, 5, beginning), 6) for beginning in ("all", "target", "cheap")]
        [3.2, 5.0, 0.5]
        >>> folds = Contexts(((("fold", "a"),), (("fold", "b"),)), (), (1.0, 3.0))
        >>> beginning_cost(folds, 3, "target")
        5.0
    """
    if beginning == "target":
        return sum(contexts.cost(Query("any", contexts.beginning(place))) for place in range(initial))
    from seqopt.strategies.initial import ways_of

    costs = [contexts.cost(Query("any", way)) for way in ways_of(beginning, contexts)]
    return (initial // len(costs)) * sum(costs) + sum(costs[: initial % len(costs)])


def dearest_of(contexts: Contexts) -> float:
    """What the dearest measurement costs."""
    return max([*contexts.costs, *([] if contexts.open is None else [contexts.open_cost])])


def drive(
    campaign: Campaign,
    evaluator: Evaluator,
    results: int,
    *,
    executor: bool = False,
    asynchronous: bool = False,
    initial_at_once: bool = False,
    explained: bool = True,
    stop_after_failures: int | None = STOP_AFTER,
    budget_cost: float | None = None,
    on_evaluation: Callable[[Evaluation], Any] | None = None,
    on_step: Callable[[Step], Any] | None = None,
) -> int:
    """Evaluate suggestions until a campaign holds enough results. Open suggestions come first.

    Args:
        campaign: Suggests and records.
        evaluator: Evaluates.
        results: Values and failures in the campaign when it ends.
        executor: Whether the evaluator has an executor, which is given whole batches.
        asynchronous: Whether a free worker gets another string at once, instead of batches.
        initial_at_once: Whether what the initial design lacks is one batch, whatever the batch size is.
        explained: Whether suggestions are kept with the reasons for them.
        stop_after_failures: Failures in a row, all for the same reason, after which the run stops; `None` for never.
            Only those of this call count.
        budget_cost: What all measurements of the campaign may cost: it ends when what is left is less than the most
            expensive one costs.
        on_evaluation: Called after each evaluation.
        on_step: Called after each batch or, of an asynchronous search, after as many results, and after those of the
            initial design.

    Returns:
        How many evaluations were made.

    Raises:
        InputError: If ``stop_after_failures`` is not an integer from 1, or `None`.
        StoppedRunError: If nothing has ever succeeded, as many times as the initial design has strings and always
            with an exception of one type, or five times as many for whatever reasons; if
            ``stop_after_failures`` evaluations in a row failed for the same reason; or if the objective
            does not return one value for each string. The last is noticed at once, and nothing is recorded
            then.
        CampaignError: If the campaign cannot be written; the message holds the result that could not be recorded.
    """
    if stop_after_failures is not None:
        checked_integer("stop_after_failures", stop_after_failures, 1, "expected an integer, or None for never")
    watch = FailureWatch(max(campaign.store.settings.batch_size, 3), stop_after_failures)
    driver = _Driver(campaign, results, asynchronous, initial_at_once, explained, watch, on_evaluation, on_step)
    driver.budget_cost = budget_cost
    if asynchronous:
        evaluator.keep_busy(driver.supply, on_result=driver.record)
    elif executor:
        while batch := driver.batch():
            evaluator.evaluate(batch, on_result=driver.record)
    else:
        # In portions, so that what is withdrawn meanwhile is not evaluated.
        evaluator.keep_busy(driver.portion, on_result=driver.record, in_batches=True)
    driver.end()
    return driver.evaluated


class _Driver:
    """What waits, what is being evaluated, and how many results there are."""

    def __init__(
        self,
        campaign: Campaign,
        results: int,
        asynchronous: bool,
        initial_at_once: bool,
        explained: bool,
        watch: FailureWatch,
        on_evaluation: Callable[[Evaluation], Any] | None,
        on_step: Callable[[Step], Any] | None,
    ) -> None:
        self.campaign = campaign
        self.settings = campaign.store.settings
        self.outcomes = self.settings.outcomes()
        self.results = results
        self.asynchronous = asynchronous
        self.initial_at_once = initial_at_once
        self.explained = explained
        self.watch = watch
        self.on_evaluation = on_evaluation
        self.on_step = on_step
        self.evaluated = self.unreported = 0
        self.first_failure: Evaluation | None = None
        self.patience = PATIENCE
        self.budget_cost: float | None = None
        self.evaluating: dict[Item, Suggestion] = {}
        self.waiting = deque(self.session().open.values())
        self.since = time.perf_counter()

    def session(self) -> Session:
        """Where the campaign stands now, whoever has changed it."""
        return self.campaign.session()

    def supply(self, free: int) -> list[Item]:
        """At most ``free`` strings: open suggestions first, then new ones."""
        session = self.session()
        missing = _missing(session.optimizer)
        return self._next(session, free, min(free, missing) if missing > 0 else free)

    def portion(self, free: int) -> list[Item]:
        """At most ``free`` strings of a batch; a new batch only when the last one has come back."""
        session = self.session()
        return self._next(session, free, 0 if self.evaluating else self._batch_size(session))

    def batch(self) -> list[Item]:
        """The open suggestions, or else a new batch."""
        session = self.session()
        return self._next(session, sys.maxsize, self._batch_size(session))

    def _batch_size(self, session: Session) -> int:
        missing = _missing(session.optimizer)
        return missing if self.initial_at_once and missing > 0 else self.settings.batch_size

    def _next(self, session: Session, free: int, new: int) -> list[Item]:
        """At most ``free`` strings within the budget: of those that wait or, if none does, of ``new`` suggestions."""
        self.waiting = deque(row for row in self.waiting if row.name in session.open)
        left = self.results - session.journal.results - len(self.evaluating)
        if not self.waiting:
            for row in self._suggest(min(new, left, self._affordable(session)), left):
                if _item(row) in self.evaluating:
                    # Undone while it was being evaluated, and suggested anew: its result will answer this one.
                    self.evaluating[_item(row)] = row
                else:
                    self.waiting.append(row)
            self.since = time.perf_counter()
        rows: list[Suggestion] = []
        money = self._money(session)
        while self.waiting and len(rows) < min(free, left):
            money -= self._cost(session, self.waiting[0])
            if money < 0:
                break
            rows.append(self.waiting.popleft())
        self.evaluating.update((_item(row), row) for row in rows)
        self._say()
        return [_item(row) for row in rows]

    def _money(self, session: Session) -> float:
        """What may still be spent, rounded up by less than any cost."""
        if self.budget_cost is None:
            return math.inf
        spent = cost_of(session.optimizer, session.optimizer.observations.rows)
        return self.budget_cost * (1 + ROUNDING) - spent - sum(self._cost(session, r) for r in self.evaluating.values())

    def _affordable(self, session: Session) -> int:
        """How many may be suggested: none once the dearest cannot be paid for; the initial design was paid for at once.

        What a batch may cost in all is a matter of `_remaining`: of cheap measurements more can be paid for.
        """
        contexts, money = session.optimizer.contexts, self._money(session)
        missing = _missing(session.optimizer)
        if contexts is None or math.isinf(money):
            return sys.maxsize
        if missing > 0:
            return missing
        return sys.maxsize if money >= dearest_of(contexts) else 0

    def _cost(self, session: Session, row: Suggestion) -> float:
        contexts = session.optimizer.contexts
        return 1.0 if contexts is None else contexts.cost(Query(row.key, row.context))

    def _suggest(self, n: int, left: int) -> list[Suggestion]:
        if min(n, _unseen(self.session().optimizer)) < 1:
            return []
        for _ in range(TRIES):
            try:
                return self._patiently(
                    lambda: self.campaign.suggest_more(n, explained=self.explained, remaining=self._remaining(left))
                )
            except StaleStateError:
                continue
            except ExhaustedError:
                # That all has been suggested is the end of a run; that nothing could be is an error.
                if not self.session().journal.asked:
                    raise
                return []
        raise CampaignError(
            f"{self.campaign.store.path} is changed all the time by other processes: run it again later"
        )

    def _remaining(self, left: int) -> float | None:
        """Evaluations that are left, or what may be spent where there are several ways to measure."""
        session = self.session()
        if session.optimizer.contexts is None:
            return float(left)
        return None if self.budget_cost is None else self._money(session)

    def record(self, evaluation: Evaluation) -> None:
        """Keep one result."""
        evaluation = self._judged(evaluation)
        self.watch.check_shape(evaluation)
        row = self.evaluating[evaluation.item]
        if self.campaign.space.key(row.string) != row.key:
            raise InputError(
                f"{row.string!r} was evaluated and is still pending: key() of {type(self.campaign.space).__name__} "
                "gives a suggested string another key when it is told"
            )
        result = f"{row.string!r} " + (
            f"has the value {evaluation.value!r}" if evaluation.ok else f"failed ({evaluation.error})"
        )
        try:
            self._patiently(lambda: self._write(row, evaluation))
        except CampaignError as error:
            raise CampaignError(f"{result}, but that could not be recorded: {error}. Then record it by hand") from error
        except KeyboardInterrupt:
            self.patience = 0.0
            if not self._recorded(row, evaluation):
                logger.error("%s, but the run was interrupted before that was recorded: record it by hand", result)
            raise
        del self.evaluating[evaluation.item]
        self._say()
        self.watch.note(evaluation)
        if self.first_failure is None and not evaluation.ok:
            self.first_failure = evaluation
        self.evaluated += 1
        self.unreported += 1
        self.session()  # so that whoever listens finds the result there
        if self.on_evaluation is not None:
            self.on_evaluation(evaluation)
        self._note_step()
        self._complain(evaluation)
        self.watch.stop()

    def _say(self) -> None:
        """Let a status line name what is being evaluated."""
        first = next((row.string for row in self.evaluating.values()), None)
        more = f" and {len(self.evaluating) - 1:,} more" if len(self.evaluating) > 1 else ""
        awaiting("" if first is None else f"scoring {first[:SHOWN]}{more}")

    def end(self) -> None:
        """Report what is left of an asynchronous search."""
        if self.asynchronous:
            self._note_step(ended=True)

    def _note_step(self, *, ended: bool = False) -> None:
        """Report a step that the last result has completed."""
        if self.on_step is None or not self.unreported:
            return
        session = self.session()
        journal, optimizer = session.journal, session.optimizer
        if self.asynchronous:
            step = journal.last_step(optimizer, ended=ended)
        elif self.evaluating or not journal.asked or not journal.asked[-1].complete:
            return
        else:
            step = journal.batch_step(optimizer, journal.asked[-1])
            # Of several workers at once, what they took together.
            step = replace(step, seconds=step.seconds | {"evaluate": round(time.perf_counter() - self.since, 3)})
        if step is not None:
            self.unreported = 0
            self.on_step(step)

    def _write(self, row: Suggestion, evaluation: Evaluation) -> None:
        store = self.campaign.store
        with store.transaction("record", {"string": row.string}) as change:
            known = store.suggestion(row.name)
            gone = known is None or known.status in ("undone", "withdrawn")
            # A result is kept all the same.
            change.add_measurements([self._measurement(row, evaluation, None if gone else row.name)])

    def _measurement(self, row: Suggestion, evaluation: Evaluation, name: str | None) -> NewMeasurement:
        names = [outcome.name for outcome in self.outcomes[1:]]
        further = {name: value for name, value in zip(names, evaluation.further, strict=False) if not math.isnan(value)}
        return NewMeasurement(
            row.string,
            row.key,
            evaluation.value if evaluation.ok else None,
            None if evaluation.ok else storable(evaluation.error),
            suggestion=name,
            details={"seconds": evaluation.seconds},
            context=row.context,
            further=further,
        )

    def _recorded(self, row: Suggestion, evaluation: Evaluation) -> bool:
        """Whether a result is in the file: an interruption often comes at the end of the writing, which takes long."""
        result = self._measurement(row, evaluation, None)
        return any(
            (known.string, known.context, known.value, known.failure, known.details)
            == (result.string, result.context, result.value, result.failure, result.details)
            for known in self.campaign.store.measurements(key=row.key)
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

    def _judged(self, evaluation: Evaluation) -> Evaluation:
        """The result, as a failure if it has values that cannot be used."""
        if not evaluation.ok:
            return evaluation
        values, problems = [], []
        for outcome, value in zip(self.outcomes, evaluation.values, strict=True):
            problem = _unusable(value, outcome)
            if problem:
                problems.append(problem if len(self.outcomes) == 1 else f"{outcome.name}: {problem}")
            values.append(math.nan if problem else value)
        if all(map(math.isnan, values)):
            return replace(evaluation, value=math.nan, further=(), status=FAILED, error="; ".join(problems))
        # What is no value of one outcome harms no other; without one of the objective, an evaluation has failed.
        for problem in problems:
            logger.warning("%r: %s; it counts as not measured", evaluation.string, problem)
        found = replace(evaluation, value=values[0], further=tuple(values[1:]))
        if not math.isnan(values[0]):
            return found
        why = "; ".join(problems) or f"the objective returned no value of {self.outcomes[0].name}"
        return replace(found, status=FAILED, error=why)

    def _complain(self, evaluation: Evaluation) -> None:
        """Stop a search in which nothing has ever succeeded."""
        if not math.isnan(evaluation.value):
            return
        told = self.session().journal.told
        failed = [row for row in told if row.status == "failed"]
        if any(not math.isnan(row.value) for row in told):
            return
        if broken([str(row.details["error"]) for row in failed], self.settings.initial):
            first = failed[0]
            why = first.details["error"]
            raise stopped(
                f"all {len(failed)} evaluations so far failed, the first ({first.string!r}) with: {why}. Fix the "
                "objective, then resume. What failed is evaluated again if asked for: --resume --retry-failed "
                "(retry_failed=True), or seqopt campaign suggest --retry-failed",
                self.first_failure or evaluation,
            )


def _unusable(value: float, outcome: Outcome) -> str:
    """Why a number is no value of an outcome; empty if it is one, or there is none."""
    if math.isnan(value):
        return ""
    if not abs(value) <= LARGEST_VALUE:
        limit = f"; none may be larger than {LARGEST_VALUE:g}" if math.isfinite(value) else ""
        return f"the value is {value:g}{limit}"
    try:
        check_value(outcome.transform, value)
    except InputError as error:
        return str(error)
    return ""


def _item(row: Suggestion) -> Item:
    return Query(row.string, row.context) if row.context else row.string


def _missing(optimizer: Optimizer) -> int:
    """Strings that the initial design lacks."""
    return optimizer.initial - optimizer.size


def _unseen(optimizer: Optimizer) -> int:
    """Strings that may still be suggested, as far as that is known without drawing them."""
    space, seen = optimizer.space, optimizer.observations.seen
    if optimizer.allow_repeats or optimizer.contexts is not None:
        return sys.maxsize
    if isinstance(space, PoolSpace):
        # A pool may have learned from strings that it does not hold.
        return len(space) - sum(space.index_of(key) is not None for key in seen)
    return len(space) - len(seen) if isinstance(space, Sized) else sys.maxsize


def _is_busy(error: CampaignError) -> bool:
    """Whether a command was refused only because another process was writing."""
    cause = error.__cause__
    if not isinstance(cause, sqlite3.Error):
        return False
    return getattr(cause, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
