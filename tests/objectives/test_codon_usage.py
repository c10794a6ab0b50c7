"""Scores by codons against their definitions, and their exact optima against enumeration."""

from __future__ import annotations

import math
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqopt.errors import InputError
from seqopt.objectives import (
    CodonPairBias,
    CodonShares,
    Harmonisation,
    MotifContent,
    PatternCount,
    TRNAAdaptationIndex,
    by_code,
    exact_score,
    resolve_objective,
)
from seqopt.spaces import CodonSpace, ExactGenes
from seqopt.strings.codon_usage import codon_usage
from seqopt.strings.genetic_codes import genetic_code

COUNTS = {"AAA": 30, "AAG": 10, "TTT": 5, "TTC": 15, "CTG": 7, "TTA": 1}
CODONS = ["".join(letters) for letters in product("ACGT", repeat=3)]
TABLES = {
    "trna.csv": "anticodon,copies\nTTT,6\nCTT,1\nGAA,2\nTAG,3\nCAG,4\nGAT,3\nTTC,4\nACG,4\n",
    "weights.csv": "codon,weight\nAAA,1\nUUC,0.5\nCTG,-2\n",
    "usage.tsv": "codon\tcount\n" + "".join(f"{codon}\t{COUNTS.get(codon, 0)}\n" for codon in CODONS),
    "native.fasta": ">home\nATGAAGTTTCTAATAGAA\n",
    "reference.fasta": ">a\nATGAAATTCCTGATTGAATAA\n>b\nATGAAATTTCTGATCGAGTAA\n>c\nATGAAGTTTTTAATTGAA\n",
}
SPECS = [
    "cai:human",
    "cai:usage.tsv",
    "usage:e_coli",
    "tai:trna.csv",
    "codon_weights:weights.csv",
    "codon_pairs:reference.fasta",
    "harmonization:native.fasta,human,e_coli",
    "content:CG",
    "content:U",
    "gc",
    "gc_distance:0.37",
    "pattern_count:A?TC",
]


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in TABLES.items():
        Path(name).write_text(text)


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
@pytest.mark.parametrize("spec", SPECS)
def test_the_exact_optimum_is_that_of_all_genes(spec: str, direction: str) -> None:
    objective = resolve_objective(spec)
    space = CodonSpace("MKFLIE", forbidden=["AAGTT", "CTGAT"], gc=(0.2, 0.45))
    genes = list(space.enumerate())
    values = np.sort(objective(genes))[:: -1 if direction == "maximize" else 1]
    score = exact_score(objective, space, direction)
    assert score is not None
    found = [one.gene for one in ExactGenes(space, score).best(25).genes]
    assert objective(found) == pytest.approx(values[:25])
    assert set(found) <= set(genes)


def test_what_is_no_sum_has_no_exact_optimum() -> None:
    space = CodonSpace("MKFLIE")
    assert exact_score(resolve_objective("mfe"), space, "minimize") is None
    disjoint, first, noisy = (
        PatternCount("AA", False),
        PatternCount("AA", first=4),
        PatternCount("A", True, None, 1.0, 0),
    )
    for count in (disjoint, first, noisy):
        assert count.codon_score(space) is None
    assert resolve_objective("cai:human").function.codon_score(CodonSpace("MWM")) is None
    chosen = CodonSpace("MK", accept=lambda gene: gene.endswith("A"))
    assert exact_score(resolve_objective("gc"), chosen, "maximize") is None


def test_trna_adaptation_by_hand() -> None:
    index = TRNAAdaptationIndex({"UUU": 4, "CTT": 2, "GAA": 1, "AAT": 3})
    supply = {"AAA": 4.0, "AAG": 2 + 0.32 * 4, "TTC": 1.0, "TTT": 0.59, "ATT": 3.0, "ATC": 3 * 0.72, "ATA": 3 * 0.0001}
    for codon, amount in supply.items():
        assert index([codon])[0] == pytest.approx(amount / 4)
    # What nothing reads has the mean of the others; Met and stops do not count.
    mean = math.exp(sum(math.log(amount / 4) for amount in supply.values()) / len(supply))
    assert index(["ATGCCCTAA"])[0] == pytest.approx(mean)
    with pytest.raises(InputError, match="read no codon"):
        TRNAAdaptationIndex({"CAT": 3})
    with pytest.raises(InputError, match="anticodon TTT is -1"):
        TRNAAdaptationIndex({"TTT": -1})


@settings(deadline=None, max_examples=20)
@given(
    st.lists(
        st.lists(st.sampled_from(["AAA", "AAG", "GAA", "GAG", "TTT"]), min_size=2, max_size=6), min_size=1, max_size=5
    )
)
def test_pair_scores_are_logs_of_observed_over_expected(genes: list[list[str]]) -> None:
    code = genetic_code(1).amino_acids
    flat = [codon for gene in genes for codon in gene]
    pairs = [pair for gene in genes for pair in pairwise(gene)]
    bias = CodonPairBias.of_genes(["".join(gene) for gene in genes])
    for a, b in product(set(flat), repeat=2):
        if (a, b) not in pairs:
            assert bias([a + b])[0] == 0
            continue
        same = [code[codon] for codon in flat]
        expected = (
            flat.count(a)
            / same.count(code[a])
            * flat.count(b)
            / same.count(code[b])
            * sum((code[x], code[y]) == (code[a], code[b]) for x, y in pairs)
        )
        assert bias([a + b])[0] == pytest.approx(math.log(pairs.count((a, b)) / expected))


def test_samples_at_temperature_one_use_codons_as_the_organism_does() -> None:
    space = CodonSpace("KFE" * 60)
    score = CodonShares("human").codon_score(space)
    assert score is not None
    drawn = "".join(ExactGenes(space, score).sample(60, np.random.default_rng(0)))
    codons = [drawn[i : i + 3] for i in range(0, len(drawn), 3)]
    # 3,600 codons of each amino acid: five standard deviations of a share are 0.04.
    assert codons.count("AAG") / (60 * 60) == pytest.approx(0.57, abs=0.04)
    assert codons.count("TTT") / (60 * 60) == pytest.approx(0.46, abs=0.04)


def test_codes_go_with_the_genes() -> None:
    mitochondrial = by_code(resolve_objective("usage:human"), 2).function
    assert "TGA" in mitochondrial.shares
    assert "AGA" not in mitochondrial.shares
    assert by_code(resolve_objective("gc"), 2) == resolve_objective("gc")


def test_content_reads_either_alphabet() -> None:
    assert MotifContent("U")(["AUUT", "autt"]).tolist() == [75.0, 75.0]


@pytest.mark.parametrize(
    ("spec", "text", "said"),
    [
        ("tai:x.csv", "anticodon,number\nTTT,1\n", "expected a column 'anticodon' and one of 'copies'"),
        ("tai:x.csv", "anticodon,copies\nTTX,1\n", "x.csv, line 2: 'TTX' is not an anticodon"),
        ("tai:x.csv", "anticodon,copies\n\nTTT,many\n", "x.csv, line 3, column copies: 'many' is not a finite number"),
        ("tai:x.csv", "anticodon,copies\nTTT,1\nUUU,2\n", "line 3: anticodon TTT is there for the second time"),
        ("tai:x.csv", "anticodon,copies\n", "holds no anticodon"),
        ("tai:x.csv", "anticodon,copies\nTTT\n", "line 2: 1 cells; expected 2"),
        ("codon_weights:missing.csv", "", "there is no file"),
        ("cai:x.csv", "codon,frequency\nAAA,-1\n", "the usage of AAA is -1"),
        ("codon_pairs:x.fasta", ">a\nATGA\n", "x.fasta, line 1 (>a): the gene has 4 bases"),
        ("codon_pairs:x.fasta", ">a\nATG\n", "no pair of codons"),
        ("codon_pairs:x.csv", "a,b\n", "FASTA"),
        ("harmonization:native.fasta,human", "", "three parts"),
        ("harmonization:reference.fasta,human,e_coli", "", "holds 3 genes"),
        ("harmonization:native.fasta,human,martian", "", "there is no codon usage of 'martian'"),
        ("content:CGX", "", "'X' at position 3"),
    ],
)
def test_bad_input(spec: str, text: str, said: str) -> None:
    name = spec.partition(":")[2]
    if name.startswith("x."):
        Path(name).write_text(text)
    with pytest.raises(InputError) as error:
        resolve_objective(spec)
    assert said in str(error.value)


def test_a_native_gene_of_another_protein_is_refused() -> None:
    harmonised = Harmonisation("ATGAAGTTT", "human", "e_coli")
    with pytest.raises(InputError, match="codon 2 of the native gene \\(AAG\\) codes for K, and the protein has E"):
        harmonised.codon_score(CodonSpace("MEF"))
    with pytest.raises(InputError, match="the native gene has 3 codons, and the genes of this protein have 4"):
        harmonised.codon_score(CodonSpace("MKFF"))
    with pytest.raises(InputError, match="string 1 has 2 codons, and the native gene 3"):
        harmonised(["ATGAAATTT", "ATGAAA"])
    score = harmonised.codon_score(CodonSpace("MKF", stop="TAA"))
    assert score is not None
    assert score.of("ATGAAATTTTAA") == pytest.approx(harmonised(["ATGAAATTTTAA"])[0])


def test_an_organism_that_was_misspelt_is_guessed() -> None:
    for typed, meant in (("ecoli", "e_coli"), ("E. coli", "e_coli"), ("humn", "human"), ("h-sapiens", "h_sapiens")):
        with pytest.raises(InputError, match=f"no codon usage of '{typed}': did you mean {meant}"):
            codon_usage(typed)


def test_reference_genes_that_are_none_are_named_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "genes.fasta"
    path.write_text(">a\nATGAAAGCT\n>b of last year\nATGAAAGC\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"genes.fasta, line 3 \(>b of last year\): the gene has 8 bases"):
        resolve_objective(f"codon_pairs:{path}")
    path.write_text("\n>native\nATGAANGCT\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"genes.fasta, line 2 \(>native\): the gene has 'N' at position 6"):
        resolve_objective(f"harmonization:{path},human,e_coli")


def test_tables_of_spreadsheets_with_semicolons_are_read(tmp_path: Path) -> None:
    path = tmp_path / "weights.csv"
    path.write_text("codon;weight\nAAA;1\nAAG;0.5\n", encoding="utf-8")
    assert resolve_objective(f"codon_weights:{path}")(["AAAAAG"]) == pytest.approx([0.75])
    path.write_text("codon;weight\nAAA;1\nAAG;0,5\n", encoding="utf-8")
    with pytest.raises(InputError, match="line 3, column weight: '0,5' is not a finite number: write it with a point"):
        resolve_objective(f"codon_weights:{path}")
    with pytest.raises(InputError, match=r"there is no file .*nowhere\.csv"):
        resolve_objective(f"cai:{tmp_path / 'nowhere.csv'}")


@pytest.mark.parametrize(
    ("row", "wanted"),
    [("TGX,3", "line 2: 'TGX' is not an anticodon"), ("TGC,-3", "trna.csv: the number of tRNA genes of anticodon TGC")],
)
def test_tables_of_trnas_are_named_where_they_are_wrong(tmp_path: Path, row: str, wanted: str) -> None:
    path = tmp_path / "trna.csv"
    path.write_text(f"anticodon,copies\n{row}\n", encoding="utf-8")
    with pytest.raises(InputError, match=wanted):
        resolve_objective(f"tai:{path}")
