"""Cutting products where a reaction has joined their building blocks.

Where the product's template matches a molecule, the bonds that the reaction has made between atoms of different
components are cut, and each component leaves a *piece*, which hardly depends on what the others were.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

MATCHES = 64
"""Most places of a molecule at which a reaction may have made it that are looked at."""

OUTCOMES = 16
"""Most outcomes of a reaction of some blocks that are looked at."""


def origins_of(parsed: Any) -> dict[int, int]:
    """Which component each atom map comes from.

    Args:
        parsed: The reaction of RDKit.
    """
    return {
        atom.GetAtomMapNum(): slot
        for slot in range(parsed.GetNumReactantTemplates())
        for atom in parsed.GetReactantTemplate(slot).GetAtoms()
        if atom.GetAtomMapNum()
    }


def owners_of(parsed: Any, mol: Any) -> Iterator[dict[int, int]]:
    """Of which components the template's atoms are, for each place where the reaction may have made a molecule."""
    template = parsed.GetProductTemplate(0)
    origins = origins_of(parsed)
    owners = [origins.get(atom.GetAtomMapNum(), -1) for atom in template.GetAtoms()]
    for match in mol.GetSubstructMatches(template, uniquify=False, maxMatches=MATCHES):
        yield dict(zip(match, owners, strict=True))


def pieces_left(parsed: Any, mols: Sequence[Any], slot: int) -> set[str]:
    """What one component leaves of the products of some blocks, by the reaction's own record of atoms.

    Args:
        parsed: The reaction of RDKit.
        mols: Molecules of the blocks.
        slot: The component.
    """
    from rdkit import Chem

    found = set()
    origins = origins_of(parsed)
    for products in parsed.RunReactants(tuple(mols), OUTCOMES):
        product = products[0]
        try:
            Chem.SanitizeMol(product)
        except (ValueError, RuntimeError):
            continue
        owner = {}
        # One by one: RDKit's lists of atoms are slow to go through.
        for index in range(product.GetNumAtoms()):
            atom = product.GetAtomWithIdx(index)
            if atom.HasProp("old_mapno"):
                owner[index] = origins.get(atom.GetIntProp("old_mapno"), -1)
            elif not atom.HasProp("react_atom_idx"):
                owner[index] = -1
            if atom.GetAtomMapNum():
                atom.SetAtomMapNum(0)
        drawn = Drawn(product)
        found.add(drawn.piece(drawn.belonging(owner), owner, slot))
    return found


class Drawn:
    """A molecule as lists, of which pieces are cut again and again."""

    def __init__(self, mol: Any) -> None:
        self._mol = mol
        self._bonds = []
        self._neighbours: list[list[int]] = [[] for _ in range(mol.GetNumAtoms())]
        for number in range(mol.GetNumBonds()):
            bond = mol.GetBondWithIdx(number)
            begin, end = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
            self._bonds.append((begin, end))
            self._neighbours[begin].append(end)
            self._neighbours[end].append(begin)
        atoms = [mol.GetAtomWithIdx(index) for index in range(mol.GetNumAtoms())]
        self._elements = [(atom.GetSymbol(), atom.GetFormalCharge()) for atom in atoms]
        self._symbols = [_symbol(*element, joint=False) for element in self._elements]

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
        symbols = list(self._symbols)
        for index in owner:
            symbols[index] = _symbol(*self._elements[index], joint=True)
        found: str = Chem.MolFragmentToSmiles(
            self._mol, atoms, bondsToUse=bonds, atomSymbols=symbols, isomericSmiles=False, canonical=True
        )
        return found


@lru_cache(maxsize=4096)
def _symbol(element: str, charge: int, *, joint: bool) -> str:
    """What stands for an atom: its element and charge, and whether it is one of the template's."""
    return f"[{element}{'~' if joint else ''}{charge:+d}]" if charge or joint else f"[{element}]"
