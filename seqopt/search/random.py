"""Random search of a space: the best of many random strings by a score."""

from __future__ import annotations

from collections.abc import Set

import numpy as np

from seqopt.errors import InputError
from seqopt.scorers import Scoring
from seqopt.search.memory import fill_batch
from seqopt.search.protocols import Proposal
from seqopt.spaces import Space
from seqopt.utils.config import Configurable


class RandomSearch(Configurable):
    """Scores random strings of a space and takes the best: the baseline, and what is left where no moves are known.

    Args:
        candidates: Random strings drawn for each batch (the published baseline takes 10,000).

    Raises:
        InputError: If ``candidates`` is less than 1.
    """

    def __init__(self, candidates: int = 10_000) -> None:
        if isinstance(candidates, bool) or not isinstance(candidates, int | np.integer) or candidates < 1:
            raise InputError(f"candidates is {candidates!r}; it must be an integer of at least 1")
        self.candidates = int(candidates)

    def propose(
        self, n: int, *, space: Space, scoring: Scoring, excluded: Set[str], rng: np.random.Generator
    ) -> list[Proposal]:
        """Up to ``n`` distinct strings with keys outside ``excluded``; see `seqopt.search.Search`."""
        drawn = {space.key(string): string for string in space.sample(self.candidates, rng)}
        keys = [key for key in drawn if key not in excluded]
        without = scoring.unsupported(keys)
        keys = [key for index, key in enumerate(keys) if index not in without]
        if not keys:
            return []
        scorer = scoring.sample_scorer(keys)
        return fill_batch(n, scorer, np.ones(len(keys), dtype=np.bool_), lambda index: drawn[keys[index]])
