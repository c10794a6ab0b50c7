"""``--lead`` and ``--radius`` of searches and campaigns, and ``--strategy functions``."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from seqopt.cli import main

SMILES = ["CCO", "CCCO", "CCCCO", "CCCCCO", "CCN", "CCCN", "c1ccccc1", "c1ccccc1O", "OCCO", "CCOC", "CC(C)O", "CCCCN"]
SEARCH = ["search", "pool.csv", "--objective", "column:y", "--initial", "3", "--batch", "2", "--budget", "2"]
NEW = ["campaign", "new", "near", "--pool", "pool.csv", "--objective-name", "y"]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [f"{smiles},{len(smiles)}" for smiles in SMILES]
    Path("pool.csv").write_text("smiles,y\n" + "\n".join(lines) + "\n")


def test_a_campaign_near_a_lead_says_how_far_its_suggestions_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*NEW, "--batch", "3", "--lead", "OCCC", "--radius", "0.6"]) == 0
    assert "searched within 0.6 of OCCC, further if it pays" in capsys.readouterr().out
    assert main(["campaign", "suggest", "--out", "batch.csv"]) == 0
    table = pd.read_csv("batch.csv")
    assert (table["distance_from_lead"] <= 0.6).all()
    assert table.loc[table["smiles"] == "CCCO", "distance_from_lead"].eq(0.0).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--lead", "CCCO"], "--lead needs --radius"),
        (["--radius", "0.4"], "--radius goes with --lead"),
        (["--lead-scale", "2"], "--lead-scale goes with --lead"),
        (["--lead", "CC(C", "--radius", "0.4"], "the lead 'CC(C' cannot be read as a molecule"),
        (["--lead", "CCCO", "--radius", "0.05"], "no candidate lies within 0.05 of the lead"),
        (["--lead", "CCCO", "--radius", "1.5"], "radius is 1.5; expected a number above 0 and below 1"),
        (
            ["--lead", "CCCO", "--radius", "0.4", "--lead-distance", "hamming"],
            "expected auto, tanimoto, edit or kernel",
        ),
    ],
)
def test_leads_that_cannot_be_used_are_refused(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*NEW, *options]) != 0
    assert message in " ".join(capsys.readouterr().err.split())
    assert not Path("near.seqopt").exists()


@pytest.mark.slow
def test_a_search_by_functions_scores_what_it_was_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SEARCH, "--strategy", "functions", "--out", "out"]) == 0
    assert len(pd.read_csv("out/evaluations.csv")) == 5
    assert main([*SEARCH, "--strategy", "functions", "--acquisition", "ucb", "--out", "other"]) != 0
    assert "functions has a linear model" in " ".join(capsys.readouterr().err.split())
