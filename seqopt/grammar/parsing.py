"""From a sequence of terminals to a parse tree: Earley's algorithm.

Why not the chart parsers of nltk: they say neither where parsing stopped nor what was expected there, they build all
trees of an ambiguous string before they give the first (exponentially many), and on a SMILES string of 60 symbols they
take ten times as long. The tests compare the two.

Here an item is one integer (a rule, a position in it, and where its sub-string begins), predictions look one terminal
ahead, and a symbol that may produce nothing is passed over as soon as it is predicted (Aycock and Horspool). The time
is O(n^3) at worst and O(n^2) for unambiguous grammars; left recursion and cycles are allowed.

An ambiguous string has several trees, of which always the same is returned: one with the fewest rules; among those, at
each node from the root downwards, the rule that stands first in the grammar, and then the split in which the last
sub-tree is the shortest, then the last but one, and so on.

References:
    Earley, J. (1970). An efficient context-free parsing algorithm. Communications of the ACM 13, 94-102.
    Aycock, J., Horspool, R. N. (2002). Practical Earley parsing. The Computer Journal 45, 620-630.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from seqopt.errors import InputError
from seqopt.grammar.analysis import first_terminals, nullable_symbols
from seqopt.grammar.rules import ParseTree, Rules
from seqopt.grammar.terminals import TerminalTokenizer

# Of each set of items, what led to each: for an item after a non-terminal the positions where that symbol's sub-string
# may begin, for the others nothing.
_Links = dict[int, list[int]]
_Node = tuple[int, int, int]

_SHOWN = 12


class Parser:
    """Parses strings of a grammar.

    Args:
        rules: The grammar.

    Example:
        >>> from seqopt.grammar import load_grammar
        >>> rules = Rules.of(load_grammar("arithmetic"))
        >>> print(rules.to_nltk(Parser(rules).parse("sin(x)+1")))
        (S (S (T sin( (S (T x)) ))) + (T 1))
        >>> Parser(rules).parse("x+*1")
        Traceback (most recent call last):
        ...
        seqopt.errors.InputError: the grammar does not allow 'x+*1': parsing stopped at position 3 ('*'); \
expected one of ( sin( exp( x 1 2 3
    """

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.tokenizer = TerminalTokenizer(rules.terminals)
        nullable = nullable_symbols(rules)
        self._first = first_terminals(rules, nullable)
        # Dotted rules are numbered through: rule r with p symbols read is _begin[r] + p.
        self._begin: list[int] = []
        self._rule_of: list[int] = []
        self._next: list[int | str | None] = []
        for rule, (_, body) in enumerate(rules):
            self._begin.append(len(self._next))
            self._next.extend([*body, None])
            self._rule_of.extend([rule] * (len(body) + 1))
        self._nullable = nullable
        # For each symbol and terminal ahead ("" at the end) the dotted rules worth predicting.
        self._predictions: dict[tuple[int, str], tuple[int, ...]] = {}

    def parse(self, string: str) -> ParseTree:
        """The parse tree of ``string``; for an ambiguous one see the module.

        Raises:
            InputError: If the grammar does not derive ``string``; the message says where parsing stopped and what was
                expected there.
        """
        tokens = self.tokenizer.split(string)
        sets = self._chart(string, tokens)
        return self._tree(sets)

    def parse_terminals(self, terminals: Sequence[str]) -> ParseTree:
        """The parse tree of a string that is split into terminals already.

        Raises:
            InputError: As `parse` does.
        """
        return self._tree(self._chart("".join(terminals), terminals))

    def _chart(self, string: str, tokens: Sequence[str]) -> list[_Links]:
        rules, following, nullable = self.rules, self._next, self._nullable
        n = len(tokens) + 1
        sets: list[_Links] = [{} for _ in range(n)]
        waiting: list[dict[int, list[int]]] = []
        sets[0] = {begin * n: [] for begin in self._predicted(rules.start, tokens[0] if tokens else "")}
        for end, here in enumerate(sets):
            ahead = tokens[end] if end + 1 < n else ""
            waits: dict[int, list[int]] = {}
            waiting.append(waits)
            agenda = list(here)
            # The list grows while it is worked off.
            for item in agenda:
                dotted, origin = divmod(item, n)
                symbol = following[dotted]
                if symbol is None:
                    head = rules.heads[self._rule_of[dotted]]
                    for waiter in waiting[origin].get(head, ()) if origin < end else ():
                        _add(here, agenda, waiter + n, origin)
                elif isinstance(symbol, str):
                    if symbol == ahead:
                        sets[end + 1][item + n] = []
                else:
                    if symbol in waits:
                        waits[symbol].append(item)
                    else:
                        waits[symbol] = [item]
                        for begin in self._predicted(symbol, ahead):
                            if begin * n + end not in here:
                                here[begin * n + end] = []
                                agenda.append(begin * n + end)
                    if nullable[symbol]:
                        _add(here, agenda, item + n, end)
            if end + 1 < n and not sets[end + 1]:
                self._refuse(string, tokens, end, waits, here)
        if not any(self._complete(rule) * n in sets[-1] for rule in rules.by_head[rules.start]):
            self._refuse(string, tokens, n - 1, waiting[-1], sets[-1])
        return sets

    def _complete(self, rule: int) -> int:
        return self._begin[rule] + len(self.rules.bodies[rule])

    def _predicted(self, symbol: int, ahead: str) -> tuple[int, ...]:
        found = self._predictions.get((symbol, ahead))
        if found is None:
            found = tuple(
                self._begin[rule]
                for rule in self.rules.by_head[symbol]
                if self._may_begin(self.rules.bodies[rule], ahead)
            )
            self._predictions[symbol, ahead] = found
        return found

    def _may_begin(self, body: tuple[int | str, ...], ahead: str) -> bool:
        for symbol in body:
            if isinstance(symbol, str):
                return symbol == ahead
            if ahead in self._first[symbol]:
                return True
            if not self._nullable[symbol]:
                return False
        return True

    def _refuse(self, string: str, tokens: Sequence[str], end: int, waits: dict[int, list[int]], here: _Links) -> None:
        n = len(tokens) + 1
        allowed = {terminal for symbol in waits for terminal in self._first[symbol]}
        allowed.update(symbol for item in here if isinstance(symbol := self._next[item // n], str))
        if not here:
            allowed.update(self._first[self.rules.start])
        expected = [terminal for terminal in self.rules.terminals if terminal in allowed]
        more = " ..." if len(expected) > _SHOWN else ""
        if end < len(tokens):
            position = sum(map(len, tokens[:end])) + 1
            where = f"parsing stopped at position {position} ({tokens[end]!r})"
        else:
            where = "it ends too early" if tokens else "it is empty"
        message = f"the grammar does not allow {string!r}: {where}"
        if not expected:
            raise InputError(f"{message}; nothing may follow here")
        wanted = "expected" if len(expected) == 1 else "expected one of"
        raise InputError(f"{message}; {wanted} {' '.join(expected[:_SHOWN])}{more}")

    def _tree(self, sets: list[_Links]) -> ParseTree:
        return self._only_tree(sets) or self._first_tree(sets)

    def _only_tree(self, sets: list[_Links]) -> ParseTree | None:
        """The tree of a string that has one only; `None` if it has several."""
        rules, n = self.rules, len(sets)
        found: list[int] = []
        pending: list[_Node] = [(rules.start, 0, n - 1)]
        while pending:
            head, begin, end = pending.pop()
            done = [rule for rule in rules.by_head[head] if self._complete(rule) * n + begin in sets[end]]
            if len(done) != 1:
                return None
            found.append(done[0])
            item = self._complete(done[0]) * n + begin
            for symbol in reversed(rules.bodies[done[0]]):
                if isinstance(symbol, str):
                    item, end = item - n, end - 1
                    continue
                cuts = sets[end][item]
                if len(cuts) != 1:
                    return None
                pending.append((symbol, cuts[0], end))
                item, end = item - n, cuts[0]
        return ParseTree(tuple(found))

    def _first_tree(self, sets: list[_Links]) -> ParseTree:
        """The first of several trees; see the module."""
        rules, n = self.rules, len(sets)
        sizes, items = self._smallest(sets)
        found: list[int] = []
        pending: list[_Node] = [(rules.start, 0, n - 1)]
        while pending:
            head, begin, end = pending.pop()
            size = sizes[head, begin, end] - 1
            rule = next(
                rule for rule in rules.by_head[head] if items.get((self._complete(rule) * n + begin, end)) == size
            )
            found.append(rule)
            children: list[_Node] = []
            item = self._complete(rule) * n + begin
            for symbol in reversed(rules.bodies[rule]):
                if isinstance(symbol, str):
                    item, end = item - n, end - 1
                    continue
                cut = max(
                    cut
                    for cut in sets[end][item]
                    if items.get((item - n, cut), math.inf) + sizes.get((symbol, cut, end), math.inf)
                    == items[item, end]
                )
                children.append((symbol, cut, end))
                item, end = item - n, cut
            pending.extend(children)
        return ParseTree(tuple(found))

    def _smallest(self, sets: list[_Links]) -> tuple[dict[_Node, float], dict[tuple[int, int], float]]:
        """The least number of rules below every node, and every item, that leads to the whole string.

        The equations are those of shortest derivations; cycles make them implicit, and as no cycle shortens a
        derivation, repeated substitution ends. In the order in which items were made, once is mostly enough.
        """
        rules, n = self.rules, len(sets)
        useful = self._useful(sets)
        sizes: dict[_Node, float] = {}
        items: dict[tuple[int, int], float] = {}
        changed = True
        while changed:
            changed = False
            for end, here in enumerate(sets):
                for item in here:
                    if (item, end) not in useful:
                        continue
                    dotted, origin = divmod(item, n)
                    rule = self._rule_of[dotted]
                    symbol = rules.bodies[rule][dotted - self._begin[rule] - 1] if dotted != self._begin[rule] else None
                    if symbol is None:
                        size = 0.0
                    elif isinstance(symbol, str):
                        size = items.get((item - n, end - 1), math.inf)
                    else:
                        size = min(
                            items.get((item - n, cut), math.inf) + sizes.get((symbol, cut, end), math.inf)
                            for cut in here[item]
                        )
                    if size < items.get((item, end), math.inf):
                        items[item, end] = size
                        changed = True
                    node = rules.heads[rule], origin, end
                    if self._next[dotted] is None and size + 1 < sizes.get(node, math.inf):
                        sizes[node] = size + 1
                        changed = True
        return sizes, items

    def _useful(self, sets: list[_Links]) -> set[tuple[int, int]]:
        """Items, each with the set it is in, that take part in a tree of the whole string."""
        rules, n = self.rules, len(sets)
        useful: set[tuple[int, int]] = set()
        nodes: set[_Node] = set()
        pending: list[tuple[int, int]] = []

        def complete(node: _Node) -> None:
            if node not in nodes:
                nodes.add(node)
                head, begin, end = node
                done = (self._complete(rule) * n + begin for rule in rules.by_head[head])
                pending.extend((item, end) for item in done if item in sets[end])

        complete((rules.start, 0, n - 1))
        while pending:
            item, end = pending.pop()
            if (item, end) in useful:
                continue
            useful.add((item, end))
            dotted = item // n
            rule = self._rule_of[dotted]
            if dotted == self._begin[rule]:
                continue
            symbol = rules.bodies[rule][dotted - self._begin[rule] - 1]
            if isinstance(symbol, str):
                pending.append((item - n, end - 1))
                continue
            for cut in sets[end][item]:
                pending.append((item - n, cut))
                complete((symbol, cut, end))
        return useful


def _add(here: _Links, agenda: list[int], item: int, cut: int) -> None:
    cuts = here.get(item)
    if cuts is None:
        here[item] = [cut]
        agenda.append(item)
    elif cut not in cuts:
        cuts.append(cut)
