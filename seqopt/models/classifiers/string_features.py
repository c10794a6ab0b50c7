"""Numbers that classifiers of tables see of strings: counts of n-grams, or one column for each symbol at each place.

Both learn their columns from the strings that a classifier is fitted to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from seqopt.encoding import Featurizer, Tokenizer
from seqopt.encoding.featured import featured
from seqopt.encoding.features import FeatureMatrix
from seqopt.encoding.held import HeldStrings
from seqopt.errors import InputError
from seqopt.models.classifiers.protocols import FloatArray

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import CountVectorizer

MOST_NGRAMS = 4000
"""Of more n-grams, the most frequent ones count."""

NAMES = ("ngrams", "one-hot")
"""Features that have a name."""


class Columns(Protocol):
    """From strings to rows of numbers, learned."""

    def __call__(self, strings: Sequence[str]) -> FloatArray:
        """N x d."""
        ...


def learned_columns(features: str | Featurizer, tokenizer: Tokenizer, longest: int, strings: Sequence[str]) -> Columns:
    """The columns of ``strings``.

    Args:
        features: ``"ngrams"``, ``"one-hot"``, or a featurizer, which knows its columns.
        tokenizer: Splits strings.
        longest: Most symbols of an n-gram; all lengths from 1 count.
        strings: Those that a classifier learns from.

    Example:
        >>> from seqopt.encoding import Encoder
        >>> learned_columns("one-hot", Encoder("characters").tokenizer, 1, ["AB", "BB"])(["AA", "BB"]).tolist()
        [[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]]
    """
    if not isinstance(features, str):
        return Featurized(features)
    return NgramCounts(tokenizer, longest, strings) if features == "ngrams" else OneHot(tokenizer, strings)


def check_features(features: object) -> None:
    """Refuse features that are none.

    Raises:
        InputError: If they are neither a name nor a featurizer.
    """
    if features in NAMES or (callable(features) and hasattr(features, "size")):
        return
    raise InputError(f"features are {features!r}; expected {' or '.join(map(repr, NAMES))}, or a featurizer")


class Featurized:
    """The columns of a featurizer; implements `Columns`."""

    def __init__(self, featurizer: Featurizer) -> None:
        self._featurizer = featurizer

    def __call__(self, strings: Sequence[str]) -> FloatArray:
        """See `Columns`."""
        rows = self.sparse(strings)
        return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=np.float64)

    def sparse(self, strings: Sequence[str]) -> FeatureMatrix:
        """The same as the featurizer returns it."""
        if isinstance(strings, HeldStrings):
            return strings.rows(self._featurizer)
        return self._featurizer(list(strings) if featured(strings) is None else strings)


class NgramCounts:
    """How often n-grams occur; implements `Columns`."""

    def __init__(self, tokenizer: Tokenizer, longest: int, strings: Sequence[str]) -> None:
        from sklearn.feature_extraction.text import CountVectorizer

        def ngrams(string: str) -> list[tuple[str, ...]]:
            symbols = tokenizer.tokenize(string)
            return [
                tuple(symbols[start : start + length])
                for length in range(1, longest + 1)
                for start in range(len(symbols) - length + 1)
            ]

        self._counts: CountVectorizer = CountVectorizer(analyzer=ngrams, max_features=MOST_NGRAMS)
        self._counts.fit(strings)

    def __call__(self, strings: Sequence[str]) -> FloatArray:
        """See `Columns`."""
        return np.asarray(self._counts.transform(strings).toarray(), dtype=np.float64)

    def __len__(self) -> int:
        return len(self._counts.vocabulary_)


class OneHot:
    """Which symbol stands at which place, of those symbols that differ there; implements `Columns`."""

    def __init__(self, tokenizer: Tokenizer, strings: Sequence[str]) -> None:
        self._tokenizer = tokenizer
        found = {one for string in strings for one in enumerate(tokenizer.tokenize(string))}
        self._numbers = {one: number for number, one in enumerate(sorted(found))}

    def __call__(self, strings: Sequence[str]) -> FloatArray:
        """See `Columns`."""
        rows = np.zeros((len(strings), len(self._numbers)))
        for row, string in zip(rows, strings, strict=True):
            held = (self._numbers.get(one) for one in enumerate(self._tokenizer.tokenize(string)))
            row[[number for number in held if number is not None]] = 1.0
        return rows
