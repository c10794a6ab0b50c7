"""Labels of axes: none runs into another, into the legend or out of the picture."""

from __future__ import annotations

from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from seqopt.report import plot
from seqopt.report.axis_labels import untangle

CASES = {
    "thousands": (10 ** np.linspace(3, 4.4, 60), True),
    "decades": (10 ** np.linspace(-2, 5, 60), True),
    "millions": (np.linspace(1e6, 9e6, 60), False),
    "tiny": (np.linspace(1e-5, 3e-5, 60), False),
    "usual": (np.linspace(-3.5, 4, 60), False),
    "close": (1000 + np.linspace(0, 0.01, 60), False),
}


def boxes(figure: Figure) -> list[list[tuple[str, object]]]:
    """For each axis of a figure, its labels with the places they take."""
    FigureCanvasAgg(figure).draw()
    found = []
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
            labels = [tick.label1 for tick in ticks if low <= tick.get_loc() <= high and tick.label1.get_text()]
            found.append([(label.get_text(), label.get_window_extent()) for label in labels])
    return found


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_no_two_labels_of_the_plot_of_a_search_overlap(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values, log10 = CASES[case]
    drawn: list[Figure] = []
    monkeypatch.setattr(plot, "untangle", lambda figure: (untangle(figure), drawn.append(figure)))
    table = pd.DataFrame({"string": [f"C{i}" for i in range(60)], "value": values, "batch": np.repeat([0, 1, 2], 20)})
    spread = np.abs(values) * 0.01
    table = table.assign(predicted_mean=np.where(np.arange(60) < 20, np.nan, values), predicted_std=spread)
    plot.plot_search(table, tmp_path / "a", direction="minimize", title="x" * 170, value_label="IC50 (nM)", log10=log10)
    arguments = {"direction": "minimize", "value_label": "IC50 (nM)", "log10": log10}
    plot.panel_svg("narrow", plot.tidy_evaluations(table), **arguments)
    plot.panel_svg("predictions", plot.tidy_evaluations(table), **arguments)
    assert len(drawn) == 3
    for figure in drawn:
        for labels in boxes(figure):
            assert len(labels) >= 2
            assert not [pair for pair in combinations(labels, 2) if pair[0][1].overlaps(pair[1][1])]
        for axes in figure.axes:
            # A power of ten in a corner stands where the legend does.
            assert axes.yaxis.get_offset_text().get_text() == ""
            assert axes.xaxis.get_offset_text().get_text() == ""
            title = axes.title.get_window_extent(), axes._left_title.get_window_extent()
            assert all(box.x1 <= figure.bbox.x1 for box in title)
    heading = drawn[0]._suptitle
    assert heading is not None
    assert heading.get_window_extent().x1 <= drawn[0].bbox.x1


@pytest.mark.filterwarnings("error")
def test_a_long_legend_takes_rows_so_that_its_panel_keeps_its_room(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Figure] = []
    monkeypatch.setattr(plot, "untangle", lambda figure: (untangle(figure), drawn.append(figure)))
    rows = {
        "string": [f"C{i}" for i in range(12)],
        "name": [f"B01-{i:02d}" for i in range(12)],
        "value": [float(i % 5) for i in range(10)] + [float("nan")] * 2,
        "censored": ["", "<", ">", *[""] * 9],
        "status": ["ok"] * 10 + ["failed"] * 2,
        "batch": [0] * 5 + [1] * 7,
        "predicted_mean": [float("nan")] * 5 + [2.0] * 7,
        "predicted_std": [float("nan")] * 5 + [1.0] * 7,
    }
    baseline = pd.DataFrame({"draws": [1, 12], "mean": [1.0, 3.0], "low": [0.0, 2.0], "high": [2.0, 4.0]})
    table = plot.tidy_evaluations(pd.DataFrame(rows))
    plot.panel_svg("progress", table, direction="maximize", value_label="pIC50 (-log10 M)", baseline=baseline)
    (figure,) = drawn
    (axes,) = figure.axes
    legend = axes.get_legend()
    assert legend is not None
    assert len(legend.get_texts()) == 7
    assert legend.get_window_extent().x1 <= figure.bbox.x1
    assert axes.get_window_extent().width > 0.8 * figure.bbox.width


def test_labels_that_fit_stay() -> None:
    figure = Figure(figsize=(6, 4))
    axes = figure.subplots()
    axes.plot([0, 1, 2], [0, 1, 2])
    before = boxes(figure)
    untangle(figure)
    assert [[text for text, _ in axis] for axis in boxes(figure)] == [[text for text, _ in axis] for axis in before]


def test_what_is_left_of_crowded_labels_is_in_order() -> None:
    figure = Figure(figsize=(3, 3))
    axes = figure.subplots()
    axes.plot([0, 9e9], [0, 1])
    axes.set_xticks(np.linspace(0, 9e9, 30), labels=[f"{value:,.0f}" for value in np.linspace(0, 9e9, 30)])
    untangle(figure)
    labels = boxes(figure)[0]
    assert 2 <= len(labels) < 10
    assert all(left[1].x1 < right[1].x0 for left, right in pairwise(labels))  # type: ignore[attr-defined]
