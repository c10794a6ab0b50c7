r"""The kernel of helices: two genes are alike as far as the same stretches of bases could pair in both.

A strand of RNA folds back on itself where one stretch of bases is complementary to another. Its folding energy is in
the stacked pairs of such helices, so that it depends on which bases face each other, and not on any of them alone: what
a kernel on bases has to learn as interactions of many positions is a single feature here.

References:
    Sakakibara, Y., Popendorf, K., Ogawa, N., Asai, K. and Sato, K. (2007). Stem kernels for RNA sequence analyses.
        Journal of Bioinformatics and Computational Biology 5(5) (common helices of any strings, by a dynamic program;
        here those of strings of one length, at the same places).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from scipy import sparse
from torch import Tensor

from seqopt.encoding import Alphabet, EncodedStrings
from seqopt.encoding.derived import once_per_strings
from seqopt.errors import InputError
from seqopt.kernels.hamming import DistanceKernel, paired_tokens
from seqopt.kernels.letters import OfLetters, SymbolLetters
from seqopt.kernels.one_hot import common_length
from seqopt.utils.slices import slices_of

FloatArray = npt.NDArray[np.floating]
Tokens = npt.NDArray[np.unsignedinteger]

LENGTHSCALE_RATIO = 1.0
"""Median of the default prior of the lengthscale, in median distances of the strings that a model is fitted to."""

LONGEST = 2_048
"""Bases of the longest strings: an index of helices has an entry for every two positions."""

BLOCK_ELEMENTS = 1 << 22
"""Distances that are computed at a time, and helices of strings of random bases that are held at a time (24 MiB)."""

REMEMBERED_BLOCKS = 4
"""Largest number of blocks of strings whose helices stay in memory as long as the strings do."""

FEWER = 8
"""The helices of the columns are indexed, and not those of the rows, if there are fewer by more than this factor."""

PLACES = 14.0
"""L random bases have L^2 helices over this."""

MATRIX_ELEMENTS = 1 << 22
"""Bonds of all strings at the places that many of them have, at most (16 MiB)."""

DENSE_SHARE = 0.2
"""Share of the strings that have a helix at a place from which the bonds of all are multiplied at once."""

_OTHER = 5
_BONDS = np.zeros((_OTHER + 1, _OTHER + 1), dtype=np.int64)
for _first, _second, _count in (("A", "T", 2), ("C", "G", 3), ("G", "T", 1)):
    for _pair in (_first + _second, _second + _first):
        _BONDS[1 + "ACGT".index(_pair[0]), 1 + "ACGT".index(_pair[1])] = _count
_BONDS.setflags(write=False)


class SymbolBases(SymbolLetters):
    """The bases of numbered symbols: A 1, C 2, G 3, T or U 4, in either case; any other letter has a higher number.

    Example:
        >>> SymbolBases(Alphabet(["GCT", "gcu", "NC"])).table().tolist()
        [[0, 0, 0], [3, 2, 4], [3, 2, 4], [5, 2, 0]]
    """

    def _number(self) -> None:
        known = {base: 1 + "ACGTU".index(base) - (base == "U") for base in "ACGTU"}
        spelt = [[known.get(one, _OTHER) for one in symbol.upper()] for symbol in self.alphabet]
        table = np.zeros((1 + len(spelt), max(map(len, spelt), default=1)), dtype=np.uint16)
        for row, numbers in zip(table[1:], spelt, strict=True):
            row[: len(numbers)] = numbers
        # Numbers beyond the alphabet get letters above the highest, which must not be those of bases.
        table[0, 0] = _OTHER
        self._numbers = table
        self._size = len(spelt)

    def table(self, highest: int = 0) -> npt.NDArray[np.uint16]:
        """See `SymbolLetters.table`."""
        found = super().table(highest).copy()
        found[0] = 0
        return found


class _HelicesOfBases(DistanceKernel):
    """The kernel of helices on tokens that are bases, numbered as `SymbolBases` numbers them."""

    one_length = True
    """It compares strings of one length only."""

    _name = "helix"
    _ratio = LENGTHSCALE_RATIO
    _first_lengthscale = 10.0

    def _covariances(self, x1: Tensor, x2: Tensor, diag: bool, scale: Tensor) -> Tensor:
        squares = self._distances(x1, x2, diag).to(scale.device).square()
        return (-0.5 * squares / (scale[..., 0] if diag else scale).square()).exp()

    def _new_distances(self, x1: Tensor, x2: Tensor, diag: bool) -> Tensor:
        batch, a, b = paired_tokens(x1, x2, self._name)
        values = np.empty((*batch, x1.shape[-2]) if diag else (*batch, x1.shape[-2], x2.shape[-2]))
        for element in np.ndindex(*batch):
            first, second = helices(a[element]), helices(b[element])
            if diag:
                values[element] = _paired_squared_distances(first, second)
                continue
            values[element] = _squares(by_place(first), second)
        return torch.from_numpy(np.sqrt(values))

    def cross(
        self,
        a: EncodedStrings,
        b: EncodedStrings | None = None,
        self_a: FloatArray | None = None,
        self_b: FloatArray | None = None,
        dtype: npt.DTypeLike = np.float64,
    ) -> FloatArray:
        """Covariances between strings of bases at the current lengthscale, ``batch_shape x len(a) x len(b)``."""
        if np.dtype(dtype) not in (np.dtype(np.float32), np.dtype(np.float64)):
            raise InputError(f"dtype is {np.dtype(dtype)}; covariances are float64 or float32")
        columns = a if b is None else b
        length = common_length(a.lengths, columns.lengths, kernel=self._name)
        factors = -0.5 / self._scales() ** 2
        values = np.empty((len(factors), len(a), len(columns)), dtype=dtype)
        for block, squares in _squared_distances(a, columns, length):
            for matrix, factor in zip(values, factors, strict=True):
                matrix[block] = np.exp(factor * squares)
        return values.reshape(*self.batch_shape, len(a), len(columns))


class HelixKernel(OfLetters, _HelicesOfBases):
    r"""Squared-exponential kernel on the helices that strings of one length could form.

    .. math::

        k(a, b) = \exp\left(-\frac{1}{2 \ell^2} \sum_{i < j} \left(v_{ij}(a) - v_{ij}(b)\right)^2\right)

    where :math:`v_{ij}(s)` is the number of hydrogen bonds of the helix that begins with the pair of bases i and j and
    goes on inwards, i + 1 with j - 1 and so on, as long as bases are complementary (C and G have 3 bonds, A and T or U
    2, G and T or U 1) and at least three are left for the turn; 0 if there are fewer than two pairs. Whether a helix
    forms is not asked. The prior variance is 1; an output scale stands outside.

    Positions are compared as they are, so that it is for variants of one gene, such as all genes of a protein, and not
    for strings of various lengths. It reads each token as the letters of its symbol, such as the bases of a codon, and
    learns from a surrogate which symbols tokens stand for. Other letters than A, C, G, T and U pair with nothing.

    A string of L random bases has a helix at about L^2 / 14 places, and comparing two takes a multiplication for each
    place that they have in common: a seventh of those of random strings, more than half of those of genes of one
    protein. It is computed on the processor, in blocks; the helices of a list of strings, if it is
    not too long (1,800 of 363 bases), are kept as long as the list is (typically some 10 MB, at most some hundred).

    Args:
        lengthscale: :math:`\ell`, in the unit of the distances; a float, or a tensor that expands to
            ``batch_shape x 1 x 1``. Default: 10, until `adapt` sees strings.
        lengthscale_prior: A gpytorch prior on the lengthscale. Default: log-normal about the median distance of the
            strings that a model is fitted to, with 95 % of its mass within a factor of 7.
        lengthscale_bounds: Lowest and highest lengthscale, above 0.
        batch_shape: Batch shape of the lengthscale.
        active_dims: Columns of the input that hold the tokens (default: all).

    Raises:
        InputError: If the lengthscale or its bounds are out of range. When evaluated: for strings that are empty or
            differ in length, or have more than 2,048 bases; before `read_by`.

    Example:
        >>> from seqopt.encoding import Encoder
        >>> from seqopt.encoding.codons import CodonTokenizer
        >>> from seqopt.kernels import bind_symbols
        >>> encoder, kernel = Encoder(CodonTokenizer()), HelixKernel(lengthscale=5.0)
        >>> bind_symbols(kernel, encoder)
        >>> genes = encoder.encode(["GCGAAACGC", "GCAAAACGC", "GCAAAATAG"])
        >>> kernel.cross(genes).round(3)  # of the first GCG with CGC, of the second GC with GC, of the third none
        array([[1.   , 0.407, 0.096],
               [0.407, 1.   , 0.487],
               [0.096, 0.487, 1.   ]])
    """

    whole_strings = True
    """It is not for encoders that leave out positions, such as `seqopt.encoding.VaryingPositions`."""

    def read_by(self, alphabet: Alphabet) -> None:
        """Take the bases of the symbols of this alphabet; surrogates do this, see `seqopt.kernels.bind_symbols`."""
        self.letters = SymbolBases(alphabet)

    def adapt(self, x: Tensor) -> None:
        """Centre the default prior on the median distance of ``n x W`` tokens, and begin there.

        What was chosen by hand (the prior, the lengthscale) stays, and so does all where no two strings differ.
        """
        super().adapt(self._rows(x))


class Helices(NamedTuple):
    """The helices of n strings of L bases, in the manner of a sparse matrix of n rows.

    Attributes:
        heads: Where the helices of each string begin, and those of the last one end, n + 1.
        places: Of each helix the number of the pair that begins it, ascending in each string: i + j times L, plus
            L - 1 - i.
        bonds: Its hydrogen bonds.
        squares: Of each string the sum of the squares of its bonds.
        length: L.
    """

    heads: npt.NDArray[np.int64]
    places: npt.NDArray[np.int32]
    bonds: npt.NDArray[np.int16]
    squares: npt.NDArray[np.float64]
    length: int

    def __len__(self) -> int:
        # As many as strings; a tuple would say how many fields there are.
        return len(self.heads) - 1

    @property
    def pairs(self) -> npt.NDArray[np.int32]:
        """Positions of the two bases that begin each helix, m x 2."""
        totals, rest = np.divmod(self.places, max(self.length, 1))
        first = self.length - 1 - rest
        return np.stack([first, totals - first], axis=1)

    def take(self, rows: slice) -> Helices:
        """Those of some strings, one after the other."""
        start, stop, _ = rows.indices(len(self))
        first, last = self.heads[start], self.heads[stop]
        return Helices(
            self.heads[start : stop + 1] - first,
            self.places[first:last],
            self.bonds[first:last],
            self.squares[start:stop],
            self.length,
        )


class HelicesByPlace(NamedTuple):
    """The same, indexed by place: which strings have a helix there.

    Attributes:
        heads: Where the strings of each place begin.
        rows: Strings.
        bonds: Hydrogen bonds of the helix in each.
        dense: Of each place its row in ``matrix``, or -1.
        matrix: Bonds of all n strings at the places that many have.
        squares: Of each string, n.
    """

    heads: npt.NDArray[np.int32]
    rows: npt.NDArray[np.int32]
    bonds: npt.NDArray[np.int16]
    dense: npt.NDArray[np.int32]
    matrix: npt.NDArray[np.float32]
    squares: npt.NDArray[np.float64]


def helices(bases: Tokens) -> Helices:
    """The helices of n strings of L bases, numbered as `SymbolBases` numbers them, ``n x L``.

    Raises:
        InputError: For more than `LONGEST` bases.

    Example:
        >>> found = helices(np.array([[3, 2, 3, 1, 1, 1, 2, 3, 2]], dtype=np.uint8))  # GCGAAACGC
        >>> found.pairs.tolist(), found.bonds.tolist()  # 3 + 3 of two pairs, 3 + 3 + 3 of three
        ([[1, 7], [0, 8]], [6, 9])
    """
    from seqopt.kernels import compiled_helices as compiled

    length = bases.shape[1]
    if length > LONGEST:
        raise InputError(
            f"strings have {length:,} bases, and a HelixKernel compares up to {LONGEST:,}: choose another kernel"
        )
    tokens = np.ascontiguousarray(np.minimum(bases, _OTHER).astype(np.uint8))
    counts, squares = np.zeros(len(tokens), dtype=np.int64), np.zeros(len(tokens))
    # Room for all pairs of positions of some strings, of which only what is filled takes memory.
    most = max(1, length * (length - 1) // 2)
    step = max(1, BLOCK_ELEMENTS // most)
    parts = []
    for start in range(0, len(tokens), step):
        rows = slice(start, min(start + step, len(tokens)))
        room = (rows.stop - start) * most
        places, bonds = np.empty(room, dtype=np.int32), np.empty(room, dtype=np.int16)
        compiled.found(tokens[rows], _BONDS, places, bonds, counts[rows], squares[rows])
        used = int(counts[rows].sum())
        parts.append((places[:used].copy(), bonds[:used].copy()))
    heads = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
    all_places, all_bonds = np.empty(heads[-1], dtype=np.int32), np.empty(heads[-1], dtype=np.int16)
    filled = 0
    while parts:
        # One part after the other is let go.
        one, other = parts.pop(0)
        all_places[filled : filled + len(one)], all_bonds[filled : filled + len(one)] = one, other
        filled += len(one)
    return Helices(heads, all_places, all_bonds, squares, length)


def by_place(found: Helices) -> HelicesByPlace:
    """The strings that have a helix at each place."""
    shape = len(found), 2 * found.length**2
    matrix = sparse.csr_array((found.bonds, found.places, found.heads), shape=shape).tocsc()
    having = np.diff(matrix.indptr)
    many = np.flatnonzero(having >= max(1.0, DENSE_SHARE * len(found)))
    most = MATRIX_ELEMENTS // max(len(found), 1)
    many = many[np.argsort(-having[many], kind="stable")[:most]]
    dense = np.full(shape[1], -1, dtype=np.int32)
    dense[many] = np.arange(len(many))
    return HelicesByPlace(
        matrix.indptr.astype(np.int32),
        matrix.indices.astype(np.int32),
        matrix.data,
        dense,
        np.ascontiguousarray(matrix[:, many].toarray().T, dtype=np.float32),
        found.squares,
    )


def _squared_distances(
    a: EncodedStrings, b: EncodedStrings, length: int
) -> Iterator[tuple[tuple[slice, slice], FloatArray]]:
    """Squared distances of n strings from m others, in blocks: where a block stands, and what stands there."""
    # A search compares one list of strings with thousands of others: that is the first, and its helices are kept.
    first, second = (a, b) if len(a) <= FEWER * len(b) else (b, a)
    for rows, indexed in _indexed(first, length):
        wide = max(1, BLOCK_ELEMENTS // max(rows.stop - rows.start, 1))
        for columns in slices_of(len(second), min(wide, _together(length))):
            part = second if len(second) == columns.stop - columns.start else second.take(columns)
            squares = _squares(indexed, helices(part.tokens[:, :length]))
            yield ((rows, columns), squares) if first is a else ((columns, rows), squares.T)


def _together(length: int) -> int:
    """Strings whose helices are held at a time."""
    return max(1, int(BLOCK_ELEMENTS * PLACES / max(length, 1) ** 2))


def _indexed(strings: EncodedStrings, length: int) -> Iterable[tuple[slice, HelicesByPlace]]:
    """The helices of some of the strings after the other, indexed by place."""
    parts = slices_of(len(strings), _together(length))
    if len(parts) <= REMEMBERED_BLOCKS:
        return _remembered_index(strings, length)
    return ((rows, _index_of(strings.take(rows), length)) for rows in parts)


@once_per_strings
def _remembered_index(strings: EncodedStrings, length: int) -> list[tuple[slice, HelicesByPlace]]:
    return [(rows, _index_of(strings.take(rows), length)) for rows in slices_of(len(strings), _together(length))]


def _index_of(strings: EncodedStrings, length: int) -> HelicesByPlace:
    return by_place(helices(strings.tokens[:, :length]))


def _squares(a: HelicesByPlace, b: Helices) -> FloatArray:
    """Squared distances of n strings from m others of the same length, ``n x m``; exact, since bonds are integers."""
    from seqopt.kernels import compiled_helices as compiled

    products = np.zeros((len(b), len(a.squares)))
    compiled.multiplied(*a[:-1], *b[:3], products)
    squares: FloatArray = a.squares[:, None] + b.squares[None, :] - 2.0 * products.T
    return squares


def _paired_squared_distances(a: Helices, b: Helices) -> FloatArray:
    from seqopt.kernels import compiled_helices as compiled

    products = np.zeros(len(a))
    compiled.paired(*a[:3], *b[:3], products)
    squares: FloatArray = a.squares + b.squares - 2.0 * products
    return squares
