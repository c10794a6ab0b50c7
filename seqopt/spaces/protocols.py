"""What a space of allowed strings offers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from seqopt.encoding import EncodedStrings, Encoder


@runtime_checkable
class Space(Protocol):
    """A set of allowed strings.

    Attributes:
        kind: What the strings are: ``"molecule"``, ``"protein"``, ``"dna"``, ``"rna"`` or ``"text"``.
        encoder: Turns keys into tokens, with one alphabet for the whole space.
    """

    kind: str
    encoder: Encoder

    def sample(self, n: int, rng: np.random.Generator) -> list[str]:
        """``n`` distinct random strings, fewer only if the space holds fewer."""
        ...

    def contains(self, string: str) -> bool:
        """Whether the space allows ``string``."""
        ...

    def key(self, string: str) -> str:
        """The identity of ``string``: two writings of one molecule share a key. Models see keys.

        Raises:
            InputError: If ``string`` is not a valid string of this kind.
        """
        ...


@runtime_checkable
class PoolSpace(Space, Protocol):
    """A space that is a finite list: numbered, encoded once, scored in blocks."""

    @property
    def encoded(self) -> EncodedStrings:
        """All keys, encoded, in the order of the pool."""
        ...

    @property
    def keys(self) -> Sequence[str]:
        """Keys of all candidates, in the order of the pool."""
        ...

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> str:
        """The string at ``index``, as its owner wrote it."""
        ...

    def index_of(self, string: str) -> int | None:
        """Position of the candidate with the same key, or `None`."""
        ...
