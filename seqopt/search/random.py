"""Random search of a space: the best of many random strings by an acquisition function."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from seqopt.acquisition import Acquisition
from seqopt.acquisition.sampling import largest_upper_confidence
from seqopt.errors import InputError
from seqopt.models import ConditionedProcess, StringSurrogate
from seqopt.search.protocols import Suggestion
from seqopt.search.scoring import suggestion
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
            raise InputError(f"candidates is {candidates!r}; it must be a whole number of at least 1")
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
        if not keys:
            return []
        process = surrogate.conditioned(pending)
        margins = _Margins.of(process, keys)
        bound = largest_upper_confidence(margins, BLOCK)
        prepared = acquisition.prepare(process.at([keys[int(i)] for i in bound]), rng, n + len(pending))
        values = prepared(margins)
        top = torch.topk(values, min(BLOCK, len(keys))).indices.sort().values
        keys = [keys[int(i)] for i in top]
        posterior = process.at(keys)
        chosen: list[Suggestion] = []
        allowed = np.ones(len(keys), dtype=bool)
        for _ in range(min(n, len(keys))):
            scores = np.where(allowed, prepared(posterior).numpy(), -np.inf)
            best = int(np.argmax(scores))
            if not allowed[best]:  # the acquisition rules every remaining string out
                break
            chosen.append(suggestion(drawn[keys[best]], keys[best], float(scores[best]), posterior, best, surrogate))
            allowed[best] = False
            if len(chosen) < n:
                posterior.condition(best)
        return chosen


@dataclass
class _Margins:
    """A posterior at many points whose joint distribution is never asked for."""

    mean: Tensor
    variance: Tensor
    conditional_variance: Tensor
    conditioned_mean: Tensor
    noise_variance: Tensor
    observed_mean: Tensor
    best_observed: float

    @classmethod
    def of(cls, process: ConditionedProcess, keys: list[str]) -> _Margins:
        """Computed in blocks."""
        margins = []
        for start in range(0, len(keys), BLOCK):
            # Of a block only the margins are kept.
            part = process.at(keys[start : start + BLOCK])
            margins.append((part.mean, part.variance, part.conditional_variance))
        joined = [torch.cat(parts, -1) for parts in zip(*margins, strict=True)]
        return cls(
            joined[0],
            joined[1],
            joined[2],
            part.conditioned_mean,
            part.noise_variance,
            part.observed_mean,
            part.best_observed,
        )

    def joint(self, indices: Tensor, include_observed: bool = False) -> tuple[Tensor, Tensor]:
        raise NotImplementedError("only margins are known")

    def condition(self, index: int) -> None:
        raise NotImplementedError("only margins are known")
