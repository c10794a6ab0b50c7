"""Labels of axes that do not run into each other."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, NullFormatter
from matplotlib.transforms import Bbox

GAP = 4.0
"""Pixels that are left between two labels."""


def untangle(figure: Figure) -> None:
    """Leave out labels of axes where they would run into others: those of minor ticks first, then later ones.

    Call it when everything has been drawn, since the lengths of labels and axes decide. The layout is fixed with it:
    otherwise each file that is written would compute it again, which takes a third of the time of writing it.
    """
    FigureCanvasAgg(figure)
    figure.draw_without_rendering()
    thinned = [_thin(axes, axis) for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)]
    if any(thinned):
        figure.draw_without_rendering()
    figure.set_layout_engine("none")


def _thin(axes: Axes, axis: Axis) -> bool:
    """Whether a label was left out."""
    low, high = sorted(axis.get_view_interval())
    labels = [
        (tick.get_loc(), tick.label1.get_text(), tick.label1.get_window_extent())
        for ticks in (axis.get_major_ticks(), axis.get_minor_ticks())
        for tick in ticks
        if tick.label1.get_text() and tick.label1.get_visible() and low <= tick.get_loc() <= high
    ]
    kept: list[tuple[float, str, Bbox]] = []
    for label in labels:
        if not any(label[2].padded(GAP / 2).overlaps(other[2].padded(GAP / 2)) for other in kept):
            kept.append(label)
    if len(kept) == len(labels):
        return False
    kept.sort(key=lambda label: label[0])
    axis.set_major_locator(FixedLocator([place for place, _, _ in kept]))
    axis.set_major_formatter(FixedFormatter([text for _, text, _ in kept]))
    axis.set_minor_formatter(NullFormatter())
    return True
