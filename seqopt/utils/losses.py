"""Reasons of failures that are not the fault of the string: its measurement was lost."""

from __future__ import annotations

LOST = "lost: "
"""How the reason of a failure is written that is not the string's fault: what follows says what happened."""


def is_lost(reason: str | None) -> bool:
    """Whether a reason says that a measurement was lost, not that its string failed.

    It says so if it begins with ``lost:``, whatever its capitals and spaces, or is that word alone.

    Example:
        >>> [is_lost(reason) for reason in ("lost: the robot fell", "Lost :dropped", "LOST", "lost activity", None)]
        [True, True, True, False, False]
    """
    return reason is not None and reason.strip().lower().partition(":")[0].rstrip() == LOST.strip(": ")
