"""Strings whose features are computed once, however often they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

from seqopt.encoding.featured import featured
from seqopt.encoding.features import FeatureMatrix, Featurizer

HELD_BYTES = 1 << 28
"""Bytes of features that are kept of one list: of 250,000 drug-like molecules, all."""


class HeldStrings(Sequence[str]):
    """A list of strings that keeps the features of those slices that were asked for; a slice shares them.

    What is kept takes `HELD_BYTES` at most: features of further slices are computed, or read, each time.

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

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> HeldStrings: ...

    def __getitem__(self, index: int | slice) -> str | HeldStrings:
        if isinstance(index, int):
            return self._strings[self._places[index]]
        part = HeldStrings(self._strings)
        part._places, part._kept, part._bytes = self._places[index], self._kept, self._bytes
        return part

    def __iter__(self) -> Iterator[str]:
        return iter(self._own())

    def rows(self, featurizer: Featurizer) -> FeatureMatrix:
        """What ``featurizer`` makes of these strings."""
        name = featurizer.name, self._places
        found = self._kept.get(name)
        if found is None:
            own = self._own()
            found = featurizer(list(own) if featured(own) is None else own)
            size = _bytes(found)
            if self._bytes[0] + size <= HELD_BYTES:
                self._kept[name] = found
                self._bytes[0] += size
        return found

    def _own(self) -> Sequence[str]:
        places = self._places
        return self._strings if len(places) == len(self._strings) else self._strings[places.start : places.stop]


def _bytes(rows: FeatureMatrix) -> int:
    arrays = [rows] if not hasattr(rows, "indptr") else [rows.data, rows.indices, rows.indptr]
    return sum(int(array.nbytes) for array in arrays)
