"""What a laboratory sends back: taken as it was meant, or every problem named with its row."""

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqopt.campaign import CampaignStore, NewMeasurement, NewSuggestion, Settings
from seqopt.campaign.entries import Remark, ResultEntry, Results, listing
from seqopt.campaign.results import check_entries, read_results
from seqopt.campaign.tables import check_batch_target, measurements_table, write_batch
from seqopt.datasets.sheets import plain_name, read_sheet, write_sheet
from seqopt.errors import InputError

STRINGS = ["aaa", "bbb", "ccc", "ddd", "eee", "fff"]


def identify(string: str) -> str:
    if not string.isalpha():
        raise InputError(f"{string!r} holds more than letters")
    return string.upper()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[CampaignStore]:
    settings = Settings("IC50", unit="nM", string_column="smiles")
    with CampaignStore.create(tmp_path / "campaign.seqopt", settings) as made:
        with made.transaction("suggest", expected_state=1) as change:
            change.add_suggestions([NewSuggestion(string, string.upper(), mean=5.0) for string in STRINGS])
        yield made


def read(store: CampaignStore, text: str, name: str = "results.csv", **options: Any) -> Results:
    path = store.path.parent / name
    path.write_text(text, encoding=options.pop("encoding", "utf-8"))
    return read_results(path, store, identify, **options)


def record(store: CampaignStore, text: str, **options: Any) -> Results:
    with store.transaction("record") as change:
        results = read(store, text, **options)
        assert not results.problems
        change.arguments.update(results.arguments)
        change.add_measurements(results.records)
    return results


def brief(results: Results) -> list[tuple[Any, ...]]:
    return [(row.suggestion, row.string, row.key, row.value, row.failure, row.line) for row in results.records]


def locations(remarks: tuple[Remark, ...]) -> list[tuple[int | None, str | None, str | None]]:
    return [(remark.line, remark.column, remark.value) for remark in remarks]


def test_a_filled_batch_is_read(store: CampaignStore) -> None:
    results = read(
        store,
        "identifier,smiles,predicted_mean,IC50 (nM),standard_error,failure\n"
        "B01-01,aaa,5,6.5,0.1,\n"
        "B01-02,bbb,5,-1e-3,,\n"
        "B01-03,ccc,5,,,no yield\n"
        "B01-04,ddd,5,,,\n"
        ",,,,,\n",
    )
    assert brief(results) == [
        ("B01-01", "aaa", "AAA", 6.5, None, 2),
        ("B01-02", "bbb", "BBB", -0.001, None, 3),
        ("B01-03", "ccc", "CCC", None, "no yield", 4),
    ]
    assert [row.standard_error for row in results.records] == [0.1, None, None]
    assert results.unfilled == (5,)
    assert results.problems == results.warnings == ()
    assert results.columns["value"] == "IC50 (nM)"


@pytest.mark.parametrize(
    "text",
    [
        "identifier,IC50\nB01-02,6.5\n",
        "smiles,IC50\nbbb,6.5\n",
        "SMILES;ic50\nBBB;6.5\n",
        "\ufeffidentifier\tvalue\nb1-2\t6.5\n",
        "\u00ef\u00bb\u00bfidentifier,IC50\nB01\u201302,6.5\n",
        "sep=;\nsuggestion;IC50 [nM];remark\nB01-02;6.5;fine; really\n".replace("fine; really", '"fine; really"'),
        "Identifier ,smiles,IC50,IC50_SEM,,\nB01-02,bbb,6.5,,,\n,,,,,\n,,,,,\n",
        "\n\nidentifier,IC50\n\nB01-02,\u00a06.5 \n",
        "identifier,smiles,IC50\nB01-02,,6.5\n",
        "identifier,measured,IC50\nB01-02,6.5,6.50\n",
        "identifier,value,IC50\nB01-02,6.5,\n",
        "identifier,status,IC50\nB01-02,open,6.5\n",
    ],
)
def test_files_as_people_have_them(store: CampaignStore, text: str) -> None:
    results = read(store, text)
    assert results.problems == ()
    assert [(row.key, row.value) for row in results.records] == [("BBB", 6.5)]


def test_every_problem_of_a_file_is_listed_with_its_row(store: CampaignStore) -> None:
    rows = [
        ("B01-01,aaa,5,,,", None),
        ("B09-01,,5,,,", "is not an identifier of a suggestion: is B01-0. meant?"),
        ("B01-02,ccc,5,,,", "is not B01-02, which is 'bbb'"),
        (",x1,5,,,", "'x1' cannot be used: 'x1' holds more than letters"),
        (",,5,,,", "neither an identifier nor a string"),
        ('B01-03,ccc,"6,5",,,', "'6,5' has a comma: expected a decimal point"),
        ("B01-03,ccc,~5,,,", "'~5' says that the value is rough"),
        ("B01-03,ccc,<LOQ,,,", "'<LOQ' is a limit without a number: expected one such as <0.1"),
        ("B01-03,ccc,>5 nM,,,", "'>5 nM' is a limit, and its number, '5 nM', holds a unit"),
        ("B01-03,ccc,<5,0.1,,", "is a standard error, but the value is a limit"),
        ("B01-03,ccc,6 nM,,,", "holds a unit"),
        ("B01-03,ccc,45%,,,", "holds a unit"),
        ("B01-03,ccc,n.d.,,,", "is not a number: leave the cell empty"),
        ("B01-03,ccc,NaN,,,", "is not a number: leave the cell empty"),
        ("B01-03,ccc,#DIV/0!,,,", "error of the spreadsheet"),
        ("B01-03,ccc,6-May,,,", "looks like a date"),
        ("B01-03,ccc,1\u00a0234,,,", "marks between thousands"),
        ('B01-03,ccc,"1,234.5",,,', "marks between thousands"),
        ("B01-03,ccc,1e999,,,", "is too large"),
        ("B01-03,ccc,\u22126.5,,,", "not a minus"),
        ("B01-03,ccc,1_000,,,", "is not a number"),
        ("B01-03,ccc,good,,,", "is not a number"),
        ("B01-04,ddd,5,0,,", "standard_error': '0' is not positive"),
        ("B01-04,ddd,5,about 1,,", "standard_error': 'about 1' is not a number"),
        ("B01-04,ddd,,0.1,,", "is a standard error, but there is no value"),
        ("B01-05,eee,5,,spilled,", "there is a value, too"),
        ("B01-05,eee,5,,,failed", "there is a value, too"),
        ("B01-05,eee,,,spilled,ok", "the status is 'ok'"),
        ("B01-05,eee,,,,done", "there is no value"),
        ("B01-05,eee,5,,,perhaps", "not a known status"),
        ("B01-05,eee,5,,,ok,7", "has 7 cells where the header has 6"),
        ("B01-06,fff,,,,failed", None),
    ]
    header = "identifier,smiles,IC50,standard_error,failure,status\n"
    results = read(store, header + "".join(f"{row}\n" for row, _ in rows))
    messages: dict[int | None, list[str]] = {}
    for remark in results.problems:
        messages.setdefault(remark.line, []).append(str(remark))
    for line, (row, expected) in enumerate(rows, start=2):
        found = messages.get(line, [])
        if expected is None:
            assert found == []
        else:
            assert any(re.search(expected, message) for message in found), (row, found)
            assert all(message.startswith(f"{store.path.parent / 'results.csv'}, line {line}") for message in found)
    # What is well could be recorded on its own, and says where it comes from.
    assert brief(results) == [("B01-01", "aaa", "AAA", 5.0, None, 2), ("B01-06", "fff", "FFF", None, "failed", 33)]


def test_decimal_commas_are_read_where_one_says_so(store: CampaignStore) -> None:
    text = "smiles;IC50;standard_error\naaa;6,5;0,2\nbbb;-1,25e-3;\nccc;7;\nddd;1,234;\n"
    assert len(read(store, text).problems) == 4
    results = read(store, text, decimal_comma=True)
    assert results.problems == ()
    assert [(row.value, row.standard_error) for row in results.records] == [
        (6.5, 0.2),
        (-0.00125, None),
        (7.0, None),
        (1.234, None),
    ]
    mixed = read(store, "smiles;IC50\naaa;6,5\nbbb;6.5\nccc;1.234,5\nddd;1,2,3\n", decimal_comma=True)
    assert [row.value for row in mixed.records] == [6.5]
    assert [str(remark).partition("': ")[2] for remark in mixed.problems] == [
        "'6.5' has a point, but commas are decimal in this table: write 6,5, or leave --decimal-comma out",
        "'1.234,5' has marks between thousands: expected a plain number",
        "'1,2,3' is not a number: expected one such as 6.5",
    ]


def test_boxes_that_are_ticked_are_no_reasons(store: CampaignStore) -> None:
    text = "smiles,IC50,failure\naaa,5,no\nbbb,,x\nccc,,spilled\nddd,,FALSE\neee,5,none\n"
    results = read(store, text)
    assert results.problems == ()
    assert [(row.key, row.value, row.failure) for row in results.records] == [
        ("AAA", 5.0, None),
        ("BBB", None, "failed"),
        ("CCC", None, "spilled"),
        ("EEE", 5.0, None),
    ]
    assert results.unfilled == (5,)


def test_a_file_of_failures_needs_no_values_but_loses_none(store: CampaignStore) -> None:
    assert len(read(store, "smiles,failure\naaa,spilled\nbbb,lost\n").records) == 2
    misnamed = read(store, "smiles,IC5O,failure\naaa,5,\nbbb,,lost\n")
    assert misnamed.records == ()
    told = str(misnamed.problems[0])
    assert "no column 'IC50', and not every row has a reason" in told
    assert "the columns are 'smiles', 'IC5O', 'failure': if one of them holds the values, name it by --column" in told
    # Those that have none of the roles that are asked for are named as well.
    told = str(read(store, "smiles,outcome\naaa,5\n").problems[0])
    assert "expected 'IC50'" in told
    assert "the columns are 'smiles', 'outcome': if one of them holds the values, name it by --column" in told
    # Of a table that has values, it is not the option that helps.
    assert "--column" not in str(read(store, "compound,IC50\naaa,5\n").problems[0])


def test_several_problems_of_one_row_are_all_listed(store: CampaignStore) -> None:
    results = read(store, "identifier;smiles;IC50;sem\nB07-01;x1;6,5;0,1\n")
    assert locations(results.problems) == [
        (2, "IC50", "6,5"),
        (2, "sem", "0,1"),
        (2, None, "B07-01"),
        (2, None, "x1"),
    ]


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        (
            "compound,activity\naaa,5\n",
            ["expected 'identifier' or 'smiles'.*'compound', 'activity'", "expected 'IC50'"],
        ),
        ("smile,IC5O\naaa,5\n", ["is 'smile' it?", "is 'IC5O' it?"]),
        ("smiles,IC50 (\u00b5M)\naaa,5\n", ["in nM.*If 'IC50 .*' is it, --unit uM .* converts it"]),
        ("smiles,SMILES,IC50\naaa,aaa,5\n", ["columns 'smiles' and 'SMILES' are both taken for the string"]),
        ("Results of May\n\nsmiles,IC50\naaa,5\n", ["line 1: 'Results of May' is not the line .* line 3 is"]),
        ("Column1,Column2\nsmiles,IC50\naaa,5\n", ["line 1: .* line 2 is: delete"]),
        ("B01-01,5\nB01-02,6\n", ["not a line with the names of columns: put one first, such as identifier,IC50"]),
        ('"smiles,IC50"\n"aaa,5"\n', ["is a single cell"]),
        ('smiles,IC50\n"aaa,5\n', ["line 2: .*quotation marks"]),
        ("", ["is empty"]),
        ("smiles,IC50\naaa,5,5\n", ["has 3 cells where the header has 2 .a decimal comma"]),
    ],
)
def test_mangled_headers_are_explained(store: CampaignStore, text: str, messages: list[str]) -> None:
    results = read(store, text)
    assert results.records == ()
    assert len(results.problems) == len(messages)
    for remark, message in zip(results.problems, messages, strict=True):
        assert re.search(message, str(remark)), remark


def test_columns_that_hold_something_and_are_not_used_are_named(store: CampaignStore) -> None:
    def noted(text: str, **options: Any) -> list[str]:
        return [remark.message for remark in read(store, text, **options).warnings if "not used" in remark.message]

    text = "smiles,IC50,L\u00f6slichkeit (uM),Stdabw,empty,\naaa,5,20,,,x\nbbb,6,,0.5,,\n"
    assert noted(text) == ["2 columns are not used: 'L\u00f6slichkeit (uM)', 'Stdabw'"]
    assert noted("smiles,IC50,note\naaa,5,x\n") == ["1 column is not used: 'note'"]
    many = ",".join(f"c{number}" for number in range(14))
    assert noted(f"smiles,IC50,{many}\naaa,5,{','.join('1' * 14)}\n")[0].endswith("'c9' and 4 others")
    # What another column of values is named for counts alone.
    assert noted("smiles,IC50,other\naaa,5,6\n", value_column="other") == ["1 column is not used: 'IC50'"]
    # Identifiers of another campaign are ignored on purpose, and these columns are those of its files.
    written = "identifier,smiles,why,predicted (suggestion),IC50"
    assert noted(f"{written}\nB09-01,aaa,exploit,5.5,5\n", history=True) == []
    about = "key,source,line,command,recorded"
    assert noted(f"smiles,IC50,{about}\naaa,5,AAA,a.csv,2,3,2026-03-02\n") == []
    assert noted("smiles,IC50,line\naaa,5,HEK293\n") == ["1 column is not used: 'line'"]


def test_an_encoding_that_is_guessed_is_told(store: CampaignStore) -> None:
    results = read(store, "smiles,IC50,note\naaa,5,\u00b5M\n", encoding="latin-1")
    assert locations(results.warnings)[0] == (2, None, "aaa,5,\u00b5M")
    assert "Windows-1252" in str(results.warnings[0])
    assert len(results.records) == 1


def test_two_columns_of_values_must_agree(store: CampaignStore) -> None:
    text = "smiles,IC50,value\naaa,1,2\nbbb,3,3.0\nccc,,4\n"
    results = read(store, text)
    assert locations(results.problems) == [(2, "value", "2")]
    assert "disagrees with 1.0 in column 'IC50'" in str(results.problems[0])
    assert [(row.key, row.value) for row in results.records] == [("BBB", 3.0), ("CCC", 4.0)]
    named = read(store, text, value_column="Value")
    assert [row.value for row in named.records] == [2.0, 3.0, 4.0]
    assert "expected 'potency'" in str(read(store, text, value_column="potency").problems[0])


def test_values_without_a_logarithm_are_refused_where_one_is_taken(store: CampaignStore) -> None:
    with store.transaction("configure") as change:
        change.save_settings(Settings("IC50", transform="log10", string_column="smiles"))
    results = read(store, "smiles,IC50\naaa,0\nbbb,-1\nccc,1\n")
    assert locations(results.problems) == [(2, "IC50", "0"), (3, "IC50", "-1")]
    assert "has no logarithm" in str(results.problems[0])


def test_several_results_in_a_file_are_replicates_only_if_somebody_says_so(store: CampaignStore) -> None:
    twice = "smiles,IC50\naaa,1\nbbb,5\nAAA,2\n"
    results = read(store, twice)
    assert [remark.line for remark in results.problems] == [2, 4]
    assert "is also in line 4: if these are replicates, say so" in str(results.problems[0])
    first, second = listing(results.problems)
    assert first == str(results.problems[0])
    assert second.endswith("is also in line 2")
    assert [row.key for row in results.records] == ["BBB"]
    assert [row.value for row in read(store, twice, replicates=True).records] == [1.0, 5.0, 2.0]
    labelled = "smiles,IC50,replicate\naaa,1,a\nAAA,2,b\n"
    assert [(row.value, row.replicate) for row in read(store, labelled).records] == [(1.0, "a"), (2.0, "b")]
    for replicates in (False, True):
        same = read(store, labelled.replace("b\n", "a\n"), replicates=replicates)
        assert [remark.line for remark in same.problems] == [2, 3]
    half = labelled.replace(",b\n", ",\n")
    assert len(read(store, half).problems) == 2
    assert len(read(store, half, replicates=True).records) == 2
    equal = read(store, "smiles,IC50\naaa,1\nAAA,1\n", replicates=True)
    assert len(equal.records) == 2
    assert "the same value in line 3: a copy?" in str(equal.warnings[0])


def test_results_of_what_is_measured_are_replicates_only_if_somebody_says_so(store: CampaignStore) -> None:
    record(store, "smiles,IC50,failure,replicate\naaa,1,,a\nbbb,,spilled,\nccc,,lost,\n", name="first.csv")
    again = "smiles,IC50,failure\naaa,2,\nbbb,3,\nccc,,lost again\n"
    results = read(store, again)
    assert [remark.line for remark in results.problems] == [2, 4]
    assert "has a result already: 1.0 from" in str(results.problems[0])
    assert "first.csv, line 2, by command 3" in str(results.problems[0])
    assert "it failed (lost)" in str(results.problems[1])
    assert [(row.key, row.value) for row in results.records] == [("BBB", 3.0)]
    assert any("so far it failed (spilled)" in str(remark) for remark in results.warnings)
    assert len(read(store, again, replicates=True).records) == 3
    # A label that is new makes a replicate, one that is there already does not.
    assert len(read(store, "smiles,IC50,replicate\naaa,2,b\n").records) == 1
    for replicates in (False, True):
        labelled = read(store, "smiles,IC50,replicate\naaa,2,a\n", replicates=replicates)
        assert "has replicate 'a' already" in str(labelled.problems[0])
    equal = read(store, "smiles,IC50\naaa,1\n", replicates=True)
    assert "has exactly this value already" in str(equal.warnings[0])


def test_the_same_file_is_never_recorded_twice(store: CampaignStore) -> None:
    text = "smiles,IC50\naaa,1\nbbb,2\n"
    record(store, text, name="first.csv")
    plain = read(store, text, name="copy.csv")
    assert [remark.line for remark in plain.problems] == [2, 3]
    assert any("this very file was recorded already, by command 3" in str(remark) for remark in plain.warnings)
    meant = read(store, text, name="copy.csv", replicates=True)
    assert meant.records == ()
    assert "this very file was recorded already, by command 3" in str(meant.problems[0])
    store.undo()
    assert len(read(store, text, name="copy.csv").records) == 2


def test_suggestions_that_were_undone_or_withdrawn_are_told(store: CampaignStore) -> None:
    with store.transaction("suggest", expected_state=store.state) as change:
        change.add_suggestions([NewSuggestion("ggg", "GGG")])
    store.undo()
    with store.transaction("withdraw") as change:
        change.withdraw(["B01-01"], "too dear")
    results = read(store, "identifier,IC50\nB02-01,1\nB01-01,2\n")
    assert "is a suggestion that command 4 took back: give the string instead" in str(results.problems[0])
    assert [row.key for row in results.records] == ["AAA"]
    assert "B01-01 was withdrawn" in str(results.warnings[0])


def test_a_filled_in_table_of_a_batch_that_was_taken_back_is_recorded_by_its_strings(store: CampaignStore) -> None:
    with store.transaction("suggest", expected_state=store.state) as change:
        change.add_suggestions([NewSuggestion("ggg", "GGG")])
    store.undo()
    results = read(store, "identifier,smiles,IC50\nB02-01,ggg,1\n")
    assert [(row.key, row.suggestion, row.value) for row in results.records] == [("GGG", None, 1.0)]
    other = read(store, "identifier,smiles,IC50\nB02-01,xxx,1\n")
    assert "command 4 took back: give the string instead" in str(other.problems[0])


def test_long_strings_are_told_apart_by_what_differs(store: CampaignStore) -> None:
    gene = "ATGGCT" * 15
    with store.transaction("suggest", expected_state=store.state) as change:
        change.add_suggestions([NewSuggestion(gene, gene)])
    problem = str(read(store, f"identifier,smiles,IC50\nB02-01,{gene[:-1]}C,1\n").problems[0])
    assert problem.endswith("...': T90C")


def test_strings_that_were_never_suggested_are_taken_and_told(store: CampaignStore) -> None:
    results = read(store, "smiles,IC50\nxxx,5\nyyy,4\n")
    assert [(row.key, row.suggestion) for row in results.records] == [("XXX", None), ("YYY", None)]
    assert "2 strings were never suggested; this is not a problem (lines 2, 3)" in str(results.warnings[0])
    # In an import from elsewhere identifiers mean nothing.
    elsewhere = read(store, "identifier,smiles,IC50\nB01-02,xxx,5\nB07-01,yyy,4\n", history=True)
    assert (elsewhere.problems, elsewhere.warnings) == ((), ())
    assert [(row.key, row.suggestion) for row in elsewhere.records] == [("XXX", None), ("YYY", None)]


def test_values_in_another_unit_are_noticed(store: CampaignStore) -> None:
    def warnings(text: str) -> list[tuple[int | None, str]]:
        return [(remark.line, str(remark)) for remark in read(store, text).warnings]

    filled = "identifier,IC50\n" + "".join(f"B01-0{number},{{}}\n" for number in range(1, 6))
    assert warnings(filled.format(5, 60, 0.7, 400, 8)) == []
    ((line, message),) = warnings(filled.format(5000, 6000, 7000, 4000, 8000))
    assert line is None
    assert "about 1,200 times larger than was predicted: are they in the unit of the campaign (nM)" in message
    ((line, message),) = warnings(filled.format(5, 6, 7000, 4, 8))
    assert (line, "1,167 times the usual value (6)" in message) == (4, True)
    ((line, message),) = warnings(filled.format(5, 6, 0.007, 4, 8))
    assert (line, "1/714 of the usual value (5)" in message) == (4, True)
    record(store, filled.format(5000, 6000, 7000, 4000, 8000))
    ((line, message),) = warnings("identifier,IC50\nB01-06,5\n")
    assert (line, "times smaller than the earlier ones" in message) == (None, True)
    assert warnings("identifier,IC50\nB01-06,5000\n") == []


@pytest.mark.parametrize(
    ("facts", "values", "far", "near"),
    [
        (Settings("pIC50"), (4.5, 7.5), (640.0, 64.0, 74.0, 13.6, -1.6), (9.9, 13.4, 0.5)),
        (Settings("potency", unit="-log10 M"), (6.0, 6.2), (64.0,), (8.5, 4.0)),
        (Settings("yield", unit="%"), (20.0, 60.0), (1000.0, -400.0), (99.0, 400.0, 0.0)),
        # All alike: the first that differs is no mistake.
        (Settings("yield", unit="%"), (0.0, 0.0), (), (40.0,)),
        (Settings("IC50", unit="nM"), (20.0, 60.0), (), (1000.0,)),
        (Settings("titre", transform="log10"), (20.0, 60.0), (), (1000.0,)),
    ],
)
def test_values_far_outside_all_earlier_ones_are_noticed(
    tmp_path: Path,
    facts: Settings,
    values: tuple[float, float],
    far: tuple[float, ...],
    near: tuple[float, ...],
) -> None:
    def notes(text: str) -> list[str]:
        path = tmp_path / "new.csv"
        path.write_text(f"smiles,{facts.objective}\n{text}")
        results = read_results(path, store, str.upper, history=True)
        assert not results.problems
        return [str(remark) for remark in results.warnings if " far from all others" in str(remark)]

    with CampaignStore.create(tmp_path / "far.seqopt", facts) as store:
        low, high = values
        for number in range(7):
            with store.transaction("record") as change:
                change.add_measurements([NewMeasurement(f"K{number}", f"K{number}", (low, high)[number % 2])])
        # Seven do not say what is usual.
        assert [note for value in far for note in notes(f"xxx,{value}\n")] == []
        with store.transaction("record") as change:
            change.add_measurements([NewMeasurement("K7", "K7", high)])
        for value in far:
            (note,) = notes(f"xxx,{value}\n")
            assert f"'{value:g}' is far from all others, which lie between {low:g} and {high:g}" in note
            assert "seqopt campaign correct xxx NUMBER" in note
        assert [note for value in near for note in notes(f"xxx,{value}\n")] == []
        if len(far) > 1:
            (note,) = notes(f"xxx,{far[0]}\nyyy,{(low + high) / 2}\nzzz,{far[1]}\n")
            assert "2 values are far from all others" in note
            assert "(lines 2, 4)" in note
            # A limit says what an assay can resolve.
            assert notes(f"xxx,>{far[0]}\n") == []


def test_values_close_to_zero_are_no_mistakes_among_those_of_both_signs(store: CampaignStore) -> None:
    values = [-1.2, 1.1, -0.9, 1.0, -0.002, 0.8]
    rows = [f"{string},{value}\n" for string, value in zip(STRINGS, values, strict=True)]
    assert read(store, "smiles,IC50\n" + "".join(rows)).warnings == ()
    record(store, "smiles,IC50\n" + "".join(rows[:5]))
    assert read(store, f"smiles,IC50\n{STRINGS[5]},0.001\n").warnings == ()
    (remark,) = read(store, f"smiles,IC50\n{STRINGS[5]},-900\n").warnings
    assert "900 times larger" in remark.message


def test_values_that_span_decades_are_no_mistakes(store: CampaignStore) -> None:
    values = [0.1, 3, 40, 500, 3000, 20000]
    results = read(
        store, "smiles,IC50\n" + "".join(f"{string},{value}\n" for string, value in zip(STRINGS, values, strict=True))
    )
    assert results.warnings == ()


def test_a_single_result_follows_the_same_rules(store: CampaignStore) -> None:
    taken = check_entries([ResultEntry("AAA", value=5.0)], store, identify)
    assert [(row.key, row.value, row.source) for row in taken.records] == [("AAA", 5.0, None)]
    with store.transaction("record") as change:
        change.add_measurements(taken.records)
    assert store.measurements()[0].suggestion == "B01-01"
    again = check_entries([ResultEntry(identifier="b1-1", value=6.0)], store, identify)
    assert str(again.problems[0]).startswith("'b1-1' has a result already: 5.0 by command 3")
    assert check_entries([ResultEntry("aaa", value=6.0)], store, identify, replicates=True).problems == ()
    assert "cannot be used" in str(check_entries([ResultEntry("a1", failure="?")], store, identify).problems[0])
    assert check_entries([ResultEntry("zzz", value=6.0)], store, identify).arguments == {}
    assert "'inf' is not a value" in str(
        check_entries([ResultEntry("zzz", value=math.inf)], store, identify).problems[0]
    )
    with store.transaction("configure") as change:
        change.save_settings(Settings("IC50", transform="log10"))
    assert "'0.0' has no logarithm" in str(check_entries([ResultEntry("zzz", value=0.0)], store, identify).problems[0])


def test_strings_that_are_known_are_not_identified_again(store: CampaignStore) -> None:
    def refuse(string: str) -> str:
        raise AssertionError(string)

    path = store.path.parent / "results.csv"
    path.write_text("identifier,smiles,IC50\nB01-01,aaa,5\n,bbb,5\nB01-03,,5\n")
    assert len(read_results(path, store, refuse).records) == 3


def test_a_batch_comes_back_as_it_was_written(store: CampaignStore) -> None:
    path = store.path.parent / "batch.csv"
    rows = store.suggestions()
    library = {
        "price": [1.5, -2, None, 1e-9, 7, 8],
        "IC50": ["1", "2", "3", "4", "5", "6"],
        "name": ["=cmd|'/C calc'!A0", "+1 (see note)", "-5", "@x", "'tis", 'a "b", c'],
        "failure": ["x"] * 6,
    }
    write_batch(path, rows, store.settings, library)
    # What is in the library under the name of a column to be filled in is not taken for a result.
    results = read_results(path, store, identify)
    assert (results.records, results.problems, results.unfilled) == ((), (), (2, 3, 4, 5, 6, 7))
    sheet = read_sheet(path)
    assert sheet.rows[0][-3:] == ("IC50 (nM)", "standard_error", "failure")
    by_name = dict(zip(sheet.rows[0], zip(*sheet.rows[1:], strict=True), strict=True))
    assert list(by_name["name"]) == library["name"]
    assert list(by_name["IC50 (library)"]) == library["IC50"]
    assert [float(cell) if cell else None for cell in by_name["price"]] == library["price"]
    filled = [[*row[:-3], "0.25", "", ""] for row in sheet.rows[1:]]
    write_sheet(path, sheet.rows[0], filled)
    results = read_results(path, store, identify)
    assert [(row.suggestion, row.string, row.value) for row in results.records] == [
        (row.name, row.string, 0.25) for row in rows
    ]
    with pytest.raises(InputError, match="column 'short' has 1 cells for 6"):
        write_batch(path, rows, store.settings, {"short": [1]})


def test_columns_of_a_library_never_take_the_place_of_ours(store: CampaignStore) -> None:
    path = store.path.parent / "batch.csv"
    with store.transaction("suggest", expected_state=store.state) as change:
        reason = {"kind": "exploit", "nearest": "aaa", "similarity": 0.5}
        change.add_suggestions([NewSuggestion("ggg", "GGG", mean=5.0, reason=reason)])
    names = ["Why", "nearest measured", "similarity", "similarity (library)", "SIMILARITY_", "acquisition", "price"]
    library = {name: [f"of {name}"] for name in names}
    write_batch(path, store.suggestions()[-1:], store.settings, library)
    header, row = read_sheet(path).rows
    assert len({plain_name(name) for name in header}) == len(header)
    cells = dict(zip(header, row, strict=True))
    assert (cells["why"], cells["nearest_measured"], cells["similarity"]) == ("exploit", "aaa", "0.5")
    assert {name: cells[name] for name in header[14:-3]} == {
        "Why (library)": "of Why",
        "nearest measured (library)": "of nearest measured",
        "similarity (library 2)": "of similarity",
        "similarity (library)": "of similarity (library)",
        "SIMILARITY_ (library 3)": "of SIMILARITY_",
        "acquisition (library)": "of acquisition",
        "price": "of price",
    }


@pytest.mark.parametrize("column", ["IC50 (nM)", "standard_error", "failure"])
def test_a_batch_is_never_written_over_results(store: CampaignStore, column: str) -> None:
    path = store.path.parent / "batch.csv"
    check_batch_target(path, store)
    write_batch(path, store.suggestions(), store.settings)
    check_batch_target(path, store)
    header, *rows = read_sheet(path).rows
    at = header.index(column)
    for row in (1, 4):
        rows[row] = (*rows[row][:at], "0.5", *rows[row][at + 1 :])
    path.write_text("\n".join(";".join(row) for row in [header, *rows]))  # as a spreadsheet of another locale saves it
    with pytest.raises(InputError, match=r"batch.csv holds results in lines 3, 6, which would be lost"):
        check_batch_target(path, store)


@pytest.mark.parametrize(
    "text", ["some notes", "smiles,IC50\nCCO,\n", "identifier,smiles,pIC50\nB01-01,aaa,7\n", "PK\x03\x04..."]
)
def test_a_batch_is_never_written_over_something_else(store: CampaignStore, text: str) -> None:
    path = store.path.parent / "batch.csv"
    path.write_text(text)
    with pytest.raises(InputError, match="already exists, and is not a batch of this campaign"):
        check_batch_target(path, store)
    path.write_text("")
    check_batch_target(path, store)
    with pytest.raises(InputError, match="is a folder"):
        check_batch_target(path.parent, store)


VALUES = st.one_of(st.floats(-1e150, 1e150), st.floats(-1, 1), st.integers(-99, 99).map(float))
PLAIN = ("no", "n", "false", "0", "none", "na", "n/a", "-", "yes", "y", "true", "1", "x")
"""Words of a column of failures that are no reasons: whether something failed, and no more."""
WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=6).filter(str.strip)

REASONS = WORDS.filter(lambda word: word.strip().casefold() not in PLAIN)


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(
    results=st.lists(st.tuples(VALUES, st.none() | REASONS, st.none() | st.floats(1e-9, 1e9)), min_size=1, max_size=5),
    strings=st.data(),
)
def test_an_export_is_read_back_exactly(tmp_path_factory: pytest.TempPathFactory, results: Any, strings: Any) -> None:
    folder = tmp_path_factory.mktemp("export")
    texts = strings.draw(st.lists(WORDS.map(str.strip), min_size=len(results), max_size=len(results), unique=True))
    rows = [
        NewMeasurement(text, text, None if failure else value, failure and failure.strip(), None if failure else error)
        for text, (value, failure, error) in zip(texts, results, strict=True)
    ]
    with CampaignStore.create(folder / "one.seqopt", Settings("v")) as one, one.transaction("import") as change:
        change.add_measurements(rows)
    with CampaignStore.open(folder / "one.seqopt") as one:
        write_sheet(folder / "export.csv", *measurements_table(one))
    with CampaignStore.create(folder / "two.seqopt", Settings("v")) as two:
        found = read_results(folder / "export.csv", two, lambda string: string, history=True, force=True)
    assert found.problems == ()
    assert [(row.string, row.value, row.failure, row.standard_error) for row in found.records] == [
        (row.string, row.value, row.failure, row.standard_error) for row in rows
    ]
