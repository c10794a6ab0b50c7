"""Kernel on tuples of building blocks: sums and products of similarities of the blocks, component by component, and the
similarity of the products.

References:
    Duvenaud, D., Nickisch, H., Rasmussen, C. E. (2011). Additive Gaussian processes. NeurIPS 24 (one kernel for each
        subset of the inputs).
    Tripp, A., Bacallado, S., Singh, S., Hernandez-Lobato, J. M. (2023). Tanimoto random features for scalable molecular
        machine learning. NeurIPS 36 (MinMax on counts).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from seqopt.encoding import FeatureRows, Featurizer, MorganFingerprint
from seqopt.errors import InputError
from seqopt.kernels.base import DescribedKernel
from seqopt.kernels.products import ProductSimilarities
from seqopt.kernels.tanimoto import MinMaxKernel

FloatArray = npt.NDArray[np.float64]
Table = npt.NDArray[np.floating]
Numbers = npt.NDArray[np.int64]

WHOLE = 4_000
"""Building blocks up to which the similarities of all pairs are kept (64 MB)."""

COLUMNS = 4_096
"""Most blocks whose similarities with all others are kept where there are more."""

AT_A_TIME = 1_024
"""Rows of similarities that are multiplied at a time: they stay in a processor's cache."""

OFFSET = 1.0
"""Prior variance of what all tuples have in common, in units of the values' variance."""


def subsets(slots: int) -> list[tuple[int, ...]]:
    """Sets of components, smaller ones first.

    Example:
        >>> subsets(2)
        [(0,), (1,), (0, 1)]
    """
    sizes = range(1, slots + 1)
    return [one for size in sizes for one in itertools.combinations(range(slots), size)]


class BlockSimilarities:
    """MinMax similarities of building blocks by counts of their Morgan environments, chirality included.

    Those of all pairs are computed once where there are few blocks. Of many, columns are computed for the blocks that
    have been seen, once for each: N x seen numbers of single precision.

    Args:
        smiles: N building blocks.
        featurizer: Computes what is compared; default counts of Morgan environments up to radius 2.

    Example:
        >>> similarities = BlockSimilarities(["CCO", "CCN", "c1ccccc1"])
        >>> similarities.between(np.array([0, -1]), np.array([0, 2, -1])).tolist()
        [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """

    def __init__(self, smiles: Sequence[str], featurizer: Featurizer | None = None) -> None:
        self.smiles = tuple(smiles)
        self._featurizer = MorganFingerprint(counts=True) if featurizer is None else featurizer
        self._kernel = MinMaxKernel()
        self._rows: FeatureRows | None = None
        self._whole: Table | None = None
        self._columns: Table = np.empty((0, 0), dtype=np.float32)
        self._places: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self.smiles)

    @property
    def rows(self) -> FeatureRows:
        """Features of all blocks."""
        if self._rows is None:
            self._rows = FeatureRows(self._featurizer(self.smiles))
        return self._rows

    def between(self, rows: Numbers, columns: Numbers) -> FloatArray:
        """Similarities, len(rows) x len(columns), of blocks by their numbers; -1 stands for no block.

        No block is similar to none, and to no other.
        """
        found = self._found(np.maximum(rows, 0), np.maximum(columns, 0))
        if (rows < 0).any() or (columns < 0).any():
            either = (rows < 0)[:, None] | (columns < 0)[None]
            both = (rows < 0)[:, None] & (columns < 0)[None]
            found = np.where(either, both.astype(np.float64), found)
        return found

    def weighted(self, rows: Numbers, columns: Numbers, weights: FloatArray) -> FloatArray:
        """Weighted sums of similarities: ``between(rows, columns) @ weights``, without that table for many blocks.

        Args:
            rows: n blocks, none of them -1.
            columns: m blocks, each once; -1 stands for no block.
            weights: m numbers.
        """
        there = columns >= 0
        columns, weights = columns[there], weights[there]
        if len(self) > WHOLE and not self._look_up(columns):
            return np.asarray(self.between(rows, columns) @ weights, dtype=np.float64)
        if len(self) <= WHOLE:
            return np.asarray(self._found(rows, columns) @ weights, dtype=np.float64)
        spread = np.zeros(len(self._places))
        spread[[self._places[number] for number in columns.tolist()]] = weights
        found = np.empty(len(rows))
        for start in range(0, len(rows), AT_A_TIME):
            # Whole rows are read: columns among them, one by one, take longer.
            part = self._columns[rows[start : start + AT_A_TIME], : len(spread)].astype(np.float64)
            found[start : start + AT_A_TIME] = part @ spread
        return found

    def _look_up(self, columns: Numbers) -> bool:
        """Have the columns of some blocks ready; false where there are too many."""
        new = [number for number in dict.fromkeys(columns.tolist()) if number not in self._places]
        if len(self._places) + len(new) > COLUMNS:
            return False
        if new:
            self._grow(len(self._places) + len(new))
            start = len(self._places)
            self._columns[:, start : start + len(new)] = self._kernel.cross(
                self.rows, self.rows.take(np.array(new)), dtype=np.float32
            )
            self._places.update({number: start + place for place, number in enumerate(new)})
        return True

    def _found(self, rows: Numbers, columns: Numbers) -> FloatArray:
        if len(self) <= WHOLE:
            if self._whole is None:
                self._whole = self._kernel.cross(self.rows).astype(np.float32)
            return self._whole[np.ix_(rows, columns)].astype(np.float64)
        # Blocks that have been seen have columns; those that are only looked at need none.
        known = all(number in self._places for number in columns.tolist())
        if not known and (len(columns) > len(rows) or all(number in self._places for number in rows.tolist())):
            return self._found(columns, rows).T
        if not self._look_up(columns):
            return np.asarray(self._kernel.cross(self.rows.take(rows), self.rows.take(columns)), dtype=np.float64)
        places = np.array([self._places[number] for number in columns.tolist()], dtype=np.int64)
        return self._columns[np.ix_(rows, places)].astype(np.float64)

    def _grow(self, wanted: int) -> None:
        room = self._columns.shape[1]
        if wanted > room:
            grown = np.empty((len(self), min(max(wanted, 2 * room, 256), COLUMNS)), dtype=np.float32)
            grown[:, :room] = self._columns if room else 0.0
            self._columns = grown


class ReagentKernel(DescribedKernel):
    r"""Covariance of tuples of building blocks.

    .. math::
        k(x, y) = R(x_0, y_0) \Big(v_0 + \sum_{T} w_T \prod_{s \in T} k_s(x_s, y_s) + w_p\, m(p_x, p_y)\Big), \qquad
        k_s(b, c) = (1 - r_s)\, m(b, c) + r_s [b = c]

    over all subsets T of the components: terms of one component are additive, those of several are interactions. m is
    the MinMax similarity of fingerprints; r_s says how much of a block its fingerprint does not tell. The last term
    compares the products p of the tuples, where they are given; they are made to be compared. R is 1 for tuples of one
    reaction and c for those of two. v_0 = `OFFSET`.

    Parameters are plain numbers, which `seqopt.models.ReagentGP` learns. Terms of blocks are looked up in tables
    (`BlockSimilarities`): no fingerprints of blocks are compared twice.

    Args:
        similarities: Of the blocks, or the SMILES of these.
        slots: Largest number of components S.
        weights: w_T in the order of `subsets`; default 1 over their number for each.
        same: r_s, S; default 0.25.
        between: c, in [0, 1].
        products: Of the tuples; default none, without the last term.
        product: w_p.

    Raises:
        InputError: For numbers that do not fit, or a weight of products without any.

    Example:
        >>> kernel = ReagentKernel(BlockSimilarities(["CC(=O)O", "CN", "CCN"]), 2, weights=[0.5, 0.25, 0.25])
        >>> rows = FeatureRows(np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 2.0]]))
        >>> kernel.variance(rows).tolist(), bool(kernel.cross(rows)[0, 1] < 2.0)
        ([2.0, 2.0], True)
    """

    normalize = False

    def __init__(
        self,
        similarities: BlockSimilarities | Sequence[str],
        slots: int,
        weights: Sequence[float] | None = None,
        same: Sequence[float] | None = None,
        between: float = 0.5,
        products: ProductSimilarities | None = None,
        product: float = 0.0,
    ) -> None:
        super().__init__()
        terms = subsets(slots)
        if not isinstance(similarities, BlockSimilarities):
            similarities = BlockSimilarities(similarities)
        self.similarities = similarities
        self.slots = slots
        self.weights = tuple(map(float, weights if weights is not None else [1.0 / len(terms)] * len(terms)))
        self.same = tuple(map(float, same if same is not None else [0.25] * slots))
        self.between = float(between)
        if len(self.weights) != len(terms) or min(self.weights) < 0:
            raise InputError(f"{slots} components have {len(terms)} terms, each of a weight of at least 0")
        if len(self.same) != slots or not all(0 <= one <= 1 for one in (*self.same, self.between)):
            raise InputError(f"same has {slots} numbers from 0 to 1, and between is one")
        self.products = products
        self.product = float(product)
        if not 0 <= self.product < np.inf or (products is None and self.product):
            raise InputError(
                f"product is {product}; it is a weight of at least 0, and 0 where products are not compared"
            )

    def of_blocks(self) -> ReagentKernel:
        """The terms of the building blocks alone: a kernel that makes no product."""
        return ReagentKernel(self.similarities, self.slots, self.weights, self.same, self.between)

    def _described(self) -> Mapping[str, object]:
        found = {"slots": self.slots, "weights": self.weights, "same": self.same, "between": self.between}
        return found if self.products is None else {**found, "product": self.product}

    def config_arguments(self) -> Mapping[str, Any]:
        """See `seqopt.utils.config.Configurable`."""
        found = {**self._described(), "similarities": list(self.similarities.smiles)}
        return found if self.products is None else {**found, "products": self.products}

    def slot(self, slot: int, rows: Numbers, columns: Numbers) -> FloatArray:
        """k_s between blocks of one component, len(rows) x len(columns)."""
        share = self.same[slot]
        return (1 - share) * self.similarities.between(rows, columns) + share * (rows[:, None] == columns[None])

    def slot_weighted(self, slot: int, rows: Numbers, columns: Numbers, weights: FloatArray) -> FloatArray:
        """``slot(slot, rows, columns) @ weights`` for ``rows`` without -1 and ``columns`` that come once each."""
        share = self.same[slot]
        order = np.argsort(columns)
        places = order[np.minimum(np.searchsorted(columns, rows, sorter=order), len(columns) - 1)]
        own = np.where(columns[places] == rows, weights[places], 0.0)
        return (1 - share) * self.similarities.weighted(rows, columns, weights) + share * own

    def cross(
        self,
        a: FeatureRows,
        b: FeatureRows | None = None,
        self_a: FloatArray | None = None,
        self_b: FloatArray | None = None,
        dtype: npt.DTypeLike = np.float64,
    ) -> FloatArray:
        """Covariances of tuples, len(a) x len(b); see `seqopt.models.covariance.StringKernel`."""
        rows = numbers_of(a)
        columns = rows if b is None else numbers_of(b)
        factors = [self.looked_up(slot, rows[:, slot + 1], columns[:, slot + 1]) for slot in range(self.slots)]
        found = np.full((len(rows), len(columns)), OFFSET)
        for weight, term in zip(self.weights, subsets(self.slots), strict=True):
            product = weight * factors[term[0]]
            for slot in term[1:]:
                product *= factors[slot]
            found += product
        if self.products is not None and self.product:
            found += self.product * self.products.between(rows, None if b is None else columns)
        if self.between < 1:
            found *= np.where(rows[:, :1] == columns[None, :, 0], 1.0, self.between)
        return found.astype(dtype, copy=False)

    def looked_up(self, slot: int, rows: Numbers, columns: Numbers) -> FloatArray:
        """k_s of all pairs of blocks that tuples have in one component, by a table of those that occur."""
        (first, at), (second, to) = (np.unique(one, return_inverse=True) for one in (rows, columns))
        return self.slot(slot, first, second)[at[:, None], to[None]]

    def self_similarity(self, a: FeatureRows) -> FloatArray:
        """k(x, x) of each tuple."""
        return self.variance(a)

    def variance(self, a: FeatureRows, self_a: FloatArray | None = None) -> FloatArray:
        """k(x, x) of each tuple: the sum of all weights."""
        return np.full(len(a), OFFSET + sum(self.weights) + self.product)

    def paired(self, a: FeatureRows, b: FeatureRows, self_a: FloatArray | None = None) -> FloatArray:
        """k(a_i, b_i) for n pairs."""
        return np.array(
            [self.cross(a.take([index]), b.take([index]))[0, 0] for index in range(len(a))], dtype=np.float64
        )

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        """See `gpytorch.kernels.Kernel`; without a graph."""
        first, second = (x.detach().double().numpy() for x in (x1, x2))
        batch = np.broadcast_shapes(first.shape[:-2], second.shape[:-2])
        left = np.broadcast_to(first, (*batch, *first.shape[-2:])).reshape(-1, *first.shape[-2:])
        right = np.broadcast_to(second, (*batch, *second.shape[-2:])).reshape(-1, *second.shape[-2:])
        both = zip(left, right, strict=True)
        if diag:
            found = np.stack([self.paired(FeatureRows(a), FeatureRows(b)) for a, b in both])
            return torch.from_numpy(found.reshape(*batch, first.shape[-2])).to(x1.dtype)
        found = np.stack([self.cross(FeatureRows(a), FeatureRows(b)) for a, b in both])
        return torch.from_numpy(found.reshape(*batch, *found.shape[-2:])).to(x1.dtype)


def numbers_of(rows: object) -> Numbers:
    """Tuples as integers, n x (1 + S): the reaction, then the blocks; -1 where there is none.

    Raises:
        InputError: For rows of something else.
    """
    if not isinstance(rows, FeatureRows):
        raise InputError(f"ReagentKernel compares tuples of building blocks; got {type(rows).__name__}")
    return np.rint(rows.dense()).astype(np.int64)
