"""``seqopt campaign plate`` and ``plates``: what is measured together."""

from __future__ import annotations

from typing import Annotated, Literal

import typer
from rich.markup import escape

from seqopt.cli.campaign.app import app
from seqopt.cli.campaign.common import one_of, opened
from seqopt.cli.campaign.options import Debug, Name, Which
from seqopt.cli.running import console, note, show_notes
from seqopt.errors import InputError


@app.command()
def plate(
    action: Annotated[Literal["open", "close"], typer.Argument(help="open or close.")],
    name: Annotated[str | None, typer.Argument(help="The plate. Default of open: the next one, P1, P2, ...")] = None,
    which: Which = None,
    debug: Debug = False,
) -> None:
    """Open a plate, or close one: nothing more is suggested on it. Can be undone.

    seqopt campaign plate open P7
    seqopt campaign plate close P3
    """
    del debug
    with opened(which) as campaign:
        if action == "open":
            console.print(f"open: {escape(campaign.open_plate(name))}")
            return
        if name is None:
            raise InputError("say which plate is closed: seqopt campaign plate close P3")
        closed = campaign.close_plate(name)
        waiting = [row.name for row in campaign.waiting({"plate": closed})]
        console.print(f"closed: {escape(closed)}")
    if waiting:
        note(f"{', '.join(waiting)} still await results from {closed}: record or withdraw them")


@app.command()
def plates(name: Name = None, which: Which = None, debug: Debug = False) -> None:
    """The plates: wells that are used, offsets with the 90 % of them, and controls."""
    del debug
    from seqopt.campaign.status import warnings_of_plates

    show_notes()
    with opened(one_of(name, which)) as campaign, console.status("fitting the model"):
        found = campaign.plates()
        controls, transform = campaign.disagreeing_controls(), campaign.store.settings.transform
        measurements = campaign.store.measurements()
    for one in found:
        console.print(escape(one.describe()))
    if not found:
        console.print("no plates yet: seqopt campaign suggest opens one, or seqopt campaign plate open")
    for text in warnings_of_plates(found, {"controls": controls}, transform, measurements):
        note(text)
