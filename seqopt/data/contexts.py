"""The ways in which the strings of a search can be measured."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from seqopt.data.query import Context, ContextValue, Query, as_context
from seqopt.errors import InputError
from seqopt.utils.config import Configurable

BEGINNING = 2
"""Plates on which a search begins that knows none: fewer would not tell what they have in common."""


@dataclass(frozen=True)
class Contexts(Configurable):
    """Which contexts are possible, which one is meant, and what a measurement costs.

    The target may be the empty context, without being possible: a quantity that cannot be measured itself, such as the
    mean over folds, or what all plates have in common. It is `latent` then, and every measurement has to say its
    context.

    A variable may be *open*: besides its known values, every text is a possible one, as new plates come up while a
    search runs.

    Attributes:
        possible: All of them that are known, in the order in which they are offered.
        target: The context whose value is optimised; one of ``possible``, or empty.
        costs: Cost of a measurement in each, positive.
        open: The variable that may have further values, of which the contexts then consist.
        open_cost: Cost of a measurement in a context that is not among ``possible``, positive.

    Raises:
        InputError: For a target that is not possible, no context, a context that is there twice, a cost that is not
            positive, or an open variable beside others.

    Example:
        >>> contexts = Contexts.of_levels("fidelity", {"docking": 0.01, "assay": 1.0}, target="assay")
        >>> contexts.cost(Query("CCO", {"fidelity": "docking"}))
        0.01
    """

    possible: tuple[Context, ...]
    target: Context
    costs: tuple[float, ...]
    open: str | None = None
    open_cost: float = 1.0

    def __post_init__(self) -> None:
        # In their one form, also where they were read from a file.
        object.__setattr__(self, "possible", tuple(map(as_context, self.possible)))
        object.__setattr__(self, "target", as_context(self.target))
        object.__setattr__(self, "costs", tuple(map(float, self.costs)))
        object.__setattr__(self, "open_cost", float(self.open_cost))
        if len(set(self.possible)) < len(self.possible):
            raise InputError("a context is given twice")
        if not self.possible and self.open is None:
            raise InputError("there is no way to measure: give at least one context")
        for name in {part for context in self.possible for part, _ in context}:
            levels = {value for context in self.possible for part, value in context if part == name}
            alike = [text for text in levels if isinstance(text, str) and _number(text) in levels]
            if alike:
                raise InputError(f"the context {name!r} may be {alike[0]!r}, a text, and the same number: keep one")
        if self.target and self.target not in self.possible:
            raise InputError(f"the target {written(self.target)} is not among {self._listed()}")
        if len(self.costs) != len(self.possible):
            raise InputError(f"{len(self.possible)} contexts but {len(self.costs)} costs; give one for each")
        for context, cost in zip(self.possible, self.costs, strict=True):
            if not 0 < cost < float("inf"):
                raise InputError(f"the cost of {written(context)} is {cost}; expected a positive number")
        if self.open is not None:
            self._check_open(self.open)

    def _check_open(self, name: str) -> None:
        if not isinstance(name, str) or not name:
            raise InputError(f"the open variable is {name!r}; expected its name")
        if not 0 < self.open_cost < float("inf"):
            raise InputError(f"the cost of a new {name} is {self.open_cost}; expected a positive number")
        if self.target:
            raise InputError(
                f"the target is {written(self.target)}; with {name} open it is what all have in common: ()"
            )
        for context in self.possible:
            if not (len(context) == 1 and context[0][0] == name and isinstance(context[0][1], str)):
                raise InputError(f"{written(context)} is not a {name} named by a text, which alone is open here")

    @property
    def latent(self) -> bool:
        """Whether the target cannot be measured itself."""
        return self.target not in self.possible

    @property
    def names(self) -> tuple[str, ...]:
        """What contexts differ in, in alphabetical order."""
        found = {part for context in self.possible for part, _ in context}
        return tuple(sorted(found if self.open is None else found | {self.open}))

    def config_arguments(self) -> dict[str, Any]:
        """See `seqopt.utils.config.Configurable`; what closed contexts are described by has not changed."""
        found: dict[str, Any] = {"possible": self.possible, "target": self.target, "costs": self.costs}
        return found if self.open is None else found | {"open": self.open, "open_cost": self.open_cost}

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

    @classmethod
    def of_folds(cls, name: str, levels: Sequence[ContextValue], cost: float = 1.0) -> Contexts:
        """Contexts whose mean is the target: folds of a cross-validation, tables of repeats.

        Args:
            name: What differs, such as ``"fold"``.
            levels: Its values.
            cost: Of a measurement in any of them.

        Raises:
            InputError: As the class says.

        Example:
            >>> contexts = Contexts.of_folds("fold", [1, 2, 3])
            >>> contexts.latent, contexts.target
            (True, ())
        """
        return cls(tuple(as_context({name: level}) for level in levels), (), (cost,) * len(levels))

    @classmethod
    def of_plates(cls, name: str = "plate", known: Sequence[str] = (), cost: float = 1.0) -> Contexts:
        """Contexts of which there can always be one more, whose common part is the target: plates, seeds.

        Args:
            name: What differs.
            known: Those there are.
            cost: Of a measurement on any of them.

        Raises:
            InputError: As the class says.

        Example:
            >>> contexts = Contexts.of_plates(known=["P1"])
            >>> contexts.check((("plate", "anything"),))
            >>> contexts.fresh([])
            (('plate', 'P2'),)
        """
        return cls(tuple(as_context({name: plate}) for plate in known), (), (cost,) * len(known), name, cost)

    def cost(self, query: Query) -> float:
        """What a measurement costs.

        Raises:
            InputError: If its context is not possible.
        """
        self.check(query.context)
        return self.costs[self.possible.index(query.context)] if query.context in self.possible else self.open_cost

    def fresh(self, used: Iterable[Context | str]) -> Context:
        """The next value of the open variable: P1, P2, ..., the first that is neither known nor used.

        Args:
            used: Contexts, or values of the variable, that there have been.

        Raises:
            InputError: If no variable is open.

        Example:
            >>> Contexts.of_plates().fresh(["P1", (("plate", "P2"),)])
            (('plate', 'P3'),)
        """
        if self.open is None:
            raise InputError(f"no variable of these contexts is open: they are {self._listed()}")
        taken = {value for context in self.possible for _, value in context}
        for one in used:
            taken |= {one} if isinstance(one, str) else {value for part, value in one if part == self.open}
        return as_context({self.open: next(name for n in count(1) if (name := f"P{n}") not in taken)})

    def beginning(self, place: int) -> Context:
        """How a string is measured where nothing has been learned yet: as the target or, if that is latent, in turn.

        Args:
            place: How many strings have been asked for or told before. Where no plates are known there are two.

        Example:
            >>> folds = Contexts.of_folds("fold", ["a", "b"])
            >>> [folds.beginning(place)[0][1] for place in range(3)]
            ['a', 'b', 'a']
            >>> Contexts.of_plates().beginning(1)
            (('plate', 'P2'),)
        """
        if not self.latent:
            return self.target
        if self.possible:
            return self.possible[place % len(self.possible)]
        first = self.fresh(())
        return (first, self.fresh([first]))[place % BEGINNING]

    def check(self, context: Context) -> None:
        """Refuse a context that is not possible.

        Raises:
            InputError: Naming it and those that are.
        """
        if context in self.possible or self._is_open(context):
            return
        if not context and self.latent:
            names = " and ".join(self.names)
            one = self.beginning(0)
            raise InputError(
                f"the target, {self._meant()}, cannot be measured itself: say on which {names} it was measured, such "
                f"as Query('...', {dict(one)!r})"
            )
        further = "" if self.open is None else f"any {self.open} named by a text"
        known = ", ".join(filter(None, [self._listed(), further]))
        raise InputError(f"the context {written(context)} is not one of this search: it has {known}")

    def level(self, name: str, text: str) -> ContextValue:
        """One part of a context as somebody wrote it: a text in any case, or a number that is written in any way.

        Raises:
            InputError: If none of the possible contexts has it; the message names those that some have.
        """
        known = list(dict.fromkeys(value for context in self.possible for part, value in context if part == name))
        for value in known:
            if value == text or (isinstance(value, float) and _number(text) == value):
                return value
        if name == self.open:
            return as_context({name: text})[0][1]
        if not known:
            names = ", ".join(self.names)
            raise InputError(f"is said of {name}, which this search does not have: its contexts have {names}")
        alike = [value for value in known if isinstance(value, str) and value.casefold() == text.casefold()]
        if len(alike) == 1:
            return alike[0]
        listed = ", ".join(f"{value:g}" if isinstance(value, float) else value for value in known)
        raise InputError(f"is not a {name} of this search: expected one of {listed}")

    def queries(self, keys: Sequence[str]) -> list[Query]:
        """Every string in every known context: all strings in the first, all in the second, and so on."""
        return [Query(key, context) for context in self.possible for key in keys]

    def _is_open(self, context: Context) -> bool:
        return len(context) == 1 and context[0][0] == self.open and isinstance(context[0][1], str)

    def _meant(self) -> str:
        if self.open is not None:
            return f"what every {self.open} has in common"
        return f"the mean over {self._listed()}"

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
