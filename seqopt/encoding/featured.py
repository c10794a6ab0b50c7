"""Strings that carry features which were computed before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, overload, runtime_checkable

import numpy.typing as npt


@runtime_checkable
class FeaturedStrings(Protocol):
    """A sequence of strings, such as the keys of a pool on disk, that has features of them at hand.

    A featurizer that is called with one takes the features from there instead of computing them, so that no string has
    to be read, or even made.
    """

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[str]: ...

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> FeaturedStrings: ...

    def take(self, indices: npt.ArrayLike | slice) -> FeaturedStrings:
        """Those at some places."""
        ...

    def has_features(self, name: str) -> bool:
        """Whether the features of a featurizer of this name are at hand."""
        ...

    def features(self, name: str) -> Any:
        """The features of the featurizer of this name, ``n x size``: what it would compute of the strings."""
        ...


def featured(strings: object, name: str | None = None) -> FeaturedStrings | None:
    """Strings that carry features, of the featurizer of a name where one is given; `None` for others."""
    if isinstance(strings, FeaturedStrings) and (name is None or strings.has_features(name)):
        return strings
    return None
