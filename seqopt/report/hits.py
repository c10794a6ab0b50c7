"""What a page shows of a search whose results are yes or no: hits against results, and whether probabilities hold."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from seqopt.campaign.wording import percent
from seqopt.data.hits import ENOUGH, HitCalibration, Tried
from seqopt.report.plot import BEST, CHOSEN, MUTED, plot_style

PANELS = {"progress": (9.0, 3.6), "narrow": (4.4, 3.9)}
"""Sizes of the panel, on a screen and on a telephone."""


def value_words(value: float) -> str:
    """What was measured of a string, all its wells together, in words.

    Example:
        >>> value_words(1.0), value_words(0.0), value_words(0.375)
        ('hit', 'no hit', '38 % of wells hit')
    """
    return "hit" if value == 1 else "no hit" if value == 0 else f"{percent(value)} of wells hit"


def calibration_of(evaluations: pd.DataFrame) -> HitCalibration:
    """Told probabilities of a tidy table of evaluations, held against its results.

    Args:
        evaluations: See `seqopt.report.results.tidy_evaluations`.
    """
    rows = evaluations[evaluations["measured"] & evaluations["predicted_mean"].notna()]
    return HitCalibration.of(
        [
            Tried(int(batch), float(told), float(value))
            for batch, told, value in zip(rows["batch"], rows["predicted_mean"], rows["value"], strict=True)
        ]
    )


def facts_of(evaluations: pd.DataFrame) -> dict[str, Any]:
    """What the page says in words and tables: hits, what is expected, groups of probabilities.

    Args:
        evaluations: See `seqopt.report.results.tidy_evaluations`.
    """
    measured = evaluations.loc[evaluations["measured"], "value"]
    pending = evaluations.loc[evaluations["status"] == "pending", "predicted_mean"].dropna()
    found = calibration_of(evaluations)
    said = found.describe()
    return {
        "hits": int((measured > 0.5).sum()),
        "strings": len(measured),
        "share": percent(float((measured > 0.5).mean())) if len(measured) else "",
        "expected": f"{pending.sum():.3g}" if len(pending) else "",
        "open": len(pending),
        "calibration": f"{said[:1].upper()}{said[1:]}.",
        "groups": [
            (group.count, percent(group.told), percent(group.found)) for group in found.groups if found.count >= ENOUGH
        ],
    }


def panel_svg(panel: str, evaluations: pd.DataFrame) -> str:
    """Hits against results, in their order, as an SVG document with a transparent background.

    Args:
        panel: One of `PANELS`.
        evaluations: See `seqopt.report.results.tidy_evaluations`.
    """
    with plot_style():
        figure = Figure(figsize=PANELS[panel], layout="constrained")
        draw_hits(figure.subplots(), evaluations)
        stream = io.StringIO()
        figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None})
    return stream.getvalue()


def draw_hits(axes: Axes, evaluations: pd.DataFrame) -> None:
    """The curve of hits, what was expected by the told probabilities, and the borders of batches.

    Args:
        axes: Where.
        evaluations: See `seqopt.report.results.tidy_evaluations`.
    """
    rows = evaluations[evaluations["measured"]]
    places = np.arange(1, len(rows) + 1)
    values = rows["value"].to_numpy(dtype=np.float64)
    told = rows["predicted_mean"].to_numpy(dtype=np.float64)
    axes.set_xlabel("results")
    axes.set_ylabel("hits so far")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    batches = rows["batch"].to_numpy()
    for border in np.flatnonzero(np.diff(batches)) + 1:
        axes.axvline(border + 0.5, color=MUTED, linewidth=0.6, alpha=0.5)
    if len(rows):
        axes.step(places, np.cumsum(values), where="post", color=BEST, linewidth=1.8, label="found")
    if np.isfinite(told).any():
        # Where nothing was told there is nothing to compare: the curve goes on from what was found.
        expected = np.cumsum(np.where(np.isfinite(told), told, values))
        axes.plot(places, expected, color=CHOSEN, linewidth=1.2, linestyle="--", label="expected when chosen")
    if len(rows):
        axes.legend(loc="upper left", frameon=False)
    axes.set_xlim(0.5, max(1, len(rows)) + 0.5)
    axes.set_ylim(bottom=0)
