"""What every score has to be."""

from __future__ import annotations

import numpy as np

from seqopt.errors import ModelError
from seqopt.scorers.protocols import FloatArray


def checked_scores(scores: object, count: int, name: str) -> FloatArray:
    """Scores as an array, one number for each string.

    Args:
        scores: What an acquisition function or a classifier returned.
        count: How many strings were scored.
        name: What it is called.

    Raises:
        ModelError: If they have another shape, or one is not a number.

    Example:
        >>> checked_scores([0.5, float("-inf")], 2, "mine").tolist()
        [0.5, -inf]
    """
    found = np.asarray(scores, dtype=np.float64)
    if found.shape != (count,):
        raise ModelError(
            f"{name} returned scores of shape {found.shape} for {count} strings; expected one number for each, "
            f"shape ({count},): average over draws of the model's parameters, if there are any"
        )
    if np.isnan(found).any():
        bad = int(np.flatnonzero(np.isnan(found))[0])
        raise ModelError(
            f"{name} returned NaN for {int(np.isnan(found).sum())} of {count} strings, the first at index {bad}; a "
            "string that must not be chosen scores minus infinity"
        )
    return found
