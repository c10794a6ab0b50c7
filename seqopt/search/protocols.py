"""What an inner search offers."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any, Never, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np

from seqopt.acquisition import Acquisition
from seqopt.data import Context, Item, Query
from seqopt.scorers import Choice, Scoring
from seqopt.spaces import Space

AnySpace = TypeVar("AnySpace", bound=Space)
S_contra = TypeVar("S_contra", bound=Space, contravariant=True)


@dataclass(frozen=True)
class Proposal:
    """One string proposed for evaluation.

    Attributes:
        string: As the space's owner wrote it.
        key: Its identity.
        context: How it is to be measured; empty where there is only one way.
        acquisition: Score at the time it was chosen, given the batch members before it.
        predicted_mean: Predicted mean, in the units the surrogate was fitted in.
        predicted_std: Noiseless standard deviation of the prediction, in the same units.
        measurement_std: Standard deviation of a measurement, noise included, in the same units; `None` where it is not
            known.
        why: Where neither a model nor chance chose it: the name of the design, or ``"included"`` where its user asked
            for it.
    """

    string: str
    key: str
    context: Context = ()
    acquisition: float | None = None
    predicted_mean: float | None = None
    predicted_std: float | None = None
    measurement_std: float | None = None
    why: str = ""

    @classmethod
    def of(cls, string: str, choice: Choice) -> Proposal:
        """A string with what was said when it was chosen."""
        return cls(string, choice.key, choice.context, choice.score, choice.mean, choice.std, choice.measurement_std)

    @property
    def query(self) -> Query:
        """What is to be measured."""
        return Query(self.key, self.context)


@runtime_checkable
class Search(Protocol[S_contra]):
    """Builds a batch that maximises a score over a space. It knows nothing of what the score comes from."""

    def propose(
        self, n: int, *, space: S_contra, scoring: Scoring, excluded: Set[str], rng: np.random.Generator
    ) -> list[Proposal]:
        """Up to ``n`` proposals.

        Args:
            n: Batch size.
            space: Where to search.
            scoring: What to maximise in this step.
            excluded: Keys that must not be proposed: evaluated, failed and pending ones.
            rng: The only source of randomness.
        """
        ...


SomeSearch: TypeAlias = Search[Never]
"""A search of spaces of a kind that is not known here. It can be kept and handed on, but is given no space.

Where a search and its space meet, as in `seqopt.maximize` and `seqopt.Optimizer`, one type variable holds both, and
mypy says whether they fit. A strategy is made before its space is known, and what is made from a description has no
types at all: their searches are held against the space when the program runs, by `CheckedSearch`.
"""


@runtime_checkable
class CheckedSearch(Protocol):
    """A search that does not go with every space."""

    def check_space(self, space: Space) -> None:
        """Complain before anything is evaluated.

        Raises:
            InputError: If it cannot search that space; the message names both.
        """
        ...


@runtime_checkable
class PartsCheckedSearch(Protocol):
    """A search that does not go with every surrogate and acquisition function."""

    def check_parts(self, space: Space, surrogate: object, acquisition: Acquisition) -> None:
        """Complain before anything is evaluated.

        Raises:
            InputError: If they do not fit; the message names the parts.
        """
        ...


@runtime_checkable
class StatefulSearch(Protocol):
    """A search that remembers something from one batch to the next, kept with a run so that it can be resumed."""

    def state_dict(self) -> dict[str, Any]:
        """What it remembers, as JSON values."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        ...


@runtime_checkable
class SurrogateScoring(Scoring, Protocol):
    """A score by an acquisition function of a surrogate that can be had, for searches that follow its gradients."""

    @property
    def surrogate(self) -> object:
        """The fitted surrogate."""
        ...

    @property
    def acquisition(self) -> Acquisition:
        """The acquisition function."""
        ...

    @property
    def pending(self) -> Sequence[Item]:
        """Queries whose results are awaited."""
        ...
