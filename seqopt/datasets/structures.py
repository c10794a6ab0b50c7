"""Molecules that a file gives as InChI, as SMILES."""

from __future__ import annotations

from collections.abc import Sequence

from seqopt.strings.notations import is_inchi, without_inchi
from seqopt.utils.cache import digest, read_cached, write_cached
from seqopt.utils.workers import Progress, map_strings

PARALLEL_FROM = 1_000
"""Number of InChI from which on they are converted in several processes, and kept on disk: each takes 3 ms."""


def as_smiles(strings: Sequence[str], progress: Progress | None = None) -> Sequence[str]:
    """Strings with SMILES in the place of every InChI that can be read; others are left as they are.

    Args:
        strings: As they are in a file.
        progress: Called with the numbers of strings converted and in all, when there are many.
    """
    number = sum(map(is_inchi, strings))
    if not number:
        return strings
    if number < PARALLEL_FROM:
        return without_inchi(strings)
    import rdkit

    name = f"inchi-{digest(strings)[:24]}-rdkit{rdkit.__version__}.txt"
    cached = read_cached(name, len(strings))
    if cached is not None:
        return cached
    converted = map_strings("seqopt.strings.notations:without_inchi", list(strings), progress=progress)
    write_cached(name, converted)
    return converted
