"""Motifs in IUPAC letters: which bases they stand for, where they are, and an automaton that follows all of them.

References:
    IUPAC-IUB (1984). Nomenclature for incompletely specified bases in nucleic acid sequences.
    Baeza-Yates, R., Gonnet, G. H. (1992). A new approach to text searching. Commun. ACM 35(10), 74-82.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from seqopt.errors import InputError
from seqopt.strings.genetic_codes import AMBIGUITY, BASES

_COMPLEMENT = str.maketrans("ACGTRYSWKMBDHVN", "TGCAYRSWMKVHDBN")

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


def reverse_complement(motif: str) -> str:
    """The motif as it reads on the other strand.

    Example:
        >>> reverse_complement("GGTCTC"), reverse_complement("GANTC")
        ('GAGACC', 'GANTC')
    """
    return motif.translate(_COMPLEMENT)[::-1]


def checked_motif(motif: str) -> str:
    """A motif in upper-case DNA letters.

    Raises:
        InputError: If it is empty, or has another letter (with its position).
    """
    if not isinstance(motif, str) or not motif.strip():
        raise InputError(f"{motif!r} is not a motif: give at least one letter")
    letters = motif.strip().upper().replace("U", "T")
    for position, letter in enumerate(letters, start=1):
        if letter not in AMBIGUITY:
            raise InputError(
                f"{letter!r} at position {position} of the motif {motif!r} is not a base: use {''.join(AMBIGUITY)}"
            )
    return letters


def strands(motifs: Iterable[str], both: bool) -> list[tuple[str, str]]:
    """Each motif as it is named and as it is written, with those of the other strand where ``both`` count.

    Example:
        >>> strands(["GAATTC", "GGTCTC"], both=True)[1:]
        [("'GGTCTC'", 'GGTCTC'), ("'GAGACC', the reverse complement of 'GGTCTC',", 'GAGACC')]
    """
    pairs = []
    for motif in motifs:
        pairs.append((repr(motif), motif))
        reverse = reverse_complement(motif)
        if both and reverse != motif:
            pairs.append((f"{reverse!r}, the reverse complement of {motif!r},", reverse))
    return pairs


def base_sets(motif: str) -> BoolArray:
    """Which bases (`seqopt.strings.genetic_codes.BASES`) each letter permits, ``m x 4``."""
    return np.array([[base in AMBIGUITY[letter] for base in BASES] for letter in motif])


def hits(bases: IntArray, sets: BoolArray) -> BoolArray:
    """Where a motif begins: ``n x (L - m + 1)`` for genes ``n x L`` and permitted bases ``m x 4``."""
    starts = bases.shape[1] - len(sets) + 1
    found = np.ones((len(bases), max(starts, 0)), dtype=np.bool_)
    if starts > 0:
        for offset, permitted in enumerate(sets):
            found &= permitted[bases[:, offset : offset + starts]]
    return found


class MotifAutomaton:
    """Follows all motifs at once along a gene (the shift-and algorithm of Baeza-Yates and Gonnet, 1992).

    Bit j of a state says that the bases so far end with the first letters of a motif, up to the letter of bit j.

    Args:
        motifs: In IUPAC letters.

    Example:
        >>> automaton = MotifAutomaton(["GAATTC"])
        >>> automaton.step(automaton.step(0, "GAA"), "TTC") is None
        True
    """

    def __init__(self, motifs: Sequence[str]) -> None:
        self._first = self._last = 0
        self._letters = dict.fromkeys(BASES, 0)
        self._ends: list[int] = []
        bit = 0
        for motif in motifs:
            self._first |= 1 << bit
            for letter in motif:
                for base in AMBIGUITY[letter]:
                    self._letters[base] |= 1 << bit
                bit += 1
            self._ends.append(1 << (bit - 1))
            self._last |= 1 << (bit - 1)
        self._steps: dict[tuple[int, str], int | None] = {}
        self._counts: dict[tuple[int, str], tuple[int, tuple[int, ...]]] = {}

    def step(self, state: int, codon: str) -> int | None:
        """The state after ``codon``, or `None` when a motif has been completed."""
        known = (state, codon)
        if known not in self._steps:
            self._steps[known] = self._walk(state, codon, self._first)
        return self._steps[known]

    def counted(self, state: int, codon: str) -> tuple[int, tuple[int, ...]]:
        """The state after ``codon``, and how often each motif is completed by it."""
        known = (state, codon)
        if known not in self._counts:
            counts = [0] * len(self._ends)
            after = state
            for base in codon:
                after = (after << 1 | self._first) & self._letters[base]
                if after & self._last:
                    counts = [count + bool(after & end) for count, end in zip(counts, self._ends, strict=True)]
                    after &= ~self._last
            self._counts[known] = (after, tuple(counts))
        return self._counts[known]

    def after(self, upstream: str) -> int:
        """The state behind bases that stand before a gene; what they hold by themselves does not count."""
        return self.counted(0, upstream)[0]

    def clear(self, state: int, downstream: str) -> bool:
        """Whether no motif that has begun in a gene is completed by the bases behind it."""
        return self._walk(state, downstream, 0) is not None

    def _walk(self, state: int, bases: str, begin: int) -> int | None:
        for base in bases:
            state = (state << 1 | begin) & self._letters[base]
            # Ending here also keeps the last bit of a motif from moving on into the next one.
            if state & self._last:
                return None
        return state
