"""What a search found of candidates whose values are all known."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from seqopt.data.replay import Replay, replay
from seqopt.optimizer.optimizer import Optimizer
from seqopt.spaces import PoolSpace


def replayed(optimizer: Optimizer, values: npt.ArrayLike) -> Replay:
    """The shares of the best that a search of a pool has found; see `seqopt.data.replay.replay`.

    Every evaluation counts, also one that failed. What the search was told without having asked, such as results known
    beforehand, was not found by it: these strings are left out, and random search does not draw them either. Where
    there are several ways to measure, only what was measured as the target was found.

    Args:
        optimizer: Of the search. Its space is a pool.
        values: The value of each candidate of the pool, in its order; NaN where there is none.

    Example:
        >>> from seqopt.spaces import CandidateSet
        >>> optimizer = Optimizer(CandidateSet(list("ABCD"), kind="text"), initial=2)
        >>> for key in optimizer.ask():
        ...     optimizer.tell([key], [float("ABCD".index(key))])
        >>> found = replayed(optimizer, [0.0, 1.0, 2.0, 3.0])
        >>> found.evaluated, found.tops[0].expected
        (2, 0.5)
    """
    space = optimizer.space
    assert isinstance(space, PoolSpace)  # nothing else has a value for each string
    asked: set[int] = set()
    told: set[int] = set()
    contexts = optimizer.contexts
    meant = None if contexts is None or contexts.latent else contexts.target
    for row in optimizer.observations.rows:
        if meant is not None and row.context != meant:
            continue
        index = space.index_of(row.key)
        if index is not None and row.status in ("ok", "failed"):
            (told if row.details.get("batch") is None else asked).add(index)
    left = np.ones(len(space), dtype=np.bool_)
    left[list(told - asked)] = False
    places = np.cumsum(left) - 1
    return replay(
        np.asarray(values, dtype=np.float64)[left],
        places[sorted(asked)],
        maximize=optimizer.direction == "maximize",
    )
