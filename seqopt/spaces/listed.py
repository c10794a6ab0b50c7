"""What pools have in common, wherever their candidates are kept: identities, membership and draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from seqopt.errors import InputError
from seqopt.strings.identity import required_keys


class Listed:
    """Candidates that are found by their keys: part of `CandidateSet` and of `StoredPool`.

    Attributes:
        kind: Of the candidates; see `CandidateSet`.
        standardize: Whether molecules are standardized before they are compared.
    """

    kind: str
    standardize: bool

    if TYPE_CHECKING:

        def known_key(self, string: str) -> str | None: ...

        def index_of(self, string: str) -> int | None: ...

        def __len__(self) -> int: ...

        def __getitem__(self, index: int) -> str: ...

    def key(self, string: str) -> str:
        """Identity of ``string``; see `CandidateSet`.

        Raises:
            InputError: If ``string`` is not a valid string of this pool's kind.
        """
        return self.known_key(string) or self.keys_of([string])[0]

    def keys_of(self, strings: Sequence[str]) -> list[str]:
        """The key of each of ``strings``, which need not be candidates; those of the candidates are ``keys``.

        Raises:
            InputError: If one is not a valid string of this pool's kind.
        """
        found = {string: self.known_key(string) for string in strings}
        others = [string for string, key in found.items() if key is None]
        if others:
            found.update(zip(others, required_keys(others, self.kind, standardize=self.standardize), strict=True))
        return [key for string in strings if (key := found[string]) is not None]

    def contains(self, string: str) -> bool:
        """Whether a candidate has the key of ``string``."""
        try:
            return self.index_of(string) is not None
        except InputError:
            return False

    def sample(self, n: int, rng: np.random.Generator) -> list[str]:
        """``n`` distinct candidates drawn uniformly; all of them, shuffled, when there are fewer."""
        chosen = rng.choice(len(self), size=min(n, len(self)), replace=False)
        return [self[int(index)] for index in chosen]

    def __contains__(self, string: object) -> bool:
        return isinstance(string, str) and self.contains(string)
