"""Search of a candidate set: every candidate scored, batches filled greedily."""

from __future__ import annotations

from collections.abc import Set

import numpy as np

from seqopt.errors import InputError
from seqopt.scorers import Scoring
from seqopt.scorers.allowed import all_but
from seqopt.scorers.protocols import IndexArray
from seqopt.search.memory import fill_batch
from seqopt.search.protocols import Proposal
from seqopt.spaces import PoolSpace, Space
from seqopt.utils.config import Configurable


class PoolSearch(Configurable):
    """Scores a pool of candidates and fills a batch greedily.

    The first element of a batch maximises the score over the pool; each next one maximises it given those chosen, which
    for Gaussian processes costs one prior-covariance column and one rank-one update (thesis, algorithm 4).

    Args:
        candidates: Score only this many candidates, drawn afresh at each step (the protocol of the thesis, section
            5.7.3, takes 1,000). By default the whole pool is scored.

    Raises:
        InputError: If ``candidates`` is less than 1.
    """

    def __init__(self, candidates: int | None = None) -> None:
        if candidates is not None and candidates < 1:
            raise InputError(f"candidates is {candidates}; expected at least 1, or None for the whole pool")
        self.candidates = candidates

    def check_space(self, space: Space) -> None:
        """Refuse a space that is not a list; see `seqopt.search.CheckedSearch`.

        Raises:
            InputError: For any space but a pool.
        """
        if not isinstance(space, PoolSpace):
            raise InputError(f"PoolSearch looks at every candidate of a list, and a {type(space).__name__} is not one")

    def propose(
        self, n: int, *, space: PoolSpace, scoring: Scoring, excluded: Set[str], rng: np.random.Generator
    ) -> list[Proposal]:
        """Up to ``n`` distinct candidates with keys outside ``excluded``; see `seqopt.search.Search`."""
        indices = self._draw(space, excluded, rng)
        if indices is not None and len(indices) == 0:
            return []
        scorer = scoring.pool_scorer(space, indices)
        if indices is not None:
            drawn = indices
            return fill_batch(n, scorer, np.ones(len(drawn), dtype=np.bool_), lambda index: space[int(drawn[index])])
        positions = (space.index_of(key) for key in excluded)
        allowed = all_but(space, len(space), [position for position in positions if position is not None])
        return fill_batch(n, scorer, allowed, lambda index: space[index])

    def _draw(self, space: PoolSpace, excluded: Set[str], rng: np.random.Generator) -> IndexArray | None:
        if self.candidates is None:
            return None
        # Enough are drawn that the wanted number is left when every excluded one is among them.
        size = min(len(space), self.candidates + len(excluded))
        drawn = rng.choice(len(space), size=size, replace=False)
        kept = [index for index in drawn.tolist() if space.keys[index] not in excluded]
        return np.asarray(kept[: self.candidates], dtype=np.int64)
