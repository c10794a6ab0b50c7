"""The surrogate that a space gets where none is chosen."""

from __future__ import annotations

from seqopt.encoding import EncodedStrings
from seqopt.kernels import SubsequenceKernel
from seqopt.models.fully_bayesian import FullyBayesianStringGP
from seqopt.models.protocols import Surrogate
from seqopt.models.string_gp import StringGP, default_kernel
from seqopt.spaces import PoolSpace, Space

PART_LENGTH = 60
"""Longest part of a string that the kernel of a default surrogate compares as a whole."""


def default_surrogate(space: Space, *, partitions: int | None = None) -> Surrogate:
    """A Gaussian process with the sub-sequence kernel of order 5.

    For a pool, kernel parameters are point estimates (`StringGP`), so that covariances with the whole pool can be kept
    from one step to the next. For any other space they are averaged over (`FullyBayesianStringGP`).

    Args:
        space: Where to search.
        partitions: Contiguous parts of the kernel. Default: 1 for a pool; else as many as make parts of at most
            `PART_LENGTH` symbols in a random string of the space.

    Example:
        >>> from seqopt.spaces import CodonSpace
        >>> default_surrogate(CodonSpace("MA" * 550)).kernel.partitions
        19
    """
    if isinstance(space, PoolSpace):
        return StringGP() if partitions is None else StringGP(default_kernel(partitions=partitions))
    return FullyBayesianStringGP(SubsequenceKernel(partitions=_parts(space) if partitions is None else partitions))


def _parts(space: Space) -> int:
    import numpy as np

    encoded: EncodedStrings = space.encoder.encode(space.sample(1, np.random.default_rng(0)))
    return max(1, -(-int(encoded.lengths.max(initial=0)) // PART_LENGTH))
