"""Drawings of molecules for files that hold pictures."""

from __future__ import annotations

from seqopt.errors import InputError
from seqopt.strings.identity import parse_smiles, quiet_rdkit


def molecule_png(smiles: str, width: int = 400, height: int = 280) -> bytes:
    """A molecule drawn in the plane, as PNG.

    Args:
        smiles: The molecule.
        width: In pixels.
        height: In pixels.

    Raises:
        InputError: For a SMILES that RDKit cannot read.

    Example:
        >>> molecule_png("CCO")[:4]
        b'\\x89PNG'
    """
    from rdkit.Chem.Draw import rdMolDraw2D

    with quiet_rdkit():
        mol = parse_smiles(smiles)
        if mol is None:
            raise InputError(f"{smiles!r} is not a SMILES that RDKit can draw")
        drawer = rdMolDraw2D.MolDraw2DCairo(width, height)
        rdMolDraw2D.PrepareAndDrawMolecule(drawer, mol)
        drawer.FinishDrawing()
        drawing: bytes = drawer.GetDrawingText()
    return drawing
