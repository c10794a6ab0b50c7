"""Scores of genes by their codons: tRNA adaptation, codon pairs, harmonisation, shares, motifs, own weights.

All are sums over codons, pairs of codons or short motifs, or increase with one, so that the best genes of a protein are
found exactly.

What is *not* a sum over codons: how near the usage of a whole gene comes to that of an organism (a distance between two
distributions). `CodonShares` has that in another form: genes drawn with its logarithm as score at temperature 1
(`seqopt.spaces.ExactGenes.sample`) use each codon as often as the organism does, on average.

References:
    dos Reis, M., Savva, R., Wernisch, L. (2004). Solving the riddle of codon usage preferences: a test for
        translational selection. Nucleic Acids Res. 32, 5036-5044.
    Coleman, J. R. et al. (2008). Virus attenuation by genome-scale changes in codon pair bias. Science 320, 1784-1787.
    Claassens, N. J. et al. (2017). Improving heterologous membrane protein production in Escherichia coli by combining
        transcriptional tuning and codon usage algorithms. PLoS ONE 12, e0184355. (the relative codon harmonisation)
"""

from __future__ import annotations

import itertools
import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from seqopt.datasets.tables import read_table
from seqopt.errors import InputError
from seqopt.strings.codon_usage import CODONS, by_codon, codon_usage, read_numbers_of_codons, relative_usage
from seqopt.strings.genetic_codes import STOP, genetic_code

if TYPE_CHECKING:
    from seqopt.spaces import CodonScore, CodonSpace

FloatArray = npt.NDArray[np.float64]

_WOBBLE: Mapping[str, tuple[tuple[str, float], ...]] = {
    # Third base of the codon: first bases of anticodons that read it, and what the pairing costs (dos Reis, table 2).
    "T": (("A", 0.0), ("G", 0.41)),
    "C": (("G", 0.0), ("A", 0.28)),
    "A": (("T", 0.0), ("A", 0.9999)),
    "G": (("C", 0.0), ("T", 0.68)),
}

_COMPLEMENT = str.maketrans("ACGT", "TGCA")


@dataclass(frozen=True)
class CodonWeights:
    """Mean of the weights of the codons of a gene.

    Args:
        weights: By codon in DNA or RNA letters; codons that are not there weigh 0.
        name: What they are called.

    Raises:
        InputError: For something that is not a codon.

    Example:
        >>> CodonWeights({"AAA": 1.0, "AAG": 0.5})(["AAAAAG"]).tolist()
        [0.75]
    """

    adds_up: ClassVar[bool] = True

    weights: Mapping[str, float] = field(hash=False)
    name: str = "weights"

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", by_codon(self.weights))

    @classmethod
    def from_file(cls, path: str) -> CodonWeights:
        """Of a .csv or .tsv file with the columns ``codon`` and ``weight``."""
        return cls(read_numbers_of_codons(path, ("weight",)), Path(path).name)

    def __call__(self, strings: Sequence[str]) -> FloatArray:
        """Means of ``strings`` (``n``)."""
        return np.array([_mean([self.weights.get(codon, 0.0) for codon in codons]) for codons in _read(strings)])

    def codon_score(self, space: CodonSpace) -> CodonScore | None:
        """See `seqopt.objectives.CodonAdditive`."""
        from seqopt.spaces import CodonScore

        return CodonScore({codon: weight / space.length for codon, weight in self.weights.items()})


@dataclass(frozen=True)
class CodonShares:
    """Geometric mean of the shares of the codons of a gene among their synonyms, above 0 and up to 1.

    The likelihood of the gene, per codon, where each codon is drawn as often as the organism uses it. Stop codons are
    left out; a codon that is never used counts as a share of 0.001.

    Args:
        organism: See `seqopt.strings.codon_usage.codon_usage`.
        code: Name or number of the genetic code.

    Example:
        >>> CodonShares("e_coli")(["AAAAAA", "AAGAAG"]).round(2).tolist()
        [0.76, 0.24]
    """

    organism: str
    code: str | int = "standard"
    shares: Mapping[str, float] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        code = genetic_code(self.code).amino_acids
        shares = relative_usage(codon_usage(self.organism), code)
        kept = {codon: max(share, 1e-3) for codon, share in shares.items() if code[codon] != STOP}
        object.__setattr__(self, "shares", kept)

    def __call__(self, strings: Sequence[str]) -> FloatArray:
        """Means of ``strings`` (``n``)."""
        return _geometric_means(strings, self.shares)

    def codon_score(self, space: CodonSpace) -> CodonScore | None:
        """The sum of the logarithms of the shares: see `seqopt.objectives.CodonAdditive`."""
        from seqopt.spaces import CodonScore

        return CodonScore({codon: math.log(share) for codon, share in self.shares.items()})

    def log_score(self, space: CodonSpace) -> CodonScore | None:
        """The logarithm of the value itself: see `LogOf`."""
        number = sum(codons[0] in self.shares for codons in space.choices)
        score = self.codon_score(space)
        return None if score is None or not number else score.scaled(1 / number)


@dataclass(frozen=True)
class TRNAAdaptationIndex:
    r"""tRNA adaptation index of a gene, above 0 and up to 1 (dos Reis et al., 2004).

    The geometric mean of the weights of its codons, each the supply of tRNAs that read it,

        W_c = sum over anticodons j that pair with c of  (1 - s_cj) copies_j,   w_c = W_c / max W,

    with the costs s of wobble pairing of the paper: I:C 0.28, G:U 0.41, U:G 0.68, I:A 0.9999 and none for Watson-Crick
    pairs. A codon that nothing reads counts the mean of the others. Met and stop codons are left out.

    Args:
        copies: Numbers of tRNA genes by anticodon (5' to 3', in DNA or RNA letters; A in first place stands for
            inosine).
        name: What they are called.

    Raises:
        InputError: For something that is not an anticodon, a negative number, or no tRNA at all.

    Example:
        >>> index = TRNAAdaptationIndex({"TTT": 4, "CTT": 2})
        >>> index(["AAA", "AAG"]).round(3).tolist()
        [1.0, 0.82]
    """

    copies: Mapping[str, float] = field(hash=False)
    name: str = "tRNAs"
    weights: Mapping[str, float] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        copies = by_codon(self.copies)
        for anticodon, number in copies.items():
            if not (math.isfinite(number) and number >= 0):
                raise InputError(f"the number of tRNA genes of anticodon {anticodon} is {number}; expected 0 or more")
        code = genetic_code("standard").amino_acids
        supply = {}
        for codon in CODONS:
            if code[codon] in (STOP, "M"):
                continue
            rest = codon[:2].translate(_COMPLEMENT)[::-1]
            supply[codon] = sum((1 - cost) * copies.get(first + rest, 0.0) for first, cost in _WOBBLE[codon[2]])
        most = max(supply.values())
        if most <= 0:
            raise InputError(f"the tRNAs of {self.name} read no codon: give numbers of genes by anticodon")
        read = [value / most for value in supply.values() if value > 0]
        mean = math.exp(math.fsum(map(math.log, read)) / len(read))
        weights = {codon: (value / most) or mean for codon, value in supply.items()}
        object.__setattr__(self, "weights", weights)

    @classmethod
    def from_file(cls, path: str) -> TRNAAdaptationIndex:
        """Of a .csv or .tsv file with the columns ``anticodon`` and ``copies``."""
        copies = read_numbers_of_codons(path, ("copies",), key="anticodon")
        try:
            return cls(copies, Path(path).name)
        except InputError as error:
            raise InputError(f"{path}: {error}") from error

    def __call__(self, strings: Sequence[str]) -> FloatArray:
        """Indices of ``strings`` (``n``)."""
        return _geometric_means(strings, self.weights)

    def codon_score(self, space: CodonSpace) -> CodonScore | None:
        """The logarithm of the index: see `seqopt.objectives.CodonAdditive`."""
        from seqopt.spaces import CodonScore

        number = sum(codons[0] in self.weights for codons in space.choices)
        if not number or any(len({codon in self.weights for codon in codons}) > 1 for codons in space.choices):
            return None
        return CodonScore({codon: math.log(weight) / number for codon, weight in self.weights.items()})

    def log_score(self, space: CodonSpace) -> CodonScore | None:
        """The logarithm of the index: see `LogOf`."""
        return self.codon_score(space)


@dataclass(frozen=True)
class CodonPairBias:
    r"""Codon pair bias of a gene: the mean score of its pairs of neighbouring codons (Coleman et al., 2008).

    The score of a pair AB that codes for the amino acids XY is the logarithm of how often it occurs in reference genes,
    over how often it is expected to by the counts of its codons and of the pairs of amino acids,

        CPS = ln( F(AB) F(X) F(Y) / (F(A) F(B) F(XY)) ).

    Pairs that the reference genes do not have count 0; so do those with a stop codon.

    Args:
        scores: CPS by pairs of codons in DNA letters.
        name: What the reference genes are called.

    Example:
        >>> bias = CodonPairBias.of_genes(["AAAGAA", "AAAGAA", "AAGGAG", "AAAGAG"])
        >>> bias(["AAAGAA"]).round(3).tolist()
        [0.288]
    """

    adds_up: ClassVar[bool] = True

    scores: Mapping[tuple[str, str], float] = field(hash=False, repr=False)
    name: str = "pairs"

    @classmethod
    def of_genes(cls, genes: Sequence[str], name: str = "genes") -> CodonPairBias:
        """The scores that reference genes have.

        Raises:
            InputError: For a gene that is not whole codons of A, C, G and T or U, or no pair at all.
        """
        code = genetic_code("standard").amino_acids
        codons, pairs = Counter[str](), Counter[tuple[str, str]]()
        for own in _read(genes):
            sense = [codon for codon in own if code[codon] != STOP]
            codons.update(sense)
            pairs.update(pair for pair in itertools.pairwise(own) if STOP not in (code[pair[0]], code[pair[1]]))
        if not pairs:
            raise InputError(f"{name}: there is no pair of codons in these genes")
        residues, two = Counter[str](), Counter[tuple[str, str]]()
        for codon, number in codons.items():
            residues[code[codon]] += number
        for (first, second), number in pairs.items():
            two[code[first], code[second]] += number
        return cls(
            {
                (first, second): math.log(
                    number
                    * residues[code[first]]
                    * residues[code[second]]
                    / (codons[first] * codons[second] * two[code[first], code[second]])
                )
                for (first, second), number in pairs.items()
            },
            name,
        )

    @classmethod
    def from_file(cls, path: str) -> CodonPairBias:
        """Of the reference genes in a FASTA file."""
        return cls.of_genes([gene for _, gene in _genes_of(path)], Path(path).name)

    def __call__(self, strings: Sequence[str]) -> FloatArray:
        """Means of ``strings`` (``n``); 0 for a gene of one codon."""
        pairs = [list(itertools.pairwise(codons)) for codons in _read(strings)]
        return np.array([_mean([self.scores.get(pair, 0.0) for pair in own]) if own else 0.0 for own in pairs])

    def codon_score(self, space: CodonSpace) -> CodonScore | None:
        """See `seqopt.objectives.CodonAdditive`."""
        from seqopt.spaces import CodonScore

        number = max(space.length - 1, 1)
        return CodonScore(pairs={pair: score / number for pair, score in self.scores.items()})


@dataclass(frozen=True)
class Harmonisation:
    r"""How far a gene is from using codons in its host as its native gene does at home, per codon; 0 at best.

    The mean over codons of |w_host(c_i) - w_home(n_i)|, with w the share of a codon over that of the commonest of its
    synonyms, c the gene and n the native gene (Claassens et al., 2017, for the relative codon harmonisation). Stop
    codons are left out.

    Args:
        native: The native gene, codon for codon that of the same protein.
        home: The organism that it comes from: see `seqopt.strings.codon_usage.codon_usage`.
        host: The organism that the gene is for.
        code: Name or number of the genetic code.

    Raises:
        InputError: For a native gene that is not whole codons.

    Example:
        >>> Harmonisation("AAAGAA", "human", "e_coli")(["AAAGAA", "AAGGAA"]).round(3).tolist()
        [0.261, 0.357]
    """

    adds_up: ClassVar[bool] = True

    native: str
    home: str
    host: str
    code: str | int = "standard"
    _home: Mapping[str, float] = field(init=False, repr=False, compare=False)
    _host: Mapping[str, float] = field(init=False, repr=False, compare=False)
    _codons: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name, organism in (("_home", self.home), ("_host", self.host)):
            object.__setattr__(self, name, self._relative(organism))
        object.__setattr__(self, "_codons", tuple(_read([self.native])[0]))

    def _relative(self, organism: str) -> dict[str, float]:
        code = genetic_code(self.code).amino_acids
        shares = relative_usage(codon_usage(organism), code)
        most: dict[str, float] = {}
        for codon, share in shares.items():
            most[code[codon]] = max(most.get(code[codon], 0.0), share)
        return {codon: share / most[code[codon]] for codon, share in shares.items()}

    @classmethod
    def parse(cls, text: str) -> Harmonisation:
        """Of ``"native.fasta,HOME,HOST"``.

        Raises:
            InputError: If it is not three parts, or the file does not hold one gene.
        """
        parts = [part.strip() for part in text.split(",")]
        if len(parts) != 3:
            raise InputError(
                f"harmonization takes three parts, harmonization:native.fasta,HOME,HOST; {text!r} has {len(parts)}"
            )
        genes = _genes_of(parts[0])
        if len(genes) != 1:
            raise InputError(f"{parts[0]} holds {len(genes)} genes; expected the native gene of the protein alone")
        return cls(genes[0][1], parts[1], parts[2])

    def __call__(self, strings: Sequence[str]) -> FloatArray:
        """Distances of ``strings`` (``n``).

        Raises:
            InputError: For a gene that has fewer or more codons than the native one, or codes for something else.
        """
        code = genetic_code(self.code).amino_acids
        values = []
        for item, codons in enumerate(_read(strings)):
            own, native = _without_stop(codons, code), _without_stop(self._codons, code)
            if len(own) != len(native):
                raise InputError(f"string {item} has {len(own)} codons, and the native gene {len(native)}")
            values.append(
                _mean([abs(self._host[one] - self._home[other]) for one, other in zip(own, native, strict=True)])
            )
        return np.array(values, dtype=np.float64)

    def codon_score(self, space: CodonSpace) -> CodonScore | None:
        """See `seqopt.objectives.CodonAdditive`.

        Raises:
            InputError: If the native gene does not code for the protein of the space; the message says where.
        """
        from seqopt.spaces import CodonScore

        code = genetic_code(self.code).amino_acids
        native = _without_stop(self._codons, code)
        length = space.length - (space.stop is not None)
        if len(native) != length:
            raise InputError(
                f"the native gene has {len(native)} codons, and the genes of this protein have {length}, stop codons "
                "left out: give the gene of the same protein"
            )
        positions: list[dict[str, float]] = []
        for index, codon in enumerate(native):
            choices = space.frame.choices[index]
            if index and code[codon] != code[choices[0]]:
                raise InputError(
                    f"codon {index + 1} of the native gene ({codon}) codes for {code[codon]}, and the protein has "
                    f"{code[choices[0]]} there: give the gene of the same protein"
                )
            positions.append({one: abs(self._host[one] - self._home[codon]) / length for one in choices})
        return CodonScore(positions=[*positions, *([{}] if space.stop is not None else [])])


@dataclass(frozen=True)
class MotifContent:
    """Occurrences of a motif per 100 bases of a gene, overlapping ones too, such as those of U or CpG.

    Args:
        motif: In IUPAC letters, or a restriction enzyme.

    Example:
        >>> MotifContent("CG")(["ACGCGTACGT"]).tolist(), MotifContent("U")(["AUTA"]).tolist()
        ([30.0], [50.0])
    """

    adds_up: ClassVar[bool] = True

    motif: str

    def __post_init__(self) -> None:
        from seqopt.spaces.specifications import site_of

        object.__setattr__(self, "motif", site_of(self.motif))

    def __call__(self, strings: Sequence[str]) -> FloatArray:
        """Occurrences of ``strings`` (``n``)."""
        from seqopt.spaces.codon_scores import occurrences

        genes = [string.strip().upper().replace("U", "T") for string in strings]
        return np.array([100 * occurrences(gene, self.motif) / max(len(gene), 1) for gene in genes], dtype=np.float64)

    def codon_score(self, space: CodonSpace) -> CodonScore | None:
        """See `seqopt.objectives.CodonAdditive`."""
        from seqopt.spaces import CodonScore

        return CodonScore(motifs={self.motif: 100 / (3 * space.length)})


@runtime_checkable
class HasLogScore(Protocol):
    """A positive function of genes whose logarithm is a sum over codons."""

    def __call__(self, strings: list[str], /) -> FloatArray: ...

    def log_score(self, space: CodonSpace) -> CodonScore | None:
        """The sum that is the logarithm of the value; `None` where there is none for these genes."""
        ...


@dataclass(frozen=True)
class LogOf:
    """Natural logarithm of an index that is a geometric mean, so that it is a mean over codons itself.

    Weighted sums with it are solved exactly where those with the index itself are not.

    Args:
        index: `CodonAdaptationIndex`, `TRNAAdaptationIndex` or `CodonShares`.

    Example:
        >>> from seqopt.objectives.genes import CodonAdaptationIndex
        >>> LogOf(CodonAdaptationIndex("e_coli"))(["ATGCTGAAATAA", "ATGCTAAAATAA"]).round(3).tolist()
        [0.0, -1.263]
    """

    adds_up: ClassVar[bool] = True

    index: HasLogScore

    def __call__(self, strings: Sequence[str]) -> FloatArray:
        """Logarithms of ``strings`` (``n``)."""
        return np.log(self.index(list(strings)))

    def codon_score(self, space: CodonSpace) -> CodonScore | None:
        """The mean: see `seqopt.objectives.CodonAdditive`."""
        return self.index.log_score(space)


def _read(strings: Sequence[str]) -> list[list[str]]:
    """The codons of each gene in DNA letters."""
    if isinstance(strings, str):
        raise InputError(f"expected a list of genes, got the single string {strings!r}: write [{strings!r}]")
    return [_codons_of(string, f"string {item}") for item, string in enumerate(strings)]


def _codons_of(string: str, what: str) -> list[str]:
    """The codons of one gene in DNA letters; ``what`` is what messages call it."""
    gene = string.strip().upper().replace("U", "T")
    if not gene or len(gene) % 3:
        raise InputError(f"{what} has {len(gene)} bases; a gene has three for each codon, and at least one")
    position = next((index for index, base in enumerate(gene, start=1) if base not in "ACGT"), None)
    if position is not None:
        raise InputError(
            f"{what} has {gene[position - 1]!r} at position {position} (counting from 1): a gene is written "
            "with A, C, G and T or U"
        )
    return [gene[begin : begin + 3] for begin in range(0, len(gene), 3)]


def _genes_of(path: str | os.PathLike[str]) -> list[tuple[str, str]]:
    """Names and genes of a FASTA file; one that is no gene is refused with its line."""
    table = read_table(Path(path))
    if table.format != "fasta":
        raise InputError(f"{path}: genes are read from FASTA files, which end in .fasta, .fa or .fna")
    genes = list(zip(table.columns["name"], table.columns["string"], strict=True))
    for line, (name, gene) in zip(table.lines, genes, strict=True):
        _codons_of(gene, f"{path}, line {line} (>{name}): the gene")
    return genes


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _geometric_means(strings: Sequence[str], weights: Mapping[str, float]) -> FloatArray:
    values = []
    for item, codons in enumerate(_read(strings)):
        logs = [math.log(weights[codon]) for codon in codons if codon in weights]
        if not logs:
            raise InputError(f"string {item} has no codon that counts")
        values.append(math.exp(_mean(logs)))
    return np.array(values, dtype=np.float64)


def _without_stop(codons: Sequence[str], code: Mapping[str, str]) -> list[str]:
    return list(codons[:-1] if codons and code[codons[-1]] == STOP else codons)
