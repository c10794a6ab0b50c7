"""Fingerprints are those that RDKit makes of one molecule at a time."""

from __future__ import annotations

import pickle
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem import Descriptors, rdFingerprintGenerator
from scipy import sparse

from seqopt.encoding import FeatureEncoder, Featurizer, Fragprints, MorganFingerprint, SelectiveFeaturizer, fingerprints
from seqopt.encoding.fingerprints import fragment_names
from seqopt.errors import InputError

SMILES = [
    "CCO",
    "C",
    "CC(=O)Oc1ccccc1C(=O)O",
    "C[C@H](N)C(=O)O",
    "CCCCCCCCCCCCCCCCCC(=O)O",
    "Cn1cnc2c1c(=O)n(C)c(=O)n2C",
    "[Na+].[Cl-]",
    "c1ccc(/N=N/c2ccccc2)cc1",
]


@pytest.mark.parametrize("counts", [False, True])
@pytest.mark.parametrize(("radius", "size"), [(0, 64), (2, 2048), (3, 2048), (3, 7)])
@pytest.mark.parametrize("use_chirality", [False, True])
def test_fingerprints_are_those_of_single_molecules(radius, size, counts, use_chirality):
    fingerprint = MorganFingerprint(radius, size, counts, use_chirality)
    rows = fingerprint(SMILES)
    generator = rdFingerprintGenerator.GetMorganGenerator(radius=radius, fpSize=size, includeChirality=use_chirality)
    single = generator.GetCountFingerprintAsNumPy if counts else generator.GetFingerprintAsNumPy
    expected = [single(Chem.MolFromSmiles(smiles)) for smiles in SMILES]
    np.testing.assert_array_equal(rows.toarray(), expected)
    assert isinstance(rows, sparse.csr_array)
    assert rows.dtype == np.float64
    assert rows.shape == (len(SMILES), fingerprint.size)
    # Kernels look for each feature once, in order.
    assert rows.has_canonical_format


def test_fragprints_are_a_fingerprint_and_every_group_of_rdkit():
    groups = {name: count for name, count in Descriptors.descList if name.startswith("fr_")}
    assert sorted(groups) == fragment_names()
    for counts in (False, True):
        fragprints = Fragprints(radius=3, bits=512, counts=counts)
        rows = fragprints(SMILES).toarray()
        assert rows.shape == (len(SMILES), fragprints.size) == (len(SMILES), 512 + len(groups))
        np.testing.assert_array_equal(rows[:, :512], MorganFingerprint(3, 512, counts)(SMILES).toarray())
        expected = [[groups[name](Chem.MolFromSmiles(smiles)) for name in fragment_names()] for smiles in SMILES]
        np.testing.assert_array_equal(rows[:, 512:], expected)
        assert rows[:, 512:].any()


@pytest.mark.parametrize("featurizer", [MorganFingerprint(), MorganFingerprint(counts=True), Fragprints()])
class TestFeaturizer:
    def test_is_one_for_an_encoder(self, featurizer):
        assert isinstance(featurizer, Featurizer)
        encoded = FeatureEncoder(featurizer).encode(SMILES)
        assert encoded.width == featurizer.size
        assert len(encoded) == len(SMILES)

    def test_the_spelling_of_a_molecule_makes_no_difference(self, featurizer):
        rng = np.random.default_rng(0)
        mols = [Chem.MolFromSmiles(smiles) for smiles in SMILES]
        orders = [rng.permutation(mol.GetNumAtoms()).tolist() for mol in mols]
        other = [
            Chem.MolToSmiles(Chem.RenumberAtoms(mol, order), canonical=False)
            for mol, order in zip(mols, orders, strict=True)
        ]
        assert other != SMILES
        np.testing.assert_array_equal(featurizer(other).toarray(), featurizer(SMILES).toarray())
        blanks = [f" {smiles}\n" for smiles in SMILES]
        np.testing.assert_array_equal(featurizer(blanks).toarray(), featurizer(SMILES).toarray())

    def test_molecules_are_held_in_blocks_that_make_no_difference(self, featurizer, monkeypatch):
        expected = featurizer(SMILES).toarray()
        held = []
        of_molecules = type(featurizer).of_molecules
        monkeypatch.setattr(fingerprints, "BLOCK", 3)
        monkeypatch.setattr(
            type(featurizer), "of_molecules", lambda self, mols: held.append(len(mols)) or of_molecules(self, mols)
        )
        np.testing.assert_array_equal(featurizer(SMILES).toarray(), expected)
        assert held == [3, 3, 2]

    def test_no_strings_have_no_rows(self, featurizer):
        rows = featurizer([])
        assert rows.shape == (0, featurizer.size)
        assert rows.dtype == np.float64

    def test_can_be_sent_to_another_process(self, featurizer):
        other = pickle.loads(pickle.dumps(featurizer))
        assert other.name == featurizer.name
        np.testing.assert_array_equal(other(SMILES).toarray(), featurizer(SMILES).toarray())

    @pytest.mark.parametrize(
        ("smiles", "reason"),
        [
            ("C1CC", "not a SMILES"),
            ("C(C)(C)(C)(C)C", "valence"),
            ("", "empty"),
            ("CCO ethanol", "a blank inside"),
            ("c1cccc1", "kekulize"),
        ],
    )
    def test_what_is_no_molecule_is_named_by_position_and_string(self, featurizer, smiles, reason, monkeypatch, capfd):
        monkeypatch.setattr(fingerprints, "BLOCK", 2)
        with pytest.raises(InputError, match=r"item 3 is .* not a molecule: .*(?i:" + reason + ")") as caught:
            featurizer(["C", "CC", "CCC", smiles, "also bad"])
        assert repr(smiles) in str(caught.value)
        assert capfd.readouterr() == ("", "")

    def test_says_what_it_cannot_take(self, featurizer, monkeypatch, capfd):
        strings = ["C", "C1CC", " CCO ", "", "C", "ClC=c1co[nH]1"]
        assert isinstance(featurizer, SelectiveFeaturizer)
        reasons = FeatureEncoder(featurizer).unsupported(strings)
        assert list(reasons) == [1, 3, 5]
        assert reasons[1] == "'C1CC' is not a molecule: not a SMILES (syntax)"
        assert "kekulize" in reasons[5].lower()
        assert featurizer.unsupported([]) == {}
        taken = [string for index, string in enumerate(strings) if index not in reasons]
        assert featurizer(taken).shape == (3, featurizer.size)
        assert capfd.readouterr() == ("", "")

    def test_reads_what_it_has_checked_once(self, featurizer, monkeypatch):
        read = []
        parse = fingerprints.parse_smiles
        monkeypatch.setattr(fingerprints, "parse_smiles", lambda smiles: read.append(smiles) or parse(smiles))
        strings = [f"{'C' * count}[13CH3]" for count in range(1, 6)]
        fingerprints._molecule.cache_clear()
        assert featurizer.unsupported(strings) == {}
        featurizer(strings)
        assert read == strings

    def test_a_single_string_is_no_list(self, featurizer):
        with pytest.raises(InputError, match="single string 'CCO'"):
            featurizer("CCO")


@pytest.mark.parametrize(
    ("one", "other"),
    [("C[C@H](N)C(=O)O", "C[C@@H](N)C(=O)O"), ("c1ccc(/N=N/c2ccccc2)cc1", "c1ccc(/N=N\\c2ccccc2)cc1")],
)
def test_stereo_isomers_differ_if_stereochemistry_is_used(one, other):
    for make, counts in product((MorganFingerprint, Fragprints), (False, True)):
        for use_chirality in (False, True):
            rows = make(radius=3, counts=counts, use_chirality=use_chirality)([one, other]).toarray()
            assert np.array_equal(rows[0], rows[1]) is not use_chirality


def test_names_tell_settings_apart():
    settings = list(product((2, 3), (512, 2048), (False, True), (False, True)))
    names = [make(*values).name for make in (MorganFingerprint, Fragprints) for values in settings]
    assert len(set(names)) == 2 * len(settings)
    again = [make(*values).name for make in (MorganFingerprint, Fragprints) for values in settings]
    assert names == again


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"radius": -1}, "radius is -1; it must be an integer of at least 0"),
        ({"radius": 2.5}, "radius is 2.5"),
        ({"radius": True}, "radius is True"),
        ({"size": 0}, "size is 0; it must be an integer of at least 1"),
        ({"size": "2048"}, "size is '2048'"),
    ],
)
def test_settings_out_of_range_are_refused(arguments, said):
    with pytest.raises(InputError, match=said):
        MorganFingerprint(**arguments)
    with pytest.raises(InputError, match=said.replace("size", "bits")):
        Fragprints(**{name.replace("size", "bits"): value for name, value in arguments.items()})


@pytest.mark.parametrize("featurizer", [MorganFingerprint(size=128, counts=True), Fragprints(bits=64)])
def test_many_molecules_are_shared_among_processes_and_kept(
    featurizer: MorganFingerprint | Fragprints, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SEQOPT_CACHE", str(tmp_path))
    strings = ["CCO", "c1ccccc1", "CC(=O)O", "[Na+].[Cl-]", " CCCCCC "] * 3
    alone = featurizer(strings)
    monkeypatch.setattr(fingerprints, "MANY", 10)
    shared = featurizer(strings)
    assert (shared != alone).nnz == 0
    assert shared.has_canonical_format
    (file,) = tmp_path.iterdir()
    monkeypatch.setattr(fingerprints, "map_strings", None)  # what is kept is not computed again
    assert (featurizer(strings) != alone).nnz == 0
    file.write_text(file.read_text()[:-9])
    with pytest.raises(TypeError):  # nor is a damaged file read
        featurizer(strings)


def test_an_unreadable_molecule_among_many_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SEQOPT_CACHE", str(tmp_path))
    monkeypatch.setattr(fingerprints, "MANY", 10)
    with pytest.raises(InputError, match=r"item 11 is 'C1CC', which is not a molecule"):
        MorganFingerprint()(["C"] * 11 + ["C1CC", "C"])
    assert not list(tmp_path.iterdir())
