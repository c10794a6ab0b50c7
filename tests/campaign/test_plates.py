"""Campaigns whose measurements are made on plates."""

import csv
import random
from pathlib import Path

import numpy as np
import pytest

from seqopt.campaign import Campaign, CampaignError
from seqopt.campaign.controls import differing_controls
from seqopt.campaign.plates import CONTROL, Plate, PlateRules, plate_of, plates_of, room_on
from seqopt.campaign.reasons import found_reasons
from seqopt.campaign.rows import Measurement, Settings, Suggestion
from seqopt.campaign.wording import in_words
from seqopt.cli import main
from seqopt.errors import InputError
from seqopt.report.campaigns import read_campaign
from seqopt.spaces import ParentSpace

POOL = [a + b + c + d for a in "ACDE" for b in "ACDE" for c in "AC" for d in "AC"]
OFFSETS = {"P1": 0.0, "P2": 2.0, "P3": -1.0}
CONTROLS = ["EEEE", "CDCD"]


def activity(string: str) -> float:
    return 4.0 + string.count("C") - 0.5 * string.count("E")


def reading(string: str, plate: str) -> float:
    return activity(string) + OFFSETS.get(plate, 0.0) + random.Random(string + plate).gauss(0.0, 0.1)


def made(tmp_path: Path, **options: object) -> Campaign:
    path = tmp_path / "pool.csv"
    if not path.exists():
        path.write_text("sequence\n" + "\n".join(POOL) + "\n")
    given = {"plates": 12, "controls": CONTROLS, "batch_size": 4} | options
    return Campaign.create(tmp_path / "a.seqopt", path, kind="text", objective="activity", **given)  # type: ignore[arg-type]


@pytest.fixture
def campaign(tmp_path: Path):
    with made(tmp_path) as found:
        yield found
        assert found.store.check() == []


def record_all(campaign: Campaign, **wrong: float) -> None:
    """Record what is open; ``wrong`` are values by plate and string, joined by an underscore."""
    for row in campaign.waiting():
        plate = plate_of(row.context)
        campaign.record(row.name, wrong.get(f"{plate}_{row.string}", reading(row.string, plate)))


def wells(campaign: Campaign) -> dict[str, int]:
    return {plate.name: plate.used for plate in campaign.plates(learned=False)}


def controls_in(batch: list[Suggestion]) -> list[tuple[str, str]]:
    return [(row.string, plate_of(row.context)) for row in batch if row.reason["kind"] == CONTROL]


def test_a_batch_goes_on_one_plate_with_its_controls(campaign: Campaign) -> None:
    batch = campaign.suggest()
    assert {plate_of(row.context) for row in batch} == {"P1"}
    assert len(batch) == 6
    assert controls_in(batch) == [(string, "P1") for string in CONTROLS]
    assert wells(campaign) == {"P1": 6}
    # Once is enough: the next ones of the plate come without.
    more = campaign.suggest(3, more=True)
    assert controls_in(more) == []
    assert wells(campaign) == {"P1": 9}
    # Three wells are left, and four do not fit: one goes on a fresh plate, with controls of its own.
    last = campaign.suggest(4, more=True)
    assert sorted(plate_of(row.context) for row in last) == ["P1"] * 3 + ["P2"] * 3
    assert controls_in(last) == [(string, "P2") for string in CONTROLS]
    # What is undone has never been there.
    campaign.undo()
    assert wells(campaign) == {"P1": 9}
    whole = campaign.suggest(4, more=True, shared=True)
    assert {plate_of(row.context) for row in whole} == {"P2"}
    with pytest.raises(CampaignError, match="11 do not fit on one plate, which has room for 10 besides 2 controls"):
        campaign.suggest(11, more=True, shared=True)


def test_wells_are_said_to_tell_something_but_not_to_cost(campaign: Campaign) -> None:
    for _ in range(2):
        campaign.suggest()
        record_all(campaign)
    reasons = [row.reason for row in campaign.suggest() if row.reason["kind"] != CONTROL]
    assert all(0.0 <= reason["tells"] <= 1.0 and "cost" not in reason for reason in reasons)
    assert "tells" in in_words(reasons[0])
    assert " for 1" not in in_words(reasons[0])


def test_plates_are_opened_and_closed_and_it_can_be_undone(campaign: Campaign) -> None:
    assert campaign.open_plate() == "P1"
    assert campaign.open_plate("screen 7") == "screen 7"
    with pytest.raises(CampaignError, match="screen 7 is open already, with 0 of 12 wells used"):
        campaign.open_plate("Screen 7")
    assert campaign.close_plate("p1") == "P1"
    assert campaign.history()[-1].describe() == "configure plate P1 closed"
    assert {plate_of(row.context) for row in campaign.suggest()} == {"screen 7"}
    with pytest.raises(CampaignError, match="P1 is closed: choose another plate, or open it again"):
        campaign.suggest(2, more=True, context={"plate": "P1"})
    with pytest.raises(CampaignError, match="there is no plate P9: there are P1, screen 7"):
        campaign.close_plate("P9")
    with pytest.raises(CampaignError, match="P1 is closed already"):
        campaign.close_plate("P1")
    assert campaign.open_plate("P1") == "P1"
    campaign.undo()  # that it was opened again
    assert [plate.closed for plate in campaign.plates(learned=False)] == [True, False]
    campaign.close_plate("screen 7")
    # The name of a closed plate is not given again.
    assert {plate_of(row.context) for row in campaign.suggest(2, more=True)} == {"P2"}
    with pytest.raises(CampaignError, match=r"P2 has room for 8, not for 9 \(of 12 wells 4 are used\)"):
        campaign.suggest(9, more=True, context={"plate": "P2"})
    with pytest.raises(InputError, match="expected its name"):
        campaign.open_plate(" ")


def test_the_same_file_gives_the_same_suggestions(campaign: Campaign) -> None:
    campaign.suggest()
    record_all(campaign)
    campaign.open_plate("P2")
    campaign.close_plate("P1")
    with Campaign.open(campaign.store.path) as other:
        found = [(row.string, row.context) for row in other.suggest(3)]
        other.undo()
    assert [(row.string, row.context) for row in campaign.suggest(3)] == found


def test_results_say_on_which_plate_they_were_read(campaign: Campaign, tmp_path: Path, caplog) -> None:
    campaign.suggest()
    state = campaign.store.state
    with pytest.raises(CampaignError, match=r"on which plate it was measured \(there are P1\).*--plate P1"):
        campaign.record("AAAA", 4.0)
    table = tmp_path / "results.csv"
    table.write_text("sequence,plate,activity\nAAAA,P1,4.1\nAAAC,,5.0\n")
    with pytest.raises(CampaignError, match="line 3: 'AAAC' does not say on which plate"):
        campaign.record_file(table)
    with pytest.raises(CampaignError, match="is to be measured with plate P1, but its result is said to be with plate"):
        campaign.record("B01-01", 5.0, context={"plate": "P2"})
    assert campaign.store.state == state
    campaign.close_plate("P1")
    table.write_text("sequence,plate,activity\nAAAA,p1,4.1\nAAAC,Pl,5.0\nAACA,P1,5.0\nAACC,old,3.0\n")
    taken, results = campaign.record_file(table)
    assert [plate_of(row.context) for row in taken] == ["P1", "Pl", "P1", "old"]
    said = " ".join(map(str, results.warnings))
    assert "P1 is closed, and 2 results of it are recorded all the same" in said
    assert "Pl is a new plate, of 1 result (there are P1)" in said
    assert "old is a new plate, of 1 result" in said
    # What was suggested there before it was closed is no surprise.
    caplog.clear()
    campaign.record("B01-01", 5.0)
    assert "closed" not in caplog.text
    # All of a table may be said to be of one plate.
    table.write_text("sequence,activity\nCCCC,8.1\nCCCA,7.0\n")
    campaign.record_file(table, context={"plate": "old"})
    assert wells(campaign) == {"P1": 8, "Pl": 1, "old": 3}


def test_what_failed_is_tried_again_where_there_is_room(campaign: Campaign) -> None:
    first, second, *_, control = campaign.suggest()
    for row in (first, second, control):
        campaign.record(row.name, failure="a bubble")
    (again,) = campaign.retry_failed([first.name])
    assert plate_of(again.context) == "P1"
    assert wells(campaign) == {"P1": 7}
    campaign.close_plate("P1")
    (again,) = campaign.retry_failed()  # not the control, which belongs to its plate
    assert (again.string, plate_of(again.context)) == (second.string, "P2")
    with pytest.raises(CampaignError, match="controls are measured on their own plates only"):
        campaign.retry_failed([control.name])


@pytest.mark.slow
def test_three_weeks_with_mistakes(campaign: Campaign, tmp_path: Path) -> None:
    campaign.suggest(8)
    record_all(campaign)
    for plate in ("P2", "P3"):
        campaign.close_plate(campaign.plates(learned=False)[-1].name)
        campaign.suggest(6, context={"plate": plate})
        # One control of the third plate was pipetted wrongly.
        record_all(campaign, P3_CDCD=activity("CDCD") + 6.0)
    found = {plate.name: plate for plate in campaign.plates()}
    middle, low, high = found["P2"].offset or (0.0, 0.0, 0.0)
    third = found["P3"].offset or (0.0, 0.0, 0.0)
    # Offsets from what all have in common; of three plates their mean goes into that.
    assert low < middle < high
    assert middle > third[0]
    warned = campaign.disagreeing_controls()
    assert len(warned) == 1
    assert "the control CDCD reads 12 on P3" in warned[0]
    assert "above what all other values let expect" in warned[0]
    campaign.suggest(2)
    status = campaign.status()
    assert warned[0].split(",")[0] in " ".join(status.warnings)
    campaign.discard("CDCD", "pipetted wrongly", context={"plate": "P3"})
    assert campaign.disagreeing_controls() == []
    # The answer is that of the model, and not what was read on the highest plate.
    (answer,) = campaign.recommend()
    assert activity(answer.string) >= max(activity(row.string) for row in campaign.store.observations()) - 1
    # Of a plate with one well next to nothing is known.
    campaign.record("AACA", reading("AACA", "P4"), context={"plate": "P4"})
    single = {plate.name: plate for plate in campaign.plates()}
    assert "one value, which cannot tell an offset" in single["P4"].describe()
    widths = {name: plate.offset[2] - plate.offset[1] for name, plate in single.items() if plate.offset}
    assert widths["P4"] > widths["P2"]
    run = read_campaign(campaign.store.path)
    assert run.everything is not None
    assert set(run.everything["context"]) >= {"P1", "P2", "P3"}
    assert {one["context"]["plate"] for one in run.learned} >= {"P1", "P2", "P3"}
    assert run.recommended["string"] == status.expected["string"]


def test_values_of_several_plates_stand_side_by_side(campaign: Campaign) -> None:
    campaign.record("AAAA", 4.0, context={"plate": "P1"})
    campaign.record("AAAA", 8.0, context={"plate": "P2"})
    campaign.record("AAAC", 5.0, context={"plate": "P1"})
    best = campaign.status().best
    assert best is not None
    assert (best.string, best.mean()) == ("AAAA", 6.0)
    run = read_campaign(campaign.store.path)
    assert run.evaluations["value"].tolist() == [6.0, 5.0]
    assert "what every plate has in common" in " ".join(run.remarks)
    campaign.record("AACA", 4.5, context={"plate": "P3"})
    assert "one value, which cannot tell an offset" in campaign.plates(learned=False)[-1].describe()
    with pytest.raises(CampaignError, match="replicate"):
        campaign.record("AAAA", 4.2, context={"plate": "P1"})
    campaign.record("AAAA", 4.2, context={"plate": "P1"}, replicate=True)
    assert wells(campaign)["P1"] == 3


def test_a_plate_that_is_full_offers_no_number_of_candidates(tmp_path: Path) -> None:
    with made(tmp_path, plates=6, controls=CONTROLS) as campaign:
        campaign.suggest(4)
        full = r"P1 has room for 0, not for 2 \(of 6 wells 6 are used\): choose another plate, or leave --plate out"
        with pytest.raises(CampaignError, match=full):
            campaign.suggest(2, more=True, context={"plate": "P1"})
        with pytest.raises(CampaignError, match=r"P2 has room for 4, not for 5 .*: ask for -n 4 at most"):
            campaign.suggest(5, more=True, context={"plate": "P2"})


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"plates": 1}, "the size of a plate"),
        ({"plates": 2}, "2 controls leave no room for candidates on a plate of 2 wells"),
        ({"controls": ["EEEE", "EEEE"]}, "'EEEE' is given twice"),
        ({"plates": None}, "controls go with plates"),
        ({"surrogate": "ssk"}, "has to know them"),
        ({"controls": [""]}, "the control '' cannot be used"),
    ],
)
def test_what_cannot_be_used_is_refused_before_there_is_a_file(
    tmp_path: Path, options: dict[str, object], wanted: str
) -> None:
    with pytest.raises(InputError, match=wanted):
        made(tmp_path, **options)
    assert not (tmp_path / "a.seqopt").exists()


def test_campaigns_without_plates_have_none(tmp_path: Path) -> None:
    with made(tmp_path, plates=None, controls=()) as campaign:
        for call in (campaign.open_plate, campaign.plates, lambda: campaign.close_plate("P1")):
            with pytest.raises(CampaignError, match="the campaign has no plates"):
                call()
        assert campaign.status().plates == ()


def test_wells_are_counted() -> None:
    settings = Settings("y", contexts={"possible": [], "target": [], "open": "plate"}, plates=PlateRules(4).to_json())
    on = (("plate", "P1"),)
    suggestions = [
        Suggestion("A", "A", context=on, status="measured"),
        Suggestion("B", "B", context=on, status="withdrawn"),
        Suggestion("C", "C", context=on),
    ]
    measurements = [
        Measurement("A", "A", 1.0, context=on),
        Measurement("A", "A", 2.0, context=on),  # a replicate is a well of its own
        Measurement("B", "B", 2.0, context=on),  # and was made after all
        Measurement("C", "C", context=on, further={"solubility": 1.0}),  # the same well
    ]
    (plate,) = plates_of(settings, suggestions, measurements)
    assert (plate.used, plate.values, plate.room) == (4, 3, 0)
    # A plate on which all has been withdrawn is there, and empty.
    (plate,) = plates_of(settings, suggestions[1:2], [])
    assert (plate.name, plate.used) == ("P1", 0)


def test_room_is_kept_for_controls() -> None:
    rules = PlateRules.of(Settings("y", plates={"size": 4, "controls": [], "opened": [], "closed": []}))
    assert rules is not None
    plates = [Plate("P1", 4, 1, 1, missing=("EEEE",)), Plate("P2", 4, 0, 0, closed=True), Plate("P3", 4, 3, 3)]
    room, shared = room_on(rules, plates, 2, None, shared=False)
    assert shared
    assert [room.size(plate.context) for plate in plates] == [2, 0, 0]
    room, shared = room_on(rules, plates, 3, None, shared=False)
    assert not shared
    assert [room.size(plate.context) for plate in plates] == [2, 0, 1]
    assert room.further == 4


def test_two_controls_that_differ_otherwise_are_named_and_chance_seldom_is() -> None:
    rng = random.Random(0)

    def plates(count: int, wrong: float = 0.0) -> list[Plate]:
        found = []
        for number in range(count):
            shift = rng.gauss(0.0, 5.0)
            read = {"A": (3.0 + shift + rng.gauss(0.0, 0.1),), "B": (4.0 + shift + rng.gauss(0.0, 0.1),)}
            if number == 1:
                read["B"] = (read["B"][0] + wrong,)
            found.append(Plate(f"P{number}", 96, 2, 2, controls=read))
        return found

    # Shifts of whole plates are no reason, whatever they are.
    alarms = sum(bool(differing_controls(plates(5))) for _ in range(400))
    assert alarms <= 32  # 5 %, and three standard deviations more
    assert all(list(differing_controls(plates(6, wrong=3.0))) == ["P1"] for _ in range(20))
    assert differing_controls(plates(2, wrong=100.0)) == {}


@pytest.mark.slow
def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)

    def run(*words: str, status: int = 0) -> str:
        assert main(["campaign", *words]) == status
        found = capsys.readouterr()
        return " ".join((found.out + found.err).split())

    Path("pool.csv").write_text("sequence\n" + "\n".join(POOL) + "\n")
    Path("controls.csv").write_text("sequence\nEEEE\nCDCD\n")
    new = ["new", "a", "--pool", "pool.csv", "--kind", "text", "--objective-name", "activity", "--batch", "4"]
    for options, wanted in [
        (["--plate-size", "24"], "--plate-size goes with --plates"),
        (["--controls", "EEEE"], "--controls goes with --plates"),
        (["--plates", "--fidelity", "a:1", "--fidelity", "b:2"], "do not go together"),
        (["--plates", "--surrogate", "ssk"], "knows nothing of plates"),
        (["--plates", "--controls", ","], "--controls is empty"),
    ]:
        assert wanted in run(*new, *options, status=2)
    assert "on each: EEEE, CDCD" in run(*new, "--plates", "--plate-size", "24", "--controls", "@controls.csv")
    assert "no plates yet" in run("plates")
    assert "open: A7" in run("plate", "open", "A7")
    batch = run("suggest", "--plate", "a7", "--out", "batch.csv")
    assert "on A7: 4 candidates and 2 controls; 6 of 24 wells are used" in batch
    assert "B01-01, B01-02, B01-03, B01-04, B01-05, B01-06 still await results" in run("plate", "close", "A7")
    assert "on P1, opened now since no open plate has room" in run("suggest", "--more", "--same-plate", "-n", "2")
    with Path("batch.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["plate"] for row in rows} == {"A7"}
    assert "cost" not in rows[0]
    Path("found.csv").write_text("sequence,activity\nAAAA,4\nAAAC,5.1\n")
    assert "does not say on which plate" in run("record", "found.csv", status=2)
    assert "recorded 2 results" in run("record", "found.csv", "--plate", "P1")
    assert "recorded CCAA (plate P1): 6" in run("record", "CCAA", "6", "--plate", "P1")
    said = run("status")
    assert "highest value as read: CCAA with 6" in said
    assert "A7 closed, 6 of 24 wells used" in said
    run("undo")
    assert "P1 open, 6 of 24 wells used" in run("status")


@pytest.mark.slow
def test_equal_ranks_say_why(tmp_path: Path) -> None:
    with made(tmp_path, plates=6, controls=[]) as campaign:
        campaign.suggest()
        record_all(campaign)
        again = campaign.store.measurements()[0]
        optimizer = campaign.session().optimizer
        surrogate = optimizer.fitted
        others = [key for key in campaign.space.keys if key not in {row.key for row in campaign.store.measurements()}]
        found = found_reasons(optimizer, surrogate, [others[0], others[0], again.key], 3)
        assert [one.beside for one in found][1:] == ["once more in this batch", "measured before"]
        assert found[0].rank == found[1].rank
        assert "(once more in this batch)" in in_words(found[1].to_json())


def of_controls(readings: list[list[float]]) -> list[Plate]:
    """Plates with the values of controls C0, C1, ... on each."""
    return [
        Plate(f"P{place}", 96, len(row), len(row), controls={f"C{one}": (value,) for one, value in enumerate(row)})
        for place, row in enumerate(readings, start=1)
    ]


def test_a_control_far_off_on_one_of_three_plates_is_named() -> None:
    # In kcal/mol, of molecules whose values spread by 3.
    readings = [[-5.1, -6.6], [-3.8, -5.5], [-2.9, -7.3]]
    found = differing_controls(of_controls(readings), spread=3.0)
    assert list(found) == ["P3"]
    assert "the controls C0 and C1 read -2.9 and -7.3 on P3" in found["P3"]
    assert not differing_controls(of_controls([*readings[:2], [-5.9, -7.3]]), spread=3.0)


def test_noise_and_offsets_are_seldom_taken_for_a_wrong_control() -> None:
    rng = np.random.default_rng(0)
    named = {}
    for noise, count in ((0.1, 3), (0.2, 3), (0.2, 6)):
        tables = (
            rng.normal(size=(200, 1, 2)) + rng.normal(size=(200, count, 1)) + noise * rng.normal(size=(200, count, 2))
        )
        named[noise, count] = sum(bool(differing_controls(of_controls(one.tolist()), spread=1.0)) for one in tables)
    # At most one of twenty, 3 standard errors for chance.
    assert max(named.values()) < 20, named


def test_status_and_plates_say_the_same_of_plates(tmp_path: Path) -> None:
    with made(tmp_path, controls=["EEEE", "CDCD"]) as campaign:
        for _ in range(2):
            campaign.suggest()
            record_all(campaign)
        # No model has seen all results yet.
        assert [plate.offset for plate in campaign.status().plates] == [None]
        campaign.suggest()
        said = {plate.name: plate.offset for plate in campaign.status().plates}
        assert said["P1"] is not None
        assert {plate.name: plate.offset for plate in campaign.plates()} == said
        wrong = campaign.store.measurements()[0]
        campaign.correct(wrong.suggestion, 9.0)
        assert {plate.offset for plate in campaign.status().plates} == {None}
        campaign.undo()
        assert {plate.name: plate.offset for plate in campaign.status().plates} == said


def test_controls_are_called_by_what_they_change_of_a_parent(tmp_path: Path) -> None:
    parent, space = "MKVLSTPEAG", ParentSpace("MKVLSTPEAG", mutations=2)
    with Campaign.create(
        tmp_path / "a.seqopt", space, objective="activity", batch_size=2, seed=1, plates=8, controls=["wt", "K2A"]
    ) as campaign:
        opened = campaign.open_plate()
        (empty,) = campaign.plates()
        assert (empty.name, empty.missing) == (opened, (parent, "MAVLSTPEAG"))
        assert "to come with the next suggestion: wt, K2A" in empty.describe()
        for row in campaign.suggest():
            campaign.record(row.name, 1.0)
        (plate,) = campaign.plates(learned=False)
        assert plate.describe().endswith("; controls: wt 1, K2A 1")
        assert plate.controls == {parent: (1.0,), "MAVLSTPEAG": (1.0,)}
        # The file holds what it always held: names follow from the parent.
        kept = campaign.store.settings.plates
        assert kept is not None
        assert kept["controls"][1] == {"string": "MAVLSTPEAG", "key": "MAVLSTPEAG"}
        campaign.close_plate(opened)
        kept = campaign.store.settings.plates
        assert kept is not None
        assert kept["controls"][1] == {"string": "MAVLSTPEAG", "key": "MAVLSTPEAG"}


def test_disagreeing_controls_are_called_by_what_they_change_of_a_parent() -> None:
    told = {"P1": (5.0, 3.0), "P2": (6.1, 4.0), "P3": (4.0, 2.1), "P4": (5.0, 9.0)}
    called = {"MKV": "wt", "MKA": "V3A"}
    plates = [Plate(name, 96, 2, 2, controls={"MKV": (a,), "MKA": (b,)}, names=called) for name, (a, b) in told.items()]
    assert differing_controls(plates)["P4"].startswith("the controls wt and V3A read 5 and 9 on P4,")
