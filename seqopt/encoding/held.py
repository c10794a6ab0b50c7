"""Strings whose features are computed once, however often they are asked for."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np
from scipy import sparse

from seqopt.encoding.featured import featured
from seqopt.encoding.features import FeatureMatrix, Featurizer

HELD_BYTES = 1 << 28
"""Bytes of features that are kept of one list: of 250,000 drug-like molecules, all."""

TOGETHER = 1 << 18
"""Most strings whose features are computed, or read from the cache folder, at once: 150 MB of drug-like molecules."""


class HeldStrings(Sequence[str]):
    """A list of strings that keeps the features of those slices that were asked for; a slice shares them.

    What is kept takes `HELD_BYTES` at most: features of further slices are computed, or read, each time. Those of a
    featurizer that keeps the rows of long lists in the cache folder (its attribute ``stored_from`` says from how many
    strings on) are asked for by equal parts of `TOGETHER` at most, of which the last one is kept besides.

    Args:
        strings: The list, which does not change.

    Example:
        >>> from seqopt.encoding import MorganFingerprint
        >>> strings = HeldStrings(["CCO", "CCN", "CCC"])
        >>> first = strings[:2].rows(MorganFingerprint(size=64))
        >>> first is strings[:2].rows(MorganFingerprint(size=64))
        True
    """

    def __init__(self, strings: Sequence[str]) -> None:
        self._strings = strings
        self._places = range(len(strings))
        self._kept: dict[tuple[str, range], FeatureMatrix] = {}
        self._bytes = [0]
        self._last: list[tuple[tuple[str, range], FeatureMatrix]] = []

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> HeldStrings: ...

    def __getitem__(self, index: int | slice) -> str | HeldStrings:
        if not isinstance(index, slice):
            return self._strings[self._places[index]]
        part = HeldStrings(self._strings)
        part._places, part._kept, part._bytes = self._places[index], self._kept, self._bytes
        part._last = self._last
        return part

    def __iter__(self) -> Iterator[str]:
        return iter(self._own())

    def rows(self, featurizer: Featurizer) -> FeatureMatrix:
        """What ``featurizer`` makes of these strings."""
        if self._is_stored(featurizer):
            return self._stored(featurizer)
        name = featurizer.name, self._places
        found = self._kept.get(name)
        if found is None:
            own = self._own()
            found = featurizer(list(own) if featured(own) is None else own)
            self._keep(name, found)
        return found

    def _is_stored(self, featurizer: Featurizer) -> bool:
        least: float = getattr(featurizer, "stored_from", math.inf)
        own = self._places
        return len(self._strings) >= least and len(own) > 0 and own.step == 1 and featured(self._strings) is None

    def _stored(self, featurizer: Featurizer) -> FeatureMatrix:
        """Rows of the parts that these strings lie in."""
        total, own = len(self._strings), self._places
        count = -(-total // TOGETHER)
        ends = [part * total // count for part in range(count + 1)]
        found = []
        for start, stop in itertools.pairwise(ends):
            first, last = max(start, own.start), min(stop, own.stop)
            if first < last:
                found.append(self._together(featurizer, range(start, stop))[first - start : last - start])
        if len(found) == 1:
            return found[0]
        return np.vstack(found) if isinstance(found[0], np.ndarray) else sparse.vstack(found, format="csr")

    def _together(self, featurizer: Featurizer, places: range) -> FeatureMatrix:
        name = featurizer.name, places
        if self._last and self._last[0][0] == name:
            return self._last[0][1]
        found = self._kept.get(name)
        if found is None:
            found = featurizer(list(self._strings[places.start : places.stop]))
            if not self._keep(name, found):
                self._last[:] = [(name, found)]
        return found

    def _keep(self, name: tuple[str, range], rows: FeatureMatrix) -> bool:
        size = _bytes(rows)
        fits = self._bytes[0] + size <= HELD_BYTES
        if fits:
            self._kept[name] = rows
            self._bytes[0] += size
        return fits

    def _own(self) -> Sequence[str]:
        places = self._places
        if places.step != 1:
            return [self._strings[place] for place in places]
        return self._strings if len(places) == len(self._strings) else self._strings[places.start : places.stop]


def _bytes(rows: FeatureMatrix) -> int:
    arrays = [rows] if not hasattr(rows, "indptr") else [rows.data, rows.indices, rows.indptr]
    return sum(int(array.nbytes) for array in arrays)
