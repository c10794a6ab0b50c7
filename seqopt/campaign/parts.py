"""The parts of a campaign's optimiser, as its file keeps them."""

from __future__ import annotations

from typing import Any

from seqopt.campaign.errors import CampaignError
from seqopt.campaign.rows import Settings
from seqopt.errors import InputError
from seqopt.utils.config import NotConfigurableError, config_of, from_config

PARTS = ("surrogate", "acquisition", "search")


def kept_parts(given: dict[str, Any]) -> dict[str, Any]:
    """Descriptions of those of some parts that are objects, by name; those that go by a name need none.

    Args:
        given: Parts by what they are: ``surrogate``, ``acquisition``, ``search``.

    Raises:
        NotConfigurableError: If one cannot be written down; the message names it.
    """
    found = {}
    for name, part in given.items():
        if not isinstance(part, str) and part is not None:
            try:
                found[name] = config_of(part)
            except NotConfigurableError as error:
                raise NotConfigurableError(f"the {name} cannot be kept in a file: {error}") from error
    return found


def restored_parts(settings: Settings) -> dict[str, Any]:
    """The parts of a campaign: names, or objects made from their descriptions.

    Raises:
        CampaignError: If one cannot be made again; the message names it.
    """
    named = {"surrogate": settings.surrogate, "acquisition": settings.acquisition, "search": "auto"}
    found: dict[str, Any] = {}
    for name in PARTS:
        config = settings.parts.get(name)
        try:
            found[name] = named[name] if config is None else from_config(config)
        except InputError as error:
            raise CampaignError(f"the {name} of the campaign cannot be made again: {error}") from error
    return found
