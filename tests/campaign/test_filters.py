"""Filters of a campaign: what it suggests under them, and how they change."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from rdkit import Chem
from rdkit.Chem import Descriptors

from seqopt import maximize
from seqopt.campaign import Campaign, CampaignError
from seqopt.datasets import pools
from seqopt.errors import ExhaustedError, InputError
from seqopt.filters.conditions import (
    ColumnCondition,
    Filter,
    Pattern,
    PropertyRange,
    Substructure,
)
from seqopt.spaces import CandidateSet, Space, StringSpace

SMILES = ["C" * n + end for n in range(1, 9) for end in ("O", "N", "C(=O)O", "F", "Cl")]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("SEQOPT_CACHE", str(folder))
    return folder


@pytest.fixture
def library(tmp_path: Path) -> Path:
    path = tmp_path / "library.csv"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["name", "smiles", "price", "Supplier"])
        for number, string in enumerate(SMILES):
            price = {3: "", 4: "on request"}.get(number, number)
            writer.writerow([f"cpd-{number}", string, price, "ACME" if number % 2 else "Enamine"])
    return path


def begin(tmp_path: Path, space: Space | Path, *filters: Filter, **options: object) -> Campaign:
    options = {"objective": "activity", "batch_size": 4, "seed": 3, **options}
    return Campaign.create(tmp_path / "a.seqopt", space, filters=filters, **options)  # type: ignore[arg-type]


def test_only_what_passes_is_ever_suggested_and_all_that_was_measured_teaches(tmp_path: Path, library: Path) -> None:
    filters = [ColumnCondition("PRICE", "<=", "30"), PropertyRange("heavy_atoms", high=7), Substructure("Cl", False)]
    with begin(tmp_path, library, *filters) as campaign:
        allowed = {
            string
            for number, string in enumerate(SMILES)
            if number <= 30 and number not in (3, 4) and "Cl" not in string
            if Chem.MolFromSmiles(string).GetNumHeavyAtoms() <= 7
        }
        assert campaign.filters[0] == ColumnCondition("price", "<=", "30")
        report = campaign.filter_report()
        assert report is not None
        assert report.allowed == len(allowed)
        assert (report.steps[0].reached, report.steps[0].passed) == (40, 29)
        assert report.steps[0].note == "1 empty, 1 not a number: 'on request'"
        # Of strings outside the filters, and outside the library, too.
        campaign.record("CCCCCCCCCl", 9.0)
        campaign.record("CCCCCCCCCCCCBr", 12.0)
        seen: set[str] = set()
        for n in (3, 2, 100):
            batch = campaign.suggest(n)
            for row in batch:
                assert row.string in allowed
                assert row.string not in seen
                seen.add(row.string)
                campaign.record(row.name, float(row.string.count("C")))
        known = {row.string for row in campaign.optimizer().observations.with_status("ok")}
        assert known == seen | {"CCCCCCCCCl", "CCCCCCCCCCCCBr"}
        assert seen == allowed
        assert campaign.status().model["left"] == 0
        assert any("0 candidates that pass the filters" in warning for warning in campaign.status().warnings)
        with pytest.raises(ExhaustedError, match=rf"all {len(allowed)} candidates that pass the filters"):
            campaign.suggest()


def test_a_change_of_filters_is_a_command_and_open_suggestions_stay(tmp_path: Path, library: Path) -> None:
    with begin(tmp_path, library) as campaign:
        first = campaign.suggest()
        assert campaign.set_filters([ColumnCondition("supplier", "==", "acme"), PropertyRange("MW", 50, 100)]) == {
            row.name: why for row in first if (why := _wrong(row.string))
        }
        failing = campaign.status().failing
        assert failing
        assert campaign.suggest() == first
        assert any("would not be suggested any more" in text for text in campaign.status().warnings)
        assert not any(_wrong(row.string) for row in campaign.suggest(more=True))
        with pytest.raises(CampaignError, match="are the filters already"):
            campaign.set_filters(campaign.filters)
        campaign.withdraw(list(failing))
        assert campaign.status().failing == {}
        told = [command.describe() for command in campaign.history() if command.kind == "configure"]
        assert told == ["configure filters (Supplier == acme; MW 50 to 100)"]
        assert campaign.undo().kind == "withdraw"
        assert campaign.status().failing == failing
        assert campaign.undo().kind == "suggest"
        assert campaign.undo().kind == "configure"
        assert campaign.filters == []
        assert campaign.status().failing == {}
        assert campaign.store.check() == []
    with Campaign.open(tmp_path / "a.seqopt") as again:
        assert len({row.string for row in again.suggest(30, more=True)}) == 30


def test_open_suggestions_are_compared_as_the_whole_column_is(tmp_path: Path) -> None:
    path = tmp_path / "stock.csv"
    path.write_text("smiles,stock\nCCO,5.0\nCCCO,5\nCC(C)O,5.0\nCCCCO,on request\nCCCO,5\n")
    filled = ColumnCondition.parse("stock != 'on request'")
    with Campaign.create(tmp_path / "s.seqopt", path, objective="y", batch_size=2, filters=[filled]) as campaign:
        # Text, since not all cells are numbers: what is written 5.0 is not written 5, whoever asks.
        named = {row.name: row.string for row in campaign.suggest(3)}
        failing = campaign.set_filters([ColumnCondition.parse("stock == 5")])
        assert {named[name] for name in failing} == set(named.values()) - {"CCCO"}
        report = campaign.filter_report()
        assert report is not None
        assert report.allowed == 1


def test_rows_that_are_no_candidates_count_as_cells_of_their_column(tmp_path: Path) -> None:
    path = tmp_path / "stock.csv"
    path.write_text("smiles,stock\nCCO,5.0\nCCCO,5\nCCCO,on request\n")
    with Campaign.create(tmp_path / "s.seqopt", path, objective="y", batch_size=2) as campaign:
        campaign.set_filters([ColumnCondition.parse("stock == 5")])
        report = campaign.filter_report()
        assert report is not None
        assert (report.allowed, report.candidates) == (1, 2)


def _wrong(string: str) -> str:
    reasons = []
    if SMILES.index(string) % 2 == 0:
        reasons.append("Supplier is 'Enamine', wanted is Supplier == acme")
    weight = Descriptors.MolWt(Chem.MolFromSmiles(string))  # type: ignore[attr-defined]
    if not 50 <= weight <= 100:
        reasons.append(f"MW is {weight:.4g}, wanted is MW 50 to 100")
    return "; ".join(reasons)


def test_the_same_file_and_filters_give_the_same_suggestions(tmp_path: Path, library: Path) -> None:
    filters = [PropertyRange("MW", 40, 120), ColumnCondition("price", ">", "5")]
    found = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        with begin(folder, library, *filters) as campaign:
            for row in campaign.suggest():
                campaign.record(row.name, float(row.string.count("C")))
            found.append([(row.string, row.mean) for row in campaign.suggest()])
    assert found[0] == found[1]


def test_filters_that_leave_nothing_say_which_removes_how_many(tmp_path: Path, library: Path) -> None:
    with begin(tmp_path, library, ColumnCondition("price", "<", "3"), PropertyRange("MW", 500)) as campaign:
        with pytest.raises(CampaignError) as refused:
            campaign.suggest()
        assert "none of 40 candidates passes the filters" in str(refused.value)
        assert "'price < 3' removes 37 of 40, then 'MW >= 500' removes 3 of 3" in str(refused.value)
        assert campaign.status().counts.open == 0
    other = tmp_path / "other"
    other.mkdir()
    refusal = pytest.raises(CampaignError, match=r"'with the pattern 2' removes \d+ of \d+")
    with begin(other, StringSpace("01", 8), Pattern("2")) as campaign, refusal:
        campaign.suggest()


def test_strings_that_are_made_up_pass_too(tmp_path: Path) -> None:
    with begin(tmp_path, StringSpace("01", 10), Pattern("11"), Pattern("0000", required=False)) as campaign:
        campaign.record("0" * 10, -1.0)  # outside the filters
        campaign.record("1010101010", 2.0)
        for n in (2, 3):
            for row in campaign.suggest(n):
                assert "11" in row.string
                assert "0000" not in row.string
                campaign.record(row.name, float(row.string.count("101")))
        assert campaign.status().model["n"] == 4


def test_filters_that_do_not_fit_are_refused_before_anything_is_written(tmp_path: Path, library: Path) -> None:
    strings = StringSpace("01", 8)
    commas = tmp_path / "commas.csv"
    commas.write_text("smiles;price\n" + "".join(f"{string};1,5\n" for string in SMILES))
    for space, item, message in (
        (strings, PropertyRange("MW", 1), "is for molecules"),
        (strings, ColumnCondition("price", "<", "1"), "needs a library"),
        (library, ColumnCondition("prise", "<", "1"), "no column 'prise'; its columns are 'name', 'price', 'Supplier'"),
        (library, ColumnCondition("supplier", "<", "1"), "holds no numbers"),
        (library, ColumnCondition("supplier", "==", "5"), "holds no numbers"),
        (commas, ColumnCondition("price", "<", "1"), r"holds no numbers \('1,5', .*: write 6\.5 there, not 6,5"),
        (library, ColumnCondition("price", "==", "cheap"), "holds numbers"),
        (library, PropertyRange("MW", 5, 3), "reversed"),
        (library, Substructure("c1"), "not a SMARTS"),
    ):
        with pytest.raises(InputError, match=message):
            begin(tmp_path, space, item)  # type: ignore[arg-type]
    assert not (tmp_path / "a.seqopt").exists()
    with begin(tmp_path, library) as campaign:
        with pytest.raises(InputError):
            campaign.set_filters([ColumnCondition("supplier", "<", "1")])
        assert [command.kind for command in campaign.history()] == ["create"]


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ([ColumnCondition.parse("prices <= 5")], "no column 'prices'.* Did you mean 'price'"),
        ([ColumnCondition.parse("smiles == CO")], r"no column 'smiles'; its columns are 'name', 'price', 'Supplier'"),
        ([ColumnCondition.parse("price <= cheap")], "'cheap' is not one"),
        ([PropertyRange("weight of it", high=5)], "weight of it"),
    ],
)
def test_filters_that_do_not_fit_are_refused_before_any_candidate_is_looked_at(
    tmp_path: Path, library: Path, monkeypatch: pytest.MonkeyPatch, filters: list[Filter], message: str
) -> None:
    def looked_at(*arguments: object, **options: object) -> None:
        raise AssertionError("a candidate was looked at")

    monkeypatch.setattr(pools, "as_smiles", looked_at)
    monkeypatch.setattr(pools, "identity_keys", looked_at)
    with pytest.raises(InputError, match=message):
        begin(tmp_path, library, *filters)
    with pytest.raises(InputError, match=message):
        maximize(lambda strings: [1.0 for _ in strings], str(library), budget=0, filters=filters)
    assert not (tmp_path / "a.seqopt").exists()


def test_a_space_without_accept_cannot_be_narrowed(tmp_path: Path) -> None:
    class Own:
        kind = "text"

        def __init__(self) -> None:
            self.inner = StringSpace("01", 8)
            self.encoder = self.inner.encoder
            self.sample, self.contains, self.key = self.inner.sample, self.inner.contains, self.inner.key
            self.keys_of = self.inner.keys_of

    with pytest.raises(InputError, match="a Own has no accept"):
        begin(tmp_path, Own(), Pattern("1"))


def test_a_pool_of_ones_own_is_narrowed(tmp_path: Path) -> None:
    pool = CandidateSet(SMILES, kind="molecule", tokenizer="characters")
    with begin(tmp_path, pool, Substructure("Cl")) as campaign:
        assert {row.string[-2:] for row in campaign.suggest(6)} == {"Cl"}
        assert campaign.optimizer().space.encoder.tokenizer.name == "characters"
