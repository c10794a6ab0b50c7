"""Searches near a lead: "near my lead, further if it pays"."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from seqopt.errors import InputError
from seqopt.models import DistanceMean, PlannedSurrogate, Surrogate, lead_distance, resolve_surrogate, with_mean
from seqopt.models.distance_mean import Neighbourhood
from seqopt.search import Proposal
from seqopt.spaces import EvolvableSpace, PoolSpace, RestrictedSpace, Space, keys_at, left_out
from seqopt.strategies.protocols import SearchState
from seqopt.strategies.random import filled_up
from seqopt.utils.config import Configurable

LOOKED_AT = 500_000
"""Candidates of a pool among which near ones are looked for; of a larger one, a random choice."""

CHANGED = 200
"""Strings that are changed at a time where a space generates its strings."""

ROUNDS = 20
"""Changes one after another, of which each starts from the strings that are near."""

Individual = TypeVar("Individual")


@dataclass(frozen=True)
class Near(Configurable):
    """Search near a lead: within a radius first, and further where values show that it pays.

    The prior mean of the model falls beyond the radius (`seqopt.models.DistanceMean`), and the strings of the initial
    design are drawn within it. Nothing is forbidden: to forbid, filter.

    Args:
        lead: A string, such as a SMILES or a sequence. It need not be a candidate of a pool. Of a protein, DNA or RNA
            blanks and the case of letters do not count.
        radius: How far is near: of molecules 1 - Tanimoto similarity (0.4, say), of other strings the edit distance.
        distance: ``"auto"`` for these; ``"tanimoto"``, ``"edit"``, or ``"kernel"``: see `seqopt.models.lead_distance`.
        scale: How many standard deviations of the values a string at twice the radius has to promise besides.

    Raises:
        InputError: When used, for a lead that cannot be read, or a radius that is out of range or holds no string.

    Example:
        >>> from seqopt import CandidateSet
        >>> near = Near("AAAA", radius=1)
        >>> pool = CandidateSet(["AAAA", "AAAB", "ABBB", "BBBB"], kind="text")
        >>> type(near.surrogate("ssk", pool)).__name__, near.mean(pool)(["AABB"]).tolist()
        ('StringGP', [-1.0])
    """

    lead: str
    radius: float
    distance: str = "auto"
    scale: float = 1.0

    def mean(self, space: Space) -> DistanceMean:
        """The prior mean that falls with the distance.

        Raises:
            InputError: See the class.
        """
        lead = self.lead.strip() if isinstance(self.lead, str) else self.lead
        if not isinstance(lead, str) or not lead:
            raise InputError(f"the lead is {self.lead!r}; expected a string, such as a SMILES")
        return DistanceMean(lead_distance(lead, space.kind, self.distance), self.radius, self.scale)

    def surrogate(self, surrogate: Surrogate | PlannedSurrogate | str | None, space: Space) -> Surrogate:
        """A surrogate with that prior mean, which a search of ``space`` can use.

        Args:
            surrogate: What it is like; `None` for the default of the space.
            space: Where the search takes place.

        Raises:
            InputError: See the class; and for a surrogate that takes no prior mean.
        """
        mean = self.mean(space)
        check_radius(mean, space, getattr(mean.distance, "lead", self.lead))
        return with_mean(resolve_surrogate("auto" if surrogate is None else surrogate, space), mean)


def check_radius(mean: Neighbourhood, space: Space, lead: str) -> None:
    """Refuse a radius that holds no string but the lead itself.

    Raises:
        InputError: As said; the message says how near the nearest is.
    """
    rng = np.random.default_rng(0)
    if isinstance(space, PoolSpace):
        keys: Sequence[str] = keys_at(space, _some(space, rng))
        distances = mean.distances(keys)
        where = "candidate"
    else:
        keys = _changed(space, lead, mean, CHANGED, rng)
        distances = mean.distances(keys)
        where = "string that was generated"
    others = np.where(distances > 0.0, distances, np.inf)
    nearest = int(np.argmin(others)) if len(others) else -1
    if nearest < 0 or not np.isfinite(others[nearest]):
        raise InputError(f"there is no {where} but the lead {lead!r} itself: nothing can be searched near it")
    if others[nearest] > mean.radius:
        least = _up(float(others[nearest]))
        largest = getattr(mean.distance, "largest", np.inf)
        what = "raise the radius to that at least" if least < largest else "nothing is like it: choose another lead"
        raise InputError(
            f"no {where} lies within {mean.radius:g} of the lead ({mean.distance.label}): the nearest, "
            f"{keys[nearest]!r}, lies at {least:g}; {what}"
        )


def neighbourhood_of(strategy: object) -> Neighbourhood | None:
    """What a strategy's model has for near, if it has a lead."""
    mean = getattr(getattr(strategy, "surrogate", None), "mean", None)
    return mean if isinstance(mean, Neighbourhood) else None


def near_proposals(
    n: int,
    state: SearchState,
    rng: np.random.Generator,
    mean: Neighbourhood,
    *,
    unsupported: Callable[[Sequence[str]], dict[int, str]],
) -> list[Proposal]:
    """Up to ``n`` distinct strings that are not excluded: random ones within the radius and, if these are too few, the
    nearest beyond it; random ones of the space last.

    Args:
        n: How many.
        state: Where the search stands.
        rng: The only source of randomness.
        mean: What says how near strings are.
        unsupported: Why a model cannot take some strings; those are left out.
    """
    space, met = state.space, state.met
    if isinstance(space, PoolSpace):
        places = _some(space, rng)
        # All of a pool are looked at as they are listed, so that their distances are computed once.
        keys = space.keys if len(places) == len(space) else keys_at(space, places)
    else:
        keys = _changed(space, getattr(mean.distance, "lead", ""), mean, max(CHANGED, 4 * n), rng)
        places = np.arange(len(keys))
    distances = mean.distances(keys)
    # Those within the radius come first, in random order; then the others, the nearest first.
    order = np.lexsort((rng.permutation(len(keys)), np.where(distances <= mean.radius, 0.0, distances)))
    found: list[Proposal] = []
    step = max(64, 4 * n)
    for start in range(0, len(order), step):
        block = [int(place) for place in order[start : start + step] if keys[int(place)] not in met]
        without = unsupported([keys[place] for place in block])
        for number, place in enumerate(block):
            key = keys[place]
            if len(found) == n:
                return found
            if number in without or (state.batch is not None and not state.batch.allows([key])[0]):
                continue
            if state.batch is not None:
                state.batch.add(key)
            string = space[int(places[place])] if isinstance(space, PoolSpace) else key
            found.append(Proposal(string, key, state.beginning(len(found)), why="near the lead"))
    return filled_up(found, n, state, rng, unsupported=unsupported)


def _some(pool: PoolSpace, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Places of the candidates that are looked at, ascending."""
    if len(pool) <= LOOKED_AT:
        return np.arange(len(pool))
    return np.sort(rng.choice(len(pool), LOOKED_AT, replace=False)).astype(np.int64)


def _changed(space: Space, lead: str, mean: Neighbourhood, count: int, rng: np.random.Generator) -> list[str]:
    """Keys of strings that a space generates near a lead, each once, without the lead itself.

    A lead that the constraints of the space leave out, such as a gene with a site that is to go, is repaired first.

    Raises:
        InputError: If the lead is not a string of the space, or is left out and nothing near it is in the space.
    """
    if not isinstance(space, EvolvableSpace) or not lead:
        return list(dict.fromkeys(space.key(string) for string in space.sample(ROUNDS * count, rng)))
    starts, known = _starts(space, lead, count, rng)
    parents = starts
    for _ in range(ROUNDS):
        children = space.mutate(parents, rng)
        keys = [space.key(string) for string in space.to_strings(children)]
        for key, child in zip(keys, children, strict=True):
            known.setdefault(key, child)
        near = [
            child
            for child, distance in zip(known.values(), mean.distances(list(known)), strict=True)
            if distance <= mean.radius
        ]
        if len(near) > count:
            break
        # One change more, from what is near, or from the lead again.
        parents = [near[int(place)] for place in rng.integers(len(near), size=count)] if near else starts
    own = space.key(lead)
    return [key for key in known if key != own]


def _starts(
    space: EvolvableSpace[Any], lead: str, count: int, rng: np.random.Generator
) -> tuple[list[Any], dict[str, Any]]:
    """``count`` individuals to change: the lead, or strings like it where it is left out; and those, by their keys."""
    try:
        reason = left_out(space, lead)
    except InputError as error:
        raise InputError(f"the lead is no string of the space: {error}") from error
    if reason is None or not isinstance(space, RestrictedSpace):
        return [space.from_string(lead)] * count, {}
    allowed = space.near_left_out(lead, count, rng)
    if not allowed:
        raise InputError(
            f"the lead {lead!r} is left out: {reason}; and nothing like it was found that is not: choose another lead, "
            "or relax what is forbidden"
        )
    individuals = [space.from_string(string) for string in allowed]
    return [individuals[place % len(allowed)] for place in range(count)], dict(
        zip((space.key(string) for string in allowed), individuals, strict=True)
    )


def _up(number: float) -> float:
    """Three digits, rounded up, so that a radius of that holds the string."""
    digits = 3 - int(np.floor(np.log10(number))) - 1
    return float(np.ceil(number * 10.0**digits - 1e-9) / 10.0**digits)
