"""The search that a path names: the folder of a run, or a campaign."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from seqopt.errors import RunFolderError
from seqopt.report.results import CAMPAIGN_IN_RUN, Run, read_what_is_there

SUFFIX = ".seqopt"
"""How the file of a campaign ends."""


def find_source(path: str | os.PathLike[str]) -> Path:
    """The folder or file that ``path`` names: itself, or else the file of the campaign of that name.

    Example:
        >>> find_source("nowhere").name
        'nowhere'
    """
    path = Path(path)
    named = path.with_name(path.name + SUFFIX) if path.name else path
    return named if not path.exists() and named.is_file() else path


def read_source(path: str | os.PathLike[str]) -> Run:
    """The search in a run folder, or in a campaign: its file, or its name without the suffix.

    Raises:
        RunFolderError: If there is neither.
        CampaignError: If the campaign's file is damaged.
    """
    path = find_source(path)
    if path.is_file():
        from seqopt.report.campaigns import read_campaign

        return read_campaign(path)
    try:
        return read_what_is_there(path)
    except RunFolderError:
        if not (path / CAMPAIGN_IN_RUN).is_file():
            raise
    from seqopt.report.campaigns import read_campaign

    found = read_campaign(path / CAMPAIGN_IN_RUN)
    lacking = "evaluations.csv and summary.json are missing: this is what campaign.seqopt knows."
    return replace(found, campaign="", missing=(lacking, *found.missing))
