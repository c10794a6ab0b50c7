"""The part of a page on the ways in which strings were measured: fidelities, plates, folds."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from seqopt.campaign.by_way import FEWEST_BOTH
from seqopt.campaign.parents import parent_in
from seqopt.report.axis_labels import untangle
from seqopt.report.formats import compact, printable, shortened
from seqopt.report.plot import BEST, CHOSEN, MUTED, draw_legend, plot_style
from seqopt.report.results import Run, as_number, best_so_far, context_names, context_text
from seqopt.report.view import space_facts
from seqopt.strings.mutations import short_name

LONGEST_NAME = 40
"""Characters of the name of a way that are shown in a table."""

LONGEST_STRING = 120
"""Symbols of a string that are shown in a sentence."""

SHOWN = 60
"""Ways that the table lists, those with the most measurements first."""

PAID = ("ok", "failed", "", "discarded")
"""Measurements that were made, whatever came of them."""

DRAWN = 3
"""Ways whose measurements are marked below the curve."""


@dataclass(frozen=True)
class WayRow:
    """What one way to measure has contributed.

    Attributes:
        name: What it is called.
        is_target: Whether it is what is searched for.
        measured: Measurements with a value.
        failed: Without.
        cost: What all of them cost together.
        share: Of the cost of the search, from 0 to 1.
        correlation: With the target, in words; empty where unknown.
        offset: From the target, in words; empty where unknown.
        both: Strings that were measured so and as the target; `None` for the target itself, and where it cannot be
            measured.
    """

    name: str
    is_target: bool
    measured: int
    failed: int
    cost: float
    share: float
    correlation: str = ""
    offset: str = ""
    both: int | None = None


@dataclass(frozen=True)
class Ways:
    """What a page says of the ways to measure.

    Attributes:
        title: Of the section.
        kind: What the ways are: ``"fidelity"``, ``"plate"``, ...
        rows: A row for each.
        left_out: Ways that are not listed.
        total: Cost of the search.
        target: What the target is called; empty where it cannot be measured itself.
        sentences: What is to be said, in words.
        curve: The best value of the target against cost, an SVG document; empty where there is none.
        offsets: Whether offsets are shown, as they are for plates.
    """

    title: str
    kind: str
    rows: tuple[WayRow, ...]
    left_out: int
    total: float
    target: str
    sentences: tuple[str, ...]
    curve: str
    offsets: bool


def ways_of(run: Run, value_label: str) -> Ways | None:
    """The ways to measure of a search; `None` where there is only one.

    Args:
        run: The search.
        value_label: Name and unit of the values.
    """
    contexts, table = run.settings.get("contexts"), run.everything
    if not isinstance(contexts, Mapping) or table is None:
        return None
    names = context_names(contexts)
    kind = names[0] if len(names) == 1 else "way to measure"
    target = _text(dict(contexts.get("target") or ()), names)
    tried = table[table["status"].isin(PAID)]
    total = float(tried["cost"].sum())
    learned = {_text(one.get("context") or {}, names): one for one in run.learned}
    order = [_text(dict(one), names) for one in contexts.get("possible", ())]
    order += [name for name in dict.fromkeys(tried["context"]) if name not in order]
    offsets = not target and (not run.learned or any("offset" in one for one in run.learned))
    valued = tried[tried["measured"]]
    as_target = set(valued.loc[valued["context"] == target, "key"]) if target else None
    rows = []
    for name in order:
        own = tried[tried["context"] == name]
        cost = float(own["cost"].sum())
        found = learned.get(name, {})
        rows.append(
            WayRow(
                shortened(printable(name), LONGEST_NAME),
                name == target,
                int(own["measured"].sum()),
                int((own["status"] == "failed").sum()),
                cost,
                cost / total if total else 0.0,
                "" if name == target else _correlation(found),
                _offset(found) if offsets else "",
                None
                if as_target is None or name == target
                else len(as_target & set(valued.loc[valued["context"] == name, "key"])),
            )
        )
    return Ways(
        "Plates" if offsets and kind == "plate" else f"What each {kind} contributed",
        kind,
        tuple(rows[:SHOWN]),
        max(len(rows) - SHOWN, 0),
        total,
        shortened(printable(target), LONGEST_NAME),
        (*_recommended(run), *_sentences(rows, learned, order, target, kind, offsets)),
        # Where all cost the same, the plot of progress says it already.
        _curve(table, run, target, value_label) if tried["cost"].nunique() > 1 else "",
        offsets,
    )


def _recommended(run: Run) -> list[str]:
    string = run.recommended.get("string")
    mean, std = (as_number(run.recommended.get(f"predicted_{name}")) for name in ("mean", "std"))
    if not isinstance(string, str) or mean is None or std is None:
        return []
    parent = parent_in(run.settings, space_facts(run))
    called = str(run.recommended.get("identifier") or short_name(parent, string) or string)
    return [
        f"Recommended, by the model's mean of the target: {shortened(printable(called), LONGEST_STRING)}, predicted "
        f"{compact(mean)} ± {compact(std)} (1 sd)."
    ]


def _text(context: Mapping[str, Any], names: list[str]) -> str:
    return ", ".join(
        (f"{name} " if len(names) > 1 else "") + context_text(context[name]) for name in names if name in context
    )


def _interval(found: Mapping[str, Any], name: str) -> str:
    low, high = found.get(f"{name}_low"), found.get(f"{name}_high")
    if low is None or high is None or not high > low:
        return ""
    return f" (90%: {compact(float(low))} to {compact(float(high))})"


def _correlation(found: Mapping[str, Any]) -> str:
    value = found.get("correlation")
    return "" if value is None else f"{float(value):.2f}{_interval(found, 'correlation')}"


def _offset(found: Mapping[str, Any]) -> str:
    value = found.get("offset")
    return "" if value is None else f"{float(value):+.3g}{_interval(found, 'offset')}"


def _sentences(
    rows: list[WayRow],
    learned: Mapping[str, Mapping[str, Any]],
    order: list[str],
    target: str,
    kind: str,
    offsets: bool,
) -> list[str]:
    found = []
    for row, name in zip(rows, order, strict=True):
        facts = learned.get(name, {})
        if row.is_target and not row.measured:
            found.append(f"Nothing was measured by {row.name} yet, which is what is searched for.")
        if not offsets and facts.get("correlation") is not None:
            meant = shortened(printable(target), LONGEST_NAME)
            if row.both is not None and row.both < FEWEST_BOTH:
                found.append(_few(row.name, row.both, meant, _correlation(facts)))
            else:
                found.append(_worth(row.name, float(facts["correlation"]), meant))
    if offsets:
        clear = [
            (row.name, float(learned[name]["offset"]))
            for row, name in zip(rows, order, strict=True)
            if "offset" in learned.get(name, {}) and learned[name]["offset_low"] * learned[name]["offset_high"] > 0
        ]
        if clear:
            listed = "; ".join(
                f"{name} reads {compact(abs(by))} {'higher' if by > 0 else 'lower'}" for name, by in clear[: DRAWN * 2]
            )
            more = f"; and {len(clear) - DRAWN * 2} others" if len(clear) > DRAWN * 2 else ""
            found.append(f"Offsets that are more than chance: {listed}{more} than the {kind}s have in common.")
        elif learned:
            found.append(f"No {kind} differs from the others by more than chance.")
    return found


def _few(name: str, both: int, target: str, correlation: str) -> str:
    """That too few strings were measured in both ways to say what a correlation is."""
    strings = "No string was" if not both else "Only one string was" if both == 1 else f"Only {both} strings were"
    return (
        f"{strings} measured both by {name} and as {target}, too few to judge what {name} tells of it "
        f"({FEWEST_BOTH} or more are needed): the model goes by a correlation of {correlation}, which a few strings "
        "more may change."
    )


def _worth(name: str, correlation: float, target: str) -> str:
    """What a correlation means to somebody who pays for measurements."""
    share = correlation**2
    worth = (
        "next to nothing"
        if share < 0.05
        else "a little"
        if share < 0.3
        else "a good deal"
        if share < 0.7
        else "most"
        if share < 0.95
        else "nearly all"
    )
    down = " (where one is high, the other is low)" if correlation < 0 and share >= 0.05 else ""
    return (
        f"By the model, {name} tells {worth} of {target}{down}: a correlation of {correlation:.2f} leaves "
        f"{'less than 1' if share > 0.99 else format(100 * (1 - share), '.0f')}% of the variance of {target} open."
    )


def _curve(table: pd.DataFrame, run: Run, target: str, value_label: str) -> str:
    """Best value of the target against what had been spent."""
    tried = table[table["status"].isin(PAID)].copy()
    spent = tried["cost"].cumsum().to_numpy()
    meant = tried["context"] == target if target else pd.Series(True, index=tried.index)
    tried["measured"] = tried["measured"] & meant
    best = best_so_far(tried, run.direction).to_numpy()
    values = tried["value"].where(tried["measured"]).to_numpy()
    if not np.isfinite(best).any():
        return ""
    with plot_style():
        figure = Figure(figsize=(7.4, 3.3), layout="constrained")
        axes = figure.subplots()
        chosen = tried["batch"].to_numpy() > 0
        for rows, colour, name in ((~chosen, MUTED, "to begin with"), (chosen, CHOSEN, "chosen by the model")):
            if np.isfinite(values[rows]).any():
                axes.scatter(
                    spent[rows], values[rows], s=24, color=colour, linewidths=0, alpha=0.85, label=name, zorder=3
                )
        axes.step(spent, best, where="post", color=BEST, linewidth=1.8, label="best so far", zorder=2)
        others = [name for name in dict.fromkeys(tried["context"]) if name != target and target]
        for place, name in enumerate(others[:DRAWN]):
            at = spent[(tried["context"] == name).to_numpy()]
            axes.plot(
                at,
                np.full(len(at), 0.02 + 0.045 * place),
                "|",
                color=MUTED if place % 2 == 0 else CHOSEN,
                markersize=7,
                transform=axes.get_xaxis_transform(),
                label=f"{shortened(printable(name), 20)} ({len(at):,})",
                zorder=4,
            )
        lowest = np.nanmin(values) if np.isfinite(values).any() else 0.0
        highest = np.nanmax(values) if np.isfinite(values).any() else 1.0
        room = (highest - lowest or 1.0) * 0.08
        axes.set_ylim(lowest - room * (1 + len(others[:DRAWN])), highest + room)
        axes.set_xlim(0.0, max(float(spent[-1]) * 1.02, math.ulp(1.0)))
        axes.set_xlabel("cost so far")
        better = "lower" if run.direction == "minimize" else "higher"
        axes.set_ylabel(f"{shortened(printable(value_label), 28)} ({better} is better)", parse_math=False)
        draw_legend(axes)
        untangle(figure)
        stream = io.StringIO()
        figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None})
    return stream.getvalue()
