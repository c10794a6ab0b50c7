"""Synonymous genes of a protein.

References:
    Moss, H. B. (2021). General-purpose information-theoretical Bayesian optimisation. PhD thesis, Lancaster University,
        sections 4.5, 4.6.2 and B.3.
    IUPAC-IUB (1984). Nomenclature for incompletely specified bases in nucleic acid sequences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from seqopt.encoding import Alphabet, Encoder
from seqopt.encoding.codons import CodonTokenizer
from seqopt.errors import InputError
from seqopt.spaces.local import LocalSpace
from seqopt.spaces.populations import BoolArray, Population, described_size
from seqopt.strings.genetic_codes import BASES, STOP, GeneticCode, genetic_code

REPAIR_ROUNDS = 30
"""Times that codons are drawn again to repair a gene, before it is given up."""

AMBIGUITY = {
    **{"A": "A", "C": "C", "G": "G", "T": "T", "R": "AG", "Y": "CT", "S": "CG", "W": "AT", "K": "GT", "M": "AC"},
    **{"B": "CGT", "D": "AGT", "H": "ACT", "V": "ACG", "N": "ACGT"},
}
"""The bases that each IUPAC letter stands for."""

_COMPLEMENT = str.maketrans("ACGTRYSWKMBDHVN", "TGCAYRSWMKVHDBN")

IntArray = npt.NDArray[np.int64]


class CodonSpace(LocalSpace):
    """All genes that code for a protein (thesis, section 4.6.2): position i takes the codons of residue i.

    Genes are written in DNA letters, in upper case; RNA letters and lower case are read as well.

    *Mutation* draws one codon again, uniformly among its synonyms (the one that was there included); the residue is
    uniform among those with more than one codon. *Crossover* swaps prefixes up to a uniform codon boundary.

    *Constraints* (``forbidden`` and ``gc``) hold for the whole gene, start and stop included. A random gene or a child
    that breaks them is repaired: codons that overlap a motif are drawn again; where the GC content is too low or too
    high, random residues take random synonyms of more or less GC until it is within the bounds; at most
    `REPAIR_ROUNDS` times. A child that is still outside is rejected, and after some attempts its parent is kept. For a
    random gene that cannot be repaired the codons are drawn one after another among those from which a permitted gene
    can be completed, so sampling finds a gene whenever one exists. Without constraints samples are uniform; with
    constraints they need not be.

    Args:
        protein: One-letter amino acids, upper or lower case.
        code: Name or NCBI number of a genetic code: see `seqopt.strings.genetic_codes.genetic_code`.
        representation: What models see: ``"codons"`` (61 symbols in the standard code, and the stop codon if there is
            one) or ``"bases"`` (four symbols).
        start: A start codon of the code. It is the codon of the first residue if that is M, and stands before it
            otherwise.
        stop: A stop codon of the code, put at the end.
        forbidden: Motifs that no gene may hold, in IUPAC letters (``N`` any base, ``R`` A or G, and so on).
        gc: Lowest and highest fraction of G and C, from 0 to 1.
        accept: Keeps only genes for which this predicate holds.
        both_strands: Forbid the reverse complement of every motif, too.

    Raises:
        InputError: For an empty protein, a letter that is not an amino acid (with its position), a stop symbol, an
            unknown code or representation, a start or stop codon that is not one in this code, a motif that is not
            one, GC bounds outside 0 to 1 or out of order, or constraints that no gene meets; the message says which of
            them conflict.
            This is decided exactly, before anything is drawn.

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
        self.forbidden = tuple(dict.fromkeys(_checked_motif(motif) for motif in _listed(forbidden)))
        self.both_strands = both_strands
        self.gc = None if gc is None else _checked_bounds(gc)

        symbols = [*self.code.sense_codons, *([self.stop] if self.stop is not None else [])]
        encoder = (
            Encoder(CodonTokenizer(), Alphabet(symbols))
            if representation == "codons"
            else Encoder("characters", Alphabet("ACGT"))
        )
        self._prepare(choices, symbols, "dna", accept, encoder)
        self._bases = np.array([[BASES.index(base) for base in symbol] for symbol in symbols])
        self._gc_of = np.array([sum(base in "GC" for base in symbol) for symbol in symbols])
        self._gc_window = None if self.gc is None else self._window(self.gc)
        self._motifs = [(written, _base_sets(motif)) for written, motif in self._strands(self.forbidden)]
        self._check_feasible()

    @property
    def size(self) -> int:
        """Number of genes that code for the protein, constraints and ``accept`` not counted: exact, however large."""
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
        }

    def _strands(self, motifs: Iterable[str]) -> list[tuple[str, str]]:
        pairs = []
        for motif in motifs:
            pairs.append((repr(motif), motif))
            reverse = motif.translate(_COMPLEMENT)[::-1]
            if self.both_strands and reverse != motif:
                pairs.append((f"{reverse!r}, the reverse complement of {motif!r},", reverse))
        return pairs

    def _window(self, gc: tuple[float, float]) -> tuple[int, int]:
        """The lowest and the highest permitted number of G and C."""
        total = 3 * self.length
        fractions = np.arange(total + 1) / total
        inside = np.flatnonzero((gc[0] <= fractions) & (fractions <= gc[1]))
        if not len(inside):
            raise InputError(
                f"GC content between {gc[0]:g} and {gc[1]:g} is impossible: no number of G and C out of {total} bases "
                f"lies in between"
            )
        return int(inside[0]), int(inside[-1])

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
            if self.start is not None and index == 0:
                return f"{where} is not the start codon {self.start}"
            if residue > len(self.protein):
                return f"{where} is not the stop codon {self.stop}"
            amino_acid = self.code.amino_acids[codon]
            meaning = "is a stop codon" if amino_acid == STOP else f"codes for {amino_acid}"
            return f"{where} {meaning}, but residue {residue} is {self.protein[residue - 1]}"
        return "it does not code for the protein"

    def _broken(self, row: Population) -> str:
        bases = self._bases_of(row)
        for written, sets in self._motifs:
            indices = np.flatnonzero(_hits(bases, sets)[0])
            if len(indices):
                return f"it holds {written} at base {indices[0] + 1}"
        total = 3 * self.length
        count = int(self._gc_of[row].sum())
        bounds = f"{self.gc[0]:g} and {self.gc[1]:g}" if self.gc is not None else "the bounds"
        return f"its GC content is {count / total:.4f} ({count} of {total}), not between {bounds}"

    def _bases_of(self, rows: Population) -> IntArray:
        return self._bases[rows].reshape(len(rows), -1)

    def _allowed(self, rows: Population) -> BoolArray:
        allowed = np.ones(len(rows), dtype=np.bool_)
        if self._gc_window is not None:
            counts = self._gc_of[rows].sum(axis=1)
            allowed &= (counts >= self._gc_window[0]) & (counts <= self._gc_window[1])
        if self._motifs and len(rows):
            bases = self._bases_of(rows)
            for _, sets in self._motifs:
                allowed &= ~_hits(bases, sets).any(axis=1)
        return allowed

    def _repaired(self, rows: Population, rng: np.random.Generator) -> Population:
        if not self._motifs and self._gc_window is None:
            return rows
        repaired = rows.copy()
        broken = np.flatnonzero(~self._allowed(repaired))
        for _ in range(REPAIR_ROUNDS):
            if not len(broken):
                break
            changed = self._within_gc(self._without_motifs(repaired[broken], rng), rng)
            repaired[broken] = changed
            broken = broken[~self._allowed(changed)]
        return repaired

    def _without_motifs(self, rows: Population, rng: np.random.Generator) -> Population:
        if not self._motifs:
            return rows
        bases = self._bases_of(rows)
        touched = np.zeros(bases.shape, dtype=np.bool_)
        for _, sets in self._motifs:
            hits = _hits(bases, sets)
            for offset in range(len(sets)):
                touched[:, offset : offset + hits.shape[1]] |= hits
        codons = touched.reshape(len(rows), self.length, 3).any(axis=2)
        row, index = np.nonzero(codons)
        changed = rows.copy()
        changed[row, index] = self._options[index, rng.integers(self._counts[index])]
        return changed

    def _within_gc(self, rows: Population, rng: np.random.Generator) -> Population:
        if self._gc_window is None:
            return rows
        counts = self._gc_of[rows].sum(axis=1)
        lowest, highest = self._gc_window
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
        for index in np.flatnonzero(~self._allowed(rows)):
            rows[index] = self._walked(rng)
        return rows

    def _walked(self, rng: np.random.Generator) -> Population:
        """A gene drawn codon by codon among those that leave a permitted completion."""
        automaton, completions, window = self._completions
        number = {symbol: index for index, symbol in enumerate(self.symbols)}
        state, count = 0, 0
        row = []
        for index, choices in enumerate(self.choices):
            open_codons = []
            for codon in choices:
                reached = automaton.step(state, codon)
                total = count + _gc(codon) if self._gc_window is not None else 0
                if reached is not None and completions[index + 1].get(reached, 0) & (window >> total):
                    open_codons.append((codon, reached, total))
            codon, state, count = open_codons[int(rng.integers(len(open_codons)))]
            row.append(number[codon])
        return np.array(row, dtype=np.intp)

    @cached_property
    def _completions(self) -> tuple[_MotifAutomaton, list[dict[int, int]], int]:
        automaton = _MotifAutomaton([motif for _, motif in self._strands(self.forbidden)])
        by_count = self._gc_window is not None
        return automaton, _completions(self.choices, automaton, by_count=by_count), _window_bits(self._gc_window)

    def _feasible(self, motifs: Sequence[str], window: tuple[int, int] | None) -> bool:
        automaton = _MotifAutomaton([motif for _, motif in self._strands(motifs)])
        completions = _completions(self.choices, automaton, by_count=window is not None)
        return bool(completions[0].get(0, 0) & _window_bits(window))

    def _check_feasible(self) -> None:
        if self._gc_window is not None and self.gc is not None:
            total = 3 * self.length
            least = sum(min(map(_gc, choices)) for choices in self.choices)
            most = sum(max(map(_gc, choices)) for choices in self.choices)
            if self._gc_window[1] < least or self._gc_window[0] > most:
                raise InputError(
                    f"GC content between {self.gc[0]:g} and {self.gc[1]:g} is impossible: the genes of this protein "
                    f"have between {least / total:.4f} and {most / total:.4f} ({least} to {most} of {total} bases)"
                )
        for motif in self.forbidden:
            for written, strand in self._strands([motif]):
                index = _forced(self.choices, _MotifAutomaton([strand]))
                if index is not None:
                    first = max(index - (len(strand) + 1) // 3, 0)
                    raise InputError(
                        f"no gene can avoid the motif {written}: every gene holds it by the end of codon {index + 1} "
                        f"({self._named(first, index)})"
                    )
        if not self._feasible(self.forbidden, self._gc_window):
            motifs, window = list(self.forbidden), self._gc_window
            for motif in self.forbidden:
                fewer = [other for other in motifs if other != motif]
                if not self._feasible(fewer, window):
                    motifs = fewer
            if window is not None and not self._feasible(motifs, None):
                window = None
            parts = [f"without {motif}" for motif in motifs]
            if window is not None and self.gc is not None:
                parts.append(f"with a GC content between {self.gc[0]:g} and {self.gc[1]:g}")
            raise InputError(
                f"these constraints exclude each other, no gene meets all of them: {', '.join(parts)}"
                + (" (motifs on both strands)" if self.both_strands else "")
            )

    def _named(self, first: int, last: int) -> str:
        names = ["start"] * self._before + list(self.protein) + (["stop"] if self.stop is not None else [])
        return "-".join(names[first : last + 1])

    def __repr__(self) -> str:
        return f"CodonSpace({len(self.protein)} residues, code {self.code.number}: {described_size(self)} genes)"


class _MotifAutomaton:
    """Follows all motifs at once along a gene (the shift-and algorithm of Baeza-Yates and Gonnet 1992).

    Bit j of a state says that the bases so far end with the first letters of a motif, up to the letter of bit j.
    """

    def __init__(self, motifs: Sequence[str]) -> None:
        self._first = self._last = 0
        self._letters = dict.fromkeys(BASES, 0)
        bit = 0
        for motif in motifs:
            self._first |= 1 << bit
            for letter in motif:
                for base in AMBIGUITY[letter]:
                    self._letters[base] |= 1 << bit
                bit += 1
            self._last |= 1 << (bit - 1)
        self._steps: dict[tuple[int, str], int | None] = {}

    def step(self, state: int, codon: str) -> int | None:
        """The state after ``codon``, or `None` when a motif has been completed."""
        known = (state, codon)
        if known not in self._steps:
            self._steps[known] = self._walk(state, codon)
        return self._steps[known]

    def _walk(self, state: int, codon: str) -> int | None:
        for base in codon:
            state = (state << 1 | self._first) & self._letters[base]
            # Ending here also keeps the last bit of a motif from moving on into the next one.
            if state & self._last:
                return None
        return state


def _reached(choices: Sequence[Sequence[str]], automaton: _MotifAutomaton) -> Iterator[set[int]]:
    """The automaton's states after 0, 1, 2, ... codons."""
    states = {0}
    yield states
    for codons in choices:
        states = {after for state in states for codon in codons if (after := automaton.step(state, codon)) is not None}
        yield states


def _forced(choices: Sequence[Sequence[str]], automaton: _MotifAutomaton) -> int | None:
    """The position at which no gene is left that avoids the motifs, if there is one."""
    return next((index - 1 for index, states in enumerate(_reached(choices, automaton)) if not states), None)


def _completions(
    choices: Sequence[Sequence[str]], automaton: _MotifAutomaton, *, by_count: bool
) -> list[dict[int, int]]:
    """For each position and state, the numbers of G and C that completions from there can have.

    They are the bits of an integer: bit k is set if some completion has k. Without ``by_count`` bit 0 says whether
    there is a completion at all.
    """
    reached = list(_reached(choices, automaton))
    completions: list[dict[int, int]] = [dict.fromkeys(reached[-1], 1)]
    for states, codons in zip(reversed(reached[:-1]), reversed(choices), strict=True):
        following = completions[-1]
        here: dict[int, int] = {}
        for state in states:
            bits = 0
            for codon in codons:
                after = automaton.step(state, codon)
                if after is not None:
                    bits |= following.get(after, 0) << (_gc(codon) if by_count else 0)
            if bits:
                here[state] = bits
        completions.append(here)
    completions.reverse()
    return completions


def _window_bits(window: tuple[int, int] | None) -> int:
    return 1 if window is None else (1 << (window[1] + 1)) - (1 << window[0])


def _gc(codon: str) -> int:
    return codon.count("G") + codon.count("C")


def _hits(bases: IntArray, sets: BoolArray) -> BoolArray:
    """Where a motif begins: ``n x (L - m + 1)`` for genes ``n x L`` and permitted bases ``m x 4``."""
    starts = bases.shape[1] - len(sets) + 1
    hits = np.ones((len(bases), max(starts, 0)), dtype=np.bool_)
    if starts > 0:
        for offset, permitted in enumerate(sets):
            hits &= permitted[bases[:, offset : offset + starts]]
    return hits


def _base_sets(motif: str) -> BoolArray:
    return np.array([[base in AMBIGUITY[letter] for base in BASES] for letter in motif])


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


def _checked_motif(motif: str) -> str:
    if not isinstance(motif, str) or not motif.strip():
        raise InputError(f"{motif!r} is not a motif: give at least one letter")
    letters = motif.strip().upper().replace("U", "T")
    for position, letter in enumerate(letters, start=1):
        if letter not in AMBIGUITY:
            raise InputError(
                f"{letter!r} at position {position} of the motif {motif!r} is not a base: use {''.join(AMBIGUITY)}"
            )
    return letters


def _checked_bounds(gc: tuple[float, float]) -> tuple[float, float]:
    try:
        low, high = (float(bound) for bound in gc)
    except (TypeError, ValueError):
        raise InputError(f"gc is {gc!r}; it must be two fractions, the lowest and the highest GC content") from None
    if not 0 <= low <= high <= 1:
        raise InputError(f"gc is {gc!r}; it must be two fractions in order, from 0 to 1")
    return low, high
