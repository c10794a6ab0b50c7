"""Pools on disk in ``seqopt search`` and ``seqopt campaign``."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pandas as pd
import pytest

from seqopt.cli import main

SMILES = ["C" * n + end for n in range(1, 16) for end in ("O", "N", "F", "S")]
QUICK = ["--objective", "logp", "--initial", "5", "--batch", "4", "--seed", "1"]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SEQOPT_CACHE", str(tmp_path / "cache"))
    Path("parts").mkdir()
    for number in range(2):
        rows = [f"{smiles},3" for smiles in SMILES[number::2]]
        Path(f"parts/{number}.csv").write_text("smiles,price\n" + "\n".join([*rows, "C1CC,2"]) + "\n")


def search(source: str, *words: str, out: str = "out", budget: int = 8) -> int:
    return main(["search", source, *QUICK, "--budget", str(budget), "--out", out, *words])


def evaluated(folder: str = "out") -> list[str]:
    return list(pd.read_csv(Path(folder) / "evaluations.csv")["string"])


def rows_of(path: str) -> list[dict[str, str]]:
    with Path(path).open(newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.slow
def test_a_search_on_disk_is_resumed_and_chooses_what_one_in_memory_chooses() -> None:
    decides = ["--strategy", "lfbo", "--keep", "30"]
    assert search("parts", "--on-disk", *decides) == 0
    first = evaluated()
    assert len(set(first)) == 13
    assert len(rows_of("out/rejected.csv")) == 2
    # The files may be moved: what they hold counts.
    Path("parts").rename("moved")
    assert search("moved", "--on-disk", *decides, "--resume", budget=16) == 0
    assert evaluated()[:13] == first
    assert len(set(evaluated())) == 21
    whole = [*SMILES[0::2], *SMILES[1::2]]
    Path("library.csv").write_text("smiles\n" + "\n".join(whole) + "\n")
    assert search("library.csv", "--in-memory", *decides, out="memory", budget=16) == 0
    assert evaluated("memory") == evaluated()


@pytest.mark.slow
def test_other_candidates_are_not_taken_up(capsys: pytest.CaptureFixture[str]) -> None:
    assert search("parts", "--strategy", "bore", budget=4) == 0
    Path("parts/2.csv").write_text("smiles\nCCCCCl\n")
    assert search("parts", "--strategy", "bore", "--resume") != 0
    assert "space.size was 60, is now 61" in capsys.readouterr().err
    assert len(evaluated()) == 9


@pytest.mark.slow
@pytest.mark.parametrize("prefilter", ["lfbo", "mean"])
def test_a_prefilter_on_disk(prefilter: str) -> None:
    words = ["--surrogate", "minmax", "--prefilter", prefilter, "--keep", "20", "--on-disk"]
    assert search("parts", *words) == 0
    first = evaluated()
    assert len(set(first)) == 13
    assert search("parts", *words, "--resume", budget=12) == 0
    assert evaluated()[:13] == first


def campaign(*words: str) -> int:
    return main(["campaign", *words])


BEGIN = ["new", "big", "--pool", "parts/*.csv", "--objective-name", "logS", "--batch", "4"]


def test_a_campaign_on_disk(capsys: pytest.CaptureFixture[str]) -> None:
    assert campaign(*BEGIN, "--strategy", "lfbo") == 0
    assert "60 different molecules from 2 files" in capsys.readouterr().out
    assert campaign("suggest", "--out", "batch.csv") == 0
    rows = rows_of("batch.csv")
    assert len(rows) == 4
    assert {row["smiles"] for row in rows} <= set(SMILES)
    for number, row in enumerate(rows, 1):
        assert campaign("record", row["identifier"], str(-number / 2)) == 0
    known = next(smiles for smiles in SMILES if smiles not in {row["smiles"] for row in rows})
    Path("old.csv").write_text(f"smiles,logS\n{known},-6.25\n")
    assert campaign("import", "old.csv") == 0
    # Where the store has been deleted, the files are prepared again.
    for file in Path("cache/pools").glob("*/*"):
        file.unlink()
    assert campaign("suggest", "-n", "3", "--out", "next.csv") == 0
    further = {row["smiles"] for row in rows_of("next.csv")}
    assert len(further) == 3
    assert further <= set(SMILES) - {known, *(row["smiles"] for row in rows)}
    capsys.readouterr()
    assert campaign("status", "--json") == 0
    counts = json.loads(capsys.readouterr().out)["counts"]
    assert (counts["open"], counts["values"]) == (3, 5)
    assert campaign("report") == 0
    assert "60 candidates on disk, of 2 files" in capsys.readouterr().out
    for words, said in (
        (["filter", "--property", "MW < 100"], "asked while it is prepared, and do not change"),
        (["pool", "--add", "old.csv"], "on disk, and stay those with which it began. For others, begin a campaign"),
    ):
        assert campaign(*words) != 0
        assert said in capsys.readouterr().err
    assert campaign("pool") == 0
    shown = "".join(capsys.readouterr().out.split())
    assert shown.startswith("60candidatesondisk,of")
    assert shown.endswith("parts/1.csv")
    Path("parts/1.csv").write_text("smiles\nCCCCCl\n")
    assert campaign("suggest", "--more") != 0
    assert "1.csv has changed since its candidates were prepared: restore it" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--price-column", "cost"], "0.csv has no column of prices 'cost'; its columns are 'smiles', 'price'"),
        (["--id-column", "code"], "0.csv has no column of identifiers 'code'; its columns are 'smiles', 'price'"),
        (["--property", "MW < 1"], "no candidate passes the filters. 0 of 60 candidates pass the filters"),
        (["--where", "cost < 1"], "the library has no column 'cost'; its columns are 'price'"),
        (["--plates"], "leave --plates out"),
        (["--keep", "5"], "--prefilter lfbo or mean, too"),
        (["--prefilter", "best"], "unknown prefilter 'best'"),
        (["--prefilter", "none", "--keep", "5"], "--prefilter lfbo or mean, too"),
        (["--pool", "parts/0.csv", "--strategy", "lfbo", "--in-memory"], "--pool FILE --on-disk"),
        (
            ["--pool", "parts/0.csv", "--strategy", "lfbo", "--plates"],
            "--strategy lfbo and --plates do not go together",
        ),
    ],
)
def test_what_a_campaign_on_disk_does_not_do(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert campaign(*BEGIN, *words) != 0
    assert said in " ".join(capsys.readouterr().err.split())
    assert not Path("big.seqopt").exists()


@pytest.mark.slow
def test_identifiers_and_prices_of_a_pool_on_disk(capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(2):
        rows = [f"Z{number}{row:03d},{smiles},{row + 0.5} EUR" for row, smiles in enumerate(SMILES[number::2])]
        Path(f"parts/{number}.csv").write_text("id,smiles,price\n" + "\n".join(rows) + "\n")
    assert campaign(*BEGIN, "--strategy", "lfbo", "--price-column", "price") == 0
    assert campaign("suggest", "--out", "batch.csv") == 0
    rows = rows_of("batch.csv")
    names = {smiles: f"Z{number}{row:03d}" for number in range(2) for row, smiles in enumerate(SMILES[number::2])}
    for row in rows:
        assert row["id"] == names[row["smiles"]]
        assert row["price"] == f"{int(row['id'][2:]) + 0.5} EUR"
    # Results are recorded under them, also of what was never suggested.
    assert campaign("record", rows[0]["id"], "-2.5") == 0
    other = next(smiles for smiles in SMILES if smiles not in {row["smiles"] for row in rows})
    assert campaign("record", names[other], "-3.5") == 0
    Path("filled.csv").write_text("id,logS\n" + "".join(f"{row['id']},-1\n" for row in rows[1:3]))
    assert campaign("record", "filled.csv") == 0
    capsys.readouterr()
    assert campaign("status") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "4 values of 4 strings" in said
    total = sum(int(row["id"][2:]) + 0.5 for row in rows[:3])
    assert f"spent: {total:g}" in said
    # The best of those that were called by their names.
    assert f"best: {rows[1]['id']}" in said
    assert campaign("record", "Z9999", "1") != 0
    assert "Z9999" in capsys.readouterr().err
    assert campaign("report") == 0
    assert rows[0]["id"] in capsys.readouterr().out
    assert main(["report", "big.seqopt"]) == 0
    page = Path("big.html").read_text()
    assert rows[0]["id"] in page
    assert rows[0]["price"] in page


def test_a_file_is_prepared_on_disk_for_a_strategy_that_needs_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert campaign("new", "small", "--pool", "parts/0.csv", "--objective-name", "y", "--strategy", "esp") == 0
    assert campaign("suggest") == 0
    assert "B01-01" in capsys.readouterr().out


@pytest.mark.slow
def test_the_table_of_a_run_on_disk_has_identifiers() -> None:
    Path("library.csv").write_text("id,smiles\n" + "".join(f"L{row},{one}\n" for row, one in enumerate(SMILES)))
    assert search("library.csv", "--on-disk", "--strategy", "lfbo", "--keep", "30", budget=4) == 0
    for row in rows_of("out/evaluations.csv"):
        assert row["identifier"] == f"L{SMILES.index(row['string'])}"


@pytest.mark.slow
def test_filters_of_a_pool_on_disk_are_those_of_the_pool_in_memory(capsys: pytest.CaptureFixture[str]) -> None:
    whole = [*SMILES[0::2], *SMILES[1::2]]
    rows = [f"{one},{number % 7}" for number, one in enumerate(whole)]
    Path("library.csv").write_text("smiles,stock\n" + "\n".join(rows) + "\n")
    words = ["--property", "heavy_atoms 3..", "--where", "stock >= 2", "--strategy", "lfbo", "--keep", "30"]
    assert search("library.csv", "--on-disk", *words) == 0
    said = capsys.readouterr()
    assert "candidates pass the filters" in said.err + said.out
    assert search("library.csv", "--in-memory", *words, out="memory") == 0
    assert evaluated() == evaluated("memory")
    assert search("library.csv", "--on-disk", *words, "--resume", budget=12) == 0
    assert len(set(evaluated())) == 17
    assert campaign("new", "big", "--pool", "library.csv", "--objective-name", "y", "--on-disk", *words) == 0
    capsys.readouterr()
    assert campaign("suggest", "--out", "batch.csv") == 0
    assert campaign("report") == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("filters: ")]
    assert set(line.removeprefix("filters: ").split("; ")) == {"stock >= 2", "heavy_atoms >= 3"}
    stock = {one: number % 7 for number, one in enumerate(whole)}
    assert all(stock[row["smiles"]] >= 2 for row in rows_of("batch.csv"))


def test_what_is_missing_of_a_pool_on_disk_is_said_and_an_identifier_of_two_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("parts/0.csv").write_text("id,smiles\nA,CCO\nB,CCN\nC,CCF\n")
    Path("parts/1.csv").write_text("id,smiles\nB,CCN\nA,CCC\nE,CCS\n")
    Path("parts/book.xlsx").touch()
    words = ["new", "big", "--pool", "parts", "--objective-name", "y", "--batch", "5", "--strategy", "lfbo"]
    assert campaign(*words) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "1 of what is in the folder is not read: book.xlsx (save it as .csv)" in said
    assert "'A' of 'CCO' (parts/0.csv, line 2) and 'CCC' (parts/1.csv, line 3)" in said
    assert campaign("suggest", "--out", "batch.csv") == 0
    called = {row["smiles"]: row["id"] for row in rows_of("batch.csv")}
    assert called == {"CCO": "A", "CCN": "B", "CCF": "C", "CCC": "A", "CCS": "E"}
    assert campaign("record", "B", "2") == 0
    capsys.readouterr()
    assert campaign("record", "A", "1") != 0
    assert "'A' is what 2 different candidates are called" in " ".join(capsys.readouterr().err.split())
    assert campaign("record", "CCC", "1") == 0


def test_an_identifier_of_two_is_refused_where_only_one_was_suggested(capsys: pytest.CaptureFixture[str]) -> None:
    Path("parts/0.csv").write_text("id,smiles\nA,CCO\nA,CCN\nC,CCF\nD,CCS\nE,CCBr\n")
    assert campaign("new", "big", "--pool", "parts", "--objective-name", "y", "--strategy", "lfbo") == 0
    assert campaign("record", "CCO", "1.5") == 0
    capsys.readouterr()
    assert campaign("record", "A", "1") != 0
    assert "is what 2 different candidates are called" in " ".join(capsys.readouterr().err.split())
