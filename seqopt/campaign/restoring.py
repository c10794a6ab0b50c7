"""The optimiser of a campaign, made again from its file."""

from __future__ import annotations

import logging
import math

from seqopt.campaign.errors import CampaignError
from seqopt.campaign.parts import restored_parts
from seqopt.campaign.rows import Settings
from seqopt.campaign.store import CampaignStore
from seqopt.models import unsupported
from seqopt.optimizer import Optimizer
from seqopt.spaces import PoolSpace, Space

logger = logging.getLogger(__name__)

WITHDRAWN = "withdrawn"

AUTOENCODER = "autoencoder"
"""Where the settings of a campaign in latent space hold the name of its model, which tells weights from others."""


def restored_optimizer(store: CampaignStore, space: Space, allowed: Space) -> Optimizer:
    """The optimiser as the file has it: everything measured is told, and open suggestions are pending.

    Args:
        store: The campaign.
        space: Where it searches.
        allowed: What of it may be suggested.

    Raises:
        CampaignError: If the file of its model is not the one that it was begun with, or a part cannot be made again.
    """
    settings = store.settings
    optimizer = Optimizer(
        allowed if isinstance(space, PoolSpace) else space,
        **restored_parts(settings),
        batch_size=settings.batch_size,
        initial=settings.initial,
        direction=settings.direction,
        transform=settings.transform,
        seed=settings.seed,
        allow_repeats=settings.allow_repeats,
    )
    check_model(settings, optimizer.surrogate)
    with store.reading():
        observed, counts = store.observations(), store.counts()
        suggestions = store.suggestions()
        latest = store.latest_snapshot()
        model = None if latest is None else store.snapshot_state(latest.id)
    # A campaign that was begun before results were held against its model may have some that it cannot take.
    refused = unsupported(optimizer.surrogate, [one.key for one in observed])
    for index, one in enumerate(observed):
        if one.values and index in refused:
            logger.warning("the model does not learn from %r: %s", one.string, refused[index])
            optimizer.tell([one.string], [math.nan], errors=[refused[index]])
        elif one.values:
            strings = [one.string] * len(one.values)
            optimizer.tell(strings, one.values, standard_errors=one.standard_errors)
        else:
            optimizer.tell([one.string], [math.nan], errors=[one.failures[-1]])
    measured = {one.key for one in observed}
    for suggestion in suggestions:
        if suggestion.status == WITHDRAWN and suggestion.key not in measured:
            optimizer.tell([suggestion.string], [math.nan], errors=[WITHDRAWN])
            measured.add(suggestion.key)
    pending = [
        {"string": suggestion.string, "key": suggestion.key, "details": {"batch": suggestion.batch}}
        for suggestion in suggestions
        if suggestion.status == "open"
    ]
    batches = max((suggestion.batch for suggestion in suggestions), default=0)
    surrogate = optimizer.surrogate.state_dict() if model is None else model
    optimizer.replay_ask(
        pending, {"asks": counts.batches, "batches": batches, "surrogate": surrogate, "hyperparameters": {}}
    )
    # Not before: a space that generates its strings takes no results of strings outside it.
    optimizer.space = allowed
    return optimizer


def check_model(settings: Settings, surrogate: object) -> None:
    """Refuse a model file that is not the one that the campaign was begun with.

    Raises:
        CampaignError: If it is another one.
    """
    begun = settings.extra.get(AUTOENCODER)
    found = encoder_name(surrogate)
    if begun is not None and found != begun:
        raise CampaignError(
            f"the surrogate {settings.surrogate} is {found} now, and the campaign was begun with {begun}: put that "
            "file back, or start another campaign and import the results"
        )


def encoder_name(surrogate: object) -> str:
    """The name of what a surrogate sees strings through; empty if it has none."""
    return str(getattr(getattr(surrogate, "encoder", None), "name", ""))
