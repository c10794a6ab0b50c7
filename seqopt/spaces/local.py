"""Strings of fixed length in which every position has its own permitted symbols.

References:
    Moss, H. B. (2021). General-purpose information-theoretical Bayesian optimisation. PhD thesis, Lancaster University,
        sections 4.5 and B.3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from seqopt.encoding import Alphabet, Encoder
from seqopt.errors import InputError
from seqopt.spaces.populations import (
    PADDING,
    Population,
    SequenceSpace,
    checked_kind,
    checked_symbols,
    described_size,
)
from seqopt.utils.config import Configurable


class LocalSpace(SequenceSpace):
    """Strings whose position i holds a symbol of its own set (thesis, section 4.5).

    *Sampling* draws every position uniformly from its set. *Mutation* draws one position again, uniformly from its set
    (the symbol that was there included); the position is uniform among those that have a choice. *Crossover* swaps the
    prefixes of two parents up to a uniform cut between two positions. Positions never shift.

    Symbols may have several characters. Where different choices of symbols spell one string ("C" + "CC" and "CC" +
    "C"), `size` counts each of them, and the string is read with the longest possible symbols, the first positions
    first.

    Args:
        choices_per_position: For each position its symbols: a str stands for its single characters, anything else
            holds one symbol an item.
        accept: Keeps only strings for which this predicate holds.
        kind: What the strings are: ``"text"``, ``"molecule"``, ``"protein"``, ``"dna"`` or ``"rna"``. Molecules are
            read by RDKit, and only valid ones are in the space.

    Raises:
        InputError: For no positions, a position without symbols, a symbol that is repeated at its position, empty or
            with a blank in it (each with the position, from 1), or an unknown kind.

    Example:
        >>> space = LocalSpace(["A", "CG", ["T", "UU"]])
        >>> space.size, list(space.enumerate())
        (4, ['ACT', 'ACUU', 'AGT', 'AGUU'])
        >>> space.contains("AGUU"), space.contains("GGT")
        (True, False)
    """

    def __init__(
        self,
        choices_per_position: Iterable[Iterable[str]],
        accept: Callable[[str], bool] | None = None,
        *,
        kind: str = "text",
    ) -> None:
        checked_kind(kind)
        choices = [
            checked_symbols(list(choices), kind, f"position {position}")
            for position, choices in enumerate(choices_per_position, start=1)
        ]
        if not choices:
            raise InputError("a local space needs at least one position")
        symbols = list(dict.fromkeys(symbol for position in choices for symbol in position))
        if kind == "molecule":
            encoder = Encoder("smiles-split")
        elif all(len(symbol) == 1 for symbol in symbols):
            encoder = Encoder("characters", Alphabet(symbols))
        else:
            encoder = Encoder(LocalTokenizer(choices), Alphabet(symbols))
        self._prepare(choices, symbols, kind, accept, encoder)

    def _prepare(
        self,
        choices: Sequence[Sequence[str]],
        symbols: Sequence[str],
        kind: str,
        accept: Callable[[str], bool] | None,
        encoder: Encoder,
    ) -> None:
        super().__init__(symbols, len(choices), kind=kind, accept=accept, encoder=encoder)
        self.choices = tuple(tuple(position) for position in choices)
        self._tokenizer = LocalTokenizer(self.choices)
        number = {symbol: index for index, symbol in enumerate(symbols)}
        self._counts = np.array([len(position) for position in self.choices])
        self._options = np.full((len(self.choices), int(self._counts.max())), PADDING, dtype=np.intp)
        self._permitted = np.zeros((len(self.choices), len(symbols)), dtype=np.bool_)
        for index, position in enumerate(self.choices):
            numbers = [number[symbol] for symbol in position]
            self._options[index, : len(numbers)] = numbers
            self._permitted[index, numbers] = True
        self._free = np.flatnonzero(self._counts > 1)

    @property
    def length(self) -> int:
        """Number of positions."""
        return len(self.choices)

    @property
    def size(self) -> int:
        """Number of choices of symbols, constraints and ``accept`` not counted: exact, however large."""
        return math.prod(len(position) for position in self.choices)

    def config_arguments(self) -> dict[str, Any]:
        """See `seqopt.utils.config.Configurable`; a position of single characters is one text."""
        choices = [
            "".join(position) if all(len(symbol) == 1 for symbol in position) else list(position)
            for position in self.choices
        ]
        return {"choices_per_position": choices, "accept": self.accept, "kind": self.kind}

    def _random(self, n: int, rng: np.random.Generator) -> Population:
        return self._options[np.arange(self.length), rng.integers(self._counts, size=(n, self.length))]

    def _changed(self, rows: Population, rng: np.random.Generator) -> Population:
        changed = rows.copy()
        if len(self._free):
            positions = self._free[rng.integers(len(self._free), size=len(rows))]
            changed[np.arange(len(rows)), positions] = self._options[positions, rng.integers(self._counts[positions])]
        return changed

    def _crossed(
        self, first: Population, second: Population, rng: np.random.Generator
    ) -> tuple[Population, Population]:
        if self.length == 1:
            return first.copy(), second.copy()
        swapped = np.arange(self.length) < rng.integers(1, self.length, size=len(first))[:, None]
        return np.where(swapped, second, first), np.where(swapped, first, second)

    def _unranked(self, ranks: npt.NDArray[np.int64]) -> Population:
        rows = np.empty((len(ranks), self.length), dtype=np.intp)
        for index in range(self.length - 1, -1, -1):
            ranks, chosen = np.divmod(ranks, self._counts[index])
            rows[:, index] = self._options[index, chosen]
        return rows

    def _rows(self, strings: Sequence[str]) -> Population | None:
        if self._symbol_width is None:
            number = {symbol: index for index, symbol in enumerate(self.symbols)}
            split = [self._tokenizer.split(string)[0] for string in strings]
            if not all(split):
                return None
            return np.array([[number[s] for s in parts] for parts in split], dtype=np.intp).reshape(-1, self.length)
        if any(len(string) != self.length * self._symbol_width for string in strings):
            return None
        rows = self._numbered(strings, self.length)
        if rows is None or (rows == PADDING).any() or not self._permitted[np.arange(self.length), rows].all():
            return None
        return rows

    def _explained(self, string: str) -> str:
        return self._tokenizer.split(string)[1]

    def __repr__(self) -> str:
        return f"LocalSpace({self.length} positions: {described_size(self)} strings)"


class LocalTokenizer(Configurable):
    """Splits a string into one permitted symbol per position.

    Where several ways are possible, the first position takes the longest symbol that leaves one, and so on.

    Args:
        choices_per_position: For each position its symbols.

    Raises:
        InputError: When it meets a string that has no such symbols; the message says where.

    Example:
        >>> LocalTokenizer([["C", "CC"], ["C", "N"]]).tokenize("CCC")
        ['CC', 'C']
    """

    name = "local"

    def __init__(self, choices_per_position: Sequence[Sequence[str]]) -> None:
        self._choices = [sorted(choices, key=len, reverse=True) for choices in choices_per_position]

    def config_arguments(self) -> dict[str, Any]:
        """See `seqopt.utils.config.Configurable`."""
        return {"choices_per_position": self._choices}

    def tokenize(self, string: str) -> list[str]:
        """Symbols of one string."""
        symbols, reason = self.split(string)
        if reason:
            raise InputError(f"{string!r}: {reason}")
        return symbols

    def tokenize_all(self, strings: Sequence[str]) -> list[list[str]]:
        """Symbols of each string."""
        return [self.tokenize(string) for string in strings]

    def split(self, string: str) -> tuple[list[str], str]:
        """The symbols and an empty reason, or no symbols and the reason why there are none."""
        starts = [{0}]
        for index, choices in enumerate(self._choices, start=1):
            ends = {start + len(c) for start in starts[-1] for c in choices if string.startswith(c, start)}
            if not ends:
                start = max(starts[-1])
                shown = ", ".join(sorted(choices)[:8]) + (", ..." if len(choices) > 8 else "")
                there = f"{string[start]!r} at letter {start + 1}" if start < len(string) else "the string ends"
                return [], f"position {index} of {len(self._choices)} takes {shown}, but {there}"
            starts.append(ends)
        if len(string) not in starts[-1]:
            end = max(starts[-1])
            return [], f"letter {end + 1}, {string[end]!r}, comes after the last of {len(self._choices)} positions"
        # From the end backwards, keep the starts from which the rest of the string can be spelt.
        finishing = {len(string)}
        kept = [finishing]
        for begins, choices in zip(reversed(starts[:-1]), reversed(self._choices), strict=True):
            finishing = {
                start
                for start in begins
                if any(string.startswith(c, start) and start + len(c) in finishing for c in choices)
            }
            kept.append(finishing)
        kept.reverse()
        symbols: list[str] = []
        at = 0
        for ends, choices in zip(kept[1:], self._choices, strict=True):
            symbols.append(next(c for c in choices if string.startswith(c, at) and at + len(c) in ends))
            at += len(symbols[-1])
        return symbols, ""
