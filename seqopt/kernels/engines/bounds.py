"""How large per-order sums can become."""

from __future__ import annotations

from functools import lru_cache

import numpy as np


@lru_cache(maxsize=4096)
def largest_sum(order: int, gap: float, first: int, second: int) -> float:
    r"""Base-10 logarithm of a bound on every per-order sum of a string of ``first`` with one of ``second`` symbols.

    A string of L symbols has at most C(L, i) sub-sequences of i symbols, and their decayed number is at most
    L (1 - gap)^(1 - i), since each of the i - 1 gaps contributes at most 1 + gap + gap^2 + ...

    Example:
        >>> largest_sum(order=2, gap=1.0, first=5, second=1)  # ten pairs of symbols in one, none in the other
        1.0
    """
    orders = np.arange(1.0, order + 1.0)
    bound = np.zeros(order)
    for length in (first, second):
        counted = np.cumsum(np.log10(np.maximum(length + 1.0 - orders, 1.0) / orders))
        decayed = np.inf if gap == 1.0 else np.log10(max(length, 1)) - (orders - 1.0) * np.log10(1.0 - gap)
        bound += np.minimum(np.maximum.accumulate(counted), decayed)
    return float(bound.max())
