"""How much of the best a search has found, where the values of all candidates are known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

COVERAGE = 0.9
"""Probability of the interval of what random search finds."""


@dataclass(frozen=True)
class TopShare:
    """How many of the best candidates were found, beside random search with as many evaluations.

    Attributes:
        name: Which are the best: ``"top 1 %"`` or ``"top 100"``.
        size: How many candidates these are. All that tie with the last of them are among them.
        threshold: The value of the last of them, in the user's units.
        found: Those that were evaluated.
        expected: Those that random search without replacement finds in expectation, ``size * evaluated / candidates``.
        low: What random search finds is below this with a probability of at most 5 %.
        high: What random search finds is above this with a probability of at most 5 %.
    """

    name: str
    size: int
    threshold: float
    found: int
    expected: float
    low: int
    high: int

    @property
    def share(self) -> float:
        """Share of them that was found, from 0 to 1."""
        return self.found / self.size


@dataclass(frozen=True)
class Replay:
    """What a search found of a table of known results.

    Attributes:
        candidates: How many strings could be evaluated.
        evaluated: How many of them were; those without a value, which fail, are among both.
        tops: Shares of the best.
    """

    candidates: int
    evaluated: int
    tops: tuple[TopShare, ...]

    def to_json(self) -> dict[str, Any]:
        """As JSON values, with the share and that of random search."""
        random = self.evaluated / self.candidates if self.candidates else 0.0
        tops = [{**asdict(top), "share": top.share, "expected_share": random} for top in self.tops]
        return {"candidates": self.candidates, "evaluated": self.evaluated, "tops": tops}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Replay:
        """What `to_json` returned.

        Raises:
            KeyError: If something is missing; `TypeError` or `ValueError` if something is of another type.
        """
        fields = TopShare.__dataclass_fields__
        tops = tuple(TopShare(**{name: top[name] for name in fields}) for top in values["tops"])
        return cls(values["candidates"], values["evaluated"], tops)

    def lines(self) -> list[str]:
        """In words, a line for each of the shares.

        Example:
            >>> replay([0.0, 1.0, 2.0, 3.0], [3, 0], maximize=True, percent=25, top=None).lines()
            ['top 25 %: found 1 of 1 (100 %); 2 random evaluations of 4 find 0.5 on average (90 %: 0 to 1)']
        """
        said = []
        for top in self.tops:
            percent = f"{100 * top.share:.3g}"
            said.append(
                f"{top.name}: found {top.found:,} of {top.size:,} ({percent} %); {self.evaluated:,} random evaluations "
                f"of {self.candidates:,} find {top.expected:,.1f} on average (90 %: {top.low:,} to {top.high:,})"
            )
        return said


def top_of(values: npt.ArrayLike, k: int, *, maximize: bool) -> npt.NDArray[np.bool_]:
    """Which of N values are among the k best; all that tie with the k-th best are, and NaN never is.

    Example:
        >>> top_of([3.0, 1.0, 2.0, 2.0, float("nan")], 2, maximize=True).tolist()
        [True, False, True, True, False]
    """
    scores = np.asarray(values, dtype=np.float64) * (1.0 if maximize else -1.0)
    known = np.sort(scores[~np.isnan(scores)])[::-1]
    if k < 1 or not len(known):
        return np.zeros(len(scores), dtype=np.bool_)
    found: npt.NDArray[np.bool_] = scores >= known[min(k, len(known)) - 1]
    return found


def replay(
    values: npt.ArrayLike,
    evaluated: Sequence[int] | npt.NDArray[np.int64],
    *,
    maximize: bool,
    percent: float = 1.0,
    top: int | None = 100,
) -> Replay:
    """The shares of the top 1 % and of the top 100 that a search has found.

    The top 1 % of N candidates with a value are the best ``ceil(N / 100)``. Candidates that tie with the last of the
    best count as the best, too, and so there may be more than that. Random search draws as many candidates without
    replacement, so what it finds has a hypergeometric distribution.

    Args:
        values: The value of each candidate, NaN where there is none.
        evaluated: Indices of the candidates that were evaluated; repeated ones count once.
        maximize: Whether large values are good.
        percent: Which share of the candidates is looked for.
        top: Which number of them is looked for besides, if there are more; `None` for none.
    """
    table = np.asarray(values, dtype=np.float64)
    known = int((~np.isnan(table)).sum())
    chosen = np.unique(np.asarray(evaluated, dtype=np.int64))
    sizes = {f"top {percent:g} %": math.ceil(known * percent / 100)}
    if top is not None and known > top:
        sizes[f"top {top}"] = top
    tops = []
    for name, size in sizes.items():
        best = top_of(table, size, maximize=maximize)
        if not best.any():
            continue
        count = int(best.sum())
        low, high = hypergeometric_interval(len(table), count, len(chosen))
        worst = float(table[best].min() if maximize else table[best].max())
        expected = count * len(chosen) / len(table)
        tops.append(TopShare(name, count, worst, int(best[chosen].sum()), expected, low, high))
    return Replay(len(table), len(chosen), tuple(tops))


def hypergeometric_interval(candidates: int, good: int, drawn: int, coverage: float = COVERAGE) -> tuple[int, int]:
    """Limits of how many good ones are among ``drawn`` random candidates: at most (1 - coverage) / 2 beyond each.

    Example:
        >>> hypergeometric_interval(10_000, 100, 600)
        (2, 10)
    """
    from scipy.stats import hypergeom  # takes a second to load

    tail = (1 - coverage) / 2
    distribution = hypergeom(candidates, good, drawn)
    # ppf(q) is the least k with P(X <= k) >= q, so that P(X < k) < q; and P(X > ppf(1 - q)) <= q.
    return int(distribution.ppf(tail)), int(distribution.ppf(1 - tail))
