"""One call of an objective, and the judgement of what it returns: a value or a failure for each string."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

ObjectiveFunction = Callable[[list[str]], npt.ArrayLike]
"""From a list of strings to as many numbers."""

OK, FAILED = "ok", "failed"

_IS_GIVEN = "it is given a list of strings and must return a list with one number for each"

_ABOUT_A_LIST = re.compile(r"\blist\b")


@dataclass(frozen=True)
class Evaluation:
    """What came of evaluating one string.

    Attributes:
        string: The string.
        value: Its finite value, or NaN when it failed.
        status: ``"ok"`` or ``"failed"``.
        error: Why it failed, in one line; empty when it did not.
        seconds: How long the objective took; of a chunk, an equal share.
    """

    string: str
    value: float
    status: str
    error: str = ""
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether there is a value."""
        return self.status == OK


def call(objective: ObjectiveFunction, strings: Sequence[str]) -> list[Evaluation] | None:
    """Call ``objective`` once on ``strings`` and judge what it returns; only `KeyboardInterrupt` gets out of it.

    Args:
        objective: From a list of strings to as many numbers.
        strings: At least one string.

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
        judged = _judged(objective(list(strings)), len(strings))
    # An objective that calls sys.exit has failed; it must not end the search.
    except (Exception, SystemExit) as problem:
        judged = _described_with_hint(problem)
    seconds = (time.perf_counter() - start) / len(strings)
    if isinstance(judged, str):
        return [failure(strings[0], judged, seconds)] if len(strings) == 1 else None
    return [
        Evaluation(string, value, FAILED if error else OK, error, seconds)
        for string, (value, error) in zip(strings, judged, strict=True)
    ]


def failure(string: str, error: str, seconds: float = 0.0) -> Evaluation:
    """The result of a string that has failed."""
    return Evaluation(string, math.nan, FAILED, error, seconds)


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


def _judged(returned: Any, n: int) -> list[tuple[float, str]] | str:
    """A value, or why there is none, for each of ``n`` strings; why not, if that cannot be told."""
    strings = "1 string" if n == 1 else f"{n} strings"
    if returned is None:
        return "the objective returned None, expected one number for one string"
    if isinstance(returned, str | bytes):
        return f"the objective returned {returned!r}, expected a number"
    if getattr(returned, "ndim", None) == 0 or not hasattr(returned, "__iter__"):
        # A function of one string, such as len, applied to a list would score every string alike.
        return f"the objective returned {returned!r}: {_IS_GIVEN}"
    # A matrix of one row or column, as some models return, is one value per string only if it holds as many.
    values = list(returned.reshape(-1)) if hasattr(returned, "reshape") else list(returned)
    if len(values) != n:
        return f"the objective returned {len(values)} values, expected {n} for {strings}"
    return [_judged_value(value) for value in values]


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
