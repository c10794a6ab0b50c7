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


def all_finite(order: int, gap: float, first: int, second: int, dtype: np.dtype) -> bool:
    """Whether all per-order sums of strings of ``first`` and ``second`` symbols, and their derivatives, are sure to be
    within a precision. An infinite one would spoil the sums in which its weight is zero.

    Example:
        >>> all_finite(2, 0.5, 10, 10, np.dtype(np.float32)), all_finite(16, 1.0, 600, 600, np.dtype(np.float32))
        (True, False)
    """
    # Each of the symbols that a sub-sequence skips adds to the derivative.
    slopes = np.log10(first + second + 1.0)
    return bool(largest_sum(order, gap, first, second) + slopes < np.log10(np.finfo(dtype).max) - 1.0)
