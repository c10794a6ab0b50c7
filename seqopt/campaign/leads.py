"""What a campaign says of its lead, if it searches near one."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from seqopt.campaign.rows import Settings
from seqopt.errors import SeqoptError

if TYPE_CHECKING:
    from seqopt.models.distance_mean import DistanceMean

logger = logging.getLogger(__name__)

FROM_LEAD = "distance_from_lead"
"""The column that says how far a string is from the lead."""

DIGITS = 4


def lead_of(settings: Settings) -> DistanceMean | None:
    """The prior mean of a campaign that falls with the distance from a lead; `None` without one."""
    surrogate: Any = settings.parts.get("surrogate")
    mean = surrogate.get("mean") if isinstance(surrogate, Mapping) else None
    if not isinstance(mean, Mapping) or mean.get("type") != "DistanceMean":
        return None
    # Loading models takes seconds, which campaigns without a lead do without.
    from seqopt.models.distance_mean import DistanceMean
    from seqopt.utils.config import from_config

    found = from_config(mean)
    return found if isinstance(found, DistanceMean) else None


def distances_from_lead(settings: Settings, keys: Sequence[str]) -> list[float | None] | None:
    """Distances of n strings from the lead, as tables show them; `None` for a campaign without one.

    Args:
        settings: Of the campaign.
        keys: The strings' keys. One that cannot be compared, such as a wrong SMILES that was told, has no distance.
    """
    mean = lead_of(settings)
    if mean is None:
        return None
    return distances_of(mean, keys)


def distances_of(mean: Any, keys: Sequence[str]) -> list[float | None]:
    """As `distances_from_lead`, by the `seqopt.models.DistanceMean` itself."""
    try:
        return [round(float(one), DIGITS) for one in mean.distances(list(keys))]
    except SeqoptError:
        found: list[float | None] = []
        for key in keys:
            try:
                found.append(round(float(mean.distances([key])[0]), DIGITS))
            except SeqoptError as error:
                logger.debug("%r has no distance from the lead: %s", key, error)
                found.append(None)
        return found
