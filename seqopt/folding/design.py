"""The gene of a protein that folds most tightly, exactly, and genes that come close to it.

All genes of a protein and all their secondary structures are searched at once by dynamic programming
(`seqopt.folding.compiled`), so that the result is the least energy there is, in the energy model of ViennaRNA without
dangling ends (``dangles=0``). Codons can be weighed besides, to trade energy against codon adaptation.

References:
    Terai, G., Kamegai, S., Asai, K. (2016). CDSfold: an algorithm for designing a protein-coding sequence with the most
        stable secondary structure. Bioinformatics 32, 828-834.
    Zhang, H. et al. (2023). Algorithm for optimized mRNA design improves stability and immunogenicity. Nature 621,
        396-403.
    Gu, X., Qi, Y., El-Kebir, M. (2024). DERNA enables Pareto optimal RNA design. J. Comput. Biol. 31, 179-196.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from threading import Timer

import numpy as np

from seqopt.errors import InputError
from seqopt.folding.compiled import (
    RING,
    IntArray,
    Tables,
    fill_pairs,
    fill_two,
    finish_column,
    keep_best_pairs,
    keep_pairs,
    prepare_two,
    small_hairpins,
)
from seqopt.folding.energies import INFINITE, LARGEST_LOOP, UNIT, Energies, energies, model
from seqopt.folding.graph import MOST, BaseGraph, base_graph, bases_of
from seqopt.folding.tracing import Program, trace
from seqopt.objectives.genes import LEAST_SPAN, CodonAdaptationIndex
from seqopt.spaces import CodonSpace
from seqopt.utils.workers import usable_cores

THREADED = 150
"""Codons from which several threads share the work of a column: below, starting them costs more than they bring."""

MOST_CODONS = 9_000
"""Codons of a gene at most: energies of longer ones might not fit into 32 bits."""

LARGEST_WEIGHT = 500.0
"""Largest ``codon_weight``, in kcal/mol."""

RT = 0.61632
"""The gas constant times 310.15 K, in kcal/mol."""

PROMPT_SECONDS = 3.0
"""After which it is said that the program is being compiled."""

ATTEMPTS = 20
"""Genes drawn for each that is wanted, before fewer are returned."""

logger = logging.getLogger(__name__)

Progress = Callable[[int, int], None]
"""Called with the number of positions done and in all."""


@dataclass(frozen=True)
class FoldedGene:
    """A gene with one of its structures.

    Attributes:
        gene: In DNA letters.
        structure: In dots and brackets.
        energy: Of this structure in kcal/mol, without dangling ends.
        log_adaptiveness: Sum of the logarithms of the relative adaptiveness of its codons, 0 where codons do not count.
        score: ``energy - codon_weight * log_adaptiveness``, in kcal/mol: what is minimised.
    """

    gene: str
    structure: str
    energy: float
    log_adaptiveness: float
    score: float


class ExactFolding:
    """The genes of a protein that fold most tightly, by dynamic programming over all of them.

    For a gene g with codons c_1, ..., c_L it minimises, over all genes and all their secondary structures,

        score(g) = E(g) - codon_weight * sum_i log w(c_i),

    with E the minimum free energy of ViennaRNA (here without dangling ends, ``dangles=0``) in kcal/mol, and w the
    relative adaptiveness of a codon. The sum is over the codons that the codon adaptation index counts, so it is their
    number times log CAI. The weight is that of Zhang et al. (2023); 0 is energy alone.

    The minimum is exact where ``beam`` is `None`, up to rounding of each codon's weight to 1e-4 kcal/mol. ViennaRNA's
    usual energies have dangling ends (``dangles=2``), with which a gene can have another energy and another gene can be
    the best: see `energies_of`.

    Time grows as the cube of the length and memory as its square, see `memory`. Everything is computed when a gene is
    first asked for.

    Args:
        protein: The protein, or the codons that are allowed at each position, or a `CodonSpace` without constraints
            other than start and stop codon and those that only leave codons out.
        adaptation: What weighs codons, such as a `CodonAdaptationIndex`.
        codon_weight: See above, in kcal/mol; from 0.
        temperature: In degrees Celsius.
        span: Largest number of bases from one of a pair to the other, both included; `None` for any.
        beam: Keep only so many places of helices for each end of one, the best together with what comes before them.
            The result is then a gene with its true energy, but not always the least. `None` keeps all.
        threads: For long proteins; by default one for each core that this process may use.
        progress: Told about positions that are done.

    Raises:
        InputError: For a protein or a space that cannot be used, arguments out of range, or a codon weight without
            ``adaptation``.
        ObjectiveError: If ViennaRNA is not installed.

    Example:
        >>> folding = ExactFolding("MNDTEAI")
        >>> folding.optimum.energy
        -1.1
    """

    def __init__(
        self,
        protein: str | Sequence[Sequence[str]] | CodonSpace,
        *,
        adaptation: CodonAdaptationIndex | None = None,
        codon_weight: float = 0.0,
        temperature: float = 37.0,
        span: int | None = None,
        beam: int | None = None,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.choices = _choices(protein)
        if not (math.isfinite(codon_weight) and 0 <= codon_weight <= LARGEST_WEIGHT):
            raise InputError(f"codon_weight is {codon_weight}; expected a number from 0 to {LARGEST_WEIGHT:g} kcal/mol")
        if codon_weight and adaptation is None:
            raise InputError("codon_weight needs adaptation, such as CodonAdaptationIndex('e_coli')")
        if not (math.isfinite(temperature) and temperature > -273.15):
            raise InputError(f"temperature must be above -273.15 degrees Celsius, not {temperature}")
        for name, value, least in (("span", span, LEAST_SPAN), ("beam", beam, 1), ("threads", threads, 1)):
            if value is not None and value < least:
                raise InputError(f"{name} is {value}; expected {least} or more, or None")
        self.adaptation = adaptation
        self.codon_weight = codon_weight
        self.temperature = temperature
        self.span = span
        self.beam = beam
        self.threads = usable_cores() if threads is None else threads
        self.progress = progress

    @property
    def length(self) -> int:
        """Bases of a gene."""
        return 3 * len(self.choices)

    @property
    def memory(self) -> int:
        """Bytes of the tables: 12 for each pair of nodes of the graph of bases, nearly all of it."""
        return sum(table.nbytes for table in _tables(self._graph, self.beam, empty=True)) + 12 * _packed(self._graph)

    @cached_property
    def least_score(self) -> float:
        """The least score of all genes, in kcal/mol, with weights of codons as they were rounded."""
        tables = self._tables
        return round((int(tables.outside[self._graph.starts[-2] :].min()) + self._besides) * UNIT, 4)

    @cached_property
    def optimum(self) -> FoldedGene:
        """A gene of the least score, with its structure; always the same one where several have it."""
        return self._traced(0, 0.0, np.random.default_rng(0))

    def near_optimal(
        self, number: int, within: float, rng: np.random.Generator, *, diverse: bool = True
    ) -> list[FoldedGene]:
        """Different genes, none of them further above the least score than ``within``.

        A gene is drawn by going back through the tables: wherever several ways lead on that are still within the limit,
        one of them is drawn with probability proportional to exp(-d / RT), d being what it costs. Genes with more than
        one structure within the limit are drawn more often. The structure that comes with a gene is one that is within
        the limit; the gene's minimum free energy can be lower still.

        Args:
            number: How many; fewer if not so many are found in `ATTEMPTS` times as many draws.
            within: In kcal/mol, from 0.
            rng: Source of all draws.
            diverse: Of all genes drawn (up to `ATTEMPTS` times ``number``), take those that differ most: the best, then
                again and again the one with the most codons that are in none of those taken at its place.

        Returns:
            Genes in order of score.

        Raises:
            InputError: If ``number`` or ``within`` is out of range.

        Example:
            >>> genes = ExactFolding("TIKENIFGVS").near_optimal(3, 1.0, np.random.default_rng(0))
            >>> len(genes), max(gene.energy for gene in genes) <= -9.1
            (3, True)
        """
        if number < 1:
            raise InputError(f"number is {number}; expected 1 or more")
        if not (math.isfinite(within) and within >= 0):
            raise InputError(f"within is {within}; expected a number of kcal/mol from 0")
        slack = round(within / UNIT)
        found: dict[str, FoldedGene] = {self.optimum.gene: self.optimum}
        draws = ATTEMPTS * number
        wanted = max(2 * number, number + 8) if diverse else number
        while draws and len(found) < wanted:
            draws -= 1
            drawn = self._traced(slack, RT / UNIT, rng)
            if drawn.gene not in found or drawn.score < found[drawn.gene].score:
                found[drawn.gene] = drawn
        genes = list(found.values())
        chosen = _spread(genes, number) if diverse else genes[:number]
        return sorted(chosen, key=lambda gene: (gene.score, gene.gene))

    def energies_of(self, genes: Sequence[str], dangles: int = 0) -> list[float]:
        """Minimum free energies by ViennaRNA in kcal/mol, with ``dangles`` as there: 0 for none, 2 for its default."""
        return [energy for _, energy in self.folded(genes, dangles)]

    def log_adaptiveness(self, gene: str) -> float:
        """Sum of log w over the codons of a gene, those that count; 0 where codons are not weighed."""
        return math.fsum(self._logs.get(gene[at : at + 3], 0.0) for at in range(0, len(gene), 3))

    def folded(self, genes: Sequence[str], dangles: int = 0) -> list[tuple[str, float]]:
        """Structures, in dots and brackets, and their energies, as in `energies_of`."""
        import RNA

        details = model(self.temperature, dangles)
        if self.span is not None:
            details.max_bp_span = self.span
        folded = (RNA.fold_compound(gene.upper().replace("T", "U"), details).mfe() for gene in genes)
        return [(structure, round(energy, 2)) for structure, energy in folded]

    @cached_property
    def _logs(self) -> dict[str, float]:
        known = {} if self.adaptation is None else self.adaptation.adaptiveness
        return {codon: math.log(value) for codon, value in known.items()}

    @cached_property
    def _weights(self) -> tuple[list[dict[str, int]], int]:
        """Weights of the codons of each position above the least of them, and the sum of the least."""
        rows, besides = [], 0
        for codons in self.choices:
            row = {codon: round(-self.codon_weight * self._logs.get(codon, 0.0) / UNIT) for codon in codons}
            least = min(row.values())
            besides += least
            rows.append({codon: weight - least for codon, weight in row.items()})
        return rows, besides

    @property
    def _besides(self) -> int:
        return self._weights[1]

    @cached_property
    def _graph(self) -> BaseGraph:
        return base_graph(self.choices, self._weights[0])

    @cached_property
    def _energies(self) -> Energies:
        return energies(self.length, self.temperature)

    @cached_property
    def _floor(self) -> IntArray:
        return _floor(self._energies)

    @cached_property
    def _tables(self) -> Tables:
        graph, of_loops = self._graph, self._energies
        tables = _tables(graph, self.beam)
        # The first column is computed at once, so what takes longer is the compiler.
        remark = Timer(
            PROMPT_SECONDS,
            logger.warning,
            ["folding is being compiled, which takes half a minute or more; where it can be kept, only once"],
        )
        remark.daemon = True
        remark.start()
        small_hairpins(graph, of_loops, tables.small)
        span = self.length if self.span is None else self.span
        threads = self.threads if len(self.choices) >= THREADED else 1
        with ThreadPoolExecutor(threads) as pool:

            def shared(work: Callable[[int], None]) -> None:
                if threads == 1:
                    work(0)
                else:
                    list(pool.map(work, range(threads)))

            for j in range(graph.length):
                self._fill_column(tables, j, span, threads, shared)
                remark.cancel()
                if self.progress is not None:
                    self.progress(j + 1, graph.length)
        return tables

    def _fill_column(
        self, tables: Tables, j: int, span: int, threads: int, shared: Callable[[Callable[[int], None]], None]
    ) -> None:
        graph, of_loops, beam = self._graph, self._energies, self.beam or 0
        shared(lambda first: fill_pairs(graph, of_loops, tables, j, first, threads, span, self._floor))
        if beam:
            keep_best_pairs(graph, tables, j, beam)
        shared(lambda first: keep_pairs(graph, of_loops, tables, j, first, threads))
        prepare_two(graph, tables, j, beam)
        shared(lambda first: fill_two(graph, tables, j, first, threads, beam))
        finish_column(graph, of_loops, tables, j)

    def _traced(self, slack: int, warmth: float, rng: np.random.Generator) -> FoldedGene:
        graph = self._graph
        traced = trace(Program(graph, self._energies, self._tables, self._floor), slack, warmth, rng)
        gene = bases_of(graph, traced.nodes)
        structure = "".join("." if other < 0 else "(" if other > at else ")" for at, other in enumerate(traced.partner))
        rounded = [row[gene[3 * at : 3 * at + 3]] for at, row in enumerate(self._weights[0])]
        total = int(self._tables.outside[graph.starts[-2] :].min()) + traced.above
        energy = round((total - sum(rounded)) * UNIT, 2)
        logs = self.log_adaptiveness(gene)
        return FoldedGene(gene, structure, energy, logs, round(energy - self.codon_weight * logs, 6))


def _choices(protein: str | Sequence[Sequence[str]] | CodonSpace) -> list[tuple[str, ...]]:
    if isinstance(protein, str):
        protein = CodonSpace(protein)
    if isinstance(protein, CodonSpace):
        kept = [
            *(["motifs to avoid"] if protein.forbidden else []),
            *(["bounds of the GC content"] if protein.gc is not None else []),
            *(one.text for one in protein.constraints if one.checked or one.motifs()),
            *(["a condition (accept)"] if protein.accept is not None else []),
        ]
        if kept:
            raise InputError(f"exact folding cannot keep to {' and '.join(kept)}: leave them out, or search instead")
        choices = [tuple(codons) for codons in protein.choices]
    else:
        choices = [tuple(codon.strip().upper().replace("U", "T") for codon in codons) for codons in protein]
        for position, codons in enumerate(choices, start=1):
            if not codons or not all(len(codon) == 3 and set(codon) <= set("ACGT") for codon in codons):
                raise InputError(f"position {position} has the codons {list(codons)}; expected one codon or more")
        if not choices:
            raise InputError("there are no codons: give those of one position or more")
    if len(choices) > MOST_CODONS:
        raise InputError(f"the gene has {len(choices):,} codons; exact folding takes up to {MOST_CODONS:,}")
    return choices


def _packed(graph: BaseGraph) -> int:
    """Entries of a packed table."""
    return int((graph.starts[-1] - graph.starts[graph.position]).sum(dtype=np.int64))


def _tables(graph: BaseGraph, beam: int | None, *, empty: bool = False) -> Tables:
    nodes, length = int(graph.starts[-1]), graph.length
    first = graph.starts[graph.position].astype(np.int64)
    offset = np.concatenate([[0], np.cumsum(nodes - first)[:-1]]) - first
    size = 0 if empty else _packed(graph)

    def infinite(*shape: int) -> IntArray:
        return np.full(shape, INFINITE, dtype=np.int32)

    return Tables(
        offset=offset,
        paired=infinite(size),
        one=infinite(size),
        several=infinite(size),
        two=infinite(2, MOST, nodes),
        after=infinite(MOST, nodes),
        kept=np.zeros((MOST, (beam or 0) + 1), dtype=np.int32),
        outside=infinite(nodes),
        inner=infinite(RING, length, 3, MOST, MOST),
        least_inner=infinite(RING, length, 3),
        least=infinite(RING, length),
        small=infinite(3, length, MOST, MOST),
    )


def _floor(of_loops: Energies) -> IntArray:
    """Least energies of interior loops, by unpaired bases on the left and on the right."""
    size = LARGEST_LOOP + 1
    floor = np.full((size, size), INFINITE, dtype=np.int32)
    least = [int(of_loops.mismatch[kind, 1:, 1:, 1:].min()) for kind in range(3)]
    for left in range(size):
        for right in range(size - left):
            kind = 1 if 1 in (left, right) else 2 if left + right == 5 else 0
            floor[left, right] = of_loops.interior[left, right] + 2 * least[kind]
    ends = 2 * min(0, int(of_loops.terminal.min()))
    stack = int(of_loops.stack[1:, 1:].min())
    floor[0, 1:] = floor[1:, 0] = of_loops.bulge[1:] + ends
    floor[0, 0], floor[0, 1] = stack, of_loops.bulge[1] + stack
    floor[1, 0] = floor[0, 1]
    for (left, right), table in (
        ((1, 1), of_loops.one_one),
        ((1, 2), of_loops.one_two),
        ((2, 1), of_loops.two_one),
        ((2, 2), of_loops.two_two),
    ):
        floor[left, right] = table[1:, 1:, 1:, 1:].min()
    return floor


def _spread(genes: Sequence[FoldedGene], number: int) -> list[FoldedGene]:
    """The best gene, then again and again the one furthest from those taken, in codons that differ."""
    ordered = sorted(genes, key=lambda gene: (gene.score, gene.gene))
    letters = np.array([[ord(base) for base in gene.gene] for gene in ordered])
    codons = (letters.reshape(len(ordered), -1, 3) * (1, 256, 65_536)).sum(axis=2)
    taken = [0]
    distance = (codons != codons[0]).sum(axis=1)
    while len(taken) < min(number, len(ordered)):
        taken.append(int(distance.argmax()))
        distance = np.minimum(distance, (codons != codons[taken[-1]]).sum(axis=1))
    return [ordered[index] for index in taken]
