"""What a result was made with."""

from __future__ import annotations

import contextlib
import platform
from importlib import metadata

import seqopt

PACKAGES = ("torch", "gpytorch", "botorch", "numpy", "numba", "rdkit", "pandas")
"""Packages that decide the results of seqopt."""


def versions() -> dict[str, str]:
    """Versions of seqopt, Python and `PACKAGES`; none of them is imported for that.

    Example:
        >>> sorted(versions())[:2]
        ['botorch', 'gpytorch']
    """
    found = {"seqopt": seqopt.__version__, "python": platform.python_version()}
    for package in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found
