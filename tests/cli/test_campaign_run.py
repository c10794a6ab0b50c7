"""``seqopt campaign run``, and campaigns whose objective is computed."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from seqopt.campaign import CampaignStore
from seqopt.cli import main

SUM = "gc - 0.5*cai:human"
MODEL = ("--surrogate", "one-hot", "--acquisition", "mean", "--batch", "3")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("gfp.fasta").write_text(">gfp\nMSKGEEL*\n")
    return tmp_path


def run(*words: str, fails: bool = False) -> None:
    assert bool(main(["campaign", *words])) == fails


def test_a_gene_campaign_is_computed_and_shows_each_score(capsys: pytest.CaptureFixture[str]) -> None:
    run("new", "gfp", "--protein", "gfp.fasta", "--objective", SUM, *MODEL)
    told = capsys.readouterr().out
    assert f"gfp.seqopt: {SUM} of 1,152 synonymous genes" in told
    assert "computed, and maximized; recorded beside it: gc, cai:human" in told
    assert "note: gc - 0.5*cai:human is maximized, which makes cai:human worse than it could be" in told
    run("run", "--budget", "6")
    told = capsys.readouterr().out
    assert "maximizing gc - 0.5*cai:human: 6 results, in batches of 3, by mean" in told
    best = told.partition("Best of 6 by gc - 0.5*cai:human")[2].split("\n")[1:7]
    assert best[0].split() == ["name", "value", "gc", "cai:human", "gene"]
    with CampaignStore.open(Path("gfp.seqopt")) as store:
        first = max(store.measurements(), key=lambda row: row.value or -9.0)
    numbers = [first.value or 0.0, first.further["gc"], first.further["cai:human"]]
    assert best[1].split() == [first.suggestion, *(f"{number:.5g}" for number in numbers), first.string]
    run("run", "gfp", "--budget", "6")
    assert "6 of 6 results are there already: for more, give a larger --budget" in capsys.readouterr().out
    run("status")
    gc, cai = (f"{number:,.5g}" for number in numbers[1:])
    assert f"with {numbers[0]:,.5g} (gc {gc}; cai:human {cai})" in capsys.readouterr().out
    run("status", "--json")
    assert json.loads(capsys.readouterr().out)["best"]["further"] == first.further
    run("report")
    report = capsys.readouterr().out
    header = report.partition("Best measured\n")[2].split("\n")[1]
    assert header.split()[-7:] == [*SUM.split(), "gc", "cai:human", "replicates", "their", "std"][-7:]


def test_people_and_the_function_take_turns(capsys: pytest.CaptureFixture[str]) -> None:
    run("new", "gfp", "--protein", "MSKGEEL", "--objective", SUM, "--maximize", *MODEL)
    assert "worse than it could be" not in capsys.readouterr().out
    run("suggest", "--out", "batch.csv")
    with Path("batch.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    rows[0] |= {SUM: "0.2", "gc": "0.5", "cai:human": "0.6"}
    with Path("batch.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    run("record", "batch.csv")
    run("record", "B01-02", "0.3", "--also", "cai:human=0.4")
    run("run", "--budget", "4")
    run("undo")
    with CampaignStore.open(Path("gfp.seqopt")) as store:
        assert [row.further for row in store.measurements()][:2] == [{"gc": 0.5, "cai:human": 0.6}, {"cai:human": 0.4}]
        assert [row.suggestion for row in store.measurements()] == ["B01-01", "B01-02", "B01-03"]


def test_any_campaign_may_be_given_a_function(capsys: pytest.CaptureFixture[str]) -> None:
    run("new", "loops", "--alphabet", "AB", "--length", "6", "--objective-name", "count", *MODEL)
    Path("own.py").write_text(
        "def count(strings):\n    return [float('nan') if s[0] == 'B' else s.count('A') for s in strings]\n"
    )
    run("run", fails=True)
    told = capsys.readouterr()
    assert "count of this campaign is measured: name what computes it" in told.out + told.err
    run("run", "--objective", "own.py:count", "--budget", "9", "--no-isolate")
    told = capsys.readouterr()
    assert "maximizing count, computed by own.py:count: 9 results" in told.out
    with CampaignStore.open(Path("loops.seqopt")) as store:
        failed = sum(row.failure is not None for row in store.measurements())
        assert (len(store.measurements()), failed) == (9, sum(row.string[0] == "B" for row in store.measurements()))
    assert f"{failed} failed:" in told.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "say what is measured, by --objective-name pIC50, or what computes it, by --objective"),
        (["--objective", "gc - "], "position 5, and it ends"),
        (["--objective", "qed"], "qed is for molecules"),
        (["--objective", "gc", "--plates"], "--objective gc is computed, which --plates does not go with"),
        (["--objective", "gc", "--results", "yes/no"], "which --results yes/no does not go with"),
    ],
)
def test_what_cannot_be_begun_says_why(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    run("new", "a", "--protein", "MSKGEEL", *options, fails=True)
    told = capsys.readouterr()
    assert message in " ".join((told.out + told.err).split())
    assert not Path("a.seqopt").exists()


def test_a_file_of_several_proteins_is_no_campaign(capsys: pytest.CaptureFixture[str]) -> None:
    Path("two.fasta").write_text(">a\nMSK\n>b\nMLL\n")
    run("new", "a", "--protein", "two.fasta", "--objective", "gc", fails=True)
    assert "two.fasta holds 2 proteins, and a campaign searches the genes of one" in capsys.readouterr().err
