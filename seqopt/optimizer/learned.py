"""What a search has learned of the ways to measure."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from seqopt.errors import ModelError
from seqopt.models import StringSurrogate, Surrogate
from seqopt.models.context_facts import context_facts
from seqopt.optimizer.optimizer import Optimizer


def learned_contexts(optimizer: Optimizer, surrogate: object = None) -> list[dict[str, Any]]:
    """How much each way to measure tells of the target, and its offset, after all that is known.

    Args:
        optimizer: Of a search with contexts.
        surrogate: A model that was fitted to all results; by default it is fitted, as by `Optimizer.fitted`.

    Returns:
        For each context but the target: ``context``, ``correlation`` and its 90 % interval ``correlation_low``,
        ``correlation_high`` over draws of the parameters; ``offset`` from the target with its 90 % interval
        ``offset_low``, ``offset_high``, in the user's units or, under a transform, in those of the transformed values.
        There are no offsets where each way has a unit of its own. Nothing where the strategy has no model that could
        say so, or too little is known.
    """
    contexts = optimizer.contexts
    if contexts is None:
        return []
    try:
        surrogate = optimizer.fitted if surrogate is None else surrogate
    except ModelError:
        return []
    if not isinstance(surrogate, StringSurrogate):
        return []
    measured: dict[Any, list[str]] = {}
    for row in optimizer.observations.with_status("ok"):
        measured.setdefault(row.context, []).append(row.key)
    sign = optimizer.outcome.sign
    found = []
    for context, facts in context_facts(surrogate, measured, contexts.target).items():
        said: dict[str, Any] = {
            "context": dict(context),
            "correlation": facts.correlation,
            "correlation_low": facts.correlation_low,
            "correlation_high": facts.correlation_high,
        }
        if not math.isnan(facts.offset):
            low, high = sorted(sign * end for end in (facts.offset_low, facts.offset_high))
            said |= {"offset": sign * facts.offset, "offset_low": low, "offset_high": high}
        found.append(said)
    return found


def recommended(optimizer: Optimizer, surrogate: object = None) -> dict[str, Any] | None:
    """The measured string with the best posterior mean of the target, and what is predicted of that.

    Args:
        optimizer: Of a search.
        surrogate: See `learned_contexts`.

    Returns:
        ``string``, ``predicted_mean`` and ``predicted_std``, in the user's units; `None` where there is no model, or
        too little is known.
    """
    rows = {row.key: row.string for row in optimizer.observations.with_status("ok")}
    if not rows:
        return None
    try:
        model = optimizer.fitted if surrogate is None else surrogate
    except ModelError:
        return None
    if not isinstance(model, Surrogate):
        return None
    predictions = zip(*model.predict(list(rows)), strict=True)
    moments = [optimizer.transform.moments(optimizer.outcome.sign * mean, std) for mean, std in predictions]
    mean, std = np.array(moments, dtype=np.float64).T
    best = int(np.argmax(optimizer.outcome.sign * mean))
    return {"string": list(rows.values())[best], "predicted_mean": float(mean[best]), "predicted_std": float(std[best])}
