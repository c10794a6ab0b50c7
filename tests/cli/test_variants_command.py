"""Variants on the command line: searched, named by what they change, read by these names, refused with the reason."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pandas as pd
import pytest

from seqopt.cli import main

WILD = "MKVLSTPEAG"
SCORE = "def score(strings):\n    return [s.count('A') - s.count('P') for s in strings]\n"
QUICK = ["--initial", "4", "--batch", "2", "--budget", "4", "--acquisition", "random", "--no-isolate"]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("score.py").write_text(SCORE)
    # The page fits a model of its own; what it shows of variants has a test of its own.
    monkeypatch.setattr("seqopt.api._write_report", lambda folder: None)
    Path("wt.fasta").write_text(f">wild type\n{WILD[:6]}\n{WILD[6:]}\n")


def search(*words: str) -> int:
    return main(["search", *words, "-o", "score.py:score", "--out", "out", *QUICK])


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert main([*words]) != 0
    said = capsys.readouterr()
    return " ".join((said.out + said.err).split())


def table() -> pd.DataFrame:
    return pd.read_csv("out/evaluations.csv")


def changed(string: str) -> list[int]:
    return [place for place, (one, other) in enumerate(zip(string, WILD, strict=True), start=1) if one != other]


def test_variants_of_a_parent_with_known_results_are_resumed(capsys: pytest.CaptureFixture[str]) -> None:
    Path("known.csv").write_text("mutations,value\nwt,0\nT6A/P7G,2\n")
    words = ["--parent", "wt.fasta", "--mutations", "2", "--positions", "2,5-7"]
    assert search(*words, "--known", "known.csv") == 0
    frame = table()
    assert frame["mutations"].tolist()[:2] == ["wt", "T6A/P7G"]
    assert frame["string"].tolist()[:2] == [WILD, "MKVLSAGEAG"]
    for string, name in zip(frame["string"], frame["mutations"], strict=True):
        assert len(changed(string)) <= 2
        assert set(changed(string)) <= {2, 5, 6, 7}
        assert name == "/".join(f"{WILD[at - 1]}{at}{string[at - 1]}" for at in changed(string)) or name == "wt"
    said = capsys.readouterr().out
    assert "at most 2 mutations at 4 positions: 2,243 strings" in said
    assert "T6A/P7G" in said
    assert (
        main(["search", *words, "--known", "known.csv", "-o", "score.py:score", "--out", "out", *QUICK, "--resume"])
        == 0
    )
    assert table()["string"].tolist() == frame["string"].tolist()
    message = refused(
        capsys,
        "search",
        *words[:3],
        "1",
        *words[4:],
        "--known",
        "known.csv",
        "-o",
        "score.py:score",
        "--out",
        "out",
        *QUICK,
        "--resume",
    )
    assert "mutations" in message


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "pattern"),
    [
        (["--template", "MK[AV]x{1-3}W?"], r"MK[AV][A-Z]{1,3}W?"),
        (["--template", "MKVLSTP[DE]A[GS]", "--parent", WILD, "--mutations", "1"], "MKVLSTP[DE]A[GS]"),
        (["--library", "NNK,NDT", "--parent", WILD, "--positions", "3,4"], "MK[A-Z][CDFGHILNRSVY]STPEAG"),
        (["--library", "NNK,NNK,NNK"], "[A-Z]{3}"),
        (["--template", "ACN{4}R", "--kind", "dna"], "AC[ACGT]{4}[AG]"),
    ],
)
def test_templates_and_libraries(words: list[str], pattern: str) -> None:
    assert search(*words) == 0
    frame = table()
    assert frame["string"].str.fullmatch(pattern).all()
    assert ("mutations" in frame) == ("--parent" in words)


def test_filters_narrow_what_is_searched() -> None:
    assert search("--parent", WILD, "--mutations", "3", "--letters", "NPST", "--forbid-pattern", "N[^P][ST]") == 0
    assert not table()["string"].str.contains("N[^P][ST]").any()


def test_a_pool_may_be_written_as_names_of_variants(capsys: pytest.CaptureFixture[str]) -> None:
    names = ["wt", "K2A", "K2R/S5A", "V3del", "A2G", "K200A", "K2B"]
    rows = [f"v{number},{name}" for number, name in enumerate(names)]
    Path("pool.csv").write_text("id,mutations\n" + "\n".join(rows) + "\n")
    assert main(["search", "pool.csv", "--parent", "wt.fasta", "-o", "score.py:score", "--out", "out", *QUICK]) == 0
    frame = table().sort_values("identifier")
    assert frame[["identifier", "mutations", "string"]].to_numpy().tolist() == [
        ["v0", "wt", WILD],
        ["v1", "K2A", "MAVLSTPEAG"],
        ["v2", "K2R/S5A", "MRVLATPEAG"],
        ["v3", "V3del", "MKLSTPEAG"],
    ]
    assert "v1" in capsys.readouterr().out
    rejected = Path("out/rejected.csv").read_text()
    assert "6,A2G,\"'A2G': position 2 of the parent is K, not A\"" in rejected
    assert "there is no position 200; the parent has those from 1 to 10" in rejected
    assert "unknown letter 'B'" in rejected


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "say what to search: a file of candidates, or variants"),
        (["--parent", WILD], "say what to search"),
        (["--mutations", "2"], "--mutations is of a parent: give --parent"),
        (["--parent", "MKXL", "--mutations", "1"], "the parent has 'X' at position 3"),
        (
            ["--parent", WILD, "--mutations", "3", "--positions", "1,2"],
            "mutations is 3, but only 2 positions may change",
        ),
        (["--parent", WILD, "--positions", "9-12"], "there is no position 11"),
        (["--template", "MK[AV"], "the bracket '[' at character 3 is not closed"),
        (["--template", "MKAV", "--parent", WILD], "is not in the space"),
        (["--template", "loop.txt"], "there is no file loop.txt either"),
        (["--template", "MK[AV]", "--parent", "MKT", "--mutations", "1"], "T at position 3 does not fit the template"),
        (["--template", "MKx?", "--parent", "MK", "--mutations", "1"], "has strings of several lengths"),
        (["--library", "NNX"], "'X' at place 3 of the codon"),
        (["--library", "NNK", "--mutations", "2"], "--mutations does not go with --library"),
        (["--parent", "none.fasta", "--mutations", "1"], "none.fasta"),
        (
            ["--parent", WILD, "--mutations", "1", "--tokenizer", "characters"],
            "--tokenizer is for a list of candidates",
        ),
        (["pool.csv", "--parent", WILD, "--mutations", "1"], "give a list of candidates, pool.csv, or variants"),
    ],
)
def test_what_cannot_be_searched_is_refused(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert message in refused(capsys, "search", *words, "-o", "score.py:score", "--out", "out", *QUICK)
    assert not Path("out").exists()


def test_a_campaign_keeps_its_parent_and_reads_names(capsys: pytest.CaptureFixture[str]) -> None:
    new = ["campaign", "new", "enzyme", "--objective-name", "activity", "--batch", "3", "--acquisition", "random"]
    assert main([*new, "--parent", "wt.fasta", "--mutations", "2", "--positions", "2-6"]) == 0
    assert "at most 2 mutations at 5 positions" in capsys.readouterr().out
    assert main(["campaign", "suggest", "enzyme", "--out", "batch.csv"]) == 0
    with Path("batch.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert all(len(row["mutations"].split("/")) <= 2 and row["mutations"] for row in rows)
    # What the plate reader wrote knows variants by their names only.
    names = [row["mutations"] for row in rows]
    Path("results.csv").write_text("variant,activity\n" + "".join(f"{name},{n}.5\n" for n, name in enumerate(names)))
    assert main(["campaign", "record", "results.csv", "--campaign", "enzyme"]) == 0
    assert main(["campaign", "record", "K2R/S5A", "7.5", "--campaign", "enzyme"]) == 0
    assert main(["campaign", "export", "all.csv", "--campaign", "enzyme"]) == 0
    exported = pd.read_csv("all.csv")
    assert set(exported["mutations"]) == {*names, "K2R/S5A"}
    assert exported["string"].str.len().eq(len(WILD)).all()
    assert "position 2 of the parent is K, not A" in refused(
        capsys, "campaign", "record", "A2R", "1.5", "--campaign", "enzyme"
    )
    assert main(["campaign", "suggest", "enzyme"]) == 0


def test_a_campaign_on_a_list_of_names(capsys: pytest.CaptureFixture[str]) -> None:
    names = ["wt", "K2A", "K2R/S5A", "V3A", "L4A", "T6A"]
    Path("pool.csv").write_text("id,variant,price\n" + "".join(f"v{n},{name},{n}\n" for n, name in enumerate(names)))
    new = ["campaign", "new", "enzyme", "--objective-name", "activity", "--batch", "3", "--pool", "pool.csv"]
    assert main([*new, "--parent", WILD, "--price-column", "price", "--where", "price <= 4"]) == 0
    assert main(["campaign", "suggest", "enzyme", "--out", "batch.csv"]) == 0
    with Path("batch.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert {row["mutations"] for row in rows} < set(names)
    for row in rows:
        assert row["id"] == f"v{names.index(row['mutations'])}"
        assert len(row["sequence"]) == len(WILD)
        assert float(row["price"]) <= 4
    assert main(["campaign", "record", "V3A", "2.5", "--campaign", "enzyme"]) == 0
    capsys.readouterr()
    assert main(["campaign", "status", "enzyme", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["best"]["value"] == 2.5


def test_a_campaign_begins_with_variants_that_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    new = ["campaign", "new", "enzyme", "--objective-name", "activity", "--batch", "3", "--acquisition", "random"]
    new += ["--parent", "wt.fasta", "--mutations", "2", "--include", "first.csv"]
    Path("first.csv").write_text("variant\nwt\nK2R_S5A\nA2R\n")
    assert "to be included in the first batch: 'A2R': position 2 of the parent is K" in refused(capsys, *new)
    assert not Path("enzyme.seqopt").exists()
    Path("first.csv").write_text("variant\nwt\nK2R_S5A\n")
    assert main(new) == 0
    assert main(["campaign", "suggest", "enzyme", "--out", "batch.csv"]) == 0
    batch = pd.read_csv("batch.csv")
    assert batch["string"].tolist()[:2] == [WILD, "MRVLATPEAG"]
    assert main(["campaign", "record", "p.[Lys2Arg;Ser5Ala]", "7.5", "--campaign", "enzyme"]) == 0
    capsys.readouterr()
    assert main(["campaign", "status", "enzyme"]) == 0
    assert "best: K2R/S5A, MRVLATPEAG with 7.5" in capsys.readouterr().out
    assert main(["campaign", "status", "enzyme", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["best"]["mutations"] == "K2R/S5A"


def test_controls_may_be_given_by_the_names_of_variants(capsys: pytest.CaptureFixture[str]) -> None:
    new = ["campaign", "new", "enzyme", "--objective-name", "activity", "--batch", "3", "--plates", "--plate-size", "6"]
    new += ["--parent", "wt.fasta", "--mutations", "2"]
    said = refused(capsys, *new, "--controls", "wt,A2R")
    assert "to be measured on every plate: 'A2R': position 2 of the parent is K" in said
    assert not Path("enzyme.seqopt").exists()
    assert f"the control '{WILD}' is given twice" in refused(capsys, *new, "--controls", f"wt,{WILD}")
    assert main([*new, "--controls", "WT,K2R/S5A"]) == 0
    assert main(["campaign", "suggest", "enzyme", "--out", "batch.csv"]) == 0
    batch = pd.read_csv("batch.csv")
    controls = batch[batch["why"] == "control"]
    assert controls["string"].tolist() == [WILD, "MRVLATPEAG"]
    assert controls["mutations"].tolist() == ["wt", "K2R/S5A"]
    # Without a parent a name is no string, and what to do is said.
    Path("pool.csv").write_text(f"sequence\n{WILD}\nMRVLATPEAG\nMRVLSTPEAG\n")
    listed = ["campaign", "new", "listed", "--objective-name", "activity", "--batch", "2", "--plates"]
    said = refused(capsys, *listed, "--pool", "pool.csv", "--kind", "protein", "--controls", "K2R")
    assert "the control 'K2R' cannot be used" in said
    assert "If it names a variant, say of what: --parent (parent=)" in said


def test_a_search_begins_with_variants_that_are_named() -> None:
    Path("first.csv").write_text("variant\nwt\nK2R/S5A\n")
    assert search("--parent", "wt.fasta", "--mutations", "2", "--include", "first.csv") == 0
    assert table()["mutations"].tolist()[:2] == ["wt", "K2R/S5A"]


def test_a_table_of_which_one_column_was_sorted_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    new = ["campaign", "new", "enzyme", "--objective-name", "activity", "--batch", "3", "--acquisition", "random"]
    assert main([*new, "--parent", "wt.fasta", "--mutations", "2"]) == 0
    assert main(["campaign", "suggest", "enzyme", "--out", "batch.csv"]) == 0
    batch = pd.read_csv("batch.csv")
    batch["activity"] = [1.0, 2.0, 3.0]
    names = batch["mutations"].tolist()
    batch["mutations"] = [names[1], names[0], names[2]]
    batch.to_csv("sorted.csv", index=False)
    said = refused(capsys, "campaign", "record", "sorted.csv", "--campaign", "enzyme")
    assert f"line 2: '{names[1]}' is not {names[0]}, the variant of the string in the same row" in said
    assert f"line 3: '{names[0]}' is not {names[1]}" in said
    assert "line 4" not in said
    batch.drop(columns="string").to_csv("sorted.csv", index=False)
    said = refused(capsys, "campaign", "record", "sorted.csv", "--campaign", "enzyme")
    assert f"line 2: 'B01-01 {names[1]}' is not B01-01" in said or "is not B01-01" in said
    # Names by another numbering, or none, are nobody's mistake.
    batch["mutations"] = ["A900G", "", "2"]
    batch.to_csv("own.csv", index=False)
    assert main(["campaign", "record", "own.csv", "--campaign", "enzyme"]) == 0


def test_messages_call_variants_as_they_were_called(capsys: pytest.CaptureFixture[str]) -> None:
    new = ["campaign", "new", "enzyme", "--objective-name", "activity", "--batch", "3", "--acquisition", "random"]
    assert main([*new, "--parent", "wt.fasta", "--mutations", "2", "--positions", "2-6"]) == 0
    assert main(["campaign", "record", "K2R", "1", "--campaign", "enzyme"]) == 0
    Path("results.csv").write_text("variant,activity\nG10A,1\nk2r,2\nV3A,1\nV3A,2\n")
    said = refused(capsys, "campaign", "record", "results.csv", "--campaign", "enzyme")
    assert "line 2: 'G10A' cannot be used" in said
    assert "line 3: 'k2r' has a result already" in said
    assert "line 4: 'V3A' is also in line 5" in said


def test_known_results_may_have_decimal_commas(capsys: pytest.CaptureFixture[str]) -> None:
    Path("known.csv").write_text("mutations;value\nwt;0,5\nT6A/P7G;1,25\n")
    words = ["--parent", "wt.fasta", "--mutations", "2", "--positions", "2,5-7"]
    said = refused(capsys, "search", *words, "-o", "score.py:score", "--known", "known.csv", "--out", "out")
    assert "If commas are decimal in this table, say so with --decimal-comma" in said
    # What is wrong with them stands alone, and not below the heading of a search.
    assert "maximizing" not in said
    assert "ParentSpace" not in said
    assert "step" not in said
    assert search(*words, "--known", "known.csv", "--decimal-comma") == 0
    told = capsys.readouterr().out
    order = [told.index(text) for text in ("ParentSpace(", "note: what is known from", "maximizing", "scored")]
    assert order == sorted(order)
    assert table()["value"].tolist()[:2] == [0.5, 1.25]
    said = refused(capsys, "search", *words, "-o", "score.py:score", "--decimal-comma", "--out", "other")
    assert "--decimal-comma is for a list of candidates" in said


def test_known_results_of_a_list_are_read_as_the_list_is(capsys: pytest.CaptureFixture[str]) -> None:
    Path("pool.csv").write_text("name;sequence;y\na;MKV;1,5\nb;MKI;2,5\nc;MKL;3,5\nd;MKA;0,5\n")
    for name, text in (
        ("semicolons.csv", "sequence;value\nMKV;1,5\nMKW;9,5\n"),
        ("commas.csv", "sequence,value\nMKV,1.5\nMKW,9.5\n"),
    ):
        Path(name).write_text(text)
        words = ["pool.csv", "-o", "column:y", "--known", name, "--decimal-comma", "--out", name.removesuffix(".csv")]
        assert main(["search", *words, *QUICK[:-1], "--initial", "2", "--budget", "1"]) == 0
        found = pd.read_csv(f"{name.removesuffix('.csv')}/evaluations.csv")
        assert found["value"][0] == 1.5
        # A known candidate has its identifier, as others do.
        assert found["identifier"][0] == "a"
        # One that is no candidate has none, and nothing else stands in its place.
        (best,) = [line for line in capsys.readouterr().out.splitlines() if line.split()[-1:] == ["MKW"]]
        assert best.split() == ["9.5", "start", "MKW"]


def test_names_of_variants_without_a_parent_hint_at_it(capsys: pytest.CaptureFixture[str]) -> None:
    Path("pool.csv").write_text("name,sequence\na,MKV\nb,MKI\nc,MKL\n")
    assert main(["campaign", "new", "c", "--pool", "pool.csv", "--objective-name", "y", "--batch", "2"]) == 0
    Path("results.csv").write_text("sequence,y\nV3I,2\n")
    hint = "If it names a variant, say of what: --parent (parent=)"
    for words in (["record", "V3I", "2"], ["record", "results.csv"], ["withdraw", "V3I"]):
        assert hint in refused(capsys, "campaign", *words)
    assert hint not in refused(capsys, "campaign", "record", "MK?", "2")
    words = ["search", "pool.csv", "-o", "score.py:score", "--known", "known.csv", "--out", "out"]
    Path("known.csv").write_text("sequence,value\nV3I,2\n")
    assert hint in refused(capsys, *words)


def test_a_variant_is_explained_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--mutations", "2", "--objective-name", "y", "--batch", "3", "--surrogate", "one-hot"]
    assert main(["campaign", "new", "c", "--parent", "wt.fasta", *words, "--acquisition", "mean"]) == 0
    for name, value in (("wt", "1"), ("T6A", "2"), ("P7G", "1.5"), ("K2R", "0.5")):
        assert main(["campaign", "record", name, value]) == 0
    capsys.readouterr()
    assert main(["campaign", "explain", "T6A/P7G"]) == 0
    by_name = capsys.readouterr().out
    assert main(["campaign", "explain", "MKVLSAGEAG"]) == 0
    assert capsys.readouterr().out == by_name
    assert "MKVLSAGEAG" in by_name
    assert "T6A/P7G" in by_name
    assert "position 6 of the parent is T, not A" in refused(capsys, "campaign", "explain", "A6T")
    assert main(["campaign", "predict", "T6A/P7G"]) == 0
    predicted = capsys.readouterr().out.split("\n")
    assert predicted[0].split()[-2:] == ["mutations", "string"]
    assert predicted[1].split()[-2:] == ["T6A/P7G", "MKVLSAGEAG"]
