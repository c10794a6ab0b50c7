"""The bag-of-n-grams kernel: a squared-exponential kernel on counts of contiguous n-grams.

Counts are integers, and so are squared distances between them, which are computed exactly, in one of three ways.

*Dense.* Where the strings are long and the symbols few, every n-gram that can be written is a feature (62 for two
symbols and n-grams of up to 5, 1,364 for DNA, 3,905 for five), and inner products are matrix products.

*Sparse.* Otherwise only n-grams that occur on one side are numbered, level by level: an n-gram is its first n - 1
symbols, which have a number, and one more symbol. There are no more numbers than occurrences of n-grams, whatever the
alphabet (of 35 symbols there are 52 million n-grams of length 5), and no two n-grams share one. They make a trie, which
strings of the other side walk down (`seqopt.kernels.compiled_ngrams`).

*Dynamic program.* At a gap decay of zero the sub-sequence kernel is the inner product of counts. For a few strings with
many others, for string i with string i, and for each short string with itself, `seqopt.kernels.engines` is fastest.

*Sorting.* For a long string with itself it is faster to sort its n-grams, of which equal ones then follow each other.

References:
    Rasmussen, C. E. and Williams, C. K. I. (2006). Gaussian Processes for Machine Learning, equation 4.9.
    Moss, H. B. (2021). General-purpose Information-Theoretical Bayesian Optimisation. PhD thesis, Lancaster
        University, section 4.6 (the baseline of bags of n-grams).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import gpytorch
import numpy as np
import numpy.typing as npt
import torch
from botorch.utils.constraints import NonTransformedInterval
from gpytorch.priors import LogNormalPrior
from scipy import sparse
from torch import Tensor

from seqopt.encoding import EncodedStrings
from seqopt.encoding.derived import once_per_strings
from seqopt.errors import InputError
from seqopt.kernels.base import DescribedKernel, shown
from seqopt.kernels.engines import order_sums, paired_order_sums, self_order_sums
from seqopt.kernels.threads import one_thread
from seqopt.utils.slices import slices_of

if TYPE_CHECKING:
    # Numba takes half a second to load, and not every process compares n-grams.
    from seqopt.kernels.compiled_ngrams import Trie

FloatArray = npt.NDArray[np.floating]
Counts = npt.NDArray[np.float64]

LENGTHSCALE = 15.0
"""Default lengthscale, and the median of its default prior before any strings are seen."""

LENGTHSCALE_RATIO = 1.5
"""Median of the default prior, in median distances of the strings that a model is fitted to."""

LENGTHSCALE_SPREAD = 0.4
"""Standard deviation of the logarithm of the lengthscale in its default prior."""

LENGTHSCALE_BOUNDS = (0.1, 1e4)
"""Default lowest and highest lengthscale."""

DENSE_FEATURES = 4096
"""Largest number of possible n-grams for which all of them are features."""

DENSE_RATIO = 4
"""All possible n-grams are features if there are at most this many times as many as the longest string holds."""

BLOCK_ELEMENTS = 1 << 22
"""Largest number of entries of each array of a block (16 MiB of float32)."""

THREADED = 1 << 28
"""Multiplications from which products are worth a second thread."""

KEPT_BYTES = 1 << 28
"""Largest matrix of squared distances that a kernel keeps."""

PRODUCTS = 1 << 18
"""Inner products with a trie that are computed at once: 2 MiB in float64 stay in a cache."""

TRIE_NGRAMS = 1 << 20
"""Occurrences of n-grams of the strings that are in one trie (some 30 MB where no n-gram occurs twice)."""

REMEMBERED_BLOCKS = 4
"""Largest number of tries that are kept as long as their strings are: of some ten thousand short strings."""

FEWER = 8
"""The n-grams of the columns are numbered, and not those of the rows, if there are fewer by more than this factor."""

FEW_SYMBOLS = 200
"""Symbols of the strings on one side up to which inner products with others are those of the sub-sequence kernel."""

CODE_BITS = 64
"""Bits of the largest n-gram that is sorted as one number."""

SORTED_ELEMENTS = 1 << 16
"""N-grams that are sorted at once, at least those of one string."""

SORTED_FROM = 100
"""Symbols of a string from which its squared length comes from sorting: about where that becomes faster."""

NO_GAPS = 1e-60
"""A gap decay at which sub-sequences with gaps vanish compared with contiguous ones, whatever their number."""


class NgramKernel(DescribedKernel):
    r"""Squared-exponential kernel on bags of contiguous n-grams.

    .. math::

        k(a, b) = \exp\left(-\frac{\lVert \phi(a) - \phi(b) \rVert^2}{2 \ell^2}\right)

    where :math:`\phi_u(s)` is the number of occurrences, overlaps included, of the n-gram u in s, for all n-grams of 1
    to ``longest`` symbols. All of them count: "10" as well as "01". There is one feature per n-gram and no weighting by
    length.

    Inputs are tokens, ``... x n x W`` (float64 as models hold them), 0 = padding after the last symbol: see
    `seqopt.encoding`. The width W makes no difference, nor does the numbering of the symbols. Encoded strings without a
    graph, for pools: `cross`.

    The raw parameter ``raw_lengthscale`` *is* the lengthscale; its bounds reach L-BFGS-B through
    `botorch.fit.fit_gpytorch_mll`. Squared distances do not depend on it, and those of the latest Gram matrix are kept
    (up to 256 MiB), so that a step of a fit costs an exponential. They are computed on the processor, the exponential
    on the device of the inputs.

    Two strings of L symbols that share little are about sqrt(2 n L) apart for n-grams of up to n symbols: each has
    some n L counts of 1. Random strings of 20 to 60 symbols have median distances of 10 to 20, hence the default
    lengthscale; for genes of a thousand codons distances are ten times as large. A surrogate therefore calls `adapt`
    before it fits: the default prior is then log-normal with 1.5 median distances of the strings as its median, and
    95 % of its mass between 0.7 and 3.3 of them. A lengthscale far below the distances says that no string tells
    anything of another, which explains a few noisy values as well as noise does; a wide prior does not keep a fit from
    that.

    Args:
        longest: Length n >= 1 of the longest n-grams.
        lengthscale: :math:`\ell`, in the bounds; a float, or a tensor that expands to ``batch_shape x 1 x 1``. Default:
            15, until `adapt` sees strings.
        lengthscale_prior: A gpytorch prior on the lengthscale. Default: see above.
        lengthscale_bounds: Lowest and highest lengthscale, above 0.
        batch_shape: Batch shape of the lengthscale.
        active_dims: Columns of the input that hold the tokens (default: all).

    Attributes:
        lengthscale: ``batch_shape x 1 x 1``. Assign a float or tensor to change it.

    Raises:
        InputError: If ``longest`` is not an integer of at least 1, or the lengthscale or its bounds are out of range.
            When evaluated: for inputs that are not tokens.

    Example:
        >>> from seqopt.encoding import Encoder
        >>> kernel = NgramKernel(longest=2, lengthscale=2.0)
        >>> strings = Encoder().encode(["0101", "1010", "0110"])
        >>> kernel.cross(strings)  # "0101" and "1010" differ in one "01" and one "10"
        array([[1.        , 0.77880078, 0.77880078],
               [0.77880078, 1.        , 0.77880078],
               [0.77880078, 0.77880078, 1.        ]])
        >>> kernel(strings.to_tensor(width=6)).to_dense().shape
        torch.Size([3, 3])
    """

    has_lengthscale = True

    normalize = True
    """`cross` takes what `self_similarity` returns."""

    def __init__(
        self,
        longest: int = 5,
        lengthscale: float | Tensor | None = None,
        *,
        lengthscale_prior: gpytorch.priors.Prior | None = None,
        lengthscale_bounds: tuple[float, float] = LENGTHSCALE_BOUNDS,
        batch_shape: torch.Size | None = None,
        active_dims: tuple[int, ...] | None = None,
    ) -> None:
        if isinstance(longest, bool) or not isinstance(longest, int | np.integer) or longest < 1:
            raise InputError(f"longest is {longest!r}; it must be an integer of at least 1")
        lower, upper = lengthscale_bounds
        if not 0.0 < lower < upper < math.inf:
            raise InputError(f"lengthscale_bounds are {lengthscale_bounds}; expected 0 < lowest < highest")
        prior = lengthscale_prior
        if prior is None:
            prior = LogNormalPrior(math.log(LENGTHSCALE), LENGTHSCALE_SPREAD)
        super().__init__(
            batch_shape=batch_shape,
            active_dims=active_dims,
            lengthscale_prior=prior,
            lengthscale_constraint=NonTransformedInterval(lower, upper, initial_value=lower),
        )
        self.longest = int(longest)
        self._bounds = (float(lower), float(upper))
        self._kept: tuple[Tensor, Tensor] | None = None
        self._adapts = lengthscale_prior is None, lengthscale is None
        self.lengthscale = LENGTHSCALE if lengthscale is None else lengthscale

    @property
    def lengthscale(self) -> Tensor:
        """The lengthscale, ``batch_shape x 1 x 1``. Assign a float or tensor to change it."""
        raw: Tensor = self.raw_lengthscale
        return raw.clamp(*self._bounds)

    @lengthscale.setter
    def lengthscale(self, value: float | Tensor) -> None:
        lower, upper = self._bounds
        try:
            tensor = torch.as_tensor(value, dtype=torch.float64).detach()
        except (TypeError, ValueError, RuntimeError):
            raise InputError(f"lengthscale is {value!r}; expected a number in [{lower:g}, {upper:g}]") from None
        if not bool(((tensor >= lower) & (tensor <= upper)).all()):
            raise InputError(f"lengthscale is {value!r}; it must lie in [{lower:g}, {upper:g}]")
        try:
            tensor = tensor.expand(self.raw_lengthscale.shape)
        except RuntimeError:
            raise InputError(
                f"lengthscale has shape {tuple(tensor.shape)}; expected one that expands to "
                f"{tuple(self.raw_lengthscale.shape)}"
            ) from None
        # The constraint's bounds are rounded, as the parameter is.
        constraint = self.raw_lengthscale_constraint
        self._set_lengthscale(tensor.to(self.raw_lengthscale).clamp(constraint.lower_bound, constraint.upper_bound))

    def _argument(self, name: str) -> Any:
        # What adapts to the strings is no choice of the user's.
        default_prior, default_lengthscale = self._adapts
        if (name == "lengthscale" and default_lengthscale) or (name == "lengthscale_prior" and default_prior):
            return None
        return self._bounds if name == "lengthscale_bounds" else super()._argument(name)

    def _described(self) -> Mapping[str, object]:
        return {"longest": self.longest, "lengthscale": shown(self.lengthscale[..., 0, 0])}

    def adapt(self, x: Tensor) -> None:
        """Centre the default prior on 1.5 median distances of ``n x W`` tokens, and begin there.

        What was chosen by hand (the prior, the lengthscale) stays, and so does all where no two strings differ.

        Example:
            >>> from seqopt.encoding import Encoder
            >>> kernel = NgramKernel(longest=1)
            >>> kernel.adapt(Encoder().encode(["AAAA", "AAAB", "BBBB"]).to_tensor())
            >>> round((kernel.lengthscale.item() / 1.5) ** 2, 4)  # squared distances are 2, 18 and 32
            18.0
        """
        prior, start = self._adapts
        n = x.shape[-2]
        distances = self._distances(x.double(), x.double(), False)
        apart = distances[..., *torch.triu_indices(n, n, 1)]
        apart = apart[apart > 0].sqrt()
        if not len(apart):
            return
        typical = min(max(LENGTHSCALE_RATIO * float(apart.median()), self._bounds[0]), self._bounds[1])
        if prior:
            # The prior that is registered stays where it is, with its dtype and its closures.
            self.lengthscale_prior.loc = self.lengthscale_prior.loc.new_tensor(math.log(typical))
        if start:
            self.lengthscale = typical

    def forward(
        self, x1: Tensor, x2: Tensor, diag: bool = False, last_dim_is_batch: bool = False, **params: Any
    ) -> Tensor:
        """Covariances of tokens, see `gpytorch.kernels.Kernel.forward`.

        Args:
            x1: ``... x n x W`` tokens.
            x2: ``... x m x W`` tokens.
            diag: Only k(x1_i, x2_i), ``... x n``.
            last_dim_is_batch: Treat every column as a batch of strings of one symbol.
            params: Ignored.

        Returns:
            ``... x n x m`` on the device and in the dtype of ``x1``, float64 for integers.

        Raises:
            InputError: As the class says.
        """
        scale = self.lengthscale.double()
        if last_dim_is_batch:
            x1, x2 = x1.transpose(-1, -2).unsqueeze(-1), x2.transpose(-1, -2).unsqueeze(-1)
            scale = scale.unsqueeze(-3)
        distances = self._distances(x1, x2, diag).to(scale.device)
        exponents = -0.5 * distances / (scale[..., 0] if diag else scale).square()
        return exponents.exp().to(x1.device, x1.dtype if x1.is_floating_point() else torch.float64)

    def _distances(self, x1: Tensor, x2: Tensor, diag: bool) -> Tensor:
        """Squared distances of tokens, ``... x n x m`` or ``... x n``, float64."""
        same = x1 is x2 or (x1.shape == x2.shape and x1.dtype == x2.dtype and torch.equal(x1, x2))
        if diag and same:
            _encoded(x1)
            return x1.new_zeros(x1.shape[:-1], dtype=torch.float64)
        if not same or diag:
            return self._new_distances(x1, x2, diag)
        kept = self._kept
        if kept is not None and _equal(kept[0], x1):
            return kept[1]
        distances = self._new_distances(x1, x1, diag)
        if distances.nbytes <= KEPT_BYTES:
            self._kept = x1.detach().clone(), distances
        return distances

    def _new_distances(self, x1: Tensor, x2: Tensor, diag: bool) -> Tensor:
        batch = torch.Size(np.broadcast_shapes(x1.shape[:-2], x2.shape[:-2]))
        rows = x1 if x2 is x1 else x1.expand(*batch, *x1.shape[-2:])
        columns = rows if x2 is x1 else x2.expand(*batch, *x2.shape[-2:])
        a = _encoded(rows)
        b = a if columns is rows else _encoded(columns)
        n, m = x1.shape[-2], x2.shape[-2]
        if diag:
            return torch.from_numpy(_paired_squared_distances(a, b, self.longest)).reshape(*batch, n)
        values = np.empty((batch.numel(), n, m))
        for element in range(batch.numel()):
            left = a.take(slice(element * n, (element + 1) * n))
            right = left if b is a else b.take(slice(element * m, (element + 1) * m))
            for block, distances in _squared_distances(left, right, self.longest):
                values[element][block] = distances
        return torch.from_numpy(values).reshape(*batch, n, m)

    def self_similarity(self, a: EncodedStrings) -> FloatArray:
        """What covariances with the n strings ``a`` need of each string alone: its squared length as a count vector,
        float64, ``n``.
        """
        return _squared_lengths(a, self.longest)

    def variance(self, a: EncodedStrings, self_a: FloatArray | None = None) -> FloatArray:
        """k(s, s) of each string, which is 1: float64, ``batch_shape x len(a)``.

        Args:
            a: The strings.
            self_a: Ignored.
        """
        return np.ones((*self.batch_shape, len(a)))

    def cross(
        self,
        a: EncodedStrings,
        b: EncodedStrings | None = None,
        self_a: FloatArray | None = None,
        self_b: FloatArray | None = None,
        dtype: npt.DTypeLike = np.float64,
    ) -> FloatArray:
        """Covariances between encoded strings at the current lengthscale, without a graph: the form for whole pools.

        Memory is that of the result and a fixed workspace. For up to some ten thousand strings ``a`` their n-grams and
        the counts of them are kept as long as the object is that holds those strings (typically some MB, at most some
        hundred).

        Args:
            a: The strings of the rows.
            b: The strings of the columns; `None` stands for ``a`` again.
            self_a: `self_similarity` of ``a``, if at hand.
            self_b: `self_similarity` of ``b``.
            dtype: float64 or float32.

        Returns:
            ``batch_shape x len(a) x len(b)``. Lengthscales of a batch share the distances.

        Raises:
            InputError: For another dtype.
        """
        if np.dtype(dtype) not in (np.dtype(np.float32), np.dtype(np.float64)):
            raise InputError(f"dtype is {np.dtype(dtype)}; covariances are float64 or float32")
        columns = a if b is None else b
        factors = -0.5 / self.lengthscale.detach().double().cpu().reshape(-1).numpy() ** 2
        values = np.empty((len(factors), len(a), len(columns)), dtype=dtype)
        own = self_a, self_a if b is None else self_b
        for (rows, indices), distances in _squared_distances(a, columns, self.longest, *own):
            for matrix, factor in zip(values, factors, strict=True):
                matrix[rows, indices] = np.exp(factor * distances)
        return values.reshape(*self.batch_shape, len(a), len(columns))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_kept": None}


def ngram_counts(strings: EncodedStrings, longest: int = 5) -> tuple[sparse.csr_array, list[tuple[int, ...]]]:
    """Counts of all contiguous n-grams of 1 to ``longest`` symbols that occur in some strings.

    Args:
        strings: n strings.
        longest: Length of the longest n-grams.

    Returns:
        The counts, a `scipy.sparse.csr_array` of n x d float64, and the d n-grams as tuples of symbol numbers: first
        those of one symbol, then those of two, and so on; in order within a length.

    Example:
        >>> from seqopt.encoding import Encoder
        >>> counts, ngrams = ngram_counts(Encoder().encode(["aab", "b"]), longest=2)
        >>> ngrams, counts.toarray().tolist()
        ([(1,), (2,), (1, 1), (1, 2)], [[2.0, 1.0, 1.0, 1.0], [0.0, 1.0, 0.0, 0.0]])
    """
    from seqopt.kernels.compiled_ngrams import ngrams_of

    found = ngrams_of(strings, longest)
    shape = len(strings), len(found.heads) - 1
    counts = sparse.csc_array((found.counts.astype(np.float64), found.rows, found.heads), shape=shape).tocsr()
    spelt: list[tuple[int, ...]] = [(), *((int(symbol),) for symbol in found.symbols)]
    for key in found.keys.tolist():
        spelt.append((*spelt[key // found.base], int(found.symbols[key % found.base - 1])))
    return counts[:, 1:], spelt[1:]


Block = tuple[slice, slice]


def _squared_distances(
    a: EncodedStrings,
    b: EncodedStrings,
    longest: int,
    squares_a: FloatArray | None = None,
    squares_b: FloatArray | None = None,
) -> Iterator[tuple[Block, Counts]]:
    """Squared distances between count vectors of given squared lengths, block by block; exact."""
    squares_a = _squared_lengths(a, longest) if squares_a is None else squares_a
    if squares_b is None:
        squares_b = squares_a if b is a else _squared_lengths(b, longest)
    # The n-grams of the first side are numbered, which is remembered: a search has the same rows again and again.
    first, second = (a, b) if len(a) <= FEWER * len(b) else (b, a)
    # Sums of integers are exact in float32 up to 2^24, and an inner product is at most the product of lengths.
    single = float(squares_a.max(initial=0.0)) * float(squares_b.max(initial=0.0)) < 2.0**48
    for (rows, columns), inner in _products(first, second, longest, np.float32 if single else np.float64):
        block = (rows, columns) if first is a else (columns, rows)
        distances = (inner if first is a else inner.T).astype(np.float64, order="C")
        distances *= -2.0
        distances += squares_a[block[0], None]
        distances += squares_b[None, block[1]]
        yield block, distances


def _products(
    a: EncodedStrings, b: EncodedStrings, longest: int, dtype: npt.DTypeLike
) -> Iterator[tuple[Block, FloatArray]]:
    """Inner products of count vectors, in blocks."""
    letters = _dense_letters(longest, a, b)
    if letters is not None:
        step = max(1, BLOCK_ELEMENTS // _possible(letters, longest))
        for rows in slices_of(len(a), step):
            left = _dense_rows(a, rows, letters, longest).astype(dtype, copy=False)
            for columns in slices_of(len(b), step):
                right = _dense_rows(b, columns, letters, longest).astype(dtype, copy=False)
                with _threads(len(left) * right.size):
                    values = torch.from_numpy(left) @ torch.from_numpy(right).T
                yield (rows, columns), values.numpy()
        return
    if a.lengths.sum() <= FEW_SYMBOLS:
        for columns in slices_of(len(b), max(1, BLOCK_ELEMENTS // max(len(a), 1))):
            part = b if columns == slice(0, len(b)) else b.take(columns)
            contiguous, _ = order_sums(a, part, NO_GAPS, longest, weights=np.ones(longest))
            yield (slice(0, len(a)), columns), np.rint(contiguous)
        return
    from seqopt.kernels.compiled_ngrams import products

    for rows, trie in _tries(a, longest, dtype):
        step = max(1, PRODUCTS // (rows.stop - rows.start))
        for columns in slices_of(len(b), step):
            yield (rows, columns), products(trie, b if len(b) <= step else b.take(columns), longest).T


def _tries(strings: EncodedStrings, longest: int, dtype: npt.DTypeLike) -> Iterable[tuple[slice, Trie]]:
    """Some of the strings after the other."""
    held = longest * max(float(strings.lengths.mean()) if len(strings) else 0.0, 1.0)
    together = max(1, int(TRIE_NGRAMS / held))
    if len(strings) <= REMEMBERED_BLOCKS * together:
        return _remembered_tries(strings, longest, dtype, together)
    return ((rows, _trie(strings.take(rows), longest, dtype)) for rows in slices_of(len(strings), together))


# A search compares one list of strings with thousands of others.
@once_per_strings
def _remembered_tries(
    strings: EncodedStrings, longest: int, dtype: npt.DTypeLike, together: int
) -> list[tuple[slice, Trie]]:
    return [(rows, _trie(strings.take(rows), longest, dtype)) for rows in slices_of(len(strings), together)]


def _trie(strings: EncodedStrings, longest: int, dtype: npt.DTypeLike) -> Trie:
    from seqopt.kernels.compiled_ngrams import build, ngrams_of

    return build(ngrams_of(strings, longest), len(strings), dtype)


def _squared_lengths(strings: EncodedStrings, longest: int) -> Counts:
    letters = _dense_letters(longest, strings)
    if letters is not None:
        parts = [
            _dense_rows(strings, rows, letters, longest)
            for rows in slices_of(len(strings), max(1, BLOCK_ELEMENTS // _possible(letters, longest)))
        ]
        return np.concatenate([np.einsum("ij,ij->i", part, part, dtype=np.float64) for part in parts])
    long = strings.lengths >= SORTED_FROM
    bits = int(strings.tokens.max(initial=0)).bit_length()
    if not long.any() or bits * longest > CODE_BITS:
        return _squares_by_program(strings, longest)
    if not long.all():
        found = np.empty(len(strings))
        for of_length in (np.flatnonzero(long), np.flatnonzero(~long)):
            found[of_length] = _squared_lengths(strings.take(of_length), longest)
        return found
    width = int(strings.lengths.max())
    sorted_blocks = [
        _squares_of_sorted(strings.tokens[rows, :width], longest, bits)
        for rows in slices_of(len(strings), max(1, SORTED_ELEMENTS // width))
    ]
    return np.concatenate(sorted_blocks)


def _squares_by_program(strings: EncodedStrings, longest: int) -> Counts:
    values, _ = self_order_sums(strings, NO_GAPS, longest, weights=np.ones(longest))
    return np.rint(values)


def _squares_of_sorted(tokens: npt.NDArray[np.unsignedinteger], longest: int, bits: int) -> Counts:
    """Squared lengths of the counts of n strings of at most W symbols of so many bits, given as ``n x W`` tokens."""
    count, width = tokens.shape
    # At each position the n-gram of full length that begins there, zeros beyond the end.
    codes = np.zeros((count, width), dtype=np.uint64)
    for step in range(min(longest, width)):
        codes[:, : width - step] |= tokens[:, step:].astype(np.uint64) << np.uint64(bits * (longest - 1 - step))
    codes.sort(axis=1)
    begins = np.arange(count) * width
    total = np.zeros(count)
    first = np.ones(count * width, dtype=np.bool_)
    for length in range(1, longest + 1):
        shorter = (codes >> np.uint64(bits * (longest - length))).reshape(-1)
        np.not_equal(shorter[1:], shorter[:-1], out=first[1:])
        first[begins] = True
        runs = np.flatnonzero(first)
        sizes = np.diff(runs, append=len(shorter))
        # One that ends in a zero sticks out of its string.
        sizes[shorter[runs] & np.uint64((1 << bits) - 1) == 0] = 0
        total += np.add.reduceat(np.square(sizes, dtype=np.float64), np.searchsorted(runs, begins))
    return total


def _paired_squared_distances(a: EncodedStrings, b: EncodedStrings, longest: int) -> Counts:
    products, _ = paired_order_sums(a, b, NO_GAPS, longest, weights=np.ones(longest))
    distances: Counts = _squared_lengths(a, longest) + _squared_lengths(b, longest) - 2.0 * np.rint(products)
    return distances


def _possible(letters: int, longest: int) -> int:
    """Number of n-grams that can be written with so many symbols."""
    return sum(letters**length for length in range(1, longest + 1))


def _dense_letters(longest: int, *lists: EncodedStrings) -> int | None:
    """Largest symbol number, if all n-grams up to it are to be features."""
    letters = max(int(strings.tokens.max(initial=0)) for strings in lists)
    held = longest * max(int(strings.lengths.max(initial=0)) for strings in lists)
    if letters > DENSE_FEATURES or not 0 < _possible(letters, longest) <= min(DENSE_FEATURES, DENSE_RATIO * held):
        return None
    return letters


def _dense_rows(strings: EncodedStrings, rows: slice, letters: int, longest: int) -> npt.NDArray[np.float32]:
    """Counts of all n-grams over the symbols 1 to ``letters`` in some of the strings, n x `_possible`."""
    if rows == slice(0, len(strings)):
        return _remembered_counts(strings, letters, longest)
    return _dense_counts(strings.take(rows), letters, longest)


def _dense_counts(strings: EncodedStrings, letters: int, longest: int) -> npt.NDArray[np.float32]:
    from seqopt.kernels.compiled_ngrams import count_all

    counts = np.zeros((len(strings), _possible(letters, longest)), dtype=np.float32)
    starts = np.array([_possible(letters, length) for length in range(longest + 1)], dtype=np.int64)
    count_all(strings.tokens, strings.lengths, letters, starts, counts)
    return counts


_remembered_counts = once_per_strings(_dense_counts)


def _threads(multiplications: int) -> AbstractContextManager[None]:
    return one_thread() if multiplications < THREADED else nullcontext()


def _encoded(x: Tensor) -> EncodedStrings:
    """The strings of all matrices of a batch, one after the other."""
    return EncodedStrings.from_tensor(x.reshape(x.shape[:-1].numel(), x.shape[-1]))


def _equal(kept: Tensor, x: Tensor) -> bool:
    return kept.shape == x.shape and kept.dtype == x.dtype and kept.device == x.device and torch.equal(kept, x)
