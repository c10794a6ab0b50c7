"""``seqopt campaign``."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from seqopt.cli import main

SMILES = ["C" * n + end for n in range(1, 9) for end in ("O", "N", "F")]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("library.csv").write_text("smiles\n" + "\n".join(SMILES) + "\n")
    return tmp_path


def run(*words: str, fails: bool = False) -> None:
    status = main(["campaign", *words])
    assert bool(status) == fails


def begun() -> None:
    run("new", "kinase", "--pool", "library.csv", "--objective-name", "logS", "--batch", "4", "--seed", "2")


def test_weeks_of_a_campaign(capsys: pytest.CaptureFixture[str]) -> None:
    begun()
    assert Path("kinase.seqopt").exists()
    run("suggest", "--out", "batch.csv")
    with Path("batch.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["identifier"] for row in rows] == ["B01-01", "B01-02", "B01-03", "B01-04"]
    run("record", "B01-01", "-2.5", "--standard-error", "0.1")
    run("record", "B01-02", "--failed", "did not dissolve")
    rows[2]["logS"], rows[3]["logS"] = "-1.5", "-0.5"
    with Path("batch.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows(rows[2:])
    run("record", "batch.csv")
    Path("old.csv").write_text("smiles,logS\nCCCCCCCCCCBr,-6\n")
    run("import", "old.csv")
    run("suggest", "-n", "3")
    run("withdraw", "B02-01", "--reason", "too expensive")
    run("undo")
    capsys.readouterr()
    run("status", "--json")
    found = json.loads(capsys.readouterr().out)
    assert found["counts"] | {"batches": 0} == {
        **{"open": 3, "measured": 3, "failed": 1, "withdrawn": 0, "batches": 0},
        **{"strings": 4, "values": 4, "failures": 1},
    }
    assert found["best"]["value"] == -0.5
    assert found["model"]["n"] == 4
    run("status")
    assert "4 values of 4 strings, 1 failures" in capsys.readouterr().out
    run("history")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[-1].split()[0].rstrip(":") for line in lines] == [
        *("create", "suggest", "record", "record", "record", "import", "suggest", "withdraw", "undo")
    ]
    run("export", "all.csv")
    assert len(Path("all.csv").read_text().splitlines()) == 6


@pytest.mark.parametrize(
    "words",
    [
        ["--alphabet", "ACGU", "--length", "4-9"],
        ["--protein", "MAGIC"],
        ["--grammar", "arithmetic", "--length", "3-9"],
    ],
)
def test_other_spaces(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    run("new", "other", *words, "--objective-name", "y", "--batch", "3", "--minimize")
    run("suggest")
    assert "B01-03" in capsys.readouterr().out


def test_what_is_wrong_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    def refused(message: str, *words: str) -> None:
        run(*words, fails=True)
        assert message in " ".join(capsys.readouterr().err.split())

    new = ("new", "a", "--objective-name", "y")
    refused("there is no campaign in this folder", "suggest")
    refused("say what to search", *new)
    refused("given: --pool and --protein", *new, "--pool", "library.csv", "--protein", "MAGIC")
    refused("--length goes with --alphabet", *new, "--pool", "library.csv", "--length", "5")
    refused("--alphabet needs --length", *new, "--alphabet", "AB")
    refused("--length is 'five'", *new, "--alphabet", "AB", "--length", "five")
    refused("unknown surrogate", *new, "--pool", "library.csv", "--surrogate", "forest")
    assert not Path("a.seqopt").exists()
    begun()
    refused("kinase.seqopt is there already", "new", "kinase", "--pool", "library.csv", "--objective-name", "y")
    run("suggest")
    capsys.readouterr()
    refused("expected a number (write 6.5, not 6,5)", "record", "B01-01", "6,5")
    refused("the value is '--partail'", "record", "B01-01", "--partail")
    refused("nothing was recorded", "record", "nonsense", "1.0")
    Path("bad.csv").write_text("identifier,logS\nB01-01,high\nB01-02,1\n")
    refused("'high'", "record", "bad.csv")
    run("record", "bad.csv", "--partial")
    assert "not recorded" in capsys.readouterr().out
    run("new", "second", "--protein", "MAGIC", "--objective-name", "y")
    refused("2 campaigns in this folder (kinase, second): say which", "status")
    run("status", "-c", "second")
