"""Why evaluations failed: the same reason told of many strings, counted, and noticed when it comes again and again."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from seqopt.errors import InputError, StoppedRunError

if TYPE_CHECKING:
    import pandas as pd

    from seqopt.evaluation import Evaluation

logger = logging.getLogger(__name__)

tracebacks = logging.getLogger("seqopt.tracebacks")
"""At level DEBUG, told of the traceback of the objective's exceptions, once for each reason."""

STOP_AFTER = 10
"""Failures in a row, all for the same reason, after which a run stops. Where every third evaluation fails for one
reason, one run of 120 evaluations in eight hundred stops by chance; where every second does, one in twenty."""

NEVER_BEFORE = 5
"""Times the initial design that everything may fail, for whatever reasons. Where one string in fifteen can be
evaluated, the first twenty fail in one run of four, and a hundred in one of a thousand."""

UNTOLD = "no reason given"

_STRING = "..."


def reason_of(error: str, string: str) -> str:
    """A failure's reason without the string in it, so that it can be compared with that of another string.

    Example:
        >>> reason_of("KeyError: 'CCO'", "CCO")
        "KeyError: '...'"
    """
    # A string of one letter is in any text.
    return (error.replace(string, _STRING) if len(string) > 1 else error) or UNTOLD


def tally(failures: Iterable[tuple[str, str]]) -> dict[str, int]:
    """How many evaluations failed for each reason, the commonest first.

    Args:
        failures: The reason and the string of each failure.

    Example:
        >>> tally([("timed out after 5 s", "CCO"), ("KeyError: 'CCN'", "CCN"), ("KeyError: 'CCS'", "CCS")])
        {"KeyError: '...'": 2, 'timed out after 5 s': 1}
    """
    return dict(Counter(reason_of(error, string) for error, string in failures).most_common())


def failures_in(evaluations: pd.DataFrame) -> dict[str, int]:
    """The same of a table of evaluations, as a run exports it."""
    failed = evaluations[evaluations["status"] == "failed"]
    return tally(zip(failed["error"].fillna("").astype(str), failed["string"].astype(str), strict=True))


def broken(reasons: Sequence[str], initial: int) -> bool:
    """Whether an objective that has never returned a value is broken, so that a run should not go on.

    It is where all its failures are exceptions of one type, or time-outs. Different ones, and NaN, may come of strings
    of which few can be evaluated: then a run goes on at random, but not for ever where NaN is all that comes.

    Args:
        reasons: Why every evaluation so far has failed, at least one.
        initial: Evaluations of the initial design.

    Example:
        >>> broken(["OSError: no licence", "OSError: no file"], 2), broken(["the objective returned nan"] * 2, 2)
        (True, False)
    """
    from seqopt.evaluation import ANSWERED_NAN

    if len(reasons) < initial:
        return False
    if len(reasons) >= NEVER_BEFORE * initial:
        return True
    kinds = {reason.split(":")[0] for reason in reasons}
    return len(kinds) == 1 and kinds != {ANSWERED_NAN}


def lost_reason(failure: str | None, lost: str | None) -> str | None:
    """The reason of a failure, or of a loss, as it is kept.

    Raises:
        InputError: If both are given, or a loss has no reason.

    Example:
        >>> lost_reason(None, "the robot dropped it")
        'lost: the robot dropped it'
    """
    if lost is None:
        return failure
    if failure is not None:
        raise InputError("a result failed or was lost, not both: give one reason")
    if not lost.strip():
        raise InputError("a loss needs a reason: say what happened")
    from seqopt.utils.losses import LOST

    return f"{LOST}{lost.strip()}"


class FailureWatch:
    """Sees to it that a run does not spend its budget on an objective that does not work.

    Args:
        warn_after: Failures in a row, for whatever reasons, after which it warns, again and again.
        stop_after: Failures in a row, all for the same reason, after which the run stops; `None` for never. An
            objective may return NaN as often as it likes; one that returns nothing else is stopped by `broken`.
    """

    def __init__(self, warn_after: int, stop_after: int | None) -> None:
        self.warn_after = warn_after
        self.stop_after = stop_after
        self.succeeded = False
        self._failed = self._same = 0
        self._last: Evaluation | None = None
        self._reason = ""
        self._traced: set[str] = set()

    def check_shape(self, evaluation: Evaluation) -> None:
        """Stop a run whose objective does not return one value for each string: before that is taken for a failure of
        its strings, and before more is spent on it.

        Raises:
            StoppedRunError: If the objective is wrong and has returned no value in this run.
        """
        if evaluation.misshapen and not self.succeeded:
            raise StoppedRunError(
                f"{evaluation.error}. Nothing was recorded for {evaluation.string!r}: fix the objective, then resume"
            )

    def note(self, evaluation: Evaluation) -> None:
        """Count an evaluation; warn if none has succeeded for long."""
        from seqopt.evaluation import ANSWERED_NAN

        if evaluation.ok:
            self.succeeded, self._failed, self._same, self._reason = True, 0, 0, ""
            return
        reason = reason_of(evaluation.error, evaluation.string)
        # NaN is the objective's answer for what cannot be scored, however often that comes.
        deliberate = evaluation.error == ANSWERED_NAN
        self._same = 0 if deliberate else self._same + 1 if reason == self._reason else 1
        self._reason, self._last = reason, evaluation
        self._failed += 1
        if evaluation.traceback and reason not in self._traced:
            self._traced.add(reason)
            tracebacks.debug("%r failed:\n%s", evaluation.string, evaluation.traceback)
        if self._failed % self.warn_after == 0:
            logger.warning(
                "the last %d evaluations failed, the last with: %s", self._failed, evaluation.error or UNTOLD
            )

    def stop(self) -> None:
        """Stop a run that fails for the same reason again and again.

        Raises:
            StoppedRunError: After ``stop_after`` such failures.
        """
        if self.stop_after is None or self._same < self.stop_after or self._last is None:
            return
        raise stopped(
            f"the last {self._same} evaluations failed for the same reason: {self._last.error or UNTOLD}. Everything "
            "measured is kept: fix the objective, then resume. If so many failures are to be expected, allow more "
            "(stop_after_failures=, --stop-after-failures)",
            self._last,
        )


def stopped(message: str, evaluation: Evaluation) -> StoppedRunError:
    """The error of a run that is stopped, with the traceback of an evaluation that failed, if there is one."""
    error = StoppedRunError(message)
    if evaluation.traceback:
        error.add_note(f"The objective, for {evaluation.string!r}:\n{evaluation.traceback}")
    return error
