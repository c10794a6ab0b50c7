"""What a search leaves to look at: a plot and a self-contained page.

`write_report` turns a run folder into ``report.html``, ``search.png`` and ``search.svg``; `plot_search` draws the
plot of any table of evaluations. Nothing here imports the models or the loop.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seqopt.report.html import write_report
    from seqopt.report.plot import plot_search

_HOMES = {"plot_search": "seqopt.report.plot", "write_report": "seqopt.report.html"}

__all__ = ["plot_search", "write_report"]


def __getattr__(name: str) -> Any:
    # matplotlib and RDKit are needed only once something is drawn.
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'seqopt.report' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_HOMES))
