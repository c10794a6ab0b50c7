"""``seqopt predict``: what the model of a run or a campaign predicts of any strings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seqopt.cli.campaign.asking import Column, Out, Strings, predict_and_print
from seqopt.cli.campaign.common import file_of
from seqopt.cli.campaign.options import Debug
from seqopt.errors import InputError
from seqopt.utils.files import CAMPAIGN_SUFFIX


def predict_command(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="RUN|CAMPAIGN",
            help="The folder of a run (what --out named), or a campaign: its file, or its name in this folder.",
        ),
    ],
    what: Strings,
    column: Column = None,
    out: Out = None,
    debug: Debug = False,
) -> None:
    """Say what the model of a search predicts of any strings, with everything that was evaluated so far.

    seqopt predict runs/demo "CC(=O)Nc1ccc(O)cc1"
    seqopt predict runs/demo ideas.csv --out predicted.csv
    """
    del debug  # read by seqopt.cli.main
    from seqopt.campaign import Campaign

    path = source / f"campaign{CAMPAIGN_SUFFIX}" if source.is_dir() else file_of(source)
    if not path.exists():
        raise InputError(
            f"{source} is not the folder of a run: it has no {path.name}"
            if source.is_dir()
            else f"there is neither the folder of a run {source} nor a campaign {path}: name what --out of a search "
            "named, or the file of a campaign"
        )
    with Campaign.open(path) as campaign:
        predict_and_print(campaign, what, column, out)
