"""What modules of compiled loops share. Such a module is one file: Numba's cache on disk notices changes of it only."""

from __future__ import annotations

from typing import Any

import numba


def compiled(function: Any) -> Any:
    """Compile without the interpreter lock; keep the code on disk if there is a folder to write to."""
    try:
        return numba.njit(nogil=True, cache=True)(function)
    except RuntimeError:
        return numba.njit(nogil=True)(function)


def compiled_part(function: Any) -> Any:
    """Compile as a part of compiled functions, which cannot be called otherwise: in a fraction of the time."""
    return numba.njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)
