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
from collections.abc import Sequence
from dataclasses import dataclass

from seqopt.errors import InputError
from seqopt.grammar.rules import Rules


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
        warnings: The same as sentences that name the file and line.
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
        f"{rules.places[rules.by_head[symbol][0]]}: {names[symbol]} is unreachable: no derivation from "
        f"{names[rules.start]} contains it; use it in a rule, or remove its rules"
        for symbol in unreachable
    ]
    messages += [
        f"{rules.places[second]}: the rule {rules.describe(second)} stands already at {rules.places[first]}; it is "
        "drawn twice as often, and every string that needs it is ambiguous: remove one"
        for first, second in duplicates
    ]
    messages += [
        f"{rules.places[rules.by_head[cycle[0]][0]]}: {' => '.join(names[symbol] for symbol in (*cycle, cycle[0]))} "
        "is a cycle: strings that use it have infinitely many trees; remove one of its rules"
        for cycle in cycles
    ]
    messages += [
        f"the terminals {first!r} and {second!r} can stand side by side, where {longer!r} is read instead, for the "
        "longest terminal is taken; such strings are left out"
        for first, second, longer in overlaps
    ]
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
    return _edge_terminals(rules, nullable, backwards=False)


def _least_fixed_point(rules: Rules, *, terminal: bool) -> list[bool]:
    """Symbols with a rule all of whose non-terminals qualify; terminals count as ``terminal``."""
    holds = [False] * len(rules.names)
    changed = True
    while changed:
        changed = False
        for head, body in rules:
            if not holds[head] and all(terminal if isinstance(symbol, str) else holds[symbol] for symbol in body):
                holds[head] = changed = True
    return holds


def _edge_terminals(rules: Rules, nullable: Sequence[bool], *, backwards: bool) -> list[frozenset[str]]:
    edges: list[set[str]] = [set() for _ in rules.names]
    changed = True
    while changed:
        changed = False
        for head, body in rules:
            before = len(edges[head])
            for symbol in reversed(body) if backwards else body:
                if isinstance(symbol, str):
                    edges[head].add(symbol)
                    break
                edges[head] |= edges[symbol]
                if not nullable[symbol]:
                    break
            changed = changed or len(edges[head]) > before
    return [frozenset(edge) for edge in edges]


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
            f"{rules.places[rules.by_head[culprit][0]]}: {name} is non-terminating{also}: every rule of {name} leads "
            f"to a symbol that never ends; add a rule for {name} that ends, such as {name} -> 'a'"
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
    for symbol in range(len(rules.names)):
        if any(symbol in cycle for cycle in found):
            continue
        cycle = _shortest_return(alone, symbol)
        if cycle is not None:
            found.append(cycle)
    return found


def _shortest_return(edges: Sequence[set[int]], symbol: int) -> tuple[int, ...] | None:
    paths: list[tuple[int, ...]] = [(symbol,)]
    seen: set[int] = set()
    for path in paths:
        for following in sorted(edges[path[-1]]):
            if following == symbol:
                return path
            if following not in seen:
                seen.add(following)
                paths.append((*path, following))
    return None


def _left_recursive(rules: Rules, nullable: Sequence[bool]) -> list[int]:
    corners: list[set[int]] = [set() for _ in rules.names]
    for head, body in rules:
        for symbol in body:
            if isinstance(symbol, str):
                break
            corners[head].add(symbol)
            if not nullable[symbol]:
                break
    return [symbol for symbol in range(len(rules.names)) if _shortest_return(corners, symbol) is not None]


def _overlaps(rules: Rules, nullable: Sequence[bool]) -> list[tuple[str, str, str]]:
    """Neighbouring terminals, with the longer terminal that may be read where the first of them was meant."""
    firsts = first_terminals(rules, nullable)
    lasts = _edge_terminals(rules, nullable, backwards=True)
    neighbours: set[tuple[str, str]] = set()
    for _, body in rules:
        for position, symbol in enumerate(body):
            left = frozenset({symbol}) if isinstance(symbol, str) else lasts[symbol]
            for right in body[position + 1 :]:
                following = frozenset({right}) if isinstance(right, str) else firsts[right]
                neighbours.update((a, b) for a in left for b in following)
                if isinstance(right, str) or not nullable[right]:
                    break
    longer = {
        terminal: [other for other in rules.terminals if len(other) > len(terminal) and other.startswith(terminal)]
        for terminal in rules.terminals
    }
    return [
        (first, second, other)
        for first, second in sorted(neighbours)
        for other in longer[first]
        if (rest := other[len(first) :]).startswith(second) or second.startswith(rest)
    ]
