"""What a campaign keeps of a model: intervals of what it predicted, how good it is, and how to restore it."""

from __future__ import annotations

import math
from typing import Any

from seqopt.campaign.rows import NewSnapshot
from seqopt.models import ExplainedSurrogate
from seqopt.optimizer import Optimizer
from seqopt.spaces import PoolSpace
from seqopt.strategies import ModelBased
from seqopt.utils.versions import versions

INTERVAL = 1.6448536269514722
"""Half the width of the central 90 % of a normal distribution, in standard deviations."""


def interval(mean: float | None, std: float | None, transform: str | None) -> tuple[float | None, float | None]:
    """The central 90 % of a prediction in the user's units; `None` where there is none, or no float can hold it.

    Args:
        mean: Mean in the user's units.
        std: Standard deviation in the user's units: of a measurement, noise included, if nine of ten measurements are
            to lie in the interval.
        transform: ``"log10"`` where the moments are those of a log-normal distribution, whose quantiles they give.

    Example:
        >>> [round(end, 3) for end in interval(1.0, 0.5, None)]
        [0.178, 1.822]
    """
    if mean is None or std is None:
        return None, None
    if transform != "log10" or mean <= 0:
        return mean - INTERVAL * std, mean + INTERVAL * std
    try:
        spread = math.log1p((std / mean) ** 2)
        centre, half = math.log(mean) - spread / 2, INTERVAL * math.sqrt(spread)
        return math.exp(centre - half), math.exp(centre + half)
    except OverflowError:
        return None, None


def snapshot_of(optimizer: Optimizer, state: dict[str, Any]) -> NewSnapshot:
    """The model that an optimiser last chose by: its parameters, seed and versions, how well it predicts, its state.

    Args:
        optimizer: It has just asked.
        state: Of its strategy.
    """
    strategy = optimizer.strategy.then
    surrogate = strategy.surrogate if isinstance(strategy, ModelBased) else None
    summary: dict[str, Any] = {
        "parameters": optimizer.hyperparameters,
        "seed": optimizer.seed,
        "versions": versions(),
    }
    if isinstance(surrogate, ExplainedSurrogate):
        found = surrogate.leave_one_out()
        summary["r2"] = round(found.r2, 4) if math.isfinite(found.r2) else None
        summary["within_90"] = round(found.within_90, 4) if math.isfinite(found.within_90) else None
    if isinstance(optimizer.space, PoolSpace):
        space = optimizer.space
        excluded = optimizer.state().excluded
        summary["left"] = len(space) - sum(space.index_of(key) is not None for key in excluded)
    measured = len(optimizer.observations.with_status("ok"))
    return NewSnapshot(type(strategy if surrogate is None else surrogate).__name__, measured, summary, state)
