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


PROTEINS = ["MKTAYIAKQR", "MKTAYIAKQL", "MKTAYIAKAR", "MKTAYLAKQR", "MATAYIAKQR", "MKTGYIAKQR", "WWWWWWWWWW"]
SEQUENCES = ["campaign", "new", "near", "--pool", "proteins.csv", "--objective-name", "y", "--batch", "2"]


def _proteins() -> None:
    Path("proteins.csv").write_text("sequence,y\n" + "".join(f"{one},{len(set(one))}\n" for one in PROTEINS))
    Path("wt.fasta").write_text(">wt\nMKTAY\niakqr\n")
    Path("two.fasta").write_text(">a\nMKTAY\n>b\nMKTAA\n")
    Path("wt.txt").write_text("MKTAYIAKQR\n")


@pytest.mark.parametrize("lead", ["mktayi akqr", "MKTAYI\nAKQR\n", "wt.fasta"])
def test_a_lead_is_read_as_the_sequences_are(lead: str, capsys: pytest.CaptureFixture[str]) -> None:
    _proteins()
    assert main([*SEQUENCES, "--lead", lead, "--radius", "2"]) == 0
    assert "searched within 2 of MKTAYIAKQR, further if it pays" in capsys.readouterr().out
    assert main(["campaign", "suggest", "--out", "batch.csv"]) == 0
    assert (pd.read_csv("batch.csv")["distance_from_lead"] <= 1).all()


@pytest.mark.parametrize(
    ("lead", "message"),
    [
        ("MKTAYIAKQ1", "the lead 'MKTAYIAKQ1' cannot be read as protein ('1' at position 10 is not an amino-acid"),
        ("wt.csv", "cannot be read as protein ('.' at position 3 is not an amino-acid letter): give its sequence"),
        ("nothing.fasta", "nothing.fasta"),
        ("wt.txt", "--lead wt.txt: expected a sequence, or a FASTA file"),
        ("two.fasta", "--lead two.fasta: the file holds 2 sequences; expected one, the lead"),
    ],
)
def test_a_lead_that_is_no_sequence_is_refused(lead: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    _proteins()
    search = ["search", "proteins.csv", "--objective", "column:y", "--initial", "3", "--budget", "4"]
    for command in (SEQUENCES, search):
        assert main([*command, "--lead", lead, "--radius", "2"]) != 0
        assert message in " ".join(capsys.readouterr().err.split())
    assert not Path("near.seqopt").exists()


@pytest.mark.slow
def test_a_search_by_functions_scores_what_it_was_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SEARCH, "--strategy", "functions", "--out", "out"]) == 0
    assert len(pd.read_csv("out/evaluations.csv")) == 5
    assert main([*SEARCH, "--strategy", "functions", "--acquisition", "ucb", "--out", "other"]) != 0
    assert "functions has a linear model" in " ".join(capsys.readouterr().err.split())
