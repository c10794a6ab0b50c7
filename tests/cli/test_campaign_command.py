"""``seqopt campaign``."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pandas as pd
import pytest

from seqopt.campaign import Campaign, CampaignStore
from seqopt.cli import main
from seqopt.data import Outcome

SMILES = ["C" * n + end for n in range(1, 9) for end in ("O", "N", "F")]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("library.csv").write_text("smiles\n" + "\n".join(SMILES) + "\n")
    return tmp_path


def run(*words: str, fails: bool = False) -> None:
    status = main(["campaign", *words])
    assert bool(status) == fails


def begun() -> None:
    run("new", "kinase", "--pool", "library.csv", "--objective-name", "logS", "--batch", "4", "--seed", "2")


def test_weeks_of_a_campaign(capsys: pytest.CaptureFixture[str]) -> None:
    begun()
    assert Path("kinase.seqopt").exists()
    run("suggest", "--out", "batch.csv")
    with Path("batch.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["identifier"] for row in rows] == ["B01-01", "B01-02", "B01-03", "B01-04"]
    run("record", "B01-01", "-2.5", "--standard-error", "0.1")
    run("record", "B01-02", "--failed", "did not dissolve")
    rows[2]["logS"], rows[3]["logS"] = "-1.5", "-0.5"
    with Path("batch.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows(rows[2:])
    run("record", "batch.csv")
    Path("old.csv").write_text("smiles;logS\nCCCCCCCCCCBr;-6,25\n")
    run("import", "old.csv", "--decimal-comma")
    run("suggest", "-n", "3")
    run("withdraw", "B02-01", "--reason", "too expensive")
    run("undo")
    capsys.readouterr()
    run("status", "--json")
    found = json.loads(capsys.readouterr().out)
    assert found["counts"] | {"batches": 0} == {
        **{"open": 3, "measured": 3, "failed": 1, "withdrawn": 0, "batches": 0},
        **{"strings": 4, "values": 4, "failures": 1, "discarded": 0, "excluded": 0, "lost": 0},
        **{"lost_suggestions": 0, "discarded_suggestions": 0},
    }
    assert found["best"]["value"] == -0.5
    assert found["model"]["n"] == 4
    run("status")
    assert "4 values of 4 strings, 1 failure;" in capsys.readouterr().out
    run("history")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[-1].split()[0].rstrip(":") for line in lines] == [
        *("create", "suggest", "record", "record", "record", "import", "suggest", "withdraw", "undo")
    ]
    run("export", "all.csv")
    exported = Path("all.csv").read_text().splitlines()
    assert len(exported) == 6
    assert sum("-6.25" in line for line in exported) == 1


@pytest.mark.parametrize(
    "words",
    [
        ["--alphabet", "ACGU", "--length", "4-9"],
        ["--protein", "MAGIC"],
        ["--protein", "MAGICK*", "--avoid", "EcoRI", "--stop", "TAA", "--constraint", "gc-window 9 0.2 0.8"],
        ["--grammar", "arithmetic", "--length", "3-9"],
    ],
)
def test_other_spaces(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    run("new", "other", *words, "--objective-name", "y", "--batch", "3", "--minimize")
    run("suggest")
    assert "B01-03" in capsys.readouterr().out


def test_what_genes_are_kept_to_is_said_when_a_campaign_begins(capsys: pytest.CaptureFixture[str]) -> None:
    run("new", "gene", "--protein", "MAGICK", "--avoid", "EcoRI", "--gc", "0.3", "0.6", "--objective-name", "y")
    said = " ".join(capsys.readouterr().out.split())
    assert "kept to: no GAATTC on either strand, GC content 0.3 to 0.6" in said
    run("new", "free", "--protein", "MAGICK", "--objective-name", "y")
    assert "kept to" not in capsys.readouterr().out


def test_a_lost_result_of_a_gene_that_is_left_out_does_not_bring_it_back(capsys: pytest.CaptureFixture[str]) -> None:
    run("new", "gene", "--protein", "EFEFEF", "--avoid", "EcoRI", "--objective-name", "y", "--batch", "2")
    run("record", "GAATTCGAGTTTGAATTT", "--lost", "robot")
    assert "constraints leave it out of the space, so that it is not suggested again" in capsys.readouterr().out
    run("record", "GAGTTTGAGTTTGAATTT", "--lost", "robot")
    assert "it will be suggested again" in capsys.readouterr().out


def test_what_is_wrong_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    def refused(message: str, *words: str) -> None:
        run(*words, fails=True)
        assert message in " ".join(capsys.readouterr().err.split())

    new = ("new", "a", "--objective-name", "y")
    refused("there is no campaign in this folder", "suggest")
    refused("say what to search", *new)
    refused("given: --pool and --protein", *new, "--pool", "library.csv", "--protein", "MAGIC")
    refused("--length goes with --alphabet", *new, "--pool", "library.csv", "--length", "5")
    refused("--alphabet needs --length", *new, "--alphabet", "AB")
    refused("--length is 'five'", *new, "--alphabet", "AB", "--length", "five")
    refused("unknown surrogate", *new, "--pool", "library.csv", "--surrogate", "forest")
    assert not Path("a.seqopt").exists()
    begun()
    refused("kinase.seqopt already exists", "new", "kinase", "--pool", "library.csv", "--objective-name", "y")
    run("suggest")
    capsys.readouterr()
    refused("expected a number (write 6.5, not 6,5, or say --decimal-comma)", "record", "B01-01", "6,5")
    refused("No such option: --partail. Did you mean --partial?", "record", "B01-01", "--partail")
    refused("nothing was recorded", "record", "nonsense", "1.0")
    refused("If it is a string or an identifier, give its value, too, or --failed REASON", "record", "B01-01")
    refused("give its value, too, or --failed REASON", "record", "C" * 300)
    Path("bad.csv").write_text("identifier,logS\nB01-01,high\nB01-02,1\n")
    refused("'high'", "record", "bad.csv")
    refused("has a point, but commas are decimal", "record", "B01-01", "6.5", "--decimal-comma")
    refused("--unit goes with a value or a table", "record", "B01-01", "--failed", "broke", "--unit", "nM")
    Path("comma.csv").write_text("identifier;logS\nB01-01;6,5\n")
    refused("commas are decimal in this table, say so with --decimal-comma", "record", "comma.csv")
    run("record", "bad.csv", "--partial")
    assert "not recorded" in capsys.readouterr().out
    run("new", "second", "--protein", "MAGIC", "--objective-name", "y")
    refused("2 campaigns in this folder (kinase, second): say which", "status")
    run("status", "-c", "second")


def test_a_batch_that_is_smaller_than_was_asked_for_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    begun()
    run("suggest", "-n", "20")
    assert "instead of" not in capsys.readouterr().out
    run("suggest", "--more", "-n", "20")
    assert "note: 4 instead of 20: no other candidate was found" in capsys.readouterr().out
    run("suggest", "-n", "40")
    assert "instead of" not in capsys.readouterr().out


def priced() -> None:
    rows = [f"{smiles},{number},{'no' if number % 3 else 'yes'}" for number, smiles in enumerate(SMILES)]
    Path("library.csv").write_text("smiles,price,stock\n" + "\n".join(rows) + "\n")


def test_a_filter_takes_several_values_of_a_column(capsys: pytest.CaptureFixture[str]) -> None:
    priced()
    Path("library.csv").write_text(Path("library.csv").read_text().replace(",yes", ',"yes, all"'))
    run("new", "a", "--pool", "library.csv", "--objective-name", "y", "--where", "stock in (YES, 'yes, all')")
    run("filter", "--count")
    out = capsys.readouterr().out
    assert '1  stock in (YES, "yes, all")' in out.splitlines()
    assert "8 of 24 candidates pass the filters" in out
    run("filter", "--clear", "--where", "price not in (0, 1.0, 5)")
    run("filter", "--count")
    assert "21 of 24 candidates pass the filters" in capsys.readouterr().out


def test_filters_are_given_shown_changed_and_undone(capsys: pytest.CaptureFixture[str]) -> None:
    def said(*words: str) -> str:
        capsys.readouterr()
        run(*words)
        return capsys.readouterr().out

    priced()
    begin = ("new", "kinase", "--pool", "library.csv", "--objective-name", "logS", "--batch", "3")
    out = said(*begin, "--property", "MW 50..120", "--forbid", "F", "--alerts", "pains,brenk", "--where", "price <= 18")
    assert "only: price <= 18; MW 50 to 120; without F; no PAINS alert; no BRENK alert" in " ".join(out.split())
    counted = said("filter", "--count").splitlines()[4:7]
    assert counted == ["5  no BRENK alert", "4 of 24 candidates pass the filters", "  price <= 18: 19 of 24"]
    out = said("suggest")
    assert out.splitlines()[0] == counted[1]
    assert out.count("B01-0") == 3
    run("filter", "--drop", "4", "--drop", "5", "--where", "stock == yes", "--property", "heavy_atoms < 6")
    out = capsys.readouterr().out
    assert "open suggestion" in out
    assert out.splitlines()[-5:] == [
        *("1  price <= 18", "2  MW 50 to 120", "3  without F", "4  stock == yes", "5  heavy_atoms < 6")
    ]
    assert "fail" in said("status")
    assert len(json.loads(said("status", "--json"))["filters"]) == 5
    assert "configure filters (price <= 18; MW 50 to 120; without F; stock == yes; heavy_atoms < 6)" in " ".join(
        said("history").split()
    )
    run("undo")
    assert len(said("filter").splitlines()) == 5
    assert said("filter", "kinase", "--clear").strip() == "no filters: all may pass"
    assert "pass the filters" not in said("suggest", "--more")


def test_wrong_filters_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    def refused(message: str, *words: str) -> None:
        run(*words, fails=True)
        assert message in " ".join(capsys.readouterr().err.split())

    priced()
    new = ("new", "kinase", "--pool", "library.csv", "--objective-name", "y")
    refused("Did you mean 'price'?", *new, "--where", "prise <= 3")
    refused("write the values in brackets", *new, "--where", "stock in yes, no")
    refused("is reversed", *new, "--property", "MW 500..200")
    refused("not a SMARTS", *new, "--require", "c1cc")
    refused("no catalogue of alerts", *new, "--alerts", "pains,brenc")
    assert not Path("kinase.seqopt").exists()
    run(*new, "--property", "MW >= 900")
    refused("'MW >= 900' removes 24 of 24", "suggest")
    refused("there is no filter 2", "filter", "--drop", "2")
    refused("--list only lists", "filter", "--list", "--clear")
    refused("leave --drop out", "filter", "--clear", "--drop", "1")


def test_a_grammar_of_smiles_takes_filters_of_molecules(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--grammar", "smiles", "--length", "3-9", "--kind", "molecule", "--objective-name", "y", "--batch", "3")
    run("new", "made", *words, "--property", "heavy_atoms <= 6", "--require", "[#7]")
    run("suggest")
    out = capsys.readouterr().out
    assert "random strings pass the filters" in out
    assert out.count("B01-0") == 3


def test_a_report_is_a_plain_table_with_and_without_results(capsys: pytest.CaptureFixture[str]) -> None:
    begun()
    capsys.readouterr()
    run("report")
    out = capsys.readouterr().out
    assert "Nothing has been measured yet." in out
    run("suggest")
    run("record", "B01-01", "-2.5")
    run("record", "B01-02", "--failed", "did [not] dissolve")
    capsys.readouterr()
    run("report", "kinase", "--out", "report.txt")
    text = Path("report.txt").read_text()
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "measured: 1 value of 1 string, 1 failure" in lines
    assert any(line.startswith("1 B01-01") and line.endswith("-2.5 1") for line in lines)
    assert any("B01-02" in line and line.endswith("did [not] dissolve") for line in lines)
    assert sum(line.startswith("B01-0") for line in lines) == 4 + 2  # the batch, and what is open
    run("report", "--out", "nowhere/report.txt", fails=True)
    run("report", "--out", "report.html", fails=True)  # which would not be a page
    assert not Path("report.html").exists()


def test_nothing_that_holds_results_is_written_over(capsys: pytest.CaptureFixture[str]) -> None:
    def refused(message: str, *words: str) -> None:
        run(*words, fails=True)
        assert message in " ".join(capsys.readouterr().err.split())

    begun()
    before = Path("library.csv").read_text()
    refused("library.csv is the library", "suggest", "--out", "library.csv")
    refused("library.csv is the library", "export", "library.csv")
    refused("library.csv is the library", "report", "--out", "library.csv")
    refused("kinase.seqopt is the file of a campaign", "report", "--out", "kinase.seqopt")
    assert Path("library.csv").read_text() == before
    refused("batch.xls: a table is written as .xlsx, .csv or .tsv", "suggest", "--out", "batch.xls")
    refused("all.ODS: a table is written as .xlsx, .csv or .tsv", "export", "all.ODS")
    run("status")
    assert "0 batches suggested" in " ".join(capsys.readouterr().out.split())
    run("suggest", "--out", "batch.csv")
    run("suggest", "--out", "batch.csv")
    header, first, *rest = Path("batch.csv").read_text().splitlines()
    filled = "\n".join([header, first.removesuffix(",,") + "-2.5,,", *rest])
    Path("batch.csv").write_text(filled)
    capsys.readouterr()
    refused("batch.csv holds results in line 2", "suggest", "--more", "--out", "batch.csv")
    assert Path("batch.csv").read_text() == filled


def test_options_that_would_do_nothing_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    def refused(message: str, *words: str) -> None:
        run(*words, fails=True)
        assert message in " ".join(capsys.readouterr().err.split())

    new = ("new", "a", "--objective-name", "y")
    strings = (*new, "--alphabet", "01", "--length", "6")
    refused("--column goes with --pool, not with --alphabet", *strings, "--column", "foo")
    refused("--standardize goes with --pool", *strings, "--standardize")
    refused("--gc goes with --protein: leave it out", *strings, "--gc", "0.4", "0.6")
    refused("unknown constraint 'runs'", *new, "--protein", "MAGIC", "--constraint", "runs")
    refused("--column goes with --pool, not with --protein", *new, "--protein", "MAGIC", "--column", "foo")
    refused("--kind protein does not go with --protein", *new, "--protein", "MAGIC", "--kind", "protein")
    assert not Path("a.seqopt").exists()
    begun()
    run("suggest")
    capsys.readouterr()
    Path("t.csv").write_text("identifier,logS\nB01-01,-2\n")
    refused("--standard-error goes with a value", "record", "t.csv", "--standard-error", "0.2")
    refused("--standard-error goes with a value", "record", "B01-01", "--failed", "lost", "--standard-error", "0.2")
    refused("--column goes with a table", "record", "B01-01", "5", "--column", "foo")
    refused("--partial goes with a table", "record", "B01-01", "5", "--partial")
    run("new", "second", "--protein", "MAGIC", "--objective-name", "y", "--kind", "dna")
    capsys.readouterr()
    refused("two campaigns are named, second and --campaign kinase", "filter", "second", "--campaign", "kinase")
    refused("two campaigns are named", "report", "second", "--campaign", "kinase")
    run("filter", "second", "--campaign", "second.seqopt")


def test_the_best_of_a_logarithmic_campaign_is_shown_as_it_is_ranked(capsys: pytest.CaptureFixture[str]) -> None:
    run("new", "a", "--alphabet", "01", "--length", "8", "--objective-name", "y", "--transform", "log10", "--minimize")
    run("record", "00000000", "10")
    run("record", "00000000", "1000", "--replicate")
    run("record", "00000001", "300")
    capsys.readouterr()
    run("status", "--json")
    best = json.loads(capsys.readouterr().out)["best"]
    assert best["string"] == "00000000"
    assert best["value"] == pytest.approx(100)
    run("status")
    assert "best: 00000000 with 100" in capsys.readouterr().out


def test_a_single_value_far_off_is_noted(caplog: pytest.LogCaptureFixture) -> None:
    begun()
    run("suggest")
    for number in (1, 2, 3):
        run("record", f"B01-0{number}", "-2.5")
    caplog.clear()
    run("record", "b1-4", "-2500")
    assert "times larger than the earlier ones" in caplog.messages[0]


def test_single_results_may_be_limits_and_have_decimal_commas(capsys: pytest.CaptureFixture[str]) -> None:
    begun()
    run("suggest")
    run("record", "B01-01", "<0,25", "--decimal-comma")
    run("record", "B01-02", "≥ 8")
    run("record", "B01-03", "6,5", "--decimal-comma")
    capsys.readouterr()
    run("status", "--json")
    best = json.loads(capsys.readouterr().out)["best"]
    assert (best["value"], best["censored"]) == (8.0, ">")
    for words, message in (
        (("~5",), "says that the value is rough"),
        (("<LOQ",), "is a limit without a number"),
        (("6.5", "--decimal-comma"), "has a point, but commas are decimal"),
        (("<5", "--standard-error", "0.1"), "the value is a limit, which has none"),
    ):
        run("record", "B01-04", *words, fails=True)
        assert message in " ".join(capsys.readouterr().err.split())
    run("correct", "B01-03", ">6")
    run("export", "all.csv")
    with Path("all.csv").open(newline="") as stream:
        assert [row["logS"] for row in csv.DictReader(stream)] == ["<0.25", ">8.0", ">6.0"]
    capsys.readouterr()
    run("status")
    assert "with >8" in capsys.readouterr().out


def test_decimal_commas_of_the_library_go_for_every_number_of_a_result(capsys: pytest.CaptureFixture[str]) -> None:
    Path("library.csv").write_text("smiles;price\n" + "".join(f"{smiles};1,5\n" for smiles in SMILES))
    constraint = Outcome("logS", role="constraint", bound=-5.0)
    Campaign.create(
        "kinase.seqopt", "library.csv", objective="pIC50", decimal_comma=True, constraints=[constraint]
    ).close()
    run("record", "CO", "6,25", "--standard-error", "0,5", "--also", "logS=-1,5")
    run("record", "CO", "7,5", "--replicate", "--standard-error", "0.25")
    run("record", "CN", "<4,0")
    run("record", "CN", "5", "--replicate")
    run("record", "CF", "--failed", "broke", "--also", "logS=2,5")
    run("correct", "CO", "6,5", "--was", "6,25", "--standard-error", "0,75")
    run("discard", "CO", "--was", "7,5")
    run("correct", "CN", ">5,5", "--was", "<4,0")
    with CampaignStore.open(Path("kinase.seqopt")) as store:
        rows = store.measurements(discarded=True)
    assert [(row.string, row.told, row.standard_error, row.discarded) for row in rows if row.value is not None] == [
        ("CO", "7.5", 0.25, ""),
        ("CN", "5", None, None),
        ("CO", "6.5", 0.75, None),
        ("CN", ">5.5", None, None),
    ]
    assert sorted(row.further["logS"] for row in rows if row.further) == [-1.5, 2.5]
    capsys.readouterr()
    run("correct", "CO", "6,5", "--standard-error", "many", fails=True)
    assert "--standard-error is 'many'; expected the standard error" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("value", ["6,5", "<6,5"])
def test_only_options_that_a_command_has_are_named(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    begun()
    run("record", "CO", "6")
    capsys.readouterr()
    run("correct", "CO", value, fails=True)
    said = " ".join(capsys.readouterr().err.split())
    assert "write 6.5, not 6,5" in said
    assert "--decimal-comma" not in said
    run("record", "CO", value, fails=True)
    assert "--decimal-comma" in " ".join(capsys.readouterr().err.split())
    run("record", "CN", "6", "--standard-error", "0,1", fails=True)
    assert "--standard-error is '0,1'" in " ".join(capsys.readouterr().err.split())
    run("record", "CN", "6,0", "--standard-error", "0,1", "--decimal-comma")


def test_results_of_another_assay(capsys: pytest.CaptureFixture[str]) -> None:
    begun()
    run("record", "CO", "-0.5")
    Path("other.csv").write_text("smiles,IC50\n" + "".join(f"{'C' * n}O,{900 - 50 * n}\n" for n in range(1, 6)))
    run("import", "other.csv", "--assay", "[old] assay", "--column", "IC50", "--unit", "nM", fails=True)
    run("import", "other.csv", "--assay", "[old] assay", "--column", "IC50")
    told = " ".join(capsys.readouterr().out.split())
    assert "5 values of [old] assay, 1 of them of strings with a result in this campaign" in told
    assert "1 results of logS are too few to tell what [old] assay is worth" in told
    run("status")
    told = " ".join(capsys.readouterr().out.split())
    assert "logS (maximize): 1 value of 1 string" in told
    assert "learns from 5 values of another assay, [old] assay, which are no results" in told
    run("undo")
    run("status")
    assert "another assay" not in capsys.readouterr().out


def test_several_suggestions_are_withdrawn_together_or_none(capsys: pytest.CaptureFixture[str]) -> None:
    begun()
    run("suggest")
    run("withdraw", "B01-01", "B01-09", "B01-02", fails=True)
    assert "there is no suggestion 'B01-09'" in capsys.readouterr().err
    run("record", "B01-04", "1")
    run("withdraw", "B01-01", "B01-04", fails=True)
    with CampaignStore.open(Path("kinase.seqopt")) as store:
        assert store.counts().withdrawn == 0
    run("withdraw", "B01-01", "b1-2", "--reason", "not made")
    assert "withdrawn: B01-01, b1-2" in capsys.readouterr().out
    with CampaignStore.open(Path("kinase.seqopt")) as store:
        assert [row.suggestion for row in store.withdrawals()] == ["B01-01", "B01-02"]
    run("undo")
    with CampaignStore.open(Path("kinase.seqopt")) as store:
        assert (store.counts().withdrawn, store.counts().open) == (0, 3)


@pytest.mark.parametrize(
    ("space", "searched"),
    [
        (["--pool", "library.csv"], "a file in memory"),
        (["--alphabet", "AB", "--length", "6"], "generated strings"),
    ],
)
def test_a_cluster_is_not_started_for_what_it_does_not_search(
    space: list[str], searched: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def connected(scheduler: str) -> None:
        raise AssertionError(f"{scheduler} was started")

    monkeypatch.setattr("seqopt.distributed.connected", connected)
    run("new", "kinase", *space, "--objective-name", "y", "--batch", "2")
    run("suggest", "--scheduler", "local:2", fails=True)
    told = capsys.readouterr().err
    assert f"--scheduler local:2 searches pools on disk, and this campaign searches {searched}" in told


def test_results_and_libraries_may_be_workbooks() -> None:
    pd.DataFrame({"smiles": SMILES[:6], "y": [1.5, 2, 3, 4, 5, 6]}).to_excel("library.xlsx", index=False)
    run("new", "kinase", "--pool", "library.xlsx", "--objective-name", "logS", "--batch", "2")
    run("suggest", "--out", "batch.xlsx")
    table = pd.read_excel("batch.xlsx")
    table["logS"] = [1.5, -0.5]
    table.to_excel("batch.xlsx", index=False)
    run("record", "batch.xlsx")
    pd.DataFrame({"smiles": ["CCCCCCCCCCBr"], "logS": [2.5]}).to_excel("older.xlsx", index=False)
    run("import", "older.xlsx")
    with CampaignStore.open(Path("kinase.seqopt")) as store:
        assert [row.value for row in store.measurements()] == [1.5, -0.5, 2.5]
    known = pd.DataFrame({"smiles": SMILES[:2], "value": [1.5, 2.0]})
    known.to_excel("known.xlsx", index=False)
    words = ["--initial", "2", "--budget", "1", "--acquisition", "random", "--out", "run"]
    assert main(["search", "library.xlsx", "-o", "column:y", "--known", "known.xlsx", *words]) == 0
    assert pd.read_csv("run/evaluations.csv")["value"][:2].tolist() == [1.5, 2.0]


def test_a_column_of_prices_is_recognised_and_may_be_left_aside(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    Path("library.csv").write_text("smiles,Price (USD),amount\nCCO,10,1\nCCN,20,2\nCCC,30,3\n")
    words = ("--pool", "library.csv", "--objective-name", "y", "--batch", "2")
    run("new", "priced", *words)
    assert caplog.messages == ["prices are those of the column 'Price (USD)' (--price-column none to leave them aside)"]
    caplog.clear()
    run("suggest", "priced")
    assert "these cost" in capsys.readouterr().out
    run("new", "plain", *words, "--price-column", "none")
    run("suggest", "plain")
    assert "these cost" not in capsys.readouterr().out
    assert caplog.messages == []
    # Of two, nobody knows which is meant; one that is named need not be called so.
    Path("library.csv").write_text("smiles,price_usd,price_eur\nCCO,10,1\nCCN,20,2\nCCC,30,3\n")
    run("new", "two", *words)
    run("suggest", "two")
    assert "these cost" not in capsys.readouterr().out
    run("new", "named", *words, "--price-column", "price_eur")
    run("suggest", "named")
    assert "these cost" in capsys.readouterr().out
