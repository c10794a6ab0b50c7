"""``seqopt embed``, as its users type it."""

from __future__ import annotations

import itertools
from pathlib import Path

import pandas as pd
import pytest

from seqopt.cli import main

SMILES = ["".join(p) for p in itertools.product(["C", "CC", "OC", "N#C"], ["C", "O", "N"], ["C", "F", "Br"])]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "\n".join(f"{string},{len(string)}" for string in SMILES)
    Path("assay.csv").write_text(f"compound,activity\n{rows}\nC1CC,3\n", encoding="utf-8")


def test_a_map_of_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["embed", "assay.csv", "--column", "compound", "--values", "activity", "--out", "one/mine.csv"]) == 0
    said = capsys.readouterr().out
    assert "Explained variance" in said
    assert "Smoothness of activity" in said
    assert "line 38 'C1CC'" in said
    assert sorted(path.name for path in Path("one").iterdir()) == [
        f"mine.{e}" for e in ("csv", "html", "json", "png", "svg")
    ]
    assert main(["embed", "assay.csv", "--values", "activity", "--out", "two"]) == 0
    assert Path("two/map.csv").read_bytes() == Path("one/mine.csv").read_bytes()


def test_another_surrogate_and_projected_strings() -> None:
    Path("other.smi").write_text("CCCCO\nCCCCN\n", encoding="utf-8")
    assert main(["embed", "assay.csv", "--surrogate", "ngrams", "--sample", "10", "--project", "other.smi"]) == 0
    table = pd.read_csv("runs/assay-map/map.csv", keep_default_na=False)
    assert len(table) == 12
    assert table["string"].tolist()[-2:] == ["CCCCO", "CCCCN"]


def test_a_map_of_a_run() -> None:
    arguments = ["--initial", "5", "--batch", "4", "--budget", "4", "--seed", "1", "--out", "run"]
    assert main(["search", "assay.csv", "--objective", "logp", *arguments]) == 0
    assert main(["embed", "assay.csv", "--run", "run", "--out", "both"]) == 0
    groups = pd.read_csv("both/map.csv")["group"].value_counts().to_dict()
    assert groups == {"not measured": len(SMILES) - 9, "initial design": 5, "chosen by the model": 4}
    assert main(["embed", "--run", "run", "--out", "alone"]) == 0
    assert len(pd.read_csv("alone/map.csv")) == 9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "x"], "nothing to map"),
        (["assay.csv", "--surrogate", "forest"], "unknown surrogate 'forest'"),
        (["assay.csv", "--values", "price"], "no column 'price'"),
        (["assay.csv", "--values", "compound"], "no finite number"),
        (["assay.csv", "--transform", "sqrt"], "expected none or log10"),
        (["assay.csv", "--out", "assay.csv"], "not overwritten"),
        (["nowhere.csv"], "nowhere.csv"),
        (["assay.csv", "--surrogate", "one-hot"], "one length"),
        (["assay.csv", "--components", "40"], "components is 40"),
        (["--run", "nowhere"], "evaluations.csv is missing"),
    ],
)
def test_what_cannot_be_mapped_is_one_readable_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["embed", *arguments]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
