"""The one-hot kernel: a linear kernel on which symbol stands where, for strings of one length.

References:
    Moss, H. B. (2021). General-purpose Information-Theoretical Bayesian Optimisation. PhD thesis, Lancaster
        University, section 4.6 (the linear baseline).
    Tanaka, R., Iwata, H. (2018). Bayesian optimization for genomic selection: a method for discovering the best
        genotype among a large number of candidates. Theor. Appl. Genet. 131.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from seqopt.encoding import EncodedStrings
from seqopt.errors import InputError
from seqopt.kernels.base import DescribedKernel
from seqopt.utils.slices import slices_of

FloatArray = npt.NDArray[np.floating]
Tokens = npt.NDArray[np.unsignedinteger]

BLOCK_ELEMENTS = 1 << 18
"""Pairs of strings compared at a time, so that their counts stay in the processor's cache."""

WIDEST_BLOCK = 1 << 15
"""Largest number of columns compared at a time."""


class OneHotKernel(DescribedKernel):
    r"""Linear kernel on one-hot symbols: the share of positions at which two strings agree.

    .. math:: k(a, b) = \frac{1}{L} \sum_{p=1}^{L} [a_p = b_p]

    for strings of L symbols each. It is the inner product of one-hot codes (a 1 for each symbol at each position where
    it stands), divided by L so that the prior variance is 1; an output scale stands outside. There is nothing to learn.

    A function of this prior is a sum over positions of one random weight per position and symbol. A constant that is
    added to all weights of a position is an intercept, so the prior has one, of variance 1 / S for S symbols, beside
    the constant mean that a model may have.

    Inputs are tokens, ``... x n x W`` (float64 as models hold them), 0 = padding after the last symbol: see
    `seqopt.encoding`. The width W makes no difference, nor does the numbering of the symbols. Encoded strings, for
    pools: `cross`. One-hot codes are never written out: positions are compared one by one, on the processor, in blocks.

    Args:
        batch_shape: Batch shape; all its elements are the same.
        active_dims: Columns of the input that hold the tokens (default: all).

    Raises:
        InputError: When evaluated: for strings that are empty or differ in length, or padding inside a string.

    Example:
        >>> from seqopt.encoding import Encoder
        >>> kernel = OneHotKernel()
        >>> strings = Encoder().encode(["ACGT", "ACTT"])
        >>> kernel.cross(strings)
        array([[1.  , 0.75],
               [0.75, 1.  ]])
        >>> kernel(strings.to_tensor(width=6)).to_dense()
        tensor([[1.0000, 0.7500],
                [0.7500, 1.0000]], dtype=torch.float64)
    """

    normalize = False
    """`cross` does not need `self_similarity`."""

    one_length = True
    """It compares strings of one length only."""

    def __init__(self, *, batch_shape: torch.Size | None = None, active_dims: tuple[int, ...] | None = None) -> None:
        super().__init__(batch_shape=batch_shape, active_dims=active_dims)

    def __getitem__(self, index: Any) -> OneHotKernel:
        # gpytorch reads the new batch shape off the parameters, of which there are none.
        chosen = copy.deepcopy(self)
        if self.batch_shape:
            chosen.batch_shape = torch.empty(()).expand(self.batch_shape)[index].shape
        return chosen

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
        dtype = x1.dtype if x1.is_floating_point() else torch.float64
        if last_dim_is_batch:
            x1, x2 = x1.transpose(-1, -2).unsqueeze(-1), x2.transpose(-1, -2).unsqueeze(-1)
        batch = torch.Size(np.broadcast_shapes(x1.shape[:-2], x2.shape[:-2]))
        own_batch = (*self.batch_shape, *[1] * last_dim_is_batch)
        whole = torch.Size(np.broadcast_shapes(batch, own_batch))
        a = _encoded(x1)
        b = a if x2 is x1 else _encoded(x2)
        length = common_length(a.lengths, b.lengths)
        rows, columns = (
            np.broadcast_to(strings.tokens[:, :length].reshape(*x.shape[:-1], length), (*batch, x.shape[-2], length))
            for strings, x in ((a, x1), (b, x2))
        )
        if diag:
            shares = (rows == columns).sum(axis=-1) / max(length, 1)
            return torch.from_numpy(shares).to(x1.device, dtype).expand(*whole, x1.shape[-2])
        values = np.empty((*batch, x1.shape[-2], x2.shape[-2]))
        for element in np.ndindex(*batch):
            _share(rows[element], columns[element], values[element])
        return torch.from_numpy(values).to(x1.device, dtype).expand(*whole, *values.shape[-2:])

    def self_similarity(self, a: EncodedStrings) -> FloatArray:
        """k(s, s) of each string, which is 1: float64, ``batch_shape x len(a)``."""
        return np.ones((*self.batch_shape, len(a)))

    def variance(self, a: EncodedStrings, self_a: FloatArray | None = None) -> FloatArray:
        """k(s, s) of each string, which is 1: float64, ``batch_shape x len(a)``.

        Args:
            a: The strings.
            self_a: Ignored.
        """
        return self.self_similarity(a)

    def cross(
        self,
        a: EncodedStrings,
        b: EncodedStrings | None = None,
        self_a: FloatArray | None = None,
        self_b: FloatArray | None = None,
        dtype: npt.DTypeLike = np.float64,
    ) -> FloatArray:
        """Covariances between encoded strings: the form for whole pools.

        Memory is that of the result, the tokens once more, and a fixed workspace.

        Args:
            a: The strings of the rows.
            b: The strings of the columns; `None` stands for ``a`` again.
            self_a: Ignored.
            self_b: Ignored.
            dtype: float64 or float32.

        Returns:
            ``batch_shape x len(a) x len(b)``.

        Raises:
            InputError: For strings that are empty or differ in length, or another dtype.
        """
        if np.dtype(dtype) not in (np.dtype(np.float32), np.dtype(np.float64)):
            raise InputError(f"dtype is {np.dtype(dtype)}; covariances are float64 or float32")
        columns = a if b is None else b
        length = common_length(a.lengths, columns.lengths)
        values = np.empty((len(a), len(columns)), dtype=dtype)
        _share(a.tokens[:, :length], columns.tokens[:, :length], values)
        return np.broadcast_to(values, (*self.batch_shape, *values.shape)).copy() if self.batch_shape else values


def _share(rows: Tokens, columns: Tokens, out: FloatArray) -> None:
    """Put the shares of positions at which rows and columns agree into ``out``."""
    for block, agreeing in agreements(rows, columns):
        np.divide(agreeing, rows.shape[-1], out=out[block], dtype=out.dtype)


def agreements(rows: Tokens, columns: Tokens) -> Iterator[tuple[tuple[slice, slice], npt.NDArray[np.unsignedinteger]]]:
    """At how many positions n strings of L symbols agree with m others, in blocks that fit the processor's cache.

    Args:
        rows: ``n x L``.
        columns: ``m x L``.

    Yields:
        Rows and columns of a block, and the numbers of positions there.
    """
    left, right = np.ascontiguousarray(rows.T), np.ascontiguousarray(columns.T)
    wide = max(1, min(len(columns), WIDEST_BLOCK))
    tall = max(1, BLOCK_ELEMENTS // wide)
    for row in range(0, len(rows), tall):
        for column in range(0, len(columns), wide):
            block = slice(row, min(row + tall, len(rows))), slice(column, min(column + wide, len(columns)))
            shape = [part.stop - part.start for part in block]
            agree = np.empty(shape, dtype=np.bool_)
            dtype: type[np.unsignedinteger] = np.uint8 if len(left) <= 255 else np.uint32
            total: npt.NDArray[np.unsignedinteger] = np.zeros(shape, dtype=dtype)
            # As many positions as can be counted in a byte.
            for some in slices_of(len(left), 255):
                counts = total if total.itemsize == 1 else np.zeros(shape, dtype=np.uint8)
                for mine, theirs in zip(left[some, block[0]], right[some, block[1]], strict=True):
                    np.equal(mine[:, None], theirs[None, :], out=agree)
                    counts += agree.view(np.uint8)
                if counts is not total:
                    total += counts
            yield block, total


def _encoded(x: Tensor) -> EncodedStrings:
    """The strings of all matrices of a batch, one after the other."""
    return EncodedStrings.from_tensor(x.reshape(x.shape[:-1].numel(), x.shape[-1]))


def common_length(*lengths: npt.NDArray[np.integer], kernel: str = "one-hot") -> int:
    """The one length of all strings; 0 if there are none.

    Args:
        lengths: Numbers of symbols.
        kernel: What a message calls the kernel that needs it.

    Raises:
        InputError: If lengths differ, or strings are empty.
    """
    found = np.unique(np.concatenate(lengths))
    if len(found) == 0:
        return 0
    if len(found) > 1:
        shown = ", ".join(map(str, found[:5])) + (", ..." if len(found) > 5 else "")
        raise InputError(
            f"the {kernel} kernel compares strings of one length, position by position, but these have {shown} "
            f"symbols: use a space of fixed length, or another surrogate, such as ssk or ngrams"
        )
    if found[0] == 0:
        raise InputError(f"the {kernel} kernel compares strings position by position, but these are empty")
    return int(found[0])
