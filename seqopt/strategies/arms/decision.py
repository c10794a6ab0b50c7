"""Which arm is the best, how probable that is, and how many further measurements would make it sure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from seqopt.strategies.arms.posterior import ArmPosterior, FloatArray, IntArray, rooted
from seqopt.strategies.arms.rules import Rule, Situation

DRAWS = 100_000
"""Joint draws for probabilities: their standard errors are below 0.0016."""

FUTURES = 128
"""Simulated continuations for the number of wells: the standard error of a share of them is 4.4 % at most."""

FUTURE_DRAWS = 512
"""Joint draws for the probability in each of them: its standard error at 95 % is 1 %. With few, chance would decide."""

MOST = 0.9
"""Share of the continuations that are followed until they are decided."""

BLOCK = 4096
"""Draws at a time."""

Measure = Callable[[IntArray, IntArray], FloatArray]
"""From arms, R, and how often each was measured in this simulation before, R, to what is measured, R."""


def probability_best(
    posterior: ArmPosterior, rng: np.random.Generator, *, tolerance: float = 0.0, draws: int = DRAWS
) -> FloatArray:
    """Probability of each arm that its true value is the largest, K, by joint draws.

    Args:
        posterior: Of one situation.
        rng: For the draws.
        tolerance: How far below the largest it may be; with a tolerance, probabilities sum to more than 1.
        draws: How many.

    Example:
        >>> two = ArmPosterior.of([1.0, 0.0], np.eye(2), 1.0)
        >>> probability_best(two, np.random.default_rng(0)).round(2)  # Phi(1 / sqrt(2)) = 0.76
        array([0.76, 0.24])
    """
    root = rooted(posterior.covariance)[0]
    counts = np.zeros(posterior.arms)
    for start in range(0, draws, BLOCK):
        normal = rng.standard_normal((min(BLOCK, draws - start), posterior.arms))
        values = posterior.mean[0] + normal @ root.T
        if tolerance == 0.0:
            # Of arms that are equal in every draw the first counts, as it does when one is named.
            counts += np.bincount(values.argmax(1), minlength=posterior.arms)
        else:
            counts += (values >= values.max(1, keepdims=True) - tolerance).sum(0)
    return counts / draws


@dataclass(frozen=True)
class Trace:
    """What simulated confirmations came to.

    Attributes:
        posterior: At the end, controls among the arms.
        recommended: After each batch, the arm of largest mean, batches x R.
        averaged: After each batch, the arm of the largest mean of its measurements, batches x R.
        used: Wells used after each batch.
    """

    posterior: ArmPosterior
    recommended: IntArray
    averaged: IntArray
    used: tuple[int, ...]


def simulate(
    posterior: ArmPosterior,
    rule: Rule,
    measure: Measure,
    *,
    wells: int,
    batch: int,
    rng: np.random.Generator,
    after: Callable[[ArmPosterior], None] | None = None,
    begun: Situation | None = None,
    controls: int = 0,
) -> Trace:
    """Confirmations from now on, as many as the posterior has situations, side by side.

    Args:
        posterior: Where they stand.
        rule: Chooses the arms.
        measure: What is measured.
        wells: Measurements from now on.
        batch: Measurements at a time.
        rng: For rules that draw.
        after: Called with the posterior of what is compared after each batch.
        begun: Where the rule stands, if measurements have been made before: wells that exceed its number raise that.
            By default it begins now, with these wells.
        controls: So many of the arms, the last ones, are controls: each is measured once in every batch, besides its
            wells, and they are not compared.
    """
    compared = posterior.arms - controls
    if begun is None:
        begun = Situation(wells, 0, 0, posterior.first(compared).spread)
    used = 0
    times = np.zeros((posterior.situations, posterior.arms), dtype=np.int64)
    rows = np.arange(posterior.situations)
    recommended, averaged, ends = [], [], []
    number = 0
    while used < wells:
        size = min(batch, wells - used)
        made = begun.used + used
        situation = replace(begun, wells=max(begun.wells, made + size), used=made, batch=begun.batch + number)
        chosen = choose_batch(posterior, rule, situation, size, rng, controls=controls)
        posterior = posterior.on_fresh_plate()
        for arms in [*chosen, *_controls(posterior, controls)]:
            posterior = posterior.given(arms, measure(arms, times[rows, arms]))
            times[rows, arms] += 1
        used, number = used + size, number + 1
        now = posterior.first(compared)
        recommended.append(now.mean.argmax(1))
        known = np.where(np.isnan(now.averages), -np.inf, now.averages)
        averaged.append(known.argmax(1))
        ends.append(used)
        if after is not None:
            after(now)
    shape = (len(ends), posterior.situations)
    return Trace(posterior, np.array(recommended).reshape(shape), np.array(averaged).reshape(shape), tuple(ends))


def choose_batch(
    posterior: ArmPosterior,
    rule: Rule,
    situation: Situation,
    size: int,
    rng: np.random.Generator,
    *,
    controls: int = 0,
) -> list[IntArray]:
    """Arms to be measured together on a fresh plate: each is chosen given that those before it are awaited.

    Controls of the plate are awaited before all wells: they tell its offset, and so make the first of these worth more.

    Args:
        posterior: Where it stands.
        rule: Chooses the arms.
        situation: The same, for the rule.
        size: Wells of the plate besides its controls.
        rng: For rules that draw.
        controls: So many of the arms, the last ones, are controls: each is measured once, and no rule chooses them.

    Returns:
        The arms of each well, R.

    Example:
        >>> from seqopt.strategies.arms import BayesGap
        >>> hits = ArmPosterior.of([0.1, 0.0, 0.0], np.eye(3), 0.1, plate=np.full((3, 3), 9.0))
        >>> start = Situation(4, 0, 0, hits.first(2).spread)
        >>> [int(arm[0]) for arm in choose_batch(hits, BayesGap(), start, 4, np.random.default_rng(0), controls=1)]
        [0, 1, 1, 0]
    """
    awaited, chosen = posterior.on_fresh_plate(), []
    for arms in _controls(posterior, controls):
        awaited = awaited.given(arms)
    awaited = awaited.first(posterior.arms - controls)
    for place in range(size):
        arms = rule.choose(awaited, replace(situation, used=situation.used + place), rng)
        awaited = awaited.given(arms)
        chosen.append(arms)
    return chosen


def _controls(posterior: ArmPosterior, controls: int) -> list[IntArray]:
    """The last so many arms, one after the other, in each situation."""
    return [np.full(posterior.situations, posterior.arms - 1 - place) for place in reversed(range(controls))]


@dataclass(frozen=True)
class Forecast:
    """How the probability to name the best arm grows, and when it is decided, by what is known now.

    Attributes:
        wells: Further measurements, from 0 on.
        probability: That the arm that would be named after so many is the best, if none stopped before.
        target: What is aimed at.
        decided: The share of continuations that have reached the target, and stopped, after so many.
    """

    wells: tuple[int, ...]
    probability: tuple[float, ...]
    target: float
    decided: tuple[float, ...]

    @property
    def needed(self) -> int | None:
        """The least number of these after which half of the continuations are decided; `None` where fewer are."""
        return self.within(0.5)

    def within(self, share: float) -> int | None:
        """The least number of these after which a share of the continuations is decided.

        Example:
            >>> found = Forecast((0, 4, 8), (0.6, 0.8, 0.9), 0.95, (0.0, 0.4, 0.7))
            >>> found.within(0.3), found.needed, found.within(0.9)
            (4, 8, None)
        """
        return next((count for count, done in zip(self.wells, self.decided, strict=True) if done >= share), None)


def forecast(
    posterior: ArmPosterior,
    rule: Rule,
    *,
    target: float,
    limit: int,
    batch: int,
    rng: np.random.Generator,
    tolerance: float = 0.0,
    futures: int = FUTURES,
    now: float | None = None,
    begun: Situation | None = None,
    controls: int = 0,
) -> Forecast:
    """How many further measurements make the named arm the best with a probability.

    Truths are drawn from the posterior and measured as the rule says. After each batch, the probability that the arm of
    largest mean is the best is found in each of these futures. One is decided once that reaches the target, for good:
    nobody measures on. So half of them may be decided long before the mean of the probabilities is as large. It rests
    on the model and its noise.

    Args:
        posterior: Of one situation.
        rule: Chooses the arms.
        target: The probability.
        limit: Further measurements to be simulated at most.
        batch: Measurements at a time.
        rng: For truths, noise and the rule.
        tolerance: How far from the best counts as right.
        futures: Simulated continuations.
        now: The probability now, where it is known.
        begun: Where the rule stands, if measurements have been made before. By default it begins now, with ``limit``
            wells.
        controls: So many of the arms, the last ones, are controls: each is measured on every plate, besides its wells.

    Example:
        >>> two = ArmPosterior.of([0.1, 0.0], np.eye(2), 1.0)
        >>> found = forecast(two, rule=_equal(), target=0.8, limit=40, batch=2, rng=np.random.default_rng(0))
        >>> found.wells[:3], found.needed is not None
        ((0, 2, 4), True)
    """
    several = posterior.repeated(futures)
    if begun is None:
        begun = Situation(limit, 0, 0, posterior.first(posterior.arms - controls).spread)
    begun = replace(begun, prior_variance=np.repeat(begun.prior_variance, futures, axis=0))
    root = rooted(posterior.covariance)
    truth = posterior.mean + rng.standard_normal((futures, posterior.arms)) @ root[0].T
    rows = np.arange(futures)
    deviations = np.sqrt(posterior.noise)[0]
    shared = None if posterior.plate is None else rooted(posterior.plate)[0]
    plate = np.zeros_like(truth)
    seen = 0

    def measure(arms: IntArray, times: IntArray) -> FloatArray:
        nonlocal plate, seen
        del times
        if shared is not None and seen % (batch + controls) == 0:
            plate = rng.standard_normal(truth.shape) @ shared.T
        seen += 1
        found: FloatArray = truth[rows, arms] + plate[rows, arms] + deviations[arms] * rng.standard_normal(futures)
        return found

    stopped = np.zeros(futures, dtype=np.bool_)
    chances: list[float] = []
    decided: list[float] = []

    def note(posterior: ArmPosterior) -> None:
        draws = posterior.draws(FUTURE_DRAWS, rng)
        named = draws[:, rows, posterior.mean.argmax(1)]
        right = (named >= draws.max(2) - tolerance).mean(0)
        chances.append(float(right.mean()))
        if len(chances) > 1:
            np.logical_or(stopped, right >= target, out=stopped)
        decided.append(float(stopped.mean()))

    wells: list[int] = [0]
    note(several.first(posterior.arms - controls))
    if now is not None:
        chances[0] = now
    # All futures are alike as yet.
    if chances[0] >= target:
        stopped[:], decided[0] = True, 1.0
    # Some batches at a time, so that what is sure soon is soon found.
    while wells[-1] < limit and decided[-1] < MOST:
        ahead = min(max(4 * batch, wells[-1]), limit - wells[-1])
        trace = simulate(
            several, rule, measure, wells=ahead, batch=batch, rng=rng, after=note, begun=begun, controls=controls
        )
        several, start = trace.posterior, wells[-1]
        wells += [start + used for used in trace.used]
        made = begun.used + ahead
        begun = replace(begun, wells=max(begun.wells, made), used=made, batch=begun.batch + len(trace.used))
    return Forecast(tuple(wells), tuple(chances), target, tuple(decided))


def _equal() -> Rule:
    from seqopt.strategies.arms.rules import EqualReplication

    return EqualReplication()
