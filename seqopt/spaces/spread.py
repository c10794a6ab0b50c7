"""Pools whose candidates are looked at elsewhere, in shards: what is asked of them, and what comes back.

A search of a pool of a billion candidates keeps no number for each of them. It asks for the candidates of largest score
instead: every shard gives its own, and the best of these are the best of all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from seqopt.spaces.protocols import PoolSpace

Places = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float64]


class Ranks(Protocol):
    """Ranks equal scores: the smaller rank first."""

    def __call__(self, places: Places) -> npt.NDArray[Any]:
        """One number for each place in the pool."""
        ...


class ShardScore(Protocol):
    """Scores the candidates of a shard by themselves; it can be pickled.

    Attributes:
        name: What it does, in a word, by which its tasks are called: ``"score"``.
    """

    name: ClassVar[str]

    def __call__(self, shard: PoolSpace) -> Scores:
        """A score for each candidate of the shard; minus infinity for one that is never wanted."""
        ...


@runtime_checkable
class Spread(Protocol):
    """Where the shards of a pool are, and who looks at them."""

    def best(
        self, score: ShardScore, count: int, left_out: Places, *, ranks: Ranks | None = None, what: str = "scoring"
    ) -> tuple[Places, Scores]:
        """The candidates of largest score of all shards.

        Args:
            score: Scores a shard.
            count: How many; fewer come back where fewer have a score above minus infinity.
            left_out: Places in the pool that are not wanted.
            ranks: Order candidates of equal scores; by default the first of them come first.
            what: What is being done, in words that may stand before a number of candidates.

        Returns:
            Their places in the pool and their scores, the best first.
        """
        ...


def spread_of(pool: object) -> Spread | None:
    """Who looks at the candidates of a pool, where that is not this process; `None` for other pools."""
    found = getattr(pool, "spread", None)
    return found if isinstance(found, Spread) else None
