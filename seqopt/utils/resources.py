"""Files that come with seqopt: tables of facts and example pools (``data/``) and grammars (``grammars/``).

In a checkout and in an editable install the two folders are next to the package; in a wheel they are packed
into ``seqopt/_resources``.
"""

from __future__ import annotations

from pathlib import Path

from seqopt.errors import InputError

_PACKAGE = Path(__file__).resolve().parents[1]


def data_path(name: str) -> Path:
    """Path of a file of ``data/``, for instance ``"protein_variants.csv"``.

    Raises:
        InputError: If there is no such file; the message lists those that there are.
    """
    return _resource("data", name)


def grammar_path(name: str) -> Path:
    """Path of a file of ``grammars/``, for instance ``"arithmetic.cfg"``.

    Raises:
        InputError: If there is no such file; the message lists those that there are.
    """
    return _resource("grammars", name)


def resource_folder(folder: str) -> Path:
    """The ``data`` or ``grammars`` folder of this installation.

    Raises:
        InputError: If the installation lacks it.
    """
    packed, beside = _PACKAGE / "_resources" / folder, _PACKAGE.parent / folder
    for candidate in (packed, beside):
        if candidate.is_dir():
            return candidate
    raise InputError(
        f"this installation of seqopt lacks its {folder} folder (looked at {packed} and {beside}): install it again"
    )


def _resource(folder: str, name: str) -> Path:
    root = resource_folder(folder)
    path = root / name
    if path.is_file() and path.resolve().is_relative_to(root.resolve()):
        return path
    there = ", ".join(sorted(item.name for item in root.iterdir() if item.is_file())) or "nothing"
    raise InputError(f"seqopt has no file {name!r} in {folder}; there is: {there}")
