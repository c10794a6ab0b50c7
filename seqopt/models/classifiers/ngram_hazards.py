r"""A classifier of strings that succeed unless they hold something that makes them fail.

Each n-gram b that a string holds has a hazard :math:`\theta_b \ge 0`; a string succeeds with probability

.. math:: p(x) = \exp\Bigl(-\theta_0 - \sum_{b \in x} \theta_b\Bigr),

so one bad n-gram is enough (a noisy OR), and a success acquits all n-grams of its string. Few n-grams are bad: the
hazards maximise the likelihood less a penalty that is proportional to their sum, the posterior under an exponential
prior,

.. math:: -\sum_{i\ \mathrm{succeeded}} \theta \cdot x_i + \sum_{i\ \mathrm{failed}} \log(1 - e^{-\theta \cdot x_i})
    - \lambda \sum_b \theta_b,

which is concave. (Its mode is taken since mean-field approximations under sparse priors have many local optima: single
symbols, being frequent, take the blame of pairs.) What is left of doubt is added: an n-gram that was never in a string
that succeeded may be as bad as n-grams usually are, one of m successes 1 / (1 + m) times as much.

References:
    Pearl, J. (1988). Probabilistic reasoning in intelligent systems. Morgan Kaufmann, section 4.3.2 (noisy OR).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize

from seqopt.encoding import Encoder, Tokenizer
from seqopt.errors import InputError
from seqopt.models.classifiers.protocols import BoolArray, FloatArray, checked_labels
from seqopt.spaces import Space
from seqopt.utils.arguments import checked_integer
from seqopt.utils.config import Configurable

if TYPE_CHECKING:
    from scipy.sparse import csr_array

FIRST_HAZARD = 0.05
"""Of every n-gram, where the fit begins."""

LEAST_TOTAL = 1e-9
"""Hazard of a string that failed, at least: its logarithm is taken."""

STEPS = 500
"""Of the optimiser, at most."""

LARGEST_LOGIT = 500.0
"""Of a string without a hazard."""


class NgramHazards(Configurable):
    """Learns which n-grams make strings fail; implements `seqopt.models.classifiers.Classifier`.

    The label true stands for success. It suits failures that have a local cause, such as banned pairs of symbols; what
    is missing in a string, it cannot learn.

    Args:
        longest: Most symbols of an n-gram; all lengths from 1 count.
        penalty: The penalty, above 0: so many successes speak against each n-gram before any is seen.
        tokenizer: A tokeniser or its name. By default the one of the space that is searched, or characters where there
            is none.

    Raises:
        InputError: If ``longest`` is not an integer from 1, or the penalty not positive.

    Example:
        >>> strings = ["ABAB", "BABA", "ACAC", "AABB", "BAAB", "ABBA", "CACA", "CABA"]
        >>> labels = np.array(["BB" not in string for string in strings])
        >>> predictor = NgramHazards().fit(strings, labels, rng=np.random.default_rng(0))
        >>> logits = predictor.logits(["ABAC", "BBAC"])
        >>> bool(logits[0] > 1.0), bool(logits[1] < 0.0)
        (True, True)
    """

    def __init__(self, longest: int = 2, *, penalty: float = 0.3, tokenizer: str | Tokenizer | None = None) -> None:
        self.longest = checked_integer("longest", longest, 1)
        if not 0 < penalty < float("inf"):
            raise InputError(f"penalty is {penalty!r}; expected a positive number")
        self.penalty = float(penalty)
        self.tokenizer: Tokenizer = Encoder("characters" if tokenizer is None else tokenizer).tokenizer
        self._tokenizer_chosen = tokenizer is not None

    def config_arguments(self) -> dict[str, object]:
        """See `seqopt.utils.config.Configurable`."""
        tokenizer = self.tokenizer if self._tokenizer_chosen else None
        return {"longest": self.longest, "penalty": self.penalty, "tokenizer": tokenizer}

    def bind(self, space: Space) -> None:
        """Take the tokeniser of ``space``, unless one was chosen."""
        if not self._tokenizer_chosen:
            self.tokenizer = space.encoder.tokenizer

    def unsupported(self, strings: Sequence[str]) -> dict[int, str]:
        """Nothing is."""
        return {}

    def fit(self, strings: Sequence[str], labels: BoolArray, *, rng: np.random.Generator) -> NgramHazardsPredictor:
        """See `seqopt.models.classifiers.Classifier`; nothing is drawn from ``rng``.

        Raises:
            InputError: If the numbers differ, or only one label is there.
        """
        found = checked_labels(strings, labels)
        grams = Ngrams(self.tokenizer, self.longest)
        table, _ = grams.learned(strings)
        hazards = hazards_of(table, found, self.penalty)
        return NgramHazardsPredictor(grams, hazards, np.asarray(table[np.flatnonzero(found)].sum(axis=0)))


class Ngrams:
    """Which n-grams strings hold, and how many that are not known.

    Args:
        tokenizer: Splits strings.
        longest: Most symbols of an n-gram.
    """

    def __init__(self, tokenizer: Tokenizer, longest: int) -> None:
        self.longest = longest
        self._tokenizer = tokenizer
        self._numbers: dict[tuple[str, ...], int] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def learned(self, strings: Sequence[str]) -> tuple[csr_array, FloatArray]:
        """The table of strings whose n-grams are known from now on; see `table`."""
        for string in strings:
            for gram in self._of(string):
                self._numbers.setdefault(gram, len(self._numbers))
        return self.table(strings)

    def table(self, strings: Sequence[str]) -> tuple[csr_array, FloatArray]:
        """One where a string holds an n-gram, n x k for k known ones, and how many others each holds, n."""
        from scipy.sparse import csr_array

        columns: list[int] = []
        ends, others = [0], []
        for string in strings:
            held = [self._numbers.get(gram) for gram in self._of(string)]
            known = [number for number in held if number is not None]
            columns += known
            ends.append(len(columns))
            others.append(len(held) - len(known))
        shape = (len(strings), len(self._numbers))
        table = csr_array((np.ones(len(columns)), np.array(columns, dtype=np.int64), np.array(ends)), shape=shape)
        return table, np.array(others, dtype=np.float64)

    def _of(self, string: str) -> dict[tuple[str, ...], None]:
        symbols = tuple(self._tokenizer.tokenize(string))
        return dict.fromkeys(
            symbols[start : start + length]
            for length in range(1, self.longest + 1)
            for start in range(len(symbols) - length + 1)
        )


def hazards_of(table: csr_array, labels: BoolArray, penalty: float) -> FloatArray:
    """The hazards of k n-grams and, last, that of every string; see the module.

    Args:
        table: Which of n strings hold which of k n-grams, n x k.
        labels: Which strings succeeded, n.
        penalty: See `NgramHazards`.
    """
    from scipy.sparse import csr_array, hstack

    held = csr_array(hstack([table, np.ones((len(labels), 1))]))
    failed = csr_array(held[np.flatnonzero(~labels)])
    slope = np.asarray(held[np.flatnonzero(labels)].sum(axis=0)) + penalty

    def loss(hazards: FloatArray) -> tuple[float, FloatArray]:
        total = np.maximum(failed @ hazards, LEAST_TOTAL)
        value = float(slope @ hazards - np.log(-np.expm1(-total)).sum())
        return value, slope - failed.T @ (1.0 / np.expm1(np.minimum(total, LARGEST_LOGIT)))

    start = np.full(held.shape[1], FIRST_HAZARD)
    bounds = [(0.0, None)] * len(start)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": STEPS})
    return np.asarray(found.x, dtype=np.float64)


class NgramHazardsPredictor:
    """Fitted `NgramHazards`; implements `seqopt.models.classifiers.Predictor`.

    Args:
        ngrams: The k that are known.
        hazards: Theirs, and that of every string, k + 1.
        successes: In how many strings that succeeded each of them is, k.
    """

    def __init__(self, ngrams: Ngrams, hazards: FloatArray, successes: FloatArray) -> None:
        self._ngrams = ngrams
        self._every = float(hazards[-1])
        # How bad an n-gram usually is, as if one more string had failed.
        self._usual = float((1.0 - np.exp(-hazards[:-1])).sum() + 1.0) / (len(hazards) + 1.0)
        self._known = hazards[:-1] + self._usual / (1.0 + successes)

    def logits(self, strings: Sequence[str]) -> FloatArray:
        """See `seqopt.models.classifiers.Predictor`."""
        table, others = self._ngrams.table(strings)
        log_p = -(table @ self._known + others * self._usual + self._every)
        # log p - log(1 - p), exact for p near 0 and near 1.
        found = log_p - np.log(np.maximum(-np.expm1(log_p), np.exp(-LARGEST_LOGIT)))
        return np.asarray(np.minimum(found, LARGEST_LOGIT), dtype=np.float64)

    @property
    def hyperparameters(self) -> dict[str, float]:
        """The usual hazard of an n-gram, and their number."""
        return {"hazard": self._usual, "ngrams": float(len(self._ngrams))}
