"""What a search sees of everything that scores: models, acquisition functions, classifiers, costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from seqopt.data import Context
from seqopt.spaces import PoolSpace

FloatArray = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Choice:
    """A string that was chosen for a batch, and what is predicted of it.

    Attributes:
        key: Its identity.
        score: Its score when it was chosen, given the elements of the batch before it.
        context: How it is to be measured; empty where there is only one way.
        mean: Predicted value of the objective, in the units of the values that the model was fitted to; `None` where
            nothing is predicted.
        std: Noiseless standard deviation of the prediction, in the same units.
        measurement_std: Standard deviation of a measurement, noise included, in the same units.
    """

    key: str
    score: float
    context: Context = ()
    mean: float | None = None
    std: float | None = None
    measurement_std: float | None = None


@runtime_checkable
class Scorer(Protocol):
    """Scores of any strings, larger is better, given what has been chosen so far."""

    def scores(self, keys: Sequence[str]) -> FloatArray:
        """One score for each string, N; minus infinity for one that cannot be compared."""
        ...

    def choose(self, key: str) -> Choice:
        """Put a string into the batch: later scores are given that its result is awaited."""
        ...


@runtime_checkable
class PoolScorer(Protocol):
    """Scores of a fixed list of candidates, numbered 0..N-1, given what has been chosen so far.

    It hides how many of them are looked at, and where their numbers are kept.
    """

    def best(self, allowed: BoolArray, count: int = 1) -> tuple[IndexArray, FloatArray]:
        """The candidates of largest score among those that are allowed.

        Args:
            allowed: Which may be returned, N.
            count: How many; fewer come back where fewer have a score above minus infinity.

        Returns:
            Their numbers and their scores, the best first.
        """
        ...

    def choose(self, index: int) -> Choice:
        """Put a candidate into the batch: later scores are given that its result is awaited."""
        ...


@runtime_checkable
class RepeatingScorer(Protocol):
    """A `Scorer` or `PoolScorer` under which one string may join a batch several times, to be measured in several ways.

    It gives minus infinity to a string that has nothing left to be chosen for.
    """

    @property
    def repeats(self) -> bool:
        """Whether it may."""
        ...


def repeats(scorer: object) -> bool:
    """Whether a string that was chosen may be chosen again for the same batch: see `RepeatingScorer`."""
    return isinstance(scorer, RepeatingScorer) and scorer.repeats


@runtime_checkable
class Scoring(Protocol):
    """All that one step of a search may be scored by; made anew for each step."""

    def incumbents(self, count: int) -> list[str]:
        """Keys of the distinct evaluated strings that are taken for the best, best first."""
        ...

    def unsupported(self, keys: Sequence[str]) -> dict[int, str]:
        """Why strings cannot be scored, by their indices; empty where all can."""
        ...

    def scorer(self, sample: Sequence[str]) -> Scorer:
        """A scorer of any strings, prepared on a sample of those that it will see; all of ``sample`` are supported."""
        ...

    def pool_scorer(self, pool: PoolSpace, indices: IndexArray | None = None) -> PoolScorer:
        """A scorer of the candidates of a pool, or of those at ``indices``."""
        ...

    def sample_scorer(self, keys: Sequence[str]) -> PoolScorer:
        """A scorer of a list of strings that were drawn for this step; all of them are supported."""
        ...
