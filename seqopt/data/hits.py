r"""Whether told probabilities of hits hold: how many hits were expected and found, the Brier score, reliability.

Of probabilities p that were told before results came, and are right, :math:`\sum_i p_i` hits are expected. How many are
found then has a Poisson-binomial distribution, which is computed exactly; a batch whose number of hits would be found,
or exceeded, with a probability below `SURPRISING` has missed its predictions. The Brier score, the mean of
:math:`(y_i - p_i)^2` over strings with shares of hits y, is held against that of a forecast that gives all strings the
share found: the skill is one less their ratio.

Wells of one string depend on each other, since the probability of that string is one number, of which only the mean
was told: the share of hits of a string counts as one result, of however many wells it is.

References:
    Brier, G. W. (1950). Verification of forecasts expressed in terms of probability. Monthly Weather Review 78, 1-3.
    Spiegelhalter, D. J. (1986). Probabilistic prediction in patient management and clinical trials. Statistics in
        Medicine 5, 421-433.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from seqopt.data.observations import Observation

FEWEST = 5
"""Results that are judged at least: a smaller batch is judged together with those before it."""

SURPRISING = 0.01
"""Probability, on one side, of so few or so many hits below which a batch has missed its predictions."""

VERDICT = 0.05
"""Two-sided probability of as many hits, or of a sum of squared errors as far from the expected one, below which
probabilities are said to be wrong."""

ENOUGH = 20
"""Results from which on more is said than how many hits there were: of so few, a score is mostly luck."""

TOLD = "told_with"
"""Under this name, rows of wells that were told of at once have the same number among their details."""

BINS, BIN = 5, 5
"""Groups of equal size in which told probabilities are held against shares of hits: at most so many, of at least so
many strings."""


@dataclass(frozen=True)
class Tried:
    """A probability that was told, and what came.

    Attributes:
        batch: Number of the batch.
        probability: Of a hit, as it was told.
        share: Of the wells that were hits.
        trials: Wells.
    """

    batch: int
    probability: float
    share: float
    trials: int = 1


@dataclass(frozen=True)
class Reliability:
    """Told probabilities of one group.

    Attributes:
        count: Strings.
        told: Mean probability.
        found: Mean share of hits.
    """

    count: int
    told: float
    found: float


@dataclass(frozen=True)
class HitCalibration:
    """Probabilities that were told before their results came, held against these.

    Attributes:
        count: Strings with a result.
        expected: Sum of their probabilities.
        found: Sum of their shares of hits: of one well each, the hits.
        brier: Mean squared difference of the two.
        skill: By how much that is lower than with one probability for all, the share found: 1 at best, 0 for no
            better; NaN where all results are alike.
        z: By how many standard deviations the sum of squared errors is larger than is to be expected of probabilities
            that are right (Spiegelhalter's statistic); of single wells only, else NaN.
        groups: See `Reliability`, from the lowest probabilities.
        tails: Probability of at most, and of at least, as many hits as were found.
    """

    count: int
    expected: float
    found: float
    brier: float
    skill: float
    z: float
    groups: tuple[Reliability, ...]
    tails: tuple[float, float] = (1.0, 1.0)

    @classmethod
    def of(cls, tried: Sequence[Tried]) -> HitCalibration:
        """Of some results.

        Example:
            >>> found = HitCalibration.of([Tried(1, 0.8, 1.0), Tried(1, 0.4, 0.0)])
            >>> found.count, round(found.expected, 2), found.found, round(found.brier, 2), round(found.skill, 2)
            (2, 1.2, 1.0, 0.1, 0.6)
        """
        p = np.array([one.probability for one in tried], dtype=np.float64)
        y = np.array([one.share for one in tried], dtype=np.float64)
        if not len(p):
            return cls(0, 0.0, 0.0, math.nan, math.nan, math.nan, ())
        brier, plain = float(((p - y) ** 2).mean()), float(((y - y.mean()) ** 2).mean())
        spread = math.sqrt(float(((1 - 2 * p) ** 2 * p * (1 - p)).sum()))
        single = all(one.trials == 1 for one in tried)
        z = float(((y - p) * (1 - 2 * p)).sum()) / spread if single and spread > 0 else math.nan
        order = np.argsort(p, kind="stable")
        groups = np.array_split(order, max(1, min(BINS, len(p) // BIN)))
        return cls(
            len(p),
            float(p.sum()),
            float(y.sum()),
            brier,
            1 - brier / plain if plain > 0 else math.nan,
            z,
            tuple(Reliability(len(rows), float(p[rows].mean()), float(y[rows].mean())) for rows in groups),
            tail_probabilities(p.tolist(), float(y.sum())),
        )

    def verdict(self) -> str:
        """Whether the probabilities can be trusted, if chance does not explain what was found; else empty.

        Example:
            >>> HitCalibration.of([Tried(1, 0.9, 0.0)] * 4).verdict()
            'hits are rarer than was told'
            >>> HitCalibration.of([Tried(1, 0.3, float(i % 3 == 0)) for i in range(30)]).verdict()
            ''
        """
        if min(self.tails) < VERDICT / 2:
            return f"hits are {'rarer' if self.found < self.expected else 'more frequent'} than was told"
        if self.count < ENOUGH or math.isnan(self.z) or math.erfc(abs(self.z) / math.sqrt(2)) >= VERDICT:
            return ""
        return "the probabilities are too far from one half" if self.z > 0 else "the probabilities are too cautious"

    def describe(self) -> str:
        """In words.

        Example:
            >>> HitCalibration.of([Tried(1, 0.8, 1.0), Tried(1, 0.4, 0.0)]).describe()
            'of 2 probabilities told before their results came, 1.2 hits were expected and 1 found; Brier score 0.1'
        """
        if not self.count:
            return "no result of a prediction has come yet"
        what = "1 probability" if self.count == 1 else f"{self.count} probabilities"
        its = "its result" if self.count == 1 else "their results"
        text = (
            f"of {what} told before {its} came, {self.expected:.3g} hits were expected and {self.found:.4g} "
            f"found; Brier score {self.brier:.2g}"
        )
        if self.count >= ENOUGH and not math.isnan(self.skill):
            text += f" ({self.skill:+.0%} against one probability for all)"
        verdict = self.verdict()
        return f"{text}: {verdict}" if verdict else text


def tail_probabilities(probabilities: Sequence[float], found: float) -> tuple[float, float]:
    """Of at most, and of at least, so many hits, of wells with these probabilities (Poisson-binomial distribution).

    Example:
        >>> [round(tail, 4) for tail in tail_probabilities([0.5, 0.5], 0)]
        [0.25, 1.0]
    """
    counts: npt.NDArray[np.float64] = np.ones(1)
    for share in probabilities:
        counts = np.convolve(counts, [1.0 - share, share])
    numbers = np.arange(len(counts))
    return float(counts[numbers <= found + 1e-9].sum()), float(counts[numbers >= found - 1e-9].sum())


def hits_missed(tried: Sequence[Tried]) -> str:
    """A warning if the hits of the last batch are far more or fewer than was told; else empty.

    Args:
        tried: In any order.

    Example:
        >>> hits_missed([Tried(1, 0.8, 0.0)] * 6).split(":")[0]
        'the last batch missed what was predicted'
        >>> hits_missed([Tried(1, 0.3, 0.0)] * 6)
        ''
    """
    chosen: list[Tried] = []
    used = 0
    for batch in sorted({one.batch for one in tried}, reverse=True):
        if len(chosen) >= FEWEST:
            break
        chosen += [one for one in tried if one.batch == batch]
        used += 1
    if len(chosen) < FEWEST:
        return ""
    expected, found = sum(one.probability for one in chosen), sum(one.share for one in chosen)
    fewer, more = tail_probabilities([one.probability for one in chosen], found)
    if min(fewer, more) >= SURPRISING:
        return ""
    what = "the last batch" if used == 1 else f"the last {used} batches"
    side = "fewer" if found < expected else "more"
    return (
        f"{what} missed what was predicted: {found:.3g} hits among {len(chosen)} results, {side} than the "
        f"{expected:.2g} expected: check these results for slips (swapped samples, another threshold, another plate); "
        "if they stand, try another surrogate, and take some of the next strings at random"
    )


def tried_rows(rows: Iterable[Observation]) -> list[Tried]:
    """Rows of which a probability was told, and that have a result: all wells that were told of at once."""
    known = [row for row in rows if row.status == "ok" and not math.isnan(row.value)]
    wells: dict[Any, list[Observation]] = {}
    for row in known:
        wells.setdefault((row.query, row.details.get(TOLD)), []).append(row)
    found = []
    for row in known:
        told = row.details.get("predicted")
        if told is not None and row.details.get("batch"):
            call = row.details.get(TOLD)
            together = [row] if call is None else wells[row.query, call]
            trials = sum(one.trials for one in together)
            share = math.fsum(one.value * one.trials for one in together) / trials
            found.append(Tried(int(row.details["batch"]), float(told), share, trials))
    return found
