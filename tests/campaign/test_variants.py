"""Variants of a parent are called by what they change of it, wherever a campaign asks for a string."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from seqopt.campaign import Campaign, CampaignError
from seqopt.campaign.controls import differing_controls
from seqopt.campaign.plates import Plate
from seqopt.campaign.status import side_by_side
from seqopt.campaign.summary import summarize
from seqopt.campaign.tables import write_batch
from seqopt.datasets import read_pool
from seqopt.datasets.pool_store import prepare_pool
from seqopt.errors import InputError
from seqopt.report.campaigns import read_campaign
from seqopt.report.view import view_of
from seqopt.report.ways import ways_of
from seqopt.spaces import CandidateSet, ParentSpace
from seqopt.strings.mutations import mutation_name

PARENT = "MKVLS"


@pytest.fixture
def campaign(tmp_path: Path):
    space = CandidateSet(["MKVLS", "MRVLS", "MKVLE", "MRVLE", "MKVIS", "MKGIS"], kind="protein")
    with Campaign.create(tmp_path / "c.sqlite", space, objective="activity", parent=PARENT) as made:
        yield made


def test_a_variant_is_withdrawn_by_its_name(campaign: Campaign) -> None:
    campaign.withdraw(["S5E/K2R"], "does not express")
    (excluded,) = campaign.store.exclusions()
    assert (excluded.string, excluded.identifier) == ("MRVLE", None)
    suggestion = campaign.suggest(1)[0]
    campaign.withdraw([mutation_name(PARENT, suggestion.string)])
    assert campaign.store.suggestion(suggestion.name).status == "withdrawn"
    with pytest.raises(InputError, match="position 2 of the parent is K, not A"):
        campaign.withdraw(["A2R"])


def test_a_batch_has_the_names_of_variants_once(campaign: Campaign, tmp_path: Path) -> None:
    rows = campaign.suggest(2)
    own = [mutation_name(PARENT, row.string) for row in rows]
    for further, extra in (({"mutations": own}, []), ({"Mutant": own}, []), ({"mutations": ["a", "b"]}, ["a", "b"])):
        path = tmp_path / f"batch-{len(extra)}-{next(iter(further))}.csv"
        write_batch(path, rows, campaign.store.settings, further)
        with path.open(newline="") as file:
            header, *cells = csv.reader(file)
        columns = dict(zip(header, zip(*cells, strict=True), strict=True))
        assert columns["mutations"] == tuple(own)
        assert [list(columns[name]) for name in header if "(library)" in name] == ([extra] if extra else [])


def test_names_of_variants_without_a_parent_are_refused(tmp_path: Path) -> None:
    (tmp_path / "names.csv").write_text("mutations\nK2R\nS5E/K2R\nwt\n")
    with pytest.raises(InputError, match=r"holds names of variants \('K2R', 'S5E/K2R', 'wt'\): say of which parent"):
        read_pool(tmp_path / "names.csv")
    assert read_pool(tmp_path / "names.csv", parent=PARENT).strings == ("MRVLS", "MRVLE", "MKVLS")
    assert read_pool(tmp_path / "names.csv", kind="text").strings == ("K2R", "S5E/K2R", "wt")


WILD = "MKVLSTPEAGHIKLMN"


def on_two_plates(path: Path, space: object, controls: list[str], **options: object) -> Campaign:
    """A campaign with results of two plates, one of whose controls reads far off on the second, and a batch."""
    made = Campaign.create(
        path,
        space,  # type: ignore[arg-type]
        objective="activity",
        batch_size=2,
        plates=12,
        controls=controls,
        **options,  # type: ignore[arg-type]
    )
    for plate, far in (("P1", 0.0), ("P2", 70.0)):
        for place, letter in enumerate("STACDE"):
            value = 10.0 + place + far * (letter == "T")
            made.record(WILD[:4] + letter + WILD[5:], value, context={"plate": plate})
    made.suggest()
    return made


def said_of(campaign: Campaign) -> str:
    """All that is said of its plates: the list of them, its warnings, the status and the page."""
    status = campaign.status()
    found = [plate.describe() for plate in campaign.plates()]
    found += campaign.disagreeing_controls()
    found += [side_by_side(status.settings, status.expected)]
    found += [line for part in summarize(campaign) for line in part.lines]
    ways = ways_of(read_campaign(campaign.store.path), "activity")
    assert ways is not None
    return "\n".join([*found, *ways.sentences])


def test_controls_are_called_variants_of_the_parent_on_plates(tmp_path: Path) -> None:
    with on_two_plates(tmp_path / "a.seqopt", ParentSpace(WILD, 2), ["wt", "S5T"]) as campaign:
        campaign.open_plate("P3")
        said = said_of(campaign)
        assert re.search(r"P2  open, [678] of 12 .*; controls: wt 10, S5T 81", said)
        assert "to come with the next suggestion: wt, S5T\n" in said
        assert "the control S5T reads 81 on P2" in said
        assert re.search(r"Expected to be the best of what all have in common: (wt|[A-Z]\d+[A-Z])", said)
        assert re.search(r"Recommended, by the model's mean of the target: (wt|[A-Z]\d+[A-Z])", said)
        assert not re.search("MKV[A-Z]{9}", said)
        # Data are strings, as before.
        assert set(campaign.plates(learned=False)[-1].controls) == {WILD, "MKVLTTPEAGHIKLMN"}
        (best,) = [part for part in summarize(campaign) if part.title == "Best measured"]
        column, strings = best.header.index("mutations"), best.header.index("string")
        assert ("S5T", "MKVLTTPEAGHIKLMN") in {(row[column], row[strings]) for row in best.rows}
    with Campaign.open(tmp_path / "a.seqopt") as campaign:
        assert "controls: wt " in campaign.plates(learned=False)[-1].describe()


def test_controls_are_called_by_their_identifiers_on_plates(tmp_path: Path) -> None:
    strings = [WILD, *(WILD[:4] + letter + WILD[5:] for letter in "TACDEFGH")]
    rows = "".join(f"V{place:02d},{string}\n" for place, string in enumerate(strings))
    (tmp_path / "library.csv").write_text("id,sequence\n" + rows)
    options = {"kind": "protein", "id_column": "id", "parent": WILD}
    path = tmp_path / "a.seqopt"
    # By its identifier, or by its string, which has one all the same.
    with on_two_plates(path, tmp_path / "library.csv", ["V00", strings[1]], **options) as campaign:
        said = said_of(campaign)
        assert re.search(r"P2  open, [678] of 12 .*; controls: V00 10, V01 81", said)
        assert "the control V01 reads 81 on P2" in said
        assert re.search(r"Expected to be the best of what all have in common: (V\d\d|S5[A-Z]),", said)
        assert re.search(r"Recommended, by the model's mean of the target: (V\d\d|S5[A-Z]),", said)
        assert WILD not in said
        (best,) = [part for part in summarize(campaign) if part.title == "Best measured"]
        column, strings_in = best.header.index("mutations"), best.header.index("sequence")
        assert {("S5T", strings[1]), ("wt", WILD)} <= {(row[column], row[strings_in]) for row in best.rows}
        waiting = next(part for part in summarize(campaign) if part.title == "Open suggestions")
        assert waiting.header[1:4] == ("identifier", "mutations", "sequence")
        assert {row[waiting.header.index("nearest measured")].partition(" ")[0] for row in waiting.rows} <= {
            "wt",
            *(f"S5{letter}" for letter in "TACDE"),
        }
        # Notebooks, too: batches, predictions and what is told of one of them.
        assert re.search(r"S5[A-Z] .* to (wt|S5[A-Z]) = ", str(campaign.suggest(more=True)))
        assert re.search(r"V01 +S5T ", str(campaign.predict(["V01", "V02"])))
        # The page knows the parent that came with the file.
        assert view_of(read_campaign(path), "activity").parent == WILD
        plate = campaign.plates(learned=False)[0]
    assert (plate.names[WILD], set(plate.controls)) == ("V00", set(strings[:2]))


def test_controls_of_a_pool_on_disk_are_called_by_their_identifiers(tmp_path: Path) -> None:
    strings = [WILD[:4] + one + two + WILD[6:] for one in "ACDEFGH" for two in "ACDEFGH"]
    rows = "".join(f"V{place:02d},{string}\n" for place, string in enumerate(strings))
    (tmp_path / "library.csv").write_text("id,sequence\n" + rows)
    store = prepare_pool(
        tmp_path / "library.csv",
        column="sequence",
        kind="protein",
        id_column="id",
        folder=tmp_path / "store",
        workers=1,
    )
    with Campaign.create(
        tmp_path / "a.seqopt", store, objective="activity", batch_size=3, plates=12, controls=["V07", strings[9]]
    ) as campaign:
        campaign.open_plate("P1")
        (plate,) = campaign.plates(learned=False)
        assert plate.missing == (strings[7], strings[9])
        assert "to come with the next suggestion: V07, V09" in plate.describe()


def test_two_controls_that_differ_are_named_as_they_are_called() -> None:
    read = [(5.0, 3.0), (6.1, 4.0), (4.0, 2.1), (5.0, 9.0)]
    plates = [
        Plate(f"P{place}", 96, 2, 2, controls={"MKV": (a,), "MRV": (b,)}, names={"MKV": "wt", "MRV": "K2R"})
        for place, (a, b) in enumerate(read, start=1)
    ]
    assert "the controls wt and K2R read 5 and 9 on P4" in differing_controls(plates)["P4"]


@pytest.mark.parametrize("option", ["include", "controls"])
def test_lists_of_names_may_have_other_columns(tmp_path: Path, option: str) -> None:
    (tmp_path / "first.csv").write_text("note,mutations\nstarting point,wt\nof last year,K2A\n", encoding="utf-8")
    more = {"plates": 8} if option == "controls" else {}
    with Campaign.create(
        tmp_path / "a.seqopt",
        ParentSpace("MKVLSTPEAG", mutations=2),
        objective="activity",
        batch_size=2,
        seed=1,
        **{option: tmp_path / "first.csv"},
        **more,  # type: ignore[arg-type]
    ) as campaign:
        kind = {"include": "included", "controls": "control"}[option]
        found = [row.string for row in campaign.suggest() if row.reason["kind"] == kind]
        assert found == ["MKVLSTPEAG", "MAVLSTPEAG"]


def test_a_list_of_names_that_do_not_fit_is_refused(tmp_path: Path) -> None:
    (tmp_path / "first.csv").write_text("note,mutations\na,wt\nb,A2K\n", encoding="utf-8")
    with pytest.raises(InputError, match="'A2K': position 2 of the parent is K, not A"):
        Campaign.create(
            tmp_path / "a.seqopt", ParentSpace("MKVLS"), objective="y", batch_size=2, include=tmp_path / "first.csv"
        )


def test_a_mistyped_identifier_is_no_mutation(tmp_path: Path) -> None:
    with Campaign.create(
        tmp_path / "a.seqopt", ParentSpace("MKVLS", mutations=2), objective="y", batch_size=2
    ) as campaign:
        campaign.suggest()
        with pytest.raises(CampaignError, match="'B01-96' is not an identifier of a suggestion, and no variant"):
            campaign.record("B01-96", 6.0)
        with pytest.raises(CampaignError, match="'A2K' is no variant of the parent: position 2 of the parent is K"):
            campaign.record("A2K", 6.0)
