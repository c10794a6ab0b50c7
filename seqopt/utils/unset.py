"""A default that says that nothing was given, where `None` means something."""

from __future__ import annotations

from enum import Enum


class Unset(Enum):
    """The type of `UNSET`."""

    UNSET = "unset"

    def __repr__(self) -> str:
        return "UNSET"


UNSET = Unset.UNSET
"""Nothing was given."""
