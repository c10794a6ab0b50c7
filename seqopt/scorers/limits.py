"""Limits on how alike the strings of one batch may be, kept while the batch is filled."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from seqopt.errors import InputError
from seqopt.models.protocols import nominated
from seqopt.scorers.allowed import without
from seqopt.scorers.protocols import BoolArray, Choice, FloatArray, IndexArray, PoolScorer, Scorer, Scoring
from seqopt.scorers.similarity import Similarity, similarity_of
from seqopt.spaces import PoolSpace, keys_at
from seqopt.utils.config import Configurable

LOOKED_AT = 4
"""Candidates looked at together once the best one is refused; each time so many times more."""


class BatchLimits(Configurable):
    """How many strings of a batch may share a scaffold, and how similar any two may be.

    Strings whose results are awaited count as members of the batch. A limit is kept while a batch is filled: what is
    too much like those chosen before is passed over, and the best of the others is taken.

    Args:
        per_scaffold: Most molecules of one Bemis-Murcko scaffold; those without rings have none, and are not limited.
        max_similarity: Largest similarity of any two: of molecules that of their counts of Morgan environments (MinMax,
            the Tanimoto similarity of counts, radius 2), of other strings 1 - d / l with the edit distance d and the
            length l of the longer one.

    Raises:
        InputError: If ``per_scaffold`` is less than 1, ``max_similarity`` is outside [0, 1), or both are `None`.

    Example:
        >>> batch = BatchLimits(per_scaffold=1).open("molecule")
        >>> batch.add("Cc1ccccc1")
        >>> batch.allows(["CCc1ccccc1", "CCc1ccncc1", "CCO"]).tolist()
        [False, True, True]
    """

    def __init__(self, per_scaffold: int | None = None, max_similarity: float | None = None) -> None:
        if per_scaffold is None and max_similarity is None:
            raise InputError("the limits of a batch are empty: give per_scaffold, max_similarity or both")
        if per_scaffold is not None and (
            isinstance(per_scaffold, bool) or not isinstance(per_scaffold, int) or per_scaffold < 1
        ):
            raise InputError(f"per_scaffold is {per_scaffold!r}; expected an integer of at least 1")
        if max_similarity is not None:
            try:
                number = float(max_similarity)
            except (TypeError, ValueError):
                number = math.nan
            if not 0 <= number < 1:
                raise InputError(f"max_similarity is {max_similarity!r}; expected a number from 0 to below 1")
            max_similarity = number
        self.per_scaffold = per_scaffold
        self.max_similarity = max_similarity

    def check_kind(self, kind: str) -> None:
        """Refuse strings that have no scaffolds.

        Raises:
            InputError: If scaffolds are limited, and the strings are not molecules.
        """
        if self.per_scaffold is not None and kind != "molecule":
            raise InputError(f"per_scaffold limits scaffolds of molecules, and these strings are of kind {kind!r}")

    def open(self, kind: str, members: Iterable[str] = ()) -> OpenBatch:
        """A batch to be filled.

        Args:
            kind: What the strings are.
            members: Keys that count as members from the start: those whose results are awaited.
        """
        self.check_kind(kind)
        batch = OpenBatch(self, None if self.max_similarity is None else similarity_of(kind))
        for key in members:
            batch.add(key)
        return batch

    def describe(self) -> str:
        """In words.

        Example:
            >>> BatchLimits(3, 0.7).describe()
            'at most 3 of a scaffold, similarity at most 0.7'
        """
        said = []
        if self.per_scaffold is not None:
            said.append(f"at most {self.per_scaffold} of a scaffold")
        if self.max_similarity is not None:
            said.append(f"similarity at most {self.max_similarity:g}")
        return ", ".join(said)


class OpenBatch:
    """A batch that is being filled, and what may still join it.

    Args:
        limits: The limits.
        similarity: Compares strings where similarity is limited.
    """

    def __init__(self, limits: BatchLimits, similarity: Similarity | None) -> None:
        self.limits = limits
        self._similarity = similarity
        self._scaffolds: Counter[str] = Counter()
        self._members: list[str] = []

    def add(self, key: str) -> None:
        """Note a new member."""
        self._members.append(key)
        if self.limits.per_scaffold is not None:
            self._scaffolds[scaffold_of(key)] += 1

    def allows(self, keys: Sequence[str]) -> BoolArray:
        """Which of n strings may join the members, each by itself."""
        allowed = np.ones(len(keys), dtype=np.bool_)
        if self.limits.per_scaffold is not None:
            full = {scaffold for scaffold, n in self._scaffolds.items() if scaffold and n >= self.limits.per_scaffold}
            if full:
                allowed &= np.array([scaffold_of(key) not in full for key in keys], dtype=np.bool_)
        if self._similarity is not None and self.limits.max_similarity is not None and self._members:
            left = np.flatnonzero(allowed)
            if len(left):
                found = self._similarity([keys[int(index)] for index in left], self._members).max(axis=1)
                # A similarity that equals the limit but for rounding keeps to it.
                allowed[left] = found <= self.limits.max_similarity + 1e-9
        return allowed


@lru_cache(maxsize=100_000)
def scaffold_of(key: str) -> str:
    """SMILES of the Bemis-Murcko scaffold of a molecule; empty for one without rings, or that cannot be read.

    Reference: Bemis, G. W., Murcko, M. A. (1996). The properties of known drugs. J. Med. Chem. 39, 2887-2893.
    """
    from rdkit import Chem
    from rdkit.Chem.Scaffolds import MurckoScaffold

    molecule: object | None = Chem.MolFromSmiles(key)
    if molecule is None:
        return ""
    return str(MurckoScaffold.MurckoScaffoldSmiles(mol=molecule))  # type: ignore[no-untyped-call]


class LimitedScoring:
    """A scoring under which what a batch no longer allows is never the best; implements `seqopt.scorers.Scoring`.

    Args:
        scoring: What is maximised.
        batch: The batch that is filled.
    """

    def __init__(self, scoring: Scoring, batch: OpenBatch) -> None:
        self._scoring = scoring
        self._batch = batch

    def incumbents(self, count: int) -> list[str]:
        """See `seqopt.scorers.Scoring`."""
        return self._scoring.incumbents(count)

    def nominated(self, keys: Sequence[str]) -> list[str]:
        """Those of the other scores."""
        return nominated(self._scoring, keys)

    def unsupported(self, keys: Sequence[str]) -> dict[int, str]:
        """See `seqopt.scorers.Scoring`."""
        return self._scoring.unsupported(keys)

    def scorer(self, sample: Sequence[str]) -> Scorer:
        """Minus infinity for strings that may not join the batch."""
        return LimitedScorer(self._scoring.scorer(sample), self._batch)

    def pool_scorer(self, pool: PoolSpace, indices: IndexArray | None = None) -> PoolScorer:
        """The best of the candidates that may join the batch."""
        keys = keys_at(pool, indices)
        return LimitedPoolScorer(self._scoring.pool_scorer(pool, indices), keys, self._batch)

    def sample_scorer(self, keys: Sequence[str]) -> PoolScorer:
        """The best of the strings that may join the batch."""
        return LimitedPoolScorer(self._scoring.sample_scorer(keys), keys, self._batch)


class LimitedScorer:
    """Scores of any strings; implements `seqopt.scorers.Scorer`."""

    def __init__(self, scorer: Scorer, batch: OpenBatch) -> None:
        self._scorer = scorer
        self._batch = batch

    def scores(self, keys: Sequence[str]) -> FloatArray:
        """Minus infinity for strings that may not join the batch."""
        values = np.array(self._scorer.scores(keys), dtype=np.float64)
        values[~self._batch.allows(keys)] = -np.inf
        return values

    def choose(self, key: str) -> Choice:
        """Put a string into the batch."""
        choice = self._scorer.choose(key)
        self._batch.add(key)
        return choice


class LimitedPoolScorer:
    """Scores of candidates, of which only the best are held against the limits; implements `seqopt.scorers.PoolScorer`.

    A limit that refuses a candidate refuses it until the batch is full, since members never leave.
    """

    def __init__(self, scorer: PoolScorer, keys: Sequence[str], batch: OpenBatch) -> None:
        self._scorer = scorer
        self._keys = keys
        self._batch = batch
        self._refused: set[int] = set()

    def best(self, allowed: BoolArray, count: int = 1) -> tuple[IndexArray, FloatArray]:
        """See `seqopt.scorers.PoolScorer`."""
        looked_at = count
        while True:
            indices, values = self._scorer.best(without(allowed, self._refused), looked_at)
            good = self._batch.allows([self._keys[int(index)] for index in indices])
            self._refused.update(indices[~good].tolist())
            if good.sum() >= count or len(indices) < looked_at:
                return indices[good][:count], values[good][:count]
            looked_at = min(looked_at * LOOKED_AT, len(self._keys))

    def choose(self, index: int) -> Choice:
        """Put a candidate into the batch."""
        choice = self._scorer.choose(index)
        self._batch.add(self._keys[index])
        return choice


def limited(scoring: Scoring, batch: OpenBatch | None) -> Scoring:
    """A scoring within the limits of a batch, if there are any."""
    return scoring if batch is None else LimitedScoring(scoring, batch)
