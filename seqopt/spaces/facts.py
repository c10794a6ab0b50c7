"""What a space records of itself, so that a search is continued in the space in which it began."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable

LONGEST_FACT = 60
"""Characters of a text that is recorded as it is."""


def fingerprint(items: Iterable[str]) -> str:
    """The first 16 hexadecimal digits of the SHA-256 of texts in their order.

    Example:
        >>> fingerprint(["ab", "c"]) == fingerprint(["a", "bc"])
        False
    """
    return hashlib.sha256("\0".join(items).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def abridged(text: str) -> str:
    """``text``, or for one of more than `LONGEST_FACT` characters its beginning, its length and its fingerprint.

    Example:
        >>> abridged("TIKENIFGVS")
        'TIKENIFGVS'
        >>> abridged(1130 * "A")
        'AAAAAAAAAAAAAAAAAAAAAAAA... (1130 characters, SHA-256 3453b5f8fa4946f7...)'
    """
    if len(text) <= LONGEST_FACT:
        return text
    return f"{text[:24]}... ({len(text)} characters, SHA-256 {fingerprint([text])}...)"


def predicate_name(accept: Callable[[str], bool] | None) -> str | None:
    """The qualified name of a predicate, or of its type where it has none of its own.

    Example:
        >>> predicate_name(str.isupper), predicate_name(None)
        ('str.isupper', None)
    """
    return None if accept is None else getattr(accept, "__qualname__", type(accept).__qualname__)
