"""Variants of a parent are called by what they change of it, wherever a campaign asks for a string."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from seqopt.campaign import Campaign, CampaignError
from seqopt.campaign.tables import write_batch
from seqopt.datasets import read_pool
from seqopt.errors import InputError
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
