"""Other ways than SMILES to say which molecule is meant: InChI, which is converted, and names, which cannot be.

An InChI holds the structure, an InChIKey only a checksum of it, and a name or a registry number nothing: what they
stand for is written in data bases alone. Searched as text they would be taken for strings of letters, so they are
recognised and refused.

References:
    Heller, S. R., McNaught, A., Pletnev, I., Stein, S., Tchekhovskoi, D. (2015). InChI, the IUPAC International
        Chemical Identifier. J. Cheminform. 7, 23.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from seqopt.strings.identity import quiet_rdkit

INCHI = "InChI="
"""How every InChI begins."""

SAMPLE = 200
"""Strings that are looked at."""

FEWEST_NAMES = 3
"""Strings that are recognised as names of compounds by their endings alone, at least."""

WAY_OUT = (
    "seqopt searches structures: look them up (PubChem, ChEMBL or your registration system export SMILES) and give a "
    "column of SMILES or InChI"
)
"""What to do about names of compounds."""

_PROTONS = re.compile(r"/p[+-]\d+")

# An imine nitrogen, the carbon, and what gives its hydrogen to the nitrogen.
_UNUSUAL = ("[NX2;!a]=[CX3;!a]-[OX2H1,SX2H1]", "[NX2;!a]=[c]:[nX3H1]")

_KEY = re.compile(r"[A-Z]{14}-[A-Z]{10}-[A-Z]")
_REGISTRY = re.compile(r"([1-9]\d{1,6})-(\d\d)-(\d)")

NAME_COLUMNS = frozenset(
    {"name", "names", "compound", "compounds", "compound_name", "common_name", "generic_name", "trivial_name"}
    | {"preferred_name", "drug", "drugs", "drug_name", "chemical", "chemicals", "chemical_name", "substance"}
    | {
        "substance_name",
        "molecule_name",
        "ligand",
        "ligand_name",
        "inn",
        "iupac",
        "iupac_name",
        "ingredient",
        "synonym",
    }
    | {"cas", "cas_number", "cas_no", "inchikey", "inchi_key", "standard_inchi_key"}
    | {"id", "compound_id", "molecule_id", "mol_id", "zinc_id", "chembl_id", "cmpd_chemblid"}
)
"""Names of columns that hold names or numbers of compounds, as a rule, where they hold no structures."""

# Of international nonproprietary names, classes of compounds and systematic names. English has some of them, too, so
# half of many strings have to end so, and in several ways.
_ENDINGS = re.compile(
    r".*(?:[a-z ](?:ine|idine|amine|azine|idone|one|ene|ane|yne|ate|ite|ide|amide|azide|ole|azole|oxide|ol|anol|enol|al"
    r"|anal|oic|ose|ase|yl|amycin|mycin|cillin|cycline|floxacin|statin|pril|prilat|sartan|tinib|ciclib|parib|gliptin"
    r"|gliflozin|prazole|conazole|vir|navir|tidine|setron|triptan|barbital|azepam|azolam|profen|fenac|oxicam|coxib"
    r"|caine|dronate|fibrate|oxacin|sulfa|amol|ilol|olol|erol|terol|asone|olone|onide|phylline|farin|xaban|gatran"
    r"|grel|in|acid|salt|hydrate|hydrochloride|chloride|bromide|sulfate|phosphate|acetate|sodium|potassium))\)?"
)
_WORDS = re.compile(r"[A-Za-z\u03b1-\u03c9\d][\w\s,'\u2032()\[\]+.\-\u2010-\u2013]*")


def is_inchi(text: str) -> bool:
    """Whether a text is written as an InChI.

    Example:
        >>> is_inchi("InChI=1S/CH4/h1H4"), is_inchi("CCO")
        (True, False)
    """
    return text.strip()[: len(INCHI)].casefold() == INCHI.casefold()


def smiles_of_inchi(text: str) -> str | None:
    """The SMILES of the molecule that an InChI describes; `None` if RDKit cannot read it.

    A standard InChI leaves open which of some atoms holds a mobile hydrogen, and where a proton was gained or lost.
    RDKit places hydrogens so that amides become imidic acids; here they are moved back, as in amides, thioamides and
    2-aminoazoles. What has gained or lost protons only is read as the neutral molecule, since RDKit places such a
    charge anywhere; salts, which have ions besides, keep their charges. Without those protons, the InChI of the result
    is that of the text.

    Example:
        >>> smiles_of_inchi("InChI=1S/C2H6O/c1-2-3/h3H,2H2,1H3"), smiles_of_inchi("InChI=1S/nothing")
        ('CCO', None)
        >>> smiles_of_inchi("InChI=1S/C2H5NO/c1-2(3)4/h1H3,(H2,3,4)")
        'CC(N)=O'
    """
    from rdkit import Chem

    inchi = INCHI + text.strip()[len(INCHI) :]
    if "/q" not in inchi:
        inchi = _PROTONS.sub("", inchi)
    with quiet_rdkit():
        mol = Chem.MolFromInchi(inchi)  # type: ignore[no-untyped-call]
        if mol is None or not mol.GetNumAtoms():
            return None
        smiles = Chem.MolToSmiles(mol)
        mol = Chem.MolFromSmiles(smiles)
        return smiles if mol is None else Chem.MolToSmiles(_usual_tautomer(mol))


def _usual_tautomer(mol: Any) -> Any:
    """A molecule with amides in the place of imidic acids, and amines in that of imines on aromatic rings."""
    from rdkit import Chem

    for smarts in _UNUSUAL:
        pattern = Chem.MolFromSmarts(smarts)
        # Each move removes a match; a molecule of a thousand amides is cut short, not wrong.
        for _ in range(1000):
            match = mol.GetSubstructMatch(pattern)
            if not match:
                break
            moved = Chem.RWMol(mol)
            nitrogen, carbon, donor = match
            bond = moved.GetBondBetweenAtoms(nitrogen, carbon)
            bond.SetStereo(Chem.BondStereo.STEREONONE)
            bond.SetBondType(Chem.BondType.SINGLE)
            if not moved.GetAtomWithIdx(donor).GetIsAromatic():
                moved.GetBondBetweenAtoms(carbon, donor).SetBondType(Chem.BondType.DOUBLE)
            for index in (nitrogen, donor):
                moved.GetAtomWithIdx(index).SetNoImplicit(False)
                moved.GetAtomWithIdx(index).SetNumExplicitHs(0)
            if Chem.SanitizeMol(moved, catchErrors=True):
                break
            mol = moved.GetMol()
    return mol


def without_inchi(strings: Sequence[str]) -> list[str]:
    """The strings, with SMILES in the place of every InChI that can be read.

    Example:
        >>> without_inchi(["InChI=1S/CH4/h1H4", "CCO", "InChI=?"])
        ['C', 'CCO', 'InChI=?']
    """
    return [(smiles_of_inchi(string) or string) if is_inchi(string) else string for string in strings]


def reference_to_structure(text: str) -> str | None:
    """What a text is that says which molecule is meant without saying how it is made; `None` for any other.

    Example:
        >>> reference_to_structure("LFQSCWFLJHTTHZ-UHFFFAOYSA-N"), reference_to_structure("64-17-5")
        ('an InChIKey', 'a CAS number')
        >>> reference_to_structure("64-17-6"), reference_to_structure("CCO")
        (None, None)
    """
    stripped = text.strip()
    if _KEY.fullmatch(stripped):
        return "an InChIKey"
    found = _REGISTRY.fullmatch(stripped)
    if found:
        # The last digit is a check of the others, so that few dates and part numbers pass.
        digits = [int(digit) for digit in reversed(found[1] + found[2])]
        if sum(place * digit for place, digit in enumerate(digits, start=1)) % 10 == int(found[3]):
            return "a CAS number"
    return None


def recognised_names(strings: Sequence[str], column: str | None = None) -> str | None:
    """What strings are that name compounds instead of describing them; `None` for others.

    Those are InChIKeys and CAS numbers (half of them or more), strings of letters in a column whose name says so
    (`NAME_COLUMNS`), and without such a column those of which more than half end as the names of compounds do, in
    several ways. Only for strings that are of no other kind: what is a SMILES or a sequence is never asked about.

    Args:
        strings: Strings whose kind was recognised as text.
        column: The name of their column in small letters, with ``_`` between words.

    Example:
        >>> recognised_names(["aspirin", "caffeine", "acetic acid", "ibuprofen"])
        'names of compounds'
        >>> recognised_names(["CPD-0001", "CPD-0002"], "compound")
        'names of compounds'
        >>> recognised_names(["x+y", "x*y", "x-y"], "formula")
        >>> recognised_names(["the cat sat", "a dog ran", "no one came"])
    """
    filled = [stripped for string in strings if (stripped := string.strip())]
    if not filled:
        return None
    picks = np.linspace(0, len(filled) - 1, min(len(filled), SAMPLE)).astype(int)
    sample = [filled[pick] for pick in picks]
    found = [what for string in sample if (what := reference_to_structure(string)) is not None]
    if 2 * len(found) >= len(sample):
        return f"{found[0].split(' ', 1)[1]}s"
    if column in NAME_COLUMNS:
        return "names of compounds"
    ending = [string.casefold() for string in sample if _is_name(string)]
    several = len({string[-4:] for string in ending}) >= min(FEWEST_NAMES, len(ending))
    if len(filled) >= FEWEST_NAMES and 2 * len(ending) > len(sample) and several:
        return "names of compounds"
    return None


def _is_name(text: str) -> bool:
    # A name of a compound has few words, and is no sentence.
    return (
        _WORDS.fullmatch(text) is not None
        and len(text.split()) <= 4
        and len(text) >= 5
        and _ENDINGS.fullmatch(text.casefold()) is not None
    )
