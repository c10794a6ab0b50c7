"""Kinds and keys of strings."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rdkit import Chem

from seqopt.errors import InputError
from seqopt.strings.identity import (
    AMINO_ACIDS,
    KINDS,
    canonical_smiles,
    explain_rejection,
    identity_keys,
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


def test_reasons_name_what_is_wrong() -> None:
    assert explain_rejection("ACGX", "dna") == "'X' at position 4 is no DNA letter"
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
