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
Name = Annotated[Path | None, typer.Argument(help="The campaign, as --campaign does.")]
DecimalComma = Annotated[
    bool | None,
    typer.Option(
        "--decimal-comma/--decimal-point",
        help="Numbers are written 6,5. Default: as in the library of the campaign, but 6.5 in a table with commas "
        "between its cells.",
    ),
]
Unit = Annotated[
    str | None,
    typer.Option(
        metavar="UNIT",
        help="What the values are given in, if not in the campaign's unit: M, mM, uM, nM, pM, or pIC50, pKi, pEC50. "
        "They are converted.",
    ),
]
Partial = Annotated[bool, typer.Option("--partial", help="Take the good rows of a table that has bad ones.")]
Replicate = Annotated[
    bool, typer.Option("--replicate", help="Results of strings that have one are further measurements of them.")
]
Force = Annotated[bool, typer.Option("--force", help="Take values that lie far outside all others, too.")]
IdColumn = Annotated[
    str | None, typer.Option(help="Column of your identifiers, if not recognised.", rich_help_panel=WHAT)
]
PriceColumn = Annotated[
    str | None, typer.Option(help="Column of prices, to show what suggestions cost.", rich_help_panel=WHAT)
]
OnPlate = Annotated[
    str | None,
    typer.Option("--plate", help="On which plate it was measured, where neither a table nor a suggestion says it: P3."),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the full traceback of an error.")]
