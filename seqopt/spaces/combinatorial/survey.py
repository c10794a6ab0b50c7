"""What each building block can do: which components it may be, and what it leaves of a product.

Both are found once, by RDKit, and for lists of more than `LONG` blocks by several processes; what they find is kept in
the cache folder (`seqopt.utils.cache.cache_dir`), named by a hash of the blocks, the reactions and RDKit's version. A
file there that is damaged is made again, and all of them can be deleted at any time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seqopt.spaces.combinatorial.cutting import pieces_left
from seqopt.spaces.combinatorial.reactions import Reaction
from seqopt.strings.identity import identity_keys, parse_smiles, quiet_rdkit
from seqopt.strings.packed import key_hashes, packed_strings, unpacked_strings
from seqopt.utils.array_files import Array, ArrayFile, DamagedFileError, read_arrays, write_arrays
from seqopt.utils.cache import cache_dir, digest
from seqopt.utils.workers import map_strings

logger = logging.getLogger(__name__)

LONG = 5_000
"""Blocks from which on several processes look at them, and what they find is kept on disk."""

FOLDER = "blocks"
"""Where that is in the cache folder."""

VERSION = 1
"""Number of the form of these files: others are not used."""

MATCHES = 64
"""Most places of a block at which a component may match that are looked at."""

SHORTEST = 50
"""Short blocks among which the partners are chosen with which a block is made to react."""

NOWHERE, ONCE, SEVERAL = 0, 1, 2
"""Where a block matches a component: at no place, at one or several that are equivalent, at places that differ."""

Numbers = npt.NDArray[np.int64]


def canonical_keys(strings: Sequence[str]) -> list[str | None]:
    """Canonical SMILES of building blocks; `None` for what is no molecule.

    Args:
        strings: SMILES without blanks around them.

    Example:
        >>> canonical_keys(["OCC", "C1CC"])
        ['CCO', None]
    """
    if len(strings) <= LONG:
        return identity_keys(strings, "molecule")

    def make() -> dict[str, Array]:
        found = map_strings("seqopt.strings.identity:identity_keys", strings, arguments={"kind": "molecule"})
        data, ends = packed_strings(["" if key is None else key for key in found])
        return {"keys": data, "ends": ends}

    arrays = _kept(["keys", digest(strings)], make)
    return [key or None for key in unpacked_strings(arrays["keys"], arrays["ends"])]


def places(reactions: Sequence[Reaction], keys: Sequence[str]) -> list[npt.NDArray[np.uint8]]:
    """How blocks match the components of reactions: for each reaction, components x blocks of `NOWHERE`, `ONCE` or
    `SEVERAL`.

    Args:
        reactions: They all parse.
        keys: Canonical SMILES of the blocks.

    Example:
        >>> reaction = Reaction("amide", "[C:1](=O)[OH].[N;H2:2]>>[C:1](=O)[N:2]")
        >>> places([reaction], ["CC(=O)O", "CN", "NCC(N)C"])[0].tolist()
        [[1, 0, 0], [0, 1, 2]]
    """
    smarts = [reaction.smarts for reaction in reactions]

    def make() -> dict[str, Array]:
        name = f"{__name__}:places_of_blocks"
        found = _mapped(name, keys, {"reactions": smarts})
        return {"places": np.array(found, dtype=np.uint8).reshape(len(keys), -1).T.copy()}

    arrays = _kept(["places", digest(keys), *smarts], make) if len(keys) > LONG else make()
    ends = np.cumsum([reaction.components for reaction in reactions])
    return np.split(arrays["places"], ends[:-1])


def places_of_blocks(keys: Sequence[str], *, reactions: Sequence[str]) -> list[list[int]]:
    """How each block matches each component of the reactions, one after another; see `places`.

    Args:
        keys: Canonical SMILES of the blocks.
        reactions: Reaction SMARTS.
    """
    from rdkit import Chem

    templates = [template for smarts in reactions for template in _templates(smarts)]
    named = [Chem.MolToSmarts(template) for template in templates]
    found = []
    with quiet_rdkit():
        for key in keys:
            mol = parse_smiles(key)
            # One template is often a component of several reactions.
            known: dict[str, int] = {}
            for name, template in zip(named, templates, strict=True):
                if name not in known:
                    known[name] = _place(mol, template)
            found.append([known[name] for name in named])
    return found


def _place(mol: Any, template: Any) -> int:
    from rdkit import Chem

    matches = mol.GetSubstructMatches(template, maxMatches=MATCHES)
    if len(matches) < 2:
        return ONCE if matches else NOWHERE
    ranks = list(Chem.CanonicalRankAtoms(mol, breakTies=False))
    mapped = [atom.GetIdx() for atom in template.GetAtoms() if atom.GetAtomMapNum()]
    return ONCE if len({tuple(ranks[match[index]] for index in mapped) for match in matches}) == 1 else SEVERAL


@lru_cache(maxsize=64)
def _parsed(smarts: str) -> Any:
    return Reaction("", smarts).parsed()


def _templates(smarts: str) -> list[Any]:
    parsed = _parsed(smarts)
    return [parsed.GetReactantTemplate(slot) for slot in range(parsed.GetNumReactantTemplates())]


@dataclass(frozen=True)
class Leavings:
    """What the blocks of a component leave of products, and the blocks that leave it.

    Attributes:
        hashes: Of the pieces, ascending.
        numbers: The block that leaves each.
    """

    hashes: npt.NDArray[np.uint64]
    numbers: Numbers

    def of(self, piece: str) -> list[int]:
        """Numbers of the blocks that leave this piece, ascending; in very rare cases of others, too."""
        wanted = key_hashes([piece])[0]
        start, end = (int(np.searchsorted(self.hashes, wanted, side=side)) for side in ("left", "right"))
        return [int(number) for number in self.numbers[start:end]]


def leavings(reaction: Reaction, components: Sequence[Numbers], keys: Callable[[int], str]) -> list[Leavings]:
    """What the blocks of each component of a reaction leave, by one product of each block.

    Args:
        reaction: It.
        components: Numbers of the blocks of each component, ascending.
        keys: The canonical SMILES of a block.
    """

    def make() -> dict[str, Array]:
        if (count := sum(map(len, components))) > LONG:
            logger.warning(
                "what %s building blocks leave in reaction %r is found out, once", f"{count:,}", reaction.name
            )
        partners = [_partner(reaction, slot, numbers, keys) for slot, numbers in enumerate(components)]
        arrays: dict[str, Array] = {}
        for slot, numbers in enumerate(components):
            arguments = {"reaction": reaction.smarts, "slot": slot, "partners": partners}
            found = _mapped(f"{__name__}:pieces_of_blocks", [keys(int(number)) for number in numbers], arguments)
            hashes = np.array([piece for pieces in found for piece in pieces], dtype=np.uint64)
            left = np.repeat(numbers, [len(pieces) for pieces in found])
            order = np.argsort(hashes, kind="stable")
            arrays |= {f"hashes_{slot}": hashes[order], f"numbers_{slot}": left[order].astype(np.int64)}
        return arrays

    if max(map(len, components)) > LONG:
        # Which blocks a component has depends on its sets as well: the same ones in other sets are another list.
        named = [digest(f"{number} {keys(number)}" for number in one.tolist()) for one in components]
        arrays = _kept(["leavings", reaction.smarts, *named], make)
    else:
        arrays = make()
    return [Leavings(arrays[f"hashes_{slot}"], arrays[f"numbers_{slot}"]) for slot in range(len(components))]


def pieces_of_blocks(keys: Sequence[str], *, reaction: str, slot: int, partners: Sequence[str]) -> list[list[int]]:
    """Hashes of what each block leaves of its products.

    Args:
        keys: Canonical SMILES of the blocks.
        reaction: Reaction SMARTS.
        slot: The component that they are.
        partners: A block for each component; that of ``slot`` is left out.
    """
    parsed = _parsed(reaction)
    with quiet_rdkit():
        mols = [parse_smiles(key) for key in partners]
        found = []
        for key in keys:
            mols[slot] = parse_smiles(key)
            found.append([int(one) for one in key_hashes(sorted(pieces_left(parsed, mols, slot)))])
    return found


def _partner(reaction: Reaction, slot: int, numbers: Numbers, keys: Callable[[int], str]) -> str:
    """A short block that matches at few places, so that there are few products to look at."""
    template = _templates(reaction.smarts)[slot]
    short = sorted((keys(int(number)) for number in numbers), key=lambda key: (len(key), key))[:SHORTEST]
    with quiet_rdkit():
        mols = [parse_smiles(key) for key in short]
    matches = [0 if mol is None else len(mol.GetSubstructMatches(template, uniquify=False)) for mol in mols]
    return short[int(np.argmin(matches))]


def _mapped(function: str, keys: Sequence[str], arguments: dict[str, Any]) -> list[Any]:
    return map_strings(function, keys, arguments=arguments, workers=1 if len(keys) <= LONG else None)


def _kept(names: Sequence[str], make: Callable[[], dict[str, Array]]) -> dict[str, Array]:
    """What is in the cache folder under a name made of these, or what ``make`` finds, kept there."""
    import rdkit

    name = hashlib.sha256(json.dumps([VERSION, str(rdkit.__version__), *names]).encode()).hexdigest()[:32]
    path = cache_dir() / FOLDER / f"{name}.bin"
    if (known := _read(path)) is not None:
        return known.arrays
    arrays = make()
    # A folder that cannot be written only means that this is done again next time.
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_arrays(path, arrays, {"what": names[0]})
    return arrays


def _read(path: Path) -> ArrayFile | None:
    try:
        return read_arrays(path)
    except (OSError, DamagedFileError):
        return None
