"""Results that are slow to compute, kept on disk between runs.

A cache file is plain text: a line with the SHA-256 of the rest, then one item a line. A file that does not
match its checksum counts as absent, and a folder that cannot be written only means that the work is done
again next time.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

_MAGIC = "seqopt cache 1"
_BLOCK = 1 << 16


def cache_dir() -> Path:
    """The cache folder: ``$SEQOPT_CACHE``, or the user's cache folder of this platform. It need not exist."""
    chosen = os.environ.get("SEQOPT_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    import platformdirs

    return Path(platformdirs.user_cache_dir("seqopt"))


def digest(items: Iterable[str]) -> str:
    """SHA-256 of strings in their order, as hexadecimal digits.

    Example:
        >>> digest(["ab", "c"]) == digest(["a", "bc"])
        False
    """
    # No string that is cached holds a NUL, so it marks where one ends.
    found, begun = hashlib.sha256(), False
    items = iter(items)
    while block := list(islice(items, _BLOCK)):
        found.update((begun * "\0" + "\0".join(block)).encode("utf-8", "surrogatepass"))
        begun = True
    return found.hexdigest()


def read_cached(name: str, length: int) -> list[str] | None:
    """The ``length`` items of cache file ``name``, or `None` when it is absent, damaged or of another
    length.
    """
    try:
        text = (cache_dir() / name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    header, _, body = text.partition("\n")
    items = body.split("\n")[:-1]
    if header != f"{_MAGIC} {digest(items)}" or len(items) != length:
        return None
    return items


def write_cached(name: str, items: Sequence[str]) -> None:
    """Store ``items``, strings without line breaks; a folder that cannot be written is not an error."""
    text = "\n".join([f"{_MAGIC} {digest(items)}", *items]) + "\n"
    with contextlib.suppress(OSError):
        folder = cache_dir()
        folder.mkdir(parents=True, exist_ok=True)
        # Written next to its path and renamed, so that a reader never meets half a file.
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=f".{name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
                stream.write(text)
            os.replace(temporary, folder / name)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
