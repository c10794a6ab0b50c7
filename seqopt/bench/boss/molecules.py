"""The molecules of section 4.6.4: for each seed its own random candidates, the same ones for all methods."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence, Set
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from seqopt.scorers import Scoring
from seqopt.search import Proposal
from seqopt.search.memory import fill_batch
from seqopt.spaces import CandidateSet, PoolSpace
from seqopt.utils.config import Configurable

if TYPE_CHECKING:
    from seqopt.vae import StringVAE

INITIAL, STEPS, FRESH = 15, 35, 100
"""Random molecules at the beginning, evaluations after them, and candidates that are looked at in each step."""


def candidates(seed: int) -> CandidateSet:
    """Distinct random molecules of ZINC: those of the beginning, then the candidates of one step after another."""
    return drawn(seed, INITIAL + STEPS * FRESH, "molecules")


@lru_cache(maxsize=2)
def drawn(seed: int, count: int, name: str) -> CandidateSet:
    """So many distinct random molecules of ZINC, other ones for each seed and name."""
    from seqopt.bench.zinc import zinc

    space, _ = zinc()
    chosen = np.random.default_rng([seed, *name.encode()]).choice(len(space), count, replace=False)
    return CandidateSet(
        [space.strings[index] for index in chosen], kind="molecule", keys=[space.keys[index] for index in chosen]
    )


def penalised_logp(strings: Sequence[str]) -> npt.NDArray[np.float64]:
    """Scores of molecules of ZINC, which are computed once for all."""
    from seqopt.bench.zinc import zinc

    space, scores = zinc()
    return np.array([scores[space.index_of(string)] for string in strings], dtype=np.float64)


def rank_of(score: float) -> int:
    """Place of a score among those of all molecules of ZINC; 1 is the best."""
    from seqopt.bench.zinc import zinc

    return 1 + int((zinc()[1] > score).sum())


def readable(space: CandidateSet, vae: StringVAE) -> tuple[CandidateSet, list[int]]:
    """The candidates that an autoencoder reads, and the indices of the others: a grammar has not all of ZINC."""
    left_out = sorted(vae.unsupported(space.keys))
    kept = sorted(set(range(len(space))) - set(left_out))
    strings, keys = ([of[index] for index in kept] for of in (space.strings, space.keys))
    return CandidateSet(strings, kind="molecule", keys=keys), left_out


class FreshCandidates(Configurable):
    """Takes the best of the candidates of its step, which no other step looks at.

    Args:
        initial: Molecules at the beginning of the space, before the candidates of the first step.
        count: Candidates of a step.
        left_out: Indices, among all candidates, of those that the space does not hold: see `readable`.

    Example:
        >>> FreshCandidates(2, 3, left_out=[1, 4]).of_step(1), FreshCandidates(2, 3, left_out=[1, 4]).of_step(2)
        (range(1, 3), range(3, 6))
    """

    def __init__(self, initial: int = INITIAL, count: int = FRESH, *, left_out: Sequence[int] = ()) -> None:
        self.initial = initial
        self.count = count
        self.left_out = sorted(left_out)

    def of_step(self, evaluated: int) -> range:
        """Indices in the space of the candidates of the step after so many evaluations."""
        step = max(0, evaluated - self.initial + self._before(self.initial))
        start = self.initial + self.count * step
        return range(start - self._before(start), start + self.count - self._before(start + self.count))

    def _before(self, index: int) -> int:
        return bisect_left(self.left_out, index)

    def propose(
        self, n: int, *, space: PoolSpace, scoring: Scoring, excluded: Set[str], rng: np.random.Generator
    ) -> list[Proposal]:
        """See `seqopt.search.Search`; the number of excluded molecules says which step it is."""
        step = self.of_step(len(excluded))
        indices = np.arange(step.start, min(step.stop, len(space)), dtype=np.int64)
        without = scoring.unsupported([space.keys[int(index)] for index in indices])
        kept = np.array([index for place, index in enumerate(indices) if place not in without], dtype=np.int64)
        if not len(kept):
            return []
        scorer = scoring.pool_scorer(space, kept)
        return fill_batch(n, scorer, np.ones(len(kept), dtype=np.bool_), lambda place: space[int(kept[place])])
