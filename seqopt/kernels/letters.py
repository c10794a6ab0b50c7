"""Kernels that compare symbols letter by letter: of genes whose symbols are codons, their bases.

A codon says which synonym stands at a residue; its bases say what it has in common with others, of the same residue or
not, and what may pair with what when the gene is folded. Where a model is to know of both, as `mixture` is for genes,
some of its kernels read the tokens of codons as bases: those of this module.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from seqopt.encoding import Alphabet, EncodedStrings
from seqopt.encoding.derived import once_per_strings
from seqopt.errors import InputError
from seqopt.kernels.hamming import HammingKernel
from seqopt.kernels.ngrams import NgramKernel
from seqopt.kernels.one_hot import OneHotKernel
from seqopt.kernels.subsequence import SubsequenceKernel, unexpanded

FloatArray = npt.NDArray[np.floating]


class SymbolLetters:
    """The letters of numbered symbols, themselves numbered.

    Where the alphabet numbers symbols together with their positions (`seqopt.encoding.VaryingPositions`), so do their
    letters: one is like the same letter at the same place of the same position only.

    Args:
        alphabet: Whose symbols are split into characters; it may grow.
    """

    def __init__(self, alphabet: Alphabet) -> None:
        self.alphabet = alphabet
        self._size = -1
        self._numbers = np.zeros((1, 1), dtype=np.uint16)

    def table(self, highest: int = 0) -> npt.NDArray[np.uint16]:
        """Numbers of the letters of each symbol, a row for each number up to ``highest`` at least; 0 is none.

        A number that stands for no symbol has letters that are like no other's.

        Example:
            >>> from seqopt.encoding import Alphabet
            >>> SymbolLetters(Alphabet(["GCT", "GC"])).table(3).tolist()
            [[0, 0, 0], [1, 2, 3], [1, 2, 0], [4, 4, 4]]
        """
        if len(self.alphabet) != self._size:
            self._number()
        beyond = highest + 1 - len(self._numbers)
        if beyond <= 0:
            return self._numbers
        new = int(self._numbers.max()) + np.arange(1, beyond + 1)
        return np.vstack([self._numbers, np.repeat(_checked(new)[:, None], self._numbers.shape[1], axis=1)])

    def _number(self) -> None:
        known: dict[tuple[str, str, int], int] = {}
        spelt = []
        for symbol in self.alphabet:
            letters, _, position = symbol.rpartition(" ")
            if letters and position.isascii() and position.isdigit():
                keys = [(one, position, place) for place, one in enumerate(letters)]
            else:
                keys = [(one, "", 0) for one in symbol]
            spelt.append([known.setdefault(key, len(known) + 1) for key in keys])
        table = np.zeros((1 + len(spelt), max(map(len, spelt), default=1)), dtype=np.int64)
        for row, numbers in zip(table[1:], spelt, strict=True):
            row[: len(numbers)] = numbers
        self._numbers = _checked(table)
        self._size = len(spelt)

    def __eq__(self, other: object) -> bool:
        # Models of one space share the letters that are remembered of its pool.
        return type(other) is type(self) and other.alphabet is self.alphabet

    def __hash__(self) -> int:
        return hash((type(self), id(self.alphabet)))

    def __deepcopy__(self, memo: dict[int, Any]) -> SymbolLetters:
        # Copies of a kernel read the alphabet as it grows.
        return self


def _checked(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.uint16]:
    highest = np.iinfo(np.uint16).max
    if numbers.max(initial=0) > highest:
        raise InputError(f"the symbols have more than {highest:,} different letters, counted by their positions")
    return numbers.astype(np.uint16)


@once_per_strings
def letters_of(strings: EncodedStrings, symbols: SymbolLetters) -> EncodedStrings:
    """Strings whose symbols are the letters of their symbols.

    Example:
        >>> from seqopt.encoding import Encoder
        >>> from seqopt.encoding.codons import CodonTokenizer
        >>> encoder = Encoder(CodonTokenizer())
        >>> letters_of(encoder.encode(["GCTGCC", "GCC"]), SymbolLetters(encoder.alphabet)).tokens.tolist()
        [[1, 2, 3, 1, 2, 2], [1, 2, 2, 0, 0, 0]]
    """
    table = symbols.table(int(strings.tokens.max(initial=0)))
    tokens = table[strings.tokens].reshape(len(strings), strings.width * table.shape[1])
    if tokens.max(initial=0) <= np.iinfo(np.uint8).max:
        tokens = tokens.astype(np.uint8)
    used = tokens != 0
    lengths = used.sum(axis=1, dtype=np.int32)
    ends = np.arange(tokens.shape[1])[None, :] < lengths[:, None]
    if not np.array_equal(used, ends):
        # Some symbols have fewer letters than others.
        moved = np.zeros_like(tokens)
        moved[ends] = tokens[used]
        tokens = moved
    return EncodedStrings(tokens, lengths)


class OfLetters:
    """What turns a kernel on tokens into one on the letters of their symbols; to stand before it among the bases."""

    letters: SymbolLetters | None = None

    def read_by(self, alphabet: Alphabet) -> None:
        """Take the letters of the symbols of this alphabet; surrogates do this, see `seqopt.kernels.bind_symbols`."""
        self.letters = SymbolLetters(alphabet)

    def spelt(self, strings: EncodedStrings) -> EncodedStrings:
        """The strings as letters.

        Raises:
            InputError: Before `read_by`.
        """
        if self.letters is None:
            raise InputError(
                f"{type(self).__name__} does not know yet which symbols tokens stand for: call "
                "seqopt.kernels.bind_symbols(kernel, encoder) first"
            )
        return letters_of(strings, self.letters)

    def symbol_of_letters(self, string: EncodedStrings) -> npt.NDArray[np.intp]:
        """For each letter of one string, the place of the symbol that it belongs to.

        Raises:
            InputError: Before `read_by`.
        """
        one = string.take([0])
        symbols = EncodedStrings(one.tokens[0, : int(one.lengths[0]), None], np.ones(int(one.lengths[0]), np.int32))
        return np.repeat(np.arange(len(symbols)), self.spelt(symbols).lengths)

    def _rows(self, x: Tensor) -> Tensor:
        """Rows of tokens as rows of letters, ``... x n x W``; a batch of views of one matrix stays one."""
        one = unexpanded(x)
        if one is not None and one.dim() < x.dim():
            rows = self._rows(one)
            return rows.expand(*x.shape[:-2], *rows.shape)
        strings = self.spelt(EncodedStrings.from_tensor(x.reshape(x.shape[:-1].numel(), x.shape[-1])))
        dtype = x.dtype if x.is_floating_point() else torch.float64
        return strings.to_tensor(device=x.device).to(dtype).reshape(*x.shape[:-1], strings.width)

    def forward(
        self, x1: Tensor, x2: Tensor, diag: bool = False, last_dim_is_batch: bool = False, **params: Any
    ) -> Tensor:
        """Covariances of tokens, see `gpytorch.kernels.Kernel.forward`.

        Args:
            x1: ``... x n x W`` tokens.
            x2: ``... x m x W`` tokens.
            diag: Only k(x1_i, x2_i), ``... x n``.
            last_dim_is_batch: Not possible.
            params: Ignored.

        Raises:
            InputError: For inputs that are not tokens, columns as a batch, or before `read_by`.
        """
        if last_dim_is_batch:
            raise InputError(f"{type(self).__name__} compares whole strings, not their columns one by one")
        rows = self._rows(x1)
        found: Tensor = super().forward(rows, rows if x2 is x1 else self._rows(x2), diag)  # type: ignore[misc]
        return found

    def cross(
        self,
        a: EncodedStrings,
        b: EncodedStrings | None = None,
        self_a: FloatArray | None = None,
        self_b: FloatArray | None = None,
        dtype: npt.DTypeLike = np.float64,
    ) -> FloatArray:
        """Covariances between encoded strings; see the kernel on tokens.

        Raises:
            InputError: If an argument does not fit, or before `read_by`.
        """
        mine, theirs = self.spelt(a), None if b is None else self.spelt(b)
        found: FloatArray = super().cross(mine, theirs, self_a, self_b, dtype)  # type: ignore[misc]
        return found

    def self_similarity(self, a: Any) -> FloatArray:
        """What covariances with the strings ``a`` (`EncodedStrings`) need of each alone; see the kernel on tokens.

        Raises:
            InputError: Before `read_by`.
        """
        found: FloatArray = super().self_similarity(self.spelt(a))  # type: ignore[misc]
        return found


class LetterSubsequenceKernel(OfLetters, SubsequenceKernel):
    """The sub-sequence kernel on the letters of symbols: of a gene in codons, on its bases.

    Takes the same arguments as `SubsequenceKernel`, and the tokens of whole symbols; ``partitions`` cut strings of
    letters. It learns from a surrogate which symbols tokens stand for.

    Example:
        >>> from seqopt.encoding import Encoder
        >>> from seqopt.encoding.codons import CodonTokenizer
        >>> from seqopt.kernels import bind_symbols
        >>> encoder, kernel = Encoder(CodonTokenizer()), LetterSubsequenceKernel(order=3)
        >>> bind_symbols(kernel, encoder)
        >>> kernel.cross(encoder.encode(["GCTAAA", "GCCAAG"])).round(3)[0, 1]
        np.float64(0.617)
        >>> SubsequenceKernel(order=3).gram(["GCTAAA", "GCCAAG"]).numpy().round(3)[0, 1]
        np.float64(0.617)
    """

    def at(self, match_decay: Tensor, gap_decay: Tensor) -> SubsequenceKernel:
        """See `SubsequenceKernel.at`."""
        made = super().at(match_decay, gap_decay)
        assert isinstance(made, LetterSubsequenceKernel)
        made.letters = self.letters
        return made

    def sums(
        self,
        a: EncodedStrings,
        match_decays: Sequence[float],
        gap_decay: float,
        dtype: npt.DTypeLike = np.float64,
    ) -> FloatArray:
        """See `SubsequenceKernel.sums`."""
        return super().sums(self.spelt(a), match_decays, gap_decay, dtype)

    @contextmanager
    def interpolating(self, x: Tensor) -> Iterator[bool]:
        """See `SubsequenceKernel.interpolating`."""
        with super().interpolating(self._rows(x)) as interpolated:
            yield interpolated


class LetterNgramKernel(OfLetters, NgramKernel):
    """The kernel of n-grams on the letters of symbols: of a gene in codons, on runs of its bases, in frame or not.

    Takes the same arguments as `NgramKernel`, and the tokens of whole symbols. It learns from a surrogate which symbols
    tokens stand for.

    Example:
        >>> from seqopt.encoding import Encoder
        >>> from seqopt.encoding.codons import CodonTokenizer
        >>> from seqopt.kernels import bind_symbols
        >>> encoder, kernel = Encoder(CodonTokenizer()), LetterNgramKernel(longest=2, lengthscale=2.0)
        >>> bind_symbols(kernel, encoder)
        >>> kernel.cross(encoder.encode(["GCTAAA", "GCCAAA"])).round(3)[0, 1]  # T, CT and TA for C, CC and CA
        np.float64(0.472)
    """

    def adapt(self, x: Tensor) -> None:
        """See `NgramKernel.adapt`."""
        super().adapt(self._rows(x))


class LetterOneHotKernel(OfLetters, OneHotKernel):
    """The share of places at which two strings of one length have the same letter: of a gene in codons, base by base.

    It learns from a surrogate which symbols tokens stand for.

    Example:
        >>> from seqopt.encoding import Encoder
        >>> from seqopt.encoding.codons import CodonTokenizer
        >>> from seqopt.kernels import bind_symbols
        >>> encoder, kernel = Encoder(CodonTokenizer()), LetterOneHotKernel()
        >>> bind_symbols(kernel, encoder)
        >>> kernel.cross(encoder.encode(["GCTAAA", "GCCAAG"])).round(3)[0, 1]  # four of six bases
        np.float64(0.667)
    """


class LetterHammingKernel(OfLetters, HammingKernel):
    """The Hamming kernel on the letters of symbols: of a gene in codons, on substitutions of its bases.

    Takes the same arguments as `HammingKernel`, and the tokens of whole symbols. It learns from a surrogate which
    symbols tokens stand for.

    Example:
        >>> from seqopt.encoding import Encoder
        >>> from seqopt.encoding.codons import CodonTokenizer
        >>> from seqopt.kernels import bind_symbols
        >>> encoder, kernel = Encoder(CodonTokenizer()), LetterHammingKernel(lengthscale=2.0)
        >>> bind_symbols(kernel, encoder)
        >>> kernel.cross(encoder.encode(["GCTAAA", "GCCAAG"])).round(3)[0, 1]  # two bases: exp(-2 / 2)
        np.float64(0.368)
    """

    def adapt(self, x: Tensor) -> None:
        """See `HammingKernel.adapt`."""
        super().adapt(self._rows(x))
