"""Ways to split a string into symbols.

References:
    Weininger, D. (1988). SMILES, a chemical language and information system. J. Chem. Inf. Comput. Sci. 28, 31-36.
    OpenSMILES specification, section 3 (the grammar of organic-subset atoms, bracket atoms, bonds and ring bonds).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from seqopt.errors import InputError
from seqopt.utils.config import Configurable


@runtime_checkable
class Tokenizer(Protocol):
    """Splits strings into symbols; joining the symbols gives the string back."""

    name: str

    def tokenize(self, string: str) -> list[str]:
        """Symbols of one string."""
        ...

    def tokenize_all(self, strings: Sequence[str]) -> list[list[str]]:
        """Symbols of many strings."""
        ...


class CharacterTokenizer(Configurable):
    """One symbol per character.

    Example:
        >>> CharacterTokenizer().tokenize("CCl")
        ['C', 'C', 'l']
    """

    name = "characters"

    def tokenize(self, string: str) -> list[str]:
        """Characters of ``string``."""
        return list(string)

    def tokenize_all(self, strings: Sequence[str]) -> list[list[str]]:
        """Characters of each string."""
        return [list(string) for string in strings]


class SmilesTokenizer(Configurable):
    """Chemistry-aware symbols of a SMILES string.

    Two-letter atoms (``Cl``, ``Br``), two-digit ring bonds (``%12``), chirality marks (``@@``) and bracket atoms
    (``[nH]``) are one symbol. A character that no rule knows becomes a symbol of its own, so every string can be
    tokenised and nothing is dropped.

    Args:
        whole_brackets: Keep each bracket atom as one symbol (named ``"smiles"``). Otherwise (``"smiles-split"``)
            brackets and what they hold are symbols of their own, so that ``[nH]`` resembles ``n``.

    Example:
        >>> SmilesTokenizer().tokenize("C[C@@H](Cl)c1c[nH]cc1")
        ['C', '[C@@H]', '(', 'Cl', ')', 'c', '1', 'c', '[nH]', 'c', 'c', '1']
        >>> SmilesTokenizer(whole_brackets=False).tokenize("[C@@H]%12")
        ['[', 'C', '@@', 'H', ']', '%12']
    """

    _BRACKET = r"\[[^\[\]]*\]"
    _REST = r"Cl|Br|@@|%\d\d|%\(\d+\)|[\s\S]"

    def __init__(self, *, whole_brackets: bool = True) -> None:
        self.whole_brackets = whole_brackets
        self.name = "smiles" if whole_brackets else "smiles-split"
        self._pattern = re.compile(f"{self._BRACKET}|{self._REST}" if whole_brackets else self._REST)

    def tokenize(self, string: str) -> list[str]:
        """Symbols of one SMILES string."""
        return self._pattern.findall(string)

    def tokenize_all(self, strings: Sequence[str]) -> list[list[str]]:
        """Symbols of each SMILES string."""
        find = self._pattern.findall
        return [find(string) for string in strings]


def resolve_tokenizer(tokenizer: str | Tokenizer) -> Tokenizer:
    """The tokeniser of a name, or the given tokeniser itself.

    Args:
        tokenizer: ``"characters"``, ``"smiles"``, ``"smiles-split"``, or an object with the `Tokenizer` methods.

    Raises:
        InputError: For an unknown name.
    """
    if not isinstance(tokenizer, str):
        return tokenizer
    if tokenizer == "characters":
        return CharacterTokenizer()
    if tokenizer == "smiles":
        return SmilesTokenizer()
    if tokenizer == "smiles-split":
        return SmilesTokenizer(whole_brackets=False)
    raise InputError(f"unknown tokenizer {tokenizer!r}: choose characters, smiles or smiles-split")
