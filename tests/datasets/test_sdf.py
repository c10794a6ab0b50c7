"""Structure-data files become tables of SMILES, names and properties, and are written so that RDKit reads them."""

import gzip
import io
from pathlib import Path

import pytest
from rdkit import Chem

from seqopt.datasets import read_pool, read_sheet
from seqopt.datasets.sdf import sdf_bytes
from seqopt.datasets.tables import read_table
from seqopt.errors import InputError
from seqopt.strings.identity import canonical_smiles

MOLECULES = ["CCO", "C[C@H](N)C(=O)O", "F/C=C/F", "[Na+].CC(=O)[O-]", "c1ccc2[nH]ccc2c1"]


def written(molecules: list[str], **properties: list[str]) -> bytes:
    """By RDKit's own writer."""
    stream = io.StringIO()
    writer = Chem.SDWriter(stream)
    for index, string in enumerate(molecules):
        mol = Chem.MolFromSmiles(string)
        mol.SetProp("_Name", f"CPD-{index}")
        for name, cells in properties.items():
            if cells[index]:
                mol.SetProp(name, cells[index])
        writer.write(mol)
    writer.close()
    return stream.getvalue().encode()


BROKEN = b"""broken
     RDKit          2D

  2  1  0  0  0  0  0  0  0  0999 V2000
    0.0000    0.0000    0.0000 F   0  0  0  0  0  0  0  0  0  0  0  0
    1.0000    0.0000    0.0000 C   0  0  0  0  0  0  0  0  0  0  0  0
  1  2  3  0
M  END
> <pIC50>
7.5

$$$$
"""


@pytest.mark.parametrize("ending", ["sdf", "SDF", "sd", "sdf.gz"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_records_are_rows(tmp_path: Path, ending: str, end: bytes) -> None:
    data = written(MOLECULES, pIC50=["6.5", "", "7", "", "8"], smiles=["x"] * 5).replace(b"\n", end)
    path = tmp_path / f"library.{ending}"
    path.write_bytes(gzip.compress(data) if ending.endswith("gz") else data)
    table = read_table(path)
    assert set(table.columns) == {"smiles", "name", "smiles (property)", "pIC50"}
    assert [canonical_smiles(string) for string in table.columns["smiles"]] == [*map(canonical_smiles, MOLECULES)]
    assert table.columns["pIC50"] == ["6.5", "", "7", "", "8"]
    lines = data.replace(end, b"\n").split(b"\n")
    assert [lines[line - 1].decode() for line in table.lines] == [f"CPD-{index}" for index in range(5)]
    pool = read_pool(path, values_column="pIC50")
    assert pool.kind == "molecule"
    assert pool.names == ("CPD-0", "CPD-2", "CPD-4")
    assert pool.values.tolist() == [6.5, 7.0, 8.0]


def test_unreadable_records_are_set_aside_and_the_others_read(tmp_path: Path) -> None:
    first, last = written(["CCO"], pIC50=["6"]), written(["CCN"], pIC50=["7"])
    path = tmp_path / "library.sdf"
    path.write_bytes(first + BROKEN + b"no molfile at all\n$$$$\n" + last)
    pool = read_pool(path)
    assert pool.strings == ("CCO", "CCN")
    assert [(record.line, record.value) for record in pool.rejected] == [
        (1 + first.count(b"\n"), "record 2 broken"),
        (1 + (first + BROKEN).count(b"\n"), "record 3 no molfile at all"),
    ]
    assert "valence" in pool.rejected[0].reason
    assert "no line 'M  END'" in pool.rejected[1].reason
    assert [record[1] for record in read_sheet(path).unread] == ["record 2 broken", "record 3 no molfile at all"]
    with pytest.raises(InputError, match="record 2 broken"):
        read_pool(path, strict=True)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\n\n", "holds no record"),
        (b"a\0b", "is not text"),
        (BROKEN, "no usable molecule: line 1 record 1 broken .impossible molecule"),
        (b"x\n$$$$\n", "no usable molecule"),
    ],
)
def test_files_without_a_molecule_are_refused(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "library.sdf"
    path.write_bytes(data)
    with pytest.raises(InputError, match=message):
        read_pool(path)


def test_rdkit_reads_what_is_written(tmp_path: Path) -> None:
    texts = ["two\nlines", "> <pIC50>", "$$$$", "", "caf\xe9"]
    data = sdf_bytes(
        MOLECULES, ["n\nm", "", "b", "c", "d"], {"value": [6.5, None, 3, float("nan"), 1e-9], "no<te>": texts}
    )
    read = list(Chem.ForwardSDMolSupplier(io.BytesIO(data)))
    assert [Chem.MolToSmiles(mol) for mol in read] == [*map(canonical_smiles, MOLECULES)]
    assert [mol.GetProp("_Name") for mol in read] == ["n m", "", "b", "c", "d"]
    assert [mol.GetProp("value") if mol.HasProp("value") else None for mol in read] == ["6.5", None, "3", None, "1e-09"]
    assert [mol.GetProp("no te").strip() if mol.HasProp("no te") else None for mol in read] == [
        "two lines",
        "> <pIC50>",
        "$$$$",
        None,
        "caf\xe9",
    ]
    assert all(mol.GetNumConformers() and not mol.GetConformer().Is3D() for mol in read)
    path = tmp_path / "out.sdf"
    path.write_bytes(data)
    assert read_table(path).columns["value"] == ["6.5", "", "3", "", "1e-09"]
    with pytest.raises(InputError, match="not a SMILES"):
        sdf_bytes(["C1CC"], ["a"], {})
