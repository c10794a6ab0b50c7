"""``seqopt campaign confirm``: which of the hits is the best, by measuring them again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from seqopt.cli.campaign.app import app
from seqopt.cli.campaign.common import opened, print_aligned, refuse_idle, shown_in
from seqopt.cli.campaign.options import Debug, Which
from seqopt.cli.running import console, note, show_notes

if TYPE_CHECKING:
    from seqopt.campaign.confirming import Confirmed
    from seqopt.campaign.rows import Settings

LISTED = 10
"""Strings of the table in the terminal that are not on the plate."""


@app.command()
def confirm(
    wells: Annotated[
        int | None, typer.Option(help="Measurements in all; needed to begin, and to change their number.", min=1)
    ] = None,
    among: Annotated[
        Path | None, typer.Option(help="A file of the hits: strings, identifiers or names of variants.")
    ] = None,
    column: Annotated[str | None, typer.Option(help="Column of the hits in that file, if not recognised.")] = None,
    top: Annotated[
        int | None,
        typer.Option(help="So many measured strings that are expected to be the best. Default: 30.", min=2),
    ] = None,
    batch: Annotated[
        int | None, typer.Option(help="Measurements at a time. Default: a quarter of the wells.", min=1)
    ] = None,
    rule: Annotated[
        str | None,
        typer.Option(
            help="How wells are shared out: bayes-gap (default), bayes-gap-theory, bayes-gap-decay, top-two, ugap, "
            "ucb-e, equal."
        ),
    ] = None,
    target: Annotated[
        float | None, typer.Option(help="Probability to have found the best at which it ends. Default: 0.95.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the plate to be filled in: .csv, .tsv or .xlsx.")] = None,
    more: Annotated[
        bool, typer.Option("--more", help="Go on to the next plate although wells of the last have no result.")
    ] = False,
    end: Annotated[bool, typer.Option("--end", help="End the confirmation; its results stay.")] = False,
    which: Which = None,
    debug: Debug = False,
) -> None:
    """Find out which of the hits is the best by measuring them again, plate by plate, and how sure that is.

    seqopt campaign confirm --wells 96 --top 30 --out plate.csv
    seqopt campaign record plate.csv
    seqopt campaign confirm --out plate2.csv
    """
    del debug
    show_notes()
    with opened(which) as campaign:
        if end:
            given = {"--wells": wells is not None, "--among": among is not None, "--top": top is not None}
            refuse_idle(given | {"--out": out is not None}, "a confirmation that goes on")
            campaign.end_confirmation()
            console.print("ended; what was measured stays")
            return
        if out is not None:
            from seqopt.campaign.confirming import check_confirmation_target

            check_confirmation_target(out, campaign.store)  # before the model is fitted
        with console.status("fitting the model") as progress, shown_in(progress, "comparing the hits"):
            found = campaign.confirm(
                wells, among=among, column=column, top=top, batch=batch, rule=rule, target=target, more=more
            )
        print_confirmed(found, campaign.store.settings)
        if out is not None and found.plate:
            campaign.write_confirmation(out, found.plate)
            where = "" if which is None else f" --campaign {which}"
            console.print(
                f"written to {escape(str(out))}: fill it in, then seqopt campaign record {escape(f'{out}{where}')}, "
                f"and seqopt campaign confirm{escape(where)}"
            )


def print_confirmed(found: Confirmed, settings: Settings) -> None:
    """How a confirmation stands, and what to measure now."""
    from seqopt.campaign.wording import counted, percent
    from seqopt.data import shown_number

    unit = f" {settings.unit}" if settings.unit else ""
    best = found.best.prediction
    console.print(f"{found.used} of {counted(found.wells, 'well')} measured, {len(found.arms)} strings compared")
    verb = (
        "is" if found.decided else "is probably" if found.best.probability > 0.5 else "is likelier than any other to be"
    )
    console.print(
        f"[bold]{escape(best.string)}[/bold] {verb} the best: probability {percent(found.best.probability)}; "
        f"{escape(settings.objective)} {shown_number(best.predicted)}{escape(unit)}, 90 % of the true value "
        f"{shown_number(best.true_low)} to {shown_number(best.true_high)}",
        soft_wrap=True,
        highlight=False,
    )
    if needed := found.needed():
        console.print(needed)
    for remark in found.remarks:
        note(remark)
    shown = [one for place, one in enumerate(found.arms) if one.next or place < LISTED]
    rows = [
        [
            str(one.next) if one.next else "",
            percent(one.probability),
            shown_number(one.prediction.predicted),
            f"{shown_number(one.prediction.true_low)} to {shown_number(one.prediction.true_high)}",
            str(one.measured),
            one.prediction.string,
        ]
        for one in shown
    ]
    header = ["next", "best with", settings.objective, "90 % of the true value", "measured", settings.string_column]
    print_aligned(header, rows)
    if len(shown) < len(found.arms):
        note(f"{len(shown)} of {len(found.arms)} are shown")
    if found.decided:
        console.print(f"decided: the probability has reached {percent(found.target)}")
    elif not found.plate:
        console.print("no well is left: --wells gives it more")
    else:
        candidates = sum(not well.control for well in found.plate)
        controls = len(found.plate) - candidates
        besides = f" and {counted(controls, 'control')}" if controls else ""
        name = found.plate[0].plate
        where = f" on {escape(name)}" if name else ""
        awaited = ", proposed before" if found.waiting else ""
        console.print(f"to be measured now{where}: {counted(candidates, 'well')}{besides}{awaited}")
