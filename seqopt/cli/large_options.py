"""Options on large pools, and on what decides where there are many candidates, which several commands take."""

from __future__ import annotations

from typing import Annotated

import typer

LARGE = "Pools of millions"

StrategyName = Annotated[
    str,
    typer.Option(
        help="What decides: model (--surrogate with --acquisition); lfbo or bore, a classifier of good and "
        "other candidates without predictions of values: on fingerprints of molecules, or n-grams of others; "
        "functions, the best candidate of each of several functions drawn from a linear model on these; or a "
        "portfolio of gibbon, logei, ucb and thompson, which take turns by what tells most of the best candidate "
        "(esp), by past success (hedge), or at random (random-portfolio).",
        rich_help_panel=LARGE,
    ),
]
PrefilterName = Annotated[
    str | None,
    typer.Option(
        help="Let the acquisition function look only at the candidates that a cheap score puts first: lfbo (a "
        "classifier) or mean (the model's own prediction). Default: mean for more than a million, else none.",
        rich_help_panel=LARGE,
    ),
]
Keep = Annotated[
    int | None,
    typer.Option(
        help="How many candidates a prefilter keeps, or of lfbo and bore, from how many a batch is filled. "
        "Default: 50,000.",
        rich_help_panel=LARGE,
        min=1,
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Search by the workers of a Dask cluster: the address of its scheduler (tcp://host:8786), the .json file "
        "that it writes, or local:4 for four processes on this machine. They also score. What is chosen is the same. "
        'Needs pip install "seqopt\\[dask]".',
        rich_help_panel=LARGE,
    ),
]
OnDisk = Annotated[
    bool | None,
    typer.Option(
        "--on-disk/--in-memory",
        help="Prepare the pool on disk, with fingerprints, and search it there: for millions of candidates. "
        "Default: for a folder, a pattern ('parts/*.csv.gz') or a file of 100 MB.",
        rich_help_panel=LARGE,
    ),
]
