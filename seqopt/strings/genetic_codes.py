"""Genetic codes: which codon stands for which amino acid, by the translation tables of NCBI.

The tables are read from ``data/genetic_codes.json``. Those in which one codon is both a stop and an amino acid (27, 28
and 31) are left out, since a gene alone does not say there which protein it codes for.

References:
    Elzanowski, A., Ostell, J. The Genetic Codes, version 4.5. National Center for Biotechnology Information (NCBI).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import product

from seqopt.errors import InputError
from seqopt.utils.resources import data_path

BASES = "TCAG"
"""The bases in the order in which translation tables list them."""

AMBIGUITY = {
    **{"A": "A", "C": "C", "G": "G", "T": "T", "R": "AG", "Y": "CT", "S": "CG", "W": "AT", "K": "GT", "M": "AC"},
    **{"B": "CGT", "D": "AGT", "H": "ACT", "V": "ACG", "N": "ACGT"},
}
"""The bases that each IUPAC letter stands for."""

STOP = "*"
"""The symbol of a stop codon."""


@dataclass(frozen=True)
class GeneticCode:
    """One translation table, in DNA letters.

    Attributes:
        number: Its number at NCBI.
        names: Its names.
        amino_acids: The one-letter amino acid, or ``*``, of each of the 64 codons.
        starts: The codons at which translation can start.

    Example:
        >>> code = genetic_code("standard")
        >>> code.synonyms["I"], code.stops, code.translate("AUGTGGTAA")
        (('ATT', 'ATC', 'ATA'), ('TAA', 'TAG', 'TGA'), 'MW*')
    """

    number: int
    names: tuple[str, ...]
    amino_acids: Mapping[str, str] = field(compare=False)
    starts: tuple[str, ...]

    @cached_property
    def synonyms(self) -> Mapping[str, tuple[str, ...]]:
        """The codons of each amino acid, stops left out, in the order of the table."""
        codons: dict[str, tuple[str, ...]] = dict.fromkeys(sorted(set(self.amino_acids.values()) - {STOP}), ())
        for codon in self.sense_codons:
            codons[self.amino_acids[codon]] += (codon,)
        return codons

    @cached_property
    def stops(self) -> tuple[str, ...]:
        """The stop codons."""
        return tuple(codon for codon, amino_acid in self.amino_acids.items() if amino_acid == STOP)

    @cached_property
    def sense_codons(self) -> tuple[str, ...]:
        """The codons that stand for amino acids: 61 in the standard code."""
        return tuple(codon for codon, amino_acid in self.amino_acids.items() if amino_acid != STOP)

    def translate(self, gene: str) -> str:
        """The protein of a gene in DNA or RNA letters, stops as ``*``.

        A start codon other than ATG is read as within a gene, not as methionine.

        Raises:
            InputError: If the length of the gene is not a multiple of three, or for another letter (with its position).
        """
        bases = gene.strip().upper().replace("U", "T")
        for position, base in enumerate(bases, start=1):
            if base not in BASES:
                raise InputError(f"{base!r} at position {position} is not a base: use A, C, G, T or U")
        if len(bases) % 3:
            raise InputError(f"the gene has {len(bases)} bases, which is not a multiple of three")
        return "".join(self.amino_acids[bases[start : start + 3]] for start in range(0, len(bases), 3))


def genetic_code(code: str | int) -> GeneticCode:
    """The genetic code of a name or an NCBI number.

    Args:
        code: A number, for instance 11, or a name, for instance ``"standard"`` or ``"yeast mitochondrial"``. Case does
            not count, and hyphens or underscores count as blanks.

    Raises:
        InputError: For an unknown code; the message lists those that there are.

    Example:
        >>> genetic_code(2).translate("TGAATA"), genetic_code("Bacterial").number
        ('WM', 11)
    """
    codes = _codes()
    if isinstance(code, str):
        wanted = code.strip().casefold().replace("-", " ").replace("_", " ")
        for candidate in codes.values():
            if wanted in candidate.names or wanted == str(candidate.number):
                return candidate
    elif not isinstance(code, bool) and code in codes:
        return codes[code]
    known = ", ".join(f"{number} ({candidate.names[0]})" for number, candidate in codes.items())
    raise InputError(f"unknown genetic code {code!r}: choose a number or a name of {known}")


@lru_cache(maxsize=1)
def _codes() -> dict[int, GeneticCode]:
    table = json.loads(data_path("genetic_codes.json").read_text(encoding="utf-8"))
    codons = ["".join(bases) for bases in product(BASES, repeat=3)]
    return {
        entry["number"]: GeneticCode(
            entry["number"],
            tuple(entry["names"]),
            dict(zip(codons, entry["amino_acids"], strict=True)),
            tuple(codon for codon, mark in zip(codons, entry["starts"], strict=True) if mark == "M"),
        )
        for entry in table["codes"]
    }
