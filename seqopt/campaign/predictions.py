"""What a campaign keeps of a model: how good it is, and how to restore it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from seqopt.campaign.by_way import quality
from seqopt.campaign.plate_facts import plate_facts
from seqopt.campaign.plates import PlateRules
from seqopt.campaign.rows import NewSnapshot
from seqopt.models import ExplainedSurrogate, mean_effects
from seqopt.optimizer import Optimizer
from seqopt.optimizer.learned import learned_contexts
from seqopt.spaces import PoolSpace
from seqopt.strategies import ModelBased
from seqopt.utils.versions import versions


def snapshot_of(optimizer: Optimizer, state: dict[str, Any], rules: PlateRules | None = None) -> NewSnapshot:
    """The model that an optimiser last chose by: its parameters, seed and versions, how well it predicts, its state.

    Args:
        optimizer: It has just asked.
        state: Of its strategy.
        rules: How plates are used, where there are some.
    """
    strategy = optimizer.strategy.then
    surrogate = strategy.surrogate if isinstance(strategy, ModelBased) else None
    summary: dict[str, Any] = {
        "parameters": optimizer.hyperparameters,
        "seed": optimizer.seed,
        "versions": versions(),
    }
    if isinstance(kernels := state.get("surrogate", {}).get("kernel_types"), list):
        summary["kernel_types"] = kernels
    if isinstance(surrogate, ExplainedSurrogate):
        found = surrogate.leave_one_out()
        summary |= quality(optimizer, surrogate, found)
        if optimizer.outcome.yes_no:
            # Intervals of numbers, not of answers.
            summary["within_90"] = None
    if rules is not None and surrogate is not None:
        summary |= plate_facts(optimizer, surrogate, rules)
    elif surrogate is not None and optimizer.contexts is not None:
        summary["learned"] = learned_contexts(optimizer, surrogate)
    if effects := mean_effects(surrogate):
        summary["mean"] = [asdict(effect) for effect in effects]
    if isinstance(optimizer.space, PoolSpace):
        space = optimizer.space
        excluded = optimizer.state().excluded
        summary["left"] = len(space) - sum(space.index_of(key) is not None for key in excluded)
    measured = len(optimizer.observations.with_status("ok"))
    return NewSnapshot(type(strategy if surrogate is None else surrogate).__name__, measured, summary, state)
