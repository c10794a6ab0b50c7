"""What a string is to a network: a sequence of numbered symbols, and which symbols may follow.

A codec turns strings into rows of symbol numbers and back. Symbol 0 is padding. At every step a *context* says which
symbols are possible: for a grammar it is the non-terminal to be expanded, for characters there is one context inside a
string and one behind its end. A row has so many steps and no more: with s steps left, a symbol is possible only if the
string can still end,

    needed + change(symbol) <= s - 1,

where ``needed`` is the number of symbols with which the string could end at the soonest, and the symbol changes it so.
What the context or the steps forbid has probability zero, in training and in decoding.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from seqopt.errors import InputError

Symbols = npt.NDArray[np.int64]
"""``n x W``: symbol numbers from 1, padded with zeros on the right."""

DONE = 0
"""The context behind the end of a string, in which only padding is possible."""

Kind = TypeVar("Kind")

_KINDS: dict[type[Any], str] = {int: "an integer", str: "text", list: "a list"}


@runtime_checkable
class Writing(Protocol):
    """Strings in the making: what decoding step by step needs to know."""

    def contexts(self) -> npt.NDArray[np.int64]:
        """The context of each of the n strings; `DONE` for those that have ended."""
        ...

    def allowed(self) -> npt.NDArray[np.bool_]:
        """Which symbols each string can continue with: ``n x (symbols + 1)``. Only padding for ended ones."""
        ...

    def write(self, symbols: npt.NDArray[np.int64]) -> None:
        """Append one allowed symbol to each string."""
        ...


@runtime_checkable
class Codec(Protocol):
    """Strings as rows of symbols, and back.

    Attributes:
        model: ``"character"``, ``"grammar"`` or ``"selfies"``.
        symbols: How many symbols there are, without padding.
        steps: Width W of rows.
        possible: ``contexts x (symbols + 1)``: which symbols each context allows. Row `DONE` allows padding only.
        least: How many symbols the shortest row has.
        change: ``symbols + 1``: by how much each symbol changes the number of symbols with which a string could end.
            Padding changes nothing.
    """

    model: str
    symbols: int
    steps: int
    possible: npt.NDArray[np.bool_]
    least: int

    @property
    def change(self) -> npt.NDArray[np.int64]:
        """See the attributes."""
        ...

    def encode(self, strings: Sequence[str]) -> Symbols:
        """Rows of symbols.

        Raises:
            InputError: For a string that has no row, naming it and the reason.
        """
        ...

    def contexts(self, rows: Symbols) -> npt.NDArray[np.int64]:
        """The context in which each entry of ``rows`` stands; `DONE` for padding."""
        ...

    def writing(self, n: int) -> Writing:
        """``n`` strings, about to be written."""
        ...

    def decode(self, rows: Symbols) -> list[str]:
        """The strings that rows, written to their end, stand for."""
        ...

    def describe(self) -> str:
        """What the codec was made for, for messages."""
        ...

    def to_json(self) -> dict[str, Any]:
        """Everything needed to make it again, as JSON values."""
        ...


def checked_strings(strings: Sequence[str]) -> list[str]:
    """``strings`` as a list.

    Raises:
        InputError: For a single string, or an item that is no ``str``.
    """
    if isinstance(strings, str):
        raise InputError(f"expected a list of strings, got the single string {strings!r}: write [{strings!r}]")
    for position, string in enumerate(strings):
        if not isinstance(string, str):
            raise InputError(f"item {position} is {string!r} of type {type(string).__name__}; seqopt works on str")
    return list(strings)


def fact(facts: Mapping[str, Any], name: str, kind: type[Kind]) -> Kind:
    """The value ``name`` of what a codec's ``to_json`` returned, by way of a file that anyone may have written.

    Raises:
        InputError: If there is none, or it has another type.
    """
    return _of_kind(facts.get(name), name, kind)


def fact_list(facts: Mapping[str, Any], name: str, kind: type[Kind]) -> list[Kind]:
    """The same for a list all of whose items have one type.

    Raises:
        InputError: As for `fact`.
    """
    found: list[Any] = fact(facts, name, list)
    return [_of_kind(item, f"item {index} of {name}", kind) for index, item in enumerate(found)]


def _of_kind(value: Any, name: str, kind: type[Kind]) -> Kind:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise InputError(f"{name} is {reprlib.repr(value)}; expected {_KINDS[kind]}")
    return value


def shown(string: str) -> str:
    """``string`` in quotes, shortened if it is long."""
    return repr(string if len(string) <= 60 else f"{string[:57]}...")


def padded(rows: Sequence[Sequence[int]], width: int) -> Symbols:
    """Rows of different lengths in an array of ``width`` columns."""
    array = np.zeros((len(rows), width), dtype=np.int64)
    for row, symbols in zip(array, rows, strict=True):
        row[: len(symbols)] = symbols
    return array
