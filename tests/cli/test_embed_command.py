"""``seqopt embed``, as its users type it."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pandas as pd
import pytest

from seqopt.campaign import Campaign
from seqopt.cli import main
from seqopt.spaces import StringSpace

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


@pytest.mark.slow
def test_a_map_of_a_run() -> None:
    arguments = ["--initial", "5", "--batch", "4", "--budget", "4", "--seed", "1", "--out", "run"]
    assert main(["search", "assay.csv", "--objective", "logp", *arguments]) == 0
    assert main(["embed", "assay.csv", "--run", "run", "--out", "both"]) == 0
    groups = pd.read_csv("both/map.csv")["group"].value_counts().to_dict()
    assert groups == {"not measured": len(SMILES) - 9, "initial design": 5, "chosen by the model": 4}
    assert main(["embed", "--run", "run", "--out", "alone"]) == 0
    assert len(pd.read_csv("alone/map.csv")) == 9


@pytest.mark.slow
def test_a_run_is_mapped_by_its_own_model(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--initial", "5", "--batch", "4", "--budget", "4", "--surrogate", "ssk+minmax", "--out", "run"]
    assert main(["search", "assay.csv", "--objective", "logp", *arguments]) == 0
    assert main(["embed", "assay.csv", "--run", "run", "--out", "both"]) == 0
    assert "by the kernel of ssk+minmax, tuned" in capsys.readouterr().out
    assert json.loads(Path("both/map.json").read_text())["settings"]["surrogate"] == "ssk+minmax"
    assert main(["embed", "--run", "run", "--surrogate", "ngrams", "--tokenizer", "characters", "--out", "other"]) == 0
    made = json.loads(Path("other/map.json").read_text())["settings"]
    assert (made["surrogate"], made["tokenizer"]) == ("ngrams", "characters")


@pytest.mark.slow
def test_formulas_are_compared_by_their_terminals(capsys: pytest.CaptureFixture[str]) -> None:
    Path("points.csv").write_text("x,y\n" + "".join(f"{x},{x * x}\n" for x in range(1, 6)), encoding="utf-8")
    assert main(["expressions", "--data", "points.csv", "--budget", "2", "--initial", "8", "--out", "run"]) == 0
    assert main(["embed", "--run", "run", "--out", "map"]) == 0
    assert "by the kernel of mixture, tuned" in capsys.readouterr().out
    assert json.loads(Path("map/map.json").read_text())["settings"]["tokenizer"] == "terminals"


@pytest.mark.slow
def test_symbols_of_a_run_are_those_of_its_map(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--initial", "6", "--budget", "3", "--batch", "3", "--surrogate", "ssk", "--tokenizer", "characters"]
    assert main(["search", "assay.csv", "--objective", "logp", *arguments, "--out", "run"]) == 0
    for extra, out in (([], "one"), (["--tokenizer", "characters"], "two")):
        assert main(["embed", "assay.csv", "--run", "run", *extra, "--out", out]) == 0
    assert Path("one/map.csv").read_bytes() == Path("two/map.csv").read_bytes()
    made = [json.loads(Path(out, "map.json").read_text())["settings"] for out in ("one", "two")]
    assert made[0] == made[1]
    assert made[0]["tokenizer"] == "characters"
    capsys.readouterr()
    Path("run/evaluations.csv").unlink()
    assert main(["embed", "--run", "run", "--out", "three"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "evaluations.csv is missing: the table is what campaign.seqopt knows" in said
    Path("run/summary.json").unlink()
    assert main(["embed", "--run", "run", "--out", "four"]) == 0
    assert len(pd.read_csv("three/map.csv")) == len(pd.read_csv("four/map.csv")) == 9


@pytest.mark.slow
def test_a_standardized_run_and_its_library_share_identities() -> None:
    smiles = ["CCO", "CC[NH3+].[Cl-]", "CCCN", "CCS", "CC(=O)[O-].[Na+]", "CCCl", "CCCO", "CCF"]
    Path("salts.csv").write_text("smiles\n" + "\n".join(smiles) + "\n", encoding="utf-8")
    assert (
        main(
            [
                "search",
                "salts.csv",
                "--standardize",
                "--objective",
                "logp",
                *["--initial", "6", "--budget", "0"],
                "--out",
                "run",
            ]
        )
        == 0
    )
    assert main(["embed", "salts.csv", "--run", "run", "--project", "salts.csv", "--out", "map"]) == 0
    table = pd.read_csv("map/map.csv")
    assert table["group"].value_counts().to_dict() == {"projected": 8, "initial design": 6, "not measured": 2}
    both = table.groupby("string")[["x", "y"]].agg(lambda indices: indices.max() - indices.min())
    assert (both.abs() < 1e-9).all(axis=None)


@pytest.mark.slow
def test_strings_that_do_not_fit_the_model_of_a_search(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["genes", "MKTA", "--objective", "gc", *["--initial", "4", "--budget", "0", "--out", "run"]]) == 0
    Path("other.csv").write_text("gene\nATGAA\nATGAAAACC\nATGACG\n", encoding="utf-8")
    assert main(["embed", "other.csv", "--kind", "dna", "--run", "run", "--out", "map"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "'ATGAA'" in said
    assert "--surrogate ssk --tokenizer characters" in said
    arguments = ["--surrogate", "ssk", "--tokenizer", "characters"]
    assert main(["embed", "other.csv", "--kind", "dna", "--run", "run", *arguments, "--out", "map"]) == 0


def test_a_folder_beside_a_campaign_does_not_hide_it(capsys: pytest.CaptureFixture[str]) -> None:
    with Campaign.create("k.seqopt", StringSpace("AB", 6), objective="y", batch_size=4) as campaign:
        for count, suggestion in enumerate(campaign.suggest()):
            campaign.record(suggestion.name, float(count))
    Path("k").mkdir()
    assert main(["embed", "--run", "k", "--out", "map"]) == 0
    assert "by the kernel of mixture" in capsys.readouterr().out
    assert main(["embed", "--run", "kk", "--out", "map"]) == 2
    assert "nor is there a campaign kk.seqopt" in " ".join(capsys.readouterr().err.split())


def test_a_campaign_is_found_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    with Campaign.create("k.seqopt", StringSpace("AB", 6), objective="y", batch_size=4, surrogate="ngrams") as campaign:
        for count, suggestion in enumerate(campaign.suggest()):
            campaign.record(suggestion.name, float(count))
    assert main(["embed", "--run", "k", "--out", "map"]) == 0
    assert "4 strings by the kernel of ngrams" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "x"], "nothing to map"),
        (["assay.csv", "--surrogate", "forest"], "unknown surrogate 'forest'"),
        (["assay.csv", "--values", "price"], "no column 'price'"),
        (["assay.csv", "--values", "compound"], "not a finite number"),
        (["assay.csv", "--transform", "sqrt"], "expected none or log10"),
        (["assay.csv", "--out", "assay.csv"], "not overwritten"),
        (["nowhere.csv"], "nowhere.csv"),
        (["assay.csv", "--surrogate", "one-hot"], "one length"),
        (["assay.csv", "--components", "40"], "components is 40"),
        (["--run", "nowhere"], "evaluations.csv is missing"),
        (["--run", "nowhere", "--values", "activity"], "evaluations.csv is missing"),
        (["assay.csv", "--surrogate", "minmax", "--tokenizer", "smiles"], "does not look at symbols"),
    ],
)
def test_what_cannot_be_mapped_is_one_readable_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["embed", *arguments]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
