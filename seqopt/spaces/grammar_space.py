"""The strings of a context-free grammar."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from seqopt.encoding import Encoder
from seqopt.encoding.alphabet import Alphabet
from seqopt.errors import InputError
from seqopt.grammar import DISCOUNT, Parser, ParseTree, Rules, Sampler, Subtrees, check_grammar, read_grammar
from seqopt.spaces.predicates import accepted
from seqopt.strings.identity import KINDS, explain_rejection, identity_keys, required_keys
from seqopt.utils.config import Config, Configurable, NotConfigurableError
from seqopt.utils.shown import Shown

if TYPE_CHECKING:
    from nltk import CFG

REMEMBERED = 20_000
"""Trees whose strings are remembered."""

ATTEMPTS = 20
"""Tries of a mutation or crossover before the parents are returned as they were."""

DRAWS = 10_000
"""Draws in a row that may bring nothing before sampling gives up."""


class GrammarSpace(Shown, Configurable):
    """The language of a context-free grammar within limits of length, the third kind of space of the BOSS paper
    (thesis, section 4.5).

    The length of a string is its number of terminals, which are split off from the left, the longest that fits first
    (`seqopt.grammar.terminals`). Individuals are parse trees (`seqopt.grammar.ParseTree`); a string given from outside
    is parsed once, see `seqopt.grammar.parsing` for the tree of an ambiguous one.

    - *Samples* are drawn rule by rule, each with probability proportional to ``discount`` to the power of its uses
      further up the branch, among the rules that can still be finished within the limits (`seqopt.grammar.sampling`).
    - *Mutation* replaces the sub-tree below a node, chosen uniformly, by a fresh one grown from the same non-terminal
      as from a root, within the length that the limits leave.
    - *Crossover* chooses a node of the first parent uniformly among those whose non-terminal both parents have, then
      one of the second parent with that non-terminal, and swaps the two sub-trees.

    A move that leaves the limits, fails ``accept`` or changes nothing is tried again, at most 20 times; then the
    parents come back as they were.

    Args:
        grammar: The name of a grammar that comes with seqopt (``"arithmetic"``, ``"smiles"``, ``"regex"``), the path
            of a ``.cfg`` file (see `seqopt.grammar.load_grammar`), or an `nltk.CFG`.
        min_length: The least number of terminals.
        max_length: The largest number of terminals.
        accept: Narrows the space to the strings for which this predicate holds.
        kind: What the strings are: ``"text"``, ``"molecule"``, ``"protein"``, ``"dna"`` or ``"rna"``. It decides on
            their keys, and strings that have none are outside the space: with ``"molecule"``, those that RDKit does
            not read. Blanks around a string do not count, unless the grammar's own terminals begin or end with one.
        discount: The factor c in (0, 1]; 1 draws all rules alike.
        fingerprint: What the fingerprint of the rules has to be (`seqopt.grammar.Rules.fingerprint`), so that a file
            which has changed is refused.

    Raises:
        InputError: For limits that are not integers with 0 <= min_length <= max_length, a grammar that cannot be
            read or used, one that has other rules than ``fingerprint`` says, one that has no string within the limits,
            or an unknown kind.

    Example:
        >>> space = GrammarSpace("arithmetic", 3, 20)
        >>> space.contains("sin(x*x)+1"), space.contains("x"), space.contains("x+")
        (True, False, False)
        >>> rng = np.random.default_rng(0)
        >>> children = space.mutate(space.sample_individuals(5, rng), rng)
        >>> all(space.contains(space.to_string(child)) for child in children)
        True
    """

    def __init__(
        self,
        grammar: str | os.PathLike[str] | CFG,
        min_length: int = 1,
        max_length: int = 50,
        *,
        accept: Callable[[str], bool] | None = None,
        kind: str = "text",
        discount: float = DISCOUNT,
        fingerprint: str | None = None,
    ) -> None:
        for name, value in (("min_length", min_length), ("max_length", max_length)):
            if isinstance(value, bool) or not isinstance(value, int | np.integer):
                raise InputError(f"{name} is {value!r}; it must be an integer of terminals")
        if not 0 <= min_length <= max_length:
            raise InputError(f"the limits are {min_length} to {max_length} terminals; 0 <= min <= max is needed")
        if kind not in KINDS:
            raise InputError(f"unknown kind {kind!r}: choose {', '.join(KINDS)}")
        if isinstance(grammar, str | os.PathLike):
            loaded, locations = read_grammar(grammar)
            self.rules = Rules.of(loaded, locations)
            self.name = os.path.basename(os.fspath(grammar))
            # What a name means does not depend on the working folder, but what a path means does.
            self.source: str | None = str(Path(grammar).resolve()) if Path(grammar).is_file() else os.fspath(grammar)
        else:
            self.rules = Rules.of(grammar)
            self.name = f"of {self.rules.names[self.rules.start]}"
            self.source = None
        if fingerprint not in (None, self.rules.fingerprint):
            raise InputError(
                f"the grammar {self.source or self.name} has changed: the fingerprint of its rules is "
                f"{self.rules.fingerprint}, and {fingerprint} is expected: put the rules back that it had"
            )
        report = check_grammar(self.rules, warn=True)
        self.min_length, self.max_length = int(min_length), int(max_length)
        self.accept = accept
        self.kind = kind
        self._sampler = Sampler(self.rules, self.max_length, discount=discount, cyclic=bool(report.cycles))
        if not self._sampler.can_produce(self.rules.start, self.min_length, self.max_length):
            raise InputError(
                f"the grammar {self.name} has no string of {self.min_length} to {self.max_length} terminals"
                f"{self._nearest()}"
            )
        self._parser = Parser(self.rules)
        self._strings: dict[tuple[int, ...], str] = {}
        # Where terminals cannot run together, the leaves of a tree are what its string is split into.
        self._resplit = bool(report.overlaps)
        edges = "".join(terminal[0] + terminal[-1] for terminal in self.rules.terminals)
        self._strips = not any(map(str.isspace, edges))
        self.encoder = Encoder(self._parser.tokenizer, Alphabet(self.rules.terminals, closed=False))

    def config(self) -> Config:
        """The space as JSON values: its grammar by name or path, and by the fingerprint of its rules.

        Raises:
            NotConfigurableError: If the grammar was given as rules, which have no text that would surely be read again
                as the same ones, or ``accept`` as a function.

        Example:
            >>> config = GrammarSpace("arithmetic", 3, 20).config()
            >>> config["grammar"], config["max_length"], len(config["fingerprint"])
            ('arithmetic', 20, 16)
        """
        if self.source is None:
            raise NotConfigurableError(
                f"the grammar {self.name} was given as rules, not by a name or path: keep it in a .cfg file"
            )
        return super().config()

    def config_arguments(self) -> dict[str, Any]:
        """See `seqopt.utils.config.Configurable`."""
        return {
            "grammar": self.source or self.name,
            "min_length": self.min_length,
            "max_length": self.max_length,
            "accept": self.accept,
            "kind": self.kind,
            "discount": self._sampler.discount,
            "fingerprint": self.rules.fingerprint,
        }

    def _nearest(self) -> str:
        """What the lengths next to the limits are, as far as they can be told cheaply."""
        wider = Sampler(self.rules, 2 * self.max_length + 100).lengths.symbols[self.rules.start]
        lengths = [length for length in range(wider.bit_length()) if wider >> length & 1]
        below = [str(length) for length in lengths if length < self.min_length][-1:]
        above = [str(length) for length in lengths if length > self.max_length][:1]
        return f": the nearest lengths are {' and '.join(below + above)}" if below or above else ""

    def sample_individuals(self, n: int, rng: np.random.Generator) -> list[ParseTree]:
        """``n`` random parse trees, not necessarily distinct.

        Raises:
            InputError: If 10,000 draws in a row are refused by ``accept`` or are not strings of this kind.
        """
        drawn = self._draws(rng)
        found: list[ParseTree] = []
        while len(found) < n:
            tree = next(drawn, None)
            if tree is None:
                raise self._barren()
            found.append(tree)
        return found

    def sample(self, n: int, rng: np.random.Generator) -> list[str]:
        """``n`` random strings with distinct keys.

        There are fewer if 10,000 draws in a row bring no new one, as when the space holds fewer.

        Raises:
            InputError: If 10,000 draws in a row are refused before a single string is found.
        """
        found: dict[str, str] = {}
        drawn = self._draws(rng)
        stale = 0
        while len(found) < n and stale < DRAWS:
            tree = next(drawn, None)
            if tree is None:
                break
            string = self.to_string(tree)
            known = len(found)
            found.setdefault(self.key(string), string)
            stale = 0 if len(found) > known else stale + 1
        if n and not found:
            raise self._barren()
        return list(found.values())

    def _barren(self) -> InputError:
        return InputError(
            f"none of {DRAWS:,} random strings of the grammar {self.name} was accepted: check accept() and the kind "
            f"({self.kind}), or narrow the grammar"
        )

    def _draws(self, rng: np.random.Generator) -> Iterator[ParseTree]:
        """Random trees of the space, until too many in a row lie outside it."""
        refused = 0
        while refused < DRAWS:
            tree = self._sampler.tree(self.rules.start, self.min_length, self.max_length, rng)
            kept = self._kept(tree)
            if kept is not None:
                refused = 0
                yield kept
            else:
                refused += 1

    def _kept(self, tree: ParseTree) -> ParseTree | None:
        """What a new tree within the limits becomes: itself, or nothing where it lies outside the space."""
        return tree if self._admits(tree) else None

    def _admits(self, tree: ParseTree) -> bool:
        """Whether a tree whose length lies within the limits belongs to the space."""
        string = self.to_string(tree)
        if self._resplit and self._parser.tokenizer.tokenize(string) != list(self.rules.terminals_of(tree)):
            return False
        return self._accepts(string)

    def _accepts(self, string: str) -> bool:
        if not accepted(string, self.accept):
            return False
        return self.kind == "text" or identity_keys([string], self.kind)[0] is not None

    def mutate(self, individuals: Sequence[ParseTree], rng: np.random.Generator) -> list[ParseTree]:
        """Each tree with one random sub-tree grown anew; see the class."""
        return [self._mutated(tree, rng) for tree in individuals]

    def _mutated(self, tree: ParseTree, rng: np.random.Generator) -> ParseTree:
        heads, ends, lengths = self.rules.subtrees(tree)
        for _ in range(ATTEMPTS):
            node = int(rng.integers(len(heads)))
            rest = lengths[0] - lengths[node]
            limits = max(self.min_length - rest, 0), self.max_length - rest
            grown = self._sampler.tree(heads[node], *limits, rng)
            child = ParseTree(tree.rules[:node] + grown.rules + tree.rules[ends[node] :])
            kept = self._kept(child) if child != tree else None
            if kept is not None and kept != tree:
                return kept
        return tree

    def cross(
        self, first: Sequence[ParseTree], second: Sequence[ParseTree], rng: np.random.Generator
    ) -> tuple[list[ParseTree], list[ParseTree]]:
        """Two children of each pair of parents, which swap sub-trees with the same non-terminal; see the class."""
        pairs = [self._crossed(a, b, rng) for a, b in zip(first, second, strict=True)]
        return [pair[0] for pair in pairs], [pair[1] for pair in pairs]

    def _crossed(self, a: ParseTree, b: ParseTree, rng: np.random.Generator) -> tuple[ParseTree, ParseTree]:
        of_a, of_b = self.rules.subtrees(a), self.rules.subtrees(b)
        partners = _nodes_by_head(of_b)
        nodes = [node for node, head in enumerate(of_a.heads) if head in partners]
        if not nodes:
            return a, b
        for _ in range(ATTEMPTS):
            i = nodes[int(rng.integers(len(nodes)))]
            candidates = partners[of_a.heads[i]]
            j = candidates[int(rng.integers(len(candidates)))]
            longer = of_b.lengths[j] - of_a.lengths[i]
            if not all(
                self.min_length <= length <= self.max_length
                for length in (of_a.lengths[0] + longer, of_b.lengths[0] - longer)
            ):
                continue
            from_a, from_b = a.rules[i : of_a.ends[i]], b.rules[j : of_b.ends[j]]
            if from_a == from_b or i == j == 0:
                continue
            one = ParseTree(a.rules[:i] + from_b + a.rules[of_a.ends[i] :])
            other = ParseTree(b.rules[:j] + from_a + b.rules[of_b.ends[j] :])
            first = self._kept(one)
            second = self._kept(other) if first is not None else None
            if first is not None and second is not None:
                return first, second
        return a, b

    def to_string(self, individual: ParseTree) -> str:
        """The leaves of a tree, joined."""
        found = self._strings.get(individual.rules)
        if found is None:
            # A search asks for the string of a tree a dozen times.
            if len(self._strings) >= REMEMBERED:
                self._strings.clear()
            found = self._strings[individual.rules] = "".join(self.rules.terminals_of(individual))
        return found

    def to_strings(self, individuals: Sequence[ParseTree]) -> list[str]:
        """The leaves of each tree, joined."""
        return [self.to_string(individual) for individual in individuals]

    def from_string(self, string: str) -> ParseTree:
        """The parse tree of ``string``.

        Raises:
            InputError: If ``string`` is outside the space; the message says where parsing stopped and what was
                expected there, what its length is, or that ``accept`` refuses it.
        """
        string = self._trimmed(string)
        length = len(self._parser.tokenizer.tokenize(string))
        if length > self.max_length:
            # Parsing takes time that grows with the length, so what is too long is not parsed.
            raise InputError(self._length_message(string, length))
        tree = self._parser.parse(string)
        if length < self.min_length:
            raise InputError(self._length_message(string, length))
        if not self._accepts(string):
            if self.kind != "text" and identity_keys([string], self.kind)[0] is None:
                raise InputError(f"{string!r} is outside the space: {explain_rejection(string, self.kind)}")
            raise InputError(f"{string!r} is outside the space: accept() refuses it")
        return tree

    def _length_message(self, string: str, length: int) -> str:
        shown = string if len(string) <= 60 else f"{string[:57]}..."
        return f"{shown!r} has {length} terminals; this space holds strings of {self.min_length} to {self.max_length}"

    def contains(self, string: str) -> bool:
        """Whether the grammar derives ``string``, within the limits, and ``accept`` keeps it."""
        try:
            self.from_string(string)
        except InputError:
            return False
        return True

    def key(self, string: str) -> str:
        """Identity of ``string``: canonical SMILES for molecules, else the string (sequences in upper case).

        Raises:
            InputError: If ``string`` is not a valid string of this space's kind. Whether it lies in the space is the
                matter of `contains`.
        """
        return self.keys_of([string])[0]

    def keys_of(self, strings: Sequence[str]) -> list[str]:
        """The key of each of ``strings``.

        Raises:
            InputError: If one is not a valid string of this space's kind.
        """
        if self.kind == "text":
            return [self._trimmed(string) for string in strings]
        return required_keys(strings, self.kind)

    def _trimmed(self, string: str) -> str:
        if not isinstance(string, str):
            raise InputError(f"{string!r} of type {type(string).__name__} is not a string; expected str")
        return string.strip() if self._strips else string

    def __contains__(self, string: object) -> bool:
        return isinstance(string, str) and self.contains(string)

    def __repr__(self) -> str:
        limits = f"{self.min_length} to {self.max_length} terminals"
        return f"GrammarSpace({self.name!r}, {limits}, kind={self.kind!r})"


def _nodes_by_head(subtrees: Subtrees) -> dict[int, list[int]]:
    nodes: dict[int, list[int]] = {}
    for node, head in enumerate(subtrees.heads):
        nodes.setdefault(head, []).append(node)
    return nodes
