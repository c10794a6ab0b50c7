"""Which candidates of a large pool a costly score looks at: those that a cheap one puts first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from seqopt.encoding import MorganFingerprint
from seqopt.errors import InputError
from seqopt.models.classifiers import LogisticRegression
from seqopt.scorers import PoolScorer, Scoring
from seqopt.scorers.shortlist import MeanPoolScorer, MeanSurrogate, ShortlistScoring
from seqopt.scorers.spread import spread_means
from seqopt.spaces import PoolSpace, Space
from seqopt.spaces.spread import spread_of
from seqopt.strategies.density_ratio import BORE, LFBO
from seqopt.strategies.protocols import SearchState
from seqopt.utils.arguments import checked_integer
from seqopt.utils.config import Configurable
from seqopt.utils.progress import doing

if TYPE_CHECKING:
    from seqopt.models import Surrogate

PREFILTERS = ("lfbo", "mean")
"""Prefilters with a name."""

KEEP = 50_000
"""Candidates that a prefilter keeps where nobody says how many."""

ALL = 1_000_000
"""Candidates up to which, by default, the acquisition function looks at all of them.

Of 249,456, a shortlist of the 5,000 of largest predicted mean had the whole batch that GIBBON chose among all
(``docs/performance.md``, pools of millions).
"""


class Prefilter(Configurable):
    """Keeps the candidates of a pool that a cheap score puts first; among them a batch is chosen exactly.

    An acquisition function of a Gaussian process costs n^2 operations for each candidate, with n results, and for a
    batch it is computed again and again. With a prefilter that is done for ``keep`` candidates, however many there are;
    the cheap score is computed once for each of the others.

    What is lost: a candidate that the cheap score ranks below the ``keep`` best is not chosen, however uncertain the
    model is of it (``docs/how-to/large-pools.md`` says how much that was).

    Args:
        by: ``"lfbo"``, a classifier of good and other strings that is fitted anew in each step
            (`seqopt.strategies.LFBO`; logistic regression, on the fingerprints of molecules or the n-grams of other
            strings); ``"mean"``, the mean that the surrogate itself predicts; or a `seqopt.strategies.BORE` of your
            own.
        keep: How many candidates are kept, at least 1. A larger batch keeps as many as it has members.

    Raises:
        InputError: For another name, or a number out of its range.

    Example:
        >>> from seqopt import Optimizer
        >>> from seqopt.strategies import ModelBased, Prefilter
        >>> pool = [a + b + c for a in "ACGT" for b in "ACGT" for c in "ACGT"]
        >>> strategy = ModelBased("ngrams", "gibbon", prefilter=Prefilter("lfbo", keep=20))
        >>> optimizer = Optimizer(pool, strategy=strategy, initial=8)
        >>> strings = optimizer.ask()
        >>> optimizer.tell(strings, [string.count("G") for string in strings])
        >>> len(optimizer.ask(4))
        4
    """

    def __init__(self, by: str | BORE = "lfbo", keep: int = KEEP) -> None:
        if not (by in PREFILTERS if isinstance(by, str) else isinstance(by, BORE)):
            raise InputError(f"unknown prefilter {by!r}: choose {', '.join(PREFILTERS)}, or give a BORE or LFBO object")
        self.by = by
        self.keep = checked_integer("keep", keep, 1)
        self._strategy: BORE | None = None

    def start(self, space: Space, surrogate: Surrogate) -> None:
        """Prepare for a space, or refuse what does not fit; see `seqopt.strategies.CheckedStrategy`.

        Raises:
            InputError: For a space that is no pool, or a surrogate without the mean at one.
        """
        if not isinstance(space, PoolSpace):
            raise InputError(
                f"a prefilter chooses among the candidates of a list, and a {type(space).__name__} is not one: leave "
                "the prefilter out"
            )
        if self.by == "mean":
            if not isinstance(surrogate, MeanSurrogate):
                raise InputError(
                    f"{type(surrogate).__name__} does not predict the mean of a pool without variances: choose the "
                    'prefilter "lfbo"'
                )
            return
        self._strategy = self.by if isinstance(self.by, BORE) else LFBO(cheap_classifier(space))
        self._strategy.start(space)

    def applied(
        self, scoring: Scoring, n: int, surrogate: Surrogate, state: SearchState, rng: np.random.Generator
    ) -> Scoring:
        """The same score, on the shortlist; as it is where a classifier has nothing to learn from yet.

        Args:
            scoring: What the search maximises.
            n: Batch size.
            surrogate: The fitted surrogate.
            state: Where the search stands.
            rng: The only source of randomness.
        """
        keep = max(self.keep, n)
        if self.by == "mean":

            def means(pool: PoolSpace) -> PoolScorer:
                assert isinstance(surrogate, MeanSurrogate)
                spread = spread_of(pool)
                if spread is not None:
                    return spread_means(surrogate, pool, spread)
                with doing(f"predicting the mean of {len(pool):,} candidates"):
                    return MeanPoolScorer(surrogate, pool)

            return ShortlistScoring(scoring, means, keep)
        assert self._strategy is not None
        cheap = self._strategy.scoring(state, rng)
        return scoring if cheap is None else ShortlistScoring(scoring, cheap.pool_scorer, keep)


def default_prefilter(space: Space, surrogate: Surrogate) -> Prefilter | None:
    """What `seqopt.strategies.ModelBased` uses where nobody says: none for up to `ALL` candidates.

    Above, the mean that the surrogate predicts; a classifier where the surrogate has none.

    Example:
        >>> from seqopt import CandidateSet
        >>> from seqopt.models import resolve_surrogate
        >>> space = CandidateSet(["CCO", "CCN", "CCC"])
        >>> default_prefilter(space, resolve_surrogate("ngrams", space)) is None
        True
    """
    if not isinstance(space, PoolSpace) or len(space) <= ALL:
        return None
    return Prefilter("mean" if isinstance(surrogate, MeanSurrogate) else "lfbo")


def cheap_classifier(space: Space) -> LogisticRegression:
    """A classifier that scores millions of strings in minutes: logistic regression.

    On counts of Morgan environments for molecules, which a prepared pool has at hand; else on counts of n-grams.
    """
    return classifier_of(space.kind)


def classifier_of(kind: str) -> LogisticRegression:
    """`cheap_classifier` of strings of a kind."""
    return LogisticRegression(MorganFingerprint(counts=True)) if kind == "molecule" else LogisticRegression()


def checked_prefilter(given: Prefilter | str | None) -> Prefilter | None:
    """A prefilter, which may be given by its name; ``"none"`` is none.

    Raises:
        InputError: For what is none.
    """
    if given is None or isinstance(given, Prefilter):
        return given
    if given == "none":
        return None
    if isinstance(given, str):
        return Prefilter(given)
    raise InputError(f"{given!r} is no prefilter: give one of {', '.join(PREFILTERS)}, or a Prefilter")
