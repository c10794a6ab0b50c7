"""Search of a candidate set: every candidate scored, batches filled greedily."""

from __future__ import annotations

from collections.abc import Set

import numpy as np

from seqopt.acquisition import Acquisition, MonotoneAcquisition
from seqopt.errors import InputError
from seqopt.models import BoundedPosterior, PoolSurrogate
from seqopt.search.protocols import Suggestion
from seqopt.search.scoring import fill_batch, suggestion
from seqopt.spaces import PoolSpace


class PoolSearch:
    """Scores a pool of candidates and fills a batch greedily.

    The first element of a batch maximises the acquisition function over the pool; each next one maximises it given
    those chosen, which costs one prior-covariance column and one rank-one update (thesis, algorithm 4). Where the pool
    is so large that this is computed for some candidates only (`seqopt.models.BoundedPosterior`), the choice is the
    same.

    Args:
        candidates: Score only this many candidates, drawn afresh at each step (the protocol of the thesis, section
            5.7.4, takes 1,000). By default the whole pool is scored.

    Raises:
        InputError: If ``candidates`` is less than 1.
    """

    def __init__(self, candidates: int | None = None) -> None:
        if candidates is not None and candidates < 1:
            raise InputError(f"candidates is {candidates}; expected at least 1, or None for the whole pool")
        self.candidates = candidates

    def suggest(
        self,
        n: int,
        *,
        space: PoolSpace,
        surrogate: PoolSurrogate,
        acquisition: Acquisition,
        excluded: Set[str],
        pending: list[str],
        rng: np.random.Generator,
    ) -> list[Suggestion]:
        """Up to ``n`` distinct candidates with keys outside ``excluded``; see `seqopt.search.Search`."""
        indices = self._draw(space, excluded, rng)
        if indices is not None and len(indices) == 0:
            return []
        posterior = surrogate.pool_posterior(space, indices, pending)
        prepared = acquisition.prepare(posterior, rng, n + len(pending))
        monotone = isinstance(acquisition, MonotoneAcquisition) and acquisition.monotone
        if monotone and isinstance(posterior, BoundedPosterior):
            posterior.use_bounds()
        size = len(space) if indices is None else len(indices)
        allowed = np.ones(size, dtype=bool)
        if indices is None:
            positions = (space.index_of(key) for key in excluded)
            allowed[[position for position in positions if position is not None]] = False

        def propose(place: int, value: float) -> Suggestion:
            index = place if indices is None else int(indices[place])
            return suggestion(space[index], space.keys[index], value, posterior, place, surrogate)

        return fill_batch(n, posterior, prepared, allowed, propose)

    def _draw(self, space: PoolSpace, excluded: Set[str], rng: np.random.Generator) -> np.ndarray | None:
        if self.candidates is None:
            return None
        # Enough are drawn that the wanted number is left when every excluded one is among them.
        size = min(len(space), self.candidates + len(excluded))
        drawn = rng.choice(len(space), size=size, replace=False)
        kept = [index for index in drawn.tolist() if space.keys[index] not in excluded]
        return np.asarray(kept[: self.candidates], dtype=np.int64)
