"""What a space is narrowed by: a predicate of strings that its user wrote."""

from __future__ import annotations

from collections.abc import Callable


def accepted(string: str, accept: Callable[[str], bool] | None) -> bool:
    """Whether a predicate holds for a string; all do where there is none.

    An exception of the predicate passes, with a note that names the string: a traceback shows where it was raised, and
    not for what.

    Example:
        >>> accepted("ACGT", lambda string: string.startswith("A"))
        True
        >>> try:
        ...     accepted("ACGT", lambda string: 1 / string.count("N") > 0)
        ... except ZeroDivisionError as error:
        ...     print(error.__notes__[0])
        raised by accept() for 'ACGT', to which it must answer True or False
    """
    if accept is None:
        return True
    try:
        return bool(accept(string))
    except Exception as error:
        error.add_note(f"raised by accept() for {string!r}, to which it must answer True or False")
        raise
