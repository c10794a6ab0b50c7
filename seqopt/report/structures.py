"""Structures as short texts that a page draws itself: a few hundred bytes each, instead of a drawing each.

Three forms, told by their first letter:

- ``m``: a molecule. Atoms, separated by blanks, then ``/``, then bonds. An atom is ``x,y``, and unless it is a plain
  carbon a comma and its label: ``<`` or ``>`` (the side of its hydrogens), element, ``~``, hydrogens, ``~``, charge.
  A bond is ``i,j`` and a letter: ``s`` single, ``d`` double, ``l`` and ``r`` double with the second line on the left
  or right (seen from i, y downwards), ``t`` triple, ``w`` wedge, ``h`` hashed wedge. A
  capital says that a double bond could be cis or trans, and that which is not known.
- ``g``: a folded RNA. Coordinates of the bases, then ``/``, then the pairs in dot-bracket notation.
- ``c``: a curve. Its points in a box of 300 x 200, ``-`` for a gap.

References:
    Lorenz, R. et al. (2011). ViennaRNA Package 2.0. Algorithms for Molecular Biology 6, 26 (folding and layout).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from seqopt.strings.identity import parse_smiles, quiet_rdkit

LARGEST_MOLECULE = 150
"""Heavy atoms beyond which a drawing shows nothing, and takes long."""

SHORTEST_FOLDED = 5
"""Bases that the smallest hairpin has."""

LONGEST_FOLDED = 600
"""Bases beyond which folding takes more than a moment."""

UNITS = 20
"""Units of a coordinate to one of RDKit's: a bond is about 30 long."""

BOX = (300, 200)
"""Width and height of the box that a curve is drawn in."""

_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def molecule_structure(smiles: str) -> str:
    """The text of a molecule, or an empty one when RDKit cannot read it or it is larger than `LARGEST_MOLECULE`.

    Example:
        >>> molecule_structure("CO")
        'm-15,0 15,0,>O~H~/0,1s'
        >>> molecule_structure("not a molecule")
        ''
    """
    with quiet_rdkit():
        mol = parse_smiles(smiles.strip())
        if mol is None or not 0 < mol.GetNumAtoms() <= LARGEST_MOLECULE:
            return ""
        from rdkit.Chem.Draw import rdMolDraw2D

        try:
            open_bonds = _of_unknown_side(mol)
            mol = rdMolDraw2D.PrepareMolForDrawing(mol, kekulize=True, addChiralHs=False)
        except (RuntimeError, ValueError):
            return ""
    positions = mol.GetConformer().GetPositions()[:, :2] * (UNITS, -UNITS)
    atoms = [
        f"{round(x)},{round(y)}{_label(atom, positions)}"
        for atom, (x, y) in zip(mol.GetAtoms(), positions, strict=True)
    ]
    rings = [list(ring) for ring in mol.GetRingInfo().AtomRings()]
    kinds = [_bond(bond, positions, rings) for bond in mol.GetBonds()]
    bonds = [
        f"{bond.GetBeginAtomIdx()},{bond.GetEndAtomIdx()}{kind.upper() if bond.GetIdx() in open_bonds else kind}"
        for bond, kind in zip(mol.GetBonds(), kinds, strict=True)
    ]
    return f"m{' '.join(atoms)}/{' '.join(bonds)}"


def _of_unknown_side(mol: Any) -> set[int]:
    """Double bonds that could be cis or trans, and of which the molecule does not say which."""
    from rdkit.Chem import FindPotentialStereo, StereoSpecified, StereoType

    return {
        found.centeredOn
        for found in FindPotentialStereo(mol)
        if found.type == StereoType.Bond_Double and found.specified != StereoSpecified.Specified
    }


def _label(atom: Any, positions: npt.NDArray[np.float64]) -> str:
    hydrogens, charge = atom.GetTotalNumHs(), atom.GetFormalCharge()
    neighbours = [neighbour.GetIdx() for neighbour in atom.GetNeighbors()]
    special = charge or atom.GetIsotope() or atom.GetNumRadicalElectrons() or not neighbours
    if atom.GetAtomicNum() == 6 and not special:
        return ""
    mass = str(atom.GetIsotope()).translate(_SUPERSCRIPTS) if atom.GetIsotope() else ""
    count = ("H" if hydrogens == 1 else f"H{hydrogens}".translate(_SUBSCRIPTS)) if hydrogens else ""
    signs = ("" if abs(charge) == 1 else str(abs(charge)).translate(_SUPERSCRIPTS)) + ("⁺" if charge > 0 else "⁻")
    right = sum(positions[index, 0] - positions[atom.GetIdx(), 0] for index in neighbours)
    # Hydrogens point away from the bonds; a vertical bond leaves them on the right.
    side = "<" if right > UNITS / 4 else ">"
    return f",{side}{mass}{atom.GetSymbol()}~{count}~{signs if charge else ''}"


def _bond(bond: Any, positions: npt.NDArray[np.float64], rings: Sequence[Sequence[int]]) -> str:
    kind, way = str(bond.GetBondType()), str(bond.GetBondDir())
    if way in ("BEGINWEDGE", "BEGINDASH"):
        return "w" if way == "BEGINWEDGE" else "h"
    if kind == "TRIPLE":
        return "t"
    if kind != "DOUBLE":
        return "s"
    begin, end = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
    own = [ring for ring in rings if begin in ring and end in ring]
    if own:
        inside = positions[min(own, key=lambda ring: (abs(len(ring) - 6), len(ring)))].mean(axis=0)
        return _side(positions[begin], positions[end], inside)
    atoms = (bond.GetBeginAtom(), bond.GetEndAtom())
    if min(atom.GetDegree() for atom in atoms) == 1:
        return "d"
    others = [
        neighbour.GetIdx()
        for atom in atoms
        for neighbour in atom.GetNeighbors()
        if neighbour.GetIdx() not in (begin, end)
    ]
    return _side(positions[begin], positions[end], positions[others].mean(axis=0))


def _side(begin: npt.NDArray[np.float64], end: npt.NDArray[np.float64], inside: npt.NDArray[np.float64]) -> str:
    across = (end - begin)[0] * (inside - begin)[1] - (end - begin)[1] * (inside - begin)[0]
    return "d" if abs(across) < UNITS else "l" if across > 0 else "r"


@lru_cache(maxsize=1024)
def fold(gene: str) -> tuple[str, float]:
    """The minimum free energy structure of the RNA of a gene, in dot-bracket notation, and its energy in kcal/mol.

    Example:
        >>> fold("GGGGAAAACCCC")[0]
        '((((....))))'
    """
    import RNA

    structure, energy = RNA.fold(gene.upper().replace("T", "U"))
    return str(structure), float(energy)


def folded_coordinates(structure: str) -> npt.NDArray[np.float64]:
    """Where ViennaRNA puts each base of a structure, n x 2, turned so that the longest extent is horizontal."""
    import RNA

    found = RNA.get_xy_coordinates(structure)
    positions = np.array([(found.get(i).X, found.get(i).Y) for i in range(len(structure))], dtype=np.float64)
    centred = positions - positions.mean(axis=0)
    axis = np.linalg.svd(centred, full_matrices=False)[2][0]
    # The 5' end is on the left.
    axis = axis if centred[0] @ axis <= 0 else -axis
    turned: npt.NDArray[np.float64] = centred @ np.array([axis, (-axis[1], axis[0])]).T
    return turned


def can_be_folded(gene: str) -> bool:
    """Whether a string is an RNA or DNA sequence of `SHORTEST_FOLDED` to `LONGEST_FOLDED` bases.

    Example:
        >>> can_be_folded("ATGGCC"), can_be_folded("MKVLA"), can_be_folded("")
        (True, False, False)
    """
    return SHORTEST_FOLDED <= len(gene) <= LONGEST_FOLDED and set(gene.upper()) <= set("ACGTU")


def gene_structure(gene: str) -> str:
    """The text of the folded RNA of a gene, or an empty one where it cannot be folded.

    Example:
        >>> gene_structure("GGGGAAAACCCC").endswith("/((((....))))")
        True
        >>> gene_structure("MKVLA")
        ''
    """
    if not can_be_folded(gene):
        return ""
    structure, _ = fold(gene)
    points = " ".join(f"{x:.0f},{y:.0f}" for x, y in folded_coordinates(structure))
    return f"g{points}/{structure}"


def curve_structure(x: Sequence[float], y: Sequence[float], limits: tuple[float, float, float, float]) -> str:
    """The text of a curve.

    Args:
        x: Abscissas.
        y: Ordinates; a gap where one is not finite or lies far outside the box.
        limits: The abscissas of the left and right edges of the box, and the ordinates of its lower and upper edges.

    Example:
        >>> curve_structure([0.0, 1.0, 2.0], [0.0, float("nan"), 1.0], (0, 2, 0, 1))
        'c0,200 - 300,0'
    """
    return "c" + " ".join(
        "-" if point is None else f"{point[0]:.0f},{point[1]:.0f}"
        for point in (in_box(*pair, limits) for pair in zip(x, y, strict=True))
    )


def in_box(x: float, y: float, limits: tuple[float, float, float, float]) -> tuple[float, float] | None:
    """Where a point lies in the box of a curve, `None` if it is not finite or lies far outside."""
    left, right, low, high = limits
    across = (x - left) / (right - left or 1.0) * BOX[0]
    up = BOX[1] - (y - low) / (high - low or 1.0) * BOX[1]
    far = not (math.isfinite(across) and math.isfinite(up)) or abs(up) > 10 * BOX[1]
    return None if far else (across, up)
