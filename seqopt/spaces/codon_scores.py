"""Scores of genes that are sums over codons, which dynamic programming can optimise."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from seqopt.errors import InputError
from seqopt.spaces.motifs import checked_motif
from seqopt.strings.genetic_codes import AMBIGUITY

FloatArray = npt.NDArray[np.float64]

Key = TypeVar("Key")


@dataclass(frozen=True)
class CodonScore:
    r"""A sum over the codons, codon pairs and motifs of a gene, and a function of its number of G and C.

    For a gene of the codons c_1 ... c_n with g bases G or C,

        S = sum_i (a(c_i) + b_i(c_i)) + sum_{i > 1} p(c_{i-1}, c_i) + sum_m w_m |gene|_m + h(g),

    where |gene|_m is how often motif m occurs in the gene, overlapping occurrences counted. What is not listed counts
    0. Codons are in upper-case DNA letters.

    Args:
        codons: a, by codon.
        positions: b, one mapping for each codon of the gene, start and stop codon included.
        pairs: p, by neighbouring codons in their order.
        motifs: w, by motif in IUPAC letters, on the strand of the gene.
        of_gc: h: from numbers of G and C (an array) to as many values.

    Raises:
        InputError: For a weight that is not finite, or a motif that is not one.

    Example:
        >>> CodonScore(codons={"AAA": 1.0}, pairs={("AAA", "AAG"): 0.5}, motifs={"AG": 0.1}).of("AAAAAG")
        1.6
    """

    codons: Mapping[str, float] = field(default_factory=dict)
    positions: Sequence[Mapping[str, float]] | None = None
    pairs: Mapping[tuple[str, str], float] = field(default_factory=dict)
    motifs: Mapping[str, float] = field(default_factory=dict)
    of_gc: Callable[[npt.NDArray[np.int64]], FloatArray] | None = None

    def __post_init__(self) -> None:
        named: list[tuple[object, float]] = [*self.codons.items(), *self.pairs.items(), *self.motifs.items()]
        for mapping in self.positions or ():
            named += mapping.items()
        for what, weight in named:
            if not math.isfinite(weight):
                raise InputError(f"the weight of {what} is {weight}; expected a finite number")
        object.__setattr__(self, "motifs", {checked_motif(motif): weight for motif, weight in self.motifs.items()})

    def __neg__(self) -> CodonScore:
        """The score whose best genes are the worst of this one."""
        return self.scaled(-1.0)

    def __add__(self, other: CodonScore) -> CodonScore:
        """The score that is the sum of both.

        Raises:
            InputError: If both weigh positions, of different numbers of codons.
        """
        positions = self.positions if other.positions is None else other.positions
        if self.positions is not None and other.positions is not None:
            if len(self.positions) != len(other.positions):
                raise InputError(
                    f"one score weighs the codons of {len(self.positions)} positions, the other those of "
                    f"{len(other.positions)}: give as many"
                )
            positions = [_added(*both) for both in zip(self.positions, other.positions, strict=True)]
        first, second = self.of_gc, other.of_gc
        of_gc = first or second
        if first is not None and second is not None:
            both_of_gc = (first, second)
            of_gc = lambda counts: both_of_gc[0](counts) + both_of_gc[1](counts)  # noqa: E731
        return CodonScore(
            _added(self.codons, other.codons),
            positions,
            _added(self.pairs, other.pairs),
            _added(self.motifs, other.motifs),
            of_gc,
        )

    def scaled(self, factor: float) -> CodonScore:
        """The score times a number."""
        of_gc = self.of_gc
        return CodonScore(
            {codon: factor * weight for codon, weight in self.codons.items()},
            None
            if self.positions is None
            else [{codon: factor * weight for codon, weight in one.items()} for one in self.positions],
            {pair: factor * weight for pair, weight in self.pairs.items()},
            {motif: factor * weight for motif, weight in self.motifs.items()},
            None if of_gc is None else lambda counts: factor * of_gc(counts),
        )

    def of(self, gene: str) -> float:
        """S of one gene in DNA letters."""
        codons = [gene[begin : begin + 3] for begin in range(0, len(gene), 3)]
        terms = [self.codons.get(codon, 0.0) for codon in codons]
        if self.positions is not None:
            terms += [own.get(codon, 0.0) for own, codon in zip(self.positions, codons, strict=True)]
        terms += [self.pairs.get(pair, 0.0) for pair in itertools.pairwise(codons)]
        terms += [weight * occurrences(gene, motif) for motif, weight in self.motifs.items()]
        if self.of_gc is not None:
            terms.append(float(self.of_gc(np.array([gene.count("G") + gene.count("C")]))[0]))
        return math.fsum(terms)


def _added(first: Mapping[Key, float], second: Mapping[Key, float]) -> dict[Key, float]:
    found = dict(first)
    for key, weight in second.items():
        found[key] = found.get(key, 0.0) + weight
    return found


def occurrences(gene: str, motif: str) -> int:
    """How often a motif in IUPAC letters occurs in a gene, overlapping occurrences counted.

    Example:
        >>> occurrences("AAAA", "AA"), occurrences("ACGT", "SR")
        (3, 1)
    """
    width = len(motif)
    return sum(
        all(base in AMBIGUITY[letter] for base, letter in zip(gene[begin : begin + width], motif, strict=True))
        for begin in range(len(gene) - width + 1)
    )
