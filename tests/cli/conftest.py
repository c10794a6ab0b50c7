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
