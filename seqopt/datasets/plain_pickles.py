"""Pickles that hold plain values only: numbers, texts, lists and dictionaries.

A pickle is a program: whoever loads one runs whatever function it names. The benchmark tables that are published as
pickles name none, and this reader refuses those that do, before anything of them is called.

References:
    The Python library reference, `pickle`, section "Restricting globals".
"""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any, NoReturn

from seqopt.errors import InputError


class _PlainUnpickler(pickle.Unpickler):
    """Makes no object but those of the pickle format itself."""

    def find_class(self, module: str, name: str, /) -> NoReturn:
        # Extension codes end up here too, and without a class or function nothing can be called.
        raise InputError(f"it names {module}.{name}, and a table of numbers needs no class or function")

    def persistent_load(self, pid: Any, /) -> NoReturn:
        raise InputError(f"it refers to the object {pid!r} outside the file")


def read_plain_pickle(path: str | Path, data: bytes | None = None) -> Any:
    """The value in a pickle of plain values.

    Args:
        path: The file.
        data: Its bytes, where they have been read already, so that what was checked is what is loaded.

    Raises:
        InputError: For a file that cannot be read, is not a pickle, or names any class or function: it is refused,
            and nothing of it is called.

    Example:
        >>> import pickle
        >>> read_plain_pickle("table.pkl", pickle.dumps({"01": [0.5, 0.25]}))
        {'01': [0.5, 0.25]}
    """
    if data is None:
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror}") from error
    try:
        return _PlainUnpickler(io.BytesIO(data)).load()
    except InputError as error:
        raise InputError(f"{path} is refused: {error}; do not load it otherwise unless you trust its origin") from None
    # A damaged pickle may fail anywhere in the reader.
    except Exception as error:
        raise InputError(f"{path} is not a readable pickle ({type(error).__name__}: {error})") from error
