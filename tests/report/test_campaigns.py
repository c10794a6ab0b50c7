"""The page of a campaign, in any state of it."""

from __future__ import annotations

import csv
import math
import re
from pathlib import Path

import pandas as pd
import pytest

from seqopt.campaign import Campaign
from seqopt.cli import main
from seqopt.report import write_report
from seqopt.report.campaigns import read_campaign
from seqopt.report.cards import best_cards
from seqopt.report.drawing import Reference
from seqopt.report.results import Run, ranked, tidy_evaluations
from seqopt.report.sections import batches_of, headline
from seqopt.report.string_table import string_table
from seqopt.report.view import view_of
from seqopt.spaces import ParentSpace, StringSpace
from seqopt.strings.mutations import mutation_name

SMILES = ["C" * n + end for n in range(1, 9) for end in ("O", "N", "C(=O)O", "F", "Cl")]


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    path = tmp_path / "library.csv"
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([["smiles"], *([text] for text in SMILES)])
    return Campaign.create(tmp_path / "mine.seqopt", path, objective="activity", batch_size=5, unit="nM", seed=3)


def measure(campaign: Campaign) -> None:
    for suggestion in campaign.suggest():
        campaign.record(suggestion.name, 1.0 + suggestion.string.count("C"))


def test_a_campaign_is_read_as_a_search(campaign: Campaign, tmp_path: Path) -> None:
    measure(campaign)
    measure(campaign)
    first = campaign.store.suggestions()[0]
    campaign.record(first.name, 9.0, replicate=True)
    batch = campaign.suggest()
    campaign.record(batch[0].name, failure="did not dissolve")
    campaign.withdraw([batch[1].name], "too expensive")
    table = read_campaign(tmp_path / "mine.seqopt").evaluations
    assert table["status"].tolist() == ["ok"] * 10 + ["failed"] + ["withdrawn"] + ["pending"] * 3
    assert table["batch"].tolist() == [0.0] * 5 + [2.0] * 5 + [3.0] * 5
    assert table["name"].tolist()[:2] == ["B01-01", "B01-02"]
    assert table["value"].iloc[0] == pytest.approx((1.0 + first.string.count("C") + 9.0) / 2)
    assert table["measurements"].iloc[0] == 2
    assert set(table["why"].iloc[:5]) == {"random"}
    assert set(table["why"].iloc[5:]) <= {"exploit", "explore"}
    assert (table["error"].iloc[10], table["nearest"].iloc[12] in SMILES) == ("did not dissolve", True)


def test_batches_of_a_campaign_are_those_of_their_names_and_the_best_is_that_so_far(tmp_path: Path) -> None:
    names = ["B01-01", "B01-02", "B02-01", "B02-03", "B03-01", "", "B02-02"]
    status = ["ok", "ok", "ok", "failed", "ok", "ok", "withdrawn"]
    values = [3.0, 5.0, 4.0, math.nan, 9.0, 7.0, math.nan]
    rows = pd.DataFrame({"string": list("abcdefg"), "name": names, "status": status, "value": values})
    # B02-01 was chosen without a model, as random strings of any batch are; what was withdrawn comes last.
    table = tidy_evaluations(rows.assign(batch=[0, 0, 0, 2, 3, 0, 2]))
    found = batches_of(Run(tmp_path, table, settings={"direction": "maximize"}, campaign="mine"), str)
    assert [(one["name"], one["evaluated"], one["failed"], one["own"], one["best"]) for one in found] == [
        ("imported or recorded by hand", 1, 0, "7.0", "7.0"),
        ("1 (chosen without a model)", 2, 0, "5.0", "7.0"),
        ("2", 2, 1, "4.0", "7.0"),
        ("3", 1, 0, "9.0", "9.0"),
    ]
    assert [one["better"] for one in found] == [False, False, False, True]


def test_the_best_so_far_is_that_of_all_rows_of_a_batch_in_any_order(tmp_path: Path) -> None:
    rows = pd.DataFrame(
        {
            "string": list("abcde"),
            "name": ["B01-01", "B01-02", "B02-01", "B02-02", "B02-03"],
            "status": ["ok"] * 5,
            "value": [3.0, 5.0, 4.0, 2.0, 6.0],
        }
    )
    table = tidy_evaluations(rows.assign(batch=[1, 1, 2, 2, 2]))
    for direction, best in {"minimize": ["3.0", "2.0"], "maximize": ["5.0", "6.0"]}.items():
        found = batches_of(Run(tmp_path, table, settings={"direction": direction}, campaign="mine"), str)
        assert [one["best"] for one in found] == best
        assert [one["own"] for one in found] == best
        assert [one["better"] for one in found] == [True, True]


def test_batches_keep_the_signs_of_limits(tmp_path: Path) -> None:
    rows = pd.DataFrame(
        {
            "string": list("abcdefg"),
            "name": ["B01-01", "B01-02", "B02-01", "B02-02", "B03-01", "B04-01", "B04-02"],
            "status": ["ok"] * 7,
            "value": [9.0, 5.0, 7.0, 7.0, 8.0, 9.0, 9.0],
            "censored": ["<", "", "", ">", "<", "", ">"],
        }
    )
    table = tidy_evaluations(rows.assign(batch=[1, 1, 2, 2, 3, 4, 4]))
    found = batches_of(Run(tmp_path, table, settings={"direction": "maximize"}, campaign="mine"), str)
    assert [(one["own"], one["best"]) for one in found] == [
        ("5.0", "5.0"),
        (">7.0", ">7.0"),
        ("<8.0", ">7.0"),
        (">9.0", ">9.0"),
    ]
    assert [one["better"] for one in found] == [True, True, False, True]
    found = batches_of(Run(tmp_path, table, settings={"direction": "minimize"}, campaign="mine"), str)
    assert [(one["own"], one["best"]) for one in found][:3] == [("5.0", "5.0"), ("7.0", "5.0"), ("<8.0", "5.0")]


def test_the_top_of_a_page_keeps_the_signs_of_limits(tmp_path: Path) -> None:
    def told(values: list[float], limits: list[str]) -> str:
        rows = pd.DataFrame({"string": list("abc"), "value": values, "censored": limits, "batch": [0, 0, 1]})
        run = Run(tmp_path, tidy_evaluations(rows), settings={"direction": "maximize"}, campaign="mine")
        found = headline(view_of(run, "y"), ranked(run.evaluations, "maximize"))
        return f"{found['best']}: {found['gain']} {found['initial_best']}"

    assert told([7.5, 5.0, 6.0], [">", "", ""]) == ">7.50: no better than >7.50"
    assert told([7.5, 5.0, 7.5], ["", "", ">"]) == ">7.50: higher than 7.50"
    assert told([7.0, 5.0, 7.5], ["", "", ">"]) == ">7.50: more than 0.50 higher than 7.00"
    assert told([7.0, 9.0, 7.5], [">", "<", ""]) == "7.50: 0.50 higher than >7.00"


def test_the_page_of_a_campaign(campaign: Campaign, tmp_path: Path) -> None:
    for _ in range(2):
        measure(campaign)
    waiting = campaign.suggest()
    campaign.close()
    before = (tmp_path / "mine.seqopt").read_bytes()
    path = write_report(tmp_path / "mine.seqopt")
    assert path == tmp_path / "mine.html"
    assert (tmp_path / "mine.seqopt").read_bytes() == before
    text = path.read_text(encoding="utf-8")
    assert "To be measured" in text
    assert "parameters of the last suggestions" in text
    assert "is missing" not in text
    for suggestion in waiting:
        assert suggestion.name in text
    assert not (tmp_path / "search.png").exists()


def test_imported_values_are_not_called_initial(tmp_path: Path) -> None:
    path = tmp_path / "old.seqopt"
    with Campaign.create(path, StringSpace("AB", 8), objective="y", batch_size=2) as campaign:
        for index in range(4):
            campaign.record("A" * (8 - index) + "B" * index, float(index))
        for suggestion in campaign.suggest():
            campaign.record(suggestion.name, 0.5)
    text = " ".join(re.sub("<[^>]*>", " ", write_report(path).read_text(encoding="utf-8")).split())
    assert "4 imported or by hand, then 1 batch" in text
    assert "the best of those that no model chose" in text
    assert "imported or recorded by hand, evaluation 4" in text
    assert "best at random" not in text


def test_a_campaign_without_measurements_has_a_page(campaign: Campaign, tmp_path: Path) -> None:
    text = write_report(tmp_path / "mine.seqopt", out=tmp_path / "a.html").read_text(encoding="utf-8")
    assert "Nothing has been measured yet." in text
    campaign.suggest()
    text = write_report(tmp_path / "mine.seqopt", out=tmp_path / "a.html").read_text(encoding="utf-8")
    assert "B01-05" in text


def test_the_command_writes_pages_of_runs_and_campaigns(
    campaign: Campaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["report", "mine", "--out", "page.html"]) == 0
    assert "page.html" in capsys.readouterr().out
    assert (tmp_path / "page.html").exists()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "summary.json").write_text('{"settings": {"objective": "qed"}}')
    assert main(["report", "run"]) == 0
    text = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "evaluations.csv is missing" in text
    assert main(["report", "nothing"]) == 2
    assert "evaluations.csv is missing" in capsys.readouterr().err
    (tmp_path / "text.seqopt").write_text("no database")
    assert main(["report", "text"]) == 2


def test_variants_of_a_parent_are_named_on_the_page(tmp_path: Path) -> None:
    path = tmp_path / "variants.seqopt"
    space = ParentSpace("MKVLSTPE", 2, positions="2-5")
    with Campaign.create(path, space, objective="y", batch_size=3) as campaign:
        campaign.record("wt", 1.0)
        campaign.record("K2R/V3A", 3.0)
        waiting = campaign.suggest()
    view = view_of(read_campaign(path), "y")
    assert view.reference == Reference("MKVLSTPE", "the parent")
    table = string_table(view)
    place = [column.title for column in table.columns].index("Mutations")
    shown = [row.cells[place][0] for row in table.rows]
    assert set(shown) == {"wt", "K2R/V3A", *(mutation_name("MKVLSTPE", one.string) for one in waiting)}
    assert [card.mutations for card in best_cards(view, 2)] == ["K2R/V3A", "wt"]
