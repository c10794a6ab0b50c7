"""Random individuals of a space of which random strings are hardly ever accepted.

A predicate ``accept`` that one string in ten thousand passes leaves random sampling with nothing. Strings that are
known to pass are a better place to begin: their mutants pass far more often, and so do the mutants of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TypeVar

import numpy as np

from seqopt.errors import InputError
from seqopt.spaces import EvolvableSpace

Individual = TypeVar("Individual")

PROBE = 16
"""Individuals that are sampled first, to see whether sampling finds any."""

ROUNDS = 40
"""Populations that are mutated, at most."""


def sampled(
    space: EvolvableSpace[Individual], n: int, parents: Sequence[Individual], rng: np.random.Generator
) -> list[Individual]:
    """``n`` random individuals, or, where sampling fails since ``accept`` refuses nearly all, some grown from parents.

    Raises:
        InputError: If sampling fails and there are no parents.
    """
    if getattr(space, "accept", None) is None or not parents:
        return space.sample_individuals(n, rng)
    first: list[Individual] = []
    with suppress(InputError):
        first = space.sample_individuals(min(PROBE, n), rng)
    # A space may repeat the few that it finds.
    if 2 * len({space.to_string(one) for one in first}) < min(PROBE, n):
        found = grown(space, n + len(parents), [*parents, *first], rng)
        return [found[int(place)] for place in rng.permutation(len(found))[:n]]
    return first + space.sample_individuals(n - len(first), rng) if n > len(first) else first


def grown(
    space: EvolvableSpace[Individual], n: int, parents: Sequence[Individual], rng: np.random.Generator
) -> list[Individual]:
    """Up to ``n`` distinct individuals by chains of mutations that begin at the parents, which are among them.

    Every round mutates individuals found so far, each as likely as any other, so that what is found spreads from the
    parents over the strings that pass.

    Args:
        space: Its moves return individuals of it.
        n: How many, at least as many as there are parents.
        parents: At least one.
        rng: The only source of randomness.

    Example:
        >>> from seqopt.spaces import StringSpace
        >>> space = StringSpace("01", 20, accept=lambda string: string.startswith("1111111111"))
        >>> found = grown(space, 30, ["1" * 20], np.random.default_rng(0))
        >>> len(set(found)), all(map(space.contains, found))
        (30, True)
    """
    found = {space.to_string(parent): parent for parent in parents}
    for _ in range(ROUNDS):
        if len(found) >= n:
            break
        known = list(found.values())
        chosen = [known[int(place)] for place in rng.integers(len(known), size=max(n, len(known)))]
        for child in space.mutate(chosen, rng):
            found.setdefault(space.to_string(child), child)
    return list(found.values())[:n]
