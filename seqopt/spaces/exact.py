"""Exact optima over the genes of a protein: the best, the k best, and random ones by their score.

By dynamic programming where constraints are motifs, permitted codons and bounds of the whole gene's GC content. What
else there is to keep to (windows, repeats, hairpins, ends) is looked at in what comes out. Where the best gene breaks
something, the conditions that it breaks are added to a mixed-integer program over the same graph, which is solved
again, until nothing is broken: every gene that is permitted meets the conditions, so the optimum under some of them
that breaks none is the optimum under all. Where the GC content of the whole gene is free, parts of it that no condition
ties together are solved one by one (`seqopt.spaces.components`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from seqopt.errors import InputError, IntractableError
from seqopt.spaces.best_genes import BestGenes
from seqopt.spaces.codon_scores import CodonScore
from seqopt.spaces.components import Components
from seqopt.spaces.path_program import MOST_ROUNDS, PathProgram, optimum
from seqopt.spaces.specifications.base import Cut, all_but
from seqopt.utils.arguments import checked_integer

if TYPE_CHECKING:
    from seqopt.spaces.codons import CodonSpace

TRIED = 32
"""Best genes of the dynamic program that are looked at before a mixed-integer program is made, at least."""

ENUMERATED = 20_000
"""Genes that are looked at one by one where few rounds of conditions do not end."""

FEW_ROUNDS = 10
"""Rounds of conditions before that."""

DRAWS = 200
"""Random genes drawn for each that is asked for, before sampling under constraints is given up."""

MOST_DRAWN = 4096
"""Random genes drawn at a time."""

DYNAMIC, INTEGER = "dynamic programming", "dynamic and mixed-integer programming"


@dataclass(frozen=True)
class ExactGene:
    """A gene of an exact ranking.

    Attributes:
        gene: In DNA letters.
        score: S, as `seqopt.spaces.CodonScore` has it.
    """

    gene: str
    score: float


@dataclass(frozen=True)
class ExactRanking:
    """The best genes, the best first.

    Attributes:
        genes: As many as were asked for, or as there are.
        method: How they were found.
        tolerance: A gene that is not listed is better than the last of them by no more than this: rounding, or the
            solver's tolerance.
    """

    genes: tuple[ExactGene, ...]
    method: str
    tolerance: float

    @property
    def best(self) -> ExactGene:
        """The optimum."""
        return self.genes[0]


class ExactGenes:
    """Genes of a space by a score that is a sum over codons.

    Args:
        space: The genes; a space with ``accept`` is refused, since a predicate can only be tried.
        score: What makes a gene good.
        checked: Whether ``accept`` is refused; otherwise it is left aside.

    Raises:
        InputError: For a space with ``accept``, or a score that does not fit the genes.
        IntractableError: If motifs and score tell too many states apart.

    Example:
        >>> from seqopt.spaces import CodonSpace
        >>> space = CodonSpace("MEFK", forbidden=["GAATTC"], stop="TAA")
        >>> exact = ExactGenes(space, CodonScore({"GAA": 0.7, "TTC": 0.5, "AAA": 0.2}))
        >>> [(one.gene, round(one.score, 3)) for one in exact.best(2).genes]
        [('ATGGAATTTAAATAA', 0.9), ('ATGGAGTTCAAATAA', 0.7)]
    """

    def __init__(self, space: CodonSpace, score: CodonScore, *, checked: bool = True) -> None:
        if checked and space.accept is not None:
            raise InputError("no exact optimum where accept() has the last word: leave it out, or search")
        self.space = space
        self.score = score
        self.graph = space.graph(score)
        self.dynamic = BestGenes(self.graph, space.gc_numbers, score.of_gc)
        self._rounds = MOST_ROUNDS if space.size > ENUMERATED else FEW_ROUNDS

    def best(self, k: int = 1) -> ExactRanking:
        """The ``k`` best genes, fewer only if there are fewer.

        Raises:
            InputError: If ``k`` is not an integer of at least 1, or no gene keeps to the constraints.
            IntractableError: If genes break further constraints round after round.
        """
        k = checked_integer("k", k, 1)
        # What rounding of a sum of so many terms can amount to, and twice that for a comparison.
        rounding = 4 * float(np.finfo(np.float64).eps) * len(self.graph.layers) * max(self._size, 1e-300)
        if not self.space.checked:
            genes = [self._gene(options) for _, options in self.dynamic.ranked(k)]
            return ExactRanking(tuple(genes), DYNAMIC, rounding)
        try:
            return self._checked(k, rounding)
        except IntractableError:
            if self.space.size > ENUMERATED:
                raise
        # Conditions that each exclude a few genes only may take more rounds than there are genes to look at.
        ranked = [options for _, options in self.dynamic.ranked(self.space.size)]
        allowed = self.space.keep([self.graph.gene(options) for options in ranked])
        kept = [self._gene(options) for options, good in zip(ranked, allowed.tolist(), strict=True) if good]
        if not kept:
            raise InputError("no gene keeps to these constraints")
        return ExactRanking(tuple(kept[:k]), DYNAMIC, rounding)

    def _checked(self, k: int, rounding: float) -> ExactRanking:
        """As `best`, where what comes out of the dynamic program has to be looked at."""
        if self.score.of_gc is None and self.space.gc_numbers is None:
            return self._by_components(k, rounding)
        # Often what breaks nothing is among the first: their order is that of the score, so nothing is missed.
        tried = TRIED + 2 * k
        looked_at = [options for _, options in self.dynamic.ranked(tried)]
        allowed = self.space.keep([self.graph.gene(options) for options in looked_at])
        kept = [options for options, good in zip(looked_at, allowed.tolist(), strict=True) if good]
        if len(kept) >= k or len(looked_at) < tried:
            if not kept:
                raise InputError("no gene keeps to these constraints")
            return ExactRanking(tuple(self._gene(options) for options in kept[:k]), DYNAMIC, rounding)
        found: list[ExactGene] = []
        tolerance = rounding
        for options, slack in self._programmed(k):
            found.append(self._gene(options))
            tolerance = max(tolerance, slack)
        if not found:
            raise InputError("no gene keeps to these constraints")
        found.sort(key=lambda one: -one.score)
        return ExactRanking(tuple(found), INTEGER, tolerance)

    def sample(self, n: int, rng: np.random.Generator, temperature: float = 1.0) -> list[str]:
        """Independent random genes of probability proportional to exp(S / T), exactly, under all constraints.

        Genes may come more than once. With the logarithms of shares among synonyms as weights and T = 1 the codons of
        genes are distributed as in the organism, but for what the constraints exclude.

        Args:
            n: How many.
            rng: The only source of randomness.
            temperature: T, above 0. Small ones give genes near the optimum; infinity gives all genes alike.

        Raises:
            InputError: For a temperature that is not above 0, or constraints that next to no random gene keeps to.
        """
        n = checked_integer("n", n, 0)
        draw = self.dynamic.sampler(temperature)
        found: list[str] = []
        drawn = 0
        while len(found) < n:
            # In proportion to what has been kept so far, so that a large sample takes few sweeps through the layers.
            wanted = n - len(found)
            size = min(max(wanted, 16), MOST_DRAWN) if not self.space.checked else min(2 * wanted + 16, MOST_DRAWN)
            genes = [self.graph.gene(options) for options in draw(size, rng).tolist()]
            drawn += size
            found += [gene for gene, good in zip(genes, self.space.keep(genes).tolist(), strict=True) if good]
            if len(found) < n and drawn > DRAWS * n and len(found) * DRAWS < drawn:
                raise InputError(
                    f"of {drawn:,} random genes {len(found)} keep to {', '.join(self.space.checked_texts)}, which can "
                    "only be sampled by trying: relax these constraints, or sample the space itself"
                )
        return found[:n]

    @property
    def _size(self) -> float:
        return max(float(np.abs(layer.weight).max(initial=0.0)) for layer in self.graph.layers)

    def _gene(self, options: tuple[int, ...]) -> ExactGene:
        gene = self.graph.gene(options)
        return ExactGene(gene, self.score.of(gene))

    def _by_components(self, k: int, rounding: float) -> ExactRanking:
        """The best genes where nothing ties their parts together but motifs and conditions.

        As every permitted gene meets the conditions, the k best under some of them that break nothing are the k best.
        """
        parts = Components(self.graph)
        for number in range(self._rounds):
            found: list[ExactGene] = []
            tolerance = rounding
            broken: list[Cut] = []
            for _, options, slack in parts.ranked():
                gene = self._gene(options)
                broken = self.space.cuts(gene.gene)
                if broken:
                    break
                found.append(gene)
                tolerance = max(tolerance, slack)
                if len(found) == k:
                    break
            if not broken:
                if not found:
                    raise InputError("no gene keeps to these constraints")
                found.sort(key=lambda one: -one.score)
                return ExactRanking(tuple(found), INTEGER if number else DYNAMIC, tolerance)
            parts.add(broken)
        raise IntractableError(
            f"no optimum after {self._rounds} rounds of conditions from {', '.join(self.space.checked_texts)}: relax "
            "these constraints, or search (--search)"
        )

    def _programmed(self, k: int) -> Iterator[tuple[tuple[int, ...], float]]:
        """The best genes by mixed-integer programs, each with how far it may be from the best."""
        known: list[Cut] = []
        for _ in range(k):
            solution = self._solved(known)
            if solution is None:
                return
            options, slack = solution
            yield options, slack
            gene = self.graph.gene(options)
            codons = [gene[begin : begin + 3] for begin in range(0, len(gene), 3)]
            known.append(all_but(codons, range(len(codons))))

    def _solved(self, known: list[Cut]) -> tuple[tuple[int, ...], float] | None:
        if self.score.of_gc is None:
            return self._optimum(known, self.space.gc_numbers)
        # What depends on the number of G and C is constant where that is fixed. The dynamic program says what each
        # number is worth at most, so most of them are never looked at.
        best: tuple[tuple[int, ...], float] | None = None
        score = -np.inf
        for count, most in sorted(self.dynamic.best_by_gc().items(), key=lambda one: -one[1]):
            if most <= score:
                break
            found = self._optimum(known, (count, count))
            if found is not None:
                value = self._gene(found[0]).score
                if value > score:
                    best, score = found, value
        return best

    def _optimum(self, known: list[Cut], gc: tuple[int, int] | None) -> tuple[tuple[int, ...], float] | None:
        """The best gene that keeps to everything, `None` if there is none; conditions found on the way are kept."""
        program = PathProgram(self.graph, gc)
        program.add(known)
        try:
            solution = optimum(program, self.space.cuts, known, self._rounds)
        except IntractableError as error:
            raise IntractableError(
                f"{error} from {', '.join(self.space.checked_texts)}: relax these constraints, or search (--search)"
            ) from None
        if solution is None:
            return None
        return solution.options, max(solution.bound - self.graph.weight(solution.options), 0.0)


def best_gene(space: CodonSpace, score: CodonScore) -> str:
    """The best gene of a space, its ``accept`` left aside."""
    return ExactGenes(space, score, checked=False).best().best.gene
