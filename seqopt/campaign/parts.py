"""The optimiser of a campaign and its parts: as the file keeps them, and made again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from seqopt.campaign.errors import CampaignError
from seqopt.campaign.plates import PlateRules
from seqopt.campaign.rows import Settings
from seqopt.data import Context
from seqopt.errors import InputError
from seqopt.models import PlannedSurrogate, Surrogate, SurrogatePlan
from seqopt.optimizer import Optimizer
from seqopt.spaces import PoolSpace, Space
from seqopt.strategies import ModelBased
from seqopt.strategies.screened import KnownColumn, with_columns
from seqopt.strategies.warm import OtherAssay, warm_started
from seqopt.utils.config import NotConfigurableError, config_of, from_config

PARTS = ("surrogate", "acquisition", "search")

AUTOENCODER = "autoencoder"
"""Where the settings of a campaign in latent space hold the name of its model, which tells weights from others."""


def kept_parts(given: dict[str, Any]) -> dict[str, Any]:
    """Descriptions of those of some parts that are objects, by name; those that go by a name need none.

    Args:
        given: Parts by what they are: ``surrogate``, ``acquisition``, ``search``, or ``strategy``.

    Raises:
        NotConfigurableError: If one cannot be written down; the message names it.
    """
    found = {}
    for name, part in given.items():
        # A class instead of an object is refused by the optimiser, which says what to give.
        if not isinstance(part, str | type) and part is not None:
            try:
                found[name] = config_of(part)
            except NotConfigurableError as error:
                raise NotConfigurableError(f"the {name} cannot be kept in a file: {error}") from error
    return found


def restored_parts(settings: Settings) -> dict[str, Any]:
    """The parts of a campaign as arguments of `Optimizer`: names, or objects made from their descriptions.

    Raises:
        CampaignError: If one cannot be made again; the message names it.
    """
    named = {"surrogate": settings.surrogate, "acquisition": settings.acquisition, "search": "auto", "strategy": None}
    found: dict[str, Any] = {}
    for name in ("strategy",) if "strategy" in settings.parts else PARTS:
        config = settings.parts.get(name)
        try:
            found[name] = named[name] if config is None else from_config(config)
        except InputError as error:
            raise CampaignError(f"the {name} of the campaign cannot be made again: {error}") from error
    return found


def made_optimizer(
    settings: Settings,
    space: Space,
    allowed: Space,
    columns: Mapping[Context, KnownColumn] | None = None,
    assays: Sequence[OtherAssay] = (),
) -> Optimizer:
    """The optimiser of a campaign, before it has asked for anything.

    Args:
        settings: Of the campaign.
        space: Where it searches.
        allowed: What of it may be suggested.
        columns: Scores that are known of its strings, by how they were measured.
        assays: Other assays that its model learns from.

    Raises:
        InputError: If its model cannot learn from other assays.
        CampaignError: If the file of its model is not the one that it was begun with, or a part cannot be made again.
    """
    parts = restored_parts(settings)
    if assays:
        decides = warm_started(parts, assays, columns or {}, settings.objective, settings.made_contexts())
        parts = {"strategy": decides}
    elif columns:
        parts["strategy"] = with_columns(parts.get("strategy"), columns)
    rules = PlateRules.of(settings)
    optimizer = Optimizer(
        allowed if isinstance(space, PoolSpace) else space,
        **parts,
        batch_size=settings.batch_size,
        initial=settings.initial,
        design=settings.design,
        # Filters may have been changed since.
        include=[string for string in settings.include if allowed.contains(string)],
        limits=None if settings.limits is None else from_config(settings.limits),
        outcomes=settings.outcomes(),
        contexts=settings.made_contexts(),
        initial_contexts=settings.initial_contexts,
        seed=settings.seed,
        allow_repeats=settings.allow_repeats,
        apart=[] if rules is None else [one.key for one in rules.controls],
    )
    strategy = optimizer.strategy.then
    if isinstance(strategy, ModelBased):
        check_model(settings, strategy.surrogate)
    return optimizer


def named_surrogate(optimizer: Optimizer, given: Surrogate | PlannedSurrogate | str | None) -> str:
    """What settings call a surrogate: its name or, if it was given as an object, its type.

    Args:
        optimizer: It has the surrogate, or a strategy that decides without one.
        given: As its owner gave it, if not within a strategy.

    Returns:
        Empty for a strategy that is not a `ModelBased`, or has parts of its own.
    """
    if isinstance(given, str):
        return given
    strategy = optimizer.strategy.then
    if given is None and type(strategy) is ModelBased:
        return "auto"
    if isinstance(given, SurrogatePlan):
        return given.label
    return type(given).__name__ if given is not None else ""


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
