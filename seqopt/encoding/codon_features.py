"""Genes as frequencies of codons and base pairs.

References:
    Gonzalez, J., Longworth, J., James, D. C., Lawrence, N. D. (2014). Bayesian optimization for synthetic gene design.
        NeurIPS workshop on Bayesian optimization; arXiv 1505.01627.
    Moss, H. B. (2021). General-purpose Information-Theoretical Bayesian Optimisation. PhD thesis, Lancaster
        University, section 4.6.2 (the baseline "Bio-Features").
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import numpy.typing as npt

from seqopt.encoding.features import refused
from seqopt.errors import InputError
from seqopt.utils.config import Configurable

CODONS = tuple("".join(bases) for bases in product("ACGT", repeat=3))
"""The codons in the order of their columns."""

BASE_PAIR_FEATURES = ("GC content", "AT content", "GC ratio", "AT ratio")
"""The columns after those of the codons."""

BLOCK_STRINGS = 1024
"""Genes read at a time."""

_GC = np.array([sum(base in "GC" for base in codon) for codon in CODONS])

_INVALID = 255


def _numbers_of_bases() -> npt.NDArray[np.uint8]:
    table = np.full(256, _INVALID, dtype=np.uint8)
    for number, letters in enumerate(("Aa", "Cc", "Gg", "TtUu")):
        table[[ord(letter) for letter in letters]] = number
    return table


_BASES = _numbers_of_bases()


class CodonFeatures(Configurable):
    r"""Frequencies of the 64 codons and four base-pair features of a gene; a `seqopt.encoding.Featurizer`.

    With c_u the number of codons u among the n codons of a gene (from the first base on, stop codons included), and g
    and a = 3 n - g its numbers of the bases G or C and of A or T,

    =======================  ==============================================  =================
    columns                  feature                                         in random bases
    =======================  ==============================================  =================
    64, "AAA" to "TTT"       frequency c_u / n                               1/64
    "GC content"             g / 3n                                          1/2
    "AT content"             a / 3n                                          1/2
    "GC ratio"               (g + 1) / (a + 1)                               1
    "AT ratio"               (a + 1) / (g + 1)                               1
    =======================  ==============================================  =================

    The thesis speaks of codon frequencies and "four specific biologically inspired base-pairs" and does not say which.
    These four are those of the code published with it, but for the ones, without which the ratios of a gene that lacks
    G and C, or A and T, are infinite.

    *Scale.* So that one lengthscale serves all columns, each is given as its difference from what random bases have, in
    their standard deviations: sqrt(63 / n) / 64 for a codon, 1 / sqrt(12 n) for a content, and 4 / sqrt(12 n) for a
    ratio (to first order). Codons are then divided by 8, the root of their number, so that random genes are at a
    distance of sqrt(2) by their codons, whatever their length; synonymous genes of a protein at about 1. The base-pair
    features, which are all functions of one number, are divided by 4, so that random genes are at a distance of
    sqrt(1/2) by them. (The published code has counts of codons and an AT content in per cent, unscaled.) A
    lengthscale of about 1 is a good start, for instance of a `gpytorch.kernels.RBFKernel` with a log-normal prior
    (0, 1).

    For the genes of one protein, all of one length, every column is a frequency (or ratio) times a constant. Where
    lengths differ, ``codons`` makes it so: n in the standard deviations is then this number for all genes. By default
    it is each gene's own number of codons, and the same frequencies in a longer gene lie further from those of random
    bases.

    Genes are in DNA or RNA letters of either case, as plain bases whatever the space's representation: T and U are the
    same base.

    Args:
        codons: A typical number of codons. Default: each gene's own.

    Attributes:
        name: ``"codon features"``, with ``codons`` if it is given.
        size: 68.
        columns: What each column is.

    Raises:
        InputError: If ``codons`` is below 1. When called: for a string that is empty or not whole codons, or
            another letter; the message names the string, the position and the letter.

    Example:
        >>> features = CodonFeatures()
        >>> rows = features(["ATGAAATGG", "AUGAAAUGG"])
        >>> rows.shape, bool((rows[0] == rows[1]).all())
        ((2, 68), True)
        >>> [features.columns[column] for column in np.flatnonzero(rows[0, :64] > 0)]
        ['AAA', 'ATG', 'TGG']
    """

    size = len(CODONS) + len(BASE_PAIR_FEATURES)
    columns = (*CODONS, *BASE_PAIR_FEATURES)

    def __init__(self, codons: int | None = None) -> None:
        if codons is not None and (isinstance(codons, bool) or not isinstance(codons, int | np.integer) or codons < 1):
            raise InputError(f"codons is {codons!r}; it must be an integer of at least 1")
        self.codons = None if codons is None else int(codons)
        self.name = "codon features" if codons is None else f"codon features ({codons} codons)"

    def __call__(self, strings: Sequence[str]) -> npt.NDArray[np.float64]:
        """One row of features for each of ``strings``, ``n x 68``.

        Raises:
            InputError: As the class says.
        """
        if isinstance(strings, str):
            raise InputError(f"expected a list of genes, got the single string {strings!r}: write [{strings!r}]")
        rows = np.empty((len(strings), self.size))
        for start in range(0, len(strings), BLOCK_STRINGS):
            counts = _codon_counts(strings[start : start + BLOCK_STRINGS], start)
            rows[start : start + BLOCK_STRINGS] = self._scaled(counts)
        return rows

    def unsupported(self, strings: Sequence[str]) -> dict[int, str]:
        """See `seqopt.encoding.SelectiveFeaturizer`."""
        return refused(self, strings)

    def _scaled(self, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        own = counts.sum(axis=1, keepdims=True)
        of_gc = (counts @ _GC)[:, None]
        of_at = 3 * own - of_gc
        frequencies = counts / own - 1 / len(CODONS)
        contents = np.hstack([of_gc, of_at]) / (3 * own) - 0.5
        ratios = np.hstack([(of_gc + 1) / (of_at + 1), (of_at + 1) / (of_gc + 1)]) - 1.0
        typical = own if self.codons is None else self.codons
        per_codon = 64 * np.sqrt(typical / 63) / 8
        per_content = np.sqrt(12 * typical) / 4
        return np.hstack([frequencies * per_codon, contents * per_content, ratios * (per_content / 4)])


def _codon_counts(strings: Sequence[str], first: int) -> npt.NDArray[np.int64]:
    """Counts of the codons, n x 64, in strings of which the first one has this number."""
    lengths = np.fromiter(map(len, strings), dtype=np.int64, count=len(strings))
    wrong = np.flatnonzero((lengths == 0) | (lengths % 3 != 0))
    if len(wrong):
        item = int(wrong[0])
        raise InputError(
            f"string {first + item} ({_shown(strings[item])}) has {lengths[item]} letters: expected an integer of "
            f"codons, at least one"
        )
    # Letters outside ASCII become question marks, one each, so that positions stay the same.
    bases = _BASES[np.frombuffer("".join(strings).encode("ascii", "replace"), dtype=np.uint8)]
    if bases.max(initial=0) == _INVALID:
        index = int(np.flatnonzero(bases == _INVALID)[0])
        item = int(np.searchsorted(np.cumsum(lengths), index, side="right"))
        position = index - int(lengths[:item].sum())
        raise InputError(
            f"string {first + item} ({_shown(strings[item])}) has {strings[item][position]!r} at position "
            f"{position + 1} (counting from 1): a gene is written with A, C, G and T or U"
        )
    codons = bases.reshape(-1, 3).astype(np.int64) @ np.array([16, 4, 1])
    rows = np.repeat(np.arange(len(strings)), lengths // 3)
    counts = np.bincount(rows * len(CODONS) + codons, minlength=len(strings) * len(CODONS))
    return counts.reshape(len(strings), len(CODONS))


def _shown(string: str) -> str:
    return repr(string) if len(string) <= 40 else repr(string[:40] + "...")
