"""``seqopt campaign``: what to measure next, over weeks."""

from seqopt.cli.campaign import asking, beginning, changing, confirming, plates, recording, running, showing, suggesting
from seqopt.cli.campaign.app import app

__all__ = [
    "app",
    "asking",
    "beginning",
    "changing",
    "confirming",
    "plates",
    "recording",
    "running",
    "showing",
    "suggesting",
]
