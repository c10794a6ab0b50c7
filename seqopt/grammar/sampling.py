"""Random derivations that discount rules already used on their branch, and keep to limits of length.

At a node with non-terminal X the rule r is taken with probability proportional to c^(n_r), where n_r counts the nodes
above that took r on the way from the root, and c is the discount. Unlimited, this is the sampler of the BOSS paper.

Limits are kept as the tree grows, from left to right. Dynamic programming tells how many terminals each symbol can
produce (`seqopt.grammar.lengths`), so the rules that leave no way to finish within the limits are known before one is
taken, and the choice is among the others, in the same proportions. Hence no derivation is ever thrown away. While all
rules can still be finished, the distribution is that of the unlimited sampler. Where limits bind, every single choice
is renormalised over the rules that can be finished; this differs from drawing without limits and keeping the strings
that fit, which would favour early choices with many fitting continuations and may take for ever.

A grammar in which a symbol derives itself alone (A -> A) has trees of any size for one string: there the discount
ends the growth, with probability one, and a tree that exceeds `CYCLE_NODES` nodes a terminal is begun again.

References:
    Moss, H. B., Beck, D., Gonzalez, J., Leslie, D. S., Rayson, P. (2020). BOSS: Bayesian optimization over string
        spaces. NeurIPS; Moss (2021), PhD thesis, Lancaster University, section 4.5 and appendix B.3.
"""

from __future__ import annotations

import numpy as np

from seqopt.errors import InputError
from seqopt.grammar.lengths import YieldLengths, differences, interval
from seqopt.grammar.rules import ParseTree, Rules

DISCOUNT = 0.1
"""The published discount c."""

CYCLE_NODES = 1_000
"""Nodes that a tree of a cyclic grammar may have, times one more than the length limit."""

RESTARTS = 1_000
"""Trees of a cyclic grammar that may grow too large in a row."""

_REMEMBERED = 100_000


class Sampler:
    """Grows random parse trees within limits of length.

    Args:
        rules: The grammar.
        max_length: The largest number of terminals ever asked for.
        discount: The factor c, in (0, 1], by which each use of a rule lowers its weight further down its branch; 1 is
            uniform choice.
        cyclic: Whether some symbol derives itself alone, so that the length does not bound the tree.

    Raises:
        InputError: For a discount outside (0, 1].

    Example:
        >>> from seqopt.grammar import load_grammar
        >>> rules = Rules.of(load_grammar("arithmetic"))
        >>> sampler = Sampler(rules, max_length=20)
        >>> tree = sampler.tree(rules.start, 3, 20, np.random.default_rng(0))
        >>> 3 <= len(rules.terminals_of(tree)) <= 20
        True
    """

    def __init__(self, rules: Rules, max_length: int, *, discount: float = DISCOUNT, cyclic: bool = False) -> None:
        if not 0 < discount <= 1:
            raise InputError(f"the discount is {discount!r}; it must lie in (0, 1]")
        self.rules = rules
        self.lengths = YieldLengths(rules, max_length)
        self.discount = discount
        self._most_nodes = CYCLE_NODES * (max_length + 1) if cyclic else None
        self._possible: dict[tuple[int, int], tuple[int, ...]] = {}
        self._first: dict[tuple[int, int], int] = {}

    def can_produce(self, symbol: int, min_length: int, max_length: int) -> bool:
        """Whether a tree with head ``symbol`` exists whose number of terminals lies within the limits."""
        return bool(self.lengths.symbols[symbol] & interval(min_length, max_length))

    def tree(self, symbol: int, min_length: int, max_length: int, rng: np.random.Generator) -> ParseTree:
        """A random tree with head ``symbol``, grown as from a root: nothing above it is discounted.

        Raises:
            InputError: If no tree has a number of terminals within the limits.
        """
        wanted = interval(min_length, min(max_length, self.lengths.longest))
        if not self.lengths.symbols[symbol] & wanted:
            raise InputError(f"{self.rules.names[symbol]} produces no string of {min_length} to {max_length} terminals")
        for _ in range(RESTARTS):
            grown = self._grow(symbol, wanted, rng)
            if grown is not None:
                return ParseTree(tuple(grown))
        raise InputError(
            f"trees of {self.rules.names[symbol]} grow past {self._most_nodes:,} nodes, because some symbol "
            "derives only itself: remove this cycle from the grammar, or lower the discount"
        )

    def _grow(self, symbol: int, wanted: int, rng: np.random.Generator) -> list[int] | None:
        """Rules in pre-order; ``wanted`` is the set of lengths that the tree may have."""
        bodies, suffixes = self.rules.bodies, self.lengths.suffixes
        taken: list[int] = []
        used = [0] * len(self.rules)
        produced = 0
        # Each open node: its rule, the next position in its body, the terminals produced when it was opened, and
        # the lengths it may have in all.
        open_nodes: list[tuple[int, int, int, int]] = []
        while True:
            rule = self._choose(symbol, wanted, used, rng)
            taken.append(rule)
            if self._most_nodes is not None and len(taken) > self._most_nodes:
                return None
            used[rule] += 1
            position, begun = 0, produced
            while True:
                body = bodies[rule]
                while position < len(body) and isinstance(body[position], str):
                    produced += 1
                    position += 1
                if position < len(body):
                    break
                used[rule] -= 1
                if not open_nodes:
                    return taken
                rule, position, begun, wanted = open_nodes.pop()
            open_nodes.append((rule, position + 1, begun, wanted))
            symbol = body[position]  # type: ignore[assignment]
            wanted = self._lengths_before(wanted >> (produced - begun), suffixes[rule][position + 1])

    def _choose(self, symbol: int, wanted: int, used: list[int], rng: np.random.Generator) -> int:
        possible = self._possible.get((symbol, wanted))
        if possible is None:
            suffixes = self.lengths.suffixes
            possible = tuple(rule for rule in self.rules.by_head[symbol] if suffixes[rule][0] & wanted)
            if len(self._possible) >= _REMEMBERED:
                self._possible.clear()
            self._possible[symbol, wanted] = possible
        if len(possible) == 1:
            return possible[0]
        # Weights relative to the least used rule: its own is 1, so they cannot all underflow.
        least = min([used[rule] for rule in possible])
        total = 0.0
        cumulated = [total := total + self.discount ** (used[rule] - least) for rule in possible]
        drawn = rng.random() * total
        for rule, bound in zip(possible, cumulated, strict=True):
            if drawn < bound:
                return rule
        return possible[-1]

    def _lengths_before(self, wanted: int, rest: int) -> int:
        if rest == 1:
            return wanted
        found = self._first.get((wanted, rest))
        if found is None:
            if len(self._first) >= _REMEMBERED:
                self._first.clear()
            found = self._first[wanted, rest] = differences(wanted, rest)
        return found
