"""Initial designs: which strings are measured before there is a model.

A design picks among n candidates by how far apart they are (`seqopt.models.distances`). What is known already, or is
awaited, counts as chosen before.

References:
    Gonzalez, T. F. (1985). Clustering to minimize the maximum intercluster distance. Theoretical Computer Science 38,
        293-306 (farthest first).
    Kennard, R. W., Stone, L. A. (1969). Computer aided design of experiments. Technometrics 11, 137-148 (the same rule
        as a design).
    Kaufman, L., Rousseeuw, P. J. (1990). Finding groups in data, chapter 2. Wiley (k-medoids; BUILD).
    Park, H.-S., Jun, C.-H. (2009). A simple and fast algorithm for K-medoids clustering. Expert Systems with
        Applications 36, 3336-3341 (the alternation).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from seqopt.data import key_of
from seqopt.errors import InputError
from seqopt.search import Proposal
from seqopt.spaces import PoolSpace, Space
from seqopt.strategies.protocols import SearchState
from seqopt.strategies.random import random_proposals
from seqopt.utils.config import Configurable

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

DRAWN = 2_000
"""Strings among which a design chooses where they are generated, and of which k-medoids finds representatives."""

ROUNDS = 20
"""Most rounds in which medoids are moved."""

RETRIES = 5
"""Times that a design chooses again in place of strings that are too much like others of the batch."""

TIE = 1e-9
"""Squared distances that differ by less are equal."""


class Distances(Protocol):
    """Squared distances between n strings."""

    def __len__(self) -> int: ...

    def columns(self, indices: Sequence[int] | npt.NDArray[np.int64]) -> FloatArray:
        """Squared distances, n x len(indices), of all strings from those at ``indices``."""
        ...


@runtime_checkable
class Design(Protocol):
    """Chooses strings to begin with.

    Attributes:
        name: What it is called.
        sample: How many strings it is shown, drawn at random; `None` for all of a pool.
    """

    name: str
    sample: int | None

    def choose(self, n: int, distances: Distances, known: int, rng: np.random.Generator) -> list[int]:
        """Indices of ``n`` strings, or of all where there are fewer.

        Args:
            n: How many.
            distances: Between the candidates and, after them, strings that are measured or awaited.
            known: How many the latter are. They are not chosen.
            rng: The only source of randomness.
        """
        ...


class MaxMinDesign(Configurable):
    """Farthest first: each string is the one farthest from the nearest of those before it.

    The first is random, unless some are known. What is as far is chosen between at random. For n of N candidates it
    takes n columns of distances.

    Args:
        sample: Choose among so many random candidates; `None` for the whole of a pool. Spaces that generate their
            strings are always sampled.

    Raises:
        InputError: If ``sample`` is less than 1.
    """

    name = "maxmin"

    def __init__(self, sample: int | None = None) -> None:
        self.sample = _checked(sample)

    def choose(self, n: int, distances: Distances, known: int, rng: np.random.Generator) -> list[int]:
        """See `Design`."""
        candidates = len(distances) - known
        nearest = np.full(candidates, np.inf)
        for index in range(candidates, len(distances)):
            np.minimum(nearest, distances.columns([index])[:candidates, 0], out=nearest)
        chosen: list[int] = []
        while len(chosen) < min(n, candidates):
            ties = (
                np.flatnonzero(nearest >= nearest.max() - TIE) if np.isfinite(nearest.max()) else np.arange(candidates)
            )
            index = int(rng.choice(ties))
            chosen.append(index)
            np.minimum(nearest, distances.columns([index])[:candidates, 0], out=nearest)
            nearest[chosen] = -1.0
        return chosen


class MedoidsDesign(Configurable):
    """k-medoids: n strings such that the others are near one of them, by the sum of squared distances.

    They are added one by one, each where it lowers the sum most (BUILD), and then moved to the middle of what is
    nearest to each, until nothing changes. Distances between all pairs of the sample are held: 32 MB for 2,000.

    Args:
        sample: Random candidates of which representatives are found.

    Raises:
        InputError: If ``sample`` is less than 1.
    """

    name = "medoids"

    def __init__(self, sample: int = DRAWN) -> None:
        self.sample = _checked(sample)

    def choose(self, n: int, distances: Distances, known: int, rng: np.random.Generator) -> list[int]:
        """See `Design`."""
        candidates = len(distances) - known
        if n >= candidates:
            return [int(index) for index in rng.permutation(candidates)]
        squared = distances.columns(np.arange(len(distances)))[:candidates]
        nearest = squared[:, candidates:].min(axis=1, initial=np.inf)
        own = squared[:, :candidates]
        # Without any medoid every candidate is equally badly served.
        nearest = np.minimum(nearest, own.max(initial=0.0) + 1.0)
        chosen: list[int] = []
        for _ in range(n):
            gains = np.maximum(nearest[:, None] - own, 0.0).sum(axis=0)
            gains[chosen] = -1.0
            index = int(np.argmax(gains))
            chosen.append(index)
            np.minimum(nearest, own[:, index], out=nearest)
        return _moved(own, squared[:, candidates:], chosen)


def _moved(own: FloatArray, known: FloatArray, medoids: list[int]) -> list[int]:
    """Medoids after each has been moved to the middle of what is nearest to it; known strings stay where they are."""
    for _ in range(ROUNDS):
        belongs = np.concatenate([own[:, medoids], known], axis=1).argmin(axis=1)
        moved = list(medoids)
        for place in range(len(medoids)):
            members = np.flatnonzero(belongs == place)
            if len(members):
                moved[place] = int(members[own[np.ix_(members, members)].sum(axis=0).argmin()])
        if moved == medoids or len(set(moved)) < len(moved):
            break
        medoids = moved
    return medoids


DESIGNS: dict[str, Callable[[], Design | None]] = {
    "random": lambda: None,
    "maxmin": MaxMinDesign,
    "medoids": MedoidsDesign,
}
"""Designs by name; random strings need none."""


def resolve_design(design: Design | str, space: Space, surrogate: object | None) -> Design | None:
    """A design for ``space`` from its name; an object is returned as it is, and `None` stands for random strings.

    Args:
        design: A name in `DESIGNS`, ``"auto"``, or a design. ``"auto"`` stands for random strings: on three sets of
            molecules each of the others was ahead on one and behind on another (``docs/results.md``).
        space: Where the search takes place.
        surrogate: What says how far apart strings are; `None` if nothing does.

    Raises:
        InputError: For an unknown name, or a design that needs distances where there are none.
    """
    if isinstance(design, str):
        check_design(design)
        name = design.strip().lower()
        found = None if name == "auto" else DESIGNS[name]()
    elif isinstance(design, Design) and not isinstance(design, type):
        found = design
    else:
        raise InputError(f"{design!r} is not a design: choose auto, {', '.join(DESIGNS)}, or give an object")
    if found is not None and surrogate is None:
        raise InputError(
            f"the design {found.name} spreads strings by the kernel of a surrogate, and this search has none that says "
            "how far apart strings are: choose the design random"
        )
    return found


def check_design(design: str) -> None:
    """Refuse a name that means nothing, before anything else is done.

    Raises:
        InputError: For an unknown name.
    """
    if design.strip().lower() not in ("auto", *DESIGNS):
        raise InputError(f"unknown design {design!r}: choose auto, {', '.join(DESIGNS)}, or give an object")


def designed_proposals(
    n: int,
    state: SearchState,
    rng: np.random.Generator,
    *,
    design: Design,
    distances: Callable[[PoolSpace | Sequence[str], Sequence[str]], Distances],
    unsupported: Callable[[Sequence[str]], dict[int, str]],
) -> list[Proposal]:
    """Up to ``n`` distinct strings that are not excluded, chosen by a design, each to be measured as its target.

    Args:
        n: How many.
        state: Where the search stands; what was measured or is awaited counts as chosen before.
        rng: The only source of randomness.
        design: Chooses.
        distances: Between candidates (a pool, or keys) and, after them, further keys.
        unsupported: Why a model cannot take some strings; those are left out.
    """
    found: list[Proposal] = []
    refused: set[str] = set()
    for _ in range(1 if state.batch is None else RETRIES):
        members = [proposal.key for proposal in found]
        # Also what may not join the batch is not chosen again.
        left = replace(state, batch=None, excluded=state.met | set(members) | refused)
        known = [*(query.key for query in state.data.queries), *map(key_of, state.pending), *members]
        chosen = _chosen(n - len(found), left, list(dict.fromkeys(known)), rng, design, distances, unsupported)
        for proposal in chosen:
            if state.batch is not None and not state.batch.allows([proposal.key])[0]:
                refused.add(proposal.key)
                continue
            if state.batch is not None:
                state.batch.add(proposal.key)
            found.append(proposal)
        if len(found) >= n or not chosen:
            break
    return found


def _chosen(
    n: int,
    state: SearchState,
    known: list[str],
    rng: np.random.Generator,
    design: Design,
    distances: Callable[[PoolSpace | Sequence[str], Sequence[str]], Distances],
    unsupported: Callable[[Sequence[str]], dict[int, str]],
) -> list[Proposal]:
    """What a design chooses of the whole pool, or of a random sample of the space, whatever may join a batch."""
    without = unsupported(known)
    known = [key for index, key in enumerate(known) if index not in without]
    if isinstance(state.space, PoolSpace) and design.sample is None:
        return _of_pool(n, state.space, known, state, rng, design, distances)
    drawn = random_proposals(max(n, design.sample or DRAWN), state, rng, unsupported=unsupported)
    if not drawn:
        return []
    between = distances([proposal.key for proposal in drawn], known)
    return [replace(drawn[index], why=design.name) for index in design.choose(n, between, len(known), rng)]


def _of_pool(
    n: int,
    pool: PoolSpace,
    known: list[str],
    state: SearchState,
    rng: np.random.Generator,
    design: Design,
    distances: Callable[[PoolSpace | Sequence[str], Sequence[str]], Distances],
) -> list[Proposal]:
    """What a design chooses among all candidates of a pool that are not excluded."""
    left = np.ones(len(pool), dtype=np.bool_)
    left[[index for key in state.met if (index := pool.index_of(key)) is not None]] = False
    allowed = np.flatnonzero(left)
    if not len(allowed):
        return []
    between = _Part(distances(pool, known), np.concatenate([allowed, len(pool) + np.arange(len(known))]))
    chosen = [int(allowed[index]) for index in design.choose(n, between, len(known), rng)]
    return [
        Proposal(pool[index], pool.keys[index], state.beginning(place), why=design.name)
        for place, index in enumerate(chosen)
    ]


class _Part:
    """Distances between some of the strings."""

    def __init__(self, distances: Distances, indices: npt.NDArray[np.int64]) -> None:
        self._distances, self._indices = distances, indices

    def __len__(self) -> int:
        return len(self._indices)

    def columns(self, indices: Sequence[int] | npt.NDArray[np.int64]) -> FloatArray:
        chosen = self._indices[np.asarray(indices, dtype=np.int64)]
        return self._distances.columns(chosen)[self._indices]


def _checked(sample: int | None) -> int | None:
    if sample is not None and (isinstance(sample, bool) or not isinstance(sample, int | np.integer) or sample < 1):
        raise InputError(f"sample is {sample!r}; expected an integer of at least 1, or None for all candidates")
    return None if sample is None else int(sample)
