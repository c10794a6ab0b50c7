"""What workers do: score one shard, and keep one that was sent."""

from __future__ import annotations

import platform
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seqopt.distributed.errors import ClusterError
from seqopt.distributed.shards import PoolFacts, ShardRef, open_shard
from seqopt.scorers.shortlist import largest
from seqopt.spaces.spread import Places, Ranks, Scores, ShardScore

COMPARED = ("seqopt", "python", "rdkit", "numpy", "torch", "scikit-learn")
"""What has to be of one version everywhere, so that molecules have the same keys and models the same numbers."""


@dataclass(frozen=True, eq=False)
class Request:
    """What is asked of every shard.

    Attributes:
        score: Scores a shard.
        pool: What all shards share.
        count: How many of its best candidates are wanted.
        ranks: Order equal scores.
        versions: Of whoever asks.
    """

    score: ShardScore
    pool: PoolFacts
    count: int
    ranks: Ranks | None
    versions: dict[str, str]


def versions() -> dict[str, str]:
    """Versions of what has to be the same everywhere."""
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": ".".join(platform.python_version_tuple()[:2])}
    for name in COMPARED:
        if name != "python":
            try:
                found[name] = version(name)
            except PackageNotFoundError:
                found[name] = "missing"
    return found


def differing(theirs: dict[str, str], ours: dict[str, str]) -> str:
    """In which versions a worker differs, in words; empty where in none.

    Example:
        >>> differing({"python": "3.12", "seqopt": "0.1"}, {"python": "3.12", "seqopt": "0.2"})
        'seqopt 0.1 instead of 0.2'
    """
    return ", ".join(
        f"{name} {theirs.get(name, 'missing')} instead of {mine}"
        for name, mine in ours.items()
        if theirs.get(name) != mine
    )


def score_shard(
    payload: bytes, ref: ShardRef, left_out: npt.NDArray[np.int64], floor: float | None
) -> tuple[Places, Scores]:
    """The candidates of largest score of a shard.

    Args:
        payload: A pickled `Request`: read anew for each shard, since a score may keep things, and alphabets grow.
        ref: The shard.
        left_out: Numbers, in the shard, of candidates that are not wanted.
        floor: Scores below it are not wanted.

    Returns:
        Places in the pool and scores, the best first.

    Raises:
        ClusterError: If this worker is of other versions.
        MissingShardError: If it has no whole copy of the shard.
    """
    from distributed.protocol.pickle import loads

    request: Request = loads(payload)
    own = _own_versions()
    if other := differing(own, request.versions):
        raise ClusterError(_of_other_versions(other))
    shard = open_shard(request.pool, ref)
    scores = np.array(request.score(shard), dtype=np.float64)
    scores[left_out] = -np.inf
    if floor is not None:
        scores[scores < floor] = -np.inf
    places = ref.first + np.arange(len(scores), dtype=np.int64)
    order = None if request.ranks is None else request.ranks(places)
    numbers, values = largest(scores, request.count, order)
    return places[numbers], values


def merged(places: Places, scores: Scores, count: int, ranks: Ranks | None) -> tuple[Places, Scores]:
    """The ``count`` candidates of largest score of several lists, the best first.

    Example:
        >>> merged(np.array([7, 2, 5]), np.array([1.0, 3.0, 3.0]), 2, None)
        (array([2, 5]), array([3., 3.]))
    """
    ties = places if ranks is None else ranks(places)
    # Places decide where even ranks are equal.
    order = np.lexsort((places, ties, -scores))[:count]
    return places[order], scores[order]


def _of_other_versions(other: str) -> str:
    return f"a worker has {other}: install the same versions everywhere (one container image, or one environment)"


_versions: dict[str, str] = {}


def _own_versions() -> dict[str, str]:
    if not _versions:
        _versions.update(versions())
    return _versions
