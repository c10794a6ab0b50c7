"""``seqopt campaign record --lost``: a failure that is not the string's fault."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from seqopt.campaign import Campaign
from seqopt.cli import main


def run(*words: str, fails: bool = False) -> None:
    assert bool(main(["campaign", *words])) == fails


@pytest.fixture(autouse=True)
def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run("new", "tags", "--alphabet", "AB", "--length", "6", "--objective-name", "y", "--surrogate", "one-hot")
    run("suggest", "-n", "4", "--out", "batch.csv")


def strings(file: str) -> list[str]:
    with Path(file).open(newline="") as stream:
        return [row["string"] for row in csv.DictReader(stream)]


def test_what_was_lost_is_asked_for_again_first_and_teaches_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    first, second, *_ = strings("batch.csv")
    capsys.readouterr()
    run("record", "B01-01", "--lost", "the [robot] dropped it")
    assert "recorded B01-01: lost: it will be suggested again" in capsys.readouterr().out
    run("record", "B01-02", "--failed", "did not dissolve")
    run("record", "B01-03", "1.5")
    run("record", "B01-04", "2.5")
    capsys.readouterr()
    run("status", "--json")
    counts = json.loads(capsys.readouterr().out)["counts"]
    assert (counts["open"], counts["values"], counts["failures"], counts["lost"]) == (0, 2, 1, 1)
    run("status")
    assert "2 values of 2 strings, 1 failure, 1 loss;" in " ".join(capsys.readouterr().out.split())
    run("history")
    assert "the [robot] dropped it" in capsys.readouterr().out
    run("suggest", "-n", "3", "--out", "second.csv")
    again = strings("second.csv")
    assert again[0] == first
    assert second not in again
    with Campaign.open("tags.seqopt") as campaign:
        data = campaign.session().optimizer.state().data
        assert first not in [query.key for query in data.queries]
        assert [query.key for query, failed in zip(data.queries, data.failed, strict=True) if failed] == [second]
    run("record", "B02-01", "3.5")  # its result counts like any other
    capsys.readouterr()
    run("status", "--json")
    assert json.loads(capsys.readouterr().out)["best"]["value"] == 3.5


def test_a_loss_is_taken_back_like_any_record(capsys: pytest.CaptureFixture[str]) -> None:
    run("record", "B01-01", "--lost", "a power cut")
    run("undo")
    run("record", "B01-01", "7")
    capsys.readouterr()
    run("status", "--json")
    assert json.loads(capsys.readouterr().out)["best"]["value"] == 7


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["B01-01", "--lost", "dropped", "--failed", "insoluble"], "a result failed or was lost, not both"),
        (["B01-01", "--lost", " "], "a loss needs a reason"),
        (["B01-01", "1.5", "--lost", "dropped"], "needs a value or a reason for its failure, and not both"),
        (["B01-01", "--lost", "dropped", "--standard-error", "0.1"], "--standard-error goes with a value"),
        (["B01-01", "--lost", "dropped", "--unit", "nM"], "--unit goes with a value or a table"),
        (["nobody", "--lost", "dropped"], "nothing was recorded"),
    ],
)
def test_what_a_loss_does_not_go_with_is_refused(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run("record", *words, fails=True)
    assert message in " ".join(capsys.readouterr().err.split())
    capsys.readouterr()
    run("status", "--json")
    counts = json.loads(capsys.readouterr().out)["counts"]
    assert (counts["open"], counts["values"], counts["failures"]) == (4, 0, 0)


def test_a_table_says_it_with_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    one, two, three, four = strings("batch.csv")
    Path("done.csv").write_text(f"string,y,failure\n{one},1.5,\n{two},,Lost: a flood\n{three},,insoluble\n{four},2,\n")
    run("record", "done.csv")
    run("suggest", "-n", "2", "--out", "second.csv")
    assert strings("second.csv")[0] == two
    assert three not in strings("second.csv")
    capsys.readouterr()
    run("record", "B02-01", "3")
    assert "recorded B02-01: 3" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("command", [["status"], ["history"], ["suggest"], ["report"], ["filter"]])
def test_a_campaign_is_named_as_an_argument_or_by_the_option(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    first, *options = command
    run("new", "other", "--alphabet", "AB", "--length", "6", "--objective-name", "z", "--surrogate", "one-hot")
    run(first, "tags", *options)
    capsys.readouterr()
    run(first, "tags", "--campaign", "other", *options, fails=True)
    assert "two campaigns are named, tags and --campaign other" in " ".join(capsys.readouterr().err.split())


def test_a_mistyped_option_is_no_value_and_a_negative_number_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    run("record", "B01-01", "--failure", "did not dissolve", fails=True)
    assert "No such option: --failure. Did you mean --failed?" in " ".join(capsys.readouterr().err.split())
    run("record", "B01-01", "-6.1")
    run("correct", "B01-01", "-5.1", "--reason", "typo")
    run("suggest", "--learn")
    assert "--learn chose none of these" in " ".join(capsys.readouterr().out.split())


def test_what_failed_is_tried_again_without_new_ones(capsys: pytest.CaptureFixture[str]) -> None:
    run("record", "B01-01", "--failed", "insoluble")
    capsys.readouterr()
    run("suggest", "--retry-failed", "--more", fails=True)
    run("suggest", "--retry-failed", "-n", "2", fails=True)
    said = " ".join(capsys.readouterr().err.split())
    assert "--more goes with new suggestions" in said
    assert "-n goes with new suggestions" in said
    run("suggest", "--retry-failed")
    assert "suggested again: B02-01" in " ".join(capsys.readouterr().out.split())
    run("record", "NNNN", "--lost", "dropped", fails=True)
