"""Changes of mind: corrections, outliers, undone commands, other settings, failures that are tried again."""

from __future__ import annotations

from pathlib import Path

import pytest

from seqopt.campaign import Campaign, CampaignError
from seqopt.errors import InputError
from seqopt.spaces import StringSpace


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    space = StringSpace("AB", 6)
    return Campaign.create(
        tmp_path / "a.seqopt", space, objective="activity", surrogate="ssk-bayes", batch_size=3, seed=2
    )


def measured(campaign: Campaign) -> list[str]:
    """The names of a first batch, each with a value."""
    names = [row.name for row in campaign.suggest()]
    for number, name in enumerate(names):
        campaign.record(name, 5.0 + number)
    return names


def told(campaign: Campaign) -> dict[str, float]:
    """What the model learns from, by string."""
    return {row.string: row.value for row in campaign.optimizer().observations.with_status("ok")}


def reopened(campaign: Campaign) -> Campaign:
    return Campaign.open(campaign.store.path)


def test_a_corrected_value_is_as_if_it_had_been_right_from_the_start(campaign: Campaign, tmp_path: Path) -> None:
    first, *_ = measured(campaign)
    space = StringSpace("AB", 6)
    other = Campaign.create(
        tmp_path / "b.seqopt", space, objective="activity", surrogate="ssk-bayes", batch_size=3, seed=2
    )
    for number, row in enumerate(other.suggest()):
        other.record(row.name, 6.25 if not number else 5.0 + number)
    campaign.session()  # which has learnt the wrong value
    made = campaign.correct("b1-1", 6.25, reason="typo")
    assert (made.value, made.suggestion, made.replaces) == (6.25, first, 1)
    for one in (campaign, reopened(campaign)):
        assert told(one) == told(other)
        assert [row.status for row in one.store.suggestions()] == ["measured"] * 3
        assert one.store.best().mean() == 7.0  # type: ignore[union-attr]
    with reopened(campaign) as again:
        expected = [(row.string, row.mean, row.low) for row in other.suggest()]
        assert [(row.string, row.mean, row.low) for row in again.suggest()] == expected
        assert again.store.check() == []
    command = campaign.history()[-2]
    assert command.describe() == "correct b1-1 from 5 to 6.25 (typo): 1 measurement"
    # What was recorded is still in the file.
    assert [row.value for row in campaign.store.measurements(undone=True)] == [5.0, 6.0, 7.0, 6.25]


def test_corrections_are_corrected_and_undone(campaign: Campaign) -> None:
    measured(campaign)
    campaign.correct("B01-01", 50.0)
    campaign.correct("B01-01", failure="the wrong vial")
    assert [row.status for row in campaign.store.suggestions()] == ["failed", "measured", "measured"]
    assert len(told(campaign)) == 2
    campaign.correct("B01-01", 5.5, standard_error=0.25)
    assert sorted(told(campaign).values()) == [5.5, 6.0, 7.0]
    (row,) = (row for row in campaign.optimizer().observations.rows if row.value == 5.5)
    assert row.noise_variance == (0.0625,)
    for expected in ("failed: the wrong vial", "50", "5"):
        campaign.undo()
        assert campaign.store.measurements(key=campaign.store.suggestions()[0].key)[0].told == expected
        assert campaign.store.check() == []


def test_a_correction_stands_where_the_first_value_stood(campaign: Campaign) -> None:
    strings = ["AAAAAA", "BBBBBB", "ABABAB"]
    for number, string in enumerate(strings):
        campaign.record(string, 5.0 + number)
    batch = [row.string for row in campaign.suggest()]
    campaign.correct("AAAAAA", 6.25)
    campaign.correct("AAAAAA", 6.5)  # which replaces a correction
    campaign.correct("BBBBBB", failure="the wrong vial")
    with reopened(campaign) as again:
        for one in (campaign, again):
            assert [row.string for row in one.optimizer().observations.rows] == [*strings, *batch]
            optimizer, journal = one.session().optimizer, one.session().journal
            assert [row.status for row in optimizer.observations.rows] == ["ok", "failed", "ok", *["pending"] * 3]
            assert [row.value for row in journal.told if row.status == "ok"] == [6.5, 7.0]
            assert [row.string for row in journal.told] == strings
            # The batch was chosen after all three.
            assert journal.asked[0].told == 3


def test_what_cannot_be_corrected_is_refused_and_nothing_changes(campaign: Campaign) -> None:
    measured(campaign)
    campaign.record("B01-02", 6.5, replicate=True)
    before = campaign.store.state
    for arguments, options, said in (
        (("B01-01", 5.0), {}, "is 5 already"),
        (("B01-01",), {}, "needs the right value"),
        (("B09-01", 5.0), {}, "B09-01"),
        (("BBBBBB", 5.0), {}, "nothing was measured of BBBBBB"),
        (("B01-02", 5.0), {}, r"has several results: there are 6 of command 4, 6\.5 of command 6; say which"),
        (("B01-02", 5.0), {"was": 9.0}, "no result of B01-02 is 9"),
        (("B01-01", 5e9), {}, "times the usual value"),
        (("B01-01", 45123.0), {}, "the date 2023-07-16"),
        (("B01-01", 1e30), {}, "larger than anything"),
        (("B01-01",), {"failure": "no"}, "not a reason"),
    ):
        with pytest.raises((CampaignError, InputError), match=said):
            campaign.correct(*arguments, **options)  # type: ignore[arg-type]
        assert campaign.store.state == before
    assert campaign.correct("B01-02", 6.25, was=6.5).value == 6.25
    assert campaign.correct("B01-01", 5e9, force=True).value == 5e9


def test_replicates_of_one_value_are_changed_one_by_one(campaign: Campaign, tmp_path: Path) -> None:
    campaign.record("AAAAAA", 6.0)
    for _ in range(2):
        campaign.record("AAAAAA", 6.0, replicate=True)
    # Nothing tells them apart.
    for left in (2, 1):
        campaign.discard("AAAAAA", "outlier")
        assert [row.value for row in campaign.store.measurements()] == [6.0] * left
    assert campaign.correct("AAAAAA", 6.5).value == 6.5
    # Wells of a plate are called by their labels.
    table = tmp_path / "wells.csv"
    table.write_text("string,replicate,activity\n" + "".join(f"BBBBBB,P1-{n},7\n" for n in range(3)))
    campaign.record_file(table, replicates=True)
    with pytest.raises(
        CampaignError, match=r"7 of well P1-0.*say which, by the label of its well .in place of BBBBBB."
    ):
        campaign.correct("BBBBBB", 7.5)
    assert (made := campaign.correct("P1-1", 7.5)).value == 7.5
    assert (made.string, made.replicate) == ("BBBBBB", "P1-1")
    (gone,) = campaign.discard("P1-2", "dried out")
    assert gone.replicate == "P1-2"


def test_a_discarded_value_is_shown_and_not_modelled(campaign: Campaign) -> None:
    measured(campaign)
    (row,) = campaign.discard("B01-03", "an outlier")
    assert row.value == 7.0
    for one in (campaign, reopened(campaign)):
        assert sorted(told(one).values()) == [5.0, 6.0]
        assert [row.status for row in one.store.suggestions()] == ["measured", "measured", "discarded"]
        assert one.store.counts().discarded == 1
        assert one.store.best().mean() == 6.0  # type: ignore[union-attr]
        assert [row.discarded for row in one.store.measurements(discarded=True)] == [None, None, "an outlier"]
    with pytest.raises(CampaignError, match="discarded already"):
        campaign.discard("B01-03")
    # It is not suggested again, but may be measured again.
    gone = row.key
    for _ in range(4):
        assert gone not in {one.key for one in campaign.suggest(8, more=True)}
    campaign.record(row.string, 6.9)
    assert sorted(told(campaign).values()) == [5.0, 6.0, 6.9]
    assert campaign.store.check() == []


def test_a_correction_brings_back_what_was_discarded(campaign: Campaign) -> None:
    measured(campaign)
    campaign.discard("B01-03", "an outlier")
    campaign.correct("B01-03", 6.75)
    assert sorted(told(campaign).values()) == [5.0, 6.0, 6.75]
    campaign.undo()
    assert sorted(told(campaign).values()) == [5.0, 6.0]


def test_any_command_is_undone_unless_something_depends_on_it(campaign: Campaign) -> None:
    measured(campaign)  # commands 2 to 5
    campaign.withdraw([campaign.suggest(2)[0].name], "sold out")  # 6 and 7
    campaign.change(batch_size=4)  # 8
    campaign.change(unit="nM")  # 9
    campaign.correct("B01-01", 5.5)  # 10
    campaign.discard("B01-02")  # 11
    for number, said in (
        (1, "of kind create cannot be"),
        (2, "B01-01 has a result, by command 3.*undo 10, then 5, then 4, then 3 first"),
        (3, "was corrected by command 10: undo 10 first"),
        (4, "was discarded by command 11"),
        (6, "B02-01 was withdrawn by command 7"),
        (8, "changed again, by command 9"),
        (77, "there is no command 77"),
    ):
        with pytest.raises((CampaignError, InputError), match=said):
            campaign.undo(number)
    assert campaign.undo(5).describe() == "record B01-03 7: 1 measurement"
    with pytest.raises(CampaignError, match="command 12 did that already"):
        campaign.undo(5)
    with pytest.raises(CampaignError, match="an undo is not undone"):
        campaign.undo(12)
    assert campaign.store.suggestions()[2].status == "open"
    assert campaign.undo(9).kind == "configure"
    assert campaign.undo(8).kind == "configure"
    assert (campaign.store.settings.batch_size, campaign.store.settings.unit) == (3, None)
    assert campaign.undo().id == 11  # the last one that is left
    assert sorted(told(campaign).values()) == [5.5, 6.0]
    assert told(campaign) == told(reopened(campaign))
    assert campaign.store.check() == []


def test_a_string_that_was_suggested_again_is_not_opened_twice(campaign: Campaign) -> None:
    (first,) = campaign.suggest(1)
    campaign.record(first.name, failure="lost")  # command 3
    (second,) = campaign.retry_failed()
    assert (second.string, second.name, second.reason["kind"]) == (first.string, "B02-01", "retry")
    with pytest.raises(CampaignError, match="would be open twice, as B02-01 was suggested by command 4"):
        campaign.undo(3)
    campaign.record("B02-01", 6.0)
    with pytest.raises(CampaignError, match="nothing has failed"):
        campaign.retry_failed()
    assert told(campaign) == {first.string: 6.0}
    assert campaign.undo(3).kind == "record"  # nothing is open but the first one
    assert [row.status for row in campaign.store.suggestions()] == ["open", "measured"]
    assert campaign.store.check() == []


def test_only_what_failed_is_tried_again(campaign: Campaign) -> None:
    names = [row.name for row in campaign.suggest()]
    campaign.record(names[0], failure="no yield")
    campaign.record(names[1], failure="the robot")
    campaign.record(names[2], 5.0)
    with pytest.raises(CampaignError, match="B01-03 has not failed"):
        campaign.retry_failed(["B01-03"])
    (again,) = campaign.retry_failed(["b1-2"])
    assert again.reason == {"kind": "retry", "failure": "the robot"}
    assert [row.name for row in campaign.suggest()] == ["B02-01"]
    with reopened(campaign) as other:
        assert [row.string for row in other.session().optimizer.observations.pending] == [again.string]
    campaign.record("B02-01", failure="the robot again")
    assert [row.name for row in campaign.retry_failed()] == ["B03-01", "B03-02"]
    campaign.record("B03-02", 6.0)
    assert [row.status for row in campaign.store.suggestions()[3:]] == ["failed", "open", "measured"]


def test_settings_are_changed_and_changed_back(campaign: Campaign) -> None:
    measured(campaign)
    campaign.change(direction="minimize", unit="nM", transform="log10", batch_size=2)
    assert campaign.store.best().mean() == 5.0  # type: ignore[union-attr]
    assert campaign.status().settings.unit == "nM"
    assert len(campaign.suggest()) == 2
    optimizer = campaign.optimizer()
    assert (optimizer.outcomes[0].direction, optimizer.outcomes[0].transform.name) == ("minimize", "log10")
    assert "direction maximize -> minimize" in campaign.history()[5].describe()
    campaign.undo()  # the suggestions
    campaign.undo()
    assert campaign.store.best().mean() == 7.0  # type: ignore[union-attr]
    campaign.record("BBBBBB", -1.0)
    before = campaign.store.state
    for given, said in (
        ({"transform": "log10"}, "1 values have no logarithm: -1 of BBBBBB"),
        ({"direction": "up"}, "direction is 'up'"),
        ({"transform": "sqrt"}, "transform is 'sqrt'"),
        ({"batch_size": 0}, "batch_size"),
        ({"unit": None}, "are the settings already"),
        ({}, "say what to change"),
    ):
        with pytest.raises((CampaignError, InputError), match=said):
            campaign.change(**given)  # type: ignore[arg-type]
    assert campaign.store.state == before


def test_a_prediction_stays_what_it_was_when_the_scale_is_changed(campaign: Campaign) -> None:
    """What is shown of it is the middle of the interval that is shown beside it."""
    measured(campaign)
    made = campaign.suggest()
    shown = [row.predicted(None) for row in made]
    campaign.change(transform="log10")
    with reopened(campaign) as other:
        assert [row.predicted("log10") for row in other.store.open_suggestions()] == shown
        assert other.suggest().to_pandas()["predicted"].tolist() == pytest.approx(shown)
    (later, *_) = campaign.suggest(1, more=True)
    median = later.predicted("log10")
    campaign.undo()
    later = campaign.suggest(1, more=True)[-1]
    campaign.change(transform=None)
    after = campaign.store.open_suggestions()[-1]
    assert after.low is not None
    assert after.high is not None
    assert after.predicted(None) == pytest.approx(median) == pytest.approx((after.low * after.high) ** 0.5)
    assert [row.predicted(None) for row in campaign.store.open_suggestions()][:3] == shown


def test_values_of_other_sizes_that_are_usual_are_not_refused(tmp_path: Path) -> None:
    """Values that span decades, nearly nothing on a linear scale, and the same in another unit."""
    with Campaign.create(tmp_path / "a.seqopt", StringSpace("AB", 6), objective="IC50") as campaign:
        for number, value in enumerate([1e-9, 3e-6, 2e-3, 0.5, 4.0, 100.0, 0.0, -3.0]):
            campaign.record(format(number, "06b").replace("0", "A").replace("1", "B"), value)
        with pytest.raises(CampaignError, match="times the usual value"):
            campaign.record("BBBBBB", 1e9)
        assert campaign.store.counts().values == 8
    with Campaign.create(tmp_path / "b.seqopt", StringSpace("AB", 6), objective="IC50", transform="log10") as campaign:
        for number, value in enumerate([5.0, 30.0, 200.0, 41000.0]):
            campaign.record(format(number, "06b").replace("0", "A").replace("1", "B"), value)
        with pytest.raises(CampaignError, match="times the usual value"):
            campaign.record("BBBBBB", 1e-7)
        campaign.record("BBBBBB", 1e-7, force=True)
        campaign.record("BBBBBA", 45123.0)  # no date, since others are as large


def test_a_table_with_an_absurd_value_is_refused_with_its_line(tmp_path: Path) -> None:
    table = tmp_path / "old.csv"
    table.write_text("string,activity\nAAAAAA,5\nAAAAAB,6\nAAAABB,7\nAAABBB,45123\nAABBBB,6000000000\n")
    with Campaign.create(tmp_path / "a.seqopt", StringSpace("AB", 6), objective="activity") as campaign:
        with pytest.raises(CampaignError, match=r"line 6: '6000000000.0'.*--force"):
            campaign.record_file(table, history=True)
        taken, results = campaign.record_file(table, history=True, partial=True)
        assert [row.value for row in taken] == [5.0, 6.0, 7.0, 45123.0]
        assert len(results.problems) == 1
    with Campaign.create(tmp_path / "b.seqopt", StringSpace("AB", 6), objective="activity") as campaign:
        assert len(campaign.record_file(table, history=True, force=True)[0]) == 5


def test_a_failure_is_undone_after_its_string_was_tried_again(campaign: Campaign) -> None:
    first, *_ = (row.name for row in campaign.suggest())
    campaign.record(first, failure="did not dissolve")
    failed = campaign.store.state
    (again,) = (row.name for row in campaign.retry_failed([first]))
    campaign.record(again, 3.0)
    answered = campaign.store.state
    campaign.undo(failed)  # so the first suggestion is open once more, and its string has a value
    with pytest.raises(CampaignError, match=f"undo 2 first, or withdraw {first}. Nothing was changed"):
        campaign.undo(answered)
    assert first in {row.name for row in campaign.store.open_suggestions()}
    for one in (campaign, reopened(campaign)):
        waiting = [row.string for row in one.store.open_suggestions()]
        assert sorted(one.session().optimizer.pending) == sorted(waiting)
    campaign.record(first, 4.0, replicate=True)
    for one in (campaign, reopened(campaign)):
        optimizer, journal = one.session().optimizer, one.session().journal
        assert sorted(row.value for row in optimizer.observations.with_status("ok")) == [3.0, 4.0]
        assert len(optimizer.observations.with_status("pending")) == len(one.store.open_suggestions()) == 2
        assert [(row.status, row.value) for row in journal.told] == [("ok", 3.0), ("ok", 4.0)]
    campaign.undo()
    campaign.withdraw([first])
    campaign.undo(answered)
    assert again in {row.name for row in campaign.store.open_suggestions()}
    assert campaign.store.check() == []
