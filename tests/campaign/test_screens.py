"""Cheap scores of a whole library, kept as one column."""

from pathlib import Path

import numpy as np
import pytest

from seqopt.campaign import Campaign, CampaignError
from seqopt.campaign.screens import known_columns
from seqopt.data import Contexts
from seqopt.errors import InputError
from seqopt.strategies import MultiFidelity
from seqopt.strategies.screened import KnownColumn, ScreenedFidelity

POOL = [a + b + c + d for a in "ACDE" for b in "ACDE" for c in "AC" for d in "AC"]
CONTEXTS = Contexts.of_levels("fidelity", {"docking": 0.01, "assay": 1.0}, target="assay")
DOCKING = (("fidelity", "docking"),)


def score(string: str) -> float:
    return -3.0 - 2.0 * string.count("C") + string.count("E")


def activity(string: str) -> float:
    return 5.0 - 0.5 * score(string) + 0.1 * string.count("D")


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    path = tmp_path / "pool.csv"
    path.write_text("sequence\n" + "\n".join(POOL) + "\n")
    return Campaign.create(
        tmp_path / "a.seqopt",
        path,
        kind="text",
        objective="activity",
        batch_size=4,
        strategy=MultiFidelity(),
        contexts=CONTEXTS,
    )


def screen(path: Path, strings: list[str], **changes: str) -> Path:
    rows = [f"{string},{changes.get(string, score(string))}" for string in strings]
    path.write_text("sequence,score\n" + "\n".join(rows) + "\n")
    return path


def take(campaign: Campaign, path: Path, **how: bool) -> str:
    return campaign.import_screen(path, {"fidelity": "docking"}, value_column="score", **how).describe()


def test_a_column_is_kept_known_to_the_model_and_taken_back(campaign: Campaign, tmp_path: Path) -> None:
    path = screen(tmp_path / "screen.csv", [*POOL[:-3], "WWWW"])
    assert take(campaign, path) == "62 values of docking, of 61 of 64 candidates"
    assert campaign.store.screened() == {DOCKING: 62}
    column = known_columns(campaign.store, campaign.space)[DOCKING]
    assert column.values == {string: score(string) for string in POOL[:-3]}
    # What is recorded by itself counts before it.
    campaign.record("AAAA", -9.0, context={"fidelity": "docking"})
    assert known_columns(campaign.store, campaign.space)[DOCKING].values["AAAA"] == -9.0
    costs = campaign.costs()
    assert costs is not None
    assert costs.spent == pytest.approx(0.01)
    assert campaign.store.check() == []
    campaign.undo()
    assert campaign.undo().describe().startswith("import")
    assert campaign.store.screened() == {}
    assert known_columns(campaign.store, campaign.space) == {}
    assert campaign.store.check() == []
    campaign.close()


def test_suggestions_follow_the_scores_and_are_the_same_from_the_file(campaign: Campaign, tmp_path: Path) -> None:
    take(campaign, screen(tmp_path / "screen.csv", POOL))
    with pytest.raises(CampaignError, match="imported column of scores, and is not suggested"):
        campaign.suggest(context={"fidelity": "docking"})
    first = campaign.suggest()
    # Spread over all scores, their ends among them.
    found = sorted(score(row.string) for row in first)
    assert (found[0], found[-1]) == (min(map(score, POOL)), max(map(score, POOL)))
    for row in first:
        campaign.record(row.name, activity(row.string))
    with Campaign.open(campaign.store.path) as again:
        second = campaign.suggest()
        assert again.suggest() == second
    assert {dict(row.context)["fidelity"] for row in second} == {"assay"}
    # The relation is learned from four values: the best are those of the best scores.
    best = max(second, key=lambda row: row.mean or -np.inf)
    assert activity(best.string) >= sorted(map(activity, POOL))[-8]
    assert campaign.store.check() == []
    campaign.close()


def test_a_model_that_has_seen_no_scores_yet_goes_on_with_them(campaign: Campaign, tmp_path: Path) -> None:
    for row in campaign.suggest():
        campaign.record(row.name, activity(row.string))
    for row in campaign.suggest(2):
        campaign.record(
            row.name, activity(row.string) if dict(row.context)["fidelity"] == "assay" else score(row.string)
        )
    take(campaign, screen(tmp_path / "screen.csv", POOL))
    with Campaign.open(campaign.store.path) as again:
        assert isinstance(again.session().optimizer.strategy.then, ScreenedFidelity)
        assert again.suggest() == campaign.suggest()
    campaign.undo()
    campaign.undo()
    assert not isinstance(campaign.session().optimizer.strategy.then, ScreenedFidelity)
    assert len(campaign.suggest()) == 4
    campaign.close()


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"ACAC": "high"}, "line 7, column 'score': 'high' is not a number"),
        ({"ACAC": "<-3"}, "line 7: 'ACAC' is a limit"),
        (dict.fromkeys(POOL, "1.5"), "all values of docking are equal"),
    ],
)
def test_what_is_wrong_with_a_screen_is_named_and_nothing_is_kept(
    campaign: Campaign, tmp_path: Path, changes: dict[str, str], wanted: str
) -> None:
    state = campaign.store.state
    with pytest.raises(CampaignError, match=wanted):
        take(campaign, screen(tmp_path / "screen.csv", POOL, **changes))
    assert campaign.store.state == state
    campaign.close()


def test_values_that_disagree_or_come_twice_are_refused(campaign: Campaign, tmp_path: Path) -> None:
    path = screen(tmp_path / "screen.csv", POOL)
    path.write_text(path.read_text() + "AAAA,7.5\n")
    with pytest.raises(CampaignError, match=r"line 66: 'AAAA' has another value, -3.0, in line 2"):
        take(campaign, path)
    assert take(campaign, path, replicates=True).startswith("64 values")
    assert known_columns(campaign.store, campaign.space)[DOCKING].values["AAAA"] == pytest.approx((7.5 - 3.0) / 2)
    with pytest.raises(CampaignError, match="1 strings have a value of docking already, by command 2: undo that first"):
        take(campaign, screen(tmp_path / "more.csv", ["AAAA", "WWWW"], WWWW="1"))
    with pytest.raises(InputError, match="assay is the target"):
        campaign.import_screen(path, {"fidelity": "assay"}, value_column="score")
    campaign.close()


def test_the_mean_stands_for_a_score_that_is_not_there() -> None:
    column = KnownColumn("docking", {"a": 1.0, "b": 3.0})
    assert column.standardised(["a", "b", "c"]).tolist() == [-1.0, 1.0, 0.0]
    with pytest.raises(InputError, match="all values of docking are equal"):
        KnownColumn("docking", {"a": 1.0, "b": 1.0})
