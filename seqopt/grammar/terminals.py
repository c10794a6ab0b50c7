"""Splitting strings into the terminals of a grammar.

Terminals may have several characters: ``sin(``, ``Cl``. A string is read from the left, and at each position the
*longest* terminal that fits is taken, without going back. This is how lexical analysers work, and it makes the
terminals of a string, and with them its length, a matter of the string alone, whatever the tree. Where terminals
overlap, a tree can exist whose leaves are not what its string is split into (``s``, ``in`` against ``sin``); its
string is then outside the language as understood here. `seqopt.grammar.check_grammar` reports whether a grammar has
such terminals side by side.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from seqopt.errors import InputError
from seqopt.utils.config import Configurable


class TerminalTokenizer(Configurable):
    """Splits strings into terminals, the longest first.

    A character at which no terminal fits becomes a symbol of its own in `tokenize`, so that models can read strings
    from outside the grammar, too; `split` refuses it.

    Args:
        terminals: The terminals of a grammar.

    Example:
        >>> TerminalTokenizer(["sin(", "x", ")"]).tokenize("sin(x)")
        ['sin(', 'x', ')']
    """

    name = "terminals"

    def __init__(self, terminals: Iterable[str]) -> None:
        self.terminals = tuple(dict.fromkeys(terminals))
        longest_first = sorted(filter(None, self.terminals), key=len, reverse=True)
        self._pattern = re.compile("|".join([*map(re.escape, longest_first), r"[\s\S]"]))

    def tokenize(self, string: str) -> list[str]:
        """Symbols of one string; joined, they give it back."""
        return self._pattern.findall(string)

    def tokenize_all(self, strings: Sequence[str]) -> list[list[str]]:
        """Symbols of each string."""
        find = self._pattern.findall
        return [find(string) for string in strings]

    def split(self, string: str) -> list[str]:
        """Terminals of one string.

        Raises:
            InputError: Where no terminal fits; the message names the position, counted from 1.
        """
        tokens = self.tokenize(string)
        known = set(self.terminals)
        position = 1
        for token in tokens:
            if token not in known:
                raise InputError(f"no terminal of the grammar fits {string!r} at position {position}: {token!r}")
            position += len(token)
        return tokens
