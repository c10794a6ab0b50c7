"""Similarities of the products of reactions, which are made when they are compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from seqopt.encoding import FeatureRows, Featurizer, MorganFingerprint
from seqopt.errors import InputError
from seqopt.kernels.tanimoto import MinMaxKernel
from seqopt.spaces.combinatorial import CombinatorialSpace
from seqopt.utils.config import Configurable

FloatArray = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]

KEPT = 30_000
"""Products whose fingerprints are kept (some 40 MB); beyond, those that are not asked for now are forgotten."""


class ProductSimilarities(Configurable):
    """MinMax similarities of products, by counts of their Morgan environments, chirality included.

    A product is made, and its fingerprint computed, when it is compared for the first time: a millisecond or two each.
    Tuples that give no product are alike, and like no product.

    Args:
        space: Makes the products.
        featurizer: Computes what is compared; default counts of Morgan environments up to radius 2.

    Example:
        >>> space = CombinatorialSpace(
        ...     ["[C:1](=O)[OH].[N;H2:2]>>[C:1](=O)[N:2]"], {"acids": ["CC(=O)O", "CCC(=O)O"], "amines": ["CN", "CCN"]}
        ... )
        >>> similarities = ProductSimilarities(space)
        >>> similarities.between(np.array([[0, 0, 2], [0, 1, 3]])).round(2).tolist()
        [[1.0, 0.26], [0.26, 1.0]]
    """

    def __init__(self, space: CombinatorialSpace, featurizer: Featurizer | None = None) -> None:
        self.space = space
        self.featurizer = MorganFingerprint(counts=True) if featurizer is None else featurizer
        self._kernel = MinMaxKernel()
        self._rows: FeatureRows | None = None
        self._places: dict[tuple[int, ...], int] = {}

    def config_arguments(self) -> Mapping[str, Any]:
        """See `seqopt.utils.config.Configurable`."""
        return {"space": self.space, "featurizer": self.featurizer}

    def __len__(self) -> int:
        """Number of products whose fingerprints are kept."""
        return len(self._places)

    def between(self, rows: Numbers, columns: Numbers | None = None) -> FloatArray:
        """Similarities, len(rows) x len(columns), of the products of tuples: rows of a reaction and blocks.

        Args:
            rows: Of a reaction and blocks; -1 where a reaction takes fewer.
            columns: Likewise; `None` stands for ``rows`` again, and costs half.
        """
        if not len(rows) or (columns is not None and not len(columns)):
            return np.zeros((len(rows), len(rows) if columns is None else len(columns)))
        tuples = rows if columns is None else np.concatenate([rows, columns])
        places = self._found(tuples)
        assert self._rows is not None
        left = self._rows.take(places[: len(rows)])
        right = None if columns is None else self._rows.take(places[len(rows) :])
        return np.asarray(self._kernel.cross(left, right), dtype=np.float64)

    def _found(self, tuples: Numbers) -> Numbers:
        """Places of the tuples among the fingerprints that are kept."""
        asked = list(map(tuple, tuples.tolist()))
        new = [one for one in dict.fromkeys(asked) if one not in self._places]
        if len(self._places) + len(new) > KEPT:
            still = [one for one in dict.fromkeys(asked) if one in self._places]
            if self._rows is not None:
                self._rows = self._rows.take(np.array([self._places[one] for one in still], dtype=np.int64))
            self._places = {one: place for place, one in enumerate(still)}
        if new:
            features = self._features(new)
            self._rows = features if not self._places or self._rows is None else self._rows.joined(features)
            start = len(self._places)
            self._places.update({one: start + place for place, one in enumerate(new)})
        return np.array([self._places[one] for one in asked], dtype=np.int64)

    def _features(self, tuples: list[tuple[int, ...]]) -> FeatureRows:
        made = [self._made(one) for one in tuples]
        there = [key for key in made if key is not None]
        values = sparse.csr_array(self.featurizer(there)) if there else sparse.csr_array((0, self.featurizer.size))
        # What cannot be made has no environments.
        places = np.cumsum([key is not None for key in made]) - 1
        rows = sparse.csr_array(sparse.vstack([values, sparse.csr_array((1, self.featurizer.size))], format="csr"))
        return FeatureRows(rows[np.where([key is not None for key in made], places, len(there))])

    def _made(self, row: tuple[int, ...]) -> str | None:
        """The product of a tuple, accepted by the space or not."""
        try:
            return self.space.to_string(tuple(number for number in row if number >= 0))
        except InputError:
            return None
