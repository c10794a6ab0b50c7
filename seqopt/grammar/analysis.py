"""What can be said of a grammar before it is used.

Errors, for nothing can be derived:

- the start symbol, or any other, is *non-terminating*: none of its derivations ends, as for ``A -> 'a' A`` alone.

Warnings (`GrammarWarning`), for the grammar works, but most likely not as it was meant:

- an *unreachable* symbol, which no derivation from the start symbol contains;
- a rule that stands twice, which is drawn twice as often and makes every string that uses it ambiguous;
- a *cycle*, a symbol that derives itself alone (A -> A, or A -> B and B -> A, also beside symbols that may produce
  nothing), which gives every string that uses it infinitely many trees;
- overlapping terminals side by side, whose strings are split otherwise than the tree has them.

Information, for neither sampling nor parsing minds: *left recursion*, and symbols that may produce nothing. Whether a
grammar is ambiguous is undecidable in general; duplicates and cycles are the hints that can be had.

References:
    Hopcroft, J. E., Motwani, R., Ullman, J. D. (2007). Introduction to automata theory, languages, and computation,
        3rd edition, sections 7.1 (useless symbols, nullable symbols, unit pairs) and 9.5 (ambiguity).
"""

from __future__ import annotations

import warnings
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from seqopt.errors import InputError
from seqopt.grammar.rules import Rules

OVERLAPS_NAMED = 20
"""Pairs of overlapping terminals that are warned of one by one; the others are counted."""


class GrammarWarning(UserWarning):
    """A grammar that can be used, but hardly as it was meant."""


@dataclass(frozen=True)
class GrammarReport:
    """What `check_grammar` found; every entry names symbols or describes rules.

    Attributes:
        left_recursive: Symbols from which a derivation leads back to the symbol at its left end.
        nullable: Symbols that may produce nothing.
        unreachable: Symbols that no derivation from the start symbol contains.
        duplicates: Pairs of numbers of equal rules.
        cycles: Cycles of symbols that derive one another alone, each as the symbols in turn.
        overlaps: Pairs of terminals that can stand side by side with a longer terminal that begins with the first and
            fits into both.
        warnings: The same as sentences that name the file and line; at most `OVERLAPS_NAMED` for overlaps.
    """

    left_recursive: tuple[str, ...]
    nullable: tuple[str, ...]
    unreachable: tuple[str, ...]
    duplicates: tuple[tuple[int, int], ...]
    cycles: tuple[tuple[str, ...], ...]
    overlaps: tuple[tuple[str, str], ...]
    warnings: tuple[str, ...]


def check_grammar(rules: Rules, *, warn: bool = False) -> GrammarReport:
    """Examines a grammar; see the module for what counts as an error and what as a warning.

    Args:
        rules: The grammar.
        warn: Whether to issue the warnings as `GrammarWarning`, too.

    Raises:
        InputError: If the derivations of some symbol never end.

    Example:
        >>> from seqopt.grammar import load_grammar
        >>> check_grammar(Rules.of(load_grammar("arithmetic"))).left_recursive
        ('S',)
    """
    _refuse_endless(rules)
    nullable = nullable_symbols(rules)
    names = rules.names
    unreachable = _unreachable(rules)
    duplicates = _duplicates(rules)
    cycles = _cycles(rules, nullable)
    overlaps = _overlaps(rules, nullable)
    messages = [
        f"{rules.locations[rules.by_head[symbol][0]]}: {names[symbol]} is unreachable: no derivation from "
        f"{names[rules.start]} contains it; use it in a rule, or remove its rules"
        for symbol in unreachable
    ]
    messages += [
        f"{rules.locations[second]}: the rule {rules.describe(second)} is already at {rules.locations[first]}; it is "
        "drawn twice as often, and every string that needs it is ambiguous: remove one"
        for first, second in duplicates
    ]
    messages += [
        f"{rules.locations[rules.by_head[cycle[0]][0]]}: {' => '.join(names[symbol] for symbol in (*cycle, cycle[0]))} "
        "is a cycle: strings that use it have infinitely many trees; remove one of its rules"
        for cycle in cycles
    ]
    messages += [
        f"the terminals {first!r} and {second!r} can stand side by side, where {longer!r} is read instead, for the "
        "longest terminal is taken; such strings are left out"
        for first, second, longer in overlaps[:OVERLAPS_NAMED]
    ]
    if len(overlaps) > OVERLAPS_NAMED:
        messages.append(f"{len(overlaps) - OVERLAPS_NAMED:,} more such pairs of terminals can stand side by side")
    if warn:
        for message in messages:
            warnings.warn(message, GrammarWarning, stacklevel=3)
    return GrammarReport(
        left_recursive=tuple(names[symbol] for symbol in _left_recursive(rules, nullable)),
        nullable=tuple(name for name, null in zip(names, nullable, strict=True) if null),
        unreachable=tuple(names[symbol] for symbol in unreachable),
        duplicates=tuple(duplicates),
        cycles=tuple(tuple(names[symbol] for symbol in cycle) for cycle in cycles),
        overlaps=tuple((first, second) for first, second, _ in overlaps),
        warnings=tuple(messages),
    )


def nullable_symbols(rules: Rules) -> list[bool]:
    """Whether each non-terminal can produce the empty string."""
    return _least_fixed_point(rules, terminal=False)


def first_terminals(rules: Rules, nullable: Sequence[bool]) -> list[frozenset[str]]:
    """The terminals with which the strings of each non-terminal can begin."""
    numbers = _edge_terminals(rules, nullable, backwards=False)
    return [frozenset(_members(rules.terminals, edge)) for edge in numbers]


def _least_fixed_point(rules: Rules, *, terminal: bool) -> list[bool]:
    """Symbols with a rule all of whose non-terminals qualify; terminals count as ``terminal``."""
    holds = [False] * len(rules.names)
    missing = []  # for each rule, how many of its symbols do not qualify yet
    users: list[list[int]] = [[] for _ in rules.names]
    pending = []
    for rule, (head, body) in enumerate(rules):
        missing.append(sum(isinstance(symbol, int) or not terminal for symbol in body))
        for symbol in body:
            if isinstance(symbol, int):
                users[symbol].append(rule)
        if not missing[rule] and not holds[head]:
            holds[head] = True
            pending.append(head)
    while pending:
        for rule in users[pending.pop()]:
            missing[rule] -= 1
            head = rules.heads[rule]
            if not missing[rule] and not holds[head]:
                holds[head] = True
                pending.append(head)
    return holds


def _edge_terminals(rules: Rules, nullable: Sequence[bool], *, backwards: bool) -> list[int]:
    """The first or last terminals of the strings of each non-terminal; bit t stands for ``rules.terminals[t]``."""
    number = {terminal: 1 << index for index, terminal in enumerate(rules.terminals)}
    edges = [0] * len(rules.names)
    given_to: list[list[int]] = [[] for _ in rules.names]
    for head, body in rules:
        for symbol in reversed(body) if backwards else body:
            if isinstance(symbol, str):
                edges[head] |= number[symbol]
                break
            given_to[symbol].append(head)
            if not nullable[symbol]:
                break
    return _spread(edges, given_to)


def _spread(sets: list[int], given_to: Sequence[Sequence[int]]) -> list[int]:
    """The least sets that hold ``sets`` and of which each is a subset of those it is given to."""
    found = list(sets)
    order = _givers_first(given_to)
    changed = True
    while changed:
        changed = False
        for giver in order:
            for taker in given_to[giver]:
                grown = found[taker] | found[giver]
                if grown != found[taker]:
                    found[taker] = grown
                    changed = True
    return found


def _givers_first(given_to: Sequence[Sequence[int]]) -> list[int]:
    """All nodes, each before those it gives to as far as cycles permit: depth-first, finished last comes first."""
    finished: list[int] = []
    seen = [False] * len(given_to)
    for root in range(len(given_to)):
        if seen[root]:
            continue
        seen[root] = True
        path = [(root, iter(given_to[root]))]
        while path:
            node, takers = path[-1]
            following = next((taker for taker in takers if not seen[taker]), None)
            if following is None:
                finished.append(node)
                path.pop()
            else:
                seen[following] = True
                path.append((following, iter(given_to[following])))
    return finished[::-1]


def _members(terminals: Sequence[str], numbers: int) -> Iterator[str]:
    return compress(terminals, map("1".__eq__, reversed(f"{numbers:b}")))


def _refuse_endless(rules: Rules) -> None:
    ends = _least_fixed_point(rules, terminal=True)
    endless = [symbol for symbol, does in enumerate(ends) if not does]
    if endless:
        # The start symbol often fails only for the sake of another: name one that needs no other endless symbol but
        # itself, if there is one.
        culprit = next((symbol for symbol in endless if not _needs(rules, symbol, endless) - {symbol}), endless[0])
        name = rules.names[culprit]
        others = [rules.names[symbol] for symbol in endless if symbol != culprit]
        also = f" (so are {', '.join(others)})" if others else ""
        raise InputError(
            f"{rules.locations[rules.by_head[culprit][0]]}: {name} is non-terminating{also}: every rule of {name} "
            f"leads to a symbol that never ends; add a rule for {name} that ends, such as {name} -> 'a'"
        )


def _needs(rules: Rules, symbol: int, among: Sequence[int]) -> set[int]:
    return {part for rule in rules.by_head[symbol] for part in rules.bodies[rule] if part in among}  # type: ignore[misc]


def _unreachable(rules: Rules) -> list[int]:
    reached = {rules.start}
    pending = [rules.start]
    while pending:
        for rule in rules.by_head[pending.pop()]:
            fresh = {symbol for symbol in rules.bodies[rule] if isinstance(symbol, int)} - reached
            reached |= fresh
            pending.extend(fresh)
    return [symbol for symbol in range(len(rules.names)) if symbol not in reached]


def _duplicates(rules: Rules) -> list[tuple[int, int]]:
    first: dict[tuple[int, tuple[int | str, ...]], int] = {}
    return [(first[rule], number) for number, rule in enumerate(rules) if first.setdefault(rule, number) != number]


def _cycles(rules: Rules, nullable: Sequence[bool]) -> list[tuple[int, ...]]:
    """One cycle, the shortest, for each group of symbols that derive one another alone."""
    alone: list[set[int]] = [set() for _ in rules.names]
    for head, body in rules:
        if not any(isinstance(symbol, str) for symbol in body):
            needed = [symbol for symbol in body if isinstance(symbol, int) and not nullable[symbol]]
            if len(needed) <= 1:
                alone[head].update(needed or (symbol for symbol in body if isinstance(symbol, int)))
    found: list[tuple[int, ...]] = []
    known: set[int] = set()
    for symbol in sorted(_on_cycles(alone)):
        if symbol not in known:
            found.append(_shortest_return(alone, symbol))
            known.update(found[-1])
    return found


def _on_cycles(edges: Sequence[set[int]]) -> set[int]:
    """The symbols from which a path leads back: those that lie in a component with others, or have a loop."""
    tails = [symbol for symbol, heads in enumerate(edges) for _ in heads]
    heads = [head for heads in edges for head in heads]
    graph = sparse.csr_array((np.ones(len(tails)), (tails, heads)), shape=(len(edges), len(edges)))
    _, component = csgraph.connected_components(graph, connection="strong")
    large = np.bincount(component) > 1
    return {symbol for symbol in range(len(edges)) if large[component[symbol]] or symbol in edges[symbol]}


def _shortest_return(edges: Sequence[set[int]], symbol: int) -> tuple[int, ...]:
    """The shortest way from ``symbol`` back to it, which there must be."""
    before = {symbol: -1}
    visited = [symbol]
    for last in visited:
        for following in sorted(edges[last]):
            if following == symbol:
                path = []
                while last != -1:
                    path.append(last)
                    last = before[last]
                return tuple(reversed(path))
            if following not in before:
                before[following] = last
                visited.append(following)
    raise AssertionError(f"symbol {symbol} lies on no cycle")


def _left_recursive(rules: Rules, nullable: Sequence[bool]) -> list[int]:
    corners: list[set[int]] = [set() for _ in rules.names]
    for head, body in rules:
        for symbol in body:
            if isinstance(symbol, str):
                break
            corners[head].add(symbol)
            if not nullable[symbol]:
                break
    return sorted(_on_cycles(corners))


def _overlaps(rules: Rules, nullable: Sequence[bool]) -> list[tuple[str, str, str]]:
    """Neighbouring terminals, with the longer terminal that may be read where the first of them was meant."""
    terminals = rules.terminals
    number = {terminal: index for index, terminal in enumerate(terminals)}
    ordered = sorted(terminals)
    # Terminals that begin with one and the same text stand side by side in alphabetical order.
    longer: dict[str, list[str]] = {}
    for start, terminal in enumerate(ordered):
        end = start + 1
        while end < len(ordered) and ordered[end].startswith(terminal):
            end += 1
        if end > start + 1:
            longer[terminal] = sorted(ordered[start + 1 : end], key=number.__getitem__)
    if not longer:
        return []
    following = _following(rules, nullable)
    found = []
    for first, others in longer.items():
        after = following[number[first]]
        if not after:
            continue
        for other in others:
            rest = other[len(first) :]
            seconds = {rest[:length] for length in range(1, len(rest) + 1)} & number.keys()
            start = bisect_left(ordered, rest)
            while start < len(ordered) and ordered[start].startswith(rest):
                seconds.add(ordered[start])
                start += 1
            found += [(first, second, number[other]) for second in seconds if after >> number[second] & 1]
    return [(first, second, terminals[other]) for first, second, other in sorted(found)]


def _following(rules: Rules, nullable: Sequence[bool]) -> list[int]:
    """The terminals that can stand right after each terminal, in numbers as `_edge_terminals` gives them.

    What can follow a symbol can follow whatever it ends with, so it is collected by symbol and then handed down.
    """
    firsts = _edge_terminals(rules, nullable, backwards=False)
    number = {terminal: index for index, terminal in enumerate(rules.terminals)}
    count = len(rules.names)
    after = [0] * (count + len(number))
    given_to: list[list[int]] = [[] for _ in after]
    for head, body in rules:
        behind, ended = 0, True
        for symbol in reversed(body):
            node = count + number[symbol] if isinstance(symbol, str) else symbol
            after[node] |= behind
            if ended:
                given_to[head].append(node)
            if isinstance(symbol, str):
                behind, ended = 1 << number[symbol], False
            else:
                behind = firsts[symbol] | (behind if nullable[symbol] else 0)
                ended = ended and nullable[symbol]
    return _spread(after, given_to)[count:]
