"""The building blocks of a make-on-demand library, as files that are wrong, and where the package is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from seqopt.datasets.packages import files_of_package
from seqopt.datasets.synthemol import load_synthemol
from seqopt.errors import InputError


def test_files_that_are_missing_or_changed_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"pip install --no-deps synthemol==1\.0\.4, or put its file building_blocks"):
        load_synthemol(tmp_path)
    (tmp_path / "building_blocks.csv").write_text("changed\n")
    with pytest.raises(InputError, match=r"building_blocks\.csv has the SHA-256"):
        load_synthemol(tmp_path)


def test_files_are_found_in_a_folder_and_in_one_that_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = tmp_path / "package" / "a" / "b"
    inner.mkdir(parents=True)
    (inner / "one.csv").write_text("")
    known = ("it is", "package", "package==1", "a/b", {"one.csv": ""})
    assert files_of_package(*known, tmp_path) == {"one.csv": inner / "one.csv"}
    monkeypatch.setenv("SEQOPT_DATA", str(inner))
    assert files_of_package(*known) == {"one.csv": inner / "one.csv"}


def test_blocks_are_different_molecules() -> None:
    try:
        blocks = load_synthemol()
    except InputError as error:
        pytest.skip(str(error))
    assert len(blocks) == len({smiles for _, smiles in blocks}) == 137_656
    assert blocks[0] == ("3", "S=C=Nc1ccccc1")
