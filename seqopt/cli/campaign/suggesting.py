"""``seqopt campaign suggest`` and ``withdraw``: what to measure next."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from seqopt.cli.campaign.app import app
from seqopt.cli.campaign.common import (
    FIDELITY,
    levels_of,
    on_plate,
    one_of,
    opened,
    print_batch,
    print_cost,
    print_lines,
    progress_in,
    refuse_idle,
    shown_in,
    told_if_stopped,
)
from seqopt.cli.campaign.options import Debug, Name, Which
from seqopt.cli.clusters import connected_to
from seqopt.cli.large_options import Scheduler
from seqopt.cli.running import console, note, show_notes
from seqopt.errors import InputError

if TYPE_CHECKING:
    from seqopt.campaign import Settings, Suggestion
    from seqopt.campaign.status import Status


@app.command()
def suggest(
    name: Name = None,
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
    plate: Annotated[str | None, typer.Option(help="Only this plate: an open one, or a new one by its name.")] = None,
    same_plate: Annotated[
        bool,
        typer.Option(
            "--same-plate",
            help="All on one plate, a fresh one where no open one has room, instead of filling those that are open.",
        ),
    ] = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Suggest again what only failed so far.")
    ] = False,
    learn: Annotated[
        bool,
        typer.Option("--learn", help="Suggest what teaches the model most, instead of what may be best."),
    ] = False,
    scheduler: Scheduler = None,
    which: Which = None,
    debug: Debug = False,
) -> None:
    """Say what to measure next: the open suggestions, or new ones if there are none."""
    del debug
    from seqopt.campaign.costs import short_of_money
    from seqopt.campaign.tables import check_batch_target
    from seqopt.data import as_context
    from seqopt.filters.filtering import failing_note

    show_notes()
    which = one_of(name, which)
    new = {"-n": n is not None, "--more": more, "--learn": learn}
    refuse_idle(
        {option: given and retry_failed for option, given in new.items()}, "new suggestions (not --retry-failed)"
    )
    if scheduler is not None:
        # Before there is a cluster, whose log would stand among what is said.
        with opened(which) as campaign:
            check_spread(campaign.store.settings, scheduler)
    with connected_to(scheduler) as client, opened(which, client) as campaign:
        if out is not None:
            check_batch_target(out, campaign.store)  # before minutes are spent on choosing
        if retry_failed:
            again = campaign.retry_failed()
            note(f"what only failed is suggested again: {', '.join(row.name for row in again)}")
        only = None if fidelity is None else levels_of(campaign, [f"{FIDELITY}={fidelity}"])
        only = on_plate(campaign, plate) if only is None else only
        has_plates = bool(campaign.store.settings.plates)
        refuse_idle({"--same-plate": same_plate and not has_plates}, "a campaign that has plates")
        refuse_idle({"--same-fidelity": same_fidelity and campaign.store.contexts is None}, "several ways to measure")
        waiting = len(campaign.waiting(only))
        before = {one.name for one in campaign.plates(learned=False)} if has_plates else set()
        with told_if_stopped(campaign), console.status("choosing") as progress, shown_in(progress, "choosing"):
            if more or not waiting:
                report = campaign.filter_report(progress_in(progress))
                if report is not None:
                    print_lines(report.lines())
            progress.update("choosing")
            batch = campaign.suggest(n, more=more, context=only, shared=same_fidelity or same_plate, learn=learn)
            progress.update("working out what it teaches")
            gain = campaign.gain() if learn and (more or not waiting) else None
        if out is not None:
            # Before anything of it is printed: who reads that may have seen enough, and end this command.
            campaign.write_batch(out, batch)
        if waiting and not more:
            from seqopt.campaign.wording import counted

            are, their, them = ("is", "its result", "it") if waiting == 1 else ("are", "their results", "them")
            open_ones = counted(waiting, "suggestion")
            note(f"{open_ones} {are} open: record {their}, withdraw {them}, or add others with --more")
            if learn:
                note("--learn chose none of these: it chooses new ones, with --more")
        asked = campaign.store.settings.batch_size if n is None else n
        chosen = sum(row.reason.get("kind") != "control" for row in batch)
        if (more or not waiting) and chosen < asked:
            way = None if only is None else as_context(only)
            why = short_of_money(campaign.costs(), campaign.store.contexts, way)
            note(f"{chosen} instead of {asked}: {why or 'no other candidate was found that may be suggested'}")
        status = campaign.status()
        if status.failing:
            note(f"{failing_note(status.failing)}. Withdraw what should not be measured")
        if any("tells" in row.reason and "target" in row.reason for row in batch):
            for relation in status.relations:
                if relation.few:
                    note(relation.describe())
        if has_plates:
            for text in said_of_plates(status, batch, before):
                console.print(escape(text))
            for text in status.of_plates:
                note(text)
        print_batch(campaign, batch)
        if gain is not None:
            from seqopt.campaign.learning import gain_in_words

            console.print(escape(gain_in_words(gain, len(batch))))
        print_cost(campaign, batch)
        if out is not None:
            where = "" if which is None else f" --campaign {which}"
            console.print(
                f"written to {escape(str(out))}: fill in the last columns, then seqopt campaign record "
                f"{escape(f'{out}{where}')}"
            )


def check_spread(settings: Settings, scheduler: str) -> None:
    """Refuse a cluster for candidates that are not on disk.

    Raises:
        InputError: As said.
    """
    if settings.space.get("type") == "StoredPool":
        return
    searched = "a file in memory" if settings.pool is not None else "generated strings"
    if settings.pool is None and settings.space.get("type") == "CandidateSet":
        searched = "a list in memory"
    raise InputError(
        f"--scheduler {scheduler} searches pools on disk, and this campaign searches {searched}: leave it out, or "
        "begin a campaign with --on-disk"
    )


def said_of_plates(status: Status, batch: Sequence[Suggestion], before: set[str]) -> list[str]:
    """On which plates a batch goes, and which of them are new."""
    from seqopt.campaign.plates import CONTROL, plate_of
    from seqopt.campaign.wording import counted

    plates = {one.name: one for one in status.plates}
    found = []
    for name in dict.fromkeys(plate_of(row.context) for row in batch):
        rows = [row for row in batch if plate_of(row.context) == name]
        controls = sum(row.reason.get("kind") == CONTROL for row in rows)
        besides = f" and {counted(controls, 'control')}" if controls else ""
        fresh = (
            "" if name in before else ", opened now since no open plate has room for more" if before else ", opened now"
        )
        plate = plates[name]
        used = f"{plate.used} of {plate.size} wells are used"
        found.append(f"on {name}{fresh}: {counted(len(rows) - controls, 'candidate')}{besides}; {used}")
    return found


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
