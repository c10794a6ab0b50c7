"""The page that a search leaves: self-contained HTML, for a browser, a telephone or paper."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
from markupsafe import Markup

from seqopt.errors import InputError
from seqopt.identity import recognize_kind
from seqopt.report.drawing import (
    Reference,
    choose_reference,
    draw_molecule,
    inline_svg,
    mark_sequence,
    sparkline,
)
from seqopt.report.formats import NumberFormat, compact, duration, number_format, printable, shortened, significant
from seqopt.report.plot import BEST, CHOSEN, GRID, INK, MUTED, describe_quality, is_positive, panel_svg, plot_search
from seqopt.report.results import Run, as_number, best_so_far, log10_moments, predictions, ranked, read_run

THEME = {INK: "currentColor", MUTED: "var(--dot)", GRID: "var(--line)", CHOSEN: "var(--chosen)", BEST: "var(--best)"}
"""Colours of the plot that follow the page, light or dark."""

KIND_NAMES = {
    "molecule": ("molecule", "molecules"),
    "protein": ("protein", "proteins"),
    "dna": ("DNA sequence", "DNA sequences"),
    "rna": ("RNA sequence", "RNA sequences"),
}

PARAMETERS = {
    "match_decay": ("match decay", "per shared symbol: the smaller, the less long shared sub-sequences count"),
    "gap_decay": ("gap decay", "per skipped symbol: near 0 only unbroken matches count, at 1 gaps cost nothing"),
    "lengthscale": ("length scale", "distance over which values stay alike"),
    "outputscale": ("output scale", "prior variance"),
    "noise": ("noise variance", "what the model puts down to noise"),
    "noise_variance": ("noise variance", "what the model puts down to noise"),
    "mean": ("mean", "prior mean"),
}

LISTED_ERRORS = 12
"""Different error messages that are listed."""

LONGEST_LISTED = 200
"""Symbols of a string that a row of a table shows."""


def write_report(run_folder: str | os.PathLike[str], top: int = 24) -> Path:
    """Write ``report.html``, ``search.png`` and ``search.svg`` into a run folder.

    The page needs nothing but itself: no script, no network, no other file. It shows the best value, the plot, the
    best distinct strings (molecules drawn, sequences marked where they differ from their parent), the last batch, the
    model's parameters, failures, settings and versions. A finished, interrupted or running search will do.

    Args:
        run_folder: Holds ``evaluations.csv`` and, as a rule, ``summary.json``: see
            `seqopt.report.results.read_run`.
        top: Number of best strings shown.

    Returns:
        The path of the page.

    Raises:
        RunFolderError: If a file is missing or damaged.
        InputError: If ``top`` is negative.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "evaluations.csv").write_text("string,value\\nCCO,1.5\\nCCN,2.5\\n")
        ...     page = write_report(folder)
        ...     page.name, "2.5" in page.read_text(encoding="utf-8")
        ('report.html', True)
    """
    if top < 0:
        raise InputError(f"top is {top}; expected 0 or more strings to show")
    run = read_run(run_folder)
    log10 = run.settings.get("transform") == "log10" and is_positive(run.evaluations)
    label = value_label(run.settings)
    plot_search(
        run.evaluations,
        run.folder / "search",
        direction=run.direction,
        title=_title(run),
        value_label=label,
        log10=log10,
    )
    text = _environment().get_template("report.html").render(_page(run, top, label, log10))
    path = run.folder / "report.html"
    path.write_text(text, encoding="utf-8")
    return path


def value_label(settings: Mapping[str, Any]) -> str:
    """Name of the values and, where it is known, their unit.

    Example:
        >>> value_label({"objective": "column:pIC50"}), value_label({"objective": "molecular_weight"})
        ('pIC50', 'molecular_weight (g/mol)')
        >>> value_label({"objective": "scoring.py:dock", "unit": "kcal/mol"}), value_label({})
        ('dock (kcal/mol)', 'value')
    """
    spec = str(settings.get("objective") or "value")
    unit = settings.get("unit")
    name = spec
    if spec.startswith("column:"):
        name = spec.removeprefix("column:")
    elif ".py:" in spec:
        name = spec.rpartition(":")[2]
    elif unit is None:
        from seqopt.objectives import OBJECTIVES

        entry = OBJECTIVES.get(spec.partition(":")[0])
        unit = entry.unit if entry else None
    return f"{name} ({unit})" if unit else name


def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("seqopt", "report/templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Every text that the page shows passes here, before it is escaped.
        finalize=lambda value: printable(value) if type(value) is str else value,
    )


def _title(run: Run) -> str:
    name, subject = _objective_name(run), _subject(run)
    if run.settings.get("pool"):
        return f"{name}, {subject.removeprefix('in ')}"
    return f"{name} {subject}" if subject else name


def _subject(run: Run) -> str:
    """What was searched, in words that follow the objective's name; empty where the settings do not say."""
    pool = run.settings.get("pool")
    return f"in {Path(str(pool)).name}" if pool else str(run.settings.get("subject") or "")


def _names(run: Run, kind: str) -> tuple[str, str]:
    """What one of the strings is called, and several of them."""
    if _space(run).get("type") == "CodonSpace":
        return "gene", "genes"
    if run.settings.get("objective") == "expression_error":
        return "formula", "formulas"
    return KIND_NAMES.get(kind, ("string", "strings"))


def _space(run: Run) -> Mapping[str, Any]:
    space = run.settings.get("space")
    return space if isinstance(space, dict) else {}


def _choice(run: Run, names: tuple[str, str]) -> str:
    """How many strings there were to choose from, in words; empty where the settings do not say."""
    pool_size = _count(run.settings.get("pool_size"))
    if pool_size:
        return f"{pool_size:,} candidates"
    space = _space(run)
    if not space.get("size"):
        return ""
    narrowed = any(space.get(name) for name in ("forbidden", "gc", "accept"))
    return f"{'at most ' if narrowed else ''}{space['size']} {names[1]}"


def _objective_name(run: Run) -> str:
    return value_label({"objective": run.settings.get("objective"), "unit": ""})


def _page(run: Run, top: int, label: str, log10: bool) -> dict[str, Any]:
    table = run.evaluations
    kind = run.settings.get("kind")
    if kind not in (*KIND_NAMES, "text"):
        kind = recognize_kind(list(table["string"]))
    show = number_format(table.loc[table["measured"], "value"], log10=log10)
    best = ranked(table, run.direction)
    # Formulas and other text of various lengths have no positions to compare, and no groups of ten.
    aligned = kind != "text" or table["string"].str.len().nunique() <= 1
    reference = _reference(table, run.direction) if kind != "molecule" and aligned else None
    names = _names(run, kind)
    return {
        "title": _title(run),
        "label": label,
        "name": _objective_name(run),
        "subject": _subject(run),
        "description": str(run.settings.get("objective_description") or ""),
        "direction": run.direction,
        "kind": kind,
        "names": names,
        "status": run.status,
        "resume": _resume_command(run.settings),
        "headline": _headline(run, best, show, log10) | {"choice": _choice(run, names)},
        "panels": _panels(run, label, log10),
        "quality": describe_quality(table, log10=log10).split("\n"),
        "reference": reference,
        "cards": [
            _card(rank, row, kind, reference, show, names[0], log10, whole=not aligned)
            for rank, row in enumerate(_rows(best.head(top)), 1)
        ],
        "distinct": len(best),
        "log10": log10,
        "last": _last_batch(table, show, log10),
        "batches": _batches(run, show),
        "parameters": _parameters(run),
        "failures": _failures(table),
        "rejected": _count(run.settings.get("rejected")),
        "duplicates": _count(run.settings.get("duplicates")),
        "settings": [(str(name), _setting(value)) for name, value in run.settings.items() if name != "versions"],
        "versions": [(str(name), _setting(value)) for name, value in run.versions.items()],
    }


def _rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


def _reference(table: pd.DataFrame, direction: str) -> Reference | None:
    initial = ranked(table[table["batch"] == 0], direction)
    return choose_reference(list(table["key"]), initial["key"].iloc[0] if len(initial) else None)


def _headline(run: Run, best: pd.DataFrame, show: NumberFormat, log10: bool) -> dict[str, Any]:
    table = run.evaluations
    initial = table[table["batch"] == 0]
    initial_best = best_so_far(initial, run.direction)
    seconds = run.total_seconds
    choosing, scoring = _seconds(run, ("suggest", "select", "fit")), _seconds(run, ("evaluate", "objective"))
    return {
        "best": show(best["value"].iloc[0]) if len(best) else None,
        "number": int(best["number"].iloc[0]) if len(best) else None,
        "batch": int(best["batch"].iloc[0]) if len(best) else None,
        "gain": _gain(best, initial_best, run.direction, show, log10),
        "initial_best": show(initial_best.iloc[-1]) if initial_best.notna().any() else None,
        "initial": len(initial),
        "evaluations": int((table["status"] != "pending").sum()),
        "pending": int((table["status"] == "pending").sum()),
        "failed": int((table["status"] == "failed").sum()),
        "batches": int(table.loc[table["batch"] > 0, "batch"].nunique()),
        "time": None if seconds is None else duration(seconds),
        "choosing": None if choosing is None else duration(choosing),
        "scoring": None if scoring is None else duration(scoring),
    }


def _gain(best: pd.DataFrame, initial: pd.Series, direction: str, show: NumberFormat, log10: bool) -> str | None:
    """How much better than the best initial value, in words; `None` where there is nothing to compare."""
    if not len(best) or not initial.notna().any():
        return None
    found, start = float(best["value"].iloc[0]), float(initial.iloc[-1])
    if found == start:
        return "no better than"
    word = "lower" if direction == "minimize" else "higher"
    if log10:
        return f"{significant(max(found, start) / min(found, start), 3)} times {word} than"
    return f"{show(abs(found - start))} {word} than"


def _seconds(run: Run, names: tuple[str, ...]) -> float | None:
    spent = [
        number
        for step in run.steps
        if isinstance(step.get("seconds"), dict)
        for name in names
        if (number := as_number(step["seconds"].get(name))) is not None
    ]
    return sum(spent) if spent else None


def _panels(run: Run, label: str, log10: bool) -> list[tuple[str, Markup]]:
    descriptions = {
        "progress": f"Plot of {label} by evaluation, with the best so far; its numbers are in the table of batches",
        "predictions": "Plot of predicted against measured values of the strings that the model chose",
    }
    return [
        (
            panel,
            # What inline_svg returns was serialised by an XML writer, which escapes text and attributes.
            Markup(
                inline_svg(
                    panel_svg(panel, run.evaluations, direction=run.direction, value_label=label, log10=log10),
                    f"{panel}-",
                    label=printable(description),
                    colours=THEME,
                )
            ),
        )
        for panel, description in descriptions.items()
    ]


def _card(
    rank: int,
    row: dict[str, Any],
    kind: str,
    reference: Reference | None,
    show: NumberFormat,
    name: str,
    log10: bool,
    *,
    whole: bool,
) -> dict[str, Any]:
    string = str(row["string"])
    card = {
        "rank": rank,
        "string": string,
        "value": show(row["value"]),
        "number": int(row["number"]),
        "measurements": int(row["measurements"]),
        "predicted": _prediction(row, show, log10),
        "origin": "initial design" if row["batch"] == 0 else f"batch {int(row['batch'])}",
        "structure": None,
        "facts": "",
        "sequence": None,
    }
    if kind == "molecule":
        structure = draw_molecule(string, f"mol{rank}-", label=f"{name.capitalize()} {rank}")
        if structure is not None:
            card |= {"structure": Markup(structure.svg), "facts": structure.facts}
    else:
        card["sequence"] = mark_sequence(string.strip(), _aligned(reference, row), whole=whole)
    return card


def _aligned(reference: Reference | None, row: dict[str, Any]) -> str | None:
    """The reference as it is to be compared with the string of ``row``, which may be in lower case."""
    if reference is None:
        return None
    lower = row["string"].strip().islower() and row["key"].isupper()
    return reference.string.lower() if lower else reference.string


def _prediction(row: dict[str, Any], show: NumberFormat, log10: bool) -> str:
    mean, std = row["predicted_mean"], row["predicted_std"]
    if math.isnan(mean):
        return ""
    if log10 and mean > 0 and not math.isnan(std):
        # The moments of a wide log-normal distribution say little; its median and the interval around it do.
        centre, spread = log10_moments(mean, std)
        low, middle, high = (show(10**exponent) for exponent in (centre - spread, centre, centre + spread))
        return f"{middle} ({low} to {high})"
    return show(mean) if math.isnan(std) else f"{show(mean)} ± {show(std)}"


def _last_batch(table: pd.DataFrame, show: NumberFormat, log10: bool) -> dict[str, Any]:
    if not len(table):
        return {"batch": 0, "rows": []}
    rows = table[table["batch"] == table["batch"].max()]
    predicted = predictions(rows, log10=log10)
    # How many predicted standard deviations each measurement lies from its prediction.
    off = ((predicted["value"] - predicted["mean"]) / predicted["std"])[predicted["std"] > 0]
    deviations = dict(zip(predicted.loc[off.index, "number"], off, strict=True))
    return {
        "batch": int(rows["batch"].iloc[0]),
        "rows": [
            {
                "number": int(row["number"]),
                "string": shortened(row["string"], LONGEST_LISTED),
                "predicted": _prediction(row, show, log10),
                "measured": show(row["value"]) if row["measured"] else row["status"] or "failed",
                "off": f"{deviations[row['number']] + 0.0:+.1f}" if row["number"] in deviations else "",
                "error": shortened(row["error"], 160),
            }
            for row in _rows(rows)
        ],
    }


def _batches(run: Run, show: NumberFormat) -> list[dict[str, Any]]:
    table = run.evaluations
    table = table.assign(best=best_so_far(table, run.direction))
    steps = {int(number): step for step in run.steps if (number := as_number(step.get("step"))) is not None}
    batches = []
    for batch, rows in table.groupby("batch", sort=True):
        values = rows.loc[rows["measured"], "value"]
        own = values.min() if run.direction == "minimize" else values.max()
        best = rows["best"].iloc[-1]
        number = int(float(str(batch)))
        seconds = steps.get(number, {}).get("seconds")
        spent = [as_number(value) for value in seconds.values()] if isinstance(seconds, dict) else []
        batches.append(
            {
                "name": "initial" if number == 0 else str(number),
                "evaluated": len(rows),
                "failed": int((rows["status"] == "failed").sum()),
                "own": show(own) if len(values) else "–",
                "best": show(best) if not math.isnan(best) else "–",
                "better": number > 0 and bool(len(values)) and own == best and not _reached_before(table, number, best),
                "seconds": duration(sum(value or 0.0 for value in spent)) if spent else "",
            }
        )
    return batches


def _reached_before(table: pd.DataFrame, batch: int, best: float) -> bool:
    return bool((table.loc[table["batch"] < batch, "best"] == best).any())


def _parameters(run: Run) -> list[dict[str, Any]]:
    """The kernel's parameters by step; only those that are numbers."""
    kernels = [
        (int(number), step["kernel"])
        for step in run.steps
        if isinstance(step.get("kernel"), dict)
        and step["kernel"]
        and (number := as_number(step.get("step"))) is not None
    ]
    names = list(dict.fromkeys(str(name) for _, kernel in kernels for name in kernel))
    parameters = []
    for name in names:
        values = [(step, as_number(kernel.get(name))) for step, kernel in kernels]
        known = [value for _, value in values if value is not None]
        if not known:
            continue
        title, meaning = PARAMETERS.get(name, (name.replace("_", " "), ""))
        curve = sparkline([value for _, value in values])
        parameters.append(
            {
                "name": title,
                "meaning": meaning,
                "latest": compact(known[-1]),
                "range": f"{compact(min(known))} to {compact(max(known))}",
                "curve": curve,
                "end": curve.rpartition(" ")[2].split(",") if curve else [],
                "steps": [(step, "–" if value is None else compact(value)) for step, value in values],
            }
        )
    return parameters


def _failures(table: pd.DataFrame) -> list[dict[str, Any]]:
    failed = table[table["status"] == "failed"]
    counts = failed["error"].value_counts(sort=True)
    return [
        {
            "error": shortened(str(error), 300) or "no reason recorded",
            "count": int(count),
            "example": shortened(failed.loc[failed["error"] == error, "string"].iloc[0], LONGEST_LISTED),
        }
        for error, count in counts.head(LISTED_ERRORS).items()
    ] + (
        [
            {
                "error": f"{len(counts) - LISTED_ERRORS} other messages, see evaluations.csv",
                "count": int(counts.iloc[LISTED_ERRORS:].sum()),
                "example": "",
            }
        ]
        if len(counts) > LISTED_ERRORS
        else []
    )


def _count(value: object) -> int:
    number = as_number(value)
    return 0 if number is None else int(number)


def _resume_command(settings: Mapping[str, Any]) -> str:
    command = str(settings.get("command") or "").strip()
    if not command:
        return ""
    return command if "--resume" in command.split() else f"{command} --resume"


def _setting(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
