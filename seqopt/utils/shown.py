"""How results, batches and spaces show themselves.

What they show is made by renderers, one for a class and those that inherit from it. Renderers are registered by who
knows how a class is to be shown; nothing here knows who that is.
"""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any, Protocol, TypeVar, runtime_checkable


@runtime_checkable
class Rendering(Protocol):
    """What is shown of an object."""

    def as_html(self) -> str:
        """For a notebook; everything that a user wrote is escaped."""

    def as_text(self) -> str:
        """For a terminal."""


T = TypeVar("T")

_renderers: dict[type, Callable[[Any], Rendering]] = {}
_loaders: list[Callable[[], object]] = []


def register_renderer(kind: type[T], renderer: Callable[[T], Rendering]) -> None:
    """Show objects of a class, and of those that inherit from it, by this function.

    Args:
        kind: The class. Of several bases of an object's class the first in its method resolution order counts; what is
            registered for `object` counts where nothing else does.
        renderer: From an object to what is shown of it.
    """
    _renderers[kind] = renderer


def add_loader(load: Callable[[], object]) -> None:
    """Call this function once, when an object is to be shown whose class is not known by then: it registers more.

    Loaders are called in the order in which they were added, until the class is known. So what shows an object is
    imported only when one is looked at.
    """
    _loaders.append(load)


def rendering(shown: object) -> Rendering | None:
    """What is shown of an object; `None` if nobody knows how to show it."""
    while True:
        for base in type(shown).__mro__[:-1]:
            if base in _renderers:
                return _renderers[base](shown)
        if not _loaders:
            known = _renderers.get(object)
            return None if known is None else known(shown)
        _loaders.pop(0)()


class Shown:
    """Shows itself in a notebook, and as a table when it is printed.

    Its ``repr``, which messages and lists of such objects hold, stays that of its class: a line.

    A custom class may inherit from this, too: it is shown like the nearest of its bases that is known (see
    `register_renderer`), or else by its ``repr``, which must not call ``str`` then.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # IPython takes the ``repr`` of a class before what a base of it inherits.
        cls._repr_pretty_ = Shown._repr_pretty_  # type: ignore[method-assign]

    def _repr_html_(self) -> str:
        found = rendering(self)
        return f"<pre>{html.escape(plain(self))}</pre>" if found is None else found.as_html()

    def __str__(self) -> str:
        found = rendering(self)
        return plain(self) if found is None else found.as_text()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        # IPython in a terminal shows the value of a line by this, and the elements of a list.
        inside = cycle or len(getattr(printer, "stack", ())) > 1
        printer.text(repr(self) if inside else str(self))


class Tabulated(Shown):
    """Its ``repr`` is that table, too."""

    def __repr__(self) -> str:
        return str(self)


def plain(shown: object) -> str:
    """An object by its own ``repr``, or that of any object where its own is the table that it shows.

    Example:
        >>> plain([1, 2])
        '[1, 2]'
    """
    own = type(shown).__repr__ is not Tabulated.__repr__
    return repr(shown) if own else object.__repr__(shown)
