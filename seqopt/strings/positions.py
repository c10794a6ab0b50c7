"""Positions of a sequence as users write them: ``12,45-60``, counted from 1."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from seqopt.errors import InputError


def parsed_positions(given: str | Iterable[int] | None, length: int) -> list[int]:
    """Positions, counted from 1, in their order.

    Args:
        given: Numbers, or a text of numbers and ranges with commas between them; `None` for all positions.
        length: Of the sequence.

    Raises:
        InputError: For what is no number or range, a position that is not in the sequence or is given twice, or none.

    Example:
        >>> parsed_positions("12,45-47", 60), parsed_positions([3, 1], 5), parsed_positions(None, 3)
        ([12, 45, 46, 47], [1, 3], [1, 2, 3])
        >>> parsed_positions("58-61", 60)
        Traceback (most recent call last):
        ...
        seqopt.errors.InputError: positions: there is no position 61; the sequence has those from 1 to 60 (in '58-61')
    """
    if given is None:
        return list(range(1, length + 1))
    numbers = _of_text(given, length) if isinstance(given, str) else [(number, "") for number in given]
    found: set[int] = set()
    for number, where in numbers:
        if isinstance(number, bool) or not isinstance(number, int | np.integer):
            raise InputError(f"positions: {number!r} is no position; give integers, counted from 1")
        if not 1 <= number <= length:
            raise InputError(
                f"positions: there is no position {number}; the sequence has those from 1 to {length}{where}"
            )
        if number in found:
            raise InputError(f"positions: {number} is given twice{where}")
        found.add(int(number))
    if not found:
        raise InputError("positions: none is given; write them as 12,45-60")
    return sorted(found)


def written_positions(positions: Iterable[int]) -> str:
    """Positions as a text of numbers and ranges.

    Example:
        >>> written_positions([12, 45, 46, 47, 60])
        '12,45-47,60'
    """
    runs: list[list[int]] = []
    for position in sorted(positions):
        if runs and position == runs[-1][1] + 1:
            runs[-1][1] = position
        else:
            runs.append([position, position])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def _of_text(text: str, length: int) -> list[tuple[int, str]]:
    """Each position, and where it was typed if that is more than the number itself."""
    found: list[tuple[int, str]] = []
    for part in (part.strip() for part in text.split(",")):
        first, dash, last = (piece.strip() for piece in part.partition("-"))
        if not first.isdecimal() or bool(dash) != bool(last) or (last and not last.isdecimal()):
            raise InputError(f"positions: {part!r} is no position or range; write them as 12,45-60")
        start, end = int(first), int(last or first)
        if end < start:
            raise InputError(f"positions: the range {part} ends before it begins; write the smaller number first")
        # What is far outside need not be counted through to be refused.
        typed = f" (in {part!r})" if dash else ""
        found += [(one, typed) for one in (range(start, min(end, length + 1) + 1) if start <= length else [start])]
    return found
