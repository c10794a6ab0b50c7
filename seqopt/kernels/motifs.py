"""The kernel of one motif: a linear kernel on how often a few symbols at fixed distances occur.

References:
    Ghandi, M., Lee, D., Mohammad-Noori, M. and Beer, M. A. (2014). Enhanced regulatory sequence prediction using gapped
        k-mer features. PLoS Computational Biology 10(7) (motifs with gaps as features).
    Mitchell, T. J. and Beauchamp, J. J. (1988). Bayesian variable selection in linear regression. Journal of the
        American Statistical Association 83(404) (a posterior over which feature it is).
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from seqopt.encoding import Alphabet, EncodedStrings
from seqopt.encoding.alphabet import MAX_SYMBOLS
from seqopt.errors import InputError
from seqopt.kernels.base import DescribedKernel

FloatArray = npt.NDArray[np.floating]
Tokens = npt.NDArray[np.unsignedinteger]

WILDCARD = "?"
"""What stands in a motif that is shown for a position that may have any symbol."""


class MotifKernel(DescribedKernel):
    r"""Covariance of functions that are linear in the number of occurrences of one motif.

    .. math:: k(a, b) = 1 + c(a)\, c(b),

    with c(s) the number of places at which the motif occurs in s. A motif is up to ``order`` symbols at fixed distances
    within ``width`` positions, such as ``01??4`` for three within five, where ``?`` matches any symbol. A function of
    this prior is :math:`w_0 + w_1 c(s)` with independent standard normal weights.

    Which motif it is is for the data to say: a `seqopt.models.sampling.MotifSampler` has the posterior over all of
    them. Where few symbols decide, it finds them from fewer values than a kernel that compares strings as a whole.

    Occurrences may overlap, or count without overlaps, the leftmost first: then one only begins where the last one
    that counted has ended.

    Inputs are tokens, ``... x n x W`` (float64 as models hold them), 0 = padding after the last symbol: see
    `seqopt.encoding`. The width W makes no difference. Evaluated on the processor, in time n W for each motif.

    Args:
        order: Most symbols of a motif, 1 to ``width``.
        width: Most positions that it spans.
        motif: Numbers of its symbols, ``width`` of them, 0 for a position that may have any; the first must not be 0.
            Default: the first symbol alone.
        overlapping: Whether occurrences that overlap all count.
        batch_shape: Must be empty: a kernel has one motif.
        active_dims: Columns of the input that hold the tokens (default: all).

    Raises:
        InputError: If ``width`` < 1, ``order`` is not from 1 to ``width``, the motif is none of these, or there is a
            batch shape.

    Example:
        >>> from seqopt.encoding import Encoder
        >>> encoder = Encoder(alphabet=Alphabet("AB"))
        >>> kernel = MotifKernel(order=2, width=3, motif=[1, 0, 2])  # A?B
        >>> kernel.counts(encoder.encode(["AABB", "BBAA", "AAB"]))
        array([2., 0., 1.])
        >>> kernel.cross(encoder.encode(["AABB", "BBAA", "AAB"]))
        array([[5., 1., 3.],
               [1., 1., 1.],
               [3., 1., 2.]])
    """

    normalize = False
    """`cross` does not need `self_similarity`."""

    discrete = ("motif", "overlapping")
    """Parameters that take single values, between which there is no mean."""

    def __init__(
        self,
        order: int = 4,
        width: int = 6,
        *,
        motif: Sequence[float] | Tensor | None = None,
        overlapping: bool | Tensor = True,
        batch_shape: torch.Size | None = None,
        active_dims: tuple[int, ...] | None = None,
    ) -> None:
        super().__init__(active_dims=active_dims)
        if batch_shape is not None and len(batch_shape):
            raise InputError(f"a MotifKernel has one motif: the batch shape is {tuple(batch_shape)}; expected none")
        for name, number in (("order", order), ("width", width)):
            if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 1:
                raise InputError(f"{name} is {number!r}; it must be an integer of at least 1")
        if order > width:
            raise InputError(f"order is {order}, and width {width}: a motif has at most as many symbols as positions")
        self.order, self.width = int(order), int(width)
        self._alphabet: Alphabet | None = None
        given = [1.0] + [0.0] * (self.width - 1) if motif is None else torch.as_tensor(motif).double().tolist()
        fits = len(given) == self.width and all(number in range(MAX_SYMBOLS + 1) for number in given)
        if not (fits and given[0] >= 1 and sum(number > 0 for number in given) <= self.order):
            raise InputError(
                f"motif is {given}; expected {self.width} numbers of symbols, of which up to {self.order} are not 0, "
                "the first among them"
            )
        self.register_parameter("raw_motif", torch.nn.Parameter(torch.tensor(given, dtype=torch.float64)))
        self.register_parameter(
            "raw_overlapping", torch.nn.Parameter(torch.tensor(float(overlapping), dtype=torch.float64))
        )

    def read_by(self, alphabet: Alphabet) -> None:
        """Take the symbols of this alphabet; surrogates do this, see `seqopt.kernels.bind_symbols`."""
        self._alphabet = alphabet

    @property
    def symbols(self) -> int | None:
        """How many symbols there are, if no more can join them and they are known."""
        return None if self._alphabet is None or not self._alphabet.closed else len(self._alphabet)

    @property
    def motif(self) -> Tensor:
        """Numbers of the symbols, ``width``; 0 for a position that may have any."""
        return self.raw_motif.detach()

    @property
    def overlapping(self) -> bool:
        """Whether occurrences that overlap all count."""
        return bool(self.raw_overlapping.detach() > 0.5)

    @property
    def shown(self) -> str:
        """The motif in symbols.

        Example:
            >>> kernel = MotifKernel(order=2, width=4, motif=[1, 0, 2, 0])
            >>> kernel.shown
            '1?2'
            >>> kernel.read_by(Alphabet("AB"))
            >>> kernel.shown
            'A?B'
        """
        numbers = [int(number) for number in self.motif.tolist()]
        while numbers and numbers[-1] == 0:
            numbers.pop()
        known = [WILDCARD, *(self._alphabet or ())]
        names = [known[number] if number < len(known) else str(number) for number in numbers]
        return (" " if any(len(name) > 1 for name in names) else "").join(names)

    def config_arguments(self) -> Mapping[str, Any]:
        """See `seqopt.utils.config.Configurable`; a surrogate keeps the motifs that it draws in its own state."""
        return {
            "order": self.order,
            "width": self.width,
            "motif": [int(number) for number in self.motif.tolist()],
            "overlapping": self.overlapping,
            "active_dims": self._argument("active_dims"),
        }

    def _described(self) -> Mapping[str, object]:
        own = {"order": self.order, "width": self.width, "motif": self.shown}
        return own if self.overlapping else {**own, "overlapping": False}

    def __getitem__(self, index: Any) -> MotifKernel:
        return copy.deepcopy(self)

    def counts(self, strings: EncodedStrings) -> FloatArray:
        """How often the motif occurs in each of n strings: float64, n."""
        motif = self.motif.cpu().numpy().astype(np.int64)
        places = np.flatnonzero(motif)
        return occurrences(strings.tokens, places.tolist(), motif[places].tolist(), self.overlapping)

    def planted(self, strings: EncodedStrings) -> EncodedStrings:
        """Strings with the motif written into them again and again, from each start within one period.

        Periods are the distances at which occurrences may follow each other: those from 1 to the motif's span at which
        its symbols do not contradict each other. What is at a position that may have any symbol stays, and the strings
        are taken in turn.

        Args:
            strings: Some; those that are shorter than the motif stay as they are.

        Example:
            >>> from seqopt.encoding import Encoder
            >>> kernel = MotifKernel(motif=[1, 0, 2, 0, 0, 0])
            >>> kernel.planted(Encoder(alphabet=Alphabet("AB")).encode(["AAAAA"])).tokens.tolist()
            [[1, 1, 2, 1, 1], [1, 1, 1, 2, 1], [1, 1, 1, 1, 2]]
        """
        motif = self.motif.cpu().numpy().astype(np.int64)
        places = np.flatnonzero(motif)
        span = int(places[-1]) + 1
        rows = []
        for period in range(1, span + 1):
            shifts = range(period, span, period)
            if not any(_contradict(motif[: span - shift], motif[shift:span]) for shift in shifts):
                rows += [(period, start) for start in range(period)]
        if not len(strings):
            return strings
        which = np.arange(len(rows)) % len(strings)
        lengths = strings.lengths[which]
        tokens = strings.tokens[which].astype(np.uint16 if motif.max() > 255 else strings.tokens.dtype)
        for row, length, (period, start) in zip(tokens, lengths.tolist(), rows, strict=True):
            for first in range(start, length - span + 1, period):
                row[first + places] = motif[places]
        return EncodedStrings(tokens, lengths)

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

        Returns:
            ``... x n x m`` on the device and in the dtype of ``x1``, float64 for integers.

        Raises:
            InputError: For inputs that are not tokens, or columns as a batch.
        """
        if last_dim_is_batch:
            raise InputError("MotifKernel looks for motifs in whole strings, not in their columns one by one")
        left = self._counted(x1)
        right = left if x2 is x1 else self._counted(x2)
        return 1.0 + left * right if diag else 1.0 + left[..., :, None] * right[..., None, :]

    def _counted(self, x: Tensor) -> Tensor:
        dtype = x.dtype if x.is_floating_point() else torch.float64
        strings = EncodedStrings.from_tensor(x.reshape(x.shape[:-1].numel(), x.shape[-1]))
        return torch.from_numpy(self.counts(strings)).to(x.device, dtype).reshape(x.shape[:-1])

    def self_similarity(self, a: EncodedStrings) -> FloatArray:
        """k(s, s) of each string: float64, n."""
        found: FloatArray = 1.0 + self.counts(a) ** 2
        return found

    def variance(self, a: EncodedStrings, self_a: FloatArray | None = None) -> FloatArray:
        """k(s, s) of each string: float64, n.

        Args:
            a: The strings.
            self_a: What `self_similarity` returned, if it was called.
        """
        return self.self_similarity(a) if self_a is None else self_a

    def cross(
        self,
        a: EncodedStrings,
        b: EncodedStrings | None = None,
        self_a: FloatArray | None = None,
        self_b: FloatArray | None = None,
        dtype: npt.DTypeLike = np.float64,
    ) -> FloatArray:
        """Covariances between encoded strings: the form for whole pools.

        Args:
            a: The strings of the rows.
            b: The strings of the columns; `None` stands for ``a`` again.
            self_a: Ignored.
            self_b: Ignored.
            dtype: float64 or float32.

        Returns:
            ``len(a) x len(b)``.

        Raises:
            InputError: For another dtype.
        """
        if np.dtype(dtype) not in (np.dtype(np.float32), np.dtype(np.float64)):
            raise InputError(f"dtype is {np.dtype(dtype)}; covariances are float64 or float32")
        left = self.counts(a)
        right = left if b is None else self.counts(b)
        return (1.0 + np.multiply.outer(left, right)).astype(dtype, copy=False)

    def paired(self, a: EncodedStrings, b: EncodedStrings, self_a: FloatArray | None = None) -> FloatArray:
        """k(a_i, b_i) for n pairs, n."""
        found: FloatArray = 1.0 + self.counts(a) * self.counts(b)
        return found


def shapes(order: int, width: int) -> Iterator[tuple[int, ...]]:
    """Distances of the symbols of a motif from its first one, for all motifs.

    Example:
        >>> list(shapes(2, 3))
        [(0,), (0, 1), (0, 2)]
    """
    for size in range(1, order + 1):
        for rest in itertools.combinations(range(1, width), size - 1):
            yield (0, *rest)


def occurrences(tokens: Tokens, places: Sequence[int], symbols: Sequence[int], overlapping: bool) -> FloatArray:
    """How often symbols at places occur in each row of tokens: float64, n.

    Args:
        tokens: ``n x W``, 0 after the last symbol.
        places: Distances from the first symbol, from 0 upwards.
        symbols: The numbers there, none of them 0.
        overlapping: Whether occurrences that overlap all count.
    """
    span = places[-1] + 1
    starts = max(0, tokens.shape[1] - span + 1)
    here = np.ones((len(tokens), starts), dtype=np.bool_)
    for place, symbol in zip(places, symbols, strict=True):
        here &= tokens[:, place : place + starts] == symbol
    if overlapping or span == 1:
        return here.sum(axis=1).astype(np.float64)
    found = np.zeros(len(tokens))
    free = np.zeros(len(tokens), dtype=np.int64)
    for start in np.flatnonzero(here.any(axis=0)):
        counted = here[:, start] & (free <= start)
        found += counted
        free[counted] = start + span
    return found


def _contradict(first: npt.NDArray[np.int64], second: npt.NDArray[np.int64]) -> bool:
    """Whether two rows of symbols, 0 for any, name different ones at a position."""
    return bool(((first != second) & (first > 0) & (second > 0)).any())
