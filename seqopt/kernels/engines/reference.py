"""The matrix form of the recursion in plain torch: slow, short, on any device, differentiable by autograd.

For one pair with match matrix M[j, k] = [a_j = b_k] and the gap matrix D[j, k] = gap^(k-j-1) for k > j, else
0,

    P_1 = M,    P_{i+1} = M * (D' P_i D),    h_i = sum P_i,

which is the recursion of Moss (2021, B.1) with match decay 1. The other engines are tested against it.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from seqopt.encoding import EncodedStrings

FloatArray = npt.NDArray[np.floating]

BLOCK_ELEMENTS = 1 << 21
"""Match-matrix entries held at once (16 MiB in float64)."""


def pair_order_sums(a: Tensor, b: Tensor, gap_decay: Tensor, order: int) -> Tensor:
    """Per-order sums of pairs of token rows.

    Args:
        a: ``... x A`` tokens, 0 = padding.
        b: ``... x B`` tokens, broadcastable against ``a`` but for the last dimension.
        gap_decay: Scalar tensor; its dtype and device are those of the computation, and gradients flow into
            it.
        order: Longest sub-sequence.

    Returns:
        ``order x ...``.
    """
    matches = ((a[..., :, None] == b[..., None, :]) & (a[..., :, None] != 0)).to(gap_decay)
    from_a, from_b = _gap_matrix(a.shape[-1], gap_decay), _gap_matrix(b.shape[-1], gap_decay)
    paths = matches
    sums = [paths.sum(dim=(-2, -1))]
    for _ in range(order - 1):
        paths = matches * (from_a.T @ paths @ from_b)
        sums.append(paths.sum(dim=(-2, -1)))
    return torch.stack(sums)


def _gap_matrix(size: int, gap_decay: Tensor) -> Tensor:
    positions = torch.arange(size, device=gap_decay.device)
    skipped = positions[None, :] - positions[:, None] - 1
    powers = gap_decay ** skipped.clamp(min=0).to(gap_decay)
    return torch.where(skipped >= 0, powers, torch.zeros_like(powers))


def order_sums(
    a: EncodedStrings,
    b: EncodedStrings | None,
    gap_decay: float,
    weights: npt.NDArray[np.float64],
    *,
    derivative: bool,
    dtype: np.dtype,
    threads: int | None,
) -> tuple[FloatArray, FloatArray | None]:
    """Weighted sums of all pairs, see `seqopt.kernels.engines.order_sums`; torch chooses the threads."""
    columns = a if b is None else b
    rows_tokens, columns_tokens = _tokens(a), _tokens(columns)
    results = np.empty((1 + derivative, len(weights), len(a), len(columns)), dtype=dtype)
    per_pair = max(1, rows_tokens.shape[1] * columns_tokens.shape[1])
    wide = max(1, BLOCK_ELEMENTS // per_pair)
    high = max(1, wide // max(1, len(columns)))
    for row, column in product(range(0, len(a), high), range(0, len(columns), wide)):
        block = slice(row, row + high), slice(column, column + wide)
        results[:, :, *block] = _weighted(
            rows_tokens[block[0], None], columns_tokens[None, block[1]], gap_decay, weights, derivative, dtype
        )
    return results[0], results[1] if derivative else None


def paired_order_sums(
    a: EncodedStrings,
    b: EncodedStrings,
    gap_decay: float,
    weights: npt.NDArray[np.float64],
    *,
    derivative: bool,
    dtype: np.dtype,
    threads: int | None,
) -> tuple[FloatArray, FloatArray | None]:
    """Weighted sums of string i with string i, see `seqopt.kernels.engines.paired_order_sums`."""
    rows, columns = _tokens(a), _tokens(b)
    results = np.empty((1 + derivative, len(weights), len(a)), dtype=dtype)
    block = max(1, BLOCK_ELEMENTS // max(1, rows.shape[1] * columns.shape[1]))
    for start in range(0, len(a), block):
        part = slice(start, start + block)
        results[:, :, part] = _weighted(rows[part], columns[part], gap_decay, weights, derivative, dtype)
    return results[0], results[1] if derivative else None


def _tokens(strings: EncodedStrings) -> Tensor:
    longest = int(strings.lengths.max(initial=0))
    return torch.from_numpy(strings.tokens[:, :longest].astype(np.int32))


def _weighted(
    a: Tensor,
    b: Tensor,
    gap_decay: float,
    weights: npt.NDArray[np.float64],
    derivative: bool,
    dtype: np.dtype,
) -> FloatArray:
    torch_dtype = torch.float64 if dtype == np.float64 else torch.float32
    gap = torch.tensor(gap_decay, dtype=torch_dtype)
    order = weights.shape[1]
    if derivative:
        both = torch.func.jvp(lambda g: pair_order_sums(a, b, g, order), (gap,), (torch.ones_like(gap),))
        parts = torch.stack(both)
    else:
        parts = pair_order_sums(a, b, gap, order)[None]
    return np.einsum("ri,pi...->pr...", weights.astype(dtype), parts.numpy())
