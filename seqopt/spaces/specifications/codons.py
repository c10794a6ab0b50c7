"""Constraints that leave codons out: fixed stretches and rare codons."""

from __future__ import annotations

from collections.abc import Sequence

from seqopt.errors import InputError
from seqopt.spaces.motifs import checked_motif
from seqopt.spaces.specifications.base import Frame, Specification
from seqopt.strings.codon_usage import codon_usage, relative_usage
from seqopt.strings.genetic_codes import AMBIGUITY


class FixedStretch(Specification):
    """Some codons as they are, such as those of a tag or a primer's site.

    Args:
        first: The codon with which the stretch begins, counted from 1 along the gene.
        bases: Its bases, three for each codon; N is any base.

    Example:
        >>> FixedStretch(2, "CAYCAC").text
        'codons 2 to 3 CAYCAC'
    """

    def __init__(self, first: int, bases: str) -> None:
        self.bases = checked_motif(bases)
        if isinstance(first, bool) or not isinstance(first, int) or first < 1:
            raise InputError(f"a fixed stretch begins at codon {first!r}; expected an integer of at least 1")
        if len(self.bases) % 3:
            raise InputError(f"the fixed stretch {bases!r} has {len(self.bases)} bases: give three for each codon")
        self.first = first

    @property
    def _codons(self) -> list[str]:
        return [self.bases[begin : begin + 3] for begin in range(0, len(self.bases), 3)]

    @property
    def text(self) -> str:
        """See `Specification`."""
        last = self.first + len(self._codons) - 1
        where = f"codon {self.first}" if last == self.first else f"codons {self.first} to {last}"
        return f"{where} {self.bases}"

    def check(self, frame: Frame) -> None:
        """See `Specification`."""
        last = self.first + len(self._codons) - 1
        if last > len(frame.choices):
            raise InputError(
                f"the fixed stretch {self.bases} would end at codon {last}, and the gene has {len(frame.choices)}"
            )
        for offset, codon in enumerate(self._codons):
            position = self.first - 1 + offset
            if not _matching(codon, frame.choices[position]):
                raise InputError(
                    f"codon {position + 1} of the gene cannot be {codon}: {frame.residues[position]} has "
                    f"{', '.join(frame.choices[position])}"
                )

    def permitted(self, frame: Frame, position: int, codons: Sequence[str]) -> Sequence[str]:
        """See `Specification`."""
        offset = position - self.first + 1
        return _matching(self._codons[offset], codons) if 0 <= offset < len(self._codons) else codons


class NoRareCodons(Specification):
    """No codon that an organism uses for less than a share of its amino acid, if there is another one.

    Args:
        organism: A table of codon usage: see `seqopt.strings.codon_usage.codon_usage`.
        least: The lowest share among the synonyms that is permitted, 0 to 1.

    Example:
        >>> NoRareCodons("e_coli", 0.1).text
        'no codon of a share below 0.1 in e_coli'
    """

    def __init__(self, organism: str, least: float) -> None:
        self.organism = organism
        self.least = float(least)
        if not 0 <= self.least <= 1:
            raise InputError(f"the lowest share of a codon is {least}; expected a number from 0 to 1")
        self._usage = codon_usage(organism)

    @property
    def text(self) -> str:
        """See `Specification`."""
        return f"no codon of a share below {self.least:g} in {self.organism}"

    def permitted(self, frame: Frame, position: int, codons: Sequence[str]) -> Sequence[str]:
        """See `Specification`."""
        # Start and stop codons are chosen by whoever designs the gene.
        if frame.residues[position] in ("start", "stop") or len(frame.choices[position]) == 1:
            return codons
        shares = relative_usage(self._usage, frame.code.amino_acids)
        # The commonest of all synonyms always stays, so that each amino acid can be written.
        most = max(shares[codon] for codon in frame.choices[position])
        return [codon for codon in codons if shares[codon] >= min(self.least, most)]


def _matching(pattern: str, codons: Sequence[str]) -> list[str]:
    return [
        codon for codon in codons if all(base in AMBIGUITY[letter] for base, letter in zip(codon, pattern, strict=True))
    ]
