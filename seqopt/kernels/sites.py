r"""A kernel for libraries of variants: each position has its own weight, and symbols may be alike.

References:
    Neal, R. M. (1996). Bayesian Learning for Neural Networks. Springer (a lengthscale for each input).
    Schoenberg, I. J. (1938). Metric spaces and positive definite functions. Trans. Am. Math. Soc. 44, 522-536.
    Wittmann, B. J., Yue, Y. and Arnold, F. H. (2021). Informed training set design enables efficient machine
        learning-assisted directed protein evolution. Cell Systems 12, 1026-1045 (libraries at a few sites).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import gpytorch
import numpy as np
import numpy.typing as npt
import torch
from botorch.utils.constraints import NonTransformedInterval
from scipy import sparse
from torch import Tensor
from torch.autograd.function import once_differentiable

from seqopt.encoding import Alphabet, EncodedStrings
from seqopt.errors import InputError
from seqopt.kernels.base import shown
from seqopt.kernels.hamming import (
    KEPT_BYTES,
    LENGTHSCALE_BOUNDS,
    LENGTHSCALE_RATIO,
    FloatArray,
    PositionalKernel,
    Tokens,
    differing_positions,
    paired_tokens,
)
from seqopt.kernels.one_hot import agreements
from seqopt.kernels.substitution import SymbolTable, substitution_matrix, symbol_distances

BLOCK_STRINGS = 1 << 13
"""Strings whose exponents are added up at a time."""

BLOCK_EXPONENTS = 1 << 17
"""Exponents that are written out at a time, of all symbols that some strings have with each of other strings."""

MOST_FLAGS = 1 << 24
"""Most pairs of a position and a symbol that have a flag each; of more, those that occur are found by sorting."""

SPARSE_SHARE = 0.25
"""Pairs of strings that differ at a smaller share of the positions are compared at those alone."""

BLOCK_SYMBOLS = 1 << 22
"""Symbols compared at a time where positions at which strings differ are looked for."""


@dataclass(frozen=True)
class SiteDifferences:
    """Where the strings of all pairs differ, and how far.

    Attributes:
        differ: Whether symbols differ at each position, ``n n x L``; of sparse ones only what is not 0 is kept.
        distances: How unlike they are; `None` where that is not known of the symbols, and then 0.
        shape: n, n.
        pairs: Rows and columns of the pairs, where these are not all but those above the diagonal.
    """

    differ: sparse.csr_matrix | Tensor
    distances: sparse.csr_matrix | Tensor | None
    shape: tuple[int, int]
    pairs: tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]] | None = None

    @property
    def nbytes(self) -> int:
        """Memory."""
        return _memory(self.differ) + (0 if self.distances is None else _memory(self.distances, indices=False))

    def exponents(self, by_differ: FloatArray, by_distance: FloatArray) -> FloatArray:
        """Sums over positions of both times a weight of each position, ``n x n``.

        Args:
            by_differ: Weights of positions that differ, L.
            by_distance: Weights of distances, L.
        """
        found = _product(self.differ, by_differ)
        if self.distances is not None:
            found = found + _product(self.distances, by_distance)
        if self.pairs is None:
            return found.reshape(self.shape)
        rows, columns = self.pairs
        whole: FloatArray = np.zeros(self.shape)
        whole[rows, columns] = whole[columns, rows] = found
        return whole

    def by_weight(self, by_exponent: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The derivatives by both weights, L each, of what has given derivatives by the exponents, ``n x n``."""
        if self.pairs is None:
            flat = by_exponent.reshape(-1)
        else:
            rows, columns = self.pairs
            flat = by_exponent[rows, columns] + by_exponent[columns, rows]
        differ = _product(self.differ.T, flat)
        return differ, np.zeros_like(differ) if self.distances is None else _product(self.distances.T, flat)


def _product(matrix: sparse.csr_matrix | Tensor, vector: FloatArray) -> FloatArray:
    # torch has as many threads as a fit allows; numpy's libraries take what they find.
    found: FloatArray = (matrix @ torch.from_numpy(vector)).numpy() if isinstance(matrix, Tensor) else matrix @ vector
    return found


def _memory(values: sparse.csr_matrix | Tensor, *, indices: bool = True) -> int:
    if isinstance(values, Tensor):
        return values.nbytes
    return int(values.data.nbytes + (values.indices.nbytes + values.indptr.nbytes if indices else 0))


class _Exponents(torch.autograd.Function):
    """`SiteDifferences.exponents`."""

    @staticmethod
    def forward(ctx: Any, differ: Tensor, distant: Tensor, parts: SiteDifferences) -> Tensor:
        ctx.parts = parts
        return torch.from_numpy(parts.exponents(differ.detach().numpy(), distant.detach().numpy()))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        (gradient,) = gradients
        differ, distant = ctx.parts.by_weight(gradient.numpy())
        return torch.from_numpy(differ), torch.from_numpy(distant), None


class SitesKernel(PositionalKernel):
    r"""Product over positions of how alike their symbols are, with a lengthscale for each position.

    .. math::

        k(a, b) = \exp\left(-\sum_{p=1}^{L} \frac{d(a_p, b_p)}{\ell_p}\right), \qquad
        d(i, j) = (1 - \beta) [i \ne j] + \beta\, \delta(i, j)

    with the distance :math:`\delta` of two symbols by a substitution matrix (`seqopt.kernels.SubstitutionKernel`).
    It is a product of positive semi-definite kernels. A position with a short lengthscale matters much, one with a long
    one hardly at all; together they say how far positions interact (`seqopt.kernels.HammingKernel`, which is the case
    of equal lengthscales and :math:`\beta = 0`). :math:`\beta` says how far symbols that replace each other in nature
    do here, too, and is learned. The prior variance is 1.

    It is for strings of one length that differ at few positions, where there is something to learn of each: libraries
    of variants at some sites. Inputs are tokens, as for `seqopt.kernels.SubstitutionKernel`.

    Args:
        sites: The number L of symbols of each string.
        matrix: ``"blosum62"``, or `None` for symbols that are not alike at all: :math:`\beta = 0`, not learned.
        similarity: :math:`\beta`, in [0, 1]; its prior is uniform.
        lengthscale: :math:`\ell_p`, for all positions or each; a float or a tensor that expands to
            ``batch_shape x 1 x L``. Default: 3 L, until `adapt` sees strings.
        lengthscale_prior: A gpytorch prior on each lengthscale. Default: log-normal about three median distances of
            the strings that a model is fitted to, with 95 % of its mass within a factor of 7.
        lengthscale_bounds: Lowest and highest lengthscale, above 0.
        batch_shape: Batch shape of lengthscales and similarity.
        active_dims: Columns of the input that hold the tokens (default: all).

    Raises:
        InputError: If ``sites`` < 1, ``similarity`` is no number in [0, 1], or as `seqopt.kernels.HammingKernel`. When
            evaluated: for strings of another length.

    Example:
        >>> from seqopt.encoding import Encoder
        >>> from seqopt.kernels import bind_symbols
        >>> kernel, encoder = SitesKernel(2, lengthscale=torch.tensor([0.5, 5.0]), similarity=0.5), Encoder()
        >>> bind_symbols(kernel, encoder)
        >>> kernel.cross(encoder.encode(["IV", "LV", "ID"])).round(3)  # the first position matters most
        array([[1.   , 0.279, 0.81 ],
               [0.279, 1.   , 0.226],
               [0.81 , 0.226, 1.   ]])
    """

    _name = "sites"

    def __init__(
        self,
        sites: int,
        matrix: str | None = "blosum62",
        *,
        similarity: float = 0.5,
        lengthscale: float | Tensor | None = None,
        lengthscale_prior: gpytorch.priors.Prior | None = None,
        lengthscale_bounds: tuple[float, float] = LENGTHSCALE_BOUNDS,
        batch_shape: torch.Size | None = None,
        active_dims: tuple[int, ...] | None = None,
    ) -> None:
        if isinstance(sites, bool) or not isinstance(sites, int | np.integer) or sites < 1:
            raise InputError(f"sites is {sites!r}; expected the number of symbols of each string, 1 or more")
        self._first_lengthscale = LENGTHSCALE_RATIO * int(sites)
        self._lengthscales = int(sites)
        super().__init__(
            lengthscale,
            lengthscale_prior=lengthscale_prior,
            lengthscale_bounds=lengthscale_bounds,
            batch_shape=batch_shape,
            active_dims=active_dims,
        )
        self.ard_num_dims = None  # rows may be wider than strings are long
        self.sites = int(sites)
        self.matrix = None if matrix is None else matrix.strip().lower()
        self.table: SymbolTable | None = None
        if matrix is not None:
            scores, symbols = substitution_matrix(matrix)
            self.table = SymbolTable(symbols, symbol_distances(scores))
        self.register_parameter(
            "raw_similarity", torch.nn.Parameter(torch.zeros(*self.batch_shape, 1, 1), requires_grad=matrix is not None)
        )
        self.register_constraint("raw_similarity", NonTransformedInterval(0.0, 1.0))
        self.similarity = similarity if matrix is not None else 0.0
        self._parts: tuple[Tensor, Tensor | SiteDifferences] | None = None

    @property
    def similarity(self) -> Tensor:
        """How far symbols are alike, ``batch_shape x 1 x 1``. Assign a float or tensor to change it."""
        raw: Tensor = self.raw_similarity
        return raw.clamp(0.0, 1.0)

    @similarity.setter
    def similarity(self, value: float | Tensor) -> None:
        number = torch.as_tensor(value, dtype=torch.float64).detach()
        if not bool(((number >= 0.0) & (number <= 1.0)).all()):
            raise InputError(f"similarity is {value!r}; it must lie in [0, 1]")
        self.initialize(raw_similarity=number.to(self.raw_similarity).expand(self.raw_similarity.shape))

    def read_by(self, alphabet: Alphabet) -> None:
        """Take numbers for the symbols of an alphabet, see `seqopt.kernels.SubstitutionKernel`."""
        if self.table is not None:
            self.table = self.table.read_by(alphabet)
            self._parts = None

    def _described(self) -> Mapping[str, object]:
        return {
            "*sites": self.sites,
            "matrix": repr(self.matrix),
            "similarity": shown(self.similarity[..., 0, 0]),
            "lengthscale": shown(self.lengthscale[..., 0, :]),
        }

    def _argument(self, name: str) -> Any:
        if name == "similarity":
            found = self.similarity.detach()
            return float(found) if found.numel() == 1 else found
        return super()._argument(name)

    def _check(self, length: int) -> None:
        if length not in (0, self.sites):
            raise InputError(
                f"the sites kernel compares strings of {self.sites} symbols, and these have {length}: leave out those "
                "that differ elsewhere, or choose another surrogate, such as ssk"
            )

    def _covariances(self, x1: Tensor, x2: Tensor, diag: bool, scale: Tensor) -> Tensor:
        if scale.dim() > self.lengthscale.dim():
            raise InputError("the sites kernel compares all positions together: last_dim_is_batch is not for it")
        if not torch.is_grad_enabled() and not diag and scale.dim() == x1.dim() == x2.dim() == 2:
            _, a, b = paired_tokens(x1, x2, self._name)
            self._check(a.shape[-1])
            values = np.empty((1, len(a), len(b)))
            self._fill(values, a, b, self._scales())
            return torch.from_numpy(values[0])
        by_site = self._by_site(x1, x2, diag, sparse_too=scale.dim() == 2)
        if isinstance(by_site, SiteDifferences):
            inverse, similarity = 1.0 / scale[0].cpu(), self.similarity.double()[0].cpu()
            exponents: Tensor = _Exponents.apply(  # type: ignore[no-untyped-call]
                inverse * (1.0 - similarity), inverse * similarity, by_site
            )
            return (-exponents).exp()
        weights = 1.0 / scale[..., 0, :].to(by_site.device)
        similarity = self.similarity.double()[..., 0, :].to(by_site.device)
        weights = torch.cat([weights * (1.0 - similarity), weights * similarity], -1)
        if weights.dim() == 1:
            exponent = by_site @ weights
        else:
            lead = [1] * (1 if diag else 2)
            exponent = (by_site * weights.reshape(*weights.shape[:-1], *lead, weights.shape[-1])).sum(-1)
        return (-exponent).exp()

    def _by_site(self, x1: Tensor, x2: Tensor, diag: bool, sparse_too: bool) -> Tensor | SiteDifferences:
        """Whether symbols differ at each position, then their distances, ``... x n x m x 2L``; ``... x n x 2L``.

        For the Gram matrix of strings that agree at most positions, as variants of one do, only where they differ.
        """
        same = x1 is x2 or (x1.shape == x2.shape and x1.dtype == x2.dtype and torch.equal(x1, x2))
        kept = self._parts
        usable = same and not diag and kept is not None and (sparse_too or isinstance(kept[1], Tensor))
        if usable and kept is not None and torch.equal(kept[0], x1.detach().double()):
            return kept[1]
        _, a, b = paired_tokens(x1, x2, self._name)
        self._check(a.shape[-1])
        found: Tensor | SiteDifferences
        if same and not diag and sparse_too and a.ndim == 2 and _differing_share(a) < SPARSE_SHARE:
            found = self._differences(a)
        else:
            rows, columns = (a, b) if diag else (a[..., :, None, :], b[..., None, :, :])
            differ = (rows != columns).astype(np.float64)
            table = self._table_of(max(int(a.max(initial=0)), int(b.max(initial=0))))
            distances = np.zeros_like(differ) if table is None else table[rows, columns]
            found = torch.from_numpy(np.concatenate([differ, distances], axis=-1))
        if same and not diag and found.nbytes <= KEPT_BYTES:
            self._parts = x1.detach().double().clone(), found
        return found

    def differences(self, x: Tensor) -> SiteDifferences:
        """Where n strings differ, and how far: what covariances depend on at any lengthscales.

        Args:
            x: ``n x W`` tokens.

        Example:
            >>> from seqopt.encoding import Encoder
            >>> kernel = SitesKernel(2, None)
            >>> parts = kernel.differences(Encoder().encode(["AC", "AD"]).to_tensor())
            >>> parts.exponents(np.array([1.0, 0.5]), np.zeros(2)).tolist()
            [[0.0, 0.5], [0.5, 0.0]]
        """
        _, strings, _ = paired_tokens(x, x, self._name)
        self._check(strings.shape[-1])
        if _differing_share(strings) < SPARSE_SHARE:
            found = self._by_site(x, x, False, sparse_too=True)
            # What is kept of a batch of kernels is dense.
            return found if isinstance(found, SiteDifferences) else self._differences(strings)
        # Each pair once: its parts are as large as the positions are many.
        rows, columns = np.triu_indices(len(strings), 1)
        first, second = strings[rows], strings[columns]
        table = self._table_of(int(strings.max(initial=0)))
        return SiteDifferences(
            torch.from_numpy((first != second).astype(np.float64)),
            None if table is None else torch.from_numpy(table[first, second]),
            (len(x), len(x)),
            (rows, columns),
        )

    def _table_of(self, highest: int) -> FloatArray | None:
        return None if self.table is None else self.table.of(highest)

    def _differences(self, strings: Tokens) -> SiteDifferences:
        """Of all pairs of n strings of L symbols."""
        n, sites = strings.shape
        table = self._table_of(int(strings.max(initial=0)))
        pairs, positions, distances = [], [], []
        step = max(1, BLOCK_SYMBOLS // max(1, n * sites))
        for start in range(0, n, step):
            rows = strings[start : start + step]
            row, column, position = np.nonzero(rows[:, None, :] != strings[None, :, :])
            pairs.append((row + start) * n + column)
            positions.append(position.astype(np.int32))
            if table is not None:
                distances.append(table[rows[row, position], strings[column, position]])
        ends = np.cumsum(np.bincount(np.concatenate(pairs), minlength=n * n))
        where = np.concatenate(positions), np.concatenate([[0], ends])
        shape = n * n, sites
        differ = sparse.csr_matrix((np.ones(len(where[0])), *where), shape=shape)
        far = None if table is None else sparse.csr_matrix((np.concatenate(distances), *where), shape=shape)
        return SiteDifferences(differ, far, (n, n))

    def _blocks(self, rows: Tokens, columns: Tokens) -> Iterator[tuple[tuple[slice, slice], FloatArray]]:
        for block, agreeing in agreements(rows, columns):
            yield block, np.subtract(rows.shape[-1], agreeing, dtype=np.float64)

    def _scales(self) -> npt.NDArray[np.float64]:
        found: npt.NDArray[np.float64] = self.lengthscale.detach().double().cpu().reshape(-1, self.sites).numpy()
        return found

    def cross(
        self,
        a: EncodedStrings,
        b: EncodedStrings | None = None,
        self_a: FloatArray | None = None,
        self_b: FloatArray | None = None,
        dtype: npt.DTypeLike = np.float64,
    ) -> FloatArray:
        """See `seqopt.kernels.HammingKernel.cross`."""
        for strings in (a, a if b is None else b):
            self._check(int(strings.lengths.max(initial=0)))
        return super().cross(a, b, self_a, self_b, dtype)

    def _fill(self, values: FloatArray, rows: Tokens, columns: Tokens, scales: npt.NDArray[np.float64]) -> None:
        if not values.size:
            return
        chosen = differing_positions(rows, columns)
        rows, columns = rows[:, chosen], columns[:, chosen]
        size = max(int(rows.max(initial=0)), int(columns.max(initial=0))) + 1
        table = self._table_of(size - 1)
        similarities = self.similarity.detach().double().cpu().reshape(-1).tolist()
        # What a symbol adds to the exponents of all strings of one side is written out once, and added up for each
        # string of the other. The side that is written out is the rows, which are fewer, unless it is less work.
        some = rows[:BLOCK_STRINGS]
        turned = len(_codes_of(some, size)[0]) <= len(some)
        added, written = (rows, columns) if turned else (columns, rows)
        for start in range(0, len(added), BLOCK_STRINGS):
            block = slice(start, start + BLOCK_STRINGS)
            places, codes = _codes_of(added[block], size)
            sites, symbols = places // size, places % size
            ends = np.arange(len(codes) + 1) * codes.shape[-1]
            which = sparse.csr_matrix(
                (np.ones(codes.size, values.dtype), codes.reshape(-1), ends), shape=(len(codes), len(places))
            )
            wide = max(1, BLOCK_EXPONENTS // max(1, len(places)))
            for first in range(0, len(written), wide):
                others = slice(first, first + wide)
                theirs = written[others].T[sites]
                differ = theirs != symbols[:, None]
                distances = 0.0 if table is None else table[theirs, symbols[:, None]]
                for matrix, scale, similarity in zip(values, scales, similarities, strict=True):
                    parts = ((similarity - 1.0) * differ - similarity * distances) / scale[chosen][sites, None]
                    exponents = which @ parts.astype(values.dtype, copy=False)
                    if turned:
                        np.exp(exponents, out=matrix[block, others])
                    else:
                        np.exp(exponents.T, out=matrix[others, block])

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_parts": None}


def _differing_share(strings: Tokens) -> float:
    """The share of positions at which two of n strings differ, mean over all pairs."""
    n, sites = strings.shape
    if not n or not sites:
        return 1.0
    agreeing = sum(float((np.bincount(column).astype(np.float64) ** 2).sum()) for column in strings.T)
    return 1.0 - agreeing / (n * n * sites)


def _codes_of(strings: Tokens, size: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """The K pairs of a position and a symbol that occur in n strings of L symbols below ``size``.

    Symbols of one position may have numbers of their own, so that there are many: only pairs that occur are looked at.

    Returns:
        Position times ``size`` plus symbol of each pair, in order, and which pair each symbol is, ``n x L``.
    """
    keys = strings.astype(np.intp) + np.arange(strings.shape[-1]) * size
    if strings.shape[-1] * size > MOST_FLAGS:
        places, codes = np.unique(keys, return_inverse=True)
        return places, codes.reshape(keys.shape)
    occurs = np.zeros(strings.shape[-1] * size, np.bool_)
    occurs[keys] = True
    return np.flatnonzero(occurs), (occurs.cumsum() - 1)[keys]
