"""Products of tuples of building blocks, and the tuples of products.

A product is made by RDKit when it is asked for. The way back needs no list of products: where the product's template
matches a molecule, the bonds that the reaction has made between atoms of different components are cut, and each
component leaves a fragment, which hardly depends on what the others were. Blocks are found by the fragments that they
leave, and what is found is made again and compared.
"""

from __future__ import annotations

import itertools
import math
from collections import OrderedDict, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from seqopt.spaces.combinatorial.blocks import Block
from seqopt.spaces.combinatorial.reactions import Reaction
from seqopt.strings.identity import canonical_smiles, parse_smiles, quiet_rdkit

REMEMBERED = 1 << 18
"""Products that are kept with their tuples; others are made again."""

TRIED = 4096
"""Most tuples that are made while that of a product is looked for."""

MATCHES = 64
"""Most places of a molecule at which a reaction may have made it that are looked at."""

Individual = tuple[int, ...]
"""The number of a reaction, then those of the blocks of its components."""

Numbers = npt.NDArray[np.int64]


@dataclass
class Component:
    """One component of a reaction, and the blocks that can take its place.

    Attributes:
        numbers: Of the blocks, ascending.
        without: Blocks of its sets that do not match.
        several: Blocks that match at several places which are not equivalent: which product they give is not clear.
    """

    numbers: Numbers
    without: Numbers
    several: Numbers


class Products:
    """Makes products, and finds tuples.

    Args:
        reactions: They all parse.
        blocks: Numbered by their places.
        components: Of each reaction.
    """

    def __init__(
        self, reactions: Sequence[Reaction], blocks: Sequence[Block], components: Sequence[Sequence[Component]]
    ) -> None:
        self._parsed = [reaction.parsed() for reaction in reactions]
        self._blocks = blocks
        self._components = components
        self._mols: OrderedDict[int, Any] = OrderedDict()
        self._keys: OrderedDict[Individual, str | None] = OrderedDict()
        self._tuples: OrderedDict[str, Individual] = OrderedDict()
        self._makers: OrderedDict[str, Individual] = OrderedDict()
        self._fragments: dict[tuple[int, int], dict[str, list[int]]] = {}
        self.failed: dict[Individual, str] = {}

    def key(self, individual: Individual) -> str | None:
        """Canonical SMILES of a product; `None` if RDKit cannot make it."""
        if individual in self._keys:
            self._keys.move_to_end(individual)
            return self._keys[individual]
        with quiet_rdkit():
            key = self._made(individual)
        self._keys[individual] = key
        if key is not None:
            self._makers.setdefault(key, individual)
        for kept in (self._keys, self._makers):
            if len(kept) > REMEMBERED:
                kept.popitem(last=False)
        return key

    def makes(self, key: str) -> bool:
        """Whether some tuple has this product; what was made here is not cut again."""
        return key in self._makers or self.individual(key) is not None

    def individual(self, key: str) -> Individual | None:
        """The tuple whose product has this key; `None` if there is none.

        Of several it is the least, whichever were made before: a model sees the same tuples in every process.
        """
        known = self._tuples.get(key)
        if known is not None:
            return known
        with quiet_rdkit():
            mol = parse_smiles(key)
            if mol is None:
                return None
            tried = sorted(set(itertools.islice(self._candidates(mol), TRIED)))
            found = next((one for one in tried if self.key(one) == key), None)
        # What no cut brings back is known by the tuple that made it here.
        found = self._makers.get(key) if found is None else found
        if found is not None:
            self._tuples[key] = found
            if len(self._tuples) > REMEMBERED:
                self._tuples.popitem(last=False)
        return found

    def _mol(self, number: int) -> Any:
        mol = self._mols.get(number)
        if mol is None:
            mol = parse_smiles(self._blocks[number].key)
            self._mols[number] = mol
            if len(self._mols) > REMEMBERED:
                self._mols.popitem(last=False)
        return mol

    def _made(self, individual: Individual) -> str | None:
        """The product, made now."""
        from rdkit import Chem

        reaction, *numbers = individual
        outcomes = self._parsed[reaction].RunReactants(tuple(map(self._mol, numbers)), 16)
        keys: set[str] = set()
        why = "the blocks do not react"
        for products in outcomes:
            try:
                Chem.SanitizeMol(products[0])
            except (ValueError, RuntimeError) as error:
                why = str(error).strip().splitlines()[0] if str(error).strip() else "RDKit cannot make it"
                continue
            key = canonical_smiles(Chem.MolToSmiles(products[0]))
            if key is None:
                why = "RDKit cannot read what it writes of it"
            elif "." not in key:
                keys.add(key)
            else:
                why = "it consists of several molecules"
        if not keys:
            self.failed.setdefault(individual, why)
            return None
        # Equivalent places give one product; of others that are left the first in order counts, always the same one.
        return min(keys)

    def _candidates(self, mol: Any) -> Iterator[Individual]:
        """Tuples that may have made a molecule."""
        drawn = _Drawn(mol)
        for reaction in range(len(self._parsed)):
            seen = set()
            for owner in self._owners(reaction, mol):
                belongs = drawn.belonging(owner)
                options: list[list[int]] = []
                pieces: list[str] = []
                for slot in range(len(self._components[reaction])):
                    pieces.append(drawn.piece(belongs, owner, slot))
                    found = self._leaving(reaction, slot).get(pieces[-1])
                    if not found:
                        break
                    options.append(found)
                else:
                    if tuple(pieces) not in seen:
                        seen.add(tuple(pieces))
                        for numbers in itertools.product(*options):
                            yield (reaction, *numbers)

    def _owners(self, reaction: int, mol: Any) -> Iterator[dict[int, int]]:
        """Of which components the template's atoms are, for each place where the reaction may have made a molecule."""
        template = self._parsed[reaction].GetProductTemplate(0)
        origins = _origins(self._parsed[reaction])
        owners = [origins.get(atom.GetAtomMapNum(), -1) for atom in template.GetAtoms()]
        for match in mol.GetSubstructMatches(template, uniquify=False, maxMatches=MATCHES):
            yield dict(zip(match, owners, strict=True))

    def _leaving(self, reaction: int, slot: int) -> dict[str, list[int]]:
        """Blocks of a component by what they leave of a product; found once, by one product of each."""
        known = self._fragments.get((reaction, slot))
        if known is not None:
            return known
        components = self._components[reaction]
        partners = [min(map(int, one.numbers), key=lambda number: len(self._blocks[number].key)) for one in components]
        found: dict[str, list[int]] = defaultdict(list)
        for number in map(int, components[slot].numbers):
            numbers = [number if place == slot else partner for place, partner in enumerate(partners)]
            for piece in self._pieces_of(reaction, numbers, slot):
                found[piece].append(number)
        self._fragments[reaction, slot] = dict(found)
        return self._fragments[reaction, slot]

    def _pieces_of(self, reaction: int, numbers: Sequence[int], slot: int) -> set[str]:
        """What one component leaves of the products of some blocks, by the reaction's own record of atoms."""
        from rdkit import Chem

        found = set()
        parsed = self._parsed[reaction]
        origins = _origins(parsed)
        for products in parsed.RunReactants(tuple(map(self._mol, numbers)), 16):
            product = products[0]
            try:
                Chem.SanitizeMol(product)
            except (ValueError, RuntimeError):
                continue
            owner = {}
            for atom in product.GetAtoms():
                if atom.HasProp("old_mapno"):
                    owner[atom.GetIdx()] = origins.get(atom.GetIntProp("old_mapno"), -1)
                elif not atom.HasProp("react_atom_idx"):
                    owner[atom.GetIdx()] = -1
            # As it is read again, so that aromatic rings and hydrogens are written alike.
            for atom in product.GetAtoms():
                atom.SetAtomMapNum(0)
                atom.SetIntProp("owner", owner.get(atom.GetIdx(), -2))
            drawn = _Drawn(product)
            found.add(drawn.piece(drawn.belonging(owner), owner, slot))
        return found


def _origins(parsed: Any) -> dict[int, int]:
    """Which component each atom map comes from."""
    return {
        atom.GetAtomMapNum(): slot
        for slot in range(parsed.GetNumReactantTemplates())
        for atom in parsed.GetReactantTemplate(slot).GetAtoms()
        if atom.GetAtomMapNum()
    }


class _Drawn:
    """A molecule as lists, of which pieces are cut again and again."""

    def __init__(self, mol: Any) -> None:
        self._mol = mol
        self._bonds = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in mol.GetBonds()]
        self._neighbours: list[list[int]] = [[] for _ in range(mol.GetNumAtoms())]
        for begin, end in self._bonds:
            self._neighbours[begin].append(end)
            self._neighbours[end].append(begin)
        self._symbols = [[_symbol(atom, joint) for atom in mol.GetAtoms()] for joint in (False, True)]

    def belonging(self, owner: dict[int, int]) -> dict[int, int]:
        """The component of each atom: of an atom of the template, its own; of another, that of the template's atom that
        it hangs on.
        """
        belongs = dict(owner)
        frontier = [index for index, of in owner.items() if of >= 0]
        while frontier:
            following = []
            for index in frontier:
                for other in self._neighbours[index]:
                    if other not in belongs:
                        belongs[other] = belongs[index]
                        following.append(other)
            frontier = following
        return belongs

    def piece(self, belongs: dict[int, int], owner: dict[int, int], slot: int) -> str:
        """SMILES of the atoms of a component; empty if there are none."""
        from rdkit import Chem

        atoms = [index for index, of in belongs.items() if of == slot]
        if not atoms:
            return ""
        bonds = [
            number
            for number, (begin, end) in enumerate(self._bonds)
            if belongs.get(begin) == slot and belongs.get(end) == slot
        ]
        symbols = list(self._symbols[False])
        for index in owner:
            symbols[index] = self._symbols[True][index]
        found: str = Chem.MolFragmentToSmiles(
            self._mol, atoms, bondsToUse=bonds, atomSymbols=symbols, isomericSmiles=False, canonical=True
        )
        return found


def _symbol(atom: Any, joint: bool) -> str:
    """What stands for an atom: its element and charge, and whether it is one of the template's."""
    charge = atom.GetFormalCharge()
    return f"[{atom.GetSymbol()}{'~' if joint else ''}{charge:+d}]" if charge or joint else f"[{atom.GetSymbol()}]"


def matching(parsed: Any, slot: int, mols: Sequence[Any], numbers: Sequence[int]) -> Component:
    """The blocks that can take the place of a component.

    Args:
        parsed: The reaction of RDKit.
        slot: The component.
        mols: Molecules of the blocks.
        numbers: Of the blocks, among which it is looked.
    """
    from rdkit import Chem

    template = parsed.GetReactantTemplate(slot)
    fits, without, several = [], [], []
    for number in numbers:
        mol = mols[number]
        matches = mol.GetSubstructMatches(template, maxMatches=MATCHES)
        if not matches:
            without.append(number)
            continue
        if len(matches) > 1:
            ranks = list(Chem.CanonicalRankAtoms(mol, breakTies=False))
            mapped = [atom.GetIdx() for atom in template.GetAtoms() if atom.GetAtomMapNum()]
            places = {tuple(ranks[match[index]] for index in mapped) for match in matches}
            if len(places) > 1:
                several.append(number)
                continue
        fits.append(number)
    return Component(*(np.array(one, dtype=np.int64) for one in (fits, without, several)))


def tuples_of(components: Sequence[Component]) -> int:
    """Number of tuples of one reaction."""
    return math.prod(len(one.numbers) for one in components)
