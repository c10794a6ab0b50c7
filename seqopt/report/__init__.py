"""What a search leaves to look at: a plot and a self-contained page.

`write_report` turns a run folder into ``report.html``, ``search.png`` and ``search.svg``, and a campaign into a page;
`plot_search` draws the plot of any table of evaluations; `write_map_page` makes an interactive map of any points.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seqopt.report.html import write_report
    from seqopt.report.map_page import MapPoint, write_map_page
    from seqopt.report.plot import plot_search

_HOMES = {
    "MapPoint": "seqopt.report.map_page",
    "plot_search": "seqopt.report.plot",
    "write_map_page": "seqopt.report.map_page",
    "write_report": "seqopt.report.html",
}

__all__ = ["MapPoint", "plot_search", "write_map_page", "write_report"]


def __getattr__(name: str) -> Any:
    # matplotlib and RDKit are needed only once something is drawn.
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'seqopt.report' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_HOMES))
