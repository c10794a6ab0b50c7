"""Functions of one string as objectives: how they are recognised, and called for each string of a list."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from seqopt.data import Item, Query

PROMPT_SECONDS = 1.0
"""A function that has refused a list within this time has not done its work: giving it the string itself costs no
evaluation twice."""

REMEMBERED = 16
"""Functions of one string that are kept in mind, so that they are not given lists again."""

_ABOUT_A_LIST = re.compile(r"\blist\b")

_remembered: list[object] = []


@dataclass(frozen=True)
class PerString:
    """An objective made of a function of one string; see `per_string`."""

    function: Callable[[Any], Any]

    @property
    def name(self) -> str:
        """What the function is called."""
        own = getattr(self.function, "name", None) or getattr(self.function, "__qualname__", None)
        return str(own or type(self.function).__name__)

    def __call__(self, strings: Sequence[Any]) -> list[Any]:
        """The function's values, one for each string."""
        return [self.function(string) for string in strings]


def per_string(function: Callable[[Any], Any]) -> PerString:
    """An objective from a function of one string: it is called with each string of a list in turn.

    It can be sent to another process when the function can. A function whose parameter is annotated as ``str`` needs no
    such help.

    Args:
        function: From a string to a number, or to a row of numbers where there are several outcomes.

    Example:
        >>> count = per_string(lambda smiles: smiles.count("C"))
        >>> count(["CCO", "C"])
        [2, 1]
    """
    return PerString(function)


def takes_one_string(objective: object) -> bool:
    """Whether a function says, by the annotation of its first parameter, that it takes one string and not a list.

    Example:
        >>> def weight(smiles: str) -> float: ...
        >>> def weights(smiles: list[str]) -> list[float]: ...
        >>> takes_one_string(weight), takes_one_string(weights), takes_one_string(len)
        (True, False, False)
    """
    if not callable(objective) or isinstance(objective, type):
        return False
    try:
        parameters = list(inspect.signature(objective).parameters.values())
    except (TypeError, ValueError):  # of a built-in function
        return False
    # With `from __future__ import annotations` they are text.
    return bool(parameters) and parameters[0].annotation in (str, Query, "str", "Query")


def remembered(objective: object) -> bool:
    """Whether an objective has turned out to be a function of one string."""
    return any(one is objective for one in _remembered)


def refuses_lists(error: BaseException, given: Sequence[Item], described: str) -> bool:
    """Whether an exception is what a function of one string raises when it is given a list.

    Args:
        error: What it raised.
        given: The list that it was given.
        described: The exception in words.
    """
    if isinstance(error, AttributeError) and error.obj is not None:
        return isinstance(error.obj, list) and error.obj == list(given)
    # What MolFromSmiles(list) raises, a TypeError of C++, names the type only.
    return isinstance(error, TypeError | AttributeError) and _ABOUT_A_LIST.search(described) is not None


def on_one(objective: Any, item: Item) -> Any:
    """What an objective returns for one string that is not in a list."""
    # An `Objective` would take the letters of a string for a list.
    return getattr(objective, "on_one", objective)(item)


def remember(objective: object) -> None:
    """Give an objective one string at a time from now on."""
    _remembered.append(objective)
    del _remembered[:-REMEMBERED]
