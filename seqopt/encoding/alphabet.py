"""Numbered symbols."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from seqopt.errors import InputError
from seqopt.utils.config import Configurable

MAX_SYMBOLS = 65_534
"""Largest alphabet: symbols are stored in at most 16 bits, 0 is padding, and 65,535 is left to engines."""


class Alphabet(Configurable):
    """An ordered set of symbols, numbered from 1; 0 is kept for padding.

    Args:
        symbols: The symbols in their order; a repeated one counts once.
        closed: Whether a symbol outside the alphabet is an error (`True`) or joins it with the next number when it
            is first met (`False`). The numbers themselves carry no meaning, only their equality does, so an open
            alphabet never changes what has been encoded before.

    Raises:
        InputError: For an empty symbol, or more than 65,534 symbols.

    Example:
        >>> alphabet = Alphabet("ACGT")
        >>> len(alphabet), alphabet.number("C"), "U" in alphabet
        (4, 2, False)
    """

    def __init__(self, symbols: Iterable[str] = (), *, closed: bool = True) -> None:
        self._numbers: dict[str, int] = {}
        self.closed = closed
        for symbol in symbols:
            self._add(symbol)

    def config_arguments(self) -> dict[str, object]:
        """See `seqopt.utils.config.Configurable`."""
        return {"symbols": list(self), "closed": self.closed}

    def _add(self, symbol: str) -> int:
        if not symbol:
            raise InputError("an alphabet cannot hold an empty symbol")
        number = self._numbers.setdefault(symbol, len(self._numbers) + 1)
        if number > MAX_SYMBOLS:
            raise InputError(f"an alphabet holds at most {MAX_SYMBOLS:,} symbols; {symbol!r} is one too many")
        return number

    def number(self, symbol: str) -> int:
        """Number of ``symbol``, which joins an open alphabet.

        Raises:
            InputError: If the alphabet is closed and lacks the symbol.
        """
        number = self._numbers.get(symbol)
        if number is not None:
            return number
        if self.closed:
            shown = " ".join(list(self._numbers)[:40])
            more = " ..." if len(self._numbers) > 40 else ""
            raise InputError(f"symbol {symbol!r} is not in the alphabet of {len(self)} symbols: {shown}{more}")
        return self._add(symbol)

    @property
    def numbers(self) -> dict[str, int]:
        """A copy of the mapping from symbol to number."""
        return dict(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __contains__(self, symbol: object) -> bool:
        return symbol in self._numbers

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Alphabet) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"Alphabet({list(self)!r}, closed={self.closed})"
