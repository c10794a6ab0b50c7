"""Libraries of degenerate codons, such as NNK at four positions, with the amino acids that they really make.

References:
    IUPAC-IUB (1984). Nomenclature for incompletely specified bases in nucleic acid sequences.
    Patrick, W. M., Firth, A. E., Blackburn, J. M. (2003). User-friendly algorithms for estimating completeness and
        diversity in randomized protein-encoding libraries. Protein Eng. 16, 451-457.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from seqopt.encoding import Alphabet, Encoder
from seqopt.errors import InputError
from seqopt.spaces.local import LocalSpace
from seqopt.spaces.parent_space import checked_parent
from seqopt.spaces.populations import Population, described_size
from seqopt.strings.genetic_codes import AMBIGUITY, STOP, genetic_code
from seqopt.strings.positions import parsed_positions, written_positions
from seqopt.utils.arguments import checked_integer

FloatArray = npt.NDArray[np.float64]


def codon_distribution(codon: str, code: str | int = "standard") -> dict[str, int]:
    """How many of the codons that a degenerate codon stands for make each amino acid, stops (``*``) among them.

    Args:
        codon: Three IUPAC letters.
        code: The genetic code; see `seqopt.strings.genetic_codes.genetic_code`.

    Raises:
        InputError: For anything but three IUPAC letters, or an unknown code.

    Example:
        >>> counts = codon_distribution("NNK")
        >>> sum(counts.values()), counts["L"], counts["M"], counts["*"], len(counts)
        (32, 3, 1, 1, 21)
        >>> "".join(sorted(codon_distribution("NDT")))
        'CDFGHILNRSVY'
    """
    amino_acids = genetic_code(code).amino_acids
    if not isinstance(codon, str) or len(codon.strip()) != 3:
        raise InputError(f"{codon!r} is no degenerate codon: write three IUPAC letters, such as NNK or NDT")
    bases = codon.strip().upper().replace("U", "T")
    for place, base in enumerate(bases, start=1):
        if base not in AMBIGUITY:
            raise InputError(
                f"{base!r} at place {place} of the codon {codon!r} is no IUPAC letter: use {''.join(AMBIGUITY)}"
            )
    found = Counter(amino_acids["".join(triplet)] for triplet in product(*(AMBIGUITY[base] for base in bases)))
    return dict(sorted(found.items()))


class CodonLibrary(LocalSpace):
    """The proteins of a library of degenerate codons, drawn as they occur in it.

    Every position has a degenerate codon, whose bases are mixed in equal parts. So a position has amino acid a with the
    probability (codons that make a) / (all its codons), and stops with that of its stop codons. A string is a protein
    without stops; its `probability` counts clones with stops, too, so that all strings together have the probability
    1 - `stop_probability`.

    *Sampling* draws proteins by these probabilities, given that there is no stop: as clones are picked, those seen
    before left out. *Moves* are those of `LocalSpace`: in a search, every amino acid of a position is as likely as the
    others.

    Args:
        codons: One degenerate codon for all positions, or one for each; as a text with commas between them, or a list.
        parent: The protein in which they stand; without it, strings have these positions alone.
        positions: Where, counted from 1: numbers, or a text such as ``"39-41,54"``. Needed with a parent.
        code: The genetic code.
        accept: Keeps only strings for which this predicate holds.

    Raises:
        InputError: For a codon that is none, or makes nothing but stops, a parent that has other letters than amino
            acids, positions outside it, or another number of codons than positions.

    Example:
        >>> library = CodonLibrary("NNK", parent="MKVLS", positions="2,4")
        >>> library.size, round(library.stop_probability, 6) == round(1 - (31 / 32) ** 2, 6)
        (400, True)
        >>> (library.probability(["MLVLS", "MMVMS"]) * 32**2).round(9).tolist()
        [9.0, 1.0]
    """

    def __init__(
        self,
        codons: str | Sequence[str],
        *,
        parent: str | None = None,
        positions: str | Iterable[int] | None = None,
        code: str | int = "standard",
        accept: Callable[[str], bool] | None = None,
    ) -> None:
        given = [part.strip() for part in codons.split(",")] if isinstance(codons, str) else list(codons)
        if not given or given == [""]:
            raise InputError("no codons: give a degenerate codon such as NNK")
        self.code = genetic_code(code).number
        counts = {codon: codon_distribution(codon, code) for codon in given}
        self.parent = None if parent is None else checked_parent(parent, "protein")
        if self.parent is None:
            if positions is not None:
                raise InputError("positions are those of a parent: give the parent, too, or leave them out")
            places = list(range(1, len(given) + 1))
        else:
            if positions is None:
                raise InputError("say at which positions of the parent the codons stand: positions='39-41,54'")
            places = parsed_positions(positions, len(self.parent))
        if len(given) == 1:
            given = given * len(places)
        if len(given) != len(places):
            raise InputError(
                f"{len(given)} codons for {len(places)} positions: give one for each, or a single one for all"
            )
        self.positions = places
        self.codons = tuple(codon.strip().upper().replace("U", "T") for codon in given)
        self.distributions = tuple(counts[codon] for codon in given)
        for codon, found in zip(self.codons, self.distributions, strict=True):
            if set(found) == {STOP}:
                raise InputError(f"the codon {codon} makes nothing but stops")
        made = [[letter for letter in found if letter != STOP] for found in self.distributions]
        choices: list[list[str]] = made
        if self.parent is not None:
            choices = [[letter] for letter in self.parent]
            for place, letters in zip(places, made, strict=True):
                choices[place - 1] = letters
        symbols = list(dict.fromkeys(letter for letters in choices for letter in letters))
        self._prepare(choices, symbols, "protein", accept, Encoder("characters", Alphabet(symbols)))
        self._shares = np.zeros((len(places), len(symbols)))
        for index, found in enumerate(self.distributions):
            total = sum(found.values())
            for letter, count in found.items():
                if letter != STOP:
                    self._shares[index, symbols.index(letter)] = count / total
        self._columns = np.array(places, dtype=np.intp) - 1
        self._added = np.cumsum(self._shares / self._shares.sum(axis=1, keepdims=True), axis=1)
        last = len(symbols) - 1 - (self._shares[:, ::-1] > 0).argmax(axis=1)
        self._added[np.arange(len(symbols))[None, :] >= last[:, None]] = 1.0

    def config_arguments(self) -> dict[str, Any]:
        """See `seqopt.utils.config.Configurable`."""
        return {
            "codons": list(self.codons),
            "parent": self.parent,
            "positions": None if self.parent is None else written_positions(self.positions),
            "code": self.code,
            "accept": self.accept,
        }

    @property
    def stop_probability(self) -> float:
        """The probability that a clone has a stop at one of the positions."""
        return 1.0 - math.prod(1.0 - found.get(STOP, 0) / sum(found.values()) for found in self.distributions)

    @property
    def genes(self) -> int:
        """How many different genes the library has: its size in DNA, stops included."""
        return math.prod(sum(found.values()) for found in self.distributions)

    def probability(self, strings: Sequence[str]) -> FloatArray:
        """The probability of each string: that a clone, drawn at random, is it; 0 for what is not in the library.

        Clones with stops are counted, and ``accept`` is not.

        Example:
            >>> CodonLibrary("NNK").probability(["R", "W", "*"]).tolist()  # 3 and 1 of 32 codons
            [0.09375, 0.03125, 0.0]
        """
        found = np.zeros(len(strings))
        inside = [index for index, string in enumerate(strings) if self._rows([self._normalised(string)]) is not None]
        rows = self._rows([self._normalised(strings[index]) for index in inside])
        if inside and rows is not None:
            found[inside] = self._shares[np.arange(len(self._columns)), rows[:, self._columns]].prod(axis=1)
        return found

    def expected_variants(self, clones: int) -> float:
        """How many different proteins so many clones hold on average, sum of 1 - (1 - p)^clones over all proteins.

        Args:
            clones: How many are drawn, those with stops among them.

        Raises:
            InputError: If that is not an integer of at least 0.

        Example:
            >>> library = CodonLibrary(["NNK"] * 4)
            >>> library.size, round(library.expected_variants(1_000_000))
            (160000, 145127)
        """
        clones = checked_integer("clones", clones, 0, "expected an integer of at least 0")
        # Proteins of one product of numbers of codons are alike.
        classes: Counter[int] = Counter({1: 1})
        for found in self.distributions:
            grown: Counter[int] = Counter()
            for letter, count in found.items():
                if letter != STOP:
                    for before, many in classes.items():
                        grown[before * count] += many
            classes = grown
        genes = self.genes
        return float(
            sum(
                many * (1.0 if count == genes and clones else -math.expm1(clones * math.log1p(-count / genes)))
                if clones
                else 0.0
                for count, many in classes.items()
            )
        )

    def _random(self, n: int, rng: np.random.Generator) -> Population:
        rows = np.tile(self._options[:, 0], (n, 1))
        draws = rng.random((n, len(self._columns)))
        for index, column in enumerate(self._columns.tolist()):
            rows[:, column] = np.searchsorted(self._added[index], draws[:, index], side="right")
        return rows

    def _explained(self, string: str) -> str:
        if "*" in string:
            return "a clone with a stop codon is no protein of the library, and tells nothing of one: leave it out"
        return super()._explained(string)

    def __repr__(self) -> str:
        kinds = ", ".join(dict.fromkeys(self.codons))
        return (
            f"CodonLibrary({kinds} at {len(self.positions)} "
            f"{'position' if len(self.positions) == 1 else 'positions'}: {described_size(self)} "
            f"{'protein' if self.size == 1 else 'proteins'})"
        )
