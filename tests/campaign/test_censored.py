"""Limits such as <0.1 in campaigns: tables, single results, the model, reports and exports."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest

from seqopt.campaign import Campaign, CampaignError, Measurement, Observed
from seqopt.campaign.cells import read_value
from seqopt.campaign.known import read_known
from seqopt.campaign.rows import Settings
from seqopt.campaign.summary import render, summarize
from seqopt.campaign.tables import measurements_table
from seqopt.datasets.sheets import write_sheet
from seqopt.errors import InputError
from seqopt.models import StringGP
from seqopt.report.campaigns import read_campaign
from seqopt.report.results import best_so_far, predictions, ranked
from seqopt.spaces import StringSpace

STRINGS = ["00000000", "00000111", "00011111", "01111111", "11111111", "10101010"]


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    return Campaign.create(
        tmp_path / "a.seqopt", StringSpace("01", 8), objective="IC50", batch_size=2, surrogate="ssk", unit="nM"
    )


def table(tmp_path: Path, *rows: str, header: str = "string,IC50") -> Path:
    path = tmp_path / "results.csv"
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "comma", "found"),
    [
        ("<0.1", False, (0.1, "<")),
        ("> 100", False, (100.0, ">")),
        ("≤5", False, (5.0, "<")),
        ("≥1e3", False, (1000.0, ">")),
        ("<=-2", False, (-2.0, "<")),
        (">= 7", False, (7.0, ">")),
        ("< 0,1", True, (0.1, "<")),
        ("6,5", True, (6.5, None)),
    ],
)
def test_cells_hold_limits(text: str, comma: bool, found: tuple[float, str | None]) -> None:
    assert read_value(text, comma) == (*found, "")


@pytest.mark.parametrize("text", ["<", "<>", "<<5", "< 0,1", "~5", "≈5", ">1e999", "<5 nM", "0.1>"])
def test_cells_that_hold_no_limit_say_why(text: str) -> None:
    assert read_value(text)[2]


def test_tables_and_single_results_record_limits(campaign: Campaign, tmp_path: Path) -> None:
    taken, results = campaign.record_file(
        table(tmp_path, f"{STRINGS[0]},<0.1", f"{STRINGS[1]},5", f"{STRINGS[2]},≥ 100"), history=True
    )
    assert results.problems == ()
    assert [row.told for row in taken] == ["<0.1", "5", ">100"]
    assert campaign.record(STRINGS[3], "<= 7")[0].told == "<7"
    assert [row.told for row in campaign.store.measurements()] == ["<0.1", "5", ">100", "<7"]
    with pytest.raises(InputError, match="the value '<LOQ' is a limit without a number"):
        campaign.record(STRINGS[4], "<LOQ")
    with pytest.raises(InputError, match=r"the value is '6\.5'; expected a number"):
        campaign.record(STRINGS[4], "6.5")
    with pytest.raises(CampaignError, match="is a standard error, but the value is a limit"):
        campaign.record(STRINGS[4], "<6.5", standard_error=0.1)
    with pytest.raises(CampaignError, match=r"has a result already: '?<0\.1"):
        campaign.record(STRINGS[0], 5.0)
    assert len(campaign.store.measurements()) == 4


def test_the_model_of_a_campaign_learns_that_they_are_limits(campaign: Campaign, tmp_path: Path) -> None:
    rows = [f"{string},{'>3' if string.count('1') > 3 else string.count('1')}" for string in STRINGS]
    campaign.record_file(table(tmp_path, *rows), history=True)
    optimizer = campaign.session().optimizer
    assert [row.censored for row in optimizer.observations.rows] == [None, None, ">", ">", ">", ">"]
    assert isinstance(optimizer.surrogate, StringGP)
    assert optimizer.predict(["11111111"])[0][0] > 3.3
    campaign.suggest()
    assert campaign.status().best is not None
    found = Campaign.open(campaign.store.path).session().optimizer
    assert found.to_pandas().equals(campaign.session().optimizer.to_pandas())


def test_log10_needs_positive_limits_and_directions_keep_their_meaning(tmp_path: Path) -> None:
    campaign = Campaign.create(
        tmp_path / "b.seqopt", StringSpace("01", 8), objective="IC50", direction="minimize", transform="log10"
    )
    with pytest.raises(CampaignError, match="has no logarithm"):
        campaign.record(STRINGS[0], "<0")
    campaign.record(STRINGS[0], "<0.1")
    campaign.record(STRINGS[1], ">1000")
    measured = campaign.session().optimizer.state().data.measured()
    assert measured.targets == pytest.approx([1.0, -3.0])
    assert measured.censored is not None
    assert measured.censored.tolist() == [1, -1]


def observed(*rows: str | float) -> Observed:
    read = [(row, None) if isinstance(row, float) else read_value(row)[:2] for row in rows]
    return Observed("a", "a", tuple(Measurement("a", "a", value, censored=side) for value, side in read))


@pytest.mark.parametrize(
    ("rows", "mean", "side"),
    [
        (("<0.1", "<0.3"), 0.2, "<"),
        (("<0.1", 0.3), 0.2, "<"),
        ((">100", 120.0), 110.0, ">"),
        ((">100", "<0.1", 5.0), 5.0, None),
        ((1.0, 3.0), 2.0, None),
    ],
)
def test_means_of_replicates_are_limits_where_all_limits_lie_on_one_side(
    rows: tuple[str | float, ...], mean: float, side: str | None
) -> None:
    found = observed(*rows)
    assert found.mean() == pytest.approx(mean)
    assert found.censored == side


def test_the_best_is_what_is_certain(campaign: Campaign) -> None:
    campaign.record(STRINGS[0], "<500")
    best = campaign.status().best
    assert best is not None
    assert (best.string, best.censored) == (STRINGS[0], "<")
    campaign.record(STRINGS[1], 100.0)
    campaign.record(STRINGS[2], ">100")
    best = campaign.status().best
    assert best is not None
    assert (best.string, best.censored, best.mean()) == (STRINGS[2], ">", 100.0)
    text = render(summarize(campaign))
    lines = [line.split() for line in text.splitlines() if "not suggested" in line]
    assert [line[4] for line in lines] == [">100", "100", "<500"]


def test_results_of_a_batch_are_held_against_intervals_only_where_limits_decide(campaign: Campaign) -> None:
    for place, string in enumerate(STRINGS[:4]):
        campaign.record(string, float(place))
    first, second = campaign.suggest()
    assert first.high is not None
    campaign.record(first.name, f">{first.high + 1}")
    campaign.record(second.name, "<1e6")
    section = next(part for part in summarize(campaign) if part.title == "Last batch with results")
    assert [row[-1] for row in section.rows] == ["above", ""]
    assert section.rows[1][-2] == "<1e+06"
    assert "without a value so far" in section.lines[0]


def test_exports_bring_limits_back(campaign: Campaign, tmp_path: Path) -> None:
    campaign.record(STRINGS[0], "<0.1")
    campaign.record(STRINGS[1], f">{100 / 3!r}")
    campaign.record(STRINGS[2], 7.0)
    header, rows = measurements_table(campaign.store)
    export = tmp_path / "export.csv"
    write_sheet(export, header, rows)
    campaign.export(tmp_path / "export.parquet")
    stored = pd.read_parquet(tmp_path / "export.parquet")
    assert stored["IC50"].tolist() == [0.1, 100 / 3, 7.0]
    assert stored["censored"].fillna("").tolist() == ["<", ">", ""]
    other = Campaign.create(tmp_path / "c.seqopt", StringSpace("01", 8), objective="IC50")
    taken, _ = other.record_file(export, history=True)
    first = [(row.string, row.value, row.censored) for row in campaign.store.measurements()]
    assert [(row.string, row.value, row.censored) for row in taken] == first


def test_an_undone_limit_is_forgotten(campaign: Campaign) -> None:
    campaign.record(STRINGS[0], "<0.1")
    campaign.session()
    campaign.undo()
    campaign.record(STRINGS[0], 5.0)
    assert [row.told for row in campaign.session().optimizer.observations.rows] == ["5"]


def test_known_results_hold_limits() -> None:
    rows = read_known({"01": "<0.5", "11": [1.0, ">2"]}, Settings("value"), str)
    assert [row.told for row in rows] == ["<0.5", "1", ">2"]


def test_reports_rank_and_show_limits(campaign: Campaign, tmp_path: Path) -> None:
    values = ["<9", "1", "2", ">2", "0.5", "<0.25"]
    campaign.record_file(
        table(tmp_path, *(f"{string},{value}" for string, value in zip(STRINGS, values, strict=True))), history=True
    )
    run = read_campaign(campaign.store.path)
    assert run.evaluations["censored"].tolist() == ["<", "", "", ">", "", "<"]
    assert [row.censored + f"{row.value:g}" for row in ranked(run.evaluations, "maximize").itertuples()] == [
        *(">2", "2", "1", "0.5", "<9", "<0.25")
    ]
    best = best_so_far(run.evaluations, "maximize").tolist()
    assert math.isnan(best[0])
    assert best[1:] == [1.0, 2.0, 2.0, 2.0, 2.0]
    told = run.evaluations.assign(predicted_mean=1.0, predicted_std=1.0)
    assert predictions(told)["value"].tolist() == [1.0, 2.0, 0.5]


def test_a_surrogate_that_knows_no_limits_takes_them_as_values(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StringGP, "takes_censored", False)
    campaign = Campaign.create(tmp_path / "d.seqopt", StringSpace("01", 8), objective="IC50", surrogate="ssk")
    campaign.record(STRINGS[0], "<0.1")
    assert campaign.session().optimizer.best.told == "0.1"
    assert "StringGP cannot learn from censored values: their limits count as values" in caplog.text
    assert campaign.store.measurements()[0].told == "<0.1"


def test_a_limit_is_corrected_to_a_value_and_back(campaign: Campaign) -> None:
    campaign.record(STRINGS[0], "<0.1")
    campaign.record(STRINGS[1], 5.0, standard_error=0.5)
    with pytest.raises(CampaignError, match=r"is <0\.1 already"):
        campaign.correct(STRINGS[0], "< 0.1")
    assert campaign.correct(STRINGS[0], 0.1).told == "0.1"
    assert campaign.correct(STRINGS[1], ">5").standard_error is None
    with pytest.raises(CampaignError, match="is a standard error, but the value is a limit"):
        campaign.correct(STRINGS[1], ">6", standard_error=0.5)
    assert [row.told for row in campaign.session().optimizer.observations.rows] == ["0.1", ">5"]
    assert [command.arguments["now"] for command in campaign.history()[-2:]] == ["0.1", ">5"]
    campaign.discard(STRINGS[1], was=">5")
    assert [row.told for row in campaign.store.measurements()] == ["0.1"]


def test_a_change_to_log10_names_limits_without_a_logarithm(campaign: Campaign) -> None:
    campaign.record(STRINGS[0], "<0")
    with pytest.raises(CampaignError, match="values have no logarithm: <0 of 00000000"):
        campaign.change(transform="log10")


def test_what_is_predicted_and_suggested_says_that_a_limit_is_one(campaign: Campaign, tmp_path: Path) -> None:
    results = {"00000000": ["<0.1"], "00000111": [5.0, "<3", ">80"], "00011111": [7.3], "11111111": [">40"]}
    for string, values in results.items():
        for number, value in enumerate(values):
            campaign.record(string, value, replicate=bool(number))
    found = campaign.predict(list(results))
    measured = {one.string: one for one in campaign.store.observations()}
    for row in found:
        # None is its own nearest one, and of that the status and the page say the same.
        assert row.nearest != row.string
        nearest = measured[row.nearest]
        assert (row.nearest_value, row.nearest_censored) == (nearest.mean(), nearest.censored)
        assert (row.measured, row.measured_censored) == (measured[row.string].mean(), measured[row.string].censored)
    assert [(row.measured, row.measured_censored) for row in found] == [(0.1, "<"), (5.0, None), (7.3, None), (40, ">")]
    assert found.to_pandas()["measured_censored"].fillna("").tolist() == ["<", "", "", ">"]
    assert "measured_censored" not in campaign.predict(["00011111"]).to_pandas()
    suggestions = campaign.suggest()
    wanted = {
        string: f"{one.censored}{one.mean():g}" if one.censored else repr(one.mean())
        for string, one in measured.items()
    }
    campaign.write_batch(tmp_path / "batch.csv")
    for table in (suggestions.to_pandas(), pd.read_csv(tmp_path / "batch.csv", dtype=str)):
        told = zip(table["nearest_measured"].astype(str).str.zfill(8), table["nearest_value"], strict=True)
        assert all(str(value) == wanted[string] for string, value in told)


def test_a_limit_far_outside_all_values_is_refused_as_it_was_written(campaign: Campaign) -> None:
    for string, value in zip(STRINGS, [5.0, 6.1, 7.2, 6.6], strict=False):
        campaign.record(string, value)
    with pytest.raises(CampaignError, match=r"'>1000000000\.0' is 2e"):
        campaign.record("10101010", ">1e9")
    with pytest.raises(CampaignError, match=r"'>1000000000\.0' is 2e"):
        campaign.correct("00000000", ">1e9")
    assert len(campaign.store.measurements()) == 4
