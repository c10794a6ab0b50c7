"""The ways in which the strings of a search can be measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from seqopt.data.query import Context, ContextValue, Query, as_context
from seqopt.errors import InputError
from seqopt.utils.config import Configurable


@dataclass(frozen=True)
class Contexts(Configurable):
    """Which contexts are possible, which one is meant, and what a measurement costs.

    Attributes:
        possible: All of them, in the order in which they are offered.
        target: The context whose value is optimised; one of ``possible``.
        costs: Cost of a measurement in each, positive.

    Raises:
        InputError: For a target that is not possible, a context that is there twice, or a cost that is not positive.

    Example:
        >>> contexts = Contexts.of_levels("fidelity", {"docking": 0.01, "assay": 1.0}, target="assay")
        >>> contexts.cost(Query("CCO", {"fidelity": "docking"}))
        0.01
    """

    possible: tuple[Context, ...]
    target: Context
    costs: tuple[float, ...]

    def __post_init__(self) -> None:
        # In their one form, also where they were read from a file.
        object.__setattr__(self, "possible", tuple(map(as_context, self.possible)))
        object.__setattr__(self, "target", as_context(self.target))
        object.__setattr__(self, "costs", tuple(map(float, self.costs)))
        if len(set(self.possible)) < len(self.possible):
            raise InputError("a context is given twice")
        for name in {part for context in self.possible for part, _ in context}:
            levels = {value for context in self.possible for part, value in context if part == name}
            alike = [text for text in levels if isinstance(text, str) and _number(text) in levels]
            if alike:
                raise InputError(f"the context {name!r} may be {alike[0]!r}, a text, and the same number: keep one")
        if self.target not in self.possible:
            raise InputError(f"the target {written(self.target)} is not among {self._listed()}")
        if len(self.costs) != len(self.possible):
            raise InputError(f"{len(self.possible)} contexts but {len(self.costs)} costs; give one for each")
        for context, cost in zip(self.possible, self.costs, strict=True):
            if not 0 < cost < float("inf"):
                raise InputError(f"the cost of {written(context)} is {cost}; expected a positive number")

    @classmethod
    def of_levels(cls, name: str, costs: Mapping[ContextValue, float], target: ContextValue) -> Contexts:
        """Contexts that differ in one thing.

        Args:
            name: What differs, such as ``"fidelity"``.
            costs: Its possible values, and what a measurement costs at each.
            target: The value that is meant.
        """
        possible = tuple(as_context({name: level}) for level in costs)
        return cls(possible, as_context({name: target}), tuple(map(float, costs.values())))

    def cost(self, query: Query) -> float:
        """What a measurement costs.

        Raises:
            InputError: If its context is not possible.
        """
        self.check(query.context)
        return self.costs[self.possible.index(query.context)]

    def check(self, context: Context) -> None:
        """Refuse a context that is not possible.

        Raises:
            InputError: Naming it and those that are.
        """
        if context not in self.possible:
            raise InputError(f"the context {written(context)} is not one of this search: it has {self._listed()}")

    def level(self, name: str, text: str) -> ContextValue:
        """One part of a context as somebody wrote it: a text, or a number that is written in any way.

        Raises:
            InputError: If none of the possible contexts has it; the message names those that some have.
        """
        known = list(dict.fromkeys(value for context in self.possible for part, value in context if part == name))
        for value in known:
            if value == text or (isinstance(value, float) and _number(text) == value):
                return value
        if not known:
            names = ", ".join(sorted({part for context in self.possible for part, _ in context}))
            raise InputError(f"is said of {name}, which this search does not have: its contexts have {names}")
        listed = ", ".join(f"{value:g}" if isinstance(value, float) else value for value in known)
        raise InputError(f"is not a {name} of this search: expected one of {listed}")

    def queries(self, keys: Sequence[str]) -> list[Query]:
        """Every string in every context: all strings in the first, all in the second, and so on."""
        return [Query(key, context) for context in self.possible for key in keys]

    def _listed(self) -> str:
        return ", ".join(map(written, self.possible))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def written(context: Context) -> str:
    """A context as text.

    Example:
        >>> written(as_context({"plate": "P1", "fidelity": 0.5}))
        'fidelity=0.5, plate=P1'
    """
    return ", ".join(f"{name}={value}" for name, value in context) or "no context"
