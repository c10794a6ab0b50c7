"""Names of files, and writing them whole."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

CAMPAIGN_SUFFIX = ".seqopt"
"""How the file of a campaign ends."""


def write_atomically(path: Path, contents: str | bytes) -> None:
    """Replace the file at ``path`` so that a reader, or a crash, sees the old contents or the new, never a part.

    Args:
        path: The file; while it is being written, it is next to that path under another name.
        contents: Bytes, or text to be written as UTF-8; what that cannot hold is written as an escape.

    Raises:
        OSError: If it cannot be written.
    """
    data = contents.encode("utf-8", "backslashreplace") if isinstance(contents, str) else contents
    # Two processes may write the same file: under one name they would write into each other's.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            # Otherwise some file systems put the new name on the disk before the contents: a loss of power leaves
            # neither.
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        # On a full disk the space is wanted back.
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
