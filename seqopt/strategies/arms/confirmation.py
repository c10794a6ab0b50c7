"""Which of a few strings is the best: asked for measurements, told values, until it is decided."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from seqopt.errors import InputError
from seqopt.strategies.arms.decision import Forecast, choose_batch, forecast, probability_best
from seqopt.strategies.arms.posterior import ArmPosterior
from seqopt.strategies.arms.rules import Rule, Situation, resolve_rule
from seqopt.utils.arguments import checked_integer
from seqopt.utils.shown import Shown

TARGET = 0.95
"""Probability at which it is decided which arm is the best."""

BATCHES = 4
"""Batches into which the wells are divided by default."""

HORIZON = 8
"""The forecast looks ahead for so many times the wells, and for `LEAST` at least."""

LEAST = 192

_CHOICE, _CHANCE, _FUTURE = 1, 2, 3
"""What random numbers are for: each has a stream of its own."""


@dataclass(frozen=True)
class Standing(Shown):
    """How a confirmation stands.

    Attributes:
        best: The arm that is most probably the best.
        probability: That it is (or is within the tolerance of the best).
        probabilities: The same of each arm, in the order of the arms.
        mean: Posterior means of the true values, in the units of the values.
        std: Their standard deviations.
        wells: Measurements in all.
        used: Measurements so far.
        target: The probability at which it is decided.
    """

    best: str
    probability: float
    probabilities: Mapping[str, float]
    mean: Mapping[str, float]
    std: Mapping[str, float]
    wells: int
    used: int
    target: float

    @property
    def decided(self) -> bool:
        """Whether the target is reached."""
        return self.probability >= self.target

    @property
    def finished(self) -> bool:
        """Whether it is decided, or no well is left."""
        return self.decided or self.used >= self.wells


class Confirmation:
    """Finds the best of K arms with T measurements, by what a model says of them jointly.

    Strings that are alike share what is measured of one. It can be stopped as soon as the best is known with the
    probability ``target``; whatever has been told, one seed fixes what is asked.

    Args:
        arms: K distinct strings, at least two.
        mean: What is expected of their true values, K.
        covariance: Of these, K x K.
        noise_variance: Of one measurement: a number, or one for each arm.
        wells: Measurements that can be made, T.
        rule: A name of `seqopt.strategies.arms.RULES`, or a rule.
        batch: Measurements at a time; by default a quarter of the wells.
        target: Probability at which it is decided.
        tolerance: How far from the best an arm may be and still count as right, in the units of the values.
        direction: ``"maximize"`` or ``"minimize"``.
        counts: How often each arm was measured before, K; that is in ``mean`` and ``covariance`` already.
        averages: Means of those measurements, K; where there are plates, less the offsets of these.
        plate: Covariance of what all wells of one batch share, K x K, where a batch is a plate with an offset.
        seed: Of all random numbers.

    Raises:
        InputError: For fewer than two arms, equal ones, or numbers that make no sense.

    References:
        See `seqopt.strategies.arms.rules`.

    Example:
        >>> found = Confirmation(["AAA", "AAC", "CCC"], [1.0, 0.8, 0.0], np.eye(3), 0.25, wells=12)
        >>> batch = found.ask()
        >>> len(batch), set(batch) <= {"AAA", "AAC", "CCC"}
        (3, True)
        >>> found.tell(batch, [2.0 if arm == "AAC" else 0.0 for arm in batch])
        >>> found.standing().best
        'AAC'
    """

    def __init__(
        self,
        arms: Sequence[str],
        mean: npt.ArrayLike,
        covariance: npt.ArrayLike,
        noise_variance: npt.ArrayLike,
        *,
        wells: int,
        rule: str | Rule = "bayes-gap",
        batch: int | None = None,
        target: float = TARGET,
        tolerance: float = 0.0,
        direction: str = "maximize",
        counts: npt.ArrayLike | None = None,
        averages: npt.ArrayLike | None = None,
        plate: npt.ArrayLike | None = None,
        seed: int = 0,
    ) -> None:
        if isinstance(arms, str):
            raise InputError(f"arms is the string {arms!r}; expected a list of strings")
        self.arms = list(arms)
        repeated = [arm for arm, count in Counter(self.arms).items() if count > 1]
        if repeated:
            raise InputError(f"{repeated[0]!r} is there twice: give each arm once")
        if len(self.arms) < 2:
            raise InputError(f"there is {len(self.arms)} arm: expected two or more, of which one is the best")
        if direction not in ("maximize", "minimize"):
            raise InputError(f"direction is {direction!r}; choose maximize or minimize")
        if not 0.0 < target < 1.0:
            raise InputError(f"target is {target!r}; expected a probability between 0 and 1, such as 0.95")
        if not 0.0 <= tolerance < math.inf:
            raise InputError(f"tolerance is {tolerance!r}; expected zero or more")
        self.wells = checked_integer("wells", wells, 1, "expected an integer of measurements")
        self.batch = -(-self.wells // BATCHES) if batch is None else checked_integer("batch", batch, 1)
        self.target = target
        self.tolerance = tolerance
        self.seed = seed
        self.rule = resolve_rule(rule, tolerance)
        self._sign = 1.0 if direction == "maximize" else -1.0
        means = self._sign * self._each("mean", mean)
        known = None if averages is None else self._sign * np.asarray(averages, dtype=np.float64)
        self._start = ArmPosterior.of(means, covariance, noise_variance, counts=counts, averages=known, plate=plate)
        if self._start.arms != len(self.arms):
            raise InputError(f"mean has {self._start.arms} numbers for {len(self.arms)} arms")
        self._posterior = self._start
        self._told: list[tuple[int, float, float | None]] = []
        self._asked: list[int] = []
        self._begun: list[int] = []

    @property
    def posterior(self) -> ArmPosterior:
        """What is known now; larger is better."""
        return self._posterior

    @property
    def used(self) -> int:
        """Measurements that were told."""
        return len(self._told)

    @property
    def remark(self) -> str:
        """What the user should know of the rule here; empty where there is nothing."""
        return self.rule.remark(self._posterior, self._situation())

    def ask(self, n: int | None = None) -> list[str]:
        """The next measurements: the same again until a value of them is told, then those of them that are left.

        Args:
            n: How many, where none are awaited; by default ``batch``, and never more than are left.

        Returns:
            Arms, each as often as it is to be measured, in the order of the arms; none where no well is left.
        """
        if not self._asked:
            left = self.wells - self.used
            n = self.batch if n is None else checked_integer("n", n, 1)
            rng = np.random.default_rng([self.seed, _CHOICE, self.used])
            chosen = choose_batch(self._posterior, self.rule, self._situation(), min(n, left), rng)
            self._asked = sorted(int(arms[0]) for arms in chosen)
            if self._asked:
                self._begun.append(self.used)
                self._posterior = self._posterior.on_fresh_plate()
        return [self.arms[index] for index in self._asked]

    def withdraw(self) -> None:
        """Await no measurement any more: the next `ask` chooses anew."""
        self._asked = []

    def tell(self, arms: Sequence[str], values: npt.ArrayLike, noise_variance: npt.ArrayLike | None = None) -> None:
        """Values that were measured, of the last batch or others.

        Args:
            arms: n arms, repeated where they were measured repeatedly.
            values: n finite values.
            noise_variance: Known variances of their noise, n, instead of those given in the beginning.

        Raises:
            InputError: For an arm that is none, a value that is not finite, or another number of values. Nothing has
                been told then.
        """
        indices = {arm: index for index, arm in enumerate(self.arms)}
        if unknown := [arm for arm in arms if arm not in indices]:
            raise InputError(f"{unknown[0]!r} is none of the {len(self.arms)} arms")
        found = np.asarray(values, dtype=np.float64).reshape(-1)
        if len(found) != len(arms):
            raise InputError(f"{len(found)} values for {len(arms)} measurements: expected one each")
        bad = np.flatnonzero(~np.isfinite(found))
        if len(bad):
            raise InputError(f"value {bad[0] + 1}, of {arms[bad[0]]!r}, is {found[bad[0]]}: expected a finite number")
        noises: list[float | None] = [None] * len(arms)
        if noise_variance is not None:
            given = np.broadcast_to(np.asarray(noise_variance, dtype=np.float64), found.shape)
            if not (np.isfinite(given) & (given >= 0)).all():
                raise InputError("noise_variance has a value that is negative or not finite")
            noises = given.tolist()
        for arm, value, noise in zip(arms, found.tolist(), noises, strict=True):
            self._learn(indices[arm], value, noise)

    def standing(self) -> Standing:
        """The best arm, and how probable that is."""
        rng = np.random.default_rng([self.seed, _CHANCE, self.used])
        chances = probability_best(self._posterior, rng, tolerance=self.tolerance)
        mean = self._posterior.mean[0]
        # Of equal chances the larger mean.
        best = int(np.lexsort((-mean, -chances))[0])
        std = np.sqrt(self._posterior.variance[0])

        def named(numbers: npt.NDArray[np.float64]) -> dict[str, float]:
            return dict(zip(self.arms, numbers.tolist(), strict=True))

        return Standing(
            self.arms[best],
            float(chances[best]),
            named(chances),
            named(self._sign * mean),
            named(std),
            self.wells,
            self.used,
            self.target,
        )

    def forecast(self, limit: int | None = None) -> Forecast:
        """How many further measurements would make it decided, by simulated continuations from what is known now.

        Args:
            limit: How far it looks ahead; by default for eight times the wells.
        """
        limit = max(HORIZON * self.wells, LEAST) if limit is None else checked_integer("limit", limit, 0)
        return forecast(
            self._posterior,
            self.rule,
            target=self.target,
            limit=limit,
            batch=self.batch,
            rng=np.random.default_rng([self.seed, _FUTURE, self.used]),
            tolerance=self.tolerance,
            now=self.standing().probability,
            # What is left of a batch is the next one to be measured.
            begun=replace(self._situation(), batch=len(self._begun) - bool(self._asked)),
        )

    def state_dict(self) -> dict[str, Any]:
        """What was asked and told, as JSON values."""
        return {
            "told": [[self.arms[index], value, noise] for index, value, noise in self._told],
            "asked": [self.arms[index] for index in self._asked],
            "begun": list(self._begun),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what `state_dict` returned, of a confirmation with the same arguments."""
        indices = {arm: index for index, arm in enumerate(self.arms)}
        unknown = [arm for arm in (*(row[0] for row in state["told"]), *state["asked"]) if arm not in indices]
        if unknown:
            raise InputError(f"the state is of other arms: {unknown[0]!r} is none of these")
        self._posterior, self._told, self._asked = self._start, [], []
        self._begun = [int(used) for used in state["begun"]]
        for place, (arm, value, noise) in enumerate(state["told"]):
            if place in self._begun:
                self._posterior = self._posterior.on_fresh_plate()
            self._learn(indices[arm], value, noise)
        if len(state["told"]) in self._begun:
            self._posterior = self._posterior.on_fresh_plate()
        self._asked = [indices[arm] for arm in state["asked"]]

    def _learn(self, index: int, value: float, noise: float | None) -> None:
        posterior = self._posterior
        if noise is not None:
            own = posterior.noise.copy()
            own[0, index] = noise
            posterior = replace(posterior, noise=own)
        found = posterior.given(np.array([index]), np.array([self._sign * value]))
        self._posterior = replace(found, noise=self._posterior.noise)
        self._told.append((index, value, noise))
        if index in self._asked:
            self._asked.remove(index)

    def _situation(self) -> Situation:
        return Situation(self.wells, self.used, len(self._begun), self._start.spread)

    def _each(self, name: str, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
        found = np.asarray(values, dtype=np.float64)
        if found.shape != (len(self.arms),):
            raise InputError(
                f"{name} has the shape {found.shape}; expected one number for each of {len(self.arms)} arms"
            )
        return found
