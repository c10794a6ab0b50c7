"""``seqopt campaign``: what to measure next, over weeks."""

from seqopt.cli.campaign import beginning, changing, recording, showing, suggesting
from seqopt.cli.campaign.app import app

__all__ = ["app", "beginning", "changing", "recording", "showing", "suggesting"]
