r"""What each part of a string has in its covariance with another: shares that sum to the covariance.

A kernel that counts what two strings share is a sum over what the first one holds: sub-sequences, environments of
atoms, symbols at their positions. Each term belongs in equal shares to the parts it is made of: a sub-sequence to its
symbols, an environment to its atoms. (This is the Shapley value of the game in which a term counts once all its parts
are there.) Where a kernel divides by the sizes of the strings, the divisor is held at its value, so that shares sum to
the normalised covariance, too.

For the sub-sequence kernel no sub-sequence has to be listed. With :math:`h_n` the sum over pairs of sub-sequences of n
symbols, and :math:`a \setminus i` the string whose symbol i matches nothing, :math:`h_n(a, b) - h_n(a \setminus i, b)`
is the sum over those that hold symbol i, of each of which the symbol has one n-th.

References:
    Shapley, L. S. (1953). A value for n-person games. Contributions to the Theory of Games 2, 307-317.
    Moss, H. B. et al. (2020). BOSS: Bayesian Optimization over String Spaces. NeurIPS (the sub-sequence kernel).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from seqopt.encoding import EncodedStrings, FeatureRows
from seqopt.errors import InputError
from seqopt.kernels.engines import order_sums
from seqopt.kernels.letters import LetterOneHotKernel, LetterSubsequenceKernel
from seqopt.kernels.one_hot import OneHotKernel
from seqopt.kernels.subsequence import SubsequenceKernel
from seqopt.kernels.tanimoto import MinMaxKernel, TanimotoKernel

FloatArray = npt.NDArray[np.float64]


def masked(
    string: EncodedStrings,
    others: EncodedStrings | None = None,
    groups: npt.NDArray[np.bool_] | None = None,
    *,
    beyond: int = 0,
) -> EncodedStrings:
    """One string of L symbols as several, in each of which some of its symbols match nothing.

    Args:
        string: One string.
        others: Strings whose symbols are to be unlike it, too.
        groups: Which symbols, ``P x L``. Default: each alone.
        beyond: The highest number that means something to the kernel.

    Example:
        >>> from seqopt.encoding import Encoder
        >>> masked(Encoder().encode(["AB"])).tokens.tolist()
        [[3, 2], [1, 3]]
    """
    length = int(string.lengths[0])
    groups = np.eye(length, dtype=bool) if groups is None else groups
    highest = max(beyond, *(int(rows.tokens.max(initial=0)) for rows in (string, others) if rows is not None))
    tokens = np.repeat(string.tokens, len(groups), axis=0)
    if highest + 1 > np.iinfo(tokens.dtype).max:
        tokens = tokens.astype(np.uint16)
    tokens[:, :length][groups] = highest + 1
    return EncodedStrings(tokens, np.repeat(string.lengths, len(groups)))


def symbol_shares(
    kernel: SubsequenceKernel | OneHotKernel, string: EncodedStrings, others: EncodedStrings
) -> FloatArray:
    """What each symbol of a string has in its covariances with others.

    Args:
        kernel: The kernel.
        string: One string, of L symbols.
        others: n strings.

    Returns:
        ``batch_shape x L x n``; sums over L are ``kernel.cross(string, others)``.

    Raises:
        InputError: As the kernel does.

    Example:
        >>> from seqopt.encoding import Encoder
        >>> strings = Encoder().encode(["cat", "cut"])
        >>> kernel = SubsequenceKernel(order=2, match_decay=1.0, gap_decay=0.5, normalize=False)
        >>> symbol_shares(kernel, strings.take([0]), strings.take([1]))[:, 0]  # c, t, and half of c-t with a gap each
        array([1.125, 0.   , 1.125])
    """
    if isinstance(kernel, OneHotKernel):
        kernel.cross(string, others)  # refuses what it cannot compare
    shares = _agreeing if isinstance(kernel, OneHotKernel) else _subsequence_shares
    if isinstance(kernel, LetterSubsequenceKernel | LetterOneHotKernel):
        belongs = kernel.symbol_of_letters(string) == np.arange(int(string.lengths[0]))[:, None]
        found = belongs.astype(np.float64) @ shares(kernel, kernel.spelt(string), kernel.spelt(others))
    else:
        found = shares(kernel, string, others)
    if isinstance(kernel, SubsequenceKernel) and kernel.normalize:
        roots = [np.sqrt(kernel.self_similarity(of)).reshape(len(found), -1) for of in (string, others)]
        scale = roots[0][:, :, None] * roots[1][:, None, :]
        found = np.divide(found, scale, out=np.zeros_like(found), where=scale > 0)
    return found.reshape(*kernel.batch_shape, *found.shape[1:])


def _agreeing(kernel: OneHotKernel, string: EncodedStrings, others: EncodedStrings) -> FloatArray:
    """Shares of symbols that stand at the same place, ``r x L x n`` for a batch of r."""
    length = int(string.lengths[0])
    agreeing = string.tokens[0, :length, None] == others.tokens[:, :length].T
    found = agreeing / max(length, 1)
    return np.broadcast_to(found, (kernel.batch_shape.numel(), *found.shape)).copy()


def _subsequence_shares(kernel: SubsequenceKernel, string: EncodedStrings, others: EncodedStrings) -> FloatArray:
    """Shares of symbols before covariances are normalised, ``r x L x n`` for a batch of r decays."""
    order = kernel.order
    powers = kernel.match_decay.detach().double().cpu().reshape(-1, 1).numpy() ** (2 * np.arange(1, order + 1))
    own = kernel.order_weights
    weights = powers if own is None else powers * own.detach().double().cpu().reshape(-1, order).numpy()
    gaps = kernel.gap_decay.detach().double().cpu().reshape(-1).numpy()
    rows = string.joined(masked(string, others))
    found = np.empty((len(gaps), len(rows) - 1, len(others)))
    for gap in np.unique(gaps):
        indices = np.flatnonzero(gaps == gap)
        scaled = weights[indices] / np.arange(1, order + 1)
        sums, _ = order_sums(
            rows, others, float(gap), order, weights=scaled, partitions=kernel.partitions, threads=kernel.threads
        )
        found[indices] = sums[:, :1] - sums[:, 1:]
    return found


def feature_shares(
    kernel: MinMaxKernel | TanimotoKernel, row: FeatureRows, others: FeatureRows
) -> tuple[npt.NDArray[np.int64], FloatArray]:
    """What each feature of a string has in its covariances with others.

    Args:
        kernel: The kernel.
        row: The features of one string, of which m are not 0.
        others: Those of n strings.

    Returns:
        The m columns, and ``batch_shape x m x n``; sums over m are ``kernel.cross(row, others)``, unless a string has
        no features.

    Raises:
        InputError: If there is not one row.

    Example:
        >>> rows = FeatureRows(np.array([[1.0, 3.0, 0.0], [0.0, 1.0, 1.0]]))
        >>> feature_shares(MinMaxKernel(), rows.take([0]), rows.take([1]))
        (array([0, 1]), array([[0. ],
               [0.2]]))
    """
    if len(row) != 1:
        raise InputError(f"shares are those of one string, not of {len(row)}")
    mine = row.dense()[0]
    columns = np.flatnonzero(mine)
    theirs = others.values[:, columns]
    theirs = theirs if isinstance(theirs, np.ndarray) else theirs.toarray()
    minimum = isinstance(kernel, MinMaxKernel)
    overlaps = np.minimum(mine[columns], theirs) if minimum else mine[columns] * theirs
    sizes = [kernel.self_similarity(of).reshape(-1, len(of))[0] for of in (row, others)]
    total = sizes[0] + sizes[1] - overlaps.sum(axis=1)
    found = np.divide(overlaps.T, total, out=np.zeros((len(columns), len(others))), where=total > 0)
    return columns, np.broadcast_to(found, (*kernel.batch_shape, *found.shape)).copy()
