"""Strings as rows of features: fingerprints, frequencies, latent coordinates, alone or with their tokens.

A *featurizer* turns strings into a matrix of one row per string. `FeatureEncoder` makes an encoder of it, with the same
methods as `Encoder`, so that a Gaussian process takes either; `JointEncoder` gives tokens followed by features.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, Self, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch
from scipy import sparse

from seqopt.encoding.encoded import EncodedStrings, Encoder
from seqopt.encoding.featured import FeaturedStrings, featured
from seqopt.errors import InputError
from seqopt.utils.config import Configurable


class Encoded(Protocol):
    """Strings as rows of numbers, in the form that a model's kernel evaluates: tokens, features or both."""

    def __len__(self) -> int: ...

    @property
    def width(self) -> int:
        """Number of columns as a tensor."""
        ...

    def take(self, indices: npt.ArrayLike | slice) -> Self:
        """The rows at ``indices`` (any numpy row index)."""
        ...

    def padded(self, width: int) -> Self:
        """The same strings in ``width`` columns."""
        ...

    def joined(self, other: Self) -> Self:
        """These strings, followed by those of ``other``."""
        ...

    def to_tensor(self, width: int | None = None, device: torch.device | str | None = None) -> torch.Tensor:
        """Rows as float64, the form in which models hold inputs."""
        ...


@runtime_checkable
class StringEncoder(Protocol):
    """Turns strings into rows of numbers."""

    @property
    def name(self) -> str:
        """What it makes of strings: the tokeniser's name, the featurizer's, or both."""
        ...

    def encode(self, strings: Sequence[Any]) -> Any:
        """The strings (or queries, where contexts are encoded, too) as an `Encoded`, always of the same class."""
        ...


FeatureMatrix: TypeAlias = Any
"""A float64 array or `scipy.sparse.csr_array` (which has no types), one row per string."""


@runtime_checkable
class Featurizer(Protocol):
    """Turns strings into rows of numbers.

    Attributes:
        name: Which one it is, settings included: equal names mean equal features.
        size: Number of columns.
    """

    name: str
    size: int

    def __call__(self, strings: Sequence[str]) -> FeatureMatrix:
        """One row for each of ``strings``: ``n x size``, float64.

        Raises:
            InputError: For a string that has no features (an unreadable SMILES); the message names it.
        """
        ...


@dataclass(frozen=True)
class FeatureRows:
    """Strings as rows of features, with the methods of `EncodedStrings` that models use.

    Attributes:
        values: ``n x d``, float64.
    """

    values: FeatureMatrix

    def __len__(self) -> int:
        return int(self.values.shape[0])

    @property
    def width(self) -> int:
        """Number of columns d."""
        return int(self.values.shape[1])

    def take(self, indices: npt.ArrayLike | slice) -> FeatureRows:
        """The rows at ``indices`` (any numpy row index); those of a slice may share memory with these."""
        if isinstance(indices, slice) and sparse.issparse(self.values) and self.values.format == "csr":
            start, stop, step = indices.indices(len(self))
            if step == 1 and start < stop:
                return FeatureRows(_rows_between(self.values, start, stop))
        return FeatureRows(self.values[indices])

    def padded(self, width: int) -> FeatureRows:
        """The same rows: features are never padded.

        Raises:
            InputError: If ``width`` is not the number of columns.
        """
        if width != self.width:
            raise InputError(f"rows of {self.width} features have no {width} columns")
        return self

    def joined(self, other: FeatureRows) -> FeatureRows:
        """These rows, followed by those of ``other``."""
        if isinstance(self.values, np.ndarray) and isinstance(other.values, np.ndarray):
            return FeatureRows(np.concatenate([self.values, other.values]))
        return FeatureRows(sparse.csr_array(sparse.vstack([self.values, other.values], format="csr")))

    def dense(self) -> npt.NDArray[np.float64]:
        """As a dense array."""
        rows: npt.NDArray[np.float64] = self.values if isinstance(self.values, np.ndarray) else self.values.toarray()
        return rows

    def to_tensor(self, width: int | None = None, device: torch.device | str | None = None) -> torch.Tensor:
        """Rows as float64, ``n x d``, the form in which models hold inputs."""
        rows = self if width is None else self.padded(width)
        return torch.from_numpy(np.array(rows.dense(), dtype=np.float64)).to(device=device)


def _rows_between(values: FeatureMatrix, start: int, stop: int) -> FeatureMatrix:
    """Rows of a sparse array from ``start`` to ``stop``, without the copy that slicing would make."""
    first, last = int(values.indptr[start]), int(values.indptr[stop])
    found = sparse.csr_array((stop - start, values.shape[1]), dtype=values.dtype)
    # Given to the constructor, arrays that are much smaller than what they are part of would be copied.
    found.data, found.indices = values.data[first:last], values.indices[first:last]
    found.indptr = values.indptr[start : stop + 1] - values.indptr[start]
    # Known of all rows, so that it is not looked for again.
    found.has_sorted_indices, found.has_canonical_format = values.has_sorted_indices, values.has_canonical_format
    return found


class StoredRows(FeatureRows):
    """Features that were computed before, and are read when their values are asked for.

    Args:
        strings: Has the features.
        name: Of the featurizer.
        size: Its number of columns.
    """

    streamed = True
    """There may be too many for all to be held at a time: what can be is computed in blocks."""

    def __init__(self, strings: FeaturedStrings, name: str, size: int) -> None:
        self.__dict__.update(strings=strings, name=name, size=size)

    @cached_property
    def values(self) -> FeatureMatrix:
        """``n x d``: all of them are read."""
        return self.__dict__["strings"].features(self.__dict__["name"])

    def __len__(self) -> int:
        return len(self.__dict__["strings"])

    @property
    def width(self) -> int:
        """See `FeatureRows`."""
        return int(self.__dict__["size"])

    def take(self, indices: npt.ArrayLike | slice) -> FeatureRows:
        """The rows at ``indices``, which are read."""
        return FeatureRows(self.__dict__["strings"].take(indices).features(self.__dict__["name"]))


@runtime_checkable
class SelectiveFeaturizer(Featurizer, Protocol):
    """A featurizer that has no features for some strings, and says so without computing any."""

    def unsupported(self, strings: Sequence[str]) -> dict[int, str]:
        """Why strings have no features, by their indices; empty where all have."""
        ...


@runtime_checkable
class RowReader(Featurizer, Protocol):
    """A featurizer that can leave the features of many strings where they are until they are looked at."""

    def encoded(self, strings: Sequence[str]) -> FeatureRows:
        """The features of ``strings``."""
        ...


def refused(read: Callable[[Sequence[str]], object], strings: Sequence[str]) -> dict[int, str]:
    """What ``read`` complains of in each string on its own, as `SelectiveFeaturizer.unsupported` returns it.

    Args:
        read: Raises `InputError` for strings of which one cannot be read.
        strings: What it is to read.

    Example:
        >>> from seqopt.encoding import CodonFeatures
        >>> list(refused(CodonFeatures(), ["ATG", "AT"]))
        [1]
    """
    found: dict[int, str] = {}

    # To read many at once is far faster than one by one: halves that are read without a complaint hold none.
    def look(start: int, stop: int) -> None:
        try:
            read(strings[start:stop])
        except InputError as error:
            if stop - start == 1:
                found[start] = str(error)
            else:
                middle = (start + stop) // 2
                look(start, middle)
                look(middle, stop)

    look(0, len(strings))
    return found


class FeatureEncoder(Configurable):
    """Turns strings into `FeatureRows`.

    Args:
        featurizer: Computes the features.

    Example:
        >>> class Lengths:
        ...     name, size = "length", 1
        ...     def __call__(self, strings):
        ...         return np.array([[float(len(string))] for string in strings])
        >>> FeatureEncoder(Lengths()).encode(["CCO", "C"]).values.tolist()
        [[3.0], [1.0]]
    """

    def __init__(self, featurizer: Featurizer) -> None:
        self.featurizer = featurizer

    @property
    def name(self) -> str:
        """That of the featurizer."""
        return self.featurizer.name

    def encode(self, strings: Sequence[str]) -> FeatureRows:
        """The features of ``strings``.

        Raises:
            InputError: For an item that is no ``str``, or a string that has no features.
        """
        if isinstance(strings, str):
            raise InputError(f"expected a list of strings, got the single string {strings!r}: write [{strings!r}]")
        if (stored := featured(strings, self.featurizer.name)) is not None:
            return StoredRows(stored, self.featurizer.name, self.featurizer.size)
        for position, string in enumerate(strings):
            if not isinstance(string, str):
                raise InputError(f"item {position} is {string!r} of type {type(string).__name__}; seqopt works on str")
        if isinstance(self.featurizer, RowReader):
            return self.featurizer.encoded(strings)
        return FeatureRows(self.featurizer(strings))

    def unsupported(self, strings: Sequence[str]) -> dict[int, str]:
        """See `SelectiveFeaturizer.unsupported`."""
        return self.featurizer.unsupported(strings) if isinstance(self.featurizer, SelectiveFeaturizer) else {}


@dataclass(frozen=True)
class TokensAndFeatures:
    """Strings as tokens and as features. As a tensor: the features first, then the tokens, padded on the right.

    Attributes:
        tokens: The n strings as symbols.
        features: Their features.
    """

    tokens: EncodedStrings
    features: FeatureRows

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def width(self) -> int:
        """Number of columns of both."""
        return self.features.width + self.tokens.width

    @property
    def streamed(self) -> bool:
        """Whether features are read when they are asked for: see `StoredRows`."""
        return isinstance(self.features, StoredRows)

    def take(self, indices: npt.ArrayLike | slice) -> TokensAndFeatures:
        """The rows at ``indices`` (any numpy row index)."""
        return TokensAndFeatures(self.tokens.take(indices), self.features.take(indices))

    def padded(self, width: int) -> TokensAndFeatures:
        """The same strings in ``width`` columns.

        Raises:
            InputError: If a string does not fit.
        """
        return TokensAndFeatures(self.tokens.padded(width - self.features.width), self.features)

    def joined(self, other: TokensAndFeatures) -> TokensAndFeatures:
        """These strings, followed by those of ``other``."""
        return TokensAndFeatures(self.tokens.joined(other.tokens), self.features.joined(other.features))

    def to_tensor(self, width: int | None = None, device: torch.device | str | None = None) -> torch.Tensor:
        """Rows as float64, the form in which models hold inputs."""
        encoded = self if width is None else self.padded(width)
        return torch.cat([encoded.features.to_tensor(device=device), encoded.tokens.to_tensor(device=device)], dim=1)


class JointEncoder(Configurable):
    """Turns strings into `TokensAndFeatures`.

    Args:
        features: Encodes features.
        tokens: Encodes symbols. Default: characters; a surrogate that is given this encoder puts that of its space in
            place of the default.
    """

    def __init__(self, features: FeatureEncoder, tokens: Encoder | None = None) -> None:
        self.features = features
        self.tokens = Encoder() if tokens is None else tokens
        self.tokens_chosen = tokens is not None

    def config_arguments(self) -> dict[str, Any]:
        """See `seqopt.utils.config.Configurable`."""
        return {"features": self.features, "tokens": self.tokens if self.tokens_chosen else None}

    @property
    def name(self) -> str:
        """Those of both encoders."""
        return f"{self.tokens.name} + {self.features.name}"

    def encode(self, strings: Sequence[str]) -> TokensAndFeatures:
        """Tokens and features of ``strings``.

        Raises:
            InputError: As `Encoder.encode` and `FeatureEncoder.encode` do.
        """
        return TokensAndFeatures(self.tokens.encode(strings), self.features.encode(strings))

    def unsupported(self, strings: Sequence[str]) -> dict[int, str]:
        """See `SelectiveFeaturizer.unsupported`."""
        return self.features.unsupported(strings)
