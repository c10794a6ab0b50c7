"""What a page knows of molecules besides their drawings: functional groups, and scaffolds.

A page cannot search substructures itself: that would need a chemistry library in every page. So they are looked for
when the page is written: functional groups as RDKit defines them, and the SMARTS that the user asks for.

References:
    Bemis, G. W., Murcko, M. A. (1996). The properties of known drugs. 1. Molecular frameworks. Journal of Medicinal
        Chemistry 39, 2887-2893.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from seqopt.strings.identity import parse_smiles, quiet_rdkit

GROUPS = {
    "Al_OH": "alcohol",
    "aldehyde": "aldehyde",
    "alkyl_halide": "alkyl halide",
    "amide": "amide",
    "NH2": "amine, primary",
    "NH1": "amine, secondary",
    "NH0": "amine, tertiary",
    "amidine": "amidine",
    "aniline": "aniline",
    "Ar_N": "aromatic nitrogen",
    "azide": "azide",
    "azo": "azo group",
    "benzene": "benzene ring",
    "alkyl_carbamate": "carbamate",
    "C_O": "carbonyl",
    "COO": "carboxylic acid",
    "epoxide": "epoxide",
    "ester": "ester",
    "ether": "ether",
    "furan": "furan",
    "guanido": "guanidine",
    "halogen": "halogen",
    "hdrzine": "hydrazine",
    "hdrzone": "hydrazone",
    "imidazole": "imidazole",
    "imide": "imide",
    "Imine": "imine",
    "isocyan": "isocyanate",
    "ketone": "ketone",
    "lactam": "lactam, four-membered",
    "lactone": "lactone",
    "methoxy": "methoxy group",
    "morpholine": "morpholine",
    "nitrile": "nitrile",
    "nitro": "nitro group",
    "nitroso": "nitroso group",
    "oxazole": "oxazole",
    "oxime": "oxime",
    "phenol": "phenol",
    "phos_acid": "phosphoric acid",
    "phos_ester": "phosphoric ester",
    "piperdine": "piperidine",
    "piperzine": "piperazine",
    "pyridine": "pyridine",
    "quatN": "quaternary nitrogen",
    "sulfonamd": "sulfonamide",
    "sulfone": "sulfone",
    "term_acetylene": "terminal alkyne",
    "tetrazole": "tetrazole",
    "thiazole": "thiazole",
    "sulfide": "thioether",
    "SH": "thiol",
    "thiophene": "thiophene",
    "urea": "urea",
}
"""RDKit's fragments that chemists call by a name, and that name."""

LARGEST_SEARCHED = 300
"""Heavy atoms beyond which a molecule is searched for nothing."""


@dataclass(frozen=True)
class Substructures:
    """Which molecules have which substructures.

    Attributes:
        names: What they are called: SMARTS that were asked for, then functional groups.
        asked: How many of them were asked for.
        masks: For each molecule, a number in hexadecimal whose bit i says whether it has substructure i.
    """

    names: tuple[str, ...] = ()
    asked: int = 0
    masks: tuple[str, ...] = ()

    def counts_of(self, n: int) -> list[int]:
        """How many of the first ``n`` molecules have each."""
        numbers = [int(mask, 16) for mask in self.masks[:n]]
        return [sum(number >> bit & 1 for number in numbers) for bit in range(len(self.names))]


def substructures(smiles: Sequence[str], asked: Sequence[str] = ()) -> Substructures:
    """Look for substructures in molecules.

    Args:
        smiles: SMILES; what RDKit cannot read has none.
        asked: SMARTS that RDKit reads; these are named in any case, functional groups only where some molecules have
            them and others have not.

    Example:
        >>> found = substructures(["CCO", "c1ccccc1O", "CC"], ["cO"])
        >>> found.names, found.masks
        (('cO', 'alcohol', 'benzene ring', 'phenol'), ('2', 'd', '0'))
    """
    tests = [*((smarts, _occurs(smarts)) for smarts in asked), *functional_groups()]
    rows: list[list[bool]] = []
    with quiet_rdkit():
        for text in smiles:
            mol = parse_smiles(text.strip())
            searched = mol is not None and mol.GetNumHeavyAtoms() <= LARGEST_SEARCHED
            rows.append([searched and bool(occurs(mol)) for _, occurs in tests])
    counts = [sum(column) for column in zip(*rows, strict=True)] if rows else [0] * len(tests)
    kept = [i for i, count in enumerate(counts) if i < len(asked) or 0 < count < len(rows)]
    masks = tuple(format(sum(1 << bit for bit, i in enumerate(kept) if row[i]), "x") for row in rows)
    return Substructures(tuple(tests[i][0] for i in kept), len(asked), masks)


def _occurs(smarts: str) -> Any:
    from rdkit.Chem import MolFromSmarts

    query = MolFromSmarts(smarts)
    return lambda mol: mol.HasSubstructMatch(query)


@lru_cache(maxsize=1)
def functional_groups() -> tuple[tuple[str, Any], ...]:
    """Functional groups: their names, and functions of RDKit that count them in a molecule."""
    from rdkit.Chem import Fragments

    return tuple((name, getattr(Fragments, f"fr_{key}")) for key, name in GROUPS.items())


def scaffold(smiles: str) -> str:
    """The Bemis-Murcko scaffold of a molecule, its rings and what links them; empty without rings or if unreadable.

    Example:
        >>> scaffold("CC(=O)Nc1ccc(O)cc1"), scaffold("CCO"), scaffold("no molecule")
        ('c1ccccc1', '', '')
    """
    from rdkit.Chem.Scaffolds.MurckoScaffold import MurckoScaffoldSmiles

    with quiet_rdkit():
        mol = parse_smiles(smiles.strip())
        if mol is None or mol.GetNumHeavyAtoms() > LARGEST_SEARCHED:
            return ""
        try:
            return str(MurckoScaffoldSmiles(mol=mol, includeChirality=False))  # type: ignore[no-untyped-call]
        except (RuntimeError, ValueError):
            return ""
