"""When two strings are the same thing: kinds of strings and the keys that identify them.

A *key* is what two spellings of one thing share. For a molecule it is the isomeric canonical SMILES that
RDKit writes and writes again when it reads it, for a protein, DNA or RNA sequence the sequence in upper case, and for
any other text the text without surrounding blanks. This module needs RDKit, and that only for molecules.

References:
    Weininger, D., Weininger, A., Weininger, J. L. (1989). SMILES. 2. Algorithm for generation of unique
        SMILES notation. J. Chem. Inf. Comput. Sci. 29, 97-101.
    IUPAC-IUB (1984). Nomenclature for incompletely specified bases in nucleic acid sequences, and one-letter
        notation for amino acid sequences.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np

from seqopt.errors import InputError

KINDS = ("molecule", "protein", "dna", "rna", "text")
"""The kinds of strings that have keys of their own."""

AMINO_ACIDS = frozenset("ACDEFGHIKLMNPQRSTVWY")
"""One-letter codes of the twenty proteinogenic amino acids."""

# Besides the twenty: ambiguity codes (B, J, X, Z), selenocysteine, pyrrolysine, gap and stop.
_PERMITTED = {
    "protein": AMINO_ACIDS | frozenset("BJOUXZ-*"),
    "dna": frozenset("ACGTRYSWKMBDHVN-"),
    "rna": frozenset("ACGURYSWKMBDHVN-"),
}
_NAMES = {"protein": "an amino-acid letter", "dna": "a DNA letter", "rna": "an RNA letter"}

ROUNDS = 6
"""Times that a SMILES is read and written, at most, until it stays the same. Two are enough as a rule, three have been
seen."""

REMEMBERED = 1 << 14
"""Canonical SMILES that are kept."""

RECOGNITION_SAMPLE = 200
"""Strings that `recognize_kind` looks at."""

LONGEST_SMILES = 2_000
"""Longer SMILES are not read: RDKit's time grows with the square of the length or worse (100,000 carbons take
minutes), and chains of some thousand rings crash the process. A protein of 150 residues is about as long."""

QUOTED = 80
"""Characters of a string that messages show."""

RULES = 2
"""Number of these rules: keys that were computed by others and kept are not used."""

ATTACHMENT = "*"
"""In a canonical SMILES, an atom that stands for an attachment point; nothing else is written so."""

_R_GROUP = re.compile(r"\[R\d*(?::\d+)?\]|\[R#\]|\[#R\d*\]|\[(?:A|Q|X|Z)\d*(?::\d+)?\]|(?<![A-Za-z\[])R\d*(?![a-z])")
"""What drawing programs write for an R-group, and RDKit does not read."""


@contextmanager
def quiet_rdkit() -> Iterator[None]:
    """Silences RDKit's log inside the block, and leaves it as it was afterwards."""
    from rdkit import rdBase

    with rdBase.BlockLogs():
        yield


def parse_smiles(smiles: str) -> Any | None:
    """The RDKit molecule of a SMILES string, or `None` when it is unreadable, empty, holds a blank or is longer than
    `LONGEST_SMILES`.

    RDKit itself takes what follows a blank for a name and an empty string for a molecule of no atoms; neither
    is a molecule here. Call it inside `quiet_rdkit` to keep RDKit's complaints off the terminal. All of seqopt reads
    molecules here, so that what would hang or crash RDKit never reaches it.
    """
    from rdkit import Chem

    if not smiles or len(smiles) > LONGEST_SMILES or smiles.split() != [smiles]:
        return None
    mol = Chem.MolFromSmiles(smiles)
    return mol if mol is not None and mol.GetNumAtoms() else None


def canonical_smiles(smiles: str, *, standardize: bool = False) -> str | None:
    """Isomeric canonical SMILES of a molecule, or `None` for one that is unreadable or has none.

    The result is a fixed point: read and written again, it stays as it is. RDKit cannot read everything that it writes
    (``ClC=c1co[nH]1``), and reads some of it as another molecule, mostly aromatic rings with several double bonds at
    one atom. What is written is therefore read until it no longer changes, at most `ROUNDS` times; a molecule of
    which nothing readable is written, or something else each time, has no canonical SMILES.

    Args:
        smiles: A SMILES string.
        standardize: Whether to take RDKit's charge parent (``rdMolStandardize.ChargeParent``) first: metals
            are disconnected, functional groups normalised and acids re-ionised, then the largest organic
            fragment is kept and neutralised where adding or removing protons can do so. Atom maps (``[CH3:1]``) are
            dropped. Tautomers, stereochemistry and isotopes stay as they are. By default salts, charges and atom maps
            are left alone, too.

    Example:
        >>> canonical_smiles("OCC"), canonical_smiles("C1CC")
        ('CCO', None)
        >>> canonical_smiles("[Na+].CC(=O)[O-]"), canonical_smiles("[Na+].CC(=O)[O-]", standardize=True)
        ('CC(=O)[O-].[Na+]', 'CC(=O)O')
        >>> canonical_smiles("[CH3:1][OH:2]", standardize=True)
        'CO'
        >>> canonical_smiles("C1=c(=CCl)N/O1")
    """
    with quiet_rdkit():
        return _key(smiles, standardize)


def _key(smiles: str, standardize: bool) -> str | None:
    # What is far too long is not remembered, either.
    return None if len(smiles) > LONGEST_SMILES else _canonical(smiles, standardize)


# A search asks for the same string's key several times: whether the space holds it, and to score it.
@lru_cache(maxsize=REMEMBERED)
def _canonical(smiles: str, standardize: bool) -> str | None:
    for _ in range(ROUNDS):
        written = _written(smiles, standardize)
        # A key has to be readable itself, wherever it is read again.
        if written is None or len(written) > LONGEST_SMILES:
            return None
        # Most molecules of public files are canonical already: these are not read a second time.
        if written == smiles:
            return written
        smiles = written
    return None


def canonical_molecule(smiles: str, *, standardize: bool = False) -> tuple[str, Any] | None:
    """The `canonical_smiles` of a molecule, and the RDKit molecule that is read from it: nothing is read twice.

    Call it inside `quiet_rdkit`. Nothing is remembered, so that very many may be read one after another.

    Args:
        smiles: A SMILES string.
        standardize: See `canonical_smiles`.

    Example:
        >>> key, mol = canonical_molecule("OCC")
        >>> key, mol.GetNumAtoms()
        ('CCO', 3)
    """
    from rdkit import Chem

    if standardize:
        key = canonical_smiles(smiles, standardize=True)
        return None if key is None else (key, parse_smiles(key))
    for _ in range(ROUNDS):
        mol = parse_smiles(smiles)
        if mol is None:
            return None
        written: str = Chem.MolToSmiles(mol)
        if len(written) > LONGEST_SMILES:
            return None
        if written == smiles:
            return written, mol
        smiles = written
    return None


def _written(smiles: str, standardize: bool) -> str | None:
    """What RDKit writes of the molecule that it reads, once."""
    from rdkit import Chem

    mol = parse_smiles(smiles)
    if mol is None:
        return None
    if standardize:
        from rdkit.Chem.MolStandardize import rdMolStandardize

        for atom in mol.GetAtoms():
            atom.SetAtomMapNum(0)
        try:
            mol = rdMolStandardize.ChargeParent(mol)
        except (RuntimeError, ValueError):
            return None
        if not mol.GetNumAtoms():
            return None
    key: str = Chem.MolToSmiles(mol)
    return key


def identity_keys(strings: Sequence[str], kind: str, *, standardize: bool = False) -> list[str | None]:
    """Keys of ``strings``; `None` for one that is not a string of this kind.

    Args:
        strings: Any strings; blanks around them do not count.
        kind: One of `KINDS`.
        standardize: For molecules, see `canonical_smiles`.

    Raises:
        InputError: For an unknown kind.

    Example:
        >>> identity_keys(["C(O)C", "C1CC"], "molecule"), identity_keys([" acgt"], "dna")
        (['CCO', None], ['ACGT'])
    """
    if kind not in KINDS:
        raise InputError(f"unknown kind {kind!r}: choose {', '.join(KINDS)}")
    stripped = [string.strip() for string in strings]
    if kind == "molecule":
        with quiet_rdkit():
            return [_key(smiles, standardize) for smiles in stripped]
    if kind == "text":
        return [string or None for string in stripped]
    permitted = _PERMITTED[kind]
    raised = [string.upper() for string in stripped]
    together = "".join(raised)
    # As a rule all are right, which this says many times faster than a look at each letter of each.
    if together.isascii() and not together.encode().translate(None, "".join(permitted).encode()):
        return [string or None for string in raised]
    return [string if string and permitted.issuperset(string) else None for string in raised]


def required_keys(
    strings: Sequence[str], kind: str, *, standardize: bool = False, shown: Sequence[str] | None = None
) -> list[str]:
    """Keys of ``strings``, all of which must have one.

    Args:
        strings: As for `identity_keys`.
        kind: As for `identity_keys`.
        standardize: As for `identity_keys`.
        shown: What messages call the strings. Default: what they are.

    Raises:
        InputError: For the first string without a key, with the reason.

    Example:
        >>> required_keys(["C(O)C", "C1CC"], "molecule")
        Traceback (most recent call last):
        ...
        seqopt.errors.InputError: 'C1CC' is not a valid molecule: not a SMILES (syntax)
    """
    found = []
    for index, key in enumerate(identity_keys(strings, kind, standardize=standardize)):
        if key is None:
            string = (strings if shown is None else shown)[index]
            raise InputError(f"{quoted(string)} is not a valid {kind}: {explain_rejection(strings[index], kind)}")
        found.append(key)
    return found


def quoted(string: str) -> str:
    """A string in quotes, as messages show it: of a very long one the beginning.

    Example:
        >>> quoted("CCO"), len(quoted("C" * 100_000))
        ("'CCO'", 82)
    """
    return repr(string if len(string) <= QUOTED else string[: QUOTED - 3] + "...")


def explain_rejection(string: str, kind: str) -> str:
    """Why `identity_keys` gives no key to ``string``, in words for its author.

    Example:
        >>> explain_rejection("ACGX", "dna")
        "'X' at position 4 is not a DNA letter"
        >>> explain_rejection("C(C)(C)(C)(C)C", "molecule")
        'impossible molecule: Explicit valence for atom # 0 C, 5, is greater than permitted'
        >>> explain_rejection("C" * 100_000, "molecule")
        'a SMILES of 100,000 characters; at most 2,000 are read'
    """
    stripped = string.strip()
    if not stripped:
        return "empty"
    if kind in _PERMITTED:
        for position, letter in enumerate(stripped, start=1):
            if letter.upper() not in _PERMITTED[kind]:
                return f"{letter!r} at position {position} is not {_NAMES[kind]}"
    if kind != "molecule":
        return f"not a valid {kind}"
    if len(stripped.split()) > 1:
        return "a blank inside the SMILES"
    if len(stripped) > LONGEST_SMILES:
        return f"a SMILES of {len(stripped):,} characters; at most {LONGEST_SMILES:,} are read"
    from rdkit import Chem

    with quiet_rdkit():
        mol: Any = Chem.MolFromSmiles(stripped, sanitize=False)
        if mol is None:
            if group := _R_GROUP.search(stripped):
                return f"{group.group()} is an R-group, not an atom: write the whole molecule"
            return "not a SMILES (syntax)"
        problems = Chem.DetectChemistryProblems(mol)
        if problems:
            return f"impossible molecule: {problems[0].Message().strip()}"
        if (written := _written(stripped, standardize=False)) is None:
            return "RDKit cannot make a molecule of it"
        for _ in range(ROUNDS):
            if len(written) > LONGEST_SMILES:
                return (
                    f"its canonical SMILES has {len(written):,} characters ({len(stripped):,} as it stands here); at "
                    f"most {LONGEST_SMILES:,} are read"
                )
            if (again := _written(written, standardize=False)) is None:
                return f"RDKit reads it, but not the canonical SMILES that it writes of it, {written!r}"
            written = again
        return f"RDKit reads the canonical SMILES that it writes of it, {written!r}, as another molecule each time"


def explain_attachment(key: str, *, option: str) -> str | None:
    """Why a molecule is none that could be made or bought as it stands, or `None` if it may be.

    Args:
        key: Its canonical SMILES.
        option: What to set if such molecules are meant.

    Example:
        >>> explain_attachment("*CC(=O)O", option="attachment_points=True")
        'an attachment point (*): not a whole molecule; attachment_points=True accepts such'
        >>> explain_attachment("CC(=O)O", option="attachment_points=True")
    """
    if ATTACHMENT not in key:
        return None
    return f"an attachment point (*): not a whole molecule; {option} accepts such"


def recognize_kind(strings: Sequence[str], *, hint: str | None = None) -> str:
    """The kind of most of ``strings``, judged from their letters and from whether RDKit reads them.

    At most 200 strings, evenly spread, are looked at. DNA is made of A, C, G, T and N with something other
    than C and N in it (``CCN`` is an amine), RNA likewise with U. What RDKit reads in at least half of the
    cases is a molecule; this comes before proteins, whose strings RDKit cannot read as a rule, while ``CCO``
    is made of amino-acid letters, too. Upper-case strings of amino-acid letters are proteins, and everything
    else is text.

    Args:
        strings: The strings.
        hint: A kind that something else suggests, such as the name of a column. It is followed when at least
            half of the strings have letters of this kind; ``"molecule"`` and ``"text"`` are always followed.

    Returns:
        One of `KINDS`.

    Example:
        >>> recognize_kind(["CCO", "CCN"]), recognize_kind(["ACGGT"]), recognize_kind(["MKVLAAGIL"])
        ('molecule', 'dna', 'protein')
        >>> recognize_kind(["01101", "11010"])
        'text'
    """
    filled = [stripped for string in strings if (stripped := string.strip())]
    if not filled:
        return hint or "text"
    picks = np.linspace(0, len(filled) - 1, min(len(filled), RECOGNITION_SAMPLE)).astype(int)
    sample = [filled[pick] for pick in picks]

    def share(letters: frozenset[str], *, upper: bool = False) -> float:
        return sum(letters.issuperset(string if upper else string.upper()) for string in sample) / len(sample)

    if hint in ("molecule", "text") or (hint in _PERMITTED and share(_PERMITTED[hint]) >= 0.5):
        return hint
    seen = frozenset("".join(sample).upper())
    # One base in ten strings may be mistyped without turning a set of genes into something else.
    for kind, bases in (("dna", "ACGTN"), ("rna", "ACGUN")):
        if share(frozenset(bases)) >= 0.9 and seen & frozenset(bases) - frozenset("CN"):
            return kind
    with quiet_rdkit():
        readable = sum(parse_smiles(string) is not None for string in sample) / len(sample)
    if readable >= 0.5:
        return "molecule"
    return "protein" if share(AMINO_ACIDS | frozenset("X*"), upper=True) >= 0.9 else "text"
