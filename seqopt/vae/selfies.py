"""Molecules as SELFIES: every row of symbols is a molecule (the SELFIES VAE).

A SMILES is rewritten as SELFIES, one symbol for an atom with its bond, a branch or a ring, and a character model learns
these. What is decoded is read by the rules of SELFIES, which pass over a bond that an atom has no valence for, and
becomes the canonical SMILES again. The rules are those of the ``selfies`` package (``pip install selfies``), with the
valences that it has at the moment of reading.

References:
    Krenn, M., Haese, F., Nigam, A., Friederich, P., Aspuru-Guzik, A. (2020). Self-referencing embedded strings
        (SELFIES): a 100 % robust molecular string representation. Machine Learning: Science and Technology 1, 045024.
    Lo, A. et al. (2023). Recent advances in the self-referencing embedded strings (SELFIES) library. Digital Discovery
        2, 897-908.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from seqopt.errors import InputError
from seqopt.strings.identity import identity_keys
from seqopt.vae.character import CharacterCodec, CharacterWriting
from seqopt.vae.codecs import Symbols, checked_strings, fact, fact_list, shown

_REMEMBERED = 1 << 19
"""SELFIES that are kept: to write one takes a third of a millisecond, and a training writes each three times."""


class SelfiesTokenizer:
    """The symbols of a SELFIES, each in its brackets.

    Example:
        >>> SelfiesTokenizer().tokenize("[C][=O]")
        ['[C]', '[=O]']
    """

    name = "selfies"
    _pattern = re.compile(r"\[[^\[\]]*\]|\.")

    def tokenize(self, string: str) -> list[str]:
        """Symbols of one SELFIES."""
        return self._pattern.findall(string)

    def tokenize_all(self, strings: Sequence[str]) -> list[list[str]]:
        """Symbols of each SELFIES."""
        return [self.tokenize(string) for string in strings]


class SelfiesCodec:
    """SMILES of molecules as rows of SELFIES symbols that close with an end symbol.

    Args:
        alphabet: The symbols.
        max_length: The largest number of symbols of a molecule.

    Raises:
        InputError: If the package ``selfies`` is missing, for an empty alphabet, or a ``max_length`` below 1.

    Example:
        >>> codec = SelfiesCodec.of(["CCO", "C=O"])
        >>> codec.alphabet, codec.encode(["CCO", "C=O"]).tolist()
        (('[=O]', '[C]', '[O]'), [[2, 2, 3, 4], [2, 1, 4, 0]])
        >>> codec.decode(codec.encode(["OCC"]))  # canonical
        ['CCO']
    """

    model = "selfies"

    def __init__(self, alphabet: Iterable[str], max_length: int) -> None:
        self._selfies = _package()
        self._rows = CharacterCodec(alphabet, max_length, SelfiesTokenizer())
        self.alphabet, self.max_length = self._rows.alphabet, max_length
        self.symbols, self.steps = self._rows.symbols, self._rows.steps
        self.possible, self.least = self._rows.possible, self._rows.least
        self._written: dict[str, str] = {}

    @classmethod
    def of(cls, strings: Sequence[str], *, max_length: int | None = None, skip: bool = False) -> SelfiesCodec:
        """The codec of the symbols that occur in the SELFIES of ``strings``, in their alphabetical order.

        Args:
            strings: What a model is to be trained on, as SMILES.
            max_length: By default the length of the longest of them, in symbols.
            skip: Pass over strings that have no SELFIES; `derived` gives the others.

        Raises:
            InputError: If there is no string left, or one has no SELFIES or more than ``max_length`` symbols.
        """
        package = _package()
        written = [_written(package, string, skip) for string in checked_strings(strings)]
        rows = SelfiesTokenizer().tokenize_all([selfies for selfies in written if selfies])
        if not rows:
            raise InputError(f"none of the {len(strings)} strings has a SELFIES; expected at least one molecule")
        alphabet = sorted({symbol for row in rows for symbol in row})
        codec = cls(alphabet, max(map(len, rows)) if max_length is None else max_length)
        codec._written = {
            string: selfies for string, selfies in zip(strings[:_REMEMBERED], written, strict=False) if selfies
        }
        if max_length is not None and not skip:
            codec.encode(strings)
        return codec

    @property
    def change(self) -> npt.NDArray[np.int64]:
        """See `seqopt.vae.codecs.Codec`."""
        return self._rows.change

    def encode(self, strings: Sequence[str]) -> Symbols:
        """Rows of symbols; see `seqopt.vae.codecs.Codec`.

        Raises:
            InputError: For a string that has no SELFIES, is too long, or needs a symbol outside the alphabet; the
                message names it.
        """
        strings = checked_strings(strings)
        written = [self._selfies_of(string) for string in strings]
        try:
            return self._rows.encode(written)
        except InputError:
            for string, selfies in zip(strings, written, strict=True):
                try:
                    self._rows.encode([selfies])
                except InputError as error:
                    raise InputError(f"{shown(string)} cannot be read by this model: as SELFIES, {error}") from error
            raise

    def _selfies_of(self, string: str) -> str:
        found = self._written.get(string)
        if found is None:
            found = _written(self._selfies, string)
            if len(self._written) >= _REMEMBERED:
                self._written.clear()
            self._written[string] = found
        return found

    def contexts(self, rows: Symbols) -> npt.NDArray[np.int64]:
        """See `seqopt.vae.codecs.Codec`."""
        return self._rows.contexts(rows)

    def writing(self, n: int) -> CharacterWriting:
        """See `seqopt.vae.codecs.Codec`: any symbol may follow any other."""
        return self._rows.writing(n)

    def decode(self, rows: Symbols) -> list[str]:
        """The canonical SMILES of rows; as SELFIES gives it where RDKit does not read it."""
        smiles = [str(self._selfies.decoder(selfies)) for selfies in self._rows.decode(rows)]
        keys = identity_keys(smiles, "molecule")
        return [string if key is None else key for string, key in zip(smiles, keys, strict=True)]

    def derived(self, strings: Sequence[str]) -> list[str]:
        """Those of ``strings`` that the model reads.

        Raises:
            InputError: If ``strings`` is not a list of strings.
        """
        return [string for string in checked_strings(strings) if self._reads(string)]

    def _reads(self, string: str) -> bool:
        try:
            self.encode([string])
        except InputError:
            return False
        return True

    def describe(self) -> str:
        """What the codec was made for."""
        return f"a SELFIES model for molecules of {len(self.alphabet)} symbols"

    def to_json(self) -> dict[str, Any]:
        """Everything needed to make it again."""
        return {"model": self.model, "alphabet": list(self.alphabet), "max_length": self.max_length}

    @classmethod
    def from_json(cls, facts: dict[str, Any]) -> SelfiesCodec:
        """The codec of what `to_json` returned.

        Raises:
            InputError: If it cannot have returned that, or the package ``selfies`` is missing.
        """
        alphabet = fact_list(facts, "alphabet", str)
        for symbol in alphabet:
            if SelfiesTokenizer().tokenize(symbol) != [symbol]:
                raise InputError(f"{shown(symbol)} is no symbol of SELFIES; expected one in brackets, as [C]")
        return cls(alphabet, fact(facts, "max_length", int))


def _package() -> Any:
    """The package ``selfies``.

    Raises:
        InputError: If it is not installed.
    """
    try:
        return import_module("selfies")
    except ImportError:
        raise InputError("SELFIES need the package selfies: pip install 'seqopt[selfies]'") from None


def _written(package: Any, string: str, skip: bool = False) -> str:
    """The SELFIES of a SMILES; empty if it has none and may be passed over."""
    if not string:
        if skip:
            return ""
        raise InputError("an empty string is no molecule: SELFIES need at least one atom")
    try:
        return str(package.encoder(string))
    except package.EncoderError as error:
        if skip:
            return ""
        raise InputError(f"{shown(string)} has no SELFIES: {' '.join(str(error).split())}") from error
