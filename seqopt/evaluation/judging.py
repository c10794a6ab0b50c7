"""One call of an objective, and the judgement of what it returns: values or a failure for each string."""

from __future__ import annotations

import math
import os
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any

import numpy.typing as npt

from seqopt.data import Context, Item, Query, context_of, key_of
from seqopt.evaluation.single import PROMPT_SECONDS, on_one, refuses_lists, remember, remembered

ObjectiveFunction = Callable[[list[str]], npt.ArrayLike]
"""From a list of strings to as many numbers, or rows of numbers where there are several outcomes."""

QueryObjective = Callable[[list[Query]], npt.ArrayLike]
"""The same where there are several ways to measure: from a list of queries, whose ``key`` is the string."""

ANSWERED_NAN = "the objective returned nan"
"""Why an evaluation failed whose objective works, and says that there is no value."""

OK, FAILED = "ok", "failed"

_IS_GIVEN = "it is given a list of strings and must return a list with one number for each"

_WAY_OUT = "annotate the parameter of a function of one string, def f(smiles: str), or wrap it: seqopt.per_string(f)"

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class _Misshapen(str):
    """Why there are no values, if that is a mistake in the objective and says nothing about a string."""


LONGEST_TRACEBACK = 10_000
"""Characters of a traceback that are kept, its end."""


@dataclass(frozen=True)
class Evaluation:
    """What came of evaluating one string.

    Attributes:
        string: The string.
        value: Its finite value, or NaN when it failed; the first of several outcomes.
        status: ``"ok"`` or ``"failed"``.
        error: Why it failed, in one line; empty when it did not.
        seconds: How long the objective took; of a chunk, an equal share.
        context: How the string was measured; empty where there is only one way.
        further: Values of the outcomes after the first, NaN where one was not measured.
        traceback: Where the objective raised its exception, as Python prints it; empty if it raised none.
        misshapen: Whether the objective returned something other than one value for each string. Then it is the
            objective that is wrong, not the string.
    """

    string: str
    value: float
    status: str
    error: str = ""
    seconds: float = 0.0
    context: Context = ()
    further: tuple[float, ...] = ()
    traceback: str = field(default="", repr=False, compare=False)
    misshapen: bool = field(default=False, repr=False, compare=False)

    @property
    def ok(self) -> bool:
        """Whether there is a value."""
        return self.status == OK

    @property
    def values(self) -> tuple[float, ...]:
        """Values of all outcomes, the objective first."""
        return (self.value, *self.further)

    @property
    def item(self) -> Item:
        """What was evaluated, as it was given."""
        return Query(self.string, self.context) if self.context else self.string


def call(
    objective: ObjectiveFunction | QueryObjective, items: Sequence[Item], columns: int = 1
) -> list[Evaluation] | None:
    """Call ``objective`` once on ``items`` and judge what it returns; only `KeyboardInterrupt` gets out of it.

    Args:
        objective: From a list of strings, or queries, to as many numbers, or rows of ``columns`` numbers.
        items: At least one string or query.
        columns: How many outcomes there are. Of several, those that are NaN were not measured; a string without any
            value has failed.

    Returns:
        One result per string, in their order. `None` if there are several strings and the call does not tell which of
        them is to blame: it raised an exception or returned another number of values. Then each has to be called alone.

    Example:
        >>> [result.value for result in call(lambda strings: [len(s) for s in strings], ["C", "CCO"])]
        [1.0, 3.0]
        >>> call(lambda strings: [1 / 0], ["C", "CCO"]) is None
        True
    """
    start = time.perf_counter()
    given, traced = list(items), ""
    single = len(items) == 1 and remembered(objective)
    try:
        returned = [on_one(objective, items[0])] if single else objective(given)  # type: ignore[arg-type]
        judged = _judged(returned, len(items), columns)
    # An objective that calls sys.exit has failed; it must not end the search.
    except (Exception, SystemExit) as problem:
        traced = traced_to_objective(problem)
        judged = describe(problem)
        if len(items) == 1 and not single and refuses_lists(problem, given, judged):
            if time.perf_counter() - start < PROMPT_SECONDS and (one := _alone(objective, items[0], columns)):
                return [one]
            judged = f"{judged} (is this a function of one string? An objective gets a list: {_IS_GIVEN}; {_WAY_OUT})"
    seconds = (time.perf_counter() - start) / len(items)
    if isinstance(judged, str):
        if len(items) > 1:
            return None
        failed = failure(items[0], judged, seconds)
        return [replace(failed, traceback=traced, misshapen=isinstance(judged, _Misshapen))]
    return [
        Evaluation(key_of(item), values[0], FAILED if error else OK, error, seconds, context_of(item), values[1:])
        for item, (values, error) in zip(items, judged, strict=True)
    ]


def _alone(objective: ObjectiveFunction | QueryObjective, item: Item, columns: int) -> Evaluation | None:
    """The result of a string that is given to the objective without a list around it, which has raised an exception; if
    it has no value then, either, `None`.

    A function that fails for a list and returns a number for a string is one of a string: no number can be taken for
    the value of something else.
    """
    start = time.perf_counter()
    try:
        judged = _judged([on_one(objective, item)], 1, columns)
    except (Exception, SystemExit):
        return None
    if isinstance(judged, str) or judged[0][1]:
        return None
    remember(objective)
    seconds, (values, _) = time.perf_counter() - start, judged[0]
    return Evaluation(key_of(item), values[0], OK, "", seconds, context_of(item), values[1:])


def failure(item: Item, error: str, seconds: float = 0.0) -> Evaluation:
    """The result of a string that has failed."""
    return Evaluation(key_of(item), math.nan, FAILED, error, seconds, context_of(item))


def describe(error: BaseException) -> str:
    """An exception in one line: its type and message.

    Example:
        >>> describe(ValueError("too long"))
        'ValueError: too long'
    """
    message = " ".join(str(error).split())
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def traced_to_objective(error: BaseException) -> str:
    """The traceback of an exception from the objective's own code on; of a very long one its end."""
    trace: TracebackType | None = error.__traceback__
    while trace is not None and os.path.abspath(trace.tb_frame.f_code.co_filename).startswith(_PACKAGE):
        trace = trace.tb_next
    # Of seqopt's own objectives all is seqopt's.
    lines = traceback.format_exception(type(error), error, trace or error.__traceback__)
    return "".join(lines).rstrip()[-LONGEST_TRACEBACK:]


def _judged(returned: Any, n: int, columns: int) -> list[tuple[tuple[float, ...], str]] | str:
    """Values, or why there are none, for each of ``n`` strings; why not, if that cannot be told."""
    strings = "1 string" if n == 1 else f"{n} strings"
    if returned is None:
        return "the objective returned None, expected one number for one string"
    if isinstance(returned, str | bytes):
        return f"the objective returned {returned!r}, expected a number"
    if isinstance(returned, Mapping):
        # A list of it would be its keys.
        what = f"the objective returned a {type(returned).__name__}"
        return _Misshapen(f"{what}: {_IS_GIVEN}, in their order: [values[string] for string in strings]")
    if getattr(returned, "ndim", None) == 0 or not hasattr(returned, "__iter__"):
        # A function of one string, such as len, applied to a list would score every string alike.
        shown = returned.item() if hasattr(returned, "item") else returned
        # Some return NaN for what they cannot score, in whatever form.
        why = f"the objective returned {shown!r}: {_IS_GIVEN}; {_WAY_OUT}"
        return why if isinstance(shown, float) and math.isnan(shown) else _Misshapen(why)
    if columns > 1:
        # Of a table of pandas, a list would hold the names of columns.
        rows = returned.to_numpy() if hasattr(returned, "to_numpy") else returned
        return _judged_rows(list(rows), n, columns, strings)
    # A matrix of one row or column, as some models return, is one value per string only if it holds as many.
    values = list(returned.reshape(-1)) if hasattr(returned, "reshape") else list(returned)
    if len(values) != n:
        why = f"the objective returned {len(values)} values, expected {n} for {strings}"
        return _Misshapen(why) if values else why
    judged = [_judged_value(value) for value in values]
    return [((value,), error) for value, error in judged]


def _judged_rows(rows: list[Any], n: int, columns: int, strings: str) -> list[tuple[tuple[float, ...], str]] | str:
    """As `_judged`, of a row of numbers for each string; what is no value of one outcome does not harm the others."""
    if len(rows) != n:
        why = f"the objective returned {len(rows)} rows, expected {n} for {strings}, with {columns} values each"
        return _Misshapen(why) if rows else why
    found: list[tuple[tuple[float, ...], str]] = []
    for row in rows:
        try:
            cells = list(row)
        except TypeError:
            cells = [row]
        if isinstance(row, str | bytes) or len(cells) != columns:
            found.append(((math.nan,) * columns, f"the objective returned {row!r}, expected {columns} numbers"))
            continue
        judged = [_judged_value(cell) for cell in cells]
        values = tuple(value for value, _ in judged)
        found.append((values, judged[0][1] if all(map(math.isnan, values)) else ""))
    return found


def _judged_value(value: Any) -> tuple[float, str]:
    if isinstance(value, str | bytes):
        return math.nan, f"the objective returned {value!r}, expected a number"
    try:
        number = float(value)
    except (TypeError, ValueError):
        return math.nan, f"the objective returned {value!r}, expected a number"
    if not math.isfinite(number):
        return math.nan, ANSWERED_NAN if math.isnan(number) else f"the objective returned {number}"
    # A database does not tell -0.0 from 0.0, and a run is resumed from one.
    return number + 0.0, ""
