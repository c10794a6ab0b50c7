"""What the page of a campaign says of its ways to measure."""

from pathlib import Path

import pytest

from seqopt.campaign import Campaign
from seqopt.data import Contexts
from seqopt.report import write_report
from seqopt.report.campaigns import read_campaign
from seqopt.report.ways import ways_of
from seqopt.spaces import CandidateSet
from seqopt.strategies import MultiFidelity

POOL = [a + b + c for a in "ACDE" for b in "ACDE" for c in "AC"]
CONTEXTS = Contexts.of_levels("fidelity", {"docking": 0.25, "assay": 1.0}, target="assay")


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    return Campaign.create(
        tmp_path / "a.seqopt",
        CandidateSet(POOL, kind="text"),
        objective="activity",
        batch_size=8,
        strategy=MultiFidelity(),
        contexts=CONTEXTS,
        initial_contexts="all",
    )


@pytest.mark.slow  # a model of two ways is fitted
def test_costs_counts_and_the_correlation_are_those_of_the_campaign(campaign: Campaign, tmp_path: Path) -> None:
    with campaign:
        first = campaign.suggest()
        for number, one in enumerate(first):
            docked = dict(one.context)["fidelity"] == "docking"
            value = one.string.count("C") + 0.1 * one.string.count("D")
            if number == 0:
                campaign.record(one.name, failure="no crystal")
            else:
                campaign.record(one.name, -value if docked else value, cost=0.5 if number == 1 else None)
        campaign.record("EEC", 3.0, context={"fidelity": "assay"})
        campaign.discard("EEC", reason="mixed up")
        campaign.suggest(2)
        costs, learned = campaign.costs(), campaign.status().model["learned"]
    assert costs is not None
    run = read_campaign(tmp_path / "a.seqopt")
    found = ways_of(run, "activity")
    assert found is not None
    rows = {row.name: row for row in found.rows}
    # What failed, and what was discarded, was paid for; an actual cost counts instead of the stated one.
    assert found.total == pytest.approx(costs.spent)
    assert {name: row.cost for name, row in rows.items()} == pytest.approx({one.way: one.spent for one in costs.ways})
    assert sum(row.failed for row in rows.values()) == 1
    assert sum(row.measured for row in rows.values()) == len(first) - 1
    assert rows["docking"].both == 3
    assert rows["docking"].correlation.startswith(f"{learned[0]['correlation']:.2f}")
    assert "<svg" in found.curve
    page = write_report(tmp_path / "a.seqopt").read_text(encoding="utf-8")
    assert "What each fidelity contributed" in page
    assert "No model could be fitted" not in page


def test_what_was_imported_cost_nothing(campaign: Campaign, tmp_path: Path) -> None:
    table = tmp_path / "older.csv"
    table.write_text("string,activity\nAAA,1.0\nACA,2.0\n")
    with campaign:
        campaign.record_file(table, history=True)
    found = ways_of(read_campaign(tmp_path / "a.seqopt"), "activity")
    assert found is not None
    assert (found.total, found.rows[-1].measured + found.rows[0].measured) == (0.0, 2)


@pytest.mark.slow  # a model of two ways is fitted
def test_the_first_targets_that_a_model_chose_are_not_called_random(tmp_path: Path) -> None:
    path, contexts = tmp_path / "a.seqopt", Contexts.of_levels("fidelity", {"docking": 0.01, "assay": 1.0}, "assay")
    with Campaign.create(
        path,
        CandidateSet(POOL, kind="text"),
        objective="activity",
        batch_size=6,
        strategy=MultiFidelity(),
        contexts=contexts,
    ) as campaign:
        for _ in range(2):
            for one in campaign.suggest():
                docked = dict(one.context)["fidelity"] == "docking"
                campaign.record(one.name, (-3.0 if docked else 1.0) * one.string.count("C") + 0.1 * len(one.name))
        second = [row for row in campaign.store.suggestions() if row.context == contexts.target]
        assert {row.mean for row in second} == {None}
        assert all(row.score is not None for row in second)
    run = read_campaign(path)
    assert set(run.evaluations["batch"]) == {2}
    page = write_report(path).read_text(encoding="utf-8")
    assert "none without a model" in page
    assert "at random," not in page


def test_controls_and_random_strings_are_counted_apart(tmp_path: Path) -> None:
    path = tmp_path / "a.seqopt"
    with Campaign.create(
        path, CandidateSet(POOL, kind="text"), objective="y", batch_size=4, plates=12, controls=["AAC", "EEC"]
    ) as campaign:
        for one in campaign.suggest():
            campaign.record(one.name, float(one.string.count("C")))
        campaign.record("ECC", 2.5, context={"plate": "P1"})
        assert "4 at random, 2 as controls, 1 imported or by hand" in write_report(path).read_text(encoding="utf-8")
