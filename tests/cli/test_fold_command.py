"""``seqopt fold``, as its users type it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from seqopt.cli import main
from seqopt.datasets.genbank import parse_genbank
from seqopt.folding import ExactFolding
from seqopt.objectives import CodonAdaptationIndex, MinimumFreeEnergy
from seqopt.spaces import CodonSpace

PROTEIN = "TIKENIFGVS"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_genes_of_a_protein_that_was_typed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fold", PROTEIN, "--designs", "4", "--within", "2"]) == 0
    said = capsys.readouterr().out
    assert "least score -10.1 kcal/mol" in said
    table = pd.read_csv(f"runs/{PROTEIN}-fold/genes.csv")
    assert list(table) == ["rank", "name", "mfe", "energy", "score", "gc", "gene", "dot_bracket"]
    assert table["rank"].tolist() == [1, 2, 3, 4]
    assert table["energy"][0] == -10.1
    assert table["energy"].max() <= -8.1
    assert table["mfe"].tolist() == MinimumFreeEnergy()(table["gene"]).tolist()
    space = CodonSpace(PROTEIN)
    assert all(map(space.contains, table["gene"]))
    assert Path(f"runs/{PROTEIN}-fold/genes.fasta").read_text().count(">") == 4


@pytest.mark.slow
def test_the_genes_are_where_a_search_begins() -> None:
    assert main(["fold", PROTEIN, "--designs", "5", "--out", "folds"]) == 0
    known = pd.read_csv("folds/genes.csv")
    arguments = ["--initial", "6", "--batch", "2", "--budget", "2", "--acquisition", "random", "--out", "search"]
    assert main(["genes", PROTEIN, "--objective", "mfe", "--known", "folds/genes.csv", *arguments]) == 0
    found = pd.read_csv("search/evaluations.csv").set_index("string")["value"]
    assert found[known["gene"]].tolist() == known["mfe"].tolist()


def test_codons_are_weighed_with_start_and_stop() -> None:
    arguments = ["--cai", "human", "--codon-weight", "3", "--start", "ATG", "--stop", "TGA", "--designs", "1"]
    assert main(["fold", PROTEIN, *arguments, "--out", "out"]) == 0
    row = pd.read_csv("out/genes.csv").iloc[0]
    space = CodonSpace(PROTEIN, start="ATG", stop="TGA")
    assert space.contains(row["gene"])
    index = CodonAdaptationIndex("human")
    assert row["cai"] == pytest.approx(index([row["gene"]])[0], abs=1e-4)
    wanted = ExactFolding(space, adaptation=index, codon_weight=3.0)
    assert row["score"] == pytest.approx(wanted.least_score, abs=0.001)
    # Ten of the twelve codons have synonyms.
    assert row["score"] == pytest.approx(row["energy"] - 3 * 10 * np.log(row["cai"]), abs=0.01)


def test_genes_are_written_as_rna_and_as_genbank_records(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--designs", "2", "--within", "2", "--start", "ATG", "--rna", "--genbank", "--out", "out"]
    assert main(["fold", PROTEIN, *arguments]) == 0
    genes = pd.read_csv("out/genes.csv")["gene"]
    assert all(set(gene) <= set("ACGU") and gene.startswith("AUG") for gene in genes)
    said = capsys.readouterr().out
    assert all(gene in said for gene in genes)
    assert f"\n{genes[0]}\n" in Path("out/genes.fasta").read_text()
    records = parse_genbank(Path("out/genes.gb").read_text(), "genes.gb")
    assert [record.sequence for record in records] == [gene.replace("U", "T") for gene in genes]
    assert records[0].protein_of(records[0].features[-1]) == "M" + PROTEIN


def test_refined_genes_have_no_more_energy() -> None:
    assert main(["fold", "MKTAYIAK", "--designs", "2", "--out", "first"]) == 0
    assert main(["fold", "MKTAYIAK", "--designs", "2", "--refine", "--out", "refined"]) == 0
    first, refined = pd.read_csv("first/genes.csv"), pd.read_csv("refined/genes.csv")
    assert refined["mfe"].tolist() == sorted(refined["mfe"])
    assert refined["mfe"][0] <= first["mfe"].min()


def test_several_proteins() -> None:
    Path("two.fasta").write_text(">one\nMKTAYI\n>two\nMNDTEAI\n")
    assert main(["fold", "two.fasta", "--designs", "2", "--out", "out"]) == 0
    best = pd.read_csv("out/best.csv")
    assert best["protein"].tolist() == ["one", "two"]
    assert best["energy"][1] == -1.1
    assert Path("out/two/genes.fasta").exists()
    assert Path("out/best.fasta").read_text().count(">") == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["MKX"], "'X' at position 3"),
        ([PROTEIN, "--codon-weight", "1"], "--cai"),
        ([PROTEIN, "--cai", "martian"], "martian"),
        ([PROTEIN, "--stop", "AAA"], "not a stop codon"),
        (["none.fasta"], "none.fasta"),
    ],
)
def test_what_is_wrong_is_named(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fold", *arguments, "--out", "out"]) != 0
    assert message in capsys.readouterr().err
    assert not Path("out").exists()


def test_files_are_not_overwritten(capsys: pytest.CaptureFixture[str]) -> None:
    Path("out").mkdir()
    Path("out/genes.csv").write_text("mine")
    assert main(["fold", "MK", "--out", "out"]) != 0
    assert "genes.csv" in capsys.readouterr().err
    assert Path("out/genes.csv").read_text() == "mine"
