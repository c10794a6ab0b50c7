"""Which numbers of terminals the symbols of a grammar can produce.

A set of lengths from 0 to ``longest`` is an integer whose bit l says whether l is in the set. With ``L(X)`` the
lengths of symbol X, a terminal has {1}, and a non-terminal the union over its rules of the sums of the lengths of
their symbols: the least fixed point, found by dynamic programming.
"""

from __future__ import annotations

from collections import deque

from seqopt.grammar.rules import Rules


def interval(lowest: int, highest: int) -> int:
    """The lengths from ``lowest`` to ``highest``; those below zero do not exist.

    Example:
        >>> bin(interval(1, 3)), interval(2, 1)
        ('0b1110', 0)
    """
    lowest = max(lowest, 0)
    return ((1 << (highest - lowest + 1)) - 1) << lowest if highest >= lowest else 0


def runs(lengths: int) -> list[tuple[int, int]]:
    """Stretches of consecutive lengths, each as its first length and how many there are.

    Example:
        >>> runs(0b110100)
        [(2, 1), (4, 2)]
    """
    found = []
    first = 0
    while lengths:
        gap = (lengths & -lengths).bit_length() - 1
        lengths >>= gap
        first += gap
        count = (~lengths & (lengths + 1)).bit_length() - 1
        found.append((first, count))
        lengths >>= count
        first += count
    return found


def sums(a: int, b: int, longest: int) -> int:
    """Lengths l + m with l in ``a`` and m in ``b``, up to ``longest``."""
    total = 0
    for first, count in runs(b):
        total |= _smeared(a << first, count, upwards=True)
    return total & ((1 << (longest + 1)) - 1)


def differences(a: int, b: int) -> int:
    """Lengths l for which some m in ``b`` has l + m in ``a``."""
    total = 0
    for first, count in runs(b):
        total |= _smeared(a >> first, count, upwards=False)
    return total


def _smeared(lengths: int, count: int, *, upwards: bool) -> int:
    """The union of ``lengths`` shifted by 0, 1, ..., count - 1, in logarithmically many steps."""
    covered = 1
    while covered < count:
        step = min(covered, count - covered)
        lengths |= lengths << step if upwards else lengths >> step
        covered += step
    return lengths


class YieldLengths:
    """Lengths that symbols, rules and the ends of rules can produce, up to a limit.

    Args:
        rules: The grammar.
        longest: The largest number of terminals of interest.

    Attributes:
        symbols: Lengths of each non-terminal.
        suffixes: For each rule a list: entry p holds the lengths of its body from position p on; the last, of
            nothing, is {0}.

    Example:
        >>> from seqopt.grammar import load_grammar
        >>> rules = Rules.of(load_grammar("arithmetic"))
        >>> bin(YieldLengths(rules, 6).symbols[rules.start])  # 1, 3 and 5
        '0b101010'
    """

    def __init__(self, rules: Rules, longest: int) -> None:
        self.longest = longest
        self.symbols = [0] * len(rules.names)
        users: list[set[int]] = [set() for _ in rules.names]
        for rule, (_, body) in enumerate(rules):
            for symbol in body:
                if isinstance(symbol, int):
                    users[symbol].add(rule)
        waiting = deque(range(len(rules)))
        queued = set(waiting)
        while waiting:
            rule = waiting.popleft()
            queued.discard(rule)
            head = rules.heads[rule]
            grown = self.symbols[head] | self._suffixes(rules.bodies[rule])[0]
            if grown != self.symbols[head]:
                self.symbols[head] = grown
                fresh = sorted(users[head] - queued)
                waiting.extend(fresh)
                queued.update(fresh)
        self.suffixes = [self._suffixes(body) for _, body in rules]

    def _suffixes(self, body: tuple[int | str, ...]) -> list[int]:
        found = [1]
        for symbol in reversed(body):
            lengths = 2 if isinstance(symbol, str) else self.symbols[symbol]
            found.append(sums(found[-1], lengths, self.longest) if found[-1] and lengths else 0)
        return found[::-1]
