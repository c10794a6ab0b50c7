"""Scores of genes, against ViennaRNA's other functions, closed forms and published values."""

from __future__ import annotations

import csv
import math
import pickle
import subprocess
import sys
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
import python_codon_tables
import RNA
from hypothesis import given, settings
from hypothesis import strategies as st

from seqopt.datasets.tables import read_table
from seqopt.errors import InputError, ObjectiveError
from seqopt.evaluation import evaluate
from seqopt.objectives import CodonAdaptationIndex, GCContent, MinimumFreeEnergy, resolve_objective
from seqopt.strings.genetic_codes import genetic_code
from seqopt.utils.resources import data_path

# The table of the thesis, appendix B.4.2.
CODONS = {
    "F": "ttt ttc",
    "L": "tta ttg ctt ctc cta ctg",
    "S": "tct tcc tca tcg agt agc",
    "Y": "tat tac",
    "C": "tgt tgc",
    "W": "tgg",
    "P": "cct ccc cca ccg",
    "H": "cat cac",
    "Q": "caa cag",
    "R": "cgt cgc cga cgg aga agg",
    "I": "att atc ata",
    "M": "atg",
    "T": "act acc aca acg",
    "N": "aat aac",
    "K": "aaa aag",
    "V": "gtt gtc gta gtg",
    "A": "gct gcc gca gcg",
    "D": "gat gac",
    "E": "gaa gag",
    "G": "ggt ggc gga ggg",
}
SYNONYMS = {amino_acid: codons.upper().split() for amino_acid, codons in CODONS.items()}
# Enumerating all 55,296 genes of TIKENIFGVS finds these eight at -10.2 kcal/mol and none below.
BEST_GENES = [f"ACCATCAAAGAGAA{n}ATCTTTGGTGTGTC{s}" for n in "CT" for s in "ACGT"]
sequences = st.text("ACGU", min_size=1, max_size=40)


@settings(max_examples=50, deadline=None)
@given(sequences)
def test_energies_are_those_of_the_structures_that_have_them(sequence: str) -> None:
    structure, energy = RNA.fold(sequence)
    (value,) = MinimumFreeEnergy()([sequence])
    assert value == pytest.approx(energy, abs=1e-5)
    assert value == pytest.approx(RNA.fold_compound(sequence).eval_structure(structure), abs=1e-5)
    assert value <= 0


@settings(max_examples=20, deadline=None)
@given(sequences)
def test_the_minimum_is_the_least_energy_of_all_structures(sequence: str) -> None:
    # All structures within 3 kcal/mol of the minimum, found by another algorithm.
    energies = [item.energy for item in RNA.fold_compound(sequence[:25]).subopt(300)]
    assert MinimumFreeEnergy()([sequence[:25]])[0] == pytest.approx(min(energies), abs=1e-5)


def test_spelling_does_not_matter() -> None:
    spellings = ["GGGAAATCCC", "GGGAAAUCCC", "gggaaatccc", "gggaaaUCCC", " GGGAAATCCC\n"]
    for objective in (MinimumFreeEnergy(), GCContent()):
        assert len(set(objective(spellings).tolist())) == 1
    codons = ["CTGACCTAA", "CUGACCUAA", "ctgacctaa"]
    assert len(set(CodonAdaptationIndex()(codons).tolist())) == 1
    assert MinimumFreeEnergy()(["GGGAAATCCC"])[0] == -2.5


def test_a_limited_span_leaves_fewer_structures() -> None:
    # The ten bases pair end to end; with a span of nine that pair is out, and with five there is no structure left.
    assert MinimumFreeEnergy(span=10)(["GGGAAATCCC"])[0] == -2.5
    assert MinimumFreeEnergy(span=9)(["GGGAAATCCC"])[0] > -2.5
    genes = ["".join(np.random.default_rng(seed).choice(list("ACGU"), 60)) for seed in range(5)]
    energies = [MinimumFreeEnergy(span=span)(genes) for span in (5, 15, 30, 60, None)]
    assert all((shorter >= longer).all() for shorter, longer in pairwise(energies))
    assert (energies[0] > energies[-1]).any()
    np.testing.assert_array_equal(energies[-2], energies[-1])
    with pytest.raises(InputError, match="span of base pairs is 4; expected 5"):
        MinimumFreeEnergy(span=4)


def test_hotter_folds_less() -> None:
    gene = ["GGGCGCAAAAGCGCCC"]
    energies = [float(MinimumFreeEnergy(temperature)(gene)[0]) for temperature in (20, 37, 60, 95)]
    assert energies == sorted(energies)
    assert energies[1] == MinimumFreeEnergy()(gene)[0]
    assert energies[0] < energies[1] < energies[2]
    # Changing ViennaRNA's own settings changes nothing here.
    before = RNA.cvar.temperature
    try:
        RNA.cvar.temperature = 60.0
        assert MinimumFreeEnergy()(gene)[0] == energies[1]
    finally:
        RNA.cvar.temperature = before


def test_the_best_genes_of_the_short_protein() -> None:
    assert MinimumFreeEnergy()(BEST_GENES).tolist() == [-10.2] * 8
    for gene in BEST_GENES:
        assert "".join(amino_acid_of(codon) for codon in split(gene)) == "TIKENIFGVS"
    assert len(set(BEST_GENES)) == 8
    # No single change of a codon improves on any of them.
    neighbours = {
        gene[: 3 * index] + codon + gene[3 * index + 3 :]
        for gene in BEST_GENES
        for index, amino_acid in enumerate("TIKENIFGVS")
        for codon in SYNONYMS[amino_acid]
    }
    energies = dict(zip(sorted(neighbours), MinimumFreeEnergy()(sorted(neighbours)), strict=True))
    assert {gene for gene, energy in energies.items() if energy <= -10.2} == set(BEST_GENES)


def split(gene: str) -> list[str]:
    return [gene[begin : begin + 3] for begin in range(0, len(gene), 3)]


def amino_acid_of(codon: str) -> str:
    return next((amino_acid for amino_acid, codons in SYNONYMS.items() if codon in codons), "*")


def test_the_standard_code_is_that_of_the_thesis_and_of_the_usage_tables() -> None:
    code = genetic_code("standard").amino_acids
    assert {codon: amino_acid_of(codon) for codon in code} == code
    assert len(code) == 64
    for amino_acid, codons in python_codon_tables.get_codons_table("e_coli_316407").items():
        assert {code[codon] for codon in codons} == {amino_acid}


def test_adaptation_is_the_geometric_mean_by_hand() -> None:
    usage = {"CTG": 50, "CTA": 5, "AAA": 30, "AAG": 10, "ATG": 7, "TGG": 3, "TAA": 1}
    index = CodonAdaptationIndex("mine", usage=usage)
    assert index(["CTGAAA"])[0] == pytest.approx(1)
    assert index(["CTAAAG"])[0] == pytest.approx(math.sqrt(0.1 * 1 / 3))
    assert index(["CTAAAGAAG"])[0] == pytest.approx((0.1 / 9) ** (1 / 3))
    # Met, Trp and stops change nothing, wherever they stand.
    assert index(["ATGCTATGGAAGTAA"])[0] == pytest.approx(index(["CTAAAG"])[0])
    # A codon that the reference set lacks counts 0.01; an amino acid that it lacks counts nothing.
    assert index(["TTAAAA"])[0] == pytest.approx(math.sqrt(0.01))
    assert index(["CTAAAGGGTGGC"])[0] == pytest.approx(index(["CTAAAG"])[0])
    # Counts and frequencies of each amino acid are the same thing, and letters may be those of RNA.
    shares = {"cug": 0.5, "cua": 0.05, "aaa": 0.75, "aag": 0.25}
    assert CodonAdaptationIndex(usage=shares)(["CTAAAG"])[0] == pytest.approx(index(["CTAAAG"])[0])


def test_adaptation_to_an_organism_is_that_of_its_table() -> None:
    folder = Path(python_codon_tables.__file__).parent / "codon_usage_data" / "tables"
    files = {"e_coli": "e_coli_316407", "yeast": "s_cerevisiae_4932", "human": "h_sapiens_9606"}
    rng = np.random.default_rng(0)
    for organism, name in files.items():
        with (folder / f"{name}.csv").open() as stream:
            usage = {row["codon"].replace("U", "T"): float(row["relative_frequency"]) for row in csv.DictReader(stream)}
        index = CodonAdaptationIndex(organism)
        protein = "".join(rng.choice(list("ACDEFGHIKLNPQRSTVY"), 200))
        gene = [str(rng.choice(SYNONYMS[amino_acid])) for amino_acid in protein]
        weights = [
            usage[codon] / max(usage[other] for other in SYNONYMS[amino_acid])
            for codon, amino_acid in zip(gene, protein, strict=True)
        ]
        assert index(["".join(gene)])[0] == pytest.approx(np.exp(np.mean(np.log(weights))), rel=1e-12)
        best = [max(SYNONYMS[amino_acid], key=lambda codon: usage[codon]) for amino_acid in protein]
        assert index(["".join(best)])[0] == pytest.approx(1)
        assert CodonAdaptationIndex(name)(["".join(gene)]) == index(["".join(gene)])
    # The rarest codons of E. coli are AGG and CTA, the commonest of yeast is AGA.
    assert CodonAdaptationIndex("e_coli")(["AGGCTA"])[0] < 0.1
    assert CodonAdaptationIndex("yeast")(["AGA"])[0] == 1
    assert CodonAdaptationIndex("e_coli")(["AGA"])[0] < 0.2


def test_codons_without_synonyms_are_left_out_by_every_code() -> None:
    code = genetic_code("standard").amino_acids | {"ATA": "M", "TGA": "W", "AGA": "*", "AGG": "*"}
    index = CodonAdaptationIndex("vertebrate mitochondria", usage={"ATA": 4, "ATG": 1, "TGA": 1, "TGG": 2}, code=code)
    assert index(["ATGTGA"])[0] == pytest.approx(math.sqrt(0.25 * 0.5))


def test_no_table_is_downloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **keywords: object) -> None:
        raise AssertionError("a download")

    monkeypatch.setattr("urllib.request.urlopen", refuse)
    monkeypatch.setattr("python_codon_tables.python_codon_tables.urlopen", refuse)
    for organism in ("4932", "9606", "x_tropicalis", "", "../e_coli"):
        with pytest.raises(InputError, match=r"choose e_coli, yeast, human, b_subtilis.*or give usage="):
            CodonAdaptationIndex(organism)
    CodonAdaptationIndex("b_subtilis")


@given(st.text("ACGTU", min_size=1, max_size=30), st.floats(0, 1))
def test_gc_content_is_a_count(sequence: str, target: float) -> None:
    fraction = sum(base in "GC" for base in sequence) / len(sequence)
    assert GCContent()([sequence, sequence.lower()]).tolist() == [fraction] * 2
    assert GCContent(target)([sequence])[0] == pytest.approx(abs(fraction - target))


def test_what_is_no_gene_is_refused_with_its_place() -> None:
    for objective in (MinimumFreeEnergy(), CodonAdaptationIndex(), GCContent()):
        with pytest.raises(InputError, match=r"string 1 has 'N' at position 4 \(counting from 1\)"):
            objective(["CTG", "CTGNTG"])
        with pytest.raises(InputError, match="string 0 has '-' at position 2"):
            objective(["A-G"])
        with pytest.raises(InputError, match="string 1 is empty"):
            objective(["CTG", " "])
        with pytest.raises(InputError, match=r"write \['CTG'\]"):
            objective("CTG")
        assert objective([]).shape == (0,)
        results = evaluate(objective, ["CTG", "CTX"])
        assert [result.ok for result in results] == [True, False]
        assert "position 3" in results[1].error
    with pytest.raises(InputError, match="string 0 has 4 bases; a gene has three for each codon"):
        CodonAdaptationIndex()(["CTGA"])
    with pytest.raises(InputError, match="string 0 has no codon with synonyms"):
        CodonAdaptationIndex()(["ATGTGGTAA"])


def test_unusable_arguments_are_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    for temperature in (-300.0, math.nan, math.inf):
        with pytest.raises(InputError, match=r"temperature must be above -273.15"):
            MinimumFreeEnergy(temperature)
    with pytest.raises(InputError, match="a fraction from 0 to 1, not 50"):
        GCContent(50)
    with pytest.raises(InputError, match="usage of codon CTG must be a finite number from 0, not -1"):
        CodonAdaptationIndex(usage={"CUG": -1})
    with pytest.raises(InputError, match="'CTX' is not a codon"):
        CodonAdaptationIndex(usage={"CTX": 1})
    with pytest.raises(InputError, match="each of the 64 codons"):
        CodonAdaptationIndex(code={"CTG": "L"})
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ObjectiveError, match="needs the package viennarna: pip install viennarna"):
        MinimumFreeEnergy()
    with pytest.raises(ObjectiveError, match="pip install python-codon-tables"):
        CodonAdaptationIndex()


def test_scores_of_genes_are_found_by_name() -> None:
    gene = ["ATGGGGAAATCCCTGTAA"]
    expected = {
        "mfe": MinimumFreeEnergy()(gene)[0],
        "cai:human": CodonAdaptationIndex("human")(gene)[0],
        "gc": GCContent()(gene)[0],
        "gc_distance:0.6": GCContent(0.6)(gene)[0],
    }
    for name, value in expected.items():
        objective = resolve_objective(name)
        assert objective(gene).tolist() == [value]
        assert objective.applies_to("dna")
        assert objective.applies_to("rna")
        assert not objective.applies_to("protein")
        assert pickle.loads(pickle.dumps(objective.function))(gene).tolist() == [value]
    assert resolve_objective("mfe").unit == "kcal/mol"
    assert [resolve_objective(name).direction for name in expected] == ["minimize", "maximize", "maximize", "minimize"]
    with pytest.raises(InputError, match=r"such as 0.5, not 'half'"):
        resolve_objective("gc_distance:half")
    with pytest.raises(InputError, match=r"from 0 to 1, not 1.5"):
        resolve_objective("gc_distance:1.5")
    with pytest.raises(InputError, match="no codon usage of 'klingon'"):
        resolve_objective("cai:klingon")


def test_importing_the_objectives_loads_neither_package() -> None:
    code = "import sys, seqopt.objectives; print('RNA' in sys.modules, 'python_codon_tables' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["False", "False"], done.stderr


def test_the_test_proteins_have_as_many_genes_as_their_readme_says() -> None:
    table = read_table(data_path("test_proteins.fasta"))
    proteins = dict(zip(table.columns["name"], table.columns["string"], strict=True))
    sizes = {"peptide-10": (11, 3), "thesis-60": (76, 19), "thesis-121": (128, 25), "abl1-1130": (1468, 313)}
    sizes["spike-1273"] = (1584, 325)
    assert list(proteins) == list(sizes)
    assert proteins["peptide-10"] == "TIKENIFGVS"
    readme = data_path("README.md").read_text(encoding="utf-8")
    for (name, protein), (twos, threes) in zip(proteins.items(), sizes.values(), strict=True):
        assert math.prod(len(SYNONYMS[amino_acid]) for amino_acid in protein) == 2**twos * 3**threes
        assert f"| `{name}` | {len(protein):,} | 2^{twos} * 3^{threes}" in readme
        assert name.endswith(f"-{len(protein)}")
    assert len(list(product(*(SYNONYMS[amino_acid] for amino_acid in "TIKENIFGVS")))) == 55_296
