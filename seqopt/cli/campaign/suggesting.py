"""``seqopt campaign suggest`` and ``withdraw``: what to measure next."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from seqopt.cli.campaign.app import app
from seqopt.cli.campaign.common import (
    FIDELITY,
    levels_of,
    opened,
    print_batch,
    print_cost,
    print_lines,
    progress_in,
    refuse_idle,
    shown_in,
    told_if_stopped,
)
from seqopt.cli.campaign.options import Debug, Which
from seqopt.cli.running import console, note, show_notes


@app.command()
def suggest(
    n: Annotated[int | None, typer.Option("-n", help="How many. Default: the campaign's batch.", min=1)] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write them as a table to be filled in: .xlsx, .csv, .tsv or .sdf.")
    ] = None,
    more: Annotated[bool, typer.Option("--more", help="Suggest further ones although some are open.")] = False,
    fidelity: Annotated[
        str | None, typer.Option(help="Only this way to measure, since no other one is free today: docking.")
    ] = None,
    same_fidelity: Annotated[
        bool, typer.Option("--same-fidelity", help="One way to measure for the whole batch; which, is chosen.")
    ] = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Suggest again what only failed so far.")
    ] = False,
    which: Which = None,
    debug: Debug = False,
) -> None:
    """Say what to measure next: the open suggestions, or new ones if there are none."""
    del debug
    from seqopt.campaign.tables import check_batch_target
    from seqopt.filters.filtering import failing_note

    show_notes()
    with opened(which) as campaign:
        if out is not None:
            check_batch_target(out, campaign.store)  # before minutes are spent on choosing
        if retry_failed:
            again = campaign.retry_failed()
            note(f"what only failed is suggested again: {', '.join(row.name for row in again)}")
        only = None if fidelity is None else levels_of(campaign, [f"{FIDELITY}={fidelity}"])
        refuse_idle({"--same-fidelity": same_fidelity and campaign.store.contexts is None}, "several ways to measure")
        waiting = sum(only is None or dict(row.context) == only for row in campaign.store.open_suggestions())
        with told_if_stopped(campaign), console.status("choosing") as progress, shown_in(progress, "choosing"):
            if more or not waiting:
                report = campaign.filter_report(progress_in(progress))
                if report is not None:
                    print_lines(report.lines())
            progress.update("choosing")
            batch = campaign.suggest(n, more=more, context=only, shared=same_fidelity)
        if waiting and not more:
            from seqopt.campaign.wording import counted

            are, their, them = ("is", "its result", "it") if waiting == 1 else ("are", "their results", "them")
            open_ones = counted(waiting, "suggestion")
            note(f"{open_ones} {are} open: record {their}, withdraw {them}, or add others with --more")
        asked = campaign.store.settings.batch_size if n is None else n
        if (more or not waiting) and len(batch) < asked:
            note(f"{len(batch)} instead of {asked}: no other candidate was found that may be suggested")
        status = campaign.status()
        if status.failing:
            note(f"{failing_note(status.failing)}. Withdraw what should not be measured")
        print_batch(campaign, batch)
        print_cost(campaign, batch)
        if out is not None:
            campaign.write_batch(out, batch)
            where = "" if which is None else f" --campaign {which}"
            console.print(
                f"written to {escape(str(out))}: fill in the last columns, then seqopt campaign record "
                f"{escape(f'{out}{where}')}"
            )


@app.command()
def withdraw(
    names: Annotated[list[str], typer.Argument(help="Open suggestions (B03-07), identifiers or strings.")],
    reason: Annotated[str, typer.Option(help="Why.")] = "",
    which: Which = None,
    debug: Debug = False,
) -> None:
    """Withdraw suggestions that will not be measured; they are not suggested again."""
    del debug
    with opened(which) as campaign:
        campaign.withdraw(names, reason)
    console.print(f"withdrawn: {escape(', '.join(names))}")
