"""What the tests of commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Measured = Callable[[str], int]


@pytest.fixture
def measured() -> Measured:
    """How many results the run in a folder has on the disk, also while another process is writing it."""
    from seqopt.campaign import CampaignError, CampaignStore

    def counted(folder: str) -> int:
        try:
            with CampaignStore.open(Path(folder) / "campaign.seqopt") as store:
                counts = store.counts()
        except CampaignError:
            return 0  # not there yet, or about to be
        return counts.values + counts.failures

    return counted


HELD = """
import pathlib, time
HOLD = pathlib.Path(__file__).with_suffix(".hold")
calls = 0

def score(strings):
    global calls
    calls += 1
    while calls > {after} and HOLD.exists():
        time.sleep(0.05)
    if HOLD.exists():
        time.sleep(0.15)
    return [string.count({counted!r}) for string in strings]
"""


@pytest.fixture
def held() -> Callable[[str, str, int], Path]:
    """Writes an objective that is slow, and waits after some calls, while the file that is returned is there.

    However late a signal comes, it finds the search at work.
    """

    def write(name: str, counted: str, after: int) -> Path:
        path = Path(name)
        path.write_text(HELD.format(counted=counted, after=after))
        hold = path.with_suffix(".hold")
        hold.touch()
        return hold

    return write
