"""Genetic search: evolves populations of a space towards large values of an acquisition function.

References:
    Moss, H. B. (2021). General-purpose information-theoretical Bayesian optimisation. PhD thesis, Lancaster University,
        sections 4.5.2 and B.3 (with the two children mutated independently of each other).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence, Set
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from seqopt.errors import InputError
from seqopt.models.protocols import nominated
from seqopt.scorers import Scoring
from seqopt.scorers.protocols import repeats
from seqopt.search.growing import sampled
from seqopt.search.memory import Scores
from seqopt.search.protocols import Proposal
from seqopt.spaces import EvolvableSpace, Space
from seqopt.utils.config import Configurable

logger = logging.getLogger(__name__)

Individual = TypeVar("Individual")

PARENTS_KEPT = 10
"""Evaluated strings of largest predicted mean that a seeded search starts from."""

LOOKED_AT = 1000
"""Evaluated strings among which those are looked for where the best lie outside the space."""

MUTANTS = 5
"""Mutants of each of them in the first population."""

RENEWALS = 4
"""Times that a child which is known already is mutated further."""


class GeneticSearch(Configurable):
    """Maximises a score over a space whose strings can be mutated and crossed.

    Every evolution replaces the population. A parent is the best of a random sub-sample of the population
    (tournament); with probability ``crossover`` a second parent is drawn and their two children are taken, otherwise
    the parent itself; each of them is mutated with probability ``mutation``. A child that has been scored before is
    mutated further, so that a population which has converged continues to search its neighbourhood. The best string
    found so far stays. The whole population is scored in one call, and no string is scored twice.

    When ``patience`` evolutions in a row have brought nothing better, a random population takes over, and the best
    string found so far joins it. The search ends when ``restarts`` such populations in a row have brought nothing
    better, and in any case after ``evolutions``.

    The published algorithm is ``GeneticSearch(patience=1, sample=100, seeded=False, restarts=0, elitist=False,
    novel=False)``; see `seqopt.strategies.published`.

    Where ``accept`` of the space refuses nearly all random strings, random ones are grown from evaluated ones instead
    (`seqopt.search.growing`).

    The first population is the best of ``sample`` random strings and, if ``seeded``, of the evaluated strings of
    largest predicted mean, their mutants, and what the model makes of them (`seqopt.models.Nominating`). The
    score is prepared on all of these.

    A batch is filled greedily: the search for each next element starts from the best strings of the one before, scored
    again given the elements chosen and the strings that are pending, and ends with the first population that is given
    up.

    Args:
        population: Number N of individuals.
        tournament: Share of the population in a tournament, in (0, 1].
        crossover: Probability of a second parent.
        mutation: Probability that a child is mutated.
        evolutions: Most evolutions for one element of a batch.
        patience: Evolutions in a row without improvement after which a population is given up.
        sample: Random strings looked at first, at least ``population``; the published algorithm takes ``population``.
        seeded: Whether to start from evaluated strings as well as from random ones. The published algorithm starts
            from random ones only.
        restarts: Random populations in a row without improvement after which the search ends.
        elitist: Whether the best string found so far is part of every population.
        novel: Whether children that have been scored before are mutated further, and the first population consists of
            distinct strings.

    Raises:
        InputError: For a number out of its range.

    Example:
        >>> from seqopt import Optimizer, StringSpace
        >>> space = StringSpace("01", 10)
        >>> optimizer = Optimizer(space, search=GeneticSearch(evolutions=20), initial=5)
        >>> for _ in range(4):
        ...     strings = optimizer.ask()
        ...     optimizer.tell(strings, [string.count("11") for string in strings])
        >>> len(optimizer.observations)
        8
    """

    def __init__(
        self,
        population: int = 100,
        tournament: float = 0.5,
        crossover: float = 0.75,
        mutation: float = 0.1,
        evolutions: int = 100,
        patience: int = 8,
        sample: int = 500,
        seeded: bool = True,
        restarts: int = 1,
        elitist: bool = True,
        novel: bool = True,
    ) -> None:
        for name, number, least in (
            ("population", population, 2),
            ("evolutions", evolutions, 0),
            ("patience", patience, 1),
            ("sample", sample, population),
            ("restarts", restarts, 0),
        ):
            if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < least:
                raise InputError(f"{name} is {number!r}; it must be an integer of at least {least}")
        for name, share in (("tournament", tournament), ("crossover", crossover), ("mutation", mutation)):
            if not 0.0 <= share <= 1.0 or (name == "tournament" and share == 0.0):
                raise InputError(f"{name} is {share!r}; it must lie in {'(0' if name == 'tournament' else '[0'}, 1]")
        self.population = int(population)
        self.tournament = tournament
        self.crossover = crossover
        self.mutation = mutation
        self.evolutions = int(evolutions)
        self.patience = int(patience)
        self.sample = int(sample)
        self.seeded = seeded
        self.restarts = int(restarts)
        self.elitist = elitist
        self.novel = novel

    def check_space(self, space: Space) -> None:
        """Refuse a space without moves; see `seqopt.search.CheckedSearch`.

        Raises:
            InputError: For a space whose strings cannot be mutated and crossed.
        """
        if not isinstance(space, EvolvableSpace):
            raise InputError(
                f"GeneticSearch mutates and crosses strings, and a {type(space).__name__} has no moves for that: it "
                "needs sample_individuals, mutate, cross, to_string and from_string"
            )

    def propose(
        self,
        n: int,
        *,
        space: EvolvableSpace[Individual],
        scoring: Scoring,
        excluded: Set[str],
        rng: np.random.Generator,
    ) -> list[Proposal]:
        """Up to ``n`` distinct strings with keys outside ``excluded``; see `seqopt.search.Search`."""
        wanted = self.seeded or getattr(space, "accept", None) is not None
        evaluated = self._parents(space, scoring.incumbents(PARENTS_KEPT)) if wanted else []
        if wanted and not evaluated:
            # The best that were measured may lie outside the space; others need not.
            evaluated = self._parents(space, scoring.incumbents(LOOKED_AT))[:PARENTS_KEPT]
        individuals = self._first(space, evaluated, rng)
        if self.seeded:
            known = [space.key(space.to_string(individual)) for individual in evaluated]
            individuals += self._parents(space, nominated(scoring, known))
        keys = list(dict.fromkeys(space.key(space.to_string(individual)) for individual in individuals))
        without = scoring.unsupported(keys)
        keys = [key for index, key in enumerate(keys) if index not in without]
        if not keys:
            return []
        scorer = scoring.scorer(keys)
        taken = set(excluded)
        chosen: list[Proposal] = []
        for _ in range(n):
            scores = Scores(space, scorer, taken)
            archive = self._evolve(space, individuals, scores, rng, 0 if chosen else self.restarts, evaluated)
            if scores.best is None:
                break
            key = scores.keys[scores.best]
            chosen.append(Proposal.of(scores.best, scorer.choose(key)))
            if not repeats(scorer):
                taken.add(key)
            if len(chosen) < n:
                individuals = self._next(space, archive, scores, rng, evaluated)
        return chosen

    @staticmethod
    def _parents(space: EvolvableSpace[Individual], evaluated: list[str]) -> list[Individual]:
        parents = []
        for string in evaluated:
            try:
                parents.append(space.from_string(string))
            except InputError:
                logger.debug("%r lies outside the space: it is no parent", string)
        return parents

    def _first(
        self, space: EvolvableSpace[Individual], evaluated: list[Individual], rng: np.random.Generator
    ) -> list[Individual]:
        parents = evaluated if self.seeded else []
        mutants = space.mutate([parent for parent in parents for _ in range(MUTANTS)], rng)
        return [*parents, *mutants, *sampled(space, self.sample, evaluated, rng)]

    def _next(
        self,
        space: EvolvableSpace[Individual],
        archive: dict[str, Individual],
        scores: Scores,
        rng: np.random.Generator,
        evaluated: list[Individual],
    ) -> list[Individual]:
        """Where the search for the next element of a batch starts: half good strings, half new ones."""
        good = [archive[string] for string in scores.ranked()[: self.sample // 2]]
        return [*good, *sampled(space, max(self.sample - len(good), self.population), evaluated, rng)]

    def _evolve(
        self,
        space: EvolvableSpace[Individual],
        individuals: list[Individual],
        scores: Scores,
        rng: np.random.Generator,
        restarts: int,
        evaluated: list[Individual],
    ) -> dict[str, Individual]:
        """Evolve until nothing improves; returns every individual scored, by its string."""
        archive: dict[str, Individual] = {}
        values = self._scored(space, individuals, scores, archive)
        named = enumerate(individuals)
        distinct = {space.to_string(individual) if self.novel else index: index for index, individual in named}
        order = sorted(distinct.values(), key=lambda index: -values[index])[: self.population]
        individuals, values = [individuals[index] for index in order], values[order]
        waited = fruitless = 0
        before = scores.best_value
        for _ in range(self.evolutions):
            individuals = self._children(space, individuals, values, rng)
            if self.novel:
                individuals = self._renewed(space, individuals, archive, rng)
            if self.elitist and scores.best is not None:
                individuals[0] = archive[scores.best]
            values = self._scored(space, individuals, scores, archive)
            if scores.best_value > before:
                before, waited, fruitless = scores.best_value, 0, 0
                continue
            waited += 1
            if waited == self.patience:
                if fruitless == restarts:
                    break
                waited, fruitless = 0, fruitless + 1
                individuals = sampled(space, self.population, evaluated, rng)
                values = self._scored(space, individuals, scores, archive)
        return archive

    @staticmethod
    def _scored(
        space: EvolvableSpace[Individual], individuals: list[Individual], scores: Scores, archive: dict[str, Individual]
    ) -> npt.NDArray[np.float64]:
        strings = [space.to_string(individual) for individual in individuals]
        archive.update(zip(strings, individuals, strict=True))
        return scores(strings)

    @staticmethod
    def _renewed(
        space: EvolvableSpace[Individual],
        children: list[Individual],
        archive: dict[str, Individual],
        rng: np.random.Generator,
    ) -> list[Individual]:
        """The children, those that have been scored before or that are there twice mutated further."""
        for _ in range(RENEWALS):
            met: set[str] = set()
            known = []
            for index, child in enumerate(children):
                string = space.to_string(child)
                if string in archive or string in met:
                    known.append(index)
                met.add(string)
            if not known:
                break
            for index, mutant in zip(known, space.mutate([children[index] for index in known], rng), strict=True):
                children[index] = mutant
        return children

    def _children(
        self,
        space: EvolvableSpace[Individual],
        individuals: Sequence[Individual],
        values: npt.NDArray[np.float64],
        rng: np.random.Generator,
    ) -> list[Individual]:
        """The next population, of exactly ``population`` individuals."""
        size = self.population
        winners = self._winners(values, 2 * size, rng)
        crossed = rng.random(size) < self.crossover
        # As many rounds as fill the population: one with a crossover brings two children, another one.
        rounds = int(np.searchsorted(np.cumsum(1 + crossed), size)) + 1
        pairs = np.flatnonzero(crossed[:rounds])
        first = [individuals[winners[index]] for index in pairs]
        second = [individuals[winners[size + index]] for index in pairs]
        alone = [individuals[winners[index]] for index in np.flatnonzero(~crossed[:rounds])]
        left, right = space.cross(first, second, rng)
        children = [*left, *right, *alone][:size]
        mutated = np.flatnonzero(rng.random(len(children)) < self.mutation)
        for index, mutant in zip(mutated, space.mutate([children[index] for index in mutated], rng), strict=True):
            children[index] = mutant
        return children

    def _winners(
        self, values: npt.NDArray[np.float64], tournaments: int, rng: np.random.Generator
    ) -> npt.NDArray[np.intp]:
        """Place of the best of a random sub-sample of the population, for each of several tournaments."""
        count = len(values)
        drawn = max(1, round(self.tournament * count))
        samples = rng.permuted(np.tile(np.arange(count), (tournaments, 1)), axis=1)[:, :drawn]
        best: npt.NDArray[np.intp] = values[samples].argmax(axis=1)
        return np.take_along_axis(samples, best[:, None], axis=1)[:, 0]
