"""``suggest`` with ``learn``: what is chosen, what is said of it, and where it is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from seqopt.campaign import Campaign, CampaignError

POOL = ["".join("AT"[(number >> bit) & 1] for bit in range(6)) for number in range(64)]


def score(string: str) -> float:
    return string.count("AT") + 0.5 * string.count("TT")


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    made = Campaign.create(tmp_path / "a.seqopt", POOL, objective="score", surrogate="ngrams", batch_size=3, seed=1)
    return made


def test_what_teaches_most_is_suggested_and_what_it_should_teach_is_said(campaign: Campaign) -> None:
    with pytest.raises(CampaignError, match="0 values recorded so far"):
        campaign.suggest(learn=True)
    first = campaign.suggest(4)
    for row in first:
        campaign.record(row.name, score(row.string))
    assert campaign.gain() is None
    batch = campaign.suggest(learn=True)
    assert [row.acquisition for row in batch] == ["sal"] * 3
    assert all(row.reason["kind"] == "learn" and row.mean is not None for row in batch)
    gain = campaign.gain()
    assert gain is not None
    assert 0 < gain.then < gain.now
    # Open ones are shown again, and the search goes on as ever.
    assert [row.name for row in campaign.suggest(learn=True)] == [row.name for row in batch]
    more = campaign.suggest(2, more=True)
    assert {row.acquisition for row in more} == {"gibbon"}
    with Campaign.open(campaign.store.path) as again:
        names = {row.name for row in again.store.open_suggestions()}
        assert names == {row.name for row in (*batch, *more)}
        assert len(again.suggest(1, more=True, learn=True)) == 1


def test_the_command_says_how_much_better_predictions_should_become(campaign: Campaign) -> None:
    from seqopt.cli.app import app

    first = campaign.suggest(4)
    for row in first:
        campaign.record(row.name, score(row.string))
    path = campaign.store.path
    campaign.close()
    said = CliRunner().invoke(app, ["campaign", "suggest", "--learn", "--campaign", str(path)])
    assert said.exit_code == 0, said.output
    text = " ".join(said.output.split())
    assert "once these 3 are measured, predictions of other strings should be off by" in text
    assert "learn: rank" in text


def test_several_ways_to_measure_are_refused(tmp_path: Path) -> None:
    from seqopt.data import Contexts
    from seqopt.strategies import MultiFidelity

    contexts = Contexts.of_levels("fidelity", {"docking": 0.01, "assay": 1.0}, target="assay")
    made = Campaign.create(tmp_path / "b.seqopt", POOL, objective="score", contexts=contexts, strategy=MultiFidelity())
    with pytest.raises(CampaignError, match="measured in one way, and this campaign has several"):
        made.suggest(learn=True)
