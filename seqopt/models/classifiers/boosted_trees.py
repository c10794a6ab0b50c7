"""Gradient-boosted trees of scikit-learn, on the numbers of n-grams in a string or on other features of it.

References:
    Ke, G. et al. (2017). LightGBM: A highly efficient gradient boosting decision tree. NeurIPS 30; here scikit-learn's
        `sklearn.ensemble.HistGradientBoostingClassifier`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from seqopt.encoding import Encoder, Featurizer, Tokenizer
from seqopt.errors import InputError
from seqopt.models.classifiers.protocols import (
    BoolArray,
    FloatArray,
    checked_labels,
    checked_weights,
    labels_of_weights,
)
from seqopt.models.classifiers.string_features import NgramCounts
from seqopt.models.classifiers.tabular import Logits, TabularClassifier
from seqopt.spaces import Space
from seqopt.utils.arguments import checked_integer
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
        rows, labels, weights = labels_of_weights(*checked_weights(strings, positive, negative))
        counts = NgramCounts(self.tokenizer, self.longest, strings)
        model = _boosted(counts(strings)[rows], labels, weights, self.trees, self.learning_rate, rng)
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


class BoostedTrees(TabularClassifier):
    """Gradient-boosted trees of scikit-learn on any features; with counts of n-grams, `NgramTrees` is the same.

    Args:
        features: See `TabularClassifier`.
        trees: Boosting rounds.
        learning_rate: Of each round.
        longest: See `TabularClassifier`.
        tokenizer: See `TabularClassifier`.

    Raises:
        InputError: For features that are none, or a number out of its range.

    Example:
        >>> strings, labels = ["AAB", "ABA", "AAA", "BBB", "BAB", "BBA"], np.array([True] * 3 + [False] * 3)
        >>> predictor = BoostedTrees("one-hot").fit(strings, labels, rng=np.random.default_rng(0))
        >>> logits = predictor.logits(["AAA", "BBB"])
        >>> bool(logits[0] > logits[1])
        True
    """

    def __init__(
        self,
        features: str | Featurizer | None = None,
        *,
        trees: int = 50,
        learning_rate: float = 0.1,
        longest: int = 3,
        tokenizer: str | Tokenizer | None = None,
    ) -> None:
        super().__init__(features, longest=longest, tokenizer=tokenizer)
        self.trees = checked_integer("trees", trees, 1)
        if not 0 < learning_rate < float("inf"):
            raise InputError(f"learning_rate is {learning_rate!r}; expected a positive number")
        self.learning_rate = float(learning_rate)

    def config_arguments(self) -> dict[str, object]:
        """See `seqopt.utils.config.Configurable`."""
        return super().config_arguments() | {"trees": self.trees, "learning_rate": self.learning_rate}

    def _fitted(self, table: FloatArray, labels: BoolArray, weights: FloatArray, rng: np.random.Generator) -> Logits:
        # Columns in which all strings are alike tell nothing, and each costs as much as others.
        varying = np.flatnonzero((table != table[0]).any(axis=0))
        if not len(varying):
            varying = np.arange(min(1, table.shape[1]))
        model = _boosted(table[:, varying], labels, weights, self.trees, self.learning_rate, rng)
        return lambda rows: np.asarray(model.decision_function(rows[:, varying]), dtype=np.float64)


def _boosted(
    table: FloatArray,
    labels: BoolArray,
    weights: FloatArray,
    trees: int,
    learning_rate: float,
    rng: np.random.Generator,
) -> HistGradientBoostingClassifier:
    from sklearn.ensemble import HistGradientBoostingClassifier

    # Few strings are known: leaves may hold two of them, and shrink instead.
    model = HistGradientBoostingClassifier(
        max_iter=trees,
        learning_rate=learning_rate,
        min_samples_leaf=2,
        max_leaf_nodes=15,
        l2_regularization=1.0,
        early_stopping=False,
        random_state=int(rng.integers(2**31)),
    )
    plain = bool((weights == 1.0).all())
    model.fit(table, labels, sample_weight=None if plain else weights)
    return model
