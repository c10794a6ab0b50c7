"""What is computed once per `EncodedStrings` object and kept as long as the object lives."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from seqopt.encoding.encoded import EncodedStrings

P = ParamSpec("P")
T = TypeVar("T")


def once_per_strings(function: Callable[..., T]) -> Callable[..., T]:
    """Decorate a function of encoded strings (and hashable arguments) so that it remembers its results.

    Results are kept by the identity of the object, since arrays cannot be compared cheaply, and dropped with it: a
    finaliser removes them before the identity can pass to another object. Threads may share it; two that come
    first at once both compute.

    Example:
        >>> from seqopt.encoding import Encoder
        >>> @once_per_strings
        ... def longest(strings):
        ...     print("computing")
        ...     return int(strings.lengths.max())
        >>> strings = Encoder().encode(["ab", "abc"])
        >>> longest(strings), longest(strings)
        computing
        (3, 3)
    """
    results: dict[int, dict[Hashable, T]] = {}

    @wraps(function)
    def remembering(strings: EncodedStrings, *arguments: Any) -> T:
        identity = id(strings)
        if identity not in results:
            results[identity] = {}
            weakref.finalize(strings, results.pop, identity, None)
        own = results[identity]
        if arguments not in own:
            own[arguments] = function(strings, *arguments)
        return own[arguments]

    return remembering
