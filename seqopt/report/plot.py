"""The plot of a search: what was found when, and how well it was predicted.

Colours are those of Okabe and Ito, which people with any common form of colour blindness can tell apart.

References:
    Okabe, M., Ito, K. (2008). Color universal design: how to make figures and presentations that are friendly to
        colorblind people. J*Fly data depository for Drosophila researchers.
    Tukey, J. W. (1977). Exploratory Data Analysis. Addison-Wesley (the outer fences of `far_from`).
    Piñeiro, G., Perelman, S., Guerschman, J. P., Paruelo, J. M. (2008). How to evaluate models: observed vs.
        predicted or predicted vs. observed? Ecological Modelling 216, 316-322 (why predictions are on the x axis).
"""

from __future__ import annotations

import io
import math
import os
import textwrap
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import matplotlib.style
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.markers import CARETDOWNBASE, CARETUPBASE, MarkerStyle
from matplotlib.ticker import FuncFormatter, MaxNLocator

from seqopt.errors import InputError
from seqopt.report.axis_labels import untangle
from seqopt.report.drawing import ROWS
from seqopt.report.formats import NumberFormat, number_format, printable, shortened, significant
from seqopt.report.results import (
    PredictionQuality,
    best_so_far,
    limit_of,
    prediction_quality,
    predictions,
    ranked,
    tidy_evaluations,
)

INK, MUTED, GRID = "#1b1f24", "#7d858f", "#dfe3e8"
"""Text and axes, the initial design, faint lines."""

CHOSEN, BEST = "#0072b2", "#d55e00"
"""Okabe and Ito's blue and vermilion: evaluations that the model chose, and the best so far."""

RANDOM = "#009e73"
"""Okabe and Ito's green: what random choice would have found."""

MANY_POINTS = 3000
"""From here on the points of an SVG are an embedded image, so that the file stays small."""

TITLE_WIDTH = 56
"""Characters above the panel on the right, which is not as wide as the other."""

MANY_BATCHES = 40
"""More boundaries than this would be a grey wash."""

LARGEST = 1e300
"""Larger values are drawn here."""

_STYLE = {
    "axes.axisbelow": True,
    "axes.edgecolor": INK,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.labelcolor": INK,
    "axes.labelsize": 11,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": 11,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "legend.fontsize": 10,
    "svg.fonttype": "none",
    "svg.hashsalt": "seqopt",
    "text.color": INK,
    "xtick.color": INK,
    "xtick.labelsize": 10,
    "ytick.color": INK,
    "ytick.labelsize": 10,
}


def plot_search(
    evaluations: pd.DataFrame,
    path_base: str | os.PathLike[str],
    *,
    direction: str,
    title: str,
    value_label: str,
    log10: bool = False,
    baseline: pd.DataFrame | None = None,
) -> tuple[Path, Path]:
    """Draw a search and save it as PNG and SVG.

    On the left every evaluation in its order, with the best so far, the borders of the batches and failures as
    crosses on the axis. On the right what was predicted of each string when it was chosen (mean and one standard
    deviation) against what was measured, with the identity line. A few values that are far worse than the others are
    drawn at the edge, as hollow triangles: see `far_from`.

    Args:
        evaluations: The columns of ``evaluations.csv``; see `seqopt.report.results.tidy_evaluations` for those that
            may be missing.
        path_base: Where to write, without the suffix: ``"run/search"`` gives ``run/search.png`` and
            ``run/search.svg``.
        direction: ``"maximize"`` or ``"minimize"``.
        title: Above the plot.
        value_label: Name and unit of the values.
        log10: Logarithmic axes for the values, and predictions judged on that scale. Ignored unless every measured
            value is positive.
        baseline: The best of k random strings, as `seqopt.report.samples.best_of_random` returns it.

    Returns:
        The paths of both files.

    Raises:
        InputError: For another direction, or a table without a column ``string``.

    Example:
        >>> import tempfile
        >>> table = pd.DataFrame({"string": ["AC", "AG", "GG"], "value": [1.0, 3.0, 2.0], "batch": [0, 0, 1]})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     paths = plot_search(
        ...         table, f"{folder}/search", direction="maximize", title="A search", value_label="binding (kJ/mol)"
        ...     )
        ...     [path.name for path in paths if path.exists()]
        ['search.png', 'search.svg']
    """
    if direction not in ("maximize", "minimize"):
        raise InputError(f"direction is {direction!r}; expected 'maximize' or 'minimize'")
    table = tidy_evaluations(evaluations)
    with plot_style():
        figure = Figure(figsize=(12, 5), layout="constrained")
        heading = textwrap.fill(shortened(printable(title), 180), 95)
        figure.suptitle(heading, fontsize=13, x=0.01, ha="left", parse_math=False)
        left, right = figure.subplots(1, 2, width_ratios=(3, 2))
        draw_progress(left, table, direction=direction, value_label=value_label, log10=log10, baseline=baseline)
        draw_predictions(right, table, direction=direction, value_label=value_label, log10=log10)
        lines = [textwrap.fill(line, TITLE_WIDTH) for line in describe_quality(table, log10=log10).splitlines()]
        right.set_title("\n".join(lines), fontsize=9, loc="left", pad=24, parse_math=False)
        untangle(figure)
        png, svg = Path(f"{os.fspath(path_base)}.png"), Path(f"{os.fspath(path_base)}.svg")
        figure.savefig(png, format="png", dpi=150, metadata={"Software": None})
        figure.savefig(svg, format="svg", metadata={"Date": None})
    return png, svg


@contextmanager
def plot_style() -> Iterator[None]:
    """Matplotlib's defaults with our style on top, whatever the user's own settings are; restored afterwards."""
    interactive = matplotlib.is_interactive()
    try:
        with matplotlib.style.context(["default", _STYLE]), warnings.catch_warnings():
            # A letter that the font of the PNG lacks (a Chinese label, say) is not worth a warning to the user.
            warnings.filterwarnings("ignore", message="Glyph .* missing from font")
            try:
                yield
            finally:
                interactive = matplotlib.is_interactive()
    finally:
        # A notebook turns this on when pyplot is first imported, which may be here: its later figures would not show.
        matplotlib.interactive(interactive)


def panel_svg(
    panel: str,
    evaluations: pd.DataFrame,
    *,
    direction: str,
    value_label: str,
    log10: bool = False,
    baseline: pd.DataFrame | None = None,
    held_out: pd.DataFrame | None = None,
) -> str:
    """One panel as an SVG document with a transparent background.

    Groups of points carry the numbers of their evaluations as an id: see `seqopt.report.drawing.inline_svg`.

    Args:
        panel: ``"progress"``, ``"narrow"`` (the same for a telephone), ``"predictions"`` or ``"held_out"``.
        evaluations: See `seqopt.report.results.tidy_evaluations`.
        direction: ``"maximize"`` or ``"minimize"``.
        value_label: Name and unit of the values.
        log10: See `plot_search`.
        baseline: See `plot_search`.
        held_out: Leave-one-out predictions, for that panel.
    """
    with plot_style():
        figure = Figure(figsize=(9.0, 3.6) if panel == "progress" else (4.4, 3.9), layout="constrained")
        axes = figure.subplots()
        if panel in ("progress", "narrow"):
            draw_progress(
                axes, evaluations, direction=direction, value_label=value_label, log10=log10, baseline=baseline
            )
            if panel == "narrow":
                # In the size of the others the legend would be wider than the panel.
                draw_legend(axes, columns=2)
        elif panel == "held_out" and held_out is not None:
            what = "predicted from the others, ± 1 sd"
            draw_against(axes, held_out, direction=direction, value_label=value_label, log10=log10, what=what)
        else:
            draw_predictions(axes, evaluations, direction=direction, value_label=value_label, log10=log10)
        untangle(figure)
        stream = io.StringIO()
        figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None})
    return stream.getvalue()


def draw_progress(
    axes: Axes,
    evaluations: pd.DataFrame,
    *,
    direction: str,
    value_label: str,
    log10: bool = False,
    baseline: pd.DataFrame | None = None,
) -> None:
    """Every evaluation in its order, and the best so far; see `plot_search`."""
    better = "lower" if direction == "minimize" else "higher"
    # Of several ways to measure only the target's are here: they are counted by themselves.
    evaluations = evaluations.assign(place=np.arange(1, len(evaluations) + 1))
    gaps = len(evaluations) and evaluations["number"].iloc[-1] > len(evaluations)
    axes.set_xlabel("evaluation of the target" if gaps else "evaluation")
    axes.set_ylabel(f"{_label(value_label)} ({better} is better)", parse_math=False)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlim(0.5 - 0.01 * len(evaluations), max(1, len(evaluations)) * 1.01 + 0.5)
    evaluations = _drawable(evaluations)
    measured = evaluations[evaluations["measured"]]
    show = _scale_values(axes, measured["value"], log10, "y")
    _draw_batches(axes, evaluations)
    edge = None if log10 else far_from(_certain(measured, direction), direction)
    far = pd.Series(False, index=measured.index)
    if edge is not None:
        far = _beyond(_certain(measured, direction), edge, direction)
    initial = measured["batch"] == 0
    # Without a prediction (random search, say) no model had a hand in it.
    later = "chosen by the model" if evaluations["predicted_mean"].notna().any() else "batches"
    for rows, colour, size, name in (
        (measured[initial & ~far], MUTED, 22, _name_first(evaluations)),
        (measured[~initial & ~far], CHOSEN, 26, later),
    ):
        if len(rows):
            many = len(measured) > MANY_POINTS
            axes.scatter(
                rows["place"],
                rows["value"],
                s=size,
                color=colour,
                linewidths=0,
                alpha=0.85,
                label=name,
                rasterized=many,
                zorder=3,
                gid=None if many else _row_numbers(rows),
            )
    _draw_limits(axes, measured[~far])
    if len(measured) and baseline is not None and len(baseline):
        _draw_baseline(axes, baseline)
    if len(measured):
        best = best_so_far(evaluations, direction)
        axes.step(evaluations["place"], best, where="post", color=BEST, linewidth=1.8, label="best so far", zorder=2)
        # The first of the ranked ones, unless all are only known to be worse than a limit: then no best is drawn.
        limit = limit_of(ranked(measured, direction)).iloc[0]
        _name_best(axes, evaluations["place"].iloc[-1], best.iloc[-1], direction, lambda value: limit + show(value))
        if edge is not None:
            near = [*measured.loc[~far, "value"], *_better_ends(baseline, direction)]
            room = 0.09 * (max(near) - min(near))
            axes.set_ylim(min(near) - room, max(near) + room)
            _draw_far(axes, measured.loc[far, "place"], measured[far], edge, direction, show)
    else:
        _say(axes, "nothing was measured")
    _draw_failures(axes, evaluations)
    _draw_discarded(axes, evaluations)
    draw_legend(axes)


def far_from(values: pd.Series, direction: str) -> float | None:
    """Where an axis may end so that a few hopeless values do not squeeze all the others; None: it holds every value.

    The outer fence on the worse side, three interquartile ranges beyond the quartile, if at most a twentieth of the
    values lie beyond it and the others then have at least twice the room. The better side holds every value.

    Args:
        values: What was measured.
        direction: ``"maximize"`` or ``"minimize"``.

    Example:
        >>> far_from(pd.Series([0.0, 1.0, 2.0, 3.0] * 10 + [-62.0]), "maximize")
        -6.0
        >>> far_from(pd.Series([0.0, 1.0, 2.0, 3.0] * 10 + [62.0]), "maximize")
    """
    if not len(values):
        return None
    sign = -1.0 if direction == "minimize" else 1.0
    heights = sign * values.clip(-LARGEST, LARGEST)
    low, high = heights.quantile(0.25), heights.quantile(0.75)
    fence = low - 3 * (high - low)
    beyond = heights < fence
    if high <= low or not 0 < beyond.sum() <= 0.05 * len(heights):
        return None
    rest = heights[~beyond]
    # What is drawn reaches from the best to the fence or, where nothing is near that, to the worst of the others.
    return float(sign * fence) if rest.max() - heights.min() >= 2 * (rest.max() - rest.min()) else None


def _certain(measured: pd.DataFrame, direction: str) -> pd.Series:
    """Values that are known to be no better than they say; limits that may be better are taken for the best value."""
    open_side = "<" if direction == "minimize" else ">"
    values = measured["value"]
    best = values.min() if direction == "minimize" else values.max()
    return values.where(limit_of(measured) != open_side, best)


def _better_ends(baseline: pd.DataFrame | None, direction: str) -> list[float]:
    """What a curve of random search reaches on the better side."""
    if baseline is None or not len(baseline):
        return []
    ends = baseline[["mean", "low" if direction == "minimize" else "high"]].to_numpy(dtype=np.float64)
    ends = ends[np.isfinite(ends)].clip(-LARGEST, LARGEST)
    return [float(ends.min() if direction == "minimize" else ends.max())] if ends.size else []


def _beyond(values: pd.Series, edge: float, direction: str) -> pd.Series:
    return values > edge if direction == "minimize" else values < edge


def _draw_far(
    axes: Axes, places: pd.Series, rows: pd.DataFrame, edge: float, direction: str, show: NumberFormat
) -> None:
    """Triangles at the end of the axis, at ``places``, for the ``rows`` whose values lie beyond it."""
    minimize = direction == "minimize"
    axes.scatter(
        places,
        np.full(len(rows), 0.965 if minimize else 0.035),
        s=30,
        facecolors="none",
        edgecolors=MUTED,
        marker="^" if minimize else "v",
        transform=axes.get_xaxis_transform(),
        clip_on=False,
        label=f"{len(rows):,} {'above' if minimize else 'below'} {show(edge)}",
        zorder=5,
        gid=_row_numbers(rows),
    )


def _draw_limits(axes: Axes, measured: pd.DataFrame) -> None:
    """Arrows from limits to the side on which the values lie."""
    limits = limit_of(measured)
    for side, marker in (("<", MarkerStyle(CARETDOWNBASE)), (">", MarkerStyle(CARETUPBASE))):
        rows = measured[limits == side]
        if len(rows):
            name = f"{'below' if side == '<' else 'above'} a limit"
            axes.scatter(rows["place"], rows["value"], s=34, color=MUTED, marker=marker, label=name, zorder=4)


def draw_predictions(
    axes: Axes, evaluations: pd.DataFrame, *, value_label: str, log10: bool = False, direction: str | None = None
) -> None:
    """Predicted against measured values, with the identity line; see `plot_search`.

    Without a ``direction``, nobody knows which values are hopeless: the axes hold all of them.
    """
    log10 = log10 and is_positive(evaluations)
    table = predictions(_drawable(evaluations), log10=log10)
    what = "predicted when chosen, ± 1 sd"
    draw_against(axes, table, direction=direction, value_label=value_label, log10=log10, what=what)


def draw_against(
    axes: Axes, table: pd.DataFrame, *, direction: str | None, value_label: str, log10: bool, what: str
) -> None:
    """Predicted against measured values, with the identity line.

    Args:
        axes: Where.
        table: As `seqopt.report.results.predictions` returns it; with ``log10``, of log10 values.
        direction: ``"maximize"``, ``"minimize"``, or `None`: the axes hold every value.
        value_label: Name and unit of the values.
        log10: Whether axes are logarithmic.
        what: Label of the predictions.
    """
    axes.set_xlabel(what)
    axes.set_ylabel(f"measured {_label(value_label)}", parse_math=False)
    columns = ["mean", "std", "value"]
    table = table.replace([np.inf, -np.inf], np.nan).dropna(subset=columns)
    table = table.assign(**{name: table[name].clip(-LARGEST, LARGEST) for name in columns})
    if not len(table):
        axes.set_xticks([])
        _say(axes, "no predictions were measured yet")
        return
    low, mean, high = table["mean"] - table["std"], table["mean"], table["mean"] + table["std"]
    value = table["value"]
    edge = None if log10 or direction is None else far_from(value, direction)
    far = pd.Series(False, index=table.index)
    if edge is not None and direction is not None:
        far = _beyond(value, edge, direction)
    # The longest bars may leave the panel: one very uncertain prediction would squeeze all the others.
    ends = [*value[~far], *mean[~far], low.quantile(0.1), high.quantile(0.9)]
    lowest, highest = float(np.min(ends)), float(np.max(ends))
    margin = 0.05 * (highest - lowest) or 0.05 * abs(highest) or 1.0
    limits = np.array([lowest - margin, highest + margin])
    if log10:
        low, mean, high, value, limits = 10**low, 10**mean, 10**high, 10**value, 10**limits
    for name in ("x", "y"):
        show = _scale_values(axes, value, log10, name)
    axes.grid(visible=True, axis="x")
    axes.plot(limits, limits, color=INK, linewidth=1, linestyle=(0, (4, 3)), label="predicted = measured", zorder=2)
    many = len(table) > MANY_POINTS
    near = ~far
    axes.hlines(value[near], low[near], high[near], color=CHOSEN, alpha=0.3, linewidth=1.1, zorder=3, rasterized=many)
    axes.scatter(
        mean[near],
        value[near],
        s=26,
        color=CHOSEN,
        linewidths=0,
        alpha=0.85,
        zorder=4,
        rasterized=many,
        gid=None if many else _row_numbers(table[near]),
    )
    if edge is not None and direction is not None:
        _draw_far(axes, mean[far].clip(limits[0], limits[1]), table[far], edge, direction, show)
    axes.set_xlim(limits[0], limits[1])
    axes.set_ylim(limits[0], limits[1])
    draw_legend(axes)


def describe_quality(evaluations: pd.DataFrame, *, log10: bool = False) -> str:
    """How well predictions met measurements, in two lines of text; empty without predictions."""
    log10 = log10 and is_positive(evaluations)
    quality = prediction_quality(predictions(evaluations, log10=log10))
    return "" if quality is None else "\n".join(quality_phrases(quality, log10=log10))


def quality_phrases(quality: PredictionQuality, *, log10: bool = False) -> tuple[str, str]:
    """Errors of the predictions, and coverage of their intervals, in words."""
    correlation = "" if quality.rank_correlation is None else f"rank correlation {quality.rank_correlation:.2f}, "
    error = significant(quality.rmse, 3) + (" in log10" if log10 else "")
    return (
        f"{correlation}RMSE {error} ({quality.count} predicted)",
        f"{quality.within_one:.0%} within 1 sd (normal: 68%), {quality.within_two:.0%} within 2 sd (95%)",
    )


def is_positive(evaluations: pd.DataFrame) -> bool:
    """Whether anything was measured and all of it is positive, as a logarithmic axis needs."""
    values = evaluations.loc[evaluations["measured"], "value"]
    return bool(len(values)) and bool((values > 0).all())


def _drawable(evaluations: pd.DataFrame) -> pd.DataFrame:
    """Numbers of which matplotlib can form differences: the largest float is a popular score for a hopeless string."""
    columns = ["value", "predicted_mean", "predicted_std"]
    return evaluations.assign(**{name: evaluations[name].clip(-LARGEST, LARGEST) for name in columns})


def _label(value_label: str) -> str:
    return shortened(printable(value_label), 44) or "value"


def _scale_values(axes: Axes, values: pd.Series, log10: bool, name: str) -> NumberFormat:
    """Set up the axis ``name`` for ``values`` and return the format of single ones."""
    log10 = log10 and bool(len(values)) and bool((values > 0).all())
    axis = axes.yaxis if name == "y" else axes.xaxis
    if log10:
        if name == "y":
            axes.set_yscale("log")
        else:
            axes.set_xscale("log")
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        if len(values) and values.max() < 30 * values.min():
            axis.set_minor_formatter(FuncFormatter(lambda value, _: f"{value:,g}" if f"{value:e}"[0] in "25" else ""))
        else:
            axis.set_minor_formatter(FuncFormatter(lambda *_: ""))
    else:
        largest = float(values.abs().max()) if len(values) else 0.0
        # A power of ten at the end of the axis, as matplotlib writes it, would run into the legend.
        if largest >= 1e6 or 0 < largest < 1e-3:
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.4g}"))
        else:
            axes.ticklabel_format(axis="y" if name == "y" else "x", useOffset=False)
    return number_format(values, log10=log10)


def _name_first(evaluations: pd.DataFrame) -> str:
    """What no model chose; suggestions have names in a campaign only, where values may also have been imported."""
    return "chosen without a model" if "name" in evaluations and (evaluations["name"] != "").any() else "initial design"


def _row_numbers(rows: pd.DataFrame) -> str:
    return ROWS + ",".join(str(int(number)) for number in rows["number"])


def _draw_baseline(axes: Axes, baseline: pd.DataFrame) -> None:
    names = ["mean", "low", "high"]
    baseline = baseline.assign(**{name: baseline[name].clip(-LARGEST, LARGEST) for name in names})
    banded = baseline[baseline["low"].notna()]
    if len(banded) > 1:
        axes.fill_between(banded["draws"], banded["low"], banded["high"], color=RANDOM, alpha=0.16, linewidth=0)
    axes.plot(
        baseline["draws"],
        baseline["mean"],
        color=RANDOM,
        linewidth=1.4,
        linestyle=(0, (5, 2)),
        label="best at random (mean, 90%)" if len(banded) > 1 else "best at random (mean)",
        zorder=2,
    )


def _draw_batches(axes: Axes, evaluations: pd.DataFrame) -> None:
    batches = evaluations["batch"].to_numpy()
    starts = np.flatnonzero(np.diff(batches)) + 1
    if len(starts) > MANY_BATCHES:
        starts = starts[:1]
    for start in starts:
        axes.axvline(evaluations["place"].iloc[start] - 0.5, color=GRID, linewidth=0.9, zorder=1)


def _draw_failures(axes: Axes, evaluations: pd.DataFrame) -> None:
    failed = evaluations[evaluations["status"] == "failed"]
    if len(failed):
        axes.plot(
            failed["place"],
            np.full(len(failed), 0.022),
            "x",
            color=INK,
            markersize=6,
            markeredgewidth=1.3,
            transform=axes.get_xaxis_transform(),
            label="failed" if len(failed) == 1 else f"{len(failed):,} failed",
            zorder=5,
        )


def _draw_discarded(axes: Axes, evaluations: pd.DataFrame) -> None:
    """Values that were measured, and are not modelled."""
    rows = evaluations[(evaluations["status"] == "discarded") & evaluations["value"].notna()]
    if len(rows):
        axes.scatter(
            *(rows["place"], rows["value"]), s=26, facecolors="none", edgecolors=MUTED, label="discarded", zorder=3
        )


def draw_legend(axes: Axes, columns: int | None = None) -> None:
    """Above the panel, where it hides nothing; by default in as few rows as have room there."""
    handles, _ = axes.get_legend_handles_labels()
    if not handles:
        return
    # The layout leaves less around a panel than there is before it.
    room = 1.15 * axes.get_window_extent().width
    for rows in range(1, len(handles) + 1):
        legend = axes.legend(
            loc="lower left",
            bbox_to_anchor=(-0.01, 1.0),
            ncols=math.ceil(len(handles) / rows) if columns is None else columns,
            fontsize=None if columns is None else 8,
            frameon=False,
            borderpad=0,
            columnspacing=1.2,
            handletextpad=0.4,
        )
        # The layout of a figure collapses where a legend is wider than that.
        if columns is not None or legend.get_window_extent().width <= room:
            break


def _name_best(axes: Axes, number: float, best: float, direction: str, show: NumberFormat) -> None:
    above = direction != "minimize"
    axes.annotate(
        show(best),
        (number, best),
        xytext=(0, 5 if above else -5),
        textcoords="offset points",
        ha="right",
        va="bottom" if above else "top",
        color=BEST,
        fontweight="bold",
        parse_math=False,
    )
    axes.margins(y=0.09)


def _say(axes: Axes, text: str) -> None:
    axes.set_yticks([])
    axes.grid(visible=False)
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color=MUTED)
    if not axes.get_lines():
        axes.set_ylim(0, 1)
