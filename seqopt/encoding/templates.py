"""Strings of a template without its framework: only the columns that vary are encoded, also where lengths differ."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from seqopt.encoding.encoded import EncodedStrings, Encoder
from seqopt.encoding.varying import VaryingPositions
from seqopt.errors import InputError
from seqopt.strings.templates import EMPTY, Template


class TemplatePositions(VaryingPositions):
    """An encoder that leaves the framework of a template out, and aligns parts of variable length at both ends.

    As `VaryingPositions` does for strings of one length, it numbers each symbol together with its position, here the
    column of the template. A loop of length r with room for m letters fills the first ceil(r / 2) and the last
    floor(r / 2) of its columns, with the gap in the middle, where loops of antibodies have it as a rule. So two loops
    of different lengths have the letters next to the framework in common.

    A string that the template does not permit keeps all its symbols, without positions.

    Args:
        encoder: Encodes whole strings, character by character.
        template: The template; see `seqopt.strings.templates`.
        kind: What the strings are.
        letters: What ``x`` stands for in the template.

    Raises:
        InputError: For a template that cannot be read, or in which nothing varies.

    Example:
        >>> encoder = TemplatePositions(Encoder(), "MKx{2-4}W")
        >>> encoded = encoder.encode(["MKACW", "MKADEFW"])
        >>> encoded.tokens.tolist(), list(encoder.alphabet)
        ([[1, 2, 0, 0], [1, 3, 4, 5]], ['A 3', 'C 6', 'D 4', 'E 5', 'F 6'])
    """

    def __init__(self, encoder: Encoder, template: str, *, kind: str = "protein", letters: str | None = None) -> None:
        Encoder.__init__(self, encoder.tokenizer)
        self.encoder = encoder
        self.template = Template(template, kind, letters)
        self.background = "".join(template.split())
        self.positioned = True
        self.positions = self.template.free.tolist()
        if not self.positions:
            raise InputError(f"{self.template.named} stands for one string: nothing varies")
        blocks = self.template.blocks
        self._starts = np.cumsum([0, *(len(block.choices) * block.most for block in blocks)])
        self._free = np.zeros(self.template.width, dtype=np.bool_)
        self._free[self.positions] = True

    def config_arguments(self) -> dict[str, Any]:
        """See `seqopt.utils.config.Configurable`."""
        return {
            "encoder": self.encoder,
            "template": self.template.text,
            "kind": self.template.kind,
            "letters": self.template.letters,
        }

    @property
    def name(self) -> str:
        """That of the tokeniser, and which positions of which template; equal names mean equal encodings."""
        from hashlib import sha256

        digest = sha256(f"{self.background} {self.template.kind} {self.template.letters}".encode()).hexdigest()[:8]
        return f"{self.tokenizer.name} at {len(self.positions)} columns of a template ({digest})"

    @property
    def fewest(self) -> int:
        """Symbols that each string of the template keeps at least."""
        found = 0
        for block in self.template.blocks:
            if block.varies:
                found += block.least * len(block.choices)
            else:
                found += sum(len(letters) > 1 for letters in block.choices)
        return found

    def _kept(self, whole: EncodedStrings) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.intp]]:
        """Which symbols of n strings are encoded, and their positions, from 1 or 0 for none: both ``n x W``."""
        kept = whole.tokens != 0
        numbers = np.zeros(kept.shape, dtype=np.intp)
        # Numbers of the encoder's symbols as those of the template's; the last one is for all others.
        known = {symbol: number for number, symbol in enumerate(self.template.symbols)}
        translation = np.array([EMPTY, *(known.get(symbol, EMPTY) for symbol in self.encoder.alphabet)], dtype=np.intp)
        rows = translation[whole.tokens]
        # A foreign symbol would look like the end of a string.
        own = ((rows != EMPTY) == kept).all(axis=1)
        columns, fits = self.template.laid_out(np.where(own[:, None], rows, EMPTY))
        there = np.flatnonzero(fits)
        if len(there):
            filled = columns[there] != EMPTY
            at = np.nonzero(filled)
            index = (np.cumsum(filled, axis=1) - 1)[at]
            kept[there[at[0]], index] = self._free[at[1]]
            numbers[there[at[0]], index] = self._aligned(filled)[at] + 1
        return kept, numbers

    def _aligned(self, filled: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
        """The column of each filled one once the gaps of parts of variable length stand in their middle."""
        found = np.tile(np.arange(filled.shape[1]), (len(filled), 1))
        for block, start in zip(self.template.blocks, self._starts.tolist(), strict=False):
            if block.varies:
                size = len(block.choices)
                end = start + size * block.most
                repeats = filled[:, start:end].sum(axis=1) // size
                repetition = np.arange(end - start) // size
                later = repetition[None, :] >= ((repeats + 1) // 2)[:, None]
                found[:, start:end] += later * ((block.most - repeats) * size)[:, None]
        return found
