"""What the spaces of symbol sequences share: whole populations as arrays of symbol numbers.

A population is an ``n x W`` integer array, one row per string, one symbol number per column from 0, and `PADDING` after
the last symbol of a row. A space says how to draw, change and cross such arrays; this module turns strings into arrays
and back, asks the ``accept`` predicate, tries again where a row is refused, and keeps samples distinct.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seqopt.encoding import Encoder
from seqopt.encoding.encoded import LARGEST_TABLE
from seqopt.errors import InputError
from seqopt.spaces.predicates import accepted
from seqopt.strings.identity import KINDS, identity_keys, required_keys
from seqopt.utils.config import Configurable
from seqopt.utils.shown import Shown

Population = npt.NDArray[np.intp]
"""``n x W`` symbol numbers."""

BoolArray = npt.NDArray[np.bool_]

PADDING = -1
"""Stands after the last symbol of a row."""

UNKNOWN = -2
UNKNOWN_BYTE = 255
"""Stands for a character that is no symbol."""

ENUMERATION_LIMIT = 1_000_000
"""Largest space that `SequenceSpace.enumerate` lists, and that sampling searches completely if need be."""

DRAWS_PER_STRING = 1000
"""Random strings tried for each that is asked for, before sampling gives up."""

DRAWN_SYMBOLS = 2**20
"""Symbols drawn in one go, which bounds the memory of a large sample of long strings."""

MOVE_ATTEMPTS = 20
"""Children tried for each parent, before the parent is kept."""

BLOCK = 4096
"""Most strings looked at in one go where a whole space is searched."""


@dataclass(frozen=True)
class Parents:
    """What children were made of.

    Attributes:
        rows: One parent of each child.
        permitted: Whether it is known to keep to the constraints of the space.
    """

    rows: Population
    permitted: BoolArray

    def __getitem__(self, some: npt.NDArray[np.intp] | BoolArray | slice) -> Parents:
        return Parents(self.rows[some], self.permitted[some])


class SequenceSpace(Shown, Configurable, ABC):
    """A space of symbol sequences; individuals are plain strings.

    Args:
        symbols: The symbols, numbered by their index.
        width: Most symbols that a string has.
        kind: What the strings are, one of `seqopt.strings.identity.KINDS`.
        accept: Keeps only strings for which this predicate holds.
        encoder: Turns keys into tokens.
    """

    def __init__(
        self, symbols: Sequence[str], width: int, *, kind: str, accept: Callable[[str], bool] | None, encoder: Encoder
    ) -> None:
        self.symbols = tuple(symbols)
        self.kind = kind
        self.accept = accept
        self.encoder = encoder
        self._table = np.array(self.symbols)
        self._order = np.argsort(self._table)
        widths = {len(symbol) for symbol in self.symbols}
        self._draws_at_once = max(DRAWN_SYMBOLS // width, 16)
        self._symbol_width = widths.pop() if len(widths) == 1 else None
        # Of single characters, a table is several times faster than a search.
        self._of_code: Population | None = None
        if self._symbol_width == 1 and (highest := max(map(ord, self.symbols))) <= LARGEST_TABLE:
            self._of_code = np.full(highest + 1, UNKNOWN)
            self._of_code[[ord(symbol) for symbol in self.symbols]] = np.arange(len(self.symbols))
            self._of_code[0] = PADDING
        # And of ASCII, one of bytes is faster still.
        self._of_byte: bytes | None = None
        if self._symbol_width == 1 and all(symbol.isascii() for symbol in self.symbols):
            numbers = {ord(symbol): number for number, symbol in enumerate(self.symbols)}
            self._of_byte = bytes(numbers.get(code, UNKNOWN_BYTE) for code in range(256))

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of strings, ``accept`` not counted: exact, however large."""

    @property
    def log10_size(self) -> float:
        """Decimal logarithm of `size`."""
        return math.log10(self.size)

    @abstractmethod
    def _random(self, n: int, rng: np.random.Generator) -> Population:
        """``n`` random rows."""

    @abstractmethod
    def _changed(self, rows: Population, rng: np.random.Generator) -> Population:
        """Every row mutated once."""

    @abstractmethod
    def _crossed(
        self, first: Population, second: Population, rng: np.random.Generator
    ) -> tuple[Population, Population]:
        """Two children of every pair of rows."""

    @abstractmethod
    def _unranked(self, ranks: npt.NDArray[np.int64]) -> Population:
        """The rows at ``ranks`` of the space's enumeration; only for spaces of at most `ENUMERATION_LIMIT` strings."""

    @abstractmethod
    def _rows(self, strings: Sequence[str]) -> Population | None:
        """Symbol numbers of ``strings``; `None` when one of them does not lie in the space, constraints left aside."""

    @abstractmethod
    def _explained(self, string: str) -> str:
        """Why `_rows` refuses ``string``."""

    def _repaired(self, rows: Population, rng: np.random.Generator) -> Population:
        """Rows nearer to the constraints of the space."""
        return rows

    def _allowed(self, rows: Population) -> BoolArray:
        """Which rows meet the constraints of the space."""
        return np.ones(len(rows), dtype=np.bool_)

    def _settled(
        self, rows: Population, head: Parents, tail: Parents, rng: np.random.Generator
    ) -> tuple[Population, BoolArray]:
        """Children nearer to the constraints of the space, and which of them meet these.

        Args:
            rows: Children that begin as those of ``head`` and end as those of ``tail``, but for what a move changed.
            head: Parents.
            tail: Parents: those of ``head``, after a mutation.
            rng: Source of randomness.
        """
        repaired = self._repaired(rows, rng)
        return repaired, self._allowed(repaired)

    def _parents(self, strings: list[str]) -> Parents:
        """Parents by their strings.

        Raises:
            InputError: If one does not lie in the space.
        """
        return Parents(self._population(strings), np.zeros(len(strings), dtype=np.bool_))

    def _constrained(self, string: str) -> str | None:
        """Which constraint leaves out a string that `_rows` does not know; `None` if it is none of this kind at all."""
        return None

    def _broken(self, row: Population) -> str:
        """Which constraint a ``1 x W`` row breaks."""
        return "it breaks a constraint"

    def _normalised(self, string: str) -> str:
        """``string`` as the space writes it."""
        stripped = string.strip()
        return stripped if self.kind in ("molecule", "text") else stripped.upper()

    def key(self, string: str) -> str:
        """Identity of ``string``: see `seqopt.strings.identity`.

        Raises:
            InputError: If ``string`` is not a valid string of this kind.
        """
        return self.keys_of([string])[0]

    def keys_of(self, strings: Sequence[str]) -> list[str]:
        """The key of each of ``strings``.

        Raises:
            InputError: If one is not a valid string of this kind.
        """
        normalised = [self._normalised(string) for string in strings]
        return required_keys(normalised, self.kind, shown=strings)

    def contains(self, string: str) -> bool:
        """Whether the space allows ``string``."""
        try:
            self.from_string(string)
        except InputError:
            return False
        return True

    def __contains__(self, string: object) -> bool:
        return isinstance(string, str) and self.contains(string)

    def to_string(self, individual: str) -> str:
        """The string itself."""
        return individual

    def to_strings(self, individuals: Sequence[str]) -> list[str]:
        """The strings themselves."""
        return list(individuals)

    def from_string(self, string: str) -> str:
        """``string`` as the space writes it.

        Raises:
            InputError: If ``string`` is not in the space; the message says why.
        """
        if (reason := self.left_out(string)) is not None:
            raise InputError(f"{_shown(string)} is not in the space: {reason}")
        return self._normalised(string)

    def left_out(self, string: str) -> str | None:
        """Why the constraints of the space leave out ``string``; `None` if it is in the space.

        Raises:
            InputError: If the space cannot read it: of another length or with other symbols; the message says why.
        """
        if not isinstance(string, str):
            raise InputError(f"expected a str, got {string!r} of type {type(string).__name__}")
        normalised = self._normalised(string)
        rows = self._rows([normalised])
        if rows is None:
            if (constraint := self._constrained(normalised)) is not None:
                return constraint
            raise InputError(f"{_shown(string)} is not in the space: {self._explained(normalised)}")
        if not self._allowed(rows)[0]:
            return self._broken(rows)
        self.key(normalised)
        if not accepted(normalised, self.accept):
            return "accept() refuses it"
        return None

    def near_left_out(self, string: str, n: int, rng: np.random.Generator) -> list[str]:
        """Up to ``n`` distinct strings of the space that differ little from one that its constraints leave out.

        What breaks a constraint is repaired; where that is not enough, the string is mutated first, again and again.

        Args:
            string: A string of which `left_out` says why it is left out.
            n: How many at most.
            rng: The only source of randomness.

        Returns:
            None, where the space does not know the string, or nothing was found.

        Example:
            >>> from seqopt.spaces import CodonSpace
            >>> space = CodonSpace("MEFK", forbidden=["GAATTC"])
            >>> sorted(space.near_left_out("ATGGAATTCAAA", 3, np.random.default_rng(0)))
            ['ATGGAATTTAAA', 'ATGGAGTTCAAA', 'ATGGAGTTTAAA']
        """
        rows = self._rows([self._normalised(string)])
        if rows is None or not n:
            return []
        found: dict[str, None] = {}
        changed = np.repeat(rows, n, axis=0)
        for _ in range(MOVE_ATTEMPTS):
            found.update(dict.fromkeys(self._accepted(self._repaired(changed, rng))))
            if len(found) >= n:
                break
            changed = self._changed(changed, rng)
        return list(found)[:n]

    def sample(self, n: int, rng: np.random.Generator) -> list[str]:
        """``n`` distinct random strings; fewer only if the space holds fewer.

        They are drawn as `sample_individuals` draws them, repetitions left out. A space of at most
        `ENUMERATION_LIMIT` strings is searched completely, in random order, when random draws bring few new ones.

        Raises:
            InputError: If ``n`` is not an integer of at least 0, no string is accepted, or random draws do not find
                enough distinct strings in a space that is too large to search completely.
        """
        n = checked_count(n, "n")
        found: dict[str, str] = {}
        exhaustible = self.size <= ENUMERATION_LIMIT
        draws_left = DRAWS_PER_STRING * n
        while (missing := n - len(found)) and draws_left > 0:
            draws = min(max(missing, 16), self._draws_at_once)
            draws_left -= draws
            self._add_distinct(self._accepted(self._drawn(draws, rng)), found, n)
            if exhaustible and 2 * (missing - n + len(found)) < min(missing, draws):
                break
        if len(found) < n and exhaustible:
            for strings in self._shuffled(rng):
                self._add_distinct(strings, found, n)
                if len(found) == n:
                    break
        if not found and n:
            raise InputError(self._nothing_found(DRAWS_PER_STRING * n))
        if len(found) < n and not exhaustible:
            raise InputError(
                f"{n} distinct strings were asked for, but {DRAWS_PER_STRING * n:,} random ones hold only {len(found)} "
                f"distinct ones that the space accepts: ask for fewer, or relax accept()"
            )
        return list(found.values())

    def sample_individuals(self, n: int, rng: np.random.Generator) -> list[str]:
        """``n`` random strings, not necessarily distinct.

        Raises:
            InputError: If ``n`` is not an integer of at least 0, or none of `DRAWS_PER_STRING` strings for each is
                accepted.
        """
        n = checked_count(n, "n")
        found: list[str] = []
        draws_left = DRAWS_PER_STRING * n
        drawn = 0
        while (missing := n - len(found)) > 0 and draws_left > 0:
            # As many as the share accepted so far lets expect to be enough.
            draws = min(missing * (drawn // max(len(found), 1) + 1), draws_left, self._draws_at_once)
            found += self._accepted(self._drawn(draws, rng))
            drawn += draws
            draws_left -= draws
        if len(found) < n and self.size <= ENUMERATION_LIMIT:
            for strings in self._shuffled(rng):
                found += strings
                if len(found) >= n:
                    break
        if not found and n:
            raise InputError(self._nothing_found(DRAWS_PER_STRING * n))
        if len(found) < n:
            # The few that were found stand in for the rest: individuals need not be distinct.
            found += [found[int(index)] for index in rng.integers(len(found), size=n - len(found))]
        return found[:n]

    def mutate(self, individuals: Sequence[str], rng: np.random.Generator) -> list[str]:
        """Each string changed once at random; see the class for the move. A child that the space does not allow is
        tried again up to `MOVE_ATTEMPTS` times, then the parent is kept. The last half of the attempts change it twice,
        since a rule may tie two places together.

        Raises:
            InputError: If an individual does not lie in the space.
        """
        children = list(individuals)
        parents = self._parents(children)
        waiting = np.arange(len(children))
        for attempt in range(MOVE_ATTEMPTS):
            if not len(waiting):
                break
            own = parents[waiting]
            changed = self._changed(own.rows, rng)
            if attempt >= MOVE_ATTEMPTS // 2:
                changed = self._changed(changed, rng)
            rows, allowed = self._settled(changed, own, own, rng)
            waiting = self._replace(children, waiting, rows, allowed)
        return children

    def cross(
        self, first: Sequence[str], second: Sequence[str], rng: np.random.Generator
    ) -> tuple[list[str], list[str]]:
        """Two children of each pair of parents, which swap their prefixes up to a random cut.

        A child that the space does not allow is tried again with another cut, up to `MOVE_ATTEMPTS` times, then its
        parent is kept: the first child's is that of ``first``.

        Raises:
            InputError: If there are not as many second as first parents, or one does not lie in the space.
        """
        children = (list(first), list(second))
        if len(children[0]) != len(children[1]):
            raise InputError(f"{len(children[0])} first but {len(children[1])} second parents; give pairs")
        parents = self._parents([*first, *second])
        left, right = parents[: len(first)], parents[len(first) :]
        waiting = [np.arange(len(first)), np.arange(len(first))]
        for _ in range(MOVE_ATTEMPTS):
            pairs = np.union1d(waiting[0], waiting[1])
            if not len(pairs):
                break
            ends = (right[pairs], left[pairs])
            for side, rows in enumerate(self._crossed(ends[1].rows, ends[0].rows, rng)):
                mine = np.isin(pairs, waiting[side])
                settled = self._settled(rows[mine], ends[side][mine], ends[1 - side][mine], rng)
                waiting[side] = self._replace(children[side], pairs[mine], *settled)
        return children

    def enumerate(self) -> Iterator[str]:
        """All strings of the space, the last position running fastest.

        Raises:
            InputError: If the space holds more than `ENUMERATION_LIMIT` strings.
        """
        if self.size > ENUMERATION_LIMIT:
            raise InputError(
                f"the space holds {described_size(self)} strings; at most {ENUMERATION_LIMIT:,} can be enumerated"
            )
        return (string for block in self._blocks(np.arange(self.size)) for string in block)

    def _drawn(self, n: int, rng: np.random.Generator) -> Population:
        return self._repaired(self._random(n, rng), rng)

    def _shuffled(self, rng: np.random.Generator) -> Iterator[list[str]]:
        return self._blocks(rng.permutation(self.size))

    def _blocks(self, ranks: npt.NDArray[np.int64]) -> Iterator[list[str]]:
        # Small blocks first: accept() may be slow, and few strings may be enough.
        start, block = 0, 64
        while start < len(ranks):
            yield self._accepted(self._unranked(ranks[start : start + block]))
            start, block = start + block, min(2 * block, BLOCK)

    def _accepted(self, rows: Population) -> list[str]:
        strings = self._strings(rows[self._allowed(rows)])
        return [string for string in strings if self._accepts(string)]

    def _accepts(self, string: str) -> bool:
        if self.kind == "molecule" and identity_keys([string], self.kind)[0] is None:
            return False
        return accepted(string, self.accept)

    def _add_distinct(self, strings: list[str], found: dict[str, str], n: int) -> None:
        for string in strings:
            if len(found) == n:
                return
            # Other kinds write each string in one way only.
            found.setdefault(self.key(string) if self.kind == "molecule" else string, string)

    def _replace(
        self, children: list[str], waiting: npt.NDArray[np.intp], rows: Population, allowed: BoolArray
    ) -> npt.NDArray[np.intp]:
        """Puts the allowed ``rows`` at their indices among ``children``; returns the indices that still wait."""
        done = np.zeros(len(waiting), dtype=np.bool_)
        for at, string in zip(np.flatnonzero(allowed), self._strings(rows[allowed]), strict=True):
            index = int(waiting[at])
            if string == children[index] or self._accepts(string):
                children[index] = string
                done[at] = True
        return waiting[~done]

    def _population(self, strings: list[str]) -> Population:
        rows = self._rows(strings)
        if rows is None:
            outside = next(string for string in strings if self._rows([string]) is None)
            raise InputError(f"{_shown(outside)} is not in the space: {self._explained(outside)}")
        return rows

    def _strings(self, rows: Population) -> list[str]:
        if not rows.size:
            return [""] * len(rows)
        if self._symbol_width is None:
            table = self.symbols
            return ["".join([table[number] for number in row]) for row in rows.tolist()]
        # Padding becomes the null character, which numpy drops from the end of a string.
        letters = np.append(self._table, "")[rows]
        joined = np.ascontiguousarray(letters).view(f"U{rows.shape[1] * self._symbol_width}")
        strings: list[str] = joined[:, 0].tolist()
        return strings

    def _numbered(self, strings: Sequence[str], width: int, dtype: npt.DTypeLike = np.intp) -> Population | None:
        """Symbol numbers of strings of at most ``width`` symbols of one length; `None` for an unknown symbol.

        They are of the type that is asked for where all strings are that long, and it has room for 255 symbols.
        """
        step = self._symbol_width
        assert step is not None
        text = "".join(strings) if self._of_byte is not None else ""
        if len(text) == len(strings) * width and text.isascii():
            numbered = text.encode().translate(self._of_byte)
            if UNKNOWN_BYTE in numbered:
                return None
            return np.frombuffer(numbered, dtype=np.uint8).reshape(len(strings), width).astype(dtype)
        padded = np.array(strings, dtype=f"U{width * step}")
        if self._of_code is not None:
            codes = padded.view(np.uint32).reshape(len(strings), width)
            if codes.max(initial=0) >= len(self._of_code):
                return None
            found: Population = self._of_code[codes]
            return None if (found == UNKNOWN).any() else found
        letters = padded.view(f"U{step}").reshape(len(strings), width)
        indices = np.searchsorted(self._table, letters, sorter=self._order)
        numbers: Population = self._order[np.minimum(indices, len(self._order) - 1)]
        blank = letters == ""
        if not ((self._table[numbers] == letters) | blank).all():
            return None
        numbers[blank] = PADDING
        return numbers

    def _nothing_found(self, draws: int) -> str:
        if self.size <= ENUMERATION_LIMIT:
            return f"the space is empty: none of its {self.size:,} strings is accepted"
        return (
            f"none of {draws:,} random strings is accepted: relax accept(), give a narrower space, or tell the search "
            "of strings that are accepted, which it grows from"
        )


def checked_count(value: int, name: str, least: int = 0) -> int:
    """``value`` as an int.

    Raises:
        InputError: If it is not an integer of at least ``least``.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name} is {value!r}; it must be an integer of at least {least}")
    return int(value)


def checked_kind(kind: str) -> str:
    """``kind``.

    Raises:
        InputError: If it is none of `seqopt.strings.identity.KINDS`.
    """
    if kind not in KINDS:
        raise InputError(f"unknown kind {kind!r}: choose {', '.join(KINDS)}")
    return kind


def checked_symbols(symbols: Sequence[object], kind: str, where: str) -> list[str]:
    """``symbols`` as a list of str.

    Raises:
        InputError: If there are none, for a repeated one, an empty one, one with a blank or an unprintable character,
            or one that strings of ``kind`` cannot hold.
    """
    checked: list[str] = []
    for symbol in symbols:
        if not isinstance(symbol, str) or not symbol:
            raise InputError(f"{where}: {symbol!r} is not a symbol; a symbol is a str of at least one character")
        if not symbol.isprintable() or " " in symbol:
            raise InputError(f"{where}: {symbol!r} holds a blank or an unprintable character")
        if kind != "molecule" and identity_keys([symbol], kind) != [symbol]:
            hint = ": use capital letters" if identity_keys([symbol], kind) == [symbol.upper()] else ""
            raise InputError(f"{where}: {symbol!r} is not a symbol of kind {kind}{hint}")
        if symbol in checked:
            raise InputError(f"{where}: {symbol!r} is repeated; give each symbol once")
        checked.append(symbol)
    if not checked:
        raise InputError(f"{where}: no symbols; give at least one")
    return checked


def described_size(space: SequenceSpace) -> str:
    """The size of ``space`` in figures, or as a power of ten when it has more than 15 digits."""
    return f"{space.size:,}" if space.log10_size < 15 else f"10^{space.log10_size:.2f}"


def _shown(string: str) -> str:
    return repr(string if len(string) <= 60 else string[:57] + "...")
