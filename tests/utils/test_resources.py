"""Files that come with seqopt."""

from __future__ import annotations

import csv
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from seqopt.errors import InputError
from seqopt.utils import resources

ROOT = Path(resources.__file__).resolve().parents[2]


def test_files_are_found_and_missing_ones_explained() -> None:
    assert resources.data_path("penalized_logp.json").is_file()
    assert resources.grammar_path("arithmetic.cfg").is_file()
    with pytest.raises(InputError, match=r"no file 'x.csv' in data; there is: .*protein_variants.csv"):
        resources.data_path("x.csv")
    with pytest.raises(InputError, match="grammars"):
        resources.grammar_path("../pyproject.toml")


def test_files_are_found_in_the_layout_of_a_wheel(tmp_path: Path) -> None:
    package = tmp_path / "site" / "seqopt"
    shutil.copytree(ROOT / "seqopt", package, ignore=shutil.ignore_patterns("__pycache__", "_resources"))
    for folder in ("data", "grammars"):
        shutil.copytree(resources.resource_folder(folder), package / "_resources" / folder)
    code = (
        "from seqopt.utils.resources import data_path, grammar_path; "
        "print(data_path('protein_variants.csv')); print(grammar_path('arithmetic.cfg'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={"PYTHONPATH": str(package.parent)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found = [Path(line).resolve() for line in done.stdout.splitlines()]
    assert found == [
        (package / "_resources" / "data" / "protein_variants.csv").resolve(),
        (package / "_resources" / "grammars" / "arithmetic.cfg").resolve(),
    ]


def test_an_installation_without_its_files_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(resources, "_PACKAGE", tmp_path / "seqopt")
    with pytest.raises(InputError, match="lacks its data folder"):
        resources.data_path("protein_variants.csv")


def test_every_data_file_has_its_source_in_the_readme() -> None:
    folder = resources.resource_folder("data")
    readme = (folder / "README.md").read_text(encoding="utf-8")
    for path in folder.iterdir():
        assert path.name == "README.md" or path.is_dir() or f"`{path.name}`" in readme


def test_the_protein_variants_are_what_their_script_makes() -> None:
    folder = resources.resource_folder("data")
    script = runpy.run_path(str(folder / "make_protein_variants.py"))
    wild_type = script["WILD_TYPE"]
    with (folder / "protein_variants.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert len(wild_type) == 56
    assert len(rows) == len({row["sequence"] for row in rows}) == 3000
    assert (folder / "protein_variants.csv").stat().st_size < 300_000
    for row in rows:
        named = [] if row["name"] == "wild type" else row["name"].split("+")
        changed = [
            f"{old}{position}{new}"
            for position, (old, new) in enumerate(zip(wild_type, row["sequence"], strict=True), start=1)
            if old != new
        ]
        assert changed == named
        assert float(row["score"]) == pytest.approx(
            script["score"]([(int(name[1:-1]), name[-1]) for name in named]), abs=6e-4
        )


def test_the_synthetic_score_is_the_stated_formula() -> None:
    folder = resources.resource_folder("data")
    score = runpy.run_path(str(folder / "make_protein_variants.py"))["score"]
    assert score([]) == 0
    # L5A: the core loses 3.8 - 1.8 of hydropathy and (166.7 - 88.6) of volume.
    assert score([(5, "A")]) == pytest.approx(-0.3 * 2.0 - (78.1 / 30) ** 2)
    # T25A in the helix, outside the core: hydropathy gained from -0.7 to 1.8, helix propensity 0.66 to 0.
    assert score([(25, "A")]) == pytest.approx(-0.05 * 2.5 + 0.66)
    # A core residue that grows makes up for one that shrinks.
    assert score([(5, "A"), (34, "L")]) > score([(5, "A")]) + score([(34, "L")])
