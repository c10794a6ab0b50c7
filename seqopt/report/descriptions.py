"""What is said of results, campaigns and maps when they are shown.

Importing this registers it: see `seqopt.utils.shown`. What needs the models to be imported is in
`seqopt.report.described_searches` and `seqopt.report.explanations`, which are imported when something of that kind is
shown.
"""

from __future__ import annotations

import io
import math
import sqlite3
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from seqopt.campaign.batches import Suggestions
from seqopt.campaign.by_way import quality_in_words
from seqopt.campaign.campaign import Campaign
from seqopt.campaign.parents import MUTATIONS, parent_of
from seqopt.campaign.status import Status
from seqopt.campaign.wording import counted, in_words, means_in_words, without_value
from seqopt.data import shown_interval, shown_number
from seqopt.errors import SeqoptError
from seqopt.report.display import KINDS, LARGEST_BATCH, SHOWN, Description, ListedString
from seqopt.report.formats import compact, number_format, shortened, significant
from seqopt.strings.mutations import mutation_name, short_name
from seqopt.utils.shown import add_loader, register_renderer

if TYPE_CHECKING:
    from seqopt.api import Result
    from seqopt.report.kernel_pca import KernelMap


def describe_result(result: Result) -> Description:
    from seqopt.report.results import of_target, ranked, tidy_evaluations

    optimizer = result.optimizer
    contexts = {} if optimizer.contexts is None else optimizer.contexts.config()
    everything = tidy_evaluations(result.evaluations)
    table = tidy_evaluations(of_target(result.evaluations, contexts))
    best = ranked(table, optimizer.direction)
    listed, columns = evaluated(best.head(SHOWN), _log10(optimizer))
    failed = int((everything["status"] == "failed").sum())
    title = f"Result of {counted(len(everything), 'evaluation')}" + (f" ({failed} failed)" if failed else "")
    extreme = "smallest" if optimizer.direction == "minimize" else "largest"
    remarks = [f"{_the(len(listed), len(best))} best of {len(best):,} measured; all of them: .to_pandas()"]
    if len(table) < len(everything):
        remarks.append(f"{len(everything) - len(table)} were measured in other ways than the target's")
    if result.run_folder is not None:
        remarks.append(f"the run is kept in {result.run_folder.name}")
    return Description(
        f"{title}: "
        + (
            "nothing was measured as the target yet"
            if math.isnan(result.best_value)
            else f"the {extreme} value is {significant(result.best_value)}"
        ),
        entries=listed,
        columns=columns,
        kind=optimizer.space.kind,
        remarks=tuple(remarks),
    )


def describe_suggestions(batch: Suggestions) -> Description:
    settings, rows = batch.settings, batch[:LARGEST_BATCH]
    parent = parent_of(settings)
    log10 = settings.transform == "log10"
    pool = settings.listed
    price = pool.get("price_column")
    centres = [row.predicted(settings.transform) for row in rows]
    show = number_format([centre for centre in centres if centre is not None], log10=log10)
    entries, columns = without_empty(
        [
            ListedString(
                row.string,
                (
                    row.name,
                    row.identifier or "",
                    "" if parent is None else mutation_name(parent, row.key),
                    row.cells.get(price, "") if price else "",
                    ", ".join(str(value) for _, value in row.context),
                    row.status if row.status != "open" else "",
                    "" if centre is None else show(centre),
                    shown_interval(row.low, row.high, settings.transform, settings.objective, settings.unit),
                    in_words(row.reason),
                    _similar(row.reason, parent),
                ),
            )
            for row, centre in zip(rows, centres, strict=True)
        ],
        (
            *("name", pool.get("id_column") or "identifier", MUTATIONS, price or "price"),
            *(", ".join(settings.context_names), "status"),
            *("predicted", "90 % of a measurement", "why", "nearest measured"),
        ),
    )
    unit = f" ({settings.unit})" if settings.unit else ""
    return Description(
        f"{counted(len(batch), 'suggestion')} for {settings.objective}{unit}, {settings.direction}",
        entries=entries,
        columns=columns,
        kind=batch.kind,
        remarks=left_out(len(rows), len(batch)),
    )


def _similar(reason: dict[str, Any], parent: str | None) -> str:
    nearest, similarity = reason.get("nearest"), reason.get("similarity")
    if nearest is None or similarity is None:
        return ""
    text = f"{similarity:.2f} to {short_name(parent, str(nearest)) or shortened(str(nearest), 24)}"
    value, change = reason.get("value"), reason.get("difference")
    known = "" if value is None else f" {reason.get('censored') or '='} {shown_number(value)}"
    return text + known + (f": {change}" if change else "")


def describe_status(status: Status) -> Description:
    settings, counts, model = status.settings, status.counts, status.model
    unit = f" {settings.unit}" if settings.unit else ""
    facts = [
        (
            "measured",
            "; ".join(one.describe() for one in status.ways)
            or f"{counted(counts.values, 'value')} of {counted(counts.strings, 'string')}, "
            f"{without_value(counts.failures, counts.lost)}",
        ),
        (
            "suggested",
            f"{counted(counts.batches, 'batch', 'batches')}: {counts.of_suggestions}",
        ),
    ]
    if status.best is not None:
        mean = status.best.mean(geometric=settings.transform == "log10")
        replicates = len(status.best.values)
        of = f" (mean of {replicates})" if replicates > 1 else ""
        limit = status.best.censored or ""
        facts.append(("best", f"{limit}{significant(mean)}{unit}{of}: {status.best.string}"))
    if model:
        r2 = model.get("r2")
        quality = "" if r2 is None else f"; leave-one-out R2 {r2:.2f}, {model['within_90']:.0%} within 90 %"
        quality = "".join(f"; {line}" for line in quality_in_words(model)) or quality
        facts.append(("model", f"{model['surrogate']}, fitted to {counted(model['n'], 'value')}{quality}"))
        facts += [("prior mean", line.removeprefix("prior mean: ")) for line in means_in_words(model)]
    if status.filters:
        facts.append(("filters", "; ".join(status.filters)))
    return Description(
        f"Campaign for {settings.objective} ({settings.direction})", facts=tuple(facts), remarks=tuple(status.warnings)
    )


def describe_campaign(campaign: Campaign) -> Description:
    try:
        return describe_status(campaign.status())
    except (SeqoptError, sqlite3.Error):
        # Of a closed file, above all; whoever needs its state will hear why there is none.
        return Description("Campaign (its file is closed)")


def describe_map(found: KernelMap) -> Description:
    shares = [f"{share:.1%}" for share in found.explained_variance_ratio]
    values = found.values
    measured = 0 if values is None else int(sum(map(math.isfinite, values)))
    facts = [
        ("surrogate", found.surrogate),
        ("explained variance", ", ".join(shares)),
        ("measured", f"{measured:,} of {len(found):,}"),
        *((name.replace("_", " "), compact(value)) for name, value in found.hyperparameters.items()),
    ]
    drawable = found.coordinates.shape[1] > 1
    return Description(
        f"Kernel map of {counted(len(found), 'string')}",
        facts=tuple(facts),
        picture=(lambda: _map_png(found)) if drawable else None,
        picture_label="the map's points in the plane of the first two components",
        remarks=("all coordinates: .to_pandas(); other strings: .project(strings)",),
    )


def _map_png(found: KernelMap) -> bytes:
    from matplotlib.figure import Figure

    from seqopt.report.map_plot import draw_map, value_norm
    from seqopt.report.plot import plot_style

    table = found.to_pandas().assign(group="")
    with plot_style():
        figure = Figure(figsize=(6.2, 4.8), layout="constrained")
        axes = figure.subplots()
        drawn = draw_map(axes, table, norm=value_norm(table["value"]))
        axes.set_xlabel("component 1")
        axes.set_ylabel("component 2")
        if drawn is not None:
            figure.colorbar(drawn, ax=axes, label="value", pad=0.02).outline.set_visible(False)
        stream = io.BytesIO()
        figure.savefig(stream, format="png", dpi=110, metadata={"Software": None})
    return stream.getvalue()


def evaluated(table: Any, log10: bool) -> tuple[tuple[ListedString, ...], tuple[str, ...]]:
    """Rows of a tidy table of evaluations."""
    from seqopt.report.results import predicted_text

    show = number_format(table.loc[table["measured"], "value"], log10=log10)
    predicted = number_format(table["predicted"].fillna(table["predicted_mean"]).dropna(), log10=log10)
    entries = []
    for row in table.to_dict("records"):
        value = "" if row["status"] == "pending" else row["status"]
        if row["measured"]:
            value = f"{row['censored']}{show(row['value'])}"
        batch = "initial" if row["batch"] == 0 else f"{row['batch']:.0f}"
        entries.append(ListedString(row["string"], (value, predicted_text(row, predicted, log10=log10), batch)))
    return without_empty(entries, ("value", "predicted", "batch"))


def without_empty(
    entries: Sequence[ListedString], columns: Sequence[str]
) -> tuple[tuple[ListedString, ...], tuple[str, ...]]:
    """Entries and columns without those that hold nothing."""
    kept = [index for index in range(len(columns)) if any(entry.cells[index] for entry in entries)]
    shortened_entries = tuple(
        ListedString(entry.string, tuple(entry.cells[index] for index in kept)) for entry in entries
    )
    return shortened_entries, tuple(columns[index] for index in kept)


def _log10(optimizer: Any) -> bool:
    return getattr(optimizer.transform, "name", "") == "log10"


def _the(shown: int, of: int) -> str:
    return "the" if shown == of else f"the {shown}"


def left_out(shown: int, of: int) -> tuple[str, ...]:
    return (f"{shown} of {of:,} are shown",) if shown < of else ()


def of_kind(kind: str, number: int) -> str:
    plural = KINDS.get(kind, "strings")
    return counted(number, plural.removesuffix("s"), plural)


register_renderer(Campaign, describe_campaign)
register_renderer(Status, describe_status)
register_renderer(Suggestions, describe_suggestions)
add_loader(lambda: import_module("seqopt.report.described_searches"))
add_loader(lambda: import_module("seqopt.report.explanations"))
