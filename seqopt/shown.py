"""How results, batches and spaces show themselves."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def _display() -> Any:
    # Reports know spaces, the loop and campaigns. These know of reports by this name alone, and only once something is
    # looked at.
    return import_module("seqopt.report.display")


class Shown:
    """Shows itself in a notebook, as `seqopt.report.display` describes it.

    A class of one's own may inherit from this, too: it is shown like the nearest of its bases that is known there.
    """

    def _repr_html_(self) -> str:
        page: str = _display().as_html(self)
        return page


class Tabulated(Shown):
    """Shows itself as a table in a terminal, too."""

    def __repr__(self) -> str:
        table: str = _display().as_text(self)
        return table
