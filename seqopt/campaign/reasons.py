"""Why a string was chosen: whether it exploits or explores, and which measured string it is most like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from seqopt.data import Observation
    from seqopt.optimizer import Optimizer

EXPLOIT, EXPLORE, RANDOM = "exploit", "explore", "random"
"""Kinds of reasons. A random string was drawn before there was a model."""


class Reason(NamedTuple):
    """Why one string was chosen.

    Attributes:
        kind: `EXPLOIT` or `EXPLORE`.
        nearest: The measured string that the model takes to be most like it.
        similarity: How similar the two are, up to 1.
    """

    kind: str
    nearest: str
    similarity: float


def reason(mean: float, best: float, similarity: npt.ArrayLike, measured: Sequence[str]) -> Reason:
    """Why a string was chosen, given what was measured before.

    A string exploits if the model expects it to be at least as good as the best so far; else it explores. Of equally
    similar strings the first counts.

    Args:
        mean: What the model expects of it; larger is better.
        best: The best so far on the same scale: what the model expects of the best measured string or, where that is
            not known any more, the best value.
        similarity: To each measured string.
        measured: These strings, at least one.

    Example:
        >>> reason(1.0, 2.0, [0.25, 0.75], ["CCO", "CCN"])
        Reason(kind='explore', nearest='CCN', similarity=0.75)
    """
    index = int(np.argmax(similarity))
    return Reason(EXPLOIT if mean >= best else EXPLORE, measured[index], float(np.asarray(similarity)[index]))


def reasons_of(optimizer: Optimizer, rows: Sequence[Observation]) -> list[dict[str, Any]]:
    """Why an optimiser has just chosen these rows of its table, as JSON values; empty where its model cannot say.

    Of several ways to measure, strings are compared as their targets.
    """
    from seqopt.models import ExplainedSurrogate
    from seqopt.strategies import ModelBased

    strategy = optimizer.strategy.then
    if not optimizer.hyperparameters:
        return [{"kind": RANDOM} for _ in rows]
    if not isinstance(strategy, ModelBased) or not isinstance(strategy.surrogate, ExplainedSurrogate):
        return [{} for _ in rows]
    surrogate = strategy.surrogate
    measured = list(dict.fromkeys(row.key for row in optimizer.observations.with_status("ok")))
    written = {row.key: row.string for row in optimizer.observations.rows}
    strings = [written[key] for key in measured]
    best = float(surrogate.predict(measured)[0].max())
    keys = [row.key for row in rows]
    means = surrogate.predict(keys)[0].tolist()
    found = [
        reason(mean, best, row, strings) for mean, row in zip(means, surrogate.similarity(keys, measured), strict=True)
    ]
    return [one._asdict() | {"similarity": round(one.similarity, 4)} for one in found]
