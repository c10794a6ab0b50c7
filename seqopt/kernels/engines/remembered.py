"""Sums of parts of strings that are met again: what a search looks at differs in few places from what it has seen.

A genetic search compares children with the strings that were measured, a hundred times a hundred of them. Where strings
are cut into parts (`seqopt.kernels.engines.order_sums`), a child of two parents of one length has one part at most that
neither has, and one more where a symbol is changed besides; where lengths differ it may be several. So the sums of each
part with the parts of the strings that were measured are kept, and only those of parts that are new are computed.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol, TypeVar, cast

import numpy as np
import numpy.typing as npt

from seqopt.encoding import EncodedStrings

FloatArray = npt.NDArray[np.floating]
Indices = npt.NDArray[np.intp]

BUDGET = 1 << 27
"""Bytes beyond which all sums are dropped (128 MiB); see `PartSums`."""

MOST_OTHERS = 4
"""Lists of strings with which parts have been compared of which sums are kept: those met last. When a search has chosen
a string, all are compared with one more."""

DERIVED_SHARE = 4
"""What part of all bytes may be what is derived from others: a quarter. Sums of one call have room beside it."""

ENTRY_BYTES = 150
"""Of a name in a dictionary, besides its symbols."""


class Derived(Protocol):
    """What is kept with sums, and its size."""

    @property
    def nbytes(self) -> int:
        """Bytes."""
        ...


T = TypeVar("T", bound=Derived)

NAME_BYTES = 2
"""Of a symbol in such a name."""

_used: ContextVar[PartSums | None] = ContextVar("_used", default=None)


class PartSums:
    """Sums of parts of strings with the same parts of some others, as long as a search needs them.

    Sums of pairs are kept in single precision, and used only where that was asked for; sums of strings with themselves
    in double precision. They are those that would be computed but for the last digits of single precision, since an
    engine may share work between the strings that it is given together.

    Args:
        budget: Bytes. Before more are held all sums are dropped, to begin anew; what would need more than half of it
            at a time is not kept. Of what is derived from others, at most a quarter is kept. While an array grows, it
            may be there twice.

    Example:
        >>> from seqopt.encoding import Encoder
        >>> from seqopt.kernels.engines import PartSums, order_sums
        >>> known, new = (Encoder().encode(strings) for strings in (["ABCD", "AACD"], ["ABCC", "ABCD"]))
        >>> parts = PartSums()
        >>> with parts.used():
        ...     sums, _ = order_sums(known, new, 0.5, 2, dtype=np.float32, partitions=2)
        ...     again, _ = order_sums(known, new, 0.5, 2, dtype=np.float32, partitions=2)  # nothing is computed
        >>> bool((sums == again).all()), parts.held > 0
        (True, True)
    """

    def __init__(self, budget: int = BUDGET) -> None:
        self.budget = budget
        # Threads may share it, one after the other.
        self._lock = threading.RLock()
        self._names: dict[int, _Names] = {}
        # Of each list of others (0 for strings with themselves), by what else sums depend on.
        self._stores: dict[int, dict[tuple[object, ...], _Store]] = {}
        self._derived: dict[int, dict[tuple[object, ...], Derived | None]] = {}
        # Sums belong to strings by their identity, which must not pass to others.
        self._others: dict[int, EncodedStrings] = {}

    @property
    def held(self) -> int:
        """Bytes of the sums, with the room for more, and of the names of the parts."""
        names = sum(one.nbytes for one in self._names.values())
        sums = sum(store.nbytes for stores in self._stores.values() for store in stores.values())
        return names + sums + self._derived_bytes

    @property
    def _derived_bytes(self) -> int:
        return sum(one.nbytes for made in self._derived.values() for one in made.values() if one is not None)

    def has_room(self, strings: EncodedStrings, partitions: int, shape: tuple[int, ...], dtype: np.dtype) -> bool:
        """Whether sums of one shape for all parts of some strings are kept."""
        of_part = math.prod(shape) * dtype.itemsize + ENTRY_BYTES
        names = NAME_BYTES * float(strings.lengths.sum())
        return 2 * (len(strings) * partitions * of_part + names) <= self.budget

    @contextmanager
    def used(self) -> Iterator[None]:
        """Within this context, `order_sums` and `self_order_sums` of this thread use and fill it."""
        token = _used.set(self)
        try:
            yield
        finally:
            _used.reset(token)

    def derived(self, key: tuple[object, ...], others: EncodedStrings, make: Callable[[int], T | None]) -> T | None:
        """What is derived from some others, for sums with them, and kept while these are among those met last.

        Args:
            key: What it depends on besides the strings.
            others: The others.
            make: Makes it, given how many bytes it may have, which may be none; nothing where it would have more.
        """
        with self._lock:
            self._met(others)
            made = self._derived.setdefault(id(others), {})
            if key not in made:
                made[key] = make(self.budget // DERIVED_SHARE - self._derived_bytes)
            return cast("T | None", made[key])

    def pairs(
        self,
        key: tuple[object, ...],
        others: EncodedStrings,
        strings: EncodedStrings,
        parts: Sequence[EncodedStrings],
        shape: tuple[int, ...],
        compute: Callable[[EncodedStrings, Indices], FloatArray],
    ) -> FloatArray:
        """Sums of N strings with others, each part with the same part of these, in single precision.

        Args:
            key: What sums depend on besides the strings.
            others: The others.
            strings: The strings.
            parts: Their parts.
            shape: Of the sums of one string: so many sums, others.
            compute: Sums of some parts, and which of the parts these are, ascending: ``shape x parts``.

        Returns:
            ``shape x N``.
        """
        with self._lock:
            numbers, store = self._of_pairs(key, others, strings, parts, shape)
            missing, where = store.missing(numbers)
            if len(missing):
                in_places = np.argsort(where)
                new, places = _gathered(strings, parts, where[in_places])
                store.put(missing[in_places], compute(new, places))
            return store.added(numbers)

    def selves(
        self,
        key: tuple[object, ...],
        strings: EncodedStrings,
        parts: Sequence[EncodedStrings],
        shape: tuple[int, ...],
        dtype: np.dtype,
        compute: Callable[[EncodedStrings], FloatArray],
    ) -> FloatArray:
        """Sums of N strings with themselves, part by part.

        Args:
            key: What sums depend on besides the strings.
            strings: The strings.
            parts: Their parts.
            shape: Of the sums of one string: so many sums.
            dtype: Of the sums.
            compute: Sums of some parts, whichever they are: ``shape x parts``.

        Returns:
            ``shape x N``.
        """
        with self._lock:
            numbers, store = self._numbered(0, key, strings, parts, shape, dtype)
            missing, where = store.missing(numbers)
            if len(missing):
                store.put(missing, compute(_gathered(strings, parts, where)[0]))
            return store.added(numbers)

    def noting(
        self,
        key: tuple[object, ...],
        others: EncodedStrings,
        strings: EncodedStrings,
        parts: Sequence[EncodedStrings],
        shape: tuple[int, ...],
    ) -> Callable[[int, FloatArray], None]:
        """What takes note, for `pairs` with the same arguments, of sums that are computed anyway.

        It takes which of the parts they are of, and the sums, ``shape x N``, in any precision.
        """
        with self._lock:
            numbers, store = self._of_pairs(key, others, strings, parts, shape)

        def note(place: int, sums: FloatArray) -> None:
            with self._lock:
                store.put(numbers[place], sums)

        return note

    def _of_pairs(
        self,
        key: tuple[object, ...],
        others: EncodedStrings,
        strings: EncodedStrings,
        parts: Sequence[EncodedStrings],
        shape: tuple[int, ...],
    ) -> tuple[Indices, _Store]:
        self._met(others)
        return self._numbered(id(others), key, strings, parts, shape, np.dtype(np.float32))

    def _met(self, others: EncodedStrings) -> None:
        """Keep what belongs to some others and to those met last before."""
        self._others[id(others)] = self._others.pop(id(others), others)
        while len(self._others) > MOST_OTHERS:
            oldest = next(iter(self._others))
            del self._others[oldest]
            self._stores.pop(oldest, None)
            self._derived.pop(oldest, None)

    def _numbered(
        self,
        of: int,
        key: tuple[object, ...],
        strings: EncodedStrings,
        parts: Sequence[EncodedStrings],
        shape: tuple[int, ...],
        dtype: np.dtype,
    ) -> tuple[Indices, _Store]:
        """Of each part of each string its number, parts x strings, and the sums of all numbers."""
        names, store = self._place(of, key, len(parts), shape, dtype)
        numbers = names.of(strings, parts)
        if self.held + store.growth(names.count) > self.budget:
            self._names, self._stores = {}, {}
            names, store = self._place(of, key, len(parts), shape, dtype)
            numbers = names.of(strings, parts)
        store.grow(names.count)
        return numbers, store

    def _place(
        self, of: int, key: tuple[object, ...], partitions: int, shape: tuple[int, ...], dtype: np.dtype
    ) -> tuple[_Names, _Store]:
        """The names of parts, and the sums of these, as far as there are any."""
        names = self._names.setdefault(partitions, _Names(partitions))
        store = self._stores.setdefault(of, {}).setdefault((*key, partitions, shape, dtype), _Store(shape, dtype))
        return names, store

    def __reduce__(self) -> tuple[type[PartSums], tuple[int]]:
        # Lists are known by their identities, which copies do not have: a copy begins with nothing.
        return PartSums, (self.budget,)


def parts_in_use() -> PartSums | None:
    """What keeps sums of parts in this context, if anything does."""
    return _used.get()


class _Names:
    """Numbers of distinct parts of strings that are cut into so many."""

    def __init__(self, partitions: int) -> None:
        self.count = 0
        self.nbytes = 0
        self._numbers: list[dict[bytes, int]] = [{} for _ in range(partitions)]
        self._last: tuple[EncodedStrings, Indices] | None = None

    def of(self, strings: EncodedStrings, parts: Sequence[EncodedStrings]) -> Indices:
        """Of each part of each string its number, parts x strings."""
        last = self._last
        if last is not None and last[0] is strings:
            return last[1]
        found = np.empty((len(parts), len(strings)), dtype=np.intp)
        for own, part, known in zip(found, parts, self._numbers, strict=True):
            # In one type, since an alphabet that grows changes it.
            tokens = np.ascontiguousarray(part.tokens, dtype=f"u{NAME_BYTES}")
            # Without the zeros at the end, which tell no two apart.
            names: list[bytes] = (
                tokens.view(f"S{tokens.shape[1] * tokens.itemsize}").ravel().tolist()
                if tokens.shape[1]
                else [b""] * len(tokens)
            )
            own[:] = [known.get(name, -1) for name in names]
            for string in np.flatnonzero(own < 0).tolist():
                number = known.setdefault(names[string], self.count)
                if number == self.count:
                    self.count += 1
                    self.nbytes += len(names[string]) + ENTRY_BYTES
                own[string] = number
        self._last = strings, found
        return found


def _gathered(
    strings: EncodedStrings, parts: Sequence[EncodedStrings], where: Indices
) -> tuple[EncodedStrings, Indices]:
    """Some of the parts of some strings, and which of the parts each is, given where they stand, parts x strings."""
    places, string = np.divmod(where, len(strings))
    tokens = np.zeros((len(where), max(part.width for part in parts)), dtype=strings.tokens.dtype)
    lengths = np.empty(len(where), dtype=np.int32)
    for place in np.unique(places).tolist():
        mine, part = places == place, parts[place]
        tokens[mine, : part.width] = part.tokens[string[mine]]
        lengths[mine] = part.lengths[string[mine]]
    return EncodedStrings(tokens, lengths), places


@dataclass
class _Store:
    """Sums of numbered parts, each of a shape."""

    shape: tuple[int, ...]
    dtype: np.dtype
    values: FloatArray = field(init=False)
    known: npt.NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        self.values = np.empty((0, *self.shape), dtype=self.dtype)
        self.known = np.zeros(0, dtype=np.bool_)

    @property
    def nbytes(self) -> int:
        return self.values.nbytes + self.known.nbytes

    def growth(self, count: int) -> int:
        """Bytes that room for so many parts takes besides what there is."""
        each = math.prod(self.shape) * self.dtype.itemsize + self.known.itemsize
        return self._more(count) * each

    def grow(self, count: int) -> None:
        """Make room for so many parts."""
        if more := self._more(count):
            # In place where there is room behind them; nothing else looks at these arrays.
            self.values.resize((len(self.values) + more, *self.shape), refcheck=False)
            self.known.resize(len(self.known) + more, refcheck=False)

    def _more(self, count: int) -> int:
        here = len(self.known)
        # Half as much again, so that few calls make room.
        return max(count, here + here // 2) - here if count > here else 0

    def missing(self, numbers: Indices) -> tuple[Indices, Indices]:
        """Which of some numbers have no sums yet, and where each of these stands first."""
        flat = numbers.reshape(-1)
        where = np.flatnonzero(~self.known[flat])
        found, first = np.unique(flat[where], return_index=True)
        return found, where[first]

    def put(self, numbers: Indices, sums: FloatArray) -> None:
        """Keep sums, ``shape x numbers``."""
        with np.errstate(over="ignore"):  # infinite, as they would be if they were computed in single precision
            self.values[numbers] = np.moveaxis(sums, -1, 0)
        self.known[numbers] = True

    def added(self, numbers: Indices) -> FloatArray:
        """Of each string, a column of numbers, the sums of its parts, ``shape x strings``."""
        total = np.zeros((numbers.shape[1], *self.shape), dtype=self.dtype)
        for own in numbers:
            total += self.values[own]
        return np.ascontiguousarray(np.moveaxis(total, 0, -1))
