"""Names of files, and writing them whole."""

from __future__ import annotations

import os
from pathlib import Path

CAMPAIGN_SUFFIX = ".seqopt"
"""How the file of a campaign ends."""


def write_atomically(path: Path, contents: str | bytes) -> None:
    """Replace the file at ``path`` so that a reader, or a crash, sees the old contents or the new, never a part.

    Args:
        path: The file; ``.part`` is added to its name while it is being written.
        contents: Bytes, or text to be written as UTF-8; what that cannot hold is written as an escape.

    Raises:
        OSError: If it cannot be written.
    """
    data = contents.encode("utf-8", "backslashreplace") if isinstance(contents, str) else contents
    temporary = path.with_name(path.name + ".part")
    with temporary.open("wb") as file:
        file.write(data)
        file.flush()
        # Otherwise some file systems put the new name on the disk before the contents: a loss of power leaves neither.
        os.fsync(file.fileno())
    os.replace(temporary, path)
