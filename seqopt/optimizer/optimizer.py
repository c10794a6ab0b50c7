"""The ask/tell optimiser."""

from __future__ import annotations

import itertools
import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from seqopt.acquisition import Acquisition
from seqopt.data import (
    DEFAULT_TRANSFORM,
    Censoring,
    Context,
    Contexts,
    ContextValue,
    Data,
    Direction,
    Item,
    Observation,
    Observations,
    Outcome,
    Predictions,
    Query,
    Room,
    Transform,
    as_context,
    central,
    interval,
    resolve_transform,
)
from seqopt.data.hits import TOLD, hits_missed, tried_rows
from seqopt.data.missed import judged_rows, latest
from seqopt.data.observations import COST
from seqopt.data.transforms import LearnedTransform, check_value, learned, quantile_interval
from seqopt.data.yes_no import YesNo, is_whole
from seqopt.datasets import Pool
from seqopt.errors import ExhaustedError, InputError, ModelError
from seqopt.models import (
    BinomialGP,
    BinomialSurrogate,
    JointSurrogate,
    PlannedSurrogate,
    Surrogate,
    measurement_std,
    unsupported,
)
from seqopt.optimizer.batch import Batch
from seqopt.scorers.limits import BatchLimits, OpenBatch
from seqopt.search import Proposal, Search
from seqopt.search.protocols import AnySpace, PartsCheckedSearch, SomeSearch
from seqopt.spaces import EvolvableSpace, PoolSpace, Space, as_space, left_out
from seqopt.spaces.populations import ENUMERATION_LIMIT
from seqopt.strategies import Design, InitialDesign, ModelBased, SearchState, Strategy
from seqopt.strategies.protocols import CheckedStrategy, takes_censored, takes_yes_no, unlearnable
from seqopt.utils.arguments import checked_integer
from seqopt.utils.losses import LOST, is_lost
from seqopt.utils.progress import doing
from seqopt.utils.shown import Tabulated

if TYPE_CHECKING:
    import pandas as pd

    from seqopt.strategies.initial import Beginning

logger = logging.getLogger(__name__)

FloatArray = npt.NDArray[np.float64]

ROUNDING = 1e-9
"""Share of what remains that costs may exceed it by."""

AFTERWARDS = 1
"""Keeps the random numbers of `Optimizer.recommend` and `Optimizer.predict`, which fit the same model, apart from those
of `Optimizer.ask`."""

BLOCK = 4096
"""Strings that are predicted at a time."""

LOST_BEFORE = "lost"
"""Why a string is suggested whose last result was lost."""

LARGEST_VALUE = 1e150
"""Larger values are not measurements, and their squares would overflow."""


class Optimizer(Tabulated):
    """Proposes strings to evaluate, learns from their values, and proposes again.

    Ask for any number of strings, tell results in any order and any number, ask again before all have arrived: the
    strings still out are pending, and a new batch is conditioned on them. Strings that were never asked for may be
    told too. A value of NaN is a failed evaluation: that string is not asked for again and no model sees it.

    What is asked for is decided by a strategy; the optimiser keeps the table of what is known, what is pending, and the
    random numbers. The usual strategy is a surrogate, an acquisition function and an inner search
    (`seqopt.strategies.ModelBased`), after some random strings.

    Args:
        space: Where to search: a `seqopt.spaces.Space`, what `seqopt.datasets.read_pool` returned, or candidates as
            `seqopt.spaces.CandidateSet` takes them: a list of strings, a Series, a DataFrame, RDKit molecules.
        surrogate: A `seqopt.models.Surrogate`, the name of one of `seqopt.models.SURROGATES`, or ``"auto"``: see
            `seqopt.models.default_surrogate`.
        acquisition: A name (``gibbon``, ``mes``, ``mumbo``, ``logei``, ``dpp-ei``, ``ucb``, ``thompson``,
            ``mean``, ``random``) or an object.
        search: The inner search. ``"auto"`` scores the whole pool of a candidate set (`PoolSearch`), evolves strings
            where they can be mutated and crossed (`GeneticSearch`), and else takes the best of random ones
            (`RandomSearch`).
        strategy: Decides instead of ``surrogate``, ``acquisition`` and ``search``: a `seqopt.strategies.Strategy`.
        batch_size: Strings per `ask`.
        initial: Strings asked for before the strategy decides.
        design: How these are chosen: ``"random"``; ``"maxmin"``, each as far as can be from those before it by the
            surrogate's own kernel; ``"medoids"``, representatives of a random sample by the same distance; or
            ``"auto"``: see `seqopt.strategies.resolve_design`.
        include: Strings of the space that are asked for first, such as reference compounds, whatever the design.
        limits: How much alike the strings of one batch may be; a batch for which not enough are found is shorter, and
            a warning says so.
        direction: ``"maximize"`` or ``"minimize"``.
        transform: What the model sees of the values, the name of one of `seqopt.data.TRANSFORMS` or an object:
            ``"auto"``, the most likely one, which may be none, learned anew in each step (see
            `seqopt.data.LearnedTransform`); ``"log10"`` for values that span decades; or `None`. The user's units stay
            outside. ``"yes/no"`` says that results are hit (1) or no hit (0), or shares of wells: the surrogate is then
            a `seqopt.models.BinomialGP` of the one that is given, and predictions are probabilities.
        outcomes: What is measured of each string, the objective first, instead of ``direction`` and ``transform``.
        contexts: The ways in which strings can be measured, where there are several. Where their target cannot be
            measured itself, every string that is told has to say how it was measured (`seqopt.data.Query`).
        apart: Keys of strings that are measured anyhow, such as controls: they are not asked for.
        unavailable: Queries that cannot be made, such as those of a cheap score that some strings lack: they are not
            asked for.
        initial_contexts: How the initial design is measured: as the ``"target"``, each of its strings in ``"all"``
            contexts, so that a model sees from the start how much they have in common, or in those that cost less than
            the target (``"cheap"``): a small screen, after which the model says where the first targets are worth most.
        seed: Fixes every random draw: the same seed and the same results told give the same suggestions.
        allow_repeats: For noisy objectives: whether measured strings may be suggested again. Pending and failed ones
            never are.

    Raises:
        InputError: For an argument out of its range, or parts that do not fit each other.

    Example:
        >>> pool = ["AAAA", "AAAT", "AATT", "ATTT", "TTTT", "TTTA", "TTAA", "TATA"]
        >>> optimizer = Optimizer(pool, initial=3, batch_size=2, seed=1)
        >>> for _ in range(2):
        ...     strings = optimizer.ask()
        ...     optimizer.tell(strings, [s.count("T") for s in strings])
        >>> len(optimizer.observations), optimizer.best.value
        (5, 4.0)
    """

    def __init__(
        self,
        space: AnySpace | Pool | Iterable[Any],
        *,
        surrogate: Surrogate | PlannedSurrogate | str | None = None,
        acquisition: Acquisition | str | None = None,
        search: Search[AnySpace] | str | None = None,
        strategy: Strategy | None = None,
        batch_size: int = 1,
        initial: int = 20,
        design: Design | str = "auto",
        include: Sequence[str] = (),
        limits: BatchLimits | None = None,
        direction: Direction = "maximize",
        transform: Transform | str | None = DEFAULT_TRANSFORM,
        outcomes: Sequence[Outcome] | None = None,
        contexts: Contexts | None = None,
        unavailable: Iterable[Query] = (),
        apart: Iterable[str] = (),
        initial_contexts: Beginning = "target",
        seed: int = 0,
        allow_repeats: bool = False,
    ) -> None:
        self.batch_size = checked_integer("batch_size", batch_size, 1)
        # What knows its proposals without a model may be asked for one only.
        fewest = 1 if getattr(strategy, "begins_itself", False) is True else 2
        self.initial = checked_integer(
            "initial", initial, fewest, f"expected an integer, at least {fewest}: a model starts from so many values"
        )
        self.outcomes = _checked_outcomes(outcomes, direction, transform)
        self.seed = checked_integer("seed", seed, 0, "expected 0 or a positive integer")
        self.space: Space = as_space(space)
        self.contexts = contexts
        self.unavailable = frozenset(unavailable)
        self.apart = frozenset(apart)
        binomial = isinstance(surrogate, BinomialSurrogate) and not isinstance(surrogate, type)
        if strategy is None and self.outcome.yes_no and not binomial:
            if isinstance(surrogate, PlannedSurrogate):
                raise InputError(
                    "results that are yes or no have a model of their own, which takes no features and no prior mean "
                    "yet: leave the plan out, or give a name"
                )
            surrogate = BinomialGP(surrogate or "auto")
        if strategy is None:
            strategy = ModelBased(surrogate or "auto", acquisition or "gibbon", search or "auto")
        elif not (surrogate is None and acquisition is None and search is None):
            raise InputError(
                f"a {type(strategy).__name__} decides by itself: leave surrogate, acquisition and search out, or give "
                "them to the strategy"
            )
        elif not isinstance(strategy, Strategy) or isinstance(strategy, type):
            raise InputError(
                f"{strategy!r} is not a strategy: give an object with the methods of seqopt.strategies.Strategy"
            )
        if isinstance(include, str):
            raise InputError(f"include is the single string {include!r}: write [{include!r}]")
        self._check_yes_no(strategy)
        self.strategy = InitialDesign(self.initial, strategy, design, include, initial_contexts)
        if isinstance(self.strategy, CheckedStrategy):
            self.strategy.start(self.space, contexts)
        self.limits = limits
        if limits is not None:
            if not isinstance(limits, BatchLimits):
                raise InputError(f"{limits!r} is not a limit of batches: give seqopt.BatchLimits(per_scaffold=3)")
            limits.check_kind(self.space.kind)
            if isinstance(strategy, ModelBased) and isinstance(strategy.search, PartsCheckedSearch):
                raise InputError(
                    f"{type(strategy.search).__name__} does not keep to limits of a batch: leave limits out, or choose "
                    "another search"
                )
        self.allow_repeats = allow_repeats
        self.observations = Observations()
        self._asks = 0
        self._batches = 0
        self._measurements: dict[Query, tuple[float | None, float | None]] = {}
        self._fitted: Surrogate | None = None

    def _check_yes_no(self, strategy: Strategy) -> None:
        """Refuse a strategy that takes the results for what they are not."""
        if self.outcome.yes_no and not takes_yes_no(strategy):
            learner = strategy.config_arguments()["surrogate"] if type(strategy) is ModelBased else strategy
            who = repr(learner) if isinstance(learner, str) else type(learner).__name__
            raise InputError(
                f"{who} does not learn from results that are yes or no: leave the strategy out, or give "
                "seqopt.strategies.ModelBased(seqopt.models.BinomialGP(), 'gibbon')"
            )
        if isinstance(strategy, ModelBased) and not self.outcome.yes_no:
            found = strategy.config_arguments().get("surrogate")
            if isinstance(found, BinomialSurrogate):
                raise InputError(
                    f"{type(found).__name__} learns from results that are yes or no: say so with transform='yes/no', "
                    "or choose another surrogate"
                )

    @property
    def outcome(self) -> Outcome:
        """The objective."""
        return self.outcomes[0]

    @property
    def direction(self) -> Direction:
        """Whether large or small values of the objective are good."""
        return self.outcome.direction

    @property
    def transform(self) -> Transform:
        """What the model sees instead of the values of the objective."""
        return self.outcome.transform

    @property
    def model_based(self) -> ModelBased:
        """The strategy, where it is a surrogate with an acquisition function and a search.

        Raises:
            ModelError: If it is something else.
        """
        strategy = self.strategy.then
        if not isinstance(strategy, ModelBased):
            raise ModelError(
                f"the strategy is {type(strategy).__name__}, which has no surrogate: it says what to measure next, and "
                "predicts no values"
            )
        return strategy

    @property
    def surrogate(self) -> Surrogate:
        """The surrogate of a model-based strategy."""
        return self.model_based.surrogate

    @property
    def acquisition(self) -> Acquisition:
        """The acquisition function of a model-based strategy."""
        return self.model_based.acquisition

    @property
    def search(self) -> SomeSearch:
        """The inner search of a model-based strategy."""
        return self.model_based.search

    def ask(
        self,
        n: int | None = None,
        *,
        remaining: float | None = None,
        only: Context | Mapping[str, ContextValue] | None = None,
        shared: bool = False,
        room: Room | None = None,
        by: Strategy | None = None,
    ) -> Batch:
        """The next strings to evaluate, as the space's owner wrote them; they are pending from now on.

        Args:
            n: How many. Default: what the initial design still lacks, then ``batch_size``. Fewer come back only when
                the space holds no more.
            remaining: Evaluations, or cost where there are contexts, that may still be asked for, these included;
                strategies that plan ahead use it. Where there are contexts, nothing dearer than that is asked for.
            only: The one context that is free, where there are several: ``{"fidelity": "docking"}``.
            shared: Whether all of the batch is to be measured in one context, which is chosen.
            room: How many measurements fit into contexts, where they are of a limited size, such as plates.
            by: What decides this once, in place of the strategy and its initial design; it has been started in this
                space (`seqopt.strategies.learner_of`). The strategy's state does not change.

        Returns:
            A list of strings, which a notebook shows with what is predicted of each. Its ``queries`` say how each is to
            be measured.

        Raises:
            InputError: If ``n`` < 1, or ``only`` is not a context of this search.
            ExhaustedError: If nothing is left to suggest, or what remains pays for nothing.
        """
        context = self._only(only)
        if n is None:
            missing = self.initial - self.size
            n = missing if missing > 0 else self.batch_size
        n = checked_integer("the number of strings", n, 1)
        if warning := self.missed():
            logger.warning("%s", warning)
        rng = np.random.default_rng([self.seed, self._asks])
        batch = self._batches + 1 if self.size >= self.initial else 0
        with doing("choosing what to evaluate next"):
            state = self.state(remaining, context, shared, room)
            again = [one for one in self._lost() if context in (None, one.context or self._target)][:n]
            if room is not None:
                again = _placed(again, room, state)
            left = n - len(again)
            if again:
                queries = tuple(proposal.query if proposal.context else proposal.key for proposal in again)
                state = replace(state, pending=(*state.pending, *queries))
                if room is not None:
                    state = replace(state, room=room.after(one.query for one in again))
                for proposal in again:
                    if state.batch is not None:
                        state.batch.add(proposal.key)
            proposals = again + ((by or self.strategy).propose(left, state, rng) if left else [])
        proposals = self._possible(proposals, context, shared, remaining, room)
        if not proposals:
            if self.limits is not None:
                raise ExhaustedError(
                    f"nothing is left to suggest within the limits of a batch ({self.limits.describe()})"
                )
            seen, waiting = len(self.observations.seen), len(self.observations.pending)
            known = f"{seen:,} strings are known or suggested already"
            known += f", {waiting:,} of which await a result" if waiting else ""
            if self._accepts_some:
                raise ExhaustedError(
                    f"no further string was found that accept() takes ({known}): relax it, give a space that holds "
                    "fewer others, or tell of more strings that it takes, which the search grows from"
                )
            raise ExhaustedError(f"nothing is left to suggest: {known}")
        self._check(proposals)
        if self.limits is not None and len(proposals) < n:
            logger.warning(
                "only %d of %d strings were found within the limits of a batch (%s)",
                len(proposals),
                n,
                self.limits.describe(),
            )
        elif len(proposals) < n and self._accepts_some:
            logger.warning("only %d of %d new strings were found that accept() takes", len(proposals), n)
        self._asks += 1
        # A fit begins where the last one ended: what is predicted from now on is what the same search, restored, says.
        self._fitted = None
        self._measurements = {}
        self._batches = batch
        for proposal in proposals:
            self._note(proposal, batch)
        return Batch(self.observations.rows[-len(proposals) :], self.space.kind, self._outcome_names)

    @property
    def size(self) -> int:
        """Strings asked for or told so far; one that was lost counts when it is asked for again."""
        return sum(row.status != "lost" for row in self.observations.rows)

    def _lost(self) -> list[Proposal]:
        """Strings whose results were lost, and of which nothing has been known or asked for since.

        Of a loss that answers no question it is not known when the string was measured: it counts where nothing else is
        known of it. What was lost on one plate may have been asked for on another one since.
        """
        latent = self.contexts is not None and self.contexts.latent
        lost: dict[Query | str, Proposal] = {}
        others = {row.query for row in self.observations.rows if row.status != "lost"}
        for row in self.observations.rows:
            if row.status != "lost":
                lost.pop(row.key if latent else row.query, None)
            elif "predicted" in row.details or row.query not in others:
                what = Proposal(row.string, row.key, row.context, why=LOST_BEFORE)
                lost[row.key if latent else row.query] = what
        awaited = {row.query for row in self.observations.pending}
        found = [one for one in lost.values() if one.query not in awaited]
        if isinstance(self.space, PoolSpace):
            # Candidates may have been removed since.
            found = [one for one in found if self.space.index_of(one.key) is not None]
        elif isinstance(self.space, EvolvableSpace):
            # What constraints leave out was measured on its own account.
            found = [one for one in found if self.space.contains(one.key)]
        return found

    def missed(self) -> str:
        """A warning if the results of the last batch are not what was predicted of them; else empty.

        `ask` logs it. See `seqopt.data.missed`.
        """
        if self.outcome.yes_no:
            return hits_missed(tried_rows(self.observations.rows))
        found = latest(judged_rows(self.observations.rows), self.outcome.sign)
        return found.warning(learned=isinstance(self.transform, LearnedTransform))

    @property
    def _accepts_some(self) -> bool:
        """Whether the space may hold strings that were not found: its accept() is known by trying only."""
        tried = getattr(self.space, "accept", None) is not None
        return tried and getattr(self.space, "size", math.inf) > ENUMERATION_LIMIT

    def _check(self, proposals: Sequence[Proposal]) -> None:
        """Refuse what a strategy must not propose.

        Raises:
            InputError: If it is no list of proposals, holds one twice, or a string that is not in the space or has
                another key; it names the strategy.
        """
        who = f"{type(self.strategy.then).__name__}.propose returned"
        found: set[Query] = set()
        batch, members = self._open_batch(), set[str]()
        for proposal in proposals:
            if not isinstance(proposal, Proposal):
                raise InputError(f"{who} {proposal!r}; expected a list of seqopt.search.Proposal")
            if proposal.query in found:
                raise InputError(f"{who} {proposal.string!r} twice in one batch")
            found.add(proposal.query)
            if self.contexts is not None:
                try:
                    self.contexts.check(proposal.context or self._target)
                except InputError as error:
                    raise InputError(f"{who} {proposal.string!r}, which cannot be measured so: {error}") from error
            if batch is not None:
                # What the user asked for is not held against limits, nor is what was asked for before.
                # A string that is measured in several ways is one string.
                if proposal.key in members:
                    continue
                members.add(proposal.key)
                if proposal.why not in ("included", LOST_BEFORE) and not batch.allows([proposal.key])[0]:
                    raise InputError(
                        f"{who} {proposal.string!r}, against the limits of a batch: {batch.limits.describe()}"
                    )
                batch.add(proposal.key)
            if self.space.key(proposal.string) != proposal.key:
                raise InputError(f"{who} {proposal.string!r} with the key {proposal.key!r}, which is not its key")
            if isinstance(self.space, PoolSpace) and self.space.index_of(proposal.key) is None:
                raise InputError(f"{who} {proposal.string!r}, which is not among the candidates")
            if isinstance(self.space, EvolvableSpace):
                try:
                    self.space.from_string(proposal.string)
                except InputError as error:
                    raise InputError(f"{who} {proposal.string!r}, which is not in the space: {error}") from error

    def _only(self, given: Context | Mapping[str, ContextValue] | None) -> Context | None:
        """The one context that is free, checked."""
        if given is None:
            return None
        if self.contexts is None:
            raise InputError("only says how strings are measured, and this search has one way to: leave it out")
        context = as_context(given)
        self.contexts.check(context)
        return context

    def _possible(
        self,
        proposals: Sequence[Proposal],
        only: Context | None,
        shared: bool,
        remaining: float | None,
        room: Room | None = None,
    ) -> list[Proposal]:
        """Proposals with their contexts, as far as they can be measured together and paid for.

        Raises:
            InputError: If a strategy proposes a context that is not free.
            ExhaustedError: If none can be paid for.
        """
        if self.contexts is None:
            return list(proposals)
        found = [one if one.context else replace(one, context=only or self._target) for one in proposals]
        for one in found:
            if only is not None and one.context != only:
                who = type(self.strategy.then).__name__
                raise InputError(f"{who}.propose returned {one.string!r} in a context that is not free: {one.query}")
        if shared:
            found = [one for one in found if one.context == found[0].context]
        if room is not None:
            fitting: list[Proposal] = []
            for one in found:
                if room.is_free(one.context, [other.query for other in fitting]):
                    fitting.append(one)
            found = fitting
        if remaining is None or not found:
            return found
        left, kept = remaining * (1 + ROUNDING), []
        for one in found:
            cost = self.contexts.cost(one.query)
            if cost <= left:
                kept.append(one)
                left -= cost
        if not kept:
            cheapest = min(self.contexts.cost(one.query) for one in found)
            raise ExhaustedError(
                f"what remains, {remaining:.10g}, pays for no measurement that may be made: one costs {cheapest:.10g}. "
                "Raise what remains"
            )
        return kept

    def state(
        self,
        remaining: float | None = None,
        only: Context | None = None,
        shared: bool = False,
        room: Room | None = None,
    ) -> SearchState:
        """Where the search stands, as strategies see it."""
        rows = kept = self.observations.rows
        if self.allow_repeats:
            # What failed once and was measured later has not failed.
            measured = {row.query for row in rows if row.status == "ok"}
            kept = [
                row for row in rows if row.status != "ok" and not (row.status == "failed" and row.query in measured)
            ]
        if self.contexts is None:
            excluded = {row.key for row in kept} if self.allow_repeats else self.observations.seen
        else:
            # A string that is known as its target, or cannot be measured, is of no further use.
            target = self.contexts.target
            excluded = {row.key for row in kept if row.context in (target, only) or row.status == "failed"}
        return SearchState(
            self.space,
            Data.of(rows, self.outcomes),
            tuple(_item(row) for row in self.observations.pending),
            excluded | self.apart if self.apart else excluded,
            {row.query for row in kept} | self.unavailable if self.contexts is not None else frozenset(),
            self._batches,
            self.contexts,
            remaining,
            sum(row.status == "withdrawn" for row in rows),
            self._open_batch(),
            only,
            shared,
            room,
        )

    def _open_batch(self) -> OpenBatch | None:
        """The batch that comes next, of which what is awaited counts as a member; `None` without limits."""
        if self.limits is None:
            return None
        return self.limits.open(self.space.kind, [row.key for row in self.observations.pending])

    def _note(self, proposal: Proposal, batch: int) -> None:
        mean, std = self._in_user_units(proposal.predicted_mean, proposal.predicted_std)
        spread, score = proposal.measurement_std, proposal.acquisition
        context = proposal.context or self._target
        measurement = self._in_user_units(proposal.predicted_mean, proposal.predicted_std if spread is None else spread)
        self._measurements[Query(proposal.key, context)] = measurement
        low, high = interval(*measurement, self.transform.name)
        if isinstance(self.transform, LearnedTransform | YesNo) and proposal.predicted_mean is not None:
            width = proposal.predicted_std if spread is None else spread
            low, high = quantile_interval(self.transform, self.outcome.sign * proposal.predicted_mean, width)
        details = {
            "batch": batch,
            "predicted": central(mean, std, self.transform.name),
            "predicted_low": low,
            "predicted_high": high,
            "predicted_mean": mean,
            "predicted_std": std,
            # Neither JSON nor a database holds the logarithm of an improvement that is nought.
            "acquisition": score if score is not None and math.isfinite(score) else None,
            **({"why": proposal.why} if proposal.why else {}),
        }
        self.observations.add(Observation(proposal.string, proposal.key, "pending", details=details, context=context))

    def predicted_measurement(self, item: Item) -> tuple[float | None, float | None]:
        """Mean and standard deviation of a measurement, noise included, of a string of the last `ask`.

        Args:
            item: Identity of the string, or a query that says how it is measured; a string stands for its target.

        Returns:
            Both in the user's units; `None` for a random string.

        Raises:
            KeyError: For what was not in the last batch.
        """
        return self._measurements[item if isinstance(item, Query) else Query(item, self._target)]

    def tell(
        self,
        strings: Sequence[str | Query],
        values: npt.ArrayLike,
        *,
        standard_errors: Sequence[float | None] | None = None,
        censored: Sequence[Censoring | None] | None = None,
        errors: Sequence[str | None] | None = None,
        seconds: Sequence[float | None] | None = None,
        costs: Sequence[float | None] | None = None,
        trials: Sequence[int | None] | None = None,
    ) -> None:
        """Record results.

        Args:
            strings: Any strings, asked for or not. One that is pending is so no longer. They must be of the space's
                kind, and in the space where strings are generated (a pool may learn from strings that it does not
                hold). Where there are several ways to measure, a `seqopt.data.Query` says which it was; a plain string
                was measured as the target is.
            values: One value per string, in the user's units; with several ``outcomes`` a table of n x m. NaN,
                infinity, or more than 1e150 in size (a sentinel, not a measurement) is not a value: a string without
                any has failed.
            standard_errors: Known standard error of each value of the objective, in the user's units; `None` where it
                is not known. The model also learns how noisy values are.
            censored: ``"<"`` or ``">"`` for each value of the objective that is only a limit, in the user's units:
                ``"<"`` with 0.1 says that the measurement lies below 0.1. `None` for known values.
            errors: Why each failed evaluation failed. One with a reason and without a value of the objective has
                failed, whatever else was measured. A reason that begins with ``"lost: "`` is not the string's fault:
                see `lost`.
            seconds: How long each evaluation took.
            costs: What each evaluation cost, failed ones included, in any one unit; `None` where it is not known.
                Strategies that learn costs use it (`seqopt.strategies.MultiFidelity`).
            trials: Where results are yes or no, of how many wells each value is the share of hits; `None` for one.
                Whole numbers of wells have to be hits: 0.375 of 8, not of 7.

        Raises:
            InputError: If the numbers differ, a string is invalid or not in the space, a context is not possible, a
                value is no number, or has no image under the transform, a limit is no number or has a standard error,
                a cost is not positive, or if the model cannot take a string (of another length for ``one-hot``,
                unreadable for an autoencoder) or limits; then nothing is recorded.

        Example:
            >>> optimizer = Optimizer(["AAAA", "AAAT", "AATT", "ATTT"], initial=2)
            >>> optimizer.tell(["AAAA", "AATT", "ATTT"], [0.1, 2.0, 3.0], censored=["<", None, ">"])
            >>> optimizer.best.told
            '>3'
        """
        if isinstance(strings, str):
            raise InputError(f"tell takes lists: tell([{strings!r}], [value])")
        table = self._table(values, len(strings))
        # Of a table's column, only the values count.
        standard_errors = None if standard_errors is None else list(standard_errors)
        censored = None if censored is None else list(censored)
        lists: tuple[tuple[str, Sequence[Any] | None], ...] = (
            ("values", table),
            ("standard errors", standard_errors),
            ("signs of limits", censored),
            ("errors", errors),
            ("seconds", seconds),
            ("costs", costs),
            ("trials", trials),
        )
        for name, given in lists:
            if given is not None and len(given) != len(strings):
                raise InputError(f"{len(strings)} strings but {len(given)} {name}; give one for each string")
        known = [None if standard_errors is None else _known_variance(standard_errors[i]) for i in range(len(strings))]
        if any(known) and not self.strategy.takes_noise_variance:
            raise InputError(f"{self.learner} cannot take standard errors into account: leave them out")
        self._check_limits(strings, table, known, censored)
        wells = self._wells(strings, table, trials)
        paid = [_known_cost(cost) for cost in costs] if costs is not None else [None] * len(strings)
        contexts = [self._context(string) for string in strings]
        written = [string.key if isinstance(string, Query) else string for string in strings]
        keys = [self.space.key(string) for string in written]
        for string, key in zip(written, keys, strict=True):
            if key not in self.observations.seen:
                left_out(self.space, string)  # refuses what it cannot read
        measured = [any(map(_is_value, row)) for row in table]
        queries = [Query(key, context) for key, context in zip(keys, contexts, strict=True)]
        learned = [query if query.context else query.key for query in itertools.compress(queries, measured)]
        for message in unlearnable(self.strategy, learned).values():
            raise InputError(f"{message}: leave this string out, or choose another surrogate")
        for row in table:
            for outcome, value in zip(self.outcomes, row, strict=True):
                if _is_value(value):
                    check_value(outcome.transform, value)
        # Which rows are the wells of one result.
        call = sum(row.status != "pending" for row in self.observations.rows) if self.outcome.yes_no else None
        for i, (string, query, numbers) in enumerate(zip(written, queries, table, strict=True)):
            found = self.observations.resolve(query)
            if found is None:
                found = Observation(
                    string, query.key, "pending", details={"batch": self._batches}, context=query.context
                )
                self.observations.add(found)
                self.observations.resolve(query)
            # A failure may have values of other outcomes: what precipitated has a solubility.
            failed = not measured[i] or bool(errors and errors[i] and not _is_value(numbers[0]))
            reason = errors[i] if errors else None
            found.status = "ok" if not failed else "lost" if is_lost(reason) else "failed"
            found.values = tuple(value if _is_value(value) else math.nan for value in numbers) if measured[i] else ()
            variance = known[i]
            found.censored = censored[i] if censored is not None and found.values else None
            found.noise_variance = (variance,) if found.values and variance is not None else None
            found.details["error"] = (errors[i] if errors else None) or (
                ("the value is None" if _is_none(values, i) else _why_none(numbers[0])) if failed else ""
            )
            found.details["seconds"] = seconds[i] if seconds else None
            found.cost = paid[i]
            found.trials = wells[i]
            if call is not None:
                found.details[TOLD] = call
        self._fitted = None

    def _wells(
        self, strings: Sequence[str | Query], table: Sequence[Sequence[float]], trials: Sequence[int | None] | None
    ) -> list[int]:
        """Of how many wells each value is, checked."""
        if trials is not None and not self.outcome.yes_no:
            raise InputError("trials go with results that are yes or no, transform='yes/no': leave them out")
        if not self.outcome.yes_no:
            return [1] * len(strings)
        given = [None] * len(strings) if trials is None else list(trials)
        found = []
        for string, numbers, wells in zip(strings, table, given, strict=True):
            number = checked_integer("trials", 1 if wells is None else wells, 1)
            if _is_value(numbers[0]) and not 0.0 <= numbers[0] <= 1.0:
                raise InputError(
                    f"the result of {string!r} is {numbers[0]:g}, and results are yes or no: expected 1 for a hit, 0 "
                    "for no hit, or a share of wells with their number in trials"
                )
            if _is_value(numbers[0]) and not is_whole(numbers[0] * number):
                raise InputError(
                    f"the result of {string!r} is {numbers[0]:g} of {number} well{'s' if number > 1 else ''}, which is "
                    "no whole number of hits: give the number of wells in trials"
                )
            found.append(number)
        return found

    def _check_limits(
        self,
        strings: Sequence[str | Query],
        table: Sequence[Sequence[float]],
        known: Sequence[float | None],
        censored: Sequence[Censoring | None] | None,
    ) -> None:
        """Refuse limits that are none, or that nothing can be learned from."""
        if censored is None or not any(side is not None for side in censored):
            return
        for string, row, variance, side in zip(strings, table, known, censored, strict=True):
            if side is not None and side not in ("<", ">"):
                raise InputError(f"{string!r} is censored as {side!r}; expected '<', '>' or None")
            if side is not None and not _is_value(row[0]):
                raise InputError(f"the limit of {string!r} is {row[0]:g}; expected a number up to {LARGEST_VALUE:g}")
            if side is not None and variance is not None:
                raise InputError(f"{string!r} has a limit, {side}{row[0]:g}, and a standard error: leave that out")
        if not takes_censored(self.strategy):
            raise InputError(
                f"{self.learner} cannot learn from censored values: leave censored out, and the limits count as "
                "values, or choose another surrogate, one with takes_censored (seqopt.models.CensoredSurrogate)"
            )

    def lost(self, strings: Sequence[str | Query], reason: str = "no reason given") -> None:
        """Note that measurements were lost by no fault of their strings: a robot dropped them, a server went down.

        They teach nothing, and these strings are asked for again, before any others.

        Args:
            strings: See `tell`.
            reason: What happened; it stands in the table as an error.

        Raises:
            InputError: If a string is invalid, or a context is not possible; then nothing is noted.

        Example:
            >>> optimizer = Optimizer(["AAAA", "AAAT", "AATT", "ATTT"], initial=2)
            >>> first, second = optimizer.ask()
            >>> optimizer.lost([first], "the robot dropped it")
            >>> optimizer.ask(1) == [first]
            True
        """
        if isinstance(strings, str):
            raise InputError(f"lost takes lists: lost([{strings!r}])")
        table = np.full((len(strings), len(self.outcomes)), math.nan)
        self.tell(strings, table, errors=[f"{LOST}{reason}"] * len(strings))

    def withdraw(self, strings: Sequence[str | Query], reason: str = "withdrawn") -> None:
        """Note that strings will not be evaluated, for reasons that are not theirs: sold out, too dear, a dropped vial.

        They are not asked for again, and teach nothing: not even, as a failure does, that they cannot be evaluated.

        Args:
            strings: Strings that are pending or, if they are not to be asked for, any others; see `tell`. Where the
                target cannot be measured itself, one that is not pending need not say how it would be.
            reason: Why; it stands in the table as an error.

        Raises:
            InputError: If a string is invalid, or a context is not possible; then nothing is noted.

        Example:
            >>> optimizer = Optimizer(["AAAA", "AAAT", "AATT", "ATTT"], initial=2)
            >>> first, second = optimizer.ask()
            >>> optimizer.withdraw([first], "sold out")
            >>> optimizer.pending == [second], first in optimizer.ask(3)
            (True, False)
        """
        if isinstance(strings, str):
            raise InputError(f"withdraw takes lists: withdraw([{strings!r}])")
        written = [string.key if isinstance(string, Query) else string for string in strings]
        awaited = {row.key for row in self.observations.pending}
        queries = []
        for text, string in zip(written, strings, strict=True):
            key = self.space.key(text)
            said = isinstance(string, Query) and bool(string.context)
            # What is not to be measured at all need not be something that can be: the mean over plates.
            nowhere = self.contexts is not None and self.contexts.latent and not said and key not in awaited
            queries.append(Query(key, self._target if nowhere else self._context(string)))
        for text, query in zip(written, queries, strict=True):
            found = self.observations.resolve(query)
            if found is None:
                found = Observation(
                    text, query.key, "withdrawn", details={"batch": self._batches}, context=query.context
                )
                self.observations.add(found)
            found.status = "withdrawn"
            found.details["error"] = reason

    def _table(self, values: npt.ArrayLike, count: int) -> list[list[float]]:
        """Values, one row per string."""
        try:
            table = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(f"values must be numbers, one per string; got {values!r}") from None
        columns = len(self.outcomes)
        if columns == 1:
            table = table.reshape(-1, 1)
        elif table.ndim != 2 or table.shape[1] != columns:
            names = ", ".join(repr(outcome.name) for outcome in self.outcomes)
            raise InputError(
                f"values have the shape {table.shape}; this search measures {names}, so give a table of {count} x "
                f"{columns}, NaN where nothing was measured"
            )
        rows: list[list[float]] = table.tolist()
        return rows

    def _context(self, item: str | Query) -> Context:
        """How a string was measured."""
        context = item.context if isinstance(item, Query) else ()
        if self.contexts is None:
            if context:
                raise InputError(
                    f"{item} was measured in a context, and this search has none: give contexts= to the optimiser"
                )
            return ()
        context = as_context(context) or self._target
        self.contexts.check(context)
        return context

    @property
    def _target(self) -> Context:
        """The context that is meant where none is stated."""
        return () if self.contexts is None else self.contexts.target

    @property
    def learner(self) -> str:
        """The type of what learns: the surrogate, or a strategy without one."""
        strategy = self.strategy.then
        return type(strategy.surrogate if isinstance(strategy, ModelBased) else strategy).__name__

    def predict(self, strings: Sequence[str]) -> tuple[FloatArray, FloatArray]:
        """What is predicted of any strings, from everything told so far.

        Args:
            strings: Strings of the space's kind.

        Returns:
            Mean and standard deviation of the objective, without the noise of a measurement, in the user's units, one
            number for each string. Under the transform ``log10`` they are the moments of a log-normal distribution,
            whose mean lies above its middle: what is shown of a prediction is `predictions`. Under one that is learned,
            they are its median, and its 90 % interval in those of a standard normal distribution.

        Raises:
            ModelError: Before two values have been told, or if the strategy has no surrogate.

        Example:
            >>> pool = ["AAAA", "AAAT", "AATT", "ATTT", "TTTT", "TTTA", "TTAA", "TATA"]
            >>> optimizer = Optimizer(pool, initial=3, direction="minimize")
            >>> optimizer.tell(["AAAA", "AATT", "TTTT"], [0.0, 2.0, 4.0])
            >>> mean, std = optimizer.predict(["ATTT", "AAAT"])
            >>> bool(mean[0] > mean[1])
            True
        """
        mean, std = self.fitted.predict(self._keys(strings))
        moments = [self.transform.moments(self.outcome.sign * m, s) for m, s in zip(mean, std, strict=True)]
        table = np.array(moments, dtype=np.float64).reshape(-1, 2)
        return table[:, 0], table[:, 1]

    def predictions(self, strings: Sequence[str]) -> Predictions:
        """What is predicted of any strings, as it is shown: central predictions and their 90 % intervals.

        Unlike the mean of `predict`, a central prediction is the median also under the transform ``log10``.

        Args:
            strings: N strings of the space's kind.

        Returns:
            Central predictions, the central 90 % of a measurement, noise included, and of the true value; in the user's
            units, one number for each string.

        Raises:
            ModelError: Before two values have been told, or if the strategy has no surrogate.

        Example:
            >>> optimizer = Optimizer(["AAAA", "AAAT", "AATT", "ATTT", "TTTT"], initial=3, transform="log10")
            >>> optimizer.tell(["AAAA", "AATT", "TTTT"], [1.0, 100.0, 10000.0])
            >>> found = optimizer.predictions(["ATTT"])
            >>> bool(found.low[0] < found.true_low[0] < found.central[0] < found.true_high[0] < found.high[0])
            True
        """
        model, keys = self.fitted, self._keys(strings)
        parts = []
        for start in range(0, max(len(keys), 1), BLOCK):
            block = keys[start : start + BLOCK]
            mean, std = (np.asarray(moment, dtype=np.float64) for moment in model.predict(block))
            parts.append((mean, std, measurement_std(model, block, std)))
        mean, std, measurement = (np.concatenate(moments) for moments in zip(*parts, strict=True))
        return Predictions.of(mean, std, measurement, self.transform, self.outcome.sign)

    def posterior(self, strings: Sequence[str]) -> tuple[FloatArray, FloatArray]:
        """Joint mean (n) and covariance (n x n) of the objective at ``strings``, without noise, in the user's units.

        Raises:
            InputError: Under a transform, be it one that was learned: the joint distribution is not normal then; take
                `sample`.
            ModelError: Before two values have been told, or if the surrogate has no joint posterior.
        """
        model = self._joint()
        if (transform := learned(self.transform)).name != "none":
            raise InputError(
                f"under the transform {transform.name} values are not jointly normal in your units: take sample()"
            )
        mean, covariance = model.posterior(self._keys(strings))
        return self.outcome.sign * np.asarray(mean), np.asarray(covariance)

    def sample(self, strings: Sequence[str], n: int, rng: np.random.Generator) -> FloatArray:
        """``n`` joint draws of the objective at ``strings``, without noise, in the user's units: n x len(strings).

        Raises:
            ModelError: Before two values have been told, or if the surrogate has no joint posterior.
        """
        draws = self.outcome.sign * np.asarray(self._joint().sample(self._keys(strings), n, rng))
        if learned(self.transform).name == "none":
            return draws
        inverse = np.frompyfunc(self.transform.inverse, 1, 1)
        return np.asarray(inverse(draws), dtype=np.float64)

    def _keys(self, strings: Sequence[str]) -> list[str]:
        if isinstance(strings, str):
            raise InputError(f"expected a list of strings, got the single string {strings!r}: write [{strings!r}]")
        keys = [self.space.key(string) for string in strings]
        for message in unsupported(self.fitted, keys).values():
            raise InputError(f"nothing can be predicted: {message}")
        return keys

    @property
    def fitted(self) -> Surrogate:
        """The surrogate, fitted to everything told so far. To look at: later batches do not depend on it.

        While nothing has been told since the last suggestions, it is the model that chose these.

        Raises:
            ModelError: Before two values have been told, or if the strategy has no surrogate.
        """
        if self._fitted is None:
            rng = np.random.default_rng([self.seed, self._asks - 1] if self._asks else [self.seed, 0, AFTERWARDS])
            with doing("fitting the model to all values"):
                self._fitted = self.model_based.fitted(self.state(), rng)
        return self._fitted

    def _joint(self) -> JointSurrogate:
        surrogate = self.fitted
        if not isinstance(surrogate, JointSurrogate):
            raise ModelError(f"{type(surrogate).__name__} has no joint posterior")
        return surrogate

    @property
    def best(self) -> Observation:
        """The row of the best measured value: the luckiest one, where measurements are noisy; see `recommend`.

        A censored value counts as far as it is certain: one that is better than its limit as that limit, and before a
        value that equals it; one that is worse than its limit only where there is nothing else.

        Raises:
            ModelError: Before any value has been told.
        """
        best = self.best_of(self.observations.rows)
        if best is None:
            raise ModelError("nothing has been measured yet: tell some values first")
        return best

    def best_of(self, rows: Sequence[Observation]) -> Observation | None:
        """The best measured one of some rows, the first of equals; `None` if none is measured.

        Of several ways to measure, the target counts, or all where that cannot be measured; of censored values see
        `best`.
        """
        target = self._target
        anyhow = self.contexts is not None and self.contexts.latent
        measured = [
            row
            for row in rows
            if row.status == "ok" and (anyhow or row.context == target) and not math.isnan(row.value)
        ]
        return max(measured, key=self._certain) if measured else None

    def _certain(self, row: Observation) -> tuple[bool, float, bool]:
        """How good a value is at least, to compare it by."""
        better = ">" if self.direction == "maximize" else "<"
        return row.censored in (None, better), self.outcome.sign * row.value, row.censored == better

    def to_pandas(self) -> pd.DataFrame:
        """Everything suggested or told, one row each, with the columns of ``evaluations.csv``."""
        frame = self.observations.to_frame(self._outcome_names)
        if self.contexts is not None:
            frame[COST] = [self._paid(row) for row in self.observations.rows]
        return frame

    def spent(self, rows: Sequence[Observation] | None = None) -> dict[Context, tuple[int, float]]:
        """How many measurements were made in each context, and what they cost together, failed ones included.

        On what it was told without having asked, a search has spent nothing.

        Args:
            rows: Those that count; by default all.

        Example:
            >>> from seqopt.strategies import RandomStrategy
            >>> contexts = Contexts.of_levels("fidelity", {"docking": 0.01, "assay": 1.0}, target="assay")
            >>> optimizer = Optimizer(["AAAA", "AAAT"], strategy=RandomStrategy(), contexts=contexts, initial=2)
            >>> optimizer.tell(optimizer.ask().queries, [5.2, 6.1])
            >>> optimizer.spent()
            {(('fidelity', 'assay'),): (2, 2.0)}
        """
        if self.contexts is None:
            return {}
        found: dict[Context, tuple[int, float]] = {}
        for row in self.observations.rows if rows is None else rows:
            if row.status in ("ok", "failed") and _is_asked(row):
                number, cost = found.get(row.context, (0, 0.0))
                found[row.context] = number + 1, round(cost + self._paid(row), 9)
        return found

    def _paid(self, row: Observation) -> float:
        """What a row costs: as was told, or as its context says; nothing if it was told without having been asked."""
        if row.cost is not None or self.contexts is None:
            return row.cost or 0.0
        return self.contexts.cost(row.query) if _is_asked(row) else 0.0

    @property
    def _outcome_names(self) -> tuple[str, ...]:
        return tuple(outcome.name for outcome in self.outcomes)

    @property
    def pending(self) -> list[str]:
        """Suggested strings that await a result."""
        return [row.string for row in self.observations.pending]

    @property
    def batches(self) -> int:
        """Batches suggested since the initial design."""
        return self._batches

    @property
    def counters(self) -> dict[str, int]:
        """How often was asked (``asks``), and how often since the initial design (``batches``)."""
        return {"asks": self._asks, "batches": self._batches}

    @property
    def chosen_by(self) -> str:
        """What decides, in a word: the acquisition function of a model-based strategy, or the type of another one."""
        strategy = self.strategy.then
        return strategy.acquisition.name if isinstance(strategy, ModelBased) else type(strategy).__name__

    @property
    def hyperparameters(self) -> dict[str, float]:
        """Parameters of the model that chose the last batch; empty before the first fit."""
        return self.strategy.hyperparameters

    def state_dict(self) -> dict[str, Any]:
        """Everything that `ask` depends on besides the constructor's arguments, as JSON values."""
        return {
            **self.counters,
            **self.strategy.state_dict(),
            "observations": [
                {
                    "string": row.string,
                    "key": row.key,
                    "context": [list(pair) for pair in row.context],
                    "status": row.status,
                    "values": list(row.values),
                    "censored": row.censored,
                    "noise_variance": None if row.noise_variance is None else list(row.noise_variance),
                    "details": row.details,
                    **({} if row.cost is None else {"cost": row.cost}),
                    **({} if row.trials == 1 else {"trials": row.trials}),
                }
                for row in self.observations.rows
            ],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore `state_dict`, in an optimiser made with the same arguments: it goes on as the saved one would."""
        self.observations = Observations()
        for row in state["observations"]:
            noise = row["noise_variance"]
            self.observations.add(
                Observation(
                    row["string"],
                    row["key"],
                    row["status"],
                    tuple(row["values"]),
                    None if noise is None else tuple(noise),
                    dict(row["details"]),
                    as_context((name, value) for name, value in row["context"]),
                    row.get("censored"),
                    row.get("cost"),
                    row.get("trials", 1),
                )
            )
        self.replay_ask([], state)

    def replay_ask(self, rows: Sequence[Mapping[str, Any]], state: Mapping[str, Any]) -> None:
        """Repeat a recorded `ask` without computing it: ``rows`` become pending, and counters are as recorded.

        Args:
            rows: What was asked for: ``string``, ``key``, ``details`` and, where there are several, ``context``.
            state: The counters ``asks`` and ``batches`` and, if it is to be restored, the state of the strategy.
        """
        for row in rows:
            context = as_context((name, value) for name, value in row.get("context", ()))
            self.observations.add(
                Observation(row["string"], row["key"], "pending", details=dict(row["details"]), context=context)
            )
        self._asks = state["asks"]
        self._batches = state["batches"]
        strategy = {name: value for name, value in state.items() if name not in ("asks", "batches", "observations")}
        if strategy:
            self.strategy.load_state_dict(strategy)
        self._fitted = None

    def recommend(self) -> Observation:
        """The measured string with the best posterior mean: the answer of a search whose measurements are noisy.

        `best` is the one with the best measurement, which noise flatters.

        Returns:
            Its last row with a value of the objective, measured as the target is if there is such a row.

        Raises:
            ModelError: Before two values have been told.
        """
        rng = np.random.default_rng([self.seed, self._asks, AFTERWARDS])
        with doing("fitting the model to all values"):
            key = self.strategy.recommend(self.state(), rng)
        measured = [row for row in self.observations.with_status("ok") if row.key == key and not math.isnan(row.value)]
        return next((row for row in reversed(measured) if row.context == self._target), measured[-1])

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_fitted": None}

    def _in_user_units(self, mean: float | None, std: float | None) -> tuple[float | None, float | None]:
        if mean is None or std is None:
            return None, None
        moments = self.transform.moments(self.outcome.sign * mean, std)
        return moments if all(map(math.isfinite, moments)) else (None, None)


def _checked_outcomes(
    outcomes: Sequence[Outcome] | None, direction: Direction, transform: Transform | str | None
) -> tuple[Outcome, ...]:
    if outcomes is None:
        return (Outcome("value", direction, transform=resolve_transform(_own(transform))),)
    if direction != "maximize" or transform not in (None, DEFAULT_TRANSFORM):
        raise InputError("give direction and transform to the outcomes, not besides them")
    for outcome in outcomes:
        if not isinstance(outcome, Outcome):
            raise InputError(
                f"{outcome!r} is not an outcome: give seqopt.data.Outcome objects, such as "
                "Outcome('solubility', role='constraint', bound=10.0)"
            )
    names = [outcome.name for outcome in outcomes]
    if len(set(names)) < len(names):
        raise InputError(f"two outcomes have the same name: {', '.join(names)}")
    roles = [outcome.role for outcome in outcomes]
    if roles[:1] != ["objective"] or "objective" in roles[1:]:
        raise InputError(f"outcomes have the roles {', '.join(roles) or 'of none'}; give one objective, and that first")
    return tuple(replace(outcome, transform=_own(outcome.transform)) for outcome in outcomes)


def _own(transform: Any) -> Any:
    """A transform that learns belongs to one search."""
    return LearnedTransform(transform.name) if isinstance(transform, LearnedTransform) else transform


def _is_asked(row: Observation) -> bool:
    """Whether a row was asked for, and not only told."""
    return "acquisition" in row.details


def _item(row: Observation) -> Item:
    return row.query if row.context else row.key


def _is_none(values: npt.ArrayLike, index: int) -> bool:
    """Whether a value was given as `None`, which numbers hold as NaN."""
    return isinstance(values, Sequence) and values[index] is None


def _why_none(number: float) -> str:
    """Why a number is no value."""
    limit = f"; none may be larger than {LARGEST_VALUE:g}" if math.isfinite(number) else ""
    return f"the value is {number:g}{limit}"


def _is_value(number: float) -> bool:
    return math.isfinite(number) and abs(number) <= LARGEST_VALUE


def _known_variance(standard_error: float | None) -> float | None:
    """The square of a standard error; `None` where it is not known.

    Raises:
        InputError: If it is no number from 0.
    """
    if standard_error is None:
        return None
    try:
        number = float(standard_error)
    except (TypeError, ValueError):
        number = -1.0
    if math.isnan(number):
        return None
    if not 0 <= number <= LARGEST_VALUE:
        raise InputError(f"a standard error is {standard_error!r}; expected a number from 0, or None if it is unknown")
    return number**2


def _known_cost(cost: float | None) -> float | None:
    """A cost; `None` where it is not known.

    Raises:
        InputError: If it is no positive number.
    """
    if cost is None:
        return None
    try:
        number = float(cost)
    except (TypeError, ValueError):
        number = -1.0
    if math.isnan(number):
        return None
    if not 0 < number <= LARGEST_VALUE:
        raise InputError(f"a cost is {cost!r}; expected a positive number, or None if it is unknown")
    return number


def _placed(proposals: Sequence[Proposal], room: Room, state: SearchState) -> list[Proposal]:
    """Each where it was to be measured, if that has room, and else elsewhere."""
    found: list[Proposal] = []
    for one in proposals:
        free = room.is_free(one.context, [other.query for other in found])
        found.append(one if free else replace(one, context=state.beginning(len(found))))
    return found
