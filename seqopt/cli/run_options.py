"""Options on how a score is computed, which all commands that compute one share."""

from __future__ import annotations

from typing import Annotated

import typer

RUN = "The run"

Timeout = Annotated[
    float | None,
    typer.Option(help="Stop an evaluation after this many seconds and record it as failed.", rich_help_panel=RUN),
]
Workers = Annotated[int, typer.Option(help="How many evaluations run at the same time.", rich_help_panel=RUN, min=1)]
Asynchronous = Annotated[
    bool,
    typer.Option(
        "--asynchronous",
        help="No batches: each of the --workers gets the next one as soon as it is free. --batch is how many make a "
        "line of the table.",
        rich_help_panel=RUN,
    ),
]
ChunkSize = Annotated[
    int | None,
    typer.Option(
        help="How many strings one call of the score may be given, for one that scores a list faster than its strings "
        "one by one. By default its attribute chunk_size, or 1.",
        rich_help_panel=RUN,
        min=1,
    ),
]
StopAfterFailures = Annotated[
    int,
    typer.Option(
        metavar="K",
        help="Stop after so many failures in a row, all for the same reason; 0 for never. --resume counts anew.",
        rich_help_panel=RUN,
        min=0,
    ),
]
Isolate = Annotated[
    bool | None,
    typer.Option(
        "--isolate/--no-isolate",
        help="Whether the score runs in a separate process, so that a crash costs one evaluation and not the search. "
        "Default: Python functions do, which loads their module twice; built-in scores do not.",
        show_default=False,
        rich_help_panel=RUN,
    ),
]
