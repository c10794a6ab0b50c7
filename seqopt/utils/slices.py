"""Blocks of a list, one after the other."""

from __future__ import annotations


def slices_of(count: int, step: int) -> list[slice]:
    """Slices of at most ``step`` entries, at least one, that cover ``count`` of them.

    Example:
        >>> slices_of(5, 2)
        [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
        >>> slices_of(0, 2)
        []
    """
    step = max(1, step)
    return [slice(start, min(start + step, count)) for start in range(0, count, step)]
