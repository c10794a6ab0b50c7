"""The page that a search leaves: self-contained HTML, for a browser, a telephone or paper."""

from __future__ import annotations

import logging
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from seqopt.campaign.summary import CLASSIFIERS
from seqopt.data import central
from seqopt.errors import InputError
from seqopt.report.cards import best_cards, current_batch, unmeasured_cards
from seqopt.report.curves import curves_of, trade_of
from seqopt.report.drawing import inline_svg
from seqopt.report.formats import printable, significant
from seqopt.report.hits import PANELS as HIT_PANELS
from seqopt.report.hits import facts_of
from seqopt.report.hits import panel_svg as hits_svg
from seqopt.report.map_page import GROUPS, DrawnMap, MapPoint, draw_map
from seqopt.report.pages import embedded_json, environment, script_hash
from seqopt.report.plot import (
    BEST,
    CHOSEN,
    GRID,
    INK,
    MUTED,
    RANDOM,
    describe_quality,
    panel_svg,
    plot_search,
    quality_phrases,
)
from seqopt.report.results import Run, prediction_quality, ranked
from seqopt.report.sections import (
    batches_of,
    choice_of,
    failures_of,
    filters_text,
    headline,
    parameters_of,
    replay_of,
    resume_command,
    setting_text,
    subject_of,
)
from seqopt.report.sources import find_source, read_source
from seqopt.report.string_table import StringTable, listed_rows, string_table
from seqopt.report.structures import gene_structure
from seqopt.report.view import View, checked_integer, rows_of, view_of
from seqopt.report.ways import ways_of

if TYPE_CHECKING:
    from seqopt.report.samples import Baseline

logger = logging.getLogger(__name__)

THEME = {
    INK: "currentColor",
    MUTED: "var(--dot)",
    GRID: "var(--line)",
    CHOSEN: "var(--chosen)",
    BEST: "var(--best)",
    RANDOM: "var(--random)",
}
"""Colours of the plot that follow the page, light or dark."""

FEWEST_MODELLED = 3
"""Measured strings without which no model is asked."""

FOLDED_BASES = 60_000
"""Bases of the genes of a map that are folded, so that the page does not take long."""


def write_report(
    run_folder: str | os.PathLike[str],
    top: int = 24,
    *,
    out: str | os.PathLike[str] | None = None,
    predicted: int = 12,
    highlight: Sequence[str] = (),
) -> Path:
    """Write the page of a run folder or of a campaign.

    The page needs nothing but itself: no network, no other file; without JavaScript it shows the same, only nothing
    moves. It shows the best value, the plot with a random baseline where one is known, predictions and measurements,
    the current batch and the best distinct strings (molecules drawn, genes folded, formulas as curves, other sequences
    marked where they differ from their parent), the map of the kernel, a table of all strings, the model's parameters,
    failures, settings and versions. A finished, interrupted or running search will do; what is missing is said.

    For the map, the surrogate of the search is conditioned on all its values once more, which takes about as long as
    one step of the search.

    Args:
        run_folder: A folder with ``evaluations.csv`` and, as a rule, ``summary.json``: see
            `seqopt.report.results.read_run`; or the file of a campaign.
        top: Number of best strings shown.
        out: The page, whose folder is made if need be. By default ``report.html`` in a run folder, where
            ``search.png`` and ``search.svg`` are written, too; for a campaign its name with the ending ``.html``.
        predicted: Number of the candidates of a pool shown that have not been measured and are predicted to be best.
            Nothing is fitted for them: the model is that of the map.
        highlight: Substructures of molecules, as SMARTS: they are marked in drawings, and rows can be filtered by them.

    Returns:
        The path of the page.

    Raises:
        RunFolderError: If there is no run, or its table is damaged.
        CampaignError: If there is no campaign in the file, or it is damaged.
        InputError: If ``top`` or ``predicted`` is negative, the folder of ``out`` cannot be made, or ``highlight``
            holds what is no SMARTS, or is given where strings are not molecules.
        OSError: If the page cannot be written.

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
    if predicted < 0:
        raise InputError(f"predicted is {predicted}; expected 0 or more candidates to show")
    if highlight:
        from seqopt.filters.properties import check_smarts

        for smarts in highlight:
            check_smarts(smarts)
    run_folder = find_source(run_folder)
    run = read_source(run_folder)
    if out is not None:
        _make_folder(Path(out).parent)
    view = view_of(run, value_label(run.settings), tuple(highlight))
    if highlight and view.kind != "molecule":
        raise InputError(f"--highlight marks substructures of molecules; these are {view.names[1]}: leave it out")
    view, baseline, missing = _modelled(view, predicted)
    run = view.run
    if not run.campaign and out is None:
        plot_search(
            run.evaluations,
            run.folder / "search",
            direction=run.direction,
            title=_title(run),
            value_label=view.label,
            log10=view.log10,
            baseline=None if baseline is None else baseline.table,
        )
    default = Path(run_folder).with_suffix(".html") if run.campaign else run.folder / "report.html"
    path = default if out is None else Path(out)
    text = environment().get_template("report.html").render(_page(view, top, baseline, missing))
    path.write_text(text, encoding="utf-8", errors="backslashreplace")
    return path


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder {folder} for the page: {error.strerror}; name another") from error


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


def _modelled(view: View, predicted: int) -> tuple[View, Baseline | None, list[str]]:
    """The view with what models and samples say of the search, the random baseline, and what is missing."""
    run = view.run
    curves, without_curves = curves_of(run)
    view = replace(view, curves=curves, listed=_listed(run))
    missing = [*run.missing, *([without_curves] if without_curves else [])]
    # A table alone, without settings, says nothing of a model; nor do two values.
    if not run.settings or run.evaluations["measured"].sum() < FEWEST_MODELLED:
        return view, None, missing
    from seqopt.report.analysis import analyse
    from seqopt.report.samples import (
        MOST_PREDICTED,
        POOL_SAMPLE,
        own_objective,
        random_baseline,
        sample_candidates,
    )

    wanted = MOST_PREDICTED if predicted and run.settings.get("pool") else POOL_SAMPLE
    candidates = sample_candidates(run, view.kind, wanted, library=view.library)
    score = own_objective(run) if curves is None else curves.objective()
    baseline = random_baseline(run, candidates, score, log10=view.log10)
    analysis = analyse(run, view.kind, candidates, predicted=predicted, library=view.library)
    missing += [*([candidates.missing] if candidates.missing else []), *analysis.missing]
    return replace(view, analysis=analysis, reasons={**analysis.reasons, **view.reasons}), baseline, missing


def _listed(run: Run) -> frozenset[int]:
    return frozenset(int(number) for number in listed_rows(run.evaluations, run.direction)["number"])


def _title(run: Run) -> str:
    name, subject = _objective_name(run), subject_of(run)
    if run.settings.get("pool"):
        return f"{name}, {subject.removeprefix('in ')}"
    return f"{name} {subject}" if subject else name


def _objective_name(run: Run) -> str:
    return value_label({"objective": run.settings.get("objective"), "unit": ""})


def _page(view: View, top: int, baseline: Baseline | None, missing: list[str]) -> dict[str, Any]:
    run, analysis = view.run, view.analysis
    best = ranked(run.evaluations, run.direction)
    drawn, data = _map(view)
    mapped = {point[6] for point in data["points"] if point[3]}
    table = string_table(view, mapped, [point[2] for point in data["points"] if not point[6]])
    data |= _table_data(view, table, data["points"])
    batches = batches_of(run, view.show)
    return {
        "title": _title(run),
        "label": view.label,
        "name": _objective_name(run),
        "subject": subject_of(run),
        "campaign": run.campaign,
        "description": str(run.settings.get("objective_description") or ""),
        "direction": run.direction,
        "kind": view.kind,
        "folded": view.is_folded,
        "names": view.names,
        "status": run.status,
        "missing": missing,
        "remarks": list(run.remarks),
        "resume": resume_command(run.settings),
        "headline": headline(view, best) | {"choice": choice_of(run, view.names)},
        "replay": replay_of(run),
        "panels": _panels(view, baseline),
        "quality": describe_quality(run.evaluations, log10=view.log10).split("\n"),
        "hits": facts_of(run.evaluations) if run.yes_no else None,
        "held_out": _held_out(view),
        "baseline": baseline,
        "reference": view.reference,
        "batch": current_batch(view),
        "cards": best_cards(view, top),
        "unmeasured": unmeasured_cards(view),
        "trade": trade_of(run, view.curves),
        "distinct": len(best),
        "log10": view.log10,
        "map": drawn,
        "analysis": analysis,
        "classifier": chosen_by if (chosen_by := str(run.settings.get("acquisition"))) in CLASSIFIERS else "",
        "table": table,
        "batches": batches,
        "timed": not run.settings.get("asynchronous") and any(batch["seconds"] for batch in batches),
        "parameters": parameters_of(run),
        "step": "step" if run.settings.get("asynchronous") else "batch",
        "ways": (ways := ways_of(run, view.label)),
        "cost_curve": None if ways is None or not ways.curve else _cost_curve(ways.curve, view.label),
        "failures": failures_of(run.evaluations),
        "rejected": checked_integer(run.settings.get("rejected")),
        "duplicates": checked_integer(run.settings.get("duplicates")),
        "settings": [
            (str(name), filters_text(value) if name == "filters" else setting_text(value))
            for name, value in run.settings.items()
            if name != "versions"
        ],
        "versions": [(str(name), setting_text(value)) for name, value in run.versions.items()],
        "data": embedded_json(data),
        "script_hash": script_hash(),
    }


def _map(view: View) -> tuple[DrawnMap | None, dict[str, Any]]:
    """The map, and the data of the page's script."""
    run = view.run
    curve = {"data": view.curves.points()} if view.curves is not None and view.curves.is_curve else None
    best = ranked(run.evaluations, run.direction)
    data: dict[str, Any] = {"points": [], "curve": curve, "first": int(best["number"].iloc[0]) if len(best) else 0}
    if view.analysis is None or view.analysis.map is None:
        return None, data
    words = GROUPS | {"pool": "not measured" if view.analysis.map.whole else f"random {view.names[1]}"}
    drawn = draw_map(
        _points(view),
        value_label=view.label,
        minimize=run.direction == "minimize",
        show=view.show,
        words=words,
        log10=view.log10,
    )
    return drawn, data | {"points": drawn.data, "groups": list(words.values())}


def _table_data(view: View, table: StringTable, points: list[list[Any]]) -> dict[str, Any]:
    """What the page's script needs besides the map, whose points are told which substructures they have."""
    if table.substructures:
        of_rows, others = {row.number: row.mask for row in table.rows}, iter(table.masks)
        for point in points:
            point.append(of_rows.get(point[6], "") if point[6] else next(others))
    return {
        "structures": {row.number: row.structure for row in table.rows if row.structure},
        "strings": {row.number: row.whole for row in table.rows if row.whole},
        "scaffolds": table.scaffolds,
        "lowIsGood": view.run.direction == "minimize",
        "file": re.sub(r"[^\w-]+", "-", view.run.campaign or view.run.folder.resolve().name) or "report",
    }


def _points(view: View) -> list[MapPoint]:
    assert view.analysis is not None
    assert view.analysis.map is not None
    found = view.analysis.map
    rows = {str(row["key"]): row for row in rows_of(ranked(view.run.evaluations, view.run.direction))}
    pending = view.run.evaluations[view.run.evaluations["status"] == "pending"]
    rows |= {str(row["key"]): row for row in rows_of(pending)}
    points, bases = [], 0
    # Measured and suggested strings come last, and matter most.
    for index in reversed(range(len(found.keys))):
        row = rows.get(found.keys[index], {})
        group, string = found.group[index], found.strings[index]
        structure: str | None = None
        if view.curves is not None:
            structure = view.curves.structure(string)
        elif view.kind != "molecule":
            bases += len(string)
            structure = gene_structure(string.strip()) if view.is_folded and bases <= FOLDED_BASES else ""
        measured = group == "measured"
        value = float(row["value"]) if measured else _middle(view, found.mean[index], found.std[index])
        points.append(
            MapPoint(
                string,
                float(found.coordinates[index, 0]),
                float(found.coordinates[index, 1]),
                value,
                _point_label(view, row, group, string),
                group,
                view.kind,
                int(row.get("number", 0)),
                structure,
                str(row["censored"]) if measured else "",
            )
        )
    return points[::-1]


def _middle(view: View, mean: float, std: float) -> float:
    if not (math.isfinite(mean) and math.isfinite(std)):
        return float(mean)
    return central(float(mean), float(std), "log10" if view.log10 else None) or 0.0


def _point_label(view: View, row: Mapping[str, Any], group: str, string: str) -> str:
    if group == "pool":
        called = view.library.identifier(string)
        return f"{called}, predicted" if called else "predicted"
    names = [str(row[name]) for name in ("identifier", "name") if row.get(name)]
    what = "".join(f"{name}, " for name in names) or f"no. {int(row['number'])}, "
    return what + ("predicted, to be measured" if group == "suggested" else f"measured, {view.origin(row['batch'])}")


def _held_out(view: View) -> tuple[str, str] | None:
    """How good leave-one-out predictions are, in words."""
    analysis = view.analysis
    if analysis is None or analysis.held_out is None:
        return None
    quality = prediction_quality(analysis.held_out)
    if quality is None:
        return None
    errors, coverage = quality_phrases(quality, log10=view.log10)
    errors = errors.replace("predicted)", "left out in turn)")
    r2 = "" if analysis.r2 is None else f"R² {significant(analysis.r2, 2)}, "
    return r2 + errors, coverage


def _cost_curve(svg: str, label: str) -> Markup:
    described = printable(f"Plot of the best {label} against what had been spent")
    # What inline_svg returns was serialised by an XML writer, which escapes text and attributes.
    return Markup(inline_svg(svg, "cost-", label=described, colours=THEME))


def _panels(view: View, baseline: Baseline | None) -> list[tuple[str, Markup]]:
    if view.run.yes_no and len(view.run.evaluations):
        text = "Plot of the hits found against results; the table of batches has its numbers"
        return [
            (
                panel,
                # What inline_svg returns was serialised by an XML writer, which escapes text and attributes.
                Markup(inline_svg(hits_svg(panel, view.run.evaluations), f"{panel}-", label=text, colours=THEME)),
            )
            for panel in HIT_PANELS
        ]
    descriptions = {
        "progress": f"Plot of {view.label} by evaluation, with the best so far; the table of batches has its numbers",
        "narrow": f"Plot of {view.label} by evaluation, with the best so far",
        "predictions": "Plot of predicted against measured values of the strings that the model chose",
        "held_out": "Plot of leave-one-out predictions against measured values",
    }
    held_out = None if view.analysis is None else view.analysis.held_out
    if held_out is None:
        del descriptions["held_out"]
    if not len(view.run.evaluations):
        return []
    return [
        (
            panel,
            # What inline_svg returns was serialised by an XML writer, which escapes text and attributes.
            Markup(
                inline_svg(
                    panel_svg(
                        panel,
                        view.run.evaluations,
                        direction=view.run.direction,
                        value_label=view.label,
                        log10=view.log10,
                        baseline=None if baseline is None else baseline.table,
                        held_out=held_out,
                    ),
                    f"{panel}-",
                    label=printable(description),
                    colours=THEME,
                )
            ),
        )
        for panel, description in descriptions.items()
    ]
