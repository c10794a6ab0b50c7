"""Random search of a space: the best of many random strings by an acquisition function."""

from __future__ import annotations

from collections.abc import Set

import numpy as np
import torch

from seqopt.acquisition import Acquisition
from seqopt.acquisition.sampling import largest_upper_confidence
from seqopt.errors import InputError
from seqopt.models import StringSurrogate, unsupported
from seqopt.models.conditioned import BlockwisePosterior
from seqopt.search.protocols import Suggestion
from seqopt.search.scoring import fill_batch, suggestion
from seqopt.spaces import Space

BLOCK = 1000
"""Strings whose posterior is computed at once; also how many compete for a batch, and bound the maximum."""


class RandomSearch:
    """Scores random strings of a space and takes the best: the baseline, and what is left where no moves are known.

    The acquisition function is prepared on the ``BLOCK`` strings of largest upper confidence bound. Batches are filled
    greedily from the strings of largest value on their own, as many again.

    Args:
        candidates: Random strings drawn for each batch (the published baseline takes 10,000).

    Raises:
        InputError: If ``candidates`` is less than 1.
    """

    def __init__(self, candidates: int = 10_000) -> None:
        if isinstance(candidates, bool) or not isinstance(candidates, int | np.integer) or candidates < 1:
            raise InputError(f"candidates is {candidates!r}; it must be an integer of at least 1")
        self.candidates = int(candidates)

    def suggest(
        self,
        n: int,
        *,
        space: Space,
        surrogate: StringSurrogate,
        acquisition: Acquisition,
        excluded: Set[str],
        pending: list[str],
        rng: np.random.Generator,
    ) -> list[Suggestion]:
        """Up to ``n`` distinct strings with keys outside ``excluded``; see `seqopt.search.Search`."""
        drawn = {space.key(string): string for string in space.sample(self.candidates, rng)}
        keys = [key for key in drawn if key not in excluded]
        refused = unsupported(surrogate, keys)
        keys = [key for place, key in enumerate(keys) if place not in refused]
        if not keys:
            return []
        process = surrogate.conditioned(pending)
        margins = BlockwisePosterior(process, keys, BLOCK)
        bound = largest_upper_confidence(margins, BLOCK)
        prepared = acquisition.prepare(process.at([keys[int(i)] for i in bound]), rng, n + len(pending))
        top = torch.topk(prepared(margins), min(BLOCK, len(keys))).indices.sort().values
        keys = [keys[int(i)] for i in top]
        posterior = process.at(keys)

        def propose(place: int, value: float) -> Suggestion:
            return suggestion(drawn[keys[place]], keys[place], value, posterior, place, surrogate)

        return fill_batch(n, posterior, prepared, np.ones(len(keys), dtype=np.bool_), propose)
