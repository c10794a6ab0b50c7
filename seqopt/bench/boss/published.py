"""Table 4.6.1 of the thesis, and what a reproduction has to reach.

Scores are 100 times the best count over the largest one, mean and one standard error of 15 runs. The curves of the
genes and of the regression (figures 4.6.1 and 4.6.2) come without numbers.

References:
    Moss, H. B. (2021). General-purpose Information-Theoretical Bayesian Optimisation. PhD thesis, Lancaster
        University, table 4.6.1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple


class Score(NamedTuple):
    """A mean and its standard error, NaN where there is none: a single run says nothing of its error."""

    mean: float
    error: float

    def text(self, digits: int, error_digits: int | None = None) -> str:
        """With so many decimals."""
        mean = f"{self.mean:.{digits}f}"
        if math.isnan(self.error):
            return mean
        return f"{mean} ± {self.error:.{digits if error_digits is None else error_digits}f}"


_COLUMNS = ("ssk-ga", "ssk-rs", "ngram-ga", "one-hot-ga", "random")
_ROWS: Mapping[str, tuple[tuple[float, float], ...]] = {
    "101": ((100, 0.0), (96, 1.4), (97, 2.2), (58, 3.0), (58, 2.6)),
    "101-disjoint": ((98, 1.4), (94, 2.6), (76, 4.1), (64, 2.6), (60, 3.1)),
    "10xx1": ((98, 1.6), (95, 1.6), (64, 2.0), (64, 3.3), (56, 2.0)),
    "101-disjoint-first-15": ((91, 2.6), (83, 1.7), (67, 3.0), (69, 2.6), (61, 2.3)),
    "101-noisy": ((98, 2.1), (95, 1.4), (51, 3.9), (40, 4.0), (45, 3.8)),
    "123-disjoint": ((81, 2.3), (35, 2.8), (69, 5.4), (23, 2.0), (17, 1.5)),
    "01xx4": ((67, 4.5), (38, 2.6), (35, 4.0), (33, 3.1), (29, 2.6)),
}

PUBLISHED: Mapping[str, Mapping[str, Score]] = {
    task: dict(zip(_COLUMNS, (Score(*cell) for cell in row), strict=True)) for task, row in _ROWS.items()
}
"""Published scores by task and method, with their standard errors."""

PRINTED: Mapping[str, str] = {
    "boss": "ssk-ga",
    "boss-code": "ssk-ga",
    "boss-rs": "ssk-rs",
    "boss-ngram": "ngram-ga",
    "boss-one-hot": "one-hot-ga",
}
"""Methods that repeat the paper's own, and the columns of the table that are theirs."""

SCALED_BY_FOUR = "01xx4"
"""The row whose scores appear to be percentages of 4 occurrences, where 5 are possible."""

OCCURRENCES = Score(2.7, 4 * PUBLISHED[SCALED_BY_FOUR]["ssk-ga"].error / 100)
"""SSK-ga in that row, in occurrences: 67 (4.5) percent of 4."""

LEAST_ERROR = 1.0
"""A published error counts at least so many points: 15 runs that all reach 100 do not make it zero."""


def least_acceptable(published: Score, error: float, least_error: float = LEAST_ERROR) -> float:
    """The least mean that agrees with a published one: P - 2 sqrt(e^2 + max(E, least_error)^2).

    Args:
        published: P and E.
        error: Standard error e of the mean that is judged.
        least_error: What E counts at least, in the unit of P.
    """
    return published.mean - 2 * math.hypot(error, max(published.error, least_error))
