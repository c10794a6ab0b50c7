"""A surrogate, an acquisition function and an inner search: Bayesian optimisation as it is usually meant."""

from __future__ import annotations

import copy
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np

from seqopt.acquisition import Acquisition, DisagreementAcquisition, RandomAcquisition, resolve_acquisition
from seqopt.data import Contexts, Data, Identity, Item, LearnedTransform, Measured, Query, key_of
from seqopt.encoding import Encoder, FeatureEncoder, JointEncoder
from seqopt.errors import InputError, ModelError
from seqopt.models import (
    BinomialSurrogate,
    CensoredSurrogate,
    DoubtingSurrogate,
    MeasurementSurrogate,
    NoiseAwareSurrogate,
    PlannedSurrogate,
    PoolSurrogate,
    StringSurrogate,
    Surrogate,
    measurement_std,
    resolve_surrogate,
    unlearnable,
    unsupported,
)
from seqopt.models.censoring import telling
from seqopt.models.classifiers import Classifier, CrossValidated, Predictor, SpaceBoundClassifier
from seqopt.models.gaussian import GaussianSurrogate
from seqopt.models.transforms import fit_with_transform
from seqopt.scorers import FeasibilityScoring, GaussianScoring, Scoring
from seqopt.scorers.feasibility import Combine
from seqopt.scorers.limits import limited
from seqopt.search import PoolSearch, Proposal, Search
from seqopt.search.defaults import default_search
from seqopt.search.protocols import CheckedSearch, PartsCheckedSearch, SomeSearch, StatefulSearch
from seqopt.spaces import PoolSpace, Space
from seqopt.strategies.failures import COMBINE, likely_proposals, success_predictor
from seqopt.strategies.prefilter import Prefilter, checked_prefilter, default_prefilter
from seqopt.strategies.protocols import SearchState
from seqopt.strategies.random import filled_up, random_proposals
from seqopt.utils.config import Configurable
from seqopt.utils.progress import doing

logger = logging.getLogger(__name__)


@runtime_checkable
class SpaceBound(Protocol):
    """A surrogate that takes its tokeniser from the space."""

    def bind(self, space: Space) -> None:
        """Called once, before the first fit."""
        ...


class ModelBased(Configurable):
    """Fits a surrogate, and searches the space for strings of large acquisition value.

    Implements `seqopt.strategies.Strategy`. While fewer than two different values are known it proposes random strings,
    and so it does for what the search leaves open. A surrogate that doubts that strings tell anything of each other's
    values (`seqopt.models.DoubtingSurrogate`) has as many of them drawn at random, each with the probability of that.
    Strings whose results are awaited count as observed without value.

    A failed evaluation, one that was told as NaN, teaches which strings fail: once strings have both failed and
    succeeded, a classifier says how likely each is to succeed, scores count with that probability
    (`seqopt.strategies.failures`), and strings that would be random are drawn in proportion to it. Until then,
    everything is as without a classifier, to the last bit.

    Args:
        surrogate: A `seqopt.models.Surrogate`, or what `seqopt.models.resolve_surrogate` takes.
        acquisition: A `seqopt.acquisition.Acquisition`, or the name of one.
        search: A `seqopt.search.Search`, or ``"auto"``: see `seqopt.strategies.default_search`. One that follows
            gradients of the acquisition function knows nothing of failures.
        prefilter: Where the search scores a pool, choose by a cheap score which candidates the acquisition function
            looks at: a `seqopt.strategies.Prefilter`, the name of one, ``"lfbo"`` or ``"mean"``, or `None`, for all.
            ``"auto"`` has it look at all up to a million (`seqopt.strategies.prefilter.ALL`), and else at the 50,000 of
            largest predicted mean.
        failures: The classifier, a `seqopt.models.classifiers.Classifier`; ``"learn"`` for a
            `seqopt.models.classifiers.CrossValidated`, or `None`: failures teach nothing.

    Raises:
        InputError: For parts that are none.

    Example:
        >>> from seqopt import CandidateSet
        >>> strategy = ModelBased("ssk", "logei")
        >>> strategy.start(CandidateSet(["AAA", "AAB", "ABB", "BBB"]))
        >>> type(strategy.surrogate).__name__, type(strategy.search).__name__
        ('StringGP', 'PoolSearch')
    """

    chooses_contexts = False
    """Whether it says how a string is measured; others have strings measured as their target."""

    shortens = True
    """Whether, by default, it looks closely at a shortlist of a pool of more than a million."""

    def __init__(
        self,
        surrogate: Surrogate | PlannedSurrogate | str = "auto",
        acquisition: Acquisition | str = "gibbon",
        search: SomeSearch | str = "auto",
        *,
        failures: Classifier | str | None = "learn",
        prefilter: Prefilter | str | None = "auto",
    ) -> None:
        # "auto" is known once the space is.
        self._prefilter_given = prefilter if prefilter == "auto" else checked_prefilter(prefilter)
        self.prefilter = None if isinstance(self._prefilter_given, str) else self._prefilter_given
        if isinstance(failures, str) and failures != "learn":
            raise InputError(f"failures is {failures!r}; expected 'learn', a classifier, or None")
        if failures is not None and not isinstance(failures, str):
            check_classifier(failures)
        self._failures = failures
        self.classifier: Classifier | None = CrossValidated() if isinstance(failures, str) else failures
        self._surrogate = surrogate
        self.acquisition = resolve_acquisition(acquisition)
        if isinstance(search, str) and search != "auto":
            raise InputError(f"unknown search {search!r}: choose auto, or give an object")
        self._search = search
        self._given = surrogate, search
        self._at_first: tuple[dict[str, Any] | None, dict[str, Any] | None] | None = None
        self._hyperparameters: dict[str, float] = {}
        self._transform: str | None = None  # the latest choice, where one is learned

    def start(self, space: Space, contexts: Contexts | None = None) -> None:
        """Find the parts that go by name, and refuse those that do not fit; see `seqopt.strategies.CheckedStrategy`.

        Raises:
            InputError: If a part does not fit another or the space; the message names both.
        """
        self._begin_anew()
        self._surrogate = resolve_surrogate(self._surrogate, space)
        if isinstance(self._surrogate, SpaceBound):
            self._surrogate.bind(space)
        if contexts is not None and not isinstance(self.acquisition, RandomAcquisition):
            if contexts.latent and not self.chooses_contexts:
                raise InputError(
                    f"{type(self).__name__} has strings measured as their target, and the target of these contexts "
                    "cannot be measured: give a strategy that chooses contexts, such as "
                    "seqopt.strategies.MultiFidelity()"
                )
            check_contexts(self.surrogate, space, contexts)
        check_draws(self.surrogate, self.acquisition)
        self._search = default_search(space) if isinstance(self._search, str) else self._search
        if not isinstance(self._search, Search) or isinstance(self._search, type):
            raise InputError(
                f"{self._search!r} is not an inner search: give an object with the method propose of "
                "seqopt.search.Search, or leave it out"
            )
        if isinstance(self.search, CheckedSearch):
            self.search.check_space(space)
        if isinstance(self._prefilter_given, str):
            self.prefilter = self._default_prefilter(space)
        if self.prefilter is not None:
            self.prefilter.start(space, self.surrogate)
        if isinstance(self.search, PartsCheckedSearch):
            self.search.check_parts(space, self.surrogate, self.acquisition)
        elif not isinstance(self.acquisition, RandomAcquisition):
            if isinstance(self.classifier, SpaceBoundClassifier):
                self.classifier.bind(space)
            needed = PoolSurrogate if isinstance(self.search, PoolSearch) else StringSurrogate
            if not isinstance(self.surrogate, needed):
                methods = "pool_posterior" if needed is PoolSurrogate else "conditioned"
                raise InputError(
                    f"{type(self.surrogate).__name__} has no posterior that {type(self.search).__name__} and the "
                    f"acquisition function {self.acquisition.name!r} could use: it needs the methods {methods} and "
                    f"untransform of seqopt.models.{needed.__name__}"
                )

    def _default_prefilter(self, space: Space) -> Prefilter | None:
        """What is used where nobody says; nothing for what is not filled from a pool by scores."""
        if not self.shortens or not isinstance(self.search, PoolSearch):
            return None
        if isinstance(self.acquisition, RandomAcquisition):
            return None
        return default_prefilter(space, self.surrogate)

    def _begin_anew(self) -> None:
        """Forget what an earlier search has left behind, so that one strategy may serve several, one after another."""
        surrogate, search = self._given
        self._hyperparameters = {}
        self._transform = None
        # Parts that go by name are found anew, since the space may be another one.
        self._surrogate, self._search = surrogate, search
        if self._at_first is None:
            self._at_first = (
                # A class has the same methods as its objects; it is refused later.
                surrogate.state_dict()
                if isinstance(surrogate, Surrogate) and not isinstance(surrogate, type)
                else None,
                search.state_dict() if isinstance(search, StatefulSearch) and not isinstance(search, type) else None,
            )
            return
        known, remembered = self._at_first
        if known is not None and isinstance(surrogate, Surrogate):
            surrogate.load_state_dict(copy.deepcopy(known))
        if remembered is not None and isinstance(search, StatefulSearch):
            search.load_state_dict(copy.deepcopy(remembered))

    def config_arguments(self) -> dict[str, Any]:
        """See `seqopt.utils.config.Configurable`: parts as they were given, by name or as objects."""
        # What is not said is learned from, as in the runs of earlier versions that go on.
        further: dict[str, Any] = {} if self._failures == "learn" else {"failures": self._failures}
        if not isinstance(self._prefilter_given, str):
            further["prefilter"] = self._prefilter_given
        return {"surrogate": self._given[0], "acquisition": self.acquisition, "search": self._given[1], **further}

    @property
    def planned(self) -> PlannedSurrogate | None:
        """The plan that the surrogate was made by, if it was given as one."""
        given = self._given[0]
        return given if isinstance(given, PlannedSurrogate) else None

    @property
    def surrogate(self) -> Surrogate:
        """The surrogate.

        Raises:
            ModelError: If it goes by a name or is planned, and `start` has not been called.
        """
        if isinstance(self._surrogate, str | PlannedSurrogate):
            raise ModelError(f"the surrogate {self._surrogate!r} is found when the search starts: call start(space)")
        return self._surrogate

    @property
    def search(self) -> SomeSearch:
        """The inner search.

        Raises:
            ModelError: If it is to be found, and `start` has not been called.
        """
        if isinstance(self._search, str):
            raise ModelError("the inner search is found when the search starts: call start(space)")
        return self._search

    def propose(self, n: int, state: SearchState, rng: np.random.Generator) -> list[Proposal]:
        """See `seqopt.strategies.Strategy`."""
        if isinstance(self.acquisition, RandomAcquisition):
            return random_proposals(n, self._for_random(state, ()), rng, unsupported=self.unsupported)
        measured = _measured(state.data)
        if not _enough(measured, state):
            return self._random(n, state, rng, self._success_predictor(state, rng))
        # First of all that draws, so that `fitted` makes the same model of the same values.
        with doing(f"fitting {type(self.surrogate).__name__} to {len(measured):,} values"):
            self._fit(self.surrogate, state.data, rng)
        predictor = self._success_predictor(state, rng)
        self._hyperparameters = dict(getattr(self.surrogate, "hyperparameters", {}))
        # Where strings tell nothing of each other, a random one is as good as any, and teaches as much.
        doubt = self.surrogate.doubt if isinstance(self.surrogate, DoubtingSurrogate) else 0.0
        trusted = n - int(rng.binomial(n, doubt)) if doubt > 0.0 else n
        # Few random strings pass some predicates, and a search grows from those that are known.
        picky = getattr(state.space, "accept", None) is not None
        if not trusted:
            found = self._random(n, state, rng, predictor)
            if len(found) == n or not picky:
                return found
            trusted = n
        among = f"among {len(state.space):,} candidates" if isinstance(state.space, PoolSpace) else "in the space"
        with doing(f"looking for the best {trusted} {among}"):
            proposals = self._searched(n, trusted, state, rng, predictor)
            proposals = _with_measurements(proposals, self.surrogate)
        if predictor is not None and len(proposals) < n:
            chosen = {proposal.key for proposal in proposals}
            rest = replace(state, excluded=state.excluded | chosen)
            found = proposals + self._random(n - len(proposals), rest, rng, predictor)
        else:
            found = filled_up(proposals, n, self._for_random(state, proposals), rng, unsupported=self.unsupported)
        if len(found) == n or trusted == n or not picky:
            return found
        with doing(f"looking for the best {n} in the space"):
            return _with_measurements(self._searched(n, n, state, rng, predictor), self.surrogate)

    def _searched(
        self, n: int, trusted: int, state: SearchState, rng: np.random.Generator, predictor: Predictor | None
    ) -> list[Proposal]:
        """Up to ``trusted`` strings that the inner search finds, of a batch of ``n``, by the fitted surrogate."""
        search = cast("Search[Space]", self.search)  # `start` has held it against the space
        scoring = self.scoring(n, state, rng)
        if predictor is not None:
            scoring = FeasibilityScoring(scoring, predictor, self.combine)
        scoring = limited(scoring, state.batch)
        if self.prefilter is not None:
            scoring = self.prefilter.applied(scoring, trusted, self.surrogate, state, rng)
        return search.propose(trusted, space=state.space, scoring=scoring, excluded=state.excluded, rng=rng)

    @property
    def combine(self) -> Combine:
        """How scores count with the probability of success; see `seqopt.scorers.feasible_scores`."""
        return COMBINE.get(self.acquisition.name, "add")

    def _success_predictor(self, state: SearchState, rng: np.random.Generator) -> Predictor | None:
        if self.classifier is None or isinstance(self.search, PartsCheckedSearch):
            return None
        if not state.data.failed.any():
            return None
        with doing(f"learning from {int(state.data.failed.sum()):,} failures"):
            return success_predictor(self.classifier, state.data, rng)

    def _random(
        self, n: int, state: SearchState, rng: np.random.Generator, predictor: Predictor | None
    ) -> list[Proposal]:
        """Random strings; those that may succeed, where that is known."""
        state = self._for_random(state, ())
        if predictor is None:
            return random_proposals(n, state, rng, unsupported=self.unsupported)
        found = likely_proposals(n, state, rng, predictor, unsupported=self.unsupported)
        return filled_up(found, n, state, rng, unsupported=self.unsupported)

    def _for_random(self, state: SearchState, chosen: Sequence[Proposal]) -> SearchState:
        """Where random strings of a batch are measured, after some were chosen: as `SearchState.beginning` says."""
        del chosen
        return state

    def scoring(self, n: int, state: SearchState, rng: np.random.Generator) -> Scoring:
        """What the inner search maximises, given the fitted surrogate."""
        refused = self.unsupported(state.pending)
        pending = [item for index, item in enumerate(state.pending) if index not in refused]
        # `start` has seen to it that the surrogate has the posterior that the search will ask for.
        surrogate = cast("StringSurrogate | PoolSurrogate", self.surrogate)
        return GaussianScoring(surrogate, self.acquisition, pending=pending, batch_size=n + len(pending), rng=rng)

    def fitted(self, state: SearchState, rng: np.random.Generator) -> Surrogate:
        """A surrogate that is fitted to what is known now, and leaves no trace in later proposals.

        Raises:
            ModelError: If fewer than two values are known.
        """
        measured = _measured(state.data)
        if len(measured) < 2:
            raise ModelError(f"{len(measured)} values have been told; a model needs two")
        # A fit replaces what a surrogate holds.
        surrogate = copy.copy(self.surrogate)
        self._fit(surrogate, state.data, rng)
        return surrogate

    def recommend(self, state: SearchState, rng: np.random.Generator) -> str:
        """The key of the measured string with the best posterior mean of its target."""
        surrogate = self.fitted(state, rng)
        keys = [key_of(item) for item in state.data.measured().items]
        return keys[int(np.argmax(surrogate.predict(keys)[0]))]

    def unsupported(self, items: Sequence[Item]) -> dict[int, str]:
        """What the surrogate cannot compare."""
        return unsupported(self.surrogate, cast("Sequence[str]", items))

    def unlearnable(self, items: Sequence[Item]) -> dict[int, str]:
        """What the surrogate cannot learn from; see `seqopt.models.AdaptingSurrogate`."""
        return unlearnable(self.surrogate, cast("Sequence[str]", items))

    @property
    def takes_noise_variance(self) -> bool:
        """Whether the surrogate does."""
        return bool(getattr(self._surrogate, "takes_noise_variance", False))

    @property
    def takes_censored(self) -> bool:
        """Whether the surrogate does; any would do for random strings."""
        return bool(getattr(self._surrogate, "takes_censored", False)) or isinstance(
            self.acquisition, RandomAcquisition
        )

    @property
    def takes_yes_no(self) -> bool:
        """Whether the surrogate learns from results that are yes or no; any would do for random strings."""
        found = self._surrogate
        binomial = isinstance(found, BinomialSurrogate) and not isinstance(found, type)
        return binomial or isinstance(self.acquisition, RandomAcquisition)

    @property
    def hyperparameters(self) -> dict[str, float]:
        """Parameters of the surrogate that made the last proposals."""
        return dict(self._hyperparameters)

    def state_dict(self) -> dict[str, Any]:
        """State of the surrogate and of the search, and the parameters of the last fit."""
        search = {"search": self.search.state_dict()} if isinstance(self.search, StatefulSearch) else {}
        return {
            "surrogate": self.surrogate.state_dict(),
            **search,
            "hyperparameters": self.hyperparameters,
            "transform": self._transform,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`."""
        self.surrogate.load_state_dict(state["surrogate"])
        if isinstance(self.search, StatefulSearch) and "search" in state:
            self.search.load_state_dict(state["search"])
        self._hyperparameters = dict(state["hyperparameters"])
        self._transform = state.get("transform")

    def _fit(self, surrogate: Surrogate, data: Data, rng: np.random.Generator) -> None:
        measured = _measured(data)
        exact = np.ones(len(measured), dtype=np.bool_) if measured.censored is None else measured.censored == 0
        transform = data.outcomes[data.objective].transform
        if transform.name == "auto" and any(isinstance(item, Query) for item in measured.items):
            # Values of several contexts have offsets of their own: together they do not show a tail.
            _fit_to(surrogate, measured, rng)
            return
        drawn, before, again = rng.bit_generator.state, surrogate.state_dict(), False

        def fit() -> None:
            nonlocal again
            if again:
                # A fit to another transform begins and draws as the first one: what is learned last is all that counts.
                rng.bit_generator.state = drawn
                surrogate.load_state_dict(before)
            again = True
            # Targets are those of the transform as it now is.
            _fit_to(surrogate, data.measured(), rng)

        values = data.values[measured.rows, data.objective]
        found = fit_with_transform(transform, values, exact, fit, surrogate, self._transform)
        if surrogate is self.surrogate:
            self._transform = found


def check_draws(surrogate: Surrogate, acquisition: Acquisition) -> None:
    """Refuse an acquisition function of what draws of the parameters disagree about, for a model that has one.

    Raises:
        InputError: If the surrogate is known to have one draw; it says which have several.
    """
    disagrees = isinstance(acquisition, DisagreementAcquisition) and acquisition.needs_draws
    if disagrees and isinstance(surrogate, GaussianSurrogate) and surrogate.draws < 2:
        raise InputError(
            f"the acquisition function {acquisition.name} asks what draws of the model's parameters disagree about, "
            f"and {type(surrogate).__name__} has one: it needs a fully Bayesian surrogate, such as ssk-bayes or "
            "mixture, or seqopt.models.averaged(surrogate)"
        )


def check_classifier(classifier: object) -> None:
    """Refuse what is no classifier.

    Raises:
        InputError: If it is none.
    """
    if not isinstance(classifier, Classifier) or isinstance(classifier, type):
        raise InputError(
            f"{classifier!r} is not a classifier: give an object with the methods of "
            "seqopt.models.classifiers.Classifier"
        )


def _measured(data: Data) -> Measured:
    """What has been measured, before anything has been learned of its transform: what was learned may not fit it."""
    transform = data.outcomes[data.objective].transform
    if isinstance(transform, LearnedTransform):
        transform.current = Identity()
    return data.measured()


def _fit_to(surrogate: Surrogate, measured: Measured, rng: np.random.Generator) -> None:
    items = cast("list[str]", measured.items)  # queries come only where a surrogate takes contexts
    if isinstance(surrogate, BinomialSurrogate):
        surrogate.fit(items, measured.targets, rng=rng, trials=measured.trials)
        return
    if measured.censored is not None:
        assert isinstance(surrogate, CensoredSurrogate)  # `tell` takes no limits for another
        known, limits = measured.noise_variance, measured.censored
        surrogate.fit(items, measured.targets, rng=rng, noise_variance=known, censored=limits)
        return
    if measured.noise_variance is None:
        surrogate.fit(items, measured.targets, rng=rng)
        return
    assert isinstance(surrogate, NoiseAwareSurrogate)  # `tell` takes no standard errors for another
    surrogate.fit(items, measured.targets, rng=rng, noise_variance=measured.noise_variance)


def _with_measurements(proposals: Sequence[Proposal], surrogate: Surrogate) -> list[Proposal]:
    """Proposals with what the surrogate says of measurements; those in other contexts than the target stay."""
    found = list(proposals)
    places = [place for place, one in enumerate(found) if one.predicted_std is not None and not one.context]
    if places and isinstance(surrogate, MeasurementSurrogate):
        known = [found[place].predicted_std or 0.0 for place in places]
        stds = measurement_std(surrogate, [found[place].key for place in places], known)
        for place, std in zip(places, stds.tolist(), strict=True):
            found[place] = replace(found[place], measurement_std=std)
    return found


def check_contexts(surrogate: Surrogate, space: Space, contexts: Contexts) -> None:
    """Refuse a surrogate that cannot learn from all contexts.

    Raises:
        InputError: If it sees none, or does not know one of them; the message names it.
    """
    if isinstance(getattr(surrogate, "encoder", None), Encoder | FeatureEncoder | JointEncoder):
        raise InputError(
            f"{type(surrogate).__name__} cannot tell contexts apart, and this search has {len(contexts.possible)}: "
            "give strategy=seqopt.strategies.MultiFidelity(), or a surrogate whose encoder is a "
            "seqopt.encoding.fields.FieldEncoder, with a ContextEncoder for each variable, and a kernel on these fields"
        )
    (string,) = space.sample(1, np.random.default_rng(0))
    key = space.key(string)
    for message in unsupported(surrogate, cast("list[str]", [Query(key, one) for one in contexts.possible])).values():
        raise InputError(f"the surrogate cannot learn from a context of this search: {message}")


def _enough(measured: Measured, state: SearchState) -> bool:
    """Whether a model can tell strings apart."""
    if len(measured) < 2 and state.pending:
        return False  # of an asynchronous run, whose first results have yet to come
    if len(measured) < 2:
        logger.warning(
            "%d of %d evaluations succeeded; a model needs two, so the next strings are random",
            len(measured),
            state.size,
        )
        return False
    informative = measured.targets[telling(measured.targets, measured.censored)]
    if informative.min() == informative.max():
        # A model of equal values only knows which strings differ most from those seen, and they are odd ones.
        value = state.data.values[measured.rows[0], state.data.objective]
        if state.data.outcomes[state.data.objective].yes_no and value in (0.0, 1.0):
            what = "a hit" if value else "no hit"
            logger.warning("each of %d results is %s, so the next strings are random", len(measured), what)
            return False
        logger.warning("all %d values equal %g, so the next strings are random", len(measured), value)
        return False
    return True
