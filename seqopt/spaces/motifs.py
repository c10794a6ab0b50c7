"""Motifs in IUPAC letters: which bases they stand for, where they are, and an automaton that follows all of them.

References:
    IUPAC-IUB (1984). Nomenclature for incompletely specified bases in nucleic acid sequences.
    Baeza-Yates, R., Gonnet, G. H. (1992). A new approach to text searching. Commun. ACM 35(10), 74-82.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

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


@dataclass
class _Node:
    """A place in the tree of motifs: what may follow, by the bases permitted, and the motifs that end here."""

    following: dict[tuple[bool, ...], _Node] = field(default_factory=dict)
    ends: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Hits:
    """Where motifs are, in the order in which a tree of them was searched.

    Attributes:
        rows: Numbers of genes.
        starts: Where a motif begins in it.
        lengths: How long it is.
    """

    rows: IntArray
    starts: IntArray
    lengths: IntArray


class MotifSearch:
    """Finds all motifs at once in many genes.

    The motifs form a tree, and only places at which the letters so far are found are looked at further: of random
    genes a quarter of the places after each letter, so that hundreds of motifs of twenty bases cost little more than
    one of three.

    Args:
        motifs: In IUPAC letters.

    Example:
        >>> found = MotifSearch(["GAATTC", "AAN"]).found(np.array([["TCAG".index(base) for base in "GAATTCAA"]]))
        >>> sorted(zip(found.starts.tolist(), found.lengths.tolist()))
        [(0, 6), (1, 3)]
    """

    def __init__(self, motifs: Sequence[str]) -> None:
        self.longest = max(map(len, motifs), default=0)
        self._lengths = np.array([len(motif) for motif in motifs], dtype=np.int64)
        self._root = _Node()
        for number, motif in enumerate(motifs):
            node = self._root
            for permitted in base_sets(motif).tolist():
                node = node.following.setdefault(tuple(permitted), _Node())
            node.ends.append(number)

    def found(self, bases: IntArray) -> Hits:
        """Where motifs lie wholly within the genes, ``n x L``."""
        rows, length = bases.shape
        # Behind each gene stands what no motif permits, so that none goes on from one gene into the next.
        flat = np.full((rows, length + 1), len(BASES), dtype=np.int8)
        flat[:, :length] = bases
        places: list[IntArray] = []
        numbers: list[int] = []
        self._follow(self._root, None, flat.reshape(-1), 0, places, numbers)
        together = np.concatenate(places) if places else np.zeros(0, dtype=np.int64)
        found, starts = np.divmod(together, length + 1)
        return Hits(found, starts, np.repeat(self._lengths[numbers], [len(some) for some in places]))

    def _follow(
        self,
        node: _Node,
        here: IntArray | None,
        flat: npt.NDArray[np.int8],
        depth: int,
        places: list[IntArray],
        numbers: list[int],
    ) -> None:
        """Go on from the places at which the letters up to a node are, or from all."""
        if here is not None:
            places += [here] * len(node.ends)
            numbers += node.ends
        if not node.following:
            return
        letters = flat if here is None else flat[here + depth]
        for permitted, after in node.following.items():
            inside = np.array([*permitted, False])[letters]
            there = np.flatnonzero(inside) if here is None else here[inside]
            if len(there):
                self._follow(after, there, flat, depth + 1, places, numbers)


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
