"""How results, batches and spaces show themselves."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def _display() -> Any:
    # Reports know spaces, the loop and campaigns. These know of reports by this name alone, and only once something is
    # looked at.
    return import_module("seqopt.report.display")


class Shown:
    """Shows itself in a notebook, and as a table when it is printed, as `seqopt.report.display` describes it.

    Its ``repr``, which messages and lists of such objects hold, stays that of its class: a line.

    A class of one's own may inherit from this, too: it is shown like the nearest of its bases that is known there, or
    else by its ``repr``, which must not call ``str`` then.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # IPython takes the ``repr`` of a class before what a base of it inherits.
        cls._repr_pretty_ = Shown._repr_pretty_  # type: ignore[method-assign]

    def _repr_html_(self) -> str:
        page: str = _display().as_html(self)
        return page

    def __str__(self) -> str:
        table: str = _display().as_text(self)
        return table

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        # IPython in a terminal shows the value of a line by this, and the elements of a list.
        inside = cycle or len(getattr(printer, "stack", ())) > 1
        printer.text(repr(self) if inside else str(self))


class Tabulated(Shown):
    """Its ``repr`` is that table, too."""

    def __repr__(self) -> str:
        return str(self)
