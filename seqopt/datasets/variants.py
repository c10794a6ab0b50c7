"""Very many molecules for tests of large pools: the ZINC molecules with one group exchanged, or one hydrogen replaced.

Three changes of a SMILES, each of which is valid by itself and is made without reading the molecule:

- a hydrogen of an aromatic CH, ``c`` between two aromatic atoms, by one of `GROUPS`: ``c`` becomes ``c(F)``;
- a halogen by another one: ``F``, ``Cl``, ``Br``;
- the methyl group that a SMILES begins with by one of `GROUPS`.

The 249,456 molecules have 11.4 million such variants. Some are the same molecule, as where a ring is symmetric: whoever
needs different ones merges them by canonical SMILES, as `seqopt.datasets.prepare_pool` does.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from seqopt.errors import InputError
from seqopt.utils.arguments import checked_integer

GROUPS = (
    *("F", "Cl", "Br", "O", "N", "C", "CC", "OC", "C#N", "C(F)(F)F", "S(C)(=O)=O", "C(N)=O"),
    *("OCC", "NC", "C(C)=O", "C(=O)O"),
)
"""What takes the place of a hydrogen or a methyl group: bound by the first atom."""

_BEFORE = ("F", "Cl", "Br", "O", "N", "CC", "CO", "N#C", "FC(F)(F)", "CS(=O)(=O)", "NC(=O)")
"""The same, bound by the last atom, in the place of a methyl group at the beginning."""

_HYDROGEN = re.compile(r"(?<=[cn])c(?=[cn])")
_HALOGEN = re.compile(r"Cl|Br|F(?![a-z])")
_METHYL = re.compile(r"^C(?=[A-Zc])(?!l|r)")
_HALOGENS = ("F", "Cl", "Br")

Change = tuple[int, int, str]
"""From where to where a SMILES is replaced, and by what."""


def changes_of(smiles: str) -> list[Change]:
    """All changes of a SMILES that make a variant.

    Example:
        >>> smiles = "Cc1ccccc1F"
        >>> len(changes_of(smiles)), [variant(smiles, change) for change in changes_of(smiles)][:2]
        (61, ['Cc1cc(F)ccc1F', 'Cc1cc(Cl)ccc1F'])
    """
    found: list[Change] = []
    for match in _HYDROGEN.finditer(smiles):
        found += [(match.end(), match.end(), f"({group})") for group in GROUPS]
    for match in _HALOGEN.finditer(smiles):
        found += [(match.start(), match.end(), other) for other in _HALOGENS if other != match.group()]
    if _METHYL.match(smiles):
        found += [(0, 1, group) for group in _BEFORE]
    return found


def variant(smiles: str, change: Change) -> str:
    """The SMILES with a change."""
    start, end, text = change
    return smiles[:start] + text + smiles[end:]


def variants(molecules: Sequence[str], size: int, *, seed: int = 0) -> Iterator[str]:
    """The molecules and variants of them, ``size`` in all: of each molecule about as many, drawn at random.

    Args:
        molecules: SMILES, canonical or not.
        size: How many; at least one.
        seed: Of the draws.

    Raises:
        InputError: If the molecules have fewer variants.

    Example:
        >>> list(variants(["CCO", "Fc1ccccc1"], 4))
        ['CCO', 'Fc1ccccc1', 'NCO', 'Fc1cccc(NC)c1']
    """
    size = checked_integer("size", size, 1)
    yield from molecules[:size]
    if size <= len(molecules):
        return
    counts = np.array([len(changes_of(smiles)) for smiles in molecules])
    wanted = size - len(molecules)
    if counts.sum() < wanted:
        raise InputError(f"{len(molecules):,} molecules have {counts.sum():,} variants, fewer than {wanted:,}")
    # The least number for each molecule that is enough where some have fewer.
    low, high = 0, int(counts.max())
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if np.minimum(counts, middle).sum() >= wanted else (middle + 1, high)
    rng = np.random.default_rng(seed)
    for smiles in molecules:
        changes = changes_of(smiles)
        for chosen in rng.permutation(len(changes))[:low].tolist():
            if not wanted:
                return
            wanted -= 1
            yield variant(smiles, changes[chosen])


def write_variants(
    folder: Path, molecules: Sequence[str], size: int, *, seed: int = 0, rows: int = 1_000_000
) -> list[Path]:
    """Write variants into files ``part-000.csv.gz``, ... of one column ``smiles``.

    Files that are there are left alone if all are.

    Args:
        folder: Where.
        molecules: SMILES.
        size: How many rows in all.
        seed: Of the draws.
        rows: Of a file.
    """
    count = -(-size // rows)
    paths = [folder / f"part-{number:03d}.csv.gz" for number in range(count)]
    if all(path.exists() for path in paths):
        return paths
    folder.mkdir(parents=True, exist_ok=True)
    strings = variants(molecules, size, seed=seed)
    for number, path in enumerate(paths):
        held = min(rows, size - number * rows)
        temporary = path.with_suffix(".part")
        with gzip.GzipFile(temporary, "wb", compresslevel=1, mtime=0) as file:
            file.write(b"smiles\n")
            while held:
                block = [next(strings) for _ in range(min(held, 10_000))]
                held -= len(block)
                file.write(("\n".join(block) + "\n").encode())
        temporary.replace(path)
    return paths
