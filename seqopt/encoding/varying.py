"""Variants of one string without what they share: only the positions that vary are encoded."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt

from seqopt.encoding.encoded import EncodedStrings, Encoder
from seqopt.errors import InputError

SYMBOL_BITS = 16
"""Bits of the number of a symbol."""

LEAST_SHARE = 0.5
"""Positions at which all strings agree are left out if they are more than this share."""


class VaryingPositions(Encoder):
    """An encoder that leaves symbols out which a string shares with a background at positions that do not vary.

    Of a protein with four positions to choose, four symbols are encoded, and the cost of the sub-sequence kernel falls
    with the square of the length. Kernels that compare position by position lose nothing. Others lose what tells them
    where a symbol stands, since it is the background around it that does. So a symbol is numbered together with its
    position: it matches only the same symbol at the same position. A gap counts positions that vary, whatever lies
    between them. (With plain symbols, ``positioned=False``, the sub-sequence kernel predicts variants at four sites
    worse than with the whole background; with these it predicts them better: see ``docs/how-to/surrogates.md``.)

    Strings that were not foreseen can be encoded, too. One of the background's length that differs from it at another
    position keeps that symbol, between the others. One of another length keeps all its symbols, without positions, so
    that it has something in common with others of its kind only. (With plain symbols, one that is just as long as the
    positions that vary may be taken for a variant.)

    Args:
        encoder: Encodes whole strings.
        background: A string of the encoder, of L symbols.
        positions: Those that vary, counted from 0.
        positioned: Whether a symbol is numbered together with its position. A kernel that reads the numbers
            themselves, such as `seqopt.kernels.SubstitutionKernel`, needs plain symbols.

    Raises:
        InputError: If there is no position, or one is not in the background or stands twice.

    Example:
        >>> encoder = VaryingPositions(Encoder(), "ACGT", [1, 3])
        >>> encoded = encoder.encode(["ACGA", "AGGT", "ACGT", "TCGT"])
        >>> encoded.tokens.tolist(), list(encoder.alphabet)  # the last one also keeps its first symbol
        ([[1, 2, 0], [3, 4, 0], [1, 4, 0], [5, 1, 4]], ['C 2', 'A 4', 'G 2', 'T 4', 'T 1'])
    """

    def __init__(self, encoder: Encoder, background: str, positions: Sequence[int], *, positioned: bool = True) -> None:
        super().__init__(encoder.tokenizer, None if positioned else encoder.alphabet)
        self.encoder = encoder
        self.background = background
        self.positioned = positioned
        whole = encoder.encode([background])
        self._tokens = whole.tokens[0, : int(whole.lengths[0])]
        self.positions = sorted(int(position) for position in positions)
        length = len(self._tokens)
        if not self.positions or len(set(self.positions)) < len(self.positions):
            raise InputError(f"positions are {list(positions)}; expected one or more, each once")
        if not 0 <= self.positions[0] <= self.positions[-1] < length:
            raise InputError(f"positions are {list(positions)}; the background has those from 0 to {length - 1}")
        self._varying = np.zeros(length, dtype=np.bool_)
        self._varying[self.positions] = True

    def config_arguments(self) -> dict[str, Any]:
        """See `seqopt.utils.config.Configurable`."""
        return {
            "encoder": self.encoder,
            "background": self.background,
            "positions": self.positions,
            "positioned": self.positioned,
        }

    @property
    def name(self) -> str:
        """That of the tokeniser, and which positions of which background; equal names mean equal encodings."""
        digest = sha256(f"{self.background} {self.positions} {self.positioned}".encode()).hexdigest()[:8]
        return f"{self.tokenizer.name} at {len(self.positions)} of {len(self._tokens)} positions ({digest})"

    def encode(self, strings: Sequence[str], width: int | None = None) -> EncodedStrings:
        """Encode ``strings`` into ``width`` columns (default: as many as the longest of them keeps symbols).

        Raises:
            InputError: As `Encoder.encode` does.
        """
        whole = self.encoder.encode(strings)
        kept, numbers = self._kept(whole)
        lengths = kept.sum(axis=1, dtype=np.int32)
        rows, places = np.nonzero(kept)
        flat: npt.NDArray[np.unsignedinteger] = whole.tokens[rows, places]
        if self.positioned:
            flat = self._numbered(flat, numbers[rows, places])
        size = max(len(self.alphabet), int(flat.max(initial=0)))
        tokens = np.zeros((len(whole), int(lengths.max(initial=0))), dtype=np.uint8 if size <= 255 else np.uint16)
        tokens[np.arange(tokens.shape[1])[None, :] < lengths[:, None]] = flat
        found = EncodedStrings(tokens, lengths)
        return found if width is None else found.padded(width)

    def kept(self, string: str) -> list[int]:
        """Indices of the symbols of a string that are encoded.

        Example:
            >>> encoder = VaryingPositions(Encoder(), "ACGT", [1, 3])
            >>> encoder.kept("ACGA"), encoder.kept("TCGT"), encoder.kept("AC")
            ([1, 3], [0, 1, 3], [0, 1])
        """
        indices: list[int] = np.flatnonzero(self._kept(self.encoder.encode([string]))[0][0]).tolist()
        return indices

    def _kept(self, whole: EncodedStrings) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.intp]]:
        """Which symbols of n strings are encoded, and their positions, from 1 or 0 for none: both ``n x W``."""
        kept = whole.tokens != 0
        length = len(self._tokens)
        variants = whole.lengths == length
        alike = np.flatnonzero(variants)
        if len(alike):
            kept[alike, :length] = self._varying | (whole.tokens[alike, :length] != self._tokens)
        return kept, np.where(variants[:, None], np.arange(1, kept.shape[1] + 1), 0)

    def _numbered(
        self, symbols: npt.NDArray[np.unsignedinteger], positions: npt.NDArray[np.integer]
    ) -> npt.NDArray[np.uint16]:
        """Numbers of symbols together with their positions, counted from 1; 0 for symbols without one."""
        codes = positions.astype(np.int64) << SYMBOL_BITS | symbols
        found, first, places = np.unique(codes, return_index=True, return_inverse=True)
        numbers = np.empty(len(found), dtype=np.uint16)
        letters = list(self.encoder.alphabet)
        # As they come, so that numbering depends on nothing but the strings.
        for place in np.argsort(first):
            position, symbol = divmod(int(found[place]), 1 << SYMBOL_BITS)
            numbers[place] = self.alphabet.number(letters[symbol - 1] + (f" {position}" if position else ""))
        return numbers[places]


def varying_positions(strings: EncodedStrings, least: float = LEAST_SHARE) -> list[int] | None:
    """The positions at which strings of one length differ, where more than a share of positions is the same in all.

    Args:
        strings: n strings.
        least: The share.

    Returns:
        Positions, counted from 0; `None` where lengths differ, too few positions are the same, or all are.

    Example:
        >>> encode = Encoder().encode
        >>> varying_positions(encode(["ACCGT", "ACCGA", "AGCGT"])), varying_positions(encode(["A", "C"]))
        ([1, 4], None)
    """
    if not len(strings) or strings.lengths.min() != strings.lengths.max():
        return None
    tokens = strings.tokens[:, : int(strings.lengths[0])]
    varying = np.flatnonzero((tokens != tokens[:1]).any(axis=0))
    if not len(varying) or tokens.shape[1] - len(varying) <= least * tokens.shape[1]:
        return None
    found: list[int] = varying.tolist()
    return found
