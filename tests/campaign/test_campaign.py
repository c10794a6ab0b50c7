"""Campaigns: suggestions from a file, and what a laboratory does with them."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqopt.campaign import Campaign, CampaignError, ColumnCondition, StaleStateError
from seqopt.data import interval
from seqopt.data.transforms import Log10
from seqopt.errors import InputError
from seqopt.spaces import CodonSpace, GrammarSpace, LocalSpace, Space, StringSpace

SMILES = ["C" * n + end for n in range(1, 9) for end in ("O", "N", "C(=O)O", "F", "Cl")]


@pytest.fixture
def library(tmp_path: Path) -> Path:
    path = tmp_path / "library.csv"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["name", "smiles", "price"])
        writer.writerows([f"cpd-{number}", string, number] for number, string in enumerate(SMILES))
    return path


def worth(string: str) -> float:
    return string.count("C") - 0.5 * string.count("O")


@pytest.fixture
def campaign(tmp_path: Path, library: Path) -> Campaign:
    return Campaign.create(tmp_path / "a.seqopt", library, objective="activity", batch_size=5, unit="nM", seed=3)


def measured(campaign: Campaign, batches: int) -> None:
    for _ in range(batches):
        for suggestion in campaign.suggest():
            campaign.record(suggestion.name, worth(suggestion.string))


def test_suggestions_stay_until_results_arrive_and_more_are_others(campaign: Campaign) -> None:
    first = campaign.suggest()
    assert [row.name for row in first] == [f"B01-0{n}" for n in range(1, 6)]
    assert {row.reason["kind"] for row in first} == {"random"}
    assert campaign.suggest() == campaign.suggest(3) == first
    more = campaign.suggest(2, more=True)
    assert {row.key for row in more}.isdisjoint(row.key for row in first)
    assert campaign.suggest() == [*first, *more]
    campaign.record(first[0].name, 1.0)
    assert campaign.suggest() == [*first[1:], *more]


def test_a_model_chooses_explains_itself_and_finds_good_strings(campaign: Campaign) -> None:
    measured(campaign, 3)
    batch = campaign.suggest()
    known = {one.string for one in campaign.store.observations()}
    assert known.isdisjoint(row.string for row in batch)
    for row in batch:
        assert row.low < row.mean < row.high  # type: ignore[operator]
        assert row.reason["kind"] in ("exploit", "explore")
        assert row.reason["nearest"] in known
        assert 0 <= row.reason["similarity"] <= 1
    values = [one.mean() for one in campaign.store.observations()]
    assert np.mean(values[5:]) > np.mean(values[:5])
    status = campaign.status()
    assert (status.counts.values, status.counts.open, status.best.mean()) == (15, 5, max(values))  # type: ignore[union-attr]
    assert status.model["n"] == 15
    assert status.model["left"] == len(SMILES) - 20  # measured or suggested
    assert status.model["r2"] > 0
    assert any("nearly exhausted" in warning for warning in status.warnings)


def test_the_same_file_gives_the_same_suggestions_elsewhere(campaign: Campaign, tmp_path: Path) -> None:
    measured(campaign, 2)
    campaign.close()
    copy = shutil.copy(tmp_path / "a.seqopt", tmp_path / "b.seqopt")
    for _ in range(2):
        chosen = []
        for path in (tmp_path / "a.seqopt", copy):
            with Campaign.open(path) as again:
                batch = again.suggest()
                chosen.append([(row.string, row.mean, row.score) for row in batch])
                for row in batch:
                    again.record(row.name, worth(row.string))
        assert chosen[0] == chosen[1]


def test_a_batch_comes_back_filled_in(campaign: Campaign, tmp_path: Path) -> None:
    measured(campaign, 2)
    batch = campaign.suggest()
    path = tmp_path / "batch.csv"
    campaign.write_batch(path)
    with path.open(newline="", encoding="utf-8-sig") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["smiles"] for row in rows] == [row.string for row in batch]
    # What the library knows of a candidate stands beside it.
    assert [row["name"] for row in rows] == [f"cpd-{SMILES.index(row.string)}" for row in batch]
    assert [row["price"] for row in rows] == [str(SMILES.index(row.string)) for row in batch]
    assert {"why", "nearest_measured", "similarity", "predicted", "activity (nM)"} <= set(rows[0])
    for row in rows[:3]:
        row["activity (nM)"] = str(worth(row["smiles"]))
        row["standard_error"] = "0.25"
    rows[3]["failure"] = "did not dissolve"
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    taken, results = campaign.record_file(path)
    assert len(taken) == 4
    assert not results.problems
    assert [row.standard_error for row in taken] == [0.25, 0.25, 0.25, None]
    assert campaign.suggest() == [next(row for row in campaign.store.suggestions() if row.name == batch[4].name)]
    campaign.withdraw([batch[4].name], "too expensive")
    later = campaign.suggest()
    gone = {batch[3].key, batch[4].key}
    assert gone.isdisjoint(row.key for row in later)
    # The known errors have reached the model.
    observed = campaign.optimizer().observations.with_status("ok")
    assert [row.noise_variance for row in observed].count((0.0625,)) == 3


def test_nothing_is_recorded_unless_all_is_well_or_the_rest_is_asked_for(campaign: Campaign, tmp_path: Path) -> None:
    campaign.suggest()
    path = tmp_path / "results.csv"
    path.write_text("identifier,activity\nB01-01,1.5\nB01-02,high\nB09-01,2\n")
    with pytest.raises(CampaignError) as refused:
        campaign.record_file(path)
    assert "'high'" in str(refused.value)
    assert "B09-01" in str(refused.value)
    assert campaign.status().counts.values == 0
    taken, results = campaign.record_file(path, partial=True)
    assert [row.value for row in taken] == [1.5]
    assert len(results.problems) == 2


@pytest.mark.parametrize("reason", ["no", "0", " Yes ", "", " "])
def test_a_failure_needs_a_reason_that_a_table_would_not_take_for_yes_or_no(campaign: Campaign, reason: str) -> None:
    (name, *_) = [row.name for row in campaign.suggest()]
    with pytest.raises(CampaignError, match="is not a reason for a failure"):
        campaign.record(name, failure=reason)
    campaign.record(name, failure="no crystals")


def test_a_string_that_cannot_be_read_is_explained(campaign: Campaign) -> None:
    with pytest.raises(CampaignError, match="'C C' is not a valid molecule: a blank inside the SMILES"):
        campaign.record("C C", 1.0)
    with pytest.raises(InputError, match="'C C' is not a valid molecule: a blank inside the SMILES"):
        campaign.space.key("C C")


def test_a_single_value_far_off_is_told(campaign: Campaign, caplog: pytest.LogCaptureFixture) -> None:
    batch = campaign.suggest()
    for row in batch[:3]:
        campaign.record(row.name, 5.0)
    assert caplog.messages == []
    campaign.record(batch[3].name, 5000.0)
    (message,) = caplog.messages
    assert "about 1,000 times larger than the earlier ones: are they in the unit of the campaign (nM)?" in message
    campaign.record("CCCCCCCCCBr", 5.0)
    assert "'CCCCCCCCCBr' was never suggested" in caplog.messages[1]


def test_a_single_value_without_its_decimal_mark_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "pool.csv"
    path.write_text("string\n" + "\n".join("C" * number for number in range(1, 20)) + "\n")
    with Campaign.create(tmp_path / "p.seqopt", path, objective="pIC50", unit="-log10 M", batch_size=10) as campaign:
        batch = campaign.suggest()
        for place, row in enumerate(batch[:8]):
            campaign.record(row.name, 4.5 + place % 4)
        campaign.record(batch[8].name, 9.9)
        assert caplog.messages == []
        campaign.record(batch[9].name, 64)
        (message,) = caplog.messages
        assert message == (
            f"'64' is far from all others, which lie between 4.5 and 9.9: if it is a typing error, "
            f"seqopt campaign correct {batch[9].name} NUMBER mends it"
        )
        assert campaign.correct(batch[9].name, 6.4).value == 6.4


def test_a_name_is_a_name_however_it_is_typed(tmp_path: Path) -> None:
    path = tmp_path / "pool.csv"
    path.write_text("string\n" + "\n".join(["B-x1", "hello world", "b1-1", "zzz q!", "qq 12"]) + "\n")
    with Campaign.create(tmp_path / "t.seqopt", path, objective="y", batch_size=4, kind="text") as campaign:
        batch = {row.name: row.string for row in campaign.suggest(5)}
        (taken,) = campaign.record("b1-02", 5.0)
        assert (taken.suggestion, taken.string) == ("B01-02", batch["B01-02"])
        # A string of the campaign itself is meant as it stands.
        (taken,) = campaign.record("b1-1", 6.0, replicate=True)
        assert taken.string == "b1-1"
        # Any text is a string here, but a slip of the pen in a name shall not become one.
        with pytest.raises(CampaignError, match="'B01-50' is not an identifier of a suggestion: is B01-05 meant"):
            campaign.record("B01-50", 7.0)
        campaign.record("never listed", 7.0)


def test_history_replicates_and_undo(campaign: Campaign, tmp_path: Path) -> None:
    path = tmp_path / "old.csv"
    path.write_text("smiles,activity\nCCO,1.5\nOCC,1.7\nCCCCCCCCCCCCBr,4\n")
    with pytest.raises(CampaignError, match="nothing was recorded"):
        campaign.record_file(path, history=True)
    taken, _ = campaign.record_file(path, history=True, replicates=True)
    assert len(taken) == 3
    ethanol = next(one for one in campaign.store.observations() if one.key == "CCO")
    assert ethanol.values == (1.5, 1.7)
    assert [row.value for row in campaign.optimizer().observations.with_status("ok")] == [1.5, 1.7, 4.0]
    with pytest.raises(CampaignError):
        campaign.record("CCO", 1.6)
    campaign.record("CCO", 1.6, replicate=True)
    assert campaign.undo().kind == "record"
    assert campaign.undo().kind == "import"
    assert campaign.store.observations() == []
    assert [command.kind for command in campaign.history()] == ["create", "import", "record", "undo", "undo"]


def test_two_processes_never_suggest_on_the_same_state(campaign: Campaign, tmp_path: Path) -> None:
    other = Campaign.open(tmp_path / "a.seqopt")
    with Campaign.open(tmp_path / "a.seqopt") as slow:
        optimizer = slow.session().optimizer
        ask = optimizer.ask

        def slowly(*arguments: Any, **options: Any) -> Any:
            optimizer.ask = ask  # type: ignore[method-assign]
            other.suggest()
            return ask(*arguments, **options)

        optimizer.ask = slowly  # type: ignore[method-assign]
        with pytest.raises(StaleStateError):
            slow.suggest()
        # What it had asked for is forgotten, and what the other one has suggested counts.
        assert optimizer.observations.rows == []
        assert slow.suggest() == campaign.suggest() == other.suggest()
        assert len(slow.suggest(2, more=True)) == 2
        assert optimizer.pending == [row.string for row in campaign.store.open_suggestions()]


def test_exports_hold_every_measurement(campaign: Campaign, tmp_path: Path) -> None:
    import pandas as pd

    measured(campaign, 1)
    campaign.record("CCCCCCCCCBr", None, failure="unstable")
    campaign.export(tmp_path / "all.csv")
    campaign.export(tmp_path / "all.parquet")
    for table in (pd.read_csv(tmp_path / "all.csv"), pd.read_parquet(tmp_path / "all.parquet")):
        assert len(table) == 6
        assert table["activity"].notna().sum() == 5
        assert table["failure"].iloc[-1] == "unstable"


def test_the_library_and_the_campaign_are_never_written_over(campaign: Campaign, library: Path, tmp_path: Path) -> None:
    campaign.suggest()
    before = library.read_bytes()
    (tmp_path / "link.csv").symlink_to(library)
    for path in (library, tmp_path / "link.csv", library.parent / "." / "library.csv"):
        for write in (campaign.write_batch, campaign.export):
            with pytest.raises(InputError, match="is the library of the campaign"):
                write(path)
    for name in ("a.seqopt", "another.seqopt", "a.seqopt-wal"):
        with pytest.raises(InputError, match="is the file of a campaign"):
            campaign.export(tmp_path / name)
    assert library.read_bytes() == before
    for _ in range(2):  # what was written before may be written again
        campaign.write_batch(tmp_path / "batch.csv")
        campaign.export(tmp_path / "all.csv")


def test_a_changed_library_is_noticed(
    campaign: Campaign, library: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    campaign.suggest()
    library.write_text(library.read_text() + "new,CCCCCCCCCCS,3\n")
    with Campaign.open(tmp_path / "a.seqopt") as again:
        assert len(again.suggest()) == 5  # open suggestions need no library
        assert "CCCCCCCCCCS" not in {row.string for row in again.suggest(35, more=True)}
    assert "1 candidate has come into" in caplog.text
    library.write_text("".join(library.read_text().splitlines(keepends=True)[:-3]))
    with (
        Campaign.open(tmp_path / "a.seqopt") as again,
        pytest.raises(CampaignError, match=r"lacks 2 of 40 candidates.*--replace"),
    ):
        again.suggest(more=True)
    library.unlink()
    with Campaign.open(tmp_path / "a.seqopt") as again, pytest.raises(CampaignError, match="no longer exists"):
        again.suggest(more=True)


def test_a_folder_that_was_moved_is_searched_as_before(campaign: Campaign, library: Path, tmp_path: Path) -> None:
    campaign.set_filters([ColumnCondition.parse("price <= 20")])
    expected = [row.string for row in campaign.suggest()]
    campaign.undo()
    campaign.close()
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    for path in (tmp_path / "a.seqopt", library):
        path.rename(moved / path.name)
    with Campaign.open(moved / "a.seqopt") as again:
        assert [row.string for row in again.suggest()] == expected
        again.write_batch(moved / "batch.csv")
        assert "price" in (moved / "batch.csv").read_text()
        with pytest.raises(InputError, match="is the library of the campaign"):
            again.export(moved / library.name)
        (moved / library.name).write_text("smiles\nCCO\nCCN\n")  # of this name, but another
        with pytest.raises(CampaignError, match="lacks 38 of 40 candidates"):
            Campaign.open(moved / "a.seqopt").suggest(more=True)


def test_rows_of_a_library_that_are_left_out_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "library.csv"
    path.write_text("smiles\nCCO\nCCN\nn.b.\nOCC\nCCF\n")
    Campaign.create(tmp_path / "a.seqopt", path, objective="y", batch_size=2).close()
    assert caplog.messages == [
        "1 duplicates merged (line 5 'OCC' is line 2 'CCO')",
        "1 rejected: line 4 'n.b.' (not a SMILES (syntax))",
    ]


def test_what_cannot_be_used_leaves_no_file(tmp_path: Path, library: Path) -> None:
    path = tmp_path / "bad.seqopt"
    for space, options, message in (
        (library, {"surrogate": "forest"}, "unknown surrogate"),
        (library, {"column": "nonsense"}, "nonsense"),
        (tmp_path / "no.csv", {}, "no.csv"),
        (StringSpace("01", 8), {"batch_size": 1}, "batch_size is 1"),
    ):
        with pytest.raises(InputError, match=message):
            Campaign.create(path, space, objective="y", **options)  # type: ignore[arg-type]
    assert not path.exists()


@pytest.mark.parametrize(
    ("name", "unit"),
    [("identifier", None), ("String", None), ("standard error", None), ("failure", None), ("standard", "error")],
)
def test_an_objective_takes_the_place_of_no_other_column(name: str, unit: str | None, tmp_path: Path) -> None:
    path = tmp_path / "bad.seqopt"
    with pytest.raises(InputError, match=f"the objective is called '{name}.*', as another column"):
        Campaign.create(path, StringSpace("01", 8), objective=name, unit=unit, batch_size=2)
    assert not path.exists()


def test_a_column_of_strings_takes_the_place_of_no_other_column(tmp_path: Path) -> None:
    import pandas as pd

    (tmp_path / "own.csv").write_text("Identifier,similarity\nCCO,CCN\nCCC,CC\nC,CCCC\n")
    with pytest.raises(InputError, match=r"the column of strings is called 'Identifier'.*rename it in the file"):
        Campaign.create(tmp_path / "a.seqopt", tmp_path / "own.csv", column="Identifier", objective="y", batch_size=2)
    with Campaign.create(
        tmp_path / "b.seqopt", tmp_path / "own.csv", column="similarity", objective="y", batch_size=2
    ) as campaign:
        strings = {row.string for row in campaign.suggest()}
        campaign.write_batch(tmp_path / "batch.csv")
    table = pd.read_csv(tmp_path / "batch.csv")
    assert set(table["similarity"]) == strings <= {"CCN", "CC", "CCCC"}
    assert "similarity (suggestion)" in table


@pytest.mark.parametrize(
    ("name", "unit"), [("status", None), ("why", None), ("predicted", "mean"), ("key", None), ("source", None)]
)
def test_a_prediction_is_never_taken_for_a_measurement(name: str, unit: str | None, tmp_path: Path) -> None:
    import pandas as pd

    file, again, space = tmp_path / "batch.csv", tmp_path / "again.csv", StringSpace("01", 8)
    with Campaign.create(tmp_path / "c.seqopt", space, objective=name, unit=unit, batch_size=2) as campaign:
        for row in campaign.suggest():
            campaign.record(row.name, 7.0)
        campaign.suggest()
        campaign.write_batch(file)
        table = pd.read_csv(file)
        assert len({column.lower() for column in table.columns}) == len(table.columns) == 17
        with pytest.raises(CampaignError):  # nothing was filled in
            campaign.record_file(file)
        table[name if unit is None else f"{name} ({unit})"] = [1.5, 2.5]
        table.to_csv(file, index=False)
        taken, _ = campaign.record_file(file)
        assert [row.value for row in taken] == [1.5, 2.5]
        campaign.export(again)
    exported = again.read_text(encoding="utf-8-sig").splitlines()[0].split(",")
    assert len(set(exported)) == len(exported) == 16
    with Campaign.create(tmp_path / "d.seqopt", space, objective=name, unit=unit, batch_size=2) as campaign:
        taken, _ = campaign.record_file(again, history=True)
        assert sorted(row.value for row in taken if row.value is not None) == [1.5, 2.5, 7.0, 7.0]


def test_an_objective_that_is_named_with_its_unit_gets_no_second_one(tmp_path: Path) -> None:
    file, space = tmp_path / "batch.csv", StringSpace("01", 8)
    with Campaign.create(tmp_path / "c.seqopt", space, objective="Kd (nM)", unit="nM", batch_size=2) as campaign:
        campaign.suggest()
        campaign.write_batch(file)
        header, *rows = file.read_text().splitlines()
        assert header.endswith(",Kd (nM),standard_error,failure")
        file.write_text("\n".join([header, *(row.removesuffix(",,") + "5,," for row in rows)]))
        assert len(campaign.record_file(file)[0]) == 2


SPACES: list[Space] = [
    StringSpace("ABC", min_length=2, max_length=5),
    LocalSpace(["ab", ["xx", "y"]], kind="text"),
    CodonSpace("MAGIC", start="ATG", stop="TAA", forbidden=["GAATTC"], gc=(0.2, 0.8), both_strands=True),
    GrammarSpace("arithmetic", 2, 9),
]


@pytest.mark.parametrize("space", SPACES, ids=lambda space: type(space).__name__)
def test_every_space_can_be_searched_and_is_made_again(space: Space, tmp_path: Path) -> None:
    path = tmp_path / "c.seqopt"
    with Campaign.create(path, space, objective="y", batch_size=3) as begun:
        for suggestion in begun.suggest():
            begun.record(suggestion.name, float(len(set(suggestion.string))))
    with Campaign.open(path) as later:
        assert later.space.sample(5, np.random.default_rng(0)) == space.sample(5, np.random.default_rng(0))
        batch = later.suggest()
        assert all(space.contains(row.string) for row in batch)
        with pytest.raises(CampaignError, match="nothing was recorded"):
            later.record("not in it", 1.0)


def test_a_space_of_ones_own_is_given_again(tmp_path: Path) -> None:
    space = StringSpace("01", 8, accept=lambda string: string.count("1") < 5)
    path = tmp_path / "own.seqopt"
    Campaign.create(path, space, objective="y", batch_size=2).close()
    with Campaign.open(path) as campaign, pytest.raises(CampaignError, match="searches a custom space"):
        campaign.suggest()
    with (
        Campaign.open(path, StringSpace("01", 9)) as campaign,
        pytest.raises(CampaignError, match=r"another space than the one .*; space\.max_length was 8, is now 9"),
    ):
        campaign.suggest()
    with Campaign.open(path, space) as campaign:
        assert len(campaign.suggest()) == 2


def test_an_interval_on_a_logarithmic_scale_is_that_of_the_logarithms() -> None:
    low, high = interval(*Log10().moments(2.0, 0.3), "log10")
    np.testing.assert_allclose([low, high], [10 ** (2 - 1.6448536 * 0.3), 10 ** (2 + 1.6448536 * 0.3)], rtol=1e-6)
    assert interval(1.0, 2.0, None) == pytest.approx((1 - 3.2897073, 1 + 3.2897073))
    assert interval(None, None, None) == (None, None)


def test_a_closed_campaign_says_that_it_is_closed(tmp_path: Path) -> None:
    campaign = Campaign.create(tmp_path / "a.seqopt", StringSpace("AB", 6), objective="y", surrogate="one-hot")
    campaign.suggest()
    campaign.close()
    for command in (campaign.status, campaign.suggest, campaign.undo, lambda: campaign.record("AAABBB", 1.0)):
        with pytest.raises(CampaignError, match="was closed in this program: open it again"):
            command()
