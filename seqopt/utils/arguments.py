"""Arguments that people give in many ways, looked at before anything is done with them."""

from __future__ import annotations

import operator
from typing import Any

from seqopt.errors import InputError


def checked_integer(name: str, value: Any, least: int, expected: str = "") -> int:
    """An argument that has to be an integer, as Python's own, whatever library counted it.

    Args:
        name: What it is called.
        value: What was given.
        least: The smallest number that will do.
        expected: What was expected, in words.

    Raises:
        InputError: For anything else.

    Example:
        >>> import numpy as np
        >>> checked_integer("seed", np.int64(3), 0)
        3
    """
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if number < least:
        wanted = expected or f"expected an integer, at least {least}"
        raise InputError(f"{name} is {value!r}; {wanted}")
    return number
