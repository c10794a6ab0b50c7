"""Errors of campaigns."""

from __future__ import annotations

from seqopt.errors import SeqoptError


class CampaignError(SeqoptError):
    """A campaign file that cannot be opened or written, or a command that does not fit what it holds.

    Whenever it is raised, nothing of the command has been kept, and all that was committed before is there.
    """


class StaleStateError(CampaignError):
    """What a command was worked out from is out of date: another command was committed in the meantime."""
