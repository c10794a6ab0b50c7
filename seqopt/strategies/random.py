"""Random strings: the initial design, the baseline, and what is left when a model cannot decide."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from seqopt.data import Context, Item, Query, context_of, key_of
from seqopt.data.contexts import BEGINNING
from seqopt.errors import InputError, ModelError
from seqopt.search import Proposal
from seqopt.search.growing import grown
from seqopt.spaces import EvolvableSpace, PoolSpace
from seqopt.strategies.protocols import SearchState
from seqopt.utils.config import Configurable

REDRAWS = 10
"""Times that random strings are drawn again in place of those that a model cannot take."""


def random_proposals(
    n: int,
    state: SearchState,
    rng: np.random.Generator,
    *,
    unsupported: Callable[[Sequence[str]], dict[int, str]] | None = None,
    also_excluded: Set[str] = frozenset(),
) -> list[Proposal]:
    """Up to ``n`` distinct random strings that are not excluded, each to be measured as its target.

    Where that cannot be measured, contexts take turns, and strings that have been measured come only after all others.

    Args:
        n: How many.
        state: Where the search stands.
        rng: The only source of randomness.
        unsupported: Why a model cannot take some strings; those are drawn again.
        also_excluded: Further keys that must not be proposed.

    Raises:
        InputError: If nothing has been evaluated, and no string was found that the model can take.
    """
    excluded = state.excluded | also_excluded
    met = state.met - excluded
    if met:
        found_new = _random(n, state, rng, unsupported, excluded | met, 0)
        again = excluded | {proposal.key for proposal in found_new}
        left = n - len(found_new)
        return found_new + (_random(left, state, rng, unsupported, again, len(found_new)) if left else [])
    return _random(n, state, rng, unsupported, excluded, 0)


def _random(
    n: int,
    state: SearchState,
    rng: np.random.Generator,
    unsupported: Callable[[Sequence[str]], dict[int, str]] | None,
    excluded: Set[str],
    place: int,
) -> list[Proposal]:
    """`random_proposals`, of which the first is at ``place`` of its batch."""
    batch = state.batch
    found: dict[str, Proposal] = {}
    without: dict[int, str] = {}
    for attempt in range(REDRAWS):
        # Enough are drawn that n are left even when every excluded one is among them.
        size = n + len(excluded | state.met)
        if batch is not None and attempt:
            # Of a pool, all in the end: what may join a batch may be rare.
            whole = attempt == REDRAWS - 1 and isinstance(state.space, PoolSpace)
            size = len(state.space) if whole and isinstance(state.space, PoolSpace) else REDRAWS * size
        strings = drawn(state, size, rng)
        keys = [state.space.key(string) for string in strings]
        without = {} if unsupported is None else unsupported(keys)
        for index, (string, key) in enumerate(zip(strings, keys, strict=True)):
            if key in excluded or index in without or key in found:
                continue
            context = _way(key, state, place + len(found))
            if context is None:
                continue
            if batch is not None and (len(found) == n or not batch.allows([key])[0]):
                continue
            if batch is not None:
                batch.add(key)
            found[key] = Proposal(string, key, context)
        if len(found) >= n or not (without or batch is not None):
            break
    if without and not found and not state.size:
        raise InputError(f"no string was found that the model can take: {next(iter(without.values()))}")
    return list(found.values())[:n]


def _way(key: str, state: SearchState, place: int) -> Context | None:
    """How a string is measured: as a search begins or, if that has been done, as comes next; `None` if all has."""
    if state.contexts is None:
        return state.beginning(place)
    ways = 1 if not state.contexts.latent else max(len(state.contexts.possible), BEGINNING)
    turns = (state.beginning(place + turn) for turn in range(ways))
    return next((one for one in turns if Query(key, one) not in state.known), None)


def drawn(state: SearchState, size: int, rng: np.random.Generator) -> list[str]:
    """Random strings; where the space accepts next to none, some that are grown from measured ones."""
    space = state.space
    try:
        return space.sample(size, rng)
    except InputError:
        if not isinstance(space, EvolvableSpace):
            raise
        parents = []
        for item in state.data.measured().items:
            with suppress(InputError):  # what was measured may lie outside the space
                parents.append(space.from_string(key_of(item)))
        if not parents:
            raise
        return space.to_strings(grown(space, size, parents, rng))


def filled_up(
    proposals: list[Proposal],
    n: int,
    state: SearchState,
    rng: np.random.Generator,
    *,
    unsupported: Callable[[Sequence[str]], dict[int, str]] | None = None,
) -> list[Proposal]:
    """``proposals``, and random ones after them where a search found fewer than ``n``; see `random_proposals`."""
    left = n - len(proposals)
    if left <= 0:
        return proposals
    chosen = {proposal.key for proposal in proposals}
    return proposals + random_proposals(
        left, state.after(proposals), rng, unsupported=unsupported, also_excluded=chosen
    )


def _best_on_average(keys: Sequence[str], targets: npt.NDArray[np.float64]) -> str:
    """The string of the largest mean value."""
    values: dict[str, list[float]] = {}
    for key, value in zip(keys, targets.tolist(), strict=True):
        values.setdefault(key, []).append(value)
    return max(values, key=lambda key: sum(values[key]) / len(values[key]))


class RandomStrategy(Configurable):
    """Proposes random strings, and recommends the one that was measured best; implements
    `seqopt.strategies.Strategy`.
    """

    takes_noise_variance = True
    takes_censored = True
    takes_yes_no = True

    def propose(self, n: int, state: SearchState, rng: np.random.Generator) -> list[Proposal]:
        """See `seqopt.strategies.Strategy`."""
        return random_proposals(n, state, rng)

    def recommend(self, state: SearchState, rng: np.random.Generator) -> str:
        """The key of the largest value, of those measured as the target is if there are any.

        Of a value that is known to be better than a limit, the limit counts. Values that are known to be worse than
        one count only where there are no others.
        """
        measured = state.data.measured()
        if not len(measured):
            raise ModelError("nothing has been measured yet: tell some values first")
        targets = measured.targets
        if measured.censored is not None and (measured.censored >= 0).any():
            targets = np.where(measured.censored < 0, -np.inf, targets)
        if state.contexts is not None:
            if state.contexts.latent:
                return _best_on_average([key_of(item) for item in measured.items], targets)
            # Values of other contexts may be of another kind; they decide only where there are no others.
            meant = np.array([context_of(item) == state.contexts.target for item in measured.items])
            targets = np.where(meant, targets, -np.inf) if meant.any() else targets
        return key_of(measured.items[int(np.argmax(targets))])

    def unsupported(self, items: Sequence[Item]) -> dict[int, str]:
        """Nothing is: random strings need no model."""
        return {}

    @property
    def hyperparameters(self) -> dict[str, float]:
        """There are none."""
        return {}

    def state_dict(self) -> dict[str, Any]:
        """Nothing is remembered."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Nothing is restored."""
