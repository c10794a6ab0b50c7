"""Kinds and keys of strings."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rdkit import Chem

from seqopt.encoding import MorganFingerprint
from seqopt.errors import InputError
from seqopt.filters.properties import check_smarts
from seqopt.objectives.molecules import qed
from seqopt.spaces import GrammarSpace
from seqopt.strings import identity
from seqopt.strings.identity import (
    AMINO_ACIDS,
    KINDS,
    LONGEST_SMILES,
    canonical_smiles,
    explain_rejection,
    identity_keys,
    parse_smiles,
    recognize_kind,
)

ASPIRIN = "CC(=O)Oc1ccccc1C(=O)O"
GB1 = "MTYKLILNGKTLKGETTTEAVDAATAEKVFKQYANDNGVDGEWTYDDATKTFTVTE"


@pytest.mark.parametrize(
    "smiles", [ASPIRIN, "C[C@@H](O)/C=C/c1c[nH]c2ccccc12", "[Na+].[O-]C(=O)c1ccncc1", "C1CC2CCC1CC2"]
)
def test_every_spelling_of_a_molecule_has_the_same_key(smiles: str) -> None:
    spellings = Chem.MolToRandomSmilesVect(Chem.MolFromSmiles(smiles), 30, randomSeed=1)
    assert len(set(spellings)) > 3
    (key,) = set(identity_keys(spellings, "molecule"))
    assert key == Chem.CanonSmiles(smiles)
    assert identity_keys([key], "molecule") == [key]


# RDKit writes these, but cannot read what it wrote.
NOT_READ_BACK = ["C1=c(=CCl)N/O1", "C1\\[c-](\\C)=[nH]s=1", "P1c=s\\s1([C@H](F)Cl)"]
# RDKit reads what it wrote of these as another molecule, and what it then writes as that one again.
SETTLING = {"O=p1[c-]pc1": "[O-][P+]1=[C-]P=C1", "S1s(Cl)N=s/1": "ClS1=NSS1"}


@pytest.mark.parametrize("smiles", NOT_READ_BACK)
def test_a_molecule_whose_smiles_cannot_be_read_back_has_no_key(smiles: str) -> None:
    written = Chem.MolToSmiles(Chem.MolFromSmiles(smiles))
    assert Chem.MolFromSmiles(written) is None
    assert identity_keys([smiles, "CCO", written], "molecule") == [None, "CCO", None]
    assert explain_rejection(smiles, "molecule") == (
        f"RDKit reads it, but not the canonical SMILES that it writes of it, {written!r}"
    )


@pytest.mark.parametrize(("smiles", "key"), SETTLING.items())
def test_a_key_is_what_reading_and_writing_leaves_alone(smiles: str, key: str) -> None:
    assert Chem.CanonSmiles(smiles) != key
    assert Chem.CanonSmiles(key) == key
    assert identity_keys([smiles, Chem.CanonSmiles(smiles), key], "molecule") == [key] * 3


def test_a_smiles_that_never_settles_has_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    other = {"CCO": "OCC", "OCC": "CCO"}
    monkeypatch.setattr(Chem, "MolToSmiles", lambda mol: other[mol.GetProp("read")])
    read = Chem.MolFromSmiles

    def remembering(smiles: str) -> Chem.Mol:
        mol = read(smiles)
        mol.SetProp("read", smiles)
        return mol

    monkeypatch.setattr(Chem, "MolFromSmiles", remembering)
    identity._canonical.cache_clear()
    try:
        assert identity_keys(["OCC"], "molecule") == [None]
    finally:
        identity._canonical.cache_clear()


def test_keys_of_odd_molecules_are_fixed_points_that_fingerprints_can_read() -> None:
    space = GrammarSpace("smiles", kind="text")
    rng = np.random.default_rng(0)
    individuals = [space.from_string(NOT_READ_BACK[0])] * 200
    strings: list[str] = []
    for _ in range(5):
        individuals = space.mutate(individuals, rng)
        one, other = space.cross(individuals[:100], individuals[100:], rng)
        individuals = one + other
        strings += map(space.to_string, individuals)
    readable = [smiles for smiles in dict.fromkeys(strings) if Chem.MolFromSmiles(smiles)]
    written = [Chem.MolToSmiles(Chem.MolFromSmiles(smiles)) for smiles in readable]
    assert sum(Chem.MolFromSmiles(smiles) is None for smiles in written) > 10
    keys = [key for key in identity_keys(readable, "molecule") if key is not None]
    assert len(keys) > 150
    assert [Chem.CanonSmiles(key) for key in keys] == keys
    assert MorganFingerprint().unsupported(keys) == {}


def test_stereochemistry_charges_and_salts_tell_molecules_apart() -> None:
    different = [
        "C[C@H](N)C(=O)O",
        "C[C@@H](N)C(=O)O",
        "CC(N)C(=O)O",
        "CC([NH3+])C(=O)[O-]",
        "CC(N)C(=O)O.Cl",
    ]
    assert len(set(identity_keys(different, "molecule"))) == len(different)


def test_standardize_takes_the_neutral_parent() -> None:
    salts = ["CC(=O)[O-].[Na+]", "CC(=O)O.Cl", "CC(=O)O", "CC(=O)O[Na]"]
    assert set(identity_keys(salts, "molecule", standardize=True)) == {"CC(=O)O"}
    assert canonical_smiles("C[C@H](N)C(=O)O.Cl", standardize=True) == "C[C@H](N)C(=O)O"


@pytest.mark.parametrize("bad", ["", " ", "C1CC", "c1cccc1", "C(C)(C)(C)(C)C", "CCO ethanol", "C\tC", "foo"])
def test_unreadable_smiles_have_no_key(bad: str) -> None:
    assert identity_keys([bad], "molecule") == [None]
    assert explain_rejection(bad, "molecule")


def test_sequences_are_compared_without_regard_to_case() -> None:
    assert identity_keys([" acGT\n", "ACGU"], "dna") == ["ACGT", None]
    assert identity_keys(["acgu", "ACGT"], "rna") == ["ACGU", None]
    assert identity_keys(["mkv*", "MK1"], "protein") == ["MKV*", None]
    assert identity_keys([" a B ", "A b"], "text") == ["a B", "A b"]


@pytest.mark.parametrize("foreign", ["é", "А", "5", "\0", "J"])  # the second is Cyrillic
def test_one_foreign_letter_takes_the_key_of_its_own_string_only(foreign: str) -> None:
    assert identity_keys(["acgt", f"AC{foreign}GT", "", "ggg"], "dna") == ["ACGT", None, None, "GGG"]


def test_reasons_name_what_is_wrong() -> None:
    assert explain_rejection("ACGX", "dna") == "'X' at position 4 is not a DNA letter"
    assert "valence" in explain_rejection("C(C)(C)(C)(C)C", "molecule")
    assert "syntax" in explain_rejection("C1CC", "molecule")
    assert "blank" in explain_rejection("CCO ethanol", "molecule")
    assert explain_rejection("  ", "text") == "empty"


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(InputError, match="molecule, protein, dna, rna, text"):
        identity_keys(["C"], "gene")


@pytest.mark.parametrize(
    ("strings", "kind"),
    [
        # Letters of amino acids, too: what RDKit reads is a molecule.
        (["CCO", "CCN", "CC", "CNC"], "molecule"),
        ([ASPIRIN, "c1ccccc1", "not a smiles"], "molecule"),
        (["C", "N", "CCC"], "molecule"),
        (["[Na+].[Cl-]"], "molecule"),
        ([GB1], "protein"),
        ([GB1, "MKVLAAGIVGLLLAQWHFSCNP", "ACDEFGHIKLMNPQRSTVWY*"], "protein"),
        (["ACGT", "GGCC", "TTTT"], "dna"),
        (["acgtn", "gattaca"], "dna"),
        (["ACGU", "GGCC", "UUU"], "rna"),
        (["0110", "1010"], "text"),
        (["x+sin(x)", "(1+x)*x"], "text"),
        (["hello world", "maximise this"], "text"),
        ([""], "text"),
    ],
)
def test_kinds_are_recognised_from_the_strings(strings: list[str], kind: str) -> None:
    assert recognize_kind(strings) == kind


def test_a_hint_is_followed_only_where_the_letters_allow_it() -> None:
    assert recognize_kind(["ACGT", "GGTA"], hint="protein") == "protein"
    assert recognize_kind(["BRCA1", "TP53", "EGFR2"], hint="dna") == "text"
    assert recognize_kind([GB1], hint="molecule") == "molecule"


@settings(deadline=None, max_examples=40)
@given(st.lists(st.text(alphabet=sorted(AMINO_ACIDS), min_size=1, max_size=40), min_size=1, max_size=10))
def test_random_proteins_are_recognised(tails: list[str]) -> None:
    # M is neither a base nor an atom, so that nothing else can be meant.
    assert recognize_kind([f"M{tail}" for tail in tails]) == "protein"


def test_recognition_does_not_depend_on_a_few_bad_strings_in_a_large_file() -> None:
    rng = np.random.default_rng(0)
    genes = ["".join(rng.choice(list("ACGT"), 30)) for _ in range(500)]
    assert recognize_kind([*genes, *["??"] * 10]) == "dna"
    assert set(KINDS) == {"molecule", "protein", "dna", "rna", "text"}


@pytest.mark.parametrize("smiles", ["C" * 100_000, "C1CC1" * 3_000, "C" * (LONGEST_SMILES + 1), "CCO"])
def test_what_would_hang_or_crash_rdkit_never_reaches_it(smiles: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from rdkit import Chem

    qed(["CCO"])  # which reads its patterns when it is imported

    def reached(*arguments: object, **options: object) -> None:
        raise AssertionError("RDKit was asked")

    monkeypatch.setattr(Chem, "MolFromSmiles", reached)
    monkeypatch.setattr(Chem, "MolFromSmarts", reached)
    if smiles == "CCO":
        with pytest.raises(AssertionError, match="asked"):
            parse_smiles(smiles)  # the patch is where it has to be
        return
    assert parse_smiles(smiles) is None
    assert identity_keys([smiles], "molecule") == [None]
    assert identity_keys([smiles], "molecule", standardize=True) == [None]
    assert explain_rejection(smiles, "molecule") == f"a SMILES of {len(smiles):,} characters; at most 2,000 are read"
    assert recognize_kind([smiles] * 3) in ("protein", "text")
    assert np.isnan(qed([smiles])).all()
    with pytest.raises(InputError, match=f"{len(smiles):,} characters"):
        check_smarts(smiles)


def test_the_longest_smiles_is_read_and_a_key_is_never_longer() -> None:
    longest = "C" * LONGEST_SMILES
    assert identity_keys([longest], "molecule") == [longest]
    # Single bonds between aromatic rings are written, so this one's key would be longer than what may be read.
    rings = "c1ccccc1" * (LONGEST_SMILES // 8)
    assert identity_keys([rings], "molecule") == [None]
    assert re.search(r"canonical SMILES has 2,\d{3} characters \(2,000 as", explain_rejection(rings, "molecule"))


def test_proteins_and_genes_may_be_as_long_as_they_are() -> None:
    assert identity_keys(["MK" * 20_000], "protein") == ["MK" * 20_000]


def test_atom_maps_are_dropped_with_standardize_only() -> None:
    mapped, plain = "[CH3:1][CH2:2][OH:3]", "CCO"
    assert identity_keys([mapped, plain], "molecule", standardize=True) == ["CCO", "CCO"]
    as_they_are = identity_keys([mapped, plain], "molecule")
    assert as_they_are[0] != as_they_are[1] == "CCO"
    # What a map hides from symmetry is found again: both halves are the same.
    assert identity_keys(["[CH3:1]C[CH3:2]"], "molecule", standardize=True) == ["CCC"]


@pytest.mark.parametrize("smiles", ["[R1]CC", "CC[R]", "c1ccccc1R", "RCC", "[R2:1]CC", "CC[Q]"])
def test_r_groups_are_named(smiles: str) -> None:
    assert identity_keys([smiles], "molecule") == [None]
    assert "is an R-group, not an atom" in explain_rejection(smiles, "molecule")


@pytest.mark.parametrize("smiles", ["[Ru]", "[Rb+]", "C[Rh]C", "[Ra+2]", "CBr", "CC(C"])
def test_elements_are_no_r_groups(smiles: str) -> None:
    assert identity_keys([smiles], "molecule") != [None] or "R-group" not in explain_rejection(smiles, "molecule")
