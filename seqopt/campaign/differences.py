"""In what a string differs from another one, in a few characters."""

from __future__ import annotations

from collections import Counter
from difflib import SequenceMatcher
from typing import Any

MOST = 5
"""Substitutions, pieces or parts that are named one by one."""

LONGEST = 24
"""Characters of a piece or part that is written out."""

LONGEST_ALIGNED = 2000
"""Symbols of a string beyond which insertions and deletions are not looked for."""


def difference(before: str, after: str, kind: str) -> str:
    """What changes from one string to another.

    Molecules: which of their parts go and which come, where a part is a ring system or a chain on or between such,
    ``*`` where they are joined. Strings of one length: substitutions such as ``A42V``, positions from 1. Other
    strings: pieces that go and come, with their position in the first one.

    Args:
        before: The string that is known.
        after: The other one.
        kind: What they are: ``"molecule"``, ``"protein"``, ``"dna"``, ``"rna"`` or ``"text"``.

    Returns:
        Empty for equal strings. What would be long is only counted.

    Example:
        >>> difference("MKVA", "MKLA", "protein"), difference("GATTACA", "GATACAT", "text")
        ('V3L', 'T4A, A5C, C6A, A7T')
        >>> difference("GATTACA", "GATTA", "dna")
        '−CA at 6'
        >>> difference("CC(=O)Nc1ccc(O)cc1", "CC(=O)Nc1ccc(Cl)cc1", "molecule")
        '−*O +*Cl'
    """
    if before == after:
        return ""
    if kind == "molecule":
        return _of_molecules(before, after)
    if len(before) == len(after):
        return _substitutions(before, after)
    return _edits(before, after)


def _substitutions(before: str, after: str) -> str:
    changed = [index for index, (first, second) in enumerate(zip(before, after, strict=True)) if first != second]
    if len(changed) > MOST:
        return f"{len(changed)} of {len(before)} positions"
    return ", ".join(f"{before[index]}{index + 1}{after[index]}" for index in changed)


def _edits(before: str, after: str) -> str:
    if max(len(before), len(after)) > LONGEST_ALIGNED:
        return f"{len(before)} and {len(after)} symbols"
    parts = []
    for what, start, end, other, other_end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if what == "equal":
            continue
        gone, come = before[start:end], after[other:other_end]
        pieces = [f"−{_short(gone)}"] * bool(gone) + [f"+{_short(come)}"] * bool(come)
        parts.append(f"{' '.join(pieces)} at {start + 1}")
    return ", ".join(parts) if len(parts) <= MOST else f"{len(parts)} places"


def _of_molecules(before: str, after: str) -> str:
    from seqopt.strings.identity import parse_smiles, quiet_rdkit

    with quiet_rdkit():
        mols = [parse_smiles(smiles) for smiles in (before, after)]
        if any(mol is None for mol in mols):
            return ""
        pieces = [Counter(_pieces(mol)) for mol in mols]
    gone, come = _without_joints(pieces[0] - pieces[1], pieces[1] - pieces[0])
    if not gone and not come:
        return "stereochemistry, or how its parts are joined"
    if len(gone) + len(come) > MOST:
        return f"{gone.total()} of its {pieces[0].total()} parts replaced by {come.total()} others"
    signed = (("−", gone), ("+", come))
    return " ".join(f"{sign}{_times(text, number)}" for sign, found in signed for text, number in sorted(found.items()))


def _pieces(mol: Any) -> list[tuple[str, str]]:
    """SMILES of the rings and chains of a molecule, ``*`` where they were joined, and without these."""
    from rdkit import Chem

    cut = [bond.GetIdx() for bond in mol.GetBonds() if not bond.IsInRing() and _joins_ring(bond)]
    if cut:
        mol = Chem.FragmentOnBonds(mol, cut, dummyLabels=[(0, 0)] * len(cut))
    found = []
    for piece in Chem.GetMolFrags(mol, asMols=True, sanitizeFrags=False):
        bare = Chem.RWMol(piece)
        for index in reversed(range(bare.GetNumAtoms())):
            if not bare.GetAtomWithIdx(index).GetAtomicNum():
                bare.RemoveAtom(index)
        found.append((Chem.MolToSmiles(piece, isomericSmiles=False), Chem.MolToSmiles(bare, isomericSmiles=False)))
    return found


def _without_joints(
    gone: Counter[tuple[str, str]], come: Counter[tuple[str, str]]
) -> tuple[Counter[str], Counter[str]]:
    """Pieces that go and that come; where others do, too, not those that are only joined at other places."""
    bare = [Counter(bare for _, bare in found.elements()) for found in (gone, come)]
    same = bare[0] & bare[1]
    kept = []
    for found in (gone, come):
        left, texts = Counter(same), Counter[str]()
        for text, core in found.elements():
            if left[core] and bare[0] != bare[1]:
                left[core] -= 1
            else:
                texts[text] += 1
        kept.append(texts)
    return kept[0], kept[1]


def _joins_ring(bond: Any) -> bool:
    """Whether a bond that is in no ring joins a ring to something, by a single bond."""
    single = bond.GetBondTypeAsDouble() == 1.0
    return single and (bond.GetBeginAtom().IsInRing() or bond.GetEndAtom().IsInRing())


def _times(text: str, number: int) -> str:
    return (f"{number} " if number > 1 else "") + _short(text)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
