"""What stands in the folder of a run, and whether a run may begin there: known before anything slow is loaded."""

from __future__ import annotations

import os
from pathlib import Path

from seqopt.campaign.store import CampaignStore
from seqopt.errors import RunFolderError

CAMPAIGN = "campaign.seqopt"
EVALUATIONS = "evaluations.csv"
SUMMARY = "summary.json"

OTHER_FILES = (EVALUATIONS, SUMMARY, "report.html", "search.png", "search.svg", "rejected.csv")


def check_folder(path: str | os.PathLike[str], resume: bool) -> None:
    """Say at once, and without touching anything, that a folder cannot be used.

    Args:
        path: The folder.
        resume: Whether a run in it is to be continued.

    Raises:
        RunFolderError: If it holds a run, or files that a run would overwrite, and ``resume`` is not set; or if there
            is no run to resume.
    """
    folder = Path(path)
    nearest = next(one for one in (folder, *folder.absolute().parents) if one.exists())
    if not nearest.is_dir():
        raise RunFolderError(f"{nearest} is a file, not a folder: choose another folder (--out)")
    if not os.access(nearest, os.W_OK):
        raise RunFolderError(f"cannot write into {nearest}: choose another folder (--out)")
    if resume:
        if not holds_something(folder):
            raise RunFolderError(
                f"{folder} holds no run to resume (no {CAMPAIGN}): leave resume (--resume) out to start one"
            )
        return
    if CampaignStore.begun(folder / CAMPAIGN):
        raise RunFolderError(
            f"{folder} already holds a run: continue it with resume=True (--resume), or choose another folder (--out)"
        )
    taken = [name for name in OTHER_FILES if (folder / name).exists()]
    if taken:
        raise RunFolderError(
            f"{folder} holds {', '.join(taken)}, which a run would overwrite: choose another folder (--out)"
        )


def holds_something(path: str | os.PathLike[str]) -> bool:
    """Whether a folder holds a run, including one that was killed before it began."""
    return Path(path, CAMPAIGN).exists()
