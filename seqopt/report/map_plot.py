"""The picture of a map: points in the plane, coloured by their values.

Values run through matplotlib's ``viridis``, which gets lighter throughout and which people with any common form of
colour blindness read alike. The colours span the central 96 % of the values, so that one outlier does not take the
contrast from all others; the ends of the colour bar point on where there are values beyond.
"""

from __future__ import annotations

import os
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure

from seqopt.report.formats import printable, shortened
from seqopt.report.map_points import CHOSEN, FAILED, PROJECTED, SUGGESTED
from seqopt.report.plot import BEST, GRID, INK, MANY_POINTS, MUTED, plot_style

COLOURS = "viridis"
"""Of the values."""

SHOWN_SHARE = 0.96
"""Central share of the values that the colours span."""

LARGE, SMALL = 26.0, 7.0
"""Areas of points, in points squared, of few and of many."""

MARKERS = {SUGGESTED: "^", FAILED: "x", PROJECTED: "D"}
"""Of groups that are not dots."""

OUTLINED = (CHOSEN, SUGGESTED, PROJECTED)
"""Groups whose points get an outline, and are drawn on top."""


def plot_map(
    table: pd.DataFrame,
    path_base: str | os.PathLike[str],
    *,
    title: str,
    value_label: str,
    axis_labels: tuple[str, str] = ("component 1", "component 2"),
    remark: str = "",
    log10: bool = False,
    minimize: bool = False,
) -> tuple[Path, Path]:
    """Draw a map and save it as PNG and SVG.

    Args:
        table: Columns ``x``, ``y``, ``value`` (NaN where nothing was measured: grey points) and ``group``.
        path_base: Where to write, without the suffix.
        title: Above the map.
        value_label: Name and unit of the values.
        axis_labels: Of both axes.
        remark: A second line, smaller.
        log10: Logarithmic colours; ignored unless all values are positive.
        minimize: Whether low values are good; good ones are bright.

    Returns:
        The paths of both files.

    Example:
        >>> import tempfile
        >>> table = pd.DataFrame({"x": [0, 1, 2], "y": [0, 1, 0], "value": [1, 2, np.nan], "group": ["a", "a", "b"]})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     paths = plot_map(table, f"{folder}/map", title="Three points", value_label="pIC50")
        ...     [path.name for path in paths if path.exists()]
        ['map.png', 'map.svg']
    """
    with plot_style():
        figure = Figure(figsize=(8.2, 6.6), layout="constrained")
        axes = figure.subplots()
        heading = textwrap.fill(shortened(printable(title), 120), 64)
        figure.suptitle(heading, fontsize=13, x=0.01, ha="left", parse_math=False)
        below = textwrap.fill(shortened(printable(remark), 180), 90)
        axes.set_title(below, fontsize=9.5, loc="left", color=MUTED, parse_math=False)
        drawn = draw_map(axes, table, norm=value_norm(table["value"], log10=log10), minimize=minimize)
        axes.set_xlabel(axis_labels[0], parse_math=False)
        axes.set_ylabel(axis_labels[1], parse_math=False)
        if drawn is not None:
            bar = figure.colorbar(drawn, ax=axes, pad=0.02, aspect=32, extend=_ends(drawn.norm, table["value"]))
            bar.set_label(shortened(printable(value_label), 60) or "value", parse_math=False)
            bar.outline.set_visible(False)
        groups = [group for group in dict.fromkeys(table["group"]) if group]
        if len(groups) > 1:
            figure.legend(loc="outside lower left", ncols=len(groups), frameon=False, handletextpad=0.3)
        png, svg = Path(f"{os.fspath(path_base)}.png"), Path(f"{os.fspath(path_base)}.svg")
        figure.savefig(png, format="png", dpi=150, metadata={"Software": None})
        figure.savefig(svg, format="svg", dpi=200, metadata={"Date": None})
    return png, svg


def value_norm(values: pd.Series, *, log10: bool = False) -> Normalize:
    """The colours' span: the central 96 % of the finite values; logarithmic if asked for and all are positive."""
    finite = values[np.isfinite(values)].to_numpy(dtype=np.float64)
    if not len(finite):
        return Normalize(0.0, 1.0)
    log10 = log10 and bool((finite > 0).all())
    finite = np.log10(finite) if log10 else finite
    margin = (1 - SHOWN_SHARE) / 2
    low, high = np.quantile(finite, [margin, 1 - margin])
    if low == high:
        low, high = finite.min(), finite.max()
    if log10:
        low, high = 10**low, 10**high
    return LogNorm(low, high) if log10 and high > low else Normalize(low, high)


def draw_map(axes: Axes, table: pd.DataFrame, *, norm: Normalize, minimize: bool = False) -> Any:
    """Draw points, group by group; returns what a colour bar is made of, or `None` if nothing has a value.

    Args:
        axes: Where; both axes get the same scale, as distances in a map count in all directions alike.
        table: See `plot_map`.
        norm: From values to colours.
        minimize: Whether low values are good; good ones are bright.
    """
    many = len(table) > MANY_POINTS
    size = float(np.clip(6000 / max(len(table), 1), SMALL, LARGE))
    measured = np.isfinite(table["value"].to_numpy(dtype=np.float64))
    drawn = None
    groups = dict.fromkeys(table["group"])
    for group in sorted(groups, key=lambda name: (name in OUTLINED, name == PROJECTED)):
        mine = (table["group"] == group).to_numpy()
        marker = MARKERS.get(group, "o")
        crossed = marker == "x"
        edge = {"edgecolors": INK, "linewidths": 0.7} if group in OUTLINED else {"linewidths": 1.0 if crossed else 0}
        area = 1.6 * size if group in MARKERS or group in OUTLINED else size
        plain, coloured = table[mine & ~measured], table[mine & measured]
        label = str(group) or None
        if len(plain):
            colour = INK if crossed else BEST if group in OUTLINED else MUTED
            style = edge | {"alpha": 1.0 if group in MARKERS else 0.45, "label": label}
            axes.scatter(
                plain["x"], plain["y"], s=area, color=colour, marker=marker, rasterized=many, **_legal(style, crossed)
            )
            label = None
        if len(coloured):
            drawn = axes.scatter(
                coloured["x"],
                coloured["y"],
                s=area,
                c=coloured["value"],
                cmap=COLOURS + "_r" * minimize,
                norm=norm,
                marker=marker,
                rasterized=many,
                label=label,
                **edge,
            )
    axes.set_aspect("equal", adjustable="datalim")
    axes.grid(visible=True, axis="both", color=GRID)
    return drawn


def _legal(style: dict[str, Any], crossed: bool) -> dict[str, Any]:
    """A cross has no edge to colour."""
    return {name: value for name, value in style.items() if not (crossed and name == "edgecolors")}


def _ends(norm: Normalize, values: pd.Series) -> str:
    assert norm.vmin is not None
    assert norm.vmax is not None
    below, above = bool((values < norm.vmin).any()), bool((values > norm.vmax).any())
    return {(True, True): "both", (True, False): "min", (False, True): "max"}.get((below, above), "neither")
