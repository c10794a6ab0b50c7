"""The map of a kernel as something to point at: strings as dots, with the structure of the one under the pointer.

`write_map_page` writes a page of its own; `seqopt.report.write_report` has the same map among other things. Dots are
drawn here, so that the map is there without JavaScript and in print; the page draws structures itself, from the short
texts of `seqopt.report.structures`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from seqopt.errors import InputError
from seqopt.report.formats import NumberFormat, number_format, printable, shortened
from seqopt.report.pages import embedded_json, environment, script_hash
from seqopt.report.structures import gene_structure, molecule_structure

GROUPS = {"pool": "random candidates", "measured": "measured", "suggested": "to be measured"}
"""Groups of points and what the legend calls them; later ones lie on top."""

WIDTH, HEIGHT, MARGIN = 1000, 680, 34
"""Units of the drawing."""

MOST_POINTS = 12_000
"""Points of a page at most."""

STRUCTURES = 6_000
"""Points whose structure a page holds at most, so that it stays small: measured and suggested ones first."""

LONGEST_TEXT = 400
"""Symbols of a string that a page holds."""

LARGEST = 1e300
"""Larger values have the colour of this one."""

# Viridis of matplotlib at eleven points: of even lightness, and distinct under any common colour blindness.
_VIRIDIS = (
    *("#440154", "#482475", "#414487", "#355f8d", "#2a788e", "#21918c"),
    *("#22a884", "#44bf70", "#7ad151", "#bddf26", "#fde725"),
)


@dataclass(frozen=True)
class MapPoint:
    """A string in a map.

    Attributes:
        string: The string.
        x: First coordinate.
        y: Second coordinate.
        value: Measured or predicted; `None` where neither is known.
        label: Its name, or what is known of it, in words.
        group: ``"pool"``, ``"measured"`` or ``"suggested"``.
        kind: What it is, for its drawing: ``"molecule"``, ``"dna"``, ``"rna"`` or another.
        number: Of its evaluation, by which a page finds its row; 0 for none.
        structure: As `seqopt.report.structures` writes it; by default made from the string.
        censored: ``"<"`` or ``">"`` where the value is a limit.
    """

    string: str
    x: float
    y: float
    value: float | None = None
    label: str = ""
    group: str = "pool"
    kind: str = "text"
    number: int = 0
    structure: str | None = None
    censored: str = ""


def write_map_page(
    path: str | os.PathLike[str],
    points: Sequence[MapPoint],
    *,
    title: str,
    value_label: str,
    note: str = "",
    minimize: bool = False,
    words: Mapping[str, str] | None = None,
) -> Path:
    """Write a page with an interactive map and nothing else; it needs no network and no other file.

    Args:
        path: The page.
        points: At least one; `MOST_POINTS` at most are shown, measured and suggested ones first.
        title: Of the page.
        value_label: Name and unit of the values.
        note: A sentence below the title.
        minimize: Whether low values are good; good ones are bright.
        words: What the legend calls groups, where it is not what `GROUPS` says.

    Returns:
        The path.

    Raises:
        InputError: If there are no points, or one has a coordinate that is not finite, or an unknown group.
        OSError: If the page cannot be written.

    Example:
        >>> import tempfile
        >>> points = [MapPoint("CCO", 0.0, 1.0, 2.5, "ethanol", "measured", "molecule"), MapPoint("CC", 1.0, 0.0)]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     page = write_map_page(Path(folder, "map.html"), points, title="A map", value_label="activity")
        ...     "ethanol" in page.read_text(encoding="utf-8")
        True
    """
    called = {**GROUPS, **(words or {})}
    drawn = draw_map(points, value_label=value_label, minimize=minimize, words=called)
    page = environment()
    text = page.get_template("map_page.html").render(
        title=title,
        note=note,
        map=drawn,
        points=len(points),
        data=embedded_json({"points": drawn.data, "curve": None, "groups": list(called.values())}),
        script_hash=script_hash(),
    )
    path = Path(path)
    path.write_text(text, encoding="utf-8", errors="backslashreplace")
    return path


@dataclass(frozen=True)
class DrawnMap:
    """A map for a page.

    Attributes:
        svg: The drawing.
        data: Of each point, in the order of the drawing: x and y, text, structure, value, label, number, group.
        legend: Groups that occur: name, words, number of points.
        low: Lower end of the colours.
        high: Upper end of the colours.
        gradient: The colours, as a CSS gradient.
        value_label: Name and unit of the values.
        clipped: Whether some values lie beyond the colours.
        left_out: Number of points that are not shown.
    """

    svg: Markup
    data: list[list[Any]]
    legend: list[tuple[str, str, int]]
    low: str
    high: str
    gradient: str
    value_label: str
    clipped: bool
    left_out: int


def draw_map(
    points: Sequence[MapPoint],
    *,
    value_label: str,
    minimize: bool = False,
    show: NumberFormat | None = None,
    words: Mapping[str, str] = GROUPS,
    log10: bool = False,
) -> DrawnMap:
    """Draw points as an SVG, with what a page needs to say of them.

    Args:
        points: The points.
        value_label: Name and unit of the values.
        minimize: Whether low values are good; good ones are bright.
        show: Format of values.
        words: What the legend calls the groups.
        log10: Whether colours follow log10 of the values. Ignored unless all of them are positive.

    Raises:
        InputError: If there are no points, or one has a coordinate that is not finite, or an unknown group.
    """
    shown = _chosen(points)
    values = np.array([math.nan if point.value is None else point.value for point in shown], dtype=np.float64)
    known = values[np.isfinite(values)]
    log10 = log10 and bool((known > 0).all())
    # Differences of the largest floats have none of their own.
    scaled = np.log10(values) if log10 else np.clip(values, -LARGEST, LARGEST)
    low, high = _limits(shown, scaled)
    show = number_format(known, log10=log10) if show is None else show
    positions = _positions(shown)
    data: list[list[Any]] = []
    marks: dict[str, list[str]] = {name: [] for name in GROUPS}
    # The drawing begins with the pool, so that the last points are those that matter most.
    first_detailed = len(shown) - STRUCTURES
    for number, (point, value, level, (x, y)) in enumerate(zip(shown, values, scaled, positions, strict=True)):
        marks[point.group].append(_mark(point, level, x, y, (low, high), minimize))
        structure = point.structure
        if structure is None:
            structure = _structure(point) if number >= first_detailed else ""
        data.append(
            [
                *(x, y, shortened(printable(point.string), LONGEST_TEXT), structure),
                "" if math.isnan(value) else printable(point.censored + show(value)),
                *(printable(point.label), point.number, list(GROUPS).index(point.group)),
            ]
        )
    groups = "".join(f'<g class="{name}">{"".join(found)}</g>' for name, found in marks.items() if found)
    label = escape(f"Map of {len(shown):,} strings, coloured by {printable(value_label)}")
    svg = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{groups}</svg>'
    colours = _VIRIDIS[::-1] if minimize else _VIRIDIS
    return DrawnMap(
        # Only numbers, our own words and the escaped label stand in it.
        svg=Markup(svg),
        data=data,
        legend=[(name, words[name], len(marks[name])) for name in GROUPS if marks[name]],
        low=show(10**low if log10 else low) if len(known) else "",
        high=show(10**high if log10 else high) if len(known) else "",
        gradient=f"linear-gradient(to right, {', '.join(colours)})",
        value_label=value_label,
        clipped=bool(len(known)) and bool(np.nanmin(scaled) < low or np.nanmax(scaled) > high),
        left_out=len(points) - len(shown),
    )


def _depth(point: MapPoint) -> int:
    return list(GROUPS).index(point.group)


def _chosen(points: Sequence[MapPoint]) -> list[MapPoint]:
    """The points that are shown, lowest first; a bad one is complained about."""
    if not points:
        raise InputError("a map needs at least one point")
    for index, point in enumerate(points):
        if point.group not in GROUPS:
            raise InputError(f"point {index} is of the group {point.group!r}: choose {', '.join(GROUPS)}")
        if not (math.isfinite(point.x) and math.isfinite(point.y)):
            raise InputError(f"point {index} ({point.string!r}) lies at ({point.x}, {point.y}): give finite numbers")
    top_first = sorted(points, key=_depth, reverse=True)[:MOST_POINTS]
    ordered = sorted(top_first, key=lambda point: (_depth(point), -math.inf if point.value is None else 0.0))
    return [
        replace(point, value=None) if point.value is not None and not math.isfinite(point.value) else point
        for point in ordered
    ]


def _limits(points: Sequence[MapPoint], values: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Values of the ends of the colours: single extreme values do not make all others look alike."""
    known = np.isfinite(values)
    if not known.any():
        return 0.0, 0.0
    measured = known & np.array([point.group == "measured" for point in points])
    ends = np.quantile(values[known], (0.02, 0.98))
    if measured.any():
        own = np.quantile(values[measured], (0.05, 0.95))
        ends = np.array([min(ends[0], own[0]), max(ends[1], own[1])])
    if ends[0] == ends[1]:
        ends = np.array([values[known].min(), values[known].max()])
    return float(ends[0]), float(ends[1])


def _positions(points: Sequence[MapPoint]) -> list[tuple[int, int]]:
    """Coordinates in units of the drawing, y downwards; both directions have one scale where that wastes little."""
    xs, ys = np.array([point.x for point in points]), np.array([point.y for point in points])
    spans = [float(np.ptp(xs)) or 1.0, float(np.ptp(ys)) or 1.0]
    scales = [(WIDTH - 2 * MARGIN) / spans[0], (HEIGHT - 2 * MARGIN) / spans[1]]
    if max(scales) < 1.6 * min(scales):
        scales = [min(scales)] * 2
    middle = [(float(xs.min()) + float(xs.max())) / 2, (float(ys.min()) + float(ys.max())) / 2]
    across: npt.NDArray[np.float64] = WIDTH / 2 + (xs - middle[0]) * scales[0]
    down: npt.NDArray[np.float64] = HEIGHT / 2 - (ys - middle[1]) * scales[1]
    return [(round(x), round(y)) for x, y in zip(across.tolist(), down.tolist(), strict=True)]


def colour(value: float, low: float, high: float, *, minimize: bool = False) -> str:
    """The colour of a value, as ``#rrggbb``: bright is good.

    Example:
        >>> colour(0.0, 0.0, 1.0), colour(2.0, 0.0, 1.0), colour(0.0, 0.0, 1.0, minimize=True)
        ('#440154', '#fde725', '#fde725')
    """
    share = 0.5 if high <= low else min(1.0, max(0.0, (value - low) / (high - low)))
    position = (1.0 - share if minimize else share) * (len(_VIRIDIS) - 1)
    left = min(int(position), len(_VIRIDIS) - 2)
    ends = [[int(_VIRIDIS[i][start : start + 2], 16) for start in (1, 3, 5)] for i in (left, left + 1)]
    mixed = [round(a + (b - a) * (position - left)) for a, b in zip(*ends, strict=True)]
    return "#" + "".join(f"{part:02x}" for part in mixed)


def _mark(point: MapPoint, value: float, x: int, y: int, limits: tuple[float, float], minimize: bool) -> str:
    fill = "" if math.isnan(value) else f' fill="{colour(value, *limits, minimize=minimize)}"'
    at = f' transform="translate({x} {y})"'
    if point.group == "suggested":
        return f'<path d="M0-11 11 0 0 11-11 0Z"{at}{fill}/>'
    return f'<circle r="{8 if point.group == "measured" else 4.5}"{at}{fill}/>'


def _structure(point: MapPoint) -> str:
    if point.kind == "molecule":
        return molecule_structure(point.string)
    return gene_structure(point.string) if point.kind in ("dna", "rna") else ""
