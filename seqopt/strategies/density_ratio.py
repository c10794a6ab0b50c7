r"""Bayesian optimisation by a classifier of good and bad strings, without a model of their values.

With y the value of a string x and t the value that a share gamma of all exceed, a classifier that is fitted by log loss
to the labels z = [y >= t] learns P(y >= t | x): the probability of improvement over t. (That it equals the expected
improvement up to a constant, as the paper says, needs that strings above t are distributed alike whatever t is.)

References:
    Tiao, L. C. et al. (2021). BORE: Bayesian optimization by density-ratio estimation. ICML.
    Tiao, L. C. (2023). Probabilistic machine learning in the age of deep learning. PhD thesis, chapter 5 (the
        correction).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from seqopt.data import Contexts, Item, key_of
from seqopt.errors import InputError, ModelError
from seqopt.kernels import SubsequenceKernel
from seqopt.models.classifiers import (
    Classifier,
    KernelLogistic,
    Predictor,
    SpaceBoundClassifier,
    WeightedClassifier,
)
from seqopt.scorers import Scoring
from seqopt.scorers.classifier import ClassifierScoring
from seqopt.scorers.diverse import DiverseScoring
from seqopt.scorers.limits import limited
from seqopt.scorers.shortlist import ShortlistScoring
from seqopt.search import Proposal, Search
from seqopt.search.defaults import default_search
from seqopt.search.protocols import CheckedSearch, PartsCheckedSearch, SomeSearch, StatefulSearch
from seqopt.spaces import Space
from seqopt.strategies.protocols import SearchState
from seqopt.strategies.random import filled_up, random_proposals
from seqopt.utils.arguments import checked_integer
from seqopt.utils.config import Configurable

logger = logging.getLogger(__name__)

BATCHES = ("refit", "dpp")
"""How a batch is kept from being all alike."""


class BORE(Configurable):
    """Proposes the strings that a classifier finds most likely to be among the best; implements
    `seqopt.strategies.Strategy`.

    The share ``gamma`` of the evaluated strings with the largest values is labelled good, the others bad, failed ones
    among them (`rank_labels`). Pending strings and those chosen for the same batch count as bad. What has been
    evaluated is not proposed again. While only one label is there, strings are random.

    Only the order of values counts: there is no prediction of them, and known noise is of no use. A censored value
    ranks by its limit, and its string is left out where that does not decide its label: one that is better than a limit
    among the bad, or worse than a limit among the good.

    Args:
        classifier: Learns the labels; by default `seqopt.models.classifiers.KernelLogistic`.
        gamma: Share of good strings, inside (0, 1).
        search: A `seqopt.search.Search`, or ``"auto"``: see `seqopt.strategies.default_search`.
        keep: Fill a batch from so many candidates of a pool, those of largest score at first; by default from all. Of
            a pool of millions, all are then scored once for a batch and not once for each of its members.
        batch: How strings of one batch differ. ``"refit"``: each that is chosen, or pending, counts as bad for the
            next one, by a classifier that is fitted again; after the first 39, whenever the batch has grown by a
            twentieth (`seqopt.scorers.classifier.ClassifierScoring`). ``"dpp"``: by a determinantal point process with
            the probability as quality and a sub-sequence kernel as similarity, with one fit; see
            `seqopt.scorers.DiverseScoring`.
        epsilon: Each proposal is a random string instead with this probability. Strings that are among the best keep
            a high score, so that a search may stay where it is.

    Raises:
        InputError: For a gamma outside (0, 1), an epsilon outside [0, 1], what is not a classifier, another ``batch``,
            or a ``keep`` below 1.

    Example:
        >>> from seqopt import Optimizer
        >>> optimizer = Optimizer(["AAA", "AAB", "ABB", "BBB", "BBA"], strategy=BORE(), initial=3)
        >>> strings = optimizer.ask()
        >>> optimizer.tell(strings, [string.count("B") for string in strings])
        >>> len(optimizer.ask(2))
        2
    """

    takes_noise_variance = False
    takes_censored = True

    def __init__(
        self,
        classifier: Classifier | None = None,
        *,
        gamma: float = 1 / 3,
        search: SomeSearch | str = "auto",
        batch: str = "refit",
        epsilon: float = 0.0,
        keep: int | None = None,
    ) -> None:
        if not 0 <= epsilon <= 1:
            raise InputError(f"epsilon is {epsilon!r}; expected a probability, from 0 to 1")
        self.epsilon = float(epsilon)
        self.keep = None if keep is None else checked_integer("keep", keep, 1)
        if batch not in BATCHES:
            raise InputError(f"batch is {batch!r}; expected {' or '.join(map(repr, BATCHES))}")
        self.batch = batch
        if not 0 < gamma < 1:
            raise InputError(f"gamma is {gamma!r}; expected a share inside (0, 1)")
        self.classifier: Classifier = KernelLogistic() if classifier is None else classifier
        if not isinstance(self.classifier, Classifier) or isinstance(self.classifier, type):
            raise InputError(
                f"{classifier!r} is not a classifier: give an object with the methods of "
                "seqopt.models.classifiers.Classifier"
            )
        if isinstance(search, str) and search != "auto":
            raise InputError(f"unknown search {search!r}: choose auto, or give an object")
        self.gamma = float(gamma)
        self._search = search
        self._given_search = search
        self._hyperparameters: dict[str, float] = {}

    def config_arguments(self) -> dict[str, Any]:
        """See `seqopt.utils.config.Configurable`."""
        further: dict[str, Any] = {} if self.batch == "refit" else {"batch": self.batch}
        if self.epsilon:
            further["epsilon"] = self.epsilon
        if self.keep is not None:
            further["keep"] = self.keep
        return {"classifier": self.classifier, "gamma": self.gamma, "search": self._given_search, **further}

    def start(self, space: Space, contexts: Contexts | None = None) -> None:
        """See `seqopt.strategies.protocols.CheckedStrategy`.

        Raises:
            InputError: If there are several ways to measure, or the search does not fit the space or a classifier.
        """
        if contexts is not None:
            raise InputError("BORE compares values with one another, and those of several contexts are not comparable")
        self._hyperparameters = {}
        self._search = default_search(space) if isinstance(self._given_search, str) else self._given_search
        if isinstance(self._search, PartsCheckedSearch):
            raise InputError(
                f"{type(self._search).__name__} needs a surrogate with an acquisition function, and BORE has a "
                "classifier: choose another search"
            )
        if isinstance(self._search, CheckedSearch):
            self._search.check_space(space)
        if isinstance(self.classifier, SpaceBoundClassifier):
            self.classifier.bind(space)

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
        scoring = self.scoring(state, rng)
        if scoring is None:
            return random_proposals(n, state, rng, unsupported=self.unsupported)
        wanted = n
        if self.epsilon:
            n -= int(rng.binomial(n, self.epsilon))
        if not n:
            return random_proposals(wanted, state, rng, unsupported=self.unsupported)
        # A classifier of a user's own may have learned nothing else.
        self._hyperparameters = dict(getattr(scoring.predictor, "hyperparameters", None) or {})
        search = cast("Search[Space]", self.search)  # `start` has held it against the space
        score: Scoring = limited(scoring, state.batch)
        if self.keep is not None:
            score = ShortlistScoring(score, scoring.pool_scorer, max(self.keep, n))
        proposals = search.propose(n, space=state.space, scoring=score, excluded=state.excluded, rng=rng)
        return filled_up(proposals, wanted, state, rng, unsupported=self.unsupported)

    def scoring(self, state: SearchState, rng: np.random.Generator) -> ClassifierScoring | DiverseScoring | None:
        """What the inner search maximises; `None` while only one label is there."""
        keys, labels, targets = self._labelled(state, rng)
        if labels.all() or not labels.any():
            return None
        measured = targets[~np.isnan(targets)]
        if measured.min() == measured.max():  # labels of equal values are drawn by lot
            return None
        weights = self._weights(labels, targets)
        if weights is not None and not weights.any():
            return None
        pending = [key_of(item) for item in state.pending]
        refused = self.unsupported(pending)
        pending = [key for index, key in enumerate(pending) if index not in refused]
        if self.batch == "refit":
            return ClassifierScoring(self.classifier, keys, labels, pending=pending, weights=weights, rng=rng)
        kernel = SubsequenceKernel(order=5, match_decay=0.8, gap_decay=0.5)
        return DiverseScoring(
            self._fitted(keys, labels, weights, rng),
            kernel,
            state.space.encoder,
            strings=keys,
            unsupported=self.unsupported,
            pending=pending,
            rng=rng,
        )

    def _weights(
        self, labels: npt.NDArray[np.bool_], targets: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float64] | None:
        """How much each string speaks for being good; `None` for plain labels."""
        return None

    def _fitted(
        self,
        keys: Sequence[str],
        labels: npt.NDArray[np.bool_],
        weights: npt.NDArray[np.float64] | None,
        rng: np.random.Generator,
    ) -> Predictor:
        if weights is None:
            return self.classifier.fit(keys, labels, rng=rng)
        learner = cast("WeightedClassifier", self.classifier)
        return learner.fit_weighted(keys, weights, np.ones(len(keys)), rng=rng)

    def recommend(self, state: SearchState, rng: np.random.Generator) -> str:
        """The measured string that is most likely to be among the best; of equals, the one of largest value.

        Raises:
            ModelError: If nothing has been measured.
        """
        keys, labels, targets = self._labelled(state, rng)
        if np.isnan(targets).all():
            raise ModelError("nothing has been measured yet: tell some values first")
        logits = np.zeros(len(keys))
        weights = self._weights(labels, targets)
        if labels.any() and not labels.all() and (weights is None or weights.any()):
            logits = self._fitted(keys, labels, weights, rng).logits(keys)
        measured = np.flatnonzero(~np.isnan(targets))
        return keys[max(measured.tolist(), key=lambda row: (logits[row], targets[row]))]

    def unsupported(self, items: Sequence[Item]) -> dict[int, str]:
        """What the classifier cannot take."""
        found = self.classifier.unsupported([key_of(item) for item in items])
        if not isinstance(found, dict):
            raise InputError(
                f"{type(self.classifier).__name__}.unsupported returned {found!r}; expected a dict of the reasons why "
                "strings cannot be classified, by their indices, which is empty where all can"
            )
        return found

    @property
    def hyperparameters(self) -> dict[str, float]:
        """Those of the classifier that made the last proposals."""
        return dict(self._hyperparameters)

    def state_dict(self) -> dict[str, Any]:
        """State of the search and what was learned last; classifiers are fitted anew at each step."""
        search = {"search": self.search.state_dict()} if isinstance(self.search, StatefulSearch) else {}
        return {**search, "hyperparameters": self.hyperparameters}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`."""
        if isinstance(self.search, StatefulSearch) and "search" in state:
            self.search.load_state_dict(state["search"])
        self._hyperparameters = dict(state["hyperparameters"])

    def _labelled(
        self, state: SearchState, rng: np.random.Generator
    ) -> tuple[list[str], npt.NDArray[np.bool_], npt.NDArray[np.float64]]:
        """Keys, labels and values (NaN where there is none) of the strings that can be classified."""
        data, measured = state.data, state.data.measured()
        targets = np.full(len(data), np.nan)
        targets[measured.rows] = measured.targets
        keys = [query.key for query in data.queries]
        refused = self.unsupported(keys)
        kept = [row for row in range(len(data)) if row not in refused]
        labels = rank_labels(targets[kept], self.gamma, rng)
        if measured.censored is not None:
            sides = np.zeros(len(data), dtype=np.int8)
            sides[measured.rows] = measured.censored
            decided = np.where(labels, sides[kept] >= 0, sides[kept] <= 0)
            if (decided & ~np.isnan(targets[kept])).any():
                kept = [row for row, known in zip(kept, decided.tolist(), strict=True) if known]
                labels = labels[decided]
        return [keys[row] for row in kept], labels, targets[kept]


class LFBO(BORE):
    r"""Proposes the strings of largest expected improvement over the best that are not good, by a classifier.

    As `BORE`, but a good string speaks for its label as much as it is better, U = max(y - t, 0), and every string, good
    ones included, speaks for the other label with weight 1. The odds of a classifier that is fitted by log loss to such
    weights are the expectation of U: the expected improvement over t, where `BORE` has the probability of improvement.

    The threshold t is the largest value that is not labelled good, and U is divided by its mean over all strings,
    failed ones among them: units and offsets of values do not matter, though other transforms do. Where no string
    is better than t, as where all values are equal, strings are random. A few outliers may outweigh all others:
    `effective_size`.

    Args:
        classifier: Learns weighted labels (`seqopt.models.classifiers.WeightedClassifier`); by default
            `seqopt.models.classifiers.KernelLogistic`.
        gamma: See `BORE`.
        search: See `BORE`.
        batch: See `BORE`.
        epsilon: See `BORE`.
        keep: See `BORE`.

    Raises:
        InputError: As `BORE`, and for a classifier that takes no weights.

    References:
        Song, J. et al. (2022). A general recipe for likelihood-free Bayesian optimization. ICML.

    Example:
        >>> from seqopt import Optimizer
        >>> optimizer = Optimizer(["AAA", "AAB", "ABB", "BBB", "BBA"], strategy=LFBO(), initial=3)
        >>> strings = optimizer.ask()
        >>> optimizer.tell(strings, [string.count("B") for string in strings])
        >>> len(optimizer.ask(2))
        2
    """

    # Only a limit of a value is known, and improvements over it are not.
    takes_censored = False

    def __init__(
        self,
        classifier: Classifier | None = None,
        *,
        gamma: float = 1 / 3,
        search: SomeSearch | str = "auto",
        batch: str = "refit",
        epsilon: float = 0.0,
        keep: int | None = None,
    ) -> None:
        super().__init__(classifier, gamma=gamma, search=search, batch=batch, epsilon=epsilon, keep=keep)
        if not isinstance(self.classifier, WeightedClassifier):
            raise InputError(
                f"{type(self.classifier).__name__} takes no weights: LFBO needs the method fit_weighted of "
                "seqopt.models.classifiers.WeightedClassifier; BORE does without"
            )

    def _weights(
        self, labels: npt.NDArray[np.bool_], targets: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float64] | None:
        others = targets[~labels & ~np.isnan(targets)]
        # Where all that is not good has failed, good strings are alike.
        weights = improvements(targets, float(others.max())) if len(others) else labels / max(labels.mean(), 1e-300)
        if weights.any():
            logger.debug("%.1f of %d strings count as good", effective_size(weights), len(weights))
        return weights


def improvements(targets: npt.ArrayLike, threshold: float) -> npt.NDArray[np.float64]:
    """Weights U / mean(U) of n strings, U = max(y - threshold, 0); of failed ones 0, and all 0 if none is better.

    Args:
        targets: y, n, larger is better; NaN for failed ones.
        threshold: t.

    Example:
        >>> improvements([1.0, 1.0, 10.0, -1.0, float("nan")], 0.0).round(3).tolist()
        [0.417, 0.417, 4.167, 0.0, 0.0]
    """
    found = np.nan_to_num(np.asarray(targets, dtype=np.float64) - threshold, nan=0.0)
    gained = np.maximum(found, 0.0)
    # The mean of very large numbers may overflow.
    scaled = gained / gained.max(initial=0.0) if gained.any() else gained
    return np.asarray(scaled / scaled.mean() if gained.any() else scaled, dtype=np.float64)


def effective_size(weights: npt.ArrayLike) -> float:
    """How many equal weights say as much as these: (sum w)^2 / sum w^2.

    Example:
        >>> effective_size([1.0, 1.0, 0.0]), round(effective_size([100.0, 1.0, 1.0]), 2)
        (2.0, 1.04)
    """
    found = np.asarray(weights, dtype=np.float64)
    return float(found.sum() ** 2 / (found**2).sum())


def rank_labels(values: npt.ArrayLike, gamma: float, rng: np.random.Generator | None = None) -> npt.NDArray[np.bool_]:
    """Which of n values are among the ceil(gamma n) largest; NaN, a failed evaluation, never is.

    Args:
        values: n, larger is better.
        gamma: Share of good ones, inside (0, 1).
        rng: Orders equal values; by default the first of them count as larger.

    Example:
        >>> rank_labels([1.0, 3.0, float("nan"), 2.0], 0.5).tolist()
        [False, True, False, True]
    """
    found = np.asarray(values, dtype=np.float64)
    # The product may exceed an integer by rounding.
    count = max(1, math.ceil(gamma * len(found) - 1e-9))
    order = np.arange(len(found)) if rng is None else rng.permutation(len(found))
    ranked = np.lexsort((order, -np.where(np.isnan(found), -np.inf, found)))
    labels = np.zeros(len(found), dtype=np.bool_)
    labels[ranked[:count]] = True
    return labels & ~np.isnan(found)
