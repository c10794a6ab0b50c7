"""Prior means of the values at strings: functions of strings, and ones whose parameters come from the values told.

With a prior mean m, a process models values = m(s) + c + f(s) + noise: it sees the values less m, and its predictions
have m added again. A constant c is learned besides, so m need not have the level of the values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from seqopt.errors import InputError

PriorMean = Callable[[Sequence[str]], npt.ArrayLike]
"""From n strings (keys) to the prior means of their values, in the units of the values."""


@runtime_checkable
class DataMean(Protocol):
    """A prior mean that takes its units, or parameters of its own, from the values at each fit."""

    def given(self, strings: Sequence[str], values: npt.NDArray[np.float64]) -> PriorMean:
        """The prior mean given n strings (keys) and their values, of which larger are better.

        It can be sent to another process.
        """
        ...

    def __call__(self, strings: Sequence[str]) -> npt.ArrayLike:
        """Prior means before there are values, n."""
        ...


def mean_given(mean: PriorMean, strings: Sequence[str], values: npt.NDArray[np.float64]) -> PriorMean:
    """The prior mean with which a process is fitted to ``values``: itself, where it takes nothing from them.

    Example:
        >>> mean_given(len, ["AB"], np.zeros(1)) is len
        True
    """
    return mean.given(strings, values) if isinstance(mean, DataMean) else mean


def prior_mean_of(mean: PriorMean, keys: Sequence[str]) -> npt.NDArray[np.float64]:
    """Prior means of strings.

    Raises:
        InputError: If the function does not return one finite number for each string.
    """
    if not len(keys):
        return np.zeros(0)
    found = np.asarray(mean(keys), dtype=np.float64)
    if found.shape != (len(keys),) or not np.isfinite(found).all():
        what = f"an array of shape {found.shape}" if found.shape != (len(keys),) else "a number that is not finite"
        raise InputError(f"the prior mean returned {what} for {len(keys)} strings; expected one finite number for each")
    return found
