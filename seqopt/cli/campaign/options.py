"""Options that several commands take; those on what may be suggested are in `seqopt.cli.choosing`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

WHAT, HOW = "What to search", "How to search"

Which = Annotated[
    Path | None,
    typer.Option(
        "--campaign", "-c", help="The campaign: its name or file. Default: the only one in this folder.", metavar="NAME"
    ),
]
DecimalComma = Annotated[bool, typer.Option("--decimal-comma", help="Numbers in the table are written 6,5.")]
Partial = Annotated[bool, typer.Option("--partial", help="Take the good rows of a table that has bad ones.")]
Replicate = Annotated[
    bool, typer.Option("--replicate", help="Results of strings that have one are further measurements of them.")
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the full traceback of an error.")]
