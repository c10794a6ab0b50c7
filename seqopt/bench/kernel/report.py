"""Tables and plots of what `seqopt bench kernel` measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seqopt.bench.conditions import measured_by
from seqopt.bench.kernel.timing import Row, median, rate, rate_ratio, ratio
from seqopt.bench.runner import replace_section

Sections = dict[str, dict[str, Any]]
"""The stored results by name of section, see `seqopt.bench.kernel.command`."""

YARDSTICK_GOAL = 0.6
GAUCHE_GOAL = 300.0
FEATURES_GOAL = 20.0
FIT_GOAL = 10.0
SPARE_BYTES = 500e6
"""Memory besides the arrays of the memory goals, 2 n + 2 of them with caching and 3 without."""

WIDTH = 180
"""Columns of the tables in a file or pipe."""

LABELS = {
    "cpu": "cpu",
    "yardstick": "hand-written loop",
    "features": "features",
    "reference": "reference",
    "cuda": "cuda",
}
COLOURS = {
    "cpu": "#0072B2",
    "yardstick": "#999999",
    "features": "#009E73",
    "reference": "#D55E00",
    "cuda": "#CC79A7",
}


@dataclass(frozen=True)
class Table:
    """A table for the terminal and for Markdown.

    Attributes:
        title: What it shows.
        columns: Headings.
        rows: As many cells each as there are columns.
        note: A sentence below it.
    """

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    note: str = ""

    def to_markdown(self) -> str:
        """With the title in bold above it."""
        lines = [f"**{self.title}**", "", f"| {' | '.join(self.columns)} |", "|" + "---|" * len(self.columns)]
        lines += [f"| {' | '.join(row)} |" for row in self.rows]
        return "\n".join(lines + (["", self.note] if self.note else []))

    def print(self) -> None:
        """On the terminal; where the output is none, wide enough for every cell."""
        from rich import box
        from rich.console import Console
        from rich.table import Table as RichTable
        from rich.text import Text

        terminal = Console(highlight=False)
        console = terminal if terminal.is_terminal else Console(highlight=False, width=WIDTH)
        table = RichTable(title=Text(self.title), title_justify="left", box=box.SIMPLE_HEAD)
        for number, column in enumerate(self.columns):
            table.add_column(Text(column), justify="right" if number else "left")
        for row in self.rows:
            table.add_row(*(Text(cell) for cell in row))
        console.print(table)
        if self.note:
            console.print(Text(self.note + "\n"))


def table_of(name: str, section: dict[str, Any]) -> Table | None:
    """The table of one section; `None` where nothing could be measured."""
    if not section["rows"]:
        return None
    table = _TABLES[name](section)
    return table if table.rows else None


def write_document(document: Path, sections: Sections) -> None:
    """Put goals, tables and plots into section ``kernel`` of a Markdown document, and the plots next to it."""
    parts = [_conditions(sections), goals(sections).to_markdown()]
    for name, section in sections.items():
        if (table := table_of(name, section)) is not None:
            parts.append(table.to_markdown())
        if "unavailable" in section:
            parts.append(f"{section['unavailable']}.")
        if name in _PLOTS:
            plot, alternative = _PLOTS[name]
            picture = document.parent / "img" / f"kernel-{name}.png"
            picture.parent.mkdir(parents=True, exist_ok=True)
            plot(section["rows"], picture)
            parts.append(f"![{alternative}](img/{picture.name})")
    replace_section(document, "kernel", "\n\n".join(parts))


def _conditions(sections: Sections) -> str:
    """Machine, versions and commands, each as often as they differ between sections."""
    loads = [value for section in sections.values() for value in section["load_average"] if value is not None]
    lines = [measured_by(section["record"] for section in sections.values())]
    if loads:
        lines.append(f"Load average of the machine when sections began and ended: {min(loads):g} to {max(loads):g}.")
    if not any(row.get("engine") == "cuda" for section in sections.values() for row in section["rows"]):
        lines.append(
            "No GPU was at hand: the `cuda` engine is tested against `reference` for correctness, its speed is "
            "unmeasured."
        )
    return " ".join(lines)


def goals(sections: Sections) -> Table:
    """Every goal of which something was measured, with the measurement."""
    rows: list[tuple[str, ...]] = []

    def add(what: str, goal: str, measured: str, met: bool) -> None:
        rows.append((what, goal, measured, "yes" if met else "no"))

    def rows_of(name: str) -> list[Row]:
        return list(sections[name]["rows"]) if name in sections else []

    if found := [ratio(loop, cpu) for cpu, loop in _beside_yardstick(rows_of("yardstick"))]:
        add(
            "`cpu` as a fraction of the hand-written loop's speed, lowest case",
            f"at least {YARDSTICK_GOAL:g}",
            f"{min(found):.2f} (highest {max(found):.2f})",
            min(found) >= YARDSTICK_GOAL,
        )
    if groups := _beside_gauche(rows_of("gauche")):
        values = [ratio(theirs, ours) for theirs, ours, _ in groups]
        add(
            "`SubsequenceKernel` against GAUCHE on the same ZINC SMILES, lowest of four cases",
            f"at least {GAUCHE_GOAL:g} times faster",
            f"{min(values):,.0f} times faster (highest {max(values):,.0f})",
            min(values) >= GAUCHE_GOAL,
        )
    for row in rows_of("memory"):
        limit, arrays = _memory_limit(row)
        add(
            f"peak memory of a {row['strings']:,} x {row['strings']:,} Gram matrix with gradients, {_cache_label(row)}",
            f"{arrays} arrays + 500 MB = {limit / 1e6:,.0f} MB",
            f"{row['bytes'] / 1e6:,.0f} MB ({row['triangles']:.1f} arrays)",
            row["bytes"] <= limit,
        )
    for length, rows_of_length in _by(rows_of("partitions"), "length", "derivative").items():
        whole, finest = rows_of_length[0], rows_of_length[-1]
        speedup = ratio(whole, finest)
        add(
            f"{finest['partitions']} partitions, DNA of {length[0]:,} letters"
            f"{', with the derivative' if length[1] else ''}: times faster than 1",
            f"{finest['partitions']}",
            f"{speedup:.1f}",
            speedup >= 0.9 * finest["partitions"],
        )
    for cpu, features in _cpu_beside(rows_of("features"), "features"):
        add(
            f"`features` over `cpu`, {cpu['strings']:,} DNA strings of {cpu['mean_length']:g} letters"
            f"{', with the derivative' if cpu['derivative'] else ''}",
            f"at least {FEATURES_GOAL:g} times",
            f"{ratio(cpu, features):.1f}",
            ratio(cpu, features) >= FEATURES_GOAL,
        )
    for row in rows_of("fit")[:1]:
        add(
            f"fit to {row['strings']} ZINC molecules, {row['restarts']} restarts",
            f"at most {FIT_GOAL:g} s",
            f"{median(row):.1f} s",
            median(row) <= FIT_GOAL,
        )
    return Table("Goals", ("what", "goal", "measured", "met"), rows)


def _yardstick_table(section: dict[str, Any]) -> Table:
    pairs = _beside_yardstick(section["rows"])
    first = pairs[0][0]
    return Table(
        f"`cpu` engine and hand-vectorised C++ loop ({section['instructions']}), {first['strings']:,} ZINC SMILES, "
        f"order {first['order']}: million pairs/s",
        ("precision", "derivative", "threads", "cpu", "hand-written loop", "cpu / loop"),
        [
            (
                cpu["dtype"],
                "yes" if cpu["derivative"] else "no",
                str(cpu["threads"]),
                _millions(cpu),
                _millions(loop),
                f"{ratio(loop, cpu):.2f}",
            )
            for cpu, loop in pairs
        ],
        f"Compiled with {section['compiler']}, `{' '.join(section['flags'])}`. Both differ from the reference engine "
        f"by at most {section['differences_from_reference']['float64']:.0e} (float64) and "
        f"{section['differences_from_reference']['float32']:.0e} (float32) of the largest value.",
    )


def _gauche_table(section: dict[str, Any]) -> Table:
    groups = _beside_gauche(section["rows"])
    many = groups[0][2]["strings"]
    worst = max(value["gram"] for value in section["differences"].values())
    memory = section["memory"]
    return Table(
        f"`SubsequenceKernel`, nothing cached, and GAUCHE {section['version']}, ZINC SMILES: thousand pairs/s",
        (
            "precision",
            "gradients",
            "strings",
            "GAUCHE",
            "ours",
            "times faster",
            f"ours, {many:,} strings",
            "times GAUCHE's",
        ),
        [
            (
                theirs["dtype"],
                "yes" if theirs["gradients"] else "no",
                str(theirs["strings"]),
                f"{rate(theirs) / 1e3:.3g}",
                f"{rate(ours) / 1e3:,.0f}",
                f"{ratio(theirs, ours):,.0f}",
                f"{rate(larger) / 1e3:,.0f}",
                f"{rate_ratio(theirs, larger):,.0f}",
            )
            for theirs, ours, larger in groups
        ],
        f"The normalised Gram matrices differ by at most {worst:.0e}. All entries count as pairs for GAUCHE, which "
        "evaluates them all; distinct pairs count for ours, which takes a millisecond or more however few they are; "
        "'times faster' compares the time of the same Gram matrix. GAUCHE's peak memory for "
        f"{memory['strings']} strings with gradients: {memory['bytes'] / 1e6:,.0f} MB "
        f"({memory['triangles']:,.0f} arrays of n (n + 1) / 2 float64 numbers).",
    )


def _memory_table(section: dict[str, Any]) -> Table:
    rows = section["rows"]
    return Table(
        f"Peak memory of a {rows[0]['strings']:,} x {rows[0]['strings']:,} Gram matrix with gradients, "
        f"order {rows[0]['order']}, float64",
        ("caching", "MB", "arrays of n (n + 1) / 2 numbers", "limit, MB"),
        [
            (
                _cache_label(row),
                f"{row['bytes'] / 1e6:,.0f}",
                f"{row['triangles']:.1f}",
                f"{_memory_limit(row)[0] / 1e6:,.0f}",
            )
            for row in rows
        ],
        "Rise of a fresh process over its state after a small Gram matrix; the dense result, 2 arrays, included.",
    )


def _sweep_table(title: str, heading: str, key: Callable[[Row], str]) -> Callable[[dict[str, Any]], Table]:
    def build(section: dict[str, Any]) -> Table:
        rows = section["rows"]
        engines = list(dict.fromkeys(row["engine"] for row in rows if "seconds" in row))
        points: dict[str, dict[str, list[str]]] = {}
        for row in rows:
            cells = points.setdefault(key(row), {engine: [] for engine in engines})
            if "seconds" in row:
                cells[row["engine"]].append(_millions(row))
        return Table(
            f"{title}: million pairs/s, values only / with the derivative",
            (heading, *(LABELS[engine] for engine in engines)),
            [(point, *(" / ".join(cells[engine]) or "-" for engine in engines)) for point, cells in points.items()],
            f"float64, {rows[0]['threads']} threads.",
        )

    return build


def _partitions_table(section: dict[str, Any]) -> Table:
    groups = _by(section["rows"], "length", "partitions")
    lines = []
    for (length, partitions), rows in groups.items():
        whole = groups[length, 1]
        cells = [f"{_millions(row)} ({ratio(first, row):.1f} x)" for first, row in zip(whole, rows, strict=True)]
        lines.append((f"{length:,}", str(partitions), *cells))
    return Table(
        f"Partitions, `cpu` engine, {section['rows'][0]['strings']} random DNA strings: million pairs/s",
        ("length", "partitions", "values only", "with the derivative"),
        lines,
    )


def _features_table(section: dict[str, Any]) -> Table:
    pairs = _cpu_beside(section["rows"], "features")
    first = section["rows"][0]
    return Table(
        f"Exact features, {first['strings']:,} random DNA strings of {first['mean_length']:g} letters: seconds",
        ("derivative", "features", "cpu", "times faster"),
        [
            (
                "yes" if cpu["derivative"] else "no",
                f"{median(features):.3g}",
                f"{median(cpu):.3g}",
                f"{ratio(cpu, features):.1f}",
            )
            for cpu, features in pairs
        ],
        f"float64, {first['threads']} threads.",
    )


def _sharing_table(section: dict[str, Any]) -> Table:
    lines: list[tuple[str, ...]] = []
    for (what, derivative), rows in _by(section["rows"], "what", "derivative").items():
        pairs, cpu = rows
        lines.append(
            (
                what,
                "yes" if derivative else "no",
                f"{cpu['rows_left']:.2f}",
                f"{median(pairs):.3g}",
                f"{median(cpu):.3g}",
                f"{ratio(pairs, cpu):.2f}",
            )
        )
    first = section["rows"][0]
    return Table(
        "Prefixes and endings that strings share, computed once (`cpu`) and not (`pairs`): seconds",
        ("covariances", "derivative", "work left, estimated", "pairs", "cpu", "times faster"),
        lines,
        f"float64, {first['threads']} threads, order {first['order']}; the plan is made before. Where the estimate "
        "leaves all of the work, `cpu` is `pairs`.",
    )


def _gpu_table(section: dict[str, Any]) -> Table:
    lines: list[tuple[str, ...]] = []
    for (what, precision, derivative), rows in _by(section["rows"], "what", "dtype", "derivative").items():
        cpu, cuda, device = rows
        lines.append(
            (
                what,
                precision,
                "yes" if derivative else "no",
                *(_millions(row) for row in rows),
                f"{ratio(cpu, cuda):.1f}",
                f"{device['cells'] / median(device) / 1e9:,.0f}",
            )
        )
    first, differences = section["rows"][0], section["differences_from_cpu"]
    return Table(
        f"`cuda` engine ({section['record']['machine'].get('gpu', 'a GPU')}) and `cpu` engine ({first['threads']} "
        "threads): million pairs/s",
        (
            "covariances",
            "precision",
            "derivative",
            "cpu",
            "cuda",
            "cuda, nothing brought back",
            "times cpu",
            "billion cells/s on the GPU",
        ),
        lines,
        f"Order {first['order']}. *cuda* is a whole call: strings are brought to the GPU and results back. The results "
        f"differ from those of `cpu` in double precision by at most {differences['float64']:.0e} (float64) and "
        f"{differences['float32']:.0e} (float32) of the largest value of their order.",
    )


def _gpu_few_table(section: dict[str, Any]) -> Table:
    lines: list[tuple[str, ...]] = []
    threads = sorted({row["threads"] for row in section["rows"] if row["engine"] == "cpu"})
    for (length, strings, columns, derivative), rows in _by(
        [{"columns": 0, **row} for row in section["rows"]], "mean_length", "strings", "columns", "derivative"
    ).items():
        *cpu, cuda = rows
        lines.append(
            (
                f"{length:,.0f}",
                f"{strings}" if not columns else f"{strings} with {columns} others",
                "yes" if derivative else "no",
                *(f"{median(row):.3g}" for row in rows),
                *(f"{ratio(row, cuda):.2g}" for row in cpu),
            )
        )
    named = [f"{count} thread{'s' if count > 1 else ''}" for count in threads]
    return Table(
        f"Few long strings: seconds by `cpu` engine and by `cuda` ({section['record']['machine'].get('gpu', 'a GPU')})",
        (
            "letters",
            "strings",
            "derivative",
            *(f"cpu, {name}" for name in named),
            "cuda",
            *(f"times {name}" for name in named),
        ),
        lines,
        f"Random DNA strings, order {section['rows'][0]['order']}, float64; a whole call.",
    )


def _fit_table(section: dict[str, Any]) -> Table:
    return Table(
        "Marginal-likelihood fits to penalised logP",
        ("molecules", "restarts", "gap decay interpolated", "seconds", "log posterior reached, by seed"),
        [
            (
                str(row["strings"]),
                str(row["restarts"]),
                "yes" if row["interpolate"] else "no",
                f"{median(row):.2f}",
                ", ".join(f"{value:.2f}" for value in row["log_posterior"]),
            )
            for row in section["rows"]
        ],
    )


def _nodes_table(section: dict[str, Any]) -> Table:
    lines: list[tuple[str, ...]] = []
    for (what,), (interpolated, exact) in _by(section["rows"], "what").items():
        gaps = [abs(a - b) for a, b in zip(interpolated["log_posterior"], exact["log_posterior"], strict=True)]
        lines.append(
            (
                f"{interpolated['strings']} {what}",
                str(interpolated["nodes"]),
                f"{median(interpolated):.2f}",
                f"{median(exact):.2f}",
                f"{ratio(exact, interpolated):.2f}",
                f"{max(gaps):.1g}",
            )
        )
    return Table(
        "Fits of `StringGP` with and without interpolation in the gap decay: processor seconds, one thread",
        (
            "strings",
            "nodes",
            "interpolated",
            "not interpolated",
            "times faster",
            "difference of the log posteriors reached, largest",
        ),
        lines,
        f"Two starts, order 5, medians of {len(section['rows'][0]['seconds'])} rounds.",
    )


_TABLES: dict[str, Callable[[dict[str, Any]], Table]] = {
    "yardstick": _yardstick_table,
    "gauche": _gauche_table,
    "memory": _memory_table,
    "count": _sweep_table("Gram matrices of n ZINC SMILES", "n", lambda row: f"{row['count']:,}"),
    "length": _sweep_table("Random strings of one length", "strings", lambda row: f"{row['kind']}, {row['length']:,}"),
    "order": _sweep_table("ZINC SMILES, longest sub-sequence n", "n", lambda row: str(row["order"])),
    "alphabet": _sweep_table("Random strings over an alphabet", "symbols", lambda row: f"{row['alphabet']:,}"),
    "partitions": _partitions_table,
    "features": _features_table,
    "sharing": _sharing_table,
    "gpu": _gpu_table,
    "gpu-few": _gpu_few_table,
    "fit": _fit_table,
    "nodes": _nodes_table,
}


def plot_lengths(rows: Sequence[Row], picture: Path) -> None:
    """Time of a pair against the length of its strings, one panel for each kind of string."""
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    figure, panels = _panels(len(kinds))
    for axes, kind in zip(panels, kinds, strict=True):
        _curves(axes, [row for row in rows if row["kind"] == kind], "length", lambda row: 1e6 / rate(row))
        axes.set(title=f"random {kind} strings", xlabel="length")
    panels[0].set_ylabel("microseconds per pair")
    _save(figure, panels[-1], picture)


def plot_counts(rows: Sequence[Row], picture: Path) -> None:
    """Time of a Gram matrix against its size."""
    figure, (axes,) = _panels(1)
    _curves(axes, rows, "count", median)
    axes.set(title="Gram matrix of ZINC SMILES", xlabel="n", ylabel="seconds")
    _save(figure, axes, picture)


_PLOTS: dict[str, tuple[Callable[[Sequence[Row], Path], None], str]] = {
    "length": (plot_lengths, "Time of a pair against the length of its strings"),
    "count": (plot_counts, "Time of a Gram matrix against its size"),
}


def _panels(count: int) -> tuple[Any, list[Any]]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2.6 + 3.4 * count, 3.8), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, list(figure.subplots(1, count, sharey=True, squeeze=False)[0])


def _curves(axes: Any, rows: Sequence[Row], x: str, y: Callable[[Row], float]) -> None:
    for (engine, derivative), found in _by([row for row in rows if "seconds" in row], "engine", "derivative").items():
        axes.plot(
            [row[x] for row in found],
            [y(row) for row in found],
            marker="o",
            markersize=3,
            linestyle="--" if derivative else "-",
            color=COLOURS[engine],
            label=f"{LABELS[engine]}{', with derivative' if derivative else ''}",
        )
    axes.set(xscale="log", yscale="log")
    axes.grid(alpha=0.2, which="both")


def _save(figure: Any, axes: Any, picture: Path) -> None:
    # An engine may be missing from one of the panels.
    lines = {line.get_label(): line for panel in figure.axes for line in panel.get_lines()}
    axes.legend(lines.values(), lines, fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    figure.savefig(picture, dpi=150)


def _by(rows: Sequence[Row], *keys: str) -> dict[tuple[Any, ...], list[Row]]:
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return groups


def _beside_yardstick(rows: Sequence[Row]) -> list[tuple[Row, Row]]:
    return _cpu_beside(rows, "yardstick")


def _cpu_beside(rows: Sequence[Row], other: str) -> list[tuple[Row, Row]]:
    """The row of the `cpu` engine and that of another, wherever both were timed."""
    pairs = []
    for group in _by([row for row in rows if "seconds" in row], "dtype", "derivative", "threads").values():
        by_engine = {row["engine"]: row for row in group}
        if {"cpu", other} <= by_engine.keys():
            pairs.append((by_engine["cpu"], by_engine[other]))
    return pairs


def _beside_gauche(rows: Sequence[Row]) -> list[tuple[Row, Row, Row]]:
    """GAUCHE's row, ours of the same strings, and ours of many, for each precision with and without gradients."""
    return [(theirs, same, many) for theirs, same, many in _by(rows, "dtype", "gradients").values()]


def _memory_limit(row: Row) -> tuple[float, int]:
    arrays = 3 if row["cache"] == "nothing" else 2 * row["order"] + 2
    return arrays * 8 * row["strings"] * (row["strings"] + 1) / 2 + SPARE_BYTES, arrays


def _cache_label(row: Row) -> str:
    return {"everything": "all sums cached", "default": "default cache", "nothing": "no cache"}[row["cache"]]


def _millions(row: Row) -> str:
    return f"{rate(row) / 1e6:.3g}"
