"""The variants of a parent with a few mutations at positions that may change: "wild type + 3"."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from seqopt.encoding import Alphabet, Encoder
from seqopt.errors import InputError
from seqopt.spaces.populations import (
    PADDING,
    BoolArray,
    Population,
    SequenceSpace,
    checked_count,
    checked_kind,
    described_size,
)
from seqopt.strings.positions import parsed_positions, written_positions
from seqopt.strings.templates import LETTERS, checked_letters

FloatArray = npt.NDArray[np.float64]


class ParentSpace(SequenceSpace):
    """All variants of a parent with at most k substitutions at the positions that may change, the parent among them.

    With m_i other letters at position i, there are sum over j <= k of e_j(m) such variants, where e_j is the elementary
    symmetric polynomial: the number of ways to choose j positions and letters for them.

    *Sampling* draws each variant with the same probability, by these counts: position by position, the parent's letter
    is kept with the share of the variants that keep it, given how many mutations are left. Most variants have k
    mutations, and so have most draws.

    *Mutation* writes another letter at a uniform position that may change; where there are more than k mutations then,
    another one, drawn uniformly, is taken back. *Crossover* swaps the prefixes of two parents up to a uniform cut
    between the positions that may change, and takes back mutations at random where there are more than k.

    Args:
        parent: The parent, such as the wild type.
        mutations: Most positions that differ from it, k; by default all that may change.
        positions: Which may change, counted from 1: numbers, or a text such as ``"12,45-60"``. By default all.
        letters: The letters that a position may change to: the same for all (by default all letters of the kind), or
            for each position (from 1) its own, the parent's letter among them.
        accept: Keeps only strings for which this predicate holds.
        kind: What the strings are: ``"protein"``, ``"dna"``, ``"rna"``, or ``"text"``, which needs ``letters``.

    Raises:
        InputError: For an empty parent or one with a letter that the kind has not (X of a protein, with its position),
            positions outside it, more mutations than positions, letters of a position that lack the parent's, or a
            position without another letter.

    Example:
        >>> space = ParentSpace("MKVLS", mutations=2, positions="2-4")
        >>> space.size == 1 + 3 * 19 + 3 * 19**2, space.contains("MRVIS"), space.contains("MRIIS")
        (True, True, False)
        >>> rng = np.random.default_rng(0)
        >>> all(space.contains(child) for child in space.mutate(space.sample(50, rng), rng))
        True
    """

    def __init__(
        self,
        parent: str,
        mutations: int | None = None,
        *,
        positions: str | Iterable[int] | None = None,
        letters: str | Sequence[str] | Mapping[int, str] | None = None,
        accept: Callable[[str], bool] | None = None,
        kind: str = "protein",
    ) -> None:
        if checked_kind(kind) == "molecule":
            raise InputError("variants with mutations are of sequences: for molecules use a pool")
        self.parent = checked_parent(parent, kind)
        own = isinstance(letters, Mapping)
        if isinstance(letters, Mapping) and positions is None:
            positions = list(letters)
        self.positions = parsed_positions(positions, len(self.parent))
        self.letters: dict[int, str] = {}
        for position in self.positions:
            if isinstance(letters, Mapping) and position not in letters:
                raise InputError(f"letters: those of position {position} are missing, which may change")
            try:
                found = checked_letters(letters[position] if isinstance(letters, Mapping) else letters, kind)
            except InputError as error:
                raise InputError(f"position {position}: {error}" if own else str(error)) from error
            before = self.parent[position - 1]
            if own and before not in found:
                raise InputError(
                    f"the letters of position {position}, {found}, are without {before}, which the parent has there: "
                    "add it"
                )
            others = found.replace(before, "")
            if not others:
                raise InputError(
                    f"position {position} has {before} and no other letter to change to: leave it out of the positions"
                )
            self.letters[position] = "".join(sorted(before + others))
        if isinstance(letters, Mapping) and (strange := [at for at in letters if at not in self.letters]):
            raise InputError(f"letters: position {strange[0]} is not among the positions that may change")
        self.mutations = len(self.positions) if mutations is None else checked_count(mutations, "mutations", 1)
        if self.mutations > len(self.positions):
            raise InputError(
                f"mutations is {self.mutations}, but only {len(self.positions)} "
                f"{'position' if len(self.positions) == 1 else 'positions'} may change: give fewer mutations, or more "
                "positions"
            )
        symbols = sorted(set(self.parent).union(*self.letters.values()))
        super().__init__(
            symbols,
            len(self.parent),
            kind=kind,
            accept=accept,
            encoder=Encoder("characters", Alphabet(symbols)),
        )
        number = {symbol: index for index, symbol in enumerate(symbols)}
        self._parent = np.array([number[letter] for letter in self.parent], dtype=np.intp)
        self._free = np.array(self.positions, dtype=np.intp) - 1
        further = [self.letters[position].replace(self.parent[position - 1], "") for position in self.positions]
        self._counts = np.array([len(those) for those in further])
        # The parent's letter first, then the others.
        self._options = np.full((len(further), 1 + int(self._counts.max())), PADDING, dtype=np.intp)
        self._places = np.full((len(further), len(symbols)), PADDING, dtype=np.intp)
        for index, (position, those) in enumerate(zip(self.positions, further, strict=True)):
            numbers = [number[letter] for letter in self.parent[position - 1] + those]
            self._options[index, : len(numbers)] = numbers
            self._places[index, numbers] = np.arange(len(numbers))
        self._completions = _completions(self._counts.tolist(), self.mutations)

    @property
    def size(self) -> int:
        """Number of variants, the parent among them, ``accept`` not counted: exact, however large."""
        return self._completions[0][-1]

    @property
    def choices(self) -> tuple[tuple[str, ...], ...]:
        """The letters of each position of the parent."""
        return tuple(tuple(self.letters.get(position, letter)) for position, letter in enumerate(self.parent, start=1))

    def config_arguments(self) -> dict[str, Any]:
        """See `seqopt.utils.config.Configurable`; letters of each position only where they differ."""
        usual = checked_letters(None, self.kind) if self.kind in LETTERS else None
        common = usual is not None and all(letters == usual for letters in self.letters.values())
        return {
            "parent": self.parent,
            "mutations": self.mutations,
            "positions": written_positions(self.positions),
            "letters": None if common else self.letters,
            "accept": self.accept,
            "kind": self.kind,
        }

    def distances(self, strings: Sequence[str]) -> npt.NDArray[np.int64]:
        """How many mutations each string of the space has.

        Raises:
            InputError: If one is not in the space.

        Example:
            >>> ParentSpace("MKVLS", 2).distances(["MKVLS", "MRVLE"]).tolist()
            [0, 2]
        """
        rows = self._population([self.from_string(string) for string in strings])
        return (rows != self._parent).sum(axis=1)

    def _allowed(self, rows: Population) -> BoolArray:
        allowed: BoolArray = (rows != self._parent).sum(axis=1) <= self.mutations
        return allowed

    def _broken(self, row: Population) -> str:
        differing = int((row != self._parent).sum())
        return f"it has {differing} mutations, and at most {self.mutations} are allowed"

    def _random(self, n: int, rng: np.random.Generator) -> Population:
        rows = np.tile(self._parent, (n, 1))
        left = np.full(n, self.mutations)
        draws = rng.random((len(self._free), n))
        for index, column in enumerate(self._free.tolist()):
            # Of the strings that go on from here, those that keep the parent's letter come first.
            kept = self._kept_shares[index][left]
            changes = np.flatnonzero(draws[index] >= kept)
            place = (draws[index, changes] - kept[changes]) / (1 - kept[changes])
            other = np.minimum((place * self._counts[index]).astype(np.intp), self._counts[index] - 1)
            rows[changes, column] = self._options[index, 1 + other]
            left[changes] -= 1
        return rows

    @cached_property
    def _kept_shares(self) -> FloatArray:
        """Of the ways to go on from each position with so many mutations left, which share keeps its letter."""
        return np.array(
            [
                [after / now for after, now in zip(following, row, strict=True)]
                for row, following in pairwise(self._completions)
            ]
        )

    def _unranked(self, ranks: npt.NDArray[np.int64]) -> Population:
        rows = np.tile(self._parent, (len(ranks), 1))
        left, ranks = np.full(len(ranks), self.mutations), ranks.copy()
        for index, column in enumerate(self._free.tolist()):
            following = np.array(self._completions[index + 1], dtype=np.int64)
            kept = following[left]
            changes = np.flatnonzero(ranks >= kept)
            beyond = ranks[changes] - kept[changes]
            left[changes] -= 1
            other, ranks[changes] = np.divmod(beyond, following[left[changes]])
            rows[changes, column] = self._options[index, 1 + other]
        return rows

    def _changed(self, rows: Population, rng: np.random.Generator) -> Population:
        changed = rows.copy()
        index = rng.integers(len(self._free), size=len(rows))
        column = self._free[index]
        each = np.arange(len(rows))
        now = self._places[index, rows[each, column]]
        # One of the letters but the one that is there, the parent's among them.
        other = rng.integers(self._counts[index])
        changed[each, column] = self._options[index, other + (other >= now)]
        return self._within(changed, rng, spared=index)

    def _crossed(
        self, first: Population, second: Population, rng: np.random.Generator
    ) -> tuple[Population, Population]:
        if len(self._free) < 2:
            return first.copy(), second.copy()
        cut = self._free[rng.integers(1, len(self._free), size=len(first))]
        swapped = np.arange(first.shape[1]) < cut[:, None]
        children = np.where(swapped, second, first), np.where(swapped, first, second)
        return self._within(children[0], rng), self._within(children[1], rng)

    def _within(
        self, rows: Population, rng: np.random.Generator, spared: npt.NDArray[np.intp] | None = None
    ) -> Population:
        """Rows with mutations taken back at random where there are too many, but for a spared one."""
        differ = rows[:, self._free] != self._parent[self._free]
        over = np.flatnonzero(differ.sum(axis=1) > self.mutations)
        if not len(over):
            return rows
        keys = np.where(differ[over], rng.random((len(over), len(self._free))), 2.0)
        if spared is not None:
            keys[np.arange(len(over)), spared[over]] = 2.0
        surplus = differ[over].sum(axis=1) - self.mutations
        # The smallest keys are taken back.
        order = np.argsort(keys, axis=1, kind="stable")
        ranks = np.empty_like(order)
        np.put_along_axis(ranks, order, np.broadcast_to(np.arange(len(self._free)), order.shape), axis=1)
        at = np.nonzero(ranks < surplus[:, None])
        rows[over[at[0]], self._free[at[1]]] = self._parent[self._free[at[1]]]
        return rows

    def _rows(self, strings: Sequence[str]) -> Population | None:
        if any(len(string) != len(self.parent) for string in strings):
            return None
        rows = self._numbered(strings, len(self.parent))
        if rows is None or (rows == PADDING).any():
            return None
        fixed = np.ones(len(self.parent), dtype=np.bool_)
        fixed[self._free] = False
        if not (rows[:, fixed] == self._parent[fixed]).all():
            return None
        if (self._places[np.arange(len(self._free)), rows[:, self._free]] == PADDING).any():
            return None
        return rows

    def _explained(self, string: str) -> str:
        if len(string) != len(self.parent):
            return f"it has {len(string)} letters, and the parent {len(self.parent)}"
        for position, (letter, before) in enumerate(zip(string, self.parent, strict=True), start=1):
            if letter != before and position not in self.letters:
                return f"it has {letter} at position {position}, which may not change from {before}"
            if letter != before and letter not in self.letters[position]:
                return f"it has {letter} at position {position}, where {', '.join(self.letters[position])} are allowed"
        return "it holds an unprintable character"

    def __repr__(self) -> str:
        name = self.parent if len(self.parent) <= 20 else f"{self.parent[:17]}..."
        return (
            f"ParentSpace({name!r}, at most {self.mutations} mutation{'s' if self.mutations > 1 else ''} at "
            f"{len(self.positions)} position{'s' if len(self.positions) > 1 else ''}: "
            f"{described_size(self)} strings)"
        )


def checked_parent(parent: str, kind: str) -> str:
    """A parent, in capital letters where the kind has them, blanks around it and a stop at its end removed.

    Raises:
        InputError: If it is empty, or has a letter that a variant cannot have (with its position).

    Example:
        >>> checked_parent(" mkvls* ", "protein")
        'MKVLS'
        >>> checked_parent("MKXLS", "protein")
        Traceback (most recent call last):
        ...
        seqopt.errors.InputError: the parent has 'X' at position 3, which is no amino acid: a parent is a known sequence
    """
    if not isinstance(parent, str):
        raise InputError(f"the parent is {parent!r}; expected a sequence as a str")
    text = "".join(parent.split())
    if kind == "text":
        if not text:
            raise InputError("the parent is empty: give its sequence")
        return text
    text = text.upper()
    if kind == "protein" and text.endswith("*"):
        text = text[:-1]
    if not text:
        raise InputError("the parent is empty: give its sequence")
    known = LETTERS[kind]
    for position, letter in enumerate(text, start=1):
        if letter not in known:
            what = "amino acid" if kind == "protein" else f"{kind.upper()} base"
            raise InputError(
                f"the parent has {letter!r} at position {position}, which is no {what}: a parent is a known sequence"
            )
    return text


def _completions(others: Sequence[int], mutations: int) -> list[list[int]]:
    """For each position, the number of ways to go on with at most j mutations: (positions + 1) x (k + 1)."""
    rows = [[1] * (mutations + 1)]
    for count in reversed(others):
        after = rows[-1]
        rows.append([after[left] + (count * after[left - 1] if left else 0) for left in range(mutations + 1)])
    return rows[::-1]
