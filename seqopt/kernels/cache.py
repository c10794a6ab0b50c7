"""A store of per-order sums, bounded in bytes."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
from torch import Tensor

from seqopt.encoding import EncodedStrings
from seqopt.encoding.derived import once_per_strings


class Sums(Protocol):
    """Per-order sums and, where they were asked for, their derivatives in the gap decay."""

    @property
    def values(self) -> Tensor:
        """The sums."""
        ...

    @property
    def slopes(self) -> Tensor | None:
        """The derivatives."""
        ...


T = TypeVar("T", bound=Sums)


class SumsCache:
    """Least-recently-used store of blocks of per-order sums and, where they were asked for, their derivatives.

    A gap decay determines them; match decay, weights and normalisation do not enter. Copies and pickles of a
    cache start empty; a deep copy of a ``shared`` one is that cache itself. Threads may share one.

    Args:
        budget: Largest number of bytes held. A result that does not fit by itself is never stored.
        shared: Whether copies of what has the cache, such as a kernel, share it.
    """

    def __init__(self, budget: int, *, shared: bool = False) -> None:
        self.budget = budget
        self.shared = shared
        self._entries: OrderedDict[Hashable, Sequence[Any]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, key: Hashable, slopes: bool, compute: Callable[[], Sequence[T]]) -> Sequence[T]:
        """What is stored under ``key``; computed if that is nothing, or lacks needed derivatives."""
        with self._lock:
            found = self._entries.get(key)
            if found is not None and not (slopes and any(sums.slopes is None for sums in found)):
                self._entries.move_to_end(key)
                return found
        # What is about to be computed replaces it, and the two need not be held together.
        with self._lock:
            self._drop(key)
        computed = compute()
        with self._lock:
            self._drop(key)
            size = _size(computed)
            if size <= self.budget:
                self._entries[key] = computed
                self._bytes += size
            while self._bytes > self.budget:
                self._drop(next(iter(self._entries)))
        return computed

    def _drop(self, key: Hashable) -> None:
        dropped = self._entries.pop(key, None)
        if dropped is not None:
            self._bytes -= _size(dropped)

    def clear(self) -> None:
        """Drop everything that is stored."""
        with self._lock:
            self._entries.clear()
            self._bytes = 0

    def __contains__(self, key: Hashable) -> bool:
        return key in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def __deepcopy__(self, memo: dict[int, Any]) -> SumsCache:
        return self if self.shared else SumsCache(self.budget)

    def __getstate__(self) -> dict[str, Any]:
        return {"budget": self.budget, "shared": self.shared}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["budget"], shared=state["shared"])  # type: ignore[misc]


@once_per_strings
def fingerprint(strings: EncodedStrings) -> bytes:
    """A digest that is equal for equal strings, however widely they are padded."""
    longest = int(strings.lengths.max(initial=0))
    tokens = np.ascontiguousarray(strings.tokens[:, :longest], dtype=np.uint16)
    digest = hashlib.blake2b(tokens.tobytes(), digest_size=16)
    digest.update(repr(tokens.shape).encode())
    return digest.digest()


def _size(blocks: Sequence[Sums]) -> int:
    return sum(part.nbytes for sums in blocks for part in (sums.values, sums.slopes) if part is not None)
