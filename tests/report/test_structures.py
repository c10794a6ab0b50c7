"""Structures as short texts: what a page makes of them is what RDKit and ViennaRNA know."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from rdkit import Chem

from seqopt.report.structures import (
    curve_structure,
    fold,
    folded_coordinates,
    gene_structure,
    in_box,
    molecule_structure,
)

SMILES = [
    "CC(=O)Nc1ccc(O)cc1",
    "C[C@H](N)C(=O)[O-]",
    "C/C=C/C#N",
    "[2H]C([NH3+])Cl",
    "CC1(C)SC2C(NC(=O)Cc3ccccc3)C(=O)N2C1C(=O)O",
    "[O-][N+](=O)c1ccccc1",
    "C[Si](C)(C)C",
]


def read(text: str) -> tuple[list[tuple[int, int, str]], list[tuple[int, int, str]]]:
    """Atoms and bonds of a text."""
    first, second = text[1:].split("/")
    atoms = [(*map(int, part.split(",")[:2]), ",".join(part.split(",")[2:])) for part in first.split()]
    found = [re.fullmatch(r"(\d+),(\d+)([sdlrtwh])", part) for part in second.split()]
    return atoms, [(int(match[1]), int(match[2]), match[3]) for match in found if match]  # type: ignore[misc]


@pytest.mark.parametrize("smiles", SMILES)
def test_a_text_holds_the_atoms_and_bonds_of_the_molecule(smiles: str) -> None:
    mol = Chem.MolFromSmiles(smiles)
    Chem.Kekulize(mol, clearAromaticFlags=True)
    atoms, bonds = read(molecule_structure(smiles))
    assert len(atoms) == mol.GetNumAtoms()
    assert {frozenset(bond[:2]) for bond in bonds} == {
        frozenset((bond.GetBeginAtomIdx(), bond.GetEndAtomIdx())) for bond in mol.GetBonds()
    }
    orders = {"d": 2, "l": 2, "r": 2, "t": 3}
    assert sorted(orders.get(kind, 1) for _, _, kind in bonds) == sorted(
        round(bond.GetBondTypeAsDouble()) for bond in mol.GetBonds()
    )
    for atom, (_, _, label) in zip(mol.GetAtoms(), atoms, strict=True):
        symbol, hydrogens, charge = label[1:].split("~") if label else ("C", "", "")
        assert symbol.endswith(atom.GetSymbol())
        assert charge == {0: "", 1: "⁺", -1: "⁻"}[atom.GetFormalCharge()]
        if label and atom.GetTotalNumHs():
            assert hydrogens == {1: "H", 2: "H₂", 3: "H₃", 4: "H₄"}[atom.GetTotalNumHs()]
    # Bonds are about 30 long, so that lines and letters fit together.
    lengths = [math.dist(atoms[i][:2], atoms[j][:2]) for i, j, _ in bonds]
    assert 20 < np.median(lengths) < 40


def test_the_second_line_of_a_double_bond_is_inside_the_ring() -> None:
    atoms, bonds = read(molecule_structure("c1ccccc1"))
    middle = np.mean([atom[:2] for atom in atoms], axis=0)
    doubles = [bond for bond in bonds if bond[2] in "lr"]
    assert len(doubles) == 3
    for i, j, kind in doubles:
        (x1, y1), (x2, y2) = atoms[i][:2], atoms[j][:2]
        normal = np.array([-(y2 - y1), x2 - x1])
        inside = float(normal @ (middle - (x1, y1)))
        assert (inside > 0) == (kind == "l")


def test_chirality_is_drawn() -> None:
    left, right = (read(molecule_structure(smiles))[1] for smiles in ("C[C@H](N)O", "C[C@@H](N)O"))
    marks = [next(kind for _, _, kind in bonds if kind in "wh") for bonds in (left, right)]
    assert set(marks) == {"w", "h"}


@pytest.mark.parametrize("string", ["", "C1CC", "<img src=x onerror=alert(1)>", "C(C)(C)(C)(C)C", "C" * 400])
def test_what_cannot_be_drawn_has_no_text(string: str) -> None:
    assert molecule_structure(string) == ""
    assert gene_structure(string.replace("C", "X")) == ""


def test_a_gene_is_folded_and_laid_out() -> None:
    gene = "GGGAAACTTCGGTTTCCC"
    brackets, energy = fold(gene)
    assert energy < 0
    positions = folded_coordinates(brackets)
    assert positions.shape == (len(gene), 2)
    # Neighbours along the chain and partners of a pair lie about one step from each other.
    opened: list[int] = []
    for index, bracket in enumerate(brackets):
        if bracket == "(":
            opened.append(index)
        if bracket == ")":
            assert math.dist(positions[opened.pop()], positions[index]) < 30
    assert np.ptp(positions[:, 0]) >= np.ptp(positions[:, 1])
    text = gene_structure(gene)
    assert text.endswith("/" + brackets)
    assert len(text[1:].split("/")[0].split()) == len(gene)


def test_a_curve_leaves_gaps_where_it_is_not_defined() -> None:
    limits = (0.0, 2.0, 0.0, 1.0)
    assert curve_structure([0.0, 1.0, 2.0], [0.0, math.inf, 1.0], limits) == "c0,200 - 300,0"
    assert in_box(1.0, 1e6, limits) is None
    assert in_box(1.0, 0.5, limits) == (150.0, 100.0)
