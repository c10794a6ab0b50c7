"""Synonymous genes of a protein.

References:
    Moss, H. B. (2021). General-purpose information-theoretical Bayesian optimisation. PhD thesis, Lancaster University,
        sections 4.5, 4.6.2 and B.3.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from operator import contains
from typing import Any

import numpy as np
import numpy.typing as npt

from seqopt.encoding import Alphabet, Encoder
from seqopt.encoding.codons import CodonTokenizer
from seqopt.errors import InputError
from seqopt.spaces.codon_graph import CodonGraph
from seqopt.spaces.codon_scores import CodonScore
from seqopt.spaces.conflicts import check_feasible, gc_bits
from seqopt.spaces.exact import best_gene
from seqopt.spaces.local import LocalSpace
from seqopt.spaces.motifs import BoolArray, Hits, IntArray, MotifAutomaton, MotifSearch, strands
from seqopt.spaces.permitted import PermittedGenes
from seqopt.spaces.populations import Parents, Population, described_size
from seqopt.spaces.specifications import Cut, Frame, Specification, cuts_of, site_of
from seqopt.spaces.specifications.windows import Changes, cut_out
from seqopt.strings.genetic_codes import AMBIGUITY, BASES, STOP, GeneticCode, genetic_code

REPAIR_ROUNDS = 30
"""Times that codons are drawn again to repair a gene, before it is given up."""

RESTARTS = 20
"""Times that a random gene is begun anew, before it is made by a program."""

PROBED = 16
"""Random genes that are looked at before it is proven that constraints can be kept to."""

CHANGED_SHARE = 0.3
"""Share of the codons of a breach that are drawn again at a time, so that what they make up for is not overdone."""


class CodonSpace(LocalSpace):
    """All genes that code for a protein (thesis, section 4.6.2): position i takes the codons of residue i.

    Genes are written in DNA letters, in upper case; RNA letters and lower case are read as well.

    *Mutation* draws one codon again, uniformly among its synonyms (the one that was there included); the residue is
    uniform among those with more than one codon. *Crossover* swaps prefixes up to a uniform codon boundary.

    *Constraints* (``forbidden``, ``gc`` and ``constraints``) hold for the whole gene, start and stop included. What can
    be is compiled into the moves: codons that no permitted gene has are not among the choices. A random gene or a child
    that breaks something is repaired: codons that overlap a motif, a repeat or a hairpin are drawn again; where the GC
    content is too low or too high, in all or in a window, random residues take random synonyms of more or less GC until
    it is within the bounds; at most `REPAIR_ROUNDS` times. A child that is still outside is rejected, and after some
    attempts its parent is kept. For a random gene that cannot be repaired the codons are drawn one after another among
    those from which a permitted gene can be completed, or, where more than motifs and GC content must be kept to, it is
    the best gene by random weights (`seqopt.spaces.exact`), so sampling finds a gene whenever one exists. Without
    constraints samples are uniform; with constraints they need not be.

    Args:
        protein: One-letter amino acids, upper or lower case.
        code: Name or NCBI number of a genetic code: see `seqopt.strings.genetic_codes.genetic_code`.
        representation: What models see: ``"codons"`` (61 symbols in the standard code, and the stop codon if there is
            one) or ``"bases"`` (four symbols).
        start: A start codon of the code. It is the codon of the first residue if that is M, and stands before it
            otherwise.
        stop: A stop codon of the code, put at the end.
        forbidden: Motifs that no gene may hold, in IUPAC letters (``N`` any base, ``R`` A or G, and so on), or names of
            restriction enzymes, such as ``"BsaI"``, for their sites.
        gc: Lowest and highest fraction of G and C, from 0 to 1.
        accept: Keeps only genes for which this predicate holds.
        both_strands: Forbid the reverse complement of every motif, too.
        constraints: Further constraints, of `seqopt.spaces.specifications`.
        upstream: Bases before the gene, in DNA or RNA letters: what is forbidden is forbidden across the junction, too.
            They are no part of the gene.
        downstream: Bases behind it.

    Raises:
        InputError: For an empty protein, a letter that is not an amino acid (with its position), a stop symbol, an
            unknown code or representation, a start or stop codon that is not one in this code, a motif that is not
            one, GC bounds outside 0 to 1 or out of order, flanks with other letters, or constraints that no gene meets;
            the message says which of them conflict. This is decided exactly, before anything is drawn.

    Example:
        >>> space = CodonSpace("TIKENIFGVS")
        >>> space.size, space.contains("ACUAUCAAAGAAAACAUUUUUGGGGUUUCU")
        (55296, True)
        >>> space = CodonSpace("MEFW", start="ATG", stop="TAA", forbidden=["GAATTC"], gc=(0.3, 0.5))
        >>> list(space.enumerate())
        ['ATGGAGTTTTGGTAA', 'ATGGAGTTCTGGTAA']
    """

    def __init__(
        self,
        protein: str,
        code: str | int = "standard",
        representation: str = "codons",
        *,
        start: str | None = None,
        stop: str | None = None,
        forbidden: Iterable[str] = (),
        gc: tuple[float, float] | None = None,
        accept: Callable[[str], bool] | None = None,
        both_strands: bool = False,
        constraints: Iterable[Specification] = (),
        upstream: str = "",
        downstream: str = "",
    ) -> None:
        self.code = genetic_code(code)
        self.protein = _checked_protein(protein, self.code)
        if representation not in ("codons", "bases"):
            raise InputError(f"unknown representation {representation!r}: choose codons or bases")
        self.representation = representation
        choices = [self.code.synonyms[residue] for residue in self.protein]
        self.start = None if start is None else _checked_codon(start, self.code.starts, "start", self.code)
        self.stop = None if stop is None else _checked_codon(stop, self.code.stops, "stop", self.code)
        self._before = 0
        if self.start is not None:
            self._before = int(self.protein[0] != "M")
            choices[: 1 - self._before] = [(self.start,)]
        if self.stop is not None:
            choices.append((self.stop,))
        self.forbidden = tuple(dict.fromkeys(site_of(motif) for motif in _listed(forbidden)))
        self.both_strands = both_strands
        self.gc = None if gc is None else _checked_bounds(gc)
        self.constraints = tuple(_checked_constraints(constraints))
        self.upstream = checked_flank(upstream, "upstream")
        self.downstream = checked_flank(downstream, "downstream")
        self.gc_numbers = None if self.gc is None else _numbers_of_gc(self.gc, 3 * len(choices))
        residues = ["start"] * self._before + list(self.protein) + (["stop"] if self.stop is not None else [])
        self.frame = Frame(tuple(choices), tuple(residues), self.code, self.upstream, self.downstream)
        for constraint in self.constraints:
            constraint.check(self.frame)
        feasible = partial(
            check_feasible,
            self.frame,
            self.forbidden,
            both_strands=both_strands,
            gc=self.gc,
            gc_numbers=self.gc_numbers,
        )
        self._checked = [constraint for constraint in self.constraints if constraint.checked]
        feasible([constraint for constraint in self.constraints if not constraint.checked])

        symbols = [*self.code.sense_codons, *([self.stop] if self.stop is not None else [])]
        encoder = (
            Encoder(CodonTokenizer(), Alphabet(symbols))
            if representation == "codons"
            else Encoder("characters", Alphabet("ACGT"))
        )
        self._prepare(self.frame.permitted(self.constraints), symbols, "dna", accept, encoder)
        self._bases = np.array([[BASES.index(base) for base in symbol] for symbol in symbols])
        self._gc_of = np.array([sum(base in "GC" for base in symbol) for symbol in symbols])
        own = strands(self.forbidden, self.both_strands)
        for constraint in self.constraints:
            own += constraint.motifs()
        self._motifs = own
        self._automaton = MotifAutomaton([motif for _, motif in own])
        self._search = MotifSearch([motif for _, motif in own])
        self._permitted_genes = PermittedGenes()
        self._flanks = [
            np.array([BASES.index(base) for base in flank], dtype=np.int64)
            for flank in (self.upstream, self.downstream)
        ]
        # A gene that chance finds shows that there is one, long before a program would have.
        if self._checked and not self._allowed(super()._drawn(PROBED, np.random.default_rng(0))).any():
            feasible(self.constraints)

    @property
    def size(self) -> int:
        """Number of genes that code for the protein: exact, however large.

        Only constraints that leave codons out count, the others and ``accept`` do not: see `count`.
        """
        return super().size

    def config_arguments(self) -> dict[str, Any]:
        """See `seqopt.utils.config.Configurable`; the order of the motifs does not matter."""
        return {
            "protein": self.protein,
            "code": self.code.number,
            "representation": self.representation,
            "start": self.start,
            "stop": self.stop,
            "forbidden": sorted(self.forbidden),
            "gc": self.gc,
            "accept": self.accept,
            "both_strands": self.both_strands and bool(self.forbidden),
            # Left out where there are none, so that spaces from before there were any are the same.
            **({"constraints": self.constraints} if self.constraints else {}),
            **({"upstream": self.upstream} if self.upstream else {}),
            **({"downstream": self.downstream} if self.downstream else {}),
        }

    def graph(self, score: CodonScore | None = None) -> CodonGraph:
        """The genes without forbidden motifs as the paths of a graph whose edges carry a score."""
        return CodonGraph(self.choices, self._automaton, score, upstream=self.upstream, downstream=self.downstream)

    @property
    def checked(self) -> bool:
        """Whether there are constraints that are neither motifs nor left-out codons nor bounds of GC content."""
        return bool(self._checked)

    @property
    def checked_texts(self) -> list[str]:
        """What those say."""
        return [constraint.text for constraint in self._checked]

    def keep(self, genes: Sequence[str]) -> BoolArray:
        """Of each of some genes of the protein whether it keeps to all constraints, ``accept`` left aside."""
        rows = self._rows(genes)
        if rows is None:
            raise InputError("some of these genes do not code for the protein with permitted codons")
        return self._allowed(rows)

    def cuts(self, gene: str) -> list[Cut]:
        """Linear conditions that permitted genes meet and ``gene`` does not, of the constraints that are `checked`."""
        return cuts_of(self.frame, self._checked, gene)

    @property
    def kept_to(self) -> list[str]:
        """What genes are kept to, in words."""
        strands = " on either strand" if self.both_strands else ""
        return [
            *([f"start codon {self.start}"] if self.start else []),
            *([f"stop codon {self.stop}"] if self.stop else []),
            *(f"no {motif}{strands}" for motif in self.forbidden),
            *([f"GC content {self.gc[0]:g} to {self.gc[1]:g}"] if self.gc else []),
            *(constraint.text for constraint in self.constraints),
        ]

    def motifs_in_flanks(self) -> list[tuple[str, str]]:
        """Forbidden motifs that stand whole before or behind the gene, where no choice of codons changes them.

        Example:
            >>> CodonSpace("MK", forbidden=["GAATTC"], downstream="GAATTCA").motifs_in_flanks()
            [('downstream', "'GAATTC'")]
        """
        motifs = dict(strands(self.forbidden, self.both_strands))
        for constraint in self.constraints:
            motifs |= dict(constraint.motifs())
        return [
            (name, described)
            for name, flank in (("upstream", self.upstream), ("downstream", self.downstream))
            for described, motif in motifs.items()
            if re.search("".join(f"[{AMBIGUITY[letter]}]" for letter in motif), flank)
        ]

    def _normalised(self, string: str) -> str:
        return string.strip().upper().replace("U", "T")

    def _explained(self, string: str) -> str:
        for position, base in enumerate(string, start=1):
            if base not in BASES:
                return f"{base!r} at position {position} is not a base"
        if len(string) != 3 * self.length:
            return f"it has {len(string)} bases, not {3 * self.length} ({self.length} codons)"
        for index, permitted in enumerate(self.choices):
            codon = string[3 * index : 3 * index + 3]
            if codon in permitted:
                continue
            where = f"codon {index + 1} ({codon}, bases {3 * index + 1} to {3 * index + 3})"
            residue = index + 1 - self._before
            if codon in self.frame.choices[index]:
                return f"{where} is left out by a constraint; permitted {_are(permitted)}"
            if self.start is not None and index == 0:
                return f"{where} is not the start codon {self.start}"
            if residue > len(self.protein):
                return f"{where} is not the stop codon {self.stop}"
            amino_acid = self.code.amino_acids[codon]
            meaning = "is a stop codon" if amino_acid == STOP else f"codes for {amino_acid}"
            return f"{where} {meaning}, but residue {residue} is {self.protein[residue - 1]}"
        return "it does not code for the protein"

    def _constrained(self, string: str) -> str | None:
        codons = [string[place : place + 3] for place in range(0, len(string), 3)]
        possible = self.frame.choices
        if len(codons) != len(possible) or not all(map(contains, possible, codons)):
            return None
        return self._explained(string)

    def _broken(self, row: Population) -> str:
        bases = self._bases_of(row)
        for written, motif in self._motifs:
            first, stop = self._span
            starts = MotifSearch([motif]).found(bases).starts
            reaching = starts[(starts < stop) & (starts + len(motif) > first)]
            if len(reaching):
                place = int(reaching.min()) - first
                across = "" if place >= 0 else f", {-place} bases before its beginning"
                return f"it holds {written} at base {place + 1}" if not across else f"it holds {written}{across}"
        first, stop = self._span
        for constraint in self._checked:
            if constraint.marked(bases, first, stop)[0, first:stop].any():
                return constraint.broken(bases, first, stop)
        total = 3 * self.length
        count = int(self._gc_of[row].sum())
        bounds = f"{self.gc[0]:g} and {self.gc[1]:g}" if self.gc is not None else "the bounds"
        return f"its GC content is {count / total:.4f} ({count} of {total}), not between {bounds}"

    @property
    def _span(self) -> tuple[int, int]:
        """Where genes begin and end in what `_bases_of` gives."""
        return len(self.upstream), len(self.upstream) + 3 * self.length

    def _bases_of(self, rows: Population) -> IntArray:
        """Bases of genes with what stands before and behind them."""
        own = self._bases[rows].reshape(len(rows), -1)
        if not self.upstream and not self.downstream:
            return own
        before, behind = (np.broadcast_to(flank, (len(rows), len(flank))) for flank in self._flanks)
        return np.concatenate([before, own, behind], axis=1)

    def _motif_hits(self, bases: IntArray, begin: IntArray | None = None) -> Hits:
        """Motifs that reach into the genes.

        Args:
            bases: As `_bases_of` gives them, or a window of each gene.
            begin: Where the windows begin.
        """
        found = self._search.found(bases)
        first, stop = self._span
        if first == 0 and stop == len(self.upstream) + 3 * self.length + len(self.downstream):
            return found
        starts = found.starts if begin is None else found.starts + begin[found.rows]
        inside = (starts < stop) & (starts + found.lengths > first)
        return Hits(found.rows[inside], found.starts[inside], found.lengths[inside])

    def _within_bounds(self, rows: Population) -> BoolArray:
        if self.gc_numbers is None:
            return np.ones(len(rows), dtype=np.bool_)
        counts = self._gc_of[rows].sum(axis=1)
        return np.asarray((counts >= self.gc_numbers[0]) & (counts <= self.gc_numbers[1]))

    def _allowed(self, rows: Population) -> BoolArray:
        allowed = self._within_bounds(rows)
        if (self._motifs or self._checked) and len(rows):
            bases = self._bases_of(rows)
            allowed[self._motif_hits(bases).rows] = False
            first, stop = self._span
            for constraint in self._checked:
                left = np.flatnonzero(allowed)
                allowed[left] = ~constraint.breaks(bases[left], first, stop)
        return allowed

    def _allowed_near(self, rows: Population, head: Parents, tail: Parents) -> BoolArray:
        """`_allowed`, of children of which only what is new is looked at where their parents are permitted."""
        near = head.permitted & tail.permitted
        if not near.any():
            return self._allowed(rows)
        if not near.all():
            allowed = np.zeros(len(rows), dtype=np.bool_)
            allowed[~near] = self._allowed(rows[~near])
            allowed[near] = self._allowed_near(rows[near], head[near], tail[near])
            return allowed
        allowed = self._within_bounds(rows)
        bases = self._bases_of(rows)
        first, stop = self._span
        changes = _changes(rows, head.rows, tail.rows, first)
        for some, begin, width in changes.windows(self._search.longest, 0, bases.shape[1]):
            allowed[some[self._motif_hits(cut_out(bases, some, begin, width), begin).rows]] = False
        for constraint in self._checked:
            if allowed.all():
                allowed = ~constraint.breaks_near(bases, first, stop, changes)
                continue
            left = np.flatnonzero(allowed)
            allowed[left] = ~constraint.breaks_near(bases[left], first, stop, changes[left])
        return allowed

    def _settled(
        self, rows: Population, head: Parents, tail: Parents, rng: np.random.Generator
    ) -> tuple[Population, BoolArray]:
        def judge(children: Population, some: IntArray) -> BoolArray:
            return self._allowed_near(children, head[some], tail[some])

        return self._mended(rows, judge, rng)

    def _parents(self, strings: list[str]) -> Parents:
        rows = self._population(strings)
        unknown = [index for index, string in enumerate(strings) if string not in self._permitted_genes]
        permitted = np.ones(len(strings), dtype=np.bool_)
        permitted[unknown] = self._allowed(rows[unknown])
        self._permitted_genes.add(strings[index] for index in unknown if permitted[index])
        return Parents(rows, permitted)

    def _accepted(self, rows: Population) -> list[str]:
        genes = super()._accepted(rows)
        self._permitted_genes.add(genes)
        return genes

    def _replace(
        self, children: list[str], waiting: npt.NDArray[np.intp], rows: Population, allowed: BoolArray
    ) -> npt.NDArray[np.intp]:
        left = super()._replace(children, waiting, rows, allowed)
        self._permitted_genes.add(children[index] for index in np.setdiff1d(waiting, left).tolist())
        return left

    def _repaired(self, rows: Population, rng: np.random.Generator) -> Population:
        return self._mended(rows, lambda genes, _: self._allowed(genes), rng)[0]

    def _mended(
        self,
        rows: Population,
        judge: Callable[[Population, IntArray], BoolArray],
        rng: np.random.Generator,
    ) -> tuple[Population, BoolArray]:
        """Genes repaired as far as it goes, and which keep to the constraints.

        Args:
            rows: Genes.
            judge: Which of some genes keep to the constraints, the numbers of their rows given, too.
            rng: Source of randomness.
        """
        if not self._motifs and self.gc_numbers is None and not self._checked:
            return rows, np.ones(len(rows), dtype=np.bool_)
        repaired = rows.copy()
        allowed = judge(repaired, np.arange(len(rows)))
        broken = np.flatnonzero(~allowed)
        for _ in range(REPAIR_ROUNDS):
            if not len(broken):
                break
            changed = self._within_gc(self._without_motifs(self._unmarked(repaired[broken], rng), rng), rng)
            repaired[broken] = changed
            allowed[broken] = judge(changed, broken)
            broken = broken[~allowed[broken]]
        return repaired, allowed

    def _without_motifs(self, rows: Population, rng: np.random.Generator) -> Population:
        if not self._motifs:
            return rows
        bases = self._bases_of(rows)
        first, stop = self._span
        touched = np.zeros(bases.shape, dtype=np.bool_)
        hits = self._motif_hits(bases)
        for length in np.unique(hits.lengths):
            some = hits.lengths == length
            touched[hits.rows[some][:, None], hits.starts[some][:, None] + np.arange(length)] = True
        codons = touched[:, first:stop].reshape(len(rows), self.length, 3).any(axis=2)
        row, index = np.nonzero(codons)
        changed = rows.copy()
        changed[row, index] = self._options[index, rng.integers(self._counts[index])]
        return changed

    def _unmarked(self, rows: Population, rng: np.random.Generator) -> Population:
        """Codons that take part in breaches drawn again: where G and C are wanted or unwanted, some of them only."""
        first, stop = self._span
        changed = rows
        for constraint in self._checked:
            bases = self._bases_of(changed)
            marked = constraint.marked(bases, first, stop)[:, first:stop]
            if not marked.any():
                continue
            codons = marked.reshape(len(rows), self.length, 3).any(axis=2)
            wanted = constraint.wanted_gc(bases, first, stop)
            options = np.broadcast_to(self._options, (len(rows), *self._options.shape))
            there = np.broadcast_to(np.arange(self._options.shape[1]) < self._counts[:, None], options.shape)
            if wanted is not None:
                sign = np.sign(wanted[:, first:stop].reshape(len(rows), self.length, 3).sum(axis=2))
                gains = (self._gc_of[options] - self._gc_of[changed][:, :, None]) * sign[:, :, None]
                there = there & ((gains > 0) | (sign[:, :, None] == 0))
            codons &= there.any(axis=2) & (rng.random(codons.shape) < CHANGED_SHARE)
            option = np.where(there, rng.random(options.shape), -1.0).argmax(axis=2)
            drawn = np.take_along_axis(options, option[:, :, None], axis=2)[:, :, 0]
            changed = np.where(codons, drawn, changed)
        return changed

    def _within_gc(self, rows: Population, rng: np.random.Generator) -> Population:
        if self.gc_numbers is None:
            return rows
        counts = self._gc_of[rows].sum(axis=1)
        lowest, highest = self.gc_numbers
        missing = np.maximum(lowest - counts, 0) - np.maximum(counts - highest, 0)
        outside = np.flatnonzero(missing)
        if not len(outside):
            return rows
        changed = rows.copy()
        direction = np.sign(missing[outside])[:, None]
        own = rows[outside]
        # Gain of every option of every residue, counted towards the bounds; padding options gain nothing.
        gains = (self._gc_of[self._options][None] - self._gc_of[own][:, :, None]) * direction[:, :, None]
        useful = (gains > 0) & (np.arange(self._options.shape[1]) < self._counts[:, None])[None]
        option = np.where(useful, rng.random(useful.shape), -1.0).argmax(axis=2)
        gain = np.where(useful.any(axis=2), np.take_along_axis(gains, option[:, :, None], axis=2)[:, :, 0], 0)
        order = rng.permuted(np.broadcast_to(np.arange(self.length), gain.shape), axis=1)
        ordered = np.take_along_axis(gain, order, axis=1)
        before = ordered.cumsum(axis=1) - ordered
        taken = np.zeros(gain.shape, dtype=np.bool_)
        np.put_along_axis(taken, order, before < np.abs(missing[outside])[:, None], axis=1)
        chosen = self._options[np.arange(self.length), option]
        changed[outside] = np.where(taken & (gain > 0), chosen, own)
        return changed

    def _drawn(self, n: int, rng: np.random.Generator) -> Population:
        rows = super()._drawn(n, rng)
        broken = np.flatnonzero(~self._allowed(rows))
        for index in broken:
            rows[index] = self._walked(rng)
        if self._checked and len(broken):
            for _ in range(RESTARTS):
                rows[broken] = self._repaired(rows[broken], rng)
                broken = broken[~self._allowed(rows[broken])]
                if not len(broken):
                    break
                rows[broken] = self._random(len(broken), rng)
            for index in broken:
                rows[index] = self._programmed(rng)
        return rows

    def _walked(self, rng: np.random.Generator) -> Population:
        """A gene drawn codon by codon among those that leave a permitted completion."""
        graph, completions, window = self._completions
        node, count = 0, 0
        row = []
        for index, codons in enumerate(self.choices):
            open_codons = []
            for option, target, _, gc in graph.out[index][node]:
                total = count + gc if self.gc_numbers is not None else 0
                if completions[index + 1][target] & (window >> total):
                    open_codons.append((codons[option], target, total))
            codon, node, count = open_codons[int(rng.integers(len(open_codons)))]
            row.append(self._numbers[codon])
        return np.array(row, dtype=np.intp)

    def _programmed(self, rng: np.random.Generator) -> Population:
        """The best gene by random weights of its codons."""
        weights = [dict(zip(codons, rng.random(len(codons)).tolist(), strict=True)) for codons in self.choices]
        gene = best_gene(self, CodonScore(positions=weights))
        return np.array([self._numbers[gene[begin : begin + 3]] for begin in range(0, len(gene), 3)], dtype=np.intp)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {symbol: index for index, symbol in enumerate(self.symbols)}

    @cached_property
    def _completions(self) -> tuple[CodonGraph, list[list[int]], int]:
        graph = self.graph()
        return graph, graph.completions(by_count=self.gc_numbers is not None), gc_bits(self.gc_numbers)

    def __repr__(self) -> str:
        return f"CodonSpace({len(self.protein)} residues, code {self.code.number}: {described_size(self)} genes)"


def _changes(rows: Population, head: Population, tail: Population, before: int) -> Changes:
    """Where genes differ first from how they begin and last from how they end, in bases behind ``before`` others."""
    length = rows.shape[1]
    begins, ends = rows != head, rows != tail
    begin = np.where(begins.any(axis=1), begins.argmax(axis=1), length)
    end = np.where(ends.any(axis=1), length - 1 - ends[:, ::-1].argmax(axis=1), -1)
    return Changes(before + 3 * begin, before + 3 * end + 2)


def _checked_protein(protein: str, code: GeneticCode) -> str:
    if not isinstance(protein, str):
        raise InputError(f"the protein is {protein!r} of type {type(protein).__name__}; expected str")
    letters = protein.strip().upper()
    if not letters:
        raise InputError("the protein is empty: give at least one amino acid")
    for position, letter in enumerate(letters, start=1):
        if letter == STOP:
            raise InputError(
                f"stop symbol {STOP!r} at position {position} of the protein: leave it out; a stop codon at the end of "
                "every gene is asked for with stop (--stop)"
            )
        if letter not in code.synonyms:
            raise InputError(
                f"{letter!r} at position {position} of the protein is not an amino acid of genetic code {code.number}: "
                f"use {''.join(code.synonyms)}"
            )
    return letters


def _checked_codon(codon: str, permitted: Sequence[str], which: str, code: GeneticCode) -> str:
    written = codon.strip().upper().replace("U", "T") if isinstance(codon, str) else codon
    if written not in permitted:
        raise InputError(
            f"{codon!r} is not a {which} codon of genetic code {code.number} ({code.names[0]}): choose "
            f"{', '.join(permitted)}"
        )
    return written


def _listed(forbidden: Iterable[str]) -> list[str]:
    if isinstance(forbidden, str):
        raise InputError(f"forbidden is the single string {forbidden!r}: give a list of motifs, [{forbidden!r}]")
    return list(forbidden)


def _checked_constraints(constraints: Iterable[Specification]) -> list[Specification]:
    if isinstance(constraints, str | Specification):
        raise InputError(f"constraints is {constraints!r}: give a list, such as [GCWindow(50, 0.3, 0.7)]")
    found = list(constraints)
    for constraint in found:
        if not isinstance(constraint, Specification):
            raise InputError(
                f"{constraint!r} is not a constraint: use those of seqopt.spaces.specifications, or parse_constraint"
            )
    return found


def checked_flank(flank: str, which: str) -> str:
    """What stands beside a gene, in upper-case DNA letters.

    Raises:
        InputError: If it holds other letters than A, C, G and T or U.
    """
    if not isinstance(flank, str):
        raise InputError(f"{which} is {flank!r} of type {type(flank).__name__}; expected str")
    letters = "".join(flank.split()).upper().replace("U", "T")
    for position, letter in enumerate(letters, start=1):
        if letter not in BASES:
            raise InputError(
                f"{letter!r} at position {position} of what stands {which} of the gene (--{which}) is not a base: use "
                "A, C, G and T or U"
            )
    return letters


def _numbers_of_gc(gc: tuple[float, float], total: int) -> tuple[int, int]:
    """The lowest and the highest permitted number of G and C."""
    fractions = np.arange(total + 1) / total
    inside = np.flatnonzero((gc[0] <= fractions) & (fractions <= gc[1]))
    if not len(inside):
        raise InputError(
            f"GC content between {gc[0]:g} and {gc[1]:g} is impossible: no number of G and C out of {total} bases "
            f"lies in between"
        )
    return int(inside[0]), int(inside[-1])


def _are(codons: Sequence[str]) -> str:
    return f"{'is' if len(codons) == 1 else 'are'} {', '.join(codons)}"


def _checked_bounds(gc: tuple[float, float]) -> tuple[float, float]:
    try:
        low, high = (float(bound) for bound in gc)
    except (TypeError, ValueError):
        raise InputError(f"gc is {gc!r}; it must be two fractions, the lowest and the highest GC content") from None
    if not 0 <= low <= high <= 1:
        percent = 0 <= low <= high <= 100 and high > 1
        meant = f": did you mean {low / 100:g} {high / 100:g}? GC content is no percentage here" if percent else ""
        raise InputError(f"gc is {gc!r}; it must be two fractions in order, from 0 to 1{meant}")
    return low, high
