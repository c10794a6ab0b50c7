"""Designing genes from the command line, as its users do."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from seqopt.cli import main
from seqopt.cli.genes import folder_names, proteins_of
from seqopt.datasets import Protein, read_proteins
from seqopt.datasets.genbank import parse_genbank
from seqopt.objectives import CodonAdaptationIndex, GCContent, MinimumFreeEnergy
from seqopt.spaces import CodonSpace
from seqopt.spaces.specifications import parse_constraint
from seqopt.strings.codon_usage import CODONS
from seqopt.strings.genetic_codes import genetic_code

ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}
QUICK = ["--initial", "4", "--batch", "3", "--budget", "6", "--seed", "1"]
PROTEIN = "TIKENIFGVS"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(name: str, text: str) -> str:
    Path(name).write_text(text)
    return name


def genes(*arguments: str, out: str = "out", acquisition: str = "random") -> int:
    return main(["genes", *arguments, "--out", out, "--acquisition", acquisition, *QUICK])


def fasta(path: str) -> dict[str, str]:
    """Headers and sequences, read by the letter of the format."""
    records: dict[str, str] = {}
    for line in Path(path).read_text().splitlines():
        if line.startswith(">"):
            header = line[1:]
            assert header not in records
            records[header] = ""
        else:
            assert 0 < len(line) <= 60
            records[header] += line
    return records


@pytest.mark.slow
def test_files_of_a_protein_that_was_typed(capsys: pytest.CaptureFixture[str]) -> None:
    assert genes(PROTEIN, acquisition="gibbon") == 0
    table = pd.read_csv("out/genes.csv")
    assert len(table) == 10
    assert table["rank"].tolist() == list(range(1, 11))
    assert table["value"].is_monotonic_increasing  # low energies are good, unless the user says otherwise
    assert table["value"].tolist() == MinimumFreeEnergy()(table["gene"].tolist()).tolist()
    assert table["gc"].tolist() == GCContent()(table["gene"].tolist()).round(4).tolist()
    assert table["gene"].is_unique
    # A model that doubts itself has members of a batch drawn at random, of which it predicts nothing.
    predicted = table["predicted_mean"].notna()
    assert set(table["batch"][predicted]) == {1, 2}
    scores = pd.read_csv("out/evaluations.csv").set_index("string")["acquisition"]
    assert predicted.tolist() == scores[table["gene"]].notna().tolist() == table["predicted_std"].notna().tolist()
    records = fasta("out/genes.fasta")
    assert list(records.values()) == table["gene"].tolist()
    assert {genetic_code("standard").translate(gene) for gene in records.values()} == {PROTEIN}
    best = table.iloc[0]
    assert next(iter(records)) == f"{PROTEIN}_1 rank=1 mfe={best.value} kcal/mol"
    assert pd.read_csv("out/evaluations.csv").set_index("string")["value"][best.gene] == best.value
    said = capsys.readouterr().out
    for words in ("55,296 synonymous genes", "2/2", "out/genes.fasta", "--resume", best.gene):
        assert words in said
    page = Path("out/report.html").read_text()
    assert "of genes for TIKENIFGVS" in page
    assert "of 55,296 genes" in page
    assert "molecule" not in re.sub(r"(?s)<(style|script).*?</\1>", "", page)
    assert "candidates" not in page.replace("num_candidates", "")  # an argument of the acquisition function


@pytest.mark.slow
def test_constraints_are_kept() -> None:
    options = ["--start", "AUG", "--stop", "TAA", "--avoid", "GAATTC", "--avoid", "AAGGA", "--gc", "0.3", "0.4"]
    assert genes("MEFRGTIKENIFGVS", "-o", "gc", "--maximize", "--representation", "bases", *options) == 0
    for gene in fasta("out/genes.fasta").values():
        assert genetic_code("standard").translate(gene) == "MEFRGTIKENIFGVS*"
        assert gene.startswith("ATG")
        assert not re.search("GAATTC|AAGGA|TCCTT", gene)
        assert 0.3 <= GCContent()([gene])[0] <= 0.4
    assert pd.read_csv("out/genes.csv")["value"].is_monotonic_decreasing


def test_one_strand_and_another_code(capsys: pytest.CaptureFixture[str]) -> None:
    # Trp is TGA or TGG in the mitochondria of vertebrates, and each of them is the other strand's TCA or CCA.
    assert genes("WWWW", "-o", "cai:human", "--code", "2", "--avoid", "TCA", "--avoid", "CCA", "--one-strand") == 0
    table = pd.read_csv("out/genes.csv")
    index = CodonAdaptationIndex("human", code=dict(genetic_code(2).amino_acids))
    assert table["value"].tolist() == index(table["gene"].tolist()).tolist()
    assert set(table["gene"].str.findall("...").sum()) == {"TGA", "TGG"}
    assert "vertebrate mitochondrial" in capsys.readouterr().out
    assert genes("WWWW", "-o", "cai:human", "--code", "2", "--avoid", "TCA", "--avoid", "CCA", out="both") == 2


@pytest.mark.slow
def test_several_proteins_each_in_its_folder(capsys: pytest.CaptureFixture[str]) -> None:
    source = write("mine.fasta", ">sp|P1 first\nTIKEN\nIFGVS\n>SP/p1\nMKVLW\n>\nTTSSA\n")
    assert genes(source, "--minimize") == 0
    said = capsys.readouterr().out
    for words in ("3 proteins", "1/3", "3/3", "sp|P1", "best.fasta"):
        assert words in said
    found = pd.read_csv("out/best.csv")
    assert found["folder"].tolist() == ["sp-P1", "SP-p1-2", "protein-3"]
    for row, protein in zip(found.itertuples(), ["TIKENIFGVS", "MKVLW", "TTSSA"], strict=True):
        own = pd.read_csv(f"out/{row.folder}/genes.csv")
        assert (row.gene, row.value) == (own["gene"][0], own["value"][0])
        assert {genetic_code(1).translate(gene) for gene in own["gene"]} == {protein}
        assert (Path("out") / row.folder / "report.html").exists()
    assert list(fasta("out/best.fasta").values()) == found["gene"].tolist()
    assert genes(source) == 2
    assert "already holds a run" in capsys.readouterr().err
    assert genes(source, "--minimize", "--resume") == 0
    pd.testing.assert_frame_equal(pd.read_csv("out/best.csv"), found)


def test_folder_names_are_safe_and_different_everywhere() -> None:
    names = folder_names([Protein(name, "M") for name in ("a", "A", "a-2", "../b", "b ", "", "é", "x" * 300)])
    assert len({name.casefold() for name in names}) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9-]{1,64}", name) for name in names)


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.slow
def test_stopped_from_outside_and_resumed(
    sent: signal.Signals,
    capfd: pytest.CaptureFixture[str],
    measured: Callable[[str], int],
    held: Callable[[str, str, int], Path],
) -> None:
    hold = held("slow.py", "GC", 6)
    source = write("two.fasta", ">one\nTIKENIFGVS\n>two\nMKVLW\n")
    options = ["--acquisition", "mean", "--initial", "4", "--batch", "3", "--budget", "3"]
    command = [source, "--objective", "slow.py:score", *options]
    process = subprocess.Popen([sys.executable, "-m", "seqopt", "genes", *command, "--out", "stopped"], env=ENVIRONMENT)
    deadline = time.monotonic() + 120
    while measured("stopped/one") < 5:
        assert time.monotonic() < deadline, "the search did not start"
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(sent)
    status = process.wait(timeout=60)
    assert status == (-signal.SIGKILL if sent == signal.SIGKILL else 130)
    results = measured("stopped/one")
    written = fasta("stopped/one/genes.fasta")
    if sent == signal.SIGINT:
        assert len(written) == len(pd.read_csv("stopped/one/genes.csv")) == results
        assert len(fasta("stopped/best.fasta")) == 1
        assert "--resume" in capfd.readouterr().out
    else:
        assert len(written) == 4  # those of the initial design, which was complete
    hold.unlink()
    assert main(["genes", *command, "--out", "stopped", "--resume"]) == 0
    assert main(["genes", *command, "--out", "whole"]) == 0
    for folder in ("one", "two"):
        tables = [
            pd.read_csv(f"{run}/{folder}/evaluations.csv").drop(columns="seconds") for run in ("stopped", "whole")
        ]
        pd.testing.assert_frame_equal(*tables)
        assert Path(f"stopped/{folder}/genes.csv").read_text() == Path(f"whole/{folder}/genes.csv").read_text()
    assert Path("stopped/best.csv").read_text() == Path("whole/best.csv").read_text()


@pytest.mark.slow
def test_resumed_for_another_protein_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert genes(PROTEIN) == 0
    before = Path("out/genes.fasta").read_text()
    assert genes("TIKENIFGVT", "--resume") == 2
    assert "space.protein was 'TIKENIFGVS', is now 'TIKENIFGVT'" in capsys.readouterr().err
    assert genes(PROTEIN, "--avoid", "GAATTC", "--resume") == 2
    assert "space.forbidden" in capsys.readouterr().err
    assert Path("out/genes.fasta").read_text() == before


def test_ones_own_fasta_file_is_not_overwritten(capsys: pytest.CaptureFixture[str]) -> None:
    source = write("genes.fasta", ">p\nTIKENIFGVS\n")
    assert genes(source, out=".") == 2
    assert "genes.fasta, which a run would overwrite" in capsys.readouterr().err
    assert Path(source).read_text() == ">p\nTIKENIFGVS\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["TIKEBNF"], "'B' at position 5 of the protein is not an amino acid"),
        (["proteins"], "there is no file 'PROTEINS' either"),
        (["TIK*NF"], "stop symbol '*' at position 4"),
        (["   "], "the protein is empty"),
        (["missing.fasta"], "there is no file missing.fasta"),
        (["data/missing"], "there is no file data/missing"),
        (["."], "is a folder"),
        (["empty.fasta"], "empty.fasta is empty"),
        (["blank.fasta"], "only blank lines"),
        (["comment.fasta"], "comment.fasta holds no protein"),
        (["bare.fasta"], "before the first '>' header"),
        (["hollow.fasta"], "hollow.fasta, line 3 (>second): the record has no sequence"),
        (["bad.fasta"], "bad.fasta, line 3 (>second): 'J' at position 2 of the protein is not an amino acid"),
        (["stops.fasta"], "stops.fasta, line 1 (>first): stop symbol '*' at position 3"),
        (["table.csv"], "FASTA"),
        ([PROTEIN, "--avoid", "ATHAAR"], "no gene can avoid the motif"),
        ([PROTEIN, "--gc", "0.8", "0.9"], "GC content between 0.8 and 0.9 is impossible"),
        ([PROTEIN, "--avoid", "GGWCC", "--avoid", "ATTTT", "--gc", "0.1", "0.2"], "without ATTTT, with a GC content"),
        ([PROTEIN, "--gc", "0.6", "0.4"], "two fractions in order"),
        ([PROTEIN, "--avoid", "GAXTC"], "'X' at position 3 of the motif"),
        ([PROTEIN, "--avoid", "BamH"], "did you mean BamHI"),
        ([PROTEIN, "--gc", "40", "60"], "did you mean 0.4 0.6?"),
        (["MWM", "--objective", "cai:e_coli"], "no codon of the protein MWM counts"),
        ([PROTEIN, "--objective", "opening_energy:-4..40", "--upstream", "AGGAG"], "the gene has 30"),
        ([PROTEIN, "--objective", "mfe + 0.5*"], "at position 11, and it ends"),
        ([PROTEIN, "--avoid", "XyzI"], "neither an enzyme of the list nor a motif"),
        ([PROTEIN, "--constraint", "gc-windw 9 0 1"], "did you mean 'gc-window'"),
        (
            [PROTEIN, "--constraint", "gc-window 90 0.3 0.7"],
            "the window of GC content is 90 bases, and the gene has 30",
        ),
        ([PROTEIN, "--constraint", "fixed 1 AAA"], "codon 1 of the gene cannot be AAA: T has"),
        ([PROTEIN, "--upstream", "ACGX"], "'X' at position 4 of what stands upstream of the gene"),
        ([PROTEIN, "--start", "AAA"], "not a start codon"),
        ([PROTEIN, "--stop", "AAA"], "choose TAA, TAG, TGA"),
        ([PROTEIN, "--code", "martian"], "unknown genetic code 'martian'"),
        ([PROTEIN, "--representation", "letters"], "codons or bases"),
        ([PROTEIN, "--partitions", "0"], "integer of at least 1"),
        ([PROTEIN, "--objective", "qed"], "qed is for molecules, not for genes"),
        ([PROTEIN, "--objective", "cai"], "cai:ORGANISM"),
        ([PROTEIN, "--objective", "column:price"], "there is no pool"),
        ([PROTEIN, "--objective", "mff"], "did you mean 'mfe'"),
        ([PROTEIN, "--resume"], "no run to resume"),
    ],
)
def test_bad_input_is_one_clear_message(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    write("empty.fasta", "")
    write("blank.fasta", "\n \n")
    write("comment.fasta", "; nothing but a comment\n")
    write("bare.fasta", "TIKEN\n")
    write("hollow.fasta", ">first\nTIK\n>second\n>third\nTIK\n")
    write("bad.fasta", ">first\nTIK\n>second\nTJK\n")
    write("stops.fasta", ">first\nTI*K\n>second\nTIK\n")
    write("table.csv", "name,sequence\na,TIK\n")
    assert genes(*arguments) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.err.count("seqopt:") == 1
    assert "Traceback" not in captured.err
    assert not Path("out").exists()


def test_bases_given_for_a_protein_are_pointed_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert genes("atggcatgc", "-o", "cai:e_coli", "--best", "1") == 0
    assert "could be bases" in " ".join(capsys.readouterr().out.split())


def test_an_objective_that_always_fails_leaves_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    write("failing.py", "def score(genes):\n    raise OSError('no licence')\n")
    assert genes(PROTEIN, "--objective", "failing.py:score") == 2
    assert "all 4 evaluations so far failed" in capsys.readouterr().err
    assert pd.read_csv("out/evaluations.csv")["error"].str.contains("no licence").all()


def test_help_names_what_can_be_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["genes", "--help"]) == 0
    said = capsys.readouterr().out
    for word in ("--avoid", "--gc", "cai:ORGANISM", "genes.fasta", "--partitions", "TIKENIFGVS"):
        assert word in said


def test_a_protein_that_was_typed_in_groups_names_its_genes_briefly() -> None:
    (protein,) = proteins_of("mtsrghlrap ccyafksats\nhqrtrtscla")
    assert protein.sequence == "MTSRGHLRAPCCYAFKSATSHQRTRTSCLA"
    assert protein.name == "MTSRGHLRAPCCYAFKSATSHQRT-30aa"


@pytest.mark.slow
def test_parts_are_passed_on_and_recorded() -> None:
    assert genes(PROTEIN * 2, "--partitions", "2", acquisition="mean") == 0
    settings = json.loads(Path("out/summary.json").read_text())["settings"]
    assert settings["details"]["surrogate"]["kernel"][0]["partitions"] == 2
    assert settings["space"]["protein"] == PROTEIN * 2


@pytest.mark.slow
def test_a_space_that_is_used_up_ends_the_search(capsys: pytest.CaptureFixture[str]) -> None:
    assert genes("MF") == 0
    assert sorted(pd.read_csv("out/genes.csv")["gene"]) == ["ATGTTC", "ATGTTT"]
    said = capsys.readouterr().out
    assert "more than the 2 genes" in said
    assert "larger budget" not in said
    # Of a space with constraints it is not known beforehand how much it holds.
    assert genes("MWF", "--gc", "0.1", "0.4", out="one") == 0
    assert pd.read_csv("one/genes.csv")["gene"].tolist() == ["ATGTGGTTT"]


@pytest.mark.slow
def test_known_genes_teach_the_model_and_are_not_scored_again(capsys: pytest.CaptureFixture[str]) -> None:
    known = CodonSpace(PROTEIN).sample(6, np.random.default_rng(7))
    good = write("known.csv", "gene,gc\n" + "".join(f"{gene},{0.5 + i / 64}\n" for i, gene in enumerate(known)))
    options = ("--objective", "gc", "--maximize", "--known")
    for text, words in (
        ("gene,gc\nATGAAA,0.5\n", "known.csv, line 2"),  # another protein
        ("gene,activity\n" + known[0] + ",0.5\n", "no column of values: expected 'gc'"),
    ):
        assert genes(PROTEIN, *options, write("bad-known.csv", text)) != 0
        assert words in " ".join(capsys.readouterr().err.split())
        assert not Path("out").exists()
    assert genes(PROTEIN, *options, good) == 0
    assert "what is known from known.csv takes the place" in capsys.readouterr().out
    frame = pd.read_csv("out/evaluations.csv")
    assert frame["string"].tolist()[:6] == known
    assert frame["value"].tolist()[:6] == [0.5 + i / 64 for i in range(6)]
    assert len(frame) == 6 + 6  # more than the 4 random ones
    assert frame["string"].is_unique
    assert genes(PROTEIN, *options, good, "--resume") == 0
    assert genes(PROTEIN, *options, write("others.csv", "gene,gc\n" + known[0] + ",0.25\n"), "--resume") != 0
    assert "made with other settings (known.results was 6, is now 1" in " ".join(capsys.readouterr().err.split())


def test_known_genes_are_of_one_protein(capsys: pytest.CaptureFixture[str]) -> None:
    write("two.fasta", ">a\nMKT\n>b\nMRT\n")
    assert genes("two.fasta", "--known", write("known.csv", "gene,mfe\nATGAAAACA,-1\n")) != 0
    assert "--known gives results of one protein, and two.fasta holds 2" in " ".join(capsys.readouterr().err.split())
    assert not Path("out").exists()


@pytest.mark.slow
def test_the_best_genes_are_computed_where_they_can_be(capsys: pytest.CaptureFixture[str]) -> None:
    write("usage.csv", "codon,frequency\n" + "".join(f"{codon},{1 + i % 7}\n" for i, codon in enumerate(CODONS)))
    options = ["--avoid", "EcoRI", "--gc", "0.3", "0.5", "--constraint", "longest-run 3", "--upstream", "CCGA"]
    arguments = ["MEFRKNSTK*", "-o", "cai:usage.csv", *options, "--constraint", "gc-window 9 0.2 0.7"]
    assert genes(*arguments, "--best", "4") == 0
    said = " ".join(capsys.readouterr().out.split())
    for words in ("exact: the 4 best by cai:usage.csv, maximized", "no gene that keeps to the constraints is better"):
        assert words in said
    assert "GC content 0.2 to 0.7 in every window of 9 bases" in said
    table = pd.read_csv("out/genes.csv")
    constraints = [*parse_constraint("longest-run 3"), *parse_constraint("gc-window 9 0.2 0.7")]
    kept = {"forbidden": ["GAATTC"], "both_strands": True, "gc": (0.3, 0.5), "upstream": "CCGA"}
    space = CodonSpace("MEFRKNSTK", constraints=constraints, **kept)
    index = CodonAdaptationIndex("usage.csv")
    everything = sorted(index(list(space.enumerate())), reverse=True)
    assert table["value"].tolist() == pytest.approx(everything[:4])
    assert table["gene"].is_unique
    assert all(map(space.contains, table["gene"]))
    assert list(fasta("out/genes.fasta").values()) == table["gene"].tolist()
    settings = json.loads(Path("out/summary.json").read_text())["settings"]
    assert settings["exact"]["proven"] is True
    page = Path("out/report.html").read_text()
    assert "The first gene is optimal" in page
    assert "no better than" not in page
    # A run that was computed is there again at once; one that was searched for stays a search.
    assert genes(*arguments, "--best", "4", "--resume") == 0
    assert pd.read_csv("out/genes.csv")["gene"].tolist() == table["gene"].tolist()
    assert genes(*arguments, "--search", out="searched") == 0
    assert "exact" not in json.loads(Path("searched/summary.json").read_text())["settings"]
    assert len(pd.read_csv("searched/genes.csv")) == 10
    assert genes(*arguments, "--resume", out="searched") == 0
    assert len(pd.read_csv("searched/genes.csv")) == 10


def test_one_gene_is_enough() -> None:
    assert genes("MEFK", "-o", "cai:e_coli", "--best", "1") == 0
    index, table = CodonAdaptationIndex("e_coli"), pd.read_csv("out/genes.csv")
    assert table["value"].tolist() == pytest.approx([max(index(list(CodonSpace("MEFK").enumerate())))])
    assert Path("out/report.html").is_file()


@pytest.mark.slow
def test_a_weighted_sum_is_solved_and_written_in_all_forms(capsys: pytest.CaptureFixture[str]) -> None:
    words = "log_cai:e_coli - 0.05*content:CG"
    flank = ["--start", "ATG", "--stop", "TAA", "--upstream", "GGAGG", "--rna", "--genbank"]
    assert genes("MKTEL", "-o", words, "--best", "3", *flank) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"exact: the 3 best by {words}, maximized" in said
    table = pd.read_csv("out/genes.csv")
    assert table["value"].tolist() == pytest.approx((table["log_cai:e_coli"] - 0.05 * table["content:CG"]).tolist())
    assert set("".join(table["gene"])) <= set("ACGU")
    assert list(fasta("out/genes.fasta").values()) == table["gene"].tolist()
    records = parse_genbank(Path("out/genes.gb").read_text(), "out/genes.gb")
    assert [one.sequence for one in records] == [f"GGAGG{gene}".replace("U", "T") for gene in table["gene"]]
    assert [one.sequence for one in read_proteins("out/genes.gb")] == ["MKTEL"] * 3
    assert {"log_cai:e_coli", "content:CG"} <= set(pd.read_csv("out/evaluations.csv").columns)


def test_tables_of_codon_usage_are_listed_and_incomplete_ones_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["genes", "--list-tables"]) == 0
    assert "human, h_sapiens, h_sapiens_9606: Homo sapiens" in capsys.readouterr().out
    write("part.csv", "codon,count\n" + "".join(f"{codon},1\n" for codon in CODONS if codon not in ("CTG", "TAA")))
    assert genes("MKTEL", "-o", "cai:part.csv") == 2
    assert "part.csv lacks 1 codon (CTG): add a row for each" in capsys.readouterr().err
    assert genes("MKTEL", "--gc", "0.4 0.6") == 2
    assert "two fractions with a blank between them" in capsys.readouterr().err


def test_sums_with_an_index_are_searched_for_and_its_logarithm_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """The example that everybody begins with, and one of which only the index hinders an exact optimum."""
    assert genes(PROTEIN, "--objective", "mfe + 0.5*cai:human", "--minimize") == 0
    said = capsys.readouterr().out
    assert "log_cai" not in said
    table = pd.read_csv("out/genes.csv")
    found = table["gene"].tolist()
    assert len(found) == 10
    np.testing.assert_allclose(table["mfe"], MinimumFreeEnergy()(found))
    np.testing.assert_allclose(table["cai:human"], CodonAdaptationIndex("human")(found))
    np.testing.assert_allclose(table["value"], table["mfe"] + 0.5 * table["cai:human"])
    assert said.partition("Best of 10 genes")[2].split("\n")[1].split()[:3] == ["value", "mfe", "cai:human"]
    assert genes(PROTEIN, "--objective", "cai:human + 0.5*gc", out="sum") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "geometric means such as cai are no sums over codons: the best genes by -o 'log_cai:human + 0.5*gc'" in said
    assert genes(PROTEIN, "--objective", "log_cai:human + 0.5*gc", out="exact") == 0
    assert "exact: the 10 best" in capsys.readouterr().out
    # Of one index the order is what counts, whatever its weight.
    assert genes(PROTEIN, "--objective", "2*cai:human + 0*gc", out="one") == 0
    assert "exact: the 10 best" in capsys.readouterr().out
    assert pd.read_csv("one/genes.csv")["value"][0] == pytest.approx(2.0)


def test_known_genes_may_have_decimal_commas(capsys: pytest.CaptureFixture[str]) -> None:
    space = CodonSpace(PROTEIN)
    found = [gene for gene, _ in zip(space.enumerate(), range(2), strict=False)]
    write("known.csv", "gene;value\n" + "".join(f"{gene};-{number},5\n" for number, gene in enumerate(found, 1)))
    assert genes(PROTEIN, "--known", "known.csv") == 2
    captured = capsys.readouterr()
    assert "--decimal-comma" in captured.err
    assert "scored" not in captured.out
    assert genes(PROTEIN, "--known", "known.csv", "--decimal-comma") == 0
    assert pd.read_csv("out/evaluations.csv")["value"].tolist()[:2] == [-1.5, -2.5]
    assert genes(PROTEIN, "--decimal-comma", out="other") == 2
    assert "--decimal-comma goes with --known FILE" in capsys.readouterr().err
