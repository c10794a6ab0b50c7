"""Classifiers of tables, on features of strings: random forests, boosted trees, logistic regression, a perceptron.

A weighted label is a row of the table for each label that has a weight, with that weight.

References:
    Breiman, L. (2001). Random forests. Machine Learning 45, 5-32.
    Chen, T. and Guestrin, C. (2016). XGBoost: a scalable tree boosting system. KDD.
    Ke, G. et al. (2017). LightGBM: a highly efficient gradient boosting decision tree. NeurIPS 30.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

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
from seqopt.models.classifiers.string_features import Columns, Featurized, check_features, learned_columns
from seqopt.spaces import Space
from seqopt.utils.arguments import checked_integer
from seqopt.utils.config import Configurable

LEAST_PROBABILITY = 1e-6
"""Probabilities of trees, which are shares, are kept this far from 0 and 1: logits are finite numbers."""

Logits = Callable[[FloatArray], FloatArray]
"""From a table to the logit of each row."""


class TabularClassifier(Configurable):
    """What classifiers of tables share; implements `seqopt.models.classifiers.WeightedClassifier`.

    Args:
        features: ``"ngrams"`` (counts), ``"one-hot"`` (symbols at places), or a `seqopt.encoding.Featurizer` such as
            `seqopt.encoding.MorganFingerprint`.
        longest: Most symbols of an n-gram.
        tokenizer: A tokeniser or its name. By default the one of the space that is searched, or characters where there
            is none.

    Raises:
        InputError: For features that are none, or a number out of its range.
    """

    default_features = "ngrams"

    takes_sparse = False
    """Whether features that are sparse are learned from, and strings scored, as sparse tables."""

    def __init__(
        self,
        features: str | Featurizer | None = None,
        *,
        longest: int = 3,
        tokenizer: str | Tokenizer | None = None,
    ) -> None:
        self.features: str | Featurizer = self.default_features if features is None else features
        check_features(self.features)
        self.longest = checked_integer("longest", longest, 1)
        self.tokenizer: Tokenizer = Encoder("characters" if tokenizer is None else tokenizer).tokenizer
        self._tokenizer_chosen = tokenizer is not None

    def config_arguments(self) -> dict[str, object]:
        """See `seqopt.utils.config.Configurable`."""
        tokenizer = self.tokenizer if self._tokenizer_chosen else None
        return {"features": self.features, "longest": self.longest, "tokenizer": tokenizer}

    def bind(self, space: Space) -> None:
        """Take the tokeniser of ``space``, unless one was chosen."""
        if not self._tokenizer_chosen:
            self.tokenizer = space.encoder.tokenizer

    def unsupported(self, strings: Sequence[str]) -> dict[int, str]:
        """Strings that a featurizer cannot read; empty for other features."""
        find = getattr(self.features, "unsupported", None)
        return {} if find is None else dict(find(list(strings)))

    def fit(self, strings: Sequence[str], labels: BoolArray, *, rng: np.random.Generator) -> TabularPredictor:
        """See `seqopt.models.classifiers.Classifier`.

        Raises:
            InputError: If the numbers differ, or only one label is there.
        """
        found = checked_labels(strings, labels).astype(np.float64)
        return self.fit_weighted(strings, found, 1.0 - found, rng=rng)

    def fit_weighted(
        self, strings: Sequence[str], positive: FloatArray, negative: FloatArray, *, rng: np.random.Generator
    ) -> TabularPredictor:
        """See `seqopt.models.classifiers.WeightedClassifier`.

        Raises:
            InputError: If the numbers differ, a weight is negative, or only one label has weight.
        """
        plus, minus = checked_weights(strings, positive, negative)
        columns = learned_columns(self.features, self.tokenizer, self.longest, strings)
        rows, labels, weights = labels_of_weights(plus, minus)
        table = columns.sparse(strings) if self.takes_sparse and isinstance(columns, Featurized) else columns(strings)
        logits = self._fitted(table[rows], labels, weights, rng)
        return TabularPredictor(columns, logits, sparse=self.takes_sparse)

    @abstractmethod
    def _fitted(self, table: FloatArray, labels: BoolArray, weights: FloatArray, rng: np.random.Generator) -> Logits:
        """Logits by what was learned from n rows with labels and weights."""


class TabularPredictor:
    """A fitted `TabularClassifier`; implements `seqopt.models.classifiers.Predictor`.

    Args:
        columns: From strings to the table.
        logits: From the table to logits.
        sparse: Whether ``logits`` takes sparse tables, which are used where the columns are features that are sparse.
    """

    def __init__(self, columns: Columns, logits: Logits, *, sparse: bool = False) -> None:
        self._columns = columns
        self._logits = logits
        self._sparse = sparse and isinstance(columns, Featurized)

    def logits(self, strings: Sequence[str]) -> FloatArray:
        """See `seqopt.models.classifiers.Predictor`."""
        if not len(strings):
            return np.empty(0)
        rows = self._columns.sparse(strings) if self._sparse else self._columns(strings)  # type: ignore[attr-defined]
        return np.asarray(self._logits(rows), dtype=np.float64)

    @property
    def hyperparameters(self) -> dict[str, float]:
        """Nothing was learned besides the predictions."""
        return {}


class RandomForest(TabularClassifier):
    """A random forest of scikit-learn, with its defaults: 100 trees of unlimited depth.

    The probability is the mean of those of the trees, so many strings have the same one.

    Args:
        features: See `TabularClassifier`.
        trees: How many.
        longest: See `TabularClassifier`.
        tokenizer: See `TabularClassifier`.

    Example:
        >>> strings, labels = ["AAB", "ABA", "AAA", "BBB", "BAB", "BBA"], np.array([True] * 3 + [False] * 3)
        >>> logits = RandomForest(trees=20).fit(strings, labels, rng=np.random.default_rng(0)).logits(["AAAA", "BBBB"])
        >>> bool(logits[0] > logits[1])
        True
    """

    def __init__(
        self,
        features: str | Featurizer | None = None,
        *,
        trees: int = 100,
        longest: int = 3,
        tokenizer: str | Tokenizer | None = None,
    ) -> None:
        super().__init__(features, longest=longest, tokenizer=tokenizer)
        self.trees = checked_integer("trees", trees, 1)

    def config_arguments(self) -> dict[str, object]:
        """See `seqopt.utils.config.Configurable`."""
        return super().config_arguments() | {"trees": self.trees}

    def _fitted(self, table: FloatArray, labels: BoolArray, weights: FloatArray, rng: np.random.Generator) -> Logits:
        from sklearn.ensemble import RandomForestClassifier

        model = RandomForestClassifier(self.trees, random_state=int(rng.integers(2**31)))
        model.fit(table, labels, sample_weight=weights)
        return _logits_of_shares(model)


class LogisticRegression(TabularClassifier):
    """Logistic regression of scikit-learn, with a penalty on squared coefficients.

    Args:
        features: See `TabularClassifier`.
        strength: Inverse of the penalty, C of scikit-learn.
        longest: See `TabularClassifier`.
        tokenizer: See `TabularClassifier`.

    Example:
        >>> strings, labels = ["AAB", "ABA", "AAA", "BBB", "BAB", "BBA"], np.array([True] * 3 + [False] * 3)
        >>> logits = LogisticRegression().fit(strings, labels, rng=np.random.default_rng(0)).logits(["AAAA", "BBBB"])
        >>> bool(logits[0] > logits[1])
        True
    """

    # A product with the coefficients, which are one for each feature.
    takes_sparse = True

    def __init__(
        self,
        features: str | Featurizer | None = None,
        *,
        strength: float = 1.0,
        longest: int = 3,
        tokenizer: str | Tokenizer | None = None,
    ) -> None:
        super().__init__(features, longest=longest, tokenizer=tokenizer)
        if not 0 < strength < float("inf"):
            raise InputError(f"strength is {strength!r}; expected a positive number")
        self.strength = float(strength)

    def config_arguments(self) -> dict[str, object]:
        """See `seqopt.utils.config.Configurable`."""
        return super().config_arguments() | {"strength": self.strength}

    def _fitted(self, table: FloatArray, labels: BoolArray, weights: FloatArray, rng: np.random.Generator) -> Logits:
        from sklearn.linear_model import LogisticRegression as Model

        model = Model(C=self.strength, max_iter=1_000)
        model.fit(table, labels, sample_weight=weights)
        coefficients, intercept = model.coef_[0], float(model.intercept_[0])
        return lambda rows: np.asarray(rows @ coefficients + intercept, dtype=np.float64)


class _Boosted(TabularClassifier):
    """Boosted trees of a package that has to be installed."""

    package = ""
    maker = ""

    def __init__(
        self,
        features: str | Featurizer | None = None,
        *,
        trees: int = 100,
        longest: int = 3,
        tokenizer: str | Tokenizer | None = None,
    ) -> None:
        super().__init__(features, longest=longest, tokenizer=tokenizer)
        self.trees = checked_integer("trees", trees, 1)
        self._module()

    def config_arguments(self) -> dict[str, object]:
        """See `seqopt.utils.config.Configurable`."""
        return super().config_arguments() | {"trees": self.trees}

    def _module(self) -> Any:
        try:
            return import_module(self.package)
        except ImportError as error:
            raise InputError(
                f"{type(self).__name__} needs the package {self.package}, which is not installed: "
                f"pip install 'seqopt[{self.package}]', or choose NgramTrees, the boosted trees of scikit-learn"
            ) from error

    def _settings(self) -> dict[str, Any]:
        return {}

    def _fitted(self, table: FloatArray, labels: BoolArray, weights: FloatArray, rng: np.random.Generator) -> Logits:
        seed = int(rng.integers(2**31))
        model = getattr(self._module(), self.maker)(n_estimators=self.trees, random_state=seed, **self._settings())
        model.fit(table, labels.astype(np.int64), sample_weight=weights)
        return _logits_of_shares(model)


class XGBoostTrees(_Boosted):
    """Boosted trees of XGBoost, with its defaults: 100 rounds at a rate of 0.3, trees of depth 6.

    The package is an extra: ``pip install 'seqopt[xgboost]'``.
    """

    package, maker = "xgboost", "XGBClassifier"


class LightGBMTrees(_Boosted):
    """Boosted trees of LightGBM, with leaves that may hold two strings, since few are known.

    The package is an extra: ``pip install 'seqopt[lightgbm]'``.
    """

    package, maker = "lightgbm", "LGBMClassifier"

    def _settings(self) -> dict[str, Any]:
        return {"min_child_samples": 2, "verbosity": -1, "n_jobs": 1}


def _logits_of_shares(model: Any) -> Logits:
    def logits(rows: FloatArray) -> FloatArray:
        shares = np.clip(model.predict_proba(rows)[:, 1].astype(np.float64), LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
        return np.asarray(np.log(shares) - np.log1p(-shares), dtype=np.float64)

    return logits
