"""Scores of genes: folding energy, codon adaptation and GC content.

Strings are written in DNA or RNA letters of either case; T and U are the same base.

References:
    Lorenz, R. et al. (2011). ViennaRNA Package 2.0. Algorithms Mol. Biol. 6, 26.
    Sharp, P. M., Li, W.-H. (1987). The codon adaptation index: a measure of directional synonymous codon usage
        bias, and its potential applications. Nucleic Acids Res. 15, 1281-1295.
    Bulmer, M. (1988). Are codon usage patterns in unicellular organisms determined by selection-mutation
        balance? J. Evol. Biol. 1, 15-26.
    Nakamura, Y., Gojobori, T., Ikemura, T. (2000). Codon usage tabulated from international DNA sequence
        databases: status for the year 2000. Nucleic Acids Res. 28, 292.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from seqopt.errors import InputError, ObjectiveError
from seqopt.strings.codon_usage import CODONS, by_codon, codon_usage
from seqopt.strings.genetic_codes import genetic_code

if TYPE_CHECKING:
    from seqopt.spaces import CodonScore, CodonSpace

LEAST_SPAN = 5
"""Bases from one of a pair to the other, with the three of the smallest hairpin loop between them."""

LEAST_ADAPTIVENESS = 0.01
"""Relative adaptiveness of a codon that the reference set does not have (Bulmer, 1988)."""

_TO_RNA = str.maketrans("T", "U")
_TO_DNA = str.maketrans("U", "T")
_BASES = frozenset("ACGTU")


@dataclass(frozen=True)
class MinimumFreeEnergy:
    """Minimum free energy of the secondary structure of an RNA, in kcal/mol, as ViennaRNA computes it.

    The energy of the most stable structure without pseudo-knots, relative to the unfolded strand, in the
    nearest-neighbour model that ViennaRNA has by default (parameters of Turner 2004, 1 M NaCl); never positive. The
    more negative, the more stable. Energies are multiples of 0.01 kcal/mol. The time grows as the cube of the length.

    Args:
        temperature: In degrees Celsius.
        span: Largest number of bases from one of a pair to the other, both included; `None` for any. A limited span
            leaves fewer structures: the energy is no lower, and sooner computed, a cheap stand-in for that of a long
            RNA.

    Raises:
        InputError: For a temperature that is not a finite number above absolute zero, or a span below 5, which leaves
            no room for a hairpin.
        ObjectiveError: If ViennaRNA is not installed.

    Example:
        >>> MinimumFreeEnergy()(["GGGAAATCCC", "gggaaauccc", "AAAA"]).tolist()
        [-2.5, -2.5, 0.0]
    """

    temperature: float = 37.0
    span: int | None = None

    def __post_init__(self) -> None:
        if self.span is not None and self.span < LEAST_SPAN:
            raise InputError(f"the span of base pairs is {self.span}; expected {LEAST_SPAN} bases or more, or none")
        if not (math.isfinite(self.temperature) and self.temperature > -273.15):
            raise InputError(f"temperature must be above -273.15 degrees Celsius, not {self.temperature}")
        _require("RNA", "viennarna")

    def __call__(self, strings: Sequence[str]) -> npt.NDArray[np.float64]:
        """Energies of ``strings`` (``n``).

        Raises:
            InputError: For a string that is empty or has a letter other than A, C, G, T and U.
        """
        import RNA

        model = RNA.md()
        model.temperature = self.temperature
        if self.span is not None:
            model.max_bp_span = self.span
        energies = [RNA.fold_compound(bases.translate(_TO_RNA), model).mfe()[1] for bases in read_bases(strings)]
        # ViennaRNA counts in hundredths of kcal/mol and returns them in single precision.
        return np.array([round(energy, 2) for energy in energies], dtype=np.float64)


@dataclass(frozen=True)
class CodonAdaptationIndex:
    """Codon adaptation index of a gene, above 0 and up to 1 (Sharp and Li, 1987).

    The geometric mean of the relative adaptiveness of its codons,

        CAI = (w_1 w_2 ... w_L)^(1/L),   w_c = f_c / max{f_d : d codes for the same amino acid as c},

    with f the frequency of a codon in a reference set of genes. The L codons are those that have synonyms: Met, Trp (by
    the standard code) and stop codons are left out. A codon that the reference set does not have counts w = 0.01
    (Bulmer, 1988), as one such codon would otherwise make the index zero. Codons of an amino acid that the reference
    set never has are left out.

    The reference sets are the tables of the Codon Usage Database (Kazusa; Nakamura et al., 2000), as the package
    python-codon-tables holds them, with two decimals: *all* coding sequences in GenBank of Escherichia coli W3110
    (``"e_coli"``), Saccharomyces cerevisiae (``"yeast"``) or Homo sapiens (``"human"``), not a choice of highly
    expressed genes as in the original index. A custom set goes into ``usage``. Nothing is downloaded.

    Args:
        organism: ``"e_coli"``, ``"yeast"``, ``"human"``, another table of python-codon-tables, or the path of a table
            of codon usage (see `seqopt.strings.codon_usage.codon_usage`); with ``usage``, what the reference set is
            called.
        usage: Frequencies or counts of the 64 codons in a reference set, by codon; codons that are missing count
            as 0.
        code: The genetic code, from each of the 64 codons to an amino acid or ``"*"``; by default the standard code.

    Raises:
        InputError: For an unknown organism (the message lists those that there are), a frequency that is negative or
            not finite, or something that is not a codon.
        ObjectiveError: If python-codon-tables is not installed.

    Example:
        >>> index = CodonAdaptationIndex("e_coli")
        >>> index(["ATGCTGAAATAA", "ATGCTAAAATAA"]).round(3).tolist()
        [1.0, 0.283]
    """

    organism: str = "e_coli"
    usage: Mapping[str, float] | None = field(default=None, repr=False, hash=False)
    code: Mapping[str, str] | None = field(default=None, repr=False, hash=False)
    adaptiveness: Mapping[str, float] = field(init=False, repr=False, compare=False)
    """Relative adaptiveness of each codon that counts, by codon in DNA letters."""

    def __post_init__(self) -> None:
        code = dict(genetic_code("standard").amino_acids) if self.code is None else by_codon(self.code)
        if set(code) != set(CODONS):
            raise InputError(f"a genetic code gives each of the 64 codons an amino acid or '*'; this has {len(code)}")
        usage = codon_usage(self.organism) if self.usage is None else by_codon(self.usage)
        for codon, frequency in usage.items():
            if not (math.isfinite(frequency) and frequency >= 0):
                raise InputError(f"the usage of codon {codon} must be a finite number from 0, not {frequency}")
        object.__setattr__(self, "adaptiveness", _adaptiveness(code, usage))

    def __call__(self, strings: Sequence[str]) -> npt.NDArray[np.float64]:
        """Indices of ``strings`` (``n``).

        Raises:
            InputError: For a string that is empty, has a letter other than A, C, G, T and U, is not made of whole
                codons, or has no codon that counts.
        """
        return np.array([self._score(bases, item) for item, bases in enumerate(read_bases(strings))], dtype=np.float64)

    def codon_score(self, space: CodonSpace) -> CodonScore | None:
        """The logarithm of the index, a sum over codons: see `seqopt.objectives.CodonAdditive`."""
        from seqopt.spaces import CodonScore

        # Of an amino acid all codons count or none, so that their number is the same for all genes.
        number = sum(codons[0] in self.adaptiveness for codons in space.choices)
        if not number:
            return None
        return CodonScore({codon: math.log(weight) / number for codon, weight in self.adaptiveness.items()})

    def log_score(self, space: CodonSpace) -> CodonScore | None:
        """The logarithm of the index: see `seqopt.objectives.codon_usage.LogOf`."""
        return self.codon_score(space)

    def _score(self, bases: str, item: int) -> float:
        if len(bases) % 3:
            raise InputError(f"string {item} has {len(bases)} bases; a gene has three for each codon")
        gene = bases.translate(_TO_DNA)
        known = self.adaptiveness
        logs = [math.log(known[codon]) for codon in _codons(gene) if codon in known]
        if not logs:
            raise InputError(f"string {item} has no codon with synonyms, so it has no codon adaptation index")
        return math.exp(math.fsum(logs) / len(logs))


@dataclass(frozen=True)
class GCContent:
    """Fraction of the bases that are G or C, 0 to 1; or its distance to a target, |fraction - target|.

    Args:
        target: The wanted fraction, 0 to 1; `None` for the fraction itself.

    Raises:
        InputError: For a target outside 0 to 1.

    Example:
        >>> GCContent()(["ATGC", "GGGC"]).tolist(), GCContent(0.6)(["ATGC"]).round(2).tolist()
        ([0.5, 1.0], [0.1])
    """

    adds_up: ClassVar[bool] = True

    target: float | None = None

    def __post_init__(self) -> None:
        if self.target is not None and not 0 <= self.target <= 1:
            raise InputError(f"the target of the GC content must be a fraction from 0 to 1, not {self.target}")

    def __call__(self, strings: Sequence[str]) -> npt.NDArray[np.float64]:
        """Fractions or distances of ``strings`` (``n``).

        Raises:
            InputError: For a string that is empty or has a letter other than A, C, G, T and U.
        """
        fractions = [(bases.count("G") + bases.count("C")) / len(bases) for bases in read_bases(strings)]
        values = np.array(fractions, dtype=np.float64)
        return values if self.target is None else np.abs(values - self.target)

    def codon_score(self, space: CodonSpace) -> CodonScore | None:
        """A sum over codons, or a function of the number of G and C: see `seqopt.objectives.CodonAdditive`."""
        from seqopt.spaces import CodonScore

        total, target = 3 * space.length, self.target
        if target is None:
            return CodonScore({codon: (codon.count("G") + codon.count("C")) / total for codon in CODONS})
        return CodonScore(of_gc=lambda counts: np.abs(counts / total - target))


def gc_distance(target: str) -> GCContent:
    """`GCContent` with a target that is written as text, such as ``"0.5"``.

    Raises:
        InputError: If it is not a number from 0 to 1.
    """
    try:
        return GCContent(float(target))
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"the target of the GC content must be a fraction from 0 to 1, such as 0.5, not {target!r}"
        ) from None


def read_bases(strings: Sequence[str]) -> Iterator[str]:
    """The strings in upper case without surrounding blanks, checked."""
    if isinstance(strings, str):
        raise InputError(f"expected a list of genes, got the single string {strings!r}: write [{strings!r}]")
    for item, string in enumerate(strings):
        bases = string.strip().upper()
        if not bases:
            raise InputError(f"string {item} is empty: a gene has at least one base")
        if not _BASES.issuperset(bases):
            position, letter = next((index, base) for index, base in enumerate(bases, start=1) if base not in _BASES)
            raise InputError(
                f"string {item} has {letter!r} at position {position} (counting from 1): "
                "a gene is written with A, C, G and T or U"
            )
        yield bases


def _codons(gene: str) -> Iterator[str]:
    return (gene[begin : begin + 3] for begin in range(0, len(gene), 3))


def _adaptiveness(code: Mapping[str, str], usage: Mapping[str, float]) -> dict[str, float]:
    synonyms: dict[str, list[str]] = {}
    for codon, amino_acid in code.items():
        if amino_acid != "*":
            synonyms.setdefault(amino_acid, []).append(codon)
    weights: dict[str, float] = {}
    for codons in synonyms.values():
        largest = max(usage.get(codon, 0) for codon in codons)
        # An amino acid that the reference set never has says nothing about its codons.
        if len(codons) > 1 and largest > 0:
            weights |= {codon: (usage.get(codon, 0) / largest) or LEAST_ADAPTIVENESS for codon in codons}
    return weights


def _require(module: str, package: str) -> None:
    if importlib.util.find_spec(module) is None:
        raise ObjectiveError(f"this objective needs the package {package}: pip install {package}")
