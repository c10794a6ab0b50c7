"""Encoded strings: padded small integers with lengths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import torch

from seqopt.encoding.alphabet import Alphabet
from seqopt.encoding.tokenizers import CharacterTokenizer, Tokenizer, resolve_tokenizer
from seqopt.errors import InputError
from seqopt.utils.config import Configurable

LARGEST_TABLE = 0xFFFF
"""Highest code of a character that is numbered by a table of all codes."""


@dataclass(frozen=True)
class EncodedStrings:
    """Strings as rows of symbol numbers.

    What is derived from strings is remembered by object: their arrays must not be changed.

    Attributes:
        tokens: ``n x W`` array of uint8 or uint16. Row i holds the symbol numbers of string i, then zeros. 0 never
            stands inside a string.
        lengths: ``n`` int32, the number of symbols of each string.
    """

    tokens: npt.NDArray[np.unsignedinteger]
    lengths: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def width(self) -> int:
        """Number of columns W, at least the longest string."""
        return int(self.tokens.shape[1])

    def take(self, indices: npt.ArrayLike | slice) -> EncodedStrings:
        """The rows at ``indices`` (any numpy row index)."""
        return EncodedStrings(self.tokens[indices], self.lengths[indices])  # type: ignore[index]

    def padded(self, width: int) -> EncodedStrings:
        """The same strings in ``width`` columns.

        Raises:
            InputError: If a string does not fit.
        """
        if width == self.width:
            return self
        longest = int(self.lengths.max(initial=0))
        if width < longest:
            raise InputError(f"a string of {longest} symbols does not fit into {width} columns")
        tokens = np.zeros((len(self), width), dtype=self.tokens.dtype)
        keep = min(width, self.width)
        tokens[:, :keep] = self.tokens[:, :keep]
        return EncodedStrings(tokens, self.lengths)

    def joined(self, other: EncodedStrings) -> EncodedStrings:
        """These strings, followed by those of ``other``."""
        width = max(self.width, other.width)
        first, second = self.padded(width), other.padded(width)
        return EncodedStrings(
            np.concatenate([first.tokens, second.tokens]), np.concatenate([first.lengths, second.lengths])
        )

    def split(self, parts: int) -> list[EncodedStrings]:
        """Every string in ``parts`` contiguous pieces, cut at fractions of its own length.

        Piece p of a string of length L holds the symbols from floor(p L / parts) up to floor((p + 1) L / parts).

        Returns:
            For each p the p-th pieces of all strings.

        Raises:
            InputError: If ``parts`` is below 1 or above the length of the shortest string.

        Example:
            >>> [piece.tokens.tolist() for piece in Encoder().encode(["abcde", "ab"]).split(2)]
            [[[1, 2], [1, 0]], [[3, 4, 5], [2, 0, 0]]]
        """
        self.check_parts(parts)
        if parts == 1:
            return [self]
        edges = np.arange(parts + 1, dtype=np.int64)[:, None] * self.lengths[None, :] // parts
        equal = len(self) > 0 and int(np.ptp(self.lengths)) == 0
        pieces = []
        for starts, ends in pairwise(edges):
            lengths = (ends - starts).astype(np.int32)
            if equal:
                pieces.append(EncodedStrings(np.ascontiguousarray(self.tokens[:, starts[0] : ends[0]]), lengths))
                continue
            offsets = np.arange(lengths.max(initial=0))[None, :]
            inside = offsets < lengths[:, None]
            positions = np.where(inside, starts[:, None] + offsets, 0)
            tokens = np.where(inside, np.take_along_axis(self.tokens, positions, axis=1), 0)
            pieces.append(EncodedStrings(tokens.astype(self.tokens.dtype), lengths))
        return pieces

    def check_parts(self, parts: int) -> None:
        """Complain if the strings cannot be split into ``parts`` pieces.

        Raises:
            InputError: If ``parts`` is below 1 or above the length of the shortest string.
        """
        if isinstance(parts, bool) or not isinstance(parts, int | np.integer) or parts < 1:
            raise InputError(f"partitions is {parts!r}; it must be an integer of at least 1")
        shortest = int(self.lengths.min(initial=np.iinfo(np.int32).max))
        if parts > 1 and shortest < parts:
            row = int(self.lengths.argmin())
            raise InputError(
                f"partitions is {parts}, but string {row} has {shortest} symbols: at most {max(shortest, 1)} "
                f"partitions are possible here"
            )

    def to_tensor(self, width: int | None = None, device: torch.device | str | None = None) -> torch.Tensor:
        """Rows as float64, ``n x W``, the form in which models hold inputs."""
        encoded = self if width is None else self.padded(width)
        return torch.from_numpy(encoded.tokens.astype(np.float64)).to(device=device)

    @classmethod
    def from_tensor(cls, tensor: torch.Tensor) -> EncodedStrings:
        """Inverse of `to_tensor` for an ``n x W`` tensor: zeros after the last symbol are padding.

        Raises:
            InputError: If an entry is not an integer from 0 to 65,535, or a zero stands inside a string.
        """
        # NumPy has no bfloat16.
        values = (tensor.double() if tensor.dtype == torch.bfloat16 else tensor).detach().cpu().numpy()
        if values.ndim != 2:
            raise InputError(f"encoded strings are rows of a matrix; got a tensor of shape {tuple(values.shape)}")
        highest = values.max(initial=0)
        if not 0 <= values.min(initial=0) <= highest <= 65_535:
            row, column = np.argwhere(~((values >= 0) & (values <= 65_535)))[0]
            raise InputError(
                f"symbol numbers lie between 0 (padding) and 65,535; row {row}, column {column} holds "
                f"{values[row, column]}"
            )
        dtype: type[np.unsignedinteger] = np.uint8 if highest <= 255 else np.uint16
        tokens: npt.NDArray[np.unsignedinteger] = values.astype(dtype)
        if values.dtype.kind == "f" and not np.array_equal(tokens, values):
            row, column = np.argwhere(tokens != values)[0]
            raise InputError(f"symbol numbers are integers; row {row}, column {column} holds {values[row, column]}")
        return cls.from_tokens(tokens)

    @classmethod
    def from_tokens(cls, tokens: npt.NDArray[np.unsignedinteger]) -> EncodedStrings:
        """Rows of symbol numbers, zero-padded on the right.

        Raises:
            InputError: If a zero stands inside a string.
        """
        used = tokens != 0
        lengths = used.sum(axis=1, dtype=np.int32)
        ends = np.arange(tokens.shape[1])[None, :] < lengths[:, None]
        if not np.array_equal(used, ends):
            row = int(np.flatnonzero((used != ends).any(axis=1))[0])
            raise InputError(f"row {row} has padding (0) inside the string; padding must follow the last symbol")
        return cls(np.ascontiguousarray(tokens), lengths)


class Encoder(Configurable):
    """Turns strings into `EncodedStrings`.

    Args:
        tokenizer: A tokeniser or its name: ``"characters"`` or ``"smiles"``.
        alphabet: The permitted symbols. By default an open alphabet that numbers symbols as they come.

    Example:
        >>> encoded = Encoder("smiles").encode(["CCl", "C"])
        >>> encoded.tokens.tolist(), encoded.lengths.tolist()
        ([[1, 2], [1, 0]], [2, 1])
    """

    def __init__(self, tokenizer: str | Tokenizer = "characters", alphabet: Alphabet | None = None) -> None:
        self.tokenizer = resolve_tokenizer(tokenizer)
        self.alphabet = Alphabet(closed=False) if alphabet is None else alphabet

    def config_arguments(self) -> dict[str, object]:
        """See `seqopt.utils.config.Configurable`; an open alphabet begins empty, and grows with the strings."""
        return {"tokenizer": self.tokenizer, "alphabet": self.alphabet if self.alphabet.closed else None}

    @property
    def name(self) -> str:
        """That of the tokeniser."""
        return self.tokenizer.name

    def encode(self, strings: Sequence[str], width: int | None = None) -> EncodedStrings:
        """Encode ``strings`` into ``width`` columns (default: as many as the longest string has symbols).

        Raises:
            InputError: For an item that is no ``str`` (named by position and value), a symbol outside a closed
                alphabet, or a string longer than ``width``.
        """
        if isinstance(strings, str):
            raise InputError(f"expected a list of strings, got the single string {strings!r}: write [{strings!r}]")
        strings = list(strings)
        for position, string in enumerate(strings):
            if not isinstance(string, str):
                raise InputError(f"item {position} is {string!r} of type {type(string).__name__}; seqopt works on str")
        if isinstance(self.tokenizer, CharacterTokenizer):
            rows: Sequence[Sequence[str]] = strings
            flat = self._numbers_of_characters("".join(strings))
        else:
            rows = self.tokenizer.tokenize_all(strings)
            flat = self._numbers([symbol for row in rows for symbol in row])
        lengths = np.fromiter(map(len, rows), dtype=np.int32, count=len(rows))
        longest = int(lengths.max(initial=0))
        columns = longest if width is None else width
        if columns < longest:
            culprit = strings[int(lengths.argmax())]
            raise InputError(f"{culprit!r} has {longest} symbols; at most {columns} are allowed here")
        tokens = np.zeros((len(rows), columns), dtype=np.uint8 if len(self.alphabet) <= 255 else np.uint16)
        tokens[np.arange(columns)[None, :] < lengths[:, None]] = flat
        return EncodedStrings(tokens, lengths)

    def _numbers_of_characters(self, text: str) -> npt.NDArray[np.unsignedinteger]:
        """`_numbers` of single characters, in time that is hardly more than that of a table look-up."""
        if text.isascii() and len(self.alphabet) <= 255:
            of_byte = bytearray(256)
            for symbol, number in self.alphabet.numbers.items():
                if len(symbol) == 1 and symbol.isascii():
                    of_byte[ord(symbol)] = number
            numbered = text.encode().translate(of_byte)
            if 0 not in numbered:
                return np.frombuffer(numbered, dtype=np.uint8)
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
        if codes.max(initial=0) > LARGEST_TABLE:
            return self._numbers(list(text))
        met = np.zeros(int(codes.max(initial=0)) + 1, dtype=np.bool_)
        met[codes] = True
        symbols = [chr(code) for code in np.flatnonzero(met)]
        if any(symbol not in self.alphabet for symbol in symbols):
            # New ones are numbered as they appear.
            return self._numbers(list(text))
        table = np.zeros(len(met), dtype=np.uint16)
        table[met] = [self.alphabet.number(symbol) for symbol in symbols]
        return table[codes]

    def _numbers(self, symbols: list[str]) -> npt.NDArray[np.uint16]:
        known = self.alphabet.numbers
        # dict.fromkeys keeps the order of first appearance, so numbering does not depend on hashing.
        for symbol in dict.fromkeys(symbols):
            if symbol not in known:
                known[symbol] = self.alphabet.number(symbol)
        return np.fromiter(map(known.__getitem__, symbols), dtype=np.uint16, count=len(symbols))
