"""The search that a path names: the folder of a run, or a campaign."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from seqopt.errors import RunFolderError
from seqopt.report.results import CAMPAIGN_IN_RUN, EVALUATIONS, SUMMARY, Run, read_what_is_there
from seqopt.utils.files import CAMPAIGN_SUFFIX


def find_source(path: str | os.PathLike[str]) -> Path:
    """The folder or file that ``path`` names: that of a run, or else the file of the campaign of that name.

    Example:
        >>> find_source("nowhere").name
        'nowhere'
    """
    path = Path(path)
    is_run = path.is_file() or any((path / name).is_file() for name in (EVALUATIONS, SUMMARY, CAMPAIGN_IN_RUN))
    named = _campaign_of(path)
    return named if not is_run and named.is_file() else path


def _campaign_of(path: Path) -> Path:
    return path if not path.name or path.name.endswith(CAMPAIGN_SUFFIX) else path.with_name(path.name + CAMPAIGN_SUFFIX)


def read_source(path: str | os.PathLike[str]) -> Run:
    """The search in a run folder, or in a campaign: its file, or its name without the suffix.

    What is missing in a run folder is taken from the campaign's file that is kept there, as far as it knows.

    Raises:
        RunFolderError: If there is neither.
        CampaignError: If the campaign's file is damaged.
    """
    from seqopt.report.campaigns import read_campaign

    path = find_source(path)
    if path.is_file():
        return read_campaign(path)
    kept = path / CAMPAIGN_IN_RUN
    try:
        found = read_what_is_there(path)
    except RunFolderError as error:
        if not kept.is_file():
            raise RunFolderError(f"{error}; nor is there a campaign {_campaign_of(path).name}") from error
        known = read_campaign(kept)
        lacking = "evaluations.csv and summary.json are missing: this is what campaign.seqopt knows."
        return replace(known, campaign="", missing=(lacking, *known.missing))
    if (path / EVALUATIONS).is_file() or not kept.is_file():
        return found
    lacking = "evaluations.csv is missing: the table is what campaign.seqopt knows."
    return replace(found, evaluations=read_campaign(kept).evaluations, missing=(lacking, *found.missing[1:]))
