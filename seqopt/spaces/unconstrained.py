"""Any string over an alphabet.

References:
    Moss, H. B. (2021). General-purpose information-theoretical Bayesian optimisation. PhD thesis, Lancaster University,
        sections 4.5 and B.3.
"""

from __future__ import annotations

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
    checked_count,
    checked_kind,
    checked_symbols,
    described_size,
)


class StringSpace(SequenceSpace):
    """All strings over an alphabet, of one length or within length bounds (thesis, section 4.5).

    *Sampling* draws the length uniformly between the bounds, then every symbol uniformly.

    *Mutation* substitutes one symbol: a uniform position gets a uniform symbol of the alphabet, which may be the one
    that was there. Where lengths may differ, an insertion (uniform gap and symbol) and a deletion (uniform position)
    are moves as well, each of the three with probability 1/3; a move that would leave the bounds is not among the
    choices, and those left share its probability.

    *Crossover* swaps the prefixes of two parents up to a uniform cut inside the shorter one, so that positions never
    shift and children have the lengths of their parents.

    Args:
        alphabet: Single-character symbols.
        length: Number of symbols of every string; or give the two bounds.
        min_length: Fewest symbols, at least 1 (the default).
        max_length: Most symbols.
        accept: Keeps only strings for which this predicate holds.
        kind: What the strings are: ``"text"``, ``"molecule"``, ``"protein"``, ``"dna"`` or ``"rna"``. Molecules are
            read by RDKit, and only valid ones are in the space.

    Raises:
        InputError: For an empty alphabet, a symbol that is repeated, blank or longer than one character, no length,
            lengths below 1 or out of order, or an unknown kind.

    Example:
        >>> space = StringSpace("01", 5)
        >>> space.size, space.contains("01101"), space.contains("012")
        (32, True, False)
        >>> rng = np.random.default_rng(0)
        >>> parents = space.sample(4, rng)
        >>> children, others = space.cross(parents[:2], parents[2:], rng)
        >>> all(space.contains(child) for child in space.mutate(children + others, rng))
        True
    """

    def __init__(
        self,
        alphabet: Iterable[str],
        length: int | None = None,
        *,
        min_length: int | None = None,
        max_length: int | None = None,
        accept: Callable[[str], bool] | None = None,
        kind: str = "text",
    ) -> None:
        symbols = checked_symbols(list(alphabet), checked_kind(kind), "the alphabet")
        longer = [symbol for symbol in symbols if len(symbol) > 1]
        if longer:
            raise InputError(f"the alphabet: {longer[0]!r} has more than one character; LocalSpace takes such symbols")
        if length is not None:
            if min_length is not None or max_length is not None:
                raise InputError("give either length or min_length and max_length, not both")
            min_length = max_length = checked_count(length, "length", 1)
        elif max_length is None:
            raise InputError("no length: give length, or max_length (and min_length)")
        self.min_length = checked_count(1 if min_length is None else min_length, "min_length", 1)
        self.max_length = checked_count(max_length, "max_length", 1)
        if self.min_length > self.max_length:
            raise InputError(f"min_length is {self.min_length}, above max_length, {self.max_length}")
        encoder = Encoder("smiles-split") if kind == "molecule" else Encoder("characters", Alphabet(symbols))
        super().__init__(symbols, self.max_length, kind=kind, accept=accept, encoder=encoder)

    @property
    def size(self) -> int:
        """Number of strings, ``accept`` not counted: exact, however large."""
        return sum(len(self.symbols) ** length for length in range(self.min_length, self.max_length + 1))

    def config_arguments(self) -> dict[str, Any]:
        """See `seqopt.utils.config.Configurable`."""
        return {
            "alphabet": "".join(self.symbols),
            "min_length": self.min_length,
            "max_length": self.max_length,
            "accept": self.accept,
            "kind": self.kind,
        }

    def _random(self, n: int, rng: np.random.Generator) -> Population:
        lengths = rng.integers(self.min_length, self.max_length + 1, size=n)
        rows = rng.integers(len(self.symbols), size=(n, self.max_length))
        rows[np.arange(self.max_length) >= lengths[:, None]] = PADDING
        return rows

    def _changed(self, rows: Population, rng: np.random.Generator) -> Population:
        n, width = len(rows), rows.shape[1]
        lengths = self._lengths_of(rows)
        symbols = rng.integers(len(self.symbols), size=n)
        shorter, longer = lengths > self.min_length, lengths < self.max_length
        # Substitution is always possible; a deletion counts as move 1, an insertion as the last.
        move = rng.integers(1 + shorter + longer)
        deletes = (move == 1) & shorter
        inserts = (move > 0) & ~deletes
        position = rng.integers(lengths + inserts, size=n)
        if deletes.any() or inserts.any():
            columns = np.arange(width)
            after = columns >= position[:, None]
            source = columns + (after & deletes[:, None]) - (after & inserts[:, None])
            padded = np.concatenate([rows, np.full((n, 1), PADDING)], axis=1)
            changed = np.take_along_axis(padded, np.maximum(source, 0), axis=1)
        else:
            changed = rows.copy()
        written = np.flatnonzero(~deletes)
        changed[written, position[written]] = symbols[written]
        return changed

    def _crossed(
        self, first: Population, second: Population, rng: np.random.Generator
    ) -> tuple[Population, Population]:
        first_lengths, second_lengths = self._lengths_of(first), self._lengths_of(second)
        # Strings of one length differ from their swap only for cuts strictly inside.
        last = np.minimum(first_lengths, second_lengths) - (first_lengths == second_lengths)
        cut = rng.integers(1, np.maximum(last, 1) + 1)
        swapped = (np.arange(first.shape[1]) < cut[:, None]) & (last > 0)[:, None]
        return np.where(swapped, second, first), np.where(swapped, first, second)

    def _unranked(self, ranks: npt.NDArray[np.int64]) -> Population:
        rows = np.full((len(ranks), self.max_length), PADDING, dtype=np.intp)
        base = len(self.symbols)
        start = 0
        for length in range(self.min_length, self.max_length + 1):
            mine = (ranks >= start) & (ranks < start + base**length)
            left = ranks[mine] - start
            for column in range(length - 1, -1, -1):
                left, rows[mine, column] = np.divmod(left, base)
            start += base**length
        return rows

    def _rows(self, strings: Sequence[str]) -> Population | None:
        lengths = np.fromiter(map(len, strings), dtype=np.intp, count=len(strings))
        if ((lengths < self.min_length) | (lengths > self.max_length)).any():
            return None
        # Nothing but strings is computed from these, and to get memory for large arrays takes longer than to use it.
        rows = self._numbered(strings, self.max_length, np.int16)
        # A null character is padding.
        return rows if rows is not None and ((rows != PADDING).sum(axis=1) == lengths).all() else None

    def _lengths_of(self, rows: Population) -> Population:
        if self.min_length == self.max_length:
            return np.full(len(rows), self.max_length)
        return (rows != PADDING).sum(axis=1)

    def _explained(self, string: str) -> str:
        for position, symbol in enumerate(string, start=1):
            if symbol not in self.symbols:
                return f"{symbol!r} at position {position} is not in the alphabet {''.join(self.symbols)!r}"
        wanted = (
            str(self.min_length)
            if self.min_length == self.max_length
            else f"between {self.min_length} and {self.max_length}"
        )
        return f"it has {len(string)} symbols, not {wanted}"

    def __repr__(self) -> str:
        lengths = (
            f"length {self.min_length}"
            if self.min_length == self.max_length
            else f"lengths {self.min_length} to {self.max_length}"
        )
        return f"StringSpace({''.join(self.symbols)!r}, {lengths}: {described_size(self)} strings)"
