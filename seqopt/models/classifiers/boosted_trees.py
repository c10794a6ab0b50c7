"""Gradient-boosted trees on the numbers of n-grams in a string.

References:
    Ke, G. et al. (2017). LightGBM: A highly efficient gradient boosting decision tree. NeurIPS 30; here scikit-learn's
        `sklearn.ensemble.HistGradientBoostingClassifier`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from seqopt.encoding import Encoder, Tokenizer
from seqopt.errors import InputError
from seqopt.models.classifiers.protocols import (
    BoolArray,
    FloatArray,
    checked_labels,
    checked_weights,
    labels_of_weights,
)
from seqopt.models.classifiers.string_features import NgramCounts
from seqopt.spaces import Space
from seqopt.utils.config import Configurable

if TYPE_CHECKING:
    from sklearn.ensemble import HistGradientBoostingClassifier


class NgramTrees(Configurable):
    """Gradient-boosted trees on counts of n-grams; implements `seqopt.models.classifiers.Classifier`.

    Args:
        longest: Most symbols of an n-gram; all lengths from 1 count.
        tokenizer: A tokeniser or its name. By default the one of the space that is searched, or characters where there
            is none.
        trees: Boosting rounds.
        learning_rate: Of each round.

    Raises:
        InputError: For a number out of its range.

    Example:
        >>> strings = ["AAB", "ABA", "AAA", "BBB", "BAB", "BBA"]
        >>> labels = np.array([True, True, True, False, False, False])
        >>> predictor = NgramTrees(longest=2).fit(strings, labels, rng=np.random.default_rng(0))
        >>> logits = predictor.logits(["AAAA", "BBBB"])
        >>> bool(logits[0] > logits[1])
        True
    """

    def __init__(
        self,
        longest: int = 3,
        *,
        tokenizer: str | Tokenizer | None = None,
        trees: int = 50,
        learning_rate: float = 0.1,
    ) -> None:
        for name, number in (("longest", longest), ("trees", trees)):
            if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 1:
                raise InputError(f"{name} is {number!r}; it must be an integer of at least 1")
        if not learning_rate > 0:
            raise InputError(f"learning_rate is {learning_rate!r}; expected a positive number")
        self.longest = int(longest)
        self.trees = int(trees)
        self.learning_rate = float(learning_rate)
        self.tokenizer: Tokenizer = Encoder("characters" if tokenizer is None else tokenizer).tokenizer
        self._tokenizer_chosen = tokenizer is not None

    def config_arguments(self) -> dict[str, object]:
        """See `seqopt.utils.config.Configurable`."""
        tokenizer = self.tokenizer if self._tokenizer_chosen else None
        return {
            "longest": self.longest,
            "tokenizer": tokenizer,
            "trees": self.trees,
            "learning_rate": self.learning_rate,
        }

    def bind(self, space: Space) -> None:
        """Take the tokeniser of ``space``, unless one was chosen."""
        if not self._tokenizer_chosen:
            self.tokenizer = space.encoder.tokenizer

    def unsupported(self, strings: Sequence[str]) -> dict[int, str]:
        """Nothing is: n-grams that were never seen do not count."""
        return {}

    def fit(self, strings: Sequence[str], labels: BoolArray, *, rng: np.random.Generator) -> NgramTreesPredictor:
        """See `seqopt.models.classifiers.Classifier`; one number is drawn from ``rng``.

        Raises:
            InputError: If the numbers differ, or only one label is there.
        """
        found = checked_labels(strings, labels).astype(np.float64)
        return self.fit_weighted(strings, found, 1.0 - found, rng=rng)

    def fit_weighted(
        self, strings: Sequence[str], positive: FloatArray, negative: FloatArray, *, rng: np.random.Generator
    ) -> NgramTreesPredictor:
        """See `seqopt.models.classifiers.WeightedClassifier`; one number is drawn from ``rng``.

        Raises:
            InputError: If the numbers differ, a weight is negative, or only one label has weight.
        """
        from sklearn.ensemble import HistGradientBoostingClassifier

        rows, labels, weights = labels_of_weights(*checked_weights(strings, positive, negative))
        counts = NgramCounts(self.tokenizer, self.longest, strings)
        # Few strings are known: leaves may hold two of them, and shrink instead.
        model = HistGradientBoostingClassifier(
            max_iter=self.trees,
            learning_rate=self.learning_rate,
            min_samples_leaf=2,
            max_leaf_nodes=15,
            l2_regularization=1.0,
            early_stopping=False,
            random_state=int(rng.integers(2**31)),
        )
        plain = bool((weights == 1.0).all())
        model.fit(counts(strings)[rows], labels, sample_weight=None if plain else weights)
        return NgramTreesPredictor(counts, model)


class NgramTreesPredictor:
    """Fitted `NgramTrees`; implements `seqopt.models.classifiers.Predictor`.

    Args:
        counts: Counts n-grams.
        model: The trees.
    """

    def __init__(self, counts: NgramCounts, model: HistGradientBoostingClassifier) -> None:
        self._counts = counts
        self._model = model

    def logits(self, strings: Sequence[str]) -> FloatArray:
        """See `seqopt.models.classifiers.Predictor`."""
        if not len(strings):
            return np.empty(0)
        table = self._counts(strings)
        return np.asarray(self._model.decision_function(table), dtype=np.float64)

    @property
    def hyperparameters(self) -> dict[str, float]:
        """Numbers of trees and of n-grams."""
        return {"trees": float(self._model.n_iter_), "ngrams": float(len(self._counts))}
