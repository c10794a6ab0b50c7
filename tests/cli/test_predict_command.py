"""``seqopt predict`` and ``seqopt campaign predict``, ``rank`` and ``explain``."""

from __future__ import annotations

import csv
import itertools
from pathlib import Path

import pandas as pd
import pytest

import seqopt
from seqopt.campaign import Campaign
from seqopt.cli import main
from seqopt.spaces import CandidateSet

POOL = ["".join(letters) for letters in itertools.product("AB", repeat=6)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "library.csv").write_text("string\n" + "\n".join(POOL) + "\n")
    with Campaign.create(
        tmp_path / "a.seqopt", tmp_path / "library.csv", objective="pIC50 [B]", batch_size=8, surrogate="ssk", seed=1
    ) as campaign:
        for row in campaign.suggest():
            campaign.record(row.name, 5.0 + row.string.count("AB"))
        campaign.suggest()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_strings_and_files_are_predicted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["campaign", "predict", "ABABAB", "[bold]x"]) == 0
    head, first, second = capsys.readouterr().out.splitlines()[:3]
    assert head.split("  ")[0] == "predicted pIC50 [B]"
    assert head.rstrip().endswith("string")
    assert first.endswith("ABABAB")
    assert "(IC50 ×/÷ " in first
    assert second.endswith("[bold]x")
    (folder / "ideas.csv").write_text("string,note\nABABAB,x\nBBBBBB,y\n")
    assert main(["campaign", "predict", "ideas.csv", "--column", "string", "--out", "found.csv"]) == 0
    with (folder / "found.csv").open(newline="", encoding="utf-8-sig") as stream:
        rows = list(csv.DictReader(stream))
    with Campaign.open(folder / "a.seqopt") as campaign:
        expected = campaign.predict(["ABABAB", "BBBBBB"])
    assert [row["string"] for row in rows] == ["ABABAB", "BBBBBB"]
    assert [float(row["predicted"]) for row in rows] == pytest.approx([row.predicted for row in expected])
    assert [float(row["true_low"]) for row in rows] == pytest.approx([row.true_low for row in expected])


def test_tables_of_predictions_are_written_like_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    strings = ["".join(letters) for letters in itertools.product("AB", repeat=4)]
    Path("library.csv").write_text("string;price\n" + "".join(f"{string};1,5\n" for string in strings))
    with Campaign.create(
        "a.seqopt", "library.csv", objective="y", kind="text", decimal_comma=True, surrogate="hamming"
    ) as campaign:
        for string in strings[:5]:
            campaign.record(string, string.count("B") + 0.25)
        expected = campaign.predict(strings[6:9])
    Path("ideas.csv").write_text("string\n" + "\n".join(strings[6:9]) + "\n")
    assert main(["campaign", "predict", "ideas.csv", "--out", "found.csv"]) == 0
    found = pd.read_csv("found.csv", sep=";", decimal=",")
    assert found["predicted"].tolist() == pytest.approx([row.predicted for row in expected])
    assert main(["campaign", "rank", "--all", "--out", "all.csv"]) == 0
    assert pd.read_csv("all.csv", sep=";", decimal=",").loc[0, "rank"] == 1
    assert "." not in Path("all.csv").read_text()
    # Both can be read again.
    assert main(["campaign", "predict", "all.csv", "--out", "found.xlsx"]) == 0
    assert len(pd.read_excel("found.xlsx")) == 11
    assert isinstance(pd.read_excel("found.xlsx").loc[0, "predicted"], float)


def test_candidates_are_ranked(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["campaign", "rank", "-n", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:4]] == ["rank", "1", "2", "3"]
    assert main(["campaign", "rank", "--all", "--by", "improvement", "--out", "all.csv"]) == 0
    out = capsys.readouterr()
    assert "40 of 56 are shown" in out.out + out.err
    assert len((folder / "all.csv").read_text().splitlines()) == 57


def test_a_suggestion_is_explained(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["campaign", "explain", "b2-1"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("B02-01  ")
    assert "they sum to the prediction" in " ".join(out.split())
    with Campaign.open(folder / "a.seqopt") as campaign:
        found = campaign.explain("B02-01")
    table = out.splitlines()[-6:]
    assert [line.split()[2] for line in table] == list(found.prediction.string)
    assert [line.split()[1] for line in table] == [f"{value:+.3g}" for value in found.contributions.values]


def test_what_is_explained_of_a_string_that_failed_is_said_to_be_predicted(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Campaign.open(folder / "a.seqopt") as campaign:
        campaign.record("B02-01", failure="did not grow")
        campaign.record("B02-02", lost="the robot dropped it")
    for name, status in (("B02-01", "failed"), ("B02-02", "lost"), ("B02-03", None), ("B01-01", None)):
        assert main(["campaign", "explain", name]) == 0
        second = capsys.readouterr().out.splitlines()[1]
        expected = f"{status}: what follows is predicted as if it could be measured"
        assert (second == expected) == ("as if it could be measured" in second) == (status is not None)
        assert second.startswith("measured: ") == (name == "B01-01")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["campaign", "predict", "library.csv", "AB"], "library.csv is a file: give one file, or strings"),
        (["campaign", "predict", "AB", "--column", "x"], "--column goes with a file"),
        (["campaign", "rank", "--all"], "--all goes with --out FILE"),
        (["campaign", "rank", "--by", "size"], "by is 'size'; choose mean, improvement, acquisition"),
        (["campaign", "explain", "B09-01"], "there is no suggestion 'B09-01'"),
        (["predict", ".", "AB"], "is not the folder of a run: it has no campaign.seqopt"),
        (["predict", "nowhere", "AB"], "neither the folder of a run nowhere nor a campaign nowhere.seqopt"),
        (["campaign", "record", "B02-01", "--failed", "no"], "\n  'no' is not a reason for a failure: say what"),
        (["campaign", "correct", "B01-01", "--failed", "no"], "nothing was changed: 'no' is not a reason"),
    ],
)
def test_what_cannot_be_done_is_said(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


@pytest.mark.slow
def test_a_run_predicts_what_its_optimiser_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = seqopt.maximize(
        lambda strings: [10.0 ** string.count("AB") for string in strings],
        CandidateSet(POOL, kind="text"),
        surrogate="ngrams",
        transform="log10",
        initial=10,
        budget=2,
        batch_size=2,
        seed=1,
        run_folder=tmp_path / "run",
    )
    assert main(["predict", str(tmp_path / "run"), "ABABAB", "--out", str(tmp_path / "found.csv")]) == 0
    assert "×/÷" in capsys.readouterr().out
    with (tmp_path / "found.csv").open(newline="", encoding="utf-8-sig") as stream:
        (row,) = csv.DictReader(stream)
    assert float(row["predicted"]) == pytest.approx(result.optimizer.predictions(["ABABAB"]).central[0])
    table = result.evaluations.dropna(subset=["predicted"])
    assert len(table) == 2
    assert (table["predicted"] < table["predicted_mean"]).all()
    assert (table["predicted_low"] < table["predicted"]).all()


def test_contributions_under_a_learned_transform_are_in_the_units_of_the_values(tmp_path: Path) -> None:
    with Campaign.create(
        tmp_path / "a.seqopt", CandidateSet(POOL), objective="yield", batch_size=20, surrogate="one-hot", seed=1
    ) as campaign:
        for row in campaign.suggest():
            campaign.record(row.name, -float(10.0 ** (row.string.count("B") / 2)))
        found = campaign.explain("AAABBB")
        assert found.contributions is not None
        optimizer = campaign.optimizer()
        optimizer.predictions(["AAABBB"])
        assert optimizer.transform.current.name == "winsorised"  # type: ignore[attr-defined]
        rests = found.contributions
        assert rests.prediction == pytest.approx(found.prediction.predicted)
        # The string has a value of -31.6, far from what the model sees of it.
        assert -60 < rests.prediction < -15
        assert rests.method == "shares"
        assert abs(rests.rest) < 1e-6
        assert (rests.values[:3] > rests.values[3:]).all()
