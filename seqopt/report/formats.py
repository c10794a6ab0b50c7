"""Numbers, durations and text as a reader wants to see them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

NumberFormat = Callable[[float], str]


def significant(value: float, digits: int = 4) -> str:
    """``value`` to a number of significant digits, in thousands groups, or with a power of ten where that is shorter.

    Example:
        >>> [significant(x) for x in (0, 1.23456, 12345.6, 0.00012345, 1.5e9, -0.5)]
        ['0', '1.235', '12,346', '0.0001234', '1.500e+09', '-0.5000']
    """
    if not math.isfinite(value):
        return str(value)
    if value == 0:
        return "0"
    exponent = math.floor(math.log10(abs(value)))
    if not -4 <= exponent < 7:
        return f"{value:.{digits - 1}e}"
    return f"{value:,.{max(0, digits - 1 - exponent)}f}"


def compact(value: float) -> str:
    """``value`` to three significant digits at most, without trailing zeros.

    Example:
        >>> [compact(x) for x in (0.9, 0.08, 0.0066376, 1234.5, 1e-9)]
        ['0.9', '0.08', '0.00664', '1,234', '1e-09']
    """
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.3g}"


def number_format(values: Iterable[float], *, log10: bool = False) -> NumberFormat:
    """A format for a set of numbers that are read side by side.

    They get as many decimals as show three digits of the range they span; numbers that span decades (``log10``), or
    that are all equal, very large or very small, get significant digits instead.

    Example:
        >>> show = number_format([-3.2, 4.0, 1.0])
        >>> show(3.14159), show(-0.0001)
        ('3.14', '0.00')
        >>> number_format([150.0, 3000.0, 820.0])(1234.5)
        '1,234'
        >>> number_format([10.0, 20000.0], log10=True)(1234.5)
        '1,234'
    """
    finite = [float(value) for value in values if math.isfinite(value)]
    spread = max(finite) - min(finite) if finite else 0.0
    if log10:
        return lambda value: significant(value, 3 if abs(value) < 1000 else 4)
    if not 0 < spread < math.inf:
        return significant
    # Half the range decides, so that numbers from 0 to 1 get three decimals and those from -3 to 4 get two.
    decimals = max(0, 2 - math.floor(math.log10(spread / 2)))
    if decimals > 6 or max(abs(value) for value in finite) >= 1e7:
        return significant

    def fixed(value: float) -> str:
        # Adding 0.0 turns the -0.0 that rounding leaves into 0.0.
        return f"{round(value, decimals) + 0.0:,.{decimals}f}"

    return fixed


def duration(seconds: float) -> str:
    """A time span in its two largest units.

    Example:
        >>> [duration(s) for s in (0.034, 8.25, 75, 3725, 200000)]
        ['0.03 s', '8.2 s', '1 min 15 s', '1 h 2 min', '2 d 7 h']
    """
    if seconds < 0.95:
        return f"{seconds:.2f} s"
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for large, small, size in (("d", "h", 86400), ("h", "min", 3600), ("min", "s", 60)):
        if whole >= size:
            rest = whole % size // (size // 24 if large == "d" else size // 60)
            return f"{whole // size} {large}" + (f" {rest} {small}" if rest else "")
    return f"{whole} s"


def printable(text: str) -> str:
    r"""``text`` with everything that cannot be seen written as an escape.

    Control characters are not allowed in XML, and marks that reverse the reading direction could make a string look
    like another one.

    Example:
        >>> print(printable("CC\x00O\u202e β"))
        CC\x00O\u202e β
    """
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


def shortened(text: str, length: int) -> str:
    """``text``, or its beginning and an ellipsis when it has more than ``length`` characters.

    Example:
        >>> shortened("penicillin", 5)
        'peni…'
    """
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"
