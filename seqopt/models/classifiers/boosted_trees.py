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
from seqopt.models.classifiers.protocols import BoolArray, FloatArray
from seqopt.spaces import Space
from seqopt.utils.config import Configurable

if TYPE_CHECKING:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.feature_extraction.text import CountVectorizer

MOST_NGRAMS = 4000
"""Of more n-grams, the most frequent ones count."""


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
        from sklearn.ensemble import HistGradientBoostingClassifier
        from sklearn.feature_extraction.text import CountVectorizer

        found = np.asarray(labels, dtype=np.bool_)
        if found.shape != (len(strings),):
            raise InputError(f"{len(strings)} strings but labels of shape {found.shape}; give one for each")
        if found.all() or not found.any():
            raise InputError("trees need labels of both kinds")
        counts = CountVectorizer(analyzer=self._ngrams, max_features=MOST_NGRAMS)
        table = counts.fit_transform(strings).toarray()
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
        model.fit(table, found)
        return NgramTreesPredictor(counts, model)

    def _ngrams(self, string: str) -> list[tuple[str, ...]]:
        symbols = self.tokenizer.tokenize(string)
        return [
            tuple(symbols[start : start + length])
            for length in range(1, self.longest + 1)
            for start in range(len(symbols) - length + 1)
        ]


class NgramTreesPredictor:
    """Fitted `NgramTrees`; implements `seqopt.models.classifiers.Predictor`.

    Args:
        counts: Counts n-grams.
        model: The trees.
    """

    def __init__(self, counts: CountVectorizer, model: HistGradientBoostingClassifier) -> None:
        self._counts = counts
        self._model = model

    def logits(self, strings: Sequence[str]) -> FloatArray:
        """See `seqopt.models.classifiers.Predictor`."""
        if not len(strings):
            return np.empty(0)
        table = self._counts.transform(strings).toarray()
        return np.asarray(self._model.decision_function(table), dtype=np.float64)

    @property
    def hyperparameters(self) -> dict[str, float]:
        """Numbers of trees and of n-grams."""
        return {"trees": float(self._model.n_iter_), "ngrams": float(len(self._counts.vocabulary_))}
