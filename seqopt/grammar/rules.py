"""A grammar as numbered rules, and parse trees as sequences of them.

A parse tree is kept as its leftmost derivation: the numbers of its rules in pre-order. Each rule says how many
non-terminals follow, so the sequence alone is the tree, a sub-tree is a contiguous piece of it, and replacing or
swapping sub-trees is cutting and pasting.

References:
    Hopcroft, J. E., Motwani, R., Ullman, J. D. (2007). Introduction to automata theory, languages, and computation,
        3rd edition, section 5.2 (leftmost derivations and parse trees).
    Kusner, M. J., Paige, B., Hernandez-Lobato, J. M. (2017). Grammar variational autoencoder. ICML (molecules as
        sequences of rules).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from seqopt.errors import InputError
from seqopt.utils.cache import digest

if TYPE_CHECKING:
    from nltk import CFG, Tree


@dataclass(frozen=True, slots=True)
class ParseTree:
    """A parse tree: immutable, hashable, picklable, and small.

    Attributes:
        rules: Numbers of the rules in pre-order, that is, in the order of the leftmost derivation. Number i is
            production i of the grammar.

    Example:
        >>> from seqopt.grammar import load_grammar
        >>> rules = Rules.of(load_grammar("arithmetic"))
        >>> tree = ParseTree((3, 5, 1, 3, 7, 8))  # T, sin( S ), S * T, T, x, 1
        >>> rules.terminals_of(tree)
        ('sin(', 'x', '*', '1', ')')
    """

    rules: tuple[int, ...]


class Subtrees(NamedTuple):
    """The sub-trees of a tree, one for each node, in pre-order.

    Attributes:
        heads: The non-terminal of each node, as its number.
        ends: Where the sub-tree that begins at node i ends: ``tree.rules[i:ends[i]]``.
        lengths: Number of terminals of each sub-tree.
    """

    heads: list[int]
    ends: list[int]
    lengths: list[int]


@dataclass(frozen=True)
class Rules:
    """The rules of a context-free grammar, with non-terminals numbered.

    Attributes:
        names: The non-terminals' names. Numbers stand for them elsewhere.
        start: The start symbol.
        heads: The left side of each rule.
        bodies: The right side of each rule: numbers are non-terminals, strings terminals. Empty terminals are left
            out, for they produce nothing.
        locations: Where each rule stands, for messages: ``"smiles.cfg, line 12"``, or ``"rule 3"`` of a grammar that
            was not read from a file.

    Example:
        >>> from seqopt.grammar import load_grammar
        >>> rules = Rules.of(load_grammar("arithmetic"))
        >>> rules.names, rules.describe(0), rules.terminals
        (('S', 'T'), "S -> S '+' T", ('+', '*', '/', '(', ')', 'sin(', 'exp(', 'x', '1', '2', '3'))
    """

    names: tuple[str, ...]
    start: int
    heads: tuple[int, ...]
    bodies: tuple[tuple[int | str, ...], ...]
    locations: tuple[str, ...]

    @classmethod
    def of(cls, grammar: CFG, locations: Sequence[str] | None = None) -> Rules:
        """The rules of an `nltk.CFG`, in its order.

        Args:
            grammar: The grammar.
            locations: Where each production stands; by default its number, counted from 1.

        Raises:
            InputError: For a terminal that is no ``str``, or a non-terminal that no rule defines.
        """
        from nltk import Nonterminal

        productions = grammar.productions()
        names = tuple(dict.fromkeys(str(symbol) for symbol in [grammar.start(), *(p.lhs() for p in productions)]))
        number = {name: index for index, name in enumerate(names)}
        if locations is None:
            locations = [f"rule {index}" for index in range(1, len(productions) + 1)]
        defined = {str(production.lhs()) for production in productions}
        bodies = []
        for location, production in zip(locations, productions, strict=True):
            body: list[int | str] = []
            for symbol in production.rhs():
                if isinstance(symbol, Nonterminal):
                    if str(symbol) not in defined:
                        raise InputError(f"{location}: no rule defines {symbol}, which {production} needs")
                    body.append(number[str(symbol)])
                elif not isinstance(symbol, str):
                    raise InputError(f"{location}: the terminal {symbol!r} is not a str")
                elif symbol:
                    body.append(symbol)
            bodies.append(tuple(body))
        if names[0] not in defined:
            raise InputError(f"no rule defines the start symbol {names[0]}")
        heads = tuple(number[str(production.lhs())] for production in productions)
        return cls(names, number[str(grammar.start())], heads, tuple(bodies), tuple(locations))

    @cached_property
    def fingerprint(self) -> str:
        """What tells these rules from others: 16 hexadecimal digits of the SHA-256 of the start and the rules in order.

        Example:
            >>> from seqopt.grammar import load_grammar
            >>> Rules.of(load_grammar("arithmetic")).fingerprint == Rules.of(load_grammar("regex")).fingerprint
            False
        """
        return digest([self.names[self.start], *map(self.describe, range(len(self)))])[:16]

    @cached_property
    def by_head(self) -> tuple[tuple[int, ...], ...]:
        """The rules of each non-terminal, in the grammar's order."""
        found: list[list[int]] = [[] for _ in self.names]
        for rule, head in enumerate(self.heads):
            found[head].append(rule)
        return tuple(map(tuple, found))

    @cached_property
    def terminals(self) -> tuple[str, ...]:
        """The terminals, in order of first appearance."""
        return tuple(dict.fromkeys(symbol for body in self.bodies for symbol in body if isinstance(symbol, str)))

    @cached_property
    def terminal_counts(self) -> tuple[int, ...]:
        """How many terminals each rule has itself."""
        return tuple(sum(isinstance(symbol, str) for symbol in body) for body in self.bodies)

    def describe(self, rule: int) -> str:
        """A rule as the file has it."""
        body = (repr(symbol) if isinstance(symbol, str) else self.names[symbol] for symbol in self.bodies[rule])
        return f"{self.names[self.heads[rule]]} -> {' '.join(body)}".rstrip()

    def terminals_of(self, tree: ParseTree) -> tuple[str, ...]:
        """The leaves of a tree, from left to right."""
        leaves: list[str] = []
        pending: list[int | str] = [self.heads[tree.rules[0]]]
        following = iter(tree.rules)
        while pending:
            symbol = pending.pop()
            if isinstance(symbol, str):
                leaves.append(symbol)
            else:
                pending.extend(reversed(self.bodies[next(following)]))
        return tuple(leaves)

    def subtrees(self, tree: ParseTree) -> Subtrees:
        """Heads, extents and lengths of all sub-trees of ``tree``."""
        rules, heads, counts = tree.rules, self.heads, self.terminal_counts
        ends, lengths = [0] * len(rules), [0] * len(rules)
        done: list[int] = []
        for node in range(len(rules) - 1, -1, -1):
            rule = rules[node]
            end, length = node + 1, counts[rule]
            for _ in range(len(self.bodies[rule]) - counts[rule]):
                child = done.pop()
                end = ends[child]
                length += lengths[child]
            ends[node], lengths[node] = end, length
            done.append(node)
        return Subtrees([heads[rule] for rule in rules], ends, lengths)

    def to_nltk(self, tree: ParseTree) -> Tree:
        """The tree as an `nltk.Tree`, to print or draw it.

        Example:
            >>> from seqopt.grammar import load_grammar
            >>> rules = Rules.of(load_grammar("arithmetic"))
            >>> print(rules.to_nltk(ParseTree((1, 3, 7, 8))))
            (S (S (T x)) * (T 1))
        """
        from nltk import Tree

        root = Tree(self.names[self.heads[tree.rules[0]]], [])
        pending: list[Tree] = [root]
        for rule in tree.rules:
            node = pending.pop()
            for symbol in self.bodies[rule]:
                node.append(symbol if isinstance(symbol, str) else Tree(self.names[symbol], []))
            pending.extend(child for child in reversed(node) if isinstance(child, Tree))
        return root

    def __iter__(self) -> Iterator[tuple[int, tuple[int | str, ...]]]:
        return iter(zip(self.heads, self.bodies, strict=True))

    def __len__(self) -> int:
        return len(self.heads)
