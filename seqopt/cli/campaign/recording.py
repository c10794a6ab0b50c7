"""``seqopt campaign record`` and ``import``: results."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from seqopt.cli.campaign.app import TakesNegative, app
from seqopt.cli.campaign.common import (
    FIDELITY,
    cost_of,
    error_of,
    levels_of,
    number_of,
    on_plate,
    opened,
    pairs_of,
    print_results,
    refuse_idle,
    result_of,
    with_comma,
)
from seqopt.cli.campaign.options import Debug, DecimalComma, Force, OnPlate, Partial, Replicate, Unit, Which
from seqopt.cli.running import console, note, show_notes
from seqopt.datasets.sources import file_and_part
from seqopt.errors import InputError
from seqopt.utils.losses import is_lost

if TYPE_CHECKING:
    from seqopt.campaign import Campaign
    from seqopt.campaign.rows import Measurement
    from seqopt.data import ContextValue


# A negative value is not an option.
@app.command(cls=TakesNegative, context_settings={"ignore_unknown_options": True})
def record(
    what: Annotated[
        str,
        typer.Argument(
            metavar="FILE|STRING",
            help="A table of results, or whose result it is: a suggestion, an identifier or a string.",
        ),
    ],
    value: Annotated[
        str | None, typer.Argument(help="Its value, or a limit such as '<0.1'; hit, no hit, '3 of 8', inconclusive.")
    ] = None,
    failed: Annotated[str | None, typer.Option(help="Why there is no value.", metavar="REASON")] = None,
    lost: Annotated[
        str | None,
        typer.Option(help="What happened, if that was not the string's fault: it is asked again.", metavar="REASON"),
    ] = None,
    error: Annotated[
        str | None, typer.Option("--standard-error", help="Known standard error of the value.", metavar="NUMBER")
    ] = None,
    replicate: Replicate = False,
    context: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="How it was measured, where there are several ways: fidelity=docking."),
    ] = None,
    plate: OnPlate = None,
    cost: Annotated[
        str | None, typer.Option(help="What it has cost, if not what the campaign says.", metavar="NUMBER")
    ] = None,
    also: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="What else was measured, a constraint or a score: solubility=3.5."),
    ] = None,
    column: Annotated[str | None, typer.Option(help="Column of the values in a table, if not recognised.")] = None,
    decimal_comma: DecimalComma = None,
    unit: Unit = None,
    partial: Partial = False,
    force: Force = False,
    which: Which = None,
    debug: Debug = False,
) -> None:
    """Record what was measured: a table as `suggest --out` wrote it, or one result.

    seqopt campaign record batch.csv
    seqopt campaign record plates.xlsx#results --unit nM
    seqopt campaign record B03-07 6.4
    seqopt campaign record CPD-00050 120
    seqopt campaign record B03-07 "<0.1"
    seqopt campaign record B03-07 hit
    seqopt campaign record B03-08 --failed "did not dissolve"
    seqopt campaign record B03-09 --lost "the robot dropped it"
    """
    del debug
    table = value is None and failed is None and lost is None and not also
    refuse_idle({"--context": bool(context) and table}, "one result, and is a column of a table")
    refuse_idle({"--cost": cost is not None and table}, "one result, and is a column of a table")
    refuse_idle({"--unit": unit is not None and value is None and not table}, "a value or a table")
    refuse_idle(
        {"--standard-error": error is not None and value is None}, "a value, and belongs in a column of a table"
    )
    refuse_idle(
        {
            "--column": column is not None and not table,
            "--partial": partial and not table,
        },
        "a table",
    )
    if table and not os.path.exists(
        file_and_part(what)[0]
    ):  # which, unlike a path, takes a SMILES too long for the name of a file
        raise InputError(
            f"there is no file {what}. If it is a string or an identifier, give its value, too, or --failed REASON"
        )
    show_notes()
    with opened(which) as campaign:
        if table:
            taken, results = campaign.record_file(
                what,
                value_column=column,
                replicates=replicate,
                partial=partial,
                decimal_comma=decimal_comma,
                unit=unit,
                force=force,
                context=on_plate(campaign, plate),
            )
            print_results(len(taken), results)
            return
        measured = campaign.record(
            what,
            None if value is None else result_of(campaign, value, decimal_comma),
            failure=failed,
            lost=lost,
            standard_error=error_of(campaign, error, decimal_comma),
            replicate=replicate,
            context=levels_of(campaign, context or []) | (on_plate(campaign, plate) or {}),
            further={
                name: number_of(text, with_comma(campaign, text, decimal_comma))
                for name, text in pairs_of("--also", also or []).items()
            },
            unit=unit,
            force=force,
            cost=(paid := cost_of(campaign, cost, decimal_comma)),
        )
        if unit is not None and value is not None:
            value = f"{value} {unit}, which is {measured[0].told}"
        if campaign.store.settings.yes_no and value is not None:
            value = inconclusive_or(measured[0])
        missing = lost is not None or (failed is not None and is_lost(failed))
        told = [value] if value is not None else ["failed"] if failed is not None and not missing else []
        told += [_what_becomes(campaign, measured[0])] if missing else []
        told += [] if paid is None else [f"for {paid:g}"]
        # How it was measured may have been taken from a suggestion, or been assumed.
        how = ", ".join(f"{name} {level}" for name, level in measured[0].context)
        how = f" ({how})" if how else ""
        console.print(f"recorded {escape(what + how)}: {escape(', '.join(told + (also or [])))}")


def _what_becomes(campaign: Campaign, row: Measurement) -> str:
    """What becomes of a string whose measurement was lost."""
    known = [one for one in campaign.store.observations() if (one.key, one.context) == (row.key, row.context)]
    open_before = row.suggestion is not None and not any(
        one.suggestion == row.suggestion and one.id != row.id for one in campaign.store.measurements(key=row.key)
    )
    if not open_before and any(one.values for one in known):
        return "lost: it has a value, and is not suggested again for this"
    listed = campaign.store.settings.pool is not None
    if listed and getattr(campaign.space, "index_of", lambda _: 0)(row.key) is None:
        return "lost; it is no candidate, so that it is not suggested again"
    if not listed and not campaign.space.contains(row.key):
        return "lost; constraints leave it out of the space, so that it is not suggested again"
    return "lost: it will be suggested again"


def inconclusive_or(row: Measurement) -> str:
    """A result that is yes or no, in words."""
    from seqopt.campaign.rows import INCONCLUSIVE

    if row.failure == INCONCLUSIVE:
        return "inconclusive: it is kept and shown, and teaches the model nothing"
    return row.told


@app.command("import")
def import_history(
    file: Annotated[Path, typer.Argument(help="A table of strings and values from elsewhere.")],
    column: Annotated[str | None, typer.Option(help="Column of the values, if not recognised.")] = None,
    string_column: Annotated[str | None, typer.Option(help="Column of the strings, if not recognised.")] = None,
    fidelity: Annotated[
        str | None, typer.Option(help="How all of it was measured of which the table does not say it: docking.")
    ] = None,
    assay: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Results of another assay, from which only the model learns: selectivity_2019."
        ),
    ] = None,
    plate: OnPlate = None,
    replicate: Replicate = False,
    decimal_comma: DecimalComma = None,
    unit: Unit = None,
    partial: Partial = False,
    force: Force = False,
    which: Which = None,
    debug: Debug = False,
) -> None:
    """Add results of strings that were never suggested, from an older project; or cheap scores of the whole library; or
    results of another assay.

    seqopt campaign import older.csv
    seqopt campaign import screen.csv --fidelity docking --column score
    seqopt campaign import other.csv --assay selectivity_2019 --column IC50
    """
    del debug
    show_notes()
    with opened(which) as campaign:
        if assay is not None:
            idle = {
                "--unit": unit is not None,
                "--force": force,
                "--fidelity": fidelity is not None,
                "--plate": plate is not None,
            }
            refuse_idle(idle, "results of this campaign, not with those of another assay")
            with console.status("reading the results, and working out what they are worth"):
                other = campaign.import_assay(
                    file,
                    assay,
                    value_column=column,
                    string_column=string_column,
                    decimal_comma=decimal_comma,
                    replicates=replicate,
                    partial=partial,
                )
            console.print(escape(other.describe()))
            console.print(escape(other.worth.describe()))
            for text in (*other.problems, *other.warnings):
                note(text)
            if other.empty:
                note(f"{other.empty:,} rows have no value")
            return
        context = None if fidelity is None else levels_of(campaign, [f"{FIDELITY}={fidelity}"])
        context = on_plate(campaign, plate) if context is None else context
        if context is not None and plate is None and is_screen(campaign, context, file):
            refuse_idle({"--unit": unit is not None, "--force": force}, "results, not with scores of a whole library")
            with console.status("reading the scores"):
                found = campaign.import_screen(
                    file,
                    context,
                    value_column=column,
                    string_column=string_column,
                    decimal_comma=decimal_comma,
                    replicates=replicate,
                    partial=partial,
                )
            console.print(escape(f"{found.describe()}, kept as one column: {found.way} is not suggested any more"))
            for text in (*found.problems, *found.warnings):
                note(text)
            if found.empty:
                note(f"{found.empty:,} rows have no value")
            return
        taken, results = campaign.record_file(
            file,
            value_column=column,
            string_column=string_column,
            replicates=replicate,
            partial=partial,
            history=True,
            decimal_comma=decimal_comma,
            unit=unit,
            force=force,
            context=context,
        )
        print_results(len(taken), results)


def is_screen(campaign: Campaign, context: dict[str, ContextValue], file: Path) -> bool:
    """Whether a file holds so many cheap values that they are kept as a column."""
    from seqopt.campaign.screens import FEWEST, counted_lines

    settings = campaign.store.settings
    cheap = settings.pool is not None and tuple(sorted(context.items())) != settings.target
    return cheap and counted_lines(file, FEWEST) > FEWEST
