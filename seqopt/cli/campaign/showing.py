"""``seqopt campaign status``, ``report``, ``history`` and ``export``: how a campaign stands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from seqopt.cli.campaign.app import app
from seqopt.cli.campaign.common import (
    one_of,
    opened,
    print_lines,
)
from seqopt.cli.campaign.options import Debug, Name, Which
from seqopt.cli.running import console, note
from seqopt.errors import InputError


@app.command()
def status(
    name: Name = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
    which: Which = None,
    debug: Debug = False,
) -> None:
    """How the campaign stands: open, measured and failed, the best so far, how good the model is."""
    del debug
    from dataclasses import asdict

    from seqopt.campaign.parents import MUTATIONS, parent_of
    from seqopt.strings.mutations import mutation_name

    with opened(one_of(name, which)) as campaign:
        found = campaign.status()
    # As the campaign ranks them, and the report shows them.
    value = None if found.best is None else found.best.mean(geometric=found.settings.transform == "log10")
    best: dict[str, Any] | None = None if found.best is None else {"string": found.best.string, "value": value}
    limit = "" if found.best is None else found.best.censored or ""
    if best is not None and limit:
        best["censored"] = limit
    if best is not None and found.best is not None and (parent := parent_of(found.settings)) is not None:
        best[MUTATIONS] = mutation_name(parent, found.best.key)
    if best is not None and found.best is not None and found.best.identifier is not None:
        best["identifier"] = found.best.identifier
    beside: dict[str, float] = {}
    if best is not None and found.best is not None:
        beside = {
            name: number for name in found.settings.further_names if (number := found.best.further(name)) is not None
        }
        best |= {"further": beside} if beside else {}
    if as_json:
        facts = {
            "counts": asdict(found.counts),
            "best": best,
            "model": found.model,
            "filters": found.filters,
            "failing": found.failing,
            "calibration": None if found.calibration is None else asdict(found.calibration),
            "warnings": found.warnings,
            "library": found.library,
            "added": found.added,
            "spending": None if found.spending is None else found.spending._asdict(),
            "plates": [asdict(one) for one in found.plates],
            "expected": dict(found.expected),
            "hits": None if found.hits is None else asdict(found.hits),
            "ways": [asdict(one) for one in found.ways],
            "relations": [asdict(one) for one in found.relations],
            "costs": None if found.costs is None else asdict(found.costs) | {"left": found.costs.left},
        }
        typer.echo(json.dumps(facts, indent=1))
        return
    from seqopt.campaign.status import side_by_side
    from seqopt.campaign.wording import counted, means_in_words, without_value

    counts, settings = found.counts, found.settings
    unit = f" {settings.unit}" if settings.unit else ""
    heading = f"[bold]{escape(settings.objective)}[/bold] ({settings.direction}): "
    asked = (
        f"{counted(counts.batches, 'batch', 'batches')} suggested, {counted(counts.open, 'suggestion')} open, "
        f"{counts.withdrawn} withdrawn"
    )
    if found.ways:
        # Values of different kinds, counted together, say nothing of how much is known of what counts.
        console.print(f"{heading}{asked}")
        for one in found.ways:
            console.print(f"  {escape(one.describe())}")
        for relation in found.relations:
            console.print(f"  {escape(relation.describe())}")
    else:
        measured = f"{counted(counts.values, 'value')} of {counted(counts.strings, 'string')}"
        console.print(f"{heading}{measured}, {without_value(counts.failures, counts.lost)}; {asked}")
    if found.hits is not None:
        print_lines(found.hits.lines())
    elif found.best is not None:
        called = "" if found.best.identifier is None else f"{escape(found.best.identifier)}, "
        what = "highest value" if settings.direction == "maximize" else "lowest value"
        what = f"{what} as read" if settings.latent else "best"
        told = "; ".join(f"{name} {number:,.5g}" for name, number in beside.items())
        told = escape(f" ({told})") if told else ""
        called += f"{best[MUTATIONS]}, " if best is not None and MUTATIONS in best else ""
        console.print(f"{what}: {called}{escape(found.best.string)} with {limit}{value:,.5g}{escape(unit)}{told}")
    if found.best is not None and settings.latent:
        console.print(escape(side_by_side(settings, found.expected)))
    if found.model:
        from seqopt.campaign.by_way import quality_in_words, values_in_words
        from seqopt.campaign.wording import percent

        r2, by_way = found.model.get("r2"), quality_in_words(found.model)
        quality, results = "", "results" if settings.yes_no else "values"
        if r2 is not None and settings.yes_no:
            lower = "lower" if r2 > 0 else "higher"
            quality = f", leave-one-out Brier score {percent(abs(r2))} {lower} than with one probability for all"
        elif r2 is not None and not by_way:
            within, of = percent(found.model["within_90"]), values_in_words(settings.contexts is not None)
            quality = f", leave-one-out R2 {r2:.2f}, {within} of {of} in their 90 % intervals"
        console.print(f"model: {escape(found.model['surrogate'])}, fitted to {found.model['n']} {results}{quality}")
        for line in (*by_way, *means_in_words(found.model)):
            console.print(f"  {escape(line)}")
    if found.calibration is not None and found.calibration.count:
        console.print(found.calibration.describe())
    if found.counts.discarded > (0 if found.hits is None else found.hits.inconclusive):
        console.print(f"discarded (kept, and not modelled): {found.counts.discarded}")
    if found.counts.excluded:
        console.print(f"withdrawn before they were suggested: {found.counts.excluded}")
    if found.spending is not None:
        cost = found.spending
        unknown = f"; {cost.unknown} suggestions have no price" if cost.unknown else ""
        console.print(f"spent: {cost.spent:,.10g}; open suggestions cost {cost.committed:,.10g}{unknown}")
    if found.costs is not None:
        console.print(escape(found.costs.describe()))
    for way, size in found.screens.items():
        console.print(f"{escape(way)} is known of {size:,} strings, imported as a column of scores")
    for assay, size in found.assays.items():
        console.print(f"the model learns from {size:,} values of another assay, {escape(assay)}, which are no results")
    if found.library is not None:
        console.print(f"candidates are read from {escape(' and '.join((found.library, *found.added)))}")
    if found.filters:
        console.print(f"suggested is only: {escape('; '.join(found.filters))}")
    for plate in found.plates:
        console.print(escape(plate.describe()))
    if found.plates and not any(plate.offset for plate in found.plates) and found.counts.values:
        console.print("offsets of plates, by a model of all results: seqopt campaign plates")
    for warning in found.warnings:
        note(warning)


@app.command()
def report(
    name: Name = None,
    out: Annotated[Path | None, typer.Option(help="Write it to a text file instead.")] = None,
    which: Which = None,
    debug: Debug = False,
) -> None:
    """All of a campaign as plain tables: the best, predictions against results, what is open, the model, failures."""
    del debug
    if out is not None and out.suffix.lower() in (".html", ".htm"):
        raise InputError(f"{out} would be a page, and this is plain text: seqopt report FILE.seqopt writes the page")
    from seqopt.campaign.summary import render, summarize
    from seqopt.campaign.tables import check_target

    with opened(one_of(name, which)) as campaign:
        if out is not None:
            check_target(out, campaign.store)
        sections = summarize(campaign)
    if out is None:
        typer.echo(render(sections, width=console.width), nl=False)
        return
    try:
        out.write_text(render(sections), encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write {out}: {error.strerror or error}") from error
    console.print(f"written to {escape(str(out))}")


@app.command()
def history(name: Name = None, which: Which = None, debug: Debug = False) -> None:
    """All commands of the campaign, and what they did."""
    del debug
    with opened(one_of(name, which)) as campaign:
        for command in campaign.history():
            console.print(f"{command.id:>5}  {command.time[:16].replace('T', ' ')}  {escape(command.describe())}")


@app.command()
def export(
    out: Annotated[Path, typer.Argument(help="A .csv, .tsv, .xlsx, .sdf or .parquet file.")],
    which: Which = None,
    debug: Debug = False,
) -> None:
    """Write all measurements, one by one."""
    del debug
    with opened(which) as campaign:
        campaign.export(out)
        console.print(f"{campaign.status().counts.values} values written to {escape(str(out))}")
