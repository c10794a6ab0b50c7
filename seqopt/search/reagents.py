"""Search of combinatorial spaces by their building blocks.

A space of up to some million tuples is looked at as a whole, by joint posterior draws on a grid. In a larger one, the
blocks of one component are varied at a time, the others held: all of them are scored in one call, by look-ups in tables
of the blocks, and the components take turns until nothing improves, from several starts. Either way products are made
only of those tuples that are promising, and the batch is chosen from these by the score of the search.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

import numpy as np
import numpy.typing as npt

from seqopt.errors import InputError
from seqopt.kernels.reagents import numbers_of, subsets
from seqopt.models.reagent_gp import ReagentGP
from seqopt.models.reagent_grid import LARGEST, GridPosterior, TupleGrid
from seqopt.scorers import GaussianScoring, Scoring
from seqopt.search.genetic import GeneticSearch
from seqopt.search.memory import fill_batch
from seqopt.search.protocols import Proposal, SurrogateScoring
from seqopt.spaces import Space
from seqopt.spaces.combinatorial import CombinatorialSpace
from seqopt.utils.config import Configurable

Numbers = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

LOOKED_AT = 200
"""Blocks of one component, of largest predicted mean, whose upper confidence bound is worked out."""

TURNS = 10
"""Most turns of all components from one start."""

BETA = 4.0
"""Tuples are ranked by mean + sqrt(BETA) std in a large space."""

SPARE = 4
"""Tuples of a draw that are kept for each that it may put into a batch: some are known, or have no product."""


class ReagentSearch(Configurable):
    """Maximises a score over a `seqopt.spaces.CombinatorialSpace`.

    With the acquisition function ``thompson`` and a space that is looked at as a whole, ``draws`` joint draws of the
    posterior over *all* tuples are made, and each puts its best into the batch: exact Thompson sampling. With ``mean``
    the tuples of largest mean make the batch, without draws. With any other acquisition function the best tuples of
    draws, and those of largest mean, are made into products, among which the batch is filled greedily.

    With ``mean`` and reactions of three components, a share of each batch may go to *new pairs*: the tuples of largest
    mean of which at most one pair of building blocks has been together in a product that is known, or in this batch.
    Interactions of two blocks are learned from products that have both; the largest means alone have the same pairs
    again and again, and what depends on others is never seen. Reactions of two components have no such share: there a
    pair is the tuple itself.

    Where the surrogate compares products, draws and means by the building blocks nominate
    ``shortlist`` tuples, and joint draws of the whole model over these make the batch. It needs a
    `seqopt.models.ReagentGP`; with another surrogate, the tuples are searched by `GeneticSearch`.

    Args:
        draws: Joint posterior draws for a batch.
        shortlist: Products among which a batch is filled by the acquisition function.
        starts: Tuples that a search of a large space starts from: half the best that are known and the best by the
            additive terms alone, half random.
        dispersion: By how much the deviations of draws from the posterior mean are stretched. Values above 1 explore
            more: interactions of building blocks are rare and large, more so than a Gaussian process expects.
        new_pairs: Share of a batch that goes to new pairs, from 0 to 1, rounded down; default none.

    Raises:
        InputError: For a number below 1, a dispersion that is not positive, or a share that is none.
    """

    def __init__(
        self,
        draws: int = 20,
        shortlist: int = 1_000,
        starts: int = 16,
        dispersion: float = 1.0,
        new_pairs: float = 0.0,
    ) -> None:
        for name, number in (("draws", draws), ("shortlist", shortlist), ("starts", starts)):
            if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 1:
                raise InputError(f"{name} is {number!r}; it must be an integer of at least 1")
        self.draws = int(draws)
        self.shortlist = int(shortlist)
        self.starts = int(starts)
        if not 0 < dispersion < np.inf:
            raise InputError(f"dispersion is {dispersion!r}; it must be a positive number")
        self.dispersion = float(dispersion)
        if not 0 <= new_pairs <= 1:
            raise InputError(f"new_pairs is {new_pairs!r}; it must be a share of the batch, from 0 to 1")
        self.new_pairs = float(new_pairs)

    def check_space(self, space: Space) -> None:
        """Refuse a space without building blocks; see `seqopt.search.CheckedSearch`.

        Raises:
            InputError: For a space that is not a `seqopt.spaces.CombinatorialSpace`.
        """
        if not isinstance(space, CombinatorialSpace):
            raise InputError(
                f"ReagentSearch varies building blocks, and a {type(space).__name__} has none: give a "
                "CombinatorialSpace, or another search"
            )

    def propose(
        self,
        n: int,
        *,
        space: CombinatorialSpace,
        scoring: Scoring,
        excluded: Set[str],
        rng: np.random.Generator,
    ) -> list[Proposal]:
        """Up to ``n`` distinct products with keys outside ``excluded``; see `seqopt.search.Search`."""
        surrogate = _surrogate_of(scoring)
        if surrogate is None:
            return GeneticSearch().propose(n, space=space, scoring=scoring, excluded=excluded, rng=rng)
        grid = TupleGrid(space)
        if grid.size > LARGEST:
            tuples = _by_components(surrogate, space, self.shortlist, self.starts, rng)
            return _chosen(n, tuples, space, scoring, excluded)
        posterior = GridPosterior(surrogate, grid)
        known = _known(grid, space, excluded)
        name = scoring.acquisition.name if isinstance(scoring, GaussianScoring) else ""
        mean = posterior.mean()
        if name != "mean" or space.slots < 3:
            return self._by_score(n, name, space, scoring, surrogate, posterior, mean, known, excluded, rng)
        later = int(self.new_pairs * n)
        found = self._by_score(n - later, name, space, scoring, surrogate, posterior, mean, known, excluded, rng)
        fresh = _with_new_pairs(n - len(found), grid, mean, known, space, excluded, [one.key for one in found])
        return found + _proposals(fresh, surrogate)

    def _by_score(
        self,
        n: int,
        name: str,
        space: CombinatorialSpace,
        scoring: Scoring,
        surrogate: ReagentGP,
        posterior: GridPosterior,
        mean: Sequence[npt.NDArray[np.float32]],
        known: Sequence[Numbers],
        excluded: Set[str],
        rng: np.random.Generator,
    ) -> list[Proposal]:
        """The part of a batch that the acquisition function chooses, of a space that is looked at as a whole."""
        if not n:
            return []
        grid, thompson = posterior.grid, name == "thompson"
        if name == "mean" and not surrogate.products:
            return _in_turn(n, n, [_top(grid, mean, known, SPARE * n)], space, surrogate, excluded)
        draws = min(self.draws, n) if thompson else self.draws
        each = -(-n // draws) if thompson else -(-self.shortlist // draws)
        kept = -(-self.shortlist // (2 * draws)) if surrogate.products else 0
        drawn = []
        for parts in posterior.draws(draws, rng):
            if self.dispersion != 1.0:
                parts = [centre + self.dispersion * (part - centre) for centre, part in zip(mean, parts, strict=True)]
            drawn.append(_top(grid, parts, known, max(SPARE * each, kept)))
        if thompson and not surrogate.products:
            return _in_turn(n, each, drawn, space, surrogate, excluded)
        best, _ = _top(grid, mean, known, self.shortlist)
        if thompson:
            nominated = np.concatenate([best[: self.shortlist // 2], *(tuples[:kept] for tuples, _ in drawn)])
            drawn = _redrawn(surrogate, np.unique(nominated, axis=0), draws, SPARE * each, self.dispersion, rng)
            return _in_turn(n, each, drawn, space, surrogate, excluded)
        ranked = np.concatenate([best[: self.shortlist // 2], *(tuples[:each] for tuples, _ in drawn)])
        return _chosen(n, np.unique(ranked, axis=0)[: 2 * self.shortlist], space, scoring, excluded)


def additive_best(surrogate: ReagentGP, reaction: int, count: int) -> Numbers:
    """The tuples of one reaction that are best by the additive terms of the posterior mean, exactly, the best first.

    The sum over components of a term for each block has its maximum where each term has; the next best are found in
    order by moving one component to its next best block (Lawler's rule).

    Args:
        surrogate: Fitted.
        reaction: The number of the reaction.
        count: How many; fewer come back where there are fewer.

    Returns:
        Rows of a reaction and blocks.
    """
    space, kernel = surrogate.space, surrogate.kernel
    state = surrogate.fitted
    data, alpha = numbers_of(state.encoded), state.alpha[0].numpy()
    alpha = alpha * np.where(data[:, 0] == reaction, 1.0, kernel.between)
    axes, values = [], []
    for slot in range(space.components(reaction)):
        blocks = space.component(reaction, slot)
        seen, at = np.unique(data[:, slot + 1], return_inverse=True)
        weight = kernel.weights[slot] * np.bincount(at, alpha)
        value = kernel.slot_weighted(slot, blocks, seen, np.asarray(weight, dtype=np.float64))
        order = np.argsort(-value, kind="stable")
        axes.append(blocks[order])
        values.append(value[order])
    first = (0,) * len(axes)
    heap = [(-sum(float(value[0]) for value in values), first)]
    met = {first}
    found: list[list[int]] = []
    while heap and len(found) < count:
        negative, places = heapq.heappop(heap)
        found.append([reaction, *(int(axis[place]) for axis, place in zip(axes, places, strict=True))])
        for slot, place in enumerate(places):
            following = (*places[:slot], place + 1, *places[slot + 1 :])
            if place + 1 < len(axes[slot]) and following not in met:
                met.add(following)
                change = float(values[slot][place] - values[slot][place + 1])
                heapq.heappush(heap, (negative + change, following))
    rows = np.full((len(found), 1 + space.slots), -1, dtype=np.int64)
    if found:
        rows[:, : len(found[0])] = found
    return rows


def component_means(surrogate: ReagentGP, individual: Numbers, slot: int) -> tuple[Numbers, FloatArray]:
    """Standardised posterior means of the tuples that differ from one in one component: all its blocks in one call.

    Args:
        surrogate: Fitted.
        individual: A row of a reaction and blocks.
        slot: The component.

    Returns:
        The blocks of the component, and the mean with each.
    """
    space, kernel, state = surrogate.space, surrogate.kernel, surrogate.fitted
    data = numbers_of(state.encoded)
    alpha = state.alpha[0].numpy() * np.where(data[:, 0] == individual[0], 1.0, kernel.between)
    others = {
        other: kernel.looked_up(other, individual[None, other + 1], data[:, other + 1])[0]
        for other in range(kernel.slots)
        if other != slot
    }
    constant, varying = np.ones(len(data)), np.zeros(len(data))  # OFFSET is 1
    for weight, term in zip(kernel.weights, subsets(kernel.slots), strict=True):
        product = np.full(len(data), weight)
        for other in term:
            if other != slot:
                product = product * others[other]
        if slot in term:
            varying += product
        else:
            constant += product
    blocks = space.component(int(individual[0]), slot)
    seen, at = np.unique(data[:, slot + 1], return_inverse=True)
    sums = np.bincount(at, alpha * varying).astype(np.float64)
    means = float(alpha @ constant) + kernel.slot_weighted(slot, blocks, seen, sums)
    return blocks, means


def _by_components(
    surrogate: ReagentGP, space: CombinatorialSpace, count: int, starts: int, rng: np.random.Generator
) -> Numbers:
    """Tuples of large upper confidence bound, found by varying one component at a time."""
    seen: dict[tuple[int, ...], float] = {}
    for start in _starts(surrogate, space, starts, rng):
        current, best = start, -np.inf
        for _ in range(TURNS):
            before = best
            for slot in rng.permutation(space.components(int(start[0]))).tolist():
                blocks, means = component_means(surrogate, current, slot)
                top = blocks[np.argsort(-means, kind="stable")[:LOOKED_AT]]
                rows = np.repeat(current[None], len(top), axis=0)
                rows[:, slot + 1] = top
                mean, variance = surrogate.moments(rows, blocks_only=True)
                bounds = mean + np.sqrt(BETA * variance)
                seen.update(zip(map(tuple, rows.tolist()), bounds.tolist(), strict=True))
                place = int(np.argmax(bounds))
                if bounds[place] > best:
                    current, best = rows[place], float(bounds[place])
            if best <= before:
                break
    ranked = heapq.nlargest(count, seen, key=seen.__getitem__)
    return np.array(ranked, dtype=np.int64).reshape(-1, 1 + space.slots)


def _starts(surrogate: ReagentGP, space: CombinatorialSpace, count: int, rng: np.random.Generator) -> Iterator[Numbers]:
    state = surrogate.fitted
    order = np.argsort(-state.observed_mean[0].numpy(), kind="stable")
    known = numbers_of(state.encoded)[order[: -(-count // 4)]]
    yield from known
    each = -(-count // (4 * len(space.reactions)))
    for reaction in range(len(space.reactions)):
        yield from additive_best(surrogate, reaction, each)
    for individual in space.dealt(-(-count // 2), rng):
        row = np.full(1 + space.slots, -1, dtype=np.int64)
        row[: len(individual)] = individual
        yield row


def _surrogate_of(scoring: Any) -> ReagentGP | None:
    """The surrogate behind a score, through what wraps it."""
    while scoring is not None:
        if isinstance(scoring, SurrogateScoring):
            return scoring.surrogate if isinstance(scoring.surrogate, ReagentGP) else None
        scoring = getattr(scoring, "_scoring", None)
    return None


def _known(grid: TupleGrid, space: CombinatorialSpace, excluded: Set[str]) -> list[Numbers]:
    """Places of the tuples of known products, for each reaction."""
    tuples = [one for key in sorted(excluded) if (one := space.tuple_of(key)) is not None]
    rows = np.full((len(tuples), 1 + space.slots), -1, dtype=np.int64)
    for row, one in zip(rows, tuples, strict=True):
        row[: len(one)] = one
    reactions, flat = grid.flat(rows)
    return [flat[reactions == reaction] for reaction in range(grid.reactions)]


def _top(
    grid: TupleGrid, parts: Sequence[npt.NDArray[np.float32]], known: Sequence[Numbers], count: int
) -> tuple[Numbers, FloatArray]:
    """The tuples of largest value that are not known, the best first, and their values."""
    rows, values = [], []
    for reaction, part in enumerate(parts):
        part[known[reaction]] = -np.inf
        best = np.argpartition(-part, count - 1)[:count] if count < len(part) else np.arange(len(part))
        best = best[part[best] > -np.inf]
        rows.append(grid.tuples(reaction, best))
        values.append(part[best].astype(np.float64))
    tuples, found = np.concatenate(rows), np.concatenate(values)
    order = np.argsort(-found, kind="stable")[:count]
    return tuples[order], found[order]


def _redrawn(
    surrogate: ReagentGP, tuples: Numbers, draws: int, count: int, dispersion: float, rng: np.random.Generator
) -> list[tuple[Numbers, FloatArray]]:
    """The tuples of largest value in each joint draw over some of them, the best first, and their values."""
    mean, drawn = surrogate.joint_draws(tuples, draws, rng)
    found = []
    for values in mean + dispersion * (drawn - mean):
        order = np.argsort(-values, kind="stable")[:count]
        found.append((tuples[order], values[order]))
    return found


def _individual(row: Numbers) -> tuple[int, ...]:
    return tuple(number for number in row.tolist() if number >= 0)


def _in_turn(
    n: int,
    each: int,
    drawn: Sequence[tuple[Numbers, FloatArray]],
    space: CombinatorialSpace,
    surrogate: ReagentGP,
    excluded: Set[str],
) -> list[Proposal]:
    """The best new products of each draw."""
    found: dict[str, tuple[Numbers, float]] = {}
    for tuples, values in drawn:
        left = min(each, n - len(found))
        for row, value in zip(tuples, values.tolist(), strict=True):
            if not left:
                break
            key = space.product(_individual(row))
            if key is not None and key not in excluded and key not in found:
                found[key] = row, value
                left -= 1
    return _proposals(found, surrogate)


def _proposals(found: Mapping[str, tuple[Numbers, float]], surrogate: ReagentGP) -> list[Proposal]:
    """Products with their tuples and standardised scores, as proposals."""
    if not found:
        return []
    means, stds = surrogate.untransform(*surrogate.moments(np.stack([row for row, _ in found.values()])))
    scores = surrogate.untransform(np.array([value for _, value in found.values()]), np.zeros(len(found)))[0]
    return [
        Proposal(key, key, (), float(score), float(mean), float(std))
        for key, score, mean, std in zip(found, scores, means, stds, strict=True)
    ]


def _with_new_pairs(
    n: int,
    grid: TupleGrid,
    mean: Sequence[npt.NDArray[np.float32]],
    known: Sequence[Numbers],
    space: CombinatorialSpace,
    excluded: Set[str],
    batch: Sequence[str],
) -> dict[str, tuple[Numbers, float]]:
    """Products of largest mean of which all pairs of blocks but one are new, each with its tuple and mean.

    The pairs of a product that is taken are new no more for those that follow. What is lacking in the end is filled by
    the largest means.

    Args:
        n: How many.
        grid: Of the space.
        mean: Of the tuples of each reaction, flat.
        known: Places of the tuples of known products, for each reaction.
        space: Makes the products.
        excluded: Known products.
        batch: Products that are in the batch already.
    """
    together = [np.concatenate(two) for two in zip(known, _known(grid, space, set(batch)), strict=True)]
    parts = [
        _Pairs(values, grid.part_shape(reaction), together[reaction], space.components(reaction))
        for reaction, values in enumerate(mean)
    ]
    found: dict[str, tuple[Numbers, float]] = {}
    for strict in (True, False):
        while len(found) < n:
            best = [part.best(strict) for part in parts]
            reaction = int(np.argmax([value for _, value in best]))
            place, value = best[reaction]
            if value == -np.inf:
                break
            parts[reaction].drop(place)
            row = grid.tuples(reaction, np.array([place]))[0]
            key = space.product(_individual(row))
            if key is not None and key not in excluded and key not in found and key not in batch:
                found[key] = row, value
                parts[reaction].take(place)
    return found


class _Pairs:
    """Means of the tuples of one reaction, and how many of their pairs of blocks are new."""

    def __init__(
        self, values: npt.NDArray[np.float32], shape: tuple[int, ...], known: Numbers, components: int
    ) -> None:
        self._values = values.copy()
        self._values[known] = -np.inf
        self._shape, self._wanted = shape, components - 1
        self._pairs = list(itertools.combinations(range(components), 2))
        self._new, count = [], np.zeros(shape, dtype=np.int8)
        places = np.unravel_index(known, shape)
        for one, other in self._pairs:
            new = np.ones((shape[one], shape[other]), dtype=np.bool_)
            new[places[one], places[other]] = False
            self._new.append(new)
            count += new.reshape([size if axis in (one, other) else 1 for axis, size in enumerate(shape)])
        self._count = count
        self._fresh = np.where(count.reshape(-1) >= self._wanted, self._values, -np.inf)

    def best(self, strict: bool) -> tuple[int, float]:
        """The place of the largest mean, of those with enough new pairs or of all, and that mean."""
        values = self._fresh if strict else self._values
        place = int(np.argmax(values))
        return place, float(values[place])

    def drop(self, place: int) -> None:
        """This tuple is not asked for again."""
        self._values[place] = self._fresh[place] = -np.inf

    def take(self, place: int) -> None:
        """The pairs of this tuple are new no more."""
        at = [int(one) for one in np.unravel_index(place, self._shape)]
        fresh = self._fresh.reshape(self._shape)
        for new, (one, other) in zip(self._new, self._pairs, strict=True):
            if new[at[one], at[other]]:
                new[at[one], at[other]] = False
                line = tuple(at[axis] if axis in (one, other) else slice(None) for axis in range(len(self._shape)))
                self._count[line] -= 1
                fresh[line] = np.where(self._count[line] >= self._wanted, fresh[line], -np.inf)


def _chosen(n: int, tuples: Numbers, space: CombinatorialSpace, scoring: Scoring, excluded: Set[str]) -> list[Proposal]:
    """A batch among the products of some tuples, by the score of the search."""
    products = dict.fromkeys(space.product(_individual(row)) for row in tuples)
    keys = [key for key in products if key is not None and key not in excluded]
    without = scoring.unsupported(keys)
    keys = [key for index, key in enumerate(keys) if index not in without]
    if not keys:
        return []
    scorer = scoring.sample_scorer(keys)
    return fill_batch(n, scorer, np.ones(len(keys), dtype=np.bool_), lambda index: keys[index])
