"""What is asked: a string, and how it is to be measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from seqopt.errors import InputError

ContextValue = float | str
"""A number (a fidelity between 0 and 1, say) or a name (an assay, a plate)."""

Context = tuple[tuple[str, ContextValue], ...]
"""Names and values, sorted by name; empty where there is only one way to measure."""


@dataclass(frozen=True, order=True)
class Query:
    """One measurement that can be made: of which string, and in which context.

    Args:
        key: Identity of the string, as its space says.
        context: Names and values (fidelity, plate, ...); a mapping is taken, too.

    Raises:
        InputError: If a name is given twice, or a value is neither a text nor a finite number.

    Example:
        >>> query = Query("CCO", {"fidelity": "docking"})
        >>> query.get("fidelity"), query == Query("CCO", (("fidelity", "docking"),))
        ('docking', True)
    """

    key: str
    context: Context = ()

    def __post_init__(self) -> None:
        if self.context != ():  # most have none, and there may be very many
            object.__setattr__(self, "context", as_context(self.context))

    def get(self, name: str) -> ContextValue | None:
        """The value of one part of the context, `None` where it is not stated."""
        return dict(self.context).get(name)


Item = str | Query
"""A string that is measured in the only, or the target, way there is; or a query that says how."""


def as_context(context: Mapping[str, ContextValue] | Iterable[tuple[str, ContextValue]]) -> Context:
    """A context in its one form: sorted by name, numbers as `float`.

    Raises:
        InputError: If a name is given twice, or a value is neither a text nor a finite number.

    Example:
        >>> as_context({"plate": "P2", "fidelity": 1})
        (('fidelity', 1.0), ('plate', 'P2'))
    """
    pairs = list(context.items() if isinstance(context, Mapping) else context)
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        raise InputError(f"a context names {', '.join(names)}: each name once")
    return tuple(sorted((name, _checked(name, value)) for name, value in pairs))


def key_of(item: Item) -> str:
    """The string of a query, which stands for its target."""
    return item.key if isinstance(item, Query) else item


def context_of(item: Item) -> Context:
    """How an item is measured; empty for a plain string."""
    return item.context if isinstance(item, Query) else ()


def targets_of(items: Sequence[Item]) -> list[str] | None:
    """The strings of queries, or `None` where all of them are plain strings, which are their own targets."""
    if not any(isinstance(item, Query) and item.context for item in items):
        return None
    return [key_of(item) for item in items]


def _checked(name: str, value: ContextValue) -> ContextValue:
    if isinstance(value, str):
        if not value or value != value.strip():
            raise InputError(f"the context {name!r} is {value!r}; expected a text that neither begins nor ends blank")
        return value
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not abs(number) < float("inf"):
        raise InputError(f"the context {name!r} is {value!r}; expected a string or a finite number")
    return number + 0.0  # of two zeros there is one
