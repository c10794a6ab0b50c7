"""Best value so far against steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from seqopt.bench.boss.methods import METHODS, untransformed
from seqopt.bench.boss.published import PUBLISHED, SCALED_BY_FOUR
from seqopt.bench.boss.scores import best_so_far
from seqopt.bench.boss.tasks import TASKS, Part
from seqopt.bench.records import Run

COLUMNS = 4
"""Panels side by side at most."""

WORTH: Mapping[Part, str] = {
    "synthetic": "best count so far",
    "genes": "least energy so far, kcal/mol",
    "regression": "least error so far",
    "molecules": "best penalised logP so far",
}


def plot(runs: Mapping[str, Mapping[str, Sequence[Run]]], part: Part, picture: Path) -> None:
    """A panel for each task: mean over seeds and a band of one standard error, and the published scores as circles.

    Args:
        runs: By task and method; methods that are there for study are left out, and those of a learned transform where
            there are runs without.
        part: That of the tasks.
        picture: The PNG to write.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = min(COLUMNS, len(runs))
    rows = -(-len(runs) // columns)
    figure = Figure(figsize=(1.4 + 3.0 * columns, 2.8 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(rows, columns, squeeze=False)
    panels = list(grid.flat)
    for axes, (name, by_method) in zip(panels, runs.items(), strict=False):
        _panel(axes, name, by_method)
    for axes in panels[len(runs) :]:
        axes.set_axis_off()
    for row in grid:
        row[0].set_ylabel(WORTH[part])
    lines = {line.get_label(): line for axes in panels for line in axes.get_lines() if line.get_label()[0] != "_"}
    figure.legend(lines.values(), lines, fontsize=8, loc="outside right upper", frameon=False)
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=130)


def _panel(axes: Any, name: str, by_method: Mapping[str, Sequence[Run]]) -> None:
    task = TASKS[name]
    for method, runs in by_method.items():
        plain = untransformed(method)
        if METHODS[plain].studied or (plain != method and plain in by_method):
            continue
        curves = np.stack([best_so_far(run) for run in runs])[:, task.initial - 1 :]
        steps = np.arange(curves.shape[1])
        mean = curves.mean(axis=0)
        error = curves.std(axis=0, ddof=1) / np.sqrt(len(curves)) if len(curves) > 1 else 0 * mean
        colour = METHODS[method].colour
        axes.plot(steps, mean, color=colour, linewidth=1.4, label=METHODS[method].label)
        axes.fill_between(steps, mean - error, mean + error, color=colour, alpha=0.2, linewidth=0)
        if method in (published := PUBLISHED.get(name, {})) and task.largest is not None:
            # The row that appears to be scaled by 4 is drawn in occurrences.
            unit = (4 if name == SCALED_BY_FOUR else task.largest) / 100
            mean, error = unit * published[method].mean, unit * published[method].error
            style = {"markersize": 4, "markerfacecolor": "white", "linewidth": 1, "capsize": 2}
            axes.errorbar(task.steps, mean, error, fmt="o", color=colour, **style)
    if task.largest is not None:
        axes.axhline(task.largest, color="#999999", linewidth=0.8, linestyle=":")
    axes.set_title(f"{task.label.replace('`', '')}, {task.domain}", fontsize=8)
    axes.set_xlabel("steps", fontsize=8)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.tick_params(labelsize=8)
    axes.grid(alpha=0.2)
