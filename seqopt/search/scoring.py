"""What the searches of spaces that are no lists share: scored strings, remembered, and the choice among them."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from seqopt.acquisition import PreparedAcquisition
from seqopt.models import (
    BoundedPosterior,
    ConditionedProcess,
    PoolSurrogate,
    Posterior,
    StringSurrogate,
    unsupported,
)
from seqopt.search.protocols import Suggestion
from seqopt.spaces import Space

FloatArray = npt.NDArray[np.float64]


@dataclass
class Scores:
    """Acquisition values of strings at one state of a batch: every string is scored once.

    Args:
        space: Gives keys.
        process: The surrogate's posterior, conditioned on what is pending or chosen.
        acquisition: Prepared for this step.
        excluded: Keys that must not be proposed. They are scored, as parents, all the same.
        surrogate: Whose posterior it is: strings that it cannot take score minus infinity.
    """

    space: Space
    process: ConditionedProcess
    acquisition: PreparedAcquisition
    excluded: Set[str]
    surrogate: object = None
    keys: dict[str, str] = field(default_factory=dict)
    _values: dict[str, float] = field(default_factory=dict)
    best: str | None = None
    best_value: float = -np.inf

    def __call__(self, strings: Sequence[str]) -> FloatArray:
        """Acquisition values of ``strings``; those not scored before are scored in one call."""
        fresh = [string for string in dict.fromkeys(strings) if string not in self._values]
        if fresh:
            keys = [self.keys.get(string) or self.space.key(string) for string in fresh]
            refused = unsupported(self.surrogate, keys)
            taken = [place for place in range(len(keys)) if place not in refused]
            values = np.full(len(keys), -np.inf)
            if taken:
                found = self.acquisition(self.process.at([keys[place] for place in taken])).numpy()
                values[taken] = np.nan_to_num(found, nan=-np.inf, posinf=np.inf, neginf=-np.inf)
            self.keys.update(zip(fresh, keys, strict=True))
            self._values.update(zip(fresh, values.tolist(), strict=True))
            allowed = np.array([key not in self.excluded for key in keys])
            ranked = np.where(allowed, values, -np.inf)
            top = int(np.argmax(ranked))
            if ranked[top] > self.best_value:
                self.best, self.best_value = fresh[top], float(ranked[top])
        return np.array([self._values[string] for string in strings])

    def ranked(self) -> list[str]:
        """All strings scored so far, best first."""
        return sorted(self._values, key=lambda string: -self._values[string])


def fill_batch(
    n: int,
    posterior: Posterior,
    acquisition: PreparedAcquisition,
    allowed: npt.NDArray[np.bool_],
    propose: Callable[[int, float], Suggestion],
) -> list[Suggestion]:
    """A greedy batch of at most ``n`` points of ``posterior``, each the best given those before it.

    Args:
        n: Batch size.
        posterior: Is conditioned on all points but the last.
        acquisition: Prepared for this step.
        allowed: Which points may be chosen.
        propose: Makes a suggestion of a point and its acquisition value.
    """
    allowed = allowed.copy()
    chosen: list[Suggestion] = []
    for _ in range(min(n, int(allowed.sum()))):
        scores = np.where(allowed, acquisition(posterior).numpy(), -np.inf)
        best = int(np.argmax(scores))
        while isinstance(posterior, BoundedPosterior) and allowed[best] and not posterior.is_exact(best):
            posterior.refine(scores)
            scores = np.where(allowed, acquisition(posterior).numpy(), -np.inf)
            best = int(np.argmax(scores))
        if not allowed[best]:  # the acquisition rules every remaining point out
            break
        chosen.append(propose(best, float(scores[best])))
        allowed[best] = False
        if len(chosen) < n:
            posterior.condition(best)
    return chosen


def suggestion(
    string: str, key: str, value: float, posterior: Posterior, index: int, surrogate: PoolSurrogate | StringSurrogate
) -> Suggestion:
    """A suggestion with what the model predicts for point ``index`` of ``posterior``."""
    centre, variance = mixture(posterior, index)
    noise = float(np.asarray(posterior.noise_variance).mean())
    (mean, _), (std, measurement_std) = surrogate.untransform([centre, centre], [variance, variance + noise])
    return Suggestion(string, key, value, float(mean), float(std), float(measurement_std))


def mixture(posterior: Posterior, index: int) -> tuple[float, float]:
    """Mean and variance of the mixture over kernel-parameter draws at one point, in standardised units.

    The variance is the mean of the variances and the variance of the means.
    """
    means: Any = np.asarray(posterior.mean[..., index])
    variances: Any = np.asarray(posterior.variance[..., index])
    return float(means.mean()), float(variances.mean() + means.var())
