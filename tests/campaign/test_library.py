"""A library that lives: its rows move, come and go, and its owner calls candidates by names of their own."""

from __future__ import annotations

import random
import zipfile
from collections.abc import Callable
from pathlib import Path

import openpyxl
import pandas as pd
import pytest

from seqopt import maximize
from seqopt.campaign import Campaign, CampaignError
from seqopt.campaign.labels import price_in
from seqopt.campaign.library import key_hashes
from seqopt.campaign.summary import summarize
from seqopt.errors import InputError
from seqopt.filters import ColumnCondition

STRINGS = ["C" * length + end for length in range(1, 13) for end in ("O", "N", "Br")]
HEADER = "compound_id,smiles,supplier,price,stock\n"
ROWS = [f"CPD-{n:03d},{text},{'ACME' if n % 2 else 'Other'},{n}.50,yes\n" for n, text in enumerate(STRINGS)]


def written(path: Path, rows: list[str], header: str = HEADER) -> Path:
    path.write_text(header + "".join(rows))
    return path


@pytest.fixture
def library(tmp_path: Path) -> Path:
    return written(tmp_path / "library.csv", ROWS)


def begun(folder: Path, library: Path, **options: object) -> Campaign:
    return Campaign.create(folder / "a.seqopt", library, objective="pIC50", batch_size=4, **options)  # type: ignore[arg-type]


def measured(campaign: Campaign) -> None:
    for number, row in enumerate(campaign.suggest()):
        campaign.record(row.name, 5.0 + number / 4)


def test_suggestions_do_not_depend_on_the_order_of_rows_or_on_other_columns(tmp_path: Path, library: Path) -> None:
    batches = []
    for number in range(3):
        folder = tmp_path / str(number)
        folder.mkdir()
        rows = list(ROWS)
        random.Random(number).shuffle(rows)
        with begun(folder, written(folder / "library.csv", rows)) as campaign:
            measured(campaign)
            # And while it runs.
            random.Random(number + 9).shuffle(rows)
            written(folder / "library.csv", [row.replace("yes", "no") for row in rows])
            batches.append([(row.string, row.mean, row.identifier) for row in campaign.suggest()])
    assert batches[0] == batches[1] == batches[2]


def test_owners_identifiers_are_understood_everywhere(tmp_path: Path, library: Path) -> None:
    with begun(tmp_path, library, price_column="price") as campaign:
        assert campaign.store.settings.pool["id_column"] == "compound_id"  # type: ignore[index]
        batch = campaign.suggest()
        by_string = dict(zip(STRINGS, [row.split(",")[0] for row in ROWS], strict=True))
        assert [row.identifier for row in batch] == [by_string[row.string] for row in batch]
        assert batch[0].cells["supplier"] in ("ACME", "Other")
        assert "identifier" in batch.to_pandas().columns
        campaign.write_batch(tmp_path / "batch.csv")
        header, first, *_ = (tmp_path / "batch.csv").read_text(encoding="utf-8-sig").splitlines()
        assert header.startswith("identifier,compound_id,smiles")
        assert first.startswith(f"B01-01,{batch[0].identifier},{batch[0].string}")
        # One result by the identifier of a suggestion, one of a candidate that was not suggested.
        (taken,) = campaign.record(str(batch[0].identifier), 5.0)
        assert (taken.suggestion, taken.identifier) == ("B01-01", batch[0].identifier)
        other = next(name for text, name in by_string.items() if text not in {row.string for row in batch})
        (taken,) = campaign.record(other, 6.0)
        assert (by_string[taken.string], taken.suggestion, taken.identifier) == (other, None, other)
        # A table that has nothing but identifiers and values.
        table = tmp_path / "results.csv"
        table.write_text(f"compound_id,pIC50\n{batch[1].identifier},5.5\n{batch[2].identifier},\n")
        assert [row.suggestion for row in campaign.record_file(table)[0]] == ["B01-02"]
        # The column of suggestions takes them, too.
        table.write_text(f"identifier,pIC50\n{batch[2].identifier},7.5\n")
        assert [row.suggestion for row in campaign.record_file(table)[0]] == ["B01-03"]
        table.write_text(f"identifier,compound_id,pIC50\nB01-04,{batch[0].identifier},7.5\n")
        with pytest.raises(CampaignError, match=f"is not B01-04, which is {batch[3].identifier}"):
            campaign.record_file(table)
        # An identifier and the structure of another one: somebody sorted one column by itself.
        third = batch[3]
        swapped = next(row for row in ROWS if third.string not in row.split(",")[1]).split(",")[0]
        for column in ("compound_id", "identifier"):
            table.write_text(f"{column},smiles,pIC50\n{swapped},{third.string},7.5\n")
            with pytest.raises(CampaignError, match=rf"line 2.*{swapped}.* is .*, and not "):
                campaign.record_file(table)
        # The same structure, written otherwise, is no other one.
        table.write_text(f"compound_id,smiles,pIC50\n{third.identifier},{third.string},7.5\n")
        campaign.record_file(table)
        campaign.undo()
        table.write_text("compound_id,pIC50\nCPD-777,7.5\n")
        with pytest.raises(CampaignError, match=r"line 2.*'CPD-777' is not an identifier of a candidate"):
            campaign.record_file(table)
        with pytest.raises(CampaignError, match=r"'CPD-777' is not a valid molecule.*; nor is it an identifier"):
            campaign.record("CPD-777", 5.0)
        with pytest.raises(CampaignError, match=f"is {other} meant"):
            campaign.record(other.lower(), 5.0)
        with pytest.raises(InputError, match=r"'CPD-777' is not a valid molecule.*; nor is it an identifier"):
            campaign.predict(["CPD-777"])
        tables = {part.title: (part.header, part.rows) for part in summarize(campaign)}
        header, rows = tables["Best measured"]
        assert header[1:3] == ("name", "identifier")
        assert ("not suggested", other) in {row[1:3] for row in rows}
        header, rows = tables["Open suggestions"]
        assert {row[header.index("identifier")] for row in rows} == {one.identifier for one in batch[3:]}
        campaign.correct(other, 6.25)
        campaign.withdraw([str(batch[3].identifier)], "sold out")
        assert campaign.status().counts.withdrawn == 1
        assert campaign.status().best.identifier == batch[2].identifier  # type: ignore[union-attr]


def test_a_candidate_that_was_never_suggested_is_withdrawn(tmp_path: Path, library: Path) -> None:
    with begun(tmp_path, library) as campaign:
        gone = [f"CPD-{number:03d}" for number in range(30)]
        campaign.withdraw(gone, "patented")
        assert campaign.store.counts().excluded == 30
        chosen = campaign.suggest(6)
        assert {row.identifier for row in chosen} == {f"CPD-{number:03d}" for number in range(30, 36)}
        with pytest.raises(CampaignError, match="CPD-003 was withdrawn already"):
            campaign.withdraw(["CPD-003"])
        with pytest.raises(CampaignError, match="neither a suggestion nor a candidate"):
            campaign.withdraw(["CCCl"])
        campaign.undo(2)
        assert campaign.store.counts().excluded == 0
        campaign.withdraw(["CPD-003", "CPD-003", STRINGS[3]])
        assert [row.identifier for row in campaign.store.exclusions()] == ["CPD-003"]
        campaign.undo()
        assert len(campaign.suggest(30, more=True)) == 30


def test_candidates_come_and_go_by_commands_that_are_undone(tmp_path: Path, library: Path) -> None:
    with begun(tmp_path, library) as campaign:
        measured(campaign)
        waiting = campaign.suggest()
        sold_out = written(
            tmp_path / "gone.csv", [f"{waiting[0].identifier}\n", "CPD-002\n", "CPD-999\n"], "compound_id\n"
        )
        change = campaign.change_pool(remove=sold_out)
        assert (change.size, change.added, change.removed, change.unknown) == (34, 0, 2, ("CPD-999",))
        assert change.failing == {"B02-01": "is no candidate any more"}
        assert campaign.status().failing == change.failing
        assert "CBr" not in [row.string for row in campaign.suggest(20, more=True)]
        campaign.undo()  # the twenty
        # A further file, whose columns are others.
        more = written(tmp_path / "more.csv", ["X1,CCS\n", "X2,CCCS\n", "X3,CO\n"], "id,smiles\n")
        change = campaign.change_pool(add=more)
        assert (change.size, change.added, change.removed) == (36, 2, 0)  # CO is a candidate already
        assert {"X1", "X2"} <= {row.identifier for row in campaign.suggest(40, more=True)}
        campaign.undo()
        (taken,) = campaign.record("X1", 6.0)
        assert taken.string == "CCS"
        campaign.undo()
        assert campaign.undo().kind == "pool"
        assert campaign.undo().kind == "pool"
        assert len(campaign.space) == 36  # type: ignore[arg-type]
        assert campaign.status().failing == {}
        assert campaign.store.check() == []


def test_a_file_that_calls_another_candidate_by_a_known_identifier_is_refused(tmp_path: Path, library: Path) -> None:
    with begun(tmp_path, library) as campaign:
        clash = written(tmp_path / "clash.csv", ["CPD-001,CCS\n", "CPD-002,BrC\n", "Y1,CCCS\n"], "compound_id,smiles\n")
        with pytest.raises(InputError, match=r"'CPD-001' is CCS there and CN in the library.*identifiers of their own"):
            campaign.change_pool(add=clash)
        # Another writing of the same molecule is the same.
        written(clash, ["CPD-002,BrC\n", "Y1,CCCS\n"], "compound_id,smiles\n")
        assert campaign.change_pool(add=clash).added == 1


def test_rows_that_come_into_the_library_count_when_they_are_added(
    tmp_path: Path, library: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with begun(tmp_path, library) as campaign:
        campaign.change_pool(remove=written(tmp_path / "gone.csv", ["CO\n"], "smiles\n"))
        written(library, [*ROWS[::-1], "CPD-100,CCS,ACME,1,yes\n"])
        assert len(campaign.space) == 35  # type: ignore[arg-type]
        assert "1 candidate has come into" in caplog.text
        change = campaign.change_pool(add=library)
        assert (change.size, change.added, change.removed) == (36, 1, 0)  # CO stays away
        with pytest.raises(CampaignError, match="the candidates already"):
            campaign.change_pool(add=library)
        change = campaign.change_pool(replace=library)
        assert (change.size, change.added, change.removed) == (37, 1, 0)


def test_what_was_removed_from_the_candidates_of_a_run_does_not_come_back(
    tmp_path: Path, library: Path, caplog: pytest.LogCaptureFixture
) -> None:
    maximize(lambda strings: [len(text) for text in strings], str(library), budget=0, initial=3, run_folder=tmp_path)
    with Campaign.open(tmp_path / "campaign.seqopt") as campaign:
        assert campaign.store.library_hashes() == (None, None)
        nothing = written(tmp_path / "none.csv", ["CCCl\n"], "smiles\n")
        with pytest.raises(CampaignError, match="the candidates already"):
            campaign.change_pool(remove=nothing)
        gone = written(tmp_path / "gone.csv", ["CO\n", "CCCl\n"], "smiles\n")
        change = campaign.change_pool(remove=gone)
        assert (change.size, change.added, change.removed, change.unknown) == (35, 0, 1, ("CCCl",))
        assert len(campaign.space) == 35  # type: ignore[arg-type]
        assert "come into" not in caplog.text
        with pytest.raises(CampaignError, match="the candidates already"):
            campaign.change_pool(add=library)


def test_a_library_without_some_rows_is_accepted_before_anything_is_suggested(tmp_path: Path, library: Path) -> None:
    with begun(tmp_path, library) as campaign:
        waiting = campaign.suggest()
        rows = [row for row in ROWS if f",{waiting[0].string}," not in row]
        written(library, rows[1:])
        assert waiting[0].name in campaign.status().failing
        assert campaign.status().failing[waiting[0].name] == "is not in library.csv any more"
        assert campaign.suggest() == waiting
        campaign.record("B01-02", 5.0)
        with pytest.raises(CampaignError, match="lacks 2 of 36 candidates"):
            campaign.suggest(more=True)
        assert campaign.change_pool(replace=library).describe() == "34 candidates now: 0 more, 2 gone"
        assert len(campaign.suggest(more=True)) == 4


def test_what_is_sold_out_by_its_column_is_flagged(tmp_path: Path, library: Path) -> None:
    with begun(tmp_path, library, filters=[ColumnCondition.parse("stock != no")]) as campaign:
        waiting = campaign.suggest()
        assert campaign.status().failing == {}
        rows = [row.replace("yes", "no") if f",{waiting[1].string}," in row else row for row in ROWS]
        written(library, rows)
        assert list(campaign.status().failing) == ["B01-02"]
        assert any("B01-02" in warning for warning in campaign.status().warnings)


def sheet_of_two(path: Path, rows: list[str], note: str = "") -> str:
    book = openpyxl.Workbook()
    table = book.worksheets[0]
    table.title = "Table"
    for row in (HEADER, *rows):
        table.append(row.strip().split(","))
    notes = book.create_sheet("Notes")
    notes.append(["compound_id", "smiles"])
    notes.append([f"N-1{note}", "CCI"])
    book.save(path.with_suffix(".xlsx"))
    return f"{path.with_suffix('.xlsx')}#Table"


def file_of_two(path: Path, rows: list[str], note: str = "") -> str:
    with zipfile.ZipFile(path.with_suffix(".zip"), "w") as archive:
        archive.writestr("table.csv", HEADER + "".join(rows))
        archive.writestr("notes.csv", f"compound_id,smiles\nN-1{note},CCI\n")
    return f"{path.with_suffix('.zip')}#table.csv"


@pytest.mark.parametrize("written_to", [sheet_of_two, file_of_two])
def test_changes_of_one_of_several_tables_are_noticed(
    tmp_path: Path, written_to: Callable[[Path, list[str], str], str]
) -> None:
    library = tmp_path / "library"
    with begun(tmp_path, Path(written_to(library, ROWS, "")), price_column="price") as campaign:
        first, second, *_ = campaign.suggest()
        assert campaign.status().failing == {}
        written_to(library, ROWS, "bis")  # the other table
        assert campaign.status().failing == {}
        # The same object reads what the library says of a candidate anew.
        campaign.record(first.name, failure="did not dissolve")
        written_to(library, [row.replace(f",{row.split(',')[3]},", ",977,") for row in ROWS], "")
        (again,) = campaign.retry_failed()
        assert price_in(again.cells["price"]) == 977
        written_to(library, [row for row in ROWS if f",{second.string}," not in row], "")
        (name, why), *others = campaign.status().failing.items()
        assert (name, others) == (second.name, [])
        assert why.endswith("any more")


def test_a_copied_folder_uses_the_library_beside_it(tmp_path: Path, library: Path) -> None:
    begun(tmp_path, library).close()
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("a.seqopt", "library.csv"):
        (copy / name).write_bytes((tmp_path / name).read_bytes())
    with Campaign.open(copy / "a.seqopt") as campaign:
        assert campaign.status().library == str(copy / "library.csv")
        library.unlink()
        assert len(campaign.suggest()) == 4
    (copy / "library.csv").unlink()
    with Campaign.open(copy / "a.seqopt") as campaign, pytest.raises(CampaignError, match="no longer exists"):
        campaign.suggest(more=True)


def test_what_an_export_holds_is_imported_again(tmp_path: Path, library: Path) -> None:
    with begun(tmp_path, library) as campaign:
        measured(campaign)
        second = campaign.suggest()
        campaign.record(second[0].name, failure="did not dissolve")
        campaign.record(second[1].name, 9.0, standard_error=0.5)
        campaign.record(second[1].name, 8.0, replicate=True)
        campaign.discard(second[1].name, "an outlier", was=9.0)
        campaign.withdraw([second[2].name], "sold out")
        campaign.withdraw(
            [
                next(
                    name
                    for name in ("CPD-000", "CPD-001", "CPD-002", "CPD-003")
                    if name not in {row.identifier for row in campaign.store.suggestions()}
                )
            ]
        )
        campaign.export(tmp_path / "all.csv")
        before = campaign.store.measurements(discarded=True)
        gone = {second[2].key, *(row.key for row in campaign.store.exclusions())}
    folder = tmp_path / "other"
    folder.mkdir()
    with begun(folder, library) as campaign:
        campaign.record_file(tmp_path / "all.csv", history=True, replicates=True)
        after = campaign.store.measurements(discarded=True)
        kept = ("string", "value", "failure", "standard_error", "discarded", "identifier")
        assert [[getattr(row, name) for name in kept] for row in after] == [
            [getattr(row, name) for name in kept] for row in before
        ]
        assert {row.key for row in campaign.store.exclusions()} == gone
        assert campaign.store.exclusions()[0].reason == "sold out"
        predicted = [row.details.get("prediction", {}).get("predicted") for row in after if row.key == second[1].key]
        assert predicted == [pytest.approx(second[1].mean)] * 2
        assert gone.isdisjoint(row.key for row in campaign.suggest(25))
        assert campaign.store.check() == []


def test_identifiers_that_do_not_tell_candidates_apart_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "l.csv", ["A,CO\n", "A,CN\n", "B,CCO\n"], "id,smiles\n")
    with begun(tmp_path, path) as campaign:  # not recognised
        assert campaign.store.settings.pool["id_column"] is None  # type: ignore[index]
    with pytest.raises(InputError, match=r"line 3: 'A' is the identifier of line 2, too"):
        Campaign.create(tmp_path / "b.seqopt", path, objective="y", id_column="id")
    with pytest.raises(InputError, match="no column 'code'"):
        Campaign.create(tmp_path / "b.seqopt", path, objective="y", id_column="code")
    assert not (tmp_path / "b.seqopt").exists()


def test_what_suggestions_cost_is_shown(tmp_path: Path, library: Path) -> None:
    with begun(tmp_path, library, price_column="price") as campaign:
        batch = campaign.suggest()
        prices = [STRINGS.index(row.string) + 0.5 for row in batch]
        assert campaign.status().spending == (0.0, sum(prices), 0)
        campaign.record("B01-01", 5.0)
        campaign.record("B01-02", failure="no yield")
        campaign.withdraw(["B01-03"])
        assert campaign.status().spending == (sum(prices[:2]), prices[3], 0)


@pytest.mark.parametrize(
    ("cell", "price"),
    [
        ("12", 12.0),
        ("12,50 EUR", 12.5),
        ("$1,200.75", 1200.75),
        ("€ 3.5", 3.5),
        ("", None),
        ("ask", None),
        ("1.2.3", None),
    ],
)
def test_prices_are_read_with_their_currency(cell: str, price: float | None) -> None:
    assert price_in(cell) == price


def test_hashes_do_not_depend_on_the_machine() -> None:
    import hashlib

    expected = [int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "little") for key in ("CCO", "é")]
    assert key_hashes(["CCO", "é"]).tolist() == expected


def test_what_is_tried_again_costs_what_it_costs_by_now(tmp_path: Path, library: Path) -> None:
    with begun(tmp_path, library, price_column="price") as campaign:
        (first, *_) = campaign.suggest()
        campaign.record(first.name, failure="did not dissolve")
        table = pd.read_csv(library)
        table.loc[table["compound_id"] == first.identifier, "price"] = 977
        table.to_csv(library, index=False)
        (again,) = campaign.retry_failed()
        assert again.identifier == first.identifier
        assert price_in(first.cells["price"]) != 977
        assert price_in(again.cells["price"]) == 977


def test_the_status_names_every_file_of_candidates(tmp_path: Path, library: Path) -> None:
    more = tmp_path / "more.csv"
    more.write_text("compound_id,smiles,supplier,price\nNEW-1,CCCCCCCCCCCCN,ACME,5\n")
    with begun(tmp_path, library) as campaign:
        assert campaign.status().added == ()
        campaign.change_pool(add=more)
        assert campaign.status().added == (str(more.resolve()),)
        (heading, *_) = summarize(campaign)
        assert str(more.resolve()) in heading.lines[0]


def test_a_control_that_is_no_candidate_is_said_to_be_no_identifier_either(tmp_path: Path) -> None:
    library = tmp_path / "library.csv"
    library.write_text("id,smiles\nCPD-001,CCO\nCPD-002,CCN\nCPD-003,CCC\n")

    def refused(control: str) -> str:
        with pytest.raises(InputError) as refusal:
            Campaign.create(
                tmp_path / "a.seqopt", library, objective="y", id_column="id", plates=8, controls=["CPD-001", control]
            )
        return str(refusal.value)

    assert refused("CPD-999").endswith("; nor is it an identifier of the library")
    assert "'CPD-999' is not a valid molecule" in refused("CPD-999")
    assert refused("cpd-002").endswith("; nor is it an identifier of the library: is CPD-002 meant?")


def test_identifiers_of_a_library_that_is_gone_are_said_to_be_unknown(tmp_path: Path) -> None:
    library = tmp_path / "library.csv"
    library.write_text("id,smiles\nCPD-001,CCO\nCPD-002,CCN\nCPD-003,CCC\n")
    with Campaign.create(tmp_path / "a.seqopt", library, objective="y", id_column="id") as campaign:
        library.unlink()
        gone = (
            r"'CPD-001' is not a valid molecule.*; nor can identifiers be looked up: the library .*library\.csv is not"
        )
        for ask in (lambda: campaign.predict(["CPD-001"]), lambda: campaign.record("CPD-001", 1.0)):
            with pytest.raises((InputError, CampaignError), match=gone):
                ask()
