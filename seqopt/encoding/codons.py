"""Codons as symbols."""

from __future__ import annotations

from collections.abc import Sequence

from seqopt.errors import InputError
from seqopt.utils.config import Configurable


class CodonTokenizer(Configurable):
    """One symbol per three letters, from the first letter on.

    Raises:
        InputError: When it meets a string whose length is not a multiple of three.

    Example:
        >>> CodonTokenizer().tokenize("ATGTGG")
        ['ATG', 'TGG']
    """

    name = "codons"

    def tokenize(self, string: str) -> list[str]:
        """Codons of one gene."""
        if len(string) % 3:
            shown = string if len(string) <= 40 else string[:40] + "..."
            raise InputError(f"{shown!r} has {len(string)} letters: not a multiple of three")
        return [string[start : start + 3] for start in range(0, len(string), 3)]

    def tokenize_all(self, strings: Sequence[str]) -> list[list[str]]:
        """Codons of each gene."""
        return [self.tokenize(string) for string in strings]
