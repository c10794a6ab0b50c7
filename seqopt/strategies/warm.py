"""Warm start: results of other assays teach the model, and are never asked for.

Each assay is a level of its own, with its own mean, scale and noise (`seqopt.models.levels`); how it goes with what is
searched for, a sign included, is learned by intrinsic coregionalisation
(`seqopt.models.contexts.coregionalized`). What is proposed, what is the best and when a search begins to trust its
model depend on the search's own results alone.

References:
    Bonilla, E. V., Chai, K. M. A. and Williams, C. K. I. (2007). Multi-task Gaussian process prediction. NeurIPS 20.
    Swersky, K., Snoek, J. and Adams, R. P. (2013). Multi-task Bayesian optimization. NeurIPS 26.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from seqopt.acquisition import Acquisition, OutcomeAcquisition, PreparedAcquisition
from seqopt.data import Context, Contexts, Data, Query, as_context, key_of
from seqopt.errors import InputError
from seqopt.models import GaussianSurrogate, StringSurrogate, Surrogate
from seqopt.models.contexts import coregionalized, default_contexts
from seqopt.posteriors import Moments, Posterior
from seqopt.scorers import Scoring
from seqopt.scorers.checks import checked_scores
from seqopt.scorers.per_cost import Offered, PerCostScoring
from seqopt.scorers.protocols import Choice, FloatArray
from seqopt.search import Proposal
from seqopt.search.protocols import PartsCheckedSearch, SomeSearch
from seqopt.spaces import Space
from seqopt.strategies.fidelity import MultiFidelity
from seqopt.strategies.model_based import ModelBased, _fit_to, _measured
from seqopt.strategies.protocols import SearchState
from seqopt.strategies.screened import KnownColumn, ScreenedFidelity, screened

ASSAY = "assay"
"""What results differ in where a search itself knows only one way to measure."""

BAYES = "-bayes"
"""What ends the name of a surrogate that is averaged over its parameters."""


@dataclass(frozen=True, eq=False)
class OtherAssay:
    """Results of another assay, in its own unit and direction.

    Attributes:
        name: What it is called.
        values: One for each key, at least two of them different.

    Raises:
        InputError: For another name, fewer than two values, equal ones, or one that is not finite.

    Example:
        >>> OtherAssay("selectivity", {"AA": -3.0, "AB": -4.0}).seen("log10").round(3).tolist()
        [10.0, 0.1]
    """

    name: str
    values: Mapping[str, float]

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name or self.name != self.name.strip():
            raise InputError(f"an assay is called {self.name!r}; expected a text that neither begins nor ends blank")
        numbers = self.numbers
        if len(numbers) < 2:
            raise InputError(f"{self.name} has {len(numbers)} values; expected two or more")
        if not np.isfinite(numbers).all():
            raise InputError(f"a value of {self.name} is not finite")
        if numbers.min() == numbers.max():
            raise InputError(f"all {len(numbers)} values of {self.name} equal {numbers[0]:g}: they tell nothing")

    @property
    def numbers(self) -> npt.NDArray[np.float64]:
        """The values."""
        return np.fromiter(self.values.values(), dtype=np.float64, count=len(self.values))

    def seen(self, transform: str) -> npt.NDArray[np.float64]:
        """The values as a table holds them whose objective has a transform.

        On a logarithmic scale, values of which one is not positive have no logarithm. They are replaced by powers of
        10, so that the model sees an affine image of them, and that changes nothing.
        """
        numbers = self.numbers
        if transform == "log10" and numbers.min() <= 0:
            found: npt.NDArray[np.float64] = 10.0 ** ((numbers - numbers.mean()) / numbers.std())
            return found
        return numbers


def joined(data: Data, variable: str, assays: Sequence[OtherAssay]) -> Data:
    """Results of a search, and those of other assays after them.

    Args:
        data: Of the search.
        variable: What contexts differ in.
        assays: The others.
    """
    if not assays:
        return data
    transform = data.outcomes[data.objective].transform.name
    added = [Query(key, as_context({variable: one.name})) for one in assays for key in one.values]
    values = np.full((len(added), data.values.shape[1]), math.nan)
    values[:, data.objective] = np.concatenate([one.seen(transform) for one in assays])
    known = data.censored
    return replace(
        data,
        queries=(*data.queries, *added),
        values=np.concatenate([data.values, values]),
        noise_variance=np.concatenate([data.noise_variance, np.full_like(values, math.nan)]),
        failed=np.concatenate([data.failed, np.zeros(len(added), dtype=np.bool_)]),
        censored=None if known is None else np.concatenate([known, np.zeros(len(added), dtype=np.int8)]),
        costs=None if data.costs is None else np.concatenate([data.costs, np.full(len(added), math.nan)]),
    )


def with_levels(contexts: Contexts, assays: Sequence[OtherAssay]) -> Contexts:
    """Contexts that differ in one variable, and other assays as further levels of it.

    Raises:
        InputError: For contexts that differ in several variables, whose target is latent, or of which one has the name
            of an assay; it says what to do.
    """
    if len(contexts.names) != 1 or contexts.latent:
        what = "differ in " + " and ".join(contexts.names) if len(contexts.names) != 1 else "have a target in common"
        raise InputError(
            f"the ways to measure of this search {what}, and other assays can only be further values of one variable "
            "that has a target of its own: begin a campaign with that target alone, import what was measured of it, "
            "and then the other assay"
        )
    (name,) = contexts.names
    added: tuple[Context, ...] = tuple(as_context({name: one.name}) for one in assays)
    for one in added:
        if one in contexts.possible:
            raise InputError(
                f"{one[0][1]} is a {name} of this search already: give the assay another name, or import its results "
                f"with --fidelity {one[0][1]}"
            )
    costs = (*contexts.costs, *(max(contexts.costs) for _ in added))
    return Contexts((*contexts.possible, *added), contexts.target, costs)


class WarmStart(ModelBased):
    """`ModelBased`, whose model has learned from other assays, too.

    Args:
        assays: The other assays.
        objective: What the search calls its own.
        surrogate: The name of a surrogate with one kernel on strings (`seqopt.models.SURROGATES`), or ``"auto"`` for
            the kernel that `seqopt.models.contexts.coregionalized` takes for the space.
        acquisition: See `ModelBased`.
        search: See `ModelBased`.

    Raises:
        InputError: For a surrogate as an object, or an assay with the name of the objective. When it starts: for a
            surrogate without such a kernel, contexts, or a search that follows gradients.
    """

    shortens = False

    def __init__(
        self,
        assays: Sequence[OtherAssay],
        objective: str,
        surrogate: Surrogate | str = "auto",
        acquisition: Acquisition | str = "gibbon",
        search: SomeSearch | str = "auto",
    ) -> None:
        if not isinstance(surrogate, str):
            raise InputError(
                f"{type(surrogate).__name__} was given as an object, and a model of several assays is made from the "
                "name of a surrogate: begin a campaign with one, or without, and import all results there"
            )
        super().__init__(surrogate, acquisition, search)
        self.assays = tuple(assays)
        own = Contexts.of_levels(ASSAY, {objective.strip() or "objective": 1.0}, objective.strip() or "objective")
        self._own = own
        self._levels = with_levels(own, self.assays)
        self._default: GaussianSurrogate | None = None

    def start(self, space: Space, contexts: Contexts | None = None) -> None:
        """See `ModelBased.start`."""
        if contexts is not None:
            raise InputError("WarmStart is for searches that know one way to measure: take WarmFidelity")
        name = str(self._given[0]).strip().lower()
        try:
            kernel, averaged = (None, False) if name == "auto" else (name.removesuffix(BAYES), name.endswith(BAYES))
            self._default = coregionalized(space, self._levels, kernel, averaged)
        except InputError as error:
            raise InputError(
                f"the surrogate {name} cannot learn from several assays: {error}. Begin a campaign with another one "
                "(ngrams, ssk, minmax or auto, say), and import all results there"
            ) from error
        super().start(space, None)
        if isinstance(self.search, PartsCheckedSearch):
            raise InputError(f"{type(self.search).__name__} does not go with results of another assay")

    def _begin_anew(self) -> None:
        super()._begin_anew()
        if self._default is not None:
            self._surrogate = cast("Surrogate", self._default)

    def _fit(self, surrogate: Surrogate, data: Data, rng: np.random.Generator) -> None:
        # Values of several assays do not show one tail: what would be learned of a transform is left out.
        _fit_to(surrogate, _measured(joined(data, ASSAY, self.assays)), rng)

    def scoring(self, n: int, state: SearchState, rng: np.random.Generator) -> Scoring:
        """See `ModelBased.scoring`; strings that only other assays know are as good as unmeasured."""
        return self.scored_by(self.surrogate, n, state, rng)

    def scored_by(self, surrogate: Surrogate, n: int, state: SearchState, rng: np.random.Generator) -> Scoring:
        """As `scoring`, by any surrogate that `fitted` returned."""
        refused = self.unsupported(state.pending)
        pending = [item for index, item in enumerate(state.pending) if index not in refused]
        evaluated = dict.fromkeys(key_of(item) for item in state.data.measured().items)
        return _OwnScoring(
            cast("StringSurrogate", surrogate),
            cast("OutcomeAcquisition", self.acquisition),
            self._own,
            evaluated=list(evaluated),
            pending=pending,
            batch_size=n + len(pending),
            rng=rng,
        )


class _OwnScoring(PerCostScoring):
    """Scores by any acquisition function where there is one way to measure, and a model that knows more levels."""

    def is_free(self, context: Context, taken: Set[Query]) -> bool:
        """There is only one way."""
        return True

    def scored(
        self, posterior: Posterior, prepared: PreparedAcquisition, offered: Offered, taken: Set[Query]
    ) -> FloatArray:
        """Scores; minus infinity for what was chosen for this batch."""
        values = checked_scores(prepared(posterior), len(offered.costs), self.acquisition.name)
        return np.where(offered.ruled_out, -np.inf, values)

    def choice(self, query: Query, score: float, moments: Moments) -> Choice:
        """A choice; of a search that knows one way to measure, nothing says how."""
        return replace(super().choice(query, score, moments), context=())


class WarmFidelity(ScreenedFidelity):
    """`MultiFidelity`, or with scores that are known `ScreenedFidelity`, whose model has learned from other assays.

    Args:
        assays: The other assays.
        columns: Scores by how they were measured; see `ScreenedFidelity`.
        parts: The other arguments of `MultiFidelity`, but for a surrogate.
    """

    def __init__(self, assays: Sequence[OtherAssay], columns: Mapping[Context, KnownColumn], **parts: Any) -> None:
        super().__init__(columns, **parts)
        self.assays = tuple(assays)
        self.begins_itself = bool(columns)
        self._variable = ""

    def start(self, space: Space, contexts: Contexts | None = None) -> None:
        """See `MultiFidelity.start`.

        Raises:
            InputError: Also for what `with_levels` refuses.
        """
        if contexts is not None:
            (self._variable,) = with_levels(contexts, self.assays).names
        super().start(space, contexts)

    def _own_model(self, space: Space, contexts: Contexts) -> Any:
        levels = with_levels(contexts, self.assays)
        return screened(space, levels, list(self.columns.values())) if self.columns else default_contexts(space, levels)

    def propose(self, n: int, state: SearchState, rng: np.random.Generator) -> list[Proposal]:
        """See `ScreenedFidelity.propose`."""
        return super().propose(n, state, rng) if self.columns else MultiFidelity.propose(self, n, state, rng)

    def _fit(self, surrogate: Surrogate, data: Data, rng: np.random.Generator) -> None:
        _fit_to(surrogate, _measured(joined(data, self._variable, self.assays)), rng)


def warm_started(
    parts: Mapping[str, Any],
    assays: Sequence[OtherAssay],
    columns: Mapping[Context, KnownColumn],
    objective: str,
    contexts: Contexts | None,
) -> WarmStart | WarmFidelity:
    """What decides instead of the parts of a search, with results of other assays.

    Args:
        parts: Arguments of `seqopt.Optimizer`: ``strategy``, or ``surrogate``, ``acquisition`` and ``search``.
        assays: The other assays.
        columns: Scores by how they were measured, where some are known.
        objective: What the search calls its own.
        contexts: The ways to measure; `None` where there is one.

    Raises:
        InputError: If another strategy decides, or the contexts cannot be extended; it says what to do.
    """
    strategy = parts.get("strategy")
    if strategy is None and contexts is None:
        return WarmStart(assays, objective, **{name: parts[name] for name in ("surrogate", "acquisition", "search")})
    if contexts is None and type(strategy) is ModelBased:
        return WarmStart(assays, objective, **strategy.config_arguments())
    if contexts is not None and type(strategy) is MultiFidelity:
        given = strategy.config_arguments()
        if given.pop("surrogate") is None:
            with_levels(contexts, assays)
            return WarmFidelity(assays, columns, **given)
    name = "a model that was given as an object" if strategy is None else type(strategy).__name__
    raise InputError(
        f"{name} decides in this search, and results of another assay go with the default strategies and their own "
        "models: begin a campaign without it, import what was measured, and then the other assay"
    )
