"""``seqopt search --reactions`` and ``seqopt campaign new --reactions``, as they are typed."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from seqopt.campaign import Campaign
from seqopt.cli import main
from seqopt.spaces import CombinatorialSpace

AMIDE = "[C:1](=[O:2])[OH].[N;H1,H2;!$(NC=O):3]>>[C:1](=[O:2])[N:3]"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    blocks = tmp_path / "blocks"
    blocks.mkdir()
    (blocks / "acids.csv").write_text(
        "id,smiles,price\nA1,CC(=O)O,5\nA2,OC(=O)c1ccccc1,7\nA3,OC(=O)C1CC1,9\nA4,CCO,1\nA5,OC(=O)CF,2\n"
    )
    (blocks / "amines.csv").write_text(
        "id,smiles,price\nB1,CN,1\nB2,CCN,2\nB3,C1CNCCO1,3\nB4,NCc1ccccc1,4\nB5,NCCF,5\n"
    )
    (tmp_path / "reactions.txt").write_text(f"{AMIDE} amide acids amines\n[C:1](=O>>[C:1] broken\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


SEARCH = ["search", "--reactions", "reactions.txt", "--reagents", "blocks", "-o", "molecular_weight"]


@pytest.mark.slow
def test_a_search_says_how_products_are_made_and_resumes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [*SEARCH, "--initial", "6", "--batch", "4", "--maximize", "--out", "run"]
    assert main([*arguments, "--budget", "4"]) == 0
    assert main([*arguments, "--budget", "8", "--resume"]) == 0
    said = capsys.readouterr().out
    assert "20 tuples of 10 building blocks" in said
    assert "by thompson" in said
    assert "A4 (blocks/acids.csv, line 5)" in " ".join(said.split())
    routes = pd.read_csv("run/routes.csv")
    assert len(routes) == 14
    assert routes["value"].is_monotonic_decreasing
    space = CombinatorialSpace("reactions.txt", "blocks")
    for row in routes.itertuples():
        route = space.route(row.smiles)
        assert (row.reaction, row.reagents, row.reagents_price) == (route.reaction, route.names, route.price)


@pytest.mark.slow
def test_filters_and_other_acquisition_functions_hold_for_products(folder: Path) -> None:
    arguments = ["--initial", "4", "--batch", "2", "--budget", "4", "--out", "run", "--property", "MW < 150"]
    assert main([*SEARCH, *arguments, "--acquisition", "gibbon"]) == 0
    assert (pd.read_csv("run/evaluations.csv")["value"] < 150).all()


@pytest.mark.parametrize(
    ("further", "message"),
    [
        (["library.csv"], "library.csv is a list of candidates"),
        (["--tokenizer", "smiles"], "--tokenizer goes with a file of candidates"),
        (["--reagents", "nowhere"], "nowhere"),
        (["--exclude", "@nowhere.txt"], "nowhere"),
    ],
)
def test_what_does_not_fit_is_refused(further: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SEARCH, *further]) != 0
    assert message in " ".join(capsys.readouterr().err.split())


def test_both_options_are_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", "--reactions", "reactions.txt", "-o", "qed"]) != 0
    assert "--reactions needs building blocks" in capsys.readouterr().err
    assert main(["search", "--reagents", "blocks", "-o", "qed"]) != 0
    assert "--reagents goes with --reactions FILE" in capsys.readouterr().err
    assert main(["search", "-o", "qed"]) != 0
    assert "say what to search" in capsys.readouterr().err


def test_a_campaign_keeps_its_reactions_and_tells_the_routes(folder: Path) -> None:
    new = ["campaign", "new", "mine", "--reactions", "reactions.txt", "--reagents", "blocks", "--batch", "5"]
    assert main([*new, "--objective-name", "pIC50", "--property", "MW < 200"]) == 0
    (folder / "blocks").rename(folder / "elsewhere")  # the file of the campaign holds what is needed
    assert main(["campaign", "suggest", "--out", "batch.csv"]) == 0
    batch = pd.read_csv("batch.csv", dtype=str)
    space = CombinatorialSpace("reactions.txt", "elsewhere")
    for row in batch.itertuples():
        route = space.route(row.string)
        assert (row.reaction, row.reagents) == (route.reaction, route.names)
        assert float(row.reagents_price) == route.price
    batch["pIC50"] = [str(5 + len(string) / 10) for string in batch["string"]]
    batch.to_csv("batch.csv", index=False)
    assert main(["campaign", "record", "batch.csv"]) == 0
    assert main(["campaign", "suggest", "--out", "second.csv"]) == 0
    second = pd.read_csv("second.csv", dtype=str)
    assert not set(second["string"]) & set(batch["string"])
    assert (second["acquisition"] == "thompson").all()
    with Campaign.open("mine.seqopt") as campaign:
        assert isinstance(campaign.space, CombinatorialSpace)
        assert campaign.space.size == 20


KNOWN = {"CNC(C)=O": "73,5", "CNC(=O)c1ccccc1": "135,25"}


def test_known_results_of_products_may_have_decimal_commas(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("known.csv").write_text("smiles;value\n" + "".join(f"{one};{value}\n" for one, value in KNOWN.items()))
    arguments = [*SEARCH, "--initial", "3", "--batch", "2", "--budget", "0", "--maximize"]
    # Of values with commas nothing is guessed.
    assert main([*arguments, "--known", "known.csv", "--out", "refused"]) != 0
    said = " ".join(capsys.readouterr().err.split())
    assert "known.csv, line 2, column 'value': '73,5' has a comma" in said
    assert "say so with --decimal-comma" in said
    assert main([*arguments, "--known", "known.csv", "--decimal-comma", "--out", "run"]) == 0
    found = pd.read_csv("run/evaluations.csv")
    assert found["value"].tolist()[:2] == [73.5, 135.25]
    assert found["string"].tolist()[:2] == list(KNOWN)
    assert len(found) == 3
    # Numbers with points are refused then, and so is the option where nothing is known.
    capsys.readouterr()
    Path("points.csv").write_text("smiles;value\nCNC(C)=O;73.5\n")
    assert main([*arguments, "--known", "points.csv", "--decimal-comma", "--out", "refused"]) != 0
    assert "has a point, but commas are decimal in this table" in " ".join(capsys.readouterr().err.split())
    assert main([*arguments, "--decimal-comma", "--out", "refused"]) != 0
    said = " ".join(capsys.readouterr().err.split())
    assert "--decimal-comma goes with a file of candidates, or with --known FILE: leave it out" in said
    assert not Path("refused").exists()
