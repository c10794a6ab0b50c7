"""Several acquisition functions over one posterior, each of which nominates, and something that chooses among them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, cast

import numpy as np
import torch

from seqopt.acquisition import Acquisition, PreparedAcquisition
from seqopt.acquisition.sampling import largest_upper_confidence
from seqopt.data import Item
from seqopt.errors import ModelError
from seqopt.models import BlockwisePosterior, PoolSurrogate, StringSurrogate, Untransform, unsupported
from seqopt.models.classifiers import Predictor
from seqopt.models.protocols import nominated
from seqopt.posteriors import Posterior
from seqopt.scorers.checks import checked_scores
from seqopt.scorers.feasibility import Combine, FeasibilityPoolScorer
from seqopt.scorers.gaussian import BLOCK, SubsetScorer, predicted, top
from seqopt.scorers.limits import LimitedPoolScorer, OpenBatch
from seqopt.scorers.protocols import BoolArray, Choice, FloatArray, IndexArray, PoolScorer, Scorer
from seqopt.spaces import PoolSpace, keys_at

LOOKED_AT = 1_000
"""Candidates of largest upper confidence bound among which those who choose expect the maximum."""


class Chooser(Protocol):
    """Chooses among nominees, for one batch."""

    def choose(self, nominees: Sequence[str | None], chosen: Sequence[str]) -> int:
        """The member whose nominee is taken.

        Args:
            nominees: The key that each member nominates; `None` where it has none. At least one has.
            chosen: Keys of the batch so far.
        """
        ...


class SharedPosterior:
    """A posterior over N candidates that is conditioned once for all members of a portfolio.

    Args:
        posterior: Given the data and what is pending.
    """

    def __init__(self, posterior: Posterior) -> None:
        self._posterior = posterior
        self._chosen: int | None = None
        self.version = 0

    def choose(self, index: int) -> None:
        """Condition on the outcome, of unknown value, of a candidate, from now on."""
        self._posterior, self._chosen = self.current(), index
        self.version += 1

    def current(self) -> Posterior:
        """The posterior given all that was chosen."""
        if self._chosen is not None:
            self._posterior, self._chosen = self._posterior.given(self._chosen), None
        return self._posterior


class MemberScorer:
    """Scores of one member of a portfolio; implements `seqopt.scorers.PoolScorer`.

    What is chosen is noted by `SharedPosterior.choose`, for all members at once; `choose` here only says what is
    predicted.

    Args:
        shared: The posterior over N candidates.
        prepared: The acquisition function.
        keys: Of the candidates.
        untransform: From standardised moments to the values' units.
        name: What the acquisition function is called.
    """

    def __init__(
        self,
        shared: SharedPosterior,
        prepared: PreparedAcquisition,
        keys: Sequence[str],
        untransform: Untransform,
        name: str,
    ) -> None:
        self._shared = shared
        self._prepared = prepared
        self._keys = keys
        self._untransform = untransform
        self._name = name
        self._scores: FloatArray | None = None
        self._version = -1

    def best(self, allowed: BoolArray, count: int = 1) -> tuple[IndexArray, FloatArray]:
        """See `seqopt.scorers.PoolScorer`."""
        return top(np.where(allowed, self._current(), -np.inf), count)

    def choose(self, index: int) -> Choice:
        """What is predicted of a candidate, with its score."""
        score = float(self._current()[index])
        moments = self._shared.current().moments.take(torch.tensor([index]))
        return predicted(self._keys[index], score, moments, self._untransform)

    def _current(self) -> FloatArray:
        if self._scores is None or self._version != self._shared.version:
            found = self._prepared(self._shared.current())
            self._scores = checked_scores(found, len(self._keys), self._name)
            self._version = self._shared.version
        return self._scores


class PortfolioScoring:
    """What a portfolio takes in one step, from a list of candidates; implements `seqopt.scorers.Scoring`.

    All acquisition functions look at one posterior, which is conditioned once for each element of the batch.

    Args:
        surrogate: The fitted surrogate.
        members: The acquisition functions, each with its source of randomness.
        chooser: From the keys among which the maximum is looked for to what chooses among nominees.
        others: Further members, which nominate by themselves: from the keys chosen so far to a key.
        combines: How the score of each acquisition function counts with the probability of success.
        predictor: A classifier of success, where strings have failed.
        pending: Queries whose results are awaited.
        batch_size: Elements of the batch, pending ones included.
        batch: What may still join the batch, where that is limited.
        noted: Told the number of the member of each choice.
    """

    def __init__(
        self,
        surrogate: StringSurrogate | PoolSurrogate,
        members: Sequence[tuple[Acquisition, np.random.Generator]],
        chooser: Callable[[Sequence[str]], Chooser],
        *,
        others: Sequence[Callable[[Sequence[str]], str | None]] = (),
        combines: Sequence[Combine] = (),
        predictor: Predictor | None = None,
        pending: Sequence[Item] = (),
        batch_size: int = 1,
        batch: OpenBatch | None = None,
        noted: Callable[[int], None],
    ) -> None:
        self.surrogate = surrogate
        self._members = members
        self._chooser = chooser
        self._others = others
        self._combines = combines
        self._predictor = predictor
        self._pending = list(pending)
        self._batch_size = batch_size
        self._batch = batch
        self._noted = noted

    def incumbents(self, count: int) -> list[str]:
        """The evaluated strings of largest posterior mean."""
        return cast(StringSurrogate, self.surrogate).conditioned(self._pending).best_observed_keys(count)

    def nominated(self, keys: Sequence[str]) -> list[str]:
        """Those of the surrogate, if it nominates any."""
        return nominated(self.surrogate, keys)

    def unsupported(self, keys: Sequence[str]) -> dict[int, str]:
        """What the surrogate cannot compare."""
        return unsupported(self.surrogate, keys)

    def scorer(self, sample: Sequence[str]) -> Scorer:
        """There is none: members disagree on what is best.

        Raises:
            ModelError: Always.
        """
        raise ModelError("a portfolio has no score of its own: its members search one after another")

    def pool_scorer(self, pool: PoolSpace, indices: IndexArray | None = None) -> PoolScorer:
        """What is taken of the candidates of a pool."""
        posterior = cast(PoolSurrogate, self.surrogate).pool_posterior(pool, indices, self._pending)
        return self._over(posterior, self._prepared(posterior), keys_at(pool, indices))

    def sample_scorer(self, keys: Sequence[str]) -> PoolScorer:
        """What is taken of strings that were drawn for this step: of those that each member scores best at first."""
        process = cast(StringSurrogate, self.surrogate).conditioned(self._pending)
        margins = BlockwisePosterior(process, keys, BLOCK)
        bound = largest_upper_confidence(margins, BLOCK)
        prepared = self._prepared(process.at([keys[int(index)] for index in bound]))
        each = min(max(1, BLOCK // max(1, len(prepared))), len(keys))
        kept = [bound[:each]] if not prepared else []
        for one, (member, _) in zip(prepared, self._members, strict=True):
            scores = torch.from_numpy(checked_scores(one(margins), len(keys), member.name))
            kept.append(torch.topk(scores, each).indices)
        merged = torch.unique(torch.cat(kept))
        chosen = [keys[int(index)] for index in merged]
        return SubsetScorer(self._over(process.at(chosen), prepared, chosen), merged.numpy())

    def _prepared(self, posterior: Posterior) -> list[PreparedAcquisition]:
        return [member.prepare(posterior, rng, self._batch_size) for member, rng in self._members]

    def _over(self, posterior: Posterior, prepared: list[PreparedAcquisition], keys: Sequence[str]) -> PoolScorer:
        shared = SharedPosterior(posterior)
        scorers: list[PoolScorer] = []
        for place, (member, _) in enumerate(self._members):
            scorer: PoolScorer = MemberScorer(shared, prepared[place], keys, self.surrogate.untransform, member.name)
            if self._predictor is not None:
                scorer = FeasibilityPoolScorer(scorer, self._predictor, self._combines[place], keys)
            scorers.append(scorer)
        likely = largest_upper_confidence(posterior, LOOKED_AT)
        chooser = self._chooser([keys[int(index)] for index in likely])
        untransform = self.surrogate.untransform
        return PortfolioPoolScorer(shared, scorers, self._others, chooser, keys, untransform, self._batch, self._noted)


class PortfolioPoolScorer:
    """The candidate that a portfolio takes next; implements `seqopt.scorers.PoolScorer`.

    Args:
        shared: The posterior of all members.
        scorers: Those of the acquisition functions.
        others: Members that nominate by themselves.
        chooser: Chooses among nominees.
        keys: Of the candidates.
        untransform: From standardised moments to the values' units.
        batch: What may still join the batch, where that is limited.
        noted: Told the number of the member of each choice.
    """

    def __init__(
        self,
        shared: SharedPosterior,
        scorers: Sequence[PoolScorer],
        others: Sequence[Callable[[Sequence[str]], str | None]],
        chooser: Chooser,
        keys: Sequence[str],
        untransform: Untransform,
        batch: OpenBatch | None,
        noted: Callable[[int], None],
    ) -> None:
        self._shared = shared
        self._scorers = scorers
        self._nominating = scorers if batch is None else [LimitedPoolScorer(one, keys, batch) for one in scorers]
        self._others = others
        self._chooser = chooser
        self._keys = keys
        self._untransform = untransform
        self._batch = batch
        self._noted = noted
        self._chosen: list[str] = []
        self._taken: tuple[int, int] | None = None
        self._numbers: dict[str, int] | None = None

    def best(self, allowed: BoolArray, count: int = 1) -> tuple[IndexArray, FloatArray]:
        """The candidate that is taken, one whatever ``count`` is; none where no member nominates any.

        Its score is that of the member that nominated it.
        """
        nominees: list[int | None] = []
        scores: list[float] = []
        for scorer in self._nominating:
            indices, values = scorer.best(allowed, 1)
            nominees.append(int(indices[0]) if len(indices) else None)
            scores.append(float(values[0]) if len(indices) else -np.inf)
        for other in self._others:
            nominees.append(self._number(other(self._chosen), allowed))
            scores.append(0.0)
        if all(nominee is None for nominee in nominees):
            return np.array([], dtype=np.int64), np.array([])
        named = [None if nominee is None else self._keys[nominee] for nominee in nominees]
        member = 0 if len(nominees) == 1 else self._chooser.choose(named, self._chosen)
        index = cast(int, nominees[member])
        self._taken = member, index
        return np.array([index]), np.array([scores[member]])

    def choose(self, index: int) -> Choice:
        """Put a candidate into the batch."""
        member = self._taken[0] if self._taken is not None and self._taken[1] == index else 0
        if member < len(self._scorers):
            choice = self._scorers[member].choose(index)
        else:  # a member without a score
            moments = self._shared.current().moments.take(torch.tensor([index]))
            choice = predicted(self._keys[index], 0.0, moments, self._untransform)
        self._shared.choose(index)
        self._chosen.append(self._keys[index])
        if self._batch is not None:
            self._batch.add(self._keys[index])
        self._noted(member)
        self._taken = None
        return choice

    def _number(self, key: str | None, allowed: BoolArray) -> int | None:
        """Of a candidate that a member nominates by its key, if it may be taken."""
        if self._numbers is None:
            self._numbers = {one: number for number, one in enumerate(self._keys)}
        number = None if key is None else self._numbers.get(key)
        return number if number is not None and allowed[number] else None
