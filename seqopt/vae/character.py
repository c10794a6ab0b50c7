"""Strings as their characters, one after the other (the character VAE).

References:
    Gomez-Bombarelli, R. et al. (2018). Automatic chemical design using a data-driven continuous representation of
        molecules. ACS Central Science 4, 268-276.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from seqopt.encoding import Tokenizer, resolve_tokenizer
from seqopt.errors import InputError
from seqopt.vae.codecs import Symbols, checked_strings, fact, fact_list, padded, shown

_INSIDE = 1


class CharacterCodec:
    """Rows of characters (or of the symbols of another tokeniser) that close with an end symbol.

    Args:
        alphabet: The symbols.
        max_length: The largest number of symbols of a string.
        tokenizer: ``"characters"``, ``"smiles"``, ``"smiles-split"``, or an object with the methods of
            `seqopt.encoding.Tokenizer`.

    Raises:
        InputError: For an empty alphabet, a ``max_length`` below 1, or an unknown tokeniser.

    Example:
        >>> codec = CharacterCodec.of(["x+1", "x"])
        >>> codec.alphabet, codec.encode(["x+1", "x"]).tolist()
        (('+', '1', 'x'), [[3, 1, 2, 4], [3, 4, 0, 0]])
    """

    model = "character"

    def __init__(self, alphabet: Iterable[str], max_length: int, tokenizer: str | Tokenizer = "characters") -> None:
        self.alphabet = tuple(dict.fromkeys(alphabet))
        if not self.alphabet:
            raise InputError("the alphabet is empty; expected at least one symbol")
        if max_length < 1:
            raise InputError(f"max_length is {max_length}; expected at least 1")
        self.tokenizer = resolve_tokenizer(tokenizer)
        self.max_length = max_length
        self._numbers = {symbol: number for number, symbol in enumerate(self.alphabet, start=1)}
        self._end = len(self.alphabet) + 1
        self.symbols = self._end
        self.steps = max_length + 1
        self.possible = np.zeros((2, self.symbols + 1), dtype=np.bool_)
        self.possible[0, 0] = True
        self.possible[_INSIDE, 1:] = True
        # Whatever is written, the end symbol alone is missing.
        self.least = 1
        self.change = np.where(np.arange(self.symbols + 1) == self._end, -1, 0)

    @classmethod
    def of(
        cls, strings: Sequence[str], *, max_length: int | None = None, tokenizer: str = "characters"
    ) -> CharacterCodec:
        """The codec of the symbols that occur in ``strings``, in their alphabetical order.

        Args:
            strings: What a model is to be trained on.
            max_length: By default the length of the longest of them.
            tokenizer: As for the class.

        Raises:
            InputError: If there is no string with a symbol, or one is longer than ``max_length``.
        """
        tokens = resolve_tokenizer(tokenizer).tokenize_all(checked_strings(strings))
        alphabet = sorted({symbol for row in tokens for symbol in row})
        if not alphabet:
            raise InputError("the strings hold no symbols; an alphabet needs at least one")
        longest = max(map(len, tokens))
        if max_length is None:
            max_length = longest
        codec = cls(alphabet, max_length, tokenizer)
        if longest > max_length:
            codec.encode(strings)
        return codec

    def encode(self, strings: Sequence[str]) -> Symbols:
        """Rows of symbols; see `seqopt.vae.codecs.Codec`.

        Raises:
            InputError: For a string that is too long or has a symbol outside the alphabet; the message says where.
        """
        strings = checked_strings(strings)
        rows = []
        for string, tokens in zip(strings, self.tokenizer.tokenize_all(strings), strict=True):
            if len(tokens) > self.max_length:
                self._refuse(string, tokens)  # that it is of another kind matters more than its length
                raise InputError(
                    f"{shown(string)} has {len(tokens)} symbols; this model takes strings of up to {self.max_length}"
                )
            try:
                rows.append([*(self._numbers[token] for token in tokens), self._end])
            except KeyError:
                self._refuse(string, tokens)
        return padded(rows, self.steps)

    def _refuse(self, string: str, tokens: Sequence[str]) -> None:
        position = 1
        for token in tokens:
            if token not in self._numbers:
                raise InputError(
                    f"symbol {token!r} at position {position} of {shown(string)} is not in the model's "
                    f"{self._described_alphabet()}"
                )
            position += len(token)

    def _described_alphabet(self) -> str:
        more = " ..." if len(self.alphabet) > 40 else ""
        return f"alphabet of {len(self.alphabet)} symbols: {' '.join(self.alphabet[:40])}{more}"

    def contexts(self, rows: Symbols) -> npt.NDArray[np.int64]:
        """See `seqopt.vae.codecs.Codec`."""
        return np.where(rows > 0, _INSIDE, 0)

    def writing(self, n: int) -> CharacterWriting:
        """See `seqopt.vae.codecs.Codec`."""
        return CharacterWriting(n, self.possible, self._end, self.steps)

    def decode(self, rows: Symbols) -> list[str]:
        """The strings of rows."""
        names = ["", *self.alphabet, ""]
        return ["".join(names[symbol] for symbol in row) for row in rows.tolist()]

    def describe(self) -> str:
        """What the codec was made for."""
        return f"a character model for the {self._described_alphabet()}"

    def to_json(self) -> dict[str, Any]:
        """Everything needed to make it again."""
        return {
            "model": self.model,
            "alphabet": list(self.alphabet),
            "max_length": self.max_length,
            "tokenizer": self.tokenizer.name,
        }

    @classmethod
    def from_json(cls, facts: dict[str, Any]) -> CharacterCodec:
        """The codec of what `to_json` returned.

        Raises:
            InputError: If it cannot have returned that.
        """
        alphabet = fact_list(facts, "alphabet", str)
        if "" in alphabet:
            raise InputError("a symbol of the alphabet is empty; expected at least one character")
        return cls(alphabet, fact(facts, "max_length", int), fact(facts, "tokenizer", str))


class CharacterWriting:
    """Any symbol may follow any other; the last step can only end the string.

    Args:
        n: Number of strings.
        possible: Symbols by context.
        end: The end symbol.
        steps: Most symbols, the end included.
    """

    def __init__(self, n: int, possible: npt.NDArray[np.bool_], end: int, steps: int) -> None:
        self._possible = possible
        self._end = end
        self._left = steps
        self._contexts = np.full(n, _INSIDE, dtype=np.int64)

    def contexts(self) -> npt.NDArray[np.int64]:
        """See `seqopt.vae.codecs.Writing`."""
        return self._contexts

    def allowed(self) -> npt.NDArray[np.bool_]:
        """See `seqopt.vae.codecs.Writing`."""
        allowed = self._possible[self._contexts]
        if self._left == 1:
            allowed[self._contexts == _INSIDE] = np.arange(allowed.shape[1]) == self._end
        return allowed

    def write(self, symbols: npt.NDArray[np.int64]) -> None:
        """See `seqopt.vae.codecs.Writing`."""
        self._left -= 1
        self._contexts = np.where((symbols == self._end) | (symbols == 0), 0, self._contexts)
