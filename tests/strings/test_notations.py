"""InChI are molecules, names of compounds are not, and texts that are neither stay texts."""

import re
from pathlib import Path

import pytest
from rdkit import Chem

from seqopt.datasets import read_pool
from seqopt.errors import InputError
from seqopt.strings.identity import canonical_smiles
from seqopt.strings.notations import is_inchi, recognised_names, reference_to_structure, smiles_of_inchi

MOLECULES = ["CCO", "C[C@H](N)C(=O)O", "CC(=O)Nc1ccc(O)cc1", "c1ccc2[nH]ccc2c1", "F/C=C/F"]
# fmt: off
DRUGS = [
    "aspirin", "ibuprofen", "caffeine", "paracetamol", "morphine", "codeine", "penicillin", "amoxicillin",
    "atorvastatin", "lisinopril", "losartan", "metformin", "omeprazole", "warfarin", "imatinib", "gefitinib",
    "diazepam", "fluoxetine", "haloperidol", "lithium", "thc", "paclitaxel",
]
# fmt: on


@pytest.mark.parametrize("smiles", MOLECULES)
def test_an_inchi_is_its_molecule(smiles: str) -> None:
    inchi = Chem.MolToInchi(Chem.MolFromSmiles(smiles))
    found = smiles_of_inchi(f" {inchi.replace('InChI', 'inchi')} ")
    assert found is not None
    assert canonical_smiles(found) == canonical_smiles(smiles)
    assert is_inchi(inchi)
    assert reference_to_structure(Chem.MolToInchiKey(Chem.MolFromSmiles(smiles))) == "an InChIKey"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("64-17-5", "a CAS number"),
        ("50-78-2", "a CAS number"),
        ("7732-18-5", "a CAS number"),
        ("7732-18-4", None),
        ("2026-01-05", None),
        ("CCO", None),
        ("BSYNRYMUTXBXSQ-UHFFFAOYSA", None),
        ("BSYNRYMUTXBXSQ-UHFFFAOYSA-N", "an InChIKey"),
    ],
)
def test_numbers_of_registries_are_told_from_others(text: str, what: str | None) -> None:
    assert reference_to_structure(text) == what


@pytest.mark.parametrize(
    ("smiles", "wanted"),
    [
        ("CC(=O)NC", "CNC(C)=O"),
        ("CNC(=S)NC", "CNC(=S)NC"),
        ("O=C1CCCN1", "O=C1CCCN1"),
        ("CC(=O)NCC(=O)NCC(=O)Nc1ccccc1", "CC(=O)NCC(=O)NCC(=O)Nc1ccccc1"),
        ("Nc1nccs1", "Nc1nccs1"),
        ("CC(=O)Nc1nccs1", "CC(=O)Nc1nccs1"),
        ("C[C@H](NC(C)=O)C(=O)O", "CC(=O)N[C@@H](C)C(=O)O"),
        ("C[NH3+]", "CN"),
        ("N#CCNC(=O)c1ccc(C[NH3+])o1", "N#CCNC(=O)c1ccc(CN)o1"),
        ("C[N+](C)(C)C", "C[N+](C)(C)C"),
        ("CC(=O)[O-]", "CC(=O)O"),
        ("[Na+].[Cl-]", "[Cl-].[Na+]"),
        ("[Na+].CC(=O)[O-]", "CC(=O)[O-].[Na+]"),
    ],
)
def test_mobile_hydrogens_are_where_chemists_draw_them(smiles: str, wanted: str) -> None:
    inchi = Chem.MolToInchi(Chem.MolFromSmiles(smiles))
    found = smiles_of_inchi(inchi)
    assert found is not None
    assert canonical_smiles(found) == canonical_smiles(wanted)
    # The same substance, whatever the tautomer.
    expected = inchi if "/q" in inchi else re.sub(r"/p[+-]\d+", "", inchi)
    assert Chem.MolToInchi(Chem.MolFromSmiles(found)) == expected


def test_pools_of_inchi_are_pools_of_smiles(tmp_path: Path) -> None:
    inchi = [Chem.MolToInchi(Chem.MolFromSmiles(smiles)) for smiles in MOLECULES]
    for name, lines in (
        ("a.csv", ['"InChI"', *(f'"{text}"' for text in inchi)]),
        ("b.csv", ["id;structure", *(f"{number};{text}" for number, text in enumerate(inchi))]),
        ("c.txt", inchi),
        ("d.csv", ["smiles", *(f'"{text}"' for text in inchi[:2]), *MOLECULES[2:]]),
    ):
        path = tmp_path / name
        path.write_text("\n".join(lines) + "\n")
        pool = read_pool(path)
        assert pool.kind == "molecule"
        assert list(pool.keys) == [*map(canonical_smiles, MOLECULES)], name
        assert not any(map(is_inchi, pool.strings))
    path.write_text(f'smiles,y\nCCO,1\n"{inchi[0]}",3\nInChI=1S/none,1\nLFQSCWFLJHTTHZ-UHFFFAOYSA-N,2\n64-17-5,1\n')
    pool = read_pool(path, values_column="y")
    assert pool.values.tolist() == [2.0]
    assert [record.reason for record in pool.rejected] == [
        "an InChI that RDKit cannot read",
        "an InChIKey, which does not say how the molecule is made: expected a SMILES or an InChI",
        "a CAS number, which does not say how the molecule is made: expected a SMILES or an InChI",
    ]


@pytest.mark.parametrize(
    ("name", "rows", "what"),
    [
        ("a.csv", ["name,y", "foo,1", "bar,2"], "names of compounds ('foo', 'bar')"),
        ("b.csv", ["Compound Name", "unobtainium"], "names of compounds ('unobtainium')"),
        ("c.csv", ["drug", "ASPIRIN", "CAFFEINE", "GLYCINE", "ALANINE"], "names of compounds"),
        ("d.csv", ["whatever", *DRUGS], "names of compounds"),
        ("e.txt", DRUGS, "names of compounds"),
        ("f.txt", ["acetic acid", "sodium chloride", "2-acetoxybenzoic acid", "N,N-dimethylaniline"], "names of comp"),
        ("g.csv", ["inchikey,y", "LFQSCWFLJHTTHZ-UHFFFAOYSA-N,1"], "InChIKeys"),
        ("h.txt", ["64-17-5", "50-78-2"], "CAS numbers"),
        ("i.csv", ["id,price", "CPD-1,5", "CPD-2,6"], "names of compounds"),
    ],
)
def test_names_are_never_searched_as_text(tmp_path: Path, name: str, rows: list[str], what: str) -> None:
    path = tmp_path / name
    path.write_text("\n".join(rows) + "\n")
    with pytest.raises(InputError) as caught:
        read_pool(path)
    message = str(caught.value)
    assert str(path) in message
    assert what in message
    assert "column of SMILES or InChI" in message
    assert "--kind text" in message
    assert read_pool(path, kind="text").kind == "text"


@pytest.mark.parametrize(
    "strings",
    [
        ["0101", "1101", "0001"],
        ["x+1", "x*x+1", "sin(x)", "x/(1+x)"],
        ["the cat sat on the mat", "a dog ran away", "no one came", "machine learning is fine"],
        ["A1", "A2", "B1", "B2"],
        ["red green blue", "blue green red", "green red blue"],
        ["acggt", "aaggt", "acgga", "xxggt"],
        ["monday", "tuesday", "wednesday", "thursday", "friday"],
        ["state", "begin", "explain", "list", "word", "keep", "hold", "find"],
        ["aaaaaine", "abaaaine", "aabbaine", "bbbaaine"],
        [""],
    ],
)
def test_other_texts_are_texts(strings: list[str]) -> None:
    assert recognised_names(strings) is None
    assert recognised_names(strings, "sequence") is None
