r"""Kernels that compare strings of one length position by position, by how alike the symbols are.

*From scores to distances.* A substitution matrix S holds how likely one symbol replaces another, as log odds. From it

.. math:: \delta_{ij} = S_{ii} + S_{jj} - 2 S_{ij},

divided by its mean over pairs of different symbols, so that an average substitution has the distance 1. Where
:math:`\delta` is a squared Euclidean distance, that is where S has no negative eigenvalue on vectors whose entries sum
to zero, :math:`\exp(-\delta / \ell)` is positive semi-definite for every :math:`\ell > 0`, and so are sums and products
of it over positions (Schoenberg 1938). BLOSUM62 fulfils this as it stands, although one of its eigenvalues is -22.9:
its vector is all but constant. Of another matrix, symbols are embedded by classical scaling, and directions of negative
eigenvalues are left out: the nearest positive semi-definite matrix of centred scores (Higham 1988).

*At their natural scale.* BLOSUM62 is in half bits: :math:`e^{\lambda S_{ij}} = q_{ij} / (p_i p_j)` with
:math:`\lambda = 0.3176` (Karlin and Altschul 1990), how much more often i and j stand at the same place of related
proteins than chance would have it. :math:`\exp(-\delta_{ij} / \ell)` at :math:`\ell = 0.436` is this odds ratio, scaled
to 1 on the diagonal.

References:
    Henikoff, S. and Henikoff, J. G. (1992). Amino acid substitution matrices from protein blocks. PNAS 89, 10915-10919.
    Higham, N. J. (1988). Computing a nearest symmetric positive semidefinite matrix. Linear Algebra Appl. 103, 103-118.
    Karlin, S. and Altschul, S. F. (1990). Methods for assessing the statistical significance of molecular sequence
        features by using general scoring schemes. PNAS 87, 2264-2268.
    Saigo, H., Vert, J.-P., Ueda, N. and Akutsu, T. (2004). Protein homology detection using string alignment kernels.
        Bioinformatics 20, 1682-1689 (exponentials of substitution scores as kernels).
    Schoenberg, I. J. (1938). Metric spaces and positive definite functions. Trans. Am. Math. Soc. 44, 522-536.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import gpytorch
import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from seqopt.encoding import Alphabet, Encoder, JointEncoder, StringEncoder, VaryingPositions
from seqopt.encoding.fields import FieldEncoder
from seqopt.errors import InputError
from seqopt.kernels.hamming import (
    LENGTHSCALE_BOUNDS,
    FloatArray,
    PositionalKernel,
    Tokens,
    differing,
    paired_tokens,
)
from seqopt.utils.resources import data_path

Form: TypeAlias = Literal["product", "sum"]

BLOSUM62_LENGTHSCALE = 0.436
"""Lengthscale at which similarities are the odds ratios of BLOSUM62."""

OTHER_LETTERS = "BJOUXZ-*"
"""What may stand in a protein besides the twenty amino acids: like nothing but itself."""

BLOCK_ELEMENTS = 1 << 22
"""Largest number of entries of each array of a block (32 MiB)."""


class SubstitutionKernel(PositionalKernel):
    r"""Similarity of strings of one length by a substitution matrix, as a product or a sum over positions.

    .. math::

        k_\text{product}(a, b) = \exp\left(-\frac{1}{\ell} \sum_{p=1}^{L} \delta(a_p, b_p)\right), \qquad
        k_\text{sum}(a, b) = \frac{1}{L} \sum_{p=1}^{L} \exp\left(-\frac{\delta(a_p, b_p)}{\ell}\right)

    with the distance :math:`\delta` of two symbols that the module describes: 0 for equal ones, 1 on average for
    different ones. The product is a squared-exponential kernel on the embedding of the symbols, and a
    `seqopt.kernels.HammingKernel` whose substitutions count by how much they change: a function under it has
    interactions of all orders. A function under the sum is additive, like one under `seqopt.kernels.OneHotKernel` (its
    limit for small lengthscales), with like effects for like symbols. The prior variance is 1.

    Inputs are tokens, as for `seqopt.kernels.OneHotKernel`, but it matters which symbol a number stands for: 1 for the
    first of ``symbols``, as `encoder` has it, or whatever the alphabet says that `read_by` is given. A surrogate gives
    it that of its encoder. Any other symbol is like nothing but itself, at a distance of about 1 from all else (X, a
    gap, a stop). Positions that are the same in all
    strings are not compared. Distances are matrix products of the rows of the table with one-hot codes, in blocks.

    Args:
        matrix: ``"blosum62"``, or scores, ``S x S``, symmetric, higher for more alike: any similarity of symbols.
        symbols: The S symbols of ``matrix``, one character each. Default: the amino acids of ``"blosum62"``.
        form: ``"product"`` or ``"sum"``.
        lengthscale: :math:`\ell`, in average substitutions; a float, or a tensor that expands to
            ``batch_shape x 1 x 1``. Default: of the product 3, until `adapt` sees strings; of the sum 0.436.
        lengthscale_prior: A gpytorch prior on the lengthscale. Default: log-normal, about three median distances of the
            strings that a product is fitted to, about 0.436 for a sum; 95 % of its mass lie within a factor of 7.
        lengthscale_bounds: Lowest and highest lengthscale, above 0.
        batch_shape: Batch shape of the lengthscale.
        active_dims: Columns of the input that hold the tokens (default: all).

    Raises:
        InputError: For an unknown matrix, one that is not square, symmetric and finite, or that takes all symbols for
            the same; for symbols that are repeated or do not fit it; and as `seqopt.kernels.HammingKernel`.

    Example:
        >>> kernel = SubstitutionKernel(lengthscale=1.0)
        >>> strings = kernel.encoder().encode(["IV", "LV", "DV"])
        >>> kernel.cross(strings).round(3)  # leucine is like isoleucine, aspartate is not
        array([[1.   , 0.758, 0.331],
               [0.758, 1.   , 0.288],
               [0.331, 0.288, 1.   ]])
    """

    _name = "substitution"

    def __init__(
        self,
        matrix: str | npt.ArrayLike = "blosum62",
        symbols: str | None = None,
        *,
        form: Form = "product",
        lengthscale: float | Tensor | None = None,
        lengthscale_prior: gpytorch.priors.Prior | None = None,
        lengthscale_bounds: tuple[float, float] = LENGTHSCALE_BOUNDS,
        batch_shape: torch.Size | None = None,
        active_dims: tuple[int, ...] | None = None,
    ) -> None:
        if form not in ("product", "sum"):
            raise InputError(f"form is {form!r}; expected 'product' or 'sum'")
        scores, known = substitution_matrix(matrix, symbols)
        if form == "sum":
            self._first_lengthscale = BLOSUM62_LENGTHSCALE
        super().__init__(
            lengthscale,
            lengthscale_prior=lengthscale_prior,
            lengthscale_bounds=lengthscale_bounds,
            batch_shape=batch_shape,
            active_dims=active_dims,
        )
        self.matrix = matrix.strip().lower() if isinstance(matrix, str) else scores.tolist()
        self.symbols = known
        self.form = form
        self.table = SymbolTable(known, symbol_distances(scores))

    @property
    def distances(self) -> FloatArray:
        """Distances of ``symbols``, ``S x S``."""
        return self.table.distances

    def read_by(self, alphabet: Alphabet) -> None:
        """Take numbers for the symbols of another alphabet than that of `encoder`; see `SymbolTable.read_by`."""
        self.table = self.table.read_by(alphabet)
        self._kept = None

    def _described(self) -> Mapping[str, object]:
        named = {"matrix": repr(self.matrix)} if isinstance(self.matrix, str) else {"symbols": repr(self.symbols)}
        return {**named, "form": repr(self.form), **super()._described()}

    def encoder(self) -> Encoder:
        """The encoder whose numbers the kernel understands: ``symbols``, then other letters that proteins may have."""
        others = "".join(letter for letter in OTHER_LETTERS if letter not in self.symbols)
        return Encoder("characters", Alphabet(self.symbols + (others if isinstance(self.matrix, str) else "")))

    def adapt(self, x: Tensor) -> None:
        """Centre the default prior of a product on three median distances of ``n x W`` tokens, and begin there."""
        if self.form == "product":
            super().adapt(x)

    def _covariances(self, x1: Tensor, x2: Tensor, diag: bool, scale: Tensor) -> Tensor:
        if self.form == "product":
            return super()._covariances(x1, x2, diag, scale)
        batch, a, b = paired_tokens(x1, x2, self._name)
        table = torch.from_numpy(self.table.of(max(int(a.max(initial=0)), int(b.max(initial=0)))))
        similar = (-table / scale[..., :1, :1]).exp()  # one table for each lengthscale of the batch
        length = max(a.shape[-1], 1)
        left, right = (torch.from_numpy(rows.astype(np.int64)) for rows in (a, b))
        whole = torch.Size(np.broadcast_shapes(similar.shape[:-2], batch))
        similar = similar.expand(*whole, *table.shape).reshape(-1, *table.shape)
        left, right = (rows.expand(*whole, *rows.shape[-2:]).reshape(-1, *rows.shape[-2:]) for rows in (left, right))
        triples = zip(similar, left, right, strict=True)
        if diag:
            found = torch.stack([one[mine, theirs].sum(-1) for one, mine, theirs in triples])
            return found.reshape(*whole, x1.shape[-2]) / length
        found = torch.stack([one[mine].flatten(-2) @ _codes(theirs, len(table)).mT for one, mine, theirs in triples])
        return found.reshape(*whole, x1.shape[-2], x2.shape[-2]) / length

    def _blocks(self, rows: Tokens, columns: Tokens) -> Iterator[tuple[tuple[slice, slice], FloatArray]]:
        rows, columns = differing(rows, columns)
        yield from _sums(rows, columns, self.table.of(max(int(rows.max(initial=0)), int(columns.max(initial=0)))))

    def _paired(self, rows: Tokens, columns: Tokens) -> FloatArray:
        table = self.table.of(max(int(rows.max(initial=0)), int(columns.max(initial=0))))
        found: FloatArray = table[rows, columns].sum(axis=-1)
        return found

    def _fill(self, values: FloatArray, rows: Tokens, columns: Tokens, scales: npt.NDArray[np.float64]) -> None:
        length = max(rows.shape[-1], 1)
        rows, columns = differing(rows, columns)
        same = length - rows.shape[-1]
        table = self.table.of(max(int(rows.max(initial=0)), int(columns.max(initial=0))))
        # Sums are worked out in the precision that is asked for.
        if self.form == "product":
            for block, sums in _sums(rows, columns, table.astype(values.dtype)):
                for matrix, scale in zip(values, scales, strict=True):
                    matrix[block] = np.exp(sums / values.dtype.type(-scale))
            return
        for matrix, scale in zip(values, scales, strict=True):
            for block, sums in _sums(rows, columns, np.exp(-table / scale).astype(values.dtype)):
                matrix[block] = (sums + same) / length


class SymbolTable:
    """Distances between numbered symbols, those that no matrix lists included.

    Args:
        symbols: The S symbols that are listed, one character each, numbered from 1.
        distances: Their squared Euclidean distances, ``S x S``, 1 on average: see `symbol_distances`.
    """

    def __init__(self, symbols: str, distances: FloatArray) -> None:
        self.symbols = symbols
        self.distances = distances
        self._alphabet: Alphabet | None = None

    def read_by(self, alphabet: Alphabet) -> SymbolTable:
        """The same distances for the numbers of another alphabet, which may grow.

        Where it numbers symbols together with their positions (`seqopt.encoding.VaryingPositions`), symbols are told
        apart without these.
        """
        found = SymbolTable(self.symbols, self.distances)
        found._alphabet = alphabet
        return found

    def of(self, highest: int) -> FloatArray:
        """Distances between all numbers up to ``highest``; 0 is padding.

        Squared distances of points: a symbol that the matrix does not list is half a unit from the middle of those
        that it lists, at right angles to them, and one unit from others that it does not list. So kernels stay positive
        semi-definite whatever symbols there are.
        """
        if self._alphabet is None:
            return self._numbered(highest)
        known = {symbol: number for number, symbol in enumerate(self.symbols, start=1)}
        letters = [letter.partition(" ")[0] or letter for letter in list(self._alphabet)[:highest]]
        numbers = [0, *(known.setdefault(letter, len(known) + 1) for letter in letters)]
        numbers += range(len(known) + 1, len(known) + 1 + highest - len(letters))
        return self._numbered(max(numbers))[np.ix_(numbers, numbers)]

    def _numbered(self, highest: int) -> FloatArray:
        known = slice(1, 1 + len(self.symbols))
        size = 1 + max(highest, len(self.symbols))
        table = 1.0 - np.eye(size)
        from_middle = self.distances.mean(axis=1) - 0.5 * self.distances.mean()
        table[known] = 0.5 + from_middle[:, None]
        table[:, known] = 0.5 + from_middle
        table[known, known] = self.distances
        return table

    def __deepcopy__(self, memo: dict[int, Any]) -> SymbolTable:
        # It does not change, and copies of a kernel read the alphabet as it grows.
        return self


@runtime_checkable
class ReadsSymbols(Protocol):
    """A kernel for which it matters which symbols stand behind the numbers of tokens."""

    def read_by(self, alphabet: Alphabet) -> None:
        """Take numbers for the symbols of this alphabet."""
        ...


def bind_symbols(kernel: gpytorch.kernels.Kernel, encoder: StringEncoder) -> None:
    """Tell all parts of a kernel that read symbols which ones the tokens of an encoder stand for.

    Where the encoder makes no tokens, nothing is changed.

    Raises:
        InputError: If a part needs whole strings, and the encoder leaves out positions.

    Example:
        >>> kernel = SubstitutionKernel(lengthscale=1.0)
        >>> encoder = Encoder()
        >>> bind_symbols(kernel, encoder)
        >>> kernel.cross(encoder.encode(["IV", "LV"])).round(3)[0, 1]
        np.float64(0.758)
    """
    tokens: Any = list(encoder.fields.values())[-1] if isinstance(encoder, FieldEncoder) else encoder
    tokens = tokens.tokens if isinstance(tokens, JointEncoder) else tokens
    if not isinstance(tokens, Encoder):
        return
    for part in kernel.modules():
        if isinstance(tokens, VaryingPositions) and getattr(part, "whole_strings", False):
            raise InputError(
                f"{type(part).__name__} compares whole strings, and this encoder leaves out positions at which all are "
                "the same: give an encoder that leaves out none, such as that of the space"
            )
        if isinstance(part, ReadsSymbols):
            part.read_by(tokens.alphabet)


def _codes(tokens: Tensor, size: int) -> Tensor:
    """One-hot codes of n strings of L symbols, ``n x (L size)``."""
    return torch.nn.functional.one_hot(tokens, size).double().flatten(-2)


def _sums(rows: Tokens, columns: Tokens, table: FloatArray) -> Iterator[tuple[tuple[slice, slice], FloatArray]]:
    """Sums over positions of the entries of a table for n strings and m others, in blocks, in the table's precision."""
    length, size = rows.shape[-1], len(table)
    if not length:
        yield (slice(0, len(rows)), slice(0, len(columns))), np.zeros((len(rows), len(columns)), table.dtype)
        return
    step = max(1, BLOCK_ELEMENTS // max(1, length * size))
    tall = max(1, min(step, 1024))
    wide = max(1, min(step, BLOCK_ELEMENTS // tall))
    for column in range(0, len(columns), wide):
        theirs = columns[column : column + wide]
        codes = np.zeros((len(theirs), length, size), table.dtype)
        np.put_along_axis(codes, theirs.astype(np.int64)[..., None], 1.0, axis=-1)
        flat = codes.reshape(len(theirs), length * size).T
        for row in range(0, len(rows), tall):
            mine = table[rows[row : row + tall]].reshape(-1, length * size)
            yield (slice(row, row + len(mine)), slice(column, column + len(theirs))), mine @ flat


def symbol_distances(scores: npt.ArrayLike) -> FloatArray:
    """Squared Euclidean distances of symbols, ``S x S``, 1 on average: see the module.

    Args:
        scores: ``S x S``, symmetric, higher for symbols that are more alike.

    Raises:
        InputError: If symbols are no further from each other than from themselves.

    Example:
        >>> symbol_distances([[4.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 4.0]])
        array([[0. , 0.6, 1.2],
               [0.6, 0. , 1.2],
               [1.2, 1.2, 0. ]])
    """
    given = np.asarray(scores, dtype=np.float64)
    count = len(given)
    centring = np.eye(count) - 1.0 / max(count, 1)
    values, vectors = np.linalg.eigh(centring @ given @ centring)
    embedded = vectors * np.sqrt(values.clip(min=0.0))
    inner = embedded @ embedded.T
    lengths = np.diagonal(inner)
    found = (lengths[:, None] + lengths[None, :] - 2.0 * inner).clip(min=0.0)
    np.fill_diagonal(found, 0.0)
    # Rounding errors of whole scores would make equal distances unequal.
    found = np.round((found + found.T) / 2.0, 9)
    apart = found[~np.eye(count, dtype=np.bool_)]
    if not len(apart) or not apart.mean() > 1e-9:
        raise InputError("the matrix takes all symbols for the same: expected higher scores on the diagonal")
    return np.asarray(found / apart.mean())


def substitution_matrix(matrix: str | npt.ArrayLike, symbols: str | None = None) -> tuple[FloatArray, str]:
    """Scores and symbols of a substitution matrix: of ``"blosum62"``, or the given ones, checked.

    Raises:
        InputError: As `SubstitutionKernel` says.

    Example:
        >>> scores, symbols = substitution_matrix("blosum62")
        >>> symbols, int(scores[symbols.index("W"), symbols.index("W")])
        ('ARNDCQEGHILKMFPSTWYV', 11)
    """
    if isinstance(matrix, str):
        if matrix.strip().lower() != "blosum62":
            raise InputError(f"unknown substitution matrix {matrix!r}: choose 'blosum62', or give scores and symbols")
        known, table = _blosum62()
        if symbols is not None and symbols != known:
            raise InputError(f"the symbols of blosum62 are {known}: leave symbols out")
        return np.array(table, dtype=np.float64), known
    scores = np.asarray(matrix, dtype=np.float64)
    if symbols is None:
        raise InputError("give the symbols of the matrix, in its order: symbols='ACGT'")
    if len(set(symbols)) != len(symbols) or len(symbols) < 2:
        raise InputError(f"symbols are {symbols!r}; expected two or more different characters")
    if scores.shape != (len(symbols), len(symbols)):
        raise InputError(
            f"the matrix has the shape {scores.shape}; expected {len(symbols)} x {len(symbols)}, as symbols"
        )
    if not np.isfinite(scores).all():
        row, column = np.argwhere(~np.isfinite(scores))[0]
        raise InputError(
            f"the score of {symbols[row]} and {symbols[column]} is {scores[row, column]}; expected a number"
        )
    if not np.array_equal(scores, scores.T):
        row, column = np.argwhere(scores != scores.T)[0]
        raise InputError(
            f"the matrix is not symmetric: {symbols[row]}, {symbols[column]} has {scores[row, column]:g}, and "
            f"{symbols[column]}, {symbols[row]} has {scores[column, row]:g}"
        )
    return scores, symbols


@lru_cache(maxsize=1)
def _blosum62() -> tuple[str, tuple[tuple[int, ...], ...]]:
    found: dict[str, Any] = json.loads(data_path("blosum62.json").read_text(encoding="utf-8"))
    return found["symbols"], tuple(map(tuple, found["scores"]))
