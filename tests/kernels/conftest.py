"""The kernel by enumeration of sub-sequences: the definition, spelt out, as an oracle for short strings."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest


def skipped_symbols(string: Sequence, order: int) -> dict[tuple, list[int]]:
    """For each sub-sequence of at most ``order`` symbols, how many symbols each of its occurrences skips."""
    found: dict[tuple, list[int]] = {}
    for length in range(1, order + 1):
        for indices in combinations(range(len(string)), length):
            spelt = tuple(string[i] for i in indices)
            found.setdefault(spelt, []).append(indices[-1] - indices[0] + 1 - length)
    return found


def order_sums(a: Sequence, b: Sequence, order: int, gap: float) -> tuple[np.ndarray, np.ndarray]:
    """h_1..h_order and their derivatives in the gap decay."""
    of_a, of_b = skipped_symbols(a, order), skipped_symbols(b, order)
    sums, derivatives = np.zeros(order), np.zeros(order)
    for spelt, skips in of_a.items():
        exponents = np.add.outer(skips, of_b.get(spelt, [])).ravel()
        sums[len(spelt) - 1] += (gap**exponents).sum()
        derivatives[len(spelt) - 1] += (exponents * gap ** np.maximum(exponents - 1.0, 0.0)).sum()
    return sums, derivatives


def contribution(string: Sequence, spelt: Sequence, match: float, gap: float) -> float:
    """c_u(string)."""
    skips = skipped_symbols(string, len(spelt)).get(tuple(spelt), [])
    return match ** len(spelt) * sum(gap**skipped for skipped in skips)


def kernel(a: Sequence, b: Sequence, order: int, match: float, gap: float) -> float:
    """Unnormalised kernel."""
    return float(order_sums(a, b, order, gap)[0] @ match ** (2.0 * np.arange(1, order + 1)))


@pytest.fixture(scope="session")
def brute_force() -> SimpleNamespace:
    return SimpleNamespace(order_sums=order_sums, contribution=contribution, kernel=kernel)
