"""What a fitted model says of plates: offsets, the best string of what plates have in common, controls that disagree.

A control disagrees if its value on a plate lies further from what all other values let expect of it there (leave-one-
out, with the noise of a measurement, and whatever the plate does to all of its wells) than chance explains: |z| beyond
the 1 - `LEVEL` / (2 m) quantile of the standard normal distribution, for m values of controls.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from seqopt.campaign.plates import PLATE, PlateRules
from seqopt.data import context_of, key_of
from seqopt.models import ExplainedSurrogate, GaussianSurrogate
from seqopt.optimizer import Optimizer
from seqopt.optimizer.learned import learned_contexts, recommended

LEVEL = 0.01
"""Probability with which some control is named although all are as the model has it."""

FEWEST = 6
"""Values without which the noise is not known well enough to judge one of them."""


def plate_facts(optimizer: Optimizer, surrogate: object, rules: PlateRules) -> dict[str, Any]:
    """What a campaign keeps of a model, besides its parameters.

    Args:
        optimizer: Knows what was measured.
        surrogate: Fitted to all of that.
        rules: Of the campaign.

    Returns:
        ``plates``, see `seqopt.optimizer.learned.learned_contexts`; ``recommended``, the measured string of the largest
        posterior mean; ``controls``, what is to be said of those that disagree, each a text.
    """
    found: dict[str, Any] = {"plates": learned_contexts(optimizer, surrogate)}
    if best := recommended(optimizer, surrogate):
        found["recommended"] = best
    if said := disagreeing(optimizer, surrogate, rules):
        found["controls"] = said
    return found


def disagreeing(optimizer: Optimizer, surrogate: object, rules: PlateRules) -> list[str]:
    """Which controls read on a plate what neither noise nor the plate explains, the worst first."""
    from scipy import stats

    if (
        not rules.controls
        or not isinstance(surrogate, GaussianSurrogate)
        or not isinstance(surrogate, ExplainedSurrogate)
    ):
        return []
    keys = {one.key: one.called for one in rules.controls}
    left_out, items = surrogate.leave_one_out(), surrogate.fitted.keys
    if len(items) < FEWEST:
        return []
    z = optimizer.outcome.sign * (left_out.values - left_out.mean) / left_out.std
    own = [
        place for place, item in enumerate(items) if key_of(item) in keys and context_of(item) and np.isfinite(z[place])
    ]
    if not own:
        return []
    bound = float(stats.norm.isf(LEVEL / (2 * len(own))))
    values: dict[Any, list[float]] = {}
    for row in optimizer.observations.with_status("ok"):
        values.setdefault((row.key, row.context), []).append(row.value)
    worst: dict[Any, float] = {}
    for place in own:
        query = key_of(items[place]), context_of(items[place])
        if abs(z[place]) > max(bound, abs(worst.get(query, 0.0))):
            worst[query] = float(z[place])
    found = []
    for (key, context), far in sorted(worst.items(), key=lambda one: -abs(one[1])):
        read = " and ".join(f"{value:.4g}" for value in values.get((key, context), []))
        found.append(
            f"the control {keys[key]} reads {read} on {dict(context)[PLATE]}, {abs(far):.1f} standard deviations "
            f"{'above' if far > 0 else 'below'} what all other values let expect there: neither noise nor the plate "
            "as a whole explains it. Look at the well; discard what is wrong (seqopt campaign discard)"
        )
    return found
