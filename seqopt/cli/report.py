"""``seqopt report``: the page of a run or a campaign."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from seqopt.cli.running import console


def report_command(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="RUN|CAMPAIGN",
            help="The folder of a run (what --out named), or a campaign: its file, or its name in this folder.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="The page. Default: report.html in the folder of the run; NAME.html next to a campaign."),
    ] = None,
    top: Annotated[int, typer.Option(help="How many of the best strings are drawn.", min=0)] = 24,
    predicted: Annotated[
        int,
        typer.Option(help="How many of the best predicted candidates that were not measured are drawn.", min=0),
    ] = 12,
    highlight: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SMARTS",
            help="A substructure that is marked in drawings, and that rows can be filtered by. May be repeated.",
        ),
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show the full traceback of an error.")] = False,
) -> None:
    """Write the page that shows a search: what was found, how well it was predicted, and the map of the kernel.

    One HTML file that needs nothing else, not even a network: to be sent by e-mail, printed, or kept with the data.

        seqopt report runs/demo
        seqopt report kinase --out kinase.html
        seqopt report kinase --predicted 50 --highlight "c1ccncc1"
    """
    del debug  # read by seqopt.cli.main
    with console.status("reading, fitting the model, drawing"):
        from seqopt.report import write_report

        path = write_report(source, top, out=out, predicted=predicted, highlight=highlight or ())
    console.print(f"written: {escape(str(path))}")
