"""Finite sets of strings as deterministic automata without cycles: exact counts, uniform draws, numbering.

References:
    Rabin, M. O., Scott, D. (1959). Finite automata and their decision problems. IBM J. Res. Dev. 3, 114-125: the subset
        construction.
    Flajolet, P., Zimmermann, P., Van Cutsem, B. (1994). A calculus for the random generation of labelled combinatorial
        structures. Theor. Comput. Sci. 132, 1-35: drawing uniformly by counts of completions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from seqopt.errors import InputError
from seqopt.strings.templates import EMPTY, Template

IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]

MOST_STATES = 100_000
"""States of an automaton."""

NO_STATE = -1


class Automaton:
    """A finite set of strings.

    Args:
        moves: ``S x A``: the state after each symbol, `NO_STATE` where there is none, else a later one. The first state
            is where strings begin.
        ends: Which of the ``S`` states a string can end in. From each state one can be reached.

    Example:
        >>> automaton = Automaton(np.array([[1, 1], [2, -1], [-1, -1]]), np.array([False, True, True]))
        >>> automaton.size, automaton.unranked(np.arange(4)).tolist()  # 0, 00, 1, 10
        (4, [[0, -1], [0, 0], [1, -1], [1, 0]])
    """

    def __init__(self, moves: IntArray, ends: BoolArray) -> None:
        self.moves = moves
        self.ends = ends

    @cached_property
    def counts(self) -> list[int]:
        """How many strings go on from each state: exact, however many."""
        counts = [0] * len(self.moves)
        ends, moves = self.ends.tolist(), self.moves.tolist()
        for state in range(len(moves) - 1, -1, -1):
            counts[state] = int(ends[state]) + sum(counts[onwards] for onwards in moves[state] if onwards != NO_STATE)
        return counts

    @property
    def size(self) -> int:
        """Number of strings."""
        return self.counts[0]

    @cached_property
    def longest(self) -> int:
        """Length of the longest string."""
        lengths = [0] * len(self.moves)
        moves = self.moves.tolist()
        for state in range(len(moves) - 1, -1, -1):
            lengths[state] = max((1 + lengths[onwards] for onwards in moves[state] if onwards != NO_STATE), default=0)
        return lengths[0]

    @cached_property
    def _cumulative(self) -> npt.NDArray[np.float64]:
        """Probabilities of ending and of each symbol, in this order, added up: ``S x (A + 1)``."""
        counts, moves = self.counts, self.moves.tolist()
        shares = np.zeros((len(moves), self.moves.shape[1] + 1))
        for state, onwards in enumerate(moves):
            total = counts[state]
            shares[state, 0] = self.ends[state] / total
            shares[state, 1:] = [0.0 if other == NO_STATE else counts[other] / total for other in onwards]
        added = np.cumsum(shares, axis=1)
        last = shares.shape[1] - 1 - (shares[:, ::-1] > 0).argmax(axis=1)
        added[np.arange(shares.shape[1])[None, :] >= last[:, None]] = 1.0
        return added

    def drawn(self, n: int, rng: np.random.Generator) -> IntArray:
        """``n`` random strings, each of the set with the same probability: ``n x W`` symbols, `EMPTY` after the end."""
        rows = np.full((n, self.longest), EMPTY, dtype=np.intp)
        states = np.zeros(n, dtype=np.intp)
        going = np.arange(n)
        for column in range(self.longest):
            chosen = (rng.random(len(going))[:, None] >= self._cumulative[states]).sum(axis=1)
            on = chosen > 0
            going, states, chosen = going[on], states[on], chosen[on] - 1
            rows[going, column] = chosen
            states = self.moves[states, chosen]
        return rows

    def unranked(self, ranks: npt.NDArray[np.int64]) -> IntArray:
        """The strings of these numbers, in the order of a dictionary; for sets that an int64 can number."""
        counts = np.array([*self.counts, 0], dtype=np.int64)
        options = np.concatenate([self.ends[:, None].astype(np.int64), counts[self.moves]], axis=1)
        added = np.cumsum(options, axis=1)
        rows = np.full((len(ranks), self.longest), EMPTY, dtype=np.intp)
        states, going, left = np.zeros(len(ranks), dtype=np.intp), np.arange(len(ranks)), ranks.copy()
        for column in range(self.longest):
            chosen = (left[:, None] >= added[states]).sum(axis=1)
            on = chosen > 0
            going, states, left, chosen = going[on], states[on], left[on], chosen[on]
            left = left - added[states, chosen - 1]
            rows[going, column] = chosen - 1
            states = self.moves[states, chosen - 1]
        return rows


def template_automaton(template: Template) -> Automaton:
    """The strings of a template, each of them once, however many ways there are to read it.

    Raises:
        InputError: If there are too many ways at once.

    Example:
        >>> template_automaton(Template("A?A?C{1-2}")).size  # C, CC, AC, ACC, AAC, AACC
        6
    """
    symbols = template.symbols
    onwards = [_bits(columns) for columns in template.follow]
    holds = [_bits(np.flatnonzero(template.permitted[:, number]).tolist()) for number in range(len(symbols))]
    end = 1 << template.width
    first = _bits(template.entries[0])
    found: dict[int, list[int]] = {}
    waiting = [first]
    while waiting:
        state = waiting.pop()
        if state in found:
            continue
        if len(found) == MOST_STATES:
            raise InputError(
                f"{template.named} can be read in too many ways at once: use fewer stretches of variable length next "
                "to letters that they permit, too"
            )
        moves = []
        followed: dict[int, int] = {}
        for held in holds:
            there = state & held
            if there not in followed:
                followed[there] = _union(there, onwards)
            moves.append(followed[there])
        found[state] = moves
        waiting += [after for after in dict.fromkeys(moves) if after and after not in found]
    # A symbol moves the first column of a state on, so that this is an order in which states follow each other.
    states = sorted(found, key=lambda state: (state & -state, state))
    numbers = {state: number for number, state in enumerate(states)}
    table = np.array(
        [[numbers[after] if after else NO_STATE for after in found[state]] for state in states], dtype=np.intp
    )
    assert states[0] == first
    return Automaton(table, np.array([bool(state & end) for state in states]))


def _bits(columns: Sequence[int]) -> int:
    return sum(1 << column for column in columns)


def _union(columns: int, onwards: Sequence[int]) -> int:
    found = 0
    while columns:
        lowest = columns & -columns
        found |= onwards[lowest.bit_length() - 1]
        columns ^= lowest
    return found
