"""Strings as the rules of their parse trees (the grammar VAE): whatever is decoded is grammatical.

A string is its leftmost derivation. While one is written, a stack holds the non-terminals that are still to be
expanded, the leftmost on top. The top decides which rules are possible. Besides, a rule is possible only if the
derivation can still be finished within the steps that are left:

    steps taken + 1 + sum of need(X) over the X on the stack after the rule <= W,

where need(X) is the number of rules in the shortest derivation of X. So a derivation that comes near the end closes by
shortest derivations, and every sequence of choices gives a string of the grammar.

References:
    Kusner, M. J., Paige, B., Hernandez-Lobato, J. M. (2017). Grammar variational autoencoder. ICML, section 3 (masks
        and the stack; their decoder may run out of steps and then gives nothing).
    Knuth, D. E. (1977). A generalization of Dijkstra's algorithm. Information Processing Letters 6, 1-5 (shortest
        derivations).
"""

from __future__ import annotations

import os
import reprlib
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seqopt.errors import InputError
from seqopt.grammar import Parser, ParseTree, Rules, TerminalTokenizer, check_grammar, read_grammar
from seqopt.vae.codecs import Symbols, checked_strings, fact, fact_list, padded, shown

LARGEST_TABLE = 1 << 27
"""Most entries of the table of which rules each non-terminal allows: rules times non-terminals."""

_REMEMBERED = 1 << 20
"""Parse trees that are kept. A pool of molecules must fit: whoever goes through more strings than that, in the same
order again, finds none of them."""

_UNLIMITED = 1 << 30


def shortest_derivations(rules: Rules) -> list[int]:
    """The number of rules in the shortest derivation of each non-terminal, which must have one.

    Example:
        >>> from seqopt.grammar import load_grammar
        >>> shortest_derivations(Rules.of(load_grammar("arithmetic")))  # S -> T, T -> 'x'; T -> 'x'
        [2, 1]
    """
    endless = 1 + len(rules) * (1 + max(len(body) for body in rules.bodies)) ** len(rules.names)
    needs = [endless] * len(rules.names)
    changed = True
    while changed:
        changed = False
        for head, body in rules:
            need = 1 + sum(needs[symbol] for symbol in body if isinstance(symbol, int))
            if need < needs[head]:
                needs[head] = need
                changed = True
    return needs


class GrammarCodec:
    """Rows of the rules of parse trees, in the order of the leftmost derivation. Symbol r + 1 is rule r.

    Where terminals of the grammar can run together (see `seqopt.grammar.check_grammar`), a derivation may exist whose
    string is read otherwise: `decode` gives it, and the grammar's spaces refuse it.

    Args:
        rules: The grammar.
        max_rules: The largest number of rules of a parse tree.
        name: What the grammar is called in messages.

    Raises:
        InputError: If some symbol has no derivation that ends, no string has as few as ``max_rules`` rules, or there
            are more rules and non-terminals than `LARGEST_TABLE` allows.

    Example:
        >>> codec = GrammarCodec.of("arithmetic", ["x+1", "x*x*x"])
        >>> codec.steps, codec.encode(["x+1"]).tolist()
        (6, [[1, 4, 8, 9, 0, 0]])
    """

    model = "grammar"

    def __init__(self, rules: Rules, max_rules: int, name: str) -> None:
        entries = (len(rules.names) + 1) * (len(rules) + 1)
        if entries > LARGEST_TABLE:
            raise InputError(
                f"the grammar {name} has {len(rules.names):,} non-terminals and {len(rules):,} rules: their table "
                f"would have {entries:,} entries; expected at most {LARGEST_TABLE:,}"
            )
        check_grammar(rules)
        self.rules = rules
        self.name = name
        self.parser = Parser(rules)
        # As unsigned numbers of two or four bytes: a million trees of molecules take 240 MB so, and 860 MB as tuples.
        self._derivations: dict[str, bytes] = {}
        self._rule_type = "H" if len(rules) <= 0xFFFF else "I"
        self._not_derived: set[str] = set()
        self.needs = shortest_derivations(rules)
        self.least = self.needs[rules.start]
        if max_rules < self.least:
            raise InputError(
                f"max_rules is {max_rules}; the shortest string of the grammar {name} needs {self.least} rules"
            )
        self.max_rules = max_rules
        self.symbols = len(rules)
        self.steps = max_rules
        self._head_of = np.array([0, *(head + 1 for head in rules.heads)], dtype=np.int64)
        self.possible = self._head_of[None, :] == np.arange(len(rules.names) + 1)[:, None]
        # What each rule puts on the stack, the leftmost last; symbol 0, padding, puts nothing.
        self.pushed: list[list[int]] = [[]]
        self.pushed += [[s + 1 for s in reversed(body) if isinstance(s, int)] for body in rules.bodies]

    @classmethod
    def of(
        cls,
        grammar: str | os.PathLike[str],
        strings: Sequence[str],
        *,
        max_rules: int | None = None,
        skip: bool = False,
    ) -> GrammarCodec:
        """The codec of a grammar for ``strings``.

        Args:
            grammar: The name of a grammar that comes with seqopt, or the path of a ``.cfg`` file.
            strings: What a model is to be trained on.
            max_rules: By default the number of rules of the largest parse tree of ``strings``.
            skip: Pass over strings that the grammar does not derive where the number of rules is looked for; `derived`
                gives the others.

        Raises:
            InputError: As `seqopt.grammar.load_grammar` and `encode` do, or if there is no string left.
        """
        loaded, locations = read_grammar(grammar)
        rules = Rules.of(loaded, locations)
        name = Path(os.fspath(grammar)).name
        if max_rules is not None:
            return cls(rules, max_rules, name)
        codec = cls(rules, _UNLIMITED, name)
        derived = codec.derived(strings) if skip else checked_strings(strings)
        codec.max_rules = max((len(codec.derivation(string)) for string in derived), default=0)
        if not codec.max_rules:
            none = f"the grammar {name} derives none of the {len(strings)} strings"
            raise InputError(none if len(strings) else "there are no strings; expected at least one")
        codec.steps = codec.max_rules
        return codec

    def derivation(self, string: str) -> tuple[int, ...]:
        """The rules of the parse tree of ``string``. Strings are parsed once and remembered.

        Raises:
            InputError: If the grammar does not derive ``string``; the message says where parsing stopped.
        """
        kept = self._derivations.get(string)
        if kept is None:
            kept = array(self._rule_type, self.parser.parse(string).rules).tobytes()
            if len(self._derivations) >= _REMEMBERED:
                self._derivations.clear()
            self._derivations[string] = kept
        rules: tuple[int, ...] = tuple(array(self._rule_type, kept))
        return rules

    def encode(self, strings: Sequence[str]) -> Symbols:
        """Rows of rules; see `seqopt.vae.codecs.Codec`.

        Raises:
            InputError: For a string that the grammar does not derive, with the position where parsing stopped, or one
                whose parse tree has too many rules.
        """
        rows = []
        for string in checked_strings(strings):
            rules = self.derivation(string)
            if len(rules) > self.max_rules:
                raise InputError(
                    f"the parse tree of {shown(string)} has {len(rules)} rules; this model takes trees of up to "
                    f"{self.max_rules}"
                )
            rows.append([rule + 1 for rule in rules])
        return padded(rows, self.steps)

    @property
    def change(self) -> npt.NDArray[np.int64]:
        """By how much each rule changes the number of rules that the stack needs; see `seqopt.vae.codecs.Codec`."""
        # What needs more rules than there are steps is never begun, however many more; its number may be huge.
        needs = np.array([0, *(min(need, self.max_rules + 1) for need in self.needs)], dtype=np.int64)
        return np.array([needs[symbols].sum() for symbols in self.pushed]) - needs[self._head_of]

    def contexts(self, rows: Symbols) -> npt.NDArray[np.int64]:
        """The non-terminal that each rule expands, counted from 1; see `seqopt.vae.codecs.Codec`."""
        return self._head_of[rows]

    def writing(self, n: int) -> GrammarWriting:
        """See `seqopt.vae.codecs.Codec`."""
        return GrammarWriting(n, self)

    def decode(self, rows: Symbols) -> list[str]:
        """The strings of whole derivations."""
        return [
            "".join(self.rules.terminals_of(ParseTree(tuple(symbol - 1 for symbol in row if symbol))))
            for row in rows.tolist()
        ]

    def reads(self, string: str) -> bool:
        """Whether the grammar derives ``string``."""
        if string in self._not_derived:
            return False
        try:
            self.derivation(string)
        except InputError:
            if len(self._not_derived) >= _REMEMBERED:
                self._not_derived.clear()
            self._not_derived.add(string)
            return False
        return True

    def derived(self, strings: Sequence[str]) -> list[str]:
        """Those of ``strings`` that the grammar derives.

        Raises:
            InputError: If ``strings`` is not a list of strings.
        """
        return [string for string in checked_strings(strings) if self.reads(string)]

    @property
    def tokenizer(self) -> TerminalTokenizer:
        """Splits strings into terminals."""
        return self.parser.tokenizer

    def same_rules(self, rules: Rules) -> bool:
        """Whether ``rules`` are those of this codec, in their order."""
        return (self.rules.names, self.rules.start, self.rules.heads, self.rules.bodies) == (
            rules.names,
            rules.start,
            rules.heads,
            rules.bodies,
        )

    def describe(self) -> str:
        """What the codec was made for."""
        return f"a grammar model for the grammar {self.name!r} of {len(self.rules)} rules"

    def to_json(self) -> dict[str, Any]:
        """Everything needed to make it again."""
        return {
            "model": self.model,
            "name": self.name,
            "max_rules": self.max_rules,
            "names": list(self.rules.names),
            "start": self.rules.start,
            "heads": list(self.rules.heads),
            "bodies": [list(body) for body in self.rules.bodies],
        }

    @classmethod
    def from_json(cls, facts: dict[str, Any]) -> GrammarCodec:
        """The codec of what `to_json` returned.

        Raises:
            InputError: If it cannot have returned that.
        """
        names, heads = tuple(fact_list(facts, "names", str)), tuple(fact_list(facts, "heads", int))
        bodies = tuple(map(tuple, fact_list(facts, "bodies", list)))
        start = fact(facts, "start", int)
        if len(heads) != len(bodies) or not bodies:
            raise InputError(f"there are {len(heads)} heads and {len(bodies)} bodies; expected as many, and some")
        symbols = [symbol for body in bodies for symbol in body if not (isinstance(symbol, str) and symbol)]
        for symbol in (start, *heads, *symbols):
            if isinstance(symbol, bool) or not isinstance(symbol, int) or not 0 <= symbol < len(names):
                raise InputError(
                    f"a symbol of the grammar is {reprlib.repr(symbol)}; expected text, or the number of one of "
                    f"{len(names)} names"
                )
        locations = tuple(f"rule {number}" for number in range(1, len(bodies) + 1))
        rules = Rules(names, start, heads, bodies, locations)
        return cls(rules, fact(facts, "max_rules", int), fact(facts, "name", str))


class GrammarWriting:
    """Derivations in the making: for each string a stack of non-terminals, and the rules needed to empty it.

    Args:
        n: Number of strings.
        codec: The grammar.
    """

    def __init__(self, n: int, codec: GrammarCodec) -> None:
        self._counts = np.array([len(symbols) for symbols in codec.pushed], dtype=np.int64)
        self._pushed = padded(codec.pushed, max(1, int(self._counts.max())))
        self._change = codec.change
        self._possible = codec.possible
        self._left = codec.max_rules
        self._need = np.full(n, codec.least, dtype=np.int64)
        self._stack = np.zeros((n, codec.max_rules + self._pushed.shape[1]), dtype=np.int64)
        self._stack[:, 0] = codec.rules.start + 1
        self._depth = np.ones(n, dtype=np.int64)

    def contexts(self) -> npt.NDArray[np.int64]:
        """The non-terminal on top of each stack, counted from 1; see `seqopt.vae.codecs.Writing`."""
        top = self._stack[np.arange(len(self._stack)), np.maximum(self._depth - 1, 0)]
        return np.where(self._depth > 0, top, 0)

    def allowed(self) -> npt.NDArray[np.bool_]:
        """See `seqopt.vae.codecs.Writing`."""
        contexts = self.contexts()
        finishable = self._need[:, None] + self._change[None, :] <= self._left - 1
        allowed: npt.NDArray[np.bool_] = self._possible[contexts] & finishable
        allowed[contexts == 0, 0] = True
        return allowed

    def write(self, symbols: npt.NDArray[np.int64]) -> None:
        """See `seqopt.vae.codecs.Writing`."""
        self._need += self._change[symbols]
        self._depth -= symbols > 0
        for column in range(self._pushed.shape[1]):
            rows = np.flatnonzero(self._counts[symbols] > column)
            self._stack[rows, self._depth[rows]] = self._pushed[symbols[rows], column]
            self._depth[rows] += 1
        self._left -= 1
