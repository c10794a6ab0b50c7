"""One call of an objective, and the judgement of what it returns: values or a failure for each string."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from seqopt.data import Context, Item, Query, context_of, key_of

ObjectiveFunction = Callable[[list[str]], npt.ArrayLike]
"""From a list of strings to as many numbers, or rows of numbers where there are several outcomes."""

QueryObjective = Callable[[list[Query]], npt.ArrayLike]
"""The same where there are several ways to measure: from a list of queries, whose ``key`` is the string."""

OK, FAILED = "ok", "failed"

_IS_GIVEN = "it is given a list of strings and must return a list with one number for each"

_ABOUT_A_LIST = re.compile(r"\blist\b")


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
    """

    string: str
    value: float
    status: str
    error: str = ""
    seconds: float = 0.0
    context: Context = ()
    further: tuple[float, ...] = ()

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
    try:
        judged = _judged(objective(list(items)), len(items), columns)  # type: ignore[arg-type]
    # An objective that calls sys.exit has failed; it must not end the search.
    except (Exception, SystemExit) as problem:
        judged = _described_with_hint(problem)
    seconds = (time.perf_counter() - start) / len(items)
    if isinstance(judged, str):
        return [failure(items[0], judged, seconds)] if len(items) == 1 else None
    return [
        Evaluation(key_of(item), values[0], FAILED if error else OK, error, seconds, context_of(item), values[1:])
        for item, (values, error) in zip(items, judged, strict=True)
    ]


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


def _described_with_hint(error: BaseException) -> str:
    described = describe(error)
    # What a function of one string does with a list: 'list' object has no attribute 'count', or MolFromSmiles(list).
    if isinstance(error, TypeError | AttributeError) and _ABOUT_A_LIST.search(described):
        return f"{described} (is this a function of one string? An objective gets a list: {_IS_GIVEN})"
    return described


def _judged(returned: Any, n: int, columns: int) -> list[tuple[tuple[float, ...], str]] | str:
    """Values, or why there are none, for each of ``n`` strings; why not, if that cannot be told."""
    strings = "1 string" if n == 1 else f"{n} strings"
    if returned is None:
        return "the objective returned None, expected one number for one string"
    if isinstance(returned, str | bytes):
        return f"the objective returned {returned!r}, expected a number"
    if getattr(returned, "ndim", None) == 0 or not hasattr(returned, "__iter__"):
        # A function of one string, such as len, applied to a list would score every string alike.
        return f"the objective returned {returned!r}: {_IS_GIVEN}"
    if columns > 1:
        # Of a table of pandas, a list would hold the names of columns.
        rows = returned.to_numpy() if hasattr(returned, "to_numpy") else returned
        return _judged_rows(list(rows), n, columns, strings)
    # A matrix of one row or column, as some models return, is one value per string only if it holds as many.
    values = list(returned.reshape(-1)) if hasattr(returned, "reshape") else list(returned)
    if len(values) != n:
        return f"the objective returned {len(values)} values, expected {n} for {strings}"
    judged = [_judged_value(value) for value in values]
    return [((value,), error) for value, error in judged]


def _judged_rows(rows: list[Any], n: int, columns: int, strings: str) -> list[tuple[tuple[float, ...], str]] | str:
    """As `_judged`, of a row of numbers for each string; what is no value of one outcome does not harm the others."""
    if len(rows) != n:
        return f"the objective returned {len(rows)} rows, expected {n} for {strings}, with {columns} values each"
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
        return math.nan, f"the objective returned {number}"
    # A database does not tell -0.0 from 0.0, and a run is resumed from one.
    return number + 0.0, ""
